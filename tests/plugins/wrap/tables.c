/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, streams and events: every entry hands its call on. */
#include <stdlib.h>

#include "wrap.h"

/* ---- memory ---- */

static helio_status allocate(helio_backend_device *device, size_t bytes, helio_buffer **buffer) {
  wrap_call call = {.target = &device->target, .kind = WRAP_ALLOCATION, .name = "allocate", .elements = bytes};
  wrap_add(&device->target, WRAP_BUFFERS, 1);
  helio_status status = wrap_before(&call);
  if (status || call.skipped) return status;
  return wrap_after(&call, device->plugin->memory->allocate(device->inner, bytes, buffer));
}

static helio_status free_buffer(helio_backend_device *device, helio_buffer *buffer) {
  return device->plugin->memory->free(device->inner, buffer);
}

static wrap_call copy_call(helio_backend_device *device, const char *name, helio_stream *stream, helio_place target,
                           size_t bytes) {
  return (wrap_call){.target = &device->target,
                     .kind = WRAP_COPY,
                     .name = name,
                     .elements = bytes,
                     .device = device->inner,
                     .memory = device->plugin->memory,
                     .streams = device->plugin->streams,
                     .stream = stream,
                     .place = target,
                     .bytes = bytes};
}

static size_t half_of(const wrap_call *call) {
  return call->halved ? call->bytes / 2 : call->bytes;
}

static helio_status copy_in(helio_backend_device *device, helio_stream *stream, helio_place target, const void *source,
                            size_t bytes) {
  wrap_call call = copy_call(device, "copy_in", stream, target, bytes);
  wrap_add(&device->target, WRAP_COPIES_IN, 1);
  wrap_add(&device->target, WRAP_BYTES_IN, bytes);
  helio_status status = wrap_before(&call);
  if (status || call.skipped) return status;
  return wrap_after(&call, call.memory->copy_in(device->inner, stream, target, source, half_of(&call)));
}

static helio_status copy_out(helio_backend_device *device, helio_stream *stream, void *target, helio_place source,
                             size_t bytes) {
  wrap_call call = copy_call(device, "copy_out", stream, source, bytes);
  call.host = target;
  wrap_add(&device->target, WRAP_COPIES_OUT, 1);
  wrap_add(&device->target, WRAP_BYTES_OUT, bytes);
  helio_status status = wrap_before(&call);
  if (status || call.skipped) return status;
  return wrap_after(&call, call.memory->copy_out(device->inner, stream, target, source, half_of(&call)));
}

static helio_status copy_inside(helio_backend_device *device, helio_stream *stream, helio_place target,
                                helio_place source, size_t bytes) {
  wrap_call call = copy_call(device, "copy", stream, target, bytes);
  wrap_add(&device->target, WRAP_COPIES, 1);
  helio_status status = wrap_before(&call);
  if (status || call.skipped) return status;
  return wrap_after(&call, call.memory->copy(device->inner, stream, target, source, half_of(&call)));
}

static helio_status fill(helio_backend_device *device, helio_stream *stream, helio_place target, const void *pattern,
                         size_t pattern_bytes, size_t count) {
  wrap_call call = copy_call(device, "fill", stream, target, pattern_bytes * count);
  wrap_add(&device->target, WRAP_FILLS, 1);
  helio_status status = wrap_before(&call);
  if (call.halved) count = (count + 1) / 2;
  if (status || call.skipped) return status;
  return wrap_after(&call, call.memory->fill(device->inner, stream, target, pattern, pattern_bytes, count));
}

static helio_status copy_peer(helio_backend_device *device, helio_stream *stream, helio_place target,
                              helio_backend_device *from, helio_place source, size_t bytes) {
  wrap_call call = copy_call(device, "copy_peer", stream, target, bytes);
  if (!call.memory->copy_peer) return HELIO_NOT_SUPPORTED;
  wrap_add(&device->target, WRAP_COPIES, 1);
  helio_status status = wrap_before(&call);
  if (status || call.skipped) return status;
  return wrap_after(&call, call.memory->copy_peer(device->inner, stream, target, from->inner, source, half_of(&call)));
}

static helio_status host_allocate(helio_backend_device *device, size_t bytes, void **memory) {
  const helio_memory_table *table = device->plugin->memory;
  wrap_add(&device->target, WRAP_HOST_BUFFERS, 1);
  if (table->host_allocate) return table->host_allocate(device->inner, bytes, memory);
  return posix_memalign(memory, 64, bytes) == 0 ? HELIO_OK : HELIO_OUT_OF_MEMORY;
}

static void host_free(helio_backend_device *device, void *memory) {
  const helio_memory_table *table = device->plugin->memory;
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

static wrap_call event_call(helio_backend_device *device, const char *name, helio_stream *stream, bool waits) {
  return (wrap_call){.target = &device->target, .kind = WRAP_EVENT, .name = name, .stream = stream, .waits = waits};
}

static helio_status create_stream(helio_backend_device *device, helio_stream **stream) {
  wrap_add(&device->target, WRAP_OBJECTS, 1);
  return device->plugin->streams->create(device->inner, stream);
}

static void destroy_stream(helio_backend_device *device, helio_stream *stream) {
  device->plugin->streams->destroy(device->inner, stream);
}

static helio_status synchronize_stream(helio_backend_device *device, helio_stream *stream) {
  wrap_call call = event_call(device, "stream synchronize", stream, true);
  wrap_add(&device->target, WRAP_WAITS, 1);
  helio_status status = wrap_before(&call);
  if (status || call.skipped) return status;
  return wrap_after(&call, device->plugin->streams->synchronize(device->inner, stream));
}

static helio_status event_create(helio_backend_device *device, helio_event **event) {
  wrap_add(&device->target, WRAP_OBJECTS, 1);
  return device->plugin->streams->event_create(device->inner, event);
}

static void event_destroy(helio_backend_device *device, helio_event *event) {
  device->plugin->streams->event_destroy(device->inner, event);
}

static helio_status event_record(helio_backend_device *device, helio_event *event, helio_stream *stream) {
  wrap_call call = event_call(device, "event_record", stream, false);
  helio_status status = wrap_before(&call);
  if (status || call.skipped) return status;
  return wrap_after(&call, device->plugin->streams->event_record(device->inner, event, stream));
}

static helio_status event_query(helio_backend_device *device, helio_event *event) {
  wrap_call call = event_call(device, "event_query", NULL, true);
  helio_status status = wrap_before(&call);
  if (status || call.skipped) return status;
  return wrap_after(&call, device->plugin->streams->event_query(device->inner, event));
}

static helio_status event_synchronize(helio_backend_device *device, helio_event *event) {
  wrap_call call = event_call(device, "event_synchronize", NULL, true);
  helio_status passed = device->plugin->streams->event_query(device->inner, event);
  if (passed == HELIO_NOT_READY) wrap_add(&device->target, WRAP_WAITS, 1);
  helio_status status = wrap_before(&call);
  if (status || call.skipped) return status;
  return wrap_after(&call, device->plugin->streams->event_synchronize(device->inner, event));
}

static helio_status wait_for(helio_backend_device *device, helio_stream *stream, helio_event *event) {
  wrap_call call = event_call(device, "wait", stream, false);
  helio_status status = wrap_before(&call);
  if (status || call.skipped) return status;
  return wrap_after(&call, device->plugin->streams->wait(device->inner, stream, event));
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
