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
enum { NONE = 0, FIRST = 1, SECOND = 2, BOTH = 3, THIRD = 4 };

#define ROW(symbol, what, lower, upper, in, out, accepted, scalar_count, rule, back, kept_in, kept_out, text, names)   \
  {                                                                                                                    \
    .operation = HELIO_OP_##symbol, .kind = HI_ROW_##what, .types = accepted, .inputs = in, .outputs = out,            \
    .scalars = scalar_count, .shape = hi_shape_##rule, .gradient = back, .keeps_inputs = kept_in,                      \
    .keeps_outputs = kept_out, .info = {                                                                               \
      .name = lower,                                                                                                   \
      .label = upper,                                                                                                  \
      .summary = text,                                                                                                 \
      .attributes = names,                                                                                             \
      .needs_kernel = HI_ROW_##what == HI_ROW_KERNEL                                                                   \
    }                                                                                                                  \
  }

/* One row, one line as far as possible: the table is read as a table.
 * clang-format off */
static const hi_row rows[] = {
    ROW(FILL, CORE, "fill", "Fill", "", "T", ALL_TYPES, 0, as_wanted, NULL, NONE, NONE, "a tensor of one value",
        "shape, value, type"),
    ROW(COPY, CORE, "copy", "Copy", "T", "T", ALL_TYPES, 0, same, hi_gradient_same, NONE, NONE, "a copy of x", ""),
    ROW(CAST, KERNEL, "cast", "Cast", "T", "?", ALL_TYPES, 0, cast, hi_gradient_cast, NONE, NONE,
        "x in another type; a float to an integer towards zero, to the nearest end of the range, NaN to 0; integers "
        "wrap",
        "type"),
    ROW(RESHAPE, VIEW, "reshape", "Reshape", "T", "T", ALL_TYPES, 0, same, hi_gradient_reshape, NONE, NONE,
        "x in another shape", "shape"),
    ROW(EXPAND_DIMS, VIEW, "expand_dims", "ExpandDims", "T", "T", ALL_TYPES, 0, same, hi_gradient_reshape, NONE, NONE,
        "x with one more axis", "axis"),
    ROW(SQUEEZE, VIEW, "squeeze", "Squeeze", "T", "T", ALL_TYPES, 0, same, hi_gradient_reshape, NONE, NONE,
        "x without axes of extent 1", "axes"),
    ROW(SLICE, KERNEL, "slice", "Slice", "T", "T", ALL_TYPES, 0, slice, hi_gradient_slice, NONE, NONE,
        "a part of x; of the first axis alone, a view", "begin, extents"),
    ROW(CONCAT, KERNEL, "concat", "ConcatV2", "T*", "T", ALL_TYPES, 0, concat, hi_gradient_concat, NONE, NONE,
        "the inputs one behind the other", "axis"),
    ROW(ADD, KERNEL, "add", "AddV2", "TT", "T", NUMBERS, 0, broadcast, hi_gradient_add, NONE, NONE, "a + b", ""),
    ROW(SUB, KERNEL, "sub", "Sub", "TT", "T", NUMBERS, 0, broadcast, hi_gradient_sub, NONE, NONE, "a − b", ""),
    ROW(MUL, KERNEL, "mul", "Mul", "TT", "T", NUMBERS, 0, broadcast, hi_gradient_mul, BOTH, NONE, "a × b", ""),
    ROW(ADD_N, KERNEL, "add_n", "AddN", "T*", "T", NUMBERS, 0, all_same, hi_gradient_same, NONE, NONE,
        "the sum of the inputs", ""),
    ROW(SUM, KERNEL, "sum", "Sum", "T", "T", NUMBERS, 0, reduce, hi_gradient_sum, NONE, NONE, "the sum of x over axes",
        "axes, keep_dims"),
    ROW(MATMUL, KERNEL, "matmul", "MatMul", "TTt", "T", NUMBERS, 0, matmul, hi_gradient_matmul, BOTH, FIRST,
        "activation(a × b + bias)", "transpose_a, transpose_b, activation"),
    ROW(RELU, KERNEL, "relu", "Relu", "T", "T", NUMBERS, 0, same, hi_gradient_activation, NONE, FIRST, "max(x, 0)", ""),
    ROW(TRANSPOSE, KERNEL, "transpose", "Transpose", "T", "T", ALL_TYPES, 0, transpose, hi_gradient_transpose, NONE,
        NONE, "x with its axes in another order", "permutation"),
    ROW(SPLIT, CORE, "split", "Split", "T", "T*", ALL_TYPES, 0, same, NULL, NONE, NONE,
        "x cut into parts along an axis, by slice", "parts, axis"),
    ROW(PAD, KERNEL, "pad", "PadV2", "T", "T", ALL_TYPES, 1, pad, hi_gradient_pad, NONE, NONE,
        "x with a border of one value", "before, after, value"),
    ROW(GATHER, KERNEL, "gather", "GatherV2", "TI", "T", ALL_TYPES, 0, gather, hi_gradient_gather, SECOND, NONE,
        "rows of x; an index out of range is an error", ""),
    ROW(SCATTER_ADD, KERNEL, "scatter_add", "ScatterAdd", "TI", "T", NUMBERS, 0, scatter_add, hi_gradient_scatter_add,
        SECOND, NONE, "zeros, to whose rows those of x are added", "rows"),
    ROW(WHERE, KERNEL, "where", "SelectV2", "TTB", "T", ALL_TYPES, 0, where, hi_gradient_where, THIRD, NONE,
        "condition ? a : b", ""),
    ROW(ONE_HOT, KERNEL, "one_hot", "OneHot", "I", "?", INDICES, 0, one_hot, NULL, NONE, NONE,
        "1 at the index, 0 elsewhere", "depth, type"),
    ROW(DIV, KERNEL, "div", "RealDiv", "TT", "T", NUMBERS, 0, broadcast, hi_gradient_div, SECOND, FIRST,
        "a / b; integers towards zero, by zero 0", ""),
    ROW(POW, KERNEL, "pow", "Pow", "TT", "T", FLOATS, 0, broadcast, hi_gradient_pow, BOTH, FIRST, "a to the power b",
        ""),
    ROW(MAXIMUM, KERNEL, "maximum", "Maximum", "TT", "T", NUMBERS, 0, broadcast, hi_gradient_extreme, BOTH, NONE,
        "the larger of a and b; its gradient goes to a where they are equal", ""),
    ROW(MINIMUM, KERNEL, "minimum", "Minimum", "TT", "T", NUMBERS, 0, broadcast, hi_gradient_extreme, BOTH, NONE,
        "the smaller of a and b", ""),
    ROW(EQUAL, KERNEL, "equal", "Equal", "TT", "B", ALL_TYPES, 0, compare, NULL, NONE, NONE, "a = b", ""),
    ROW(NOT_EQUAL, KERNEL, "not_equal", "NotEqual", "TT", "B", ALL_TYPES, 0, compare, NULL, NONE, NONE, "a ≠ b", ""),
    ROW(LESS, KERNEL, "less", "Less", "TT", "B", ALL_TYPES, 0, compare, NULL, NONE, NONE, "a < b", ""),
    ROW(LESS_EQUAL, KERNEL, "less_equal", "LessEqual", "TT", "B", ALL_TYPES, 0, compare, NULL, NONE, NONE, "a ≤ b", ""),
    ROW(GREATER, KERNEL, "greater", "Greater", "TT", "B", ALL_TYPES, 0, compare, NULL, NONE, NONE, "a > b", ""),
    ROW(GREATER_EQUAL, KERNEL, "greater_equal", "GreaterEqual", "TT", "B", ALL_TYPES, 0, compare, NULL, NONE, NONE,
        "a ≥ b", ""),
    ROW(NEG, KERNEL, "neg", "Neg", "T", "T", NUMBERS, 0, same, hi_gradient_neg, NONE, NONE, "−x", ""),
    ROW(ABS, KERNEL, "abs", "Abs", "T", "T", NUMBERS, 0, same, hi_gradient_abs, FIRST, NONE, "|x|", ""),
    ROW(SQUARE, KERNEL, "square", "Square", "T", "T", NUMBERS, 0, same, hi_gradient_square, FIRST, NONE, "x²", ""),
    ROW(SQRT, KERNEL, "sqrt", "Sqrt", "T", "T", FLOATS, 0, same, hi_gradient_sqrt, NONE, FIRST, "√x", ""),
    ROW(RSQRT, KERNEL, "rsqrt", "Rsqrt", "T", "T", FLOATS, 0, same, hi_gradient_rsqrt, NONE, FIRST, "1 / √x", ""),
    ROW(EXP, KERNEL, "exp", "Exp", "T", "T", FLOATS, 0, same, hi_gradient_exp, NONE, FIRST, "e to the power x", ""),
    ROW(LOG, KERNEL, "log", "Log", "T", "T", FLOATS, 0, same, hi_gradient_log, FIRST, NONE,
        "the natural logarithm of x", ""),
    ROW(CLIP, KERNEL, "clip", "ClipByValue", "T", "T", NUMBERS, 2, same, hi_gradient_clip, FIRST, NONE,
        "x within low and high", "low, high"),
    ROW(SIGMOID, KERNEL, "sigmoid", "Sigmoid", "T", "T", FLOATS, 0, same, hi_gradient_activation, NONE, FIRST,
        "1 / (1 + exp(−x))", ""),
    ROW(TANH, KERNEL, "tanh", "Tanh", "T", "T", FLOATS, 0, same, hi_gradient_activation, NONE, FIRST,
        "hyperbolic tangent", ""),
    ROW(SOFTPLUS, KERNEL, "softplus", "Softplus", "T", "T", FLOATS, 0, same, hi_gradient_activation, FIRST, NONE,
        "log(1 + exp(x))", ""),
    ROW(SWISH, KERNEL, "swish", "Swish", "T", "T", FLOATS, 0, same, hi_gradient_activation, FIRST, NONE,
        "x × sigmoid(x)", ""),
    ROW(GELU, KERNEL, "gelu", "Gelu", "T", "T", FLOATS, 0, same, hi_gradient_activation, FIRST, NONE, "x × Φ(x)",
        "approximate"),
    ROW(ELU, KERNEL, "elu", "Elu", "T", "T", FLOATS, 1, same, hi_gradient_activation, NONE, FIRST,
        "x > 0 ? x : alpha × (exp(x) − 1)", "alpha"),
    ROW(LEAKY_RELU, KERNEL, "leaky_relu", "LeakyRelu", "T", "T", FLOATS, 1, same, hi_gradient_activation, FIRST, NONE,
        "x > 0 ? x : alpha × x", "alpha"),
    ROW(ACTIVATION_GRAD, KERNEL, "activation_grad", "ActivationGrad", "TT", "T", NUMBERS, 1, all_same, NULL, NONE, NONE,
        "dx of an activation, by dy and x or y", "activation, alpha"),
    ROW(MEAN, KERNEL, "mean", "Mean", "T", "T", FLOATS, 0, reduce, hi_gradient_mean, NONE, NONE,
        "the mean of x over axes", "axes, keep_dims"),
    ROW(MAX, KERNEL, "max", "Max", "T", "T", NUMBERS, 0, reduce, hi_gradient_max, FIRST, FIRST,
        "the largest of x over axes; its gradient is shared among equals", "axes, keep_dims"),
    ROW(MIN, KERNEL, "min", "Min", "T", "T", NUMBERS, 0, reduce, hi_gradient_max, FIRST, FIRST,
        "the smallest of x over axes", "axes, keep_dims"),
    ROW(ARGMAX, KERNEL, "argmax", "ArgMax", "T", "?", NUMBERS, 0, argmax, NULL, NONE, NONE,
        "the place of the first of the largest along an axis", "axis"),
    ROW(TOP_K, KERNEL, "top_k", "TopKV2", "T", "T?", NUMBERS, 0, top_k, NULL, NONE, NONE,
        "the k largest of the last axis and their places", "k"),
    ROW(IN_TOP_K, KERNEL, "in_top_k", "InTopKV2", "TI", "B", FLOATS, 0, in_top_k, NULL, NONE, NONE,
        "is the target among the k largest? Ties at the border count as in", "k"),
    ROW(CONV2D, KERNEL, "conv2d", "Conv2D", "TTt", "T", FLOATS, 0, conv2d, hi_gradient_conv2d, BOTH, FIRST,
        "activation(x ∗ kernel + bias), NHWC and HWIO", "stride, dilation, padding, groups, activation"),
    ROW(CONV2D_GRAD_INPUT, KERNEL, "conv2d_grad_input", "Conv2DBackpropInput", "TT", "T", FLOATS, 0, as_wanted, NULL,
        NONE, NONE, "dx by dy and the kernel", "as conv2d"),
    ROW(CONV2D_GRAD_KERNEL, KERNEL, "conv2d_grad_kernel", "Conv2DBackpropFilter", "TT", "T", FLOATS, 0, as_wanted, NULL,
        NONE, NONE, "the kernel's gradient by x and dy", "as conv2d"),
    ROW(MAX_POOL, KERNEL, "max_pool", "MaxPool", "T", "Tw", FLOATS, 0, max_pool, hi_gradient_max_pool, NONE, SECOND,
        "the largest of each window and its place there", "window, stride, padding"),
    ROW(MAX_POOL_GRAD, KERNEL, "max_pool_grad", "MaxPoolGrad", "TW", "T", FLOATS, 0, as_wanted, NULL, NONE, NONE,
        "dx by dy and the winners", "as max_pool"),
    ROW(AVERAGE_POOL, KERNEL, "average_pool", "AvgPool", "T", "T", FLOATS, 0, average_pool, hi_gradient_average_pool,
        NONE, NONE, "the mean of each window without its padding", "window, stride, padding"),
    ROW(AVERAGE_POOL_GRAD, KERNEL, "average_pool_grad", "AvgPoolGrad", "T", "T", FLOATS, 0, as_wanted, NULL, NONE, NONE,
        "dx by dy", "as average_pool"),
    ROW(SOFTMAX, KERNEL, "softmax", "Softmax", "T", "T", FLOATS, 0, same, hi_gradient_softmax, NONE, FIRST,
        "exp(x) ÷ its sum along the last axis", ""),
    ROW(LOG_SOFTMAX, KERNEL, "log_softmax", "LogSoftmax", "T", "T", FLOATS, 0, same, hi_gradient_softmax, NONE, FIRST,
        "the logarithm of softmax", ""),
    ROW(SOFTMAX_GRAD, KERNEL, "softmax_grad", "SoftmaxGrad", "TT", "T", FLOATS, 0, all_same, NULL, NONE, NONE,
        "dx by dy and y", ""),
    ROW(LOG_SOFTMAX_GRAD, KERNEL, "log_softmax_grad", "LogSoftmaxGrad", "TT", "T", FLOATS, 0, all_same, NULL, NONE,
        NONE, "dx by dy and y", ""),
    ROW(SPARSE_CROSS_ENTROPY, KERNEL, "sparse_cross_entropy", "SparseSoftmaxCrossEntropyWithLogits", "TI", "Tt", FLOATS,
        0, sparse_cross_entropy, hi_gradient_cross_entropy, NONE, SECOND,
        "−log softmax(x)[label] and its gradient; a label out of range is an error", ""),
    ROW(CROSS_ENTROPY, KERNEL, "cross_entropy", "SoftmaxCrossEntropyWithLogits", "TT", "Tt", FLOATS, 0, cross_entropy,
        hi_gradient_cross_entropy, NONE, SECOND, "−Σ label × log softmax(x) and its gradient by x", ""),
    ROW(MOMENTS, KERNEL, "moments", "Moments", "T", "TT", FLOATS, 0, moments, hi_gradient_moments, FIRST, FIRST,
        "mean and variance over all axes but the last", ""),
    ROW(NORMALIZE, KERNEL, "normalize", "Normalize", "TTTtt", "T", FLOATS, 1, normalize, hi_gradient_normalize,
        FIRST | SECOND | THIRD | 8, NONE, "(x − mean) ÷ √(variance + epsilon) × gamma + beta, by the last axis",
        "epsilon"),
    ROW(NORMALIZE_GRAD_SUMS, KERNEL, "normalize_grad_sums", "NormalizeGradSums", "TTTT", "TT", FLOATS, 1,
        normalize_sums, NULL, NONE, NONE, "dgamma and dbeta by dy, x, mean, variance", "epsilon"),
    ROW(NORMALIZE_GRAD_INPUT, KERNEL, "normalize_grad_input", "NormalizeGradInput", "TTTTtTT", "T", FLOATS, 2, same,
        NULL, NONE, NONE, "dx of batch normalization, the moments being x's own", "epsilon, 1/count"),
    ROW(LAYER_NORM, KERNEL, "layer_norm", "LayerNorm", "Ttt", "Ttt", FLOATS, 1, layer_norm, hi_gradient_layer_norm,
        FIRST | SECOND, SECOND | THIRD, "normalized along the last axis, × gamma + beta", "epsilon"),
    ROW(LAYER_NORM_GRAD, KERNEL, "layer_norm_grad", "LayerNormGrad", "TTtTT", "Ttt", FLOATS, 0, layer_norm_grad, NULL,
        NONE, NONE, "dx, dgamma, dbeta", ""),
    ROW(RANDOM_BITS, KERNEL, "random_bits", "RandomBits", "", "T", BITS, 3, as_wanted, NULL, NONE, NONE,
        "words of Philox 4×32-10", "shape, key, step, base"),
    ROW(RANDOM_UNIFORM, KERNEL, "random_uniform", "RandomUniform", "", "T", WIDE_FLOATS, 5, as_wanted, NULL, NONE, NONE,
        "uniform random numbers", "shape, key, step, base, low, high"),
    ROW(RANDOM_NORMAL, KERNEL, "random_normal", "RandomNormal", "", "T", WIDE_FLOATS, 5, as_wanted, NULL, NONE, NONE,
        "normal random numbers", "shape, key, step, base, mean, deviation"),
    ROW(DROPOUT, KERNEL, "dropout", "Dropout", "T", "T", FLOATS, 4, same, hi_gradient_dropout, NONE, NONE,
        "a part of x set to 0, the rest made larger", "key, step, base, rate"),
    ROW(COMBINE_ROWS, KERNEL, "combine_rows", "CombineRows", "TI", "TI", FLOATS, 0, combine_rows, NULL, NONE, NONE,
        "rows of equal index summed", ""),
    ROW(SGD_UPDATE, KERNEL, "sgd_update", "SgdUpdate", "VvTi", "", WIDE_FLOATS, 3, update, NULL, NONE, NONE,
        "one step of gradient descent", "nesterov, rate, decay, momentum"),
    ROW(ADAM_UPDATE, KERNEL, "adam_update", "AdamUpdate", "VVVTi", "", WIDE_FLOATS, 5, update, NULL, NONE, NONE,
        "one step of Adam or AdamW", "rate, decay, beta1, beta2, epsilon"),
    ROW(NADAM_UPDATE, KERNEL, "nadam_update", "NadamUpdate", "VVVTi", "", WIDE_FLOATS, 8, update, NULL, NONE, NONE,
        "one step of Nadam", "rate, decay, beta1, beta2, epsilon, on m, on gradient, on v"),
    ROW(RMSPROP_UPDATE, KERNEL, "rmsprop_update", "RmspropUpdate", "VVvvTi", "", WIDE_FLOATS, 5, update, NULL, NONE,
        NONE, "one step of RMSprop", "rate, decay, rho, momentum, epsilon"),
    ROW(ADAGRAD_UPDATE, KERNEL, "adagrad_update", "AdagradUpdate", "VVTi", "", WIDE_FLOATS, 3, update, NULL, NONE, NONE,
        "one step of Adagrad", "rate, decay, epsilon"),
};
/* clang-format on */

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

const hi_row *hi_row_of(helio_operation operation) {
  return &rows[operation - 1]; /* the rows stand in the order of the enum; a test looks at that */
}

int hi_row_outputs(const hi_row *row) {
  return (int)strlen(row->outputs);
}

bool hi_row_output_optional(const hi_row *row, int output) {
  return islower((unsigned char)row->outputs[output]);
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
  if ((any_number ? call->input_count < fixed || call->input_count > HI_MAX_INPUTS : call->input_count != fixed) ||
      (call->input_count > 0 && !call->inputs)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: %d inputs", call->row->info.label, call->input_count);
  }
  for (int i = 0; i < call->input_count; i++) {
    helio_status status = check_input(call, i, letters[i < fixed ? i : fixed - 1]);
    if (status) return status;
  }
  return call->row->shape(call);
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
