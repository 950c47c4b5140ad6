/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of two tensors of one shape. */
#include "gpu.h"

typedef struct add_plan {
  helio_plan base;
  vendor_function *function;
  int64_t count;
} add_plan;

static helio_status add_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  static const call_signature signature = {"TT", "T", CALL_ARITHMETIC_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *output = call_output(call);
  if (!call_same_shape(call_input(call, 0), output) || !call_same_shape(call_input(call, 1), output))
    return device->host->fail(device->host, HELIO_NOT_SUPPORTED, "ADD with broadcast has no kernel on %s",
                              vendor.title);
  add_plan *plan = (add_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->count = (int64_t)call_element_count(output);
  status = gpu_kernel_find(device, "add", output->type, "add", &plan->function);
  if (status != HELIO_OK) {
    gpu_plan_free(&plan->base);
    return status;
  }
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

static helio_status add_run(helio_plan *base, const helio_run *run) {
  add_plan *plan = (add_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address a = gpu_run_address(run, 0), b = gpu_run_address(run, 1), c = gpu_run_address(run, 2);
  void *arguments[] = {&c, &a, &b, &plan->count};
  return gpu_launch(base, run, plan->function, gpu_grid_over(base->device, (size_t)plan->count), arguments);
}

const helio_kernel gpu_kernel_add = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_ADD,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = add_plan_make,
    .run = add_run,
    .plan_free = gpu_plan_free,
};
