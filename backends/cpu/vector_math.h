/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions of float32, a vector at a time, by polynomials. The coefficients of exp, log and tanh are those
 * of S. Moshier's Cephes; those of the normal distribution were fitted here. Errors stay below 4 units in the last
 * place. Denormal numbers count as zero, as they do in all arithmetic of this backend. */
#ifndef CPU_VECTOR_MATH_H
#define CPU_VECTOR_MATH_H

/* How many elements of 32 bits there are, and which of them are in the lower half and in the upper one. */
#define VECTOR_LANES (VECTOR_BYTES / 4)
#if VECTOR_BYTES == 64
#define LOWER_LANES 0, 1, 2, 3, 4, 5, 6, 7
#define UPPER_LANES 8, 9, 10, 11, 12, 13, 14, 15
#elif VECTOR_BYTES == 32
#define LOWER_LANES 0, 1, 2, 3
#define UPPER_LANES 4, 5, 6, 7
#else
#define LOWER_LANES 0, 1
#define UPPER_LANES 2, 3
#endif

/* A vector of one value. */
static inline vector_f32 all_f32(float value) {
  return (vector_f32){0} + value;
}

static inline vector_f32 select_f32(vector_i32 mask, vector_f32 yes, vector_f32 no) {
  return (vector_f32)((mask & (vector_i32)yes) | (~mask & (vector_i32)no));
}

static inline vector_f32 fused_f32(vector_f32 a, vector_f32 b, vector_f32 c) {
#if defined(__AVX512F__)
  return (vector_f32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (vector_f32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

/* x, but not above (below) the limit. NaN stays NaN. */
static inline vector_f32 at_most_f32(vector_f32 x, float limit) {
#if defined(__AVX512F__)
  return (vector_f32)_mm512_min_ps(_mm512_set1_ps(limit), (__m512)x);
#elif defined(__AVX2__)
  return (vector_f32)_mm256_min_ps(_mm256_set1_ps(limit), (__m256)x);
#elif defined(__SSE2__)
  return (vector_f32)_mm_min_ps(_mm_set1_ps(limit), (__m128)x);
#else
  return select_f32((vector_i32)(x > limit), all_f32(limit), x);
#endif
}

static inline vector_f32 at_least_f32(vector_f32 x, float limit) {
#if defined(__AVX512F__)
  return (vector_f32)_mm512_max_ps(_mm512_set1_ps(limit), (__m512)x);
#elif defined(__AVX2__)
  return (vector_f32)_mm256_max_ps(_mm256_set1_ps(limit), (__m256)x);
#elif defined(__SSE2__)
  return (vector_f32)_mm_max_ps(_mm_set1_ps(limit), (__m128)x);
#else
  return select_f32((vector_i32)(x < limit), all_f32(limit), x);
#endif
}

static inline vector_f32 absolute_f32(vector_f32 x) {
  return (vector_f32)((vector_i32)x & INT32_MAX);
}

static inline vector_f32 square_root_f32(vector_f32 x) {
#if defined(__AVX512F__)
  return (vector_f32)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
  return (vector_f32)_mm256_sqrt_ps((__m256)x);
#elif defined(__SSE2__)
  return (vector_f32)_mm_sqrt_ps((__m128)x);
#else
  for (int lane = 0; lane < VECTOR_LANES; lane++) x[lane] = sqrtf(x[lane]);
  return x;
#endif
}

/* The first `count` lanes, fewer than all; the others are 0, and no memory is touched for them. */
static inline vector_f32 load_part_f32(const float *x, size_t count) {
#if defined(__AVX512F__)
  return (vector_f32)_mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1u), x);
#elif defined(__AVX2__)
  const vector_i32 lane = {0, 1, 2, 3, 4, 5, 6, 7};
  return (vector_f32)_mm256_maskload_ps(x, (__m256i)(lane < (int32_t)count));
#else
  vector_f32 part = {0};
  for (size_t i = 0; i < count; i++) part[i] = x[i];
  return part;
#endif
}

static inline void store_part_f32(float *y, vector_f32 part, size_t count) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(y, (__mmask16)((1u << count) - 1u), (__m512)part);
#elif defined(__AVX2__)
  const vector_i32 lane = {0, 1, 2, 3, 4, 5, 6, 7};
  _mm256_maskstore_ps(y, (__m256i)(lane < (int32_t)count), (__m256)part);
#else
  for (size_t i = 0; i < count; i++) y[i] = part[i];
#endif
}

/* x + low = n × ln 2 + r: gives exp(r) − 1 and n. x is between -200 and 200, low is small. */
static inline vector_f32 exp_reduced_f32(vector_f32 x, vector_f32 low, vector_f32 *n) {
  /* Adding 1.5 × 2²³ leaves the last place at 1 and rounds there. */
  vector_f32 whole = fused_f32(x + low, all_f32(1.44269504088896341f), all_f32(12582912.0f)) - 12582912.0f;
  vector_f32 r = fused_f32(whole, all_f32(-0.693359375f), x);
  r = fused_f32(whole, all_f32(2.12194440e-4f), r) + low;
  vector_f32 q = fused_f32(all_f32(1.9875691500e-4f), r, all_f32(1.3981999507e-3f));
  q = fused_f32(q, r, all_f32(8.3334519073e-3f));
  q = fused_f32(q, r, all_f32(4.1665795894e-2f));
  q = fused_f32(q, r, all_f32(1.6666665459e-1f));
  q = fused_f32(q, r, all_f32(5.0000001201e-1f));
  *n = whole;
  return fused_f32(q, r * r, r);
}

/* A small whole number as an integer; of NaN, any. Adding 1.5 × 2²³ leaves it in the lowest bits. */
static inline vector_i32 whole_f32(vector_f32 n) {
  return (vector_i32)((vector_u32)(n + 12582912.0f) - 0x4b400000u);
}

/* 2ⁿ for whole n from -126 to 127. */
static inline vector_f32 power_of_two_f32(vector_i32 n) {
  return (vector_f32)(((vector_u32)n + 127u) << 23);
}

/* exp(x + low) × 2^shift, where low is small beside x: the part of an argument that one float does not hold. */
static inline vector_f32 exp_shifted_f32(vector_f32 x, vector_f32 low, int shift) {
  vector_f32 n;
  x = at_most_f32(at_least_f32(x, -130.0f), 89.0f);
  vector_f32 y = exp_reduced_f32(x, low, &n) + 1.0f;
  /* In two steps, for 2¹²⁸ and 2⁻¹⁵⁰ are no floats. */
  vector_i32 whole = whole_f32(n) + shift, half = whole >> 1;
  return y * power_of_two_f32(half) * power_of_two_f32(whole - half);
}

static inline vector_f32 exp_f32(vector_f32 x) {
  return exp_shifted_f32(x, (vector_f32){0}, 0);
}

/* exp(x) − 1 for x up to 0. */
static inline vector_f32 exp_minus_one_f32(vector_f32 x) {
  vector_f32 n;
  vector_f32 y = exp_reduced_f32(at_least_f32(x, -50.0f), (vector_f32){0}, &n);
  vector_f32 scale = power_of_two_f32(whole_f32(n));
  return fused_f32(y, scale, scale - 1.0f);
}

/* The logarithm of x, a normal number above 0; of inf and NaN, themselves. */
static inline vector_f32 log_normal_f32(vector_f32 x) {
  /* x = m × 2ⁿ with m from √½ to √2. */
  vector_i32 bits = (vector_i32)((vector_u32)x - 0x3f3504f3u);
  vector_f32 n = __builtin_convertvector(bits >> 23, vector_f32);
  vector_f32 m = (vector_f32)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  vector_f32 square = m * m;
  vector_f32 p = fused_f32(all_f32(7.0376836292e-2f), m, all_f32(-1.1514610310e-1f));
  p = fused_f32(p, m, all_f32(1.1676998740e-1f));
  p = fused_f32(p, m, all_f32(-1.2420140846e-1f));
  p = fused_f32(p, m, all_f32(1.4249322787e-1f));
  p = fused_f32(p, m, all_f32(-1.6668057665e-1f));
  p = fused_f32(p, m, all_f32(2.0000714765e-1f));
  p = fused_f32(p, m, all_f32(-2.4999993993e-1f));
  p = fused_f32(p, m, all_f32(3.3333331174e-1f));
  vector_f32 y = fused_f32(n, all_f32(-2.12194440e-4f), p * m * square);
  y = fused_f32(n, all_f32(0.693359375f), m + fused_f32(all_f32(-0.5f), square, y));
  return select_f32((vector_i32)(x < __builtin_inff()), y, x);
}

static inline vector_f32 log_f32(vector_f32 x) {
  vector_f32 y = log_normal_f32(x);
  y = select_f32((vector_i32)(x < 0x1p-126f), all_f32(-__builtin_inff()), y);
  return select_f32((vector_i32)(x <= -0x1p-126f), all_f32(__builtin_nanf("")), y);
}

/* log(1 + x) for x from 0 to 1. What the sum's rounding lost is put back. */
static inline vector_f32 log_one_plus_f32(vector_f32 x) {
  vector_f32 sum = x + 1.0f;
  return log_normal_f32(sum) + (x - (sum - 1.0f)) / sum;
}

static inline vector_f32 tanh_f32(vector_f32 x) {
  vector_f32 magnitude = absolute_f32(x), square = x * x;
  vector_f32 p = fused_f32(all_f32(-5.70498872745e-3f), square, all_f32(2.06390887954e-2f));
  p = fused_f32(p, square, all_f32(-5.37397155531e-2f));
  p = fused_f32(p, square, all_f32(1.33314422036e-1f));
  p = fused_f32(p, square, all_f32(-3.33332819422e-1f));
  vector_f32 small = fused_f32(p * square, magnitude, magnitude);
  vector_f32 large = 1.0f - 2.0f / (exp_f32(magnitude + magnitude) + 1.0f);
  vector_f32 y = select_f32((vector_i32)(magnitude < 0.625f), small, large);
  return (vector_f32)((vector_i32)y | ((vector_i32)x & INT32_MIN));
}

static inline vector_f32 sigmoid_f32(vector_f32 x) {
  return 1.0f / (exp_f32(-x) + 1.0f);
}

/* What the normal distribution is made of: exp(−x²/2) = (1 + fraction) × scale, and Φ(−|x|) divided by that, which is
 * given back. x² does not fit a float, but that of its upper half does. */
static inline vector_f32 normal_tail_f32(vector_f32 x, vector_f32 *fraction, vector_f32 *scale) {
  vector_f32 magnitude = at_most_f32(absolute_f32(x), 15.0f), n;
  vector_f32 upper = (vector_f32)((vector_i32)magnitude & ~0xfff);
  vector_f32 rest = (magnitude - upper) * (magnitude + upper);
  *fraction = exp_reduced_f32(-0.5f * upper * upper, -0.5f * rest, &n);
  *scale = power_of_two_f32(whole_f32(at_least_f32(n, -127.0f))); /* and 0 for -127 */
  vector_f32 s = (magnitude - 4.0f) / (magnitude + 4.0f);
  vector_f32 p = fused_f32(all_f32(-3.30223847e-05f), s, all_f32(-0.000191535612f));
  p = fused_f32(p, s, all_f32(0.000179947951f));
  p = fused_f32(p, s, all_f32(0.0016143109f));
  p = fused_f32(p, s, all_f32(-0.00350421946f));
  p = fused_f32(p, s, all_f32(-0.00753706275f));
  p = fused_f32(p, s, all_f32(0.0604021922f));
  p = fused_f32(p, s, all_f32(-0.186522171f));
  p = fused_f32(p, s, all_f32(0.387136877f));
  p = fused_f32(p, s, all_f32(-0.607896626f));
  p = fused_f32(p, s, all_f32(0.755285144f));
  return p / (magnitude + 4.0f);
}

/* Φ(x) by its series, for |x| up to a half. */
static inline vector_f32 normal_near_zero_f32(vector_f32 x) {
  vector_f32 square = x * x;
  vector_f32 p = fused_f32(all_f32(-9.4446563e-6f), square, all_f32(1.1543469e-4f));
  p = fused_f32(p, square, all_f32(-1.1873282e-3f));
  p = fused_f32(p, square, all_f32(9.9735570e-3f));
  p = fused_f32(p, square, all_f32(-6.6490380e-2f));
  p = fused_f32(p, square, all_f32(0.39894228f));
  return fused_f32(p, x, all_f32(0.5f));
}

#endif
