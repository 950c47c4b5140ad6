/* SPDX-License-Identifier: Apache-2.0 */
/* libMIOpen.so: handles, errors. */
#include "miopen_face.h"

static const char kind[] = "MIOpen handle";

abi_enum miopen_status(sim_status status) {
  switch (status) {
  case SIM_OK:
    return 0;
  case SIM_INVALID_HANDLE:
    return MIOPEN_ABI_BAD_PARM;
  case SIM_OUT_OF_MEMORY:
    return MIOPEN_ABI_ALLOC_FAILED;
  case SIM_NOT_SUPPORTED:
    return MIOPEN_ABI_UNSUPPORTED;
  default:
    return MIOPEN_ABI_UNKNOWN_ERROR;
  }
}

abi_enum miopen_enter(struct miopenHandle *handle, const char *name, sim_place *place) {
  if (!handle) return MIOPEN_ABI_BAD_PARM;
  sim_handle *entered;
  sim_status status = sim_handle_enter(SIM_HIP, handle, kind, &entered, &place->stream);
  if (status) return miopen_status(status);
  place->name = name;
  place->device = entered->object.device;
  return 0;
}

abi_enum miopenGetVersion(size_t *major, size_t *minor, size_t *patch) {
  SIM_CALL();
  if (major) *major = 3;
  if (minor) *minor = 3;
  if (patch) *patch = 0;
  return 0;
}

const char *miopenGetErrorString(abi_enum status) {
  static const char *const names[] = {
      "miopenStatusSuccess",        "miopenStatusNotInitialized", "miopenStatusInvalidValue",
      "miopenStatusBadParm",        "miopenStatusAllocFailed",    "miopenStatusInternalError",
      "miopenStatusNotImplemented", "miopenStatusUnknownError",   "miopenStatusUnsupportedOp"};
  return status < sizeof names / sizeof *names ? names[status] : "Unknown error status";
}

abi_enum miopenCreateWithStream(struct miopenHandle **handle, struct ihipStream_t *stream) {
  SIM_CALL();
  if (!handle) return MIOPEN_ABI_BAD_PARM;
  sim_device *device = sim_here(SIM_HIP);
  if (!device) return MIOPEN_ABI_UNKNOWN_ERROR;
  if (!sim_stream_of(device, stream)) return MIOPEN_ABI_BAD_PARM;
  if (sim_count(SIM_CREATION, device)) return MIOPEN_ABI_UNKNOWN_ERROR;
  *handle = sim_new(kind, sizeof **handle, device);
  (*handle)->handle.stream = stream;
  return 0;
}

abi_enum miopenDestroy(struct miopenHandle *handle) {
  SIM_CALL();
  if (!handle || !sim_check(handle, kind)) return MIOPEN_ABI_BAD_PARM;
  miopen_forget(handle);
  sim_delete(handle);
  return 0;
}

abi_enum miopenSetStream(struct miopenHandle *handle, struct ihipStream_t *stream) {
  SIM_CALL();
  if (!handle || !sim_check(handle, kind)) return MIOPEN_ABI_BAD_PARM;
  if (!sim_stream_of(handle->handle.object.device, stream)) return MIOPEN_ABI_BAD_PARM;
  handle->handle.stream = stream;
  return 0;
}

abi_enum miopen_one_and_zero(sim_type type, const void *alpha, const void *beta) {
  double alpha_value, beta_value;
  bool is_double = type == SIM_FLOAT64;
  if (!sim_scalar(alpha, is_double, "alpha", &alpha_value) || !sim_scalar(beta, is_double, "beta", &beta_value))
    return MIOPEN_ABI_BAD_PARM;
  if (alpha_value == 1 && beta_value == 0) return 0;
  sim_violation("alpha and beta", "only alpha 1 and beta 0 are supported, not %g and %g", alpha_value, beta_value);
  return MIOPEN_ABI_UNKNOWN_ERROR;
}
