/* SPDX-License-Identifier: Apache-2.0 */
#include "sum.h"

#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

const uint32_t local_sum_types = HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64) |
                                 HELIO_TYPE_BIT(HELIO_FLOAT16) | HELIO_TYPE_BIT(HELIO_BFLOAT16) |
                                 HELIO_TYPE_BIT(HELIO_INT32) | HELIO_TYPE_BIT(HELIO_INT64);

/* Small enough that a block of every rank stays in the first cache while it is summed and written. */
enum { BLOCK_BYTES = 4096 };

/* ---- half floats: widened to float32, narrowed to the nearest, ties to even ---- */

static inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float widen_bfloat16(uint16_t half) {
  return float_of((uint32_t)half << 16);
}

static inline uint16_t narrow_bfloat16(float value) {
  uint32_t bits = bits_of(value), is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return (uint16_t)(is_nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Nothing here computes with a float32 too small to be normal, which would count as 0. */
static inline float widen_float16(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  uint32_t small = bits_of((float)(int32_t)magnitude * 0x1p-24f);
  uint32_t usual = (magnitude << 13) + 0x38000000u;
  uint32_t special = magnitude << 13 | 0x7f800000u | (magnitude > 0x7c00u ? 0x400000u : 0u);
  return float_of(sign | (magnitude < 0x400u ? small : magnitude < 0x7c00u ? usual : special));
}

static inline uint16_t narrow_float16(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  uint32_t small = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u; /* its last place is that of 0.5 */
  uint32_t usual = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
  uint32_t special = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x3ffu) : 0x7c00u;
  return (uint16_t)(sign | (magnitude < 0x38800000u ? small : magnitude < 0x477ff000u ? usual : special));
}

/* ---- into = a (reduction) b, where `into` may be a or b ---- */

typedef void combine_function(void *into, const void *a, const void *b, size_t count);

static inline float plain_f32(float value) {
  return value;
}

static inline double plain_f64(double value) {
  return value;
}

/* Integers wrap. */
static inline uint32_t plain_u32(uint32_t value) {
  return value;
}

static inline uint64_t plain_u64(uint64_t value) {
  return value;
}

static inline int32_t plain_i32(int32_t value) {
  return value;
}

static inline int64_t plain_i64(int64_t value) {
  return value;
}

#if defined(__clang__)
#define ELEMENTS_ARE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define ELEMENTS_ARE_INDEPENDENT _Pragma("GCC ivdep")
#endif

#define COMBINE(name, stored, computed, widen, narrow, expression)                                                     \
  static void name(void *into, const void *left, const void *right, size_t count) {                                    \
    stored *y = into;                                                                                                  \
    const stored *l = left, *r = right;                                                                                \
    ELEMENTS_ARE_INDEPENDENT                                                                                           \
    for (size_t i = 0; i < count; i++) {                                                                               \
      computed a = widen(l[i]), b = widen(r[i]);                                                                       \
      y[i] = narrow(expression);                                                                                       \
    }                                                                                                                  \
  }

/* The larger and the smaller: NaN if either is. */
#define COMBINE_FLOATS(type, stored, computed, widen, narrow)                                                          \
  COMBINE(sum_##type, stored, computed, widen, narrow, a + b)                                                          \
  COMBINE(max_##type, stored, computed, widen, narrow, a > b || a != a ? a : b)                                        \
  COMBINE(min_##type, stored, computed, widen, narrow, a < b || a != a ? a : b)

COMBINE_FLOATS(f32, float, float, plain_f32, plain_f32)
COMBINE_FLOATS(f64, double, double, plain_f64, plain_f64)
COMBINE_FLOATS(f16, uint16_t, float, widen_float16, narrow_float16)
COMBINE_FLOATS(bf16, uint16_t, float, widen_bfloat16, narrow_bfloat16)
COMBINE(sum_i32, uint32_t, uint32_t, plain_u32, plain_u32, a + b)
COMBINE(max_i32, int32_t, int32_t, plain_i32, plain_i32, a > b ? a : b)
COMBINE(min_i32, int32_t, int32_t, plain_i32, plain_i32, a < b ? a : b)
COMBINE(sum_i64, uint64_t, uint64_t, plain_u64, plain_u64, a + b)
COMBINE(max_i64, int64_t, int64_t, plain_i64, plain_i64, a > b ? a : b)
COMBINE(min_i64, int64_t, int64_t, plain_i64, plain_i64, a < b ? a : b)

typedef struct type_row {
  size_t bytes;
  combine_function *combine[HELIO_REDUCTION_MIN + 1];
} type_row;

static const type_row rows[] = {
    [HELIO_FLOAT32] = {4, {NULL, sum_f32, max_f32, min_f32}},
    [HELIO_FLOAT64] = {8, {NULL, sum_f64, max_f64, min_f64}},
    [HELIO_FLOAT16] = {2, {NULL, sum_f16, max_f16, min_f16}},
    [HELIO_BFLOAT16] = {2, {NULL, sum_bf16, max_bf16, min_bf16}},
    [HELIO_INT32] = {4, {NULL, sum_i32, max_i32, min_i32}},
    [HELIO_INT64] = {8, {NULL, sum_i64, max_i64, min_i64}},
};

/* ---- slices ---- */

/* The mode in which the CPU's own kernels add: numbers too small to be normal count as 0, whatever the thread has set.
 * So a sum is the same to the bit whoever forms it. */
static unsigned begin_flush(void) {
#if defined(__x86_64__)
  unsigned saved = _mm_getcsr();
  if (saved != 0x9fc0u) _mm_setcsr(0x9fc0u);
  return saved;
#else
  return 0;
#endif
}

static void end_flush(unsigned saved) {
#if defined(__x86_64__)
  if (saved != 0x9fc0u) _mm_setcsr(saved);
#else
  (void)saved;
#endif
}

/* The sum is formed in the first target, unless that still holds a value that comes later. */
static void sum_block(const local_sum *what, combine_function *combine, size_t at, size_t bytes, size_t count) {
  _Alignas(64) char beside[BLOCK_BYTES];
  char *into = what->targets[0] + at;
  for (uint32_t i = 2; i < what->source_count; i++) {
    if (what->sources[i] == what->targets[0]) into = beside;
  }
  combine(into, what->sources[0] + at, what->sources[1] + at, count);
  for (uint32_t i = 2; i < what->source_count; i++) combine(into, into, what->sources[i] + at, count);
  for (uint32_t i = 0; i < what->target_count; i++) {
    if (what->targets[i] + at != into) memcpy(what->targets[i] + at, into, bytes);
  }
}

void local_sum_slice(const local_sum *what, size_t first, size_t end) {
  const type_row *row = &rows[what->type];
  if (what->source_count == 1) {
    if (what->targets[0] == what->sources[0] || first >= end) return;
    memcpy(what->targets[0] + first * row->bytes, what->sources[0] + first * row->bytes, (end - first) * row->bytes);
    return;
  }
  unsigned saved = begin_flush();
  size_t most = BLOCK_BYTES / row->bytes;
  for (size_t at = first; at < end; at += most) {
    size_t count = end - at < most ? end - at : most;
    sum_block(what, row->combine[what->reduction], at * row->bytes, count * row->bytes, count);
  }
  end_flush(saved);
}
