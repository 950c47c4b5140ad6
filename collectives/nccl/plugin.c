/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL and RCCL as plugins: whom they serve, the life of a rank, and the one symbol that each exports. */
#include <stdio.h>
#include <string.h>

#include "nccl.h"

static const helio_parameter parameter_libraries = {
    .size = sizeof(helio_parameter),
    .name = PLUGIN_PARAMETER,
    .kind = HELIO_PARAMETER_TEXT,
    .default_value = "",
    .help = "Folders, separated by ':', that " PLUGIN_LIBRARY
            " is looked for in before the loader looks; empty: where it looks and in " PLUGIN_FOLDERS ".",
};

static const helio_parameter *const parameters[] = {&parameter_libraries, NULL};

/* ---- a rank ---- */

static void rank_clear(const helio_communicator *c, const helio_member *member) {
  nccl_rank *rank = nccl_rank_of(c);
  for (int i = 0; i < NCCL_SLOTS; i++) {
    nccl_slot *slot = &rank->slots[i];
    if (slot->start) member->streams->event_destroy(member->device, slot->start);
    if (slot->end) member->streams->event_destroy(member->device, slot->end);
    *slot = (nccl_slot){0};
  }
}

/* The lock keeps the attendant from looking at what is half there. */
static helio_status rank_furnish(const helio_communicator *c, const helio_member *member) {
  nccl_rank *rank = nccl_rank_of(c);
  helio_status status = HELIO_OK;
  pthread_mutex_lock(&rank->lock);
  for (int i = 0; i < NCCL_SLOTS && !status; i++) {
    status = member->streams->event_create(member->device, &rank->slots[i].start);
    if (!status) status = member->streams->event_create(member->device, &rank->slots[i].end);
  }
  pthread_mutex_unlock(&rank->lock);
  return status;
}

/* If others are ahead of a rank that leaves, their devices wait for its part. */
static void leave(helio_communicator *c) {
  group *g = c->group;
  char message[80];
  bool waited_for = false;
  for (uint32_t i = 0; i < g->rank_count; i++) {
    uint32_t ahead = atomic_load(&g->rank[i].progress) - group_progress(c);
    waited_for = waited_for || (int32_t)ahead > 0;
  }
  snprintf(message, sizeof message, "rank %u has left the group", c->rank);
  if (waited_for) group_break(g, GROUP_NOBODY, HELIO_ABORTED, message);
  group_leave(c);
}

/* The communicators of a broken group are the attendant's. */
static void give_back(const helio_communicator *c) {
  const helio_member *member = c->group->rank[c->rank].member;
  nccl_rank *rank = nccl_rank_of(c);
  pthread_mutex_lock(&rank->lock);
  struct ncclComm *handle = group_is_broken(c->group) ? NULL : atomic_exchange(&rank->handle, NULL);
  if (handle) {
    const helio_host *host = c->group->host;
    host->turn_begin(host, HELIO_TURN_DRIVER);
    nccl_enter(member);
    abi_enum result = nccl.ncclCommDestroy(handle);
    host->turn_end(host, HELIO_TURN_DRIVER);
    char text[300];
    if (result) {
      host->log(host, HELIO_LOG_WARNING, "a communicator of %s could not be given back: %s", member->name,
                nccl_text(result, text, sizeof text));
    }
  }
  rank_clear(c, member);
  pthread_mutex_unlock(&rank->lock);
}

/* A device that does not come to its end takes the group along: its communicator can only be aborted, with the others'.
 */
static void destroy(helio_communicator *c) {
  const helio_member *member = c->group->rank[c->rank].member;
  if (group_is_broken(c->group)) nccl_team_await_abort(nccl_team_of(c));
  helio_status status = member->devices->synchronize(member->device);
  if (status) group_fail(c, status);
  if (group_is_broken(c->group)) nccl_team_await_abort(nccl_team_of(c)); /* it may have broken meanwhile */
  give_back(c);
  leave(c);
}

static helio_status create(helio_plugin_state *state, const helio_communicator_options *options,
                           helio_communicator **communicator) {
  helio_communicator *c = NULL;
  helio_status status = group_seat(&state->registry, options, NULL, &c);
  if (status) return status;
  status = rank_furnish(c, options->member);
  if (status) status = group_fail(c, status);
  if (!status && nccl_batch_is_open()) {
    status = nccl_batch_add_join(c);
    if (status) status = group_fail(c, status);
  } else {
    if (!status) status = group_await_seats(c);
    if (!status) status = nccl_team_await(c);
  }
  if (status) {
    destroy(c);
  } else {
    *communicator = c;
  }
  return status;
}

static helio_status poll(helio_communicator *c) {
  if (!group_is_broken(c->group)) nccl_ask(nccl_team_of(c));
  return group_poll(c);
}

/* ---- the table ---- */

static helio_status find_library(helio_plugin_state *state) {
  if (!state->found) state->found = nccl_library_open(state->host, state->reason, sizeof state->reason);
  return state->found ? HELIO_OK : state->host->fail(state->host, HELIO_NOT_SUPPORTED, "%s", state->reason);
}

static bool is_ours(const helio_member *member) {
  return strcmp(member->description->native_api, PLUGIN_API) == 0;
}

/* In the words that users know. NULL: all can be served. */
static const char *refusal(const helio_member *const *members, size_t count) {
  const char *reason = NULL;
  for (size_t i = 0; i < count; i++) {
    if (is_ours(members[i])) continue;
    if (members[i]->description->device_class != HELIO_CLASS_GPU) {
      return "There are non-GPU devices in the strategy, not using " PLUGIN_NAME " allreduce.";
    }
    reason =
        "There are GPUs in the strategy that are no " PLUGIN_DEVICES " devices, not using " PLUGIN_NAME " allreduce.";
  }
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < i; k++) {
      if (members[k]->physical_id != members[i]->physical_id || reason) continue;
      reason = PLUGIN_TITLE " is not supported when using virtual GPUs, falling back to reduction to one device";
    }
  }
  return reason;
}

static helio_status offer(helio_plugin_state *state, const helio_member *const *members, size_t count,
                          helio_collective_offer *answer) {
  const helio_host *host = state->host;
  size_t ours = 0;
  for (size_t i = 0; i < count; i++) ours += is_ours(members[i]);
  if (ours == 0) return host->fail(host, HELIO_NO_DEVICE, "none of them is a " PLUGIN_DEVICES " device");
  const char *reason = refusal(members, count);
  if (reason) return host->fail(host, HELIO_NOT_SUPPORTED, "%s", reason);
  helio_status status = find_library(state);
  if (status) return status;
  answer->score = 100;
  answer->types = CALL_ARITHMETIC_TYPES;
  if (nccl_library_version() < 21000) answer->types &= ~HELIO_TYPE_BIT(HELIO_BFLOAT16);
  answer->flags = HELIO_COLLECTIVE_IN_PLACE | HELIO_COLLECTIVE_ASYNCHRONOUS;
  return HELIO_OK;
}

/* The library's id, and behind it our own, by which the ranks of this process meet. */
static helio_status new_id(helio_plugin_state *state, void *id) {
  const helio_host *host = state->host;
  unsigned char own[HELIO_COLLECTIVE_ID_SIZE];
  nccl_abi_unique_id theirs;
  char text[300];
  helio_status status = find_library(state);
  if (status) return status;
  abi_enum result = nccl.ncclGetUniqueId(&theirs);
  if (result) {
    nccl_text(result, text, sizeof text);
    return host->fail(host, nccl_status(result), "%s", text);
  }
  if (!nccl_library_waits(text, sizeof text)) return host->fail(host, HELIO_NOT_SUPPORTED, "%s", text);
  group_new_id(&state->registry, own);
  memcpy(id, &theirs, sizeof theirs);
  memcpy((char *)id + sizeof theirs, own, HELIO_COLLECTIVE_ID_SIZE - sizeof theirs);
  return HELIO_OK;
}

static const helio_collective_table table = {
    .size = sizeof(helio_collective_table),
    .offer = offer,
    .new_id = new_id,
    .create = create,
    .destroy = destroy,
    .abort = group_abort,
    .poll = poll,
    .all_reduce = nccl_all_reduce,
    .broadcast = nccl_broadcast,
    .reduce = nccl_reduce,
    .all_gather = nccl_all_gather,
    .reduce_scatter = nccl_reduce_scatter,
    .group_start = nccl_batch_start,
    .group_end = nccl_batch_end,
};

/* ---- the plugin ---- */

/* Without the library the plugin is there all the same, and says so to whoever would need it. Opening it and the driver
 * takes a while, and a process that ends meanwhile may be aborted by them: both wait for devices to serve. */
static helio_status probe(const helio_host *host, helio_probe_answer *answer) {
  if (answer->size < sizeof *answer) {
    return host->fail(host, HELIO_ABI_MISMATCH, "the probe's answer has %zu bytes, not %zu", answer->size,
                      sizeof *answer);
  }
  if (answer->inspecting) {
    answer->no_use = !nccl_library_open(host, answer->reason, sizeof answer->reason);
  } else {
    snprintf(answer->reason, sizeof answer->reason,
             PLUGIN_LIBRARY " is opened when " PLUGIN_DEVICES " devices need it");
  }
  return HELIO_OK;
}

static helio_status init(const helio_host *host, helio_plugin_state **result) {
  helio_plugin_state *state = host->allocate(host, sizeof *state);
  if (!state) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  memset(state, 0, sizeof *state);
  state->host = host;
  helio_status status = group_registry_open(&state->registry, host, &nccl_service);
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
    .name = PLUGIN_NAME,
    .version = PLUGIN_VERSION,
    .description = "sums between " PLUGIN_DEVICES " devices by " PLUGIN_TITLE,
    .probe = probe,
    .init = init,
    .finish = finish,
    .collective = &table,
    .parameters = parameters,
};
