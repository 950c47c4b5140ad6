/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of doubles that stand for tensors of any type: conversion, generation, comparison. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

/* ---- shapes ---- */

int64_t shape_elements(const helio_shape *shape) {
  int64_t elements = 1;
  for (int i = 0; i < shape->rank; i++) elements *= shape->extent[i];
  return elements;
}

bool shape_same(const helio_shape *a, const helio_shape *b) {
  for (int i = 0; i < a->rank && a->rank == b->rank; i++) {
    if (a->extent[i] != b->extent[i]) return false;
  }
  return a->rank == b->rank;
}

const char *shape_words(const helio_shape *shape, char words[200]) {
  int length = snprintf(words, 200, "(");
  for (int i = 0; i < shape->rank && length < 180; i++) {
    length += snprintf(words + length, (size_t)(200 - length), i ? ", %lld" : "%lld", (long long)shape->extent[i]);
  }
  snprintf(words + length, (size_t)(200 - length), ")");
  return words;
}

int64_t broadcast_index(const helio_shape *of, const helio_shape *shape, int64_t at) {
  int64_t index = 0, stride = 1;
  for (int i = shape->rank - 1; i >= 0; i--) {
    int axis = i - (shape->rank - of->rank);
    if (axis >= 0) {
      if (of->extent[axis] != 1) index += at % shape->extent[i] * stride;
      stride *= of->extent[axis];
    }
    at /= shape->extent[i];
  }
  return index;
}

/* ---- types ---- */

typedef struct float_facts {
  int bits, smallest; /* of the significand after the point; exponent of the least normal number */
  double largest;
} float_facts;

static const float_facts floats[] = {
    [HELIO_FLOAT32] = {23, -126, 0x1.fffffep127},
    [HELIO_FLOAT16] = {10, -14, 65504},
    [HELIO_BFLOAT16] = {7, -126, 0x1.fep127},
};

bool is_float(helio_type type) {
  return type <= HELIO_BFLOAT16;
}

/* The nearest value of a floating type, ties to even. */
static double round_float(const float_facts *facts, double value) {
  if (value == 0 || !isfinite(value)) return value;
  int exponent = ilogb(value) > facts->smallest ? ilogb(value) : facts->smallest;
  double rounded = ldexp(nearbyint(ldexp(value, facts->bits - exponent)), exponent - facts->bits);
  return fabs(rounded) > facts->largest ? copysign(INFINITY, value) : rounded;
}

/* A conversion of a value that is too large is undefined in C, and infinite here. */
static double round_single(double value) {
  return fabs(value) < 0x1p127 ? (double)(float)value : round_float(&floats[HELIO_FLOAT32], value);
}

static double clamp(double value, double low, double high) {
  return isnan(value) ? 0 : value < low ? low : value > high ? high : trunc(value);
}

double as_type(helio_type type, double value) {
  switch (type) {
  case HELIO_FLOAT32:
    return round_single(value);
  case HELIO_FLOAT64:
    return value;
  case HELIO_FLOAT16:
  case HELIO_BFLOAT16:
    return round_float(&floats[type], value);
  case HELIO_INT32:
    return clamp(value, INT32_MIN, INT32_MAX);
  case HELIO_INT64:
    return clamp(value, -0x1p63, 0x1p63); /* the upper end stands for INT64_MAX */
  case HELIO_UINT8:
    return clamp(value, 0, UINT8_MAX);
  default:
    return value != 0;
  }
}

/* A value of a 16-bit type with `bits` after the point and the bias of its exponent. */
static uint16_t small_bits(double value, int bits, int bias) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  int top = (1 << (15 - bits)) - 1, least = 1 - bias;
  double size = fabs(value);
  if (isnan(value)) return (uint16_t)(top << bits | 1 << (bits - 1));
  if (isinf(value)) return (uint16_t)(sign | top << bits);
  if (size < ldexp(1, least)) return (uint16_t)(sign | (int)ldexp(size, bits - least));
  int exponent = ilogb(size);
  return (uint16_t)(sign | (exponent + bias) << bits | (int)ldexp(ldexp(size, -exponent) - 1, bits));
}

static double small_value(uint16_t word, int bits, int bias) {
  int top = (1 << (15 - bits)) - 1, exponent = word >> bits & top, fraction = word & ((1 << bits) - 1);
  double size =
      exponent == 0 ? ldexp(fraction, 1 - bias - bits) : ldexp((1 << bits) + fraction, exponent - bias - bits);
  if (exponent == top) size = fraction ? (double)NAN : (double)INFINITY;
  return word & 0x8000 ? -size : size;
}

static void encode_one(helio_type type, void *data, int64_t i, double value) {
  switch (type) {
  case HELIO_FLOAT32:
    ((float *)data)[i] = (float)value;
    break;
  case HELIO_FLOAT64:
    ((double *)data)[i] = value;
    break;
  case HELIO_FLOAT16:
    ((uint16_t *)data)[i] = small_bits(value, 10, 15);
    break;
  case HELIO_BFLOAT16:
    ((uint16_t *)data)[i] = small_bits(value, 7, 127);
    break;
  case HELIO_INT32:
    ((int32_t *)data)[i] = (int32_t)value;
    break;
  case HELIO_INT64:
    ((int64_t *)data)[i] = value >= 0x1p63 ? INT64_MAX : (int64_t)value;
    break;
  default:
    ((uint8_t *)data)[i] = (uint8_t)value;
    break;
  }
}

static double decode_one(helio_type type, const void *data, int64_t i) {
  switch (type) {
  case HELIO_FLOAT32:
    return ((const float *)data)[i];
  case HELIO_FLOAT64:
    return ((const double *)data)[i];
  case HELIO_FLOAT16:
    return small_value(((const uint16_t *)data)[i], 10, 15);
  case HELIO_BFLOAT16:
    return small_value(((const uint16_t *)data)[i], 7, 127);
  case HELIO_INT32:
    return ((const int32_t *)data)[i];
  case HELIO_INT64:
    return (double)((const int64_t *)data)[i];
  default:
    return ((const uint8_t *)data)[i];
  }
}

void array_encode(const array *a, void *data) {
  for (int64_t i = 0; i < a->elements; i++) encode_one(a->type, data, i, a->values[i]);
}

void array_decode(array *a, const void *data) {
  for (int64_t i = 0; i < a->elements; i++) a->values[i] = decode_one(a->type, data, i);
}

/* ---- life ---- */

array array_new(helio_type type, const helio_shape *shape) {
  array a = {.type = type, .shape = *shape, .elements = shape_elements(shape)};
  a.values = calloc((size_t)a.elements + 1, sizeof *a.values);
  if (a.values) return a;
  fprintf(stderr, "conformance: no memory for %lld numbers\n", (long long)a.elements);
  exit(2);
}

array array_copy(const array *a) {
  array copy = array_new(a->type, &a->shape);
  memcpy(copy.values, a->values, (size_t)a->elements * sizeof *a->values);
  return copy;
}

void array_free(array *a) {
  free(a->values);
  a->values = NULL;
}

/* ---- random values ---- */

static uint64_t random_state;

void random_seed(const char *name) {
  random_state = 14695981039346656037u;
  for (; *name; name++) random_state = (random_state ^ (unsigned char)*name) * 1099511628211u;
}

/* splitmix64 */
uint64_t random_word(void) {
  uint64_t x = random_state += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

double random_between(double low, double high) {
  return low + (high - low) * (double)(random_word() >> 11) * 0x1p-53;
}

array array_random(helio_type type, const helio_shape *shape, double low, double high) {
  array a = array_new(type, shape);
  bool whole = !is_float(type);
  for (int64_t i = 0; i < a.elements; i++) {
    double value = random_between(low, whole ? high + 1 : high);
    a.values[i] = as_type(type, whole ? floor(value) : value);
  }
  return a;
}

/* ---- comparison ---- */

double tolerance_of(helio_type type, bool long_sum) {
  switch (type) {
  case HELIO_FLOAT32:
    return 1e-5;
  case HELIO_FLOAT64:
    return long_sum ? 1e-10 : 1e-12;
  case HELIO_FLOAT16:
    return 2e-3;
  case HELIO_BFLOAT16:
    return 2e-2;
  default:
    return 0;
  }
}

double array_error(const array *seen, const array *expected, int64_t *at) {
  double largest = 0, worst = 0;
  bool any_for_nan = !is_float(expected->type);
  *at = 0;
  for (int64_t i = 0; i < expected->elements; i++) {
    double a = seen->values[i], b = expected->values[i];
    if (isfinite(b) && fabs(b) > largest) largest = fabs(b);
    if ((isnan(b) && (isnan(a) || any_for_nan)) || a == b) continue;
    double difference = isfinite(a) && isfinite(b) ? fabs(a - b) : (double)INFINITY;
    if (difference <= worst) continue;
    worst = difference;
    *at = i;
  }
  return largest == 0 ? worst : worst / largest; /* where all are to be zero, there is no norm */
}
