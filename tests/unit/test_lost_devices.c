/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that fail, and the program that goes on: what is counted, what is said, and what is not done behind its back.
 * The sweep over all calls is tests/faults; these are what a user does besides. */
#include <math.h>

#include "wrapped.h"

enum { ROWS = 6, BATCHES = 4, SAMPLES = ROWS * BATCHES };

/* ---- what is trained ---- */

typedef struct trainer {
  helio_model *models[2];
  helio_optimizer *optimizers[2];
  int count;
} trainer;

static void make_trainer(helio_strategy *strategy, trainer *t, int count) {
  assert_ok(helio_set_seed(3));
  t->count = count;
  for (int i = 0; i < count; i++) {
    HELIO_SCOPE(strategy) {
      t->models[i] = helio_sequential({helio_dense(1)}, .input_shape = HELIO_SHAPE(2), .type = HELIO_FLOAT64);
      t->optimizers[i] = helio_sgd(0.05);
    }
    assert_made(t->models[i]);
  }
}

static void end_trainer(const trainer *t) {
  for (int i = 0; i < t->count; i++) helio_release(t->models[i]);
}

/* An update of each model. */
static helio_status train_step(void *argument, const helio_element *inputs, helio_element *outputs) {
  const trainer *t = argument;
  helio_status status = HELIO_OK;
  (void)outputs;
  for (int i = 0; i < t->count && !status; i++) {
    helio_tape *tape = helio_tape_new();
    helio_tensor *loss = NULL;
    HELIO_TAPE(tape) {
      helio_tensor *y = helio_call(t->models[i], inputs->part[0], .training = true);
      loss = helio_compute_average_loss(helio_mean(helio_square(helio_sub(y, inputs->part[1])), HELIO_AXES(1)));
    }
    status = helio_minimize(t->optimizers[i], tape, loss, helio_trainable_variables(t->models[i]));
  }
  return status;
}

static helio_dataset *make_samples(void) {
  static double x[SAMPLES * 2], y[SAMPLES];
  for (int i = 0; i < SAMPLES * 2; i++) x[i] = sin(i);
  for (int i = 0; i < SAMPLES; i++) y[i] = cos(3 * i);
  helio_array *features = helio_array_of(x, HELIO_SHAPE(SAMPLES, 2), .type = HELIO_FLOAT64);
  helio_array *labels = helio_array_of(y, HELIO_SHAPE(SAMPLES, 1), .type = HELIO_FLOAT64);
  return helio_dataset_batch(helio_dataset_from_slices(features, labels), ROWS);
}

static helio_status take_features(void *argument, helio_element *element) {
  (void)argument;
  element->count = 1;
  return HELIO_OK;
}

static helio_distributed_iterator *iterate(helio_strategy *strategy, helio_dataset *dataset) {
  helio_distributed_iterator *batches =
      helio_iterate_distributed(helio_distribute(strategy, dataset, .prefetch = HELIO_NONE));
  assert_made(batches);
  return batches;
}

static double checksum(const trainer *t, int model) {
  double sum = 0;
  const helio_variables *weights = helio_weights(t->models[model]);
  for (int i = 0; i < weights->count; i++) sum += helio_item(helio_sum(helio_variable_copy(weights->at[i], 0)));
  assert_ok(helio_error_pending());
  return sum;
}

/* Of one device on which nothing fails. */
static double expected_checksum(void) {
  trainer t;
  double sum = NAN;
  start_wrapped("");
  helio_strategy *strategy = helio_one_device(on_gpu() ? "gpu:0" : "cpu:0");
  make_trainer(strategy, &t, 1);
  helio_distributed_iterator *batches = iterate(strategy, make_samples());
  for (helio_values *batch; (batch = helio_next_values(batches));) {
    assert_made(helio_run(strategy, train_step, &t, batch));
  }
  sum = checksum(&t, 0);
  end_trainer(&t);
  assert_ok(helio_shutdown());
  return sum;
}

/* The number of the first kernel on device 1 that fails behind the update, found by trying. */
typedef bool attempt(void);

static helio_error lost; /* of the latest attempt */

static void try_kernels(attempt *succeeds, const char *action) {
  for (int kernel = 1; kernel < 60; kernel++) {
    char rule[40];
    snprintf(rule, sizeof rule, "kernel@%d/1:%s", kernel, action);
    bool found = false;
    HELIO_POOL {
      start_wrapped(rule);
      found = succeeds();
    }
    helio_error_take(NULL);
    helio_shutdown();
    helio_error_take(NULL);
    if (found) return;
  }
  fail_msg("no kernel was the one");
}

/* ---- steps ---- */

static helio_values *take_step(helio_strategy *strategy, trainer *t, helio_values **batch) {
  helio_values *values;
  do {
    values = helio_run(strategy, train_step, t, *batch);
    if (!values && helio_error_pending()) {
      lost.status = helio_error_pending();
      snprintf(lost.message, sizeof lost.message, "%s", helio_error_message());
    }
  } while (!values && helio_retry(strategy, batch));
  return values;
}

static double right_sum;

/* Two batches at hand, and a device that is lost behind the update of the first: the second is not left out. */
static bool hold_two_batches(void) {
  trainer t;
  helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
  make_trainer(strategy, &t, 1);
  helio_distributed_iterator *batches = iterate(strategy, make_samples());
  lost.status = HELIO_OK;
  bool behind = false;
  for (int i = 0; i < BATCHES; i += 2) {
    helio_values *first = helio_next_values(batches), *second = helio_next_values(batches);
    bool taken = take_step(strategy, &t, &first);
    behind = behind || (!taken && lost.status == HELIO_REPLICA_LOST && strstr(lost.message, "was taken before that"));
    assert_ok(helio_error_pending());
    assert_made(take_step(strategy, &t, &second));
  }
  if (fabs(checksum(&t, 0) - right_sum) > 1e-12) fail_msg("%.17g instead of %.17g", checksum(&t, 0), right_sum);
  end_trainer(&t);
  return behind;
}

static void a_loss_behind_an_update_leaves_no_batch_out(void **state) {
  (void)state;
  right_sum = expected_checksum();
  try_kernels(hold_two_batches, "fail");
}

/* A step of two updates that took one: an error that stays, never "taken". */
static bool update_two_models(void) {
  trainer t;
  helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
  make_trainer(strategy, &t, 2);
  helio_distributed_iterator *batches = iterate(strategy, make_samples());
  double before[2] = {checksum(&t, 0), checksum(&t, 1)};
  helio_values *batch = helio_next_values(batches);
  lost.status = HELIO_OK;
  bool taken = take_step(strategy, &t, &batch), pending = helio_error_pending();
  helio_error_take(NULL);
  bool first = checksum(&t, 0) != before[0], second = checksum(&t, 1) != before[1];
  assert_true(second || !taken);
  assert_int_equal(first && !second, pending); /* all or nothing goes on in silence, a half does not */
  if (pending) assert_non_null(strstr(lost.message, "not all of its updates"));
  end_trainer(&t);
  return first && !second;
}

static void a_step_of_two_updates_is_never_half_taken_in_silence(void **state) {
  (void)state;
  try_kernels(update_two_models, "fail");
}

/* ---- evaluation ---- */

static helio_status sum_rows(void *argument, const helio_element *inputs, helio_element *outputs) {
  (void)argument;
  outputs->part[outputs->count++] = helio_sum(helio_square(inputs->part[0]));
  return helio_error_pending();
}

/* Over all batches, with whatever replicas are left. */
static double sum_all(helio_strategy *strategy, helio_dataset *dataset) {
  double total = 0;
  helio_distributed_iterator *batches = iterate(strategy, dataset);
  for (helio_values *batch, *sums; (batch = helio_next_values(batches));) {
    do {
      sums = helio_run(strategy, sum_rows, NULL, batch);
    } while (!sums && helio_retry(strategy, &batch));
    total += helio_item(helio_reduce(strategy, HELIO_SUM, sums));
  }
  assert_ok(helio_error_pending());
  return total;
}

/* What fails late is noticed before its numbers are used, also where nothing is updated. */
static void a_late_failure_does_not_spoil_an_evaluation(void **state) {
  (void)state;
  for (int kernel = 1; kernel < 8; kernel++) {
    char rule[40];
    double total = 0, right = 0;
    snprintf(rule, sizeof rule, "kernel@%d/1:late", kernel);
    HELIO_POOL {
      start_wrapped(rule);
      helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
      total = sum_all(strategy, make_samples());
      assert_int_equal(helio_num_replicas(strategy), 2);
    }
    for (int i = 0; i < SAMPLES * 2; i++) right += sin(i) * sin(i);
    if (fabs(total - right) > 1e-12 * right) fail_msg("%s: %.17g instead of %.17g", rule, total, right);
    helio_shutdown();
    helio_error_take(NULL);
  }
}

/* ---- prediction ---- */

static void predict_all(const char *rule, double results[SAMPLES], int *replicas) {
  start_wrapped(rule);
  HELIO_POOL {
    trainer t;
    helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
    make_trainer(strategy, &t, 1);
    helio_array *found = helio_predict(t.models[0], helio_dataset_map(make_samples(), take_features));
    assert_made(found);
    assert_int_equal(helio_array_shape(found).extent[0], SAMPLES);
    memcpy(results, helio_array_data(found), SAMPLES * sizeof *results);
    *replicas = helio_num_replicas(strategy);
    end_trainer(&t);
  }
  helio_shutdown();
  helio_error_take(NULL);
}

/* Also when the device fails while what it has computed is read. */
static void a_lost_device_takes_no_predictions_with_it(void **state) {
  (void)state;
  double right[SAMPLES], found[SAMPLES];
  int replicas = 0, losses = 0;
  predict_all("", right, &replicas);
  assert_int_equal(replicas, 3);
  for (int copy = 12; copy < 40; copy++) { /* behind those that make the model's variables */
    char rule[40];
    snprintf(rule, sizeof rule, "copy@%d/1:fail", copy);
    predict_all(rule, found, &replicas);
    losses += replicas == 2;
    for (int i = 0; i < SAMPLES; i++) {
      if (fabs(found[i] - right[i]) > 1e-12) fail_msg("%s: sample %d: %.17g, not %.17g", rule, i, found[i], right[i]);
    }
  }
  assert_true(losses > 10);
}

/* ---- what helio_retry() says ---- */

static void what_cannot_be_split_is_tried_once(void **state) {
  (void)state;
  start_wrapped("kernel@1/1:fail");
  helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
  helio_values *same = helio_values_same(strategy, helio_fill(HELIO_SHAPE(3), 2)), *sums;
  int tries = 0;
  do {
    sums = helio_run(strategy, sum_rows, NULL, same);
  } while (!sums && ++tries < 10 && helio_retry(strategy, NULL));
  assert_null(sums);
  assert_int_equal(tries, 2);
  expect_error(HELIO_REPLICA_LOST, "for the replicas that are left");
}

static void parts_of_stale_values_are_refused(void **state) {
  (void)state;
  start_wrapped("kernel@1/2:fail");
  helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
  helio_values *batch = helio_next_values(iterate(strategy, make_samples()));
  helio_error_take(NULL);
  assert_null(helio_run(strategy, sum_rows, NULL, batch));
  helio_error_take(NULL);
  assert_null(helio_values_part(batch, 0));
  expect_error(HELIO_REPLICA_LOST, "were made for 3 replicas, of which 2 are left");
}

/* ---- data ---- */

static helio_status double_features(void *argument, helio_element *element) {
  (void)argument;
  element->part[0] = helio_add(element->part[0], element->part[0]);
  return helio_error_pending();
}

/* Functions of a dataset for replicas run on the host, so a lost device takes no data with it. */
static void a_map_outlives_the_first_device(void **state) {
  (void)state;
  double total = 0, right = 0;
  start_wrapped("kernel@2/0:fail");
  helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
  total = sum_all(strategy, helio_dataset_map(make_samples(), double_features));
  assert_int_equal(helio_num_replicas(strategy), 2);
  for (int i = 0; i < SAMPLES * 2; i++) right += 4 * sin(i) * sin(i);
  assert_true(fabs(total - right) <= 1e-12 * right);
}

/* A second device fails while what was made ahead for three is split among the two that are left. */
static void a_batch_is_split_until_it_succeeds(void **state) {
  (void)state;
  int alone = 0;
  for (int copy = 2; copy < 30; copy++) { /* the first one opens the device */
    char rule[60];
    int count = 1;
    snprintf(rule, sizeof rule, "kernel@1/1:fail; copy@%d+/2:fail", copy);
    HELIO_POOL {
      start_wrapped(rule);
      helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
      helio_distributed_iterator *batches =
          helio_iterate_distributed(helio_distribute(strategy, make_samples(), .prefetch = BATCHES));
      helio_values *batch = helio_next_values(batches);
      assert_made(batch);
      while (!helio_run(strategy, sum_rows, NULL, batch)) assert_true(helio_retry(strategy, &batch));
      while (helio_next_values(batches)) count++;
      assert_ok(helio_error_pending());
      alone += helio_num_replicas(strategy) == 1;
    }
    if (count != BATCHES) fail_msg("%s: %d batches", rule, count);
    helio_shutdown();
    helio_error_take(NULL);
  }
  assert_true(alone > 0);
}

/* ---- reading ---- */

/* A read that fails is over: nothing is written to the caller's memory any more. */
static void a_read_that_failed_writes_nothing_later(void **state) {
  (void)state;
  enum { COUNT = 1000 };
  static float numbers[COUNT];
  start_wrapped("copy@4/0:fail"); /* in, out, the status words; out, … */
  helio_tensor *ones = NULL;
  HELIO_DEVICE(device_name()) ones = helio_fill(HELIO_SHAPE(COUNT), 1);
  assert_made(ones);
  bool failed = false;
  for (int i = 0; i < 3 && !failed; i++) {
    memset(numbers, 0, sizeof numbers);
    failed = helio_tensor_read(ones, numbers, sizeof numbers) != HELIO_OK;
  }
  assert_true(failed);
  float copy[COUNT];
  helio_error_take(NULL);
  memcpy(copy, numbers, sizeof copy);
  memset(numbers, 0, sizeof numbers);
  helio_synchronize(device_name());
  helio_error_take(NULL);
  for (int i = 0; i < COUNT; i++) assert_true(numbers[i] == 0);
}

static void who_was_lost_is_known(void **state) {
  (void)state;
  start_wrapped("kernel@1/1:fail");
  helio_strategy *strategy = mirrored_over(2, NULL, "reduce-to-one");
  char name[200];
  snprintf(name, sizeof name, "%s", helio_strategy_device(strategy, 1));
  assert_false(helio_device_lost(name));
  helio_values *same = helio_values_same(strategy, helio_fill(HELIO_SHAPE(3), 2));
  assert_null(helio_run(strategy, sum_rows, NULL, same));
  helio_error_take(NULL);
  assert_true(helio_device_lost(name));
  assert_int_equal(helio_synchronize(name), HELIO_DEVICE_FAILURE);
  const char *advice = "use others, or start the program again"; /* this process may not have it again */
  assert_non_null(strstr(helio_error_message(), advice));
  helio_error_take(NULL);
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      TEST(a_loss_behind_an_update_leaves_no_batch_out), TEST(a_step_of_two_updates_is_never_half_taken_in_silence),
      TEST(a_late_failure_does_not_spoil_an_evaluation), TEST(what_cannot_be_split_is_tried_once),
      TEST(parts_of_stale_values_are_refused),           TEST(a_map_outlives_the_first_device),
      TEST(a_read_that_failed_writes_nothing_later),     TEST(who_was_lost_is_known),
      TEST(a_lost_device_takes_no_predictions_with_it),  TEST(a_batch_is_split_until_it_succeeds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
