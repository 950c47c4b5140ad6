/* SPDX-License-Identifier: Apache-2.0 */
/* The life of strategies. */
#include "strategy/strategy.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/point.h"
#include "device/topology.h"
#include "ops/options.h"
#include "ops/placement.h"
#include "runtime/clock.h"
#include "runtime/environment.h"
#include "runtime/error.h"
#include "runtime/leaks.h"
#include "runtime/log.h"
#include "runtime/plugins.h"

/* ---- all that live ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static helio_strategy *all;
static char told[4096]; /* why collectives refused, as far as the log has it: a line for each */

static void enlist(helio_strategy *strategy) {
  pthread_mutex_lock(&lock);
  strategy->next = all;
  all = strategy;
  pthread_mutex_unlock(&lock);
}

static void strike_off(helio_strategy *strategy) {
  pthread_mutex_lock(&lock);
  helio_strategy **place = &all;
  while (*place && *place != strategy) place = &(*place)->next;
  if (*place) *place = strategy->next;
  pthread_mutex_unlock(&lock);
}

/* Does a thread hang that may look at the group? */
static bool hangs(const helio_strategy *strategy) {
  bool found = false;
  for (int i = 0; i < strategy->replicas.count && !found; i++) {
    const hi_device *device = strategy->replicas.devices[i];
    found = (device && hi_device_hung(device)) || (strategy->team && hi_team_has_lost(strategy->team, i));
  }
  return found;
}

void hi_strategy_leave_group(helio_strategy *strategy) {
  bool hung = hangs(strategy);
  for (int i = 0; i < strategy->replicas.count; i++) {
    if (!hung) hi_communicator_free(strategy->communicators[i]);
    if (hung && strategy->communicators[i]) hi_keep_for_ever(strategy->communicators[i]);
    strategy->communicators[i] = NULL;
  }
  hi_plugin *plugin = strategy->collective.collective.plugin;
  if (hung && plugin) atomic_store(&plugin->stuck, true);
}

/* What cannot outlive the devices. */
static void stop(helio_strategy *strategy) {
  hi_strategy_leave_group(strategy);
  hi_team_free(strategy->team);
  strategy->team = NULL;
  strategy->replicas.count = 0;
}

void hi_strategies_stop(void) {
  pthread_mutex_lock(&lock);
  for (helio_strategy *strategy = all; strategy; strategy = strategy->next) stop(strategy);
  all = NULL;
  told[0] = 0;
  pthread_mutex_unlock(&lock);
}

bool hi_strategies_run(void) {
  pthread_mutex_lock(&lock);
  const helio_strategy *strategy = all;
  while (strategy && !atomic_load(&strategy->running)) strategy = strategy->next;
  pthread_mutex_unlock(&lock);
  return strategy;
}

static void end(void *object) {
  helio_strategy *strategy = object;
  strike_off(strategy);
  stop(strategy);
  hi_gradient_plan_free(strategy->plan);
  pthread_mutex_destroy(&strategy->lock);
  free(strategy);
}

bool hi_strategy_usable(const helio_strategy *strategy) {
  if (strategy && strategy->replicas.count > 0) {
    if (!atomic_load(&strategy->has_ended)) return true;
    hi_fail(HELIO_WRONG_STATE, "the strategy has ended because it lost devices: make a new one on those that are left");
    return false;
  }
  hi_fail(strategy ? HELIO_WRONG_STATE : HELIO_INVALID_ARGUMENT,
          strategy ? "the strategy was made before helio_shutdown()" : "the strategy is NULL");
  return false;
}

/* ---- making ---- */

char *hi_strategy_tuple(const helio_strategy *strategy) {
  size_t room = 8 + (size_t)strategy->replicas.count * (HI_NAME_LENGTH + 4), length = 1;
  char *text = malloc(room);
  if (!text) return NULL;
  strcpy(text, "(");
  for (int i = 0; i < strategy->replicas.count; i++) {
    length +=
        (size_t)snprintf(text + length, room - length, "%s'%s'", i ? ", " : "", strategy->replicas.devices[i]->name);
  }
  snprintf(text + length, room - length, strategy->replicas.count == 1 ? ",)" : ")");
  return text;
}

static helio_status take_device(helio_strategy *strategy, hi_device *device) {
  for (int i = 0; i < strategy->replicas.count; i++) {
    if (strategy->replicas.devices[i] != device) continue;
    return hi_fail(HELIO_INVALID_ARGUMENT, "No duplicates allowed in `devices` argument: %s stands there twice",
                   device->name);
  }
  if (strategy->replicas.count == HELIO_MAX_REPLICAS) {
    return hi_fail(HELIO_NOT_SUPPORTED, "a strategy has at most %d replicas", HELIO_MAX_REPLICAS);
  }
  helio_status status = hi_device_use(device);
  if (status) return status;
  int before = HI_SUSPECT; /* what failed before is forgotten: it was not this strategy's */
  atomic_compare_exchange_strong(&device->loss, &before, HI_IN_ORDER);
  strategy->replicas.copy[strategy->replicas.count] = strategy->replicas.count;
  strategy->replicas.devices[strategy->replicas.count++] = device;
  return HELIO_OK;
}

static helio_status take_named(helio_strategy *strategy, const char *name) {
  hi_name parsed;
  if (!hi_name_parse(name, &parsed)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "'%s' is not the name of a device; names look like cpu:0 or /device:GPU:1",
                   name);
  }
  hi_device *device = hi_device_find(&parsed);
  return device ? take_device(strategy, device) : hi_device_unknown(&parsed, false);
}

/* The others would wait for it in each step: the graphics part of a processor is slower by far, and its memory small.
 */
static bool is_left_out(const helio_strategy *strategy, const hi_device *device) {
  if (!hi_physical_integrated(device->physical) || strategy->replicas.count == 0) return false;
  return !hi_physical_integrated(strategy->replicas.devices[0]->physical);
}

/* Every visible accelerator, else every logical CPU: the first of all devices says which, since those come first. Those
 * that were lost are left out. */
static helio_status take_all(helio_strategy *strategy) {
  int count;
  hi_device *const *devices = hi_devices(&count);
  helio_status status = HELIO_OK;
  for (int i = 0; i < count && !status; i++) {
    if (strcmp(devices[i]->info.type, devices[0]->info.type) != 0 || hi_device_lost(devices[i])) continue;
    if (!is_left_out(strategy, devices[i])) {
      status = take_device(strategy, devices[i]);
    } else {
      hi_log(HELIO_LOG_INFO, "%s (%s) is left out, because it is a part of the processor; it can be named",
             devices[i]->name, devices[i]->physical->description.name);
    }
  }
  if (!status && strategy->replicas.count == 0) status = hi_fail(HELIO_NO_DEVICE, "all devices were lost");
  return status;
}

static helio_strategy *begin(const char *name) {
  helio_strategy *strategy = hi_object_new(sizeof *strategy, end, "a strategy");
  if (!strategy) return NULL;
  hi_census_name(&strategy->replicas.object, &strategy->name);
  strategy->name = name;
  strategy->on_failure = HELIO_STOP;
  strategy->replicas.compared = hi_environment_number(HI_CHECK_REPLICAS);
  pthread_mutex_init(&strategy->lock, NULL);
  strategy->ordered = hi_environment_number(HI_ORDERED_REDUCE);
  strategy->bucket_bytes = (size_t)hi_environment_number(HI_BUCKET_BYTES);
  for (int i = 0; i < HELIO_MAX_REPLICAS; i++) strategy->weights[i] = 1;
  return strategy;
}

helio_strategy *helio_one_device(const char *device) {
  if (hi_enter(__func__)) return NULL;
  if (!device) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the device is NULL");
    return NULL;
  }
  helio_strategy *strategy = begin("OneDeviceStrategy");
  if (!strategy || take_named(strategy, device)) return NULL;
  enlist(strategy);
  return strategy;
}

static helio_status take_weights(helio_strategy *strategy, const double *weights) {
  int given = 0;
  for (int i = 0; i < HELIO_MAX_REPLICAS; i++) {
    if (weights[i] != 0) given = i + 1;
  }
  if (given == 0) return HELIO_OK;
  for (int i = 0; i < given; i++) {
    if (!(weights[i] > 0 && weights[i] < 1e12)) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "weight %d is %g; weights are above 0 and below 1e12", i, weights[i]);
    }
  }
  if (given != strategy->replicas.count) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%d weights are given for %d replicas", given, strategy->replicas.count);
  }
  memcpy(strategy->weights, weights, sizeof strategy->weights);
  return HELIO_OK;
}

static helio_status take_failure(helio_strategy *strategy, helio_on_failure given) {
  if ((int)given < 0 || given > HELIO_STOP) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "on_failure is %d, neither HELIO_DROP nor HELIO_STOP", (int)given);
  }
  strategy->on_failure = given ? given : HELIO_DROP;
  return HELIO_OK;
}

static helio_status take_devices(helio_strategy *strategy, const helio_mirrored_options *o) {
  helio_status status = HELIO_OK;
  int given = 0;
  for (int i = 0; i < HELIO_MAX_REPLICAS; i++) {
    if (o->devices[i]) given = i + 1;
  }
  for (int i = 0; i < given && !status; i++) {
    status = o->devices[i] ? take_named(strategy, o->devices[i])
                           : hi_fail(HELIO_INVALID_ARGUMENT, "device %d is NULL, but others follow it", i);
  }
  return status || given ? status : take_all(strategy);
}

/* Says a line with its end once, however many strategies it is the reason for. */
static void tell(const char *line, size_t length) {
  char text[sizeof(((hi_collective_choice *)0)->refusals)];
  snprintf(text, sizeof text, "%.*s", (int)length, line);
  pthread_mutex_lock(&lock);
  bool known = strstr(told, text);
  size_t so_far = strlen(told);
  if (!known) snprintf(told + so_far, sizeof told - so_far, "%s", text);
  pthread_mutex_unlock(&lock);
  if (!known) hi_log(HELIO_LOG_WARNING, "%.*s", (int)strcspn(text, "\n"), text);
}

enum { MADE_FOR_THEM = 100 }; /* the score of a collective that suits the devices best */

static bool is_fallback(const hi_collective_choice *choice) {
  return choice->score < MADE_FOR_THEM || choice->stands_in;
}

/* Why nothing better sums between the replicas, if what does was not made for their devices. */
static void tell_fallback(const hi_collective_choice *choice) {
  size_t length;
  for (const char *line = choice->refusals; *line && is_fallback(choice); line += length) {
    length = strcspn(line, "\n");
    if (line[length]) length++;
    tell(line, length);
  }
}

static helio_status choose_collective(helio_strategy *strategy, const char *name) {
  helio_status status =
      hi_collective_choose(strategy->replicas.devices, strategy->replicas.count, name, &strategy->collective);
  if (!status) tell_fallback(&strategy->collective);
  return status;
}

/* A library may be there and whole, and still not work on this machine: for want of a newer driver, or of shared
 * memory. That shows only when it is to make its communicators. What somebody has named has no substitute, and a device
 * that failed is no matter of the collective. False with the error pending. */
static bool take_another(helio_strategy *strategy) {
  helio_error error;
  hi_replicas *r = &strategy->replicas;
  helio_status status = helio_error_pending();
  bool may = strategy->collective.automatic && (status == HELIO_NOT_SUPPORTED || status == HELIO_IO_FAILURE);
  for (int i = 0; i < r->count && may; i++) may = !hi_device_lost(r->devices[i]);
  if (!may) return false;
  helio_error_take(&error);
  if (hi_collective_choose_another(r->devices, r->count, error.message, &strategy->collective)) return false;
  tell_fallback(&strategy->collective);
  return true;
}

static helio_status join_first(helio_strategy *strategy) {
  while (hi_strategy_join(strategy)) {
    hi_strategy_find_lost(strategy);
    if (!take_another(strategy)) return helio_error_pending();
  }
  return HELIO_OK;
}

/* Any other rank can end the waiting of all. */
static void release_others(void *argument, int abandoned) {
  helio_strategy *strategy = argument;
  atomic_store(&strategy->broken, true);
  for (int i = 0; i < strategy->replicas.count; i++) {
    if (i == abandoned || !strategy->communicators[i]) continue;
    hi_communicator_abort(strategy->communicators[i]);
    break;
  }
}

static hi_team *team_of(helio_strategy *strategy) {
  const char *names[HELIO_MAX_REPLICAS];
  for (int i = 0; i < strategy->replicas.count; i++) names[i] = strategy->replicas.devices[i]->name;
  return hi_team_new(strategy->replicas.count, names, release_others, strategy);
}

helio_strategy *helio_mirrored_with(const helio_mirrored_options *given) {
  helio_mirrored_options o;
  bool failed_before = helio_error_pending();
  if (!hi_options_enter("helio_mirrored", &o, sizeof o, given)) {
    if (!failed_before && helio_error_pending() == HELIO_NO_DEVICE) {
      hi_error_prefix("Got an empty `devices` list and unable to recognize any local devices: ");
    }
    return NULL;
  }
  helio_strategy *strategy = begin("MirroredStrategy");
  if (!strategy || take_failure(strategy, o.on_failure)) return NULL;
  if (take_devices(strategy, &o) || take_weights(strategy, o.weights)) return NULL;
  enlist(strategy);
  bool single = strategy->replicas.count == 1;
  if (single ? hi_collective_check_name(o.collective) : choose_collective(strategy, o.collective)) return NULL;
  char *tuple = hi_strategy_tuple(strategy);
  if (tuple) hi_log(HELIO_LOG_INFO, "Using MirroredStrategy with devices %s", tuple);
  free(tuple);
  if (single) return strategy;
  strategy->replicas.services = &hi_mirrored_services;
  strategy->team = team_of(strategy);
  return strategy->team && !join_first(strategy) ? strategy : NULL;
}

/* ---- the group of communicators ---- */

static helio_status make_communicators(helio_strategy *strategy) {
  unsigned char id[HELIO_COLLECTIVE_ID_SIZE];
  helio_status status = hi_collective_new_id(&strategy->collective, id);
  for (int i = 0; i < strategy->replicas.count && !status; i++) {
    hi_communicator_settings settings = {.device = strategy->replicas.devices[i],
                                         .rank = (uint32_t)i,
                                         .rank_count = (uint32_t)strategy->replicas.count,
                                         .id = id,
                                         .ordered = strategy->ordered};
    strategy->communicators[i] = hi_communicator_make(&strategy->collective, &settings);
    if (!strategy->communicators[i]) status = helio_error_pending();
  }
  return status;
}

static helio_status join(void *argument, int replica) {
  const helio_strategy *strategy = argument;
  return hi_communicator_join(strategy->communicators[replica]);
}

helio_status hi_strategy_join(helio_strategy *strategy) {
  if (strategy->replicas.count == 1) return HELIO_OK; /* the others were lost */
  if (strategy->communicators[0] && !atomic_load(&strategy->broken)) return HELIO_OK;
  hi_strategy_leave_group(strategy);
  helio_status status = make_communicators(strategy);
  if (!status) status = hi_team_run(strategy->team, join, strategy);
  if (status) {
    hi_strategy_leave_group(strategy);
  } else {
    atomic_store(&strategy->broken, false);
  }
  return status;
}

/* Is it this step's fault, so that the steps before it come to their end? */
static bool is_calm(const helio_strategy *strategy) {
  helio_status cause = helio_error_pending();
  bool calm = !atomic_load(&strategy->broken) && cause != HELIO_DEVICE_FAILURE && cause != HELIO_TIMED_OUT;
  for (int i = 0; i < strategy->replicas.count && calm; i++) calm = !hi_device_lost(strategy->replicas.devices[i]);
  return calm;
}

/* Sums of the steps before may still be under way, and would end with the group: what those steps have written, to
 * which this one goes back, would be lost. */
static void land(const helio_strategy *strategy) {
  static const struct timespec moment = {.tv_nsec = 100000};
  uint64_t timeout_ms = hi_environment_number(HI_TIMEOUT);
  double end = timeout_ms ? hi_seconds() + (double)timeout_ms / 1e3 : INFINITY;
  for (int i = 0; i < strategy->replicas.count; i++) {
    const hi_point *before = strategy->before[i];
    while (before && is_calm(strategy) && hi_seconds() < end && !hi_point_passed(before)) nanosleep(&moment, NULL);
  }
}

helio_status hi_strategy_break(helio_strategy *strategy) {
  hi_communicator *own = strategy->communicators[hi_replica_of(&strategy->replicas)];
  land(strategy);
  atomic_store(&strategy->broken, true);
  if (own) hi_communicator_abort(own);
  return helio_error_pending();
}

/* A collective may find out behind its calls, when the culprit's thread has gone on to wait for the others. */
void hi_strategy_find_culprit(helio_strategy *strategy) {
  helio_error cause;
  if (helio_error_pending() != HELIO_ABORTED) return;
  helio_error_take(&cause);
  for (int i = 0; i < strategy->replicas.count; i++) {
    helio_error found = {0};
    if (strategy->communicators[i] && hi_communicator_poll(strategy->communicators[i])) helio_error_take(&found);
    if (found.status != HELIO_DEVICE_FAILURE) continue;
    hi_fail(found.status, "replica %d: %s", i, found.message);
    return;
  }
  hi_fail(cause.status, "%s", cause.message);
}

/* ---- facts ---- */

int helio_num_replicas(const helio_strategy *strategy) {
  return strategy ? strategy->replicas.count : 0;
}

const char *helio_strategy_name(const helio_strategy *strategy) {
  return strategy ? strategy->name : "";
}

const char *helio_strategy_collective(const helio_strategy *strategy) {
  return strategy && strategy->team ? strategy->collective.collective.name : "";
}

const char *helio_strategy_fallbacks(const helio_strategy *strategy) {
  bool chosen = strategy && strategy->team;
  return chosen && is_fallback(&strategy->collective) ? strategy->collective.refusals : "";
}

const char *helio_strategy_device(const helio_strategy *strategy, int replica) {
  if (!strategy || replica < 0 || replica >= strategy->replicas.count) return "";
  if (strategy->replicas.devices[replica]) return strategy->replicas.devices[replica]->name;
  if (hi_enter(__func__)) return "";
  hi_device *asked = hi_placement_request().device;
  return asked ? asked->name : hi_device_first()->name;
}
