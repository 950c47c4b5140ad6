/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of an open device's backend passes here, whoever makes it: the core, the arena or a collective. A device
 * that was lost refuses; the thread tells what it is doing, for those who wait for it; and a device whose call fails,
 * or answers with nothing, is suspect. */
#ifndef HI_GUARD_H
#define HI_GUARD_H

#include "device/device.h"
#include "runtime/plugins.h"

/* Fills plugin->shown. The device that those tables take is an hi_device. */
void hi_guard(hi_plugin *plugin);

/* The same for kernels, whose entries are told no device. `label` is the operation's. */
helio_status hi_guard_plan(hi_device *device, const helio_kernel *kernel, const helio_call *call,
                           helio_plan_answer *answer);
helio_status hi_guard_run(hi_device *device, const helio_kernel *kernel, helio_plan *plan, const helio_run *run,
                          const char *label);
void hi_guard_plan_free(hi_device *device, const helio_kernel *kernel, helio_plan *plan);

#endif
