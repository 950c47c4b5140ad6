/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS: libcublas.so.13 and its older brothers. Only the `_v2` names where there are two: the plain ones are the
 * calls of 2008, with other arguments. Matrices are column-major. */
#ifndef ABI_CUBLAS_H
#define ABI_CUBLAS_H

#include "common.h"

struct cublasContext;
struct CUstream_st;

enum {
  CUBLAS_ABI_NOT_INITIALIZED = 1,
  CUBLAS_ABI_INVALID_VALUE = 7,
  CUBLAS_ABI_EXECUTION_FAILED = 13,
  CUBLAS_ABI_INTERNAL_ERROR = 14
};
enum { CUBLAS_ABI_ALLOC_FAILED = 3, CUBLAS_ABI_ARCH_MISMATCH = 8, CUBLAS_ABI_NOT_SUPPORTED = 15 };
enum { CUBLAS_ABI_OP_N = 0, CUBLAS_ABI_OP_T = 1, CUBLAS_ABI_OP_C = 2 };
enum { CUBLAS_ABI_DEFAULT_MATH = 0, CUBLAS_ABI_TENSOR_OP_MATH = 1, CUBLAS_ABI_PEDANTIC_MATH = 2 };
enum { CUBLAS_ABI_TF32_TENSOR_OP_MATH = 3 };
enum { CUBLAS_ABI_NO_REDUCED_PRECISION_REDUCTION = 16 }; /* may be added to a mode */
enum { CUBLAS_ABI_GEMM_DEFAULT = -1 };

/* cudaDataType */
enum { CUBLAS_ABI_R_32F = 0, CUBLAS_ABI_R_64F = 1, CUBLAS_ABI_R_16F = 2, CUBLAS_ABI_R_16BF = 14 };

/* cublasComputeType_t, since CUDA 11 */
enum { CUBLAS_ABI_COMPUTE_32F = 68, CUBLAS_ABI_COMPUTE_32F_PEDANTIC = 69, CUBLAS_ABI_COMPUTE_64F = 70 };
enum { CUBLAS_ABI_COMPUTE_32F_FAST_16F = 74, CUBLAS_ABI_COMPUTE_32F_FAST_16BF = 75 };
enum { CUBLAS_ABI_COMPUTE_32F_FAST_TF32 = 77 };

/* Since 11.4. */
#define CUBLAS_OPTIONAL_FUNCTIONS(X) X(const char *, cublasGetStatusString, (abi_enum status))

/* cublasGemmAlgo_t has negative values: an int for the compiler. */
#define CUBLAS_PRODUCT_FUNCTIONS(X)                                                                                    \
  X(abi_enum, cublasCreate_v2, (struct cublasContext * *handle))                                                       \
  X(abi_enum, cublasDestroy_v2, (struct cublasContext * handle))                                                       \
  X(abi_enum, cublasSetStream_v2, (struct cublasContext * handle, struct CUstream_st * stream))                        \
  X(abi_enum, cublasSetWorkspace_v2, (struct cublasContext * handle, void *workspace, size_t bytes))                   \
  X(abi_enum, cublasSetMathMode, (struct cublasContext * handle, abi_enum mode))                                       \
  X(abi_enum, cublasSgemm_v2,                                                                                          \
    (struct cublasContext * handle, abi_enum transpose_a, abi_enum transpose_b, int m, int n, int k,                   \
     const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc))      \
  X(abi_enum, cublasSgemmStridedBatched,                                                                               \
    (struct cublasContext * handle, abi_enum transpose_a, abi_enum transpose_b, int m, int n, int k,                   \
     const float *alpha, const float *a, int lda, long long stride_a, const float *b, int ldb, long long stride_b,     \
     const float *beta, float *c, int ldc, long long stride_c, int batch))                                             \
  X(abi_enum, cublasGemmStridedBatchedEx,                                                                              \
    (struct cublasContext * handle, abi_enum transpose_a, abi_enum transpose_b, int m, int n, int k,                   \
     const void *alpha, const void *a, abi_enum type_a, int lda, long long stride_a, const void *b, abi_enum type_b,   \
     int ldb, long long stride_b, const void *beta, void *c, abi_enum type_c, int ldc, long long stride_c, int batch,  \
     abi_enum compute, int algorithm))

/* Nobody but tests calls these. */
#define CUBLAS_OTHER_FUNCTIONS(X)                                                                                      \
  X(abi_enum, cublasGetVersion_v2, (struct cublasContext * handle, int *version))                                      \
  X(abi_enum, cublasGemmEx,                                                                                            \
    (struct cublasContext * handle, abi_enum transpose_a, abi_enum transpose_b, int m, int n, int k,                   \
     const void *alpha, const void *a, abi_enum type_a, int lda, const void *b, abi_enum type_b, int ldb,              \
     const void *beta, void *c, abi_enum type_c, int ldc, abi_enum compute, int algorithm))

#define CUBLAS_FUNCTIONS(X)                                                                                            \
  CUBLAS_PRODUCT_FUNCTIONS(X)                                                                                          \
  CUBLAS_OTHER_FUNCTIONS(X)

#endif
