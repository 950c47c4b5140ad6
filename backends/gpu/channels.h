/* SPDX-License-Identifier: Apache-2.0 */
/* What the normalizations share: two sums of each channel over all rows, by one kernel or, cut into pieces, by two. */
#ifndef GPU_CHANNELS_H
#define GPU_CHANNELS_H

#include "arrange.h"

/* `struct channel_sums` of kernels/normalize.cu. */
typedef struct gpu_channel_sums {
  int64_t rows, channels;
  int64_t pieces, piece;
  int32_t width, unused;
} gpu_channel_sums;

/* How rows of channels are summed by the first kernel. */
gpu_channel_sums gpu_channel_sums_of(size_t rows, size_t channels);

/* The same for the second, if there is more than one piece. */
gpu_channel_sums gpu_channel_sums_finish(const gpu_channel_sums *how);

/* Bytes of workspace for the pieces' sums. */
size_t gpu_channel_sums_bytes(const gpu_channel_sums *how);

gpu_grid gpu_channel_sums_grid(const helio_backend_device *device, const gpu_channel_sums *how);
gpu_grid gpu_channel_sums_finish_grid(const helio_backend_device *device, const gpu_channel_sums *finish);

/* Is it a list of one element for each channel of x, or absent? */
static inline bool gpu_per_channel(const helio_argument *list, const helio_argument *x) {
  return list == NULL || (list->rank == 1 && list->extent[0] == x->extent[x->rank - 1]);
}

#endif
