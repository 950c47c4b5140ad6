/* SPDX-License-Identifier: Apache-2.0 */
/* The largest and the smallest. NaN wins over all numbers; of equals the first stays. */
#ifndef CPU_VECTOR_EXTREME_H
#define CPU_VECTOR_EXTREME_H

/* name, element, vector, vector of the same size for masks, how a better element compares */
#define EXTREME_LIST(X)                                                                                                \
  X(max_f32, float, vector_f32, vector_i32, >)                                                                         \
  X(max_f64, double, vector_f64, vector_i64, >)                                                                        \
  X(max_i32, int32_t, vector_i32, vector_i32, >)                                                                       \
  X(max_i64, int64_t, vector_i64, vector_i64, >)                                                                       \
  X(min_f32, float, vector_f32, vector_i32, <)                                                                         \
  X(min_f64, double, vector_f64, vector_i64, <)                                                                        \
  X(min_i32, int32_t, vector_i32, vector_i32, <)                                                                       \
  X(min_i64, int64_t, vector_i64, vector_i64, <)

/* A NaN that was taken is kept, for nothing compares with it. */
#define EXTREME_TAKE(name, element, vector, mask, better)                                                              \
  static inline vector take_vector_##name(vector best, vector x) {                                                     \
    mask takes = (mask)(x better best) | (mask)(x != x);                                                               \
    return (vector)(((mask)x & takes) | ((mask)best & ~takes));                                                        \
  }                                                                                                                    \
  static inline element take_##name(element best, element x) {                                                         \
    return x better best || x != x ? x : best;                                                                         \
  }
EXTREME_LIST(EXTREME_TAKE)
#undef EXTREME_TAKE

#define EXTREME_ROWS(name, element, vector, mask, better)                                                              \
  static element best_of_##name(element best, const element *x, size_t count) {                                        \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    size_t i = 0;                                                                                                      \
    if (count >= 4 * width) {                                                                                          \
      vector b0 = *(const vector *)x, b1 = *(const vector *)(x + width), b2 = *(const vector *)(x + 2 * width),        \
             b3 = *(const vector *)(x + 3 * width);                                                                    \
      for (i = 4 * width; i + 4 * width <= count; i += 4 * width) {                                                    \
        b0 = take_vector_##name(b0, *(const vector *)(x + i));                                                         \
        b1 = take_vector_##name(b1, *(const vector *)(x + i + width));                                                 \
        b2 = take_vector_##name(b2, *(const vector *)(x + i + 2 * width));                                             \
        b3 = take_vector_##name(b3, *(const vector *)(x + i + 3 * width));                                             \
      }                                                                                                                \
      b0 = take_vector_##name(take_vector_##name(b0, b1), take_vector_##name(b2, b3));                                 \
      for (size_t lane = 0; lane < width; lane++) best = take_##name(best, b0[lane]);                                  \
    }                                                                                                                  \
    for (; i < count; i++) best = take_##name(best, x[i]);                                                             \
    return best;                                                                                                       \
  }                                                                                                                    \
  static void rows_##name(void *target, const void *source, size_t stride, size_t rows, size_t columns) {              \
    const element *x = source;                                                                                         \
    element *best = target;                                                                                            \
    for (size_t row = 0; row < rows; row++) best[row] = best_of_##name(best[row], x + row * stride, columns);          \
  }
EXTREME_LIST(EXTREME_ROWS)
#undef EXTREME_ROWS

/* Eight rows at a time, as sums do. */
#define EXTREME_COLUMNS(name, element, vector, mask, better)                                                           \
  static void columns_##name(void *target, const void *source, size_t stride, size_t rows, size_t columns) {           \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    const element *x = source;                                                                                         \
    element *best = target;                                                                                            \
    for (size_t row = 0; row < rows; row += 8, x += 8 * stride) {                                                      \
      size_t some = rows - row < 8 ? rows - row : 8;                                                                   \
      size_t i = 0;                                                                                                    \
      for (; i + width <= columns; i += width) {                                                                       \
        vector of_column = *(const vector *)(best + i);                                                                \
        for (size_t r = 0; r < some; r++)                                                                              \
          of_column = take_vector_##name(of_column, *(const vector *)(x + r * stride + i));                            \
        *(vector *)(best + i) = of_column;                                                                             \
      }                                                                                                                \
      for (; i < columns; i++) {                                                                                       \
        for (size_t r = 0; r < some; r++) best[i] = take_##name(best[i], x[r * stride + i]);                           \
      }                                                                                                                \
    }                                                                                                                  \
  }
EXTREME_LIST(EXTREME_COLUMNS)
#undef EXTREME_COLUMNS

typedef void extreme_function(void *best, const void *x, size_t stride, size_t rows, size_t columns);

/* By: is the largest wanted, type. */
static extreme_function *const extreme_rows_table[2][HELIO_INT64 + 1] = {
    {[HELIO_FLOAT32] = rows_min_f32,
     [HELIO_FLOAT64] = rows_min_f64,
     [HELIO_INT32] = rows_min_i32,
     [HELIO_INT64] = rows_min_i64},
    {[HELIO_FLOAT32] = rows_max_f32,
     [HELIO_FLOAT64] = rows_max_f64,
     [HELIO_INT32] = rows_max_i32,
     [HELIO_INT64] = rows_max_i64},
};

static extreme_function *const extreme_columns_table[2][HELIO_INT64 + 1] = {
    {[HELIO_FLOAT32] = columns_min_f32,
     [HELIO_FLOAT64] = columns_min_f64,
     [HELIO_INT32] = columns_min_i32,
     [HELIO_INT64] = columns_min_i64},
    {[HELIO_FLOAT32] = columns_max_f32,
     [HELIO_FLOAT64] = columns_max_f64,
     [HELIO_INT32] = columns_max_i32,
     [HELIO_INT64] = columns_max_i64},
};

static void half_extreme_rows(bool largest, helio_type type, float *best, const uint16_t *x, size_t stride, size_t rows,
                              size_t columns) {
  float chunk[CHUNK];
  for (size_t row = 0; row < rows; row++) {
    for (size_t at = 0; at < columns; at += CHUNK) {
      size_t some = chunk_of(columns - at);
      half_widen(type, chunk, x + row * stride + at, some);
      extreme_rows_table[largest][HELIO_FLOAT32](best + row, chunk, 0, 1, some);
    }
  }
}

static void half_extreme_columns(bool largest, helio_type type, float *best, const uint16_t *x, size_t stride,
                                 size_t rows, size_t columns) {
  float chunk[CHUNK];
  for (size_t row = 0; row < rows; row++) {
    for (size_t at = 0; at < columns; at += CHUNK) {
      size_t some = chunk_of(columns - at);
      half_widen(type, chunk, x + row * stride + at, some);
      extreme_columns_table[largest][HELIO_FLOAT32](best + at, chunk, 0, 1, some);
    }
  }
}

static void extreme_rows(bool largest, helio_type type, void *best, const void *x, size_t stride, size_t rows,
                         size_t columns) {
  if (is_half(type)) {
    half_extreme_rows(largest, type, best, x, stride, rows, columns);
  } else {
    extreme_rows_table[largest][type](best, x, stride, rows, columns);
  }
}

static void extreme_columns(bool largest, helio_type type, void *best, const void *x, size_t stride, size_t rows,
                            size_t columns) {
  if (is_half(type)) {
    half_extreme_columns(largest, type, best, x, stride, rows, columns);
  } else {
    extreme_columns_table[largest][type](best, x, stride, rows, columns);
  }
}

#endif
