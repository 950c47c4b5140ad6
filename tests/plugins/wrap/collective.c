/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapping collective as a plugin. Calls are counted by the number of the rank's device, so that they go on where a
 * group is made anew with fewer ranks. */
#include <stdlib.h>
#include <string.h>

#include "wrap.h"

struct helio_plugin_state {
  wrap_inner inner;
  wrap_target targets[WRAP_MOST_DEVICES];
};

struct helio_communicator {
  wrap_target *target;
  const helio_collective_table *table;
  const helio_member *member;
  helio_communicator *inner;
  uint32_t rank, rank_count;
};

/* ---- life ---- */

static const wrap_settings settings = {
    .collective = true, .plugin = "HELIO_WRAP_SUM_PLUGIN", .rules = "HELIO_WRAP_SUM_RULES"};

static helio_status probe(const helio_host *host, helio_probe_answer *answer) {
  return wrap_inner_probe(host, &settings, answer);
}

static helio_status init(const helio_host *host, helio_plugin_state **result) {
  helio_plugin_state *state = host->allocate(host, sizeof *state);
  if (!state) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  helio_status status = wrap_inner_start(&state->inner, host, &settings);
  if (status) {
    host->release(host, state);
    return status;
  }
  for (uint32_t i = 0; i < WRAP_MOST_DEVICES; i++) wrap_target_begin(&state->targets[i], &state->inner, i);
  *result = state;
  return HELIO_OK;
}

static void finish(helio_plugin_state *state) {
  const helio_host *host = state->inner.real;
  for (uint32_t i = 0; i < WRAP_MOST_DEVICES; i++) wrap_target_end(&state->targets[i]);
  wrap_inner_stop(&state->inner);
  host->release(host, state);
}

/* ---- groups ---- */

static helio_status offer(helio_plugin_state *state, const helio_member *const *members, size_t count,
                          helio_collective_offer *answer) {
  return state->inner.plugin->collective->offer(state->inner.state, members, count, answer);
}

static helio_status new_id(helio_plugin_state *state, void *id) {
  return state->inner.plugin->collective->new_id(state->inner.state, id);
}

/* Its number is the end of its name. */
static wrap_target *target_of(helio_plugin_state *state, const helio_member *member) {
  unsigned long number = strtoul(strrchr(member->name, ':') + 1, NULL, 10);
  return &state->targets[number % WRAP_MOST_DEVICES];
}

static helio_status create(helio_plugin_state *state, const helio_communicator_options *options,
                           helio_communicator **result) {
  const helio_host *host = state->inner.real;
  wrap_call call = {.target = target_of(state, options->member), .kind = WRAP_COLLECTIVE, .name = "create"};
  helio_status status = wrap_before(&call);
  if (status || call.skipped) return status;
  helio_communicator *made = host->allocate(host, sizeof *made);
  if (!made) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a communicator");
  *made = (helio_communicator){.target = call.target,
                               .table = state->inner.plugin->collective,
                               .member = options->member,
                               .rank = options->rank,
                               .rank_count = options->rank_count};
  status = wrap_after(&call, made->table->create(state->inner.state, options, &made->inner));
  if (status) {
    host->release(host, made);
  } else {
    *result = made;
  }
  return status;
}

static void destroy(helio_communicator *c) {
  const helio_host *host = c->target->inner->real;
  c->table->destroy(c->inner);
  host->release(host, c);
}

static void abort_group(helio_communicator *c) {
  c->table->abort(c->inner);
}

static helio_status poll_group(helio_communicator *c) {
  helio_status status = wrap_late(c->target, "poll");
  return status ? status : c->table->poll(c->inner);
}

/* ---- calls ---- */

typedef helio_status function(helio_communicator *communicator, const helio_collective_call *call);

/* `elements` are those that it writes to the target. */
static helio_status hand_on(helio_communicator *c, function *entry, const char *name, const helio_collective_call *what,
                            size_t elements) {
  wrap_call call = {.target = c->target,
                    .kind = WRAP_COLLECTIVE,
                    .name = name,
                    .elements = elements,
                    .device = c->member->device,
                    .memory = c->member->memory,
                    .streams = c->member->streams,
                    .stream = what->stream,
                    .place = what->target,
                    .bytes = elements * wrap_type_bytes(what->type)};
  wrap_add(c->target, WRAP_CALLS_OF_SUMS, 1);
  helio_status status = wrap_late(c->target, name);
  if (!status) status = wrap_before(&call);
  return status || call.skipped ? status : wrap_after(&call, entry(c->inner, what));
}

static size_t sum_of_counts(const helio_communicator *c, const helio_collective_call *call) {
  size_t sum = 0;
  for (uint32_t i = 0; i < c->rank_count; i++) sum += call->counts[i];
  return sum;
}

static helio_status all_reduce(helio_communicator *c, const helio_collective_call *call) {
  return hand_on(c, c->table->all_reduce, "all_reduce", call, call->count);
}

static helio_status broadcast(helio_communicator *c, const helio_collective_call *call) {
  return hand_on(c, c->table->broadcast, "broadcast", call, call->count);
}

static helio_status all_gather(helio_communicator *c, const helio_collective_call *call) {
  return hand_on(c, c->table->all_gather, "all_gather", call, sum_of_counts(c, call));
}

/* Entries that a plugin may lack are left to the core, but for the one that all of the tree's have. */
static const helio_collective_table table = {
    .size = sizeof(helio_collective_table),
    .offer = offer,
    .new_id = new_id,
    .create = create,
    .destroy = destroy,
    .abort = abort_group,
    .poll = poll_group,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .all_gather = all_gather,
};

/* ---- the plugin ---- */

static const helio_parameter *const parameters[] = {
    &(const helio_parameter){.size = sizeof(helio_parameter),
                             .name = "HELIO_WRAP_SUM_PLUGIN",
                             .kind = HELIO_PARAMETER_TEXT,
                             .default_value = "",
                             .help = "Path of the collective plugin that the test collective wraps."},
    &(const helio_parameter){.size = sizeof(helio_parameter),
                             .name = "HELIO_WRAP_SUM_RULES",
                             .kind = HELIO_PARAMETER_TEXT,
                             .default_value = "",
                             .help = "What happens at which calls, such as collective@17+/1:fail."},
    NULL,
};

const helio_plugin helio_plugin_entry = {
    .size = sizeof(helio_plugin),
    .magic = HELIO_PLUGIN_MAGIC,
    .abi_major = HELIO_ABI_MAJOR,
    .abi_minor = HELIO_ABI_MINOR,
    .name = "wrap-sum",
    .version = "0.1.0",
    .description = "a test collective that wraps another",
    .probe = probe,
    .init = init,
    .finish = finish,
    .collective = &table,
    .parameters = parameters,
};
