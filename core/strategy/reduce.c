/* SPDX-License-Identifier: Apache-2.0 */
/* Joining what replicas have: outside of them onto one device, inside by all. */
#include <stdio.h>
#include <stdlib.h>

#include "device/topology.h"
#include "ops/options.h"
#include "ops/placement.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "strategy/reduce_to_one.h"
#include "strategy/values.h"
#include "tensor/pool.h"

static helio_status check_op(helio_reduce_op op) {
  if (op == HELIO_SUM || op == HELIO_MEAN) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "`reduce_op` must be HELIO_SUM or HELIO_MEAN; %d is not a valid ReduceOp",
                 (int)op);
}

/* A quotient of integers is a float64, as in TensorFlow. */
static helio_tensor *divided(helio_tensor *x, double divisor) {
  if (x && !hi_type_is_float(x->type)) x = helio_cast(x, HELIO_FLOAT64);
  return x ? helio_div(x, hi_scalar_like(x, divisor)) : NULL;
}

/* ---- outside of replicas ---- */

/* The first ten times for each device that something is reduced to, as TensorFlow says it. */
static void say(hi_device *device) {
  enum { TIMES = 10 };
  if (atomic_load(&device->reductions_said) >= TIMES) return;
  if (atomic_fetch_add(&device->reductions_said, 1) >= TIMES) return;
  hi_log(HELIO_LOG_INFO, "Reduce to %s then broadcast to ('%s',).", device->name, device->name);
}

static bool reduces_to_one(const helio_strategy *strategy) {
  return strategy->team && strategy->collective.collective.table == &hi_reduce_to_one_table;
}

void hi_strategy_say_sums(helio_strategy *strategy) {
  if (!reduces_to_one(strategy) || atomic_exchange(&strategy->sums_said, true)) return;
  char *names = hi_strategy_tuple(strategy);
  if (names) hi_log(HELIO_LOG_INFO, "Reduce to %s then broadcast to %s.", strategy->replicas.devices[0]->name, names);
  free(names);
}

void hi_strategy_say_reads(helio_strategy *strategy) {
  if (reduces_to_one(strategy) && !atomic_exchange(&strategy->reads_said, true)) say(hi_device_host());
}

static helio_tensor *add_up(helio_tensor *const *tensors, int count, hi_device *device) {
  helio_tensor *there[HELIO_MAX_REPLICAS];
  for (int i = 0; i < count; i++) {
    there[i] = hi_tensor_on(tensors[i], device);
    if (!there[i]) return NULL;
  }
  return count == 1 ? there[0] : helio_add_n(there, count);
}

static helio_tensor *refuse_plain(helio_tensor *value) {
  char *text = helio_tensor_text(value);
  hi_fail(HELIO_INVALID_ARGUMENT,
          "A non-DistributedValues value %s cannot be reduced with the given reduce op HELIO_SUM.", text ? text : "");
  free(text);
  return NULL;
}

static helio_tensor *across(const helio_strategy_reduce_options *o, helio_tensor *const *tensors, hi_device *device) {
  int count = o->values->count;
  if (hi_values_plain(o->values, 0)) {
    return o->op == HELIO_MEAN ? hi_tensor_on(tensors[0], device) : refuse_plain(tensors[0]);
  }
  if (count > 1) say(device);
  helio_tensor *sum = add_up(tensors, count, device);
  return o->op == HELIO_MEAN && count > 1 ? divided(sum, count) : sum;
}

/* How many elements each of those that are left is a sum of. */
static double summed_elements(const helio_tensor *tensor, const helio_axes *axes) {
  double count = 1;
  for (int i = 0; i < axes->count; i++) {
    int axis = axes->axis[i];
    count *= (double)tensor->shape.extent[axis < 0 ? axis + tensor->shape.rank : axis];
  }
  return count;
}

static helio_status check_axes(const helio_tensor *tensor, const helio_axes *axes) {
  for (int i = 0; i < axes->count; i++) {
    int axis = axes->axis[i], rank = tensor->shape.rank;
    if (axis >= -rank && axis < rank) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "`axis` = %d out of range for `value` with rank %d", axis, rank);
  }
  return HELIO_OK;
}

/* Each replica's own sum is formed on its device. One value that all have counts for each, as in TensorFlow. */
static helio_tensor *along(const helio_strategy_reduce_options *o, helio_tensor *const *tensors, hi_device *device) {
  helio_tensor *sums[HELIO_MAX_REPLICAS];
  double elements = 0;
  int count = o->values->count;
  for (int i = 0; i < count; i++) {
    if (check_axes(tensors[i], &o->axes)) return NULL;
    helio_scope there = hi_placement_enter(tensors[i]->device);
    sums[i] = helio_sum(tensors[i], .axes = o->axes);
    helio_device_leave(&there);
    if (!sums[i]) return NULL;
    elements += summed_elements(tensors[i], &o->axes);
  }
  if (count > 1) say(device);
  helio_tensor *sum = add_up(sums, count, device);
  return o->op == HELIO_MEAN ? divided(sum, elements) : sum;
}

helio_tensor *helio_reduce_with(const helio_strategy_reduce_options *given) {
  helio_strategy_reduce_options o;
  if (!hi_options_enter("helio_reduce", &o, sizeof o, given)) return NULL;
  if (!hi_strategy_usable(o.strategy) || check_op(o.op) || !hi_require_cross_replica(o.strategy)) return NULL;
  helio_tensor *const *tensors = hi_values_single(o.strategy, o.values);
  hi_device *device = tensors ? hi_placement_for_data(NULL) : NULL;
  if (!device) return NULL;
  for (int i = 0; i < o.values->count; i++) {
    if (!hi_tensor_usable(tensors[i], "a replica's value")) return NULL;
  }
  helio_scope pool = helio_pool_enter(), there = hi_placement_enter(device);
  hi_tape_pause();
  helio_tensor *result = o.axes.count ? along(&o, tensors, device) : across(&o, tensors, device);
  hi_tape_resume();
  helio_device_leave(&there);
  return hi_pool_leave_with(&pool, result);
}

helio_tensor *helio_gather(helio_strategy *strategy, helio_values *values, int axis) {
  helio_tensor *there[HELIO_MAX_REPLICAS];
  if (hi_enter(__func__) || !hi_strategy_usable(strategy) || !hi_require_cross_replica(strategy)) return NULL;
  helio_tensor *const *tensors = hi_values_single(strategy, values);
  hi_device *device = tensors ? hi_placement_for_data(NULL) : NULL;
  if (!device) return NULL;
  helio_scope pool = helio_pool_enter(), placement = hi_placement_enter(device);
  int count = hi_values_plain(values, 0) ? 1 : values->count;
  hi_tape_pause();
  for (int i = 0; i < count && !helio_error_pending(); i++) {
    there[i] = hi_tensor_usable(tensors[i], "a replica's value") ? hi_tensor_on(tensors[i], device) : NULL;
  }
  helio_tensor *result = helio_error_pending() ? NULL : helio_concat(there, count, axis);
  hi_tape_resume();
  helio_device_leave(&placement);
  return hi_pool_leave_with(&pool, result);
}

/* ---- inside ---- */

helio_tensor *helio_all_reduce(helio_reduce_op op, helio_tensor *tensor) {
  helio_replica replica;
  if (hi_enter(__func__) || check_op(op) || !hi_require_replica(&replica)) return NULL;
  if (!hi_tensor_usable(tensor, "the tensor")) return NULL;
  if (replica.count == 1) return tensor;
  helio_tensor *sum = hi_all_reduce(tensor);
  return op == HELIO_MEAN ? divided(sum, replica.count) : sum;
}
