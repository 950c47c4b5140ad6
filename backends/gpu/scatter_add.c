/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_add: rows are added to rows by their numbers, in order. kernels/scatter_add.cu says how the work is dealt. */
#include "units.h"

/* Blocks for each multiprocessor: as many as it holds at once. Every one of them reads all indices. */
#define BLOCKS_PER_UNIT 8

/* struct deal of kernels/scatter_add.cu. */
typedef struct deal {
  int64_t count, rows, row;
  int32_t wide_indices;
  int32_t column_bits, group_bits, block_bits;
  uint32_t operation;
} deal;

typedef struct scatter_plan {
  helio_plan base;
  vendor_function *function;
  deal deal;
  bool half; /* sums are made in the workspace */
  gpu_grid grid;
} scatter_plan;

static bool scatter_fits(const helio_argument *x, const helio_argument *indices, const helio_argument *y) {
  if (x->rank < 1 || y->rank != x->rank || indices->rank != 1 || indices->extent[0] != x->extent[0]) return false;
  for (uint32_t i = 1; i < x->rank; i++) {
    if (y->extent[i] != x->extent[i]) return false;
  }
  return true;
}

/* The smallest power of two that is not below `count`, up to 2^most; its logarithm. */
static int32_t bits_for(int64_t count, int32_t most) {
  int32_t bits = 0;
  while (bits < most && (int64_t)1 << bits < count) bits++;
  return bits;
}

/* A row gets a thread for each column, up to a whole block, and more blocks if it has more. */
static void share_out(scatter_plan *plan) {
  const int32_t block = bits_for(GPU_BLOCK, 31);
  deal *of = &plan->deal;
  of->column_bits = bits_for(of->row, block);
  of->group_bits = block - of->column_bits;
  int64_t parts = ((of->row - 1) >> of->column_bits) + 1;
  int64_t blocks = (int64_t)plan->base.device->facts->compute_units * BLOCKS_PER_UNIT / parts;
  int64_t needed = ((of->rows - 1) >> of->group_bits) + 1;
  of->block_bits = bits_for(blocks < needed ? blocks : needed, 20);
  plan->grid = (gpu_grid){.blocks = (unsigned)(parts << of->block_bits), .threads = GPU_BLOCK};
}

static helio_status scatter_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"TI", "T", CALL_ARITHMETIC_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *indices = call_input(call, 1), *y = call_output(call);
  if (!scatter_fits(x, indices, y))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "SCATTER_ADD: rows and indices do not fit");
  scatter_plan *plan = (scatter_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->deal = (deal){.count = x->extent[0],
                      .rows = y->extent[0],
                      .row = 1,
                      .wide_indices = indices->type == HELIO_INT64,
                      .operation = HELIO_OP_SCATTER_ADD};
  for (uint32_t i = 1; i < x->rank; i++) plan->deal.row *= x->extent[i];
  plan->half = x->type == HELIO_FLOAT16 || x->type == HELIO_BFLOAT16;
  if (!plan->base.empty) {
    share_out(plan);
    status = gpu_kernel_find(device, "scatter_add", x->type, "scatter_add", &plan->function);
  }
  return gpu_plan_finish(&plan->base, status, plan->half ? call_element_count(y) * sizeof(float) : 0, answer);
}

static helio_status scatter_run(helio_plan *base, const helio_run *run) {
  scatter_plan *plan = (scatter_plan *)base;
  const helio_host *host = base->device->host;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address x = gpu_run_address(run, 0), indices = gpu_run_address(run, 1), y = gpu_run_address(run, 2);
  gpu_address sums = plan->half ? gpu_run_workspace(run) : y, word = gpu_run_status(run);
  if (sums == 0) return host->fail(host, HELIO_INVALID_ARGUMENT, "SCATTER_ADD: the workspace is missing");
  void *arguments[] = {&y, &sums, &x, &indices, &plan->deal, &word};
  return gpu_launch(base, run, plan->function, plan->grid, arguments);
}

const helio_kernel gpu_kernel_scatter_add = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_SCATTER_ADD,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = scatter_plan_make,
    .run = scatter_run,
    .plan_free = gpu_plan_free,
};
