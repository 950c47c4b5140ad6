/* SPDX-License-Identifier: Apache-2.0 */
/* What the convolutions share. All three directions name their tensors as the forward one does: x, kernel and y, one of
 * which is the result. There are three ways to do one:
 *
 * - of a kernel of 1 × 1 that goes over every pixel, as a product of matrices by the library for these, or if that
 *   refuses it by a kernel of ours;
 * - by the library for convolutions, which wants another layout of the kernel and equal padding on both sides;
 * - by kernels of ours, where there is no library, where it does not take the convolution or the memory, and where
 *   every channel is a group of its own: that needs no product, and libraries are no faster. */
#ifndef GPU_CONV_H
#define GPU_CONV_H

#include "products.h"

/* As `convolution` of kernels/product.cu. */
typedef struct gpu_conv_shape {
  int64_t images, height, width, channels;
  int64_t out_height, out_width, out_channels;
  int64_t kernel[2], stride[2], dilation[2], before[2];
  int64_t groups, group_in, group_out;
  int64_t chunks, chunk; /* of the kernel's gradient by our kernels */
  uint32_t activation, unused;
} gpu_conv_shape;

/* As `frame` of kernels/layout.cu. */
typedef struct gpu_frame {
  int64_t images, height, width, channels;
  int64_t high, wide;
  int64_t above, left;
} gpu_frame;

/* By the library for convolutions. */
typedef struct gpu_conv_library {
  vendor_way *way;     /* NULL: not by it */
  atomic_bool refused; /* it has agreed to the plan, and does not run it */
  bool framed;         /* x moves into a frame, or dx out of one */
  gpu_frame frame;
  size_t way_bytes, kernel_bytes, frame_bytes; /* of the workspace, in this order */
  vendor_function *transpose, *move;           /* of the kernel; of x or dx */
} gpu_conv_library;

/* By kernels of ours. */
typedef struct gpu_conv_own {
  bool narrow; /* a thread for each element of the result */
  size_t bytes;
  vendor_function *convolve, *sum;
} gpu_conv_own;

typedef struct gpu_conv_plan {
  helio_plan base;
  uint32_t type;
  size_t element; /* bytes */
  vendor_direction direction;
  gpu_conv_shape shape;
  int64_t behind[2]; /* the padding below and to the right */
  bool has_bias, reduced_precision, nondeterministic;
  bool pointwise;              /* as a product, ... */
  vendor_product product;      /* ... this one by the library, ... */
  gpu_own_product own_product; /* ... and if that refuses it by our kernel */
  gpu_conv_library library;
  gpu_conv_own own;
  gpu_epilogue epilogue; /* behind either library */
} gpu_conv_plan;

/* Where the tensors are. */
typedef struct gpu_conv_places {
  gpu_address x, kernel, y, bias, workspace;
} gpu_conv_places;

/* --- conv_geometry.c --- */

/* Checks that x, kernel and y fit each other and the attributes, and fills in the plan's shape. */
helio_status gpu_conv_describe(gpu_conv_plan *plan, const helio_argument *x, const helio_argument *kernel,
                               const helio_argument *y, const helio_conv2d_attributes *how);
int64_t gpu_conv_positions(const gpu_conv_shape *shape);       /* of y: pixels of all images */
int64_t gpu_conv_kernel_elements(const gpu_conv_shape *shape); /* of the kernel, all groups */

/* How many places a window has along one axis; −1 if none. */
int64_t gpu_conv_window_places(int64_t input, int64_t before, int64_t behind, int64_t window, int64_t stride,
                               int64_t dilation);

/* --- conv_library.c --- */
helio_status gpu_conv_library_find(gpu_conv_plan *plan);
size_t gpu_conv_library_bytes(const gpu_conv_plan *plan); /* of the workspace */
/* Whether the library takes memory there: it wants more alignment than the elements have. */
bool gpu_conv_library_takes(const gpu_conv_plan *plan, const gpu_conv_places *places);
helio_status gpu_conv_library_run(const gpu_conv_plan *plan, const helio_run *run, const gpu_conv_places *places);

/* --- conv_own.c --- */
helio_status gpu_conv_own_find(gpu_conv_plan *plan);
helio_status gpu_conv_own_run(const gpu_conv_plan *plan, const helio_run *run, const gpu_conv_places *places);

#endif
