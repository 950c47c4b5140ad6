/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by kernels of ours: kernels/product.cu. */
#include "conv.h"

/* Columns of a product below which tiles are mostly empty. */
#define NARROW 16

/* The kernel's gradient sums over all positions, which are cut into chunks: enough of them to keep a device busy, none
 * too short, and their sums not too large. It depends on the shapes alone, so that each device gives the same. */
#define CHUNK_TILES     512
#define CHUNK_POSITIONS 256
#define CHUNK_BYTES     ((int64_t)16 << 20)

/* Rows and columns of the products that each group is. */
static void product_size(const gpu_conv_plan *plan, int64_t *rows, int64_t *columns) {
  const gpu_conv_shape *s = &plan->shape;
  bool to_input = plan->direction == VENDOR_CONVOLVE_GRAD_INPUT;
  *columns = to_input ? s->group_in : s->group_out;
  *rows = to_input ? s->images * s->height * s->width : gpu_conv_positions(s);
  if (plan->direction == VENDOR_CONVOLVE_GRAD_KERNEL) *rows = s->kernel[0] * s->kernel[1] * s->group_in;
}

static void choose_chunks(gpu_conv_plan *plan, size_t accumulator) {
  gpu_conv_shape *s = &plan->shape;
  int64_t rows, columns, positions = gpu_conv_positions(s), elements = gpu_conv_kernel_elements(s);
  product_size(plan, &rows, &columns);
  int64_t tiles = ((rows + GPU_TILE - 1) / GPU_TILE) * ((columns + GPU_TILE - 1) / GPU_TILE) * s->groups;
  if (plan->own.narrow) tiles = elements / GPU_BLOCK + 1;
  int64_t chunks = CHUNK_TILES / tiles, most = CHUNK_BYTES / ((int64_t)accumulator * elements);
  if (chunks > most) chunks = most;
  if (chunks > positions / CHUNK_POSITIONS) chunks = positions / CHUNK_POSITIONS;
  s->chunks = chunks < 1 ? 1 : chunks;
  s->chunk = (positions + s->chunks - 1) / s->chunks;
  plan->own.bytes = gpu_padded((size_t)(s->chunks * elements) * accumulator);
}

helio_status gpu_conv_own_find(gpu_conv_plan *plan) {
  static const char *const names[3][2] = {{"convolve", "convolve_narrow"},
                                          {"convolve_grad_input", "convolve_grad_input_narrow"},
                                          {"convolve_grad_kernel", "convolve_grad_kernel_narrow"}};
  helio_backend_device *device = plan->base.device;
  int64_t rows, columns;
  product_size(plan, &rows, &columns);
  plan->own.narrow = columns < NARROW;
  helio_status status =
      gpu_kernel_find(device, "product", plan->type, names[plan->direction][plan->own.narrow], &plan->own.convolve);
  if (status != HELIO_OK || plan->direction != VENDOR_CONVOLVE_GRAD_KERNEL) return status;
  choose_chunks(plan, plan->type == HELIO_FLOAT64 ? sizeof(double) : sizeof(float));
  return gpu_kernel_find(device, "product", plan->type, "sum_chunks", &plan->own.sum);
}

static gpu_grid grid_of(const gpu_conv_plan *plan) {
  const gpu_conv_shape *s = &plan->shape;
  helio_backend_device *device = plan->base.device;
  int64_t rows, columns, chunks = plan->direction == VENDOR_CONVOLVE_GRAD_KERNEL ? s->chunks : 1;
  product_size(plan, &rows, &columns);
  if (plan->own.narrow) return gpu_grid_over(device, (size_t)(rows * columns * s->groups * chunks));
  return gpu_grid_of_tiles(device, rows, columns, s->groups * chunks);
}

static helio_status grad_kernel_run(const gpu_conv_plan *plan, const helio_run *run, const gpu_conv_places *places) {
  gpu_conv_shape shape = plan->shape;
  gpu_address sums = places->workspace, x = places->x, dy = places->y, kernel = places->kernel;
  void *arguments[] = {&sums, &x, &dy, &shape};
  helio_status status = gpu_launch(&plan->base, run, plan->own.convolve, grid_of(plan), arguments);
  if (status != HELIO_OK) return status;
  int64_t count = gpu_conv_kernel_elements(&shape);
  void *of_sum[] = {&kernel, &sums, &count, &shape.chunks};
  return gpu_launch(&plan->base, run, plan->own.sum, gpu_grid_over(plan->base.device, (size_t)count), of_sum);
}

helio_status gpu_conv_own_run(const gpu_conv_plan *plan, const helio_run *run, const gpu_conv_places *places) {
  gpu_conv_shape shape = plan->shape;
  gpu_address x = places->x, kernel = places->kernel, y = places->y, bias = places->bias;
  void *forward[] = {&y, &x, &kernel, &bias, &shape}, *to_input[] = {&x, &y, &kernel, &shape};
  if (plan->direction == VENDOR_CONVOLVE_GRAD_KERNEL) return grad_kernel_run(plan, run, places);
  return gpu_launch(&plan->base, run, plan->own.convolve, grid_of(plan),
                    plan->direction == VENDOR_CONVOLVE ? forward : to_input);
}
