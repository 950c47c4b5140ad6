/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic and comparisons of two operands, and where, which has three: broadcast as in numpy. The plan drops axes of
 * extent 1 and joins neighbours that every operand walks through alike, so that most calls become one loop or a loop of
 * rows. */
#include "cpu.h"

#include <string.h>

/* Operands whose rows are shorter than this are written out on the stack first, many rows at a time. */
#define SHORT_ROW 64

/* Elements that are written out at a time. */
#define SPREAD 512

/* Operations of two operands, and the types they are defined for. */
#define BINARY_LIST(X)                                                                                                 \
  X(add, ADD, CPU_ADD, CALL_ARITHMETIC_TYPES)                                                                          \
  X(sub, SUB, CPU_SUB, CALL_ARITHMETIC_TYPES)                                                                          \
  X(mul, MUL, CPU_MUL, CALL_ARITHMETIC_TYPES)                                                                          \
  X(div, DIV, CPU_DIV, CALL_ARITHMETIC_TYPES)                                                                          \
  X(pow, POW, CPU_POW, CALL_FLOAT_TYPES)                                                                               \
  X(maximum, MAXIMUM, CPU_MAXIMUM, CALL_ARITHMETIC_TYPES)                                                              \
  X(minimum, MINIMUM, CPU_MINIMUM, CALL_ARITHMETIC_TYPES)                                                              \
  X(equal, EQUAL, CPU_EQUAL, CALL_ALL_TYPES)                                                                           \
  X(not_equal, NOT_EQUAL, CPU_NOT_EQUAL, CALL_ALL_TYPES)                                                               \
  X(less, LESS, CPU_LESS, CALL_ALL_TYPES)                                                                              \
  X(less_equal, LESS_EQUAL, CPU_LESS_EQUAL, CALL_ALL_TYPES)                                                            \
  X(greater, GREATER, CPU_GREATER, CALL_ALL_TYPES)                                                                     \
  X(greater_equal, GREATER_EQUAL, CPU_GREATER_EQUAL, CALL_ALL_TYPES)

typedef struct binary_row {
  cpu_arithmetic operation;
  uint32_t types;
} binary_row;

static const binary_row binary_rows[] = {
#define BINARY_ROW(lower, upper, operation, types) [HELIO_OP_##upper] = {operation, types},
    BINARY_LIST(BINARY_ROW)
#undef BINARY_ROW
};

/* a and b, and the condition of where */
#define MAX_OPERANDS 3

typedef void compute_function(cpu_arithmetic operation, cpu_form form, helio_type type, void *y, const void *left,
                              const void *right, size_t count);

typedef struct broadcast_plan {
  helio_plan base;
  uint32_t operands;
  cpu_arithmetic operation; /* of two operands */
  compute_function *compute;
  helio_type type; /* of a and b */
  unsigned float_mode;
  size_t element; /* of a and b */
  size_t result;  /* of y */
  size_t count;
  size_t row;     /* extent of the innermost axis */
  cpu_form form;  /* of the innermost axis, of two operands */
  int spread;     /* 0 or 1: the operand to write out; -1: none */
  uint32_t outer; /* axes outside the innermost */
  size_t extent[HELIO_MAX_RANK];
  size_t stride[MAX_OPERANDS][HELIO_MAX_RANK]; /* of the operands, in elements; 0 where it is repeated */
} broadcast_plan;

typedef struct broadcast_work {
  const broadcast_plan *plan;
  const unsigned char *operand[MAX_OPERANDS];
  unsigned char *y;
} broadcast_work;

/* The extent of axis `axis` of the output in an operand, whose axes are aligned to the right. */
static int64_t operand_extent(const helio_argument *operand, uint32_t rank, uint32_t axis) {
  return axis + operand->rank < rank ? 1 : operand->extent[axis + operand->rank - rank];
}

static bool shapes_broadcast(const helio_argument *const *operands, uint32_t count, const helio_argument *y) {
  uint32_t rank = 0;
  for (uint32_t o = 0; o < count; o++) rank = operands[o]->rank > rank ? operands[o]->rank : rank;
  if (y->rank != rank) return false;
  for (uint32_t i = 0; i < rank; i++) {
    int64_t common = 1;
    for (uint32_t o = 0; o < count; o++) {
      int64_t extent = operand_extent(operands[o], rank, i);
      if (extent != 1 && common != 1 && extent != common) return false;
      if (extent != 1) common = extent;
    }
    if (y->extent[i] != common) return false;
  }
  return true;
}

/* Axes from the innermost outwards into `extent` and `stride`, joined where possible; says how many there are. */
static uint32_t join_axes(broadcast_plan *plan, const helio_argument *const *operands, const helio_argument *y) {
  size_t step[MAX_OPERANDS] = {1, 1, 1};
  uint32_t axes = 0;
  for (uint32_t axis = y->rank; axis-- > 0;) {
    size_t extent = (size_t)y->extent[axis], stride[MAX_OPERANDS];
    bool joins = axes > 0;
    for (uint32_t o = 0; o < plan->operands; o++) {
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
    for (uint32_t o = 0; o < plan->operands; o++) plan->stride[o][axes] = stride[o];
    axes++;
  }
  return axes;
}

/* A short row that one operand repeats, or a column that it stretches, beside an operand that is contiguous. */
static int choose_spread(const broadcast_plan *plan) {
  if (plan->operands != 2 || plan->outer != 1 || plan->row > SHORT_ROW) return -1;
  int spread = plan->form == CPU_FORM_LEFT_ONE || (plan->form == CPU_FORM_BOTH && plan->stride[0][1] == 0) ? 0 : 1;
  bool contiguous = plan->stride[!spread][0] == 1 && plan->stride[!spread][1] == plan->row;
  return contiguous ? spread : -1;
}

static void arrange(broadcast_plan *plan, const helio_argument *const *operands, const helio_argument *y) {
  uint32_t axes = join_axes(plan, operands, y);
  plan->row = axes == 0 ? 1 : plan->extent[0];
  plan->outer = axes == 0 ? 0 : axes - 1;
  plan->form = CPU_FORM_BOTH;
  if (axes > 0 && plan->stride[0][0] == 0) plan->form = CPU_FORM_LEFT_ONE;
  if (axes > 0 && plan->stride[1][0] == 0) plan->form = CPU_FORM_RIGHT_ONE;
  plan->spread = choose_spread(plan);
}

static helio_status make_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer,
                              unsigned weight, broadcast_plan **result) {
  const helio_argument *y = call_output(call);
  if (!shapes_broadcast(call->arguments, call->input_count, y))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "the operands do not broadcast to the output");
  broadcast_plan *plan = (broadcast_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->operands = call->input_count;
  plan->type = (helio_type)call_input(call, 0)->type;
  plan->element = call_type_size(plan->type);
  plan->result = call_type_size(y->type);
  plan->float_mode = CPU_FLOAT_FLUSH;
  plan->count = call_element_count(y);
  plan->base.empty = plan->count == 0;
  if (!plan->base.empty) arrange(plan, call->arguments, y);
  plan->base.parts = cpu_parts_for_bytes(device, plan->count * plan->element * (plan->operands + 1) * weight);
  answer->plan = &plan->base;
  answer->workspace = 0;
  *result = plan;
  return HELIO_OK;
}

/* How many times the time of an addition an operation takes. */
static unsigned weight_of(cpu_arithmetic operation, uint32_t type) {
  bool integer = type == HELIO_INT32 || type == HELIO_INT64;
  return operation == CPU_POW ? 16 : operation == CPU_DIV && integer ? 4 : 1;
}

/* Comparisons see denormal numbers as they are: what is not equal must not compare equal. */
static helio_status binary_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const binary_row *row = &binary_rows[call->operation];
  const bool compares = row->operation >= CPU_EQUAL;
  const call_signature signature = {"TT", compares ? "B" : "T", row->types};
  const cpu_vector_table *vector = device->vector;
  broadcast_plan *plan;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  status = make_plan(device, call, answer, weight_of(row->operation, call_input(call, 0)->type), &plan);
  if (status != HELIO_OK) return status;
  plan->operation = row->operation;
  plan->compute = row->operation < CPU_DIV ? vector->arithmetic : vector->binary;
  if (compares) plan->float_mode = CPU_FLOAT_EXACT;
  return HELIO_OK;
}

static helio_status where_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"TTB", "T", CALL_ALL_TYPES};
  broadcast_plan *plan;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  return status != HELIO_OK ? status : make_plan(device, call, answer, 1, &plan);
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
      if (element == 1) target[r * row + i] = source[r];
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
    plan->compute(plan->operation, CPU_FORM_BOTH, plan->type, work->y + r * plan->row * plan->result, operand[0],
                  operand[1], some * plan->row);
  }
}

/* Where row number `row` begins in an operand. */
static size_t row_offset(const broadcast_plan *plan, uint32_t operand, size_t row) {
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
  unsigned saved = cpu_float_begin(plan->float_mode);
  plan->compute(plan->operation, plan->form, plan->type, work->y, work->operand[0], work->operand[1], plan->count);
  cpu_float_end(plan->float_mode, saved);
}

/* One condition for the whole row takes all of one operand. */
static void choose_row(const broadcast_plan *plan, unsigned char *y, const unsigned char *const *at, size_t count) {
  const size_t element = plan->element, steps[2] = {plan->stride[0][0], plan->stride[1][0]};
  if (plan->stride[2][0] != 0) {
    plan->base.device->vector->choose(element, y, at[0], steps[0], at[1], steps[1], at[2], count);
    return;
  }
  int chosen = *at[2] != 0 ? 0 : 1;
  spread_rows(y, at[chosen], 1, count, element, steps[chosen] == 0);
}

/* Parts are cut anywhere, also within a row. */
static void rows_part(const broadcast_work *work, unsigned part, unsigned parts) {
  const broadcast_plan *plan = work->plan;
  cpu_range range = cpu_part_range(plan->count, 64, part, parts);
  size_t row = range.begin / plan->row, column = range.begin % plan->row;
  for (size_t at = range.begin; at < range.end; row++, column = 0) {
    const unsigned char *operand[MAX_OPERANDS];
    size_t count = plan->row - column;
    if (count > range.end - at) count = range.end - at;
    for (uint32_t o = 0; o < plan->operands; o++) {
      size_t offset = row_offset(plan, o, row) + column * plan->stride[o][0];
      operand[o] = work->operand[o] + offset * (o < 2 ? plan->element : 1);
    }
    unsigned char *y = work->y + at * plan->result;
    if (plan->operands == 3) {
      choose_row(plan, y, operand, count);
    } else {
      plan->compute(plan->operation, plan->form, plan->type, y, operand[0], operand[1], count);
    }
    at += count;
  }
}

static void broadcast_part(void *argument, unsigned part, unsigned parts) {
  const broadcast_work *work = argument;
  unsigned saved = cpu_float_begin(work->plan->float_mode);
  if (work->plan->spread >= 0) {
    spread_part(work, part, parts);
  } else {
    rows_part(work, part, parts);
  }
  cpu_float_end(work->plan->float_mode, saved);
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

static helio_status where_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  broadcast_work work = {(const broadcast_plan *)base,
                         {cpu_run_address(run, 0), cpu_run_address(run, 1), cpu_run_address(run, 2)},
                         cpu_run_address(run, 3)};
  cpu_plan_execute(base, broadcast_part, &work);
  return HELIO_OK;
}

#define BINARY_KERNEL(lower, upper, function, accepted)                                                                \
  const helio_kernel cpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = accepted,                                                                                               \
      .plan = binary_plan_make,                                                                                        \
      .run = broadcast_run,                                                                                            \
      .plan_free = cpu_plan_free,                                                                                      \
  };
BINARY_LIST(BINARY_KERNEL)
#undef BINARY_KERNEL

const helio_kernel cpu_kernel_where = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_WHERE,
    .types = CALL_ALL_TYPES,
    .plan = where_plan_make,
    .run = where_run,
    .plan_free = cpu_plan_free,
};
