/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, its logarithm, their gradients and the cross entropies: one launch each, along the last axis. */
#include "arrange.h"

typedef struct softmax_plan {
  helio_plan base;
  vendor_function *function;
  gpu_grid grid;
  int64_t rows, columns;
  int32_t lanes;
  int32_t wide; /* are sparse labels int64? */
  uint32_t inputs;
  bool gradient; /* has the cross entropy a second output? */
} softmax_plan;

static const char *kernel_name(uint32_t operation) {
  switch (operation) {
  case HELIO_OP_SOFTMAX:
    return "softmax";
  case HELIO_OP_LOG_SOFTMAX:
    return "log_softmax";
  case HELIO_OP_SOFTMAX_GRAD:
    return "softmax_grad";
  case HELIO_OP_LOG_SOFTMAX_GRAD:
    return "log_softmax_grad";
  case HELIO_OP_SPARSE_CROSS_ENTROPY:
    return "sparse_cross_entropy";
  default:
    return "cross_entropy";
  }
}

static helio_status plan_new(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_argument *x = call_input(call, 0);
  softmax_plan *plan = (softmax_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->rows = (int64_t)gpu_row_count(x);
  plan->columns = (int64_t)gpu_column_count(x);
  plan->lanes = gpu_team_lanes((size_t)plan->columns);
  plan->grid = gpu_grid_teams(device, (size_t)plan->rows, plan->lanes);
  plan->inputs = call->input_count;
  if (call->operation == HELIO_OP_SPARSE_CROSS_ENTROPY) plan->wide = call_input(call, 1)->type == HELIO_INT64;
  plan->gradient = call->output_count > 1 && call_output_at(call, 1) != NULL;
  helio_status status = gpu_kernel_find(device, "softmax", x->type, kernel_name(call->operation), &plan->function);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status softmax_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const bool gradient = call->operation == HELIO_OP_SOFTMAX_GRAD || call->operation == HELIO_OP_LOG_SOFTMAX_GRAD;
  const call_signature signature = {gradient ? "TT" : "T", "T", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  for (uint32_t i = 0; i < call->input_count; i++) {
    if (!call_same_shape(call_input(call, i), call_output(call)))
      return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "input %u does not have the output's shape", i);
  }
  return plan_new(device, call, answer);
}

/* x is a matrix; there is a label or a row of labels for each row, a loss for each row, perhaps a gradient like x. */
static bool shapes_fit(const helio_call *call, bool sparse) {
  const helio_argument *x = call_input(call, 0), *labels = call_input(call, 1), *loss = call_output(call);
  const helio_argument *gradient = call_output_at(call, 1);
  if (x->rank != 2 || loss->rank != 1 || loss->extent[0] != x->extent[0]) return false;
  if (gradient != NULL && !call_same_shape(gradient, x)) return false;
  return sparse ? call_same_shape(labels, loss) : call_same_shape(labels, x);
}

static helio_status entropy_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const bool sparse = call->operation == HELIO_OP_SPARSE_CROSS_ENTROPY;
  const call_signature signature = {sparse ? "TI" : "TT", "Tt", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  if (!shapes_fit(call, sparse))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "the shapes do not fit each other");
  return plan_new(device, call, answer);
}

static helio_status softmax_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  softmax_plan *plan = (softmax_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address a = gpu_run_address(run, 0), b = gpu_run_address(run, 1), c = gpu_run_address(run, plan->inputs);
  void *of_one[] = {&a, &c, &plan->rows, &plan->columns, &plan->lanes};
  void *of_two[] = {&a, &b, &c, &plan->rows, &plan->columns, &plan->lanes};
  return gpu_launch(base, run, plan->function, plan->grid, plan->inputs == 1 ? of_one : of_two);
}

static helio_status entropy_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  softmax_plan *plan = (softmax_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), labels = gpu_run_address(run, 1), loss = gpu_run_address(run, 2);
  gpu_address gradient = plan->gradient ? gpu_run_address(run, 3) : 0, word = gpu_run_status(run);
  void *dense[] = {&x, &labels, &loss, &gradient, &plan->rows, &plan->columns, &plan->lanes};
  void *sparse[] = {&x,    &labels,          &plan->wide, &loss,          &gradient,
                    &word, &base->operation, &plan->rows, &plan->columns, &plan->lanes};
  bool by_index = base->operation == HELIO_OP_SPARSE_CROSS_ENTROPY;
  return gpu_launch(base, run, plan->function, plan->grid, by_index ? sparse : dense);
}

#define SOFTMAX_LIST(X)                                                                                                \
  X(softmax, SOFTMAX, softmax_plan_make, softmax_run)                                                                  \
  X(log_softmax, LOG_SOFTMAX, softmax_plan_make, softmax_run)                                                          \
  X(softmax_grad, SOFTMAX_GRAD, softmax_plan_make, softmax_run)                                                        \
  X(log_softmax_grad, LOG_SOFTMAX_GRAD, softmax_plan_make, softmax_run)                                                \
  X(sparse_cross_entropy, SPARSE_CROSS_ENTROPY, entropy_plan_make, entropy_run)                                        \
  X(cross_entropy, CROSS_ENTROPY, entropy_plan_make, entropy_run)

#define SOFTMAX_KERNEL(lower, upper, planned, carried_out)                                                             \
  const helio_kernel gpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = CALL_FLOAT_TYPES,                                                                                       \
      .plan = planned,                                                                                                 \
      .run = carried_out,                                                                                              \
      .plan_free = gpu_plan_free,                                                                                      \
  };
SOFTMAX_LIST(SOFTMAX_KERNEL)
#undef SOFTMAX_KERNEL
