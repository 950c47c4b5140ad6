/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: between ncclGroupStart and the ncclGroupEnd that belongs to it a thread's calls are only recorded. Groups
 * nest, the outermost counts. */
#include "internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* One that is never ended is found among the objects that are left. */
#define OPEN_GROUP "ncclGroup that was not ended"

typedef struct group {
  int depth;
  uint64_t number;
  abi_enum error; /* the first in it */
  nccl_joining *joinings;
  nccl_request *requests;
  nccl_communicator **aborts;
  size_t joining_count, request_count, abort_count;
} nccl_group;

static _Thread_local nccl_group open_group;
static _Thread_local sim_object *mark;
static atomic_ullong groups_started;

/* A thread has one mark for all of its groups: a training opens too many for an object each. */
static void set_mark(bool live) {
  sim_lock();
  if (mark == NULL)
    mark = sim_new(OPEN_GROUP, sizeof *mark, NULL);
  else
    mark->live = live;
  sim_unlock();
}

void group_start(void) {
  if (open_group.depth++ > 0) return;
  open_group.number = atomic_fetch_add(&groups_started, 1);
  set_mark(true);
}

bool group_is_open(void) {
  return open_group.depth > 0;
}

uint64_t group_number(void) {
  return group_is_open() ? open_group.number : atomic_fetch_add(&groups_started, 1);
}

abi_enum ncclGroupStart(void) {
  SIM_CALL();
  group_start();
  return NCCL_ABI_SUCCESS;
}

/* Room for one more; NULL: no memory. */
static void *grow(void *array, size_t count, size_t size) {
  bool full = (count & (count - 1)) == 0; /* room is a power of two */
  return full ? realloc(array, (count == 0 ? 1 : 2 * count) * size) : array;
}

abi_enum group_error(abi_enum error) {
  if (open_group.depth > 0 && open_group.error == NCCL_ABI_SUCCESS) open_group.error = error;
  return error;
}

abi_enum group_request(const nccl_request *request) {
  abi_enum status = request_check(request);
  if (status != NCCL_ABI_SUCCESS) return group_error(status);
  if (open_group.depth == 0) return operations_start(request, 1, group_number());
  void *room = grow(open_group.requests, open_group.request_count, sizeof *request);
  if (room == NULL) return group_error(NCCL_ABI_SYSTEM_ERROR);
  open_group.requests = room;
  open_group.requests[open_group.request_count++] = *request;
  return NCCL_ABI_SUCCESS;
}

abi_enum group_join(const nccl_joining *joining) {
  if (open_group.depth == 0) return joining_finish(joining);
  void *room = grow(open_group.joinings, open_group.joining_count, sizeof *joining);
  if (room == NULL) {
    joining_give_up(joining);
    return group_error(NCCL_ABI_SYSTEM_ERROR);
  }
  open_group.joinings = room;
  open_group.joinings[open_group.joining_count++] = *joining;
  return NCCL_ABI_SUCCESS;
}

abi_enum group_abort(nccl_communicator *communicator) {
  if (open_group.depth == 0) {
    communicator_end(communicator);
    return NCCL_ABI_SUCCESS;
  }
  void *room = grow(open_group.aborts, open_group.abort_count, sizeof communicator);
  if (room == NULL) return group_error(NCCL_ABI_SYSTEM_ERROR);
  open_group.aborts = room;
  open_group.aborts[open_group.abort_count++] = communicator;
  return NCCL_ABI_SUCCESS;
}

static bool belong_together(const nccl_request *one, const nccl_request *other) {
  return is_transfer(one) && is_transfer(other) && one->communicator == other->communicator &&
         one->stream == other->stream;
}

/* Sends and receives of a group proceed together, wherever they stand in it: behind the first of them. */
static size_t bring_together(nccl_request *requests, size_t count) {
  size_t together = 1;
  for (size_t i = 1; i < count; i++) {
    if (!belong_together(&requests[0], &requests[i])) continue;
    nccl_request moved = requests[i];
    memmove(&requests[together + 1], &requests[together], (i - together) * sizeof *requests);
    requests[together++] = moved;
  }
  return together;
}

static abi_enum start_all(nccl_group *group) {
  abi_enum status = NCCL_ABI_SUCCESS;
  for (size_t i = 0; i < group->request_count;) {
    size_t together = bring_together(&group->requests[i], group->request_count - i);
    abi_enum one = operations_start(&group->requests[i], together, group->number);
    if (status == NCCL_ABI_SUCCESS) status = one;
    i += together;
  }
  return status;
}

/* Joining goes before everything else, aborting behind it. */
static abi_enum end(nccl_group *group) {
  abi_enum status = group->error;
  for (size_t i = 0; i < group->joining_count; i++) {
    abi_enum one = NCCL_ABI_SUCCESS;
    if (group->error != NCCL_ABI_SUCCESS)
      joining_give_up(&group->joinings[i]);
    else
      one = joining_finish(&group->joinings[i]);
    if (status == NCCL_ABI_SUCCESS) status = one;
  }
  if (status == NCCL_ABI_SUCCESS) status = start_all(group);
  for (size_t i = 0; i < group->abort_count && status == NCCL_ABI_SUCCESS; i++) communicator_end(group->aborts[i]);
  return status;
}

abi_enum group_end(void) {
  if (--open_group.depth > 0) return NCCL_ABI_SUCCESS;
  nccl_group group = open_group;
  open_group = (struct group){0};
  abi_enum status = end(&group);
  set_mark(false);
  free(group.joinings);
  free(group.requests);
  free(group.aborts);
  return status;
}

abi_enum ncclGroupEnd(void) {
  SIM_CALL();
  if (open_group.depth > 0) return group_end();
  sim_violation("group ended twice", "ncclGroupEnd without an ncclGroupStart");
  return NCCL_ABI_INVALID_USAGE;
}
