/* SPDX-License-Identifier: Apache-2.0 */
/* libMIOpen.so: what both ways to a convolution share, and the gradient of a bias. */
#include "miopen_face.h"

#include <string.h>

static abi_enum check(const miopen_arguments *a) {
  abi_enum status = miopen_use_tensor(a->x, a->direction == SIM_BACKWARD_DATA ? "dx" : "x");
  if (!status) status = miopen_use_tensor(a->w, a->direction == SIM_BACKWARD_FILTER ? "dw" : "w");
  if (!status) status = miopen_use_convolution(a->convolution);
  if (!status) status = miopen_use_tensor(a->y, a->direction == SIM_FORWARD ? "y" : "dy");
  if (status) return status;
  const sim_tensor *x = &a->x->tensor, *w = &a->w->tensor, *y = &a->y->tensor;
  if (x->type != w->type || x->type != y->type) return MIOPEN_ABI_BAD_PARM;
  if (sim_convolution_fits(&a->convolution->convolution, x, w, y)) return 0;
  sim_violation("shapes do not fit", "x %d %d %d %d with w %d %d %d %d does not make y %d %d %d %d", x->dims[0],
                x->dims[1], x->dims[2], x->dims[3], w->dims[0], w->dims[1], w->dims[2], w->dims[3], y->dims[0],
                y->dims[1], y->dims[2], y->dims[3]);
  return MIOPEN_ABI_BAD_PARM;
}

miopen_arguments miopen_shapes(sim_direction direction, const struct miopenTensorDescriptor *w,
                               const struct miopenTensorDescriptor *x, const struct miopenTensorDescriptor *y,
                               const struct miopenConvolutionDescriptor *convolution) {
  return (miopen_arguments){.direction = direction, .w = w, .x = x, .y = y, .convolution = convolution};
}

miopen_arguments miopen_with_memory(miopen_arguments shapes, const void *w, const void *x, const void *y,
                                    void *workspace, size_t bytes) {
  shapes.w_data = w;
  shapes.x_data = x;
  shapes.y_data = y;
  shapes.workspace = workspace;
  shapes.bytes = bytes;
  return shapes;
}

abi_enum miopen_begin(struct miopenHandle *handle, const char *name, const miopen_arguments *a, sim_place *place,
                      miopen_problem *problem) {
  abi_enum status = miopen_enter(handle, name, place);
  if (!status) status = check(a);
  if (status) return status;
  *problem = (miopen_problem){.deterministic = a->convolution->deterministic,
                              .call = {.direction = a->direction,
                                       .convolution = a->convolution->convolution,
                                       .x = a->x->tensor,
                                       .w = a->w->tensor,
                                       .y = a->y->tensor,
                                       .alpha = 1}};
  return 0;
}

abi_enum miopen_begin_solved(struct miopenHandle *handle, const char *name, const miopen_arguments *arguments,
                             sim_place *place, miopen_problem *problem, miopen_abi_solution solutions[MIOPEN_SOLUTIONS],
                             int *count) {
  abi_enum status = miopen_begin(handle, name, arguments, place, problem);
  *count = status ? 0 : miopen_solve(problem, solutions);
  return status;
}

/* Halves keep three bits less where MIOpen takes its other implementation of them. */
static sim_rounding rounding_of(const miopen_arguments *a) {
  bool has_other = strncmp(sim_setup()->architecture[SIM_HIP], "gfx90a", 6) == 0;
  int chosen = a->convolution->alternative_half;
  bool other = chosen < 0 ? a->direction != SIM_FORWARD : chosen == 1;
  return has_other && other && a->x->tensor.type == SIM_FLOAT16 ? SIM_ROUND_BFLOAT16 : SIM_EXACT;
}

abi_enum miopen_run(const sim_place *place, const miopen_arguments *a, miopen_problem *problem,
                    const miopen_abi_solution *solution) {
  if (!a->x_data || !a->w_data || !a->y_data) return MIOPEN_ABI_BAD_PARM;
  if (solution->workspace && (!a->workspace || a->bytes < solution->workspace)) {
    sim_violation("workspace too small", "solution %llu wants %zu bytes and has %zu", (unsigned long long)solution->id,
                  solution->workspace, a->workspace ? a->bytes : 0);
    return MIOPEN_ABI_UNKNOWN_ERROR;
  }
  sim_convolution_call *call = &problem->call;
  call->x_data = a->x_data;
  call->w_data = a->w_data;
  call->y_data = a->y_data;
  call->workspace = a->workspace;
  call->workspace_bytes = a->bytes;
  call->workspace_wanted = solution->workspace;
  call->rounding = rounding_of(a);
  call->deterministic = miopen_is_deterministic(a->direction, solution->id);
  sim_status status = sim_count(SIM_LIBRARY, place->device);
  return miopen_status(status ? status : sim_convolution_queue(place, call));
}

abi_enum miopenConvolutionBackwardBias(struct miopenHandle *handle, const void *alpha,
                                       struct miopenTensorDescriptor *dy_tensor, const void *dy, const void *beta,
                                       struct miopenTensorDescriptor *db_tensor, void *db) {
  SIM_CALL();
  sim_place place;
  abi_enum status = miopen_enter(handle, __func__, &place);
  if (!status) status = miopen_use_tensor(dy_tensor, "dy");
  if (!status) status = miopen_use_tensor(db_tensor, "db");
  if (status) return status;
  const sim_tensor *y = &dy_tensor->tensor, *b = &db_tensor->tensor;
  if (!dy || !db || y->type != b->type) return MIOPEN_ABI_BAD_PARM;
  if (!sim_tensor_has_dims(b, (int[]){1, y->dims[1], 1, 1})) {
    sim_violation("shapes do not fit", "db must be 1 by %d by 1 by 1", y->dims[1]);
    return MIOPEN_ABI_BAD_PARM;
  }
  status = miopen_one_and_zero(y->type, alpha, beta);
  if (!status) status = miopen_status(sim_count(SIM_LIBRARY, place.device));
  return status ? status : miopen_status(sim_bias_queue(&place, y, dy, b, db, 1, 0));
}
