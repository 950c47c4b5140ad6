/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic and sums on the preferred device against plain loops in double precision. Results of one rounding are
 * compared exactly. */
#include "reference.h"

/* ---- arithmetic ---- */

typedef struct binary_case {
  helio_shape a, b, made;
} binary_case;

typedef helio_tensor *binary(helio_tensor *a, helio_tensor *b);
static binary *const binaries[] = {helio_add, helio_sub, helio_mul};

static double calculate(int which, double a, double b) {
  return which == 0 ? a + b : which == 1 ? a - b : a * b;
}

static void check_binaries(const array *a, const array *b, const helio_shape *shape) {
  helio_tensor *x = tensor_of(a), *y = tensor_of(b);
  for (int which = 0; which < 3; which++) {
    array want = array_new(a->type, *shape);
    for (int64_t i = 0; i < want.elements; i++) {
      double left = a->values[broadcast_index(&a->shape, shape, i)];
      double right = b->values[broadcast_index(&b->shape, shape, i)];
      want.values[i] = as_type(a->type, calculate(which, left, right));
    }
    helio_tensor *made = binaries[which](x, y);
    expect_array(made, want, 0);
    expect_same_bits(made, binaries[which](x, y));
  }
}

static void test_arithmetic(void **state) {
  static const binary_case cases[] = {
      {NO_AXES, NO_AXES, NO_AXES},
      {SHAPE(7), NO_AXES, SHAPE(7)},
      {NO_AXES, SHAPE(3, 5), SHAPE(3, 5)},
      {SHAPE(1), SHAPE(0), SHAPE(0)},
      {SHAPE(0, 5), SHAPE(5), SHAPE(0, 5)},
      {SHAPE(5, 0), SHAPE(1, 1), SHAPE(5, 0)},
      {SHAPE(13, 17), SHAPE(13, 17), SHAPE(13, 17)},
      {SHAPE(13, 17), SHAPE(17), SHAPE(13, 17)},
      {SHAPE(13, 17), SHAPE(13, 1), SHAPE(13, 17)},
      {SHAPE(13, 1), SHAPE(1, 17), SHAPE(13, 17)},
      {SHAPE(1, 5, 1), SHAPE(3, 1, 7), SHAPE(3, 5, 7)},
      {SHAPE(2, 3, 1, 5), SHAPE(3, 4, 1), SHAPE(2, 3, 4, 5)},
      {SHAPE(2, 1, 3, 1, 2, 1, 3, 1), SHAPE(1, 2, 1, 3, 1, 2, 1, 2), SHAPE(2, 2, 3, 3, 2, 2, 3, 2)},
      {SHAPE(401, 503), SHAPE(503), SHAPE(401, 503)},
      {SHAPE(401, 1), SHAPE(401, 211), SHAPE(401, 211)},
  };
  (void)state;
  for (size_t t = 0; t < NUMBER_TYPES; t++) {
    for (size_t i = 0; i < COUNT(cases); i++) {
      HELIO_POOL {
        array a = array_random(all_types[t].type, cases[i].a, i), b = array_random(a.type, cases[i].b, i + 99);
        check_binaries(&a, &b, &cases[i].made);
        free(a.values);
        free(b.values);
      }
    }
  }
}

static void test_arithmetic_specials(void **state) {
  static const double left[] = {NAN, INFINITY, INFINITY, 0, -INFINITY, 60000, 1e30, -0.0, 1, NAN};
  static const double right[] = {1, -INFINITY, 1, INFINITY, INFINITY, 60000, 1e30, 0.0, NAN, NAN};
  (void)state;
  for (size_t t = 0; t < NUMBER_TYPES; t++) {
    if (!all_types[t].is_float) continue;
    HELIO_POOL {
      array a = array_new(all_types[t].type, HELIO_SHAPE((int64_t)COUNT(left))), b = array_new(a.type, a.shape);
      for (int64_t i = 0; i < a.elements; i++) {
        a.values[i] = as_type(a.type, left[i]);
        b.values[i] = as_type(a.type, right[i]);
      }
      check_binaries(&a, &b, &a.shape);
      free(a.values);
      free(b.values);
    }
  }
}

/* Integers wrap: too large by one is the smallest. */
static void test_integers_wrap(void **state) {
  static const int32_t ones[] = {1, 1, 1}, edge[] = {INT32_MAX, 1 << 30, -5};
  static const int32_t want[3][3] = {{INT32_MIN, (1 << 30) + 1, -4},
                                     {-INT32_MAX + 1, 1 - (1 << 30), 6},
                                     {1, 0, 25}}; /* 1 + edge, 1 − edge, edge × edge */
  int32_t seen[3];
  int64_t long_seen;
  (void)state;
  HELIO_POOL {
    helio_tensor *a = helio_constant(ones, HELIO_SHAPE(3), .type = HELIO_INT32);
    helio_tensor *b = helio_constant(edge, HELIO_SHAPE(3), .type = HELIO_INT32);
    helio_tensor *made[] = {helio_add(a, b), helio_sub(a, b), helio_mul(b, b)};
    for (int i = 0; i < 3; i++) {
      assert_ok(helio_tensor_read(made[i], seen, sizeof seen));
      assert_memory_equal(seen, want[i], sizeof seen);
    }
    assert_ok(helio_tensor_read(helio_add_n((helio_tensor *[]){a, b}, 2), seen, sizeof seen));
    assert_memory_equal(seen, want[0], sizeof seen);
    helio_tensor *large = helio_constant(((int64_t[]){INT64_MAX, 3}), HELIO_SHAPE(2), .type = HELIO_INT64);
    assert_ok(helio_tensor_read(helio_sum(large), &long_seen, sizeof long_seen));
    assert_true(long_seen == INT64_MIN + 2);
    assert_ok(helio_tensor_read(helio_sum(helio_add(b, b)), seen, sizeof seen[0]));
    assert_int_equal(seen[0], INT32_MAX - 11); /* −2 − 2³¹ − 10 */
  }
}

static void check_add_n(helio_type type, const helio_shape *shape, int count) {
  helio_tensor *inputs[100];
  array want = array_new(type, *shape);
  for (int i = 0; i < count; i++) {
    array a = array_between(type, *shape, (uint64_t)i, 0, 2);
    for (int64_t k = 0; k < a.elements; k++) want.values[k] += a.values[k];
    inputs[i] = tensor_of(&a);
    free(a.values);
  }
  helio_tensor *made = helio_add_n(inputs, count);
  expect_array(made, want, count == 1 ? 0 : facts_of(type)->reduced);
  expect_same_bits(made, helio_add_n(inputs, count));
}

static void test_add_n(void **state) {
  static const int counts[] = {1, 2, 3, 17, 100};
  (void)state;
  for (size_t t = 0; t < NUMBER_TYPES; t++) {
    for (size_t i = 0; i < COUNT(odd_shapes); i++) HELIO_POOL check_add_n(all_types[t].type, &odd_shapes[i], 3);
    for (size_t i = 0; i < COUNT(counts); i++) {
      HELIO_POOL check_add_n(all_types[t].type, &HELIO_SHAPE(5, 7), counts[i]);
    }
  }
}

static void test_relu(void **state) {
  static const double specials[] = {NAN, INFINITY, -INFINITY, -0.0, 0, -1e-3, 1e-3};
  (void)state;
  for (size_t t = 0; t < NUMBER_TYPES; t++) {
    for (size_t i = 0; i < COUNT(odd_shapes); i++) {
      HELIO_POOL {
        array a = array_random(all_types[t].type, odd_shapes[i], i), want = array_new(a.type, a.shape);
        for (int64_t k = 0; all_types[t].is_float && k < a.elements && k < 7; k++) {
          a.values[k] = as_type(a.type, specials[k]);
        }
        for (int64_t k = 0; k < a.elements; k++) want.values[k] = a.values[k] < 0 ? 0 : a.values[k];
        helio_tensor *x = tensor_of(&a), *made = helio_relu(x);
        expect_array(made, want, 0);
        expect_same_bits(made, helio_relu(x));
        free(a.values);
      }
    }
  }
}

/* ---- sum ---- */

static array sum_reference(const array *x, uint32_t set, bool keep_dims) {
  helio_shape kept = x->shape, shape = {0};
  for (int i = 0; i < kept.rank; i++) {
    if (set >> i & 1) kept.extent[i] = 1;
    if (keep_dims || !(set >> i & 1)) shape.extent[shape.rank++] = kept.extent[i];
  }
  array want = array_new(x->type, kept);
  for (int64_t i = 0; i < x->elements; i++) {
    want.values[broadcast_index(&kept, &x->shape, i)] += x->values[i];
  }
  want.shape = shape;
  return want;
}

typedef struct sum_case {
  helio_shape shape;
  helio_axes axes;
} sum_case;

static const sum_case sum_cases[] = {
    {NO_AXES, {0, {0}}},
    {SHAPE(1), {0, {0}}},
    {SHAPE(7), {1, {-1}}},
    {SHAPE(0), {0, {0}}},
    {SHAPE(0, 5), {1, {0}}},
    {SHAPE(0, 5), {1, {1}}},
    {SHAPE(5, 0), {1, {1}}},
    {SHAPE(13, 17), {0, {0}}},
    {SHAPE(13, 17), {1, {0}}},
    {SHAPE(13, 17), {1, {1}}},
    {SHAPE(13, 17), {2, {1, 0}}},
    {SHAPE(13, 17), {3, {1, 1, -1}}}, /* named more than once */
    {SHAPE(3, 5, 7), {1, {1}}},
    {SHAPE(3, 5, 7), {2, {0, 2}}},
    {SHAPE(3, 1, 5), {1, {1}}},
    {SHAPE(2, 3, 2, 3, 2, 3, 2, 3), {4, {0, 2, -1, 5}}},
    {SHAPE(2, 3, 2, 3, 2, 3, 2, 3), {2, {1, 3}}},
    {SHAPE(401, 503), {1, {0}}},
    {SHAPE(401, 503), {1, {1}}},
    {SHAPE(3, 30011), {1, {1}}},
    {SHAPE(30011, 3), {1, {0}}},
};

static void check_sum(helio_type type, const sum_case *c, bool keep_dims) {
  uint32_t set = c->axes.count ? 0 : 255;
  for (int i = 0; i < c->axes.count; i++) {
    int axis = c->axes.axis[i];
    set |= 1u << (axis < 0 ? axis + c->shape.rank : axis);
  }
  /* Halves of a large sum are out of their range. */
  double high = type == HELIO_FLOAT16 ? 0.25 : 2;
  array a = array_between(type, c->shape, 77, 0, high);
  helio_tensor *x = tensor_of(&a);
  helio_tensor *made = helio_sum(x, c->axes, keep_dims);
  expect_array(made, sum_reference(&a, set, keep_dims), facts_of(type)->reduced);
  expect_same_bits(made, helio_sum(x, c->axes, keep_dims));
  free(a.values);
}

static void test_sum(void **state) {
  (void)state;
  for (size_t t = 0; t < NUMBER_TYPES; t++) {
    for (size_t i = 0; i < 2 * COUNT(sum_cases); i++) HELIO_POOL check_sum(all_types[t].type, &sum_cases[i / 2], i % 2);
  }
}

/* A million numbers, one behind the other in float32, would be off by 1e-3 or so. */
static void test_sum_is_accurate(void **state) {
  static const helio_shape as[] = {SHAPE(1000000), SHAPE(1000, 1000), SHAPE(1000000, 1)};
  (void)state;
  for (size_t i = 0; i < COUNT(as); i++) {
    HELIO_POOL {
      array a = array_between(HELIO_FLOAT32, as[i], i, 0, 1);
      expect_array(helio_sum(tensor_of(&a)), sum_reference(&a, 255, false), 1e-6);
      free(a.values);
    }
  }
  HELIO_POOL {
    assert_true(fabs(helio_item(helio_sum(helio_fill(HELIO_SHAPE(1000000), 0.1))) / 1e5 - 1) < 1e-6);
  }
}

static void test_sum_specials(void **state) {
  static const double rows[6][3] = {{1, INFINITY, 2},  {INFINITY, -INFINITY, 1}, {1, NAN, 2},
                                    {1, 2, -INFINITY}, {60000, 60000, -60000},   {60000, 60000, 0}};
  (void)state;
  for (size_t t = 0; t < NUMBER_TYPES; t++) {
    if (!all_types[t].is_float) continue;
    HELIO_POOL {
      array a = array_new(all_types[t].type, HELIO_SHAPE(6, 3));
      for (int64_t i = 0; i < a.elements; i++) a.values[i] = as_type(a.type, rows[i / 3][i % 3]);
      array want = sum_reference(&a, 2, false);
      for (int64_t i = 0; i < want.elements; i++) want.values[i] = as_type(a.type, want.values[i]);
      helio_tensor *x = tensor_of(&a);
      expect_array(helio_sum(x, HELIO_AXES(1)), want, 0);
      expect_array(helio_sum(x, HELIO_AXES(0)), sum_reference(&a, 1, false), 0); /* none of them finite */
      free(a.values);
    }
  }
}

/* More shapes than the library keeps plans for, twice, so that what was dropped is made again. */
static void test_more_shapes_than_plans(void **state) {
  (void)state;
  for (int64_t round = 0; round < 2; round++) {
    for (int64_t rows = 1; rows <= 50; rows++) {
      HELIO_POOL {
        for (int64_t columns = 1; columns <= 50; columns++) {
          helio_tensor *x = helio_relu(helio_fill(HELIO_SHAPE(rows, columns), 2));
          if (columns % 7 == 0) assert_true(helio_item(helio_sum(x)) == 2.0 * (double)(rows * columns));
        }
      }
    }
  }
}

/* ---- what there is ---- */

static void test_types_of_backends(void **state) {
  static const char *const for_all[] = {"fill", "copy", "cast", "reshape", "expand_dims", "squeeze", "slice", "concat"};
  static const char *const for_numbers[] = {"add", "sub", "mul", "add_n", "sum", "matmul", "relu"};
  int count;
  (void)state;
  const char *backend = helio_logical_devices(NULL, &count)[0]->backend;
  for (size_t i = 0; i < COUNT(for_all); i++) assert_int_equal(helio_operation_types(for_all[i], backend), 0x1FE);
  for (size_t i = 0; i < COUNT(for_numbers); i++) {
    assert_int_equal(helio_operation_types(for_numbers[i], backend), 0x7E);
  }
  assert_int_equal(helio_operation_types("conv", backend), 0);
  assert_int_equal(helio_operation_types("add", "abacus"), 0);
  assert_non_null(helio_operations(&count));
  assert_in_range(count, COUNT(for_all) + COUNT(for_numbers), 128);
}

/* ---- errors ---- */

static void test_arithmetic_errors(void **state) {
  const helio_status invalid = HELIO_INVALID_ARGUMENT, unsupported = HELIO_NOT_SUPPORTED;
  (void)state;
  HELIO_POOL {
    expect_refusal(helio_add(F32(2, 3), F32(2, 4)), invalid, "AddV2", "(2, 3)", "(2, 4)");
    expect_refusal(helio_sub(F32(3), F32(4)), invalid, "Sub", "(3,)", "(4,)");
    expect_refusal(helio_mul(F32(0), F32(2)), invalid, "Mul", "(0,)", "(2,)");
    expect_refusal(helio_add(F32(2), I32(2)), invalid, "AddV2", "float32", "int32");
    expect_refusal(helio_add(F32(2), NULL), invalid, "AddV2", "input 1", "NULL");
    expect_refusal(helio_add(NULL, F32(2)), invalid, "AddV2", "input 0", "NULL");
    expect_refusal(helio_relu(NULL), invalid, "Relu", "input 0", "NULL");
    expect_refusal(helio_relu(filled(HELIO_SHAPE(2), HELIO_BOOL)), unsupported, "Relu", "bool", "");
    helio_tensor *bytes = filled(HELIO_SHAPE(2), HELIO_UINT8);
    expect_refusal(helio_mul(bytes, bytes), unsupported, "Mul", "uint8", "");
    helio_tensor *pair[] = {F32(2, 3), F32(3, 2)}, *mixed[] = {F32(2), I32(2)}, *missing[] = {F32(2), NULL};
    expect_refusal(helio_add_n(pair, 2), invalid, "AddN", "(2, 3)", "(3, 2)");
    expect_refusal(helio_add_n(mixed, 2), invalid, "AddN", "float32", "int32");
    expect_refusal(helio_add_n(missing, 2), invalid, "AddN", "input 1", "NULL");
    expect_refusal(helio_add_n(pair, 0), invalid, "AddN", "0 inputs", "");
    expect_refusal(helio_add_n(pair, -1), invalid, "AddN", "-1 inputs", "");
    expect_refusal(helio_add_n(NULL, 2), invalid, "AddN", "", "");
    expect_refusal(helio_sum(F32(2, 3), HELIO_AXES(2)), invalid, "Sum", "axis 2", "(2, 3)");
    expect_refusal(helio_sum(F32(2, 3), HELIO_AXES(-3)), invalid, "Sum", "axis -3", "(2, 3)");
    expect_refusal(helio_sum(F32(2, 3), {9, {0}}), invalid, "Sum", "9 axes", "");
    expect_refusal(helio_sum(NULL), invalid, "Sum", "input 0", "NULL");
    expect_refusal(helio_cast(F32(2), (helio_type)77), invalid, "Cast", "77", "");
    expect_refusal(helio_cast(F32(2), (helio_type)0), invalid, "Cast", "0", "");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_arithmetic),
      cmocka_unit_test(test_arithmetic_specials),
      cmocka_unit_test(test_integers_wrap),
      cmocka_unit_test(test_add_n),
      cmocka_unit_test(test_relu),
      cmocka_unit_test(test_sum),
      cmocka_unit_test(test_sum_is_accurate),
      cmocka_unit_test(test_sum_specials),
      cmocka_unit_test(test_more_shapes_than_plans),
      cmocka_unit_test(test_types_of_backends),
      cmocka_unit_test(test_arithmetic_errors),
  };
  return run_with_each_code(tests, COUNT(tests));
}
