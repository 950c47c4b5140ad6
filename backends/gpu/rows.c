/* SPDX-License-Identifier: Apache-2.0 */
/* gather and one_hot: rows by their numbers. */
#include "units.h"

#define INDEX_TYPES (HELIO_TYPE_BIT(HELIO_INT32) | HELIO_TYPE_BIT(HELIO_INT64))

typedef struct rows_plan {
  helio_plan base;
  gpu_movers movers;
  int32_t wide_indices; /* int64 */
  unsigned element;     /* its size's logarithm */
  int64_t rows;         /* that an index may name */
  int64_t indices;      /* how many there are */
  uint64_t row;         /* bytes of one */
  uint64_t hot;         /* the bits of 1 in the output's type */
} rows_plan;

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
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *indices = call_input(call, 1), *y = call_output(call);
  if (!gather_fits(x, indices, y))
    return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "GATHER: the output is not rows of the input");
  rows_plan *plan = (rows_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  size_t element = call_type_size(x->type);
  plan->wide_indices = indices->type == HELIO_INT64;
  plan->indices = (int64_t)call_element_count(indices);
  plan->rows = x->extent[0];
  plan->row = element;
  for (uint32_t i = 1; i < x->rank; i++) plan->row *= (uint64_t)x->extent[i];
  if (!plan->base.empty) status = gpu_movers_find(device, "rows", "gather", element, 16, &plan->movers);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status gather_run(helio_plan *base, const helio_run *run) {
  rows_plan *plan = (rows_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), indices = gpu_run_address(run, 1), y = gpu_run_address(run, 2);
  gpu_address word = gpu_run_status(run);
  unsigned unit = gpu_unit_of(plan->row | x | y);
  int64_t row = (int64_t)(plan->row >> unit);
  void *arguments[] = {&y,          &x,   &indices, &plan->wide_indices, &plan->indices,
                       &plan->rows, &row, &word,    &base->operation};
  gpu_grid grid = gpu_grid_over(base->device, (size_t)(plan->indices * row));
  return gpu_launch(base, run, plan->movers.function[unit], grid, arguments);
}

/* The bits of 1. */
static uint64_t one_of(uint32_t type) {
  switch (type) {
  case HELIO_FLOAT32:
    return 0x3f800000;
  case HELIO_FLOAT64:
    return UINT64_C(0x3ff0000000000000);
  case HELIO_FLOAT16:
    return 0x3c00;
  case HELIO_BFLOAT16:
    return 0x3f80;
  default:
    return 1;
  }
}

static helio_status one_hot_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const call_signature signature = {"I", "?", INDEX_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *indices = call_input(call, 0), *y = call_output(call);
  bool fits = y->rank == indices->rank + 1;
  for (uint32_t i = 0; fits && i < indices->rank; i++) fits = y->extent[i] == indices->extent[i];
  if (!fits) return device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "ONE_HOT: the output has no last axis");
  rows_plan *plan = (rows_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  size_t element = call_type_size(y->type);
  while ((size_t)1 << plan->element < element) plan->element++;
  plan->wide_indices = indices->type == HELIO_INT64;
  plan->indices = (int64_t)call_element_count(indices);
  plan->rows = y->extent[y->rank - 1];
  plan->hot = one_of(y->type);
  if (!plan->base.empty) status = gpu_movers_find(device, "rows", "one_hot", element, element, &plan->movers);
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

static helio_status one_hot_run(helio_plan *base, const helio_run *run) {
  rows_plan *plan = (rows_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address indices = gpu_run_address(run, 0), y = gpu_run_address(run, 1);
  void *arguments[] = {&y, &indices, &plan->wide_indices, &plan->indices, &plan->rows, &plan->hot};
  gpu_grid grid = gpu_grid_over(base->device, (size_t)(plan->indices * plan->rows));
  return gpu_launch(base, run, plan->movers.function[plan->element], grid, arguments);
}

const helio_kernel gpu_kernel_gather = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_GATHER,
    .types = CALL_ALL_TYPES,
    .plan = gather_plan_make,
    .run = gather_run,
    .plan_free = gpu_plan_free,
};

const helio_kernel gpu_kernel_one_hot = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_ONE_HOT,
    .types = INDEX_TYPES,
    .plan = one_hot_plan_make,
    .run = one_hot_run,
    .plan_free = gpu_plan_free,
};
