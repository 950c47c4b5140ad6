/* SPDX-License-Identifier: Apache-2.0 */
/* matmul: products of the last two axes, batches broadcast. By the vendor's library where it has the type; then bias
 * and activation follow in a kernel of ours. Else, and where the library refuses it when it is to run, by a kernel of
 * ours that does all of it. */
#include "products.h"

#include <string.h>

typedef struct matmul_plan {
  helio_plan base;
  bool has_bias;       /* a bias is given */
  bool has_bias_place; /* there is a third input, be it absent */
  size_t element;      /* bytes */
  gpu_own_product own; /* batch axes from the outermost, joined where they can be */
  int64_t stride_c[HELIO_MAX_RANK];
  bool library;
  vendor_product product; /* along one batch axis, ... */
  int32_t batch_axis;     /* ... this one; −1: there is none */
  gpu_epilogue epilogue;
} matmul_plan;

/* The extent of a batch axis, counted from the right, in an operand; those it does not have count as 1. */
static int64_t batch_extent(const helio_argument *x, uint32_t from_right) {
  return from_right + 2 < x->rank ? x->extent[x->rank - 3 - from_right] : 1;
}

static bool batches_fit(const helio_argument *a, const helio_argument *b, const helio_argument *y) {
  uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
  if (y->rank != rank) return false;
  for (uint32_t i = 0; i + 2 < rank; i++) {
    int64_t in_a = batch_extent(a, i), in_b = batch_extent(b, i);
    if (y->extent[rank - 3 - i] != (in_a == 1 ? in_b : in_a) || (in_a != in_b && in_a != 1 && in_b != 1)) return false;
  }
  return true;
}

static bool shapes_fit(matmul_plan *plan, const helio_matmul_attributes *attributes,
                       const helio_argument *const given[3], const helio_argument *y) {
  const helio_argument *a = given[0], *b = given[1], *bias = given[2];
  if (a->rank < 2 || b->rank < 2 || y->rank < 2 || !batches_fit(a, b, y)) return false;
  const int64_t *of_a = a->extent + a->rank - 2, *of_b = b->extent + b->rank - 2, *of_y = y->extent + y->rank - 2;
  gpu_product_arguments *how = &plan->own.how;
  how->m = of_a[attributes->transpose_a];
  how->k = of_a[!attributes->transpose_a];
  how->n = of_b[!attributes->transpose_b];
  if (how->k != of_b[attributes->transpose_b]) return false;
  if (bias != NULL && (bias->rank != 1 || bias->extent[0] != how->n)) return false;
  return how->m == of_y[0] && how->n == of_y[1];
}

static helio_status check_attributes(helio_backend_device *device, const helio_matmul_attributes *attributes,
                                     uint32_t type) {
  const helio_host *host = device->host;
  if (attributes->reserved != 0) return host->fail(host, HELIO_NOT_SUPPORTED, "MATMUL: a reserved attribute is set");
  if (attributes->transpose_a > 1 || attributes->transpose_b > 1)
    return host->fail(host, HELIO_INVALID_ARGUMENT, "MATMUL: transposes are 0 or 1");
  bool real = type != HELIO_INT32 && type != HELIO_INT64;
  if (attributes->activation > (real ? HELIO_GELU_TANH : HELIO_RELU))
    return host->fail(host, HELIO_NOT_SUPPORTED, "MATMUL: activation %u is unknown here", attributes->activation);
  return HELIO_OK;
}

/* --- batches --- */

/* The strides of an operand along the axes of the result's batches, 0 where it is repeated. */
static void batch_strides(const helio_argument *operand, int64_t matrix, const helio_argument *y, gpu_axes *axes) {
  uint32_t rank = y->rank - 2;
  axes->rank = (int32_t)rank;
  for (uint32_t i = 0; i < rank; i++) {
    int64_t extent = batch_extent(operand, i);
    axes->extent[rank - 1 - i] = y->extent[rank - 1 - i];
    axes->stride[rank - 1 - i] = extent == 1 ? 0 : matrix;
    matrix *= extent;
  }
}

/* Joins an axis to the one outside of it where both operands go on as if they were one. */
static void join_axes(gpu_axes *a, gpu_axes *b) {
  int32_t kept = 0;
  for (int32_t i = 0; i < a->rank; i++) {
    int64_t extent = a->extent[i];
    if (extent == 1) continue;
    bool joined =
        kept > 0 && a->stride[kept - 1] == a->stride[i] * extent && b->stride[kept - 1] == b->stride[i] * extent;
    if (!joined) kept++;
    a->extent[kept - 1] = b->extent[kept - 1] = joined ? a->extent[kept - 1] * extent : extent;
    a->stride[kept - 1] = a->stride[i];
    b->stride[kept - 1] = b->stride[i];
  }
  a->rank = b->rank = kept;
}

static void arrange_batches(matmul_plan *plan, const helio_matmul_attributes *attributes,
                            const helio_argument *const given[3], const helio_argument *y) {
  gpu_product_arguments *how = &plan->own.how;
  how->batches = 1;
  for (uint32_t i = 0; i + 2 < y->rank; i++) how->batches *= y->extent[i];
  batch_strides(given[0], how->m * how->k, y, &how->batches_a);
  batch_strides(given[1], how->k * how->n, y, &how->batches_b);
  join_axes(&how->batches_a, &how->batches_b);
  /* One matrix b for all: the rows of all batches of a are the rows of one product. */
  if (how->batches_a.rank == 1 && how->batches_b.stride[0] == 0 && how->batches_a.stride[0] == how->m * how->k &&
      attributes->transpose_a == 0) {
    how->m *= how->batches;
    how->batches = 1;
    how->batches_a.rank = how->batches_b.rank = 0;
  }
  how->step_a[0] = attributes->transpose_a == 1 ? 1 : how->k;
  how->step_a[1] = attributes->transpose_a == 1 ? how->m : 1;
  how->step_b[0] = attributes->transpose_b == 1 ? how->k : 1;
  how->step_b[1] = attributes->transpose_b == 1 ? 1 : how->n;
}

/* The library goes along one axis of batches in one call, the longest; along others it is called again and again. */
static void describe_product(matmul_plan *plan, const helio_call *call, const helio_matmul_attributes *attributes) {
  const gpu_product_arguments *how = &plan->own.how;
  int64_t matrix = how->m * how->n;
  plan->batch_axis = how->batches_a.rank - 1;
  for (int32_t i = how->batches_a.rank - 1; i >= 0; i--) {
    plan->stride_c[i] = matrix;
    matrix *= how->batches_a.extent[i];
    if (how->batches_a.extent[i] > how->batches_a.extent[plan->batch_axis]) plan->batch_axis = i;
  }
  plan->product = (vendor_product){.type = plan->own.type,
                                   .transpose_a = attributes->transpose_a == 1,
                                   .transpose_b = attributes->transpose_b == 1,
                                   .reduced_precision = (call->allowed & HELIO_ALLOWED_REDUCED_PRECISION) != 0,
                                   .nondeterministic = (call->allowed & HELIO_ALLOWED_NONDETERMINISTIC) != 0,
                                   .m = how->m,
                                   .n = how->n,
                                   .k = how->k,
                                   .batches = 1};
  if (plan->batch_axis < 0) return;
  plan->product.batches = how->batches_a.extent[plan->batch_axis];
  plan->product.step_a = how->batches_a.stride[plan->batch_axis];
  plan->product.step_b = how->batches_b.stride[plan->batch_axis];
  plan->product.step_c = plan->stride_c[plan->batch_axis];
}

/* --- plan and run --- */

static helio_status find_kernels(matmul_plan *plan) {
  helio_backend_device *device = plan->base.device;
  plan->epilogue.count = plan->own.how.m * plan->own.how.n * plan->own.how.batches;
  plan->epilogue.columns = plan->own.how.n;
  plan->epilogue.activation = plan->own.how.activation;
  helio_status status = HELIO_OK;
  if (vendor_blas_takes(device->facts, &plan->product)) status = gpu_blas_find(device, &plan->library);
  if (status != HELIO_OK) return status;
  if (plan->library) return gpu_epilogue_find(device, plan->own.type, plan->has_bias, &plan->epilogue);
  return gpu_own_product_find(device, &plan->own);
}

static helio_status matmul_plan_make(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer) {
  static const call_signature signature = {"TTt", "T", CALL_ARITHMETIC_TYPES};
  helio_matmul_attributes attributes;
  helio_status status = gpu_call_check(device, call, answer, &signature);
  if (status == HELIO_OK) status = call_attributes(device->host, call, &attributes, sizeof attributes);
  if (status == HELIO_OK) status = check_attributes(device, &attributes, call_output(call)->type);
  if (status != HELIO_OK) return status;
  const helio_argument *const given[3] = {call_input(call, 0), call_input(call, 1),
                                          call->input_count > 2 ? call_input(call, 2) : NULL};
  matmul_plan *plan = (matmul_plan *)gpu_plan_new(device, call, sizeof *plan);
  if (plan == NULL) return HELIO_OUT_OF_MEMORY;
  plan->own.type = call_output(call)->type;
  plan->element = call_type_size(plan->own.type);
  plan->has_bias = given[2] != NULL;
  plan->has_bias_place = call->input_count > 2;
  plan->own.how.activation = attributes.activation;
  if (!shapes_fit(plan, &attributes, given, call_output(call)))
    status = device->host->fail(device->host, HELIO_INVALID_ARGUMENT, "MATMUL: the shapes do not fit each other");
  if (status == HELIO_OK && !plan->base.empty) {
    arrange_batches(plan, &attributes, given, call_output(call));
    describe_product(plan, call, &attributes);
    status = find_kernels(plan);
  }
  return gpu_plan_finish(&plan->base, status, 0, answer);
}

/* Goes along the batch axes that one call of the library does not. */
static helio_status multiply_by_library(const matmul_plan *plan, const helio_run *run, gpu_address a, gpu_address b,
                                        gpu_address y) {
  const gpu_product_arguments *how = &plan->own.how;
  vendor_blas *blas;
  helio_status status = gpu_stream_blas(run->stream, &blas);
  int64_t calls = how->batches / plan->product.batches;
  for (int64_t i = 0; i < calls && status == HELIO_OK; i++) {
    int64_t rest = i, in_a = 0, in_b = 0, in_c = 0;
    for (int32_t axis = how->batches_a.rank - 1; axis >= 0; axis--) {
      if (axis == plan->batch_axis) continue;
      int64_t at = rest % how->batches_a.extent[axis];
      rest /= how->batches_a.extent[axis];
      in_a += at * how->batches_a.stride[axis];
      in_b += at * how->batches_b.stride[axis];
      in_c += at * plan->stride_c[axis];
    }
    status = vendor_blas_multiply(blas, &plan->product, a + (size_t)in_a * plan->element,
                                  b + (size_t)in_b * plan->element, y + (size_t)in_c * plan->element);
  }
  return status;
}

static helio_status matmul_run(helio_plan *base, const helio_run *run) {
  matmul_plan *plan = (matmul_plan *)base;
  if (base->empty) return HELIO_OK;
  helio_status status = gpu_run_begin(base, run);
  if (status != HELIO_OK) return status;
  gpu_address a = gpu_run_address(run, 0), b = gpu_run_address(run, 1);
  gpu_address bias = plan->has_bias ? gpu_run_address(run, 2) : 0;
  gpu_address y = gpu_run_address(run, plan->has_bias_place ? 3 : 2);
  if (plan->library && !atomic_load(&plan->own.refused)) {
    status = multiply_by_library(plan, run, a, b, y);
    if (!gpu_library_refuses(base->device, status, &vendor_blas_library, "a product of matrices", &plan->own.refused))
      return status == HELIO_OK ? gpu_epilogue_run(base, run, &plan->epilogue, y, bias) : status;
  }
  return gpu_own_product_run(base, run, &plan->own, y, a, b, bias);
}

const helio_kernel gpu_kernel_matmul = {
    .size = sizeof(helio_kernel),
    .operation = HELIO_OP_MATMUL,
    .types = CALL_ARITHMETIC_TYPES,
    .plan = matmul_plan_make,
    .run = matmul_run,
    .plan_free = gpu_plan_free,
};
