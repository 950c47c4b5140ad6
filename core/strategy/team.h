/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for each replica, for the strategy's life: a job is done by all of them at the same time, and inside it they
 * can meet. A waiting thread spins for a short time and then sleeps; an idle team takes no time at all. */
#ifndef HI_TEAM_H
#define HI_TEAM_H

#include "ops/replica.h"

typedef struct hi_team hi_team;

/* NULL with the error set. */
hi_team *hi_team_new(int count);

/* Ends the threads. No job is under way; NULL: nothing. */
void hi_team_free(hi_team *team);

/* Every member calls `job` with its number; waits for all. Each member's error comes to the caller: that of the lowest
 * one is left pending, those of members that only waited for others in vain last. No other job is under way. */
helio_status hi_team_run(hi_team *team, helio_status (*job)(void *argument, int member), void *argument);

/* Inside a job: waits until all members have come, calls the function (NULL: none) once with what they brought, on the
 * thread that came last, and lets all go on. What the function fails with is every member's error. So is it if another
 * member's job ended without coming, or came with another function. */
helio_status hi_team_meet(hi_team *team, int member, hi_merge function, void *mine);

#endif
