/* SPDX-License-Identifier: Apache-2.0 */
/* What optimizers accept and refuse, which variables they know, where they keep what they know. */
#include <math.h>

#include "ops/tape_nodes.h"
#include "optimizer_net.h"

/* ---- options ---- */

static void refuse(helio_optimizer *optimizer, const char *part) {
  assert_null(optimizer);
  expect_error(HELIO_INVALID_ARGUMENT, part);
}

static void test_options(void **state) {
  (void)state;
  refuse(helio_adam(.rho = 0.9), "Adam has no rho");
  refuse(helio_adam(.rho = HELIO_ZERO), "Adam has no rho");
  refuse(helio_adam(.nesterov = true), "Adam has no nesterov");
  refuse(helio_sgd(.epsilon = 1e-3), "SGD has no epsilon");
  refuse(helio_sgd(.centered = true), "SGD has no centered");
  refuse(helio_adagrad(.momentum = 0.9), "Adagrad has no momentum");
  refuse(helio_rmsprop(.beta2 = 0.9), "RMSprop has no beta2");
  refuse(helio_nadam(.initial_accumulator_value = 1), "Nadam has no initial_accumulator_value");
  refuse(helio_sgd(-0.1), "learning_rate is -0.1");
  refuse(helio_sgd(NAN), "learning_rate is nan");
  refuse(helio_sgd(INFINITY), "learning_rate is inf");
  refuse(helio_sgd(.momentum = 1.5), "momentum is 1.5; it must be a number from 0 to 1");
  refuse(helio_adam(.beta1 = 1), "beta1 is 1; it must be a number from 0 to below 1");
  refuse(helio_adam(.clip_norm = -1), "clip_norm is -1");
  refuse(helio_adam(.weight_decay = NAN), "weight_decay is nan");
  refuse(helio_adam(.clip_norm = 1, .clip_value = 2), "Only one of clip_norm, clip_value and global_clip_norm");
  refuse(helio_adam(.clip_norm = 1, .global_clip_norm = HELIO_ZERO), "Only one of");
  refuse(helio_sgd(.accumulate_steps = 1), "accumulate_steps must be >= 2");
  refuse(helio_sgd(.accumulate_steps = -2), "accumulate_steps must be >= 2");
  refuse(helio_sgd(0.1, .schedule = helio_exponential_decay(0.1, 3, 0.5)), "both set");
  refuse(helio_adam_with(NULL), "options is NULL");
  assert_made(helio_sgd(.momentum = 1));
  assert_made(helio_adam(.clip_norm = HELIO_ZERO, .beta1 = HELIO_ZERO, .epsilon = HELIO_ZERO));
  assert_true(helio_optimizer_learning_rate(helio_sgd(HELIO_ZERO)) == 0);
  assert_true(helio_optimizer_learning_rate(helio_sgd()) == 0.01);
  assert_true(helio_optimizer_learning_rate(helio_adam()) == 0.001);
}

static void test_schedule_options(void **state) {
  (void)state;
  const int64_t boundaries[] = {3, 3};
  const double values[] = {1, 2, NAN};
  assert_null(helio_exponential_decay(0.1, 0, 0.5));
  expect_error(HELIO_INVALID_ARGUMENT, "steps must be > 0");
  assert_null(helio_exponential_decay(0.1, 10));
  expect_error(HELIO_INVALID_ARGUMENT, "rate, the factor of the decay, is missing");
  assert_null(helio_exponential_decay(-0.1, 10, 0.5));
  expect_error(HELIO_INVALID_ARGUMENT, "initial is -0.1");
  assert_null(helio_exponential_decay(0.1, 10, 0.5, .warmup_steps = 3));
  expect_error(HELIO_INVALID_ARGUMENT, "helio_exponential_decay has no warmup_steps");
  assert_null(helio_polynomial_decay(0.1, 10, .alpha = 0.5));
  expect_error(HELIO_INVALID_ARGUMENT, "helio_polynomial_decay has no alpha");
  assert_null(helio_cosine_decay(0.1, 10, .warmup_steps = 3));
  expect_error(HELIO_INVALID_ARGUMENT, "warmup_steps need a warmup_target");
  assert_null(helio_cosine_decay(0.1, 10, .warmup_target = 1, .warmup_steps = -3));
  expect_error(HELIO_INVALID_ARGUMENT, "warmup_steps must be >= 0");
  assert_null(helio_piecewise_constant_decay(.boundary_count = 1));
  expect_error(HELIO_INVALID_ARGUMENT, "is missing");
  assert_null(helio_piecewise_constant_decay(.boundaries = boundaries, .values = values, .boundary_count = 2));
  expect_error(HELIO_INVALID_ARGUMENT, "boundaries[1]");
  assert_null(helio_piecewise_constant_decay(.boundaries = (int64_t[]){3, 4}, .values = values, .boundary_count = 2));
  expect_error(HELIO_INVALID_ARGUMENT, "values[2] is nan");
  assert_true(isnan(helio_schedule_rate(NULL, 0)));
  expect_error(HELIO_INVALID_ARGUMENT, "the schedule is NULL");
  assert_true(isnan(helio_schedule_rate(helio_cosine_decay(0.1, 10), -1)));
  expect_error(HELIO_INVALID_ARGUMENT, "steps count from 0");
  helio_schedule *to_zero = helio_polynomial_decay(0.1, 10, .end = HELIO_ZERO);
  assert_true(helio_schedule_rate(to_zero, 10) == 0);
  assert_true(helio_schedule_rate(helio_polynomial_decay(0.1, 10), 10) == 0.0001);
}

static void test_named(void **state) {
  (void)state;
  const char *names[] = {"adam", "SGD", "sgd", "rmsprop", "RMSprop", "AdamW", "nadam", "ADAGRAD"};
  const char *given[] = {"adam", "sgd", "sgd", "rm_sprop", "rm_sprop", "adam_w", "nadam", "adagrad"};
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    helio_optimizer *optimizer = helio_optimizer_named(names[i]);
    assert_made(optimizer);
    assert_string_equal(helio_optimizer_name(optimizer), given[i]);
  }
  assert_null(helio_optimizer_named("adan"));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no optimizer 'adan' among SGD, Adam");
  assert_null(helio_optimizer_named("rms_prop"));
  expect_error(HELIO_INVALID_ARGUMENT, "did you mean 'RMSprop'?");
  assert_null(helio_optimizer_named(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no optimizer 'NULL'");
  assert_string_equal(helio_optimizer_name(helio_adam(.name = "mine")), "mine");
}

static void test_learning_rate(void **state) {
  (void)state;
  net n;
  make_net(&n);
  helio_optimizer *optimizer = helio_sgd(0.5), *scheduled = helio_sgd(.schedule = helio_exponential_decay(0.1, 1, 0.5));
  assert_ok(helio_optimizer_set_learning_rate(optimizer, 0));
  char before[MOST_BYTES], after[MOST_BYTES];
  assert_ok(helio_optimizer_build(optimizer, &n.variables));
  size_t length = snapshot(optimizer, &n, before);
  train(optimizer, &n, 0, 1);
  assert_int_equal(snapshot(optimizer, &n, after), length);
  assert_memory_equal(before, after, length - 16); /* a rate of zero changes nothing but the count */
  assert_ok(helio_optimizer_set_learning_rate(optimizer, 0.25));
  assert_true(helio_optimizer_learning_rate(optimizer) == 0.25);
  assert_int_equal(helio_optimizer_set_learning_rate(optimizer, -1), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "the learning rate is -1");
  assert_int_equal(helio_optimizer_set_learning_rate(optimizer, NAN), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "the learning rate is nan");
  assert_true(helio_optimizer_learning_rate(optimizer) == 0.25);
  assert_int_equal(helio_optimizer_set_learning_rate(scheduled, 0.1), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "sgd was made with a schedule, hence its learning rate is not settable");
  train(scheduled, &n, 0, 2);
  assert_true(helio_optimizer_learning_rate(scheduled) == 0.025);
  assert_true(isnan(helio_optimizer_learning_rate(NULL)));
  expect_error(HELIO_INVALID_ARGUMENT, "the optimizer is NULL");
}

/* Along a line from the rate to as many times that, and then on. */
static void test_scaled_learning_rate(void **state) {
  (void)state;
  net n;
  make_net(&n);
  helio_optimizer *warm = helio_sgd(0.1), *cold = helio_adam(0.1), *plain = helio_sgd(0.1);
  assert_ok(helio_scale_learning_rate(warm, HELIO_SCALE_LINEAR, 4, 10));
  static const double expected[] = {0.1, 0.13, 0.16, 0.19, 0.22, 0.25, 0.28, 0.31, 0.34, 0.37, 0.4, 0.4, 0.4};
  for (int i = 0; i < 13; i++) {
    assert_true(fabs(helio_optimizer_learning_rate(warm) - expected[i]) < 1e-15);
    train(warm, &n, i, i + 1);
  }
  assert_ok(helio_scale_learning_rate(cold, HELIO_SCALE_SQRT, 4, 0));
  assert_true(helio_optimizer_learning_rate(cold) == 0.2);
  assert_ok(helio_optimizer_set_learning_rate(cold, 0.3)); /* there is no schedule where nothing warms up */
  assert_ok(helio_scale_learning_rate(plain, HELIO_SCALE_NONE, 4, 10));
  assert_ok(helio_scale_learning_rate(plain, HELIO_SCALE_LINEAR, 1, 10));
  assert_true(helio_optimizer_learning_rate(plain) == 0.1);
  assert_ok(helio_optimizer_set_learning_rate(plain, 0.2));
}

static void test_wrong_scaling(void **state) {
  (void)state;
  net n;
  make_net(&n);
  helio_optimizer *optimizer = helio_sgd(0.1);
  helio_scale_learning_rate(NULL, HELIO_SCALE_LINEAR, 2, 0);
  expect_error(HELIO_INVALID_ARGUMENT, "the optimizer is NULL");
  helio_scale_learning_rate(optimizer, (helio_rate_scaling)0, 2, 0);
  expect_error(HELIO_INVALID_ARGUMENT, "the scaling is 0");
  helio_scale_learning_rate(optimizer, HELIO_SCALE_LINEAR, 0, 0);
  expect_error(HELIO_INVALID_ARGUMENT, "there are 0 replicas");
  helio_scale_learning_rate(optimizer, HELIO_SCALE_LINEAR, 2, -1);
  expect_error(HELIO_INVALID_ARGUMENT, "-1 steps");
  helio_scale_learning_rate(helio_sgd(.schedule = helio_exponential_decay(0.1, 1, 0.5)), HELIO_SCALE_LINEAR, 2, 0);
  expect_error(HELIO_WRONG_STATE, "sgd has a schedule, which its rate follows: scale its rate when it is made");
  assert_true(helio_optimizer_learning_rate(optimizer) == 0.1);
  train(optimizer, &n, 0, 1);
  helio_scale_learning_rate(optimizer, HELIO_SCALE_LINEAR, 2, 0);
  expect_error(HELIO_WRONG_STATE, "sgd has taken steps already");
  assert_ok(
      helio_scale_learning_rate(optimizer, HELIO_SCALE_LINEAR, 2, 10)); /* one that goes on is in its second step */
  assert_true(fabs(helio_optimizer_learning_rate(optimizer) - 0.11) < 1e-15);
}

/* ---- which variables ---- */

/* Without a gradient a variable stays as it is, and so do its slots: it does not even decay. */
static void test_missing_gradients(void **state) {
  (void)state;
  net n;
  char before[MOST_BYTES], after[MOST_BYTES];
  make_net(&n);
  helio_optimizer *optimizer = helio_adamw(0.1);
  train(optimizer, &n, 0, 2);
  size_t length = snapshot(optimizer, &n, before);
  assert_not_logged("Gradients do not exist");
  for (int i = 0; i < 3; i++) {
    assert_ok(helio_apply_gradients(optimizer, gradients_of(&n.variables, 2, 1), &n.variables));
  }
  assert_int_equal(lines_with("Gradients do not exist for variables dense/kernel when", ""), 1);
  snapshot(optimizer, &n, after);
  size_t kernel = 24, bias = 12; /* bytes; the values come first, then the slots of each */
  assert_memory_equal(before, after, kernel);
  assert_memory_equal(before + kernel + bias, after + kernel + bias, 2 * kernel);
  assert_memory_not_equal(before + kernel, after + kernel, bias);
  assert_int_equal(helio_optimizer_iterations(optimizer), 5);
  length = snapshot(optimizer, &n, before);
  assert_int_equal(helio_apply_gradients(optimizer, gradients_of(&n.variables, 0, 1), &n.variables),
                   HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "No gradients provided for any variable. There are: dense/kernel, dense/bias");
  assert_unchanged(optimizer, &n, before, length);
  helio_variables none = {0, NULL};
  assert_ok(helio_apply_gradients(optimizer, gradients_of(&none, 0, 1), &none));
  assert_unchanged(optimizer, &n, before, length);
}

/* The order of a call may be another, and it may name fewer, but none that is new. */
static void test_membership(void **state) {
  (void)state;
  net n, m;
  make_net(&n);
  make_net(&m);
  helio_optimizer *optimizer = helio_adam(0.1), *other = helio_adam(0.1);
  assert_int_equal(helio_optimizer_variables(optimizer)->count, 0);
  train(optimizer, &n, 0, 1);
  train(other, &m, 0, 1);
  const helio_variables *turned = HELIO_VARIABLES(m.list[1], m.list[0]), *one = HELIO_VARIABLES(n.list[1]);
  helio_gradients *gradients = gradients_of(&n.variables, 3, 8), *swapped = hi_gradients_new(2);
  for (int i = 0; i < 2; i++) {
    swapped->list[i] = gradients->list[1 - i];
    hi_gradient_hold(&swapped->list[i]);
  }
  assert_ok(helio_apply_gradients(optimizer, gradients, &n.variables));
  assert_ok(helio_apply_gradients(other, swapped, turned));
  char before[MOST_BYTES];
  size_t length = snapshot(other, &m, before);
  assert_unchanged(optimizer, &n, before, length);
  assert_ok(helio_apply_gradients(optimizer, gradients_of(one, 1, 3), one));
  length = snapshot(optimizer, &n, before);
  helio_variable *stranger = helio_variable(.shape = HELIO_SHAPE(3), .name = "stranger");
  const helio_variables *unknown = HELIO_VARIABLES(n.list[0], stranger), *twice = HELIO_VARIABLES(n.list[1], n.list[1]);
  helio_apply_gradients(optimizer, gradients_of(unknown, 3, 1), unknown);
  expect_error(HELIO_INVALID_ARGUMENT, "Unknown variable: stranger. This optimizer can only be called");
  helio_apply_gradients(optimizer, gradients_of(twice, 3, 1), twice);
  expect_error(HELIO_INVALID_ARGUMENT, "dense/bias stands twice");
  helio_optimizer_build(optimizer, unknown);
  expect_error(HELIO_INVALID_ARGUMENT, "Unknown variable: stranger");
  assert_ok(helio_optimizer_build(optimizer, &n.variables)); /* once more */
  assert_unchanged(optimizer, &n, before, length);
  helio_optimizer_build(helio_adam(), twice);
  expect_error(HELIO_INVALID_ARGUMENT, "dense/bias stands twice");
}

/* What is wrong with the last gradient is found before the first variable is written. */
static void test_wrong_gradients(void **state) {
  (void)state;
  net n;
  char before[MOST_BYTES];
  make_net(&n);
  helio_optimizer *optimizer = helio_adam(0.1), *fresh = helio_adam(0.1);
  train(optimizer, &n, 0, 1);
  size_t length = snapshot(optimizer, &n, before);
  const helio_variables *turned = HELIO_VARIABLES(n.list[1], n.list[0]);
  helio_gradients *gradients = gradients_of(turned, 2, 1); /* of bias none, of kernel one */
  helio_apply_gradients(optimizer, gradients, &n.variables);
  expect_error(HELIO_INVALID_ARGUMENT, "dense/bias is float32 (3,): a gradient of float32 (2, 3) is not its own");
  gradients = gradients_of(&n.variables, 3, 1);
  helio_variable *wide = helio_variable(.shape = HELIO_SHAPE(3), .type = HELIO_FLOAT64, .name = "wide");
  helio_apply_gradients(fresh, gradients, HELIO_VARIABLES(n.list[0], wide));
  expect_error(HELIO_INVALID_ARGUMENT, "wide is float64 (3,): a gradient of float32");
  assert_int_equal(helio_optimizer_variables(fresh)->count, 0); /* nothing was decided */
  helio_apply_gradients(optimizer, gradients, HELIO_VARIABLES(n.list[0]));
  expect_error(HELIO_INVALID_ARGUMENT, "there are 2 gradients and 1 variables");
  helio_apply_gradients(optimizer, NULL, &n.variables);
  expect_error(HELIO_INVALID_ARGUMENT, "the list of gradients is NULL");
  helio_apply_gradients(optimizer, gradients, NULL);
  expect_error(HELIO_INVALID_ARGUMENT, "the list of variables is not valid");
  helio_apply_gradients(optimizer, gradients, HELIO_VARIABLES(n.list[0], NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the variable is NULL");
  helio_apply_gradients(NULL, gradients, &n.variables);
  expect_error(HELIO_INVALID_ARGUMENT, "the optimizer is NULL");
  helio_variable *half = helio_variable(.shape = HELIO_SHAPE(3), .type = HELIO_FLOAT16, .name = "half");
  helio_optimizer_build(fresh, HELIO_VARIABLES(half));
  expect_error(HELIO_NOT_SUPPORTED, "half is float16; only float32 and float64");
  assert_unchanged(optimizer, &n, before, length);
}

/* ---- where and when ---- */

/* Slots live with their variable, where the step is computed whatever scope it is called in, and no tape records it. */
static void test_scopes(void **state) {
  (void)state;
  net n;
  make_net(&n);
  helio_optimizer *optimizer = helio_adam(0.1, .accumulate_steps = 2, .global_clip_norm = 1);
  helio_tape *tape = helio_tape_new();
  helio_gradients *gradients = gradients_of(&n.variables, 3, 1);
  uint64_t copies = helio_placement_counts().input_copies;
  HELIO_TAPE(tape) {
    hi_gradient_drop(&gradients->list[0]); /* one that depends on what the tape watches */
    gradients->list[0] = (hi_gradient){helio_square(helio_value(n.list[0])), NULL, HELIO_SHAPE(2, 3)};
    hi_gradient_hold(&gradients->list[0]);
    HELIO_DEVICE("cpu:0") {
      for (int i = 0; i < 4; i++) assert_ok(helio_apply_gradients(optimizer, gradients, &n.variables));
    }
  }
  assert_int_equal(tape->node_count, 1);
  assert_int_equal(helio_placement_counts().operations, 0);
  assert_int_equal(helio_placement_counts().input_copies, copies);
  const helio_variables *slots = helio_optimizer_variables(optimizer);
  assert_int_equal(slots->count, 6);
  for (int i = 0; i < slots->count; i++)
    assert_ptr_equal(hi_variable_tensor(slots->at[i])->device, hi_variable_tensor(n.list[0])->device);
  assert_string_equal(helio_variable_name(slots->at[0]), "adam/dense_kernel_gradient_accumulator");
  assert_string_equal(helio_variable_name(slots->at[2]), "adam/dense_kernel_momentum");
}

/* The tape notices that a variable was updated between forward and backward. */
static void test_tape_notices(void **state) {
  (void)state;
  net n;
  make_net(&n);
  helio_optimizer *optimizer = helio_sgd(0.1);
  helio_tape *tape = helio_tape_new();
  helio_tensor *y = NULL;
  HELIO_TAPE(tape) y = helio_square(helio_value(n.list[0]));
  train(optimizer, &n, 0, 1);
  assert_null(helio_gradient(tape, y, &n.variables));
  expect_error(HELIO_WRONG_STATE, "dense/kernel was assigned");
}

static helio_tensor *loss_of(const net *n, helio_variable *table, helio_tensor *indices) {
  helio_tensor *rows = helio_gather_rows(helio_value(table), indices);
  helio_tensor *y = helio_add(helio_matmul(rows, helio_value(n->list[0])), helio_value(n->list[1]));
  return helio_mean(helio_square(helio_sub(y, helio_fill(HELIO_SCALAR, 1))));
}

/* A loop by hand with an embedding learns, and needs no more memory after a thousand steps than after ten. */
static void test_flat_memory(void **state) {
  (void)state;
  net n;
  make_net(&n);
  int32_t numbers[] = {1, 4, 1, 0};
  helio_variable *table = helio_variable(.shape = HELIO_SHAPE(5, 2), .name = "embedding/embeddings");
  const helio_variables *all = HELIO_VARIABLES(table, n.list[0], n.list[1]);
  helio_tensor *indices = helio_constant(numbers, HELIO_SHAPE(4), HELIO_INT32), *loss = NULL;
  helio_optimizer *optimizer = helio_nadam(0.01, .global_clip_norm = 1, .accumulate_steps = 2);
  helio_tape *tape = helio_tape_new();
  helio_memory early, late;
  double first = 0, last = 0;
  for (int step = 0; step < 1000; step++) {
    HELIO_POOL {
      HELIO_TAPE(tape) loss = loss_of(&n, table, indices);
      assert_ok(helio_apply_gradients(optimizer, helio_gradient(tape, loss, all), all));
      last = helio_item(loss);
    }
    if (step == 0) first = last;
    if (step == 9) assert_ok(helio_memory_info(device_name(), &early));
  }
  assert_ok(helio_memory_info(device_name(), &late));
  assert_int_equal(late.in_use, early.in_use);
  assert_int_equal(late.allocations, early.allocations);
  assert_int_equal(late.peak, early.peak);
  assert_int_equal(late.reserved, early.reserved);
  assert_true(first > 1 && last < 1e-3);
}

static void test_after_shutdown(void **state) {
  (void)state;
  net n;
  make_net(&n);
  helio_optimizer *optimizer = helio_keep(helio_adam(0.1));
  train(optimizer, &n, 0, 1);
  for (int i = 0; i < 2; i++) helio_keep(n.list[i]);
  leaks_are_meant = true;
  assert_ok(helio_shutdown());
  assert_int_not_equal(helio_save_optimizer(optimizer, "/nowhere"), HELIO_OK);
  expect_error(HELIO_WRONG_STATE, "adam/dense_kernel_momentum");
  helio_optimizer_build(optimizer, &n.variables);
  expect_error(HELIO_WRONG_STATE, "dense/kernel");
  for (int i = 0; i < 2; i++) helio_release(n.list[i]);
  helio_release(optimizer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_options),
      TEST(test_schedule_options),
      TEST(test_named),
      TEST(test_learning_rate),
      TEST(test_missing_gradients),
      TEST(test_membership),
      TEST(test_wrong_gradients),
      TEST(test_scopes),
      TEST(test_tape_notices),
      TEST(test_flat_memory),
      TEST(test_after_shutdown),
      TEST(test_scaled_learning_rate),
      TEST(test_wrong_scaling),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
