/* SPDX-License-Identifier: Apache-2.0 */
#include "device/point.h"

#include <stdlib.h>

#include "runtime/error.h"

struct hi_point {
  hi_device *device; /* in whose list it is; NULL: that was closed */
  helio_event *event;
  bool held;
  struct hi_point *next;
};

/* How many are needed at a time depends on how far threads that read ahead happen to have come: with a handful made at
 * once a training is steady from its first steps on. */
enum { AT_ONCE = 16 };

static helio_status make_one(hi_device *device) {
  hi_point *point = calloc(1, sizeof *point);
  if (!point) return HELIO_OUT_OF_MEMORY;
  helio_status status = device->member.streams->event_create(device->member.device, &point->event);
  if (status) {
    free(point);
    return status;
  }
  point->device = device;
  point->next = device->points;
  device->points = point;
  return HELIO_OK;
}

/* One is enough. */
static helio_status make(hi_device *device, hi_point **made) {
  helio_status status = make_one(device);
  if (status) return status;
  *made = device->points;
  for (int i = 1; i < AT_ONCE && !status; i++) status = make_one(device);
  return HELIO_OK;
}

static helio_status take(hi_device *device, hi_point **taken) {
  helio_status status = hi_device_lock(device);
  if (status) return status;
  hi_point *found = device->points;
  while (found && found->held) found = found->next;
  if (!found) status = make(device, &found);
  if (found) found->held = true;
  pthread_mutex_unlock(&device->lock);
  *taken = found;
  return status;
}

hi_point *hi_point_mark(hi_device *device, int index) {
  hi_point *point = NULL;
  helio_stream *stream = hi_device_stream(device, index);
  if (!stream) return NULL;
  hi_reason_clear();
  helio_status status = take(device, &point);
  if (!status) status = device->member.streams->event_record(device->member.device, point->event, stream);
  if (!status) return point;
  hi_point_release(point);
  hi_device_failed(device, status, "marking a point of a stream");
  return NULL;
}

helio_status hi_point_await(const hi_point *point) {
  hi_device *device = point->device;
  const helio_member *m = &device->member;
  hi_reason_clear();
  helio_status status = m->streams->wait(m->device, device->streams[HI_STREAM_COMPUTE], point->event);
  return status ? hi_device_failed(device, status, "waiting for another stream") : HELIO_OK;
}

helio_status hi_point_wait(const hi_point *point) {
  hi_device *device = point->device;
  hi_reason_clear();
  helio_status status = device->member.streams->event_synchronize(device->member.device, point->event);
  return status ? hi_device_failed(device, status, "waiting for the step") : HELIO_OK;
}

bool hi_point_passed(const hi_point *point) {
  hi_reason_clear();
  return point->device->member.streams->event_query(point->device->member.device, point->event) != HELIO_NOT_READY;
}

void hi_point_release(hi_point *point) {
  if (!point) return;
  hi_device *device = point->device;
  if (!device) {
    free(point);
  } else if (!hi_device_lock(device)) { /* one that hangs keeps it */
    point->held = false;
    pthread_mutex_unlock(&device->lock);
  }
}

void hi_points_finish(hi_device *device) {
  for (int i = 0; i < HI_STEPS_IN_FLIGHT; i++) hi_point_release(atomic_exchange(&device->flight[i], NULL));
  while (device->points) {
    hi_point *point = device->points;
    device->points = point->next;
    device->member.streams->event_destroy(device->member.device, point->event);
    point->device = NULL;
    if (!point->held) free(point);
  }
}

/* ---- steps ---- */

helio_status hi_flight_begin(hi_device *device) {
  if (device->synchronous) return HELIO_OK;
  hi_point *oldest = atomic_exchange(&device->flight[HI_STEPS_IN_FLIGHT - 1], NULL);
  helio_status status = oldest ? hi_point_wait(oldest) : HELIO_OK;
  hi_point_release(oldest);
  return status;
}

/* Each moves on by one place. Two strategies at a time on one device push each other's out: they wait less. */
helio_status hi_flight_end(hi_device *device) {
  if (device->synchronous) return HELIO_OK;
  hi_point *point = hi_point_mark(device, HI_STREAM_COMPUTE);
  if (!point) return helio_error_pending();
  for (int i = 0; i < HI_STEPS_IN_FLIGHT; i++) point = atomic_exchange(&device->flight[i], point);
  hi_point_release(point);
  return HELIO_OK;
}

const hi_point *hi_flight_last(hi_device *device) {
  return atomic_load(&device->flight[0]);
}
