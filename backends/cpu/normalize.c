/* SPDX-License-Identifier: Apache-2.0 */
/* normalize and normalize_grad_input: by channel, the last axis. What depends on the channel alone is worked out once,
 * in double, for a line of rows; the rest is one pass over memory. */
#include "normalize.h"

#include <math.h>

#define BLOCK CPU_NORMALIZE_BLOCK

/* Lines have this width, if rows are short. */
#define LINE 256

/* Lists for a line: normalize has mean, scale and shift; its gradient mean, factors of dy and of x, and shift. */
#define LISTS 4

typedef struct normalize_plan {
  helio_plan base;
  helio_operation operation;
  helio_type type, compute;
  size_t element, compute_element;
  cpu_channels grid;
  bool present[7]; /* inputs */
} normalize_plan;

typedef struct normalize_work {
  const normalize_plan *plan;
  const helio_run *run;
  unsigned char *lists;
} normalize_work;

static helio_status normalize_plan_make(helio_backend_device *device, const helio_call *call,
                                        helio_plan_answer *answer) {
  bool gradient = call->operation == HELIO_OP_NORMALIZE_GRAD_INPUT;
  const call_signature signature = {gradient ? "TTTTtTT" : "TTTtt", "T", CALL_FLOAT_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0);
  bool fits = x->rank > 0 && call_same_shape(x, call_output(call));
  if (fits && gradient) fits = call_same_shape(x, call_input(call, 1));
  for (uint32_t i = gradient ? 2 : 1; fits && i < call->input_count; i++)
    fits = cpu_per_channel(call_input(call, i), x);
  if (!fits)
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "NORMALIZE: the shapes do not go together");
  normalize_plan *plan = (normalize_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->operation = (helio_operation)call->operation;
  plan->type = (helio_type)x->type;
  plan->compute = cpu_compute_type(plan->type);
  plan->element = call_type_size(x->type);
  plan->compute_element = call_type_size(plan->compute);
  plan->grid = cpu_channels_of(x, LINE);
  for (uint32_t i = 0; i < call->input_count; i++) plan->present[i] = call_input(call, i) != NULL;
  size_t count = call_element_count(x);
  plan->base.empty = count == 0;
  plan->base.parts = cpu_parts_for_bytes(device, count * plan->element * (gradient ? 3 : 2));
  answer->plan = &plan->base;
  answer->workspace = plan->base.empty ? 0 : LISTS * plan->grid.width * plan->compute_element;
  return HELIO_OK;
}

/* Some of an input's channels in double; `otherwise` if it is absent. */
static void read_list(const normalize_work *work, size_t input, double *list, size_t at, size_t count,
                      double otherwise) {
  const normalize_plan *plan = work->plan;
  for (size_t i = 0; i < count && !plan->present[input]; i++) list[i] = otherwise;
  if (plan->present[input])
    plan->base.device->vector->cast(HELIO_FLOAT64, plan->type, list,
                                    cpu_run_address(work->run, input) + at * plan->element, count);
}

/* Writes some channels of a list, to each row of a line. */
static void write_list(const normalize_work *work, size_t list, const double *values, size_t at, size_t count) {
  const normalize_plan *plan = work->plan;
  unsigned char *target = work->lists + list * plan->grid.width * plan->compute_element;
  for (size_t row = 0; row < plan->grid.fold; row++)
    plan->base.device->vector->cast(plan->compute, HELIO_FLOAT64,
                                    target + (row * plan->grid.channels + at) * plan->compute_element, values, count);
}

static void forward_lists(const normalize_work *work, size_t at, size_t count) {
  double mean[BLOCK], scale[BLOCK], shift[BLOCK], gamma[BLOCK], epsilon = run_real(work->run, 0);
  read_list(work, 1, mean, at, count, 0);
  read_list(work, 2, scale, at, count, 0);
  read_list(work, 3, gamma, at, count, 1);
  read_list(work, 4, shift, at, count, 0);
  for (size_t i = 0; i < count; i++) scale[i] = gamma[i] / sqrt(scale[i] + epsilon);
  write_list(work, 0, mean, at, count);
  write_list(work, 1, scale, at, count);
  write_list(work, 2, shift, at, count);
}

/* dx = gamma / √(variance + epsilon) × (dy − (dbeta + dgamma × normal x) / n) */
static void gradient_lists(const normalize_work *work, size_t at, size_t count) {
  double mean[BLOCK], on_dy[BLOCK], on_x[BLOCK], shift[BLOCK], gamma[BLOCK];
  double epsilon = run_real(work->run, 0), share = run_real(work->run, 1);
  read_list(work, 2, mean, at, count, 0);
  read_list(work, 3, on_dy, at, count, 0);
  read_list(work, 4, gamma, at, count, 1);
  read_list(work, 5, on_x, at, count, 0);
  read_list(work, 6, shift, at, count, 0);
  for (size_t i = 0; i < count; i++) {
    double inverse = 1 / sqrt(on_dy[i] + epsilon);
    on_dy[i] = gamma[i] * inverse;
    on_x[i] *= inverse * share;
    shift[i] *= share;
  }
  write_list(work, 0, mean, at, count);
  write_list(work, 1, on_dy, at, count);
  write_list(work, 2, on_x, at, count);
  write_list(work, 3, shift, at, count);
}

static void make_lists(const normalize_work *work) {
  const normalize_plan *plan = work->plan;
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t at = 0; at < plan->grid.channels; at += BLOCK) {
    size_t some = plan->grid.channels - at < BLOCK ? plan->grid.channels - at : BLOCK;
    if (plan->operation == HELIO_OP_NORMALIZE) {
      forward_lists(work, at, some);
    } else {
      gradient_lists(work, at, some);
    }
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

/* `count` elements from element `at` of the tensor on, whose first is in column `column` of a line. */
static void normalize_span(const normalize_work *work, size_t at, size_t column, size_t count) {
  const normalize_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  bool gradient = plan->operation != HELIO_OP_NORMALIZE, half = plan->type != plan->compute;
  const void *list[LISTS];
  float wide[2][BLOCK];
  for (size_t i = 0; i < LISTS; i++) list[i] = work->lists + (i * plan->grid.width + column) * plan->compute_element;
  const void *x = cpu_widened(vector, plan->type, wide[0], cpu_run_address(work->run, 0) + at * plan->element, count);
  unsigned char *y = cpu_run_address(work->run, gradient ? 7 : 5) + at * plan->element;
  void *result = half ? (void *)wide[0] : y;
  if (gradient) {
    const unsigned char *second = cpu_run_address(work->run, 1) + at * plan->element;
    const void *of_x = cpu_widened(vector, plan->type, wide[1], second, count);
    vector->affine_gradient(plan->compute, result, x, of_x, list, count);
  } else {
    vector->affine(plan->compute, result, x, list[0], list[1], list[2], count);
  }
  if (half) vector->cast(plan->type, plan->compute, y, result, count);
}

static void normalize_part(void *argument, unsigned part, unsigned parts) {
  const normalize_work *work = argument;
  const normalize_plan *plan = work->plan;
  size_t width = plan->grid.width, most = plan->type != plan->compute ? BLOCK : SIZE_MAX;
  cpu_range range = cpu_part_range(plan->grid.rows * plan->grid.channels, 64, part, parts);
  size_t column = range.begin % width;
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t at = range.begin; at < range.end;) {
    size_t count = width - column < range.end - at ? width - column : range.end - at;
    if (count > most) count = most;
    normalize_span(work, at, column, count);
    at += count;
    column = column + count == width ? 0 : column + count;
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status normalize_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const helio_host *host = base->device->host;
  normalize_work work = {(const normalize_plan *)base, run, cpu_run_workspace(run)};
  if (work.lists == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "NORMALIZE: the workspace is missing");
  make_lists(&work);
  cpu_plan_execute(base, normalize_part, &work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_normalize = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_NORMALIZE,
    .types = CALL_FLOAT_TYPES,
    .plan = normalize_plan_make,
    .run = normalize_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_normalize_grad_input = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_NORMALIZE_GRAD_INPUT,
    .types = CALL_FLOAT_TYPES,
    .plan = normalize_plan_make,
    .run = normalize_run,
    .plan_free = cpu_plan_free,
};
