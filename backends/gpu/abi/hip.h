/* SPDX-License-Identifier: Apache-2.0 */
/* HIP's runtime, libamdhip64.so.N. The numbers of its statuses are CUDA's, those of its attributes are not. */
#ifndef ABI_HIP_H
#define ABI_HIP_H

#include "common.h"

struct ihipEvent_t;
struct ihipModule_t;
struct ihipModuleSymbol_t;
struct ihipStream_t;
struct hipDeviceProp_t;
struct hipDeviceProp_tR0600;

enum {
  HIP_ABI_SUCCESS = 0,
  HIP_ABI_INVALID_VALUE = 1,
  HIP_ABI_OUT_OF_MEMORY = 2,
  HIP_ABI_NOT_INITIALIZED = 3,
  HIP_ABI_INVALID_CONFIGURATION = 9,
  HIP_ABI_INVALID_DEVICE_FUNCTION = 98,
  HIP_ABI_NO_DEVICE = 100,
  HIP_ABI_INVALID_DEVICE = 101,
  HIP_ABI_INVALID_IMAGE = 200,
  HIP_ABI_INVALID_CONTEXT = 201,
  HIP_ABI_NO_BINARY_FOR_GPU = 209,
  HIP_ABI_PEER_ACCESS_UNSUPPORTED = 217,
  HIP_ABI_INVALID_KERNEL_FILE = 218,
  HIP_ABI_SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
  HIP_ABI_SHARED_OBJECT_INIT_FAILED = 303,
  HIP_ABI_OPERATING_SYSTEM = 304,
  HIP_ABI_INVALID_HANDLE = 400,
  HIP_ABI_ILLEGAL_STATE = 401,
  HIP_ABI_NOT_FOUND = 500,
  HIP_ABI_NOT_READY = 600,
  HIP_ABI_ILLEGAL_ADDRESS = 700,
  HIP_ABI_LAUNCH_OUT_OF_RESOURCES = 701,
  HIP_ABI_PEER_ACCESS_ALREADY_ENABLED = 704,
  HIP_ABI_LAUNCH_FAILURE = 719,
  HIP_ABI_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  HIP_ABI_NOT_SUPPORTED = 801,
  HIP_ABI_STREAM_CAPTURE_UNSUPPORTED = 900,
  HIP_ABI_STREAM_CAPTURE_WRONG_THREAD = 908,
  HIP_ABI_UNKNOWN = 999,
};

enum {
  HIP_ABI_ATTRIBUTE_INTEGRATED = 16,
  HIP_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 23,
  HIP_ABI_ATTRIBUTE_MAX_BLOCK_DIM_X = 26,
  HIP_ABI_ATTRIBUTE_MAX_BLOCK_DIM_Y = 27,
  HIP_ABI_ATTRIBUTE_MAX_BLOCK_DIM_Z = 28,
  HIP_ABI_ATTRIBUTE_MAX_GRID_DIM_X = 29,
  HIP_ABI_ATTRIBUTE_MAX_GRID_DIM_Y = 30,
  HIP_ABI_ATTRIBUTE_MAX_GRID_DIM_Z = 31,
  HIP_ABI_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 56,
  HIP_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 61,
  HIP_ABI_ATTRIBUTE_MULTIPROCESSOR_COUNT = 63,
  HIP_ABI_ATTRIBUTE_PCI_BUS_ID = 67,
  HIP_ABI_ATTRIBUTE_PCI_DEVICE_ID = 68,
  HIP_ABI_ATTRIBUTE_PCI_DOMAIN_ID = 69,
  HIP_ABI_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 74,
  HIP_ABI_ATTRIBUTE_WARP_SIZE = 87,
  HIP_ABI_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 88,
};

enum {
  HIP_ABI_STREAM_NON_BLOCKING = 1,
  HIP_ABI_EVENT_BLOCKING_SYNC = 1,
  HIP_ABI_EVENT_DISABLE_TIMING = 2,
  HIP_ABI_HOST_MALLOC_PORTABLE = 1,
};

/* How a thread stands to streams that are captured into graphs. */
enum {
  HIP_ABI_CAPTURE_MODE_GLOBAL = 0,
  HIP_ABI_CAPTURE_MODE_THREAD_LOCAL = 1,
  HIP_ABI_CAPTURE_MODE_RELAXED = 2,
};

/* Kinds of hipMemcpyAsync. */
enum {
  HIP_ABI_HOST_TO_HOST = 0,
  HIP_ABI_HOST_TO_DEVICE = 1,
  HIP_ABI_DEVICE_TO_HOST = 2,
  HIP_ABI_DEVICE_TO_DEVICE = 3,
  HIP_ABI_DEFAULT = 4,
};

/* The name of a device's architecture is only in its struct of properties, of which there are two layouts. Both are
 * handed a buffer of this size, full of zeros. */
enum {
  HIP_ABI_PROPERTIES_BYTES = 4096,
  HIP_ABI_ARCHITECTURE_OFFSET_R0600 = 1160, /* hipGetDevicePropertiesR0600 */
  HIP_ABI_ARCHITECTURE_OFFSET = 396,        /* hipGetDeviceProperties */
  HIP_ABI_ARCHITECTURE_BYTES = 256,
};

/* clang-format off */
/* What RCCL's plugin needs as well. */
#define HIP_CURRENT_FUNCTION(X) X(abi_enum, hipSetDevice, (int device))

#define HIP_FUNCTIONS(X) \
  X(abi_enum, hipRuntimeGetVersion, (int *version)) \
  X(const char *, hipGetErrorName, (abi_enum status)) \
  X(const char *, hipGetErrorString, (abi_enum status)) \
  X(abi_enum, hipGetLastError, (void)) \
  X(abi_enum, hipGetDeviceCount, (int *count)) \
  X(abi_enum, hipDeviceGetName, (char *name, int size, int device)) \
  X(abi_enum, hipDeviceGetPCIBusId, (char *text, int size, int device)) \
  X(abi_enum, hipDeviceTotalMem, (size_t *bytes, int device)) \
  X(abi_enum, hipDeviceGetAttribute, (int *value, abi_enum attribute, int device)) \
  X(abi_enum, hipDeviceCanAccessPeer, (int *can, int device, int peer)) \
  X(abi_enum, hipDeviceEnablePeerAccess, (int peer, unsigned flags)) \
  HIP_CURRENT_FUNCTION(X) \
  X(abi_enum, hipDeviceSynchronize, (void)) \
  X(abi_enum, hipMemGetInfo, (size_t *free_bytes, size_t *total)) \
  X(abi_enum, hipMalloc, (void **address, size_t bytes)) \
  X(abi_enum, hipFree, (void *address)) \
  X(abi_enum, hipHostMalloc, (void **address, size_t bytes, unsigned flags)) \
  X(abi_enum, hipHostFree, (void *address)) \
  X(abi_enum, hipMemcpyAsync, (void *to, const void *from, size_t bytes, abi_enum kind, struct ihipStream_t *stream)) \
  X(abi_enum, hipMemcpyPeerAsync, (void *to, int to_device, const void *from, int from_device, size_t bytes, \
                                   struct ihipStream_t *stream)) \
  X(abi_enum, hipMemsetD8Async, (void *to, unsigned char value, size_t count, struct ihipStream_t *stream)) \
  X(abi_enum, hipMemsetD32Async, (void *to, int value, size_t count, struct ihipStream_t *stream)) \
  X(abi_enum, hipStreamCreateWithFlags, (struct ihipStream_t **stream, unsigned flags)) \
  X(abi_enum, hipStreamDestroy, (struct ihipStream_t *stream)) \
  X(abi_enum, hipStreamSynchronize, (struct ihipStream_t *stream)) \
  X(abi_enum, hipStreamWaitEvent, (struct ihipStream_t *stream, struct ihipEvent_t *event, unsigned flags)) \
  X(abi_enum, hipEventCreateWithFlags, (struct ihipEvent_t **event, unsigned flags)) \
  X(abi_enum, hipEventDestroy, (struct ihipEvent_t *event)) \
  X(abi_enum, hipEventRecord, (struct ihipEvent_t *event, struct ihipStream_t *stream)) \
  X(abi_enum, hipEventQuery, (struct ihipEvent_t *event)) \
  X(abi_enum, hipModuleLoadData, (struct ihipModule_t **module, const void *image)) \
  X(abi_enum, hipModuleUnload, (struct ihipModule_t *module)) \
  X(abi_enum, hipModuleGetFunction, (struct ihipModuleSymbol_t **function, struct ihipModule_t *module, \
                                     const char *name)) \
  X(abi_enum, hipModuleLaunchKernel, (struct ihipModuleSymbol_t *function, unsigned grid_x, unsigned grid_y, \
                                      unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, \
                                      unsigned shared_bytes, struct ihipStream_t *stream, void **arguments, \
                                      void **extra))

/* A runtime that lacks it is used without it. */
#define HIP_OPTIONAL_FUNCTIONS(X) X(abi_enum, hipThreadExchangeStreamCaptureMode, (abi_enum * mode))

/* Nobody but tests calls these. */
#define HIP_OTHER_FUNCTIONS(X) \
  X(abi_enum, hipInit, (unsigned flags)) \
  X(abi_enum, hipDriverGetVersion, (int *version)) \
  X(abi_enum, hipGetDevice, (int *device)) \
  X(abi_enum, hipStreamQuery, (struct ihipStream_t *stream)) \
  X(abi_enum, hipEventSynchronize, (struct ihipEvent_t *event)) \
  X(abi_enum, hipEventElapsedTime, (float *milliseconds, struct ihipEvent_t *from, struct ihipEvent_t *to))

/* Every version has one of these, some both. The first is since 6.0. */
#define HIP_PROPERTIES_FUNCTION(X) \
  X(abi_enum, hipGetDevicePropertiesR0600, (struct hipDeviceProp_tR0600 *properties, int device))
#define HIP_OLDER_PROPERTIES_FUNCTION(X) \
  X(abi_enum, hipGetDeviceProperties, (struct hipDeviceProp_t *properties, int device))
/* clang-format on */

#endif
