/* SPDX-License-Identifier: Apache-2.0 */
/* One step after another, with the batches of an iteration. */
#ifndef HI_PASS_H
#define HI_PASS_H

#include "train/callback.h"
#include "train/logs.h"

/* What a call of fit, evaluate or predict consists of. */
typedef struct hi_pass {
  hi_compiled *entered; /* NULL: nothing is measured */
  hi_task task;
  helio_strategy *strategy;
  hi_callbacks callbacks;
  helio_training training; /* what these are told */
} hi_pass;

/* Of a compiled model that is to be trained or measured, with progress as wanted and the callbacks up to the first
 * NULL. Ended whether it could be begun or not. */
helio_status hi_pass_begin(hi_pass *pass, helio_model *model, helio_verbosity verbose,
                           helio_callback *const callbacks[HELIO_MOST_CALLBACKS]);
void hi_pass_end(hi_pass *pass);

/* What is done behind a step, with what it gave, which may be NULL (hi_take_step()); `user` is the walk's. */
typedef helio_status hi_behind_step(hi_pass *pass, void *user, helio_values *outputs);

typedef struct hi_walk {
  helio_step step;
  helio_distributed_iterator *batches;
  int64_t first;                         /* steps that were taken before */
  int64_t most;                          /* steps, those among them; 0: as many as there are batches */
  helio_status (*before)(hi_pass *pass); /* each step, when its batch is there; NULL: nothing */
  helio_status (*read)(void *user, const helio_values *outputs); /* hi_step; NULL: nothing */
  hi_behind_step *behind;                                        /* NULL: nothing */
  void *user;
  bool ended; /* there are no more batches */
} hi_walk;

/* Takes steps until the batches have ended, enough were taken, or a callback said stop. Told of each step in
 * pass->training: step, samples, seconds and what of them was input and reduction. Behind it, these are of all. */
helio_status hi_pass_walk(hi_pass *pass, hi_walk *walk);

/* How many steps the batches make, −1: not known. An error is pending if they never end; `what` is done to them. */
int64_t hi_pass_steps(const helio_distributed *batches, const char *what);

/* Measures on data: everything that was measured before is forgotten. The results are those of the metrics. Weights of
 * classes, which are for learning, do not count. */
helio_status hi_pass_test(hi_pass *pass, helio_distributed *batches, int64_t most);

#endif
