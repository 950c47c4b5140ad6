/* SPDX-License-Identifier: Apache-2.0 */
#include "data/item.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"

/* ---- life ---- */

hi_indices *hi_indices_new(int64_t count) {
  hi_indices *indices = NULL;
  if ((uint64_t)count < PTRDIFF_MAX / sizeof(int64_t) - sizeof *indices) {
    indices = malloc(sizeof *indices + (size_t)count * sizeof indices->value[0]);
  }
  if (!indices) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the numbers of %lld rows", (long long)count);
    return NULL;
  }
  hi_object_begin(indices, free, "numbers of rows");
  indices->count = count;
  return indices;
}

static void end(void *object) {
  hi_item *item = object;
  for (int i = 0; i < item->count; i++) {
    hi_drop(item->part[i].owner);
    hi_drop(item->part[i].indices);
    hi_drop(item->part[i].tensor);
  }
  for (int i = 0; i < item->arrival_count; i++) hi_point_release(item->arrivals[i]);
  free(item->arrivals);
  hi_drop(item->whole);
  free(item);
}

hi_item *hi_item_new(int count) {
  hi_item *item = calloc(1, sizeof *item + (size_t)count * sizeof item->part[0]);
  if (!item) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for an element of a dataset");
    return NULL;
  }
  hi_object_begin(item, end, "an element");
  item->count = count;
  return item;
}

/* ---- filling ---- */

void hi_part_set_data(hi_part *part, void *owner, const void *data, helio_type type, const helio_shape *shape) {
  if (owner) hi_hold(owner);
  *part = (hi_part){.type = type, .shape = *shape, .owner = owner, .data = data};
}

void hi_part_set_array(hi_part *part, helio_array *array) {
  hi_part_set_data(part, array, array->data, array->type, &array->shape);
}

static size_t row_bytes(const helio_array *array) {
  return array->shape.extent[0] ? hi_array_bytes(array) / (size_t)array->shape.extent[0] : 0;
}

void hi_part_set_row(hi_part *part, helio_array *array, int64_t row) {
  helio_shape shape = {.rank = array->shape.rank - 1};
  for (int i = 0; i < shape.rank; i++) shape.extent[i] = array->shape.extent[i + 1];
  hi_part_set_data(part, array, (const char *)array->data + (size_t)row * row_bytes(array), array->type, &shape);
}

void hi_part_set_rows(hi_part *part, helio_array *array, hi_indices *indices) {
  hi_part_set_array(part, array);
  part->shape.extent[0] = indices->count;
  hi_hold(indices);
  part->indices = indices;
}

void hi_part_set_number(hi_part *part, int64_t number) {
  *part = (hi_part){.type = HELIO_INT64, .number = number};
}

void hi_part_set_tensor(hi_part *part, helio_tensor *tensor) {
  hi_hold(tensor);
  *part = (hi_part){.type = tensor->type, .shape = tensor->shape, .tensor = tensor};
}

void hi_part_copy(hi_part *part, const hi_part *from) {
  *part = *from;
  if (part->owner) hi_hold(part->owner);
  if (part->indices) hi_hold(part->indices);
  if (part->tensor) hi_hold(part->tensor);
}

/* ---- reading ---- */

const void *hi_part_data(const hi_part *part) {
  return part->data ? part->data : &part->number;
}

size_t hi_part_bytes(const hi_part *part) {
  size_t bytes = 0;
  hi_shape_bytes(&part->shape, part->type, &bytes);
  return bytes;
}

/* Rows of images lie anywhere: without a word in advance the processor would wait for each. */
static void gather(const char *data, const int64_t *index, int64_t count, size_t row, char *target) {
  enum { AHEAD = 8, LINE = 64, MOST = 1024 };
  for (int64_t i = 0; i < count; i++, target += row) {
    if (i + AHEAD < count) {
      const char *next = data + (size_t)index[i + AHEAD] * row;
      for (size_t at = 0; at < row && at < MOST; at += LINE) __builtin_prefetch(next + at);
    }
    memcpy(target, data + (size_t)index[i] * row, row);
  }
}

static void gather_bytes(const char *data, const int64_t *index, int64_t count, char *target) {
  for (int64_t i = 0; i < count; i++) target[i] = data[index[i]];
}

void hi_part_write(const hi_part *part, int64_t first, int64_t count, void *target) {
  size_t bytes = hi_part_bytes(part), row = bytes;
  if (bytes == 0 || count == 0) return;
  if (part->shape.rank) row = bytes / (size_t)part->shape.extent[0];
  if (part->indices) {
    const int64_t *index = part->indices->value + (count < 0 ? 0 : first);
    if (count < 0) count = part->indices->count;
    if (row == 1) {
      gather_bytes(part->data, index, count, target);
    } else {
      gather(part->data, index, count, row, target);
    }
    return;
  }
  size_t offset = count < 0 ? 0 : (size_t)first * row;
  memcpy(target, (const char *)hi_part_data(part) + offset, count < 0 ? bytes : (size_t)count * row);
}

int64_t hi_item_rows(const hi_item *item) {
  char text[HI_SHAPE_TEXT], first[HI_SHAPE_TEXT];
  for (int i = 0; i < item->count; i++) {
    const helio_shape *shape = &item->part[i].shape, *other = &item->part[0].shape;
    if (shape->rank == 0 || shape->extent[0] != other->extent[0]) {
      hi_fail(HELIO_INVALID_ARGUMENT, "an element with parts of shape %s and %s is not a batch",
              hi_shape_text(other, first), hi_shape_text(shape, text));
      return -1;
    }
  }
  return item->part[0].shape.extent[0];
}
