/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by cuBLAS. It counts columns first: the product of matrices that are stored row by row is asked
 * for as that of their transposes, which they are to it, in reverse order. */
#include "../gpu/libraries.h"

#include "../gpu/abi/cublas.h"
#include "driver.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct table {
  CUBLAS_FUNCTIONS(GPU_POINTER)
  CUBLAS_OPTIONAL_FUNCTIONS(GPU_POINTER)
} table;

#define GPU_TABLE table
static const gpu_symbol symbols[] = {CUBLAS_FUNCTIONS(GPU_SYMBOL)};
static const gpu_symbol optional_symbols[] = {CUBLAS_OPTIONAL_FUNCTIONS(GPU_SYMBOL)};

const vendor_library vendor_blas_library = {
    .title = "cuBLAS",
    .install = "install that of your driver's CUDA version (Debian: libcublas; conda: libcublas; pip: nvidia-cublas)",
};

static table cublas;
static bool is_open;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

/* What NVIDIA recommends. With a workspace of its own a handle gives the same numbers whatever other streams do. */
#define WORKSPACE        ((size_t)4 << 20)
#define WORKSPACE_HOPPER ((size_t)32 << 20)

struct vendor_blas {
  const helio_host *host;
  struct cublasContext *handle;
  pthread_mutex_t lock; /* of the mode, until the product is handed over */
  abi_enum mode;
  gpu_address workspace;
};

static bool open_library(const helio_host *host, char *reason, size_t size) {
  static const struct {
    int major;
    const char *name;
  } versions[] = {{13, "libcublas.so.13"}, {12, "libcublas.so.12"}, {11, "libcublas.so.11"}};
  const char *names[sizeof versions / sizeof versions[0] + 1] = {NULL};
  size_t count = 0;
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
    if (versions[i].major <= cuda_driver_version() / 1000) names[count++] = versions[i].name;
  }
  return gpu_vendor_library_open(host, names, symbols, sizeof symbols / sizeof symbols[0], optional_symbols,
                                 sizeof optional_symbols / sizeof optional_symbols[0], &cublas, reason, size);
}

bool vendor_blas_open(const helio_host *host, char *reason, size_t size) {
  pthread_mutex_lock(&open_lock);
  if (!is_open) is_open = open_library(host, reason, size);
  bool opened = is_open;
  pthread_mutex_unlock(&open_lock);
  return opened;
}

static const char *words(abi_enum status, char text[32]) {
  if (cublas.cublasGetStatusString != NULL) return cublas.cublasGetStatusString(status);
  snprintf(text, 32, "status %u", status);
  return text;
}

static helio_status fail(const vendor_blas *blas, abi_enum status, const char *call) {
  char text[32];
  return blas->host->fail(blas->host, HELIO_DEVICE_FAILURE, "cuBLAS: %s failed: %s", call, words(status, text));
}

vendor_blas *vendor_blas_create(const helio_host *host, char *reason, size_t size) {
  char text[32];
  vendor_blas *blas = host->allocate(host, sizeof *blas);
  if (blas == NULL) {
    snprintf(reason, size, "there is no memory for a handle");
    return NULL;
  }
  *blas = (vendor_blas){.host = host, .mode = CUBLAS_ABI_DEFAULT_MATH};
  abi_enum status = cublas.cublasCreate_v2(&blas->handle);
  if (status != 0) {
    snprintf(reason, size, "cublasCreate: %s", words(status, text));
    host->release(host, blas);
    return NULL;
  }
  pthread_mutex_init(&blas->lock, NULL);
  return blas;
}

helio_status vendor_blas_attach(vendor_blas *blas, const vendor_facts *facts, vendor_stream *stream) {
  size_t bytes = atoi(facts->architecture + strlen("sm_")) >= 90 ? WORKSPACE_HOPPER : WORKSPACE;
  vendor_result result = vendor_allocate(&blas->workspace, bytes);
  if (result != 0)
    return blas->host->fail(blas->host, vendor_is_out_of_memory(result) ? HELIO_OUT_OF_MEMORY : HELIO_DEVICE_FAILURE,
                            "cuBLAS: no workspace of %zu MiB: %s", bytes >> 20, vendor_result_text(result));
  abi_enum status = cublas.cublasSetStream_v2(blas->handle, (struct CUstream_st *)stream);
  if (status != 0) return fail(blas, status, "cublasSetStream");
  status = cublas.cublasSetWorkspace_v2(blas->handle, (void *)(uintptr_t)blas->workspace, bytes); /* after the stream */
  return status == 0 ? HELIO_OK : fail(blas, status, "cublasSetWorkspace");
}

void vendor_blas_destroy(vendor_blas *blas) {
  if (blas == NULL) return;
  (void)cublas.cublasDestroy_v2(blas->handle);
  if (blas->workspace != 0) (void)vendor_free(blas->workspace);
  pthread_mutex_destroy(&blas->lock);
  blas->host->release(blas->host, blas);
}

/* The library's number for a type; −1: it has none. */
static int type_of(uint32_t type) {
  switch (type) {
  case HELIO_FLOAT32:
    return CUBLAS_ABI_R_32F;
  case HELIO_FLOAT64:
    return CUBLAS_ABI_R_64F;
  case HELIO_FLOAT16:
    return CUBLAS_ABI_R_16F;
  case HELIO_BFLOAT16:
    return CUBLAS_ABI_R_16BF;
  default:
    return -1;
  }
}

bool vendor_blas_takes(const vendor_product *p) {
  return type_of(p->type) >= 0 && p->m > 0 && p->n > 0 && p->k > 0 && p->m <= INT_MAX && p->n <= INT_MAX &&
         p->k <= INT_MAX && p->batches <= INT_MAX;
}

/* Float32 in short formats only where that is allowed; halves are summed in float32 to the end. */
static abi_enum mode_for(const vendor_product *p) {
  if (p->type == HELIO_FLOAT32 && p->reduced_precision) return CUBLAS_ABI_TF32_TENSOR_OP_MATH;
  return CUBLAS_ABI_DEFAULT_MATH | CUBLAS_ABI_NO_REDUCED_PRECISION_REDUCTION;
}

/* Rows of a matrix as it is stored are so long. */
typedef struct lengths {
  abi_enum operation_a, operation_b;
  int m, n, k, a, b, batches;
} lengths;

static lengths lengths_of(const vendor_product *p) {
  return (lengths){.operation_a = p->transpose_a ? CUBLAS_ABI_OP_T : CUBLAS_ABI_OP_N,
                   .operation_b = p->transpose_b ? CUBLAS_ABI_OP_T : CUBLAS_ABI_OP_N,
                   .m = (int)p->m,
                   .n = (int)p->n,
                   .k = (int)p->k,
                   .a = (int)(p->transpose_a ? p->m : p->k),
                   .b = (int)(p->transpose_b ? p->k : p->n),
                   .batches = (int)p->batches};
}

static abi_enum multiply_float32(struct cublasContext *handle, const vendor_product *p, const void *a, const void *b,
                                 void *c) {
  const float one = 1, zero = 0;
  lengths l = lengths_of(p);
  if (p->batches == 1)
    return cublas.cublasSgemm_v2(handle, l.operation_b, l.operation_a, l.n, l.m, l.k, &one, b, l.b, a, l.a, &zero, c,
                                 l.n);
  return cublas.cublasSgemmStridedBatched(handle, l.operation_b, l.operation_a, l.n, l.m, l.k, &one, b, l.b, p->step_b,
                                          a, l.a, p->step_a, &zero, c, l.n, p->step_c, l.batches);
}

static abi_enum multiply_others(struct cublasContext *handle, const vendor_product *p, const void *a, const void *b,
                                void *c) {
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  lengths l = lengths_of(p);
  bool wide = p->type == HELIO_FLOAT64;
  abi_enum type = (abi_enum)type_of(p->type), compute = wide ? CUBLAS_ABI_COMPUTE_64F : CUBLAS_ABI_COMPUTE_32F;
  const void *alpha = wide ? (const void *)&wide_one : &one, *beta = wide ? (const void *)&wide_zero : &zero;
  return cublas.cublasGemmStridedBatchedEx(handle, l.operation_b, l.operation_a, l.n, l.m, l.k, alpha, b, type, l.b,
                                           p->step_b, a, type, l.a, p->step_a, beta, c, type, l.n, p->step_c, l.batches,
                                           compute, CUBLAS_ABI_GEMM_DEFAULT);
}

helio_status vendor_blas_multiply(vendor_blas *blas, const vendor_product *product, gpu_address a, gpu_address b,
                                  gpu_address c) {
  const void *from_a = (const void *)(uintptr_t)a, *from_b = (const void *)(uintptr_t)b;
  void *to = (void *)(uintptr_t)c;
  abi_enum mode = mode_for(product), status = 0;
  pthread_mutex_lock(&blas->lock);
  if (blas->mode != mode) status = cublas.cublasSetMathMode(blas->handle, mode);
  if (status == 0) blas->mode = mode;
  if (status == 0)
    status = product->type == HELIO_FLOAT32 ? multiply_float32(blas->handle, product, from_a, from_b, to)
                                            : multiply_others(blas->handle, product, from_a, from_b, to);
  pthread_mutex_unlock(&blas->lock);
  return status == 0 ? HELIO_OK : fail(blas, status, "a product of matrices");
}
