/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives must give, computed plainly. The numbers are chosen so that nothing is rounded in any type but for
 * averages: halves between -2 and 2, whole numbers between -4 and 4. */
#ifndef COLLECTIVE_NUMBERS_H
#define COLLECTIVE_NUMBERS_H

#include "nccl.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum test_kind { ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, KINDS } test_kind;

typedef struct test_plan {
  test_kind kind;
  abi_enum type, reduction;
  int ranks, root;
  size_t count;
  bool in_place;
} test_plan;

static inline size_t bytes_of(abi_enum type) {
  switch (type) {
  case NCCL_ABI_INT8:
  case NCCL_ABI_UINT8:
    return 1;
  case NCCL_ABI_FLOAT16:
  case NCCL_ABI_BFLOAT16:
    return 2;
  case NCCL_ABI_INT32:
  case NCCL_ABI_UINT32:
  case NCCL_ABI_FLOAT32:
    return 4;
  default:
    return 8;
  }
}

static inline bool is_unsigned(abi_enum type) {
  return type == NCCL_ABI_UINT8 || type == NCCL_ABI_UINT32 || type == NCCL_ABI_UINT64;
}

static inline bool is_whole(abi_enum type) {
  return type <= NCCL_ABI_UINT64;
}

/* Element `i` of what a rank sends. */
static inline double input(const test_plan *plan, int rank, size_t i) {
  int step = (int)((i * 7 + (size_t)rank * 5 + i / 11 + plan->type) % 9); /* 0 … 8 */
  if (is_unsigned(plan->type)) return step / 2;
  return is_whole(plan->type) ? step - 4 : (step - 4) / 2.0;
}

/* Halves and bfloat16 that are zero or normal, by the arithmetic of their definition. */
static inline uint16_t pack(double value, int exponent_bits, int fraction_bits) {
  if (value == 0) return 0;
  int exponent;
  double fraction = frexp(fabs(value), &exponent) * 2 - 1; /* value is (1 + fraction) times two to exponent - 1 */
  unsigned bits = (unsigned)(exponent - 1 + (1 << (exponent_bits - 1)) - 1) << fraction_bits;
  bits += (unsigned)ldexp(fraction, fraction_bits);
  return (uint16_t)(bits | (value < 0 ? 0x8000u : 0));
}

static inline double unpack(uint16_t bits, int exponent_bits, int fraction_bits) {
  int exponent = (bits & 0x7FFF) >> fraction_bits;
  double fraction = ldexp(bits & ((1 << fraction_bits) - 1), -fraction_bits);
  double value = exponent ? ldexp(1 + fraction, exponent - (1 << (exponent_bits - 1)) + 1) : 0;
  return bits & 0x8000 ? -value : value;
}

static inline void put(abi_enum type, double value, char *to) {
  int64_t whole = (int64_t)value;
  float single = (float)value;
  uint16_t half = type == NCCL_ABI_FLOAT16 ? pack(value, 5, 10) : pack(value, 8, 7);
  switch (type) {
  case NCCL_ABI_FLOAT16:
  case NCCL_ABI_BFLOAT16:
    memcpy(to, &half, sizeof half);
    break;
  case NCCL_ABI_FLOAT32:
    memcpy(to, &single, sizeof single);
    break;
  case NCCL_ABI_FLOAT64:
    memcpy(to, &value, sizeof value);
    break;
  default:
    memcpy(to, &whole, bytes_of(type)); /* the low bytes of two's complement */
  }
}

static inline double get(abi_enum type, const char *from) {
  union {
    int8_t int8;
    uint8_t uint8;
    int32_t int32;
    uint32_t uint32;
    int64_t int64;
    uint64_t uint64;
    uint16_t half;
    float single;
    double real;
  } value;
  memcpy(&value, from, bytes_of(type));
  switch (type) {
  case NCCL_ABI_INT8:
    return value.int8;
  case NCCL_ABI_UINT8:
    return value.uint8;
  case NCCL_ABI_INT32:
    return value.int32;
  case NCCL_ABI_UINT32:
    return value.uint32;
  case NCCL_ABI_INT64:
    return (double)value.int64;
  case NCCL_ABI_UINT64:
    return (double)value.uint64;
  case NCCL_ABI_FLOAT16:
    return unpack(value.half, 5, 10);
  case NCCL_ABI_BFLOAT16:
    return unpack(value.half, 8, 7);
  case NCCL_ABI_FLOAT32:
    return (double)value.single;
  default:
    return value.real;
  }
}

static inline double combine(abi_enum reduction, double one, double other) {
  switch (reduction) {
  case NCCL_ABI_PRODUCT:
    return one * other;
  case NCCL_ABI_MAXIMUM:
    return one > other ? one : other;
  case NCCL_ABI_MINIMUM:
    return one < other ? one : other;
  default:
    return one + other;
  }
}

static inline double reduced(const test_plan *plan, size_t i) {
  double result = input(plan, 0, i);
  for (int rank = 1; rank < plan->ranks; rank++) result = combine(plan->reduction, result, input(plan, rank, i));
  if (plan->reduction != NCCL_ABI_AVERAGE) return result;
  return is_whole(plan->type) ? trunc(result / plan->ranks) : result / plan->ranks;
}

static inline size_t sent_count(const test_plan *plan) {
  return plan->kind == REDUCE_SCATTER ? plan->count * (size_t)plan->ranks : plan->count;
}

static inline size_t received_count(const test_plan *plan) {
  return plan->kind == ALL_GATHER ? plan->count * (size_t)plan->ranks : plan->count;
}

static inline bool receives(const test_plan *plan, int rank) {
  return plan->kind != REDUCE || rank == plan->root;
}

/* Element `i` of what a rank receives. */
static inline double expected(const test_plan *plan, int rank, size_t i) {
  switch (plan->kind) {
  case BROADCAST:
    return input(plan, plan->root, i);
  case ALL_GATHER:
    return input(plan, (int)(i / plan->count), i % plan->count);
  case REDUCE_SCATTER:
    return reduced(plan, i + (size_t)rank * plan->count);
  default:
    return reduced(plan, i);
  }
}

/* Only averages are rounded: their shares and each of their sums. */
static inline double tolerance(const test_plan *plan) {
  if (plan->reduction != NCCL_ABI_AVERAGE || is_whole(plan->type)) return 0;
  int bits = plan->type == NCCL_ABI_FLOAT16 ? 10 : plan->type == NCCL_ABI_BFLOAT16 ? 7 : 23;
  return 4 * 2.0 * ldexp(1, -bits);
}

#endif
