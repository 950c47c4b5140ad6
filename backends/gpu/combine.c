/* SPDX-License-Identifier: Apache-2.0 */
/* combine_rows: rows of equal index summed, and their squares where they are wanted. Indices are sorted by tiles and
 * merges (kernels/sort.cu), so that the number of launches follows from the number of rows alone; then all sums are
 * formed at once (kernels/combine.cu). */
#include "arrange.h"

/* As in kernels/sort.cu. */
#define TILE 1024
#define MARK 64

typedef struct combine_plan {
  helio_plan base;
  vendor_function *sort_tiles, *merge_runs, *count_firsts, *list_firsts, *combine;
  gpu_grid grid; /* of the sums */
  int64_t rows, columns;
  uint32_t long_blocks; /* of them, for results of many rows */
  int32_t width;        /* columns that one of these has */
  int32_t wide;         /* are indices int64? */
  bool squares;         /* are wanted */
} combine_plan;

/* The workspace. There are two lists of entries: each merge goes from one to the other. */
typedef struct combine_space {
  gpu_address keys[2], rows[2], begins, marks, firsts, results;
  size_t bytes;
} combine_space;

static gpu_address take(combine_space *space, gpu_address base, size_t count, size_t element) {
  gpu_address address = base + space->bytes;
  space->bytes += count * element;
  return address;
}

static combine_space space_at(const combine_plan *plan, gpu_address base) {
  size_t rows = (size_t)plan->rows;
  combine_space space = {.bytes = 0};
  for (int i = 0; i < 2; i++) space.keys[i] = take(&space, base, rows, sizeof(uint64_t));
  for (int i = 0; i < 2; i++) space.rows[i] = take(&space, base, rows, sizeof(uint32_t));
  space.begins = take(&space, base, rows + 1, sizeof(uint32_t));
  space.marks = take(&space, base, rows / MARK + 1, sizeof(uint32_t));
  space.firsts = take(&space, base, rows / TILE + 1, sizeof(uint32_t));
  space.results = take(&space, base, 1, sizeof(uint32_t));
  return space;
}

static helio_status find_kernels(combine_plan *plan, uint32_t type) {
  helio_backend_device *device = plan->base.device;
  const struct {
    const char *name;
    vendor_function **function;
  } sorting[] = {{"sort_tiles", &plan->sort_tiles},
                 {"merge_runs", &plan->merge_runs},
                 {"count_firsts", &plan->count_firsts},
                 {"list_firsts", &plan->list_firsts}};
  for (size_t i = 0; i < sizeof sorting / sizeof sorting[0]; i++) {
    helio_status status = gpu_kernel_find(device, "sort", 0, sorting[i].name, sorting[i].function);
    if (status != HELIO_OK) return status;
  }
  return gpu_kernel_find(device, "combine", type, "combine_rows", &plan->combine);
}

static void arrange(combine_plan *plan) {
  size_t rows = (size_t)plan->rows, columns = (size_t)plan->columns;
  plan->width = gpu_strip_width(columns, MARK);
  plan->grid = gpu_grid_over(plan->base.device, rows * columns);
  size_t groups = gpu_strip_groups(columns, plan->width);
  plan->long_blocks = rows <= MARK ? 0 : gpu_grid_units(plan->base.device, rows / MARK * groups).blocks;
  plan->grid.blocks += plan->long_blocks;
}

static helio_status combine_plan_new(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_argument *x = call_input(call, 0);
  combine_plan *plan = (combine_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->rows = x->extent[0];
  plan->columns = 1;
  for (uint32_t i = 1; i < x->rank; i++) plan->columns *= x->extent[i];
  plan->wide = call_input(call, 1)->type == HELIO_INT64;
  plan->squares = call_output_at(call, 2) != NULL;
  arrange(plan);
  return gpu_plan_finish(&plan->base, find_kernels(plan, x->type), space_at(plan, 0).bytes, answer);
}

static helio_status combine_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  const helio_host *host = device->host;
  const call_signature signature = {"TI", "TIt", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *x = call_input(call, 0), *indices = call_input(call, 1);
  const helio_argument *y = call_output(call), *combined = call_output_at(call, 1);
  const helio_argument *squares = call_output_at(call, 2);
  if (x->rank < 1 || indices->rank != 1 || indices->extent[0] != x->extent[0] || !call_same_shape(x, y) ||
      !call_same_shape(indices, combined) || indices->type != combined->type ||
      (squares != NULL && !call_same_shape(x, squares)))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "COMBINE_ROWS: rows and indices do not go together");
  if (x->extent[0] > INT32_MAX) return host->fail(host, HELIO_NOT_SUPPORTED, "COMBINE_ROWS: there are too many rows");
  return combine_plan_new(device, call, answer);
}

/* Sorts; the entries are then in the first list. */
static helio_status sort_run(combine_plan *plan, const helio_run *run, combine_space *space) {
  const helio_backend_device *device = plan->base.device;
  gpu_address indices = gpu_run_address(run, 1);
  void *tile_arguments[] = {&indices, &plan->wide, &space->keys[0], &space->rows[0], &plan->rows};
  gpu_grid grid = gpu_grid_units(device, gpu_strip_groups((size_t)plan->rows, TILE));
  helio_status status = gpu_launch(&plan->base, run, plan->sort_tiles, grid, tile_arguments);
  for (int64_t length = TILE; status == HELIO_OK && length < plan->rows; length *= 2) {
    void *arguments[] = {&space->keys[0], &space->rows[0], &space->keys[1], &space->rows[1], &plan->rows, &length};
    grid = gpu_grid_over(device, (size_t)plan->rows);
    status = gpu_launch(&plan->base, run, plan->merge_runs, grid, arguments);
    gpu_address keys = space->keys[0], rows = space->rows[0];
    space->keys[0] = space->keys[1];
    space->rows[0] = space->rows[1];
    space->keys[1] = keys;
    space->rows[1] = rows;
  }
  return status;
}

/* Lists the distinct indices, and where their rows are. */
static helio_status list_run(combine_plan *plan, const helio_run *run, combine_space *space) {
  const helio_backend_device *device = plan->base.device;
  gpu_address distinct = gpu_run_address(run, 3);
  gpu_grid grid = gpu_grid_units(device, gpu_strip_groups((size_t)plan->rows, TILE));
  void *count_arguments[] = {&space->keys[0], &space->firsts, &plan->rows};
  helio_status status = gpu_launch(&plan->base, run, plan->count_firsts, grid, count_arguments);
  if (status != HELIO_OK) return status;
  void *arguments[] = {&space->keys[0], &space->firsts, &space->begins, &space->marks,
                       &space->results, &distinct,      &plan->wide,    &plan->rows};
  return gpu_launch(&plan->base, run, plan->list_firsts, grid, arguments);
}

static helio_status combine_run(helio_plan *base, const helio_run *run) {
  if (base->empty) return HELIO_OK;
  combine_plan *plan = (combine_plan *)base;
  helio_status status = gpu_run_begin(base, run);
  combine_space space = space_at(plan, gpu_run_workspace(run));
  if (status == HELIO_OK) status = sort_run(plan, run, &space);
  if (status == HELIO_OK) status = list_run(plan, run, &space);
  if (status != HELIO_OK || plan->columns == 0) return status;
  gpu_address x = gpu_run_address(run, 0), y = gpu_run_address(run, 2);
  gpu_address squares = plan->squares ? gpu_run_address(run, 4) : 0;
  void *arguments[] = {&x,
                       &y,
                       &squares,
                       &space.rows[0],
                       &space.begins,
                       &space.marks,
                       &space.results,
                       &plan->rows,
                       &plan->columns,
                       &plan->width,
                       &plan->long_blocks};
  return gpu_launch(base, run, plan->combine, plan->grid, arguments);
}

const helio_kernel gpu_kernel_combine_rows = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_COMBINE_ROWS,
    .types = CALL_FLOAT_TYPES,
    .plan = combine_plan_make,
    .run = combine_run,
    .plan_free = gpu_plan_free,
};
