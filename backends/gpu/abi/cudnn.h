/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN: libcudnn.so.9 and .8, the calls that both have. They are marked deprecated and exported all the same. */
#ifndef ABI_CUDNN_H
#define ABI_CUDNN_H

#include "common.h"

struct cudnnContext;
struct cudnnTensorStruct;
struct cudnnFilterStruct;
struct cudnnConvolutionStruct;
struct cudnnPoolingStruct;
struct CUstream_st;
struct cudnnConvolutionFwdAlgoPerfStruct;
struct cudnnConvolutionBwdDataAlgoPerfStruct;
struct cudnnConvolutionBwdFilterAlgoPerfStruct;

/* What the three structs above look like, all alike; pointers to it are cast to theirs. */
typedef struct cudnn_abi_performance {
  abi_enum algorithm, status;
  float time; /* ms, or -1 */
  size_t memory;
  abi_enum determinism, math;
  int reserved[3];
} cudnn_abi_performance;

/* Numbers of cuDNN 9: a thousand for each kind of failure. */
enum { CUDNN_ABI_NOT_INITIALIZED = 1001, CUDNN_ABI_BAD_PARAM = 2000, CUDNN_ABI_NOT_SUPPORTED = 3000 };
enum { CUDNN_ABI_INTERNAL_ERROR = 4000, CUDNN_ABI_EXECUTION_FAILED = 5000 };
enum { CUDNN_ABI_HOST_ALLOCATION_FAILED = 4003, CUDNN_ABI_DEVICE_ALLOCATION_FAILED = 4004 };

/* Those of cuDNN 8. */
enum { CUDNN_ABI_8_NOT_INITIALIZED = 1, CUDNN_ABI_8_ALLOC_FAILED = 2, CUDNN_ABI_8_BAD_PARAM = 3 };
enum { CUDNN_ABI_8_INTERNAL_ERROR = 4, CUDNN_ABI_8_EXECUTION_FAILED = 8 };
enum { CUDNN_ABI_8_INVALID_VALUE = 5, CUDNN_ABI_8_ARCH_MISMATCH = 6, CUDNN_ABI_8_NOT_SUPPORTED = 9 };

enum { CUDNN_ABI_FLOAT = 0, CUDNN_ABI_DOUBLE = 1, CUDNN_ABI_HALF = 2, CUDNN_ABI_INT8 = 3, CUDNN_ABI_INT32 = 4 };
enum { CUDNN_ABI_BFLOAT16 = 9 };
enum { CUDNN_ABI_NCHW = 0, CUDNN_ABI_NHWC = 1 };
enum { CUDNN_ABI_CONVOLUTION = 0, CUDNN_ABI_CROSS_CORRELATION = 1 };
enum { CUDNN_ABI_DEFAULT_MATH = 0, CUDNN_ABI_TENSOR_OP_MATH = 1, CUDNN_ABI_TENSOR_OP_MATH_ALLOW_CONVERSION = 2 };
enum { CUDNN_ABI_FMA_MATH = 3 };
enum { CUDNN_ABI_NON_DETERMINISTIC = 0, CUDNN_ABI_DETERMINISTIC = 1 };
enum { CUDNN_ABI_POOLING_MAX = 0, CUDNN_ABI_POOLING_AVERAGE_WITH_PADDING = 1, CUDNN_ABI_POOLING_AVERAGE = 2 };
enum { CUDNN_ABI_POOLING_MAX_DETERMINISTIC = 3 };
enum { CUDNN_ABI_NOT_PROPAGATE_NAN = 0, CUDNN_ABI_PROPAGATE_NAN = 1 };
enum { CUDNN_ABI_SOFTMAX_FAST = 0, CUDNN_ABI_SOFTMAX_ACCURATE = 1, CUDNN_ABI_SOFTMAX_LOG = 2 };
enum { CUDNN_ABI_SOFTMAX_INSTANCE = 0, CUDNN_ABI_SOFTMAX_CHANNEL = 1 };

/* Algorithms of the convolution, of its gradient by the input, and by the filter. */
enum { CUDNN_ABI_FORWARD_IMPLICIT_GEMM, CUDNN_ABI_FORWARD_PRECOMPUTED_GEMM, CUDNN_ABI_FORWARD_GEMM };
enum { CUDNN_ABI_FORWARD_DIRECT = 3, CUDNN_ABI_FORWARD_FFT, CUDNN_ABI_FORWARD_FFT_TILING };
enum { CUDNN_ABI_FORWARD_WINOGRAD = 6, CUDNN_ABI_FORWARD_WINOGRAD_NONFUSED, CUDNN_ABI_FORWARD_COUNT };
enum { CUDNN_ABI_DATA_0, CUDNN_ABI_DATA_1, CUDNN_ABI_DATA_FFT, CUDNN_ABI_DATA_FFT_TILING };
enum { CUDNN_ABI_DATA_WINOGRAD = 4, CUDNN_ABI_DATA_WINOGRAD_NONFUSED, CUDNN_ABI_DATA_COUNT };
enum { CUDNN_ABI_FILTER_0, CUDNN_ABI_FILTER_1, CUDNN_ABI_FILTER_FFT, CUDNN_ABI_FILTER_3 };
enum { CUDNN_ABI_FILTER_WINOGRAD = 4, CUDNN_ABI_FILTER_WINOGRAD_NONFUSED, CUDNN_ABI_FILTER_FFT_TILING };
enum { CUDNN_ABI_FILTER_COUNT = 7 };

#define CUDNN_HANDLE_FUNCTIONS(X)                                                                                      \
  X(const char *, cudnnGetErrorString, (abi_enum status))                                                              \
  X(abi_enum, cudnnCreate, (struct cudnnContext * *handle))                                                            \
  X(abi_enum, cudnnDestroy, (struct cudnnContext * handle))                                                            \
  X(abi_enum, cudnnSetStream, (struct cudnnContext * handle, struct CUstream_st * stream))

/* Missing in cuDNN 8. */
#define CUDNN_OPTIONAL_FUNCTIONS(X) X(void, cudnnGetLastErrorString, (char *message, size_t size))

#define CUDNN_DESCRIPTOR_FUNCTIONS(X)                                                                                  \
  X(abi_enum, cudnnCreateTensorDescriptor, (struct cudnnTensorStruct * *tensor))                                       \
  X(abi_enum, cudnnSetTensor4dDescriptor,                                                                              \
    (struct cudnnTensorStruct * tensor, abi_enum format, abi_enum type, int n, int c, int h, int w))                   \
  X(abi_enum, cudnnDestroyTensorDescriptor, (struct cudnnTensorStruct * tensor))                                       \
  X(abi_enum, cudnnCreateFilterDescriptor, (struct cudnnFilterStruct * *filter))                                       \
  X(abi_enum, cudnnSetFilter4dDescriptor,                                                                              \
    (struct cudnnFilterStruct * filter, abi_enum type, abi_enum format, int k, int c, int h, int w))                   \
  X(abi_enum, cudnnDestroyFilterDescriptor, (struct cudnnFilterStruct * filter))                                       \
  X(abi_enum, cudnnCreateConvolutionDescriptor, (struct cudnnConvolutionStruct * *convolution))                        \
  X(abi_enum, cudnnSetConvolution2dDescriptor,                                                                         \
    (struct cudnnConvolutionStruct * convolution, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,    \
     int dilation_w, abi_enum mode, abi_enum compute))                                                                 \
  X(abi_enum, cudnnSetConvolutionGroupCount, (struct cudnnConvolutionStruct * convolution, int groups))                \
  X(abi_enum, cudnnSetConvolutionMathType, (struct cudnnConvolutionStruct * convolution, abi_enum math))               \
  X(abi_enum, cudnnDestroyConvolutionDescriptor, (struct cudnnConvolutionStruct * convolution))

/* Nobody but tests calls these. */
#define CUDNN_MORE_DESCRIPTOR_FUNCTIONS(X)                                                                             \
  X(abi_enum, cudnnSetTensor4dDescriptorEx,                                                                            \
    (struct cudnnTensorStruct * tensor, abi_enum type, int n, int c, int h, int w, int n_stride, int c_stride,         \
     int h_stride, int w_stride))                                                                                      \
  X(abi_enum, cudnnSetTensorNdDescriptor,                                                                              \
    (struct cudnnTensorStruct * tensor, abi_enum type, int rank, const int *dims, const int *strides))                 \
  X(abi_enum, cudnnGetConvolution2dForwardOutputDim,                                                                   \
    (struct cudnnConvolutionStruct * convolution, struct cudnnTensorStruct * x, struct cudnnFilterStruct * w,          \
     int *out_n, int *out_c, int *out_h, int *out_w))                                                                  \
  X(abi_enum, cudnnCreatePoolingDescriptor, (struct cudnnPoolingStruct * *pooling))                                    \
  X(abi_enum, cudnnSetPooling2dDescriptor,                                                                             \
    (struct cudnnPoolingStruct * pooling, abi_enum mode, abi_enum nan, int window_h, int window_w, int pad_h,          \
     int pad_w, int stride_h, int stride_w))                                                                           \
  X(abi_enum, cudnnGetPooling2dForwardOutputDim,                                                                       \
    (struct cudnnPoolingStruct * pooling, struct cudnnTensorStruct * x, int *out_n, int *out_c, int *out_h,            \
     int *out_w))                                                                                                      \
  X(abi_enum, cudnnDestroyPoolingDescriptor, (struct cudnnPoolingStruct * pooling))

#define CUDNN_CONVOLUTION_FUNCTIONS(X)                                                                                 \
  X(abi_enum, cudnnGetConvolutionForwardAlgorithm_v7,                                                                  \
    (struct cudnnContext * handle, struct cudnnTensorStruct * x, struct cudnnFilterStruct * w,                         \
     struct cudnnConvolutionStruct * convolution, struct cudnnTensorStruct * y, int wanted, int *count,                \
     struct cudnnConvolutionFwdAlgoPerfStruct *results))                                                               \
  X(abi_enum, cudnnGetConvolutionBackwardDataAlgorithm_v7,                                                             \
    (struct cudnnContext * handle, struct cudnnFilterStruct * w, struct cudnnTensorStruct * dy,                        \
     struct cudnnConvolutionStruct * convolution, struct cudnnTensorStruct * dx, int wanted, int *count,               \
     struct cudnnConvolutionBwdDataAlgoPerfStruct *results))                                                           \
  X(abi_enum, cudnnGetConvolutionBackwardFilterAlgorithm_v7,                                                           \
    (struct cudnnContext * handle, struct cudnnTensorStruct * x, struct cudnnTensorStruct * dy,                        \
     struct cudnnConvolutionStruct * convolution, struct cudnnFilterStruct * dw, int wanted, int *count,               \
     struct cudnnConvolutionBwdFilterAlgoPerfStruct *results))                                                         \
  X(abi_enum, cudnnGetConvolutionForwardWorkspaceSize,                                                                 \
    (struct cudnnContext * handle, struct cudnnTensorStruct * x, struct cudnnFilterStruct * w,                         \
     struct cudnnConvolutionStruct * convolution, struct cudnnTensorStruct * y, abi_enum algorithm, size_t * bytes))   \
  X(abi_enum, cudnnGetConvolutionBackwardDataWorkspaceSize,                                                            \
    (struct cudnnContext * handle, struct cudnnFilterStruct * w, struct cudnnTensorStruct * dy,                        \
     struct cudnnConvolutionStruct * convolution, struct cudnnTensorStruct * dx, abi_enum algorithm, size_t * bytes))  \
  X(abi_enum, cudnnGetConvolutionBackwardFilterWorkspaceSize,                                                          \
    (struct cudnnContext * handle, struct cudnnTensorStruct * x, struct cudnnTensorStruct * dy,                        \
     struct cudnnConvolutionStruct * convolution, struct cudnnFilterStruct * dw, abi_enum algorithm, size_t * bytes))  \
  X(abi_enum, cudnnConvolutionForward,                                                                                 \
    (struct cudnnContext * handle, const void *alpha, struct cudnnTensorStruct *x_tensor, const void *x,               \
     struct cudnnFilterStruct *w_filter, const void *w, struct cudnnConvolutionStruct *convolution,                    \
     abi_enum algorithm, void *workspace, size_t bytes, const void *beta, struct cudnnTensorStruct *y_tensor,          \
     void *y))                                                                                                         \
  X(abi_enum, cudnnConvolutionBackwardData,                                                                            \
    (struct cudnnContext * handle, const void *alpha, struct cudnnFilterStruct *w_filter, const void *w,               \
     struct cudnnTensorStruct *dy_tensor, const void *dy, struct cudnnConvolutionStruct *convolution,                  \
     abi_enum algorithm, void *workspace, size_t bytes, const void *beta, struct cudnnTensorStruct *dx_tensor,         \
     void *dx))                                                                                                        \
  X(abi_enum, cudnnConvolutionBackwardFilter,                                                                          \
    (struct cudnnContext * handle, const void *alpha, struct cudnnTensorStruct *x_tensor, const void *x,               \
     struct cudnnTensorStruct *dy_tensor, const void *dy, struct cudnnConvolutionStruct *convolution,                  \
     abi_enum algorithm, void *workspace, size_t bytes, const void *beta, struct cudnnFilterStruct *dw_filter,         \
     void *dw))

/* Nobody but tests calls these. */
#define CUDNN_OTHER_FUNCTIONS(X)                                                                                       \
  X(size_t, cudnnGetVersion, (void))                                                                                   \
  X(abi_enum, cudnnConvolutionBackwardBias,                                                                            \
    (struct cudnnContext * handle, const void *alpha, struct cudnnTensorStruct *dy_tensor, const void *dy,             \
     const void *beta, struct cudnnTensorStruct *db_tensor, void *db))                                                 \
  X(abi_enum, cudnnPoolingForward,                                                                                     \
    (struct cudnnContext * handle, struct cudnnPoolingStruct * pooling, const void *alpha,                             \
     struct cudnnTensorStruct *x_tensor, const void *x, const void *beta, struct cudnnTensorStruct *y_tensor,          \
     void *y))                                                                                                         \
  X(abi_enum, cudnnPoolingBackward,                                                                                    \
    (struct cudnnContext * handle, struct cudnnPoolingStruct * pooling, const void *alpha,                             \
     struct cudnnTensorStruct *y_tensor, const void *y, struct cudnnTensorStruct *dy_tensor, const void *dy,           \
     struct cudnnTensorStruct *x_tensor, const void *x, const void *beta, struct cudnnTensorStruct *dx_tensor,         \
     void *dx))                                                                                                        \
  X(abi_enum, cudnnSoftmaxForward,                                                                                     \
    (struct cudnnContext * handle, abi_enum algorithm, abi_enum mode, const void *alpha,                               \
     struct cudnnTensorStruct *x_tensor, const void *x, const void *beta, struct cudnnTensorStruct *y_tensor,          \
     void *y))                                                                                                         \
  X(abi_enum, cudnnSoftmaxBackward,                                                                                    \
    (struct cudnnContext * handle, abi_enum algorithm, abi_enum mode, const void *alpha,                               \
     struct cudnnTensorStruct *y_tensor, const void *y, struct cudnnTensorStruct *dy_tensor, const void *dy,           \
     const void *beta, struct cudnnTensorStruct *dx_tensor, void *dx))

#define CUDNN_FUNCTIONS(X)                                                                                             \
  CUDNN_HANDLE_FUNCTIONS(X)                                                                                            \
  CUDNN_DESCRIPTOR_FUNCTIONS(X)                                                                                        \
  CUDNN_MORE_DESCRIPTOR_FUNCTIONS(X)                                                                                   \
  CUDNN_CONVOLUTION_FUNCTIONS(X)                                                                                       \
  CUDNN_OTHER_FUNCTIONS(X)

#endif
