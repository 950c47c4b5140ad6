/* SPDX-License-Identifier: Apache-2.0 */
/* Activations. */
#include "ops/options.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

helio_tensor *helio_relu(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_RELU, x);
}

helio_tensor *helio_sigmoid(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_SIGMOID, x);
}

helio_tensor *helio_tanh(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_TANH, x);
}

helio_tensor *helio_softplus(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_SOFTPLUS, x);
}

helio_tensor *helio_swish(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_SWISH, x);
}

helio_tensor *helio_softmax(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_SOFTMAX, x);
}

helio_tensor *helio_log_softmax(helio_tensor *x) {
  return hi_unary(__func__, HELIO_OP_LOG_SOFTMAX, x);
}

helio_tensor *helio_gelu(helio_tensor *x, bool approximate) {
  hi_call call = {.row = hi_row_of(HELIO_OP_GELU), .inputs = &x, .input_count = 1};
  call.attributes.gelu = (helio_gelu_attributes){.size = sizeof call.attributes.gelu, .approximate = approximate};
  return hi_enter(__func__) ? NULL : hi_dispatch_one(&call);
}

static helio_tensor *with_alpha(const char *function, helio_operation operation, helio_tensor *x, double alpha) {
  hi_call call = {.row = hi_row_of(operation), .inputs = &x, .input_count = 1, .scalars = {{.real = alpha}}};
  return hi_enter(function) ? NULL : hi_dispatch_one(&call);
}

helio_tensor *helio_elu(helio_tensor *x, double alpha) {
  if (alpha < 0) { /* its gradient is written in y, which then no longer tells on which side x was */
    if (!hi_enter(__func__)) hi_fail(HELIO_INVALID_ARGUMENT, "Elu: alpha is %g, which is negative", alpha);
    return NULL;
  }
  return with_alpha(__func__, HELIO_OP_ELU, x, alpha);
}

helio_tensor *helio_leaky_relu(helio_tensor *x, double alpha) {
  return with_alpha(__func__, HELIO_OP_LEAKY_RELU, x, alpha);
}

/* ---- composed of others ---- */

/* At 0 and 6 its slope is 0, as in TensorFlow, where that of helio_clip() is 1. */
static helio_tensor *relu6(helio_tensor *x) {
  return helio_minimum(hi_scalar_like(x, 6), helio_relu(x));
}

/* scale × elu(x, alpha) with the constants that keep mean 0 and variance 1 */
static helio_tensor *selu(helio_tensor *x) {
  const double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
  return helio_mul(helio_elu(x, alpha), hi_scalar_like(x, scale));
}

static helio_tensor *softsign(helio_tensor *x) {
  return helio_div(x, helio_add(helio_abs(x), hi_scalar_like(x, 1)));
}

/* relu6(x + 3) ÷ 6 */
static helio_tensor *hard_sigmoid(helio_tensor *x) {
  return helio_mul(relu6(helio_add(x, hi_scalar_like(x, 3))), hi_scalar_like(x, 1.0 / 6));
}

helio_tensor *helio_activate(helio_tensor *x, helio_activation activation) {
  if (hi_enter(__func__)) return NULL;
  switch (activation) {
  case HELIO_RELU:
    return helio_relu(x);
  case HELIO_SIGMOID:
    return helio_sigmoid(x);
  case HELIO_TANH:
    return helio_tanh(x);
  case HELIO_SOFTPLUS:
    return helio_softplus(x);
  case HELIO_SWISH:
    return helio_swish(x);
  case HELIO_GELU:
    return helio_gelu(x, false);
  case HELIO_GELU_TANH:
    return helio_gelu(x, true);
  case HELIO_ELU:
    return helio_elu(x, 1);
  case HELIO_LEAKY_RELU:
    return helio_leaky_relu(x, 0.2);
  case HELIO_SOFTMAX:
    return helio_softmax(x);
  case HELIO_LOG_SOFTMAX:
    return helio_log_softmax(x);
  case HELIO_RELU6:
    return relu6(x);
  case HELIO_SELU:
    return selu(x);
  case HELIO_SOFTSIGN:
    return softsign(x);
  case HELIO_EXPONENTIAL:
    return helio_exp(x);
  case HELIO_HARD_SIGMOID:
    return hard_sigmoid(x);
  case HELIO_LINEAR:
    return x;
  }
  if (activation == 0) return x;
  hi_fail(HELIO_INVALID_ARGUMENT, "%d is not an activation", (int)activation);
  return NULL;
}
