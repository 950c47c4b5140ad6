/* SPDX-License-Identifier: Apache-2.0 */
#include "data/stack.h"

#include <stdlib.h>

#include "data/landing.h"
#include "ops/placement.h"
#include "runtime/error.h"

bool hi_stack_matches(hi_item *const *items, int64_t count, const char *what) {
  const hi_item *first = items[0];
  for (int64_t i = 1; i < count; i++) {
    if (items[i]->count != first->count) {
      hi_fail(HELIO_INVALID_ARGUMENT, "%s: element %lld of a batch has %d parts, the first has %d", what, (long long)i,
              items[i]->count, first->count);
      return false;
    }
    for (int p = 0; p < first->count; p++) {
      if (items[i]->part[p].type == first->part[p].type) continue;
      hi_fail(HELIO_INVALID_ARGUMENT, "%s: part %d is of type %s in element %lld of a batch, and %s in the first", what,
              p, helio_type_name(items[i]->part[p].type), (long long)i, helio_type_name(first->part[p].type));
      return false;
    }
  }
  return true;
}

static bool same_shapes(hi_item *const *items, int64_t count) {
  char text[HI_SHAPE_TEXT], other[HI_SHAPE_TEXT];
  for (int64_t i = 1; i < count; i++) {
    for (int p = 0; p < items[0]->count; p++) {
      const helio_shape *shape = &items[i]->part[p].shape, *first = &items[0]->part[p].shape;
      if (hi_shape_equal(shape, first)) continue;
      hi_fail(HELIO_INVALID_ARGUMENT,
              "helio_dataset_batch: part %d has shape %s in element %lld of a batch, and %s in the first; "
              "helio_dataset_padded_batch fills up what is shorter",
              p, hi_shape_text(shape, text), (long long)i, hi_shape_text(first, other));
      return false;
    }
  }
  return true;
}

static bool stacked_shape(const hi_part *part, int64_t count, helio_shape *shape) {
  if (part->shape.rank == HELIO_MAX_RANK) {
    hi_fail(HELIO_INVALID_ARGUMENT, "helio_dataset_batch: elements of rank %d; a batch would have one more",
            HELIO_MAX_RANK);
    return false;
  }
  *shape = (helio_shape){.rank = part->shape.rank + 1, .extent = {count}};
  for (int i = 0; i < part->shape.rank; i++) shape->extent[i + 1] = part->shape.extent[i];
  return true;
}

/* ---- on the host ---- */

static bool stack_host(hi_item *const *items, int64_t count, int p, const helio_shape *shape, hi_part *result) {
  void *data;
  helio_array *array = hi_array_new(items[0]->part[p].type, shape, &data);
  if (!array) return false;
  size_t bytes = hi_part_bytes(&items[0]->part[p]);
  for (int64_t i = 0; i < count; i++) hi_part_write(&items[i]->part[p], 0, -1, (char *)data + (size_t)i * bytes);
  hi_part_set_array(result, array);
  return true;
}

/* ---- on a device ---- */

/* helio_concat takes so many at a time. */
enum { AT_ONCE = 4096 };

static helio_tensor *concat_all(helio_tensor **tensors, int64_t count) {
  while (count > 1 && !helio_error_pending()) {
    int64_t made = 0;
    for (int64_t at = 0; at < count; at += AT_ONCE) {
      int64_t now = count - at < AT_ONCE ? count - at : AT_ONCE;
      tensors[made++] = helio_concat(tensors + at, (int)now, 0);
    }
    count = made;
  }
  return helio_error_pending() ? NULL : tensors[0];
}

static bool stack_tensors(hi_item *const *items, int64_t count, int p, const helio_shape *shape, hi_part *result) {
  helio_shape row = *shape;
  helio_tensor **tensors = malloc((size_t)count * sizeof *tensors);
  hi_device *device = hi_placement_for_data(items[0]->part[p].tensor ? items[0]->part[p].tensor->device : NULL);
  row.extent[0] = 1;
  if (!tensors) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a batch of %lld elements", (long long)count);
  for (int64_t i = 0; tensors && device && i < count && !helio_error_pending(); i++) {
    hi_item *single = hi_item_new(1);
    helio_element element = {0};
    if (!single) break;
    hi_part_copy(&single->part[0], &items[i]->part[p]);
    if (!hi_item_land(single, 0, -1, device, &element)) tensors[i] = helio_reshape(element.part[0], row);
    hi_drop(single);
  }
  helio_tensor *batch = helio_error_pending() ? NULL : concat_all(tensors, count);
  free(tensors);
  if (batch) hi_part_set_tensor(result, batch);
  return batch;
}

/* ---- items ---- */

static bool any_tensor(hi_item *const *items, int64_t count, int p) {
  for (int64_t i = 0; i < count; i++) {
    if (items[i]->part[p].tensor) return true;
  }
  return false;
}

hi_item *hi_stack(hi_item *const *items, int64_t count) {
  if (!hi_stack_matches(items, count, "helio_dataset_batch") || !same_shapes(items, count)) return NULL;
  hi_item *batch = hi_item_new(items[0]->count);
  bool done = batch;
  HELIO_POOL {
    for (int p = 0; done && p < batch->count; p++) {
      helio_shape shape;
      done = stacked_shape(&items[0]->part[p], count, &shape) &&
             (any_tensor(items, count, p) ? stack_tensors : stack_host)(items, count, p, &shape, &batch->part[p]);
    }
  }
  if (done) return batch;
  hi_drop(batch);
  return NULL;
}
