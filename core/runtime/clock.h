/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HI_CLOCK_H
#define HI_CLOCK_H

#include <time.h>

/* Since some moment, never going back: for how long things take. */
static inline double hi_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Since 1970. */
static inline double hi_wall_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* When so many milliseconds of a clock will have passed: for waits that end by themselves. */
static inline struct timespec hi_in_milliseconds(clockid_t clock, long milliseconds) {
  struct timespec moment;
  clock_gettime(clock, &moment);
  moment.tv_sec += milliseconds / 1000;
  moment.tv_nsec += milliseconds % 1000 * 1000000;
  moment.tv_sec += moment.tv_nsec / 1000000000;
  moment.tv_nsec %= 1000000000;
  return moment;
}

#endif
