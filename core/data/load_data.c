/* SPDX-License-Identifier: Apache-2.0 */
/* Known sets of data by name: Keras' load_data(). */
#include <math.h>
#include <stdlib.h>

#include "data/load_texts.h"
#include "data/places.h"
#include "data/readers.h"
#include "ops/options.h"
#include "runtime/error.h"
#include "tensor/pool.h"

/* ---- images ---- */

static helio_status check_images(const char *file, const helio_array *x, const helio_array *y) {
  char images[HI_SHAPE_TEXT], labels[HI_SHAPE_TEXT];
  bool good = x->type == HELIO_UINT8 && y->type == HELIO_UINT8 && x->shape.rank == 3 && y->shape.rank == 1 &&
              x->shape.extent[0] == y->shape.extent[0];
  if (good) return HELIO_OK;
  return hi_fail(HELIO_BAD_DATA, "%s: %s of shape %s and %s of shape %s are not images of bytes with their labels",
                 file, helio_type_name(x->type), hi_shape_text(&x->shape, images), helio_type_name(y->type),
                 hi_shape_text(&y->shape, labels));
}

static helio_status give_images(const char *file, helio_array *x, helio_array *y, helio_samples *samples) {
  if (!x || !y) return helio_error_pending();
  helio_status status = check_images(file, x, y);
  if (!status) *samples = (helio_samples){.x = x, .y = y};
  return status;
}

static helio_array *read_idx(const char *path) {
  hi_file *file = hi_file_open(path);
  helio_array *array = file ? hi_read_idx(file) : NULL;
  hi_drop(file);
  return array;
}

static helio_status read_idx_pair(char *const *files, helio_samples *samples) {
  if (!samples) return HELIO_OK;
  helio_array *x = read_idx(files[0]), *y = x ? read_idx(files[1]) : NULL;
  return give_images(files[0], x, y, samples);
}

static helio_status read_npz_pair(hi_file *file, const char *images, const char *labels, helio_samples *samples) {
  if (!samples) return HELIO_OK;
  helio_array *x = hi_read_npz(file, images), *y = x ? hi_read_npz(file, labels) : NULL;
  return give_images(file->name, x, y, samples);
}

static helio_status load_images(char *const *files, helio_samples *train, helio_samples *test) {
  if (files[1]) {
    helio_status status = read_idx_pair(files + HI_TRAIN_IMAGES, train);
    return status ? status : read_idx_pair(files + HI_TEST_IMAGES, test);
  }
  hi_file *file = hi_file_open(files[0]);
  if (!file) return helio_error_pending();
  helio_status status = read_npz_pair(file, "x_train", "y_train", train);
  if (!status) status = read_npz_pair(file, "x_test", "y_test", test);
  hi_drop(file);
  return status;
}

/* ---- texts ---- */

/* What is read on the way ends with a pool of its own. */
static helio_status load_texts(const hi_known_set *set, const char *path, const hi_text_rules *rules,
                               helio_samples *train, helio_samples *test) {
  hi_file *file = hi_file_open(path);
  if (!file) return helio_error_pending();
  helio_scope scope = helio_pool_enter();
  helio_status status = (set->one_part ? hi_load_reuters : hi_load_imdb)(file, rules, train, test);
  void *results[] = {train ? train->sequences : NULL, train ? train->y : NULL, test ? test->sequences : NULL,
                     test ? test->y : NULL};
  int count = status ? 0 : 4;
  for (int i = 0; i < count; i++) {
    if (results[i]) hi_hold(results[i]);
  }
  helio_pool_leave(&scope);
  for (int i = 0; i < count; i++) {
    if (!results[i] || hi_pool_add(results[i])) continue;
    hi_drop(results[i]);
    status = helio_error_pending();
  }
  hi_drop(file);
  return status;
}

/* ---- options ---- */

/* What an option means: 0 is the default, HELIO_INTEGER_ZERO is 0, HELIO_NONE is none. */
static bool meaning(int64_t given, int64_t otherwise, int64_t *number) {
  *number = given == 0 ? otherwise : given == HELIO_INTEGER_ZERO || given == HELIO_NONE ? 0 : given;
  return given != HELIO_NONE;
}

static helio_status read_rules(const helio_load_data_options *o, hi_text_rules *rules) {
  int64_t seed;
  *rules = (hi_text_rules){.num_words = o->num_words, .skip_top = o->skip_top, .maxlen = o->maxlen};
  rules->start = meaning(o->start_char, 1, &rules->start_char);
  rules->oov = meaning(o->oov_char, 2, &rules->oov_char);
  meaning(o->index_from, 3, &rules->index_from);
  bool good = meaning(o->seed, 113, &seed) && seed >= 0 && seed <= UINT32_MAX;
  rules->seed = (uint32_t)seed;
  rules->test_split = o->test_split != 0 || signbit(o->test_split) ? fabs(o->test_split) : 0.2;
  if (!good) return hi_fail(HELIO_INVALID_ARGUMENT, "the seed %lld is not from 0 to 4294967295", (long long)o->seed);
  if (o->test_split < 0 || !(rules->test_split <= 1)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "a test_split of %g is not from 0 to 1", o->test_split);
  }
  if (o->num_words < 0 || o->skip_top < 0 || o->maxlen < 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "num_words is %d, skip_top %d, maxlen %lld; none may be negative",
                   (int)o->num_words, (int)o->skip_top, (long long)o->maxlen);
  }
  return HELIO_OK;
}

/* An option that would do nothing is an error. */
static helio_status check_options(const hi_known_set *set, const helio_load_data_options *o) {
  bool of_texts = o->num_words || o->skip_top || o->maxlen || o->start_char || o->oov_char || o->index_from || o->seed;
  bool split = o->test_split != 0 || signbit(o->test_split);
  if (!set->texts && (of_texts || split)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s has images; the options of texts mean nothing there", set->name);
  }
  if (split && !set->one_part) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s is split already; test_split means nothing there", set->name);
  }
  return HELIO_OK;
}

helio_status helio_load_data_with(const helio_load_data_options *given) {
  helio_load_data_options o;
  helio_samples train = {.x = NULL}, test = {.x = NULL};
  hi_text_rules rules;
  if (!hi_options_enter("helio_load_data", &o, sizeof o, given)) return helio_error_pending();
  const hi_known_set *set = hi_known_set_named(o.name);
  if (!set || check_options(set, &o) || read_rules(&o, &rules)) return helio_error_pending();
  if (!o.train && !o.test) return hi_fail(HELIO_INVALID_ARGUMENT, "train and test are NULL");
  char **files = hi_known_set_files(set, o.folder);
  if (!files) return helio_error_pending();
  helio_samples *first = o.train ? &train : NULL, *second = o.test ? &test : NULL;
  helio_status status =
      set->texts ? load_texts(set, files[0], &rules, first, second) : load_images(files, first, second);
  free(files);
  if (status) return status;
  if (o.train) *o.train = train;
  if (o.test) *o.test = test;
  return HELIO_OK;
}

/* ---- training and validation ---- */

static helio_samples part_of(const helio_samples *all, int64_t begin, int64_t count) {
  helio_samples part = {.y = helio_array_part(all->y, begin, count)};
  if (all->x) part.x = helio_array_part(all->x, begin, count);
  if (all->sequences) part.sequences = helio_sequences_part(all->sequences, begin, count);
  return part;
}

helio_status helio_split_samples(const helio_samples *all, double fraction, helio_samples *training,
                                 helio_samples *validation) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (!all || !all->y || !training || !validation) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s is NULL", !all || !all->y ? "all, or its y" : "what is to be written");
  }
  if (!(fraction >= 0 && fraction <= 1)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the fraction is %g, which is not in [0, 1]", fraction);
  }
  int64_t count = helio_array_shape(all->y).extent[0], kept = (int64_t)((double)count * (1 - fraction));
  helio_samples first = part_of(all, 0, kept), last = part_of(all, kept, count - kept);
  if (helio_error_pending()) return helio_error_pending();
  *training = first;
  *validation = last;
  return HELIO_OK;
}
