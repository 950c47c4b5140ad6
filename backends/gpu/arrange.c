/* SPDX-License-Identifier: Apache-2.0 */
#include "arrange.h"

/* Elements of a row that a thread of its team has at least, where rows are so long. */
#define PER_LANE 4

/* Columns that strips have at most where there are rows enough: what a warp reads at a time. */
#define STRIP 32

/* Blocks that are enough for every device, and summands of a thread that are worth a second kernel. */
#define ENOUGH_BLOCKS 512
#define PER_PIECE     32

static size_t divide_up(size_t number, size_t by) {
  return number / by + (number % by != 0);
}

/* The smallest power of two that is not less than `number`, but at most `most`, which is one. */
static size_t power_of_2(size_t number, size_t most) {
  size_t power = 1;
  while (power < number && power < most) power *= 2;
  return power;
}

int32_t gpu_team_lanes(size_t columns) {
  return (int32_t)power_of_2(divide_up(columns, PER_LANE), GPU_BLOCK);
}

gpu_grid gpu_grid_units(const helio_backend_device *device, size_t units) {
  return gpu_grid_over(device, units > SIZE_MAX / GPU_BLOCK ? SIZE_MAX : units * GPU_BLOCK);
}

gpu_grid gpu_grid_teams(const helio_backend_device *device, size_t rows, int32_t lanes) {
  return gpu_grid_units(device, divide_up(rows, (size_t)(GPU_BLOCK / lanes)));
}

gpu_pieces gpu_pieces_of(size_t summands, int32_t lanes, size_t groups) {
  size_t wanted = groups == 0 ? 1 : ENOUGH_BLOCKS / groups, most = summands / ((size_t)lanes * PER_PIECE);
  size_t pieces = wanted < most ? wanted : most;
  if (pieces <= 1) return (gpu_pieces){1, (int64_t)summands};
  size_t length = divide_up(summands, pieces);
  return (gpu_pieces){(int64_t)divide_up(summands, length), (int64_t)length};
}

int32_t gpu_strip_width(size_t columns, size_t rows) {
  size_t strips = GPU_BLOCK / power_of_2(columns, STRIP), useful = power_of_2(rows, GPU_BLOCK);
  size_t width = GPU_BLOCK / (strips < useful ? strips : useful);
  while (width < GPU_BLOCK && columns / width > 2 * ENOUGH_BLOCKS) width *= 2;
  return (int32_t)width;
}

size_t gpu_strip_groups(size_t columns, int32_t width) {
  return divide_up(columns, (size_t)width);
}

size_t gpu_column_count(const helio_argument *x) {
  return x->rank == 0 ? 1 : (size_t)x->extent[x->rank - 1];
}

size_t gpu_row_count(const helio_argument *x) {
  size_t rows = 1;
  for (uint32_t i = 0; i + 1 < x->rank; i++) rows *= (size_t)x->extent[i];
  return rows;
}
