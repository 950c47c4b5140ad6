/* SPDX-License-Identifier: Apache-2.0 */
/* Conv1D, Conv2D and DepthwiseConv2D. */
#include "nn/kinds.h"
#include "nn/layer_help.h"
#include "runtime/error.h"

helio_layer *helio_conv1d_with(const helio_conv_options *options) {
  return hi_layer_new("helio_conv1d", &hi_conv1d_kind, options);
}

helio_layer *helio_conv2d_with(const helio_conv_options *options) {
  return hi_layer_new("helio_conv2d", &hi_conv2d_kind, options);
}

helio_layer *helio_depthwise_conv2d_with(const helio_depthwise_conv2d_options *options) {
  return hi_layer_new("helio_depthwise_conv2d", &hi_depthwise_conv2d_kind, options);
}

/* ---- what they share ---- */

static const char *axes_text(int axes) {
  return axes == 1 ? "(batch, steps, channels)" : "(batch, height, width, channels)";
}

/* Completes the numbers of a window; there is none for the kernel's size. */
static helio_status complete_window(int axes, int *height, int *width, int strides[2], int dilation[2],
                                    helio_padding *padding) {
  int kernel[2] = {*height, *width};
  helio_status status = hi_complete_pair("kernel_size", kernel, 0, axes);
  if (!status) status = hi_complete_pair("strides", strides, 1, axes);
  if (!status) status = hi_complete_pair("dilation", dilation, 1, axes);
  if (!*padding) *padding = HELIO_VALID;
  *height = kernel[0];
  *width = kernel[1];
  bool known = *padding == HELIO_VALID || *padding == HELIO_SAME || (*padding == HELIO_CAUSAL && axes == 1);
  if (status || known) return status;
  return hi_fail(HELIO_INVALID_ARGUMENT, "padding %d is not HELIO_VALID%s HELIO_SAME%s", (int)*padding,
                 axes == 1 ? "," : " or", axes == 1 ? " or HELIO_CAUSAL" : "");
}

/* So many steps of zeros before the first. */
static helio_tensor *pad_before(helio_tensor *x, int64_t steps) {
  return helio_pad(x, HELIO_SHAPE(0, steps, 0), HELIO_SHAPE(0, 0, 0));
}

static helio_tensor *convolve(helio_layer *layer, helio_tensor *x, helio_tensor *kernel, const hi_window *window,
                              int groups, helio_activation activation) {
  bool causal = window->padding == HELIO_CAUSAL;
  if (causal) x = pad_before(x, (int64_t)(window->extent[0] - 1) * window->dilation[0]);
  helio_nn_conv2d_options how = {.size = sizeof how,
                                 .x = x,
                                 .kernel = kernel,
                                 .bias = hi_layer_weight(layer, "bias"),
                                 .stride = {window->stride[0], window->stride[1]},
                                 .dilation = {window->dilation[0], window->dilation[1]},
                                 .padding = causal ? HELIO_VALID : window->padding,
                                 .groups = groups,
                                 .activation = hi_layer_fusible(activation)};
  return hi_layer_activated(window->axes == 1 ? helio_nn_conv1d_with(&how) : helio_nn_conv2d_with(&how), activation);
}

/* ---- Conv1D and Conv2D ---- */

static hi_window conv_window(const helio_layer *layer) {
  const helio_conv_options *o = layer->options;
  return (hi_window){.axes = layer->kind == &hi_conv1d_kind ? 1 : 2,
                     .extent = {o->kernel_size, o->kernel_width},
                     .stride = {o->strides[0], o->strides[1]},
                     .dilation = {o->dilation[0], o->dilation[1]},
                     .padding = o->padding};
}

static helio_status conv_check(helio_layer *layer) {
  helio_conv_options *o = layer->options;
  if (!o->groups) o->groups = 1;
  helio_status status =
      complete_window(conv_window(layer).axes, &o->kernel_size, &o->kernel_width, o->strides, o->dilation, &o->padding);
  if (!status) status = hi_check_positive("filters", o->filters);
  if (!status) status = hi_check_positive("groups", o->groups);
  if (!status) status = hi_check_regularizers(o->kernel_regularizer, o->bias_regularizer);
  if (status || o->filters % o->groups == 0) return status;
  return hi_fail(HELIO_INVALID_ARGUMENT, "%lld filters are not a multiple of %d groups", (long long)o->filters,
                 o->groups);
}

static helio_status conv_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  const helio_conv_options *o = layer->options;
  hi_window window = conv_window(layer);
  (void)count;
  helio_status status = hi_expect_rank(inputs, window.axes + 2, axes_text(window.axes));
  if (status) return status;
  int64_t channels = inputs->extent[window.axes + 1];
  if (channels != HI_ANY && channels % o->groups != 0) {
    char text[HI_SHAPE_TEXT];
    return hi_fail(HELIO_INVALID_ARGUMENT, "%lld channels are not a multiple of %d groups, got shape %s",
                   (long long)channels, o->groups, hi_known_text(inputs, text));
  }
  *result = inputs[0];
  status = hi_window_places(&window, result);
  result->extent[window.axes + 1] = o->filters;
  return status;
}

static helio_status conv_build(helio_layer *layer, const helio_shape *inputs, int count) {
  const helio_conv_options *o = layer->options;
  (void)count;
  int64_t channels = hi_channels(inputs);
  if (channels < 0) return helio_error_pending();
  helio_shape kernel = conv_window(layer).axes == 1
                           ? HELIO_SHAPE(o->kernel_size, channels / o->groups, o->filters)
                           : HELIO_SHAPE(o->kernel_size, o->kernel_width, channels / o->groups, o->filters);
  helio_status status = hi_layer_add_weight(layer, "kernel", &kernel, &o->kernel_initializer, HELIO_GLOROT_UNIFORM,
                                            &o->kernel_regularizer, true);
  if (status || o->no_bias) return status;
  return hi_layer_add_weight(layer, "bias", &HELIO_SHAPE(o->filters), &o->bias_initializer, HELIO_ZEROS,
                             &o->bias_regularizer, true);
}

static helio_tensor *conv_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_conv_options *o = layer->options;
  hi_window window = conv_window(layer);
  (void)count, (void)training;
  return convolve(layer, inputs[0], hi_layer_weight(layer, "kernel"), &window, o->groups, o->activation);
}

/* ---- DepthwiseConv2D: each channel is a group of its own ---- */

static hi_window depthwise_window(const helio_depthwise_conv2d_options *o) {
  return (hi_window){.axes = 2,
                     .extent = {o->kernel_size, o->kernel_width},
                     .stride = {o->strides[0], o->strides[1]},
                     .dilation = {o->dilation[0], o->dilation[1]},
                     .padding = o->padding};
}

static helio_status depthwise_check(helio_layer *layer) {
  helio_depthwise_conv2d_options *o = layer->options;
  if (!o->depth_multiplier) o->depth_multiplier = 1;
  helio_status status = complete_window(2, &o->kernel_size, &o->kernel_width, o->strides, o->dilation, &o->padding);
  if (!status) status = hi_check_positive("depth_multiplier", o->depth_multiplier);
  return status ? status : hi_check_regularizers(o->depthwise_regularizer, o->bias_regularizer);
}

static helio_status depthwise_shape(const helio_layer *layer, const helio_shape *inputs, int count,
                                    helio_shape *result) {
  const helio_depthwise_conv2d_options *o = layer->options;
  hi_window window = depthwise_window(o);
  (void)count;
  helio_status status = hi_expect_rank(inputs, 4, axes_text(2));
  if (status) return status;
  *result = inputs[0];
  status = hi_window_places(&window, result);
  result->extent[3] = hi_extent_times(result->extent[3], o->depth_multiplier);
  return status;
}

static helio_status depthwise_build(helio_layer *layer, const helio_shape *inputs, int count) {
  const helio_depthwise_conv2d_options *o = layer->options;
  (void)count;
  int64_t channels = hi_channels(inputs);
  if (channels < 0) return helio_error_pending();
  helio_shape kernel = HELIO_SHAPE(o->kernel_size, o->kernel_width, channels, o->depth_multiplier);
  helio_status status = hi_layer_add_weight(layer, "kernel", &kernel, &o->depthwise_initializer, HELIO_GLOROT_UNIFORM,
                                            &o->depthwise_regularizer, true);
  if (status || o->no_bias) return status;
  return hi_layer_add_weight(layer, "bias", &HELIO_SHAPE(hi_extent_times(channels, o->depth_multiplier)),
                             &o->bias_initializer, HELIO_ZEROS, &o->bias_regularizer, true);
}

static helio_tensor *depthwise_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_depthwise_conv2d_options *o = layer->options;
  hi_window window = depthwise_window(o);
  (void)count, (void)training;
  helio_tensor *kernel = hi_layer_weight(layer, "kernel");
  if (!kernel) return NULL;
  int64_t channels = kernel->shape.extent[2];
  kernel = helio_reshape(kernel, HELIO_SHAPE(o->kernel_size, o->kernel_width, 1, channels * o->depth_multiplier));
  return convolve(layer, inputs[0], kernel, &window, (int)channels, o->activation);
}

/* ---- kinds ---- */

static const hi_field conv_fields[] = {
    {"filters", HI_FIELD_INT64, offsetof(helio_conv_options, filters), NULL},
    {"kernel_size", HI_FIELD_PAIR, offsetof(helio_conv_options, kernel_size), NULL},
    {"strides", HI_FIELD_PAIR, offsetof(helio_conv_options, strides), NULL},
    {"padding", HI_FIELD_PADDING, offsetof(helio_conv_options, padding), NULL},
    {"data_format", HI_FIELD_FIXED, 0, "\"channels_last\""},
    {"dilation_rate", HI_FIELD_PAIR, offsetof(helio_conv_options, dilation), NULL},
    {"groups", HI_FIELD_INT, offsetof(helio_conv_options, groups), NULL},
    {"activation", HI_FIELD_ACTIVATION, offsetof(helio_conv_options, activation), NULL},
    {"use_bias", HI_FIELD_NOT_FLAG, offsetof(helio_conv_options, no_bias), NULL},
    {"kernel_initializer", HI_FIELD_INITIALIZER, offsetof(helio_conv_options, kernel_initializer), "GlorotUniform"},
    {"bias_initializer", HI_FIELD_INITIALIZER, offsetof(helio_conv_options, bias_initializer), "Zeros"},
    {"kernel_regularizer", HI_FIELD_REGULARIZER, offsetof(helio_conv_options, kernel_regularizer), NULL},
    {"bias_regularizer", HI_FIELD_REGULARIZER, offsetof(helio_conv_options, bias_regularizer), NULL},
    {"activity_regularizer", HI_FIELD_FIXED, 0, "null"},
    {"kernel_constraint", HI_FIELD_FIXED, 0, "null"},
    {"bias_constraint", HI_FIELD_FIXED, 0, "null"},
    {0},
};

#define CONV_KIND                                                                                                      \
  .options_size = sizeof(helio_conv_options), .common = offsetof(helio_conv_options, name),                            \
  .activation = offsetof(helio_conv_options, activation), .least_inputs = 1, .most_inputs = 1, .check = conv_check,    \
  .shape = conv_shape, .build = conv_build, .call = conv_call, .fields = conv_fields,                                  \
  .required = {"filters", "kernel_size"}

const hi_layer_kind hi_conv1d_kind = {.class_name = "Conv1D", .base_name = "conv1d", CONV_KIND};
const hi_layer_kind hi_conv2d_kind = {.class_name = "Conv2D", .base_name = "conv2d", CONV_KIND};

static const hi_field depthwise_fields[] = {
    {"depth_multiplier", HI_FIELD_INT, offsetof(helio_depthwise_conv2d_options, depth_multiplier), NULL},
    {"kernel_size", HI_FIELD_PAIR, offsetof(helio_depthwise_conv2d_options, kernel_size), NULL},
    {"strides", HI_FIELD_PAIR, offsetof(helio_depthwise_conv2d_options, strides), NULL},
    {"padding", HI_FIELD_PADDING, offsetof(helio_depthwise_conv2d_options, padding), NULL},
    {"data_format", HI_FIELD_FIXED, 0, "\"channels_last\""},
    {"dilation_rate", HI_FIELD_PAIR, offsetof(helio_depthwise_conv2d_options, dilation), NULL},
    {"activation", HI_FIELD_ACTIVATION, offsetof(helio_depthwise_conv2d_options, activation), NULL},
    {"use_bias", HI_FIELD_NOT_FLAG, offsetof(helio_depthwise_conv2d_options, no_bias), NULL},
    {"depthwise_initializer", HI_FIELD_INITIALIZER, offsetof(helio_depthwise_conv2d_options, depthwise_initializer),
     "GlorotUniform"},
    {"bias_initializer", HI_FIELD_INITIALIZER, offsetof(helio_depthwise_conv2d_options, bias_initializer), "Zeros"},
    {"depthwise_regularizer", HI_FIELD_REGULARIZER, offsetof(helio_depthwise_conv2d_options, depthwise_regularizer),
     NULL},
    {"bias_regularizer", HI_FIELD_REGULARIZER, offsetof(helio_depthwise_conv2d_options, bias_regularizer), NULL},
    {"activity_regularizer", HI_FIELD_FIXED, 0, "null"},
    {"depthwise_constraint", HI_FIELD_FIXED, 0, "null"},
    {"bias_constraint", HI_FIELD_FIXED, 0, "null"},
    {0},
};

const hi_layer_kind hi_depthwise_conv2d_kind = {
    .class_name = "DepthwiseConv2D",
    .base_name = "depthwise_conv2d",
    .options_size = sizeof(helio_depthwise_conv2d_options),
    .common = offsetof(helio_depthwise_conv2d_options, name),
    .activation = offsetof(helio_depthwise_conv2d_options, activation),
    .least_inputs = 1,
    .most_inputs = 1,
    .check = depthwise_check,
    .shape = depthwise_shape,
    .build = depthwise_build,
    .call = depthwise_call,
    .fields = depthwise_fields,
    .required = {"kernel_size"},
};
