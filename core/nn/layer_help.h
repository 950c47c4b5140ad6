/* SPDX-License-Identifier: Apache-2.0 */
/* What kinds of layers share. */
#ifndef HI_LAYER_HELP_H
#define HI_LAYER_HELP_H

#include "nn/layer.h"
#include "ops/options.h"

/* ---- options ---- */

/* The number given; `otherwise` for 0, but 0 for HELIO_ZERO. */
double hi_real_or(double given, double otherwise);

/* Completes two numbers: a first 0 is `otherwise`, a second 0 as the first. Fails if one is not positive then. Of
 * layers with one axis, which `axes` says, the second may not differ and becomes 0. */
helio_status hi_complete_pair(const char *name, int numbers[2], int otherwise, int axes);

/* Completes a list of axes: none stands for the last. */
helio_status hi_complete_axes(helio_axes *axes);

/* Fails unless the number is at least 1, or neither regularizer is negative. */
helio_status hi_check_positive(const char *name, int64_t number);
helio_status hi_check_regularizers(helio_regularizer first, helio_regularizer second);

/* ---- shapes, in which extents may be HI_ANY ---- */

/* "(None, 5)", as Keras prints it. */
const char *hi_known_text(const helio_shape *shape, char text[HI_SHAPE_TEXT]);

/* HI_ANY stays as it is; what does not fit is INT64_MAX, which no tensor can have. */
int64_t hi_extent_plus(int64_t extent, int64_t more);
int64_t hi_extent_times(int64_t extent, int64_t factor);

/* Elements of one sample; HI_ANY if an extent is not known. */
int64_t hi_sample_elements(const helio_shape *shape);

/* "expected an input of rank 4 (batch, height, width, channels), got shape (2, 5)" */
helio_status hi_expect_rank(const helio_shape *shape, int rank, const char *axes);
helio_status hi_expect_rank_of_least(const helio_shape *shape, int rank);

/* The extent of an axis that variables depend on, or of the last one; −1 with the error set if it is not known. */
int64_t hi_known_extent(const helio_shape *shape, int axis);
int64_t hi_channels(const helio_shape *shape);

/* The axes of an option as those of a shape: from 0 on, ascending. Fails, with the shape, if it does not have one of
 * them or has it twice. */
helio_status hi_axes_of(const helio_axes *given, const helio_shape *shape, helio_axes *axes);

/* A rule for kind->shape: the result is as the first input. */
helio_status hi_shape_of_input(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result);

/* How a window walks along `axes` axes, which begin behind the batch. */
typedef struct hi_window {
  int axes;
  int extent[2], stride[2], dilation[2];
  helio_padding padding;
} hi_window;

/* Replaces the extents of those axes by the number of the window's places. */
helio_status hi_window_places(const hi_window *window, helio_shape *shape);

/* ---- results ---- */

/* What of an activation may be fused with the operation before: a softmax and a sigmoid remember their logits instead,
 * which hi_layer_activated() sees to. */
helio_activation hi_layer_fusible(helio_activation activation);
helio_tensor *hi_layer_activated(helio_tensor *y, helio_activation activation);

/* What an operation does along the last axis it does along others, ascending ones, if they are moved to the end and
 * made one, and what comes out is brought back to the input's shape. The last axis alone stays where it is. */
helio_tensor *hi_axes_joined(helio_tensor *x, const helio_axes *axes);
helio_tensor *hi_axes_apart(helio_tensor *y, const helio_axes *axes, const helio_shape *shape);

#endif
