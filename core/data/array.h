/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: data on the host, contiguous and row-major. They own their memory, or hold the object that does, or neither
 * where they were borrowed. */
#ifndef HI_ARRAY_H
#define HI_ARRAY_H

#include "tensor/tensor.h"

struct helio_array {
  hi_object object;
  helio_type type;
  helio_shape shape;
  int64_t elements;
  const void *data; /* aligned for the type; never NULL */
  void *heap;       /* freed with the array, NULL: nothing is */
  void *owner;      /* the hi_file or helio_array whose memory it shows, which it holds; NULL: none */
};

/* Both belong to the innermost pool. NULL with the error set. */

/* With memory of its own, whose contents are the caller's to write through `data`. */
helio_array *hi_array_new(helio_type type, const helio_shape *shape, void **data);

/* Showing memory of `owner`, an object; NULL: borrowed. */
helio_array *hi_array_over(void *owner, const void *data, helio_type type, const helio_shape *shape);

size_t hi_array_bytes(const helio_array *array);

/* Sets the error and returns false if the array is NULL. `what` names the argument. */
bool hi_array_usable(const helio_array *array, const char *what);

/* Writes `count` numbers in another type: as helio_cast() does, or through double where scaled. */
typedef struct hi_conversion {
  helio_type from, to;
  bool scaled; /* × scale + offset */
  double scale, offset;
} hi_conversion;

void hi_convert(const hi_conversion *conversion, const void *source, void *target, size_t count);

/* An integer of the array, whatever integer type it has. */
int64_t hi_array_integer(const helio_array *array, int64_t index);

#endif
