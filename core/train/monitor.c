/* SPDX-License-Identifier: Apache-2.0 */
#include "train/monitor.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/json.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tensor/text.h"
#include "train/logs.h"

/* ---- life ---- */

helio_status hi_monitor_make(hi_monitor *monitor, const char *name, helio_monitor_mode mode, double min_delta) {
  if (mode && mode != HELIO_MONITOR_MIN && mode != HELIO_MONITOR_MAX) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "mode is %d: it should be HELIO_MONITOR_MIN, HELIO_MONITOR_MAX or 0",
                   (int)mode);
  }
  if (!isfinite(min_delta)) return hi_fail(HELIO_INVALID_ARGUMENT, "min_delta is %g", min_delta);
  monitor->mode = mode;
  monitor->min_delta = fabs(min_delta);
  monitor->name = strdup(name ? name : "val_loss");
  return monitor->name ? HELIO_OK : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of what is monitored");
}

void hi_monitor_free(hi_monitor *monitor) {
  free(monitor->name);
}

/* ---- what is better ---- */

static const helio_metric *metric_named(const helio_model *model, const char *name) {
  const hi_compiled *compiled = model->model->compiled;
  for (int i = 0; compiled && i < compiled->metric_count; i++) {
    if (strcmp(helio_metric_name(compiled->metrics[i]), name) == 0) return compiled->metrics[i];
  }
  return NULL;
}

/* Of what is not measured there will be nothing to compare. */
static helio_status decide(hi_monitor *monitor, const helio_model *model) {
  const char *name = strncmp(monitor->name, "val_", 4) == 0 ? monitor->name + 4 : monitor->name;
  const helio_metric *metric = strcmp(name, "loss") != 0 ? metric_named(model, name) : NULL;
  int direction = metric ? hi_metric_direction(metric) : -1;
  if (direction == 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT,
                   "nobody can tell whether %s should be large or small: say .mode = HELIO_MONITOR_MAX or "
                   ".mode = HELIO_MONITOR_MIN",
                   monitor->name);
  }
  monitor->larger = direction > 0;
  return HELIO_OK;
}

helio_status hi_monitor_begin(hi_monitor *monitor, const helio_training *training) {
  monitor->warned = false;
  monitor->larger = monitor->mode == HELIO_MONITOR_MAX;
  return monitor->mode ? HELIO_OK : decide(monitor, training->model);
}

/* As float32, in which Keras compares: what is better by rounding alone is not. */
bool hi_monitor_better(const hi_monitor *monitor, double value, double than) {
  if (monitor->larger) return (float)(value - monitor->min_delta) > (float)than;
  return (float)(value + monitor->min_delta) < (float)than;
}

bool hi_monitor_take(hi_monitor *monitor, double value) {
  if (monitor->has_best && !hi_monitor_better(monitor, value, monitor->best)) return false;
  monitor->has_best = true;
  monitor->best = value;
  return true;
}

/* ---- values ---- */

static void warn(hi_monitor *monitor, const helio_logs *logs, const char *what) {
  char names[600] = "";
  size_t length = 0;
  if (monitor->warned) return;
  monitor->warned = true;
  for (int i = 0; i < helio_logs_count(logs) && length < sizeof names; i++) {
    length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? "," : "", helio_logs_name(logs, i));
  }
  hi_log(HELIO_LOG_WARNING, "%s is conditioned on metric `%s` which is not available. Available metrics are: %s", what,
         monitor->name, names);
}

helio_status hi_monitor_read(hi_monitor *monitor, const helio_training *training, const char *what, double *value,
                             bool *found) {
  helio_status status = hi_logs_find(training->logs, monitor->name, value, found);
  if (!status && !*found) warn(monitor, training->logs, what);
  return status;
}

/* ---- kept ---- */

static char *no_memory(void) {
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the state of a callback");
  return NULL;
}

char *hi_monitor_save(const hi_monitor *monitor, const hi_kept_number *numbers, int count) {
  json_t *object = json_object();
  int failed = json_object_set_new(object, "best", monitor->has_best ? hi_json_number(monitor->best) : json_null());
  for (int i = 0; i < count; i++) {
    failed |= json_object_set_new(object, numbers[i].name, json_integer((json_int_t)*numbers[i].number));
  }
  char *text = failed ? NULL : hi_json_text(object);
  json_decref(object);
  return text ? text : no_memory();
}

static bool read_best(const json_t *value, hi_monitor *monitor) {
  monitor->has_best = !json_is_null(value);
  return json_is_null(value) || hi_json_number_read(value, &monitor->best);
}

/* Of hostile files too: who counts on from it comes to no end of numbers. */
static bool read_number(const json_t *value, int64_t *number) {
  *number = json_integer_value(value);
  return json_is_integer(value) && *number >= 0 && *number < INT64_MAX / 2;
}

enum { MOST_KEPT = 4 };

static bool read_state(const json_t *object, hi_monitor *monitor, const hi_kept_number *numbers, int count) {
  int64_t kept[MOST_KEPT];
  hi_monitor read = *monitor;
  bool good = json_object_size(object) == (size_t)count + 1 && read_best(json_object_get(object, "best"), &read);
  for (int i = 0; i < count && good; i++) good = read_number(json_object_get(object, numbers[i].name), &kept[i]);
  if (!good) return false;
  for (int i = 0; i < count; i++) *numbers[i].number = kept[i];
  *monitor = read;
  return true;
}

helio_status hi_monitor_restore(hi_monitor *monitor, const char *what, const char *state, const hi_kept_number *numbers,
                                int count) {
  json_error_t error = {0};
  json_t *object = state ? hi_json_load(state, strlen(state), JSON_REJECT_DUPLICATES, &error) : NULL;
  if (state && !object && !*error.text) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the state of %s", what);
  bool good = read_state(object, monitor, numbers, count);
  json_decref(object);
  if (good) return HELIO_OK;
  return hi_fail(HELIO_BAD_DATA, "what a checkpoint has kept of %s is not its state: %s", what,
                 *error.text ? error.text : "a value is missing or wrong");
}
