/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's driver, libcuda.so.1. The names are those that it exports: the vendor's header hides _v2 behind macros, and
 * the plain names of many of these are other functions, with addresses of 32 bits. */
#ifndef ABI_CUDA_DRIVER_H
#define ABI_CUDA_DRIVER_H

#include "common.h"

struct CUctx_st;
struct CUevent_st;
struct CUfunc_st;
struct CUmod_st;
struct CUstream_st;

typedef unsigned long long cuda_abi_address; /* of device memory */

enum {
  CUDA_ABI_SUCCESS = 0,
  CUDA_ABI_INVALID_VALUE = 1,
  CUDA_ABI_OUT_OF_MEMORY = 2,
  CUDA_ABI_NOT_INITIALIZED = 3,
  CUDA_ABI_STUB_LIBRARY = 34,
  CUDA_ABI_DEVICE_UNAVAILABLE = 46,
  CUDA_ABI_NO_DEVICE = 100,
  CUDA_ABI_INVALID_DEVICE = 101,
  CUDA_ABI_INVALID_IMAGE = 200,
  CUDA_ABI_INVALID_CONTEXT = 201,
  CUDA_ABI_NO_BINARY_FOR_GPU = 209,
  CUDA_ABI_ECC_UNCORRECTABLE = 214,
  CUDA_ABI_PEER_ACCESS_UNSUPPORTED = 217,
  CUDA_ABI_INVALID_PTX = 218,
  CUDA_ABI_JIT_COMPILER_NOT_FOUND = 221,
  CUDA_ABI_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ABI_JIT_COMPILATION_DISABLED = 223,
  CUDA_ABI_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
  CUDA_ABI_SHARED_OBJECT_INIT_FAILED = 303,
  CUDA_ABI_OPERATING_SYSTEM = 304,
  CUDA_ABI_INVALID_HANDLE = 400,
  CUDA_ABI_ILLEGAL_STATE = 401,
  CUDA_ABI_NOT_FOUND = 500,
  CUDA_ABI_NOT_READY = 600,
  CUDA_ABI_ILLEGAL_ADDRESS = 700,
  CUDA_ABI_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ABI_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ABI_TOO_MANY_PEERS = 711,
  CUDA_ABI_LAUNCH_FAILED = 719,
  CUDA_ABI_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CUDA_ABI_NOT_PERMITTED = 800,
  CUDA_ABI_NOT_SUPPORTED = 801,
  CUDA_ABI_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ABI_STREAM_CAPTURE_UNSUPPORTED = 900,  /* the first of those about captures ... */
  CUDA_ABI_STREAM_CAPTURE_WRONG_THREAD = 908, /* ... and the last */
  CUDA_ABI_UNKNOWN = 999,
};

enum {
  CUDA_ABI_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CUDA_ABI_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
  CUDA_ABI_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
  CUDA_ABI_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
  CUDA_ABI_ATTRIBUTE_MAX_GRID_DIM_X = 5,
  CUDA_ABI_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
  CUDA_ABI_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
  CUDA_ABI_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CUDA_ABI_ATTRIBUTE_WARP_SIZE = 10,
  CUDA_ABI_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CUDA_ABI_ATTRIBUTE_INTEGRATED = 18,
  CUDA_ABI_ATTRIBUTE_PCI_BUS_ID = 33,
  CUDA_ABI_ATTRIBUTE_PCI_DEVICE_ID = 34,
  CUDA_ABI_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  CUDA_ABI_ATTRIBUTE_PCI_DOMAIN_ID = 50,
  CUDA_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CUDA_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CUDA_ABI_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CUDA_ABI_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
};

enum {
  CUDA_ABI_STREAM_NON_BLOCKING = 1,
  CUDA_ABI_EVENT_BLOCKING_SYNC = 1,
  CUDA_ABI_EVENT_DISABLE_TIMING = 2,
  CUDA_ABI_MEMHOSTALLOC_PORTABLE = 1,
};

/* How a thread stands to streams that are captured into graphs. */
enum {
  CUDA_ABI_CAPTURE_MODE_GLOBAL = 0,
  CUDA_ABI_CAPTURE_MODE_THREAD_LOCAL = 1,
  CUDA_ABI_CAPTURE_MODE_RELAXED = 2,
};

/* clang-format off */
/* What NCCL's plugin needs as well. */
#define CUDA_DRIVER_CURRENT_FUNCTION(X) X(abi_enum, cuCtxSetCurrent, (struct CUctx_st *context))

#define CUDA_DRIVER_FUNCTIONS(X) \
  X(abi_enum, cuInit, (unsigned flags)) \
  X(abi_enum, cuDriverGetVersion, (int *version)) \
  X(abi_enum, cuGetErrorName, (abi_enum status, const char **name)) \
  X(abi_enum, cuGetErrorString, (abi_enum status, const char **text)) \
  X(abi_enum, cuDeviceGetCount, (int *count)) \
  X(abi_enum, cuDeviceGet, (int *device, int index)) \
  X(abi_enum, cuDeviceGetName, (char *name, int size, int device)) \
  X(abi_enum, cuDeviceGetPCIBusId, (char *text, int size, int device)) \
  X(abi_enum, cuDeviceTotalMem_v2, (size_t *bytes, int device)) \
  X(abi_enum, cuDeviceGetAttribute, (int *value, abi_enum attribute, int device)) \
  X(abi_enum, cuDeviceCanAccessPeer, (int *can, int device, int peer)) \
  X(abi_enum, cuDevicePrimaryCtxRetain, (struct CUctx_st **context, int device)) \
  X(abi_enum, cuDevicePrimaryCtxRelease_v2, (int device)) \
  CUDA_DRIVER_CURRENT_FUNCTION(X) \
  X(abi_enum, cuCtxSynchronize, (void)) \
  X(abi_enum, cuCtxEnablePeerAccess, (struct CUctx_st *peer, unsigned flags)) \
  X(abi_enum, cuMemGetInfo_v2, (size_t *free_bytes, size_t *total)) \
  X(abi_enum, cuMemAlloc_v2, (cuda_abi_address *address, size_t bytes)) \
  X(abi_enum, cuMemFree_v2, (cuda_abi_address address)) \
  X(abi_enum, cuMemHostAlloc, (void **address, size_t bytes, unsigned flags)) \
  X(abi_enum, cuMemFreeHost, (void *address)) \
  X(abi_enum, cuMemcpyHtoDAsync_v2, (cuda_abi_address to, const void *from, size_t bytes, struct CUstream_st *stream)) \
  X(abi_enum, cuMemcpyDtoHAsync_v2, (void *to, cuda_abi_address from, size_t bytes, struct CUstream_st *stream)) \
  X(abi_enum, cuMemcpyDtoDAsync_v2, (cuda_abi_address to, cuda_abi_address from, size_t bytes, \
                                     struct CUstream_st *stream)) \
  X(abi_enum, cuMemcpyPeerAsync, (cuda_abi_address to, struct CUctx_st *to_context, cuda_abi_address from, \
                                  struct CUctx_st *from_context, size_t bytes, struct CUstream_st *stream)) \
  X(abi_enum, cuMemsetD8Async, (cuda_abi_address to, unsigned char value, size_t count, struct CUstream_st *stream)) \
  X(abi_enum, cuMemsetD32Async, (cuda_abi_address to, unsigned value, size_t count, struct CUstream_st *stream)) \
  X(abi_enum, cuStreamCreate, (struct CUstream_st **stream, unsigned flags)) \
  X(abi_enum, cuStreamDestroy_v2, (struct CUstream_st *stream)) \
  X(abi_enum, cuStreamSynchronize, (struct CUstream_st *stream)) \
  X(abi_enum, cuStreamWaitEvent, (struct CUstream_st *stream, struct CUevent_st *event, unsigned flags)) \
  X(abi_enum, cuEventCreate, (struct CUevent_st **event, unsigned flags)) \
  X(abi_enum, cuEventDestroy_v2, (struct CUevent_st *event)) \
  X(abi_enum, cuEventRecord, (struct CUevent_st *event, struct CUstream_st *stream)) \
  X(abi_enum, cuEventQuery, (struct CUevent_st *event)) \
  X(abi_enum, cuEventSynchronize, (struct CUevent_st *event)) \
  X(abi_enum, cuModuleLoadData, (struct CUmod_st **module, const void *image)) \
  X(abi_enum, cuModuleUnload, (struct CUmod_st *module)) \
  X(abi_enum, cuModuleGetFunction, (struct CUfunc_st **function, struct CUmod_st *module, const char *name)) \
  X(abi_enum, cuLaunchKernel, (struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, \
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, \
                               struct CUstream_st *stream, void **arguments, void **extra))

/* A driver that lacks it is used without it. */
#define CUDA_DRIVER_OPTIONAL_FUNCTIONS(X) X(abi_enum, cuThreadExchangeStreamCaptureMode, (abi_enum * mode))

/* Nobody but tests calls these. */
#define CUDA_DRIVER_OTHER_FUNCTIONS(X) \
  X(abi_enum, cuCtxGetCurrent, (struct CUctx_st **context)) \
  X(abi_enum, cuStreamQuery, (struct CUstream_st *stream)) \
  X(abi_enum, cuEventElapsedTime, (float *milliseconds, struct CUevent_st *from, struct CUevent_st *to))
/* clang-format on */

#endif
