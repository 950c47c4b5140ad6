/* SPDX-License-Identifier: Apache-2.0 */
#include "strategy/values.h"

#include <stdlib.h>

#include "runtime/error.h"

static void end(void *object) {
  helio_values *values = object;
  for (int i = 0; i < values->count * values->parts; i++) hi_drop(values->tensors[i]);
  hi_drop(values->batch);
  hi_drop(values->strategy);
  free(values);
}

helio_values *hi_values_new(helio_strategy *strategy, int parts) {
  hi_replicas_now now = hi_strategy_replicas(strategy);
  return hi_values_new_for(strategy, &now, parts);
}

helio_values *hi_values_new_for(helio_strategy *strategy, const hi_replicas_now *now, int parts) {
  int count = now->count;
  size_t tensors = (size_t)count * (size_t)parts;
  helio_values *values = hi_object_new(sizeof *values + tensors * sizeof values->tensors[0], end, "values of replicas");
  if (!values) return NULL;
  hi_hold(strategy);
  values->strategy = strategy;
  values->losses = now->losses;
  values->count = count;
  values->parts = parts;
  values->global_rows = -1;
  for (int i = 0; i < count; i++) values->first_row[i] = -1;
  return values;
}

void hi_values_set(helio_values *values, int replica, int part, helio_tensor *tensor) {
  if (!tensor) return;
  hi_hold(tensor);
  values->tensors[part * values->count + replica] = tensor;
}

bool hi_values_plain(const helio_values *values, int part) {
  helio_tensor *const *tensors = &values->tensors[part * values->count];
  for (int i = 1; i < values->count; i++) {
    if (tensors[i] != tensors[0]) return false;
  }
  return values->count > 1;
}

helio_element hi_values_element(const helio_values *values, int replica) {
  helio_element element = {.count = values->parts};
  for (int i = 0; i < values->parts; i++) element.part[i] = values->tensors[i * values->count + replica];
  return element;
}

bool hi_values_usable(const helio_strategy *strategy, const helio_values *values) {
  if (!values) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the values are NULL");
  } else if (values->strategy != strategy) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the values are those of another strategy's replicas");
  } else if (values->losses != strategy->losses) {
    hi_fail(HELIO_REPLICA_LOST,
            "the values were made for %d replicas, of which %d %s left; helio_retry() splits a batch "
            "anew",
            values->count, strategy->replicas.count, strategy->replicas.count == 1 ? "is" : "are");
  } else {
    return true;
  }
  return false;
}

helio_tensor *const *hi_values_single(const helio_strategy *strategy, const helio_values *values) {
  if (!hi_values_usable(strategy, values)) return NULL;
  if (values->parts == 1) return values->tensors;
  hi_fail(HELIO_INVALID_ARGUMENT, "each replica has %d values; helio_values_part() takes one of them", values->parts);
  return NULL;
}

/* ---- the user's ---- */

helio_values *helio_values_of(helio_strategy *strategy, helio_tensor *const *tensors, int count) {
  if (hi_enter(__func__) || !hi_strategy_usable(strategy)) return NULL;
  if (!tensors || count != strategy->replicas.count) {
    hi_fail(HELIO_INVALID_ARGUMENT, "there are %d replicas, and %d values are given", strategy->replicas.count,
            tensors ? count : 0);
    return NULL;
  }
  for (int i = 0; i < count; i++) {
    if (!hi_tensor_usable(tensors[i], "a value")) return NULL;
  }
  helio_values *values = hi_values_new(strategy, 1);
  for (int i = 0; values && i < count; i++) hi_values_set(values, i, 0, tensors[i]);
  return values;
}

helio_values *helio_values_same(helio_strategy *strategy, helio_tensor *tensor) {
  if (hi_enter(__func__) || !hi_strategy_usable(strategy) || !hi_tensor_usable(tensor, "the value")) return NULL;
  helio_values *values = hi_values_new(strategy, 1);
  for (int i = 0; values && i < values->count; i++) hi_values_set(values, i, 0, tensor);
  return values;
}

static void copy_part(helio_values *to, int part, const helio_values *from, int from_part) {
  for (int i = 0; i < to->count; i++) hi_values_set(to, i, part, from->tensors[from_part * from->count + i]);
}

/* Where the rows stand is known of parts of one batch. */
static void copy_rows(helio_values *to, const helio_values *from) {
  if (from->global_rows < 0) return;
  to->global_rows = from->global_rows;
  for (int i = 0; i < to->count; i++) to->first_row[i] = from->first_row[i];
}

helio_values *helio_values_join(helio_values *const *list, int count) {
  int parts = 0;
  if (hi_enter(__func__)) return NULL;
  if (!list || count < 1) {
    hi_fail(HELIO_INVALID_ARGUMENT, "there are no values to join");
    return NULL;
  }
  for (int i = 0; i < count; i++) {
    if (!list[i] || !hi_values_usable(list[0]->strategy, list[i])) {
      if (!list[i]) hi_fail(HELIO_INVALID_ARGUMENT, "values %d are NULL", i);
      return NULL;
    }
    parts += list[i]->parts;
  }
  if (parts > HELIO_MAX_PARTS) {
    hi_fail(HELIO_INVALID_ARGUMENT, "together they have %d parts; there may be %d", parts, HELIO_MAX_PARTS);
    return NULL;
  }
  helio_values *joined = hi_values_new(list[0]->strategy, parts);
  for (int i = 0, part = 0; joined && i < count; i++) {
    copy_rows(joined, list[i]);
    for (int j = 0; j < list[i]->parts; j++) copy_part(joined, part++, list[i], j);
  }
  return joined;
}

int helio_values_parts(const helio_values *values) {
  return values ? values->parts : 0;
}

helio_values *helio_values_part(helio_values *values, int part) {
  if (hi_enter(__func__)) return NULL;
  if (!values || part < 0 || part >= values->parts) {
    hi_fail(HELIO_INVALID_ARGUMENT, values ? "there is no part %d" : "the values are NULL", part);
    return NULL;
  }
  if (!hi_values_usable(values->strategy, values)) return NULL;
  helio_values *result = hi_values_new(values->strategy, 1);
  if (!result) return NULL;
  copy_rows(result, values);
  copy_part(result, 0, values, part);
  return result;
}

helio_tensor *helio_values_at(const helio_values *values, int replica, int part) {
  if (hi_enter(__func__)) return NULL;
  if (values && replica >= 0 && replica < values->count && part >= 0 && part < values->parts) {
    return values->tensors[part * values->count + replica];
  }
  hi_fail(HELIO_INVALID_ARGUMENT, values ? "there is no part %d of replica %d" : "the values are NULL", part, replica);
  return NULL;
}

helio_tensor *const *helio_local_results(helio_strategy *strategy, helio_values *values, int *count) {
  if (hi_enter(__func__) || !hi_strategy_usable(strategy)) return NULL;
  helio_tensor *const *tensors = hi_values_single(strategy, values);
  if (tensors && count) *count = hi_values_plain(values, 0) ? 1 : values->count;
  return tensors;
}
