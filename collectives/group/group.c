/* SPDX-License-Identifier: Apache-2.0 */
#include "group.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wait.h"

/* ---- failing ---- */

void group_break(group *g, uint32_t culprit, helio_status status, const char *message) {
  pthread_mutex_lock(&g->lock);
  if (!atomic_load(&g->broken)) {
    snprintf(g->message, sizeof g->message, "%s", message);
    g->culprit = culprit == GROUP_NOBODY ? 0 : culprit + 1;
    atomic_store(&g->broken, (unsigned)status);
  }
  pthread_mutex_unlock(&g->lock);
  group_ring_bell(g);
  if (g->registry->service) g->registry->service->wake(g);
}

helio_status group_tell(helio_communicator *c) {
  group *g = c->group;
  char message[sizeof g->message];
  pthread_mutex_lock(&g->lock);
  memcpy(message, g->message, sizeof message);
  bool own = g->culprit == c->rank + 1;
  pthread_mutex_unlock(&g->lock);
  helio_status status = own ? HELIO_DEVICE_FAILURE : (helio_status)atomic_load(&g->broken);
  return g->host->fail(g->host, status, "%s", message);
}

/* The group is broken, so that nobody begins any work; what is under way is short, or a device hangs. */
static void wait_for_rest(helio_communicator *c) {
  group_wait(c->group, group_all_rest, c->rank, 0, false);
}

helio_status group_stop(helio_communicator *c) {
  wait_for_rest(c);
  return group_tell(c);
}

helio_status group_fail(helio_communicator *c, helio_status status) {
  char message[300];
  snprintf(message, sizeof message, "rank %u (%s) has failed", c->rank, c->group->rank[c->rank].member->name);
  bool is_device = status == HELIO_DEVICE_FAILURE; /* this rank's, not the others' */
  group_break(c->group, is_device ? c->rank : GROUP_NOBODY, is_device ? HELIO_ABORTED : status, message);
  wait_for_rest(c);
  return status;
}

static helio_status time_is_up(helio_communicator *c, group_condition *met, uint32_t progress) {
  group *g = c->group;
  char missing[200] = "", message[400];
  size_t length = 0;
  for (uint32_t i = 0; i < g->rank_count && length < sizeof missing; i++) {
    if (met == group_all_seated ? atomic_load(&g->rank[i].seated) != 0 : group_reached(g, i, progress)) continue;
    length += (size_t)snprintf(missing + length, sizeof missing - length, "%s%u", length ? ", " : "", i);
  }
  snprintf(message, sizeof message, "of %u ranks these did not come%s within %.3g s: %s", g->rank_count,
           met == group_all_seated ? " to join the group" : "", g->timeout_ms / 1000.0, missing);
  group_break(g, GROUP_NOBODY, HELIO_TIMED_OUT, message);
  return group_stop(c);
}

static helio_status await(helio_communicator *c, group_condition *met, uint32_t other, uint32_t progress) {
  if (!group_wait(c->group, met, other, progress, true)) return time_is_up(c, met, progress);
  /* What is broken goes no further, even if this wait came to a good end. */
  return atomic_load_explicit(&c->group->broken, memory_order_relaxed) ? group_stop(c) : HELIO_OK;
}

/* ---- groups ---- */

helio_status group_registry_open(group_registry *registry, const helio_host *host, const group_service *service) {
  *registry = (group_registry){.host = host, .service = service};
  int error = pthread_mutex_init(&registry->lock, NULL);
  return error ? host->fail(host, HELIO_OUT_OF_MEMORY, "cannot make a mutex: %s", strerror(error)) : HELIO_OK;
}

void group_registry_close(group_registry *registry) {
  pthread_mutex_destroy(&registry->lock);
}

void group_new_id(group_registry *registry, void *id) {
  pthread_mutex_lock(&registry->lock);
  uint64_t number = ++registry->last_number;
  pthread_mutex_unlock(&registry->lock);
  memset(id, 0, HELIO_COLLECTIVE_ID_SIZE);
  snprintf(id, HELIO_COLLECTIVE_ID_SIZE, "%ld %p %llu", (long)getpid(), (void *)registry, (unsigned long long)number);
}

static void group_free(group *g) {
  for (uint32_t i = 0; i < g->rank_count; i++) {
    if (g->rank[i].counts) g->host->release(g->host, g->rank[i].counts);
  }
  if (g->records) g->host->release(g->host, g->records);
  pthread_mutex_destroy(&g->lock);
  g->host->release(g->host, g);
}

/* Room that calls need, and what the service wants. */
static helio_status group_furnish(group *g, const group_service *service) {
  const helio_host *host = g->host;
  size_t records = service ? GROUP_RECORDS * sizeof(group_first) : 0;
  bool enough = true;
  for (uint32_t i = 0; i < g->rank_count; i++) {
    g->rank[i].counts = host->allocate(host, g->rank_count * sizeof(size_t));
    enough = enough && g->rank[i].counts;
  }
  if (records) enough = (g->records = host->allocate(host, records)) && enough;
  if (!enough) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a group of %u ranks", g->rank_count);
  if (records) memset(g->records, 0, records);
  return service ? service->begin(g) : HELIO_OK;
}

static helio_status group_new(group_registry *registry, const helio_communicator_options *options, group **result) {
  const helio_host *host = registry->host;
  size_t count = options->rank_count, bytes = sizeof(group) + count * sizeof(group_rank);
  group *g = host->allocate(host, bytes);
  if (!g) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a group of %u ranks", options->rank_count);
  memset(g, 0, bytes);
  g->host = host;
  g->registry = registry;
  g->rank_count = options->rank_count;
  g->timeout_ms = options->timeout_ms;
  g->spin_us = options->spin_us;
  memcpy(g->id, options->id, sizeof g->id);
  pthread_mutex_init(&g->lock, NULL);
  helio_status status = group_furnish(g, registry->service);
  if (status) {
    group_free(g);
  } else {
    *result = g;
  }
  return status;
}

/* The registry's lock is held. */
static group *find(const group_registry *registry, const void *id) {
  group *g = registry->first;
  while (g && memcmp(g->id, id, sizeof g->id) != 0) g = g->next;
  return g;
}

static bool is_refused(const group_registry *registry, const void *id) {
  uint32_t count = registry->refusals < GROUP_REFUSALS ? registry->refusals : GROUP_REFUSALS;
  for (uint32_t i = 0; i < count; i++) {
    if (memcmp(registry->refused[i], id, HELIO_COLLECTIVE_ID_SIZE) == 0) return true;
  }
  return false;
}

/* Nobody finds this id free again. The registry's lock is held. */
static void note_refusal(group_registry *registry, const void *id) {
  memcpy(registry->refused[registry->refusals++ % GROUP_REFUSALS], id, HELIO_COLLECTIVE_ID_SIZE);
}

/* Those who wait are told by the group, those who come later find its id. */
helio_status group_refuse(group_registry *registry, const helio_communicator_options *options, helio_status status) {
  char message[60];
  snprintf(message, sizeof message, "rank %u could not join the group", options->rank);
  pthread_mutex_lock(&registry->lock);
  group *g = find(registry, options->id);
  if (g) group_break(g, GROUP_NOBODY, HELIO_ABORTED, message);
  note_refusal(registry, options->id);
  pthread_mutex_unlock(&registry->lock);
  return status;
}

/* The group of this id, made by whoever comes first. Holds a reference. */
static helio_status enter(group_registry *registry, const helio_communicator_options *options, group **result) {
  const helio_host *host = registry->host;
  helio_status status = HELIO_OK;
  pthread_mutex_lock(&registry->lock);
  group *g = find(registry, options->id);
  if (!g && is_refused(registry, options->id)) {
    status = host->fail(host, HELIO_ABORTED, "another rank could not join the group");
  } else if (!g && !(status = group_new(registry, options, &g))) {
    g->next = registry->first;
    registry->first = g;
  }
  if (g) g->references++;
  pthread_mutex_unlock(&registry->lock);
  *result = g;
  return status;
}

static void drop(group *g) {
  group_registry *registry = g->registry;
  pthread_mutex_lock(&registry->lock);
  bool last = --g->references == 0;
  if (last) {
    group **link = &registry->first;
    while (*link != g) link = &(*link)->next;
    *link = g->next;
    /* Who has not come yet would wait in a new group for those that have been here. */
    if (atomic_load(&g->broken)) note_refusal(registry, g->id);
  }
  pthread_mutex_unlock(&registry->lock);
  if (last && (!registry->service || registry->service->end(g))) group_free(g);
}

static void unseat(group *g, uint32_t rank) {
  pthread_mutex_lock(&g->lock);
  g->rank[rank].member = NULL;
  pthread_mutex_unlock(&g->lock);
}

static helio_status take_seat(helio_communicator *c, const helio_communicator_options *options, void *own) {
  group *g = c->group;
  group_rank *seat = &g->rank[options->rank];
  bool taken = true;
  if (atomic_load(&g->broken)) return group_tell(c);
  if (g->rank_count == options->rank_count) {
    pthread_mutex_lock(&g->lock);
    taken = seat->member != NULL || atomic_load(&seat->seated);
    if (!taken) {
      seat->member = options->member;
      seat->own = own;
    }
    pthread_mutex_unlock(&g->lock);
  }
  if (taken) {
    return g->host->fail(g->host, HELIO_INVALID_ARGUMENT, "rank %u of %u joins a group of %u ranks%s", options->rank,
                         options->rank_count, g->rank_count,
                         g->rank_count == options->rank_count ? " that has such a rank already" : "");
  }
  atomic_store(&seat->seated, 1);
  group_tell_sleepers(g);
  if (g->registry->service && group_all_seated(g, 0, 0)) g->registry->service->wake(g);
  return HELIO_OK;
}

helio_status group_await_seats(helio_communicator *c) {
  return await(c, group_all_seated, 0, 0);
}

helio_status group_seat(group_registry *registry, const helio_communicator_options *options, void *own,
                        helio_communicator **result) {
  const helio_host *host = registry->host;
  if (options->size < sizeof *options || !helio_struct_fits(options, sizeof *options)) {
    return host->fail(host, HELIO_NOT_SUPPORTED, "the options of the communicator are of another version");
  }
  if (options->rank >= options->rank_count) {
    return host->fail(host, HELIO_INVALID_ARGUMENT, "there is no rank %u in a group of %u", options->rank,
                      options->rank_count);
  }
  group *g = NULL;
  helio_communicator *c = host->allocate(host, sizeof *c);
  helio_status status =
      c ? enter(registry, options, &g) : host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a communicator");
  if (status) {
    if (c) host->release(host, c);
    return group_refuse(registry, options, status);
  }
  *c = (helio_communicator){g, options->rank};
  status = take_seat(c, options, own);
  if (status) {
    drop(g);
    host->release(host, c);
  } else {
    *result = c;
  }
  return status;
}

helio_status group_join(group_registry *registry, const helio_communicator_options *options, void *own,
                        helio_communicator **result) {
  helio_communicator *c = NULL;
  helio_status status = group_seat(registry, options, own, &c);
  if (status) return status;
  status = group_await_seats(c);
  if (status) {
    group_leave(c);
  } else {
    *result = c;
  }
  return status;
}

void group_leave(helio_communicator *c) {
  group *g = c->group;
  const helio_host *host = g->host;
  unseat(g, c->rank);
  drop(g);
  host->release(host, c);
}

void group_abort(helio_communicator *c) {
  char message[60];
  snprintf(message, sizeof message, "rank %u has aborted the group", c->rank);
  group_break(c->group, GROUP_NOBODY, HELIO_ABORTED, message);
}

helio_status group_poll(helio_communicator *c) {
  return atomic_load(&c->group->broken) ? group_tell(c) : HELIO_OK;
}

/* ---- progress ---- */

uint32_t group_progress(const helio_communicator *c) {
  return atomic_load_explicit(&c->group->rank[c->rank].progress, memory_order_relaxed);
}

void group_advance(helio_communicator *c) {
  atomic_fetch_add(&c->group->rank[c->rank].progress, 1);
  group_tell_sleepers(c->group);
}

helio_status group_await(helio_communicator *c, uint32_t other, uint32_t progress) {
  return await(c, group_reached, other, progress);
}

helio_status group_await_all(helio_communicator *c, uint32_t progress) {
  return await(c, group_all_reached, 0, progress);
}

helio_status group_work(helio_communicator *c) {
  atomic_uint *busy = &c->group->rank[c->rank].busy;
  atomic_store(busy, 1); /* then look: who breaks the group looks the other way round */
  if (!atomic_load(&c->group->broken)) return HELIO_OK;
  group_rest(c);
  return group_stop(c);
}

void group_rest(helio_communicator *c) {
  atomic_store(&c->group->rank[c->rank].busy, 0);
  group_tell_sleepers(c->group);
}
