/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in other types: casts, scaling and one-hot. */
#include <stdlib.h>
#include <string.h>

#include "data/array.h"
#include "ops/options.h"
#include "runtime/error.h"

static int64_t load_integer(helio_type type, const void *at) {
  int32_t narrow;
  int64_t wide;
  if (type == HELIO_UINT8 || type == HELIO_BOOL) return *(const uint8_t *)at;
  if (type == HELIO_INT32) return memcpy(&narrow, at, sizeof narrow), narrow;
  return memcpy(&wide, at, sizeof wide), wide;
}

/* Integers wrap, as in helio_cast(). */
static void store_integer(helio_type type, int64_t value, void *at) {
  uint32_t narrow = (uint32_t)value;
  if (type == HELIO_INT64) {
    memcpy(at, &value, sizeof value);
  } else if (type == HELIO_INT32) {
    memcpy(at, &narrow, sizeof narrow);
  } else {
    *(uint8_t *)at = type == HELIO_BOOL ? value != 0 : (uint8_t)value;
  }
}

int64_t hi_array_integer(const helio_array *array, int64_t index) {
  return load_integer(array->type, (const char *)array->data + (size_t)index * helio_type_bytes(array->type));
}

static void convert_one(const hi_conversion *c, const void *source, void *target) {
  if (!c->scaled && helio_type_is_integer(c->from) && helio_type_is_integer(c->to)) {
    store_integer(c->to, load_integer(c->from, source), target);
  } else {
    double value = hi_type_decode(c->from, source);
    hi_type_encode(c->to, c->scaled ? value * c->scale + c->offset : value, target);
  }
}

/* A byte has 256 values: each is converted once. */
static void convert_bytes(const hi_conversion *c, const unsigned char *source, char *target, size_t count) {
  char table[256][8];
  size_t width = helio_type_bytes(c->to);
  for (int i = 0; i < 256; i++) convert_one(c, &(unsigned char){(unsigned char)i}, table[i]);
  for (size_t i = 0; i < count && width == 1; i++) target[i] = table[source[i]][0];
  for (size_t i = 0; i < count && width == 2; i++) memcpy(target + 2 * i, table[source[i]], 2);
  for (size_t i = 0; i < count && width == 4; i++) memcpy(target + 4 * i, table[source[i]], 4);
  for (size_t i = 0; i < count && width == 8; i++) memcpy(target + 8 * i, table[source[i]], 8);
}

void hi_convert(const hi_conversion *c, const void *source, void *target, size_t count) {
  size_t from = helio_type_bytes(c->from), to = helio_type_bytes(c->to);
  if (count == 0) return;
  if (c->from == c->to && !c->scaled) {
    memcpy(target, source, count * to);
  } else if (from == 1 && count > 256) {
    convert_bytes(c, source, target, count);
  } else {
    for (size_t i = 0; i < count; i++) convert_one(c, (const char *)source + i * from, (char *)target + i * to);
  }
}

helio_array *helio_array_cast_with(const helio_array_cast_options *given) {
  helio_array_cast_options o;
  void *data;
  if (!hi_options_enter("helio_array_cast", &o, sizeof o, given) || !hi_array_usable(o.array, "the array")) return NULL;
  if (!hi_type_valid(o.type)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%d is not a type", (int)o.type);
    return NULL;
  }
  if (o.scale == 0) o.scale = 1;
  hi_conversion c = {o.array->type, o.type, o.scale != 1 || o.offset != 0, o.scale, o.offset};
  if (c.from == c.to && !c.scaled) return hi_array_over(o.array, o.array->data, o.type, &o.array->shape);
  helio_array *array = hi_array_new(o.type, &o.array->shape, &data);
  if (array) hi_convert(&c, o.array->data, data, (size_t)array->elements);
  return array;
}

/* ---- one-hot ---- */

/* The largest label; −1: there is none, with the error set if one is negative or not below `classes`, unless 0. */
static int64_t largest_label(const helio_array *labels, int64_t classes) {
  int64_t largest = -1;
  for (int64_t i = 0; i < labels->elements; i++) {
    int64_t label = hi_array_integer(labels, i);
    if (label < 0 || (classes && label >= classes)) {
      hi_fail(HELIO_BAD_DATA, "label %lld of element %lld is not one of %lld classes", (long long)label, (long long)i,
              (long long)classes);
      return -1;
    }
    if (label > largest) largest = label;
  }
  return largest;
}

static bool check_one_hot(const helio_array *labels, int64_t classes, helio_type type) {
  if (!hi_array_usable(labels, "labels")) return false;
  if (!helio_type_is_integer(labels->type)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "labels are %s, not integers", helio_type_name(labels->type));
  } else if (labels->shape.rank == HELIO_MAX_RANK) {
    hi_fail(HELIO_INVALID_ARGUMENT, "labels have %d axes already, the most there can be", HELIO_MAX_RANK);
  } else if (classes < 0 || !hi_type_valid(type)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%lld classes of type %d", (long long)classes, (int)type);
  }
  return !helio_error_pending();
}

helio_array *helio_array_one_hot(helio_array *labels, int64_t classes, helio_type type) {
  char one[8];
  void *data;
  if (!type) type = HELIO_FLOAT32;
  if (hi_enter_unstarted(__func__) || !check_one_hot(labels, classes, type)) return NULL;
  int64_t largest = largest_label(labels, classes);
  if (helio_error_pending()) return NULL;
  if (classes == 0) classes = largest == INT64_MAX ? largest : largest + 1;
  helio_shape shape = labels->shape;
  shape.extent[shape.rank++] = classes;
  helio_array *array = hi_array_new(type, &shape, &data);
  if (!array) return NULL;
  size_t width = helio_type_bytes(type);
  hi_type_encode(type, 1, one);
  memset(data, 0, hi_array_bytes(array));
  for (int64_t i = 0; i < labels->elements; i++) {
    memcpy((char *)data + (size_t)(i * classes + hi_array_integer(labels, i)) * width, one, width);
  }
  return array;
}
