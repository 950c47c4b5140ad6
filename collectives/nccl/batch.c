/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that drives several ranks: what it asks for between group_start and group_end is done at the end, the
 * joining first. Such groups nest, the outermost counts. */
#include <string.h>

#include "nccl.h"

typedef struct batch {
  unsigned depth;
  helio_plugin_state *state;
  helio_communicator **joining;
  nccl_part *parts;
  size_t joining_count, part_count;
} batch;

static _Thread_local batch open_batch;

bool nccl_batch_is_open(void) {
  return open_batch.depth > 0;
}

helio_status nccl_batch_start(helio_plugin_state *state) {
  if (open_batch.depth > 0 && open_batch.state != state) {
    return state->host->fail(state->host, HELIO_WRONG_STATE, "this thread has a group open in another " PLUGIN_TITLE);
  }
  open_batch.depth++;
  open_batch.state = state;
  return HELIO_OK;
}

/* Room for one more; there is always room up to the next power of two. NULL: no memory. */
static void *grow(const helio_host *host, void *array, size_t count, size_t size) {
  if (count & (count - 1)) return array;
  void *larger = host->allocate(host, (count ? 2 * count : 1) * size);
  if (larger && count) memcpy(larger, array, count * size);
  if (larger && array) host->release(host, array);
  return larger;
}

static helio_status no_memory(const helio_host *host) {
  return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a group of calls");
}

helio_status nccl_batch_add_join(helio_communicator *c) {
  const helio_host *host = open_batch.state->host;
  void *room = grow(host, open_batch.joining, open_batch.joining_count, sizeof *open_batch.joining);
  if (!room) return no_memory(host);
  open_batch.joining = room;
  open_batch.joining[open_batch.joining_count++] = c;
  return HELIO_OK;
}

/* The ranks' counts need not stay until the end of the batch. */
helio_status nccl_batch_add_part(const nccl_part *part) {
  const helio_host *host = open_batch.state->host;
  size_t bytes = part->call.counts ? part->communicator->group->rank_count * sizeof(size_t) : 0;
  size_t *counts = bytes ? host->allocate(host, bytes) : NULL;
  void *room = bytes && !counts ? NULL : grow(host, open_batch.parts, open_batch.part_count, sizeof *open_batch.parts);
  if (!room) {
    if (counts) host->release(host, counts);
    return group_fail(part->communicator, no_memory(host));
  }
  open_batch.parts = room;
  nccl_part *kept = &open_batch.parts[open_batch.part_count++];
  *kept = *part;
  if (bytes) memcpy(counts, part->call.counts, bytes);
  kept->call.counts = counts;
  return HELIO_OK;
}

static void batch_free(batch *b) {
  const helio_host *host = b->state->host;
  for (size_t i = 0; i < b->part_count; i++) {
    if (b->parts[i].call.counts) host->release(host, (void *)b->parts[i].call.counts);
  }
  if (b->parts) host->release(host, b->parts);
  if (b->joining) host->release(host, b->joining);
}

helio_status nccl_batch_end(helio_plugin_state *state) {
  const helio_host *host = state->host;
  if (open_batch.depth == 0) return host->fail(host, HELIO_WRONG_STATE, "this thread has no group open");
  if (--open_batch.depth > 0) return HELIO_OK;
  batch whole = open_batch;
  open_batch = (batch){0};
  helio_status status = HELIO_OK;
  for (size_t i = 0; i < whole.joining_count && !status; i++) {
    status = group_await_seats(whole.joining[i]);
    if (!status) status = nccl_team_await(whole.joining[i]);
  }
  if (!status && whole.part_count > 0) status = nccl_hand_over(whole.parts, whole.part_count);
  batch_free(&whole);
  return status;
}
