/* SPDX-License-Identifier: Apache-2.0 */
/* How long an all-reduce takes. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "device/topology.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/threads.h"
#include "strategy/collective.h"

typedef struct measurement {
  hi_collective_choice choice;
  unsigned char id[HELIO_COLLECTIVE_ID_SIZE];
  uint32_t rank_count;
  size_t count;
  int repeats;
  double *seconds; /* of rank 0 */
} measurement;

typedef struct measured_rank {
  const measurement *what;
  uint32_t rank;
  hi_device *device;
  helio_error error;
  pthread_t thread;
} measured_rank;

/* Zeros, so that sums of sums stay what they are. The first calls are not counted: memory is touched for the first
 * time in them, and plans are made. */
static helio_status run_calls(measured_rank *self, hi_communicator *c, hi_block *block) {
  const measurement *what = self->what;
  const helio_member *m = &self->device->member;
  helio_stream *stream = hi_device_stream(self->device, HI_STREAM_COLLECTIVE);
  if (!stream) return helio_error_pending();
  enum { WARM_UP = 3 };
  hi_exchange exchange = {.stream = HI_STREAM_COLLECTIVE,
                          .source = block->place,
                          .target = block->place,
                          .type = HELIO_FLOAT32,
                          .count = what->count};
  hi_reason_clear();
  helio_status status = m->memory->fill(m->device, stream, block->place, (float[]){0}, sizeof(float), what->count);
  if (status) return hi_device_failed(self->device, status, "filling with zeros");
  for (int i = -WARM_UP; i < what->repeats && !status; i++) {
    double start = hi_seconds();
    status = hi_communicator_all_reduce(c, &exchange);
    if (!status && !self->device->synchronous) {
      status = m->streams->synchronize(m->device, stream);
      if (status) status = hi_device_failed(self->device, status, "waiting for the sum");
    }
    if (i >= 0 && self->rank == 0) what->seconds[i] = hi_seconds() - start;
  }
  return status;
}

/* Each rank has a core of its own where there are enough, as mpirun does it: two that start on one core may stay there
 * for longer than a measurement takes. */
static void settle_on_core(const measured_rank *self) {
  cpu_set_t granted, own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof granted, &granted) != 0) return;
  if ((uint32_t)CPU_COUNT(&granted) < self->what->rank_count) return;
  uint32_t left = self->rank;
  for (int core = 0; core < CPU_SETSIZE; core++) {
    if (!CPU_ISSET(core, &granted) || left-- > 0) continue;
    CPU_SET(core, &own);
    pthread_setaffinity_np(pthread_self(), sizeof own, &own);
    return;
  }
}

static void *run_rank(void *argument) {
  measured_rank *self = argument;
  const measurement *what = self->what;
  settle_on_core(self);
  hi_communicator *c = hi_communicator_new(
      &what->choice, &(hi_communicator_settings){
                         .device = self->device, .rank = self->rank, .rank_count = what->rank_count, .id = what->id});
  hi_block *block = NULL;
  if (c) {
    block = hi_arena_allocate(self->device->arena, what->count * sizeof(float), HI_STREAM_COLLECTIVE, "measurement");
    if (!block || run_calls(self, c, block)) hi_communicator_abort(c);
  }
  hi_communicator_free(c);
  hi_block_release(block);
  helio_error_take(&self->error);
  return NULL;
}

/* The error of the lowest rank, but one that tells of an abort says less than the one that caused it. */
static helio_status worst(const measured_rank *ranks, uint32_t count) {
  const helio_error *found = NULL;
  for (uint32_t i = 0; i < count; i++) {
    const helio_error *error = &ranks[i].error;
    if (!error->status) continue;
    if (!found || (found->status == HELIO_ABORTED && error->status != HELIO_ABORTED)) found = error;
  }
  return found ? hi_fail(found->status, "%s", found->message) : HELIO_OK;
}

/* A rank whose thread cannot be made is missed by the others when their time is up. */
static helio_status run_all(measurement *what, hi_device *const *devices) {
  measured_rank *ranks = calloc(what->rank_count, sizeof *ranks);
  if (!ranks) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %u ranks", what->rank_count);
  uint32_t started = 0;
  for (uint32_t i = 0; i < what->rank_count; i++) {
    ranks[i] = (measured_rank){.what = what, .rank = i, .device = devices[i]};
    if (hi_thread_start(&ranks[i].thread, "helio-measure", run_rank, &ranks[i]) != 0) break;
    started++;
  }
  for (uint32_t i = 0; i < started; i++) pthread_join(ranks[i].thread, NULL);
  helio_status status = started == what->rank_count
                            ? worst(ranks, started)
                            : hi_fail(HELIO_OUT_OF_MEMORY, "cannot start a thread for rank %u", started);
  free(ranks);
  return status;
}

helio_status helio_time_all_reduce(const char *const *devices, int count, const char *collective, size_t bytes,
                                   int repeats, double *seconds) {
  helio_status status = hi_enter(__func__);
  if (status) return status;
  if (!devices || !seconds) return hi_fail(HELIO_INVALID_ARGUMENT, "%s is NULL", devices ? "seconds" : "devices");
  if (count < 1 || repeats < 1 || bytes == 0 || bytes % sizeof(float) != 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT,
                   "%d devices, %d repeats of %zu bytes: there must be one of each at least, and "
                   "whole float32 numbers",
                   count, repeats, bytes);
  }
  hi_device **found = calloc((size_t)count, sizeof *found);
  if (!found) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %d devices", count);
  for (int i = 0; i < count && !status; i++) {
    found[i] = hi_device_named(devices[i]);
    if (!found[i]) status = helio_error_pending();
  }
  measurement what = {
      .rank_count = (uint32_t)count, .count = bytes / sizeof(float), .repeats = repeats, .seconds = seconds};
  if (!status) status = hi_collective_choose(found, count, collective, &what.choice);
  if (!status) status = hi_collective_new_id(&what.choice, what.id);
  if (!status) status = run_all(&what, found);
  free(found);
  return status;
}
