/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizers' updates, in place. A gradient is dense or, with indices, rows: then rows that are not named have a
 * gradient of zero, which changes nothing for some rules and is computed for the others. */
#include "arrange.h"

#include <string.h>

#define UPDATE_TYPES (HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64))

/* As in kernels/update.cu, and so are the two structs that follow. */
enum { SGD = 1, SGD_MOMENTUM, SGD_NESTEROV, ADAM, NADAM, RMSPROP, ADAGRAD };

typedef struct settings {
  double rate, decay, momentum, rho, epsilon;
  double on_first, on_second;
  double on_m, on_gradient, on_v;
  int32_t rule, unused;
} settings;

typedef struct rows_given {
  int64_t count, row;
  int64_t rows;
  uint32_t operation;
  int32_t wide;
} rows_given;

/* Weights and slots. */
#define STATES 4

typedef struct update_plan {
  helio_plan base;
  vendor_function *dense, *named, *map, *all; /* the first, or the other three */
  int32_t rule;
  int64_t count;         /* of weights */
  uint32_t gradient;     /* its place; the indices follow, then the squares */
  bool present[STATES];  /* weights and slots */
  bool by_rows, squares; /* has it indices, has it squares */
  rows_given given;
} update_plan;

static const char *inputs_of(uint32_t operation) {
  switch (operation) {
  case HELIO_OP_SGD_UPDATE:
    return "VvTi";
  case HELIO_OP_RMSPROP_UPDATE:
    return "VVvvTit";
  case HELIO_OP_ADAGRAD_UPDATE:
    return "VVTit";
  default: /* Adam and Nadam */
    return "VVVTit";
  }
}

static int32_t rule_of(const helio_call *call, bool nesterov) {
  switch (call->operation) {
  case HELIO_OP_SGD_UPDATE:
    if (call_input(call, 1) == NULL) return SGD;
    return nesterov ? SGD_NESTEROV : SGD_MOMENTUM;
  case HELIO_OP_ADAM_UPDATE:
    return ADAM;
  case HELIO_OP_NADAM_UPDATE:
    return NADAM;
  case HELIO_OP_RMSPROP_UPDATE:
    return RMSPROP;
  default:
    return ADAGRAD;
  }
}

static uint32_t gradient_place(uint32_t operation) {
  return (uint32_t)strcspn(inputs_of(operation), "T");
}

/* NULL where they are absent or the rule has none. */
static const helio_argument *squares_of(const helio_call *call) {
  uint32_t place = gradient_place(call->operation) + 2;
  return place < call->input_count ? call_input(call, place) : NULL;
}

/* Weights and slots have one shape. So has the gradient or, with indices, it is rows of the weights, and so are the
 * squares. */
static bool shapes_fit(const helio_call *call) {
  uint32_t gradient = gradient_place(call->operation);
  const helio_argument *weights = call_input(call, 0), *indices = call_input(call, gradient + 1);
  helio_argument expected = *weights;
  for (uint32_t i = 1; i < gradient; i++) {
    if (call_input(call, i) != NULL && !call_same_shape(call_input(call, i), weights)) return false;
  }
  if (indices != NULL) {
    if (weights->rank < 1 || indices->rank != 1) return false;
    expected.extent[0] = indices->extent[0];
  }
  const helio_argument *squares = squares_of(call);
  if (squares != NULL && (indices == NULL || !call_same_shape(squares, &expected))) return false;
  return call_same_shape(call_input(call, gradient), &expected);
}

static void fill_plan(update_plan *plan, const helio_call *call) {
  plan->gradient = gradient_place(call->operation);
  const helio_argument *weights = call_input(call, 0), *indices = call_input(call, plan->gradient + 1);
  plan->count = (int64_t)call_element_count(weights);
  plan->base.empty = plan->count == 0;
  for (uint32_t i = 0; i < plan->gradient; i++) plan->present[i] = call_input(call, i) != NULL;
  plan->squares = squares_of(call) != NULL;
  plan->by_rows = indices != NULL;
  if (!plan->by_rows) return;
  plan->given = (rows_given){.count = indices->extent[0],
                             .row = 1,
                             .rows = weights->extent[0],
                             .operation = call->operation,
                             .wide = indices->type == HELIO_INT64};
  for (uint32_t i = 1; i < weights->rank; i++) plan->given.row *= weights->extent[i];
}

static helio_status find_kernels(update_plan *plan, uint32_t type) {
  helio_backend_device *device = plan->base.device;
  if (!plan->by_rows) return gpu_kernel_find(device, "update", type, "update_dense", &plan->dense);
  helio_status status = gpu_kernel_find(device, "update", type, "update_named", &plan->named);
  if (status == HELIO_OK) status = gpu_kernel_find(device, "update", type, "map_rows", &plan->map);
  if (status == HELIO_OK) status = gpu_kernel_find(device, "update", type, "update_all", &plan->all);
  return status;
}

static helio_status update_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {inputs_of(call->operation), "", UPDATE_TYPES};
  helio_sgd_attributes attributes = {0};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK && call->operation == HELIO_OP_SGD_UPDATE)
    status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  if (attributes.reserved != 0) return host->fail(host, HELIO_NOT_SUPPORTED, "a reserved attribute is set");
  if (attributes.nesterov > 1) return host->fail(host, HELIO_INVALID_ARGUMENT, "nesterov is 0 or 1");
  if (!shapes_fit(call))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "weights, slots and gradient do not go together");
  update_plan *plan = (update_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  fill_plan(plan, call);
  plan->rule = rule_of(call, attributes.nesterov == 1);
  status = find_kernels(plan, call_input(call, 0)->type);
  size_t map = plan->by_rows ? (size_t)plan->given.rows * sizeof(int64_t) : 0;
  return gpu_plan_finish(&plan->base, status, map, answer);
}

/* The scalars, in the order of each operation. What is multiplied with is 1 − beta; rmsprop has both rho and 1 − rho.
 */
static settings read_settings(const update_plan *plan, const helio_run *run) {
  settings c = {.rate = run_real(run, 0), .decay = run_real(run, 1), .rule = plan->rule};
  switch (plan->base.operation) {
  case HELIO_OP_SGD_UPDATE:
    c.momentum = run_real(run, 2);
    break;
  case HELIO_OP_NADAM_UPDATE:
    c.on_m = run_real(run, 5);
    c.on_gradient = run_real(run, 6);
    c.on_v = run_real(run, 7);
    /* fallthrough */
  case HELIO_OP_ADAM_UPDATE:
    c.on_first = 1 - run_real(run, 2);
    c.on_second = 1 - run_real(run, 3);
    c.epsilon = run_real(run, 4);
    break;
  case HELIO_OP_RMSPROP_UPDATE:
    c.rho = run_real(run, 2);
    c.on_second = 1 - c.rho;
    c.momentum = run_real(run, 3);
    c.epsilon = run_real(run, 4);
    break;
  default:
    c.epsilon = run_real(run, 2);
  }
  return c;
}

/* Does a gradient of zero leave everything as it is? */
static bool zero_changes_nothing(const settings *c) {
  return c->decay == 0 && (c->rule == SGD || c->rule == ADAGRAD);
}

static helio_status rows_run(update_plan *plan, const helio_run *run, gpu_address state[STATES], settings *c) {
  const helio_backend_device *device = plan->base.device;
  gpu_address gradient = gpu_run_address(run, plan->gradient), indices = gpu_run_address(run, plan->gradient + 1);
  gpu_address squares = plan->squares ? gpu_run_address(run, plan->gradient + 2) : 0, word = gpu_run_status(run);
  gpu_address map = gpu_run_workspace(run);
  rows_given *given = &plan->given;
  bool named = zero_changes_nothing(c);
  if (given->count > 0 && !named) {
    void *arguments[] = {&indices, &map, given, &word};
    gpu_grid grid = gpu_grid_over(device, (size_t)given->count);
    helio_status status = gpu_launch(&plan->base, run, plan->map, grid, arguments);
    if (status != HELIO_OK) return status;
  }
  void *of_named[] = {&state[0], &state[1], &state[2], &state[3], &gradient, &squares, &indices, given, c, &word};
  void *of_all[] = {&state[0], &state[1], &state[2], &state[3], &gradient, &squares, &indices, &map, given, c};
  gpu_grid grid = gpu_grid_over(device, (size_t)(named ? given->count * given->row : plan->count));
  return gpu_launch(&plan->base, run, named ? plan->named : plan->all, grid, named ? of_named : of_all);
}

static helio_status update_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  update_plan *plan = (update_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  settings c = read_settings(plan, run);
  gpu_address state[STATES];
  for (size_t i = 0; i < STATES; i++) state[i] = plan->present[i] ? gpu_run_address(run, i) : 0;
  if (plan->by_rows) return rows_run(plan, run, state, &c);
  gpu_address gradient = gpu_run_address(run, plan->gradient);
  void *arguments[] = {&state[0], &state[1], &state[2], &state[3], &gradient, &plan->count, &c};
  return gpu_launch(base, run, plan->dense, gpu_grid_over(base->device, (size_t)plan->count), arguments);
}

#define UPDATE_LIST(X)                                                                                                 \
  X(sgd_update, SGD_UPDATE)                                                                                            \
  X(adam_update, ADAM_UPDATE)                                                                                          \
  X(nadam_update, NADAM_UPDATE)                                                                                        \
  X(rmsprop_update, RMSPROP_UPDATE)                                                                                    \
  X(adagrad_update, ADAGRAD_UPDATE)

#define UPDATE_KERNEL(lower, upper)                                                                                    \
  const helio_kernel gpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = UPDATE_TYPES,                                                                                           \
      .plan = update_plan_make,                                                                                        \
      .run = update_run,                                                                                               \
      .plan_free = gpu_plan_free,                                                                                      \
  };
UPDATE_LIST(UPDATE_KERNEL)
#undef UPDATE_KERNEL
