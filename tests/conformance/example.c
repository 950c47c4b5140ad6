/* SPDX-License-Identifier: Apache-2.0 */
/* Making examples. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

const helio_shape odd_shapes[] = {
    NO_AXES,        SHAPE(1),      SHAPE(0),    SHAPE(7),       SHAPE(67),
    SHAPE(13, 17),  SHAPE(0, 5),   SHAPE(5, 0), SHAPE(1, 1),    SHAPE(3, 1, 5),
    SHAPE(2, 0, 3), SHAPE(31, 33), SHAPE(1031), SHAPE(7, 1, 5), SHAPE(2, 1, 3, 1, 2, 1, 3, 2),
};

const int odd_shape_count = COUNT(odd_shapes);

/* Some 300 to 500 KB, or eight times as many, in primes where it is not at length. */
helio_shape large_shape(helio_type type) {
  size_t bytes = helio_type_bytes(type);
  int64_t rows = bytes == 8 ? 61 : bytes == 4 ? 113 : bytes == 2 ? 137 : 257;
  return (helio_shape)SHAPE(run.lengthy ? 8 * rows : rows, 1033);
}

example example_new(const family *f, helio_type type) {
  return (example){.family = f, .type = type};
}

void example_free(example *e) {
  for (int i = 0; i < e->input_count; i++) {
    array_free(&e->inputs[i]);
    free(e->bytes[i]);
    e->bytes[i] = NULL;
  }
}

void add_between(example *e, helio_type type, helio_shape shape, double low, double high) {
  e->inputs[e->input_count++] = array_random(type, &shape, low, high);
}

void add_input(example *e, helio_type type, helio_shape shape) {
  double low = e->family->low, high = e->family->high;
  if (low == 0 && high == 0) low = -1, high = 1;
  if (!is_float(type)) low = type == HELIO_UINT8 || type == HELIO_BOOL ? 0 : -50;
  if (!is_float(type)) high = type == HELIO_BOOL ? 1 : type == HELIO_UINT8 ? 255 : 50;
  add_between(e, type, shape, low, high);
}

void add_values(example *e, helio_type type, helio_shape shape, const double *values) {
  array *a = &e->inputs[e->input_count++];
  *a = array_new(type, &shape);
  for (int64_t i = 0; i < a->elements; i++) a->values[i] = as_type(type, values[i]);
}

void add_indices(example *e, helio_type type, int64_t count, int64_t below) {
  add_between(e, type, (helio_shape)SHAPE(count), 0, (double)(below - 1));
}

void add_absent(example *e) {
  e->inputs[e->input_count++] = (array){0};
}

void rows_of(const helio_shape *shape, int64_t *rows, int64_t *columns) {
  *rows = 1;
  *columns = shape->rank ? shape->extent[shape->rank - 1] : 1;
  for (int i = 0; i + 1 < shape->rank; i++) *rows *= shape->extent[i];
}

double activate(uint32_t activation, double x) {
  switch (activation) {
  case HELIO_RELU:
    return x > 0 || isnan(x) ? x : 0;
  case HELIO_SIGMOID:
    return 1 / (1 + exp(-x));
  case HELIO_TANH:
    return tanh(x);
  case HELIO_SOFTPLUS:
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
  case HELIO_SWISH:
    return x / (1 + exp(-x));
  case HELIO_GELU:
    return x * 0.5 * erfc(-x / sqrt(2));
  case HELIO_GELU_TANH:
    return x / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); /* 1 + tanh would cancel */
  default:
    return x;
  }
}

/* ---- in words ---- */

static int append(char *words, int length, const char *text) {
  int more = snprintf(words + length, (size_t)(1000 - length), "%s", text);
  return length + more < 1000 ? length + more : 999;
}

static int append_attributes(char *words, int length, const hi_attributes *attributes) {
  char text[100];
  size_t count = attributes->size < sizeof *attributes ? attributes->size / 4 : 0;
  for (size_t i = 2; i < count; i++) {
    uint32_t word;
    memcpy(&word, (const char *)attributes + 4 * i, sizeof word);
    snprintf(text, sizeof text, i == 2 ? " attributes %u" : " %u", word);
    length = append(words, length, text);
  }
  return length;
}

const char *example_words(const example *e, char words[1000]) {
  const hi_row *row = hi_row_of(e->family->operation);
  char text[200], shape[200];
  int length = append(words, 0, row->info.name);
  for (int i = 0; i < e->input_count; i++) {
    const array *input = &e->inputs[i];
    snprintf(text, sizeof text, " %s%s", input->values ? helio_type_name(input->type) : "absent",
             input->values ? shape_words(&input->shape, shape) : "");
    length = append(words, length, text);
  }
  if (e->wanted.rank > 0) {
    snprintf(text, sizeof text, " wanted %s", shape_words(&e->wanted, shape));
    length = append(words, length, text);
  }
  length = append_attributes(words, length, &e->attributes);
  for (int i = 0; i < row->scalars; i++) {
    bool whole = row->operation >= HELIO_OP_RANDOM_BITS && row->operation <= HELIO_OP_DROPOUT && i < 3;
    snprintf(text, sizeof text, i ? " %.17g" : " scalars %.17g",
             whole ? (double)e->scalars[i].integer : e->scalars[i].real);
    length = append(words, length, text);
  }
  return words;
}
