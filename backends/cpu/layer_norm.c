/* SPDX-License-Identifier: Apache-2.0 */
/* layer_norm and its gradient: rows along the last axis, each by itself. The gradients of gamma and beta are sums over
 * rows: each piece of the rows, cut by the shape alone, has totals of its own, which are added in their order. */
#include "normalize.h"

#include <math.h>
#include <string.h>

#define BLOCK CPU_NORMALIZE_BLOCK

/* Elements of a piece of the gradient, about, and the rows that it has at least. */
#define PIECE      ((size_t)16 << 10)
#define PIECE_ROWS 8

typedef struct layer_plan {
  helio_plan base;
  helio_type type, compute;
  size_t element, compute_element;
  size_t rows, channels;
  size_t block;  /* of a row, worked on at a time */
  size_t pieces; /* of the gradient */
  bool gamma, beta;
  bool output[3]; /* which are wanted */
} layer_plan;

typedef struct layer_work {
  const layer_plan *plan;
  const helio_run *run;
  unsigned char *gamma, *beta; /* as they are computed with; ones and zeros if absent */
  double *totals;              /* of each piece: dgamma, dbeta; NULL if neither is wanted */
  double epsilon;
} layer_work;

static size_t padded(size_t bytes) {
  return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

static layer_plan *layer_plan_new(helio_backend_device *device, const helio_call *call, size_t tensors) {
  layer_plan *plan = (layer_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return NULL;
  const helio_argument *x = call_input(call, 0);
  size_t count = call_element_count(x);
  plan->type = (helio_type)x->type;
  plan->compute = cpu_compute_type(plan->type);
  plan->element = call_type_size(x->type);
  plan->compute_element = call_type_size(plan->compute);
  plan->rows = 1;
  plan->channels = (size_t)x->extent[x->rank - 1];
  for (uint32_t i = 0; i + 1 < x->rank; i++) plan->rows *= (size_t)x->extent[i];
  plan->block = plan->type == plan->compute && plan->channels > 0 ? plan->channels : BLOCK;
  for (uint32_t i = 0; i < 3; i++) plan->output[i] = call_output_at(call, i) != NULL;
  plan->base.parts = cpu_parts_for_bytes(device, count * plan->element * tensors);
  return plan;
}

/* Is it a list of one element for each row of x, or absent? */
static bool per_row(const helio_argument *list, const helio_argument *x) {
  if (list == NULL) return true;
  if (list->rank + 1 != x->rank) return false;
  for (uint32_t i = 0; i < list->rank; i++) {
    if (list->extent[i] != x->extent[i]) return false;
  }
  return true;
}

static helio_status forward_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"Ttt", "Ttt", CALL_FLOAT_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0);
  if (x->rank < 1 || !call_same_shape(x, call_output(call)) || !cpu_per_channel(call_input(call, 1), x) ||
      !cpu_per_channel(call_input(call, 2), x) || !per_row(call_output_at(call, 1), x) ||
      !per_row(call_output_at(call, 2), x))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "LAYER_NORM: the shapes do not go together");
  layer_plan *plan = layer_plan_new(device, call, 2);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->gamma = call_input(call, 1) != NULL;
  plan->beta = call_input(call, 2) != NULL;
  plan->base.empty = plan->rows == 0;
  answer->plan = &plan->base;
  answer->workspace = 2 * padded(plan->channels * plan->compute_element);
  return HELIO_OK;
}

static helio_status gradient_plan_make(helio_backend_device *device, const helio_call *call,
                                       helio_plan_answer *answer) {
  const call_signature signature = {"TTtTT", "Ttt", CALL_FLOAT_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 1);
  if (x->rank < 1 || !call_same_shape(x, call_input(call, 0)) || !call_same_shape(x, call_output(call)) ||
      !cpu_per_channel(call_input(call, 2), x) || !per_row(call_input(call, 3), x) ||
      !per_row(call_input(call, 4), x) || !cpu_per_channel(call_output_at(call, 1), x) ||
      !cpu_per_channel(call_output_at(call, 2), x))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "LAYER_NORM_GRAD: the shapes do not go together");
  layer_plan *plan = layer_plan_new(device, call, 3);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->gamma = call_input(call, 2) != NULL;
  plan->base.empty = plan->channels == 0;
  plan->pieces = plan->rows * plan->channels / PIECE;
  if (plan->pieces > plan->rows / PIECE_ROWS) plan->pieces = plan->rows / PIECE_ROWS;
  if (plan->pieces > CPU_NORMALIZE_PIECES) plan->pieces = CPU_NORMALIZE_PIECES;
  if (plan->pieces < 1) plan->pieces = 1;
  answer->plan = &plan->base;
  answer->workspace = padded(plan->channels * plan->compute_element);
  if (plan->output[1] || plan->output[2]) answer->workspace += plan->pieces * 2 * plan->channels * sizeof(double);
  return HELIO_OK;
}

/* A list of channels as it is computed with. */
static void make_list(const layer_plan *plan, unsigned char *list, const unsigned char *given, double otherwise) {
  const cpu_vector_table *vector = plan->base.device->vector;
  if (given != NULL) {
    vector->cast(plan->compute, plan->type, list, given, plan->channels);
    return;
  }
  for (size_t i = 0; i < plan->channels; i++)
    vector->cast(plan->compute, HELIO_FLOAT64, list + i * plan->compute_element, &otherwise, 1);
}

/* The value of one element, and back. */
static double read_one(const layer_work *work, size_t place, size_t at) {
  const layer_plan *plan = work->plan;
  double value;
  plan->base.device->vector->cast(HELIO_FLOAT64, plan->type, &value,
                                  cpu_run_address(work->run, place) + at * plan->element, 1);
  return value;
}

static void write_one(const layer_work *work, size_t place, size_t at, double value) {
  const layer_plan *plan = work->plan;
  plan->base.device->vector->cast(plan->type, HELIO_FLOAT64, cpu_run_address(work->run, place) + at * plan->element,
                                  &value, 1);
}

static void row_moments(const layer_plan *plan, const unsigned char *x, double *mean, double *variance) {
  const cpu_vector_table *vector = plan->base.device->vector;
  float wide[BLOCK];
  *mean = *variance = 0;
  if (plan->channels == 0) return;
  vector->sum_rows(plan->type, mean, x, 0, 1, plan->channels);
  *mean /= (double)plan->channels;
  for (size_t at = 0; at < plan->channels; at += plan->block) {
    size_t some = plan->channels - at < plan->block ? plan->channels - at : plan->block;
    const void *values = cpu_widened(vector, plan->type, wide, x + at * plan->element, some);
    *variance += vector->squares_row(plan->compute, values, some, *mean);
  }
  *variance /= (double)plan->channels;
}

static void forward_row(const layer_work *work, size_t row) {
  const layer_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  size_t first = row * plan->channels;
  double mean, variance;
  float wide[BLOCK];
  const unsigned char *x = plan->channels == 0 ? NULL : cpu_run_address(work->run, 0) + first * plan->element;
  row_moments(plan, x, &mean, &variance);
  double inverse = 1 / sqrt(variance + work->epsilon);
  for (size_t at = 0; at < plan->channels; at += plan->block) {
    size_t some = plan->channels - at < plan->block ? plan->channels - at : plan->block;
    unsigned char *y = cpu_run_address(work->run, 3) + (first + at) * plan->element;
    const void *values = cpu_widened(vector, plan->type, wide, x + at * plan->element, some);
    void *result = plan->type == plan->compute ? (void *)y : wide;
    vector->layer_row(plan->compute, result, values, work->gamma + at * plan->compute_element,
                      work->beta + at * plan->compute_element, mean, inverse, some);
    if (plan->type != plan->compute) vector->cast(plan->type, plan->compute, y, result, some);
  }
  if (plan->output[1]) write_one(work, 4, row, mean);
  if (plan->output[2]) write_one(work, 5, row, inverse);
}

static void forward_part(void *argument, unsigned part, unsigned parts) {
  const layer_work *work = argument;
  cpu_range rows = cpu_part_range(work->plan->rows, 1, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t row = rows.begin; row < rows.end; row++) forward_row(work, row);
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status forward_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const layer_plan *plan = (const layer_plan *)base;
  const helio_host *host = base->device->host;
  layer_work work = {.plan = plan, .run = run, .gamma = cpu_run_workspace(run), .epsilon = run_real(run, 0)};
  if (plan->channels > 0) {
    if (work.gamma == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "LAYER_NORM: the workspace is missing");
    work.beta = work.gamma + padded(plan->channels * plan->compute_element);
    make_list(plan, work.gamma, plan->gamma ? cpu_run_address(run, 1) : NULL, 1);
    make_list(plan, work.beta, plan->beta ? cpu_run_address(run, 2) : NULL, 0);
  }
  cpu_plan_execute(base, forward_part, &work);
  return HELIO_OK;
}

/* One block of a row: what the row's sums get of it, if they are wanted; else dx, and what the channels' totals get. */
static void gradient_block(const layer_work *work, size_t row, size_t at, const double constants[4], double *sums,
                           double *totals) {
  const layer_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  size_t offset = (row * plan->channels + at) * plan->element;
  size_t some = plan->channels - at < plan->block ? plan->channels - at : plan->block;
  float wide[2][BLOCK];
  const void *dy = cpu_widened(vector, plan->type, wide[0], cpu_run_address(work->run, 0) + offset, some);
  const void *x = cpu_widened(vector, plan->type, wide[1], cpu_run_address(work->run, 1) + offset, some);
  const unsigned char *gamma = work->gamma + at * plan->compute_element;
  if (sums != NULL) {
    vector->layer_sums(plan->compute, sums, dy, x, gamma, constants[0], some);
    return;
  }
  if (totals != NULL)
    vector->layer_columns(plan->compute, totals + at, totals + plan->channels + at, dy, x, constants[0], constants[1],
                          some);
  unsigned char *dx = cpu_run_address(work->run, 5) + offset;
  void *result = plan->type == plan->compute ? (void *)dx : wide[0];
  vector->layer_gradient(plan->compute, result, dy, x, gamma, constants, some);
  if (plan->type != plan->compute) vector->cast(plan->type, plan->compute, dx, result, some);
}

/* dx = inverse × (gamma dy − mean of that − normal x × mean of (gamma dy × normal x)) */
static void gradient_row(const layer_work *work, size_t row, double *totals) {
  const layer_plan *plan = work->plan;
  double mean = read_one(work, 3, row), inverse = read_one(work, 4, row), n = (double)plan->channels;
  double sums[2] = {0, 0}, constants[4] = {mean, inverse, 0, 0};
  for (size_t at = 0; at < plan->channels; at += plan->block) gradient_block(work, row, at, constants, sums, NULL);
  constants[2] = inverse * inverse * sums[1] / n;
  constants[3] = sums[0] / n;
  for (size_t at = 0; at < plan->channels; at += plan->block) gradient_block(work, row, at, constants, NULL, totals);
}

static void gradient_part(void *argument, unsigned part, unsigned parts) {
  const layer_work *work = argument;
  const layer_plan *plan = work->plan;
  cpu_range pieces = cpu_part_range(plan->pieces, 1, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t piece = pieces.begin; piece < pieces.end; piece++) {
    double *totals = work->totals == NULL ? NULL : work->totals + piece * 2 * plan->channels;
    cpu_range rows = cpu_part_range(plan->rows, 1, (unsigned)piece, (unsigned)plan->pieces);
    if (totals != NULL) memset(totals, 0, 2 * plan->channels * sizeof totals[0]);
    for (size_t row = rows.begin; row < rows.end; row++) gradient_row(work, row, totals);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

/* The pieces' totals of one output, in their order. */
static void add_pieces(const layer_work *work, size_t output) {
  const layer_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  const double *from = work->totals + (output - 1) * plan->channels;
  unsigned char *y = cpu_run_address(work->run, 5 + output);
  double sum[BLOCK];
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t at = 0; at < plan->channels; at += BLOCK) {
    size_t some = plan->channels - at < BLOCK ? plan->channels - at : BLOCK;
    memset(sum, 0, some * sizeof sum[0]);
    vector->sum_columns(HELIO_FLOAT64, sum, from + at, 2 * plan->channels, plan->pieces, some);
    vector->cast(plan->type, HELIO_FLOAT64, y + at * plan->element, sum, some);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status gradient_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const layer_plan *plan = (const layer_plan *)base;
  const helio_host *host = base->device->host;
  layer_work work = {.plan = plan, .run = run, .gamma = cpu_run_workspace(run)};
  if (work.gamma == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "LAYER_NORM_GRAD: the workspace is missing");
  if (plan->output[1] || plan->output[2])
    work.totals = (double *)(void *)(work.gamma + padded(plan->channels * plan->compute_element));
  make_list(plan, work.gamma, plan->gamma ? cpu_run_address(run, 2) : NULL, 1);
  cpu_plan_execute(base, gradient_part, &work);
  for (size_t output = 1; output < 3; output++) {
    if (plan->output[output]) add_pieces(&work, output);
  }
  return HELIO_OK;
}

const helio_kernel cpu_kernel_layer_norm = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_LAYER_NORM,
    .types = CALL_FLOAT_TYPES,
    .plan = forward_plan_make,
    .run = forward_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_layer_norm_grad = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_LAYER_NORM_GRAD,
    .types = CALL_FLOAT_TYPES,
    .plan = gradient_plan_make,
    .run = gradient_run,
    .plan_free = cpu_plan_free,
};
