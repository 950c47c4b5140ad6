/* SPDX-License-Identifier: Apache-2.0 */
/* The attendant of a group: a thread that makes its communicators, watches them, and aborts them when the group breaks.
 *
 * All of a group's communicators are made by this one thread, because the library waits for all ranks without a
 * deadline: ranks that wait for the attendant keep theirs, and the failure of one rank ends the making of all. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "nccl.h"

/* How long is waited for what should not take long: a call that is under way when the group breaks, the library when it
 * gives communicators back. */
static const int64_t patience = 5000000;

static int64_t microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Of what a thread waited at a time not more counts than it can have meant to wait: whoever was stopped with the whole
 * process has not waited. */
static int64_t countable(int64_t spent) {
  enum { MOST = 200000 };
  return spent < MOST ? spent : MOST;
}

/* The lock is held. Returns the time that counts. */
static int64_t sleep_for(nccl_team *team, int64_t most) {
  int64_t begin = microseconds(), end = begin + most;
  struct timespec until = {.tv_sec = end / 1000000, .tv_nsec = end % 1000000 * 1000};
  pthread_cond_timedwait(&team->changed, &team->lock, &until);
  return countable(microseconds() - begin);
}

/* ---- making communicators ---- */

/* NULL: the rank has left. */
static const helio_member *member_of(group *g, uint32_t rank) {
  pthread_mutex_lock(&g->lock);
  const helio_member *member = g->rank[rank].member;
  pthread_mutex_unlock(&g->lock);
  return member;
}

static bool is_sick(group *g, uint32_t rank) {
  const helio_member *member = member_of(g, rank);
  uint64_t available, total;
  return member && member->devices->memory_info(member->device, &available, &total) == HELIO_DEVICE_FAILURE;
}

/* The library does not say whose fault it was, the devices do. */
static void blame(group *g, abi_enum result) {
  char text[300], message[500];
  uint32_t culprit = GROUP_NOBODY;
  nccl_text(result, text, sizeof text);
  for (uint32_t i = 0; i < g->rank_count && culprit == GROUP_NOBODY; i++) {
    if (is_sick(g, i)) culprit = i;
  }
  if (culprit == GROUP_NOBODY) {
    snprintf(message, sizeof message, "communicators could not be made: %s", text);
    group_break(g, culprit, nccl_status(result, text), message);
  } else {
    snprintf(message, sizeof message, "the device of rank %u failed while communicators were made: %s", culprit, text);
    group_break(g, culprit, HELIO_ABORTED, message);
  }
}

static void make_communicators(nccl_team *team) {
  group *g = team->group;
  nccl_abi_unique_id id;
  memcpy(&id, g->id, sizeof id);
  abi_enum result = nccl.ncclGroupStart(), ended = result;
  for (uint32_t i = 0; i < g->rank_count && !result; i++) {
    const helio_member *member = member_of(g, i);
    bool entered = member && nccl_enter(member);
    result = entered ? nccl.ncclCommInitRank(&team->ranks[i].made, (int)g->rank_count, id, (int)i)
                     : (abi_enum)NCCL_ABI_UNHANDLED_CUDA_ERROR;
  }
  if (!ended) ended = nccl.ncclGroupEnd();
  if (!result) result = ended;
  pthread_mutex_lock(&team->lock);
  bool alone = team->ending; /* so late that nobody is left, and nothing may be looked at */
  pthread_mutex_unlock(&team->lock);
  if (result) {
    if (!alone) blame(g, result);
    return;
  }
  for (uint32_t i = 0; i < g->rank_count; i++) atomic_store(&team->ranks[i].handle, team->ranks[i].made);
}

/* ---- aborting ---- */

/* A call of the rank may be under way. It ends soon, unless the library waits in it for other ranks: then the abort is
 * what ends it. */
static bool lock_soon(nccl_rank *rank) {
  struct timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_sec += 1;
  return pthread_mutex_timedlock(&rank->lock, &soon) == 0;
}

static void abort_rank(nccl_team *team, uint32_t number) {
  nccl_rank *rank = &team->ranks[number];
  const helio_member *member = member_of(team->group, number);
  bool locked = lock_soon(rank);
  struct ncclComm *handle = atomic_exchange(&rank->handle, NULL);
  if (handle) {
    if (member) nccl_enter(member);
    nccl.ncclCommAbort(handle);
  }
  if (locked) pthread_mutex_unlock(&rank->lock);
}

/* Devices that wait for others come first: the library may wait for one that does not come, and takes the rest along.
 */
static void abort_all(nccl_team *team) {
  const group *g = team->group;
  for (uint32_t i = 0; i < g->rank_count; i++) {
    if (nccl_waits(team, i)) abort_rank(team, i);
  }
  for (uint32_t i = 0; i < g->rank_count; i++) abort_rank(team, i);
}

/* ---- the thread ---- */

static bool all_seated(const group *g) {
  bool all = true;
  for (uint32_t i = 0; i < g->rank_count; i++) all = all && atomic_load(&g->rank[i].seated);
  return all;
}

static int64_t tick_of(const group *g) {
  enum { USUAL = 20000, LEAST = 1000 };
  int64_t tick = g->timeout_ms == 0 ? USUAL : (int64_t)g->timeout_ms * 1000 / 20;
  return tick > USUAL ? USUAL : tick < LEAST ? LEAST : tick;
}

/* The lock is held, but not while something is looked after. */
static void look_after(nccl_team *team) {
  int64_t begin = microseconds();
  pthread_mutex_unlock(&team->lock);
  nccl_ask(team);
  bool busy = nccl_watch(team);
  pthread_mutex_lock(&team->lock);
  if (team->ending || group_is_broken(team->group)) return;
  if (busy) {
    sleep_for(team, tick_of(team->group));
    atomic_fetch_add(&team->clock, countable(microseconds() - begin));
    return;
  }
  /* Who makes a call looks at this flag behind it. */
  atomic_store(&team->idle, true);
  pthread_mutex_unlock(&team->lock);
  busy = nccl_watch(team);
  pthread_mutex_lock(&team->lock);
  while (!busy && atomic_load(&team->idle) && !team->ending && !group_is_broken(team->group)) {
    pthread_cond_wait(&team->changed, &team->lock);
  }
  atomic_store(&team->idle, false);
}

static void *attend(void *argument) {
  nccl_team *team = argument;
  group *g = team->group;
  pthread_mutex_lock(&team->lock);
  while (!team->ending && !group_is_broken(g) && !all_seated(g)) pthread_cond_wait(&team->changed, &team->lock);
  bool wanted = !team->ending && !group_is_broken(g);
  pthread_mutex_unlock(&team->lock);
  if (wanted) make_communicators(team);
  pthread_mutex_lock(&team->lock);
  team->made = true;
  pthread_cond_broadcast(&team->changed);
  while (!team->ending && !group_is_broken(g)) look_after(team);
  pthread_mutex_unlock(&team->lock);
  abort_all(team); /* what is left of them */
  pthread_mutex_lock(&team->lock);
  team->aborted = true;
  pthread_cond_broadcast(&team->changed);
  while (!team->ending) pthread_cond_wait(&team->changed, &team->lock);
  team->finished = true;
  pthread_cond_broadcast(&team->changed);
  pthread_mutex_unlock(&team->lock);
  return NULL;
}

/* ---- the service ---- */

static void wake(group *g) {
  nccl_team *team = g->shared;
  pthread_mutex_lock(&team->lock);
  pthread_cond_broadcast(&team->changed);
  pthread_mutex_unlock(&team->lock);
}

static void team_free(nccl_team *team) {
  const helio_host *host = team->group->host;
  for (uint32_t i = 0; i < team->group->rank_count; i++) pthread_mutex_destroy(&team->ranks[i].lock);
  pthread_mutex_destroy(&team->looking);
  pthread_mutex_destroy(&team->lock);
  pthread_cond_destroy(&team->changed);
  host->release(host, team);
}

static nccl_team *team_new(group *g) {
  size_t bytes = sizeof(nccl_team) + g->rank_count * sizeof(nccl_rank);
  nccl_team *team = g->host->allocate(g->host, bytes);
  if (!team) return NULL;
  memset(team, 0, bytes);
  team->group = g;
  team->remote_since = -1;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&team->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pthread_mutex_init(&team->lock, NULL);
  pthread_mutex_init(&team->looking, NULL);
  for (uint32_t i = 0; i < g->rank_count; i++) pthread_mutex_init(&team->ranks[i].lock, NULL);
  return team;
}

static helio_status begin(group *g) {
  nccl_team *team = team_new(g);
  if (!team) return g->host->fail(g->host, HELIO_OUT_OF_MEMORY, "no memory for a group of %u ranks", g->rank_count);
  int error = pthread_create(&team->attendant, NULL, attend, team);
  if (error) {
    team_free(team);
    return g->host->fail(g->host, HELIO_OUT_OF_MEMORY, "cannot start a thread: %s", strerror(error));
  }
  g->shared = team;
  return HELIO_OK;
}

/* An attendant that does not come back from the library keeps what it looks at, and this plugin stays loaded. */
static bool end(group *g) {
  nccl_team *team = g->shared;
  const helio_host *host = g->host;
  int64_t left = patience;
  pthread_mutex_lock(&team->lock);
  team->ending = true;
  pthread_cond_broadcast(&team->changed);
  while (!team->finished && left > 0) left -= sleep_for(team, 100000);
  bool finished = team->finished;
  pthread_mutex_unlock(&team->lock);
  if (!finished) {
    pthread_detach(team->attendant);
    host->log(host, HELIO_LOG_WARNING, PLUGIN_TITLE " hangs; a thread and a group of ranks are left to it");
    return false;
  }
  pthread_join(team->attendant, NULL);
  team_free(team);
  return true;
}

const group_service nccl_service = {begin, wake, end};

/* ---- for ranks ---- */

helio_status nccl_team_await(helio_communicator *c) {
  nccl_team *team = nccl_team_of(c);
  int64_t left = (int64_t)c->group->timeout_ms * 1000;
  bool limited = left > 0;
  char message[120];
  pthread_mutex_lock(&team->lock);
  while (!team->made && !group_is_broken(c->group) && !(limited && left <= 0)) left -= sleep_for(team, 100000);
  bool made = team->made;
  pthread_mutex_unlock(&team->lock);
  if (!made && !group_is_broken(c->group)) {
    snprintf(message, sizeof message, PLUGIN_TITLE " has not made the communicators of %u ranks within %.3g s",
             c->group->rank_count, c->group->timeout_ms / 1000.0);
    group_break(c->group, GROUP_NOBODY, HELIO_TIMED_OUT, message);
  }
  return group_is_broken(c->group) ? group_tell(c) : HELIO_OK;
}

void nccl_team_await_abort(nccl_team *team) {
  int64_t left = patience;
  pthread_mutex_lock(&team->lock);
  while (team->made && !team->aborted && left > 0) left -= sleep_for(team, 100000);
  pthread_mutex_unlock(&team->lock);
}

void nccl_team_stir(nccl_team *team) {
  if (!atomic_load(&team->idle)) return;
  pthread_mutex_lock(&team->lock);
  atomic_store(&team->idle, false);
  pthread_cond_broadcast(&team->changed);
  pthread_mutex_unlock(&team->lock);
}
