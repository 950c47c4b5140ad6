/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by rocBLAS. It counts columns first: the product of matrices that are stored row by row is asked
 * for as that of their transposes, which they are to it, in reverse order. */
#include "../gpu/libraries.h"

#include "../gpu/abi/rocblas.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>

typedef struct table {
  ROCBLAS_FUNCTIONS(GPU_POINTER)
} table;

#define GPU_TABLE table
static const gpu_symbol symbols[] = {ROCBLAS_FUNCTIONS(GPU_SYMBOL)};

const vendor_library vendor_blas_library = {
    .title = "rocBLAS",
    .install = "install that of your ROCm version (Debian: librocblas; AMD: rocblas)",
};

static table rocblas;
static bool is_open;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

struct vendor_blas {
  const helio_host *host;
  struct _rocblas_handle *handle;
  pthread_mutex_t lock; /* of the mode, until the product is handed over */
  abi_enum mode;
};

bool vendor_blas_open(const helio_host *host, char *reason, size_t size) {
  /* Of ROCm 7, 6, 5.6 and older ones. */
  static const char *const names[] = {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0", NULL};
  pthread_mutex_lock(&open_lock);
  if (!is_open)
    is_open = gpu_vendor_library_open(host, names, symbols, sizeof symbols / sizeof symbols[0], NULL, 0, &rocblas,
                                      reason, size);
  bool opened = is_open;
  pthread_mutex_unlock(&open_lock);
  return opened;
}

static helio_status fail(const vendor_blas *blas, abi_enum status, const char *call) {
  return blas->host->fail(blas->host, HELIO_DEVICE_FAILURE, "rocBLAS: %s failed: %s", call,
                          rocblas.rocblas_status_to_string(status));
}

vendor_blas *vendor_blas_create(const helio_host *host, char *reason, size_t size) {
  vendor_blas *blas = host->allocate(host, sizeof *blas);
  if (blas == NULL) {
    snprintf(reason, size, "there is no memory for a handle");
    return NULL;
  }
  *blas = (vendor_blas){.host = host, .mode = ROCBLAS_ABI_ATOMICS_NOT_ALLOWED};
  abi_enum status = rocblas.rocblas_create_handle(&blas->handle);
  if (status == 0) {
    status = rocblas.rocblas_set_atomics_mode(blas->handle, blas->mode);
    if (status != 0) (void)rocblas.rocblas_destroy_handle(blas->handle);
  }
  if (status != 0) {
    snprintf(reason, size, "rocblas_create_handle: %s", rocblas.rocblas_status_to_string(status));
    host->release(host, blas);
    return NULL;
  }
  pthread_mutex_init(&blas->lock, NULL);
  return blas;
}

/* Its workspace is its own: a handle that stays with its stream shares it with nobody. */
helio_status vendor_blas_attach(vendor_blas *blas, const vendor_facts *facts, vendor_stream *stream) {
  (void)facts;
  abi_enum status = rocblas.rocblas_set_stream(blas->handle, (struct ihipStream_t *)stream);
  return status == 0 ? HELIO_OK : fail(blas, status, "rocblas_set_stream");
}

void vendor_blas_destroy(vendor_blas *blas) {
  if (blas == NULL) return;
  (void)rocblas.rocblas_destroy_handle(blas->handle);
  pthread_mutex_destroy(&blas->lock);
  blas->host->release(blas->host, blas);
}

/* The library's number for a type; 0: it has none. */
static abi_enum type_of(uint32_t type) {
  switch (type) {
  case HELIO_FLOAT32:
    return ROCBLAS_ABI_F32;
  case HELIO_FLOAT64:
    return ROCBLAS_ABI_F64;
  case HELIO_FLOAT16:
    return ROCBLAS_ABI_F16;
  case HELIO_BFLOAT16:
    return ROCBLAS_ABI_BF16;
  default:
    return 0;
  }
}

bool vendor_blas_takes(const vendor_product *p) {
  return type_of(p->type) != 0 && p->m > 0 && p->n > 0 && p->k > 0 && p->m <= INT_MAX && p->n <= INT_MAX &&
         p->k <= INT_MAX && p->batches <= INT_MAX;
}

/* Rows of a matrix as it is stored are so long. */
typedef struct lengths {
  abi_enum operation_a, operation_b;
  int32_t m, n, k, a, b, batches;
} lengths;

static lengths lengths_of(const vendor_product *p) {
  return (lengths){.operation_a = p->transpose_a ? ROCBLAS_ABI_OPERATION_TRANSPOSE : ROCBLAS_ABI_OPERATION_NONE,
                   .operation_b = p->transpose_b ? ROCBLAS_ABI_OPERATION_TRANSPOSE : ROCBLAS_ABI_OPERATION_NONE,
                   .m = (int32_t)p->m,
                   .n = (int32_t)p->n,
                   .k = (int32_t)p->k,
                   .a = (int32_t)(p->transpose_a ? p->m : p->k),
                   .b = (int32_t)(p->transpose_b ? p->k : p->n),
                   .batches = (int32_t)p->batches};
}

static abi_enum multiply_float32(struct _rocblas_handle *handle, const vendor_product *p, const void *a, const void *b,
                                 void *c) {
  const float one = 1, zero = 0;
  lengths l = lengths_of(p);
  if (p->batches == 1)
    return rocblas.rocblas_sgemm(handle, l.operation_b, l.operation_a, l.n, l.m, l.k, &one, b, l.b, a, l.a, &zero, c,
                                 l.n);
  return rocblas.rocblas_sgemm_strided_batched(handle, l.operation_b, l.operation_a, l.n, l.m, l.k, &one, b, l.b,
                                               p->step_b, a, l.a, p->step_a, &zero, c, l.n, p->step_c, l.batches);
}

static abi_enum multiply_others(struct _rocblas_handle *handle, const vendor_product *p, const void *a, const void *b,
                                void *c) {
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  lengths l = lengths_of(p);
  bool wide = p->type == HELIO_FLOAT64;
  abi_enum type = type_of(p->type), compute = wide ? ROCBLAS_ABI_F64 : ROCBLAS_ABI_F32;
  const void *alpha = wide ? (const void *)&wide_one : &one, *beta = wide ? (const void *)&wide_zero : &zero;
  return rocblas.rocblas_gemm_strided_batched_ex(
      handle, l.operation_b, l.operation_a, l.n, l.m, l.k, alpha, b, type, l.b, p->step_b, a, type, l.a, p->step_a,
      beta, c, type, l.n, p->step_c, c, type, l.n, p->step_c, l.batches, compute, ROCBLAS_ABI_GEMM_STANDARD, 0, 0);
}

helio_status vendor_blas_multiply(vendor_blas *blas, const vendor_product *product, gpu_address a, gpu_address b,
                                  gpu_address c) {
  const void *from_a = (const void *)(uintptr_t)a, *from_b = (const void *)(uintptr_t)b;
  void *to = (void *)(uintptr_t)c;
  abi_enum mode = product->nondeterministic ? ROCBLAS_ABI_ATOMICS_ALLOWED : ROCBLAS_ABI_ATOMICS_NOT_ALLOWED;
  abi_enum status = 0;
  pthread_mutex_lock(&blas->lock);
  if (blas->mode != mode) status = rocblas.rocblas_set_atomics_mode(blas->handle, mode);
  if (status == 0) blas->mode = mode;
  if (status == 0)
    status = product->type == HELIO_FLOAT32 ? multiply_float32(blas->handle, product, from_a, from_b, to)
                                            : multiply_others(blas->handle, product, from_a, from_b, to);
  pthread_mutex_unlock(&blas->lock);
  return status == 0 ? HELIO_OK : fail(blas, status, "a product of matrices");
}
