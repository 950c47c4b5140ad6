/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: a type, a shape and a piece of a block of device memory. Contiguous and row-major. */
#ifndef HI_TENSOR_H
#define HI_TENSOR_H

#include <helio/helio.h>

#include "device/device.h"
#include "tensor/object.h"

struct helio_tensor {
  hi_object object;
  uint64_t id; /* no other tensor of the process ever has it: the tape knows tensors by it */
  helio_type type;
  helio_shape shape;
  int64_t elements;
  hi_device *device; /* valid while block->arena is */
  hi_block *block;
  size_t offset; /* bytes into the block */
  char *name;    /* NULL: none */

  /* What a softmax or sigmoid layer made this tensor of, NULL: it comes from none. Losses go back to it, because the
   * logarithm of a probability that was rounded to 0 is lost. */
  helio_tensor *logits;
  helio_activation logits_by; /* which of the two */
};

/* Elements and bytes of a shape; false if an extent is negative or the size does not fit. */
bool hi_shape_elements(const helio_shape *shape, int64_t *elements);
bool hi_shape_bytes(const helio_shape *shape, helio_type type, size_t *bytes);
bool hi_shape_equal(const helio_shape *a, const helio_shape *b);

/* Puts in the extent for −1 in a shape that is to hold so many elements; false if none fits. */
bool hi_shape_complete(helio_shape *shape, int64_t elements);

/* "(2, 3)", "(2,)", "()" as Python prints it, in a buffer of HI_SHAPE_TEXT bytes. */
enum { HI_SHAPE_TEXT = 200 };
const char *hi_shape_text(const helio_shape *shape, char text[HI_SHAPE_TEXT]);

bool hi_type_valid(helio_type type);
bool hi_type_is_float(helio_type type);

/* The eight or fewer bytes of `value` as a `type`, rounded as a cast would. */
void hi_type_encode(helio_type type, double value, void *bytes);
double hi_type_decode(helio_type type, const void *bytes);

/* A new tensor with memory of its own on a device that is in use, owned by the thread's innermost pool. `holder` is
 * named if memory runs out. NULL with the error set. */
helio_tensor *hi_tensor_new(hi_device *device, helio_type type, const helio_shape *shape, const char *holder);

/* The same for one that another stream of the device writes before all others. */
helio_tensor *hi_tensor_new_on(hi_device *device, int stream, helio_type type, const helio_shape *shape,
                               const char *holder);

/* A new tensor that shares the memory of `base` from `offset` bytes on. */
helio_tensor *hi_tensor_view(const helio_tensor *base, const helio_shape *shape, size_t offset);

/* Where a kernel finds it; { NULL, 0 } without elements. */
helio_place hi_tensor_place(const helio_tensor *tensor);
size_t hi_tensor_bytes(const helio_tensor *tensor);

/* Sets the error and returns false if the tensor is NULL or has outlived helio_shutdown(). `what` names the argument.
 */
bool hi_tensor_usable(const helio_tensor *tensor, const char *what);

/* The tensor itself, or a copy on `device`. */
helio_tensor *hi_tensor_on(helio_tensor *tensor, hi_device *device);

#endif
