/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: each opened one stands on a device of the inner plugin of its own, with one thread. */
#include "strict.h"

#include <stdio.h>
#include <string.h>

static helio_status device_count(helio_plugin_state *state, uint32_t *count) {
  (void)state;
  strict_call call;
  strict_enter(&call, "count");
  if (strict_current == NULL) return strict_leave(&call, HELIO_WRONG_STATE);
  *count = strict_current->settings.devices;
  return strict_leave(&call, HELIO_OK);
}

static helio_status check_index(strict_call *call, uint32_t index) {
  if (strict_current == NULL) return strict_fail(call, HELIO_WRONG_STATE, "before init or after finish");
  uint32_t count = strict_current->settings.devices;
  if (index < count) return HELIO_OK;
  return strict_fail(call, HELIO_NO_DEVICE, "device %u of %u", index, count);
}

static helio_status device_describe(helio_plugin_state *state, uint32_t index, helio_device_description *description) {
  static const char *const bus_ids[STRICT_MAX_DEVICES] = {"strict:0", "strict:1", "strict:2", "strict:3",
                                                          "strict:4", "strict:5", "strict:6", "strict:7"};
  (void)state;
  strict_call call;
  strict_enter(&call, "describe");
  helio_status status = check_index(&call, index);
  if (status != HELIO_OK) return strict_leave(&call, status);
  helio_device_description full = {
      .size = description->size,
      .device_class = HELIO_CLASS_GPU,
      .capabilities = 0,
      .native_api = "none",
      .name = "Strict test device",
      .vendor = "Heliostat",
      .architecture = "strict",
      .bus_id = bus_ids[index],
      .memory = strict_current->settings.memory,
      .compute_units = 1,
      .alignment = STRICT_ALIGNMENT,
  };
  /* Written no further than the core's size, whatever this plugin knows. */
  memcpy(description, &full, description->size < sizeof full ? description->size : sizeof full);
  return strict_leave(&call, HELIO_OK);
}

static helio_status check_options(strict_call *call, const helio_open_options *options) {
  if (options->size < HELIO_STRUCT_SIZE(helio_open_options, logical_count)) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "options of %zu bytes", options->size);
  }
  if (!helio_struct_fits(options, sizeof *options)) {
    return strict_fail(call, HELIO_NOT_SUPPORTED, "options that this plugin does not know are set");
  }
  if (options->logical_count == 0 || options->logical_index >= options->logical_count) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "logical device %u of %u", options->logical_index,
                       options->logical_count);
  }
  return HELIO_OK;
}

/* One thread, because commands run on the thread that asks for them and the order of sums shall not vary. */
static helio_status open_inner(strict_call *call, strict_device *device) {
  const helio_plugin *inner = strict_current->inner.plugin;
  const helio_open_options options = {.size = sizeof options, .logical_count = 1, .threads = 1};
  helio_status status = inner->devices->open(strict_current->inner.state, 0, &options, &device->inner);
  if (status != HELIO_OK) return strict_inner_fail(call, status, "open");
  status = inner->streams->create(device->inner, &device->inner_stream);
  if (status == HELIO_OK) return HELIO_OK;
  inner->devices->close(device->inner);
  return strict_inner_fail(call, status, "create a stream");
}

static helio_status open_checked(strict_call *call, uint32_t index, const helio_open_options *options,
                                 helio_backend_device **result) {
  helio_status status = check_index(call, index);
  if (status == HELIO_OK) status = check_options(call, options);
  if (status != HELIO_OK) return status;
  strict_device *device = strict_allocate(sizeof *device);
  if (device == NULL) return strict_fail(call, HELIO_OUT_OF_MEMORY, "no host memory");
  device->physical = index;
  status = open_inner(call, device);
  if (status != HELIO_OK) goto release_record;
  status = strict_object_add(call, &device->object, STRICT_DEVICE, NULL);
  if (status != HELIO_OK) goto close_inner;
  device->next = strict_current->devices;
  strict_current->devices = device;
  *result = device->object.handle;
  return HELIO_OK;

close_inner:
  strict_current->inner.plugin->streams->destroy(device->inner, device->inner_stream);
  strict_current->inner.plugin->devices->close(device->inner);
release_record:
  strict_release(device);
  return status;
}

static helio_status device_open(helio_plugin_state *state, uint32_t index, const helio_open_options *options,
                                helio_backend_device **device) {
  (void)state;
  strict_call call;
  strict_enter(&call, "open");
  return strict_leave(&call, open_checked(&call, index, options, device));
}

static void report_leaks(strict_call *call, const strict_device *device) {
  size_t counts[STRICT_KIND_COUNT] = {0}, bytes = 0;
  if (device->objects == NULL) return;
  for (const strict_object *object = device->objects; object != NULL; object = object->next) {
    counts[object->kind]++;
    if (object->kind == STRICT_BUFFER) bytes += ((const strict_buffer *)object)->bytes;
  }
  strict_violation(call, "device %u is closed with %zu buffers (%zu bytes), %zu streams, %zu events, %zu plans alive",
                   device->object.number, counts[STRICT_BUFFER], bytes, counts[STRICT_STREAM], counts[STRICT_EVENT],
                   counts[STRICT_PLAN]);
}

static strict_object *first_of(const strict_device *device, strict_kind kind) {
  strict_object *object = device->objects;
  while (object != NULL && object->kind != kind) object = object->next;
  return object;
}

/* What the core forgot goes with the device; streams first, because their commands name all the rest. */
static void discard_leaks(strict_call *call, strict_device *device) {
  strict_object *object;
  while ((object = first_of(device, STRICT_STREAM)) != NULL) strict_stream_discard(call, (strict_stream *)object);
  while ((object = first_of(device, STRICT_EVENT)) != NULL) strict_event_discard((strict_event *)object);
  while ((object = first_of(device, STRICT_PLAN)) != NULL) strict_plan_discard((strict_plan *)object);
  while ((object = first_of(device, STRICT_BUFFER)) != NULL) {
    if (strict_buffer_retire(call, (strict_buffer *)object) != HELIO_OK) strict_violation(call, "%s", call->message);
  }
}

void strict_device_close(strict_call *call, strict_device *device) {
  const helio_plugin *inner = strict_current->inner.plugin;
  report_leaks(call, device);
  discard_leaks(call, device);
  /* Freed buffers of this device lie in the quarantine and need the inner device to go. */
  strict_quarantine_empty(call);
  inner->streams->destroy(device->inner, device->inner_stream);
  inner->devices->close(device->inner);
  strict_device **link = &strict_current->devices;
  while (*link != device) link = &(*link)->next;
  *link = device->next;
  strict_object_remove(&device->object);
  strict_release(device);
}

static void device_close(helio_backend_device *handle) {
  strict_call call;
  strict_device *device = NULL;
  strict_enter(&call, "close");
  if (strict_device_get(&call, handle, &device) == HELIO_OK) {
    strict_device_close(&call, device);
  } else {
    strict_violation(&call, "%s", call.message);
  }
  strict_leave(&call, HELIO_OK);
}

static helio_status device_memory_info(helio_backend_device *handle, uint64_t *free, uint64_t *total) {
  strict_call call;
  strict_device *device = NULL;
  strict_enter(&call, "memory_info");
  helio_status status = strict_device_get(&call, handle, &device);
  if (status == HELIO_OK) {
    *total = strict_current->settings.memory;
    *free = *total - strict_current->used[device->physical];
  }
  return strict_leave(&call, status);
}

static helio_status synchronize(strict_call *call, helio_backend_device *handle) {
  strict_device *device = NULL;
  helio_status status = strict_device_get(call, handle, &device);
  if (status != HELIO_OK) return status;
  status = strict_drain_device(call, device);
  for (strict_stream *stream = strict_current->streams; status == HELIO_OK && stream != NULL; stream = stream->next) {
    if (stream->object.device == device) status = strict_take_failure(call, &stream->failure);
  }
  return status == HELIO_OK ? strict_take_failure(call, &strict_current->violation) : status;
}

static helio_status device_synchronize(helio_backend_device *device) {
  strict_call call;
  strict_enter(&call, "device synchronize");
  return strict_leave(&call, synchronize(&call, device));
}

const helio_device_table strict_device_table = {
    .size = sizeof(helio_device_table),
    .count = device_count,
    .describe = device_describe,
    .open = device_open,
    .close = device_close,
    .memory_info = device_memory_info,
    .synchronize = device_synchronize,
};
