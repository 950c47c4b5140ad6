/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS, found and opened at run time. */
#ifndef CPU_BLAS_H
#define CPU_BLAS_H

#include <helio/plugin.h>

#include "vector.h"

/* The part of cblas.h that is used. Values and types are facts of the BLAS standard. */
enum { CPU_BLAS_ROW_MAJOR = 101, CPU_BLAS_NO_TRANSPOSE = 111, CPU_BLAS_TRANSPOSE = 112 };

typedef void cpu_blas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void cpu_blas_dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                            const double *a, int lda, const double *b, int ldb, double beta, double *c, int ldc);

typedef struct cpu_blas {
  cpu_blas_sgemm *sgemm; /* NULL: there is no usable OpenBLAS, the backend's own product is taken */
  cpu_blas_dgemm *dgemm;
  void (*set_threads)(int);
  int threads_before; /* what finish() restores; 0: the library is ours alone */
  char version[48];   /* "OpenBLAS 0.3.21" */
  char core[32];      /* which of its kernels it uses: "SkylakeX" */
  char library[256];  /* the file */
} cpu_blas;

/* Opens the library that HELIO_CPU_BLAS names, or else searches for one. Finding none is no error: it is said by a
 * warning. That the library which was asked for cannot be used is one. `isa` chooses OpenBLAS's kernels. */
helio_status cpu_blas_open(const helio_host *host, cpu_isa isa, bool isa_forced, const char *vendor, cpu_blas *blas);
void cpu_blas_close(cpu_blas *blas);

/* c = a × b, or c += a × b, in float32 or float64, on the calling thread. All extents and strides fit an int. */
void cpu_blas_multiply(const cpu_blas *blas, helio_type type, const cpu_product *product);

#endif
