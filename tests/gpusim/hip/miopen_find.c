/* SPDX-License-Identifier: Apache-2.0 */
/* libMIOpen.so: convolutions in find mode. A search with the real memory comes before the first run of each problem,
 * and leaves anything in the result. */
#include "miopen_face.h"

/* ---------------------------------------------------------------------------------------------------------------------
 * What the directions share
 */

/* Enough for every solution. */
static abi_enum size(const char *name, struct miopenHandle *handle, const miopen_arguments *arguments, size_t *bytes) {
  sim_place place;
  miopen_problem problem;
  miopen_abi_solution solutions[MIOPEN_SOLUTIONS];
  int count;
  abi_enum status = miopen_begin_solved(handle, name, arguments, &place, &problem, solutions, &count);
  if (status) return status;
  if (!bytes) return MIOPEN_ABI_BAD_PARM;
  *bytes = 0;
  for (int i = 0; i < count; i++)
    if (solutions[i].workspace > *bytes) *bytes = solutions[i].workspace;
  return count ? 0 : MIOPEN_ABI_NOT_IMPLEMENTED;
}

/* Solutions that want more memory than there is are passed over. */
static int keep_fitting(const miopen_arguments *arguments, miopen_abi_solution *solutions, int count) {
  int kept = 0;
  for (int i = 0; i < count; i++)
    if (!solutions[i].workspace || (arguments->workspace && solutions[i].workspace <= arguments->bytes))
      solutions[kept++] = solutions[i];
  return kept;
}

/* The host waits for it. */
static abi_enum search(const char *name, struct miopenHandle *handle, const miopen_arguments *arguments, int wanted,
                       int *count, miopen_abi_performance *results) {
  sim_place place;
  miopen_problem problem;
  miopen_abi_solution solutions[MIOPEN_SOLUTIONS];
  int found;
  abi_enum status = miopen_begin_solved(handle, name, arguments, &place, &problem, solutions, &found);
  if (status) return status;
  if (wanted < 1 || !count || !results) return MIOPEN_ABI_BAD_PARM;
  found = keep_fitting(arguments, solutions, found);
  if (!found) return MIOPEN_ABI_UNKNOWN_ERROR;
  problem.call.poison = true;
  status = miopen_run(&place, arguments, &problem, &solutions[0]);
  if (!status) status = miopen_status(sim_stream_finish(place.stream));
  if (status) return status;
  *count = found < wanted ? found : wanted;
  for (int i = 0; i < *count; i++) {
    results[i] = (miopen_abi_performance){solutions[i].algorithm, solutions[i].time, solutions[i].workspace};
    miopen_remember(handle, &problem, solutions[i].algorithm, MIOPEN_FOUND);
  }
  return 0;
}

static bool solution_by(const miopen_problem *problem, abi_enum algorithm, miopen_abi_solution *solution) {
  miopen_abi_solution solutions[MIOPEN_SOLUTIONS];
  int count = miopen_solve(problem, solutions);
  for (int i = 0; i < count; i++)
    if (solutions[i].algorithm == algorithm) {
      *solution = solutions[i];
      return true;
    }
  return false;
}

static abi_enum run(const char *name, struct miopenHandle *handle, const miopen_arguments *arguments,
                    abi_enum algorithm, const void *alpha, const void *beta) {
  sim_place place;
  miopen_problem problem;
  miopen_abi_solution solution;
  abi_enum status = miopen_begin(handle, name, arguments, &place, &problem);
  if (!status) status = miopen_one_and_zero(problem.call.x.type, alpha, beta);
  if (status) return status;
  if (!miopen_remembers(handle, &problem, algorithm, MIOPEN_FOUND) || !solution_by(&problem, algorithm, &solution)) {
    sim_violation("not searched for", "no search with this handle has found algorithm %u for this problem", algorithm);
    return MIOPEN_ABI_UNKNOWN_ERROR;
  }
  return miopen_run(&place, arguments, &problem, &solution);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The calls
 */

abi_enum miopenConvolutionForwardGetWorkSpaceSize(struct miopenHandle *handle, struct miopenTensorDescriptor *w,
                                                  struct miopenTensorDescriptor *x,
                                                  struct miopenConvolutionDescriptor *convolution,
                                                  struct miopenTensorDescriptor *y, size_t *bytes) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_FORWARD, w, x, y, convolution);
  return size(__func__, handle, &arguments, bytes);
}

abi_enum miopenConvolutionBackwardDataGetWorkSpaceSize(struct miopenHandle *handle, struct miopenTensorDescriptor *dy,
                                                       struct miopenTensorDescriptor *w,
                                                       struct miopenConvolutionDescriptor *convolution,
                                                       struct miopenTensorDescriptor *dx, size_t *bytes) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_BACKWARD_DATA, w, dx, dy, convolution);
  return size(__func__, handle, &arguments, bytes);
}

abi_enum miopenConvolutionBackwardWeightsGetWorkSpaceSize(struct miopenHandle *handle,
                                                          struct miopenTensorDescriptor *dy,
                                                          struct miopenTensorDescriptor *x,
                                                          struct miopenConvolutionDescriptor *convolution,
                                                          struct miopenTensorDescriptor *dw, size_t *bytes) {
  SIM_CALL();
  miopen_arguments arguments = miopen_shapes(SIM_BACKWARD_FILTER, dw, x, dy, convolution);
  return size(__func__, handle, &arguments, bytes);
}

abi_enum miopenFindConvolutionForwardAlgorithm(struct miopenHandle *handle, struct miopenTensorDescriptor *x_tensor,
                                               const void *x, struct miopenTensorDescriptor *w_tensor, const void *w,
                                               struct miopenConvolutionDescriptor *convolution,
                                               struct miopenTensorDescriptor *y_tensor, void *y, int wanted, int *count,
                                               miopen_abi_performance *results, void *workspace, size_t bytes,
                                               bool exhaustive) {
  SIM_CALL();
  (void)exhaustive;
  miopen_arguments arguments = miopen_with_memory(miopen_shapes(SIM_FORWARD, w_tensor, x_tensor, y_tensor, convolution),
                                                  w, x, y, workspace, bytes);
  return search(__func__, handle, &arguments, wanted, count, results);
}

abi_enum miopenFindConvolutionBackwardDataAlgorithm(struct miopenHandle *handle,
                                                    struct miopenTensorDescriptor *dy_tensor, const void *dy,
                                                    struct miopenTensorDescriptor *w_tensor, const void *w,
                                                    struct miopenConvolutionDescriptor *convolution,
                                                    struct miopenTensorDescriptor *dx_tensor, void *dx, int wanted,
                                                    int *count, miopen_abi_performance *results, void *workspace,
                                                    size_t bytes, bool exhaustive) {
  SIM_CALL();
  (void)exhaustive;
  miopen_arguments arguments = miopen_with_memory(
      miopen_shapes(SIM_BACKWARD_DATA, w_tensor, dx_tensor, dy_tensor, convolution), w, dx, dy, workspace, bytes);
  return search(__func__, handle, &arguments, wanted, count, results);
}

abi_enum miopenFindConvolutionBackwardWeightsAlgorithm(struct miopenHandle *handle,
                                                       struct miopenTensorDescriptor *dy_tensor, const void *dy,
                                                       struct miopenTensorDescriptor *x_tensor, const void *x,
                                                       struct miopenConvolutionDescriptor *convolution,
                                                       struct miopenTensorDescriptor *dw_tensor, void *dw, int wanted,
                                                       int *count, miopen_abi_performance *results, void *workspace,
                                                       size_t bytes, bool exhaustive) {
  SIM_CALL();
  (void)exhaustive;
  miopen_arguments arguments = miopen_with_memory(
      miopen_shapes(SIM_BACKWARD_FILTER, dw_tensor, x_tensor, dy_tensor, convolution), dw, x, dy, workspace, bytes);
  return search(__func__, handle, &arguments, wanted, count, results);
}

abi_enum miopenConvolutionForward(struct miopenHandle *handle, const void *alpha,
                                  struct miopenTensorDescriptor *x_tensor, const void *x,
                                  struct miopenTensorDescriptor *w_tensor, const void *w,
                                  struct miopenConvolutionDescriptor *convolution, abi_enum algorithm, const void *beta,
                                  struct miopenTensorDescriptor *y_tensor, void *y, void *workspace, size_t bytes) {
  SIM_CALL();
  miopen_arguments arguments = miopen_with_memory(miopen_shapes(SIM_FORWARD, w_tensor, x_tensor, y_tensor, convolution),
                                                  w, x, y, workspace, bytes);
  return run(__func__, handle, &arguments, algorithm, alpha, beta);
}

abi_enum miopenConvolutionBackwardData(struct miopenHandle *handle, const void *alpha,
                                       struct miopenTensorDescriptor *dy_tensor, const void *dy,
                                       struct miopenTensorDescriptor *w_tensor, const void *w,
                                       struct miopenConvolutionDescriptor *convolution, abi_enum algorithm,
                                       const void *beta, struct miopenTensorDescriptor *dx_tensor, void *dx,
                                       void *workspace, size_t bytes) {
  SIM_CALL();
  miopen_arguments arguments = miopen_with_memory(
      miopen_shapes(SIM_BACKWARD_DATA, w_tensor, dx_tensor, dy_tensor, convolution), w, dx, dy, workspace, bytes);
  return run(__func__, handle, &arguments, algorithm, alpha, beta);
}

abi_enum miopenConvolutionBackwardWeights(struct miopenHandle *handle, const void *alpha,
                                          struct miopenTensorDescriptor *dy_tensor, const void *dy,
                                          struct miopenTensorDescriptor *x_tensor, const void *x,
                                          struct miopenConvolutionDescriptor *convolution, abi_enum algorithm,
                                          const void *beta, struct miopenTensorDescriptor *dw_tensor, void *dw,
                                          void *workspace, size_t bytes) {
  SIM_CALL();
  miopen_arguments arguments = miopen_with_memory(
      miopen_shapes(SIM_BACKWARD_FILTER, dw_tensor, x_tensor, dy_tensor, convolution), dw, x, dy, workspace, bytes);
  return run(__func__, handle, &arguments, algorithm, alpha, beta);
}
