/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/layer_help.h"

#include <math.h>
#include <stdio.h>

#include "runtime/error.h"

/* ---- options ---- */

double hi_real_or(double given, double otherwise) {
  if (given != 0) return given;
  return signbit(given) ? 0 : otherwise;
}

helio_status hi_complete_pair(const char *name, int numbers[2], int otherwise, int axes) {
  if (!numbers[0]) numbers[0] = otherwise;
  if (!numbers[1]) numbers[1] = numbers[0];
  helio_status status = hi_check_positive(name, numbers[0]);
  if (!status) status = hi_check_positive(name, numbers[1]);
  if (status || axes == 2) return status;
  if (numbers[0] != numbers[1]) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s is %d and %d for one axis", name, numbers[0], numbers[1]);
  }
  numbers[1] = 0;
  return HELIO_OK;
}

helio_status hi_complete_axes(helio_axes *axes) {
  if (axes->count == 0) *axes = HELIO_AXES(-1);
  if (axes->count > 0 && axes->count <= HELIO_MAX_RANK) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "%d axes are given, not 1 … %d", axes->count, HELIO_MAX_RANK);
}

helio_status hi_check_positive(const char *name, int64_t number) {
  if (number > 0) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s is %lld, which is not positive", name, (long long)number);
}

helio_status hi_check_regularizers(helio_regularizer first, helio_regularizer second) {
  const double all[] = {first.l1, first.l2, second.l1, second.l2};
  for (int i = 0; i < 4; i++) {
    if (!(all[i] >= 0)) return hi_fail(HELIO_INVALID_ARGUMENT, "a regularizer's factor is %g", all[i]);
  }
  return HELIO_OK;
}

/* ---- shapes ---- */

const char *hi_known_text(const helio_shape *shape, char text[HI_SHAPE_TEXT]) {
  int length = snprintf(text, HI_SHAPE_TEXT, "(");
  for (int i = 0; i < shape->rank && i < HELIO_MAX_RANK; i++) {
    char extent[24] = "None";
    if (shape->extent[i] != HI_ANY) snprintf(extent, sizeof extent, "%lld", (long long)shape->extent[i]);
    length += snprintf(text + length, (size_t)(HI_SHAPE_TEXT - length), "%s%s", i ? ", " : "", extent);
  }
  snprintf(text + length, (size_t)(HI_SHAPE_TEXT - length), shape->rank == 1 ? ",)" : ")");
  return text;
}

int64_t hi_extent_plus(int64_t extent, int64_t more) {
  int64_t sum;
  if (extent == HI_ANY || more == HI_ANY) return HI_ANY;
  return __builtin_add_overflow(extent, more, &sum) ? INT64_MAX : sum;
}

int64_t hi_extent_times(int64_t extent, int64_t factor) {
  int64_t product;
  if (extent == HI_ANY) return HI_ANY;
  return __builtin_mul_overflow(extent, factor, &product) ? INT64_MAX : product;
}

int64_t hi_sample_elements(const helio_shape *shape) {
  int64_t elements;
  helio_shape sample = *shape;
  for (int i = 1; i < shape->rank; i++) {
    if (shape->extent[i] == HI_ANY) return HI_ANY;
  }
  if (sample.rank > 0) sample.extent[0] = 1;
  return hi_shape_elements(&sample, &elements) ? elements : HI_ANY;
}

helio_status hi_expect_rank(const helio_shape *shape, int rank, const char *axes) {
  char text[HI_SHAPE_TEXT];
  if (shape->rank == rank) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "expected an input of rank %d %s, got shape %s", rank, axes,
                 hi_known_text(shape, text));
}

helio_status hi_expect_rank_of_least(const helio_shape *shape, int rank) {
  char text[HI_SHAPE_TEXT];
  if (shape->rank >= rank) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "expected an input of rank %d or more, got shape %s", rank,
                 hi_known_text(shape, text));
}

int64_t hi_known_extent(const helio_shape *shape, int axis) {
  char text[HI_SHAPE_TEXT];
  if (shape->extent[axis] < 0) {
    hi_fail(HELIO_INVALID_ARGUMENT, "axis %d of its input must be known, got shape %s", axis,
            hi_known_text(shape, text));
  }
  return shape->extent[axis];
}

int64_t hi_channels(const helio_shape *shape) {
  return hi_known_extent(shape, shape->rank - 1);
}

helio_status hi_axes_of(const helio_axes *given, const helio_shape *shape, helio_axes *axes) {
  bool taken[HELIO_MAX_RANK] = {false};
  char text[HI_SHAPE_TEXT];
  for (int i = 0; i < given->count; i++) {
    int axis = given->axis[i] < 0 ? given->axis[i] + shape->rank : given->axis[i];
    bool known = axis >= 0 && axis < shape->rank;
    if (!known || taken[axis]) {
      return hi_fail(HELIO_INVALID_ARGUMENT,
                     known ? "axis %d is given twice for shape %s" : "there is no axis %d in shape %s", given->axis[i],
                     hi_known_text(shape, text));
    }
    taken[axis] = true;
  }
  axes->count = 0;
  for (int i = 0; i < shape->rank; i++) {
    if (taken[i]) axes->axis[axes->count++] = i;
  }
  return HELIO_OK;
}

helio_status hi_shape_of_input(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  (void)layer, (void)count;
  *result = inputs[0];
  return HELIO_OK;
}

helio_status hi_window_places(const hi_window *window, helio_shape *shape) {
  char text[HI_SHAPE_TEXT];
  const helio_shape input = *shape;
  for (int i = 0; i < window->axes; i++) {
    int64_t extent = input.extent[1 + i], stride = window->stride[i];
    if (extent == HI_ANY) continue;
    bool padded = window->padding == HELIO_SAME || window->padding == HELIO_CAUSAL;
    int64_t covered = padded ? 1 : (int64_t)(window->extent[i] - 1) * window->dilation[i] + 1;
    if (extent < covered) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "a window of %lld does not fit into axis %d of the input's shape %s",
                     (long long)covered, 1 + i, hi_known_text(&input, text));
    }
    shape->extent[1 + i] = (extent - covered) / stride + 1;
  }
  return HELIO_OK;
}

/* ---- axes ---- */

static bool is_last(const helio_axes *axes, int rank) {
  return axes->count == 1 && axes->axis[0] == rank - 1;
}

/* All other axes, then these; true if that is how they stand anyway. */
static bool order_for(const helio_axes *axes, int rank, helio_axes *order) {
  bool stands = true;
  int next = 0, others = 0;
  for (int i = 0; i < rank; i++) {
    bool moves = next < axes->count && axes->axis[next] == i;
    int place = moves ? rank - axes->count + next++ : others++;
    order->axis[place] = i;
    stands = stands && place == i;
  }
  order->count = rank;
  return stands;
}

helio_tensor *hi_axes_joined(helio_tensor *x, const helio_axes *axes) {
  helio_axes order;
  int rank = x->shape.rank, others = rank - axes->count;
  if (is_last(axes, rank)) return x;
  if (!order_for(axes, rank, &order)) x = helio_transpose(x, order);
  if (!x) return NULL;
  helio_shape joined = {.rank = others + 1};
  for (int i = 0; i < others; i++) joined.extent[i] = x->shape.extent[i];
  joined.extent[others] = 1;
  for (int i = others; i < rank; i++) {
    joined.extent[others] = hi_extent_times(joined.extent[others], x->shape.extent[i]);
  }
  return helio_reshape(x, joined);
}

helio_tensor *hi_axes_apart(helio_tensor *y, const helio_axes *axes, const helio_shape *shape) {
  helio_axes order, back = {.count = shape->rank};
  helio_shape moved = {.rank = shape->rank};
  if (is_last(axes, shape->rank)) return y;
  bool stands = order_for(axes, shape->rank, &order);
  for (int i = 0; i < shape->rank; i++) {
    moved.extent[i] = shape->extent[order.axis[i]];
    back.axis[order.axis[i]] = i;
  }
  y = helio_reshape(y, moved);
  return stands ? y : helio_transpose(y, back);
}

/* ---- results ---- */

helio_activation hi_layer_fusible(helio_activation activation) {
  return activation == HELIO_SOFTMAX || activation == HELIO_SIGMOID ? HELIO_LINEAR : activation;
}

helio_tensor *hi_layer_activated(helio_tensor *y, helio_activation activation) {
  return hi_layer_fusible(activation) == activation ? y : hi_layer_activate(y, activation);
}
