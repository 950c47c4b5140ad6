/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernels, and what all plans have in common on the CPU. */
#include "cpu.h"

#include <string.h>

helio_plan *cpu_plan_new(helio_backend_device *device, size_t size) {
  const helio_host *host = device->host;
  helio_plan *plan = host->allocate(host, size);
  if (plan == NULL) {
    host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a plan of %zu bytes", size);
    return NULL;
  }
  memset(plan, 0, size);
  plan->device = device;
  plan->parts = 1;
  return plan;
}

void cpu_plan_free(helio_plan *plan) {
  if (plan != NULL) plan->device->host->release(plan->device->host, plan);
}

unsigned cpu_parts_for_bytes(const helio_backend_device *device, size_t bytes) {
  size_t parts = bytes / ((size_t)128 << 10);
  unsigned threads = cpu_team_size(device->team);
  return parts < 1 ? 1 : parts < threads ? (unsigned)parts : threads;
}

cpu_range cpu_part_range(size_t count, size_t grain, unsigned part, unsigned parts) {
  if (parts == 1) return (cpu_range){0, count};
  size_t grains = (count + grain - 1) / grain;
  size_t each = grains / parts, more = grains % parts;
  size_t begin = each * part + (part < more ? part : more);
  size_t end = begin + each + (part < more ? 1 : 0);
  cpu_range range = {begin * grain, end * grain};
  if (range.begin > count) range.begin = count;
  if (range.end > count) range.end = count;
  return range;
}

static const helio_kernel *const kernels[] = {
    &cpu_kernel_cast,
    &cpu_kernel_slice,
    &cpu_kernel_concat,
    &cpu_kernel_add,
    &cpu_kernel_sub,
    &cpu_kernel_mul,
    &cpu_kernel_add_n,
    &cpu_kernel_sum,
    &cpu_kernel_matmul,
    &cpu_kernel_relu,
    &cpu_kernel_conv2d,
    &cpu_kernel_conv2d_grad_input,
    &cpu_kernel_conv2d_grad_kernel,
    &cpu_kernel_max_pool,
    &cpu_kernel_max_pool_grad,
    &cpu_kernel_average_pool,
    &cpu_kernel_average_pool_grad,
    &cpu_kernel_neg,
    &cpu_kernel_abs,
    &cpu_kernel_square,
    &cpu_kernel_sqrt,
    &cpu_kernel_rsqrt,
    &cpu_kernel_exp,
    &cpu_kernel_log,
    &cpu_kernel_clip,
    &cpu_kernel_sigmoid,
    &cpu_kernel_tanh,
    &cpu_kernel_softplus,
    &cpu_kernel_swish,
    &cpu_kernel_gelu,
    &cpu_kernel_elu,
    &cpu_kernel_leaky_relu,
    &cpu_kernel_activation_grad,
    &cpu_kernel_div,
    &cpu_kernel_pow,
    &cpu_kernel_maximum,
    &cpu_kernel_minimum,
    &cpu_kernel_equal,
    &cpu_kernel_not_equal,
    &cpu_kernel_less,
    &cpu_kernel_less_equal,
    &cpu_kernel_greater,
    &cpu_kernel_greater_equal,
    &cpu_kernel_where,
    &cpu_kernel_transpose,
    &cpu_kernel_pad,
    &cpu_kernel_gather,
    &cpu_kernel_scatter_add,
    &cpu_kernel_one_hot,
    &cpu_kernel_combine_rows,
    &cpu_kernel_mean,
    &cpu_kernel_max,
    &cpu_kernel_min,
    &cpu_kernel_argmax,
    &cpu_kernel_top_k,
    &cpu_kernel_in_top_k,
    &cpu_kernel_moments,
    &cpu_kernel_normalize,
    &cpu_kernel_normalize_grad_sums,
    &cpu_kernel_normalize_grad_input,
    &cpu_kernel_layer_norm,
    &cpu_kernel_layer_norm_grad,
    &cpu_kernel_sgd_update,
    &cpu_kernel_adam_update,
    &cpu_kernel_nadam_update,
    &cpu_kernel_rmsprop_update,
    &cpu_kernel_adagrad_update,
    &cpu_kernel_softmax,
    &cpu_kernel_log_softmax,
    &cpu_kernel_softmax_grad,
    &cpu_kernel_log_softmax_grad,
    &cpu_kernel_sparse_cross_entropy,
    &cpu_kernel_cross_entropy,
    &cpu_kernel_random_bits,
    &cpu_kernel_random_uniform,
    &cpu_kernel_random_normal,
    &cpu_kernel_dropout,
};

const helio_kernel_table cpu_kernel_table = {
    .size = sizeof(helio_kernel_table),
    .count = sizeof kernels / sizeof kernels[0],
    .kernels = kernels,
};
