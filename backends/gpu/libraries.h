/* SPDX-License-Identifier: Apache-2.0 */
/* The vendors' libraries for products of matrices (cuBLAS, rocBLAS) and for convolutions (cuDNN, MIOpen) as the shared
 * files see them. They are opened when first needed; where one is missing, or does not work with the driver, that is
 * told once and kernels of our own do its work.
 *
 * A library's handle works on one stream at a time, so each stream has its own. The first one is made with the first
 * plan that needs it: that of cuBLAS and rocBLAS waits there for a stream, that of cuDNN and MIOpen answers what plans
 * ask and serves the first stream as well. Plans know no streams, so that another stream makes its own in its first
 * run. A helio_status that is none of HELIO_OK was told by the
 * host's fail(). The device must be the thread's current one. */
#ifndef GPU_LIBRARIES_H
#define GPU_LIBRARIES_H

#include "gpu.h"
#include "library.h"

#include <pthread.h>
#include <stdatomic.h>

/* How messages name a library, what they tell the user to do without it, and how far its kernels count right. */
typedef struct vendor_library {
  const char *title;   /* "cuBLAS" */
  const char *install; /* "install NVIDIA's package libcublas, or …" */
  int64_t most_bytes;  /* of an array */
  int64_t most_rows;   /* of the result of one product */
} vendor_library;
extern const vendor_library vendor_blas_library, vendor_dnn_library;

/* What is wanted of a library. */
typedef struct gpu_wanted {
  const char *const *names;             /* the first that is found; the last one NULL */
  const char *const *parts;             /* NULL, or without which it is of no use, see gpu_library_open_parts */
  const gpu_symbol *symbols, *optional; /* of the optional ones those that it lacks stay NULL */
  size_t symbol_count, optional_count;
  void *table;
} gpu_wanted;

/* A library that is opened once for the process. */
typedef struct gpu_opened {
  pthread_mutex_t lock;
  void *library; /* NULL: not yet */
} gpu_opened;
#define GPU_NOT_OPENED                                                                                                 \
  { .lock = PTHREAD_MUTEX_INITIALIZER }

/* Opens it and fills the table, unless that was done: false, with what is missing in `reason`. */
bool gpu_vendor_library_open(gpu_opened *opened, const helio_host *host, const gpu_wanted *wanted, char *reason,
                             size_t size);

/* Tells a failed call of a library, `words` being the library's own. The status is what the library's number means,
 * unless the device itself says that it is lost, which libraries have many names for. */
helio_status gpu_library_fail(const helio_host *host, const vendor_library *library, const char *call,
                              helio_status meaning, const char *words);

/* --- blas.c, of this folder and of each vendor --- */

/* A product of matrices that are stored row by row: c = a × b, each a batch of matrices so many elements apart. An
 * operand that is the same for all has the step 0. */
typedef struct vendor_product {
  uint32_t type; /* helio_type: one of the floats */
  bool transpose_a, transpose_b;
  bool reduced_precision, nondeterministic; /* allowed, see HELIO_ALLOWED_… */
  int64_t m, n, k, batches;
  int64_t step_a, step_b, step_c;
} vendor_product;

/* Opens the library that serves such a device, once for the process: false, with what is missing in `reason`. */
bool vendor_blas_open(const helio_host *host, const vendor_facts *facts, char *reason, size_t size);

/* A handle that works on no stream yet, with the workspace in device memory that it may want; or a status with the
 * reason, which nobody is told of. Attached, it works on that stream until it is destroyed. Of a lost device only the
 * host's part is freed: the library is not called any more. */
helio_status vendor_blas_create(const helio_host *host, const vendor_facts *facts, vendor_blas **blas, char *reason,
                                size_t size);
helio_status vendor_blas_attach(vendor_blas *blas, vendor_stream *stream);
void vendor_blas_destroy(vendor_blas *blas, bool lost); /* NULL: nothing */

/* Whether the library takes such a product: it counts in int. */
bool vendor_blas_takes(const vendor_facts *facts, const vendor_product *product);

/* Hands the product to the handle's stream. */
helio_status vendor_blas_multiply(vendor_blas *blas, const vendor_product *product, gpu_address a, gpu_address b,
                                  gpu_address c);

/* --- dnn.c of each vendor --- */

/* What a convolution is asked for. */
typedef enum vendor_direction {
  VENDOR_CONVOLVE,             /* y of x and the kernel */
  VENDOR_CONVOLVE_GRAD_INPUT,  /* dx of dy and the kernel */
  VENDOR_CONVOLVE_GRAD_KERNEL, /* the kernel's gradient of x and dy */
} vendor_direction;

/* Images lie as (image, height, width, channel), kernels as (output channel, height, width, channel of the group). */
typedef struct vendor_convolution {
  uint32_t type; /* helio_type: one of the floats */
  vendor_direction direction;
  bool reduced_precision, nondeterministic; /* allowed, see HELIO_ALLOWED_… */
  int images, groups;
  int height, width, channels;             /* of x */
  int out_height, out_width, out_channels; /* of y */
  int kernel[2], padding[2], stride[2], dilation[2];
  size_t workspace_limit;
} vendor_convolution;

typedef struct vendor_way
    vendor_way; /* how a library does one convolution: what it wants described, and which algorithm */

bool vendor_dnn_open(const helio_host *host, char *reason, size_t size);

/* A handle, good for questions; or a status with the reason, which nobody is told of. Attached, it works on that
 * stream; NULL: on none any more. Of a lost device only the host's part is freed. */
helio_status vendor_dnn_create(const helio_host *host, vendor_dnn **dnn, char *reason, size_t size);
helio_status vendor_dnn_attach(vendor_dnn *dnn, vendor_stream *stream);
void vendor_dnn_destroy(vendor_dnn *dnn, bool lost); /* NULL: nothing */

/* Asks the library how it would do it, and has it prepare that for this handle. *way is NULL if it cannot: that is no
 * failure, and *words is what the library says, NULL if it has ways, but none within the limits. May compile, and
 * blocks then. */
helio_status vendor_dnn_find(vendor_dnn *dnn, const vendor_convolution *convolution, vendor_way **way,
                             size_t *workspace, const char **words);
void vendor_way_free(vendor_way *way); /* NULL: nothing */

/* Hands the convolution to the handle's stream. Another handle than the one that found the way may have to prepare it
 * first, and blocks then. */
helio_status vendor_dnn_convolve(vendor_dnn *dnn, vendor_way *way, gpu_address x, gpu_address kernel, gpu_address y,
                                 gpu_address workspace);

/* --- libraries.c --- */

/* Whether the device has the library of products, and it works: there is a handle then. The first time that it is asked
 * and the answer is no, a warning is logged. Where only memory is short there is no answer, but HELIO_OUT_OF_MEMORY. */
helio_status gpu_blas_find(helio_backend_device *device, bool *present);

/* As vendor_dnn_find, by the device's own handle. *way is also NULL where there is no library. */
helio_status gpu_dnn_find(helio_backend_device *device, const vendor_convolution *convolution, vendor_way **way,
                          size_t *workspace);

/* The stream's handles: what plans have prepared, or made when first asked for. */
helio_status gpu_stream_blas(helio_stream *stream, vendor_blas **blas);
helio_status gpu_stream_dnn(helio_stream *stream, vendor_dnn **dnn);

/* Whether work that a library has failed in, with this status, is to be made without it; if so, `refused` is set, which
 * keeps a plan's later runs from asking again, and the first time for it `work` is told in a warning. */
bool gpu_library_refuses(helio_backend_device *device, helio_status status, const vendor_library *library,
                         const char *work, atomic_bool *refused);

/* Destroys a stream's handles: before the stream is destroyed, the device being current or lost. */
void gpu_stream_libraries_close(helio_stream *stream, bool lost);

/* Destroys what the device has of its own: before it is closed, the device being current or lost. */
void gpu_libraries_close(helio_backend_device *device, bool lost);

#endif
