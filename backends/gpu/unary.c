/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one operand, and the gradients of activations: element by element. */
#include "units.h"

/* Operation, which is also the kernel's name, and types. */
#define UNARY_LIST(X)                                                                                                  \
  X(neg, NEG, CALL_ARITHMETIC_TYPES)                                                                                   \
  X(abs, ABS, CALL_ARITHMETIC_TYPES)                                                                                   \
  X(square, SQUARE, CALL_ARITHMETIC_TYPES)                                                                             \
  X(sqrt, SQRT, CALL_FLOAT_TYPES)                                                                                      \
  X(rsqrt, RSQRT, CALL_FLOAT_TYPES)                                                                                    \
  X(exp, EXP, CALL_FLOAT_TYPES)                                                                                        \
  X(log, LOG, CALL_FLOAT_TYPES)                                                                                        \
  X(clip, CLIP, CALL_ARITHMETIC_TYPES)                                                                                 \
  X(relu, RELU, CALL_ARITHMETIC_TYPES)                                                                                 \
  X(sigmoid, SIGMOID, CALL_FLOAT_TYPES)                                                                                \
  X(tanh, TANH, CALL_FLOAT_TYPES)                                                                                      \
  X(softplus, SOFTPLUS, CALL_FLOAT_TYPES)                                                                              \
  X(swish, SWISH, CALL_FLOAT_TYPES)                                                                                    \
  X(gelu, GELU, CALL_FLOAT_TYPES)                                                                                      \
  X(elu, ELU, CALL_FLOAT_TYPES)                                                                                        \
  X(leaky_relu, LEAKY_RELU, CALL_FLOAT_TYPES)

typedef struct unary_row {
  const char *kernel;
  uint32_t types;
} unary_row;

static const unary_row rows[] = {
#define UNARY_ROW(lower, upper, types) [HELIO_OP_##upper] = {"unary_" #lower, types},
    UNARY_LIST(UNARY_ROW)
#undef UNARY_ROW
};

static const char *const gradients[] = {
    [HELIO_LINEAR] = "gradient_linear",     [HELIO_RELU] = "gradient_relu",
    [HELIO_SIGMOID] = "gradient_sigmoid",   [HELIO_TANH] = "gradient_tanh",
    [HELIO_SOFTPLUS] = "gradient_softplus", [HELIO_SWISH] = "gradient_swish",
    [HELIO_GELU] = "gradient_gelu",         [HELIO_GELU_TANH] = "gradient_gelu_tanh",
    [HELIO_ELU] = "gradient_elu",           [HELIO_LEAKY_RELU] = "gradient_leaky_relu",
};

typedef struct unary_plan {
  helio_plan base;
  vendor_function *function;
  size_t pack, pack_bytes;
  int64_t count;
} unary_plan;

static helio_status make_plan(helio_backend_device *device, const helio_call *call, const char *text,
                              const char *kernel, helio_plan_answer *answer) {
  const helio_argument *y = call_output(call);
  for (uint32_t i = 0; i < call->input_count; i++) {
    if (!call_same_shape(call_input(call, i), y))
      return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "input %u does not have the output's shape", i);
  }
  unary_plan *plan = (unary_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  size_t element = call_type_size(y->type);
  plan->pack = gpu_pack(element);
  plan->pack_bytes = plan->pack * element;
  plan->count = (int64_t)call_element_count(y);
  helio_status status = plan->base.empty ? HELIO_OK : gpu_kernel_find(device, text, y->type, kernel, &plan->function);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status gelu_kernel(helio_backend_device *device, const helio_call *call, const char **kernel) {
  const helio_host *host = device->host;
  helio_gelu_attributes attributes;
  helio_status status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  if (attributes.approximate > 1 || attributes.reserved != 0)
    return host->fail(host, HELIO_NOT_SUPPORTED, "GELU: an attribute is set that is unknown here");
  if (attributes.approximate == 1) *kernel = "unary_gelu_tanh";
  return HELIO_OK;
}

static helio_status unary_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const unary_row *row = &rows[call->operation];
  const call_signature signature = {"T", "T", row->types};
  const char *kernel = row->kernel;
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK && call->operation == HELIO_OP_GELU) status = gelu_kernel(device, call, &kernel);
  return status != HELIO_OK ? status : make_plan(device, call, "unary", kernel, answer);
}

static helio_status unary_run(helio_plan *base, const helio_run *run) {
  unary_plan *plan = (unary_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), y = gpu_run_address(run, 1);
  double first = run_real(run, 0), second = run_real(run, 1);
  int32_t wide = gpu_is_aligned(x | y, plan->pack_bytes);
  void *arguments[] = {&y, &x, &plan->count, &wide, &first, &second};
  gpu_grid grid = gpu_grid_over(base->device, (size_t)plan->count / (wide ? plan->pack : 1));
  return gpu_launch(base, run, plan->function, grid, arguments);
}

static helio_status gradient_plan_make(helio_backend_device *device, const helio_call *call,
                                       helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"TT", "T", CALL_ARITHMETIC_TYPES};
  helio_activation_attributes attributes;
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  uint32_t activation = attributes.activation;
  bool real = (CALL_FLOAT_TYPES & HELIO_TYPE_BIT(call_output(call)->type)) != 0;
  if (attributes.reserved != 0 || activation < HELIO_LINEAR || activation > (real ? HELIO_LEAKY_RELU : HELIO_RELU))
    return host->fail(host, HELIO_NOT_SUPPORTED, "ACTIVATION_GRAD: activation %u is unknown here", activation);
  return make_plan(device, call, "gradient", gradients[activation], answer);
}

static helio_status gradient_run(helio_plan *base, const helio_run *run) {
  unary_plan *plan = (unary_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address dy = gpu_run_address(run, 0), v = gpu_run_address(run, 1), dx = gpu_run_address(run, 2);
  double alpha = run_real(run, 0);
  int32_t wide = gpu_is_aligned(dy | v | dx, plan->pack_bytes);
  void *arguments[] = {&dx, &dy, &v, &plan->count, &wide, &alpha};
  gpu_grid grid = gpu_grid_over(base->device, (size_t)plan->count / (wide ? plan->pack : 1));
  return gpu_launch(base, run, plan->function, grid, arguments);
}

#define UNARY_KERNEL(lower, upper, accepted)                                                                           \
  const helio_kernel gpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = accepted,                                                                                               \
      .plan = unary_plan_make,                                                                                         \
      .run = unary_run,                                                                                                \
      .plan_free = gpu_plan_free,                                                                                      \
  };
UNARY_LIST(UNARY_KERNEL)
#undef UNARY_KERNEL

const helio_kernel gpu_kernel_activation_grad = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_ACTIVATION_GRAD,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = gradient_plan_make,
    .run = gradient_run,
    .plan_free = gpu_plan_free,
};
