/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

CUDA_DRIVER_FUNCTIONS(FACE_DEFINITION)
CUDA_DRIVER_OTHER_FUNCTIONS(FACE_DEFINITION)
HIP_FUNCTIONS(FACE_DEFINITION)
HIP_OLDER_PROPERTIES_FUNCTION(FACE_DEFINITION)
HIP_OTHER_FUNCTIONS(FACE_DEFINITION)

struct CUctx_st *cuda_contexts[4];

void cuda_load(void) {
#define X(result, name, arguments) FACE_LOOKUP("libcuda.so.1", name)
  CUDA_DRIVER_FUNCTIONS(X)
  CUDA_DRIVER_OTHER_FUNCTIONS(X)
#undef X
}

void cuda_open(int devices) {
  cuda_load();
  NEED(cuInit(0));
  for (int i = 0; i < devices; i++) NEED(cuDevicePrimaryCtxRetain(&cuda_contexts[i], i));
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
}

void cuda_close(int devices) {
  for (int i = 0; i < devices; i++) NEED(cuDevicePrimaryCtxRelease_v2(i));
}

cuda_abi_address cuda_allocate(size_t bytes) {
  cuda_abi_address address;
  NEED(cuMemAlloc_v2(&address, bytes));
  EXPECT(address % 256 == 0);
  return address;
}

void *cuda_pin(size_t bytes) {
  void *address;
  NEED(cuMemHostAlloc(&address, bytes, 0));
  return address;
}

struct CUstream_st *cuda_stream(unsigned flags) {
  struct CUstream_st *stream;
  NEED(cuStreamCreate(&stream, flags));
  return stream;
}

struct CUevent_st *cuda_event(void) {
  struct CUevent_st *event;
  NEED(cuEventCreate(&event, CUDA_ABI_EVENT_DISABLE_TIMING));
  return event;
}

void hip_load(void) {
#define X(result, name, arguments) FACE_LOOKUP("libamdhip64.so.6", name)
  HIP_FUNCTIONS(X)
  HIP_OLDER_PROPERTIES_FUNCTION(X)
  HIP_OTHER_FUNCTIONS(X)
#undef X
}

void hip_open(void) {
  hip_load();
  NEED(hipInit(0));
}
