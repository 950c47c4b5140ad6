/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that one thread of the host changes between: a thread of a kernel that waits has one of its own. */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sim_fiber sim_fiber;

/* The stack that the calling thread has anyway. */
sim_fiber *sim_fiber_of_thread(void);

/* `main` is called at the first switch to it, and must not return. */
sim_fiber *sim_fiber_create(void (*main)(void *argument), void *argument);
void sim_fiber_destroy(sim_fiber *fiber);

/* Forgets where it was: the next switch to it begins anew. A thread's own only forgets its fibers, all of which must be
 * reset too. */
void sim_fiber_reset(sim_fiber *fiber);

/* Goes on where `to` was left. From a handler of a signal too, if `from` is what it interrupted and is reset after. */
void sim_fiber_switch(sim_fiber *from, sim_fiber *to);

/* It will be switched to soon: fetches its stack into the cache. */
void sim_fiber_expect(const sim_fiber *fiber);

/* In the page below its stack, which nobody may touch? Then the stack was too small. */
bool sim_fiber_overflowed(const sim_fiber *fiber, const void *address);

#endif
