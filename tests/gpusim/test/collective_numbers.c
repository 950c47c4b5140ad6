/* SPDX-License-Identifier: Apache-2.0 */
/* Cases about results: every call, type and reduction, in place or not, by one thread or by one for each rank. */
#include "collective_numbers.h"
#include "collective_cases.h"
#include "ranks.h"

#include <pthread.h>

typedef struct rank_place {
  struct ncclComm *communicator;
  void *stream;
  char *memory, *send, *receive; /* on the device; memory holds both */
} rank_place;

static _Thread_local char host[1 << 17];

/* ---------------------------------------------------------------------------------------------------------------------
 * One collective of one rank, in three steps
 */

static void lay_out(const test_plan *plan, int rank, rank_place *place) {
  size_t size = bytes_of(plan->type), send_bytes = sent_count(plan) * size;
  place->send = place->memory;
  place->receive = place->memory + (plan->in_place ? 0 : (send_bytes + 255) / 256 * 256);
  if (!plan->in_place) return;
  size_t share = plan->count * size * (size_t)rank;
  if (plan->kind == ALL_GATHER) place->send += share;
  if (plan->kind == REDUCE_SCATTER) place->receive += share;
}

static void prepare(const test_plan *plan, int rank, rank_place *place) {
  size_t size = bytes_of(plan->type);
  lay_out(plan, rank, place);
  for (size_t i = 0; i < sent_count(plan); i++) put(plan->type, input(plan, rank, i), host + i * size);
  copy_in(rank, place->send, host, sent_count(plan) * size, place->stream);
}

/* What a call does not look at is given as NULL. */
static abi_enum start(const test_plan *plan, int rank, const rank_place *place) {
  struct ncclComm *communicator = place->communicator;
  const char *send = plan->kind == BROADCAST && rank != plan->root ? NULL : place->send;
  char *receive = receives(plan, rank) ? place->receive : NULL;
  switch (plan->kind) {
  case ALL_REDUCE:
    return ncclAllReduce(send, receive, plan->count, plan->type, plan->reduction, communicator, place->stream);
  case BROADCAST:
    return ncclBroadcast(send, receive, plan->count, plan->type, plan->root, communicator, place->stream);
  case REDUCE:
    return ncclReduce(send, receive, plan->count, plan->type, plan->reduction, plan->root, communicator, place->stream);
  case ALL_GATHER:
    return ncclAllGather(send, receive, plan->count, plan->type, communicator, place->stream);
  default:
    return ncclReduceScatter(send, receive, plan->count, plan->type, plan->reduction, communicator, place->stream);
  }
}

static void compare(const test_plan *plan, int rank, const rank_place *place) {
  size_t size = bytes_of(plan->type);
  if (!receives(plan, rank)) return;
  copy_out(rank, host, place->receive, received_count(plan) * size, place->stream);
  for (size_t i = 0; i < received_count(plan); i++) {
    double is = get(plan->type, host + i * size), should = expected(plan, rank, i);
    if (fabs(is - should) <= tolerance(plan)) continue;
    printf(
        "call %d, type %u, reduction %u, %d ranks, root %d, %zu elements, in place %d: rank %d has %g at %zu, not %g\n",
        plan->kind, plan->type, plan->reduction, plan->ranks, plan->root, plan->count, plan->in_place, rank, is, i,
        should);
    exit(1);
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * One thread and groups
 */

static void open_places(rank_place *places, int ranks) {
  struct ncclComm *communicators[MOST_DEVICES];
  NEED(ncclCommInitAll(communicators, ranks, NULL));
  for (int rank = 0; rank < ranks; rank++)
    places[rank] = (rank_place){.communicator = communicators[rank], make_stream(rank), allocate(rank, sizeof host)};
}

static void close_places(rank_place *places, int ranks) {
  for (int rank = 0; rank < ranks; rank++) {
    NEED(wait_for_stream(rank, places[rank].stream));
    NEED(ncclCommDestroy(places[rank].communicator));
    NEED(release(rank, places[rank].memory));
    end_stream(rank, places[rank].stream);
  }
}

static void run_grouped(const test_plan *plan, rank_place *places) {
  for (int rank = 0; rank < plan->ranks; rank++) prepare(plan, rank, &places[rank]);
  NEED(ncclGroupStart());
  for (int rank = 0; rank < plan->ranks; rank++) NEED(start(plan, rank, &places[rank]));
  NEED(ncclGroupEnd());
  for (int rank = 0; rank < plan->ranks; rank++) compare(plan, rank, &places[rank]);
}

static bool reduces(test_kind kind) {
  return kind != BROADCAST && kind != ALL_GATHER;
}

static void run_all_plans(rank_place *places, int ranks, size_t count) {
  for (test_kind kind = 0; kind < KINDS; kind++)
    for (abi_enum type = 0; type <= NCCL_ABI_BFLOAT16; type++)
      for (abi_enum reduction = 0; reduction < (reduces(kind) ? NCCL_ABI_OPERATORS : 1); reduction++)
        for (int in_place = 0; in_place < 2; in_place++) {
          int root = (int)(type + reduction) % ranks;
          run_grouped(&(test_plan){kind, type, reduction, ranks, root, count, in_place != 0}, places);
        }
}

void numbers_case(void) {
  for (int ranks = 1; ranks <= MOST_DEVICES; ranks++) {
    rank_place places[MOST_DEVICES];
    open_places(places, ranks);
    run_all_plans(places, ranks, 1);
    run_all_plans(places, ranks, 13);
    if (ranks == 3) run_all_plans(places, ranks, 1100);
    close_places(places, ranks);
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * A thread for each rank, which meet by an id
 */

typedef struct rank_worker {
  pthread_t thread;
  nccl_abi_unique_id id;
  int rank, ranks;
} rank_worker;

static void *work(void *argument) {
  rank_worker *worker = argument;
  int rank = worker->rank, count, number, device;
  use_device(rank);
  rank_place place = {.stream = make_stream(rank), .memory = allocate(rank, sizeof host)};
  NEED(ncclCommInitRank(&place.communicator, worker->ranks, worker->id, rank));
  NEED(ncclCommCount(place.communicator, &count));
  NEED(ncclCommUserRank(place.communicator, &number));
  NEED(ncclCommCuDevice(place.communicator, &device));
  NEED(count != worker->ranks || number != rank || device != rank);
  for (unsigned i = 0; i < 60; i++) {
    test_plan plan = {i % KINDS, i % 10, i % NCCL_ABI_OPERATORS, worker->ranks, (int)i % worker->ranks,
                      1 + i * 7, i % 2};
    prepare(&plan, rank, &place);
    NEED(start(&plan, rank, &place));
    if (i % 3 == 0) compare(&plan, rank, &place);
  }
  NEED(wait_for_stream(rank, place.stream));
  NEED(ncclCommDestroy(place.communicator));
  NEED(release(rank, place.memory));
  end_stream(rank, place.stream);
  return NULL;
}

void threads_case(void) {
  for (int ranks = 2; ranks <= MOST_DEVICES; ranks++) {
    rank_worker workers[MOST_DEVICES];
    nccl_abi_unique_id id;
    NEED(ncclGetUniqueId(&id));
    for (int rank = 0; rank < ranks; rank++) {
      workers[rank] = (rank_worker){.id = id, .rank = rank, .ranks = ranks};
      NEED(pthread_create(&workers[rank].thread, NULL, work, &workers[rank]));
    }
    for (int rank = 0; rank < ranks; rank++) NEED(pthread_join(workers[rank].thread, NULL));
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Numbers that are rounded
 */

static void reduce_bits(rank_place *places, abi_enum type, abi_enum reduction, const uint16_t *inputs,
                        uint16_t should) {
  uint16_t is;
  for (int rank = 0; rank < 2; rank++)
    copy_in(rank, places[rank].memory, &inputs[rank], sizeof is, places[rank].stream);
  NEED(ncclGroupStart());
  for (int rank = 0; rank < 2; rank++)
    NEED(ncclAllReduce(places[rank].memory, places[rank].memory, 1, type, reduction, places[rank].communicator,
                       places[rank].stream));
  NEED(ncclGroupEnd());
  for (int rank = 0; rank < 2; rank++) {
    copy_out(rank, &is, places[rank].memory, sizeof is, places[rank].stream);
    if (is == should) continue;
    printf("type %u, reduction %u: %04x and %04x give %04x, not %04x\n", type, reduction, inputs[0], inputs[1], is,
           should);
    exit(1);
  }
}

/* By hand from the definition of the formats (IEEE 754 binary16; the upper half of binary32). */
void rounding_case(void) {
  static const struct {
    abi_enum type, reduction;
    uint16_t inputs[2], result;
  } cases[] = {
      {NCCL_ABI_FLOAT16, NCCL_ABI_SUM, {0x6800, 0x3C00}, 0x6800},     /* 2048 + 1: to the even neighbour below */
      {NCCL_ABI_FLOAT16, NCCL_ABI_SUM, {0x6801, 0x3C00}, 0x6802},     /* 2050 + 1: to the even neighbour above */
      {NCCL_ABI_FLOAT16, NCCL_ABI_SUM, {0x7BFF, 0x7BFF}, 0x7C00},     /* 65504 twice: infinity */
      {NCCL_ABI_FLOAT16, NCCL_ABI_SUM, {0x7BFF, 0xFBFF}, 0x0000},     /* and its opposite */
      {NCCL_ABI_FLOAT16, NCCL_ABI_SUM, {0x0001, 0x0001}, 0x0002},     /* the smallest, twice */
      {NCCL_ABI_FLOAT16, NCCL_ABI_SUM, {0x03FF, 0x0001}, 0x0400},     /* the largest subnormal and one step */
      {NCCL_ABI_FLOAT16, NCCL_ABI_PRODUCT, {0x0001, 0x3800}, 0x0000}, /* half of the smallest: to even, zero */
      {NCCL_ABI_FLOAT16, NCCL_ABI_PRODUCT, {0x0003, 0x3800}, 0x0002}, /* three halves of it: two */
      {NCCL_ABI_FLOAT16, NCCL_ABI_MAXIMUM, {0xFC00, 0xC000}, 0xC000}, /* minus infinity and -2 */
      {NCCL_ABI_FLOAT16, NCCL_ABI_AVERAGE, {0x3C00, 0x4200}, 0x4000}, /* 1 and 3 */
      {NCCL_ABI_BFLOAT16, NCCL_ABI_SUM, {0x4380, 0x3F80}, 0x4380},    /* 256 + 1 */
      {NCCL_ABI_BFLOAT16, NCCL_ABI_SUM, {0x4381, 0x3F80}, 0x4382},    /* 258 + 1 */
      {NCCL_ABI_BFLOAT16, NCCL_ABI_SUM, {0x7F7F, 0x7F7F}, 0x7F80},
      {NCCL_ABI_BFLOAT16, NCCL_ABI_MINIMUM, {0xBF80, 0x3F80}, 0xBF80},
  };
  rank_place places[2];
  open_places(places, 2);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    reduce_bits(places, cases[i].type, cases[i].reduction, cases[i].inputs, cases[i].result);
  close_places(places, 2);
}

/* Thousands of sums of three numbers, whose order matters: all ranks must have the same bits. Prints them. */
void sum_case(void) {
  enum { COUNT = 5000, RANKS = 3 };
  static float numbers[RANKS][COUNT];
  rank_place places[RANKS];
  open_places(places, RANKS);
  uint32_t state = 1;
  for (int rank = 0; rank < RANKS; rank++) {
    for (size_t i = 0; i < COUNT; i++) numbers[rank][i] = (float)(state = state * 1664525 + 1013904223) / 3e9f;
    copy_in(rank, places[rank].memory, numbers[rank], sizeof numbers[rank], places[rank].stream);
  }
  NEED(ncclGroupStart());
  for (int rank = 0; rank < RANKS; rank++)
    NEED(ncclAllReduce(places[rank].memory, places[rank].memory, COUNT, NCCL_ABI_FLOAT32, NCCL_ABI_SUM,
                       places[rank].communicator, places[rank].stream));
  NEED(ncclGroupEnd());
  uint64_t hash = 0;
  for (int rank = 0; rank < RANKS; rank++)
    copy_out(rank, numbers[rank], places[rank].memory, sizeof numbers[rank], places[rank].stream);
  for (int rank = 1; rank < RANKS; rank++) NEED(memcmp(numbers[rank], numbers[0], sizeof numbers[0]));
  for (size_t i = 0; i < COUNT; i++) {
    uint32_t bits;
    memcpy(&bits, &numbers[0][i], sizeof bits);
    hash = hash * 31 + bits;
  }
  printf("%016llx\n", (unsigned long long)hash);
  close_places(places, RANKS);
}
