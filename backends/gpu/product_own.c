/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by a kernel of ours: where there is no library, where it does not have the type, and where it
 * refuses what it was thought to take. */
#include "products.h"

void gpu_own_product_describe(gpu_own_product *own, const vendor_product *product, uint32_t activation) {
  own->type = product->type;
  own->how = (gpu_product_arguments){
      .m = product->m,
      .n = product->n,
      .k = product->k,
      .batches = 1,
      .step_a = {product->transpose_a ? 1 : product->k, product->transpose_a ? product->m : 1},
      .step_b = {product->transpose_b ? product->k : 1, product->transpose_b ? 1 : product->n},
      .activation = activation,
  };
}

helio_status gpu_own_product_find(helio_backend_device *device, gpu_own_product *own) {
  vendor_function *function = NULL;
  helio_status status = gpu_kernel_find(device, "product", own->type, "multiply", &function);
  if (status == HELIO_OK) atomic_store(&own->function, function);
  return status;
}

/* In a run: only there it turns out that the kernel is needed. Finding it may compile, and loads a module. */
static helio_status find_in_turn(helio_backend_device *device, gpu_own_product *own) {
  const helio_host *host = device->host;
  if (atomic_load(&own->function) != NULL) return HELIO_OK;
  host->turn_begin(host, HELIO_TURN_DRIVER);
  helio_status status = gpu_own_product_find(device, own);
  host->turn_end(host, HELIO_TURN_DRIVER);
  return status;
}

helio_status gpu_own_product_run(const helio_plan *plan, const helio_run *run, gpu_own_product *own, gpu_address y,
                                 gpu_address a, gpu_address b, gpu_address bias) {
  gpu_product_arguments how = own->how;
  helio_status status = find_in_turn(plan->device, own);
  if (status != HELIO_OK) return status;
  void *arguments[] = {&y, &a, &b, &bias, &how};
  return gpu_launch(plan, run, atomic_load(&own->function), gpu_grid_of_tiles(plan->device, how.m, how.n, how.batches),
                    arguments);
}
