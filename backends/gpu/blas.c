/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by cuBLAS and rocBLAS. */
#include "blas.h"

#include <limits.h>
#include <stdio.h>

#define NO_MODE ((abi_enum)-1)

/* Some versions of cuBLAS make batches the third dimension of a grid, which cannot be longer. */
#define BATCHES 65535

bool vendor_blas_open(const helio_host *host, const vendor_facts *facts, char *reason, size_t size) {
  return vendor_blas_calls(host, facts, reason, size) != NULL;
}

static helio_status fail(const vendor_blas *blas, abi_enum status, const char *call) {
  char text[32];
  return gpu_library_fail(blas->host, &vendor_blas_library, call, vendor_blas_meaning(status),
                          vendor_blas_words(blas->call, status, text));
}

/* The handle and its workspace. */
static helio_status make_handle(vendor_blas *blas, char *reason, size_t size) {
  char text[32];
  abi_enum status = blas->call->blas_create(&blas->handle);
  if (status != 0) {
    blas->handle = NULL;
    snprintf(reason, size, "a handle cannot be made: %s", vendor_blas_words(blas->call, status, text));
    return vendor_blas_meaning(status);
  }
  if (blas->workspace_bytes == 0) return HELIO_OK;
  vendor_result result = vendor_allocate(&blas->workspace, blas->workspace_bytes);
  if (result == 0) return HELIO_OK;
  blas->workspace = 0;
  snprintf(reason, size, "no workspace of %zu MiB: %s", blas->workspace_bytes >> 20, vendor_result_text(result));
  return gpu_status_of(result);
}

helio_status vendor_blas_create(const helio_host *host, const vendor_facts *facts, vendor_blas **result, char *reason,
                                size_t size) {
  const blas_calls *call = vendor_blas_calls(host, facts, reason, size);
  if (call == NULL) return HELIO_NOT_SUPPORTED;
  vendor_blas *blas = host->allocate(host, sizeof *blas);
  if (blas == NULL) {
    snprintf(reason, size, "there is no memory for a handle");
    return HELIO_OUT_OF_MEMORY;
  }
  *blas = (vendor_blas){.host = host, .call = call, .mode = NO_MODE, .workspace_bytes = vendor_blas_workspace(facts)};
  pthread_mutex_init(&blas->lock, NULL);
  helio_status status = make_handle(blas, reason, size);
  if (status == HELIO_OK)
    *result = blas;
  else
    vendor_blas_destroy(blas, false);
  return status;
}

helio_status vendor_blas_attach(vendor_blas *blas, vendor_stream *stream) {
  abi_enum status = blas->call->blas_set_stream(blas->handle, (struct blas_stream *)stream);
  if (status != 0) return fail(blas, status, "setting a stream");
  status = vendor_blas_give_workspace(blas);
  return status == 0 ? HELIO_OK : fail(blas, status, "setting a workspace");
}

void vendor_blas_destroy(vendor_blas *blas, bool lost) {
  if (blas == NULL) return;
  if (!lost && blas->handle != NULL) (void)blas->call->blas_destroy(blas->handle);
  if (!lost && blas->workspace != 0) (void)vendor_free(blas->workspace);
  pthread_mutex_destroy(&blas->lock);
  blas->host->release(blas->host, blas);
}

static bool type_of(uint32_t type, abi_enum *known) {
  switch (type) {
  case HELIO_FLOAT32:
    *known = BLAS_F32;
    return true;
  case HELIO_FLOAT64:
    *known = BLAS_F64;
    return true;
  case HELIO_FLOAT16:
    *known = BLAS_F16;
    return true;
  case HELIO_BFLOAT16:
    *known = BLAS_BF16;
    return true;
  default:
    return false;
  }
}

/* Of one array. */
static int64_t most_elements(const vendor_product *p) {
  return vendor_blas_library.most_bytes / (int64_t)call_type_size(p->type);
}

/* The matrix b, and all of a and the result if they cannot be cut between rows. */
static bool is_within_bounds(const vendor_product *p) {
  int64_t most = most_elements(p), rows = p->transpose_a ? p->m : 1;
  return rows <= vendor_blas_library.most_rows && p->k <= most / p->n && p->k <= most / rows && p->n <= most / rows;
}

bool vendor_blas_takes(const vendor_facts *facts, const vendor_product *p) {
  abi_enum type;
  return type_of(p->type, &type) && vendor_blas_multiplies(facts, type) && p->m > 0 && p->n > 0 && p->k > 0 &&
         p->m <= INT_MAX && p->n <= INT_MAX && p->k <= INT_MAX && is_within_bounds(p);
}

static blas_product describe(const vendor_product *p, gpu_address a, gpu_address b, gpu_address c) {
  blas_product told = {.operation_a = p->transpose_a ? BLAS_TRANSPOSED : BLAS_PLAIN,
                       .operation_b = p->transpose_b ? BLAS_TRANSPOSED : BLAS_PLAIN,
                       .m = (int)p->m,
                       .n = (int)p->n,
                       .k = (int)p->k,
                       .batches = (int)p->batches,
                       .row_a = (int)(p->transpose_a ? p->m : p->k),
                       .row_b = (int)(p->transpose_b ? p->k : p->n),
                       .step_a = p->step_a,
                       .step_b = p->step_b,
                       .step_c = p->step_c,
                       .a = (const void *)(uintptr_t)a,
                       .b = (const void *)(uintptr_t)b,
                       .c = (void *)(uintptr_t)c};
  (void)type_of(p->type, &told.type);
  return told;
}

static abi_enum multiply(const vendor_blas *blas, const blas_product *p) {
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  if (p->type == BLAS_F64) return vendor_blas_multiply_types(blas, p, &wide_one, &wide_zero);
  if (p->type != BLAS_F32) return vendor_blas_multiply_types(blas, p, &one, &zero);
  if (p->batches == 1)
    return blas->call->blas_multiply(blas->handle, p->operation_b, p->operation_a, p->n, p->m, p->k, &one, p->b,
                                     p->row_b, p->a, p->row_a, &zero, p->c, p->n);
  return blas->call->blas_multiply_batches(blas->handle, p->operation_b, p->operation_a, p->n, p->m, p->k, &one, p->b,
                                           p->row_b, p->step_b, p->a, p->row_a, p->step_a, &zero, p->c, p->n, p->step_c,
                                           p->batches);
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Rows of a transposed matrix are not one behind the other. */
static int64_t rows_at_once(const vendor_product *p) {
  int64_t most = most_elements(p) / larger(p->k, p->n);
  return p->transpose_a ? p->m : least(p->m, least(most, vendor_blas_library.most_rows));
}

static int64_t batches_at_once(const vendor_product *p) {
  int64_t step = larger(larger(p->step_a, p->step_b), larger(p->step_c, 1));
  return least(p->batches, least(BATCHES, larger(most_elements(p) / step, 1)));
}

/* In parts that are no larger than the library takes. */
static abi_enum multiply_parts(const vendor_blas *blas, const vendor_product *p, gpu_address a, gpu_address b,
                               gpu_address c) {
  size_t element = call_type_size(p->type);
  int64_t rows = rows_at_once(p), batches = rows < p->m ? 1 : batches_at_once(p);
  abi_enum status = 0;
  for (int64_t done = 0; done < p->batches && status == 0; done += batches) {
    for (int64_t row = 0; row < p->m && status == 0; row += rows) {
      vendor_product part = *p;
      part.batches = least(batches, p->batches - done);
      part.m = least(rows, p->m - row);
      blas_product told =
          describe(&part, a + (size_t)(done * p->step_a + row * p->k) * element,
                   b + (size_t)(done * p->step_b) * element, c + (size_t)(done * p->step_c + row * p->n) * element);
      status = multiply(blas, &told);
    }
  }
  return status;
}

helio_status vendor_blas_multiply(vendor_blas *blas, const vendor_product *product, gpu_address a, gpu_address b,
                                  gpu_address c) {
  abi_enum mode = vendor_blas_mode(product), status = 0;
  pthread_mutex_lock(&blas->lock);
  if (blas->mode != mode) status = blas->call->blas_set_mode(blas->handle, mode);
  if (status == 0) blas->mode = mode;
  if (status == 0) status = multiply_parts(blas, product, a, b, c);
  pthread_mutex_unlock(&blas->lock);
  return status == 0 ? HELIO_OK : fail(blas, status, "a product of matrices");
}
