/* SPDX-License-Identifier: Apache-2.0 */
#include "abi.h"

#ifdef WITH_HIP_HEADER
#include <hip/hip_runtime_api.h>

#include "../../../../backends/gpu/abi/hip.h"

HIP_FUNCTIONS(SAME_FUNCTION)
HIP_OTHER_FUNCTIONS(SAME_FUNCTION)

/* Which of the two layouts the header has. */
#if HIP_VERSION_MAJOR >= 6
HIP_PROPERTIES_FUNCTION(SAME_FUNCTION)
SAME_VALUE(HIP_ABI_ARCHITECTURE_OFFSET_R0600, offsetof(struct hipDeviceProp_tR0600, gcnArchName))
#else
HIP_OLDER_PROPERTIES_FUNCTION(SAME_FUNCTION)
SAME_VALUE(HIP_ABI_ARCHITECTURE_OFFSET, offsetof(struct hipDeviceProp_t, gcnArchName))
#endif
SAME_VALUE(HIP_ABI_ARCHITECTURE_BYTES, sizeof((hipDeviceProp_t){0}.gcnArchName))
_Static_assert(sizeof(hipDeviceProp_t) <= HIP_ABI_PROPERTIES_BYTES, "the buffer for properties is too small");

SAME_VALUE(HIP_ABI_SUCCESS, hipSuccess)
SAME_VALUE(HIP_ABI_INVALID_VALUE, hipErrorInvalidValue)
SAME_VALUE(HIP_ABI_OUT_OF_MEMORY, hipErrorOutOfMemory)
SAME_VALUE(HIP_ABI_NOT_INITIALIZED, hipErrorNotInitialized)
SAME_VALUE(HIP_ABI_NO_DEVICE, hipErrorNoDevice)
SAME_VALUE(HIP_ABI_INVALID_DEVICE, hipErrorInvalidDevice)
SAME_VALUE(HIP_ABI_INVALID_IMAGE, hipErrorInvalidImage)
SAME_VALUE(HIP_ABI_INVALID_CONTEXT, hipErrorInvalidContext)
SAME_VALUE(HIP_ABI_NO_BINARY_FOR_GPU, hipErrorNoBinaryForGpu)
SAME_VALUE(HIP_ABI_PEER_ACCESS_UNSUPPORTED, hipErrorPeerAccessUnsupported)
SAME_VALUE(HIP_ABI_INVALID_HANDLE, hipErrorInvalidHandle)
SAME_VALUE(HIP_ABI_NOT_FOUND, hipErrorNotFound)
SAME_VALUE(HIP_ABI_NOT_READY, hipErrorNotReady)
SAME_VALUE(HIP_ABI_ILLEGAL_ADDRESS, hipErrorIllegalAddress)
SAME_VALUE(HIP_ABI_LAUNCH_OUT_OF_RESOURCES, hipErrorLaunchOutOfResources)
SAME_VALUE(HIP_ABI_PEER_ACCESS_ALREADY_ENABLED, hipErrorPeerAccessAlreadyEnabled)
SAME_VALUE(HIP_ABI_LAUNCH_FAILURE, hipErrorLaunchFailure)
SAME_VALUE(HIP_ABI_INVALID_CONFIGURATION, hipErrorInvalidConfiguration)
SAME_VALUE(HIP_ABI_INVALID_DEVICE_FUNCTION, hipErrorInvalidDeviceFunction)
SAME_VALUE(HIP_ABI_INVALID_KERNEL_FILE, hipErrorInvalidKernelFile)
SAME_VALUE(HIP_ABI_OPERATING_SYSTEM, hipErrorOperatingSystem)
SAME_VALUE(HIP_ABI_ILLEGAL_STATE, hipErrorIllegalState)
SAME_VALUE(HIP_ABI_COOPERATIVE_LAUNCH_TOO_LARGE, hipErrorCooperativeLaunchTooLarge)
SAME_VALUE(HIP_ABI_NOT_SUPPORTED, hipErrorNotSupported)
SAME_VALUE(HIP_ABI_STREAM_CAPTURE_UNSUPPORTED, hipErrorStreamCaptureUnsupported)
SAME_VALUE(HIP_ABI_UNKNOWN, hipErrorUnknown)

SAME_VALUE(HIP_ABI_ATTRIBUTE_INTEGRATED, hipDeviceAttributeIntegrated)
SAME_VALUE(HIP_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, hipDeviceAttributeComputeCapabilityMajor)
SAME_VALUE(HIP_ABI_ATTRIBUTE_MAX_BLOCK_DIM_X, hipDeviceAttributeMaxBlockDimX)
SAME_VALUE(HIP_ABI_ATTRIBUTE_MAX_BLOCK_DIM_Y, hipDeviceAttributeMaxBlockDimY)
SAME_VALUE(HIP_ABI_ATTRIBUTE_MAX_BLOCK_DIM_Z, hipDeviceAttributeMaxBlockDimZ)
SAME_VALUE(HIP_ABI_ATTRIBUTE_MAX_GRID_DIM_X, hipDeviceAttributeMaxGridDimX)
SAME_VALUE(HIP_ABI_ATTRIBUTE_MAX_GRID_DIM_Y, hipDeviceAttributeMaxGridDimY)
SAME_VALUE(HIP_ABI_ATTRIBUTE_MAX_GRID_DIM_Z, hipDeviceAttributeMaxGridDimZ)
SAME_VALUE(HIP_ABI_ATTRIBUTE_MAX_THREADS_PER_BLOCK, hipDeviceAttributeMaxThreadsPerBlock)
SAME_VALUE(HIP_ABI_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, hipDeviceAttributeComputeCapabilityMinor)
SAME_VALUE(HIP_ABI_ATTRIBUTE_MULTIPROCESSOR_COUNT, hipDeviceAttributeMultiprocessorCount)
SAME_VALUE(HIP_ABI_ATTRIBUTE_PCI_BUS_ID, hipDeviceAttributePciBusId)
SAME_VALUE(HIP_ABI_ATTRIBUTE_PCI_DEVICE_ID, hipDeviceAttributePciDeviceId)
SAME_VALUE(HIP_ABI_ATTRIBUTE_PCI_DOMAIN_ID, hipDeviceAttributePciDomainID)
SAME_VALUE(HIP_ABI_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, hipDeviceAttributeMaxSharedMemoryPerBlock)
SAME_VALUE(HIP_ABI_ATTRIBUTE_WARP_SIZE, hipDeviceAttributeWarpSize)
SAME_VALUE(HIP_ABI_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, hipDeviceAttributeMemoryPoolsSupported)

SAME_VALUE(HIP_ABI_STREAM_NON_BLOCKING, hipStreamNonBlocking)
SAME_VALUE(HIP_ABI_EVENT_BLOCKING_SYNC, hipEventBlockingSync)
SAME_VALUE(HIP_ABI_EVENT_DISABLE_TIMING, hipEventDisableTiming)
SAME_VALUE(HIP_ABI_HOST_MALLOC_PORTABLE, hipHostMallocPortable)
SAME_VALUE(HIP_ABI_HOST_TO_HOST, hipMemcpyHostToHost)
SAME_VALUE(HIP_ABI_HOST_TO_DEVICE, hipMemcpyHostToDevice)
SAME_VALUE(HIP_ABI_DEVICE_TO_HOST, hipMemcpyDeviceToHost)
SAME_VALUE(HIP_ABI_DEVICE_TO_DEVICE, hipMemcpyDeviceToDevice)
SAME_VALUE(HIP_ABI_DEFAULT, hipMemcpyDefault)

const abi_check hip_check = {"HIP", .version = {HIP_VERSION_MAJOR, HIP_VERSION_MINOR, HIP_VERSION_PATCH}};
#else
const abi_check hip_check = {"HIP", .absent = "configure found no hip/hip_runtime_api.h of ROCm"};
#endif
