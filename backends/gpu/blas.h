/* SPDX-License-Identifier: Apache-2.0 */
/* What blas.c of this folder and that of each vendor's share. cuBLAS and rocBLAS have nearly the same functions under
 * other names: blas_names.h of the vendor's folder gives them the names that are used here. */
#ifndef GPU_BLAS_H
#define GPU_BLAS_H

#include "blas_names.h"
#include "libraries.h"

typedef struct blas_calls {
  BLAS_FUNCTIONS(GPU_POINTER)
} blas_calls;

struct vendor_blas {
  const helio_host *host;
  const blas_calls *call;
  struct blas_handle *handle;
  pthread_mutex_t lock;  /* of the mode, until the product is handed over */
  abi_enum mode;         /* that the handle was told last */
  gpu_address workspace; /* 0: the library has its own */
  size_t workspace_bytes;
};

/* A product as the libraries want it told. They count columns first: the product of matrices that are stored row by row
 * is asked for as that of their transposes, which they are to it, in reverse order. */
typedef struct blas_product {
  abi_enum type, operation_a, operation_b;
  int m, n, k, batches;
  int row_a, row_b; /* elements of a row as it is stored */
  int64_t step_a, step_b, step_c;
  const void *a, *b;
  void *c;
} blas_product;

/* --- blas.c of each vendor --- */

/* The functions of the library that serves such a device, opened when first asked for: NULL, with the reason, if there
 * is none. */
const blas_calls *vendor_blas_calls(const helio_host *host, const vendor_facts *facts, char *reason, size_t size);

/* Bytes of device memory that a handle wants on such a device, and how it is told of them once it has a stream. */
size_t vendor_blas_workspace(const vendor_facts *facts);
abi_enum vendor_blas_give_workspace(const vendor_blas *blas);

/* Whether the library multiplies numbers of this type on such a device. */
bool vendor_blas_multiplies(const vendor_facts *facts, abi_enum type);

/* What a status means, and the library's own words for it, or its number in `text`. */
helio_status vendor_blas_meaning(abi_enum status);
const char *vendor_blas_words(const blas_calls *call, abi_enum status, char text[32]);

/* What the handle must be told by blas_set_mode before such a product. */
abi_enum vendor_blas_mode(const vendor_product *product);

/* A product of other types than float32. It is computed in float64 if it is of that, else in float32, of which alpha
 * and beta are. */
abi_enum vendor_blas_multiply_types(const vendor_blas *blas, const blas_product *p, const void *alpha,
                                    const void *beta);

#endif
