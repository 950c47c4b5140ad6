/* SPDX-License-Identifier: Apache-2.0 */
/* sum, mean, max and min over any set of axes. Neighbouring axes of one kind are joined; what is left are axes that
 * number the results and axes that number the summands of each. */
#include "arrange.h"

#include <stdio.h>

/* `struct reduction` of kernels/reduce.cu. */
typedef struct reduction {
  gpu_axes kept, summed;
  int64_t results, summands;
  int64_t pieces, piece;
  double count;
  int32_t lanes, width;
} reduction;

typedef struct reduce_plan {
  helio_plan base;
  vendor_function *first, *finish; /* finish: NULL if there is one piece */
  gpu_grid grid;
  reduction how;     /* of the first kernel */
  int32_t finishing; /* width of the second */
} reduce_plan;

/* The output has the kept axes in order, with or without ones in place of the others. */
static bool output_fits(const helio_argument *x, const helio_argument *y, uint32_t axes) {
  uint32_t dense = 0;
  bool plain = true, with_ones = y->rank == x->rank;
  for (uint32_t i = 0; i < x->rank; i++) {
    bool summed = (axes >> i & 1u) != 0;
    if (with_ones) with_ones = y->extent[i] == (summed ? 1 : x->extent[i]);
    if (!summed) {
      plain = plain && dense < y->rank && y->extent[dense] == x->extent[i];
      dense++;
    }
  }
  return with_ones || (plain && dense == y->rank);
}

static void put_axis(gpu_axes *axes, int64_t extent, int64_t stride) {
  axes->extent[axes->rank] = extent;
  axes->stride[axes->rank++] = stride;
}

/* Joined axes, outermost first. */
static void arrange_axes(reduction *how, const helio_argument *x, uint32_t summed) {
  gpu_axes *last = NULL;
  int64_t stride = (int64_t)call_element_count(x);
  how->results = how->summands = 1;
  for (uint32_t i = 0; i < x->rank; i++) {
    bool is_summed = (summed >> i & 1u) != 0;
    gpu_axes *axes = is_summed ? &how->summed : &how->kept;
    int64_t extent = x->extent[i];
    *(is_summed ? &how->summands : &how->results) *= extent;
    if (extent == 1) continue;
    stride = extent == 0 ? 0 : stride / extent;
    if (axes == last) {
      axes->extent[axes->rank - 1] *= extent;
      axes->stride[axes->rank - 1] = stride;
    } else {
      put_axis(axes, extent, stride);
    }
    last = axes;
  }
}

/* Is the innermost axis a summed one? Without any, each result is a row of one. */
static bool by_rows(const reduction *how) {
  const gpu_axes *kept = &how->kept, *summed = &how->summed;
  if (kept->rank == 0 || summed->rank == 0) return kept->rank == 0;
  return summed->stride[summed->rank - 1] < kept->stride[kept->rank - 1];
}

static void arrange(reduce_plan *plan, bool rows) {
  reduction *how = &plan->how;
  const helio_backend_device *device = plan->base.device;
  size_t results = (size_t)how->results, summands = (size_t)how->summands, groups;
  how->lanes = gpu_team_lanes(summands);
  how->width = gpu_strip_width(results, summands);
  groups = gpu_strip_groups(results, rows ? GPU_BLOCK / how->lanes : how->width);
  gpu_pieces pieces = gpu_pieces_of(summands, rows ? how->lanes : GPU_BLOCK / how->width, groups);
  how->pieces = pieces.count;
  how->piece = pieces.length;
  plan->finishing = gpu_strip_width(results, (size_t)pieces.count);
  plan->grid = rows ? gpu_grid_teams(device, results * (size_t)pieces.count, how->lanes)
                    : gpu_grid_units(device, groups * (size_t)pieces.count);
}

static helio_status find_kernels(reduce_plan *plan, uint32_t type, bool rows) {
  uint32_t operation = plan->base.operation;
  const char *name = operation == HELIO_OP_MAX ? "max" : operation == HELIO_OP_MIN ? "min" : "sum";
  char text[32];
  snprintf(text, sizeof text, "%s_%s", name, rows ? "rows" : "columns");
  helio_status status = gpu_kernel_find(plan->base.device, "reduce", type, text, &plan->first);
  if (status != HELIO_OK || plan->how.pieces == 1) return status;
  snprintf(text, sizeof text, "%s_finish", name);
  return gpu_kernel_find(plan->base.device, "reduce", type, text, &plan->finish);
}

/* Of a total: float64 or int64 for sums, extremes are kept in what elements are computed with. */
static size_t total_bytes(uint32_t operation, uint32_t type) {
  if (operation != HELIO_OP_MAX && operation != HELIO_OP_MIN) return sizeof(double);
  return type == HELIO_FLOAT64 || type == HELIO_INT64 ? 8 : 4;
}

static helio_status reduce_plan_new(helio_backend_device *device, const helio_call *call, uint32_t axes,
                                    helio_plan_answer *answer) {
  const helio_argument *x = call_input(call, 0);
  reduce_plan *plan = (reduce_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  arrange_axes(&plan->how, x, axes);
  bool rows = by_rows(&plan->how);
  plan->how.count = call->operation == HELIO_OP_MEAN ? (double)plan->how.summands : -1;
  arrange(plan, rows);
  helio_status status = plan->base.empty ? HELIO_OK : find_kernels(plan, x->type, rows);
  size_t totals = plan->how.pieces > 1 ? (size_t)(plan->how.pieces * plan->how.results) : 0;
  return gpu_plan_finish(&plan->base, status, totals * total_bytes(call->operation, x->type), answer);
}

static helio_status reduce_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"T", "T",
                                    call->operation == HELIO_OP_MEAN ? CALL_FLOAT_TYPES : CALL_ARITHMETIC_TYPES};
  helio_reduce_attributes attributes;
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0);
  if (attributes.reserved != 0) return host->fail(host, HELIO_NOT_SUPPORTED, "a reserved attribute is set");
  if (attributes.axes >> x->rank != 0 || !output_fits(x, call_output(call), attributes.axes))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "the output is not the input without the summed axes");
  return reduce_plan_new(device, call, attributes.axes, answer);
}

static helio_status reduce_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  reduce_plan *plan = (reduce_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), y = gpu_run_address(run, 1), parts = gpu_run_workspace(run);
  void *arguments[] = {&x, &y, &parts, &plan->how};
  status = gpu_launch(base, run, plan->first, plan->grid, arguments);
  if (status != HELIO_OK || plan->finish == NULL) return status;
  reduction how = plan->how;
  how.width = plan->finishing;
  void *finish_arguments[] = {&y, &parts, &how};
  gpu_grid grid = gpu_grid_units(base->device, gpu_strip_groups((size_t)how.results, how.width));
  return gpu_launch(base, run, plan->finish, grid, finish_arguments);
}

#define REDUCE_LIST(X)                                                                                                 \
  X(sum, SUM, CALL_ARITHMETIC_TYPES)                                                                                   \
  X(mean, MEAN, CALL_FLOAT_TYPES)                                                                                      \
  X(max, MAX, CALL_ARITHMETIC_TYPES)                                                                                   \
  X(min, MIN, CALL_ARITHMETIC_TYPES)

#define REDUCE_KERNEL(lower, upper, of_types)                                                                          \
  const helio_kernel gpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = of_types,                                                                                               \
      .plan = reduce_plan_make,                                                                                        \
      .run = reduce_run,                                                                                               \
      .plan_free = gpu_plan_free,                                                                                      \
  };
REDUCE_LIST(REDUCE_KERNEL)
#undef REDUCE_KERNEL
