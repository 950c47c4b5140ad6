/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and the like of what the ranks hold. Each step is rounded to the type, as the links of a ring would, and the
 * rank that a ring begins with differs from one stretch of the buffer to the next. */
#include "internal.h"

#include <math.h>
#include <string.h>

enum { STRETCH = 512 }; /* elements that have their order of ranks in common */

/* Numbers of any type, between memory and arithmetic. Which of the two: is_real(). */
typedef union lanes {
  double reals[STRETCH];
  uint64_t wholes[STRETCH]; /* signed ones extended by their sign */
} lanes;

static bool is_real(abi_enum type) {
  return type >= NCCL_ABI_FLOAT16 && type <= NCCL_ABI_BFLOAT16;
}
static bool is_signed(abi_enum type) {
  return type == NCCL_ABI_INT8 || type == NCCL_ABI_INT32 || type == NCCL_ABI_INT64;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Numbers of 16 bits
 */

static double decode(uint16_t bits, int exponent_bits, int fraction_bits) {
  int largest = (1 << exponent_bits) - 1, bias = largest >> 1;
  int exponent = bits >> fraction_bits & largest, fraction = bits & ((1 << fraction_bits) - 1);
  double value;
  if (exponent == largest)
    value = fraction == 0 ? INFINITY : NAN;
  else if (exponent == 0)
    value = ldexp(fraction, 1 - bias - fraction_bits);
  else
    value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  return bits & 0x8000 ? -value : value;
}

/* Rounded to the nearest, of two to the even one. */
static uint16_t encode(double value, int exponent_bits, int fraction_bits) {
  unsigned sign = signbit(value) ? 0x8000 : 0, infinity = ((1u << exponent_bits) - 1) << fraction_bits;
  int bias = (1 << (exponent_bits - 1)) - 1;
  if (isnan(value)) return (uint16_t)(sign | infinity | 1u << (fraction_bits - 1));
  if (value == 0) return (uint16_t)sign;
  if (isinf(value)) return (uint16_t)(sign | infinity);
  int exponent = ilogb(value);
  if (exponent > bias) return (uint16_t)(sign | infinity);
  if (exponent < 1 - bias) exponent = 1 - bias;
  /* The leading 1 of a normal number raises the exponent by one; so does a carry, up to infinity. */
  unsigned steps = (unsigned)nearbyint(ldexp(fabs(value), fraction_bits - exponent));
  unsigned bits = steps + ((unsigned)(exponent + bias - 1) << fraction_bits);
  return (uint16_t)(sign | (bits < infinity ? bits : infinity));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * From memory and back
 */

#define LOAD(type, lane)                                                                                               \
  for (size_t i = 0; i < count; i++) {                                                                                 \
    type element;                                                                                                      \
    memcpy(&element, from + i * sizeof element, sizeof element);                                                       \
    lane;                                                                                                              \
  }                                                                                                                    \
  break

static void load(abi_enum kind, const char *from, size_t count, lanes *to) {
  switch (kind) {
  case NCCL_ABI_INT8:
    LOAD(int8_t, to->wholes[i] = (uint64_t)element);
  case NCCL_ABI_UINT8:
    LOAD(uint8_t, to->wholes[i] = element);
  case NCCL_ABI_INT32:
    LOAD(int32_t, to->wholes[i] = (uint64_t)element);
  case NCCL_ABI_UINT32:
    LOAD(uint32_t, to->wholes[i] = element);
  case NCCL_ABI_INT64:
    LOAD(int64_t, to->wholes[i] = (uint64_t)element);
  case NCCL_ABI_UINT64:
    LOAD(uint64_t, to->wholes[i] = element);
  case NCCL_ABI_FLOAT16:
    LOAD(uint16_t, to->reals[i] = decode(element, 5, 10));
  case NCCL_ABI_BFLOAT16:
    LOAD(uint16_t, to->reals[i] = decode(element, 8, 7));
  case NCCL_ABI_FLOAT32:
    LOAD(float, to->reals[i] = (double)element);
  case NCCL_ABI_FLOAT64:
    LOAD(double, to->reals[i] = element);
  }
}

#define STORE(type, value)                                                                                             \
  for (size_t i = 0; i < count; i++) {                                                                                 \
    type element = value;                                                                                              \
    memcpy(to + i * sizeof element, &element, sizeof element);                                                         \
  }                                                                                                                    \
  break

static void store(abi_enum kind, const lanes *from, size_t count, char *to) {
  switch (kind) {
  case NCCL_ABI_INT8:
  case NCCL_ABI_UINT8:
    STORE(uint8_t, (uint8_t)from->wholes[i]);
  case NCCL_ABI_INT32:
  case NCCL_ABI_UINT32:
    STORE(uint32_t, (uint32_t)from->wholes[i]);
  case NCCL_ABI_INT64:
  case NCCL_ABI_UINT64:
    STORE(uint64_t, from->wholes[i]);
  case NCCL_ABI_FLOAT16:
    STORE(uint16_t, encode(from->reals[i], 5, 10));
  case NCCL_ABI_BFLOAT16:
    STORE(uint16_t, encode(from->reals[i], 8, 7));
  case NCCL_ABI_FLOAT32:
    STORE(float, (float)from->reals[i]);
  case NCCL_ABI_FLOAT64:
    STORE(double, from->reals[i]);
  }
}

static void round_to_type(abi_enum type, size_t count, lanes *values) {
  char memory[STRETCH * sizeof(uint64_t)];
  store(type, values, count, memory);
  load(type, memory, count, values);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Arithmetic
 */

static void combine_reals(abi_enum operation, const double *next, size_t count, double *sum) {
  switch (operation) {
  case NCCL_ABI_PRODUCT:
    for (size_t i = 0; i < count; i++) sum[i] *= next[i];
    break;
  case NCCL_ABI_MAXIMUM:
    for (size_t i = 0; i < count; i++) sum[i] = fmax(sum[i], next[i]);
    break;
  case NCCL_ABI_MINIMUM:
    for (size_t i = 0; i < count; i++) sum[i] = fmin(sum[i], next[i]);
    break;
  default:
    for (size_t i = 0; i < count; i++) sum[i] += next[i];
  }
}

/* With its sign bit turned over, a signed number has its place among the unsigned ones. */
static void combine_wholes(abi_enum operation, bool has_sign, const uint64_t *next, size_t count, uint64_t *sum) {
  uint64_t sign = has_sign ? UINT64_C(1) << 63 : 0;
  switch (operation) {
  case NCCL_ABI_PRODUCT:
    for (size_t i = 0; i < count; i++) sum[i] *= next[i];
    break;
  case NCCL_ABI_MAXIMUM:
    for (size_t i = 0; i < count; i++) sum[i] = (sum[i] ^ sign) < (next[i] ^ sign) ? next[i] : sum[i];
    break;
  case NCCL_ABI_MINIMUM:
    for (size_t i = 0; i < count; i++) sum[i] = (sum[i] ^ sign) > (next[i] ^ sign) ? next[i] : sum[i];
    break;
  default:
    for (size_t i = 0; i < count; i++) sum[i] += next[i];
  }
}

static void combine(const nccl_reduction *how, const lanes *next, size_t count, lanes *sum) {
  if (is_real(how->type))
    combine_reals(how->operation, next->reals, count, sum->reals);
  else
    combine_wholes(how->operation, is_signed(how->type), next->wholes, count, sum->wholes);
  round_to_type(how->type, count, sum);
}

/* An average of real numbers is a sum of shares, that of whole ones a sum divided at the end. */
static void load_share(const nccl_reduction *how, const char *from, size_t count, lanes *to) {
  load(how->type, from, count, to);
  if (how->operation != NCCL_ABI_AVERAGE || !is_real(how->type)) return;
  lanes share = {.reals = {1.0 / how->ranks}};
  round_to_type(how->type, 1, &share);
  for (size_t i = 0; i < count; i++) to->reals[i] *= share.reals[0];
  round_to_type(how->type, count, to);
}

static void divide_wholes(const nccl_reduction *how, size_t count, uint64_t *sum) {
  for (size_t i = 0; i < count; i++) {
    if (is_signed(how->type))
      sum[i] = (uint64_t)((int64_t)sum[i] / how->ranks);
    else
      sum[i] /= (uint64_t)how->ranks;
  }
}

/* A number that depends on the seed and nothing else that could differ from run to run. */
static uint64_t draw(uint64_t number) {
  return sim_mix(sim_setup()->seed * UINT64_C(0x9E3779B97F4A7C15) + number);
}

/* The order of the ranks in one stretch: a ring that begins somewhere and goes round one way or the other. */
static void order_ranks(const nccl_reduction *how, size_t first, const char *const *inputs, const char **ordered) {
  size_t ranks = (size_t)how->ranks, offset = first * type_size(how->type);
  uint64_t drawn = draw(how->number);
  size_t start = (size_t)(drawn >> 1) % ranks + first / STRETCH % ranks, step = drawn & 1 ? 1 : ranks - 1;
  for (size_t i = 0; i < ranks; i++) ordered[i] = inputs[(start + i * step) % ranks] + offset;
}

static void reduce_stretch(const nccl_reduction *how, const char *const *inputs, size_t count, char *result) {
  lanes sum, next;
  load_share(how, inputs[0], count, &sum);
  for (int i = 1; i < how->ranks; i++) {
    load_share(how, inputs[i], count, &next);
    combine(how, &next, count, &sum);
  }
  if (how->operation == NCCL_ABI_AVERAGE && !is_real(how->type)) divide_wholes(how, count, sum.wholes);
  store(how->type, &sum, count, result);
}

/* The sums of a training, many times faster: floats that are added as such are rounded as above. */
static void add_singles(int ranks, const char *const *inputs, size_t count, char *result) {
  float sum[STRETCH], next[STRETCH];
  memcpy(sum, inputs[0], count * sizeof *sum);
  for (int rank = 1; rank < ranks; rank++) {
    memcpy(next, inputs[rank], count * sizeof *next);
    for (size_t i = 0; i < count; i++) sum[i] += next[i];
  }
  memcpy(result, sum, count * sizeof *sum);
}

void reduce(const nccl_reduction *how, const char *const *inputs, size_t count, char *const *outputs,
            int output_count) {
  size_t size = type_size(how->type);
  bool simple = how->type == NCCL_ABI_FLOAT32 && how->operation == NCCL_ABI_SUM;
  for (size_t first = 0; first < count; first += STRETCH) {
    size_t length = count - first < STRETCH ? count - first : STRETCH;
    const char *ordered[MOST_RANKS];
    char result[STRETCH * sizeof(uint64_t)];
    order_ranks(how, first, inputs, ordered);
    if (simple)
      add_singles(how->ranks, ordered, length, result);
    else
      reduce_stretch(how, ordered, length, result);
    for (int i = 0; i < output_count; i++) memcpy(outputs[i] + first * size, result, length * size);
  }
}
