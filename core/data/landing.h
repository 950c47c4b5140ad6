/* SPDX-License-Identifier: Apache-2.0 */
/* From the host to a device: where the rows of an item are at last gathered, straight into memory that the device can
 * take. */
#ifndef HI_LANDING_H
#define HI_LANDING_H

#include "data/item.h"

/* Rows `first` to `first + count − 1` of a batch on the device; count −1: all of an item, batch or not. The tensors
 * belong to the innermost pool. */
helio_status hi_item_land(const hi_item *item, int64_t first, int64_t count, hi_device *device, helio_element *element);

/* The same ahead of its time, beside what the device computes. Whoever is first to use the tensors on the device's
 * compute stream lets that wait for *arrival, which is the caller's and NULL where there is nothing to wait for. */
helio_status hi_item_land_ahead(const hi_item *item, int64_t first, int64_t count, hi_device *device,
                                helio_element *element, hi_point **arrival);

/* An item of tensors on the device, with a reference of the caller's: the same one where it is that already. NULL with
 * the error set. */
hi_item *hi_item_landed(hi_item *item, hi_device *device);

/* An item that holds the tensors of an element. NULL with the error set. */
hi_item *hi_item_of(const helio_element *element);

#endif
