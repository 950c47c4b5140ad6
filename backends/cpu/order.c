/* SPDX-License-Identifier: Apache-2.0 */
/* argmax, top_k and in_top_k: the largest elements and where they are. */
#include "rows.h"

#include <math.h>

/* Columns that are looked through at a time. */
#define BLOCK 256

typedef struct order_plan {
  helio_plan base;
  helio_type type, index_type;
  size_t element;
  size_t outer, extent, inner; /* the axis, and the elements before and behind it */
  size_t k;
} order_plan;

typedef struct order_work {
  const order_plan *plan;
  const unsigned char *x;
  unsigned char *y;
  int32_t *places;
  cpu_indices targets;
} order_work;

/* The plan of an operation that looks along axis `axis` of x; NULL if there is no memory. */
static order_plan *order_plan_new(helio_backend_device *device, const helio_argument *x, uint32_t axis) {
  order_plan *plan = (order_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return NULL;
  plan->type = (helio_type)x->type;
  plan->element = call_type_size(x->type);
  plan->outer = plan->inner = 1;
  plan->extent = (size_t)x->extent[axis];
  for (uint32_t i = 0; i < axis; i++) plan->outer *= (size_t)x->extent[i];
  for (uint32_t i = axis + 1; i < x->rank; i++) plan->inner *= (size_t)x->extent[i];
  plan->base.parts = cpu_parts_for_bytes(device, call_element_count(x) * plan->element);
  return plan;
}

/* The output has the input's axes without that one. */
static bool argmax_fits(const helio_argument *x, const helio_argument *y, uint32_t axis) {
  if (axis >= x->rank || y->rank != x->rank - 1 || x->extent[axis] == 0) return false;
  for (uint32_t i = 0; i < y->rank; i++) {
    if (y->extent[i] != x->extent[i < axis ? i : i + 1]) return false;
  }
  return y->type == HELIO_INT64;
}

static helio_status argmax_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"T", "?", CALL_ARITHMETIC_TYPES};
  helio_axis_attributes attributes;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  if (attributes.reserved != 0) return host->fail(host, HELIO_NOT_SUPPORTED, "ARGMAX: a reserved attribute is set");
  if (!argmax_fits(call_input(call, 0), call_output(call), attributes.axis))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "ARGMAX: the output is not the input without the axis");
  order_plan *plan = order_plan_new(device, call_input(call, 0), attributes.axis);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->base.empty = plan->outer * plan->inner == 0;
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

static void argmax_part(void *argument, unsigned part, unsigned parts) {
  const order_work *work = argument;
  const order_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  int64_t *places = (int64_t *)(void *)work->y;
  size_t blocks = (plan->inner + BLOCK - 1) / BLOCK;
  cpu_range range = cpu_part_range(plan->outer * blocks, 1, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_EXACT);
  if (plan->inner == 1)
    vector->argmax_rows(plan->type, places + range.begin, work->x + range.begin * plan->extent * plan->element,
                        plan->extent, range.end - range.begin, plan->extent);
  for (size_t unit = range.begin; plan->inner > 1 && unit < range.end; unit++) {
    size_t outer = unit / blocks, first = unit % blocks * BLOCK;
    size_t count = plan->inner - first < BLOCK ? plan->inner - first : BLOCK;
    vector->argmax_columns(plan->type, places + outer * plan->inner + first,
                           work->x + (outer * plan->extent * plan->inner + first) * plan->element, plan->inner,
                           plan->extent, count);
  }
  cpu_float_end(CPU_FLOAT_EXACT, saved);
}

static helio_status argmax_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  order_work work = {.plan = (const order_plan *)base, .x = cpu_run_address(run, 0), .y = cpu_run_address(run, 1)};
  cpu_plan_execute(base, argmax_part, &work);
  return HELIO_OK;
}

/* k is the extent of the outputs' last axis. */
static bool top_k_fits(const helio_argument *x, const helio_argument *y, const helio_argument *places) {
  if (x->rank < 1 || y->rank != x->rank || !call_same_shape(y, places) || places->type != HELIO_INT32) return false;
  for (uint32_t i = 0; i + 1 < x->rank; i++) {
    if (y->extent[i] != x->extent[i]) return false;
  }
  return y->extent[y->rank - 1] <= x->extent[x->rank - 1];
}

static helio_status top_k_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"T", "T?", CALL_ARITHMETIC_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *y = call_output(call);
  if (!top_k_fits(x, y, call_output_at(call, 1)))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "TOP_K: the outputs do not have the input's rows");
  if (x->extent[x->rank - 1] > INT32_MAX)
    return host->fail(host, HELIO_NOT_SUPPORTED, "TOP_K: places of so long an axis do not fit int32");
  order_plan *plan = order_plan_new(device, x, x->rank - 1);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->k = (size_t)y->extent[y->rank - 1];
  plan->base.empty = plan->outer * plan->k == 0;
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

static void top_k_part(void *argument, unsigned part, unsigned parts) {
  const order_work *work = argument;
  const order_plan *plan = work->plan;
  cpu_range rows = cpu_part_range(plan->outer, 1, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_EXACT);
  for (size_t row = rows.begin; row < rows.end; row++)
    plan->base.device->vector->top_k(plan->type, work->y + row * plan->k * plan->element, work->places + row * plan->k,
                                     work->x + row * plan->extent * plan->element, plan->extent, plan->k);
  cpu_float_end(CPU_FLOAT_EXACT, saved);
}

static helio_status top_k_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  order_work work = {.plan = (const order_plan *)base,
                     .x = cpu_run_address(run, 0),
                     .y = cpu_run_address(run, 1),
                     .places = (int32_t *)(void *)cpu_run_address(run, 2)};
  cpu_plan_execute(base, top_k_part, &work);
  return HELIO_OK;
}

static helio_status in_top_k_plan_make(helio_backend_device *device, const helio_call *call,
                                       helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"TI", "B", CALL_FLOAT_TYPES};
  helio_top_k_attributes attributes;
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *targets = call_input(call, 1);
  if (attributes.reserved != 0) return host->fail(host, HELIO_NOT_SUPPORTED, "IN_TOP_K: a reserved attribute is set");
  if (x->rank != 2 || targets->rank != 1 || targets->extent[0] != x->extent[0] ||
      !call_same_shape(targets, call_output(call)))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "IN_TOP_K: there is not one target for each row");
  order_plan *plan = order_plan_new(device, x, 1);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->index_type = (helio_type)targets->type;
  plan->k = attributes.k;
  plan->base.empty = plan->outer == 0;
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

static bool in_top_k(const order_work *work, size_t row) {
  const order_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  int64_t target = cpu_index_at(&work->targets, row);
  double value;
  if (!cpu_index_within(target, plan->extent)) return false;
  const unsigned char *x = work->x + row * plan->extent * plan->element;
  vector->cast(HELIO_FLOAT64, plan->type, &value, x + (size_t)target * plan->element, 1);
  return isfinite(value) && vector->count_above(plan->type, x, plan->extent, value) < plan->k;
}

static void in_top_k_part(void *argument, unsigned part, unsigned parts) {
  const order_work *work = argument;
  cpu_range rows = cpu_part_range(work->plan->outer, CPU_ALIGNMENT, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_EXACT);
  for (size_t row = rows.begin; row < rows.end; row++) work->y[row] = in_top_k(work, row);
  cpu_float_end(CPU_FLOAT_EXACT, saved);
}

static helio_status in_top_k_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const order_plan *plan = (const order_plan *)base;
  order_work work = {.plan = plan, .x = cpu_run_address(run, 0), .y = cpu_run_address(run, 2)};
  work.targets = (cpu_indices){cpu_run_address(run, 1), plan->index_type, plan->outer};
  cpu_plan_execute(base, in_top_k_part, &work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_argmax = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_ARGMAX,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = argmax_plan_make,
    .run = argmax_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_top_k = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_TOP_K,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = top_k_plan_make,
    .run = top_k_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_in_top_k = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_IN_TOP_K,
    .types = CALL_FLOAT_TYPES,
    .plan = in_top_k_plan_make,
    .run = in_top_k_run,
    .plan_free = cpu_plan_free,
};
