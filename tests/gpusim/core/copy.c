/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills. Addresses are checked when a copy is queued, and again when it is done. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct copy {
  sim_device *to_device, *from_device; /* NULL: the host */
  void *to;
  const void *from;
  size_t bytes;
  void *staged;           /* what pageable memory held when the copy was queued */
  sim_transfer *transfer; /* of the pinned side */
} copy;

static void release_copy(void *argument) {
  copy *done = argument;
  sim_transfer_end(done->transfer);
  free(done->staged);
  free(done);
}

static sim_status run_copy(void *argument) {
  copy *job = argument;
  void *pinned = job->transfer ? sim_transfer_open(job->transfer) : NULL;
  void *to = pinned && !job->to_device ? pinned : job->to;
  const void *from = pinned && !job->from_device ? pinned : job->from;
  if (job->to_device) to = sim_twin(job->to_device, job->to, job->bytes, "the destination");
  if (job->from_device) from = sim_twin(job->from_device, job->from, job->bytes, "the source");
  if (!to || !from) return SIM_ILLEGAL_ADDRESS;
  memcpy(to, from, job->bytes);
  return SIM_OK;
}

static sim_status queue_copy(sim_stream *stream, const copy *wanted) {
  copy *job = malloc(sizeof *job);
  if (!job) return SIM_OUT_OF_MEMORY;
  *job = *wanted;
  sim_work work = {.name = sim_current_call(), .argument = job, .run = run_copy, .release = release_copy};
  sim_access accesses[] = {{.what = "the source", .address = job->from, .bytes = job->bytes},
                           {.what = "the destination", .address = job->to, .bytes = job->bytes, .written = true}};
  /* What was staged, or is pageable, is nobody else's. */
  if (!job->from_device && !job->transfer) accesses[0].bytes = 0;
  if (!job->to_device && !job->transfer) accesses[1].bytes = 0;
  return sim_queue_copy(stream, &work, accesses, 2, job->transfer);
}

/* What a copy needs before it looks at anything: a count, and bytes to copy. */
static bool is_over(sim_stream *stream, size_t bytes, sim_status *status) {
  *status = sim_count(SIM_COPY, sim_stream_device(stream));
  return *status != SIM_OK || bytes == 0;
}

static void add_bytes(sim_stream *stream, size_t offset, size_t bytes) {
  sim_lock();
  *(uint64_t *)((char *)&sim_stream_device(stream)->counters + offset) += bytes;
  sim_unlock();
}

typedef enum host_kind { PAGEABLE, PINNED, WRONG } host_kind;

static host_kind judge_host(const void *address, size_t bytes, const char *what) {
  char text[256];
  if (!address || sim_is_device_address(address)) {
    sim_violation("not host memory", "%s of a copy is %s", what, sim_describe(address, text, sizeof text));
    return WRONG;
  }
  if (sim_is_pinned(address, bytes)) return PINNED;
  if (!sim_is_near_pinned(address)) return PAGEABLE;
  sim_violation("out of bounds", "%s of a copy of %zu bytes is %s", what, bytes,
                sim_describe(address, text, sizeof text));
  return WRONG;
}

sim_status sim_copy_in(sim_stream *stream, void *to, const void *from, size_t bytes) {
  sim_status status;
  if (is_over(stream, bytes, &status)) return status;
  sim_device *device = sim_stream_device(stream);
  host_kind kind = judge_host(from, bytes, "the source");
  if (kind == WRONG || !sim_twin(device, to, bytes, "the destination")) return SIM_INVALID_VALUE;
  copy job = {.to_device = device, .to = to, .from = from, .bytes = bytes};
  if (kind == PINNED) {
    job.transfer = sim_transfer_begin((void *)(uintptr_t)from, bytes, false);
  } else {
    job.staged = malloc(bytes);
    if (!job.staged) return SIM_OUT_OF_MEMORY;
    job.from = memcpy(job.staged, from, bytes);
  }
  add_bytes(stream, offsetof(sim_counters, bytes_in), bytes);
  return queue_copy(stream, &job);
}

sim_status sim_copy_out(sim_stream *stream, void *to, const void *from, size_t bytes) {
  sim_status status;
  if (is_over(stream, bytes, &status)) return status;
  sim_device *device = sim_stream_device(stream);
  host_kind kind = judge_host(to, bytes, "the destination");
  if (kind == WRONG || !sim_twin(device, from, bytes, "the source")) return SIM_INVALID_VALUE;
  copy job = {.from_device = device, .to = to, .from = from, .bytes = bytes};
  if (kind == PINNED) job.transfer = sim_transfer_begin(to, bytes, true);
  add_bytes(stream, offsetof(sim_counters, bytes_out), bytes);
  status = queue_copy(stream, &job);
  if (status != SIM_OK || kind != PAGEABLE) return status;
  /* The host waits, whatever the pace: not even the fastest device is done when the call has only begun. */
  status = sim_count(SIM_HOST_WAIT, device);
  sim_past past = sim_stream_past(stream);
  if (status == SIM_OK) status = sim_wait_for(stream, UINT64_MAX);
  if (status == SIM_OK) sim_host_learn(&past);
  return status;
}

/* The device that an address is to be judged for: its own if it is one of the vendor's, which copies between two of
 * them without being told, through the host if they cannot reach each other. */
static sim_device *owner_of(sim_stream *stream, const void *address) {
  sim_device *device = sim_stream_device(stream), *owner = sim_device_of(address);
  return owner && owner->vendor == device->vendor ? owner : device;
}

sim_status sim_copy_within(sim_stream *stream, void *to, const void *from, size_t bytes) {
  sim_status status;
  if (is_over(stream, bytes, &status)) return status;
  sim_device *to_device = owner_of(stream, to), *from_device = owner_of(stream, from);
  if (!sim_twin(to_device, to, bytes, "the destination") || !sim_twin(from_device, from, bytes, "the source"))
    return SIM_INVALID_VALUE;
  if (sim_overlap(to, bytes, from, bytes)) {
    sim_violation("overlapping copy", "%zu bytes from %p to %p", bytes, from, to);
    return SIM_INVALID_VALUE;
  }
  bool within = to_device == from_device;
  add_bytes(stream, within ? offsetof(sim_counters, bytes_within) : offsetof(sim_counters, bytes_between), bytes);
  return queue_copy(
      stream, &(copy){.to_device = to_device, .from_device = from_device, .to = to, .from = from, .bytes = bytes});
}

/* As above, but the program says which devices it means. */
sim_status sim_copy_peer(sim_stream *stream, sim_device *to_device, void *to, sim_device *from_device, const void *from,
                         size_t bytes) {
  sim_status status;
  if (is_over(stream, bytes, &status)) return status;
  if (sim_device_of(to) != to_device || sim_device_of(from) != from_device) {
    char text[256];
    const void *wrong = sim_device_of(to) != to_device ? to : from;
    sim_violation("wrong device", "a copy between devices is given %s", sim_describe(wrong, text, sizeof text));
    return SIM_INVALID_VALUE;
  }
  if (!sim_twin(to_device, to, bytes, "the destination") || !sim_twin(from_device, from, bytes, "the source"))
    return SIM_INVALID_VALUE;
  status = sim_device_health(to_device);
  if (status == SIM_OK) status = sim_device_health(from_device);
  if (status != SIM_OK) return status;
  add_bytes(stream, offsetof(sim_counters, bytes_between), bytes);
  return queue_copy(
      stream, &(copy){.to_device = to_device, .from_device = from_device, .to = to, .from = from, .bytes = bytes});
}

typedef struct fill {
  sim_device *device;
  void *to;
  uint32_t value;
  size_t element, count;
} fill;

static sim_status run_fill(void *argument) {
  const fill *job = argument;
  char *to = sim_twin(job->device, job->to, job->element * job->count, "the destination");
  if (!to) return SIM_ILLEGAL_ADDRESS;
  /* The low bytes of a number come first on every machine that this runs on. */
  for (size_t i = 0; i < job->count; i++) memcpy(to + i * job->element, &job->value, job->element);
  return SIM_OK;
}

sim_status sim_fill(sim_stream *stream, void *to, uint32_t value, size_t element, size_t count) {
  sim_status status;
  if (is_over(stream, count, &status)) return status;
  sim_device *device = sim_stream_device(stream);
  size_t bytes = count > SIZE_MAX / element ? SIZE_MAX : element * count; /* more than there is, in either case */
  if (!sim_twin(device, to, bytes, "the destination")) return SIM_INVALID_VALUE;
  if ((uintptr_t)to % element != 0) {
    sim_violation("misaligned", "elements of %zu bytes are filled at %p", element, to);
    return SIM_INVALID_VALUE;
  }
  fill *job = malloc(sizeof *job);
  if (!job) return SIM_OUT_OF_MEMORY;
  *job = (fill){.device = device, .to = to, .value = value, .element = element, .count = count};
  sim_work work = {.name = sim_current_call(), .argument = job, .run = run_fill};
  return sim_queue_with(stream, &work, &(sim_access){"the destination", to, bytes, .written = true}, 1);
}
