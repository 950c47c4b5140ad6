/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one operand, and the gradients of activations: element by element. */
#include "cpu.h"

/* Elements of a cache line of the smallest type: parts of different threads share none. */
#define GRAIN 64

/* Operation, function, types, and how many times a plain copy's time it takes: by polynomials, and in float64, where
 * the C library is called. */
#define UNARY_LIST(X)                                                                                                  \
  X(neg, NEG, CPU_NEG, CALL_ARITHMETIC_TYPES, 1, 1)                                                                    \
  X(abs, ABS, CPU_ABS, CALL_ARITHMETIC_TYPES, 1, 1)                                                                    \
  X(square, SQUARE, CPU_SQUARE, CALL_ARITHMETIC_TYPES, 1, 1)                                                           \
  X(sqrt, SQRT, CPU_SQRT, CALL_FLOAT_TYPES, 1, 2)                                                                      \
  X(rsqrt, RSQRT, CPU_RSQRT, CALL_FLOAT_TYPES, 2, 3)                                                                   \
  X(exp, EXP, CPU_EXP, CALL_FLOAT_TYPES, 2, 8)                                                                         \
  X(log, LOG, CPU_LOG, CALL_FLOAT_TYPES, 2, 8)                                                                         \
  X(clip, CLIP, CPU_CLIP, CALL_ARITHMETIC_TYPES, 1, 1)                                                                 \
  X(sigmoid, SIGMOID, CPU_SIGMOID, CALL_FLOAT_TYPES, 3, 8)                                                             \
  X(tanh, TANH, CPU_TANH, CALL_FLOAT_TYPES, 4, 16)                                                                     \
  X(softplus, SOFTPLUS, CPU_SOFTPLUS, CALL_FLOAT_TYPES, 6, 20)                                                         \
  X(swish, SWISH, CPU_SWISH, CALL_FLOAT_TYPES, 3, 8)                                                                   \
  X(gelu, GELU, CPU_GELU, CALL_FLOAT_TYPES, 5, 20)                                                                     \
  X(elu, ELU, CPU_ELU, CALL_FLOAT_TYPES, 2, 12)                                                                        \
  X(leaky_relu, LEAKY_RELU, CPU_LEAKY_RELU, CALL_FLOAT_TYPES, 1, 1)

typedef struct unary_row {
  cpu_unary function;
  uint32_t types;
  uint8_t weight, weight_f64;
} unary_row;

static const unary_row rows[] = {
#define UNARY_ROW(lower, upper, function, types, weight, weight_f64)                                                   \
  [HELIO_OP_##upper] = {function, types, weight, weight_f64},
    UNARY_LIST(UNARY_ROW)
#undef UNARY_ROW
};

typedef struct unary_plan {
  helio_plan base;
  cpu_unary function;
  uint32_t activation; /* of gradients */
  helio_type type;
  size_t element;
  size_t count;
} unary_plan;

typedef struct unary_work {
  const unary_plan *plan;
  const unsigned char *x, *dy;
  unsigned char *y;
  double parameters[2];
} unary_work;

static helio_status plan_new(helio_backend_device *device, const helio_call *call, unsigned weight,
                             helio_plan_answer *answer, unary_plan **result) {
  const helio_argument *y = call_output(call);
  for (uint32_t i = 0; i < call->input_count; i++) {
    if (!call_same_shape(call_input(call, i), y))
      return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "input %u does not have the output's shape", i);
  }
  unary_plan *plan = (unary_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->type = (helio_type)y->type;
  plan->element = call_type_size(y->type);
  plan->count = call_element_count(y);
  plan->base.empty = plan->count == 0;
  plan->base.parts = cpu_parts_for_bytes(device, plan->count * plan->element * (call->input_count + 1) * weight);
  answer->plan = &plan->base;
  answer->workspace = 0;
  *result = plan;
  return HELIO_OK;
}

static helio_status gelu_function(helio_backend_device *device, const helio_call *call, cpu_unary *function) {
  const helio_host *host = device->host;
  helio_gelu_attributes attributes;
  helio_status status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  if (attributes.approximate > 1 || attributes.reserved != 0)
    return host->fail(host, HELIO_NOT_SUPPORTED, "GELU: an attribute is set that is unknown here");
  if (attributes.approximate == 1) *function = CPU_GELU_TANH;
  return HELIO_OK;
}

static helio_status unary_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const unary_row *row = &rows[call->operation];
  const call_signature signature = {"T", "T", row->types};
  cpu_unary function = row->function;
  unary_plan *plan;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK && function == CPU_GELU) status = gelu_function(device, call, &function);
  if (status != HELIO_OK) return status;
  unsigned weight = call_output(call)->type == HELIO_FLOAT64 ? row->weight_f64 : row->weight;
  status = plan_new(device, call, weight, answer, &plan);
  if (status == HELIO_OK) plan->function = function;
  return status;
}

static void unary_part(void *argument, unsigned part, unsigned parts) {
  const unary_work *work = argument;
  const unary_plan *plan = work->plan;
  cpu_range range = cpu_part_range(plan->count, GRAIN, part, parts);
  size_t at = range.begin * plan->element;
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  plan->base.device->vector->unary(plan->function, plan->type, work->y + at, work->x + at, range.end - range.begin,
                                   work->parameters);
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status unary_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  unary_work work = {.plan = (const unary_plan *)base,
                     .x = cpu_run_address(run, 0),
                     .y = cpu_run_address(run, 1),
                     .parameters = {run_real(run, 0), run_real(run, 1)}};
  cpu_plan_execute(base, unary_part, &work);
  return HELIO_OK;
}

/* The gradient of an activation takes about as long as the activation. */
static helio_status gradient_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"TT", "T", CALL_ARITHMETIC_TYPES};
  helio_activation_attributes attributes;
  unary_plan *plan;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  uint32_t type = call_output(call)->type, activation = attributes.activation;
  bool real = (CALL_FLOAT_TYPES & HELIO_TYPE_BIT(type)) != 0;
  if (attributes.reserved != 0 || activation < HELIO_LINEAR || activation > (real ? HELIO_LEAKY_RELU : HELIO_RELU))
    return host->fail(host, HELIO_NOT_SUPPORTED, "ACTIVATION_GRAD: activation %u is unknown here", activation);
  bool formula = activation >= HELIO_SOFTPLUS && activation <= HELIO_GELU_TANH;
  status = plan_new(device, call, !formula ? 1 : type == HELIO_FLOAT64 ? 8 : 3, answer, &plan);
  if (status == HELIO_OK) plan->activation = activation;
  return status;
}

static void gradient_part(void *argument, unsigned part, unsigned parts) {
  const unary_work *work = argument;
  const unary_plan *plan = work->plan;
  cpu_range range = cpu_part_range(plan->count, GRAIN, part, parts);
  size_t at = range.begin * plan->element;
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  plan->base.device->vector->activation_gradient(plan->activation, plan->type, work->y + at, work->dy + at,
                                                 work->x + at, range.end - range.begin, work->parameters[0]);
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status gradient_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  unary_work work = {.plan = (const unary_plan *)base,
                     .dy = cpu_run_address(run, 0),
                     .x = cpu_run_address(run, 1),
                     .y = cpu_run_address(run, 2),
                     .parameters = {run_real(run, 0)}};
  cpu_plan_execute(base, gradient_part, &work);
  return HELIO_OK;
}

#define UNARY_KERNEL(lower, upper, function_of, accepted, weight, weight_f64)                                          \
  const helio_kernel cpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = accepted,                                                                                               \
      .plan = unary_plan_make,                                                                                         \
      .run = unary_run,                                                                                                \
      .plan_free = cpu_plan_free,                                                                                      \
  };
UNARY_LIST(UNARY_KERNEL)
#undef UNARY_KERNEL

const helio_kernel cpu_kernel_activation_grad = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_ACTIVATION_GRAD,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = gradient_plan,
    .run = gradient_run,
    .plan_free = cpu_plan_free,
};
