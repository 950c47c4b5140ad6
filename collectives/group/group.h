/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of one process that meet: what the collectives for one process share.
 *
 * Each rank has a count of its progress, which it alone raises and which others wait for. All ranks raise it equally
 * often in a call, so that everybody knows what a count means. A wait spins for a while and then sleeps; it ends when
 * the group breaks: by a failure, an abort, or when the time is up. The first failure is that of all ranks, for good.
 *
 * A rank must not return from a call while another works on its memory, also when the group breaks. So work on the
 * memory of others lies between group_work() and group_rest(), is short, and waits for no rank; and every function here
 * that fails has waited for the others' rest before it returns.
 *
 * Collectives whose devices wait for each other, and not their threads, have a service that looks after each group. */
#ifndef HELIO_GROUP_H
#define HELIO_GROUP_H

#include <pthread.h>
#include <stdatomic.h>

#include "../../backends/common/call.h" /* types */

enum {
  GROUP_ALL_REDUCE = 1,
  GROUP_REDUCE = 2,
  GROUP_BROADCAST = 3,
  GROUP_ALL_GATHER = 4,
  GROUP_REDUCE_SCATTER = 5,
};

enum { GROUP_RECORDS = 1024 }; /* calls that a rank can be ahead of another, where ranks do not wait for each other */

/* A call, as far as it must be the same for all ranks. */
typedef struct group_signature {
  uint32_t what;   /* kind, type, reduction, root */
  uint32_t counts; /* tells counts of the ranks from other ones; 0: the kind has none */
  size_t elements; /* of all ranks together where they have different parts */
} group_signature;

/* Of whoever made a call first. */
typedef struct group_first {
  uint32_t number, rank;
  group_signature call;
} group_first;

/* What others look at in every call stands in one line of the cache. */
typedef struct group_rank {
  _Alignas(64) atomic_uint progress;
  group_signature call;
  helio_place source, target;
  _Alignas(64) atomic_uint busy; /* works on the memory of others */
  atomic_uint seated;            /* has joined */
  const helio_member *member;    /* NULL: has left; written under the group's lock */
  size_t *counts;                /* of all ranks, in calls that have them */
  void *own;                     /* the collective's */
} group_rank;

typedef struct group {
  const helio_host *host;
  struct group_registry *registry;
  struct group *next;
  unsigned char id[HELIO_COLLECTIVE_ID_SIZE];
  uint32_t rank_count, timeout_ms, spin_us;
  uint32_t references; /* under the registry's lock */
  pthread_mutex_t lock;
  char message[600];               /* of the failure, under the lock */
  uint32_t culprit;                /* the rank whose device failed, plus 1; 0: none did */
  _Alignas(64) atomic_uint broken; /* helio_status; 0: all is well */
  atomic_uint sleepers, bell;      /* threads that sleep until the bell changes */
  void *shared;                    /* the service's */
  group_first *records;            /* of the latest calls, with a service, under the lock */
  group_rank rank[];
} group;

/* What a collective does for a group besides the ranks' calls. */
typedef struct group_service {
  helio_status (*begin)(group *g); /* a group is new; locks are held */
  void (*wake)(group *g);          /* all ranks have come, or the group is broken; does not block */
  bool (*end)(group *g);           /* all ranks have left; false: something hangs that still looks at it */
} group_service;

enum { GROUP_REFUSALS = 8 };

/* All groups of a plugin's state. */
typedef struct group_registry {
  const helio_host *host;
  const group_service *service; /* NULL: none */
  pthread_mutex_t lock;
  uint64_t last_number;
  group *first;
  unsigned char refused[GROUP_REFUSALS][HELIO_COLLECTIVE_ID_SIZE]; /* groups that a rank could not join, the latest */
  uint32_t refusals;
} group_registry;

/* One rank, as it is handed to the core. */
struct helio_communicator {
  group *group;
  uint32_t rank;
};

helio_status group_registry_open(group_registry *registry, const helio_host *host, const group_service *service);
void group_registry_close(group_registry *registry);
void group_new_id(group_registry *registry, void *id);

/* Takes this rank's seat, and waits for all ranks; group_join does both and gives the seat up if they do not come.
 * `own` can be seen by the others when all have their seats. */
helio_status group_seat(group_registry *registry, const helio_communicator_options *options, void *own,
                        helio_communicator **communicator);
helio_status group_await_seats(helio_communicator *communicator);
helio_status group_join(group_registry *registry, const helio_communicator_options *options, void *own,
                        helio_communicator **communicator);

/* This rank has failed before it could join, which the others need not wait for. Returns the status. */
helio_status group_refuse(group_registry *registry, const helio_communicator_options *options, helio_status status);

/* Frees the communicator. What others could still want of this rank must be settled. */
void group_leave(helio_communicator *communicator);

void group_abort(helio_communicator *communicator);
helio_status group_poll(helio_communicator *communicator);

/* Brings this rank's part of a call and waits for the others': a progress of 1. An error if the parts differ. */
helio_status group_meet(helio_communicator *communicator, uint32_t kind, const helio_collective_call *call);

/* The same without waiting: compares this rank's part with that of whoever was there before. With a service only. A
 * rank that is further ahead of others than there are records waits. */
helio_status group_record(helio_communicator *communicator, uint32_t kind, const helio_collective_call *call);

/* Raises this rank's progress by 1. */
void group_advance(helio_communicator *communicator);

/* This rank's progress, which is that of the others at the same point. */
uint32_t group_progress(const helio_communicator *communicator);

/* Waits until a rank's progress, or every rank's, is `progress` at least. */
helio_status group_await(helio_communicator *communicator, uint32_t other, uint32_t progress);
helio_status group_await_all(helio_communicator *communicator, uint32_t progress);

/* From here to group_rest() this rank works on the memory of others. Fails if the group is broken. */
helio_status group_work(helio_communicator *communicator);
void group_rest(helio_communicator *communicator);

/* This rank's device failed, with a reason that the host knows: breaks the group. Returns the status. */
helio_status group_fail(helio_communicator *communicator, helio_status status);

#define GROUP_NOBODY UINT32_MAX

/* Breaks the group with the first of all failures, from any thread; waits for nobody. Where the device of rank
 * `culprit` has failed (else GROUP_NOBODY) that rank is told HELIO_DEVICE_FAILURE and the others `status`. */
void group_break(group *g, uint32_t culprit, helio_status status, const char *message);

static inline bool group_is_broken(const group *g) {
  return atomic_load(&g->broken) != 0;
}

/* Tells the calling thread, which is the rank's, what broke the group. group_stop waits for the others' rest before. */
helio_status group_tell(helio_communicator *communicator);
helio_status group_stop(helio_communicator *communicator);

#endif
