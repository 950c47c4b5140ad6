/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/variable.h"

#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "ops/placement.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

static atomic_uint generation;

unsigned hi_variables_generation(void) {
  return atomic_load(&generation);
}

void hi_variables_changed(void) {
  atomic_fetch_add(&generation, 1);
}

static void end(void *object) {
  helio_variable *variable = object;
  hi_drop(variable->tensor);
  free(variable->name);
  free(variable);
}

helio_variable *hi_variable_new(const char *name, helio_tensor *value, bool trainable) {
  helio_variable *variable = value ? hi_object_new(sizeof *variable, end, "a variable") : NULL;
  if (!variable) return NULL;
  variable->trainable = trainable;
  variable->name = strdup(name);
  free(value->name);
  value->name = strdup(name); /* errors about its memory name it */
  if (!variable->name || !value->name) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of %s", name);
    return NULL;
  }
  hi_hold(value);
  variable->tensor = value;
  return variable;
}

bool hi_variable_usable(const helio_variable *variable) {
  if (variable) return hi_tensor_usable(variable->tensor, variable->name);
  hi_fail(HELIO_INVALID_ARGUMENT, "the variable is NULL");
  return false;
}

helio_tensor *hi_variable_tensor(const helio_variable *variable) {
  return variable->tensor;
}

helio_tensor *helio_value(helio_variable *variable) {
  if (hi_enter(__func__) || !hi_variable_usable(variable)) return NULL;
  helio_tensor *value = hi_variable_tensor(variable);
  return variable->trainable && hi_tape_watch(value) ? NULL : value;
}

/* ---- assigning ---- */

static helio_status check_value(const helio_variable *variable, helio_tensor *value) {
  if (!hi_variable_usable(variable)) return helio_error_pending();
  if (!hi_tensor_usable(value, "the value")) return helio_error_pending();
  const helio_tensor *own = variable->tensor;
  if (value->type == own->type && hi_shape_equal(&value->shape, &own->shape)) return HELIO_OK;
  char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s is %s %s: a value of %s %s cannot be assigned to it", variable->name,
                 helio_type_name(own->type), hi_shape_text(&own->shape, a), helio_type_name(value->type),
                 hi_shape_text(&value->shape, b));
}

static helio_status write_value(helio_variable *variable, const helio_tensor *value) {
  helio_tensor *own = variable->tensor;
  if (own == value) return HELIO_OK;
  atomic_fetch_add(&own->block->version, 1);
  return hi_copy(own->device, hi_tensor_place(own), value->device, hi_tensor_place(value), hi_tensor_bytes(own));
}

helio_status helio_assign(helio_variable *variable, helio_tensor *value) {
  helio_status status = hi_enter(__func__);
  if (!status) status = check_value(variable, value);
  return status ? status : write_value(variable, value);
}

/* The sum is formed where the variable is, and is no part of any gradient. */
static helio_status assign_sum(const char *function, helio_variable *variable, helio_tensor *value,
                               helio_tensor *(*operation)(helio_tensor *, helio_tensor *)) {
  helio_status status = hi_enter(function);
  if (!status) status = check_value(variable, value);
  if (status) return status;
  helio_scope pool = helio_pool_enter(), device = hi_placement_enter(variable->tensor->device);
  hi_tape_pause();
  helio_tensor *sum = operation(variable->tensor, value);
  status = sum ? write_value(variable, sum) : helio_error_pending();
  hi_tape_resume();
  helio_device_leave(&device);
  helio_pool_leave(&pool);
  return status;
}

helio_status helio_assign_add(helio_variable *variable, helio_tensor *value) {
  return assign_sum(__func__, variable, value, helio_add);
}

helio_status helio_assign_sub(helio_variable *variable, helio_tensor *value) {
  return assign_sum(__func__, variable, value, helio_sub);
}

helio_status hi_variable_write(helio_variable *variable, const void *data) {
  if (!hi_variable_usable(variable)) return helio_error_pending();
  helio_tensor *own = variable->tensor;
  atomic_fetch_add(&own->block->version, 1);
  return hi_copy_in(own->device, hi_tensor_place(own), data, hi_tensor_bytes(own));
}

/* ---- facts ---- */

const char *helio_variable_name(const helio_variable *variable) {
  return variable ? variable->name : "";
}

helio_shape helio_variable_shape(const helio_variable *variable) {
  return helio_tensor_shape(variable ? variable->tensor : NULL);
}

helio_type helio_variable_type(const helio_variable *variable) {
  return helio_tensor_type(variable ? variable->tensor : NULL);
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
