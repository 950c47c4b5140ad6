/* SPDX-License-Identifier: Apache-2.0 */
#include "data/array.h"

#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "ops/options.h"
#include "ops/placement.h"
#include "runtime/error.h"

/* Of a cache line, so that vector instructions meet no border inside one. */
enum { ALIGNMENT = 64 };

/* ---- life ---- */

static void end(void *object) {
  helio_array *array = object;
  free(array->heap);
  hi_drop(array->owner);
  free(array);
}

helio_array *hi_array_over(void *owner, const void *data, helio_type type, const helio_shape *shape) {
  helio_array *array = hi_object_new(sizeof *array, end, "an array");
  if (!array) return NULL;
  if (owner) hi_hold(owner);
  array->owner = owner;
  array->type = type;
  array->shape = *shape;
  hi_shape_elements(shape, &array->elements);
  array->data = data ? data : "";
  return array;
}

helio_array *hi_array_new(helio_type type, const helio_shape *shape, void **data) {
  char text[HI_SHAPE_TEXT];
  size_t bytes;
  if (!hi_shape_bytes(shape, type, &bytes) || bytes > PTRDIFF_MAX - ALIGNMENT) {
    hi_fail(HELIO_INVALID_ARGUMENT, "an array of shape %s is not valid or too large", hi_shape_text(shape, text));
    return NULL;
  }
  void *heap = aligned_alloc(ALIGNMENT, (bytes / ALIGNMENT + 1) * ALIGNMENT);
  if (!heap) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for an array of shape %s and type %s", hi_shape_text(shape, text),
            helio_type_name(type));
    return NULL;
  }
  helio_array *array = hi_array_over(NULL, heap, type, shape);
  if (!array) {
    free(heap);
    return NULL;
  }
  array->heap = heap;
  *data = heap;
  return array;
}

static bool check_given(const helio_array_options *o) {
  size_t bytes;
  if (!hi_type_valid(o->type)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%d is not a type", (int)o->type);
    return false;
  }
  if (!hi_shape_bytes(&o->shape, o->type, &bytes)) {
    char text[HI_SHAPE_TEXT];
    hi_fail(HELIO_INVALID_ARGUMENT, "the shape %s is not valid or too large", hi_shape_text(&o->shape, text));
    return false;
  }
  if (!o->data && bytes) hi_fail(HELIO_INVALID_ARGUMENT, "data is NULL");
  if (o->borrow && (uintptr_t)o->data % helio_type_bytes(o->type)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "data to be borrowed are not aligned for %s", helio_type_name(o->type));
  }
  return !helio_error_pending();
}

helio_array *helio_array_of_with(const helio_array_options *given) {
  helio_array_options o;
  void *data;
  if (!hi_options_enter("helio_array_of", &o, sizeof o, given)) return NULL;
  if (!o.type) o.type = HELIO_FLOAT32;
  if (!check_given(&o)) return NULL;
  if (o.borrow) return hi_array_over(NULL, o.data, o.type, &o.shape);
  helio_array *array = hi_array_new(o.type, &o.shape, &data);
  if (array && array->elements) memcpy(data, o.data, hi_array_bytes(array));
  return array;
}

/* ---- facts ---- */

bool hi_array_usable(const helio_array *array, const char *what) {
  if (!array) hi_fail(HELIO_INVALID_ARGUMENT, "%s is NULL", what);
  return array;
}

size_t hi_array_bytes(const helio_array *array) {
  return (size_t)array->elements * helio_type_bytes(array->type);
}

helio_type helio_array_type(const helio_array *array) {
  return array ? array->type : (helio_type)0;
}

helio_shape helio_array_shape(const helio_array *array) {
  return array ? array->shape : HELIO_SCALAR;
}

int64_t helio_array_elements(const helio_array *array) {
  return array ? array->elements : 0;
}

const void *helio_array_data(const helio_array *array) {
  return array ? array->data : NULL;
}

char *helio_shape_text(helio_shape shape) {
  char text[HI_SHAPE_TEXT];
  if (hi_enter_unstarted(__func__)) return NULL;
  char *copy = strdup(hi_shape_text(&shape, text));
  if (!copy) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the text of a shape");
  return copy;
}

/* ---- to and from devices ---- */

helio_tensor *helio_array_tensor(const helio_array *array) {
  if (hi_enter(__func__) || !hi_array_usable(array, "the array")) return NULL;
  hi_device *device = hi_placement_for_data(NULL);
  helio_tensor *tensor = device ? hi_tensor_new(device, array->type, &array->shape, "array") : NULL;
  if (!tensor) return NULL;
  return hi_copy_in(device, hi_tensor_place(tensor), array->data, hi_array_bytes(array)) ? NULL : tensor;
}

helio_array *helio_tensor_array(const helio_tensor *tensor) {
  void *data;
  if (hi_enter(__func__) || !hi_tensor_usable(tensor, "the tensor")) return NULL;
  helio_array *array = hi_array_new(tensor->type, &tensor->shape, &data);
  if (!array) return NULL;
  return hi_copy_out(tensor->device, data, hi_tensor_place(tensor), hi_tensor_bytes(tensor)) ? NULL : array;
}

/* ---- views ---- */

helio_array *helio_array_part(helio_array *array, int64_t begin, int64_t count) {
  char text[HI_SHAPE_TEXT];
  if (hi_enter_unstarted(__func__) || !hi_array_usable(array, "the array")) return NULL;
  helio_shape shape = array->shape;
  int64_t rows = shape.rank ? shape.extent[0] : -1;
  if (count == -1 && begin >= 0 && begin <= rows) count = rows - begin;
  if (begin < 0 || count < 0 || begin > rows || count > rows - begin) {
    hi_fail(HELIO_INVALID_ARGUMENT, "an array of shape %s has no %lld rows from row %lld on",
            hi_shape_text(&shape, text), (long long)count, (long long)begin);
    return NULL;
  }
  shape.extent[0] = count;
  size_t row = rows ? hi_array_bytes(array) / (size_t)rows : 0;
  return hi_array_over(array, (const char *)array->data + row * (size_t)begin, array->type, &shape);
}

helio_array *helio_array_reshape(helio_array *array, helio_shape shape) {
  char from[HI_SHAPE_TEXT], to[HI_SHAPE_TEXT];
  helio_shape asked = shape;
  if (hi_enter_unstarted(__func__) || !hi_array_usable(array, "the array")) return NULL;
  if (hi_shape_complete(&shape, array->elements)) return hi_array_over(array, array->data, array->type, &shape);
  hi_fail(HELIO_INVALID_ARGUMENT, "the shape %s cannot become %s", hi_shape_text(&array->shape, from),
          hi_shape_text(&asked, to));
  return NULL;
}
