/* SPDX-License-Identifier: Apache-2.0 */
/* cast: between all types. */
#include "units.h"

#include <stdio.h>

typedef struct cast_plan {
  helio_plan base;
  vendor_function *function;
  size_t pack, from_bytes, to_bytes; /* bytes of a pack of either type */
  int64_t count;
} cast_plan;

static helio_status cast_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T", "?", CALL_ALL_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *y = call_output(call);
  if (!call_same_shape(x, y))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "CAST: input and output differ in shape");
  cast_plan *plan = (cast_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  size_t from = call_type_size(x->type), to = call_type_size(y->type);
  plan->pack = gpu_pack(from > to ? from : to);
  plan->from_bytes = from * plan->pack;
  plan->to_bytes = to * plan->pack;
  plan->count = (int64_t)call_element_count(y);
  char kernel[32];
  snprintf(kernel, sizeof kernel, "to_%s", call_type_name(y->type));
  status = plan->base.empty ? HELIO_OK : gpu_kernel_find(device, "cast", x->type, kernel, &plan->function);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status cast_run(helio_plan *base, const helio_run *run) {
  cast_plan *plan = (cast_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), y = gpu_run_address(run, 1);
  int32_t wide = gpu_is_aligned(x, plan->from_bytes) && gpu_is_aligned(y, plan->to_bytes);
  void *arguments[] = {&y, &x, &plan->count, &wide};
  gpu_grid grid = gpu_grid_over(base->device, (size_t)plan->count / (wide ? plan->pack : 1));
  return gpu_launch(base, run, plan->function, grid, arguments);
}

const helio_kernel gpu_kernel_cast = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_CAST,
    .types = CALL_ALL_TYPES,
    .plan = cast_plan_make,
    .run = cast_run,
    .plan_free = gpu_plan_free,
};
