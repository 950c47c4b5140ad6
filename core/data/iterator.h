/* SPDX-License-Identifier: Apache-2.0 */
/* Iterators, for those who land elements themselves: a strategy cuts a global batch and lands each piece on its
 * replica's device (landing.h) with no copy in between. */
#ifndef HI_ITERATOR_H
#define HI_ITERATOR_H

#include "data/item.h"

/* As helio_iterate(), but nothing is taken to a device before its time: prefetch brings items as they are. What a map
 * made is on the thread's current device all the same. */
helio_iterator *hi_iterate_unlanded(helio_dataset *dataset);

/* The next item, with a reference of the caller's; NULL at the end. False with the error set. */
bool hi_iterator_item(helio_iterator *iterator, hi_item **item);

#endif
