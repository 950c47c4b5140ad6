/* SPDX-License-Identifier: Apache-2.0 */
/* From a call to a result: check, place, plan, copy inputs, run. */
#ifndef HI_DISPATCH_H
#define HI_DISPATCH_H

#include "ops/plans.h"
#include "ops/table.h"

/* Carries out a row that has kernels. `outputs` receives HI_MAX_OUTPUTS pointers, NULL where there is none. */
helio_status hi_dispatch(hi_call *call, helio_tensor **outputs);

/* The same for rows whose first output is all that is wanted: NULL with the error set. */
helio_tensor *hi_dispatch_one(hi_call *call);

/* Runs a plan at the places of its arguments, in the order of one of the device's streams. */
helio_status hi_run_plan(hi_device *device, const hi_plan *plan, int stream, const hi_call *call,
                         const helio_place *places);

#endif
