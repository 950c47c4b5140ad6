/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a group: what a collective leaves out is made of what it has. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "device/doubt.h"
#include "device/topology.h"
#include "ops/accumulate.h"
#include "runtime/environment.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/progress.h"
#include "strategy/collective.h"
#include "tensor/tensor.h"

/* Bytes of each rank that are gathered at a time when values are gathered to be added. */
static const size_t largest_gathered = (size_t)1 << 20;

typedef helio_status (*call_function)(hi_communicator *c, const hi_exchange *exchange);

struct hi_communicator {
  const helio_collective_table *table;
  helio_plugin_state *state; /* of the collective */
  helio_communicator *handle;
  char name[64];
  hi_device *device;
  unsigned char id[HELIO_COLLECTIVE_ID_SIZE];
  uint32_t timeout_ms;
  uint32_t rank, rank_count;
  uint32_t types, flags;
  unsigned suspicions; /* of the thread when the call began */
  bool ordered;
  hi_doubt doubt;       /* whether what its calls have given is well */
  bool told;            /* that it is not */
  size_t *equal_counts; /* room for counts that are all the same */
  /* Chosen once: the collective's own, or what stands for it. */
  call_function reduce, all_gather, reduce_scatter;
};

static helio_place behind(helio_place place, size_t bytes) {
  return place.buffer ? (helio_place){place.buffer, place.offset + bytes} : place;
}

static bool same(helio_place a, helio_place b) {
  return a.buffer == b.buffer && a.offset == b.offset;
}

static size_t bytes_of(const hi_exchange *exchange, size_t count) {
  return count * helio_type_bytes(exchange->type);
}

/* ---- handing calls over ---- */

static helio_collective_call abi_call(const hi_communicator *c, const hi_exchange *exchange) {
  return (helio_collective_call){.size = sizeof(helio_collective_call),
                                 .stream = c->device->streams[exchange->stream],
                                 .source = exchange->source,
                                 .target = exchange->target,
                                 .type = exchange->type,
                                 .reduction = exchange->reduction,
                                 .root = exchange->root,
                                 .count = exchange->count,
                                 .counts = exchange->counts};
}

typedef helio_status table_function(helio_communicator *handle, const helio_collective_call *call);

/* Other ranks are waited for inside, until their time is up. */
static helio_status handed_over(hi_communicator *c, table_function *function, const char *what,
                                const helio_collective_call *call) {
  hi_doing(what, c->device);
  hi_progress_change(HI_WAITS);
  helio_status status = function(c->handle, call);
  hi_progress_change(HI_WORKS);
  hi_done();
  return status;
}

static helio_status own_all_reduce(hi_communicator *c, const hi_exchange *exchange) {
  helio_collective_call call = abi_call(c, exchange);
  return handed_over(c, c->table->all_reduce, "all_reduce", &call);
}

static helio_status own_broadcast(hi_communicator *c, const hi_exchange *exchange) {
  helio_collective_call call = abi_call(c, exchange);
  return handed_over(c, c->table->broadcast, "broadcast", &call);
}

static helio_status own_reduce(hi_communicator *c, const hi_exchange *exchange) {
  helio_collective_call call = abi_call(c, exchange);
  return handed_over(c, c->table->reduce, "reduce", &call);
}

static helio_status own_all_gather(hi_communicator *c, const hi_exchange *exchange) {
  helio_collective_call call = abi_call(c, exchange);
  call.count = exchange->counts[c->rank];
  return handed_over(c, c->table->all_gather, "all_gather", &call);
}

static helio_status own_reduce_scatter(hi_communicator *c, const hi_exchange *exchange) {
  helio_collective_call call = abi_call(c, exchange);
  call.count = exchange->counts[c->rank];
  return handed_over(c, c->table->reduce_scatter, "reduce_scatter", &call);
}

/* ---- what stands for entries that a collective does not have ---- */

static hi_block *workspace_new(const hi_communicator *c, int stream, size_t bytes) {
  return hi_arena_allocate(c->device->arena, bytes, stream, "collective workspace");
}

static helio_status copy(const hi_communicator *c, int stream, helio_place target, helio_place source, size_t bytes) {
  if (bytes == 0 || same(target, source)) return HELIO_OK;
  const helio_member *member = &c->device->member;
  return hi_host_copy(NULL, member, c->device->streams[stream], target, member, source, bytes);
}

/* Ranks other than the root have no target, but all_reduce wants one. */
static helio_status reduce_by_all_reduce(hi_communicator *c, const hi_exchange *exchange) {
  hi_exchange whole = *exchange;
  hi_block *workspace = NULL;
  if (c->rank != exchange->root && exchange->count > 0) {
    workspace = workspace_new(c, exchange->stream, bytes_of(exchange, exchange->count));
    if (!workspace) return helio_error_pending();
    whole.target = workspace->place;
  }
  helio_status status = own_all_reduce(c, &whole);
  hi_block_release(workspace);
  return status;
}

static helio_status all_gather_by_broadcasts(hi_communicator *c, const hi_exchange *exchange) {
  hi_exchange part = *exchange;
  helio_status status = HELIO_OK;
  for (part.root = 0; part.root < c->rank_count && !status; part.root++) {
    part.count = exchange->counts[part.root];
    if (part.count > 0) status = own_broadcast(c, &part);
    part.target = behind(part.target, bytes_of(exchange, part.count));
  }
  return status;
}

static helio_status reduce_scatter_by_reduces(hi_communicator *c, const hi_exchange *exchange) {
  hi_exchange part = *exchange;
  helio_status status = HELIO_OK;
  for (part.root = 0; part.root < c->rank_count && !status; part.root++) {
    part.count = exchange->counts[part.root];
    if (part.count > 0) status = c->reduce(c, &part);
    part.source = behind(part.source, bytes_of(exchange, part.count));
  }
  return status;
}

/* ---- sums that the collective cannot form, or not in order: all values are gathered, then added ---- */

/* Adds up what lies in the workspace, rank behind rank, at the target. */
static helio_status add_gathered(const hi_communicator *c, const hi_exchange *exchange, helio_place gathered,
                                 helio_place target, size_t count) {
  size_t bytes = bytes_of(exchange, count);
  helio_accumulation what = {.size = sizeof what,
                             .stream = c->device->streams[exchange->stream],
                             .into = target,
                             .type = exchange->type,
                             .reduction = exchange->reduction,
                             .count = count,
                             .scale = 1};
  helio_status status = copy(c, exchange->stream, target, gathered, bytes);
  for (uint32_t i = 1; i < c->rank_count && !status; i++) {
    what.from = behind(gathered, i * bytes);
    status = hi_host_accumulate(NULL, &c->device->member, &what);
  }
  return status;
}

static helio_status gather_and_add(hi_communicator *c, const hi_exchange *exchange, bool has_target) {
  if (exchange->count == 0) return HELIO_OK;
  size_t most = largest_gathered / helio_type_bytes(exchange->type);
  if (most > exchange->count) most = exchange->count;
  hi_block *workspace = workspace_new(c, exchange->stream, c->rank_count * bytes_of(exchange, most));
  if (!workspace) return helio_error_pending();
  helio_status status = HELIO_OK;
  for (size_t at = 0; at < exchange->count && !status; at += most) {
    size_t count = exchange->count - at < most ? exchange->count - at : most, skip = bytes_of(exchange, at);
    hi_exchange gather = *exchange;
    for (uint32_t i = 0; i < c->rank_count; i++) c->equal_counts[i] = count;
    gather.counts = c->equal_counts;
    gather.source = behind(exchange->source, skip);
    gather.target = workspace->place;
    status = c->all_gather(c, &gather);
    if (!status && has_target) {
      status = add_gathered(c, exchange, workspace->place, behind(exchange->target, skip), count);
    }
  }
  hi_block_release(workspace);
  return status;
}

static helio_status all_reduce_by_gather(hi_communicator *c, const hi_exchange *exchange) {
  return gather_and_add(c, exchange, true);
}

static helio_status reduce_by_gather(hi_communicator *c, const hi_exchange *exchange) {
  return gather_and_add(c, exchange, c->rank == exchange->root);
}

static helio_status reduce_scatter_by_gather(hi_communicator *c, const hi_exchange *exchange) {
  hi_exchange part = *exchange;
  helio_status status = HELIO_OK;
  for (part.root = 0; part.root < c->rank_count && !status; part.root++) {
    part.count = exchange->counts[part.root];
    status = reduce_by_gather(c, &part);
    part.source = behind(part.source, bytes_of(exchange, part.count));
  }
  return status;
}

static bool must_gather(const hi_communicator *c, const hi_exchange *exchange) {
  /* a + b is b + a; the larger of 0 and −0 is either */
  bool either_way = c->rank_count < 3 && exchange->reduction == HELIO_REDUCTION_SUM;
  bool in_order = c->flags & HELIO_COLLECTIVE_ORDERED || either_way;
  return (c->ordered && !in_order) || !(c->types & HELIO_TYPE_BIT(exchange->type));
}

/* ---- what callers see ---- */

/* A rank that failed by itself would leave the others waiting. */
static helio_status failed(hi_communicator *c, helio_status status, const char *what) {
  if (hi_device_suspicions() == c->suspicions) hi_device_suspect(c->device, status);
  hi_fail(status, "%s on rank %u of %u (%s) by %s: %s", what, c->rank, c->rank_count, c->device->name, c->name,
          hi_reason(status));
  c->table->abort(c->handle);
  return helio_error_pending();
}

static const char *wrong_with(const hi_communicator *c, const hi_exchange *exchange, bool sums, bool has_counts) {
  if (exchange->stream < 0 || exchange->stream >= HI_STREAM_COUNT) return "the device has no such stream";
  if (!hi_type_valid(exchange->type)) return "the type is unknown";
  if (exchange->root >= c->rank_count) return "there is no such root";
  if (has_counts && !exchange->counts) return "the ranks' counts are missing";
  if (!sums) return NULL;
  if (exchange->type == HELIO_UINT8 || exchange->type == HELIO_BOOL) return "numbers of this type cannot be summed";
  if (exchange->reduction < 0 || exchange->reduction > HELIO_REDUCTION_MIN) return "the reduction is unknown";
  return NULL;
}

static helio_status check(hi_communicator *c, const hi_exchange *exchange, const char *what, bool sums,
                          bool has_counts) {
  hi_reason_clear();
  c->suspicions = hi_device_suspicions();
  const char *wrong = wrong_with(c, exchange, sums, has_counts);
  if (wrong) {
    hi_reason_say("%s", wrong);
    return failed(c, HELIO_INVALID_ARGUMENT, what);
  }
  return hi_device_stream(c->device, exchange->stream) ? HELIO_OK : failed(c, helio_error_pending(), what);
}

/* Where the collective needs two places and was given one, the source moves to a workspace first. */
static helio_status apart(hi_communicator *c, const hi_exchange *exchange, size_t count, bool in_place,
                          call_function function) {
  if (!in_place || c->flags & HELIO_COLLECTIVE_IN_PLACE || count == 0) return function(c, exchange);
  hi_block *workspace = workspace_new(c, exchange->stream, bytes_of(exchange, count));
  if (!workspace) return helio_error_pending();
  hi_exchange moved = *exchange;
  moved.source = workspace->place;
  helio_status status = copy(c, exchange->stream, moved.source, exchange->source, bytes_of(exchange, count));
  if (!status) status = function(c, &moved);
  hi_block_release(workspace);
  return status;
}

static hi_exchange complete(const hi_exchange *exchange) {
  hi_exchange whole = *exchange;
  if (!whole.reduction) whole.reduction = HELIO_REDUCTION_SUM;
  return whole;
}

static size_t sum_of(const size_t *counts, uint32_t count) {
  size_t sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += counts[i];
  return sum;
}

helio_status hi_communicator_all_reduce(hi_communicator *c, const hi_exchange *given) {
  if (helio_error_pending()) return helio_error_pending();
  hi_exchange exchange = complete(given);
  helio_status status = check(c, &exchange, "all_reduce", true, false);
  if (status) return status;
  status = must_gather(c, &exchange)
               ? all_reduce_by_gather(c, &exchange)
               : apart(c, &exchange, exchange.count, same(exchange.source, exchange.target), own_all_reduce);
  return status ? failed(c, status, "all_reduce") : HELIO_OK;
}

helio_status hi_communicator_reduce(hi_communicator *c, const hi_exchange *given) {
  if (helio_error_pending()) return helio_error_pending();
  hi_exchange exchange = complete(given);
  helio_status status = check(c, &exchange, "reduce", true, false);
  if (status) return status;
  bool in_place = c->rank == exchange.root && same(exchange.source, exchange.target);
  status = must_gather(c, &exchange) ? reduce_by_gather(c, &exchange)
                                     : apart(c, &exchange, exchange.count, in_place, c->reduce);
  return status ? failed(c, status, "reduce") : HELIO_OK;
}

helio_status hi_communicator_broadcast(hi_communicator *c, const hi_exchange *given) {
  if (helio_error_pending()) return helio_error_pending();
  hi_exchange exchange = complete(given);
  helio_status status = check(c, &exchange, "broadcast", false, false);
  if (status) return status;
  bool in_place = c->rank == exchange.root && same(exchange.source, exchange.target);
  status = apart(c, &exchange, exchange.count, in_place, own_broadcast);
  return status ? failed(c, status, "broadcast") : HELIO_OK;
}

helio_status hi_communicator_all_gather(hi_communicator *c, const hi_exchange *given) {
  if (helio_error_pending()) return helio_error_pending();
  hi_exchange exchange = complete(given);
  helio_status status = check(c, &exchange, "all_gather", false, true);
  if (status) return status;
  size_t before = bytes_of(&exchange, sum_of(exchange.counts, c->rank));
  bool in_place = same(exchange.source, behind(exchange.target, before));
  status = apart(c, &exchange, exchange.counts[c->rank], in_place, c->all_gather);
  return status ? failed(c, status, "all_gather") : HELIO_OK;
}

helio_status hi_communicator_reduce_scatter(hi_communicator *c, const hi_exchange *given) {
  if (helio_error_pending()) return helio_error_pending();
  hi_exchange exchange = complete(given);
  helio_status status = check(c, &exchange, "reduce_scatter", true, true);
  if (status) return status;
  size_t before = bytes_of(&exchange, sum_of(exchange.counts, c->rank));
  bool in_place = same(exchange.target, behind(exchange.source, before));
  status = must_gather(c, &exchange)
               ? reduce_scatter_by_gather(c, &exchange)
               : apart(c, &exchange, sum_of(exchange.counts, c->rank_count), in_place, c->reduce_scatter);
  return status ? failed(c, status, "reduce_scatter") : HELIO_OK;
}

/* ---- life ---- */

helio_status hi_communicator_join(hi_communicator *c) {
  /* More ranks than cores: a thread that spins keeps the one that it waits for from running. */
  bool crowded = c->rank_count > (uint32_t)hi_topology_cores();
  helio_communicator_options options = {.size = sizeof options,
                                        .id = c->id,
                                        .rank = c->rank,
                                        .rank_count = c->rank_count,
                                        .member = &c->device->member,
                                        .timeout_ms = c->timeout_ms,
                                        .spin_us = crowded ? 0 : (uint32_t)hi_environment_number(HI_SPIN_US)};
  hi_reason_clear();
  c->suspicions = hi_device_suspicions();
  hi_doing("joining the group", c->device);
  hi_progress_change(HI_WAITS);
  helio_status status = c->table->create(c->state, &options, &c->handle);
  hi_progress_change(HI_WORKS);
  hi_done();
  if (!status) return HELIO_OK;
  if (hi_device_suspicions() == c->suspicions) hi_device_suspect(c->device, status);
  return hi_fail(status, "rank %u of %u (%s) joining a group of %s: %s", c->rank, c->rank_count, c->device->name,
                 c->name, hi_reason(status));
}

hi_communicator *hi_communicator_make(const hi_collective_choice *choice, const hi_communicator_settings *settings) {
  if (helio_error_pending()) return NULL;
  const helio_collective_table *table = choice->collective.table;
  hi_communicator *c = calloc(1, sizeof *c);
  size_t *counts = c ? calloc(settings->rank_count, sizeof *counts) : NULL;
  if (!counts) {
    free(c);
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a communicator");
    return NULL;
  }
  uint64_t timeout_ms = settings->timeout_ms ? settings->timeout_ms : hi_environment_number(HI_TIMEOUT);
  *c = (hi_communicator){.table = table,
                         .state = choice->collective.state,
                         .device = settings->device,
                         .timeout_ms = (uint32_t)timeout_ms,
                         .rank = settings->rank,
                         .rank_count = settings->rank_count,
                         .types = choice->types,
                         .flags = choice->flags,
                         .ordered = settings->ordered,
                         .equal_counts = counts,
                         .reduce = table->reduce ? own_reduce : reduce_by_all_reduce,
                         .all_gather = table->all_gather ? own_all_gather : all_gather_by_broadcasts,
                         .reduce_scatter = table->reduce_scatter ? own_reduce_scatter : reduce_scatter_by_reduces};
  snprintf(c->name, sizeof c->name, "%s", choice->collective.name);
  memcpy(c->id, settings->id, sizeof c->id);
  if (!hi_device_use(c->device)) return c;
  hi_communicator_free(c);
  return NULL;
}

hi_communicator *hi_communicator_new(const hi_collective_choice *choice, const hi_communicator_settings *settings) {
  hi_communicator *c = hi_communicator_make(choice, settings);
  if (!c || !hi_communicator_join(c)) return c;
  hi_communicator_free(c);
  return NULL;
}

/* ---- calls that nobody waits for ---- */

static helio_status ask(hi_doubt *doubt) {
  hi_communicator *c = (hi_communicator *)((char *)doubt - offsetof(hi_communicator, doubt));
  helio_status status = hi_communicator_poll(c);
  c->told = c->told || status;
  return status;
}

void hi_communicator_doubt(hi_communicator *c) {
  if (!(c->flags & HELIO_COLLECTIVE_ASYNCHRONOUS)) return;
  c->doubt.ask = ask;
  hi_doubt_raise(c->device, &c->doubt);
}

void hi_communicator_trust(hi_communicator *c) {
  if (c) hi_doubt_end(c->device, &c->doubt);
}

/* The last occasion to find out: nobody has read anything since, and only the log is left. Ranks are freed in order,
 * and the first speaks for all. */
static void end_doubt(hi_communicator *c) {
  helio_error before, found;
  if (!hi_doubt_end(c->device, &c->doubt) || c->told || c->rank > 0) return;
  helio_error_take(&before);
  if (!hi_device_synchronize(c->device)) hi_communicator_poll(c);
  if (helio_error_take(&found)) {
    hi_log(HELIO_LOG_ERROR, "%s. It was the latest step of a strategy that is released: its variables are undefined",
           found.message);
  }
  if (before.status) hi_fail(before.status, "%s", before.message);
}

void hi_communicator_free(hi_communicator *c) {
  if (!c) return;
  end_doubt(c);
  if (c->handle) c->table->destroy(c->handle);
  free(c->equal_counts);
  free(c);
}

void hi_communicator_abort(hi_communicator *c) {
  if (c->handle) c->table->abort(c->handle);
}

helio_status hi_communicator_poll(hi_communicator *c) {
  if (helio_error_pending()) return helio_error_pending();
  hi_reason_clear();
  helio_status status = c->table->poll(c->handle);
  if (!status) return HELIO_OK;
  hi_device_suspect(c->device, status);
  return hi_fail(status, "the group of rank %u (%s) by %s: %s", c->rank, c->device->name, c->name, hi_reason(status));
}
