/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that are missing, and one that never ends, through CUDA's driver. */
#include "driver.h"
#include "sim.h"

enum { BYTES = 1000 }; /* no multiple of the alignment */

static void read_too_early(bool wrong) {
  cuda_open(1);
  unsigned *host = cuda_pin(BYTES);
  cuda_abi_address address = cuda_allocate(BYTES);
  struct CUstream_st *stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  NEED(cuMemsetD32Async(address, 5, BYTES / 4, stream));
  NEED(cuMemcpyDtoHAsync_v2(host, address, BYTES, stream));
  if (!wrong) NEED(cuStreamSynchronize(stream));
  unsigned seen = host[BYTES / 8];
  NEED(cuStreamDestroy_v2(stream));
  NEED(cuMemFree_v2(address));
  NEED(cuMemFreeHost(host));
  cuda_close(1);
  if (seen != 5) fail_numbers();
}

/* Memory, two streams that nothing orders by itself, and an event. */
typedef struct scene {
  cuda_abi_address one, other;
  struct CUstream_st *first, *second;
  struct CUevent_st *event;
} scene;

static scene open_scene(void) {
  cuda_open(1);
  return (scene){cuda_allocate(BYTES), cuda_allocate(BYTES), cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING),
                 cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING), cuda_event()};
}

static void close_scene(const scene *s) {
  NEED(cuStreamSynchronize(s->first));
  NEED(cuStreamSynchronize(s->second));
  NEED(cuMemFree_v2(s->one));
  NEED(cuMemFree_v2(s->other));
  NEED(cuEventDestroy_v2(s->event));
  NEED(cuStreamDestroy_v2(s->first));
  NEED(cuStreamDestroy_v2(s->second));
  cuda_close(1);
}

/* What the second stream is given from now on waits for what the first one has. */
static void order(const scene *s) {
  NEED(cuEventRecord(s->event, s->first));
  NEED(cuStreamWaitEvent(s->second, s->event, 0));
}

static void no_wait_between_streams(bool wrong) {
  scene s = open_scene();
  unsigned host[BYTES / 4];
  NEED(cuMemsetD32Async(s.one, 5, BYTES / 4, s.first));
  if (!wrong) order(&s);
  NEED(cuMemcpyDtoHAsync_v2(host, s.one, BYTES, s.second)); /* waits, because the host's memory is pageable */
  close_scene(&s);
}

static void overwritten_before_read(bool wrong) {
  scene s = open_scene();
  NEED(cuMemcpyDtoDAsync_v2(s.other, s.one, BYTES, s.first));
  if (!wrong) order(&s);
  NEED(cuMemsetD8Async(s.one, 0, BYTES, s.second));
  close_scene(&s);
}

static void two_writers(bool wrong) {
  scene s = open_scene();
  NEED(cuMemsetD8Async(s.one, 1, BYTES / 2 + 1, s.first));
  if (!wrong) order(&s);
  NEED(cuMemsetD8Async(s.one + BYTES / 2, 2, BYTES / 2, s.second)); /* one byte is both's */
  close_scene(&s);
}

/* An event stands for what the stream had when it was recorded. */
static void recorded_too_early(bool wrong) {
  scene s = open_scene();
  if (wrong) order(&s);
  NEED(cuMemsetD8Async(s.one, 1, BYTES, s.first));
  if (!wrong) order(&s);
  NEED(cuMemcpyDtoDAsync_v2(s.other, s.one, BYTES, s.second));
  close_scene(&s);
}

/* The NULL stream does not wait for streams that were made so, nor they for it. */
static void beside_null_stream(bool wrong) {
  scene s = open_scene();
  NEED(cuMemsetD8Async(s.one, 1, BYTES, NULL));
  if (!wrong) NEED(cuStreamSynchronize(NULL));
  NEED(cuMemcpyDtoDAsync_v2(s.other, s.one, BYTES, s.second));
  close_scene(&s);
}

/* The answer that it is not done is no wait. */
static void asked_once(bool wrong) {
  scene s = open_scene();
  NEED(cuMemsetD8Async(s.one, 1, BYTES, s.first));
  if (wrong) NEED(cuStreamQuery(s.second)); /* has nothing to do */
  while (!wrong && cuStreamQuery(s.first) == CUDA_ABI_NOT_READY) continue;
  NEED(cuMemcpyDtoDAsync_v2(s.other, s.one, BYTES, s.second));
  close_scene(&s);
}

/* A free waits for its own device, not for another that reads the memory. */
static void freed_beside_peer(bool wrong) {
  cuda_open(2);
  cuda_abi_address one = cuda_allocate(BYTES);
  NEED(cuCtxSetCurrent(cuda_contexts[1]));
  cuda_abi_address other = cuda_allocate(BYTES);
  struct CUstream_st *stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  NEED(cuMemcpyPeerAsync(other, cuda_contexts[1], one, cuda_contexts[0], BYTES, stream));
  if (!wrong) NEED(cuStreamSynchronize(stream));
  NEED(cuMemFree_v2(one));
  NEED(cuStreamDestroy_v2(stream));
  (void)cuMemFree_v2(other);
  cuda_close(2);
}

static void read_fresh_memory(bool wrong) {
  cuda_open(1);
  float host[BYTES / 4];
  cuda_abi_address address = cuda_allocate(BYTES);
  if (!wrong) NEED(cuMemsetD8Async(address, 0, BYTES, NULL));
  NEED(cuMemcpyDtoHAsync_v2(host, address, BYTES, NULL));
  NEED(cuMemFree_v2(address));
  cuda_close(1);
  if (host[7] != 0) fail_numbers();
}

static sim_status do_nothing(void *argument) {
  (void)argument;
  return SIM_OK;
}

static bool is_never_ready(void *argument) {
  (void)argument;
  return false;
}

static void wait_for_ever(bool wrong) {
  cuda_open(1);
  CORE(sim_device_at);
  CORE(sim_stream_of);
  CORE(sim_queue);
  sim_stream *stream = core_sim_stream_of(core_sim_device_at(SIM_CUDA, 0), NULL);
  sim_work work = {.name = "work that is never ready", .run = do_nothing, .is_ready = wrong ? is_never_ready : NULL};
  NEED(core_sim_queue(stream, &work));
  cuStreamSynchronize(NULL);
  cuda_close(1);
}

const mistake wait_mistakes[] = {
    {"read-too-early", WRONG_NUMBERS, read_too_early, NULL},
    {"no-wait-between-streams", "missing wait", no_wait_between_streams, NULL},
    {"overwritten-before-read", "missing wait", overwritten_before_read, NULL},
    {"two-writers", "missing wait", two_writers, NULL},
    {"recorded-too-early", "missing wait", recorded_too_early, NULL},
    {"beside-null-stream", "missing wait", beside_null_stream, NULL},
    {"asked-once", "missing wait", asked_once, NULL},
    {"freed-beside-peer", "missing wait", freed_beside_peer, "GPUSIM_CUDA=2"},
    {"read-fresh-memory", WRONG_NUMBERS, read_fresh_memory, NULL},
    {"wait-for-ever", "waits for ever", wait_for_ever, "GPUSIM_PATIENCE=1"},
    {0},
};
