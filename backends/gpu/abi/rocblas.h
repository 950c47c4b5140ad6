/* SPDX-License-Identifier: Apache-2.0 */
/* rocBLAS: librocblas.so.4 and its brothers. Matrices are column-major. */
#ifndef ABI_ROCBLAS_H
#define ABI_ROCBLAS_H

#include "common.h"

struct _rocblas_handle;
struct ihipStream_t;

enum { ROCBLAS_ABI_INVALID_HANDLE = 1, ROCBLAS_ABI_NOT_IMPLEMENTED = 2, ROCBLAS_ABI_INVALID_POINTER = 3 };
enum { ROCBLAS_ABI_INVALID_SIZE = 4, ROCBLAS_ABI_MEMORY_ERROR = 5, ROCBLAS_ABI_INTERNAL_ERROR = 6 };
enum { ROCBLAS_ABI_INVALID_VALUE = 11, ROCBLAS_ABI_EXCLUDED_FROM_BUILD = 14, ROCBLAS_ABI_ARCH_MISMATCH = 15 };
enum { ROCBLAS_ABI_OPERATION_NONE = 111, ROCBLAS_ABI_OPERATION_TRANSPOSE = 112, ROCBLAS_ABI_OPERATION_CONJUGATE = 113 };
enum { ROCBLAS_ABI_F16 = 150, ROCBLAS_ABI_F32 = 151, ROCBLAS_ABI_F64 = 152, ROCBLAS_ABI_BF16 = 168 };
enum { ROCBLAS_ABI_ATOMICS_NOT_ALLOWED = 0, ROCBLAS_ABI_ATOMICS_ALLOWED = 1 };
enum { ROCBLAS_ABI_GEMM_STANDARD = 0 };

#define ROCBLAS_PRODUCT_FUNCTIONS(X)                                                                                   \
  X(abi_enum, rocblas_create_handle, (struct _rocblas_handle * *handle))                                               \
  X(abi_enum, rocblas_destroy_handle, (struct _rocblas_handle * handle))                                               \
  X(abi_enum, rocblas_set_stream, (struct _rocblas_handle * handle, struct ihipStream_t * stream))                     \
  X(abi_enum, rocblas_set_atomics_mode, (struct _rocblas_handle * handle, abi_enum mode))                              \
  X(const char *, rocblas_status_to_string, (abi_enum status))                                                         \
  X(abi_enum, rocblas_sgemm,                                                                                           \
    (struct _rocblas_handle * handle, abi_enum transpose_a, abi_enum transpose_b, int32_t m, int32_t n, int32_t k,     \
     const float *alpha, const float *a, int32_t lda, const float *b, int32_t ldb, const float *beta, float *c,        \
     int32_t ldc))                                                                                                     \
  X(abi_enum, rocblas_sgemm_strided_batched,                                                                           \
    (struct _rocblas_handle * handle, abi_enum transpose_a, abi_enum transpose_b, int32_t m, int32_t n, int32_t k,     \
     const float *alpha, const float *a, int32_t lda, int64_t stride_a, const float *b, int32_t ldb, int64_t stride_b, \
     const float *beta, float *c, int32_t ldc, int64_t stride_c, int32_t batch))                                       \
  X(abi_enum, rocblas_gemm_strided_batched_ex,                                                                         \
    (struct _rocblas_handle * handle, abi_enum transpose_a, abi_enum transpose_b, int32_t m, int32_t n, int32_t k,     \
     const void *alpha, const void *a, abi_enum type_a, int32_t lda, int64_t stride_a, const void *b, abi_enum type_b, \
     int32_t ldb, int64_t stride_b, const void *beta, const void *c, abi_enum type_c, int32_t ldc, int64_t stride_c,   \
     void *d, abi_enum type_d, int32_t ldd, int64_t stride_d, int32_t batch, abi_enum compute, abi_enum algorithm,     \
     int32_t solution, uint32_t flags))

/* Nobody but tests calls these. */
#define ROCBLAS_OTHER_FUNCTIONS(X)                                                                                     \
  X(abi_enum, rocblas_get_version_string, (char *text, size_t size))                                                   \
  X(abi_enum, rocblas_gemm_ex,                                                                                         \
    (struct _rocblas_handle * handle, abi_enum transpose_a, abi_enum transpose_b, int32_t m, int32_t n, int32_t k,     \
     const void *alpha, const void *a, abi_enum type_a, int32_t lda, const void *b, abi_enum type_b, int32_t ldb,      \
     const void *beta, const void *c, abi_enum type_c, int32_t ldc, void *d, abi_enum type_d, int32_t ldd,             \
     abi_enum compute, abi_enum algorithm, int32_t solution, uint32_t flags))

#define ROCBLAS_FUNCTIONS(X)                                                                                           \
  ROCBLAS_PRODUCT_FUNCTIONS(X)                                                                                         \
  ROCBLAS_OTHER_FUNCTIONS(X)

#endif
