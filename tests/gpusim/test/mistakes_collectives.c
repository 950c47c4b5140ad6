/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes with collectives: two ranks on two devices, driven by one thread as a backend does it. */
#include "mistakes.h"

#include "ranks.h"

#include <string.h>

enum { RANKS = 2, COUNT = 100, BYTES = COUNT * sizeof(float) };

typedef struct rank {
  struct ncclComm *communicator;
  void *stream;
  char *send, *receive; /* each with room for RANKS times BYTES */
} rank;

static rank ranks[RANKS];

static void open_ranks(void) {
  open_devices(false, RANKS);
  struct ncclComm *communicators[RANKS];
  NEED(ncclCommInitAll(communicators, RANKS, NULL));
  for (int i = 0; i < RANKS; i++)
    ranks[i] = (rank){communicators[i], make_stream(i), allocate(i, RANKS * BYTES), allocate(i, RANKS * BYTES)};
}

static void finish(void) {
  for (int i = 0; i < RANKS; i++) NEED(wait_for_stream(i, ranks[i].stream));
}

static void close_ranks(void) {
  for (int i = 0; i < RANKS; i++) {
    if (ranks[i].communicator) NEED(ncclCommDestroy(ranks[i].communicator));
    if (ranks[i].send) NEED(release(i, ranks[i].send));
    NEED(release(i, ranks[i].receive));
    end_stream(i, ranks[i].stream);
  }
  close_devices();
}

static abi_enum all_reduce(int i) {
  return ncclAllReduce(ranks[i].send, ranks[i].receive, COUNT, NCCL_ABI_FLOAT32, NCCL_ABI_SUM, ranks[i].communicator,
                       ranks[i].stream);
}

static void all_reduce_together(void) {
  NEED(ncclGroupStart());
  for (int i = 0; i < RANKS; i++) NEED(all_reduce(i));
  NEED(ncclGroupEnd());
}

/* The gradients are made on one stream and summed on another. */
static void not_waited_for(bool wrong) {
  open_ranks();
  void *streams[RANKS];
  const float zeros[COUNT] = {0};
  for (int i = 0; i < RANKS; i++) {
    streams[i] = make_stream(i);
    copy_in(i, ranks[i].send, zeros, BYTES, streams[i]);
    if (!wrong) order_streams(i, streams[i], ranks[i].stream);
  }
  all_reduce_together();
  finish();
  for (int i = 0; i < RANKS; i++) {
    NEED(wait_for_stream(i, streams[i]));
    end_stream(i, streams[i]);
  }
  close_ranks();
}

/* Ranks that do not agree: one group, in which the second rank asks for something else. */

static void different_counts(bool wrong) {
  open_ranks();
  NEED(ncclGroupStart());
  NEED(all_reduce(0));
  NEED(ncclAllReduce(ranks[1].send, ranks[1].receive, wrong ? COUNT - 1 : COUNT, NCCL_ABI_FLOAT32, NCCL_ABI_SUM,
                     ranks[1].communicator, ranks[1].stream));
  NEED(ncclGroupEnd());
  finish();
  close_ranks();
}

static void different_types(bool wrong) {
  open_ranks();
  NEED(ncclGroupStart());
  NEED(all_reduce(0));
  NEED(ncclAllReduce(ranks[1].send, ranks[1].receive, COUNT, wrong ? NCCL_ABI_INT32 : NCCL_ABI_FLOAT32, NCCL_ABI_SUM,
                     ranks[1].communicator, ranks[1].stream));
  NEED(ncclGroupEnd());
  finish();
  close_ranks();
}

static void different_reductions(bool wrong) {
  open_ranks();
  NEED(ncclGroupStart());
  NEED(all_reduce(0));
  NEED(ncclAllReduce(ranks[1].send, ranks[1].receive, COUNT, NCCL_ABI_FLOAT32, wrong ? NCCL_ABI_MAXIMUM : NCCL_ABI_SUM,
                     ranks[1].communicator, ranks[1].stream));
  NEED(ncclGroupEnd());
  finish();
  close_ranks();
}

static void different_roots(bool wrong) {
  open_ranks();
  NEED(ncclGroupStart());
  for (int i = 0; i < RANKS; i++)
    NEED(ncclBroadcast(ranks[i].send, ranks[i].receive, COUNT, NCCL_ABI_FLOAT32, wrong ? i : 0, ranks[i].communicator,
                       ranks[i].stream));
  NEED(ncclGroupEnd());
  finish();
  close_ranks();
}

static void different_calls(bool wrong) {
  open_ranks();
  NEED(ncclGroupStart());
  NEED(all_reduce(0));
  if (wrong)
    NEED(ncclBroadcast(ranks[1].send, ranks[1].receive, COUNT, NCCL_ABI_FLOAT32, 0, ranks[1].communicator,
                       ranks[1].stream));
  else
    NEED(all_reduce(1));
  NEED(ncclGroupEnd());
  finish();
  close_ranks();
}

/* Two collectives whose order differs: each rank has both, one of them the other way round. */
static void different_order(bool wrong) {
  open_ranks();
  for (int step = 0; step < 2; step++) {
    NEED(ncclGroupStart());
    for (int i = 0; i < RANKS; i++) {
      int bucket = wrong && i == 1 ? 1 - step : step;
      NEED(ncclAllReduce(ranks[i].send, ranks[i].receive, COUNT - (size_t)bucket, NCCL_ABI_FLOAT32, NCCL_ABI_SUM,
                         ranks[i].communicator, ranks[i].stream));
    }
    NEED(ncclGroupEnd());
  }
  finish();
  close_ranks();
}

/* Groups */

static void ungrouped(bool wrong) {
  open_ranks();
  if (!wrong) all_reduce_together();
  for (int i = 0; i < RANKS && wrong; i++) NEED(all_reduce(i));
  finish();
  close_ranks();
}

static void group_not_ended(bool wrong) {
  open_ranks();
  all_reduce_together();
  NEED(ncclGroupStart());
  if (!wrong) NEED(ncclGroupEnd());
  finish();
  close_ranks();
}

static void group_ended_twice(bool wrong) {
  open_ranks();
  all_reduce_together();
  if (wrong) ncclGroupEnd();
  finish();
  close_ranks();
}

static void a_rank_is_missing(bool wrong) {
  open_ranks();
  if (wrong)
    NEED(all_reduce(0));
  else
    all_reduce_together();
  wait_for_stream(0, ranks[0].stream);
  if (wrong) return; /* the device is lost by now */
  finish();
  close_ranks();
}

/* Buffers */

static void overlapping_buffers(bool wrong) {
  open_ranks();
  NEED(ncclGroupStart());
  for (int i = 0; i < RANKS; i++)
    (void)ncclAllReduce(ranks[i].send, ranks[i].send + (wrong ? sizeof(float) : 0), COUNT, NCCL_ABI_FLOAT32,
                        NCCL_ABI_SUM, ranks[i].communicator, ranks[i].stream);
  (void)ncclGroupEnd();
  finish();
  close_ranks();
}

/* In place, but where the share of another rank is. */
static void gathered_in_the_wrong_place(bool wrong) {
  open_ranks();
  NEED(ncclGroupStart());
  for (int i = 0; i < RANKS; i++)
    (void)ncclAllGather(ranks[i].receive + (wrong ? 0 : i * BYTES), ranks[i].receive, COUNT, NCCL_ABI_FLOAT32,
                        ranks[i].communicator, ranks[i].stream);
  (void)ncclGroupEnd();
  finish();
  close_ranks();
}

static void host_buffer(bool wrong) {
  static float host[COUNT];
  open_ranks();
  NEED(ncclGroupStart());
  for (int i = 0; i < RANKS; i++)
    (void)ncclAllReduce(wrong ? (void *)host : ranks[i].send, ranks[i].receive, COUNT, NCCL_ABI_FLOAT32, NCCL_ABI_SUM,
                        ranks[i].communicator, ranks[i].stream);
  (void)ncclGroupEnd();
  finish();
  close_ranks();
}

static void short_buffer(bool wrong) {
  open_ranks();
  NEED(ncclGroupStart());
  for (int i = 0; i < RANKS; i++)
    (void)ncclAllGather(ranks[i].send, ranks[i].receive, wrong ? COUNT + 1 : COUNT, NCCL_ABI_FLOAT32,
                        ranks[i].communicator, ranks[i].stream);
  (void)ncclGroupEnd();
  finish();
  close_ranks();
}

static void buffer_of_another_device(bool wrong) {
  open_ranks();
  NEED(ncclGroupStart());
  for (int i = 0; i < RANKS; i++)
    (void)ncclAllReduce(ranks[wrong ? 0 : i].send, ranks[i].receive, COUNT, NCCL_ABI_FLOAT32, NCCL_ABI_SUM,
                        ranks[i].communicator, ranks[i].stream);
  (void)ncclGroupEnd();
  finish();
  close_ranks();
}

static void freed_buffer(bool wrong) {
  open_ranks();
  if (wrong) {
    NEED(release(0, ranks[0].send));
    (void)all_reduce(0);
    ranks[0].send = NULL;
  } else {
    all_reduce_together();
  }
  finish();
  close_ranks();
}

/* Communicators and streams */

static void stream_of_another_device(bool wrong) {
  open_ranks();
  NEED(ncclGroupStart());
  for (int i = 0; i < RANKS; i++)
    (void)ncclAllReduce(ranks[i].send, ranks[i].receive, COUNT, NCCL_ABI_FLOAT32, NCCL_ABI_SUM, ranks[i].communicator,
                        ranks[wrong ? 0 : i].stream);
  (void)ncclGroupEnd();
  finish();
  close_ranks();
}

static void destroyed_communicator(bool wrong) {
  open_ranks();
  all_reduce_together();
  finish();
  struct ncclComm *communicator = ranks[0].communicator;
  if (wrong) {
    NEED(ncclCommDestroy(communicator));
    ranks[0].communicator = NULL;
  }
  int count;
  (void)ncclCommCount(communicator, &count);
  close_ranks();
}

static void destroyed_while_working(bool wrong) {
  open_ranks();
  all_reduce_together();
  if (!wrong) finish();
  for (int i = 0; i < RANKS; i++) {
    NEED(ncclCommDestroy(ranks[i].communicator));
    ranks[i].communicator = NULL;
  }
  finish();
  close_ranks();
}

static void leaked_communicator(bool wrong) {
  open_ranks();
  all_reduce_together();
  finish();
  if (wrong) ranks[1].communicator = NULL;
  close_ranks();
}

/* Making communicators by rank */

static nccl_abi_unique_id make_id(void) {
  nccl_abi_unique_id id;
  NEED(ncclGetUniqueId(&id));
  return id;
}

/* Both ranks by one thread; returns the last status. */
static abi_enum join(nccl_abi_unique_id id, bool grouped, struct ncclComm **communicators) {
  abi_enum status = NCCL_ABI_SUCCESS;
  if (grouped) NEED(ncclGroupStart());
  for (int i = 0; i < RANKS && status == NCCL_ABI_SUCCESS; i++) {
    use_device(i);
    status = ncclCommInitRank(&communicators[i], RANKS, id, i);
  }
  if (!grouped) return status;
  abi_enum ended = ncclGroupEnd();
  return status == NCCL_ABI_SUCCESS ? ended : status;
}

static void destroy(struct ncclComm **communicators) {
  for (int i = 0; i < RANKS; i++) NEED(ncclCommDestroy(communicators[i]));
}

/* What there is of them; where it is not grouped, the second rank waits for its turn. */
static void abort_made(struct ncclComm **communicators, bool grouped) {
  if (grouped) NEED(ncclGroupStart());
  for (int i = 0; i < RANKS; i++) NEED(ncclCommAbort(communicators[i]));
  if (grouped) NEED(ncclGroupEnd());
}

static void joined_one_by_one(bool wrong) {
  struct ncclComm *communicators[RANKS] = {NULL, NULL};
  open_devices(false, RANKS);
  if (join(make_id(), !wrong, communicators) == NCCL_ABI_SUCCESS)
    destroy(communicators);
  else
    abort_made(communicators, true);
  close_devices();
}

static void id_used_twice(bool wrong) {
  struct ncclComm *first[RANKS], *second[RANKS];
  open_devices(false, RANKS);
  nccl_abi_unique_id id = make_id();
  NEED(join(id, true, first));
  if (join(wrong ? id : make_id(), true, second) == NCCL_ABI_SUCCESS) destroy(second);
  destroy(first);
  close_devices();
}

static void unknown_id(bool wrong) {
  struct ncclComm *communicators[RANKS];
  open_devices(false, RANKS);
  nccl_abi_unique_id id = make_id();
  if (wrong) memset(&id, 7, sizeof id);
  if (join(id, true, communicators) == NCCL_ABI_SUCCESS) destroy(communicators);
  close_devices();
}

static void rank_taken_twice(bool wrong) {
  struct ncclComm *communicators[RANKS] = {NULL, NULL};
  open_devices(false, RANKS);
  nccl_abi_unique_id id = make_id();
  NEED(ncclGroupStart());
  for (int i = 0; i < RANKS; i++) {
    use_device(i);
    (void)ncclCommInitRank(&communicators[i], RANKS, id, wrong ? 0 : i);
  }
  if (ncclGroupEnd() == NCCL_ABI_SUCCESS)
    destroy(communicators);
  else
    abort_made(communicators, true);
  close_devices();
}

static void used_before_the_end_of_its_group(bool wrong) {
  struct ncclComm *communicators[RANKS];
  open_devices(false, RANKS);
  nccl_abi_unique_id id = make_id();
  int count;
  NEED(ncclGroupStart());
  for (int i = 0; i < RANKS; i++) {
    use_device(i);
    NEED(ncclCommInitRank(&communicators[i], RANKS, id, i));
    if (wrong) (void)ncclCommCount(communicators[i], &count);
  }
  NEED(ncclGroupEnd());
  NEED(ncclCommCount(communicators[0], &count));
  destroy(communicators);
  close_devices();
}

/* Aborts */

static void aborted_one_by_one(bool wrong) {
  struct ncclComm *communicators[RANKS];
  open_devices(false, RANKS);
  NEED(join(make_id(), true, communicators));
  abort_made(communicators, !wrong);
  close_devices();
}

/* The version is one that does not know it, and the right way then is a rank alone. */
static void aborted_in_a_group_of_old(bool wrong) {
  struct ncclComm *communicators[RANKS];
  open_devices(false, RANKS);
  NEED(join(make_id(), true, communicators));
  if (wrong) NEED(ncclGroupStart());
  NEED(ncclCommAbort(communicators[0]));
  if (wrong) NEED(ncclGroupEnd());
  NEED(ncclCommDestroy(communicators[1]));
  close_devices();
}

static void aborted_twice(bool wrong) {
  struct ncclComm *communicators[RANKS];
  open_devices(false, RANKS);
  NEED(join(make_id(), true, communicators));
  NEED(ncclGroupStart());
  NEED(ncclCommAbort(communicators[0]));
  NEED(ncclCommAbort(communicators[wrong ? 0 : 1]));
  NEED(ncclGroupEnd());
  close_devices();
}

/* One rank of two cannot join, and nobody gives back what the other got. */
static void left_behind(bool wrong) {
  struct ncclComm *communicators[RANKS] = {NULL, NULL};
  open_devices(false, RANKS);
  if (join(make_id(), true, communicators) && !wrong) abort_made(communicators, true);
  close_devices();
}

#define SETTINGS "GPUSIM_CUDA=2 GPUSIM_HIP=0"

const mistake collective_mistakes[] = {
    {"collective-not-waited-for", "missing wait", not_waited_for, SETTINGS},
    {"collective-counts", "mismatched collective", different_counts, SETTINGS},
    {"collective-types", "mismatched collective", different_types, SETTINGS},
    {"collective-reductions", "mismatched collective", different_reductions, SETTINGS},
    {"collective-roots", "mismatched collective", different_roots, SETTINGS},
    {"collective-calls", "mismatched collective", different_calls, SETTINGS},
    {"collective-order", "mismatched collective", different_order, SETTINGS},
    {"collective-ungrouped", "ungrouped collective", ungrouped, SETTINGS},
    {"collective-group-not-ended", "leak: a ncclGroup", group_not_ended, SETTINGS},
    {"collective-group-ended-twice", "group ended twice", group_ended_twice, SETTINGS},
    {"collective-rank-missing", "waits for ever", a_rank_is_missing, SETTINGS " GPUSIM_PATIENCE=1"},
    {"collective-overlap", "overlapping buffers", overlapping_buffers, SETTINGS},
    {"collective-wrong-place", "overlapping buffers", gathered_in_the_wrong_place, SETTINGS},
    {"collective-host-buffer", "not device memory", host_buffer, SETTINGS},
    {"collective-short-buffer", "out of bounds", short_buffer, SETTINGS},
    {"collective-buffer-device", "wrong device", buffer_of_another_device, SETTINGS},
    {"collective-freed-buffer", "use after free", freed_buffer, SETTINGS},
    {"collective-stream-device", "wrong device", stream_of_another_device, SETTINGS},
    {"collective-use-after-destroy", "use after delete", destroyed_communicator, SETTINGS},
    {"collective-destroy-early", "communicator destroyed with work pending", destroyed_while_working, SETTINGS},
    {"collective-leak", "leak: a ncclComm", leaked_communicator, SETTINGS},
    {"collective-join-ungrouped", "waits for ever", joined_one_by_one, SETTINGS " GPUSIM_PATIENCE=1"},
    {"collective-id-twice", "unique id used twice", id_used_twice, SETTINGS},
    {"collective-id-unknown", "unknown unique id", unknown_id, SETTINGS},
    {"collective-rank-twice", "mismatched communicator", rank_taken_twice, SETTINGS},
    {"collective-not-ready", "communicator not ready", used_before_the_end_of_its_group, SETTINGS},
    {"collective-abort-ungrouped", "ungrouped abort", aborted_one_by_one, SETTINGS},
    {"collective-abort-old", "abort in a group", aborted_in_a_group_of_old, SETTINGS " GPUSIM_NCCL=22105"},
    {"collective-abort-twice", "aborted twice", aborted_twice, SETTINGS},
    {"collective-left-behind", "leak: a ncclComm", left_behind, SETTINGS " GPUSIM_FAULT=communicator:1@1"},
    {0},
};
