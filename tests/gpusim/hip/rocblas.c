/* SPDX-License-Identifier: Apache-2.0 */
/* librocblas.so: products of matrices for HIP. */
#include "rocblas.h"

#include "library.h"

#include <string.h>

#define X(result, name, arguments) SIM_EXPORT result name arguments;
ROCBLAS_FUNCTIONS(X)
#undef X

static const char kind[] = "rocBLAS handle";
static const char version[] = "4.3.0.gpusim";

struct _rocblas_handle {
  sim_handle handle;
  bool deterministic; /* no atomic operations */
};

/* ---------------------------------------------------------------------------------------------------------------------
 * Handles
 */

static abi_enum failed(sim_status status) {
  switch (status) {
  case SIM_OK:
    return 0;
  case SIM_INVALID_HANDLE:
    return ROCBLAS_ABI_INVALID_HANDLE;
  case SIM_OUT_OF_MEMORY:
    return ROCBLAS_ABI_MEMORY_ERROR;
  case SIM_NOT_SUPPORTED:
    return ROCBLAS_ABI_NOT_IMPLEMENTED;
  default:
    return ROCBLAS_ABI_INTERNAL_ERROR;
  }
}

abi_enum rocblas_create_handle(struct _rocblas_handle **handle) {
  SIM_CALL();
  if (!handle) return ROCBLAS_ABI_INVALID_HANDLE;
  sim_device *device = sim_here(SIM_HIP);
  if (!device || sim_count(SIM_CREATION, device)) return ROCBLAS_ABI_INTERNAL_ERROR;
  *handle = sim_new(kind, sizeof **handle, device);
  return 0;
}

abi_enum rocblas_destroy_handle(struct _rocblas_handle *handle) {
  SIM_CALL();
  if (!handle || !sim_check(handle, kind)) return ROCBLAS_ABI_INVALID_HANDLE;
  sim_delete(handle);
  return 0;
}

abi_enum rocblas_set_stream(struct _rocblas_handle *handle, struct ihipStream_t *stream) {
  SIM_CALL();
  if (!handle || !sim_check(handle, kind)) return ROCBLAS_ABI_INVALID_HANDLE;
  if (!sim_stream_of(handle->handle.object.device, stream)) return ROCBLAS_ABI_INVALID_VALUE;
  handle->handle.stream = stream;
  return 0;
}

abi_enum rocblas_set_atomics_mode(struct _rocblas_handle *handle, abi_enum mode) {
  SIM_CALL();
  if (!handle || !sim_check(handle, kind)) return ROCBLAS_ABI_INVALID_HANDLE;
  if (mode > ROCBLAS_ABI_ATOMICS_ALLOWED) return ROCBLAS_ABI_INVALID_VALUE;
  handle->deterministic = mode == ROCBLAS_ABI_ATOMICS_NOT_ALLOWED;
  return 0;
}

const char *rocblas_status_to_string(abi_enum status) {
  static const char *const names[] = {
      "rocblas_status_success",         "rocblas_status_invalid_handle",     "rocblas_status_not_implemented",
      "rocblas_status_invalid_pointer", "rocblas_status_invalid_size",       "rocblas_status_memory_error",
      "rocblas_status_internal_error",  "rocblas_status_perf_degraded",      "rocblas_status_size_query_mismatch",
      "rocblas_status_size_increased",  "rocblas_status_size_unchanged",     "rocblas_status_invalid_value",
      "rocblas_status_continue",        "rocblas_status_check_numerics_fail"};
  return status < sizeof names / sizeof *names ? names[status] : "<undefined rocblas_status value>";
}

abi_enum rocblas_get_version_string(char *text, size_t size) {
  SIM_CALL();
  if (!text) return ROCBLAS_ABI_INVALID_POINTER;
  if (size < sizeof version) return ROCBLAS_ABI_INVALID_SIZE;
  memcpy(text, version, sizeof version);
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Products
 */

static bool is_operation(abi_enum value, bool *transpose) {
  *transpose = value != ROCBLAS_ABI_OPERATION_NONE;
  return value >= ROCBLAS_ABI_OPERATION_NONE && value <= ROCBLAS_ABI_OPERATION_CONJUGATE;
}

static bool sizes_are_right(const sim_gemm *call) {
  int rows_a = call->transpose_a ? call->k : call->m, rows_b = call->transpose_b ? call->n : call->k;
  if (call->m < 0 || call->n < 0 || call->k < 0 || call->batch < 0) return false;
  return call->lda >= rows_a && call->ldb >= rows_b && call->ldc >= call->m && call->ldd >= call->m;
}

/* Of what is larger, real kernels make wrong results, and tell nobody. */
static void check_counts(const sim_gemm *call) {
  int64_t columns_a = call->transpose_a ? call->m : call->k, columns_b = call->transpose_b ? call->k : call->n;
  int64_t a = call->lda * columns_a, b = call->ldb * columns_b, c = (int64_t)call->ldc * call->n;
  int64_t most = INT32_MAX / (call->type_c == SIM_FLOAT64 ? 8 : 4);
  if (call->n > 1 << 19 || a > most || b > most || c > most)
    sim_violation("product too large", "a result of %d by %d, of a depth of %d, is more than rocBLAS counts right",
                  call->m, call->n, call->k);
}

static abi_enum queue(const char *name, struct _rocblas_handle *handle, abi_enum transpose_a, abi_enum transpose_b,
                      const void *alpha, const void *beta, sim_gemm *call) {
  sim_stream *stream;
  sim_handle *entered;
  if (!handle) return ROCBLAS_ABI_INVALID_HANDLE;
  abi_enum status = failed(sim_handle_enter(SIM_HIP, handle, kind, &entered, &stream));
  if (status) return status;
  if (!is_operation(transpose_a, &call->transpose_a) || !is_operation(transpose_b, &call->transpose_b))
    return ROCBLAS_ABI_INVALID_VALUE;
  if (!sizes_are_right(call)) return ROCBLAS_ABI_INVALID_SIZE;
  if (!call->m || !call->n || !call->batch) return 0;
  bool is_double = call->type_c == SIM_FLOAT64;
  if (!sim_scalar(alpha, is_double, "alpha", &call->alpha) || !sim_scalar(beta, is_double, "beta", &call->beta))
    return ROCBLAS_ABI_INVALID_POINTER;
  bool needs_product = call->k && call->alpha != 0;
  if ((needs_product && (!call->a || !call->b)) || !call->c || !call->d) return ROCBLAS_ABI_INVALID_POINTER;
  check_counts(call);
  call->wobble = !handle->deterministic;
  call->handle = handle; /* who changes its stream has to wait for the old one, so the vendor documents it */
  sim_device *device = handle->handle.object.device;
  sim_status fault = sim_count(SIM_LIBRARY, device);
  if (fault) return failed(fault);
  return failed(sim_gemm_queue(&(sim_place){name, device, stream}, call));
}

abi_enum rocblas_sgemm(struct _rocblas_handle *handle, abi_enum transpose_a, abi_enum transpose_b, int32_t m, int32_t n,
                       int32_t k, const float *alpha, const float *a, int32_t lda, const float *b, int32_t ldb,
                       const float *beta, float *c, int32_t ldc) {
  SIM_CALL();
  sim_gemm call = {.m = m, .n = n, .k = k, .batch = 1, .lda = lda, .ldb = ldb, .ldc = ldc, .ldd = ldc};
  call.a = a;
  call.b = b;
  call.c = call.d = c;
  return queue(__func__, handle, transpose_a, transpose_b, alpha, beta, &call);
}

/* Results of a batch that overlap are undefined. */
static void check_batch(const sim_gemm *call) {
  if (call->batch > 1 && call->m > 0 && call->n > 0 && call->stride_d < (int64_t)call->ldd * (call->n - 1) + call->m)
    sim_violation("overlapping operands", "matrices of the result are %lld elements apart and overlap",
                  (long long)call->stride_d);
}

abi_enum rocblas_sgemm_strided_batched(struct _rocblas_handle *handle, abi_enum transpose_a, abi_enum transpose_b,
                                       int32_t m, int32_t n, int32_t k, const float *alpha, const float *a, int32_t lda,
                                       int64_t stride_a, const float *b, int32_t ldb, int64_t stride_b,
                                       const float *beta, float *c, int32_t ldc, int64_t stride_c, int32_t batch) {
  SIM_CALL();
  sim_gemm call = {.m = m, .n = n, .k = k, .batch = batch, .lda = lda, .ldb = ldb, .ldc = ldc, .ldd = ldc};
  call.a = a;
  call.b = b;
  call.c = call.d = c;
  call.stride_a = stride_a;
  call.stride_b = stride_b;
  call.stride_c = call.stride_d = stride_c;
  check_batch(&call);
  return queue(__func__, handle, transpose_a, transpose_b, alpha, beta, &call);
}

static sim_type type_of(abi_enum type) {
  switch (type) {
  case ROCBLAS_ABI_F16:
    return SIM_FLOAT16;
  case ROCBLAS_ABI_F32:
    return SIM_FLOAT32;
  case ROCBLAS_ABI_F64:
    return SIM_FLOAT64;
  case ROCBLAS_ABI_BF16:
    return SIM_BFLOAT16;
  default:
    return SIM_NO_TYPE;
  }
}

static bool types_are_supported(const sim_gemm *call, sim_type compute) {
  if (call->type_a != call->type_b || call->type_a == SIM_NO_TYPE) return false;
  if (compute == SIM_FLOAT64) return call->type_a == SIM_FLOAT64 && call->type_c == SIM_FLOAT64;
  if (compute != SIM_FLOAT32 || call->type_a == SIM_FLOAT64) return false;
  return call->type_c == call->type_a || call->type_c == SIM_FLOAT32;
}

abi_enum rocblas_gemm_ex(struct _rocblas_handle *handle, abi_enum transpose_a, abi_enum transpose_b, int32_t m,
                         int32_t n, int32_t k, const void *alpha, const void *a, abi_enum type_a, int32_t lda,
                         const void *b, abi_enum type_b, int32_t ldb, const void *beta, const void *c, abi_enum type_c,
                         int32_t ldc, void *d, abi_enum type_d, int32_t ldd, abi_enum compute, abi_enum algorithm,
                         int32_t solution, uint32_t flags) {
  SIM_CALL();
  (void)solution; /* reserved */
  sim_gemm call = {.m = m, .n = n, .k = k, .batch = 1, .lda = lda, .ldb = ldb, .ldc = ldc, .ldd = ldd};
  call.a = a;
  call.b = b;
  call.c = c;
  call.d = d;
  call.type_a = type_of(type_a);
  call.type_b = type_of(type_b);
  call.type_c = type_of(type_c);
  if (type_c != type_d || algorithm != ROCBLAS_ABI_GEMM_STANDARD || flags ||
      !types_are_supported(&call, type_of(compute)))
    return ROCBLAS_ABI_NOT_IMPLEMENTED;
  if (c == d && ldc != ldd) return ROCBLAS_ABI_INVALID_VALUE;
  return queue(__func__, handle, transpose_a, transpose_b, alpha, beta, &call);
}

abi_enum rocblas_gemm_strided_batched_ex(struct _rocblas_handle *handle, abi_enum transpose_a, abi_enum transpose_b,
                                         int32_t m, int32_t n, int32_t k, const void *alpha, const void *a,
                                         abi_enum type_a, int32_t lda, int64_t stride_a, const void *b, abi_enum type_b,
                                         int32_t ldb, int64_t stride_b, const void *beta, const void *c,
                                         abi_enum type_c, int32_t ldc, int64_t stride_c, void *d, abi_enum type_d,
                                         int32_t ldd, int64_t stride_d, int32_t batch, abi_enum compute,
                                         abi_enum algorithm, int32_t solution, uint32_t flags) {
  SIM_CALL();
  (void)solution; /* reserved */
  sim_gemm call = {.m = m, .n = n, .k = k, .batch = batch, .lda = lda, .ldb = ldb, .ldc = ldc, .ldd = ldd};
  call.a = a;
  call.b = b;
  call.c = c;
  call.d = d;
  call.stride_a = stride_a;
  call.stride_b = stride_b;
  call.stride_c = stride_c;
  call.stride_d = stride_d;
  call.type_a = type_of(type_a);
  call.type_b = type_of(type_b);
  call.type_c = type_of(type_c);
  if (type_c != type_d || algorithm != ROCBLAS_ABI_GEMM_STANDARD || flags ||
      !types_are_supported(&call, type_of(compute)))
    return ROCBLAS_ABI_NOT_IMPLEMENTED;
  if (c == d && (ldc != ldd || stride_c != stride_d)) return ROCBLAS_ABI_INVALID_VALUE;
  check_batch(&call);
  return queue(__func__, handle, transpose_a, transpose_b, alpha, beta, &call);
}
