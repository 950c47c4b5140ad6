/* SPDX-License-Identifier: Apache-2.0 */
/* rocBLAS by the names of gpu/blas.h. */
#ifndef HIP_BLAS_NAMES_H
#define HIP_BLAS_NAMES_H

#include "../gpu/abi/rocblas.h"

#define BLAS_FUNCTIONS ROCBLAS_PRODUCT_FUNCTIONS

#define blas_handle           _rocblas_handle
#define blas_stream           ihipStream_t
#define blas_create           rocblas_create_handle
#define blas_destroy          rocblas_destroy_handle
#define blas_set_stream       rocblas_set_stream
#define blas_set_mode         rocblas_set_atomics_mode
#define blas_multiply         rocblas_sgemm
#define blas_multiply_batches rocblas_sgemm_strided_batched

#define BLAS_PLAIN      ROCBLAS_ABI_OPERATION_NONE
#define BLAS_TRANSPOSED ROCBLAS_ABI_OPERATION_TRANSPOSE
#define BLAS_F32        ROCBLAS_ABI_F32
#define BLAS_F64        ROCBLAS_ABI_F64
#define BLAS_F16        ROCBLAS_ABI_F16
#define BLAS_BF16       ROCBLAS_ABI_BF16

#endif
