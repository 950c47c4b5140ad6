/* SPDX-License-Identifier: Apache-2.0 */
/* What products of matrices and convolutions share. */
#ifndef GPU_PRODUCTS_H
#define GPU_PRODUCTS_H

#include "libraries.h"

/* Rows and columns of a block's part of a product, as TILE of kernels/product.cu. */
#define GPU_TILE 64

/* A grid of which each block makes one tile of the products of `rows` by `columns` after the other. */
gpu_grid gpu_grid_of_tiles(const helio_backend_device *device, int64_t rows, int64_t columns, int64_t products);

/* What follows a product: y = activation(y + bias), in place. */
typedef struct gpu_epilogue {
  vendor_function *function; /* NULL: nothing follows */
  int64_t count, columns;
  uint32_t activation;
} gpu_epilogue;

/* Of a y of `type`, `count` elements and rows of `columns`. */
helio_status gpu_epilogue_find(helio_backend_device *device, uint32_t type, bool has_bias, gpu_epilogue *epilogue);
helio_status gpu_epilogue_run(const helio_plan *plan, const helio_run *run, const gpu_epilogue *epilogue, gpu_address y,
                              gpu_address bias);

/* Bytes of a part of a workspace, such that what follows is aligned. */
static inline size_t gpu_padded(size_t bytes) {
  return (bytes + GPU_ALIGNMENT - 1) / GPU_ALIGNMENT * GPU_ALIGNMENT;
}

#endif
