/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills: checked and queued at the call, carried out when the stream gets to them. */
#include "strict.h"

#include <string.h>

/* FNV-1a, to see whether the host's memory was changed before it was read. */
/* Words first: inputs of every kernel are summed before and behind its run. */
uint64_t strict_checksum(const void *memory, size_t bytes) {
  const unsigned char *at = memory;
  uint64_t sum = UINT64_C(0xCBF29CE484222325), word;
  size_t words = bytes / sizeof word;
  for (size_t i = 0; i < words; i++) {
    memcpy(&word, at + i * sizeof word, sizeof word);
    sum = (sum ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    sum ^= sum >> 32;
  }
  for (size_t i = words * sizeof word; i < bytes; i++) sum = (sum ^ at[i]) * UINT64_C(0x100000001B3);
  return sum;
}

/* The stream and a new command for it with up to two places. */
static helio_status begin(strict_call *call, helio_backend_device *device_handle, helio_stream *stream_handle,
                          strict_device **device, strict_stream **stream) {
  strict_object *object = NULL;
  helio_status status = strict_device_get(call, device_handle, device);
  if (status == HELIO_OK) status = strict_object_of(call, *device, stream_handle, STRICT_STREAM, &object);
  if (status == HELIO_OK) *stream = (strict_stream *)object;
  return status;
}

static helio_status new_command(strict_call *call, strict_command_kind kind, size_t bytes, strict_command **command) {
  strict_command *made = strict_command_new(2);
  if (made == NULL) return strict_fail(call, HELIO_OUT_OF_MEMORY, "no host memory for a command");
  made->kind = kind;
  made->name = call->name;
  made->bytes = bytes;
  *command = made;
  return HELIO_OK;
}

static helio_status queue_copy_in(strict_call *call, helio_backend_device *device_handle, helio_stream *stream_handle,
                                  helio_place target, const void *source, size_t bytes) {
  strict_device *device = NULL;
  strict_stream *stream = NULL;
  strict_command *command = NULL;
  helio_status status = begin(call, device_handle, stream_handle, &device, &stream);
  if (status == HELIO_OK) status = strict_place_check(call, device, target, bytes, "target");
  if (status == HELIO_OK && source == NULL && bytes != 0) {
    status = strict_fail(call, HELIO_INVALID_ARGUMENT, "the source is NULL");
  }
  if (status == HELIO_OK) status = new_command(call, STRICT_COPY_IN, bytes, &command);
  if (status != HELIO_OK) return status;
  command->places[0] = target;
  command->source = source;
  command->checksum = strict_checksum(source, bytes);
  strict_enqueue(stream, command);
  return HELIO_OK;
}

helio_status strict_copy_in(helio_backend_device *device, helio_stream *stream, helio_place target, const void *source,
                            size_t bytes) {
  strict_call call;
  strict_enter(&call, "copy_in");
  return strict_leave(&call, queue_copy_in(&call, device, stream, target, source, bytes));
}

/* The target is spoilt at once, so that whoever reads it too early gets no numbers. */
static helio_status queue_copy_out(strict_call *call, helio_backend_device *device_handle, helio_stream *stream_handle,
                                   void *target, helio_place source, size_t bytes) {
  strict_device *device = NULL;
  strict_stream *stream = NULL;
  strict_command *command = NULL;
  helio_status status = begin(call, device_handle, stream_handle, &device, &stream);
  if (status == HELIO_OK) status = strict_place_check(call, device, source, bytes, "source");
  if (status == HELIO_OK && target == NULL && bytes != 0) {
    status = strict_fail(call, HELIO_INVALID_ARGUMENT, "the target is NULL");
  }
  if (status == HELIO_OK) status = new_command(call, STRICT_COPY_OUT, bytes, &command);
  if (status != HELIO_OK) return status;
  command->places[1] = source;
  command->target = target;
  if (bytes != 0) memset(target, STRICT_POISON, bytes);
  strict_enqueue(stream, command);
  return HELIO_OK;
}

helio_status strict_copy_out(helio_backend_device *device, helio_stream *stream, void *target, helio_place source,
                             size_t bytes) {
  strict_call call;
  strict_enter(&call, "copy_out");
  return strict_leave(&call, queue_copy_out(&call, device, stream, target, source, bytes));
}

static bool overlap(helio_place a, helio_place b, size_t bytes) {
  return a.buffer == b.buffer && a.offset < b.offset + bytes && b.offset < a.offset + bytes;
}

static helio_status queue_copy(strict_call *call, strict_stream *stream, const strict_device *to, helio_place target,
                               const strict_device *from, helio_place source, size_t bytes) {
  strict_command *command = NULL;
  helio_status status = strict_place_check(call, to, target, bytes, "target");
  if (status == HELIO_OK) status = strict_place_check(call, from, source, bytes, "source");
  if (status == HELIO_OK && bytes != 0 && overlap(target, source, bytes)) {
    status = strict_fail(call, HELIO_INVALID_ARGUMENT, "%zu bytes from offset %zu to offset %zu overlap", bytes,
                         source.offset, target.offset);
  }
  if (status == HELIO_OK) status = new_command(call, STRICT_COPY, bytes, &command);
  if (status != HELIO_OK) return status;
  command->places[0] = target;
  command->places[1] = source;
  strict_enqueue(stream, command);
  return HELIO_OK;
}

helio_status strict_copy(helio_backend_device *device_handle, helio_stream *stream_handle, helio_place target,
                         helio_place source, size_t bytes) {
  strict_call call;
  strict_device *device = NULL;
  strict_stream *stream = NULL;
  strict_enter(&call, "copy");
  helio_status status = begin(&call, device_handle, stream_handle, &device, &stream);
  if (status == HELIO_OK) status = queue_copy(&call, stream, device, target, device, source, bytes);
  return strict_leave(&call, status);
}

helio_status strict_copy_peer(helio_backend_device *device_handle, helio_stream *stream_handle, helio_place target,
                              helio_backend_device *from_handle, helio_place source, size_t bytes) {
  strict_call call;
  strict_device *device = NULL, *from = NULL;
  strict_stream *stream = NULL;
  strict_enter(&call, "copy_peer");
  helio_status status = begin(&call, device_handle, stream_handle, &device, &stream);
  if (status == HELIO_OK) status = strict_device_get(&call, from_handle, &from);
  if (status == HELIO_OK && !strict_current->settings.peer) {
    status = strict_fail(&call, HELIO_NOT_SUPPORTED, "switched off by HELIO_STRICT_PEER=0");
  }
  if (status == HELIO_OK) status = queue_copy(&call, stream, device, target, from, source, bytes);
  return strict_leave(&call, status);
}

static helio_status queue_fill(strict_call *call, helio_backend_device *device_handle, helio_stream *stream_handle,
                               helio_place target, const void *pattern, size_t pattern_bytes, size_t count) {
  strict_device *device = NULL;
  strict_stream *stream = NULL;
  strict_command *command = NULL;
  helio_status status = begin(call, device_handle, stream_handle, &device, &stream);
  if (status != HELIO_OK) return status;
  if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 && pattern_bytes != 8) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "a pattern of %zu bytes; 1, 2, 4 and 8 are allowed",
                       pattern_bytes);
  }
  if (count > SIZE_MAX / pattern_bytes) return strict_fail(call, HELIO_INVALID_ARGUMENT, "too many: %zu", count);
  if (target.offset % pattern_bytes != 0) {
    return strict_fail(call, HELIO_INVALID_ARGUMENT, "offset %zu is no multiple of the pattern's %zu bytes",
                       target.offset, pattern_bytes);
  }
  status = strict_place_check(call, device, target, pattern_bytes * count, "target");
  if (status == HELIO_OK) status = new_command(call, STRICT_FILL, pattern_bytes, &command);
  if (status != HELIO_OK) return status;
  command->places[0] = target;
  command->count = count;
  memcpy(command->pattern, pattern, pattern_bytes);
  strict_enqueue(stream, command);
  return HELIO_OK;
}

helio_status strict_fill(helio_backend_device *device, helio_stream *stream, helio_place target, const void *pattern,
                         size_t pattern_bytes, size_t count) {
  strict_call call;
  strict_enter(&call, "fill");
  return strict_leave(&call, queue_fill(&call, device, stream, target, pattern, pattern_bytes, count));
}

static void execute_copy_in(strict_command *command, unsigned char *target, strict_failure *failure) {
  memcpy(target, command->source, command->bytes);
  if (strict_checksum(target, command->bytes) == command->checksum) return;
  strict_remember(failure, HELIO_DEVICE_FAILURE,
                  "copy_in: the host changed the source of %zu bytes before the stream had passed", command->bytes);
}

/* Once the pattern, then twice as much as there is each time: the core poisons whole tensors byte by byte. */
static void execute_fill(unsigned char *target, size_t bytes, const strict_command *command) {
  memcpy(target, command->pattern, command->bytes);
  for (size_t done = command->bytes; done < bytes; done *= 2) {
    memcpy(target + done, target, done < bytes - done ? done : bytes - done);
  }
}

/* Carries out a copy or fill. A buffer that was freed meanwhile is a failure and nothing is touched. */
void strict_execute_copy(strict_command *command, strict_failure *failure) {
  size_t bytes = command->kind == STRICT_FILL ? command->bytes * command->count : command->bytes;
  if (bytes == 0) return;
  unsigned char *target = command->target, *source = NULL;
  if (target == NULL) target = strict_place_address(command->places[0], bytes, failure, command->name);
  if (target == NULL) return;
  if (command->kind == STRICT_COPY || command->kind == STRICT_COPY_OUT) {
    source = strict_place_address(command->places[1], bytes, failure, command->name);
    if (source != NULL) memcpy(target, source, bytes);
  } else if (command->kind == STRICT_COPY_IN) {
    execute_copy_in(command, target, failure);
  } else {
    execute_fill(target, bytes, command);
  }
}
