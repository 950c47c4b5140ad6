/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that wait, or know how not to: what the counters say about them, and calls that wait by themselves. */
#include "programs.h"

#include <string.h>

enum { WORDS = 64, STEPS = 12, LAUNCHES = 40 };

typedef enum manner { IF_NOT_READY, ALWAYS, BY_ASKING } manner;

typedef struct training {
  struct CUstream_st *stream;
  struct CUevent_st *events[2];
  unsigned *staging[2];
  cuda_abi_address buffer;
} training;

static void read_counters(sim_counters *counters) {
  void (*read)(const sim_device *, sim_counters *);
  *(void **)&read = face_function("libgpusim.so", "sim_counters_read");
  read(NULL, counters);
}

static void await(const training *t, unsigned which, manner how) {
  if (how == ALWAYS) NEED(cuStreamSynchronize(t->stream));
  if (how == IF_NOT_READY && cuEventQuery(t->events[which]) == CUDA_ABI_NOT_READY)
    NEED(cuEventSynchronize(t->events[which]));
  while (how == BY_ASKING && cuStreamQuery(t->stream) == CUDA_ABI_NOT_READY) continue;
}

/* As a training does it: a staging buffer is filled again once the copy from it, two steps ago, is done. Counts the
 * waits and the questions that were answered with "not ready" of all steps. */
static void run_steps(const training *t, manner how, uint64_t *waits, uint64_t *polls) {
  sim_counters before, after;
  NEED(cuStreamSynchronize(t->stream));
  read_counters(&before);
  for (unsigned step = 0; step < STEPS; step++) {
    await(t, step % 2, how);
    memset(t->staging[step % 2], (int)step, 4 * WORDS);
    NEED(cuMemcpyHtoDAsync_v2(t->buffer, t->staging[step % 2], 4 * WORDS, t->stream));
    NEED(cuEventRecord(t->events[step % 2], t->stream));
    for (unsigned i = 0; i < LAUNCHES; i++) NEED(cuMemsetD32Async(t->buffer, i, WORDS, t->stream));
  }
  read_counters(&after);
  *waits = after.occasions[SIM_HOST_WAIT] - before.occasions[SIM_HOST_WAIT];
  *polls = after.occasions[SIM_POLL] - before.occasions[SIM_POLL];
}

static void with_training(void (*use)(const training *t)) {
  cuda_open(1);
  training t = {.stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING), .buffer = cuda_allocate(4 * WORDS)};
  for (int i = 0; i < 2; i++) {
    t.events[i] = cuda_event();
    t.staging[i] = cuda_pin(4 * WORDS);
  }
  use(&t);
  NEED(cuStreamSynchronize(t.stream));
  for (int i = 0; i < 2; i++) {
    NEED(cuMemFreeHost(t.staging[i]));
    NEED(cuEventDestroy_v2(t.events[i]));
  }
  NEED(cuMemFree_v2(t.buffer));
  NEED(cuStreamDestroy_v2(t.stream));
  cuda_close(1);
}

/* --pace behind: each manner is told apart from the others. */
static void measure_behind(const training *t) {
  uint64_t waits, polls;
  run_steps(t, IF_NOT_READY, &waits, &polls);
  EXPECT(waits == 0 && polls == 0);
  run_steps(t, ALWAYS, &waits, &polls);
  EXPECT(waits == STEPS - 1 && polls == 0); /* there is nothing to wait for at the first */
  run_steps(t, BY_ASKING, &waits, &polls);
  EXPECT(waits == 0 && polls >= STEPS - 1);
}

static void waits_behind(void) {
  with_training(measure_behind);
}

/* --pace late: whatever is not asked for is not done. */
static void measure_late(const training *t) {
  uint64_t waits, polls;
  run_steps(t, IF_NOT_READY, &waits, &polls);
  EXPECT(waits == STEPS - 2 && polls == STEPS - 2);
}

static void waits_late(void) {
  with_training(measure_late);
}

/* Any pace: what is done is no wait, and a copy into pageable memory always is one. */
static void waits_for_nothing(void) {
  cuda_open(1);
  cuda_abi_address buffer = cuda_allocate(4 * WORDS);
  unsigned host[WORDS];
  sim_counters before, after;
  NEED(cuMemsetD32Async(buffer, 8, WORDS, NULL));
  read_counters(&before);
  NEED(cuMemcpyDtoHAsync_v2(host, buffer, 4 * WORDS, NULL));
  for (int i = 0; i < 3; i++) NEED(cuCtxSynchronize());
  NEED(cuStreamSynchronize(NULL));
  NEED(cuMemFree_v2(buffer));
  read_counters(&after);
  EXPECT(host[WORDS - 1] == 8 && after.occasions[SIM_HOST_WAIT] == before.occasions[SIM_HOST_WAIT] + 1);
  cuda_close(1);
}

/* --fault wait:1+: a wait fails when it is asked for, not within a call that happens to wait. */
static void wait_fails(void) {
  cuda_open(1);
  cuda_abi_address buffer = cuda_allocate(4 * WORDS);
  NEED(cuMemsetD32Async(buffer, 8, WORDS, NULL));
  EXPECT(cuStreamSynchronize(NULL) == CUDA_ABI_UNKNOWN);
  NEED(cuMemFree_v2(buffer));
  cuda_close(1);
}

/* HIP waits for the device before it frees pinned memory; CUDA does not say so, there it is a mistake. */
static void hip_frees_pinned(void) {
  hip_load();
  void *buffer, *pinned;
  NEED(hipMalloc(&buffer, 4 * WORDS));
  NEED(hipHostMalloc(&pinned, 4 * WORDS, 0));
  NEED(hipMemcpyAsync(buffer, pinned, 4 * WORDS, HIP_ABI_HOST_TO_DEVICE, NULL));
  NEED(hipHostFree(pinned));
  NEED(hipFree(buffer));
}

const program wait_programs[] = {
    {"waits-behind", waits_behind},           {"waits-late", waits_late},
    {"waits-for-nothing", waits_for_nothing}, {"wait-fails", wait_fails},
    {"hip-frees-pinned", hip_frees_pinned},   {0},
};
