/* SPDX-License-Identifier: Apache-2.0 */
/* What a training tells of itself, before and after. */
#ifndef TRAINING_REPORT_H
#define TRAINING_REPORT_H

#include "training.h"

/* Of what was asked for, what came about. */
typedef struct files_written {
  bool model, plot, checkpoints;
  bool of_steps; /* log and timeline, which a training without steps leaves as they are */
} files_written;

void report_begin(const session *s);          /* data, devices, the model's summary */
void report_resumed(const helio_training *t); /* what only the checkpoint could tell */
void report_text(const session *s, const helio_history *history);
void report_files(const training *t, const files_written *written);
void report_json(const session *s, const helio_history *history);

#endif
