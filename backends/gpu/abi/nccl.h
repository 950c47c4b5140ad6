/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL (libnccl.so.2) and RCCL (librccl.so.1): the same names, values and layouts for both, only their streams have
 * different tags. RCCL's users define NCCL_ABI_STREAM as ihipStream_t before they include this.
 * ncclCommInitRankConfig is left out on purpose: its struct grows with the versions. */
#ifndef ABI_NCCL_H
#define ABI_NCCL_H

#include "common.h"

#ifndef NCCL_ABI_STREAM
#define NCCL_ABI_STREAM CUstream_st
#endif

struct ncclComm;
struct NCCL_ABI_STREAM;

/* Handed to ncclCommInitRank by value, so that its size is part of the interface. The vendor's struct has no tag, which
 * is why the comparison with its header takes the header's. */
enum { NCCL_ABI_UNIQUE_ID_BYTES = 128 };
#ifdef NCCL_UNIQUE_ID_BYTES
typedef ncclUniqueId nccl_abi_unique_id;
#else
typedef struct nccl_abi_unique_id {
  char internal[NCCL_ABI_UNIQUE_ID_BYTES];
} nccl_abi_unique_id;
#endif

enum {
  NCCL_ABI_SUCCESS = 0,
  NCCL_ABI_UNHANDLED_CUDA_ERROR = 1,
  NCCL_ABI_SYSTEM_ERROR = 2,
  NCCL_ABI_INTERNAL_ERROR = 3,
  NCCL_ABI_INVALID_ARGUMENT = 4,
  NCCL_ABI_INVALID_USAGE = 5,
  NCCL_ABI_REMOTE_ERROR = 6,
  NCCL_ABI_IN_PROGRESS = 7, /* since 2.14 */
};

enum {
  NCCL_ABI_INT8 = 0,
  NCCL_ABI_UINT8 = 1,
  NCCL_ABI_INT32 = 2,
  NCCL_ABI_UINT32 = 3,
  NCCL_ABI_INT64 = 4,
  NCCL_ABI_UINT64 = 5,
  NCCL_ABI_FLOAT16 = 6,
  NCCL_ABI_FLOAT32 = 7,
  NCCL_ABI_FLOAT64 = 8,
  NCCL_ABI_BFLOAT16 = 9,
  NCCL_ABI_FLOAT8_E4M3 = 10,
  NCCL_ABI_FLOAT8_E5M2 = 11,
  NCCL_ABI_TYPES = 12,
};

enum {
  NCCL_ABI_SUM = 0,
  NCCL_ABI_PRODUCT = 1,
  NCCL_ABI_MAXIMUM = 2,
  NCCL_ABI_MINIMUM = 3,
  NCCL_ABI_AVERAGE = 4, /* since 2.10 */
  NCCL_ABI_OPERATORS = 5,
};

/* What every version has that we use. */
#define NCCL_FUNCTIONS(X)                                                                                              \
  X(abi_enum, ncclGetVersion, (int *version))                                                                          \
  X(abi_enum, ncclGetUniqueId, (nccl_abi_unique_id * id))                                                              \
  X(abi_enum, ncclCommInitRank, (struct ncclComm * *communicator, int ranks, nccl_abi_unique_id id, int rank))         \
  X(abi_enum, ncclCommDestroy, (struct ncclComm * communicator))                                                       \
  X(abi_enum, ncclCommAbort, (struct ncclComm * communicator))                                                         \
  X(abi_enum, ncclCommGetAsyncError, (struct ncclComm * communicator, abi_enum * error))                               \
  X(const char *, ncclGetErrorString, (abi_enum result))                                                               \
  X(abi_enum, ncclGroupStart, (void))                                                                                  \
  X(abi_enum, ncclGroupEnd, (void))                                                                                    \
  X(abi_enum, ncclAllReduce,                                                                                           \
    (const void *send, void *receive, size_t count, abi_enum type, abi_enum reduction, struct ncclComm *communicator,  \
     struct NCCL_ABI_STREAM *stream))                                                                                  \
  X(abi_enum, ncclBroadcast,                                                                                           \
    (const void *send, void *receive, size_t count, abi_enum type, int root, struct ncclComm *communicator,            \
     struct NCCL_ABI_STREAM *stream))                                                                                  \
  X(abi_enum, ncclReduce,                                                                                              \
    (const void *send, void *receive, size_t count, abi_enum type, abi_enum reduction, int root,                       \
     struct ncclComm *communicator, struct NCCL_ABI_STREAM *stream))                                                   \
  X(abi_enum, ncclAllGather,                                                                                           \
    (const void *send, void *receive, size_t send_count, abi_enum type, struct ncclComm *communicator,                 \
     struct NCCL_ABI_STREAM *stream))                                                                                  \
  X(abi_enum, ncclReduceScatter,                                                                                       \
    (const void *send, void *receive, size_t receive_count, abi_enum type, abi_enum reduction,                         \
     struct ncclComm *communicator, struct NCCL_ABI_STREAM *stream))

/* Nobody but tests calls these. */
#define NCCL_OTHER_FUNCTIONS(X)                                                                                        \
  X(abi_enum, ncclCommInitAll, (struct ncclComm * *communicators, int count, const int *devices))                      \
  X(abi_enum, ncclCommCount, (struct ncclComm * communicator, int *count))                                             \
  X(abi_enum, ncclCommCuDevice, (struct ncclComm * communicator, int *device))                                         \
  X(abi_enum, ncclCommUserRank, (struct ncclComm * communicator, int *rank))                                           \
  X(abi_enum, ncclSend,                                                                                                \
    (const void *send, size_t count, abi_enum type, int peer, struct ncclComm *communicator,                           \
     struct NCCL_ABI_STREAM *stream))                                                                                  \
  X(abi_enum, ncclRecv,                                                                                                \
    (void *receive, size_t count, abi_enum type, int peer, struct ncclComm *communicator,                              \
     struct NCCL_ABI_STREAM *stream))

/* Absent before 2.13, and done without there. */
#define NCCL_OPTIONAL_FUNCTIONS(X) X(const char *, ncclGetLastError, (struct ncclComm * communicator))

#endif
