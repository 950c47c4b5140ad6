/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events: queues of commands, and points in them that others can wait for. */
#include "strict.h"

#include <string.h>

/* A query says "not ready" one to so many times before it drives the stream, one command at a time. */
enum { MAX_PATIENCE = 3 };

static helio_status make_stream(strict_call *call, helio_backend_device *handle, helio_stream **result) {
  strict_device *device = NULL;
  helio_status status = strict_device_get(call, handle, &device);
  if (status != HELIO_OK) return status;
  strict_stream *stream = strict_command_reserve(0) ? strict_allocate(sizeof *stream) : NULL;
  if (stream == NULL) return strict_fail(call, HELIO_OUT_OF_MEMORY, "no host memory");
  status = strict_object_add(call, &stream->object, STRICT_STREAM, device);
  if (status != HELIO_OK) {
    strict_release(stream);
    return status;
  }
  stream->next = strict_current->streams;
  strict_current->streams = stream;
  *result = stream->object.handle;
  return HELIO_OK;
}

static helio_status stream_create(helio_backend_device *device, helio_stream **stream) {
  strict_call call;
  strict_enter(&call, "stream create");
  return strict_leave(&call, make_stream(&call, device, stream));
}

static helio_status get_of(strict_call *call, helio_backend_device *device_handle, const void *handle, strict_kind kind,
                           strict_object **object) {
  strict_device *device = NULL;
  helio_status status = strict_device_get(call, device_handle, &device);
  return status == HELIO_OK ? strict_object_of(call, device, handle, kind, object) : status;
}

/* Ends a stream. Whatever it still holds is thrown away; points in it count as passed, so that nobody hangs. */
void strict_stream_discard(strict_call *call, strict_stream *stream) {
  if (stream->failure.status != HELIO_OK) {
    strict_violation(call, "nobody asked for a failure of stream %u: %s", stream->object.number,
                     stream->failure.message);
  }
  while (stream->head != NULL) {
    strict_command *command = stream->head;
    stream->head = command->next;
    if (command->kind == STRICT_RECORD) command->point->passed = true;
    strict_command_retire(command);
  }
  strict_stream **link = &strict_current->streams;
  while (*link != stream) link = &(*link)->next;
  *link = stream->next;
  strict_object_remove(&stream->object);
  strict_release(stream);
}

/* Queued commands are still carried out, as a driver does it. */
static void stream_destroy(helio_backend_device *device, helio_stream *handle) {
  strict_call call;
  strict_object *object = NULL;
  strict_enter(&call, "stream destroy");
  helio_status status = get_of(&call, device, handle, STRICT_STREAM, &object);
  if (status == HELIO_OK) {
    status = strict_drain_stream(&call, (strict_stream *)object);
    if (status == HELIO_OK) strict_stream_discard(&call, (strict_stream *)object);
  }
  if (status != HELIO_OK) strict_violation(&call, "%s", call.message);
  strict_leave(&call, HELIO_OK);
}

static helio_status synchronize(strict_call *call, helio_backend_device *device, helio_stream *handle) {
  strict_object *object = NULL;
  helio_status status = get_of(call, device, handle, STRICT_STREAM, &object);
  if (status == HELIO_OK) status = strict_drain_stream(call, (strict_stream *)object);
  if (status == HELIO_OK) status = strict_take_failure(call, &((strict_stream *)object)->failure);
  if (status == HELIO_OK) status = strict_take_failure(call, &strict_current->violation);
  return status;
}

static helio_status stream_synchronize(helio_backend_device *device, helio_stream *stream) {
  strict_call call;
  strict_enter(&call, "stream synchronize");
  return strict_leave(&call, synchronize(&call, device, stream));
}

/* Of as many points as events and one more, one is spare when all queues are empty: an event holds one at most. */
static bool reserve_points(void) {
  while (strict_current->points <= strict_current->events) {
    strict_point *point = strict_allocate(sizeof *point);
    if (point == NULL) return false;
    strict_current->points++;
    point->next_spare = strict_current->spare_points;
    strict_current->spare_points = point;
  }
  return true;
}

static strict_point *new_point(strict_stream *stream) {
  if (strict_current->spare_points == NULL) {
    strict_point *made = strict_allocate(sizeof *made);
    if (made != NULL) strict_current->points++;
    strict_current->spare_points = made;
  }
  while (strict_current->spare_points == NULL && strict_run_any()) continue;
  strict_point *point = strict_current->spare_points;
  if (point == NULL) return NULL;
  strict_current->spare_points = point->next_spare;
  memset(point, 0, sizeof *point);
  point->references = 1;
  point->stream = stream;
  point->patience = (uint32_t)(1 + strict_random(MAX_PATIENCE));
  return point;
}

void strict_point_release(strict_point *point) {
  if (--point->references != 0) return;
  point->next_spare = strict_current->spare_points;
  strict_current->spare_points = point;
}

static helio_status make_event(strict_call *call, helio_backend_device *handle, helio_event **result) {
  strict_device *device = NULL;
  helio_status status = strict_device_get(call, handle, &device);
  if (status != HELIO_OK) return status;
  strict_event *event = strict_allocate(sizeof *event);
  if (event == NULL) return strict_fail(call, HELIO_OUT_OF_MEMORY, "no host memory");
  strict_current->events++;
  status = reserve_points() ? strict_object_add(call, &event->object, STRICT_EVENT, device)
                            : strict_fail(call, HELIO_OUT_OF_MEMORY, "no host memory for a point");
  if (status != HELIO_OK) {
    strict_current->events--;
    strict_release(event);
    return status;
  }
  *result = event->object.handle;
  return HELIO_OK;
}

static helio_status event_create(helio_backend_device *device, helio_event **event) {
  strict_call call;
  strict_enter(&call, "event create");
  return strict_leave(&call, make_event(&call, device, event));
}

void strict_event_discard(strict_event *event) {
  if (event->point != NULL) strict_point_release(event->point);
  strict_object_remove(&event->object);
  strict_current->events--;
  strict_release(event);
}

static void event_destroy(helio_backend_device *device, helio_event *handle) {
  strict_call call;
  strict_object *object = NULL;
  strict_enter(&call, "event destroy");
  if (get_of(&call, device, handle, STRICT_EVENT, &object) == HELIO_OK) {
    strict_event *event = (strict_event *)object;
    if (event->queued_waits != 0) {
      strict_violation(&call, "event %u is destroyed while %u queued commands wait for it", object->number,
                       event->queued_waits);
    }
    strict_event_discard(event);
  } else {
    strict_violation(&call, "%s", call.message);
  }
  strict_leave(&call, HELIO_OK);
}

/* Recording is a command too: even on an empty stream the event has not passed before somebody drives it. */
static helio_status record(strict_call *call, helio_backend_device *device, helio_event *event_handle,
                           helio_stream *stream_handle) {
  strict_object *event_object = NULL, *stream_object = NULL;
  helio_status status = get_of(call, device, event_handle, STRICT_EVENT, &event_object);
  if (status == HELIO_OK) status = get_of(call, device, stream_handle, STRICT_STREAM, &stream_object);
  if (status != HELIO_OK) return status;
  strict_event *event = (strict_event *)event_object;
  strict_command *command = strict_command_new(0);
  if (command == NULL) return strict_fail(call, HELIO_OUT_OF_MEMORY, "no host memory for a command");
  strict_point *point = new_point((strict_stream *)stream_object);
  command->kind = STRICT_RECORD;
  command->name = call->name;
  command->point = point;
  if (point == NULL) {
    strict_command_retire(command);
    return strict_fail(call, HELIO_OUT_OF_MEMORY, "no host memory for a point");
  }
  if (event->point != NULL) strict_point_release(event->point);
  event->point = point;
  event->stream_handle = stream_handle;
  point->references++;
  strict_enqueue((strict_stream *)stream_object, command);
  return HELIO_OK;
}

static helio_status event_record(helio_backend_device *device, helio_event *event, helio_stream *stream) {
  strict_call call;
  strict_enter(&call, "event record");
  return strict_leave(&call, record(&call, device, event, stream));
}

/* Failures of the stream that the event was recorded on, if that is still there. */
static helio_status take_event_failure(strict_call *call, const strict_event *event) {
  strict_stream *stream = (strict_stream *)strict_object_find(event->stream_handle, STRICT_STREAM);
  return stream != NULL ? strict_take_failure(call, &stream->failure) : HELIO_OK;
}

static helio_status query(strict_call *call, helio_backend_device *device, helio_event *handle) {
  strict_object *object = NULL;
  helio_status status = get_of(call, device, handle, STRICT_EVENT, &object);
  if (status != HELIO_OK) return status;
  strict_event *event = (strict_event *)object;
  strict_point *point = event->point;
  if (point != NULL && !point->passed && point->patience != 0) {
    point->patience--;
    return HELIO_NOT_READY;
  }
  if (point != NULL && !point->passed && !strict_progress(point->stream, true)) {
    return strict_fail(call, HELIO_DEVICE_FAILURE, "deadlock: event %u can never pass", object->number);
  }
  status = take_event_failure(call, event);
  if (status != HELIO_OK) return status;
  return point == NULL || point->passed ? HELIO_OK : HELIO_NOT_READY;
}

static helio_status event_query(helio_backend_device *device, helio_event *event) {
  strict_call call;
  strict_enter(&call, "event query");
  return strict_leave(&call, query(&call, device, event));
}

static helio_status event_wait_on_host(strict_call *call, helio_backend_device *device, helio_event *handle) {
  strict_object *object = NULL;
  helio_status status = get_of(call, device, handle, STRICT_EVENT, &object);
  if (status != HELIO_OK) return status;
  strict_event *event = (strict_event *)object;
  if (event->point != NULL) status = strict_drain_point(call, event->point);
  if (status == HELIO_OK) status = take_event_failure(call, event);
  if (status == HELIO_OK) status = strict_take_failure(call, &strict_current->violation);
  return status;
}

static helio_status event_synchronize(helio_backend_device *device, helio_event *event) {
  strict_call call;
  strict_enter(&call, "event synchronize");
  return strict_leave(&call, event_wait_on_host(&call, device, event));
}

/* The point is the one that the event has now: recording the event again later does not move it. */
static helio_status queue_wait(strict_call *call, helio_backend_device *device, helio_stream *stream_handle,
                               helio_event *event_handle) {
  strict_object *stream_object = NULL, *event_object = NULL;
  helio_status status = get_of(call, device, stream_handle, STRICT_STREAM, &stream_object);
  if (status == HELIO_OK) status = strict_object_get(call, event_handle, STRICT_EVENT, &event_object);
  if (status != HELIO_OK) return status;
  strict_event *event = (strict_event *)event_object;
  if (event->point == NULL || event->point->passed) return HELIO_OK;
  strict_command *command = strict_command_new(0);
  if (command == NULL) return strict_fail(call, HELIO_OUT_OF_MEMORY, "no host memory for a command");
  command->kind = STRICT_WAIT;
  command->name = call->name;
  command->point = event->point;
  command->event_handle = event_handle;
  event->point->references++;
  event->queued_waits++;
  strict_enqueue((strict_stream *)stream_object, command);
  return HELIO_OK;
}

static helio_status stream_wait(helio_backend_device *device, helio_stream *stream, helio_event *event) {
  strict_call call;
  strict_enter(&call, "stream wait");
  return strict_leave(&call, queue_wait(&call, device, stream, event));
}

const helio_stream_table strict_stream_table = {
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
};
