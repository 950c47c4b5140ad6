/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/table.h"

#include <stdio.h>
#include <strings.h>

#include "ops/shape.h"
#include "runtime/error.h"
#include "runtime/plugins.h"
#include "tensor/tensor.h"

enum {
  ALL_TYPES = HELIO_TYPE_BIT(HELIO_BOOL + 1) - 2,
  NUMBERS = ALL_TYPES & ~HELIO_TYPE_BIT(HELIO_BOOL) & ~HELIO_TYPE_BIT(HELIO_UINT8),
};

#define ROW(symbol, what, lower, upper, least, most, accepted, rule, text, names)                                      \
  {                                                                                                                    \
    .operation = HELIO_OP_##symbol, .kind = HI_ROW_##what, .types = accepted, .least_inputs = least,                   \
    .most_inputs = most, .outputs = 1, .shape = rule, .info = {                                                        \
      .name = lower,                                                                                                   \
      .label = upper,                                                                                                  \
      .summary = text,                                                                                                 \
      .attributes = names,                                                                                             \
      .needs_kernel = HI_ROW_##what == HI_ROW_KERNEL                                                                   \
    }                                                                                                                  \
  }

static const hi_row rows[] = {
    ROW(FILL, MEMORY, "fill", "Fill", 0, 0, ALL_TYPES, hi_shape_as_wanted, "a tensor of one value",
        "shape, value, type"),
    ROW(COPY, MEMORY, "copy", "Copy", 1, 1, ALL_TYPES, hi_shape_same, "a copy of x", ""),
    ROW(CAST, KERNEL, "cast", "Cast", 1, 1, ALL_TYPES, hi_shape_cast,
        "x in another type; to an integer towards zero, to the nearest end of the range, NaN to 0", "type"),
    ROW(RESHAPE, VIEW, "reshape", "Reshape", 1, 1, ALL_TYPES, hi_shape_same, "x in another shape", "shape"),
    ROW(EXPAND_DIMS, VIEW, "expand_dims", "ExpandDims", 1, 1, ALL_TYPES, hi_shape_same, "x with one more axis", "axis"),
    ROW(SQUEEZE, VIEW, "squeeze", "Squeeze", 1, 1, ALL_TYPES, hi_shape_same, "x without axes of extent 1", "axes"),
    ROW(SLICE, KERNEL, "slice", "Slice", 1, 1, ALL_TYPES, hi_shape_slice,
        "a part of x; of the first axis alone, a view", "begin, extents"),
    ROW(CONCAT, KERNEL, "concat", "ConcatV2", 1, HI_ANY_NUMBER, ALL_TYPES, hi_shape_concat,
        "the inputs one behind the other", "axis"),
    ROW(ADD, KERNEL, "add", "AddV2", 2, 2, NUMBERS, hi_shape_broadcast, "a + b", ""),
    ROW(SUB, KERNEL, "sub", "Sub", 2, 2, NUMBERS, hi_shape_broadcast, "a − b", ""),
    ROW(MUL, KERNEL, "mul", "Mul", 2, 2, NUMBERS, hi_shape_broadcast, "a × b", ""),
    ROW(ADD_N, KERNEL, "add_n", "AddN", 1, HI_ANY_NUMBER, NUMBERS, hi_shape_all_same, "the sum of the inputs", ""),
    ROW(SUM, KERNEL, "sum", "Sum", 1, 1, NUMBERS, hi_shape_reduce, "the sum of x over axes", "axes, keep_dims"),
    ROW(MATMUL, KERNEL, "matmul", "MatMul", 2, 3, NUMBERS, hi_shape_matmul, "activation(a × b + bias)",
        "transpose_a, transpose_b, activation"),
    ROW(RELU, KERNEL, "relu", "Relu", 1, 1, NUMBERS, hi_shape_same, "max(x, 0)", ""),
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

const hi_row *hi_row_of(helio_operation operation) {
  return &rows[operation - 1]; /* the rows stand in the order of the enum; a test looks at that */
}

static helio_status check_input(const hi_call *call, int index) {
  const helio_tensor *input = call->inputs[index], *first = call->inputs[0];
  bool optional = index >= call->row->least_inputs && call->row->most_inputs != HI_ANY_NUMBER;
  if (!input && optional) return HELIO_OK;
  if (!input || !input->block->arena) {
    char what[64];
    snprintf(what, sizeof what, "%s: input %d", call->row->info.label, index);
    hi_tensor_usable(input, what);
    return helio_error_pending();
  }
  if (!(call->row->types & HELIO_TYPE_BIT(input->type))) {
    return hi_fail(HELIO_NOT_SUPPORTED, "%s is not defined for %s", call->row->info.label,
                   helio_type_name(input->type));
  }
  if (input->type == first->type) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s: input %d is of type %s, the first of %s; cast one of them",
                 call->row->info.label, index, helio_type_name(input->type), helio_type_name(first->type));
}

helio_status hi_call_check(hi_call *call) {
  const hi_row *row = call->row;
  if (call->input_count < row->least_inputs || call->input_count > row->most_inputs ||
      (call->input_count > 0 && !call->inputs)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s: %d inputs", row->info.label, call->input_count);
  }
  for (int i = 0; i < call->input_count; i++) {
    helio_status status = check_input(call, i);
    if (status) return status;
  }
  return row->shape(call);
}

const helio_operation_info *const *helio_operations(int *count) {
  static const helio_operation_info *const list[] = {
#define INFO(name, value) &rows[(value)-1].info,
      HELIO_OPERATION_LIST(INFO)
#undef INFO
  };
  _Static_assert(sizeof list / sizeof list[0] == ROW_COUNT, "every operation has a row");
  if (hi_enter(__func__)) return NULL;
  if (count) {
    *count = ROW_COUNT;
    return list;
  }
  hi_fail(HELIO_INVALID_ARGUMENT, "count is NULL");
  return NULL;
}

uint32_t helio_operation_types(const char *operation, const char *backend) {
  int count;
  if (hi_enter(__func__)) return 0;
  hi_plugin *const *backends = hi_backends(&count);
  for (int i = 0; i < count && backend; i++) {
    if (strcasecmp(backends[i]->report.name, backend) != 0) continue;
    for (int row = 0; row < ROW_COUNT; row++) {
      if (!operation || strcasecmp(rows[row].info.name, operation) != 0) continue;
      uint32_t types = rows[row].kind == HI_ROW_KERNEL ? 0 : rows[row].types;
      for (unsigned type = 1; type < HI_TYPE_COUNT; type++) {
        if (backends[i]->kernel_of[rows[row].operation][type]) types |= HELIO_TYPE_BIT(type);
      }
      return types;
    }
  }
  return 0;
}
