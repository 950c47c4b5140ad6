/* SPDX-License-Identifier: Apache-2.0 */
/* The collective for devices in the host's memory. */
#include <string.h>

#include "group.h"
#include "sum.h"

struct helio_plugin_state {
  const helio_host *host;
  group_registry registry;
};

/* ---- the parts of a call ---- */

/* Where the host finds a place. Ranks show each other addresses: the offset of a place without a buffer. */
static helio_place address_of(const helio_member *member, helio_place place) {
  if (!place.buffer) return (helio_place){NULL, 0};
  return (helio_place){NULL, (size_t)(uintptr_t)member->memory->native_buffer(place.buffer) + place.offset};
}

static char *source_of(const helio_communicator *c, uint32_t rank) {
  return (char *)(uintptr_t)c->group->rank[rank].source.offset;
}

static char *target_of(const helio_communicator *c, uint32_t rank) {
  return (char *)(uintptr_t)c->group->rank[rank].target.offset;
}

static void copy(char *target, const char *source, size_t bytes) {
  if (bytes != 0 && target != source) memcpy(target, source, bytes);
}

/* This rank's slice of a sum: whole lines of the cache, so that no two ranks write to one. */
static void sum_own_slice(const helio_communicator *c, const local_sum *what, size_t count) {
  size_t line = 64 / call_type_size(what->type), ranks = c->group->rank_count;
  size_t lines = (count + line - 1) / line;
  size_t first = lines * c->rank / ranks * line, end = lines * (c->rank + 1) / ranks * line;
  local_sum_slice(what, first, end < count ? end : count);
}

enum { FEW_RANKS = 16 };

/* Room for the addresses of all ranks' sources, then of their targets. */
static char **addresses_new(const helio_communicator *c, char **few) {
  const helio_host *host = c->group->host;
  uint32_t count = c->group->rank_count;
  return count <= FEW_RANKS ? few : host->allocate(host, 2 * count * sizeof(char *));
}

static void addresses_free(const helio_communicator *c, char **addresses, char **few) {
  if (addresses != few) c->group->host->release(c->group->host, addresses);
}

/* Sums from `skip` bytes of the sources on. */
typedef struct task {
  uint32_t kind;
  const helio_collective_call *call;
} task;

static helio_status sum(helio_communicator *c, const task *t) {
  const helio_collective_call *call = t->call;
  const group *g = c->group;
  char *few[2 * FEW_RANKS], **sources = addresses_new(c, few);
  if (!sources) return g->host->fail(g->host, HELIO_OUT_OF_MEMORY, "no memory for %u addresses", g->rank_count);
  char **targets = sources + g->rank_count;
  local_sum what = {.type = call->type,
                    .reduction = call->reduction,
                    .source_count = g->rank_count,
                    .target_count = t->kind == GROUP_ALL_REDUCE ? g->rank_count : 1,
                    .sources = sources,
                    .targets = targets};
  size_t skip = 0;
  for (uint32_t i = 0; t->kind == GROUP_REDUCE_SCATTER && i < c->rank; i++) skip += call->counts[i];
  for (uint32_t i = 0; i < g->rank_count; i++) {
    sources[i] = source_of(c, i) + skip * call_type_size(call->type);
    targets[i] = target_of(c, i);
  }
  if (t->kind == GROUP_REDUCE) targets[0] = target_of(c, call->root);
  if (t->kind == GROUP_REDUCE_SCATTER) {
    targets[0] = target_of(c, c->rank);
    local_sum_slice(&what, 0, call->count);
  } else {
    sum_own_slice(c, &what, call->count);
  }
  addresses_free(c, sources, few);
  return HELIO_OK;
}

static helio_status move(helio_communicator *c, const task *t) {
  const helio_collective_call *call = t->call;
  size_t element = call_type_size(call->type);
  char *target = target_of(c, c->rank);
  if (t->kind == GROUP_BROADCAST) {
    copy(target, source_of(c, call->root), call->count * element);
    return HELIO_OK;
  }
  for (uint32_t i = 0; i < c->group->rank_count; i++) {
    copy(target, source_of(c, i), call->counts[i] * element);
    target += call->counts[i] * element;
  }
  return HELIO_OK;
}

/* Everything is done when the call returns, so its place in the stream's order is found by waiting for the stream. */
static helio_status run(helio_communicator *c, const task *t,
                        helio_status (*work)(helio_communicator *, const task *)) {
  const helio_member *member = c->group->rank[c->rank].member;
  helio_collective_call shown = *t->call;
  if (!(member->description->capabilities & HELIO_CAPABLE_SYNCHRONOUS)) {
    helio_status idle = member->streams->synchronize(member->device, shown.stream);
    if (idle) return group_fail(c, idle);
  }
  shown.source = address_of(member, shown.source);
  shown.target = address_of(member, shown.target);
  helio_status status = group_meet(c, t->kind, &shown);
  if (!status) status = group_work(c);
  if (status) return status;
  status = work(c, t);
  group_rest(c);
  if (status) return group_fail(c, status);
  group_advance(c);
  return group_await_all(c, group_progress(c));
}

static helio_status run_sum(helio_communicator *c, uint32_t kind, const helio_collective_call *call) {
  const helio_host *host = c->group->host;
  bool known = call->reduction >= HELIO_REDUCTION_SUM && call->reduction <= HELIO_REDUCTION_MIN;
  if (call->type < 32 && local_sum_types & HELIO_TYPE_BIT(call->type) && known) {
    return run(c, &(task){kind, call}, sum);
  }
  return group_fail(
      c, host->fail(host, HELIO_NOT_SUPPORTED, "there is no reduction %u of type %u", call->reduction, call->type));
}

/* ---- the table ---- */

static helio_status offer(helio_plugin_state *state, const helio_member *const *members, size_t count,
                          helio_collective_offer *answer) {
  const helio_host *host = state->host;
  for (size_t i = 0; i < count; i++) {
    if (members[i]->description->capabilities & HELIO_CAPABLE_HOST_MEMORY) continue;
    return host->fail(host, HELIO_NO_DEVICE, "the host cannot touch the memory of %s", members[i]->name);
  }
  answer->score = 100;
  answer->types = local_sum_types;
  answer->flags = HELIO_COLLECTIVE_IN_PLACE | HELIO_COLLECTIVE_ORDERED;
  return HELIO_OK;
}

static helio_status new_id(helio_plugin_state *state, void *id) {
  group_new_id(&state->registry, id);
  return HELIO_OK;
}

static helio_status create(helio_plugin_state *state, const helio_communicator_options *options,
                           helio_communicator **communicator) {
  return group_join(&state->registry, options, NULL, communicator);
}

static helio_status all_reduce(helio_communicator *c, const helio_collective_call *call) {
  return run_sum(c, GROUP_ALL_REDUCE, call);
}

static helio_status reduce(helio_communicator *c, const helio_collective_call *call) {
  return run_sum(c, GROUP_REDUCE, call);
}

static helio_status reduce_scatter(helio_communicator *c, const helio_collective_call *call) {
  return run_sum(c, GROUP_REDUCE_SCATTER, call);
}

static helio_status broadcast(helio_communicator *c, const helio_collective_call *call) {
  return run(c, &(task){GROUP_BROADCAST, call}, move);
}

static helio_status all_gather(helio_communicator *c, const helio_collective_call *call) {
  return run(c, &(task){GROUP_ALL_GATHER, call}, move);
}

static const helio_collective_table table = {
    .size = sizeof(helio_collective_table),
    .offer = offer,
    .new_id = new_id,
    .create = create,
    .destroy = group_leave,
    .abort = group_abort,
    .poll = group_poll,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .reduce = reduce,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
};

/* ---- the plugin ---- */

static helio_status probe(const helio_host *host, helio_probe_answer *answer) {
  if (answer->size < sizeof *answer) {
    return host->fail(host, HELIO_ABI_MISMATCH, "the probe's answer has %zu bytes, not %zu", answer->size,
                      sizeof *answer);
  }
  strcpy(answer->reason, "for devices whose memory the host can touch");
  return HELIO_OK;
}

static helio_status init(const helio_host *host, helio_plugin_state **result) {
  helio_plugin_state *state = host->allocate(host, sizeof *state);
  if (!state) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  state->host = host;
  helio_status status = group_registry_open(&state->registry, host, NULL);
  if (status) {
    host->release(host, state);
  } else {
    *result = state;
  }
  return status;
}

static void finish(helio_plugin_state *state) {
  group_registry_close(&state->registry);
  state->host->release(state->host, state);
}

const helio_plugin helio_plugin_entry = {
    .size = sizeof(helio_plugin),
    .magic = HELIO_PLUGIN_MAGIC,
    .abi_major = HELIO_ABI_MAJOR,
    .abi_minor = HELIO_ABI_MINOR,
    .name = "local",
    .version = PLUGIN_VERSION,
    .description = "sums between devices in the host's memory",
    .probe = probe,
    .init = init,
    .finish = finish,
    .collective = &table,
};
