/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks' parts of a call, and whether they are the same. */
#include <stdio.h>
#include <string.h>

#include "group.h"

static bool has_counts(uint32_t kind) {
  return kind == GROUP_ALL_GATHER || kind == GROUP_REDUCE_SCATTER;
}

static bool has_root(uint32_t kind) {
  return kind == GROUP_REDUCE || kind == GROUP_BROADCAST;
}

/* ---- signatures ---- */

/* What does not matter for the kind is left out. */
static uint32_t what_of(uint32_t kind, const helio_collective_call *call) {
  bool sums = kind != GROUP_BROADCAST && kind != GROUP_ALL_GATHER;
  return kind | (call->type & 0xFF) << 4 | (sums ? (call->reduction & 0xF) << 12 : 0) |
         (has_root(kind) ? call->root << 16 : 0);
}

/* FNV-1a, over the words of all counts: a number that other counts hardly ever have. Never 0. */
static uint32_t digest(const size_t *counts, uint32_t count) {
  uint32_t sum = 2166136261u;
  for (uint32_t i = 0; i < count; i++) {
    sum = (sum ^ (uint32_t)counts[i]) * 16777619u;
    sum = (sum ^ (uint32_t)((uint64_t)counts[i] >> 32)) * 16777619u;
  }
  return sum ? sum : 1;
}

static group_signature sign(const helio_communicator *c, uint32_t kind, const helio_collective_call *call) {
  uint32_t ranks = c->group->rank_count;
  group_signature made = {.what = what_of(kind, call), .elements = call->count};
  if (!has_counts(kind)) return made;
  made.counts = digest(call->counts, ranks);
  for (uint32_t i = 0; i < ranks; i++) made.elements += i == c->rank ? 0 : call->counts[i];
  return made;
}

static bool same(const group_signature *one, const group_signature *other) {
  return one->what == other->what && one->elements == other->elements && one->counts == other->counts;
}

static void describe(const group_signature *call, char *text, size_t size) {
  static const char *const kinds[] = {"", "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter"};
  static const char *const reductions[] = {"", ", sum", ", max", ", min"};
  uint32_t kind = call->what & 0xF;
  int length = snprintf(text, size, "%s of %zu %s%s", kinds[kind], call->elements,
                        call_type_name(call->what >> 4 & 0xFF), reductions[call->what >> 12 & 3]);
  if (has_root(kind)) snprintf(text + length, size - (size_t)length, ", root %u", call->what >> 16);
}

/* The lower rank comes first. */
static helio_status calls_differ(helio_communicator *c, const group_first *one, const group_first *other) {
  char first[120], second[120], message[500];
  if (one->rank > other->rank) return calls_differ(c, other, one);
  describe(&one->call, first, sizeof first);
  describe(&other->call, second, sizeof second);
  snprintf(message, sizeof message,
           "the ranks' calls differ: rank %u makes %s; rank %u %s%s; every rank must make the same calls in the same "
           "order",
           one->rank, first, other->rank, second, strcmp(first, second) == 0 ? " with other counts of the ranks" : "");
  group_break(c->group, GROUP_NOBODY, HELIO_INVALID_ARGUMENT, message);
  return group_stop(c);
}

/* ---- bringing a part ---- */

static helio_status check(helio_communicator *c, const helio_collective_call *call) {
  const helio_host *host = c->group->host;
  if (group_is_broken(c->group)) return group_stop(c);
  if (call->size < sizeof *call || !helio_struct_fits(call, sizeof *call) || call->reserved != 0) {
    return group_fail(c, host->fail(host, HELIO_NOT_SUPPORTED, "the call is of another version"));
  }
  if (call_type_size(call->type) == 0) {
    return group_fail(c, host->fail(host, HELIO_NOT_SUPPORTED, "the type %u is unknown", call->type));
  }
  return HELIO_OK;
}

/* All ranks look at the same, so all come to the same answer, before any memory is touched. */
static helio_status compare_all(helio_communicator *c) {
  const group *g = c->group;
  for (uint32_t i = 1; i < g->rank_count; i++) {
    if (same(&g->rank[0].call, &g->rank[i].call)) continue;
    return calls_differ(c, &(group_first){.call = g->rank[0].call}, &(group_first){.rank = i, .call = g->rank[i].call});
  }
  return HELIO_OK;
}

helio_status group_meet(helio_communicator *c, uint32_t kind, const helio_collective_call *call) {
  const group *g = c->group;
  group_rank *self = &c->group->rank[c->rank];
  helio_status status = check(c, call);
  if (status) return status;
  self->call = sign(c, kind, call);
  self->source = call->source;
  self->target = call->target;
  if (has_counts(kind)) memcpy(self->counts, call->counts, g->rank_count * sizeof(size_t));
  group_advance(c);
  status = group_await_all(c, group_progress(c));
  return status ? status : compare_all(c);
}

/* Who has left has made all of its calls. */
static helio_status find_left(helio_communicator *c, uint32_t number) {
  group *g = c->group;
  char message[80];
  uint32_t left = GROUP_NOBODY;
  pthread_mutex_lock(&g->lock);
  for (uint32_t i = 0; i < g->rank_count; i++) {
    if (!g->rank[i].member && (int32_t)(atomic_load(&g->rank[i].progress) - number) < 0) left = i;
  }
  pthread_mutex_unlock(&g->lock);
  if (left == GROUP_NOBODY) return HELIO_OK;
  snprintf(message, sizeof message, "rank %u has left the group", left);
  group_break(g, GROUP_NOBODY, HELIO_ABORTED, message);
  return group_stop(c);
}

helio_status group_record(helio_communicator *c, uint32_t kind, const helio_collective_call *call) {
  group *g = c->group;
  helio_status status = check(c, call);
  if (status) return status;
  group_first mine = {group_progress(c) + 1, c->rank, sign(c, kind, call)}, first = mine;
  status = find_left(c, mine.number);
  if (!status && mine.number > GROUP_RECORDS) status = group_await_all(c, mine.number - GROUP_RECORDS);
  if (status) return status;
  group_first *record = &g->records[mine.number % GROUP_RECORDS];
  pthread_mutex_lock(&g->lock);
  if (record->number == mine.number) {
    first = *record;
  } else {
    *record = mine;
  }
  pthread_mutex_unlock(&g->lock);
  if (!same(&first.call, &mine.call)) return calls_differ(c, &first, &mine);
  group_advance(c);
  return HELIO_OK;
}
