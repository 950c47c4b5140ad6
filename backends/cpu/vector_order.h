/* SPDX-License-Identifier: Apache-2.0 */
/* Places of the largest, and how many are larger. NaN counts as larger than all numbers and as equal to itself; of
 * equals the one in the lower place comes first. */
#ifndef CPU_VECTOR_ORDER_H
#define CPU_VECTOR_ORDER_H

/* name, element as it is stored, as it is compared, how it becomes that */
#define ORDER_LIST(X)                                                                                                  \
  X(f32, float, float, x)                                                                                              \
  X(f64, double, double, x)                                                                                            \
  X(f16, uint16_t, float, f16_widen_one(x))                                                                            \
  X(bf16, uint16_t, float, float_from_bits((uint32_t)x << 16))                                                         \
  X(i32, int32_t, int32_t, x)                                                                                          \
  X(i64, int64_t, int64_t, x)

#define ORDER_ABOVE(name, element, value, widened)                                                                     \
  static inline value value_##name(element x) {                                                                        \
    return widened;                                                                                                    \
  }                                                                                                                    \
  static inline bool above_##name(value a, value b) {                                                                  \
    return a > b || (a != a && b == b);                                                                                \
  }
ORDER_LIST(ORDER_ABOVE)
#undef ORDER_ABOVE

/* The first element that is `best`, or NaN if that is; there is one. */
#define FIND_FIRST(name, element, value, widened)                                                                      \
  static size_t find_##name(const element *x, value best) {                                                            \
    size_t i = 0;                                                                                                      \
    while (x[i] != best && (x[i] == x[i] || best == best)) i++;                                                        \
    return i;                                                                                                          \
  }
FIND_FIRST(f32, float, float, x)
FIND_FIRST(f64, double, double, x)
FIND_FIRST(i32, int32_t, int32_t, x)
FIND_FIRST(i64, int64_t, int64_t, x)
#undef FIND_FIRST

/* A row is read twice, the second time from the cache: for its largest, and for where that is. */
static size_t argmax_row(helio_type type, const void *x, size_t count) {
  switch (type) {
  case HELIO_FLOAT32:
    return find_f32(x, best_of_max_f32(*(const float *)x, x, count));
  case HELIO_FLOAT64:
    return find_f64(x, best_of_max_f64(*(const double *)x, x, count));
  case HELIO_INT32:
    return find_i32(x, best_of_max_i32(*(const int32_t *)x, x, count));
  default:
    return find_i64(x, best_of_max_i64(*(const int64_t *)x, x, count));
  }
}

static size_t half_argmax_row(helio_type type, const uint16_t *x, size_t count) {
  float chunk[CHUNK], best = 0;
  size_t place = 0;
  for (size_t at = 0; at < count; at += CHUNK) {
    size_t some = chunk_of(count - at);
    half_widen(type, chunk, x + at, some);
    size_t here = argmax_row(HELIO_FLOAT32, chunk, some);
    if (at > 0 && !above_f32(chunk[here], best)) continue;
    best = chunk[here];
    place = at + here;
  }
  return place;
}

static void argmax_rows(helio_type type, int64_t *places, const void *x, size_t stride, size_t rows, size_t columns) {
  for (size_t row = 0; row < rows; row++) {
    const unsigned char *from = (const unsigned char *)x + row * stride * type_bytes[type];
    places[row] = (int64_t)(is_half(type) ? half_argmax_row(type, (const uint16_t *)(const void *)from, columns)
                                          : argmax_row(type, from, columns));
  }
}

/* A column keeps its best and where that was; chunks of columns keep both near. */
#define ARGMAX_COLUMNS(name, element, value, widened)                                                                  \
  static void argmax_columns_##name(int64_t *places, const void *source, size_t stride, size_t rows, size_t columns) { \
    const element *x = source;                                                                                         \
    value best[CHUNK];                                                                                                 \
    for (size_t i = 0; i < columns; i++) {                                                                             \
      best[i] = value_##name(x[i]);                                                                                    \
      places[i] = 0;                                                                                                   \
    }                                                                                                                  \
    for (size_t row = 1; row < rows; row++) {                                                                          \
      x += stride;                                                                                                     \
      for (size_t i = 0; i < columns; i++) {                                                                           \
        value next = value_##name(x[i]);                                                                               \
        bool takes = (next > best[i]) | ((next != next) & (best[i] == best[i]));                                       \
        best[i] = takes ? next : best[i];                                                                              \
        places[i] = takes ? (int64_t)row : places[i];                                                                  \
      }                                                                                                                \
    }                                                                                                                  \
  }
ORDER_LIST(ARGMAX_COLUMNS)
#undef ARGMAX_COLUMNS

typedef void argmax_function(int64_t *places, const void *x, size_t stride, size_t rows, size_t columns);

static argmax_function *const argmax_columns_table[HELIO_INT64 + 1] = {
    [HELIO_FLOAT32] = argmax_columns_f32,   [HELIO_FLOAT64] = argmax_columns_f64, [HELIO_FLOAT16] = argmax_columns_f16,
    [HELIO_BFLOAT16] = argmax_columns_bf16, [HELIO_INT32] = argmax_columns_i32,   [HELIO_INT64] = argmax_columns_i64,
};

static void argmax_columns(helio_type type, int64_t *places, const void *x, size_t stride, size_t rows,
                           size_t columns) {
  for (size_t at = 0; at < columns; at += CHUNK)
    argmax_columns_table[type](places + at, (const unsigned char *)x + at * type_bytes[type], stride, rows,
                               chunk_of(columns - at));
}

/* `places` is a heap of the best so far with the worst on top, so most elements are compared once; in the end it is
 * taken apart from the worst. */
#define TOP_K(name, element, value, widened)                                                                           \
  static inline bool worse_##name(const element *x, int32_t a, int32_t b) {                                            \
    value of_a = value_##name(x[a]), of_b = value_##name(x[b]);                                                        \
    return above_##name(of_b, of_a) || (a > b && !above_##name(of_a, of_b));                                           \
  }                                                                                                                    \
  static void sift_##name(const element *x, int32_t *places, size_t at, size_t count) {                                \
    int32_t moved = places[at];                                                                                        \
    for (size_t child; (child = 2 * at + 1) < count; at = child) {                                                     \
      if (child + 1 < count && worse_##name(x, places[child + 1], places[child])) child++;                             \
      if (!worse_##name(x, places[child], moved)) break;                                                               \
      places[at] = places[child];                                                                                      \
    }                                                                                                                  \
    places[at] = moved;                                                                                                \
  }                                                                                                                    \
  static void top_k_##name(void *values, int32_t *places, const void *source, size_t count, size_t k) {                \
    const element *x = source;                                                                                         \
    element *y = values;                                                                                               \
    for (size_t i = 0; i < k; i++) places[i] = (int32_t)i;                                                             \
    for (size_t i = k / 2; i-- > 0;) sift_##name(x, places, i, k);                                                     \
    value worst_value = value_##name(x[places[0]]);                                                                    \
    for (size_t i = k; i < count; i++) {                                                                               \
      if (!above_##name(value_##name(x[i]), worst_value)) continue;                                                    \
      places[0] = (int32_t)i;                                                                                          \
      sift_##name(x, places, 0, k);                                                                                    \
      worst_value = value_##name(x[places[0]]);                                                                        \
    }                                                                                                                  \
    for (size_t left = k; left-- > 1;) {                                                                               \
      int32_t worst = places[0];                                                                                       \
      places[0] = places[left];                                                                                        \
      places[left] = worst;                                                                                            \
      sift_##name(x, places, 0, left);                                                                                 \
    }                                                                                                                  \
    for (size_t i = 0; i < k; i++) y[i] = x[places[i]];                                                                \
  }
ORDER_LIST(TOP_K)
#undef TOP_K

typedef void top_k_function(void *values, int32_t *places, const void *x, size_t count, size_t k);

static top_k_function *const top_k_table[HELIO_INT64 + 1] = {
    [HELIO_FLOAT32] = top_k_f32,   [HELIO_FLOAT64] = top_k_f64, [HELIO_FLOAT16] = top_k_f16,
    [HELIO_BFLOAT16] = top_k_bf16, [HELIO_INT32] = top_k_i32,   [HELIO_INT64] = top_k_i64,
};

static void top_k(helio_type type, void *values, int32_t *places, const void *x, size_t count, size_t k) {
  top_k_table[type](values, places, x, count, k);
}

static size_t f32_count_above(const float *x, size_t count, float limit) {
  size_t above = 0;
  for (size_t i = 0; i < count; i++) above += x[i] > limit;
  return above;
}

static size_t f64_count_above(const double *x, size_t count, double limit) {
  size_t above = 0;
  for (size_t i = 0; i < count; i++) above += x[i] > limit;
  return above;
}

/* Every type but float64 fits into float32, and so does a limit that is one of its elements. */
static size_t count_above(helio_type type, const void *x, size_t count, double limit) {
  if (type == HELIO_FLOAT64) return f64_count_above(x, count, limit);
  if (type == HELIO_FLOAT32) return f32_count_above(x, count, (float)limit);
  float chunk[CHUNK];
  size_t above = 0;
  for (size_t at = 0; at < count; at += CHUNK) {
    size_t some = chunk_of(count - at);
    half_widen(type, chunk, (const uint16_t *)x + at, some);
    above += f32_count_above(chunk, some, (float)limit);
  }
  return above;
}

#endif
