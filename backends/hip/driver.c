/* SPDX-License-Identifier: Apache-2.0 */
/* HIP's runtime, libamdhip64: driver and runtime in one. It has no contexts but a current device in each thread. */
#include "../gpu/vendor.h"

#include "../gpu/abi/hip.h"
#include "../gpu/library.h"
#include "driver.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct table {
  HIP_FUNCTIONS(GPU_POINTER)
  HIP_PROPERTIES_FUNCTION(GPU_POINTER)
  HIP_OLDER_PROPERTIES_FUNCTION(GPU_POINTER)
  HIP_OPTIONAL_FUNCTIONS(GPU_POINTER) /* NULL where the runtime lacks it */
} table;

#define GPU_TABLE table
static const gpu_symbol symbols[] = {HIP_FUNCTIONS(GPU_SYMBOL)};
static const gpu_symbol properties_symbol[] = {HIP_PROPERTIES_FUNCTION(GPU_SYMBOL)};
static const gpu_symbol older_properties_symbol[] = {HIP_OLDER_PROPERTIES_FUNCTION(GPU_SYMBOL)};
static const gpu_symbol optional_symbols[] = {HIP_OPTIONAL_FUNCTIONS(GPU_SYMBOL)};

static const char *const names[] = {GPU_HIP_DRIVERS, NULL};

#define DEVICES_MOST 64

/* A context is the number of a device; its address is what native_device() gives. */
struct vendor_context {
  int device;
};

static struct vendor_context contexts[DEVICES_MOST];
static table hip;
static void *library;
static int runtime_version;
static int device_count;
static pid_t driver_opened; /* the process that did */
static pthread_mutex_t driver_lock = PTHREAD_MUTEX_INITIALIZER;

/* A result as it is handed on. HIP keeps the last error of a thread until somebody reads it, since 7 whatever succeeds
 * meanwhile, and AMD's libraries read it behind launches of their own: what we know of must not be blamed on them. */
static vendor_result done(abi_enum result) {
  if (result != 0 && hip.hipGetLastError != NULL) (void)hip.hipGetLastError();
  return (int)result;
}

void *hip_runtime_library(void) {
  return library;
}

int hip_runtime_major(void) {
  return runtime_version / 10000000;
}

void vendor_places(const helio_host *host, gpu_places *places) {
  gpu_library_places(host->parameter(host, vendor.parameter_libraries), GPU_HIP_FOLDERS, places);
}

bool vendor_library_fits(void *opened, char *reason, size_t size) {
  return gpu_library_shares(opened, "hipSetDevice", dlsym(library, "hipSetDevice"), reason, size);
}

static void explain(abi_enum result, char *reason, size_t size) {
  if (result != HIP_ABI_NO_DEVICE && result != HIP_ABI_INVALID_DEVICE) {
    snprintf(reason, size, "HIP does not start: %s", vendor_result_text((int)result));
  } else if (access("/dev/kfd", F_OK) != 0) {
    snprintf(reason, size,
             "there is no AMD GPU: the kernel's driver amdgpu has not made /dev/kfd (in a container it must be handed "
             "in, with /dev/dri)");
  } else if (access("/dev/kfd", R_OK | W_OK) != 0) {
    snprintf(reason, size, "the AMD GPU cannot be used: /dev/kfd may not be opened; join the groups render and video");
  } else {
    snprintf(reason, size,
             "there is no AMD GPU that HIP can use, or HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES hides it (rocminfo "
             "shows what there is)");
  }
}

static bool open_library(const helio_host *host, char *reason, size_t size) {
  char error[512] = "";
  gpu_places places;
  vendor_places(host, &places);
  library = gpu_library_open(names, &places, error, sizeof error);
  if (library == NULL) {
    snprintf(reason, size,
             "there is no HIP: install ROCm's runtime (Debian: libamdhip64-5), or say where it is by %s (%s)",
             vendor.parameter_libraries, error);
    return false;
  }
  const char *missing = gpu_library_bind(library, symbols, sizeof symbols / sizeof symbols[0], &hip);
  if (missing == NULL && gpu_library_bind(library, properties_symbol, 1, &hip) != NULL)
    missing = gpu_library_bind(library, older_properties_symbol, 1, &hip);
  (void)gpu_library_bind(library, optional_symbols, 1, &hip);
  if (missing == NULL) return true;
  snprintf(reason, size, "libamdhip64 has no %s: ROCm is too old, install 5.2 or newer", missing);
  return false;
}

static bool start(const helio_host *host, char *reason, size_t size) {
  if (!open_library(host, reason, size)) return false;
  abi_enum result = hip.hipGetDeviceCount(&device_count);
  if (result == 0 && device_count == 0) result = HIP_ABI_NO_DEVICE;
  if (result == 0) result = hip.hipRuntimeGetVersion(&runtime_version);
  if (done(result) != 0) {
    explain(result, reason, size);
    return false;
  }
  if (device_count > DEVICES_MOST) device_count = DEVICES_MOST;
  for (int i = 0; i < device_count; i++) contexts[i].device = i;
  return true;
}

/* A runtime's version is major × 10⁷ + minor × 10⁵ + patch. */
static void version_text(char *text, size_t size) {
  snprintf(text, size, "%d.%d", runtime_version / 10000000, runtime_version / 100000 % 100);
}

bool vendor_driver_open(const helio_host *host, int *count, char *reason, size_t size) {
  bool opened = false;
  pthread_mutex_lock(&driver_lock);
  if (driver_opened != 0 && driver_opened != getpid()) {
    snprintf(reason, size, "HIP does not work in a child of a process that has used it: fork before the first use");
  } else {
    opened = driver_opened != 0 || start(host, reason, size);
    driver_opened = opened ? getpid() : 0;
  }
  pthread_mutex_unlock(&driver_lock);
  if (!opened) return false;
  char version[32];
  version_text(version, sizeof version);
  *count = device_count;
  snprintf(reason, size, "%d AMD %s, HIP %s", device_count, device_count == 1 ? "GPU" : "GPUs", version);
  return true;
}

/* The architecture is only in the struct of all properties, which has two layouts. */
static abi_enum read_architecture(int index, char *text, size_t size) {
  union {
    char bytes[HIP_ABI_PROPERTIES_BYTES];
    long long aligned;
  } properties;
  memset(&properties, 0, sizeof properties);
  bool newer = hip.hipGetDevicePropertiesR0600 != NULL;
  abi_enum result = newer ? hip.hipGetDevicePropertiesR0600((void *)properties.bytes, index)
                          : hip.hipGetDeviceProperties((void *)properties.bytes, index);
  if (result != 0) return result;
  const char *name = properties.bytes + (newer ? HIP_ABI_ARCHITECTURE_OFFSET_R0600 : HIP_ABI_ARCHITECTURE_OFFSET);
  snprintf(text, size, "%.*s", HIP_ABI_ARCHITECTURE_BYTES - 1, name);
  return 0;
}

static void read_attribute(abi_enum *result, int device, abi_enum attribute, int *value) {
  if (*result == 0) *result = hip.hipDeviceGetAttribute(value, attribute, device);
}

vendor_result vendor_device_facts(int index, vendor_facts *facts) {
  int units = 0, warp = 0, shared = 0, integrated = 0;
  size_t memory = 0;
  abi_enum result = hip.hipDeviceGetName(facts->name, sizeof facts->name, index);
  if (result == 0) result = hip.hipDeviceGetPCIBusId(facts->bus_id, sizeof facts->bus_id, index);
  if (result == 0) result = hip.hipDeviceTotalMem(&memory, index);
  if (result == 0) result = read_architecture(index, facts->architecture, sizeof facts->architecture);
  read_attribute(&result, index, HIP_ABI_ATTRIBUTE_MULTIPROCESSOR_COUNT, &units);
  read_attribute(&result, index, HIP_ABI_ATTRIBUTE_WARP_SIZE, &warp);
  read_attribute(&result, index, HIP_ABI_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &shared);
  read_attribute(&result, index, HIP_ABI_ATTRIBUTE_INTEGRATED, &integrated);
  if (result != 0) return done(result);
  if (facts->name[0] == '\0') snprintf(facts->name, sizeof facts->name, "%s", facts->architecture);
  version_text(facts->driver, sizeof facts->driver);
  facts->memory = memory;
  facts->compute_units = (unsigned)units;
  facts->warp = (unsigned)warp;
  facts->shared_limit = (size_t)shared;
  facts->integrated = integrated != 0;
  return 0;
}

/* --- contexts --- */

vendor_result vendor_context_open(int index, vendor_context **context) {
  abi_enum result = hip.hipSetDevice(index);
  if (result == 0) *context = &contexts[index];
  return done(result);
}

void vendor_context_close(int index, vendor_context *context) {
  (void)index;
  (void)context;
}

vendor_result vendor_context_enter(vendor_context *context) {
  return done(hip.hipSetDevice(context->device));
}

void *vendor_context_native(vendor_context *context) {
  return &context->device;
}

vendor_result vendor_context_synchronize(void) {
  return done(hip.hipDeviceSynchronize());
}

vendor_result vendor_context_query(void) {
  size_t free_bytes, total;
  (void)hip.hipGetLastError(); /* what a library has left there */
  return vendor_memory_info(&free_bytes, &total);
}

vendor_result vendor_memory_info(size_t *free_bytes, size_t *total) {
  return done(hip.hipMemGetInfo(free_bytes, total));
}

bool vendor_can_reach(int index, int peer) {
  int can = 0;
  return done(hip.hipDeviceCanAccessPeer(&can, index, peer)) == 0 && can != 0;
}

vendor_result vendor_reach(vendor_context *context, vendor_context *peer) {
  abi_enum result = hip.hipSetDevice(context->device);
  if (result == 0) result = hip.hipDeviceEnablePeerAccess(peer->device, 0);
  vendor_result answer = done(result);
  return answer == HIP_ABI_PEER_ACCESS_ALREADY_ENABLED ? 0 : answer;
}

/* --- memory --- */

static void *pointer(gpu_address address) {
  return (void *)(uintptr_t)address;
}

vendor_result vendor_allocate(gpu_address *address, size_t bytes) {
  void *made = NULL;
  abi_enum result = hip.hipMalloc(&made, bytes);
  if (result == 0) *address = (gpu_address)(uintptr_t)made;
  return done(result);
}

vendor_result vendor_free(gpu_address address) {
  return done(hip.hipFree(pointer(address)));
}

vendor_result vendor_host_allocate(void **memory, size_t bytes) {
  return done(hip.hipHostMalloc(memory, bytes, HIP_ABI_HOST_MALLOC_PORTABLE));
}

vendor_result vendor_host_free(void *memory) {
  return done(hip.hipHostFree(memory));
}

static struct ihipStream_t *stream_of(vendor_stream *stream) {
  return (struct ihipStream_t *)stream;
}

vendor_result vendor_copy_in(gpu_address target, const void *source, size_t bytes, vendor_stream *stream) {
  return done(hip.hipMemcpyAsync(pointer(target), source, bytes, HIP_ABI_HOST_TO_DEVICE, stream_of(stream)));
}

vendor_result vendor_copy_out(void *target, gpu_address source, size_t bytes, vendor_stream *stream) {
  return done(hip.hipMemcpyAsync(target, pointer(source), bytes, HIP_ABI_DEVICE_TO_HOST, stream_of(stream)));
}

vendor_result vendor_copy(gpu_address target, gpu_address source, size_t bytes, vendor_stream *stream) {
  return done(hip.hipMemcpyAsync(pointer(target), pointer(source), bytes, HIP_ABI_DEVICE_TO_DEVICE, stream_of(stream)));
}

vendor_result vendor_copy_peer(vendor_context *to, gpu_address target, vendor_context *from, gpu_address source,
                               size_t bytes, vendor_stream *stream) {
  return done(
      hip.hipMemcpyPeerAsync(pointer(target), to->device, pointer(source), from->device, bytes, stream_of(stream)));
}

vendor_result vendor_fill(gpu_address target, uint32_t pattern, size_t pattern_bytes, size_t count,
                          vendor_stream *stream) {
  if (pattern_bytes == 1)
    return done(hip.hipMemsetD8Async(pointer(target), (unsigned char)pattern, count, stream_of(stream)));
  return done(hip.hipMemsetD32Async(pointer(target), (int)pattern, count, stream_of(stream)));
}

/* --- streams and events --- */

vendor_result vendor_stream_create(vendor_stream **stream) {
  return done(hip.hipStreamCreateWithFlags((struct ihipStream_t **)stream, HIP_ABI_STREAM_NON_BLOCKING));
}

void vendor_stream_destroy(vendor_stream *stream) {
  (void)done(hip.hipStreamDestroy(stream_of(stream)));
}

vendor_result vendor_stream_synchronize(vendor_stream *stream) {
  return done(hip.hipStreamSynchronize(stream_of(stream)));
}

vendor_result vendor_stream_wait(vendor_stream *stream, vendor_event *event) {
  return done(hip.hipStreamWaitEvent(stream_of(stream), (struct ihipEvent_t *)event, 0));
}

vendor_result vendor_event_create(vendor_event **event) {
  return done(hip.hipEventCreateWithFlags((struct ihipEvent_t **)event, HIP_ABI_EVENT_DISABLE_TIMING));
}

void vendor_event_destroy(vendor_event *event) {
  (void)done(hip.hipEventDestroy((struct ihipEvent_t *)event));
}

vendor_result vendor_event_record(vendor_event *event, vendor_stream *stream) {
  return done(hip.hipEventRecord((struct ihipEvent_t *)event, stream_of(stream)));
}

vendor_result vendor_event_query(vendor_event *event) {
  return done(hip.hipEventQuery((struct ihipEvent_t *)event));
}

/* Most versions of hipEventSynchronize keep a core busy for as long as the device takes, whatever the event was made
 * with, unless the program has asked for something else for all of its devices: that is for the program to do. */
vendor_result vendor_event_synchronize(vendor_event *event) {
  static const struct timespec nap = {.tv_nsec = 50000};
  vendor_result result = vendor_event_query(event);
  while (result == HIP_ABI_NOT_READY) {
    nanosleep(&nap, NULL);
    result = vendor_event_query(event);
  }
  return result;
}

unsigned vendor_capture_mode_exchange(unsigned mode) {
  if (hip.hipThreadExchangeStreamCaptureMode != NULL) (void)done(hip.hipThreadExchangeStreamCaptureMode(&mode));
  return mode;
}

/* --- kernels --- */

vendor_result vendor_module_load(const void *image, vendor_module **module) {
  return done(hip.hipModuleLoadData((struct ihipModule_t **)module, image));
}

void vendor_module_unload(vendor_module *module) {
  (void)done(hip.hipModuleUnload((struct ihipModule_t *)module));
}

vendor_result vendor_module_function(vendor_module *module, const char *name, vendor_function **function) {
  return done(hip.hipModuleGetFunction((struct ihipModuleSymbol_t **)function, (struct ihipModule_t *)module, name));
}

vendor_result vendor_launch(vendor_function *function, unsigned blocks, unsigned threads, vendor_stream *stream,
                            void **arguments) {
  return done(hip.hipModuleLaunchKernel((struct ihipModuleSymbol_t *)function, blocks, 1, 1, threads, 1, 1, 0,
                                        stream_of(stream), arguments, NULL));
}

/* --- results --- */

const char *vendor_result_text(vendor_result result) {
  static _Thread_local char text[256];
  if (hip.hipGetErrorName == NULL || hip.hipGetErrorString == NULL) {
    snprintf(text, sizeof text, "error %d of HIP", result);
  } else {
    snprintf(text, sizeof text, "%s: %s", hip.hipGetErrorName((abi_enum)result),
             hip.hipGetErrorString((abi_enum)result));
  }
  return text;
}
