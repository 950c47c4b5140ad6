/* SPDX-License-Identifier: Apache-2.0 */
/* A training from its begin to its end, as `helio train` has understood the command line. */
#ifndef COURSE_H
#define COURSE_H

#include "goal.h"
#include "recipes.h"
#include "train_devices.h"

typedef struct course {
  const char *path; /* of the command, for messages */

  /* what is trained, on what */
  const recipe *recipe; /* NULL: the architecture of a file */
  const char *architecture, *data, *loss, *init;
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
  bool resume, json, quiet;
} course;

/* The exit status: of a signal that ended it, 128 and its number. */
int course_run(const course *c);

#endif
