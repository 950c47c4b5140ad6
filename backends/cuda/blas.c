/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by cuBLAS: what differs from rocBLAS. */
#include "../gpu/blas.h"

#include "driver.h"

#include <stdio.h>

#define GPU_TABLE blas_calls
static const gpu_symbol symbols[] = {CUBLAS_PRODUCT_FUNCTIONS(GPU_SYMBOL)};
static const gpu_symbol optional_symbols[] = {CUBLAS_OPTIONAL_FUNCTIONS(GPU_SYMBOL)};

const vendor_library vendor_blas_library = {
    .title = "cuBLAS",
    .install = "install that of your driver's CUDA version, or of CUDA 12 for GPUs before Turing (Debian: libcublas; "
               "conda: libcublas; pip: nvidia-cublas, for CUDA 12 nvidia-cublas-cu12)",
    .most_bytes = INT64_MAX,
    .most_rows = INT32_MAX,
};

/* Newest first, each with functions of its own: GPUs of one machine may need different ones. */
static struct version {
  int major;
  const char *name;
  gpu_opened opened;
  blas_calls call;
} versions[] = {{.major = 13, .name = "libcublas.so.13", .opened = GPU_NOT_OPENED},
                {.major = 12, .name = "libcublas.so.12", .opened = GPU_NOT_OPENED},
                {.major = 11, .name = "libcublas.so.11", .opened = GPU_NOT_OPENED}};
#define VERSIONS (sizeof versions / sizeof versions[0])

static bool open_version(const helio_host *host, struct version *version, char *reason, size_t size) {
  gpu_wanted wanted = {.names = (const char *const[]){version->name, NULL},
                       .symbols = symbols,
                       .symbol_count = sizeof symbols / sizeof symbols[0],
                       .optional = optional_symbols,
                       .optional_count = sizeof optional_symbols / sizeof optional_symbols[0],
                       .table = &version->call};
  return gpu_vendor_library_open(&version->opened, host, &wanted, reason, size);
}

const blas_calls *vendor_blas_calls(const helio_host *host, const vendor_facts *facts, char *reason, size_t size) {
  for (size_t i = 0; i < VERSIONS; i++) {
    if (versions[i].major > cuda_newest_version(facts)) continue;
    if (open_version(host, &versions[i], reason, size)) return &versions[i].call;
  }
  return NULL;
}

/* What NVIDIA recommends. With a workspace of its own a handle gives the same numbers whatever other streams do. */
size_t vendor_blas_workspace(const vendor_facts *facts) {
  return (size_t)(cuda_architecture(facts) >= 90 ? 32 : 4) << 20;
}

/* After the stream, with which the library's own comes back. */
abi_enum vendor_blas_give_workspace(const vendor_blas *blas) {
  return blas->call->cublasSetWorkspace_v2(blas->handle, (void *)(uintptr_t)blas->workspace, blas->workspace_bytes);
}

/* bfloat16 is refused before Volta, and before Maxwell all that is not float32 (cublasGemmStridedBatchedEx). */
bool vendor_blas_multiplies(const vendor_facts *facts, abi_enum type) {
  int architecture = cuda_architecture(facts);
  return type == BLAS_F32 || (architecture >= 50 && (type != BLAS_BF16 || architecture >= 70));
}

helio_status vendor_blas_meaning(abi_enum status) {
  switch (status) {
  case CUBLAS_ABI_ALLOC_FAILED:
    return HELIO_OUT_OF_MEMORY;
  case CUBLAS_ABI_INVALID_VALUE:
    return HELIO_INVALID_ARGUMENT;
  default: /* a launch that was refused, say; whatever it was, a device that is lost says so itself */
    return HELIO_NOT_SUPPORTED;
  }
}

const char *vendor_blas_words(const blas_calls *call, abi_enum status, char text[32]) {
  if (call->cublasGetStatusString != NULL) return call->cublasGetStatusString(status);
  snprintf(text, 32, "status %u", status);
  return text;
}

/* Float32 in short formats only where that is allowed; halves are summed in float32 to the end. */
abi_enum vendor_blas_mode(const vendor_product *p) {
  if (p->type == HELIO_FLOAT32 && p->reduced_precision) return CUBLAS_ABI_TF32_TENSOR_OP_MATH;
  return CUBLAS_ABI_DEFAULT_MATH | CUBLAS_ABI_NO_REDUCED_PRECISION_REDUCTION;
}

abi_enum vendor_blas_multiply_types(const vendor_blas *blas, const blas_product *p, const void *alpha,
                                    const void *beta) {
  abi_enum compute = p->type == BLAS_F64 ? CUBLAS_ABI_COMPUTE_64F : CUBLAS_ABI_COMPUTE_32F;
  return blas->call->cublasGemmStridedBatchedEx(
      blas->handle, p->operation_b, p->operation_a, p->n, p->m, p->k, alpha, p->b, p->type, p->row_b, p->step_b, p->a,
      p->type, p->row_a, p->step_a, beta, p->c, p->type, p->n, p->step_c, p->batches, compute, CUBLAS_ABI_GEMM_DEFAULT);
}
