/* SPDX-License-Identifier: Apache-2.0 */
/* What runs through a pipeline: elements that are described rather than made. Images stay where they lie until an item
 * is landed (landing.h). Items do not change once they are filled, so they may be shared. */
#ifndef HI_ITEM_H
#define HI_ITEM_H

#include "data/array.h"
#include "device/point.h"
#include "tensor/tensor.h"

/* Row numbers that several parts share. An object without a pool: made with one reference. */
typedef struct hi_indices {
  hi_object object;
  int64_t count;
  int64_t value[];
} hi_indices;

/* Host memory, rows of host memory by number, or a tensor. */
typedef struct hi_part {
  helio_type type;
  helio_shape shape;
  void *owner;          /* the object whose memory `data` is, which the part holds; NULL: none */
  const void *data;     /* of the part, or of the array whose rows it is; NULL: `number` */
  hi_indices *indices;  /* held; NULL: the part lies at `data` as it is */
  helio_tensor *tensor; /* held; NULL: the part is on the host */
  int64_t number;
} hi_part;

typedef struct hi_item {
  hi_object object;
  int count;
  unsigned stamp;        /* of whoever cut it from a batch */
  struct hi_item *whole; /* that batch, held; NULL: none */
  int arrival_count;
  hi_point **arrivals; /* whose they are, by replica; NULL: there is nothing to wait for */
  hi_part part[];
} hi_item;

/* With one reference, the caller's, and no pool; NULL with the error set. Parts are zeros until they are set. */
hi_indices *hi_indices_new(int64_t count);
hi_item *hi_item_new(int count);

/* Fill a part; each holds what it is given. `shape` is the part's. */
void hi_part_set_data(hi_part *part, void *owner, const void *data, helio_type type, const helio_shape *shape);
void hi_part_set_array(hi_part *part, helio_array *array);
void hi_part_set_row(hi_part *part, helio_array *array, int64_t row);
void hi_part_set_rows(hi_part *part, helio_array *array, hi_indices *indices);
void hi_part_set_number(hi_part *part, int64_t number);
void hi_part_set_tensor(hi_part *part, helio_tensor *tensor);
void hi_part_copy(hi_part *part, const hi_part *from);

/* Where a part on the host that has no indices lies. */
const void *hi_part_data(const hi_part *part);
size_t hi_part_bytes(const hi_part *part);

/* Writes `count` rows from `first` on of a part that is on the host, or (count −1) all of it. */
void hi_part_write(const hi_part *part, int64_t first, int64_t count, void *target);

/* How many rows the parts of a batch have; −1, with the error set, if they differ or are scalars. */
int64_t hi_item_rows(const hi_item *item);

#endif
