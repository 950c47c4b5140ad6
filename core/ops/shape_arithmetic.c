/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shape.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* The shape that both broadcast to, from the axes before the last `skip`. */
static bool broadcast(const helio_shape *a, const helio_shape *b, int skip, helio_shape *result) {
  int rank_a = a->rank - skip, rank_b = b->rank - skip;
  result->rank = rank_a > rank_b ? rank_a : rank_b;
  for (int i = 0; i < result->rank; i++) {
    int at_a = i - (result->rank - rank_a), at_b = i - (result->rank - rank_b);
    int64_t x = at_a < 0 ? 1 : a->extent[at_a], y = at_b < 0 ? 1 : b->extent[at_b];
    if (x != y && x != 1 && y != 1) return false;
    result->extent[i] = x == 1 ? y : x;
  }
  return true;
}

static helio_status broadcast_to(hi_call *call, helio_type type) {
  helio_shape result = {0};
  if (!broadcast(hi_input_shape(call, 0), hi_input_shape(call, 1), 0, &result)) {
    return hi_shape_wrong_pair(call, hi_input_shape(call, 0), hi_input_shape(call, 1), "do not broadcast");
  }
  return hi_shape_answer(call, 0, type, &result);
}

helio_status hi_shape_broadcast(hi_call *call) {
  return broadcast_to(call, call->inputs[0]->type);
}

helio_status hi_shape_compare(hi_call *call) {
  return broadcast_to(call, HELIO_BOOL);
}

helio_status hi_shape_where(hi_call *call) {
  helio_shape result = {0};
  helio_status status = hi_shape_broadcast(call);
  if (status) return status;
  if (!broadcast(&call->outputs[0].shape, hi_input_shape(call, 2), 0, &result)) {
    return hi_shape_wrong_pair(call, &call->outputs[0].shape, hi_input_shape(call, 2), "do not broadcast");
  }
  return hi_shape_answer(call, 0, call->inputs[0]->type, &result);
}

helio_status hi_shape_reduce(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0);
  helio_shape result = {0};
  for (int i = 0; i < x->rank; i++) {
    bool reduced = call->attributes.reduce.axes >> i & 1;
    if (!reduced || call->keep_dims) result.extent[result.rank++] = reduced ? 1 : x->extent[i];
  }
  return hi_shape_answer(call, 0, call->inputs[0]->type, &result);
}

helio_status hi_shape_argmax(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0);
  int axis = (int)call->attributes.axis.axis;
  helio_shape result = {0};
  if (axis < 0 || axis >= x->rank) return hi_shape_wrong(call, x, "does not have the axis");
  if (x->extent[axis] == 0) return hi_shape_wrong(call, x, "has no element along the axis");
  for (int i = 0; i < x->rank; i++) {
    if (i != axis) result.extent[result.rank++] = x->extent[i];
  }
  return hi_shape_answer(call, 0, HELIO_INT64, &result);
}

/* `wanted` has one extent: k. */
helio_status hi_shape_top_k(hi_call *call) {
  helio_shape result = *hi_input_shape(call, 0);
  int64_t k = call->wanted.extent[0];
  if (result.rank < 1 || k < 0 || k > result.extent[result.rank - 1]) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: k is %lld, the last axis has fewer elements", call->row->info.label,
                   (long long)k);
  }
  result.extent[result.rank - 1] = k;
  helio_status status = hi_shape_answer(call, 0, call->inputs[0]->type, &result);
  return status ? status : hi_shape_answer(call, 1, HELIO_INT32, &result);
}

helio_status hi_shape_in_top_k(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0), *targets = hi_input_shape(call, 1);
  if (x->rank != 2 || targets->rank != 1 || targets->extent[0] != x->extent[0]) {
    return hi_shape_wrong_pair(call, x, targets, "do not go together: there is one target for each row");
  }
  return hi_shape_answer(call, 0, HELIO_BOOL, targets);
}

helio_status hi_shape_matmul(hi_call *call) {
  const helio_shape *a = hi_input_shape(call, 0), *b = hi_input_shape(call, 1);
  const helio_matmul_attributes *how = &call->attributes.matmul;
  helio_shape result = {0};
  if (a->rank < 2 || b->rank < 2) return hi_shape_wrong_pair(call, a, b, "are not both matrices");
  if (how->activation > HELIO_GELU_TANH || (how->activation > HELIO_RELU && !hi_type_is_float(call->inputs[0]->type))) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: activation %u cannot be applied here", call->row->info.label,
                   how->activation);
  }
  int64_t rows = a->extent[a->rank - (how->transpose_a ? 1 : 2)];
  int64_t inner_a = a->extent[a->rank - (how->transpose_a ? 2 : 1)];
  int64_t inner_b = b->extent[b->rank - (how->transpose_b ? 1 : 2)];
  int64_t columns = b->extent[b->rank - (how->transpose_b ? 2 : 1)];
  if (inner_a != inner_b) return hi_shape_wrong_pair(call, a, b, "have inner extents that differ");
  if (!broadcast(a, b, 2, &result)) return hi_shape_wrong_pair(call, a, b, "have batches that do not broadcast");
  if (call->inputs[2]) {
    const helio_shape *bias = hi_input_shape(call, 2);
    if (bias->rank != 1 || bias->extent[0] != columns) {
      return hi_shape_wrong_pair(call, b, bias, "do not go together: the bias has one element for each column");
    }
  }
  result.extent[result.rank++] = rows;
  result.extent[result.rank++] = columns;
  return hi_shape_answer(call, 0, call->inputs[0]->type, &result);
}
