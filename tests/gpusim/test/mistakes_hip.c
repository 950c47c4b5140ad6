/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes with HIP's runtime, and with CUDA's things on it. */
#include "driver.h"

enum { BYTES = 1000 }; /* no multiple of the alignment */

static void hip_leak(bool wrong) {
  hip_open();
  void *address;
  NEED(hipMalloc(&address, BYTES));
  if (!wrong) NEED(hipFree(address));
}

static void hip_wrong_kind(bool wrong) {
  hip_open();
  void *address;
  char host[BYTES] = {0};
  NEED(hipMalloc(&address, BYTES));
  (void)hipMemcpyAsync(address, host, BYTES, wrong ? HIP_ABI_DEVICE_TO_DEVICE : HIP_ABI_HOST_TO_DEVICE, NULL);
  NEED(hipFree(address));
}

static void hip_deleted_stream(bool wrong) {
  hip_open();
  struct ihipStream_t *stream;
  NEED(hipStreamCreateWithFlags(&stream, 0));
  NEED(hipStreamDestroy(stream));
  (void)hipStreamQuery(wrong ? stream : NULL);
}

static void hip_other_device(bool wrong) {
  hip_open();
  void *address;
  NEED(hipMalloc(&address, BYTES));
  NEED(hipSetDevice(wrong));
  (void)hipMemsetD8Async(address, 0, BYTES, NULL);
  NEED(hipSetDevice(0));
  NEED(hipFree(address));
}

/* Vendors' handles are not interchangeable, whatever their numbers are. */
static void cuda_memory_on_hip(bool wrong) {
  cuda_open(1);
  hip_open();
  cuda_abi_address address = cuda_allocate(BYTES);
  void *other;
  NEED(hipMalloc(&other, BYTES));
  (void)hipMemsetD8Async(wrong ? (void *)(uintptr_t)address : other, 0, BYTES, NULL);
  NEED(hipFree(other));
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void cuda_memory_freed_on_hip(bool wrong) {
  cuda_open(1);
  hip_open();
  cuda_abi_address address = cuda_allocate(BYTES);
  (void)hipFree(wrong ? (void *)(uintptr_t)address : NULL);
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void cuda_event_on_hip(bool wrong) {
  cuda_open(1);
  hip_open();
  struct CUevent_st *event = cuda_event();
  struct ihipEvent_t *other;
  NEED(hipEventCreateWithFlags(&other, HIP_ABI_EVENT_DISABLE_TIMING));
  (void)hipStreamWaitEvent(NULL, wrong ? (struct ihipEvent_t *)event : other, 0);
  NEED(hipEventDestroy(other));
  NEED(cuEventDestroy_v2(event));
  cuda_close(1);
}

const mistake hip_mistakes[] = {
    {"hip-leak", "leak", hip_leak, NULL},
    {"hip-wrong-kind", "not device memory", hip_wrong_kind, NULL},
    {"hip-deleted-stream", "use after delete", hip_deleted_stream, NULL},
    {"hip-other-device", "wrong device", hip_other_device, "GPUSIM_HIP=2"},
    {"cuda-event-on-hip", "wrong device", cuda_event_on_hip, NULL},
    {"cuda-memory-freed-on-hip", "wrong device", cuda_memory_freed_on_hip, NULL},
    {"cuda-memory-on-hip", "wrong device", cuda_memory_on_hip, NULL},
    {0},
};
