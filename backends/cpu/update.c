/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizers' updates, in place. A gradient is dense or, with indices, rows: then rows that are not named have a
 * gradient of zero, which changes nothing for some rules and is computed for the others. */
#include "rows.h"

#include <string.h>

#define UPDATE_TYPES (HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64))

/* Elements of a cache line of the smaller type. */
#define GRAIN 16

typedef struct update_plan {
  helio_plan base;
  helio_operation operation;
  cpu_update_rule rule;
  helio_type type, index_type;
  size_t element, count;
  uint32_t states;                  /* weights and slots that are there */
  uint32_t state[CPU_UPDATE_SLOTS]; /* their places, as the rule wants them */
  uint32_t gradient;                /* its place; the indices follow, then the squares */
  bool by_rows, squares;            /* has it indices, has it squares */
  size_t rows, row, indices;        /* of the weights, elements of each, and how many are named */
  unsigned named_parts;             /* where only the rows that are named are touched */
} update_plan;

typedef struct update_work {
  const update_plan *plan;
  void *state[CPU_UPDATE_SLOTS];
  const unsigned char *gradient, *squares; /* squares: NULL where they are the gradient's own */
  cpu_indices indices;
  size_t *slots; /* of each row of the weights: 1 + which row of the gradient it has, 0 for none */
  double constants[CPU_UPDATE_CONSTANTS];
} update_work;

/* One operation's arguments and scalars. */
typedef struct update_kind {
  const char *inputs;
  uint8_t scalars[8]; /* which constant each one is */
} update_kind;

static const update_kind kinds[] = {
    {"VvTi", {CPU_UPDATE_RATE, CPU_UPDATE_DECAY, CPU_UPDATE_MOMENTUM}},
    {"VVVTit", {CPU_UPDATE_RATE, CPU_UPDATE_DECAY, CPU_UPDATE_ON_FIRST, CPU_UPDATE_ON_SECOND, CPU_UPDATE_EPSILON}},
    {"VVVTit",
     {CPU_UPDATE_RATE, CPU_UPDATE_DECAY, CPU_UPDATE_ON_FIRST, CPU_UPDATE_ON_SECOND, CPU_UPDATE_EPSILON, CPU_UPDATE_ON_M,
      CPU_UPDATE_ON_GRADIENT, CPU_UPDATE_ON_V}},
    {"VVvvTit", {CPU_UPDATE_RATE, CPU_UPDATE_DECAY, CPU_UPDATE_RHO, CPU_UPDATE_MOMENTUM, CPU_UPDATE_EPSILON}},
    {"VVTit", {CPU_UPDATE_RATE, CPU_UPDATE_DECAY, CPU_UPDATE_EPSILON}},
};

static const size_t kind_scalars[] = {3, 5, 8, 5, 3};

static cpu_update_rule rule_of(const helio_call *call, bool nesterov) {
  switch (call->operation) {
  case HELIO_OP_SGD_UPDATE:
    if (call_input(call, 1) == NULL) return CPU_UPDATE_SGD;
    return nesterov ? CPU_UPDATE_SGD_NESTEROV : CPU_UPDATE_SGD_MOMENTUM;
  case HELIO_OP_ADAM_UPDATE:
    return CPU_UPDATE_ADAM;
  case HELIO_OP_NADAM_UPDATE:
    return CPU_UPDATE_NADAM;
  case HELIO_OP_RMSPROP_UPDATE:
    if (call_input(call, 2) == NULL) return call_input(call, 3) == NULL ? CPU_UPDATE_RMSPROP : CPU_UPDATE_RMSPROP_MEAN;
    return call_input(call, 3) == NULL ? CPU_UPDATE_RMSPROP_MOMENTUM : CPU_UPDATE_RMSPROP_BOTH;
  default:
    return CPU_UPDATE_ADAGRAD;
  }
}

static uint32_t gradient_place(const helio_call *call) {
  return (uint32_t)strcspn(kinds[call->operation - HELIO_OP_SGD_UPDATE].inputs, "T");
}

/* NULL where they are absent or the rule has none. */
static const helio_argument *squares_of(const helio_call *call) {
  uint32_t place = gradient_place(call) + 2;
  return place < call->input_count ? call_input(call, place) : NULL;
}

/* Weights and slots have one shape. So has the gradient or, with indices, it is rows of the weights, and so are the
 * squares. */
static bool shapes_fit(const helio_call *call) {
  uint32_t gradient = gradient_place(call);
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
  uint32_t gradient = gradient_place(call);
  const helio_argument *weights = call_input(call, 0), *indices = call_input(call, gradient + 1);
  plan->operation = (helio_operation)call->operation;
  plan->type = (helio_type)weights->type;
  plan->element = call_type_size(weights->type);
  plan->count = call_element_count(weights);
  plan->gradient = gradient;
  for (uint32_t i = 0; i < gradient; i++) {
    if (call_input(call, i) != NULL) plan->state[plan->states++] = i;
  }
  plan->squares = squares_of(call) != NULL;
  size_t touched = (2 * plan->states + (plan->squares ? 2 : 1)) * plan->element;
  plan->base.empty = plan->count == 0;
  plan->base.parts = cpu_parts_for_bytes(plan->base.device, plan->count * touched);
  plan->by_rows = indices != NULL;
  if (!plan->by_rows) return;
  plan->index_type = (helio_type)indices->type;
  plan->rows = (size_t)weights->extent[0];
  plan->row = cpu_row_elements(weights);
  plan->indices = (size_t)indices->extent[0];
  plan->named_parts = cpu_parts_for_bytes(plan->base.device, plan->indices * plan->row * touched);
}

static helio_status update_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {kinds[call->operation - HELIO_OP_SGD_UPDATE].inputs, "", UPDATE_TYPES};
  helio_sgd_attributes attributes = {0};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK && call->operation == HELIO_OP_SGD_UPDATE)
    status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  if (attributes.reserved != 0) return host->fail(host, HELIO_NOT_SUPPORTED, "a reserved attribute is set");
  if (attributes.nesterov > 1) return host->fail(host, HELIO_INVALID_ARGUMENT, "nesterov is 0 or 1");
  if (!shapes_fit(call))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "weights, slots and gradient do not go together");
  update_plan *plan = (update_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->rule = rule_of(call, attributes.nesterov == 1);
  fill_plan(plan, call);
  answer->plan = &plan->base;
  answer->workspace = plan->by_rows ? plan->rows * sizeof(size_t) : 0;
  return HELIO_OK;
}

/* `count` elements of weights and slots from `at` on. The squares lie as the gradient does. */
static void update_span(const update_work *work, size_t at, const unsigned char *gradient, size_t count) {
  const update_plan *plan = work->plan;
  void *state[CPU_UPDATE_SLOTS];
  for (uint32_t i = 0; i < plan->states; i++) state[i] = (unsigned char *)work->state[i] + at * plan->element;
  bool squared = gradient != NULL && work->squares != NULL;
  const unsigned char *squares = squared ? work->squares + (gradient - work->gradient) : NULL;
  plan->base.device->vector->update(plan->rule, plan->type, state, gradient, squares, work->constants, count);
}

static void dense_part(void *argument, unsigned part, unsigned parts) {
  const update_work *work = argument;
  const update_plan *plan = work->plan;
  cpu_range range = cpu_part_range(plan->count, GRAIN, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  if (range.begin < range.end)
    update_span(work, range.begin, work->gradient + range.begin * plan->element, range.end - range.begin);
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

/* All rows; neighbours without a gradient go together. */
static void rows_part(void *argument, unsigned part, unsigned parts) {
  const update_work *work = argument;
  const update_plan *plan = work->plan;
  cpu_range rows = cpu_part_range(plan->rows, 1, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t row = rows.begin, next; row < rows.end; row = next) {
    size_t slot = work->slots[row];
    next = row + 1;
    while (slot == 0 && next < rows.end && work->slots[next] == 0) next++;
    const unsigned char *gradient = slot == 0 ? NULL : work->gradient + (slot - 1) * plan->row * plan->element;
    update_span(work, row * plan->row, gradient, (next - row) * plan->row);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

/* The rows that are named and no others. They are distinct, so parts do not meet. */
static void named_part(void *argument, unsigned part, unsigned parts) {
  const update_work *work = argument;
  const update_plan *plan = work->plan;
  cpu_range range = cpu_part_range(plan->indices, 1, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t i = range.begin; i < range.end; i++) {
    int64_t row = cpu_index_at(&work->indices, i);
    if (cpu_index_within(row, plan->rows))
      update_span(work, (size_t)row * plan->row, work->gradient + i * plan->row * plan->element, plan->row);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

/* Does a gradient of zero leave everything as it is? */
static bool zero_changes_nothing(const update_work *work) {
  cpu_update_rule rule = work->plan->rule;
  return work->constants[CPU_UPDATE_DECAY] == 0 && (rule == CPU_UPDATE_SGD || rule == CPU_UPDATE_ADAGRAD);
}

/* Reports the first index that names no row; −1 is none on purpose. Where all rows are updated, maps them. */
static void look_at_indices(const update_work *work, const helio_run *run, bool map) {
  const update_plan *plan = work->plan;
  bool good = true;
  if (map) memset(work->slots, 0, plan->rows * sizeof work->slots[0]);
  for (size_t i = 0; i < plan->indices; i++) {
    int64_t row = cpu_index_at(&work->indices, i);
    if (cpu_index_within(row, plan->rows)) {
      if (map) work->slots[row] = i + 1;
    } else if (row != -1 && good) {
      cpu_run_report(run, plan->operation, row);
      good = false;
    }
  }
}

static void read_constants(update_work *work, const helio_run *run) {
  size_t kind = (size_t)work->plan->operation - HELIO_OP_SGD_UPDATE;
  double *c = work->constants;
  for (size_t i = 0; i < kind_scalars[kind]; i++) c[kinds[kind].scalars[i]] = run_real(run, i);
  /* What is multiplied with is 1 − beta; rmsprop has both rho and 1 − rho. */
  bool adaptive = work->plan->operation == HELIO_OP_ADAM_UPDATE || work->plan->operation == HELIO_OP_NADAM_UPDATE;
  if (adaptive) c[CPU_UPDATE_ON_FIRST] = 1 - c[CPU_UPDATE_ON_FIRST];
  c[CPU_UPDATE_ON_SECOND] = 1 - (adaptive ? c[CPU_UPDATE_ON_SECOND] : c[CPU_UPDATE_RHO]);
}

static helio_status update_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const update_plan *plan = (const update_plan *)base;
  const helio_host *host = base->device->host;
  update_work work = {.plan = plan, .gradient = cpu_run_address(run, plan->gradient)};
  for (uint32_t i = 0; i < plan->states; i++) work.state[i] = cpu_run_address(run, plan->state[i]);
  read_constants(&work, run);
  if (!plan->by_rows) {
    cpu_plan_execute(base, dense_part, &work);
    return HELIO_OK;
  }
  bool map = !zero_changes_nothing(&work);
  if (plan->squares) work.squares = cpu_run_address(run, plan->gradient + 2);
  work.indices = (cpu_indices){cpu_run_address(run, plan->gradient + 1), plan->index_type, plan->indices};
  work.slots = (size_t *)(void *)cpu_run_workspace(run);
  if (work.slots == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "the workspace is missing");
  look_at_indices(&work, run, map);
  if (map) {
    cpu_plan_execute(base, rows_part, &work);
  } else {
    cpu_team_run(base->device->team, plan->named_parts, named_part, &work);
  }
  return HELIO_OK;
}

const helio_kernel cpu_kernel_sgd_update = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_SGD_UPDATE,
    .types = UPDATE_TYPES,
    .plan = update_plan_make,
    .run = update_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_adam_update = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_ADAM_UPDATE,
    .types = UPDATE_TYPES,
    .plan = update_plan_make,
    .run = update_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_nadam_update = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_NADAM_UPDATE,
    .types = UPDATE_TYPES,
    .plan = update_plan_make,
    .run = update_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_rmsprop_update = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_RMSPROP_UPDATE,
    .types = UPDATE_TYPES,
    .plan = update_plan_make,
    .run = update_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_adagrad_update = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_ADAGRAD_UPDATE,
    .types = UPDATE_TYPES,
    .plan = update_plan_make,
    .run = update_run,
    .plan_free = cpu_plan_free,
};
