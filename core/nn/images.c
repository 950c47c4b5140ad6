/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroPadding2D, UpSampling2D and Rescaling: images made fit. */
#include <math.h>

#include "nn/kinds.h"
#include "nn/layer_help.h"
#include "runtime/error.h"

helio_layer *helio_zero_padding2d_with(const helio_zero_padding2d_options *options) {
  return hi_layer_new("helio_zero_padding2d", &hi_zero_padding2d_kind, options);
}

helio_layer *helio_up_sampling2d_with(const helio_up_sampling2d_options *options) {
  return hi_layer_new("helio_up_sampling2d", &hi_up_sampling2d_kind, options);
}

helio_layer *helio_rescaling_with(const helio_rescaling_options *options) {
  return hi_layer_new("helio_rescaling", &hi_rescaling_kind, options);
}

static helio_status expect_images(const helio_shape *shape) {
  return hi_expect_rank(shape, 4, "(batch, height, width, channels)");
}

/* ---- ZeroPadding2D ---- */

static helio_status padding_check(helio_layer *layer) {
  helio_zero_padding2d_options *o = layer->options;
  int *p = o->padding;
  bool each = p[0] || p[1] || p[2] || p[3];
  if (each && o->all) return hi_fail(HELIO_INVALID_ARGUMENT, "padding is given as one number and as four");
  if (!each) p[0] = p[1] = p[2] = p[3] = o->all ? o->all : 1;
  o->all = 0;
  for (int i = 0; i < 4; i++) {
    if (p[i] < 0) return hi_fail(HELIO_INVALID_ARGUMENT, "padding has %d, which is negative", p[i]);
  }
  return HELIO_OK;
}

static helio_status padding_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  const helio_zero_padding2d_options *o = layer->options;
  (void)count;
  *result = inputs[0];
  helio_status status = expect_images(inputs);
  for (int i = 0; i < 2 && !status; i++) {
    int64_t more = (int64_t)o->padding[2 * i] + o->padding[2 * i + 1];
    result->extent[1 + i] = hi_extent_plus(result->extent[1 + i], more);
  }
  return status;
}

static helio_tensor *padding_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_zero_padding2d_options *o = layer->options;
  (void)count, (void)training;
  return helio_pad(inputs[0], HELIO_SHAPE(0, o->padding[0], o->padding[2], 0),
                   HELIO_SHAPE(0, o->padding[1], o->padding[3], 0));
}

/* ---- UpSampling2D ---- */

static helio_status sampling_check(helio_layer *layer) {
  helio_up_sampling2d_options *o = layer->options;
  int factors[2] = {o->factor, o->width_factor};
  helio_status status = hi_complete_pair("size", factors, 2, 2);
  o->factor = factors[0];
  o->width_factor = factors[1];
  return status;
}

static helio_status sampling_shape(const helio_layer *layer, const helio_shape *inputs, int count,
                                   helio_shape *result) {
  const helio_up_sampling2d_options *o = layer->options;
  (void)count;
  helio_status status = expect_images(inputs);
  if (status) return status;
  *result = inputs[0];
  result->extent[1] = hi_extent_times(result->extent[1], o->factor);
  result->extent[2] = hi_extent_times(result->extent[2], o->width_factor);
  return HELIO_OK;
}

/* Zeros with an axis behind each of rows and columns, over which x is repeated; the gradient sums over them. */
static helio_tensor *sampling_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_up_sampling2d_options *o = layer->options;
  helio_shape x = inputs[0]->shape, result;
  (void)training;
  if (sampling_shape(layer, &x, count, &result)) return NULL;
  helio_tensor *apart = helio_reshape(inputs[0], HELIO_SHAPE(x.extent[0], x.extent[1], 1, x.extent[2], 1, x.extent[3]));
  helio_tensor *zeros = helio_fill(HELIO_SHAPE(1, 1, o->factor, 1, o->width_factor, 1), 0, .type = inputs[0]->type);
  return helio_reshape(helio_add(apart, zeros), result);
}

/* ---- Rescaling ---- */

static helio_status rescaling_check(helio_layer *layer) {
  helio_rescaling_options *o = layer->options;
  if (o->scale == 0 && !signbit(o->scale)) return hi_fail(HELIO_INVALID_ARGUMENT, "no scale is given");
  if (isfinite(o->scale) && isfinite(o->offset)) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "scale is %g and offset is %g", o->scale, o->offset);
}

static helio_tensor *rescaling_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_rescaling_options *o = layer->options;
  (void)count, (void)training;
  helio_tensor *y = helio_mul(inputs[0], hi_scalar_like(inputs[0], o->scale));
  return o->offset == 0 ? y : helio_add(y, hi_scalar_like(y, o->offset));
}

/* ---- kinds ---- */

static const hi_field padding_fields[] = {
    {"padding", HI_FIELD_BORDERS, offsetof(helio_zero_padding2d_options, padding), NULL},
    {"data_format", HI_FIELD_FIXED, 0, "\"channels_last\""},
    {0},
};

const hi_layer_kind hi_zero_padding2d_kind = {
    .class_name = "ZeroPadding2D",
    .base_name = "zero_padding2d",
    .options_size = sizeof(helio_zero_padding2d_options),
    .common = offsetof(helio_zero_padding2d_options, name),
    .least_inputs = 1,
    .most_inputs = 1,
    .any_type = true,
    .check = padding_check,
    .shape = padding_shape,
    .call = padding_call,
    .fields = padding_fields,
};

static const hi_field sampling_fields[] = {
    {"size", HI_FIELD_PAIR, offsetof(helio_up_sampling2d_options, factor), NULL},
    {"data_format", HI_FIELD_FIXED, 0, "\"channels_last\""},
    {"interpolation", HI_FIELD_FIXED, 0, "\"nearest\""},
    {0},
};

const hi_layer_kind hi_up_sampling2d_kind = {
    .class_name = "UpSampling2D",
    .base_name = "up_sampling2d",
    .options_size = sizeof(helio_up_sampling2d_options),
    .common = offsetof(helio_up_sampling2d_options, name),
    .least_inputs = 1,
    .most_inputs = 1,
    .check = sampling_check,
    .shape = sampling_shape,
    .call = sampling_call,
    .fields = sampling_fields,
};

static const hi_field rescaling_fields[] = {
    {"scale", HI_FIELD_REAL, offsetof(helio_rescaling_options, scale), NULL},
    {"offset", HI_FIELD_REAL, offsetof(helio_rescaling_options, offset), NULL},
    {0},
};

const hi_layer_kind hi_rescaling_kind = {
    .class_name = "Rescaling",
    .base_name = "rescaling",
    .options_size = sizeof(helio_rescaling_options),
    .common = offsetof(helio_rescaling_options, name),
    .least_inputs = 1,
    .most_inputs = 1,
    .check = rescaling_check,
    .shape = hi_shape_of_input,
    .call = rescaling_call,
    .fields = rescaling_fields,
};
