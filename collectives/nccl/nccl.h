/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this plugin share.
 *
 * Ranks are devices of one process, each with a thread of its own. A call is compared with those that other ranks have
 * made (collectives/group) and handed to the vendor's library, which queues it in the rank's stream: devices wait for
 * each other until the call is done, threads only until all have handed it over. So each group has an attendant, a
 * thread that makes the communicators and then looks after what is queued: whether a device has failed, whether ranks
 * stay away for too long. When the group is broken it aborts all communicators, so that no device waits for ever. */
#ifndef NCCL_H
#define NCCL_H

#include "../../backends/gpu/library.h"
#include "group.h"
#include "names.h"

#include "../../backends/gpu/abi/nccl.h"

/* ---- library.c ---- */

typedef struct nccl_table {
  NCCL_FUNCTIONS(GPU_POINTER)
  NCCL_OPTIONAL_FUNCTIONS(GPU_POINTER) /* NULL where the library is too old */
} nccl_table;

/* The library's functions, when it is open. */
extern nccl_table nccl;

/* Opens the driver and the library, once for the process. What was found, or what is missing and how to get it. */
bool nccl_library_open(const helio_host *host, char *reason, size_t size);

/* Whether its calls are done when they come back. If not, the user has said so in the environment, or in a file
 * nccl.conf, which the library adds to the environment with its first call: the reason tells how to get rid of it. */
bool nccl_library_waits(char *reason, size_t size);

/* As 2.10.3 → 21003. */
int nccl_library_version(void);

/* Makes the member's device the thread's current one. */
bool nccl_enter(const helio_member *member);

/* "unhandled cuda error: …". */
const char *nccl_text(abi_enum result, char *text, size_t size);

/* What a result means where no device is to blame. */
helio_status nccl_status(abi_enum result);

/* ---- a group and its ranks ---- */

enum { NCCL_SLOTS = 8 }; /* of a rank's latest calls, for the attendant */

typedef struct nccl_slot {
  uint32_t number;          /* of the call */
  bool has_begun;           /* the device has come to it */
  int64_t made, begun;      /* when, by the group's clock */
  helio_event *start, *end; /* of the call in its stream */
} nccl_slot;

typedef struct nccl_rank {
  pthread_mutex_t lock;              /* held while handle and slots are used */
  struct ncclComm *own;              /* the attendant's: being made, or to be aborted */
  pthread_t aborter;                 /* the attendant's, while it aborts */
  _Atomic(struct ncclComm *) handle; /* NULL: not made yet, aborted or destroyed */
  uint32_t done;                     /* calls that the device has done, as far as is known */
  nccl_slot slots[NCCL_SLOTS];       /* of call n: n % NCCL_SLOTS */
  atomic_uint handed;                /* number of the latest call that was handed over */
  atomic_uint calling;               /* number of the call that is being handed over; 0: none */
  atomic_llong calling_since;
} nccl_rank;

typedef struct nccl_team {
  group *group;
  pthread_t attendant;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool made;     /* the communicators are there, or will never be; under the lock like the rest of these */
  bool aborted;  /* they were there */
  bool ending;   /* all ranks have left */
  bool finished; /* the attendant is about to end */
  atomic_bool idle;
  atomic_llong clock;      /* microseconds in which the attendant could run */
  pthread_mutex_t looking; /* held by who asks the library for failures */
  int64_t remote_since;    /* another rank's failure is known, but not whose; -1: nobody's; by `looking` */
  nccl_rank ranks[];
} nccl_team;

static inline nccl_team *nccl_team_of(const helio_communicator *c) {
  return c->group->shared;
}

static inline nccl_rank *nccl_rank_of(const helio_communicator *c) {
  return &nccl_team_of(c)->ranks[c->rank];
}

/* ---- attendant.c ---- */

extern const group_service nccl_service;

/* Waits until the communicators are made. */
helio_status nccl_team_await(helio_communicator *c);

/* Waits, for some seconds at the most, until the broken group's communicators are aborted. */
void nccl_team_await_abort(nccl_team *team);

/* Called behind a call. */
void nccl_team_stir(nccl_team *team);

/* ---- watch.c: what the attendant looks after ---- */

/* The rank's device; NULL: the rank has left. */
const helio_member *nccl_member_of(group *g, uint32_t rank);

/* Whether the rank's device itself says so. */
bool nccl_is_lost(group *g, uint32_t rank);

/* Breaks the group: the rank's part of a collective failed, or its whole device. */
void nccl_rank_failed(group *g, uint32_t rank, abi_enum result, bool is_device);

/* What the library has noticed of the rank's calls behind their return; 0: nothing. It is the work of a device, whether
 * or not that has outlived it. The rank's lock is held. */
abi_enum nccl_late_error(nccl_rank *rank);

/* Asks the library whether a rank has failed, and breaks the group then. Does not block. */
void nccl_ask(nccl_team *team);

/* Looks how far the devices have come, and breaks the group if one has failed or is waited for too long. False: there
 * is nothing that could be waited for. */
bool nccl_watch(nccl_team *team);

/* ---- call.c ---- */

/* A rank's part of a call. */
typedef struct nccl_part {
  helio_communicator *communicator;
  uint32_t kind;   /* GROUP_… */
  uint32_t number; /* of the call */
  helio_collective_call call;
} nccl_part;

/* Hands parts over, those of several ranks together. */
helio_status nccl_hand_over(nccl_part *parts, size_t count);

helio_status nccl_all_reduce(helio_communicator *c, const helio_collective_call *call);
helio_status nccl_reduce(helio_communicator *c, const helio_collective_call *call);
helio_status nccl_broadcast(helio_communicator *c, const helio_collective_call *call);
helio_status nccl_all_gather(helio_communicator *c, const helio_collective_call *call);
helio_status nccl_reduce_scatter(helio_communicator *c, const helio_collective_call *call);

/* ---- batch.c: one thread that drives several ranks ---- */

struct helio_plugin_state {
  const helio_host *host;
  group_registry registry;
  bool found;       /* the library */
  char reason[492]; /* why not */
};

helio_status nccl_batch_start(helio_plugin_state *state);
helio_status nccl_batch_end(helio_plugin_state *state);

/* Has the calling thread a batch open? What is added to it is done at its end. */
bool nccl_batch_is_open(void);
helio_status nccl_batch_add_join(helio_communicator *c);
helio_status nccl_batch_add_part(const nccl_part *part);

#endif
