/* SPDX-License-Identifier: Apache-2.0 */
/* libMIOpen.so: descriptors. */
#include "miopen_face.h"

#include <limits.h>

static const char tensor_kind[] = "MIOpen tensor descriptor", convolution_kind[] = "MIOpen convolution descriptor",
                  pooling_kind[] = "MIOpen pooling descriptor";

enum { MOST_DIMS = 8 };

/* ---------------------------------------------------------------------------------------------------------------------
 * Life and use
 */

static abi_enum destroy(void *descriptor, const char *kind) {
  if (!descriptor || !sim_check(descriptor, kind)) return MIOPEN_ABI_BAD_PARM;
  sim_delete(descriptor);
  return 0;
}

static abi_enum use(const void *descriptor, const char *kind, const bool *finished, const char *what) {
  if (!descriptor || !sim_check(descriptor, kind)) return MIOPEN_ABI_BAD_PARM;
  if (*finished) return 0;
  sim_violation("unfinished descriptor", "the descriptor of %s was never set", what);
  return MIOPEN_ABI_BAD_PARM;
}

abi_enum miopen_use_tensor(const struct miopenTensorDescriptor *tensor, const char *what) {
  abi_enum status = use(tensor, tensor_kind, tensor ? &tensor->finished : NULL, what);
  if (status) return status;
  if (tensor->rank != 4) return MIOPEN_ABI_BAD_PARM;
  if (tensor->tensor.type == SIM_NO_TYPE) return MIOPEN_ABI_NOT_IMPLEMENTED;
  return sim_tensor_is_distinct(&tensor->tensor) ? 0 : MIOPEN_ABI_NOT_IMPLEMENTED;
}

abi_enum miopen_use_convolution(const struct miopenConvolutionDescriptor *convolution) {
  abi_enum status = use(convolution, convolution_kind, convolution ? &convolution->finished : NULL, "the convolution");
  return status ? status : convolution->transposed ? MIOPEN_ABI_NOT_IMPLEMENTED : 0;
}

abi_enum miopen_use_pooling(const struct miopenPoolingDescriptor *pooling) {
  return use(pooling, pooling_kind, pooling ? &pooling->finished : NULL, "the pooling");
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Tensors
 */

static bool known_type(abi_enum type, sim_type *known) {
  switch (type) {
  case MIOPEN_ABI_HALF:
    *known = SIM_FLOAT16;
    return true;
  case MIOPEN_ABI_FLOAT:
    *known = SIM_FLOAT32;
    return true;
  case MIOPEN_ABI_BFLOAT16:
    *known = SIM_BFLOAT16;
    return true;
  case MIOPEN_ABI_DOUBLE:
    *known = SIM_FLOAT64;
    return true;
  case MIOPEN_ABI_INT32:
  case MIOPEN_ABI_INT8:
    *known = SIM_NO_TYPE;
    return true; /* described, but computed by nothing here */
  default:
    return false;
  }
}

static abi_enum set(struct miopenTensorDescriptor *tensor, abi_enum type, int rank, const int *dims,
                    const int *strides) {
  sim_type known;
  if (!tensor || !sim_check(tensor, tensor_kind)) return MIOPEN_ABI_BAD_PARM;
  if (!dims || rank <= 0 || rank > MOST_DIMS) return MIOPEN_ABI_INVALID_VALUE;
  if (!known_type(type, &known)) return MIOPEN_ABI_BAD_PARM;
  for (int i = 0; i < rank; i++)
    if (dims[i] <= 0 || (strides && strides[i] <= 0)) return MIOPEN_ABI_BAD_PARM;
  if (rank == 4 && !sim_is_countable(dims, strides)) return MIOPEN_ABI_BAD_PARM;
  tensor->finished = true;
  tensor->rank = rank;
  tensor->tensor = (sim_tensor){.type = known};
  if (rank != 4) return 0;
  for (int i = 0; i < 4; i++) {
    tensor->tensor.dims[i] = dims[i];
    if (strides) tensor->tensor.strides[i] = strides[i];
  }
  if (!strides) sim_tensor_pack(&tensor->tensor, false);
  return 0;
}

abi_enum miopenCreateTensorDescriptor(struct miopenTensorDescriptor **tensor) {
  SIM_CALL();
  if (!tensor) return MIOPEN_ABI_BAD_PARM;
  *tensor = sim_new(tensor_kind, sizeof **tensor, NULL);
  return 0;
}

abi_enum miopenDestroyTensorDescriptor(struct miopenTensorDescriptor *tensor) {
  SIM_CALL();
  return destroy(tensor, tensor_kind);
}

abi_enum miopenSet4dTensorDescriptor(struct miopenTensorDescriptor *tensor, abi_enum type, int n, int c, int h, int w) {
  SIM_CALL();
  return set(tensor, type, 4, (int[]){n, c, h, w}, NULL);
}

abi_enum miopenSet4dTensorDescriptorEx(struct miopenTensorDescriptor *tensor, abi_enum type, int n, int c, int h, int w,
                                       int n_stride, int c_stride, int h_stride, int w_stride) {
  SIM_CALL();
  return set(tensor, type, 4, (int[]){n, c, h, w}, (int[]){n_stride, c_stride, h_stride, w_stride});
}

/* The sizes are n, c, h, w in either layout. */
abi_enum miopenSetNdTensorDescriptorWithLayout(struct miopenTensorDescriptor *tensor, abi_enum type, abi_enum layout,
                                               const int *dims, int rank) {
  SIM_CALL();
  if (layout > MIOPEN_ABI_NHWC || rank != 4) return MIOPEN_ABI_BAD_PARM;
  abi_enum status = set(tensor, type, rank, dims, NULL);
  if (!status) sim_tensor_pack(&tensor->tensor, layout == MIOPEN_ABI_NHWC);
  return status;
}

abi_enum miopenSetTensorDescriptor(struct miopenTensorDescriptor *tensor, abi_enum type, int rank, const int *dims,
                                   const int *strides) {
  SIM_CALL();
  return set(tensor, type, rank, dims, strides);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Convolutions
 */

abi_enum miopenCreateConvolutionDescriptor(struct miopenConvolutionDescriptor **convolution) {
  SIM_CALL();
  if (!convolution) return MIOPEN_ABI_BAD_PARM;
  *convolution = sim_new(convolution_kind, sizeof **convolution, NULL);
  (*convolution)->convolution.groups = 1;
  return 0;
}

abi_enum miopenDestroyConvolutionDescriptor(struct miopenConvolutionDescriptor *convolution) {
  SIM_CALL();
  return destroy(convolution, convolution_kind);
}

/* A new description: groups and attributes are as they were at first. */
abi_enum miopenInitConvolutionDescriptor(struct miopenConvolutionDescriptor *convolution, abi_enum mode, int pad_h,
                                         int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w) {
  SIM_CALL();
  if (!convolution || !sim_check(convolution, convolution_kind)) return MIOPEN_ABI_BAD_PARM;
  if (mode > MIOPEN_ABI_TRANSPOSE || pad_h < 0 || pad_w < 0) return MIOPEN_ABI_BAD_PARM;
  if (stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1) return MIOPEN_ABI_BAD_PARM;
  convolution->finished = true;
  convolution->transposed = mode == MIOPEN_ABI_TRANSPOSE;
  convolution->deterministic = false;
  convolution->alternative_half = -1;
  convolution->convolution = (sim_convolution){
      .pad = {pad_h, pad_w}, .stride = {stride_h, stride_w}, .dilation = {dilation_h, dilation_w}, .groups = 1};
  return 0;
}

abi_enum miopenSetConvolutionGroupCount(struct miopenConvolutionDescriptor *convolution, int groups) {
  SIM_CALL();
  if (!convolution || !sim_check(convolution, convolution_kind) || groups < 1) return MIOPEN_ABI_BAD_PARM;
  convolution->convolution.groups = groups;
  return 0;
}

abi_enum miopenSetConvolutionAttribute(struct miopenConvolutionDescriptor *convolution, abi_enum attribute, int value) {
  SIM_CALL();
  if (!convolution || !sim_check(convolution, convolution_kind)) return MIOPEN_ABI_BAD_PARM;
  if (attribute == MIOPEN_ABI_ATTRIBUTE_ALTERNATIVE_HALF && value >= -1 && value <= 1) {
    convolution->alternative_half = value;
    return 0;
  }
  if (attribute != MIOPEN_ABI_ATTRIBUTE_DETERMINISTIC || value < 0 || value > 1) return MIOPEN_ABI_BAD_PARM;
  convolution->deterministic = value == 1;
  return 0;
}

/* Where nothing fits MIOpen answers 1, and the calls that follow read beyond the input. */
static abi_enum write_size(const sim_tensor *x, const int *window, const int *pad, const int *stride,
                           const int *dilation, int *out_h, int *out_w) {
  int *out[] = {out_h, out_w};
  for (int i = 0; i < 2; i++) {
    int64_t size = sim_convolution_size(x->dims[2 + i], window[i], pad[i], stride[i], dilation[i]);
    if (size <= 0 || size > INT_MAX) {
      sim_violation("shapes do not fit", "a window of %d does not fit into %d with padding %d", window[i],
                    x->dims[2 + i], pad[i]);
      return MIOPEN_ABI_BAD_PARM;
    }
    *out[i] = (int)size;
  }
  return 0;
}

abi_enum miopenGetConvolutionForwardOutputDim(struct miopenConvolutionDescriptor *convolution,
                                              struct miopenTensorDescriptor *x, struct miopenTensorDescriptor *w,
                                              int *out_n, int *out_c, int *out_h, int *out_w) {
  SIM_CALL();
  abi_enum status = miopen_use_convolution(convolution);
  if (!status) status = miopen_use_tensor(x, "x");
  if (!status) status = miopen_use_tensor(w, "w");
  if (status) return status;
  const sim_convolution *c = &convolution->convolution;
  if (!out_n || !out_c || !out_h || !out_w || x->tensor.type != w->tensor.type ||
      x->tensor.dims[1] != (int64_t)w->tensor.dims[1] * c->groups || w->tensor.dims[0] % c->groups)
    return MIOPEN_ABI_BAD_PARM;
  *out_n = x->tensor.dims[0];
  *out_c = w->tensor.dims[0];
  return write_size(&x->tensor, w->tensor.dims + 2, c->pad, c->stride, c->dilation, out_h, out_w);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Pooling
 */

abi_enum miopenCreatePoolingDescriptor(struct miopenPoolingDescriptor **pooling) {
  SIM_CALL();
  if (!pooling) return MIOPEN_ABI_BAD_PARM;
  *pooling = sim_new(pooling_kind, sizeof **pooling, NULL);
  (*pooling)->pooling.index_bytes = 1;
  return 0;
}

abi_enum miopenDestroyPoolingDescriptor(struct miopenPoolingDescriptor *pooling) {
  SIM_CALL();
  return destroy(pooling, pooling_kind);
}

/* A new description, with indices of 8 bits. */
abi_enum miopenSet2dPoolingDescriptor(struct miopenPoolingDescriptor *pooling, abi_enum mode, int window_h,
                                      int window_w, int pad_h, int pad_w, int stride_h, int stride_w) {
  static const sim_pooling_mode modes[] = {SIM_POOL_MAX, SIM_POOL_AVERAGE, SIM_POOL_AVERAGE_WITH_PADDING};
  SIM_CALL();
  if (!pooling || !sim_check(pooling, pooling_kind)) return MIOPEN_ABI_BAD_PARM;
  if (mode > MIOPEN_ABI_POOLING_AVERAGE_WITH_PADDING || window_h < 1 || window_w < 1 || pad_h < 0 || pad_w < 0 ||
      stride_h < 1 || stride_w < 1)
    return MIOPEN_ABI_BAD_PARM;
  pooling->finished = true;
  pooling->pooling = (sim_pooling){.mode = modes[mode],
                                   .deterministic = true,
                                   .window = {window_h, window_w},
                                   .pad = {pad_h, pad_w},
                                   .stride = {stride_h, stride_w},
                                   .index_bytes = 1};
  return 0;
}

abi_enum miopenSetPoolingIndexType(struct miopenPoolingDescriptor *pooling, abi_enum type) {
  SIM_CALL();
  if (!pooling || !sim_check(pooling, pooling_kind) || type > MIOPEN_ABI_INDEX_UINT64) return MIOPEN_ABI_BAD_PARM;
  pooling->pooling.index_bytes = (size_t)1 << type;
  return 0;
}

abi_enum miopenGetPoolingForwardOutputDim(struct miopenPoolingDescriptor *pooling, struct miopenTensorDescriptor *x,
                                          int *out_n, int *out_c, int *out_h, int *out_w) {
  SIM_CALL();
  abi_enum status = miopen_use_pooling(pooling);
  if (!status) status = miopen_use_tensor(x, "x");
  if (status) return status;
  if (!out_n || !out_c || !out_h || !out_w) return MIOPEN_ABI_BAD_PARM;
  *out_n = x->tensor.dims[0];
  *out_c = x->tensor.dims[1];
  const sim_pooling *p = &pooling->pooling;
  return write_size(&x->tensor, p->window, p->pad, p->stride, (int[]){1, 1}, out_h, out_w);
}
