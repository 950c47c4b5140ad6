/* SPDX-License-Identifier: Apache-2.0 */
/* What the attendant looks after: failures that the library has noticed, and how far the devices have come. A rank
 * whose lock is held is making a call: it is left alone until the next time. */
#include <stdio.h>
#include <string.h>

#include "nccl.h"

/* ---- failures ---- */

const helio_member *nccl_member_of(group *g, uint32_t rank) {
  pthread_mutex_lock(&g->lock);
  const helio_member *member = g->rank[rank].member;
  pthread_mutex_unlock(&g->lock);
  return member;
}

bool nccl_is_lost(group *g, uint32_t rank) {
  const helio_member *member = nccl_member_of(g, rank);
  uint64_t available, total;
  return member && member->devices->memory_info(member->device, &available, &total) == HELIO_DEVICE_FAILURE;
}

void nccl_rank_failed(group *g, uint32_t rank, abi_enum result, bool is_device) {
  char text[300], message[500];
  nccl_text(result, text, sizeof text);
  snprintf(message, sizeof message, "%s of rank %u failed in a collective: %s", is_device ? "the device" : "the part",
           rank, text);
  group_break(g, is_device ? rank : GROUP_NOBODY, is_device ? HELIO_ABORTED : nccl_status(result), message);
}

abi_enum nccl_late_error(nccl_rank *rank) {
  abi_enum error = NCCL_ABI_SUCCESS, answer = NCCL_ABI_SUCCESS;
  struct ncclComm *handle = atomic_load(&rank->handle);
  if (handle) answer = nccl.ncclCommGetAsyncError(handle, &error);
  if (answer) error = answer;
  return error == NCCL_ABI_IN_PROGRESS ? (abi_enum)NCCL_ABI_SUCCESS : error;
}

static abi_enum ask_rank(nccl_rank *rank) {
  if (pthread_mutex_trylock(&rank->lock) != 0) return NCCL_ABI_SUCCESS;
  abi_enum error = nccl_late_error(rank);
  pthread_mutex_unlock(&rank->lock);
  return error;
}

/* Some ranks are told that another one failed before that one is. It is waited for, for a while. */
static void wait_for_culprit(nccl_team *team) {
  int64_t now = atomic_load(&team->clock);
  if (team->remote_since < 0) team->remote_since = now;
  if (now - team->remote_since < 1000000) return;
  group_break(team->group, GROUP_NOBODY, HELIO_ABORTED, "another rank has failed");
}

void nccl_ask(nccl_team *team) {
  bool remote = false, failed = false;
  if (pthread_mutex_trylock(&team->looking) != 0) return;
  for (uint32_t i = 0; i < team->group->rank_count && !failed; i++) {
    abi_enum error = ask_rank(&team->ranks[i]);
    remote = remote || error == NCCL_ABI_REMOTE_ERROR;
    failed = error && error != NCCL_ABI_REMOTE_ERROR;
    if (failed) nccl_rank_failed(team->group, i, error, error == NCCL_ABI_UNHANDLED_CUDA_ERROR);
  }
  if (remote && !failed) wait_for_culprit(team);
  pthread_mutex_unlock(&team->looking);
}

/* ---- how far the devices have come ---- */

static bool is_before(uint32_t one, uint32_t other) {
  return (int32_t)(one - other) < 0;
}

static bool reached(const group *g, uint32_t rank, uint32_t number) {
  return !is_before(atomic_load(&g->rank[rank].progress), number);
}

/* The oldest call that the device has not done, as far as the slots tell; NULL: none. */
static nccl_slot *oldest(nccl_rank *rank) {
  nccl_slot *found = NULL;
  for (int i = 0; i < NCCL_SLOTS; i++) {
    nccl_slot *slot = &rank->slots[i];
    if (!slot->number || !is_before(rank->done, slot->number)) continue;
    if (!found || is_before(slot->number, found->number)) found = slot;
  }
  return found;
}

/* False: the device has failed. */
static bool follow(nccl_team *team, const helio_member *member, nccl_rank *rank) {
  int64_t now = atomic_load(&team->clock);
  helio_status status = HELIO_OK;
  for (nccl_slot *slot = oldest(rank); slot && !status; slot = oldest(rank)) {
    if (!slot->has_begun) status = member->streams->event_query(member->device, slot->start);
    if (status) break;
    if (!slot->has_begun) slot->begun = now;
    slot->has_begun = true;
    status = member->streams->event_query(member->device, slot->end);
    if (!status) rank->done = slot->number;
  }
  return !status || status == HELIO_NOT_READY;
}

static void follow_rank(nccl_team *team, uint32_t number) {
  group *g = team->group;
  nccl_rank *rank = &team->ranks[number];
  char message[300];
  bool well = true;
  if (pthread_mutex_trylock(&rank->lock) != 0) return;
  const helio_member *member = nccl_member_of(g, number); /* who leaves needs the rank's lock before */
  if (member && atomic_load(&rank->handle)) well = follow(team, member, rank);
  if (!well) snprintf(message, sizeof message, "rank %u (%s) has failed", number, member->name);
  pthread_mutex_unlock(&rank->lock);
  if (!well) group_break(g, number, HELIO_ABORTED, message);
}

/* ---- time ---- */

/* What a rank waits in. */
typedef struct waiting {
  uint32_t number; /* of the call; 0: it waits for nobody */
  int64_t made, begun;
  bool has_begun;
} waiting;

static waiting waiting_of(nccl_rank *rank) {
  waiting found = {0};
  if (pthread_mutex_trylock(&rank->lock) != 0) {
    found.number = atomic_load(&rank->calling);
    found.made = atomic_load(&rank->calling_since);
    return found;
  }
  const nccl_slot *slot = oldest(rank);
  if (slot) found = (waiting){slot->number, slot->made, slot->begun, slot->has_begun};
  pthread_mutex_unlock(&rank->lock);
  return found;
}

/* Has the rank's device not come to the call yet? */
static bool is_late(nccl_team *team, uint32_t rank, uint32_t number) {
  waiting other = waiting_of(&team->ranks[rank]);
  return other.number && !other.has_begun && !is_before(number, other.number);
}

/* "1, 3": ranks whose threads, or else whose devices, did not come. How many. */
static int list_late(nccl_team *team, uint32_t number, bool devices, char *text, size_t size) {
  const group *g = team->group;
  size_t length = 0;
  int count = 0;
  for (uint32_t i = 0; i < g->rank_count && length < size; i++) {
    if (devices ? !is_late(team, i, number) : reached(g, i, number)) continue;
    length += (size_t)snprintf(text + length, size - length, "%s%u", count++ ? ", " : "", i);
  }
  return count;
}

static void time_is_up(nccl_team *team, uint32_t number, bool threads_came) {
  group *g = team->group;
  double seconds = g->timeout_ms / 1000.0;
  char late[200] = "", message[400];
  if (!threads_came) {
    list_late(team, number, false, late, sizeof late);
    snprintf(message, sizeof message, "of %u ranks these did not come within %.3g s: %s", g->rank_count, seconds, late);
  } else if (list_late(team, number, true, late, sizeof late)) {
    snprintf(message, sizeof message, "of %u ranks the devices of these did not come within %.3g s: %s", g->rank_count,
             seconds, late);
  } else {
    snprintf(message, sizeof message, "a collective of %u ranks has not ended within %.3g s, though all have come",
             g->rank_count, seconds);
  }
  group_break(g, GROUP_NOBODY, HELIO_TIMED_OUT, message);
}

/* Threads are waited for from the call on; devices only when this one has come to the call, for they may have much to
 * do before. */
static void check_time(nccl_team *team, uint32_t rank) {
  group *g = team->group;
  int64_t now = atomic_load(&team->clock), most = (int64_t)g->timeout_ms * 1000;
  waiting self = waiting_of(&team->ranks[rank]);
  if (!self.number || now - self.made <= most) return;
  bool came = true;
  for (uint32_t i = 0; i < g->rank_count; i++) came = came && reached(g, i, self.number);
  if (!came || (self.has_begun && now - self.begun > most / 2)) time_is_up(team, self.number, came);
}

bool nccl_watch(nccl_team *team) {
  const group *g = team->group;
  bool busy = false;
  for (uint32_t i = 0; i < g->rank_count; i++) {
    if (!group_is_broken(g)) follow_rank(team, i);
    busy = busy || waiting_of(&team->ranks[i]).number;
  }
  for (uint32_t i = 0; busy && g->timeout_ms && i < g->rank_count && !group_is_broken(g); i++) check_time(team, i);
  return busy;
}
