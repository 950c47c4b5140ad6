/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines written as words, as tests/golden/datasets/make_datasets.py has them, and elements as text. */
#ifndef HELIO_TEST_PIPELINES_H
#define HELIO_TEST_PIPELINES_H

#include "data_files.h"

enum { LIMIT = 24, ELEMENT_TEXT = 4096 };

/* ---- sources ---- */

typedef struct counted {
  int64_t count, at;
  int kind; /* 0: numbers, 1: sequences, 2: matrices and numbers */
} counted;

static inline helio_status start_counted(void *argument, void **state) {
  counted *self = malloc(sizeof *self);
  *self = *(counted *)argument;
  *state = self;
  return HELIO_OK;
}

static inline helio_status next_counted(void *state, helio_generated *element) {
  counted *self = state;
  if (self->at == self->count) return HELIO_OK;
  int64_t i = self->at++, values[64];
  helio_shape shape = HELIO_SCALAR;
  if (self->kind == 1) shape = HELIO_SHAPE(1 + i * 5 % 4);
  if (self->kind == 2) shape = HELIO_SHAPE(1 + i % 3, 2 + i % 2);
  for (int64_t k = 0; k < 64; k++) values[k] = self->kind == 2 ? i + 1 : i + k;
  element->part[element->count++] = helio_array_of(values, shape, .type = HELIO_INT64);
  if (self->kind == 2) element->part[element->count++] = helio_array_of(&i, HELIO_SCALAR, .type = HELIO_INT64);
  return HELIO_OK;
}

static inline helio_dataset *counted_dataset(int64_t count, int kind) {
  static counted arguments[512]; /* they must outlive the datasets */
  static int next;
  counted *argument = &arguments[next++ % 512];
  *argument = (counted){count, 0, kind};
  return helio_dataset_from_generator(.next = next_counted, .start = start_counted, .stop = free, .argument = argument);
}

static inline helio_dataset *sliced_dataset(int64_t count) {
  int64_t x[6 * 64], y[64];
  assert_true(count <= 64);
  for (int64_t i = 0; i < 6 * count; i++) x[i] = i;
  for (int64_t i = 0; i < count; i++) y[i] = i + 100;
  return helio_dataset_from_slices(helio_array_of(x, HELIO_SHAPE(count, 2, 3), .type = HELIO_INT64),
                                   helio_array_of(y, HELIO_SHAPE(count), .type = HELIO_INT64));
}

/* ---- transforms ---- */

static inline helio_status twice_and_one(void *argument, helio_element *element) {
  int64_t two = 2, one = 1;
  (void)argument;
  for (int i = 0; i < element->count; i++) {
    element->part[i] = helio_add(helio_mul(element->part[i], helio_constant(&two, HELIO_SCALAR, .type = HELIO_INT64)),
                                 helio_constant(&one, HELIO_SCALAR, .type = HELIO_INT64));
  }
  return HELIO_OK;
}

typedef struct stack {
  helio_dataset *datasets[8];
  int count;
} stack;

static inline helio_dataset *source_named(const char *name, int64_t count) {
  if (strcmp(name, "range") == 0) return helio_dataset_range(count);
  if (strcmp(name, "gen") == 0) return counted_dataset(count, 0);
  if (strcmp(name, "ragged") == 0) return counted_dataset(count, 1);
  if (strcmp(name, "pairs") == 0) return counted_dataset(count, 2);
  return strcmp(name, "slices") == 0 ? sliced_dataset(count) : NULL;
}

static inline helio_dataset *padded_named(const char *name, helio_dataset *d, const long long *n) {
  bool drop = strcmp(name, "padded_drop") == 0;
  if (drop || strcmp(name, "padded") == 0) return helio_dataset_padded_batch(d, n[0], .drop_remainder = drop);
  if (strcmp(name, "padded_to") == 0) {
    return helio_dataset_padded_batch(d, n[0], .shape = {HELIO_SHAPE(n[1])}, .value = {(double)n[2]});
  }
  return helio_dataset_padded_batch(d, n[0], .shape = {HELIO_SHAPE(n[1], n[2])}, .value = {(double)n[3]});
}

static inline helio_dataset *transform_named(const char *name, helio_dataset *d, const long long *n) {
#define IS(word) (strcmp(name, word) == 0)
  if (IS("batch")) return helio_dataset_batch(d, n[0]);
  if (IS("batch_drop")) return helio_dataset_batch(d, n[0], .drop_remainder = true);
  if (IS("take")) return helio_dataset_take(d, n[0]);
  if (IS("skip")) return helio_dataset_skip(d, n[0]);
  if (IS("shard")) return helio_dataset_shard(d, n[0], n[1]);
  if (IS("repeat")) return helio_dataset_repeat(d, n[0]);
  if (IS("cache")) return helio_dataset_cache(d);
  if (IS("prefetch")) return helio_dataset_prefetch(d, (int)n[0]);
  if (IS("map")) return helio_dataset_map(d, twice_and_one);
  if (IS("map_parallel")) return helio_dataset_map(d, twice_and_one, .parallel = (int)n[0]);
  if (IS("shuffle")) return helio_dataset_shuffle(d, n[0], .seed = n[1]);
  if (IS("shuffle_same")) return helio_dataset_shuffle(d, n[0], .seed = n[1], .no_reshuffle = true);
#undef IS
  return strncmp(name, "padded", 6) == 0 ? padded_named(name, d, n) : NULL;
}

static inline void carry_out(stack *s, const char *step) {
  char name[32];
  long long n[4] = {0};
  assert_true(sscanf(step, "%31s %lld %lld %lld %lld", name, &n[0], &n[1], &n[2], &n[3]) >= 1);
  helio_dataset *made = source_named(name, n[0]);
  if (made) {
    s->datasets[s->count++] = made;
    return;
  }
  if (strcmp(name, "zip") == 0) {
    s->count -= (int)n[0] - 1;
    made = helio_dataset_zip(&s->datasets[s->count - 1], (int)n[0]);
  } else if (strcmp(name, "concat") == 0) {
    s->count--;
    made = helio_dataset_concatenate(s->datasets[s->count - 1], s->datasets[s->count]);
  } else {
    made = transform_named(name, s->datasets[s->count - 1], n);
  }
  if (!made) fail_msg("%s: %s", step, helio_error_message());
  s->datasets[s->count - 1] = made;
}

static inline helio_dataset *build_pipeline(const char *pipeline) {
  char copy[500], *rest = copy;
  stack s = {.count = 0};
  snprintf(copy, sizeof copy, "%s", pipeline);
  for (char *step = strtok_r(copy, ",", &rest); step; step = strtok_r(NULL, ",", &rest)) carry_out(&s, step);
  assert_int_equal(s.count, 1);
  return s.datasets[0];
}

/* ---- elements as text ---- */

static inline void add_number(char *text, const char *format, long long number) {
  size_t length = strlen(text);
  assert_true(length < ELEMENT_TEXT - 40);
  snprintf(text + length, ELEMENT_TEXT - length, format, number);
}

static inline void element_text(const helio_element *element, char text[ELEMENT_TEXT]) {
  text[0] = 0;
  for (int p = 0; p < element->count; p++) {
    helio_shape shape = helio_tensor_shape(element->part[p]);
    int64_t count = helio_tensor_elements(element->part[p]), values[2048];
    assert_true(count <= 2048 && helio_tensor_type(element->part[p]) == HELIO_INT64);
    assert_ok(helio_tensor_read(element->part[p], values, (size_t)count * sizeof values[0]));
    if (p) strcat(text, "|");
    for (int i = 0; i < shape.rank; i++) add_number(text, i ? "x%lld" : "%lld", shape.extent[i]);
    strcat(text, ":");
    for (int64_t i = 0; i < count; i++) add_number(text, i ? ",%lld" : "%lld", values[i]);
  }
}

/* Up to LIMIT elements of an iterator, to be freed; where it has more or fails, the text says so. */
static inline char *rest_text(helio_iterator *iterator, int most) {
  char *text = NULL, one[ELEMENT_TEXT];
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  helio_element element;
  int count = 0;
  bool more = true;
  while (more) {
    HELIO_POOL {
      more = helio_next(iterator, &element);
      if (more && count < most) {
        element_text(&element, one);
        fprintf(out, "%s%s", count ? " " : "", one);
      }
    }
    if (more && count++ == most) {
      fprintf(out, "%s...", most ? " " : "");
      break;
    }
  }
  if (helio_error_take(NULL)) fprintf(out, "%serror", count ? " " : "");
  fclose(out);
  return text;
}

#endif
