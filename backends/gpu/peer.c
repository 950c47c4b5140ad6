/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from card to card. Machines are known that say their cards can reach each other and then copy rubbish, so each
 * pair is tried once before it is used. */
#include "physical.h"

#include <string.h>

#define TRIAL_BYTES 4096

typedef struct trial {
  gpu_address here, there;
  vendor_stream *stream;
} trial;

/* What a byte of the trial is; both buffers hold something else before. */
static unsigned char trial_byte(size_t index, int salt) {
  return (unsigned char)(index * 37u + (index >> 8) + (unsigned)salt * 101u);
}

/* A buffer full of one byte, to be read on another card: so it waits. */
static vendor_result trial_write(gpu_address *address, const unsigned char *bytes) {
  vendor_result result = vendor_allocate(address, TRIAL_BYTES);
  vendor_stream *stream = NULL;
  if (result == 0) result = vendor_stream_create(&stream);
  if (result == 0) result = vendor_copy_in(*address, bytes, TRIAL_BYTES, stream);
  if (result == 0) result = vendor_stream_synchronize(stream);
  if (stream != NULL) vendor_stream_destroy(stream);
  return result;
}

static vendor_result trial_copy(trial *made, vendor_context *here, vendor_context *there, unsigned char *got) {
  vendor_result result = vendor_allocate(&made->here, TRIAL_BYTES);
  if (result == 0) result = vendor_stream_create(&made->stream);
  if (result == 0) result = vendor_fill(made->here, 0, 1, TRIAL_BYTES, made->stream);
  if (result == 0) result = vendor_copy_peer(here, made->here, there, made->there, TRIAL_BYTES, made->stream);
  if (result == 0) result = vendor_copy_out(got, made->here, TRIAL_BYTES, made->stream);
  if (result == 0) result = vendor_stream_synchronize(made->stream);
  return result;
}

/* Does a copy arrive as it was sent? Leaves `here` current. */
static bool trial_run(vendor_context *here, vendor_context *there, int salt) {
  trial made = {0};
  unsigned char sent[TRIAL_BYTES], got[TRIAL_BYTES];
  for (size_t i = 0; i < TRIAL_BYTES; i++) sent[i] = trial_byte(i, salt);
  vendor_result result = vendor_context_enter(there);
  if (result == 0) result = trial_write(&made.there, sent);
  if (result == 0) result = vendor_context_enter(here);
  if (result == 0) result = trial_copy(&made, here, there, got);
  if (made.stream != NULL) vendor_stream_destroy(made.stream);
  if (made.here != 0) vendor_free(made.here);
  if (made.there != 0 && vendor_context_enter(there) == 0) vendor_free(made.there);
  return vendor_context_enter(here) == 0 && result == 0 && memcmp(sent, got, TRIAL_BYTES) == 0;
}

static gpu_reach reach_find(helio_backend_device *device, helio_backend_device *from) {
  gpu_physical *here = device->physical, *there = from->physical;
  const helio_host *host = device->host;
  if (!vendor_can_reach(here->index, there->index)) {
    host->log(host, HELIO_LOG_DEBUG, "device %d cannot reach the memory of device %d: copies go through the host",
              here->index, there->index);
    return GPU_REACH_NO;
  }
  vendor_result result = vendor_reach(here->context, there->context);
  if (result == 0 && trial_run(here->context, there->context, here->index * 16 + there->index)) return GPU_REACH_YES;
  host->log(host, HELIO_LOG_WARNING,
            "device %d says that it can reach the memory of device %d, but %s: copies go through the host", here->index,
            there->index, result != 0 ? vendor_result_text(result) : "what it copied was wrong");
  return GPU_REACH_NO;
}

/* The answer is kept. Who asks first tries it, without any lock: a trial may hang, as copies between cards do that say
 * they can and cannot. Others do not wait for it: until there is an answer their copies go through the host. */
static gpu_reach reach_of(helio_backend_device *device, helio_backend_device *from) {
  gpu_reach *known = &device->physical->reach[from->physical->index], seen = GPU_REACH_UNKNOWN;
  if (!__atomic_compare_exchange_n(known, &seen, GPU_REACH_TRYING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return seen;
  gpu_reach answer = reach_find(device, from);
  __atomic_store_n(known, answer, __ATOMIC_RELEASE);
  return answer;
}

helio_status gpu_copy_peer(helio_backend_device *device, helio_stream *stream, helio_place target,
                           helio_backend_device *from, helio_place source, size_t bytes) {
  const helio_host *host = device->host;
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  gpu_address to_address = gpu_place_address(target), from_address = gpu_place_address(source);
  vendor_result result;
  if (device->physical == from->physical) {
    result = vendor_copy(to_address, from_address, bytes, stream->native);
  } else if (reach_of(device, from) == GPU_REACH_YES) {
    result = vendor_copy_peer(device->physical->context, to_address, from->physical->context, from_address, bytes,
                              stream->native);
  } else {
    return host->fail(host, HELIO_NOT_SUPPORTED, "%s device %d cannot reach the memory of device %d", vendor.title,
                      device->physical->index, from->physical->index);
  }
  return result == 0 ? HELIO_OK : gpu_fail(device, result, "copying from another device");
}
