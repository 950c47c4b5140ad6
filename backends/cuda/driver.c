/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of CUDA, libcuda.so.1: one name for every version. Contexts are the primary ones, which the vendor's
 * libraries join. */
#include "../gpu/vendor.h"

#include "../gpu/abi/cuda_driver.h"
#include "../gpu/library.h"
#include "driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct table {
  CUDA_DRIVER_FUNCTIONS(GPU_POINTER)
  CUDA_DRIVER_OPTIONAL_FUNCTIONS(GPU_POINTER) /* NULL where the driver lacks it */
} table;

#define GPU_TABLE table
static const gpu_symbol symbols[] = {CUDA_DRIVER_FUNCTIONS(GPU_SYMBOL)};
static const gpu_symbol optional_symbols[] = {CUDA_DRIVER_OPTIONAL_FUNCTIONS(GPU_SYMBOL)};
static const char *const names[] = {GPU_CUDA_DRIVERS, NULL};

/* Compiled kernels come from NVRTC 11.2 at least, which wants a driver of its major version. */
#define OLDEST_VERSION 11000

static table driver;
static int driver_version;
static int device_count;
static pid_t driver_opened; /* the process that did */
static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;

int cuda_driver_version(void) {
  return driver_version;
}

void vendor_places(const helio_host *host, gpu_places *places) {
  gpu_library_places(host->parameter(host, vendor.parameter_libraries), GPU_CUDA_FOLDERS, places);
}

/* There is one driver for all; which versions it serves is seen when a handle is made. */
bool vendor_library_fits(void *library, char *reason, size_t size) {
  (void)library, (void)reason, (void)size;
  return true;
}

/* What the driver's answer to cuInit or cuDeviceGetCount means for somebody who wants to compute. */
static void explain(abi_enum result, char *reason, size_t size) {
  switch (result) {
  case CUDA_ABI_STUB_LIBRARY:
    snprintf(reason, size,
             "libcuda.so.1 is the stub of the CUDA Toolkit, not a driver: install NVIDIA's driver, or take the folder "
             "stubs out of the library path");
    return;
  case CUDA_ABI_NO_DEVICE:
    snprintf(
        reason, size,
        "there is no NVIDIA GPU, or CUDA_VISIBLE_DEVICES hides it: the driver found none (nvidia-smi shows what it "
        "sees)");
    return;
  case CUDA_ABI_NOT_INITIALIZED:
    snprintf(reason, size,
             "the driver of CUDA does not work in a child of a process that has used it: fork before the first use");
    return;
  case CUDA_ABI_SYSTEM_DRIVER_MISMATCH:
    snprintf(reason, size,
             "libcuda.so.1 and NVIDIA's kernel module are of different versions: restart the machine after an update");
    return;
  default:
    snprintf(reason, size, "the driver of CUDA does not start: %s", vendor_result_text((int)result));
  }
}

static bool open_library(char *reason, size_t size) {
  char error[512] = "";
  void *library = gpu_library_open(names, NULL, error, sizeof error);
  if (library == NULL) {
    snprintf(reason, size, "there is no driver of CUDA: install NVIDIA's driver (%s)", error);
    return false;
  }
  const char *missing = gpu_library_bind(library, symbols, sizeof symbols / sizeof symbols[0], &driver);
  (void)gpu_library_bind(library, optional_symbols, 1, &driver);
  if (missing == NULL) return true;
  snprintf(reason, size, "libcuda.so.1 has no %s: NVIDIA's driver is too old, install 450 or newer", missing);
  return false;
}

static bool start(char *reason, size_t size) {
  if (!open_library(reason, size)) return false;
  abi_enum result = driver.cuInit(0);
  if (result == 0) result = driver.cuDriverGetVersion(&driver_version);
  if (result == 0 && driver_version < OLDEST_VERSION) {
    snprintf(reason, size, "NVIDIA's driver is that of CUDA %d.%d, which is too old: install 450 (CUDA 11.0) or newer",
             driver_version / 1000, driver_version % 1000 / 10);
    return false;
  }
  if (result == 0) result = driver.cuDeviceGetCount(&device_count);
  if (result == 0 && device_count == 0) result = CUDA_ABI_NO_DEVICE;
  if (result == 0) return true;
  explain(result, reason, size);
  return false;
}

bool vendor_driver_open(const helio_host *host, int *count, char *reason, size_t size) {
  (void)host;
  bool opened = false;
  pthread_mutex_lock(&driver_lock);
  if (driver_opened != 0 && driver_opened != getpid()) {
    explain(CUDA_ABI_NOT_INITIALIZED, reason, size);
  } else {
    opened = driver_opened != 0 || start(reason, size);
    driver_opened = opened ? getpid() : 0;
  }
  pthread_mutex_unlock(&driver_lock);
  if (!opened) return false;
  *count = device_count;
  snprintf(reason, size, "%d NVIDIA %s, CUDA driver %d.%d", device_count, device_count == 1 ? "GPU" : "GPUs",
           driver_version / 1000, driver_version % 1000 / 10);
  return true;
}

/* Asks for one attribute, unless an earlier question failed. */
static void read_attribute(abi_enum *result, int device, abi_enum attribute, int *value) {
  if (*result == 0) *result = driver.cuDeviceGetAttribute(value, attribute, device);
}

vendor_result vendor_device_facts(int index, vendor_facts *facts) {
  int device = 0, major = 0, minor = 0, units = 0, warp = 0, shared = 0, integrated = 0;
  size_t memory = 0;
  abi_enum result = driver.cuDeviceGet(&device, index);
  if (result == 0) result = driver.cuDeviceGetName(facts->name, sizeof facts->name, device);
  if (result == 0) result = driver.cuDeviceGetPCIBusId(facts->bus_id, sizeof facts->bus_id, device);
  if (result == 0) result = driver.cuDeviceTotalMem_v2(&memory, device);
  read_attribute(&result, device, CUDA_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major);
  read_attribute(&result, device, CUDA_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor);
  read_attribute(&result, device, CUDA_ABI_ATTRIBUTE_MULTIPROCESSOR_COUNT, &units);
  read_attribute(&result, device, CUDA_ABI_ATTRIBUTE_WARP_SIZE, &warp);
  read_attribute(&result, device, CUDA_ABI_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &shared);
  read_attribute(&result, device, CUDA_ABI_ATTRIBUTE_INTEGRATED, &integrated);
  if (result != 0) return (int)result;
  snprintf(facts->architecture, sizeof facts->architecture, "sm_%d%d", major, minor);
  snprintf(facts->driver, sizeof facts->driver, "%d.%d", driver_version / 1000, driver_version % 1000 / 10);
  facts->memory = memory;
  facts->compute_units = (unsigned)units;
  facts->warp = (unsigned)warp;
  facts->shared_limit = (size_t)shared;
  facts->integrated = integrated != 0;
  return 0;
}

/* --- contexts --- */

vendor_result vendor_context_open(int index, vendor_context **context) {
  int device;
  abi_enum result = driver.cuDeviceGet(&device, index);
  if (result != 0) return (int)result;
  return (int)driver.cuDevicePrimaryCtxRetain((struct CUctx_st **)context, device);
}

void vendor_context_close(int index, vendor_context *context) {
  int device;
  (void)context;
  if (driver.cuDeviceGet(&device, index) != 0) return;
  driver.cuCtxSetCurrent(NULL);
  driver.cuDevicePrimaryCtxRelease_v2(device);
}

vendor_result vendor_context_enter(vendor_context *context) {
  return (int)driver.cuCtxSetCurrent((struct CUctx_st *)context);
}

void *vendor_context_native(vendor_context *context) {
  return context;
}

vendor_result vendor_context_synchronize(void) {
  return (int)driver.cuCtxSynchronize();
}

vendor_result vendor_context_query(void) {
  size_t free_bytes, total;
  return vendor_memory_info(&free_bytes, &total);
}

vendor_result vendor_memory_info(size_t *free_bytes, size_t *total) {
  return (int)driver.cuMemGetInfo_v2(free_bytes, total);
}

bool vendor_can_reach(int index, int peer) {
  int device, other, can = 0;
  return driver.cuDeviceGet(&device, index) == 0 && driver.cuDeviceGet(&other, peer) == 0 &&
         driver.cuDeviceCanAccessPeer(&can, device, other) == 0 && can != 0;
}

vendor_result vendor_reach(vendor_context *context, vendor_context *peer) {
  abi_enum result = driver.cuCtxSetCurrent((struct CUctx_st *)context);
  if (result == 0) result = driver.cuCtxEnablePeerAccess((struct CUctx_st *)peer, 0);
  return result == CUDA_ABI_PEER_ACCESS_ALREADY_ENABLED ? 0 : (int)result;
}

/* --- memory --- */

vendor_result vendor_allocate(gpu_address *address, size_t bytes) {
  cuda_abi_address made = 0;
  abi_enum result = driver.cuMemAlloc_v2(&made, bytes);
  if (result == 0) *address = made;
  return (int)result;
}

vendor_result vendor_free(gpu_address address) {
  return (int)driver.cuMemFree_v2(address);
}

vendor_result vendor_host_allocate(void **memory, size_t bytes) {
  return (int)driver.cuMemHostAlloc(memory, bytes, CUDA_ABI_MEMHOSTALLOC_PORTABLE);
}

vendor_result vendor_host_free(void *memory) {
  return (int)driver.cuMemFreeHost(memory);
}

static struct CUstream_st *stream_of(vendor_stream *stream) {
  return (struct CUstream_st *)stream;
}

vendor_result vendor_copy_in(gpu_address target, const void *source, size_t bytes, vendor_stream *stream) {
  return (int)driver.cuMemcpyHtoDAsync_v2(target, source, bytes, stream_of(stream));
}

vendor_result vendor_copy_out(void *target, gpu_address source, size_t bytes, vendor_stream *stream) {
  return (int)driver.cuMemcpyDtoHAsync_v2(target, source, bytes, stream_of(stream));
}

vendor_result vendor_copy(gpu_address target, gpu_address source, size_t bytes, vendor_stream *stream) {
  return (int)driver.cuMemcpyDtoDAsync_v2(target, source, bytes, stream_of(stream));
}

vendor_result vendor_copy_peer(vendor_context *to, gpu_address target, vendor_context *from, gpu_address source,
                               size_t bytes, vendor_stream *stream) {
  return (int)driver.cuMemcpyPeerAsync(target, (struct CUctx_st *)to, source, (struct CUctx_st *)from, bytes,
                                       stream_of(stream));
}

vendor_result vendor_fill(gpu_address target, uint32_t pattern, size_t pattern_bytes, size_t count,
                          vendor_stream *stream) {
  if (pattern_bytes == 1) return (int)driver.cuMemsetD8Async(target, (unsigned char)pattern, count, stream_of(stream));
  return (int)driver.cuMemsetD32Async(target, pattern, count, stream_of(stream));
}

/* --- streams and events --- */

vendor_result vendor_stream_create(vendor_stream **stream) {
  return (int)driver.cuStreamCreate((struct CUstream_st **)stream, CUDA_ABI_STREAM_NON_BLOCKING);
}

void vendor_stream_destroy(vendor_stream *stream) {
  driver.cuStreamDestroy_v2(stream_of(stream));
}

vendor_result vendor_stream_synchronize(vendor_stream *stream) {
  return (int)driver.cuStreamSynchronize(stream_of(stream));
}

vendor_result vendor_stream_wait(vendor_stream *stream, vendor_event *event) {
  return (int)driver.cuStreamWaitEvent(stream_of(stream), (struct CUevent_st *)event, 0);
}

vendor_result vendor_event_create(vendor_event **event) {
  return (int)driver.cuEventCreate((struct CUevent_st **)event,
                                   CUDA_ABI_EVENT_DISABLE_TIMING | CUDA_ABI_EVENT_BLOCKING_SYNC);
}

void vendor_event_destroy(vendor_event *event) {
  driver.cuEventDestroy_v2((struct CUevent_st *)event);
}

vendor_result vendor_event_record(vendor_event *event, vendor_stream *stream) {
  return (int)driver.cuEventRecord((struct CUevent_st *)event, stream_of(stream));
}

vendor_result vendor_event_query(vendor_event *event) {
  return (int)driver.cuEventQuery((struct CUevent_st *)event);
}

vendor_result vendor_event_synchronize(vendor_event *event) {
  return (int)driver.cuEventSynchronize((struct CUevent_st *)event);
}

unsigned vendor_capture_mode_exchange(unsigned mode) {
  if (driver.cuThreadExchangeStreamCaptureMode != NULL) (void)driver.cuThreadExchangeStreamCaptureMode(&mode);
  return mode;
}

/* --- kernels --- */

vendor_result vendor_module_load(const void *image, vendor_module **module) {
  return (int)driver.cuModuleLoadData((struct CUmod_st **)module, image);
}

void vendor_module_unload(vendor_module *module) {
  driver.cuModuleUnload((struct CUmod_st *)module);
}

vendor_result vendor_module_function(vendor_module *module, const char *name, vendor_function **function) {
  return (int)driver.cuModuleGetFunction((struct CUfunc_st **)function, (struct CUmod_st *)module, name);
}

vendor_result vendor_launch(vendor_function *function, unsigned blocks, unsigned threads, vendor_stream *stream,
                            void **arguments) {
  return (int)driver.cuLaunchKernel((struct CUfunc_st *)function, blocks, 1, 1, threads, 1, 1, 0, stream_of(stream),
                                    arguments, NULL);
}

/* --- results --- */

const char *vendor_result_text(vendor_result result) {
  static _Thread_local char text[256];
  const char *name = NULL, *words = NULL;
  if (driver.cuGetErrorName == NULL || driver.cuGetErrorName((abi_enum)result, &name) != 0) name = NULL;
  if (driver.cuGetErrorString == NULL || driver.cuGetErrorString((abi_enum)result, &words) != 0) words = NULL;
  if (name == NULL) {
    snprintf(text, sizeof text, "error %d of CUDA", result);
  } else {
    snprintf(text, sizeof text, "%s: %s", name, words == NULL ? "" : words);
  }
  return text;
}
