/* SPDX-License-Identifier: Apache-2.0 */
/* Activation, Softmax and ReLU, and what Keras calls activations. */
#include <math.h>
#include <string.h>

#include "nn/kinds.h"
#include "nn/layer_help.h"
#include "nn/names.h"
#include "runtime/error.h"
#include "runtime/nearest.h"

helio_layer *helio_activation_layer_with(const helio_activation_options *options) {
  return hi_layer_new("helio_activation_layer", &hi_activation_kind, options);
}

helio_layer *helio_softmax_layer_with(const helio_softmax_options *options) {
  return hi_layer_new("helio_softmax_layer", &hi_softmax_kind, options);
}

helio_layer *helio_relu_layer_with(const helio_relu_options *options) {
  return hi_layer_new("helio_relu_layer", &hi_relu_kind, options);
}

/* ---- names ---- */

/* The first name of an activation is the one that Keras writes. It has none for gelu's approximation. */
static const struct {
  helio_activation activation;
  const char *name;
} names[] = {
    {HELIO_LINEAR, "linear"},
    {HELIO_RELU, "relu"},
    {HELIO_SIGMOID, "sigmoid"},
    {HELIO_TANH, "tanh"},
    {HELIO_SOFTPLUS, "softplus"},
    {HELIO_SWISH, "silu"},
    {HELIO_SWISH, "swish"},
    {HELIO_GELU, "gelu"},
    {HELIO_GELU_TANH, "gelu_tanh"},
    {HELIO_ELU, "elu"},
    {HELIO_LEAKY_RELU, "leaky_relu"},
    {HELIO_SOFTMAX, "softmax"},
    {HELIO_LOG_SOFTMAX, "log_softmax"},
    {HELIO_RELU6, "relu6"},
    {HELIO_SELU, "selu"},
    {HELIO_SOFTSIGN, "softsign"},
    {HELIO_EXPONENTIAL, "exponential"},
    {HELIO_HARD_SIGMOID, "hard_sigmoid"},
};
enum { NAME_COUNT = sizeof names / sizeof names[0] };

helio_activation hi_activation_named(const char *name) {
  const char *known[NAME_COUNT];
  for (int i = 0; i < NAME_COUNT; i++) {
    known[i] = names[i].name;
    if (strcmp(known[i], name) == 0) return names[i].activation;
  }
  hi_fail_unknown(HELIO_INVALID_ARGUMENT, "activation", name, hi_nearest(name, known, NAME_COUNT), known, NAME_COUNT);
  return (helio_activation)0;
}

const char *hi_activation_name(helio_activation activation) {
  for (int i = 0; i < NAME_COUNT; i++) {
    if (names[i].activation == activation) return names[i].name;
  }
  return activation == 0 ? "linear" : "";
}

/* ---- Activation and Softmax ---- */

static helio_status activation_check(helio_layer *layer) {
  const helio_activation_options *o = layer->options;
  return o->activation ? HELIO_OK : hi_fail(HELIO_INVALID_ARGUMENT, "no activation is given");
}

static helio_tensor *activation_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_activation_options *o = layer->options;
  (void)count, (void)training;
  return hi_layer_activate(inputs[0], o->activation);
}

static helio_status softmax_check(helio_layer *layer) {
  helio_softmax_options *o = layer->options;
  return hi_complete_axes(&o->axes);
}

static helio_status softmax_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  const helio_softmax_options *o = layer->options;
  helio_axes axes;
  (void)count;
  *result = inputs[0];
  return hi_axes_of(&o->axes, inputs, &axes);
}

/* Only along the last axis, which losses work along, does the result remember its logits. */
static helio_tensor *softmax_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_softmax_options *o = layer->options;
  const helio_shape *shape = &inputs[0]->shape;
  helio_axes axes;
  (void)count, (void)training;
  helio_tensor *x = hi_axes_of(&o->axes, shape, &axes) ? NULL : hi_axes_joined(inputs[0], &axes);
  if (x == inputs[0]) return hi_layer_activate(x, HELIO_SOFTMAX);
  return x ? hi_axes_apart(helio_softmax(x), &axes, shape) : NULL;
}

/* ---- ReLU ---- */

static helio_status relu_check(helio_layer *layer) {
  const helio_relu_options *o = layer->options;
  if (o->max_value >= 0 && o->negative_slope >= 0 && o->threshold >= 0) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "max_value %g, negative_slope %g and threshold %g must not be negative",
                 o->max_value, o->negative_slope, o->threshold);
}

/* What is above the threshold, within the limit. Composed as in Keras, so that slopes at the corners are the same. */
static helio_tensor *relu_above(const helio_relu_options *o, helio_tensor *x, helio_tensor *threshold) {
  bool limited = o->max_value != 0 || signbit(o->max_value); /* HELIO_ZERO is a limit */
  if (o->threshold == 0 && o->max_value == 6) return helio_activate(x, HELIO_RELU6);
  helio_tensor *y =
      o->threshold == 0 ? helio_relu(x) : helio_where(helio_greater(x, threshold), x, hi_scalar_like(x, 0));
  return limited ? helio_clip(y, 0, o->max_value) : y;
}

static helio_tensor *relu_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_relu_options *o = layer->options;
  helio_tensor *x = inputs[0], *threshold = hi_scalar_like(x, o->threshold), *y = relu_above(o, x, threshold);
  (void)count, (void)training;
  if (o->negative_slope == 0) return y;
  helio_tensor *below = helio_relu(helio_sub(threshold, x));
  return helio_sub(y, helio_mul(below, hi_scalar_like(x, o->negative_slope)));
}

/* ---- kinds ---- */

static const hi_field activation_fields[] = {
    {"activation", HI_FIELD_ACTIVATION, offsetof(helio_activation_options, activation), NULL},
    {0},
};

const hi_layer_kind hi_activation_kind = {
    .class_name = "Activation",
    .base_name = "activation",
    .options_size = sizeof(helio_activation_options),
    .common = offsetof(helio_activation_options, name),
    .activation = offsetof(helio_activation_options, activation),
    .least_inputs = 1,
    .most_inputs = 1,
    .check = activation_check,
    .shape = hi_shape_of_input,
    .call = activation_call,
    .fields = activation_fields,
    .required = {"activation"},
    .no_build_config = true,
};

static const hi_field softmax_fields[] = {
    {"axis", HI_FIELD_AXES, offsetof(helio_softmax_options, axes), "number"},
    {0},
};

const hi_layer_kind hi_softmax_kind = {
    .class_name = "Softmax",
    .base_name = "softmax",
    .options_size = sizeof(helio_softmax_options),
    .common = offsetof(helio_softmax_options, name),
    .least_inputs = 1,
    .most_inputs = 1,
    .check = softmax_check,
    .shape = softmax_shape,
    .call = softmax_call,
    .fields = softmax_fields,
    .no_build_config = true,
    .call_arguments = "{\"mask\": null}",
};

static const hi_field relu_fields[] = {
    {"max_value", HI_FIELD_REAL, offsetof(helio_relu_options, max_value), "null"},
    {"negative_slope", HI_FIELD_REAL, offsetof(helio_relu_options, negative_slope), NULL},
    {"threshold", HI_FIELD_REAL, offsetof(helio_relu_options, threshold), NULL},
    {0},
};

const hi_layer_kind hi_relu_kind = {
    .class_name = "ReLU",
    .base_name = "re_lu",
    .options_size = sizeof(helio_relu_options),
    .common = offsetof(helio_relu_options, name),
    .least_inputs = 1,
    .most_inputs = 1,
    .check = relu_check,
    .shape = hi_shape_of_input,
    .call = relu_call,
    .fields = relu_fields,
    .no_build_config = true,
};
