/* SPDX-License-Identifier: Apache-2.0 */
/* A device made up for tests of the arena and of copies: it writes down every call, in order, and fails when told to.
 */
#ifndef HELIO_TEST_FAKE_DEVICE_H
#define HELIO_TEST_FAKE_DEVICE_H

#include <stdlib.h>
#include <string.h>

#include "device/arena.h"
#include "runtime/error.h"
#include "support.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

typedef enum call_kind {
  ALLOCATE = 1,
  FREE,
  FILL,
  SYNCHRONIZE,
  CREATE,
  DESTROY,
  RECORD,
  WAIT,
  QUERY,
  COPY_IN,
  HOST_ALLOCATE,
  HOST_FREE,
  STREAM_CREATE,
  STREAM_SYNCHRONIZE
} call_kind;

typedef struct call {
  call_kind kind;
  uint64_t bytes; /* of ALLOCATE, FREE, FILL, COPY_IN and HOST_ALLOCATE */
  int stream;     /* of FILL, RECORD and WAIT */
  helio_event *event;
  helio_buffer *buffer;
} call;

struct helio_buffer {
  uint64_t bytes;
  unsigned char *memory; /* NULL: addresses only */
  bool damaged;          /* free() will notice */
  struct helio_buffer *next;
};

struct helio_stream {
  int index;
};

struct helio_event {
  int recorded; /* on which stream; −1: never */
};

enum { CALLS = 4000 };

struct helio_backend_device {
  call calls[CALLS];
  int count;
  uint64_t capacity, used;
  uint64_t largest_allowed; /* an allocation above this fails */
  bool with_memory;
  int live_events;
  call_kind failing; /* calls of this kind fail */
  bool once;         /* the next one only */
  bool behind;       /* recorded events have not passed until the stream is synchronized */
  int live_pieces;   /* of host memory */
  uint64_t live_bytes;
  pthread_barrier_t *gate; /* an allocation waits here, twice */
  helio_buffer *buffers;
};

static helio_backend_device fake;
static helio_stream streams[HI_STREAM_COUNT] = {{0}, {1}, {2}};

static helio_status note(call c) {
  if (fake.count < CALLS) fake.calls[fake.count++] = c;
  if (fake.failing != c.kind) return HELIO_OK;
  if (fake.once) fake.failing = 0;
  hi_reason_say("told to fail");
  return HELIO_DEVICE_FAILURE;
}

static helio_status fake_allocate(helio_backend_device *device, size_t bytes, helio_buffer **buffer) {
  helio_status status = note((call){.kind = ALLOCATE, .bytes = bytes});
  if (status) return status;
  if (device->gate) {
    pthread_barrier_wait(device->gate);
    pthread_barrier_wait(device->gate);
  }
  if (bytes > device->capacity - device->used || bytes > device->largest_allowed) return HELIO_OUT_OF_MEMORY;
  helio_buffer *made = calloc(1, sizeof *made);
  *made = (helio_buffer){.bytes = bytes, .next = device->buffers};
  if (device->with_memory) made->memory = malloc(bytes);
  device->buffers = made;
  device->used += bytes;
  *buffer = made;
  return HELIO_OK;
}

static helio_status fake_free(helio_backend_device *device, helio_buffer *buffer) {
  helio_buffer **link = &device->buffers;
  note((call){.kind = FREE, .bytes = buffer->bytes});
  while (*link != buffer) link = &(*link)->next;
  *link = buffer->next;
  device->used -= buffer->bytes;
  bool damaged = buffer->damaged;
  free(buffer->memory);
  free(buffer);
  if (damaged) hi_reason_say("the byte behind the end has changed");
  return damaged ? HELIO_DEVICE_FAILURE : HELIO_OK;
}

static helio_status fake_fill(helio_backend_device *device, helio_stream *stream, helio_place target,
                              const void *pattern, size_t pattern_bytes, size_t count) {
  (void)device;
  if (target.buffer->memory && pattern_bytes == 1) {
    memset(target.buffer->memory + target.offset, *(const unsigned char *)pattern, count);
  }
  return note((call){.kind = FILL, .bytes = pattern_bytes * count, .stream = stream->index, .buffer = target.buffer});
}

static void *fake_address(helio_buffer *buffer) {
  return buffer->memory;
}

static helio_status fake_synchronize(helio_backend_device *device) {
  (void)device;
  return note((call){.kind = SYNCHRONIZE});
}

static helio_status fake_event_create(helio_backend_device *device, helio_event **event) {
  helio_status status = note((call){.kind = CREATE});
  if (status) return status;
  *event = malloc(sizeof **event);
  (*event)->recorded = -1;
  device->live_events++;
  return HELIO_OK;
}

static void fake_event_destroy(helio_backend_device *device, helio_event *event) {
  note((call){.kind = DESTROY});
  device->live_events--;
  free(event);
}

static helio_status fake_record(helio_backend_device *device, helio_event *event, helio_stream *stream) {
  (void)device;
  event->recorded = stream->index;
  return note((call){.kind = RECORD, .stream = stream->index, .event = event});
}

static helio_status fake_wait(helio_backend_device *device, helio_stream *stream, helio_event *event) {
  (void)device;
  return note((call){.kind = WAIT, .stream = stream->index, .event = event});
}

static helio_status fake_query(helio_backend_device *device, helio_event *event) {
  helio_status status = note((call){.kind = QUERY, .event = event});
  if (status) return status;
  return device->behind && event->recorded >= 0 ? HELIO_NOT_READY : HELIO_OK;
}

static helio_status fake_copy_in(helio_backend_device *device, helio_stream *stream, helio_place target,
                                 const void *source, size_t bytes) {
  (void)device, (void)target, (void)source;
  return note((call){.kind = COPY_IN, .bytes = bytes, .stream = stream->index});
}

static helio_status fake_host_allocate(helio_backend_device *device, size_t bytes, void **memory) {
  helio_status status = note((call){.kind = HOST_ALLOCATE, .bytes = bytes});
  if (status) return status;
  size_t *piece = malloc(bytes + 64);
  *piece = bytes;
  device->live_pieces++;
  device->live_bytes += bytes;
  *memory = (char *)piece + 64;
  return HELIO_OK;
}

static void fake_host_free(helio_backend_device *device, void *memory) {
  size_t *piece = (size_t *)(void *)((char *)memory - 64);
  note((call){.kind = HOST_FREE, .bytes = *piece});
  device->live_pieces--;
  device->live_bytes -= *piece;
  free(piece);
}

static helio_status fake_stream_create(helio_backend_device *device, helio_stream **stream) {
  (void)device;
  *stream = &streams[HI_STREAM_COPY];
  return note((call){.kind = STREAM_CREATE});
}

static helio_status fake_stream_synchronize(helio_backend_device *device, helio_stream *stream) {
  device->behind = false;
  return note((call){.kind = STREAM_SYNCHRONIZE, .stream = stream->index});
}

static void fake_close(helio_backend_device *device) {
  (void)device;
}

static const helio_device_table device_table = {
    .size = sizeof device_table, .close = fake_close, .synchronize = fake_synchronize};
static const helio_memory_table memory_table = {.size = sizeof memory_table,
                                                .allocate = fake_allocate,
                                                .free = fake_free,
                                                .fill = fake_fill,
                                                .copy_in = fake_copy_in,
                                                .host_allocate = fake_host_allocate,
                                                .host_free = fake_host_free,
                                                .native_buffer = fake_address};
static const helio_stream_table stream_table = {.size = sizeof stream_table,
                                                .create = fake_stream_create,
                                                .synchronize = fake_stream_synchronize,
                                                .event_query = fake_query,
                                                .event_create = fake_event_create,
                                                .event_destroy = fake_event_destroy,
                                                .event_record = fake_record,
                                                .wait = fake_wait};

/* The usual source; tests change what they are about. */
static hi_arena_source usual(void) {
  return (hi_arena_source){.name = "/device:TEST:0",
                           .device = &fake,
                           .devices = &device_table,
                           .memory = &memory_table,
                           .streams = &stream_table,
                           .stream = {&streams[0], &streams[1], &streams[2]},
                           .alignment = 64};
}

/* ---- arenas on it ---- */

static inline hi_arena *make(hi_arena_source source) {
  hi_arena *arena = hi_arena_new(&source);
  assert_non_null(arena);
  return arena;
}

static inline int prepare(void **state) {
  (void)state;
  helio_error_take(NULL);
  memset(&fake, 0, sizeof fake);
  fake.capacity = fake.largest_allowed = UINT64_C(1) << 50;
  capture_log();
  return 0;
}

/* Everything was given back to the device. */
static inline int conclude(void **state) {
  (void)state;
  helio_error_take(NULL);
  helio_set_log_sink(NULL, NULL);
  if (fake.used || fake.buffers || fake.live_events || fake.live_pieces) {
    print_error("left behind: %llu bytes, %d events, %d pieces of host memory\n", (unsigned long long)fake.used,
                fake.live_events, fake.live_pieces);
    return -1;
  }
  return 0;
}

static inline int calls_of(call_kind wanted) {
  int count = 0;
  for (int i = 0; i < fake.count; i++) count += fake.calls[i].kind == wanted;
  return count;
}

static inline hi_block *get(hi_arena *arena, size_t bytes, int stream) {
  hi_block *block = hi_arena_allocate(arena, bytes, stream, "test");
  assert_made(block);
  return block;
}

static inline helio_memory info_of(hi_arena *arena) {
  helio_memory info;
  hi_arena_info(arena, &info);
  return info;
}

#define ARENA_TEST(function) cmocka_unit_test_setup_teardown(function, prepare, conclude)

#endif
