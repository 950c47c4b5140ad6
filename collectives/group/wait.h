/* SPDX-License-Identifier: Apache-2.0 */
/* How ranks of a group wait for each other: spinning for a while, then asleep. */
#ifndef HELIO_GROUP_WAIT_H
#define HELIO_GROUP_WAIT_H

#include "group.h"

/* What can be waited for. `other` and `progress` mean something to some of them. */
typedef bool group_condition(const group *g, uint32_t other, uint32_t progress);

group_condition group_reached;     /* rank `other` has the progress */
group_condition group_all_reached; /* every rank has it */
group_condition group_all_seated;  /* every rank has joined */
group_condition group_all_rest;    /* no rank but `other` works on the memory of others */

/* Waits until the condition is met, the group breaks (if that is heeded) or the time is up; false: it is up. */
bool group_wait(group *g, group_condition *met, uint32_t other, uint32_t progress, bool heed);

/* Called behind a change that somebody may wait for; ring_bell: where that is not worth a look. */
void group_tell_sleepers(group *g);
void group_ring_bell(group *g);

#endif
