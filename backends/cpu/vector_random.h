/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers: Philox 4×32-10 (J. Salmon and others, 2011), one block in each element of a vector of 64 bits. All
 * vector codes give the same words, and what is made of them involves no fused multiplication. */
#ifndef CPU_VECTOR_RANDOM_H
#define CPU_VECTOR_RANDOM_H

#define BLOCKS (VECTOR_BYTES / 8) /* in a vector */

/* The pairs of words 0, 1 and 2, 3 of all blocks, put in the order of words. */
#if VECTOR_BYTES == 64
#define FIRST_BLOCKS 0, 8, 1, 9, 2, 10, 3, 11
#define LAST_BLOCKS  4, 12, 5, 13, 6, 14, 7, 15
#elif VECTOR_BYTES == 32
#define FIRST_BLOCKS 0, 4, 1, 5
#define LAST_BLOCKS  2, 6, 3, 7
#else
#define FIRST_BLOCKS 0, 2
#define LAST_BLOCKS  1, 3
#endif

/* The product of the lower halves, in full. */
static inline vector_u64 multiply_words(vector_u64 a, uint32_t b) {
#if defined(__AVX512F__)
  return (vector_u64)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__)
  return (vector_u64)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#elif defined(__SSE2__)
  return (vector_u64)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(b));
#else
  return (a & UINT32_MAX) * (uint64_t)b;
#endif
}

static inline vector_u64 all_u64(uint64_t value) {
  return (vector_u64){0} + value;
}

/* The counters of one vector of blocks. Only their lower halves matter from round to round, so nothing is masked before
 * the end. */
typedef struct counters {
  vector_u64 c0, c1, c2, c3;
} counters;

/* Numbers of words have 64 bits, those of blocks 62. */
static inline counters counters_of(uint64_t step, uint64_t block) {
#if VECTOR_BYTES == 64
  const vector_u64 numbers = (vector_u64){0, 1, 2, 3, 4, 5, 6, 7} + block;
#elif VECTOR_BYTES == 32
  const vector_u64 numbers = (vector_u64){0, 1, 2, 3} + block;
#else
  const vector_u64 numbers = (vector_u64){0, 1} + block;
#endif
  return (counters){numbers, numbers << 2 >> 34, all_u64(step), all_u64(step >> 32)};
}

static inline counters one_round(counters c, vector_u64 k0, vector_u64 k1) {
  vector_u64 p0 = multiply_words(c.c0, 0xD2511F53u), p1 = multiply_words(c.c2, 0xCD9E8D57u);
  return (counters){(p1 >> 32) ^ c.c1 ^ k0, p1, (p0 >> 32) ^ c.c3 ^ k1, p0};
}

static inline void store_words(uint32_t *words, counters c) {
  vector_u64 first = (c.c0 & UINT32_MAX) | (c.c1 << 32), second = (c.c2 & UINT32_MAX) | (c.c3 << 32);
  *(vector_u64 *)words = __builtin_shufflevector(first, second, FIRST_BLOCKS);
  *(vector_u64 *)(words + VECTOR_LANES) = __builtin_shufflevector(first, second, LAST_BLOCKS);
}

/* The words of 2 × BLOCKS blocks from number `block` on: two vectors, for a multiplication takes its time. */
static inline void philox(uint64_t key, uint64_t step, uint64_t block, uint32_t *words) {
  counters a = counters_of(step, block), b = counters_of(step, block + BLOCKS);
  vector_u64 k0 = all_u64(key), k1 = all_u64(key >> 32);
  for (int round = 0; round < 10; round++) {
    a = one_round(a, k0, k1);
    b = one_round(b, k0, k1);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  store_words(words, a);
  store_words(words + 4 * BLOCKS, b);
}

/* Room for CHUNK words that begin anywhere in a block and end anywhere in the last of several. */
typedef struct word_buffer {
  _Alignas(64) uint32_t words[CHUNK + 4 + 8 * BLOCKS];
} word_buffer;

/* Words from number `from` on, at most CHUNK. */
static inline const uint32_t *words_from(word_buffer *buffer, uint64_t key, uint64_t step, uint64_t from,
                                         size_t count) {
  const size_t skipped = (size_t)(from % 4);
  uint64_t block = from / 4;
  for (size_t at = 0; at < skipped + count; at += 8 * BLOCKS, block += 2 * BLOCKS)
    philox(key, step, block, buffer->words + at);
  return buffer->words + skipped;
}

static void random_words(uint64_t key, uint64_t step, uint64_t from, uint32_t *words, size_t count) {
  word_buffer buffer;
  for (size_t at = 0; at < count; at += CHUNK) {
    size_t some = chunk_of(count - at);
    memcpy(words + at, words_from(&buffer, key, step, from + at, some), some * sizeof words[0]);
  }
}

static void random_uniform(uint64_t key, uint64_t step, uint64_t from, float *y, size_t count, float low, float range) {
  word_buffer buffer;
  for (size_t at = 0; at < count; at += CHUNK) {
    size_t some = chunk_of(count - at);
    const uint32_t *words = words_from(&buffer, key, step, from + at, some);
    size_t i = 0;
    for (; i + VECTOR_LANES <= some; i += VECTOR_LANES) {
      vector_i32 number = (vector_i32)(*(const vector_u32 *)(words + i) >> 8);
      *(vector_f32 *)(y + at + i) = __builtin_convertvector(number, vector_f32) * 0x1p-24f * range + low;
    }
    for (; i < some; i++) y[at + i] = (float)(int32_t)(words[i] >> 8) * 0x1p-24f * range + low;
  }
}

/* y = 0 where the uniform number × 2²⁴ is below the limit, else x ÷ kept. */
static void dropout_f32(const uint32_t *words, int32_t limit, double kept, void *target, const void *source,
                        size_t count) {
  float *y = target;
  const float *x = source;
  const float divisor = (float)kept;
  size_t i = 0;
  for (; i + VECTOR_LANES <= count; i += VECTOR_LANES) {
    vector_i32 dropped = (vector_i32)((vector_i32)(*(const vector_u32 *)(words + i) >> 8) < limit);
    vector_f32 value = *(const vector_f32 *)(x + i) / divisor;
    *(vector_i32 *)(y + i) = (vector_i32)value & ~dropped;
  }
  for (; i < count; i++) y[i] = (int32_t)(words[i] >> 8) < limit ? 0 : x[i] / divisor;
}

static void dropout_f64(const uint32_t *words, int32_t limit, double kept, void *target, const void *source,
                        size_t count) {
  double *y = target;
  const double *x = source;
  for (size_t i = 0; i < count; i++) y[i] = (int32_t)(words[i] >> 8) < limit ? 0 : x[i] / kept;
}

static void dropout(helio_type type, uint64_t key, uint64_t step, uint64_t from, int32_t limit, double kept, void *y,
                    const void *x, size_t count) {
  word_buffer buffer;
  float wide[CHUNK];
  const size_t element = type_bytes[type];
  for (size_t at = 0; at < count; at += CHUNK) {
    size_t some = chunk_of(count - at);
    const uint32_t *words = words_from(&buffer, key, step, from + at, some);
    const void *source = (const unsigned char *)x + at * element;
    void *target = (unsigned char *)y + at * element;
    if (type == HELIO_FLOAT64) {
      dropout_f64(words, limit, kept, target, source, some);
    } else if (type == HELIO_FLOAT32) {
      dropout_f32(words, limit, kept, target, source, some);
    } else {
      half_widen(type, wide, source, some);
      dropout_f32(words, limit, kept, wide, wide, some);
      half_narrow(type, target, wide, some);
    }
  }
}

#endif
