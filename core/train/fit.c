/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs. */
#include <math.h>

#include "ops/options.h"
#include "runtime/clock.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "tensor/pool.h"
#include "train/history.h"
#include "train/input.h"
#include "train/pass.h"
#include "train/progress.h"

typedef struct fitting {
  hi_pass pass;
  const helio_fit_options *options;
  helio_distributed *batches, *validation;
  helio_distributed_iterator *iterator; /* that serves all epochs; NULL: each has its own */
  helio_history *history;
  double begin;
  helio_training totals; /* of all epochs so far */
} fitting;

/* ---- one epoch ---- */

static helio_status before_step(hi_pass *pass) {
  return hi_tell(&pass->callbacks, batch_begin, &pass->training);
}

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
  return status;
}

/* With a number of steps for each epoch the data go on from one to the next. */
static helio_distributed_iterator *iterator_for(fitting *f) {
  if (!f->options->steps_per_epoch) return helio_iterate_distributed(f->batches);
  if (f->iterator) return f->iterator;
  helio_distributed_iterator *iterator = helio_iterate_distributed(f->batches);
  if (iterator) hi_hold(iterator);
  f->iterator = iterator;
  return iterator;
}

static helio_status walk_epoch(fitting *f) {
  helio_training *t = &f->pass.training;
  hi_walk walk = {.step = hi_train_step,
                  .batches = iterator_for(f),
                  .most = f->options->steps_per_epoch,
                  .before = before_step,
                  .behind = behind_step};
  helio_status status = walk.batches ? hi_pass_walk(&f->pass, &walk) : helio_error_pending();
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
  t->step = 0;
  t->logs = logs ? hi_logs_new(f->pass.strategy) : NULL;
  helio_status status = t->logs ? hi_compiled_reset(f->pass.task.compiled) : helio_error_pending();
  if (!status) status = hi_logs_add_metrics(t->logs, f->pass.task.compiled);
  if (!status) status = hi_tell(&f->pass.callbacks, epoch_begin, t);
  if (!status) status = walk_epoch(f);
  if (!status) status = hi_logs_add_all(logs, "", t->logs);
  if (!status && validates_now(f)) status = validate(f, logs);
  if (status) return status;
  add_to_totals(f);
  if (t->steps < 0) t->steps = t->step;
  t->logs = logs;
  status = hi_tell(&f->pass.callbacks, epoch_end, t);
  return status ? status : hi_history_add(f->history, t->epoch, logs); /* with what callbacks have added */
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
  for (; !status && t->epoch < t->epochs && !t->stop; t->epoch++) {
    helio_scope pool = helio_pool_enter();
    status = run_epoch(f);
    t->logs = NULL;
    helio_pool_leave(&pool);
  }
  hi_drop(f->iterator);
  f->iterator = NULL;
  return tell_end(f, status);
}

/* ---- the options ---- */

static helio_status check(const helio_fit_options *o) {
  if (o->epochs < 0 || o->initial_epoch < 0 || o->steps_per_epoch < 0 || o->validation_steps < 0 ||
      o->validation_frequency < 0 || (o->class_weights && o->class_count < 1)) {
    return hi_fail(HELIO_INVALID_ARGUMENT,
                   "epochs %d, initial_epoch %d, steps_per_epoch %lld, validation_steps %lld, validation_frequency %d, "
                   "class_count %d: none may be negative, and weights of classes need their number",
                   o->epochs, o->initial_epoch, (long long)o->steps_per_epoch, (long long)o->validation_steps,
                   o->validation_frequency, o->class_count);
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
                           .class_count = o->class_count};
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
  helio_scope pool = helio_pool_enter();
  helio_status status = prepare(&f);
  if (!status) status = run_epochs(&f);
  hi_callbacks_end(&f.pass.callbacks);
  return hi_pool_leave_with(&pool, status ? NULL : f.history);
}
