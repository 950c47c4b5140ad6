/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks decide what Keras' decide for the same values; what they keep for checkpoints; what they refuse. */
#include "driven.h"
#include "nn/metric.h"
#include "train/path_template.h"

/* ---- early stopping ---- */

static helio_callback *early_stopping_of(const json_t *one) {
  const json_t *o = json_object_get(one, "options");
  return helio_early_stopping(text_in(one, "monitor"), .min_delta = real_in(o, "min_delta", 0),
                              .patience = (int)integer_in(o, "patience"), .mode = mode_in(o),
                              .baseline = real_in(o, "baseline", 0), .has_baseline = json_object_get(o, "baseline"),
                              .start_from_epoch = (int)integer_in(o, "start_from_epoch"), .restore_best_weights = true);
}

static void stop_as_keras(const json_t *one) {
  const json_t *values = json_object_get(one, "values");
  stage s = begin_stage(0.1, NULL);
  helio_callback *callback = early_stopping_of(one);
  assert_made(callback);
  assert_ok(TELL(callback, train_begin, &s));
  int epoch = 0;
  for (; epoch < (int)json_array_size(values) && !s.t.stop; epoch++) {
    const json_t *value = json_array_get(values, (size_t)epoch);
    assert_ok(drive_epoch(callback, &s, epoch, text_in(one, "monitor"), number_of(value), json_is_null(value)));
  }
  assert_ok(TELL(callback, train_end, &s));
  double restored = weight_of(&s);
  if (epoch != integer_in(one, "epochs") || restored != (double)integer_in(one, "restored")) {
    fail_case(one, "%d epochs, the weights are those of epoch %g", epoch, restored);
  }
  end_stage(&s);
}

static void test_early_stopping(void **state) {
  (void)state;
  for_cases("early_stopping", 106, stop_as_keras);
}

/* Used again it begins anew, as in Keras. */
static void test_early_stopping_again(void **state) {
  (void)state;
  stage s = begin_stage(0.1, NULL);
  helio_callback *callback = helio_early_stopping("val_loss", .patience = 2, .verbose = true);
  for (int i = 0; i < 2; i++) {
    s.t.stop = false;
    assert_ok(TELL(callback, train_begin, &s));
    for (int epoch = 0; epoch < 3; epoch++) {
      assert_false(s.t.stop);
      assert_ok(drive_epoch(callback, &s, epoch, "val_loss", 1.0 + epoch, false));
    }
    assert_true(s.t.stop);
    assert_ok(TELL(callback, train_end, &s));
    assert_int_equal(weight_of(&s), 2);
  }
  assert_int_equal(lines_with("INFO", "Epoch 3: early stopping"), 2);
  end_stage(&s);
}

/* ---- rates ---- */

static void expect_rate(const json_t *one, const stage *s, int epoch) {
  double rate = helio_optimizer_learning_rate(s->t.optimizer);
  double expected = number_of(json_array_get(json_object_get(one, "rates"), (size_t)epoch));
  if (fabs(rate - expected) > 1e-6 * expected) fail_case(one, "behind epoch %d the rate is %.9g", epoch, rate);
}

static void reduce_as_keras(const json_t *one) {
  const json_t *values = json_object_get(one, "values"), *o = json_object_get(one, "options");
  double factor = real_in(o, "factor", 0.1), delta = real_in(o, "min_delta", 1e-4);
  stage s = begin_stage(real_in(one, "rate", 0), NULL);
  helio_callback *callback = helio_reduce_on_plateau(
      text_in(one, "monitor"), .factor = factor == 0 ? HELIO_ZERO : factor, .patience = (int)integer_in(o, "patience"),
      .mode = mode_in(o), .min_delta = delta == 0 ? HELIO_ZERO : delta, .cooldown = (int)integer_in(o, "cooldown"),
      .min_learning_rate = real_in(o, "min_lr", 0));
  assert_made(callback);
  assert_ok(TELL(callback, train_begin, &s));
  for (int epoch = 0; epoch < (int)json_array_size(values); epoch++) {
    const json_t *value = json_array_get(values, (size_t)epoch);
    assert_ok(drive_epoch(callback, &s, epoch, text_in(one, "monitor"), number_of(value), json_is_null(value)));
    expect_rate(one, &s, epoch);
  }
  assert_ok(TELL(callback, train_end, &s));
  end_stage(&s);
}

static void test_reduce_on_plateau(void **state) {
  (void)state;
  for_cases("reduce_on_plateau", 72, reduce_as_keras);
}

static double halve(void *user, int epoch, double rate) {
  (*(int *)user)++;
  return epoch < 2 ? rate : rate * 0.5 + 0.01 * epoch;
}

static void schedule_as_keras(const json_t *one) {
  int calls = 0;
  stage s = begin_stage(real_in(one, "rate", 0), NULL);
  helio_callback *callback = helio_learning_rate_scheduler(halve, &calls);
  assert_ok(TELL(callback, train_begin, &s));
  for (int epoch = 0; epoch < 6; epoch++) {
    assert_ok(drive_epoch(callback, &s, epoch, "val_loss", 1, false));
    expect_rate(one, &s, epoch);
    assert_int_equal(calls, epoch + 1);
  }
  end_stage(&s);
}

static void test_scheduler(void **state) {
  (void)state;
  for_cases("scheduler", 1, schedule_as_keras);
}

/* The rate of the epoch, not the one that follows, stands among what was measured, once. */
static void test_rates_are_logged(void **state) {
  (void)state;
  stage s = begin_stage(0.5, NULL);
  helio_callback *callback = helio_reduce_on_plateau("val_loss", .patience = 1);
  assert_ok(TELL(callback, train_begin, &s));
  for (int epoch = 0; epoch < 2; epoch++) {
    s.t.logs = usual_logs();
    assert_ok(hi_logs_add_value(s.t.logs, "", "val_loss", 1));
    assert_ok(hi_logs_add_value(s.t.logs, "", "learning_rate", 77));
    assert_ok(TELL(callback, epoch_end, &s));
    assert_int_equal(helio_logs_count(s.t.logs), 4);
    assert_true(helio_logs_get(s.t.logs, "learning_rate") == 0.5);
  }
  assert_true(fabs(helio_optimizer_learning_rate(s.t.optimizer) - 0.05) < 1e-12);
  end_stage(&s);
}

static double no_rate(void *user, int epoch, double rate) {
  (void)epoch, (void)rate;
  return *(double *)user;
}

static void test_rates_that_cannot_be_set(void **state) {
  (void)state;
  double bad[] = {NAN, -1, INFINITY};
  stage s = begin_stage(0.1, NULL);
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    assert_int_equal(drive_epoch(helio_learning_rate_scheduler(no_rate, &bad[i]), &s, 0, "loss", 1, false),
                     HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "the learning rate is");
  }
  end_stage(&s);
  s = begin_stage(0.1, NULL);
  helio_schedule *schedule = helio_exponential_decay(0.1, .steps = 10, .rate = 0.5);
  assert_ok(helio_compile(s.model, .optimizer = helio_sgd(.schedule = schedule), .loss_name = "mse"));
  s.t.optimizer = helio_model_optimizer(s.model);
  helio_callback *both[] = {helio_learning_rate_scheduler(halve, NULL), helio_reduce_on_plateau()};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(TELL(both[i], train_begin, &s), HELIO_WRONG_STATE);
    expect_error(HELIO_WRONG_STATE, "sgd was made with a schedule, hence its learning rate is not settable: give it a");
  }
  end_stage(&s);
}

/* ---- saving ---- */

typedef struct names {
  int count;
  char *list[64];
} names;

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static names files_in(const char *where) {
  names found = {0};
  DIR *open = opendir(where);
  for (struct dirent *entry; open && (entry = readdir(open));) {
    if (entry->d_name[0] != '.') found.list[found.count++] = strdup(entry->d_name);
  }
  if (open) closedir(open);
  qsort(found.list, (size_t)found.count, sizeof found.list[0], by_name);
  return found;
}

/* Each has its own name, so those there are tell when it was saved. */
static void expect_saved(const json_t *one, const char *where) {
  names found = files_in(where), expected = {0};
  const json_t *saved = json_object_get(one, "saved");
  for (size_t i = 0; i < json_array_size(saved); i++) {
    expected.list[expected.count++] = strdup(json_string_value(json_array_get(saved, i)));
  }
  qsort(expected.list, (size_t)expected.count, sizeof expected.list[0], by_name);
  bool same = found.count == expected.count;
  for (int i = 0; i < expected.count && same; i++) same = strcmp(found.list[i], expected.list[i]) == 0;
  if (!same) fail_case(one, "%d files, not these", found.count);
  for (int i = 0; i < expected.count; i++) {
    free(found.list[i]);
    free(expected.list[i]);
  }
}

static helio_callback *checkpoint_of(const json_t *one, const char *where, const char *monitor) {
  char path[PATH_MAX];
  const json_t *o = json_object_get(one, "options"), *threshold = json_object_get(o, "initial_value_threshold");
  snprintf(path, sizeof path, "%s/%s", where, text_in(one, "path"));
  helio_callback *callback = helio_model_checkpoint(
      path, monitor, mode_in(o), .save_best_only = json_is_true(json_object_get(o, "save_best_only")),
      .save_weights_only = json_is_true(json_object_get(o, "save_weights_only")),
      .every_steps = integer_in(o, "every_steps"), .has_threshold = threshold,
      .initial_threshold = number_of(threshold));
  assert_made(callback);
  return callback;
}

static void save_as_keras(const json_t *one) {
  const json_t *values = json_object_get(one, "values");
  const char *where = in_folder("made/for/it"), *monitor = text_in(one, "monitor");
  stage s = begin_stage(0.1, NULL);
  helio_callback *callback = checkpoint_of(one, where, monitor);
  assert_ok(TELL(callback, train_begin, &s));
  for (int epoch = 0; epoch < (int)json_array_size(values); epoch++) {
    const json_t *value = json_array_get(values, (size_t)epoch);
    assert_ok(drive_epoch(callback, &s, epoch, monitor, number_of(value), json_is_null(value)));
  }
  expect_saved(one, where);
  remove_folder(in_folder("made"));
  end_stage(&s);
}

static void test_model_checkpoint(void **state) {
  (void)state;
  for_cases("model_checkpoint", 46, save_as_keras);
}

static void save_by_steps_as_keras(const json_t *one) {
  const json_t *epochs = json_object_get(one, "values");
  const char *where = in_folder("steps");
  stage s = begin_stage(0.1, NULL);
  helio_callback *callback = checkpoint_of(one, where, "loss");
  assert_ok(TELL(callback, train_begin, &s));
  for (s.t.epoch = 0; s.t.epoch < (int)json_array_size(epochs); s.t.epoch++) {
    const json_t *values = json_array_get(epochs, (size_t)s.t.epoch);
    for (s.t.step = 1; s.t.step <= (int64_t)json_array_size(values); s.t.step++) {
      s.t.logs = usual_logs();
      assert_ok(hi_logs_set(s.t.logs, "loss", number_of(json_array_get(values, (size_t)s.t.step - 1))));
      assert_ok(TELL(callback, batch_end, &s));
    }
    assert_ok(TELL(callback, epoch_end, &s));
  }
  expect_saved(one, where);
  remove_folder(where);
  end_stage(&s);
}

static void test_checkpoint_by_steps(void **state) {
  (void)state;
  for_cases("steps_checkpoint", 13, save_by_steps_as_keras);
}

/* What was saved is what the model was then. */
static void test_saved_weights(void **state) {
  (void)state;
  stage s = begin_stage(0.1, NULL);
  helio_callback *callback =
      helio_model_checkpoint(in_folder("best"), .save_best_only = true, .save_weights_only = true, .verbose = true);
  double values[] = {3, 1, 2};
  assert_ok(TELL(callback, train_begin, &s));
  for (int epoch = 0; epoch < 3; epoch++) assert_ok(drive_epoch(callback, &s, epoch, "val_loss", values[epoch], false));
  assert_int_equal(weight_of(&s), 2);
  assert_ok(helio_load_weights(s.model, in_folder("best")));
  assert_int_equal(weight_of(&s), 1);
  assert_logged("INFO", "Epoch 2: saving model to ");
  assert_int_equal(lines_with("saving model", ""), 2);
  end_stage(&s);
}

static helio_tensor *call_nothing(void *self, helio_tensor *const *inputs, int count, bool training) {
  (void)self, (void)count, (void)training;
  return inputs[0];
}

/* Whole models are made again without the code that built them; one of the user's own cannot be, which is known in
 * time. */
static void test_saved_models(void **state) {
  (void)state;
  stage s = begin_stage(0.1, NULL);
  helio_callback *whole = helio_model_checkpoint(in_folder("whole")),
                 *weights = helio_model_checkpoint("x", .save_weights_only = true);
  assert_ok(TELL(whole, train_begin, &s));
  assert_ok(drive_epoch(whole, &s, 7, "val_loss", 1, false));
  stage again = {.model = helio_load_model(in_folder("whole"))};
  assert_made(again.model);
  assert_int_equal(weight_of(&again), 7);
  end_stage(&again);
  s.t.model = helio_model_of(call_nothing, NULL, .name = "own");
  assert_made(s.t.model);
  assert_made(helio_call(s.t.model, helio_fill(HELIO_SHAPE(1, 1), 1)));
  assert_ok(TELL(weights, train_begin, &s));
  assert_int_equal(TELL(whole, train_begin, &s), HELIO_NOT_SUPPORTED);
  expect_error(HELIO_NOT_SUPPORTED, "the whole model is to be saved, unless .save_weights_only is set: ");
  helio_release(s.t.model);
  end_stage(&s);
}

/* What could not be saved is not the best there is. */
static void test_unsaved_is_not_the_best(void **state) {
  (void)state;
  stage s = begin_stage(0.1, NULL);
  helio_callback *callback = helio_model_checkpoint(in_folder("taken/best"), .save_best_only = true);
  put_bytes(in_folder("taken"), "", 0);
  assert_ok(TELL(callback, train_begin, &s));
  assert_int_equal(drive_epoch(callback, &s, 0, "val_loss", 1, false), HELIO_IO_FAILURE);
  expect_error(HELIO_IO_FAILURE, "/taken cannot be made: File exists");
  assert_int_equal(unlink(in_folder("taken")), 0);
  assert_ok(drive_epoch(callback, &s, 1, "val_loss", 2, false));
  assert_int_equal(access(in_folder("taken/best"), R_OK), 0);
  end_stage(&s);
}

/* ---- templates ---- */

static helio_logs *template_logs;

static helio_logs *logs_of(json_t *values) {
  const char *name;
  json_t *value;
  helio_logs *logs = hi_logs_new(NULL);
  assert_made(logs);
  json_object_foreach(values, name, value) {
    assert_ok(hi_logs_add_value(logs, "", name, number_of(value)));
  }
  return logs;
}

static void take_logs(const json_t *one) {
  template_logs = logs_of(json_object_get(one, "logs"));
}

static void fill_as_python(const json_t *one) {
  const char *expected = text_in(one, "result");
  char *result = NULL;
  if (!hi_path_template_check(text_in(one, "path"))) {
    result = hi_path_template_fill(text_in(one, "path"), (int)integer_in(one, "epoch"), 0, template_logs);
  }
  if (!result && helio_error_take(NULL) != HELIO_INVALID_ARGUMENT) fail_case(one, "it is refused without a reason");
  bool same = result && expected ? strcmp(result, expected) == 0 : !result && !expected;
  if (!same) fail_case(one, "it becomes %s", result ? result : "nothing");
  free(result);
}

static void test_templates(void **state) {
  (void)state;
  for_cases("template_logs", 1, take_logs);
  for_cases("template", 134, fill_as_python);
}

/* Python has more; what we do not know is an error, not something else. */
static void test_hostile_templates(void **state) {
  (void)state;
  static const char *const unknown[] = {
      "{epoch:>5}", "{epoch:+d}", "{loss:,}",    "{loss:.3}",      "{loss:.100f}",
      "{loss!r}",   "{loss:%}",   "{epoch:x}",   "{epoch:100d}",   "{epoch:9999999999d}",
      "{loss[0]}",  "{a.b}",      "{loss:.-1f}", "{epoch:{loss}}", "{loss:f "};
  char *endless = malloc(3 * PATH_MAX);
  for_cases("template_logs", 1, take_logs);
  for (size_t i = 0; i < COUNT_OF(unknown); i++) {
    if (!hi_path_template_check(unknown[i])) assert_null(hi_path_template_fill(unknown[i], 1, 1, template_logs));
    expect_error(HELIO_INVALID_ARGUMENT, "the path \"");
  }
  memset(endless, '{', 3 * PATH_MAX);
  for (int length = PATH_MAX - 1; length < 3 * PATH_MAX; length += PATH_MAX) {
    endless[length] = 0;
    assert_null(helio_model_checkpoint(endless));
    expect_error(HELIO_INVALID_ARGUMENT, length < PATH_MAX ? "has a { without its }" : "longer than paths may be");
    endless[length] = '{';
  }
  memcpy(endless, "{epoch:", 7);
  memset(endless + 7, '9', 3000);
  memcpy(endless + 3007, "d}", 3);
  assert_null(helio_model_checkpoint(endless));
  expect_error(HELIO_INVALID_ARGUMENT, "has a format that is not like {epoch:02d}");
  assert_null(helio_model_checkpoint("{nan:.f}"));
  expect_error(HELIO_INVALID_ARGUMENT, "has a format that is not like");
  assert_null(hi_path_template_fill("a{nosuch:.2f}", 1, 1, template_logs));
  expect_error(HELIO_INVALID_ARGUMENT, "has {nosuch}, but there is no such value, only: epoch, batch, loss, val_loss");
  free(endless);
}

/* ---- nothing of that name ---- */

static void expect_one_warning(helio_callback *callback, const char *what, const char *available) {
  stage s = begin_stage(0.1, NULL);
  capture_log();
  assert_ok(TELL(callback, train_begin, &s));
  for (int epoch = 0; epoch < 3; epoch++) assert_ok(drive_epoch(callback, &s, epoch, "", 0, true));
  assert_ok(TELL(callback, train_end, &s));
  assert_false(s.t.stop);
  assert_int_equal(seen.count, 1);
  assert_logged(what, available);
  assert_logged("WARNING:helio:", "is conditioned on metric `val_los` which is not available. Available metrics are: ");
  end_stage(&s);
}

static void test_unknown_names(void **state) {
  (void)state;
  expect_one_warning(helio_early_stopping("val_los", .restore_best_weights = true), "Early stopping is",
                     ": loss,accuracy");
  expect_one_warning(helio_reduce_on_plateau("val_los"), "Learning rate reduction is", ": loss,accuracy,learning_rate");
  expect_one_warning(helio_model_checkpoint(in_folder("{epoch}"), "val_los", .save_best_only = true), "Saving the best",
                     ": loss,accuracy");
  assert_int_equal(entries_of(folder), 2 + 3); /* all are saved, as in Keras */
}

/* ---- which direction is better ---- */

static helio_tensor *own_metric(void *user, helio_tensor *labels, helio_tensor *predictions) {
  (void)user, (void)predictions;
  return labels;
}

static void expect_direction(const json_t *one) {
  helio_metric *metric = helio_metric_named(text_in(one, "metric"), NULL);
  assert_made(metric);
  int direction = hi_metric_direction(metric);
  if (direction != integer_in(one, "direction")) fail_case(one, "the direction is %d", direction);
}

static void test_directions(void **state) {
  (void)state;
  for_cases("direction", 16, expect_direction);
  stage s = begin_stage(0.1, helio_metric_of(own_metric, NULL, "mine"));
  helio_callback *unsure[] = {helio_early_stopping("val_mine"), helio_reduce_on_plateau("mine"),
                              helio_model_checkpoint("path", "val_mine", .save_best_only = true)};
  helio_callback *sure[] = {helio_early_stopping("val_mine", .mode = HELIO_MONITOR_MAX), helio_early_stopping("mine2"),
                            helio_model_checkpoint("path", "val_mine")};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(TELL(unsure[i], train_begin, &s), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "mine should be large or small: say .mode = HELIO_MONITOR_MAX or");
    assert_ok(TELL(sure[i], train_begin, &s));
  }
  end_stage(&s);
}

/* ---- numbers that are none ---- */

static void terminate_as_keras(const json_t *one) {
  const json_t *values = json_object_get(one, "values");
  const char *message = text_in(one, "message");
  stage s = begin_stage(0.1, NULL);
  helio_callback *callback = helio_terminate_on_nan();
  capture_log();
  for (s.t.step = 0; s.t.step < (int64_t)json_array_size(values) && !s.t.stop;) {
    s.t.batch_logs = hi_logs_new(NULL);
    assert_ok(hi_logs_add_value(s.t.batch_logs, "", "loss", number_of(json_array_get(values, (size_t)s.t.step))));
    s.t.step++;
    assert_ok(TELL(callback, batch_end, &s));
  }
  if (s.t.step != integer_in(one, "batches")) fail_case(one, "%d batches", (int)s.t.step);
  assert_int_equal(s.t.stop, message != NULL);
  if (message) assert_logged("WARNING", message);
  assert_int_equal(seen.count, message ? 1 : 0);
  end_stage(&s);
}

static void test_terminate_on_nan(void **state) {
  (void)state;
  for_cases("terminate_on_nan", 6, terminate_as_keras);
}

/* ---- CSV ---- */

static void log_as_keras(const json_t *one) {
  const json_t *runs = json_object_get(one, "runs");
  const char *separator = text_in(json_object_get(one, "options"), "separator"), *path = in_folder("log.csv");
  size_t bytes;
  stage s = begin_stage(0.1, NULL);
  for (size_t run = 0; run < json_array_size(runs); run++) {
    helio_callback *callback = helio_csv_logger(path, .append = run > 0, .separator = separator ? *separator : 0);
    assert_ok(TELL(callback, train_begin, &s));
    for (s.t.epoch = 0; s.t.epoch < (int)json_array_size(json_array_get(runs, run)); s.t.epoch++) {
      s.t.logs = logs_of(json_array_get(json_array_get(runs, run), (size_t)s.t.epoch));
      assert_ok(TELL(callback, epoch_end, &s));
    }
    assert_ok(TELL(callback, train_end, &s));
  }
  char *text = (char *)read_all(path, &bytes);
  const char *expected = text_in(one, "text");
  if (bytes != strlen(expected) || memcmp(text, expected, bytes) != 0) fail_case(one, "%.*s", (int)bytes, text);
  free(text);
  end_stage(&s);
}

static void test_csv_logger(void **state) {
  (void)state;
  for_cases("csv_logger", 7, log_as_keras);
}

/* ---- kept in checkpoints ---- */

/* A training that ends behind epoch `cut` and goes on with another callback comes to the same decisions. */
static void expect_same_when_resumed(helio_callback *whole, helio_callback *first, helio_callback *second, int cut) {
  static const double values[] = {1.0, 0.8, 0.85, 0.84, 0.9, 0.7, 0.75, 0.74, 0.8, 0.81, 0.82, 0.83};
  enum { EPOCHS = 12 };
  double rates[EPOCHS];
  int end = 0;
  stage one = begin_stage(0.1, NULL), other = begin_stage(0.1, NULL);
  assert_ok(TELL(whole, train_begin, &one));
  for (; end < EPOCHS && !one.t.stop; end++) {
    assert_ok(drive_epoch(whole, &one, end, "val_loss", values[end], false));
    rates[end] = helio_optimizer_learning_rate(one.t.optimizer);
  }
  helio_callback *now = first;
  assert_ok(TELL(now, train_begin, &other));
  for (int epoch = 0; epoch < end; epoch++) {
    assert_false(other.t.stop);
    if (epoch == cut) {
      char *state = first->options.save(first->options.user);
      assert_made(state);
      assert_ok(TELL(now, train_end, &other));
      now = second;
      assert_ok(now->options.restore(now->options.user, state));
      assert_ok(TELL(now, train_begin, &other));
      free(state);
    }
    assert_ok(drive_epoch(now, &other, epoch, "val_loss", values[epoch], false));
    assert_true(helio_optimizer_learning_rate(other.t.optimizer) == rates[epoch]);
  }
  assert_int_equal(other.t.stop, one.t.stop);
  assert_ok(TELL(now, train_end, &other));
  end_stage(&one);
  end_stage(&other);
}

static helio_callback *stopping(void) {
  return helio_early_stopping(.patience = 4);
}

static helio_callback *plateau(void) {
  return helio_reduce_on_plateau(.patience = 2, .cooldown = 2, .factor = 0.5);
}

static void test_resumed(void **state) {
  (void)state;
  for (int cut = 0; cut < 12; cut++) {
    expect_same_when_resumed(stopping(), stopping(), stopping(), cut);
    expect_same_when_resumed(plateau(), plateau(), plateau(), cut);
  }
}

static void test_resumed_saving(void **state) {
  (void)state;
  stage s = begin_stage(0.1, NULL);
  for (int every = 0; every <= 3; every += 3) {
    helio_callback *first = helio_model_checkpoint(in_folder("{epoch}"), .save_best_only = true, .every_steps = every);
    helio_callback *second = helio_model_checkpoint(in_folder("{epoch}"), .save_best_only = true, .every_steps = every);
    s.t.logs = usual_logs();
    assert_ok(hi_logs_add_value(s.t.logs, "", "val_loss", 0.5));
    s.t.epoch = 0;
    assert_ok(TELL(first, batch_end, &s));
    assert_ok(TELL(first, batch_end, &s));
    assert_ok(TELL(first, epoch_end, &s));
    assert_int_equal(entries_of(folder), every ? 2 : 3);
    char *kept = first->options.save(first->options.user);
    assert_string_equal(kept, every ? "{\"best\": null, \"steps\": 2}" : "{\"best\": 0.5, \"steps\": 0}");
    assert_ok(second->options.restore(second->options.user, kept));
    free(kept);
    s.t.epoch = 1;
    assert_ok(TELL(second, train_begin, &s)); /* which does not forget it, as in Keras */
    assert_ok(TELL(second, batch_end, &s));
    assert_ok(TELL(second, epoch_end, &s));
    assert_int_equal(access(in_folder("2"), R_OK), every ? 0 : -1);
    unlink(in_folder("1"));
  }
  assert_string_equal(helio_early_stopping("loss")->options.name, "early_stopping:loss");
  assert_string_equal(helio_reduce_on_plateau()->options.name, "reduce_on_plateau:val_loss");
  assert_string_equal(helio_model_checkpoint("x/{epoch}")->options.name, "model_checkpoint:x/{epoch}");
  end_stage(&s);
}

/* The weights of the best epoch are not kept: nothing else takes their place. */
static void test_resumed_without_the_best_weights(void **state) {
  (void)state;
  for (int better = 0; better < 2; better++) {
    stage s = begin_stage(0.1, NULL);
    helio_callback *callback = helio_early_stopping(.patience = 9, .restore_best_weights = true);
    assert_ok(callback->options.restore(callback->options.user, "{\"best\": 0.5, \"best_epoch\": 3, \"wait\": 1}"));
    assert_ok(TELL(callback, train_begin, &s));
    assert_ok(drive_epoch(callback, &s, 5, "val_loss", better ? 0.4 : 0.6, false));
    assert_ok(drive_epoch(callback, &s, 6, "val_loss", 0.7, false));
    capture_log();
    assert_ok(TELL(callback, train_end, &s));
    assert_int_equal(weight_of(&s), better ? 5 : 6);
    assert_int_equal(lines_with("the best epoch, 4, was before the checkpoint", "WARNING"), !better);
    end_stage(&s);
  }
}

static void test_odd_bests_are_kept(void **state) {
  (void)state;
  const double odd[] = {NAN, INFINITY, -INFINITY, 1e-320, -0.1};
  stage s = begin_stage(0.1, NULL);
  for (size_t i = 0; i < COUNT_OF(odd); i++) {
    helio_callback *first = stopping(), *second = stopping();
    assert_ok(TELL(first, train_begin, &s));
    assert_ok(drive_epoch(first, &s, 0, "val_loss", odd[i], false));
    char *kept = first->options.save(first->options.user);
    assert_ok(second->options.restore(second->options.user, kept));
    char *again = second->options.save(second->options.user);
    assert_string_equal(kept, again);
    free(kept);
    free(again);
  }
  end_stage(&s);
}

static void test_bad_states(void **state) {
  (void)state;
  static const char *const bad[] = {"",
                                    "{",
                                    "[]",
                                    "null",
                                    "{}",
                                    "{\"best\": 1}",
                                    "{\"best\": \"x\", \"best_epoch\": 1, \"wait\": 1}",
                                    "{\"best\": 1, \"best_epoch\": 1.5, \"wait\": 1}",
                                    "{\"best\": 1, \"best_epoch\": -1, \"wait\": 1}",
                                    "{\"best\": 1, \"best_epoch\": 1, \"wait\": 9223372036854775807}",
                                    "{\"best\": 1, \"best\": 1, \"wait\": 1}",
                                    "{\"best\": 1, \"best_epoch\": 1, \"wait\": 1, \"more\": 1}",
                                    "{\"best\": true, \"best_epoch\": 1, \"wait\": 1}",
                                    "{\"best\": 1e999, \"best_epoch\": 1, \"wait\": 1}",
                                    "{\"best\": {}, \"best_epoch\": 1, \"wait\": 1}"};
  helio_callback *callback = stopping();
  for (size_t i = 0; i <= COUNT_OF(bad); i++) {
    const char *text = i < COUNT_OF(bad) ? bad[i] : NULL;
    assert_int_equal(callback->options.restore(callback->options.user, text), HELIO_BAD_DATA);
    expect_error(HELIO_BAD_DATA, "what a checkpoint has kept of helio_early_stopping() is not its state: ");
    char *kept = callback->options.save(callback->options.user);
    assert_string_equal(kept, "{\"best\": null, \"best_epoch\": 0, \"wait\": 0}");
    free(kept);
  }
}

/* ---- refused ---- */

#define refused(callback, part)                                                                                        \
  do {                                                                                                                 \
    assert_null(callback);                                                                                             \
    expect_error(HELIO_INVALID_ARGUMENT, part);                                                                        \
  } while (0)

static void test_refused_options(void **state) {
  (void)state;
  refused(helio_early_stopping(.patience = -1), "patience is -1");
  refused(helio_early_stopping(.start_from_epoch = -1), "start_from_epoch -1");
  refused(helio_early_stopping(.mode = 3), "mode is 3");
  refused(helio_early_stopping(.min_delta = NAN), "min_delta is nan");
  refused(helio_early_stopping(.has_baseline = true, .baseline = NAN), "baseline is not a number");
  refused(helio_reduce_on_plateau(.factor = 1), "factor is 1");
  refused(helio_reduce_on_plateau(.factor = -0.1), "factor is -0.1");
  refused(helio_reduce_on_plateau(.factor = NAN), "factor is nan");
  refused(helio_reduce_on_plateau(.patience = -1), "patience is -1");
  refused(helio_reduce_on_plateau(.cooldown = -1), "cooldown -1");
  refused(helio_reduce_on_plateau(.min_learning_rate = -1), "min_learning_rate -1");
  refused(helio_reduce_on_plateau(.mode = 3), "mode is 3");
  refused(helio_model_checkpoint(), "the path is NULL");
  refused(helio_model_checkpoint(""), "the path is \"\"");
  refused(helio_model_checkpoint("x", .every_steps = -1), "every_steps is -1");
  refused(helio_model_checkpoint("x", .has_threshold = true, .initial_threshold = NAN), "initial_threshold is not");
  refused(helio_model_checkpoint("x", .mode = -1), "mode is -1");
  refused(helio_learning_rate_scheduler(NULL, NULL), "the function is NULL");
  refused(helio_csv_logger(), "the path is NULL");
  refused(helio_csv_logger(""), "the path is \"\"");
  refused(helio_csv_logger("x", .separator = '"'), "the separator is");
  refused(helio_json_logger(), "the path is NULL");
  refused(helio_tensorboard(), "the path is NULL");
  refused(helio_tensorboard("x", .every_steps = -1), "every_steps is -1");
  refused(helio_timeline(NULL), "the path is NULL");
  refused(helio_timeline(""), "the path is \"\"");
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      DRIVEN_TEST(test_early_stopping),
      DRIVEN_TEST(test_early_stopping_again),
      DRIVEN_TEST(test_reduce_on_plateau),
      DRIVEN_TEST(test_scheduler),
      DRIVEN_TEST(test_rates_are_logged),
      DRIVEN_TEST(test_rates_that_cannot_be_set),
      DRIVEN_TEST(test_model_checkpoint),
      DRIVEN_TEST(test_checkpoint_by_steps),
      DRIVEN_TEST(test_saved_weights),
      DRIVEN_TEST(test_saved_models),
      DRIVEN_TEST(test_unsaved_is_not_the_best),
      DRIVEN_TEST(test_templates),
      DRIVEN_TEST(test_hostile_templates),
      DRIVEN_TEST(test_unknown_names),
      DRIVEN_TEST(test_directions),
      DRIVEN_TEST(test_terminate_on_nan),
      DRIVEN_TEST(test_csv_logger),
      DRIVEN_TEST(test_resumed),
      DRIVEN_TEST(test_resumed_saving),
      DRIVEN_TEST(test_resumed_without_the_best_weights),
      DRIVEN_TEST(test_odd_bests_are_kept),
      DRIVEN_TEST(test_bad_states),
      DRIVEN_TEST(test_refused_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
