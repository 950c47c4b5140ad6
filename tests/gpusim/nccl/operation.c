/* SPDX-License-Identifier: Apache-2.0 */
/* What several ranks do together: a collective call of all of them, or a send and its receive. Each rank's part is work
 * in its stream. It arrives when it is at the head of that stream, and when all parts have arrived the operation is
 * done, once, by the thread that comes first. */
#include "internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct part {
  nccl_request request;
  int rank;
  uint64_t thread; /* that asked for it … */
  uint64_t group;  /* … in this group */
  bool asked, arrived;
} nccl_part;

typedef struct operation {
  struct operation *next;
  nccl_clique *clique;
  uint64_t number;
  int from, to; /* of a send and its receive; -1: collective */
  int wanted;   /* parts */
  int asked, arrived, released;
  bool dead;            /* a rank failed or left: the others wait until they abort */
  bool broken;          /* after a violation: nobody waits */
  bool done;            /* guarded by both locks */
  pthread_mutex_t busy; /* held by the thread that does it; others who see that it is ready wait here */
  nccl_part parts[];    /* by rank, or of the sender and the receiver */
} nccl_operation;

/* A rank's work: parts that proceed together. */
typedef struct batch {
  nccl_clique *clique;
  int rank;
  size_t count;
  struct batch_entry {
    nccl_operation *operation;
    nccl_part *part;
  } entries[];
} nccl_batch;

/* ---------------------------------------------------------------------------------------------------------------------
 * Doing it
 */

/* The parts' buffers where the emulator can reach them; false after a violation, such as memory that was freed. */
static bool find_buffers(nccl_operation *operation, const char **sends, char **receives) {
  int ranks = operation->clique->size;
  for (int i = 0; i < operation->wanted; i++) {
    const nccl_part *part = &operation->parts[i];
    sim_device *device = operation->clique->members[part->rank].device;
    size_t send_size = send_bytes(&part->request, part->rank, ranks);
    size_t receive_size = receive_bytes(&part->request, part->rank, ranks);
    sends[i] = NULL, receives[i] = NULL;
    sim_call(part->request.name);
    if (send_size > 0 && (sends[i] = sim_twin(device, part->request.send, send_size, "the send buffer")) == NULL)
      return false;
    if (receive_size > 0 &&
        (receives[i] = sim_twin(device, part->request.receive, receive_size, "the receive buffer")) == NULL)
      return false;
  }
  return true;
}

static void gather(nccl_operation *operation, size_t bytes, const char **sends, char **receives) {
  for (int to = 0; to < operation->wanted; to++)
    for (int from = 0; from < operation->wanted; from++)
      memmove(receives[to] + (size_t)from * bytes, sends[from], bytes);
}

static void reduce_and_scatter(nccl_operation *operation, const nccl_reduction *how, size_t bytes, const char **sends,
                               char **receives) {
  for (int to = 0; to < operation->wanted; to++) {
    const char *shares[MOST_RANKS];
    for (int from = 0; from < operation->wanted; from++) shares[from] = sends[from] + (size_t)to * bytes;
    reduce(how, shares, operation->parts[to].request.count, &receives[to], 1);
  }
}

static void perform(nccl_operation *operation) {
  const char *sends[MOST_RANKS];
  char *receives[MOST_RANKS];
  if (!find_buffers(operation, sends, receives)) return;
  const nccl_request *request = &operation->parts[0].request;
  size_t bytes = request->count * type_size(request->type);
  nccl_reduction how = {request->type, request->reduction, operation->wanted, operation->number};
  if (bytes == 0) return;
  switch (request->call) {
  case ALL_REDUCE:
    reduce(&how, sends, request->count, receives, operation->wanted);
    break;
  case REDUCE:
    reduce(&how, sends, request->count, &receives[request->root], 1);
    break;
  case REDUCE_SCATTER:
    reduce_and_scatter(operation, &how, bytes, sends, receives);
    break;
  case ALL_GATHER:
    gather(operation, bytes, sends, receives);
    break;
  case BROADCAST:
    for (int to = 0; to < operation->wanted; to++) memmove(receives[to], sends[request->root], bytes);
    break;
  case SEND:
  case RECEIVE:
    memmove(receives[1], sends[0], bytes);
    break;
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * A rank's work
 */

static bool part_is_ready(const nccl_batch *batch, nccl_operation *operation, nccl_part *part) {
  if (!part->arrived) {
    part->arrived = true;
    if (++operation->arrived == operation->wanted) sim_changed();
  }
  if (operation->done || operation->broken || batch->clique->members[batch->rank].aborted) return true;
  return !operation->dead && operation->arrived == operation->wanted;
}

static bool batch_is_ready(void *argument) {
  nccl_batch *batch = argument;
  bool ready = true;
  for (size_t i = 0; i < batch->count; i++)
    ready &= part_is_ready(batch, batch->entries[i].operation, batch->entries[i].part);
  return ready;
}

/* What an aborted collective leaves in its result is anything. */
static void spoil(const nccl_batch *batch, const nccl_part *part) {
  size_t bytes = receive_bytes(&part->request, batch->rank, batch->clique->size);
  if (bytes == 0) return;
  sim_call(part->request.name);
  void *receive =
      sim_twin(batch->clique->members[batch->rank].device, part->request.receive, bytes, "the receive buffer");
  if (receive != NULL) memset(receive, 0xFF, bytes);
}

/* Whether the collective still takes place is settled by the first rank that comes to it, for the results of all. */
static void part_run(const nccl_batch *batch, nccl_operation *operation, const nccl_part *part) {
  pthread_mutex_lock(&operation->busy);
  sim_lock();
  bool done = operation->done;
  bool possible = !operation->dead && !operation->broken && operation->arrived == operation->wanted;
  sim_unlock();
  if (!done && possible) {
    perform(operation);
    sim_lock();
    operation->done = true;
    sim_unlock();
    sim_changed();
  } else if (!done) {
    spoil(batch, part);
  }
  pthread_mutex_unlock(&operation->busy);
}

static sim_status batch_run(void *argument) {
  nccl_batch *batch = argument;
  for (size_t i = 0; i < batch->count; i++) part_run(batch, batch->entries[i].operation, batch->entries[i].part);
  return SIM_OK;
}

/* The emulator counts those that some ranks have asked for and others not. Under its mutex. */
static bool is_amid(const nccl_operation *operation) {
  return operation->asked > 0 && operation->asked < operation->wanted;
}

static void count_asked(nccl_operation *operation) {
  bool before = is_amid(operation);
  operation->asked++;
  sim_count_amid(is_amid(operation) - before);
}

/* Under the emulator's mutex. */
static void operation_delete(nccl_operation *operation) {
  sim_count_amid(-is_amid(operation));
  struct operation **link = &operation->clique->operations;
  while (*link != operation) link = &(*link)->next;
  *link = operation->next;
  pthread_mutex_destroy(&operation->busy);
  free(operation);
}

static void batch_release(void *argument) {
  nccl_batch *batch = argument;
  sim_lock();
  for (size_t i = 0; i < batch->count; i++) {
    nccl_operation *operation = batch->entries[i].operation;
    if (!operation->done) operation->dead = true;
    if (++operation->released == operation->wanted) operation_delete(operation);
  }
  batch->clique->members[batch->rank].pending--;
  sim_unlock();
  clique_release(batch->clique);
  free(batch);
}

void operations_forget(nccl_clique *clique) {
  while (clique->operations != NULL) operation_delete(clique->operations);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Which operation a request is part of
 */

/* Of an operation that the rank takes part in; NULL: it does not. */
static nccl_part *part_of(nccl_operation *operation, const nccl_request *request) {
  int rank = request->communicator->rank;
  if (!is_transfer(request)) return operation->from < 0 ? &operation->parts[rank] : NULL;
  int from = request->call == SEND ? rank : request->root, to = request->call == SEND ? request->root : rank;
  if (operation->from != from || operation->to != to) return NULL;
  return &operation->parts[request->call == SEND ? 0 : 1];
}

static nccl_operation *operation_new(const nccl_request *request) {
  nccl_clique *clique = request->communicator->clique;
  int rank = request->communicator->rank, wanted = is_transfer(request) ? 2 : clique->size;
  nccl_operation *made = calloc(1, sizeof *made + (size_t)wanted * sizeof(nccl_part));
  if (made == NULL) return NULL;
  *made = (nccl_operation){.clique = clique, .number = clique->started++, .from = -1, .to = -1, .wanted = wanted};
  if (is_transfer(request)) {
    made->from = request->call == SEND ? rank : request->root;
    made->to = request->call == SEND ? request->root : rank;
  }
  pthread_mutex_init(&made->busy, NULL);
  struct operation **link = &clique->operations;
  while (*link != NULL) link = &(*link)->next;
  *link = made;
  return made;
}

/* The oldest that waits for this request. */
static nccl_operation *operation_for(const nccl_request *request, nccl_part **place) {
  for (nccl_operation *one = request->communicator->clique->operations; one != NULL; one = one->next) {
    *place = part_of(one, request);
    if (*place != NULL && !(*place)->asked) return one;
  }
  nccl_operation *made = operation_new(request);
  if (made != NULL) *place = part_of(made, request);
  return made;
}

/* NULL: the same is asked for. */
static const char *difference(const nccl_request *one, const nccl_request *other) {
  if (one->count != other->count) return "counts";
  if (one->type != other->type) return "types";
  if (is_transfer(one)) return NULL;
  if (one->call != other->call) return "calls";
  if (is_reducing(one->call) && one->reduction != other->reduction) return "reductions";
  if ((one->call == BROADCAST || one->call == REDUCE) && one->root != other->root) return "roots";
  return NULL;
}

/* Compares a part with those that were there before. */
static bool agrees(const nccl_operation *operation, const nccl_part *part) {
  for (int i = 0; i < operation->wanted; i++) {
    const struct part *other = &operation->parts[i];
    if (!other->asked || other == part) continue;
    const nccl_request *one = &part->request, *two = &other->request;
    const char *what = difference(one, two);
    if (what != NULL) {
      sim_violation(
          "mismatched collective",
          "different %s: rank %d asks for %s of %zu of type %u, reduction %u, root or peer %d; rank %d for %s of "
          "%zu of type %u, reduction %u, root or peer %d",
          what, part->rank, one->name, one->count, one->type, one->reduction, one->root, other->rank, two->name,
          two->count, two->type, two->reduction, two->root);
      return false;
    }
    if (other->thread == part->thread && other->group != part->group) {
      sim_violation("ungrouped collective",
                    "one thread calls %s for ranks %d and %d, not in one group: the first call may wait for the second",
                    one->name, other->rank, part->rank);
      return false;
    }
  }
  return true;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Starting
 */

uint64_t this_thread(void) {
  static atomic_uint_fast64_t threads;
  static _Thread_local uint64_t own;
  if (own == 0) own = atomic_fetch_add(&threads, 1) + 1;
  return own;
}

/* Under the emulator's mutex. */
static abi_enum enroll(struct batch_entry *entry, const nccl_request *request, uint64_t group) {
  entry->operation = operation_for(request, &entry->part);
  if (entry->operation == NULL) return NCCL_ABI_SYSTEM_ERROR;
  *entry->part = (nccl_part){*request, request->communicator->rank, this_thread(), group, .asked = true};
  count_asked(entry->operation);
  if (!agrees(entry->operation, entry->part)) {
    entry->operation->broken = true;
    sim_changed();
  }
  return NCCL_ABI_SUCCESS;
}

/* A failure on demand shows later, as real ones do, unless it took the device along. */
static abi_enum meet_faults(const nccl_batch *batch, sim_device *device) {
  for (size_t i = 0; i < batch->count; i++) {
    if (sim_count(SIM_COLLECTIVE, device) == SIM_OK) continue;
    batch->entries[i].operation->dead = true;
    if (sim_device_health(device) != SIM_OK)
      return nccl_fail(NCCL_ABI_UNHANDLED_CUDA_ERROR, "device %d is lost", sim_device_index(device));
    clique_fail(batch->clique, batch->rank, NCCL_ABI_UNHANDLED_CUDA_ERROR);
  }
  return NCCL_ABI_SUCCESS;
}

static nccl_batch *batch_new(const nccl_request *requests, size_t count) {
  nccl_batch *made = calloc(1, sizeof *made + count * sizeof *made->entries);
  if (made == NULL) return NULL;
  made->clique = requests->communicator->clique;
  made->rank = requests->communicator->rank;
  made->clique->references++;
  made->clique->members[made->rank].pending++;
  return made;
}

/* What a rank's requests read and write; its communicator is needed as well. */
static sim_access *list_accesses(const nccl_request *requests, size_t count, size_t *accesses) {
  sim_access *list = calloc(2 * count + 1, sizeof *list), *to = list;
  int rank = requests->communicator->rank, ranks = requests->communicator->clique->size;
  for (size_t i = 0; list != NULL && i < count; i++) {
    const nccl_request *one = &requests[i];
    *to++ = (sim_access){"the send buffer", one->send, send_bytes(one, rank, ranks), .written = false};
    *to++ = (sim_access){"the receive buffer", one->receive, receive_bytes(one, rank, ranks), .written = true};
  }
  if (list != NULL) *to = (sim_access){"the communicator", requests->communicator, 1, .written = false};
  *accesses = list != NULL ? 2 * count + 1 : 0;
  return list;
}

abi_enum operations_start(const nccl_request *requests, size_t count, uint64_t group) {
  nccl_communicator *communicator = sim_check(requests->communicator, COMMUNICATOR);
  if (communicator == NULL) return NCCL_ABI_INVALID_ARGUMENT;
  nccl_member *member = member_of(communicator);
  sim_stream *stream = sim_stream_of(member->device, requests->stream);
  if (stream == NULL) return NCCL_ABI_INVALID_ARGUMENT;

  sim_lock();
  abi_enum status = member_error(member); /* as the vendor does, whose calls ask themselves */
  nccl_batch *batch = status == NCCL_ABI_SUCCESS ? batch_new(requests, count) : NULL;
  if (batch == NULL) {
    sim_unlock();
    return status != NCCL_ABI_SUCCESS ? status : NCCL_ABI_SYSTEM_ERROR;
  }
  for (size_t i = 0; i < count && status == NCCL_ABI_SUCCESS; i++) {
    status = enroll(&batch->entries[i], &requests[i], group);
    if (status == NCCL_ABI_SUCCESS) batch->count++;
  }
  if (status == NCCL_ABI_SUCCESS) status = meet_faults(batch, member->device);
  sim_unlock();

  if (status != NCCL_ABI_SUCCESS) {
    batch_release(batch);
    return status;
  }
  sim_work work = {requests->name, batch, batch_run, batch_is_ready, batch_release};
  size_t access_count;
  sim_access *accesses = list_accesses(requests, count, &access_count);
  sim_status queued = sim_queue_with(stream, &work, accesses, access_count);
  free(accesses);
  return queued == SIM_OK ? NCCL_ABI_SUCCESS : nccl_fail(NCCL_ABI_UNHANDLED_CUDA_ERROR, "nothing can be queued");
}
