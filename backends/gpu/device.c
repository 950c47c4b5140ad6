/* SPDX-License-Identifier: Apache-2.0 */
/* Cards, and the logical devices that are opened on them. A card's context is made when the first one is opened and
 * released with the last. */
#include "libraries.h"
#include "physical.h"

#include <string.h>

helio_status gpu_enter(helio_backend_device *device) {
  vendor_result result = vendor_context_enter(device->physical->context);
  return result == 0 ? HELIO_OK : gpu_fail(device, result, "making it the thread's current device");
}

bool gpu_enter_to_free(helio_backend_device *device) {
  return vendor_context_enter(device->physical->context) == 0 &&
         gpu_status_of(vendor_context_query()) != HELIO_DEVICE_FAILURE;
}

static helio_status tell(const helio_backend_device *device, helio_status status, vendor_result result,
                         const char *call) {
  const helio_host *host = device->host;
  return host->fail(host, status, "%s device %d (%s): %s failed: %s", vendor.title, device->physical->index,
                    device->facts->name, call, vendor_result_text(result));
}

helio_status gpu_fail(const helio_backend_device *device, vendor_result result, const char *call) {
  return tell(device, gpu_status_of(result), result, call);
}

helio_status gpu_fail_late(const helio_backend_device *device, vendor_result result) {
  return tell(device, HELIO_DEVICE_FAILURE, result, "earlier work");
}

static helio_status device_count(helio_plugin_state *state, uint32_t *count) {
  *count = state->count;
  return HELIO_OK;
}

static helio_status device_check_index(helio_plugin_state *state, uint32_t index) {
  if (index < state->count) return HELIO_OK;
  return state->host->fail(state->host, HELIO_NO_DEVICE, "there are %u %s devices; number %u was asked for",
                           state->count, vendor.title, index);
}

static helio_status device_describe(helio_plugin_state *state, uint32_t index, helio_device_description *description) {
  helio_status status = device_check_index(state, index);
  if (status != HELIO_OK) return status;
  const gpu_physical *physical = &state->physical[index];
  helio_device_description full = {
      .size = description->size,
      .device_class = HELIO_CLASS_GPU,
      .capabilities = physical->facts.integrated ? HELIO_CAPABLE_INTEGRATED : 0,
      .native_api = vendor.plugin,
      .name = physical->facts.name,
      .vendor = vendor.vendor,
      .architecture = physical->facts.architecture,
      .bus_id = physical->facts.bus_id,
      .memory = physical->facts.memory,
      .compute_units = physical->facts.compute_units,
      .alignment = GPU_ALIGNMENT,
      .properties = physical->properties,
  };
  memcpy(description, &full, full.size < sizeof full ? full.size : sizeof full);
  return HELIO_OK;
}

/* One more logical device on the card. */
static helio_status physical_open(helio_backend_device *device) {
  gpu_physical *physical = device->physical;
  vendor_result result = 0;
  pthread_mutex_lock(&physical->lock);
  if (physical->open_count == 0) result = vendor_context_open(physical->index, &physical->context);
  if (result == 0) physical->open_count++;
  pthread_mutex_unlock(&physical->lock);
  return result == 0 ? HELIO_OK : gpu_fail(device, result, "opening it");
}

/* With a context goes what others were allowed to do with it. */
static void forget_reach(helio_plugin_state *state, gpu_physical *physical) {
  for (uint32_t i = 0; i < state->count; i++) {
    __atomic_store_n(&physical->reach[i], GPU_REACH_UNKNOWN, __ATOMIC_RELEASE);
    __atomic_store_n(&state->physical[i].reach[physical->index], GPU_REACH_UNKNOWN, __ATOMIC_RELEASE);
  }
}

static void physical_close(helio_backend_device *device) {
  gpu_physical *physical = device->physical;
  pthread_mutex_lock(&physical->lock);
  if (--physical->open_count == 0) {
    gpu_modules_unload(device->state, physical, !gpu_enter_to_free(device));
    vendor_context_close(physical->index, physical->context);
    physical->context = NULL;
    forget_reach(device->state, physical);
  }
  pthread_mutex_unlock(&physical->lock);
}

static helio_status device_open(helio_plugin_state *state, uint32_t index, const helio_open_options *options,
                                helio_backend_device **result) {
  const helio_host *host = state->host;
  helio_status status = device_check_index(state, index);
  if (status != HELIO_OK) return status;
  if (options->size < sizeof options->size || !helio_struct_fits(options, sizeof *options))
    return host->fail(host, HELIO_NOT_SUPPORTED, "the core opens the device with options that are unknown here");
  helio_backend_device *device = host->allocate(host, sizeof *device);
  if (device == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory to open the device");
  gpu_physical *physical = &state->physical[index];
  helio_open_options known = {0};
  memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
  *device = (helio_backend_device){
      .host = host, .state = state, .physical = physical, .facts = &physical->facts, .spin_us = known.spin_us};
  status = physical_open(device);
  if (status != HELIO_OK) {
    host->release(host, device);
    return status;
  }
  *result = device;
  return HELIO_OK;
}

static void device_close(helio_backend_device *device) {
  if (device == NULL) return;
  gpu_libraries_close(device, !gpu_enter_to_free(device));
  physical_close(device);
  device->host->release(device->host, device);
}

static helio_status device_memory_info(helio_backend_device *device, uint64_t *free, uint64_t *total) {
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  size_t free_bytes, all;
  vendor_result result = vendor_memory_info(&free_bytes, &all);
  if (result != 0) return gpu_fail(device, result, "asking for its memory");
  *free = free_bytes;
  *total = all;
  return HELIO_OK;
}

static helio_status device_synchronize(helio_backend_device *device) {
  helio_status status = gpu_enter(device);
  if (status != HELIO_OK) return status;
  vendor_result result = vendor_context_synchronize();
  if (result == 0) return HELIO_OK;
  /* Nobody may wait for a card of which the program captures a stream: that tells nothing of the work. */
  return gpu_status_of(result) == HELIO_WRONG_STATE ? gpu_fail(device, result, "waiting for it")
                                                    : gpu_fail_late(device, result);
}

static void *device_native(helio_backend_device *device) {
  return vendor_context_native(device->physical->context);
}

const helio_device_table gpu_device_table = {
    .size = sizeof(helio_device_table),
    .count = device_count,
    .describe = device_describe,
    .open = device_open,
    .close = device_close,
    .memory_info = device_memory_info,
    .synchronize = device_synchronize,
    .native_device = device_native,
};
