/* SPDX-License-Identifier: Apache-2.0 */
#include "data/landing.h"

#include "device/copy.h"
#include "runtime/error.h"
#include "runtime/progress.h"

/* ---- parts ---- */

static helio_tensor *land_tensor(const hi_part *part, int64_t first, const helio_shape *shape, hi_device *device) {
  helio_tensor *tensor = part->tensor;
  if (!hi_tensor_usable(tensor, "an element of the dataset")) return NULL;
  if (!hi_shape_equal(shape, &part->shape)) {
    size_t row = hi_part_bytes(part) / (size_t)part->shape.extent[0]; /* not 0: only a part of 0 rows has 0 */
    tensor = hi_tensor_view(tensor, shape, (size_t)first * row);
  }
  return tensor ? hi_tensor_on(tensor, device) : NULL;
}

typedef struct slab {
  const hi_part *part;
  int64_t first, count;
} slab;

static void write_slab(const void *argument, void *memory, size_t bytes) {
  const slab *s = argument;
  (void)bytes;
  hi_part_write(s->part, s->first, s->count, memory);
}

/* What a device reads while it computes has a stream of its own. */
static int landing_stream(const hi_device *device) {
  return device->synchronous ? HI_STREAM_COMPUTE : HI_STREAM_COPY;
}

/* As many rows at a time as staging memory takes well. */
static helio_status land_in_slabs(const hi_part *part, int64_t first, int64_t count, size_t row, hi_device *device,
                                  helio_place place) {
  int64_t most = (int64_t)(HI_LARGEST_STAGED / row) + 1;
  helio_status status = HELIO_OK;
  while (count > 0 && !status) {
    slab s = {part, first, count < most ? count : most};
    status = hi_copy_in_written(device, landing_stream(device), place, (size_t)s.count * row, write_slab, &s);
    place.offset += (size_t)s.count * row;
    first += s.count;
    count -= s.count;
  }
  return status;
}

static helio_status land_rows(const hi_part *part, int64_t first, int64_t count, hi_device *device, helio_place place) {
  size_t row = hi_part_bytes(part) / (size_t)part->indices->count;
  if (!device->synchronous || !device->host_memory) return land_in_slabs(part, first, count, row, device, place);
  char *memory = device->member.memory->native_buffer(place.buffer);
  hi_part_write(part, first, count, memory + place.offset);
  return HELIO_OK;
}

static helio_tensor *land_part(const hi_part *part, int64_t first, int64_t count, hi_device *device) {
  helio_shape shape = part->shape;
  if (count < 0) {
    first = 0;
    count = shape.rank ? shape.extent[0] : 1;
  } else {
    shape.extent[0] = count;
  }
  if (part->tensor) return land_tensor(part, first, &shape, device);
  int stream = landing_stream(device);
  helio_tensor *tensor = hi_tensor_new_on(device, stream, part->type, &shape, "dataset");
  if (!tensor || !tensor->elements) return tensor;
  hi_block_used(tensor->block, HI_STREAM_COMPUTE); /* by whoever waits for its arrival */
  helio_place place = hi_tensor_place(tensor);
  helio_status status;
  if (part->indices) {
    status = land_rows(part, first, count, device, place);
  } else {
    size_t row = hi_tensor_bytes(tensor) / (size_t)count;
    const char *data = (const char *)hi_part_data(part) + (size_t)first * row;
    status = hi_copy_in_on(device, stream, place, data, hi_tensor_bytes(tensor));
  }
  return status ? NULL : tensor;
}

/* ---- items ---- */

static helio_status land(const hi_item *item, int64_t first, int64_t count, hi_device *device, helio_element *element) {
  helio_element landed = {.count = item->count};
  helio_status status = hi_device_use(device);
  if (status || !hi_device_stream(device, landing_stream(device))) return helio_error_pending();
  if (count >= 0) {
    int64_t rows = hi_item_rows(item);
    if (rows < 0) return helio_error_pending();
    if (first < 0 || first > rows || count > rows - first) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "a batch of %lld rows has no %lld from row %lld on", (long long)rows,
                     (long long)count, (long long)first);
    }
  }
  for (int i = 0; i < item->count; i++) {
    landed.part[i] = land_part(&item->part[i], first, count, device);
    if (!landed.part[i]) return helio_error_pending();
  }
  *element = landed;
  return HELIO_OK;
}

/* Is there a part that is still on the host? */
static bool comes_from_host(const hi_item *item) {
  bool found = false;
  for (int i = 0; i < item->count && !found; i++) found = !item->part[i].tensor;
  return found;
}

static helio_status land_and_mark(const hi_item *item, int64_t first, int64_t count, hi_device *device,
                                  helio_element *element, hi_point **arrival) {
  helio_element landed;
  helio_status status = land(item, first, count, device, &landed);
  if (status) return status;
  *arrival = NULL;
  if (landing_stream(device) != HI_STREAM_COMPUTE && comes_from_host(item)) {
    *arrival = hi_point_mark(device, HI_STREAM_COPY);
    if (!*arrival) return helio_error_pending();
  }
  *element = landed;
  return HELIO_OK;
}

helio_status hi_item_land_ahead(const hi_item *item, int64_t first, int64_t count, hi_device *device,
                                helio_element *element, hi_point **arrival) {
  hi_activity before = hi_progress_expose();
  helio_status status = land_and_mark(item, first, count, device, element, arrival);
  hi_progress_change(before);
  return status;
}

helio_status hi_item_land(const hi_item *item, int64_t first, int64_t count, hi_device *device,
                          helio_element *element) {
  hi_point *arrival = NULL;
  hi_activity before = hi_progress_expose();
  helio_status status = land_and_mark(item, first, count, device, element, &arrival);
  if (!status && arrival) status = hi_point_await(arrival);
  hi_point_release(arrival);
  hi_progress_change(before);
  return status;
}

hi_item *hi_item_of(const helio_element *element) {
  hi_item *item = hi_item_new(element->count);
  for (int i = 0; item && i < element->count; i++) hi_part_set_tensor(&item->part[i], element->part[i]);
  return item;
}

hi_item *hi_item_landed(hi_item *item, hi_device *device) {
  bool there = true;
  for (int i = 0; i < item->count; i++) {
    const helio_tensor *tensor = item->part[i].tensor;
    there = there && tensor && tensor->device == device;
  }
  if (there) {
    hi_hold(item);
    return item;
  }
  hi_item *landed = NULL;
  HELIO_POOL {
    helio_element element;
    if (!hi_item_land(item, 0, -1, device, &element)) landed = hi_item_of(&element);
  }
  return landed;
}
