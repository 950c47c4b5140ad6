/* SPDX-License-Identifier: Apache-2.0 */
/* The strict test device as a plugin: probe, init, finish, and the one symbol it exports. */
#include "strict.h"

#include <stdio.h>

/* A wrong setting is a failure; a missing CPU plugin only means that there are no devices. */
static helio_status probe(const helio_host *host, helio_probe_answer *answer) {
  strict_call call = {.name = "probe"};
  strict_settings settings;
  if (answer->size < HELIO_STRUCT_SIZE(helio_probe_answer, reason)) {
    return host->fail(host, HELIO_ABI_MISMATCH, "probe: an answer of %zu bytes", answer->size);
  }
  helio_status status = strict_settings_read(host, &call, &settings);
  if (status != HELIO_OK && status != HELIO_NO_DEVICE) return host->fail(host, status, "probe: %s", call.message);
  answer->devices = status == HELIO_OK ? settings.devices : 0;
  if (status != HELIO_OK) {
    snprintf(answer->reason, sizeof answer->reason, "%s", call.message);
  } else {
    snprintf(answer->reason, sizeof answer->reason, "%u strict test devices on top of %.300s", settings.devices,
             settings.inner_path);
  }
  return HELIO_OK;
}

static helio_status start(strict_call *call, const helio_host *host) {
  helio_status status = strict_settings_read(host, call, &strict_current->settings);
  if (status != HELIO_OK) return status;
  strict_current->random = strict_current->settings.seed;
  strict_current->quarantine_newest = &strict_current->quarantine_oldest;
  status = strict_handles_open(call);
  if (status != HELIO_OK) return status;
  status = strict_inner_open(call, strict_current->settings.inner_path);
  if (status != HELIO_OK) strict_handles_close();
  return status;
}

/* There is one state for the process: plan_free() and run() are told no device, so handles must be found without. */
static helio_status init(const helio_host *host, helio_plugin_state **result) {
  strict_call call;
  strict_enter(&call, "init");
  if (strict_current != NULL) {
    strict_leave(&call, HELIO_OK);
    return host->fail(host, HELIO_WRONG_STATE, "init: the strict test device is in use already");
  }
  strict_state *state = host->allocate(host, sizeof *state);
  if (state == NULL) {
    strict_leave(&call, HELIO_OK);
    return host->fail(host, HELIO_OUT_OF_MEMORY, "init: no host memory");
  }
  *state = (strict_state){.host = host};
  strict_guards_make();
  strict_current = state;
  helio_status status = start(&call, host);
  if (status == HELIO_OK) {
    *result = (helio_plugin_state *)state;
    return strict_leave(&call, HELIO_OK);
  }
  strict_current = NULL;
  strict_leave(&call, HELIO_OK);
  host->release(host, state);
  return host->fail(host, status, "init: %s", call.message);
}

static void finish(helio_plugin_state *handle) {
  strict_call call;
  strict_enter(&call, "finish");
  strict_state *state = strict_current;
  if (state == NULL || (helio_plugin_state *)state != handle) {
    strict_complain(&call, "of a state that is not in use");
    strict_leave(&call, HELIO_OK);
    return;
  }
  size_t open = 0;
  for (const strict_device *device = state->devices; device != NULL; device = device->next) open++;
  if (open != 0) strict_complain(&call, "%zu devices are still open", open);
  while (state->devices != NULL) strict_device_close(&call, state->devices);
  if (state->violation.status != HELIO_OK) strict_complain(&call, "not told before: %s", state->violation.message);
  strict_commands_free();
  strict_inner_close();
  strict_handles_close();
  strict_current = NULL;
  strict_leave(&call, HELIO_OK);
  const helio_host *host = state->host;
  host->release(host, state);
  if (call.complaint[0] != 0) host->log(host, HELIO_LOG_ERROR, "finish: %s", call.complaint);
}

const helio_plugin helio_plugin_entry = {
    .size = sizeof(helio_plugin),
    .magic = HELIO_PLUGIN_MAGIC,
    .abi_major = HELIO_ABI_MAJOR,
    .abi_minor = HELIO_ABI_MINOR,
    .name = "strict",
    .version = "0.1.0",
    .description = "a test device that punishes mistakes of the core",
    .probe = probe,
    .init = init,
    .finish = finish,
    .devices = &strict_device_table,
    .memory = &strict_memory_table,
    .streams = &strict_stream_table,
    .kernels = &strict_kernel_table,
    .parameters = strict_parameters,
};
