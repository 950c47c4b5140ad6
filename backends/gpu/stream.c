/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events: the vendor's own. */
#include "libraries.h"

#include "abi/cuda_driver.h"

#include <time.h>

static helio_status stream_create(helio_backend_device *device, helio_stream **stream) {
  const helio_host *host = device->host;
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  helio_stream *made = host->allocate(host, sizeof *made);
  if (made == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a stream");
  *made = (helio_stream){.device = device};
  vendor_result result = vendor_stream_create(&made->native);
  if (result == 0) {
    result = vendor_event_create(&made->end);
    if (result != 0) vendor_stream_destroy(made->native);
  }
  if (result != 0) {
    host->release(host, made);
    return gpu_fail(device, result, "making a stream");
  }
  *stream = made;
  return HELIO_OK;
}

static void stream_destroy(helio_backend_device *device, helio_stream *stream) {
  if (stream == NULL) return;
  bool lost = !gpu_enter_to_free(device);
  gpu_stream_libraries_close(stream, lost);
  if (!lost) {
    vendor_event_destroy(stream->end);
    vendor_stream_destroy(stream->native);
  }
  device->host->release(device->host, stream);
}

static int64_t microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* While the program captures a stream of its own into a graph, other threads may not ask whether an event has come, nor
 * wait for it, and who tries spoils the capture: unless the thread says, by the relaxed mode, that it knows that the
 * graph does not depend on it. Nothing of ours is in a graph. What the program has said of its thread is put back. */
static unsigned relax(void) {
  return vendor_capture_mode_exchange(CUDA_ABI_CAPTURE_MODE_RELAXED);
}

static vendor_result query(vendor_event *event) {
  unsigned mode = relax();
  vendor_result result = vendor_event_query(event);
  vendor_capture_mode_exchange(mode);
  return result;
}

/* The vendors' own waits either spin for as long as it takes, as that for a stream does, or always sleep, as those for
 * events here. */
static vendor_result spin_and_sleep(const helio_backend_device *device, vendor_event *event) {
  uint32_t spin_us = device->spin_us;
  for (int64_t end = spin_us > 0 ? microseconds() + spin_us : 0; end > 0 && microseconds() < end;) {
    vendor_result result = vendor_event_query(event);
    if (gpu_status_of(result) != HELIO_NOT_READY) return result;
  }
  return vendor_event_synchronize(event);
}

static vendor_result wait_for(const helio_backend_device *device, vendor_event *event) {
  unsigned mode = relax();
  vendor_result result = spin_and_sleep(device, event);
  vendor_capture_mode_exchange(mode);
  return result;
}

static helio_status stream_synchronize(helio_backend_device *device, helio_stream *stream) {
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  vendor_result result = vendor_event_record(stream->end, stream->native);
  if (result == 0) result = wait_for(device, stream->end);
  return result == 0 ? HELIO_OK : gpu_fail_late(device, result);
}

static helio_status event_create(helio_backend_device *device, helio_event **event) {
  const helio_host *host = device->host;
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  helio_event *made = host->allocate(host, sizeof *made);
  if (made == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for an event");
  *made = (helio_event){.native = NULL};
  vendor_result result = vendor_event_create(&made->native);
  if (result != 0) {
    host->release(host, made);
    return gpu_fail(device, result, "making an event");
  }
  *event = made;
  return HELIO_OK;
}

static void event_destroy(helio_backend_device *device, helio_event *event) {
  if (event == NULL) return;
  if (gpu_enter_to_free(device)) vendor_event_destroy(event->native);
  device->host->release(device->host, event);
}

static helio_status event_record(helio_backend_device *device, helio_event *event, helio_stream *stream) {
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  vendor_result result = vendor_event_record(event->native, stream->native);
  return result == 0 ? HELIO_OK : gpu_fail(device, result, "recording an event");
}

static helio_status event_query(helio_backend_device *device, helio_event *event) {
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  vendor_result result = query(event->native);
  if (result == 0) return HELIO_OK;
  return gpu_status_of(result) == HELIO_NOT_READY ? HELIO_NOT_READY : gpu_fail_late(device, result);
}

static helio_status event_synchronize(helio_backend_device *device, helio_event *event) {
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  vendor_result result = wait_for(device, event->native);
  return result == 0 ? HELIO_OK : gpu_fail_late(device, result);
}

static helio_status stream_wait(helio_backend_device *device, helio_stream *stream, helio_event *event) {
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  vendor_result result = vendor_stream_wait(stream->native, event->native);
  return result == 0 ? HELIO_OK : gpu_fail(device, result, "waiting for an event");
}

static void *stream_native(helio_stream *stream) {
  return stream->native;
}

const helio_stream_table gpu_stream_table = {
    .size = sizeof(helio_stream_table),
    .create = stream_create,
    .destroy = stream_destroy,
    .synchronize = stream_synchronize,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .wait = stream_wait,
    .native_stream = stream_native,
};
