/* SPDX-License-Identifier: Apache-2.0 */
/* slice and concat: elements move, whatever they are. Both are copies of blocks. */
#include "block.h"

typedef struct slice_plan {
  helio_plan base;
  cpu_block block;
} slice_plan;

typedef struct movement_work {
  const helio_plan *plan;
  const helio_run *run;
} movement_work;

static helio_status slice_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T", "T", CALL_ALL_TYPES};
  helio_slice_attributes attributes;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *y = call_output(call);
  bool fits = x->rank == y->rank;
  for (uint32_t i = 0; fits && i < x->rank; i++)
    fits = attributes.begin[i] >= 0 && attributes.begin[i] <= x->extent[i] - y->extent[i];
  if (!fits) return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "SLICE: it reaches outside its input");
  slice_plan *plan = (slice_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  cpu_block_make(&plan->block, x->rank, y->extent, attributes.begin, x->extent, call_type_size(x->type));
  plan->base.empty = plan->block.bytes == 0;
  plan->base.parts = cpu_parts_for_bytes(device, plan->block.bytes * 2);
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

static void slice_part(void *argument, unsigned part, unsigned parts) {
  const movement_work *work = argument;
  cpu_block_copy(&((const slice_plan *)work->plan)->block, cpu_run_address(work->run, 1), cpu_run_address(work->run, 0),
                 true, part, parts);
}

static helio_status slice_run(helio_plan *plan, const helio_run *run) {
  helio_status status = cpu_run_check(plan, run);
  if (status != HELIO_OK || plan->empty) return status;
  movement_work work = {plan, run};
  cpu_plan_execute(plan, slice_part, &work);
  return HELIO_OK;
}

typedef struct concat_plan {
  helio_plan base;
  uint32_t inputs;
  cpu_block block[]; /* where each input goes */
} concat_plan;

static helio_status concat_check(helio_backend_device *device, const helio_call *call,
                                 const helio_axis_attributes *attributes) {
  const helio_host *host = device->host;
  const helio_argument *y = call_output(call);
  int64_t along = 0;
  if (attributes->reserved != 0) return host->fail(host, HELIO_NOT_SUPPORTED, "CONCAT: a reserved attribute is set");
  bool fits = attributes->axis < y->rank;
  for (uint32_t i = 0; fits && i < call->input_count; i++) {
    const helio_argument *x = call_input(call, i);
    fits = x->rank == y->rank;
    for (uint32_t axis = 0; fits && axis < y->rank; axis++)
      fits = axis == attributes->axis || x->extent[axis] == y->extent[axis];
    if (fits) along += x->extent[attributes->axis];
  }
  if (!fits || along != y->extent[attributes->axis])
    return host->fail(host, HELIO_INVALID_ARGUMENT, "CONCAT: the inputs do not make up the output");
  return HELIO_OK;
}

static helio_status concat_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T*", "T", CALL_ALL_TYPES};
  helio_axis_attributes attributes;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status == HELIO_OK) status = concat_check(device, call, &attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *y = call_output(call);
  concat_plan *plan = (concat_plan *)cpu_plan_new(device, sizeof *plan + call->input_count * sizeof plan->block[0]);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->inputs = call->input_count;
  int64_t begin[HELIO_MAX_RANK] = {0};
  for (uint32_t i = 0; i < plan->inputs; i++) {
    const helio_argument *x = call_input(call, i);
    cpu_block_make(&plan->block[i], y->rank, x->extent, begin, y->extent, call_type_size(y->type));
    begin[attributes.axis] += x->extent[attributes.axis];
  }
  size_t bytes = call_element_count(y) * call_type_size(y->type);
  plan->base.empty = bytes == 0;
  plan->base.parts = cpu_parts_for_bytes(device, bytes * 2);
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

/* Each part copies its share of every input: inputs may be of very different sizes. */
static void concat_part(void *argument, unsigned part, unsigned parts) {
  const movement_work *work = argument;
  const concat_plan *plan = (const concat_plan *)work->plan;
  unsigned char *y = cpu_run_address(work->run, plan->inputs);
  for (uint32_t i = 0; i < plan->inputs; i++) {
    if (plan->block[i].bytes > 0) cpu_block_copy(&plan->block[i], y, cpu_run_address(work->run, i), false, part, parts);
  }
}

static helio_status concat_run(helio_plan *plan, const helio_run *run) {
  helio_status status = cpu_run_check(plan, run);
  if (status != HELIO_OK || plan->empty) return status;
  movement_work work = {plan, run};
  cpu_plan_execute(plan, concat_part, &work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_slice = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_SLICE,
    .types = CALL_ALL_TYPES,
    .plan = slice_plan_make,
    .run = slice_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_concat = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_CONCAT,
    .types = CALL_ALL_TYPES,
    .plan = concat_plan_make,
    .run = concat_run,
    .plan_free = cpu_plan_free,
};
