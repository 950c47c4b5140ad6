/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/table.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ops/gradient.h"
#include "ops/shape.h"
#include "runtime/error.h"
#include "runtime/plugins.h"
#include "tensor/tensor.h"

enum {
  ALL_TYPES = HELIO_TYPE_BIT(HELIO_BOOL + 1) - 2,
  NUMBERS = ALL_TYPES & ~HELIO_TYPE_BIT(HELIO_BOOL) & ~HELIO_TYPE_BIT(HELIO_UINT8),
  FLOATS = HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64) | HELIO_TYPE_BIT(HELIO_FLOAT16) |
           HELIO_TYPE_BIT(HELIO_BFLOAT16),
  WIDE_FLOATS = HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64), /* where storage types make no sense */
  INDICES = HELIO_TYPE_BIT(HELIO_INT32) | HELIO_TYPE_BIT(HELIO_INT64),
  BITS = HELIO_TYPE_BIT(HELIO_INT32),
};

/* Bits for the tensors that a gradient looks at. */
enum { NONE = 0, FIRST = 1, SECOND = 2, BOTH = 3, THIRD = 4, FOURTH = 8 };

#define ROW(value, what, lower, upper, in, out, accepted, scalar_count, needs, rule, back, kept_in, kept_out, text,    \
            names)                                                                                                     \
  [value - 1] = {                                                                                                      \
      .operation = value,                                                                                              \
      .kind = what,                                                                                                    \
      .types = accepted,                                                                                               \
      .inputs = in,                                                                                                    \
      .outputs = out,                                                                                                  \
      .scalars = scalar_count,                                                                                         \
      .attributes_size = needs,                                                                                        \
      .shape = rule,                                                                                                   \
      .gradient = back,                                                                                                \
      .keeps_inputs = kept_in,                                                                                         \
      .keeps_outputs = kept_out,                                                                                       \
      .info = {lower, upper, text, names, what == HI_ROW_KERNEL},                                                      \
  }

/* clang-format off */
static const hi_row rows[] = {
    ROW(HELIO_OP_FILL, HI_ROW_CORE, "fill", "Fill", "", "T", ALL_TYPES, 0, 0,
        hi_shape_as_wanted, NULL, NONE, NONE,
        "a tensor of one value", "shape, value, type"),
    ROW(HELIO_OP_COPY, HI_ROW_CORE, "copy", "Copy", "T", "T", ALL_TYPES, 0, 0,
        hi_shape_same, hi_gradient_same, NONE, NONE,
        "a copy of x", ""),
    ROW(HELIO_OP_CAST, HI_ROW_KERNEL, "cast", "Cast", "T", "?", ALL_TYPES, 0, 0,
        hi_shape_cast, hi_gradient_cast, NONE, NONE,
        "x in another type; a float to an integer towards zero, to the nearest end of the range, NaN to 0; integers wrap", "type"),
    ROW(HELIO_OP_RESHAPE, HI_ROW_VIEW, "reshape", "Reshape", "T", "T", ALL_TYPES, 0, 0,
        hi_shape_same, hi_gradient_reshape, NONE, NONE,
        "x in another shape", "shape"),
    ROW(HELIO_OP_EXPAND_DIMS, HI_ROW_VIEW, "expand_dims", "ExpandDims", "T", "T", ALL_TYPES, 0, 0,
        hi_shape_same, hi_gradient_reshape, NONE, NONE,
        "x with one more axis", "axis"),
    ROW(HELIO_OP_SQUEEZE, HI_ROW_VIEW, "squeeze", "Squeeze", "T", "T", ALL_TYPES, 0, 0,
        hi_shape_same, hi_gradient_reshape, NONE, NONE,
        "x without axes of extent 1", "axes"),
    ROW(HELIO_OP_SLICE, HI_ROW_KERNEL, "slice", "Slice", "T", "T", ALL_TYPES, 0, sizeof(helio_slice_attributes),
        hi_shape_slice, hi_gradient_slice, NONE, NONE,
        "a part of x; of the first axis alone, a view", "begin, extents"),
    ROW(HELIO_OP_CONCAT, HI_ROW_KERNEL, "concat", "ConcatV2", "T*", "T", ALL_TYPES, 0, sizeof(helio_axis_attributes),
        hi_shape_concat, hi_gradient_concat, NONE, NONE,
        "the inputs one after the other", "axis"),
    ROW(HELIO_OP_ADD, HI_ROW_KERNEL, "add", "AddV2", "TT", "T", NUMBERS, 0, 0,
        hi_shape_broadcast, hi_gradient_add, NONE, NONE,
        "a + b", ""),
    ROW(HELIO_OP_SUB, HI_ROW_KERNEL, "sub", "Sub", "TT", "T", NUMBERS, 0, 0,
        hi_shape_broadcast, hi_gradient_sub, NONE, NONE,
        "a − b", ""),
    ROW(HELIO_OP_MUL, HI_ROW_KERNEL, "mul", "Mul", "TT", "T", NUMBERS, 0, 0,
        hi_shape_broadcast, hi_gradient_mul, BOTH, NONE,
        "a × b", ""),
    ROW(HELIO_OP_ADD_N, HI_ROW_KERNEL, "add_n", "AddN", "T*", "T", NUMBERS, 0, 0,
        hi_shape_all_same, hi_gradient_same, NONE, NONE,
        "the sum of the inputs", ""),
    ROW(HELIO_OP_SUM, HI_ROW_KERNEL, "sum", "Sum", "T", "T", NUMBERS, 0, sizeof(helio_reduce_attributes),
        hi_shape_reduce, hi_gradient_sum, NONE, NONE,
        "the sum of x over axes", "axes, keep_dims"),
    ROW(HELIO_OP_MATMUL, HI_ROW_KERNEL, "matmul", "MatMul", "TTt", "T", NUMBERS, 0, sizeof(helio_matmul_attributes),
        hi_shape_matmul, hi_gradient_matmul, BOTH, FIRST,
        "activation(a × b + bias)", "transpose_a, transpose_b, activation"),
    ROW(HELIO_OP_RELU, HI_ROW_KERNEL, "relu", "Relu", "T", "T", NUMBERS, 0, 0,
        hi_shape_same, hi_gradient_activation, NONE, FIRST,
        "max(x, 0)", ""),
    ROW(HELIO_OP_TRANSPOSE, HI_ROW_KERNEL, "transpose", "Transpose", "T", "T", ALL_TYPES, 0, sizeof(helio_transpose_attributes),
        hi_shape_transpose, hi_gradient_transpose, NONE, NONE,
        "x with its axes in another order", "permutation"),
    ROW(HELIO_OP_SPLIT, HI_ROW_CORE, "split", "Split", "T", "T*", ALL_TYPES, 0, 0,
        hi_shape_same, NULL, NONE, NONE,
        "x cut into parts along an axis, by slice", "parts, axis"),
    ROW(HELIO_OP_PAD, HI_ROW_KERNEL, "pad", "PadV2", "T", "T", ALL_TYPES, 1, sizeof(helio_slice_attributes),
        hi_shape_pad, hi_gradient_pad, NONE, NONE,
        "x with a border of one value", "before, after, value"),
    ROW(HELIO_OP_GATHER, HI_ROW_KERNEL, "gather", "GatherV2", "TI", "T", ALL_TYPES, 0, 0,
        hi_shape_gather, hi_gradient_gather, SECOND, NONE,
        "rows of x; an index out of range is an error", ""),
    ROW(HELIO_OP_SCATTER_ADD, HI_ROW_KERNEL, "scatter_add", "ScatterAdd", "TI", "T", NUMBERS, 0, 0,
        hi_shape_scatter_add, hi_gradient_scatter_add, SECOND, NONE,
        "zeros, to whose rows those of x are added", "rows"),
    ROW(HELIO_OP_WHERE, HI_ROW_KERNEL, "where", "SelectV2", "TTB", "T", ALL_TYPES, 0, 0,
        hi_shape_where, hi_gradient_where, THIRD, NONE,
        "condition ? a : b", ""),
    ROW(HELIO_OP_ONE_HOT, HI_ROW_KERNEL, "one_hot", "OneHot", "I", "?", INDICES, 0, 0,
        hi_shape_one_hot, NULL, NONE, NONE,
        "1 at the index, 0 elsewhere", "depth, type"),
    ROW(HELIO_OP_DIV, HI_ROW_KERNEL, "div", "RealDiv", "TT", "T", NUMBERS, 0, 0,
        hi_shape_broadcast, hi_gradient_div, SECOND, FIRST,
        "a / b; integers towards zero, by zero 0", ""),
    ROW(HELIO_OP_POW, HI_ROW_KERNEL, "pow", "Pow", "TT", "T", FLOATS, 0, 0,
        hi_shape_broadcast, hi_gradient_pow, BOTH, FIRST,
        "a to the power b", ""),
    ROW(HELIO_OP_MAXIMUM, HI_ROW_KERNEL, "maximum", "Maximum", "TT", "T", NUMBERS, 0, 0,
        hi_shape_broadcast, hi_gradient_extreme, BOTH, NONE,
        "the larger of a and b; its gradient goes to a where they are equal", ""),
    ROW(HELIO_OP_MINIMUM, HI_ROW_KERNEL, "minimum", "Minimum", "TT", "T", NUMBERS, 0, 0,
        hi_shape_broadcast, hi_gradient_extreme, BOTH, NONE,
        "the smaller of a and b", ""),
    ROW(HELIO_OP_EQUAL, HI_ROW_KERNEL, "equal", "Equal", "TT", "B", ALL_TYPES, 0, 0,
        hi_shape_compare, NULL, NONE, NONE,
        "a = b", ""),
    ROW(HELIO_OP_NOT_EQUAL, HI_ROW_KERNEL, "not_equal", "NotEqual", "TT", "B", ALL_TYPES, 0, 0,
        hi_shape_compare, NULL, NONE, NONE,
        "a ≠ b", ""),
    ROW(HELIO_OP_LESS, HI_ROW_KERNEL, "less", "Less", "TT", "B", ALL_TYPES, 0, 0,
        hi_shape_compare, NULL, NONE, NONE,
        "a < b", ""),
    ROW(HELIO_OP_LESS_EQUAL, HI_ROW_KERNEL, "less_equal", "LessEqual", "TT", "B", ALL_TYPES, 0, 0,
        hi_shape_compare, NULL, NONE, NONE,
        "a ≤ b", ""),
    ROW(HELIO_OP_GREATER, HI_ROW_KERNEL, "greater", "Greater", "TT", "B", ALL_TYPES, 0, 0,
        hi_shape_compare, NULL, NONE, NONE,
        "a > b", ""),
    ROW(HELIO_OP_GREATER_EQUAL, HI_ROW_KERNEL, "greater_equal", "GreaterEqual", "TT", "B", ALL_TYPES, 0, 0,
        hi_shape_compare, NULL, NONE, NONE,
        "a ≥ b", ""),
    ROW(HELIO_OP_NEG, HI_ROW_KERNEL, "neg", "Neg", "T", "T", NUMBERS, 0, 0,
        hi_shape_same, hi_gradient_neg, NONE, NONE,
        "−x", ""),
    ROW(HELIO_OP_ABS, HI_ROW_KERNEL, "abs", "Abs", "T", "T", NUMBERS, 0, 0,
        hi_shape_same, hi_gradient_abs, FIRST, NONE,
        "|x|", ""),
    ROW(HELIO_OP_SQUARE, HI_ROW_KERNEL, "square", "Square", "T", "T", NUMBERS, 0, 0,
        hi_shape_same, hi_gradient_square, FIRST, NONE,
        "x²", ""),
    ROW(HELIO_OP_SQRT, HI_ROW_KERNEL, "sqrt", "Sqrt", "T", "T", FLOATS, 0, 0,
        hi_shape_same, hi_gradient_sqrt, NONE, FIRST,
        "√x", ""),
    ROW(HELIO_OP_RSQRT, HI_ROW_KERNEL, "rsqrt", "Rsqrt", "T", "T", FLOATS, 0, 0,
        hi_shape_same, hi_gradient_rsqrt, NONE, FIRST,
        "1 / √x", ""),
    ROW(HELIO_OP_EXP, HI_ROW_KERNEL, "exp", "Exp", "T", "T", FLOATS, 0, 0,
        hi_shape_same, hi_gradient_exp, NONE, FIRST,
        "e to the power x", ""),
    ROW(HELIO_OP_LOG, HI_ROW_KERNEL, "log", "Log", "T", "T", FLOATS, 0, 0,
        hi_shape_same, hi_gradient_log, FIRST, NONE,
        "the natural logarithm of x", ""),
    ROW(HELIO_OP_CLIP, HI_ROW_KERNEL, "clip", "ClipByValue", "T", "T", NUMBERS, 2, 0,
        hi_shape_same, hi_gradient_clip, FIRST, NONE,
        "x within low and high", "low, high"),
    ROW(HELIO_OP_SIGMOID, HI_ROW_KERNEL, "sigmoid", "Sigmoid", "T", "T", FLOATS, 0, 0,
        hi_shape_same, hi_gradient_activation, NONE, FIRST,
        "1 / (1 + exp(−x))", ""),
    ROW(HELIO_OP_TANH, HI_ROW_KERNEL, "tanh", "Tanh", "T", "T", FLOATS, 0, 0,
        hi_shape_same, hi_gradient_activation, NONE, FIRST,
        "hyperbolic tangent", ""),
    ROW(HELIO_OP_SOFTPLUS, HI_ROW_KERNEL, "softplus", "Softplus", "T", "T", FLOATS, 0, 0,
        hi_shape_same, hi_gradient_activation, FIRST, NONE,
        "log(1 + exp(x))", ""),
    ROW(HELIO_OP_SWISH, HI_ROW_KERNEL, "swish", "Swish", "T", "T", FLOATS, 0, 0,
        hi_shape_same, hi_gradient_activation, FIRST, NONE,
        "x × sigmoid(x)", ""),
    ROW(HELIO_OP_GELU, HI_ROW_KERNEL, "gelu", "Gelu", "T", "T", FLOATS, 0, sizeof(helio_gelu_attributes),
        hi_shape_same, hi_gradient_activation, FIRST, NONE,
        "x × Φ(x)", "approximate"),
    ROW(HELIO_OP_ELU, HI_ROW_KERNEL, "elu", "Elu", "T", "T", FLOATS, 1, 0,
        hi_shape_same, hi_gradient_activation, NONE, FIRST,
        "x > 0 ? x : alpha × (exp(x) − 1)", "alpha"),
    ROW(HELIO_OP_LEAKY_RELU, HI_ROW_KERNEL, "leaky_relu", "LeakyRelu", "T", "T", FLOATS, 1, 0,
        hi_shape_same, hi_gradient_activation, FIRST, NONE,
        "x > 0 ? x : alpha × x", "alpha"),
    ROW(HELIO_OP_ACTIVATION_GRAD, HI_ROW_KERNEL, "activation_grad", "ActivationGrad", "TT", "T", NUMBERS, 1, sizeof(helio_activation_attributes),
        hi_shape_all_same, NULL, NONE, NONE,
        "dx of an activation, by dy and x or y", "activation, alpha"),
    ROW(HELIO_OP_MEAN, HI_ROW_KERNEL, "mean", "Mean", "T", "T", FLOATS, 0, sizeof(helio_reduce_attributes),
        hi_shape_reduce, hi_gradient_mean, NONE, NONE,
        "the mean of x over axes", "axes, keep_dims"),
    ROW(HELIO_OP_MAX, HI_ROW_KERNEL, "max", "Max", "T", "T", NUMBERS, 0, sizeof(helio_reduce_attributes),
        hi_shape_reduce, hi_gradient_max, FIRST, FIRST,
        "the largest of x over axes; its gradient is shared among equals", "axes, keep_dims"),
    ROW(HELIO_OP_MIN, HI_ROW_KERNEL, "min", "Min", "T", "T", NUMBERS, 0, sizeof(helio_reduce_attributes),
        hi_shape_reduce, hi_gradient_max, FIRST, FIRST,
        "the smallest of x over axes", "axes, keep_dims"),
    ROW(HELIO_OP_ARGMAX, HI_ROW_KERNEL, "argmax", "ArgMax", "T", "?", NUMBERS, 0, sizeof(helio_axis_attributes),
        hi_shape_argmax, NULL, NONE, NONE,
        "the place of the first of the largest along an axis", "axis"),
    ROW(HELIO_OP_TOP_K, HI_ROW_KERNEL, "top_k", "TopKV2", "T", "T?", NUMBERS, 0, 0,
        hi_shape_top_k, NULL, NONE, NONE,
        "the k largest of the last axis and their places", "k"),
    ROW(HELIO_OP_IN_TOP_K, HI_ROW_KERNEL, "in_top_k", "InTopKV2", "TI", "B", FLOATS, 0, sizeof(helio_top_k_attributes),
        hi_shape_in_top_k, NULL, NONE, NONE,
        "is the target among the k largest? Ties at the border count as in", "k"),
    ROW(HELIO_OP_CONV2D, HI_ROW_KERNEL, "conv2d", "Conv2D", "TTt", "T", FLOATS, 0, sizeof(helio_conv2d_attributes),
        hi_shape_conv2d, hi_gradient_conv2d, BOTH, FIRST,
        "activation(x ∗ kernel + bias), NHWC and HWIO", "stride, dilation, padding, groups, activation"),
    ROW(HELIO_OP_CONV2D_GRAD_INPUT, HI_ROW_KERNEL, "conv2d_grad_input", "Conv2DBackpropInput", "TT", "T", FLOATS, 0, sizeof(helio_conv2d_attributes),
        hi_shape_conv2d_grad_input, NULL, NONE, NONE,
        "dx by dy and the kernel", "as conv2d"),
    ROW(HELIO_OP_CONV2D_GRAD_KERNEL, HI_ROW_KERNEL, "conv2d_grad_kernel", "Conv2DBackpropFilter", "TT", "T", FLOATS, 0, sizeof(helio_conv2d_attributes),
        hi_shape_conv2d_grad_kernel, NULL, NONE, NONE,
        "the kernel's gradient by x and dy", "as conv2d"),
    ROW(HELIO_OP_MAX_POOL, HI_ROW_KERNEL, "max_pool", "MaxPool", "T", "Tw", FLOATS, 0, sizeof(helio_pool_attributes),
        hi_shape_max_pool, hi_gradient_max_pool, NONE, SECOND,
        "the largest of each window and its place there", "window, stride, padding"),
    ROW(HELIO_OP_MAX_POOL_GRAD, HI_ROW_KERNEL, "max_pool_grad", "MaxPoolGrad", "TW", "T", FLOATS, 0, sizeof(helio_pool_attributes),
        hi_shape_max_pool_grad, NULL, NONE, NONE,
        "dx by dy and the winners", "as max_pool"),
    ROW(HELIO_OP_AVERAGE_POOL, HI_ROW_KERNEL, "average_pool", "AvgPool", "T", "T", FLOATS, 0, sizeof(helio_pool_attributes),
        hi_shape_average_pool, hi_gradient_average_pool, NONE, NONE,
        "the mean of each window without its padding", "window, stride, padding"),
    ROW(HELIO_OP_AVERAGE_POOL_GRAD, HI_ROW_KERNEL, "average_pool_grad", "AvgPoolGrad", "T", "T", FLOATS, 0, sizeof(helio_pool_attributes),
        hi_shape_average_pool_grad, NULL, NONE, NONE,
        "dx by dy", "as average_pool"),
    ROW(HELIO_OP_SOFTMAX, HI_ROW_KERNEL, "softmax", "Softmax", "T", "T", FLOATS, 0, 0,
        hi_shape_same, hi_gradient_softmax, NONE, FIRST,
        "exp(x) ÷ its sum along the last axis", ""),
    ROW(HELIO_OP_LOG_SOFTMAX, HI_ROW_KERNEL, "log_softmax", "LogSoftmax", "T", "T", FLOATS, 0, 0,
        hi_shape_same, hi_gradient_softmax, NONE, FIRST,
        "the logarithm of softmax", ""),
    ROW(HELIO_OP_SOFTMAX_GRAD, HI_ROW_KERNEL, "softmax_grad", "SoftmaxGrad", "TT", "T", FLOATS, 0, 0,
        hi_shape_all_same, NULL, NONE, NONE,
        "dx by dy and y", ""),
    ROW(HELIO_OP_LOG_SOFTMAX_GRAD, HI_ROW_KERNEL, "log_softmax_grad", "LogSoftmaxGrad", "TT", "T", FLOATS, 0, 0,
        hi_shape_all_same, NULL, NONE, NONE,
        "dx by dy and y", ""),
    ROW(HELIO_OP_SPARSE_CROSS_ENTROPY, HI_ROW_KERNEL, "sparse_cross_entropy", "SparseSoftmaxCrossEntropyWithLogits", "TI", "Tt", FLOATS, 0, 0,
        hi_shape_sparse_cross_entropy, hi_gradient_cross_entropy, NONE, SECOND,
        "−log softmax(x)[label] and its gradient; a label out of range is an error", ""),
    ROW(HELIO_OP_CROSS_ENTROPY, HI_ROW_KERNEL, "cross_entropy", "SoftmaxCrossEntropyWithLogits", "TT", "Tt", FLOATS, 0, 0,
        hi_shape_cross_entropy, hi_gradient_cross_entropy, NONE, SECOND,
        "−Σ label × log softmax(x) and its gradient by x", ""),
    ROW(HELIO_OP_MOMENTS, HI_ROW_KERNEL, "moments", "Moments", "T", "TT", FLOATS, 0, 0,
        hi_shape_moments, hi_gradient_moments, FIRST, FIRST,
        "mean and variance over all axes but the last", ""),
    ROW(HELIO_OP_NORMALIZE, HI_ROW_KERNEL, "normalize", "Normalize", "TTTtt", "T", FLOATS, 1, 0,
        hi_shape_normalize, hi_gradient_normalize, FIRST | SECOND | THIRD | FOURTH, NONE,
        "(x − mean) ÷ √(variance + epsilon) × gamma + beta, by the last axis", "epsilon"),
    ROW(HELIO_OP_NORMALIZE_GRAD_SUMS, HI_ROW_KERNEL, "normalize_grad_sums", "NormalizeGradSums", "TTTT", "TT", FLOATS, 1, 0,
        hi_shape_normalize_sums, NULL, NONE, NONE,
        "dgamma and dbeta by dy, x, mean, variance", "epsilon"),
    ROW(HELIO_OP_NORMALIZE_GRAD_INPUT, HI_ROW_KERNEL, "normalize_grad_input", "NormalizeGradInput", "TTTTtTT", "T", FLOATS, 2, 0,
        hi_shape_normalize_grad_input, NULL, NONE, NONE,
        "dx of batch normalization, the moments being x's own", "epsilon, 1/count"),
    ROW(HELIO_OP_LAYER_NORM, HI_ROW_KERNEL, "layer_norm", "LayerNorm", "Ttt", "Ttt", FLOATS, 1, 0,
        hi_shape_layer_norm, hi_gradient_layer_norm, FIRST | SECOND, SECOND | THIRD,
        "normalized along the last axis, × gamma + beta", "epsilon"),
    ROW(HELIO_OP_LAYER_NORM_GRAD, HI_ROW_KERNEL, "layer_norm_grad", "LayerNormGrad", "TTtTT", "Ttt", FLOATS, 0, 0,
        hi_shape_layer_norm_grad, NULL, NONE, NONE,
        "dx, dgamma, dbeta", ""),
    ROW(HELIO_OP_RANDOM_BITS, HI_ROW_KERNEL, "random_bits", "RandomBits", "", "T", BITS, 3, 0,
        hi_shape_as_wanted, NULL, NONE, NONE,
        "words of Philox 4×32-10", "shape, key, step, base"),
    ROW(HELIO_OP_RANDOM_UNIFORM, HI_ROW_KERNEL, "random_uniform", "RandomUniform", "", "T", WIDE_FLOATS, 5, 0,
        hi_shape_as_wanted, NULL, NONE, NONE,
        "uniform random numbers", "shape, key, step, base, low, high"),
    ROW(HELIO_OP_RANDOM_NORMAL, HI_ROW_KERNEL, "random_normal", "RandomNormal", "", "T", WIDE_FLOATS, 5, 0,
        hi_shape_as_wanted, NULL, NONE, NONE,
        "normal random numbers", "shape, key, step, base, mean, deviation"),
    ROW(HELIO_OP_DROPOUT, HI_ROW_KERNEL, "dropout", "Dropout", "T", "T", FLOATS, 4, 0,
        hi_shape_same, hi_gradient_dropout, NONE, NONE,
        "a part of x set to 0, the rest made larger", "key, step, base, rate"),
    ROW(HELIO_OP_COMBINE_ROWS, HI_ROW_KERNEL, "combine_rows", "CombineRows", "TI", "TIt", FLOATS, 0, 0,
        hi_shape_combine_rows, NULL, NONE, NONE,
        "rows of equal index summed, and their squares", ""),
    ROW(HELIO_OP_SGD_UPDATE, HI_ROW_KERNEL, "sgd_update", "SgdUpdate", "VvTi", "", WIDE_FLOATS, 3, sizeof(helio_sgd_attributes),
        hi_shape_update, NULL, NONE, NONE,
        "one step of gradient descent", "nesterov, rate, decay, momentum"),
    ROW(HELIO_OP_ADAM_UPDATE, HI_ROW_KERNEL, "adam_update", "AdamUpdate", "VVVTit", "", WIDE_FLOATS, 5, 0,
        hi_shape_update, NULL, NONE, NONE,
        "one step of Adam or AdamW", "rate, decay, beta1, beta2, epsilon"),
    ROW(HELIO_OP_NADAM_UPDATE, HI_ROW_KERNEL, "nadam_update", "NadamUpdate", "VVVTit", "", WIDE_FLOATS, 8, 0,
        hi_shape_update, NULL, NONE, NONE,
        "one step of Nadam", "rate, decay, beta1, beta2, epsilon, on m, on gradient, on v"),
    ROW(HELIO_OP_RMSPROP_UPDATE, HI_ROW_KERNEL, "rmsprop_update", "RmspropUpdate", "VVvvTit", "", WIDE_FLOATS, 5, 0,
        hi_shape_update, NULL, NONE, NONE,
        "one step of RMSprop", "rate, decay, rho, momentum, epsilon"),
    ROW(HELIO_OP_ADAGRAD_UPDATE, HI_ROW_KERNEL, "adagrad_update", "AdagradUpdate", "VVTit", "", WIDE_FLOATS, 3, 0,
        hi_shape_update, NULL, NONE, NONE,
        "one step of Adagrad", "rate, decay, epsilon"),
    ROW(HELIO_OP_ALL_REDUCE, HI_ROW_CORE, "all_reduce", "AllReduce", "T", "T", ALL_TYPES, 0, 0,
        hi_shape_same, hi_gradient_all_reduce, NONE, NONE,
        "the sum of all replicas' x, on each", ""),
};
/* clang-format on */

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

const hi_row *hi_row_of(helio_operation operation) {
  return &rows[operation - 1];
}

bool hi_activation_by_output(helio_activation activation) {
  return activation == HELIO_RELU || activation == HELIO_SIGMOID || activation == HELIO_TANH || activation == HELIO_ELU;
}

int hi_row_outputs(const hi_row *row) {
  return (int)strlen(row->outputs);
}

bool hi_row_output_optional(const hi_row *row, int output) {
  return islower((unsigned char)row->outputs[output]);
}

int hi_update_gradient_place(const hi_row *row) {
  return (int)strcspn(row->inputs, "T");
}

/* ---- checking a call ---- */

static uint32_t types_of(const hi_row *row, char letter) {
  switch (toupper((unsigned char)letter)) {
  case 'I':
    return INDICES;
  case 'B':
    return HELIO_TYPE_BIT(HELIO_BOOL);
  case 'W':
    return HELIO_TYPE_BIT(HELIO_UINT8) | HELIO_TYPE_BIT(HELIO_INT32);
  default:
    return row->types;
  }
}

static helio_status unusable(const hi_call *call, int index) {
  char what[64];
  snprintf(what, sizeof what, "%s: input %d", call->row->info.label, index);
  hi_tensor_usable(call->inputs[index], what);
  return helio_error_pending();
}

static helio_status check_input(const hi_call *call, int index, char letter) {
  const helio_tensor *input = call->inputs[index], *first = call->inputs[0];
  const char *label = call->row->info.label;
  if (!input && islower((unsigned char)letter)) return HELIO_OK;
  if (!input || !input->block->arena) return unusable(call, index);
  if (!(types_of(call->row, letter) & HELIO_TYPE_BIT(input->type))) {
    return hi_fail(HELIO_NOT_SUPPORTED, "%s: input %d is of type %s, for which it is not defined", label, index,
                   helio_type_name(input->type));
  }
  bool main_type = strchr("TtVv", letter) != NULL;
  if (!main_type || input->type == first->type) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s: input %d is of type %s, the first of %s; cast one of them", label, index,
                 helio_type_name(input->type), helio_type_name(first->type));
}

helio_status hi_call_check(hi_call *call) {
  const char *letters = call->row->inputs;
  int fixed = (int)strcspn(letters, "*");
  bool any_number = letters[fixed] == '*';
  int most = any_number ? HI_MAX_INPUTS : fixed;
  if (call->input_count < fixed || call->input_count > most) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: %d inputs, it takes %d to %d", call->row->info.label, call->input_count,
                   fixed, most);
  }
  if (call->input_count > 0 && !call->inputs) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: the list of inputs is NULL", call->row->info.label);
  }
  if (call->attributes.size != call->row->attributes_size) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: its attributes are %zu bytes, not %zu", call->row->info.label,
                   call->row->attributes_size, call->attributes.size);
  }
  for (int i = 0; i < call->input_count; i++) {
    helio_status status = check_input(call, i, letters[i < fixed ? i : fixed - 1]);
    if (status) return status;
  }
  return call->row->shape(call);
}

/* ---- data that kernels refuse ---- */

static hi_range range_of(const hi_call *call, const char *value, const char *has, const char *units, int64_t limit) {
  return (hi_range){.operation = call->row->info.label, .value = value, .has = has, .units = units, .limit = limit};
}

static hi_range rows_range(const hi_call *call, const char *has, const helio_shape *table) {
  int64_t count = table->extent[0];
  return range_of(call, "index", has, count == 1 ? "row" : "rows", count);
}

static hi_range labels_range(const hi_call *call) {
  int64_t classes = call->inputs[0]->shape.extent[1];
  return range_of(call, "label", classes == 1 ? "there is" : "there are", classes == 1 ? "class" : "classes", classes);
}

static hi_range winners_range(const hi_call *call) {
  const helio_pool_attributes *pool = &call->attributes.pool;
  int64_t places = (int64_t)pool->window[0] * pool->window[1];
  bool padded = pool->padding[0] || pool->padding[1] || pool->padding[2] || pool->padding[3];
  const char *units = places == 1 ? "place" : padded ? "places, without those in the padding" : "places";
  return range_of(call, "winner", "the window has", units, places);
}

hi_range hi_call_range(const hi_call *call) {
  switch (call->row->operation) {
  case HELIO_OP_GATHER:
    return rows_range(call, "the table has", &call->inputs[0]->shape);
  case HELIO_OP_SCATTER_ADD:
    return rows_range(call, "the result has", &call->outputs[0].shape);
  case HELIO_OP_SPARSE_CROSS_ENTROPY:
    return labels_range(call);
  case HELIO_OP_MAX_POOL_GRAD:
    return winners_range(call);
  case HELIO_OP_SGD_UPDATE:
  case HELIO_OP_ADAM_UPDATE:
  case HELIO_OP_NADAM_UPDATE:
  case HELIO_OP_RMSPROP_UPDATE:
  case HELIO_OP_ADAGRAD_UPDATE:
    /* The indices stand after the gradient, if it is rows. */
    if (call->inputs[hi_update_gradient_place(call->row) + 1]) {
      return rows_range(call, "the table has", &call->inputs[0]->shape);
    }
    return (hi_range){0};
  default:
    return (hi_range){0};
  }
}

/* ---- the table for users ---- */

const helio_operation_info *const *helio_operations(int *count) {
  static const helio_operation_info *const list[] = {
#define INFO(name, value) &rows[(value)-1].info,
      HELIO_OPERATION_LIST(INFO)
#undef INFO
  };
  _Static_assert(sizeof list / sizeof list[0] == ROW_COUNT, "every operation has a row");
  if (hi_enter(__func__)) return NULL;
  if (count) {
    *count = ROW_COUNT;
    return list;
  }
  hi_fail(HELIO_INVALID_ARGUMENT, "count is NULL");
  return NULL;
}

const hi_row *hi_row_named(const char *name) {
  for (int i = 0; i < ROW_COUNT && name; i++) {
    if (strcasecmp(rows[i].info.name, name) == 0) return &rows[i];
  }
  return NULL;
}

uint32_t helio_operation_types(const char *operation, const char *backend) {
  int count;
  if (hi_enter(__func__)) return 0;
  const hi_row *row = hi_row_named(operation);
  hi_plugin *const *backends = hi_backends(&count);
  for (int i = 0; i < count && row && backend; i++) {
    if (strcasecmp(backends[i]->report.name, backend) != 0) continue;
    uint32_t types = row->kind == HI_ROW_KERNEL ? 0 : row->types;
    for (unsigned type = 1; type < HI_TYPE_COUNT; type++) {
      if (backends[i]->kernel_of[row->operation][type]) types |= HELIO_TYPE_BIT(type);
    }
    return types;
  }
  return 0;
}
