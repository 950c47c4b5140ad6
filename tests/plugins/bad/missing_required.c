/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: its table of memory has no copy, which is required. */
#define MINIMAL_NAME   "missing-required"
#define MINIMAL_MEMORY &gappy_memory
#define MINIMAL_OWN_ENTRY
#include "minimal.h"

static const helio_memory_table gappy_memory = {
    .size = sizeof(helio_memory_table),
    .allocate = minimal_allocate,
    .free = minimal_free,
    .copy_in = minimal_copy_in,
    .copy_out = minimal_copy_out,
    .fill = minimal_fill,
    .native_buffer = minimal_native_buffer,
};

const helio_plugin helio_plugin_entry = MINIMAL_ENTRY;
