/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks in trainings: what they write is read back by others' parsers or by readers of our own, and agrees with
 * what the training says of itself; what cannot be written ends it with an error that names the file. */
#define FAILING_PROGRAM 1
#include "driven.h"
#include "events.h"
#include "failing_memory.h"
#include "wrapped.h"

enum { SAMPLES = 11, BATCH = 4, STEPS = 3, EPOCHS = 3 }; /* the last batch has three */

static float xs[SAMPLES], ys[SAMPLES];

/* y = 2x, roughly. */
static void make_data(void) {
  for (int i = 0; i < SAMPLES; i++) {
    xs[i] = (float)i / SAMPLES;
    ys[i] = 2 * xs[i] + (i % 2 ? 0.1f : -0.1f);
  }
}

static helio_array *column(const float *numbers) {
  return helio_array_of(numbers, HELIO_SHAPE(SAMPLES, 1));
}

static helio_model *make_model(double rate) {
  helio_model *model = helio_sequential({helio_dense(1)}, .input_shape = HELIO_SHAPE(1));
  assert_made(model);
  assert_ok(helio_compile(model, .optimizer = helio_sgd(rate), .loss = helio_mean_squared_error(),
                          .metric_names = {"accuracy"}));
  return model;
}

#define FIT(model, ...)                                                                                                \
  helio_fit(model, .x = column(xs), .y = column(ys), .batch_size = BATCH, .epochs = EPOCHS, .no_shuffle = true,        \
            .verbose = HELIO_QUIET, __VA_ARGS__)

#define VALIDATED .validation_x = column(xs), .validation_y = column(ys)

static json_t *read_json(const char *path) {
  size_t bytes;
  json_error_t error;
  char *text = (char *)read_all(path, &bytes);
  json_t *value = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
  if (!value) fail_msg("%s: %s, byte %d", path, error.text, error.position);
  free(text);
  return value;
}

/* Lines as one list; the caller gives it back. */
static json_t *read_lines(const char *path) {
  char *line = NULL;
  size_t room = 0;
  json_t *all = json_array();
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (getline(&line, &room, file) >= 0) {
    json_t *one = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    if (!one) fail_msg("%s: not JSON: %s", path, line);
    json_array_append_new(all, one);
  }
  free(line);
  fclose(file);
  return all;
}

static double history_of(const helio_history *history, const char *name, int epoch) {
  double value = helio_history_value(history, name, epoch);
  assert_false(isnan(value));
  return value;
}

/* ---- CSV ---- */

static void test_csv_of_a_fit(void **state) {
  (void)state;
  static const char *const names[] = {"epoch", "accuracy", "loss", "val_accuracy", "val_loss"};
  helio_model *model = make_model(0.1);
  helio_history *history = FIT(model, VALIDATED, .callbacks = {helio_csv_logger(in_folder("log.csv"))});
  assert_made(history);
  helio_csv *csv = helio_read_csv(in_folder("log.csv"));
  assert_made(csv);
  assert_int_equal(helio_csv_columns(csv), COUNT_OF(names));
  assert_int_equal(helio_csv_rows(csv), EPOCHS);
  for (int i = 0; i < (int)COUNT_OF(names); i++) {
    assert_string_equal(helio_csv_name(csv, i), names[i]);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
      double value = strtod(helio_csv_text(csv, epoch, i), NULL);
      assert_true(value == (i ? history_of(history, names[i], epoch) : epoch));
    }
  }
  helio_release(model);
}

static void expect_text(const char *path, const char *expected) {
  size_t bytes;
  char *text = (char *)read_all(path, &bytes);
  text[bytes] = 0;
  assert_string_equal(text, expected);
  free(text);
}

static void put_text(const char *path, const char *text) {
  put_bytes(path, text, strlen(text));
}

static void append_epoch(const char *path, char separator) {
  stage s = begin_stage(0.1, NULL);
  helio_callback *callback = helio_csv_logger(path, .append = true, .separator = separator);
  assert_made(callback);
  helio_status status = TELL(callback, train_begin, &s);
  if (!status) drive_epoch(callback, &s, 7, "val_loss", 0.25, false);
  TELL(callback, train_end, &s);
  end_stage(&s);
}

/* The file's own columns stay, whatever is measured now; a line that was cut short is ended. */
static void test_append_to_csv(void **state) {
  (void)state;
  const char *path = in_folder("log.csv");
  append_epoch(path, 0);
  expect_text(path, "epoch,accuracy,loss,val_loss\n7,0.5,1.0,0.25\n");
  put_text(path, "epoch;\"a;b\";loss;val_loss\r\n0;1;2;3\r\n1;");
  append_epoch(path, ';');
  expect_text(path, "epoch;\"a;b\";loss;val_loss\r\n0;1;2;3\r\n1;\n7;NA;1.0;0.25\n");
  put_text(path, "epoch");
  append_epoch(path, 0);
  expect_text(path, "epoch\n7\n");
  put_text(path, "loss,epoch\n1,2");
  append_epoch(path, 0);
  expect_error(HELIO_BAD_DATA, "log.csv: its first line does not begin with \"epoch\"");
  expect_text(path, "loss,epoch\n1,2");
  put_text(path, "epoch,\"loss\n");
  append_epoch(path, 0);
  expect_error(HELIO_BAD_DATA, "log.csv, line 1, column 2: the quote that begins here does not end");
  char *endless = calloc(1, 70001);
  memset(endless, 'x', 70000);
  put_text(path, endless);
  free(endless);
  append_epoch(path, 0);
  expect_error(HELIO_BAD_DATA, "log.csv: its first line has more than 65536 bytes");
}

/* ---- JSON ---- */

static void expect_step(const json_t *line, int step, double *sum) {
  double loss = real_in(line, "loss", NAN);
  int64_t samples = integer_in(line, "samples");
  assert_int_equal(integer_in(line, "step"), step);
  assert_int_equal(samples, (step - 1) % STEPS == STEPS - 1 ? SAMPLES % BATCH : BATCH);
  assert_true(real_in(line, "ms", -1) >= 0);
  assert_int_equal(json_object_size(line), 4);
  *sum += loss * (double)samples;
}

/* The loss of an epoch is the mean over its samples. */
static void expect_epoch(const json_t *line, int epoch, double sum, const helio_history *history) {
  static const char *const names[] = {"loss", "accuracy", "val_loss", "val_accuracy"};
  assert_int_equal(integer_in(line, "epoch"), epoch + 1);
  assert_int_equal(integer_in(line, "steps"), STEPS);
  assert_true(real_in(line, "seconds", -1) >= 0);
  assert_true(real_in(line, "learning_rate", 0) == 0.1);
  assert_int_equal(json_object_size(line), 8);
  assert_true(fabs(real_in(line, "loss", NAN) - sum / SAMPLES) <= 1e-6 * sum / SAMPLES);
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    assert_true(real_in(line, names[i], NAN) == history_of(history, names[i], epoch));
  }
}

static void test_json_of_a_fit(void **state) {
  (void)state;
  helio_model *model = make_model(0.1);
  helio_history *history = FIT(
      model, VALIDATED,
      .callbacks = {helio_json_logger(in_folder("all")), helio_json_logger(in_folder("epochs"), .epochs_only = true)});
  assert_made(history);
  json_t *all = read_lines(in_folder("all")), *epochs = read_lines(in_folder("epochs"));
  assert_int_equal(json_array_size(all), EPOCHS * (STEPS + 1));
  assert_int_equal(json_array_size(epochs), EPOCHS);
  size_t next = 0;
  for (int epoch = 0; epoch < EPOCHS; epoch++) {
    double sum = 0;
    for (int step = 1; step <= STEPS; step++) expect_step(json_array_get(all, next++), epoch * STEPS + step, &sum);
    expect_epoch(json_array_get(all, next++), epoch, sum, history);
    assert_true(json_equal(json_array_get(all, next - 1), json_array_get(epochs, (size_t)epoch)));
  }
  json_decref(all);
  json_decref(epochs);
  helio_release(model);
}

/* Names that would stand twice, and numbers that JSON has not. */
static void test_odd_json(void **state) {
  (void)state;
  stage s = begin_stage(0.1, NULL);
  helio_callback *callback = helio_json_logger(in_folder("log"));
  s.t.step = 2;
  s.t.seconds = 1.23456789;
  s.t.logs = usual_logs();
  assert_ok(hi_logs_add_value(s.t.logs, "", "epoch", 5));
  assert_ok(hi_logs_add_value(s.t.logs, "", "loss", 6));
  assert_ok(hi_logs_add_value(s.t.logs, "", "learning_rate", 0.75));
  assert_ok(hi_logs_add_value(s.t.logs, "", "say \"x\"\n", NAN));
  assert_ok(TELL(callback, train_begin, &s));
  assert_ok(TELL(callback, epoch_end, &s));
  expect_text(in_folder("log"),
              "{\"epoch\": 1, \"steps\": 2, \"seconds\": 1.234568, \"learning_rate\": 0.75, \"loss\": "
              "1.0, \"accuracy\": 0.5, \"say \\\"x\\\"\\n\": null}\n");
  s.t.batch_logs = hi_logs_new(NULL);
  s.t.total_steps = 9;
  assert_ok(TELL(callback, batch_end, &s)); /* of a step whose replicas were lost there is no loss */
  assert_ok(hi_logs_add_value(s.t.logs, "", "\377", 1));
  assert_int_equal(TELL(callback, epoch_end, &s), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "/log: the name of what is measured is not UTF-8");
  assert_ok(TELL(callback, train_end, &s));
  json_t *lines = read_lines(in_folder("log"));
  assert_int_equal(json_array_size(lines), 2);
  assert_true(json_is_null(json_object_get(json_array_get(lines, 1), "loss")));
  json_decref(lines);
  end_stage(&s);
}

static void test_append_to_json(void **state) {
  (void)state;
  put_text(in_folder("log"), "{\"step\": 1}\n{\"st");
  helio_model *model = make_model(0.1);
  assert_made(FIT(model, .callbacks = {helio_json_logger(in_folder("log"), .append = true, .epochs_only = true)}));
  size_t bytes;
  char *text = (char *)read_all(in_folder("log"), &bytes);
  assert_memory_equal(text, "{\"step\": 1}\n{\"st\n{\"epoch\": 1, ", 30);
  free(text);
  assert_made(FIT(model, .callbacks = {helio_json_logger(in_folder("log"), .epochs_only = true)}));
  json_t *lines = read_lines(in_folder("log")); /* the old ones are gone */
  assert_int_equal(json_array_size(lines), EPOCHS);
  json_decref(lines);
  helio_release(model);
}

/* ---- rates, stopping and saving ---- */

static double tenth(void *user, int epoch, double rate) {
  (void)user, (void)rate;
  return 0.1 * (epoch + 1);
}

static void test_rates_in_the_history(void **state) {
  (void)state;
  helio_model *model = make_model(0.5);
  helio_history *history = FIT(model, .callbacks = {helio_learning_rate_scheduler(tenth, NULL)});
  assert_made(history);
  for (int i = 0; i < EPOCHS; i++) assert_true(history_of(history, "learning_rate", i) == 0.1 * (i + 1));
  history = FIT(model, .callbacks = {helio_reduce_on_plateau("loss", .patience = 1, .min_delta = 1000)});
  assert_made(history);
  assert_true(history_of(history, "learning_rate", 1) > history_of(history, "learning_rate", 2));
  helio_release(model);
}

/* What does not learn stops when patience ends; the model is what it was, on every replica. */
static void test_stopping_fit(void **state) {
  (void)state;
  start_replica_devices();
  helio_strategy *strategy = mirrored_over(2, NULL, NULL);
  assert_made(strategy);
  helio_model *model = NULL;
  HELIO_SCOPE(strategy) model = make_model(HELIO_ZERO);
  double before =
      helio_logs_get(helio_evaluate(model, .x = column(xs), .y = column(ys), .verbose = HELIO_QUIET), "loss");
  helio_callback *both[] = {helio_early_stopping(.patience = 2, .restore_best_weights = true),
                            helio_model_checkpoint(in_folder("{epoch}-{val_loss:.3f}"), .save_best_only = true)};
  helio_history *history = helio_fit(model, .x = column(xs), .y = column(ys), .batch_size = BATCH, .epochs = 100,
                                     VALIDATED, .verbose = HELIO_QUIET, .callbacks = {both[0], both[1]});
  assert_made(history);
  assert_int_equal(helio_history_epochs(history), 3);
  assert_int_equal(entries_of(folder), 2 + 1);
  double after =
      helio_logs_get(helio_evaluate(model, .x = column(xs), .y = column(ys), .verbose = HELIO_QUIET), "loss");
  assert_true(before == after);
  helio_release(model);
}

/* Patience is counted on where a checkpoint was left. */
static void test_stopping_resumed_fit(void **state) {
  (void)state;
  enum { PATIENCE = 4 };
  helio_model *model = make_model(HELIO_ZERO);
  for (int last = 3; last <= 100; last += 97) {
    helio_callback *stopping = helio_early_stopping(.patience = PATIENCE, .restore_best_weights = true);
    helio_history *history = helio_fit(model, .x = column(xs), .y = column(ys), .no_shuffle = true, .epochs = last,
                                       VALIDATED, .resume = true, .checkpoint = in_folder("checkpoints"),
                                       .verbose = HELIO_QUIET, .callbacks = {stopping});
    assert_made(history);
    assert_int_equal(helio_history_epochs(history), last == 3 ? 3 : 1 + PATIENCE);
  }
  assert_int_equal(lines_with("the best epoch, 1, was before the checkpoint", "WARNING"), 1);
  helio_release(model);
}

/* An epoch whose training was stopped is measured on validation data all the same, as in Keras. */
static void test_nan_in_a_fit(void **state) {
  (void)state;
  helio_model *model = make_model(0.1);
  ys[BATCH] = NAN;
  helio_history *history = FIT(model, VALIDATED, .callbacks = {helio_terminate_on_nan()});
  make_data();
  assert_made(history);
  assert_int_equal(helio_history_epochs(history), 1);
  assert_true(isnan(helio_history_value(history, "val_loss", 0)));
  assert_int_equal(helio_history_count(history), 4);
  assert_logged("WARNING", "Batch 1: Invalid loss, terminating training");
  helio_release(model);
}

/* ---- TensorBoard ---- */

typedef struct found {
  int count;
  char list[200][100];
} found;

static int by_text(const void *a, const void *b) {
  return strcmp(a, b);
}

/* "run tag step" of all scalars but times, which Keras does not write. */
static void add_run(found *all, const char *run, double now) {
  char where[PATH_MAX];
  event e;
  snprintf(where, sizeof where, "%s/board/%s", folder, run);
  if (access(where, F_OK) != 0) return;
  file_bytes bytes = read_file_in(where);
  while (next_event(&bytes, &e)) {
    assert_true(e.has_value && !isnan(e.value));
    assert_true(fabs(e.wall_time - now) < 600);
    if (e.tag_length > 8 && memcmp(e.tag + e.tag_length - 8, "_step_ms", 8) == 0) continue;
    snprintf(all->list[all->count++], sizeof all->list[0], "%s %.*s %lld", run, (int)e.tag_length, (const char *)e.tag,
             (long long)e.step);
  }
  assert_int_equal(bytes.at, bytes.size);
  free(bytes.data);
}

static void board_as_keras(const json_t *one) {
  static float ones[6] = {1, 1, 1, 1, 1, 1};
  helio_array *data = helio_array_of(ones, HELIO_SHAPE(6, 1));
  bool validated = json_is_true(json_object_get(one, "validated"));
  helio_model *model = make_model(0.1);
  helio_callback *board = helio_tensorboard(in_folder("board"), .every_steps = integer_in(one, "every_steps"));
  assert_made(helio_fit(model, .x = data, .y = data, .batch_size = 2, .epochs = 2, .verbose = HELIO_QUIET,
                        .callbacks = {board}, .validation_x = validated ? data : NULL,
                        .validation_y = validated ? data : NULL));
  found all = {0}, expected = {0};
  add_run(&all, "train", (double)time(NULL));
  add_run(&all, "validation", (double)time(NULL));
  const json_t *scalars = json_object_get(one, "scalars");
  for (size_t i = 0; i < json_array_size(scalars); i++) {
    const json_t *scalar = json_array_get(scalars, i);
    snprintf(expected.list[expected.count++], sizeof expected.list[0], "%s %s %lld",
             json_string_value(json_array_get(scalar, 0)), json_string_value(json_array_get(scalar, 1)),
             (long long)json_integer_value(json_array_get(scalar, 2)));
  }
  qsort(all.list, (size_t)all.count, sizeof all.list[0], by_text);
  qsort(expected.list, (size_t)expected.count, sizeof all.list[0], by_text);
  if (all.count != expected.count) fail_case(one, "%d scalars, not %d", all.count, expected.count);
  for (int i = 0; i < all.count; i++) assert_string_equal(all.list[i], expected.list[i]);
  remove_folder(in_folder("board"));
  helio_release(model);
}

static void test_tensorboard(void **state) {
  (void)state;
  for_cases("tensorboard", 6, board_as_keras);
}

/* Values are those of the history; an evaluation by itself is put there too. */
static void test_values_on_the_board(void **state) {
  (void)state;
  helio_model *model = make_model(0.1);
  helio_callback *board = helio_tensorboard(in_folder("board"));
  helio_history *history = FIT(model, .callbacks = {board});
  assert_made(history);
  event e;
  int next = 0;
  file_bytes bytes = read_file_in(in_folder("board/train"));
  while (next_event(&bytes, &e)) {
    if (e.tag_length != 10 || memcmp(e.tag, "epoch_loss", 10) != 0) continue;
    assert_int_equal(e.step, next);
    assert_true(e.value == (float)history_of(history, "loss", next++));
  }
  assert_int_equal(next, EPOCHS);
  free(bytes.data);
  helio_logs *logs =
      helio_evaluate(model, .x = column(xs), .y = column(ys), .verbose = HELIO_QUIET, .callbacks = {board});
  assert_made(logs);
  bytes = read_file_in(in_folder("board/validation"));
  assert_true(next_event(&bytes, &e));
  assert_int_equal(e.tag_length, strlen("evaluation_loss_vs_iterations"));
  assert_int_equal(e.step, EPOCHS * STEPS);
  assert_true(e.value == (float)helio_logs_get(logs, "loss"));
  free(bytes.data);
  helio_release(model);
}

/* ---- the timeline ---- */

typedef struct tracks {
  int compute[8], reduce[8], input; /* spans */
  double end[8];                    /* of the latest on each */
  int named;
  double curve[EPOCHS]; /* of val_loss */
  int points;
} tracks;

/* Spans of a track come one behind the other; sums behind what was computed for them. */
static void take_event(tracks *all, const json_t *one) {
  const char *name = text_in(one, "name"), *kind = text_in(one, "ph");
  if (strcmp(kind, "C") == 0 && strcmp(name, "val_loss") == 0) {
    assert_true(all->points < EPOCHS);
    all->curve[all->points++] = real_in(json_object_get(one, "args"), "value", -1);
  }
  all->named += strcmp(kind, "M") == 0 && strcmp(name, "thread_name") == 0;
  if (strcmp(kind, "X") != 0) return;
  int track = (int)integer_in(one, "tid") - 1;
  double start = real_in(one, "ts", -1), length = real_in(one, "dur", -1);
  assert_in_range(track, 0, 7);
  assert_true(start >= all->end[track] - 0.002 && length >= 0); /* both are rounded to a nanosecond */
  all->end[track] = start + length;
  if (strcmp(name, "input") == 0) all->input += track == 0;
  if (strcmp(name, "compute") == 0) all->compute[track]++;
  if (strcmp(name, "reduce") == 0) assert_int_equal(++all->reduce[track], all->compute[track]);
}

static void draw_fit(int replicas) {
  const char *path = in_folder("trace.json");
  helio_strategy *strategy = mirrored_over(replicas, NULL, NULL);
  assert_made(strategy);
  helio_model *model = NULL;
  HELIO_SCOPE(strategy) model = make_model(0.1);
  helio_history *history = FIT(model, VALIDATED, .callbacks = {helio_timeline(path)});
  assert_made(history);
  json_t *events = read_json(path);
  tracks all = {0};
  for (size_t i = 0; i < json_array_size(events); i++) take_event(&all, json_array_get(events, i));
  assert_int_equal(all.input, EPOCHS * STEPS);
  assert_int_equal(all.named, 1 + replicas);
  assert_int_equal(all.points, EPOCHS);
  for (int i = 0; i < EPOCHS; i++) assert_true(all.curve[i] == helio_history_value(history, "val_loss", i));
  for (int i = 1; i <= replicas; i++) {
    assert_int_equal(all.compute[i], EPOCHS * STEPS);
    assert_int_equal(all.reduce[i], replicas > 1 ? EPOCHS * STEPS : 0);
  }
  json_decref(events);
  helio_release(model);
}

static void test_timeline(void **state) {
  (void)state;
  start_replica_devices();
  for (int replicas = 1; replicas <= 3; replicas++) draw_fit(replicas);
}

static helio_status look_at_trace(void *user, helio_training *t) {
  json_t *events = read_json(user);
  size_t spans = 0;
  for (size_t i = 0; i < json_array_size(events); i++) {
    const char *name = text_in(json_array_get(events, i), "name");
    spans += strcmp(name, "compute") == 0;
  }
  json_decref(events);
  assert_int_equal(spans, STEPS * (t->epoch + 1));
  return HELIO_OK;
}

/* Outside of strategies too; and all is in the file when an epoch has ended. */
static void test_timeline_meanwhile(void **state) {
  (void)state;
  helio_model *model = make_model(0.1);
  char *path = strdup(in_folder("trace.json"));
  assert_made(
      FIT(model, .callbacks = {helio_timeline(path), helio_callback(.user = path, .epoch_end = look_at_trace)}));
  json_decref(read_json(path));
  free(path);
  helio_release(model);
}

/* ---- a device that is lost ---- */

/* The training goes on, and so do all callbacks. The first replica is the one that they read from. */
static void lose_device(const char *rule) {
  int files = open_files();
  start_wrapped(rule);
  HELIO_POOL {
    helio_strategy *strategy = mirrored_over(3, NULL, "reduce-to-one");
    helio_model *model = NULL;
    HELIO_SCOPE(strategy) model = make_model(0.1);
    helio_callback *reader = helio_json_logger(in_folder("log")),
                   *stopping = helio_early_stopping(.patience = EPOCHS, .restore_best_weights = true),
                   *saving =
                       helio_model_checkpoint(in_folder("model"), "loss", .every_steps = 1, .save_best_only = true);
    helio_history *history = FIT(model, VALIDATED,
                                 .callbacks = {reader, stopping, saving, helio_timeline(in_folder("trace")),
                                               helio_tensorboard(in_folder("board"), 1), helio_terminate_on_nan()});
    if (!history) fail_msg("%s: %s", rule, helio_error_message());
    assert_int_equal(helio_history_epochs(history), EPOCHS);
    json_t *lines = read_lines(in_folder("log"));
    assert_int_equal(json_array_size(lines), EPOCHS * (STEPS + 1));
    json_decref(lines);
    json_decref(read_json(in_folder("trace")));
    assert_ok(helio_load_weights(model, in_folder("model")));
    helio_release(model);
  }
  assert_ok(helio_shutdown());
  assert_int_equal(open_files(), files);
}

static void test_lost_device(void **state) {
  (void)state;
  char rule[40];
  enum { MAKING = 20, ALL = 400 }; /* calls: before that the model is made, and behind it there are few more */
  for (int call = MAKING; call < ALL; call += SANITIZED ? 190 : 19) {
    snprintf(rule, sizeof rule, "copy@%d/0:fail", call);
    lose_device(rule);
    snprintf(rule, sizeof rule, "kernel@%d/0:late", call);
    lose_device(rule);
  }
  assert_true(lines_with("lost replica 0", "Training goes on with 2 replicas") > 10 / (SANITIZED ? 10 : 1));
}

/* ---- files that cannot be written ---- */

static helio_status count_step(void *user, helio_training *training) {
  ++*(int *)user;
  (void)training;
  return HELIO_OK;
}

/* Returns how many steps were taken before. */
static int expect_no_fit(helio_callback *callback, helio_status status, const char *part) {
  int files = open_files(), steps = 0;
  helio_model *model = make_model(0.1);
  assert_made(callback);
  assert_null(FIT(model, .callbacks = {callback, helio_callback(.user = &steps, .batch_begin = count_step)}));
  expect_error(status, part);
  assert_int_equal(open_files(), files);
  helio_release(model);
  return steps;
}

static void expect_no_step(helio_callback *callback, helio_status status, const char *part) {
  assert_int_equal(expect_no_fit(callback, status, part), 0);
}

static void test_unwritable(void **state) {
  (void)state;
  put_bytes(in_folder("file"), "", 0);
  static const char no_folder[] = "/no/x cannot be made: No such file or directory";
  expect_no_step(helio_csv_logger(in_folder("no/x")), HELIO_IO_FAILURE, no_folder);
  expect_no_step(helio_csv_logger(in_folder("no/x"), .append = true), HELIO_IO_FAILURE, no_folder);
  expect_no_step(helio_csv_logger(folder), HELIO_IO_FAILURE, " cannot be made: Is a directory");
  expect_no_step(helio_csv_logger("/dev/null"), HELIO_INVALID_ARGUMENT, "/dev/null is not a regular file");
  expect_no_step(helio_json_logger(in_folder("no/x")), HELIO_IO_FAILURE, no_folder);
  expect_no_step(helio_timeline(in_folder("no/x")), HELIO_IO_FAILURE, no_folder);
  expect_no_step(helio_tensorboard(in_folder("file/x")), HELIO_IO_FAILURE, "/file cannot be made: File exists");
  expect_no_fit(helio_model_checkpoint(in_folder("file/x")), HELIO_IO_FAILURE, "/file cannot be made");
  expect_no_fit(helio_model_checkpoint(in_folder("file/x/y")), HELIO_IO_FAILURE, "/file cannot be made: File exists");
  expect_no_fit(helio_model_checkpoint(in_folder("{nosuch}")), HELIO_INVALID_ARGUMENT, "has {nosuch}, but there is no");
  expect_no_fit(helio_model_checkpoint(folder), HELIO_INVALID_ARGUMENT, " is not a regular file");
}

/* So that files longer than this cannot be written for a while. */
static void limit_files(rlim_t bytes) {
  struct rlimit limit;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_full_disk(void **state) {
  (void)state;
  helio_callback *callbacks[] = {
      helio_csv_logger(in_folder("csv")),         helio_json_logger(in_folder("json")),
      helio_timeline(in_folder("trace")),         helio_tensorboard(in_folder("board")),
      helio_model_checkpoint(in_folder("model")),
  };
  static const char *const parts[] = {"/csv: writing failed: File too large", "/json: writing failed: File too large",
                                      "/trace: writing failed: File too large", "/board/train/events", "/model"};
  for (size_t i = 0; i < COUNT_OF(callbacks); i++) {
    limit_files(90);
    expect_no_fit(callbacks[i], HELIO_IO_FAILURE, parts[i]);
    limit_files(RLIM_INFINITY);
  }
  int files = open_files();
  assert_int_equal(access(in_folder("model"), F_OK), -1);
  assert_int_equal(open_files(), files);
}

/* ---- no memory ---- */

static helio_callback *make_callback(int which) {
  switch (which) {
  case 0:
    return helio_csv_logger(in_folder("csv"), .append = true);
  case 1:
    return helio_json_logger(in_folder("json"));
  case 2:
    return helio_early_stopping("loss", .restore_best_weights = true);
  case 3:
    return helio_reduce_on_plateau("loss", .patience = 1);
  case 4:
    return helio_model_checkpoint(in_folder("new/{epoch:02d}-{loss:.2f}-{accuracy}"), .save_best_only = true);
  case 5:
    return helio_tensorboard(in_folder("board"), .every_steps = 1);
  case 6:
    return helio_timeline(in_folder("trace"));
  case 7:
    return helio_learning_rate_scheduler(tenth, NULL);
  default:
    return helio_terminate_on_nan();
  }
}

enum { KINDS = 9 };

static helio_status keep_and_restore(helio_callback *callback) {
  if (!callback->options.save) return HELIO_OK;
  char *state = callback->options.save(callback->options.user);
  helio_status status = state ? callback->options.restore(callback->options.user, state) : helio_error_pending();
  free(state);
  return status;
}

static helio_status tell_epoch(helio_callback *callback, stage *s) {
  helio_status status = TELL(callback, epoch_begin, s);
  if (!status) status = TELL(callback, batch_begin, s);
  if (!status) status = TELL(callback, batch_end, s);
  if (!status) status = TELL(callback, test_end, s);
  return status ? status : TELL(callback, epoch_end, s);
}

static helio_status try_callback(int which, stage *s) {
  helio_callback *callback = make_callback(which);
  if (!callback) return helio_error_pending();
  helio_status status = TELL(callback, train_begin, s);
  for (int i = 0; i < 2 && !status; i++) status = tell_epoch(callback, s);
  if (!status) status = keep_and_restore(callback);
  helio_error cause;
  bool failed = helio_error_take(&cause);
  helio_status ended = TELL(callback, train_end, s);
  if (failed) helio_error_take(NULL);
  return failed ? cause.status : ended;
}

static void run_out_of_memory(int which) {
  stage s = begin_stage(0.1, NULL);
  s.t.logs = usual_logs();
  s.t.batch_logs = usual_logs();
  s.t.step = s.t.total_steps = 1;
  set_weight(&s, 1);
  helio_scope first = helio_pool_enter();
  assert_ok(try_callback(which, &s)); /* what is made once is there then */
  helio_pool_leave(&first);
  int files = open_files(), failures = 0;
  for (long k = 1; k < 2000; k++) {
    assert_ok(hi_logs_set(s.t.logs, "learning_rate", 0.5));
    helio_scope pool = helio_pool_enter();
    fail_allocation(k, false);
    helio_status status = try_callback(which, &s);
    long failed = fail_no_more();
    if (status && status != HELIO_OUT_OF_MEMORY) {
      fail_msg("callback %d, allocation %ld: %s: %s", which, k, helio_status_name(status), helio_error_message());
    }
    helio_error_take(NULL);
    helio_pool_leave(&pool);
    assert_int_equal(open_files(), files);
    if (!failed) break;
    failures += status != HELIO_OK;
  }
  assert_true(failures >= 1);
  end_stage(&s);
}

static void test_no_memory(void **state) {
  (void)state;
  for (int which = 0; which < KINDS; which++) run_out_of_memory(which);
}

int main(void) {
  remember_environment();
  make_data();
  const struct CMUnitTest tests[] = {
      DRIVEN_TEST(test_csv_of_a_fit),        DRIVEN_TEST(test_append_to_csv),
      DRIVEN_TEST(test_json_of_a_fit),       DRIVEN_TEST(test_odd_json),
      DRIVEN_TEST(test_append_to_json),      DRIVEN_TEST(test_rates_in_the_history),
      DRIVEN_TEST(test_stopping_fit),        DRIVEN_TEST(test_stopping_resumed_fit),
      DRIVEN_TEST(test_nan_in_a_fit),        DRIVEN_TEST(test_tensorboard),
      DRIVEN_TEST(test_values_on_the_board), DRIVEN_TEST(test_timeline),
      DRIVEN_TEST(test_timeline_meanwhile),  DRIVEN_TEST(test_lost_device),
      DRIVEN_TEST(test_unwritable),          DRIVEN_TEST(test_full_disk),
      DRIVEN_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
