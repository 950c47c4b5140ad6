/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a product or a convolution of a library's, in one kernel. */
#include "products.h"

helio_status gpu_epilogue_find(helio_backend_device *device, uint32_t type, bool has_bias, gpu_epilogue *epilogue) {
  epilogue->function = NULL;
  if (!has_bias && epilogue->activation <= HELIO_LINEAR) return HELIO_OK;
  return gpu_kernel_find(device, "epilogue", type, "epilogue", &epilogue->function);
}

helio_status gpu_epilogue_run(const helio_plan *plan, const helio_run *run, const gpu_epilogue *epilogue, gpu_address y,
                              gpu_address bias) {
  if (epilogue->function == NULL) return HELIO_OK;
  int64_t count = epilogue->count, columns = epilogue->columns;
  uint32_t activation = epilogue->activation;
  void *arguments[] = {&y, &bias, &count, &columns, &activation};
  return gpu_launch(plan, run, epilogue->function, gpu_grid_over(plan->device, (size_t)count), arguments);
}
