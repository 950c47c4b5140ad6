/* SPDX-License-Identifier: Apache-2.0 */
/* sum, mean, max and min over any set of axes; what is said of sums here holds for all four. The plan joins the axes
 * until kept and summed ones alternate; the last of each kind are the inner two, which the vector code walks, the
 * others are outer axes. How a sum is cut into pieces depends on the shape alone, so the result is the same on every
 * team. */
#include "cpu.h"

#include <math.h>
#include <string.h>

/* Results that are formed at a time, at most. */
#define BLOCK 512

/* Elements that make a piece of work, where there are that many. */
#define PIECE ((size_t)64 << 10)

/* A few long sums are not cut into more pieces than this. */
#define ENOUGH 64

typedef struct axis {
  size_t extent, stride;
  bool summed;
} axis;

typedef struct sum_plan {
  helio_plan base;
  helio_operation operation;
  helio_type type, total; /* of the elements, and of the totals */
  size_t element, total_element;
  double summands; /* of one result */
  size_t inputs, outputs;
  bool rows;   /* the innermost axis is summed: each result is the sum of a row */
  size_t kept; /* inner two axes */
  size_t summed;
  size_t block; /* results that are formed at a time */
  uint32_t outer_axes;
  axis outer[HELIO_MAX_RANK]; /* from the innermost */
  size_t outer_kept, outer_summed;
  uint32_t cut; /* the outer axis that is cut into pieces; outer_axes: the inner one is */
  size_t pieces;
} sum_plan;

typedef struct sum_work {
  const sum_plan *plan;
  const unsigned char *x;
  unsigned char *y;
  unsigned char *totals; /* of the pieces; NULL if there is one piece only */
} sum_work;

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

/* Joined axes from the innermost outwards; says how many. */
static uint32_t join_axes(axis *joined, const helio_argument *x, uint32_t axes) {
  uint32_t count = 0;
  size_t stride = 1;
  for (uint32_t i = x->rank; i-- > 0;) {
    bool summed = (axes >> i & 1u) != 0;
    size_t extent = (size_t)x->extent[i];
    if (extent == 1) continue;
    if (count > 0 && joined[count - 1].summed == summed) {
      joined[count - 1].extent *= extent;
    } else {
      joined[count++] = (axis){extent, stride, summed};
    }
    stride *= extent;
  }
  return count;
}

static void arrange(sum_plan *plan, const helio_argument *x, uint32_t axes) {
  axis joined[HELIO_MAX_RANK];
  uint32_t count = join_axes(joined, x, axes);
  plan->rows = count > 0 && joined[0].summed;
  size_t inner = count > 0 ? joined[0].extent : 1, next = count > 1 ? joined[1].extent : 1;
  plan->summed = plan->rows ? inner : next;
  plan->kept = plan->rows ? next : inner;
  plan->outer_kept = plan->outer_summed = 1;
  plan->block = BLOCK;
  if (plan->rows && plan->summed > PIECE / BLOCK) plan->block = plan->summed < PIECE ? PIECE / plan->summed : 1;
  for (uint32_t i = 2; i < count; i++) {
    plan->outer[plan->outer_axes++] = joined[i];
    *(joined[i].summed ? &plan->outer_summed : &plan->outer_kept) *= joined[i].extent;
  }
}

static size_t kept_blocks(const sum_plan *plan) {
  return (plan->kept + plan->block - 1) / plan->block;
}

/* A few long sums are cut along the outermost summed axis. */
static void choose_pieces(sum_plan *plan) {
  plan->cut = plan->outer_axes;
  size_t extent = plan->summed;
  for (uint32_t i = 0; i < plan->outer_axes; i++) {
    if (!plan->outer[i].summed) continue;
    plan->cut = i;
    extent = plan->outer[i].extent;
  }
  size_t units = plan->outer_kept * kept_blocks(plan);
  size_t pieces = units == 0 ? 1 : plan->inputs / PIECE / units;
  if (pieces > ENOUGH) pieces = ENOUGH;
  if (pieces > extent) pieces = extent;
  plan->pieces = pieces < 1 ? 1 : pieces;
}

/* Sums are kept in float64 or int64, extremes in a type that holds the elements. */
static helio_type total_type(uint32_t operation, uint32_t type) {
  bool integer = type == HELIO_INT32 || type == HELIO_INT64;
  bool half = type == HELIO_FLOAT16 || type == HELIO_BFLOAT16;
  if (operation == HELIO_OP_MAX || operation == HELIO_OP_MIN) return half ? HELIO_FLOAT32 : (helio_type)type;
  return integer ? HELIO_INT64 : HELIO_FLOAT64;
}

static void fill_plan(sum_plan *plan, const helio_argument *x, const helio_argument *y, uint32_t axes) {
  plan->type = (helio_type)x->type;
  plan->total = total_type(plan->operation, x->type);
  plan->element = call_type_size(x->type);
  plan->total_element = call_type_size(plan->total);
  plan->inputs = call_element_count(x);
  plan->outputs = call_element_count(y);
  plan->summands = 1;
  for (uint32_t i = 0; i < x->rank; i++) {
    if ((axes >> i & 1u) != 0) plan->summands *= (double)x->extent[i];
  }
  plan->base.empty = plan->outputs == 0;
  arrange(plan, x, axes);
  choose_pieces(plan);
}

static helio_status reduce_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer,
                                     uint32_t types) {
  const helio_host *host = device->host;
  const call_signature signature = {"T", "T", types};
  helio_reduce_attributes attributes;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *y = call_output(call);
  if (attributes.reserved != 0) return host->fail(host, HELIO_NOT_SUPPORTED, "a reserved attribute is set");
  if (attributes.axes >> x->rank != 0 || !output_fits(x, y, attributes.axes))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "the output is not the input without the summed axes");
  sum_plan *plan = (sum_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->operation = (helio_operation)call->operation;
  fill_plan(plan, x, y, attributes.axes);
  plan->base.parts = cpu_parts_for_bytes(device, (plan->inputs + plan->outputs) * plan->element);
  answer->plan = &plan->base;
  answer->workspace = plan->pieces > 1 && !plan->base.empty ? plan->pieces * plan->outputs * plan->total_element : 0;
  return HELIO_OK;
}

static helio_status number_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  return reduce_plan_make(device, call, answer, CALL_ARITHMETIC_TYPES);
}

static helio_status mean_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  return reduce_plan_make(device, call, answer, CALL_FLOAT_TYPES);
}

static bool is_extreme(const sum_plan *plan) {
  return plan->operation == HELIO_OP_MAX || plan->operation == HELIO_OP_MIN;
}

/* Extremes only compare, and a denormal number is larger than zero. */
static unsigned float_mode(const sum_plan *plan) {
  return is_extreme(plan) ? CPU_FLOAT_EXACT : CPU_FLOAT_FLUSH;
}

/* What the result over no element is: zero, or the lowest or highest value. */
static void begin_totals(const sum_plan *plan, unsigned char *totals, size_t count) {
  double value = plan->operation == HELIO_OP_MAX ? -INFINITY : INFINITY;
  if (!is_extreme(plan)) {
    memset(totals, 0, count * plan->total_element);
    return;
  }
  plan->base.device->vector->cast(plan->total, HELIO_FLOAT64, totals, &value, 1);
  for (size_t i = 1; i < count; i++) memcpy(totals + i * plan->total_element, totals, plan->total_element);
}

static void take_rows(const sum_plan *plan, void *totals, const void *x, size_t stride, size_t rows, size_t columns) {
  const cpu_vector_table *vector = plan->base.device->vector;
  if (is_extreme(plan)) {
    vector->extreme_rows(plan->operation == HELIO_OP_MAX, plan->type, totals, x, stride, rows, columns);
  } else {
    vector->sum_rows(plan->type, totals, x, stride, rows, columns);
  }
}

static void take_columns(const sum_plan *plan, helio_type type, void *totals, const void *x, size_t stride, size_t rows,
                         size_t columns) {
  const cpu_vector_table *vector = plan->base.device->vector;
  if (is_extreme(plan)) {
    vector->extreme_columns(plan->operation == HELIO_OP_MAX, type, totals, x, stride, rows, columns);
  } else {
    vector->sum_columns(type, totals, x, stride, rows, columns);
  }
}

static void end_totals(const sum_work *work, unsigned char *totals, size_t at, size_t count) {
  const sum_plan *plan = work->plan;
  double *means = (double *)(void *)totals;
  for (size_t i = 0; plan->operation == HELIO_OP_MEAN && i < count; i++) means[i] /= plan->summands;
  plan->base.device->vector->cast(plan->type, plan->total, work->y + at * plan->element, totals, count);
}

/* Where summand number `summand` of result row `row` begins: the two numbers count the summed and the kept outer axes,
 * of which the cut one begins at `from` and has `extent`. */
static size_t outer_offset(const sum_plan *plan, size_t row, size_t summand, cpu_range piece) {
  size_t offset = 0;
  for (uint32_t i = 0; i < plan->outer_axes; i++) {
    const axis *each = &plan->outer[i];
    size_t extent = i == plan->cut ? piece.end - piece.begin : each->extent;
    size_t *number = each->summed ? &summand : &row;
    offset += (*number % extent + (i == plan->cut ? piece.begin : 0)) * each->stride;
    *number /= extent;
  }
  return offset;
}

/* Adds up `count` neighbouring results from `first` on, over one piece of the summed axes. */
static void sum_block(const sum_work *work, void *totals, size_t row, size_t first, size_t count, size_t piece) {
  const sum_plan *plan = work->plan;
  bool inner_cut = plan->cut == plan->outer_axes;
  size_t cut_extent = inner_cut ? plan->summed : plan->outer[plan->cut].extent;
  cpu_range range = cpu_part_range(cut_extent, 1, (unsigned)piece, (unsigned)plan->pieces);
  cpu_range inner = inner_cut ? range : (cpu_range){0, plan->summed};
  size_t summands = inner_cut ? plan->outer_summed : plan->outer_summed / cut_extent * (range.end - range.begin);
  for (size_t i = 0; i < summands; i++) {
    size_t offset = outer_offset(plan, row, i, range);
    size_t length = inner.end - inner.begin;
    if (plan->rows) {
      offset += first * plan->summed + inner.begin;
      take_rows(plan, totals, work->x + offset * plan->element, plan->summed, count, length);
    } else {
      offset += inner.begin * plan->kept + first;
      take_columns(plan, plan->type, totals, work->x + offset * plan->element, plan->kept, length, count);
    }
  }
}

static void sum_part(void *argument, unsigned part, unsigned parts) {
  const sum_work *work = argument;
  const sum_plan *plan = work->plan;
  size_t blocks = kept_blocks(plan);
  cpu_range range = cpu_part_range(plan->outer_kept * blocks * plan->pieces, 1, part, parts);
  _Alignas(64) unsigned char totals[BLOCK * sizeof(double)];
  unsigned saved = cpu_float_begin(float_mode(plan));
  for (size_t unit = range.begin; unit < range.end; unit++) {
    size_t piece = unit % plan->pieces, row = unit / plan->pieces / blocks;
    size_t first = unit / plan->pieces % blocks * plan->block;
    size_t count = plan->kept - first < plan->block ? plan->kept - first : plan->block;
    size_t at = row * plan->kept + first;
    begin_totals(plan, totals, count);
    if (plan->inputs > 0) sum_block(work, totals, row, first, count, piece);
    if (plan->pieces > 1) {
      size_t each = plan->total_element;
      memcpy(work->totals + (piece * plan->outputs + at) * each, totals, count * each);
    } else {
      end_totals(work, totals, at, count);
    }
  }
  cpu_float_end(float_mode(plan), saved);
}

/* The pieces' totals, in their order. There are few results where there are several pieces. */
static void add_pieces(const sum_work *work) {
  const sum_plan *plan = work->plan;
  _Alignas(64) unsigned char totals[BLOCK * sizeof(double)];
  unsigned saved = cpu_float_begin(float_mode(plan));
  for (size_t at = 0; at < plan->outputs; at += BLOCK) {
    size_t count = plan->outputs - at < BLOCK ? plan->outputs - at : BLOCK;
    begin_totals(plan, totals, count);
    take_columns(plan, plan->total, totals, work->totals + at * plan->total_element, plan->outputs, plan->pieces,
                 count);
    end_totals(work, totals, at, count);
  }
  cpu_float_end(float_mode(plan), saved);
}

static helio_status sum_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const sum_plan *plan = (const sum_plan *)base;
  const helio_host *host = base->device->host;
  sum_work work = {plan, cpu_run_address(run, 0), cpu_run_address(run, 1), NULL};
  if (plan->pieces > 1) {
    work.totals = cpu_run_workspace(run);
    if (work.totals == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "the workspace is missing");
  }
  cpu_plan_execute(base, sum_part, &work);
  if (plan->pieces > 1) add_pieces(&work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_sum = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_SUM,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = number_plan_make,
    .run = sum_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_mean = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_MEAN,
    .types = CALL_FLOAT_TYPES,
    .plan = mean_plan_make,
    .run = sum_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_max = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_MAX,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = number_plan_make,
    .run = sum_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_min = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_MIN,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = number_plan_make,
    .run = sum_run,
    .plan_free = cpu_plan_free,
};
