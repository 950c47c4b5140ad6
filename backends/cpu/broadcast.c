/* SPDX-License-Identifier: Apache-2.0 */
/* add, sub and mul: two operands, broadcast as in numpy. The plan drops axes of extent 1 and joins neighbours that
 * every operand walks through alike, so that most calls become one loop or a loop of rows. */
#include "cpu.h"

#include <string.h>

/* Operands whose rows are shorter than this are written out on the stack first, many rows at a time. */
#define SHORT_ROW 64

/* Elements that are written out at a time. */
#define SPREAD 512

typedef struct broadcast_plan {
  helio_plan base;
  cpu_arithmetic operation;
  helio_type type;
  size_t element;
  size_t count;
  size_t row;     /* extent of the innermost axis */
  cpu_form form;  /* of the innermost axis */
  int spread;     /* 0 or 1: the operand to write out; -1: none */
  uint32_t outer; /* axes outside the innermost */
  size_t extent[HELIO_MAX_RANK];
  size_t stride[2][HELIO_MAX_RANK]; /* of the operands, in elements; 0 where it is repeated */
} broadcast_plan;

typedef struct broadcast_work {
  const broadcast_plan *plan;
  const unsigned char *operand[2];
  unsigned char *y;
} broadcast_work;

/* The extent of axis `axis` of the output in an operand, whose axes are aligned to the right. */
static int64_t operand_extent(const helio_argument *operand, uint32_t rank, uint32_t axis) {
  return axis + operand->rank < rank ? 1 : operand->extent[axis + operand->rank - rank];
}

static bool shapes_broadcast(const helio_argument *a, const helio_argument *b, const helio_argument *y) {
  if (y->rank != (a->rank > b->rank ? a->rank : b->rank)) return false;
  for (uint32_t i = 0; i < y->rank; i++) {
    int64_t in_a = operand_extent(a, y->rank, i), in_b = operand_extent(b, y->rank, i);
    if (y->extent[i] != (in_a == 1 ? in_b : in_a) || (in_a != in_b && in_a != 1 && in_b != 1)) return false;
  }
  return true;
}

/* Axes from the innermost outwards into `extent` and `stride`, joined where possible; says how many there are. */
static uint32_t join_axes(broadcast_plan *plan, const helio_argument *const operands[2], const helio_argument *y) {
  size_t step[2] = {1, 1};
  uint32_t axes = 0;
  for (uint32_t axis = y->rank; axis-- > 0;) {
    size_t extent = (size_t)y->extent[axis], stride[2];
    bool joins = axes > 0;
    for (int o = 0; o < 2; o++) {
      bool repeated = operand_extent(operands[o], y->rank, axis) == 1;
      stride[o] = repeated ? 0 : step[o];
      if (!repeated) step[o] *= extent;
      joins = joins && stride[o] == plan->stride[o][axes - 1] * plan->extent[axes - 1];
    }
    if (extent == 1) continue;
    if (joins) {
      plan->extent[axes - 1] *= extent;
      continue;
    }
    plan->extent[axes] = extent;
    plan->stride[0][axes] = stride[0];
    plan->stride[1][axes] = stride[1];
    axes++;
  }
  return axes;
}

/* A short row that one operand repeats, or a column that it stretches, beside an operand that is contiguous. */
static int choose_spread(const broadcast_plan *plan) {
  if (plan->outer != 1 || plan->row > SHORT_ROW) return -1;
  int spread = plan->form == CPU_FORM_LEFT_ONE || (plan->form == CPU_FORM_BOTH && plan->stride[0][1] == 0) ? 0 : 1;
  bool contiguous = plan->stride[!spread][0] == 1 && plan->stride[!spread][1] == plan->row;
  return contiguous ? spread : -1;
}

static void arrange(broadcast_plan *plan, const helio_argument *const operands[2], const helio_argument *y) {
  uint32_t axes = join_axes(plan, operands, y);
  plan->row = axes == 0 ? 1 : plan->extent[0];
  plan->outer = axes == 0 ? 0 : axes - 1;
  plan->form = CPU_FORM_BOTH;
  if (axes > 0 && plan->stride[0][0] == 0) plan->form = CPU_FORM_LEFT_ONE;
  if (axes > 0 && plan->stride[1][0] == 0) plan->form = CPU_FORM_RIGHT_ONE;
  plan->spread = choose_spread(plan);
}

static helio_status broadcast_plan_make(helio_backend_device *device, const helio_call *call,
                                        helio_plan_answer *answer) {
  const cpu_signature signature = {"TT", "T", CPU_ARITHMETIC_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *const operands[2] = {cpu_input(call, 0), cpu_input(call, 1)};
  const helio_argument *y = cpu_output(call);
  if (!shapes_broadcast(operands[0], operands[1], y))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "the operands do not broadcast to the output");
  broadcast_plan *plan = (broadcast_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->operation = call->operation == HELIO_OP_ADD ? CPU_ADD : call->operation == HELIO_OP_SUB ? CPU_SUB : CPU_MUL;
  plan->type = (helio_type)y->type;
  plan->element = cpu_type_size(y->type);
  plan->count = cpu_element_count(y);
  plan->base.empty = plan->count == 0;
  if (!plan->base.empty) arrange(plan, operands, y);
  plan->base.parts = cpu_parts_for_bytes(device, plan->count * plan->element * 3);
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

/* Writes out `rows` rows of a row that repeats (step 0) or of a column that is stretched (step 1). */
static void spread_rows(unsigned char *target, const unsigned char *source, size_t rows, size_t row, size_t element,
                        bool column) {
  for (size_t r = 0; r < rows; r++) {
    if (!column) memcpy(target + r * row * element, source, row * element);
    for (size_t i = 0; column && i < row; i++) {
      if (element == 4) memcpy(target + (r * row + i) * 4, source + r * 4, 4);
      if (element == 8) memcpy(target + (r * row + i) * 8, source + r * 8, 8);
      if (element == 2) memcpy(target + (r * row + i) * 2, source + r * 2, 2);
    }
  }
}

static void spread_part(const broadcast_work *work, unsigned part, unsigned parts) {
  const broadcast_plan *plan = work->plan;
  const size_t block = SPREAD / plan->row, element = plan->element;
  const bool column = plan->form != CPU_FORM_BOTH;
  const unsigned char *operand[2];
  _Alignas(64) unsigned char spread[SPREAD * 8];
  cpu_range rows = cpu_part_range(plan->count / plan->row, block, part, parts);
  if (!column) spread_rows(spread, work->operand[plan->spread], block, plan->row, element, false);
  for (size_t r = rows.begin; r < rows.end; r += block) {
    size_t some = rows.end - r < block ? rows.end - r : block;
    size_t at = r * plan->row * element;
    if (column) spread_rows(spread, work->operand[plan->spread] + r * element, some, plan->row, element, true);
    operand[plan->spread] = spread;
    operand[!plan->spread] = work->operand[!plan->spread] + at;
    plan->base.device->vector->arithmetic(plan->operation, CPU_FORM_BOTH, plan->type, work->y + at, operand[0],
                                          operand[1], some * plan->row);
  }
}

/* Where row number `row` begins in an operand. */
static size_t row_offset(const broadcast_plan *plan, int operand, size_t row) {
  size_t offset = 0;
  for (uint32_t axis = 1; axis <= plan->outer; axis++) {
    offset += row % plan->extent[axis] * plan->stride[operand][axis];
    row /= plan->extent[axis];
  }
  return offset;
}

/* The whole is one row, on one thread: the smallest operations are of this kind and have no time to lose. */
static void one_row(const broadcast_work *work) {
  const broadcast_plan *plan = work->plan;
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  plan->base.device->vector->arithmetic(plan->operation, plan->form, plan->type, work->y, work->operand[0],
                                        work->operand[1], plan->count);
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

/* Parts are cut anywhere, also within a row. */
static void rows_part(const broadcast_work *work, unsigned part, unsigned parts) {
  const broadcast_plan *plan = work->plan;
  cpu_range range = cpu_part_range(plan->count, 64, part, parts);
  size_t row = range.begin / plan->row, column = range.begin % plan->row;
  for (size_t at = range.begin; at < range.end; row++, column = 0) {
    size_t count = plan->row - column;
    if (count > range.end - at) count = range.end - at;
    size_t a = row_offset(plan, 0, row) + (plan->form == CPU_FORM_LEFT_ONE ? 0 : column);
    size_t b = row_offset(plan, 1, row) + (plan->form == CPU_FORM_RIGHT_ONE ? 0 : column);
    plan->base.device->vector->arithmetic(plan->operation, plan->form, plan->type, work->y + at * plan->element,
                                          work->operand[0] + a * plan->element, work->operand[1] + b * plan->element,
                                          count);
    at += count;
  }
}

static void broadcast_part(void *argument, unsigned part, unsigned parts) {
  const broadcast_work *work = argument;
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  if (work->plan->spread >= 0) {
    spread_part(work, part, parts);
  } else {
    rows_part(work, part, parts);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status broadcast_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  broadcast_work work = {
      (const broadcast_plan *)base, {cpu_run_address(run, 0), cpu_run_address(run, 1)}, cpu_run_address(run, 2)};
  if (work.plan->outer == 0 && base->parts == 1) {
    one_row(&work);
  } else {
    cpu_plan_execute(base, broadcast_part, &work);
  }
  return HELIO_OK;
}

const helio_kernel cpu_kernel_add = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_ADD,
    .types = CPU_ARITHMETIC_TYPES,
    .plan = broadcast_plan_make,
    .run = broadcast_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_sub = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_SUB,
    .types = CPU_ARITHMETIC_TYPES,
    .plan = broadcast_plan_make,
    .run = broadcast_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_mul = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_MUL,
    .types = CPU_ARITHMETIC_TYPES,
    .plan = broadcast_plan_make,
    .run = broadcast_run,
    .plan_free = cpu_plan_free,
};
