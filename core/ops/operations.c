/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of helio.h: each turns its arguments into a call of its row. */
#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "ops/dispatch.h"
#include "ops/placement.h"
#include "ops/shape.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* Reads an options struct of any size that this library or an older header gives it. */
static bool read_options(void *to, size_t known, const void *from) {
  if (!from) {
    hi_fail(HELIO_INVALID_ARGUMENT, "options is NULL");
    return false;
  }
  size_t size = *(const size_t *)from;
  if (size < sizeof(size_t) || !helio_struct_fits(from, known)) {
    hi_fail(HELIO_NOT_SUPPORTED, "the program was built for a newer helio and sets an option that this one lacks");
    return false;
  }
  memset(to, 0, known);
  memcpy(to, from, size < known ? size : known);
  return true;
}

static bool enter(const char *function, void *to, size_t known, const void *from) {
  return !hi_enter(function) && read_options(to, known, from);
}

/* ---- made from host data ---- */

helio_tensor *helio_constant_with(const helio_constant_options *given) {
  helio_constant_options o;
  if (!enter("helio_constant", &o, sizeof o, given)) return NULL;
  if (!o.type) o.type = HELIO_FLOAT32;
  if (!hi_type_valid(o.type)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%d is not a type", (int)o.type);
    return NULL;
  }
  char *name = NULL;
  if (o.name && !(name = strdup(o.name))) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name %s", o.name);
    return NULL;
  }
  hi_device *device = hi_placement_for_data(NULL);
  helio_tensor *tensor = device ? hi_tensor_new(device, o.type, &o.shape, name ? name : "constant") : NULL;
  if (!tensor) {
    free(name);
    return NULL;
  }
  tensor->name = name;
  if (!o.data && tensor->elements > 0) {
    hi_fail(HELIO_INVALID_ARGUMENT, "data is NULL");
    return NULL;
  }
  return hi_copy_in(device, hi_tensor_place(tensor), o.data, hi_tensor_bytes(tensor)) ? NULL : tensor;
}

/* ---- carried out by the device vtable ---- */

helio_tensor *helio_fill_with(const helio_fill_options *given) {
  helio_fill_options o;
  if (!enter("helio_fill", &o, sizeof o, given)) return NULL;
  if (!o.type) o.type = HELIO_FLOAT32;
  if (!hi_type_valid(o.type)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%d is not a type", (int)o.type);
    return NULL;
  }
  hi_call call = {.row = hi_row_of(HELIO_OP_FILL), .wanted = o.shape, .wanted_type = o.type};
  if (hi_call_check(&call)) return NULL;
  hi_device *device = hi_placement_for_data(NULL);
  helio_tensor *tensor = device ? hi_tensor_new(device, o.type, &o.shape, call.row->info.label) : NULL;
  if (!tensor) return NULL;
  hi_placement_log(call.row, device);
  if (tensor->elements == 0) return tensor;
  char pattern[8];
  hi_type_encode(o.type, o.value, pattern);
  hi_reason_clear();
  helio_status status =
      device->member.memory->fill(device->member.device, device->streams[HI_STREAM_COMPUTE], hi_tensor_place(tensor),
                                  pattern, helio_type_bytes(o.type), (size_t)tensor->elements);
  if (!status) return tensor;
  hi_device_failed(device, status, call.row->info.label);
  return NULL;
}

helio_tensor *helio_copy(helio_tensor *x) {
  hi_call call = {.row = hi_row_of(HELIO_OP_COPY), .inputs = &x, .input_count = 1};
  if (hi_enter(__func__) || hi_call_check(&call)) return NULL;
  hi_device *device = hi_placement_for_data(x->device);
  helio_tensor *copy = device ? hi_tensor_new(device, x->type, &x->shape, call.row->info.label) : NULL;
  if (!copy) return NULL;
  return hi_copy(device, hi_tensor_place(copy), x->device, hi_tensor_place(x), hi_tensor_bytes(x)) ? NULL : copy;
}

/* ---- views ---- */

/* The extent for −1 in a shape that is to hold `elements`. */
static bool complete(helio_shape *shape, int64_t elements) {
  helio_shape known = *shape;
  int64_t rest;
  int open = -1;
  if (shape->rank < 0 || shape->rank > HELIO_MAX_RANK) return false;
  for (int i = 0; i < shape->rank; i++) {
    if (shape->extent[i] != -1) continue;
    if (open >= 0) return false;
    open = i;
    known.extent[i] = 1;
  }
  if (!hi_shape_elements(&known, &rest)) return false;
  if (open < 0) return rest == elements;
  if (rest == 0 || elements % rest != 0) return false;
  shape->extent[open] = elements / rest;
  return true;
}

helio_tensor *helio_reshape(helio_tensor *x, helio_shape shape) {
  hi_call call = {.row = hi_row_of(HELIO_OP_RESHAPE), .inputs = &x, .input_count = 1};
  helio_shape asked = shape;
  if (hi_enter(__func__) || hi_call_check(&call)) return NULL;
  if (complete(&shape, x->elements)) return hi_tensor_view(x, &shape, 0);
  char from[HI_SHAPE_TEXT], to[HI_SHAPE_TEXT];
  hi_fail(HELIO_INVALID_ARGUMENT, "Reshape: the shape %s cannot become %s", hi_shape_text(&x->shape, from),
          hi_shape_text(&asked, to));
  return NULL;
}

helio_tensor *helio_expand_dims(helio_tensor *x, int axis) {
  hi_call call = {.row = hi_row_of(HELIO_OP_EXPAND_DIMS), .inputs = &x, .input_count = 1};
  if (hi_enter(__func__) || hi_call_check(&call)) return NULL;
  helio_shape shape = x->shape;
  if (shape.rank == HELIO_MAX_RANK) {
    hi_fail(HELIO_INVALID_ARGUMENT, "ExpandDims: the tensor has %d axes already, the most there can be", shape.rank);
    return NULL;
  }
  shape.extent[shape.rank++] = 1; /* the axis is one of the result's */
  axis = hi_axis(call.row->info.label, axis, &shape);
  if (axis < 0) return NULL;
  for (int i = shape.rank - 1; i > axis; i--) shape.extent[i] = shape.extent[i - 1];
  shape.extent[axis] = 1;
  return hi_tensor_view(x, &shape, 0);
}

/* The axes given as a set of bits; false with the error set. */
static bool axes_of(const hi_row *row, const helio_shape *shape, const helio_axes *axes, uint32_t *set) {
  *set = 0;
  if (axes->count < 0 || axes->count > HELIO_MAX_RANK) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: %d axes", row->info.label, axes->count);
    return false;
  }
  for (int i = 0; i < axes->count; i++) {
    int axis = hi_axis(row->info.label, axes->axis[i], shape);
    if (axis < 0) return false;
    *set |= 1u << axis;
  }
  return true;
}

helio_tensor *helio_squeeze_with(const helio_squeeze_options *given) {
  helio_squeeze_options o;
  uint32_t set;
  if (!enter("helio_squeeze", &o, sizeof o, given)) return NULL;
  hi_call call = {.row = hi_row_of(HELIO_OP_SQUEEZE), .inputs = &o.x, .input_count = 1};
  if (hi_call_check(&call) || !axes_of(call.row, &o.x->shape, &o.axes, &set)) return NULL;
  helio_shape shape = {0};
  for (int i = 0; i < o.x->shape.rank; i++) {
    bool chosen = o.axes.count == 0 || set >> i & 1;
    if (chosen && o.x->shape.extent[i] == 1) continue;
    if (chosen && o.axes.count > 0) {
      char text[HI_SHAPE_TEXT];
      hi_fail(HELIO_INVALID_ARGUMENT, "Squeeze: axis %d of the shape %s is not of extent 1", i,
              hi_shape_text(&o.x->shape, text));
      return NULL;
    }
    shape.extent[shape.rank++] = o.x->shape.extent[i];
  }
  return hi_tensor_view(o.x, &shape, 0);
}

/* A part along the first axis alone lies in one piece. */
static bool is_view(const helio_shape *x, const helio_shape *part) {
  for (int i = 1; i < x->rank; i++) {
    if (part->extent[i] != x->extent[i]) return false;
  }
  return true;
}

helio_tensor *helio_slice(helio_tensor *x, helio_shape begin, helio_shape extents) {
  hi_call call = {.row = hi_row_of(HELIO_OP_SLICE), .inputs = &x, .input_count = 1, .wanted = extents};
  if (hi_enter(__func__)) return NULL;
  if (begin.rank != extents.rank || begin.rank < 0 || begin.rank > HELIO_MAX_RANK) {
    hi_fail(HELIO_INVALID_ARGUMENT, "Slice: begin has %d axes, extents has %d", begin.rank, extents.rank);
    return NULL;
  }
  call.attributes.slice.size = sizeof call.attributes.slice;
  memcpy(call.attributes.slice.begin, begin.extent, (size_t)begin.rank * sizeof begin.extent[0]);
  if (hi_call_check(&call)) return NULL;
  if (!is_view(&x->shape, &call.outputs[0].shape)) return hi_dispatch(&call, NULL);
  size_t row = x->elements ? hi_tensor_bytes(x) / (size_t)(x->shape.rank ? x->shape.extent[0] : 1) : 0;
  return hi_tensor_view(x, &call.outputs[0].shape, x->shape.rank ? row * (size_t)begin.extent[0] : 0);
}

/* ---- with kernels ---- */

helio_tensor *helio_cast(helio_tensor *x, helio_type type) {
  hi_call call = {.row = hi_row_of(HELIO_OP_CAST), .inputs = &x, .input_count = 1, .wanted_type = type};
  return hi_enter(__func__) ? NULL : hi_dispatch(&call, NULL);
}

helio_tensor *helio_concat(helio_tensor *const *inputs, int count, int axis) {
  hi_call call = {.row = hi_row_of(HELIO_OP_CONCAT), .inputs = inputs, .input_count = count};
  if (hi_enter(__func__)) return NULL;
  if (count > 0 && inputs && inputs[0]) {
    axis = hi_axis(call.row->info.label, axis, &inputs[0]->shape);
    if (axis < 0) return NULL;
  }
  call.attributes.concat = (helio_axis_attributes){.size = sizeof call.attributes.concat, .axis = (uint32_t)axis};
  return hi_dispatch(&call, NULL);
}

static helio_tensor *binary(const char *function, helio_operation operation, helio_tensor *a, helio_tensor *b) {
  hi_call call = {.row = hi_row_of(operation), .inputs = (helio_tensor *[]){a, b}, .input_count = 2};
  return hi_enter(function) ? NULL : hi_dispatch(&call, NULL);
}

helio_tensor *helio_add(helio_tensor *a, helio_tensor *b) {
  return binary(__func__, HELIO_OP_ADD, a, b);
}

helio_tensor *helio_sub(helio_tensor *a, helio_tensor *b) {
  return binary(__func__, HELIO_OP_SUB, a, b);
}

helio_tensor *helio_mul(helio_tensor *a, helio_tensor *b) {
  return binary(__func__, HELIO_OP_MUL, a, b);
}

helio_tensor *helio_add_n(helio_tensor *const *inputs, int count) {
  hi_call call = {.row = hi_row_of(HELIO_OP_ADD_N), .inputs = inputs, .input_count = count};
  return hi_enter(__func__) ? NULL : hi_dispatch(&call, NULL);
}

helio_tensor *helio_relu(helio_tensor *x) {
  hi_call call = {.row = hi_row_of(HELIO_OP_RELU), .inputs = &x, .input_count = 1};
  return hi_enter(__func__) ? NULL : hi_dispatch(&call, NULL);
}

helio_tensor *helio_sum_with(const helio_sum_options *given) {
  helio_sum_options o;
  uint32_t set;
  if (!enter("helio_sum", &o, sizeof o, given)) return NULL;
  hi_call call = {.row = hi_row_of(HELIO_OP_SUM), .inputs = &o.x, .input_count = 1, .keep_dims = o.keep_dims};
  if (!hi_tensor_usable(o.x, "Sum: input 0") || !axes_of(call.row, &o.x->shape, &o.axes, &set)) return NULL;
  if (o.axes.count == 0) set = (1u << o.x->shape.rank) - 1;
  call.attributes.reduce = (helio_reduce_attributes){.size = sizeof call.attributes.reduce, .axes = set};
  return hi_dispatch(&call, NULL);
}

helio_tensor *helio_matmul_with(const helio_matmul_options *given) {
  helio_matmul_options o;
  if (!enter("helio_matmul", &o, sizeof o, given)) return NULL;
  hi_call call = {.row = hi_row_of(HELIO_OP_MATMUL), .inputs = (helio_tensor *[]){o.a, o.b, o.bias}, .input_count = 3};
  call.attributes.matmul = (helio_matmul_attributes){.size = sizeof call.attributes.matmul,
                                                     .transpose_a = o.transpose_a,
                                                     .transpose_b = o.transpose_b,
                                                     .activation = (uint32_t)o.activation};
  return hi_dispatch(&call, NULL);
}
