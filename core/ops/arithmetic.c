/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic, comparisons and reductions. */
#include "ops/options.h"
#include "ops/shape.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

helio_tensor *helio_add(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_ADD, a, b);
}

helio_tensor *helio_sub(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_SUB, a, b);
}

helio_tensor *helio_mul(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_MUL, a, b);
}

helio_tensor *helio_div(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_DIV, a, b);
}

helio_tensor *helio_pow(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_POW, a, b);
}

helio_tensor *helio_maximum(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_MAXIMUM, a, b);
}

helio_tensor *helio_minimum(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_MINIMUM, a, b);
}

helio_tensor *helio_equal(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_EQUAL, a, b);
}

helio_tensor *helio_not_equal(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_NOT_EQUAL, a, b);
}

helio_tensor *helio_less(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_LESS, a, b);
}

helio_tensor *helio_less_equal(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_LESS_EQUAL, a, b);
}

helio_tensor *helio_greater(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_GREATER, a, b);
}

helio_tensor *helio_greater_equal(helio_tensor *a, helio_tensor *b) {
  return hi_binary(__func__, HELIO_OP_GREATER_EQUAL, a, b);
}

helio_tensor *helio_neg(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_NEG, x);
}

helio_tensor *helio_abs(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_ABS, x);
}

helio_tensor *helio_square(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_SQUARE, x);
}

helio_tensor *helio_sqrt(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_SQRT, x);
}

helio_tensor *helio_rsqrt(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_RSQRT, x);
}

helio_tensor *helio_exp(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_EXP, x);
}

helio_tensor *helio_log(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_LOG, x);
}

helio_tensor *helio_clip(helio_tensor *x, double low, double high) {
  hi_call call = {
      .row = hi_row_of(HELIO_OP_CLIP), .inputs = &x, .input_count = 1, .scalars = {{.real = low}, {.real = high}}};
  return hi_enter(__func__) ? NULL : hi_dispatch_one(&call);
}

helio_tensor *helio_add_n(helio_tensor *const *inputs, int count) {
  hi_call call = {.row = hi_row_of(HELIO_OP_ADD_N), .inputs = inputs, .input_count = count};
  return hi_enter(__func__) ? NULL : hi_dispatch_one(&call);
}

/* ---- reductions ---- */

static helio_tensor *reduce(const char *function, helio_operation operation, const helio_reduce_options *given) {
  helio_reduce_options o;
  uint32_t set = 0;
  if (!hi_options_enter(function, &o, sizeof o, given)) return NULL;
  hi_call call = {.row = hi_row_of(operation), .inputs = &o.x, .input_count = 1, .keep_dims = o.keep_dims};
  if (o.x && !hi_options_axes(call.row, &o.x->shape, &o.axes, &set)) return NULL; /* dispatch refuses NULL */
  if (o.x && o.axes.count == 0) set = (1u << o.x->shape.rank) - 1;
  call.attributes.reduce = (helio_reduce_attributes){.size = sizeof call.attributes.reduce, .axes = set};
  return hi_dispatch_one(&call);
}

helio_tensor *helio_sum_with(const helio_reduce_options *options) {
  return reduce("helio_sum", HELIO_OP_SUM, options);
}

helio_tensor *helio_mean_with(const helio_reduce_options *options) {
  return reduce("helio_mean", HELIO_OP_MEAN, options);
}

helio_tensor *helio_max_with(const helio_reduce_options *options) {
  return reduce("helio_max", HELIO_OP_MAX, options);
}

helio_tensor *helio_min_with(const helio_reduce_options *options) {
  return reduce("helio_min", HELIO_OP_MIN, options);
}

helio_tensor *helio_argmax(helio_tensor *x, int axis) {
  hi_call call = {.row = hi_row_of(HELIO_OP_ARGMAX), .inputs = &x, .input_count = 1};
  if (hi_enter(__func__) || !hi_tensor_usable(x, "ArgMax: input 0")) return NULL;
  axis = hi_axis(call.row->info.label, axis, &x->shape);
  if (axis < 0) return NULL;
  call.attributes.axis = (helio_axis_attributes){.size = sizeof call.attributes.axis, .axis = (uint32_t)axis};
  return hi_dispatch_one(&call);
}

helio_tensor *helio_top_k(helio_tensor *x, int64_t k, helio_tensor **indices) {
  hi_call call = {.row = hi_row_of(HELIO_OP_TOP_K), .inputs = &x, .input_count = 1, .wanted = {1, {k}}};
  helio_tensor *outputs[HI_MAX_OUTPUTS];
  if (hi_enter(__func__) || hi_dispatch(&call, outputs)) return NULL;
  if (indices) *indices = outputs[1];
  return outputs[0];
}

helio_tensor *helio_in_top_k(helio_tensor *x, helio_tensor *targets, int k) {
  hi_call call = {.row = hi_row_of(HELIO_OP_IN_TOP_K), .inputs = (helio_tensor *[]){x, targets}, .input_count = 2};
  if (hi_enter(__func__)) return NULL;
  if (k < 1) {
    hi_fail(HELIO_INVALID_ARGUMENT, "InTopKV2: k is %d", k);
    return NULL;
  }
  call.attributes.top_k = (helio_top_k_attributes){.size = sizeof call.attributes.top_k, .k = (uint32_t)k};
  return hi_dispatch_one(&call);
}
