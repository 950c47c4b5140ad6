/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: memory of the inner device whose address is never handed out, with a guard before and behind the exact
 * size, filled with NaN when new, poisoned and kept out of use for a while when freed. */
#include "strict.h"

#include <inttypes.h>
#include <string.h>

/* Freed memory beyond this is given back, the oldest first. */
enum { QUARANTINE_BYTES = 64 << 20 };

/* Before a buffer, and behind it. Depends on the place, so that neither zeros, nor ones, nor a shifted copy of it pass
 * for it. */
static unsigned char guards[2][STRICT_GUARD];

void strict_guards_make(void) {
  for (unsigned i = 0; i < sizeof guards; i++)
    guards[i / STRICT_GUARD][i % STRICT_GUARD] = (unsigned char)(0xC3u ^ (i * 37u));
}

static void write_guards(strict_buffer *buffer) {
  memcpy(buffer->memory - STRICT_GUARD, guards[0], STRICT_GUARD);
  memcpy(buffer->memory + buffer->bytes, guards[1], STRICT_GUARD);
}

/* `from`: where the guard begins, counted from the start of the buffer. */
static bool is_broken(const strict_buffer *buffer, int64_t from, const unsigned char *guard, int64_t *where) {
  const unsigned char *found = buffer->memory + from;
  if (memcmp(found, guard, STRICT_GUARD) == 0) return false;
  while (*found == *guard) found++, guard++;
  *where = found - buffer->memory;
  return true;
}

/* `where`: the first changed byte, counted from the start of the buffer. */
bool strict_guard_broken(const strict_buffer *buffer, int64_t *where) {
  return is_broken(buffer, (int64_t)buffer->bytes, guards[1], where) ||
         is_broken(buffer, -STRICT_GUARD, guards[0], where);
}

static helio_status take_inner_memory(strict_call *call, strict_device *device, strict_buffer *buffer) {
  const helio_memory_table *memory = strict_current->inner.plugin->memory;
  size_t bytes = buffer->bytes + 2 * (size_t)STRICT_GUARD;
  helio_status status = memory->allocate(device->inner, bytes, &buffer->inner);
  if (status != HELIO_OK) return strict_inner_fail(call, status, "allocate");
  buffer->memory = (unsigned char *)memory->native_buffer(buffer->inner) + STRICT_GUARD;
  memset(buffer->memory, STRICT_POISON, buffer->bytes);
  write_guards(buffer);
  return HELIO_OK;
}

static helio_status allocate_checked(strict_call *call, helio_backend_device *handle, size_t bytes,
                                     helio_buffer **result) {
  strict_device *device = NULL;
  helio_status status = strict_device_get(call, handle, &device);
  if (status != HELIO_OK) return status;
  if (bytes == 0) return strict_fail(call, HELIO_INVALID_ARGUMENT, "0 bytes asked for");
  uint64_t used = strict_current->used[device->physical], limit = strict_current->settings.memory;
  if (bytes > limit - used) {
    return strict_fail(call, HELIO_OUT_OF_MEMORY, "%zu bytes asked for, %" PRIu64 " of %" PRIu64 " free", bytes,
                       limit - used, limit);
  }
  strict_buffer *buffer = strict_allocate(sizeof *buffer);
  if (buffer == NULL) return strict_fail(call, HELIO_OUT_OF_MEMORY, "no host memory");
  buffer->bytes = bytes;
  status = take_inner_memory(call, device, buffer);
  if (status != HELIO_OK) goto release_record;
  status = strict_object_add(call, &buffer->object, STRICT_BUFFER, device);
  if (status != HELIO_OK) goto free_inner;
  strict_current->used[device->physical] += bytes;
  *result = buffer->object.handle;
  return HELIO_OK;

free_inner:
  strict_current->inner.plugin->memory->free(device->inner, buffer->inner);
release_record:
  strict_release(buffer);
  return status;
}

helio_status strict_buffer_allocate(helio_backend_device *device, size_t bytes, helio_buffer **buffer) {
  strict_call call;
  strict_enter(&call, "allocate");
  return strict_leave(&call, allocate_checked(&call, device, bytes, buffer));
}

/* Gives the oldest freed buffer back. Its poison must be intact: a kernel that kept an address would have spoilt it. */
static void quarantine_drop(strict_call *call) {
  strict_buffer *buffer = strict_current->quarantine_oldest;
  strict_current->quarantine_oldest = buffer->older;
  if (buffer->older == NULL) strict_current->quarantine_newest = &strict_current->quarantine_oldest;
  strict_current->quarantine_bytes -= buffer->bytes;
  /* All bytes are the poison if the first one is and each equals the next. */
  bool intact =
      buffer->memory[0] == STRICT_POISON && memcmp(buffer->memory, buffer->memory + 1, buffer->bytes - 1) == 0;
  for (size_t i = 0; !intact && i < buffer->bytes; i++) {
    if (buffer->memory[i] == STRICT_POISON) continue;
    strict_violation(call, "buffer %u of %zu bytes was written at offset %zu after it was freed", buffer->object.number,
                     buffer->bytes, i);
    break;
  }
  strict_current->inner.plugin->memory->free(buffer->object.device->inner, buffer->inner);
  strict_release(buffer);
}

void strict_quarantine_empty(strict_call *call) {
  while (strict_current->quarantine_oldest != NULL) quarantine_drop(call);
}

/* Takes a buffer out of use. What is wrong with it is the answer, but it is gone all the same. */
helio_status strict_buffer_retire(strict_call *call, strict_buffer *buffer) {
  helio_status status = HELIO_OK;
  int64_t where = 0;
  if (buffer->queued != 0) {
    status = strict_fail(call, HELIO_WRONG_STATE, "buffer %u of %zu bytes is freed while %u queued commands use it",
                         buffer->object.number, buffer->bytes, buffer->queued);
  } else if (strict_guard_broken(buffer, &where)) {
    status = strict_fail(call, HELIO_DEVICE_FAILURE, "buffer %u of %zu bytes was written outside, at offset %" PRId64,
                         buffer->object.number, buffer->bytes, where);
  }
  strict_object_remove(&buffer->object);
  strict_current->used[buffer->object.device->physical] -= buffer->bytes;
  memset(buffer->memory, STRICT_POISON, buffer->bytes);
  buffer->older = NULL;
  *strict_current->quarantine_newest = buffer;
  strict_current->quarantine_newest = &buffer->older;
  strict_current->quarantine_bytes += buffer->bytes;
  while (strict_current->quarantine_bytes > QUARANTINE_BYTES) quarantine_drop(call);
  return status;
}

static helio_status free_checked(strict_call *call, helio_backend_device *handle, helio_buffer *buffer) {
  strict_device *device = NULL;
  strict_object *object = NULL;
  helio_status status = strict_device_get(call, handle, &device);
  if (status == HELIO_OK) status = strict_object_of(call, device, buffer, STRICT_BUFFER, &object);
  return status == HELIO_OK ? strict_buffer_retire(call, (strict_buffer *)object) : status;
}

helio_status strict_buffer_free(helio_backend_device *device, helio_buffer *buffer) {
  strict_call call;
  strict_enter(&call, "free");
  return strict_leave(&call, free_checked(&call, device, buffer));
}

/* May a command of `device` use these bytes? Looked at when the command is handed over. */
helio_status strict_place_check(strict_call *call, const strict_device *device, helio_place place, size_t bytes,
                                const char *role) {
  if (bytes == 0 && place.buffer == NULL && place.offset == 0) return HELIO_OK;
  strict_object *object = NULL;
  helio_status status = strict_object_of(call, device, place.buffer, STRICT_BUFFER, &object);
  if (status != HELIO_OK) {
    char cause[STRICT_MESSAGE / 2];
    memcpy(cause, call->message, sizeof cause - 1);
    cause[sizeof cause - 1] = 0;
    return strict_fail(call, status, "%s: %s", role, cause);
  }
  size_t size = ((strict_buffer *)object)->bytes;
  if (place.offset <= size && bytes <= size - place.offset) return HELIO_OK;
  return strict_fail(call, HELIO_INVALID_ARGUMENT, "%s: %zu bytes at offset %zu do not fit buffer %u of %zu bytes",
                     role, bytes, place.offset, object->number, size);
}

/* The same when the command runs: in between, the buffer may have been freed. NULL with `failure` set, or for a place
 * without bytes. */
unsigned char *strict_place_address(helio_place place, size_t bytes, strict_failure *failure, const char *role) {
  if (bytes == 0 && place.buffer == NULL) return NULL;
  strict_buffer *buffer = (strict_buffer *)strict_object_find(place.buffer, STRICT_BUFFER);
  if (buffer != NULL) return buffer->memory + place.offset;
  strict_remember(failure, HELIO_DEVICE_FAILURE, "%s: its buffer was freed before the command ran", role);
  return NULL;
}

/* No native handles and no pinned memory: the core must do without. */
const helio_memory_table strict_memory_table = {
    .size = sizeof(helio_memory_table),
    .allocate = strict_buffer_allocate,
    .free = strict_buffer_free,
    .copy_in = strict_copy_in,
    .copy_out = strict_copy_out,
    .copy = strict_copy,
    .fill = strict_fill,
    .copy_peer = strict_copy_peer,
};
