/* SPDX-License-Identifier: Apache-2.0 */
/* Casts between all types. Six native types convert directly into each other; the halves go through float32. */
#ifndef CPU_VECTOR_CAST_H
#define CPU_VECTOR_CAST_H

/* Where a float does not fit an integer C leaves the result open; ours is the nearest integer, and 0 for NaN. The
 * limits are powers of two, which floats hold exactly, and every float below one fits. */
static inline int32_t f64_to_i32(double x) {
  return x != x ? 0 : x >= 0x1p31 ? INT32_MAX : x < -0x1p31 ? INT32_MIN : (int32_t)x;
}
static inline int64_t f64_to_i64(double x) {
  return x != x ? 0 : x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : (int64_t)x;
}
static inline uint8_t f64_to_u8(double x) {
  return x != x ? 0 : x >= 0x1p8 ? 255 : x <= 0.0 ? 0 : (uint8_t)(int32_t)x;
}
static inline int32_t f32_to_i32(float x) {
  return x != x ? 0 : x >= 0x1p31f ? INT32_MAX : x < -0x1p31f ? INT32_MIN : (int32_t)x;
}
static inline int64_t f32_to_i64(float x) {
  return x != x ? 0 : x >= 0x1p63f ? INT64_MAX : x < -0x1p63f ? INT64_MIN : (int64_t)x;
}
static inline uint8_t f32_to_u8(float x) {
  return x != x ? 0 : x >= 0x1p8f ? 255 : x <= 0.0f ? 0 : (uint8_t)(int32_t)x;
}

/* Every direct cast: name, type read, type written, the value made of x. Bool is a byte that counts as 1 if it is not
 * 0. */
#define CAST_LIST(X)                                                                                                   \
  X(f32_f64, float, double, (double)x)                                                                                 \
  X(f32_i32, float, int32_t, f32_to_i32(x))                                                                            \
  X(f32_i64, float, int64_t, f32_to_i64(x))                                                                            \
  X(f32_u8, float, uint8_t, f32_to_u8(x))                                                                              \
  X(f32_bool, float, uint8_t, x != 0.0f)                                                                               \
  X(f64_f32, double, float, (float)x)                                                                                  \
  X(f64_i32, double, int32_t, f64_to_i32(x))                                                                           \
  X(f64_i64, double, int64_t, f64_to_i64(x))                                                                           \
  X(f64_u8, double, uint8_t, f64_to_u8(x))                                                                             \
  X(f64_bool, double, uint8_t, x != 0.0)                                                                               \
  X(i32_f32, int32_t, float, (float)x)                                                                                 \
  X(i32_f64, int32_t, double, (double)x)                                                                               \
  X(i32_i64, int32_t, int64_t, (int64_t)x)                                                                             \
  X(i32_u8, int32_t, uint8_t, (uint8_t)((uint32_t)x & 255u))                                                           \
  X(i32_bool, int32_t, uint8_t, x != 0)                                                                                \
  X(i64_f32, int64_t, float, (float)x)                                                                                 \
  X(i64_f64, int64_t, double, (double)x)                                                                               \
  X(i64_i32, int64_t, int32_t, (int32_t)(uint32_t)((uint64_t)x & UINT32_MAX))                                          \
  X(i64_u8, int64_t, uint8_t, (uint8_t)((uint64_t)x & 255u))                                                           \
  X(i64_bool, int64_t, uint8_t, x != 0)                                                                                \
  X(u8_f32, uint8_t, float, (float)x)                                                                                  \
  X(u8_f64, uint8_t, double, (double)x)                                                                                \
  X(u8_i32, uint8_t, int32_t, (int32_t)x)                                                                              \
  X(u8_i64, uint8_t, int64_t, (int64_t)x)                                                                              \
  X(u8_bool, uint8_t, uint8_t, x != 0)                                                                                 \
  X(bool_f32, uint8_t, float, (float)(x != 0))                                                                         \
  X(bool_f64, uint8_t, double, (double)(x != 0))                                                                       \
  X(bool_i32, uint8_t, int32_t, (int32_t)(x != 0))                                                                     \
  X(bool_i64, uint8_t, int64_t, (int64_t)(x != 0))

typedef void cast_function(void *y, const void *x, size_t count);

#define CAST_FUNCTION(name, from, to, value)                                                                           \
  static void cast_##name(void *target, const void *source, size_t count) {                                            \
    const from *xs = source;                                                                                           \
    to *ys = target;                                                                                                   \
    for (size_t i = 0; i < count; i++) {                                                                               \
      from x = xs[i];                                                                                                  \
      ys[i] = (to)(value);                                                                                             \
    }                                                                                                                  \
  }
CAST_LIST(CAST_FUNCTION)
#undef CAST_FUNCTION

/* By type read, then type written. NULL where the two are equal. */
static cast_function *const cast_table[HELIO_BOOL + 1][HELIO_BOOL + 1] = {
    [HELIO_FLOAT32] = {[HELIO_FLOAT64] = cast_f32_f64,
                       [HELIO_INT32] = cast_f32_i32,
                       [HELIO_INT64] = cast_f32_i64,
                       [HELIO_UINT8] = cast_f32_u8,
                       [HELIO_BOOL] = cast_f32_bool},
    [HELIO_FLOAT64] = {[HELIO_FLOAT32] = cast_f64_f32,
                       [HELIO_INT32] = cast_f64_i32,
                       [HELIO_INT64] = cast_f64_i64,
                       [HELIO_UINT8] = cast_f64_u8,
                       [HELIO_BOOL] = cast_f64_bool},
    [HELIO_INT32] = {[HELIO_FLOAT32] = cast_i32_f32,
                     [HELIO_FLOAT64] = cast_i32_f64,
                     [HELIO_INT64] = cast_i32_i64,
                     [HELIO_UINT8] = cast_i32_u8,
                     [HELIO_BOOL] = cast_i32_bool},
    [HELIO_INT64] = {[HELIO_FLOAT32] = cast_i64_f32,
                     [HELIO_FLOAT64] = cast_i64_f64,
                     [HELIO_INT32] = cast_i64_i32,
                     [HELIO_UINT8] = cast_i64_u8,
                     [HELIO_BOOL] = cast_i64_bool},
    [HELIO_UINT8] = {[HELIO_FLOAT32] = cast_u8_f32,
                     [HELIO_FLOAT64] = cast_u8_f64,
                     [HELIO_INT32] = cast_u8_i32,
                     [HELIO_INT64] = cast_u8_i64,
                     [HELIO_BOOL] = cast_u8_bool},
    /* To uint8 a bool is what it is to bool: 0 or 1, which the uint8 row does. */
    [HELIO_BOOL] = {[HELIO_FLOAT32] = cast_bool_f32,
                    [HELIO_FLOAT64] = cast_bool_f64,
                    [HELIO_INT32] = cast_bool_i32,
                    [HELIO_INT64] = cast_bool_i64,
                    [HELIO_UINT8] = cast_u8_bool},
};

static const uint8_t type_bytes[HELIO_BOOL + 1] = {
#define TYPE_BYTES(name, value, text, bytes) [HELIO_##name] = bytes,
    HELIO_TYPE_LIST(TYPE_BYTES)
#undef TYPE_BYTES
};

/* float64 to float32 rounding to odd: whatever is lost leaves a 1 in the last place, so that rounding the result again,
 * to a half, gives what rounding once would have given. */
static void f64_to_f32_odd(float *y, const double *x, size_t count) {
  for (size_t i = 0; i < count; i++) {
    float nearest = (float)x[i];
    double back = (double)nearest;
    uint32_t bits = bits_from_float(nearest);
    double distance = back < 0 || (back == 0 && x[i] < 0) ? x[i] - back : back - x[i];
    bool inexact = back != x[i] && x[i] == x[i];
    if (inexact) bits = (bits - (distance > 0 ? 1u : 0u)) | 1u;
    y[i] = float_from_bits(bits);
  }
}

static void cast_direct(helio_type to, helio_type from, void *y, const void *x, size_t count) {
  if (to == from) {
    if (count > 0 && y != x) memcpy(y, x, count * type_bytes[to]);
  } else {
    cast_table[from][to](y, x, count);
  }
}

/* One of the two types is a half: float32 stands between them. */
static void cast_half(helio_type to, helio_type from, void *y, const void *x, size_t count) {
  float between[CHUNK];
  for (size_t at = 0; at < count; at += CHUNK) {
    size_t some = chunk_of(count - at);
    const unsigned char *source = (const unsigned char *)x + at * type_bytes[from];
    unsigned char *target = (unsigned char *)y + at * type_bytes[to];
    if (is_half(from)) {
      half_widen(from, between, (const uint16_t *)(const void *)source, some);
    } else if (from == HELIO_FLOAT64) {
      f64_to_f32_odd(between, (const double *)(const void *)source, some);
    } else {
      cast_direct(HELIO_FLOAT32, from, between, source, some);
    }
    if (is_half(to)) {
      half_narrow(to, (uint16_t *)(void *)target, between, some);
    } else {
      cast_direct(to, HELIO_FLOAT32, target, between, some);
    }
  }
}

static void cast(helio_type to, helio_type from, void *y, const void *x, size_t count) {
  if (to != from && (is_half(to) || is_half(from))) {
    cast_half(to, from, y, x, count);
  } else {
    cast_direct(to, from, y, x, count);
  }
}

#endif
