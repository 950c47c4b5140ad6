/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of slices that lie in the host's memory. */
#ifndef LOCAL_SUM_H
#define LOCAL_SUM_H

#include <helio/plugin.h>

/* HELIO_TYPE_BIT of what can be summed. */
extern const uint32_t local_sum_types;

/* One after the other: a target may be the source of the same number, and nothing else overlaps. */
typedef struct local_sum {
  uint32_t type, reduction;
  uint32_t source_count, target_count;
  char *const *targets;
  char *const *sources;
} local_sum;

/* Each target's elements from `first` up to `end` become the sum of those of the sources, added in their order and
 * rounded to the type each time. Where there is one target it may be any of the sources. */
void local_sum_slice(const local_sum *what, size_t first, size_t end);

#endif
