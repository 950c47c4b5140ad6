/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise arithmetic. A vector is read whole before it is written, so the result may lie where an operand does. */
#ifndef CPU_VECTOR_ARITHMETIC_H
#define CPU_VECTOR_ARITHMETIC_H

typedef void arithmetic_function(cpu_form form, void *y, const void *left, const void *right, size_t count);

/* Integers are computed unsigned: they wrap. */
#define ARITHMETIC_LIST(X)                                                                                             \
  X(add_f32, float, vector_f32, +)                                                                                     \
  X(sub_f32, float, vector_f32, -)                                                                                     \
  X(mul_f32, float, vector_f32, *)                                                                                     \
  X(add_f64, double, vector_f64, +)                                                                                    \
  X(sub_f64, double, vector_f64, -)                                                                                    \
  X(mul_f64, double, vector_f64, *)                                                                                    \
  X(add_i32, uint32_t, vector_u32, +)                                                                                  \
  X(sub_i32, uint32_t, vector_u32, -)                                                                                  \
  X(mul_i32, uint32_t, vector_u32, *)                                                                                  \
  X(add_i64, uint64_t, vector_u64, +)                                                                                  \
  X(sub_i64, uint64_t, vector_u64, -)                                                                                  \
  X(mul_i64, uint64_t, vector_u64, *)

#define ARITHMETIC_FUNCTION(name, element, vector, operator)                                                           \
  static void name(cpu_form form, void *target, const void *left, const void *right, size_t count) {                   \
    element *y = target;                                                                                               \
    const element *a = left, *b = right;                                                                               \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    size_t i = 0;                                                                                                      \
    if (form == CPU_FORM_BOTH) {                                                                                       \
      for (; i + width <= count; i += width)                                                                           \
        *(vector *)(y + i) = *(const vector *)(a + i) operator*(const vector *)(b + i);                                \
      for (; i < count; i++) y[i] = a[i] operator b[i];                                                                \
    } else if (form == CPU_FORM_RIGHT_ONE) {                                                                           \
      const element one = *b;                                                                                          \
      for (; i + width <= count; i += width) *(vector *)(y + i) = *(const vector *)(a + i) operator one;               \
      for (; i < count; i++) y[i] = a[i] operator one;                                                                 \
    } else {                                                                                                           \
      const element one = *a;                                                                                          \
      for (; i + width <= count; i += width) *(vector *)(y + i) = one operator*(const vector *)(b + i);                \
      for (; i < count; i++) y[i] = one operator b[i];                                                                 \
    }                                                                                                                  \
  }
ARITHMETIC_LIST(ARITHMETIC_FUNCTION)
#undef ARITHMETIC_FUNCTION

static arithmetic_function *const arithmetic_table[3][HELIO_INT64 + 1] = {
    [CPU_ADD] =
        {[HELIO_FLOAT32] = add_f32, [HELIO_FLOAT64] = add_f64, [HELIO_INT32] = add_i32, [HELIO_INT64] = add_i64},
    [CPU_SUB] =
        {[HELIO_FLOAT32] = sub_f32, [HELIO_FLOAT64] = sub_f64, [HELIO_INT32] = sub_i32, [HELIO_INT64] = sub_i64},
    [CPU_MUL] =
        {[HELIO_FLOAT32] = mul_f32, [HELIO_FLOAT64] = mul_f64, [HELIO_INT32] = mul_i32, [HELIO_INT64] = mul_i64},
};

static void half_arithmetic(cpu_arithmetic operation, cpu_form form, helio_type type, uint16_t *y, const uint16_t *left,
                            const uint16_t *right, size_t count) {
  float a[CHUNK], b[CHUNK];
  arithmetic_function *compute = arithmetic_table[operation][HELIO_FLOAT32];
  if (form == CPU_FORM_LEFT_ONE) half_widen(type, a, left, 1);
  if (form == CPU_FORM_RIGHT_ONE) half_widen(type, b, right, 1);
  for (size_t at = 0; at < count; at += CHUNK) {
    size_t some = chunk_of(count - at);
    if (form != CPU_FORM_LEFT_ONE) half_widen(type, a, left + at, some);
    if (form != CPU_FORM_RIGHT_ONE) half_widen(type, b, right + at, some);
    float *result = form == CPU_FORM_LEFT_ONE ? b : a;
    compute(form, result, a, b, some);
    half_narrow(type, y + at, result, some);
  }
}

static void arithmetic(cpu_arithmetic operation, cpu_form form, helio_type type, void *y, const void *left,
                       const void *right, size_t count) {
  if (is_half(type)) {
    half_arithmetic(operation, form, type, y, left, right, count);
  } else {
    arithmetic_table[operation][type](form, y, left, right, count);
  }
}

/* The bits of x stay where x is not below or equal to 0, which NaN is not; a negative zero becomes a positive one. */
#define RELU_LIST(X)                                                                                                   \
  X(relu_f32, float, vector_f32, vector_i32)                                                                           \
  X(relu_f64, double, vector_f64, vector_i64)                                                                          \
  X(relu_i32, int32_t, vector_i32, vector_i32)                                                                         \
  X(relu_i64, int64_t, vector_i64, vector_i64)

#define RELU_FUNCTION(name, element, vector, mask)                                                                     \
  static void name(void *target, const void *source, size_t count) {                                                   \
    element *y = target;                                                                                               \
    const element *x = source;                                                                                         \
    const size_t width = sizeof(vector) / sizeof(element);                                                             \
    size_t i = 0;                                                                                                      \
    for (; i + width <= count; i += width) {                                                                           \
      vector value = *(const vector *)(x + i);                                                                         \
      mask gone = (mask)(value <= (element)0);                                                                         \
      *(mask *)(y + i) = (mask)value & ~gone;                                                                          \
    }                                                                                                                  \
    for (; i < count; i++) y[i] = x[i] <= (element)0 ? (element)0 : x[i];                                              \
  }
RELU_LIST(RELU_FUNCTION)
#undef RELU_FUNCTION

static void half_relu(helio_type type, uint16_t *y, const uint16_t *x, size_t count) {
  const unsigned infinity = type == HELIO_FLOAT16 ? 0x7c00u : 0x7f80u;
  for (size_t i = 0; i < count; i++) {
    bool gone = (x[i] & 0x8000u) != 0 && (x[i] & 0x7fffu) <= infinity;
    y[i] = gone ? 0 : x[i];
  }
}

static void relu(helio_type type, void *y, const void *x, size_t count) {
  switch (type) {
  case HELIO_FLOAT32:
    relu_f32(y, x, count);
    break;
  case HELIO_FLOAT64:
    relu_f64(y, x, count);
    break;
  case HELIO_INT32:
    relu_i32(y, x, count);
    break;
  case HELIO_INT64:
    relu_i64(y, x, count);
    break;
  default:
    half_relu(type, y, x, count);
    break;
  }
}

#endif
