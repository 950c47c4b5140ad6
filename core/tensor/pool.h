/* SPDX-License-Identifier: Apache-2.0 */
/* The thread's stack of pools, which own the objects that calls make. */
#ifndef HI_POOL_H
#define HI_POOL_H

#include "tensor/object.h"

/* Gives a new object to the innermost pool; false, with the error set, if there is no memory. */
bool hi_pool_add(hi_object *object);

/* Leaves a pool and lets one object out of it, into the one around; NULL stays NULL. NULL with the error set if there
 * is no memory. */
void *hi_pool_leave_with(helio_scope *pool, void *object);

/* Empties all pools of the calling thread. */
void hi_pool_drain(void);

/* The last call of a thread of the library, which somebody joins before the library ends: empties its pools and lets
 * nothing run at its end that would wait for that somebody. */
void hi_pool_thread_end(void);

#endif
