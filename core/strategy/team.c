/* SPDX-License-Identifier: Apache-2.0 */
#include "strategy/team.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device/topology.h"
#include "runtime/environment.h"
#include "runtime/error.h"
#include "tensor/pool.h"

typedef struct member {
  hi_team *team;
  int number;
  pthread_t thread;
  helio_error error; /* of its latest job */
  hi_merge function; /* of the meeting that it came to */
  void *brought;     /* to it */
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
  helio_status (*job)(void *argument, int member);
  void *argument;
  int arrived, left; /* members at the meeting, members whose job is done */
  helio_error error; /* of the latest meeting */
  int count;
  member members[];
};

/* ---- waiting ---- */

static long microseconds_since(const struct timespec *begin) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - begin->tv_sec) * 1000000 + (now.tv_nsec - begin->tv_nsec) / 1000;
}

/* Returns with the lock held. */
static void wait_for(hi_team *team, atomic_uint *number, unsigned seen) {
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; team->spin_us > 0 && atomic_load_explicit(number, memory_order_acquire) == seen; i++) {
    if (i % 64 == 63 && microseconds_since(&begin) >= team->spin_us) break;
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
  team->error = (helio_error){.status = HELIO_WRONG_STATE};
  snprintf(team->error.message, sizeof team->error.message,
           "Some replicas made a different number of helio_merge_call() calls.");
  for (int i = 0; i < team->count; i++) {
    const member *m = &team->members[i];
    if (!m->left || !m->error.status) continue;
    team->error.status = HELIO_ABORTED;
    snprintf(team->error.message, sizeof team->error.message, "replica %d, which this one waited for, failed", i);
    break;
  }
  end_meeting(team);
}

static helio_status result_of_meeting(const hi_team *team) {
  return team->error.status ? hi_fail(team->error.status, "%s", team->error.message) : HELIO_OK;
}

/* Only one function can make sense of what they brought. */
static void compare_functions(hi_team *team) {
  team->error.status = HELIO_OK;
  for (int i = 1; i < team->count && !team->error.status; i++) {
    if (team->members[i].function == team->members[0].function) continue;
    team->error.status = HELIO_WRONG_STATE;
    snprintf(team->error.message, sizeof team->error.message,
             "Replicas 0 and %d made different calls where all replicas must make the same.", i);
  }
}

/* All are here, so nobody else touches the team until the meeting is over. */
static helio_status hold_meeting(hi_team *team, hi_merge function) {
  void *brought[HELIO_MAX_REPLICAS];
  for (int i = 0; i < team->count; i++) brought[i] = team->members[i].brought;
  compare_functions(team);
  if (function && !team->error.status) {
    pthread_mutex_unlock(&team->lock);
    hi_context before = hi_context_alone();
    helio_status status = function(brought, team->count);
    hi_context_set(before);
    pthread_mutex_lock(&team->lock);
    if (status) helio_error_take(&team->error);
  }
  end_meeting(team);
  return result_of_meeting(team);
}

helio_status hi_team_meet(hi_team *team, int number, hi_merge function, void *mine) {
  helio_status status = helio_error_pending();
  if (status) return status;
  pthread_mutex_lock(&team->lock);
  unsigned seen = atomic_load(&team->meetings);
  team->members[number].function = function;
  team->members[number].brought = mine;
  team->arrived++;
  if (team->arrived == team->count) {
    status = hold_meeting(team, function);
  } else {
    if (team->arrived + team->left == team->count) give_up_meeting(team);
    pthread_mutex_unlock(&team->lock);
    wait_for(team, &team->meetings, seen);
    status = result_of_meeting(team);
  }
  pthread_mutex_unlock(&team->lock);
  return status;
}

/* ---- jobs ---- */

static void do_job(member *m) {
  hi_team *team = m->team;
  helio_scope pool = helio_pool_enter();
  team->job(team->argument, m->number);
  helio_pool_leave(&pool);
  pthread_mutex_lock(&team->lock);
  helio_error_take(&m->error);
  m->left = true;
  team->left++;
  if (team->arrived > 0 && team->arrived + team->left == team->count) give_up_meeting(team);
  if (team->left == team->count) pthread_cond_signal(&team->done);
  pthread_mutex_unlock(&team->lock);
}

static void *work(void *argument) {
  member *m = argument;
  hi_team *team = m->team;
  char name[32];
  snprintf(name, sizeof name, "helio-rep%d", m->number);
  name[15] = 0; /* as long as the system takes it */
  pthread_setname_np(pthread_self(), name);
  for (unsigned seen = 0;; seen++) {
    wait_for(team, &team->jobs, seen);
    bool ending = team->ending;
    pthread_mutex_unlock(&team->lock);
    if (ending) break;
    do_job(m);
  }
  hi_pool_thread_end();
  return NULL;
}

/* The one whose cause lies in itself comes before those that gave up because of it. */
static helio_status report(const hi_team *team) {
  const member *first = NULL;
  for (int i = 0; i < team->count; i++) {
    const member *m = &team->members[i];
    if (!m->error.status) continue;
    if (!first || (first->error.status == HELIO_ABORTED && m->error.status != HELIO_ABORTED)) first = m;
  }
  return first ? hi_fail(first->error.status, "replica %d: %s", first->number, first->error.message) : HELIO_OK;
}

helio_status hi_team_run(hi_team *team, helio_status (*job)(void *argument, int member), void *argument) {
  pthread_mutex_lock(&team->lock);
  team->job = job;
  team->argument = argument;
  team->left = team->arrived = 0;
  for (int i = 0; i < team->count; i++) {
    team->members[i].left = false;
    team->members[i].error.status = HELIO_OK;
  }
  announce(team, &team->jobs);
  while (team->left < team->count) pthread_cond_wait(&team->done, &team->lock);
  helio_status status = report(team);
  pthread_mutex_unlock(&team->lock);
  return status;
}

/* ---- life ---- */

static void end_threads(hi_team *team, int started) {
  pthread_mutex_lock(&team->lock);
  team->ending = true;
  announce(team, &team->jobs);
  pthread_mutex_unlock(&team->lock);
  for (int i = 0; i < started; i++) pthread_join(team->members[i].thread, NULL);
}

void hi_team_free(hi_team *team) {
  if (!team) return;
  end_threads(team, team->count);
  pthread_cond_destroy(&team->done);
  pthread_cond_destroy(&team->changed);
  pthread_mutex_destroy(&team->lock);
  free(team);
}

hi_team *hi_team_new(int count) {
  hi_team *team = calloc(1, sizeof *team + (size_t)count * sizeof team->members[0]);
  if (!team) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the threads of %d replicas", count);
    return NULL;
  }
  pthread_mutex_init(&team->lock, NULL);
  pthread_cond_init(&team->changed, NULL);
  pthread_cond_init(&team->done, NULL);
  team->spin_us = count > hi_topology_cores() ? 0 : (long)hi_environment_number(HI_SPIN_US);
  for (; team->count < count; team->count++) {
    member *m = &team->members[team->count];
    *m = (member){.team = team, .number = team->count};
    if (pthread_create(&m->thread, NULL, work, m) == 0) continue;
    hi_fail(HELIO_OUT_OF_MEMORY, "the thread of replica %d could not be started", team->count);
    hi_team_free(team);
    return NULL;
  }
  return team;
}
