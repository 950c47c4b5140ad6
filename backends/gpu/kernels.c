/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernels, and what all plans have in common. */
#include "gpu.h"

#include <string.h>

/* One line for each operation that has a kernel: X(NAME) is gpu_kernel_NAME. */
#define ELEMENTWISE_KERNELS(X)                                                                                         \
  X(cast)                                                                                                              \
  X(slice)                                                                                                             \
  X(concat)                                                                                                            \
  X(add)                                                                                                               \
  X(sub)                                                                                                               \
  X(mul)                                                                                                               \
  X(add_n)                                                                                                             \
  X(relu)                                                                                                              \
  X(transpose)                                                                                                         \
  X(pad)                                                                                                               \
  X(gather)                                                                                                            \
  X(scatter_add)                                                                                                       \
  X(where)                                                                                                             \
  X(one_hot)                                                                                                           \
  X(div)                                                                                                               \
  X(pow)                                                                                                               \
  X(maximum)                                                                                                           \
  X(minimum)                                                                                                           \
  X(equal)                                                                                                             \
  X(not_equal)                                                                                                         \
  X(less)                                                                                                              \
  X(less_equal)                                                                                                        \
  X(greater)                                                                                                           \
  X(greater_equal)                                                                                                     \
  X(neg)                                                                                                               \
  X(abs)                                                                                                               \
  X(square)                                                                                                            \
  X(sqrt)                                                                                                              \
  X(rsqrt)                                                                                                             \
  X(exp)                                                                                                               \
  X(log)                                                                                                               \
  X(clip)                                                                                                              \
  X(sigmoid)                                                                                                           \
  X(tanh)                                                                                                              \
  X(softplus)                                                                                                          \
  X(swish)                                                                                                             \
  X(gelu)                                                                                                              \
  X(elu)                                                                                                               \
  X(leaky_relu)                                                                                                        \
  X(activation_grad)                                                                                                   \
  X(random_bits)                                                                                                       \
  X(random_uniform)                                                                                                    \
  X(random_normal)                                                                                                     \
  X(dropout)
#define REDUCE_KERNELS(X)                                                                                              \
  X(sum)                                                                                                               \
  X(mean)                                                                                                              \
  X(max)                                                                                                               \
  X(min)                                                                                                               \
  X(argmax)                                                                                                            \
  X(top_k)                                                                                                             \
  X(in_top_k)                                                                                                          \
  X(softmax)                                                                                                           \
  X(log_softmax)                                                                                                       \
  X(softmax_grad)                                                                                                      \
  X(log_softmax_grad)                                                                                                  \
  X(sparse_cross_entropy)                                                                                              \
  X(cross_entropy)                                                                                                     \
  X(moments)                                                                                                           \
  X(normalize)                                                                                                         \
  X(normalize_grad_sums)                                                                                               \
  X(normalize_grad_input)                                                                                              \
  X(layer_norm)                                                                                                        \
  X(layer_norm_grad)                                                                                                   \
  X(combine_rows)                                                                                                      \
  X(sgd_update)                                                                                                        \
  X(adam_update)                                                                                                       \
  X(nadam_update)                                                                                                      \
  X(rmsprop_update)                                                                                                    \
  X(adagrad_update)
#define LIBRARIES_KERNELS(X)                                                                                           \
  X(matmul)                                                                                                            \
  X(conv2d)                                                                                                            \
  X(conv2d_grad_input)                                                                                                 \
  X(conv2d_grad_kernel)                                                                                                \
  X(max_pool)                                                                                                          \
  X(max_pool_grad)                                                                                                     \
  X(average_pool)                                                                                                      \
  X(average_pool_grad)

#define KERNELS(X)                                                                                                     \
  ELEMENTWISE_KERNELS(X)                                                                                               \
  REDUCE_KERNELS(X)                                                                                                    \
  LIBRARIES_KERNELS(X)

#define DECLARE(name) extern const helio_kernel gpu_kernel_##name;
KERNELS(DECLARE)

#define POINTER(name) &gpu_kernel_##name,
static const helio_kernel *const kernels[] = {KERNELS(POINTER)};

const helio_kernel_table gpu_kernel_table = {
    .size = sizeof(helio_kernel_table),
    .count = sizeof kernels / sizeof kernels[0],
    .kernels = kernels,
};

helio_status gpu_call_check(helio_backend_device *device, const helio_call *call, const helio_plan_answer *answer,
                            const call_signature *signature) {
  helio_status status = call_check(device->host, vendor.title, call, answer, signature);
  return status == HELIO_OK ? gpu_enter(device) : status;
}

helio_plan *gpu_plan_new(helio_backend_device *device, const helio_call *call, size_t size) {
  const helio_host *host = device->host;
  helio_plan *plan = host->allocate(host, size);
  if (plan == NULL) {
    host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a plan of %zu bytes", size);
    return NULL;
  }
  memset(plan, 0, size);
  plan->device = device;
  plan->operation = call->operation;
  plan->empty = call->output_count > 0;
  for (uint32_t i = 0; i < call->output_count; i++) {
    const helio_argument *output = call_output_at(call, i);
    if (output != NULL && call_element_count(output) > 0) plan->empty = false;
  }
  return plan;
}

void gpu_plan_free(helio_plan *plan) {
  if (plan != NULL) plan->device->host->release(plan->device->host, plan);
}

helio_status gpu_plan_finish(helio_plan *plan, helio_status status, size_t workspace, helio_plan_answer *answer) {
  if (status != HELIO_OK) {
    gpu_plan_free(plan);
    return status;
  }
  answer->plan = plan;
  answer->workspace = plan->workspace = plan->empty ? 0 : workspace;
  return HELIO_OK;
}
