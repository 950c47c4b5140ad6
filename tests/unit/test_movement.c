/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that move values and change none but by one rounding: fill, copy, views, cast, slice, concat. On the
 * preferred device, compared exactly. */
#include "reference.h"

/* ---- made without kernels ---- */

static void test_fill(void **state) {
  static const double values[] = {0, 1, -3.75, 0.1, 300, -5, 1e9, 1e300, -1e300, NAN, INFINITY, -INFINITY, 6e-8};
  (void)state;
  for (size_t t = 0; t < COUNT(all_types); t++) {
    for (size_t i = 0; i < COUNT(odd_shapes) + COUNT(values); i++) {
      helio_shape shape = i < COUNT(odd_shapes) ? odd_shapes[i] : HELIO_SHAPE(3);
      double value = i < COUNT(odd_shapes) ? 1 : values[i - COUNT(odd_shapes)];
      array want = array_new(all_types[t].type, shape);
      for (int64_t k = 0; k < want.elements; k++) want.values[k] = as_type(want.type, value);
      HELIO_POOL expect_array(helio_fill(shape, value, want.type), want, 0);
    }
  }
  HELIO_POOL assert_int_equal(helio_tensor_type(helio_fill(HELIO_SHAPE(2), 1)), HELIO_FLOAT32);
}

static void test_copy(void **state) {
  (void)state;
  for (size_t t = 0; t < COUNT(all_types); t++) {
    for (size_t i = 0; i < COUNT(odd_shapes); i++) {
      HELIO_POOL {
        array a = array_random(all_types[t].type, odd_shapes[i], t + i);
        expect_array(helio_copy(tensor_of(&a)), a, 0);
      }
    }
  }
}

typedef struct view_case {
  helio_shape from, asked, made;
} view_case;

static void test_reshape(void **state) {
  static const view_case cases[] = {
      {SHAPE(2, 6), SHAPE(3, 4), SHAPE(3, 4)},
      {SHAPE(2, 6), SHAPE(-1), SHAPE(12)},
      {SHAPE(2, 6), SHAPE(4, -1, 1), SHAPE(4, 3, 1)},
      {SHAPE(1, 1), NO_AXES, NO_AXES},
      {NO_AXES, SHAPE(1, 1, 1, 1, 1, 1, 1, 1), SHAPE(1, 1, 1, 1, 1, 1, 1, 1)},
      {SHAPE(0, 3), SHAPE(7, 0), SHAPE(7, 0)},
      {SHAPE(0, 3), SHAPE(-1, 5), SHAPE(0, 5)},
  };
  (void)state;
  for (size_t t = 0; t < COUNT(all_types); t++) {
    for (size_t i = 0; i < COUNT(cases); i++) {
      HELIO_POOL {
        array a = array_random(all_types[t].type, cases[i].from, i);
        helio_tensor *made = helio_reshape(tensor_of(&a), cases[i].asked);
        a.shape = cases[i].made;
        expect_array(made, a, 0);
      }
    }
  }
}

static void test_expand_dims(void **state) {
  static const struct {
    helio_shape from;
    int axis;
    helio_shape made;
  } cases[] = {
      {NO_AXES, 0, SHAPE(1)},           {NO_AXES, -1, SHAPE(1)},           {SHAPE(2, 3), 0, SHAPE(1, 2, 3)},
      {SHAPE(2, 3), 1, SHAPE(2, 1, 3)}, {SHAPE(2, 3), -1, SHAPE(2, 3, 1)}, {SHAPE(2, 3), -3, SHAPE(1, 2, 3)},
      {SHAPE(0), 0, SHAPE(1, 0)},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    HELIO_POOL {
      array a = array_random(HELIO_FLOAT32, cases[i].from, i);
      helio_tensor *made = helio_expand_dims(tensor_of(&a), cases[i].axis);
      a.shape = cases[i].made;
      expect_array(made, a, 0);
    }
  }
}

static void test_squeeze(void **state) {
  static const struct {
    helio_shape from;
    helio_axes axes;
    helio_shape made;
  } cases[] = {
      {SHAPE(1, 2, 1, 3), {0, {0}}, SHAPE(2, 3)},
      {SHAPE(1, 2, 1, 3), {1, {0}}, SHAPE(2, 1, 3)},
      {SHAPE(1, 2, 1, 3), {1, {-2}}, SHAPE(1, 2, 3)},
      {SHAPE(1, 2, 1, 3), {2, {2, 0}}, SHAPE(2, 3)},
      {SHAPE(1, 1, 1), {0, {0}}, NO_AXES},
      {SHAPE(1, 0), {0, {0}}, SHAPE(0)},
      {SHAPE(2, 3), {0, {0}}, SHAPE(2, 3)},
      {NO_AXES, {0, {0}}, NO_AXES},
      {SHAPE(1, 1, 2, 1, 1, 1, 3, 1), {0, {0}}, SHAPE(2, 3)},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    HELIO_POOL {
      array a = array_random(HELIO_INT32, cases[i].from, i);
      helio_tensor *x = tensor_of(&a);
      helio_tensor *made = helio_squeeze(x, cases[i].axes);
      a.shape = cases[i].made;
      expect_array(made, a, 0);
    }
  }
}

/* ---- cast ---- */

/* Values that every type takes differently. */
static const double castable[] = {0,
                                  1,
                                  -1,
                                  0.5,
                                  -0.5,
                                  1.9,
                                  -1.9,
                                  2.5,
                                  100,
                                  254.9,
                                  255.5,
                                  256,
                                  -128,
                                  -200.75,
                                  65504,
                                  65519.9,
                                  65520,
                                  -70000,
                                  2147483647,
                                  -2147483648.0,
                                  2147483648.0,
                                  -1e10,
                                  1e18,
                                  0x1p63,
                                  -0x1p63,
                                  1e20,
                                  -1e20,
                                  3.4e38,
                                  1e39,
                                  0x1p-24,
                                  0x1.8p-25,
                                  0x1p-25,
                                  1e-40,
                                  0.1,
                                  1.0009765625,
                                  1 + 0x1p-11 + 0x1p-40,
                                  1 + 0x1p-8 + 0x1p-40,
                                  NAN,
                                  INFINITY,
                                  -INFINITY,
                                  -0.0};

/* From an integer to a smaller one the low bits stay, as in C and TensorFlow. */
static double cast_value(helio_type from, helio_type to, double value) {
  if (!facts_of(from)->is_float && to == HELIO_UINT8) return (double)(uint8_t)(uint64_t)(int64_t)value;
  if (!facts_of(from)->is_float && to == HELIO_INT32) return (double)(int32_t)(uint32_t)(uint64_t)(int64_t)value;
  return as_type(to, value);
}

static array castable_array(helio_type type) {
  array a = array_new(type, HELIO_SHAPE((int64_t)COUNT(castable)));
  for (int64_t i = 0; i < a.elements; i++) {
    a.values[i] = as_type(type, castable[i]);
    if (type == HELIO_INT64 && a.values[i] == 0x1p63) a.values[i] = 1e18; /* has no double */
  }
  return a;
}

static void test_cast(void **state) {
  (void)state;
  for (size_t from = 0; from < COUNT(all_types); from++) {
    for (size_t to = 0; to < COUNT(all_types); to++) {
      HELIO_POOL {
        array a = castable_array(all_types[from].type), want = array_new(all_types[to].type, a.shape);
        for (int64_t i = 0; i < a.elements; i++) want.values[i] = cast_value(a.type, want.type, a.values[i]);
        expect_array(helio_cast(tensor_of(&a), want.type), want, 0);
        free(a.values);
      }
    }
  }
}

static void test_cast_ends(void **state) {
  static const double beyond[] = {1e30, -1e30, NAN, INFINITY, -INFINITY};
  static const int64_t want[] = {INT64_MAX, INT64_MIN, 0, INT64_MAX, INT64_MIN};
  int64_t seen[5];
  (void)state;
  HELIO_POOL {
    helio_tensor *x = helio_constant(beyond, HELIO_SHAPE(5), .type = HELIO_FLOAT64);
    assert_ok(helio_tensor_read(helio_cast(x, HELIO_INT64), seen, sizeof seen));
    assert_memory_equal(seen, want, sizeof seen);
    helio_tensor *narrow = helio_cast(x, HELIO_FLOAT32);
    assert_ok(helio_tensor_read(helio_cast(narrow, HELIO_INT64), seen, sizeof seen));
    assert_memory_equal(seen, want, sizeof seen);
  }
}

static void test_cast_shapes(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(odd_shapes); i++) {
    HELIO_POOL {
      array a = array_between(HELIO_INT32, odd_shapes[i], i, -1000, 1000), want = a;
      helio_tensor *x = tensor_of(&a);
      want.type = HELIO_FLOAT16;
      expect_array(helio_cast(x, HELIO_FLOAT16), want, 0);
    }
  }
}

/* ---- slice and concat ---- */

static array slice_reference(const array *x, const helio_shape *begin, const helio_shape *extents) {
  helio_shape shape = *extents;
  for (int i = 0; i < shape.rank; i++) {
    if (shape.extent[i] == -1) shape.extent[i] = x->shape.extent[i] - begin->extent[i];
  }
  array part = array_new(x->type, shape);
  for (int64_t at = 0; at < part.elements; at++) {
    int64_t rest = at, index = 0, stride = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
      index += (rest % shape.extent[i] + begin->extent[i]) * stride;
      stride *= x->shape.extent[i];
      rest /= shape.extent[i];
    }
    part.values[at] = x->values[index];
  }
  return part;
}

static void test_slice(void **state) {
  static const view_case cases[] = {
      {SHAPE(7), SHAPE(2), SHAPE(3)},
      {SHAPE(7), SHAPE(7), SHAPE(-1)},
      {SHAPE(7, 5), SHAPE(3, 0), SHAPE(2, -1)},
      {SHAPE(7, 5), SHAPE(1, 2), SHAPE(3, 2)},
      {SHAPE(7, 5), SHAPE(0, 4), SHAPE(-1, 1)},
      {SHAPE(7, 5), SHAPE(6, 0), SHAPE(0, 5)},
      {SHAPE(7, 0), SHAPE(3, 0), SHAPE(2, 0)},
      {NO_AXES, NO_AXES, NO_AXES},
      {SHAPE(4, 3, 5, 2), SHAPE(1, 0, 2, 0), SHAPE(2, 3, 3, 2)},
      {SHAPE(2, 1, 3, 1, 2, 1, 3, 2), SHAPE(0, 0, 1, 0, 1, 0, 0, 1), SHAPE(2, 1, 2, 1, 1, 1, 3, 1)},
      {SHAPE(401, 503), SHAPE(5, 3), SHAPE(390, 497)},
  };
  (void)state;
  for (size_t t = 0; t < COUNT(all_types); t++) {
    for (size_t i = 0; i < COUNT(cases); i++) {
      HELIO_POOL {
        array a = array_random(all_types[t].type, cases[i].from, t * 31 + i);
        helio_tensor *part = helio_slice(tensor_of(&a), cases[i].asked, cases[i].made);
        expect_array(part, slice_reference(&a, &cases[i].asked, &cases[i].made), 0);
        free(a.values);
      }
    }
  }
}

/* Copies `part` into `whole` from `begin` on along the axis. */
static void place_part(array *whole, const array *part, int axis, int64_t begin) {
  int64_t inner = 1;
  for (int i = axis + 1; i < part->shape.rank; i++) inner *= part->shape.extent[i];
  for (int64_t at = 0; at < part->elements; at++) {
    int64_t along = at / inner % part->shape.extent[axis], outer = at / inner / part->shape.extent[axis];
    whole->values[(outer * whole->shape.extent[axis] + begin + along) * inner + at % inner] = part->values[at];
  }
}

static void check_concat(helio_type type, const helio_shape *like, int axis, const int64_t *extents, int count) {
  helio_tensor *inputs[40];
  array parts[40];
  int positive = axis < 0 ? axis + like->rank : axis;
  helio_shape shape = *like;
  shape.extent[positive] = 0;
  for (int i = 0; i < count; i++) {
    helio_shape one = *like;
    one.extent[positive] = extents[i % 3];
    shape.extent[positive] += one.extent[positive];
    parts[i] = array_random(type, one, (uint64_t)i);
    inputs[i] = tensor_of(&parts[i]);
  }
  array whole = array_new(type, shape);
  int64_t begin = 0;
  for (int i = 0; i < count; i++) {
    place_part(&whole, &parts[i], positive, begin);
    begin += parts[i].shape.extent[positive];
    free(parts[i].values);
  }
  expect_array(helio_concat(inputs, count, axis), whole, 0);
}

static void test_concat(void **state) {
  static const struct {
    helio_shape like;
    int axis;
    int64_t extents[3];
    int count;
  } cases[] = {
      {SHAPE(0), 0, {3, 4, 5}, 3},          {SHAPE(0, 5), 0, {2, 1, 7}, 3},
      {SHAPE(5, 0), 1, {2, 1, 7}, 3},       {SHAPE(5, 0), -1, {2, 0, 7}, 3},
      {SHAPE(2, 0, 3), 1, {1, 2, 3}, 1},    {SHAPE(2, 0, 3), -2, {1, 2, 3}, 40},
      {SHAPE(0, 0, 3), 1, {1, 2, 3}, 3},    {SHAPE(2, 1, 3, 0, 2, 1, 3, 2), 3, {1, 2, 1}, 4},
      {SHAPE(301, 0), 1, {400, 1, 211}, 3},
  };
  (void)state;
  for (size_t t = 0; t < COUNT(all_types); t++) {
    for (size_t i = 0; i < COUNT(cases); i++) {
      HELIO_POOL check_concat(all_types[t].type, &cases[i].like, cases[i].axis, cases[i].extents, cases[i].count);
    }
  }
}

/* What was cut apart is put together again. */
static void test_split_and_concat(void **state) {
  (void)state;
  HELIO_POOL {
    array a = array_random(HELIO_FLOAT32, HELIO_SHAPE(11, 13), 5);
    helio_tensor *x = tensor_of(&a);
    helio_tensor *left = helio_slice(x, HELIO_SHAPE(0, 0), HELIO_SHAPE(-1, 4));
    helio_tensor *right = helio_slice(x, HELIO_SHAPE(0, 4), HELIO_SHAPE(-1, -1));
    expect_array(helio_concat((helio_tensor *[]){left, right}, 2, 1), a, 0);
  }
}

/* ---- errors ---- */

static void test_movement_errors(void **state) {
  const helio_status invalid = HELIO_INVALID_ARGUMENT;
  (void)state;
  HELIO_POOL {
    helio_tensor *x = F32(2, 3), *full = F32(1, 1, 1, 1, 1, 1, 1, 1), *scalar = filled(HELIO_SCALAR, HELIO_FLOAT32);
    expect_refusal(helio_reshape(x, HELIO_SHAPE(4)), invalid, "Reshape", "(2, 3)", "(4,)");
    expect_refusal(helio_reshape(x, HELIO_SHAPE(-1, -1)), invalid, "Reshape", "(2, 3)", "(-1, -1)");
    expect_refusal(helio_reshape(x, HELIO_SHAPE(-1, 4)), invalid, "Reshape", "(2, 3)", "(-1, 4)");
    expect_refusal(helio_reshape(x, HELIO_SHAPE(-2, -3)), invalid, "Reshape", "(2, 3)", "(-2, -3)");
    expect_refusal(helio_reshape(F32(0), HELIO_SHAPE(-1, 0)), invalid, "Reshape", "(0,)", "(-1, 0)");
    expect_refusal(helio_reshape(x, (helio_shape){9, {0}}), invalid, "Reshape", "(2, 3)", "");
    expect_refusal(helio_expand_dims(x, 3), invalid, "ExpandDims", "axis 3", "(2, 3");
    expect_refusal(helio_expand_dims(x, -4), invalid, "ExpandDims", "axis -4", "(2, 3");
    expect_refusal(helio_expand_dims(full, 0), invalid, "ExpandDims", "8", "");
    expect_refusal(helio_squeeze(x, HELIO_AXES(0)), invalid, "Squeeze", "axis 0", "(2, 3)");
    expect_refusal(helio_squeeze(x, HELIO_AXES(5)), invalid, "Squeeze", "axis 5", "(2, 3)");
    expect_refusal(helio_slice(x, HELIO_SHAPE(0), HELIO_SHAPE(1)), invalid, "Slice", "(2, 3)", "(1,)");
    expect_refusal(helio_slice(x, HELIO_SHAPE(0, 0), HELIO_SHAPE(1)), invalid, "Slice", "2", "1");
    expect_refusal(helio_slice(x, HELIO_SHAPE(1, 0), HELIO_SHAPE(2, 3)), invalid, "Slice", "axis 0", "(2, 3)");
    expect_refusal(helio_slice(x, HELIO_SHAPE(0, -1), HELIO_SHAPE(2, 1)), invalid, "Slice", "axis 1", "(2, 3)");
    expect_refusal(helio_slice(x, HELIO_SHAPE(0, 4), HELIO_SHAPE(2, -1)), invalid, "Slice", "axis 1", "(2, 3)");
    expect_refusal(helio_slice(x, HELIO_SHAPE(0, 0), HELIO_SHAPE(2, -2)), invalid, "Slice", "axis 1", "(2, 3)");
    expect_refusal(helio_concat((helio_tensor *[]){x, F32(3, 3)}, 2, 1), invalid, "Concat", "(2, 3)", "(3, 3)");
    expect_refusal(helio_concat((helio_tensor *[]){x, F32(3)}, 2, 0), invalid, "Concat", "(2, 3)", "(3,)");
    expect_refusal(helio_concat((helio_tensor *[]){x, I32(2, 3)}, 2, 0), invalid, "Concat", "float32", "int32");
    expect_refusal(helio_concat((helio_tensor *[]){x}, 1, 2), invalid, "Concat", "axis 2", "(2, 3)");
    expect_refusal(helio_concat((helio_tensor *[]){scalar}, 1, 0), invalid, "Concat", "axis 0", "()");
    expect_refusal(helio_concat(NULL, 0, 0), invalid, "Concat", "0 inputs", "");
    expect_refusal(helio_concat((helio_tensor *[]){x, NULL}, 2, 0), invalid, "Concat", "input 1", "NULL");
  }
}

static void test_sizes_that_overflow(void **state) {
  static const helio_shape large[] = {
      SHAPE(INT64_MAX), SHAPE(INT64_MAX, INT64_MAX), SHAPE(1LL << 32, 1LL << 32), SHAPE(1LL << 62), SHAPE(3, -1),
      SHAPE(INT64_MIN)};
  const helio_status invalid = HELIO_INVALID_ARGUMENT;
  (void)state;
  for (size_t i = 0; i < COUNT(large); i++) {
    expect_refusal(helio_fill(large[i], 1), invalid, "Fill", "too large", "");
    expect_refusal(helio_constant("", large[i]), invalid, "constant", "too large", "");
  }
  expect_refusal(helio_fill((helio_shape){9, {0}}, 1), invalid, "Fill", "not valid", "");
  expect_refusal(helio_fill((helio_shape){-1, {0}}, 1), invalid, "Fill", "not valid", "");
  HELIO_POOL {
    helio_tensor *tall = F32(1 << 20, 1, 0), *wide = F32(0, 1LL << 40, 1);
    helio_shape vast = {8, {1LL << 32, 0, 1LL << 40, 1, 1, 1, 1, 1}};
    assert_made(tall);
    assert_made(wide);
    assert_int_equal(helio_tensor_elements(filled(vast, HELIO_FLOAT32)), 0);
    helio_tensor *column = helio_reshape(F32(0), HELIO_SHAPE(1LL << 40, 1, 0));
    helio_tensor *kept = helio_sum(column, HELIO_AXES(2)); /* 2⁴⁰ zeros of 4 bytes */
    assert_null(kept);
    expect_error(HELIO_OUT_OF_MEMORY, "out of memory");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fill),
      cmocka_unit_test(test_copy),
      cmocka_unit_test(test_reshape),
      cmocka_unit_test(test_expand_dims),
      cmocka_unit_test(test_squeeze),
      cmocka_unit_test(test_cast),
      cmocka_unit_test(test_cast_ends),
      cmocka_unit_test(test_cast_shapes),
      cmocka_unit_test(test_slice),
      cmocka_unit_test(test_concat),
      cmocka_unit_test(test_split_and_concat),
      cmocka_unit_test(test_movement_errors),
      cmocka_unit_test(test_sizes_that_overflow),
  };
  return run_with_each_code(tests, COUNT(tests));
}
