/* SPDX-License-Identifier: Apache-2.0 */
#include "units.h"

#include <stdio.h>
#include <string.h>

helio_status gpu_movers_find(helio_backend_device *device, const char *text, const char *name, size_t element,
                             size_t largest, gpu_movers *movers) {
  for (unsigned unit = 0; unit < GPU_UNITS; unit++) {
    size_t bytes = (size_t)1 << unit;
    char kernel[32];
    if (bytes < element || bytes > largest) continue;
    snprintf(kernel, sizeof kernel, "%s_%zu", name, bytes);
    helio_status status = gpu_kernel_find(device, text, 0, kernel, &movers->function[unit]);
    if (status != HELIO_OK) return status;
  }
  return HELIO_OK;
}

void gpu_walk_make(gpu_walk *walk, uint32_t rank, const int64_t *extent, const int64_t *stride, size_t element) {
  memset(walk, 0, sizeof *walk);
  walk->axes = 1;
  walk->extent[0] = walk->bytes = element;
  walk->stride[0] = 1;
  for (uint32_t axis = rank; axis-- > 0;) {
    uint64_t length = (uint64_t)extent[axis], step = (uint64_t)stride[axis] * element;
    uint32_t last = walk->axes - 1;
    walk->bytes *= length;
    if (length == 1) continue;
    if (step == walk->stride[last] * walk->extent[last]) {
      walk->extent[last] *= length;
    } else {
      walk->extent[walk->axes] = length;
      walk->stride[walk->axes++] = step;
    }
  }
  walk->multiples = walk->extent[0];
  for (uint32_t i = 1; i < walk->axes; i++) walk->multiples |= walk->stride[i];
}

gpu_axes gpu_walk_axes(const gpu_walk *walk, unsigned unit) {
  gpu_axes axes = {.rank = 0};
  for (uint32_t i = walk->axes; i-- > 1;) {
    axes.extent[axes.rank] = (int64_t)walk->extent[i];
    axes.stride[axes.rank++] = (int64_t)(walk->stride[i] >> unit);
  }
  /* A run of one unit is no axis: so there are never more than a tensor has. */
  if (walk->extent[0] >> unit != 1) {
    axes.extent[axes.rank] = (int64_t)(walk->extent[0] >> unit);
    axes.stride[axes.rank++] = 1;
  }
  return axes;
}

void gpu_strides(const helio_argument *tensor, int64_t *stride) {
  int64_t step = 1;
  for (uint32_t axis = tensor->rank; axis-- > 0;) {
    stride[axis] = step;
    step *= tensor->extent[axis];
  }
}
