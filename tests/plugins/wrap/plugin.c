/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapping backend as a plugin. */
#include <stdio.h>

#include "wrap.h"

static helio_status probe(const helio_host *host, helio_probe_answer *answer) {
  wrap_inner inner;
  helio_status status = wrap_inner_open(&inner, host);
  if (status != HELIO_NO_DEVICE) return status ? status : inner.plugin->probe(&inner.host, answer);
  snprintf(answer->reason, sizeof answer->reason, "HELIO_WRAP_PLUGIN names no plugin that can be opened");
  return HELIO_OK;
}

static helio_status init(const helio_host *host, helio_plugin_state **result) {
  helio_plugin_state *state = host->allocate(host, sizeof *state);
  if (!state) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  *state = (helio_plugin_state){0};
  helio_status status = wrap_inner_open(&state->inner, host);
  if (status) goto release_state;
  status = wrap_rules_read(state, host->parameter(host, "HELIO_WRAP_RULES"));
  if (status) goto release_state;
  status = state->inner.plugin->init(&state->inner.host, &state->inner_state);
  if (status) goto release_rules;
  wrap_inner_plugin = state->inner.plugin;
  *result = state;
  return HELIO_OK;

release_rules:
  host->release(host, state->rules);
release_state:
  host->release(host, state);
  return status;
}

static void finish(helio_plugin_state *state) {
  const helio_host *host = state->inner.real;
  state->inner.plugin->finish(state->inner_state);
  host->release(host, state->rules);
  host->release(host, state);
}

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
                             .help = "What happens at which calls, such as kernel:time=20000; copy@17+/1:tell."},
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
    .devices = &wrap_device_table,
    .memory = &wrap_memory_table,
    .streams = &wrap_stream_table,
    .kernels = &wrap_kernel_table,
    .parameters = parameters,
};
