/* SPDX-License-Identifier: Apache-2.0 */
/* What a training tells of itself, before and after. */
#ifndef COURSE_REPORT_H
#define COURSE_REPORT_H

#include "course.h"

/* What is counted while it trains. */
typedef struct tally {
  int64_t limit;   /* of steps, behind which it ends; 0: none */
  double rate;     /* that the command line asks for; 0: none */
  bool talks;      /* prints what it does */
  int64_t begun;   /* steps that a checkpoint had */
  int64_t steps;   /* since the training began, resumed ones among them */
  int64_t samples; /* trained on since it went on */
  double seconds;  /* for these, without validation */
} tally;

/* A training under way. */
typedef struct session {
  helio_strategy *strategy;
  const char *devices[HELIO_MAX_REPLICAS]; /* that it began with */
  int device_count;
  lesson lesson;
  goal goal;
  helio_model *model;
  helio_optimizer *optimizer;
  int64_t batch, steps, epochs; /* the global batch, steps of an epoch */
  double rate;                  /* of the optimizer, before it was scaled */
  int64_t warmup;               /* steps in which the rate grows, if it is scaled */
  tally tally;
} session;

/* Of what was asked for, what came about; logs and the like always do. */
typedef struct files_written {
  bool model, plot, checkpoints;
} files_written;

void session_note_devices(session *s);

void report_begin(const course *c, const session *s); /* data, devices, the model's summary */
void report_resumed(const helio_training *t);         /* what only the checkpoint could tell */
void report_text(const session *s, const helio_history *history);
void report_files(const course *c, const files_written *written);
void report_json(const session *s, const helio_history *history);

#endif
