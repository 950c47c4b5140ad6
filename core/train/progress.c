/* SPDX-License-Identifier: Apache-2.0 */
#include "train/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/terminal.h"
#include "train/bar.h"
#include "train/compiled.h"

/* As often as Keras draws: values are read then, and only then. */
static const double least_pause = 0.05;

enum { MOST_SHOWN = 2 * HI_MOST_MEASURED + HELIO_MOST_CALLBACKS }; /* callbacks may add some */

typedef struct progress {
  bool lines;                      /* no bar, also on a terminal */
  bool training;                   /* else a call of evaluate by itself */
  bool unfinished;                 /* the line on the terminal */
  int epochs;                      /* that were seen to their end */
  double begin, drawn, first_step; /* of the epoch; seconds until its first step was taken */
} progress;

/* ---- the terminal ---- */

/* Of one that a bar can be drawn on. */
static int columns_of_terminal(const progress *p) {
  const char *kind = getenv("TERM");
  return p->lines || !kind || strcmp(kind, "dumb") == 0 ? 0 : hi_terminal_columns();
}

static bool has_color(void) {
  const char *no = getenv("NO_COLOR");
  return !no || !*no;
}

/* What cannot be shown is not worth a training to end for. */
static helio_status show(char *text) {
  if (!text) return helio_error_pending();
  fputs(text, stdout);
  fflush(stdout);
  free(text);
  return HELIO_OK;
}

/* ---- lines ---- */

static helio_status draw(progress *p, helio_training *t, bool finished) {
  const char *names[MOST_SHOWN];
  double values[MOST_SHOWN];
  int count = 0;
  for (; count < helio_logs_count(t->logs) && count < MOST_SHOWN; count++) {
    names[count] = helio_logs_name(t->logs, count);
    values[count] = helio_logs_value(t->logs, count);
    if (helio_error_pending()) return helio_error_pending();
  }
  double now = hi_seconds();
  int columns = columns_of_terminal(p);
  p->unfinished = !finished && columns > 0;
  hi_bar_state state = {.step = t->step,
                        .resumed = t->resumed_steps,
                        .target = t->steps,
                        .seconds = now - p->begin,
                        .first_step = p->first_step,
                        .names = names,
                        .values = values,
                        .value_count = count,
                        .columns = columns,
                        .utf8 = hi_terminal_is_utf8(),
                        .color = has_color(),
                        .finished = finished};
  p->drawn = now;
  return show(hi_bar_line(&state));
}

static helio_status draw_if_due(progress *p, helio_training *t) {
  double now = hi_seconds();
  if (t->step == t->resumed_steps + 1) p->first_step = now - p->begin;
  return columns_of_terminal(p) && now - p->drawn >= least_pause ? draw(p, t, false) : HELIO_OK;
}

static void begin_epoch(progress *p) {
  p->begin = p->drawn = hi_seconds();
  p->first_step = 0;
}

static helio_status train_begin(void *user, helio_training *t) {
  progress *p = user;
  (void)t;
  p->training = true;
  return HELIO_OK;
}

static helio_status epoch_begin(void *user, helio_training *t) {
  begin_epoch(user);
  return show(hi_bar_epoch(t->epoch, t->epochs));
}

static helio_status batch_end(void *user, helio_training *t) {
  return draw_if_due(user, t);
}

static helio_status epoch_end(void *user, helio_training *t) {
  progress *p = user;
  p->epochs++;
  return draw(user, t, true);
}

/* Validation is part of its epoch, and shows in that one's line. */
static helio_status test_begin(void *user, helio_training *t) {
  progress *p = user;
  (void)t;
  if (!p->training) begin_epoch(p);
  return HELIO_OK;
}

static helio_status test_batch_end(void *user, helio_training *t) {
  progress *p = user;
  return p->training ? HELIO_OK : draw_if_due(p, t);
}

static helio_status test_end(void *user, helio_training *t) {
  progress *p = user;
  return p->training ? HELIO_OK : draw(p, t, true);
}

static void end_line(progress *p) {
  if (p->unfinished) fputc('\n', stdout);
  p->unfinished = false;
}

/* A training that failed says why by its error. */
static helio_status train_end(void *user, helio_training *t) {
  progress *p = user;
  end_line(p);
  if (t->step == 0 || t->failed) return HELIO_OK;
  int replicas = helio_num_replicas(t->strategy);
  double steps = t->seconds - t->validation_seconds, rest = steps - t->reduce_seconds - t->input_seconds;
  double compute = rest > 0 ? rest : 0;
  hi_bar_totals totals = {.epochs = p->epochs,
                          .samples = t->samples,
                          .seconds = t->seconds,
                          .validation = t->validation_seconds,
                          .replicas = replicas,
                          .compute = replicas * compute,
                          .reduce = replicas * t->reduce_seconds,
                          .input = replicas * t->input_seconds,
                          .efficiency = steps > 0 ? compute / steps : 0};
  return show(hi_bar_summary(&totals));
}

static void release(void *user) {
  end_line(user);
  free(user);
}

helio_callback *hi_progress_callback(helio_verbosity verbosity) {
  if (verbosity && verbosity != HELIO_VERBOSE && verbosity != HELIO_LINES) {
    hi_fail(HELIO_INVALID_ARGUMENT, "verbose is %d", (int)verbosity);
    return NULL;
  }
  progress *p = calloc(1, sizeof *p);
  if (!p) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the progress of a training");
    return NULL;
  }
  p->lines = verbosity == HELIO_LINES;
  helio_callback *made =
      helio_callback(.user = p, .train_begin = train_begin, .train_end = train_end, .epoch_begin = epoch_begin,
                     .epoch_end = epoch_end, .batch_end = batch_end, .test_begin = test_begin,
                     .test_batch_end = test_batch_end, .test_end = test_end, .release = release);
  if (!made) free(p);
  return made;
}
