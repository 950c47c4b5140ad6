/* SPDX-License-Identifier: Apache-2.0 */
/* moments and normalize_grad_sums: two sums for each channel, over all rows. The rows are cut into pieces and the
 * channels into blocks, both by the shape alone; the pieces' sums are put together in their order, so that the result
 * is the same on every team. */
#include "normalize.h"

#include <math.h>
#include <string.h>

#define BLOCK CPU_NORMALIZE_BLOCK

/* Elements that are read twice in a row, from the cache. */
#define NEAR 8192

/* Lines that sums are formed of have this width, if rows are short. */
#define LINE 64

typedef struct sums_plan {
  helio_plan base;
  helio_type type, compute;
  size_t element;
  cpu_channels grid;
  size_t blocks, pieces;
} sums_plan;

typedef struct sums_work {
  const sums_plan *plan;
  const unsigned char *x, *dy;
  const double *mean; /* of normalize_grad_sums, for a line */
  double *totals;     /* of each piece two for each element of a line: mean and squares, or products and sums */
} sums_work;

static size_t totals_bytes(const sums_plan *plan) {
  return plan->pieces * 2 * plan->grid.width * sizeof(double);
}

static sums_plan *sums_plan_new(helio_backend_device *device, const helio_argument *x, size_t inputs) {
  sums_plan *plan = (sums_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return NULL;
  size_t count = call_element_count(x);
  plan->type = (helio_type)x->type;
  plan->compute = cpu_compute_type(plan->type);
  plan->element = call_type_size(x->type);
  plan->grid = cpu_channels_of(x, LINE);
  plan->blocks = (plan->grid.width + BLOCK - 1) / BLOCK;
  plan->pieces = plan->blocks == 0 ? 1 : count / CPU_NORMALIZE_PIECE / plan->blocks;
  if (plan->pieces > CPU_NORMALIZE_PIECES) plan->pieces = CPU_NORMALIZE_PIECES;
  if (plan->pieces > plan->grid.lines) plan->pieces = plan->grid.lines;
  if (plan->pieces < 1) plan->pieces = 1;
  plan->base.empty = plan->grid.channels == 0;
  plan->base.parts = cpu_parts_for_bytes(device, count * plan->element * inputs);
  return plan;
}

static helio_status moments_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"T", "TT", CALL_FLOAT_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0);
  if (x->rank < 1 || !cpu_per_channel(call_output(call), x) || !cpu_per_channel(call_output_at(call, 1), x))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "MOMENTS: outputs are not one for each channel");
  sums_plan *plan = sums_plan_new(device, x, 1);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  answer->plan = &plan->base;
  answer->workspace = totals_bytes(plan);
  return HELIO_OK;
}

static helio_status grad_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"TTTT", "TT", CALL_FLOAT_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 1);
  bool fits = x->rank > 0 && call_same_shape(call_input(call, 0), x);
  for (uint32_t i = 2; fits && i < 6; i++) fits = cpu_per_channel(call->arguments[i], x);
  if (!fits) return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "NORMALIZE_GRAD_SUMS: shapes differ");
  sums_plan *plan = sums_plan_new(device, x, 2);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  answer->plan = &plan->base;
  answer->workspace = totals_bytes(plan) + plan->grid.width * sizeof(double);
  return HELIO_OK;
}

/* Sums of squared distances, of any type. */
static void squares(const sums_plan *plan, double *totals, const double *mean, const unsigned char *x, size_t rows,
                    size_t columns) {
  const cpu_vector_table *vector = plan->base.device->vector;
  float wide[BLOCK];
  if (plan->type == plan->compute) {
    vector->squares_columns(plan->type, totals, mean, x, plan->grid.width, rows, columns);
    return;
  }
  for (size_t r = 0; r < rows; r++) {
    const void *row = cpu_widened(vector, plan->type, wide, x + r * plan->grid.width * plan->element, columns);
    vector->squares_columns(plan->compute, totals, mean, row, 0, 1, columns);
  }
}

/* Puts the moments of `more` elements to those of `count`. */
static inline void merge(double *mean, double *m2, double count, double other_mean, double other_m2, double more) {
  double apart = other_mean - *mean, share = more / (count + more);
  *mean += apart * share;
  *m2 += other_m2 + apart * apart * count * share;
}

/* The moments of `columns` columns of some lines: block by block mean and squares around it, which is exact however far
 * from zero the mean is, then put together. `mean` and `m2` are zero at first. */
static void moments_lines(const sums_work *work, double *mean, double *m2, size_t first, cpu_range lines,
                          size_t columns) {
  const sums_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  _Alignas(64) double block_mean[BLOCK], block_m2[BLOCK];
  size_t many = columns > NEAR ? 1 : NEAR / columns, count = 0;
  for (size_t line = lines.begin; line < lines.end; line += many) {
    size_t some = lines.end - line < many ? lines.end - line : many;
    const unsigned char *x = work->x + (line * plan->grid.width + first) * plan->element;
    memset(block_mean, 0, columns * sizeof block_mean[0]);
    memset(block_m2, 0, columns * sizeof block_m2[0]);
    vector->sum_columns(plan->type, block_mean, x, plan->grid.width, some, columns);
    for (size_t i = 0; i < columns; i++) block_mean[i] /= (double)some;
    squares(plan, block_m2, block_mean, x, some, columns);
    for (size_t i = 0; i < columns; i++)
      merge(&mean[i], &m2[i], (double)count, block_mean[i], block_m2[i], (double)some);
    count += some;
  }
}

static cpu_range piece_lines(const sums_plan *plan, size_t piece) {
  return cpu_part_range(plan->grid.lines, 1, (unsigned)piece, (unsigned)plan->pieces);
}

/* The rest behind the last line is as one more row, of fewer columns. */
static void moments_rest(const sums_work *work, double *mean, double *m2, size_t count) {
  const sums_plan *plan = work->plan;
  double x[LINE];
  size_t at = plan->grid.lines * plan->grid.width;
  plan->base.device->vector->cast(HELIO_FLOAT64, plan->type, x, work->x + at * plan->element, plan->grid.rest);
  for (size_t i = 0; i < plan->grid.rest; i++) merge(&mean[i], &m2[i], (double)count, x[i], 0, 1);
}

static void grad_lines(const sums_work *work, double *products, double *sums, size_t first, cpu_range lines,
                       size_t columns) {
  const sums_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  size_t width = plan->grid.width, at = (lines.begin * width + first) * plan->element;
  float wide_x[BLOCK], wide_dy[BLOCK];
  size_t many = plan->type == plan->compute ? (NEAR / 2 + columns - 1) / columns : 1;
  for (size_t line = lines.begin; line < lines.end; line += many, at += many * width * plan->element) {
    size_t some = lines.end - line < many ? lines.end - line : many;
    const void *dy = cpu_widened(vector, plan->type, wide_dy, work->dy + at, columns);
    const void *x = cpu_widened(vector, plan->type, wide_x, work->x + at, columns);
    vector->product_columns(plan->compute, products, sums, work->mean + first, dy, x, width, some, columns);
  }
}

static void sums_part(void *argument, unsigned part, unsigned parts) {
  const sums_work *work = argument;
  const sums_plan *plan = work->plan;
  size_t width = plan->grid.width;
  cpu_range range = cpu_part_range(plan->blocks * plan->pieces, 1, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t unit = range.begin; unit < range.end; unit++) {
    size_t piece = unit / plan->blocks, first = unit % plan->blocks * BLOCK;
    size_t columns = width - first < BLOCK ? width - first : BLOCK;
    double *one = work->totals + piece * 2 * width + first, *two = one + width;
    cpu_range lines = piece_lines(plan, piece);
    bool rest = plan->grid.rest > 0 && piece + 1 == plan->pieces;
    memset(one, 0, columns * sizeof one[0]);
    memset(two, 0, columns * sizeof two[0]);
    if (work->dy == NULL) {
      moments_lines(work, one, two, first, lines, columns);
      if (rest) moments_rest(work, one, two, lines.end - lines.begin);
    } else {
      grad_lines(work, one, two, first, lines, columns);
      if (rest) grad_lines(work, one, two, first, (cpu_range){lines.end, lines.end + 1}, plan->grid.rest);
    }
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

/* One channel's moments, from all pieces and all rows of a line. */
static void moments_of(const sums_work *work, size_t channel, double *mean, double *variance) {
  const sums_plan *plan = work->plan;
  size_t count = 0, width = plan->grid.width;
  *mean = *variance = 0;
  for (size_t piece = 0; piece < plan->pieces; piece++) {
    cpu_range lines = piece_lines(plan, piece);
    for (size_t at = channel; at < width; at += plan->grid.channels) {
      const double *one = work->totals + piece * 2 * width + at;
      size_t more = lines.end - lines.begin + (piece + 1 == plan->pieces && at < plan->grid.rest ? 1 : 0);
      if (more > 0) merge(mean, variance, (double)count, one[0], one[width], (double)more);
      count += more;
    }
  }
  if (count > 0) *variance /= (double)count;
}

static void grad_of(const sums_work *work, size_t channel, double *product, double *sum) {
  const sums_plan *plan = work->plan;
  size_t width = plan->grid.width;
  *product = *sum = 0;
  for (size_t piece = 0; piece < plan->pieces; piece++) {
    for (size_t at = channel; at < width; at += plan->grid.channels) {
      *product += work->totals[piece * 2 * width + at];
      *sum += work->totals[piece * 2 * width + width + at];
    }
  }
}

/* Writes both outputs; `variance` is that of normalize_grad_sums, or NULL. */
static void write_results(const sums_work *work, const unsigned char *variance, double epsilon, unsigned char *first,
                          unsigned char *second) {
  const sums_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  double one[BLOCK], two[BLOCK], spread[BLOCK];
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t at = 0; at < plan->grid.channels; at += BLOCK) {
    size_t some = plan->grid.channels - at < BLOCK ? plan->grid.channels - at : BLOCK;
    if (variance != NULL) vector->cast(HELIO_FLOAT64, plan->type, spread, variance + at * plan->element, some);
    for (size_t i = 0; i < some; i++) {
      if (variance == NULL) {
        moments_of(work, at + i, &one[i], &two[i]);
      } else {
        grad_of(work, at + i, &one[i], &two[i]);
        one[i] /= sqrt(spread[i] + epsilon);
      }
    }
    vector->cast(plan->type, HELIO_FLOAT64, first + at * plan->element, one, some);
    vector->cast(plan->type, HELIO_FLOAT64, second + at * plan->element, two, some);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status moments_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const helio_host *host = base->device->host;
  sums_work work = {.plan = (const sums_plan *)base, .x = cpu_run_address(run, 0)};
  work.totals = (double *)(void *)cpu_run_workspace(run);
  if (work.totals == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "MOMENTS: the workspace is missing");
  if (work.plan->grid.rows > 0) {
    cpu_plan_execute(base, sums_part, &work);
  } else {
    memset(work.totals, 0, totals_bytes(work.plan));
  }
  write_results(&work, NULL, 0, cpu_run_address(run, 1), cpu_run_address(run, 2));
  return HELIO_OK;
}

static helio_status grad_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const helio_host *host = base->device->host;
  const sums_plan *plan = (const sums_plan *)base;
  const cpu_channels *grid = &plan->grid;
  unsigned char *workspace = cpu_run_workspace(run);
  if (workspace == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "the workspace is missing");
  double *mean = (double *)(void *)workspace;
  sums_work work = {plan, cpu_run_address(run, 1), cpu_run_address(run, 0), mean, mean + grid->width};
  base->device->vector->cast(HELIO_FLOAT64, plan->type, mean, cpu_run_address(run, 2), grid->channels);
  for (size_t i = grid->channels; i < grid->width; i++) mean[i] = mean[i - grid->channels];
  if (grid->rows > 0) {
    cpu_plan_execute(base, sums_part, &work);
  } else {
    memset(work.totals, 0, totals_bytes(plan));
  }
  write_results(&work, cpu_run_address(run, 3), run_real(run, 0), cpu_run_address(run, 4), cpu_run_address(run, 5));
  return HELIO_OK;
}

const helio_kernel cpu_kernel_moments = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_MOMENTS,
    .types = CALL_FLOAT_TYPES,
    .plan = moments_plan_make,
    .run = moments_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_normalize_grad_sums = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_NORMALIZE_GRAD_SUMS,
    .types = CALL_FLOAT_TYPES,
    .plan = grad_plan_make,
    .run = grad_run,
    .plan_free = cpu_plan_free,
};
