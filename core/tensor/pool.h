/* SPDX-License-Identifier: Apache-2.0 */
/* The thread's stack of pools, which own the values that operations make. */
#ifndef HI_POOL_H
#define HI_POOL_H

#include <helio/helio.h>

/* Gives a new value to the innermost pool; false, with the error set, if there is no memory. */
bool hi_pool_add(helio_tensor *tensor);

/* Empties all pools of the calling thread. */
void hi_pool_drain(void);

#endif
