/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks for programs that draw: TensorBoard, and viewers of Chrome traces. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "nn/model.h"
#include "nn/optimizer.h"
#include "ops/options.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "strategy/strategy.h"
#include "train/callback.h"
#include "train/event_file.h"
#include "train/logs.h"
#include "train/output_file.h"
#include "train/trace_file.h"

/* ---- TensorBoard ---- */

/* Runs, as TensorBoard calls what it draws as one line. */
typedef enum run { TRAIN, VALIDATION, RUNS } run;

typedef struct board {
  char *folder;
  int64_t every_steps;
  hi_event_file *files[RUNS]; /* NULL: nothing was to be said yet */
} board;

static hi_event_file *file_of(board *b, run which) {
  static const char *const names[RUNS] = {"train", "validation"};
  char *folder = NULL;
  if (b->files[which]) return b->files[which];
  if (asprintf(&folder, "%s/%s", b->folder, names[which]) < 0) {
    hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for the name of a folder in it", b->folder);
    return NULL;
  }
  b->files[which] = hi_event_file_open(folder);
  free(folder);
  return b->files[which];
}

/* "PREFIXnameSUFFIX" */
static helio_status put(board *b, run which, const char *prefix, const char *name, const char *suffix, int64_t step,
                        double value) {
  char *tag = NULL;
  hi_event_file *file = file_of(b, which);
  if (!file) return helio_error_pending();
  if (asprintf(&tag, "%s%s%s", prefix, name, suffix) < 0) {
    return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for a tag", b->folder);
  }
  helio_status status = hi_event_file_scalar(file, tag, step, hi_wall_seconds(), value);
  free(tag);
  return status;
}

/* All that is measured, each in its run and without the "val_" that says which. */
static helio_status put_measured(board *b, run otherwise, const char *prefix, const char *suffix, int64_t step,
                                 helio_logs *logs) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < helio_logs_count(logs) && !status; i++) {
    const char *name = helio_logs_name(logs, i);
    bool validation = strncmp(name, "val_", 4) == 0;
    double value = helio_logs_value(logs, i);
    status = helio_error_pending();
    if (!status) {
      status = put(b, validation ? VALIDATION : otherwise, prefix, validation ? name + 4 : name, suffix, step, value);
    }
  }
  return status;
}

static helio_status flush(board *b) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < RUNS && !status; i++) {
    if (b->files[i]) status = hi_event_file_flush(b->files[i]);
  }
  return status;
}

static helio_status close_all(board *b) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < RUNS; i++) {
    helio_status closed = hi_event_file_close(b->files[i]);
    if (!status) status = closed;
    b->files[i] = NULL;
  }
  return status;
}

/* A folder that cannot be written to is better known before the first epoch. */
static helio_status begin_board(void *user, helio_training *t) {
  board *b = user;
  (void)t;
  helio_status status = close_all(b);
  if (!status && !file_of(b, TRAIN)) status = helio_error_pending();
  return status;
}

static helio_status end_board_batch(void *user, helio_training *t) {
  board *b = user;
  if (b->every_steps == 0 || t->total_steps % b->every_steps != 0) return HELIO_OK;
  helio_status status = put_measured(b, TRAIN, "batch_", "", t->total_steps, t->logs);
  if (!status) status = put(b, TRAIN, "batch_", "step_ms", "", t->total_steps, 1e3 * t->seconds);
  return status ? status : flush(b);
}

static helio_status put_rate(board *b, const helio_training *t) {
  for (int i = 0; i < helio_logs_count(t->logs); i++) {
    if (strcmp(helio_logs_name(t->logs, i), "learning_rate") == 0)
      return HELIO_OK; /* that of the epoch is among them */
  }
  return put(b, TRAIN, "epoch_", "learning_rate", "", t->epoch, hi_optimizer_rate(t->optimizer));
}

static helio_status end_board_epoch(void *user, helio_training *t) {
  board *b = user;
  double training_seconds = t->seconds - t->validation_seconds;
  helio_status status = put_measured(b, TRAIN, "epoch_", "", t->epoch, t->logs);
  if (!status) status = put_rate(b, t);
  int64_t steps = t->step - t->resumed_steps;
  if (!status && steps > 0) {
    status = put(b, TRAIN, "epoch_", "step_ms", "", t->epoch, 1e3 * training_seconds / (double)steps);
  }
  return status ? status : flush(b);
}

/* Of validation, and of helio_evaluate(): how good is the model after so many steps? */
static helio_status end_board_test(void *user, helio_training *t) {
  board *b = user;
  int64_t steps = helio_optimizer_iterations(t->optimizer);
  helio_status status = put_measured(b, VALIDATION, "evaluation_", "_vs_iterations", steps, t->logs);
  return status ? status : flush(b);
}

static helio_status end_board(void *user, helio_training *t) {
  (void)t;
  return close_all(user);
}

static void release_board(void *user) {
  board *b = user;
  bool pending = helio_error_pending();
  if (close_all(b) && !pending) helio_error_take(NULL); /* nobody is left who could be told */
  free(b->folder);
  free(b);
}

helio_callback *helio_tensorboard_with(const helio_tensorboard_options *given) {
  helio_tensorboard_options o;
  if (!hi_options_enter("helio_tensorboard", &o, sizeof o, given)) return NULL;
  if (o.every_steps < 0) {
    hi_fail(HELIO_INVALID_ARGUMENT, "every_steps is %lld", (long long)o.every_steps);
    return NULL;
  }
  board *b = hi_callback_user(sizeof *b);
  if (!b) return NULL;
  b->every_steps = o.every_steps;
  b->folder = hi_callback_path(o.folder);
  helio_callback *made = NULL;
  if (b->folder) {
    made = helio_callback(.user = b, .train_begin = begin_board, .batch_end = end_board_batch,
                          .epoch_end = end_board_epoch, .test_end = end_board_test, .train_end = end_board,
                          .release = release_board);
  }
  if (!made) release_board(b);
  return made;
}

/* ---- a timeline ---- */

typedef struct timeline {
  char *path;
  hi_trace_file *file;
  double begin;                                 /* of the training, where the timeline has its zero */
  double begun;                                 /* the step that is under way */
  int track_count;                              /* of replicas; that of input is before them */
  const hi_device *devices[HELIO_MAX_REPLICAS]; /* by track: replicas change their numbers when one is lost */
} timeline;

enum { INPUT_TRACK = 0, FIRST_REPLICA = 1 };

static helio_status span(const timeline *line, int track, const char *name, double from, double to) {
  return hi_trace_file_span(line->file, track, name, from - line->begin, to > from ? to - from : 0);
}

/* −1 with the error set. */
static int track_of(timeline *line, const hi_device *device) {
  int track = 0;
  while (track < line->track_count && line->devices[track] != device) track++;
  if (track < line->track_count) return FIRST_REPLICA + track;
  if (hi_trace_file_name(line->file, FIRST_REPLICA + track, device ? device->name : "default device")) return -1;
  line->devices[line->track_count++] = device;
  return FIRST_REPLICA + track;
}

static helio_status draw_replica(timeline *line, const helio_strategy *strategy, int replica, double end) {
  double from = strategy->reduce_begin[replica], to = strategy->reduce_end[replica];
  bool reduced = from >= line->begun;
  int track = track_of(line, strategy->replicas.devices[replica]);
  if (track < 0) return helio_error_pending();
  helio_status status = span(line, track, "compute", line->begun, reduced ? from : end);
  return status || !reduced ? status : span(line, track, "reduce", from, to);
}

static helio_status begin_timeline(void *user, helio_training *t) {
  timeline *line = user;
  helio_status status = hi_trace_file_close(line->file); /* of a training that did not come to its end */
  (void)t;
  line->file = NULL;
  line->track_count = 0;
  line->begin = hi_seconds();
  return status ? status : hi_output_file_check(line->path);
}

/* Behind the first step: a training that takes none leaves the timeline of another as it is. */
static helio_status open_timeline(timeline *line, const helio_training *t) {
  if (line->file) return HELIO_OK;
  line->file = hi_trace_file_open(line->path, t->model->title);
  return line->file ? hi_trace_file_name(line->file, INPUT_TRACK, "input") : helio_error_pending();
}

static helio_status begin_step(void *user, helio_training *t) {
  timeline *line = user;
  (void)t;
  line->begun = hi_seconds();
  return HELIO_OK;
}

static helio_status end_step(void *user, helio_training *t) {
  timeline *line = user;
  double asked = fmax(line->begun - t->input_seconds, line->begin), end = fmin(asked + t->seconds, hi_seconds());
  helio_status status = open_timeline(line, t);
  if (!status) status = span(line, INPUT_TRACK, "input", asked, line->begun);
  for (int i = 0; i < t->strategy->replicas.count && !status; i++) status = draw_replica(line, t->strategy, i, end);
  return status;
}

/* What was measured, as curves above the spans. */
static helio_status end_timeline_epoch(void *user, helio_training *t) {
  timeline *line = user;
  double now = hi_seconds() - line->begin;
  helio_status status = HELIO_OK;
  if (!line->file) return HELIO_OK; /* all steps of the epoch had been taken before the training went on */
  for (int i = 0; i < helio_logs_count(t->logs) && !status; i++) {
    double value = helio_logs_value(t->logs, i);
    status = helio_error_pending();
    if (!status) status = hi_trace_file_counter(line->file, helio_logs_name(t->logs, i), now, value);
  }
  return status ? status : hi_trace_file_flush(line->file);
}

static helio_status close_timeline(timeline *line) {
  hi_trace_file *file = line->file;
  line->file = NULL;
  return hi_trace_file_close(file);
}

static helio_status end_timeline(void *user, helio_training *t) {
  (void)t;
  return close_timeline(user);
}

static void release_timeline(void *user) {
  timeline *line = user;
  bool pending = helio_error_pending();
  if (close_timeline(line) && !pending) helio_error_take(NULL); /* nobody is left who could be told */
  free(line->path);
  free(line);
}

helio_callback *helio_timeline(const char *path) {
  if (hi_enter(__func__)) return NULL;
  timeline *line = hi_callback_user(sizeof *line);
  if (!line) return NULL;
  line->path = hi_callback_path(path);
  helio_callback *made = NULL;
  if (line->path) {
    made = helio_callback(.user = line, .train_begin = begin_timeline, .batch_begin = begin_step, .batch_end = end_step,
                          .epoch_end = end_timeline_epoch, .train_end = end_timeline, .release = release_timeline);
  }
  if (!made) release_timeline(line);
  return made;
}
