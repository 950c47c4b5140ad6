/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the stand-in for NCCL and RCCL share. The emulator's mutex guards all of it that has no lock of its
 * own. */
#ifndef NCCL_INTERNAL_H
#define NCCL_INTERNAL_H

#include "nccl.h"
#include "sim.h"

enum { MOST_RANKS = 64 };
#define COMMUNICATOR "ncclComm" /* the kind of object */

/* The vendor's names are all that is seen from outside. */
#define DECLARE(result, name, arguments) SIM_EXPORT result name arguments;
NCCL_FUNCTIONS(DECLARE)
NCCL_OTHER_FUNCTIONS(DECLARE)
NCCL_OPTIONAL_FUNCTIONS(DECLARE)
#undef DECLARE

/* ---------------------------------------------------------------------------------------------------------------------
 * clique.c: the ranks that speak with each other
 */

/* What is known of a rank; stays when its communicator is gone, because work of it may be queued. */
typedef struct member {
  sim_device *device;
  bool joined;
  bool connected;                   /* has made a call */
  bool aborted;                     /* what it has queued ends without a result */
  uint64_t aborted_by, abort_group; /* the thread, and the group of its calls */
  unsigned pending;                 /* pieces of work that it has queued and that are not done */
  abi_enum error;                   /* that ncclCommGetAsyncError will tell … */
  int polls; /* … after it was asked so many times more, because real ones are noticed late too */
} nccl_member;

typedef struct clique {
  int size;
  int references;               /* of communicators and of queued work */
  int joined;                   /* guarded by the lock of clique.c, as is the verdict */
  abi_enum verdict;             /* of all ranks' ncclCommInitRank */
  uint64_t started;             /* operations so far */
  struct operation *operations; /* not finished by all of their ranks, oldest first */
  nccl_member members[];
} nccl_clique;

/* The handle's type has the vendor's name. */
typedef struct ncclComm {
  sim_object object;
  nccl_clique *clique;
  int rank;
} nccl_communicator;

abi_enum clique_id(nccl_abi_unique_id *id);
/* A rank's place in the clique of an id, or in a known one if the id is NULL. NULL: *error says why. */
nccl_clique *clique_join(const nccl_abi_unique_id *id, nccl_clique *known, int size, int rank, sim_device *device,
                         abi_enum *error);
nccl_clique *clique_new(int size);
abi_enum clique_await(nccl_clique *clique); /* waits for all ranks */
void clique_release(nccl_clique *clique);   /* gives a reference back */

/* The member behind a communicator. */
nccl_member *member_of(const nccl_communicator *communicator);
/* The error that the rank may know by now. */
abi_enum member_error(nccl_member *member);
/* A failure of one rank: it will be told so, the others that another one failed, and their work waits until the abort.
 */
void clique_fail(nccl_clique *clique, int rank, abi_enum error);

/* ---------------------------------------------------------------------------------------------------------------------
 * request.c: what a call asks for, and whether it may
 */

typedef enum call { ALL_REDUCE, BROADCAST, REDUCE, ALL_GATHER, REDUCE_SCATTER, SEND, RECEIVE } nccl_call;

typedef struct request {
  nccl_call call;
  const char *name; /* of the vendor's function */
  const void *send;
  void *receive;
  size_t count;
  abi_enum type, reduction;
  int root; /* or peer */
  nccl_communicator *communicator;
  void *stream;
} nccl_request;

size_t type_size(abi_enum type);
bool is_reducing(nccl_call call);
bool is_transfer(const nccl_request *request);                       /* a send or a receive */
size_t send_bytes(const nccl_request *request, int rank, int ranks); /* 0: it sends nothing */
size_t receive_bytes(const nccl_request *request, int rank, int ranks);
abi_enum request_check(const nccl_request *request);

/* ---------------------------------------------------------------------------------------------------------------------
 * operation.c: what several ranks do together, once
 */

/* Queues requests of one rank that proceed together: one collective call, or the sends and receives of a group that
 * have the same stream. `group` tells apart what a thread asks for in different groups, or without one. */
abi_enum operations_start(const nccl_request *requests, size_t count, uint64_t group);

/* A number of its own for each thread that ever was: pthread_self may be used again. */
uint64_t this_thread(void);
void operations_forget(nccl_clique *clique);

/* ---------------------------------------------------------------------------------------------------------------------
 * reduce.c: arithmetic
 */

typedef struct reduction {
  abi_enum type, operation;
  int ranks;
  uint64_t number; /* of the operation: the order of the ranks is drawn from it and from the seed */
} nccl_reduction;

/* `count` elements of each rank's input, combined in an order of the ranks that differs from place to place
 * as in a ring; written to all outputs, which may be the inputs. */
void reduce(const nccl_reduction *reduction, const char *const *inputs, size_t count, char *const *outputs,
            int output_count);

/* ---------------------------------------------------------------------------------------------------------------------
 * group.c: calls that are recorded until the group's end
 */

/* Of this thread; they nest. */
void group_start(void);
abi_enum group_end(void);
bool group_is_open(void);

/* Of the open group; without one, of this call alone. */
uint64_t group_number(void);

/* An error in an open group is told again at its end, and nothing of the group is done. Returns it. */
abi_enum group_error(abi_enum error);

/* Handed to the group if this thread has one open, else done at once. */
abi_enum group_request(const nccl_request *request);

typedef struct joining {
  nccl_communicator *communicator;
  nccl_clique *clique;
} nccl_joining;

abi_enum group_join(const nccl_joining *joining);

/* The communicator ends with the group, or at once if there is none. */
abi_enum group_abort(nccl_communicator *communicator);

/* communicator.c */
abi_enum joining_finish(const nccl_joining *joining);

/* Of a group that fails: the communicator stays, and is of no use but to be aborted. */
void joining_give_up(const nccl_joining *joining);
void communicator_end(nccl_communicator *communicator);

/* What ncclGetLastError answers; the status is returned. */
abi_enum nccl_fail(abi_enum status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
