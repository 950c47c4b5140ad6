/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of helio.h around the rows: defaults, padding, shapes and errors. What the rows compute is checked by
 * the conformance program. */
#include <helio/plugin.h>

#include "test.h"

static helio_tensor *counting(helio_shape shape) {
  float data[512];
  int64_t count = 1;
  for (int i = 0; i < shape.rank; i++) count *= shape.extent[i];
  assert_true(count <= 512);
  for (int i = 0; i < count; i++) data[i] = (float)i;
  helio_tensor *tensor = helio_constant(data, shape);
  assert_made(tensor);
  return tensor;
}

static helio_tensor *integers(const int *values, int count) {
  helio_tensor *tensor = helio_constant(values, HELIO_SHAPE(count), .type = HELIO_INT32);
  assert_made(tensor);
  return tensor;
}

static void expect_floats(helio_tensor *tensor, helio_shape shape, const float *expected) {
  float values[512];
  assert_made(tensor);
  helio_shape seen = helio_tensor_shape(tensor);
  assert_int_equal(seen.rank, shape.rank);
  for (int i = 0; i < shape.rank; i++) assert_int_equal(seen.extent[i], shape.extent[i]);
  assert_ok(helio_tensor_read(tensor, values, (size_t)helio_tensor_elements(tensor) * sizeof(float)));
  for (int i = 0; i < helio_tensor_elements(tensor); i++) assert_float_equal(values[i], expected[i], 1e-5);
}
#define EXPECT(tensor, shape, ...) expect_floats(tensor, shape, (const float[]){__VA_ARGS__})

static void expect_shape(helio_tensor *tensor, helio_shape shape) {
  assert_made(tensor);
  helio_shape seen = helio_tensor_shape(tensor);
  assert_int_equal(seen.rank, shape.rank);
  for (int i = 0; i < shape.rank; i++) assert_int_equal(seen.extent[i], shape.extent[i]);
}

/* A kernel of ones over an image of ones counts the elements under it, and so shows where the padding lies. The numbers
 * are those of TensorFlow's rule for SAME: the odd element lies behind. */
static void test_same_padding(void **state) {
  (void)state;
  helio_tensor *kernel = helio_fill(HELIO_SHAPE(1, 3, 1, 1), 1);
  EXPECT(helio_nn_conv2d(helio_fill(HELIO_SHAPE(1, 1, 5, 1), 1), kernel, .padding = HELIO_SAME),
         HELIO_SHAPE(1, 1, 5, 1), 2, 3, 3, 3, 2);
  EXPECT(helio_nn_conv2d(helio_fill(HELIO_SHAPE(1, 1, 5, 1), 1), kernel, .padding = HELIO_SAME, .stride = {1, 2}),
         HELIO_SHAPE(1, 1, 3, 1), 2, 3, 2);
  EXPECT(helio_nn_conv2d(helio_fill(HELIO_SHAPE(1, 1, 6, 1), 1), kernel, .padding = HELIO_SAME, .stride = {1, 2}),
         HELIO_SHAPE(1, 1, 3, 1), 3, 3, 2);
  EXPECT(helio_nn_conv2d(helio_fill(HELIO_SHAPE(1, 1, 6, 1), 1), kernel, .padding = HELIO_SAME, .dilation = {1, 2}),
         HELIO_SHAPE(1, 1, 6, 1), 2, 2, 3, 3, 2, 2);
  EXPECT(helio_nn_conv2d(helio_fill(HELIO_SHAPE(1, 1, 5, 1), 1), kernel), HELIO_SHAPE(1, 1, 3, 1), 3, 3, 3);
}

static void test_conv1d(void **state) {
  (void)state;
  helio_tensor *x = counting(HELIO_SHAPE(2, 6, 2)), *kernel = counting(HELIO_SHAPE(3, 2, 4));
  helio_tensor *flat = helio_nn_conv1d(x, kernel, .stride = {2}, .bias = counting(HELIO_SHAPE(4)));
  expect_shape(flat, HELIO_SHAPE(2, 2, 4));
  /* by hand: y[0][0][0] = Σ x[0][t][c] kernel[t][c][0] = 0·0 + 1·4 + 2·8 + 3·12 + 4·16 + 5·20 */
  float values[16];
  assert_ok(helio_tensor_read(flat, values, sizeof values));
  assert_float_equal(values[0], 220, 1e-4);
  assert_float_equal(values[1], 220 + 15 + 1, 1e-4); /* each weight is one more, then the bias */
  expect_shape(helio_nn_conv1d(x, kernel, .padding = HELIO_SAME, .stride = {2}), HELIO_SHAPE(2, 3, 4));
  assert_null(helio_nn_conv1d(x, counting(HELIO_SHAPE(3, 3, 4))));
  expect_error(HELIO_INVALID_ARGUMENT, "channels");
  assert_null(helio_nn_conv1d(counting(HELIO_SHAPE(2, 6)), kernel));
  expect_error(HELIO_INVALID_ARGUMENT, "(2, 6)");
}

static void test_convolution_that_does_not_fit(void **state) {
  (void)state;
  helio_tensor *x = counting(HELIO_SHAPE(1, 4, 4, 2));
  assert_null(helio_nn_conv2d(x, counting(HELIO_SHAPE(5, 5, 2, 1))));
  expect_error(HELIO_INVALID_ARGUMENT, "leave no place");
  assert_null(helio_nn_conv2d(x, counting(HELIO_SHAPE(3, 3, 2, 3)), .groups = 2));
  expect_error(HELIO_INVALID_ARGUMENT, "Conv2D");
  assert_null(helio_nn_conv2d(x, counting(HELIO_SHAPE(3, 3, 2, 3)), .bias = counting(HELIO_SHAPE(2))));
  expect_error(HELIO_INVALID_ARGUMENT, "bias");
  assert_null(helio_nn_conv2d(x, counting(HELIO_SHAPE(3, 3, 2, 3)), .stride = {-1}));
  expect_error(HELIO_INVALID_ARGUMENT, "out of range");
  assert_null(helio_nn_conv2d(x, counting(HELIO_SHAPE(3, 3, 2, 3)), .padding = (helio_padding)7));
  expect_error(HELIO_INVALID_ARGUMENT, "padding 7");
  assert_null(helio_nn_conv2d(x, counting(HELIO_SHAPE(3, 3, 2, 3)), .activation = (helio_activation)99));
  expect_error(HELIO_INVALID_ARGUMENT, "99 is not an activation");
}

/* An activation gives the same whether it is written into the operation or around it. */
static void test_activations_inside(void **state) {
  static const helio_activation all[] = {HELIO_LINEAR,   HELIO_RELU,  HELIO_SIGMOID, HELIO_TANH,
                                         HELIO_SOFTPLUS, HELIO_SWISH, HELIO_GELU,    HELIO_GELU_TANH};
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    float inside[6], around[6];
    helio_tensor *a = helio_constant((float[]){-1, 0.5f, 2, -0.25f, 3, -2}, HELIO_SHAPE(2, 3));
    helio_tensor *b = helio_constant((float[]){0.5f, -1, 0.25f, 1, -0.5f, 0.75f, 0.1f, 0.2f, -0.3f}, HELIO_SHAPE(3, 3));
    helio_tensor *y = helio_matmul(a, b), *z = y;
    switch (all[i]) {
    case HELIO_RELU:
      z = helio_relu(y);
      break;
    case HELIO_SIGMOID:
      z = helio_sigmoid(y);
      break;
    case HELIO_TANH:
      z = helio_tanh(y);
      break;
    case HELIO_SOFTPLUS:
      z = helio_softplus(y);
      break;
    case HELIO_SWISH:
      z = helio_swish(y);
      break;
    case HELIO_GELU:
      z = helio_gelu(y, false);
      break;
    case HELIO_GELU_TANH:
      z = helio_gelu(y, true);
      break;
    default:
      break;
    }
    assert_ok(helio_tensor_read(z, around, sizeof around));
    assert_ok(helio_tensor_read(helio_matmul(a, b, .activation = all[i]), inside, sizeof inside));
    for (int j = 0; j < 6; j++) assert_float_equal(inside[j], around[j], 1e-6);
  }
}

static void test_pooling(void **state) {
  (void)state;
  helio_tensor *x = counting(HELIO_SHAPE(1, 4, 4, 1));
  EXPECT(helio_nn_max_pool(x), HELIO_SHAPE(1, 2, 2, 1), 5, 7, 13, 15); /* a window of 2 by default */
  EXPECT(helio_nn_average_pool(x), HELIO_SHAPE(1, 2, 2, 1), 2.5f, 4.5f, 10.5f, 12.5f);
  EXPECT(helio_nn_max_pool(x, .window = {3}, .stride = {1}), HELIO_SHAPE(1, 2, 2, 1), 10, 11, 14, 15);
  /* Padding counts neither as a value nor in the mean. */
  EXPECT(helio_nn_average_pool(x, .window = {3}, .stride = {3}, .padding = HELIO_SAME), HELIO_SHAPE(1, 2, 2, 1), 2.5f,
         4.5f, 10.5f, 12.5f);
  assert_null(helio_nn_max_pool(x, .window = {5}));
  expect_error(HELIO_INVALID_ARGUMENT, "MaxPool");
  assert_null(helio_nn_max_pool(counting(HELIO_SHAPE(4, 4))));
  expect_error(HELIO_INVALID_ARGUMENT, "(4, 4)");
}

static void test_split_and_concat_are_inverse(void **state) {
  (void)state;
  helio_tensor *x = counting(HELIO_SHAPE(4, 6, 2)), *parts[6];
  float before[48], after[48];
  assert_ok(helio_tensor_read(x, before, sizeof before));
  for (int axis = -3; axis < 3; axis++) {
    assert_ok(helio_split(x, 2, axis, parts));
    assert_ok(helio_tensor_read(helio_concat(parts, 2, axis), after, sizeof after));
    assert_memory_equal(before, after, sizeof before);
  }
  assert_int_equal(helio_split(x, 5, 1, parts), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "not 5 equal parts");
  assert_int_equal(helio_split(x, 2, 3, parts), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "axis 3");
}

static void test_transpose(void **state) {
  (void)state;
  EXPECT(helio_transpose(counting(HELIO_SHAPE(2, 3))), HELIO_SHAPE(3, 2), 0, 3, 1, 4, 2, 5);
  expect_shape(helio_transpose(counting(HELIO_SHAPE(2, 3, 4)), .permutation = HELIO_AXES(1, -1, 0)),
               HELIO_SHAPE(3, 4, 2));
  assert_null(helio_transpose(counting(HELIO_SHAPE(2, 3)), .permutation = HELIO_AXES(0, 0)));
  expect_error(HELIO_INVALID_ARGUMENT, "permutation");
  assert_null(helio_transpose(counting(HELIO_SHAPE(2, 3)), .permutation = HELIO_AXES(0)));
  expect_error(HELIO_INVALID_ARGUMENT, "1 axes are named");
}

static void test_rows(void **state) {
  (void)state;
  helio_tensor *table = counting(HELIO_SHAPE(3, 2));
  EXPECT(helio_gather_rows(table, integers((int[]){2, 0}, 2)), HELIO_SHAPE(2, 2), 4, 5, 0, 1);
  EXPECT(helio_scatter_add(table, integers((int[]){1, 1, 0}, 3), 2), HELIO_SHAPE(2, 2), 4, 5, 2, 4);
  EXPECT(helio_one_hot(integers((int[]){1, 7, 0}, 3), 2, HELIO_FLOAT32), HELIO_SHAPE(3, 2), 0, 1, 0, 0, 1, 0);
  EXPECT(helio_pad(counting(HELIO_SHAPE(2)), HELIO_SHAPE(1), HELIO_SHAPE(2), .value = 9), HELIO_SHAPE(5), 9, 0, 1, 9,
         9);
  assert_null(helio_gather_rows(table, table));
  expect_error(HELIO_NOT_SUPPORTED, "float32");
  assert_null(helio_scatter_add(table, integers((int[]){1}, 1), 2));
  expect_error(HELIO_INVALID_ARGUMENT, "one index for each row");
}

/* Bad data is found by the device and reported with the operation and the value at the next read; the state before it
 * is intact and the next operation works. */
static void test_bad_data(void **state) {
  float values[4];
  (void)state;
  helio_tensor *table = counting(HELIO_SHAPE(3, 2));
  helio_tensor *rows = helio_gather_rows(table, integers((int[]){1, 3}, 2));
  assert_made(rows);
  assert_int_equal(helio_tensor_read(rows, values, sizeof values), HELIO_BAD_DATA);
  expect_error(HELIO_BAD_DATA, "3");
  helio_tensor *losses = helio_nn_sparse_cross_entropy(table, integers((int[]){0, -1, 1}, 3));
  assert_int_equal(helio_tensor_read(losses, values, 3 * sizeof(float)), HELIO_BAD_DATA);
  expect_error(HELIO_BAD_DATA, "-1");
  EXPECT(helio_gather_rows(table, integers((int[]){0, 1}, 2)), HELIO_SHAPE(2, 2), 0, 1, 2, 3);
  EXPECT(table, HELIO_SHAPE(3, 2), 0, 1, 2, 3, 4, 5);
}

static void test_reductions(void **state) {
  (void)state;
  helio_tensor *x = counting(HELIO_SHAPE(2, 3)), *places;
  EXPECT(helio_mean(x), HELIO_SCALAR, 2.5f);
  EXPECT(helio_max(x, .axes = HELIO_AXES(0)), HELIO_SHAPE(3), 3, 4, 5);
  EXPECT(helio_min(x, .axes = HELIO_AXES(-1), .keep_dims = true), HELIO_SHAPE(2, 1), 0, 3);
  EXPECT(helio_top_k(x, 2, &places), HELIO_SHAPE(2, 2), 2, 1, 5, 4);
  EXPECT(helio_cast(places, HELIO_FLOAT32), HELIO_SHAPE(2, 2), 2, 1, 2, 1);
  EXPECT(helio_cast(helio_argmax(x, 0), HELIO_FLOAT32), HELIO_SHAPE(3), 1, 1, 1);
  assert_null(helio_argmax(x, 2));
  expect_error(HELIO_INVALID_ARGUMENT, "axis 2");
  assert_null(helio_top_k(x, 4, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "k is 4");
}

/* Classes that are tied at the border count as in, as in TensorFlow: of 0.1, 0.8, 0.8, 0.2 each 0.8 is the largest. */
static void test_in_top_k(void **state) {
  (void)state;
  helio_tensor *x = helio_constant((float[]){0.1f, 0.8f, 0.8f, 0.2f, 0.4f, 0.3f, 0.2f, 0.1f}, HELIO_SHAPE(2, 4));
  EXPECT(helio_cast(helio_in_top_k(x, integers((int[]){2, 1}, 2), 1), HELIO_FLOAT32), HELIO_SHAPE(2), 1, 0);
  EXPECT(helio_cast(helio_in_top_k(x, integers((int[]){3, 1}, 2), 2), HELIO_FLOAT32), HELIO_SHAPE(2), 0, 1);
  EXPECT(helio_cast(helio_in_top_k(x, integers((int[]){4, -1}, 2), 4), HELIO_FLOAT32), HELIO_SHAPE(2), 0, 0);
}

static void test_losses_keep_leading_axes(void **state) {
  (void)state;
  helio_tensor *x = helio_fill(HELIO_SHAPE(2, 3, 4), 1); /* all classes alike: the loss is log 4 */
  helio_tensor *labels = helio_reshape(integers((int[]){0, 1, 2, 3, 0, 1}, 6), HELIO_SHAPE(2, 3));
  float log4 = 1.386294361f;
  EXPECT(helio_nn_sparse_cross_entropy(x, labels), HELIO_SHAPE(2, 3), log4, log4, log4, log4, log4, log4);
  EXPECT(helio_nn_cross_entropy(x, helio_one_hot(labels, 4, HELIO_FLOAT32)), HELIO_SHAPE(2, 3), log4, log4, log4, log4,
         log4, log4);
  assert_null(helio_nn_sparse_cross_entropy(x, integers((int[]){0, 1}, 2)));
  expect_error(HELIO_INVALID_ARGUMENT, "(2, 3, 4)");
}

static void test_random_is_a_function_of_its_place(void **state) {
  float whole[64], part[16];
  (void)state;
  helio_tensor *all = helio_random_uniform(HELIO_SHAPE(64), .key = 7, .step = 3);
  helio_tensor *some = helio_random_uniform(HELIO_SHAPE(16), .key = 7, .step = 3, .base = 21);
  assert_ok(helio_tensor_read(all, whole, sizeof whole));
  assert_ok(helio_tensor_read(some, part, sizeof part));
  assert_memory_equal(whole + 21, part, sizeof part);
  for (int i = 0; i < 64; i++) assert_true(whole[i] >= 0 && whole[i] < 1);
  assert_null(helio_nn_dropout(all, 1.0));
  expect_error(HELIO_INVALID_ARGUMENT, "rate 1");
  assert_null(helio_random_uniform(HELIO_SHAPE(4), .type = HELIO_INT32));
  expect_error(HELIO_NOT_SUPPORTED, "int32");
}

static void test_operations_by_name(void **state) {
  helio_tensor *outputs[3];
  (void)state;
  helio_tensor *x = counting(HELIO_SHAPE(3));
  helio_operation_options options = {.size = sizeof options, .operation = "square", .inputs = &x, .input_count = 1};
  assert_ok(helio_operation_run(&options, outputs));
  EXPECT(outputs[0], HELIO_SHAPE(3), 0, 1, 4);
  options.operation = "sqare";
  assert_int_equal(helio_operation_run(&options, outputs), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "did you mean 'square'?");
  options.operation = "clip";
  assert_int_equal(helio_operation_run(&options, outputs), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "2 scalars");
  options.operation = "reshape";
  assert_int_equal(helio_operation_run(&options, outputs), HELIO_NOT_SUPPORTED);
  expect_error(HELIO_NOT_SUPPORTED, "helio_reshape");
}

/* What equal rows become: their sum, and the sum of their squares unless that is not wanted. */
static void test_rows_and_their_squares(void **state) {
  helio_tensor *outputs[3];
  (void)state;
  helio_tensor *inputs[] = {counting(HELIO_SHAPE(4, 2)), integers((int[]){5, 2, 5, 5}, 4)};
  helio_operation_options options = {
      .size = sizeof options, .operation = "combine_rows", .inputs = inputs, .input_count = 2};
  assert_ok(helio_operation_run(&options, outputs));
  EXPECT(outputs[0], HELIO_SHAPE(4, 2), 2, 3, 10, 13, 0, 0, 0, 0);
  EXPECT(helio_cast(outputs[1], HELIO_FLOAT32), HELIO_SHAPE(4), 2, 5, -1, -1);
  EXPECT(outputs[2], HELIO_SHAPE(4, 2), 4, 9, 52, 75, 0, 0, 0, 0);
  options.no_outputs = 4;
  assert_ok(helio_operation_run(&options, outputs));
  EXPECT(outputs[0], HELIO_SHAPE(4, 2), 2, 3, 10, 13, 0, 0, 0, 0);
  assert_null(outputs[2]);
  options.no_outputs = 2;
  assert_int_equal(helio_operation_run(&options, outputs), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "no result 1 that may be left out");
  options.no_outputs = 8;
  assert_int_equal(helio_operation_run(&options, outputs), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "no result 3");
}

/* Adagrad, whose sum of squares shows what was added to it. */
static helio_status adagrad(helio_tensor **sum, helio_tensor *gradient, helio_tensor *indices, helio_tensor *squares) {
  helio_tensor *outputs[3];
  *sum = helio_fill(HELIO_SHAPE(3, 2), 1);
  helio_tensor *inputs[] = {helio_fill(HELIO_SHAPE(3, 2), 0), *sum, gradient, indices, squares};
  helio_operation_options options = {.size = sizeof options,
                                     .operation = "adagrad_update",
                                     .inputs = inputs,
                                     .input_count = 5,
                                     .scalars = (helio_scalar[]){{.real = 0.1}, {.real = 0}, {.real = 0}},
                                     .scalar_count = 3};
  return helio_operation_run(&options, outputs);
}

static void test_updates_take_squares(void **state) {
  helio_tensor *sum;
  (void)state;
  helio_tensor *rows = helio_fill(HELIO_SHAPE(2, 2), 3), *dense = helio_fill(HELIO_SHAPE(3, 2), 3);
  helio_tensor *indices = integers((int[]){2, -1}, 2);
  assert_ok(adagrad(&sum, rows, indices, NULL));
  EXPECT(sum, HELIO_SHAPE(3, 2), 1, 1, 1, 1, 10, 10);
  assert_ok(adagrad(&sum, rows, indices, helio_fill(HELIO_SHAPE(2, 2), 5)));
  EXPECT(sum, HELIO_SHAPE(3, 2), 1, 1, 1, 1, 6, 6);
  assert_ok(adagrad(&sum, dense, NULL, NULL));
  EXPECT(sum, HELIO_SHAPE(3, 2), 10, 10, 10, 10, 10, 10);
  assert_int_equal(adagrad(&sum, dense, NULL, dense), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "but the gradient has no indices");
  assert_int_equal(adagrad(&sum, rows, indices, dense), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "shapes (2, 2) and (3, 2) of gradient and squares differ");
  assert_int_equal(adagrad(&sum, rows, indices, helio_cast(rows, HELIO_FLOAT64)), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "float64");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, start_afresh, start_afresh)
  const struct CMUnitTest tests[] = {
      TEST(test_same_padding),
      TEST(test_conv1d),
      TEST(test_convolution_that_does_not_fit),
      TEST(test_activations_inside),
      TEST(test_pooling),
      TEST(test_split_and_concat_are_inverse),
      TEST(test_transpose),
      TEST(test_rows),
      TEST(test_bad_data),
      TEST(test_reductions),
      TEST(test_in_top_k),
      TEST(test_losses_keep_leading_axes),
      TEST(test_random_is_a_function_of_its_place),
      TEST(test_operations_by_name),
      TEST(test_rows_and_their_squares),
      TEST(test_updates_take_squares),
  };
  return cmocka_run_group_tests_name("functions", tests, NULL, NULL);
}
