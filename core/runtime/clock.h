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

#endif
