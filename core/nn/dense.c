/* SPDX-License-Identifier: Apache-2.0 */
/* Dense: activation(x × kernel + bias) along the last axis. */
#include "nn/kinds.h"
#include "nn/layer_help.h"

helio_layer *helio_dense_with(const helio_dense_options *options) {
  return hi_layer_new("helio_dense", &hi_dense_kind, options);
}

static helio_status check(helio_layer *layer) {
  const helio_dense_options *o = layer->options;
  helio_status status = hi_check_positive("units", o->units);
  return status ? status : hi_check_regularizers(o->kernel_regularizer, o->bias_regularizer);
}

static helio_status shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  const helio_dense_options *o = layer->options;
  (void)count;
  *result = inputs[0];
  helio_status status = hi_expect_rank_of_least(inputs, 2);
  if (!status) result->extent[result->rank - 1] = o->units;
  return status;
}

static helio_status build(helio_layer *layer, const helio_shape *inputs, int count) {
  const helio_dense_options *o = layer->options;
  (void)count;
  int64_t channels = hi_channels(inputs);
  if (channels < 0) return helio_error_pending();
  helio_status status = hi_layer_add_weight(layer, "kernel", &HELIO_SHAPE(channels, o->units), &o->kernel_initializer,
                                            HELIO_GLOROT_UNIFORM, &o->kernel_regularizer, true);
  if (status || o->no_bias) return status;
  return hi_layer_add_weight(layer, "bias", &HELIO_SHAPE(o->units), &o->bias_initializer, HELIO_ZEROS,
                             &o->bias_regularizer, true);
}

static helio_tensor *call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_dense_options *o = layer->options;
  (void)count, (void)training;
  helio_tensor *y = helio_matmul(inputs[0], hi_layer_weight(layer, "kernel"), .bias = hi_layer_weight(layer, "bias"),
                                 .activation = hi_layer_fusible(o->activation));
  return hi_layer_activated(y, o->activation);
}

static const hi_field fields[] = {
    {"units", HI_FIELD_INT64, offsetof(helio_dense_options, units), NULL},
    {"activation", HI_FIELD_ACTIVATION, offsetof(helio_dense_options, activation), NULL},
    {"use_bias", HI_FIELD_NOT_FLAG, offsetof(helio_dense_options, no_bias), NULL},
    {"kernel_initializer", HI_FIELD_INITIALIZER, offsetof(helio_dense_options, kernel_initializer), "GlorotUniform"},
    {"bias_initializer", HI_FIELD_INITIALIZER, offsetof(helio_dense_options, bias_initializer), "Zeros"},
    {"kernel_regularizer", HI_FIELD_REGULARIZER, offsetof(helio_dense_options, kernel_regularizer), NULL},
    {"bias_regularizer", HI_FIELD_REGULARIZER, offsetof(helio_dense_options, bias_regularizer), NULL},
    {"activity_regularizer", HI_FIELD_FIXED, 0, "null"},
    {"kernel_constraint", HI_FIELD_FIXED, 0, "null"},
    {"bias_constraint", HI_FIELD_FIXED, 0, "null"},
    {"quantization_config", HI_FIELD_FIXED, 0, "null"},
    {0},
};

const hi_layer_kind hi_dense_kind = {
    .class_name = "Dense",
    .base_name = "dense",
    .options_size = sizeof(helio_dense_options),
    .common = offsetof(helio_dense_options, name),
    .activation = offsetof(helio_dense_options, activation),
    .least_inputs = 1,
    .most_inputs = 1,
    .check = check,
    .shape = shape,
    .build = build,
    .call = call,
    .fields = fields,
    .required = {"units"},
};
