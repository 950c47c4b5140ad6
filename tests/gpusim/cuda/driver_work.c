/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.so.1: memory, streams, events, modules and launches. A launch must be of the current context; what
 * else is queued, waited for, asked, freed or deleted may be of any, as the vendor has it. */
#include "driver.h"

static void *pointer(cuda_abi_address address) {
  return (void *)(uintptr_t)address;
}

/* A launch: the stream must be the current device's, as its kernel must. */
static abi_enum enter_own_stream(const char *name, struct CUstream_st *handle, sim_stream **stream) {
  sim_device *device;
  abi_enum status = driver_enter_context(name, &device);
  if (status != SIM_OK) return status;
  *stream = sim_stream_of(device, handle);
  return *stream ? SIM_OK : SIM_INVALID_HANDLE;
}

/* Any other call about a stream, of whichever device. */
static abi_enum enter_stream(const char *name, struct CUstream_st *handle, sim_stream **stream) {
  sim_device *device;
  abi_enum status = driver_enter_context(name, &device);
  if (status != SIM_OK) return status;
  *stream = handle ? sim_check_of(handle, "stream", SIM_CUDA) : sim_stream_of(device, NULL);
  return *stream ? SIM_OK : SIM_INVALID_HANDLE;
}

static abi_enum enter_event(const char *name, struct CUevent_st *handle, sim_event **event) {
  sim_device *device;
  abi_enum status = driver_enter_context(name, &device);
  if (status != SIM_OK) return status;
  *event = sim_check_of(handle, "event", SIM_CUDA);
  return *event ? SIM_OK : SIM_INVALID_HANDLE;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Memory
 */

abi_enum cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  sim_device *device;
  abi_enum status = driver_enter_context(__func__, &device);
  if (status != SIM_OK) return status;
  if (!free_bytes || !total) return SIM_INVALID_VALUE;
  sim_memory_info(device, free_bytes, total);
  return SIM_OK;
}

abi_enum cuMemAlloc_v2(cuda_abi_address *address, size_t bytes) {
  sim_device *device;
  abi_enum status = driver_enter_context(__func__, &device);
  if (status != SIM_OK) return status;
  if (!address) return SIM_INVALID_VALUE;
  void *made;
  status = sim_allocate(device, bytes, &made);
  if (status == SIM_OK) *address = (cuda_abi_address)(uintptr_t)made;
  return status;
}

abi_enum cuMemFree_v2(cuda_abi_address address) {
  sim_device *device;
  abi_enum status = driver_enter_context(__func__, &device);
  if (status != SIM_OK || address == 0) return status;
  return sim_free(device, pointer(address));
}

abi_enum cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  sim_device *device;
  abi_enum status = driver_enter_context(__func__, &device);
  if (status != SIM_OK) return status;
  if (!address || flags > 7) return SIM_INVALID_VALUE;
  return sim_pinned_allocate(device, bytes, address);
}

abi_enum cuMemFreeHost(void *address) {
  sim_device *device;
  abi_enum status = driver_enter_context(__func__, &device);
  return status == SIM_OK ? sim_pinned_free(address) : status;
}

abi_enum cuMemcpyHtoDAsync_v2(cuda_abi_address to, const void *from, size_t bytes, struct CUstream_st *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  return status == SIM_OK ? sim_copy_in(queue, pointer(to), from, bytes) : status;
}

abi_enum cuMemcpyDtoHAsync_v2(void *to, cuda_abi_address from, size_t bytes, struct CUstream_st *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  return status == SIM_OK ? sim_copy_out(queue, to, pointer(from), bytes) : status;
}

abi_enum cuMemcpyDtoDAsync_v2(cuda_abi_address to, cuda_abi_address from, size_t bytes, struct CUstream_st *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  return status == SIM_OK ? sim_copy_within(queue, pointer(to), pointer(from), bytes) : status;
}

abi_enum cuMemcpyPeerAsync(cuda_abi_address to, struct CUctx_st *to_context, cuda_abi_address from,
                           struct CUctx_st *from_context, size_t bytes, struct CUstream_st *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  if (status != SIM_OK) return status;
  sim_device *to_device = driver_device_of(to_context), *from_device = driver_device_of(from_context);
  if (!to_device || !from_device) return SIM_INVALID_CONTEXT;
  return sim_copy_peer(queue, to_device, pointer(to), from_device, pointer(from), bytes);
}

abi_enum cuMemsetD8Async(cuda_abi_address to, unsigned char value, size_t count, struct CUstream_st *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  return status == SIM_OK ? sim_fill(queue, pointer(to), value, 1, count) : status;
}

abi_enum cuMemsetD32Async(cuda_abi_address to, unsigned value, size_t count, struct CUstream_st *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  return status == SIM_OK ? sim_fill(queue, pointer(to), value, 4, count) : status;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Streams
 */

abi_enum cuStreamCreate(struct CUstream_st **stream, unsigned flags) {
  sim_device *device;
  abi_enum status = driver_enter_context(__func__, &device);
  if (status != SIM_OK) return status;
  if (!stream || flags > CUDA_ABI_STREAM_NON_BLOCKING) return SIM_INVALID_VALUE;
  sim_stream *made;
  status = sim_stream_create(device, flags == CUDA_ABI_STREAM_NON_BLOCKING, &made);
  if (status == SIM_OK) *stream = (struct CUstream_st *)made;
  return status;
}

abi_enum cuStreamDestroy_v2(struct CUstream_st *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  if (status != SIM_OK) return status;
  return stream ? sim_stream_delete(queue) : SIM_INVALID_HANDLE;
}

abi_enum cuStreamSynchronize(struct CUstream_st *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  return status == SIM_OK ? sim_stream_finish(queue) : status;
}

abi_enum cuStreamQuery(struct CUstream_st *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  return status == SIM_OK ? sim_stream_query(queue) : status;
}

abi_enum cuStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  if (status != SIM_OK) return status;
  sim_event *awaited = sim_check_of(event, "event", SIM_CUDA);
  if (!awaited) return SIM_INVALID_HANDLE;
  return flags == 0 ? sim_stream_wait(queue, awaited) : SIM_INVALID_VALUE;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Events
 */

abi_enum cuEventCreate(struct CUevent_st **event, unsigned flags) {
  sim_device *device;
  abi_enum status = driver_enter_context(__func__, &device);
  if (status != SIM_OK) return status;
  if (!event || flags > (CUDA_ABI_EVENT_BLOCKING_SYNC | CUDA_ABI_EVENT_DISABLE_TIMING)) return SIM_INVALID_VALUE;
  sim_event *made;
  status = sim_event_create(device, !(flags & CUDA_ABI_EVENT_DISABLE_TIMING), &made);
  if (status == SIM_OK) *event = (struct CUevent_st *)made;
  return status;
}

abi_enum cuEventDestroy_v2(struct CUevent_st *event) {
  sim_event *found;
  abi_enum status = enter_event(__func__, event, &found);
  return status == SIM_OK ? sim_event_delete(found) : status;
}

abi_enum cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  if (status != SIM_OK) return status;
  sim_event *found = sim_check_of(event, "event", SIM_CUDA);
  return found ? sim_event_record(found, queue) : SIM_INVALID_HANDLE;
}

abi_enum cuEventQuery(struct CUevent_st *event) {
  sim_event *found;
  abi_enum status = enter_event(__func__, event, &found);
  return status == SIM_OK ? sim_event_query(found) : status;
}

abi_enum cuEventSynchronize(struct CUevent_st *event) {
  sim_event *found;
  abi_enum status = enter_event(__func__, event, &found);
  return status == SIM_OK ? sim_event_finish(found) : status;
}

abi_enum cuEventElapsedTime(float *milliseconds, struct CUevent_st *from, struct CUevent_st *to) {
  sim_event *first, *second;
  abi_enum status = enter_event(__func__, from, &first);
  if (status == SIM_OK) status = enter_event(__func__, to, &second);
  if (status != SIM_OK) return status;
  return milliseconds ? sim_event_elapsed(milliseconds, first, second) : SIM_INVALID_VALUE;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Kernels
 */

abi_enum cuModuleLoadData(struct CUmod_st **module, const void *image) {
  sim_device *device;
  abi_enum status = driver_enter_context(__func__, &device);
  if (status != SIM_OK) return status;
  if (!module || !image) return SIM_INVALID_VALUE;
  sim_module *made;
  status = sim_module_load(device, image, &made);
  if (status == SIM_OK) *module = (struct CUmod_st *)made;
  return status;
}

static abi_enum enter_module(const char *name, struct CUmod_st *handle, sim_module **module) {
  sim_device *device;
  abi_enum status = driver_enter_context(name, &device);
  if (status != SIM_OK) return status;
  *module = sim_check_on(handle, "module", device);
  return *module ? SIM_OK : SIM_INVALID_HANDLE;
}

abi_enum cuModuleUnload(struct CUmod_st *module) {
  sim_module *found;
  abi_enum status = enter_module(__func__, module, &found);
  return status == SIM_OK ? sim_module_unload(found) : status;
}

abi_enum cuModuleGetFunction(struct CUfunc_st **function, struct CUmod_st *module, const char *name) {
  sim_module *found;
  abi_enum status = enter_module(__func__, module, &found);
  if (status != SIM_OK) return status;
  if (!function || !name) return SIM_INVALID_VALUE;
  sim_kernel *kernel;
  status = sim_module_kernel(found, name, &kernel);
  if (status == SIM_OK) *function = (struct CUfunc_st *)kernel;
  return status;
}

abi_enum cuLaunchKernel(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, struct CUstream_st *stream,
                        void **arguments, void **extra) {
  sim_stream *queue;
  abi_enum status = enter_own_stream(__func__, stream, &queue);
  if (status != SIM_OK) return status;
  if (extra) return SIM_INVALID_VALUE; /* the other way to hand over arguments, which nobody needs */
  sim_grid grid = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return sim_launch((sim_kernel *)function, &grid, arguments, queue);
}
