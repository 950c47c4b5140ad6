/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapping backend as a plugin. */

#include "wrap.h"

struct helio_plugin_state {
  wrap_inner inner;
};

const helio_plugin *wrap_inner_plugin;

static const wrap_settings settings = {.plugin = "HELIO_WRAP_PLUGIN", .rules = "HELIO_WRAP_RULES"};

static helio_status probe(const helio_host *host, helio_probe_answer *answer) {
  return wrap_inner_probe(host, &settings, answer);
}

static helio_status init(const helio_host *host, helio_plugin_state **result) {
  helio_plugin_state *state = host->allocate(host, sizeof *state);
  if (!state) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  helio_status status = wrap_inner_start(&state->inner, host, &settings);
  if (status) {
    host->release(host, state);
    return status;
  }
  wrap_inner_plugin = state->inner.plugin;
  *result = state;
  return HELIO_OK;
}

static void finish(helio_plugin_state *state) {
  const helio_host *host = state->inner.real;
  wrap_inner_stop(&state->inner);
  host->release(host, state);
}

/* ---- devices: the entries that know the state ---- */

static helio_status count_devices(helio_plugin_state *state, uint32_t *count) {
  return state->inner.plugin->devices->count(state->inner.state, count);
}

static helio_status describe(helio_plugin_state *state, uint32_t index, helio_device_description *description) {
  return state->inner.plugin->devices->describe(state->inner.state, index, description);
}

static helio_status open_device(helio_plugin_state *state, uint32_t index, const helio_open_options *options,
                                helio_backend_device **result) {
  const helio_host *host = state->inner.real;
  helio_backend_device *device = host->allocate(host, sizeof *device);
  if (!device) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a device");
  device->plugin = state->inner.plugin;
  wrap_target_begin(&device->target, &state->inner, index + options->logical_index);
  helio_status status = device->plugin->devices->open(state->inner.state, index, options, &device->inner);
  if (status) {
    host->release(host, device);
  } else {
    *result = device;
  }
  return status;
}

static void close_device(helio_backend_device *device) {
  const helio_host *host = device->target.inner->real;
  device->plugin->devices->close(device->inner);
  wrap_target_end(&device->target);
  host->release(host, device);
}

static helio_status memory_info(helio_backend_device *device, uint64_t *free_bytes, uint64_t *total) {
  return device->plugin->devices->memory_info(device->inner, free_bytes, total);
}

static helio_status synchronize(helio_backend_device *device) {
  wrap_call call = {.target = &device->target, .kind = WRAP_EVENT, .name = "synchronize", .waits = true};
  wrap_add(&device->target, WRAP_WAITS, 1);
  helio_status status = wrap_before(&call);
  return status || call.skipped ? status : wrap_after(&call, device->plugin->devices->synchronize(device->inner));
}

static void *native_device(helio_backend_device *device) {
  const helio_device_table *table = device->plugin->devices;
  return table->native_device ? table->native_device(device->inner) : NULL;
}

static const helio_device_table device_table = {
    .size = sizeof(helio_device_table),
    .count = count_devices,
    .describe = describe,
    .open = open_device,
    .close = close_device,
    .memory_info = memory_info,
    .synchronize = synchronize,
    .native_device = native_device,
};

/* ---- the plugin ---- */

static const helio_parameter *const parameters[] = {
    &(const helio_parameter){.size = sizeof(helio_parameter),
                             .name = "HELIO_WRAP_PLUGIN",
                             .kind = HELIO_PARAMETER_TEXT,
                             .default_value = "",
                             .help = "Path of the backend plugin that the test backend wraps."},
    &(const helio_parameter){.size = sizeof(helio_parameter),
                             .name = "HELIO_WRAP_RULES",
                             .kind = HELIO_PARAMETER_TEXT,
                             .default_value = "",
                             .help = "What happens at which calls, such as kernel:time=20000; copy@17+/1:fail."},
    NULL,
};

const helio_plugin helio_plugin_entry = {
    .size = sizeof(helio_plugin),
    .magic = HELIO_PLUGIN_MAGIC,
    .abi_major = HELIO_ABI_MAJOR,
    .abi_minor = HELIO_ABI_MINOR,
    .name = "wrap",
    .version = "0.1.0",
    .description = "a test backend that wraps another",
    .probe = probe,
    .init = init,
    .finish = finish,
    .devices = &device_table,
    .memory = &wrap_memory_table,
    .streams = &wrap_stream_table,
    .kernels = &wrap_kernel_table,
    .parameters = parameters,
};
