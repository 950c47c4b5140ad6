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

/* The library does not say whose fault it was, the devices do. */
static void blame(group *g, abi_enum result) {
  char text[300], message[500];
  uint32_t culprit = GROUP_NOBODY;
  nccl_text(result, text, sizeof text);
  for (uint32_t i = 0; i < g->rank_count && culprit == GROUP_NOBODY; i++) {
    if (nccl_is_lost(g, i)) culprit = i;
  }
  if (culprit == GROUP_NOBODY) {
    snprintf(message, sizeof message, "communicators could not be made: %s", text);
    group_break(g, culprit, nccl_status(result), message);
  } else {
    snprintf(message, sizeof message, "the device of rank %u failed while communicators were made: %s", culprit, text);
    group_break(g, culprit, HELIO_ABORTED, message);
  }
}

/* Where they cannot be made for all ranks, those that the library handed out stay the attendant's, which aborts them.
 * At the group's end the library waits for every rank of which it knows; a call that it must refuse makes it give the
 * whole group up, where a rank is missing. */
static void make_communicators(nccl_team *team) {
  group *g = team->group;
  const helio_host *host = g->host;
  nccl_abi_unique_id id;
  memcpy(&id, g->id, sizeof id);
  host->turn_begin(host, HELIO_TURN_DRIVER);
  abi_enum result = nccl.ncclGroupStart(), ended = result;
  for (uint32_t i = 0; i < g->rank_count && !result; i++) {
    const helio_member *member = nccl_member_of(g, i);
    int rank = member && nccl_enter(member) ? (int)i : -1;
    result = nccl.ncclCommInitRank(&team->ranks[i].own, (int)g->rank_count, id, rank);
  }
  if (!ended) ended = nccl.ncclGroupEnd();
  host->turn_end(host, HELIO_TURN_DRIVER);
  if (!result) result = ended;
  pthread_mutex_lock(&team->lock);
  bool alone = team->ending; /* so late that nobody is left, and nothing may be looked at */
  pthread_mutex_unlock(&team->lock);
  if (result) {
    if (!alone) blame(g, result);
    return;
  }
  for (uint32_t i = 0; i < g->rank_count; i++) {
    atomic_store(&team->ranks[i].handle, team->ranks[i].own);
    team->ranks[i].own = NULL;
  }
}

/* ---- aborting ---- */

/* Takes the ranks' communicators from them. Calls of ranks may be under way. They end soon, unless the library waits in
 * them for other ranks: then the abort is what ends them. */
static void seize(nccl_team *team) {
  struct timespec soon;
  clock_gettime(CLOCK_REALTIME, &soon);
  soon.tv_sec += 1;
  for (uint32_t i = 0; i < team->group->rank_count; i++) {
    nccl_rank *rank = &team->ranks[i];
    bool locked = pthread_mutex_timedlock(&rank->lock, &soon) == 0;
    struct ncclComm *handle = atomic_exchange(&rank->handle, NULL);
    if (handle) rank->own = handle;
    if (locked) pthread_mutex_unlock(&rank->lock);
  }
}

static void abort_as_group(nccl_team *team) {
  abi_enum result = nccl.ncclGroupStart();
  for (uint32_t i = 0; i < team->group->rank_count; i++) nccl.ncclCommAbort(team->ranks[i].own);
  if (!result) nccl.ncclGroupEnd();
}

static void *abort_alone(void *handle) {
  nccl.ncclCommAbort(handle);
  return NULL;
}

static void abort_by_threads(nccl_team *team) {
  uint32_t count = team->group->rank_count, started = 0;
  while (started < count) {
    nccl_rank *rank = &team->ranks[started];
    if (pthread_create(&rank->aborter, NULL, abort_alone, rank->own)) break;
    started++;
  }
  for (uint32_t i = started; i < count; i++)
    abort_alone(team->ranks[i].own); /* without threads: the best that is left */
  for (uint32_t i = 0; i < started; i++) pthread_join(team->ranks[i].aborter, NULL);
}

/* All of them together. An abort tells the rank's device at once that it shall not wait, but it may come back only when
 * the other ranks have been aborted too: the library says that all must, and frees what ranks of a process share
 * (since 2.14 at the last of their aborts, before that at each, where the driver waits for devices that still use it).
 * So one thread that aborts rank by rank may hang at the first. Since 2.22.3 it takes aborts of several ranks as a
 * group ("Support ncclGroupStart/End for ncclCommAbort/Destroy", as its notes put it); an older one knows only a thread
 * for each rank. It makes the ranks' devices current by itself. */
static void abort_all(nccl_team *team) {
  enum { FIRST_WITH_GROUPS = 22203 };
  bool any = false;
  seize(team);
  for (uint32_t i = 0; i < team->group->rank_count; i++) any = any || team->ranks[i].own;
  if (!any) return;
  if (nccl_library_version() >= FIRST_WITH_GROUPS) {
    abort_as_group(team);
  } else {
    abort_by_threads(team);
  }
  for (uint32_t i = 0; i < team->group->rank_count; i++) team->ranks[i].own = NULL;
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
