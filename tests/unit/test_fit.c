/* SPDX-License-Identifier: Apache-2.0 */
/* compile, fit, evaluate, predict: by what is known of them without running them. A training by hand with the same
 * operations gives the same; any number of replicas gives what one gives; Keras' rules say what is told when. */
#include <math.h>
#include <pthread.h>

#include "wrapped.h"

enum { SAMPLES = 50, FEATURES = 6, CLASSES = 4 };

static double features[SAMPLES * FEATURES];
static int32_t labels[SAMPLES];

static helio_array *some_x(void) {
  for (int i = 0; i < SAMPLES * FEATURES; i++) features[i] = sin(0.7 * i);
  return helio_array_of(features, HELIO_SHAPE(SAMPLES, FEATURES), .type = HELIO_FLOAT64);
}

static helio_array *some_y(void) {
  for (int i = 0; i < SAMPLES; i++) labels[i] = (i * 7 + i / 3) % CLASSES;
  return helio_array_of(labels, HELIO_SHAPE(SAMPLES), .type = HELIO_INT32);
}

/* In float64, in which the law holds to 1e-9; with all that depends on where samples stand: dropout, a regularizer. */
static helio_model *make_model(void) {
  helio_set_seed(5);
  helio_model *model = helio_sequential({helio_dense(8, .activation = HELIO_TANH, .kernel_regularizer = {.l2 = 0.01}),
                                         helio_dropout(0.25), helio_dense(CLASSES, .activation = HELIO_SOFTMAX)},
                                        .input_shape = HELIO_SHAPE(FEATURES), .type = HELIO_FLOAT64);
  helio_compile(model, .optimizer = helio_adam(0.02), .loss = helio_sparse_categorical_crossentropy(),
                .metrics = {helio_sparse_categorical_accuracy(.type = HELIO_FLOAT64)});
  assert_made(model);
  return model;
}

static helio_model *model_on(helio_strategy *strategy) {
  helio_model *model = NULL;
  HELIO_SCOPE(strategy) model = make_model();
  return model;
}

static void read_weights(helio_model *model, double *numbers, int *count) {
  const helio_variables *weights = helio_weights(model);
  *count = 0;
  assert_made(weights);
  for (int i = 0; i < weights->count; i++) {
    helio_tensor *value = helio_variable_copy(weights->at[i], 0);
    size_t elements = (size_t)helio_tensor_elements(value);
    assert_ok(helio_tensor_read(value, numbers + *count, elements * sizeof *numbers));
    *count += (int)elements;
  }
}

enum { MOST_NUMBERS = 200 };

static void assert_near(const double *found, const double *expected, int count, double most) {
  double worst = 0, largest = 0;
  for (int i = 0; i < count; i++) {
    worst = fmax(worst, fabs(found[i] - expected[i]));
    largest = fmax(largest, fabs(expected[i]));
  }
  if (!(worst <= most * largest)) fail_msg("off by %.3g", worst / largest);
}

/* ---- by hand ---- */

typedef struct by_hand {
  helio_model *model;
  helio_optimizer *optimizer;
  helio_loss *loss;
} by_hand;

static helio_status step_by_hand(void *argument, const helio_element *inputs, helio_element *outputs) {
  const by_hand *t = argument;
  helio_tape *tape = helio_tape_new();
  helio_tensor *loss = NULL;
  HELIO_TAPE(tape) {
    helio_tensor *y = helio_call(t->model, inputs->part[0], .training = true);
    loss = helio_add(helio_compute_loss(t->loss, inputs->part[1], y), helio_regularization_loss(t->model));
  }
  outputs->part[outputs->count++] = loss;
  return helio_minimize(t->optimizer, tape, loss, helio_trainable_variables(t->model));
}

/* Two epochs in the order of the samples: weights, and the mean loss of each epoch, batches counting by their rows. */
static void train_by_hand(int batch, double *weights, int *count, double losses[2]) {
  helio_strategy *one = helio_one_device(device_name());
  by_hand t = {.loss = helio_sparse_categorical_crossentropy()};
  HELIO_SCOPE(one) {
    t.model = make_model();
    t.optimizer = helio_adam(0.02);
  }
  helio_distributed *batches =
      helio_distribute(one, helio_dataset_batch(helio_dataset_from_slices(some_x(), some_y()), batch));
  for (int epoch = 0; epoch < 2; epoch++) {
    double sum = 0;
    int left = SAMPLES;
    helio_distributed_iterator *iterator = helio_iterate_distributed(batches);
    for (helio_values *values, *found; (values = helio_next_values(iterator)); left -= batch) {
      found = helio_run(one, step_by_hand, &t, values);
      assert_made(found);
      sum += helio_item(helio_values_at(found, 0, 0)) * (left < batch ? left : batch);
    }
    losses[epoch] = sum / SAMPLES;
  }
  read_weights(t.model, weights, count);
  helio_release(t.model);
}

static void fit_is_what_a_loop_by_hand_is(void **state) {
  (void)state;
  double expected[MOST_NUMBERS], found[MOST_NUMBERS], losses[2];
  int count, again;
  start_wrapped("");
  train_by_hand(16, expected, &count, losses);
  for (int replicas = 1; replicas <= 3; replicas++) {
    helio_strategy *strategy =
        replicas == 1 ? helio_one_device(device_name()) : mirrored_over(replicas, NULL, "reduce-to-one");
    helio_model *model = model_on(strategy);
    helio_history *history = helio_fit(model, .x = some_x(), .y = some_y(), .batch_size = 16, .no_shuffle = true,
                                       .epochs = 2, .verbose = HELIO_QUIET);
    assert_made(history);
    assert_int_equal(helio_history_epochs(history), 2);
    for (int i = 0; i < 2; i++) {
      double loss = helio_history_value(history, "loss", i);
      assert_near(&loss, &losses[i], 1, 1e-9);
    }
    read_weights(model, found, &again);
    assert_int_equal(count, again);
    assert_near(found, expected, count, 1e-9);
    helio_release(model);
  }
}

/* The same without a strategy, and with a dataset. */
static void a_dataset_is_what_arrays_are(void **state) {
  (void)state;
  double expected[MOST_NUMBERS], found[MOST_NUMBERS], losses[2];
  int count, again;
  start_wrapped("");
  train_by_hand(16, expected, &count, losses);
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    helio_dataset *dataset = helio_dataset_batch(helio_dataset_from_slices(some_x(), some_y()), 16);
    assert_made(helio_fit(model, dataset, .epochs = 2, .verbose = HELIO_QUIET));
    read_weights(model, found, &again);
    assert_near(found, expected, count, 1e-9);
    helio_release(model);
  }
}

/* ---- what is measured ---- */

/* Of what the model predicts, with weights of samples, NULL: 1, over which Keras' mean is of all samples. */
static double loss_of_predictions(helio_model *model, const double *p, const double *sample_weights) {
  double loss = 0, penalty = 0, numbers[MOST_NUMBERS];
  int count;
  for (int i = 0; i < SAMPLES; i++) loss -= (sample_weights ? sample_weights[i] : 1) * log(p[i * CLASSES + labels[i]]);
  read_weights(model, numbers, &count);
  for (int i = 0; i < FEATURES * 8; i++) penalty += 0.01 * numbers[i] * numbers[i];
  return loss / SAMPLES + penalty;
}

static void evaluation_and_prediction_agree(void **state) {
  (void)state;
  start_wrapped("");
  for (int replicas = 1; replicas <= 3; replicas += 2) {
    helio_strategy *strategy =
        replicas == 1 ? helio_one_device(device_name()) : mirrored_over(replicas, NULL, "reduce-to-one");
    helio_model *model = model_on(strategy);
    assert_made(helio_fit(model, .x = some_x(), .y = some_y(), .verbose = HELIO_QUIET));
    helio_array *predicted = helio_predict(model, .x = some_x(), .batch_size = 7);
    assert_made(predicted);
    const double *p = helio_array_data(predicted);
    double right = 0;
    for (int i = 0; i < SAMPLES; i++) {
      int best = 0;
      for (int k = 1; k < CLASSES; k++) best = p[i * CLASSES + k] > p[i * CLASSES + best] ? k : best;
      right += best == labels[i];
    }
    helio_logs *logs = helio_evaluate(model, .x = some_x(), .y = some_y(), .batch_size = 9, .verbose = HELIO_QUIET);
    assert_made(logs);
    assert_int_equal(helio_logs_count(logs), 2);
    assert_string_equal(helio_logs_name(logs, 0), "loss");
    assert_string_equal(helio_logs_name(logs, 1), "sparse_categorical_accuracy");
    double expected[2] = {loss_of_predictions(model, p, NULL), right / SAMPLES};
    double found[2] = {helio_logs_value(logs, 0), helio_logs_get(logs, "sparse_categorical_accuracy")};
    assert_near(found, expected, 2, 1e-9);
    helio_release(model);
  }
}

static void validation_stands_behind_training(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    helio_history *history = helio_fit(model, .x = some_x(), .y = some_y(), .validation_split = 0.2, .epochs = 3,
                                       .validation_frequency = 2, .verbose = HELIO_QUIET);
    assert_made(history);
    static const char *const names[] = {"loss", "sparse_categorical_accuracy", "val_loss",
                                        "val_sparse_categorical_accuracy"};
    assert_int_equal(helio_history_count(history), 4);
    for (int i = 0; i < 4; i++) assert_string_equal(helio_history_name(history, i), names[i]);
    assert_true(isnan(helio_history_value(history, "val_loss", 0)));
    assert_false(isnan(helio_history_value(history, "val_loss", 1)));
    helio_release(model);
  }
}

/* Behind the last epoch the validation is an evaluation of the last ten samples, however they are given, and weights of
 * classes, which are for learning, do not count in it. */
static void validation_is_an_evaluation(void **state) {
  (void)state;
  start_wrapped("");
  helio_strategy *strategy = mirrored_over(2, NULL, "reduce-to-one");
  for (int way = 0; way < 3; way++) {
    helio_model *model = model_on(strategy);
    helio_array *x = helio_array_part(some_x(), 40, -1), *y = helio_array_part(some_y(), 40, -1);
    helio_fit_options o = {.size = sizeof o,
                           .model = model,
                           .x = some_x(),
                           .y = some_y(),
                           .epochs = 2,
                           .class_weights = (double[]){5, 1, 1, 0.5},
                           .class_count = CLASSES,
                           .verbose = HELIO_QUIET};
    if (way == 0) o.validation_split = 0.2;
    if (way == 1) o.validation_x = x, o.validation_y = y;
    if (way == 2) {
      o.validation_x_tensor = helio_array_tensor(x);
      o.validation_y_tensor = helio_array_tensor(y);
    }
    helio_history *history = helio_fit_with(&o);
    helio_logs *logs = history ? helio_evaluate(model, .x = x, .y = y, .verbose = HELIO_QUIET) : NULL;
    assert_made(logs);
    double found = helio_history_value(history, "val_loss", 1), expected = helio_logs_get(logs, "loss");
    assert_near(&found, &expected, 1, 1e-9);
    helio_release(model);
  }
}

static void weights_of_samples_and_classes(void **state) {
  (void)state;
  double weights[SAMPLES], by_class[CLASSES] = {0.5, 1, 2, 4};
  start_wrapped("");
  helio_strategy *strategy = mirrored_over(2, NULL, "reduce-to-one");
  helio_model *model = model_on(strategy);
  helio_array *x = some_x(), *y = some_y();
  for (int i = 0; i < SAMPLES; i++) weights[i] = by_class[labels[i]];
  helio_array *given = helio_array_of(weights, HELIO_SHAPE(SAMPLES), .type = HELIO_FLOAT64);
  helio_logs *a = helio_test_on_batch(model, .x = x, .y = y, .sample_weights = given);
  double by_sample = a ? helio_logs_value(a, 0) : NAN;
  helio_logs *b = helio_test_on_batch(model, .x = x, .y = y, .class_weights = by_class, .class_count = CLASSES);
  double by_number = b ? helio_logs_value(b, 0) : NAN;
  assert_ok(helio_error_pending());
  helio_array *predicted = helio_predict(model, .x = x);
  assert_made(predicted);
  double expected = loss_of_predictions(model, helio_array_data(predicted), weights);
  assert_near(&by_sample, &expected, 1, 1e-9);
  assert_near(&by_number, &expected, 1, 1e-9);
  helio_release(model);
}

static void train_two_batches(helio_model *model, const double losses[2]) {
  for (int i = 0; i < 2; i++) {
    helio_logs *logs = helio_train_on_batch(model, .x = some_x(), .y = some_y());
    assert_made(logs);
    double loss = helio_logs_get(logs, "loss");
    assert_near(&loss, &losses[i], 1, 1e-9);
  }
}

static void one_batch_at_a_time(void **state) {
  (void)state;
  double expected[MOST_NUMBERS], found[MOST_NUMBERS], losses[2];
  int count, again;
  start_wrapped("");
  train_by_hand(SAMPLES, expected, &count, losses);
  for (int replicas = 0; replicas <= 3; replicas += 3) { /* 0: in no scope */
    helio_model *model = NULL;
    HELIO_DEVICE(device_name()) {
      model = replicas ? model_on(mirrored_over(replicas, NULL, "reduce-to-one")) : make_model();
      train_two_batches(model, losses);
    }
    read_weights(model, found, &again);
    assert_near(found, expected, count, 1e-9);
    helio_release(model);
  }
}

/* ---- callbacks ---- */

static struct {
  char text[4000];
  double losses[100];
  int count, stop_at;
} noted;

static void note(const char *what) {
  strncat(noted.text, what, sizeof noted.text - strlen(noted.text) - 1);
}

static helio_status on_train_begin(void *user, helio_training *t) {
  (void)user, (void)t;
  note("T");
  return HELIO_OK;
}

static helio_status on_train_end(void *user, helio_training *t) {
  (void)user, (void)t;
  note("t");
  return HELIO_OK;
}

static helio_status on_epoch_begin(void *user, helio_training *t) {
  (void)user, (void)t;
  note("E");
  return HELIO_OK;
}

static helio_status on_epoch_end(void *user, helio_training *t) {
  (void)user;
  assert_int_equal(t->samples, SAMPLES);
  note("e");
  return HELIO_OK;
}

static helio_status on_batch_begin(void *user, helio_training *t) {
  (void)user, (void)t;
  note("B");
  return HELIO_OK;
}

static helio_status on_batch_end(void *user, helio_training *t) {
  (void)user;
  note("b");
  noted.losses[noted.count++] = helio_logs_get(t->batch_logs, "loss");
  if (noted.count == noted.stop_at) t->stop = true;
  return HELIO_OK;
}

static helio_status on_test_begin(void *user, helio_training *t) {
  (void)user, (void)t;
  note("V");
  return HELIO_OK;
}

static helio_status on_test_end(void *user, helio_training *t) {
  (void)user, (void)t;
  note("v");
  return HELIO_OK;
}

static helio_callback *noting(void) {
  memset(&noted, 0, sizeof noted);
  return helio_callback(.train_begin = on_train_begin, .train_end = on_train_end, .epoch_begin = on_epoch_begin,
                        .epoch_end = on_epoch_end, .batch_begin = on_batch_begin, .batch_end = on_batch_end,
                        .test_begin = on_test_begin, .test_end = on_test_end);
}

static void callbacks_are_told_in_order(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    helio_array *x = some_x(), *y = some_y();
    assert_made(helio_fit(model, .x = x, .y = y, .epochs = 2, .batch_size = 20, .validation_x = x, .validation_y = y,
                          .callbacks = {noting()}, .verbose = HELIO_QUIET));
    assert_string_equal(noted.text, "TEBbBbBbVveEBbBbBbVvet");
    helio_callback *stopping = noting();
    noted.stop_at = 4;
    helio_history *history = helio_fit(model, .x = x, .y = y, .epochs = 5, .batch_size = 25, .callbacks = {stopping},
                                       .verbose = HELIO_QUIET);
    assert_made(history);
    assert_string_equal(noted.text, "TEBbBbeEBbBbet");
    assert_int_equal(helio_history_epochs(history), 2);
    helio_release(model);
  }
}

/* Which holds for the next training: this one goes on as it began. */
static helio_status compile_again(void *user, helio_training *t) {
  (void)user;
  return helio_compile(t->model, .optimizer = helio_sgd(0.1), .loss_name = "sparse_categorical_crossentropy");
}

static void a_callback_that_compiles(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    helio_history *history = helio_fit(model, .x = some_x(), .y = some_y(), .epochs = 2, .verbose = HELIO_QUIET,
                                       .callbacks = {helio_callback(.batch_end = compile_again)});
    assert_made(history);
    assert_int_equal(helio_history_count(history), 2);
    assert_false(isnan(helio_history_value(history, "sparse_categorical_accuracy", 1)));
    history = helio_fit(model, .x = some_x(), .y = some_y(), .verbose = HELIO_QUIET);
    assert_made(history);
    assert_int_equal(helio_history_count(history), 1);
    helio_release(model);
  }
}

static helio_status release_model(void *user, helio_training *t) {
  (void)user;
  if (t->total_steps == 1) helio_release(t->model);
  return HELIO_OK;
}

static void a_callback_that_releases_the_model(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    assert_made(helio_fit(make_model(), .x = some_x(), .y = some_y(), .epochs = 2, .verbose = HELIO_QUIET,
                          .callbacks = {helio_callback(.batch_end = release_model)}));
  }
}

static helio_status evaluate_all(void *user, helio_training *t) {
  static bool inside;
  (void)user;
  if (inside) return HELIO_OK;
  inside = true;
  helio_evaluate(t->model, .x = some_x(), .y = some_y(), .verbose = HELIO_QUIET);
  inside = false;
  return helio_error_pending();
}

/* What was measured is not what a callback measures behind it. */
static void a_callback_that_evaluates(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    helio_array *x = helio_array_part(some_x(), 0, 9), *y = helio_array_part(some_y(), 0, 9);
    helio_history *history = helio_fit(model, .x = some_x(), .y = some_y(), .validation_x = x, .validation_y = y,
                                       .verbose = HELIO_QUIET, .callbacks = {helio_callback(.test_end = evaluate_all)});
    assert_made(history);
    helio_logs *logs = helio_evaluate(model, .x = x, .y = y, .verbose = HELIO_QUIET);
    assert_made(logs);
    double found = helio_history_value(history, "val_loss", 0), expected = helio_logs_get(logs, "loss");
    assert_near(&found, &expected, 1, 1e-12);
    helio_release(model);
  }
}

static helio_status stop_now(void *user, helio_training *t) {
  (void)user;
  t->stop = true;
  return HELIO_OK;
}

/* Of an epoch without a step there is nothing to tell. */
static void epochs_without_steps(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    helio_dataset *dataset = helio_dataset_batch(helio_dataset_from_slices(some_x(), some_y()), 25);
    helio_history *history = helio_fit(model, dataset, .steps_per_epoch = 1, .epochs = 4, .verbose = HELIO_QUIET);
    assert_made(history);
    assert_int_equal(helio_history_epochs(history), 2);
    history = helio_fit(model, dataset, .epochs = 4, .verbose = HELIO_QUIET,
                        .callbacks = {helio_callback(.epoch_begin = stop_now)});
    assert_made(history);
    assert_int_equal(helio_history_epochs(history), 0);
    helio_release(model);
  }
}

/* A model knows the scope it was made in, also if it has no variables yet. */
static void a_model_is_trained_where_it_was_made(void **state) {
  (void)state;
  start_wrapped("");
  helio_strategy *strategy = mirrored_over(2, NULL, "reduce-to-one");
  helio_model *model = NULL;
  HELIO_SCOPE(strategy) model = helio_sequential({helio_dense(CLASSES)});
  assert_ok(helio_compile(model, .optimizer_name = "sgd", .loss_name = "sparse_categorical_crossentropy"));
  assert_made(helio_fit(model, .x = some_x(), .y = some_y(), .verbose = HELIO_QUIET));
  const helio_variables *weights = helio_weights(model);
  assert_made(weights);
  assert_int_equal(helio_variable_copies(weights->at[0]), 2);
  helio_release(model);
}

/* ---- failures ---- */

/* Said by the call that it is of, and by no later one. */
static void a_label_that_is_none(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    helio_array *x = some_x(), *y = helio_array_of((int32_t[]){CLASSES}, HELIO_SHAPE(1), .type = HELIO_INT32);
    helio_array *one = helio_array_part(x, 0, 1);
    assert_null(helio_evaluate(model, .x = one, .y = y, .verbose = HELIO_QUIET));
    expect_error(HELIO_BAD_DATA, "label 4");
    assert_made(helio_predict(model, .x = one));
    helio_release(model);
  }
}

static helio_model *model_that(helio_on_failure on_failure) {
  helio_mirrored_options options = {.size = sizeof options, .collective = "reduce-to-one", .on_failure = on_failure};
  static const char *const names[2][3] = {{"cpu:0", "cpu:1", "cpu:2"}, {"gpu:0", "gpu:1", "gpu:2"}};
  for (int i = 0; i < 3; i++) options.devices[i] = names[on_gpu()][i];
  helio_strategy *strategy = helio_mirrored_with(&options);
  assert_made(strategy);
  return model_on(strategy);
}

/* Whichever replica has got it, whether or not a step is waited for. */
static void a_label_that_is_none_of_any_replica(void **state) {
  (void)state;
  enum { ROWS = 12, PART = ROWS / 3 };
  static const helio_on_failure ways[] = {HELIO_DROP, HELIO_STOP};
  for (int i = 0; i < 6; i++) {
    double before[MOST_NUMBERS], behind[MOST_NUMBERS];
    int count;
    start_wrapped("");
    HELIO_POOL {
      helio_model *model = model_that(ways[i % 2]);
      helio_array *x = helio_array_part(some_x(), 0, ROWS);
      some_y();
      labels[i / 2 * PART + 1] = CLASSES;
      helio_array *y = helio_array_of(labels, HELIO_SHAPE(ROWS), .type = HELIO_INT32);
      read_weights(model, before, &count);
      assert_null(helio_fit(model, .x = x, .y = y, .batch_size = ROWS, .no_shuffle = true, .verbose = HELIO_QUIET));
      expect_error(HELIO_BAD_DATA, "label 4");
      read_weights(model, behind, &count);
      bool waits = ways[i % 2] == HELIO_DROP || !on_strict(); /* before the step counts */
      if (waits) assert_memory_equal(before, behind, (size_t)count * sizeof *before);
      assert_null(helio_evaluate(model, .x = x, .y = y, .batch_size = ROWS, .verbose = HELIO_QUIET));
      expect_error(HELIO_BAD_DATA, "label 4");
      helio_release(model);
    }
    assert_ok(helio_shutdown());
  }
}

/* The sums of a step know that others are measured now, in other shapes. */
static void other_metrics_of_the_same_optimizer(void **state) {
  (void)state;
  static float x[8], y[8] = {0, 1, 0, 1, 1, 0, 1, 1};
  start_wrapped("");
  helio_strategy *strategy = mirrored_over(2, NULL, "reduce-to-one");
  helio_model *model = NULL;
  helio_metric *one = NULL, *two = NULL;
  helio_optimizer *optimizer = NULL;
  HELIO_SCOPE(strategy) {
    model = helio_sequential({helio_dense(1, .activation = HELIO_SIGMOID)}, .input_shape = HELIO_SHAPE(1));
    optimizer = helio_sgd(0.1);
    one = helio_precision();
    two = helio_precision(.thresholds = (double[]){0.3, 0.6}, .threshold_count = 2);
  }
  helio_array *all_x = helio_array_of(x, HELIO_SHAPE(8, 1)), *all_y = helio_array_of(y, HELIO_SHAPE(8, 1));
  for (int i = 0; i < 2; i++) {
    assert_ok(
        helio_compile(model, .optimizer = optimizer, .loss = helio_binary_crossentropy(), .metrics = {i ? two : one}));
    assert_made(helio_fit(model, .x = all_x, .y = all_y, .batch_size = 4, .epochs = 3, .verbose = HELIO_QUIET));
  }
  helio_release(model);
}

typedef struct elsewhere {
  helio_model *model;
  helio_error errors[2]; /* of measuring, of training on a batch */
} elsewhere;

static void *measure_elsewhere(void *argument) {
  elsewhere *e = argument;
  HELIO_POOL {
    helio_evaluate(e->model, .x = some_x(), .y = some_y(), .verbose = HELIO_QUIET);
    helio_error_take(&e->errors[0]);
    helio_train_on_batch(e->model, .x = some_x(), .y = some_y());
    helio_error_take(&e->errors[1]);
  }
  return NULL;
}

static helio_status let_measure(void *user, helio_training *training) {
  pthread_t thread;
  (void)training;
  assert_int_equal(pthread_create(&thread, NULL, measure_elsewhere, user), 0);
  pthread_join(thread, NULL);
  return HELIO_OK;
}

/* Two that measured at the same time would each get numbers of both. */
static void one_thread_measures_at_a_time(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    elsewhere e = {.model = make_model()};
    assert_made(helio_fit(e.model, .x = some_x(), .y = some_y(), .verbose = HELIO_QUIET,
                          .callbacks = {helio_callback(.user = &e, .batch_end = let_measure)}));
    for (int i = 0; i < 2; i++) {
      assert_int_equal(e.errors[i].status, HELIO_WRONG_STATE);
      assert_non_null(strstr(e.errors[i].message, "another thread trains this model"));
    }
    assert_string_equal(e.errors[0].where, "helio_evaluate");
    assert_string_equal(e.errors[1].where, "helio_train_on_batch");
    let_measure(&e, NULL);
    for (int i = 0; i < 2; i++) assert_int_equal(e.errors[i].status, HELIO_OK);
    helio_release(e.model);
  }
}

static void endless_data(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    helio_dataset *batches = helio_dataset_batch(helio_dataset_from_slices(some_x(), some_y()), 10);
    helio_dataset *endless = helio_dataset_repeat(batches, -1);
    assert_null(helio_fit(model, endless));
    expect_error(HELIO_INVALID_ARGUMENT, "the dataset that is trained on has no end");
    assert_null(helio_fit(model, batches, .validation = endless));
    expect_error(HELIO_INVALID_ARGUMENT, "the dataset that is measured has no end");
    assert_null(helio_evaluate(model, endless));
    expect_error(HELIO_INVALID_ARGUMENT, "the dataset that is measured has no end");
    assert_null(helio_predict(model, endless));
    expect_error(HELIO_INVALID_ARGUMENT, "the dataset that is predicted for has no end");
    assert_made(helio_fit(model, batches, .validation = endless, .validation_steps = 2, .verbose = HELIO_QUIET));
    helio_release(model);
  }
}

static void a_lost_device_changes_nothing(void **state) {
  (void)state;
  double expected[MOST_NUMBERS], found[MOST_NUMBERS], losses[2];
  int count, again;
  start_wrapped("");
  train_by_hand(16, expected, &count, losses);
  assert_ok(helio_shutdown());
  for (int kernel = 20; kernel < 220; kernel += 40) {
    char rule[40];
    snprintf(rule, sizeof rule, "kernel@%d/1:fail", kernel);
    start_wrapped(rule);
    HELIO_POOL {
      helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
      helio_model *model = model_on(strategy);
      helio_history *history = helio_fit(model, .x = some_x(), .y = some_y(), .batch_size = 16, .no_shuffle = true,
                                         .epochs = 2, .verbose = HELIO_QUIET);
      assert_made(history);
      assert_int_equal(helio_num_replicas(strategy), 2);
      for (int i = 0; i < 2; i++) { /* sums of losses are on every replica: none is lost */
        double loss = helio_history_value(history, "loss", i);
        assert_near(&loss, &losses[i], 1, 1e-9);
      }
      read_weights(model, found, &again);
      assert_near(found, expected, count, 1e-9);
      helio_release(model);
    }
    helio_shutdown();
    helio_error_take(NULL);
  }
}

static void wrong_calls(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    helio_model *model = helio_sequential({helio_dense(CLASSES)}, .input_shape = HELIO_SHAPE(FEATURES));
    assert_null(helio_fit(model, .x = some_x(), .y = some_y()));
    expect_error(HELIO_WRONG_STATE, "You must call helio_compile()");
    assert_int_equal(helio_compile(model, .loss_name = "mean_squared_eror"), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "did you mean");
    helio_release(model);
    model = make_model();
    assert_null(helio_fit(model));
    expect_error(HELIO_INVALID_ARGUMENT, "neither a dataset nor x is given");
    assert_null(helio_fit(model, .x = some_x()));
    expect_error(HELIO_INVALID_ARGUMENT, "without labels");
    assert_null(helio_fit(model, .x = some_x(), .y = helio_array_part(some_y(), 0, 49)));
    expect_error(HELIO_INVALID_ARGUMENT, "Data cardinality is ambiguous");
    assert_null(helio_fit(model, .x = some_x(), .y = some_y(), .validation_split = 0.999));
    expect_error(HELIO_INVALID_ARGUMENT, "which is not sufficient to split it");
    assert_null(helio_fit(model, helio_dataset_batch(helio_dataset_from_slices(some_x()), 4), .verbose = HELIO_QUIET));
    expect_error(HELIO_INVALID_ARGUMENT, "an element of the dataset has 1 parts");
    assert_null(helio_fit(model, .x = some_x(), .y = some_y(), .resume = true, .verbose = HELIO_QUIET));
    expect_error(HELIO_INVALID_ARGUMENT, "resume needs checkpoint");
    assert_int_equal(helio_compile(model, .loss_name = "mse", .metric_names = {"mae", "mae"}), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "there are two metrics of the name");
    helio_dataset *batches = helio_dataset_batch(helio_dataset_from_slices(some_x(), some_y()), 10);
    assert_null(helio_fit(model, batches, .batch_size = 5));
    expect_error(HELIO_INVALID_ARGUMENT, "a dataset has batches of its own");
    assert_null(helio_fit(model, .x = helio_array_part(some_x(), 0, 0), .y = helio_array_part(some_y(), 0, 0)));
    expect_error(HELIO_INVALID_ARGUMENT, "there are no samples");
    assert_null(helio_fit(model, .x = some_x(), .y = some_y(), .checkpoint = "/proc/no", .verbose = HELIO_QUIET));
    expect_error(HELIO_IO_FAILURE, "the folder /proc/no cannot be made");
    assert_null(helio_fit(model, .x = some_x(), .y = some_y(), .checkpoint_every_epochs = -1));
    expect_error(HELIO_INVALID_ARGUMENT, "checkpoint_every_epochs -1");
    assert_null(helio_fit(model, .x = some_x(), .y = some_y(), .validation_weights = some_x()));
    expect_error(HELIO_INVALID_ARGUMENT, "validation: labels or weights are given without x");
    assert_null(helio_fit(model, .x = some_x(), .y = some_y(), .validation_split = 0.5, .validation_y = some_y()));
    expect_error(HELIO_INVALID_ARGUMENT, "validation data are given, and validation_split");
    assert_made(helio_fit(model, .x = some_x(), .y = some_y(), .verbose = HELIO_QUIET)); /* and goes on */
    helio_release(model);
  }
}

static void data_that_run_out(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    helio_dataset *dataset = helio_dataset_batch(helio_dataset_from_slices(some_x(), some_y()), 10);
    helio_history *history = helio_fit(model, dataset, .steps_per_epoch = 3, .epochs = 3, .verbose = HELIO_QUIET);
    assert_made(history);
    assert_int_equal(helio_history_epochs(history), 2);
    assert_logged("Your input ran out of data; interrupting training.", "(in this case, 9 batches)");
    helio_release(model);
  }
}

/* It trains all the same, as in Keras, but nobody should wonder why the loss stays. */
static void nothing_to_train(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    helio_model *model = make_model();
    assert_made(helio_fit(model, .x = some_x(), .y = some_y(), .epochs = 2, .verbose = HELIO_QUIET));
    assert_not_logged("trainable weights");
    helio_layer_set_trainable(model, false);
    assert_made(helio_fit(model, .x = some_x(), .y = some_y(), .epochs = 2, .verbose = HELIO_QUIET));
    assert_int_equal(lines_with("WARNING:helio:The model does not have any trainable weights.", ""), 1);
    helio_release(model);
  }
}

/* ---- portions of a batch ---- */

/* Gradients that are dense and by rows, a regularizer, weights of samples. */
static helio_model *portioned_model(bool words, helio_loss *loss) {
  helio_layer *last = helio_dense(CLASSES, .activation = HELIO_SOFTMAX);
  helio_set_seed(5);
  helio_model *model =
      words ? helio_sequential({helio_embedding(9, 3), helio_flatten(), last}, .input_shape = HELIO_SHAPE(FEATURES),
                               .type = HELIO_FLOAT64)
            : helio_sequential({helio_dense(8, .activation = HELIO_TANH, .kernel_regularizer = {.l2 = 0.01}), last},
                               .input_shape = HELIO_SHAPE(FEATURES), .type = HELIO_FLOAT64);
  helio_compile(model, .optimizer = helio_adam(0.02), .loss = loss,
                .metrics = {helio_sparse_categorical_accuracy(.type = HELIO_FLOAT64)});
  assert_made(model);
  return model;
}

typedef struct portioned {
  double numbers[MOST_NUMBERS];
  int count;
} portioned;

/* Two epochs: weights, then loss and accuracy of both. */
static portioned train_portioned(bool words, helio_loss_reduction reduction, int replicas, int64_t micro_batch) {
  static int32_t numbers[SAMPLES * FEATURES];
  static double weights[SAMPLES];
  portioned p;
  for (int i = 0; i < SAMPLES * FEATURES; i++) numbers[i] = i * 5 % 9;
  for (int i = 0; i < SAMPLES; i++) weights[i] = 1 + i % 3;
  helio_strategy *strategy =
      replicas == 1 ? helio_one_device(device_name()) : mirrored_over(replicas, NULL, "reduce-to-one");
  helio_model *model = NULL;
  HELIO_SCOPE(strategy) {
    model = portioned_model(words, helio_sparse_categorical_crossentropy(.reduction = reduction));
  }
  helio_array *x = words ? helio_array_of(numbers, HELIO_SHAPE(SAMPLES, FEATURES), .type = HELIO_INT32) : some_x();
  helio_history *history =
      helio_fit(model, .x = x, .y = some_y(), .batch_size = 16, .no_shuffle = true, .epochs = 2,
                .sample_weights = helio_array_of(weights, HELIO_SHAPE(SAMPLES), .type = HELIO_FLOAT64),
                .micro_batch = micro_batch, .verbose = HELIO_QUIET);
  assert_made(history);
  read_weights(model, p.numbers, &p.count);
  for (int epoch = 0; epoch < 2; epoch++) {
    p.numbers[p.count++] = helio_history_value(history, "loss", epoch);
    p.numbers[p.count++] = helio_history_value(history, "sparse_categorical_accuracy", epoch);
  }
  helio_release(model);
  return p;
}

static void portions_add_up_to_the_batch(void **state) {
  (void)state;
  static const struct {
    bool words;
    helio_loss_reduction reduction;
    int replicas;
    int64_t micro_batch;
  } cases[] = {
      {false, HELIO_LOSS_MEAN, 1, 5},   {false, HELIO_LOSS_MEAN, 3, 2}, {true, HELIO_LOSS_MEAN, 1, 1},
      {true, HELIO_LOSS_MEAN, 2, 3},    {false, HELIO_LOSS_SUM, 1, 4},  {false, HELIO_LOSS_SUM, 2, 3},
      {false, HELIO_LOSS_MEAN, 1, 16}, /* as many as there are, and more */
      {false, HELIO_LOSS_MEAN, 2, 100},
  };
  start_wrapped("");
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    portioned expected = train_portioned(cases[i].words, cases[i].reduction, 1, 0);
    portioned found = train_portioned(cases[i].words, cases[i].reduction, cases[i].replicas, cases[i].micro_batch);
    assert_int_equal(found.count, expected.count);
    assert_near(found.numbers, expected.numbers, expected.count, 1e-9);
  }
}

static void what_cannot_be_portioned(void **state) {
  (void)state;
  start_wrapped("");
  HELIO_DEVICE(device_name()) {
    helio_model *dropping = make_model();
    assert_null(helio_fit(dropping, .x = some_x(), .y = some_y(), .micro_batch = 4, .verbose = HELIO_QUIET));
    expect_error(HELIO_NOT_SUPPORTED, "has layers that look at several samples together or draw numbers");
    assert_null(helio_fit(dropping, .x = some_x(), .y = some_y(), .micro_batch = -1, .verbose = HELIO_QUIET));
    expect_error(HELIO_INVALID_ARGUMENT, "micro_batch -1");
    helio_release(dropping);
    helio_model *weighted =
        portioned_model(false, helio_sparse_categorical_crossentropy(.reduction = HELIO_LOSS_WEIGHTED_MEAN));
    assert_null(helio_fit(weighted, .x = some_x(), .y = some_y(), .micro_batch = 4, .verbose = HELIO_QUIET));
    expect_error(HELIO_NOT_SUPPORTED, "sparse_categorical_crossentropy divides by what counts in the whole batch");
    helio_release(weighted);
  }
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      TEST(fit_is_what_a_loop_by_hand_is),
      TEST(a_dataset_is_what_arrays_are),
      TEST(evaluation_and_prediction_agree),
      TEST(validation_stands_behind_training),
      TEST(validation_is_an_evaluation),
      TEST(weights_of_samples_and_classes),
      TEST(one_batch_at_a_time),
      TEST(callbacks_are_told_in_order),
      TEST(a_callback_that_compiles),
      TEST(a_callback_that_releases_the_model),
      TEST(a_callback_that_evaluates),
      TEST(epochs_without_steps),
      TEST(a_model_is_trained_where_it_was_made),
      TEST(a_lost_device_changes_nothing),
      TEST(a_label_that_is_none),
      TEST(a_label_that_is_none_of_any_replica),
      TEST(other_metrics_of_the_same_optimizer),
      TEST(one_thread_measures_at_a_time),
      TEST(endless_data),
      TEST(wrong_calls),
      TEST(data_that_run_out),
      TEST(nothing_to_train),
      TEST(portions_add_up_to_the_batch),
      TEST(what_cannot_be_portioned),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
