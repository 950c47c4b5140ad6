/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shape.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* How many places a window of `window` elements, `dilation` apart, has; −1 if it does not fit at all. */
static int64_t places(int64_t input, uint32_t before, uint32_t behind, int64_t window, uint32_t stride,
                      uint32_t dilation) {
  int64_t span = (window - 1) * (int64_t)dilation + 1, room = input + before + behind;
  return window < 1 || stride < 1 || dilation < 1 || span > room ? -1 : (room - span) / stride + 1;
}

static bool within(uint32_t value) {
  return value < 1u << 24; /* so that no sum or product of window arithmetic overflows */
}

static bool sane(const uint32_t *numbers, int count) {
  for (int i = 0; i < count; i++) {
    if (!within(numbers[i])) return false;
  }
  return true;
}

/* The shape of a convolution's result. */
static helio_status convolve(const hi_call *call, const helio_shape *x, const helio_shape *kernel, helio_shape *y) {
  const helio_conv2d_attributes *how = &call->attributes.conv2d;
  if (x->rank != 4 || kernel->rank != 4) return hi_shape_wrong_pair(call, x, kernel, "are not NHWC and HWIO");
  if (how->groups < 1 || !within(how->groups) || kernel->extent[2] * (int64_t)how->groups != x->extent[3] ||
      kernel->extent[3] % how->groups != 0) {
    return hi_shape_wrong_pair(call, x, kernel, "have channels that do not go together");
  }
  if (how->activation > HELIO_GELU_TANH || !sane(how->stride, 2) || !sane(how->dilation, 2) || !sane(how->padding, 4) ||
      kernel->extent[0] >= 1 << 24 || kernel->extent[1] >= 1 << 24) {
    return hi_shape_wrong_pair(call, x, kernel, "come with attributes that are out of range");
  }
  *y = (helio_shape){.rank = 4};
  y->extent[0] = x->extent[0];
  y->extent[3] = kernel->extent[3];
  for (int i = 0; i < 2; i++) {
    const uint32_t *padding = &how->padding[2 * i];
    y->extent[1 + i] =
        places(x->extent[1 + i], padding[0], padding[1], kernel->extent[i], how->stride[i], how->dilation[i]);
    if (y->extent[1 + i] < 0) return hi_shape_wrong_pair(call, x, kernel, "leave no place for the kernel");
  }
  return HELIO_OK;
}

helio_status hi_shape_conv2d(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0), *kernel = hi_input_shape(call, 1);
  helio_shape result;
  helio_status status = convolve(call, x, kernel, &result);
  if (status) return status;
  if (call->inputs[2]) {
    const helio_shape *bias = hi_input_shape(call, 2);
    if (bias->rank != 1 || bias->extent[0] != kernel->extent[3]) {
      return hi_shape_wrong_pair(call, kernel, bias, "do not go together: the bias has one element for each channel");
    }
  }
  return hi_shape_answer(call, 0, call->inputs[0]->type, &result);
}

/* A gradient has the shape that the caller asks for, if what the operation would make of it is the shape of dy. */
static helio_status answer_if(hi_call *call, const helio_shape *forward, const helio_shape *dy) {
  if (!hi_shape_equal(forward, dy)) return hi_shape_wrong_pair(call, &call->wanted, dy, "do not go together");
  return hi_shape_answer(call, 0, call->inputs[0]->type, &call->wanted);
}

helio_status hi_shape_conv2d_grad_input(hi_call *call) {
  helio_shape forward;
  helio_status status = convolve(call, &call->wanted, hi_input_shape(call, 1), &forward);
  return status ? status : answer_if(call, &forward, hi_input_shape(call, 0));
}

helio_status hi_shape_conv2d_grad_kernel(hi_call *call) {
  helio_shape forward;
  helio_status status = convolve(call, hi_input_shape(call, 0), &call->wanted, &forward);
  return status ? status : answer_if(call, &forward, hi_input_shape(call, 1));
}

/* The shape of what pooling makes of x. */
static helio_status pool(const hi_call *call, const helio_shape *x, helio_shape *y) {
  const helio_pool_attributes *how = &call->attributes.pool;
  if (x->rank != 4) return hi_shape_wrong(call, x, "is not NHWC");
  *y = *x;
  for (int i = 0; i < 2; i++) {
    const uint32_t *padding = &how->padding[2 * i];
    bool good = x->extent[1 + i] > 0 && sane(&how->window[i], 1) && sane(&how->stride[i], 1) &&
                padding[0] < how->window[i] && padding[1] < how->window[i];
    y->extent[1 + i] = good ? places(x->extent[1 + i], padding[0], padding[1], how->window[i], how->stride[i], 1) : -1;
    if (y->extent[1 + i] < 0) return hi_shape_wrong(call, x, "leaves no place for the window");
  }
  return HELIO_OK;
}

/* The winner's place in its window is a byte where the window has no more places than that. */
static helio_type winner_type(const hi_call *call) {
  uint64_t window = (uint64_t)call->attributes.pool.window[0] * call->attributes.pool.window[1];
  return window <= 256 ? HELIO_UINT8 : HELIO_INT32;
}

helio_status hi_shape_average_pool(hi_call *call) {
  helio_shape result;
  helio_status status = pool(call, hi_input_shape(call, 0), &result);
  return status ? status : hi_shape_answer(call, 0, call->inputs[0]->type, &result);
}

helio_status hi_shape_max_pool(hi_call *call) {
  helio_status status = hi_shape_average_pool(call);
  return status ? status : hi_shape_answer(call, 1, winner_type(call), &call->outputs[0].shape);
}

helio_status hi_shape_average_pool_grad(hi_call *call) {
  helio_shape forward;
  helio_status status = pool(call, &call->wanted, &forward);
  return status ? status : answer_if(call, &forward, hi_input_shape(call, 0));
}

helio_status hi_shape_max_pool_grad(hi_call *call) {
  const helio_shape *dy = hi_input_shape(call, 0), *winners = hi_input_shape(call, 1);
  if (!hi_shape_equal(dy, winners) || call->inputs[1]->type != winner_type(call)) {
    return hi_shape_wrong_pair(call, dy, winners, "of gradient and winners do not go together");
  }
  return hi_shape_average_pool_grad(call);
}

static helio_status rows_and_gradient(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0);
  helio_shape rows = {1, {x->extent[0]}};
  helio_status status = hi_shape_answer(call, 0, call->inputs[0]->type, &rows);
  return status ? status : hi_shape_answer(call, 1, call->inputs[0]->type, x);
}

helio_status hi_shape_sparse_cross_entropy(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0), *labels = hi_input_shape(call, 1);
  if (x->rank != 2 || labels->rank != 1 || labels->extent[0] != x->extent[0]) {
    return hi_shape_wrong_pair(call, x, labels, "do not go together: there is one label for each row");
  }
  return rows_and_gradient(call);
}

helio_status hi_shape_cross_entropy(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 0), *labels = hi_input_shape(call, 1);
  if (x->rank != 2 || !hi_shape_equal(x, labels))
    return hi_shape_wrong_pair(call, x, labels, "are not one matrix shape");
  return rows_and_gradient(call);
}

/* Do the inputs from `first` on have one element for each channel, the last axis of x? */
static helio_status per_channel(hi_call *call, int x_input, int first, helio_shape *channels) {
  const helio_shape *x = hi_input_shape(call, x_input);
  if (x->rank < 1) return hi_shape_wrong(call, x, "has no last axis");
  *channels = (helio_shape){1, {x->extent[x->rank - 1]}};
  for (int i = first; i < call->input_count; i++) {
    if (call->inputs[i] && !hi_shape_equal(hi_input_shape(call, i), channels)) {
      return hi_shape_wrong_pair(call, x, hi_input_shape(call, i), "do not go together: one element for each channel");
    }
  }
  return HELIO_OK;
}

helio_status hi_shape_moments(hi_call *call) {
  helio_shape channels;
  helio_status status = per_channel(call, 0, 1, &channels);
  if (!status) status = hi_shape_answer(call, 0, call->inputs[0]->type, &channels);
  return status ? status : hi_shape_answer(call, 1, call->inputs[0]->type, &channels);
}

helio_status hi_shape_normalize(hi_call *call) {
  helio_shape channels;
  helio_status status = per_channel(call, 0, 1, &channels);
  return status ? status : hi_shape_same(call);
}

/* Inputs 0 and 1 are dy and x. */
static helio_status gradient_and_input(hi_call *call) {
  const helio_shape *dy = hi_input_shape(call, 0), *x = hi_input_shape(call, 1);
  return hi_shape_equal(dy, x) ? HELIO_OK : hi_shape_wrong_pair(call, dy, x, "of gradient and input differ");
}

helio_status hi_shape_normalize_grad_input(hi_call *call) {
  helio_shape channels;
  helio_status status = gradient_and_input(call);
  if (!status) status = per_channel(call, 1, 2, &channels);
  return status ? status : hi_shape_same(call);
}

helio_status hi_shape_normalize_sums(hi_call *call) {
  helio_shape channels;
  helio_status status = gradient_and_input(call);
  if (!status) status = per_channel(call, 1, 2, &channels);
  if (!status) status = hi_shape_answer(call, 0, call->inputs[0]->type, &channels);
  return status ? status : hi_shape_answer(call, 1, call->inputs[0]->type, &channels);
}

static helio_shape without_last(const helio_shape *shape) {
  helio_shape result = *shape;
  result.extent[--result.rank] = 0;
  return result;
}

helio_status hi_shape_layer_norm(hi_call *call) {
  helio_shape channels;
  helio_type type = call->inputs[0]->type;
  helio_status status = per_channel(call, 0, 1, &channels);
  if (status) return status;
  helio_shape rows = without_last(hi_input_shape(call, 0));
  status = hi_shape_same(call);
  if (!status) status = hi_shape_answer(call, 1, type, &rows);
  return status ? status : hi_shape_answer(call, 2, type, &rows);
}

helio_status hi_shape_layer_norm_grad(hi_call *call) {
  const helio_shape *x = hi_input_shape(call, 1);
  helio_status status = gradient_and_input(call);
  if (status) return status;
  if (x->rank < 1) return hi_shape_wrong(call, x, "has no last axis");
  helio_shape channels = {1, {x->extent[x->rank - 1]}}, rows = without_last(x);
  if (call->inputs[2] && !hi_shape_equal(hi_input_shape(call, 2), &channels)) {
    return hi_shape_wrong_pair(call, x, hi_input_shape(call, 2), "do not go together: one element for each channel");
  }
  for (int i = 3; i < 5; i++) {
    if (!hi_shape_equal(hi_input_shape(call, i), &rows)) {
      return hi_shape_wrong_pair(call, x, hi_input_shape(call, i), "do not go together: one element for each row");
    }
  }
  status = hi_shape_same(call);
  if (!status) status = hi_shape_answer(call, 1, call->inputs[0]->type, &channels);
  return status ? status : hi_shape_answer(call, 2, call->inputs[0]->type, &channels);
}

/* Squares are of rows: a dense gradient's are its own. */
static helio_status check_squares(const hi_call *call, int gradient) {
  int indices = gradient + 1, squares = gradient + 2;
  if (squares >= call->input_count || !call->inputs[squares]) return HELIO_OK;
  const helio_shape *shape = hi_input_shape(call, squares);
  if (!call->inputs[indices]) return hi_shape_wrong(call, shape, "is of squares, but the gradient has no indices");
  if (hi_shape_equal(shape, hi_input_shape(call, gradient))) return HELIO_OK;
  return hi_shape_wrong_pair(call, hi_input_shape(call, gradient), shape, "of gradient and squares differ");
}

/* Weights and slots have one shape. So has the gradient or, with indices, it is rows of the weights. */
helio_status hi_shape_update(hi_call *call) {
  const helio_shape *weights = hi_input_shape(call, 0);
  int gradient = hi_update_gradient_place(call->row), indices = gradient + 1;
  for (int i = 1; i < gradient; i++) {
    if (call->inputs[i] && !hi_shape_equal(hi_input_shape(call, i), weights)) {
      return hi_shape_wrong_pair(call, weights, hi_input_shape(call, i), "of weights and slot differ");
    }
  }
  helio_shape expected = *weights;
  if (call->inputs[indices]) {
    const helio_shape *index = hi_input_shape(call, indices);
    if (weights->rank < 1 || index->rank != 1)
      return hi_shape_wrong_pair(call, weights, index, "are not rows and indices");
    expected.extent[0] = index->extent[0];
  }
  if (hi_shape_equal(hi_input_shape(call, gradient), &expected)) return check_squares(call, gradient);
  return hi_shape_wrong_pair(call, weights, hi_input_shape(call, gradient), "of weights and gradient differ");
}
