/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of a device's backend passes here, whoever makes it: the core, the arena or a collective. A device that
 * was lost refuses; the thread tells what it is doing, for those who wait for it; and a device whose call fails, or
 * answers with nothing, is suspect. */
#ifndef HI_GUARD_H
#define HI_GUARD_H

#include "runtime/plugins.h"

/* Fills plugin->shown. The device that those tables take is an hi_device. */
void hi_guard(hi_plugin *plugin);

#endif
