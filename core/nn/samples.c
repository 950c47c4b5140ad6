/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/samples.h"

#include <stdlib.h>

#include "device/status.h"
#include "ops/tape.h"
#include "runtime/error.h"

/* ---- types and numbers ---- */

helio_tensor *hi_in_type(helio_tensor *x, helio_type type) {
  return !x || x->type == type ? x : helio_cast(x, type);
}

helio_tensor *hi_in_wide_float(helio_tensor *x) {
  return hi_in_type(x, x && x->type == HELIO_FLOAT64 ? HELIO_FLOAT64 : HELIO_FLOAT32);
}

/* The division is by 1 where it would be by 0: its gradient is a number there, of which the outer choice takes none. */
helio_tensor *hi_divide_no_nan(helio_tensor *a, helio_tensor *b) {
  if (!a || !b) return NULL;
  helio_tensor *zero = hi_scalar(b->type, 0), *is_zero = helio_equal(b, zero);
  return helio_where(is_zero, zero, helio_div(a, helio_where(is_zero, hi_scalar(b->type, 1), b)));
}

/* ---- shapes ---- */

static int64_t last_extent(const helio_shape *shape) {
  return shape->rank > 0 ? shape->extent[shape->rank - 1] : 0;
}

/* `longer` has one axis more. */
static helio_status match_longer(helio_tensor **longer, helio_tensor **other) {
  if (last_extent(&(*longer)->shape) != 1) return HELIO_OK;
  if ((*other)->shape.rank == 1) {
    *other = helio_expand_dims(*other, -1);
  } else {
    *longer = helio_squeeze(*longer, .axes = HELIO_AXES(-1));
  }
  return helio_error_pending();
}

helio_status hi_match_ranks(helio_tensor **a, helio_tensor **b) {
  if (!*a || !*b) return helio_error_pending();
  int more = (*a)->shape.rank - (*b)->shape.rank;
  return more == 1 ? match_longer(a, b) : more == -1 ? match_longer(b, a) : HELIO_OK;
}

static helio_status wrong_shapes(const helio_tensor *labels, const helio_tensor *predictions) {
  char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
  return hi_fail(HELIO_INVALID_ARGUMENT, "labels of shape %s and predictions of shape %s do not go together",
                 hi_shape_text(&labels->shape, a), hi_shape_text(&predictions->shape, b));
}

helio_status hi_match_shapes(const helio_tensor *labels, const helio_tensor *predictions) {
  bool equal = hi_shape_equal(&labels->shape, &predictions->shape);
  return equal ? HELIO_OK : wrong_shapes(labels, predictions);
}

static helio_tensor *integers(helio_tensor *labels) {
  if (labels->type == HELIO_INT32 || labels->type == HELIO_INT64) return labels;
  return helio_cast(labels, hi_type_is_float(labels->type) ? HELIO_INT64 : HELIO_INT32);
}

helio_tensor *hi_class_numbers(helio_tensor *labels, const helio_tensor *predictions) {
  helio_shape rows = predictions->shape, given = labels->shape;
  if (rows.rank > 0) rows.extent[--rows.rank] = 0;
  if (given.rank == predictions->shape.rank && last_extent(&given) == 1) given.extent[--given.rank] = 0;
  if (predictions->shape.rank < 1 || !hi_shape_equal(&given, &rows)) {
    wrong_shapes(labels, predictions);
    return NULL;
  }
  return given.rank == labels->shape.rank ? integers(labels) : integers(helio_reshape(labels, given));
}

/* ---- weights ---- */

/* Can `from`, of the same rank, be broadcast to `to`? */
static bool stretches(const helio_shape *from, const helio_shape *to) {
  bool fits = from->rank == to->rank;
  for (int i = 0; fits && i < from->rank; i++) fits = from->extent[i] == to->extent[i] || from->extent[i] == 1;
  return fits;
}

/* The shape with axes of extent 1 behind or before it, up to `rank`. */
static helio_shape padded(const helio_shape *shape, int rank, bool behind) {
  helio_shape result = {.rank = rank};
  int missing = rank - shape->rank;
  for (int i = 0; i < rank; i++) result.extent[i] = 1;
  for (int i = 0; i < shape->rank; i++) result.extent[behind ? i : missing + i] = shape->extent[i];
  return result;
}

helio_tensor *hi_weights_for(helio_tensor *weights, const helio_tensor *values) {
  if (!weights || !values) return NULL;
  const helio_shape *to = &values->shape;
  helio_shape shape = weights->shape;
  if (shape.rank < to->rank) {
    shape = padded(&weights->shape, to->rank, true);
    if (!stretches(&shape, to)) shape = padded(&weights->shape, to->rank, false);
  }
  if (!stretches(&shape, to)) {
    char a[HI_SHAPE_TEXT], b[HI_SHAPE_TEXT];
    hi_fail(HELIO_INVALID_ARGUMENT, "sample weights of shape %s do not go with values of shape %s",
            hi_shape_text(&weights->shape, a), hi_shape_text(to, b));
    return NULL;
  }
  weights = hi_in_type(weights, values->type);
  return shape.rank == weights->shape.rank ? weights : helio_reshape(weights, shape);
}

/* ---- class weights ---- */

/* Numbers of classes: as they are, or the places of the ones. */
static helio_tensor *classes_of(helio_tensor *labels, int classes) {
  int64_t last = last_extent(&labels->shape);
  bool numbers = labels->shape.rank < 2 || (!hi_type_is_float(labels->type) && last != classes);
  if (last == 1 && labels->shape.rank > 1) {
    labels = helio_squeeze(labels, .axes = HELIO_AXES(-1));
  } else if (!numbers && last == classes) {
    return helio_argmax(hi_in_wide_float(labels), -1);
  } else if (!numbers) {
    char text[HI_SHAPE_TEXT];
    hi_fail(HELIO_INVALID_ARGUMENT, "labels of shape %s are neither numbers of classes nor one-hot ones of %d",
            hi_shape_text(&labels->shape, text), classes);
    return NULL;
  }
  return labels ? integers(labels) : NULL;
}

/* A copy in float32; the caller frees it. */
static float *checked_weights(const double *weights, int classes) {
  if (!weights || classes < 1) {
    hi_fail(HELIO_INVALID_ARGUMENT, weights ? "there are %d classes" : "weights is NULL", classes);
    return NULL;
  }
  float *numbers = malloc((size_t)classes * sizeof *numbers);
  if (!numbers) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the weights of %d classes", classes);
  for (int i = 0; numbers && i < classes; i++) numbers[i] = (float)weights[i];
  return numbers;
}

helio_tensor *helio_class_weights(helio_tensor *labels, const double *weights, int classes) {
  if (hi_enter(__func__) || !hi_tensor_usable(labels, "labels")) return NULL;
  float *numbers = checked_weights(weights, classes);
  if (!numbers) return NULL;
  hi_tape_pause();
  const char *before = hi_blame_enter("class weights");
  helio_tensor *table = helio_constant(numbers, HELIO_SHAPE(classes));
  helio_tensor *result = helio_gather_rows(table, table ? classes_of(labels, classes) : NULL);
  hi_blame_leave(before);
  hi_tape_resume();
  free(numbers);
  return result;
}
