/* SPDX-License-Identifier: Apache-2.0 */
#include "train/logs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "strategy/strategy.h"

static void end(void *object) {
  helio_logs *logs = object;
  for (int i = 0; i < logs->count; i++) {
    hi_drop(logs->entries[i].metric);
    hi_drop(logs->entries[i].tensor);
    free(logs->entries[i].name);
  }
  free(logs->entries);
  hi_drop(logs->strategy);
  free(logs);
}

helio_logs *hi_logs_new(helio_strategy *strategy) {
  helio_logs *logs = hi_object_new(sizeof *logs, end, "logs");
  if (!logs) return NULL;
  if (strategy) hi_hold(strategy);
  logs->strategy = strategy;
  return logs;
}

/* ---- filling ---- */

static hi_log_entry *add(helio_logs *logs, const char *prefix, const char *name) {
  if (logs->count == logs->room) {
    int room = logs->room ? 2 * logs->room : 8;
    hi_log_entry *entries = realloc(logs->entries, (size_t)room * sizeof *entries);
    if (!entries) {
      hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %s", name);
      return NULL;
    }
    logs->entries = entries;
    logs->room = room;
  }
  char *whole = NULL;
  if (asprintf(&whole, "%s%s", prefix, name) < 0) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %s", name);
    return NULL;
  }
  logs->entries[logs->count] = (hi_log_entry){.name = whole};
  return &logs->entries[logs->count++];
}

helio_status hi_logs_add_metrics(helio_logs *logs, const hi_compiled *compiled) {
  for (int i = 0; i < compiled->metric_count; i++) {
    hi_log_entry *entry = add(logs, "", helio_metric_name(compiled->metrics[i]));
    if (!entry) return helio_error_pending();
    hi_hold(compiled->metrics[i]);
    entry->metric = compiled->metrics[i];
  }
  return HELIO_OK;
}

helio_status hi_logs_add_value(helio_logs *logs, const char *prefix, const char *name, double value) {
  hi_log_entry *entry = add(logs, prefix, name);
  if (!entry) return helio_error_pending();
  entry->value = value;
  entry->known = true;
  return HELIO_OK;
}

helio_status hi_logs_add_tensor(helio_logs *logs, const char *name, helio_tensor *tensor, double divisor) {
  hi_log_entry *entry = add(logs, "", name);
  if (!entry) return helio_error_pending();
  hi_hold(tensor);
  entry->tensor = tensor;
  entry->divisor = divisor;
  return HELIO_OK;
}

static int index_of(const helio_logs *logs, const char *name) {
  for (int i = 0; name && i < logs->count; i++) {
    if (strcmp(logs->entries[i].name, name) == 0) return i;
  }
  return -1;
}

helio_status hi_logs_set(helio_logs *logs, const char *name, double value) {
  int index = index_of(logs, name);
  if (index < 0) return hi_logs_add_value(logs, "", name, value);
  hi_log_entry *entry = &logs->entries[index];
  hi_drop(entry->metric);
  hi_drop(entry->tensor);
  *entry = (hi_log_entry){.name = entry->name, .value = value, .known = true};
  return HELIO_OK;
}

void hi_logs_forget(helio_logs *logs) {
  for (int i = 0; i < logs->count; i++) logs->entries[i].known = logs->entries[i].known && !logs->entries[i].metric;
}

helio_status hi_logs_settle(helio_logs *logs) {
  for (int i = 0; i < logs->count; i++) {
    hi_log_entry *entry = &logs->entries[i];
    if (!entry->metric) continue;
    helio_tensor *result = helio_metric_result(entry->metric);
    if (!result) return helio_error_pending();
    hi_hold(result);
    entry->tensor = result;
    hi_drop(entry->metric);
    entry->metric = NULL;
  }
  return HELIO_OK;
}

helio_status hi_logs_wait(helio_logs *logs) {
  for (int i = 0; i < logs->count && !helio_error_pending(); i++) helio_logs_value(logs, i);
  return helio_error_pending();
}

helio_status hi_logs_add_all(helio_logs *logs, const char *prefix, helio_logs *from) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < from->count && !status; i++) {
    double value = helio_logs_value(from, i);
    status = helio_error_pending();
    if (!status) status = hi_logs_add_value(logs, prefix, from->entries[i].name, value);
  }
  return status;
}

/* ---- reading ---- */

/* A metric of several thresholds has several results, of which progress and history know the first. */
static double read_scalar(helio_tensor *tensor) {
  if (!tensor) return NAN;
  if (tensor->elements == 1) return helio_item(tensor);
  return helio_item(helio_slice(tensor, HELIO_SHAPE(0), HELIO_SHAPE(1)));
}

/* Rounded as the device would have rounded it. */
static double divided(const hi_log_entry *entry, double value) {
  if (entry->divisor == 0) return value;
  bool wide = entry->tensor->type == HELIO_FLOAT64;
  return wide ? value / entry->divisor : (double)((float)value / (float)entry->divisor);
}

/* A value that a lost device had is read of another. It is no value if a replica was given bad data for it. */
static double read(const helio_logs *logs, const hi_log_entry *entry) {
  double value;
  helio_scope pool = helio_pool_enter();
  if (logs->strategy) hi_strategy_say_reads(logs->strategy);
  do {
    value = read_scalar(entry->metric ? helio_metric_result(entry->metric) : entry->tensor);
    if (!helio_error_pending() && logs->strategy) hi_strategy_judge(logs->strategy);
  } while (helio_error_pending() && entry->metric && logs->strategy && helio_retry(logs->strategy, NULL));
  helio_pool_leave(&pool);
  return helio_error_pending() ? NAN : divided(entry, value);
}

static helio_status check(const char *function, const helio_logs *logs) {
  helio_status status = hi_enter(function);
  return status || logs ? status : hi_fail(HELIO_INVALID_ARGUMENT, "the logs are NULL");
}

int helio_logs_count(const helio_logs *logs) {
  return logs ? logs->count : 0;
}

const char *helio_logs_name(const helio_logs *logs, int index) {
  return logs && index >= 0 && index < logs->count ? logs->entries[index].name : "";
}

double helio_logs_value(helio_logs *logs, int index) {
  if (check(__func__, logs)) return NAN;
  if (index < 0 || index >= logs->count) {
    hi_fail(HELIO_INVALID_ARGUMENT, "there are %d values, no number %d", logs->count, index);
    return NAN;
  }
  hi_log_entry *entry = &logs->entries[index];
  if (entry->known) return entry->value;
  entry->value = read(logs, entry);
  entry->known = !helio_error_pending();
  return entry->value;
}

double helio_logs_get(helio_logs *logs, const char *name) {
  if (check(__func__, logs)) return NAN;
  int index = index_of(logs, name);
  if (index >= 0) return helio_logs_value(logs, index);
  hi_fail(HELIO_INVALID_ARGUMENT, "nothing is measured under the name %s", name ? name : "NULL");
  return NAN;
}

/* The strategy may know of the loss already, so it is the device that is asked. */
static bool is_gone(const helio_logs *logs, const hi_log_entry *entry) {
  if (!helio_error_pending() || !logs->strategy || !entry->tensor) return false;
  return helio_retry(logs->strategy, NULL) || hi_device_lost(entry->tensor->device);
}

helio_status hi_logs_find(helio_logs *logs, const char *name, double *value, bool *found) {
  int index = index_of(logs, name);
  *found = index >= 0;
  if (!*found) return HELIO_OK;
  *value = helio_logs_value(logs, index);
  if (is_gone(logs, &logs->entries[index])) {
    helio_error_take(NULL);
    *found = false;
  }
  return helio_error_pending();
}
