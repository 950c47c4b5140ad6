/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shape.h"

#include <string.h>

#include "runtime/error.h"
#include "tensor/tensor.h"

const helio_shape *hi_input_shape(const hi_call *call, int input) {
  return &call->inputs[input]->shape;
}

helio_status hi_shape_wrong_pair(const hi_call *call, const helio_shape *a, const helio_shape *b, const char *why) {
  char text_a[HI_SHAPE_TEXT], text_b[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s: shapes %s and %s %s", call->row->info.label, hi_shape_text(a, text_a),
                 hi_shape_text(b, text_b), why);
}

helio_status hi_shape_wrong(const hi_call *call, const helio_shape *shape, const char *why) {
  char text[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s: the shape %s %s", call->row->info.label, hi_shape_text(shape, text), why);
}

helio_status hi_shape_answer(hi_call *call, int output, helio_type type, const helio_shape *shape) {
  size_t bytes;
  call->outputs[output].type = type;
  call->outputs[output].shape = *shape;
  return hi_shape_bytes(shape, type, &bytes) ? HELIO_OK : hi_shape_wrong(call, shape, "is not valid or too large");
}

int hi_axis(const char *operation, int axis, const helio_shape *shape) {
  char text[HI_SHAPE_TEXT];
  if (axis >= -shape->rank && axis < shape->rank) return axis < 0 ? axis + shape->rank : axis;
  hi_fail(HELIO_INVALID_ARGUMENT, "%s: axis %d is out of range for the shape %s", operation, axis,
          hi_shape_text(shape, text));
  return -1;
}

static helio_status valid_type(const hi_call *call) {
  if (hi_type_valid(call->wanted_type)) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s: %d is not a type", call->row->info.label, (int)call->wanted_type);
}

helio_status hi_shape_as_wanted(hi_call *call) {
  if (call->input_count > 0) call->wanted_type = call->inputs[0]->type;
  helio_status status = valid_type(call);
  if (status) return status;
  if (!(call->row->types & HELIO_TYPE_BIT(call->wanted_type))) {
    return hi_fail(HELIO_NOT_SUPPORTED, "%s is not defined for %s", call->row->info.label,
                   helio_type_name(call->wanted_type));
  }
  return hi_shape_answer(call, 0, call->wanted_type, &call->wanted);
}

helio_status hi_shape_same(hi_call *call) {
  return hi_shape_answer(call, 0, call->inputs[0]->type, hi_input_shape(call, 0));
}

helio_status hi_shape_all_same(hi_call *call) {
  for (int i = 1; i < call->input_count; i++) {
    if (!hi_shape_equal(hi_input_shape(call, 0), hi_input_shape(call, i))) {
      return hi_shape_wrong_pair(call, hi_input_shape(call, 0), hi_input_shape(call, i), "differ");
    }
  }
  return hi_shape_same(call);
}

helio_status hi_shape_cast(hi_call *call) {
  helio_status status = valid_type(call);
  return status ? status : hi_shape_answer(call, 0, call->wanted_type, hi_input_shape(call, 0));
}

helio_status hi_shape_slice(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0);
  const int64_t *begin = call->attributes.slice.begin;
  helio_shape *size = &call->wanted;
  if (size->rank != x->rank) return hi_shape_wrong_pair(call, x, size, "have different ranks");
  for (int i = 0; i < x->rank; i++) {
    if (size->extent[i] == -1 && begin[i] >= 0 && begin[i] <= x->extent[i]) size->extent[i] = x->extent[i] - begin[i];
    if (begin[i] < 0 || size->extent[i] < 0 || begin[i] > x->extent[i] || size->extent[i] > x->extent[i] - begin[i]) {
      char text[HI_SHAPE_TEXT];
      return hi_fail(HELIO_INVALID_ARGUMENT, "%s: %lld elements from %lld on lie outside axis %d of the shape %s",
                     call->row->info.label, (long long)size->extent[i], (long long)begin[i], i, hi_shape_text(x, text));
    }
  }
  return hi_shape_answer(call, 0, call->inputs[0]->type, size);
}

helio_status hi_shape_concat(hi_call *call) {
  const helio_shape *first = hi_input_shape(call, 0);
  helio_shape result = *first;
  int axis = (int)call->attributes.axis.axis;
  if (axis < 0 || axis >= first->rank) return hi_shape_wrong(call, first, "does not have the axis");
  for (int i = 1; i < call->input_count; i++) {
    const helio_shape *x = hi_input_shape(call, i);
    helio_shape same = *x;
    if (x->rank != first->rank) return hi_shape_wrong_pair(call, first, x, "have different ranks");
    same.extent[axis] = result.extent[axis];
    if (!hi_shape_equal(&same, &result)) return hi_shape_wrong_pair(call, first, x, "differ beside the axis");
    if (__builtin_add_overflow(result.extent[axis], x->extent[axis], &result.extent[axis])) {
      return hi_shape_wrong_pair(call, &result, x, "are too large together");
    }
  }
  return hi_shape_answer(call, 0, call->inputs[0]->type, &result);
}

helio_status hi_shape_transpose(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0);
  helio_shape result = {.rank = x->rank};
  uint32_t seen = 0;
  for (int i = 0; i < x->rank; i++) {
    uint32_t from = call->attributes.transpose.permutation[i];
    if (from >= (uint32_t)x->rank || seen >> from & 1)
      return hi_shape_wrong(call, x, "does not go with its permutation");
    seen |= 1u << from;
    result.extent[i] = x->extent[from];
  }
  return hi_shape_answer(call, 0, call->inputs[0]->type, &result);
}

/* `wanted` holds what is added behind each axis; begin, what is added before. */
helio_status hi_shape_pad(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0), *behind = &call->wanted;
  helio_shape result = *x;
  if (behind->rank != x->rank) return hi_shape_wrong_pair(call, x, behind, "have different ranks");
  for (int i = 0; i < x->rank; i++) {
    int64_t before = call->attributes.slice.begin[i];
    if (before < 0 || behind->extent[i] < 0 || __builtin_add_overflow(result.extent[i], before, &result.extent[i]) ||
        __builtin_add_overflow(result.extent[i], behind->extent[i], &result.extent[i])) {
      return hi_shape_wrong(call, x, "cannot be padded so");
    }
  }
  return hi_shape_answer(call, 0, call->inputs[0]->type, &result);
}

/* The shape of the rows' indices, then that of a row. */
helio_status hi_shape_gather(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0), *indices = hi_input_shape(call, 1);
  helio_shape result = *indices;
  if (x->rank < 1) return hi_shape_wrong(call, x, "has no rows");
  if (indices->rank + x->rank - 1 > HELIO_MAX_RANK) return hi_shape_wrong_pair(call, x, indices, "give too many axes");
  for (int i = 1; i < x->rank; i++) result.extent[result.rank++] = x->extent[i];
  return hi_shape_answer(call, 0, call->inputs[0]->type, &result);
}

/* `wanted` has one extent: the number of rows of the result. */
helio_status hi_shape_scatter_add(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0), *indices = hi_input_shape(call, 1);
  helio_shape result = *x;
  if (x->rank < 1 || indices->rank != 1 || indices->extent[0] != x->extent[0]) {
    return hi_shape_wrong_pair(call, x, indices, "do not go together: there is one index for each row");
  }
  result.extent[0] = call->wanted.extent[0];
  return hi_shape_answer(call, 0, call->inputs[0]->type, &result);
}

/* `wanted` has one extent: the depth. */
helio_status hi_shape_one_hot(hi_call *call) {
  helio_shape result = *hi_input_shape(call, 0);
  helio_status status = valid_type(call);
  if (status) return status;
  if (result.rank == HELIO_MAX_RANK) return hi_shape_wrong(call, &result, "has no room for one more axis");
  result.extent[result.rank++] = call->wanted.extent[0];
  return hi_shape_answer(call, 0, call->wanted_type, &result);
}

/* The squares are as the rows. */
helio_status hi_shape_combine_rows(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0), *indices = hi_input_shape(call, 1);
  if (x->rank < 1 || indices->rank != 1 || indices->extent[0] != x->extent[0]) {
    return hi_shape_wrong_pair(call, x, indices, "do not go together: there is one index for each row");
  }
  helio_status status = hi_shape_same(call);
  if (!status) status = hi_shape_answer(call, 1, call->inputs[1]->type, indices);
  return status ? status : hi_shape_answer(call, 2, call->inputs[0]->type, x);
}
