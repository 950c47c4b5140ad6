/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of convolutions. */
#include "conv.h"

int64_t gpu_conv_window_places(int64_t input, int64_t before, int64_t behind, int64_t window, int64_t stride,
                               int64_t dilation) {
  /* Extents are bounded first, so that nothing overflows. */
  if (input > INT64_MAX / 4 || window < 1 || window > INT32_MAX || stride < 1 || dilation < 1) return -1;
  int64_t span = (window - 1) * dilation + 1, room = input + before + behind;
  return span > room ? -1 : (room - span) / stride + 1;
}

static bool shapes_fit(const helio_argument *x, const helio_argument *kernel, const helio_argument *y,
                       const helio_conv2d_attributes *how) {
  if (x->rank != 4 || kernel->rank != 4 || y->rank != 4 || how->groups < 1) return false;
  if (x->extent[3] % how->groups != 0 || kernel->extent[2] != x->extent[3] / how->groups) return false;
  if (kernel->extent[3] % how->groups != 0 || kernel->extent[3] != y->extent[3]) return false;
  for (int i = 0; i < 2; i++) {
    int64_t found = gpu_conv_window_places(x->extent[1 + i], how->padding[2 * i], how->padding[2 * i + 1],
                                           kernel->extent[i], how->stride[i], how->dilation[i]);
    if (found < 0 || y->extent[1 + i] != found) return false;
  }
  return y->extent[0] == x->extent[0];
}

helio_status gpu_conv_describe(gpu_conv_plan *plan, const helio_argument *x, const helio_argument *kernel,
                               const helio_argument *y, const helio_conv2d_attributes *how) {
  const helio_host *host = plan->base.device->host;
  if (!shapes_fit(x, kernel, y, how))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "CONV2D: the shapes do not fit each other and the attributes");
  gpu_conv_shape *shape = &plan->shape;
  *shape = (gpu_conv_shape){.images = x->extent[0],
                            .height = x->extent[1],
                            .width = x->extent[2],
                            .channels = x->extent[3],
                            .out_height = y->extent[1],
                            .out_width = y->extent[2],
                            .out_channels = y->extent[3],
                            .groups = how->groups,
                            .group_in = x->extent[3] / how->groups,
                            .group_out = y->extent[3] / how->groups};
  for (int i = 0; i < 2; i++) {
    shape->kernel[i] = kernel->extent[i];
    shape->stride[i] = how->stride[i];
    shape->dilation[i] = how->dilation[i];
    shape->before[i] = how->padding[2 * i];
    plan->behind[i] = how->padding[2 * i + 1];
  }
  plan->type = x->type;
  plan->element = call_type_size(x->type);
  return HELIO_OK;
}

int64_t gpu_conv_positions(const gpu_conv_shape *shape) {
  return shape->images * shape->out_height * shape->out_width;
}

int64_t gpu_conv_kernel_elements(const gpu_conv_shape *shape) {
  return shape->kernel[0] * shape->kernel[1] * shape->group_in * shape->out_channels;
}
