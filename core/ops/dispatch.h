/* SPDX-License-Identifier: Apache-2.0 */
/* From a call to a result: check, place, plan, copy inputs, run. */
#ifndef HI_DISPATCH_H
#define HI_DISPATCH_H

#include "ops/table.h"

/* Carries out a row that has kernels. `outputs` receives HI_MAX_OUTPUTS pointers, NULL where there is none. */
helio_status hi_dispatch(hi_call *call, helio_tensor **outputs);

/* The same for rows whose first output is all that is wanted: NULL with the error set. */
helio_tensor *hi_dispatch_one(hi_call *call);

/* Would the device that is asked for or comes first run this call as it is? If not, a fused operation is better taken
 * apart than moved elsewhere. */
bool hi_runs_where_wanted(hi_call *call);

#endif
