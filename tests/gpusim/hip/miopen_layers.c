/* SPDX-License-Identifier: Apache-2.0 */
/* libMIOpen.so: pooling and softmax. */
#include "miopen_face.h"

/* ---------------------------------------------------------------------------------------------------------------------
 * Pooling
 */

/* Indices of maxima come first. Other layouts than NCHW are transposed, in more of the workspace. */
static size_t workspace_of(const sim_pooling *pooling, const sim_tensor *y) {
  size_t indices = sim_pooling_workspace(pooling, y);
  return indices + (sim_tensor_is_packed(y, false) ? 0 : 3 * sim_tensor_count(y) * sim_type_bytes(y->type));
}

abi_enum miopenPoolingGetWorkSpaceSizeV2(struct miopenPoolingDescriptor *pooling, struct miopenTensorDescriptor *y,
                                         size_t *bytes) {
  SIM_CALL();
  abi_enum status = miopen_use_pooling(pooling);
  if (!status) status = miopen_use_tensor(y, "y");
  if (status) return status;
  if (!bytes) return MIOPEN_ABI_BAD_PARM;
  *bytes = workspace_of(&pooling->pooling, &y->tensor);
  return 0;
}

static abi_enum check_shapes(const struct miopenPoolingDescriptor *pooling, const struct miopenTensorDescriptor *x,
                             const struct miopenTensorDescriptor *y) {
  if (x->tensor.type != y->tensor.type) return MIOPEN_ABI_BAD_PARM;
  if (sim_pooling_fits(&pooling->pooling, &x->tensor, &y->tensor)) return 0;
  sim_violation("shapes do not fit", "x of %d by %d does not become y of %d by %d", x->tensor.dims[2],
                x->tensor.dims[3], y->tensor.dims[2], y->tensor.dims[3]);
  return MIOPEN_ABI_BAD_PARM;
}

/* The greatest index says that there is none. */
static abi_enum check_index(const sim_pooling *pooling) {
  uint64_t greatest = UINT64_MAX >> (64 - 8 * pooling->index_bytes);
  uint64_t window = (uint64_t)pooling->window[0] * (uint64_t)pooling->window[1];
  if (window < greatest) return 0;
  sim_violation("index type too small", "a window of %d by %d has more places than an index of %zu bytes can tell",
                pooling->window[0], pooling->window[1], pooling->index_bytes);
  return MIOPEN_ABI_UNKNOWN_ERROR;
}

static abi_enum check_workspace(size_t wanted, const void *workspace, size_t bytes) {
  if (!wanted || (workspace && bytes >= wanted)) return 0;
  sim_violation("workspace too small", "pooling wants %zu bytes and has %zu", wanted, workspace ? bytes : 0);
  return MIOPEN_ABI_UNKNOWN_ERROR;
}

abi_enum miopenPoolingForward(struct miopenHandle *handle, struct miopenPoolingDescriptor *pooling, const void *alpha,
                              struct miopenTensorDescriptor *x_tensor, const void *x, const void *beta,
                              struct miopenTensorDescriptor *y_tensor, void *y, bool do_backward, void *workspace,
                              size_t bytes) {
  SIM_CALL();
  sim_place place;
  abi_enum status = miopen_enter(handle, __func__, &place);
  if (!status) status = miopen_use_pooling(pooling);
  if (!status) status = miopen_use_tensor(x_tensor, "x");
  if (!status) status = miopen_use_tensor(y_tensor, "y");
  if (!status) status = check_shapes(pooling, x_tensor, y_tensor);
  if (!status && (!x || !y)) status = MIOPEN_ABI_BAD_PARM;
  if (!status) status = miopen_one_and_zero(x_tensor->tensor.type, alpha, beta);
  if (status) return status;
  sim_pooling_call call = {.pooling = pooling->pooling, .x = x_tensor->tensor, .y = y_tensor->tensor, .alpha = 1};
  call.x_data = x;
  call.y_data = y;
  bool keeps = do_backward && call.pooling.mode == SIM_POOL_MAX;
  if (keeps) status = check_index(&call.pooling);
  size_t wanted = workspace_of(&call.pooling, &call.y);
  if (!keeps) wanted -= sim_pooling_workspace(&call.pooling, &call.y);
  if (!status) status = check_workspace(wanted, workspace, bytes);
  if (keeps) call.workspace = workspace;
  if (!status) status = miopen_status(sim_count(SIM_LIBRARY, place.device));
  return status ? status : miopen_status(sim_pooling_queue(&place, &call));
}

/* The gradients are as large as what they are gradients of. */
static abi_enum check_gradient(const struct miopenTensorDescriptor *gradient, const struct miopenTensorDescriptor *of,
                               const char *what) {
  if (gradient->tensor.type == of->tensor.type && sim_tensor_has_dims(&gradient->tensor, of->tensor.dims)) return 0;
  sim_violation("shapes do not fit", "the gradient of %s differs from it in shape or type", what);
  return MIOPEN_ABI_BAD_PARM;
}

static abi_enum queue_backward(const sim_place *place, const sim_pooling *pooling, sim_pooling_call *call,
                               void *workspace) {
  call->backward = true;
  call->pooling = *pooling;
  call->alpha = 1;
  if (pooling->mode == SIM_POOL_MAX) {
    if (!workspace) {
      sim_violation("workspace without its forward pass", "the backward pass of a maximum needs it");
      return MIOPEN_ABI_UNKNOWN_ERROR;
    }
    call->workspace = workspace;
  }
  sim_status status = sim_count(SIM_LIBRARY, place->device);
  return miopen_status(status ? status : sim_pooling_queue(place, call));
}

abi_enum miopenPoolingBackward(struct miopenHandle *handle, struct miopenPoolingDescriptor *pooling, const void *alpha,
                               struct miopenTensorDescriptor *y_tensor, const void *y,
                               struct miopenTensorDescriptor *dy_tensor, const void *dy,
                               struct miopenTensorDescriptor *x_tensor, const void *x, const void *beta,
                               struct miopenTensorDescriptor *dx_tensor, void *dx, void *workspace) {
  SIM_CALL();
  sim_place place;
  abi_enum status = miopen_enter(handle, __func__, &place);
  if (!status) status = miopen_use_pooling(pooling);
  if (!status) status = miopen_use_tensor(y_tensor, "y");
  if (!status) status = miopen_use_tensor(dy_tensor, "dy");
  if (!status) status = miopen_use_tensor(x_tensor, "x");
  if (!status) status = miopen_use_tensor(dx_tensor, "dx");
  if (!status) status = check_shapes(pooling, x_tensor, y_tensor);
  if (!status) status = check_gradient(dx_tensor, x_tensor, "x");
  if (!status) status = check_gradient(dy_tensor, y_tensor, "y");
  if (!status && (!x || !y || !dx || !dy)) status = MIOPEN_ABI_BAD_PARM;
  if (!status) status = miopen_one_and_zero(x_tensor->tensor.type, alpha, beta);
  if (status) return status;
  sim_pooling_call call = {.x = x_tensor->tensor, .y = y_tensor->tensor, .x_data = x, .y_data = y};
  call.dx = dx_tensor->tensor;
  call.dy = dy_tensor->tensor;
  call.dx_data = dx;
  call.dy_data = dy;
  return queue_backward(&place, &pooling->pooling, &call, workspace);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Softmax
 */

static abi_enum check_softmax(const struct miopenTensorDescriptor *tensor, const sim_tensor *like, const char *what) {
  abi_enum status = miopen_use_tensor(tensor, what);
  if (status) return status;
  if (tensor->tensor.type == SIM_BFLOAT16 || tensor->tensor.type == SIM_FLOAT64) return MIOPEN_ABI_NOT_IMPLEMENTED;
  if (!like || (tensor->tensor.type == like->type && sim_tensor_has_dims(like, tensor->tensor.dims))) return 0;
  sim_violation("shapes do not fit", "%s differs from the other tensors of softmax in shape or type", what);
  return MIOPEN_ABI_BAD_PARM;
}

static abi_enum queue_softmax(const sim_place *place, abi_enum algorithm, abi_enum mode, const void *alpha,
                              const void *beta, sim_softmax *call) {
  if (algorithm > MIOPEN_ABI_SOFTMAX_LOG || mode > MIOPEN_ABI_SOFTMAX_CHANNEL) return MIOPEN_ABI_BAD_PARM;
  if (!call->in_data || !call->out_data || (call->backward && !call->gradient_data)) return MIOPEN_ABI_BAD_PARM;
  if (!sim_scalar(alpha, false, "alpha", &call->alpha) || !sim_scalar(beta, false, "beta", &call->beta))
    return MIOPEN_ABI_BAD_PARM;
  call->algorithm = (sim_softmax_algorithm)algorithm; /* the same numbers */
  call->by_channel = mode == MIOPEN_ABI_SOFTMAX_CHANNEL;
  sim_status status = sim_count(SIM_LIBRARY, place->device);
  return miopen_status(status ? status : sim_softmax_queue(place, call));
}

abi_enum miopenSoftmaxForward_V2(struct miopenHandle *handle, const void *alpha,
                                 struct miopenTensorDescriptor *x_tensor, const void *x, const void *beta,
                                 struct miopenTensorDescriptor *y_tensor, void *y, abi_enum algorithm, abi_enum mode) {
  SIM_CALL();
  sim_place place;
  abi_enum status = miopen_enter(handle, __func__, &place);
  if (!status) status = check_softmax(x_tensor, NULL, "x");
  if (!status) status = check_softmax(y_tensor, &x_tensor->tensor, "y");
  if (status) return status;
  sim_softmax call = {.in = x_tensor->tensor, .out = y_tensor->tensor, .in_data = x, .out_data = y};
  return queue_softmax(&place, algorithm, mode, alpha, beta, &call);
}

abi_enum miopenSoftmaxBackward_V2(struct miopenHandle *handle, const void *alpha,
                                  struct miopenTensorDescriptor *y_tensor, const void *y,
                                  struct miopenTensorDescriptor *dy_tensor, const void *dy, const void *beta,
                                  struct miopenTensorDescriptor *dx_tensor, void *dx, abi_enum algorithm,
                                  abi_enum mode) {
  SIM_CALL();
  sim_place place;
  abi_enum status = miopen_enter(handle, __func__, &place);
  if (!status) status = check_softmax(y_tensor, NULL, "y");
  if (!status) status = check_softmax(dy_tensor, &y_tensor->tensor, "dy");
  if (!status) status = check_softmax(dx_tensor, &y_tensor->tensor, "dx");
  if (status) return status;
  sim_softmax call = {.backward = true, .in = y_tensor->tensor, .in_data = y, .out = dx_tensor->tensor, .out_data = dx};
  call.gradient = dy_tensor->tensor;
  call.gradient_data = dy;
  return queue_softmax(&place, algorithm, mode, alpha, beta, &call);
}
