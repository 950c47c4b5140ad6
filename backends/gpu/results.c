/* SPDX-License-Identifier: Apache-2.0 */
/* What the results of CUDA's driver and of HIP's runtime mean. The numbers of both are the same. */
#include "gpu.h"

#include "abi/cuda_driver.h"
#include "abi/hip.h"

#define SAME(name) _Static_assert((int)CUDA_ABI_##name == (int)HIP_ABI_##name, #name)
_Static_assert((int)CUDA_ABI_INVALID_PTX == (int)HIP_ABI_INVALID_KERNEL_FILE, "a bad image");
SAME(INVALID_VALUE);
SAME(OUT_OF_MEMORY);
SAME(NOT_INITIALIZED);
SAME(NO_DEVICE);
SAME(INVALID_DEVICE);
SAME(INVALID_IMAGE);
SAME(NO_BINARY_FOR_GPU);
SAME(PEER_ACCESS_UNSUPPORTED);
SAME(OPERATING_SYSTEM);
SAME(INVALID_HANDLE);
SAME(ILLEGAL_STATE);
SAME(NOT_FOUND);
SAME(NOT_READY);
SAME(LAUNCH_OUT_OF_RESOURCES);
SAME(COOPERATIVE_LAUNCH_TOO_LARGE);
SAME(NOT_SUPPORTED);
SAME(STREAM_CAPTURE_UNSUPPORTED);

/* Those that leave the device as it was: the call was refused, and others go on. All that is not listed here does not,
 * such as accesses to memory that is none, errors of the hardware, a kernel that ran too long: every later call fails
 * as well. So does what no list knows. */
static const struct {
  vendor_result result;
  helio_status status;
} refusals[] = {
    {CUDA_ABI_INVALID_VALUE, HELIO_INVALID_ARGUMENT},
    {CUDA_ABI_OUT_OF_MEMORY, HELIO_OUT_OF_MEMORY},
    {CUDA_ABI_NOT_INITIALIZED, HELIO_WRONG_STATE},
    {HIP_ABI_INVALID_CONFIGURATION, HELIO_INVALID_ARGUMENT},
    {CUDA_ABI_STUB_LIBRARY, HELIO_NO_DEVICE},
    {CUDA_ABI_DEVICE_UNAVAILABLE, HELIO_NO_DEVICE},
    {HIP_ABI_INVALID_DEVICE_FUNCTION, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_NO_DEVICE, HELIO_NO_DEVICE},
    {CUDA_ABI_INVALID_DEVICE, HELIO_NO_DEVICE},
    {CUDA_ABI_INVALID_IMAGE, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_NO_BINARY_FOR_GPU, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_PEER_ACCESS_UNSUPPORTED, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_INVALID_PTX, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_JIT_COMPILER_NOT_FOUND, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_UNSUPPORTED_PTX_VERSION, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_JIT_COMPILATION_DISABLED, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_OPERATING_SYSTEM, HELIO_OUT_OF_MEMORY}, /* of locked memory, say */
    {CUDA_ABI_INVALID_HANDLE, HELIO_INVALID_ARGUMENT},
    {CUDA_ABI_ILLEGAL_STATE, HELIO_WRONG_STATE},
    {CUDA_ABI_NOT_FOUND, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_NOT_READY, HELIO_NOT_READY},
    {CUDA_ABI_LAUNCH_OUT_OF_RESOURCES, HELIO_NOT_SUPPORTED}, /* it needs more registers than there are */
    {CUDA_ABI_TOO_MANY_PEERS, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_COOPERATIVE_LAUNCH_TOO_LARGE, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_NOT_PERMITTED, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_NOT_SUPPORTED, HELIO_NOT_SUPPORTED},
    {CUDA_ABI_SYSTEM_DRIVER_MISMATCH, HELIO_NO_DEVICE},
    {CUDA_ABI_STREAM_CAPTURE_UNSUPPORTED, HELIO_WRONG_STATE},
};

helio_status gpu_status_of(vendor_result result) {
  if (result == 0) return HELIO_OK;
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    if (refusals[i].result == result) return refusals[i].status;
  }
  return HELIO_DEVICE_FAILURE;
}
