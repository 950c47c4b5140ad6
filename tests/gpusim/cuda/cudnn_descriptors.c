/* SPDX-License-Identifier: Apache-2.0 */
/* libcudnn.so: descriptors. What is accepted and how it is refused was compared with the real library, whose
 * descriptors need no device; test/test_libraries.c does it again where that library is installed. */
#include "cudnn_face.h"

#include <limits.h>

static const char tensor_kind[] = "cuDNN tensor descriptor", filter_kind[] = "cuDNN filter descriptor",
                  convolution_kind[] = "cuDNN convolution descriptor", pooling_kind[] = "cuDNN pooling descriptor";

enum { LAST_TYPE = CUDNN_ABI_BFLOAT16, MOST_DIMS = 8 };

static abi_enum bad(const char *why) {
  return cudnn_fail(CUDNN_ABI_BAD_PARAM, "%s", why);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Life and use
 */

static const char nowhere[] = "there is no place for the descriptor";

static abi_enum destroy(void *descriptor, const char *kind) {
  if (!descriptor) return 0;
  if (!sim_check(descriptor, kind)) return bad("no such descriptor");
  sim_delete(descriptor);
  return 0;
}

static abi_enum use(const void *descriptor, const char *kind, const bool *finished, const char *what) {
  if (!descriptor) return cudnn_fail(CUDNN_ABI_BAD_PARAM, "the descriptor of %s is NULL", what);
  if (!sim_check(descriptor, kind)) return cudnn_fail(CUDNN_ABI_BAD_PARAM, "no descriptor of %s", what);
  if (*finished) return 0;
  sim_violation("unfinished descriptor", "the descriptor of %s was never set", what);
  return cudnn_fail(CUDNN_ABI_BAD_PARAM, "the descriptor of %s was never set", what);
}

abi_enum cudnn_use_tensor(const struct cudnnTensorStruct *tensor, const char *what) {
  return use(tensor, tensor_kind, tensor ? &tensor->finished : NULL, what);
}

abi_enum cudnn_use_filter(const struct cudnnFilterStruct *filter, const char *what) {
  return use(filter, filter_kind, filter ? &filter->finished : NULL, what);
}

abi_enum cudnn_use_convolution(const struct cudnnConvolutionStruct *convolution) {
  return use(convolution, convolution_kind, convolution ? &convolution->finished : NULL, "the convolution");
}

abi_enum cudnn_use_pooling(const struct cudnnPoolingStruct *pooling) {
  return use(pooling, pooling_kind, pooling ? &pooling->finished : NULL, "the pooling");
}

static sim_type type_of(abi_enum type) {
  switch (type) {
  case CUDNN_ABI_FLOAT:
    return SIM_FLOAT32;
  case CUDNN_ABI_DOUBLE:
    return SIM_FLOAT64;
  case CUDNN_ABI_HALF:
    return SIM_FLOAT16;
  case CUDNN_ABI_BFLOAT16:
    return SIM_BFLOAT16;
  default:
    return SIM_NO_TYPE;
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Tensors
 */

abi_enum cudnnCreateTensorDescriptor(struct cudnnTensorStruct **tensor) {
  SIM_CALL();
  if (!tensor) return bad(nowhere);
  *tensor = sim_new(tensor_kind, sizeof **tensor, NULL);
  return 0;
}

abi_enum cudnnDestroyTensorDescriptor(struct cudnnTensorStruct *tensor) {
  SIM_CALL();
  return destroy(tensor, tensor_kind);
}

/* Positive sizes, strides that are not 0 where they count, an extent that an int can count. */
static abi_enum check_shape(int rank, const int *dims, const int *strides) {
  int64_t last = 0;
  for (int i = 0; i < rank; i++) {
    if (dims[i] <= 0) return bad("a size is not positive");
    if (strides[i] == 0 && dims[i] != 1) return bad("a stride is 0");
    int64_t extent = (int64_t)(dims[i] - 1) * (strides[i] < 0 ? -(int64_t)strides[i] : strides[i]);
    last = extent > INT_MAX - last ? INT_MAX : last + extent;
  }
  return last < INT_MAX ? 0 : cudnn_fail(CUDNN_ABI_NOT_SUPPORTED, "a tensor of 2^31 elements or more");
}

static abi_enum set(struct cudnnTensorStruct *tensor, abi_enum type, int rank, const int *dims, const int *strides) {
  if (!tensor || !sim_check(tensor, tensor_kind)) return bad("no such descriptor");
  if (type > LAST_TYPE) return bad("no such type");
  abi_enum status = check_shape(rank, dims, strides);
  if (status) return status;
  tensor->finished = true;
  tensor->type = type;
  tensor->rank = rank;
  tensor->tensor.type = type_of(type);
  for (int i = 0; i < 4 && rank == 4; i++) {
    tensor->tensor.dims[i] = dims[i];
    tensor->tensor.strides[i] = strides[i];
  }
  return 0;
}

abi_enum cudnnSetTensor4dDescriptor(struct cudnnTensorStruct *tensor, abi_enum format, abi_enum type, int n, int c,
                                    int h, int w) {
  SIM_CALL();
  if (format > CUDNN_ABI_NHWC || type > LAST_TYPE) return bad("no such format or type");
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return bad("a size is not positive");
  if ((int64_t)n * c > INT_MAX || (int64_t)n * c * h > INT_MAX || (int64_t)n * c * h * w > INT_MAX)
    return cudnn_fail(CUDNN_ABI_NOT_SUPPORTED, "a tensor of 2^31 elements or more");
  int dims[] = {n, c, h, w}, nchw[] = {c * h * w, h * w, w, 1}, nhwc[] = {c * h * w, 1, w * c, c};
  return set(tensor, type, 4, dims, format == CUDNN_ABI_NHWC ? nhwc : nchw);
}

abi_enum cudnnSetTensor4dDescriptorEx(struct cudnnTensorStruct *tensor, abi_enum type, int n, int c, int h, int w,
                                      int n_stride, int c_stride, int h_stride, int w_stride) {
  SIM_CALL();
  return set(tensor, type, 4, (int[]){n, c, h, w}, (int[]){n_stride, c_stride, h_stride, w_stride});
}

abi_enum cudnnSetTensorNdDescriptor(struct cudnnTensorStruct *tensor, abi_enum type, int rank, const int *dims,
                                    const int *strides) {
  SIM_CALL();
  if (type > LAST_TYPE) return bad("no such type");
  if (rank > MOST_DIMS) return cudnn_fail(CUDNN_ABI_NOT_SUPPORTED, "more than 8 dimensions");
  if (rank < 2 || !dims || !strides) return bad("fewer than 2 dimensions, or no place where they are");
  return set(tensor, type, rank, dims, strides);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Filters
 */

abi_enum cudnnCreateFilterDescriptor(struct cudnnFilterStruct **filter) {
  SIM_CALL();
  if (!filter) return bad(nowhere);
  *filter = sim_new(filter_kind, sizeof **filter, NULL);
  return 0;
}

abi_enum cudnnDestroyFilterDescriptor(struct cudnnFilterStruct *filter) {
  SIM_CALL();
  return destroy(filter, filter_kind);
}

abi_enum cudnnSetFilter4dDescriptor(struct cudnnFilterStruct *filter, abi_enum type, abi_enum format, int k, int c,
                                    int h, int w) {
  SIM_CALL();
  if (!filter || !sim_check(filter, filter_kind)) return bad("no such descriptor");
  if (type > LAST_TYPE || type == CUDNN_ABI_INT32) return bad("no such type of a filter");
  if (format > CUDNN_ABI_NHWC) return bad("no such format");
  if (k <= 0 || c <= 0 || h <= 0 || w <= 0) return bad("a size is not positive");
  if (!sim_is_countable((int[]){k, c, h, w}, NULL))
    return cudnn_fail(CUDNN_ABI_NOT_SUPPORTED, "a filter beyond all measure");
  filter->finished = true;
  filter->type = type;
  filter->format = format;
  filter->tensor = (sim_tensor){.type = type_of(type), .dims = {k, c, h, w}};
  sim_tensor_pack(&filter->tensor, format == CUDNN_ABI_NHWC);
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Convolutions
 */

abi_enum cudnnCreateConvolutionDescriptor(struct cudnnConvolutionStruct **convolution) {
  SIM_CALL();
  if (!convolution) return bad(nowhere);
  *convolution = sim_new(convolution_kind, sizeof **convolution, NULL);
  (*convolution)->convolution.groups = 1;
  return 0;
}

abi_enum cudnnDestroyConvolutionDescriptor(struct cudnnConvolutionStruct *convolution) {
  SIM_CALL();
  return destroy(convolution, convolution_kind);
}

/* Groups and the type of arithmetic stay as they were. */
abi_enum cudnnSetConvolution2dDescriptor(struct cudnnConvolutionStruct *convolution, int pad_h, int pad_w, int stride_h,
                                         int stride_w, int dilation_h, int dilation_w, abi_enum mode,
                                         abi_enum compute) {
  SIM_CALL();
  if (!convolution || !sim_check(convolution, convolution_kind)) return bad("no such descriptor");
  if (pad_h < 0 || pad_w < 0) return bad("negative padding");
  if (stride_h <= 0 || stride_w <= 0 || dilation_h <= 0 || dilation_w <= 0) return bad("a stride is not positive");
  if (mode > CUDNN_ABI_CROSS_CORRELATION) return bad("no such mode");
  if (compute > CUDNN_ABI_INT32 || compute == CUDNN_ABI_INT8) return bad("no such type to compute in");
  convolution->finished = true;
  convolution->compute = compute;
  convolution->convolution = (sim_convolution){.pad = {pad_h, pad_w},
                                               .stride = {stride_h, stride_w},
                                               .dilation = {dilation_h, dilation_w},
                                               .groups = convolution->convolution.groups,
                                               .flipped = mode == CUDNN_ABI_CONVOLUTION};
  return 0;
}

abi_enum cudnnSetConvolutionGroupCount(struct cudnnConvolutionStruct *convolution, int groups) {
  SIM_CALL();
  if (!convolution || !sim_check(convolution, convolution_kind)) return bad("no such descriptor");
  if (groups <= 0) return bad("a number of groups that is not positive");
  convolution->convolution.groups = groups;
  return 0;
}

abi_enum cudnnSetConvolutionMathType(struct cudnnConvolutionStruct *convolution, abi_enum math) {
  SIM_CALL();
  if (!convolution || !sim_check(convolution, convolution_kind)) return bad("no such descriptor");
  if (math > CUDNN_ABI_FMA_MATH) return bad("no such type of arithmetic");
  convolution->math = math;
  return 0;
}

static bool are_sizes(const int64_t size[2]) {
  return size[0] > 0 && size[1] > 0 && size[0] <= INT_MAX && size[1] <= INT_MAX;
}

abi_enum cudnnGetConvolution2dForwardOutputDim(struct cudnnConvolutionStruct *convolution, struct cudnnTensorStruct *x,
                                               struct cudnnFilterStruct *w, int *out_n, int *out_c, int *out_h,
                                               int *out_w) {
  SIM_CALL();
  abi_enum status = cudnn_use_convolution(convolution);
  if (!status) status = cudnn_use_tensor(x, "x");
  if (!status) status = cudnn_use_filter(w, "w");
  if (status) return status;
  if (!out_n || !out_c || !out_h || !out_w) return bad("there is no place for the result");
  if (x->rank != 4) return bad("x does not have 4 dimensions");
  const sim_convolution *c = &convolution->convolution;
  if (x->tensor.dims[1] != c->groups * (int64_t)w->tensor.dims[1]) return bad("x and w differ in their channels");
  int64_t size[2];
  for (int i = 0; i < 2; i++)
    size[i] =
        sim_convolution_size(x->tensor.dims[2 + i], w->tensor.dims[2 + i], c->pad[i], c->stride[i], c->dilation[i]);
  if (!are_sizes(size)) return bad("the filter is greater than the input, or the result beyond all measure");
  *out_n = x->tensor.dims[0];
  *out_c = w->tensor.dims[0];
  *out_h = (int)size[0];
  *out_w = (int)size[1];
  return 0;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Pooling
 */

abi_enum cudnnCreatePoolingDescriptor(struct cudnnPoolingStruct **pooling) {
  SIM_CALL();
  if (!pooling) return bad(nowhere);
  *pooling = sim_new(pooling_kind, sizeof **pooling, NULL);
  return 0;
}

abi_enum cudnnDestroyPoolingDescriptor(struct cudnnPoolingStruct *pooling) {
  SIM_CALL();
  return destroy(pooling, pooling_kind);
}

abi_enum cudnnSetPooling2dDescriptor(struct cudnnPoolingStruct *pooling, abi_enum mode, abi_enum nan, int window_h,
                                     int window_w, int pad_h, int pad_w, int stride_h, int stride_w) {
  static const sim_pooling_mode modes[] = {SIM_POOL_MAX, SIM_POOL_AVERAGE_WITH_PADDING, SIM_POOL_AVERAGE, SIM_POOL_MAX};
  SIM_CALL();
  if (!pooling || !sim_check(pooling, pooling_kind)) return bad("no such descriptor");
  if (mode > CUDNN_ABI_POOLING_MAX_DETERMINISTIC || nan > CUDNN_ABI_PROPAGATE_NAN) return bad("no such mode");
  if (window_h <= 0 || window_w <= 0 || stride_h <= 0 || stride_w <= 0) return bad("a size is not positive");
  pooling->finished = true;
  pooling->pooling = (sim_pooling){.mode = modes[mode],
                                   .propagate_nan = nan == CUDNN_ABI_PROPAGATE_NAN,
                                   .deterministic = mode != CUDNN_ABI_POOLING_MAX,
                                   .window = {window_h, window_w},
                                   .pad = {pad_h, pad_w},
                                   .stride = {stride_h, stride_w}};
  return 0;
}

abi_enum cudnnGetPooling2dForwardOutputDim(struct cudnnPoolingStruct *pooling, struct cudnnTensorStruct *x, int *out_n,
                                           int *out_c, int *out_h, int *out_w) {
  SIM_CALL();
  abi_enum status = cudnn_use_pooling(pooling);
  if (!status) status = cudnn_use_tensor(x, "x");
  if (status) return status;
  if (!out_n || !out_c || !out_h || !out_w) return bad("there is no place for the result");
  if (x->rank != 4) return bad("x does not have 4 dimensions");
  int64_t size[2];
  for (int i = 0; i < 2; i++)
    size[i] = sim_convolution_size(x->tensor.dims[2 + i], pooling->pooling.window[i], pooling->pooling.pad[i],
                                   pooling->pooling.stride[i], 1);
  if (!are_sizes(size)) return bad("the window is greater than the input, or the result beyond all measure");
  *out_n = x->tensor.dims[0];
  *out_c = x->tensor.dims[1];
  *out_h = (int)size[0];
  *out_w = (int)size[1];
  return 0;
}
