/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for NCCL and, compiled once more, for RCCL: the collective calls. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of all threads, as with the vendor: it may have nothing to do with the call that failed last. */
static char last_error[256];

abi_enum nccl_fail(abi_enum status, const char *format, ...) {
  va_list values;
  va_start(values, format);
  sim_lock();
  vsnprintf(last_error, sizeof last_error, format, values);
  sim_unlock();
  va_end(values);
  return status;
}

abi_enum ncclGetVersion(int *version) {
  SIM_CALL();
  if (version == NULL) return NCCL_ABI_INVALID_ARGUMENT;
  *version = sim_setup()->collectives;
  return NCCL_ABI_SUCCESS;
}

const char *ncclGetErrorString(abi_enum result) {
  static const char *const texts[] = {
      "no error",
      "unhandled cuda error (gpusim)",
      "unhandled system error (gpusim)",
      "internal error",
      "invalid argument",
      "invalid usage",
      "remote process exited or there was a network error",
      "NCCL operation in progress",
  };
  return result < sizeof texts / sizeof *texts ? texts[result] : "unknown result code";
}

/* The vendor hands its own text out, which other threads may be writing; here it is the thread's copy. */
const char *ncclGetLastError(nccl_communicator *communicator) {
  static _Thread_local char copy[sizeof last_error];
  SIM_CALL();
  (void)communicator; /* the vendor does not look at it either, and it may be NULL */
  sim_lock();
  memcpy(copy, last_error, sizeof copy);
  sim_unlock();
  return copy;
}

abi_enum ncclAllReduce(const void *send, void *receive, size_t count, abi_enum type, abi_enum reduction,
                       nccl_communicator *communicator, struct CUstream_st *stream) {
  SIM_CALL();
  return group_request(
      &(nccl_request){ALL_REDUCE, __func__, send, receive, count, type, reduction, 0, communicator, stream});
}

abi_enum ncclBroadcast(const void *send, void *receive, size_t count, abi_enum type, int root,
                       nccl_communicator *communicator, struct CUstream_st *stream) {
  SIM_CALL();
  return group_request(&(nccl_request){BROADCAST, __func__, send, receive, count, type, 0, root, communicator, stream});
}

abi_enum ncclReduce(const void *send, void *receive, size_t count, abi_enum type, abi_enum reduction, int root,
                    nccl_communicator *communicator, struct CUstream_st *stream) {
  SIM_CALL();
  return group_request(
      &(nccl_request){REDUCE, __func__, send, receive, count, type, reduction, root, communicator, stream});
}

abi_enum ncclAllGather(const void *send, void *receive, size_t count, abi_enum type, nccl_communicator *communicator,
                       struct CUstream_st *stream) {
  SIM_CALL();
  return group_request(&(nccl_request){ALL_GATHER, __func__, send, receive, count, type, 0, 0, communicator, stream});
}

abi_enum ncclReduceScatter(const void *send, void *receive, size_t count, abi_enum type, abi_enum reduction,
                           nccl_communicator *communicator, struct CUstream_st *stream) {
  SIM_CALL();
  return group_request(
      &(nccl_request){REDUCE_SCATTER, __func__, send, receive, count, type, reduction, 0, communicator, stream});
}

abi_enum ncclSend(const void *send, size_t count, abi_enum type, int peer, nccl_communicator *communicator,
                  struct CUstream_st *stream) {
  SIM_CALL();
  return group_request(&(nccl_request){SEND, __func__, send, NULL, count, type, 0, peer, communicator, stream});
}

abi_enum ncclRecv(void *receive, size_t count, abi_enum type, int peer, nccl_communicator *communicator,
                  struct CUstream_st *stream) {
  SIM_CALL();
  return group_request(&(nccl_request){RECEIVE, __func__, NULL, receive, count, type, 0, peer, communicator, stream});
}
