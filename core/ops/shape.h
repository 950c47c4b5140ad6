/* SPDX-License-Identifier: Apache-2.0 */
/* Shape rules of operations. Each checks the inputs, fills the call's outputs, and names operation and shapes in its
 * errors. */
#ifndef HI_SHAPE_H
#define HI_SHAPE_H

#include "ops/table.h"

helio_status hi_shape_as_wanted(hi_call *call); /* fill */
helio_status hi_shape_same(hi_call *call);      /* copy, relu */
helio_status hi_shape_cast(hi_call *call);      /* the same with another type */
helio_status hi_shape_slice(hi_call *call);     /* completes −1 in call->wanted */
helio_status hi_shape_concat(hi_call *call);
helio_status hi_shape_broadcast(hi_call *call); /* add, sub, mul */
helio_status hi_shape_all_same(hi_call *call);  /* add_n */
helio_status hi_shape_reduce(hi_call *call);
helio_status hi_shape_matmul(hi_call *call);

/* Axis −rank … rank−1 as 0 … rank−1; −1 with the error set if it is out of range. */
int hi_axis(const char *operation, int axis, const helio_shape *shape);

#endif
