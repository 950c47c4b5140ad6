/* SPDX-License-Identifier: Apache-2.0 */
/* transpose: any order of the axes. The plan drops axes of extent 1 and joins neighbours that stay together. If the
 * innermost axis stays where it is, runs of it are copied; else the axis that is innermost in y and the one that is
 * innermost in x span planes, which are transposed tile by tile. */
#include "units.h"

#include <stdio.h>

/* Planes that are narrower than this leave most of a tile empty: their elements are copied one by one, and what x is
 * read at is still in the cache when its neighbours are. */
#define NARROW 8

/* Of a tile, as in kernels/movement.cu. */
#define TILE 32

/* An axis of y, in elements. */
typedef struct axis {
  int64_t extent, x_stride, y_stride;
} axis;

/* struct planes of kernels/movement.cu. */
typedef struct planes {
  gpu_axes x, y;
  int64_t across, along;
  int64_t x_stride, y_stride;
  int64_t count;
} planes;

typedef struct transpose_plan {
  helio_plan base;
  gpu_movers movers;
  bool copy; /* as `walk` says; else planes */
  gpu_walk walk;
  planes shape;
  unsigned element; /* its size's logarithm */
} transpose_plan;

static bool permutation_fits(const helio_argument *x, const helio_argument *y, const uint32_t *permutation) {
  uint32_t seen = 0;
  if (x->rank != y->rank) return false;
  for (uint32_t i = 0; i < x->rank; i++) {
    if (permutation[i] >= x->rank || (seen >> permutation[i] & 1u) != 0) return false;
    if (y->extent[i] != x->extent[permutation[i]]) return false;
    seen |= 1u << permutation[i];
  }
  return true;
}

/* The output's axes from the innermost; says how many. */
static uint32_t join_axes(axis *joined, const helio_argument *y, const int64_t *stride) {
  int64_t y_stride = 1;
  uint32_t count = 0;
  for (uint32_t i = y->rank; i-- > 0;) {
    if (y->extent[i] == 1) continue;
    if (count > 0 && stride[i] == joined[count - 1].x_stride * joined[count - 1].extent) {
      joined[count - 1].extent *= y->extent[i];
    } else {
      joined[count++] = (axis){y->extent[i], stride[i], y_stride};
    }
    y_stride *= y->extent[i];
  }
  return count;
}

/* False if the axes span no planes that are worth it. */
static bool arrange_planes(planes *shape, const axis *joined, uint32_t count) {
  if (count < 2 || joined[0].x_stride == 1) return false;
  shape->across = joined[0].extent;
  shape->x_stride = joined[0].x_stride;
  shape->count = 1;
  for (uint32_t i = count; i-- > 1;) {
    if (joined[i].x_stride == 1) {
      shape->along = joined[i].extent;
      shape->y_stride = joined[i].y_stride;
      continue;
    }
    shape->x.extent[shape->x.rank] = shape->y.extent[shape->y.rank] = joined[i].extent;
    shape->x.stride[shape->x.rank++] = joined[i].x_stride;
    shape->y.stride[shape->y.rank++] = joined[i].y_stride;
    shape->count *= joined[i].extent;
  }
  return shape->along >= NARROW && shape->across >= NARROW;
}

static helio_status arrange(transpose_plan *plan, const helio_call *call, const uint32_t *permutation) {
  const helio_argument *x = call_input(call, 0), *y = call_output(call);
  size_t element = call_type_size(x->type);
  int64_t x_stride[HELIO_MAX_RANK], stride[HELIO_MAX_RANK];
  axis joined[HELIO_MAX_RANK];
  gpu_strides(x, x_stride);
  for (uint32_t i = 0; i < y->rank; i++) stride[i] = x_stride[permutation[i]];
  plan->copy = !arrange_planes(&plan->shape, joined, join_axes(joined, y, stride));
  while ((size_t)1 << plan->element < element) plan->element++;
  gpu_walk_make(&plan->walk, y->rank, y->extent, stride, element);
  if (plan->copy) return gpu_movers_find(plan->base.device, "movement", "copy", element, 16, &plan->movers);
  return gpu_movers_find(plan->base.device, "movement", "transpose", element, element, &plan->movers);
}

static helio_status transpose_plan_make(helio_backend_device *device, const helio_call *call,
                                        helio_plan_answer *answer) {
  const call_signature signature = {"T", "T", CALL_ALL_TYPES};
  helio_transpose_attributes attributes;
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  if (!permutation_fits(call_input(call, 0), call_output(call), attributes.permutation))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "TRANSPOSE: the output is not the input permuted");
  transpose_plan *plan = (transpose_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  if (!plan->base.empty) status = arrange(plan, call, attributes.permutation);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

/* A block for each tile. */
static helio_status transpose_planes(const helio_plan *plan, const helio_run *run, vendor_function *function,
                                     gpu_address y, gpu_address x, planes shape) {
  int64_t tiles = (shape.across + TILE - 1) / TILE * ((shape.along + TILE - 1) / TILE) * shape.count;
  void *arguments[] = {&y, &x, &shape};
  return gpu_launch(plan, run, function, gpu_grid_over(plan->device, (size_t)tiles * GPU_BLOCK), arguments);
}

helio_status gpu_transpose_find(helio_backend_device *device, size_t element, vendor_function **function) {
  char name[32];
  snprintf(name, sizeof name, "transpose_%zu", element);
  return gpu_kernel_find(device, "movement", 0, name, function);
}

helio_status gpu_transpose_run(const helio_plan *plan, const helio_run *run, vendor_function *function, gpu_address y,
                               gpu_address x, int64_t rows, int64_t columns) {
  planes shape = {.across = rows, .along = columns, .x_stride = columns, .y_stride = rows, .count = 1};
  return transpose_planes(plan, run, function, y, x, shape);
}

static helio_status transpose_run(helio_plan *base, const helio_run *run) {
  transpose_plan *plan = (transpose_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), y = gpu_run_address(run, 1);
  if (!plan->copy) return transpose_planes(base, run, plan->movers.function[plan->element], y, x, plan->shape);
  unsigned unit = gpu_unit_of(plan->walk.multiples | x | y);
  gpu_axes axes = gpu_walk_axes(&plan->walk, unit);
  int64_t count = (int64_t)(plan->walk.bytes >> unit);
  void *arguments[] = {&y, &x, &axes, &count};
  return gpu_launch(base, run, plan->movers.function[unit], gpu_grid_over(base->device, (size_t)count), arguments);
}

const helio_kernel gpu_kernel_transpose = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_TRANSPOSE,
    .types = CALL_ALL_TYPES,
    .plan = transpose_plan_make,
    .run = transpose_run,
    .plan_free = gpu_plan_free,
};
