/* SPDX-License-Identifier: Apache-2.0 */
/* Variables with a copy on each replica. What assignments lead to is what TensorFlow 2.21 does on logical CPUs. */
#include "replicas.h"

static void expect_copies(helio_variable *variable, double first, double second) {
  expect_numbers(helio_variable_copy(variable, 0), first);
  expect_numbers(helio_variable_copy(variable, 1), second);
}

/* ---- making ---- */

static void a_variable_has_a_copy_of_replica_0s_value_on_each_device(void **state) {
  (void)state;
  helio_strategy *three = mirror(3);
  helio_variable *drawn = NULL, *given = NULL, *here = NULL;
  double values[4];
  HELIO_SCOPE(three) {
    drawn = helio_variable(.shape = HELIO_SHAPE(2, 2), .type = HELIO_FLOAT64, .name = "v");
    given = helio_variable(number(7));
  }
  assert_made(drawn);
  assert_int_equal(helio_variable_copies(drawn), 3);
  assert_ok(helio_tensor_read(helio_value(drawn), values, sizeof values));
  assert_true(values[0] != 0 && values[0] != values[1]);
  for (int i = 0; i < 3; i++) {
    static const char *const names[] = {"v", "v/replica_1", "v/replica_2"};
    static const char *const unnamed[] = {"Variable", "Variable/replica_1", "Variable/replica_2"};
    assert_string_equal(helio_tensor_name(helio_variable_copy(drawn, i)), names[i]);
    assert_string_equal(helio_tensor_name(helio_variable_copy(given, i)), unnamed[i]);
    assert_string_equal(helio_tensor_device(helio_variable_copy(drawn, i)), nth_device_in_full(i));
    expect_numbers(helio_variable_copy(drawn, i), values[0], values[1], values[2], values[3]);
    expect_numbers(helio_variable_copy(given, i), 7);
  }
  assert_null(helio_variable_copy(drawn, 3));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no copy 3 of v");
  HELIO_SCOPE(helio_one_device(nth_device(2))) here = helio_variable(number(1));
  assert_int_equal(helio_variable_copies(here), 1);
  assert_string_equal(helio_tensor_device(helio_value(here)), nth_device_in_full(2));
  assert_int_equal(helio_variable_copies(helio_variable(number(1))), 1);
}

static void what_cannot_be_made(void **state) {
  (void)state;
  helio_tensor *whole = helio_fill(HELIO_SCALAR, 1, .type = HELIO_INT32);
  assert_made(helio_variable(whole, .aggregation = HELIO_AGGREGATE_MEAN));
  HELIO_SCOPE(mirror(2)) assert_null(helio_variable(whole, .aggregation = HELIO_AGGREGATE_MEAN, .name = "count"));
  expect_error(HELIO_INVALID_ARGUMENT,
               "creating distributed variable count with aggregation=MEAN and a non-floating dtype is not supported, "
               "please use a different aggregation or dtype");
  assert_null(helio_variable(whole, .aggregation = (helio_aggregation)5, .name = "count"));
  expect_error(HELIO_INVALID_ARGUMENT, "Invalid variable aggregation mode: 5 for variable: count");
  assert_null(helio_variable(whole, .synchronization = (helio_synchronization)3));
  expect_error(HELIO_INVALID_ARGUMENT, "3 is not a synchronization");
}

/* ---- assigning ---- */

typedef helio_status (*assignment)(helio_variable *variable, helio_tensor *value);

typedef struct assigning {
  helio_variable *variable;
  assignment assign;
} assigning;

/* 1 in the first replica and 3 in the second. */
static helio_status assign_inside(void *argument, const helio_element *inputs, helio_element *outputs) {
  const assigning *a = argument;
  (void)inputs;
  a->assign(a->variable, number(1 + 2 * helio_replica_id()));
  helio_tensor *own = helio_value(a->variable);
  return give(outputs, own ? helio_copy(own) : NULL);
}

enum { REFUSED = -100 };

/* From 10: what replicas make of both copies, what is read then, and what assigning 6 outside makes of each copy. */
static const struct {
  helio_aggregation aggregation;
  helio_synchronization synchronization;
  double assign[4], add[4], sub[4];
} assignments[] = {
    {HELIO_AGGREGATE_NONE, HELIO_ON_WRITE, {1, 3, 1, 6}, {11, 13, 11, 16}, {9, 7, 9, 4}},
    {HELIO_AGGREGATE_NONE, HELIO_ON_READ, {1, 3, REFUSED, 6}, {11, 13, REFUSED, 16}, {9, 7, REFUSED, 4}},
    {HELIO_AGGREGATE_SUM, HELIO_ON_WRITE, {4, 4, 4, 6}, {14, 14, 14, 16}, {6, 6, 6, 4}},
    {HELIO_AGGREGATE_SUM, HELIO_ON_READ, {1, 3, 4, 3}, {11, 13, 24, REFUSED}, {9, 7, 16, REFUSED}},
    {HELIO_AGGREGATE_MEAN, HELIO_ON_WRITE, {2, 2, 2, 6}, {12, 12, 12, 16}, {8, 8, 8, 4}},
    {HELIO_AGGREGATE_MEAN, HELIO_ON_READ, {1, 3, 2, 6}, {11, 13, 12, 16}, {9, 7, 8, 4}},
    {HELIO_AGGREGATE_FIRST, HELIO_ON_WRITE, {1, 1, 1, 6}, {11, 11, 11, 16}, {9, 9, 9, 4}},
    {HELIO_AGGREGATE_FIRST, HELIO_ON_READ, {1, 3, 1, 6}, {11, 13, 11, 16}, {9, 7, 9, 4}},
};

static void assign_and_read(helio_strategy *two, helio_aggregation aggregation, helio_synchronization synchronization,
                            assignment assign, const double expected[4]) {
  helio_variable *inside = NULL, *outside = NULL;
  HELIO_SCOPE(two) {
    inside = helio_variable(number(10), .aggregation = aggregation, .synchronization = synchronization);
    outside = helio_variable(number(10), .aggregation = aggregation, .synchronization = synchronization, .name = "v");
  }
  expect_each(helio_run(two, assign_inside, &(assigning){inside, assign}), expected[0], expected[1]);
  expect_copies(inside, expected[0], expected[1]);
  if (expected[2] == REFUSED) {
    assert_null(helio_value(inside));
    expect_error(HELIO_WRONG_STATE, "by no aggregation: only replicas can read it");
  } else {
    expect_numbers(helio_value(inside), expected[2]);
  }
  if (expected[3] == REFUSED) {
    assert_int_equal(assign(outside, number(6)), HELIO_WRONG_STATE);
    expect_error(HELIO_WRONG_STATE, assign == helio_assign_add
                                        ? "SyncOnReadVariable does not support `assign_add` in cross-replica context "
                                          "when aggregation is set to HELIO_AGGREGATE_SUM"
                                        : "SyncOnReadVariable does not support `assign_sub`");
    expect_copies(outside, 10, 10);
  } else {
    assert_ok(assign(outside, number(6)));
    expect_copies(outside, expected[3], expected[3]);
  }
}

static void assignments_inside_and_outside_of_replicas(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  for (size_t i = 0; i < COUNT_OF(assignments); i++) {
    helio_aggregation how = assignments[i].aggregation;
    helio_synchronization when = assignments[i].synchronization;
    assign_and_read(two, how, when, helio_assign, assignments[i].assign);
    assign_and_read(two, how, when, helio_assign_add, assignments[i].add);
    assign_and_read(two, how, when, helio_assign_sub, assignments[i].sub);
  }
}

static helio_status assign_own_id(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs, (void)outputs;
  return helio_assign(argument, number(helio_replica_id()));
}

static helio_status add_two(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs, (void)outputs;
  return helio_assign_add(argument, number(2));
}

static void numbers_that_were_executed(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  helio_variable *mean = NULL, *sum = NULL, *whole = NULL;
  HELIO_SCOPE(two) {
    mean = helio_variable(number(0), .aggregation = HELIO_AGGREGATE_MEAN);
    sum = helio_variable(number(0), .aggregation = HELIO_AGGREGATE_SUM, .synchronization = HELIO_ON_READ);
    whole = helio_variable(helio_fill(HELIO_SCALAR, 0, .type = HELIO_INT32), .aggregation = HELIO_AGGREGATE_SUM,
                           .synchronization = HELIO_ON_READ);
  }
  assert_made(helio_run(two, assign_own_id, mean));
  expect_copies(mean, 0.5, 0.5);
  assert_made(helio_run(two, add_two, sum));
  expect_numbers(helio_value(sum), 4);
  HELIO_SCOPE(two) assert_ok(helio_assign(sum, number(6)));
  expect_copies(sum, 3, 3);
  expect_numbers(helio_value(sum), 6);
  assert_ok(helio_assign(whole, helio_fill(HELIO_SCALAR, 7, .type = HELIO_INT32)));
  expect_copies(whole, 3, 3);
}

/* ---- of another strategy, or of none ---- */

static void variables_belong_to_their_strategy(void **state) {
  (void)state;
  helio_strategy *two = mirror(2), *others = helio_mirrored(.devices = {nth_device(1), nth_device(2)});
  helio_variable *own = NULL, *outside = helio_variable(number(5), .name = "stray");
  HELIO_SCOPE(two) own = helio_variable(number(5), .aggregation = HELIO_AGGREGATE_SUM, .name = "own");
  assert_null(helio_run(others, assign_own_id, own));
  expect_error(HELIO_WRONG_STATE, "Mixing different strategies: own was made in the scope of another");
  assert_null(helio_run(others, assign_inside, &(assigning){own, helio_assign}));
  expect_error(HELIO_WRONG_STATE, "Mixing different strategies: own was made in the scope of another");
  assert_null(helio_run(two, assign_own_id, outside));
  expect_error(HELIO_WRONG_STATE, "Variable (stray) was not created in the distribution strategy scope");
  expect_copies(own, 5, 5);
  expect_numbers(helio_value(outside), 5);
}

/* ---- models ---- */

/* Rows of two features; the label is their sum. */
typedef struct trainer {
  helio_model *model;
  helio_layer *hidden, *norm, *last;
  helio_optimizer *optimizer;
  helio_metric *losses;
} trainer;

static helio_tensor *call(void *self, helio_tensor *const *inputs, int count, bool training) {
  trainer *t = self;
  (void)count;
  helio_tensor *x = helio_call(t->hidden, inputs[0]);
  if (t->norm) x = helio_call(t->norm, x, .training = training);
  return helio_call(t->last, x);
}

/* Nothing has variables yet: no shape is known. */
static void make_trainer(trainer *t, bool norm) {
  helio_set_seed(5);
  *t = (trainer){.model = helio_model_of(call, t), .optimizer = helio_adam(.learning_rate = 0.1)};
  t->hidden = helio_track(t->model, helio_dense(3, .activation = HELIO_TANH));
  if (norm) t->norm = helio_track(t->model, helio_batch_normalization());
  t->last = helio_track(t->model, helio_dense(1));
  t->losses = helio_metric_mean();
  assert_made(t->losses);
}

static helio_status train_step(void *argument, const helio_element *inputs, helio_element *outputs) {
  trainer *t = argument;
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL, *labels = helio_sum(inputs->part[0], HELIO_AXES(1), .keep_dims = true);
  HELIO_TAPE(tape) {
    helio_tensor *error = helio_square(helio_sub(helio_call(t->model, inputs->part[0], .training = true), labels));
    helio_metric_update(t->losses, error);
    loss = helio_compute_average_loss(error);
  }
  if (!loss) return helio_error_pending();
  helio_minimize(t->optimizer, tape, loss, helio_trainable_variables(t->model));
  return give(outputs, loss);
}

static helio_values *batch_of_six(helio_strategy *strategy) {
  static const float rows[6][2] = {{1, 2}, {0.5, -1}, {-2, 1}, {0.25, 0.75}, {-1, -1}, {2, 0}};
  helio_dataset *dataset = helio_dataset_from_slices(helio_array_of(rows, HELIO_SHAPE(6, 2)));
  helio_values *batch =
      helio_next_values(helio_iterate_distributed(helio_distribute(strategy, helio_dataset_batch(dataset, 6))));
  assert_made(batch);
  return batch;
}

static double train(helio_strategy *strategy, trainer *t, int steps) {
  double loss = 0;
  helio_values *batch = batch_of_six(strategy);
  for (int i = 0; i < steps; i++) {
    HELIO_POOL {
      helio_values *losses = helio_run(strategy, train_step, t, batch);
      assert_made(losses);
      loss = helio_item(helio_reduce(strategy, HELIO_SUM, losses));
    }
  }
  return loss;
}

static void read_all(helio_tensor *tensor, float *values) {
  assert_made(tensor);
  assert_true(helio_tensor_elements(tensor) <= 16);
  assert_ok(helio_tensor_read(tensor, values, (size_t)helio_tensor_elements(tensor) * sizeof values[0]));
}

/* As many copies as replicas, all of them the one device's value, whose list is as long. */
static void expect_mirrored(const helio_variables *variables, int copies, const helio_variables *alone) {
  assert_int_equal(variables->count, alone->count);
  for (int i = 0; i < variables->count; i++) {
    float expected[16], found[16];
    assert_string_equal(helio_variable_name(variables->at[i]), helio_variable_name(alone->at[i]));
    assert_int_equal(helio_variable_copies(variables->at[i]), copies);
    read_all(helio_value(alone->at[i]), expected);
    for (int copy = 0; copy < copies; copy++) {
      helio_tensor *tensor = helio_variable_copy(variables->at[i], copy);
      read_all(tensor, found);
      for (int64_t k = 0; k < helio_tensor_elements(tensor); k++) assert_float_equal(found[k], expected[k], 1e-4);
    }
  }
}

/* Weights, slots and counts come into being inside the first step, in all replicas at once. */
static void what_comes_into_being_in_a_step_is_made_once_and_mirrored(void **state) {
  (void)state;
  trainer alone, mirrored;
  helio_strategy *default_one = helio_strategy_current(), *three = mirror(3);
  make_trainer(&alone, false);
  double expected = train(default_one, &alone, 5);
  for (int round = 0; round < 10; round++) {
    HELIO_SCOPE(three) make_trainer(&mirrored, false);
    assert_float_equal(train(three, &mirrored, 5), expected, 1e-5);
    expect_mirrored(helio_weights(mirrored.model), 3, helio_weights(alone.model));
    expect_mirrored(helio_optimizer_variables(mirrored.optimizer), 3, helio_optimizer_variables(alone.optimizer));
    assert_int_equal(helio_weights(mirrored.model)->count, 4);
    assert_int_equal(helio_optimizer_variables(mirrored.optimizer)->count, 8);
    assert_int_equal(helio_optimizer_iterations(mirrored.optimizer), 5);
    const helio_variables *counts = helio_metric_variables(mirrored.losses);
    for (int i = 0; i < counts->count; i++) assert_int_equal(helio_variable_copies(counts->at[i]), 3);
    expect_numbers(helio_value(counts->at[1]), 5 * 6); /* samples, of all replicas */
    expect_numbers(helio_variable_copy(counts->at[1], 1), 5 * 2);
    assert_float_equal(helio_item(helio_metric_result(mirrored.losses)), helio_item(helio_metric_result(alone.losses)),
                       1e-5);
    assert_ok(helio_metric_reset(mirrored.losses));
    expect_numbers(helio_metric_result(mirrored.losses), 0);
    helio_release(mirrored.model);
  }
  helio_release(alone.model);
}

static helio_status make_inside(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)inputs;
  helio_variable *made = helio_variable(number(4 + helio_replica_id()));
  ((helio_variable **)argument)[helio_replica_id()] = made;
  if (made) helio_keep(made);
  return give(outputs, made ? helio_copy(helio_value(made)) : NULL);
}

static void a_variable_made_in_a_step_is_one_for_all(void **state) {
  (void)state;
  helio_variable *made[2] = {NULL};
  expect_each(helio_run(mirror(2), make_inside, made), 4, 4);
  assert_ptr_equal(made[0], made[1]);
  assert_int_equal(helio_variable_copies(made[0]), 2);
  for (int i = 0; i < 2; i++) helio_release(made[i]);
}

/* The other copies would stay what they were. */
static void a_step_is_not_taken_outside_of_replicas(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  helio_variable *v = NULL;
  helio_optimizer *sgd = NULL;
  HELIO_SCOPE(two) {
    v = helio_variable(number(3), .name = "v");
    sgd = helio_sgd(.learning_rate = 1);
  }
  const helio_variables list = {.count = 1, .at = (helio_variable *[]){v}};
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL;
  HELIO_TAPE(tape) loss = helio_square(helio_value(v));
  const char *expected =
      "a step cannot be taken in cross-replica context: every replica has a copy of v. Use helio_run()";
  assert_int_equal(helio_minimize(sgd, tape, loss, &list), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, expected);
  HELIO_SCOPE(two) assert_int_equal(helio_minimize(sgd, tape, loss, &list), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, expected);
  expect_copies(v, 3, 3);
  assert_int_equal(helio_optimizer_iterations(sgd), 0);
}

static void a_model_made_outside_the_scope_cannot_be_trained(void **state) {
  (void)state;
  trainer t;
  helio_strategy *two = mirror(2);
  make_trainer(&t, false);
  assert_ok(helio_model_build(t.model, HELIO_SHAPE(-1, 2)));
  assert_null(helio_run(two, train_step, &t, batch_of_six(two)));
  expect_error(HELIO_WRONG_STATE, "was not created in the distribution strategy scope");
  helio_release(t.model);
}

/* ---- files ---- */

static void load_and_compare(helio_strategy *strategy, trainer *saved, const char *weights, const char *optimizer) {
  trainer t;
  HELIO_SCOPE(strategy) make_trainer(&t, true);
  train(strategy, &t, 1); /* other values */
  assert_ok(helio_load_weights(t.model, weights));
  assert_ok(helio_load_optimizer(t.optimizer, optimizer));
  const helio_variables *lists[2][2] = {
      {helio_weights(saved->model), helio_weights(t.model)},
      {helio_optimizer_variables(saved->optimizer), helio_optimizer_variables(t.optimizer)}};
  for (int list = 0; list < 2; list++) {
    assert_int_equal(lists[list][0]->count, lists[list][1]->count);
    for (int i = 0; i < lists[list][0]->count; i++) {
      float expected[16] = {0}, found[16] = {0};
      read_all(helio_value(lists[list][0]->at[i]), expected);
      for (int copy = 0; copy < helio_num_replicas(strategy); copy++) {
        read_all(helio_variable_copy(lists[list][1]->at[i], copy), found);
        assert_memory_equal(found, expected, sizeof found);
      }
    }
  }
  assert_int_equal(helio_optimizer_iterations(t.optimizer), 3);
  helio_release(t.model);
}

static void files_do_not_depend_on_the_number_of_replicas(void **state) {
  (void)state;
  char folder[64], weights[100], optimizer[100];
  float mean[2][16];
  trainer saved;
  helio_strategy *two = mirror(2);
  make_folder(folder);
  snprintf(weights, sizeof weights, "%s/weights.safetensors", folder);
  snprintf(optimizer, sizeof optimizer, "%s/optimizer.safetensors", folder);
  HELIO_SCOPE(two) make_trainer(&saved, true);
  train(two, &saved, 3);
  helio_variable *moving = helio_non_trainable_variables(saved.model)->at[0];
  for (int i = 0; i < 2; i++) read_all(helio_variable_copy(moving, i), mean[i]);
  assert_true(mean[0][0] != mean[1][0]); /* each replica has seen other samples */
  expect_numbers(helio_value(moving), (mean[0][0] + mean[1][0]) / 2, (mean[0][1] + mean[1][1]) / 2,
                 (mean[0][2] + mean[1][2]) / 2);
  assert_ok(helio_save_weights(saved.model, weights));
  assert_ok(helio_save_optimizer(saved.optimizer, optimizer));
  load_and_compare(two, &saved, weights, optimizer);
  load_and_compare(mirror(3), &saved, weights, optimizer);
  load_and_compare(helio_strategy_current(), &saved, weights, optimizer);
  helio_release(saved.model);
  remove_folder(folder);
}

/* ---- gradients that not all replicas have ---- */

typedef struct uneven {
  helio_variable *variable;
  helio_optimizer *optimizer;
  int mask;  /* of replicas whose loss depends on the variable */
  int fails; /* of replicas whose step fails before that */
} uneven;

static helio_status train_some(void *argument, const helio_element *inputs, helio_element *outputs) {
  const uneven *u = argument;
  int id = helio_replica_id();
  helio_tape *tape = helio_tape_new();
  helio_tensor *x = number(1), *loss = x;
  (void)inputs, (void)outputs;
  if (u->fails >> id & 1) helio_reshape(x, HELIO_SHAPE(4));
  HELIO_TAPE(tape) {
    helio_tape_watch(tape, x);
    helio_tensor *factor = number(1 + id);
    loss = u->mask >> id & 1 ? helio_sum(helio_mul(helio_value(u->variable), factor)) : helio_square(x);
  }
  return helio_minimize(u->optimizer, tape, loss, HELIO_VARIABLES(u->variable));
}

static void no_gradient_on_some_replicas_counts_as_zeros(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  uneven u = {.mask = 2, .optimizer = helio_sgd(1.0)};
  HELIO_SCOPE(two) u.variable = helio_variable(number(10), .name = "v");
  assert_made(helio_run(two, train_some, &u));
  expect_copies(u.variable, 8, 8);
  u.mask = 3;
  assert_made(helio_run(two, train_some, &u));
  expect_copies(u.variable, 5, 5);
  u.mask = 0;
  assert_null(helio_run(two, train_some, &u));
  expect_error(HELIO_INVALID_ARGUMENT, "No gradients provided for any variable");
  expect_copies(u.variable, 5, 5);
  assert_int_equal(helio_optimizer_iterations(u.optimizer), 2);
}

/* Sums may be under way already when another replica fails: what they were to be is known from the step before. */
static void a_replica_that_fails_before_its_gradients_does_not_hang_the_others(void **state) {
  (void)state;
  assert_ok(helio_shutdown());
  setenv("HELIO_TIMEOUT", "30", 1);
  helio_strategy *two = mirror(2);
  uneven u = {.mask = 3, .optimizer = helio_sgd(1.0)};
  HELIO_SCOPE(two) u.variable = helio_variable(number(20), .name = "v");
  for (int step = 1; step <= 4; step++) {
    u.fails = 0;
    assert_made(helio_run(two, train_some, &u));
    u.fails = 1 + step % 2;
    assert_null(helio_run(two, train_some, &u));
    expect_error(HELIO_INVALID_ARGUMENT, step % 2 ? "replica 1: " : "replica 0: ");
    expect_copies(u.variable, 20 - 3 * step, 20 - 3 * step);
  }
}

/* ---- memory that ends on one replica ---- */

typedef struct large {
  helio_variable *list[2];
  helio_optimizer *optimizer;
} large;

static helio_status train_large(void *argument, const helio_element *inputs, helio_element *outputs) {
  const large *l = argument;
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL;
  (void)inputs, (void)outputs;
  HELIO_TAPE(tape) {
    loss = helio_sum(helio_mul(helio_value(l->list[0]), helio_value(l->list[1])));
  }
  return loss ? helio_minimize(l->optimizer, tape, loss, &(helio_variables){2, l->list}) : helio_error_pending();
}

static helio_status sum_ones(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument, (void)inputs;
  return give(outputs, helio_all_reduce(HELIO_SUM, number(1)));
}

/* True: there was enough. */
static bool train_within(uint64_t bytes) {
  assert_ok(helio_shutdown());
  setenv("HELIO_TIMEOUT", "30", 1);
  unsetenv("HELIO_LOGICAL_DEVICES");
  if (on_gpu()) {
    assert_ok(helio_set_memory_limit("gpu:1", bytes));
  } else {
    assert_ok(helio_set_logical_devices("cpu:0", (uint64_t[]){0, bytes}, 2));
  }
  helio_strategy *two = mirror(2);
  large l = {.optimizer = helio_sgd(1.0)};
  HELIO_SCOPE(two) {
    for (int i = 0; i < 2; i++) l.list[i] = helio_variable(helio_fill(HELIO_SHAPE(65536), 1));
  }
  bool enough = l.list[1] && helio_run(two, train_large, &l);
  if (!enough) expect_error(HELIO_OUT_OF_MEMORY, nth_device_in_full(1));
  expect_each(helio_run(two, sum_ones), 2, 2);
  return enough;
}

/* Wherever in the step the memory of one replica ends, the other does not wait for it, and the strategy works again. */
static void a_replica_without_memory_does_not_hang_the_others(void **state) {
  (void)state;
  int enough = 0;
  for (uint64_t kilobytes = 300; enough == 0; kilobytes += 64) {
    if (kilobytes > 8192) fail_msg("8 MB are not enough");
    enough += train_within(kilobytes << 10);
  }
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      REPLICA_TEST(a_variable_has_a_copy_of_replica_0s_value_on_each_device),
      REPLICA_TEST(what_cannot_be_made),
      REPLICA_TEST(assignments_inside_and_outside_of_replicas),
      REPLICA_TEST(numbers_that_were_executed),
      REPLICA_TEST(variables_belong_to_their_strategy),
      REPLICA_TEST(what_comes_into_being_in_a_step_is_made_once_and_mirrored),
      REPLICA_TEST(a_variable_made_in_a_step_is_one_for_all),
      REPLICA_TEST(a_step_is_not_taken_outside_of_replicas),
      REPLICA_TEST(a_model_made_outside_the_scope_cannot_be_trained),
      REPLICA_TEST(files_do_not_depend_on_the_number_of_replicas),
      REPLICA_TEST(no_gradient_on_some_replicas_counts_as_zeros),
      REPLICA_TEST(a_replica_that_fails_before_its_gradients_does_not_hang_the_others),
      REPLICA_TEST(a_replica_without_memory_does_not_hang_the_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
