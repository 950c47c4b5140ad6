/* SPDX-License-Identifier: Apache-2.0 */
#include "programs.h"

#include "cublas.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 64 };

/* ---------------------------------------------------------------------------------------------------------------------
 * What is there
 */

/* GPUSIM_CUDA=0 GPUSIM_HIP=0 */
static void no_device(void) {
  cuda_load();
  hip_load();
  int count = -1;
  EXPECT(cuInit(0) == CUDA_ABI_NO_DEVICE);
  EXPECT(cuDeviceGetCount(&count) == CUDA_ABI_NOT_INITIALIZED);
  EXPECT(hipInit(0) == HIP_ABI_INVALID_DEVICE);
  EXPECT(hipGetDeviceCount(&count) == HIP_ABI_NO_DEVICE && count == 0);
  void *address;
  EXPECT(hipMalloc(&address, 4) == HIP_ABI_INVALID_DEVICE);
}

/* --driver 0 */
static void stub_driver(void) {
  cuda_load();
  int version = -1;
  EXPECT(cuInit(0) == CUDA_ABI_STUB_LIBRARY && cuDriverGetVersion(&version) == CUDA_ABI_STUB_LIBRARY);
}

/* --driver 12020: cuBLAS of CUDA 13 does not start. */
static void old_driver(void) {
  cuda_open(1);
  int version = -1;
  NEED(cuDriverGetVersion(&version));
  EXPECT(version == 12020);
  abi_enum (*create)(struct cublasContext **);
  *(void **)&create = face_function("libcublas.so.13", "cublasCreate_v2");
  struct cublasContext *handle;
  EXPECT(create(&handle) == CUBLAS_ABI_NOT_INITIALIZED);
  cuda_close(1);
}

/* CUDA_VISIBLE_DEVICES=2,0 of three */
static void visible_devices(void) {
  cuda_load();
  NEED(cuInit(0));
  int count = 0, buses[2] = {0};
  NEED(cuDeviceGetCount(&count));
  EXPECT(count == 2);
  for (int i = 0; i < 2; i++) NEED(cuDeviceGetAttribute(&buses[i], CUDA_ABI_ATTRIBUTE_PCI_BUS_ID, i));
  EXPECT(buses[0] == buses[1] + 2);
  setenv("CUDA_VISIBLE_DEVICES", "1", 1); /* too late: the driver has looked */
  NEED(cuDeviceGetCount(&count));
  EXPECT(count == 2);
  struct CUctx_st *context;
  EXPECT(cuDevicePrimaryCtxRetain(&context, 2) == CUDA_ABI_INVALID_DEVICE);
}

/* --fault missing:cuMemGetInfo_v2,missing:libnvrtc.so.13 */
static void missing(void) {
  EXPECT(!dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL));
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  EXPECT(driver && !dlsym(driver, "cuMemGetInfo_v2") && dlsym(driver, "cuMemAlloc_v2"));
}

static void names(void) {
  cuda_open(1);
  char name[64] = "", bus[32] = "";
  NEED(cuDeviceGetName(name, sizeof name, 0));
  EXPECT(!strcmp(name, "gpusim (CUDA 8.0)"));
  NEED(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
  EXPECT(strlen(bus) == strlen("0000:00:00.0"));
  const char *text = NULL;
  NEED(cuGetErrorName(CUDA_ABI_OUT_OF_MEMORY, &text));
  EXPECT(!strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT(cuGetErrorString(12345, &text) == CUDA_ABI_INVALID_VALUE && !text);
  cuda_close(1);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What fails
 */

/* --memory 1M */
static void out_of_memory(void) {
  cuda_open(1);
  size_t free_bytes, total;
  NEED(cuMemGetInfo_v2(&free_bytes, &total));
  EXPECT(total == 1 << 20 && free_bytes == total);
  cuda_abi_address first = cuda_allocate(3 << 18), second;
  EXPECT(cuMemAlloc_v2(&second, (1 << 18) + 1) == CUDA_ABI_OUT_OF_MEMORY);
  NEED(cuMemAlloc_v2(&second, 1 << 18));
  NEED(cuMemGetInfo_v2(&free_bytes, &total));
  EXPECT(free_bytes == 0);
  NEED(cuMemFree_v2(first));
  NEED(cuMemFree_v2(second));
  NEED(cuMemGetInfo_v2(&free_bytes, &total));
  EXPECT(free_bytes == total);
  EXPECT(cuMemAlloc_v2(&first, 0) == CUDA_ABI_INVALID_VALUE);
  cuda_close(1);
}

/* --fault allocation:2 */
static void second_allocation(void) {
  cuda_open(1);
  cuda_abi_address first = cuda_allocate(100), second;
  EXPECT(cuMemAlloc_v2(&second, 100) == CUDA_ABI_OUT_OF_MEMORY);
  second = cuda_allocate(100);
  NEED(cuMemFree_v2(first));
  NEED(cuMemFree_v2(second));
  cuda_close(1);
}

/* --fault allocation:2,create:2,create:5 */
static void second_creation(void) {
  cuda_open(1);
  void *pinned = cuda_pin(100);
  cuda_abi_address address;
  EXPECT(cuMemAlloc_v2(&address, 100) == CUDA_ABI_OUT_OF_MEMORY); /* pinned memory counts, too */
  struct CUstream_st *stream = cuda_stream(0), *second;
  EXPECT(cuStreamCreate(&second, 0) == CUDA_ABI_OUT_OF_MEMORY);
  struct CUevent_st *event = cuda_event();
  abi_enum (*create)(struct cublasContext **), (*destroy)(struct cublasContext *);
  *(void **)&create = face_function("libcublas.so.13", "cublasCreate_v2");
  *(void **)&destroy = face_function("libcublas.so.13", "cublasDestroy_v2");
  struct cublasContext *handle;
  NEED(create(&handle));
  NEED(destroy(handle));
  EXPECT(create(&handle) == CUBLAS_ABI_NOT_INITIALIZED);
  NEED(cuMemFreeHost(pinned));
  NEED(cuStreamDestroy_v2(stream));
  NEED(cuEventDestroy_v2(event));
  cuda_close(1);
}

/* --fault allocation:1 */
static void first_pinned(void) {
  cuda_open(1);
  void *pinned;
  EXPECT(cuMemHostAlloc(&pinned, 100, 0) == CUDA_ABI_OUT_OF_MEMORY);
  NEED(cuMemHostAlloc(&pinned, 100, 0));
  NEED(cuMemFreeHost(pinned));
  cuda_close(1);
}

/* --fault copy:2+@1 */
static void later_copies_of_second(void) {
  cuda_open(2);
  for (int i = 0; i < 2; i++) {
    NEED(cuCtxSetCurrent(cuda_contexts[i]));
    cuda_abi_address address = cuda_allocate(100);
    NEED(cuMemsetD8Async(address, 0, 100, NULL));
    for (int k = 0; k < 3; k++) EXPECT((cuMemsetD8Async(address, 0, 100, NULL) != 0) == (i == 1));
    NEED(cuMemFree_v2(address));
  }
  cuda_close(2);
}

/* A device that is lost at its second copy, however it is told: every later call fails, the other device goes on, and
 * nobody is blamed for what can no longer be freed. */
static void use_lost_device(bool late) {
  cuda_open(2);
  unsigned host[WORDS];
  NEED(cuCtxSetCurrent(cuda_contexts[1]));
  cuda_abi_address other = cuda_allocate(4 * WORDS);
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  cuda_abi_address address = cuda_allocate(4 * WORDS), more;
  struct CUstream_st *stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  struct CUevent_st *event = cuda_event();
  NEED(cuMemcpyPeerAsync(address, cuda_contexts[0], other, cuda_contexts[1], 4 * WORDS, stream));
  EXPECT(cuMemsetD32Async(address, 2, WORDS, stream) == (late ? CUDA_ABI_SUCCESS : CUDA_ABI_LAUNCH_FAILED));
  EXPECT(cuEventRecord(event, stream) == (late ? CUDA_ABI_SUCCESS : CUDA_ABI_LAUNCH_FAILED));
  NEED(cuCtxSetCurrent(cuda_contexts[1]));
  NEED(cuStreamWaitEvent(NULL, event, 0));       /* never hangs */
  NEED(cuMemsetD32Async(other, 3, WORDS, NULL)); /* which nobody reads any more */
  NEED(cuMemcpyDtoHAsync_v2(host, other, 4 * WORDS, NULL));
  EXPECT(host[0] == 3);
  NEED(cuMemFree_v2(other));
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  EXPECT(cuStreamSynchronize(stream) == CUDA_ABI_LAUNCH_FAILED);
  EXPECT(cuMemAlloc_v2(&more, 100) == CUDA_ABI_LAUNCH_FAILED);
  EXPECT(cuMemFree_v2(address) == CUDA_ABI_LAUNCH_FAILED);
  EXPECT(cuStreamDestroy_v2(stream) == CUDA_ABI_LAUNCH_FAILED);
  EXPECT(cuEventDestroy_v2(event) == CUDA_ABI_LAUNCH_FAILED);
  cuda_close(2);
}

/* --fault lost:copy:2@0 */
static void lost_device(void) {
  use_lost_device(false);
}

/* --fault lost:copy:2@0,late */
static void lost_late(void) {
  use_lost_device(true);
}

/* --fault slow */
static void slow_device(void) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(100);
  struct CUevent_st *events[2];
  for (int i = 0; i < 2; i++) NEED(cuEventCreate(&events[i], 0));
  NEED(cuEventRecord(events[0], NULL));
  for (int i = 0; i < 10; i++) NEED(cuMemsetD8Async(address, 0, 100, NULL));
  NEED(cuEventRecord(events[1], NULL));
  NEED(cuCtxSynchronize());
  float milliseconds = 0;
  NEED(cuEventElapsedTime(&milliseconds, events[0], events[1]));
  EXPECT(milliseconds >= 10);
  for (int i = 0; i < 2; i++) NEED(cuEventDestroy_v2(events[i]));
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Counters
 */

static void counters(void) {
  cuda_open(1);
  void (*read)(const sim_device *, sim_counters *);
  *(void **)&read = face_function("libgpusim.so", "sim_counters_read");
  sim_counters before, after;
  cuda_abi_address one = cuda_allocate(1000), other = cuda_allocate(1000);
  unsigned *host = cuda_pin(1000);
  read(NULL, &before);
  EXPECT(before.occasions[SIM_ALLOCATION] == 3 && before.memory_used == 2048 && before.memory_peak == 2048);
  NEED(cuMemsetD8Async(one, 0, 1000, NULL));
  NEED(cuMemcpyDtoDAsync_v2(other, one, 1000, NULL));
  NEED(cuMemcpyDtoHAsync_v2(host, other, 900, NULL));
  NEED(cuStreamSynchronize(NULL));
  NEED(cuMemcpyHtoDAsync_v2(one, host, 800, NULL));
  NEED(cuStreamSynchronize(NULL));
  read(NULL, &after);
  EXPECT(after.occasions[SIM_ALLOCATION] == 3 && after.occasions[SIM_COPY] == before.occasions[SIM_COPY] + 4);
  EXPECT(after.occasions[SIM_HOST_WAIT] == before.occasions[SIM_HOST_WAIT] + 2);
  EXPECT(after.bytes_in == 800 && after.bytes_out == 900 && after.bytes_within == 1000 && after.bytes_between == 0);
  NEED(cuMemFreeHost(host));
  NEED(cuMemFree_v2(one));
  NEED(cuMemFree_v2(other));
  cuda_close(1);
}

const program fault_programs[] = {
    {"no-device", no_device},
    {"stub-driver", stub_driver},
    {"old-driver", old_driver},
    {"visible-devices", visible_devices},
    {"missing", missing},
    {"names", names},
    {"out-of-memory", out_of_memory},
    {"second-allocation", second_allocation},
    {"second-creation", second_creation},
    {"first-pinned", first_pinned},
    {"later-copies-of-second", later_copies_of_second},
    {"lost-device", lost_device},
    {"lost-late", lost_late},
    {"slow-device", slow_device},
    {"counters", counters},
    {0},
};
