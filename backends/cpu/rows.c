/* SPDX-License-Identifier: Apache-2.0 */
/* gather, scatter_add and one_hot: rows by their numbers. */
#include "rows.h"

#include <stdatomic.h>
#include <string.h>

#define INDEX_TYPES (HELIO_TYPE_BIT(HELIO_INT32) | HELIO_TYPE_BIT(HELIO_INT64))

typedef struct rows_plan {
  helio_plan base;
  helio_type type, index_type;
  size_t element;
  size_t rows;    /* that an index may name */
  size_t indices; /* how many there are */
  size_t row;     /* elements of one */
} rows_plan;

typedef struct rows_work {
  const rows_plan *plan;
  cpu_indices indices;
  const unsigned char *x;
  unsigned char *y;
  unsigned char *sums; /* of halves, in float32 */
  atomic_size_t bad;   /* the first index that names no row; as many as there are indices if all do */
} rows_work;

static rows_plan *rows_plan_new(helio_backend_device *device, const helio_argument *typed,
                                const helio_argument *indices) {
  rows_plan *plan = (rows_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return NULL;
  plan->type = (helio_type)typed->type;
  plan->element = call_type_size(typed->type);
  plan->index_type = (helio_type)indices->type;
  plan->indices = call_element_count(indices);
  return plan;
}

/* Parts find bad indices in any order; the first one counts. */
static void note_bad(rows_work *work, size_t at) {
  size_t seen = atomic_load_explicit(&work->bad, memory_order_relaxed);
  while (at < seen && !atomic_compare_exchange_weak(&work->bad, &seen, at)) continue;
}

static void report_bad(rows_work *work, const helio_run *run, uint32_t operation) {
  size_t at = atomic_load(&work->bad);
  if (at < work->indices.count) cpu_run_report(run, operation, cpu_index_at(&work->indices, at));
}

/* The output has the axes of the indices, then those of a row. */
static bool gather_fits(const helio_argument *x, const helio_argument *indices, const helio_argument *y) {
  if (x->rank < 1 || y->rank != indices->rank + x->rank - 1) return false;
  for (uint32_t i = 0; i < y->rank; i++) {
    int64_t expected = i < indices->rank ? indices->extent[i] : x->extent[i - indices->rank + 1];
    if (y->extent[i] != expected) return false;
  }
  return true;
}

static helio_status gather_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"TI", "T", CALL_ALL_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *indices = call_input(call, 1), *y = call_output(call);
  if (!gather_fits(x, indices, y))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "GATHER: the output is not rows of the input");
  rows_plan *plan = rows_plan_new(device, x, indices);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->rows = (size_t)x->extent[0];
  plan->row = cpu_row_elements(x);
  plan->base.empty = plan->indices * plan->row == 0;
  plan->base.parts = cpu_parts_for_bytes(device, plan->indices * plan->row * plan->element * 2);
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

/* Parts are cut anywhere, also within a row. */
static void gather_part(void *argument, unsigned part, unsigned parts) {
  rows_work *work = argument;
  const rows_plan *plan = work->plan;
  size_t row = plan->row * plan->element;
  cpu_range range = cpu_part_range(plan->indices * row, 64, part, parts);
  size_t i = range.begin / row, column = range.begin % row;
  for (size_t at = range.begin; at < range.end; i++, column = 0) {
    size_t bytes = row - column < range.end - at ? row - column : range.end - at;
    int64_t index = cpu_index_at(&work->indices, i);
    if (cpu_index_within(index, plan->rows)) {
      memcpy(work->y + at, work->x + (size_t)index * row + column, bytes);
    } else {
      memset(work->y + at, 0, bytes);
      note_bad(work, i);
    }
    at += bytes;
  }
}

static void rows_work_make(rows_work *work, const helio_plan *base, const helio_run *run) {
  const rows_plan *plan = (const rows_plan *)base;
  work->plan = plan;
  work->x = cpu_run_address(run, 0);
  work->indices = (cpu_indices){cpu_run_address(run, 1), plan->index_type, plan->indices};
  work->y = cpu_run_address(run, 2);
  work->sums = NULL;
  atomic_init(&work->bad, plan->indices);
}

static helio_status gather_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  rows_work work;
  rows_work_make(&work, base, run);
  cpu_plan_execute(base, gather_part, &work);
  report_bad(&work, run, HELIO_OP_GATHER);
  return HELIO_OK;
}

static bool scatter_fits(const helio_argument *x, const helio_argument *indices, const helio_argument *y) {
  if (x->rank < 1 || y->rank != x->rank || indices->rank != 1 || indices->extent[0] != x->extent[0]) return false;
  for (uint32_t i = 1; i < x->rank; i++) {
    if (y->extent[i] != x->extent[i]) return false;
  }
  return true;
}

static bool is_half(helio_type type) {
  return type == HELIO_FLOAT16 || type == HELIO_BFLOAT16;
}

static helio_status scatter_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"TI", "T", CALL_ARITHMETIC_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *indices = call_input(call, 1), *y = call_output(call);
  if (!scatter_fits(x, indices, y))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "SCATTER_ADD: rows and indices do not fit");
  rows_plan *plan = rows_plan_new(device, x, indices);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->rows = (size_t)y->extent[0];
  plan->row = cpu_row_elements(x);
  size_t count = plan->rows * plan->row;
  plan->base.empty = count == 0;
  plan->base.parts = cpu_parts_for_bytes(device, (count + 2 * plan->indices * plan->row) * plan->element);
  answer->plan = &plan->base;
  answer->workspace = is_half(plan->type) ? count * sizeof(float) : 0;
  return HELIO_OK;
}

/* Adds row i of x, or its columns of this part, to `sum`. */
static void scatter_row(const rows_work *work, unsigned char *sum, size_t i, cpu_range columns) {
  const rows_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  size_t count = columns.end - columns.begin;
  const unsigned char *x = work->x + (i * plan->row + columns.begin) * plan->element;
  if (!is_half(plan->type)) {
    vector->arithmetic(CPU_ADD, CPU_FORM_BOTH, plan->type, sum, sum, x, count);
    return;
  }
  float wide[256], *sums = (float *)(void *)sum;
  for (size_t at = 0; at < count; at += 256) {
    size_t some = count - at < 256 ? count - at : 256;
    vector->cast(HELIO_FLOAT32, plan->type, wide, x + at * plan->element, some);
    vector->arithmetic(CPU_ADD, CPU_FORM_BOTH, HELIO_FLOAT32, sums + at, sums + at, wide, some);
  }
}

/* Each part walks through all indices and adds what is its own. Halves are summed in float32 and rounded once. */
static void scatter_part(void *argument, unsigned part, unsigned parts) {
  rows_work *work = argument;
  const rows_plan *plan = work->plan;
  size_t element = work->sums != NULL ? sizeof(float) : plan->element;
  unsigned char *sums = work->sums != NULL ? work->sums : work->y;
  cpu_row_cut cut = cpu_cut_rows(plan->rows, plan->row, element, part, parts);
  size_t count = cut.columns.end - cut.columns.begin;
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t r = cut.rows.begin; r < cut.rows.end; r++)
    memset(sums + (r * plan->row + cut.columns.begin) * element, 0, count * element);
  for (size_t i = 0; i < plan->indices; i++) {
    int64_t index = cpu_index_at(&work->indices, i);
    if (!cpu_index_within(index, plan->rows)) {
      if (part == 0) note_bad(work, i);
    } else if ((size_t)index >= cut.rows.begin && (size_t)index < cut.rows.end) {
      scatter_row(work, sums + ((size_t)index * plan->row + cut.columns.begin) * element, i, cut.columns);
    }
  }
  for (size_t r = cut.rows.begin; work->sums != NULL && r < cut.rows.end; r++) {
    size_t at = r * plan->row + cut.columns.begin;
    plan->base.device->vector->cast(plan->type, HELIO_FLOAT32, work->y + at * plan->element, sums + at * element,
                                    count);
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
}

static helio_status scatter_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const helio_host *host = base->device->host;
  rows_work work;
  rows_work_make(&work, base, run);
  if (is_half(work.plan->type)) {
    work.sums = cpu_run_workspace(run);
    if (work.sums == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "SCATTER_ADD: the workspace is missing");
  }
  cpu_plan_execute(base, scatter_part, &work);
  report_bad(&work, run, HELIO_OP_SCATTER_ADD);
  return HELIO_OK;
}

static helio_status one_hot_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"I", "?", INDEX_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *indices = call_input(call, 0), *y = call_output(call);
  bool fits = y->rank == indices->rank + 1;
  for (uint32_t i = 0; fits && i < indices->rank; i++) fits = y->extent[i] == indices->extent[i];
  if (!fits) return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "ONE_HOT: the output has no last axis");
  rows_plan *plan = rows_plan_new(device, y, indices);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->row = plan->rows = (size_t)y->extent[y->rank - 1];
  plan->base.empty = plan->indices * plan->row == 0;
  plan->base.parts = cpu_parts_for_bytes(device, plan->indices * plan->row * plan->element);
  answer->plan = &plan->base;
  answer->workspace = 0;
  return HELIO_OK;
}

static void one_hot_part(void *argument, unsigned part, unsigned parts) {
  const rows_work *work = argument;
  const rows_plan *plan = work->plan;
  const double one = 1;
  unsigned char hot[8];
  plan->base.device->vector->cast(plan->type, HELIO_FLOAT64, hot, &one, 1);
  cpu_range range = cpu_part_range(plan->indices, 1, part, parts);
  size_t row = plan->row * plan->element;
  memset(work->y + range.begin * row, 0, (range.end - range.begin) * row);
  for (size_t i = range.begin; i < range.end; i++) {
    int64_t index = cpu_index_at(&work->indices, i);
    if (cpu_index_within(index, plan->rows))
      memcpy(work->y + i * row + (size_t)index * plan->element, hot, plan->element);
  }
}

static helio_status one_hot_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const rows_plan *plan = (const rows_plan *)base;
  rows_work work = {.plan = plan, .y = cpu_run_address(run, 1)};
  work.indices = (cpu_indices){cpu_run_address(run, 0), plan->index_type, plan->indices};
  cpu_plan_execute(base, one_hot_part, &work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_gather = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_GATHER,
    .types = CALL_ALL_TYPES,
    .plan = gather_plan_make,
    .run = gather_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_scatter_add = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_SCATTER_ADD,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = scatter_plan_make,
    .run = scatter_run,
    .plan_free = cpu_plan_free,
};

const helio_kernel cpu_kernel_one_hot = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_ONE_HOT,
    .types = INDEX_TYPES,
    .plan = one_hot_plan_make,
    .run = one_hot_run,
    .plan_free = cpu_plan_free,
};
