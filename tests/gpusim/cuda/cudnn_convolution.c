/* SPDX-License-Identifier: Apache-2.0 */
/* libcudnn.so: convolutions and their gradients. Three directions share everything but the order of their arguments. */
#include "cudnn_face.h"

/* The descriptors of a problem, each under the name that it has in the forward direction. */
typedef struct problem {
  sim_direction direction;
  const struct cudnnTensorStruct *x, *y;
  const struct cudnnFilterStruct *w;
  const struct cudnnConvolutionStruct *convolution;
} problem;

static abi_enum not_supported(const char *why) {
  return cudnn_fail(CUDNN_ABI_NOT_SUPPORTED, "%s", why);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Is it a problem that cuDNN can solve?
 */

static abi_enum check_types(const problem *p) {
  sim_type type = p->x->tensor.type;
  if (p->x->type != p->w->type || p->x->type != p->y->type) return not_supported("x, w and y differ in their types");
  if (type == SIM_NO_TYPE) return not_supported("gpusim knows no convolution of this type");
  abi_enum compute = p->convolution->compute;
  bool fits = type == SIM_FLOAT64   ? compute == CUDNN_ABI_DOUBLE
              : type == SIM_FLOAT16 ? compute == CUDNN_ABI_FLOAT || compute == CUDNN_ABI_HALF
                                    : compute == CUDNN_ABI_FLOAT;
  return fits ? 0 : not_supported("this type is not computed in the type that the convolution says");
}

/* x and y lie as the filter does. Of those with gaps only the order of the dimensions is asked for. */
static abi_enum check_layout(const problem *p) {
  const sim_tensor *tensors[] = {&p->x->tensor, &p->y->tensor};
  for (int i = 0; i < 2; i++) {
    if (!sim_tensor_is_distinct(tensors[i])) return not_supported("a tensor with elements in one place");
    bool first = sim_tensor_is_packed(tensors[i], false), last = sim_tensor_is_packed(tensors[i], true);
    if (p->w->format == CUDNN_ABI_NHWC && !last) return not_supported("the filter is NHWC, but x or y is not");
    if (p->w->format == CUDNN_ABI_NCHW && last && !first) return not_supported("the filter is NCHW, but x or y is not");
  }
  return 0;
}

static abi_enum check(const problem *p, sim_convolution_call *call) {
  abi_enum status = cudnn_use_tensor(p->x, p->direction == SIM_BACKWARD_DATA ? "dx" : "x");
  if (!status) status = cudnn_use_filter(p->w, p->direction == SIM_BACKWARD_FILTER ? "dw" : "w");
  if (!status) status = cudnn_use_convolution(p->convolution);
  if (!status) status = cudnn_use_tensor(p->y, p->direction == SIM_FORWARD ? "y" : "dy");
  if (status) return status;
  if (p->x->rank != 4 || p->y->rank != 4) return cudnn_fail(CUDNN_ABI_BAD_PARAM, "a tensor without 4 dimensions");
  if (!sim_convolution_fits(&p->convolution->convolution, &p->x->tensor, &p->w->tensor, &p->y->tensor))
    return cudnn_fail(CUDNN_ABI_BAD_PARAM, "the shapes of x, w and y do not fit each other");
  status = check_types(p);
  if (!status) status = check_layout(p);
  *call = (sim_convolution_call){.direction = p->direction,
                                 .convolution = p->convolution->convolution,
                                 .x = p->x->tensor,
                                 .w = p->w->tensor,
                                 .y = p->y->tensor};
  return status;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Queries
 */

static abi_enum list(const char *name, struct cudnnContext *handle, const problem *p, int wanted, int *count,
                     void *results) {
  sim_place place;
  sim_convolution_call call;
  abi_enum status = cudnn_enter(handle, name, &place);
  if (!status && (wanted < 1 || !count || !results))
    status = cudnn_fail(CUDNN_ABI_BAD_PARAM, "there is no place for the results");
  if (!status) status = check(p, &call);
  if (!status) *count = cudnn_list(&call, p->convolution->math, wanted, results);
  return status;
}

abi_enum cudnnGetConvolutionForwardAlgorithm_v7(struct cudnnContext *handle, struct cudnnTensorStruct *x,
                                                struct cudnnFilterStruct *w, struct cudnnConvolutionStruct *convolution,
                                                struct cudnnTensorStruct *y, int wanted, int *count,
                                                struct cudnnConvolutionFwdAlgoPerfStruct *results) {
  SIM_CALL();
  return list(__func__, handle, &(problem){SIM_FORWARD, x, y, w, convolution}, wanted, count, results);
}

abi_enum cudnnGetConvolutionBackwardDataAlgorithm_v7(struct cudnnContext *handle, struct cudnnFilterStruct *w,
                                                     struct cudnnTensorStruct *dy,
                                                     struct cudnnConvolutionStruct *convolution,
                                                     struct cudnnTensorStruct *dx, int wanted, int *count,
                                                     struct cudnnConvolutionBwdDataAlgoPerfStruct *results) {
  SIM_CALL();
  return list(__func__, handle, &(problem){SIM_BACKWARD_DATA, dx, dy, w, convolution}, wanted, count, results);
}

abi_enum cudnnGetConvolutionBackwardFilterAlgorithm_v7(struct cudnnContext *handle, struct cudnnTensorStruct *x,
                                                       struct cudnnTensorStruct *dy,
                                                       struct cudnnConvolutionStruct *convolution,
                                                       struct cudnnFilterStruct *dw, int wanted, int *count,
                                                       struct cudnnConvolutionBwdFilterAlgoPerfStruct *results) {
  SIM_CALL();
  return list(__func__, handle, &(problem){SIM_BACKWARD_FILTER, x, dy, dw, convolution}, wanted, count, results);
}

static abi_enum size(const char *name, struct cudnnContext *handle, const problem *p, abi_enum algorithm,
                     size_t *bytes) {
  sim_place place;
  sim_convolution_call call;
  abi_enum status = cudnn_enter(handle, name, &place);
  if (!status && !bytes) status = cudnn_fail(CUDNN_ABI_BAD_PARAM, "there is no place for the size");
  if (!status) status = check(p, &call);
  if (status) return status;
  cudnn_algorithm judged = cudnn_judge(&call, p->convolution->math, algorithm);
  if (judged.status) return cudnn_fail(judged.status, "algorithm %u does not take this problem", algorithm);
  *bytes = judged.workspace;
  return 0;
}

abi_enum cudnnGetConvolutionForwardWorkspaceSize(struct cudnnContext *handle, struct cudnnTensorStruct *x,
                                                 struct cudnnFilterStruct *w,
                                                 struct cudnnConvolutionStruct *convolution,
                                                 struct cudnnTensorStruct *y, abi_enum algorithm, size_t *bytes) {
  SIM_CALL();
  return size(__func__, handle, &(problem){SIM_FORWARD, x, y, w, convolution}, algorithm, bytes);
}

abi_enum cudnnGetConvolutionBackwardDataWorkspaceSize(struct cudnnContext *handle, struct cudnnFilterStruct *w,
                                                      struct cudnnTensorStruct *dy,
                                                      struct cudnnConvolutionStruct *convolution,
                                                      struct cudnnTensorStruct *dx, abi_enum algorithm, size_t *bytes) {
  SIM_CALL();
  return size(__func__, handle, &(problem){SIM_BACKWARD_DATA, dx, dy, w, convolution}, algorithm, bytes);
}

abi_enum cudnnGetConvolutionBackwardFilterWorkspaceSize(struct cudnnContext *handle, struct cudnnTensorStruct *x,
                                                        struct cudnnTensorStruct *dy,
                                                        struct cudnnConvolutionStruct *convolution,
                                                        struct cudnnFilterStruct *dw, abi_enum algorithm,
                                                        size_t *bytes) {
  SIM_CALL();
  return size(__func__, handle, &(problem){SIM_BACKWARD_FILTER, x, dy, dw, convolution}, algorithm, bytes);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Doing it
 */

/* What a query would have told, a program must follow: what works with one device and version does not with another. */
static abi_enum check_algorithm(const problem *p, abi_enum algorithm, sim_convolution_call *call) {
  cudnn_algorithm judged = cudnn_judge(call, p->convolution->math, algorithm);
  if (judged.status) {
    sim_violation("algorithm not listed", "algorithm %u is not one of those that a query lists for this problem",
                  algorithm);
    return cudnn_fail(judged.status, "algorithm %u does not take this problem", algorithm);
  }
  if (judged.math != p->convolution->math) {
    sim_violation("math type not set", "algorithm %u is listed with the math type %u, but the descriptor says %u",
                  algorithm, judged.math, p->convolution->math);
    return not_supported("the math type of the descriptor is not that of the list");
  }
  if (judged.workspace && (!call->workspace || call->workspace_bytes < judged.workspace)) {
    sim_violation("workspace too small", "algorithm %u wants %zu bytes and has %zu", algorithm, judged.workspace,
                  call->workspace ? call->workspace_bytes : 0);
    return cudnn_fail(CUDNN_ABI_BAD_PARAM, "the workspace is too small");
  }
  call->workspace_wanted = judged.workspace;
  call->deterministic = judged.deterministic;
  call->rounding = judged.math != CUDNN_ABI_FMA_MATH && call->x.type == SIM_FLOAT32 ? SIM_ROUND_TF32 : SIM_EXACT;
  return 0;
}

/* The memory of a call. */
typedef struct memory {
  const void *x, *w, *y;
  void *workspace;
  size_t bytes;
} memory;

static abi_enum convolve(const char *name, struct cudnnContext *handle, const problem *p, abi_enum algorithm,
                         const memory *m, const void *alpha, const void *beta) {
  sim_place place;
  sim_convolution_call call;
  abi_enum status = cudnn_enter(handle, name, &place);
  if (!status) status = check(p, &call);
  if (!status && (!m->x || !m->w || !m->y)) status = cudnn_fail(CUDNN_ABI_BAD_PARAM, "x, w or y is NULL");
  if (!status) status = cudnn_scalars(call.x.type, alpha, beta, &call.alpha, &call.beta);
  if (status) return status;
  call.x_data = m->x;
  call.w_data = m->w;
  call.y_data = m->y;
  call.workspace = m->workspace;
  call.workspace_bytes = m->bytes;
  status = check_algorithm(p, algorithm, &call);
  if (!status) status = cudnn_status(sim_count(SIM_LIBRARY, place.device));
  return status ? status : cudnn_status(sim_convolution_queue(&place, &call));
}

abi_enum cudnnConvolutionForward(struct cudnnContext *handle, const void *alpha, struct cudnnTensorStruct *x_tensor,
                                 const void *x, struct cudnnFilterStruct *w_filter, const void *w,
                                 struct cudnnConvolutionStruct *convolution, abi_enum algorithm, void *workspace,
                                 size_t bytes, const void *beta, struct cudnnTensorStruct *y_tensor, void *y) {
  SIM_CALL();
  return convolve(__func__, handle, &(problem){SIM_FORWARD, x_tensor, y_tensor, w_filter, convolution}, algorithm,
                  &(memory){x, w, y, workspace, bytes}, alpha, beta);
}

abi_enum cudnnConvolutionBackwardData(struct cudnnContext *handle, const void *alpha,
                                      struct cudnnFilterStruct *w_filter, const void *w,
                                      struct cudnnTensorStruct *dy_tensor, const void *dy,
                                      struct cudnnConvolutionStruct *convolution, abi_enum algorithm, void *workspace,
                                      size_t bytes, const void *beta, struct cudnnTensorStruct *dx_tensor, void *dx) {
  SIM_CALL();
  return convolve(__func__, handle, &(problem){SIM_BACKWARD_DATA, dx_tensor, dy_tensor, w_filter, convolution},
                  algorithm, &(memory){dx, w, dy, workspace, bytes}, alpha, beta);
}

abi_enum cudnnConvolutionBackwardFilter(struct cudnnContext *handle, const void *alpha,
                                        struct cudnnTensorStruct *x_tensor, const void *x,
                                        struct cudnnTensorStruct *dy_tensor, const void *dy,
                                        struct cudnnConvolutionStruct *convolution, abi_enum algorithm, void *workspace,
                                        size_t bytes, const void *beta, struct cudnnFilterStruct *dw_filter, void *dw) {
  SIM_CALL();
  return convolve(__func__, handle, &(problem){SIM_BACKWARD_FILTER, x_tensor, dy_tensor, dw_filter, convolution},
                  algorithm, &(memory){x, dw, dy, workspace, bytes}, alpha, beta);
}

abi_enum cudnnConvolutionBackwardBias(struct cudnnContext *handle, const void *alpha,
                                      struct cudnnTensorStruct *dy_tensor, const void *dy, const void *beta,
                                      struct cudnnTensorStruct *db_tensor, void *db) {
  SIM_CALL();
  sim_place place;
  double alpha_value, beta_value;
  abi_enum status = cudnn_enter(handle, __func__, &place);
  if (!status) status = cudnn_use_tensor(dy_tensor, "dy");
  if (!status) status = cudnn_use_tensor(db_tensor, "db");
  if (status) return status;
  const sim_tensor *y = &dy_tensor->tensor, *b = &db_tensor->tensor;
  if (dy_tensor->rank != 4 || db_tensor->rank != 4 || dy_tensor->type != db_tensor->type || !dy || !db ||
      !sim_tensor_has_dims(b, (int[]){1, y->dims[1], 1, 1}))
    return cudnn_fail(CUDNN_ABI_BAD_PARAM, "db must have 1 by channels by 1 by 1 elements of the type of dy");
  if (y->type == SIM_NO_TYPE) return not_supported("gpusim knows no sum of this type");
  if (!sim_tensor_is_distinct(y) || !sim_tensor_is_distinct(b))
    return not_supported("a tensor with elements in one place");
  status = cudnn_scalars(y->type, alpha, beta, &alpha_value, &beta_value);
  if (!status) status = cudnn_status(sim_count(SIM_LIBRARY, place.device));
  return status ? status : cudnn_status(sim_bias_queue(&place, y, dy, b, db, alpha_value, beta_value));
}
