/* SPDX-License-Identifier: Apache-2.0 */
/* libcudnn.so: pooling and softmax. */
#include "cudnn_face.h"

#include <string.h>

static abi_enum bad(const char *why) {
  return cudnn_fail(CUDNN_ABI_BAD_PARAM, "%s", why);
}

/* Tensors that can be worked on: of 4 dimensions, a type that we know, each element in its place. */
static abi_enum use(const struct cudnnTensorStruct *tensor, const char *what) {
  abi_enum status = cudnn_use_tensor(tensor, what);
  if (status) return status;
  if (tensor->rank != 4) return bad("a tensor without 4 dimensions");
  if (tensor->tensor.type == SIM_NO_TYPE) return cudnn_fail(CUDNN_ABI_NOT_SUPPORTED, "gpusim does not know the type");
  if (!sim_tensor_is_distinct(&tensor->tensor))
    return cudnn_fail(CUDNN_ABI_NOT_SUPPORTED, "a tensor with elements in one place");
  return 0;
}

static bool are_alike(const struct cudnnTensorStruct *a, const struct cudnnTensorStruct *b) {
  return a->type == b->type && !memcmp(a->tensor.dims, b->tensor.dims, sizeof a->tensor.dims) &&
         !memcmp(a->tensor.strides, b->tensor.strides, sizeof a->tensor.strides);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Pooling
 */

static bool rows_are_dense(const sim_tensor *tensor) {
  return tensor->strides[3] == 1 || tensor->dims[3] == 1 || sim_tensor_is_packed(tensor, true);
}

static abi_enum check_pooling(const struct cudnnPoolingStruct *pooling, const struct cudnnTensorStruct *x,
                              const struct cudnnTensorStruct *y) {
  if (x->type != y->type) return bad("x and y differ in their types");
  if (!sim_pooling_fits(&pooling->pooling, &x->tensor, &y->tensor)) return bad("the shapes of x and y do not fit");
  if (!rows_are_dense(&x->tensor) || !rows_are_dense(&y->tensor))
    return cudnn_fail(CUDNN_ABI_NOT_SUPPORTED, "the elements of a row are not neighbours");
  return 0;
}

abi_enum cudnnPoolingForward(struct cudnnContext *handle, struct cudnnPoolingStruct *pooling, const void *alpha,
                             struct cudnnTensorStruct *x_tensor, const void *x, const void *beta,
                             struct cudnnTensorStruct *y_tensor, void *y) {
  SIM_CALL();
  sim_place place;
  abi_enum status = cudnn_enter(handle, __func__, &place);
  if (!status) status = cudnn_use_pooling(pooling);
  if (!status) status = use(x_tensor, "x");
  if (!status) status = use(y_tensor, "y");
  if (!status) status = check_pooling(pooling, x_tensor, y_tensor);
  if (!status && (!x || !y)) status = bad("x or y is NULL");
  if (status) return status;
  sim_pooling_call call = {.pooling = pooling->pooling, .x = x_tensor->tensor, .y = y_tensor->tensor};
  call.x_data = x;
  call.y_data = y;
  status = cudnn_scalars(call.x.type, alpha, beta, &call.alpha, &call.beta);
  if (!status) status = cudnn_status(sim_count(SIM_LIBRARY, place.device));
  return status ? status : cudnn_status(sim_pooling_queue(&place, &call));
}

abi_enum cudnnPoolingBackward(struct cudnnContext *handle, struct cudnnPoolingStruct *pooling, const void *alpha,
                              struct cudnnTensorStruct *y_tensor, const void *y, struct cudnnTensorStruct *dy_tensor,
                              const void *dy, struct cudnnTensorStruct *x_tensor, const void *x, const void *beta,
                              struct cudnnTensorStruct *dx_tensor, void *dx) {
  SIM_CALL();
  sim_place place;
  abi_enum status = cudnn_enter(handle, __func__, &place);
  if (!status) status = cudnn_use_pooling(pooling);
  if (!status) status = use(y_tensor, "y");
  if (!status) status = use(dy_tensor, "dy");
  if (!status) status = use(x_tensor, "x");
  if (!status) status = use(dx_tensor, "dx");
  if (!status) status = check_pooling(pooling, x_tensor, y_tensor);
  if (!status && (!are_alike(x_tensor, dx_tensor) || !are_alike(y_tensor, dy_tensor)))
    status = bad("dx must be like x, and dy like y, in shape, strides and type");
  if (!status && (!x || !y || !dx || !dy)) status = bad("x, y, dx or dy is NULL");
  if (status) return status;
  sim_pooling_call call = {.backward = true, .pooling = pooling->pooling};
  call.x = call.dx = x_tensor->tensor;
  call.y = call.dy = y_tensor->tensor;
  call.x_data = x;
  call.y_data = y;
  call.dx_data = dx;
  call.dy_data = dy;
  status = cudnn_scalars(call.x.type, alpha, beta, &call.alpha, &call.beta);
  if (!status) status = cudnn_status(sim_count(SIM_LIBRARY, place.device));
  return status ? status : cudnn_status(sim_pooling_queue(&place, &call));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Softmax
 */

static abi_enum queue_softmax(const sim_place *place, abi_enum algorithm, abi_enum mode, const void *alpha,
                              const void *beta, sim_softmax *call) {
  if (algorithm > CUDNN_ABI_SOFTMAX_LOG || mode > CUDNN_ABI_SOFTMAX_CHANNEL) return bad("no such algorithm or mode");
  call->algorithm = (sim_softmax_algorithm)algorithm; /* the same numbers */
  call->by_channel = mode == CUDNN_ABI_SOFTMAX_CHANNEL;
  if (!call->in_data || !call->out_data || (call->backward && !call->gradient_data)) return bad("a tensor is NULL");
  abi_enum status = cudnn_scalars(call->in.type, alpha, beta, &call->alpha, &call->beta);
  if (!status) status = cudnn_status(sim_count(SIM_LIBRARY, place->device));
  return status ? status : cudnn_status(sim_softmax_queue(place, call));
}

static bool have_one_shape(const struct cudnnTensorStruct *a, const struct cudnnTensorStruct *b) {
  return a->type == b->type && sim_tensor_has_dims(&a->tensor, b->tensor.dims);
}

abi_enum cudnnSoftmaxForward(struct cudnnContext *handle, abi_enum algorithm, abi_enum mode, const void *alpha,
                             struct cudnnTensorStruct *x_tensor, const void *x, const void *beta,
                             struct cudnnTensorStruct *y_tensor, void *y) {
  SIM_CALL();
  sim_place place;
  abi_enum status = cudnn_enter(handle, __func__, &place);
  if (!status) status = use(x_tensor, "x");
  if (!status) status = use(y_tensor, "y");
  if (!status && !have_one_shape(x_tensor, y_tensor)) status = bad("x and y differ in shape or type");
  if (status) return status;
  sim_softmax call = {.in = x_tensor->tensor, .out = y_tensor->tensor, .in_data = x, .out_data = y};
  return queue_softmax(&place, algorithm, mode, alpha, beta, &call);
}

abi_enum cudnnSoftmaxBackward(struct cudnnContext *handle, abi_enum algorithm, abi_enum mode, const void *alpha,
                              struct cudnnTensorStruct *y_tensor, const void *y, struct cudnnTensorStruct *dy_tensor,
                              const void *dy, const void *beta, struct cudnnTensorStruct *dx_tensor, void *dx) {
  SIM_CALL();
  sim_place place;
  abi_enum status = cudnn_enter(handle, __func__, &place);
  if (!status) status = use(y_tensor, "y");
  if (!status) status = use(dy_tensor, "dy");
  if (!status) status = use(dx_tensor, "dx");
  if (!status && (!have_one_shape(y_tensor, dy_tensor) || !have_one_shape(y_tensor, dx_tensor)))
    status = bad("y, dy and dx differ in shape or type");
  if (status) return status;
  sim_softmax call = {.backward = true,
                      .in = y_tensor->tensor,
                      .gradient = dy_tensor->tensor,
                      .out = dx_tensor->tensor,
                      .in_data = y,
                      .gradient_data = dy,
                      .out_data = dx};
  return queue_softmax(&place, algorithm, mode, alpha, beta, &call);
}
