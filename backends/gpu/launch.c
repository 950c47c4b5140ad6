/* SPDX-License-Identifier: Apache-2.0 */
/* Handing kernels to streams. */
#include "products.h"

/* Blocks for each multiprocessor: more than it holds at once, so that those that end early leave no gap. A tile takes
 * long, so fewer of those will do. */
enum { BLOCKS_PER_UNIT = 32, TILES_PER_UNIT = 16 };

static gpu_grid grid_of(const helio_backend_device *device, size_t needed, size_t most_per_unit) {
  size_t most = (size_t)device->facts->compute_units * most_per_unit, blocks = needed < most ? needed : most;
  return (gpu_grid){.blocks = blocks == 0 ? 1 : (unsigned)blocks, .threads = GPU_BLOCK};
}

gpu_grid gpu_grid_over(const helio_backend_device *device, size_t count) {
  return grid_of(device, count / GPU_BLOCK + (count % GPU_BLOCK != 0), BLOCKS_PER_UNIT);
}

gpu_grid gpu_grid_of_tiles(const helio_backend_device *device, int64_t rows, int64_t columns, int64_t products) {
  size_t high = ((size_t)rows + GPU_TILE - 1) / GPU_TILE, wide = ((size_t)columns + GPU_TILE - 1) / GPU_TILE;
  return grid_of(device, high * wide * (size_t)products, TILES_PER_UNIT);
}

helio_status gpu_launch(const helio_plan *plan, const helio_run *run, vendor_function *function, gpu_grid grid,
                        void **arguments) {
  vendor_result result = vendor_launch(function, grid.blocks, grid.threads, run->stream->native, arguments);
  return result == 0 ? HELIO_OK : gpu_fail(plan->device, result, call_operation_name(plan->operation));
}

helio_status gpu_run_begin(const helio_plan *plan, const helio_run *run) {
  const helio_host *host = plan->device->host;
  helio_status status = run_check(host, run);
  if (status != HELIO_OK) return status;
  if (plan->workspace > 0 && run_workspace(run).buffer == NULL)
    return host->fail(host, HELIO_INVALID_ARGUMENT, "the workspace is missing");
  return gpu_enter(plan->device);
}
