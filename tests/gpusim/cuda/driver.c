/* SPDX-License-Identifier: Apache-2.0 */
/* libcuda.so.1: initialization, devices and contexts. The rest of the driver is in driver_work.c. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUctx_st {
  sim_object object;
};

static bool initialized;
static struct CUctx_st *contexts[64]; /* by device number; NULL: not retained */
static int retained[64];
static _Thread_local struct CUctx_st *current;

/* ---------------------------------------------------------------------------------------------------------------------
 * What stands before each call
 */

abi_enum driver_enter(const char *name) {
  sim_call(name);
  if (sim_setup()->driver == 0) return SIM_STUB;
  sim_lock();
  bool ready = initialized;
  sim_unlock();
  return ready ? sim_after_fork() : SIM_NOT_INITIALIZED;
}

abi_enum driver_enter_device(const char *name, int index, sim_device **device) {
  abi_enum status = driver_enter(name);
  if (status != SIM_OK) return status;
  *device = sim_device_at(SIM_CUDA, index);
  return *device ? SIM_OK : SIM_INVALID_DEVICE;
}

abi_enum driver_enter_context(const char *name, sim_device **device) {
  abi_enum status = driver_enter(name);
  if (status != SIM_OK) return status;
  if (!current) {
    sim_violation("no current context", "cuCtxSetCurrent was not called in this thread");
    return SIM_INVALID_CONTEXT;
  }
  struct CUctx_st *context = sim_check(current, "context");
  if (!context) return SIM_INVALID_CONTEXT;
  *device = context->object.device;
  return sim_device_health(*device);
}

sim_device *driver_device_of(struct CUctx_st *context) {
  struct CUctx_st *found = sim_check(context, "context");
  return found ? found->object.device : NULL;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The driver itself
 */

abi_enum cuInit(unsigned flags) {
  SIM_CALL();
  if (sim_setup()->driver == 0) return SIM_STUB;
  if (flags != 0) return SIM_INVALID_VALUE;
  if (sim_device_count(SIM_CUDA) == 0) return SIM_NO_DEVICE;
  sim_lock();
  initialized = true;
  sim_unlock();
  return sim_after_fork();
}

abi_enum cuDriverGetVersion(int *version) {
  SIM_CALL();
  if (sim_setup()->driver == 0) return SIM_STUB;
  if (!version) return SIM_INVALID_VALUE;
  *version = sim_setup()->driver;
  return SIM_OK;
}

static const struct {
  abi_enum status;
  const char *name, *text;
} errors[] = {
    {SIM_OK, "CUDA_SUCCESS", "no error"},
    {SIM_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {SIM_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {SIM_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {SIM_STUB, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {SIM_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {SIM_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {SIM_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {SIM_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {SIM_NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {SIM_PEER_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported between these devices"},
    {SIM_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {SIM_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {SIM_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {SIM_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {SIM_LAUNCH_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {SIM_PEER_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {SIM_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {SIM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {SIM_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

/* A number that the driver does not know gives NULL and an error. */
static abi_enum describe(abi_enum status, const char **name, const char **text) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    if (errors[i].status != status) continue;
    if (name) *name = errors[i].name;
    if (text) *text = errors[i].text;
    return SIM_OK;
  }
  if (name) *name = NULL;
  if (text) *text = NULL;
  return SIM_INVALID_VALUE;
}

abi_enum cuGetErrorName(abi_enum status, const char **name) {
  return describe(status, name, NULL);
}

abi_enum cuGetErrorString(abi_enum status, const char **text) {
  return describe(status, NULL, text);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Devices
 */

abi_enum cuDeviceGetCount(int *count) {
  abi_enum status = driver_enter(__func__);
  if (status != SIM_OK) return status;
  if (!count) return SIM_INVALID_VALUE;
  *count = sim_device_count(SIM_CUDA);
  return SIM_OK;
}

abi_enum cuDeviceGet(int *device, int index) {
  sim_device *found;
  abi_enum status = driver_enter_device(__func__, index, &found);
  if (status != SIM_OK) return status;
  if (!device) return SIM_INVALID_VALUE;
  *device = index;
  return SIM_OK;
}

abi_enum cuDeviceGetName(char *name, int size, int device) {
  sim_device *found;
  abi_enum status = driver_enter_device(__func__, device, &found);
  if (status != SIM_OK) return status;
  if (!name || size <= 0) return SIM_INVALID_VALUE;
  snprintf(name, (size_t)size, "%s", sim_device_name(found));
  return SIM_OK;
}

abi_enum cuDeviceGetPCIBusId(char *text, int size, int device) {
  sim_device *found;
  abi_enum status = driver_enter_device(__func__, device, &found);
  if (status != SIM_OK) return status;
  if (!text || size <= (int)strlen("0000:00:00.0")) return SIM_INVALID_VALUE;
  snprintf(text, (size_t)size, "0000:%02X:00.0", DRIVER_FIRST_BUS + sim_device_slot(found));
  return SIM_OK;
}

abi_enum cuDeviceTotalMem_v2(size_t *bytes, int device) {
  sim_device *found;
  abi_enum status = driver_enter_device(__func__, device, &found);
  if (status != SIM_OK) return status;
  if (!bytes) return SIM_INVALID_VALUE;
  *bytes = sim_setup()->memory;
  return SIM_OK;
}

static bool read_limit(abi_enum attribute, int *value) {
  const sim_limits *most = sim_limits_of(SIM_CUDA);
  switch (attribute) {
  case CUDA_ABI_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    return *value = (int)most->threads_per_block, true;
  case CUDA_ABI_ATTRIBUTE_MAX_BLOCK_DIM_X:
    return *value = (int)most->threads[0], true;
  case CUDA_ABI_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    return *value = (int)most->threads[1], true;
  case CUDA_ABI_ATTRIBUTE_MAX_BLOCK_DIM_Z:
    return *value = (int)most->threads[2], true;
  case CUDA_ABI_ATTRIBUTE_MAX_GRID_DIM_X:
    return *value = (int)most->blocks[0], true;
  case CUDA_ABI_ATTRIBUTE_MAX_GRID_DIM_Y:
    return *value = (int)most->blocks[1], true;
  case CUDA_ABI_ATTRIBUTE_MAX_GRID_DIM_Z:
    return *value = (int)most->blocks[2], true;
  case CUDA_ABI_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
  case CUDA_ABI_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    return *value = (int)most->shared_per_block, true;
  default:
    return false;
  }
}

static bool read_attribute(const sim_device *device, abi_enum attribute, int *value) {
  int capability = atoi(sim_setup()->architecture[SIM_CUDA] + strlen("sm_"));
  switch (attribute) {
  case CUDA_ABI_ATTRIBUTE_WARP_SIZE:
    return *value = sim_device_warp(device), true;
  case CUDA_ABI_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return *value = 2, true;
  case CUDA_ABI_ATTRIBUTE_INTEGRATED:
    return *value = sim_device_slot(device) == sim_setup()->integrated, true;
  case CUDA_ABI_ATTRIBUTE_PCI_DEVICE_ID:
  case CUDA_ABI_ATTRIBUTE_PCI_DOMAIN_ID:
  case CUDA_ABI_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    return *value = 0, true;
  case CUDA_ABI_ATTRIBUTE_PCI_BUS_ID:
    return *value = DRIVER_FIRST_BUS + sim_device_slot(device), true;
  case CUDA_ABI_ATTRIBUTE_UNIFIED_ADDRESSING:
    return *value = 1, true;
  case CUDA_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return *value = capability / 10, true;
  case CUDA_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    return *value = capability % 10, true;
  default:
    return read_limit(attribute, value);
  }
}

abi_enum cuDeviceGetAttribute(int *value, abi_enum attribute, int device) {
  sim_device *found;
  abi_enum status = driver_enter_device(__func__, device, &found);
  if (status != SIM_OK) return status;
  if (value && read_attribute(found, attribute, value)) return SIM_OK;
  fprintf(stderr, "gpusim: attribute %u of a CUDA device is not known here\n", attribute);
  return SIM_INVALID_VALUE;
}

abi_enum cuDeviceCanAccessPeer(int *can, int device, int peer) {
  sim_device *one, *other;
  abi_enum status = driver_enter_device(__func__, device, &one);
  if (status == SIM_OK) status = driver_enter_device(__func__, peer, &other);
  if (status != SIM_OK) return status;
  if (!can) return SIM_INVALID_VALUE;
  *can = one != other && sim_setup()->peer;
  return SIM_OK;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Contexts: only the primary one of each device
 */

abi_enum cuDevicePrimaryCtxRetain(struct CUctx_st **context, int device) {
  sim_device *found;
  abi_enum status = driver_enter_device(__func__, device, &found);
  if (status != SIM_OK) return status;
  if (!context) return SIM_INVALID_VALUE;
  status = sim_device_health(found);
  if (status != SIM_OK) return status;
  sim_lock();
  if (retained[device] == 0) contexts[device] = sim_new("context", sizeof *contexts[device], found);
  if (contexts[device]) retained[device]++;
  *context = contexts[device];
  sim_unlock();
  return *context ? SIM_OK : SIM_OUT_OF_MEMORY;
}

/* Ends all that the context holds: what is left then was forgotten. Under the mutex. */
static void end_context(int device, sim_device *found) {
  sim_delete(contexts[device]);
  contexts[device] = NULL;
  sim_forget_peers(found);
  sim_tell_leaks(found);
}

/* The last that lets go of it waits for what the device has to do, while another thread may retain it again. */
abi_enum cuDevicePrimaryCtxRelease_v2(int device) {
  sim_device *found;
  abi_enum status = driver_enter_device(__func__, device, &found);
  if (status != SIM_OK) return status;
  sim_lock();
  if (retained[device] == 1) {
    sim_unlock();
    sim_device_drain(found);
    sim_lock();
  }
  bool wrong = retained[device] == 0;
  if (!wrong && --retained[device] == 0) end_context(device, found);
  sim_unlock();
  if (!wrong) return SIM_OK;
  sim_violation("context released too often", "device %d has no primary context", device);
  return SIM_INVALID_CONTEXT;
}

abi_enum cuCtxSetCurrent(struct CUctx_st *context) {
  abi_enum status = driver_enter(__func__);
  if (status != SIM_OK) return status;
  struct CUctx_st *found = context ? sim_check(context, "context") : NULL;
  if (context && !found) return SIM_INVALID_CONTEXT;
  current = found;
  sim_set_current(SIM_CUDA, found ? found->object.device : NULL);
  return SIM_OK;
}

abi_enum cuCtxGetCurrent(struct CUctx_st **context) {
  abi_enum status = driver_enter(__func__);
  if (status != SIM_OK) return status;
  if (!context) return SIM_INVALID_VALUE;
  *context = current;
  return SIM_OK;
}

abi_enum cuCtxSynchronize(void) {
  sim_device *device;
  abi_enum status = driver_enter_context(__func__, &device);
  return status == SIM_OK ? sim_device_finish(device) : status;
}

abi_enum cuThreadExchangeStreamCaptureMode(abi_enum *mode) {
  abi_enum status = driver_enter(__func__);
  return status == SIM_OK ? sim_capture_mode_exchange(mode) : status;
}

abi_enum cuCtxEnablePeerAccess(struct CUctx_st *peer, unsigned flags) {
  sim_device *device;
  abi_enum status = driver_enter_context(__func__, &device);
  if (status != SIM_OK) return status;
  if (flags != 0) return SIM_INVALID_VALUE;
  sim_device *other = driver_device_of(peer);
  return other ? sim_enable_peer(device, other) : SIM_INVALID_CONTEXT;
}
