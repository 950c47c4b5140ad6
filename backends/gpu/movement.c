/* SPDX-License-Identifier: Apache-2.0 */
/* slice and concat: elements move, whatever they are. */
#include "units.h"

typedef struct slice_plan {
  helio_plan base;
  gpu_movers copy;
  gpu_walk walk;   /* through x */
  uint64_t offset; /* bytes of x before the first that is taken */
} slice_plan;

static helio_status slice_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T", "T", CALL_ALL_TYPES};
  helio_slice_attributes attributes;
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *y = call_output(call);
  bool fits = x->rank == y->rank;
  for (uint32_t i = 0; fits && i < x->rank; i++)
    fits = attributes.begin[i] >= 0 && attributes.begin[i] <= x->extent[i] - y->extent[i];
  if (!fits) return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "SLICE: it reaches outside its input");
  slice_plan *plan = (slice_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  if (!plan->base.empty) {
    size_t element = call_type_size(x->type);
    int64_t stride[HELIO_MAX_RANK];
    gpu_strides(x, stride);
    gpu_walk_make(&plan->walk, y->rank, y->extent, stride, element);
    for (uint32_t i = 0; i < x->rank; i++) plan->offset += (uint64_t)(attributes.begin[i] * stride[i]) * element;
    status = gpu_movers_find(device, "movement", "copy", element, 16, &plan->copy);
  }
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status slice_run(helio_plan *base, const helio_run *run) {
  slice_plan *plan = (slice_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0) + plan->offset, y = gpu_run_address(run, 1);
  unsigned unit = gpu_unit_of(plan->walk.multiples | x | y);
  gpu_axes axes = gpu_walk_axes(&plan->walk, unit);
  int64_t count = (int64_t)(plan->walk.bytes >> unit);
  void *arguments[] = {&y, &x, &axes, &count};
  return gpu_launch(base, run, plan->copy.function[unit], gpu_grid_over(base->device, (size_t)count), arguments);
}

/* Inputs of one launch, as in kernels/concat.cu. */
#define INPUTS 8

/* struct joint of kernels/concat.cu. */
typedef struct joint {
  int64_t end[INPUTS];
  int64_t rows, pitch;
} joint;

/* Rows of bytes side by side: one row of y is one of each input. */
typedef struct concat_plan {
  helio_plan base;
  gpu_movers concat;
  int64_t rows;
  uint64_t pitch;     /* bytes of a row of y */
  uint64_t multiples; /* for gpu_unit_of() */
  uint32_t inputs;
  uint64_t row[]; /* bytes of each input's */
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

static void arrange_rows(concat_plan *plan, const helio_call *call, uint32_t axis) {
  const helio_argument *y = call_output(call);
  uint64_t step = call_type_size(y->type);
  plan->rows = 1;
  for (uint32_t i = 0; i < axis; i++) plan->rows *= y->extent[i];
  for (uint32_t i = axis + 1; i < y->rank; i++) step *= (uint64_t)y->extent[i];
  plan->pitch = step * (uint64_t)y->extent[axis];
  plan->inputs = call->input_count;
  for (uint32_t i = 0; i < plan->inputs; i++) {
    plan->row[i] = step * (uint64_t)call_input(call, i)->extent[axis];
    plan->multiples |= plan->row[i];
  }
}

static helio_status concat_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T*", "T", CALL_ALL_TYPES};
  helio_axis_attributes attributes;
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status == HELIO_OK) status = concat_check(device, call, &attributes);
  if (status != HELIO_OK) return status;
  concat_plan *plan = (concat_plan *)gpu_plan_new(device, call, sizeof *plan + call->input_count * sizeof plan->row[0]);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  if (!plan->base.empty) {
    arrange_rows(plan, call, attributes.axis);
    status = gpu_movers_find(device, "concat", "concat", call_type_size(call_output(call)->type), 16, &plan->concat);
  }
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

/* Inputs from number `first` on that fit a launch; `y` is where their rows begin. */
static helio_status concat_some(concat_plan *plan, const helio_run *run, gpu_address y, uint32_t first,
                                uint64_t *width) {
  gpu_address x[INPUTS] = {0};
  uint64_t multiples = plan->multiples | y, end = 0;
  joint shape = {.rows = plan->rows};
  void *arguments[2 + INPUTS] = {&y, &shape};
  for (uint32_t i = 0; i < INPUTS; i++) {
    if (first + i < plan->inputs) {
      x[i] = gpu_run_address(run, first + i);
      end += plan->row[first + i];
    }
    multiples |= x[i];
    shape.end[i] = (int64_t)end;
    arguments[2 + i] = &x[i];
  }
  *width = end;
  if (end == 0) return HELIO_OK;
  unsigned unit = gpu_unit_of(multiples);
  for (uint32_t i = 0; i < INPUTS; i++) shape.end[i] >>= unit;
  shape.pitch = (int64_t)(plan->pitch >> unit);
  gpu_grid grid = gpu_grid_over(plan->base.device, (size_t)(shape.end[INPUTS - 1] * shape.rows));
  return gpu_launch(&plan->base, run, plan->concat.function[unit], grid, arguments);
}

static helio_status concat_run(helio_plan *base, const helio_run *run) {
  concat_plan *plan = (concat_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  gpu_address y = gpu_run_address(run, plan->inputs);
  for (uint32_t first = 0; status == HELIO_OK && first < plan->inputs; first += INPUTS) {
    uint64_t width;
    status = concat_some(plan, run, y, first, &width);
    y += width;
  }
  return status;
}

const helio_kernel gpu_kernel_slice = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_SLICE,
    .types = CALL_ALL_TYPES,
    .plan = slice_plan_make,
    .run = slice_run,
    .plan_free = gpu_plan_free,
};

const helio_kernel gpu_kernel_concat = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_CONCAT,
    .types = CALL_ALL_TYPES,
    .plan = concat_plan_make,
    .run = concat_run,
    .plan_free = gpu_plan_free,
};
