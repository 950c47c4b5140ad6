/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from and into pinned memory, watched until the host knows that they are done: not until they are, which the
 * seed decides. A copy that reads takes a sum of the bytes when it is queued, which must still be right when it is done
 * and when the host has waited for it. One that writes fills the bytes with 0xFF, and they stay so until the host has
 * waited: who looks too early sees it, each time. */
#include "pinned.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WATCHED = 4096 };

struct sim_transfer {
  sim_pinned *owner;
  char *address;
  size_t bytes;
  bool writes;
  bool checked; /* false: another pending copy touches the same bytes, so that nothing can be said */
  bool opened;  /* is done, or is being done */
  bool done;    /* but the host may not know it */
  uint64_t sum; /* of one that reads */
  char *held;   /* what one that writes has written, which nobody can see yet */
  sim_stream *stream;
  uint64_t sequence;
  sim_origin queued;
  sim_transfer *next;
};

static sim_transfer *oldest, **behind_newest = &oldest;
static int watched;

static void check(const sim_transfer *transfer) {
  if (!transfer->checked) return;
  bool same = transfer->writes ? sim_is_filled(transfer->address, transfer->address + transfer->bytes, SIM_FRESH)
                               : transfer->sum == sim_sum(transfer->address, transfer->bytes);
  if (!same)
    sim_violation_of(&transfer->queued, "queued in", "pinned memory in use",
                     "%zu bytes of pinned memory were changed by the host while a copy %s them was pending (%s)",
                     transfer->bytes, transfer->writes ? "into" : "from", transfer->queued.call);
}

static void add(sim_transfer *transfer) {
  *behind_newest = transfer;
  behind_newest = &transfer->next;
  watched++;
}

static void end(sim_transfer *transfer) {
  sim_transfer **link = &oldest;
  while (*link != transfer) link = &(*link)->next;
  *link = transfer->next;
  if (behind_newest == &transfer->next) behind_newest = link;
  watched--;
  free(transfer->held);
  free(transfer);
}

/* One that is done is over: what it has written can be seen. */
static void settle(sim_transfer *transfer) {
  check(transfer);
  if (transfer->held) memcpy(transfer->address, transfer->held, transfer->bytes);
  end(transfer);
}

/* Two copies that read the same bytes do not disturb each other. */
static bool disturb(const sim_transfer *one, const sim_transfer *other) {
  return one != other && (one->writes || other->writes) &&
         sim_overlap(one->address, one->bytes, other->address, other->bytes);
}

/* Those that are done and touch the same bytes: the order of the streams has them before this one. */
static void settle_before(const sim_transfer *transfer) {
  sim_transfer *next;
  for (sim_transfer *other = oldest; other; other = next) {
    next = other->next;
    if (other->done && disturb(transfer, other)) settle(other);
  }
}

static bool is_disturbed(const sim_transfer *transfer) {
  for (const sim_transfer *other = oldest; other; other = other->next)
    if (disturb(transfer, other)) return true;
  return false;
}

/* A program may never wait, nor touch the memory again. */
static void settle_oldest(void) {
  sim_transfer *transfer = oldest;
  while (transfer && !transfer->done) transfer = transfer->next;
  if (transfer) settle(transfer);
}

sim_transfer *sim_transfer_begin(void *address, size_t bytes, bool writes) {
  sim_transfer *transfer = calloc(1, sizeof *transfer);
  if (!transfer) return NULL;
  sim_lock();
  *transfer = (sim_transfer){.owner = sim_pinned_find(address), .address = address, .bytes = bytes, .writes = writes};
  sim_remember_origin(&transfer->queued);
  settle_before(transfer);
  if (watched >= MOST_WATCHED) settle_oldest();
  transfer->checked = !is_disturbed(transfer);
  if (transfer->checked && writes) memset(address, SIM_FRESH, bytes);
  if (transfer->checked && !writes) transfer->sum = sim_sum(address, bytes);
  add(transfer);
  sim_unlock();
  return transfer;
}

void sim_transfer_place(sim_transfer *transfer, sim_stream *stream, uint64_t sequence) {
  transfer->stream = stream;
  transfer->sequence = sequence;
}

void *sim_transfer_open(sim_transfer *transfer) {
  sim_lock();
  transfer->opened = true;
  if (!transfer->checked) settle_before(transfer);
  sim_unlock();
  check(transfer);
  if (transfer->checked && transfer->writes) transfer->held = malloc(transfer->bytes);
  return transfer->held ? transfer->held : transfer->address;
}

static bool is_known(const sim_transfer *transfer) {
  return sim_past_has(sim_host_past(), sim_stream_line(transfer->stream), transfer->sequence);
}

void sim_transfer_end(sim_transfer *transfer) {
  if (!transfer) return;
  sim_lock();
  transfer->done = true;
  if (!transfer->opened || sim_stream_device(transfer->stream)->health != SIM_OK)
    end(transfer);
  else if (is_known(transfer))
    settle(transfer);
  else if (transfer->writes && !transfer->held)
    transfer->checked = false; /* the bytes are there */
  sim_unlock();
}

void sim_transfers_settle(void) {
  sim_transfer *next;
  for (sim_transfer *transfer = oldest; transfer; transfer = next) {
    next = transfer->next;
    if (transfer->done && is_known(transfer)) settle(transfer);
  }
}

void sim_transfers_drop(const sim_device *device) {
  sim_transfer *next;
  for (sim_transfer *transfer = oldest; transfer; transfer = next) {
    next = transfer->next;
    if (transfer->done && sim_stream_device(transfer->stream) == device) end(transfer);
  }
}

bool sim_transfers_tell(const sim_pinned *owner) {
  const sim_transfer *transfer = oldest;
  while (transfer && transfer->owner != owner) transfer = transfer->next;
  if (!transfer) return false;
  sim_violation("pinned memory in use", "pinned memory of %zu bytes is freed while a copy %s it is pending (%s)",
                owner->bytes, transfer->writes ? "into" : "from", transfer->queued.call);
  return true;
}
