/* SPDX-License-Identifier: Apache-2.0 */
#include "programs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

CUDA_DRIVER_FUNCTIONS(FACE_DEFINITION)
HIP_FUNCTIONS(FACE_DEFINITION)

enum { WORDS = 300, ROUNDS = 20 };

struct CUctx_st *contexts[4];

void load_cuda(void) {
#define X(result, name, arguments) FACE_LOOKUP("libcuda.so.1", name)
  CUDA_DRIVER_FUNCTIONS(X)
#undef X
}

void load_hip(void) {
#define X(result, name, arguments) FACE_LOOKUP("libamdhip64.so.6", name)
  HIP_FUNCTIONS(X)
#undef X
}

void open_cuda(int devices) {
  load_cuda();
  NEED(cuInit(0));
  for (int i = 0; i < devices; i++) NEED(cuDevicePrimaryCtxRetain(&contexts[i], i));
  NEED(cuCtxSetCurrent(contexts[0]));
}

void close_cuda(int devices) {
  for (int i = 0; i < devices; i++) NEED(cuDevicePrimaryCtxRelease_v2(i));
}

cuda_abi_address allocate(size_t bytes) {
  cuda_abi_address address;
  NEED(cuMemAlloc_v2(&address, bytes));
  EXPECT(address % 256 == 0);
  return address;
}

void *allocate_pinned(size_t bytes) {
  void *address;
  NEED(cuMemHostAlloc(&address, bytes, 0));
  return address;
}

struct CUstream_st *make_stream(unsigned flags) {
  struct CUstream_st *stream;
  NEED(cuStreamCreate(&stream, flags));
  return stream;
}

struct CUevent_st *make_event(void) {
  struct CUevent_st *event;
  NEED(cuEventCreate(&event, CUDA_ABI_EVENT_DISABLE_TIMING));
  return event;
}

static void expect_words(const unsigned *words, size_t count, unsigned value) {
  for (size_t i = 0; i < count; i++) EXPECT(words[i] == value);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * One device
 */

/* A chain through three streams, held together by events alone. */
static void streams_and_events(void) {
  open_cuda(1);
  struct CUstream_st *streams[3];
  struct CUevent_st *events[3];
  cuda_abi_address buffers[3];
  for (int i = 0; i < 3; i++) {
    streams[i] = make_stream(CUDA_ABI_STREAM_NON_BLOCKING);
    events[i] = make_event();
    buffers[i] = allocate(4 * WORDS);
  }
  unsigned host[WORDS];
  for (unsigned round = 0; round < ROUNDS; round++) {
    NEED(cuMemsetD32Async(buffers[0], round, WORDS, streams[0]));
    NEED(cuEventRecord(events[0], streams[0]));
    NEED(cuStreamWaitEvent(streams[1], events[0], 0));
    NEED(cuMemcpyDtoDAsync_v2(buffers[1], buffers[0], 4 * WORDS, streams[1]));
    NEED(cuEventRecord(events[1], streams[1]));
    NEED(cuStreamWaitEvent(streams[2], events[1], 0));
    NEED(cuMemcpyDtoDAsync_v2(buffers[2], buffers[1], 4 * WORDS, streams[2]));
    NEED(cuEventRecord(events[2], streams[2]));
    NEED(cuStreamWaitEvent(streams[0], events[2], 0));
    NEED(cuMemcpyDtoHAsync_v2(host, buffers[2], 4 * WORDS, streams[2]));
    expect_words(host, WORDS, round);
  }
  for (int i = 0; i < 3; i++) {
    NEED(cuStreamDestroy_v2(streams[i]));
    NEED(cuEventDestroy_v2(events[i]));
    NEED(cuMemFree_v2(buffers[i]));
  }
  close_cuda(1);
}

/* Two pinned buffers, each filled again only when the copy from it is known to be done. */
static void staging_buffers(void) {
  open_cuda(1);
  struct CUstream_st *stream = make_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  struct CUevent_st *events[2] = {make_event(), make_event()};
  unsigned *staging[2] = {allocate_pinned(4 * WORDS), allocate_pinned(4 * WORDS)}, *result = allocate_pinned(4 * WORDS);
  cuda_abi_address buffer = allocate(4 * WORDS);
  for (unsigned round = 0; round < ROUNDS; round++) {
    unsigned which = round % 2;
    while (cuEventQuery(events[which]) == CUDA_ABI_NOT_READY) continue;
    for (int i = 0; i < WORDS; i++) staging[which][i] = round;
    NEED(cuMemcpyHtoDAsync_v2(buffer, staging[which], 4 * WORDS, stream));
    NEED(cuEventRecord(events[which], stream));
  }
  NEED(cuMemcpyDtoHAsync_v2(result, buffer, 4 * WORDS, stream));
  while (cuStreamQuery(stream) == CUDA_ABI_NOT_READY) continue;
  expect_words(result, WORDS, ROUNDS - 1);
  for (int i = 0; i < 2; i++) {
    NEED(cuEventDestroy_v2(events[i]));
    NEED(cuMemFreeHost(staging[i]));
  }
  NEED(cuMemFreeHost(result));
  NEED(cuMemFree_v2(buffer));
  NEED(cuStreamDestroy_v2(stream));
  close_cuda(1);
}

/* Out of the device into pinned memory, and from there into it again, ordered by the stream: nobody else touches it. */
static void through_pinned_memory(void) {
  open_cuda(1);
  unsigned *pinned = allocate_pinned(4 * WORDS), host[WORDS];
  cuda_abi_address one = allocate(4 * WORDS), other = allocate(4 * WORDS);
  for (unsigned round = 0; round < ROUNDS; round++) {
    NEED(cuMemsetD32Async(one, round, WORDS, NULL));
    NEED(cuMemcpyDtoHAsync_v2(pinned, one, 4 * WORDS, NULL));
    NEED(cuMemcpyHtoDAsync_v2(other, pinned, 4 * WORDS, NULL));
  }
  NEED(cuMemcpyDtoHAsync_v2(host, other, 4 * WORDS, NULL));
  expect_words(host, WORDS, ROUNDS - 1);
  NEED(cuMemFreeHost(pinned));
  NEED(cuMemFree_v2(one));
  NEED(cuMemFree_v2(other));
  close_cuda(1);
}

/* The NULL stream waits for streams that are not made otherwise, and they for it. */
static void null_stream(void) {
  open_cuda(1);
  struct CUstream_st *stream = make_stream(0);
  cuda_abi_address one = allocate(4 * WORDS), other = allocate(4 * WORDS);
  unsigned host[WORDS];
  for (unsigned round = 0; round < ROUNDS; round++) {
    NEED(cuMemsetD32Async(one, round, WORDS, stream));
    NEED(cuMemcpyDtoDAsync_v2(other, one, 4 * WORDS, NULL));
    NEED(cuMemcpyDtoHAsync_v2(host, other, 4 * WORDS, stream));
    expect_words(host, WORDS, round);
  }
  NEED(cuStreamDestroy_v2(stream));
  NEED(cuMemFree_v2(one));
  NEED(cuMemFree_v2(other));
  close_cuda(1);
}

/* What a deleted stream had to do is done, and an event outlives what it was recorded on. */
static void deleted_early(void) {
  open_cuda(1);
  struct CUstream_st *stream = make_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  struct CUevent_st *event = make_event();
  cuda_abi_address buffer = allocate(4 * WORDS);
  unsigned host[WORDS];
  NEED(cuMemsetD32Async(buffer, 3, WORDS, stream));
  NEED(cuEventRecord(event, stream));
  NEED(cuStreamDestroy_v2(stream));
  NEED(cuStreamWaitEvent(NULL, event, 0));
  NEED(cuEventDestroy_v2(event));
  NEED(cuMemcpyDtoHAsync_v2(host, buffer, 4 * WORDS, NULL));
  expect_words(host, WORDS, 3);
  NEED(cuMemFree_v2(buffer));
  close_cuda(1);
}

/* More than a queue holds. */
static void long_queue(void) {
  open_cuda(1);
  cuda_abi_address buffer = allocate(4 * WORDS);
  unsigned host[WORDS];
  for (unsigned i = 0; i < 5000; i++) NEED(cuMemsetD32Async(buffer, i, WORDS, NULL));
  NEED(cuMemcpyDtoHAsync_v2(host, buffer, 4 * WORDS, NULL));
  expect_words(host, WORDS, 4999);
  NEED(cuMemFree_v2(buffer));
  close_cuda(1);
}

static void event_times(void) {
  open_cuda(1);
  struct CUevent_st *events[2];
  for (int i = 0; i < 2; i++) {
    NEED(cuEventCreate(&events[i], 0));
    NEED(cuEventSynchronize(events[i])); /* never recorded: done */
    NEED(cuEventRecord(events[i], NULL));
  }
  float milliseconds = -1;
  abi_enum status = cuEventElapsedTime(&milliseconds, events[0], events[1]);
  EXPECT(status == CUDA_ABI_NOT_READY || status == CUDA_ABI_SUCCESS);
  NEED(cuEventSynchronize(events[1]));
  NEED(cuEventElapsedTime(&milliseconds, events[0], events[1]));
  EXPECT(milliseconds >= 0 && milliseconds < 60000);
  for (int i = 0; i < 2; i++) NEED(cuEventDestroy_v2(events[i]));
  close_cuda(1);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Several devices
 */

/* A ring of copies from device to device, with events across. */
static void peer_copies(void) {
  open_cuda(2);
  struct CUstream_st *streams[2];
  struct CUevent_st *events[2];
  cuda_abi_address buffers[2];
  unsigned host[WORDS];
  for (int i = 0; i < 2; i++) {
    NEED(cuCtxSetCurrent(contexts[i]));
    streams[i] = make_stream(CUDA_ABI_STREAM_NON_BLOCKING);
    events[i] = make_event();
    buffers[i] = allocate(4 * WORDS);
  }
  NEED(cuCtxSetCurrent(contexts[0]));
  NEED(cuMemsetD32Async(buffers[0], 77, WORDS, streams[0]));
  for (int round = 0; round < ROUNDS; round++) {
    int from = round % 2, to = 1 - from;
    NEED(cuCtxSetCurrent(contexts[from]));
    NEED(cuMemcpyPeerAsync(buffers[to], contexts[to], buffers[from], contexts[from], 4 * WORDS, streams[from]));
    NEED(cuEventRecord(events[from], streams[from]));
    NEED(cuMemsetD32Async(buffers[from], 0, WORDS, streams[from]));
    NEED(cuCtxSetCurrent(contexts[to]));
    NEED(cuStreamWaitEvent(streams[to], events[from], 0));
    /* The next copy comes back into `from`, which must be filled before. */
    NEED(cuCtxSetCurrent(contexts[from]));
    NEED(cuEventRecord(events[from], streams[from]));
    NEED(cuCtxSetCurrent(contexts[to]));
    NEED(cuStreamWaitEvent(streams[to], events[from], 0));
  }
  NEED(cuCtxSetCurrent(contexts[0]));
  NEED(cuMemcpyDtoHAsync_v2(host, buffers[0], 4 * WORDS, streams[0]));
  expect_words(host, WORDS, 77);
  for (int i = 0; i < 2; i++) {
    NEED(cuCtxSetCurrent(contexts[i]));
    NEED(cuMemFree_v2(buffers[i]));
    NEED(cuStreamDestroy_v2(streams[i]));
    NEED(cuEventDestroy_v2(events[i]));
  }
  close_cuda(2);
}

/* With peer access a device may use the other's memory as its own. */
static void peer_access(void) {
  open_cuda(2);
  int can = 0;
  NEED(cuDeviceCanAccessPeer(&can, 0, 1));
  cuda_abi_address here = allocate(4 * WORDS);
  NEED(cuCtxSetCurrent(contexts[1]));
  cuda_abi_address there = allocate(4 * WORDS);
  NEED(cuMemsetD32Async(there, 9, WORDS, NULL));
  NEED(cuCtxSynchronize());
  NEED(cuCtxSetCurrent(contexts[0]));
  abi_enum status = cuCtxEnablePeerAccess(contexts[1], 0);
  EXPECT(status == (can ? CUDA_ABI_SUCCESS : CUDA_ABI_PEER_ACCESS_UNSUPPORTED));
  if (can) {
    unsigned host[WORDS];
    EXPECT(cuCtxEnablePeerAccess(contexts[1], 0) == CUDA_ABI_PEER_ACCESS_ALREADY_ENABLED);
    NEED(cuMemcpyDtoDAsync_v2(here, there, 4 * WORDS, NULL));
    NEED(cuMemcpyDtoHAsync_v2(host, here, 4 * WORDS, NULL));
    expect_words(host, WORDS, 9);
  }
  NEED(cuMemFree_v2(here));
  NEED(cuCtxSetCurrent(contexts[1]));
  NEED(cuMemFree_v2(there));
  close_cuda(2);
}

static void *use_device(void *argument) {
  unsigned number = (unsigned)(uintptr_t)argument;
  NEED(cuCtxSetCurrent(contexts[number % 2]));
  struct CUstream_st *stream = make_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  unsigned *host = allocate_pinned(4 * WORDS);
  for (unsigned round = 0; round < ROUNDS; round++) {
    cuda_abi_address buffer = allocate(4 * WORDS);
    NEED(cuMemsetD32Async(buffer, round + number, WORDS, stream));
    NEED(cuMemcpyDtoHAsync_v2(host, buffer, 4 * WORDS, stream));
    NEED(cuStreamSynchronize(stream));
    expect_words(host, WORDS, round + number);
    NEED(cuMemFree_v2(buffer));
  }
  NEED(cuMemFreeHost(host));
  NEED(cuStreamDestroy_v2(stream));
  return NULL;
}

static void threads(void) {
  open_cuda(2);
  pthread_t all[4];
  for (uintptr_t i = 0; i < 4; i++) EXPECT(pthread_create(&all[i], NULL, use_device, (void *)i) == 0);
  for (int i = 0; i < 4; i++) EXPECT(pthread_join(all[i], NULL) == 0);
  close_cuda(2);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * HIP
 */

static void hip_copies(void) {
  load_hip();
  NEED(hipInit(0));
  struct ihipStream_t *stream;
  struct ihipEvent_t *event;
  void *buffer, *pinned;
  unsigned host[WORDS];
  NEED(hipStreamCreateWithFlags(&stream, HIP_ABI_STREAM_NON_BLOCKING));
  NEED(hipEventCreateWithFlags(&event, HIP_ABI_EVENT_DISABLE_TIMING));
  NEED(hipMalloc(&buffer, 4 * WORDS));
  NEED(hipHostMalloc(&pinned, 4 * WORDS, 0));
  NEED(hipMemsetD32Async(buffer, 6, WORDS, stream));
  NEED(hipMemcpyAsync(pinned, buffer, 4 * WORDS, HIP_ABI_DEVICE_TO_HOST, stream));
  NEED(hipEventRecord(event, stream));
  NEED(hipEventSynchronize(event));
  expect_words(pinned, WORDS, 6);
  NEED(hipMemcpyAsync(buffer, pinned, 2 * WORDS, HIP_ABI_DEFAULT, stream));
  NEED(hipMemcpyAsync(host, buffer, 4 * WORDS, HIP_ABI_DEFAULT, stream));
  expect_words(host, WORDS, 6);
  EXPECT(hipGetLastError() == 0);
  EXPECT(hipSetDevice(99) == HIP_ABI_INVALID_DEVICE && hipGetLastError() == HIP_ABI_INVALID_DEVICE);
  NEED(hipHostFree(pinned));
  NEED(hipFree(buffer));
  NEED(hipFree(NULL));
  NEED(hipEventDestroy(event));
  NEED(hipStreamDestroy(stream));
}

static void hip_properties(void) {
  load_hip();
  char buffer[HIP_ABI_PROPERTIES_BYTES] = "", name[64] = "";
  NEED(hipGetDeviceProperties((void *)buffer, 0));
  EXPECT(!strcmp(buffer + HIP_ABI_ARCHITECTURE_OFFSET, "gfx90a:sramecc+:xnack-"));
  NEED(hipDeviceGetName(name, sizeof name, 0));
  EXPECT(!strcmp(name, "gpusim (gfx90a)") && !strcmp(buffer, name));
  int major = 0, minor = -1, warp = 0;
  NEED(hipDeviceGetAttribute(&major, HIP_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  NEED(hipDeviceGetAttribute(&minor, HIP_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
  NEED(hipDeviceGetAttribute(&warp, HIP_ABI_ATTRIBUTE_WARP_SIZE, 0));
  EXPECT(major == 9 && minor == 0 && (warp == 64 || warp == 32));
}

static const program programs[] = {
    {"streams-and-events", streams_and_events},
    {"staging-buffers", staging_buffers},
    {"through-pinned-memory", through_pinned_memory},
    {"null-stream", null_stream},
    {"deleted-early", deleted_early},
    {"long-queue", long_queue},
    {"event-times", event_times},
    {"peer-copies", peer_copies},
    {"peer-access", peer_access},
    {"threads", threads},
    {"hip-copies", hip_copies},
    {"hip-properties", hip_properties},
    {0},
};

int main(int count, char **arguments) {
  const program *tables[] = {programs, fault_programs, wait_programs, device_programs};
  for (size_t t = 0; t < sizeof tables / sizeof *tables && count == 2; t++) {
    for (const program *one = tables[t]; one->name; one++) {
      if (strcmp(one->name, arguments[1]) != 0) continue;
      one->run();
      return 0;
    }
  }
  fprintf(stderr, "usage: programs NAME\n");
  return 2;
}
