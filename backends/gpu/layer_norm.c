/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm and its gradient: rows along the last axis, each by itself. The gradients of gamma and beta are sums over
 * rows. */
#include "channels.h"

typedef struct layer_plan {
  helio_plan base;
  vendor_function *function, *sums, *finish; /* of the gradient; NULL if not needed */
  gpu_grid grid;
  gpu_channel_sums how;
  int64_t rows, channels;
  int32_t lanes;
  bool output[3]; /* which are wanted */
} layer_plan;

/* Is it a list of one element for each row of x, or absent? */
static bool per_row(const helio_argument *list, const helio_argument *x) {
  if (list == NULL) return true;
  if (list->rank + 1 != x->rank) return false;
  for (uint32_t i = 0; i < list->rank; i++) {
    if (list->extent[i] != x->extent[i]) return false;
  }
  return true;
}

static layer_plan *layer_plan_new(helio_backend_device *device, const helio_call *call) {
  layer_plan *plan = (layer_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return NULL;
  const helio_argument *x = call_input(call, 0);
  plan->rows = (int64_t)gpu_row_count(x);
  plan->channels = (int64_t)gpu_column_count(x);
  plan->lanes = gpu_team_lanes((size_t)plan->channels);
  plan->grid = gpu_grid_teams(device, (size_t)plan->rows, plan->lanes);
  for (uint32_t i = 0; i < 3; i++) plan->output[i] = call_output_at(call, i) != NULL;
  return plan;
}

static helio_status forward_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"Ttt", "Ttt", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0);
  if (x->rank < 1 || !call_same_shape(x, call_output(call)) || !gpu_per_channel(call_input(call, 1), x) ||
      !gpu_per_channel(call_input(call, 2), x) || !per_row(call_output_at(call, 1), x) ||
      !per_row(call_output_at(call, 2), x))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "LAYER_NORM: the shapes do not go together");
  layer_plan *plan = layer_plan_new(device, call);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  status = gpu_kernel_find(device, "normalize", x->type, "layer_norm", &plan->function);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status forward_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  layer_plan *plan = (layer_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  double epsilon = run_real(run, 0);
  gpu_address x = gpu_run_address(run, 0), gamma = gpu_run_address(run, 1), beta = gpu_run_address(run, 2);
  gpu_address y = gpu_run_address(run, 3), mean = plan->output[1] ? gpu_run_address(run, 4) : 0;
  gpu_address inverse = plan->output[2] ? gpu_run_address(run, 5) : 0;
  void *arguments[] = {&x, &gamma, &beta, &y, &mean, &inverse, &epsilon, &plan->rows, &plan->channels, &plan->lanes};
  return gpu_launch(base, run, plan->function, plan->grid, arguments);
}

static helio_status gradient_kernels(layer_plan *plan, uint32_t type) {
  helio_backend_device *device = plan->base.device;
  helio_status status = gpu_kernel_find(device, "normalize", type, "layer_norm_grad", &plan->function);
  if (status != HELIO_OK || (!plan->output[1] && !plan->output[2])) return status;
  plan->how = gpu_channel_sums_of((size_t)plan->rows, (size_t)plan->channels);
  status = gpu_kernel_find(device, "normalize", type, "layer_norm_grad_sums", &plan->sums);
  if (status != HELIO_OK || plan->how.pieces == 1) return status;
  return gpu_kernel_find(device, "normalize", type, "sums_finish", &plan->finish);
}

static helio_status gradient_plan_make(helio_backend_device *device, const helio_call *call,
                                       helio_plan_answer *answer) {
  const call_signature signature = {"TTtTT", "Ttt", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 1);
  if (x->rank < 1 || !call_same_shape(x, call_input(call, 0)) || !call_same_shape(x, call_output(call)) ||
      !gpu_per_channel(call_input(call, 2), x) || !per_row(call_input(call, 3), x) ||
      !per_row(call_input(call, 4), x) || !gpu_per_channel(call_output_at(call, 1), x) ||
      !gpu_per_channel(call_output_at(call, 2), x))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "LAYER_NORM_GRAD: the shapes do not go together");
  layer_plan *plan = layer_plan_new(device, call);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  status = gradient_kernels(plan, x->type);
  return gpu_plan_finish(&plan->base, status, gpu_channel_sums_bytes(&plan->how), answer);
}

/* dgamma and dbeta. */
static helio_status sums_run(layer_plan *plan, const helio_run *run) {
  const helio_backend_device *device = plan->base.device;
  gpu_address dy = gpu_run_address(run, 0), x = gpu_run_address(run, 1), mean = gpu_run_address(run, 3);
  gpu_address inverse = gpu_run_address(run, 4), parts = gpu_run_workspace(run), none = 0;
  gpu_address dgamma = plan->output[1] ? gpu_run_address(run, 6) : 0;
  gpu_address dbeta = plan->output[2] ? gpu_run_address(run, 7) : 0;
  void *arguments[] = {&dy, &x, &mean, &inverse, &dgamma, &dbeta, &parts, &plan->how};
  helio_status status = gpu_launch(&plan->base, run, plan->sums, gpu_channel_sums_grid(device, &plan->how), arguments);
  if (status != HELIO_OK || plan->finish == NULL) return status;
  gpu_channel_sums finish = gpu_channel_sums_finish(&plan->how);
  double epsilon = 0;
  void *finish_arguments[] = {&parts, &dgamma, &dbeta, &none, &epsilon, &finish};
  return gpu_launch(&plan->base, run, plan->finish, gpu_channel_sums_finish_grid(device, &finish), finish_arguments);
}

static helio_status gradient_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  layer_plan *plan = (layer_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status == HELIO_OK && plan->sums != NULL) status = sums_run(plan, run);
  if (status != HELIO_OK || plan->rows == 0) return status;
  gpu_address dy = gpu_run_address(run, 0), x = gpu_run_address(run, 1), gamma = gpu_run_address(run, 2);
  gpu_address mean = gpu_run_address(run, 3), inverse = gpu_run_address(run, 4), dx = gpu_run_address(run, 5);
  void *arguments[] = {&dy, &x, &gamma, &mean, &inverse, &dx, &plan->rows, &plan->channels, &plan->lanes};
  return gpu_launch(base, run, plan->function, plan->grid, arguments);
}

#define LAYER_LIST(X)                                                                                                  \
  X(layer_norm, LAYER_NORM, forward)                                                                                   \
  X(layer_norm_grad, LAYER_NORM_GRAD, gradient)

#define LAYER_KERNEL(lower, upper, name)                                                                               \
  const helio_kernel gpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = CALL_FLOAT_TYPES,                                                                                       \
      .plan = name##_plan_make,                                                                                        \
      .run = name##_run,                                                                                               \
      .plan_free = gpu_plan_free,                                                                                      \
  };
LAYER_LIST(LAYER_KERNEL)
#undef LAYER_KERNEL
