/* SPDX-License-Identifier: Apache-2.0 */
/* A training from its begin to its end, as `helio train` has understood the command line. */
#ifndef TRAINING_H
#define TRAINING_H

#include "objective.h"
#include "recipes.h"
#include "train_devices.h"

typedef struct training {
  const char *path; /* of the command, for messages */

  /* what is trained, on what */
  const recipe *recipe; /* NULL: the model of a file */
  const char *architecture, *data, *loss, *init;
  double validation_split; /* of the samples, the last part; 0: none */
  device_options devices;

  /* how; numbers of 0 stand for the recipe's own */
  int64_t batch, replica_batch, epochs;
  int64_t limit; /* steps of all epochs; 0: no limit */
  const char *optimizer;
  double rate;
  helio_rate_scaling scaling;
  int64_t seed; /* −1: of the environment */
  bool in_order;

  /* what is written; NULL: not wanted */
  const char *save, *checkpoint, *log, *plot, *tensorboard, *timeline;
  int64_t checkpoint_every; /* steps; 0: epochs */
  bool resume, json;
  bool talks; /* prints what it does; not if it is to print JSON, or nothing */
} training;

/* What is counted while it trains. */
typedef struct tally {
  int64_t begun;    /* steps that a checkpoint had */
  int64_t steps;    /* since the training began, resumed ones among them */
  int64_t measured; /* steps up to the last epoch that was measured */
  int64_t samples;  /* trained on since it went on */
  double seconds;   /* for these, without validation */
} tally;

/* A training under way. */
typedef struct session {
  const training *asked;
  helio_strategy *strategy;
  const char *devices[HELIO_MAX_REPLICAS]; /* that it began with */
  int device_count;
  sample_set samples;
  objective objective;
  helio_model *model;
  helio_optimizer *optimizer;
  int64_t batch, steps, epochs; /* the global batch, steps of an epoch, in which a rate that is scaled grows */
  double rate;                  /* of the optimizer, before it was scaled */
  tally tally;
} session;

/* The exit status: of a signal that ended it, 128 and its number. */
int training_run(const training *t);

#endif
