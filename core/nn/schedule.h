/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates by step: evaluated on the host, in double. */
#ifndef HI_SCHEDULE_H
#define HI_SCHEDULE_H

#include "tensor/object.h"

typedef struct hi_schedule_kind hi_schedule_kind;

struct helio_schedule {
  hi_object object;
  const hi_schedule_kind *kind;
  helio_schedule_options options; /* complete: zeros stand for themselves. The arrays are the schedule's own */
};

/* The rate of a step, counted from 0. */
double hi_schedule_rate(const helio_schedule *schedule, int64_t step);

#endif
