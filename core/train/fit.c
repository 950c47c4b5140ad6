/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs. */
#include <stdlib.h>

#include "ops/options.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tensor/pool.h"
#include "train/history.h"
#include "train/input.h"
#include "train/pass.h"
#include "train/progress.h"
#include "train/signals.h"
#include "train/snapshot.h"

typedef struct fitting {
  hi_pass pass; /* first */
  const helio_fit_options *options;
  helio_distributed *batches, *validation;
  helio_distributed_iterator *iterator; /* of the epoch under way, or of all, a reference; NULL: none yet */
  int64_t resumed;                      /* steps of this epoch that were taken before the training went on */
  bool heeds_signals;
  int signal;          /* that ends it; 0: none */
  bool stopped_inside; /* behind a step of the epoch under way, by a callback or a signal */
  helio_history *history;
  double begin;
  helio_training totals; /* of all epochs so far */
} fitting;

static helio_status before_step(hi_pass *pass) {
  return hi_tell(&pass->callbacks, batch_begin, &pass->training);
}

/* ---- checkpoints ---- */

static hi_snapshot snapshot_of(fitting *f) {
  return (hi_snapshot){.model = f->options->model,
                       .compiled = f->pass.task.compiled,
                       .callbacks = &f->pass.callbacks,
                       .history = f->history};
}

/* With so many steps taken in an epoch. */
static helio_status write_checkpoint(fitting *f, int epoch, int64_t step) {
  int keep = f->options->keep_checkpoints;
  hi_snapshot s = snapshot_of(f);
  s.place = (hi_snapshot_place){.epoch = epoch,
                                .step = step,
                                .total_steps = f->pass.training.total_steps,
                                .position = helio_distributed_position(f->iterator)};
  if (!s.place.position) return helio_error_pending();
  helio_status status = hi_snapshot_write(&s, f->options->checkpoint, keep == HELIO_NONE ? 0 : keep ? keep : 3);
  free(s.place.position);
  return status;
}

static helio_status checkpoint_behind_step(fitting *f) {
  helio_training *t = &f->pass.training;
  int64_t every = f->options->checkpoint_every_steps;
  f->signal = f->heeds_signals ? hi_signals_asked() : 0;
  if (f->signal) t->stop = true;
  f->stopped_inside = t->stop;
  bool due = t->stop || (every && t->total_steps % every == 0);
  return f->options->checkpoint && due ? write_checkpoint(f, t->epoch, t->step) : HELIO_OK;
}

/* An epoch that was stopped inside has its checkpoint, from which the rest of it is taken. */
static helio_status checkpoint_behind_epoch(fitting *f) {
  if (f->stopped_inside) return HELIO_OK;
  const helio_fit_options *o = f->options;
  int every = o->checkpoint_every_epochs ? o->checkpoint_every_epochs : o->checkpoint_every_steps ? 0 : 1;
  int next = f->pass.training.epoch + 1;
  return o->checkpoint && every && next % every == 0 ? write_checkpoint(f, next, 0) : HELIO_OK;
}

static helio_status open_iterator(fitting *f) {
  helio_distributed_iterator *iterator = helio_iterate_distributed(f->batches);
  if (!iterator) return helio_error_pending();
  hi_hold(iterator);
  hi_drop(f->iterator);
  f->iterator = iterator;
  return HELIO_OK;
}

/* From the last checkpoint, if there is one. The position of an iteration that has ended is restored as well: the next
 * one is then the one that would have followed. */
static helio_status resume(fitting *f) {
  helio_training *t = &f->pass.training;
  const hi_compiled *compiled = f->pass.task.compiled;
  hi_snapshot s = snapshot_of(f);
  bool found;
  if (!atomic_load(&f->options->model->built)) {
    return hi_fail(HELIO_WRONG_STATE,
                   "%s has no variables yet, into which a checkpoint could be read: give it an input_shape",
                   f->options->model->title);
  }
  const helio_variables *variables = helio_trainable_variables(f->options->model);
  helio_status status = variables ? helio_optimizer_build(compiled->optimizer, variables) : helio_error_pending();
  if (!status) status = hi_snapshot_read(&s, f->options->checkpoint, &found);
  if (status || !found) return status;
  status = open_iterator(f);
  if (!status) status = helio_distributed_restore(f->iterator, s.place.position);
  free(s.place.position);
  t->epoch = s.place.epoch;
  t->total_steps = s.place.total_steps;
  f->resumed = s.place.step;
  return status;
}

static helio_status begin_checkpoints(fitting *f) {
  const helio_fit_options *o = f->options;
  if (!o->checkpoint) {
    return o->resume ? hi_fail(HELIO_INVALID_ARGUMENT, "resume needs checkpoint, the folder to go on from") : HELIO_OK;
  }
  return o->resume ? resume(f) : hi_snapshot_refuse_others(o->checkpoint);
}

/* ---- one epoch ---- */

static helio_status behind_step(hi_pass *pass, void *user, const helio_values *batch, helio_values *outputs) {
  helio_training *t = &pass->training;
  (void)user, (void)batch;
  t->total_steps++;
  hi_logs_forget(t->logs);
  t->batch_logs = hi_logs_new(pass->strategy);
  helio_status status = t->batch_logs ? HELIO_OK : helio_error_pending();
  if (!status && outputs) status = hi_logs_add_tensor(t->batch_logs, "loss", outputs->tensors[0]);
  if (!status) status = hi_tell(&pass->callbacks, batch_end, t);
  t->batch_logs = NULL;
  return status ? status : checkpoint_behind_step((fitting *)pass);
}

/* With a number of steps for each epoch the data go on from one to the next; so they do within an epoch that was
 * resumed. */
static helio_status iterator_for_epoch(fitting *f) {
  bool goes_on = f->iterator && (f->options->steps_per_epoch || f->resumed > 0);
  return goes_on ? HELIO_OK : open_iterator(f);
}

static helio_status walk_epoch(fitting *f) {
  helio_training *t = &f->pass.training;
  helio_status status = iterator_for_epoch(f);
  if (status) return status;
  hi_walk walk = {.step = hi_train_step,
                  .batches = f->iterator,
                  .first = f->resumed,
                  .most = f->options->steps_per_epoch,
                  .before = before_step,
                  .behind = behind_step};
  f->resumed = 0;
  f->stopped_inside = t->stop; /* when it began */
  status = hi_pass_walk(&f->pass, &walk);
  if (status) return status;
  if (walk.ended && t->step == 0 && f->totals.step == 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "there are no batches to train on");
  }
  if (walk.ended && f->options->steps_per_epoch && t->step < f->options->steps_per_epoch) {
    hi_log(HELIO_LOG_WARNING,
           "Your input ran out of data; interrupting training. Make sure that your dataset can generate at least "
           "steps_per_epoch * epochs batches (in this case, %lld batches). You may need helio_dataset_repeat().",
           (long long)f->options->steps_per_epoch * f->options->epochs);
    t->stop = true;
  }
  return HELIO_OK;
}

static bool validates_now(const fitting *f) {
  int every = f->options->validation_frequency ? f->options->validation_frequency : 1;
  return f->validation && (f->pass.training.epoch + 1) % every == 0;
}

/* What validation tells of itself stands in `logs` behind what was measured in training. */
static helio_status validate(fitting *f, helio_logs *logs) {
  helio_training epoch = f->pass.training, *t = &f->pass.training;
  double begin = hi_seconds();
  t->stop = false; /* said behind a batch, it is of the training: the epoch is measured all the same, as in Keras */
  helio_status status = hi_pass_test(&f->pass, f->validation, f->options->validation_steps);
  if (!status) status = hi_logs_add_all(logs, "val_", t->logs);
  epoch.stop = epoch.stop || t->stop;
  epoch.validation_seconds = hi_seconds() - begin;
  epoch.seconds += epoch.validation_seconds;
  *t = epoch;
  return status;
}

static void add_to_totals(fitting *f) {
  const helio_training *t = &f->pass.training;
  f->totals.step += t->step;
  f->totals.samples += t->samples;
  f->totals.input_seconds += t->input_seconds;
  f->totals.reduce_seconds += t->reduce_seconds;
  f->totals.validation_seconds += t->validation_seconds;
}

static helio_status run_epoch(fitting *f) {
  helio_training *t = &f->pass.training;
  helio_logs *logs = hi_logs_new(f->pass.strategy);
  t->validation_seconds = 0;
  t->step = f->resumed;
  t->logs = logs ? hi_logs_new(f->pass.strategy) : NULL;
  helio_status status = t->logs ? HELIO_OK : helio_error_pending();
  if (!status && f->resumed == 0) status = hi_compiled_reset(f->pass.task.compiled);
  if (!status) status = hi_logs_add_metrics(t->logs, f->pass.task.compiled);
  if (!status) status = hi_tell(&f->pass.callbacks, epoch_begin, t);
  if (!status) status = walk_epoch(f);
  if (status || f->signal) return status; /* the rest of the epoch comes when the training goes on */
  if (!status) status = hi_logs_add_all(logs, "", t->logs);
  if (!status && validates_now(f)) status = validate(f, logs);
  if (status) return status;
  add_to_totals(f);
  if (t->steps < 0) t->steps = t->step;
  t->logs = logs;
  status = hi_tell(&f->pass.callbacks, epoch_end, t);
  if (!status) status = hi_history_add(f->history, t->epoch, logs); /* with what callbacks have added */
  return status ? status : checkpoint_behind_epoch(f);
}

/* ---- all epochs ---- */

/* The end is told of whatever has come before. */
static helio_status tell_end(fitting *f, helio_status status) {
  helio_training *t = &f->pass.training;
  helio_error cause;
  t->step = f->totals.step;
  t->samples = f->totals.samples;
  t->input_seconds = f->totals.input_seconds;
  t->reduce_seconds = f->totals.reduce_seconds;
  t->validation_seconds = f->totals.validation_seconds;
  t->seconds = hi_seconds() - f->begin;
  if (!status) return hi_tell(&f->pass.callbacks, train_end, t);
  helio_error_take(&cause);
  t->logs = NULL;
  hi_tell(&f->pass.callbacks, train_end, t);
  helio_error_take(NULL);
  return hi_fail(cause.status, "%s", cause.message);
}

static helio_status run_epochs(fitting *f) {
  helio_training *t = &f->pass.training;
  f->begin = hi_seconds();
  helio_status status = hi_tell(&f->pass.callbacks, train_begin, t);
  if (!status) status = begin_checkpoints(f);
  while (!status && t->epoch < t->epochs && !t->stop) {
    helio_scope pool = helio_pool_enter();
    status = run_epoch(f);
    t->logs = NULL;
    helio_pool_leave(&pool);
    if (!f->signal) t->epoch++;
  }
  hi_drop(f->iterator);
  f->iterator = NULL;
  return tell_end(f, status);
}

/* ---- the options ---- */

static helio_status check(const helio_fit_options *o) {
  if (o->epochs < 0 || o->initial_epoch < 0 || o->steps_per_epoch < 0 || o->validation_steps < 0 ||
      o->validation_frequency < 0 || o->micro_batch < 0 || (o->class_weights && o->class_count < 1)) {
    return hi_fail(HELIO_INVALID_ARGUMENT,
                   "epochs %d, initial_epoch %d, steps_per_epoch %lld, validation_steps %lld, validation_frequency %d, "
                   "micro_batch %lld, class_count %d: none may be negative, and weights of classes need their number",
                   o->epochs, o->initial_epoch, (long long)o->steps_per_epoch, (long long)o->validation_steps,
                   o->validation_frequency, (long long)o->micro_batch, o->class_count);
  }
  bool validation = o->validation || o->validation_x || o->validation_y;
  if (validation && o->validation_split != 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "validation data are given, and validation_split");
  }
  return HELIO_OK;
}

static helio_status take_samples(fitting *f) {
  const helio_fit_options *o = f->options;
  hi_samples samples = {.dataset = o->dataset,
                        .x = o->x,
                        .y = o->y,
                        .weights = o->sample_weights,
                        .x_tensor = o->x_tensor,
                        .y_tensor = o->y_tensor,
                        .batch_size = o->batch_size,
                        .shuffled = !o->no_shuffle};
  hi_samples held_out = {.dataset = o->validation,
                         .x = o->validation_x,
                         .y = o->validation_y,
                         .weights = o->validation_weights,
                         .batch_size = o->validation_batch_size ? o->validation_batch_size : o->batch_size};
  if (!hi_samples_read(&samples, "training", true)) return helio_error_pending();
  helio_status status = HELIO_OK;
  if (o->validation_split != 0) status = hi_samples_split(&samples, o->validation_split, &held_out);
  if (status) return status;
  if (held_out.dataset || held_out.x || held_out.y) {
    if (!hi_samples_read(&held_out, "validation", true)) return helio_error_pending();
    f->validation = hi_samples_distribute(&held_out, f->pass.strategy);
    if (!f->validation) return helio_error_pending();
  }
  f->batches = hi_samples_distribute(&samples, f->pass.strategy);
  return f->batches ? HELIO_OK : helio_error_pending();
}

static helio_status take_callbacks(fitting *f) {
  const helio_fit_options *o = f->options;
  helio_callback *progress = o->verbose == HELIO_QUIET ? NULL : hi_progress_callback(o->verbose);
  if (o->verbose != HELIO_QUIET && !progress) return helio_error_pending();
  helio_status status = hi_callbacks_add(&f->pass.callbacks, &progress, progress ? 1 : 0);
  return status ? status : hi_callbacks_add(&f->pass.callbacks, o->callbacks, HELIO_MOST_CALLBACKS);
}

static helio_status prepare(fitting *f) {
  const helio_fit_options *o = f->options;
  helio_status status = check(o);
  hi_compiled *compiled = status ? NULL : hi_compiled_of(o->model);
  if (!compiled || !hi_strategy_usable(compiled->strategy)) return helio_error_pending();
  f->pass.strategy = compiled->strategy;
  f->pass.task = (hi_task){.model = o->model,
                           .compiled = compiled,
                           .input_count = compiled->input_count,
                           .class_weights = o->class_weights,
                           .class_count = o->class_count,
                           .micro_batch = o->micro_batch};
  if (o->micro_batch && !hi_trains_in_portions(o->model, compiled->loss)) return helio_error_pending();
  status = hi_optimizer_accumulate(compiled->optimizer, o->accumulate_steps);
  if (!status) status = take_samples(f);
  if (!status) status = take_callbacks(f);
  if (status) return status;
  int64_t count = helio_distributed_cardinality(f->batches);
  f->pass.training = (helio_training){.size = sizeof(helio_training),
                                      .model = o->model,
                                      .optimizer = compiled->optimizer,
                                      .strategy = compiled->strategy,
                                      .epoch = o->initial_epoch,
                                      .epochs = o->epochs ? o->epochs : 1,
                                      .steps = o->steps_per_epoch ? o->steps_per_epoch
                                               : count >= 0       ? count
                                                                  : -1};
  f->history = hi_history_new();
  return f->history ? HELIO_OK : helio_error_pending();
}

helio_history *helio_fit_with(const helio_fit_options *given) {
  helio_fit_options o;
  if (!hi_options_enter("helio_fit", &o, sizeof o, given)) return NULL;
  fitting f = {.options = &o};
  hi_signals signals;
  helio_scope pool = helio_pool_enter();
  helio_status status = prepare(&f);
  f.heeds_signals = !status && o.checkpoint && !o.no_signals && hi_signals_catch(&signals);
  if (!status) status = run_epochs(&f);
  if (f.heeds_signals) hi_signals_leave(&signals);
  if (!status) hi_history_set_signal(f.history, f.signal);
  hi_callbacks_end(&f.pass.callbacks);
  return hi_pool_leave_with(&pool, status ? NULL : f.history);
}
