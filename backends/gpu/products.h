/* SPDX-License-Identifier: Apache-2.0 */
/* What products of matrices and convolutions share. */
#ifndef GPU_PRODUCTS_H
#define GPU_PRODUCTS_H

#include "libraries.h"

#include <stdatomic.h>

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

/* As `product` of kernels/product.cu. */
typedef struct gpu_product_arguments {
  int64_t m, n, k, batches;
  int64_t step_a[2], step_b[2];
  gpu_axes batches_a, batches_b;
  uint32_t activation, unused;
} gpu_product_arguments;

/* y = activation(a × b + bias) by a kernel of ours. */
typedef struct gpu_own_product {
  uint32_t type;
  gpu_product_arguments how;
  atomic_bool refused;                 /* by the library, which was thought to take it */
  _Atomic(vendor_function *) function; /* NULL: not found yet */
} gpu_own_product;

/* As the library would be told of it, without batches. */
void gpu_own_product_describe(gpu_own_product *own, const vendor_product *product, uint32_t activation);

/* In a plan that will need it. One that has the library's goes without: compiling the kernel takes long. */
helio_status gpu_own_product_find(helio_backend_device *device, gpu_own_product *own);

/* Finds the kernel first if no plan has: that blocks. */
helio_status gpu_own_product_run(const helio_plan *plan, const helio_run *run, gpu_own_product *own, gpu_address y,
                                 gpu_address a, gpu_address b, gpu_address bias);

/* Bytes of a part of a workspace, such that what follows is aligned. */
static inline size_t gpu_padded(size_t bytes) {
  return (bytes + GPU_ALIGNMENT - 1) / GPU_ALIGNMENT * GPU_ALIGNMENT;
}

#endif
