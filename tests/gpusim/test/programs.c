/* SPDX-License-Identifier: Apache-2.0 */
#include "programs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 300, ROUNDS = 20 };

static void expect_words(const unsigned *words, size_t count, unsigned value) {
  for (size_t i = 0; i < count; i++) EXPECT(words[i] == value);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * One device
 */

/* A chain through three streams, held together by events alone. */
static void streams_and_events(void) {
  cuda_open(1);
  struct CUstream_st *streams[3];
  struct CUevent_st *events[3];
  cuda_abi_address buffers[3];
  for (int i = 0; i < 3; i++) {
    streams[i] = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
    events[i] = cuda_event();
    buffers[i] = cuda_allocate(4 * WORDS);
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
  cuda_close(1);
}

/* Two pinned buffers, each filled again only when the copy from it is known to be done. */
static void staging_buffers(void) {
  cuda_open(1);
  struct CUstream_st *stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  struct CUevent_st *events[2] = {cuda_event(), cuda_event()};
  unsigned *staging[2] = {cuda_pin(4 * WORDS), cuda_pin(4 * WORDS)}, *result = cuda_pin(4 * WORDS);
  cuda_abi_address buffer = cuda_allocate(4 * WORDS);
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
  cuda_close(1);
}

/* Out of the device into pinned memory, and from there into it again, ordered by the stream: nobody else touches it. */
static void through_pinned_memory(void) {
  cuda_open(1);
  unsigned *pinned = cuda_pin(4 * WORDS), host[WORDS];
  cuda_abi_address one = cuda_allocate(4 * WORDS), other = cuda_allocate(4 * WORDS);
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
  cuda_close(1);
}

/* The NULL stream waits for streams that are not made otherwise, and they for it. */
static void null_stream(void) {
  cuda_open(1);
  struct CUstream_st *stream = cuda_stream(0);
  cuda_abi_address one = cuda_allocate(4 * WORDS), other = cuda_allocate(4 * WORDS);
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
  cuda_close(1);
}

/* Parts of one allocation, as an arena hands them out, used by two streams at once, with borders anywhere. */
static void arena_of_two_streams(void) {
  enum { PART = 37, PARTS = 40 };
  cuda_open(1);
  struct CUstream_st *streams[2] = {cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING),
                                    cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING)};
  struct CUevent_st *event = cuda_event();
  cuda_abi_address arena = cuda_allocate(PART * PARTS);
  unsigned char host[PART * PARTS];
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < PARTS; i++)
      NEED(cuMemsetD8Async(arena + (unsigned)(PART * i), (unsigned char)(i + round), PART, streams[i % 2]));
    for (int i = 2; i < PARTS; i++) /* both read what the first two have, and then write their own */
      NEED(
          cuMemcpyDtoDAsync_v2(arena + (unsigned)(PART * i), arena + (unsigned)(PART * (i % 2)), PART, streams[i % 2]));
    NEED(cuEventRecord(event, streams[1]));
    NEED(cuStreamWaitEvent(streams[0], event, 0));
    NEED(cuMemcpyDtoHAsync_v2(host, arena, PART * PARTS, streams[0])); /* waits: the next round may write */
    for (int i = 0; i < PART * PARTS; i++) EXPECT(host[i] == (unsigned char)(i / PART % 2 + round));
  }
  for (int i = 0; i < 2; i++) NEED(cuStreamDestroy_v2(streams[i]));
  NEED(cuEventDestroy_v2(event));
  NEED(cuMemFree_v2(arena));
  cuda_close(1);
}

/* Pinned memory of a stream that is gone: who waits for the device knows that its copies are done. */
static void wait_after_delete(void) {
  cuda_open(1);
  unsigned *pinned = cuda_pin(4 * WORDS);
  cuda_abi_address buffer = cuda_allocate(4 * WORDS);
  for (unsigned round = 0; round < ROUNDS; round++) {
    struct CUstream_st *stream = cuda_stream(round % 2 ? CUDA_ABI_STREAM_NON_BLOCKING : 0);
    for (int i = 0; i < WORDS; i++) pinned[i] = round;
    NEED(cuMemcpyHtoDAsync_v2(buffer, pinned, 4 * WORDS, stream));
    NEED(cuStreamDestroy_v2(stream));
    NEED(cuCtxSynchronize());
    for (int i = 0; i < WORDS; i++) pinned[i] = 0;
    NEED(cuMemcpyDtoHAsync_v2(pinned, buffer, 4 * WORDS, NULL));
    NEED(cuCtxSynchronize());
    expect_words(pinned, WORDS, round);
  }
  NEED(cuMemFreeHost(pinned));
  NEED(cuMemFree_v2(buffer));
  cuda_close(1);
}

/* More streams than are told apart, each behind the one before it. */
static void many_streams(void) {
  enum { STREAMS = 150 };
  cuda_open(1);
  struct CUstream_st *streams[STREAMS];
  struct CUevent_st *event = cuda_event();
  cuda_abi_address buffer = cuda_allocate(4 * WORDS);
  unsigned host[WORDS];
  for (unsigned i = 0; i < STREAMS; i++) {
    streams[i] = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
    if (i) NEED(cuStreamWaitEvent(streams[i], event, 0));
    NEED(cuMemsetD32Async(buffer, i, WORDS, streams[i]));
    NEED(cuEventRecord(event, streams[i]));
  }
  NEED(cuMemcpyDtoHAsync_v2(host, buffer, 4 * WORDS, streams[STREAMS - 1]));
  expect_words(host, WORDS, STREAMS - 1);
  for (int i = 0; i < STREAMS; i++) NEED(cuStreamDestroy_v2(streams[i]));
  NEED(cuEventDestroy_v2(event));
  NEED(cuMemFree_v2(buffer));
  cuda_close(1);
}

/* Thousands of allocations, waited for and freed one by one: what that costs does not grow with their number. */
static void many_allocations(void) {
  enum { ALLOCATIONS = 6000 };
  static cuda_abi_address all[ALLOCATIONS];
  static void *pinned[ALLOCATIONS];
  cuda_open(1);
  for (int i = 0; i < ALLOCATIONS; i++) {
    all[i] = cuda_allocate(1000);
    pinned[i] = cuda_pin(1000);
  }
  for (int i = 0; i < ALLOCATIONS; i++) {
    NEED(cuMemcpyHtoDAsync_v2(all[i], pinned[i], 1000, NULL));
    NEED(cuCtxSynchronize());
    NEED(cuMemFreeHost(pinned[i]));
    NEED(cuMemFree_v2(all[i]));
  }
  cuda_close(1);
}

/* What a deleted stream had to do is done, and an event outlives what it was recorded on. */
static void deleted_early(void) {
  cuda_open(1);
  struct CUstream_st *stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  struct CUevent_st *event = cuda_event();
  cuda_abi_address buffer = cuda_allocate(4 * WORDS);
  unsigned host[WORDS];
  NEED(cuMemsetD32Async(buffer, 3, WORDS, stream));
  NEED(cuEventRecord(event, stream));
  NEED(cuStreamDestroy_v2(stream));
  NEED(cuStreamWaitEvent(NULL, event, 0));
  NEED(cuEventDestroy_v2(event));
  NEED(cuMemcpyDtoHAsync_v2(host, buffer, 4 * WORDS, NULL));
  expect_words(host, WORDS, 3);
  NEED(cuMemFree_v2(buffer));
  cuda_close(1);
}

/* More than a queue holds. */
static void long_queue(void) {
  cuda_open(1);
  cuda_abi_address buffer = cuda_allocate(4 * WORDS);
  unsigned host[WORDS];
  for (unsigned i = 0; i < 5000; i++) NEED(cuMemsetD32Async(buffer, i, WORDS, NULL));
  NEED(cuMemcpyDtoHAsync_v2(host, buffer, 4 * WORDS, NULL));
  expect_words(host, WORDS, 4999);
  NEED(cuMemFree_v2(buffer));
  cuda_close(1);
}

static void event_times(void) {
  cuda_open(1);
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
  cuda_close(1);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Several devices
 */

/* A ring of copies from device to device, with events across. */
static void peer_copies(void) {
  cuda_open(2);
  struct CUstream_st *streams[2];
  struct CUevent_st *events[2];
  cuda_abi_address buffers[2];
  unsigned host[WORDS];
  for (int i = 0; i < 2; i++) {
    NEED(cuCtxSetCurrent(cuda_contexts[i]));
    streams[i] = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
    events[i] = cuda_event();
    buffers[i] = cuda_allocate(4 * WORDS);
  }
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  NEED(cuMemsetD32Async(buffers[0], 77, WORDS, streams[0]));
  for (int round = 0; round < ROUNDS; round++) {
    int from = round % 2, to = 1 - from;
    NEED(cuCtxSetCurrent(cuda_contexts[from]));
    NEED(cuMemcpyPeerAsync(buffers[to], cuda_contexts[to], buffers[from], cuda_contexts[from], 4 * WORDS,
                           streams[from]));
    NEED(cuEventRecord(events[from], streams[from]));
    NEED(cuMemsetD32Async(buffers[from], 0, WORDS, streams[from]));
    NEED(cuCtxSetCurrent(cuda_contexts[to]));
    NEED(cuStreamWaitEvent(streams[to], events[from], 0));
    /* The next copy comes back into `from`, which must be filled before. */
    NEED(cuCtxSetCurrent(cuda_contexts[from]));
    NEED(cuEventRecord(events[from], streams[from]));
    NEED(cuCtxSetCurrent(cuda_contexts[to]));
    NEED(cuStreamWaitEvent(streams[to], events[from], 0));
  }
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  NEED(cuMemcpyDtoHAsync_v2(host, buffers[0], 4 * WORDS, streams[0]));
  expect_words(host, WORDS, 77);
  for (int i = 0; i < 2; i++) {
    NEED(cuCtxSetCurrent(cuda_contexts[i]));
    NEED(cuMemFree_v2(buffers[i]));
    NEED(cuStreamDestroy_v2(streams[i]));
    NEED(cuEventDestroy_v2(events[i]));
  }
  cuda_close(2);
}

/* With peer access a device may use the other's memory as its own. */
static void peer_access(void) {
  cuda_open(2);
  int can = 0;
  NEED(cuDeviceCanAccessPeer(&can, 0, 1));
  cuda_abi_address here = cuda_allocate(4 * WORDS);
  NEED(cuCtxSetCurrent(cuda_contexts[1]));
  cuda_abi_address there = cuda_allocate(4 * WORDS);
  NEED(cuMemsetD32Async(there, 9, WORDS, NULL));
  NEED(cuCtxSynchronize());
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  abi_enum status = cuCtxEnablePeerAccess(cuda_contexts[1], 0);
  EXPECT(status == (can ? CUDA_ABI_SUCCESS : CUDA_ABI_PEER_ACCESS_UNSUPPORTED));
  if (can) {
    unsigned host[WORDS];
    EXPECT(cuCtxEnablePeerAccess(cuda_contexts[1], 0) == CUDA_ABI_PEER_ACCESS_ALREADY_ENABLED);
    NEED(cuMemcpyDtoDAsync_v2(here, there, 4 * WORDS, NULL));
    NEED(cuMemcpyDtoHAsync_v2(host, here, 4 * WORDS, NULL));
    expect_words(host, WORDS, 9);
  }
  NEED(cuMemFree_v2(here));
  NEED(cuCtxSetCurrent(cuda_contexts[1]));
  NEED(cuMemFree_v2(there));
  cuda_close(2);
}

static void *use_device(void *argument) {
  unsigned number = (unsigned)(uintptr_t)argument;
  NEED(cuCtxSetCurrent(cuda_contexts[number % 2]));
  struct CUstream_st *stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  unsigned *host = cuda_pin(4 * WORDS);
  for (unsigned round = 0; round < ROUNDS; round++) {
    cuda_abi_address buffer = cuda_allocate(4 * WORDS);
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
  cuda_open(2);
  pthread_t all[4];
  for (uintptr_t i = 0; i < 4; i++) EXPECT(pthread_create(&all[i], NULL, use_device, (void *)i) == 0);
  for (int i = 0; i < 4; i++) EXPECT(pthread_join(all[i], NULL) == 0);
  cuda_close(2);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * HIP
 */

static void hip_copies(void) {
  hip_load();
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
  hip_load();
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
    {"arena-of-two-streams", arena_of_two_streams},
    {"wait-after-delete", wait_after_delete},
    {"many-streams", many_streams},
    {"many-allocations", many_allocations},
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
  const program *tables[] = {programs, fault_programs, wait_programs, device_programs, hostile_programs};
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
