/* SPDX-License-Identifier: Apache-2.0 */
/* How the threads of blocks share sums over rows and over columns: see the last part of kernels/prelude.cu. All of this
 * follows from shapes alone, so that results are the same on every device. */
#ifndef GPU_ARRANGE_H
#define GPU_ARRANGE_H

#include "gpu.h"

/* Threads that share one row of so many columns: a power of two, up to GPU_BLOCK. */
int32_t gpu_team_lanes(size_t columns);

/* Blocks for kernels in which each of `rows` rows has a team. */
gpu_grid gpu_grid_teams(const helio_backend_device *device, size_t rows, int32_t lanes);

/* A sum that is cut into pieces, which are put together by a second kernel. */
typedef struct gpu_pieces {
  int64_t count, length; /* how many, at least one; and summands of each */
} gpu_pieces;

/* Where `lanes` threads share each result, and `groups` blocks have all of them. */
gpu_pieces gpu_pieces_of(size_t summands, int32_t lanes, size_t groups);

/* Sums of `rows` rows into `columns` columns: a block has `width` of these, a power of two up to GPU_BLOCK. */
int32_t gpu_strip_width(size_t columns, size_t rows);

/* Blocks that have `width` of `columns` columns each. */
size_t gpu_strip_groups(size_t columns, int32_t width);

/* Blocks for kernels in which each block goes over units. */
gpu_grid gpu_grid_units(const helio_backend_device *device, size_t units);

/* Rows and columns of a tensor, the last axis being a row's; one element if it has no axis. */
size_t gpu_row_count(const helio_argument *x);
size_t gpu_column_count(const helio_argument *x);

#endif
