/* SPDX-License-Identifier: Apache-2.0 */
#include "device/copy.h"

#include <stdlib.h>
#include <string.h>

#include "device/doubt.h"
#include "device/point.h"
#include "device/status.h"
#include "runtime/error.h"
#include "runtime/leaks.h"

/* ---- staging: host memory that an asynchronous device reads later than the caller may keep it ---- */

static const size_t most_staged = (size_t)64 << 20; /* of a device, in use or not */

struct hi_staging {
  void *memory;
  size_t bytes;
  helio_event *event; /* passed when the device has read it */
  bool lost;          /* nobody can tell when the device has read it: stays until the device is closed */
  struct hi_staging *next;
};

static void staging_destroy(hi_device *device, struct hi_staging *staging) {
  if (staging->event) device->member.streams->event_destroy(device->member.device, staging->event);
  if (staging->memory) device->member.memory->host_free(device->member.device, staging->memory);
  free(staging);
}

void hi_copy_finish(hi_device *device) {
  while (device->staging) {
    struct hi_staging *staging = device->staging;
    device->staging = staging->next;
    staging_destroy(device, staging);
  }
  device->staged = 0;
  hi_points_finish(device);
  for (int i = 0; i < HI_ORDER_EVENTS; i++) {
    helio_event *event = atomic_exchange(&device->order[i], NULL);
    if (event) device->member.streams->event_destroy(device->member.device, event);
  }
}

/* In steps of a quarter. A piece serves one size only: if labels took what was made for images, images would need
 * another, now and then, for a long time. */
static size_t staging_size(size_t bytes) {
  enum { LEAST = 4096 };
  if (bytes <= LEAST) return LEAST;
  size_t unit = (size_t)1 << (61 - __builtin_clzll(bytes));
  return (bytes + unit - 1) / unit * unit;
}

static helio_status staging_new(hi_device *device, size_t bytes, struct hi_staging **made) {
  struct hi_staging *staging = calloc(1, sizeof *staging);
  if (!staging) return HELIO_OUT_OF_MEMORY;
  staging->bytes = staging_size(bytes);
  helio_status status = device->member.memory->host_allocate(device->member.device, staging->bytes, &staging->memory);
  if (!status) status = device->member.streams->event_create(device->member.device, &staging->event);
  if (status) {
    staging_destroy(device, staging);
    return status;
  }
  *made = staging;
  return HELIO_OK;
}

/* Takes a piece out of the list that is large enough and that the device has read; NULL if there is none. Where there
 * is too much, others that the device has read go. */
static helio_status staging_find(hi_device *device, size_t bytes, struct hi_staging **found) {
  helio_status status = hi_device_lock(device);
  if (status) return status;
  for (struct hi_staging **link = &device->staging; *link && !*found && !status;) {
    struct hi_staging *staging = *link;
    bool fits = staging->bytes == staging_size(bytes);
    bool wanted = !staging->lost && (fits || device->staged + bytes > most_staged);
    if (wanted) status = device->member.streams->event_query(device->member.device, staging->event);
    if (!wanted || status == HELIO_NOT_READY) {
      status = HELIO_OK;
      link = &staging->next;
    } else if (!status) {
      *link = staging->next;
      device->staged -= staging->bytes;
      if (fits) *found = staging;
      if (!fits) staging_destroy(device, staging);
    }
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

static bool staging_full(hi_device *device, size_t bytes) {
  if (hi_device_lock(device)) return false;
  bool full = device->staged + bytes > most_staged;
  pthread_mutex_unlock(&device->lock);
  return full;
}

/* Whichever stream reads the pieces. */
static helio_status wait_for_readers(hi_device *device) {
  helio_status status = HELIO_OK;
  for (int i = HI_STREAM_COMPUTE; i <= HI_STREAM_COPY && !status; i++) {
    helio_stream *stream = device->streams[i];
    if (stream) status = device->member.streams->synchronize(device->member.device, stream);
  }
  return status;
}

static void staging_return(hi_device *device, struct hi_staging *staging) {
  if (hi_device_lock(device)) {
    hi_keep_for_ever(staging); /* like the device that hangs */
    return;
  }
  staging->next = device->staging;
  device->staging = staging;
  device->staged += staging->bytes;
  pthread_mutex_unlock(&device->lock);
}

/* Batches follow each other closely, and how many are on their way at a time is a matter of chance: where one needs a
 * piece, the next ones will. */
static void staging_reserve(hi_device *device, size_t bytes) {
  enum { AHEAD = 3 };
  for (int i = 0; i < AHEAD && !staging_full(device, bytes); i++) {
    struct hi_staging *spare = NULL;
    if (staging_new(device, bytes, &spare)) return; /* none of them is needed yet */
    staging_return(device, spare);
  }
}

/* A piece that nobody uses, found or made. When the device is far behind, it is waited for. */
static helio_status staging_take(hi_device *device, int stream, size_t bytes, struct hi_staging **taken) {
  helio_status status = staging_find(device, bytes, taken);
  if (!status && !*taken && staging_full(device, bytes)) {
    status = wait_for_readers(device);
    if (!status) status = staging_find(device, bytes, taken);
  }
  if (status || *taken) return status;
  status = staging_new(device, bytes, taken);
  if (!status && stream == HI_STREAM_COPY) staging_reserve(device, bytes);
  return status;
}

/* Without the event only an idle stream tells that the device is done with it. */
static helio_status staging_mark(hi_device *device, helio_stream *stream, struct hi_staging *staging) {
  const helio_member *m = &device->member;
  helio_status status = m->streams->event_record(m->device, staging->event, stream);
  if (status) staging->lost = m->streams->synchronize(m->device, stream);
  return status;
}

static helio_status copy_staged(hi_device *device, helio_stream *stream, struct hi_staging *staging, helio_place target,
                                size_t bytes) {
  const helio_member *m = &device->member;
  helio_status status = m->memory->copy_in(m->device, stream, target, staging->memory, bytes);
  if (!status) status = staging_mark(device, stream, staging);
  staging_return(device, staging);
  return status ? hi_device_failed(device, status, "copying to the device") : HELIO_OK;
}

static helio_status cannot_stage(const hi_device *device, helio_status status, size_t bytes) {
  return hi_fail(status, "preparing to copy %zu bytes to %s: %s", bytes, device->name, hi_reason(status));
}

helio_status hi_copy_in_written(hi_device *device, int stream, helio_place target, size_t bytes, hi_write *write,
                                const void *argument) {
  struct hi_staging *staging = NULL;
  hi_reason_clear();
  helio_status status = staging_take(device, stream, bytes, &staging);
  if (status) return cannot_stage(device, status, bytes);
  write(argument, staging->memory, bytes);
  return copy_staged(device, device->streams[stream], staging, target, bytes);
}

/* ---- host and device ---- */

static helio_status copy_in_directly(hi_device *device, helio_stream *stream, helio_place target, const void *source,
                                     size_t bytes) {
  const helio_member *m = &device->member;
  helio_status status = m->memory->copy_in(m->device, stream, target, source, bytes);
  if (!status && !device->synchronous)
    status = m->streams->synchronize(m->device, stream); /* `source` may change now */
  return status ? hi_device_failed(device, status, "copying to the device") : HELIO_OK;
}

/* Where no memory can be had for staging, the device is waited for. */
helio_status hi_copy_in_on(hi_device *device, int index, helio_place target, const void *source, size_t bytes) {
  struct hi_staging *staging = NULL;
  helio_stream *stream = device->streams[index];
  if (bytes == 0) return HELIO_OK;
  hi_reason_clear();
  bool directly = device->synchronous || bytes > HI_LARGEST_STAGED;
  helio_status status = directly ? HELIO_OK : staging_take(device, index, bytes, &staging);
  if (directly || status == HELIO_OUT_OF_MEMORY) return copy_in_directly(device, stream, target, source, bytes);
  if (status) return cannot_stage(device, status, bytes);
  memcpy(staging->memory, source, bytes);
  return copy_staged(device, stream, staging, target, bytes);
}

helio_status hi_copy_in(hi_device *device, helio_place target, const void *source, size_t bytes) {
  return hi_copy_in_on(device, HI_STREAM_COMPUTE, target, source, bytes);
}

static helio_status copy_out_directly(hi_device *device, void *target, helio_place source, size_t bytes) {
  hi_status_reading reading;
  helio_backend_device *handle = device->member.device;
  helio_stream *stream = device->streams[HI_STREAM_COMPUTE];
  helio_status status = HELIO_OK;
  if (bytes > 0) status = device->member.memory->copy_out(handle, stream, target, source, bytes);
  if (!status) status = hi_status_read(device, &reading, reading.words);
  bool queued = status; /* perhaps: the device would still write to what is the caller's again */
  if (!status) status = device->member.streams->synchronize(handle, stream);
  if (!status) return hi_status_judge(device, &reading);
  hi_device_failed(device, status, "copying to the host");
  if (queued) device->member.streams->synchronize(handle, stream);
  return status;
}

/* What is read of a device, behind its status words, in memory that it copies to without anybody waiting. */
enum { WORDS_BYTES = HI_STATUS_WORDS * sizeof(helio_status_word), LARGEST_FETCHED = 64 << 10 };

/* Hands the copies over; the piece's event is behind them. */
static helio_status fetch(hi_device *device, struct hi_staging *staging, hi_status_reading *reading, helio_place source,
                          size_t bytes) {
  helio_stream *stream = device->streams[HI_STREAM_COMPUTE];
  char *values = (char *)staging->memory + WORDS_BYTES;
  helio_status status = HELIO_OK;
  if (bytes > 0) status = device->member.memory->copy_out(device->member.device, stream, values, source, bytes);
  if (!status) status = hi_status_read(device, reading, staging->memory);
  helio_status marked = staging_mark(device, stream, staging); /* whatever was handed over */
  return status ? status : marked;
}

static helio_status copy_out_staged(hi_device *device, struct hi_staging *staging, void *target, helio_place source,
                                    size_t bytes, const char *what) {
  hi_status_reading reading;
  helio_status status = fetch(device, staging, &reading, source, bytes);
  if (!status) status = device->member.streams->event_synchronize(device->member.device, staging->event);
  if (status) {
    hi_device_failed(device, status, what);
  } else {
    memcpy(reading.words, staging->memory, WORDS_BYTES);
    if (bytes > 0) memcpy(target, (const char *)staging->memory + WORDS_BYTES, bytes);
  }
  staging_return(device, staging);
  return status ? status : hi_status_judge(device, &reading);
}

/* Where no memory can be had for staging the device writes to where the caller wants it. */
static helio_status copy_out(hi_device *device, void *target, helio_place source, size_t bytes, const char *what) {
  struct hi_staging *staging = NULL;
  hi_reason_clear();
  if (device->synchronous || bytes > LARGEST_FETCHED) return copy_out_directly(device, target, source, bytes);
  helio_status status = staging_take(device, HI_STREAM_COMPUTE, WORDS_BYTES + bytes, &staging);
  if (!status) return copy_out_staged(device, staging, target, source, bytes, what);
  if (status == HELIO_OUT_OF_MEMORY) return copy_out_directly(device, target, source, bytes);
  return hi_device_failed(device, status, what);
}

helio_status hi_copy_out(hi_device *device, void *target, helio_place source, size_t bytes) {
  helio_status status = copy_out(device, target, source, bytes, "copying to the host");
  return status ? status : hi_doubt_ask(device);
}

helio_status hi_copy_settle(hi_device *device) {
  return copy_out(device, NULL, (helio_place){NULL, 0}, 0, "waiting for the step");
}

helio_status hi_clear(hi_device *device, helio_place target, size_t bytes) {
  static const unsigned char zero = 0;
  if (bytes == 0) return HELIO_OK;
  const helio_member *m = &device->member;
  hi_reason_clear();
  helio_status status = m->memory->fill(m->device, device->streams[HI_STREAM_COMPUTE], target, &zero, 1, bytes);
  return status ? hi_device_failed(device, status, "clearing") : HELIO_OK;
}

/* ---- between devices ---- */

/* An event of the device that nobody else uses until it is given back: a thread that hangs keeps no lock this way. */
static helio_status order_event_take(hi_device *device, helio_event **event) {
  for (int i = 0; i < HI_ORDER_EVENTS; i++) {
    *event = atomic_exchange(&device->order[i], NULL);
    if (*event) return HELIO_OK;
  }
  return device->member.streams->event_create(device->member.device, event);
}

static bool order_event_return(hi_device *device, helio_event *event) {
  bool kept = false;
  for (int i = 0; i < HI_ORDER_EVENTS && !kept; i++) {
    helio_event *none = NULL;
    kept = atomic_compare_exchange_strong(&device->order[i], &none, event);
  }
  return kept;
}

/* Makes a stream of one device wait for what a stream of another device of the same backend was handed so far. */
static helio_status order_devices(hi_device *earlier, helio_stream *earlier_stream, hi_device *later,
                                  helio_stream *later_stream) {
  helio_event *event;
  if (earlier->synchronous) return HELIO_OK;
  const helio_stream_table *streams = earlier->member.streams;
  helio_status status = order_event_take(earlier, &event);
  if (status) return status;
  status = streams->event_record(earlier->member.device, event, earlier_stream);
  if (!status) status = streams->wait(later->member.device, later_stream, event);
  if (!order_event_return(earlier, event)) { /* so many threads at a time: one event too many */
    if (!status) status = streams->synchronize(later->member.device, later_stream);
    streams->event_destroy(earlier->member.device, event);
  }
  return status;
}

helio_status hi_streams_order(hi_device *device, int earlier, int later) {
  helio_stream *first = hi_device_stream(device, earlier), *second = first ? hi_device_stream(device, later) : NULL;
  if (!second) return helio_error_pending();
  hi_reason_clear();
  helio_status status = order_devices(device, first, device, second);
  return status ? hi_device_failed(device, status, "ordering streams") : HELIO_OK;
}

/* The way for any two devices: wait for the source, pass through the host, wait for the target. Memory that the host
 * can touch is used in place. */
static helio_status through_host(hi_device *to, helio_stream *to_stream, helio_place target, hi_device *from,
                                 helio_stream *from_stream, helio_place source, size_t bytes) {
  const helio_member *t = &to->member, *f = &from->member;
  char *source_address = from->host_memory ? f->memory->native_buffer(source.buffer) : NULL;
  char *target_address = to->host_memory ? t->memory->native_buffer(target.buffer) : NULL;
  struct hi_staging *between = NULL;
  helio_status status = HELIO_OK;
  if (source_address) {
    status = f->streams->synchronize(f->device, from_stream);
    if (!status) status = t->memory->copy_in(t->device, to_stream, target, source_address + source.offset, bytes);
    return status ? status : t->streams->synchronize(t->device, to_stream);
  }
  if (target_address) {
    status = t->streams->synchronize(t->device, to_stream);
    if (!status) status = f->memory->copy_out(f->device, from_stream, target_address + target.offset, source, bytes);
    return status ? status : f->streams->synchronize(f->device, from_stream);
  }
  status = staging_take(from, HI_STREAM_COMPUTE, bytes, &between);
  if (status) return status;
  status = f->memory->copy_out(f->device, from_stream, between->memory, source, bytes);
  if (!status) status = f->streams->synchronize(f->device, from_stream);
  if (!status) status = t->memory->copy_in(t->device, to_stream, target, between->memory, bytes);
  if (!status) status = t->streams->synchronize(t->device, to_stream);
  between->lost = status; /* either may still be at it */
  staging_return(from, between);
  return status;
}

/* Directly, where both are of one backend and can. The source's stream waits as well, so that the source may be freed
 * right after this call; if it cannot be made to, the host waits. */
static helio_status directly(hi_device *to, helio_stream *to_stream, helio_place target, hi_device *from,
                             helio_stream *from_stream, helio_place source, size_t bytes) {
  if (to->physical->plugin != from->physical->plugin) return HELIO_NOT_SUPPORTED;
  helio_status status = order_devices(from, from_stream, to, to_stream);
  if (!status) {
    status = to->member.memory->copy_peer(to->member.device, to_stream, target, from->member.device, source, bytes);
  }
  if (status) return status;
  status = order_devices(to, to_stream, from, from_stream);
  if (status) to->member.streams->synchronize(to->member.device, to_stream);
  return status;
}

helio_status hi_copy(hi_device *to, helio_place target, hi_device *from, helio_place source, size_t bytes) {
  if (bytes == 0) return HELIO_OK;
  helio_stream *to_stream = to->streams[HI_STREAM_COMPUTE], *from_stream = from->streams[HI_STREAM_COMPUTE];
  helio_status status;
  bool waited = false;
  hi_reason_clear();
  if (to == from) {
    status = to->member.memory->copy(to->member.device, to_stream, target, source, bytes);
  } else {
    status = directly(to, to_stream, target, from, from_stream, source, bytes);
    if (status == HELIO_NOT_SUPPORTED) {
      status = through_host(to, to_stream, target, from, from_stream, source, bytes);
      waited = true;
    }
  }
  if (status) return hi_fail(status, "copying from %s to %s: %s", from->name, to->name, hi_reason(status));
  return waited ? hi_doubt_ask(from) : HELIO_OK;
}

/* The way of hi_host_copy for devices that cannot reach each other. */
static helio_status host_copy_through_host(hi_device *to, helio_stream *stream, helio_place target, hi_device *from,
                                           helio_place source, size_t bytes) {
  /* Whatever wrote the source, `stream` waits for it: when it is idle the source can be read on any stream. */
  helio_status status = to->member.streams->synchronize(to->member.device, stream);
  if (status) return status;
  helio_stream *from_stream = hi_device_stream(from, HI_STREAM_COPY);
  if (!from_stream) return hi_error_as_reason(HELIO_DEVICE_FAILURE); /* the thread may be a plugin's */
  return through_host(to, stream, target, from, from_stream, source, bytes);
}

helio_status hi_host_copy(const helio_host *host, const helio_member *to_member, helio_stream *stream,
                          helio_place target, const helio_member *from_member, helio_place source, size_t bytes) {
  (void)host;
  hi_device *to = (hi_device *)to_member, *from = (hi_device *)from_member;
  if (bytes == 0) return HELIO_OK;
  if (to == from) return to->member.memory->copy(to->member.device, stream, target, source, bytes);
  helio_status status = HELIO_NOT_SUPPORTED;
  if (to->physical->plugin == from->physical->plugin) {
    status = to->member.memory->copy_peer(to->member.device, stream, target, from->member.device, source, bytes);
  }
  if (status != HELIO_NOT_SUPPORTED) return status;
  return host_copy_through_host(to, stream, target, from, source, bytes);
}
