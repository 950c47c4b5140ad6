/* SPDX-License-Identifier: Apache-2.0 */
/* argmax, top_k and in_top_k: the largest elements and where they are. */
#include "arrange.h"

typedef struct order_plan {
  helio_plan base;
  vendor_function *function;
  gpu_grid grid;
  int64_t rows, extent, inner, k; /* results or rows, the axis, the elements behind it, how many are wanted */
  int32_t lanes, width;
  int32_t wide; /* are the targets int64? */
  bool counts;  /* does top_k count? */
} order_plan;

static order_plan *order_plan_new(helio_backend_device *device, const helio_call *call, uint32_t axis) {
  order_plan *plan = (order_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return NULL;
  const helio_argument *x = call_input(call, 0);
  plan->rows = plan->inner = 1;
  plan->extent = x->extent[axis];
  for (uint32_t i = 0; i < x->rank; i++) {
    if (i != axis) plan->rows *= x->extent[i];
    if (i > axis) plan->inner *= x->extent[i];
  }
  plan->lanes = gpu_team_lanes((size_t)plan->extent);
  plan->width = gpu_strip_width((size_t)plan->rows, (size_t)plan->extent);
  plan->grid = gpu_grid_teams(device, (size_t)plan->rows, plan->lanes);
  return plan;
}

/* The output has the input's axes without that one. */
static bool argmax_fits(const helio_argument *x, const helio_argument *y, uint32_t axis) {
  if (axis >= x->rank || y->rank != x->rank - 1 || x->extent[axis] == 0) return false;
  for (uint32_t i = 0; i < y->rank; i++) {
    if (y->extent[i] != x->extent[i < axis ? i : i + 1]) return false;
  }
  return y->type == HELIO_INT64;
}

static helio_status argmax_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"T", "?", CALL_ARITHMETIC_TYPES};
  helio_axis_attributes attributes;
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0);
  if (attributes.reserved != 0) return host->fail(host, HELIO_NOT_SUPPORTED, "ARGMAX: a reserved attribute is set");
  if (!argmax_fits(x, call_output(call), attributes.axis))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "ARGMAX: the output is not the input without the axis");
  order_plan *plan = order_plan_new(device, call, attributes.axis);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  if (plan->inner > 1) plan->grid = gpu_grid_units(device, gpu_strip_groups((size_t)plan->rows, plan->width));
  const char *name = plan->inner > 1 ? "argmax_columns" : "argmax_rows";
  status = gpu_kernel_find(device, "order", x->type, name, &plan->function);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status argmax_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  order_plan *plan = (order_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), y = gpu_run_address(run, 1);
  void *of_rows[] = {&x, &y, &plan->rows, &plan->extent, &plan->lanes};
  void *of_columns[] = {&x, &y, &plan->rows, &plan->extent, &plan->inner, &plan->width};
  return gpu_launch(base, run, plan->function, plan->grid, plan->inner > 1 ? of_columns : of_rows);
}

/* k is the extent of the outputs' last axis. */
static bool top_k_fits(const helio_argument *x, const helio_argument *y, const helio_argument *places) {
  if (x->rank < 1 || y->rank != x->rank || !call_same_shape(y, places) || places->type != HELIO_INT32) return false;
  for (uint32_t i = 0; i + 1 < x->rank; i++) {
    if (y->extent[i] != x->extent[i]) return false;
  }
  return y->extent[y->rank - 1] <= x->extent[x->rank - 1];
}

/* What a thread does: k times look through its part of the row and meet the others, or look through a row for each of
 * its elements. A meeting takes as long as some thirty elements. */
static bool counting_is_faster(const order_plan *plan) {
  double part = (double)plan->extent / plan->lanes;
  return part * (double)plan->extent < (double)plan->k * (part + 30);
}

static helio_status top_k_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"T", "T?", CALL_ARITHMETIC_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *y = call_output(call);
  if (!top_k_fits(x, y, call_output_at(call, 1)))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "TOP_K: the outputs do not have the input's rows");
  if (x->extent[x->rank - 1] > INT32_MAX)
    return host->fail(host, HELIO_NOT_SUPPORTED, "TOP_K: places of so long an axis do not fit int32");
  order_plan *plan = order_plan_new(device, call, x->rank - 1);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->k = y->extent[y->rank - 1];
  plan->counts = counting_is_faster(plan);
  if (plan->counts) plan->grid = gpu_grid_over(device, (size_t)(plan->rows * plan->extent));
  status = gpu_kernel_find(device, "order", x->type, plan->counts ? "top_k_count" : "top_k_select", &plan->function);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status top_k_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  order_plan *plan = (order_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), y = gpu_run_address(run, 1), places = gpu_run_address(run, 2);
  void *arguments[] = {&x, &y, &places, &plan->rows, &plan->extent, &plan->k, &plan->lanes};
  return gpu_launch(base, run, plan->function, plan->grid, arguments);
}

static helio_status in_top_k_plan_make(helio_backend_device *device, const helio_call *call,
                                       helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"TI", "B", CALL_FLOAT_TYPES};
  helio_top_k_attributes attributes;
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *targets = call_input(call, 1);
  if (attributes.reserved != 0) return host->fail(host, HELIO_NOT_SUPPORTED, "IN_TOP_K: a reserved attribute is set");
  if (x->rank != 2 || targets->rank != 1 || targets->extent[0] != x->extent[0] ||
      !call_same_shape(targets, call_output(call)))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "IN_TOP_K: there is not one target for each row");
  order_plan *plan = order_plan_new(device, call, 1);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->wide = targets->type == HELIO_INT64;
  plan->k = attributes.k;
  status = gpu_kernel_find(device, "order", x->type, "in_top_k", &plan->function);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status in_top_k_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  order_plan *plan = (order_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), targets = gpu_run_address(run, 1), y = gpu_run_address(run, 2);
  void *arguments[] = {&x, &targets, &plan->wide, &y, &plan->rows, &plan->extent, &plan->k, &plan->lanes};
  return gpu_launch(base, run, plan->function, plan->grid, arguments);
}

#define ORDER_LIST(X)                                                                                                  \
  X(argmax, ARGMAX, CALL_ARITHMETIC_TYPES)                                                                             \
  X(top_k, TOP_K, CALL_ARITHMETIC_TYPES)                                                                               \
  X(in_top_k, IN_TOP_K, CALL_FLOAT_TYPES)

#define ORDER_KERNEL(lower, upper, of_types)                                                                           \
  const helio_kernel gpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = of_types,                                                                                               \
      .plan = lower##_plan_make,                                                                                       \
      .run = lower##_run,                                                                                              \
      .plan_free = gpu_plan_free,                                                                                      \
  };
ORDER_LIST(ORDER_KERNEL)
#undef ORDER_KERNEL
