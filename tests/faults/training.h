/* SPDX-License-Identifier: Apache-2.0 */
/* A few steps of training that may meet failing devices, as a program does it that handles errors, and what they came
 * to. */
#ifndef HELIO_TEST_TRAINING_H
#define HELIO_TEST_TRAINING_H

#include <helio/helio.h>

enum { MOST_STEPS = 10, MOST_NUMBERS = 96 };

typedef enum course {
  WORDS,  /* ten steps with everything that a step may change: weights and slots, dense and by rows */
  IMAGES, /* three, with the convolutions and products of a vendor's libraries */
} course;

typedef struct outcome {
  bool finished;             /* all steps; else there is an error */
  helio_error error;         /* which ended it; it was taken */
  int unknown;               /* losses that were lost with a replica */
  double losses[MOST_STEPS]; /* NaN: not known */
  double weights[MOST_NUMBERS];
  int count;      /* of the weights */
  bool differ;    /* the replicas' copies of them */
  double samples; /* that the replicas which are left have counted */
  int replicas;   /* that are left */
} outcome;

/* In the strategy; NULL: it could not be made, and that is what the training came to. */
void train(helio_strategy *strategy, course what, outcome *result);

/* NULL if it came to the same, to the law, else what differs. The string is valid until the next call. */
const char *difference(const outcome *found, const outcome *expected);

#endif
