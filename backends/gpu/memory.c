/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, copies and fills. */
#include "physical.h"

#include <string.h>

static helio_status memory_allocate(helio_backend_device *device, size_t bytes, helio_buffer **result) {
  const helio_host *host = device->host;
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  helio_buffer *buffer = host->allocate(host, sizeof *buffer);
  if (buffer == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a buffer's description");
  *buffer = (helio_buffer){.bytes = bytes};
  vendor_result answer = vendor_allocate(&buffer->address, bytes);
  if (answer == 0) {
    *result = buffer;
    return HELIO_OK;
  }
  host->release(host, buffer);
  size_t free_bytes = 0, total = 0;
  if (gpu_status_of(answer) != HELIO_OUT_OF_MEMORY || vendor_memory_info(&free_bytes, &total) != 0)
    return gpu_fail(device, answer, "allocating memory");
  return host->fail(host, HELIO_OUT_OF_MEMORY,
                    "%s device (%s): no room for a buffer of %zu bytes: %zu of %zu bytes are free", vendor.title,
                    device->facts->name, bytes, free_bytes, total);
}

/* A device that has failed fails everything from then on, which whoever used it is told: that its memory cannot be
 * freed is no news, and no damage. */
static helio_status memory_free(helio_backend_device *device, helio_buffer *buffer) {
  if (buffer == NULL) return HELIO_OK;
  gpu_address address = buffer->address;
  device->host->release(device->host, buffer);
  if (!gpu_enter_to_free(device)) return HELIO_OK;
  vendor_result result = vendor_free(address);
  if (result == 0 || !gpu_enter_to_free(device)) return HELIO_OK;
  return gpu_fail(device, result, "freeing memory");
}

static helio_status memory_copy_in(helio_backend_device *device, helio_stream *stream, helio_place target,
                                   const void *source, size_t bytes) {
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  vendor_result result = vendor_copy_in(gpu_place_address(target), source, bytes, stream->native);
  return result == 0 ? HELIO_OK : gpu_fail(device, result, "copying to it");
}

static helio_status memory_copy_out(helio_backend_device *device, helio_stream *stream, void *target,
                                    helio_place source, size_t bytes) {
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  vendor_result result = vendor_copy_out(target, gpu_place_address(source), bytes, stream->native);
  return result == 0 ? HELIO_OK : gpu_fail(device, result, "copying from it");
}

static helio_status memory_copy(helio_backend_device *device, helio_stream *stream, helio_place target,
                                helio_place source, size_t bytes) {
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  vendor_result result = vendor_copy(gpu_place_address(target), gpu_place_address(source), bytes, stream->native);
  return result == 0 ? HELIO_OK : gpu_fail(device, result, "copying inside it");
}

/* Makes a pattern as short as it can be. */
static size_t pattern_shorten(uint64_t *pattern, size_t bytes) {
  if (bytes == 8 && *pattern >> 32 == (*pattern & 0xffffffffu)) bytes = 4;
  if (bytes == 4 && (*pattern >> 16 & 0xffffu) == (*pattern & 0xffffu)) bytes = 2;
  if (bytes == 2 && (*pattern >> 8 & 0xffu) == (*pattern & 0xffu)) bytes = 1;
  return bytes;
}

/* Patterns of 2 and 8 bytes, which the vendors' fills do not have both. */
static helio_status fill_by_kernel(helio_backend_device *device, helio_stream *stream, gpu_address target,
                                   uint64_t pattern, size_t pattern_bytes, size_t count) {
  vendor_function *function;
  helio_status status = gpu_kernel_find(device, "fill", 0, pattern_bytes == 8 ? "fill_8" : "fill_2", &function);
  if (status != HELIO_OK) return status;
  int64_t length = (int64_t)count;
  void *arguments[] = {&target, &pattern, &length};
  gpu_grid grid = gpu_grid_over(device, count);
  vendor_result result = vendor_launch(function, grid.blocks, grid.threads, stream->native, arguments);
  return result == 0 ? HELIO_OK : gpu_fail(device, result, "filling memory");
}

static helio_status memory_fill(helio_backend_device *device, helio_stream *stream, helio_place target,
                                const void *pattern, size_t pattern_bytes, size_t count) {
  const helio_host *host = device->host;
  if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4 && pattern_bytes != 8)
    return host->fail(host, HELIO_INVALID_ARGUMENT, "a fill pattern has 1, 2, 4 or 8 bytes, not %zu", pattern_bytes);
  if (count == 0) return HELIO_OK;
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  gpu_address address = gpu_place_address(target);
  size_t bytes = pattern_bytes * count;
  uint64_t value = 0;
  memcpy(&value, pattern, pattern_bytes); /* both vendors' hosts are little endian */
  size_t unit = pattern_shorten(&value, pattern_bytes);
  if (unit == 2 && address % 4 == 0 && bytes % 4 == 0) {
    value = (value & 0xffffu) * 0x10001u;
    unit = 4;
  }
  if (unit == 2 || unit == 8) return fill_by_kernel(device, stream, address, value, unit, bytes / unit);
  vendor_result result = vendor_fill(address, (uint32_t)value, unit, bytes / unit, stream->native);
  return result == 0 ? HELIO_OK : gpu_fail(device, result, "filling memory");
}

static helio_status memory_host_allocate(helio_backend_device *device, size_t bytes, void **memory) {
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  vendor_result result = vendor_host_allocate(memory, bytes);
  return result == 0 ? HELIO_OK : gpu_fail(device, result, "allocating pinned memory of the host");
}

/* Pinned memory belongs to the host, and is freed whichever device is current. Where that one is lost CUDA may answer
 * with its error and keep the memory until the process ends: there is no other call that would free it. */
static void memory_host_free(helio_backend_device *device, void *memory) {
  if (memory == NULL) return;
  (void)gpu_enter_to_free(device);
  (void)vendor_host_free(memory);
}

static void *memory_native_buffer(helio_buffer *buffer) {
  return (void *)(uintptr_t)buffer->address;
}

const helio_memory_table gpu_memory_table = {
    .size = sizeof(helio_memory_table),
    .allocate = memory_allocate,
    .free = memory_free,
    .copy_in = memory_copy_in,
    .copy_out = memory_copy_out,
    .copy = memory_copy,
    .fill = memory_fill,
    .copy_peer = gpu_copy_peer,
    .host_allocate = memory_host_allocate,
    .host_free = memory_host_free,
    .native_buffer = memory_native_buffer,
};
