/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest backend that works: one device of class CPU on host memory, synchronous, without kernels. The plugins of
 * this folder are this one with a single defect each: a file defines the macro it wants otherwise and includes this.
 *
 *   MINIMAL_NAME                          required: its name
 *   MINIMAL_SIZE, _MAGIC, _MAJOR, _MINOR  the head of the entry
 *   MINIMAL_PROBE, _INIT                  functions, declared before the inclusion
 *   MINIMAL_DEVICES, _MEMORY, _STREAMS    tables, likewise
 *   MINIMAL_COLLECTIVE, _PARAMETERS       likewise, NULL otherwise
 *   MINIMAL_CAPABILITIES                  of the device
 *   MINIMAL_OWN_ENTRY                     the file defines the entry itself, with the initializer MINIMAL_ENTRY
 *
 * Functions are inline so that those which a file replaces cause no warning. */
#ifndef MINIMAL_H
#define MINIMAL_H

#include <helio/plugin.h>

#include <stdio.h>
#include <string.h>

#ifndef MINIMAL_SIZE
#define MINIMAL_SIZE sizeof(helio_plugin)
#endif
#ifndef MINIMAL_MAGIC
#define MINIMAL_MAGIC HELIO_PLUGIN_MAGIC
#endif
#ifndef MINIMAL_MAJOR
#define MINIMAL_MAJOR HELIO_ABI_MAJOR
#endif
#ifndef MINIMAL_MINOR
#define MINIMAL_MINOR HELIO_ABI_MINOR
#endif
#ifndef MINIMAL_PROBE
#define MINIMAL_PROBE minimal_probe
#endif
#ifndef MINIMAL_INIT
#define MINIMAL_INIT minimal_init
#endif
#ifndef MINIMAL_DEVICES
#define MINIMAL_DEVICES &minimal_devices
#endif
#ifndef MINIMAL_MEMORY
#define MINIMAL_MEMORY &minimal_memory
#endif
#ifndef MINIMAL_STREAMS
#define MINIMAL_STREAMS &minimal_streams
#endif
#ifndef MINIMAL_COLLECTIVE
#define MINIMAL_COLLECTIVE NULL
#endif
#ifndef MINIMAL_PARAMETERS
#define MINIMAL_PARAMETERS NULL
#endif
#ifndef MINIMAL_CAPABILITIES
#define MINIMAL_CAPABILITIES (HELIO_CAPABLE_SYNCHRONOUS | HELIO_CAPABLE_HOST_MEMORY)
#endif

enum { MINIMAL_BYTES = 256 << 20 };

struct helio_plugin_state {
  const helio_host *host;
};

struct helio_backend_device {
  const helio_host *host;
};

/* The bytes follow; 64 of them for the head keep them aligned. */
struct helio_buffer {
  _Alignas(64) const helio_host *host;
};

struct helio_stream {
  helio_backend_device *device;
};

struct helio_event {
  helio_backend_device *device;
};

static inline helio_status minimal_probe(const helio_host *host, helio_probe_answer *answer) {
  (void)host;
  answer->devices = 1;
  snprintf(answer->reason, sizeof answer->reason, "one device without kernels");
  return HELIO_OK;
}

static inline helio_status minimal_init(const helio_host *host, helio_plugin_state **state) {
  helio_plugin_state *made = host->allocate(host, sizeof *made);
  if (made == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  made->host = host;
  *state = made;
  return HELIO_OK;
}

static inline void minimal_finish(helio_plugin_state *state) {
  state->host->release(state->host, state);
}

static inline helio_status minimal_count(helio_plugin_state *state, uint32_t *count) {
  (void)state;
  *count = 1;
  return HELIO_OK;
}

static inline helio_status minimal_describe(helio_plugin_state *state, uint32_t index,
                                            helio_device_description *description) {
  if (index != 0) return state->host->fail(state->host, HELIO_NO_DEVICE, "there is no device %u", index);
  const helio_device_description full = {
      .size = description->size,
      .device_class = HELIO_CLASS_CPU,
      .capabilities = MINIMAL_CAPABILITIES,
      .native_api = "host",
      .name = "Minimal device",
      .vendor = "",
      .architecture = "minimal",
      .bus_id = "",
      .memory = MINIMAL_BYTES,
      .compute_units = 1,
      .alignment = 64,
  };
  memcpy(description, &full, description->size < sizeof full ? description->size : sizeof full);
  return HELIO_OK;
}

static inline helio_status minimal_open(helio_plugin_state *state, uint32_t index, const helio_open_options *options,
                                        helio_backend_device **device) {
  const helio_host *host = state->host;
  (void)options;
  if (index != 0) return host->fail(host, HELIO_NO_DEVICE, "there is no device %u", index);
  helio_backend_device *made = host->allocate(host, sizeof *made);
  if (made == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a device");
  made->host = host;
  *device = made;
  return HELIO_OK;
}

static inline void minimal_close(helio_backend_device *device) {
  device->host->release(device->host, device);
}

static inline helio_status minimal_memory_info(helio_backend_device *device, uint64_t *free, uint64_t *total) {
  (void)device;
  *free = *total = MINIMAL_BYTES;
  return HELIO_OK;
}

static inline helio_status minimal_device_synchronize(helio_backend_device *device) {
  (void)device;
  return HELIO_OK;
}

static const helio_device_table minimal_devices __attribute__((unused)) = {
    .size = sizeof(helio_device_table),
    .count = minimal_count,
    .describe = minimal_describe,
    .open = minimal_open,
    .close = minimal_close,
    .memory_info = minimal_memory_info,
    .synchronize = minimal_device_synchronize,
};

static inline void *minimal_native_buffer(helio_buffer *buffer) {
  return buffer + 1;
}

static inline char *minimal_address(helio_place place) {
  return (char *)minimal_native_buffer(place.buffer) + place.offset;
}

static inline helio_status minimal_allocate(helio_backend_device *device, size_t bytes, helio_buffer **buffer) {
  const helio_host *host = device->host;
  helio_buffer *made = bytes < SIZE_MAX - sizeof *made ? host->allocate(host, sizeof *made + bytes) : NULL;
  if (made == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a buffer of %zu bytes", bytes);
  made->host = host;
  *buffer = made;
  return HELIO_OK;
}

static inline helio_status minimal_free(helio_backend_device *device, helio_buffer *buffer) {
  device->host->release(device->host, buffer);
  return HELIO_OK;
}

static inline helio_status minimal_copy_in(helio_backend_device *device, helio_stream *stream, helio_place target,
                                           const void *source, size_t bytes) {
  (void)device, (void)stream;
  if (bytes != 0) memcpy(minimal_address(target), source, bytes);
  return HELIO_OK;
}

static inline helio_status minimal_copy_out(helio_backend_device *device, helio_stream *stream, void *target,
                                            helio_place source, size_t bytes) {
  (void)device, (void)stream;
  if (bytes != 0) memcpy(target, minimal_address(source), bytes);
  return HELIO_OK;
}

static inline helio_status minimal_copy(helio_backend_device *device, helio_stream *stream, helio_place target,
                                        helio_place source, size_t bytes) {
  (void)device, (void)stream;
  if (bytes != 0) memcpy(minimal_address(target), minimal_address(source), bytes);
  return HELIO_OK;
}

static inline helio_status minimal_fill(helio_backend_device *device, helio_stream *stream, helio_place target,
                                        const void *pattern, size_t pattern_bytes, size_t count) {
  (void)device, (void)stream;
  for (size_t i = 0; i < count; i++) memcpy(minimal_address(target) + i * pattern_bytes, pattern, pattern_bytes);
  return HELIO_OK;
}

static const helio_memory_table minimal_memory __attribute__((unused)) = {
    .size = sizeof(helio_memory_table),
    .allocate = minimal_allocate,
    .free = minimal_free,
    .copy_in = minimal_copy_in,
    .copy_out = minimal_copy_out,
    .copy = minimal_copy,
    .fill = minimal_fill,
    .native_buffer = minimal_native_buffer,
};

static inline helio_status minimal_stream_create(helio_backend_device *device, helio_stream **stream) {
  helio_stream *made = device->host->allocate(device->host, sizeof *made);
  if (made == NULL) return device->host->fail(device->host, HELIO_OUT_OF_MEMORY, "no memory for a stream");
  made->device = device;
  *stream = made;
  return HELIO_OK;
}

static inline void minimal_stream_destroy(helio_backend_device *device, helio_stream *stream) {
  if (stream != NULL) device->host->release(device->host, stream);
}

static inline helio_status minimal_stream_synchronize(helio_backend_device *device, helio_stream *stream) {
  (void)device, (void)stream;
  return HELIO_OK;
}

static inline helio_status minimal_event_create(helio_backend_device *device, helio_event **event) {
  helio_event *made = device->host->allocate(device->host, sizeof *made);
  if (made == NULL) return device->host->fail(device->host, HELIO_OUT_OF_MEMORY, "no memory for an event");
  made->device = device;
  *event = made;
  return HELIO_OK;
}

static inline void minimal_event_destroy(helio_backend_device *device, helio_event *event) {
  if (event != NULL) device->host->release(device->host, event);
}

static inline helio_status minimal_event_record(helio_backend_device *device, helio_event *event,
                                                helio_stream *stream) {
  (void)device, (void)event, (void)stream;
  return HELIO_OK;
}

/* Everything is done when its call returns, so every event has passed. */
static inline helio_status minimal_event_passed(helio_backend_device *device, helio_event *event) {
  (void)device, (void)event;
  return HELIO_OK;
}

static inline helio_status minimal_stream_wait(helio_backend_device *device, helio_stream *stream, helio_event *event) {
  (void)device, (void)stream, (void)event;
  return HELIO_OK;
}

static const helio_stream_table minimal_streams __attribute__((unused)) = {
    .size = sizeof(helio_stream_table),
    .create = minimal_stream_create,
    .destroy = minimal_stream_destroy,
    .synchronize = minimal_stream_synchronize,
    .event_create = minimal_event_create,
    .event_destroy = minimal_event_destroy,
    .event_record = minimal_event_record,
    .event_query = minimal_event_passed,
    .event_synchronize = minimal_event_passed,
    .wait = minimal_stream_wait,
};

#define MINIMAL_ENTRY                                                                                                  \
  {                                                                                                                    \
    .size = MINIMAL_SIZE, .magic = MINIMAL_MAGIC, .abi_major = MINIMAL_MAJOR, .abi_minor = MINIMAL_MINOR,              \
    .name = MINIMAL_NAME, .version = "0.1.0", .description = "a plugin for tests", .probe = MINIMAL_PROBE,             \
    .init = MINIMAL_INIT, .finish = minimal_finish, .devices = MINIMAL_DEVICES, .memory = MINIMAL_MEMORY,              \
    .streams = MINIMAL_STREAMS, .collective = MINIMAL_COLLECTIVE, .parameters = MINIMAL_PARAMETERS                     \
  }

#ifndef MINIMAL_OWN_ENTRY
const helio_plugin helio_plugin_entry = MINIMAL_ENTRY;
#endif

#endif
