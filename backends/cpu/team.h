/* SPDX-License-Identifier: Apache-2.0 */
/* A team of threads that run the parts of one piece of work together. */
#ifndef CPU_TEAM_H
#define CPU_TEAM_H

#include <helio/plugin.h>

typedef struct cpu_team cpu_team;

/* The work of one part. Parts must not depend on each other: they run in any order, each once. */
typedef void cpu_team_function(void *argument, unsigned part, unsigned parts);

/* A team of `threads` (at least 1), of which one is whoever calls cpu_team_run. Threads that find no work spin for
 * `spin_us` before they sleep. */
helio_status cpu_team_create(const helio_host *host, unsigned threads, unsigned spin_us, cpu_team **team);

/* Ends and joins the threads. Accepts NULL. */
void cpu_team_destroy(cpu_team *team);

unsigned cpu_team_size(const cpu_team *team);

/* Runs all parts (at most the size of the team) and returns when they are done. Several callers take turns. What a part
 * computes does not depend on which thread runs it; part 0 is the caller's. A part must not call this again. */
void cpu_team_run(cpu_team *team, unsigned parts, cpu_team_function *function, void *argument);

#endif
