/* SPDX-License-Identifier: Apache-2.0 */
/* How the rows of a batch are shared out among replicas: each gets a run of rows, in order. */
#ifndef HI_SPLIT_H
#define HI_SPLIT_H

#include <helio/helio.h>

/* Writes the number of rows of each replica; together they are `rows`. `weights` are of HELIO_SPLIT_BALANCED alone, not
 * negative, and not all zero. */
void hi_split(helio_batch_split split, int64_t rows, const double *weights, int count, int64_t *sizes);

#endif
