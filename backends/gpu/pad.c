/* SPDX-License-Identifier: Apache-2.0 */
/* pad: the input inside a border of one value. */
#include "units.h"

/* struct border of kernels/pad.cu: axes from the innermost. Here the innermost is in bytes, in a launch in units. */
typedef struct border {
  int64_t before[HELIO_MAX_RANK], inside[HELIO_MAX_RANK], whole[HELIO_MAX_RANK];
  int32_t rank, type;
} border;

typedef struct pad_plan {
  helio_plan base;
  gpu_movers pad;
  border shape;
  uint64_t bytes; /* of the output */
} pad_plan;

/* An axis without border is taken into the next one: at least the axis of an element's bytes is. */
static void join_axes(border *shape, const helio_argument *x, const helio_argument *y, const int64_t *begin) {
  int32_t last = 0;
  shape->inside[0] = shape->whole[0] = (int64_t)call_type_size(x->type);
  for (uint32_t i = x->rank; i-- > 0;) {
    int64_t whole = shape->whole[last];
    if (shape->inside[last] == whole) {
      shape->before[last] = begin[i] * whole;
      shape->inside[last] = x->extent[i] * whole;
      shape->whole[last] = y->extent[i] * whole;
    } else if (y->extent[i] != 1 || x->extent[i] != 1) {
      last++;
      shape->before[last] = begin[i];
      shape->inside[last] = x->extent[i];
      shape->whole[last] = y->extent[i];
    }
  }
  shape->rank = last + 1;
  shape->type = (int32_t)x->type;
}

static helio_status pad_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T", "T", CALL_ALL_TYPES};
  helio_slice_attributes attributes;
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *y = call_output(call);
  bool fits = x->rank == y->rank;
  for (uint32_t i = 0; fits && i < x->rank; i++)
    fits = attributes.begin[i] >= 0 && attributes.begin[i] <= y->extent[i] - x->extent[i];
  if (!fits) return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "PAD: the input reaches outside");
  pad_plan *plan = (pad_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  if (!plan->base.empty) {
    size_t element = call_type_size(x->type);
    join_axes(&plan->shape, x, y, attributes.begin);
    plan->bytes = call_element_count(y) * element;
    status = gpu_movers_find(device, "pad", "pad", element, 16, &plan->pad);
  }
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status pad_run(helio_plan *base, const helio_run *run) {
  pad_plan *plan = (pad_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), y = gpu_run_address(run, 1);
  border shape = plan->shape;
  unsigned unit = gpu_unit_of((uint64_t)(shape.before[0] | shape.inside[0] | shape.whole[0]) | x | y);
  shape.before[0] >>= unit;
  shape.inside[0] >>= unit;
  shape.whole[0] >>= unit;
  int64_t count = (int64_t)(plan->bytes >> unit);
  double value = run_real(run, 0);
  void *arguments[] = {&y, &x, &shape, &count, &value};
  return gpu_launch(base, run, plan->pad.function[unit], gpu_grid_over(base->device, (size_t)count), arguments);
}

const helio_kernel gpu_kernel_pad = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_PAD,
    .types = CALL_ALL_TYPES,
    .plan = pad_plan_make,
    .run = pad_run,
    .plan_free = gpu_plan_free,
};
