/* SPDX-License-Identifier: Apache-2.0 */
/* A fixture of test_devices: a backend with one card of class GPU, built twice under two names that show the same bus
 * id, as one card that two backends reach. */
#define MINIMAL_DEVICES &card_devices
#define MINIMAL_OWN_ENTRY
#include "../plugins/bad/minimal.h"

static helio_status card_describe(helio_plugin_state *state, uint32_t index, helio_device_description *description) {
  helio_status status = minimal_describe(state, index, description);
  if (status != HELIO_OK) return status;
  description->device_class = HELIO_CLASS_GPU;
  description->name = "One card";
  description->bus_id = "0000:3b:00.0";
  return HELIO_OK;
}

static const helio_device_table card_devices = {
    .size = sizeof(helio_device_table),
    .count = minimal_count,
    .describe = card_describe,
    .open = minimal_open,
    .close = minimal_close,
    .memory_info = minimal_memory_info,
    .synchronize = minimal_device_synchronize,
};

const helio_plugin helio_plugin_entry = MINIMAL_ENTRY;
