/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: max_pool, average_pool and their gradients, by kernels of ours: where the winners of max_pool are told is
 * defined by plugin.h and not by a vendor. */
#include "gpu.h"

#include <stdio.h>

/* As `pool` of kernels/pooling.cu. */
typedef struct pool_shape {
  int64_t images, height, width, channels;
  int64_t out_height, out_width;
  int64_t window[2], stride[2], before[2];
  uint32_t operation, unused;
} pool_shape;

typedef struct pool_plan {
  helio_plan base;
  pool_shape shape;
  bool winners; /* are given or wanted */
  size_t count; /* of elements that threads are for */
  vendor_function *function;
} pool_plan;

/* Does the axis of y have as many windows as fit? With less padding than a window none lies in it altogether. */
static bool axis_fits(int64_t input, int64_t output, uint32_t window, uint32_t stride, const uint32_t padding[2]) {
  if (window < 1 || stride < 1 || window > INT32_MAX || input < 1 || input > INT64_MAX / 4) return false;
  if (padding[0] >= window || padding[1] >= window) return false;
  int64_t room = input + padding[0] + padding[1];
  return room >= window && output == (room - window) / stride + 1;
}

static bool shapes_fit(const helio_argument *x, const helio_argument *y, const helio_argument *winners,
                       const helio_pool_attributes *how) {
  if (x->rank != 4 || y->rank != 4 || x->extent[0] != y->extent[0] || x->extent[3] != y->extent[3]) return false;
  for (int i = 0; i < 2; i++) {
    if (!axis_fits(x->extent[1 + i], y->extent[1 + i], how->window[i], how->stride[i], &how->padding[2 * i]))
      return false;
  }
  if (winners == NULL) return true;
  uint64_t most = winners->type == HELIO_UINT8 ? 256 : (uint64_t)INT32_MAX + 1;
  return call_same_shape(y, winners) && (uint64_t)how->window[0] * how->window[1] <= most;
}

static pool_shape shape_of(const helio_call *call, const helio_argument *x, const helio_argument *y,
                           const helio_pool_attributes *how) {
  pool_shape shape = {.images = x->extent[0],
                      .height = x->extent[1],
                      .width = x->extent[2],
                      .channels = x->extent[3],
                      .out_height = y->extent[1],
                      .out_width = y->extent[2],
                      .operation = call->operation};
  for (int i = 0; i < 2; i++) {
    shape.window[i] = how->window[i];
    shape.stride[i] = how->stride[i];
    shape.before[i] = how->padding[2 * i];
  }
  return shape;
}

/* `name` is that of the kernel; with winners their type follows. */
static helio_status plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer,
                              const helio_argument *x, const helio_argument *y, const helio_argument *winners,
                              const char *name) {
  const helio_host *host = device->host;
  helio_pool_attributes attributes;
  helio_status status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  if (!shapes_fit(x, y, winners, &attributes))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "pooling: the shapes do not fit each other and the windows");
  pool_plan *plan = (pool_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->shape = shape_of(call, x, y, &attributes);
  plan->winners = winners != NULL;
  plan->count = call_element_count(call_output(call));
  char kernel[32];
  snprintf(kernel, sizeof kernel, "%s%s", name, winners == NULL ? "" : winners->type == HELIO_UINT8 ? "_u8" : "_i32");
  if (!plan->base.empty) status = gpu_kernel_find(device, "pooling", x->type, kernel, &plan->function);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status max_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  static const call_signature signature = {"T", "Tw", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  return plan_make(device, call, answer, call_input(call, 0), call_output(call), call_output_at(call, 1), "max_pool");
}

static helio_status max_grad_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  static const call_signature signature = {"TW", "T", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  return plan_make(device, call, answer, call_output(call), call_input(call, 0), call_input(call, 1), "max_pool_grad");
}

static helio_status average_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  static const call_signature signature = {"T", "T", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *given = call_input(call, 0), *wanted = call_output(call);
  if (call->operation == HELIO_OP_AVERAGE_POOL)
    return plan_make(device, call, answer, given, wanted, NULL, "average_pool");
  return plan_make(device, call, answer, wanted, given, NULL, "average_pool_grad");
}

/* max_pool and both kinds of averages: y, the winners if wanted, x. */
static helio_status forward_run(helio_plan *base, const helio_run *run) {
  pool_plan *plan = (pool_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address from = gpu_run_address(run, 0), to = gpu_run_address(run, 1);
  gpu_address winners = plan->winners ? gpu_run_address(run, 2) : 0;
  void *with_winners[] = {&to, &winners, &from, &plan->shape}, *without[] = {&to, &from, &plan->shape};
  return gpu_launch(base, run, plan->function, gpu_grid_over(base->device, plan->count),
                    plan->winners ? with_winners : without);
}

static helio_status max_grad_run(helio_plan *base, const helio_run *run) {
  pool_plan *plan = (pool_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address dy = gpu_run_address(run, 0), winners = gpu_run_address(run, 1), dx = gpu_run_address(run, 2);
  gpu_address word = gpu_run_status(run);
  void *arguments[] = {&dx, &dy, &winners, &word, &plan->shape};
  return gpu_launch(base, run, plan->function, gpu_grid_over(base->device, plan->count), arguments);
}

#define POOL_KERNEL(name, NAME, plan_function, run_function)                                                           \
  const helio_kernel gpu_kernel_##name = {                                                                             \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##NAME,                                                                                    \
      .types = CALL_FLOAT_TYPES,                                                                                       \
      .plan = plan_function,                                                                                           \
      .run = run_function,                                                                                             \
      .plan_free = gpu_plan_free,                                                                                      \
  }
POOL_KERNEL(max_pool, MAX_POOL, max_plan, forward_run);
POOL_KERNEL(max_pool_grad, MAX_POOL_GRAD, max_grad_plan, max_grad_run);
POOL_KERNEL(average_pool, AVERAGE_POOL, average_plan, forward_run);
POOL_KERNEL(average_pool_grad, AVERAGE_POOL_GRAD, average_plan, forward_run);
