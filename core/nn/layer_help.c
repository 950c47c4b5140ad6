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

int64_t hi_channels(const helio_shape *shape) {
  char text[HI_SHAPE_TEXT];
  int64_t channels = shape->extent[shape->rank - 1];
  if (channels < 0) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the last axis of its input must be known, got shape %s",
            hi_known_text(shape, text));
  }
  return channels;
}

helio_status hi_shape_of_input(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  (void)layer, (void)count;
  *result = inputs[0];
  return HELIO_OK;
}

helio_status hi_window_places(const hi_window *window, helio_shape *shape) {
  char text[HI_SHAPE_TEXT];
  for (int i = 0; i < window->axes; i++) {
    int64_t extent = shape->extent[1 + i], stride = window->stride[i];
    if (extent == HI_ANY) continue;
    bool padded = window->padding == HELIO_SAME || window->padding == HELIO_CAUSAL;
    int64_t covered = padded ? 1 : (int64_t)(window->extent[i] - 1) * window->dilation[i] + 1;
    if (extent < covered) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "a window of %lld does not fit into axis %d of the input's shape %s",
                     (long long)covered, 1 + i, hi_known_text(shape, text));
    }
    shape->extent[1 + i] = (extent - covered) / stride + 1;
  }
  return HELIO_OK;
}

/* ---- results ---- */

helio_activation hi_layer_fusible(helio_activation activation) {
  return activation == HELIO_SOFTMAX || activation == HELIO_SIGMOID ? HELIO_LINEAR : activation;
}

helio_tensor *hi_layer_activated(helio_tensor *y, helio_activation activation) {
  return hi_layer_fusible(activation) == activation ? y : hi_layer_activate(y, activation);
}

helio_tensor *hi_scalar_like(const helio_tensor *x, double value) {
  return x ? helio_fill(HELIO_SCALAR, value, .type = x->type) : NULL;
}
