/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this plugin share. */
#ifndef RING_H
#define RING_H

#include "group.h"

enum {
  RING_STEP_CHUNKS = 8,              /* pieces of a step, at the most */
  RING_SLOTS = 2 * RING_STEP_CHUNKS, /* events of a rank for pieces: more than are ever unseen */
};

/* A rank as its neighbours see it. */
typedef struct ring_rank {
  const helio_member *member;
  bool synchronous;
  size_t chunk_bytes;
  helio_buffer *incoming;          /* a piece on its way into a sum */
  helio_event *start, *end;        /* of a call */
  helio_event *passed[RING_SLOTS]; /* of a call's pieces in turn */
} ring_rank;

static inline ring_rank *ring_rank_of(const helio_communicator *c, uint32_t rank) {
  return c->group->rank[rank].own;
}

/* The calls, for the table. */
helio_status ring_all_reduce(helio_communicator *c, const helio_collective_call *call);
helio_status ring_broadcast(helio_communicator *c, const helio_collective_call *call);
helio_status ring_all_gather(helio_communicator *c, const helio_collective_call *call);

#endif
