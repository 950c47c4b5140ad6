/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernels, and what all plans have in common. */
#include "cpu.h"

#include <string.h>

static const uint8_t type_sizes[] = {
#define TYPE_SIZE(name, value, text, bytes) [value] = bytes,
    HELIO_TYPE_LIST(TYPE_SIZE)
#undef TYPE_SIZE
};

static const char *const type_names[] = {
#define TYPE_NAME(name, value, text, bytes) [value] = text,
    HELIO_TYPE_LIST(TYPE_NAME)
#undef TYPE_NAME
};

static const char *const operation_names[] = {
#define OPERATION_NAME(name, value) [value] = #name,
    HELIO_OPERATION_LIST(OPERATION_NAME)
#undef OPERATION_NAME
};

size_t cpu_type_size(uint32_t type) {
  return type < sizeof type_sizes ? type_sizes[type] : 0;
}

static const char *type_name(uint32_t type) {
  return cpu_type_size(type) == 0 ? "an unknown type" : type_names[type];
}

size_t cpu_element_count(const helio_argument *argument) {
  size_t count = 1;
  for (uint32_t i = 0; i < argument->rank; i++) count *= (size_t)argument->extent[i];
  return count;
}

bool cpu_same_shape(const helio_argument *a, const helio_argument *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++) {
    if (a->extent[i] != b->extent[i]) return false;
  }
  return true;
}

/* An argument is understood if its size covers the axes it has and nothing unknown follows. */
static bool argument_understood(const helio_argument *argument) {
  if (argument->size < HELIO_STRUCT_SIZE(helio_argument, rank) || argument->rank > HELIO_MAX_RANK) return false;
  if (argument->size < offsetof(helio_argument, extent) + argument->rank * sizeof argument->extent[0]) return false;
  for (uint32_t i = 0; i < argument->rank; i++) {
    if (argument->extent[i] < 0) return false;
  }
  return helio_struct_fits(argument, sizeof *argument);
}

static uint32_t types_of(const cpu_signature *signature, char letter) {
  switch (letter) {
  case 'I':
  case 'i':
    return HELIO_TYPE_BIT(HELIO_INT32) | HELIO_TYPE_BIT(HELIO_INT64);
  case 'B':
    return HELIO_TYPE_BIT(HELIO_BOOL);
  case 'W':
  case 'w':
    return HELIO_TYPE_BIT(HELIO_UINT8) | HELIO_TYPE_BIT(HELIO_INT32);
  case '?':
    return CPU_ALL_TYPES;
  default:
    return signature->types;
  }
}

static helio_status check_argument(const helio_host *host, const helio_call *call, uint32_t index, char letter,
                                   const cpu_signature *signature) {
  const char *name = operation_names[call->operation];
  const helio_argument *argument = call->arguments[index], *first = call->arguments[0];
  if (argument == NULL && letter >= 'a' && letter <= 'z') return HELIO_OK;
  if (argument == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "%s: argument %u is missing", name, index);
  if (!argument_understood(argument))
    return host->fail(host, HELIO_NOT_SUPPORTED, "%s: argument %u is of a kind that is unknown here", name, index);
  if (cpu_type_size(argument->type) == 0 || (types_of(signature, letter) & HELIO_TYPE_BIT(argument->type)) == 0)
    return host->fail(host, HELIO_NOT_SUPPORTED, "%s in %s has no kernel on the CPU", name, type_name(argument->type));
  if (strchr("TtVv", letter) != NULL && argument->type != first->type)
    return host->fail(host, HELIO_NOT_SUPPORTED, "%s of %s and %s has no kernel on the CPU", name,
                      type_name(first->type), type_name(argument->type));
  return HELIO_OK;
}

helio_status cpu_call_check(helio_backend_device *device, const helio_call *call, const helio_plan_answer *answer,
                            const cpu_signature *signature) {
  const helio_host *host = device->host;
  if (call->size < HELIO_STRUCT_SIZE(helio_call, arguments) || !helio_struct_fits(call, sizeof *call))
    return host->fail(host, HELIO_NOT_SUPPORTED, "the call is of a kind that is unknown here");
  if (answer->size < HELIO_STRUCT_SIZE(helio_plan_answer, workspace))
    return host->fail(host, HELIO_INVALID_ARGUMENT, "there is no room for the plan's answer");
  uint32_t inputs = (uint32_t)strcspn(signature->inputs, "*"), outputs = (uint32_t)strlen(signature->outputs);
  bool any_number = signature->inputs[inputs] == '*';
  if (call->input_count < inputs || (!any_number && call->input_count > inputs) || call->output_count != outputs)
    return host->fail(host, HELIO_NOT_SUPPORTED, "%s with %u inputs and %u outputs has no kernel on the CPU",
                      operation_names[call->operation], call->input_count, call->output_count);
  for (uint32_t i = 0; i < call->input_count + outputs; i++) {
    char letter = i >= call->input_count ? signature->outputs[i - call->input_count]
                                         : signature->inputs[i < inputs ? i : inputs - 1];
    helio_status status = check_argument(host, call, i, letter, signature);
    if (status != HELIO_OK) return status;
  }
  return HELIO_OK;
}

helio_status cpu_call_attributes(helio_backend_device *device, const helio_call *call, void *known, size_t size) {
  const helio_host *host = device->host;
  const char *name = operation_names[call->operation];
  const void *given = call->size < HELIO_STRUCT_SIZE(helio_call, attributes) ? NULL : call->attributes;
  if (given == NULL) return host->fail(host, HELIO_INVALID_ARGUMENT, "%s: attributes are missing", name);
  size_t given_size = *(const size_t *)given;
  if (given_size < sizeof(size_t) || !helio_struct_fits(given, size))
    return host->fail(host, HELIO_NOT_SUPPORTED, "%s: an attribute is set that is unknown here", name);
  memset(known, 0, size);
  memcpy(known, given, given_size < size ? given_size : size);
  return HELIO_OK;
}

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

helio_status cpu_run_refuse(const helio_plan *plan) {
  const helio_host *host = plan->device->host;
  return host->fail(host, HELIO_NOT_SUPPORTED, "the run is of a kind that is unknown here");
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
