/* SPDX-License-Identifier: Apache-2.0 */
/* libamdhip64.so.6: memory, streams, events, modules and launches. A launch must be of this thread's
 * device; what else is queued, waited for, asked, freed or deleted may be of any, as the vendor has it. */
#include "runtime.h"

/* A launch: the stream must be this thread's device's, as its kernel must. */
static abi_enum enter_own_stream(const char *name, struct ihipStream_t *handle, sim_stream **stream) {
  sim_device *device;
  abi_enum status = runtime_enter(name, &device);
  if (status != SIM_OK) return status;
  *stream = sim_stream_of(device, handle);
  return *stream ? SIM_OK : SIM_INVALID_HANDLE;
}

/* Any other call about a stream, of whichever device. */
static abi_enum enter_stream(const char *name, struct ihipStream_t *handle, sim_stream **stream) {
  sim_device *device;
  abi_enum status = runtime_enter(name, &device);
  if (status != SIM_OK) return status;
  *stream = handle ? sim_check_of(handle, "stream", SIM_HIP) : sim_stream_of(device, NULL);
  return *stream ? SIM_OK : SIM_INVALID_HANDLE;
}

static abi_enum enter_event(const char *name, struct ihipEvent_t *handle, sim_event **event) {
  sim_device *device;
  abi_enum status = runtime_enter(name, &device);
  if (status != SIM_OK) return status;
  *event = sim_check_of(handle, "event", SIM_HIP);
  return *event ? SIM_OK : SIM_INVALID_HANDLE;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Memory
 */

abi_enum hipMemGetInfo(size_t *free_bytes, size_t *total) {
  sim_device *device;
  abi_enum status = runtime_enter(__func__, &device);
  if (status == SIM_OK && (!free_bytes || !total)) status = SIM_INVALID_VALUE;
  if (status == SIM_OK) sim_memory_info(device, free_bytes, total);
  return runtime_leave(status);
}

/* No bytes are no address, and no error. */
abi_enum hipMalloc(void **address, size_t bytes) {
  sim_device *device;
  abi_enum status = runtime_enter(__func__, &device);
  if (status == SIM_OK && !address) status = SIM_INVALID_VALUE;
  if (status != SIM_OK) return runtime_leave(status);
  *address = NULL;
  return runtime_leave(bytes ? sim_allocate(device, bytes, address) : SIM_OK);
}

abi_enum hipFree(void *address) {
  sim_device *device;
  abi_enum status = runtime_enter(__func__, &device);
  if (status == SIM_OK && address) status = sim_free(device, address);
  return runtime_leave(status);
}

abi_enum hipHostMalloc(void **address, size_t bytes, unsigned flags) {
  (void)flags; /* all of them are about who else may see it */
  sim_device *device;
  abi_enum status = runtime_enter(__func__, &device);
  if (status == SIM_OK && !address) status = SIM_INVALID_VALUE;
  return runtime_leave(status == SIM_OK ? sim_pinned_allocate(device, bytes, address) : status);
}

abi_enum hipHostFree(void *address) {
  sim_device *device;
  abi_enum status = runtime_enter(__func__, &device);
  if (status == SIM_OK && address) status = sim_device_drain(device); /* so HIP documents it */
  if (status == SIM_OK && address) status = sim_pinned_free(address);
  return runtime_leave(status);
}

/* What "default" means for two addresses. */
static abi_enum guess_kind(const void *to, const void *from) {
  bool to_device = sim_is_device_address(to), from_device = sim_is_device_address(from);
  if (to_device) return from_device ? HIP_ABI_DEVICE_TO_DEVICE : HIP_ABI_HOST_TO_DEVICE;
  return from_device ? HIP_ABI_DEVICE_TO_HOST : HIP_ABI_HOST_TO_HOST;
}

abi_enum hipMemcpyAsync(void *to, const void *from, size_t bytes, abi_enum kind, struct ihipStream_t *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  if (status != SIM_OK) return runtime_leave(status);
  switch (kind == HIP_ABI_DEFAULT ? guess_kind(to, from) : kind) {
  case HIP_ABI_HOST_TO_DEVICE:
    return runtime_leave(sim_copy_in(queue, to, from, bytes));
  case HIP_ABI_DEVICE_TO_HOST:
    return runtime_leave(sim_copy_out(queue, to, from, bytes));
  case HIP_ABI_DEVICE_TO_DEVICE:
    return runtime_leave(sim_copy_within(queue, to, from, bytes));
  default:
    return runtime_leave(SIM_INVALID_VALUE); /* from the host to the host is nothing for a stream */
  }
}

abi_enum hipMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                            struct ihipStream_t *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  if (status != SIM_OK) return runtime_leave(status);
  sim_device *target = sim_device_at(SIM_HIP, to_device), *source = sim_device_at(SIM_HIP, from_device);
  if (!target || !source) return runtime_leave(SIM_INVALID_DEVICE);
  return runtime_leave(sim_copy_peer(queue, target, to, source, from, bytes));
}

abi_enum hipMemsetD8Async(void *to, unsigned char value, size_t count, struct ihipStream_t *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  return runtime_leave(status == SIM_OK ? sim_fill(queue, to, value, 1, count) : status);
}

abi_enum hipMemsetD32Async(void *to, int value, size_t count, struct ihipStream_t *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  return runtime_leave(status == SIM_OK ? sim_fill(queue, to, (uint32_t)value, 4, count) : status);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Streams
 */

abi_enum hipStreamCreateWithFlags(struct ihipStream_t **stream, unsigned flags) {
  sim_device *device;
  abi_enum status = runtime_enter(__func__, &device);
  if (status != SIM_OK) return runtime_leave(status);
  if (!stream || flags > HIP_ABI_STREAM_NON_BLOCKING) return runtime_leave(SIM_INVALID_VALUE);
  sim_stream *made;
  status = sim_stream_create(device, flags == HIP_ABI_STREAM_NON_BLOCKING, &made);
  if (status == SIM_OK) *stream = (struct ihipStream_t *)made;
  return runtime_leave(status);
}

abi_enum hipStreamDestroy(struct ihipStream_t *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  if (status != SIM_OK) return runtime_leave(status);
  return runtime_leave(stream ? sim_stream_delete(queue) : SIM_INVALID_HANDLE);
}

abi_enum hipStreamSynchronize(struct ihipStream_t *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  return runtime_leave(status == SIM_OK ? sim_stream_finish(queue) : status);
}

abi_enum hipStreamQuery(struct ihipStream_t *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  return runtime_leave(status == SIM_OK ? sim_stream_query(queue) : status);
}

abi_enum hipStreamWaitEvent(struct ihipStream_t *stream, struct ihipEvent_t *event, unsigned flags) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  if (status != SIM_OK) return runtime_leave(status);
  sim_event *awaited = sim_check_of(event, "event", SIM_HIP);
  if (!awaited) return runtime_leave(SIM_INVALID_HANDLE);
  return runtime_leave(flags == 0 ? sim_stream_wait(queue, awaited) : SIM_INVALID_VALUE);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Events
 */

abi_enum hipEventCreateWithFlags(struct ihipEvent_t **event, unsigned flags) {
  sim_device *device;
  abi_enum status = runtime_enter(__func__, &device);
  if (status != SIM_OK) return runtime_leave(status);
  if (!event || flags > (HIP_ABI_EVENT_BLOCKING_SYNC | HIP_ABI_EVENT_DISABLE_TIMING))
    return runtime_leave(SIM_INVALID_VALUE);
  sim_event *made;
  status = sim_event_create(device, !(flags & HIP_ABI_EVENT_DISABLE_TIMING), &made);
  if (status == SIM_OK) *event = (struct ihipEvent_t *)made;
  return runtime_leave(status);
}

abi_enum hipEventDestroy(struct ihipEvent_t *event) {
  sim_event *found;
  abi_enum status = enter_event(__func__, event, &found);
  return runtime_leave(status == SIM_OK ? sim_event_delete(found) : status);
}

abi_enum hipEventRecord(struct ihipEvent_t *event, struct ihipStream_t *stream) {
  sim_stream *queue;
  abi_enum status = enter_stream(__func__, stream, &queue);
  if (status != SIM_OK) return runtime_leave(status);
  sim_event *found = sim_check_of(event, "event", SIM_HIP);
  return runtime_leave(found ? sim_event_record(found, queue) : SIM_INVALID_HANDLE);
}

abi_enum hipEventQuery(struct ihipEvent_t *event) {
  sim_event *found;
  abi_enum status = enter_event(__func__, event, &found);
  return runtime_leave(status == SIM_OK ? sim_event_query(found) : status);
}

abi_enum hipEventSynchronize(struct ihipEvent_t *event) {
  sim_event *found;
  abi_enum status = enter_event(__func__, event, &found);
  return runtime_leave(status == SIM_OK ? sim_event_finish(found) : status);
}

abi_enum hipEventElapsedTime(float *milliseconds, struct ihipEvent_t *from, struct ihipEvent_t *to) {
  sim_event *first, *second;
  abi_enum status = enter_event(__func__, from, &first);
  if (status == SIM_OK) status = enter_event(__func__, to, &second);
  if (status != SIM_OK) return runtime_leave(status);
  return runtime_leave(milliseconds ? sim_event_elapsed(milliseconds, first, second) : SIM_INVALID_VALUE);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Kernels
 */

abi_enum hipModuleLoadData(struct ihipModule_t **module, const void *image) {
  sim_device *device;
  abi_enum status = runtime_enter(__func__, &device);
  if (status != SIM_OK) return runtime_leave(status);
  if (!module || !image) return runtime_leave(SIM_INVALID_VALUE);
  sim_module *made;
  status = sim_module_load(device, image, &made);
  if (status == SIM_OK) *module = (struct ihipModule_t *)made;
  return runtime_leave(status);
}

static abi_enum enter_module(const char *name, struct ihipModule_t *handle, sim_module **module) {
  sim_device *device;
  abi_enum status = runtime_enter(name, &device);
  if (status != SIM_OK) return status;
  *module = sim_check_on(handle, "module", device);
  return *module ? SIM_OK : SIM_INVALID_HANDLE;
}

abi_enum hipModuleUnload(struct ihipModule_t *module) {
  sim_module *found;
  abi_enum status = enter_module(__func__, module, &found);
  return runtime_leave(status == SIM_OK ? sim_module_unload(found) : status);
}

abi_enum hipModuleGetFunction(struct ihipModuleSymbol_t **function, struct ihipModule_t *module, const char *name) {
  sim_module *found;
  abi_enum status = enter_module(__func__, module, &found);
  if (status != SIM_OK) return runtime_leave(status);
  if (!function || !name) return runtime_leave(SIM_INVALID_VALUE);
  sim_kernel *kernel;
  status = sim_module_kernel(found, name, &kernel);
  if (status == SIM_OK) *function = (struct ihipModuleSymbol_t *)kernel;
  return runtime_leave(status);
}

abi_enum hipModuleLaunchKernel(struct ihipModuleSymbol_t *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                               struct ihipStream_t *stream, void **arguments, void **extra) {
  sim_stream *queue;
  abi_enum status = enter_own_stream(__func__, stream, &queue);
  if (status != SIM_OK) return runtime_leave(status);
  if (extra) return runtime_leave(SIM_INVALID_VALUE); /* the other way to hand over arguments, which nobody needs */
  sim_grid grid = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return runtime_leave(sim_launch((sim_kernel *)function, &grid, arguments, queue));
}
