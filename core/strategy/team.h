/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for each replica, for the strategy's life: a job is done by all of them at the same time, and inside it they
 * can meet. A waiting thread spins for a short time and then sleeps; an idle team takes no time at all.
 *
 * Nobody is waited for without end: a member that shows no sign of life for HELIO_TIMEOUT while its job is under way
 * (it begins no operation and does not wait for others) is abandoned, as if its job had failed. */
#ifndef HI_TEAM_H
#define HI_TEAM_H

#include "ops/replica.h"

typedef struct hi_team hi_team;

/* Called, on the thread that gave the job, when a member was abandoned: the others may wait for it. */
typedef void hi_team_abandoned(void *argument, int member);

/* NULL with the error set. `names` are those of the members' devices, for reports, and stay valid. */
hi_team *hi_team_new(int count, const char *const *names, hi_team_abandoned *abandoned, void *argument);

/* Ends the threads. No job is under way; NULL: nothing. */
void hi_team_free(hi_team *team);

/* Every member calls `job` with its number; waits for all. Each member's error comes to the caller: that of the lowest
 * one is left pending, those of members that only waited for others in vain last. No other job is under way. */
helio_status hi_team_run(hi_team *team, helio_status (*job)(void *argument, int member), void *argument);

/* Did the member's part of the latest job fail? */
bool hi_team_has_failed(const hi_team *team, int member);

/* Was the member abandoned in a job? And which device was it at then; NULL: none. */
bool hi_team_has_lost(const hi_team *team, int member);
hi_device *hi_team_device_of(const hi_team *team, int member);

/* Gives a member that was abandoned another thread; false: none can be had. No job is under way. */
bool hi_team_renew(hi_team *team, int member);

/* Ends the member's thread, unless it was abandoned; those behind it move up. No job is under way. */
void hi_team_remove(hi_team *team, int member);

/* Inside a job: waits until all members have come, calls the function (NULL: none) once with what they brought, on the
 * thread that came last, and lets all go on. What the function fails with is every member's error. So is it if another
 * member's job ended without coming, or came with another function. */
helio_status hi_team_meet(hi_team *team, int member, hi_merge function, void *mine);

#endif
