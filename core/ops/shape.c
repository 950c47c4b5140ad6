/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shape.h"

#include <string.h>

#include "runtime/error.h"
#include "tensor/tensor.h"

static const helio_shape *shape_of(const hi_call *call, int input) {
  return &call->inputs[input]->shape;
}

static helio_status wrong_pair(const hi_call *call, const helio_shape *a, const helio_shape *b, const char *why) {
  char text_a[HI_SHAPE_TEXT], text_b[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s: shapes %s and %s %s", call->row->info.label, hi_shape_text(a, text_a),
                 hi_shape_text(b, text_b), why);
}

static helio_status answer(hi_call *call, helio_type type, const helio_shape *shape) {
  size_t bytes;
  call->outputs[0].type = type;
  call->outputs[0].shape = *shape;
  if (hi_shape_bytes(shape, type, &bytes)) return HELIO_OK;
  char text[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s: the shape %s is not valid or too large", call->row->info.label,
                 hi_shape_text(shape, text));
}

int hi_axis(const char *operation, int axis, const helio_shape *shape) {
  char text[HI_SHAPE_TEXT];
  if (axis >= -shape->rank && axis < shape->rank) return axis < 0 ? axis + shape->rank : axis;
  hi_fail(HELIO_INVALID_ARGUMENT, "%s: axis %d is out of range for the shape %s", operation, axis,
          hi_shape_text(shape, text));
  return -1;
}

helio_status hi_shape_as_wanted(hi_call *call) {
  return answer(call, call->wanted_type, &call->wanted);
}

helio_status hi_shape_same(hi_call *call) {
  return answer(call, call->inputs[0]->type, shape_of(call, 0));
}

helio_status hi_shape_cast(hi_call *call) {
  if (!hi_type_valid(call->wanted_type)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: %d is not a type", call->row->info.label, (int)call->wanted_type);
  }
  return answer(call, call->wanted_type, shape_of(call, 0));
}

helio_status hi_shape_slice(hi_call *call) {
  const helio_shape *x = shape_of(call, 0);
  const int64_t *begin = call->attributes.slice.begin;
  helio_shape *size = &call->wanted;
  if (size->rank != x->rank) return wrong_pair(call, x, size, "have different ranks");
  for (int i = 0; i < x->rank; i++) {
    if (size->extent[i] == -1 && begin[i] >= 0 && begin[i] <= x->extent[i]) size->extent[i] = x->extent[i] - begin[i];
    if (begin[i] < 0 || size->extent[i] < 0 || begin[i] > x->extent[i] || size->extent[i] > x->extent[i] - begin[i]) {
      char text[HI_SHAPE_TEXT];
      return hi_fail(HELIO_INVALID_ARGUMENT, "%s: %lld elements from %lld on lie outside axis %d of the shape %s",
                     call->row->info.label, (long long)size->extent[i], (long long)begin[i], i, hi_shape_text(x, text));
    }
  }
  return answer(call, call->inputs[0]->type, size);
}

helio_status hi_shape_concat(hi_call *call) {
  helio_shape result = *shape_of(call, 0);
  int axis = (int)call->attributes.concat.axis;
  for (int i = 1; i < call->input_count; i++) {
    const helio_shape *x = shape_of(call, i);
    helio_shape same = *x;
    if (x->rank != result.rank) return wrong_pair(call, &result, x, "have different ranks");
    same.extent[axis] = result.extent[axis];
    if (!hi_shape_equal(&same, &result)) return wrong_pair(call, shape_of(call, 0), x, "differ beside the axis");
    if (__builtin_add_overflow(result.extent[axis], x->extent[axis], &result.extent[axis])) {
      return wrong_pair(call, &result, x, "are too large together");
    }
  }
  return answer(call, call->inputs[0]->type, &result);
}

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

helio_status hi_shape_broadcast(hi_call *call) {
  helio_shape result = {0};
  if (!broadcast(shape_of(call, 0), shape_of(call, 1), 0, &result)) {
    return wrong_pair(call, shape_of(call, 0), shape_of(call, 1), "do not broadcast");
  }
  return answer(call, call->inputs[0]->type, &result);
}

helio_status hi_shape_all_same(hi_call *call) {
  for (int i = 1; i < call->input_count; i++) {
    if (!hi_shape_equal(shape_of(call, 0), shape_of(call, i))) {
      return wrong_pair(call, shape_of(call, 0), shape_of(call, i), "differ");
    }
  }
  return hi_shape_same(call);
}

helio_status hi_shape_reduce(hi_call *call) {
  const helio_shape *x = shape_of(call, 0);
  helio_shape result = {0};
  for (int i = 0; i < x->rank; i++) {
    bool summed = call->attributes.reduce.axes >> i & 1;
    if (!summed || call->keep_dims) result.extent[result.rank++] = summed ? 1 : x->extent[i];
  }
  return answer(call, call->inputs[0]->type, &result);
}

helio_status hi_shape_matmul(hi_call *call) {
  const helio_shape *a = shape_of(call, 0), *b = shape_of(call, 1);
  const helio_matmul_attributes *how = &call->attributes.matmul;
  helio_shape result = {0};
  if (a->rank < 2 || b->rank < 2) return wrong_pair(call, a, b, "are not both matrices");
  if (how->activation > HELIO_RELU) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: %u is not an activation", call->row->info.label, how->activation);
  }
  int64_t rows = a->extent[a->rank - (how->transpose_a ? 1 : 2)];
  int64_t inner_a = a->extent[a->rank - (how->transpose_a ? 2 : 1)];
  int64_t inner_b = b->extent[b->rank - (how->transpose_b ? 1 : 2)];
  int64_t columns = b->extent[b->rank - (how->transpose_b ? 2 : 1)];
  if (inner_a != inner_b) return wrong_pair(call, a, b, "have inner extents that differ");
  if (!broadcast(a, b, 2, &result)) return wrong_pair(call, a, b, "have batches that do not broadcast");
  if (call->inputs[2]) {
    const helio_shape *bias = shape_of(call, 2);
    if (bias->rank != 1 || bias->extent[0] != columns) {
      return wrong_pair(call, b, bias, "do not go together: the bias has one element for each column");
    }
  }
  result.extent[result.rank++] = rows;
  result.extent[result.rank++] = columns;
  return answer(call, call->inputs[0]->type, &result);
}
