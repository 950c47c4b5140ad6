/* SPDX-License-Identifier: Apache-2.0 */
/* What the normalizations share: a tensor as rows of channels, and halves as float32. */
#ifndef CPU_NORMALIZE_H
#define CPU_NORMALIZE_H

#include "cpu.h"

/* Elements of a row that are worked on at a time, where they have to lie on the stack. */
#define CPU_NORMALIZE_BLOCK 512

/* A sum over rows is cut into pieces of about so many elements, at most so many. */
#define CPU_NORMALIZE_PIECE  ((size_t)64 << 10)
#define CPU_NORMALIZE_PIECES 64

/* A tensor of rows of channels. Short rows are seen several at a time, as lines. */
typedef struct cpu_channels {
  size_t rows, channels;
  size_t fold;  /* rows in a line */
  size_t width; /* elements of a line */
  size_t lines; /* that are whole */
  size_t rest;  /* elements behind them */
} cpu_channels;

/* Lines of at least `width` elements, if rows are shorter than half of that. */
static inline cpu_channels cpu_channels_of(const helio_argument *x, size_t width) {
  cpu_channels c = {.rows = 1, .channels = (size_t)x->extent[x->rank - 1], .fold = 1};
  for (uint32_t i = 0; i + 1 < x->rank; i++) c.rows *= (size_t)x->extent[i];
  if (c.channels > 0 && c.channels <= width / 2) c.fold = width / c.channels;
  if (c.fold > c.rows) c.fold = c.rows < 1 ? 1 : c.rows;
  c.width = c.channels * c.fold;
  c.lines = c.rows / c.fold;
  c.rest = c.rows % c.fold * c.channels;
  return c;
}

static inline helio_type cpu_compute_type(helio_type type) {
  return type == HELIO_FLOAT64 ? HELIO_FLOAT64 : HELIO_FLOAT32;
}

/* `count` elements, at most a block, as they are computed with: where they are, or widened into `block`. */
static inline const void *cpu_widened(const cpu_vector_table *vector, helio_type type, float *block, const void *x,
                                      size_t count) {
  if (type == HELIO_FLOAT32 || type == HELIO_FLOAT64) return x;
  vector->cast(HELIO_FLOAT32, type, block, x, count);
  return block;
}

/* Is it a list of one element for each channel of x, or absent? */
static inline bool cpu_per_channel(const helio_argument *list, const helio_argument *x) {
  return list == NULL || (list->rank == 1 && list->extent[0] == x->extent[x->rank - 1]);
}

#endif
