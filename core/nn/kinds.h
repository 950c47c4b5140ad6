/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of layers, each at the end of its file. */
#ifndef HI_KINDS_H
#define HI_KINDS_H

#include "nn/layer.h"

extern const hi_layer_kind hi_dense_kind;
extern const hi_layer_kind hi_conv1d_kind, hi_conv2d_kind, hi_depthwise_conv2d_kind;
extern const hi_layer_kind hi_max_pool1d_kind, hi_max_pool2d_kind, hi_average_pool1d_kind, hi_average_pool2d_kind;
extern const hi_layer_kind hi_global_max_pool1d_kind, hi_global_max_pool2d_kind;
extern const hi_layer_kind hi_global_average_pool1d_kind, hi_global_average_pool2d_kind;
extern const hi_layer_kind hi_flatten_kind, hi_reshape_kind, hi_permute_kind;
extern const hi_layer_kind hi_embedding_kind;
extern const hi_layer_kind hi_dropout_kind;
extern const hi_layer_kind hi_batch_normalization_kind, hi_layer_normalization_kind;
extern const hi_layer_kind hi_activation_kind, hi_softmax_kind, hi_relu_kind;
extern const hi_layer_kind hi_add_kind, hi_multiply_kind, hi_average_kind, hi_concatenate_kind;
extern const hi_layer_kind hi_zero_padding2d_kind, hi_up_sampling2d_kind, hi_rescaling_kind;

#endif
