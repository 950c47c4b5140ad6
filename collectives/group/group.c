/* SPDX-License-Identifier: Apache-2.0 */
#include "group.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wait.h"

/* ---- failing ---- */

static void break_up(group *g, helio_status status, const char *message) {
  pthread_mutex_lock(&g->lock);
  if (!atomic_load(&g->broken)) {
    snprintf(g->message, sizeof g->message, "%s", message);
    atomic_store(&g->broken, (unsigned)status);
  }
  pthread_mutex_unlock(&g->lock);
  group_ring_bell(g);
}

/* The failure is told once more to this thread. */
static helio_status tell(group *g) {
  char message[sizeof g->message];
  pthread_mutex_lock(&g->lock);
  memcpy(message, g->message, sizeof message);
  pthread_mutex_unlock(&g->lock);
  return g->host->fail(g->host, (helio_status)atomic_load(&g->broken), "%s", message);
}

/* The group is broken, so that nobody begins any work; what is under way is short, or a device hangs. */
static void wait_for_rest(helio_communicator *c) {
  group_wait(c->group, group_all_rest, c->rank, 0, false);
}

static helio_status broken(helio_communicator *c) {
  wait_for_rest(c);
  return tell(c->group);
}

helio_status group_fail(helio_communicator *c, helio_status status) {
  char message[300];
  snprintf(message, sizeof message, "rank %u (%s) has failed", c->rank, c->group->rank[c->rank].member->name);
  /* It is this rank's device that failed, not the others'. */
  break_up(c->group, status == HELIO_DEVICE_FAILURE ? HELIO_ABORTED : status, message);
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
  break_up(g, HELIO_TIMED_OUT, message);
  return broken(c);
}

static helio_status await(helio_communicator *c, group_condition *met, uint32_t other, uint32_t progress) {
  if (!group_wait(c->group, met, other, progress, true)) return time_is_up(c, met, progress);
  /* What is broken goes no further, even if this wait came to a good end. */
  return atomic_load_explicit(&c->group->broken, memory_order_relaxed) ? broken(c) : HELIO_OK;
}

/* ---- groups ---- */

helio_status group_registry_open(group_registry *registry, const helio_host *host) {
  *registry = (group_registry){.host = host};
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
  pthread_mutex_destroy(&g->lock);
  g->host->release(g->host, g);
}

static group *group_new(group_registry *registry, const helio_communicator_options *options) {
  const helio_host *host = registry->host;
  size_t count = options->rank_count, bytes = sizeof(group) + count * sizeof(group_rank);
  group *g = host->allocate(host, bytes);
  if (!g) return NULL;
  memset(g, 0, bytes);
  g->host = host;
  g->registry = registry;
  g->rank_count = options->rank_count;
  g->timeout_ms = options->timeout_ms;
  g->spin_us = options->spin_us;
  memcpy(g->id, options->id, sizeof g->id);
  pthread_mutex_init(&g->lock, NULL);
  for (size_t i = 0; i < count; i++) {
    g->rank[i].counts = host->allocate(host, count * sizeof(size_t));
    if (g->rank[i].counts) continue;
    group_free(g);
    return NULL;
  }
  return g;
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

/* Those who wait are told by the group, those who come later find its id. */
helio_status group_refuse(group_registry *registry, const helio_communicator_options *options, helio_status status) {
  char message[60];
  snprintf(message, sizeof message, "rank %u could not join the group", options->rank);
  pthread_mutex_lock(&registry->lock);
  group *g = find(registry, options->id);
  if (g) break_up(g, HELIO_ABORTED, message);
  memcpy(registry->refused[registry->refusals++ % GROUP_REFUSALS], options->id, HELIO_COLLECTIVE_ID_SIZE);
  pthread_mutex_unlock(&registry->lock);
  return status;
}

/* The group of this id, made by whoever comes first. Holds a reference. */
static helio_status enter(group_registry *registry, const helio_communicator_options *options, group **result) {
  const helio_host *host = registry->host;
  pthread_mutex_lock(&registry->lock);
  group *g = find(registry, options->id);
  bool refused = is_refused(registry, options->id);
  if (!g && !refused && (g = group_new(registry, options))) {
    g->next = registry->first;
    registry->first = g;
  }
  if (g) g->references++;
  pthread_mutex_unlock(&registry->lock);
  *result = g;
  if (g) return HELIO_OK;
  if (refused) return host->fail(host, HELIO_ABORTED, "another rank could not join the group");
  return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a group of %u ranks", options->rank_count);
}

static void drop(group *g) {
  group_registry *registry = g->registry;
  pthread_mutex_lock(&registry->lock);
  bool last = --g->references == 0;
  if (last) {
    group **link = &registry->first;
    while (*link != g) link = &(*link)->next;
    *link = g->next;
  }
  pthread_mutex_unlock(&registry->lock);
  if (last) group_free(g);
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
  if (atomic_load(&g->broken)) return tell(g);
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
  helio_status status = await(c, group_all_seated, 0, 0);
  if (status) unseat(g, options->rank);
  return status;
}

helio_status group_join(group_registry *registry, const helio_communicator_options *options, void *own,
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
  break_up(c->group, HELIO_ABORTED, message);
}

helio_status group_poll(helio_communicator *c) {
  return atomic_load(&c->group->broken) ? tell(c->group) : HELIO_OK;
}

/* ---- calls ---- */

static bool has_counts(uint32_t kind) {
  return kind == GROUP_ALL_GATHER || kind == GROUP_REDUCE_SCATTER;
}

/* What must be the same for all ranks, but for counts. What does not matter for the kind is left out. */
static uint32_t what_of(uint32_t kind, const helio_collective_call *call) {
  bool sums = kind != GROUP_BROADCAST && kind != GROUP_ALL_GATHER;
  bool rooted = kind == GROUP_REDUCE || kind == GROUP_BROADCAST;
  return kind | (call->type & 0xFF) << 4 | (sums ? (call->reduction & 0xF) << 12 : 0) | (rooted ? call->root << 16 : 0);
}

static const char *type_name(uint32_t type) {
  switch (type) {
#define NAME(symbol, value, text, bytes)                                                                               \
  case value:                                                                                                          \
    return text;
    HELIO_TYPE_LIST(NAME)
#undef NAME
  }
  return "elements of an unknown type";
}

size_t group_type_bytes(uint32_t type) {
  switch (type) {
#define BYTES(symbol, value, text, bytes)                                                                              \
  case value:                                                                                                          \
    return bytes;
    HELIO_TYPE_LIST(BYTES)
#undef BYTES
  }
  return 0;
}

static void describe(const group *g, uint32_t rank, char *text, size_t size) {
  static const char *const kinds[] = {"", "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter"};
  static const char *const reductions[] = {"", ", sum", ", max", ", min"};
  const group_rank *r = &g->rank[rank];
  size_t elements = r->count;
  for (uint32_t i = 0; has_counts(r->what & 0xF) && i < g->rank_count; i++) elements += i == rank ? 0 : r->counts[i];
  int length = snprintf(text, size, "%s of %zu %s%s", kinds[r->what & 0xF], elements, type_name(r->what >> 4 & 0xFF),
                        reductions[r->what >> 12 & 3]);
  bool rooted = (r->what & 0xF) == GROUP_REDUCE || (r->what & 0xF) == GROUP_BROADCAST;
  if (rooted) snprintf(text + length, size - (size_t)length, ", root %u", r->what >> 16);
}

static helio_status calls_differ(helio_communicator *c, uint32_t other) {
  group *g = c->group;
  char first[120], second[120], message[500];
  describe(g, 0, first, sizeof first);
  describe(g, other, second, sizeof second);
  snprintf(message, sizeof message,
           "the ranks' calls differ: rank 0 makes %s; rank %u %s%s; every rank must make the same calls in the same "
           "order",
           first, other, second, strcmp(first, second) == 0 ? " with other counts of the ranks" : "");
  break_up(g, HELIO_INVALID_ARGUMENT, message);
  return broken(c);
}

/* All ranks look at the same, so all come to the same answer, before any memory is touched. */
static helio_status compare(helio_communicator *c) {
  const group *g = c->group;
  const group_rank *first = &g->rank[0];
  bool parts = has_counts(first->what & 0xF);
  for (uint32_t i = 1; i < g->rank_count; i++) {
    const group_rank *other = &g->rank[i];
    bool same = other->what == first->what;
    if (same && !parts) same = other->count == first->count;
    if (same && parts) same = memcmp(other->counts, first->counts, g->rank_count * sizeof(size_t)) == 0;
    if (!same) return calls_differ(c, i);
  }
  return HELIO_OK;
}

helio_status group_meet(helio_communicator *c, uint32_t kind, const helio_collective_call *call) {
  group *g = c->group;
  group_rank *self = &g->rank[c->rank];
  if (atomic_load_explicit(&g->broken, memory_order_relaxed)) return broken(c);
  if (call->size < sizeof *call || !helio_struct_fits(call, sizeof *call) || call->reserved != 0) {
    return group_fail(c, g->host->fail(g->host, HELIO_NOT_SUPPORTED, "the call is of another version"));
  }
  if (group_type_bytes(call->type) == 0) {
    return group_fail(c, g->host->fail(g->host, HELIO_NOT_SUPPORTED, "the type %u is unknown", call->type));
  }
  self->what = what_of(kind, call);
  self->count = call->count;
  self->source = call->source;
  self->target = call->target;
  self->stream = call->stream;
  if (has_counts(kind)) memcpy(self->counts, call->counts, g->rank_count * sizeof(size_t));
  group_advance(c);
  helio_status status = await(c, group_all_reached, 0, group_progress(c));
  return status ? status : compare(c);
}

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
  return broken(c);
}

void group_rest(helio_communicator *c) {
  atomic_store(&c->group->rank[c->rank].busy, 0);
  group_tell_sleepers(c->group);
}
