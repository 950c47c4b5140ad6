/* SPDX-License-Identifier: Apache-2.0 */
/* The one physical device, and the logical ones that are opened on it. */
#include "cpu.h"

#include <string.h>

static helio_status device_count(helio_plugin_state *state, uint32_t *count) {
  (void)state;
  *count = 1;
  return HELIO_OK;
}

static helio_status device_check_index(helio_plugin_state *state, uint32_t index) {
  if (index == 0) return HELIO_OK;
  return state->host->fail(state->host, HELIO_NO_DEVICE, "there is one CPU, number 0; %u was asked for", index);
}

static helio_status device_describe(helio_plugin_state *state, uint32_t index, helio_device_description *description) {
  helio_status status = device_check_index(state, index);
  if (status != HELIO_OK) return status;
  helio_device_description full = {
      .size = description->size,
      .device_class = HELIO_CLASS_CPU,
      .capabilities = HELIO_CAPABLE_SYNCHRONOUS | HELIO_CAPABLE_HOST_MEMORY,
      .native_api = "host",
      .name = state->machine.name,
      .vendor = state->machine.vendor,
      .architecture = state->architecture,
      .bus_id = "",
      .memory = state->machine.memory,
      .compute_units = state->machine.cores,
      .alignment = CPU_ALIGNMENT,
      .properties = state->properties,
  };
  memcpy(description, &full, full.size < sizeof full ? full.size : sizeof full);
  return HELIO_OK;
}

static helio_status device_open(helio_plugin_state *state, uint32_t index, const helio_open_options *options,
                                helio_backend_device **result) {
  const helio_host *host = state->host;
  helio_status status = device_check_index(state, index);
  if (status != HELIO_OK) return status;
  if (options->size < sizeof options->size || !helio_struct_fits(options, sizeof *options))
    return host->fail(host, HELIO_NOT_SUPPORTED, "the core opens the device with options that are unknown here");
  helio_open_options known = {0};
  memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);

  helio_backend_device *device = host->allocate(host, sizeof *device);
  if (device == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory to open the device");
  *device = (helio_backend_device){.host = host, .state = state, .vector = state->vector};
  status = cpu_team_create(host, known.threads > 0 ? known.threads : 1, known.spin_us, &device->team);
  if (status != HELIO_OK) {
    host->release(host, device);
    return status;
  }
  *result = device;
  return HELIO_OK;
}

static void device_close(helio_backend_device *device) {
  if (device == NULL) return;
  cpu_team_destroy(device->team);
  device->host->release(device->host, device);
}

static helio_status device_memory_info(helio_backend_device *device, uint64_t *free, uint64_t *total) {
  (void)device;
  cpu_machine_memory(free, total);
  return HELIO_OK;
}

static helio_status device_synchronize(helio_backend_device *device) {
  (void)device;
  return HELIO_OK;
}

const helio_device_table cpu_device_table = {
    .size = sizeof(helio_device_table),
    .count = device_count,
    .describe = device_describe,
    .open = device_open,
    .close = device_close,
    .memory_info = device_memory_info,
    .synchronize = device_synchronize,
};
