/* SPDX-License-Identifier: Apache-2.0 */
/* libamdhip64.so.6: devices, properties and errors. The rest of the runtime is in runtime_work.c. */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIP_VERSION = 60342134 }; /* 6.3: major * 10^7 + minor * 10^5 + patch */

static _Thread_local abi_enum last_error;

/* ---------------------------------------------------------------------------------------------------------------------
 * What stands around each call
 */

/* "Not ready" is an answer and no error. */
abi_enum runtime_leave(abi_enum status) {
  if (status != SIM_OK && status != SIM_NOT_READY) last_error = status;
  return status;
}

abi_enum runtime_enter_device(const char *name, int index, sim_device **device) {
  sim_call(name);
  *device = sim_device_at(SIM_HIP, index);
  return *device ? sim_after_fork() : SIM_INVALID_DEVICE;
}

abi_enum runtime_enter(const char *name, sim_device **device) {
  sim_call(name);
  *device = sim_current(SIM_HIP);
  if (!*device) *device = sim_device_at(SIM_HIP, 0);
  if (!*device) return SIM_INVALID_DEVICE; /* so answers the real one where there is none */
  sim_set_current(SIM_HIP, *device);
  sim_status status = sim_after_fork();
  return status == SIM_OK ? sim_device_health(*device) : status;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The runtime itself
 */

abi_enum hipInit(unsigned flags) {
  SIM_CALL();
  if (flags != 0) return runtime_leave(SIM_INVALID_VALUE);
  return runtime_leave(sim_device_count(SIM_HIP) ? SIM_OK : SIM_INVALID_DEVICE);
}

abi_enum hipDriverGetVersion(int *version) {
  SIM_CALL();
  if (!version) return runtime_leave(SIM_INVALID_VALUE);
  *version = HIP_VERSION;
  return SIM_OK;
}

abi_enum hipRuntimeGetVersion(int *version) {
  SIM_CALL();
  if (!version) return runtime_leave(SIM_INVALID_VALUE);
  *version = HIP_VERSION;
  return SIM_OK;
}

static const struct {
  abi_enum status;
  const char *name, *text;
} errors[] = {
    {SIM_OK, "hipSuccess", "no error"},
    {SIM_INVALID_VALUE, "hipErrorInvalidValue", "invalid argument"},
    {SIM_OUT_OF_MEMORY, "hipErrorOutOfMemory", "out of memory"},
    {SIM_NOT_INITIALIZED, "hipErrorNotInitialized", "initialization error"},
    {SIM_NO_DEVICE, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {SIM_INVALID_DEVICE, "hipErrorInvalidDevice", "invalid device ordinal"},
    {SIM_INVALID_IMAGE, "hipErrorInvalidImage", "device kernel image is invalid"},
    {SIM_INVALID_CONTEXT, "hipErrorInvalidContext", "invalid device context"},
    {SIM_NO_BINARY, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {SIM_PEER_UNSUPPORTED, "hipErrorPeerAccessUnsupported", "peer access is not supported between these two devices"},
    {SIM_INVALID_HANDLE, "hipErrorInvalidHandle", "invalid resource handle"},
    {SIM_NOT_FOUND, "hipErrorNotFound", "named symbol not found"},
    {SIM_NOT_READY, "hipErrorNotReady", "device not ready"},
    {SIM_ILLEGAL_ADDRESS, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {SIM_LAUNCH_RESOURCES, "hipErrorLaunchOutOfResources", "out of resources"},
    {SIM_PEER_ENABLED, "hipErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {SIM_LAUNCH_FAILED, "hipErrorLaunchFailure", "unspecified launch failure"},
    {SIM_CAPTURE_UNSUPPORTED, "hipErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
};

const char *hipGetErrorName(abi_enum status) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].status == status) return errors[i].name;
  return "hipErrorUnknown";
}

const char *hipGetErrorString(abi_enum status) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].status == status) return errors[i].text;
  return "unknown error";
}

abi_enum hipGetLastError(void) {
  abi_enum status = last_error;
  last_error = SIM_OK;
  return status;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Devices
 */

abi_enum hipGetDeviceCount(int *count) {
  SIM_CALL();
  if (!count) return runtime_leave(SIM_INVALID_VALUE);
  *count = sim_device_count(SIM_HIP);
  return runtime_leave(*count ? SIM_OK : SIM_NO_DEVICE);
}

abi_enum hipDeviceGetName(char *name, int size, int device) {
  sim_device *found;
  abi_enum status = runtime_enter_device(__func__, device, &found);
  if (status == SIM_OK && (!name || size <= 0)) status = SIM_INVALID_VALUE;
  if (status == SIM_OK) snprintf(name, (size_t)size, "%s", sim_device_name(found));
  return runtime_leave(status);
}

abi_enum hipDeviceGetPCIBusId(char *text, int size, int device) {
  sim_device *found;
  abi_enum status = runtime_enter_device(__func__, device, &found);
  if (status == SIM_OK && (!text || size <= (int)strlen("0000:00:00.0"))) status = SIM_INVALID_VALUE;
  if (status == SIM_OK) snprintf(text, (size_t)size, "0000:%02x:00.0", RUNTIME_FIRST_BUS + sim_device_slot(found));
  return runtime_leave(status);
}

abi_enum hipDeviceTotalMem(size_t *bytes, int device) {
  sim_device *found;
  abi_enum status = runtime_enter_device(__func__, device, &found);
  if (status == SIM_OK && !bytes) status = SIM_INVALID_VALUE;
  if (status == SIM_OK) *bytes = sim_setup()->memory;
  return runtime_leave(status);
}

/* "gfx90a" is version 9.0.a: what is before the last two digits, and the first of them. */
static void read_capability(int *major, int *minor) {
  const char *architecture = sim_setup()->architecture[SIM_HIP];
  char digits[16] = "";
  snprintf(digits, sizeof digits, "%.*s", (int)strcspn(architecture, ":") - 3, architecture + strlen("gfx"));
  size_t length = strlen(digits);
  *minor = length >= 3 ? digits[length - 2] - '0' : 0;
  if (length >= 3) digits[length - 2] = 0;
  *major = atoi(digits);
}

static bool read_limit(abi_enum attribute, int *value) {
  const sim_limits *most = sim_limits_of(SIM_HIP);
  switch (attribute) {
  case HIP_ABI_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    return *value = (int)most->threads_per_block, true;
  case HIP_ABI_ATTRIBUTE_MAX_BLOCK_DIM_X:
    return *value = (int)most->threads[0], true;
  case HIP_ABI_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    return *value = (int)most->threads[1], true;
  case HIP_ABI_ATTRIBUTE_MAX_BLOCK_DIM_Z:
    return *value = (int)most->threads[2], true;
  case HIP_ABI_ATTRIBUTE_MAX_GRID_DIM_X:
    return *value = (int)most->blocks[0], true;
  case HIP_ABI_ATTRIBUTE_MAX_GRID_DIM_Y:
    return *value = (int)most->blocks[1], true;
  case HIP_ABI_ATTRIBUTE_MAX_GRID_DIM_Z:
    return *value = (int)most->blocks[2], true;
  case HIP_ABI_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    return *value = (int)most->shared_per_block, true;
  default:
    return false;
  }
}

static bool read_attribute(const sim_device *device, abi_enum attribute, int *value) {
  int major, minor;
  read_capability(&major, &minor);
  switch (attribute) {
  case HIP_ABI_ATTRIBUTE_WARP_SIZE:
    return *value = sim_device_warp(device), true;
  case HIP_ABI_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return *value = 2, true;
  case HIP_ABI_ATTRIBUTE_INTEGRATED:
    return *value = sim_device_slot(device) == sim_setup()->integrated, true;
  case HIP_ABI_ATTRIBUTE_PCI_DEVICE_ID:
  case HIP_ABI_ATTRIBUTE_PCI_DOMAIN_ID:
  case HIP_ABI_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    return *value = 0, true;
  case HIP_ABI_ATTRIBUTE_PCI_BUS_ID:
    return *value = RUNTIME_FIRST_BUS + sim_device_slot(device), true;
  case HIP_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return *value = major, true;
  case HIP_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    return *value = minor, true;
  default:
    return read_limit(attribute, value);
  }
}

abi_enum hipDeviceGetAttribute(int *value, abi_enum attribute, int device) {
  sim_device *found;
  abi_enum status = runtime_enter_device(__func__, device, &found);
  if (status != SIM_OK) return runtime_leave(status);
  if (value && read_attribute(found, attribute, value)) return SIM_OK;
  fprintf(stderr, "gpusim: attribute %u of a HIP device is not known here\n", attribute);
  return runtime_leave(SIM_INVALID_VALUE);
}

/* Of the properties' two layouts only what nobody can read elsewhere, and what comes first, is filled in. */
static abi_enum write_properties(void *properties, const sim_device *device, size_t bytes, size_t offset) {
  if (!properties) return SIM_INVALID_VALUE;
  memset(properties, 0, bytes);
  snprintf(properties, 256, "%s", sim_device_name(device));
  snprintf((char *)properties + offset, HIP_ABI_ARCHITECTURE_BYTES, "%s", sim_setup()->architecture[SIM_HIP]);
  return SIM_OK;
}

abi_enum hipGetDeviceProperties(struct hipDeviceProp_t *properties, int device) {
  sim_device *found;
  abi_enum status = runtime_enter_device(__func__, device, &found);
  if (status == SIM_OK) status = write_properties(properties, found, 792, HIP_ABI_ARCHITECTURE_OFFSET);
  return runtime_leave(status);
}

abi_enum hipGetDevicePropertiesR0600(struct hipDeviceProp_tR0600 *properties, int device) {
  sim_device *found;
  abi_enum status = runtime_enter_device(__func__, device, &found);
  if (status == SIM_OK) status = write_properties(properties, found, 1472, HIP_ABI_ARCHITECTURE_OFFSET_R0600);
  return runtime_leave(status);
}

abi_enum hipDeviceCanAccessPeer(int *can, int device, int peer) {
  sim_device *one, *other;
  abi_enum status = runtime_enter_device(__func__, device, &one);
  if (status == SIM_OK) status = runtime_enter_device(__func__, peer, &other);
  if (status == SIM_OK && !can) status = SIM_INVALID_VALUE;
  if (status == SIM_OK) *can = one != other && sim_setup()->peer;
  return runtime_leave(status);
}

abi_enum hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  sim_device *device, *other;
  abi_enum status = runtime_enter(__func__, &device);
  if (status == SIM_OK) status = runtime_enter_device(__func__, peer, &other);
  if (status == SIM_OK && flags != 0) status = SIM_INVALID_VALUE;
  return runtime_leave(status == SIM_OK ? sim_enable_peer(device, other) : status);
}

abi_enum hipSetDevice(int device) {
  sim_device *found;
  abi_enum status = runtime_enter_device(__func__, device, &found);
  if (status == SIM_OK) sim_set_current(SIM_HIP, found);
  return runtime_leave(status);
}

abi_enum hipGetDevice(int *device) {
  sim_device *found;
  abi_enum status = runtime_enter(__func__, &found);
  if (!found) return runtime_leave(status);
  if (!device) return runtime_leave(SIM_INVALID_VALUE);
  *device = sim_device_index(found);
  return SIM_OK;
}

abi_enum hipThreadExchangeStreamCaptureMode(abi_enum *mode) {
  SIM_CALL();
  return runtime_leave(sim_capture_mode_exchange(mode));
}

abi_enum hipDeviceSynchronize(void) {
  sim_device *device;
  abi_enum status = runtime_enter(__func__, &device);
  return runtime_leave(status == SIM_OK ? sim_device_finish(device) : status);
}
