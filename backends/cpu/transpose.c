/* SPDX-License-Identifier: Apache-2.0 */
/* transpose: any order of the axes. The plan drops axes of extent 1 and joins neighbours that stay together. If the
 * innermost axis stays where it is, rows are copied; else the axis that is innermost in y and the one that is innermost
 * in x span planes, which are transposed block by block. */
#include "block.h"

/* Elements of a block, about: few enough that both sides stay in the first caches. */
#define BLOCK ((size_t)8 << 10)

typedef struct axis {
  size_t extent, x_stride, y_stride; /* in elements */
} axis;

typedef struct transpose_plan {
  helio_plan base;
  size_t element;
  bool copy; /* rows are copied, as `block` says */
  cpu_block block;
  axis across, along;          /* innermost in y; innermost in x */
  size_t columns, rows;        /* of a block: along `across`, along `along` */
  size_t column_blocks, units; /* of a plane across; of all planes in all */
  uint32_t axes;               /* the others, from the innermost */
  axis axis[HELIO_MAX_RANK];
} transpose_plan;

typedef struct transpose_work {
  const transpose_plan *plan;
  const unsigned char *x;
  unsigned char *y;
} transpose_work;

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
static uint32_t join_axes(axis *joined, const helio_argument *x, const uint32_t *permutation) {
  size_t x_stride[HELIO_MAX_RANK], step = 1, y_stride = 1;
  uint32_t count = 0;
  for (uint32_t i = x->rank; i-- > 0;) {
    x_stride[i] = step;
    step *= (size_t)x->extent[i];
  }
  for (uint32_t i = x->rank; i-- > 0;) {
    size_t extent = (size_t)x->extent[permutation[i]], stride = x_stride[permutation[i]];
    if (extent == 1) continue;
    if (count > 0 && stride == joined[count - 1].x_stride * joined[count - 1].extent) {
      joined[count - 1].extent *= extent;
    } else {
      joined[count++] = (axis){extent, stride, y_stride};
    }
    y_stride *= extent;
  }
  return count;
}

static void arrange_copy(transpose_plan *plan, const axis *joined, uint32_t count, size_t elements) {
  plan->copy = true;
  plan->block.row = plan->element * (count > 0 ? joined[0].extent : 1);
  plan->block.bytes = elements * plan->element;
  for (uint32_t i = 1; i < count; i++) {
    plan->block.extent[i - 1] = joined[i].extent;
    plan->block.stride[i - 1] = joined[i].x_stride * plan->element;
    plan->block.axes = i;
  }
}

/* A block is some cache lines of x high, and so wide that it has its share of elements; higher if it cannot be. */
static void arrange_planes(transpose_plan *plan, const axis *joined, uint32_t count) {
  size_t line = CPU_ALIGNMENT / plan->element, planes = 1;
  plan->across = joined[0];
  for (uint32_t i = 1; i < count; i++) {
    if (joined[i].x_stride == 1) {
      plan->along = joined[i];
    } else {
      plan->axis[plan->axes++] = joined[i];
      planes *= joined[i].extent;
    }
  }
  plan->columns = plan->across.extent < BLOCK / line ? plan->across.extent : BLOCK / line;
  plan->rows = (BLOCK / plan->columns + line - 1) / line * line;
  if (plan->rows > plan->along.extent) {
    plan->rows = plan->along.extent;
    plan->columns = (BLOCK / plan->rows + line - 1) / line * line;
    if (plan->columns > plan->across.extent) plan->columns = plan->across.extent;
  }
  plan->column_blocks = (plan->across.extent + plan->columns - 1) / plan->columns;
  plan->units = planes * plan->column_blocks * ((plan->along.extent + plan->rows - 1) / plan->rows);
}

static helio_status transpose_plan_make(helio_backend_device *device, const helio_call *call,
                                        helio_plan_answer *answer) {
  const call_signature signature = {"T", "T", CALL_ALL_TYPES};
  helio_transpose_attributes attributes;
  axis joined[HELIO_MAX_RANK];
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *y = call_output(call);
  if (!permutation_fits(x, y, attributes.permutation))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "TRANSPOSE: the output is not the input permuted");
  transpose_plan *plan = (transpose_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  size_t elements = call_element_count(x);
  plan->element = call_type_size(x->type);
  plan->base.empty = elements == 0;
  plan->base.parts = cpu_parts_for_bytes(device, elements * plan->element * 2);
  if (!plan->base.empty) {
    uint32_t count = join_axes(joined, x, attributes.permutation);
    if (count == 0 || joined[0].x_stride == 1) {
      arrange_copy(plan, joined, count, elements);
    } else {
      arrange_planes(plan, joined, count);
    }
  }
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

static void transpose_unit(const transpose_work *work, size_t unit) {
  const transpose_plan *plan = work->plan;
  size_t row_blocks = (plan->along.extent + plan->rows - 1) / plan->rows;
  size_t column = unit % plan->column_blocks * plan->columns;
  size_t row = unit / plan->column_blocks % row_blocks * plan->rows;
  size_t plane = unit / plan->column_blocks / row_blocks;
  size_t rows = plan->along.extent - row < plan->rows ? plan->along.extent - row : plan->rows;
  size_t columns = plan->across.extent - column < plan->columns ? plan->across.extent - column : plan->columns;
  size_t x = column * plan->across.x_stride + row, y = row * plan->along.y_stride + column;
  for (uint32_t i = 0; i < plan->axes; i++) {
    size_t at = plane % plan->axis[i].extent;
    plane /= plan->axis[i].extent;
    x += at * plan->axis[i].x_stride;
    y += at * plan->axis[i].y_stride;
  }
  plan->base.device->vector->transpose(plan->element, work->y + y * plan->element, plan->along.y_stride,
                                       work->x + x * plan->element, plan->across.x_stride, rows, columns);
}

static void transpose_part(void *argument, unsigned part, unsigned parts) {
  const transpose_work *work = argument;
  if (work->plan->copy) {
    cpu_block_copy(&work->plan->block, work->y, work->x, true, part, parts);
    return;
  }
  cpu_range range = cpu_part_range(work->plan->units, 1, part, parts);
  for (size_t unit = range.begin; unit < range.end; unit++) transpose_unit(work, unit);
}

static helio_status transpose_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  transpose_work work = {(const transpose_plan *)base, cpu_run_address(run, 0), cpu_run_address(run, 1)};
  cpu_plan_execute(base, transpose_part, &work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_transpose = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_TRANSPOSE,
    .types = CALL_ALL_TYPES,
    .plan = transpose_plan_make,
    .run = transpose_run,
    .plan_free = cpu_plan_free,
};
