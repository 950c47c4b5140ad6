/* SPDX-License-Identifier: Apache-2.0 */
/* HELIO_CHECK_REPLICAS: behind a sum every replica has the same, or one of them computes wrongly. */
#ifndef HI_COMPARE_H
#define HI_COMPARE_H

#include "ops/gradient.h"
#include "strategy/strategy.h"

/* Inside a step, by all replicas, of their sums: an error of all that names the replica whose sum differs. */
helio_status hi_compare_sums(helio_strategy *strategy, const hi_gradient *sums, int count);

#endif
