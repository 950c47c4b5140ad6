/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/kinds.h"

#include <string.h>

#include "nn/names.h"
#include "runtime/error.h"
#include "runtime/nearest.h"

const hi_layer_kind *const hi_layer_kinds[] = {
    &hi_dense_kind,
    &hi_conv1d_kind,
    &hi_conv2d_kind,
    &hi_depthwise_conv2d_kind,
    &hi_max_pool1d_kind,
    &hi_max_pool2d_kind,
    &hi_average_pool1d_kind,
    &hi_average_pool2d_kind,
    &hi_global_max_pool1d_kind,
    &hi_global_max_pool2d_kind,
    &hi_global_average_pool1d_kind,
    &hi_global_average_pool2d_kind,
    &hi_flatten_kind,
    &hi_reshape_kind,
    &hi_permute_kind,
    &hi_embedding_kind,
    &hi_dropout_kind,
    &hi_batch_normalization_kind,
    &hi_layer_normalization_kind,
    &hi_activation_kind,
    &hi_softmax_kind,
    &hi_relu_kind,
    &hi_add_kind,
    &hi_multiply_kind,
    &hi_average_kind,
    &hi_concatenate_kind,
    &hi_zero_padding2d_kind,
    &hi_up_sampling2d_kind,
    &hi_rescaling_kind,
    NULL,
};
enum { KIND_COUNT = sizeof hi_layer_kinds / sizeof hi_layer_kinds[0] - 1 };

const hi_layer_kind *hi_layer_kind_of(const char *class_name) {
  const char *names[KIND_COUNT];
  for (int i = 0; i < KIND_COUNT; i++) {
    names[i] = hi_layer_kinds[i]->class_name;
    if (strcmp(names[i], class_name) == 0) return hi_layer_kinds[i];
  }
  hi_fail_unknown(HELIO_NOT_SUPPORTED, "layer of class", class_name, hi_nearest(class_name, names, KIND_COUNT), names,
                  KIND_COUNT);
  return NULL;
}
