/* SPDX-License-Identifier: Apache-2.0 */
/* float16 and bfloat16 to float32 and back, rounding to nearest, ties to even. */
#ifndef CPU_VECTOR_HALF_H
#define CPU_VECTOR_HALF_H

static inline float float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint32_t bits_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* No step computes with a denormal float32, so that the result does not depend on the flush mode. */
static inline float f16_widen_one(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  uint32_t magnitude = half & 0x7fffu;
  uint32_t normal = (magnitude << 13) + (112u << 23);
  uint32_t special = (magnitude << 13) | 0x7f800000u | (magnitude > 0x7c00u ? 0x400000u : 0u);
  uint32_t denormal = bits_from_float((float)(int32_t)magnitude * 0x1p-24f);
  uint32_t bits = magnitude >= 0x7c00u ? special : magnitude < 0x0400u ? denormal : normal;
  return float_from_bits(sign | bits);
}

static inline uint16_t f16_narrow_one(float value) {
  uint32_t bits = bits_from_float(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (112u << 23)) >> 13;
  /* Adding 0.5 leaves the last place at 2^-24, the smallest float16, and rounds there. */
  uint32_t denormal = bits_from_float(float_from_bits(magnitude) + 0.5f) - bits_from_float(0.5f);
  uint32_t special = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : 0x7c00u;
  uint32_t half = magnitude >= 0x477ff000u ? special : magnitude < 0x38800000u ? denormal : normal;
  return (uint16_t)(sign | half);
}

static inline uint16_t bf16_narrow_one(float value) {
  uint32_t bits = bits_from_float(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t quiet = (bits >> 16) | 0x40u;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static void f16_widen(float *restrict y, const uint16_t *restrict x, size_t count) {
  size_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= count; i += 16) _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(x + i))));
#elif defined(__F16C__)
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(x + i))));
#endif
  for (; i < count; i++) y[i] = f16_widen_one(x[i]);
}

static void f16_narrow(uint16_t *restrict y, const float *restrict x, size_t count) {
  size_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= count; i += 16)
    _mm256_storeu_si256((void *)(y + i), _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  for (; i + 8 <= count; i += 8)
    _mm_storeu_si128((void *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < count; i++) y[i] = f16_narrow_one(x[i]);
}

static void bf16_widen(float *restrict y, const uint16_t *restrict x, size_t count) {
  for (size_t i = 0; i < count; i++) y[i] = float_from_bits((uint32_t)x[i] << 16);
}

static void bf16_narrow(uint16_t *restrict y, const float *restrict x, size_t count) {
  for (size_t i = 0; i < count; i++) y[i] = bf16_narrow_one(x[i]);
}

static inline bool is_half(helio_type type) {
  return type == HELIO_FLOAT16 || type == HELIO_BFLOAT16;
}

static inline void half_widen(helio_type type, float *y, const uint16_t *x, size_t count) {
  if (type == HELIO_FLOAT16) {
    f16_widen(y, x, count);
  } else {
    bf16_widen(y, x, count);
  }
}

static inline void half_narrow(helio_type type, uint16_t *y, const float *x, size_t count) {
  if (type == HELIO_FLOAT16) {
    f16_narrow(y, x, count);
  } else {
    bf16_narrow(y, x, count);
  }
}

#endif
