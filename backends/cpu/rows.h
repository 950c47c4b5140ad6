/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations on numbered rows share. */
#ifndef CPU_ROWS_H
#define CPU_ROWS_H

#include "cpu.h"

/* Indices of either type. */
typedef struct cpu_indices {
  const void *data;
  helio_type type;
  size_t count;
} cpu_indices;

static inline int64_t cpu_index_at(const cpu_indices *indices, size_t i) {
  return indices->type == HELIO_INT64 ? ((const int64_t *)indices->data)[i] : ((const int32_t *)indices->data)[i];
}

/* Is it the number of one of `rows` rows? */
static inline bool cpu_index_within(int64_t index, size_t rows) {
  return index >= 0 && (uint64_t)index < rows;
}

/* Rows of the first axis and elements of each. */
static inline size_t cpu_row_elements(const helio_argument *x) {
  size_t count = 1;
  for (uint32_t i = 1; i < x->rank; i++) count *= (size_t)x->extent[i];
  return count;
}

/* Work on rows that meet in others is cut so that no two parts write to one element: by columns where rows are long
 * enough, which shares the work out evenly whatever the indices are, else by the rows that are written. */
typedef struct cpu_row_cut {
  cpu_range rows, columns;
} cpu_row_cut;

/* Bytes of a row that one part should have at least. */
#define CPU_CUT_BYTES 256

static inline cpu_row_cut cpu_cut_rows(size_t rows, size_t columns, size_t element, unsigned part, unsigned parts) {
  if (columns * element >= (size_t)CPU_CUT_BYTES * parts)
    return (cpu_row_cut){{0, rows}, cpu_part_range(columns, CPU_ALIGNMENT / element, part, parts)};
  return (cpu_row_cut){cpu_part_range(rows, 1, part, parts), {0, columns}};
}

#endif
