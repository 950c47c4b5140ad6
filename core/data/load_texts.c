/* SPDX-License-Identifier: Apache-2.0 */
#include "data/load_texts.h"

#include <stdlib.h>

#include "data/mersenne.h"
#include "data/readers.h"
#include "data/sequences.h"
#include "runtime/error.h"

/* Texts and labels of a file, in an order of their own, from which some may be left out. */
typedef struct texts {
  const hi_text_rules *rules;
  const helio_sequences *x;
  const helio_array *y;
  int64_t *order;
  int64_t count;
} texts;

static helio_status read_texts(texts *t, hi_file *file, const char *x, const char *y) {
  t->x = hi_read_npz_sequences(file, x);
  t->y = t->x ? hi_read_npz(file, y) : NULL;
  if (!t->y) return helio_error_pending();
  if (t->y->shape.rank != 1 || !helio_type_is_integer(t->y->type) || t->y->elements != t->x->count) {
    char text[HI_SHAPE_TEXT];
    return hi_fail(HELIO_BAD_DATA, "%s: for %lld texts in %s, the labels in %s are of type %s and shape %s", file->name,
                   (long long)t->x->count, x, y, helio_type_name(t->y->type), hi_shape_text(&t->y->shape, text));
  }
  t->count = t->x->count;
  t->order = malloc(((size_t)t->count + 1) * sizeof *t->order);
  if (!t->order) return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for the order of its texts", file->name);
  for (int64_t i = 0; i < t->count; i++) t->order[i] = i;
  return HELIO_OK;
}

static int64_t text_length(const texts *t, int64_t index) {
  return t->x->starts[index + 1] - t->x->starts[index] + t->rules->start;
}

/* Keras keeps texts that are shorter than maxlen, the start counted. */
static helio_status leave_out_long(texts *t) {
  int64_t kept = 0;
  if (!t->rules->maxlen) return HELIO_OK;
  for (int64_t i = 0; i < t->count; i++) {
    if (text_length(t, t->order[i]) < t->rules->maxlen) t->order[kept++] = t->order[i];
  }
  t->count = kept;
  if (kept) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "no text is shorter than maxlen = %lld", (long long)t->rules->maxlen);
}

/* Word `place` of a text, with the start before it. */
static int64_t word(const texts *t, int64_t index, int64_t place) {
  if (t->rules->start && place == 0) return t->rules->start_char;
  return t->x->values[t->x->starts[index] + place - t->rules->start] + t->rules->index_from;
}

static int64_t largest_word(const texts *t) {
  int64_t largest = 0;
  bool first = true;
  for (int64_t i = 0; i < t->count; i++) {
    for (int64_t j = 0; j < text_length(t, t->order[i]); j++, first = false) {
      int64_t w = word(t, t->order[i], j);
      if (first || w > largest) largest = w;
    }
  }
  return largest;
}

static helio_status write_text(hi_sequences_writer *writer, const texts *t, int64_t index, int64_t num_words) {
  const hi_text_rules *rules = t->rules;
  if (!hi_sequences_begin(writer)) return helio_error_pending();
  for (int64_t i = 0; i < text_length(t, index); i++) {
    int64_t w = word(t, index, i);
    bool known = rules->skip_top <= w && w < num_words;
    if (!known && !rules->oov) continue;
    if (!known) w = rules->oov_char;
    if (w < INT32_MIN || w > INT32_MAX) {
      return hi_fail(HELIO_BAD_DATA, "word %lld of text %lld does not fit into 32 bits", (long long)w,
                     (long long)index);
    }
    if (!hi_sequences_add(writer, (int32_t)w)) return helio_error_pending();
  }
  return HELIO_OK;
}

/* The texts from `begin` to `end` as samples; nothing where none are wanted. Keras takes the largest word of all for
 * num_words where it is not given, and so makes that word an unknown one. */
static helio_status give(const texts *t, int64_t num_words, int64_t begin, int64_t end, helio_samples *samples) {
  hi_sequences_writer writer = {.starts = NULL};
  helio_status status = HELIO_OK;
  void *data;
  if (!samples) return HELIO_OK;
  for (int64_t i = begin; i < end && !status; i++) status = write_text(&writer, t, t->order[i], num_words);
  helio_sequences *sequences = status ? NULL : hi_sequences_finish(&writer);
  hi_sequences_abandon(&writer);
  helio_array *labels = sequences ? hi_array_new(HELIO_INT64, &HELIO_SHAPE(end - begin), &data) : NULL;
  if (!labels) return helio_error_pending();
  for (int64_t i = begin; i < end; i++) ((int64_t *)data)[i - begin] = hi_array_integer(t->y, t->order[i]);
  *samples = (helio_samples){.sequences = sequences, .y = labels};
  return HELIO_OK;
}

helio_status hi_load_reuters(hi_file *file, const hi_text_rules *rules, helio_samples *train, helio_samples *test) {
  texts t = {.rules = rules};
  hi_mersenne random;
  helio_status status = read_texts(&t, file, "x", "y");
  if (!status) {
    hi_mersenne_seed(&random, rules->seed);
    hi_mersenne_shuffle(&random, t.order, t.count);
    status = leave_out_long(&t);
  }
  if (!status) {
    int64_t num_words = rules->num_words ? rules->num_words : largest_word(&t);
    int64_t begin = (int64_t)((double)t.count * (1 - rules->test_split));
    status = give(&t, num_words, 0, begin, train);
    if (!status) status = give(&t, num_words, begin, t.count, test);
  }
  free(t.order);
  return status;
}

helio_status hi_load_imdb(hi_file *file, const hi_text_rules *rules, helio_samples *train, helio_samples *test) {
  texts first = {.rules = rules}, second = {.rules = rules};
  hi_mersenne random;
  hi_mersenne_seed(&random, rules->seed);
  helio_status status = read_texts(&first, file, "x_train", "y_train");
  if (!status) status = read_texts(&second, file, "x_test", "y_test");
  if (!status) {
    hi_mersenne_shuffle(&random, first.order, first.count);
    hi_mersenne_shuffle(&random, second.order, second.count);
    status = leave_out_long(&first);
  }
  if (!status) status = leave_out_long(&second);
  if (!status) {
    int64_t here = largest_word(&first), there = largest_word(&second);
    int64_t num_words = rules->num_words ? rules->num_words : here > there ? here : there;
    status = give(&first, num_words, 0, first.count, train);
    if (!status) status = give(&second, num_words, 0, second.count, test);
  }
  free(first.order);
  free(second.order);
  return status;
}
