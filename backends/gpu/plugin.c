/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU backend as a plugin: its settings, how it starts and ends, and the one symbol it exports. */
#include "names.h"
#include "physical.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#ifndef GPU_VERSION
#define GPU_VERSION "0.1.0"
#endif

const vendor_names vendor = {
    .plugin = VENDOR_PLUGIN,
    .title = VENDOR_TITLE,
    .vendor = VENDOR_VENDOR,
    .parameter_cache = VENDOR_PARAMETER "CACHE",
    .parameter_libraries = VENDOR_PARAMETER "LIBRARIES",
    .parameter_workspace = VENDOR_PARAMETER "WORKSPACE",
};

static const helio_parameter parameter_cache = {
    .size = sizeof(helio_parameter),
    .name = VENDOR_PARAMETER "CACHE",
    .kind = HELIO_PARAMETER_TEXT,
    .default_value = "",
    .help = "Folder that compiled " VENDOR_TITLE " kernels are kept in; empty is helio/kernels in "
            "$XDG_CACHE_HOME or ~/.cache, none keeps nothing.",
};

static const helio_parameter parameter_libraries = {
    .size = sizeof(helio_parameter),
    .name = VENDOR_PARAMETER "LIBRARIES",
    .kind = HELIO_PARAMETER_TEXT,
    .default_value = "",
    .help = "Folders, separated by colons, in which " VENDOR_VENDOR
            "'s libraries are looked for before the loader looks; empty: where it looks and in " VENDOR_FOLDERS ".",
};

static const helio_parameter parameter_workspace = {
    .size = sizeof(helio_parameter),
    .name = VENDOR_PARAMETER "WORKSPACE",
    .kind = HELIO_PARAMETER_INTEGER,
    .default_value = "256",
    .help = "MiB of device memory that " VENDOR_DNN " may use for one convolution besides its arguments.",
};

static const helio_parameter *const parameters[] = {&parameter_cache, &parameter_libraries, &parameter_workspace, NULL};

static helio_status probe(const helio_host *host, helio_probe_answer *answer) {
  if (answer->size < sizeof *answer)
    return host->fail(host, HELIO_ABI_MISMATCH, "the probe's answer has %zu bytes, not %zu", answer->size,
                      sizeof *answer);
  int count = 0;
  if (!vendor_driver_open(host, &count, answer->reason, sizeof answer->reason)) return HELIO_OK;
  answer->devices = (uint32_t)count;
  return HELIO_OK;
}

/* The facts that `helio devices` shows besides the description. */
static void write_properties(gpu_physical *physical) {
  size_t width = sizeof physical->property_text[0], count = 0;
  snprintf(physical->property_text[count++], width, "warp=%u", physical->facts.warp);
  snprintf(physical->property_text[count++], width, "shared_memory=%zu", physical->facts.shared_limit);
  snprintf(physical->property_text[count++], width, "driver=%s", physical->facts.driver);
  if (physical->facts.integrated) snprintf(physical->property_text[count++], width, "integrated=yes");
  for (size_t i = 0; i < count; i++) physical->properties[i] = physical->property_text[i];
}

static helio_status physical_init(helio_plugin_state *state, uint32_t index) {
  const helio_host *host = state->host;
  gpu_physical *physical = &state->physical[index];
  physical->index = (int)index;
  vendor_result result = vendor_device_facts((int)index, &physical->facts);
  if (result != 0)
    return host->fail(host, gpu_status_of(result), "%s device %u does not tell what it is: %s", vendor.title, index,
                      vendor_result_text(result));
  /* By which a card that two backends reach is known. */
  for (char *at = physical->facts.bus_id; *at != '\0'; at++) *at = (char)tolower((unsigned char)*at);
  write_properties(physical);
  physical->reach = host->allocate(host, state->count * sizeof *physical->reach);
  if (physical->reach == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  for (uint32_t i = 0; i < state->count; i++) physical->reach[i] = GPU_REACH_UNKNOWN;
  pthread_mutex_init(&physical->lock, NULL);
  return HELIO_OK;
}

static void finish(helio_plugin_state *state) {
  if (state == NULL) return;
  const helio_host *host = state->host;
  for (uint32_t i = 0; i < state->count; i++) {
    if (state->physical[i].reach == NULL) continue; /* not begun */
    pthread_mutex_destroy(&state->physical[i].lock);
    host->release(host, state->physical[i].reach);
  }
  gpu_images_destroy(state->images);
  host->release(host, state->physical);
  host->release(host, state);
}

static helio_status init(const helio_host *host, helio_plugin_state **result) {
  char reason[512];
  int count = 0;
  if (!vendor_driver_open(host, &count, reason, sizeof reason)) return host->fail(host, HELIO_NO_DEVICE, "%s", reason);
  helio_plugin_state *state = host->allocate(host, sizeof *state);
  size_t bytes = (size_t)count * sizeof(gpu_physical);
  gpu_physical *physical = host->allocate(host, bytes);
  if (state == NULL || physical == NULL) {
    if (state != NULL) host->release(host, state);
    if (physical != NULL) host->release(host, physical);
    return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plugin's state");
  }
  memset(physical, 0, bytes);
  *state = (helio_plugin_state){.host = host, .count = (uint32_t)count, .physical = physical};
  helio_status status = gpu_images_create(host, &state->images);
  for (uint32_t i = 0; status == HELIO_OK && i < state->count; i++) status = physical_init(state, i);
  if (status != HELIO_OK) {
    finish(state);
    return status;
  }
  *result = state;
  return HELIO_OK;
}

const helio_plugin helio_plugin_entry = {
    .size = sizeof(helio_plugin),
    .magic = HELIO_PLUGIN_MAGIC,
    .abi_major = HELIO_ABI_MAJOR,
    .abi_minor = HELIO_ABI_MINOR,
    .name = VENDOR_PLUGIN,
    .version = GPU_VERSION,
    .description = VENDOR_DESCRIPTION,
    .probe = probe,
    .init = init,
    .finish = finish,
    .devices = &gpu_device_table,
    .memory = &gpu_memory_table,
    .streams = &gpu_stream_table,
    .kernels = &gpu_kernel_table,
    .parameters = parameters,
};
