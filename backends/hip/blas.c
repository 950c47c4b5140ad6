/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by rocBLAS: what differs from cuBLAS. */
#include "../gpu/blas.h"

#include "driver.h"
#include "tensile.h"

#include <stdio.h>

#define GPU_TABLE blas_calls
static const gpu_symbol symbols[] = {ROCBLAS_PRODUCT_FUNCTIONS(GPU_SYMBOL)};

/* Its kernels have offsets of 32 bits, and grids that are no longer than 65535 in their second dimension: more than 2¹⁹
 * rows come out wrong, without an error. */
const vendor_library vendor_blas_library = {
    .title = "rocBLAS",
    .install = "install that of your ROCm version (Debian: librocblas; AMD: rocblas)",
    .most_bytes = INT32_MAX,
    .most_rows = 1 << 18,
};

static blas_calls rocblas;
static gpu_opened opened = GPU_NOT_OPENED;

/* ROCm 5 has had two numbers; since then the library's is the runtime's less two. */
const blas_calls *vendor_blas_calls(const helio_host *host, const vendor_facts *facts, char *reason, size_t size) {
  static const char *const old[] = {"librocblas.so.3", "librocblas.so.0", NULL};
  char name[32];
  snprintf(name, sizeof name, "librocblas.so.%d", hip_runtime_major() - 2);
  const char *const own[] = {name, NULL};
  gpu_wanted wanted = {.names = hip_runtime_major() < 6 ? old : own,
                       .symbols = symbols,
                       .symbol_count = sizeof symbols / sizeof symbols[0],
                       .table = &rocblas};
  if (!gpu_vendor_library_open(&opened, host, &wanted, reason, size)) return NULL;
  return hip_tensile_serves(opened.library, facts->architecture, reason, size) ? &rocblas : NULL;
}

/* Its workspace is its own: a handle that stays with its stream shares it with nobody. */
size_t vendor_blas_workspace(const vendor_facts *facts) {
  (void)facts;
  return 0;
}

abi_enum vendor_blas_give_workspace(const vendor_blas *blas) {
  (void)blas;
  return 0;
}

/* What it has no kernel for on such a device it refuses when it is asked: then one of ours does it. */
bool vendor_blas_multiplies(const vendor_facts *facts, abi_enum type) {
  (void)facts, (void)type;
  return true;
}

helio_status vendor_blas_meaning(abi_enum status) {
  switch (status) {
  case ROCBLAS_ABI_MEMORY_ERROR:
    return HELIO_OUT_OF_MEMORY;
  case ROCBLAS_ABI_INVALID_HANDLE:
  case ROCBLAS_ABI_INVALID_POINTER:
  case ROCBLAS_ABI_INVALID_SIZE:
  case ROCBLAS_ABI_INVALID_VALUE:
    return HELIO_INVALID_ARGUMENT;
  default: /* whatever it was; a device that is lost says so itself */
    return HELIO_NOT_SUPPORTED;
  }
}

const char *vendor_blas_words(const blas_calls *call, abi_enum status, char text[32]) {
  (void)text;
  return call->rocblas_status_to_string(status);
}

abi_enum vendor_blas_mode(const vendor_product *product) {
  return product->nondeterministic ? ROCBLAS_ABI_ATOMICS_ALLOWED : ROCBLAS_ABI_ATOMICS_NOT_ALLOWED;
}

abi_enum vendor_blas_multiply_types(const vendor_blas *blas, const blas_product *p, const void *alpha,
                                    const void *beta) {
  abi_enum compute = p->type == BLAS_F64 ? ROCBLAS_ABI_F64 : ROCBLAS_ABI_F32;
  return blas->call->rocblas_gemm_strided_batched_ex(
      blas->handle, p->operation_b, p->operation_a, p->n, p->m, p->k, alpha, p->b, p->type, p->row_b, p->step_b, p->a,
      p->type, p->row_a, p->step_a, beta, p->c, p->type, p->n, p->step_c, p->c, p->type, p->n, p->step_c, p->batches,
      compute, ROCBLAS_ABI_GEMM_STANDARD, 0, 0);
}
