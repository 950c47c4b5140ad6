/* SPDX-License-Identifier: Apache-2.0 */
/* Flatten, Reshape and Permute: the elements of each sample, arranged anew. */
#include "nn/kinds.h"
#include "nn/layer_help.h"
#include "runtime/error.h"

helio_layer *helio_flatten_with(const helio_plain_options *options) {
  return hi_layer_new("helio_flatten", &hi_flatten_kind, options);
}

helio_layer *helio_reshape_layer_with(const helio_reshape_options *options) {
  return hi_layer_new("helio_reshape_layer", &hi_reshape_kind, options);
}

helio_layer *helio_permute_with(const helio_permute_options *options) {
  return hi_layer_new("helio_permute", &hi_permute_kind, options);
}

/* The shape rule of a known input tells the whole shape of the result. */
static helio_tensor *reshape_by_rule(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  helio_shape result;
  (void)training;
  return layer->kind->shape(layer, &inputs[0]->shape, count, &result) ? NULL : helio_reshape(inputs[0], result);
}

/* ---- Flatten ---- */

static helio_status flatten_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  (void)layer, (void)count;
  *result = HELIO_SHAPE(inputs->extent[0], hi_sample_elements(inputs));
  return hi_expect_rank_of_least(inputs, 1);
}

/* ---- Reshape ---- */

static helio_status reshape_check(helio_layer *layer) {
  const helio_shape *target = &((const helio_reshape_options *)layer->options)->target;
  int open = 0;
  bool good = target->rank >= 0 && target->rank < HELIO_MAX_RANK;
  for (int i = 0; i < target->rank && good; i++) {
    open += target->extent[i] == -1;
    good = target->extent[i] >= -1 && open <= 1;
  }
  char text[HI_SHAPE_TEXT];
  if (good) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s is not a shape of samples: at most %d axes, of which one may be -1",
                 hi_shape_text(target, text), HELIO_MAX_RANK - 1);
}

/* What −1 in the target stands for; false if the elements do not fit. */
static bool complete_target(helio_shape *target, int64_t elements) {
  int64_t rest = 1;
  int open = -1;
  for (int i = 1; i < target->rank; i++) {
    if (target->extent[i] == -1) {
      open = i;
    } else if (__builtin_mul_overflow(rest, target->extent[i], &rest)) {
      return false;
    }
  }
  if (elements == HI_ANY) return true; /* HI_ANY stays in place of −1 */
  if (open < 0 || rest == 0) return open < 0 && rest == elements;
  target->extent[open] = elements / rest;
  return elements % rest == 0;
}

static helio_status reshape_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  const helio_shape *target = &((const helio_reshape_options *)layer->options)->target;
  (void)count;
  helio_status status = hi_expect_rank_of_least(inputs, 1);
  if (status) return status;
  *result = (helio_shape){1 + target->rank, {inputs->extent[0]}};
  for (int i = 0; i < target->rank; i++) result->extent[1 + i] = target->extent[i];
  if (complete_target(result, hi_sample_elements(inputs))) return HELIO_OK;
  char from[HI_SHAPE_TEXT], to[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "samples of an input of shape %s cannot become %s",
                 hi_known_text(inputs, from), hi_shape_text(target, to));
}

/* ---- Permute ---- */

static helio_status permute_check(helio_layer *layer) {
  const helio_axes *dims = &((const helio_permute_options *)layer->options)->dims;
  unsigned seen = 0;
  bool good = dims->count > 0 && dims->count < HELIO_MAX_RANK;
  for (int i = 0; i < dims->count && good; i++) {
    good = dims->axis[i] >= 1 && dims->axis[i] <= dims->count && !(seen >> dims->axis[i] & 1);
    if (good) seen |= 1u << dims->axis[i];
  }
  if (good) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "dims are not each of 1 … %d once", dims->count);
}

static helio_status permute_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  const helio_axes *dims = &((const helio_permute_options *)layer->options)->dims;
  (void)count;
  helio_status status = hi_expect_rank(inputs, dims->count + 1, "(the batch and dims)");
  if (status) return status;
  *result = inputs[0];
  for (int i = 0; i < dims->count; i++) result->extent[1 + i] = inputs->extent[dims->axis[i]];
  return HELIO_OK;
}

static helio_tensor *permute_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_axes *dims = &((const helio_permute_options *)layer->options)->dims;
  helio_axes permutation = {.count = dims->count + 1};
  (void)count, (void)training;
  for (int i = 0; i < dims->count; i++) permutation.axis[1 + i] = dims->axis[i];
  return helio_transpose(inputs[0], .permutation = permutation);
}

/* ---- kinds ---- */

static const hi_field flatten_fields[] = {
    {"data_format", HI_FIELD_FIXED, 0, "\"channels_last\""},
    {0},
};

const hi_layer_kind hi_flatten_kind = {
    .class_name = "Flatten",
    .base_name = "flatten",
    .options_size = sizeof(helio_plain_options),
    .common = offsetof(helio_plain_options, name),
    .least_inputs = 1,
    .most_inputs = 1,
    .any_type = true,
    .shape = flatten_shape,
    .call = reshape_by_rule,
    .fields = flatten_fields,
};

static const hi_field reshape_fields[] = {
    {"target_shape", HI_FIELD_SHAPE, offsetof(helio_reshape_options, target), NULL},
    {0},
};

const hi_layer_kind hi_reshape_kind = {
    .class_name = "Reshape",
    .base_name = "reshape",
    .options_size = sizeof(helio_reshape_options),
    .common = offsetof(helio_reshape_options, name),
    .least_inputs = 1,
    .most_inputs = 1,
    .any_type = true,
    .check = reshape_check,
    .shape = reshape_shape,
    .call = reshape_by_rule,
    .fields = reshape_fields,
    .required = {"target_shape"},
    .no_build_config = true,
};

static const hi_field permute_fields[] = {
    {"dims", HI_FIELD_AXES, offsetof(helio_permute_options, dims), NULL},
    {0},
};

const hi_layer_kind hi_permute_kind = {
    .class_name = "Permute",
    .base_name = "permute",
    .options_size = sizeof(helio_permute_options),
    .common = offsetof(helio_permute_options, name),
    .least_inputs = 1,
    .most_inputs = 1,
    .any_type = true,
    .check = permute_check,
    .shape = permute_shape,
    .call = permute_call,
    .fields = permute_fields,
    .required = {"dims"},
};
