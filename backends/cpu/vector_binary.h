/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of two operands besides those of vector_arithmetic.h: quotients, powers, extremes, comparisons; and the
 * choice between two operands by a third. Plain loops over blocks of a fixed length, which the compiler vectorizes. The
 * result lies on no operand. */
#ifndef CPU_VECTOR_BINARY_H
#define CPU_VECTOR_BINARY_H

/* Elements of a block. */
#define BLOCK_LENGTH 64

/* Division by zero gives 0; the lowest integer by -1 wraps to itself. */
static inline int32_t quotient_i32(int32_t a, int32_t b) {
  return b == 0 ? 0 : b == -1 ? (int32_t)(0u - (uint32_t)a) : a / b;
}
static inline int64_t quotient_i64(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? (int64_t)(UINT64_C(0) - (uint64_t)a) : a / b;
}

/* Name, type of the operands, type of the result, value. Of a float that is NaN an extreme is NaN. */
#define BINARY_NUMBERS(X, suffix, element)                                                                             \
  X(equal_##suffix, element, uint8_t, a == b)                                                                          \
  X(not_equal_##suffix, element, uint8_t, a != b)                                                                      \
  X(less_##suffix, element, uint8_t, a < b)                                                                            \
  X(less_equal_##suffix, element, uint8_t, a <= b)                                                                     \
  X(greater_##suffix, element, uint8_t, a > b)                                                                         \
  X(greater_equal_##suffix, element, uint8_t, a >= b)

#define BINARY_LIST(X)                                                                                                 \
  X(div_f32, float, float, a / b)                                                                                      \
  X(div_f64, double, double, a / b)                                                                                    \
  X(div_i32, int32_t, int32_t, quotient_i32(a, b))                                                                     \
  X(div_i64, int64_t, int64_t, quotient_i64(a, b))                                                                     \
  X(pow_f32, float, float, powf(a, b))                                                                                 \
  X(pow_f64, double, double, pow(a, b))                                                                                \
  X(maximum_f32, float, float, a > b || a != a ? a : b)                                                                \
  X(maximum_f64, double, double, a > b || a != a ? a : b)                                                              \
  X(maximum_i32, int32_t, int32_t, a > b ? a : b)                                                                      \
  X(maximum_i64, int64_t, int64_t, a > b ? a : b)                                                                      \
  X(minimum_f32, float, float, a < b || a != a ? a : b)                                                                \
  X(minimum_f64, double, double, a < b || a != a ? a : b)                                                              \
  X(minimum_i32, int32_t, int32_t, a < b ? a : b)                                                                      \
  X(minimum_i64, int64_t, int64_t, a < b ? a : b)                                                                      \
  BINARY_NUMBERS(X, f32, float)                                                                                        \
  BINARY_NUMBERS(X, f64, double)                                                                                       \
  BINARY_NUMBERS(X, i32, int32_t)                                                                                      \
  BINARY_NUMBERS(X, i64, int64_t)                                                                                      \
  BINARY_NUMBERS(X, u8, uint8_t)                                                                                       \
  X(equal_bool, uint8_t, uint8_t, (a != 0) == (b != 0))                                                                \
  X(not_equal_bool, uint8_t, uint8_t, (a != 0) != (b != 0))                                                            \
  X(less_bool, uint8_t, uint8_t, (a == 0) && (b != 0))                                                                 \
  X(less_equal_bool, uint8_t, uint8_t, (a == 0) || (b != 0))                                                           \
  X(greater_bool, uint8_t, uint8_t, (a != 0) && (b == 0))                                                              \
  X(greater_equal_bool, uint8_t, uint8_t, (a != 0) || (b == 0))

#define BINARY_LOOP(element, left, right, value)                                                                       \
  for (; i + BLOCK_LENGTH <= count; i += BLOCK_LENGTH) {                                                               \
    for (size_t j = i; j < i + BLOCK_LENGTH; j++) {                                                                    \
      const element a = left, b = right;                                                                               \
      y[j] = value;                                                                                                    \
    }                                                                                                                  \
  }                                                                                                                    \
  for (size_t j = i; j < count; j++) {                                                                                 \
    const element a = left, b = right;                                                                                 \
    y[j] = value;                                                                                                      \
  }

#define BINARY_FUNCTION(name, element, result, value)                                                                  \
  static void name(cpu_form form, void *target, const void *left, const void *right, size_t count) {                   \
    result *restrict y = target;                                                                                       \
    const element *as = left, *bs = right;                                                                             \
    const element a0 = *as, b0 = *bs;                                                                                  \
    size_t i = 0;                                                                                                      \
    if (form == CPU_FORM_BOTH) {                                                                                       \
      BINARY_LOOP(element, as[j], bs[j], value)                                                                        \
    } else if (form == CPU_FORM_RIGHT_ONE) {                                                                           \
      BINARY_LOOP(element, as[j], b0, value)                                                                           \
    } else {                                                                                                           \
      BINARY_LOOP(element, a0, bs[j], value)                                                                           \
    }                                                                                                                  \
  }
BINARY_LIST(BINARY_FUNCTION)
#undef BINARY_FUNCTION
#undef BINARY_LOOP

#define BINARY_OF_FLOATS(name)  [HELIO_FLOAT32] = name##_f32, [HELIO_FLOAT64] = name##_f64
#define BINARY_OF_NUMBERS(name) BINARY_OF_FLOATS(name), [HELIO_INT32] = name##_i32, [HELIO_INT64] = name##_i64
#define BINARY_OF_ALL(name)     BINARY_OF_NUMBERS(name), [HELIO_UINT8] = name##_u8, [HELIO_BOOL] = name##_bool

static arithmetic_function *const binary_table[CPU_ARITHMETIC_COUNT][HELIO_BOOL + 1] = {
    [CPU_DIV] = {BINARY_OF_NUMBERS(div)},         [CPU_POW] = {BINARY_OF_FLOATS(pow)},
    [CPU_MAXIMUM] = {BINARY_OF_NUMBERS(maximum)}, [CPU_MINIMUM] = {BINARY_OF_NUMBERS(minimum)},
    [CPU_EQUAL] = {BINARY_OF_ALL(equal)},         [CPU_NOT_EQUAL] = {BINARY_OF_ALL(not_equal)},
    [CPU_LESS] = {BINARY_OF_ALL(less)},           [CPU_LESS_EQUAL] = {BINARY_OF_ALL(less_equal)},
    [CPU_GREATER] = {BINARY_OF_ALL(greater)},     [CPU_GREATER_EQUAL] = {BINARY_OF_ALL(greater_equal)},
};

static void half_binary(cpu_arithmetic operation, cpu_form form, helio_type type, void *y, const uint16_t *left,
                        const uint16_t *right, size_t count) {
  float a[CHUNK], b[CHUNK], result[CHUNK];
  const bool compares = operation >= CPU_EQUAL;
  arithmetic_function *compute = binary_table[operation][HELIO_FLOAT32];
  if (form == CPU_FORM_LEFT_ONE) half_widen(type, a, left, 1);
  if (form == CPU_FORM_RIGHT_ONE) half_widen(type, b, right, 1);
  for (size_t at = 0; at < count; at += CHUNK) {
    size_t some = chunk_of(count - at);
    if (form != CPU_FORM_LEFT_ONE) half_widen(type, a, left + at, some);
    if (form != CPU_FORM_RIGHT_ONE) half_widen(type, b, right + at, some);
    compute(form, compares ? (void *)((uint8_t *)y + at) : result, a, b, some);
    if (!compares) half_narrow(type, (uint16_t *)y + at, result, some);
  }
}

static void binary(cpu_arithmetic operation, cpu_form form, helio_type type, void *y, const void *left,
                   const void *right, size_t count) {
  if (is_half(type)) {
    half_binary(operation, form, type, y, left, right, count);
  } else {
    binary_table[operation][type](form, y, left, right, count);
  }
}

/* The operands' steps are 1, or 0 where one element serves for all. */
#define CHOOSE_FUNCTION(name, element)                                                                                 \
  static void name(void *target, const void *left, size_t left_step, const void *right, size_t right_step,             \
                   const uint8_t *condition, size_t count) {                                                           \
    element *restrict y = target;                                                                                      \
    const element *as = left, *bs = right;                                                                             \
    element a[BLOCK_LENGTH], b[BLOCK_LENGTH];                                                                          \
    for (size_t j = 0; j < BLOCK_LENGTH && left_step == 0; j++) a[j] = *as;                                            \
    for (size_t j = 0; j < BLOCK_LENGTH && right_step == 0; j++) b[j] = *bs;                                           \
    size_t i = 0;                                                                                                      \
    for (; i + BLOCK_LENGTH <= count; i += BLOCK_LENGTH) {                                                             \
      const element *p = left_step == 0 ? a : as + i, *q = right_step == 0 ? b : bs + i;                               \
      for (size_t j = 0; j < BLOCK_LENGTH; j++) {                                                                      \
        const element yes = p[j], no = q[j];                                                                           \
        y[i + j] = condition[i + j] != 0 ? yes : no;                                                                   \
      }                                                                                                                \
    }                                                                                                                  \
    for (; i < count; i++) y[i] = condition[i] != 0 ? as[i * left_step] : bs[i * right_step];                          \
  }
CHOOSE_FUNCTION(choose_1, uint8_t)
CHOOSE_FUNCTION(choose_2, uint16_t)
CHOOSE_FUNCTION(choose_4, uint32_t)
CHOOSE_FUNCTION(choose_8, uint64_t)
#undef CHOOSE_FUNCTION

static void choose(size_t element, void *y, const void *left, size_t left_step, const void *right, size_t right_step,
                   const uint8_t *condition, size_t count) {
  switch (element) {
  case 1:
    choose_1(y, left, left_step, right, right_step, condition, count);
    break;
  case 2:
    choose_2(y, left, left_step, right, right_step, condition, count);
    break;
  case 4:
    choose_4(y, left, left_step, right, right_step, condition, count);
    break;
  default:
    choose_8(y, left, left_step, right, right_step, condition, count);
    break;
  }
}

#endif
