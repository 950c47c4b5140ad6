/* SPDX-License-Identifier: Apache-2.0 */
#include "abi.h"

#ifdef WITH_ROCBLAS_HEADER
#include <rocblas/rocblas.h>

#include "../../../../backends/gpu/abi/rocblas.h"

ROCBLAS_FUNCTIONS(SAME_FUNCTION)

SAME_VALUE(ROCBLAS_ABI_INVALID_HANDLE, rocblas_status_invalid_handle)
SAME_VALUE(ROCBLAS_ABI_NOT_IMPLEMENTED, rocblas_status_not_implemented)
SAME_VALUE(ROCBLAS_ABI_INVALID_POINTER, rocblas_status_invalid_pointer)
SAME_VALUE(ROCBLAS_ABI_INVALID_SIZE, rocblas_status_invalid_size)
SAME_VALUE(ROCBLAS_ABI_MEMORY_ERROR, rocblas_status_memory_error)
SAME_VALUE(ROCBLAS_ABI_INTERNAL_ERROR, rocblas_status_internal_error)
SAME_VALUE(ROCBLAS_ABI_INVALID_VALUE, rocblas_status_invalid_value)
SAME_VALUE(ROCBLAS_ABI_EXCLUDED_FROM_BUILD, rocblas_status_excluded_from_build)
SAME_VALUE(ROCBLAS_ABI_ARCH_MISMATCH, rocblas_status_arch_mismatch)
SAME_VALUE(ROCBLAS_ABI_OPERATION_NONE, rocblas_operation_none)
SAME_VALUE(ROCBLAS_ABI_OPERATION_TRANSPOSE, rocblas_operation_transpose)
SAME_VALUE(ROCBLAS_ABI_OPERATION_CONJUGATE, rocblas_operation_conjugate_transpose)
SAME_VALUE(ROCBLAS_ABI_F16, rocblas_datatype_f16_r)
SAME_VALUE(ROCBLAS_ABI_F32, rocblas_datatype_f32_r)
SAME_VALUE(ROCBLAS_ABI_F64, rocblas_datatype_f64_r)
SAME_VALUE(ROCBLAS_ABI_BF16, rocblas_datatype_bf16_r)
SAME_VALUE(ROCBLAS_ABI_ATOMICS_NOT_ALLOWED, rocblas_atomics_not_allowed)
SAME_VALUE(ROCBLAS_ABI_ATOMICS_ALLOWED, rocblas_atomics_allowed)
SAME_VALUE(ROCBLAS_ABI_GEMM_STANDARD, rocblas_gemm_algo_standard)

const abi_check rocblas_check = {"rocBLAS",
                                 .version = {ROCBLAS_VERSION_MAJOR, ROCBLAS_VERSION_MINOR, ROCBLAS_VERSION_PATCH}};
#else
const abi_check rocblas_check = {"rocBLAS", .absent = "configure found no rocblas/rocblas.h of ROCm"};
#endif
