/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events. Every command is done when its call returns, so neither has anything to remember: they are
 * objects only so that each has an address and its own life. */
#include "cpu.h"

struct helio_stream {
  helio_backend_device *device;
};

struct helio_event {
  helio_backend_device *device;
};

static helio_status stream_create(helio_backend_device *device, helio_stream **stream) {
  helio_stream *made = device->host->allocate(device->host, sizeof *made);
  if (made == NULL) return device->host->fail(device->host, HELIO_OUT_OF_MEMORY, "no memory for a stream");
  made->device = device;
  *stream = made;
  return HELIO_OK;
}

static void stream_destroy(helio_backend_device *device, helio_stream *stream) {
  if (stream != NULL) device->host->release(device->host, stream);
}

static helio_status stream_synchronize(helio_backend_device *device, helio_stream *stream) {
  (void)device;
  (void)stream;
  return HELIO_OK;
}

static helio_status event_create(helio_backend_device *device, helio_event **event) {
  helio_event *made = device->host->allocate(device->host, sizeof *made);
  if (made == NULL) return device->host->fail(device->host, HELIO_OUT_OF_MEMORY, "no memory for an event");
  made->device = device;
  *event = made;
  return HELIO_OK;
}

static void event_destroy(helio_backend_device *device, helio_event *event) {
  if (event != NULL) device->host->release(device->host, event);
}

static helio_status event_record(helio_backend_device *device, helio_event *event, helio_stream *stream) {
  (void)device;
  (void)event;
  (void)stream;
  return HELIO_OK;
}

static helio_status event_passed(helio_backend_device *device, helio_event *event) {
  (void)device;
  (void)event;
  return HELIO_OK;
}

static helio_status stream_wait(helio_backend_device *device, helio_stream *stream, helio_event *event) {
  (void)device;
  (void)stream;
  (void)event;
  return HELIO_OK;
}

const helio_stream_table cpu_stream_table = {
    .size = sizeof(helio_stream_table),
    .create = stream_create,
    .destroy = stream_destroy,
    .synchronize = stream_synchronize,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_passed,
    .event_synchronize = event_passed,
    .wait = stream_wait,
};
