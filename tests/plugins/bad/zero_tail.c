/* SPDX-License-Identifier: Apache-2.0 */
/* Good: an entry that is longer than this core knows; the part that it does not know is zero and so asks for nothing.
 */
#define MINIMAL_NAME "zero-tail"
#define MINIMAL_SIZE sizeof(longer_plugin)
#define MINIMAL_OWN_ENTRY
#include "minimal.h"

typedef struct longer_plugin {
  helio_plugin known;
  unsigned char tail[16];
} longer_plugin;

/* Under the entry's symbol, although its type is another. */
extern HELIO_EXPORT const longer_plugin longer_entry __asm__("helio_plugin_entry");
const longer_plugin longer_entry = {.known = MINIMAL_ENTRY, .tail = {0}};
