/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks without a training: a small model, and values that a test makes up, told as helio_fit() tells them. And the
 * cases that Keras has decided (golden/train/callbacks.jsonl). */
#ifndef HELIO_TEST_DRIVEN_H
#define HELIO_TEST_DRIVEN_H

#include <jansson.h>
#include <math.h>

#include "data_files.h"
#include "train/callback.h"
#include "train/logs.h"

/* ---- before and after each test ---- */

static char folder[64];
static helio_scope whole_test;

static inline int set_up_driven(void **state) {
  if (set_up(state)) return -1;
  make_folder(folder);
  whole_test = helio_pool_enter();
  return 0;
}

static inline int tear_down_driven(void **state) {
  helio_status status = helio_error_take(NULL);
  if (status) print_error("an error is pending: %s\n", helio_status_name(status));
  helio_pool_leave(&whole_test);
  remove_folder(folder);
  return tear_down(state) || status;
}

#define DRIVEN_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_driven, tear_down_driven)

/* A path in the test's folder. */
static inline const char *in_folder(const char *name) {
  static char paths[8][PATH_MAX];
  static int next;
  char *path = paths[next++ % 8];
  snprintf(path, PATH_MAX, "%s/%s", folder, name);
  return path;
}

/* ---- a training that nobody runs ---- */

typedef struct stage {
  helio_model *model;
  helio_training t;
} stage;

/* A model with one weight, as in make_callbacks.py; kept until end_stage(). */
static inline stage begin_stage(double rate, helio_metric *metric) {
  helio_model *model =
      helio_sequential({helio_dense(1, .no_bias = true)}, .input_shape = HELIO_SHAPE(1), .name = "driven");
  assert_made(model);
  if (!metric) metric = helio_metric_named("accuracy", NULL);
  assert_ok(
      helio_compile(model, .optimizer = helio_sgd(rate), .loss = helio_mean_squared_error(), .metrics = {metric}));
  return (stage){.model = model,
                 .t = {.size = sizeof(helio_training),
                       .model = model,
                       .optimizer = helio_model_optimizer(model),
                       .strategy = helio_strategy_current(),
                       .epochs = 1000}};
}

static inline void end_stage(stage *s) {
  helio_release(s->model);
}

static inline helio_status tell(helio_callback_function function, helio_callback *callback, stage *s) {
  return function ? function(callback->options.user, &s->t) : HELIO_OK;
}

#define TELL(callback, when, stage) tell((callback)->options.when, callback, stage)

static inline void set_weight(stage *s, double value) {
  HELIO_POOL {
    helio_tensor *weight = helio_fill(HELIO_SHAPE(1, 1), value);
    assert_ok(helio_set_weights(s->model, &weight, 1));
  }
}

static inline double weight_of(stage *s) {
  double value = 0;
  HELIO_POOL {
    value = helio_item(helio_reshape(helio_value(helio_weights(s->model)->at[0]), HELIO_SCALAR));
  }
  return value;
}

/* What every epoch has measured, as in make_callbacks.py. */
static inline helio_logs *usual_logs(void) {
  helio_logs *logs = hi_logs_new(NULL);
  assert_made(logs);
  assert_ok(hi_logs_add_value(logs, "", "loss", 1));
  assert_ok(hi_logs_add_value(logs, "", "accuracy", 0.5));
  return logs;
}

/* An epoch from its beginning to its end, whose weight is its number; `value` NAN with `missing`: none. */
static inline helio_status drive_epoch(helio_callback *callback, stage *s, int epoch, const char *monitor, double value,
                                       bool missing) {
  helio_status status;
  set_weight(s, epoch);
  helio_scope pool = helio_pool_enter();
  s->t.epoch = epoch;
  s->t.logs = usual_logs();
  if (!missing) assert_ok(hi_logs_set(s->t.logs, monitor, value));
  status = TELL(callback, epoch_begin, s);
  if (!status) status = TELL(callback, epoch_end, s);
  helio_pool_leave(&pool);
  s->t.logs = NULL;
  return status;
}

/* ---- what Keras has decided ---- */

static inline double number_of(const json_t *value) {
  const char *word = json_string_value(value);
  if (!word) return json_number_value(value);
  return strcmp(word, "nan") == 0 ? NAN : strcmp(word, "inf") == 0 ? INFINITY : -INFINITY;
}

static inline const char *text_in(const json_t *object, const char *name) {
  return json_string_value(json_object_get(object, name));
}

static inline int64_t integer_in(const json_t *object, const char *name) {
  return json_integer_value(json_object_get(object, name));
}

static inline double real_in(const json_t *object, const char *name, double otherwise) {
  const json_t *value = json_object_get(object, name);
  return value ? number_of(value) : otherwise;
}

static inline helio_monitor_mode mode_in(const json_t *options) {
  const char *mode = text_in(options, "mode");
  return !mode ? 0 : strcmp(mode, "min") == 0 ? HELIO_MONITOR_MIN : HELIO_MONITOR_MAX;
}

/* Calls `function` with each case of that name; there must be `count`. A case that fails is printed. */
static inline void for_cases(const char *name, int count, void (*function)(const json_t *one)) {
  FILE *file = fopen(golden_data("train/callbacks.jsonl"), "r");
  char *line = NULL;
  size_t room = 0;
  int found = 0;
  assert_non_null(file);
  while (getline(&line, &room, file) >= 0) {
    json_t *one = json_loads(line, 0, NULL);
    assert_non_null(one);
    if (strcmp(text_in(one, "case"), name) == 0) {
      found++;
      function(one);
    }
    json_decref(one);
  }
  free(line);
  fclose(file);
  assert_int_equal(found, count);
}

/* A difference to what Keras decided, with the case it is in. */
#define fail_case(one, ...)                                                                                            \
  do {                                                                                                                 \
    char *text_ = json_dumps(one, 0);                                                                                  \
    print_error("%s\n", text_);                                                                                        \
    free(text_);                                                                                                       \
    fail_msg(__VA_ARGS__);                                                                                             \
  } while (0)

#endif
