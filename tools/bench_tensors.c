/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench ops, the tensors: made on the host, so that a device needs no kernel to be measured, and with elements
 * that differ, since comparisons, choices and powers may be faster on equal ones. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_rows.h"
#include "output.h"

static void make_reals(float *data, int64_t count, float low, uint64_t state) {
  float width = low < 0 ? 2 : 1;
  for (int64_t i = 0; i < count; i++) data[i] = low + width * (float)(bench_draw(&state) >> 8) * 0x1p-24f;
}

static void make_bytes(uint8_t *data, int64_t count, uint32_t below, uint64_t state) {
  for (int64_t i = 0; i < count; i++) data[i] = (uint8_t)((uint64_t)bench_draw(&state) * below >> 32);
}

/* 0 … count − 1 in no order. */
static void make_order(int32_t *data, int64_t count, uint64_t state) {
  for (int64_t i = 0; i < count; i++) {
    int64_t other = bench_draw(&state) % (i + 1);
    if (other < i) data[i] = data[other];
    data[other] = (int32_t)i;
  }
}

static void make_indices(int32_t *data, int64_t count, char letter, uint64_t state) {
  if (letter == 'i' || letter == 'd') make_order(data, count, state);
  for (int64_t i = 0; i < count; i++) {
    if (letter == 'd') data[i] = data[i] / 2 * 2;
    if (letter == 'j') data[i] = (int32_t)(4 * i);
    if (letter == 'l') data[i] = (int32_t)(bench_draw(&state) % BENCH_COLUMNS);
  }
}

static helio_type type_of(char letter) {
  if (letter == 'c') return HELIO_BOOL;
  if (letter == 'w') return HELIO_UINT8;
  return strchr("idjl", letter) ? HELIO_INT32 : HELIO_FLOAT32;
}

helio_tensor *bench_tensor(char letter, helio_shape shape) {
  char kind = (char)tolower((unsigned char)letter);
  uint64_t state = (uint64_t)kind;
  int64_t count = 1;
  for (int i = 0; i < shape.rank; i++) count *= shape.extent[i];
  helio_type type = type_of(kind);
  void *data = malloc((size_t)count * helio_type_bytes(type));
  if (!data) output_out_of_memory();
  if (kind == 'z') {
    memset(data, 0, (size_t)count * sizeof(float));
  } else if (type == HELIO_FLOAT32) {
    make_reals(data, count, strchr("nprs", kind) ? 0.5f : -1.0f, state);
  } else if (type == HELIO_INT32) {
    make_indices(data, count, kind, state);
  } else {
    make_bytes(data, count, type == HELIO_BOOL ? 2 : 4, state);
  }
  helio_tensor *tensor = helio_constant(data, shape, .type = type);
  free(data);
  return tensor;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Matrices
 */

helio_shape bench_matrix_shape(const bench_row *row, int size, char letter) {
  (void)row;
  switch (letter) {
  case 'i': /* one element for each row */
  case 'd':
  case 'l':
  case 'n':
    return HELIO_SHAPE(size);
  case 'r': /* one for each column */
    return HELIO_SHAPE(BENCH_COLUMNS);
  case 'h': /* half of the columns */
    return HELIO_SHAPE(size, BENCH_COLUMNS / 2);
  case 'q': /* a quarter of the rows, their squares, and their numbers */
  case 's':
    return HELIO_SHAPE((size + 3) / 4, BENCH_COLUMNS);
  case 'j':
    return HELIO_SHAPE((size + 3) / 4);
  case 'u': /* a border */
    return HELIO_SHAPE(1, 1);
  case 't':
    return HELIO_SHAPE(10);
  default:
    return HELIO_SHAPE(size, BENCH_COLUMNS);
  }
}

void bench_matrix_describe(const bench_row *row, int size, bench_case *one) {
  snprintf(one->label, sizeof one->label, "%s%dx%d", row->variant, size, BENCH_COLUMNS);
  one->elements = (double)size * BENCH_COLUMNS;
}
