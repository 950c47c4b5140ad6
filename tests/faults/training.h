/* SPDX-License-Identifier: Apache-2.0 */
/* Ten steps of training that may meet failing devices, as a program does it that handles errors, and what they came to.
 */
#ifndef HELIO_TEST_TRAINING_H
#define HELIO_TEST_TRAINING_H

#include <helio/helio.h>

enum { STEPS = 10, ROWS = 5, WORDS = 12, LENGTH = 2, CLASSES = 3, MOST_NUMBERS = 96 };

typedef struct outcome {
  bool finished;        /* all steps; else there is an error */
  helio_error error;    /* which ended it; it was taken */
  int unknown;          /* losses that were lost with a replica */
  double losses[STEPS]; /* NaN: not known */
  double weights[MOST_NUMBERS];
  int count;      /* of the weights */
  bool differ;    /* the replicas' copies of them */
  double samples; /* that the replicas which are left have counted */
  int replicas;   /* that are left */
} outcome;

/* In the strategy, which the caller has. */
void train(helio_strategy *strategy, outcome *result);

/* NULL if it came to the same, to the law, else what differs. The string is valid until the next call. */
const char *difference(const outcome *found, const outcome *expected);

#endif
