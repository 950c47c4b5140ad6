/* SPDX-License-Identifier: Apache-2.0 */
/* What gradients of operations share. */
#ifndef HI_GRADIENT_HELP_H
#define HI_GRADIENT_HELP_H

#include "ops/table.h"

/* What flows back into the operation's first output. */
static inline helio_tensor *dy_of(const hi_backward *call) {
  return call->output_gradients[0];
}

/* Is the gradient by this input asked for, and is there one? Integers have none. */
bool hi_gradient_wanted(const hi_backward *call, int input);

/* Fills in a dense gradient; NULL is the error that is pending. */
helio_status hi_gradient_give(const hi_backward *call, int input, helio_tensor *value);

/* A scalar. */
helio_tensor *hi_gradient_constant(helio_type type, double value);

/* Sums `value` over the axes along which a tensor of `shape` was repeated. */
helio_tensor *hi_gradient_unbroadcast(helio_tensor *value, const helio_shape *shape);

#endif
