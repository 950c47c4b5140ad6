/* SPDX-License-Identifier: Apache-2.0 */
/* libMIOpen.so: convolutions in immediate mode. The solutions of a problem are listed, the one that is chosen is
 * compiled once, and then run. The real library would compile in the first run, in the middle of a training. */
#include "miopen_face.h"

/* ---------------------------------------------------------------------------------------------------------------------
 * What the directions share
 */

static abi_enum count_solutions(const char *name, struct miopenHandle *handle, const miopen_arguments *arguments,
                                size_t *count) {
  sim_place place;
  miopen_problem problem;
  miopen_abi_solution solutions[MIOPEN_SOLUTIONS];
  int found;
  abi_enum status = miopen_begin_solved(handle, name, arguments, &place, &problem, solutions, &found);
  if (status) return status;
  if (!count) return MIOPEN_ABI_BAD_PARM;
  *count = (size_t)found;
  return *count ? 0 : MIOPEN_ABI_NOT_IMPLEMENTED;
}

static abi_enum list(const char *name, struct miopenHandle *handle, const miopen_arguments *arguments, size_t wanted,
                     size_t *count, miopen_abi_solution *results) {
  sim_place place;
  miopen_problem problem;
  miopen_abi_solution solutions[MIOPEN_SOLUTIONS];
  int found;
  abi_enum status = miopen_begin_solved(handle, name, arguments, &place, &problem, solutions, &found);
  if (status) return status;
  if (!count || !results) return MIOPEN_ABI_BAD_PARM;
  if (!found) return MIOPEN_ABI_NOT_IMPLEMENTED;
  *count = (size_t)found < wanted ? (size_t)found : wanted;
  for (size_t i = 0; i < *count; i++) {
    results[i] = solutions[i];
    miopen_remember(handle, &problem, solutions[i].id, MIOPEN_LISTED);
  }
  return 0;
}

/* The solution that a program names must be one that it was told of. */
static abi_enum choose(const char *name, struct miopenHandle *handle, const miopen_arguments *arguments, uint64_t id,
                       sim_place *place, miopen_problem *problem, miopen_abi_solution *solution) {
  abi_enum status = miopen_begin(handle, name, arguments, place, problem);
  if (status) return status;
  if (miopen_solution(problem, id, solution) && miopen_remembers(handle, problem, id, MIOPEN_LISTED)) return 0;
  sim_violation("solution not listed", "solution %llu was not listed for this problem with this handle",
                (unsigned long long)id);
  return MIOPEN_ABI_BAD_PARM;
}

static abi_enum size(const char *name, struct miopenHandle *handle, const miopen_arguments *arguments, uint64_t id,
                     size_t *bytes) {
  sim_place place;
  miopen_problem problem;
  miopen_abi_solution solution;
  abi_enum status = choose(name, handle, arguments, id, &place, &problem, &solution);
  if (status) return status;
  if (!bytes) return MIOPEN_ABI_BAD_PARM;
  *bytes = solution.workspace;
  return 0;
}

static abi_enum compile(const char *name, struct miopenHandle *handle, const miopen_arguments *arguments, uint64_t id) {
  sim_place place;
  miopen_problem problem;
  miopen_abi_solution solution;
  abi_enum status = choose(name, handle, arguments, id, &place, &problem, &solution);
  if (!status) miopen_remember(handle, &problem, id, MIOPEN_COMPILED);
  return status;
}

static abi_enum run(const char *name, struct miopenHandle *handle, const miopen_arguments *arguments, uint64_t id) {
  sim_place place;
  miopen_problem problem;
  miopen_abi_solution solution;
  abi_enum status = choose(name, handle, arguments, id, &place, &problem, &solution);
  if (status) return status;
  if (!miopen_remembers(handle, &problem, id, MIOPEN_COMPILED)) {
    sim_violation("solution not compiled", "solution %llu was not compiled for this problem with this handle",
                  (unsigned long long)id);
    return MIOPEN_ABI_UNKNOWN_ERROR;
  }
  return miopen_run(&place, arguments, &problem, &solution);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The calls
 */

abi_enum miopenConvolutionForwardGetSolutionCount(struct miopenHandle *handle, struct miopenTensorDescriptor *w,
                                                  struct miopenTensorDescriptor *x,
                                                  struct miopenConvolutionDescriptor *convolution,
                                                  struct miopenTensorDescriptor *y, size_t *count) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_FORWARD, w, x, y, convolution);
  return count_solutions(__func__, handle, &arguments, count);
}

abi_enum miopenConvolutionBackwardDataGetSolutionCount(struct miopenHandle *handle, struct miopenTensorDescriptor *dy,
                                                       struct miopenTensorDescriptor *w,
                                                       struct miopenConvolutionDescriptor *convolution,
                                                       struct miopenTensorDescriptor *dx, size_t *count) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_BACKWARD_DATA, w, dx, dy, convolution);
  return count_solutions(__func__, handle, &arguments, count);
}

abi_enum miopenConvolutionBackwardWeightsGetSolutionCount(struct miopenHandle *handle,
                                                          struct miopenTensorDescriptor *dy,
                                                          struct miopenTensorDescriptor *x,
                                                          struct miopenConvolutionDescriptor *convolution,
                                                          struct miopenTensorDescriptor *dw, size_t *count) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_BACKWARD_FILTER, dw, x, dy, convolution);
  return count_solutions(__func__, handle, &arguments, count);
}

abi_enum miopenConvolutionForwardGetSolution(struct miopenHandle *handle, struct miopenTensorDescriptor *w,
                                             struct miopenTensorDescriptor *x,
                                             struct miopenConvolutionDescriptor *convolution,
                                             struct miopenTensorDescriptor *y, size_t wanted, size_t *count,
                                             miopen_abi_solution *solutions) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_FORWARD, w, x, y, convolution);
  return list(__func__, handle, &arguments, wanted, count, solutions);
}

abi_enum miopenConvolutionBackwardDataGetSolution(struct miopenHandle *handle, struct miopenTensorDescriptor *dy,
                                                  struct miopenTensorDescriptor *w,
                                                  struct miopenConvolutionDescriptor *convolution,
                                                  struct miopenTensorDescriptor *dx, size_t wanted, size_t *count,
                                                  miopen_abi_solution *solutions) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_BACKWARD_DATA, w, dx, dy, convolution);
  return list(__func__, handle, &arguments, wanted, count, solutions);
}

abi_enum miopenConvolutionBackwardWeightsGetSolution(struct miopenHandle *handle, struct miopenTensorDescriptor *dy,
                                                     struct miopenTensorDescriptor *x,
                                                     struct miopenConvolutionDescriptor *convolution,
                                                     struct miopenTensorDescriptor *dw, size_t wanted, size_t *count,
                                                     miopen_abi_solution *solutions) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_BACKWARD_FILTER, dw, x, dy, convolution);
  return list(__func__, handle, &arguments, wanted, count, solutions);
}

abi_enum miopenConvolutionForwardGetSolutionWorkspaceSize(struct miopenHandle *handle, struct miopenTensorDescriptor *w,
                                                          struct miopenTensorDescriptor *x,
                                                          struct miopenConvolutionDescriptor *convolution,
                                                          struct miopenTensorDescriptor *y, uint64_t id,
                                                          size_t *bytes) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_FORWARD, w, x, y, convolution);
  return size(__func__, handle, &arguments, id, bytes);
}

abi_enum miopenConvolutionBackwardDataGetSolutionWorkspaceSize(
    struct miopenHandle *handle, struct miopenTensorDescriptor *dy, struct miopenTensorDescriptor *w,
    struct miopenConvolutionDescriptor *convolution, struct miopenTensorDescriptor *dx, uint64_t id, size_t *bytes) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_BACKWARD_DATA, w, dx, dy, convolution);
  return size(__func__, handle, &arguments, id, bytes);
}

abi_enum miopenConvolutionBackwardWeightsGetSolutionWorkspaceSize(
    struct miopenHandle *handle, struct miopenTensorDescriptor *dy, struct miopenTensorDescriptor *x,
    struct miopenConvolutionDescriptor *convolution, struct miopenTensorDescriptor *dw, uint64_t id, size_t *bytes) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_BACKWARD_FILTER, dw, x, dy, convolution);
  return size(__func__, handle, &arguments, id, bytes);
}

abi_enum miopenConvolutionForwardCompileSolution(struct miopenHandle *handle, struct miopenTensorDescriptor *w,
                                                 struct miopenTensorDescriptor *x,
                                                 struct miopenConvolutionDescriptor *convolution,
                                                 struct miopenTensorDescriptor *y, uint64_t id) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_FORWARD, w, x, y, convolution);
  return compile(__func__, handle, &arguments, id);
}

abi_enum miopenConvolutionBackwardDataCompileSolution(struct miopenHandle *handle, struct miopenTensorDescriptor *dy,
                                                      struct miopenTensorDescriptor *w,
                                                      struct miopenConvolutionDescriptor *convolution,
                                                      struct miopenTensorDescriptor *dx, uint64_t id) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_BACKWARD_DATA, w, dx, dy, convolution);
  return compile(__func__, handle, &arguments, id);
}

abi_enum miopenConvolutionBackwardWeightsCompileSolution(struct miopenHandle *handle, struct miopenTensorDescriptor *dy,
                                                         struct miopenTensorDescriptor *x,
                                                         struct miopenConvolutionDescriptor *convolution,
                                                         struct miopenTensorDescriptor *dw, uint64_t id) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_BACKWARD_FILTER, dw, x, dy, convolution);
  return compile(__func__, handle, &arguments, id);
}

abi_enum miopenConvolutionForwardImmediate(struct miopenHandle *handle, struct miopenTensorDescriptor *w_tensor,
                                           const void *w, struct miopenTensorDescriptor *x_tensor, const void *x,
                                           struct miopenConvolutionDescriptor *convolution,
                                           struct miopenTensorDescriptor *y_tensor, void *y, void *workspace,
                                           size_t bytes, uint64_t id) {
  SIM_CALL();
  miopen_arguments arguments = miopen_with_memory(miopen_shapes(SIM_FORWARD, w_tensor, x_tensor, y_tensor, convolution),
                                                  w, x, y, workspace, bytes);
  return run(__func__, handle, &arguments, id);
}

abi_enum miopenConvolutionBackwardDataImmediate(struct miopenHandle *handle, struct miopenTensorDescriptor *dy_tensor,
                                                const void *dy, struct miopenTensorDescriptor *w_tensor, const void *w,
                                                struct miopenConvolutionDescriptor *convolution,
                                                struct miopenTensorDescriptor *dx_tensor, void *dx, void *workspace,
                                                size_t bytes, uint64_t id) {
  SIM_CALL();
  miopen_arguments arguments = miopen_with_memory(
      miopen_shapes(SIM_BACKWARD_DATA, w_tensor, dx_tensor, dy_tensor, convolution), w, dx, dy, workspace, bytes);
  return run(__func__, handle, &arguments, id);
}

abi_enum miopenConvolutionBackwardWeightsImmediate(struct miopenHandle *handle,
                                                   struct miopenTensorDescriptor *dy_tensor, const void *dy,
                                                   struct miopenTensorDescriptor *x_tensor, const void *x,
                                                   struct miopenConvolutionDescriptor *convolution,
                                                   struct miopenTensorDescriptor *dw_tensor, void *dw, void *workspace,
                                                   size_t bytes, uint64_t id) {
  SIM_CALL();
  miopen_arguments arguments = miopen_with_memory(
      miopen_shapes(SIM_BACKWARD_FILTER, dw_tensor, x_tensor, dy_tensor, convolution), dw, x, dy, workspace, bytes);
  return run(__func__, handle, &arguments, id);
}
