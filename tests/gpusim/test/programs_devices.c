/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with several devices, cuda_contexts and large memory: what looks wrong and is right. */
#include "programs.h"

#include "cublas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 300, ROUNDS = 20 };

/* Only a launch must be of the current context. Device 0 is current all the time. */
static void any_context(void) {
  cuda_open(2);
  NEED(cuCtxSetCurrent(cuda_contexts[1]));
  struct CUstream_st *stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  struct CUevent_st *event = cuda_event();
  cuda_abi_address there = cuda_allocate(4 * WORDS);
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  cuda_abi_address here = cuda_allocate(4 * WORDS);
  unsigned host[WORDS] = {0}, *pinned = cuda_pin(4 * WORDS);
  NEED(cuMemcpyHtoDAsync_v2(there, host, 4 * WORDS, stream));
  NEED(cuMemsetD32Async(there, 11, WORDS, stream));
  NEED(cuEventRecord(event, stream));
  NEED(cuStreamWaitEvent(NULL, event, 0));
  NEED(cuMemcpyDtoDAsync_v2(here, there, 4 * WORDS, NULL)); /* with peer access or without */
  NEED(cuMemcpyDtoHAsync_v2(pinned, here, 4 * WORDS, NULL));
  NEED(cuStreamSynchronize(NULL));
  for (int i = 0; i < WORDS; i++) EXPECT(pinned[i] == 11);
  NEED(cuMemFree_v2(there));
  NEED(cuEventDestroy_v2(event));
  NEED(cuStreamDestroy_v2(stream));
  NEED(cuMemFree_v2(here));
  NEED(cuMemFreeHost(pinned));
  cuda_close(2);
}

static void hip_any_device(void) {
  hip_load();
  struct ihipStream_t *stream;
  struct ihipEvent_t *event;
  void *here, *there;
  unsigned host[WORDS];
  NEED(hipSetDevice(1));
  NEED(hipStreamCreateWithFlags(&stream, HIP_ABI_STREAM_NON_BLOCKING));
  NEED(hipEventCreateWithFlags(&event, HIP_ABI_EVENT_DISABLE_TIMING));
  NEED(hipMalloc(&there, 4 * WORDS));
  NEED(hipSetDevice(0));
  NEED(hipMalloc(&here, 4 * WORDS));
  NEED(hipMemsetD32Async(there, 11, WORDS, stream));
  NEED(hipEventRecord(event, stream));
  NEED(hipStreamWaitEvent(NULL, event, 0));
  NEED(hipMemcpyAsync(here, there, 4 * WORDS, HIP_ABI_DEVICE_TO_DEVICE, NULL));
  NEED(hipMemcpyAsync(host, here, 4 * WORDS, HIP_ABI_DEVICE_TO_HOST, NULL));
  for (int i = 0; i < WORDS; i++) EXPECT(host[i] == 11);
  NEED(hipFree(there));
  NEED(hipFree(here));
  NEED(hipEventDestroy(event));
  NEED(hipStreamDestroy(stream));
}

/* Two logical devices on one: both retain its primary context, which lives until both let go of it. */
static void two_retains(void) {
  cuda_open(1);
  struct CUctx_st *again;
  NEED(cuDevicePrimaryCtxRetain(&again, 0));
  EXPECT(again == cuda_contexts[0]);
  struct CUstream_st *streams[2];
  cuda_abi_address buffers[2];
  unsigned *host = cuda_pin(8 * WORDS);
  for (unsigned i = 0; i < 2; i++) {
    NEED(cuCtxSetCurrent(i ? again : cuda_contexts[0]));
    streams[i] = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
    buffers[i] = cuda_allocate(4 * WORDS);
    NEED(cuMemsetD32Async(buffers[i], i + 1, WORDS, streams[i]));
    NEED(cuMemcpyDtoHAsync_v2(host + i * WORDS, buffers[i], 4 * WORDS, streams[i]));
  }
  for (unsigned i = 0; i < 2; i++) {
    NEED(cuStreamSynchronize(streams[i]));
    EXPECT(host[i * WORDS] == i + 1);
    NEED(cuMemFree_v2(buffers[i]));
    NEED(cuStreamDestroy_v2(streams[i]));
    if (i == 0) NEED(cuDevicePrimaryCtxRelease_v2(0)); /* the other's streams and memory stay */
  }
  NEED(cuMemFreeHost(host));
  NEED(cuDevicePrimaryCtxRelease_v2(0));
}

/* A context that was released and retained again is a new one: what the old one was allowed, this one is not. */
static void release_again(void) {
  for (int round = 0; round < 3; round++) {
    cuda_open(2);
    struct CUctx_st *old = cuda_contexts[1];
    NEED(cuCtxEnablePeerAccess(cuda_contexts[1], 0));
    EXPECT(cuCtxEnablePeerAccess(cuda_contexts[1], 0) == CUDA_ABI_PEER_ACCESS_ALREADY_ENABLED);
    NEED(cuCtxSetCurrent(cuda_contexts[1]));
    NEED(cuCtxEnablePeerAccess(cuda_contexts[0], 0));
    if (round == 1) { /* only one of the two goes, and both ways are gone with it */
      NEED(cuCtxSetCurrent(cuda_contexts[0]));
      NEED(cuDevicePrimaryCtxRelease_v2(1));
      NEED(cuDevicePrimaryCtxRetain(&cuda_contexts[1], 1));
      EXPECT(cuda_contexts[1] != old);
      NEED(cuCtxEnablePeerAccess(cuda_contexts[1], 0));
    }
    cuda_close(2);
  }
}

static sim_status take_a_while(void *argument) {
  (void)argument;
  usleep(500);
  return SIM_OK;
}

/* Work of the device that touches no memory, so that there is something to wait for when all of that is freed. */
static void queue_pause(void) {
  sim_device *(*device_at)(sim_vendor, int);
  sim_stream *(*stream_of)(sim_device *, void *);
  sim_status (*queue)(sim_stream *, const sim_work *);
  *(void **)&device_at = face_function("libgpusim.so", "sim_device_at");
  *(void **)&stream_of = face_function("libgpusim.so", "sim_stream_of");
  *(void **)&queue = face_function("libgpusim.so", "sim_queue");
  NEED(queue(stream_of(device_at(SIM_CUDA, 0), NULL), &(sim_work){.name = "a pause", .run = take_a_while}));
}

static void *retain_and_release(void *argument) {
  for (int i = 0; i < ROUNDS; i++) {
    struct CUctx_st *context;
    NEED(cuDevicePrimaryCtxRetain(&context, 0));
    NEED(cuCtxSetCurrent(context));
    struct CUevent_st *event = cuda_event();
    NEED(cuEventDestroy_v2(event));
    queue_pause();
    NEED(cuCtxSetCurrent(NULL));
    NEED(cuDevicePrimaryCtxRelease_v2(0));
  }
  return argument;
}

/* A last release and the next retain may meet. */
static void retain_in_threads(void) {
  cuda_load();
  NEED(cuInit(0));
  pthread_t all[4];
  for (int i = 0; i < 4; i++) EXPECT(pthread_create(&all[i], NULL, retain_and_release, NULL) == 0);
  for (int i = 0; i < 4; i++) EXPECT(pthread_join(all[i], NULL) == 0);
}

static size_t resident_bytes(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  EXPECT(file && fscanf(file, "%*u %lu", &pages) == 1);
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Memory that nobody writes costs nothing, and more than 64 GiB can be allocated one after the other. Sanitizers leave
 * less room for addresses. */
static void large_memory(void) {
  const char *sanitizers = getenv("HELIO_TEST_SANITIZERS");
  bool watched = sanitizers && *sanitizers;
  cuda_open(1);
  size_t bytes = ((size_t)1 << 30) + 100, before = resident_bytes();
  for (int i = 0; i < (watched ? 10 : 100); i++) {
    unsigned char ends[2] = {0};
    cuda_abi_address buffer = cuda_allocate(bytes);
    if (!watched) EXPECT(resident_bytes() < before + (64 << 20));
    NEED(cuMemcpyDtoHAsync_v2(&ends[0], buffer, 1, NULL));
    NEED(cuMemcpyDtoHAsync_v2(&ends[1], buffer + bytes - 1, 1, NULL));
    EXPECT(ends[0] == 0xFF && ends[1] == 0xFF);
    NEED(cuMemsetD8Async(buffer + bytes / 2, 1, 1000, NULL));
    NEED(cuMemcpyDtoHAsync_v2(&ends[0], buffer + bytes / 2 + 999, 2, NULL));
    EXPECT(ends[0] == 1 && ends[1] == 0xFF);
    NEED(cuMemFree_v2(buffer));
  }
  cuda_close(1);
}

/* A library does not write all of a workspace that is larger than it needs. */
static void large_workspace(void) {
  cuda_open(1);
#define X(result, name, arguments)                                                                                     \
  result(*name) arguments;                                                                                             \
  FACE_LOOKUP("libcublas.so.13", name)
  CUBLAS_FUNCTIONS(X)
#undef X
  const char *sanitizers = getenv("HELIO_TEST_SANITIZERS");
  struct cublasContext *handle;
  size_t bytes = (size_t)1 << 30;
  cuda_abi_address workspace = cuda_allocate(bytes), one = cuda_allocate(sizeof(float));
  size_t before = resident_bytes();
  float ready = 1, *number = (float *)(uintptr_t)one, found = 0;
  NEED(cublasCreate_v2(&handle));
  NEED(cublasSetWorkspace_v2(handle, (void *)(uintptr_t)workspace, bytes));
  NEED(cuMemcpyHtoDAsync_v2(one, &ready, sizeof ready, NULL));
  cuda_abi_address result = cuda_allocate(sizeof(float));
  NEED(cublasSgemm_v2(handle, 0, 0, 1, 1, 1, &ready, number, 1, number, 1, &(float){0}, (float *)(uintptr_t)result, 1));
  NEED(cuMemcpyDtoHAsync_v2(&found, result, sizeof found, NULL));
  EXPECT(found == 1);
  if (!sanitizers || !*sanitizers) EXPECT(resident_bytes() < before + (64 << 20));
  NEED(cublasDestroy_v2(handle));
  NEED(cuMemFree_v2(workspace));
  NEED(cuMemFree_v2(one));
  NEED(cuMemFree_v2(result));
  cuda_close(1);
}

/* Vendors' libraries should not be closed; who does it nevertheless finds all as it was. */
static void opened_again(void) {
  abi_enum (*count)(int *), (*init)(unsigned);
  int devices = 0;
  for (int i = 0; i < 2; i++) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    EXPECT(library != NULL);
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&count = dlsym(library, "cuDeviceGetCount");
    if (i == 0) NEED(init(0));
    NEED(count(&devices));
    EXPECT(devices == 1);
    EXPECT(dlclose(library) == 0);
  }
}

const program device_programs[] = {
    {"any-context", any_context},         {"hip-any-device", hip_any_device},       {"two-retains", two_retains},
    {"release-again", release_again},     {"retain-in-threads", retain_in_threads}, {"large-memory", large_memory},
    {"large-workspace", large_workspace}, {"opened-again", opened_again},           {0},
};
