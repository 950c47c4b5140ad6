/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors as wide as the instruction set has them. They may lie at any address that suits their elements, and may alias
 * whatever the memory is declared as. */
#ifndef CPU_VECTOR_TYPES_H
#define CPU_VECTOR_TYPES_H

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

typedef float vector_f32 __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef double vector_f64 __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
typedef int32_t vector_i32 __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int64_t vector_i64 __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
typedef uint32_t vector_u32 __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef uint64_t vector_u64 __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

/* Half a vector of 32-bit elements: as many as there are 64-bit elements in a whole one. */
typedef float vector_f32_half __attribute__((vector_size(VECTOR_BYTES / 2), aligned(4), may_alias));
typedef int32_t vector_i32_half __attribute__((vector_size(VECTOR_BYTES / 2), aligned(4), may_alias));

/* Before a loop of a few turns: it is written out, so that an array which it walks becomes registers. */
#if defined(__clang__)
#define UNROLLED
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* Elements that are converted at a time on the stack, where a type is computed in another. */
#define CHUNK 256

static inline size_t chunk_of(size_t left) {
  return left < CHUNK ? left : CHUNK;
}

#endif
