/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/dispatch.h"
#include "ops/gradient.h"
#include "ops/gradient_help.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* ---- activations ---- */

/* dx of an activation, by dy and the one of x and y that its gradient is written in. */
static helio_tensor *activation_gradient(helio_activation activation, double alpha, helio_tensor *dy,
                                         helio_tensor *x_or_y) {
  hi_call call = {.row = hi_row_of(HELIO_OP_ACTIVATION_GRAD),
                  .inputs = (helio_tensor *[]){dy, x_or_y},
                  .input_count = 2,
                  .scalars = {{.real = alpha}}};
  call.attributes.activation =
      (helio_activation_attributes){.size = sizeof call.attributes.activation, .activation = (uint32_t)activation};
  return hi_dispatch_one(&call);
}

/* What flows back into a fused operation before its activation. Only activations whose gradient is written in y are
 * fused while gradients are wanted. */
static helio_tensor *before_activation(uint32_t activation, helio_tensor *dy, helio_tensor *y) {
  if (activation == 0 || activation == HELIO_LINEAR) return dy;
  if (!hi_activation_by_output((helio_activation)activation)) {
    hi_fail(HELIO_NOT_SUPPORTED, "activation %u has no gradient inside another operation", activation);
    return NULL;
  }
  return activation_gradient((helio_activation)activation, 0, dy, y);
}

static helio_activation activation_of(const hi_backward *call) {
  switch (call->row->operation) {
  case HELIO_OP_RELU:
    return HELIO_RELU;
  case HELIO_OP_SIGMOID:
    return HELIO_SIGMOID;
  case HELIO_OP_TANH:
    return HELIO_TANH;
  case HELIO_OP_SOFTPLUS:
    return HELIO_SOFTPLUS;
  case HELIO_OP_SWISH:
    return HELIO_SWISH;
  case HELIO_OP_GELU:
    return call->attributes->gelu.approximate ? HELIO_GELU_TANH : HELIO_GELU;
  case HELIO_OP_ELU:
    return HELIO_ELU;
  default:
    return HELIO_LEAKY_RELU;
  }
}

helio_status hi_gradient_activation(const hi_backward *call) {
  if (!hi_gradient_wanted(call, 0)) return HELIO_OK;
  helio_tensor *x_or_y = hi_activation_by_output(activation_of(call)) ? call->outputs[0] : call->inputs[0];
  double alpha = call->row->scalars ? call->scalars[0].real : 0;
  return hi_gradient_give(call, 0, activation_gradient(activation_of(call), alpha, dy_of(call), x_or_y));
}

/* ---- products ---- */

static helio_tensor *sum_but_last(helio_tensor *x) {
  helio_axes axes = {0};
  for (int i = 0; x && i < x->shape.rank - 1; i++) axes.axis[axes.count++] = i;
  return axes.count ? helio_sum(x, .axes = axes) : x;
}

/* All axes but the last as one. */
static helio_tensor *as_matrix(helio_tensor *x) {
  if (!x || x->shape.rank <= 2) return x;
  int64_t rows = 1;
  for (int i = 0; i < x->shape.rank - 1; i++) rows *= x->shape.extent[i];
  return helio_reshape(x, HELIO_SHAPE(rows, x->shape.extent[x->shape.rank - 1]));
}

static helio_tensor *gradient_of_a(const helio_matmul_attributes *how, helio_tensor *b, helio_tensor *dz) {
  if (!how->transpose_a) return helio_matmul(dz, b, .transpose_b = !how->transpose_b);
  return helio_matmul(b, dz, .transpose_a = how->transpose_b, .transpose_b = true);
}

static helio_tensor *gradient_of_b(const helio_matmul_attributes *how, helio_tensor *a, helio_tensor *dz) {
  if (!how->transpose_b) return helio_matmul(a, dz, .transpose_a = !how->transpose_a);
  return helio_matmul(dz, a, .transpose_a = true, .transpose_b = how->transpose_a);
}

helio_status hi_gradient_matmul(const hi_backward *call) {
  const helio_matmul_attributes *how = &call->attributes->matmul;
  helio_tensor *a = call->inputs[0], *b = call->inputs[1];
  helio_tensor *dz = before_activation(how->activation, dy_of(call), call->outputs[0]);
  helio_status status = HELIO_OK;
  if (!dz) return helio_error_pending();
  if (hi_gradient_wanted(call, 0)) {
    helio_tensor *da = gradient_of_a(how, b, dz);
    status = hi_gradient_give(call, 0, hi_gradient_unbroadcast(da, &call->input_shapes[0]));
  }
  if (!status && hi_gradient_wanted(call, 1)) {
    /* One matrix shared by a batch: the batch is the inner dimension of one product, not a sum of many. */
    bool shared = call->input_shapes[1].rank == 2 && !how->transpose_a;
    helio_tensor *db = shared ? gradient_of_b(how, as_matrix(a), as_matrix(dz)) : gradient_of_b(how, a, dz);
    status = hi_gradient_give(call, 1, hi_gradient_unbroadcast(db, &call->input_shapes[1]));
  }
  bool bias = call->input_count > 2 && call->input_shapes[2].rank == 1;
  if (!status && bias && hi_gradient_wanted(call, 2)) status = hi_gradient_give(call, 2, sum_but_last(dz));
  return status;
}

static helio_tensor *conv2d_part(helio_operation operation, const hi_attributes *attributes, helio_tensor *first,
                                 helio_tensor *second, const helio_shape *shape) {
  hi_call call = {.row = hi_row_of(operation),
                  .inputs = (helio_tensor *[]){first, second},
                  .input_count = 2,
                  .attributes = *attributes,
                  .wanted = *shape};
  call.attributes.conv2d.activation = 0;
  return hi_dispatch_one(&call);
}

helio_status hi_gradient_conv2d(const hi_backward *call) {
  helio_tensor *dz = before_activation(call->attributes->conv2d.activation, dy_of(call), call->outputs[0]);
  helio_status status = HELIO_OK;
  if (!dz) return helio_error_pending();
  if (hi_gradient_wanted(call, 0)) {
    status = hi_gradient_give(
        call, 0,
        conv2d_part(HELIO_OP_CONV2D_GRAD_INPUT, call->attributes, dz, call->inputs[1], &call->input_shapes[0]));
  }
  if (!status && hi_gradient_wanted(call, 1)) {
    status = hi_gradient_give(
        call, 1,
        conv2d_part(HELIO_OP_CONV2D_GRAD_KERNEL, call->attributes, call->inputs[0], dz, &call->input_shapes[1]));
  }
  bool bias = call->input_count > 2 && call->input_shapes[2].rank == 1;
  if (!status && bias && hi_gradient_wanted(call, 2)) status = hi_gradient_give(call, 2, sum_but_last(dz));
  return status;
}

/* ---- pooling ---- */

helio_status hi_gradient_max_pool(const hi_backward *call) {
  hi_call back = {.row = hi_row_of(HELIO_OP_MAX_POOL_GRAD),
                  .inputs = (helio_tensor *[]){dy_of(call), call->outputs[1]},
                  .input_count = 2,
                  .attributes = *call->attributes,
                  .wanted = call->input_shapes[0]};
  return hi_gradient_give(call, 0, hi_dispatch_one(&back));
}

helio_status hi_gradient_average_pool(const hi_backward *call) {
  hi_call back = {.row = hi_row_of(HELIO_OP_AVERAGE_POOL_GRAD),
                  .inputs = (helio_tensor *[]){dy_of(call)},
                  .input_count = 1,
                  .attributes = *call->attributes,
                  .wanted = call->input_shapes[0]};
  return hi_gradient_give(call, 0, hi_dispatch_one(&back));
}

/* ---- softmax and losses ---- */

helio_status hi_gradient_softmax(const hi_backward *call) {
  bool plain = call->row->operation == HELIO_OP_SOFTMAX;
  hi_call back = {.row = hi_row_of(plain ? HELIO_OP_SOFTMAX_GRAD : HELIO_OP_LOG_SOFTMAX_GRAD),
                  .inputs = (helio_tensor *[]){dy_of(call), call->outputs[0]},
                  .input_count = 2};
  return hi_gradient_give(call, 0, hi_dispatch_one(&back));
}

/* The forward pass made the gradient of each row's loss; labels have none. */
helio_status hi_gradient_cross_entropy(const hi_backward *call) {
  if (!hi_gradient_wanted(call, 0)) return HELIO_OK;
  return hi_gradient_give(call, 0, helio_mul(call->outputs[1], helio_expand_dims(dy_of(call), -1)));
}

/* ---- normalization ---- */

/* d mean / dx = 1/n, d variance / dx = 2 (x − mean) / n */
helio_status hi_gradient_moments(const hi_backward *call) {
  helio_tensor *x = call->inputs[0], *mean = call->outputs[0];
  helio_tensor *d_mean = call->output_gradients[0], *d_variance = call->output_gradients[1];
  int64_t channels = x->shape.extent[x->shape.rank - 1];
  double n = channels ? (double)(x->elements / channels) : 0, share = n > 0 ? 1 / n : 0;
  helio_tensor *result = helio_fill(x->shape, 0, .type = x->type);
  if (d_mean) result = helio_add(result, helio_mul(d_mean, hi_gradient_constant(x->type, share)));
  if (d_variance) {
    helio_tensor *slope = helio_mul(helio_sub(x, mean), hi_gradient_constant(x->type, 2 * share));
    result = helio_add(result, helio_mul(slope, d_variance));
  }
  return hi_gradient_give(call, 0, result);
}

/* x, mean and variance are inputs of their own here; where the moments are x's, they carry the rest back to it. */
helio_status hi_gradient_normalize(const hi_backward *call) {
  helio_tensor *x = call->inputs[0], *mean = call->inputs[1], *variance = call->inputs[2], *gamma = call->inputs[3];
  helio_tensor *dy = dy_of(call), *sums[HI_MAX_OUTPUTS];
  helio_type type = dy->type;
  double epsilon = call->scalars[0].real;
  hi_call back = {.row = hi_row_of(HELIO_OP_NORMALIZE_GRAD_SUMS),
                  .inputs = (helio_tensor *[]){dy, x, mean, variance},
                  .input_count = 4,
                  .scalars = {{.real = epsilon}}};
  helio_status status = hi_dispatch(&back, sums);
  if (status) return status;
  helio_tensor *rate = helio_rsqrt(helio_add(variance, hi_gradient_constant(type, epsilon)));
  helio_tensor *scale = gamma ? helio_mul(gamma, rate) : rate;
  if (hi_gradient_wanted(call, 0)) status = hi_gradient_give(call, 0, helio_mul(dy, scale));
  if (!status && hi_gradient_wanted(call, 1)) status = hi_gradient_give(call, 1, helio_neg(helio_mul(scale, sums[1])));
  if (!status && hi_gradient_wanted(call, 2)) {
    helio_tensor *half = helio_mul(helio_mul(scale, rate), hi_gradient_constant(type, -0.5));
    status = hi_gradient_give(call, 2, helio_mul(half, sums[0]));
  }
  if (!status && gamma && hi_gradient_wanted(call, 3)) status = hi_gradient_give(call, 3, sums[0]);
  bool beta = call->input_shapes[4].rank == 1;
  if (!status && beta && hi_gradient_wanted(call, 4)) status = hi_gradient_give(call, 4, sums[1]);
  return status;
}

helio_status hi_gradient_layer_norm(const hi_backward *call) {
  helio_tensor *gradients[HI_MAX_OUTPUTS];
  bool gamma = call->input_shapes[1].rank == 1, beta = call->input_shapes[2].rank == 1;
  hi_call back = {
      .row = hi_row_of(HELIO_OP_LAYER_NORM_GRAD),
      .inputs = (helio_tensor *[]){dy_of(call), call->inputs[0], call->inputs[1], call->outputs[1], call->outputs[2]},
      .input_count = 5,
      .no_outputs = (gamma ? 0 : 2) | (beta ? 0 : 4)};
  helio_status status = hi_dispatch(&back, gradients);
  if (!status && hi_gradient_wanted(call, 0)) status = hi_gradient_give(call, 0, gradients[0]);
  if (!status && gamma && hi_gradient_wanted(call, 1)) status = hi_gradient_give(call, 1, gradients[1]);
  if (!status && beta && hi_gradient_wanted(call, 2)) status = hi_gradient_give(call, 2, gradients[2]);
  return status;
}

/* Random numbers are a pure function of their place: the same elements fall out on the way back. */
helio_status hi_gradient_dropout(const hi_backward *call) {
  hi_call back = {.row = call->row, .inputs = (helio_tensor *[]){dy_of(call)}, .input_count = 1};
  for (int i = 0; i < call->row->scalars; i++) back.scalars[i] = call->scalars[i];
  return hi_gradient_give(call, 0, hi_dispatch_one(&back));
}
