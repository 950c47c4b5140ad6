/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, as plugin.h defines them: each element is a function of key, step and its own number alone. */
#include "units.h"

#include <math.h>

#define WIDE_TYPES (HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64))

/* Operation, which is also the kernel's name, and types. */
#define RANDOM_LIST(X)                                                                                                 \
  X(random_bits, RANDOM_BITS, HELIO_TYPE_BIT(HELIO_INT32))                                                             \
  X(random_uniform, RANDOM_UNIFORM, WIDE_TYPES)                                                                        \
  X(random_normal, RANDOM_NORMAL, WIDE_TYPES)                                                                          \
  X(dropout, DROPOUT, CALL_FLOAT_TYPES)

typedef struct random_row {
  const char *kernel;
  uint32_t types;
} random_row;

static const random_row rows[] = {
#define RANDOM_ROW(lower, upper, types) [HELIO_OP_##upper] = {#lower, types},
    RANDOM_LIST(RANDOM_ROW)
#undef RANDOM_ROW
};

/* struct draw of kernels/random.cu. */
typedef struct draw {
  uint64_t key, step, base;
  int64_t count;
  int32_t wide, unused;
} draw;

typedef struct random_plan {
  helio_plan base;
  vendor_function *function;
  unsigned words; /* of an element */
  size_t element;
  int64_t count;
} random_plan;

static helio_status random_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const random_row *row = &rows[call->operation];
  const bool dropout = call->operation == HELIO_OP_DROPOUT;
  const call_signature signature = {dropout ? "T" : "", "T", row->types};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *y = call_output(call);
  if (dropout && !call_same_shape(call_input(call, 0), y))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "DROPOUT: x does not have the output's shape");
  random_plan *plan = (random_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  bool pair = call->operation == HELIO_OP_RANDOM_NORMAL ||
              (call->operation == HELIO_OP_RANDOM_UNIFORM && y->type == HELIO_FLOAT64);
  plan->words = pair ? 2 : 1;
  plan->element = call_type_size(y->type);
  plan->count = (int64_t)call_element_count(y);
  status = plan->base.empty ? HELIO_OK : gpu_kernel_find(device, "random", y->type, row->kernel, &plan->function);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

/* A block of four words makes a pack, if it lies where a pack may. */
static draw draw_make(const random_plan *plan, const helio_run *run, gpu_address addresses) {
  draw of = {.key = (uint64_t)run_integer(run, 0),
             .step = (uint64_t)run_integer(run, 1),
             .base = (uint64_t)run_integer(run, 2) * plan->words,
             .count = plan->count};
  of.wide = of.base % 4 == 0 && gpu_is_aligned(addresses, 4 / plan->words * plan->element);
  return of;
}

/* One thread for each block of words. */
static gpu_grid random_grid(const random_plan *plan) {
  return gpu_grid_over(plan->base.device, (size_t)plan->count * plan->words / 4 + 1);
}

static helio_status random_run(helio_plan *base, const helio_run *run) {
  random_plan *plan = (random_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address y = gpu_run_address(run, 0);
  draw of = draw_make(plan, run, y);
  double low = run_real(run, 3), high = run_real(run, 4); /* or mean and deviation */
  void *arguments[] = {&y, &of, &low, &high};
  return gpu_launch(base, run, plan->function, random_grid(plan), arguments);
}

/* How many of the 2²⁴ uniform numbers are below the rate. */
static int32_t dropout_limit(double rate) {
  double limit = ceil(rate * 0x1p24);
  return !(limit > 0) ? 0 : limit > 0x1p24 ? 1 << 24 : (int32_t)limit;
}

static helio_status dropout_run(helio_plan *base, const helio_run *run) {
  random_plan *plan = (random_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), y = gpu_run_address(run, 1);
  draw of = draw_make(plan, run, x | y);
  int32_t limit = dropout_limit(run_real(run, 3));
  double kept = 1.0 - run_real(run, 3);
  void *arguments[] = {&y, &x, &of, &limit, &kept};
  return gpu_launch(base, run, plan->function, random_grid(plan), arguments);
}

#define RANDOM_KERNEL(lower, upper, accepted)                                                                          \
  const helio_kernel gpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = accepted,                                                                                               \
      .plan = random_plan_make,                                                                                        \
      .run = HELIO_OP_##upper == HELIO_OP_DROPOUT ? dropout_run : random_run,                                          \
      .plan_free = gpu_plan_free,                                                                                      \
  };
RANDOM_LIST(RANDOM_KERNEL)
#undef RANDOM_KERNEL
