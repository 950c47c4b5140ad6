/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared kernel calls, kept on each device by the call's signature: operation, types, shapes and attributes. */
#ifndef HI_PLANS_H
#define HI_PLANS_H

#include "device/device.h"
#include "ops/table.h"

typedef struct hi_plan hi_plan;

/* The plan for a call on a device that is in use, held until hi_plan_release(). HELIO_NOT_SUPPORTED: the device has no
 * kernel for it, hi_reason() says why, and the thread's error is not set; it is for any other failure. */
helio_status hi_plan_get(hi_device *device, const hi_call *call, hi_plan **plan);
void hi_plan_release(hi_plan *plan);

const helio_kernel *hi_plan_kernel(const hi_plan *plan);
helio_plan *hi_plan_prepared(const hi_plan *plan);
size_t hi_plan_workspace(const hi_plan *plan);

/* How many plans a device keeps at the most, and how many it has now: for tests. */
enum { HI_MOST_PLANS = 2048 };
int hi_plan_count(hi_device *device);

#endif
