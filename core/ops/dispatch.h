/* SPDX-License-Identifier: Apache-2.0 */
/* From a call to a result: check, place, plan, copy inputs, run. */
#ifndef HI_DISPATCH_H
#define HI_DISPATCH_H

#include "device/device.h"
#include "ops/table.h"

/* Carries out a row that has kernels. `outputs` receives HI_MAX_OUTPUTS pointers, NULL where there is none. */
helio_status hi_dispatch(hi_call *call, helio_tensor **outputs);

/* The same for rows whose first output is all that is wanted: NULL with the error set. */
helio_tensor *hi_dispatch_one(hi_call *call);

/* A call of a row that writes its inputs and has no outputs, in two parts: all that there may be too little of is had
 * first, so that only the device can fail when it runs. */
typedef struct hi_prepared {
  hi_call call; /* whose inputs are these: */
  helio_tensor *inputs[HI_MAX_FIXED_INPUTS];
  hi_device *device; /* the rest is filled in when it is prepared */
  struct hi_plan *plan;
  hi_block *workspace;
  helio_place places[HI_MAX_FIXED_INPUTS];
  helio_tensor *moved[HI_MAX_FIXED_INPUTS]; /* written inputs that were copied: of the pool it was prepared in */
} hi_prepared;

helio_status hi_dispatch_prepare(hi_prepared *prepared);
helio_status hi_dispatch_prepared(const hi_prepared *prepared);
void hi_prepared_end(hi_prepared *prepared); /* whether or not it was prepared, or ran */

/* Would the device that is asked for or comes first run this call as it is? If not, a fused operation is better taken
 * apart than moved elsewhere. */
bool hi_runs_where_wanted(hi_call *call);

#endif
