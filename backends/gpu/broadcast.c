/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic and comparisons of two operands, and where, which has three: broadcast as in numpy. The plan drops axes of
 * extent 1 and joins neighbours that every operand walks through alike, so that most calls have one axis or two. */
#include "units.h"

#include <stdio.h>

/* Operation, which is also the kernel's name, the letter of its result, and the types it is defined for. */
#define BINARY_LIST(X)                                                                                                 \
  X(add, ADD, "T", CALL_ARITHMETIC_TYPES)                                                                              \
  X(sub, SUB, "T", CALL_ARITHMETIC_TYPES)                                                                              \
  X(mul, MUL, "T", CALL_ARITHMETIC_TYPES)                                                                              \
  X(div, DIV, "T", CALL_ARITHMETIC_TYPES)                                                                              \
  X(pow, POW, "T", CALL_FLOAT_TYPES)                                                                                   \
  X(maximum, MAXIMUM, "T", CALL_ARITHMETIC_TYPES)                                                                      \
  X(minimum, MINIMUM, "T", CALL_ARITHMETIC_TYPES)                                                                      \
  X(equal, EQUAL, "B", CALL_ALL_TYPES)                                                                                 \
  X(not_equal, NOT_EQUAL, "B", CALL_ALL_TYPES)                                                                         \
  X(less, LESS, "B", CALL_ALL_TYPES)                                                                                   \
  X(less_equal, LESS_EQUAL, "B", CALL_ALL_TYPES)                                                                       \
  X(greater, GREATER, "B", CALL_ALL_TYPES)                                                                             \
  X(greater_equal, GREATER_EQUAL, "B", CALL_ALL_TYPES)

typedef struct binary_row {
  const char *kernel, *result;
  uint32_t types;
} binary_row;

static const binary_row rows[] = {
#define BINARY_ROW(lower, upper, result, types) [HELIO_OP_##upper] = {"binary_" #lower, result, types},
    BINARY_LIST(BINARY_ROW)
#undef BINARY_ROW
};

/* a and b, and the condition of where */
#define MAX_OPERANDS 3

/* struct broadcast of kernels/prelude.cu. */
typedef struct broadcast_shape {
  int64_t extent[HELIO_MAX_RANK];
  int64_t stride[MAX_OPERANDS][HELIO_MAX_RANK];
  int32_t rank, wide;
} broadcast_shape;

typedef struct broadcast_plan {
  helio_plan base;
  vendor_function *function;
  uint32_t operands;
  size_t pack;
  size_t pack_bytes[MAX_OPERANDS + 1]; /* of the operands and of y: what addresses of packs are multiples of */
  bool packs;                          /* rows are made of packs */
  int64_t count;
  broadcast_shape shape;
} broadcast_plan;

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

/* Axes from the innermost outwards, joined where possible. */
static void join_axes(broadcast_plan *plan, const helio_argument *const *operands, const helio_argument *y) {
  broadcast_shape *shape = &plan->shape;
  int64_t step[MAX_OPERANDS] = {1, 1, 1};
  int32_t axes = 0;
  for (uint32_t axis = y->rank; axis-- > 0;) {
    int64_t extent = y->extent[axis], stride[MAX_OPERANDS];
    bool joins = axes > 0;
    for (uint32_t o = 0; o < plan->operands; o++) {
      bool repeated = operand_extent(operands[o], y->rank, axis) == 1;
      stride[o] = repeated ? 0 : step[o];
      if (!repeated) step[o] *= extent;
      joins = joins && stride[o] == shape->stride[o][axes - 1] * shape->extent[axes - 1];
    }
    if (extent == 1) continue;
    if (joins) {
      shape->extent[axes - 1] *= extent;
      continue;
    }
    shape->extent[axes] = extent;
    for (uint32_t o = 0; o < plan->operands; o++) shape->stride[o][axes] = stride[o];
    axes++;
  }
  shape->rank = axes;
}

/* A pack lies within one row; only where there is a single one may the rest of it be shorter. */
static void arrange_packs(broadcast_plan *plan, const helio_call *call) {
  plan->pack = gpu_pack(call_type_size(call_input(call, 0)->type));
  plan->packs = plan->shape.rank <= 1 || plan->shape.extent[0] % (int64_t)plan->pack == 0;
  for (uint32_t i = 0; i <= plan->operands; i++) {
    bool one = i < plan->operands && plan->shape.stride[i][0] == 0;
    plan->pack_bytes[i] = call_type_size(call->arguments[i]->type) * (one ? 1 : plan->pack);
  }
}

static helio_status make_plan(helio_backend_device *device, const helio_call *call, const char *text, uint32_t type,
                              const char *kernel, helio_plan_answer *answer) {
  const helio_argument *y = call_output(call);
  if (!shapes_broadcast(call->arguments, call->input_count, y))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "the operands do not broadcast to the output");
  broadcast_plan *plan = (broadcast_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->operands = call->input_count;
  plan->count = (int64_t)call_element_count(y);
  helio_status status = HELIO_OK;
  if (!plan->base.empty) {
    join_axes(plan, call->arguments, y);
    arrange_packs(plan, call);
    status = gpu_kernel_find(device, text, type, kernel, &plan->function);
  }
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status binary_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const binary_row *row = &rows[call->operation];
  const call_signature signature = {"TT", row->result, row->types};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  return make_plan(device, call, "binary", call_input(call, 0)->type, row->kernel, answer);
}

static helio_status where_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"TTB", "T", CALL_ALL_TYPES};
  char kernel[32];
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  snprintf(kernel, sizeof kernel, "where_%zu", call_type_size(call_input(call, 0)->type));
  return make_plan(device, call, "where", 0, kernel, answer);
}

static helio_status broadcast_run(helio_plan *base, const helio_run *run) {
  broadcast_plan *plan = (broadcast_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  broadcast_shape shape = plan->shape;
  gpu_address operand[MAX_OPERANDS], y = gpu_run_address(run, plan->operands);
  bool wide = plan->packs && gpu_is_aligned(y, plan->pack_bytes[plan->operands]);
  void *arguments[MAX_OPERANDS + 3] = {&y};
  for (uint32_t o = 0; o < plan->operands; o++) {
    operand[o] = gpu_run_address(run, o);
    wide = wide && gpu_is_aligned(operand[o], plan->pack_bytes[o]);
    arguments[1 + o] = &operand[o];
  }
  shape.wide = wide;
  arguments[1 + plan->operands] = &shape;
  arguments[2 + plan->operands] = &plan->count;
  gpu_grid grid = gpu_grid_over(base->device, (size_t)plan->count / (wide ? plan->pack : 1));
  return gpu_launch(base, run, plan->function, grid, arguments);
}

#define BINARY_KERNEL(lower, upper, result, accepted)                                                                  \
  const helio_kernel gpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = accepted,                                                                                               \
      .plan = binary_plan_make,                                                                                        \
      .run = broadcast_run,                                                                                            \
      .plan_free = gpu_plan_free,                                                                                      \
  };
BINARY_LIST(BINARY_KERNEL)
#undef BINARY_KERNEL

const helio_kernel gpu_kernel_where = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_WHERE,
    .types = CALL_ALL_TYPES,
    .plan = where_plan_make,
    .run = broadcast_run,
    .plan_free = gpu_plan_free,
};
