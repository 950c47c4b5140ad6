/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes with memory, streams, events and contexts, most of them through CUDA's driver; HIP's runtime has its own at
 * the end of the list. */
#include "mistakes.h"

#include "cuda_driver.h"
#include "hip.h"
#include "sim.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

CUDA_DRIVER_FUNCTIONS(FACE_POINTER)
HIP_FUNCTIONS(FACE_POINTER)

enum { BYTES = 1000 }; /* no multiple of the alignment */

static struct CUctx_st *contexts[2];

static void open_cuda(int devices) {
#define X(result, name, arguments) FACE_LOOKUP("libcuda.so.1", name)
  CUDA_DRIVER_FUNCTIONS(X)
#undef X
  NEED(cuInit(0));
  for (int i = 0; i < devices; i++) NEED(cuDevicePrimaryCtxRetain(&contexts[i], i));
  NEED(cuCtxSetCurrent(contexts[0]));
}

static void close_cuda(int devices) {
  for (int i = 0; i < devices; i++) NEED(cuDevicePrimaryCtxRelease_v2(i));
}

static void open_hip(void) {
#define X(result, name, arguments) FACE_LOOKUP("libamdhip64.so.6", name)
  HIP_FUNCTIONS(X)
#undef X
  NEED(hipInit(0));
}

static cuda_abi_address allocate(size_t bytes) {
  cuda_abi_address address;
  NEED(cuMemAlloc_v2(&address, bytes));
  return address;
}

static char *allocate_pinned(size_t bytes) {
  void *address;
  NEED(cuMemHostAlloc(&address, bytes, 0));
  return address;
}

static struct CUstream_st *make_stream(void) {
  struct CUstream_st *stream;
  NEED(cuStreamCreate(&stream, CUDA_ABI_STREAM_NON_BLOCKING));
  return stream;
}

static struct CUevent_st *make_event(void) {
  struct CUevent_st *event;
  NEED(cuEventCreate(&event, CUDA_ABI_EVENT_DISABLE_TIMING));
  return event;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Device memory
 */

static volatile char sink; /* so that a read is made */

static void host_reads(bool wrong) {
  open_cuda(1);
  cuda_abi_address address = allocate(BYTES);
  if (wrong) sink = *(char *)(uintptr_t)address;
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void host_writes(bool wrong) {
  open_cuda(1);
  cuda_abi_address address = allocate(BYTES);
  if (wrong) memset((void *)(uintptr_t)address, 0, 4);
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void copy_too_long(bool wrong) {
  open_cuda(1);
  cuda_abi_address address = allocate(BYTES);
  char host[2 * BYTES] = {0};
  cuMemcpyHtoDAsync_v2(address, host, wrong ? BYTES + 1 : BYTES, NULL);
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void fill_before(bool wrong) {
  open_cuda(1);
  cuda_abi_address address = allocate(BYTES);
  cuMemsetD8Async(wrong ? address - 1 : address, 0, BYTES, NULL);
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void fill_misaligned(bool wrong) {
  open_cuda(1);
  cuda_abi_address address = allocate(BYTES);
  cuMemsetD32Async(wrong ? address + 2 : address, 0, 4, NULL);
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void copy_after_free(bool wrong) {
  open_cuda(1);
  cuda_abi_address address = allocate(BYTES);
  char host[BYTES];
  if (!wrong) cuMemcpyDtoHAsync_v2(host, address, BYTES, NULL);
  NEED(cuMemFree_v2(address));
  if (wrong) cuMemcpyDtoHAsync_v2(host, address, BYTES, NULL);
  close_cuda(1);
}

static void free_twice(bool wrong) {
  open_cuda(1);
  cuda_abi_address address = allocate(BYTES);
  NEED(cuMemFree_v2(address));
  if (wrong) cuMemFree_v2(address);
  close_cuda(1);
}

static void free_the_middle(bool wrong) {
  open_cuda(1);
  cuda_abi_address address = allocate(BYTES);
  if (wrong) cuMemFree_v2(address + 256);
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void free_host_memory(bool wrong) {
  open_cuda(1);
  char *host = malloc(BYTES);
  if (wrong) cuMemFree_v2((uintptr_t)host);
  free(host);
  close_cuda(1);
}

static void host_for_device(bool wrong) {
  open_cuda(1);
  char host[BYTES] = {0}, other[BYTES] = {0};
  cuda_abi_address address = allocate(BYTES);
  cuMemcpyHtoDAsync_v2(wrong ? (uintptr_t)other : address, host, BYTES, NULL);
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void device_for_host(bool wrong) {
  open_cuda(1);
  char host[BYTES] = {0};
  cuda_abi_address address = allocate(BYTES), other = allocate(BYTES);
  cuMemcpyHtoDAsync_v2(address, wrong ? (char *)(uintptr_t)other : host, BYTES, NULL);
  NEED(cuMemFree_v2(address));
  NEED(cuMemFree_v2(other));
  close_cuda(1);
}

static void copy_onto_itself(bool wrong) {
  open_cuda(1);
  cuda_abi_address address = allocate(BYTES);
  cuMemcpyDtoDAsync_v2(address, address + (wrong ? 100 : 500), 500, NULL);
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void leak_memory(bool wrong) {
  open_cuda(1);
  cuda_abi_address address = allocate(BYTES);
  if (!wrong) NEED(cuMemFree_v2(address));
  close_cuda(1);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Two devices
 */

static void other_devices_memory(bool wrong) {
  open_cuda(2);
  cuda_abi_address address = allocate(BYTES);
  NEED(cuCtxSetCurrent(contexts[wrong]));
  cuMemsetD8Async(address, 0, BYTES, NULL);
  NEED(cuCtxSetCurrent(contexts[0]));
  NEED(cuMemFree_v2(address));
  close_cuda(2);
}

static void other_devices_event(bool wrong) {
  open_cuda(2);
  struct CUevent_st *event = make_event();
  NEED(cuCtxSetCurrent(contexts[wrong]));
  cuEventRecord(event, NULL);
  NEED(cuCtxSetCurrent(contexts[0]));
  NEED(cuEventDestroy_v2(event));
  close_cuda(2);
}

static void time_between_devices(bool wrong) {
  open_cuda(2);
  struct CUevent_st *events[2];
  for (int i = 0; i < 2; i++) {
    NEED(cuCtxSetCurrent(contexts[wrong && i]));
    NEED(cuEventCreate(&events[i], 0));
    NEED(cuEventRecord(events[i], NULL));
    NEED(cuEventSynchronize(events[i]));
  }
  float milliseconds;
  cuEventElapsedTime(&milliseconds, events[0], events[1]);
  for (int i = 0; i < 2; i++) NEED(cuEventDestroy_v2(events[i]));
  close_cuda(2);
}

static void peer_of_wrong_context(bool wrong) {
  open_cuda(2);
  cuda_abi_address one = allocate(BYTES);
  NEED(cuCtxSetCurrent(contexts[1]));
  cuda_abi_address other = allocate(BYTES);
  cuMemcpyPeerAsync(other, contexts[!wrong], one, contexts[0], BYTES, NULL);
  NEED(cuMemFree_v2(other));
  NEED(cuCtxSetCurrent(contexts[0]));
  NEED(cuMemFree_v2(one));
  close_cuda(2);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Streams, events and contexts
 */

static void deleted_stream(bool wrong) {
  open_cuda(1);
  struct CUstream_st *stream = make_stream();
  if (!wrong) NEED(cuStreamSynchronize(stream));
  NEED(cuStreamDestroy_v2(stream));
  if (wrong) cuStreamSynchronize(stream);
  close_cuda(1);
}

static void deleted_event(bool wrong) {
  open_cuda(1);
  struct CUevent_st *event = make_event();
  if (!wrong) NEED(cuEventRecord(event, NULL));
  NEED(cuEventDestroy_v2(event));
  if (wrong) cuEventRecord(event, NULL);
  close_cuda(1);
}

static void event_for_stream(bool wrong) {
  open_cuda(1);
  struct CUevent_st *event = make_event();
  cuStreamSynchronize(wrong ? (struct CUstream_st *)event : NULL);
  NEED(cuEventDestroy_v2(event));
  close_cuda(1);
}

static void no_context(bool wrong) {
  open_cuda(1);
  if (wrong) NEED(cuCtxSetCurrent(NULL));
  cuda_abi_address address = 0;
  cuMemAlloc_v2(&address, BYTES);
  if (!wrong) NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void released_context(bool wrong) {
  open_cuda(1);
  if (wrong) close_cuda(1);
  struct CUstream_st *stream = NULL;
  cuStreamCreate(&stream, 0);
  if (wrong) return;
  NEED(cuStreamDestroy_v2(stream));
  close_cuda(1);
}

static void release_twice(bool wrong) {
  open_cuda(1);
  close_cuda(1);
  if (wrong) cuDevicePrimaryCtxRelease_v2(0);
}

static void leak_context(bool wrong) {
  open_cuda(1);
  if (!wrong) close_cuda(1);
}

static void leak_stream(bool wrong) {
  open_cuda(1);
  struct CUstream_st *stream = make_stream();
  if (!wrong) NEED(cuStreamDestroy_v2(stream));
  close_cuda(1);
}

static void leak_event(bool wrong) {
  open_cuda(1);
  struct CUevent_st *event = make_event();
  if (!wrong) NEED(cuEventDestroy_v2(event));
  close_cuda(1);
}

static void untimed_event(bool wrong) {
  open_cuda(1);
  struct CUevent_st *events[2];
  for (int i = 0; i < 2; i++) {
    NEED(cuEventCreate(&events[i], wrong ? CUDA_ABI_EVENT_DISABLE_TIMING : 0));
    NEED(cuEventRecord(events[i], NULL));
    NEED(cuEventSynchronize(events[i]));
  }
  float milliseconds;
  cuEventElapsedTime(&milliseconds, events[0], events[1]);
  for (int i = 0; i < 2; i++) NEED(cuEventDestroy_v2(events[i]));
  close_cuda(1);
}

/* The child's status is the program's. */
static void use_after_fork(bool wrong) {
  open_cuda(1);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    int count;
    if (wrong) cuDeviceGetCount(&count);
    exit(0);
  }
  int status = -1;
  NEED(waitpid(child, &status, 0) != child);
  close_cuda(1);
  if (status != 0) exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Pinned memory
 */

static void free_while_copied(bool wrong) {
  open_cuda(1);
  char *host = allocate_pinned(BYTES);
  cuda_abi_address address = allocate(BYTES);
  NEED(cuMemcpyHtoDAsync_v2(address, host, BYTES, NULL));
  if (!wrong) NEED(cuStreamSynchronize(NULL));
  cuMemFreeHost(host);
  NEED(cuMemFree_v2(address));
  if (wrong) NEED(cuMemFreeHost(host));
  close_cuda(1);
}

static void overwrite_while_copied(bool wrong) {
  open_cuda(1);
  char *host = allocate_pinned(BYTES);
  cuda_abi_address address = allocate(BYTES);
  memset(host, 1, BYTES);
  NEED(cuMemcpyHtoDAsync_v2(address, host, BYTES, NULL));
  if (!wrong) NEED(cuStreamSynchronize(NULL));
  host[BYTES / 2] = 2;
  NEED(cuStreamSynchronize(NULL));
  NEED(cuMemFreeHost(host));
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void write_into_destination(bool wrong) {
  open_cuda(1);
  char *host = allocate_pinned(BYTES);
  cuda_abi_address address = allocate(BYTES);
  NEED(cuMemcpyDtoHAsync_v2(host, address, BYTES, NULL));
  if (!wrong) NEED(cuStreamSynchronize(NULL));
  host[0] = 7;
  NEED(cuStreamSynchronize(NULL));
  NEED(cuMemFreeHost(host));
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void pinned_overrun(bool wrong) {
  open_cuda(1);
  char *host = allocate_pinned(BYTES);
  memset(host, 0, wrong ? BYTES + 1 : BYTES); /* into the canary */
  NEED(cuMemFreeHost(host));
  close_cuda(1);
}

static void pinned_far_overrun(bool wrong) {
  open_cuda(1);
  char *host = allocate_pinned(BYTES);
  memset(host, 0, wrong ? BYTES + 64 : BYTES); /* into the guard */
  NEED(cuMemFreeHost(host));
  close_cuda(1);
}

static void pinned_copy_too_long(bool wrong) {
  open_cuda(1);
  char *host = allocate_pinned(BYTES);
  cuda_abi_address address = allocate(2 * BYTES);
  cuMemcpyHtoDAsync_v2(address, host, wrong ? BYTES + 1 : BYTES, NULL);
  NEED(cuMemFree_v2(address));
  NEED(cuMemFreeHost(host));
  close_cuda(1);
}

static void free_pinned_twice(bool wrong) {
  open_cuda(1);
  char *host = allocate_pinned(BYTES);
  NEED(cuMemFreeHost(host));
  if (wrong) cuMemFreeHost(host);
  close_cuda(1);
}

static void pinned_use_after_free(bool wrong) {
  open_cuda(1);
  char *host = allocate_pinned(BYTES);
  if (!wrong) host[0] = 1;
  NEED(cuMemFreeHost(host));
  if (wrong) host[0] = 1;
  close_cuda(1);
}

/* GPUSIM_FAULT=lost:copy:1@1: what was made on a healthy device is a leak, whatever became of another. */
static void leak_beside_lost(bool wrong) {
  open_cuda(2);
  char *host = allocate_pinned(BYTES);
  if (!wrong) NEED(cuMemFreeHost(host));
  NEED(cuCtxSetCurrent(contexts[1]));
  (void)allocate_pinned(BYTES); /* goes with the device */
  cuda_abi_address address = allocate(BYTES);
  (void)cuMemsetD8Async(address, 0, BYTES, NULL);
  close_cuda(2);
}

static void leak_pinned(bool wrong) {
  open_cuda(1);
  char *host = allocate_pinned(BYTES);
  if (!wrong) NEED(cuMemFreeHost(host));
  close_cuda(1);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Missing synchronization: no violation of a rule that could be checked, but wrong numbers, which the program itself
 * sees
 */

static void read_too_early(bool wrong) {
  open_cuda(1);
  unsigned *host = (unsigned *)allocate_pinned(BYTES);
  cuda_abi_address address = allocate(BYTES);
  struct CUstream_st *stream = make_stream();
  NEED(cuMemsetD32Async(address, 5, BYTES / 4, stream));
  NEED(cuMemcpyDtoHAsync_v2(host, address, BYTES, stream));
  if (!wrong) NEED(cuStreamSynchronize(stream));
  unsigned seen = host[BYTES / 8];
  NEED(cuStreamDestroy_v2(stream));
  NEED(cuMemFree_v2(address));
  NEED(cuMemFreeHost(host));
  close_cuda(1);
  if (seen != 5) fail_numbers();
}

static void no_wait_between_streams(bool wrong) {
  open_cuda(1);
  unsigned host[BYTES / 4];
  cuda_abi_address address = allocate(BYTES);
  struct CUstream_st *first = make_stream(), *second = make_stream();
  struct CUevent_st *event = make_event();
  for (int i = 0; i < 8; i++) NEED(cuMemsetD32Async(address, 5, BYTES / 4, first));
  NEED(cuEventRecord(event, first));
  if (!wrong) NEED(cuStreamWaitEvent(second, event, 0));
  NEED(cuMemcpyDtoHAsync_v2(host, address, BYTES, second)); /* waits, because the host's memory is pageable */
  NEED(cuMemFree_v2(address));
  NEED(cuEventDestroy_v2(event));
  NEED(cuStreamDestroy_v2(first));
  NEED(cuStreamDestroy_v2(second));
  close_cuda(1);
  if (host[BYTES / 8] != 5) fail_numbers();
}

static void read_fresh_memory(bool wrong) {
  open_cuda(1);
  float host[BYTES / 4];
  cuda_abi_address address = allocate(BYTES);
  if (!wrong) NEED(cuMemsetD8Async(address, 0, BYTES, NULL));
  NEED(cuMemcpyDtoHAsync_v2(host, address, BYTES, NULL));
  NEED(cuMemFree_v2(address));
  close_cuda(1);
  if (host[7] != 0) fail_numbers();
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What only work of the core's own can do wrong here; kernels have mistakes of their own
 */

/* A function of the core. */
#define CORE(name)                                                                                                     \
  __typeof__(&name) core_##name;                                                                                       \
  *(void **)&core_##name = face_function("libgpusim.so", #name)

static sim_status do_nothing(void *argument) {
  (void)argument;
  return SIM_OK;
}

static bool is_never_ready(void *argument) {
  (void)argument;
  return false;
}

static void wait_for_ever(bool wrong) {
  open_cuda(1);
  CORE(sim_device_at);
  CORE(sim_stream_of);
  CORE(sim_queue);
  sim_stream *stream = core_sim_stream_of(core_sim_device_at(SIM_CUDA, 0), NULL);
  sim_work work = {.name = "work that is never ready", .run = do_nothing, .is_ready = wrong ? is_never_ready : NULL};
  NEED(core_sim_queue(stream, &work));
  cuStreamSynchronize(NULL);
  close_cuda(1);
}

static void write_canary(bool wrong) {
  open_cuda(1);
  CORE(sim_device_at);
  CORE(sim_twin);
  cuda_abi_address address = allocate(BYTES);
  char *twin = core_sim_twin(core_sim_device_at(SIM_CUDA, 0), (void *)(uintptr_t)address, BYTES, "memory");
  memset(twin, 0, wrong ? BYTES + 1 : BYTES);
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * HIP
 */

static void hip_leak(bool wrong) {
  open_hip();
  void *address;
  NEED(hipMalloc(&address, BYTES));
  if (!wrong) NEED(hipFree(address));
}

static void hip_wrong_kind(bool wrong) {
  open_hip();
  void *address;
  char host[BYTES] = {0};
  NEED(hipMalloc(&address, BYTES));
  (void)hipMemcpyAsync(address, host, BYTES, wrong ? HIP_ABI_DEVICE_TO_DEVICE : HIP_ABI_HOST_TO_DEVICE, NULL);
  NEED(hipFree(address));
}

static void hip_deleted_stream(bool wrong) {
  open_hip();
  struct ihipStream_t *stream;
  NEED(hipStreamCreateWithFlags(&stream, 0));
  NEED(hipStreamDestroy(stream));
  (void)hipStreamQuery(wrong ? stream : NULL);
}

static void hip_other_device(bool wrong) {
  open_hip();
  void *address;
  NEED(hipMalloc(&address, BYTES));
  NEED(hipSetDevice(wrong));
  (void)hipMemsetD8Async(address, 0, BYTES, NULL);
  NEED(hipSetDevice(0));
  NEED(hipFree(address));
}

/* Vendors' handles are not interchangeable, whatever their numbers are. */
static void cuda_memory_on_hip(bool wrong) {
  open_cuda(1);
  open_hip();
  cuda_abi_address address = allocate(BYTES);
  void *other;
  NEED(hipMalloc(&other, BYTES));
  (void)hipMemsetD8Async(wrong ? (void *)(uintptr_t)address : other, 0, BYTES, NULL);
  NEED(hipFree(other));
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void cuda_memory_freed_on_hip(bool wrong) {
  open_cuda(1);
  open_hip();
  cuda_abi_address address = allocate(BYTES);
  (void)hipFree(wrong ? (void *)(uintptr_t)address : NULL);
  NEED(cuMemFree_v2(address));
  close_cuda(1);
}

static void cuda_event_on_hip(bool wrong) {
  open_cuda(1);
  open_hip();
  struct CUevent_st *event = make_event();
  struct ihipEvent_t *other;
  NEED(hipEventCreateWithFlags(&other, HIP_ABI_EVENT_DISABLE_TIMING));
  (void)hipStreamWaitEvent(NULL, wrong ? (struct ihipEvent_t *)event : other, 0);
  NEED(hipEventDestroy(other));
  NEED(cuEventDestroy_v2(event));
  close_cuda(1);
}

#define TWO_CUDA "GPUSIM_CUDA=2"
#define TWO_HIP  "GPUSIM_HIP=2"

const mistake memory_mistakes[] = {
    {"host-reads", "host touches device memory", host_reads, NULL},
    {"host-writes", "host touches device memory", host_writes, NULL},
    {"copy-too-long", "out of bounds", copy_too_long, NULL},
    {"fill-before", "out of bounds", fill_before, NULL},
    {"fill-misaligned", "misaligned", fill_misaligned, NULL},
    {"copy-after-free", "use after free", copy_after_free, NULL},
    {"free-twice", "double free", free_twice, NULL},
    {"free-the-middle", "free of no allocation", free_the_middle, NULL},
    {"free-host-memory", "not device memory", free_host_memory, NULL},
    {"host-for-device", "not device memory", host_for_device, NULL},
    {"device-for-host", "not host memory", device_for_host, NULL},
    {"copy-onto-itself", "overlapping copy", copy_onto_itself, NULL},
    {"leak-memory", "leak", leak_memory, NULL},
    {"other-devices-memory", "wrong device", other_devices_memory, TWO_CUDA},
    {"other-devices-event", "wrong device", other_devices_event, TWO_CUDA},
    {"time-between-devices", "wrong device", time_between_devices, TWO_CUDA},
    {"peer-of-wrong-context", "wrong device", peer_of_wrong_context, TWO_CUDA},
    {"deleted-stream", "use after delete", deleted_stream, NULL},
    {"deleted-event", "use after delete", deleted_event, NULL},
    {"event-for-stream", "invalid handle", event_for_stream, NULL},
    {"no-context", "no current context", no_context, NULL},
    {"released-context", "use after delete", released_context, NULL},
    {"release-twice", "context released too often", release_twice, NULL},
    {"leak-context", "leak", leak_context, NULL},
    {"leak-stream", "leak", leak_stream, NULL},
    {"leak-event", "leak", leak_event, NULL},
    {"untimed-event", "event without timing", untimed_event, NULL},
    {"use-after-fork", "used after fork", use_after_fork, NULL},
    {"free-while-copied", "pinned memory in use", free_while_copied, NULL},
    {"overwrite-while-copied", "pinned memory in use", overwrite_while_copied, NULL},
    {"write-into-destination", "pinned memory in use", write_into_destination, NULL},
    {"pinned-overrun", "out of bounds", pinned_overrun, NULL},
    {"pinned-far-overrun", "out of bounds", pinned_far_overrun, NULL},
    {"pinned-copy-too-long", "out of bounds", pinned_copy_too_long, NULL},
    {"free-pinned-twice", "double free", free_pinned_twice, NULL},
    {"pinned-use-after-free", "use after free", pinned_use_after_free, NULL},
    {"leak-beside-lost", "leak", leak_beside_lost, TWO_CUDA " GPUSIM_FAULT=lost:copy:1@1"},
    {"leak-pinned", "leak", leak_pinned, NULL},
    {"read-too-early", WRONG_NUMBERS, read_too_early, NULL},
    {"no-wait-between-streams", WRONG_NUMBERS, no_wait_between_streams, NULL},
    {"read-fresh-memory", WRONG_NUMBERS, read_fresh_memory, NULL},
    {"wait-for-ever", "waits for ever", wait_for_ever, "GPUSIM_PATIENCE=1"},
    {"write-canary", "out of bounds", write_canary, NULL},
    {"hip-leak", "leak", hip_leak, NULL},
    {"hip-wrong-kind", "not device memory", hip_wrong_kind, NULL},
    {"hip-deleted-stream", "use after delete", hip_deleted_stream, NULL},
    {"hip-other-device", "wrong device", hip_other_device, TWO_HIP},
    {"cuda-event-on-hip", "wrong device", cuda_event_on_hip, NULL},
    {"cuda-memory-freed-on-hip", "wrong device", cuda_memory_freed_on_hip, NULL},
    {"cuda-memory-on-hip", "wrong device", cuda_memory_on_hip, NULL},
    {0},
};
