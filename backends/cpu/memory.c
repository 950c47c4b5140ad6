/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, copies and fills. Behind the exact end of each buffer stands a canary: free() finds a write past the end,
 * and under the address sanitizer the write itself is reported. */
#define _GNU_SOURCE
#include "cpu.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define POISON 1
#endif
#if defined(POISON)
#include <sanitizer/asan_interface.h>
#endif

#define CANARY_BYTES 64

/* From here on memory is mapped: what is not touched costs addresses only, and a device whose memory does not grow
 * takes nearly all there is in one piece. */
#define MAP_FROM ((size_t)1 << 20)

/* A byte that neither text nor small numbers nor zeros are likely to leave behind. */
static unsigned char canary_byte(size_t index) {
  return (unsigned char)(0xa5u ^ (index * 29u));
}

static void canary_set(const helio_buffer *buffer) {
#if defined(POISON)
  ASAN_POISON_MEMORY_REGION(buffer->data + buffer->bytes, CANARY_BYTES);
#else
  for (size_t i = 0; i < CANARY_BYTES; i++) buffer->data[buffer->bytes + i] = canary_byte(i);
#endif
}

/* The offset of the first byte of the canary that has changed; CANARY_BYTES if none has. */
static size_t canary_check(const helio_buffer *buffer) {
  size_t i = 0;
#if defined(POISON)
  ASAN_UNPOISON_MEMORY_REGION(buffer->data + buffer->bytes, CANARY_BYTES);
  (void)canary_byte;
  i = CANARY_BYTES;
#else
  while (i < CANARY_BYTES && buffer->data[buffer->bytes + i] == canary_byte(i)) i++;
#endif
  return i;
}

static bool buffer_reserve(helio_backend_device *device, helio_buffer *buffer, size_t bytes) {
  size_t all = bytes + CANARY_BYTES;
  buffer->bytes = bytes;
  buffer->mapped = 0;
  if (bytes < MAP_FROM) {
    buffer->data = device->host->allocate(device->host, all);
    return buffer->data != NULL;
  }
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  all = (all + page - 1) / page * page;
  void *memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  buffer->data = memory;
  buffer->mapped = all;
  return true;
}

static helio_status memory_allocate(helio_backend_device *device, size_t bytes, helio_buffer **result) {
  const helio_host *host = device->host;
  uint64_t granted = device->state->machine.memory;
  if (bytes > granted)
    return host->fail(host, HELIO_OUT_OF_MEMORY, "a buffer of %zu bytes is more than the %llu that the machine grants",
                      bytes, (unsigned long long)granted);
  helio_buffer *buffer = host->allocate(host, sizeof *buffer);
  if (buffer == NULL || !buffer_reserve(device, buffer, bytes)) {
    if (buffer != NULL) host->release(host, buffer);
    return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a buffer of %zu bytes", bytes);
  }
  canary_set(buffer);
  *result = buffer;
  return HELIO_OK;
}

static helio_status memory_free(helio_backend_device *device, helio_buffer *buffer) {
  if (buffer == NULL) return HELIO_OK;
  const helio_host *host = device->host;
  size_t bytes = buffer->bytes, bad = canary_check(buffer);
  if (buffer->mapped != 0) {
    munmap(buffer->data, buffer->mapped);
  } else {
    host->release(host, buffer->data);
  }
  host->release(host, buffer);
  if (bad == CANARY_BYTES) return HELIO_OK;
  return host->fail(host, HELIO_DEVICE_FAILURE,
                    "a buffer of %zu bytes was written past its end: the byte at offset %zu has changed", bytes,
                    bytes + bad);
}

/* A copy or fill, cut into parts. */
typedef struct move {
  unsigned char *target;
  const unsigned char *source;
  size_t bytes;
} move;

static void copy_part(void *argument, unsigned part, unsigned parts) {
  const move *work = argument;
  cpu_range range = cpu_part_range(work->bytes, 4096, part, parts);
  if (range.begin < range.end) memcpy(work->target + range.begin, work->source + range.begin, range.end - range.begin);
}

static helio_status copy_bytes(helio_backend_device *device, void *target, const void *source, size_t bytes) {
  if (bytes == 0) return HELIO_OK;
  move work = {target, source, bytes};
  cpu_team_run(device->team, cpu_parts_for_bytes(device, bytes), copy_part, &work);
  return HELIO_OK;
}

static helio_status memory_copy_in(helio_backend_device *device, helio_stream *stream, helio_place target,
                                   const void *source, size_t bytes) {
  (void)stream;
  return copy_bytes(device, cpu_place_address(target), source, bytes);
}

static helio_status memory_copy_out(helio_backend_device *device, helio_stream *stream, void *target,
                                    helio_place source, size_t bytes) {
  (void)stream;
  return copy_bytes(device, target, cpu_place_address(source), bytes);
}

static helio_status memory_copy(helio_backend_device *device, helio_stream *stream, helio_place target,
                                helio_place source, size_t bytes) {
  (void)stream;
  return copy_bytes(device, cpu_place_address(target), cpu_place_address(source), bytes);
}

static helio_status memory_copy_peer(helio_backend_device *device, helio_stream *stream, helio_place target,
                                     helio_backend_device *from, helio_place source, size_t bytes) {
  (void)from;
  return memory_copy(device, stream, target, source, bytes);
}

/* Bytes of pattern that a fill keeps at hand. A multiple of every pattern's size. */
#define FILL_BLOCK 1024

static void fill_part(void *argument, unsigned part, unsigned parts) {
  const move *work = argument;
  cpu_range range = cpu_part_range(work->bytes, FILL_BLOCK, part, parts);
  for (size_t at = range.begin; at < range.end; at += FILL_BLOCK) {
    size_t left = range.end - at;
    memcpy(work->target + at, work->source, left < FILL_BLOCK ? left : FILL_BLOCK);
  }
}

static helio_status memory_fill(helio_backend_device *device, helio_stream *stream, helio_place target,
                                const void *pattern, size_t pattern_bytes, size_t count) {
  (void)stream;
  const helio_host *host = device->host;
  if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 && pattern_bytes != 8)
    return host->fail(host, HELIO_INVALID_ARGUMENT, "a fill pattern has 1, 2, 4 or 8 bytes, not %zu", pattern_bytes);
  if (count == 0) return HELIO_OK;
  unsigned char block[FILL_BLOCK];
  move work = {cpu_place_address(target), block, pattern_bytes * count};
  size_t used = work.bytes < FILL_BLOCK ? work.bytes : FILL_BLOCK;
  for (size_t at = 0; at < used; at += pattern_bytes) memcpy(block + at, pattern, pattern_bytes);
  cpu_team_run(device->team, cpu_parts_for_bytes(device, work.bytes), fill_part, &work);
  return HELIO_OK;
}

static void *memory_native_buffer(helio_buffer *buffer) {
  return buffer->data;
}

const helio_memory_table cpu_memory_table = {
    .size = sizeof(helio_memory_table),
    .allocate = memory_allocate,
    .free = memory_free,
    .copy_in = memory_copy_in,
    .copy_out = memory_copy_out,
    .copy = memory_copy,
    .fill = memory_fill,
    .copy_peer = memory_copy_peer,
    .native_buffer = memory_native_buffer,
};
