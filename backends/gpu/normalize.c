/* SPDX-License-Identifier: Apache-2.0 */
/* moments and normalize_grad_sums, which are sums over rows, and normalize and normalize_grad_input, which go over all
 * elements. The channel is the last axis. */
#include "channels.h"

typedef struct sums_plan {
  helio_plan base;
  vendor_function *function, *finish; /* finish: NULL if there is one piece */
  gpu_channel_sums how;
} sums_plan;

static helio_status sums_plan_new(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  bool moments = call->operation == HELIO_OP_MOMENTS;
  const helio_argument *x = call_input(call, moments ? 0 : 1);
  sums_plan *plan = (sums_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->how = gpu_channel_sums_of(gpu_row_count(x), gpu_column_count(x));
  const char *name = moments ? "moments_sums" : "normalize_grad_sums";
  helio_status status = gpu_kernel_find(device, "normalize", x->type, name, &plan->function);
  name = moments ? "moments_finish" : "sums_finish";
  if (status == HELIO_OK && plan->how.pieces > 1)
    status = gpu_kernel_find(device, "normalize", x->type, name, &plan->finish);
  return gpu_plan_finish(&plan->base, status, gpu_channel_sums_bytes(&plan->how), answer);
}

static helio_status moments_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T", "TT", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0);
  if (x->rank < 1 || !gpu_per_channel(call_output(call), x) || !gpu_per_channel(call_output_at(call, 1), x))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "MOMENTS: outputs are not one for each channel");
  return sums_plan_new(device, call, answer);
}

static helio_status grad_sums_plan_make(helio_backend_device *device, const helio_call *call,
                                        helio_plan_answer *answer) {
  const call_signature signature = {"TTTT", "TT", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 1);
  bool fits = x->rank > 0 && call_same_shape(call_input(call, 0), x);
  for (uint32_t i = 2; fits && i < 6; i++) fits = gpu_per_channel(call->arguments[i], x);
  if (!fits) return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "NORMALIZE_GRAD_SUMS: shapes differ");
  return sums_plan_new(device, call, answer);
}

static helio_status moments_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  sums_plan *plan = (sums_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), mean = gpu_run_address(run, 1), variance = gpu_run_address(run, 2);
  gpu_address parts = gpu_run_workspace(run);
  void *arguments[] = {&x, &mean, &variance, &parts, &plan->how};
  status = gpu_launch(base, run, plan->function, gpu_channel_sums_grid(base->device, &plan->how), arguments);
  if (status != HELIO_OK || plan->finish == NULL) return status;
  gpu_channel_sums finish = gpu_channel_sums_finish(&plan->how);
  void *finish_arguments[] = {&parts, &mean, &variance, &finish};
  return gpu_launch(base, run, plan->finish, gpu_channel_sums_finish_grid(base->device, &finish), finish_arguments);
}

static helio_status grad_sums_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  sums_plan *plan = (sums_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address dy = gpu_run_address(run, 0), x = gpu_run_address(run, 1), mean = gpu_run_address(run, 2);
  gpu_address variance = gpu_run_address(run, 3), dgamma = gpu_run_address(run, 4), dbeta = gpu_run_address(run, 5);
  gpu_address parts = gpu_run_workspace(run);
  double epsilon = run_real(run, 0);
  void *arguments[] = {&dy, &x, &mean, &variance, &dgamma, &dbeta, &parts, &epsilon, &plan->how};
  status = gpu_launch(base, run, plan->function, gpu_channel_sums_grid(base->device, &plan->how), arguments);
  if (status != HELIO_OK || plan->finish == NULL) return status;
  gpu_channel_sums finish = gpu_channel_sums_finish(&plan->how);
  void *finish_arguments[] = {&parts, &dgamma, &dbeta, &variance, &epsilon, &finish};
  return gpu_launch(base, run, plan->finish, gpu_channel_sums_finish_grid(base->device, &finish), finish_arguments);
}

typedef struct normalize_plan {
  helio_plan base;
  vendor_function *function;
  gpu_grid grid;
  int64_t count, channels, stride;
} normalize_plan;

/* Threads go on by a multiple of the channels, so that each has one channel: there must be as many as channels. */
static void choose_stride(normalize_plan *plan) {
  plan->grid = gpu_grid_over(plan->base.device, (size_t)plan->count);
  int64_t needed = (plan->channels + GPU_BLOCK - 1) / GPU_BLOCK;
  if ((int64_t)plan->grid.blocks < needed) plan->grid.blocks = (unsigned)needed;
  int64_t threads = (int64_t)plan->grid.blocks * GPU_BLOCK;
  plan->stride = threads / plan->channels * plan->channels;
}

static helio_status normalize_plan_make(helio_backend_device *device, const helio_call *call,
                                        helio_plan_answer *answer) {
  bool gradient = call->operation == HELIO_OP_NORMALIZE_GRAD_INPUT;
  const call_signature signature = {gradient ? "TTTTtTT" : "TTTtt", "T", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0);
  bool fits = x->rank > 0 && call_same_shape(x, call_output(call));
  if (fits && gradient) fits = call_same_shape(x, call_input(call, 1));
  for (uint32_t i = gradient ? 2 : 1; fits && i < call->input_count; i++)
    fits = gpu_per_channel(call_input(call, i), x);
  if (!fits)
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "NORMALIZE: the shapes do not go together");
  normalize_plan *plan = (normalize_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->count = (int64_t)call_element_count(x);
  plan->channels = x->extent[x->rank - 1];
  if (!plan->base.empty) choose_stride(plan);
  const char *name = gradient ? "normalize_grad_input" : "normalize";
  status = gpu_kernel_find(device, "normalize", x->type, name, &plan->function);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

/* Both kernels take all tensors in their order, then the scalars. */
static helio_status normalize_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  normalize_plan *plan = (normalize_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  bool gradient = base->operation == HELIO_OP_NORMALIZE_GRAD_INPUT;
  double epsilon = run_real(run, 0), share = run_real(run, 1);
  gpu_address tensors[8];
  void *arguments[13];
  size_t count = 0, tensor_count = gradient ? 8 : 6;
  for (; count < tensor_count; count++) {
    tensors[count] = gpu_run_address(run, count);
    arguments[count] = &tensors[count];
  }
  arguments[count++] = &epsilon;
  if (gradient) arguments[count++] = &share;
  arguments[count++] = &plan->count;
  arguments[count++] = &plan->channels;
  arguments[count++] = &plan->stride;
  return gpu_launch(base, run, plan->function, plan->grid, arguments);
}

#define NORMALIZE_LIST(X)                                                                                              \
  X(moments, MOMENTS, moments_plan_make, moments_run)                                                                  \
  X(normalize, NORMALIZE, normalize_plan_make, normalize_run)                                                          \
  X(normalize_grad_sums, NORMALIZE_GRAD_SUMS, grad_sums_plan_make, grad_sums_run)                                      \
  X(normalize_grad_input, NORMALIZE_GRAD_INPUT, normalize_plan_make, normalize_run)

#define NORMALIZE_KERNEL(lower, upper, planned, carried_out)                                                           \
  const helio_kernel gpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = CALL_FLOAT_TYPES,                                                                                       \
      .plan = planned,                                                                                                 \
      .run = carried_out,                                                                                              \
      .plan_free = gpu_plan_free,                                                                                      \
  };
NORMALIZE_LIST(NORMALIZE_KERNEL)
#undef NORMALIZE_KERNEL
