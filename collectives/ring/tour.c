/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces on their way round the ring.
 *
 * A call is a sequence of pieces, counted alike on all ranks. At each, a rank draws some bytes from the rank before it,
 * which has them since its own piece `lag` earlier, into its own memory. The last piece of a call is followed by two
 * more steps of progress: at the first the rank's stream waits for the rank behind, which has read from its memory, the
 * second lets no rank into the next call before all have done that.
 *
 * Nothing that a rank has handed on is overwritten too early. In an all-reduce a rank overwrites a part of its sum only
 * by the finished one, which exists because the rank behind has read that part. */
#include "ring.h"

typedef struct tour {
  helio_communicator *c;
  const helio_collective_call *call;
  uint32_t ranks, rank, before, behind;
  uint32_t start; /* progress at the start */
  uint32_t next;  /* number of the next piece */
  uint32_t lag;
  uint32_t chunks; /* pieces of a step of a round */
  size_t element;
  size_t chunk; /* elements of a piece, at the most */
} tour;

/* A run of elements of the whole. */
typedef struct span {
  size_t first, count;
} span;

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

static helio_place at(helio_place place, size_t elements, size_t element) {
  return (helio_place){place.buffer, place.offset + elements * element};
}

static bool same(helio_place a, helio_place b) {
  return a.buffer == b.buffer && a.offset == b.offset;
}

/* ---- order between devices ---- */

/* What is handed to this rank's stream from now on waits for another rank's event. */
static helio_status order(const tour *t, const ring_rank *other, helio_event *event) {
  const helio_member *self = ring_rank_of(t->c, t->rank)->member;
  if (other->synchronous) return HELIO_OK;
  if (other->member->streams == self->streams) return self->streams->wait(self->device, t->call->stream, event);
  return other->member->streams->event_synchronize(other->member->device, event);
}

static helio_status record(const tour *t, helio_event *event) {
  const ring_rank *self = ring_rank_of(t->c, t->rank);
  if (self->synchronous) return HELIO_OK;
  return self->member->streams->event_record(self->member->device, event, t->call->stream);
}

/* ---- begin and end ---- */

static helio_status begin(tour *t, helio_communicator *c, uint32_t kind, const helio_collective_call *call) {
  uint32_t ranks = c->group->rank_count;
  *t = (tour){.c = c,
              .call = call,
              .ranks = ranks,
              .rank = c->rank,
              .before = (c->rank + ranks - 1) % ranks,
              .behind = (c->rank + 1) % ranks};
  helio_status status = record(t, ring_rank_of(c, c->rank)->start);
  if (status) return group_fail(c, status);
  status = group_meet(c, kind, call);
  if (status) return status;
  t->start = group_progress(c);
  t->element = call_type_size(call->type);
  t->chunk = ring_rank_of(c, 0)->chunk_bytes / t->element;
  /* From now on the sources of the rank before can be read. */
  status = group_work(c);
  if (status) return status;
  status = order(t, ring_rank_of(c, t->before), ring_rank_of(c, t->before)->start);
  group_rest(c);
  return status ? group_fail(c, status) : HELIO_OK;
}

static helio_status end(tour *t) {
  helio_communicator *c = t->c;
  helio_status status = record(t, ring_rank_of(c, t->rank)->end);
  if (status) return group_fail(c, status);
  group_advance(c);
  status = group_await(c, t->behind, group_progress(c));
  if (!status) status = group_work(c);
  if (status) return status;
  status = order(t, ring_rank_of(c, t->behind), ring_rank_of(c, t->behind)->end);
  group_rest(c);
  if (status) return group_fail(c, status);
  group_advance(c);
  return group_await_all(c, group_progress(c));
}

/* ---- one piece ---- */

typedef struct piece {
  bool first;       /* nothing has happened to it yet: it lies in the source of the rank before */
  helio_place from; /* on the rank before */
  helio_place into; /* on this rank */
  size_t count;
  helio_place own; /* this rank's value, to be added; no buffer: none */
} piece;

/* Where the sum is formed on this rank's own value, what comes passes through a buffer. */
static helio_status draw(const tour *t, const piece *p) {
  const helio_host *host = t->c->group->host;
  const ring_rank *self = ring_rank_of(t->c, t->rank), *before = ring_rank_of(t->c, t->before);
  bool adds = p->own.buffer != NULL, onto_own = adds && same(p->own, p->into);
  helio_place arrival = onto_own ? (helio_place){self->incoming, 0} : p->into;
  helio_accumulation sum = {.size = sizeof sum,
                            .stream = t->call->stream,
                            .into = p->into,
                            .from = onto_own ? arrival : p->own,
                            .type = t->call->type,
                            .reduction = t->call->reduction,
                            .count = p->count,
                            .scale = 1};
  helio_status status = HELIO_OK;
  if (!p->first) status = order(t, before, before->passed[(t->next - t->lag) % RING_SLOTS]);
  if (!status) {
    status = host->copy(host, self->member, t->call->stream, arrival, before->member, p->from, p->count * t->element);
  }
  if (!status && adds) status = host->accumulate(host, self->member, &sum);
  return status ? status : record(t, self->passed[t->next % RING_SLOTS]);
}

/* An event is recorded again only when the rank behind has waited for it, at its piece `lag` later. */
static helio_status pass(tour *t, const piece *p) {
  helio_communicator *c = t->c;
  helio_status status = HELIO_OK;
  if (t->next >= RING_SLOTS) {
    status = group_await(c, t->behind, t->start + t->next - RING_SLOTS + t->lag + 1);
  }
  if (!status && p && !p->first) status = group_await(c, t->before, t->start + t->next - t->lag + 1);
  if (!status && p && p->count > 0) {
    status = group_work(c);
    if (status) return status;
    status = draw(t, p);
    group_rest(c);
    if (status) return group_fail(c, status);
  }
  if (status) return status;
  t->next++;
  group_advance(c);
  return HELIO_OK;
}

/* This rank's own part, from its source to its target. */
static helio_status keep_own(const tour *t, helio_place target, helio_place source, size_t count) {
  const helio_host *host = t->c->group->host;
  const helio_member *self = ring_rank_of(t->c, t->rank)->member;
  if (count == 0 || same(target, source)) return HELIO_OK;
  helio_status status = host->copy(host, self, t->call->stream, target, self, source, count * t->element);
  return status ? group_fail(t->c, status) : HELIO_OK;
}

/* How many pieces a step has if the longest part has so many elements, and how many rounds that makes. */
static size_t divide(tour *t, size_t longest) {
  size_t pieces = (longest + t->chunk - 1) / t->chunk;
  t->chunks = (uint32_t)least(pieces, RING_STEP_CHUNKS);
  t->lag = t->chunks;
  return pieces == 0 ? 0 : (pieces + t->chunks - 1) / t->chunks;
}

/* ---- all_reduce ---- */

/* A piece of a part of a round: the round is cut into a part for each rank, the part into pieces. */
static span reduce_span(const tour *t, size_t round, uint32_t part, uint32_t chunk) {
  size_t round_most = t->ranks * t->chunks * t->chunk, skip = round * round_most;
  size_t in_round = least(t->call->count - skip, round_most);
  size_t part_most = (in_round + t->ranks - 1) / t->ranks, piece_most = (part_most + t->chunks - 1) / t->chunks;
  size_t first = least(part * part_most + least(chunk * piece_most, part_most), in_round);
  size_t last = least(part * part_most + least((chunk + 1) * piece_most, part_most), in_round);
  return (span){skip + first, last - first};
}

/* In the first half of the steps sums are formed on the way, in the second the finished ones go round. */
static helio_status reduce_step(tour *t, size_t round, uint32_t step) {
  const group_rank *before = &t->c->group->rank[t->before];
  helio_place from = step == 0 ? before->source : before->target;
  bool adds = step < t->ranks - 1;
  uint32_t part = (t->rank + 2 * t->ranks - 1 - step) % t->ranks;
  helio_status status = HELIO_OK;
  for (uint32_t chunk = 0; chunk < t->chunks && !status; chunk++) {
    span s = reduce_span(t, round, part, chunk);
    piece p = {.first = step == 0,
               .from = at(from, s.first, t->element),
               .into = at(t->call->target, s.first, t->element),
               .count = s.count};
    if (adds) p.own = at(t->call->source, s.first, t->element);
    status = pass(t, &p);
  }
  return status;
}

helio_status ring_all_reduce(helio_communicator *c, const helio_collective_call *call) {
  tour t;
  helio_status status = begin(&t, c, GROUP_ALL_REDUCE, call);
  if (status) return status;
  if (t.ranks == 1) {
    status = keep_own(&t, call->target, call->source, call->count);
    return status ? status : end(&t);
  }
  size_t rounds = divide(&t, (call->count + t.ranks - 1) / t.ranks);
  for (size_t round = 0; round < rounds && !status; round++) {
    for (uint32_t step = 0; step < 2 * (t.ranks - 1) && !status; step++) status = reduce_step(&t, round, step);
  }
  return status ? status : end(&t);
}

/* ---- all_gather ---- */

static helio_status gather_step(tour *t, size_t round, uint32_t step, const size_t *counts) {
  const group_rank *before = &t->c->group->rank[t->before];
  uint32_t part = (t->rank + t->ranks - 1 - step) % t->ranks;
  size_t skip = 0;
  for (uint32_t i = 0; i < part; i++) skip += counts[i];
  helio_status status = HELIO_OK;
  for (uint32_t chunk = 0; chunk < t->chunks && !status; chunk++) {
    size_t first = least((round * t->chunks + chunk) * t->chunk, counts[part]);
    piece p = {.first = step == 0,
               .from = step == 0 ? at(before->source, first, t->element) : at(before->target, skip + first, t->element),
               .into = at(t->call->target, skip + first, t->element),
               .count = least(t->chunk, counts[part] - first)};
    status = pass(t, &p);
  }
  return status;
}

helio_status ring_all_gather(helio_communicator *c, const helio_collective_call *call) {
  tour t;
  helio_status status = begin(&t, c, GROUP_ALL_GATHER, call);
  if (status) return status;
  const size_t *counts = c->group->rank[c->rank].counts;
  size_t longest = 0, skip = 0;
  for (uint32_t i = 0; i < t.ranks; i++) {
    if (counts[i] > longest) longest = counts[i];
    if (i < t.rank) skip += counts[i];
  }
  status = keep_own(&t, at(call->target, skip, t.element), call->source, counts[t.rank]);
  size_t rounds = divide(&t, longest);
  for (size_t round = 0; round < rounds && !status; round++) {
    for (uint32_t step = 0; step + 1 < t.ranks && !status; step++) status = gather_step(&t, round, step, counts);
  }
  return status ? status : end(&t);
}

/* ---- broadcast ---- */

/* From the root on, each rank draws what the one before has just drawn. The root draws nothing. */
helio_status ring_broadcast(helio_communicator *c, const helio_collective_call *call) {
  tour t;
  helio_status status = begin(&t, c, GROUP_BROADCAST, call);
  if (status) return status;
  const group_rank *before = &c->group->rank[t.before];
  bool from_root = t.before == call->root, is_root = t.rank == call->root;
  helio_place from = from_root ? before->source : before->target;
  if (is_root) status = keep_own(&t, call->target, call->source, call->count);
  for (size_t first = 0; first < call->count && !status; first += t.chunk) {
    piece p = {.first = from_root,
               .from = at(from, first, t.element),
               .into = at(call->target, first, t.element),
               .count = least(t.chunk, call->count - first)};
    status = pass(&t, is_root ? NULL : &p);
  }
  return status ? status : end(&t);
}
