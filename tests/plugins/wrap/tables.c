/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, memory, streams and events: every entry hands its call on. */
#include <stdlib.h>

#include "wrap.h"

static const helio_plugin *inner_of(const helio_backend_device *device) {
  return device->state->inner.plugin;
}

/* ---- devices ---- */

static helio_status count_devices(helio_plugin_state *state, uint32_t *count) {
  return state->inner.plugin->devices->count(state->inner_state, count);
}

static helio_status describe(helio_plugin_state *state, uint32_t index, helio_device_description *description) {
  return state->inner.plugin->devices->describe(state->inner_state, index, description);
}

static helio_status open_device(helio_plugin_state *state, uint32_t index, const helio_open_options *options,
                                helio_backend_device **result) {
  const helio_host *host = state->inner.real;
  helio_backend_device *device = host->allocate(host, sizeof *device);
  if (!device) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a device");
  device->state = state;
  device->number = index + options->logical_index;
  for (int i = 0; i < WRAP_KINDS; i++) atomic_init(&device->calls[i], 0);
  helio_status status = state->inner.plugin->devices->open(state->inner_state, index, options, &device->inner);
  if (status) {
    host->release(host, device);
  } else {
    *result = device;
  }
  return status;
}

static void close_device(helio_backend_device *device) {
  const helio_host *host = device->state->inner.real;
  inner_of(device)->devices->close(device->inner);
  host->release(host, device);
}

static helio_status memory_info(helio_backend_device *device, uint64_t *free_bytes, uint64_t *total) {
  return inner_of(device)->devices->memory_info(device->inner, free_bytes, total);
}

static helio_status synchronize_device(helio_backend_device *device) {
  wrap_call call = {.device = device, .kind = WRAP_EVENT, .name = "synchronize"};
  helio_status status = wrap_before(&call);
  return status ? status : wrap_after(&call, inner_of(device)->devices->synchronize(device->inner));
}

static void *native_device(helio_backend_device *device) {
  const helio_device_table *table = inner_of(device)->devices;
  return table->native_device ? table->native_device(device->inner) : NULL;
}

const helio_device_table wrap_device_table = {
    .size = sizeof(helio_device_table),
    .count = count_devices,
    .describe = describe,
    .open = open_device,
    .close = close_device,
    .memory_info = memory_info,
    .synchronize = synchronize_device,
    .native_device = native_device,
};

/* ---- memory ---- */

static helio_status allocate(helio_backend_device *device, size_t bytes, helio_buffer **buffer) {
  wrap_call call = {.device = device, .kind = WRAP_ALLOCATION, .name = "allocate", .elements = bytes};
  helio_status status = wrap_before(&call);
  return status ? status : wrap_after(&call, inner_of(device)->memory->allocate(device->inner, bytes, buffer));
}

static helio_status free_buffer(helio_backend_device *device, helio_buffer *buffer) {
  return inner_of(device)->memory->free(device->inner, buffer);
}

static wrap_call copy_call(helio_backend_device *device, const char *name, const helio_stream *stream, size_t bytes) {
  return (wrap_call){.device = device, .kind = WRAP_COPY, .name = name, .stream = stream, .elements = bytes};
}

static helio_status copy_in(helio_backend_device *device, helio_stream *stream, helio_place target, const void *source,
                            size_t bytes) {
  wrap_call call = copy_call(device, "copy_in", stream, bytes);
  helio_status status = wrap_before(&call);
  if (status) return status;
  return wrap_after(&call, inner_of(device)->memory->copy_in(device->inner, stream, target, source, bytes));
}

static helio_status copy_out(helio_backend_device *device, helio_stream *stream, void *target, helio_place source,
                             size_t bytes) {
  wrap_call call = copy_call(device, "copy_out", stream, bytes);
  helio_status status = wrap_before(&call);
  if (status) return status;
  return wrap_after(&call, inner_of(device)->memory->copy_out(device->inner, stream, target, source, bytes));
}

static helio_status copy_inside(helio_backend_device *device, helio_stream *stream, helio_place target,
                                helio_place source, size_t bytes) {
  wrap_call call = copy_call(device, "copy", stream, bytes);
  helio_status status = wrap_before(&call);
  if (status) return status;
  return wrap_after(&call, inner_of(device)->memory->copy(device->inner, stream, target, source, bytes));
}

static helio_status fill(helio_backend_device *device, helio_stream *stream, helio_place target, const void *pattern,
                         size_t pattern_bytes, size_t count) {
  wrap_call call = copy_call(device, "fill", stream, pattern_bytes * count);
  helio_status status = wrap_before(&call);
  if (status) return status;
  status = inner_of(device)->memory->fill(device->inner, stream, target, pattern, pattern_bytes, count);
  return wrap_after(&call, status);
}

static helio_status copy_peer(helio_backend_device *device, helio_stream *stream, helio_place target,
                              helio_backend_device *from, helio_place source, size_t bytes) {
  const helio_memory_table *table = inner_of(device)->memory;
  if (!table->copy_peer) return HELIO_NOT_SUPPORTED;
  wrap_call call = copy_call(device, "copy_peer", stream, bytes);
  helio_status status = wrap_before(&call);
  if (status) return status;
  return wrap_after(&call, table->copy_peer(device->inner, stream, target, from->inner, source, bytes));
}

static helio_status host_allocate(helio_backend_device *device, size_t bytes, void **memory) {
  const helio_memory_table *table = inner_of(device)->memory;
  if (table->host_allocate) return table->host_allocate(device->inner, bytes, memory);
  return posix_memalign(memory, 64, bytes) == 0 ? HELIO_OK : HELIO_OUT_OF_MEMORY;
}

static void host_free(helio_backend_device *device, void *memory) {
  const helio_memory_table *table = inner_of(device)->memory;
  if (table->host_free) {
    table->host_free(device->inner, memory);
  } else {
    free(memory);
  }
}

static void *native_buffer(helio_buffer *buffer) {
  const helio_memory_table *table = wrap_inner_plugin->memory;
  return table->native_buffer ? table->native_buffer(buffer) : NULL;
}

const helio_memory_table wrap_memory_table = {
    .size = sizeof(helio_memory_table),
    .allocate = allocate,
    .free = free_buffer,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy = copy_inside,
    .fill = fill,
    .copy_peer = copy_peer,
    .host_allocate = host_allocate,
    .host_free = host_free,
    .native_buffer = native_buffer,
};

/* ---- streams and events ---- */

static wrap_call event_call(helio_backend_device *device, const char *name, const helio_stream *stream) {
  return (wrap_call){.device = device, .kind = WRAP_EVENT, .name = name, .stream = stream};
}

static helio_status create_stream(helio_backend_device *device, helio_stream **stream) {
  return inner_of(device)->streams->create(device->inner, stream);
}

static void destroy_stream(helio_backend_device *device, helio_stream *stream) {
  inner_of(device)->streams->destroy(device->inner, stream);
}

static helio_status synchronize_stream(helio_backend_device *device, helio_stream *stream) {
  wrap_call call = event_call(device, "stream synchronize", stream);
  helio_status status = wrap_before(&call);
  return status ? status : wrap_after(&call, inner_of(device)->streams->synchronize(device->inner, stream));
}

static helio_status event_create(helio_backend_device *device, helio_event **event) {
  return inner_of(device)->streams->event_create(device->inner, event);
}

static void event_destroy(helio_backend_device *device, helio_event *event) {
  inner_of(device)->streams->event_destroy(device->inner, event);
}

static helio_status event_record(helio_backend_device *device, helio_event *event, helio_stream *stream) {
  wrap_call call = event_call(device, "event_record", stream);
  helio_status status = wrap_before(&call);
  return status ? status : wrap_after(&call, inner_of(device)->streams->event_record(device->inner, event, stream));
}

static helio_status event_query(helio_backend_device *device, helio_event *event) {
  wrap_call call = event_call(device, "event_query", NULL);
  helio_status status = wrap_before(&call);
  return status ? status : wrap_after(&call, inner_of(device)->streams->event_query(device->inner, event));
}

static helio_status event_synchronize(helio_backend_device *device, helio_event *event) {
  wrap_call call = event_call(device, "event_synchronize", NULL);
  helio_status status = wrap_before(&call);
  return status ? status : wrap_after(&call, inner_of(device)->streams->event_synchronize(device->inner, event));
}

static helio_status wait_for(helio_backend_device *device, helio_stream *stream, helio_event *event) {
  wrap_call call = event_call(device, "wait", stream);
  helio_status status = wrap_before(&call);
  return status ? status : wrap_after(&call, inner_of(device)->streams->wait(device->inner, stream, event));
}

static void *native_stream(helio_stream *stream) {
  const helio_stream_table *table = wrap_inner_plugin->streams;
  return table->native_stream ? table->native_stream(stream) : NULL;
}

const helio_stream_table wrap_stream_table = {
    .size = sizeof(helio_stream_table),
    .create = create_stream,
    .destroy = destroy_stream,
    .synchronize = synchronize_stream,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .wait = wait_for,
    .native_stream = native_stream,
};
