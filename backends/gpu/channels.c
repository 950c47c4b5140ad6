/* SPDX-License-Identifier: Apache-2.0 */
#include "channels.h"

gpu_channel_sums gpu_channel_sums_of(size_t rows, size_t channels) {
  gpu_channel_sums how = {.rows = (int64_t)rows, .channels = (int64_t)channels};
  how.width = gpu_strip_width(channels, rows);
  gpu_pieces pieces = gpu_pieces_of(rows, GPU_BLOCK / how.width, gpu_strip_groups(channels, how.width));
  how.pieces = pieces.count;
  how.piece = pieces.length;
  return how;
}

gpu_channel_sums gpu_channel_sums_finish(const gpu_channel_sums *how) {
  gpu_channel_sums finish = *how;
  finish.width = gpu_strip_width((size_t)how->channels, (size_t)how->pieces);
  return finish;
}

size_t gpu_channel_sums_bytes(const gpu_channel_sums *how) {
  return how->pieces > 1 ? 2 * (size_t)(how->pieces * how->channels) * sizeof(double) : 0;
}

gpu_grid gpu_channel_sums_grid(const helio_backend_device *device, const gpu_channel_sums *how) {
  return gpu_grid_units(device, gpu_strip_groups((size_t)how->channels, how->width) * (size_t)how->pieces);
}

gpu_grid gpu_channel_sums_finish_grid(const helio_backend_device *device, const gpu_channel_sums *finish) {
  return gpu_grid_units(device, gpu_strip_groups((size_t)finish->channels, finish->width));
}
