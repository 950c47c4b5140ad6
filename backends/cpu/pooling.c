/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: max_pool, average_pool and their gradients. The vector code takes a run of neighbouring windows that the
 * padding cuts alike: as a rule a whole row of the output. Forward, rows are shared out; backward, images are, and each
 * is worked through in order, so no two threads add to one place. Halves are widened row by row into the workspace. */
#include "cpu.h"

#include <stdatomic.h>
#include <string.h>

#define POOL_TYPES                                                                                                     \
  (HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64) | HELIO_TYPE_BIT(HELIO_FLOAT16) |                     \
   HELIO_TYPE_BIT(HELIO_BFLOAT16))

typedef struct pool_plan {
  helio_plan base;
  uint32_t operation;
  helio_type type, compute, winner_type; /* of the arguments; of the arithmetic; 0 if winners are not asked for */
  size_t stored, element, winner;        /* bytes of their elements */
  bool half;
  size_t images, height, width, channels;
  size_t out_height, out_width;
  size_t window[2], stride[2], before[2];
  size_t input_bytes, output_bytes; /* halves: of what a part widens of x, and of a row of y */
} pool_plan;

typedef struct pool_work {
  const pool_plan *plan;
  unsigned char *x, *y, *winners;
  unsigned char *scratch;  /* of part 0, the others' follow */
  atomic_size_t first_bad; /* the number of the first bad winner, SIZE_MAX for none */
} pool_work;

static bool is_gradient(const pool_plan *plan) {
  return plan->operation == HELIO_OP_MAX_POOL_GRAD || plan->operation == HELIO_OP_AVERAGE_POOL_GRAD;
}

/* Does the axis of y have as many windows as fit? With less padding than a window none lies in it altogether. */
static bool axis_fits(int64_t input, int64_t output, uint32_t window, uint32_t stride, const uint32_t padding[2]) {
  if (window < 1 || stride < 1 || window > INT32_MAX || input < 1 || input > INT64_MAX / 4) return false;
  if (padding[0] >= window || padding[1] >= window) return false;
  int64_t room = input + padding[0] + padding[1];
  return room >= window && output == (room - window) / stride + 1;
}

static bool shapes_fit(const helio_argument *x, const helio_argument *y, const helio_argument *winners,
                       const helio_pool_attributes *how) {
  if (x->rank != 4 || y->rank != 4 || x->extent[0] != y->extent[0] || x->extent[3] != y->extent[3]) return false;
  for (int i = 0; i < 2; i++) {
    if (!axis_fits(x->extent[1 + i], y->extent[1 + i], how->window[i], how->stride[i], &how->padding[2 * i]))
      return false;
  }
  if (winners == NULL) return true;
  uint64_t most = winners->type == HELIO_UINT8 ? 256 : (uint64_t)INT32_MAX + 1;
  return call_same_shape(y, winners) && (uint64_t)how->window[0] * how->window[1] <= most;
}

static void describe(pool_plan *plan, const helio_argument *x, const helio_argument *y, const helio_argument *winners,
                     const helio_pool_attributes *how) {
  plan->type = (helio_type)x->type;
  plan->half = x->type == HELIO_FLOAT16 || x->type == HELIO_BFLOAT16;
  plan->compute = plan->half ? HELIO_FLOAT32 : plan->type;
  plan->stored = call_type_size(plan->type);
  plan->element = call_type_size(plan->compute);
  if (winners != NULL) plan->winner_type = (helio_type)winners->type;
  if (winners != NULL) plan->winner = call_type_size(winners->type);
  plan->images = (size_t)x->extent[0];
  plan->height = (size_t)x->extent[1];
  plan->width = (size_t)x->extent[2];
  plan->channels = (size_t)x->extent[3];
  plan->out_height = (size_t)y->extent[1];
  plan->out_width = (size_t)y->extent[2];
  for (int i = 0; i < 2; i++) {
    plan->window[i] = how->window[i];
    plan->stride[i] = how->stride[i];
    plan->before[i] = how->padding[2 * i];
  }
}

static size_t padded(size_t bytes) {
  return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

static size_t part_bytes(const pool_plan *plan) {
  return plan->input_bytes + plan->output_bytes;
}

static helio_status plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer,
                              const helio_argument *x, const helio_argument *y, const helio_argument *winners) {
  const helio_host *host = device->host;
  helio_pool_attributes attributes;
  helio_status status = cpu_call_attributes(device, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  if (!shapes_fit(x, y, winners, &attributes))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "pooling: the shapes do not fit each other and the windows");
  pool_plan *plan = (pool_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->operation = call->operation;
  describe(plan, x, y, winners, &attributes);
  size_t units = is_gradient(plan) ? plan->images : plan->images * plan->out_height;
  size_t bytes = (call_element_count(x) + call_element_count(y)) * plan->stored, row = plan->width * plan->channels;
  unsigned parts = cpu_parts_for_bytes(device, bytes);
  plan->base.empty = call_element_count(call_output(call)) == 0;
  plan->base.parts = parts < units ? parts : units < 1 ? 1 : (unsigned)units;
  if (plan->half && !plan->base.empty) {
    size_t rows = is_gradient(plan) || plan->height < plan->window[0] ? plan->height : plan->window[0];
    plan->input_bytes = padded(rows * row * plan->element);
    plan->output_bytes = padded(plan->out_width * plan->channels * plan->element);
  }
  if (__builtin_mul_overflow(plan->base.parts, part_bytes(plan), &bytes)) {
    cpu_plan_free(&plan->base);
    return host->fail(host, HELIO_NOT_SUPPORTED, "pooling: the workspace does not fit in memory");
  }
  answer->plan = &plan->base;
  answer->workspace = bytes;
  return HELIO_OK;
}

/* What of a window that begins at `at`, counted with the padding, lies within x. */
static cpu_range inside(size_t at, size_t window, size_t before, size_t extent) {
  size_t end = at + window < before ? 0 : at + window - before;
  return (cpu_range){at > before ? at - before : 0, end < extent ? end : extent};
}

/* How many windows from `column` on are cut as the one there: only whole ones have company. */
static size_t alike(const pool_plan *plan, size_t column, cpu_range columns) {
  size_t stride = plan->stride[1], most = plan->out_width - column;
  if (columns.end - columns.begin != plan->window[1] || column * stride < plan->before[1]) return 1;
  size_t fitting = (plan->width - columns.end) / stride + 1;
  return fitting < most ? fitting : most;
}

/* One row of windows. `x` is row `first_row` of an image, `y` and `winners` belong to this row. Tells the number of the
 * first bad winner in it. */
static size_t pool_row(const pool_plan *plan, size_t row, unsigned char *x, size_t first_row, unsigned char *y,
                       unsigned char *winners) {
  const cpu_vector_table *vector = plan->base.device->vector;
  cpu_range rows = inside(row * plan->stride[0], plan->window[0], plan->before[0], plan->height);
  cpu_pool_row w = {.channels = plan->channels, .rows = rows.end - rows.begin, .winner_type = plan->winner_type};
  w.row_step = plan->width * plan->channels;
  w.position_step = plan->stride[1] * plan->channels;
  w.places = (uint32_t)plan->window[1];
  size_t above = rows.begin + plan->before[0] - row * plan->stride[0], bad = SIZE_MAX;
  for (size_t column = 0; column < plan->out_width; column += w.positions) {
    cpu_range columns = inside(column * plan->stride[1], plan->window[1], plan->before[1], plan->width);
    size_t left = columns.begin + plan->before[1] - column * plan->stride[1], at = column * plan->channels, found;
    w.positions = alike(plan, column, columns);
    w.columns = columns.end - columns.begin;
    w.first = (uint32_t)(above * plan->window[1] + left);
    w.x = x + ((rows.begin - first_row) * plan->width + columns.begin) * plan->channels * plan->element;
    w.y = y + at * plan->element;
    w.winners = winners == NULL ? NULL : winners + at * plan->winner;
    if (plan->operation == HELIO_OP_MAX_POOL) vector->max_pool(plan->compute, &w);
    if (plan->operation == HELIO_OP_AVERAGE_POOL) vector->average_pool(plan->compute, &w);
    if (plan->operation == HELIO_OP_AVERAGE_POOL_GRAD) vector->average_pool_grad(plan->compute, &w);
    if (plan->operation != HELIO_OP_MAX_POOL_GRAD) continue;
    found = vector->max_pool_grad(plan->compute, &w);
    if (bad == SIZE_MAX && found != SIZE_MAX) bad = at + found;
  }
  return bad;
}

static unsigned char *scratch_of(const pool_work *work, unsigned part) {
  size_t each = part_bytes(work->plan);
  return each == 0 ? NULL : work->scratch + part * each;
}

/* The largest is one of the given values, so denormal ones count for max_pool; sums flush them. */
static unsigned float_mode(const pool_plan *plan) {
  return plan->operation == HELIO_OP_MAX_POOL ? CPU_FLOAT_EXACT : CPU_FLOAT_FLUSH;
}

static void forward_part(void *argument, unsigned part, unsigned parts) {
  const pool_work *work = argument;
  const pool_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  size_t x_row = plan->width * plan->channels, y_row = plan->out_width * plan->channels;
  unsigned char *scratch = scratch_of(work, part);
  cpu_range range = cpu_part_range(plan->images * plan->out_height, 1, part, parts);
  unsigned saved = cpu_float_begin(float_mode(plan));
  for (size_t at = range.begin; at < range.end; at++) {
    size_t row = at % plan->out_height, image = at / plan->out_height;
    unsigned char *x = work->x + image * plan->height * x_row * plan->stored, *y = work->y + at * y_row * plan->stored;
    unsigned char *winners = work->winners == NULL ? NULL : work->winners + at * y_row * plan->winner;
    if (!plan->half) {
      pool_row(plan, row, x, 0, y, winners);
      continue;
    }
    cpu_range rows = inside(row * plan->stride[0], plan->window[0], plan->before[0], plan->height);
    vector->cast(plan->compute, plan->type, scratch, x + rows.begin * x_row * plan->stored,
                 (rows.end - rows.begin) * x_row);
    pool_row(plan, row, scratch, rows.begin, scratch + plan->input_bytes, winners);
    vector->cast(plan->type, plan->compute, y, scratch + plan->input_bytes, y_row);
  }
  cpu_float_end(float_mode(plan), saved);
}

/* Keeps the first bad winner of all, whatever order the parts find theirs in. */
static void note_bad(pool_work *work, size_t number) {
  size_t seen = atomic_load_explicit(&work->first_bad, memory_order_relaxed);
  while (number < seen && !atomic_compare_exchange_weak_explicit(&work->first_bad, &seen, number, memory_order_relaxed,
                                                                 memory_order_relaxed)) {
  }
}

static void backward_part(void *argument, unsigned part, unsigned parts) {
  pool_work *work = argument;
  const pool_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  size_t count = plan->height * plan->width * plan->channels, y_row = plan->out_width * plan->channels;
  unsigned char *scratch = scratch_of(work, part);
  cpu_range images = cpu_part_range(plan->images, 1, part, parts);
  unsigned saved = cpu_float_begin(float_mode(plan));
  for (size_t image = images.begin; image < images.end; image++) {
    unsigned char *dx = work->x + image * count * plan->stored, *sum = plan->half ? scratch : dx;
    memset(sum, 0, count * plan->element);
    for (size_t row = 0; row < plan->out_height; row++) {
      size_t at = (image * plan->out_height + row) * y_row;
      unsigned char *dy = work->y + at * plan->stored;
      unsigned char *winners = work->winners == NULL ? NULL : work->winners + at * plan->winner;
      if (plan->half) vector->cast(plan->compute, plan->type, scratch + plan->input_bytes, dy, y_row);
      size_t bad = pool_row(plan, row, sum, 0, plan->half ? scratch + plan->input_bytes : dy, winners);
      if (bad != SIZE_MAX) note_bad(work, at + bad);
    }
    if (plan->half) vector->cast(plan->type, plan->compute, dx, sum, count);
  }
  cpu_float_end(float_mode(plan), saved);
}

static helio_status run_begin(const pool_plan *plan, const helio_run *run, pool_work *work) {
  const helio_host *host = plan->base.device->host;
  helio_status status = cpu_run_check(&plan->base, run);
  if (status != HELIO_OK || plan->base.empty) return status;
  work->plan = plan;
  work->scratch = cpu_run_workspace(run);
  atomic_init(&work->first_bad, SIZE_MAX);
  if (work->scratch == NULL && part_bytes(plan) > 0)
    return host->fail(host, HELIO_INVALID_ARGUMENT, "pooling: the workspace is missing");
  return HELIO_OK;
}

static helio_status max_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T", "Tw", POOL_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  return plan_make(device, call, answer, call_input(call, 0), call_output(call), call_output_at(call, 1));
}

static helio_status max_grad_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"TW", "T", POOL_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  return plan_make(device, call, answer, call_output(call), call_input(call, 0), call_input(call, 1));
}

static helio_status average_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T", "T", POOL_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  bool backward = call->operation == HELIO_OP_AVERAGE_POOL_GRAD;
  const helio_argument *given = call_input(call, 0), *wanted = call_output(call);
  return plan_make(device, call, answer, backward ? wanted : given, backward ? given : wanted, NULL);
}

static helio_status forward_run(helio_plan *base, const helio_run *run) {
  const pool_plan *plan = (const pool_plan *)base;
  pool_work work = {0};
  helio_status status = run_begin(plan, run, &work);
  if (status != HELIO_OK || base->empty) return status;
  work.x = cpu_run_address(run, 0);
  work.y = cpu_run_address(run, 1);
  if (plan->winner > 0) work.winners = cpu_run_address(run, 2);
  cpu_plan_execute(base, forward_part, &work);
  return HELIO_OK;
}

static helio_status backward_run(helio_plan *base, const helio_run *run) {
  const pool_plan *plan = (const pool_plan *)base;
  pool_work work = {0};
  helio_status status = run_begin(plan, run, &work);
  if (status != HELIO_OK || base->empty) return status;
  work.y = cpu_run_address(run, 0);
  if (plan->winner > 0) work.winners = cpu_run_address(run, 1);
  work.x = cpu_run_address(run, plan->winner > 0 ? 2 : 1);
  cpu_plan_execute(base, backward_part, &work);
  size_t bad = atomic_load_explicit(&work.first_bad, memory_order_relaxed);
  if (bad == SIZE_MAX) return HELIO_OK;
  int64_t value = plan->winner == 1 ? work.winners[bad] : ((const int32_t *)work.winners)[bad];
  cpu_run_report(run, plan->operation, value);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_max_pool = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_MAX_POOL,
    .types = POOL_TYPES,
    .plan = max_plan,
    .run = forward_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_max_pool_grad = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_MAX_POOL_GRAD,
    .types = POOL_TYPES,
    .plan = max_grad_plan,
    .run = backward_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_average_pool = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_AVERAGE_POOL,
    .types = POOL_TYPES,
    .plan = average_plan,
    .run = forward_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_average_pool_grad = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_AVERAGE_POOL_GRAD,
    .types = POOL_TYPES,
    .plan = average_plan,
    .run = backward_run,
    .plan_free = cpu_plan_free,
};
