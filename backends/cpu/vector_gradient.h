/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of activations: dx of dy and of v, which is y or x as helio_activation_attributes says. Where an x is so
 * large that the derivative is 0 or 1 it is replaced by a smaller one, lest a part of the formula overflow. */
#ifndef CPU_VECTOR_GRADIENT_H
#define CPU_VECTOR_GRADIENT_H

typedef void gradient_function(void *dx, const void *dy, const void *v, size_t count, double alpha);

static inline vector_f32 within_f32(vector_f32 x, float limit) {
  return at_least_f32(at_most_f32(x, limit), -limit);
}

static inline vector_f32 swish_slope_f32(vector_f32 x) {
  x = within_f32(x, 100.0f);
  vector_f32 s = sigmoid_f32(x);
  return s * (x * (1.0f - s) + 1.0f);
}

static inline vector_f32 gelu_slope_f32(vector_f32 x) {
  vector_f32 fraction, scale, tail = normal_tail_f32(x, &fraction, &scale);
  vector_f32 exponential = (fraction + 1.0f) * scale, below = tail * exponential;
  vector_f32 distribution = select_f32((vector_i32)(x < 0.0f), below, 1.0f - below);
  return distribution + within_f32(x, 15.0f) * exponential * 0.3989422804f;
}

static inline vector_f32 gelu_tanh_slope_f32(vector_f32 x) {
  x = within_f32(x, 12.0f);
  vector_f32 s = sigmoid_f32(gelu_argument_f32(x));
  vector_f32 slope = fused_f32(x * x, all_f32(0.2140644488178027f), all_f32(1.5957691216057308f));
  return s * (x * slope * (1.0f - s) + 1.0f);
}

static inline double within_f64(double x, double limit) {
  return x > limit ? limit : x < -limit ? -limit : x;
}

static inline double swish_slope_f64(double x) {
  x = within_f64(x, 800.0);
  double s = sigmoid_f64(x);
  return s * (1.0 + x * (1.0 - s));
}

static inline double gelu_slope_f64(double x) {
  x = within_f64(x, 40.0);
  return 0.5 * erfc(x * -0.70710678118654752440) + x * 0.39894228040143267794 * exp(-0.5 * x * x);
}

static inline double gelu_tanh_slope_f64(double x) {
  x = within_f64(x, 30.0);
  double s = sigmoid_f64(gelu_argument_f64(x));
  return s * (1.0 + x * (1.5957691216057307117 + 0.214064448817800741 * x * x) * (1.0 - s));
}

#define GRADIENT_F32_LIST(X)                                                                                           \
  X(linear_gradient_f32, dy)                                                                                           \
  X(relu_gradient_f32, (vector_f32)((vector_i32)dy & ~(vector_i32)(v <= 0.0f)))                                        \
  X(sigmoid_gradient_f32, dy *(v * (1.0f - v)))                                                                        \
  X(tanh_gradient_f32, dy *(1.0f - v * v))                                                                             \
  X(softplus_gradient_f32, dy *sigmoid_f32(v))                                                                         \
  X(swish_gradient_f32, dy *swish_slope_f32(v))                                                                        \
  X(gelu_gradient_f32, dy *gelu_slope_f32(v))                                                                          \
  X(gelu_tanh_gradient_f32, dy *gelu_tanh_slope_f32(v))                                                                \
  X(elu_gradient_f32, select_f32((vector_i32)(v > 0.0f), dy, dy *(v + alpha)))                                         \
  X(leaky_relu_gradient_f32, select_f32((vector_i32)(v > 0.0f), dy, dy *alpha))

#define GRADIENT_F32_FUNCTION(name, value)                                                                             \
  static void name(void *target, const void *above, const void *source, size_t count, double parameter) {              \
    float *dxs = target;                                                                                               \
    const float *dys = above, *vs = source;                                                                            \
    const float alpha = (float)parameter;                                                                              \
    (void)alpha;                                                                                                       \
    size_t i = 0;                                                                                                      \
    for (; i + VECTOR_LANES <= count; i += VECTOR_LANES) {                                                             \
      const vector_f32 dy = *(const vector_f32 *)(dys + i), v = *(const vector_f32 *)(vs + i);                         \
      (void)v;                                                                                                         \
      *(vector_f32 *)(dxs + i) = value;                                                                                \
    }                                                                                                                  \
    if (i < count) {                                                                                                   \
      const vector_f32 dy = load_part_f32(dys + i, count - i), v = load_part_f32(vs + i, count - i);                   \
      (void)v;                                                                                                         \
      store_part_f32(dxs + i, value, count - i);                                                                       \
    }                                                                                                                  \
  }
GRADIENT_F32_LIST(GRADIENT_F32_FUNCTION)
#undef GRADIENT_F32_FUNCTION

#define GRADIENT_OTHER_LIST(X)                                                                                         \
  X(linear_gradient_f64, double, dy)                                                                                   \
  X(relu_gradient_f64, double, v <= 0 ? 0 : dy)                                                                        \
  X(sigmoid_gradient_f64, double, dy *(v * (1.0 - v)))                                                                 \
  X(tanh_gradient_f64, double, dy *(1.0 - v * v))                                                                      \
  X(softplus_gradient_f64, double, dy *sigmoid_f64(v))                                                                 \
  X(swish_gradient_f64, double, dy *swish_slope_f64(v))                                                                \
  X(gelu_gradient_f64, double, dy *gelu_slope_f64(v))                                                                  \
  X(gelu_tanh_gradient_f64, double, dy *gelu_tanh_slope_f64(v))                                                        \
  X(elu_gradient_f64, double, v > 0 ? dy : dy * (v + alpha))                                                           \
  X(leaky_relu_gradient_f64, double, v > 0 ? dy : dy * alpha)                                                          \
  X(linear_gradient_i32, int32_t, dy)                                                                                  \
  X(relu_gradient_i32, int32_t, v <= 0 ? 0 : dy)                                                                       \
  X(linear_gradient_i64, int64_t, dy)                                                                                  \
  X(relu_gradient_i64, int64_t, v <= 0 ? 0 : dy)

#define GRADIENT_OTHER_FUNCTION(name, element, value)                                                                  \
  static void name(void *target, const void *above, const void *source, size_t count, double alpha) {                  \
    element *dxs = target;                                                                                             \
    const element *dys = above, *vs = source;                                                                          \
    (void)alpha;                                                                                                       \
    for (size_t i = 0; i < count; i++) {                                                                               \
      const element dy = dys[i], v = vs[i];                                                                            \
      (void)v;                                                                                                         \
      dxs[i] = value;                                                                                                  \
    }                                                                                                                  \
  }
GRADIENT_OTHER_LIST(GRADIENT_OTHER_FUNCTION)
#undef GRADIENT_OTHER_FUNCTION

#define GRADIENT_FLOATS(name) [HELIO_FLOAT32] = name##_gradient_f32, [HELIO_FLOAT64] = name##_gradient_f64
#define GRADIENT_NUMBERS(name)                                                                                         \
  GRADIENT_FLOATS(name), [HELIO_INT32] = name##_gradient_i32, [HELIO_INT64] = name##_gradient_i64

static gradient_function *const gradient_table[HELIO_LEAKY_RELU + 1][HELIO_INT64 + 1] = {
    [HELIO_LINEAR] = {GRADIENT_NUMBERS(linear)},    [HELIO_RELU] = {GRADIENT_NUMBERS(relu)},
    [HELIO_SIGMOID] = {GRADIENT_FLOATS(sigmoid)},   [HELIO_TANH] = {GRADIENT_FLOATS(tanh)},
    [HELIO_SOFTPLUS] = {GRADIENT_FLOATS(softplus)}, [HELIO_SWISH] = {GRADIENT_FLOATS(swish)},
    [HELIO_GELU] = {GRADIENT_FLOATS(gelu)},         [HELIO_GELU_TANH] = {GRADIENT_FLOATS(gelu_tanh)},
    [HELIO_ELU] = {GRADIENT_FLOATS(elu)},           [HELIO_LEAKY_RELU] = {GRADIENT_FLOATS(leaky_relu)},
};

static void activation_gradient(uint32_t activation, helio_type type, void *dx, const void *dy, const void *v,
                                size_t count, double alpha) {
  if (!is_half(type)) {
    gradient_table[activation][type](dx, dy, v, count, alpha);
    return;
  }
  float above[CHUNK], value[CHUNK];
  for (size_t at = 0; at < count; at += CHUNK) {
    size_t some = chunk_of(count - at);
    half_widen(type, above, (const uint16_t *)dy + at, some);
    half_widen(type, value, (const uint16_t *)v + at, some);
    gradient_table[activation][HELIO_FLOAT32](above, above, value, some, alpha);
    half_narrow(type, (uint16_t *)dx + at, above, some);
  }
}

#endif
