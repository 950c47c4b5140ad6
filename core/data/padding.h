/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of elements of unequal shapes: each is filled up behind. */
#ifndef HI_PADDING_H
#define HI_PADDING_H

#include "data/item.h"

typedef struct hi_padding {
  helio_shape shape[HELIO_MAX_PARTS];
  double value[HELIO_MAX_PARTS];
} hi_padding;

/* For free(); NULL with the error set, also for shapes that are not valid. */
hi_padding *hi_padding_new(const helio_shape *shapes, const double *values);
uint64_t hi_padding_fingerprint(const hi_padding *padding);

/* At least one item. NULL with an error that names what does not fit. */
hi_item *hi_pad_items(const hi_padding *padding, hi_item *const *items, int64_t count);

#endif
