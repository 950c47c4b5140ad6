/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs. */
#include <math.h>
#include <stdlib.h>

#include "data/folder.h"
#include "data/permute.h"
#include "ops/options.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tensor/pool.h"
#include "tensor/seed.h"
#include "train/history.h"
#include "train/input.h"
#include "train/pass.h"
#include "train/signals.h"
#include "train/snapshot.h"

typedef struct fitting {
  hi_pass pass;
  const helio_fit_options *options;
  hi_samples samples;
  helio_distributed *batches; /* a reference */
  helio_distributed *validation;
  helio_distributed_iterator *iterator; /* of the epoch under way, or of all, a reference; NULL: none yet */
  int64_t resumed;                      /* steps of this epoch that were taken before the training went on */
  int folders_made;                     /* for checkpoints */
  bool warned;                          /* that there are no checkpoints of it any more */
  bool looked;                          /* whether there is anything to train */
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

/* A training that has gone wrong is not worth going on from: what was written before it did is kept. */
static helio_status is_sound(fitting *f, bool *sound) {
  double loss = 0;
  bool found;
  helio_status status = hi_logs_find(f->pass.training.logs, "loss", &loss, &found);
  *sound = isfinite(loss);
  if (status || *sound || f->warned) return status;
  if (isnan(loss)) loss = NAN; /* whose sign says nothing */
  hi_log(HELIO_LOG_WARNING, "the loss is %g: no checkpoint is written, those that there are stay", loss);
  f->warned = true;
  return HELIO_OK;
}

/* With so many steps taken in an epoch. */
static helio_status write_checkpoint(fitting *f, int epoch, int64_t step) {
  int keep = f->options->keep_checkpoints;
  hi_snapshot s = snapshot_of(f);
  bool sound;
  helio_status status = is_sound(f, &sound);
  if (status || !sound) return status;
  s.place = (hi_snapshot_place){.epoch = epoch,
                                .step = step,
                                .total_steps = f->pass.training.total_steps,
                                .shuffle = f->samples.shuffle,
                                .position = helio_distributed_position(f->iterator)};
  if (!s.place.position) return helio_error_pending();
  status = hi_snapshot_write(&s, f->options->checkpoint, keep == HELIO_ALL ? 0 : keep ? keep : 3);
  free(s.place.position);
  if (!status) hi_history_set_saved(f->history, s.place.total_steps);
  return status;
}

static void heed_signal(fitting *f) {
  helio_training *t = &f->pass.training;
  if (f->heeds_signals) f->signal = hi_signals_asked();
  if (!f->signal) return;
  t->stop = true;
  hi_log(HELIO_LOG_INFO, "%s: the training ends after step %lld", hi_signal_name(f->signal), (long long)t->total_steps);
}

static helio_status checkpoint_behind_step(fitting *f) {
  helio_training *t = &f->pass.training;
  int64_t every = f->options->checkpoint_every_steps;
  heed_signal(f);
  f->stopped_inside = t->stop;
  bool due = t->stop || (every && t->total_steps % every == 0);
  return f->options->checkpoint && due ? write_checkpoint(f, t->epoch, t->step) : HELIO_OK;
}

/* t->epoch is the next one already. An epoch that was stopped inside has its checkpoint, from which the rest of it is
 * taken. */
static helio_status checkpoint_behind_epoch(fitting *f) {
  if (f->stopped_inside) return HELIO_OK;
  const helio_fit_options *o = f->options;
  const helio_training *t = &f->pass.training;
  int every = o->checkpoint_every_epochs ? o->checkpoint_every_epochs : o->checkpoint_every_steps ? 0 : 1;
  heed_signal(f);
  bool last = t->stop || t->epoch >= t->epochs, due = last || (every && t->epoch % every == 0);
  return o->checkpoint && due ? write_checkpoint(f, t->epoch, 0) : HELIO_OK;
}

static helio_status make_batches(fitting *f) {
  helio_distributed *batches = hi_samples_distribute(&f->samples, f->pass.strategy);
  if (!batches) return helio_error_pending();
  hi_hold(batches);
  hi_drop(f->batches);
  f->batches = batches;
  return HELIO_OK;
}

static helio_status open_iterator(fitting *f) {
  helio_distributed_iterator *iterator = helio_iterate_distributed(f->batches);
  if (!iterator) return helio_error_pending();
  hi_hold(iterator);
  hi_drop(f->iterator);
  f->iterator = iterator;
  return HELIO_OK;
}

/* At the end of an epoch other data, or batches of another size, may follow; in the midst of one they may not. */
static helio_status go_to_data(fitting *f, const hi_snapshot_place *place) {
  helio_error cause;
  helio_status status = helio_distributed_restore(f->iterator, place->position);
  if (status != HELIO_INVALID_ARGUMENT) return status;
  if (place->step > 0) {
    hi_error_prefix(
        "the checkpoint is of step %lld of an epoch, and the data are other ones than there, or in another "
        "order (go on with the same dataset, batch size, seed and shuffling, or from the end of an epoch): ",
        (long long)place->step);
    return status;
  }
  helio_error_take(&cause);
  hi_log(HELIO_LOG_WARNING,
         "the data are not those that the training was begun with, or in another order (by the batch size, the seed or "
         "shuffling), and are read from their beginning: %s",
         cause.message);
  return HELIO_OK;
}

/* The position of an iteration that has ended is restored as well: the next one is then the one that would have
 * followed. */
static helio_status go_to(void *user, const hi_snapshot_place *place) {
  fitting *f = user;
  helio_training *t = &f->pass.training;
  helio_status status = HELIO_OK;
  if (f->samples.shuffle && place->shuffle && place->shuffle != f->samples.shuffle) {
    f->samples.shuffle = place->shuffle;
    status = make_batches(f);
  }
  if (!status) status = open_iterator(f);
  if (!status) status = go_to_data(f, place);
  if (status) return status;
  t->epoch = place->epoch;
  t->total_steps = place->total_steps;
  f->resumed = place->step;
  return HELIO_OK;
}

/* From the last checkpoint, if there is one. */
static helio_status resume(fitting *f) {
  const hi_compiled *compiled = f->pass.task.compiled;
  hi_snapshot s = snapshot_of(f);
  if (!atomic_load(&f->options->model->built)) {
    return hi_fail(HELIO_WRONG_STATE,
                   "%s has no variables yet, into which a checkpoint could be read: give it an input_shape",
                   f->options->model->title);
  }
  const helio_variables *variables = helio_trainable_variables(f->options->model);
  helio_status status = variables ? helio_optimizer_build(compiled->optimizer, variables) : helio_error_pending();
  return status ? status : hi_snapshot_read(&s, f->options->checkpoint, go_to, f);
}

static helio_status begin_checkpoints(fitting *f) {
  const helio_fit_options *o = f->options;
  if (!o->checkpoint) return HELIO_OK;
  helio_status status = hi_folder_make(o->checkpoint, &f->folders_made);
  if (status) return status;
  return o->resume ? resume(f) : hi_snapshot_refuse_others(o->checkpoint);
}

/* ---- one epoch ---- */

/* Behind the first step, because before it a model may have no variables yet. */
static helio_status warn_of_nothing_to_train(fitting *f) {
  if (f->looked) return HELIO_OK;
  f->looked = true;
  const helio_variables *variables = helio_trainable_variables(f->options->model);
  if (variables && variables->count == 0) {
    hi_log(HELIO_LOG_WARNING, "The model does not have any trainable weights.");
  }
  return helio_error_pending();
}

static helio_status behind_step(hi_pass *pass, void *user, helio_values *outputs) {
  helio_training *t = &pass->training;
  helio_status looked = warn_of_nothing_to_train(user);
  if (looked) return looked;
  t->total_steps++;
  hi_logs_forget(t->logs);
  t->batch_logs = hi_logs_new(pass->strategy);
  helio_status status = t->batch_logs ? HELIO_OK : helio_error_pending();
  if (!status && outputs) status = hi_logs_add_tensor(t->batch_logs, "loss", outputs->tensors[0], (double)t->samples);
  if (!status) status = hi_tell(&pass->callbacks, batch_end, t);
  t->batch_logs = NULL;
  return status ? status : checkpoint_behind_step(user);
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
                  .behind = behind_step,
                  .user = f};
  f->resumed = 0;
  f->stopped_inside = t->stop; /* when it began */
  status = hi_pass_walk(&f->pass, &walk);
  if (status) return status;
  if (walk.ended && t->total_steps == 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "there are no batches to train on");
  }
  if (walk.ended && f->options->steps_per_epoch && t->step < f->options->steps_per_epoch) {
    hi_log(HELIO_LOG_WARNING,
           "Your input ran out of data; interrupting training. Make sure that your dataset can generate at least "
           "steps_per_epoch * epochs batches (in this case, %.0f batches). You may need helio_dataset_repeat().",
           (double)f->options->steps_per_epoch * t->epochs);
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
  hi_task learning = f->pass.task;
  double begin = hi_seconds();
  f->pass.task.class_weights = NULL;
  t->stop = false; /* said behind a batch, it is of the training: the epoch is measured all the same, as in Keras */
  helio_status status = hi_pass_test(&f->pass, f->validation, f->options->validation_steps);
  if (!status) status = hi_logs_add_all(logs, "val_", t->logs);
  epoch.stop = epoch.stop || t->stop;
  epoch.validation_seconds = hi_seconds() - begin;
  epoch.seconds += epoch.validation_seconds;
  *t = epoch;
  f->pass.task = learning;
  return status;
}

static void add_to_totals(fitting *f) {
  const helio_training *t = &f->pass.training;
  f->totals.step += t->step - t->resumed_steps;
  f->totals.samples += t->samples;
  f->totals.input_seconds += t->input_seconds;
  f->totals.reduce_seconds += t->reduce_seconds;
  f->totals.validation_seconds += t->validation_seconds;
}

static helio_status run_epoch(fitting *f) {
  helio_training *t = &f->pass.training;
  helio_logs *logs = hi_logs_new(f->pass.strategy);
  t->validation_seconds = 0;
  t->step = t->resumed_steps = f->resumed;
  t->logs = logs ? hi_logs_new(f->pass.strategy) : NULL;
  helio_status status = t->logs ? HELIO_OK : helio_error_pending();
  if (!status && f->resumed == 0) status = hi_compiled_reset(f->pass.task.compiled);
  if (!status) status = hi_logs_add_metrics(t->logs, f->pass.task.compiled);
  if (!status) status = hi_tell(&f->pass.callbacks, epoch_begin, t);
  if (!status) status = walk_epoch(f);
  if (!status && t->step == 0) t->stop = true; /* the data have ended, or a callback said stop before the first step */
  if (t->step == 0) return status;             /* of which nothing can be told */
  if (!status && !f->signal) status = hi_logs_add_all(logs, "", t->logs);
  if (!status && !f->signal && validates_now(f)) status = validate(f, logs);
  if (status) return status;
  add_to_totals(f);
  if (f->signal) return HELIO_OK; /* the rest of the epoch comes when the training goes on */
  if (t->steps < 0) t->steps = t->step;
  t->logs = logs;
  status = hi_tell(&f->pass.callbacks, epoch_end, t);
  if (!status) status = hi_history_add(f->history, t->epoch, logs); /* with what callbacks have added */
  t->epoch++;
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
  if (!status) return hi_callbacks_tell_end(&f->pass.callbacks, t);
  helio_error_take(&cause);
  t->logs = NULL;
  t->failed = true;
  hi_callbacks_tell_end(&f->pass.callbacks, t);
  helio_error_take(NULL);
  return hi_fail(cause.status, "%s", cause.message);
}

/* Callbacks that open files hear nothing of a training that cannot begin: these may be the logs of another. */
static helio_status run_epochs(fitting *f) {
  helio_training *t = &f->pass.training;
  f->begin = hi_seconds();
  helio_status status = begin_checkpoints(f);
  if (status) {
    hi_folders_remove_empty(f->options->checkpoint, f->folders_made);
    return status;
  }
  status = hi_tell(&f->pass.callbacks, train_begin, t);
  while (!status && t->epoch < t->epochs && !t->stop) {
    helio_scope pool = helio_pool_enter();
    status = run_epoch(f);
    t->logs = NULL;
    helio_pool_leave(&pool);
  }
  status = tell_end(f, status);
  if (status) hi_folders_remove_empty(f->options->checkpoint, f->folders_made);
  return status;
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
  if (o->checkpoint_every_steps < 0 || o->checkpoint_every_epochs < 0 || o->keep_checkpoints < HELIO_ALL) {
    return hi_fail(
        HELIO_INVALID_ARGUMENT,
        "checkpoint_every_steps %lld, checkpoint_every_epochs %d, keep_checkpoints %d: none may be negative, "
        "but for keep_checkpoints HELIO_ALL",
        (long long)o->checkpoint_every_steps, o->checkpoint_every_epochs, o->keep_checkpoints);
  }
  if (o->resume && !o->checkpoint) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "resume needs checkpoint, the folder to go on from");
  }
  return HELIO_OK;
}

/* Another one for each training. Kept in checkpoints: a process that has trained before can go on from them, too. */
static helio_status draw_seed(uint64_t *seed) {
  uint64_t key = hi_seed_key(0, "fit"), times;
  helio_status status = hi_seed_count(key, &times);
  if (status) return status;
  *seed = (hi_mix(key, times) >> 1) | 1;
  return HELIO_OK;
}

static helio_status take_samples(fitting *f) {
  const helio_fit_options *o = f->options;
  f->samples = (hi_samples){.dataset = o->dataset,
                            .x = o->x,
                            .y = o->y,
                            .weights = o->sample_weights,
                            .x_tensor = o->x_tensor,
                            .y_tensor = o->y_tensor,
                            .batch_size = o->batch_size};
  hi_samples held_out = {.dataset = o->validation,
                         .x = o->validation_x,
                         .y = o->validation_y,
                         .weights = o->validation_weights,
                         .x_tensor = o->validation_x_tensor,
                         .y_tensor = o->validation_y_tensor,
                         .batch_size = o->validation_batch_size};
  if (!o->validation && !held_out.batch_size) held_out.batch_size = o->batch_size;
  if (!hi_samples_read(&f->samples, "training", true)) return helio_error_pending();
  if (!o->dataset && !o->no_shuffle && draw_seed(&f->samples.shuffle)) return helio_error_pending();
  if (o->validation_split != 0 && hi_samples_split(&f->samples, o->validation_split, &held_out)) {
    return helio_error_pending();
  }
  if (hi_samples_given(&held_out)) {
    if (!hi_samples_read(&held_out, "validation", true)) return helio_error_pending();
    f->validation = hi_samples_distribute(&held_out, f->pass.strategy);
    if (!f->validation) return helio_error_pending();
  }
  return make_batches(f);
}

static helio_status prepare(fitting *f) {
  const helio_fit_options *o = f->options;
  helio_training *t = &f->pass.training;
  helio_status status = check(o);
  if (!status) status = hi_pass_begin(&f->pass, o->model, o->verbose, o->callbacks);
  if (!status && o->micro_batch && !hi_trains_in_portions(o->model, f->pass.task.compiled->loss)) {
    status = helio_error_pending();
  }
  if (!status) status = take_samples(f);
  if (status) return status;
  f->pass.task.class_weights = o->class_weights;
  f->pass.task.class_count = o->class_count;
  f->pass.task.micro_batch = o->micro_batch;
  t->epoch = o->initial_epoch;
  t->epochs = o->epochs ? o->epochs : 1;
  t->steps = o->steps_per_epoch ? o->steps_per_epoch : hi_pass_steps(f->batches, "trained on");
  if (f->validation && !o->validation_steps) hi_pass_steps(f->validation, "measured");
  if (helio_error_pending()) return helio_error_pending();
  f->history = hi_history_new();
  return f->history ? hi_optimizer_accumulate(t->optimizer, o->accumulate_steps) : helio_error_pending();
}

helio_history *helio_fit_with(const helio_fit_options *given) {
  helio_fit_options o;
  if (!hi_options_enter("helio_fit", &o, sizeof o, given)) return NULL;
  fitting f = {.options = &o};
  helio_scope pool = helio_pool_enter();
  helio_status status = prepare(&f);
  f.heeds_signals = !status && o.checkpoint && !o.no_signals;
  if (f.heeds_signals) hi_signals_catch();
  if (!status) status = run_epochs(&f);
  int asked = f.heeds_signals ? hi_signals_leave() : 0;
  if (!status) hi_history_set_signal(f.history, asked);
  hi_drop(f.iterator);
  hi_drop(f.batches);
  hi_pass_end(&f.pass);
  hi_error_blame("helio_fit");
  return hi_pool_leave_with(&pool, status ? NULL : f.history);
}
