/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-ins for the vendors' libraries share: arithmetic in double precision on tensors in device memory,
 * handed to a stream as one task with all the memory that it touches.
 *
 * The vendors' rules about arguments are their faces' business. Here a call is right, and only its memory is in doubt.
 */
#ifndef SIM_LIBRARY_H
#define SIM_LIBRARY_H

#include "sim.h"

typedef enum sim_type { SIM_FLOAT32, SIM_FLOAT64, SIM_FLOAT16, SIM_BFLOAT16, SIM_NO_TYPE } sim_type;

/* What fast arithmetic makes of its inputs first. */
typedef enum sim_rounding { SIM_EXACT, SIM_ROUND_TF32, SIM_ROUND_FLOAT16, SIM_ROUND_BFLOAT16 } sim_rounding;

/* Four dimensions n, c, h, w (of a filter: k, c, r, s) in this order, wherever they lie in memory. */
typedef struct sim_tensor {
  sim_type type;
  int dims[4];
  int64_t strides[4]; /* in elements; of the loops in here also negative */
} sim_tensor;

/* A product that is SIZE_MAX if there is no number for it: more than any memory has, and told as such. */
SIM_EXPORT size_t sim_times(size_t a, size_t b);

SIM_EXPORT size_t sim_type_bytes(sim_type type);
/* Whether the places of so many elements can be counted at all; strides NULL: one after the other. */
SIM_EXPORT bool sim_is_countable(const int dims[4], const int *strides);
SIM_EXPORT size_t sim_tensor_count(const sim_tensor *tensor);
SIM_EXPORT size_t sim_tensor_bytes(const sim_tensor *tensor);            /* from its first element to behind its last */
SIM_EXPORT void sim_tensor_pack(sim_tensor *tensor, bool channels_last); /* sets the strides */
SIM_EXPORT bool sim_tensor_is_packed(const sim_tensor *tensor, bool channels_last);
/* Does each element have a place of its own, the first one the first place? */
SIM_EXPORT bool sim_tensor_is_distinct(const sim_tensor *tensor);
SIM_EXPORT bool sim_tensor_has_dims(const sim_tensor *tensor, const int dims[4]);

/* ---------------------------------------------------------------------------------------------------------------------
 * Numbers, dense, in the order of the dimensions, in memory of malloc
 */

double *sim_numbers(size_t count); /* zeros; ends the process if there is no memory */
double *sim_gather(const sim_tensor *tensor, const void *data, sim_rounding rounding);

/* data = alpha * values + beta * data, which is not read if beta is 0. With `wobble` the last bit is drawn by the seed,
 * as sums in no fixed order have it. */
void sim_scatter(const sim_tensor *tensor, void *data, const double *values, double alpha, double beta, bool wobble);

/* c += a * b for an m by k and a k by n matrix whose elements lie `_row` and `_column` apart; rows of c are contiguous.
 */
typedef struct sim_matrix {
  const double *data;
  size_t row, column;
} sim_matrix;

void sim_multiply(size_t m, size_t n, size_t k, sim_matrix a, sim_matrix b, double *c, size_t c_row);

/* ---------------------------------------------------------------------------------------------------------------------
 * Tasks
 */

typedef struct sim_operand {
  const char *what; /* for reports: "x" */
  const void *address;
  size_t bytes;     /* 0: not there */
  size_t alignment; /* 0: any */
  bool written;
  bool has_gaps;  /* between its elements, where there may be something of others */
  int with;       /* 1 + the operand that it may share its place with, if they begin at the same address; 0: none */
  size_t scratch; /* so much of it, and its last page, is filled with 0xFF before and after; 0: nothing */
} sim_operand;

enum { SIM_OPERANDS = 6 };

typedef struct sim_task {
  const char *name;
  sim_device *device;
  sim_operand operands[SIM_OPERANDS];
  void *twins[SIM_OPERANDS]; /* where the operands can be touched, while the task is done */
  int count;
  size_t numbers;     /* that are needed besides those of the operands, in memory of the host */
  const void *handle; /* (optional) of a library that has a workspace of its own for each handle */
  void (*compute)(struct sim_task *task);
} sim_task;

sim_operand sim_operand_of(const char *what, const sim_tensor *tensor, const void *address, bool written);
sim_task *sim_task_new(size_t size, const char *name, sim_device *device, void (*compute)(sim_task *));
void sim_task_add(sim_task *task, sim_operand operand);
/* Checks the operands and queues the task, which is the stream's then, or gone. */
sim_status sim_task_queue(sim_task *task, sim_stream *stream);

/* ---------------------------------------------------------------------------------------------------------------------
 * The calls
 */

/* The handle of a library, with what they all have. */
typedef struct sim_handle {
  sim_object object;
  void *stream; /* the vendor's handle of it; NULL: the device's own */
} sim_handle;

/* The device that a new handle is for: the current one; with HIP, which starts with it, device 0. NULL: none. */
SIM_EXPORT sim_device *sim_here(sim_vendor vendor);

/* Whether this thread may use the handle now: live, of the device that is current, which is well. *stream is where its
 * work goes. SIM_INVALID_HANDLE after a violation, or the error of the device. */
SIM_EXPORT sim_status sim_handle_enter(sim_vendor vendor, const void *handle, const char *kind, sim_handle **entered,
                                       sim_stream **stream);

/* alpha or beta, read now from the host: a float, or a double. false: NULL, or after a violation device memory. */
SIM_EXPORT bool sim_scalar(const void *address, bool is_double, const char *what, double *value);

typedef struct sim_place {
  const char *name;
  sim_device *device;
  sim_stream *stream;
} sim_place;

typedef struct sim_gemm {
  bool transpose_a, transpose_b;
  int m, n, k, batch;
  double alpha, beta;
  sim_type type_a, type_b, type_c;
  int lda, ldb, ldc, ldd;
  int64_t stride_a, stride_b, stride_c, stride_d; /* between the matrices of a batch */
  const void *a, *b, *c;
  void *d; /* = alpha a b + beta c; may be c */
  sim_rounding rounding;
  bool wobble;     /* see sim_scatter */
  void *workspace; /* its beginning and its end are filled with 0xFF */
  size_t workspace_bytes;
  const void *handle; /* whose own workspace is used otherwise, on whatever stream; NULL: there is none such */
} sim_gemm;

SIM_EXPORT sim_status sim_gemm_queue(const sim_place *place, const sim_gemm *call);

typedef struct sim_convolution {
  int pad[2], stride[2], dilation[2], groups;
  bool flipped; /* a convolution as mathematics has it; else cross-correlation */
} sim_convolution;

/* The size of the result in one dimension, which is not positive if nothing fits. */
SIM_EXPORT int64_t sim_convolution_size(int64_t size, int64_t window, int64_t pad, int64_t stride, int64_t dilation);
/* Does x with w make y? */
SIM_EXPORT bool sim_convolution_fits(const sim_convolution *convolution, const sim_tensor *x, const sim_tensor *w,
                                     const sim_tensor *y);

typedef enum sim_direction { SIM_FORWARD, SIM_BACKWARD_DATA, SIM_BACKWARD_FILTER } sim_direction;

typedef struct sim_convolution_call {
  sim_direction direction; /* the result is y, x or w, in memory that is written */
  sim_convolution convolution;
  sim_tensor x, w, y;
  const void *x_data, *w_data, *y_data;
  void *workspace;
  size_t workspace_bytes, workspace_wanted; /* given, and what the algorithm asked for */
  double alpha, beta;
  sim_rounding rounding;
  bool deterministic;
  bool poison; /* NaN comes out, as of a search that leaves anything there */
} sim_convolution_call;

SIM_EXPORT bool sim_convolution_is_packed(const sim_convolution_call *call, bool channels_last); /* all three */
SIM_EXPORT sim_status sim_convolution_queue(const sim_place *place, const sim_convolution_call *call);
/* The gradient of a bias: b[c] = alpha * sum of y[n][c][h][w] + beta * b[c]. */
SIM_EXPORT sim_status sim_bias_queue(const sim_place *place, const sim_tensor *y, const void *y_data,
                                     const sim_tensor *b, void *b_data, double alpha, double beta);

typedef enum sim_pooling_mode { SIM_POOL_MAX, SIM_POOL_AVERAGE, SIM_POOL_AVERAGE_WITH_PADDING } sim_pooling_mode;

typedef struct sim_pooling {
  sim_pooling_mode mode;
  bool propagate_nan, deterministic;
  int window[2], pad[2], stride[2];
  size_t index_bytes; /* of each index of a maximum in the workspace; 0: no workspace, backward looks at x */
} sim_pooling;

SIM_EXPORT bool sim_pooling_fits(const sim_pooling *pooling, const sim_tensor *x, const sim_tensor *y);
/* What a forward pass keeps for its backward pass: an index for each element of y, and who made them. */
SIM_EXPORT size_t sim_pooling_workspace(const sim_pooling *pooling, const sim_tensor *y);

typedef struct sim_pooling_call {
  bool backward; /* from dy, and x or the workspace, to dx */
  sim_pooling pooling;
  sim_tensor x, y, dx, dy;
  const void *x_data, *y_data, *dx_data, *dy_data;
  void *workspace; /* kept, of sim_pooling_workspace bytes; NULL: none */
  double alpha, beta;
} sim_pooling_call;

SIM_EXPORT sim_status sim_pooling_queue(const sim_place *place, const sim_pooling_call *call);

typedef enum sim_softmax_algorithm { SIM_SOFTMAX_FAST, SIM_SOFTMAX_ACCURATE, SIM_SOFTMAX_LOG } sim_softmax_algorithm;

typedef struct sim_softmax {
  bool backward, by_channel; /* over c, for each n, h, w; else over c, h, w for each n */
  sim_softmax_algorithm algorithm;
  sim_tensor in, gradient, out; /* x, -, y, or y, dy, dx */
  const void *in_data, *gradient_data;
  void *out_data;
  double alpha, beta;
} sim_softmax;

SIM_EXPORT sim_status sim_softmax_queue(const sim_place *place, const sim_softmax *call);

#endif
