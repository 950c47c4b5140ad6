/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators: one rank's handle of a clique. */
#include "internal.h"

#include <stdlib.h>

/* Its clique is filled in when the joining is over: until then it cannot be used. */
static nccl_communicator *communicator_new(sim_device *device, int rank) {
  nccl_communicator *made = sim_new(COMMUNICATOR, sizeof *made, device);
  if (made != NULL) made->rank = rank;
  return made;
}

/* As the vendor does since 2.14: it hands communicators out when they are asked for, and takes none back by itself. */
void joining_give_up(const nccl_joining *joining) {
  clique_release(joining->clique);
}

abi_enum joining_finish(const nccl_joining *joining) {
  abi_enum status = clique_await(joining->clique);
  if (status != NCCL_ABI_SUCCESS)
    joining_give_up(joining);
  else
    joining->communicator->clique = joining->clique;
  return status;
}

static abi_enum join(nccl_communicator **result, const nccl_abi_unique_id *id, nccl_clique *known, int size, int rank,
                     sim_device *device) {
  sim_status fault = sim_count(SIM_JOIN, device);
  if (fault != SIM_OK)
    return nccl_fail(NCCL_ABI_UNHANDLED_CUDA_ERROR, "out of memory: device %d answers %d", sim_device_index(device),
                     fault);
  nccl_joining joining = {.communicator = communicator_new(device, rank)};
  if (joining.communicator == NULL) return NCCL_ABI_SYSTEM_ERROR;
  abi_enum error = NCCL_ABI_SUCCESS;
  joining.clique = clique_join(id, known, size, rank, device, &error);
  if (joining.clique == NULL) {
    sim_delete(joining.communicator);
    return error;
  }
  *result = joining.communicator;
  return group_join(&joining);
}

abi_enum ncclGetUniqueId(nccl_abi_unique_id *id) {
  SIM_CALL();
  return clique_id(id);
}

static abi_enum init_rank(nccl_communicator **result, int size, const nccl_abi_unique_id *id, int rank) {
  if (result == NULL) return nccl_fail(NCCL_ABI_INVALID_ARGUMENT, "there is no place for the communicator");
  *result = NULL;
  if (size < 1 || size > MOST_RANKS || rank < 0 || rank >= size)
    return nccl_fail(NCCL_ABI_INVALID_ARGUMENT, "there is no rank %d of %d", rank, size);
  sim_device *device = sim_current(FACE_VENDOR);
  if (device == NULL && FACE_VENDOR == SIM_HIP) device = sim_device_at(SIM_HIP, 0); /* HIP's threads begin there */
  if (device == NULL) {
    sim_violation("no current device", "a rank is on the device that is current when its communicator is made");
    return NCCL_ABI_UNHANDLED_CUDA_ERROR;
  }
  if (sim_device_health(device) != SIM_OK) return NCCL_ABI_UNHANDLED_CUDA_ERROR;
  return join(result, id, NULL, size, rank, device);
}

abi_enum ncclCommInitRank(nccl_communicator **result, int size, nccl_abi_unique_id id, int rank) {
  SIM_CALL();
  return group_error(init_rank(result, size, &id, rank));
}

/* The devices of ncclCommInitAll: none twice, all there. */
static abi_enum check_devices(int count, const int *devices) {
  for (int i = 0; i < count; i++) {
    int index = devices == NULL ? i : devices[i];
    sim_device *device = sim_device_at(FACE_VENDOR, index);
    if (device == NULL) return nccl_fail(NCCL_ABI_INVALID_ARGUMENT, "there is no device %d", index);
    if (sim_device_health(device) != SIM_OK)
      return nccl_fail(NCCL_ABI_UNHANDLED_CUDA_ERROR, "device %d is lost", index);
    for (int other = 0; devices != NULL && other < i; other++)
      if (devices[other] == index)
        return nccl_fail(NCCL_ABI_INVALID_USAGE, "Duplicate GPU detected: device %d is there twice", index);
  }
  return NCCL_ABI_SUCCESS;
}

abi_enum ncclCommInitAll(nccl_communicator **results, int count, const int *devices) {
  SIM_CALL();
  if (results == NULL || count < 1 || count > MOST_RANKS)
    return nccl_fail(NCCL_ABI_INVALID_ARGUMENT, "%d communicators are asked for", count);
  abi_enum status = check_devices(count, devices);
  if (status != NCCL_ABI_SUCCESS) return status;
  nccl_clique *clique = clique_new(count);
  if (clique == NULL) return NCCL_ABI_SYSTEM_ERROR;
  clique->references = 1; /* ours, while the ranks join */
  group_start();
  for (int rank = 0; rank < count && status == NCCL_ABI_SUCCESS; rank++) {
    sim_device *device = sim_device_at(FACE_VENDOR, devices == NULL ? rank : devices[rank]);
    status = join(&results[rank], NULL, clique, count, rank, device);
  }
  abi_enum ended = group_end();
  clique_release(clique);
  return status != NCCL_ABI_SUCCESS ? status : ended;
}

/* The rank's work goes on to be there, and ends as that of an aborted one. */
static void end_work(const nccl_communicator *communicator) {
  if (communicator->clique == NULL) return;
  sim_lock();
  member_of(communicator)->aborted = true;
  sim_unlock();
  sim_changed();
}

void communicator_end(nccl_communicator *communicator) {
  nccl_clique *clique = communicator->clique;
  end_work(communicator);
  sim_delete(communicator);
  if (clique != NULL) clique_release(clique);
}

abi_enum ncclCommDestroy(nccl_communicator *handle) {
  SIM_CALL();
  if (handle == NULL) return NCCL_ABI_SUCCESS;
  nccl_communicator *communicator = sim_check(handle, COMMUNICATOR);
  if (communicator == NULL) return NCCL_ABI_INVALID_ARGUMENT;
  sim_lock();
  bool pending = communicator->clique != NULL && member_of(communicator)->pending > 0;
  sim_unlock();
  if (pending || sim_is_pending(communicator))
    sim_violation("communicator destroyed with work pending", "nobody has waited for what rank %d was given to do",
                  communicator->rank);
  communicator_end(communicator);
  return NCCL_ABI_SUCCESS;
}

/* An abort may wait for the other ranks' one ("all active ranks are required to call this function"): a thread that has
 * several ranks needs a group, or a thread for each. In a group it is known since 2.22.3 only. */
static void check_abort(const nccl_communicator *communicator, uint64_t group) {
  enum { FIRST_GROUPED = 22203 };
  if (group_is_open() && sim_setup()->collectives < FIRST_GROUPED)
    sim_violation("abort in a group", "version %d does not know it, %d is the first that does",
                  sim_setup()->collectives, FIRST_GROUPED);
  if (communicator->clique == NULL) return;
  if (member_of(communicator)->aborted)
    sim_violation("aborted twice", "rank %d is aborted already, by the same group", communicator->rank);
  for (int rank = 0; rank < communicator->clique->size; rank++) {
    const nccl_member *other = &communicator->clique->members[rank];
    if (!other->aborted || other->aborted_by != this_thread() || other->abort_group == group) continue;
    sim_violation("ungrouped abort",
                  "one thread aborts ranks %d and %d, not in one group: the first abort may wait for the second", rank,
                  communicator->rank);
    return;
  }
}

/* The device is told at once, so that what is queued ends; the rest is done at the end of the group. */
abi_enum ncclCommAbort(nccl_communicator *handle) {
  SIM_CALL();
  if (handle == NULL) return NCCL_ABI_SUCCESS;
  nccl_communicator *communicator = sim_check(handle, COMMUNICATOR);
  if (communicator == NULL) return NCCL_ABI_INVALID_ARGUMENT;
  uint64_t group = group_number();
  sim_lock();
  check_abort(communicator, group);
  if (communicator->clique != NULL) {
    nccl_member *member = member_of(communicator);
    member->aborted_by = this_thread();
    member->abort_group = group;
  }
  sim_unlock();
  end_work(communicator);
  return group_abort(communicator);
}

abi_enum ncclCommGetAsyncError(nccl_communicator *handle, abi_enum *error) {
  SIM_CALL();
  nccl_communicator *communicator = sim_check(handle, COMMUNICATOR);
  if (communicator == NULL || error == NULL) return NCCL_ABI_INVALID_ARGUMENT;
  sim_lock();
  *error = communicator->clique == NULL ? (abi_enum)NCCL_ABI_IN_PROGRESS : member_error(member_of(communicator));
  sim_unlock();
  return NCCL_ABI_SUCCESS;
}

/* The communicator, if it can be asked; NULL: it cannot, or there is no place for the answer. */
static nccl_communicator *ready(const nccl_communicator *handle, const int *answer) {
  nccl_communicator *communicator = sim_check(handle, COMMUNICATOR);
  if (communicator == NULL || answer == NULL) return NULL;
  if (communicator->clique != NULL) return communicator;
  sim_violation("communicator not ready", "it is asked before the end of the group that makes it");
  return NULL;
}

abi_enum ncclCommCount(nccl_communicator *handle, int *count) {
  SIM_CALL();
  nccl_communicator *communicator = ready(handle, count);
  if (communicator == NULL) return NCCL_ABI_INVALID_ARGUMENT;
  *count = communicator->clique->size;
  return NCCL_ABI_SUCCESS;
}

abi_enum ncclCommCuDevice(nccl_communicator *handle, int *device) {
  SIM_CALL();
  nccl_communicator *communicator = ready(handle, device);
  if (communicator == NULL) return NCCL_ABI_INVALID_ARGUMENT;
  *device = sim_device_index(communicator->object.device);
  return NCCL_ABI_SUCCESS;
}

abi_enum ncclCommUserRank(nccl_communicator *handle, int *rank) {
  SIM_CALL();
  nccl_communicator *communicator = ready(handle, rank);
  if (communicator == NULL) return NCCL_ABI_INVALID_ARGUMENT;
  *rank = communicator->rank;
  return NCCL_ABI_SUCCESS;
}
