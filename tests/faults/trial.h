/* SPDX-License-Identifier: Apache-2.0 */
/* A training under a fault, from the start of the library to its end, and what is asked of it: it comes to what it
 * comes to without the fault, or ends with a clear error; afterwards a new strategy on another device trains as if
 * nothing had been; and no thread is left that was not named. */
#ifndef HELIO_TEST_TRIAL_H
#define HELIO_TEST_TRIAL_H

#include "training.h"

typedef struct trial {
  course what;
  const outcome *expected; /* of a device that does not fail */
  const void *plan;        /* what `make` is given */
  helio_strategy *(*make)(const void *plan);
  const char *other; /* a device that does not fail */
  /* Lies that nobody can catch, but where replicas differ. */
  bool is_silent;
} trial;

/* With the environment as the caller has set it. NULL if it was as it should be, else what is wrong, until the next
 * call. */
const char *run_trial(const trial *t, outcome *found);

/* The log of the last one, for whoever looks for the cause. */
void print_trial(void);

/* The same, and how it ended, for one that runs alone. Returns the program's exit status. */
int tell_trial(const outcome *found, const char *wrong);

#endif
