/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by the vendor's library. Our kernels are (height, width, channel of the group, output channel), the
 * library's have the output channel first: each run brings the kernel there and its gradient back, by way of the
 * workspace. And the library pads alike on both sides: where that does not give our result, x is moved into a frame of
 * zeros in the workspace, or dx out of one. */
#include "conv.h"
#include "units.h"

#include <limits.h>
#include <stdlib.h>

/* What the libraries like addresses to be multiples of. */
#define LIBRARY_ALIGNMENT 16

static size_t workspace_limit(const helio_backend_device *device) {
  unsigned long long mebibytes = strtoull(device->host->parameter(device->host, vendor.parameter_workspace), NULL, 10);
  return mebibytes > SIZE_MAX >> 20 ? SIZE_MAX : (size_t)mebibytes << 20;
}

/* Whether the library counts as many elements, and bytes of them, right. */
static bool is_countable(int64_t a, int64_t b, int64_t c, int64_t d, uint32_t type) {
  int64_t product;
  return a > 0 && b > 0 && c > 0 && d > 0 && !__builtin_mul_overflow(a, b, &product) &&
         !__builtin_mul_overflow(product, c, &product) && !__builtin_mul_overflow(product, d, &product) &&
         product <= INT_MAX && product <= vendor_dnn_library.most_bytes / (int64_t)call_type_size(type);
}

/* Padding that is alike on both sides along an axis, and the frame that makes up for the difference. */
static void arrange_axis(gpu_conv_plan *plan, int axis, int64_t output, int64_t *padding, int64_t frame[2]) {
  const gpu_conv_shape *s = &plan->shape;
  int64_t input = axis == 0 ? s->height : s->width, before = s->before[axis], behind = plan->behind[axis];
  frame[0] = frame[1] = 0;
  *padding = before;
  /* What lies behind the last window matters to nobody. */
  if (gpu_conv_window_places(input, before, before, s->kernel[axis], s->stride[axis], s->dilation[axis]) == output)
    return;
  *padding = before < behind ? before : behind;
  frame[0] = before - *padding;
  frame[1] = behind - *padding;
}

/* false if the library cannot count that far. */
static bool describe(gpu_conv_plan *plan, vendor_convolution *c) {
  const gpu_conv_shape *s = &plan->shape;
  gpu_conv_library *library = &plan->library;
  int64_t padding[2], rows[2], columns[2];
  arrange_axis(plan, 0, s->out_height, &padding[0], rows);
  arrange_axis(plan, 1, s->out_width, &padding[1], columns);
  library->frame = (gpu_frame){
      s->images, s->height, s->width, s->channels, s->height + rows[0] + rows[1], s->width + columns[0] + columns[1],
      rows[0],   columns[0]};
  library->framed = library->frame.high != s->height || library->frame.wide != s->width;
  if (!is_countable(s->images, library->frame.high, library->frame.wide, s->channels, plan->type) ||
      !is_countable(s->images, s->out_height, s->out_width, s->out_channels, plan->type) ||
      !is_countable(s->kernel[0], s->kernel[1], s->group_in, s->out_channels, plan->type) || padding[0] > INT_MAX ||
      padding[1] > INT_MAX)
    return false;
  *c = (vendor_convolution){.type = plan->type,
                            .direction = plan->direction,
                            .reduced_precision = plan->reduced_precision,
                            .nondeterministic = plan->nondeterministic,
                            .images = (int)s->images,
                            .groups = (int)s->groups,
                            .height = (int)library->frame.high,
                            .width = (int)library->frame.wide,
                            .channels = (int)s->channels,
                            .out_height = (int)s->out_height,
                            .out_width = (int)s->out_width,
                            .out_channels = (int)s->out_channels,
                            .workspace_limit = workspace_limit(plan->base.device)};
  for (int i = 0; i < 2; i++) {
    if (s->stride[i] > INT_MAX || s->dilation[i] > INT_MAX) return false;
    c->kernel[i] = (int)s->kernel[i];
    c->padding[i] = (int)padding[i];
    c->stride[i] = (int)s->stride[i];
    c->dilation[i] = (int)s->dilation[i];
  }
  return true;
}

helio_status gpu_conv_library_find(gpu_conv_plan *plan) {
  helio_backend_device *device = plan->base.device;
  gpu_conv_library *library = &plan->library;
  vendor_convolution convolution;
  size_t bytes = 0;
  if (plan->shape.groups > 1 && plan->shape.group_in == 1) return HELIO_OK;
  if (!describe(plan, &convolution)) return HELIO_OK;
  helio_status status = gpu_dnn_find(device, &convolution, &library->way, &bytes);
  if (status != HELIO_OK || library->way == NULL) return status;
  library->way_bytes = gpu_padded(bytes);
  library->kernel_bytes = gpu_padded((size_t)gpu_conv_kernel_elements(&plan->shape) * plan->element);
  const gpu_frame *frame = &library->frame;
  if (library->framed)
    library->frame_bytes =
        gpu_padded((size_t)(frame->images * frame->high * frame->wide * frame->channels) * plan->element);
  status = gpu_transpose_find(device, plan->element, &library->transpose);
  if (status == HELIO_OK && library->framed) {
    bool out = plan->direction == VENDOR_CONVOLVE_GRAD_INPUT;
    status = gpu_kernel_find(device, "layout", plan->type, out ? "crop_images" : "pad_images", &library->move);
  }
  return status;
}

size_t gpu_conv_library_bytes(const gpu_conv_plan *plan) {
  const gpu_conv_library *library = &plan->library;
  return library->way == NULL ? 0 : library->way_bytes + library->kernel_bytes + library->frame_bytes;
}

bool gpu_conv_library_takes(const gpu_conv_plan *plan, const gpu_conv_places *places) {
  const gpu_conv_library *library = &plan->library;
  if (library->way == NULL || atomic_load(&library->refused)) return false;
  return places->y % LIBRARY_ALIGNMENT == 0 && (library->framed || places->x % LIBRARY_ALIGNMENT == 0);
}

static helio_status transpose(const gpu_conv_plan *plan, const helio_run *run, gpu_address to, gpu_address from,
                              int64_t rows, int64_t columns) {
  return gpu_transpose_run(&plan->base, run, plan->library.transpose, to, from, rows, columns);
}

/* x into the frame, or dx out of it. */
static helio_status move_images(const gpu_conv_plan *plan, const helio_run *run, gpu_address to, gpu_address from) {
  gpu_frame frame = plan->library.frame;
  bool out = plan->direction == VENDOR_CONVOLVE_GRAD_INPUT;
  int64_t pixels = out ? frame.height * frame.width : frame.high * frame.wide;
  void *arguments[] = {&to, &from, &frame};
  return gpu_launch(&plan->base, run, plan->library.move,
                    gpu_grid_over(plan->base.device, (size_t)(frame.images * pixels * frame.channels)), arguments);
}

helio_status gpu_conv_library_run(const gpu_conv_plan *plan, const helio_run *run, const gpu_conv_places *places) {
  const gpu_conv_library *library = &plan->library;
  const gpu_conv_shape *s = &plan->shape;
  gpu_address kernel = places->workspace + library->way_bytes, frame = kernel + library->kernel_bytes;
  gpu_address x = library->framed ? frame : places->x;
  int64_t taps = s->kernel[0] * s->kernel[1] * s->group_in;
  vendor_dnn *dnn;
  helio_status status = gpu_stream_dnn(run->stream, &dnn);
  if (status == HELIO_OK && plan->direction != VENDOR_CONVOLVE_GRAD_KERNEL)
    status = transpose(plan, run, kernel, places->kernel, taps, s->out_channels);
  if (status == HELIO_OK && library->framed && plan->direction != VENDOR_CONVOLVE_GRAD_INPUT)
    status = move_images(plan, run, x, places->x);
  if (status == HELIO_OK) status = vendor_dnn_convolve(dnn, library->way, x, kernel, places->y, places->workspace);
  if (status == HELIO_OK && plan->direction == VENDOR_CONVOLVE_GRAD_KERNEL)
    status = transpose(plan, run, places->kernel, kernel, s->out_channels, taps);
  if (status == HELIO_OK && library->framed && plan->direction == VENDOR_CONVOLVE_GRAD_INPUT)
    status = move_images(plan, run, places->x, x);
  return status == HELIO_OK ? gpu_epilogue_run(&plan->base, run, &plan->epilogue, places->y, places->bias) : status;
}
