/* SPDX-License-Identifier: Apache-2.0 */
/* The collective that is always there: sums on one device, in the order of ranks, and hands the result round. It needs
 * copies and additions alone and so serves any mix of devices, in one process. */
#ifndef HI_REDUCE_TO_ONE_H
#define HI_REDUCE_TO_ONE_H

#include <helio/plugin.h>

extern const helio_collective_table hi_reduce_to_one_table;

#endif
