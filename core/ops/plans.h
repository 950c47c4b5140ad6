/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared kernel calls, kept on each device by the call's signature: operation, types, shapes and attributes. */
#ifndef HI_PLANS_H
#define HI_PLANS_H

#include "device/device.h"
#include "ops/table.h"

typedef struct hi_plan hi_plan;

/* HELIO_NOT_SUPPORTED, with the reason, if the device's backend has no kernel for the operation in this type. Looks at
 * tables only. */
helio_status hi_plan_possible(const hi_device *device, const hi_call *call);

/* The plan for a call on a device that is in use, held until hi_plan_release(). HELIO_NOT_SUPPORTED: the device has no
 * kernel for it, hi_reason() says why, and the thread's error is not set; it is for any other failure. */
helio_status hi_plan_get(hi_device *device, const hi_call *call, hi_plan **plan);
void hi_plan_release(hi_plan *plan);

/* Runs it at the places of the call's arguments, in the order of one of the device's streams. */
helio_status hi_plan_run(const hi_plan *plan, hi_device *device, int stream, const hi_call *call,
                         const helio_place *places);

/* The same in two parts: the memory that it needs besides the arguments, to be released, or NULL if it needs none; and
 * the run itself, in which only the device can fail. */
helio_status hi_plan_workspace(const hi_plan *plan, hi_device *device, int stream, hi_block **workspace);
helio_status hi_plan_run_in(const hi_block *workspace, const hi_plan *plan, hi_device *device, int stream,
                            const hi_call *call, const helio_place *places);

/* How many plans a device keeps at the most, and how many it has now: for tests. */
enum { HI_MOST_PLANS = 2048 };
int hi_plan_count(hi_device *device);

#endif
