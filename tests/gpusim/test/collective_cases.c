/* SPDX-License-Identifier: Apache-2.0 */
/* Cases about everything but the results: statuses, errors that show late, aborts, lost devices; and sends. */
#include "collective_cases.h"

#include "ranks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, COUNT = 64, BYTES = COUNT * sizeof(float) };

typedef struct rank_place {
  struct ncclComm *communicator;
  void *stream;
  float *send, *receive;
} rank_place;

static rank_place places[RANKS];

/* The call must answer this. */
#define EXPECT(answer, call) need((int)(call) == (int)(answer) ? 0 : (int)(call), #call, __FILE__, __LINE__)

static void open_places(int ranks) {
  struct ncclComm *communicators[RANKS];
  NEED(ncclCommInitAll(communicators, ranks, NULL));
  for (int rank = 0; rank < ranks; rank++)
    places[rank] = (rank_place){communicators[rank], make_stream(rank), allocate(rank, BYTES), allocate(rank, BYTES)};
}

static void close_place(int rank) {
  if (places[rank].communicator) NEED(ncclCommDestroy(places[rank].communicator));
  NEED(release(rank, places[rank].send));
  NEED(release(rank, places[rank].receive));
  end_stream(rank, places[rank].stream);
}

static void close_places(int ranks) {
  for (int rank = 0; rank < ranks; rank++) NEED(wait_for_stream(rank, places[rank].stream));
  for (int rank = 0; rank < ranks; rank++) close_place(rank);
}

static abi_enum all_reduce(int rank) {
  return ncclAllReduce(places[rank].send, places[rank].receive, COUNT, NCCL_ABI_FLOAT32, NCCL_ABI_SUM,
                       places[rank].communicator, places[rank].stream);
}

static void all_reduce_together(int ranks) {
  NEED(ncclGroupStart());
  for (int rank = 0; rank < ranks; rank++) NEED(all_reduce(rank));
  NEED(ncclGroupEnd());
}

static void abort_place(int rank) {
  NEED(ncclCommAbort(places[rank].communicator));
  places[rank].communicator = NULL;
}

/* Several ranks of one thread. */
static void abort_together(int first, int ranks) {
  NEED(ncclGroupStart());
  for (int rank = first; rank < first + ranks; rank++) abort_place(rank);
  NEED(ncclGroupEnd());
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Statuses
 */

static void refuse_devices(void) {
  struct ncclComm *communicators[2] = {NULL, NULL};
  EXPECT(NCCL_ABI_INVALID_USAGE, ncclCommInitAll(communicators, 2, (int[]){1, 1}));
  NEED(strstr(ncclGetLastError(NULL), "Duplicate GPU") == NULL);
  EXPECT(NCCL_ABI_INVALID_ARGUMENT, ncclCommInitAll(communicators, 2, (int[]){0, 99}));
  EXPECT(NCCL_ABI_INVALID_ARGUMENT, ncclCommInitAll(communicators, 0, NULL));

  /* By rank: all of them are told, and get communicators that can only be aborted. */
  nccl_abi_unique_id id;
  NEED(ncclGetUniqueId(&id));
  use_device(0);
  EXPECT(NCCL_ABI_INVALID_ARGUMENT, ncclCommInitRank(&communicators[0], 2, id, 2));
  NEED(ncclGroupStart());
  for (int rank = 0; rank < 2; rank++) NEED(ncclCommInitRank(&communicators[rank], 2, id, rank));
  EXPECT(NCCL_ABI_INVALID_USAGE, ncclGroupEnd());
  NEED(communicators[0] == NULL || communicators[1] == NULL);
  NEED(ncclGroupStart());
  for (int rank = 0; rank < 2; rank++) NEED(ncclCommAbort(communicators[rank]));
  NEED(ncclGroupEnd());
}

static void refuse_arguments(void) {
  rank_place *place = &places[0];
  EXPECT(NCCL_ABI_INVALID_ARGUMENT, ncclAllReduce(place->send, place->receive, COUNT, NCCL_ABI_TYPES, NCCL_ABI_SUM,
                                                  place->communicator, place->stream));
  EXPECT(NCCL_ABI_INVALID_ARGUMENT, ncclAllReduce(place->send, place->receive, COUNT, NCCL_ABI_FLOAT32,
                                                  NCCL_ABI_OPERATORS, place->communicator, place->stream));
  EXPECT(NCCL_ABI_INVALID_ARGUMENT, ncclAllReduce(place->send, place->receive, COUNT, NCCL_ABI_FLOAT8_E4M3,
                                                  NCCL_ABI_SUM, place->communicator, place->stream));
  EXPECT(NCCL_ABI_INVALID_ARGUMENT, ncclBroadcast(place->send, place->receive, COUNT, NCCL_ABI_FLOAT32, RANKS,
                                                  place->communicator, place->stream));
  EXPECT(NCCL_ABI_INVALID_ARGUMENT, ncclCommCount(place->communicator, NULL));
}

/* An error in a group is told at its end, and nothing of the group is done: a second try agrees with the others. */
static void refuse_group(void) {
  NEED(ncclGroupStart());
  NEED(all_reduce(0));
  NEED(ncclGroupStart());
  EXPECT(NCCL_ABI_INVALID_ARGUMENT, ncclBroadcast(places[1].send, places[1].receive, COUNT, NCCL_ABI_FLOAT32, -1,
                                                  places[1].communicator, places[1].stream));
  NEED(ncclGroupEnd());
  EXPECT(NCCL_ABI_INVALID_ARGUMENT, ncclGroupEnd());
  all_reduce_together(2);
  NEED(wait_for_stream(0, places[0].stream));
}

static void statuses_case(void) {
  int version = 0;
  NEED(ncclGetVersion(&version));
  NEED(version != 22809);
  NEED(strcmp(ncclGetErrorString(NCCL_ABI_INVALID_USAGE), "invalid usage"));
  NEED(ncclGetErrorString(1234) == NULL);
  refuse_devices();
  open_places(2);
  refuse_arguments();
  refuse_group();
  close_places(2);
  NEED(ncclCommDestroy(NULL));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Failures
 */

typedef struct rank_wait {
  int rank;
  atomic_int status;
} rank_wait;

static void *wait_for_rank(void *argument) {
  rank_wait *wait = argument;
  atomic_store(&wait->status, wait_for_stream(wait->rank, places[wait->rank].stream));
  return NULL;
}

/* The stream of the first of some ranks cannot go on; a wait for it ends well when they are aborted, and not before. */
static void wait_until_abort(int rank, int ranks) {
  rank_wait wait = {rank, -1};
  pthread_t waiting;
  NEED(pthread_create(&waiting, NULL, wait_for_rank, &wait));
  usleep(50000);
  NEED(wait.status != -1);
  if (ranks == 1)
    abort_place(rank);
  else
    abort_together(rank, ranks);
  NEED(pthread_join(waiting, NULL));
  NEED(wait.status);
}

static void *start_too_late(void *argument) {
  int rank = *(int *)argument;
  NEED(all_reduce(rank));
  wait_until_abort(rank, 1);
  return NULL;
}

/* Rank 0 waits for a collective that rank 1 takes part in when it is too late. Each is aborted by a thread of its own.
 */
static void abort_case(void) {
  pthread_t second;
  open_places(2);
  NEED(all_reduce(0));
  wait_until_abort(0, 1);
  NEED(pthread_create(&second, NULL, start_too_late, &(int){1}));
  NEED(pthread_join(second, NULL));
  close_places(2);
}

/* Asks until the rank's error is there; how often it was asked. */
static int poll_error(int rank, abi_enum should) {
  abi_enum error = NCCL_ABI_SUCCESS;
  int polls = 0;
  for (; error == NCCL_ABI_SUCCESS && polls < 100; polls++)
    NEED(ncclCommGetAsyncError(places[rank].communicator, &error));
  EXPECT(should, error);
  return polls;
}

/* The second collective of device 1 fails: the call does not say so, and nobody's stream goes on. */
static void late_case(void) {
  open_places(RANKS);
  all_reduce_together(RANKS);
  for (int rank = 0; rank < RANKS; rank++) NEED(wait_for_stream(rank, places[rank].stream));
  all_reduce_together(RANKS);
  for (int rank = 0; rank < RANKS; rank++) {
    int polls = poll_error(rank, rank == 1 ? NCCL_ABI_UNHANDLED_CUDA_ERROR : NCCL_ABI_REMOTE_ERROR);
    NEED(polls < 2);
  }
  EXPECT(NCCL_ABI_REMOTE_ERROR, all_reduce(0));
  wait_until_abort(0, RANKS);
  close_places(RANKS);
}

/* Device 1 is lost when its rank starts: it is told, the other waits until the abort. */
static void lost_case(void) {
  open_places(2);
  NEED(ncclGroupStart());
  NEED(all_reduce(0));
  NEED(all_reduce(1));
  EXPECT(NCCL_ABI_UNHANDLED_CUDA_ERROR, ncclGroupEnd());
  EXPECT(NCCL_ABI_UNHANDLED_CUDA_ERROR, all_reduce(1));
  wait_until_abort(0, 2);
  close_place(0);
}

/* Rank 1's communicator cannot be made: that of rank 0 is there all the same, and to be given back. */
static void incomplete_case(void) {
  struct ncclComm *communicators[2] = {NULL, NULL};
  nccl_abi_unique_id id;
  NEED(ncclGetUniqueId(&id));
  NEED(ncclGroupStart());
  use_device(0);
  NEED(ncclCommInitRank(&communicators[0], 2, id, 0));
  use_device(1);
  EXPECT(NCCL_ABI_UNHANDLED_CUDA_ERROR, ncclCommInitRank(&communicators[1], 2, id, 1));
  EXPECT(NCCL_ABI_UNHANDLED_CUDA_ERROR, ncclGroupEnd());
  NEED(communicators[0] == NULL || communicators[1] != NULL);
  NEED(ncclCommAbort(communicators[0]));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Sends and receives
 */

static void fill(int rank, float value) {
  static float numbers[COUNT];
  for (int i = 0; i < COUNT; i++) numbers[i] = value + (float)i;
  copy_in(rank, places[rank].send, numbers, BYTES, places[rank].stream);
}

static void expect_received(int rank, float value) {
  float numbers[COUNT];
  copy_out(rank, numbers, places[rank].receive, BYTES, places[rank].stream);
  for (int i = 0; i < COUNT; i++) NEED(numbers[i] != value + (float)i);
}

static abi_enum send_to(int rank, int peer, const float *from) {
  return ncclSend(from, COUNT, NCCL_ABI_FLOAT32, peer, places[rank].communicator, places[rank].stream);
}

static abi_enum receive_from(int rank, int peer) {
  return ncclRecv(places[rank].receive, COUNT, NCCL_ABI_FLOAT32, peer, places[rank].communicator, places[rank].stream);
}

/* Each rank sends to the next, all at once. */
static void rotate(void) {
  for (int rank = 0; rank < RANKS; rank++) fill(rank, (float)(100 * rank));
  NEED(ncclGroupStart());
  for (int rank = 0; rank < RANKS; rank++) {
    NEED(send_to(rank, (rank + 1) % RANKS, places[rank].send));
    NEED(receive_from(rank, (rank + RANKS - 1) % RANKS));
  }
  NEED(ncclGroupEnd());
  for (int rank = 0; rank < RANKS; rank++) expect_received(rank, (float)(100 * ((rank + RANKS - 1) % RANKS)));
}

/* Each rank hands on what it has received: rank 0's receive can be done only after its own send, in one group, went
 * round. */
static void *hand_on(void *argument) {
  int rank = *(int *)argument;
  if (rank == 0) {
    NEED(ncclGroupStart());
    NEED(receive_from(0, RANKS - 1));
    NEED(send_to(0, 1, places[0].send));
    NEED(ncclGroupEnd());
  } else {
    NEED(receive_from(rank, rank - 1));
    NEED(send_to(rank, (rank + 1) % RANKS, places[rank].receive));
  }
  NEED(wait_for_stream(rank, places[rank].stream));
  return NULL;
}

static void go_round(void) {
  pthread_t threads[RANKS];
  int ranks[RANKS];
  fill(0, 7);
  for (int rank = 0; rank < RANKS; rank++) {
    ranks[rank] = rank;
    NEED(pthread_create(&threads[rank], NULL, hand_on, &ranks[rank]));
  }
  for (int rank = 0; rank < RANKS; rank++) NEED(pthread_join(threads[rank], NULL));
  expect_received(0, 7);
}

void transfers_case(void) {
  open_places(RANKS);
  rotate();
  go_round();
  close_places(RANKS);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Streams
 */

/* As a training does it: buckets are summed on a stream of their own, in the middle of what the device computes, for
 * many steps without a wait of the host. Rank r holds r + 1; the sum of a step is what the next one begins with. */
static void streams_case(void) {
  enum { STEPS = 5 };
  void *sums[RANKS];
  float numbers[COUNT];
  open_places(RANKS);
  for (int rank = 0; rank < RANKS; rank++) {
    sums[rank] = make_stream(rank);
    for (int i = 0; i < COUNT; i++) numbers[i] = (float)(rank + 1);
    copy_in(rank, places[rank].send, numbers, BYTES, places[rank].stream);
  }
  for (int step = 0; step < STEPS; step++) {
    for (int rank = 0; rank < RANKS; rank++) order_streams(rank, places[rank].stream, sums[rank]);
    NEED(ncclGroupStart());
    for (int rank = 0; rank < RANKS; rank++)
      NEED(ncclAllReduce(places[rank].send, places[rank].receive, COUNT, NCCL_ABI_FLOAT32, NCCL_ABI_SUM,
                         places[rank].communicator, sums[rank]));
    NEED(ncclGroupEnd());
    for (int rank = 0; rank < RANKS; rank++) {
      order_streams(rank, sums[rank], places[rank].stream);
      copy_within(rank, places[rank].send, places[rank].receive, BYTES, places[rank].stream);
    }
  }
  float sum = RANKS * (RANKS + 1) / 2;
  for (int step = 1; step < STEPS; step++) sum *= RANKS;
  for (int rank = 0; rank < RANKS; rank++) {
    copy_out(rank, numbers, places[rank].send, BYTES, places[rank].stream);
    for (int i = 0; i < COUNT; i++) NEED(numbers[i] != sum);
    end_stream(rank, sums[rank]);
  }
  close_places(RANKS);
}

static void *all_reduce_of_rank(void *argument) {
  NEED(all_reduce((int)(intptr_t)argument));
  return NULL;
}

/* Threads of which each ends before the next begins, and may be given its identity. */
static void successors_case(void) {
  open_places(RANKS);
  for (int rank = 0; rank < RANKS; rank++) {
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, all_reduce_of_rank, (void *)(intptr_t)rank));
    NEED(pthread_join(thread, NULL));
  }
  close_places(RANKS);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * By name
 */

int collective_case(const char *name, bool hip) {
  static const struct {
    const char *name;
    void (*run)(void);
  } cases[] = {
      {"numbers", numbers_case},
      {"threads", threads_case},
      {"rounding", rounding_case},
      {"sum", sum_case},
      {"transfers", transfers_case},
      {"statuses", statuses_case},
      {"abort", abort_case},
      {"late", late_case},
      {"lost", lost_case},
      {"streams", streams_case},
      {"successors", successors_case},
      {"incomplete", incomplete_case},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (strcmp(cases[i].name, name)) continue;
    open_devices(hip, MOST_DEVICES);
    cases[i].run();
    close_devices();
    return 0;
  }
  printf("there is no case called \"%s\"\n", name);
  return 2;
}
