/* SPDX-License-Identifier: Apache-2.0 */
/* Good: built when the ABI had none of the optional entries. Its entry and tables end before them; what stands behind
 * their ends belongs to nobody, and whoever calls it gets nonsense. */
#define MINIMAL_NAME         "short-tables"
#define MINIMAL_SIZE         HELIO_STRUCT_SIZE(helio_plugin, kernels)
#define MINIMAL_DEVICES      &short_devices
#define MINIMAL_MEMORY       &short_memory
#define MINIMAL_STREAMS      &short_streams
#define MINIMAL_COLLECTIVE   ((const helio_collective_table *)&behind_the_end)
#define MINIMAL_CAPABILITIES HELIO_CAPABLE_SYNCHRONOUS
#define MINIMAL_OWN_ENTRY
#include "minimal.h"

/* A size that no table could have. */
static const size_t behind_the_end = 1;

static void *nonsense_device(helio_backend_device *device) {
  return (char *)device + 1;
}

static void *nonsense_buffer(helio_buffer *buffer) {
  return (char *)buffer + 1;
}

static void *nonsense_stream(helio_stream *stream) {
  return (char *)stream + 1;
}

static helio_status nonsense_allocate(helio_backend_device *device, size_t bytes, void **memory) {
  (void)device, (void)bytes, (void)memory;
  return HELIO_DEVICE_FAILURE;
}

static const helio_device_table short_devices = {
    .size = HELIO_STRUCT_SIZE(helio_device_table, synchronize),
    .count = minimal_count,
    .describe = minimal_describe,
    .open = minimal_open,
    .close = minimal_close,
    .memory_info = minimal_memory_info,
    .synchronize = minimal_device_synchronize,
    .native_device = nonsense_device,
};

static const helio_memory_table short_memory = {
    .size = HELIO_STRUCT_SIZE(helio_memory_table, fill),
    .allocate = minimal_allocate,
    .free = minimal_free,
    .copy_in = minimal_copy_in,
    .copy_out = minimal_copy_out,
    .copy = minimal_copy,
    .fill = minimal_fill,
    .host_allocate = nonsense_allocate,
    .native_buffer = nonsense_buffer,
};

static const helio_stream_table short_streams = {
    .size = HELIO_STRUCT_SIZE(helio_stream_table, wait),
    .create = minimal_stream_create,
    .destroy = minimal_stream_destroy,
    .synchronize = minimal_stream_synchronize,
    .event_create = minimal_event_create,
    .event_destroy = minimal_event_destroy,
    .event_record = minimal_event_record,
    .event_query = minimal_event_passed,
    .event_synchronize = minimal_event_passed,
    .wait = minimal_stream_wait,
    .native_stream = nonsense_stream,
};

const helio_plugin helio_plugin_entry = MINIMAL_ENTRY;
