/* SPDX-License-Identifier: Apache-2.0 */
/* Losing replicas. A replica is lost with its device: when a call of the device failed, or when the replica's thread
 * hangs. Between two steps the strategy goes on without it, or ends. */
#include <stdio.h>

#include "device/topology.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "strategy/strategy.h"

/* ---- who is lost ---- */

/* The device that the replica's thread hangs in is lost, whose ever it is; where none is known, its own. If it is not
 * its own the replica goes on with a new thread. */
static void lose_hung(helio_strategy *strategy, int replica) {
  hi_device *own = strategy->replicas.devices[replica], *at = hi_team_device_of(strategy->team, replica);
  hi_device_lose(at ? at : own, HI_HUNG);
  if (at && at != own && hi_team_renew(strategy->team, replica)) return;
  hi_device_lose(own, HI_HUNG);
}

/* A device that is suspect now counts as lost, with all logical devices of the same physical one. */
void hi_strategy_find_lost(helio_strategy *strategy) {
  hi_replicas *replicas = &strategy->replicas;
  for (int i = 0; i < replicas->count; i++) {
    if (!replicas->devices[i]) continue;
    if (strategy->team && hi_team_has_lost(strategy->team, i)) lose_hung(strategy, i);
    if (atomic_load(&replicas->devices[i]->loss) == HI_SUSPECT) hi_device_lose(replicas->devices[i], HI_LOST);
  }
}

static int find_lost(helio_strategy *strategy, bool *lost) {
  hi_replicas *replicas = &strategy->replicas;
  int count = 0;
  hi_strategy_find_lost(strategy);
  for (int i = 0; i < replicas->count; i++) {
    lost[i] = replicas->devices[i] && hi_device_lost(replicas->devices[i]);
    count += lost[i];
  }
  return count;
}

/* "replica 1 (/job:…/device:CPU:1), replica 2 (…)" */
static void name_lost(const helio_strategy *strategy, const bool *lost, char *text, size_t size) {
  size_t length = 0;
  for (int i = 0; i < strategy->replicas.count && length < size; i++) {
    if (!lost[i]) continue;
    length += (size_t)snprintf(text + length, size - length, "%sreplica %d (%s)", length ? ", " : "", i,
                               strategy->replicas.devices[i]->name);
  }
}

/* ---- going on without them ---- */

static helio_status calm_one(void *argument, int replica) {
  const helio_strategy *strategy = argument;
  hi_device *device = strategy->replicas.devices[replica];
  if (device && !hi_device_lost(device)) hi_device_synchronize(device);
  helio_error_take(NULL);
  return HELIO_OK;
}

/* By the replicas' own threads, which have deadlines: a device may wait for one that never comes to its end. */
void hi_strategy_calm(helio_strategy *strategy) {
  if (strategy->team) {
    hi_team_run(strategy->team, calm_one, strategy);
  } else {
    calm_one(strategy, 0);
  }
  helio_error_take(NULL);
}

static void remove_replica(helio_strategy *strategy, int replica) {
  hi_replicas *replicas = &strategy->replicas;
  if (strategy->team) hi_team_remove(strategy->team, replica);
  for (int i = replica; i < replicas->count - 1; i++) {
    replicas->devices[i] = replicas->devices[i + 1];
    replicas->copy[i] = replicas->copy[i + 1];
    strategy->weights[i] = strategy->weights[i + 1];
    strategy->reduce_seconds[i] = strategy->reduce_seconds[i + 1];
    strategy->reduce_begin[i] = strategy->reduce_begin[i + 1];
    strategy->reduce_end[i] = strategy->reduce_end[i + 1];
  }
  replicas->count--;
}

/* Threads that read ahead look at the replicas at any time. */
static void remove_lost(helio_strategy *strategy, const bool *lost) {
  pthread_mutex_lock(&strategy->lock);
  for (int i = strategy->replicas.count - 1; i >= 0; i--) {
    if (lost[i]) remove_replica(strategy, i);
  }
  strategy->losses++;
  pthread_mutex_unlock(&strategy->lock);
}

static helio_status end_strategy(helio_strategy *strategy, const char *names, int left, const helio_error *cause) {
  atomic_store(&strategy->has_ended, true);
  return hi_fail(cause->status, "%s: lost %s; the strategy has ended%s: make a new one on %s", cause->message, names,
                 left == 0 ? " because no replica is left" : "", left == 0 ? "other devices" : "devices that are left");
}

static const char *what_became_of_the_step(const helio_strategy *strategy) {
  if (strategy->half_taken) {
    return "took an update before that, but not all of its updates: it can neither be repeated nor counted";
  }
  return atomic_load(&strategy->committed) ? "was taken before that"
                                           : "was not taken: helio_retry() splits its batch anew";
}

/* Some are lost; more of them may turn out to be before the rest has come to its end. */
static helio_status lose(helio_strategy *strategy, const helio_error *cause) {
  char names[600];
  bool lost[HELIO_MAX_REPLICAS];
  hi_strategy_calm(strategy);
  int left = strategy->replicas.count - find_lost(strategy, lost);
  name_lost(strategy, lost, names, sizeof names);
  hi_strategy_leave_group(strategy);
  hi_gradient_plan_free(strategy->plan);
  strategy->plan = NULL;
  if (left > 0) remove_lost(strategy, lost);
  if (left == 0 || strategy->on_failure == HELIO_STOP) return end_strategy(strategy, names, left, cause);
  hi_log(HELIO_LOG_WARNING, "lost %s: %s. Training goes on with %d replica%s", names, cause->message, left,
         left == 1 ? "" : "s");
  return hi_fail(HELIO_REPLICA_LOST, "lost %s: %s. %d %s left; the step %s", names, cause->message, left,
                 left == 1 ? "replica is" : "replicas are", what_became_of_the_step(strategy));
}

helio_status hi_strategy_failed(helio_strategy *strategy) {
  bool lost[HELIO_MAX_REPLICAS];
  helio_error cause;
  int count = strategy->team ? find_lost(strategy, lost) : 0;
  if (count == 0) return helio_error_pending();
  helio_error_take(&cause);
  return lose(strategy, &cause);
}

helio_status hi_strategy_survey(helio_strategy *strategy, const helio_error *cause) {
  helio_error before = {.status = HELIO_DEVICE_FAILURE};
  bool lost[HELIO_MAX_REPLICAS];
  int count = strategy->team ? find_lost(strategy, lost) : 0, first = 0;
  if (count == 0) return HELIO_OK;
  while (!lost[first]) first++;
  const char *why = atomic_load(&strategy->replicas.devices[first]->cause);
  snprintf(before.message, sizeof before.message, "it failed before the step%s%s", why ? ": " : "", why ? why : "");
  atomic_store(&strategy->committed, false);
  strategy->half_taken = false;
  return lose(strategy, cause ? cause : &before);
}

helio_status hi_strategy_look_around(helio_strategy *strategy, const helio_error *cause) {
  if (atomic_exchange(&strategy->running, true)) return HELIO_OK;
  helio_status status = hi_strategy_survey(strategy, cause);
  atomic_store(&strategy->running, false);
  return status;
}

hi_replicas_now hi_strategy_replicas(helio_strategy *strategy) {
  hi_replicas_now now;
  pthread_mutex_lock(&strategy->lock);
  now.count = strategy->replicas.count;
  now.losses = strategy->losses;
  for (int i = 0; i < now.count; i++) {
    now.devices[i] = strategy->replicas.devices[i];
    now.weights[i] = strategy->weights[i];
  }
  pthread_mutex_unlock(&strategy->lock);
  return now;
}
