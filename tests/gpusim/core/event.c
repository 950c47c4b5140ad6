/* SPDX-License-Identifier: Apache-2.0 */
/* Events. Recording one queues a mark; who waits for the event waits for the mark that it has at that moment. */
#include "internal.h"

struct sim_event {
  sim_object object;
  bool timed;
  sim_mark *mark; /* NULL: never recorded */
};

sim_status sim_event_create(sim_device *device, bool timed, sim_event **event) {
  sim_status status = sim_count(SIM_CREATION, device);
  if (status != SIM_OK) return status;
  sim_event *made = sim_new("event", sizeof *made, device);
  if (!made) return SIM_OUT_OF_MEMORY;
  made->timed = timed;
  *event = made;
  return SIM_OK;
}

static void set_mark(sim_event *event, sim_mark *mark) {
  sim_lock();
  sim_mark *old = event->mark;
  event->mark = mark;
  sim_unlock();
  sim_mark_release(old);
}

/* The event's mark, held once more; NULL: none. */
static sim_mark *hold_mark(sim_event *event) {
  sim_lock();
  sim_mark *mark = event->mark;
  if (mark) mark->holders++;
  sim_unlock();
  return mark;
}

sim_status sim_event_delete(sim_event *event) {
  set_mark(event, NULL);
  sim_delete(event);
  return SIM_OK;
}

sim_status sim_event_record(sim_event *event, sim_stream *stream) {
  const sim_device *device = sim_stream_device(stream);
  if (event->object.device != device) {
    sim_violation("wrong device", "an event of %s %d is recorded on a stream of %s %d", event->object.device->name,
                  event->object.device->index, device->name, device->index);
    return SIM_INVALID_HANDLE;
  }
  sim_status status = sim_device_health(device);
  if (status == SIM_OK) set_mark(event, sim_queue_mark(stream));
  return status;
}

sim_status sim_stream_wait(sim_stream *stream, sim_event *event) {
  sim_status status = sim_device_health(sim_stream_device(stream));
  sim_mark *mark = hold_mark(event);
  if (status == SIM_OK && mark) sim_queue_wait(stream, mark);
  sim_mark_release(mark);
  return status;
}

sim_status sim_event_finish(sim_event *event) {
  if (sim_capture_forbids()) return SIM_CAPTURE_UNSUPPORTED;
  sim_mark *mark = hold_mark(event);
  if (!mark) return sim_device_health(event->object.device);
  sim_status status = sim_await(mark->stream, mark->sequence);
  if (status == SIM_OK) sim_host_learn(&mark->past);
  sim_mark_release(mark);
  return status;
}

sim_status sim_event_query(sim_event *event) {
  if (sim_capture_forbids()) return SIM_CAPTURE_UNSUPPORTED;
  sim_mark *mark = hold_mark(event);
  if (!mark) return SIM_OK;
  sim_status status = sim_poll_for(mark->stream, mark->sequence);
  if (status == SIM_OK) sim_host_learn(&mark->past);
  sim_mark_release(mark);
  return status;
}

static sim_status subtract(float *milliseconds, const sim_event *from, const sim_event *to) {
  if (!from->timed || !to->timed) {
    sim_violation("event without timing", "the time between two events is asked for, of which one was made without");
    return SIM_INVALID_HANDLE;
  }
  if (from->object.device != to->object.device) {
    sim_violation("wrong device", "the time between events of two devices, %d and %d, is asked for",
                  from->object.device->index, to->object.device->index);
    return SIM_INVALID_HANDLE;
  }
  if (!from->mark || !to->mark) return SIM_INVALID_HANDLE;
  if (!from->mark->done || !to->mark->done) return SIM_NOT_READY;
  sim_host_learn(&from->mark->past);
  sim_host_learn(&to->mark->past);
  *milliseconds = (float)(to->mark->time - from->mark->time);
  return SIM_OK;
}

sim_status sim_event_elapsed(float *milliseconds, sim_event *from, sim_event *to) {
  sim_lock();
  sim_status status = subtract(milliseconds, from, to);
  sim_unlock();
  return status;
}
