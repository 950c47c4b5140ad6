/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: a table of memory that is longer than this core knows, with something in the part that it does not know. */
#define MINIMAL_NAME   "unknown-table-tail"
#define MINIMAL_MEMORY &longer_memory.known
#define MINIMAL_OWN_ENTRY
#include "minimal.h"

typedef struct longer_table {
  helio_memory_table known;
  helio_status (*invented)(helio_backend_device *device);
} longer_table;

static const longer_table longer_memory = {
    .known = {.size = sizeof(longer_table),
              .allocate = minimal_allocate,
              .free = minimal_free,
              .copy_in = minimal_copy_in,
              .copy_out = minimal_copy_out,
              .copy = minimal_copy,
              .fill = minimal_fill,
              .native_buffer = minimal_native_buffer},
    .invented = minimal_device_synchronize,
};

const helio_plugin helio_plugin_entry = MINIMAL_ENTRY;
