/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and lists of them in configs. */
#include <limits.h>
#include <math.h>

#include "nn/config_forms.h"
#include "runtime/error.h"

/* ---- single ones ---- */

static helio_status read_between(const json_t *value, int64_t low, int64_t high, int64_t *number) {
  *number = json_integer_value(value);
  if (json_is_integer(value) && *number >= low && *number <= high) return HELIO_OK;
  return hi_form_refuse(HELIO_INVALID_ARGUMENT, low > 0 ? "a positive whole number" : "a whole number", value);
}

/* Zero would be taken for the default. */
static helio_status read_int(const hi_field *field, const json_t *value, void *place) {
  int64_t number;
  if (field->only && json_array_size(value) == 1) value = json_array_get(value, 0); /* 0 of what is no list */
  helio_status status = read_between(value, INT_MIN, INT_MAX, &number);
  if (!status && number == 0) status = hi_fail(HELIO_NOT_SUPPORTED, "0 is not supported");
  if (!status) *(int *)place = (int)number;
  return status;
}

static json_t *write_int(const hi_field *field, const void *place) {
  (void)field;
  return json_integer(*(const int *)place);
}

static helio_status read_int64(const hi_field *field, const json_t *value, void *place) {
  (void)field;
  return read_between(value, INT64_MIN, INT64_MAX, place);
}

static json_t *write_int64(const hi_field *field, const void *place) {
  (void)field;
  return json_integer(*(const int64_t *)place);
}

static helio_status read_real(const hi_field *field, const json_t *value, void *place) {
  double number = json_number_value(value);
  bool none = json_is_null(value) && field->only;
  if (!none && !json_is_number(value)) return hi_form_refuse(HELIO_INVALID_ARGUMENT, "a number", value);
  *(double *)place = none ? 0 : number == 0 ? HELIO_ZERO : number;
  return HELIO_OK;
}

static json_t *write_real(const hi_field *field, const void *place) {
  double number = *(const double *)place;
  if (field->only && number == 0 && !signbit(number)) return json_null();
  return json_real(number + 0.0); /* not −0 */
}

static helio_status read_flag(const hi_field *field, const json_t *value, void *place) {
  if (!json_is_boolean(value)) return hi_form_refuse(HELIO_INVALID_ARGUMENT, "true or false", value);
  *(bool *)place = json_is_true(value) == (field->kind == HI_FIELD_FLAG);
  return HELIO_OK;
}

static json_t *write_flag(const hi_field *field, const void *place) {
  return json_boolean(*(const bool *)place == (field->kind == HI_FIELD_FLAG));
}

/* 0 is no seed here, but one in Keras; this is none there. */
#define SEED_ZERO UINT64_MAX

static helio_status read_seed(const hi_field *field, const json_t *value, void *place) {
  int64_t number = json_integer_value(value);
  (void)field;
  if (!json_is_null(value) && (!json_is_integer(value) || number < 0)) {
    return hi_form_refuse(HELIO_NOT_SUPPORTED, "null or a whole number that is not negative", value);
  }
  *(uint64_t *)place = json_is_null(value) ? 0 : number == 0 ? SEED_ZERO : (uint64_t)number;
  return HELIO_OK;
}

static json_t *write_seed(const hi_field *field, const void *place) {
  uint64_t seed = *(const uint64_t *)place;
  (void)field;
  if (seed == 0) return json_null();
  if (seed == SEED_ZERO) return json_integer(0);
  if (seed <= INT64_MAX) return json_integer((json_int_t)seed);
  hi_fail(HELIO_NOT_SUPPORTED, "a seed above 2^63 has no place in a config");
  return NULL;
}

/* ---- lists ---- */

/* A list of `least` to `most` numbers; how many, or −1 with the error set. */
static int read_list(const json_t *value, int least, int most, int64_t low, int64_t numbers[]) {
  size_t count = json_array_size(value);
  if (!json_is_array(value) || count < (size_t)least || count > (size_t)most) {
    hi_form_refuse(HELIO_INVALID_ARGUMENT, "a list of whole numbers", value);
    return -1;
  }
  for (size_t i = 0; i < count; i++) {
    if (read_between(json_array_get(value, i), low, INT_MAX, &numbers[i])) return -1;
  }
  return (int)count;
}

static json_t *write_list(const int64_t numbers[], int count) {
  json_t *list = json_array();
  for (int i = 0; list && i < count; i++) json_array_append_new(list, json_integer(numbers[i]));
  return list;
}

static helio_status read_pair(const hi_field *field, const json_t *value, void *place) {
  int64_t numbers[2] = {0, 0};
  (void)field;
  bool list = json_is_array(value);
  if (list ? read_list(value, 1, 2, 1, numbers) < 0 : read_between(value, 1, INT_MAX, &numbers[0])) {
    return helio_error_pending();
  }
  for (int i = 0; i < 2; i++) ((int *)place)[i] = (int)numbers[i];
  return HELIO_OK;
}

static json_t *write_pair(const hi_field *field, const void *place) {
  const int *numbers = place;
  (void)field;
  return write_list((int64_t[]){numbers[0], numbers[1]}, numbers[1] ? 2 : 1);
}

/* p, [rows, columns] or [[top, bottom], [left, right]] */
static helio_status read_borders(const hi_field *field, const json_t *value, void *place) {
  int64_t numbers[4];
  (void)field;
  bool list = json_is_array(value), pairs = list && json_is_array(json_array_get(value, 0));
  if (list && json_array_size(value) != 2) return hi_form_refuse(HELIO_INVALID_ARGUMENT, "a number or two", value);
  for (size_t i = 0; i < 2; i++) {
    const json_t *part = list ? json_array_get(value, i) : value;
    int64_t *two = &numbers[2 * i];
    if (pairs ? read_list(part, 2, 2, 0, two) < 0 : read_between(part, 0, INT_MAX, two)) return helio_error_pending();
    if (!pairs) two[1] = two[0];
  }
  bool none = true;
  for (int i = 0; i < 4; i++) none = none && numbers[i] == 0;
  if (none) return hi_fail(HELIO_NOT_SUPPORTED, "no padding at all is not supported");
  for (int i = 0; i < 4; i++) ((int *)place)[i] = (int)numbers[i];
  return HELIO_OK;
}

static json_t *write_borders(const hi_field *field, const void *place) {
  const int *p = place;
  json_t *list = json_array();
  for (int i = 0; list && i < 4; i += 2) json_array_append_new(list, write_list((int64_t[]){p[i], p[i + 1]}, 2));
  (void)field;
  return list;
}

static helio_status read_shape(const hi_field *field, const json_t *value, void *place) {
  helio_shape shape = {0};
  (void)field;
  shape.rank = read_list(value, 0, HELIO_MAX_RANK, -1, shape.extent);
  if (shape.rank < 0) return helio_error_pending();
  *(helio_shape *)place = shape;
  return HELIO_OK;
}

static json_t *write_shape(const hi_field *field, const void *place) {
  const helio_shape *shape = place;
  (void)field;
  return write_list(shape->extent, shape->rank);
}

/* In some machine's memory, a sample at least. */
static bool fits_anywhere(const helio_shape *batch) {
  helio_shape least = *batch;
  size_t bytes;
  for (int i = 0; i < least.rank; i++) {
    if (least.extent[i] == HI_ANY) least.extent[i] = 1;
  }
  return hi_shape_bytes(&least, HELIO_FLOAT64, &bytes);
}

static helio_status read_batch_shape(const hi_field *field, const json_t *value, void *place) {
  helio_shape shape = {.rank = (int)json_array_size(value)};
  (void)field;
  bool good = json_is_array(value) && json_array_size(value) >= 1 && json_array_size(value) <= HELIO_MAX_RANK;
  for (int i = 0; good && i < shape.rank; i++) {
    const json_t *extent = json_array_get(value, (size_t)i);
    shape.extent[i] = json_is_null(extent) ? HI_ANY : json_integer_value(extent);
    good = json_is_null(extent) || (json_is_integer(extent) && shape.extent[i] >= 0);
  }
  if (json_is_null(value)) return HELIO_OK;
  if (!good) return hi_form_refuse(HELIO_INVALID_ARGUMENT, "the shape of a batch", value);
  if (!fits_anywhere(&shape)) return hi_form_refuse(HELIO_INVALID_ARGUMENT, "a shape that is not too large", value);
  *(helio_shape *)place = shape;
  return HELIO_OK;
}

static json_t *write_batch_shape(const hi_field *field, const void *place) {
  const helio_shape *shape = place;
  json_t *list = shape->rank ? json_array() : json_null();
  (void)field;
  for (int i = 0; i < shape->rank; i++) {
    json_array_append_new(list, shape->extent[i] == HI_ANY ? json_null() : json_integer(shape->extent[i]));
  }
  return list;
}

static helio_status read_axes(const hi_field *field, const json_t *value, void *place) {
  int64_t numbers[HELIO_MAX_RANK];
  helio_axes axes = {.count = 1};
  if (!field->only || !json_is_integer(value)) {
    axes.count = read_list(value, 1, HELIO_MAX_RANK, INT_MIN, numbers);
  } else if (read_between(value, INT_MIN, INT_MAX, &numbers[0])) {
    axes.count = -1;
  }
  if (axes.count < 0) return helio_error_pending();
  for (int i = 0; i < axes.count; i++) axes.axis[i] = (int)numbers[i];
  *(helio_axes *)place = axes;
  return HELIO_OK;
}

static json_t *write_axes(const hi_field *field, const void *place) {
  const helio_axes *axes = place;
  int64_t numbers[HELIO_MAX_RANK];
  if (field->only && axes->count == 1) return json_integer(axes->axis[0]);
  for (int i = 0; i < axes->count; i++) numbers[i] = axes->axis[i];
  return write_list(numbers, axes->count);
}

/* ---- forms ---- */

const hi_form hi_form_int = {read_int, write_int};
const hi_form hi_form_int64 = {read_int64, write_int64};
const hi_form hi_form_real = {read_real, write_real};
const hi_form hi_form_flag = {read_flag, write_flag};
const hi_form hi_form_seed = {read_seed, write_seed};
const hi_form hi_form_pair = {read_pair, write_pair};
const hi_form hi_form_borders = {read_borders, write_borders};
const hi_form hi_form_shape = {read_shape, write_shape};
const hi_form hi_form_batch_shape = {read_batch_shape, write_batch_shape};
const hi_form hi_form_axes = {read_axes, write_axes};
