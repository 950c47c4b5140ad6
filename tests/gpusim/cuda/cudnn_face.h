/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libcudnn.so share: descriptors, and how a call with them is checked. */
#ifndef CUDNN_FACE_H
#define CUDNN_FACE_H

#include "cudnn.h"
#include "library.h"

#define X(result, name, arguments) SIM_EXPORT result name arguments;
CUDNN_FUNCTIONS(X)
CUDNN_OPTIONAL_FUNCTIONS(X)
#undef X

struct cudnnContext {
  sim_handle handle;
};

/* Descriptors are of no device. Each is unfinished until it was set. */
struct cudnnTensorStruct {
  sim_object object;
  bool finished;
  abi_enum type;
  int rank; /* those of other ranks than 4 are refused by all that is done here */
  sim_tensor tensor;
};

struct cudnnFilterStruct {
  sim_object object;
  bool finished;
  abi_enum type, format;
  sim_tensor tensor;
};

struct cudnnConvolutionStruct {
  sim_object object;
  bool finished;
  abi_enum math, compute;
  sim_convolution convolution;
};

struct cudnnPoolingStruct {
  sim_object object;
  bool finished;
  sim_pooling pooling;
};

/* Keeps the words for cudnnGetLastErrorString. */
abi_enum cudnn_fail(abi_enum status, const char *format, ...) __attribute__((format(printf, 2, 3)));
abi_enum cudnn_status(sim_status status);

/* 0, or the error of a handle that cannot be used here and now. */
abi_enum cudnn_enter(struct cudnnContext *handle, const char *name, sim_place *place);

/* 0 if it can be used: live, of its kind, finished. */
abi_enum cudnn_use_tensor(const struct cudnnTensorStruct *tensor, const char *what);
abi_enum cudnn_use_filter(const struct cudnnFilterStruct *filter, const char *what);
abi_enum cudnn_use_convolution(const struct cudnnConvolutionStruct *convolution);
abi_enum cudnn_use_pooling(const struct cudnnPoolingStruct *pooling);

/* Reads alpha and beta as the type of the result asks for. */
abi_enum cudnn_scalars(sim_type type, const void *alpha, const void *beta, double *alpha_value, double *beta_value);

/* One algorithm for one problem. Its status is that of its entry in a list. */
typedef struct cudnn_algorithm {
  abi_enum status, math;
  size_t workspace;
  bool deterministic;
} cudnn_algorithm;

/* What an algorithm is for a problem, if the descriptor of the convolution says `math`. */
cudnn_algorithm cudnn_judge(const sim_convolution_call *call, abi_enum math, abi_enum algorithm);
/* All of them, the fastest first; how many there are, but no more than wanted. */
int cudnn_list(const sim_convolution_call *call, abi_enum math, int wanted, cudnn_abi_performance *results);

#endif
