/* SPDX-License-Identifier: Apache-2.0 */
/* MIOpen: libMIOpen.so.1. Weights are a tensor. The calls that search take x before w, the others w before x. */
#ifndef ABI_MIOPEN_H
#define ABI_MIOPEN_H

#include "common.h"

#include <stdbool.h>

struct miopenHandle;
struct miopenTensorDescriptor;
struct miopenConvolutionDescriptor;
struct miopenPoolingDescriptor;
struct ihipStream_t;

/* The vendor's structs have no tags, so these are ours. */
typedef struct miopen_abi_solution {
  float time; /* ms; negative: guessed */
  size_t workspace;
  uint64_t id;
  abi_enum algorithm;
} miopen_abi_solution;

typedef struct miopen_abi_performance {
  abi_enum algorithm;
  float time;
  size_t memory;
} miopen_abi_performance;

enum { MIOPEN_ABI_NOT_INITIALIZED = 1, MIOPEN_ABI_INVALID_VALUE = 2, MIOPEN_ABI_BAD_PARM = 3 };
enum { MIOPEN_ABI_ALLOC_FAILED = 4, MIOPEN_ABI_INTERNAL_ERROR = 5, MIOPEN_ABI_NOT_IMPLEMENTED = 6 };
enum { MIOPEN_ABI_UNKNOWN_ERROR = 7, MIOPEN_ABI_UNSUPPORTED = 8 };

enum { MIOPEN_ABI_HALF = 0, MIOPEN_ABI_FLOAT = 1, MIOPEN_ABI_INT32 = 2, MIOPEN_ABI_INT8 = 3, MIOPEN_ABI_BFLOAT16 = 5 };
enum { MIOPEN_ABI_DOUBLE = 6 };
enum { MIOPEN_ABI_NCHW = 0, MIOPEN_ABI_NHWC = 1 };
enum { MIOPEN_ABI_CROSS_CORRELATION = 0, MIOPEN_ABI_TRANSPOSE = 1 };
enum { MIOPEN_ABI_ATTRIBUTE_ALTERNATIVE_HALF = 0, MIOPEN_ABI_ATTRIBUTE_DETERMINISTIC = 1 };
enum { MIOPEN_ABI_POOLING_MAX = 0, MIOPEN_ABI_POOLING_AVERAGE = 1, MIOPEN_ABI_POOLING_AVERAGE_WITH_PADDING = 2 };
enum { MIOPEN_ABI_INDEX_UINT8 = 0, MIOPEN_ABI_INDEX_UINT16, MIOPEN_ABI_INDEX_UINT32, MIOPEN_ABI_INDEX_UINT64 };
enum { MIOPEN_ABI_SOFTMAX_FAST = 0, MIOPEN_ABI_SOFTMAX_ACCURATE = 1, MIOPEN_ABI_SOFTMAX_LOG = 2 };
enum { MIOPEN_ABI_SOFTMAX_INSTANCE = 0, MIOPEN_ABI_SOFTMAX_CHANNEL = 1 };
enum { MIOPEN_ABI_GEMM = 0, MIOPEN_ABI_DIRECT = 1, MIOPEN_ABI_FFT = 2, MIOPEN_ABI_WINOGRAD = 3 };
enum { MIOPEN_ABI_IMPLICIT_GEMM = 5 };
/* Numbers of solutions (solver.cpp): loops that it checks others by, and offers where it has nothing else. */
enum { MIOPEN_ABI_NAIVE_FORWARD = 85, MIOPEN_ABI_NAIVE_BACKWARD = 86, MIOPEN_ABI_NAIVE_WEIGHTS = 87 };
/* ConvHipImplicitGemmGroupWrwXdlops, which up to 2024 does not look at the attribute for deterministic sums. */
enum { MIOPEN_ABI_GROUP_WEIGHTS = 156 };

#define MIOPEN_HANDLE_FUNCTIONS(X)                                                                                     \
  X(const char *, miopenGetErrorString, (abi_enum status))                                                             \
  X(abi_enum, miopenCreateWithStream, (struct miopenHandle * *handle, struct ihipStream_t * stream))                   \
  X(abi_enum, miopenDestroy, (struct miopenHandle * handle))                                                           \
  X(abi_enum, miopenSetStream, (struct miopenHandle * handle, struct ihipStream_t * stream))

#define MIOPEN_DESCRIPTOR_FUNCTIONS(X)                                                                                 \
  X(abi_enum, miopenCreateTensorDescriptor, (struct miopenTensorDescriptor * *tensor))                                 \
  X(abi_enum, miopenSetNdTensorDescriptorWithLayout,                                                                   \
    (struct miopenTensorDescriptor * tensor, abi_enum type, abi_enum layout, const int *dims, int rank))               \
  X(abi_enum, miopenDestroyTensorDescriptor, (struct miopenTensorDescriptor * tensor))                                 \
  X(abi_enum, miopenCreateConvolutionDescriptor, (struct miopenConvolutionDescriptor * *convolution))                  \
  X(abi_enum, miopenInitConvolutionDescriptor,                                                                         \
    (struct miopenConvolutionDescriptor * convolution, abi_enum mode, int pad_h, int pad_w, int stride_h,              \
     int stride_w, int dilation_h, int dilation_w))                                                                    \
  X(abi_enum, miopenSetConvolutionGroupCount, (struct miopenConvolutionDescriptor * convolution, int groups))          \
  X(abi_enum, miopenSetConvolutionAttribute,                                                                           \
    (struct miopenConvolutionDescriptor * convolution, abi_enum attribute, int value))                                 \
  X(abi_enum, miopenDestroyConvolutionDescriptor, (struct miopenConvolutionDescriptor * convolution))

/* Immediate mode: list, compile once, run. */
#define MIOPEN_IMMEDIATE_FUNCTIONS(X)                                                                                  \
  X(abi_enum, miopenConvolutionForwardGetSolution,                                                                     \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * w, struct miopenTensorDescriptor * x,               \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * y, size_t wanted,               \
     size_t * count, miopen_abi_solution * solutions))                                                                 \
  X(abi_enum, miopenConvolutionForwardCompileSolution,                                                                 \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * w, struct miopenTensorDescriptor * x,               \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * y, uint64_t id))                \
  X(abi_enum, miopenConvolutionForwardImmediate,                                                                       \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * w_tensor, const void *w,                            \
     struct miopenTensorDescriptor *x_tensor, const void *x, struct miopenConvolutionDescriptor *convolution,          \
     struct miopenTensorDescriptor *y_tensor, void *y, void *workspace, size_t bytes, uint64_t id))                    \
  X(abi_enum, miopenConvolutionBackwardDataGetSolution,                                                                \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy, struct miopenTensorDescriptor * w,              \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * dx, size_t wanted,              \
     size_t * count, miopen_abi_solution * solutions))                                                                 \
  X(abi_enum, miopenConvolutionBackwardDataCompileSolution,                                                            \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy, struct miopenTensorDescriptor * w,              \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * dx, uint64_t id))               \
  X(abi_enum, miopenConvolutionBackwardDataImmediate,                                                                  \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy_tensor, const void *dy,                          \
     struct miopenTensorDescriptor *w_tensor, const void *w, struct miopenConvolutionDescriptor *convolution,          \
     struct miopenTensorDescriptor *dx_tensor, void *dx, void *workspace, size_t bytes, uint64_t id))                  \
  X(abi_enum, miopenConvolutionBackwardWeightsGetSolution,                                                             \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy, struct miopenTensorDescriptor * x,              \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * dw, size_t wanted,              \
     size_t * count, miopen_abi_solution * solutions))                                                                 \
  X(abi_enum, miopenConvolutionBackwardWeightsCompileSolution,                                                         \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy, struct miopenTensorDescriptor * x,              \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * dw, uint64_t id))               \
  X(abi_enum, miopenConvolutionBackwardWeightsImmediate,                                                               \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy_tensor, const void *dy,                          \
     struct miopenTensorDescriptor *x_tensor, const void *x, struct miopenConvolutionDescriptor *convolution,          \
     struct miopenTensorDescriptor *dw_tensor, void *dw, void *workspace, size_t bytes, uint64_t id))

/* Find mode: search once, which overwrites the result, then run. Nobody but tests calls it. */
#define MIOPEN_FIND_FUNCTIONS(X)                                                                                       \
  X(abi_enum, miopenConvolutionForwardGetWorkSpaceSize,                                                                \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * w, struct miopenTensorDescriptor * x,               \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * y, size_t * bytes))             \
  X(abi_enum, miopenFindConvolutionForwardAlgorithm,                                                                   \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * x_tensor, const void *x,                            \
     struct miopenTensorDescriptor *w_tensor, const void *w, struct miopenConvolutionDescriptor *convolution,          \
     struct miopenTensorDescriptor *y_tensor, void *y, int wanted, int *count, miopen_abi_performance *results,        \
     void *workspace, size_t bytes, bool exhaustive))                                                                  \
  X(abi_enum, miopenConvolutionForward,                                                                                \
    (struct miopenHandle * handle, const void *alpha, struct miopenTensorDescriptor *x_tensor, const void *x,          \
     struct miopenTensorDescriptor *w_tensor, const void *w, struct miopenConvolutionDescriptor *convolution,          \
     abi_enum algorithm, const void *beta, struct miopenTensorDescriptor *y_tensor, void *y, void *workspace,          \
     size_t bytes))                                                                                                    \
  X(abi_enum, miopenConvolutionBackwardDataGetWorkSpaceSize,                                                           \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy, struct miopenTensorDescriptor * w,              \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * dx, size_t * bytes))            \
  X(abi_enum, miopenFindConvolutionBackwardDataAlgorithm,                                                              \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy_tensor, const void *dy,                          \
     struct miopenTensorDescriptor *w_tensor, const void *w, struct miopenConvolutionDescriptor *convolution,          \
     struct miopenTensorDescriptor *dx_tensor, void *dx, int wanted, int *count, miopen_abi_performance *results,      \
     void *workspace, size_t bytes, bool exhaustive))                                                                  \
  X(abi_enum, miopenConvolutionBackwardData,                                                                           \
    (struct miopenHandle * handle, const void *alpha, struct miopenTensorDescriptor *dy_tensor, const void *dy,        \
     struct miopenTensorDescriptor *w_tensor, const void *w, struct miopenConvolutionDescriptor *convolution,          \
     abi_enum algorithm, const void *beta, struct miopenTensorDescriptor *dx_tensor, void *dx, void *workspace,        \
     size_t bytes))                                                                                                    \
  X(abi_enum, miopenConvolutionBackwardWeightsGetWorkSpaceSize,                                                        \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy, struct miopenTensorDescriptor * x,              \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * dw, size_t * bytes))            \
  X(abi_enum, miopenFindConvolutionBackwardWeightsAlgorithm,                                                           \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy_tensor, const void *dy,                          \
     struct miopenTensorDescriptor *x_tensor, const void *x, struct miopenConvolutionDescriptor *convolution,          \
     struct miopenTensorDescriptor *dw_tensor, void *dw, int wanted, int *count, miopen_abi_performance *results,      \
     void *workspace, size_t bytes, bool exhaustive))                                                                  \
  X(abi_enum, miopenConvolutionBackwardWeights,                                                                        \
    (struct miopenHandle * handle, const void *alpha, struct miopenTensorDescriptor *dy_tensor, const void *dy,        \
     struct miopenTensorDescriptor *x_tensor, const void *x, struct miopenConvolutionDescriptor *convolution,          \
     abi_enum algorithm, const void *beta, struct miopenTensorDescriptor *dw_tensor, void *dw, void *workspace,        \
     size_t bytes))                                                                                                    \
  X(abi_enum, miopenConvolutionBackwardBias,                                                                           \
    (struct miopenHandle * handle, const void *alpha, struct miopenTensorDescriptor *dy_tensor, const void *dy,        \
     const void *beta, struct miopenTensorDescriptor *db_tensor, void *db))

/* Nobody but tests calls these. */
#define MIOPEN_OTHER_FUNCTIONS(X)                                                                                      \
  X(abi_enum, miopenGetVersion, (size_t * major, size_t * minor, size_t * patch))                                      \
  X(abi_enum, miopenSet4dTensorDescriptor,                                                                             \
    (struct miopenTensorDescriptor * tensor, abi_enum type, int n, int c, int h, int w))                               \
  X(abi_enum, miopenSet4dTensorDescriptorEx,                                                                           \
    (struct miopenTensorDescriptor * tensor, abi_enum type, int n, int c, int h, int w, int n_stride, int c_stride,    \
     int h_stride, int w_stride))                                                                                      \
  X(abi_enum, miopenSetTensorDescriptor,                                                                               \
    (struct miopenTensorDescriptor * tensor, abi_enum type, int rank, const int *dims, const int *strides))            \
  X(abi_enum, miopenGetConvolutionForwardOutputDim,                                                                    \
    (struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * x,                              \
     struct miopenTensorDescriptor * w, int *out_n, int *out_c, int *out_h, int *out_w))                               \
  X(abi_enum, miopenCreatePoolingDescriptor, (struct miopenPoolingDescriptor * *pooling))                              \
  X(abi_enum, miopenSet2dPoolingDescriptor,                                                                            \
    (struct miopenPoolingDescriptor * pooling, abi_enum mode, int window_h, int window_w, int pad_h, int pad_w,        \
     int stride_h, int stride_w))                                                                                      \
  X(abi_enum, miopenSetPoolingIndexType, (struct miopenPoolingDescriptor * pooling, abi_enum type))                    \
  X(abi_enum, miopenGetPoolingForwardOutputDim,                                                                        \
    (struct miopenPoolingDescriptor * pooling, struct miopenTensorDescriptor * x, int *out_n, int *out_c, int *out_h,  \
     int *out_w))                                                                                                      \
  X(abi_enum, miopenPoolingGetWorkSpaceSizeV2,                                                                         \
    (struct miopenPoolingDescriptor * pooling, struct miopenTensorDescriptor * y, size_t * bytes))                     \
  X(abi_enum, miopenDestroyPoolingDescriptor, (struct miopenPoolingDescriptor * pooling))                              \
  X(abi_enum, miopenConvolutionForwardGetSolutionCount,                                                                \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * w, struct miopenTensorDescriptor * x,               \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * y, size_t * count))             \
  X(abi_enum, miopenConvolutionForwardGetSolutionWorkspaceSize,                                                        \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * w, struct miopenTensorDescriptor * x,               \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * y, uint64_t id,                 \
     size_t * bytes))                                                                                                  \
  X(abi_enum, miopenConvolutionBackwardDataGetSolutionCount,                                                           \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy, struct miopenTensorDescriptor * w,              \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * dx, size_t * count))            \
  X(abi_enum, miopenConvolutionBackwardDataGetSolutionWorkspaceSize,                                                   \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy, struct miopenTensorDescriptor * w,              \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * dx, uint64_t id,                \
     size_t * bytes))                                                                                                  \
  X(abi_enum, miopenConvolutionBackwardWeightsGetSolutionCount,                                                        \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy, struct miopenTensorDescriptor * x,              \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * dw, size_t * count))            \
  X(abi_enum, miopenConvolutionBackwardWeightsGetSolutionWorkspaceSize,                                                \
    (struct miopenHandle * handle, struct miopenTensorDescriptor * dy, struct miopenTensorDescriptor * x,              \
     struct miopenConvolutionDescriptor * convolution, struct miopenTensorDescriptor * dw, uint64_t id,                \
     size_t * bytes))                                                                                                  \
  X(abi_enum, miopenPoolingForward,                                                                                    \
    (struct miopenHandle * handle, struct miopenPoolingDescriptor * pooling, const void *alpha,                        \
     struct miopenTensorDescriptor *x_tensor, const void *x, const void *beta,                                         \
     struct miopenTensorDescriptor *y_tensor, void *y, bool do_backward, void *workspace, size_t bytes))               \
  X(abi_enum, miopenPoolingBackward,                                                                                   \
    (struct miopenHandle * handle, struct miopenPoolingDescriptor * pooling, const void *alpha,                        \
     struct miopenTensorDescriptor *y_tensor, const void *y, struct miopenTensorDescriptor *dy_tensor, const void *dy, \
     struct miopenTensorDescriptor *x_tensor, const void *x, const void *beta,                                         \
     struct miopenTensorDescriptor *dx_tensor, void *dx, void *workspace))                                             \
  X(abi_enum, miopenSoftmaxForward_V2,                                                                                 \
    (struct miopenHandle * handle, const void *alpha, struct miopenTensorDescriptor *x_tensor, const void *x,          \
     const void *beta, struct miopenTensorDescriptor *y_tensor, void *y, abi_enum algorithm, abi_enum mode))           \
  X(abi_enum, miopenSoftmaxBackward_V2,                                                                                \
    (struct miopenHandle * handle, const void *alpha, struct miopenTensorDescriptor *y_tensor, const void *y,          \
     struct miopenTensorDescriptor *dy_tensor, const void *dy, const void *beta,                                       \
     struct miopenTensorDescriptor *dx_tensor, void *dx, abi_enum algorithm, abi_enum mode))

#define MIOPEN_FUNCTIONS(X)                                                                                            \
  MIOPEN_HANDLE_FUNCTIONS(X)                                                                                           \
  MIOPEN_DESCRIPTOR_FUNCTIONS(X)                                                                                       \
  MIOPEN_IMMEDIATE_FUNCTIONS(X)                                                                                        \
  MIOPEN_FIND_FUNCTIONS(X)                                                                                             \
  MIOPEN_OTHER_FUNCTIONS(X)

#endif
