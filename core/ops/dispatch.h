/* SPDX-License-Identifier: Apache-2.0 */
/* From a call to a result: check, place, plan, copy inputs, run. */
#ifndef HI_DISPATCH_H
#define HI_DISPATCH_H

#include "ops/plans.h"
#include "ops/table.h"

/* Carries out a row that has kernels. Its first result, NULL with the error set; further ones are written to `more`. */
helio_tensor *hi_dispatch(hi_call *call, helio_tensor **more);

/* Runs a plan at the places of its arguments, in the order of one of the device's streams. */
helio_status hi_run_plan(hi_device *device, const hi_plan *plan, int stream, const hi_call *call,
                         const helio_place *places);

#endif
