/* SPDX-License-Identifier: Apache-2.0 */
/* How an array lies in a file, and the array that is made of it. */
#ifndef HI_LAYOUT_H
#define HI_LAYOUT_H

#include "data/array.h"
#include "data/file.h"

typedef struct hi_layout {
  helio_type type;
  helio_shape shape;
  uint64_t offset; /* of the data in the file */
  bool swapped;    /* big-endian */
  bool fortran;    /* the first axis runs fastest */
  bool followed;   /* other data may follow; else these must reach the end of the file */
} hi_layout;

/* Bytes of the data. An error that names the file if the shape cannot be. */
helio_status hi_layout_bytes(const hi_file *file, const hi_layout *layout, size_t *bytes);

/* The array, which shows the file's own bytes where these are as they must be in memory, else is a copy. NULL with the
 * error set: the data are not all there, more is there, or a bool is neither 0 nor 1 (each kernel would make something
 * else of it). */
helio_array *hi_layout_read(hi_file *file, const hi_layout *layout);

#endif
