/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/tensor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "device/topology.h"
#include "runtime/error.h"
#include "runtime/progress.h"
#include "tensor/pool.h"
#include "tensor/text.h"

/* ---- life ---- */

static void end(void *object) {
  helio_tensor *tensor = object;
  hi_block_release(tensor->block);
  hi_drop(tensor->logits);
  free(tensor->name);
  free(tensor);
}

static void describe(const void *object, char *text, size_t size) {
  const helio_tensor *tensor = object;
  char shape[HI_SHAPE_TEXT];
  snprintf(text, size, "%s %s%s%s", hi_shape_text(&tensor->shape, shape), helio_type_name(tensor->type),
           tensor->name ? " " : "", tensor->name ? tensor->name : "");
}

/* Each thread takes numbers by the million, so that threads do not meet at one counter. */
static uint64_t next_id(void) {
  enum { AT_ONCE = 1 << 20 };
  static atomic_uint_least64_t taken = 1;
  static _Thread_local uint64_t next, behind;
  if (next == behind) {
    next = atomic_fetch_add_explicit(&taken, AT_ONCE, memory_order_relaxed);
    behind = next + AT_ONCE;
  }
  return next++;
}

/* A tensor around a block, whose reference it takes over; it belongs to the innermost pool. */
static helio_tensor *wrap(hi_device *device, hi_block *block, helio_type type, const helio_shape *shape) {
  helio_tensor *tensor = malloc(sizeof *tensor);
  if (!tensor) {
    hi_block_release(block);
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a tensor");
    return NULL;
  }
  hi_object_begin(tensor, end, "a tensor");
  hi_census_describe(&tensor->object, describe);
  tensor->id = next_id();
  tensor->type = type;
  tensor->shape = *shape;
  tensor->elements = 0;
  hi_shape_elements(shape, &tensor->elements);
  tensor->device = device;
  tensor->block = block;
  tensor->offset = 0;
  tensor->name = NULL;
  tensor->logits = NULL;
  tensor->logits_by = (helio_activation)0;
  if (hi_pool_add(&tensor->object)) return tensor;
  hi_drop(tensor);
  return NULL;
}

helio_tensor *hi_tensor_new(hi_device *device, helio_type type, const helio_shape *shape, const char *holder) {
  return hi_tensor_new_on(device, HI_STREAM_COMPUTE, type, shape, holder);
}

helio_tensor *hi_tensor_new_on(hi_device *device, int stream, helio_type type, const helio_shape *shape,
                               const char *holder) {
  size_t bytes;
  if (!hi_shape_bytes(shape, type, &bytes)) {
    char text[HI_SHAPE_TEXT];
    hi_fail(HELIO_INVALID_ARGUMENT, "%s: the shape %s is not valid or too large", holder, hi_shape_text(shape, text));
    return NULL;
  }
  hi_block *block = hi_arena_allocate(device->arena, bytes, stream, holder);
  return block ? wrap(device, block, type, shape) : NULL;
}

helio_tensor *hi_tensor_view(const helio_tensor *base, const helio_shape *shape, size_t offset) {
  hi_block_hold(base->block);
  helio_tensor *view = wrap(base->device, base->block, base->type, shape);
  if (view) view->offset = base->offset + offset;
  return view;
}

/* ---- facts ---- */

bool hi_tensor_usable(const helio_tensor *tensor, const char *what) {
  if (!tensor) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%s is NULL", what);
  } else if (!tensor->block->arena) {
    hi_fail(HELIO_WRONG_STATE, "%s was made before helio_shutdown() and has no contents any more", what);
  }
  return tensor && tensor->block->arena;
}

helio_place hi_tensor_place(const helio_tensor *tensor) {
  if (tensor->elements == 0) return (helio_place){NULL, 0};
  return (helio_place){tensor->block->place.buffer, tensor->block->place.offset + tensor->offset};
}

size_t hi_tensor_bytes(const helio_tensor *tensor) {
  return (size_t)tensor->elements * helio_type_bytes(tensor->type);
}

/* ---- facts: a step that was abandoned may hold tensors that are gone ---- */

helio_type helio_tensor_type(const helio_tensor *tensor) {
  hi_go_no_further();
  return tensor ? tensor->type : (helio_type)0;
}

helio_shape helio_tensor_shape(const helio_tensor *tensor) {
  hi_go_no_further();
  return tensor ? tensor->shape : (helio_shape){0, {0}};
}

int64_t helio_tensor_elements(const helio_tensor *tensor) {
  hi_go_no_further();
  return tensor ? tensor->elements : 0;
}

const char *helio_tensor_name(const helio_tensor *tensor) {
  hi_go_no_further();
  return tensor && tensor->name ? tensor->name : "";
}

const char *helio_tensor_device(const helio_tensor *tensor) {
  hi_go_no_further();
  return tensor && tensor->block->arena ? tensor->device->name : "";
}

/* ---- contents ---- */

helio_status helio_tensor_read(const helio_tensor *tensor, void *data, size_t bytes) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (!hi_tensor_usable(tensor, "the tensor")) return helio_error_pending();
  if (!data && bytes > 0) return hi_fail(HELIO_INVALID_ARGUMENT, "data is NULL");
  if (bytes != hi_tensor_bytes(tensor)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the tensor has %zu bytes, not %zu", hi_tensor_bytes(tensor), bytes);
  }
  return hi_copy_out(tensor->device, data, hi_tensor_place(tensor), bytes);
}

double helio_item(const helio_tensor *tensor) {
  char element[8];
  if (hi_enter(__func__) || !hi_tensor_usable(tensor, "the tensor")) return NAN;
  if (tensor->elements != 1) {
    char text[HI_SHAPE_TEXT];
    hi_fail(HELIO_INVALID_ARGUMENT, "a tensor of shape %s is not one item", hi_shape_text(&tensor->shape, text));
    return NAN;
  }
  if (hi_copy_out(tensor->device, element, hi_tensor_place(tensor), helio_type_bytes(tensor->type))) return NAN;
  return hi_type_decode(tensor->type, element);
}

static char *frame_text(const helio_tensor *tensor, const char *numbers) {
  char shape[HI_SHAPE_TEXT], *text = NULL;
  const char *type = helio_type_name(tensor->type);
  hi_shape_text(&tensor->shape, shape);
  /* TensorFlow begins a new line where the numbers take several. */
  const char *start = strchr(numbers, '\n') ? "\n" : "";
  if (asprintf(&text, "Tensor(%s%s, shape=%s, dtype=%s)", start, numbers, shape, type) < 0) return NULL;
  return text;
}

char *helio_tensor_text(const helio_tensor *tensor) {
  if (hi_enter(__func__) || !hi_tensor_usable(tensor, "the tensor")) return NULL;
  size_t bytes = hi_tensor_bytes(tensor);
  char *text = NULL, *numbers = NULL, *data = malloc(bytes ? bytes : 1);
  if (data && hi_copy_out(tensor->device, data, hi_tensor_place(tensor), bytes)) {
    free(data);
    return NULL;
  }
  if (data) numbers = hi_array_text(tensor->type, tensor->shape.rank, tensor->shape.extent, data);
  if (numbers) text = frame_text(tensor, numbers);
  if (!text) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the text of a tensor");
  free(numbers);
  free(data);
  return text;
}

helio_status helio_print(const helio_tensor *tensor) {
  char *text = helio_tensor_text(tensor);
  if (!text) return helio_error_pending();
  hi_enter(__func__);
  bool written = printf("%s\n", text) >= 0 && fflush(stdout) == 0;
  free(text);
  return written ? HELIO_OK : hi_fail(HELIO_IO_FAILURE, "cannot write to standard output: %s", strerror(errno));
}

/* ---- devices ---- */

helio_tensor *hi_tensor_on(helio_tensor *tensor, hi_device *device) {
  if (tensor->device == device) return tensor;
  if (hi_device_use(device)) return NULL;
  helio_tensor *copy = hi_tensor_new(device, tensor->type, &tensor->shape, "copy");
  if (!copy) return NULL;
  helio_status status =
      hi_copy(device, hi_tensor_place(copy), tensor->device, hi_tensor_place(tensor), hi_tensor_bytes(tensor));
  return status ? NULL : copy;
}
