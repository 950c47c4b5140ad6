/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS by the names of gpu/blas.h. */
#ifndef CUDA_BLAS_NAMES_H
#define CUDA_BLAS_NAMES_H

#include "../gpu/abi/cublas.h"

#define BLAS_FUNCTIONS(X) CUBLAS_PRODUCT_FUNCTIONS(X) CUBLAS_OPTIONAL_FUNCTIONS(X)

#define blas_handle           cublasContext
#define blas_stream           CUstream_st
#define blas_create           cublasCreate_v2
#define blas_destroy          cublasDestroy_v2
#define blas_set_stream       cublasSetStream_v2
#define blas_set_mode         cublasSetMathMode
#define blas_multiply         cublasSgemm_v2
#define blas_multiply_batches cublasSgemmStridedBatched

#define BLAS_PLAIN      CUBLAS_ABI_OP_N
#define BLAS_TRANSPOSED CUBLAS_ABI_OP_T
#define BLAS_F32        CUBLAS_ABI_R_32F
#define BLAS_F64        CUBLAS_ABI_R_64F
#define BLAS_F16        CUBLAS_ABI_R_16F
#define BLAS_BF16       CUBLAS_ABI_R_16BF

#endif
