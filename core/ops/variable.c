/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/variable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "ops/journal.h"
#include "ops/options.h"
#include "ops/placement.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "tensor/pool.h"
#include "tensor/tensor.h"

static atomic_uint generation;

unsigned hi_variables_generation(void) {
  return atomic_load(&generation);
}

void hi_variables_changed(void) {
  atomic_fetch_add(&generation, 1);
}

/* ---- making ---- */

static void end(void *object) {
  helio_variable *variable = object;
  for (int i = 0; i < variable->copy_count; i++) hi_drop(variable->copies[i]);
  hi_drop(variable->replicas);
  free(variable->name);
  free(variable);
}

static helio_status check_traits(const char *name, const helio_tensor *value, const hi_variable_traits *traits,
                                 bool distributed) {
  if ((int)traits->synchronization < 0 || traits->synchronization > HELIO_ON_READ) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%d is not a synchronization for variable %s", traits->synchronization,
                   name);
  }
  if ((int)traits->aggregation < 0 || traits->aggregation > HELIO_AGGREGATE_FIRST) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "Invalid variable aggregation mode: %d for variable: %s",
                   traits->aggregation, name);
  }
  if (distributed && traits->aggregation == HELIO_AGGREGATE_MEAN && !hi_type_is_float(value->type)) {
    return hi_fail(HELIO_INVALID_ARGUMENT,
                   "creating distributed variable %s with aggregation=MEAN and a non-floating dtype is not supported, "
                   "please use a different aggregation or dtype",
                   name);
  }
  return HELIO_OK;
}

/* Takes the tensor as a replica's copy, under the name that it has there. */
static helio_status add_copy(helio_variable *variable, int replica, helio_tensor *copy) {
  char *name = NULL;
  if (!copy) return helio_error_pending();
  int wrote =
      replica ? asprintf(&name, "%s/replica_%d", variable->name, replica) : asprintf(&name, "%s", variable->name);
  if (wrote < 0) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of %s", variable->name);
  free(copy->name);
  copy->name = name; /* errors about its memory name it */
  hi_hold(copy);
  variable->copies[variable->replicas ? variable->replicas->copy[replica] : 0] = copy;
  return HELIO_OK;
}

/* The value itself where it is on the replica's device and not taken yet. */
static helio_tensor *copy_for(const helio_variable *variable, int replica, helio_tensor *value, bool taken) {
  hi_device *device = variable->replicas->devices[replica];
  if (!taken && value->device == device) return value;
  if (hi_device_use(device)) return NULL;
  helio_tensor *copy = hi_tensor_new(device, value->type, &value->shape, variable->name);
  if (copy && hi_copy(device, hi_tensor_place(copy), value->device, hi_tensor_place(value), hi_tensor_bytes(value))) {
    return NULL;
  }
  return copy;
}

static helio_status wait_for_all(const helio_variable *variable) {
  helio_status status = HELIO_OK;
  if (!variable->replicas || variable->replicas->count == 1) return HELIO_OK;
  for (int i = 0; i < variable->replicas->count && !status; i++) {
    hi_device *device = variable->replicas->devices[i];
    if (!device->synchronous) status = hi_device_synchronize(device);
  }
  return status;
}

/* Copies make the devices' streams wait for each other. In some a collective may be queued that waits for the others'
 * parts of it, which their threads have still to hand over, and which would then be queued behind the copies: all would
 * wait for ever. So what is queued is done first.
 *
 * And what a device that fails has given to others must not stay there: it is known to be well before they go on. */
static helio_status add_copies(helio_variable *variable, helio_tensor *value) {
  bool taken = false;
  if (!variable->replicas) return add_copy(variable, 0, value);
  helio_status status = wait_for_all(variable);
  for (int i = 0; i < variable->replicas->count && !status; i++) {
    helio_tensor *copy = copy_for(variable, i, value, taken);
    taken = taken || copy == value;
    status = add_copy(variable, i, copy);
  }
  return status ? status : wait_for_all(variable);
}

helio_variable *hi_variable_new(const char *name, helio_tensor *value, const hi_variable_traits *traits) {
  hi_replicas *replicas = hi_context_now().replicas;
  if (replicas && !replicas->devices[0]) replicas = NULL;
  int count = replicas ? replicas->count : 1, copies = replicas && count > 0 ? replicas->copy[count - 1] + 1 : count;
  helio_variable *variable = NULL;
  if (copies == 0) hi_fail(HELIO_WRONG_STATE, "%s: the strategy was made before helio_shutdown()", name);
  if (value && copies > 0 && !check_traits(name, value, traits, replicas)) {
    variable = hi_object_new(sizeof *variable + (size_t)copies * sizeof *variable->copies, end, "a variable");
  }
  if (!variable) return NULL;
  hi_census_name(&variable->object, &variable->name);
  variable->copy_count = copies;
  variable->trainable = traits->trainable;
  variable->synchronization = traits->synchronization ? traits->synchronization : HELIO_ON_WRITE;
  variable->aggregation = traits->aggregation ? traits->aggregation : HELIO_AGGREGATE_NONE;
  if (replicas) hi_hold(replicas);
  variable->replicas = replicas;
  variable->name = strdup(name);
  if (variable->name) return add_copies(variable, value) ? NULL : variable;
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of %s", name);
  return NULL;
}

/* ---- reading ---- */

/* How many copies there are that are not lost, and the how-manieth of all each is. */
static int copies_of(const helio_variable *variable) {
  int replicas = variable->replicas ? variable->replicas->count : 0;
  return replicas > 0 ? replicas : 1;
}

static helio_tensor *copy_at(const helio_variable *variable, int replica) {
  return variable->copies[variable->replicas ? variable->replicas->copy[replica] : replica];
}

static helio_tensor *copy_here(const helio_variable *variable) {
  int replica = hi_replica_of(variable->replicas);
  return copy_at(variable, replica < 0 ? 0 : replica);
}

bool hi_variable_usable(const helio_variable *variable) {
  if (!variable) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the variable is NULL");
    return false;
  }
  hi_context context = hi_context_now();
  if (context.replica && variable->replicas && variable->replicas != context.replicas) {
    hi_fail(HELIO_WRONG_STATE,
            "Mixing different strategies: %s was made in the scope of another than the one that runs", variable->name);
    return false;
  }
  return hi_tensor_usable(copy_here(variable), variable->name);
}

helio_tensor *hi_variable_tensor(const helio_variable *variable) {
  return copy_here(variable);
}

/* Copies that differ until they are read. */
static bool apart(const helio_variable *variable) {
  return variable->synchronization == HELIO_ON_READ && copies_of(variable) > 1 && hi_replica_of(variable->replicas) < 0;
}

bool hi_variable_has_parts(const helio_variable *variable) {
  return apart(variable) && variable->aggregation != HELIO_AGGREGATE_FIRST;
}

static helio_tensor *joined(const helio_variable *variable) {
  helio_tensor *copies[HELIO_MAX_REPLICAS];
  int count = copies_of(variable);
  for (int i = 0; i < count; i++) copies[i] = copy_at(variable, i);
  helio_scope pool = helio_pool_enter(), device = hi_placement_enter(copies[0]->device);
  hi_tape_pause();
  helio_tensor *sum = helio_add_n(copies, count);
  if (variable->aggregation == HELIO_AGGREGATE_MEAN) sum = helio_div(sum, hi_scalar_like(sum, count));
  hi_tape_resume();
  helio_device_leave(&device);
  return hi_pool_leave_with(&pool, sum);
}

helio_tensor *hi_variable_read(const helio_variable *variable) {
  if (!apart(variable) || variable->aggregation == HELIO_AGGREGATE_FIRST) return hi_variable_tensor(variable);
  if (variable->aggregation != HELIO_AGGREGATE_NONE) return joined(variable);
  hi_fail(HELIO_WRONG_STATE, "%s is synchronised on read, but by no aggregation: only replicas can read it",
          variable->name);
  return NULL;
}

helio_tensor *helio_value(helio_variable *variable) {
  if (hi_enter(__func__) || !hi_variable_usable(variable)) return NULL;
  helio_tensor *value = hi_variable_read(variable);
  return value && variable->trainable && hi_tape_watch(value) ? NULL : value;
}

/* ---- assigning ---- */

bool hi_variable_assignable(const helio_variable *variable) {
  if (variable->replicas || !hi_replicas_together()) return true;
  hi_fail(
      HELIO_WRONG_STATE,
      "Variable (%s) was not created in the distribution strategy scope: replicas cannot assign it. Make it, or the "
      "layer, model, metric or optimizer that it belongs to, inside HELIO_SCOPE(strategy)",
      variable->name);
  return false;
}

static helio_status check_value(const helio_variable *variable, helio_tensor *value) {
  if (!hi_variable_usable(variable)) return helio_error_pending();
  if (!hi_tensor_usable(value, "the value")) return helio_error_pending();
  if (!hi_variable_assignable(variable)) return helio_error_pending();
  const helio_tensor *own = hi_variable_tensor(variable);
  if (value->type == own->type && hi_shape_equal(&value->shape, &own->shape)) return HELIO_OK;
  char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s is %s %s: a value of %s %s cannot be assigned to it", variable->name,
                 helio_type_name(own->type), hi_shape_text(&own->shape, a), helio_type_name(value->type),
                 hi_shape_text(&value->shape, b));
}

static helio_status write_copy(helio_tensor *own, const helio_tensor *value) {
  if (own == value) return HELIO_OK;
  helio_status status = hi_journal_write(own);
  if (status) return status;
  atomic_fetch_add(&own->block->version, 1);
  return hi_copy(own->device, hi_tensor_place(own), value->device, hi_tensor_place(value), hi_tensor_bytes(own));
}

/* What the replica's copy is assigned, or gets added, where each replica has brought a value. */
static helio_tensor *agreed(const helio_variable *variable, helio_tensor *value) {
  hi_replicas *replicas = variable->replicas;
  if (variable->synchronization == HELIO_ON_READ || copies_of(variable) == 1) return value;
  switch (variable->aggregation) {
  case HELIO_AGGREGATE_SUM:
    return replicas->services->sum(replicas, value);
  case HELIO_AGGREGATE_MEAN:
    return helio_div(replicas->services->sum(replicas, value), hi_scalar_like(value, copies_of(variable)));
  case HELIO_AGGREGATE_FIRST:
    return replicas->services->broadcast(replicas, value);
  case HELIO_AGGREGATE_NONE:
    break;
  }
  return value;
}

typedef helio_tensor *operation(helio_tensor *a, helio_tensor *b);

/* The new value is formed where the copy is. */
static helio_status change_copy(helio_tensor *copy, helio_tensor *value, operation *combine) {
  helio_scope device = hi_placement_enter(copy->device);
  if (combine) value = combine(copy, value);
  helio_status status = value ? write_copy(copy, value) : helio_error_pending();
  helio_device_leave(&device);
  return status;
}

/* Outside of replicas all copies change alike; of those whose sum is the value, each takes its part. */
static helio_status change_all(helio_variable *variable, helio_tensor *value, operation *combine) {
  helio_status status = HELIO_OK;
  if (apart(variable) && variable->aggregation == HELIO_AGGREGATE_SUM) {
    value = helio_div(value, hi_scalar_like(value, copies_of(variable)));
    if (!value) return helio_error_pending();
  }
  for (int i = 0; i < copies_of(variable) && !status; i++) status = change_copy(copy_at(variable, i), value, combine);
  return status;
}

static helio_status change(helio_variable *variable, helio_tensor *value, operation *combine) {
  int replica = hi_replica_of(variable->replicas);
  helio_scope pool = helio_pool_enter();
  hi_tape_pause(); /* it is no part of any gradient */
  helio_status status;
  if (replica < 0) {
    status = change_all(variable, value, combine);
  } else {
    value = agreed(variable, value);
    status = value ? change_copy(copy_at(variable, replica), value, combine) : helio_error_pending();
  }
  hi_tape_resume();
  helio_pool_leave(&pool);
  return status;
}

helio_status helio_assign(helio_variable *variable, helio_tensor *value) {
  helio_status status = hi_enter(__func__);
  if (!status) status = check_value(variable, value);
  return status ? status : change(variable, value, NULL);
}

static helio_status check_sum(const char *method, const helio_variable *variable, helio_tensor *value) {
  helio_status status = check_value(variable, value);
  if (status || !apart(variable) || variable->aggregation != HELIO_AGGREGATE_SUM) return status;
  return hi_fail(HELIO_WRONG_STATE,
                 "SyncOnReadVariable does not support `%s` in cross-replica context when aggregation is set to "
                 "HELIO_AGGREGATE_SUM: %s",
                 method, variable->name);
}

static helio_status assign_sum(const char *function, const char *method, helio_variable *variable, helio_tensor *value,
                               operation *combine) {
  helio_status status = hi_enter(function);
  if (!status) status = check_sum(method, variable, value);
  return status ? status : change(variable, value, combine);
}

helio_status helio_assign_add(helio_variable *variable, helio_tensor *value) {
  return assign_sum(__func__, "assign_add", variable, value, helio_add);
}

helio_status helio_assign_sub(helio_variable *variable, helio_tensor *value) {
  return assign_sum(__func__, "assign_sub", variable, value, helio_sub);
}

/* All sums are formed before the first is written. */
static helio_status add_all(const helio_variables *variables, helio_tensor *const *additions) {
  helio_tensor *sums[HI_MOST_ADDED];
  helio_status status = HELIO_OK;
  for (int i = 0; i < variables->count && !status; i++) {
    helio_tensor *copy = hi_variable_tensor(variables->at[i]);
    status = check_sum("assign_add", variables->at[i], additions[i]);
    if (status) return status;
    helio_scope device = hi_placement_enter(copy->device);
    sums[i] = helio_add(copy, additions[i]);
    helio_device_leave(&device);
    if (!sums[i]) status = helio_error_pending();
  }
  for (int i = 0; i < variables->count && !status; i++) {
    status = write_copy(hi_variable_tensor(variables->at[i]), sums[i]);
  }
  return status;
}

helio_status hi_variables_add(const helio_variables *variables, helio_tensor *const *additions) {
  helio_scope pool = helio_pool_enter();
  hi_tape_pause();
  helio_status status = add_all(variables, additions);
  hi_tape_resume();
  helio_pool_leave(&pool);
  return status;
}

/* A step of gradient descent by −1 adds. */
helio_status hi_variable_prepare_add(const helio_variable *variable, helio_tensor *addition, hi_prepared *prepared) {
  const hi_row *row = hi_row_of(HELIO_OP_SGD_UPDATE);
  helio_status status = check_sum("assign_add", variable, addition);
  if (status) return status;
  helio_tensor *copy = hi_variable_tensor(variable);
  prepared->call = (hi_call){.row = row, .input_count = (int)strlen(row->inputs), .scalars = {{.real = -1}}};
  prepared->call.attributes.sgd = (helio_sgd_attributes){.size = sizeof(helio_sgd_attributes)};
  prepared->inputs[0] = copy;
  prepared->inputs[hi_update_gradient_place(row)] = addition;
  helio_scope device = hi_placement_enter(copy->device);
  status = hi_dispatch_prepare(prepared);
  helio_device_leave(&device);
  return status;
}

helio_status hi_variable_clear(helio_variable *variable) {
  int replica = hi_replica_of(variable->replicas);
  helio_status status = HELIO_OK;
  if (!hi_variable_usable(variable) || !hi_variable_assignable(variable)) return helio_error_pending();
  for (int i = 0; i < copies_of(variable) && !status; i++) {
    helio_tensor *copy = copy_at(variable, i);
    if (replica >= 0 && i != replica) continue;
    status = hi_journal_write(copy);
    if (status) break;
    atomic_fetch_add(&copy->block->version, 1);
    status = hi_clear(copy->device, hi_tensor_place(copy), hi_tensor_bytes(copy));
  }
  return status;
}

/* As an assignment, which divides, where the value is the sum of copies. */
static helio_status write_as_value(helio_variable *variable, const void *data) {
  helio_tensor *own = copy_at(variable, 0);
  helio_scope pool = helio_pool_enter();
  helio_tensor *value = helio_constant(data, own->shape, own->type);
  helio_status status = value ? change(variable, value, NULL) : helio_error_pending();
  helio_pool_leave(&pool);
  return status;
}

helio_status hi_variable_write(helio_variable *variable, const void *data) {
  helio_status status = HELIO_OK;
  if (!hi_variable_usable(variable)) return helio_error_pending();
  if (apart(variable) && variable->aggregation == HELIO_AGGREGATE_SUM) return write_as_value(variable, data);
  for (int i = 0; i < copies_of(variable) && !status; i++) status = hi_variable_write_copy(variable, i, data);
  return status;
}

helio_status hi_variable_write_copy(helio_variable *variable, int copy, const void *data) {
  helio_tensor *own = copy_at(variable, copy);
  atomic_fetch_add(&own->block->version, 1);
  return hi_copy_in(own->device, hi_tensor_place(own), data, hi_tensor_bytes(own));
}

/* ---- facts ---- */

int helio_variable_copies(const helio_variable *variable) {
  return variable ? copies_of(variable) : 0;
}

helio_tensor *helio_variable_copy(helio_variable *variable, int copy) {
  if (hi_enter(__func__)) return NULL;
  if (variable && copy >= 0 && copy < copies_of(variable)) return copy_at(variable, copy);
  hi_fail(HELIO_INVALID_ARGUMENT, variable ? "there is no copy %d of %s" : "the variable is NULL", copy,
          helio_variable_name(variable));
  return NULL;
}

const char *helio_variable_name(const helio_variable *variable) {
  return variable ? variable->name : "";
}

helio_shape helio_variable_shape(const helio_variable *variable) {
  return helio_tensor_shape(variable ? copy_at(variable, 0) : NULL);
}

helio_type helio_variable_type(const helio_variable *variable) {
  return helio_tensor_type(variable ? copy_at(variable, 0) : NULL);
}

bool helio_variable_trainable(const helio_variable *variable) {
  return variable && variable->trainable;
}

helio_status helio_variable_set_trainable(helio_variable *variable, bool trainable) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (!variable) return hi_fail(HELIO_INVALID_ARGUMENT, "the variable is NULL");
  variable->trainable = trainable;
  hi_variables_changed();
  return HELIO_OK;
}
