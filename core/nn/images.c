/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroPadding2D, UpSampling2D and Rescaling: images made fit. */
#include <math.h>
#include <stdlib.h>

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
  if (!o->interpolation) o->interpolation = HELIO_NEAREST;
  if (status || o->interpolation == HELIO_NEAREST || o->interpolation == HELIO_BILINEAR) return status;
  return hi_fail(HELIO_INVALID_ARGUMENT, "%d is not an interpolation", (int)o->interpolation);
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
static helio_tensor *repeated(const helio_up_sampling2d_options *o, helio_tensor *x) {
  const int64_t *extent = x->shape.extent;
  helio_tensor *apart = helio_reshape(x, HELIO_SHAPE(extent[0], extent[1], 1, extent[2], 1, extent[3]));
  return helio_add(apart, helio_fill(HELIO_SHAPE(1, 1, o->factor, 1, o->width_factor, 1), 0, .type = x->type));
}

/* Of the places that one element becomes, how far each lies towards the next one (side 1) or the one before (−1), the
 * element's own center being 0 and the distance of elements 1. */
static helio_tensor *distances(int factor, int side, helio_type type) {
  size_t bytes = helio_type_bytes(type);
  char *numbers = malloc((size_t)factor * bytes);
  if (!numbers) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %d factors", factor);
    return NULL;
  }
  for (int i = 0; i < factor; i++) {
    double place = ((i + 0.5) / factor - 0.5) * side;
    hi_type_encode(type, place > 0 ? place : 0, numbers + (size_t)i * bytes);
  }
  helio_tensor *result = helio_constant(numbers, HELIO_SHAPE(factor, 1), .type = type);
  free(numbers);
  return result;
}

/* x, which is (outer, extent, 1, inner), with `factor` places for each element: towards its neighbours by the step to
 * them, which is 0 beyond the border. */
static helio_tensor *interpolated(helio_tensor *x, int factor) {
  if (!x) return NULL;
  helio_shape none = HELIO_SHAPE(0, 0, 0, 0), one = HELIO_SHAPE(0, 1, 0, 0), rest = HELIO_SHAPE(-1, -1, -1, -1);
  helio_shape all_but_last = HELIO_SHAPE(-1, x->shape.extent[1] - 1, -1, -1);
  helio_tensor *steps = helio_sub(helio_slice(x, one, rest), helio_slice(x, none, all_but_last));
  helio_tensor *next = helio_mul(helio_pad(steps, none, one), distances(factor, 1, x->type));
  helio_tensor *before = helio_mul(helio_pad(steps, one, none), distances(factor, -1, x->type));
  return helio_add(x, helio_sub(next, before));
}

static helio_tensor *bilinear(const helio_up_sampling2d_options *o, helio_tensor *x) {
  const int64_t *extent = x->shape.extent;
  int64_t rows = hi_extent_times(hi_extent_times(extent[1], o->factor), extent[0]);
  x = interpolated(helio_reshape(x, HELIO_SHAPE(extent[0], extent[1], 1, extent[2] * extent[3])), o->factor);
  return interpolated(helio_reshape(x, HELIO_SHAPE(rows, extent[2], 1, extent[3])), o->width_factor);
}

/* No elements: nothing lies between them. */
static helio_tensor *sampling_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_up_sampling2d_options *o = layer->options;
  helio_shape result;
  (void)training;
  if (sampling_shape(layer, &inputs[0]->shape, count, &result)) return NULL;
  bool between = o->interpolation == HELIO_BILINEAR && inputs[0]->elements > 0;
  return helio_reshape(between ? bilinear(o, inputs[0]) : repeated(o, inputs[0]), result);
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
    {"interpolation", HI_FIELD_INTERPOLATION, offsetof(helio_up_sampling2d_options, interpolation), NULL},
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
    .required = {"scale"},
};
