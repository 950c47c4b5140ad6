/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes with streams, events and contexts, through CUDA's driver. */
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 1000 }; /* no multiple of the alignment */

static void deleted_stream(bool wrong) {
  cuda_open(1);
  struct CUstream_st *stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  if (!wrong) NEED(cuStreamSynchronize(stream));
  NEED(cuStreamDestroy_v2(stream));
  if (wrong) cuStreamSynchronize(stream);
  cuda_close(1);
}

static void deleted_event(bool wrong) {
  cuda_open(1);
  struct CUevent_st *event = cuda_event();
  if (!wrong) NEED(cuEventRecord(event, NULL));
  NEED(cuEventDestroy_v2(event));
  if (wrong) cuEventRecord(event, NULL);
  cuda_close(1);
}

static void event_for_stream(bool wrong) {
  cuda_open(1);
  struct CUevent_st *event = cuda_event();
  cuStreamSynchronize(wrong ? (struct CUstream_st *)event : NULL);
  NEED(cuEventDestroy_v2(event));
  cuda_close(1);
}

static void no_context(bool wrong) {
  cuda_open(1);
  if (wrong) NEED(cuCtxSetCurrent(NULL));
  cuda_abi_address address = 0;
  cuMemAlloc_v2(&address, BYTES);
  if (!wrong) NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void released_context(bool wrong) {
  cuda_open(1);
  if (wrong) cuda_close(1);
  struct CUstream_st *stream = NULL;
  cuStreamCreate(&stream, 0);
  if (wrong) return;
  NEED(cuStreamDestroy_v2(stream));
  cuda_close(1);
}

static void release_twice(bool wrong) {
  cuda_open(1);
  cuda_close(1);
  if (wrong) cuDevicePrimaryCtxRelease_v2(0);
}

static void leak_context(bool wrong) {
  cuda_open(1);
  if (!wrong) cuda_close(1);
}

static void leak_stream(bool wrong) {
  cuda_open(1);
  struct CUstream_st *stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  if (!wrong) NEED(cuStreamDestroy_v2(stream));
  cuda_close(1);
}

static void leak_event(bool wrong) {
  cuda_open(1);
  struct CUevent_st *event = cuda_event();
  if (!wrong) NEED(cuEventDestroy_v2(event));
  cuda_close(1);
}

static void untimed_event(bool wrong) {
  cuda_open(1);
  struct CUevent_st *events[2];
  for (int i = 0; i < 2; i++) {
    NEED(cuEventCreate(&events[i], wrong ? CUDA_ABI_EVENT_DISABLE_TIMING : 0));
    NEED(cuEventRecord(events[i], NULL));
    NEED(cuEventSynchronize(events[i]));
  }
  float milliseconds;
  cuEventElapsedTime(&milliseconds, events[0], events[1]);
  for (int i = 0; i < 2; i++) NEED(cuEventDestroy_v2(events[i]));
  cuda_close(1);
}

/* The child's status is the program's. */
static void use_after_fork(bool wrong) {
  cuda_open(1);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    int count;
    if (wrong) cuDeviceGetCount(&count);
    exit(0);
  }
  int status = -1;
  NEED(waitpid(child, &status, 0) != child);
  cuda_close(1);
  if (status != 0) exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

const mistake stream_mistakes[] = {
    {"deleted-stream", "use after delete", deleted_stream, NULL},
    {"deleted-event", "use after delete", deleted_event, NULL},
    {"event-for-stream", "invalid handle", event_for_stream, NULL},
    {"no-context", "no current context", no_context, NULL},
    {"released-context", "use after delete", released_context, NULL},
    {"release-twice", "context released too often", release_twice, NULL},
    {"leak-context", "leak", leak_context, NULL},
    {"leak-stream", "leak", leak_stream, NULL},
    {"leak-event", "leak", leak_event, NULL},
    {"untimed-event", "event without timing", untimed_event, NULL},
    {"use-after-fork", "used after fork", use_after_fork, NULL},
    {0},
};
