/* SPDX-License-Identifier: Apache-2.0 */
#include "strategy/reduce_to_one.h"

#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "ops/accumulate.h"
#include "runtime/error.h"
#include "strategy/meeting.h"

/* Bytes that are summed at a time: what comes from another device waits in a workspace of this size. */
static const size_t largest_piece = (size_t)4 << 20;

struct helio_communicator {
  hi_meeting *meeting;
  uint32_t rank;
  const helio_member *member;
  helio_event *event;
};

/* ---- order between the streams of different devices ---- */

/* What is handed to rank `later` from now on waits for what rank `earlier` had been handed when its event was last
 * recorded. Events of another backend can only be waited for by the host. */
static helio_status order(const hi_meeting *meeting, uint32_t earlier, uint32_t later) {
  const hi_meeting_rank *from = &meeting->ranks[earlier], *to = &meeting->ranks[later];
  if (earlier == later || from->member->description->capabilities & HELIO_CAPABLE_SYNCHRONOUS) return HELIO_OK;
  if (from->member->streams == to->member->streams) {
    return to->member->streams->wait(to->member->device, to->call.stream, from->event);
  }
  return from->member->streams->event_synchronize(from->member->device, from->event);
}

static helio_status record(const hi_meeting *meeting, uint32_t rank) {
  const hi_meeting_rank *at = &meeting->ranks[rank];
  return at->member->streams->event_record(at->member->device, at->event, at->call.stream);
}

/* What is handed to any rank from now on waits for all that any rank had been handed. */
static helio_status order_all(const hi_meeting *meeting) {
  helio_status status = HELIO_OK;
  for (uint32_t i = 0; i < meeting->rank_count && !status; i++) status = record(meeting, i);
  for (uint32_t i = 0; i < meeting->rank_count * meeting->rank_count && !status; i++) {
    status = order(meeting, i / meeting->rank_count, i % meeting->rank_count);
  }
  return status;
}

/* ---- pieces of work: nothing is written to the places of ranks that have left, because the group was aborted ---- */

static helio_place behind(helio_place place, size_t bytes) {
  return (helio_place){place.buffer, place.offset + bytes};
}

static bool same(helio_place a, helio_place b) {
  return a.buffer == b.buffer && a.offset == b.offset;
}

static helio_status copy(hi_meeting *meeting, uint32_t to, helio_place target, uint32_t from, helio_place source,
                         size_t bytes) {
  const hi_meeting_rank *t = &meeting->ranks[to], *f = &meeting->ranks[from];
  if (bytes == 0 || (to == from && same(target, source))) return HELIO_OK;
  helio_status status = hi_meeting_poll(meeting);
  if (status) return status;
  return hi_host_copy(NULL, t->member, t->call.stream, target, f->member, source, bytes);
}

static helio_status add(const hi_meeting *meeting, uint32_t rank, helio_place into, helio_place from, size_t count) {
  const hi_meeting_rank *at = &meeting->ranks[rank];
  helio_accumulation what = {.size = sizeof what,
                             .stream = at->call.stream,
                             .into = into,
                             .from = from,
                             .type = at->call.type,
                             .reduction = at->call.reduction,
                             .count = count,
                             .scale = 1};
  return hi_host_accumulate(NULL, at->member, &what);
}

/* Room on the device of the sum, ordered by the call's stream: for a value from elsewhere, and for the sum itself where
 * the target still holds a value that comes later in the order of ranks. */
static hi_block *workspace_new(const hi_meeting_rank *at, size_t bytes) {
  hi_device *device = (hi_device *)at->member;
  int stream = 0;
  while (stream < HI_STREAM_COUNT - 1 && device->streams[stream] != at->call.stream) stream++;
  return hi_arena_allocate(device->arena, bytes, stream, "reduce-to-one");
}

/* `count` elements from `skip` on of all sources, added up at `target` on the root's device. The workspace has two
 * halves. */
static helio_status sum_piece(hi_meeting *meeting, uint32_t root, helio_place target, size_t skip, size_t count,
                              const helio_place workspace[2]) {
  size_t bytes = count * helio_type_bytes((helio_type)meeting->ranks[root].call.type);
  size_t before = skip * helio_type_bytes((helio_type)meeting->ranks[root].call.type);
  helio_place own = behind(meeting->ranks[root].call.source, before);
  helio_place into = root > 0 && same(own, target) ? workspace[1] : target;
  helio_status status = copy(meeting, root, into, 0, behind(meeting->ranks[0].call.source, before), bytes);
  for (uint32_t i = 1; i < meeting->rank_count && !status; i++) {
    helio_place from = own;
    if (i != root) {
      from = workspace[0];
      status = copy(meeting, root, from, i, behind(meeting->ranks[i].call.source, before), bytes);
    }
    if (!status) status = add(meeting, root, into, from, count);
  }
  return status ? status : copy(meeting, root, target, root, into, bytes);
}

static helio_status sum(hi_meeting *meeting, uint32_t root, helio_place target, size_t skip, size_t count) {
  if (count == 0) return HELIO_OK;
  size_t element = helio_type_bytes((helio_type)meeting->ranks[root].call.type), most = largest_piece / element;
  if (most > count) most = count;
  size_t half = (most * element + 63) / 64 * 64;
  hi_block *workspace = workspace_new(&meeting->ranks[root], 2 * half);
  if (!workspace) return hi_error_as_reason(HELIO_OUT_OF_MEMORY);
  helio_place halves[2] = {workspace->place, behind(workspace->place, half)};
  helio_status status = HELIO_OK;
  for (size_t at = 0; at < count && !status; at += most) {
    size_t piece = count - at < most ? count - at : most;
    status = sum_piece(meeting, root, behind(target, at * element), skip + at, piece, halves);
  }
  hi_block_release(workspace);
  return status;
}

/* From a place on the root's device, where it is complete in the order of its stream, to all targets. */
static helio_status spread(hi_meeting *meeting, uint32_t root, helio_place source) {
  const helio_collective_call *call = &meeting->ranks[root].call;
  size_t bytes = call->count * helio_type_bytes((helio_type)call->type);
  helio_status status = record(meeting, root);
  for (uint32_t i = 0; i < meeting->rank_count && !status; i++) {
    status = order(meeting, root, i);
    if (!status) status = copy(meeting, i, meeting->ranks[i].call.target, root, source, bytes);
  }
  return status;
}

/* ---- the work of each call, done by one thread for all ranks ---- */

static helio_status between_orders(hi_meeting *meeting, helio_status (*work)(hi_meeting *meeting)) {
  helio_status status = order_all(meeting);
  if (!status) status = work(meeting);
  return status ? status : order_all(meeting);
}

static helio_status all_reduce_inside(hi_meeting *meeting) {
  const helio_collective_call *call = &meeting->ranks[0].call;
  helio_status status = sum(meeting, 0, call->target, 0, call->count);
  return status ? status : spread(meeting, 0, call->target);
}

static helio_status reduce_inside(hi_meeting *meeting) {
  const helio_collective_call *call = &meeting->ranks[meeting->ranks[0].call.root].call;
  return sum(meeting, call->root, call->target, 0, call->count);
}

static helio_status broadcast_inside(hi_meeting *meeting) {
  uint32_t root = meeting->ranks[0].call.root;
  return spread(meeting, root, meeting->ranks[root].call.source);
}

static helio_status all_gather_inside(hi_meeting *meeting) {
  const size_t *counts = meeting->ranks[0].counts;
  size_t element = helio_type_bytes((helio_type)meeting->ranks[0].call.type), before = 0;
  helio_status status = HELIO_OK;
  for (uint32_t from = 0; from < meeting->rank_count; from++) {
    for (uint32_t to = 0; to < meeting->rank_count && !status; to++) {
      status = copy(meeting, to, behind(meeting->ranks[to].call.target, before), from, meeting->ranks[from].call.source,
                    counts[from] * element);
    }
    before += counts[from] * element;
  }
  return status;
}

static helio_status reduce_scatter_inside(hi_meeting *meeting) {
  const size_t *counts = meeting->ranks[0].counts;
  size_t before = 0;
  helio_status status = HELIO_OK;
  for (uint32_t i = 0; i < meeting->rank_count && !status; i++) {
    status = sum(meeting, i, meeting->ranks[i].call.target, before, counts[i]);
    before += counts[i];
  }
  return status;
}

static helio_status work(hi_meeting *meeting) {
  static helio_status (*const inside[])(hi_meeting *) = {[HI_MEETING_ALL_REDUCE] = all_reduce_inside,
                                                         [HI_MEETING_REDUCE] = reduce_inside,
                                                         [HI_MEETING_BROADCAST] = broadcast_inside,
                                                         [HI_MEETING_ALL_GATHER] = all_gather_inside,
                                                         [HI_MEETING_REDUCE_SCATTER] = reduce_scatter_inside};
  return between_orders(meeting, inside[meeting->ranks[0].kind]);
}

/* ---- the table ---- */

static helio_status offer(helio_plugin_state *state, const helio_member *const *members, size_t count,
                          helio_collective_offer *answer) {
  (void)state, (void)members, (void)count;
  answer->score = 10;
  answer->types = HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64) | HELIO_TYPE_BIT(HELIO_FLOAT16) |
                  HELIO_TYPE_BIT(HELIO_BFLOAT16) | HELIO_TYPE_BIT(HELIO_INT32) | HELIO_TYPE_BIT(HELIO_INT64);
  answer->flags = HELIO_COLLECTIVE_IN_PLACE | HELIO_COLLECTIVE_ORDERED;
  return HELIO_OK;
}

static helio_status new_id(helio_plugin_state *state, void *id) {
  (void)state;
  hi_meeting_new_id(id);
  return HELIO_OK;
}

static helio_status create(helio_plugin_state *state, const helio_communicator_options *options,
                           helio_communicator **result) {
  const helio_member *member = options->member;
  (void)state;
  helio_communicator *made = calloc(1, sizeof *made);
  if (!made) return hi_meeting_refuse(options, HELIO_OUT_OF_MEMORY);
  made->rank = options->rank;
  made->member = member;
  helio_status status = member->streams->event_create(member->device, &made->event);
  if (status) {
    hi_meeting_refuse(options, status);
  } else {
    status = hi_meeting_join(options, made->event, &made->meeting);
    if (status) member->streams->event_destroy(member->device, made->event);
  }
  if (status) {
    free(made);
  } else {
    *result = made;
  }
  return status;
}

static void destroy(helio_communicator *communicator) {
  const helio_member *member = communicator->member;
  hi_meeting_leave(communicator->meeting, communicator->rank);
  member->streams->event_destroy(member->device, communicator->event);
  free(communicator);
}

static void abort_group(helio_communicator *communicator) {
  hi_meeting_abort(communicator->meeting, communicator->rank);
}

static helio_status poll_group(helio_communicator *communicator) {
  return hi_meeting_poll(communicator->meeting);
}

static helio_status all_reduce(helio_communicator *c, const helio_collective_call *call) {
  return hi_meeting_call(c->meeting, c->rank, HI_MEETING_ALL_REDUCE, call, work);
}

static helio_status reduce(helio_communicator *c, const helio_collective_call *call) {
  return hi_meeting_call(c->meeting, c->rank, HI_MEETING_REDUCE, call, work);
}

static helio_status broadcast(helio_communicator *c, const helio_collective_call *call) {
  return hi_meeting_call(c->meeting, c->rank, HI_MEETING_BROADCAST, call, work);
}

static helio_status all_gather(helio_communicator *c, const helio_collective_call *call) {
  return hi_meeting_call(c->meeting, c->rank, HI_MEETING_ALL_GATHER, call, work);
}

static helio_status reduce_scatter(helio_communicator *c, const helio_collective_call *call) {
  return hi_meeting_call(c->meeting, c->rank, HI_MEETING_REDUCE_SCATTER, call, work);
}

const helio_collective_table hi_reduce_to_one_table = {
    .size = sizeof(helio_collective_table),
    .offer = offer,
    .new_id = new_id,
    .create = create,
    .destroy = destroy,
    .abort = abort_group,
    .poll = poll_group,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .reduce = reduce,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
};
