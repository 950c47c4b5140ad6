/* SPDX-License-Identifier: Apache-2.0 */
/* The calls: a rank's part, compared with those of the others, on its way to the library. */
#include <stdio.h>
#include <unistd.h>

#include "../group/wait.h"
#include "nccl.h"

/* ---- in the library's terms ---- */

static abi_enum type_of(uint32_t type, bool is_sum) {
  switch (type) {
  case HELIO_FLOAT32:
    return NCCL_ABI_FLOAT32;
  case HELIO_FLOAT64:
    return NCCL_ABI_FLOAT64;
  case HELIO_FLOAT16:
    return NCCL_ABI_FLOAT16;
  case HELIO_BFLOAT16:
    return is_sum ? NCCL_ABI_BFLOAT16 : NCCL_ABI_FLOAT16; /* the older library knows how long it is, if not what */
  case HELIO_INT32:
    return NCCL_ABI_INT32;
  case HELIO_INT64:
    return NCCL_ABI_INT64;
  default:
    return NCCL_ABI_UINT8;
  }
}

static abi_enum operator_of(uint32_t reduction) {
  return reduction == HELIO_REDUCTION_MAX   ? NCCL_ABI_MAXIMUM
         : reduction == HELIO_REDUCTION_MIN ? NCCL_ABI_MINIMUM
                                            : NCCL_ABI_SUM;
}

/* What every function of the library is handed. */
typedef struct request {
  const helio_collective_call *call;
  uint32_t rank, ranks;
  char *source, *target; /* addresses on the device, NULL where there is nothing */
  size_t element;
  abi_enum type, reduction;
  struct ncclComm *handle;
  struct NCCL_ABI_STREAM *stream;
} request;

static char *address_of(const helio_member *member, helio_place place) {
  return place.buffer ? (char *)member->memory->native_buffer(place.buffer) + place.offset : NULL;
}

static abi_enum broadcast(const request *r) {
  const helio_collective_call *call = r->call;
  const char *source = r->rank == call->root ? r->source : r->target;
  return nccl.ncclBroadcast(source, r->target, call->count, r->type, (int)call->root, r->handle, r->stream);
}

static bool are_equal(const size_t *counts, uint32_t count) {
  uint32_t i = 1;
  while (i < count && counts[i] == counts[0]) i++;
  return i == count;
}

/* Where the ranks' parts differ: a broadcast of each. */
static abi_enum all_gather(const request *r) {
  const size_t *counts = r->call->counts;
  if (are_equal(counts, r->ranks)) {
    return nccl.ncclAllGather(r->source, r->target, counts[0], r->type, r->handle, r->stream);
  }
  abi_enum result = nccl.ncclGroupStart(), ended = result;
  char *target = r->target;
  for (uint32_t i = 0; i < r->ranks && !result; i++) {
    const char *source = i == r->rank ? r->source : target;
    if (counts[i] > 0) result = nccl.ncclBroadcast(source, target, counts[i], r->type, (int)i, r->handle, r->stream);
    target += counts[i] * r->element;
  }
  if (!ended) ended = nccl.ncclGroupEnd();
  return result ? result : ended;
}

/* Where the parts differ: a reduction to each rank. */
static abi_enum reduce_scatter(const request *r) {
  const size_t *counts = r->call->counts;
  if (are_equal(counts, r->ranks)) {
    return nccl.ncclReduceScatter(r->source, r->target, counts[0], r->type, r->reduction, r->handle, r->stream);
  }
  abi_enum result = nccl.ncclGroupStart(), ended = result;
  const char *source = r->source;
  for (uint32_t i = 0; i < r->ranks && !result; i++) {
    void *target = i == r->rank ? r->target : NULL;
    if (counts[i] > 0) {
      result = nccl.ncclReduce(source, target, counts[i], r->type, r->reduction, (int)i, r->handle, r->stream);
    }
    source += counts[i] * r->element;
  }
  if (!ended) ended = nccl.ncclGroupEnd();
  return result ? result : ended;
}

static abi_enum ask_for(uint32_t kind, const request *r) {
  const helio_collective_call *call = r->call;
  switch (kind) {
  case GROUP_ALL_REDUCE:
    return nccl.ncclAllReduce(r->source, r->target, call->count, r->type, r->reduction, r->handle, r->stream);
  case GROUP_REDUCE:
    return nccl.ncclReduce(r->source, r->target, call->count, r->type, r->reduction, (int)call->root, r->handle,
                           r->stream);
  case GROUP_BROADCAST:
    return broadcast(r);
  case GROUP_ALL_GATHER:
    return all_gather(r);
  default:
    return reduce_scatter(r);
  }
}

static bool is_empty(const nccl_part *part) {
  bool parted = part->kind == GROUP_ALL_GATHER || part->kind == GROUP_REDUCE_SCATTER;
  size_t elements = parted ? 0 : part->call.count;
  for (uint32_t i = 0; parted && i < part->communicator->group->rank_count; i++) elements += part->call.counts[i];
  return elements == 0;
}

/* ---- one part ---- */

static const helio_member *member_of(const nccl_part *part) {
  return part->communicator->group->rank[part->communicator->rank].member;
}

static nccl_slot *slot_of(const nccl_part *part) {
  return &nccl_rank_of(part->communicator)->slots[part->number % NCCL_SLOTS];
}

/* The library knows that another rank has failed before it tells which one: that is waited for, for a while. */
static helio_status other_failed(helio_communicator *c) {
  group *g = c->group;
  for (int i = 0; i < 1000 && !group_is_broken(g); i++) {
    nccl_ask(nccl_team_of(c));
    if (!group_is_broken(g)) usleep(1000);
  }
  group_break(g, GROUP_NOBODY, HELIO_ABORTED, "another rank has failed");
  return group_tell(c);
}

/* The rank's own device or library refused. An error of the driver's need not be the end of the device: the library
 * takes memory for its buffers, and reaches for its peers, in the first call that wants them. But a call is refused
 * also because the device failed in an earlier one, where that is noticed here sooner than by the attendant. */
static helio_status refused(const nccl_part *part, abi_enum result) {
  helio_communicator *c = part->communicator;
  group *g = c->group;
  if (group_is_broken(g)) return group_tell(c);
  if (result == NCCL_ABI_REMOTE_ERROR) return other_failed(c);
  bool is_drivers = result == NCCL_ABI_UNHANDLED_CUDA_ERROR;
  bool is_late = is_drivers && nccl_late_error(nccl_rank_of(c)) == result;
  nccl_rank_failed(g, c->rank, result, is_late || (is_drivers && nccl_is_lost(g, c->rank)));
  return group_tell(c);
}

static helio_status ask_library(const nccl_part *part) {
  helio_communicator *c = part->communicator;
  const helio_member *member = member_of(part);
  bool is_sum = part->kind != GROUP_BROADCAST && part->kind != GROUP_ALL_GATHER;
  request r = {.call = &part->call,
               .rank = c->rank,
               .ranks = c->group->rank_count,
               .source = address_of(member, part->call.source),
               .target = address_of(member, part->call.target),
               .element = call_type_size(part->call.type),
               .type = type_of(part->call.type, is_sum),
               .reduction = operator_of(part->call.reduction),
               .handle = atomic_load(&nccl_rank_of(c)->handle),
               .stream = member->streams->native_stream(part->call.stream)};
  if (!r.handle) return group_is_broken(c->group) ? group_tell(c) : refused(part, NCCL_ABI_INVALID_USAGE);
  if (!nccl_enter(member)) return refused(part, NCCL_ABI_UNHANDLED_CUDA_ERROR);
  abi_enum result = is_empty(part) ? (abi_enum)NCCL_ABI_SUCCESS : ask_for(part->kind, &r);
  return result ? refused(part, result) : HELIO_OK;
}

/* The attendant finds out by two events how far the device has come. */
static helio_status start_part(const nccl_part *part) {
  const helio_member *member = member_of(part);
  nccl_slot *slot = slot_of(part);
  slot->number = 0;
  helio_status status = member->streams->event_record(member->device, slot->start, part->call.stream);
  return status ? group_fail(part->communicator, status) : ask_library(part);
}

static helio_status end_part(const nccl_part *part) {
  const helio_member *member = member_of(part);
  nccl_slot *slot = slot_of(part);
  helio_status status = member->streams->event_record(member->device, slot->end, part->call.stream);
  if (status) return group_fail(part->communicator, status);
  slot->number = part->number;
  slot->made = atomic_load(&nccl_rank_of(part->communicator)->calling_since);
  slot->has_begun = false;
  return HELIO_OK;
}

/* ---- parts of ranks of this thread ---- */

static bool is_first_of_rank(const nccl_part *parts, size_t at) {
  size_t i = 0;
  while (parts[i].communicator != parts[at].communicator) i++;
  return i == at;
}

static void lock_ranks(const nccl_part *parts, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!is_first_of_rank(parts, i)) continue;
    nccl_team *team = nccl_team_of(parts[i].communicator);
    nccl_rank *rank = nccl_rank_of(parts[i].communicator);
    pthread_mutex_lock(&rank->lock);
    atomic_store(&rank->calling_since, atomic_load(&team->clock));
    atomic_store(&rank->calling, parts[i].number);
    nccl_team_stir(team); /* the library may wait for others */
  }
}

static void unlock_ranks(const nccl_part *parts, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!is_first_of_rank(parts, i)) continue;
    nccl_rank *rank = nccl_rank_of(parts[i].communicator);
    atomic_store(&rank->calling, 0);
    pthread_mutex_unlock(&rank->lock);
    nccl_team_stir(nccl_team_of(parts[i].communicator));
  }
}

/* Several parts are one group of the library's, so that none waits for another that comes behind it. */
static helio_status hand_over_locked(const nccl_part *parts, size_t count) {
  helio_status status = HELIO_OK;
  abi_enum result = count > 1 ? nccl.ncclGroupStart() : (abi_enum)NCCL_ABI_SUCCESS;
  if (result) return refused(&parts[0], result);
  for (size_t i = 0; i < count && !status; i++) status = start_part(&parts[i]);
  if (count > 1) result = nccl.ncclGroupEnd();
  if (!status && result) status = refused(&parts[0], result);
  for (size_t i = 0; i < count && !status; i++) status = end_part(&parts[i]);
  return status;
}

/* ---- ranks wait for each other ---- */

/* A driver may let a thread that asks for memory, or loads a kernel, wait for the work of all devices, and others that
 * want something of it wait for that thread. If a device waited in a collective then for a part that one of them has
 * still to hand over, nobody would ever go on. So the first part is handed over when all ranks have come to the call,
 * and who has handed over goes on, to whatever it asks of the driver next, when all have; other threads' calls of that
 * kind are kept out by the host. */
static bool all_handed(const group *g, uint32_t other, uint32_t number) {
  const nccl_team *team = g->shared;
  (void)other;
  bool all = true;
  for (uint32_t i = 0; i < g->rank_count && all; i++) {
    all = (int32_t)(atomic_load(&team->ranks[i].handed) - number) >= 0;
  }
  return all;
}

static helio_status await_ranks(const nccl_part *parts, size_t count) {
  helio_status status = HELIO_OK;
  for (size_t i = 0; i < count && !status; i++) {
    if (is_first_of_rank(parts, i)) status = group_await_all(parts[i].communicator, parts[i].number);
  }
  return status;
}

static helio_status await_parts(const nccl_part *parts, size_t count) {
  helio_status status = HELIO_OK;
  for (size_t i = 0; i < count; i++) {
    atomic_store(&nccl_rank_of(parts[i].communicator)->handed, parts[i].number);
    group_tell_sleepers(parts[i].communicator->group);
  }
  for (size_t i = 0; i < count && !status; i++) {
    helio_communicator *c = parts[i].communicator;
    group *g = c->group;
    char message[160];
    if (!group_wait(g, all_handed, 0, parts[i].number, true)) {
      snprintf(message, sizeof message, PLUGIN_TITLE " has not taken the parts of all %u ranks within %.3g s",
               g->rank_count, g->timeout_ms / 1000.0);
      group_break(g, GROUP_NOBODY, HELIO_TIMED_OUT, message);
    }
    if (group_is_broken(g)) status = group_tell(c);
  }
  return status;
}

static helio_status compare(nccl_part *part) {
  helio_communicator *c = part->communicator;
  const helio_host *host = c->group->host;
  const helio_collective_call *call = &part->call;
  bool is_sum = part->kind != GROUP_BROADCAST && part->kind != GROUP_ALL_GATHER;
  bool known = call->reduction >= HELIO_REDUCTION_SUM && call->reduction <= HELIO_REDUCTION_MIN &&
               call_type_size(call->type) && call->type != HELIO_UINT8 && call->type != HELIO_BOOL;
  if (is_sum && !known && !group_is_broken(c->group)) {
    return group_fail(
        c, host->fail(host, HELIO_NOT_SUPPORTED, "there is no reduction %u of type %u", call->reduction, call->type));
  }
  helio_status status = group_record(c, part->kind, call);
  part->number = group_progress(c);
  return status;
}

helio_status nccl_hand_over(nccl_part *parts, size_t count) {
  helio_status status = HELIO_OK;
  for (size_t i = 0; i < count && !status; i++) status = compare(&parts[i]);
  if (!status) status = await_ranks(parts, count);
  if (!status) {
    const helio_host *host = parts[0].communicator->group->host;
    host->turn_begin(host, HELIO_TURN_COLLECTIVE);
    lock_ranks(parts, count);
    status = hand_over_locked(parts, count);
    unlock_ranks(parts, count);
    if (!status) status = await_parts(parts, count);
    host->turn_end(host, HELIO_TURN_COLLECTIVE);
  }
  /* What was to be handed over together and was not would be waited for. */
  for (size_t i = 0; status && i < count; i++) {
    group_break(parts[i].communicator->group, GROUP_NOBODY, HELIO_ABORTED,
                "another call of the same thread has failed");
  }
  return status;
}

/* ---- for the table ---- */

static helio_status make(helio_communicator *c, uint32_t kind, const helio_collective_call *call) {
  nccl_part part = {c, kind, 0, *call};
  return nccl_batch_is_open() ? nccl_batch_add_part(&part) : nccl_hand_over(&part, 1);
}

helio_status nccl_all_reduce(helio_communicator *c, const helio_collective_call *call) {
  return make(c, GROUP_ALL_REDUCE, call);
}

helio_status nccl_reduce(helio_communicator *c, const helio_collective_call *call) {
  return make(c, GROUP_REDUCE, call);
}

helio_status nccl_broadcast(helio_communicator *c, const helio_collective_call *call) {
  return make(c, GROUP_BROADCAST, call);
}

helio_status nccl_all_gather(helio_communicator *c, const helio_collective_call *call) {
  return make(c, GROUP_ALL_GATHER, call);
}

helio_status nccl_reduce_scatter(helio_communicator *c, const helio_collective_call *call) {
  return make(c, GROUP_REDUCE_SCATTER, call);
}
