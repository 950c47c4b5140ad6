/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that speak with each other, and how they meet: by an id that one of them made and the others were given.
 * All of them are threads of one process. An id names its process too, so that processes could meet one day. */
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char id_mark[] = "gpusim";

typedef struct id_content {
  char mark[sizeof id_mark];
  pid_t process;
  uint64_t number;
} id_content;

_Static_assert(sizeof(id_content) <= NCCL_ABI_UNIQUE_ID_BYTES, "an id has no room for its content");

/* Ids that were made. They are kept, so that the second use of one is known for what it is. */
typedef struct meeting {
  struct meeting *next;
  uint64_t number;
  nccl_clique *clique; /* NULL: nobody came yet, or all have */
  bool complete;
} nccl_meeting;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t somebody_came = PTHREAD_COND_INITIALIZER;
static nccl_meeting *meetings;

abi_enum clique_id(nccl_abi_unique_id *id) {
  if (id == NULL) return nccl_fail(NCCL_ABI_INVALID_ARGUMENT, "the id is NULL");
  nccl_meeting *made = calloc(1, sizeof *made);
  if (made == NULL) return NCCL_ABI_SYSTEM_ERROR;
  pthread_mutex_lock(&lock);
  made->number = meetings == NULL ? 1 : meetings->number + 1;
  made->next = meetings;
  meetings = made;
  pthread_mutex_unlock(&lock);

  id_content content = {.process = getpid(), .number = made->number};
  memcpy(content.mark, id_mark, sizeof content.mark);
  memset(id, 0, sizeof *id);
  memcpy(id, &content, sizeof content);
  return NCCL_ABI_SUCCESS;
}

nccl_clique *clique_new(int size) {
  nccl_clique *made = calloc(1, sizeof *made + (size_t)size * sizeof(nccl_member));
  if (made != NULL) made->size = size;
  return made;
}

void clique_release(nccl_clique *clique) {
  sim_lock();
  bool last = --clique->references == 0;
  if (last) operations_forget(clique);
  sim_unlock();
  if (last) free(clique);
}

/* Under the lock. */
static nccl_meeting *find_meeting(const nccl_abi_unique_id *id, abi_enum *error) {
  id_content content;
  memcpy(&content, id, sizeof content);
  *error = NCCL_ABI_INVALID_ARGUMENT;
  if (memcmp(content.mark, id_mark, sizeof content.mark) != 0) {
    sim_violation("unknown unique id", "no ncclGetUniqueId of this library made it");
    return NULL;
  }
  if (content.process != getpid()) {
    *error =
        nccl_fail(NCCL_ABI_SYSTEM_ERROR, "the id was made by process %d: gpusim's ranks are threads of one process",
                  (int)content.process);
    return NULL;
  }
  for (nccl_meeting *one = meetings; one != NULL; one = one->next)
    if (one->number == content.number) return one;
  sim_violation("unknown unique id", "this process never made number %llu", (unsigned long long)content.number);
  return NULL;
}

/* Under the lock. */
static nccl_clique *clique_at(const nccl_abi_unique_id *id, int size, abi_enum *error) {
  nccl_meeting *meeting = find_meeting(id, error);
  if (meeting == NULL) return NULL;
  if (meeting->complete) {
    sim_violation("unique id used twice", "all ranks of its communicator have come already");
    *error = NCCL_ABI_INVALID_USAGE;
    return NULL;
  }
  if (meeting->clique == NULL && (meeting->clique = clique_new(size)) != NULL) meeting->clique->references = 1;
  if (meeting->clique == NULL) {
    *error = NCCL_ABI_SYSTEM_ERROR;
    return NULL;
  }
  if (meeting->clique->size != size) {
    sim_violation("mismatched communicator", "one rank says that there are %d ranks, another %d", meeting->clique->size,
                  size);
    *error = NCCL_ABI_INVALID_USAGE;
    return NULL;
  }
  return meeting->clique;
}

/* Under the lock: the last rank has come, the id is of no use any more. */
static void end_meeting(nccl_clique *clique) {
  for (nccl_meeting *one = meetings; one != NULL; one = one->next) {
    if (one->clique != clique) continue;
    one->clique = NULL;
    one->complete = true;
    clique_release(clique);
  }
}

/* Under the lock. */
static void enter(nccl_clique *clique, int rank, sim_device *device) {
  for (int other = 0; other < clique->size; other++)
    if (clique->members[other].joined && clique->members[other].device == device)
      clique->verdict =
          nccl_fail(NCCL_ABI_INVALID_USAGE, "Duplicate GPU detected: rank %d and rank %d both on device %d", other,
                    rank, sim_device_index(device));
  clique->members[rank] = (nccl_member){.device = device, .joined = true};
  sim_lock();
  clique->references++;
  sim_unlock();
  if (++clique->joined == clique->size) end_meeting(clique);
  pthread_cond_broadcast(&somebody_came);
}

nccl_clique *clique_join(const nccl_abi_unique_id *id, nccl_clique *known, int size, int rank, sim_device *device,
                         abi_enum *error) {
  pthread_mutex_lock(&lock);
  nccl_clique *clique = id == NULL ? known : clique_at(id, size, error);
  if (clique != NULL && clique->members[rank].joined) {
    sim_violation("mismatched communicator", "rank %d of %d has come already", rank, size);
    *error = clique->verdict = NCCL_ABI_INVALID_USAGE; /* nobody need wait for the right one */
    pthread_cond_broadcast(&somebody_came);
    clique = NULL;
  }
  if (clique != NULL) enter(clique, rank, device);
  pthread_mutex_unlock(&lock);
  return clique;
}

abi_enum clique_await(nccl_clique *clique) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += sim_setup()->patience;
  pthread_mutex_lock(&lock);
  int waited = 0;
  while (clique->joined < clique->size && clique->verdict == NCCL_ABI_SUCCESS && waited != ETIMEDOUT)
    waited = pthread_cond_timedwait(&somebody_came, &lock, &end);
  if (clique->joined < clique->size && clique->verdict == NCCL_ABI_SUCCESS) {
    sim_violation("waits for ever",
                  "%d of %d ranks of a communicator came: a thread that makes several ranks needs a group",
                  clique->joined, clique->size);
    clique->verdict = NCCL_ABI_SYSTEM_ERROR;
    pthread_cond_broadcast(&somebody_came);
  }
  abi_enum verdict = clique->verdict;
  pthread_mutex_unlock(&lock);
  return verdict;
}

nccl_member *member_of(const nccl_communicator *communicator) {
  return &communicator->clique->members[communicator->rank];
}

abi_enum member_error(nccl_member *member) {
  if (member->error == NCCL_ABI_SUCCESS) return NCCL_ABI_SUCCESS;
  if (member->polls == 0) return member->error;
  member->polls--;
  return NCCL_ABI_SUCCESS;
}

void clique_fail(nccl_clique *clique, int rank, abi_enum error) {
  for (int other = 0; other < clique->size; other++) {
    nccl_member *member = &clique->members[other];
    if (member->error != NCCL_ABI_SUCCESS) continue;
    member->error = other == rank ? error : NCCL_ABI_REMOTE_ERROR;
    member->polls = 1 + (int)((sim_setup()->seed + (uint64_t)other) % 3) + (other == rank ? 0 : 1);
  }
}
