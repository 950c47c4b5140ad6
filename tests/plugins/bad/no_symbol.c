/* SPDX-License-Identifier: Apache-2.0 */
/* Bad: a plugin whose entry has the wrong name. */
#define MINIMAL_NAME "no-symbol"
#define MINIMAL_OWN_ENTRY
#include "minimal.h"

extern HELIO_EXPORT const helio_plugin helio_plugin_entries;
const helio_plugin helio_plugin_entries = MINIMAL_ENTRY;
