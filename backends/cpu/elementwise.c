/* SPDX-License-Identifier: Apache-2.0 */
/* relu and add_n: operations on tensors of one shape, element by element. (cast.c has the casts, broadcast.c the
 * arithmetic of two operands.) */
#include "cpu.h"

#include <string.h>

typedef struct elementwise_plan {
  helio_plan base;
  helio_type type;
  size_t element;
  size_t count;
  uint32_t inputs;
} elementwise_plan;

typedef struct elementwise_run {
  const elementwise_plan *plan;
  const helio_run *run;
} elementwise_run;

/* Elements of a cache line of the smallest type: parts of different threads share none. */
#define GRAIN 64

static helio_status elementwise_plan_make(helio_backend_device *device, const helio_call *call,
                                          helio_plan_answer *answer, const char *inputs) {
  const call_signature signature = {inputs, "T", CALL_ARITHMETIC_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  for (uint32_t i = 0; i < call->input_count; i++) {
    if (!call_same_shape(call_input(call, i), call_output(call)))
      return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "input %u does not have the output's shape", i);
  }
  elementwise_plan *plan = (elementwise_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->type = (helio_type)call_output(call)->type;
  plan->element = call_type_size(plan->type);
  plan->count = call_element_count(call_output(call));
  plan->inputs = call->input_count;
  plan->base.empty = plan->count == 0;
  plan->base.parts = cpu_parts_for_bytes(device, plan->count * plan->element * (plan->inputs + 1));
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

static helio_status elementwise_execute(helio_plan *base, const helio_run *run, cpu_team_function *part) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  elementwise_run work = {(const elementwise_plan *)base, run};
  cpu_plan_execute(base, part, &work);
  return HELIO_OK;
}

static helio_status relu_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  return elementwise_plan_make(device, call, answer, "T");
}

static void relu_part(void *argument, unsigned part, unsigned parts) {
  const elementwise_run *work = argument;
  const elementwise_plan *plan = work->plan;
  cpu_range range = cpu_part_range(plan->count, GRAIN, part, parts);
  const unsigned char *x = cpu_run_address(work->run, 0) + range.begin * plan->element;
  unsigned char *y = cpu_run_address(work->run, 1) + range.begin * plan->element;
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  plan->base.device->vector->relu(plan->type, y, x, range.end - range.begin);
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status relu_run(helio_plan *plan, const helio_run *run) {
  return elementwise_execute(plan, run, relu_part);
}

static helio_status add_n_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  return elementwise_plan_make(device, call, answer, "T*");
}

/* Elements that are summed at a time; the running sum stays in the first cache. */
#define ADD_CHUNK 512

/* Any input may lie where the output does, so nothing is written before all inputs of the chunk are read. Halves are
 * added in float32 and rounded once. */
static void add_n_chunk(const elementwise_run *work, size_t from, size_t count) {
  const elementwise_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  bool half = plan->type == HELIO_FLOAT16 || plan->type == HELIO_BFLOAT16;
  helio_type type = half ? HELIO_FLOAT32 : plan->type;
  _Alignas(64) unsigned char sum[ADD_CHUNK * 8];
  _Alignas(64) unsigned char next[ADD_CHUNK * 4];
  vector->cast(type, plan->type, sum, cpu_run_address(work->run, 0) + from * plan->element, count);
  for (uint32_t i = 1; i < plan->inputs; i++) {
    const unsigned char *x = cpu_run_address(work->run, i) + from * plan->element;
    if (half) {
      vector->cast(type, plan->type, next, x, count);
      x = next;
    }
    vector->arithmetic(CPU_ADD, CPU_FORM_BOTH, type, sum, sum, x, count);
  }
  vector->cast(plan->type, type, cpu_run_address(work->run, plan->inputs) + from * plan->element, sum, count);
}

static void add_n_part(void *argument, unsigned part, unsigned parts) {
  const elementwise_run *work = argument;
  cpu_range range = cpu_part_range(work->plan->count, GRAIN, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t at = range.begin; at < range.end; at += ADD_CHUNK) {
    size_t left = range.end - at;
    add_n_chunk(work, at, left < ADD_CHUNK ? left : ADD_CHUNK);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status add_n_run(helio_plan *plan, const helio_run *run) {
  return elementwise_execute(plan, run, add_n_part);
}

const helio_kernel cpu_kernel_relu = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_RELU,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = relu_plan,
    .run = relu_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_add_n = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_ADD_N,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = add_n_plan,
    .run = add_n_run,
    .plan_free = cpu_plan_free,
};
