/* SPDX-License-Identifier: Apache-2.0 */
#include "strategy/team.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device/topology.h"
#include "runtime/clock.h"
#include "runtime/environment.h"
#include "runtime/error.h"
#include "runtime/leaks.h"
#include "runtime/log.h"
#include "runtime/progress.h"
#include "runtime/threads.h"
#include "tensor/pool.h"

typedef struct member {
  hi_team *team;
  int number;
  const char *name; /* of its device */
  pthread_t thread;
  hi_progress progress;
  unsigned jobs;     /* of the team when it came */
  bool lost;         /* abandoned */
  bool ending;       /* it alone, under the lock */
  helio_error error; /* of its latest job */
  hi_merge function; /* of the meeting that it came to */
  void *brought;     /* to it */
  bool holds;        /* the meeting, on behalf of all */
  bool left;         /* its job is done */
} member;

/* Jobs and meetings are counted; who waits for one waits for its number to change. */
struct hi_team {
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a job has begun, a meeting is over */
  pthread_cond_t done;    /* the last member has done its job */
  atomic_uint jobs, meetings;
  long spin_us;
  bool ending;
  uint64_t timeout_ms; /* 0: none */
  hi_team_abandoned *abandoned;
  void *owner;
  helio_status (*job)(void *argument, int member);
  void *argument;
  int arrived, left; /* members at the meeting, members whose job is done */
  helio_error error; /* of the latest meeting */
  int count;
  member *members[];
};

/* ---- waiting ---- */

/* Returns with the lock held. */
static void wait_for(hi_team *team, atomic_uint *number, unsigned seen) {
  double begin = hi_seconds();
  for (int i = 0; team->spin_us > 0 && atomic_load_explicit(number, memory_order_acquire) == seen; i++) {
    if (i % 64 == 63 && 1e6 * (hi_seconds() - begin) >= (double)team->spin_us) break;
  }
  pthread_mutex_lock(&team->lock);
  while (atomic_load(number) == seen) pthread_cond_wait(&team->changed, &team->lock);
}

static void announce(hi_team *team, atomic_uint *number) {
  atomic_fetch_add_explicit(number, 1, memory_order_release);
  pthread_cond_broadcast(&team->changed);
}

/* ---- meetings: all under the lock but the function itself ---- */

static void end_meeting(hi_team *team) {
  team->arrived = 0;
  announce(team, &team->meetings);
}

/* Some wait, and some will not come any more. Whose job failed is the cause; else the jobs are not alike. */
static void give_up_meeting(hi_team *team) {
  const member *first = NULL; /* of those that have left: one that failed, if there is any */
  for (int i = 0; i < team->count; i++) {
    const member *m = team->members[i];
    if (m->left && (!first || (m->error.status && !first->error.status))) first = m;
  }
  bool failed = first && first->error.status;
  team->error = (helio_error){.status = failed ? HELIO_ABORTED : HELIO_WRONG_STATE};
  snprintf(team->error.message, sizeof team->error.message,
           failed ? "replica %d, which this one waited for, failed: %s"
                  : "Some replicas made a different number of helio_merge_call() calls. Replica %d has ended its step, "
                    "while others wait for it: all must merge, sum and update alike",
           first ? first->number : 0, failed ? first->error.message : "");
  end_meeting(team);
}

static helio_status result_of_meeting(const hi_team *team) {
  return team->error.status ? hi_fail(team->error.status, "%s", team->error.message) : HELIO_OK;
}

/* Only one function can make sense of what they brought. */
static void compare_functions(hi_team *team) {
  team->error.status = HELIO_OK;
  for (int i = 1; i < team->count && !team->error.status; i++) {
    if (team->members[i]->function == team->members[0]->function) continue;
    team->error.status = HELIO_WRONG_STATE;
    snprintf(team->error.message, sizeof team->error.message,
             "Replicas 0 and %d made different calls where all replicas must make the same.", i);
  }
}

/* All are here, so nobody else touches the team until the meeting is over. */
static helio_status hold_meeting(hi_team *team, member *m, hi_merge function) {
  void *brought[HELIO_MAX_REPLICAS];
  for (int i = 0; i < team->count; i++) brought[i] = team->members[i]->brought;
  compare_functions(team);
  m->holds = true;
  if (function && !team->error.status) {
    pthread_mutex_unlock(&team->lock);
    hi_context before = hi_context_alone();
    hi_progress_change(HI_WORKS);
    helio_status status = function(brought, team->count);
    hi_progress_change(HI_INSIDE);
    hi_context_set(before);
    pthread_mutex_lock(&team->lock);
    if (status) helio_error_take(&team->error);
  }
  m->holds = false;
  end_meeting(team);
  return result_of_meeting(team);
}

helio_status hi_team_meet(hi_team *team, int number, hi_merge function, void *mine) {
  helio_status status = helio_error_pending();
  if (status) return status;
  hi_doing("waiting for the other replicas", NULL);
  hi_progress_change(HI_INSIDE);
  pthread_mutex_lock(&team->lock);
  unsigned seen = atomic_load(&team->meetings);
  team->members[number]->function = function;
  team->members[number]->brought = mine;
  team->arrived++;
  if (team->arrived == team->count) {
    status = hold_meeting(team, team->members[number], function);
  } else {
    if (team->arrived + team->left == team->count) give_up_meeting(team);
    pthread_mutex_unlock(&team->lock);
    wait_for(team, &team->meetings, seen);
    status = result_of_meeting(team);
  }
  pthread_mutex_unlock(&team->lock);
  hi_progress_change(HI_WORKS);
  hi_done();
  return status;
}

/* ---- jobs ---- */

static void leave_job(member *m) {
  hi_team *team = m->team;
  m->left = true;
  team->left++;
  if (team->arrived > 0 && team->arrived + team->left == team->count) give_up_meeting(team);
  if (team->left == team->count) pthread_cond_signal(&team->done);
}

static void do_job(member *m) {
  hi_team *team = m->team;
  helio_scope pool = helio_pool_enter();
  team->job(team->argument, m->number);
  helio_pool_leave(&pool);
  hi_progress_change(HI_INSIDE);
  pthread_mutex_lock(&team->lock);
  helio_error_take(&m->error);
  leave_job(m);
  pthread_mutex_unlock(&team->lock);
}

static void *work(void *argument) {
  member *m = argument;
  hi_team *team = m->team;
  hi_progress_set(&m->progress);
  for (unsigned seen = m->jobs;;) {
    wait_for(team, &team->jobs, seen);
    seen = atomic_load(&team->jobs);
    bool ending = team->ending || m->ending, idle = !team->job;
    pthread_mutex_unlock(&team->lock);
    if (ending) break;
    if (idle) continue;
    hi_progress_change(HI_WORKS);
    do_job(m);
  }
  hi_pool_thread_end();
  return NULL;
}

/* The one whose cause lies in itself comes before those that gave up because of it. */
static helio_status report(const hi_team *team) {
  const member *first = NULL;
  for (int i = 0; i < team->count; i++) {
    const member *m = team->members[i];
    if (!m->error.status) continue;
    if (!first || (first->error.status == HELIO_ABORTED && m->error.status != HELIO_ABORTED)) first = m;
  }
  return first ? hi_fail(first->error.status, "replica %d: %s", first->number, first->error.message) : HELIO_OK;
}

/* ---- deadlines ---- */

/* A line for each replica: which, where, at what, the how-manieth call, and for how long. */
static void tell_all(const hi_team *team) {
  static const char *const activities[] = {[HI_INSIDE] = "waits",
                                           [HI_WORKS] = "works",
                                           [HI_LANDS] = "works",
                                           [HI_WAITS] = "waits",
                                           [HI_ABANDONED] = "hangs"};
  hi_log(HELIO_LOG_ERROR,
         "a replica was waited for in vain for %.3g s (HELIO_TIMEOUT):", (double)team->timeout_ms / 1000);
  hi_log(HELIO_LOG_ERROR, "  replica  device  last operation  sequence number  seconds  state");
  for (int i = 0; i < team->count; i++) {
    const member *m = team->members[i];
    const char *operation = atomic_load(&m->progress.operation);
    hi_log(HELIO_LOG_ERROR, "  %d  %s  %s  %lu  %.1f  %s", i, m->name, operation ? operation : "none",
           atomic_load(&m->progress.sequence), hi_progress_silence(&m->progress),
           m->left && !m->lost ? "has left" : activities[atomic_load(&m->progress.activity)]);
  }
}

static void abandon(member *m) {
  const char *operation = atomic_load(&m->progress.operation);
  m->lost = true;
  m->error = (helio_error){.status = HELIO_TIMED_OUT};
  snprintf(m->error.message, sizeof m->error.message,
           "%s has not come back from %s within %.3g s (HELIO_TIMEOUT); its "
           "thread is abandoned",
           m->name, operation ? operation : "the step", (double)m->team->timeout_ms / 1000);
  hi_log(HELIO_LOG_ERROR, "%s", m->error.message);
  if (m->holds) {
    m->team->error = m->error;
    end_meeting(m->team);
  }
  leave_job(m);
}

/* The lock is held, but not while the owner is told. */
static void look_after(hi_team *team) {
  bool told = false;
  for (int i = 0; i < team->count; i++) {
    member *m = team->members[i];
    if (m->left || !hi_progress_overdue(&m->progress, team->timeout_ms) || !hi_progress_abandon(&m->progress)) continue;
    if (!told) tell_all(team);
    told = true;
    abandon(m);
    pthread_mutex_unlock(&team->lock);
    team->abandoned(team->owner, i);
    pthread_mutex_lock(&team->lock);
  }
}

/* Looks after the members from time to time. */
static void wait_for_all(hi_team *team) {
  while (team->left < team->count) {
    struct timespec next = hi_progress_next_look(team->timeout_ms);
    if (pthread_cond_timedwait(&team->done, &team->lock, &next) == ETIMEDOUT) look_after(team);
  }
}

helio_status hi_team_run(hi_team *team, helio_status (*job)(void *argument, int member), void *argument) {
  pthread_mutex_lock(&team->lock);
  team->job = job;
  team->argument = argument;
  team->left = team->arrived = 0;
  for (int i = 0; i < team->count; i++) {
    member *m = team->members[i];
    m->left = m->lost; /* who was abandoned does nothing any more */
    team->left += m->lost;
    m->error.status = HELIO_OK;
    if (!m->lost) hi_progress_watch(&m->progress);
  }
  announce(team, &team->jobs);
  wait_for_all(team);
  helio_status status = report(team);
  pthread_mutex_unlock(&team->lock);
  return status;
}

bool hi_team_has_lost(const hi_team *team, int number) {
  return team->members[number]->lost;
}

bool hi_team_has_failed(const hi_team *team, int number) {
  return team->members[number]->error.status;
}

hi_device *hi_team_device_of(const hi_team *team, int number) {
  return (hi_device *)atomic_load(&team->members[number]->progress.device);
}

/* ---- life ---- */

/* The thread of one that was abandoned may still look at its progress. */
static void member_end(member *m) {
  if (m->lost) {
    hi_thread_abandon(m->thread);
    pthread_detach(m->thread);
    hi_keep_for_ever(m);
    return;
  }
  pthread_join(m->thread, NULL);
  free(m);
}

void hi_team_remove(hi_team *team, int number) {
  member *m = team->members[number];
  pthread_mutex_lock(&team->lock);
  m->ending = true;
  team->job = NULL; /* the others look and see that there is nothing for them */
  announce(team, &team->jobs);
  pthread_mutex_unlock(&team->lock);
  member_end(m);
  team->count--;
  for (int i = number; i < team->count; i++) {
    team->members[i] = team->members[i + 1];
    team->members[i]->number = i;
  }
}

void hi_team_free(hi_team *team) {
  if (!team) return;
  pthread_mutex_lock(&team->lock);
  team->ending = true;
  announce(team, &team->jobs);
  pthread_mutex_unlock(&team->lock);
  for (int i = 0; i < team->count; i++) member_end(team->members[i]);
  pthread_cond_destroy(&team->done);
  pthread_cond_destroy(&team->changed);
  pthread_mutex_destroy(&team->lock);
  free(team);
}

static member *member_new(hi_team *team, int number, const char *name) {
  member *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  *m = (member){.team = team, .number = number, .name = name, .jobs = atomic_load(&team->jobs)};
  char shown[32];
  snprintf(shown, sizeof shown, "helio-rep%d", m->number);
  if (hi_thread_start(&m->thread, shown, work, m) == 0) return m;
  free(m);
  return NULL;
}

bool hi_team_renew(hi_team *team, int number) {
  member *m = member_new(team, number, team->members[number]->name);
  if (!m) return false;
  member_end(team->members[number]);
  team->members[number] = m;
  return true;
}

hi_team *hi_team_new(int count, const char *const *names, hi_team_abandoned *abandoned, void *owner) {
  hi_team *team = calloc(1, sizeof *team + (size_t)count * sizeof team->members[0]);
  if (!team) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the threads of %d replicas", count);
    return NULL;
  }
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&team->lock, NULL);
  pthread_cond_init(&team->changed, NULL);
  pthread_cond_init(&team->done, &clock);
  pthread_condattr_destroy(&clock);
  team->abandoned = abandoned;
  team->owner = owner;
  team->timeout_ms = hi_environment_number(HI_TIMEOUT);
  team->spin_us = count > hi_topology_cores() ? 0 : (long)hi_environment_number(HI_SPIN_US);
  while (team->count < count) {
    member *m = member_new(team, team->count, names[team->count]);
    if (m) team->members[team->count++] = m;
    if (m) continue;
    hi_fail(HELIO_OUT_OF_MEMORY, "the thread of replica %d could not be started", team->count);
    hi_team_free(team);
    return NULL;
  }
  return team;
}
