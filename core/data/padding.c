/* SPDX-License-Identifier: Apache-2.0 */
#include "data/padding.h"

#include <stdlib.h>
#include <string.h>

#include "data/permute.h"
#include "data/stack.h"
#include "device/copy.h"
#include "runtime/error.h"

hi_padding *hi_padding_new(const helio_shape *shapes, const double *values) {
  char text[HI_SHAPE_TEXT];
  hi_padding *padding = calloc(1, sizeof *padding);
  if (!padding) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a dataset");
  for (int p = 0; padding && p < HELIO_MAX_PARTS; p++) {
    bool valid = shapes[p].rank >= 0 && shapes[p].rank < HELIO_MAX_RANK;
    for (int i = 0; valid && i < shapes[p].rank; i++) valid = shapes[p].extent[i] >= -1;
    if (!valid) {
      hi_fail(HELIO_INVALID_ARGUMENT, "part %d cannot be padded to the shape %s", p, hi_shape_text(&shapes[p], text));
      free(padding);
      return NULL;
    }
    padding->shape[p] = shapes[p];
    padding->value[p] = values[p];
  }
  return padding;
}

uint64_t hi_padding_fingerprint(const hi_padding *padding) {
  uint64_t number = 0;
  for (int p = 0; p < HELIO_MAX_PARTS; p++) {
    uint64_t bits;
    memcpy(&bits, &padding->value[p], sizeof bits);
    number = hi_mix(hi_mix(number, bits), (uint64_t)padding->shape[p].rank);
    for (int i = 0; i < padding->shape[p].rank; i++) number = hi_mix(number, (uint64_t)padding->shape[p].extent[i]);
  }
  return number;
}

/* ---- shapes ---- */

static bool refuse(const helio_shape *shape, int p, int64_t element, const helio_shape *wanted) {
  char text[HI_SHAPE_TEXT], other[HI_SHAPE_TEXT];
  hi_fail(HELIO_INVALID_ARGUMENT,
          "helio_dataset_padded_batch: part %d of element %lld of a batch has shape %s and cannot be padded to %s", p,
          (long long)element, hi_shape_text(shape, text), hi_shape_text(wanted, other));
  return false;
}

/* The shape that all elements of a part are filled up to. */
static bool common_shape(const hi_padding *padding, hi_item *const *items, int64_t count, int p, helio_shape *shape) {
  const helio_shape *wanted = &padding->shape[p];
  *shape = items[0]->part[p].shape;
  for (int64_t i = 0; i < count; i++) {
    const helio_shape *has = &items[i]->part[p].shape;
    if (has->rank == HELIO_MAX_RANK || (wanted->rank && has->rank != wanted->rank)) return refuse(has, p, i, wanted);
    if (has->rank != shape->rank) return refuse(has, p, i, shape);
    for (int a = 0; a < has->rank; a++) {
      bool fixed = wanted->rank && wanted->extent[a] >= 0;
      if (fixed && has->extent[a] > wanted->extent[a]) return refuse(has, p, i, wanted);
      if (fixed) shape->extent[a] = wanted->extent[a];
      if (has->extent[a] > shape->extent[a]) shape->extent[a] = has->extent[a];
    }
  }
  return true;
}

/* ---- contents ---- */

static void fill(char *target, size_t bytes, helio_type type, double value) {
  char element[8] = {0};
  size_t size = helio_type_bytes(type);
  hi_type_encode(type, value, element);
  if (value == 0) {
    memset(target, 0, bytes);
    return;
  }
  for (size_t at = 0; at < bytes; at += size) memcpy(target + at, element, size);
}

/* Writes a block of one shape into the corner of a block of another, axis by axis. */
static void place(char *target, const helio_shape *to, const char *source, const helio_shape *from, int axis,
                  size_t size) {
  if (axis == to->rank) {
    memcpy(target, source, size);
    return;
  }
  size_t to_step = size, from_step = size;
  for (int a = axis + 1; a < to->rank; a++) {
    to_step *= (size_t)to->extent[a];
    from_step *= (size_t)from->extent[a];
  }
  if (axis == to->rank - 1) {
    memcpy(target, source, (size_t)from->extent[axis] * size);
    return;
  }
  for (int64_t i = 0; i < from->extent[axis]; i++) {
    place(target + (size_t)i * to_step, to, source + (size_t)i * from_step, from, axis + 1, size);
  }
}

/* The part on the host; `scratch` receives memory to be freed if there was need of it. */
static const void *on_host(const hi_part *part, void **scratch) {
  *scratch = NULL;
  if (!part->tensor && !part->indices) return hi_part_data(part);
  *scratch = malloc(hi_part_bytes(part) + 1);
  if (!*scratch) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for an element of a batch");
    return NULL;
  }
  if (!part->tensor) {
    hi_part_write(part, 0, -1, *scratch);
    return *scratch;
  }
  if (!hi_tensor_usable(part->tensor, "an element of the dataset")) return NULL;
  return hi_copy_out(part->tensor->device, *scratch, hi_tensor_place(part->tensor), hi_part_bytes(part)) ? NULL
                                                                                                         : *scratch;
}

static bool pad_part(hi_item *const *items, int64_t count, int p, const helio_shape *shape, double value,
                     hi_part *result) {
  helio_type type = items[0]->part[p].type;
  helio_shape whole = {.rank = shape->rank + 1, .extent = {count}};
  size_t bytes = 0;
  void *data;
  for (int a = 0; a < shape->rank; a++) whole.extent[a + 1] = shape->extent[a];
  helio_array *array = hi_array_new(type, &whole, &data);
  if (!array || !hi_shape_bytes(shape, type, &bytes)) return false;
  fill(data, hi_array_bytes(array), type, value);
  for (int64_t i = 0; i < count; i++) {
    const hi_part *part = &items[i]->part[p];
    void *scratch;
    const void *source = on_host(part, &scratch);
    if (source && hi_part_bytes(part) > 0) {
      place((char *)data + (size_t)i * bytes, shape, source, &part->shape, 0, helio_type_bytes(type));
    }
    free(scratch);
    if (!source) return false;
  }
  hi_part_set_array(result, array);
  return true;
}

hi_item *hi_pad_items(const hi_padding *padding, hi_item *const *items, int64_t count) {
  if (!hi_stack_matches(items, count, "helio_dataset_padded_batch")) return NULL;
  hi_item *batch = hi_item_new(items[0]->count);
  bool done = batch;
  HELIO_POOL {
    for (int p = 0; done && p < batch->count; p++) {
      helio_shape shape;
      done = common_shape(padding, items, count, p, &shape) &&
             pad_part(items, count, p, &shape, padding->value[p], &batch->part[p]);
    }
  }
  if (done) return batch;
  hi_drop(batch);
  return NULL;
}
