/* SPDX-License-Identifier: Apache-2.0 */
/* What networks are made of: products, convolution, pooling, losses, normalization. */
#include "ops/options.h"
#include "ops/shape.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* ---- activations and biases inside other operations ---- */

/* Can a kernel apply it? */
static bool fusible(helio_activation activation) {
  return activation < HELIO_ELU && (hi_activation_by_output(activation) || !hi_tape_recording());
}

/* Runs a product whose third input is a bias. An activation whose gradient is written in x, which a fused operation
 * does not keep, runs as a row of its own while a tape records; so do activation and bias where the device would
 * otherwise not run the product. */
static helio_tensor *fused(hi_call *call, helio_tensor **inputs, uint32_t *activation) {
  helio_activation after = (helio_activation)*activation;
  if (after == HELIO_LINEAR || !fusible(after)) *activation = 0;
  if (after == HELIO_LINEAR || *activation) after = (helio_activation)0;
  if ((*activation || inputs[2]) && !hi_runs_where_wanted(call)) {
    helio_tensor *bias = inputs[2];
    after = (helio_activation)(*activation ? *activation : (uint32_t)after);
    *activation = 0;
    inputs[2] = NULL;
    helio_tensor *y = hi_dispatch_one(call);
    return helio_activate(bias ? helio_add(y, bias) : y, after);
  }
  helio_tensor *y = hi_dispatch_one(call);
  return after ? helio_activate(y, after) : y;
}

helio_tensor *helio_matmul_with(const helio_matmul_options *given) {
  helio_matmul_options o;
  if (!hi_options_enter("helio_matmul", &o, sizeof o, given)) return NULL;
  helio_tensor *inputs[] = {o.a, o.b, o.bias};
  hi_call call = {.row = hi_row_of(HELIO_OP_MATMUL), .inputs = inputs, .input_count = 3};
  call.attributes.matmul = (helio_matmul_attributes){.size = sizeof call.attributes.matmul,
                                                     .transpose_a = o.transpose_a,
                                                     .transpose_b = o.transpose_b,
                                                     .activation = (uint32_t)o.activation};
  return fused(&call, inputs, &call.attributes.matmul.activation);
}

/* ---- convolution ---- */

/* Numbers as given, 0 standing for a default; a second 0 for the first. */
static void two_numbers(const int *given, int otherwise, uint32_t *numbers) {
  numbers[0] = (uint32_t)(given[0] ? given[0] : otherwise);
  numbers[1] = given[1] ? (uint32_t)given[1] : numbers[0];
}

/* TensorFlow's rule for SAME: as many places as strides fit into the input, the odd element of padding behind. */
static void pad_same(int64_t extent, int64_t window, uint32_t stride, uint32_t dilation, uint32_t *padding) {
  if (stride == 0 || window < 1) return; /* the shape rule refuses it */
  int64_t places = (extent + stride - 1) / stride;
  int64_t total = (places - 1) * stride + (window - 1) * dilation + 1 - extent;
  if (total < 0) total = 0;
  padding[0] = (uint32_t)(total / 2);
  padding[1] = (uint32_t)(total - total / 2);
}

static bool sane_padding(helio_padding padding) {
  if (padding == 0 || padding == HELIO_VALID || padding == HELIO_SAME) return true;
  hi_fail(HELIO_INVALID_ARGUMENT, "padding %d is neither HELIO_VALID nor HELIO_SAME", (int)padding);
  return false;
}

static helio_tensor *convolve(const helio_nn_conv2d_options *o) {
  helio_tensor *inputs[] = {o->x, o->kernel, o->bias};
  hi_call call = {.row = hi_row_of(HELIO_OP_CONV2D), .inputs = inputs, .input_count = 3};
  helio_conv2d_attributes *how = &call.attributes.conv2d;
  how->size = sizeof *how;
  how->groups = (uint32_t)(o->groups ? o->groups : 1);
  how->activation = (uint32_t)o->activation;
  two_numbers(o->stride, 1, how->stride);
  two_numbers(o->dilation, 1, how->dilation);
  if (o->padding == HELIO_SAME && o->x && o->kernel && o->x->shape.rank == 4 && o->kernel->shape.rank == 4) {
    for (int i = 0; i < 2; i++) {
      pad_same(o->x->shape.extent[1 + i], o->kernel->shape.extent[i], how->stride[i], how->dilation[i],
               &how->padding[2 * i]);
    }
  }
  return fused(&call, inputs, &how->activation);
}

helio_tensor *helio_nn_conv2d_with(const helio_nn_conv2d_options *given) {
  helio_nn_conv2d_options o;
  if (!hi_options_enter("helio_nn_conv2d", &o, sizeof o, given) || !sane_padding(o.padding)) return NULL;
  return convolve(&o);
}

/* Steps are the width of images of height 1, which is a view. */
helio_tensor *helio_nn_conv1d_with(const helio_nn_conv2d_options *given) {
  helio_nn_conv2d_options o;
  if (!hi_options_enter("helio_nn_conv1d", &o, sizeof o, given) || !sane_padding(o.padding)) return NULL;
  if (!hi_tensor_usable(o.x, "Conv1D: input 0") || !hi_tensor_usable(o.kernel, "Conv1D: input 1")) return NULL;
  if (o.x->shape.rank != 3 || o.kernel->shape.rank != 3) {
    char x[HI_SHAPE_TEXT], kernel[HI_SHAPE_TEXT];
    hi_fail(HELIO_INVALID_ARGUMENT,
            "Conv1D: shapes %s and %s are not (batch, steps, channels) and (steps, channels, filters)",
            hi_shape_text(&o.x->shape, x), hi_shape_text(&o.kernel->shape, kernel));
    return NULL;
  }
  o.x = helio_expand_dims(o.x, 1);
  o.kernel = helio_expand_dims(o.kernel, 0);
  o.stride[1] = o.stride[0];
  o.dilation[1] = o.dilation[0];
  o.stride[0] = o.dilation[0] = 1;
  if (!o.stride[1]) o.stride[1] = 1;
  if (!o.dilation[1]) o.dilation[1] = 1;
  helio_tensor *y = o.x && o.kernel ? convolve(&o) : NULL;
  return y ? helio_squeeze(y, .axes = HELIO_AXES(1)) : NULL;
}

/* ---- pooling ---- */

static helio_tensor *pool(const char *function, helio_operation operation, const helio_nn_pool_options *given) {
  helio_nn_pool_options o;
  helio_tensor *outputs[HI_MAX_OUTPUTS];
  if (!hi_options_enter(function, &o, sizeof o, given) || !sane_padding(o.padding)) return NULL;
  hi_call call = {.row = hi_row_of(operation), .inputs = &o.x, .input_count = 1};
  if (!hi_tape_recording() && hi_row_outputs(call.row) > 1) call.no_outputs = 2; /* the winners are for the way back */
  helio_pool_attributes *how = &call.attributes.pool;
  how->size = sizeof *how;
  two_numbers(o.window, 2, how->window);
  for (int i = 0; i < 2; i++) how->stride[i] = (uint32_t)(o.stride[i] ? o.stride[i] : o.stride[0]);
  for (int i = 0; i < 2; i++) {
    if (!how->stride[i]) how->stride[i] = how->window[i];
    if (o.padding == HELIO_SAME && o.x && o.x->shape.rank == 4) {
      pad_same(o.x->shape.extent[1 + i], how->window[i], how->stride[i], 1, &how->padding[2 * i]);
    }
  }
  return hi_dispatch(&call, outputs) ? NULL : outputs[0];
}

helio_tensor *helio_nn_max_pool_with(const helio_nn_pool_options *options) {
  return pool("helio_nn_max_pool", HELIO_OP_MAX_POOL, options);
}

helio_tensor *helio_nn_average_pool_with(const helio_nn_pool_options *options) {
  return pool("helio_nn_average_pool", HELIO_OP_AVERAGE_POOL, options);
}

/* ---- losses ---- */

/* Rows of a matrix, whatever axes stand before the last; the losses get those axes back. */
static helio_tensor *row_losses(const char *function, helio_operation operation, helio_tensor *x,
                                helio_tensor *labels) {
  const hi_row *row = hi_row_of(operation);
  if (hi_enter(function) || !hi_tensor_usable(x, "input 0") || !hi_tensor_usable(labels, "input 1")) return NULL;
  bool sparse = operation == HELIO_OP_SPARSE_CROSS_ENTROPY;
  helio_shape rows = x->shape;
  if (rows.rank > 0) rows.extent[--rows.rank] = 0;
  if (x->shape.rank < 1 || !hi_shape_equal(&labels->shape, sparse ? &rows : &x->shape)) {
    char shape[HI_SHAPE_TEXT], label_shape[HI_SHAPE_TEXT];
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: shapes %s and %s do not go together", row->info.label,
            hi_shape_text(&x->shape, shape), hi_shape_text(&labels->shape, label_shape));
    return NULL;
  }
  int64_t count, classes = x->shape.extent[x->shape.rank - 1];
  hi_shape_elements(&rows, &count);
  helio_tensor *matrix = helio_reshape(x, HELIO_SHAPE(count, classes));
  helio_tensor *flat = helio_reshape(labels, sparse ? HELIO_SHAPE(count) : HELIO_SHAPE(count, classes));
  hi_call call = {.row = row, .inputs = (helio_tensor *[]){matrix, flat}, .input_count = 2};
  if (!hi_tape_recording()) call.no_outputs = 2; /* the gradient */
  helio_tensor *losses = helio_error_pending() ? NULL : hi_dispatch_one(&call);
  return losses ? helio_reshape(losses, rows) : NULL;
}

helio_tensor *helio_nn_sparse_cross_entropy(helio_tensor *x, helio_tensor *labels) {
  return row_losses(__func__, HELIO_OP_SPARSE_CROSS_ENTROPY, x, labels);
}

helio_tensor *helio_nn_cross_entropy(helio_tensor *x, helio_tensor *labels) {
  return row_losses(__func__, HELIO_OP_CROSS_ENTROPY, x, labels);
}

/* ---- normalization ---- */

helio_tensor *helio_nn_moments(helio_tensor *x, helio_tensor **variance) {
  hi_call call = {.row = hi_row_of(HELIO_OP_MOMENTS), .inputs = &x, .input_count = 1};
  helio_tensor *outputs[HI_MAX_OUTPUTS];
  if (hi_enter(__func__) || hi_dispatch(&call, outputs)) return NULL;
  if (variance) *variance = outputs[1];
  return outputs[0];
}

helio_tensor *helio_nn_normalize(helio_tensor *x, helio_tensor *mean, helio_tensor *variance, helio_tensor *gamma,
                                 helio_tensor *beta, double epsilon) {
  hi_call call = {.row = hi_row_of(HELIO_OP_NORMALIZE),
                  .inputs = (helio_tensor *[]){x, mean, variance, gamma, beta},
                  .input_count = 5,
                  .scalars = {{.real = epsilon}}};
  return hi_enter(__func__) ? NULL : hi_dispatch_one(&call);
}

helio_tensor *helio_nn_layer_norm(helio_tensor *x, helio_tensor *gamma, helio_tensor *beta, double epsilon) {
  hi_call call = {.row = hi_row_of(HELIO_OP_LAYER_NORM),
                  .inputs = (helio_tensor *[]){x, gamma, beta},
                  .input_count = 3,
                  .no_outputs = hi_tape_recording() ? 0 : 6, /* mean and deviation are for the way back */
                  .scalars = {{.real = epsilon}}};
  return hi_enter(__func__) ? NULL : hi_dispatch_one(&call);
}
