/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: an entry that is longer than this core knows, with something in the part that it does not know. */
#define MINIMAL_NAME "unknown-tail"
#define MINIMAL_SIZE sizeof(longer_plugin)
#define MINIMAL_OWN_ENTRY
#include "minimal.h"

typedef struct longer_plugin {
  helio_plugin known;
  unsigned char tail[16];
} longer_plugin;

/* Under the entry's symbol, although its type is another. */
extern HELIO_EXPORT const longer_plugin longer_entry __asm__("helio_plugin_entry");
const longer_plugin longer_entry = {.known = MINIMAL_ENTRY, .tail = {[11] = 1}};
