/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that make tensors and move their elements. */
#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "device/topology.h"
#include "ops/options.h"
#include "ops/placement.h"
#include "ops/shape.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "tensor/tensor.h"

/* ---- made from host data ---- */

helio_tensor *helio_constant_with(const helio_constant_options *given) {
  helio_constant_options o;
  if (!hi_options_enter("helio_constant", &o, sizeof o, given)) return NULL;
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
  if (!hi_options_enter("helio_fill", &o, sizeof o, given)) return NULL;
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
  if (hi_copy(device, hi_tensor_place(copy), x->device, hi_tensor_place(x), hi_tensor_bytes(x))) return NULL;
  return hi_tape_record_one(&call, copy);
}

helio_tensor *helio_to_device(helio_tensor *tensor, const char *name) {
  hi_call call = {.row = hi_row_of(HELIO_OP_COPY), .inputs = &tensor, .input_count = 1};
  if (hi_enter(__func__) || !hi_tensor_usable(tensor, "the tensor")) return NULL;
  hi_device *device = hi_device_named(name);
  helio_tensor *copy = device ? hi_tensor_on(tensor, device) : NULL;
  return copy == tensor ? copy : hi_tape_record_one(&call, copy);
}

/* ---- views ---- */

helio_tensor *helio_reshape(helio_tensor *x, helio_shape shape) {
  hi_call call = {.row = hi_row_of(HELIO_OP_RESHAPE), .inputs = &x, .input_count = 1};
  helio_shape asked = shape;
  if (hi_enter(__func__) || hi_call_check(&call)) return NULL;
  if (hi_shape_complete(&shape, x->elements)) return hi_tape_record_one(&call, hi_tensor_view(x, &shape, 0));
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
  return hi_tape_record_one(&call, hi_tensor_view(x, &shape, 0));
}

helio_tensor *helio_squeeze_with(const helio_squeeze_options *given) {
  helio_squeeze_options o;
  uint32_t set;
  if (!hi_options_enter("helio_squeeze", &o, sizeof o, given)) return NULL;
  hi_call call = {.row = hi_row_of(HELIO_OP_SQUEEZE), .inputs = &o.x, .input_count = 1};
  if (hi_call_check(&call) || !hi_options_axes(call.row, &o.x->shape, &o.axes, &set)) return NULL;
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
  return hi_tape_record_one(&call, hi_tensor_view(o.x, &shape, 0));
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
  if (!is_view(&x->shape, &call.outputs[0].shape)) return hi_dispatch_one(&call);
  size_t row = x->elements ? hi_tensor_bytes(x) / (size_t)(x->shape.rank ? x->shape.extent[0] : 1) : 0;
  size_t offset = x->shape.rank ? row * (size_t)begin.extent[0] : 0;
  return hi_tape_record_one(&call, hi_tensor_view(x, &call.outputs[0].shape, offset));
}

/* ---- with kernels ---- */

helio_tensor *helio_cast(helio_tensor *x, helio_type type) {
  hi_call call = {.row = hi_row_of(HELIO_OP_CAST), .inputs = &x, .input_count = 1, .wanted_type = type};
  return hi_enter(__func__) ? NULL : hi_dispatch_one(&call);
}

helio_tensor *helio_concat(helio_tensor *const *inputs, int count, int axis) {
  hi_call call = {.row = hi_row_of(HELIO_OP_CONCAT), .inputs = inputs, .input_count = count};
  if (hi_enter(__func__)) return NULL;
  if (count > 0 && inputs && inputs[0]) {
    axis = hi_axis(call.row->info.label, axis, &inputs[0]->shape);
    if (axis < 0) return NULL;
  }
  call.attributes.axis = (helio_axis_attributes){.size = sizeof call.attributes.axis, .axis = (uint32_t)axis};
  return hi_dispatch_one(&call);
}

helio_status helio_split(helio_tensor *x, int parts, int axis, helio_tensor **results) {
  hi_call call = {.row = hi_row_of(HELIO_OP_SPLIT), .inputs = &x, .input_count = 1};
  helio_status status = hi_enter(__func__);
  if (!status) status = hi_call_check(&call);
  if (status) return status;
  axis = hi_axis(call.row->info.label, axis, &x->shape);
  if (axis < 0) return helio_error_pending();
  if (!results || parts < 1 || x->shape.extent[axis] % parts != 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "Split: %lld elements along axis %d are not %d equal parts",
                   (long long)x->shape.extent[axis], axis, parts);
  }
  helio_shape begin = {.rank = x->shape.rank}, part = x->shape;
  part.extent[axis] /= parts;
  for (int i = 0; i < parts; i++) {
    results[i] = helio_slice(x, begin, part);
    if (!results[i]) return helio_error_pending();
    begin.extent[axis] += part.extent[axis];
  }
  return HELIO_OK;
}

helio_tensor *helio_transpose_with(const helio_transpose_options *given) {
  helio_transpose_options o;
  if (!hi_options_enter("helio_transpose", &o, sizeof o, given)) return NULL;
  hi_call call = {.row = hi_row_of(HELIO_OP_TRANSPOSE), .inputs = &o.x, .input_count = 1};
  if (!hi_tensor_usable(o.x, "Transpose: input 0")) return NULL;
  int rank = o.x->shape.rank;
  if (o.permutation.count != 0 && o.permutation.count != rank) {
    hi_fail(HELIO_INVALID_ARGUMENT, "Transpose: %d axes are named, the tensor has %d", o.permutation.count, rank);
    return NULL;
  }
  call.attributes.transpose.size = sizeof call.attributes.transpose;
  for (int i = 0; i < rank; i++) {
    int axis = o.permutation.count ? hi_axis("Transpose", o.permutation.axis[i], &o.x->shape) : rank - 1 - i;
    if (axis < 0) return NULL;
    call.attributes.transpose.permutation[i] = (uint32_t)axis;
  }
  return hi_dispatch_one(&call);
}

helio_tensor *helio_pad_with(const helio_pad_options *given) {
  helio_pad_options o;
  if (!hi_options_enter("helio_pad", &o, sizeof o, given)) return NULL;
  hi_call call = {.row = hi_row_of(HELIO_OP_PAD),
                  .inputs = &o.x,
                  .input_count = 1,
                  .scalars = {{.real = o.value}},
                  .wanted = o.after};
  if (o.before.rank != o.after.rank || o.before.rank < 0 || o.before.rank > HELIO_MAX_RANK) {
    hi_fail(HELIO_INVALID_ARGUMENT, "PadV2: before has %d axes, after has %d", o.before.rank, o.after.rank);
    return NULL;
  }
  call.attributes.slice.size = sizeof call.attributes.slice;
  memcpy(call.attributes.slice.begin, o.before.extent, (size_t)o.before.rank * sizeof o.before.extent[0]);
  return hi_dispatch_one(&call);
}

helio_tensor *helio_gather_rows(helio_tensor *x, helio_tensor *indices) {
  return hi_binary(__func__, HELIO_OP_GATHER, x, indices);
}

helio_tensor *helio_scatter_add(helio_tensor *x, helio_tensor *indices, int64_t rows) {
  hi_call call = {.row = hi_row_of(HELIO_OP_SCATTER_ADD),
                  .inputs = (helio_tensor *[]){x, indices},
                  .input_count = 2,
                  .wanted = {1, {rows}}};
  return hi_enter(__func__) ? NULL : hi_dispatch_one(&call);
}

helio_tensor *helio_where(helio_tensor *condition, helio_tensor *a, helio_tensor *b) {
  hi_call call = {.row = hi_row_of(HELIO_OP_WHERE), .inputs = (helio_tensor *[]){a, b, condition}, .input_count = 3};
  return hi_enter(__func__) ? NULL : hi_dispatch_one(&call);
}

helio_tensor *helio_one_hot(helio_tensor *indices, int64_t depth, helio_type type) {
  hi_call call = {.row = hi_row_of(HELIO_OP_ONE_HOT),
                  .inputs = &indices,
                  .input_count = 1,
                  .wanted = {1, {depth}},
                  .wanted_type = type ? type : HELIO_FLOAT32};
  return hi_enter(__func__) ? NULL : hi_dispatch_one(&call);
}
