/* SPDX-License-Identifier: Apache-2.0 */
/* What a call asks for: how many bytes it reads and writes, and whether its arguments are right. What the vendor
 * answers with a status is one; what would end in a hang or in wrong numbers is a violation. */
#include "internal.h"

size_t type_size(abi_enum type) {
  static const unsigned char sizes[NCCL_ABI_TYPES] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type < NCCL_ABI_TYPES ? sizes[type] : 0;
}

bool is_transfer(const nccl_request *request) {
  return request->call == SEND || request->call == RECEIVE;
}

bool is_reducing(nccl_call call) {
  return call == ALL_REDUCE || call == REDUCE || call == REDUCE_SCATTER;
}

size_t send_bytes(const nccl_request *request, int rank, int ranks) {
  size_t bytes = request->count * type_size(request->type);
  switch (request->call) {
  case BROADCAST:
    return rank == request->root ? bytes : 0;
  case REDUCE_SCATTER:
    return bytes * (size_t)ranks;
  case RECEIVE:
    return 0;
  default:
    return bytes;
  }
}

size_t receive_bytes(const nccl_request *request, int rank, int ranks) {
  size_t bytes = request->count * type_size(request->type);
  switch (request->call) {
  case REDUCE:
    return rank == request->root ? bytes : 0;
  case ALL_GATHER:
    return bytes * (size_t)ranks;
  case SEND:
    return 0;
  default:
    return bytes;
  }
}

static bool has_root(nccl_call call) {
  return call != ALL_REDUCE && call != ALL_GATHER && call != REDUCE_SCATTER;
}

static abi_enum check_numbers(const nccl_request *request, int ranks) {
  if (request->type >= NCCL_ABI_TYPES)
    return nccl_fail(NCCL_ABI_INVALID_ARGUMENT, "%s: there is no type %u", request->name, request->type);
  if (is_reducing(request->call) && request->reduction >= NCCL_ABI_OPERATORS)
    return nccl_fail(NCCL_ABI_INVALID_ARGUMENT, "%s: there is no reduction %u", request->name, request->reduction);
  if (is_reducing(request->call) && request->type >= NCCL_ABI_FLOAT8_E4M3)
    return nccl_fail(NCCL_ABI_INVALID_ARGUMENT, "%s: this device does not reduce numbers of 8 bits with a fraction",
                     request->name);
  if (has_root(request->call) && (request->root < 0 || request->root >= ranks))
    return nccl_fail(NCCL_ABI_INVALID_ARGUMENT, "%s: there is no rank %d among %d", request->name, request->root,
                     ranks);
  if (request->count > SIZE_MAX / 8 / (size_t)ranks)
    return nccl_fail(NCCL_ABI_INVALID_ARGUMENT, "%s: %zu elements", request->name, request->count);
  return NCCL_ABI_SUCCESS;
}

/* Where the vendor lets a call work in place: the result begins where the rank's own share of the input lies. */
static bool is_in_place(const nccl_request *request, int rank) {
  const char *send = request->send, *receive = request->receive;
  size_t share = request->count * type_size(request->type) * (size_t)rank;
  switch (request->call) {
  case ALL_GATHER:
    return send == receive + share;
  case REDUCE_SCATTER:
    return receive == send + share;
  default:
    return send == receive;
  }
}

static bool overlap(const nccl_request *request, size_t send_size, size_t receive_size) {
  uintptr_t send = (uintptr_t)request->send, receive = (uintptr_t)request->receive;
  return send < receive + receive_size && receive < send + send_size;
}

static abi_enum check_buffers(const nccl_request *request) {
  const nccl_communicator *communicator = request->communicator;
  int rank = communicator->rank, ranks = communicator->clique->size;
  size_t send_size = send_bytes(request, rank, ranks), receive_size = receive_bytes(request, rank, ranks);
  sim_device *device = member_of(communicator)->device;
  if (send_size > 0 && sim_twin(device, request->send, send_size, "the send buffer") == NULL)
    return NCCL_ABI_INVALID_ARGUMENT;
  if (receive_size > 0 && sim_twin(device, request->receive, receive_size, "the receive buffer") == NULL)
    return NCCL_ABI_INVALID_ARGUMENT;
  if (send_size > 0 && receive_size > 0 && overlap(request, send_size, receive_size) && !is_in_place(request, rank)) {
    sim_violation("overlapping buffers", "%zu bytes are sent from %p and %zu received at %p, of rank %d", send_size,
                  request->send, receive_size, request->receive, rank);
    return NCCL_ABI_INVALID_ARGUMENT;
  }
  return NCCL_ABI_SUCCESS;
}

/* Since 2.22 only the first call takes memory for buffers. */
static abi_enum connect(const nccl_request *request, nccl_member *member) {
  sim_status fault = member->connected ? SIM_OK : sim_count(SIM_CONNECT, member->device);
  if (fault != SIM_OK)
    return nccl_fail(NCCL_ABI_UNHANDLED_CUDA_ERROR, "%s: no memory for buffers: device %d answers %d", request->name,
                     sim_device_index(member->device), fault);
  member->connected = true;
  return NCCL_ABI_SUCCESS;
}

abi_enum request_check(const nccl_request *request) {
  const nccl_communicator *communicator = sim_check(request->communicator, COMMUNICATOR);
  if (communicator == NULL) return NCCL_ABI_INVALID_ARGUMENT;
  if (communicator->clique == NULL) {
    sim_violation("communicator not ready", "it is made in the same group that uses it");
    return NCCL_ABI_INVALID_ARGUMENT;
  }
  nccl_member *member = member_of(communicator);
  if (sim_device_health(member->device) != SIM_OK)
    return nccl_fail(NCCL_ABI_UNHANDLED_CUDA_ERROR, "%s: device %d is lost", request->name,
                     sim_device_index(member->device));
  abi_enum status = check_numbers(request, communicator->clique->size);
  if (status != NCCL_ABI_SUCCESS) return status;
  if (sim_stream_of(member->device, request->stream) == NULL) return NCCL_ABI_INVALID_ARGUMENT;
  status = check_buffers(request);
  return status == NCCL_ABI_SUCCESS ? connect(request, member) : status;
}
