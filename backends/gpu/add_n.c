/* SPDX-License-Identifier: Apache-2.0 */
/* add_n: the sum of inputs of one shape, added in their order. */
#include "units.h"

/* Inputs of one launch, as in kernels/add_n.cu. */
#define INPUTS 16

/* struct portion of kernels/add_n.cu. */
typedef struct portion {
  int64_t count;
  int32_t inputs, wide, continued, unfinished;
} portion;

typedef struct add_n_plan {
  helio_plan base;
  vendor_function *function;
  size_t pack, pack_bytes;
  uint32_t inputs;
  int64_t count;
} add_n_plan;

/* What a sum is computed in while it is not finished. */
static size_t sum_element(uint32_t type) {
  return type == HELIO_FLOAT16 || type == HELIO_BFLOAT16 ? sizeof(float) : call_type_size(type);
}

static helio_status add_n_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T*", "T", CALL_ARITHMETIC_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *y = call_output(call);
  for (uint32_t i = 0; i < call->input_count; i++) {
    if (!call_same_shape(call_input(call, i), y))
      return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "input %u does not have the output's shape", i);
  }
  add_n_plan *plan = (add_n_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  size_t element = call_type_size(y->type);
  plan->pack = gpu_pack(element);
  plan->pack_bytes = plan->pack * element;
  plan->inputs = call->input_count;
  plan->count = (int64_t)call_element_count(y);
  size_t workspace = plan->inputs > INPUTS ? (size_t)plan->count * sum_element(y->type) : 0;
  status = plan->base.empty ? HELIO_OK : gpu_kernel_find(device, "add_n", y->type, "add_n", &plan->function);
  return gpu_plan_finish(&plan->base, status, workspace, answer);
}

/* Adds the inputs from number `first` on that fit a launch. */
static helio_status add_some(add_n_plan *plan, const helio_run *run, uint32_t first) {
  uint32_t left = plan->inputs - first;
  gpu_address y = gpu_run_address(run, plan->inputs), sum = gpu_run_workspace(run), x[INPUTS] = {0}, all = y;
  portion of = {.count = plan->count,
                .inputs = left < INPUTS ? (int32_t)left : INPUTS,
                .continued = first > 0,
                .unfinished = left > INPUTS};
  void *arguments[3 + INPUTS] = {&y, &sum, &of};
  for (int32_t i = 0; i < INPUTS; i++) {
    if (i < of.inputs) x[i] = gpu_run_address(run, first + (uint32_t)i);
    all |= x[i];
    arguments[3 + i] = &x[i];
  }
  of.wide = gpu_is_aligned(all, plan->pack_bytes);
  gpu_grid grid = gpu_grid_over(plan->base.device, (size_t)plan->count / (of.wide ? plan->pack : 1));
  return gpu_launch(&plan->base, run, plan->function, grid, arguments);
}

static helio_status add_n_run(helio_plan *base, const helio_run *run) {
  add_n_plan *plan = (add_n_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  for (uint32_t first = 0; status == HELIO_OK && first < plan->inputs; first += INPUTS)
    status = add_some(plan, run, first);
  return status;
}

const helio_kernel gpu_kernel_add_n = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_ADD_N,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = add_n_plan_make,
    .run = add_n_run,
    .plan_free = gpu_plan_free,
};
