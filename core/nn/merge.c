/* SPDX-License-Identifier: Apache-2.0 */
/* Add, Multiply, Average and Concatenate: several inputs become one. */
#include <stdlib.h>

#include "nn/kinds.h"
#include "nn/layer_help.h"
#include "runtime/error.h"

helio_layer *helio_add_layer_with(const helio_plain_options *options) {
  return hi_layer_new("helio_add_layer", &hi_add_kind, options);
}

helio_layer *helio_multiply_layer_with(const helio_plain_options *options) {
  return hi_layer_new("helio_multiply_layer", &hi_multiply_kind, options);
}

helio_layer *helio_average_layer_with(const helio_plain_options *options) {
  return hi_layer_new("helio_average_layer", &hi_average_kind, options);
}

helio_layer *helio_concatenate_with(const helio_concatenate_options *options) {
  return hi_layer_new("helio_concatenate", &hi_concatenate_kind, options);
}

enum { MOST_INPUTS = 4096 }; /* of helio_add_n() and helio_concat() */

static helio_status fail_pair(const char *how, const helio_shape *a, const helio_shape *b) {
  char first[HI_SHAPE_TEXT], second[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "inputs of shapes %s and %s cannot be %s", hi_known_text(a, first),
                 hi_known_text(b, second), how);
}

/* ---- element by element ---- */

/* Keras' rule: what a shape has fewer axes than the others is put in behind the batch. */
static helio_shape aligned(const helio_shape *shape, int rank) {
  helio_shape result = {rank, {shape->extent[0]}};
  int more = rank - shape->rank;
  for (int i = 1; i < rank; i++) result.extent[i] = i <= more ? 1 : shape->extent[i - more];
  return result;
}

/* The extent of two along one axis; false if they differ. Batches do not broadcast. */
static bool join_extents(int axis, int64_t a, int64_t b, int64_t *result) {
  *result = a == HI_ANY || b == HI_ANY ? HI_ANY : a > b ? a : b;
  if (a == b || a == HI_ANY || b == HI_ANY) return true;
  if (axis == 0 || (a != 1 && b != 1)) return false;
  *result = a == 1 ? b : a;
  return true;
}

static helio_status merge_shape(const helio_layer *layer, const helio_shape *inputs, int count, helio_shape *result) {
  int rank = 1;
  (void)layer;
  for (int i = 0; i < count; i++) {
    helio_status status = hi_expect_rank_of_least(&inputs[i], 1);
    if (status) return status;
    if (inputs[i].rank > rank) rank = inputs[i].rank;
  }
  *result = aligned(&inputs[0], rank);
  for (int i = 1; i < count; i++) {
    helio_shape so_far = *result, next = aligned(&inputs[i], rank);
    for (int axis = 0; axis < rank; axis++) {
      if (!join_extents(axis, so_far.extent[axis], next.extent[axis], &result->extent[axis])) {
        return fail_pair("merged", i == 1 ? &inputs[0] : &so_far, &inputs[i]);
      }
    }
  }
  return HELIO_OK;
}

static helio_tensor *fold(helio_tensor *const *inputs, int count,
                          helio_tensor *(*operation)(helio_tensor *, helio_tensor *)) {
  helio_tensor *y = NULL;
  int rank = 1;
  for (int i = 0; i < count; i++) {
    if (inputs[i]->shape.rank > rank) rank = inputs[i]->shape.rank;
  }
  for (int i = 0; i < count; i++) {
    bool lower = inputs[i]->shape.rank < rank;
    helio_tensor *x = lower ? helio_reshape(inputs[i], aligned(&inputs[i]->shape, rank)) : inputs[i];
    y = i == 0 ? x : operation(y, x);
  }
  return y;
}

/* One pass over inputs of one shape. */
static helio_tensor *add_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  bool alike = count > 1;
  (void)layer, (void)training;
  for (int i = 1; i < count; i++) alike = alike && hi_shape_equal(&inputs[0]->shape, &inputs[i]->shape);
  return alike ? helio_add_n(inputs, count) : fold(inputs, count, helio_add);
}

static helio_tensor *multiply_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  (void)layer, (void)training;
  return fold(inputs, count, helio_mul);
}

static helio_tensor *average_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  helio_tensor *sum = add_call(layer, inputs, count, training);
  return count == 1 ? sum : helio_mul(sum, hi_scalar_like(sum, 1.0 / count));
}

/* ---- Concatenate ---- */

static helio_status concatenate_check(helio_layer *layer) {
  helio_concatenate_options *o = layer->options;
  if (!o->axis) o->axis = -1;
  return HELIO_OK;
}

static helio_status concatenate_shape(const helio_layer *layer, const helio_shape *inputs, int count,
                                      helio_shape *result) {
  const helio_concatenate_options *o = layer->options;
  int rank = inputs[0].rank, along = o->axis < 0 ? o->axis + rank : o->axis;
  char text[HI_SHAPE_TEXT];
  if (along < 0 || along >= rank) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "inputs of shape %s have no axis %d", hi_known_text(&inputs[0], text),
                   o->axis);
  }
  *result = inputs[0];
  for (int i = 1; i < count; i++) {
    if (inputs[i].rank != rank) return fail_pair("concatenated", &inputs[0], &inputs[i]);
    for (int axis = 0; axis < rank; axis++) {
      int64_t a = result->extent[axis], b = inputs[i].extent[axis];
      bool known = a != HI_ANY && b != HI_ANY;
      if (axis == along) result->extent[axis] = hi_extent_plus(a, b);
      if (axis != along && known && a != b) return fail_pair("concatenated", &inputs[0], &inputs[i]);
    }
  }
  return HELIO_OK;
}

/* Inputs of one type stay as they are, integers too; others become the layer's. */
static helio_tensor *concatenate_call(helio_layer *layer, helio_tensor *const *inputs, int count, bool training) {
  const helio_concatenate_options *o = layer->options;
  bool alike = true;
  (void)training;
  for (int i = 1; i < count; i++) alike = alike && inputs[0]->type == inputs[i]->type;
  if (alike) return helio_concat(inputs, count, o->axis);
  helio_tensor **cast = calloc((size_t)count, sizeof(helio_tensor *));
  if (!cast) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a call with %d inputs", count);
  for (int i = 0; cast && i < count; i++) {
    cast[i] = inputs[i]->type == layer->type ? inputs[i] : helio_cast(inputs[i], layer->type);
  }
  helio_tensor *y = cast ? helio_concat(cast, count, o->axis) : NULL;
  free(cast);
  return y;
}

/* ---- kinds ---- */

static const hi_field no_fields[] = {{0}};

#define MERGE_KIND                                                                                                     \
  .options_size = sizeof(helio_plain_options), .common = offsetof(helio_plain_options, name), .least_inputs = 1,       \
  .most_inputs = MOST_INPUTS, .shape = merge_shape, .fields = no_fields

const hi_layer_kind hi_add_kind = {.class_name = "Add", .base_name = "add", MERGE_KIND, .call = add_call};
const hi_layer_kind hi_multiply_kind = {
    .class_name = "Multiply", .base_name = "multiply", MERGE_KIND, .call = multiply_call};
const hi_layer_kind hi_average_kind = {
    .class_name = "Average", .base_name = "average", MERGE_KIND, .call = average_call};

static const hi_field concatenate_fields[] = {
    {"axis", HI_FIELD_INT, offsetof(helio_concatenate_options, axis), NULL},
    {0},
};

const hi_layer_kind hi_concatenate_kind = {
    .class_name = "Concatenate",
    .base_name = "concatenate",
    .options_size = sizeof(helio_concatenate_options),
    .common = offsetof(helio_concatenate_options, name),
    .least_inputs = 1,
    .most_inputs = MOST_INPUTS,
    .any_type = true,
    .check = concatenate_check,
    .shape = concatenate_shape,
    .call = concatenate_call,
    .fields = concatenate_fields,
};
