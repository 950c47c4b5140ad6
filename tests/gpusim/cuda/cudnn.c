/* SPDX-License-Identifier: Apache-2.0 */
/* libcudnn.so: handles, errors. */
#include "cudnn_face.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char kind[] = "cuDNN handle";
static _Thread_local char last_error[256];

abi_enum cudnn_fail(abi_enum status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  return status;
}

abi_enum cudnn_status(sim_status status) {
  switch (status) {
  case SIM_OK:
    return 0;
  case SIM_INVALID_HANDLE:
    return cudnn_fail(CUDNN_ABI_BAD_PARAM, "a handle or stream that cannot be used here");
  case SIM_OUT_OF_MEMORY:
    return cudnn_fail(CUDNN_ABI_DEVICE_ALLOCATION_FAILED, "the device has no memory for it");
  case SIM_NOT_SUPPORTED:
    return cudnn_fail(CUDNN_ABI_NOT_SUPPORTED, "on demand");
  default:
    return cudnn_fail(CUDNN_ABI_EXECUTION_FAILED, "the device answered %d", (int)status);
  }
}

abi_enum cudnn_enter(struct cudnnContext *handle, const char *name, sim_place *place) {
  if (!handle) return cudnn_fail(CUDNN_ABI_BAD_PARAM, "the handle is NULL");
  sim_handle *entered;
  sim_status status = sim_handle_enter(SIM_CUDA, handle, kind, &entered, &place->stream);
  if (status) return cudnn_status(status);
  place->name = name;
  place->device = entered->object.device;
  return 0;
}

size_t cudnnGetVersion(void) {
  return 91900;
}

const char *cudnnGetErrorString(abi_enum status) {
  switch (status) {
  case 0:
    return "CUDNN_STATUS_SUCCESS";
  case CUDNN_ABI_NOT_INITIALIZED:
    return "CUDNN_STATUS_NOT_INITIALIZED";
  case CUDNN_ABI_BAD_PARAM:
    return "CUDNN_STATUS_BAD_PARAM";
  case CUDNN_ABI_NOT_SUPPORTED:
    return "CUDNN_STATUS_NOT_SUPPORTED";
  case CUDNN_ABI_INTERNAL_ERROR:
    return "CUDNN_STATUS_INTERNAL_ERROR";
  case CUDNN_ABI_DEVICE_ALLOCATION_FAILED:
    return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
  case CUDNN_ABI_EXECUTION_FAILED:
    return "CUDNN_STATUS_EXECUTION_FAILED";
  default:
    return "CUDNN_UNKNOWN_STATUS";
  }
}

void cudnnGetLastErrorString(char *message, size_t size) {
  if (message && size) snprintf(message, size, "%s", last_error);
}

abi_enum cudnnCreate(struct cudnnContext **handle) {
  SIM_CALL();
  if (!handle) return cudnn_fail(CUDNN_ABI_BAD_PARAM, "handle is NULL");
  sim_device *device = sim_current(SIM_CUDA);
  if (!device) {
    if (sim_device_at(SIM_CUDA, 0))
      sim_violation("no current context",
                    "no context is current: the handle would be of device 0, whichever was meant");
    return cudnn_fail(CUDNN_ABI_NOT_INITIALIZED, "there is no device");
  }
  if (sim_count(SIM_CREATION, device)) return cudnn_fail(CUDNN_ABI_NOT_INITIALIZED, "the device does not answer");
  *handle = sim_new(kind, sizeof **handle, device);
  return 0;
}

abi_enum cudnnDestroy(struct cudnnContext *handle) {
  SIM_CALL();
  if (!handle) return 0;
  if (!sim_check(handle, kind)) return cudnn_fail(CUDNN_ABI_BAD_PARAM, "no such handle");
  sim_delete(handle);
  return 0;
}

abi_enum cudnnSetStream(struct cudnnContext *handle, struct CUstream_st *stream) {
  SIM_CALL();
  if (!handle || !sim_check(handle, kind)) return cudnn_fail(CUDNN_ABI_BAD_PARAM, "no such handle");
  if (!sim_stream_of(handle->handle.object.device, stream))
    return cudnn_fail(CUDNN_ABI_BAD_PARAM, "a stream that the handle's device does not have");
  handle->handle.stream = stream;
  return 0;
}

abi_enum cudnn_scalars(sim_type type, const void *alpha, const void *beta, double *alpha_value, double *beta_value) {
  bool is_double = type == SIM_FLOAT64;
  if (!sim_scalar(alpha, is_double, "alpha", alpha_value) || !sim_scalar(beta, is_double, "beta", beta_value))
    return cudnn_fail(CUDNN_ABI_BAD_PARAM, "alpha and beta must point to numbers of the host");
  return 0;
}
