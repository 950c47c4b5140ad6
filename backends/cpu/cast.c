/* SPDX-License-Identifier: Apache-2.0 */
/* cast: between all types. */
#include "cpu.h"

typedef struct cast_plan {
  helio_plan base;
  helio_type from, to;
  size_t count;
} cast_plan;

typedef struct cast_work {
  const cast_plan *plan;
  unsigned char *y;
  const unsigned char *x;
} cast_work;

static helio_status plan_cast(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T", "?", CALL_ALL_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *y = call_output(call);
  if (!call_same_shape(x, y))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "CAST: input and output differ in shape");
  cast_plan *plan = (cast_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->from = (helio_type)x->type;
  plan->to = (helio_type)y->type;
  plan->count = call_element_count(y);
  plan->base.empty = plan->count == 0;
  plan->base.parts = cpu_parts_for_bytes(device, plan->count * (call_type_size(x->type) + call_type_size(y->type)));
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

static void cast_part(void *argument, unsigned part, unsigned parts) {
  const cast_work *work = argument;
  const cast_plan *plan = work->plan;
  cpu_range range = cpu_part_range(plan->count, 64, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_EXACT);
  plan->base.device->vector->cast(plan->to, plan->from, work->y + range.begin * call_type_size(plan->to),
                                  work->x + range.begin * call_type_size(plan->from), range.end - range.begin);
  cpu_float_end(CPU_FLOAT_EXACT, saved);
}

static helio_status run_cast(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  cast_work work = {(const cast_plan *)base, cpu_run_address(run, 1), cpu_run_address(run, 0)};
  cpu_plan_execute(base, cast_part, &work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_cast = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_CAST,
    .types = CALL_ALL_TYPES,
    .plan = plan_cast,
    .run = run_cast,
    .plan_free = cpu_plan_free,
};
