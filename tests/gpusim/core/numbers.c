/* SPDX-License-Identifier: Apache-2.0 */
/* From tensors of any type and layout to dense numbers in double precision, and back. */
#include "library.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t sim_type_bytes(sim_type type) {
  static const size_t bytes[] = {[SIM_FLOAT32] = 4, [SIM_FLOAT64] = 8, [SIM_FLOAT16] = 2, [SIM_BFLOAT16] = 2};
  return type < SIM_NO_TYPE ? bytes[type] : 0;
}

size_t sim_times(size_t a, size_t b) {
  size_t product;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

bool sim_is_countable(const int dims[4], const int *strides) {
  const size_t most = (size_t)1 << 56; /* leaves room for types, indices and sums */
  size_t packed = 1;
  for (int i = 0; i < 4; i++) {
    size_t stride = strides ? (size_t)llabs((long long)strides[i]) : 0;
    packed = sim_times(packed, (size_t)dims[i]);
    if (sim_times((size_t)dims[i], stride) > most || packed > most) return false;
  }
  return true;
}

size_t sim_tensor_count(const sim_tensor *tensor) {
  size_t count = 1;
  for (int i = 0; i < 4; i++) count *= (size_t)tensor->dims[i];
  return count;
}

size_t sim_tensor_bytes(const sim_tensor *tensor) {
  int64_t last = 0;
  for (int i = 0; i < 4; i++) last += (tensor->dims[i] - 1) * tensor->strides[i];
  return sim_times((size_t)(last + 1), sim_type_bytes(tensor->type));
}

void sim_tensor_pack(sim_tensor *tensor, bool channels_last) {
  static const int orders[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}}; /* the dimension that changes fastest first */
  int64_t stride = 1;
  for (int i = 0; i < 4; i++) {
    int dim = orders[channels_last][i];
    tensor->strides[dim] = stride;
    stride *= tensor->dims[dim];
  }
}

bool sim_tensor_is_packed(const sim_tensor *tensor, bool channels_last) {
  sim_tensor packed = *tensor;
  sim_tensor_pack(&packed, channels_last);
  for (int i = 0; i < 4; i++)
    if (tensor->dims[i] > 1 && tensor->strides[i] != packed.strides[i]) return false;
  return true;
}

bool sim_tensor_is_distinct(const sim_tensor *tensor) {
  int64_t covered = 1; /* by the dimensions whose strides are smaller */
  bool done[4] = {false};
  for (int round = 0; round < 4; round++) {
    int next = -1;
    for (int i = 0; i < 4; i++)
      if (!done[i] && (next < 0 || tensor->strides[i] < tensor->strides[next])) next = i;
    done[next] = true;
    if (tensor->dims[next] == 1) continue;
    if (tensor->strides[next] < covered) return false;
    covered = tensor->strides[next] * (tensor->dims[next] - 1) + covered;
  }
  return true;
}

bool sim_tensor_has_dims(const sim_tensor *tensor, const int dims[4]) {
  return !memcmp(tensor->dims, dims, sizeof tensor->dims);
}

double *sim_numbers(size_t count) {
  double *numbers = calloc(count + 1, sizeof *numbers);
  if (!numbers) {
    fprintf(stderr, "gpusim: no memory for %zu numbers\n", count);
    abort();
  }
  return numbers;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Types. Bits move through memcpy, because device memory has no type.
 */

static uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Rounds to nearest, ties to even, at `dropped` bits; a NaN stays one. */
static uint32_t round_bits(float value, int dropped) {
  uint32_t bits = float_bits(value);
  if (isnan(value)) return bits | 1u << 22;
  uint32_t half = (1u << (dropped - 1)) - 1 + (bits >> dropped & 1);
  return (bits + half) >> dropped << dropped;
}

static double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                 : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                : ldexp(fraction, -24);
  return bits >> 15 ? -value : value;
}

static uint16_t half_bits(double value) {
  uint16_t sign = signbit(value) ? 0x8000 : 0;
  double size = fabs(value);
  if (isnan(value)) return sign | 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  int exponent;
  frexp(size, &exponent);
  if (size == 0 || exponent < -13) exponent = -13; /* subnormal: the step stays 2^-24 */
  double steps = nearbyint(ldexp(size, 11 - exponent));
  /* A normal number has 1024 … 2047 steps, of which 1024 are the exponent's lowest bit; 2048 carry into it. */
  return (uint16_t)(sign | ((unsigned)(exponent + 13) * 1024 + (unsigned)steps));
}

static double load(sim_type type, const char *from) {
  float single;
  double twice;
  uint16_t half;
  switch (type) {
  case SIM_FLOAT32:
    memcpy(&single, from, sizeof single);
    return single;
  case SIM_FLOAT64:
    memcpy(&twice, from, sizeof twice);
    return twice;
  case SIM_FLOAT16:
    memcpy(&half, from, sizeof half);
    return half_value(half);
  case SIM_BFLOAT16:
    memcpy(&half, from, sizeof half);
    return float_of((uint32_t)half << 16);
  default:
    return NAN;
  }
}

static void store(sim_type type, char *to, double value) {
  float single = (float)value;
  uint16_t half;
  switch (type) {
  case SIM_FLOAT32:
    memcpy(to, &single, sizeof single);
    break;
  case SIM_FLOAT64:
    memcpy(to, &value, sizeof value);
    break;
  case SIM_FLOAT16:
    half = half_bits(value);
    memcpy(to, &half, sizeof half);
    break;
  case SIM_BFLOAT16:
    half = (uint16_t)(round_bits(single, 16) >> 16);
    memcpy(to, &half, sizeof half);
    break;
  default:
    break;
  }
}

static double rounded(double value, sim_rounding rounding) {
  switch (rounding) {
  case SIM_ROUND_TF32:
    return float_of(round_bits((float)value, 13));
  case SIM_ROUND_FLOAT16:
    return half_value(half_bits(value));
  case SIM_ROUND_BFLOAT16:
    return float_of(round_bits((float)value, 16));
  default:
    return value;
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Rows: the last dimension
 */

static void gather_row(const sim_tensor *tensor, const char *from, double *to) {
  int64_t step = tensor->strides[3] * (int64_t)sim_type_bytes(tensor->type);
  for (int w = 0; w < tensor->dims[3]; w++, from += step) to[w] = load(tensor->type, from);
}

static void gather_floats(const sim_tensor *tensor, const char *from, double *to) {
  int64_t step = tensor->strides[3] * (int64_t)sizeof(float);
  for (int w = 0; w < tensor->dims[3]; w++, from += step) {
    float value;
    memcpy(&value, from, sizeof value);
    to[w] = value;
  }
}

static const char *row_of(const sim_tensor *tensor, const void *data, size_t row) {
  int64_t h = (int64_t)(row % (size_t)tensor->dims[2]), rest = (int64_t)(row / (size_t)tensor->dims[2]);
  int64_t offset = rest / tensor->dims[1] * tensor->strides[0] + rest % tensor->dims[1] * tensor->strides[1];
  return (const char *)data + (offset + h * tensor->strides[2]) * (int64_t)sim_type_bytes(tensor->type);
}

static size_t row_count(const sim_tensor *tensor) {
  return (size_t)tensor->dims[0] * (size_t)tensor->dims[1] * (size_t)tensor->dims[2];
}

double *sim_gather(const sim_tensor *tensor, const void *data, sim_rounding rounding) {
  size_t count = sim_tensor_count(tensor);
  double *numbers = sim_numbers(count);
  for (size_t row = 0; row < row_count(tensor); row++)
    (tensor->type == SIM_FLOAT32 ? gather_floats : gather_row)(tensor, row_of(tensor, data, row),
                                                               numbers + row * (size_t)tensor->dims[3]);
  if (rounding != SIM_EXACT)
    for (size_t i = 0; i < count; i++) numbers[i] = rounded(numbers[i], rounding);
  return numbers;
}

/* One step of single precision up, down, or none. */
static double wobbled(double value, uint64_t *chance) {
  *chance = *chance * 6364136223846793005u + 1442695040888963407u;
  unsigned way = (unsigned)(*chance >> 33) % 3;
  return way == 0 ? value : nextafterf((float)value, way == 1 ? INFINITY : -INFINITY);
}

void sim_scatter(const sim_tensor *tensor, void *data, const double *values, double alpha, double beta, bool wobble) {
  int64_t step = tensor->strides[3] * (int64_t)sim_type_bytes(tensor->type);
  uint64_t chance = wobble ? sim_random(UINT64_MAX) : 0;
  for (size_t row = 0; row < row_count(tensor); row++) {
    char *to = (char *)row_of(tensor, data, row); /* of memory that is ours to write */
    for (int w = 0; w < tensor->dims[3]; w++, to += step) {
      double value = alpha * *values++;
      if (wobble) value = wobbled(value, &chance);
      if (beta != 0) value += beta * load(tensor->type, to);
      store(tensor->type, to, value);
    }
  }
}
