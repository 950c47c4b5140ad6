/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and shapes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/tensor.h"

const char *helio_type_name(helio_type type) {
  switch (type) {
#define NAME(symbol, value, text, bytes)                                                                               \
  case HELIO_##symbol:                                                                                                 \
    return text;
    HELIO_TYPE_LIST(NAME)
#undef NAME
  }
  return "unknown type";
}

size_t helio_type_bytes(helio_type type) {
  switch (type) {
#define BYTES(symbol, value, text, bytes)                                                                              \
  case HELIO_##symbol:                                                                                                 \
    return bytes;
    HELIO_TYPE_LIST(BYTES)
#undef BYTES
  }
  return 0;
}

bool hi_type_valid(helio_type type) {
  return helio_type_bytes(type) != 0;
}

bool hi_type_is_float(helio_type type) {
  return type == HELIO_FLOAT32 || type == HELIO_FLOAT64 || type == HELIO_FLOAT16 || type == HELIO_BFLOAT16;
}

bool helio_type_is_integer(helio_type type) {
  return hi_type_valid(type) && !hi_type_is_float(type);
}

/* Rounds to the nearest float16, ties to even, without passing through float32. */
static uint16_t half_of(double value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double magnitude = fabs(value);
  if (isnan(value)) return sign | 0x7E00;
  if (magnitude >= 65520) return sign | 0x7C00;
  if (magnitude < 0x1p-14) return sign | (uint16_t)nearbyint(magnitude * 0x1p24); /* subnormal, or the least normal */
  int exponent;
  double fraction = frexp(magnitude, &exponent); /* 0.5 … 1 */
  uint32_t significand = (uint32_t)nearbyint(fraction * 2048);
  return sign | (uint16_t)(((uint32_t)(exponent + 13) << 10) + significand);
}

static double value_of_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, significand = bits & 1023;
  double magnitude = exponent == 31  ? (significand ? NAN : INFINITY)
                     : exponent == 0 ? ldexp(significand, -24)
                                     : ldexp(significand + 1024, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/* Likewise to bfloat16: through a float32 that is rounded to odd, which a second rounding cannot mislead. */
static uint16_t bfloat_of(double value) {
  float single = (float)value;
  uint32_t bits;
  if (isnan(value)) return signbit(value) ? 0xFFC0 : 0x7FC0;
  memcpy(&bits, &single, sizeof bits);
  if ((double)single != value && !isinf(single)) {
    if (fabs((double)single) > fabs(value)) bits--; /* towards zero, then the last bit says that there was more */
    bits |= 1;
  }
  return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static double value_of_bfloat(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float single;
  memcpy(&single, &wide, sizeof single);
  return single;
}

/* Towards zero, to the nearest end where it does not fit, NaN to 0. */
static int64_t integer_of(double value, double low, double high) {
  if (isnan(value)) return 0;
  if (value <= low) return (int64_t)low;
  if (value >= high) return high >= 0x1p63 ? INT64_MAX : (int64_t)high;
  return (int64_t)value;
}

void hi_type_encode(helio_type type, double value, void *bytes) {
  float single = (float)value;
  uint16_t half = type == HELIO_FLOAT16 ? half_of(value) : bfloat_of(value);
  int32_t i32 = (int32_t)integer_of(value, INT32_MIN, INT32_MAX);
  int64_t i64 = integer_of(value, -0x1p63, 0x1p63);
  uint8_t small = type == HELIO_BOOL ? value != 0 : (uint8_t)integer_of(value, 0, UINT8_MAX);
  const void *source = NULL;
  switch (type) {
  case HELIO_FLOAT32:
    source = &single;
    break;
  case HELIO_FLOAT64:
    source = &value;
    break;
  case HELIO_FLOAT16:
  case HELIO_BFLOAT16:
    source = &half;
    break;
  case HELIO_INT32:
    source = &i32;
    break;
  case HELIO_INT64:
    source = &i64;
    break;
  case HELIO_UINT8:
  case HELIO_BOOL:
    source = &small;
    break;
  }
  memcpy(bytes, source, helio_type_bytes(type));
}

double hi_type_decode(helio_type type, const void *bytes) {
  union {
    float f32;
    double f64;
    uint16_t u16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
  } value;
  memcpy(&value, bytes, helio_type_bytes(type));
  switch (type) {
  case HELIO_FLOAT32:
    return value.f32;
  case HELIO_FLOAT64:
    return value.f64;
  case HELIO_FLOAT16:
    return value_of_half(value.u16);
  case HELIO_BFLOAT16:
    return value_of_bfloat(value.u16);
  case HELIO_INT32:
    return value.i32;
  case HELIO_INT64:
    return (double)value.i64;
  case HELIO_UINT8:
  case HELIO_BOOL:
    return value.u8;
  }
  return NAN;
}

/* No axis is longer than memory could be, also where another is 0: so sums and products of a few extents fit. */
bool hi_shape_elements(const helio_shape *shape, int64_t *elements) {
  int64_t count = 1;
  bool overflow = false;
  if (shape->rank < 0 || shape->rank > HELIO_MAX_RANK) return false;
  for (int i = 0; i < shape->rank; i++) {
    if (shape->extent[i] < 0 || shape->extent[i] > INT64_C(1) << 48) return false;
    if (shape->extent[i] == 0) overflow = false, count = 0;
    if (count != 0 && __builtin_mul_overflow(count, shape->extent[i], &count)) overflow = true, count = 1;
  }
  *elements = count;
  return !overflow;
}

bool hi_shape_bytes(const helio_shape *shape, helio_type type, size_t *bytes) {
  int64_t elements;
  return hi_shape_elements(shape, &elements) &&
         !__builtin_mul_overflow((size_t)elements, helio_type_bytes(type), bytes) && *bytes <= PTRDIFF_MAX;
}

bool hi_shape_complete(helio_shape *shape, int64_t elements) {
  helio_shape known = *shape;
  int64_t rest;
  int open = -1;
  if (shape->rank < 0 || shape->rank > HELIO_MAX_RANK) return false;
  for (int i = 0; i < shape->rank; i++) {
    if (shape->extent[i] != -1) continue;
    if (open >= 0) return false;
    open = i;
    known.extent[i] = 1;
  }
  if (!hi_shape_elements(&known, &rest)) return false;
  if (open < 0) return rest == elements;
  if (rest == 0 || elements % rest != 0) return false;
  shape->extent[open] = elements / rest;
  return true;
}

bool hi_shape_equal(const helio_shape *a, const helio_shape *b) {
  return a->rank == b->rank && memcmp(a->extent, b->extent, (size_t)a->rank * sizeof a->extent[0]) == 0;
}

const char *hi_shape_text(const helio_shape *shape, char text[HI_SHAPE_TEXT]) {
  int length = snprintf(text, HI_SHAPE_TEXT, "(");
  for (int i = 0; i < shape->rank && i < HELIO_MAX_RANK; i++) {
    length +=
        snprintf(text + length, (size_t)(HI_SHAPE_TEXT - length), "%s%lld", i ? ", " : "", (long long)shape->extent[i]);
  }
  snprintf(text + length, (size_t)(HI_SHAPE_TEXT - length), shape->rank == 1 ? ",)" : ")");
  return text;
}
