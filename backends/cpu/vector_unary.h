/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one operand, and what follows a matrix product: bias and activation. A vector is read whole before it is
 * written, so the result may lie where the operand does. The last elements, fewer than a vector, are computed as a
 * vector too: what becomes of an element does not depend on its place. */
#ifndef CPU_VECTOR_UNARY_H
#define CPU_VECTOR_UNARY_H

typedef void unary_function(void *y, const void *x, size_t count, const double *parameters);

/* ---- float32 ---- */

/* √(8/π) (x + 0.044715 x³): GELU_TANH is x × sigmoid of this. */
static inline vector_f32 gelu_argument_f32(vector_f32 x) {
  return x * fused_f32(x * x, all_f32(0.0713548162726002f), all_f32(1.5957691216057307f));
}

static inline vector_f64 gelu_argument_wide(vector_f32_half x) {
  vector_f64 wide = __builtin_convertvector(x, vector_f64);
  return wide * (wide * wide * 0.071354816272600247 + 1.5957691216057307117);
}

/* The same, and what a float does not hold of it: that much is needed for its exponential. */
static inline vector_f32 gelu_argument_exact_f32(vector_f32 x, vector_f32 *rest) {
  vector_f64 lower = gelu_argument_wide(__builtin_shufflevector(x, x, LOWER_LANES));
  vector_f64 upper = gelu_argument_wide(__builtin_shufflevector(x, x, UPPER_LANES));
  vector_f32_half whole_lower = __builtin_convertvector(lower, vector_f32_half);
  vector_f32_half whole_upper = __builtin_convertvector(upper, vector_f32_half);
  lower -= __builtin_convertvector(whole_lower, vector_f64);
  upper -= __builtin_convertvector(whole_upper, vector_f64);
  *rest = __builtin_shufflevector(__builtin_convertvector(lower, vector_f32_half),
                                  __builtin_convertvector(upper, vector_f32_half), LOWER_LANES, UPPER_LANES);
  return __builtin_shufflevector(whole_lower, whole_upper, LOWER_LANES, UPPER_LANES);
}

static inline vector_f32 softplus_f32(vector_f32 x) {
  vector_f32 rest = log_one_plus_f32(exp_f32(-absolute_f32(x)));
  return rest + at_least_f32(x, 0.0f);
}

/* x × e ÷ (1 + e) below 0 and x ÷ (1 + e) above, where e × 2³² is given: e alone may be smaller than a float can be
 * where the product is not. */
static inline vector_f32 gated_f32(vector_f32 x, vector_f32 shifted) {
  vector_f32 product = x * shifted * 0x1p-32f;
  return select_f32((vector_i32)(x < 0.0f), product, x) / (shifted * 0x1p-32f + 1.0f);
}

static inline vector_f32 swish_f32(vector_f32 x) {
  return gated_f32(x, exp_shifted_f32(-absolute_f32(x), (vector_f32){0}, 32));
}

static inline vector_f32 gelu_tanh_f32(vector_f32 x) {
  vector_f32 rest, argument = gelu_argument_exact_f32(at_most_f32(absolute_f32(x), 20.0f), &rest);
  return gated_f32(x, exp_shifted_f32(-argument, -rest, 32));
}

/* x Φ(−|x|) comes without cancellation; above 0 it is what x is diminished by. */
static inline vector_f32 gelu_f32(vector_f32 x) {
  vector_f32 fraction, scale;
  vector_f32 product = normal_tail_f32(x, &fraction, &scale) * at_most_f32(x, 15.0f);
  product = fused_f32(product, fraction, product) * scale;
  vector_f32 y = select_f32((vector_i32)(x < 0.0f), product, x - product);
  return select_f32((vector_i32)(absolute_f32(x) < 0.5f), x * normal_near_zero_f32(x), y);
}

/* Names and values; `low` and `high` are the parameters, of which most use none. */
#define UNARY_F32_LIST(X)                                                                                              \
  X(neg_f32, -x)                                                                                                       \
  X(abs_f32, absolute_f32(x))                                                                                          \
  X(square_f32, x *x)                                                                                                  \
  X(sqrt_f32, square_root_f32(x))                                                                                      \
  X(rsqrt_f32, 1.0f / square_root_f32(x))                                                                              \
  X(exponential_f32, exp_f32(x))                                                                                       \
  X(logarithm_f32, log_f32(x))                                                                                         \
  X(clip_f32, at_most_f32(at_least_f32(x, low), high))                                                                 \
  X(logistic_f32, sigmoid_f32(x))                                                                                      \
  X(hyperbolic_f32, tanh_f32(x))                                                                                       \
  X(soft_f32, softplus_f32(x))                                                                                         \
  X(swished_f32, swish_f32(x))                                                                                         \
  X(gaussian_f32, gelu_f32(x))                                                                                         \
  X(gaussian_tanh_f32, gelu_tanh_f32(x))                                                                               \
  X(elu_f32, select_f32((vector_i32)(x > 0.0f), x, exp_minus_one_f32(at_most_f32(x, 0.0f)) * low))                     \
  X(leaky_relu_f32, select_f32((vector_i32)(x > 0.0f), x, x *low))

#define UNARY_F32_FUNCTION(name, value)                                                                                \
  static void name(void *target, const void *source, size_t count, const double *parameters) {                         \
    float *ys = target;                                                                                                \
    const float *xs = source;                                                                                          \
    const float low = (float)parameters[0], high = (float)parameters[1];                                               \
    (void)low;                                                                                                         \
    (void)high;                                                                                                        \
    size_t i = 0;                                                                                                      \
    for (; i + VECTOR_LANES <= count; i += VECTOR_LANES) {                                                             \
      const vector_f32 x = *(const vector_f32 *)(xs + i);                                                              \
      *(vector_f32 *)(ys + i) = value;                                                                                 \
    }                                                                                                                  \
    if (i < count) {                                                                                                   \
      const vector_f32 x = load_part_f32(xs + i, count - i);                                                           \
      store_part_f32(ys + i, value, count - i);                                                                        \
    }                                                                                                                  \
  }
UNARY_F32_LIST(UNARY_F32_FUNCTION)
#undef UNARY_F32_FUNCTION

/* ---- float64, by the C library, and integers, which wrap ---- */

static inline double sigmoid_f64(double x) {
  return 1.0 / (1.0 + exp(-x));
}

static inline double softplus_f64(double x) {
  return log1p(exp(-fabs(x))) + (x > 0 ? x : 0);
}

static inline double gelu_f64(double x) {
  return 0.5 * x * erfc(x * -0.70710678118654752440);
}

static inline double gelu_argument_f64(double x) {
  return x * (1.5957691216057307117 + 0.071354816272600247 * x * x);
}

#define UNARY_OTHER_LIST(X)                                                                                            \
  X(neg_f64, double, -x)                                                                                               \
  X(abs_f64, double, fabs(x))                                                                                          \
  X(square_f64, double, x *x)                                                                                          \
  X(sqrt_f64, double, sqrt(x))                                                                                         \
  X(rsqrt_f64, double, 1.0 / sqrt(x))                                                                                  \
  X(exponential_f64, double, exp(x))                                                                                   \
  X(logarithm_f64, double, log(x))                                                                                     \
  X(clip_f64, double, x<low ? (low > high ? high : low) : x> high ? high : x)                                          \
  X(logistic_f64, double, sigmoid_f64(x))                                                                              \
  X(hyperbolic_f64, double, tanh(x))                                                                                   \
  X(soft_f64, double, softplus_f64(x))                                                                                 \
  X(swished_f64, double, x / (1.0 + exp(-x)))                                                                          \
  X(gaussian_f64, double, gelu_f64(x))                                                                                 \
  X(gaussian_tanh_f64, double, x *sigmoid_f64(gelu_argument_f64(x)))                                                   \
  X(elu_f64, double, x > 0 ? x : expm1(x) * low)                                                                       \
  X(leaky_relu_f64, double, x > 0 ? x : x * low)                                                                       \
  X(neg_i32, int32_t, (int32_t)(0u - (uint32_t)x))                                                                     \
  X(abs_i32, int32_t, x < 0 ? (int32_t)(0u - (uint32_t)x) : x)                                                         \
  X(square_i32, int32_t, (int32_t)((uint32_t)x * (uint32_t)x))                                                         \
  X(clip_i32, int32_t, x<low ? (low > high ? high : low) : x> high ? high : x)                                         \
  X(neg_i64, int64_t, (int64_t)(UINT64_C(0) - (uint64_t)x))                                                            \
  X(abs_i64, int64_t, x < 0 ? (int64_t)(UINT64_C(0) - (uint64_t)x) : x)                                                \
  X(square_i64, int64_t, (int64_t)((uint64_t)x * (uint64_t)x))                                                         \
  X(clip_i64, int64_t, x<low ? (low > high ? high : low) : x> high ? high : x)

/* A parameter in an element's type, as cast() does it. */
static inline double parameter_double(double x) {
  return x;
}
#define PARAMETER(element, x)                                                                                          \
  _Generic((element)0, double : parameter_double, int32_t : f64_to_i32, int64_t : f64_to_i64)(x)

#define UNARY_OTHER_FUNCTION(name, element, value)                                                                     \
  static void name(void *target, const void *source, size_t count, const double *parameters) {                         \
    element *ys = target;                                                                                              \
    const element *xs = source;                                                                                        \
    const element low = PARAMETER(element, parameters[0]), high = PARAMETER(element, parameters[1]);                   \
    (void)low;                                                                                                         \
    (void)high;                                                                                                        \
    for (size_t i = 0; i < count; i++) {                                                                               \
      const element x = xs[i];                                                                                         \
      ys[i] = value;                                                                                                   \
    }                                                                                                                  \
  }
UNARY_OTHER_LIST(UNARY_OTHER_FUNCTION)
#undef UNARY_OTHER_FUNCTION

/* ---- tables ---- */

#define UNARY_FLOATS(name)  [HELIO_FLOAT32] = name##_f32, [HELIO_FLOAT64] = name##_f64
#define UNARY_NUMBERS(name) UNARY_FLOATS(name), [HELIO_INT32] = name##_i32, [HELIO_INT64] = name##_i64

static unary_function *const unary_table[CPU_UNARY_COUNT][HELIO_INT64 + 1] = {
    [CPU_NEG] = {UNARY_NUMBERS(neg)},         [CPU_ABS] = {UNARY_NUMBERS(abs)},
    [CPU_SQUARE] = {UNARY_NUMBERS(square)},   [CPU_SQRT] = {UNARY_FLOATS(sqrt)},
    [CPU_RSQRT] = {UNARY_FLOATS(rsqrt)},      [CPU_EXP] = {UNARY_FLOATS(exponential)},
    [CPU_LOG] = {UNARY_FLOATS(logarithm)},    [CPU_CLIP] = {UNARY_NUMBERS(clip)},
    [CPU_SIGMOID] = {UNARY_FLOATS(logistic)}, [CPU_TANH] = {UNARY_FLOATS(hyperbolic)},
    [CPU_SOFTPLUS] = {UNARY_FLOATS(soft)},    [CPU_SWISH] = {UNARY_FLOATS(swished)},
    [CPU_GELU] = {UNARY_FLOATS(gaussian)},    [CPU_GELU_TANH] = {UNARY_FLOATS(gaussian_tanh)},
    [CPU_ELU] = {UNARY_FLOATS(elu)},          [CPU_LEAKY_RELU] = {UNARY_FLOATS(leaky_relu)},
};

static void unary(cpu_unary operation, helio_type type, void *target, const void *source, size_t count,
                  const double *parameters) {
  if (!is_half(type)) {
    unary_table[operation][type](target, source, count, parameters);
    return;
  }
  float chunk[CHUNK];
  uint16_t *y = target;
  const uint16_t *x = source;
  for (size_t at = 0; at < count; at += CHUNK) {
    size_t some = chunk_of(count - at);
    half_widen(type, chunk, x + at, some);
    unary_table[operation][HELIO_FLOAT32](chunk, chunk, some, parameters);
    half_narrow(type, y + at, chunk, some);
  }
}

/* Elements that get their bias and then their activation while they are in the first cache. */
#define EPILOGUE_BLOCK 2048

static void activate(helio_type type, uint32_t activation, void *y, size_t count) {
  static const cpu_unary unary_of[HELIO_GELU_TANH + 1] = {
      [HELIO_SIGMOID] = CPU_SIGMOID, [HELIO_TANH] = CPU_TANH, [HELIO_SOFTPLUS] = CPU_SOFTPLUS,
      [HELIO_SWISH] = CPU_SWISH,     [HELIO_GELU] = CPU_GELU, [HELIO_GELU_TANH] = CPU_GELU_TANH};
  static const double none[2];
  if (activation == HELIO_RELU) relu(type, y, y, count);
  if (activation > HELIO_RELU) unary_table[unary_of[activation]][type](y, y, count, none);
}

static void epilogue(helio_type type, uint32_t activation, void *target, size_t stride, size_t rows, size_t columns,
                     const void *bias) {
  const size_t element = type_bytes[type];
  size_t block = stride == columns && columns > 0 && columns < EPILOGUE_BLOCK ? EPILOGUE_BLOCK / columns : 1;
  for (size_t row = 0; row < rows; row += block) {
    unsigned char *y = (unsigned char *)target + row * stride * element;
    size_t some = rows - row < block ? rows - row : block;
    for (size_t i = 0; bias != NULL && i < some; i++) {
      unsigned char *at = y + i * stride * element;
      arithmetic(CPU_ADD, CPU_FORM_BOTH, type, at, at, bias, columns);
    }
    activate(type, activation, y, some * columns);
  }
}

#endif
