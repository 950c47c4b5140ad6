/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization and LayerNormalization. Both are operations by the last axis, to which other axes are moved. */
#include <stdlib.h>
#include <string.h>

#include "nn/kinds.h"
#include "nn/layer_help.h"
#include "ops/tape.h"
#include "runtime/error.h"

helio_layer *helio_batch_normalization_with(const helio_batch_normalization_options *options) {
  return hi_layer_new("helio_batch_normalization", &hi_batch_normalization_kind, options);
}

helio_layer *helio_layer_normalization_with(const helio_layer_normalization_options *options) {
  return hi_layer_new("helio_layer_normalization", &hi_layer_normalization_kind, options);
}

/* ---- what they share ---- */

static helio_status check_epsilon(double *epsilon) {
  *epsilon = hi_real_or(*epsilon, 1e-3);
  if (*epsilon >= 0) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "epsilon is %g, which is negative", *epsilon);
}

/* The shape of the input, which must have these axes. */
static helio_status same_shape(const helio_axes *along, const helio_shape *input, helio_shape *result) {
  helio_axes axes;
  *result = *input;
  helio_status status = hi_expect_rank_of_least(input, 2);
  return status ? status : hi_axes_of(along, input, &axes);
}

/* Of variables by these axes, in the order that they are given in. */
static helio_status shape_along(const helio_axes *along, const helio_shape *input, helio_shape *shape) {
  *shape = (helio_shape){.rank = along->count};
  for (int i = 0; i < along->count; i++) {
    shape->extent[i] = hi_known_extent(input, along->axis[i] < 0 ? along->axis[i] + input->rank : along->axis[i]);
    if (shape->extent[i] < 0) return helio_error_pending();
  }
  return HELIO_OK;
}

/* gamma and beta, NULL where the layer has none of them. */
static helio_status add_scale_and_center(helio_layer *layer, const helio_shape *shape, const helio_initializer *gamma,
                                         const helio_regularizer *gamma_regularizer, const helio_initializer *beta,
                                         const helio_regularizer *beta_regularizer) {
  helio_status status = HELIO_OK;
  if (gamma) status = hi_layer_add_weight(layer, "gamma", shape, gamma, HELIO_ONES, gamma_regularizer, true);
  if (status || !beta) return status;
  return hi_layer_add_weight(layer, "beta", shape, beta, HELIO_ZEROS, beta_regularizer, true);
}

/* ---- BatchNormalization ---- */

static helio_axes batch_axes(const helio_layer *layer) {
  const helio_batch_normalization_options *o = layer->options;
  return HELIO_AXES(o->axis);
}

static helio_status batch_check(helio_layer *layer) {
  helio_batch_normalization_options *o = layer->options;
  if (!o->axis) o->axis = -1;
  o->momentum = hi_real_or(o->momentum, 0.99);
  if (!(o->momentum >= 0 && o->momentum <= 1)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "momentum is %g, which is not in [0, 1]", o->momentum);
  }
  helio_status status = check_epsilon(&o->epsilon);
  return status ? status : hi_check_regularizers(o->beta_regularizer, o->gamma_regularizer);
}

static helio_status batch_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  helio_axes along = batch_axes(layer);
  (void)count;
  return same_shape(&along, inputs, result);
}

static helio_status batch_build(helio_layer *layer, const helio_shape *inputs, int count) {
  const helio_batch_normalization_options *o = layer->options;
  helio_axes along = batch_axes(layer);
  helio_shape shape;
  (void)count;
  helio_status status = shape_along(&along, inputs, &shape);
  if (!status) {
    status = add_scale_and_center(layer, &shape, o->no_scale ? NULL : &o->gamma_initializer, &o->gamma_regularizer,
                                  o->no_center ? NULL : &o->beta_initializer, &o->beta_regularizer);
  }
  if (!status) {
    status = hi_layer_add_weight(layer, "moving_mean", &shape, &o->moving_mean_initializer, HELIO_ZEROS, NULL, false);
  }
  if (status) return status;
  return hi_layer_add_weight(layer, "moving_variance", &shape, &o->moving_variance_initializer, HELIO_ONES, NULL,
                             false);
}

/* moving × momentum + batch × (1 − momentum), which is no part of any gradient. */
static helio_status move(helio_layer *layer, const char *local_name, helio_tensor *batch, double momentum) {
  helio_variable *variable = NULL;
  for (int i = 0; i < layer->weight_count; i++) {
    if (strcmp(layer->weights[i].local_name, local_name) == 0) variable = layer->weights[i].variable;
  }
  hi_tape_pause();
  helio_tensor *kept = helio_mul(helio_value(variable), hi_scalar_like(batch, momentum));
  helio_tensor *sum = helio_add(kept, helio_mul(batch, hi_scalar_like(batch, 1 - momentum)));
  helio_status status = sum ? helio_assign(variable, sum) : helio_error_pending();
  hi_tape_resume();
  return status;
}

/* Of what all replicas see. Each sample counts once, so replicas may have unequal numbers of them, or none. */
static helio_tensor *moments_of_all(helio_tensor *x, helio_tensor **variance) {
  int64_t channels = x->shape.extent[x->shape.rank - 1], rows = channels ? x->elements / channels : 0;
  helio_tensor *samples = helio_reshape(x, HELIO_SHAPE(rows, channels));
  hi_tape_pause();
  helio_tensor *total = hi_all_reduce(hi_scalar_like(x, (double)rows));
  total = helio_maximum(total, hi_scalar_like(x, 1));
  hi_tape_resume();
  helio_tensor *mean = helio_div(hi_all_reduce(helio_sum(samples, .axes = HELIO_AXES(0))), total);
  helio_tensor *squares = helio_square(helio_sub(samples, mean));
  *variance = helio_div(hi_all_reduce(helio_sum(squares, .axes = HELIO_AXES(0))), total);
  return helio_error_pending() ? NULL : mean;
}

/* A layer that is not trainable keeps its statistics and uses them, as in Keras. */
static helio_tensor *batch_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_batch_normalization_options *o = layer->options;
  const helio_shape *shape = &inputs[0]->shape;
  helio_axes along = batch_axes(layer), axes;
  helio_tensor *mean, *variance = NULL;
  (void)count;
  helio_tensor *x = hi_axes_of(&along, shape, &axes) ? NULL : hi_axes_joined(inputs[0], &axes);
  if (!x) return NULL;
  if (training && !layer->not_trainable) {
    bool together = o->synchronized && hi_replicas_together();
    mean = together ? moments_of_all(x, &variance) : helio_nn_moments(x, &variance);
    bool any = together || x->elements > 0; /* a batch of none, which a replica may get, says nothing by itself */
    if (!mean || (any && move(layer, "moving_mean", mean, o->momentum))) return NULL;
    if (any && move(layer, "moving_variance", variance, o->momentum)) return NULL;
  } else {
    mean = hi_layer_weight(layer, "moving_mean");
    variance = hi_layer_weight(layer, "moving_variance");
  }
  helio_tensor *y = helio_nn_normalize(x, mean, variance, hi_layer_weight(layer, "gamma"),
                                       hi_layer_weight(layer, "beta"), o->epsilon);
  return hi_axes_apart(y, &axes, shape);
}

/* ---- LayerNormalization ---- */

static int by_number(const void *a, const void *b) {
  int first = *(const int *)a, second = *(const int *)b;
  return (first > second) - (first < second);
}

/* Keras sorts the axes as they are given, negative ones first, and so has the axes of gamma and beta. */
static helio_status layer_check(helio_layer *layer) {
  helio_layer_normalization_options *o = layer->options;
  helio_status status = hi_complete_axes(&o->axes);
  if (status) return status;
  qsort(o->axes.axis, (size_t)o->axes.count, sizeof *o->axes.axis, by_number);
  status = check_epsilon(&o->epsilon);
  return status ? status : hi_check_regularizers(o->beta_regularizer, o->gamma_regularizer);
}

static helio_status layer_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  const helio_layer_normalization_options *o = layer->options;
  (void)count;
  return same_shape(&o->axes, inputs, result);
}

static helio_status layer_build(helio_layer *layer, const helio_shape *inputs, int count) {
  const helio_layer_normalization_options *o = layer->options;
  helio_shape shape;
  (void)count;
  if (shape_along(&o->axes, inputs, &shape)) return helio_error_pending();
  return add_scale_and_center(layer, &shape, o->no_scale ? NULL : &o->gamma_initializer, &o->gamma_regularizer,
                              o->no_center ? NULL : &o->beta_initializer, &o->beta_regularizer);
}

/* gamma or beta along the axes made one, of which the extents no longer tell whether they are those of the input. */
static helio_tensor *joined_weight(helio_layer *layer, const char *local_name, const helio_shape *input) {
  const helio_layer_normalization_options *o = layer->options;
  helio_tensor *weight = hi_layer_weight(layer, local_name);
  helio_shape shape;
  char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
  if (!weight || weight->shape.rank == 1) return weight;
  if (shape_along(&o->axes, input, &shape)) return NULL;
  if (hi_shape_equal(&weight->shape, &shape)) return helio_reshape(weight, HELIO_SHAPE(weight->elements));
  hi_fail(HELIO_INVALID_ARGUMENT, "an input of shape %s does not go with %s, which is %s", hi_shape_text(input, a),
          local_name, hi_shape_text(&weight->shape, b));
  return NULL;
}

static helio_tensor *layer_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_layer_normalization_options *o = layer->options;
  const helio_shape *shape = &inputs[0]->shape;
  helio_axes axes;
  (void)count, (void)training;
  helio_tensor *x = hi_axes_of(&o->axes, shape, &axes) ? NULL : hi_axes_joined(inputs[0], &axes);
  if (!x) return NULL;
  helio_tensor *gamma = joined_weight(layer, "gamma", shape), *beta = joined_weight(layer, "beta", shape);
  if (helio_error_pending()) return NULL;
  return hi_axes_apart(helio_nn_layer_norm(x, gamma, beta, o->epsilon), &axes, shape);
}

/* ---- kinds ---- */

static const hi_field batch_fields[] = {
    {"axis", HI_FIELD_INT, offsetof(helio_batch_normalization_options, axis), "list"},
    {"momentum", HI_FIELD_REAL, offsetof(helio_batch_normalization_options, momentum), NULL},
    {"epsilon", HI_FIELD_REAL, offsetof(helio_batch_normalization_options, epsilon), NULL},
    {"center", HI_FIELD_NOT_FLAG, offsetof(helio_batch_normalization_options, no_center), NULL},
    {"scale", HI_FIELD_NOT_FLAG, offsetof(helio_batch_normalization_options, no_scale), NULL},
    {"beta_initializer", HI_FIELD_INITIALIZER, offsetof(helio_batch_normalization_options, beta_initializer), "Zeros"},
    {"gamma_initializer", HI_FIELD_INITIALIZER, offsetof(helio_batch_normalization_options, gamma_initializer), "Ones"},
    {"moving_mean_initializer", HI_FIELD_INITIALIZER,
     offsetof(helio_batch_normalization_options, moving_mean_initializer), "Zeros"},
    {"moving_variance_initializer", HI_FIELD_INITIALIZER,
     offsetof(helio_batch_normalization_options, moving_variance_initializer), "Ones"},
    {"beta_regularizer", HI_FIELD_REGULARIZER, offsetof(helio_batch_normalization_options, beta_regularizer), NULL},
    {"gamma_regularizer", HI_FIELD_REGULARIZER, offsetof(helio_batch_normalization_options, gamma_regularizer), NULL},
    {"beta_constraint", HI_FIELD_FIXED, 0, "null"},
    {"gamma_constraint", HI_FIELD_FIXED, 0, "null"},
    {"synchronized", HI_FIELD_FLAG, offsetof(helio_batch_normalization_options, synchronized), NULL},
    {"renorm", HI_FIELD_FIXED, 0, "false"},
    {"renorm_clipping", HI_FIELD_FIXED, 0, "null"},
    {"renorm_momentum", HI_FIELD_FIXED, 0, "0.99"},
    {0},
};

const hi_layer_kind hi_batch_normalization_kind = {
    .class_name = "BatchNormalization",
    .base_name = "batch_normalization",
    .options_size = sizeof(helio_batch_normalization_options),
    .common = offsetof(helio_batch_normalization_options, name),
    .mixes = true,
    .least_inputs = 1,
    .most_inputs = 1,
    .check = batch_check,
    .shape = batch_shape,
    .build = batch_build,
    .call = batch_call,
    .fields = batch_fields,
    .call_arguments = "{\"mask\": null}",
};

static const hi_field layer_fields[] = {
    {"axis", HI_FIELD_AXES, offsetof(helio_layer_normalization_options, axes), "number"},
    {"epsilon", HI_FIELD_REAL, offsetof(helio_layer_normalization_options, epsilon), NULL},
    {"center", HI_FIELD_NOT_FLAG, offsetof(helio_layer_normalization_options, no_center), NULL},
    {"scale", HI_FIELD_NOT_FLAG, offsetof(helio_layer_normalization_options, no_scale), NULL},
    {"rms_scaling", HI_FIELD_FIXED, 0, "false"},
    {"beta_initializer", HI_FIELD_INITIALIZER, offsetof(helio_layer_normalization_options, beta_initializer), "Zeros"},
    {"gamma_initializer", HI_FIELD_INITIALIZER, offsetof(helio_layer_normalization_options, gamma_initializer), "Ones"},
    {"beta_regularizer", HI_FIELD_REGULARIZER, offsetof(helio_layer_normalization_options, beta_regularizer), NULL},
    {"gamma_regularizer", HI_FIELD_REGULARIZER, offsetof(helio_layer_normalization_options, gamma_regularizer), NULL},
    {"beta_constraint", HI_FIELD_FIXED, 0, "null"},
    {"gamma_constraint", HI_FIELD_FIXED, 0, "null"},
    {0},
};

const hi_layer_kind hi_layer_normalization_kind = {
    .class_name = "LayerNormalization",
    .base_name = "layer_normalization",
    .options_size = sizeof(helio_layer_normalization_options),
    .common = offsetof(helio_layer_normalization_options, name),
    .least_inputs = 1,
    .most_inputs = 1,
    .check = layer_check,
    .shape = layer_shape,
    .build = layer_build,
    .call = layer_call,
    .fields = layer_fields,
};
