/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, as plugin.h defines them: each element is a function of key, step and its own number alone. */
#include "cpu.h"

#include <math.h>

/* Elements of a cache line of the smallest type: parts of different threads share none. */
#define GRAIN 64

/* Elements that are made of words at a time. */
#define PORTION 128

typedef struct random_plan {
  helio_plan base;
  uint32_t operation;
  helio_type type;
  size_t element;
  size_t count;
} random_plan;

typedef struct random_work {
  const random_plan *plan;
  uint64_t key, step, base;
  double low, high; /* or mean and deviation, or the rate of dropout */
  const unsigned char *x;
  unsigned char *y;
} random_work;

static helio_status random_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const bool dropout = call->operation == HELIO_OP_DROPOUT, bits = call->operation == HELIO_OP_RANDOM_BITS;
  const uint32_t wide = HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64);
  const uint32_t floats = wide | HELIO_TYPE_BIT(HELIO_FLOAT16) | HELIO_TYPE_BIT(HELIO_BFLOAT16);
  const call_signature signature = {dropout ? "T" : "", "T",
                                    bits      ? HELIO_TYPE_BIT(HELIO_INT32)
                                    : dropout ? floats
                                              : wide};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  if (dropout && !call_same_shape(call_input(call, 0), call_output(call)))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "DROPOUT: x does not have the output's shape");
  random_plan *plan = (random_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->operation = call->operation;
  plan->type = (helio_type)call_output(call)->type;
  plan->element = call_type_size(plan->type);
  plan->count = call_element_count(call_output(call));
  plan->base.empty = plan->count == 0;
  size_t weight = call->operation == HELIO_OP_RANDOM_NORMAL ? 64 : 4;
  plan->base.parts = cpu_parts_for_bytes(device, plan->count * plan->element * weight);
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

static double uniform_of(const uint32_t *pair) {
  return (double)(((uint64_t)pair[1] << 32 | pair[0]) >> 11) * 0x1p-53;
}

static double normal_of(const uint32_t *pair) {
  const double turn = 6.283185307179586476925; /* 2π */
  return sqrt(-2.0 * log(((double)pair[0] + 1.0) * 0x1p-32)) * cos(turn * ((double)pair[1] * 0x1p-32));
}

/* Numbers that are made of two words each, in double, then in the operation's type. */
static void pairs(const random_work *work, cpu_range range) {
  const random_plan *plan = work->plan;
  const bool normal = plan->operation == HELIO_OP_RANDOM_NORMAL;
  uint32_t words[2 * PORTION];
  for (size_t at = range.begin; at < range.end; at += PORTION) {
    size_t some = range.end - at < PORTION ? range.end - at : PORTION;
    plan->base.device->vector->random_words(work->key, work->step, 2 * (work->base + at), words, 2 * some);
    for (size_t i = 0; i < some; i++) {
      double number = normal ? normal_of(words + 2 * i) : uniform_of(words + 2 * i);
      if (plan->type == HELIO_FLOAT32) {
        ((float *)(void *)work->y)[at + i] = (float)work->low + (float)work->high * (float)number;
      } else {
        double scale = normal ? work->high : work->high - work->low;
        ((double *)(void *)work->y)[at + i] = work->low + scale * number;
      }
    }
  }
}

/* How many of the 2²⁴ uniform numbers are below the rate. */
static int32_t dropout_limit(double rate) {
  double limit = ceil(rate * 0x1p24);
  return !(limit > 0) ? 0 : limit > 0x1p24 ? 1 << 24 : (int32_t)limit;
}

static void random_part(void *argument, unsigned part, unsigned parts) {
  const random_work *work = argument;
  const random_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  cpu_range range = cpu_part_range(plan->count, GRAIN, part, parts);
  const uint64_t from = work->base + range.begin;
  const size_t at = range.begin * plan->element, count = range.end - range.begin;
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  if (plan->operation == HELIO_OP_DROPOUT) {
    vector->dropout(plan->type, work->key, work->step, from, dropout_limit(work->low), 1.0 - work->low, work->y + at,
                    work->x + at, count);
  } else if (plan->operation == HELIO_OP_RANDOM_BITS) {
    vector->random_words(work->key, work->step, from, (uint32_t *)(void *)(work->y + at), count);
  } else if (plan->operation == HELIO_OP_RANDOM_UNIFORM && plan->type == HELIO_FLOAT32) {
    float low = (float)work->low, high = (float)work->high;
    vector->random_uniform(work->key, work->step, from, (float *)(void *)(work->y + at), count, low, high - low);
  } else {
    pairs(work, range);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status random_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const random_plan *plan = (const random_plan *)base;
  const bool dropout = plan->operation == HELIO_OP_DROPOUT;
  random_work work = {.plan = plan,
                      .key = (uint64_t)run_integer(run, 0),
                      .step = (uint64_t)run_integer(run, 1),
                      .base = (uint64_t)run_integer(run, 2),
                      .low = run_real(run, 3),
                      .high = run_real(run, 4),
                      .x = dropout ? cpu_run_address(run, 0) : NULL,
                      .y = cpu_run_address(run, dropout ? 1 : 0)};
  cpu_plan_execute(base, random_part, &work);
  return HELIO_OK;
}

#define RANDOM_LIST(X)                                                                                                 \
  X(random_bits, RANDOM_BITS, HELIO_TYPE_BIT(HELIO_INT32))                                                             \
  X(random_uniform, RANDOM_UNIFORM, HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64))                     \
  X(random_normal, RANDOM_NORMAL, HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64))                       \
  X(dropout, DROPOUT,                                                                                                  \
    HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64) | HELIO_TYPE_BIT(HELIO_FLOAT16) |                    \
        HELIO_TYPE_BIT(HELIO_BFLOAT16))

#define RANDOM_KERNEL(lower, upper, accepted)                                                                          \
  const helio_kernel cpu_kernel_##lower = {                                                                            \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##upper,                                                                                   \
      .types = accepted,                                                                                               \
      .plan = random_plan_make,                                                                                        \
      .run = random_run,                                                                                               \
      .plan_free = cpu_plan_free,                                                                                      \
  };
RANDOM_LIST(RANDOM_KERNEL)
#undef RANDOM_KERNEL
