/* SPDX-License-Identifier: Apache-2.0 */
/* Sums. float32 is added in double, which costs little beside the memory and leaves one rounding at the end; the order
 * of additions depends on the length alone. */
#ifndef CPU_VECTOR_SUM_H
#define CPU_VECTOR_SUM_H

/* name, type read, vector of it, type added in, vector of that (with as many elements) */
#define SUM_LIST(X)                                                                                                    \
  X(f32, float, vector_f32_half, double, vector_f64)                                                                   \
  X(f64, double, vector_f64, double, vector_f64)                                                                       \
  X(i32, int32_t, vector_i32_half, uint64_t, vector_u64)                                                               \
  X(i64, uint64_t, vector_u64, uint64_t, vector_u64)

/* Four running sums hide the latency of the additions. */
#define SUM_ROWS(name, element, vector, total, totals)                                                                 \
  static total sum_row_##name(const element *x, size_t count) {                                                        \
    const size_t width = sizeof(totals) / sizeof(total);                                                               \
    totals s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};                                                                     \
    size_t i = 0;                                                                                                      \
    for (; i + 4 * width <= count; i += 4 * width) {                                                                   \
      s0 += __builtin_convertvector(*(const vector *)(x + i), totals);                                                 \
      s1 += __builtin_convertvector(*(const vector *)(x + i + width), totals);                                         \
      s2 += __builtin_convertvector(*(const vector *)(x + i + 2 * width), totals);                                     \
      s3 += __builtin_convertvector(*(const vector *)(x + i + 3 * width), totals);                                     \
    }                                                                                                                  \
    total sum = 0;                                                                                                     \
    if (i > 0) {                                                                                                       \
      s0 = (s0 + s1) + (s2 + s3);                                                                                      \
      for (size_t lane = 0; lane < width; lane++) sum += s0[lane];                                                     \
    }                                                                                                                  \
    for (; i < count; i++) sum += (total)x[i];                                                                         \
    return sum;                                                                                                        \
  }                                                                                                                    \
  static void sum_rows_##name(void *target, const void *source, size_t stride, size_t rows, size_t columns) {          \
    const element *x = source;                                                                                         \
    total *sums = target;                                                                                              \
    for (size_t row = 0; row < rows; row++) sums[row] += sum_row_##name(x + row * stride, columns);                    \
  }
SUM_LIST(SUM_ROWS)
#undef SUM_ROWS

/* Eight rows at a time: the totals are loaded and stored once for them. */
#define SUM_COLUMNS(name, element, vector, total, totals)                                                              \
  static void sum_columns_##name(void *target, const void *source, size_t stride, size_t rows, size_t columns) {       \
    const size_t width = sizeof(totals) / sizeof(total);                                                               \
    const element *x = source;                                                                                         \
    total *sums = target;                                                                                              \
    for (size_t row = 0; row < rows; row += 8, x += 8 * stride) {                                                      \
      size_t some = rows - row < 8 ? rows - row : 8;                                                                   \
      size_t i = 0;                                                                                                    \
      for (; i + width <= columns; i += width) {                                                                       \
        totals sum = *(const totals *)(sums + i);                                                                      \
        for (size_t r = 0; r < some; r++)                                                                              \
          sum += __builtin_convertvector(*(const vector *)(x + r * stride + i), totals);                               \
        *(totals *)(sums + i) = sum;                                                                                   \
      }                                                                                                                \
      for (; i < columns; i++) {                                                                                       \
        for (size_t r = 0; r < some; r++) sums[i] += (total)x[r * stride + i];                                         \
      }                                                                                                                \
    }                                                                                                                  \
  }
SUM_LIST(SUM_COLUMNS)
#undef SUM_COLUMNS

static void half_sum_rows(helio_type type, double *totals, const uint16_t *x, size_t stride, size_t rows,
                          size_t columns) {
  float chunk[CHUNK];
  for (size_t row = 0; row < rows; row++) {
    for (size_t at = 0; at < columns; at += CHUNK) {
      size_t some = chunk_of(columns - at);
      half_widen(type, chunk, x + row * stride + at, some);
      sum_rows_f32(totals + row, chunk, 0, 1, some);
    }
  }
}

static void half_sum_columns(helio_type type, double *totals, const uint16_t *x, size_t stride, size_t rows,
                             size_t columns) {
  float chunk[CHUNK];
  for (size_t row = 0; row < rows; row++) {
    for (size_t at = 0; at < columns; at += CHUNK) {
      size_t some = chunk_of(columns - at);
      half_widen(type, chunk, x + row * stride + at, some);
      sum_columns_f32(totals + at, chunk, 0, 1, some);
    }
  }
}

static void sum_rows(helio_type type, void *totals, const void *x, size_t stride, size_t rows, size_t columns) {
  switch (type) {
  case HELIO_FLOAT32:
    sum_rows_f32(totals, x, stride, rows, columns);
    break;
  case HELIO_FLOAT64:
    sum_rows_f64(totals, x, stride, rows, columns);
    break;
  case HELIO_INT32:
    sum_rows_i32(totals, x, stride, rows, columns);
    break;
  case HELIO_INT64:
    sum_rows_i64(totals, x, stride, rows, columns);
    break;
  default:
    half_sum_rows(type, totals, x, stride, rows, columns);
    break;
  }
}

static void sum_columns(helio_type type, void *totals, const void *x, size_t stride, size_t rows, size_t columns) {
  switch (type) {
  case HELIO_FLOAT32:
    sum_columns_f32(totals, x, stride, rows, columns);
    break;
  case HELIO_FLOAT64:
    sum_columns_f64(totals, x, stride, rows, columns);
    break;
  case HELIO_INT32:
    sum_columns_i32(totals, x, stride, rows, columns);
    break;
  case HELIO_INT64:
    sum_columns_i64(totals, x, stride, rows, columns);
    break;
  default:
    half_sum_columns(type, totals, x, stride, rows, columns);
    break;
  }
}

#endif
