/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gradient.h"

#include <string.h>

#include "ops/gradient_help.h"
#include "ops/replica.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* ---- help ---- */

bool hi_gradient_wanted(const hi_backward *call, int input) {
  return hi_type_is_float(call->input_types[input]) && (input > 31 || call->wanted >> input & 1);
}

helio_status hi_gradient_give(const hi_backward *call, int input, helio_tensor *value) {
  if (!value) return helio_error_pending();
  call->input_gradients[input] = (hi_gradient){.values = value, .shape = call->input_shapes[input]};
  return HELIO_OK;
}

helio_tensor *hi_gradient_constant(helio_type type, double value) {
  return helio_fill(HELIO_SCALAR, value, .type = type);
}

helio_tensor *hi_gradient_unbroadcast(helio_tensor *value, const helio_shape *shape) {
  if (!value || hi_shape_equal(&value->shape, shape)) return value;
  helio_axes axes = {0};
  int more = value->shape.rank - shape->rank;
  for (int i = 0; i < value->shape.rank; i++) {
    bool stretched = i < more || (shape->extent[i - more] == 1 && value->shape.extent[i] != 1);
    if (stretched) axes.axis[axes.count++] = i;
  }
  if (axes.count > 0) value = helio_sum(value, .axes = axes);
  return helio_reshape(value, *shape);
}

static helio_type type_of(const hi_backward *call) {
  return dy_of(call)->type;
}

/* Gives an input what is left of `value` when its broadcast is undone. */
static helio_status give_unbroadcast(const hi_backward *call, int input, helio_tensor *value) {
  return hi_gradient_give(call, input, hi_gradient_unbroadcast(value, &call->input_shapes[input]));
}

static helio_tensor *times(const hi_backward *call, helio_tensor *x, double factor) {
  return helio_mul(x, hi_gradient_constant(type_of(call), factor));
}

/* ---- movement ---- */

helio_status hi_gradient_same(const hi_backward *call) {
  for (int i = 0; i < call->input_count; i++) {
    if (hi_gradient_wanted(call, i)) hi_gradient_give(call, i, dy_of(call));
  }
  return HELIO_OK;
}

helio_status hi_gradient_cast(const hi_backward *call) {
  if (!hi_gradient_wanted(call, 0)) return HELIO_OK;
  return hi_gradient_give(call, 0, helio_cast(dy_of(call), call->input_types[0]));
}

helio_status hi_gradient_reshape(const hi_backward *call) {
  return hi_gradient_give(call, 0, helio_reshape(dy_of(call), call->input_shapes[0]));
}

helio_status hi_gradient_slice(const hi_backward *call) {
  const helio_shape *x = &call->input_shapes[0], *part = &dy_of(call)->shape;
  helio_shape before = {.rank = x->rank}, after = {.rank = x->rank};
  for (int i = 0; i < x->rank; i++) {
    before.extent[i] = call->attributes->slice.begin[i];
    after.extent[i] = x->extent[i] - before.extent[i] - part->extent[i];
  }
  return hi_gradient_give(call, 0, helio_pad(dy_of(call), before, after));
}

helio_status hi_gradient_concat(const hi_backward *call) {
  int axis = (int)call->attributes->axis.axis;
  helio_shape begin = {.rank = dy_of(call)->shape.rank};
  for (int i = 0; i < call->input_count; i++) {
    const helio_shape *part = &call->input_shapes[i];
    if (hi_gradient_wanted(call, i)) {
      helio_status status = hi_gradient_give(call, i, helio_slice(dy_of(call), begin, *part));
      if (status) return status;
    }
    begin.extent[axis] += part->extent[axis];
  }
  return HELIO_OK;
}

helio_status hi_gradient_transpose(const hi_backward *call) {
  helio_axes inverse = {.count = call->input_shapes[0].rank};
  for (int i = 0; i < inverse.count; i++) inverse.axis[call->attributes->transpose.permutation[i]] = i;
  helio_tensor *dy = dy_of(call);
  return hi_gradient_give(call, 0, inverse.count > 1 ? helio_transpose(dy, .permutation = inverse) : dy);
}

helio_status hi_gradient_pad(const hi_backward *call) {
  helio_shape begin = {.rank = call->input_shapes[0].rank};
  memcpy(begin.extent, call->attributes->slice.begin, (size_t)begin.rank * sizeof begin.extent[0]);
  return hi_gradient_give(call, 0, helio_slice(dy_of(call), begin, call->input_shapes[0]));
}

/* Rows stay rows: a large table of which a batch names a few rows has no dense gradient. */
helio_status hi_gradient_gather(const hi_backward *call) {
  if (!hi_gradient_wanted(call, 0)) return HELIO_OK;
  helio_tensor *indices = call->inputs[1];
  helio_shape rows = call->input_shapes[0];
  rows.extent[0] = indices->elements;
  helio_tensor *values = helio_reshape(dy_of(call), rows);
  indices = helio_reshape(indices, (helio_shape){1, {indices->elements}});
  if (!values || !indices) return helio_error_pending();
  call->input_gradients[0] = (hi_gradient){values, indices, call->input_shapes[0]};
  return HELIO_OK;
}

/* What one replica puts in comes out on all. */
helio_status hi_gradient_all_reduce(const hi_backward *call) {
  return hi_gradient_give(call, 0, hi_all_reduce(dy_of(call)));
}

helio_status hi_gradient_scatter_add(const hi_backward *call) {
  return hi_gradient_give(call, 0, helio_gather_rows(dy_of(call), call->inputs[1]));
}

helio_status hi_gradient_where(const hi_backward *call) {
  helio_tensor *condition = call->inputs[2], *dy = dy_of(call), *zero = hi_gradient_constant(type_of(call), 0);
  helio_status status = HELIO_OK;
  if (hi_gradient_wanted(call, 0)) status = give_unbroadcast(call, 0, helio_where(condition, dy, zero));
  if (!status && hi_gradient_wanted(call, 1)) status = give_unbroadcast(call, 1, helio_where(condition, zero, dy));
  return status;
}

/* ---- two operands ---- */

helio_status hi_gradient_add(const hi_backward *call) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < 2 && !status; i++) {
    if (hi_gradient_wanted(call, i)) status = give_unbroadcast(call, i, dy_of(call));
  }
  return status;
}

helio_status hi_gradient_sub(const hi_backward *call) {
  helio_status status = HELIO_OK;
  if (hi_gradient_wanted(call, 0)) status = give_unbroadcast(call, 0, dy_of(call));
  if (!status && hi_gradient_wanted(call, 1)) status = give_unbroadcast(call, 1, helio_neg(dy_of(call)));
  return status;
}

helio_status hi_gradient_mul(const hi_backward *call) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < 2 && !status; i++) {
    if (hi_gradient_wanted(call, i)) status = give_unbroadcast(call, i, helio_mul(dy_of(call), call->inputs[1 - i]));
  }
  return status;
}

helio_status hi_gradient_div(const hi_backward *call) {
  helio_tensor *b = call->inputs[1], *y = call->outputs[0], *part = helio_div(dy_of(call), b);
  helio_status status = HELIO_OK;
  if (hi_gradient_wanted(call, 0)) status = give_unbroadcast(call, 0, part);
  if (!status && hi_gradient_wanted(call, 1)) status = give_unbroadcast(call, 1, helio_neg(helio_mul(part, y)));
  return status;
}

/* By the exponent there is a derivative only where the base is positive: elsewhere it counts as zero. */
helio_status hi_gradient_pow(const hi_backward *call) {
  helio_tensor *a = call->inputs[0], *b = call->inputs[1], *y = call->outputs[0], *dy = dy_of(call);
  helio_tensor *zero = hi_gradient_constant(type_of(call), 0), *one = hi_gradient_constant(type_of(call), 1);
  helio_status status = HELIO_OK;
  if (hi_gradient_wanted(call, 0)) {
    helio_tensor *slope = helio_mul(b, helio_pow(a, helio_sub(b, one)));
    status = give_unbroadcast(call, 0, helio_mul(dy, slope));
  }
  if (!status && hi_gradient_wanted(call, 1)) {
    helio_tensor *positive = helio_greater(a, zero);
    helio_tensor *logarithm = helio_where(positive, helio_log(helio_where(positive, a, one)), zero);
    status = give_unbroadcast(call, 1, helio_mul(dy, helio_mul(y, logarithm)));
  }
  return status;
}

helio_status hi_gradient_extreme(const hi_backward *call) {
  helio_tensor *a = call->inputs[0], *b = call->inputs[1], *dy = dy_of(call);
  helio_tensor *zero = hi_gradient_constant(type_of(call), 0);
  bool larger = call->row->operation == HELIO_OP_MAXIMUM;
  helio_tensor *takes_a = larger ? helio_greater_equal(a, b) : helio_less_equal(a, b);
  helio_status status = HELIO_OK;
  if (hi_gradient_wanted(call, 0)) status = give_unbroadcast(call, 0, helio_where(takes_a, dy, zero));
  if (!status && hi_gradient_wanted(call, 1)) status = give_unbroadcast(call, 1, helio_where(takes_a, zero, dy));
  return status;
}

/* ---- one operand ---- */

helio_status hi_gradient_neg(const hi_backward *call) {
  return hi_gradient_give(call, 0, helio_neg(dy_of(call)));
}

helio_status hi_gradient_abs(const hi_backward *call) {
  helio_tensor *x = call->inputs[0], *dy = dy_of(call), *zero = hi_gradient_constant(type_of(call), 0);
  helio_tensor *below = helio_where(helio_less(x, zero), helio_neg(dy), zero);
  return hi_gradient_give(call, 0, helio_where(helio_greater(x, zero), dy, below));
}

helio_status hi_gradient_square(const hi_backward *call) {
  return hi_gradient_give(call, 0, helio_mul(dy_of(call), times(call, call->inputs[0], 2)));
}

helio_status hi_gradient_sqrt(const hi_backward *call) {
  return hi_gradient_give(call, 0, helio_div(times(call, dy_of(call), 0.5), call->outputs[0]));
}

helio_status hi_gradient_rsqrt(const hi_backward *call) {
  helio_tensor *y = call->outputs[0], *cube = helio_mul(y, helio_square(y));
  return hi_gradient_give(call, 0, helio_mul(times(call, dy_of(call), -0.5), cube));
}

helio_status hi_gradient_exp(const hi_backward *call) {
  return hi_gradient_give(call, 0, helio_mul(dy_of(call), call->outputs[0]));
}

helio_status hi_gradient_log(const hi_backward *call) {
  return hi_gradient_give(call, 0, helio_div(dy_of(call), call->inputs[0]));
}

helio_status hi_gradient_clip(const hi_backward *call) {
  helio_tensor *x = call->inputs[0], *zero = hi_gradient_constant(type_of(call), 0);
  helio_tensor *low = hi_gradient_constant(type_of(call), call->scalars[0].real);
  helio_tensor *high = hi_gradient_constant(type_of(call), call->scalars[1].real);
  helio_tensor *inside = helio_where(helio_greater(x, high), zero, dy_of(call));
  return hi_gradient_give(call, 0, helio_where(helio_less(x, low), zero, inside));
}

/* ---- reductions ---- */

/* A reduced tensor with axes of extent 1 where they were reduced, so that it broadcasts against the input. */
static helio_tensor *with_axes(const hi_backward *call, helio_tensor *reduced) {
  helio_shape shape = call->input_shapes[0];
  for (int i = 0; i < shape.rank; i++) {
    if (call->attributes->reduce.axes >> i & 1) shape.extent[i] = 1;
  }
  return helio_reshape(reduced, shape);
}

static helio_tensor *spread(const hi_backward *call, helio_tensor *reduced) {
  return helio_add(helio_fill(call->input_shapes[0], 0, .type = type_of(call)), with_axes(call, reduced));
}

helio_status hi_gradient_sum(const hi_backward *call) {
  return hi_gradient_give(call, 0, spread(call, dy_of(call)));
}

helio_status hi_gradient_mean(const hi_backward *call) {
  double count = 1;
  for (int i = 0; i < call->input_shapes[0].rank; i++) {
    if (call->attributes->reduce.axes >> i & 1) count *= (double)call->input_shapes[0].extent[i];
  }
  return hi_gradient_give(call, 0, spread(call, times(call, dy_of(call), count > 0 ? 1 / count : 0)));
}

static helio_axes reduced_axes(const hi_backward *call) {
  helio_axes axes = {0};
  for (int i = 0; i < call->input_shapes[0].rank; i++) {
    if (call->attributes->reduce.axes >> i & 1) axes.axis[axes.count++] = i;
  }
  return axes;
}

/* Elements that are equally large share the gradient. */
helio_status hi_gradient_max(const hi_backward *call) {
  helio_tensor *x = call->inputs[0], *y = with_axes(call, call->outputs[0]), *dy = with_axes(call, dy_of(call));
  helio_axes axes = reduced_axes(call);
  helio_tensor *chosen = helio_cast(helio_equal(x, y), type_of(call));
  if (axes.count == 0) return hi_gradient_give(call, 0, helio_mul(chosen, dy));
  helio_tensor *number = helio_sum(chosen, .axes = axes, .keep_dims = true);
  return hi_gradient_give(call, 0, helio_mul(chosen, helio_div(dy, number)));
}
