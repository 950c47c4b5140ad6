/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device.h"

#include <stdlib.h>
#include <string.h>

#include "device/copy.h"
#include "device/doubt.h"
#include "device/status.h"
#include "device/topology.h"
#include "runtime/environment.h"
#include "runtime/error.h"
#include "runtime/leaks.h"
#include "runtime/log.h"
#include "runtime/progress.h"

hi_device *hi_device_new(hi_physical *physical, int logical_index) {
  hi_device *device = calloc(1, sizeof *device);
  if (!device) return NULL;
  uint32_t capabilities = physical->description.capabilities;
  device->physical = physical;
  device->logical_index = logical_index;
  device->synchronous = capabilities & HELIO_CAPABLE_SYNCHRONOUS;
  device->host_memory = capabilities & HELIO_CAPABLE_HOST_MEMORY;
  device->member = (helio_member){.size = sizeof device->member,
                                  .description = &physical->description,
                                  .devices = &physical->plugin->shown.devices,
                                  .memory = &physical->plugin->shown.memory,
                                  .streams = &physical->plugin->shown.streams,
                                  .name = device->name,
                                  .physical_id = physical->id};
  device->timeout_ms = hi_environment_number(HI_TIMEOUT);
  pthread_mutex_init(&device->lock, NULL);
  return device;
}

/* ---- loss ---- */

bool hi_device_lost(const hi_device *device) {
  return atomic_load_explicit(&device->loss, memory_order_relaxed) >= HI_LOST;
}

bool hi_device_hung(const hi_device *device) {
  return atomic_load_explicit(&device->loss, memory_order_relaxed) == HI_HUNG;
}

static _Thread_local unsigned suspicions;

helio_status hi_device_refuses(const hi_device *device) {
  if (!hi_device_lost(device)) return HELIO_OK;
  suspicions++;
  hi_reason_say("the device was lost%s", hi_device_hung(device) ? ", because a call of it did not come back; use others"
                                                                : "; use others, or start the program again");
  return HELIO_DEVICE_FAILURE;
}

static void worsen(hi_device *device, hi_loss loss) {
  int seen = atomic_load(&device->loss);
  while (seen < (int)loss && !atomic_compare_exchange_weak(&device->loss, &seen, loss)) continue;
}

void hi_device_lose(hi_device *device, hi_loss loss) {
  int count;
  hi_device *const *devices = hi_devices(&count);
  if (loss == HI_HUNG) atomic_store(&device->physical->plugin->stuck, true);
  worsen(device, loss);
  for (int i = 0; i < count; i++) {
    bool along = devices[i]->physical == device->physical && !device->physical->plugin->is_host;
    if (along) worsen(devices[i], loss); /* where the machine itself is lost nobody asks */
  }
}

static void note_cause(hi_device *device) {
  char *none = NULL, *why = atomic_load(&device->cause) ? NULL : strdup(hi_reason(HELIO_DEVICE_FAILURE));
  if (why && !atomic_compare_exchange_strong(&device->cause, &none, why)) free(why);
}

helio_status hi_device_suspect(hi_device *device, helio_status status) {
  if (status != HELIO_DEVICE_FAILURE) return status;
  suspicions++;
  note_cause(device);
  worsen(device, HI_SUSPECT);
  return status;
}

unsigned hi_device_suspicions(void) {
  return suspicions;
}

helio_status hi_device_failed(const hi_device *device, helio_status status, const char *what) {
  return hi_fail(status, "%s on %s: %s", what, device->name, hi_reason(status));
}

/* What is left as it is, because a thread hangs in it, may never come to rest. */
void hi_device_rest(hi_device *device) {
  if (!device->member.device || atomic_load(&device->physical->plugin->stuck)) return;
  hi_reason_clear();
  helio_status status = device->member.devices->synchronize(device->member.device);
  if (status && !hi_device_lost(device))
    hi_log(HELIO_LOG_ERROR, "%s failed at its end: %s", device->name, hi_reason(status));
}

static void close_device(hi_device *device) {
  helio_backend_device *handle = device->member.device;
  if (!handle) return;
  if (device->plans) device->plans_free(device->plans);
  device->plans = NULL;
  hi_copy_finish(device);
  hi_status_close(device);
  hi_arena_destroy(device->arena);
  device->arena = NULL;
  for (int i = 0; i < HI_STREAM_COUNT; i++) {
    helio_stream *stream = atomic_exchange(&device->streams[i], NULL);
    if (stream) device->member.streams->destroy(handle, stream);
  }
  device->member.devices->close(handle);
  device->member.device = NULL;
}

/* Devices that hang stay, with all that is theirs, until the process ends; so do the others of their plugin, whose
 * events and memory the thread that hangs may be about to use. */
void hi_device_free(hi_device *device) {
  if (!device) return;
  if (atomic_load(&device->physical->plugin->stuck)) {
    hi_leak_say("%s, %s, and all of its memory", device->name,
                hi_device_hung(device) ? "which hangs" : "of whose backend another hangs");
    hi_keep_for_ever(device);
    return;
  }
  close_device(device);
  pthread_mutex_destroy(&device->lock);
  free(atomic_load(&device->cause));
  free(device);
}

/* With growth off the device's share of what is free is taken in one piece, but for a small rest that others need. */
static helio_status reserve_of(hi_device *device, const hi_device_settings *settings, uint64_t *reserve) {
  uint64_t available = 0, total = 0;
  hi_reason_clear();
  helio_status status = device->member.devices->memory_info(device->member.device, &available, &total);
  if (status) return hi_device_failed(device, status, "asking for free memory");
  available = (available - available / 20) / (uint64_t)settings->sharers;
  if (settings->limit && settings->limit < available) available = settings->limit;
  *reserve = available / device->member.description->alignment * device->member.description->alignment;
  return HELIO_OK;
}

/* The host promises more memory than there is, and kills who then uses it. The process needs some besides. A card
 * refuses by itself. */
static uint64_t granted_to(const hi_device *device) {
  uint64_t all = device->host_memory ? device->physical->description.memory : 0;
  return all - all / 8;
}

static helio_status make_arena(hi_device *device, const hi_device_settings *settings) {
  hi_arena_source source = {.name = device->name,
                            .device = device->member.device,
                            .devices = device->member.devices,
                            .memory = device->member.memory,
                            .streams = device->member.streams,
                            .stream = {device->streams[HI_STREAM_COMPUTE]},
                            .alignment = device->member.description->alignment,
                            .limit = settings->limit,
                            .granted = granted_to(device),
                            .synchronous = device->synchronous,
                            .host_memory = device->host_memory,
                            .exact = hi_environment_number(HI_ARENA_DEBUG),
                            .owner = device};
  if (!settings->growth && !source.exact) {
    helio_status status = reserve_of(device, settings, &source.reserve);
    if (status) return status;
    if (source.reserve) source.limit = source.reserve; /* 0 would be no limit at all */
  }
  device->arena = hi_arena_new(&source);
  return device->arena ? HELIO_OK : HELIO_OUT_OF_MEMORY;
}

static helio_status open_backend(hi_device *device, const hi_device_settings *settings) {
  hi_physical *physical = device->physical;
  helio_open_options options = {.size = sizeof options,
                                .logical_index = (uint32_t)device->logical_index,
                                .logical_count = (uint32_t)physical->logical_count,
                                .threads = settings->threads,
                                .spin_us = settings->spin_us,
                                .memory_limit = settings->limit};
  hi_reason_clear();
  helio_status status =
      device->member.devices->open(physical->plugin->state, physical->plugin_index, &options, &device->handle);
  if (status) return hi_device_failed(device, status, "opening the device");
  device->member.device = (helio_backend_device *)device;
  helio_stream *stream = NULL;
  status = device->member.streams->create(device->member.device, &stream);
  if (status) return hi_device_failed(device, status, "making a stream");
  device->streams[HI_STREAM_COMPUTE] = stream;
  return HELIO_OK;
}

static helio_status open_device(hi_device *device) {
  hi_device_settings settings;
  helio_status status = hi_topology_first_use(device, &settings);
  if (status) return status;
  status = open_backend(device, &settings);
  if (!status) status = make_arena(device, &settings);
  if (!status) status = hi_status_open(device);
  if (status) {
    hi_device_rest(device);
    close_device(device);
    hi_topology_no_use(device);
  }
  return status;
}

/* Also of a device that has outlived the library because it hangs: then nothing else is looked at. */
bool hi_device_take(hi_device *device, pthread_mutex_t *lock, const char *what) {
  if (hi_device_hung(device)) return false;
  hi_doing(what, device);
  bool taken = hi_lock_until(lock, &device->loss, HI_HUNG, device->timeout_ms);
  hi_done();
  if (!taken && !hi_device_hung(device)) hi_device_lose(device, HI_HUNG);
  return taken;
}

helio_status hi_device_lock(hi_device *device) {
  return hi_device_take(device, &device->lock, "waiting for the device") ? HELIO_OK : hi_device_refuses(device);
}

helio_status hi_device_use(hi_device *device) {
  helio_status status = hi_device_refuses(device);
  if (status) return hi_fail(status, "%s: %s", device->name, hi_reason(status));
  if (atomic_load_explicit(&device->open, memory_order_acquire)) return HELIO_OK;
  status = hi_device_lock(device);
  if (status) return hi_fail(status, "%s: %s", device->name, hi_reason(status));
  if (!atomic_load(&device->open)) {
    status = open_device(device);
    if (!status) atomic_store_explicit(&device->open, true, memory_order_release);
  }
  pthread_mutex_unlock(&device->lock);
  return status;
}

helio_stream *hi_device_stream(hi_device *device, int index) {
  helio_stream *stream = atomic_load_explicit(&device->streams[index], memory_order_acquire);
  if (stream) return stream; /* always so for HI_STREAM_COMPUTE: it was made when the device was opened */
  if (hi_device_lock(device)) {
    hi_device_failed(device, HELIO_DEVICE_FAILURE, "making a stream");
    return NULL;
  }
  stream = device->streams[index];
  if (!stream) {
    hi_reason_clear();
    helio_status status = device->member.streams->create(device->member.device, &stream);
    if (status) {
      hi_device_failed(device, status, "making a stream");
      stream = NULL;
    } else {
      hi_arena_set_stream(device->arena, index, stream); /* before anybody can hand it work */
      device->streams[index] = stream;
    }
  }
  pthread_mutex_unlock(&device->lock);
  return stream;
}

helio_status hi_device_synchronize(hi_device *device) {
  if (!atomic_load_explicit(&device->open, memory_order_acquire) || hi_device_lost(device)) return HELIO_OK;
  hi_reason_clear();
  helio_status status = device->member.devices->synchronize(device->member.device);
  if (status) return hi_device_failed(device, status, "waiting");
  status = hi_copy_settle(device);
  if (!status) status = hi_arena_check(device->arena);
  return status ? status : hi_doubt_ask(device);
}
