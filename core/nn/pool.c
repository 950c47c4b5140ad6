/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: the largest or mean element of windows, or of whole images. */
#include "nn/kinds.h"
#include "nn/layer_help.h"
#include "runtime/error.h"

helio_layer *helio_max_pool1d_with(const helio_pool_options *options) {
  return hi_layer_new("helio_max_pool1d", &hi_max_pool1d_kind, options);
}

helio_layer *helio_max_pool2d_with(const helio_pool_options *options) {
  return hi_layer_new("helio_max_pool2d", &hi_max_pool2d_kind, options);
}

helio_layer *helio_average_pool1d_with(const helio_pool_options *options) {
  return hi_layer_new("helio_average_pool1d", &hi_average_pool1d_kind, options);
}

helio_layer *helio_average_pool2d_with(const helio_pool_options *options) {
  return hi_layer_new("helio_average_pool2d", &hi_average_pool2d_kind, options);
}

helio_layer *helio_global_max_pool1d_with(const helio_global_pool_options *options) {
  return hi_layer_new("helio_global_max_pool1d", &hi_global_max_pool1d_kind, options);
}

helio_layer *helio_global_max_pool2d_with(const helio_global_pool_options *options) {
  return hi_layer_new("helio_global_max_pool2d", &hi_global_max_pool2d_kind, options);
}

helio_layer *helio_global_average_pool1d_with(const helio_global_pool_options *options) {
  return hi_layer_new("helio_global_average_pool1d", &hi_global_average_pool1d_kind, options);
}

helio_layer *helio_global_average_pool2d_with(const helio_global_pool_options *options) {
  return hi_layer_new("helio_global_average_pool2d", &hi_global_average_pool2d_kind, options);
}

/* ---- what they share ---- */

static int axes_of(const helio_layer *layer) {
  const hi_layer_kind *kind = layer->kind;
  bool one = kind == &hi_max_pool1d_kind || kind == &hi_average_pool1d_kind || kind == &hi_global_max_pool1d_kind ||
             kind == &hi_global_average_pool1d_kind;
  return one ? 1 : 2;
}

static bool takes_largest(const helio_layer *layer) {
  const hi_layer_kind *kind = layer->kind;
  return kind == &hi_max_pool1d_kind || kind == &hi_max_pool2d_kind || kind == &hi_global_max_pool1d_kind ||
         kind == &hi_global_max_pool2d_kind;
}

static helio_status expect_images(const helio_layer *layer, const helio_shape *shape) {
  int axes = axes_of(layer);
  return hi_expect_rank(shape, axes + 2, axes == 1 ? "(batch, steps, channels)" : "(batch, height, width, channels)");
}

/* ---- of windows ---- */

static helio_status window_check(helio_layer *layer) {
  helio_pool_options *o = layer->options;
  int axes = axes_of(layer), window[2] = {o->pool_size, o->pool_width};
  helio_status status = hi_complete_pair("pool_size", window, 2, axes);
  if (!o->strides[0] && !o->strides[1]) o->strides[1] = window[1];
  if (!status) status = hi_complete_pair("strides", o->strides, window[0], axes);
  o->pool_size = window[0];
  o->pool_width = window[1];
  if (!o->padding) o->padding = HELIO_VALID;
  if (status || o->padding == HELIO_VALID || o->padding == HELIO_SAME) return status;
  return hi_fail(HELIO_INVALID_ARGUMENT, "padding %d is neither HELIO_VALID nor HELIO_SAME", (int)o->padding);
}

static helio_status window_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  const helio_pool_options *o = layer->options;
  hi_window window = {.axes = axes_of(layer),
                      .extent = {o->pool_size, o->pool_width},
                      .stride = {o->strides[0], o->strides[1]},
                      .dilation = {1, 1},
                      .padding = o->padding};
  (void)count;
  *result = inputs[0];
  helio_status status = expect_images(layer, inputs);
  return status ? status : hi_window_places(&window, result);
}

/* Steps are the width of images of height 1, which is a view. */
static helio_tensor *window_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_pool_options *o = layer->options;
  bool flat = axes_of(layer) == 1;
  helio_nn_pool_options how = {.size = sizeof how,
                               .x = flat ? helio_expand_dims(inputs[0], 1) : inputs[0],
                               .window = {flat ? 1 : o->pool_size, flat ? o->pool_size : o->pool_width},
                               .stride = {flat ? 1 : o->strides[0], flat ? o->strides[0] : o->strides[1]},
                               .padding = o->padding};
  (void)count, (void)training;
  helio_tensor *y = takes_largest(layer) ? helio_nn_max_pool_with(&how) : helio_nn_average_pool_with(&how);
  return flat ? helio_squeeze(y, .axes = HELIO_AXES(1)) : y;
}

/* ---- of all ---- */

static helio_status global_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  const helio_global_pool_options *o = layer->options;
  int axes = axes_of(layer);
  (void)count;
  helio_status status = expect_images(layer, inputs);
  if (status) return status;
  *result = (helio_shape){1, {inputs->extent[0]}};
  for (int i = 0; i < axes && o->keep_dims; i++) result->extent[result->rank++] = 1;
  result->extent[result->rank++] = inputs->extent[axes + 1];
  return HELIO_OK;
}

static helio_tensor *global_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_global_pool_options *o = layer->options;
  helio_axes axes = axes_of(layer) == 1 ? HELIO_AXES(1) : HELIO_AXES(1, 2);
  (void)count, (void)training;
  return takes_largest(layer) ? helio_max(inputs[0], .axes = axes, .keep_dims = o->keep_dims)
                              : helio_mean(inputs[0], .axes = axes, .keep_dims = o->keep_dims);
}

/* ---- kinds ---- */

static const hi_field window_fields[] = {
    {"pool_size", HI_FIELD_PAIR, offsetof(helio_pool_options, pool_size), NULL},
    {"strides", HI_FIELD_PAIR, offsetof(helio_pool_options, strides), NULL},
    {"padding", HI_FIELD_PADDING, offsetof(helio_pool_options, padding), NULL},
    {"data_format", HI_FIELD_FIXED, 0, "\"channels_last\""},
    {0},
};

static const hi_field global_fields[] = {
    {"data_format", HI_FIELD_FIXED, 0, "\"channels_last\""},
    {"keepdims", HI_FIELD_FLAG, offsetof(helio_global_pool_options, keep_dims), NULL},
    {0},
};

#define WINDOW_KIND                                                                                                    \
  .options_size = sizeof(helio_pool_options), .common = offsetof(helio_pool_options, name), .least_inputs = 1,         \
  .most_inputs = 1, .check = window_check, .shape = window_shape, .call = window_call, .fields = window_fields,        \
  .no_build_config = true

#define GLOBAL_KIND                                                                                                    \
  .options_size = sizeof(helio_global_pool_options), .common = offsetof(helio_global_pool_options, name),              \
  .least_inputs = 1, .most_inputs = 1, .shape = global_shape, .call = global_call, .fields = global_fields,            \
  .no_build_config = true

const hi_layer_kind hi_max_pool1d_kind = {.class_name = "MaxPooling1D", .base_name = "max_pooling1d", WINDOW_KIND};
const hi_layer_kind hi_max_pool2d_kind = {.class_name = "MaxPooling2D", .base_name = "max_pooling2d", WINDOW_KIND};
const hi_layer_kind hi_average_pool1d_kind = {
    .class_name = "AveragePooling1D", .base_name = "average_pooling1d", WINDOW_KIND};
const hi_layer_kind hi_average_pool2d_kind = {
    .class_name = "AveragePooling2D", .base_name = "average_pooling2d", WINDOW_KIND};

const hi_layer_kind hi_global_max_pool1d_kind = {
    .class_name = "GlobalMaxPooling1D", .base_name = "global_max_pooling1d", GLOBAL_KIND};
const hi_layer_kind hi_global_max_pool2d_kind = {
    .class_name = "GlobalMaxPooling2D", .base_name = "global_max_pooling2d", GLOBAL_KIND};
const hi_layer_kind hi_global_average_pool1d_kind = {
    .class_name = "GlobalAveragePooling1D",
    .base_name = "global_average_pooling1d",
    GLOBAL_KIND,
    .call_arguments = "{\"mask\": null}",
};
const hi_layer_kind hi_global_average_pool2d_kind = {
    .class_name = "GlobalAveragePooling2D", .base_name = "global_average_pooling2d", GLOBAL_KIND};
