/* SPDX-License-Identifier: Apache-2.0 */
/* Models in odd company: inner models, types, several threads, a library that was shut down. */
#include "support.h"

/* A model's type is that of the layers inside that have none, also of inner models. */
static void test_type(void **state) {
  (void)state;
  helio_model *inner = helio_sequential({helio_dense(2), helio_dense(2, .type = HELIO_FLOAT32)});
  helio_model *model = helio_sequential({helio_dense(3), inner}, .type = HELIO_FLOAT64, .input_shape = HELIO_SHAPE(4));
  assert_made(model);
  assert_int_equal(helio_variable_type(helio_weights(model)->at[0]), HELIO_FLOAT64);
  assert_int_equal(helio_variable_type(helio_weights(model)->at[2]), HELIO_FLOAT64);
  assert_int_equal(helio_variable_type(helio_weights(model)->at[4]), HELIO_FLOAT32);
  helio_release(inner);
  helio_release(model);
}

/* Equal towers start differently; their optimizer's slots have names of their own; a frozen layer has no regularizer.
 */
static void test_towers(void **state) {
  (void)state;
  float kernels[2][12];
  char folder[64], path[100];
  helio_node *x = helio_input(HELIO_SHAPE(4)), *sides[2];
  helio_model *towers[2];
  for (int i = 0; i < 2; i++) {
    towers[i] = helio_sequential({helio_dense(3, .kernel_regularizer = {.l2 = 1})}, .input_shape = HELIO_SHAPE(4));
    sides[i] = helio_apply(towers[i], x);
  }
  helio_model *model = helio_model(x, helio_apply(helio_average_layer(), sides[0], sides[1]));
  const helio_variables *weights = helio_weights(model);
  assert_made(weights);
  assert_int_equal(weights->count, 4);
  for (int i = 0; i < 2; i++) {
    assert_ok(helio_tensor_read(helio_value(weights->at[2 * i]), kernels[i], sizeof kernels[i]));
  }
  assert_memory_not_equal(kernels[0], kernels[1], sizeof kernels[0]);
  helio_optimizer *adam = helio_adam();
  make_folder(folder);
  snprintf(path, sizeof path, "%s/adam.safetensors", folder);
  assert_ok(helio_optimizer_build(adam, weights));
  assert_ok(helio_save_optimizer(adam, path));
  double loss = helio_item(helio_regularization_loss(model));
  assert_ok(helio_layer_set_trainable(towers[0], false));
  double rest = helio_item(helio_regularization_loss(model));
  assert_true(rest > 0 && rest < loss);
  remove_folder(folder);
  for (int i = 0; i < 2; i++) helio_release(towers[i]);
  helio_release(model);
}

static void test_swapped_weights(void **state) {
  (void)state;
  float before[2][4], after[4];
  helio_model *model = helio_sequential({helio_dense(2, .no_bias = true), helio_dense(2, .no_bias = true)},
                                        .input_shape = HELIO_SHAPE(2));
  const helio_variables *both = helio_weights(model);
  helio_tensor *values[] = {helio_value(both->at[1]), helio_value(both->at[0])};
  for (int i = 0; i < 2; i++) assert_ok(helio_tensor_read(values[i], before[i], sizeof before[i]));
  assert_ok(helio_set_weights(model, values, 2));
  for (int i = 0; i < 2; i++) {
    assert_ok(helio_tensor_read(helio_value(both->at[i]), after, sizeof after));
    assert_memory_equal(after, before[i], sizeof after);
  }
  helio_release(model);
}

/* What fails leaves a model as it was. */
static void test_failed_additions(void **state) {
  (void)state;
  helio_model *a = helio_sequential({helio_dense(2)}), *b = helio_sequential({a});
  assert_int_equal(helio_model_add(a, b), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "itself");
  helio_model *late = helio_sequential(.name = "late");
  assert_int_equal(helio_model_add(late, helio_conv2d(3, 3, .input_shape = HELIO_SHAPE(4))), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "conv2d (Conv2D)");
  assert_null(helio_weights(late));
  expect_error(HELIO_WRONG_STATE, "no layers");
  assert_ok(helio_model_add(late, helio_dense(3, .name = "d")));
  assert_int_equal(helio_model_add(late, helio_dense(3, .name = "d")), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "'d' already");
  assert_made(helio_call(late, helio_fill(HELIO_SHAPE(2, 5), 1)));
  assert_int_equal(helio_trainable_variables(late)->count, 2);
  assert_ok(helio_variable_set_trainable(helio_weights(late)->at[0], false));
  assert_int_equal(helio_trainable_variables(late)->count, 1);
  helio_model *all[] = {a, b, late};
  for (int i = 0; i < 3; i++) helio_release(all[i]);
}

static void test_shapes_to_build(void **state) {
  (void)state;
  helio_model *model = helio_sequential({helio_dense(2)});
  assert_int_equal(helio_model_build(model, (helio_shape){.rank = 100}), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "not the shape of a batch");
  assert_int_equal(helio_model_build(model, HELIO_SHAPE(-1, -9)), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "not the shape of a batch");
  assert_int_equal(helio_model_build(model, HELIO_SHAPE(-1, -1)), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "dense (Dense)");
  assert_ok(helio_model_build(model, HELIO_SHAPE(-1, 3)));
  assert_int_equal(helio_count_params(model), 8);
  helio_release(model);
  assert_null(helio_sequential({helio_dense(1), NULL, helio_dense(2)}));
  expect_error(HELIO_INVALID_ARGUMENT, "layer 1 is NULL");
  assert_null(helio_input(HELIO_SHAPE(-9)));
  expect_error(HELIO_INVALID_ARGUMENT, "-9");
}

/* ---- a model of the user's own, of which a call needs only a part ---- */

typedef struct part {
  helio_layer *used, *idle;
} part;

static helio_tensor *call_part(void *self, helio_tensor *const *inputs, int count, bool training) {
  part *p = self;
  (void)count;
  helio_tensor *x = helio_call(p->used, inputs[0]);
  return training ? helio_call(p->idle, x) : x;
}

static void test_part_of_a_model(void **state) {
  (void)state;
  part p;
  helio_model *model = helio_model_of(call_part, &p);
  p.used = helio_track(model, helio_dense(3));
  p.idle = helio_track(model, helio_dense(2));
  assert_made(helio_call(model, helio_fill(HELIO_SHAPE(1, 4), 1)));
  assert_int_equal(helio_weights(model)->count, 2);
  assert_made(helio_call(model, helio_fill(HELIO_SHAPE(1, 4), 1), .training = true));
  assert_int_equal(helio_weights(model)->count, 4);
  helio_release(model);
}

/* A batch of none leaves the statistics of batch normalization alone. */
static void test_empty_batch(void **state) {
  (void)state;
  float variance[2];
  helio_layer *layer = helio_batch_normalization(.momentum = 0.5);
  helio_model *model = helio_sequential({layer}, .input_shape = HELIO_SHAPE(2));
  assert_made(helio_call(model, helio_fill(HELIO_SHAPE(0, 2), 1), .training = true));
  assert_ok(helio_tensor_read(helio_value(helio_weights(model)->at[3]), variance, sizeof variance));
  assert_float_equal(variance[0], 1, 0);
  helio_release(model);
}

/* An accuracy chooses its kind by the first update that is good. */
static void test_refused_update(void **state) {
  (void)state;
  helio_metric *accuracy = helio_metric_named("accuracy", NULL);
  int32_t labels[] = {1, 0};
  float predictions[] = {0.1f, 0.9f, 0.2f, 0.8f};
  helio_tensor *y = helio_constant(labels, HELIO_SHAPE(2), HELIO_INT32);
  assert_int_not_equal(
      helio_metric_update(accuracy, helio_fill(HELIO_SHAPE(3, 1), 1), helio_fill(HELIO_SHAPE(2, 1), 1)), HELIO_OK);
  helio_error_take(NULL);
  assert_ok(helio_metric_update(accuracy, y, helio_constant(predictions, HELIO_SHAPE(2, 2))));
  assert_float_equal(helio_item(helio_metric_result(accuracy)), 0.5, 1e-6);
}

/* ---- several threads ---- */

enum { THREADS = 6 };

typedef struct meeting {
  helio_model *model;
  pthread_barrier_t *start;
  helio_status status;
} meeting;

static void *call_first(void *argument) {
  meeting *m = argument;
  pthread_barrier_wait(m->start);
  HELIO_POOL {
    helio_call(m->model, helio_fill(HELIO_SHAPE(2, 4), 1), .training = true);
  }
  m->status = helio_error_take(NULL);
  return NULL;
}

/* Threads that meet a model for the first time together make its variables once. */
static void test_first_call_of_many(void **state) {
  (void)state;
  for (int round = 0; round < 10; round++) {
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    meeting meetings[THREADS];
    helio_model *model = helio_sequential({helio_dense(3), helio_layer_normalization(), helio_dense(2)});
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
      meetings[i] = (meeting){model, &start, HELIO_OK};
      assert_int_equal(pthread_create(&threads[i], NULL, call_first, &meetings[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
      pthread_join(threads[i], NULL);
      assert_int_equal(meetings[i].status, HELIO_OK);
    }
    pthread_barrier_destroy(&start);
    assert_int_equal(helio_weights(model)->count, 6);
    helio_release(model);
  }
}

/* ---- after helio_shutdown ---- */

static void test_shutdown(void **state) {
  (void)state;
  char folder[64], path[100];
  make_folder(folder);
  snprintf(path, sizeof path, "%s/w.safetensors", folder);
  helio_model *model = helio_sequential({helio_dense(5), helio_dense(1)}, .input_shape = HELIO_SHAPE(4));
  helio_tape *tape = helio_keep(helio_tape_new(.persistent = true));
  HELIO_TAPE(tape) helio_call(model, helio_fill(HELIO_SHAPE(2, 4), 1));
  assert_ok(helio_save_weights(model, path));
  leaks_are_meant = true;
  assert_ok(helio_shutdown());
  assert_int_equal(helio_load_weights(model, path), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "helio_shutdown");
  assert_null(helio_gradient(tape, helio_fill(HELIO_SCALAR, 1), helio_weights(model)));
  expect_error(HELIO_WRONG_STATE, "helio_shutdown");
  assert_made(helio_gradient(tape, helio_fill(HELIO_SCALAR, 1))); /* of nothing */
  assert_null(helio_call(model, helio_fill(HELIO_SHAPE(2, 4), 1)));
  expect_error(HELIO_WRONG_STATE, "helio_shutdown");
  helio_release(tape);
  helio_release(model);
  remove_folder(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_type),
      TEST(test_towers),
      TEST(test_swapped_weights),
      TEST(test_failed_additions),
      TEST(test_shapes_to_build),
      TEST(test_part_of_a_model),
      TEST(test_empty_batch),
      TEST(test_refused_update),
      TEST(test_first_call_of_many),
      TEST(test_shutdown),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
