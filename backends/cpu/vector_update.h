/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of the optimizers: weights and slots are read and written once. One function does a vector of elements, the
 * last of which may be filled up, so that an element's result does not depend on where it stands. Square roots and
 * quotients are exact. */
#ifndef CPU_VECTOR_UPDATE_H
#define CPU_VECTOR_UPDATE_H

static inline vector_f32 root_f32(vector_f32 x) {
#if defined(__AVX512F__)
  return (vector_f32)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
  return (vector_f32)_mm256_sqrt_ps((__m256)x);
#elif defined(__x86_64__)
  return (vector_f32)_mm_sqrt_ps((__m128)x);
#else
  for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

static inline vector_f64 root_f64(vector_f64 x) {
#if defined(__AVX512F__)
  return (vector_f64)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX2__)
  return (vector_f64)_mm256_sqrt_pd((__m256d)x);
#elif defined(__x86_64__)
  return (vector_f64)_mm_sqrt_pd((__m128d)x);
#else
  for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) x[i] = __builtin_sqrt(x[i]);
  return x;
#endif
}

/* name, element, vector */
#define UPDATE_LIST(X)                                                                                                 \
  X(f32, float, vector_f32)                                                                                            \
  X(f64, double, vector_f64)

/* One vector of weights v[0] and slots v[1…]; g is the gradient, g2 its square or what was given in the place of that,
 * c are the constants, as cpu_update says. */
#define UPDATE_RULES(name, element, vector)                                                                            \
  static inline void sgd_##name(vector *v, vector g, vector g2, const element *c) {                                    \
    (void)g2;                                                                                                          \
    v[0] -= c[CPU_UPDATE_RATE] * g;                                                                                    \
  }                                                                                                                    \
  static inline void momentum_##name(vector *v, vector g, vector g2, const element *c) {                               \
    (void)g2;                                                                                                          \
    v[1] = c[CPU_UPDATE_MOMENTUM] * v[1] - c[CPU_UPDATE_RATE] * g;                                                     \
    v[0] += v[1];                                                                                                      \
  }                                                                                                                    \
  static inline void nesterov_##name(vector *v, vector g, vector g2, const element *c) {                               \
    (void)g2;                                                                                                          \
    v[1] = c[CPU_UPDATE_MOMENTUM] * v[1] - c[CPU_UPDATE_RATE] * g;                                                     \
    v[0] += c[CPU_UPDATE_MOMENTUM] * v[1] - c[CPU_UPDATE_RATE] * g;                                                    \
  }                                                                                                                    \
  static inline void adam_##name(vector *v, vector g, vector g2, const element *c) {                                   \
    v[1] += (g - v[1]) * c[CPU_UPDATE_ON_FIRST];                                                                       \
    v[2] += (g2 - v[2]) * c[CPU_UPDATE_ON_SECOND];                                                                     \
    v[0] -= c[CPU_UPDATE_RATE] * v[1] / (root_##name(v[2]) + c[CPU_UPDATE_EPSILON]);                                   \
  }                                                                                                                    \
  static inline void nadam_##name(vector *v, vector g, vector g2, const element *c) {                                  \
    v[1] += (g - v[1]) * c[CPU_UPDATE_ON_FIRST];                                                                       \
    v[2] += (g2 - v[2]) * c[CPU_UPDATE_ON_SECOND];                                                                     \
    vector step = c[CPU_UPDATE_ON_M] * v[1] + c[CPU_UPDATE_ON_GRADIENT] * g;                                           \
    v[0] -= c[CPU_UPDATE_RATE] * step / (root_##name(c[CPU_UPDATE_ON_V] * v[2]) + c[CPU_UPDATE_EPSILON]);              \
  }                                                                                                                    \
  static inline vector rmsprop_step_##name(vector *square, vector *mean, vector g, vector g2, const element *c) {      \
    *square = c[CPU_UPDATE_RHO] * *square + c[CPU_UPDATE_ON_SECOND] * g2;                                              \
    vector spread = *square;                                                                                           \
    if (mean != NULL) {                                                                                                \
      *mean = c[CPU_UPDATE_RHO] * *mean + c[CPU_UPDATE_ON_SECOND] * g;                                                 \
      spread -= *mean * *mean;                                                                                         \
    }                                                                                                                  \
    return c[CPU_UPDATE_RATE] * g / root_##name(spread + c[CPU_UPDATE_EPSILON]);                                       \
  }                                                                                                                    \
  static inline void rmsprop_##name(vector *v, vector g, vector g2, const element *c) {                                \
    v[0] -= rmsprop_step_##name(&v[1], NULL, g, g2, c);                                                                \
  }                                                                                                                    \
  static inline void rmsprop_mean_##name(vector *v, vector g, vector g2, const element *c) {                           \
    v[0] -= rmsprop_step_##name(&v[1], &v[2], g, g2, c);                                                               \
  }                                                                                                                    \
  static inline void rmsprop_momentum_##name(vector *v, vector g, vector g2, const element *c) {                       \
    v[2] = c[CPU_UPDATE_MOMENTUM] * v[2] + rmsprop_step_##name(&v[1], NULL, g, g2, c);                                 \
    v[0] -= v[2];                                                                                                      \
  }                                                                                                                    \
  static inline void rmsprop_both_##name(vector *v, vector g, vector g2, const element *c) {                           \
    v[2] = c[CPU_UPDATE_MOMENTUM] * v[2] + rmsprop_step_##name(&v[1], &v[3], g, g2, c);                                \
    v[0] -= v[2];                                                                                                      \
  }                                                                                                                    \
  static inline void adagrad_##name(vector *v, vector g, vector g2, const element *c) {                                \
    v[1] += g2;                                                                                                        \
    v[0] -= c[CPU_UPDATE_RATE] * g / root_##name(v[1] + c[CPU_UPDATE_EPSILON]);                                        \
  }
UPDATE_LIST(UPDATE_RULES)
#undef UPDATE_RULES

/* A span by one rule, which is inlined. `slots` counts the weights too. The last elements go through a vector that is
 * filled up with ones, whose results nobody reads. */
#define UPDATE_SPAN(name, element, vector)                                                                             \
  static inline __attribute__((always_inline)) void span_##name(                                                       \
      void (*rule)(vector *, vector, vector, const element *), int slots, void *const *state, const void *gradient,    \
      const void *squares, const double *constants, size_t count) {                                                    \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    element c[CPU_UPDATE_CONSTANTS];                                                                                   \
    vector v[CPU_UPDATE_SLOTS], g = {0}, g2;                                                                           \
    for (size_t i = 0; i < CPU_UPDATE_CONSTANTS; i++) c[i] = (element)constants[i];                                    \
    const bool decays = c[CPU_UPDATE_DECAY] != 0;                                                                      \
    size_t at = 0;                                                                                                     \
    for (; at + width <= count; at += width) {                                                                         \
      UNROLLED                                                                                                         \
      for (int s = 0; s < slots; s++) v[s] = *(const vector *)((const element *)state[s] + at);                        \
      if (gradient != NULL) g = *(const vector *)((const element *)gradient + at);                                     \
      g2 = g * g;                                                                                                      \
      if (squares != NULL) g2 = *(const vector *)((const element *)squares + at);                                      \
      if (decays) v[0] -= v[0] * c[CPU_UPDATE_DECAY];                                                                  \
      rule(v, g, g2, c);                                                                                               \
      UNROLLED                                                                                                         \
      for (int s = 0; s < slots; s++) *(vector *)((element *)state[s] + at) = v[s];                                    \
    }                                                                                                                  \
    size_t bytes = (count - at) * sizeof(element);                                                                     \
    if (bytes == 0) return;                                                                                            \
    UNROLLED                                                                                                           \
    for (int s = 0; s < slots; s++) {                                                                                  \
      v[s] = (vector){0} + 1;                                                                                          \
      memcpy(&v[s], (const element *)state[s] + at, bytes);                                                            \
    }                                                                                                                  \
    g = (vector){0};                                                                                                   \
    if (gradient != NULL) memcpy(&g, (const element *)gradient + at, bytes);                                           \
    g2 = g * g;                                                                                                        \
    if (squares != NULL) memcpy(&g2, (const element *)squares + at, bytes);                                            \
    if (decays) v[0] -= v[0] * c[CPU_UPDATE_DECAY];                                                                    \
    rule(v, g, g2, c);                                                                                                 \
    UNROLLED                                                                                                           \
    for (int s = 0; s < slots; s++) memcpy((element *)state[s] + at, &v[s], bytes);                                    \
  }
UPDATE_LIST(UPDATE_SPAN)
#undef UPDATE_SPAN

#define UPDATE_FUNCTION(name, element, vector)                                                                         \
  static void update_##name(cpu_update_rule rule, void *const *state, const void *gradient, const void *squares,       \
                            const double *constants, size_t count) {                                                   \
    switch (rule) {                                                                                                    \
    case CPU_UPDATE_SGD:                                                                                               \
      span_##name(sgd_##name, 1, state, gradient, squares, constants, count);                                          \
      break;                                                                                                           \
    case CPU_UPDATE_SGD_MOMENTUM:                                                                                      \
      span_##name(momentum_##name, 2, state, gradient, squares, constants, count);                                     \
      break;                                                                                                           \
    case CPU_UPDATE_SGD_NESTEROV:                                                                                      \
      span_##name(nesterov_##name, 2, state, gradient, squares, constants, count);                                     \
      break;                                                                                                           \
    case CPU_UPDATE_ADAM:                                                                                              \
      span_##name(adam_##name, 3, state, gradient, squares, constants, count);                                         \
      break;                                                                                                           \
    case CPU_UPDATE_NADAM:                                                                                             \
      span_##name(nadam_##name, 3, state, gradient, squares, constants, count);                                        \
      break;                                                                                                           \
    case CPU_UPDATE_RMSPROP:                                                                                           \
      span_##name(rmsprop_##name, 2, state, gradient, squares, constants, count);                                      \
      break;                                                                                                           \
    case CPU_UPDATE_RMSPROP_MEAN:                                                                                      \
      span_##name(rmsprop_mean_##name, 3, state, gradient, squares, constants, count);                                 \
      break;                                                                                                           \
    case CPU_UPDATE_RMSPROP_MOMENTUM:                                                                                  \
      span_##name(rmsprop_momentum_##name, 3, state, gradient, squares, constants, count);                             \
      break;                                                                                                           \
    case CPU_UPDATE_RMSPROP_BOTH:                                                                                      \
      span_##name(rmsprop_both_##name, 4, state, gradient, squares, constants, count);                                 \
      break;                                                                                                           \
    case CPU_UPDATE_ADAGRAD:                                                                                           \
      span_##name(adagrad_##name, 2, state, gradient, squares, constants, count);                                      \
      break;                                                                                                           \
    }                                                                                                                  \
  }
UPDATE_LIST(UPDATE_FUNCTION)
#undef UPDATE_FUNCTION

static void update(cpu_update_rule rule, helio_type type, void *const *state, const void *gradient, const void *squares,
                   const double *constants, size_t count) {
  if (type == HELIO_FLOAT32) {
    update_f32(rule, state, gradient, squares, constants, count);
  } else {
    update_f64(rule, state, gradient, squares, constants, count);
  }
}

#endif
