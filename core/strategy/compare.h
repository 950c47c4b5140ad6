/* SPDX-License-Identifier: Apache-2.0 */
/* HELIO_CHECK_REPLICAS: sums, and what optimizers write, are the same on every replica, or one of them computes
 * wrongly.
 */
#ifndef HI_COMPARE_H
#define HI_COMPARE_H

#include "ops/gradient.h"
#include "strategy/strategy.h"

/* Inside a step, by all replicas, of their sums and of what each brought to them: an error of all that names the
 * replica whose sum differs, or which alone brought what is not finite. */
helio_status hi_compare_sums(helio_strategy *strategy, const hi_gradient *own, const hi_gradient *sums, int count);

/* The same of tensors that were written. */
helio_status hi_compare_written(hi_replicas *replicas, helio_tensor *const *tensors, const char *const *names,
                                int count);

#endif
