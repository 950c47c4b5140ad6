/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d and its gradients by x and by the kernel: plans, and which way a run goes. */
#include "conv.h"

static void plan_free(helio_plan *base) {
  if (base == NULL) return;
  vendor_way_free(((gpu_conv_plan *)base)->library.way);
  gpu_plan_free(base);
}

/* A kernel of 1 × 1 that goes over every pixel: all pixels by channels of x, times channels of x by channels of y. */
static bool describe_product(gpu_conv_plan *plan) {
  const gpu_conv_shape *s = &plan->shape;
  bool one = s->kernel[0] == 1 && s->kernel[1] == 1 && s->stride[0] == 1 && s->stride[1] == 1 && s->groups == 1;
  bool padded = s->before[0] != 0 || s->before[1] != 0 || plan->behind[0] != 0 || plan->behind[1] != 0;
  int64_t positions = gpu_conv_positions(s), in = s->channels, out = s->out_channels;
  if (!one || padded) return false;
  plan->product = (vendor_product){.type = plan->type,
                                   .transpose_a = plan->direction == VENDOR_CONVOLVE_GRAD_KERNEL,
                                   .transpose_b = plan->direction == VENDOR_CONVOLVE_GRAD_INPUT,
                                   .reduced_precision = plan->reduced_precision,
                                   .nondeterministic = plan->nondeterministic,
                                   .batches = 1};
  vendor_product *p = &plan->product;
  p->m = plan->direction == VENDOR_CONVOLVE_GRAD_KERNEL ? in : positions;
  p->n = plan->direction == VENDOR_CONVOLVE_GRAD_INPUT ? in : out;
  p->k = plan->direction == VENDOR_CONVOLVE ? in : plan->direction == VENDOR_CONVOLVE_GRAD_INPUT ? out : positions;
  gpu_own_product_describe(&plan->own_product, p, plan->shape.activation);
  return vendor_blas_takes(plan->base.device->facts, p);
}

static helio_status product_run(gpu_conv_plan *plan, const helio_run *run, const gpu_conv_places *places) {
  bool to_input = plan->direction == VENDOR_CONVOLVE_GRAD_INPUT;
  bool to_kernel = plan->direction == VENDOR_CONVOLVE_GRAD_KERNEL;
  gpu_address a = to_input ? places->y : places->x, b = to_kernel ? places->y : places->kernel;
  gpu_address c = to_input ? places->x : to_kernel ? places->kernel : places->y;
  gpu_own_product *own = &plan->own_product;
  if (!atomic_load(&own->refused)) {
    vendor_blas *blas;
    helio_status status = gpu_stream_blas(run->stream, &blas);
    if (status == HELIO_OK) status = vendor_blas_multiply(blas, &plan->product, a, b, c);
    if (!gpu_library_refuses(plan->base.device, status, &vendor_blas_library, "a product of matrices", &own->refused))
      return status == HELIO_OK ? gpu_epilogue_run(&plan->base, run, &plan->epilogue, c, places->bias) : status;
  }
  return gpu_own_product_run(&plan->base, run, own, c, a, b, places->bias);
}

/* Finds a way to do it and what that needs. */
static helio_status find_way(gpu_conv_plan *plan) {
  helio_backend_device *device = plan->base.device;
  plan->epilogue = (gpu_epilogue){.count = gpu_conv_positions(&plan->shape) * plan->shape.out_channels,
                                  .columns = plan->shape.out_channels,
                                  .activation = plan->shape.activation};
  helio_status status = HELIO_OK;
  if (describe_product(plan)) status = gpu_blas_find(device, &plan->pointwise);
  if (status == HELIO_OK && !plan->pointwise) {
    status = gpu_conv_library_find(plan);
    if (status == HELIO_OK) status = gpu_conv_own_find(plan);
  }
  if (status == HELIO_OK && (plan->pointwise || plan->library.way != NULL))
    status = gpu_epilogue_find(device, plan->type, plan->has_bias, &plan->epilogue);
  return status;
}

/* `shapes` are x, kernel and y. */
static helio_status plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer,
                              vendor_direction direction, const helio_argument *const shapes[3],
                              const helio_argument *bias) {
  helio_conv2d_attributes attributes;
  helio_status status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status != HELIO_OK) return status;
  const helio_host *host = device->host;
  if (direction == VENDOR_CONVOLVE && attributes.activation > HELIO_GELU_TANH)
    return host->fail(host, HELIO_NOT_SUPPORTED, "CONV2D: activation %u is unknown here", attributes.activation);
  if (bias != NULL && (bias->rank != 1 || shapes[1]->rank != 4 || bias->extent[0] != shapes[1]->extent[3]))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "CONV2D: the bias has one element for each channel");
  gpu_conv_plan *plan = (gpu_conv_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->direction = direction;
  plan->has_bias = bias != NULL;
  plan->reduced_precision = (call->allowed & HELIO_ALLOWED_REDUCED_PRECISION) != 0;
  plan->nondeterministic = (call->allowed & HELIO_ALLOWED_NONDETERMINISTIC) != 0;
  status = gpu_conv_describe(plan, shapes[0], shapes[1], shapes[2], &attributes);
  if (direction == VENDOR_CONVOLVE) plan->shape.activation = attributes.activation;
  if (status == HELIO_OK && !plan->base.empty) status = find_way(plan);
  if (status != HELIO_OK) vendor_way_free(plan->library.way);
  size_t library = status == HELIO_OK ? gpu_conv_library_bytes(plan) : 0;
  return gpu_plan_finish(&plan->base, status, library > plan->own.bytes ? library : plan->own.bytes, answer);
}

static helio_status forward_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  static const call_signature signature = {"TTt", "T", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *const shapes[3] = {call_input(call, 0), call_input(call, 1), call_output(call)};
  return plan_make(device, call, answer, VENDOR_CONVOLVE, shapes, call_input(call, 2));
}

static helio_status grad_input_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  static const call_signature signature = {"TT", "T", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *const shapes[3] = {call_output(call), call_input(call, 1), call_input(call, 0)};
  return plan_make(device, call, answer, VENDOR_CONVOLVE_GRAD_INPUT, shapes, NULL);
}

static helio_status grad_kernel_plan(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  static const call_signature signature = {"TT", "T", CALL_FLOAT_TYPES};
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status != HELIO_OK) return status;
  const helio_argument *const shapes[3] = {call_input(call, 0), call_output(call), call_input(call, 1)};
  return plan_make(device, call, answer, VENDOR_CONVOLVE_GRAD_KERNEL, shapes, NULL);
}

static gpu_conv_places places_of(const gpu_conv_plan *plan, const helio_run *run) {
  gpu_address given[3];
  for (size_t i = 0; i < 3; i++) given[i] = gpu_run_address(run, i);
  gpu_conv_places places = {.workspace = gpu_run_workspace(run)};
  if (plan->direction == VENDOR_CONVOLVE) {
    places.x = given[0];
    places.kernel = given[1];
    places.bias = plan->has_bias ? given[2] : 0;
    places.y = gpu_run_address(run, 3);
  } else if (plan->direction == VENDOR_CONVOLVE_GRAD_INPUT) {
    places.y = given[0];
    places.kernel = given[1];
    places.x = given[2];
  } else {
    places.x = given[0];
    places.y = given[1];
    places.kernel = given[2];
  }
  return places;
}

static helio_status conv_run(helio_plan *base, const helio_run *run) {
  gpu_conv_plan *plan = (gpu_conv_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_conv_places places = places_of(plan, run);
  if (plan->pointwise) return product_run(plan, run, &places);
  if (gpu_conv_library_takes(plan, &places)) {
    status = gpu_conv_library_run(plan, run, &places);
    /* cuDNN's lists, and MIOpen's, have named algorithms that were refused when they were to run. */
    if (!gpu_library_refuses(base->device, status, &vendor_dnn_library, "a convolution that it had planned itself",
                             &plan->library.refused))
      return status;
  }
  return gpu_conv_own_run(plan, run, &places);
}

#define CONV_KERNEL(name, NAME, plan_function)                                                                         \
  const helio_kernel gpu_kernel_##name = {                                                                             \
      .size = sizeof(helio_kernel),                                                                                    \
      .operation = HELIO_OP_##NAME,                                                                                    \
      .types = CALL_FLOAT_TYPES,                                                                                       \
      .plan = plan_function,                                                                                           \
      .run = conv_run,                                                                                                 \
      .plan_free = plan_free,                                                                                          \
  }
CONV_KERNEL(conv2d, CONV2D, forward_plan);
CONV_KERNEL(conv2d_grad_input, CONV2D_GRAD_INPUT, grad_input_plan);
CONV_KERNEL(conv2d_grad_kernel, CONV2D_GRAD_KERNEL, grad_kernel_plan);
