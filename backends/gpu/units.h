/* SPDX-License-Identifier: Apache-2.0 */
/* What elementwise operations and those that move elements share: accesses of several elements at a time, where
 * addresses allow it, and matrices that are transposed. */
#ifndef GPU_UNITS_H
#define GPU_UNITS_H

#include "gpu.h"

/* --- packs: neighbours that kernels of elementwise operations read or write at a time --- */

/* How many there are of an element's size: PACK of kernels/prelude.cu. */
static inline size_t gpu_pack(size_t element) {
  return element >= 8 ? 2 : 4;
}

static inline bool gpu_is_aligned(gpu_address address, size_t bytes) {
  return address % bytes == 0;
}

/* --- units: what kernels that only move elements move at a time, 2⁰ to 2⁴ bytes --- */

#define GPU_UNITS 5

/* Kernels of one name for units from the element's size on. */
typedef struct gpu_movers {
  vendor_function *function[GPU_UNITS]; /* by the unit's logarithm */
} gpu_movers;

/* Finds NAME_1 … NAME_16 of a text, but none for units smaller than an element or larger than `largest` bytes. */
helio_status gpu_movers_find(helio_backend_device *device, const char *text, const char *name, size_t element,
                             size_t largest, gpu_movers *movers);

/* The logarithm of the largest unit that divides all numbers whose bits are in `bytes`: sizes and addresses, joined by
 * bitwise or. */
static inline unsigned gpu_unit_of(uint64_t bytes) {
  unsigned unit = 0;
  while (unit < GPU_UNITS - 1 && (bytes >> unit & 1) == 0) unit++;
  return unit;
}

/* --- walks: a tensor's elements in another order than they lie --- */

/* Runs of bytes that lie together, and how to go from one to the next: axes from the innermost, in bytes. The first is
 * the run. One axis more than tensors have, for where elements do not lie together each is a run. */
typedef struct gpu_walk {
  uint32_t axes;
  uint64_t extent[HELIO_MAX_RANK + 1], stride[HELIO_MAX_RANK + 1];
  uint64_t bytes;     /* in all */
  uint64_t multiples; /* for gpu_unit_of() */
} gpu_walk;

/* Of `rank` axes, outermost first, with strides in elements. None of the extents is 0. */
void gpu_walk_make(gpu_walk *walk, uint32_t rank, const int64_t *extent, const int64_t *stride, size_t element);

/* In units of 2^unit bytes. */
gpu_axes gpu_walk_axes(const gpu_walk *walk, unsigned unit);

/* --- transpose.c: matrices, for others than the operation --- */

/* The kernel that transposes a matrix of elements of 1, 2, 4 or 8 bytes. */
helio_status gpu_transpose_find(helio_backend_device *device, size_t element, vendor_function **function);

/* y is x transposed, which has so many rows and columns. */
helio_status gpu_transpose_run(const helio_plan *plan, const helio_run *run, vendor_function *function, gpu_address y,
                               gpu_address x, int64_t rows, int64_t columns);

/* The strides of a tensor's axes, in elements. */
void gpu_strides(const helio_argument *tensor, int64_t *stride);

#endif
