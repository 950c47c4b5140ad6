/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks.h"

NCCL_FUNCTIONS(FACE_DEFINITION)
NCCL_OTHER_FUNCTIONS(FACE_DEFINITION)
NCCL_OPTIONAL_FUNCTIONS(FACE_DEFINITION)
CUDA_DRIVER_FUNCTIONS(FACE_POINTER)
CUDA_DRIVER_OTHER_FUNCTIONS(FACE_POINTER)
HIP_FUNCTIONS(FACE_POINTER)
HIP_OTHER_FUNCTIONS(FACE_POINTER)

static bool with_hip;
static int devices_open;
static struct CUctx_st *contexts[MOST_DEVICES];

static void look_up_collectives(const char *soname) {
#define X(result, name, arguments) FACE_LOOKUP(soname, name)
  NCCL_FUNCTIONS(X)
  NCCL_OTHER_FUNCTIONS(X)
  NCCL_OPTIONAL_FUNCTIONS(X)
#undef X
}

static void open_cuda(void) {
#define X(result, name, arguments) FACE_LOOKUP("libcuda.so.1", name)
  CUDA_DRIVER_FUNCTIONS(X)
  CUDA_DRIVER_OTHER_FUNCTIONS(X)
#undef X
  look_up_collectives("libnccl.so.2");
  NEED(cuInit(0));
  for (int i = 0; i < devices_open; i++) NEED(cuDevicePrimaryCtxRetain(&contexts[i], i));
}

static void open_hip(void) {
#define X(result, name, arguments) FACE_LOOKUP("libamdhip64.so.6", name)
  HIP_FUNCTIONS(X)
  HIP_OTHER_FUNCTIONS(X)
#undef X
  look_up_collectives("librccl.so.1");
  NEED(hipInit(0));
}

void open_devices(bool hip, int count) {
  with_hip = hip;
  devices_open = count;
  if (hip)
    open_hip();
  else
    open_cuda();
}

void close_devices(void) {
  for (int i = 0; i < devices_open && !with_hip; i++) NEED(cuDevicePrimaryCtxRelease_v2(i));
}

/* The device of what this thread does next. */
void use_device(int device) {
  if (with_hip)
    NEED(hipSetDevice(device));
  else
    NEED(cuCtxSetCurrent(contexts[device]));
}

void *make_stream(int device) {
  struct CUstream_st *stream = NULL;
  struct ihipStream_t *hip_stream = NULL;
  use_device(device);
  if (!with_hip) NEED(cuStreamCreate(&stream, CUDA_ABI_STREAM_NON_BLOCKING));
  if (with_hip) NEED(hipStreamCreateWithFlags(&hip_stream, HIP_ABI_STREAM_NON_BLOCKING));
  return with_hip ? (void *)hip_stream : (void *)stream;
}

void end_stream(int device, void *stream) {
  use_device(device);
  NEED(with_hip ? hipStreamDestroy(stream) : cuStreamDestroy_v2(stream));
}

int wait_for_stream(int device, void *stream) {
  use_device(device);
  return (int)(with_hip ? hipStreamSynchronize(stream) : cuStreamSynchronize(stream));
}

static void order_hip_streams(void *earlier, void *later) {
  struct ihipEvent_t *event;
  NEED(hipEventCreateWithFlags(&event, HIP_ABI_EVENT_DISABLE_TIMING));
  NEED(hipEventRecord(event, earlier));
  NEED(hipStreamWaitEvent(later, event, 0));
  NEED(hipEventDestroy(event));
}

static void order_cuda_streams(void *earlier, void *later) {
  struct CUevent_st *event;
  NEED(cuEventCreate(&event, CUDA_ABI_EVENT_DISABLE_TIMING));
  NEED(cuEventRecord(event, earlier));
  NEED(cuStreamWaitEvent(later, event, 0));
  NEED(cuEventDestroy_v2(event));
}

void order_streams(int device, void *earlier, void *later) {
  use_device(device);
  if (with_hip)
    order_hip_streams(earlier, later);
  else
    order_cuda_streams(earlier, later);
}

void *allocate(int device, size_t bytes) {
  cuda_abi_address address = 0;
  void *hip_address = NULL;
  use_device(device);
  if (!with_hip) NEED(cuMemAlloc_v2(&address, bytes));
  if (with_hip) NEED(hipMalloc(&hip_address, bytes));
  return with_hip ? hip_address : (void *)(uintptr_t)address;
}

int release(int device, void *address) {
  use_device(device);
  return (int)(with_hip ? hipFree(address) : cuMemFree_v2((uintptr_t)address));
}

void copy_in(int device, void *to, const void *from, size_t bytes, void *stream) {
  use_device(device);
  NEED(with_hip ? hipMemcpyAsync(to, from, bytes, HIP_ABI_HOST_TO_DEVICE, stream)
                : cuMemcpyHtoDAsync_v2((uintptr_t)to, from, bytes, stream));
}

void copy_within(int device, void *to, const void *from, size_t bytes, void *stream) {
  use_device(device);
  NEED(with_hip ? hipMemcpyAsync(to, from, bytes, HIP_ABI_DEVICE_TO_DEVICE, stream)
                : cuMemcpyDtoDAsync_v2((uintptr_t)to, (uintptr_t)from, bytes, stream));
}

void copy_out(int device, void *to, const void *from, size_t bytes, void *stream) {
  use_device(device);
  NEED(with_hip ? hipMemcpyAsync(to, from, bytes, HIP_ABI_DEVICE_TO_HOST, stream)
                : cuMemcpyDtoHAsync_v2(to, (uintptr_t)from, bytes, stream));
  NEED(wait_for_stream(device, stream));
}
