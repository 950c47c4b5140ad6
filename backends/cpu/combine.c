/* SPDX-License-Identifier: Apache-2.0 */
/* combine_rows: rows of equal index summed, and their squares where they are wanted. The caller's thread sorts the
 * indices by their digits, which keeps equal ones in their order; the team then forms the sums. */
#include "rows.h"

#include <string.h>

/* Columns that are summed at a time. */
#define CHUNK 512

typedef struct entry {
  uint64_t index;
  size_t row; /* of the input */
} entry;

typedef struct combine_plan {
  helio_plan base;
  helio_type type, compute, index_type;
  size_t element;
  size_t rows, row; /* how many, and elements of each */
  bool squares;     /* are wanted */
} combine_plan;

typedef struct combine_work {
  const combine_plan *plan;
  cpu_indices indices;
  const unsigned char *x;
  unsigned char *y, *squares; /* squares: NULL where they are not wanted */
  const entry *sorted;
  const size_t *begins; /* where in `sorted` the rows of each result begin; one more at the end */
  size_t results;
} combine_work;

static helio_status combine_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"TI", "TIt", CALL_FLOAT_TYPES};
  helio_status status = cpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *indices = call_input(call, 1);
  const helio_argument *y = call_output(call), *combined = call_output_at(call, 1);
  const helio_argument *squares = call_output_at(call, 2);
  if (x->rank < 1 || indices->rank != 1 || indices->extent[0] != x->extent[0] || !call_same_shape(x, y) ||
      !call_same_shape(indices, combined) || indices->type != combined->type ||
      (squares != NULL && !call_same_shape(x, squares)))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "COMBINE_ROWS: rows and indices do not go together");
  combine_plan *plan = (combine_plan *)cpu_plan_new(device, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->type = (helio_type)x->type;
  plan->compute = plan->type == HELIO_FLOAT64 ? HELIO_FLOAT64 : HELIO_FLOAT32;
  plan->index_type = (helio_type)indices->type;
  plan->element = call_type_size(x->type);
  plan->rows = (size_t)x->extent[0];
  plan->row = cpu_row_elements(x);
  plan->squares = squares != NULL;
  plan->base.empty = plan->rows == 0;
  plan->base.parts = cpu_parts_for_bytes(device, plan->rows * plan->row * plan->element * (plan->squares ? 3 : 2));
  answer->plan = &plan->base;
  answer->workspace = plan->rows == 0 ? 0 : 2 * plan->rows * sizeof(entry) + (plan->rows + 1) * sizeof(size_t);
  return HELIO_OK;
}

/* The entries of all rows that have an index; says how many, and the largest index. */
static size_t collect(const cpu_indices *indices, entry *entries, uint64_t *largest) {
  size_t count = 0;
  *largest = 0;
  for (size_t i = 0; i < indices->count; i++) {
    int64_t index = cpu_index_at(indices, i);
    if (index < 0) continue;
    entries[count++] = (entry){(uint64_t)index, i};
    if ((uint64_t)index > *largest) *largest = (uint64_t)index;
  }
  return count;
}

/* Stable, by bytes from the lowest. The result is in one of the two arrays. */
static entry *sort_entries(entry *entries, entry *other, size_t count, uint64_t largest) {
  for (unsigned shift = 0; shift < 64 && largest >> shift != 0; shift += 8) {
    size_t begin[256] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++) begin[entries[i].index >> shift & 255]++;
    for (size_t digit = 0; digit < 256; digit++) {
      size_t of_digit = begin[digit];
      begin[digit] = sum;
      sum += of_digit;
    }
    for (size_t i = 0; i < count; i++) other[begin[entries[i].index >> shift & 255]++] = entries[i];
    entry *swap = entries;
    entries = other;
    other = swap;
  }
  return entries;
}

static void write_index(const combine_plan *plan, unsigned char *target, size_t i, int64_t index) {
  if (plan->index_type == HELIO_INT64) {
    ((int64_t *)(void *)target)[i] = index;
  } else {
    ((int32_t *)(void *)target)[i] = (int32_t)index;
  }
}

/* Sorts, and writes the distinct indices. */
static void prepare(combine_work *work, unsigned char *workspace, unsigned char *combined) {
  const combine_plan *plan = work->plan;
  entry *entries = (entry *)(void *)workspace, *other = entries + plan->rows;
  size_t *begins = (size_t *)(void *)(other + plan->rows);
  uint64_t largest;
  size_t count = collect(&work->indices, entries, &largest), results = 0;
  const entry *sorted = sort_entries(entries, other, count, largest);
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && sorted[i].index == sorted[i - 1].index) continue;
    write_index(plan, combined, results, (int64_t)sorted[i].index);
    begins[results++] = i;
  }
  begins[results] = count;
  for (size_t i = results; i < plan->rows; i++) write_index(plan, combined, i, -1);
  work->sorted = sorted;
  work->begins = begins;
  work->results = results;
}

/* Adds the squares of a row's chunk, which is of the type that is computed in; those of the first row begin the sum. */
static void add_squares(const combine_plan *plan, unsigned char *sum, const unsigned char *x, bool first,
                        size_t count) {
  const cpu_vector_table *vector = plan->base.device->vector;
  _Alignas(64) unsigned char squares[CHUNK * 8];
  vector->arithmetic(CPU_MUL, CPU_FORM_BOTH, plan->compute, first ? sum : squares, x, x, count);
  if (!first) vector->arithmetic(CPU_ADD, CPU_FORM_BOTH, plan->compute, sum, sum, squares, count);
}

/* One chunk of one result: its rows, added in their order. */
static void combine_chunk(const combine_work *work, size_t result, size_t column, size_t count) {
  const combine_plan *plan = work->plan;
  const cpu_vector_table *vector = plan->base.device->vector;
  size_t at = (result * plan->row + column) * plan->element;
  _Alignas(64) unsigned char sum[CHUNK * 8], squares[CHUNK * 8];
  _Alignas(64) unsigned char next[CHUNK * 4];
  for (size_t i = work->begins[result]; i < work->begins[result + 1]; i++) {
    const unsigned char *x = work->x + (work->sorted[i].row * plan->row + column) * plan->element;
    bool first = i == work->begins[result];
    if (first || plan->compute != plan->type) {
      vector->cast(plan->compute, plan->type, first ? sum : next, x, count);
      x = first ? sum : next;
    }
    if (!first) vector->arithmetic(CPU_ADD, CPU_FORM_BOTH, plan->compute, sum, sum, x, count);
    if (work->squares != NULL) add_squares(plan, squares, x, first, count);
  }
  vector->cast(plan->type, plan->compute, work->y + at, sum, count);
  if (work->squares != NULL) vector->cast(plan->type, plan->compute, work->squares + at, squares, count);
}

static void combine_part(void *argument, unsigned part, unsigned parts) {
  const combine_work *work = argument;
  const combine_plan *plan = work->plan;
  cpu_row_cut cut = cpu_cut_rows(work->results, plan->row, plan->element, part, parts);
  unsigned saved = cpu_float_begin(CPU_FLOAT_FLUSH);
  for (size_t result = cut.rows.begin; result < cut.rows.end; result++) {
    for (size_t at = cut.columns.begin; at < cut.columns.end; at += CHUNK) {
      size_t left = cut.columns.end - at;
      combine_chunk(work, result, at, left < CHUNK ? left : CHUNK);
    }
  }
  cpu_float_end(CPU_FLOAT_FLUSH, saved);
  cpu_range rest = cpu_part_range((plan->rows - work->results) * plan->row, 64, part, parts);
  size_t first = (work->results * plan->row + rest.begin) * plan->element;
  size_t bytes = (rest.end - rest.begin) * plan->element;
  if (bytes > 0) memset(work->y + first, 0, bytes);
  if (bytes > 0 && work->squares != NULL) memset(work->squares + first, 0, bytes);
}

static helio_status combine_run(helio_plan *base, const helio_run *run) {
  helio_status status = cpu_run_check(base, run);
  if (status != HELIO_OK || base->empty) return status;
  const combine_plan *plan = (const combine_plan *)base;
  const helio_host *host = base->device->host;
  unsigned char *workspace = cpu_run_workspace(run);
  if (workspace == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "COMBINE_ROWS: the workspace is missing");
  combine_work work = {.plan = plan, .x = cpu_run_address(run, 0), .y = cpu_run_address(run, 2)};
  if (plan->squares) work.squares = cpu_run_address(run, 4);
  work.indices = (cpu_indices){cpu_run_address(run, 1), plan->index_type, plan->rows};
  prepare(&work, workspace, cpu_run_address(run, 3));
  if (plan->row > 0) cpu_plan_execute(base, combine_part, &work);
  return HELIO_OK;
}

const helio_kernel cpu_kernel_combine_rows = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_COMBINE_ROWS,
    .types = CALL_FLOAT_TYPES,
    .plan = combine_plan_make,
    .run = combine_run,
    .plan_free = cpu_plan_free,
};
