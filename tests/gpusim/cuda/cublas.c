/* SPDX-License-Identifier: Apache-2.0 */
/* libcublas.so: products of matrices for CUDA, of version 13.1 or, with FACE_VERSION 12, of 12.1. */
#include "cublas.h"

#include "library.h"

#include <stdlib.h>
#include <string.h>

#define X(result, name, arguments) SIM_EXPORT result name arguments;
CUBLAS_FUNCTIONS(X)
CUBLAS_OPTIONAL_FUNCTIONS(X)
#undef X

static const char kind[] = "cuBLAS handle";

struct cublasContext {
  sim_handle handle;
  abi_enum math;
  void *workspace; /* NULL: the library's own */
  size_t workspace_bytes;
};

/* ---------------------------------------------------------------------------------------------------------------------
 * Handles
 */

static abi_enum failed(sim_status status) {
  switch (status) {
  case SIM_OK:
    return 0;
  case SIM_INVALID_HANDLE:
    return CUBLAS_ABI_NOT_INITIALIZED;
  case SIM_OUT_OF_MEMORY:
    return CUBLAS_ABI_ALLOC_FAILED;
  case SIM_NOT_SUPPORTED:
    return CUBLAS_ABI_NOT_SUPPORTED;
  default:
    return CUBLAS_ABI_EXECUTION_FAILED;
  }
}

static abi_enum enter(struct cublasContext *handle, sim_stream **stream) {
  sim_handle *entered;
  return handle ? failed(sim_handle_enter(SIM_CUDA, handle, kind, &entered, stream)) : CUBLAS_ABI_NOT_INITIALIZED;
}

/* The CUDA runtime in it starts only with a driver of its own major version or a newer one, and there is code for GPUs
 * from Turing on in version 13, from Maxwell on in version 12. */
enum { CUBLAS_DRIVER = FACE_VERSION * 1000, CUBLAS_OLDEST = FACE_VERSION < 13 ? 50 : 75 };

static int architecture(void) {
  return atoi(sim_setup()->architecture[SIM_CUDA] + strlen("sm_"));
}

static bool serves_device(void) {
  return architecture() >= CUBLAS_OLDEST;
}

abi_enum cublasCreate_v2(struct cublasContext **handle) {
  SIM_CALL();
  if (!handle) return CUBLAS_ABI_INVALID_VALUE;
  sim_device *device = sim_current(SIM_CUDA);
  if (!device) {
    sim_violation("no current context", "no context is current: the handle would be of device 0, whichever was meant");
    return CUBLAS_ABI_NOT_INITIALIZED;
  }
  if (sim_setup()->driver < CUBLAS_DRIVER || sim_count(SIM_CREATION, device)) return CUBLAS_ABI_NOT_INITIALIZED;
  if (!serves_device()) return CUBLAS_ABI_ARCH_MISMATCH;
  *handle = sim_new(kind, sizeof **handle, device);
  return 0;
}

abi_enum cublasDestroy_v2(struct cublasContext *handle) {
  SIM_CALL();
  if (!handle || !sim_check(handle, kind)) return CUBLAS_ABI_NOT_INITIALIZED;
  sim_delete(handle);
  return 0;
}

abi_enum cublasGetVersion_v2(struct cublasContext *handle, int *version) {
  SIM_CALL();
  if (!handle || !sim_check(handle, kind)) return CUBLAS_ABI_NOT_INITIALIZED;
  if (!version) return CUBLAS_ABI_INVALID_VALUE;
  *version = FACE_VERSION * 10000 + 100;
  return 0;
}

const char *cublasGetStatusString(abi_enum status) {
  switch (status) {
  case 0:
    return "success";
  case CUBLAS_ABI_NOT_INITIALIZED:
    return "the library was not initialized";
  case CUBLAS_ABI_ALLOC_FAILED:
    return "the resource allocation failed";
  case CUBLAS_ABI_INVALID_VALUE:
    return "an unsupported value or parameter was passed to the function";
  case CUBLAS_ABI_ARCH_MISMATCH:
    return "the device's architecture is not supported";
  case CUBLAS_ABI_EXECUTION_FAILED:
    return "the function failed to launch on the GPU";
  case CUBLAS_ABI_NOT_SUPPORTED:
    return "the functionality requested is not supported";
  default:
    return "unknown status";
  }
}

/* The library's own workspace is back in use then: it belongs to a stream. */
abi_enum cublasSetStream_v2(struct cublasContext *handle, struct CUstream_st *stream) {
  SIM_CALL();
  if (!handle || !sim_check(handle, kind)) return CUBLAS_ABI_NOT_INITIALIZED;
  if (!sim_stream_of(handle->handle.object.device, stream)) return CUBLAS_ABI_INVALID_VALUE;
  handle->handle.stream = stream;
  handle->workspace = NULL;
  handle->workspace_bytes = 0;
  return 0;
}

abi_enum cublasSetWorkspace_v2(struct cublasContext *handle, void *workspace, size_t bytes) {
  SIM_CALL();
  if (!handle || !sim_check(handle, kind)) return CUBLAS_ABI_NOT_INITIALIZED;
  if ((uintptr_t)workspace % 256) return CUBLAS_ABI_INVALID_VALUE;
  if (bytes && !sim_twin(handle->handle.object.device, workspace, bytes, "the workspace"))
    return CUBLAS_ABI_INVALID_VALUE;
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return 0;
}

abi_enum cublasSetMathMode(struct cublasContext *handle, abi_enum mode) {
  SIM_CALL();
  if (!handle || !sim_check(handle, kind)) return CUBLAS_ABI_NOT_INITIALIZED;
  mode &= ~(abi_enum)CUBLAS_ABI_NO_REDUCED_PRECISION_REDUCTION; /* there is none here */
  if (mode > CUBLAS_ABI_TF32_TENSOR_OP_MATH) return CUBLAS_ABI_INVALID_VALUE;
  handle->math = mode;
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Products
 */

/* So many batches all versions take. */
enum { BATCHES = 65535 };

static bool sizes_are_right(const sim_gemm *call) {
  int rows_a = call->transpose_a ? call->k : call->m, rows_b = call->transpose_b ? call->n : call->k;
  if (call->m < 0 || call->n < 0 || call->k < 0 || call->batch < 0 || call->batch > BATCHES) return false;
  return call->lda >= rows_a && call->ldb >= rows_b && call->ldc >= call->m && call->lda > 0 && call->ldb > 0 &&
         call->ldc > 0;
}

static abi_enum queue(const char *name, struct cublasContext *handle, abi_enum transpose_a, abi_enum transpose_b,
                      const void *alpha, const void *beta, sim_gemm *call) {
  sim_stream *stream;
  abi_enum status = enter(handle, &stream);
  if (status) return status;
  if (transpose_a > CUBLAS_ABI_OP_C || transpose_b > CUBLAS_ABI_OP_C) return CUBLAS_ABI_INVALID_VALUE;
  call->transpose_a = transpose_a != CUBLAS_ABI_OP_N;
  call->transpose_b = transpose_b != CUBLAS_ABI_OP_N;
  call->ldd = call->ldc;
  call->stride_d = call->stride_c;
  call->workspace = handle->workspace;
  call->workspace_bytes = handle->workspace_bytes;
  bool is_double = call->type_c == SIM_FLOAT64;
  if (!sizes_are_right(call) || !sim_scalar(alpha, is_double, "alpha", &call->alpha) ||
      !sim_scalar(beta, is_double, "beta", &call->beta))
    return CUBLAS_ABI_INVALID_VALUE;
  sim_device *device = handle->handle.object.device;
  sim_status fault = sim_count(SIM_LIBRARY, device);
  if (fault) return failed(fault);
  return failed(sim_gemm_queue(&(sim_place){name, device, stream}, call));
}

static sim_rounding rounding_of(const struct cublasContext *handle) {
  return handle && handle->math == CUBLAS_ABI_TF32_TENSOR_OP_MATH ? SIM_ROUND_TF32
         : handle && handle->math == CUBLAS_ABI_TENSOR_OP_MATH    ? SIM_ROUND_FLOAT16
                                                                  : SIM_EXACT;
}

abi_enum cublasSgemm_v2(struct cublasContext *handle, abi_enum transpose_a, abi_enum transpose_b, int m, int n, int k,
                        const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta,
                        float *c, int ldc) {
  SIM_CALL();
  sim_gemm call = {
      .m = m, .n = n, .k = k, .batch = 1, .lda = lda, .ldb = ldb, .ldc = ldc, .a = a, .b = b, .c = c, .d = c};
  call.rounding = rounding_of(handle);
  return queue(__func__, handle, transpose_a, transpose_b, alpha, beta, &call);
}

/* Results of a batch that overlap are undefined. */
static void check_batch(const sim_gemm *call) {
  if (call->batch > 1 && call->m > 0 && call->n > 0 && call->stride_c < (int64_t)call->ldc * (call->n - 1) + call->m)
    sim_violation("overlapping operands", "matrices of the result are %lld elements apart and overlap",
                  (long long)call->stride_c);
}

abi_enum cublasSgemmStridedBatched(struct cublasContext *handle, abi_enum transpose_a, abi_enum transpose_b, int m,
                                   int n, int k, const float *alpha, const float *a, int lda, long long stride_a,
                                   const float *b, int ldb, long long stride_b, const float *beta, float *c, int ldc,
                                   long long stride_c, int batch) {
  SIM_CALL();
  sim_gemm call = {.m = m, .n = n, .k = k, .lda = lda, .ldb = ldb, .ldc = ldc, .a = a, .b = b, .c = c, .d = c};
  call.batch = batch;
  call.stride_a = stride_a;
  call.stride_b = stride_b;
  call.stride_c = stride_c;
  call.rounding = rounding_of(handle);
  check_batch(&call);
  return queue(__func__, handle, transpose_a, transpose_b, alpha, beta, &call);
}

static sim_type type_of(abi_enum type) {
  switch (type) {
  case CUBLAS_ABI_R_32F:
    return SIM_FLOAT32;
  case CUBLAS_ABI_R_64F:
    return SIM_FLOAT64;
  case CUBLAS_ABI_R_16F:
    return SIM_FLOAT16;
  case CUBLAS_ABI_R_16BF:
    return SIM_BFLOAT16;
  default:
    return SIM_NO_TYPE;
  }
}

/* The combinations of types that the documentation lists, as far as we know the types. Before Volta bfloat16 is not. */
static bool types_are_supported(const sim_gemm *call, abi_enum compute) {
  if (call->type_a != call->type_b || call->type_a == SIM_NO_TYPE) return false;
  if (call->type_a == SIM_BFLOAT16 && architecture() < 70) return false;
  switch (compute) {
  case CUBLAS_ABI_COMPUTE_64F:
    return call->type_a == SIM_FLOAT64 && call->type_c == SIM_FLOAT64;
  case CUBLAS_ABI_COMPUTE_32F:
  case CUBLAS_ABI_COMPUTE_32F_PEDANTIC:
    return call->type_a != SIM_FLOAT64 && (call->type_c == call->type_a || call->type_c == SIM_FLOAT32);
  case CUBLAS_ABI_COMPUTE_32F_FAST_16F:
  case CUBLAS_ABI_COMPUTE_32F_FAST_16BF:
  case CUBLAS_ABI_COMPUTE_32F_FAST_TF32:
    return call->type_a == SIM_FLOAT32 && call->type_c == SIM_FLOAT32;
  default:
    return false;
  }
}

static sim_rounding rounding_by(const struct cublasContext *handle, abi_enum compute) {
  switch (compute) {
  case CUBLAS_ABI_COMPUTE_32F_FAST_16F:
    return SIM_ROUND_FLOAT16;
  case CUBLAS_ABI_COMPUTE_32F_FAST_16BF:
    return SIM_ROUND_BFLOAT16;
  case CUBLAS_ABI_COMPUTE_32F_FAST_TF32:
    return SIM_ROUND_TF32;
  case CUBLAS_ABI_COMPUTE_32F:
    return rounding_of(handle);
  default:
    return SIM_EXACT;
  }
}

static abi_enum queue_of_types(const char *name, struct cublasContext *handle, abi_enum transpose_a,
                               abi_enum transpose_b, const void *alpha, const void *beta, abi_enum compute,
                               int algorithm, sim_gemm *call) {
  if (handle && !sim_check(handle, kind)) return CUBLAS_ABI_NOT_INITIALIZED;
  if (algorithm < CUBLAS_ABI_GEMM_DEFAULT || !types_are_supported(call, compute)) return CUBLAS_ABI_NOT_SUPPORTED;
  /* Numbers of 16 bits are exact in each of the fast ways. */
  call->rounding = call->type_a == SIM_FLOAT32 ? rounding_by(handle, compute) : SIM_EXACT;
  return queue(name, handle, transpose_a, transpose_b, alpha, beta, call);
}

abi_enum cublasGemmEx(struct cublasContext *handle, abi_enum transpose_a, abi_enum transpose_b, int m, int n, int k,
                      const void *alpha, const void *a, abi_enum type_a, int lda, const void *b, abi_enum type_b,
                      int ldb, const void *beta, void *c, abi_enum type_c, int ldc, abi_enum compute, int algorithm) {
  SIM_CALL();
  sim_gemm call = {
      .m = m, .n = n, .k = k, .batch = 1, .lda = lda, .ldb = ldb, .ldc = ldc, .a = a, .b = b, .c = c, .d = c};
  call.type_a = type_of(type_a);
  call.type_b = type_of(type_b);
  call.type_c = type_of(type_c);
  return queue_of_types(__func__, handle, transpose_a, transpose_b, alpha, beta, compute, algorithm, &call);
}

abi_enum cublasGemmStridedBatchedEx(struct cublasContext *handle, abi_enum transpose_a, abi_enum transpose_b, int m,
                                    int n, int k, const void *alpha, const void *a, abi_enum type_a, int lda,
                                    long long stride_a, const void *b, abi_enum type_b, int ldb, long long stride_b,
                                    const void *beta, void *c, abi_enum type_c, int ldc, long long stride_c, int batch,
                                    abi_enum compute, int algorithm) {
  SIM_CALL();
  sim_gemm call = {
      .m = m, .n = n, .k = k, .batch = batch, .lda = lda, .ldb = ldb, .ldc = ldc, .a = a, .b = b, .c = c, .d = c};
  call.type_a = type_of(type_a);
  call.type_b = type_of(type_b);
  call.type_c = type_of(type_c);
  call.stride_a = stride_a;
  call.stride_b = stride_b;
  call.stride_c = stride_c;
  check_batch(&call);
  return queue_of_types(__func__, handle, transpose_a, transpose_b, alpha, beta, compute, algorithm, &call);
}
