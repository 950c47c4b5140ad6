/* SPDX-License-Identifier: Apache-2.0 */
/* The ring as a plugin: its setting, the life of a rank, and the one symbol it exports. */
#include <stdlib.h>
#include <string.h>

#include "ring.h"

struct helio_plugin_state {
  const helio_host *host;
  group_registry registry;
  size_t chunk_bytes;
};

static const helio_parameter parameter_chunk = {
    .size = sizeof(helio_parameter),
    .name = "HELIO_RING_CHUNK",
    .kind = HELIO_PARAMETER_INTEGER,
    .default_value = "262144",
    .help = "Bytes of a piece that goes round the ring, 64 at least.",
};

static const helio_parameter *const parameters[] = {&parameter_chunk, NULL};

/* ---- a rank ---- */

static void rank_free(const helio_host *host, ring_rank *rank) {
  const helio_member *member = rank->member;
  helio_event *events[RING_SLOTS + 2] = {rank->start, rank->end};
  memcpy(events + 2, rank->passed, sizeof rank->passed);
  for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
    if (events[i]) member->streams->event_destroy(member->device, events[i]);
  }
  if (rank->incoming && member->memory->free(member->device, rank->incoming)) {
    host->log(host, HELIO_LOG_ERROR, "a buffer on %s could not be freed, or was damaged", member->name);
  }
  host->release(host, rank);
}

static helio_status rank_new(const helio_host *host, const helio_member *member, size_t chunk_bytes,
                             ring_rank **result) {
  ring_rank *rank = host->allocate(host, sizeof *rank);
  if (!rank) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a rank");
  memset(rank, 0, sizeof *rank);
  rank->member = member;
  rank->synchronous = member->description->capabilities & HELIO_CAPABLE_SYNCHRONOUS;
  rank->chunk_bytes = chunk_bytes;
  helio_status status = member->memory->allocate(member->device, chunk_bytes, &rank->incoming);
  for (size_t i = 0; i < RING_SLOTS + 2 && !status && !rank->synchronous; i++) {
    helio_event **event = i == 0 ? &rank->start : i == 1 ? &rank->end : &rank->passed[i - 2];
    status = member->streams->event_create(member->device, event);
  }
  if (status) {
    rank_free(host, rank);
  } else {
    *result = rank;
  }
  return status;
}

static helio_status create(helio_plugin_state *state, const helio_communicator_options *options,
                           helio_communicator **communicator) {
  ring_rank *rank = NULL;
  helio_status status = rank_new(state->host, options->member, state->chunk_bytes, &rank);
  if (status) return group_refuse(&state->registry, options, status);
  status = group_join(&state->registry, options, rank, communicator);
  if (status) rank_free(state->host, rank);
  return status;
}

/* The neighbours' streams may still wait for this rank's events: they must have passed. A rank that has left has waited
 * for its own. */
static void destroy(helio_communicator *c) {
  group *g = c->group;
  const helio_host *host = g->host;
  ring_rank *rank = ring_rank_of(c, c->rank);
  pthread_mutex_lock(&g->lock);
  for (uint32_t i = 0; i < g->rank_count; i++) {
    const helio_member *member = g->rank[i].member;
    if (member) member->devices->synchronize(member->device);
  }
  g->rank[c->rank].member = NULL;
  pthread_mutex_unlock(&g->lock);
  group_leave(c);
  rank_free(host, rank);
}

/* ---- the table ---- */

/* A ring pays where neighbours reach each other over links of their own: not between parts of one card, nor where
 * backends meet and every step goes through the host. There it is taken only if it is asked for. */
static bool is_ring(const helio_member *const *members, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(members[i]->description->native_api, members[0]->description->native_api) != 0) return false;
    for (size_t k = 0; k < i; k++) {
      if (members[i]->physical_id == members[k]->physical_id) return false;
    }
  }
  return true;
}

static helio_status offer(helio_plugin_state *state, const helio_member *const *members, size_t count,
                          helio_collective_offer *answer) {
  (void)state;
  answer->score = is_ring(members, count) ? 60 : 5;
  answer->types = CALL_ARITHMETIC_TYPES;
  answer->flags = HELIO_COLLECTIVE_IN_PLACE;
  return HELIO_OK;
}

static helio_status new_id(helio_plugin_state *state, void *id) {
  group_new_id(&state->registry, id);
  return HELIO_OK;
}

static const helio_collective_table table = {
    .size = sizeof(helio_collective_table),
    .offer = offer,
    .new_id = new_id,
    .create = create,
    .destroy = destroy,
    .abort = group_abort,
    .poll = group_poll,
    .all_reduce = ring_all_reduce,
    .broadcast = ring_broadcast,
    .all_gather = ring_all_gather,
};

/* ---- the plugin ---- */

static helio_status read_chunk(const helio_host *host, size_t *bytes) {
  const char *text = host->parameter(host, parameter_chunk.name);
  unsigned long long value = strtoull(text ? text : parameter_chunk.default_value, NULL, 10);
  if (value < 64 || value > (unsigned long long)1 << 30) {
    return host->fail(host, HELIO_INVALID_ARGUMENT, "HELIO_RING_CHUNK=%s: expected 64 to 1073741824", text);
  }
  *bytes = (size_t)value / 64 * 64;
  return HELIO_OK;
}

static helio_status probe(const helio_host *host, helio_probe_answer *answer) {
  size_t chunk;
  if (answer->size < sizeof *answer) {
    return host->fail(host, HELIO_ABI_MISMATCH, "the probe's answer has %zu bytes, not %zu", answer->size,
                      sizeof *answer);
  }
  strcpy(answer->reason, "for any devices of one process");
  return read_chunk(host, &chunk);
}

static helio_status init(const helio_host *host, helio_plugin_state **result) {
  helio_plugin_state *state = host->allocate(host, sizeof *state);
  if (!state) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  state->host = host;
  helio_status status = read_chunk(host, &state->chunk_bytes);
  if (!status) status = group_registry_open(&state->registry, host, NULL);
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
    .name = "ring",
    .version = PLUGIN_VERSION,
    .description = "sums that go round a ring of any devices",
    .probe = probe,
    .init = init,
    .finish = finish,
    .collective = &table,
    .parameters = parameters,
};
