/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks that end a training before its last epoch. */
#include <math.h>
#include <stdlib.h>

#include "nn/model.h"
#include "ops/options.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "train/callback.h"
#include "train/logs.h"
#include "train/monitor.h"

/* ---- weights that are kept ---- */

/* Arrays on the host, so that no device needs room for them, or must live as long. */
typedef struct snapshot {
  int count;
  helio_array **arrays; /* references; NULL: there is none */
} snapshot;

static void forget(snapshot *kept) {
  for (int i = 0; i < kept->count; i++) hi_drop(kept->arrays[i]);
  free(kept->arrays);
  *kept = (snapshot){0};
}

static helio_status copy_all(const helio_variables *weights, snapshot *copy) {
  copy->arrays = calloc((size_t)weights->count + 1, sizeof *copy->arrays);
  if (!copy->arrays) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the best weights");
  for (; copy->count < weights->count; copy->count++) {
    helio_variable *variable = weights->at[copy->count];
    helio_tensor *value = hi_variable_usable(variable) ? hi_variable_read(variable) : NULL;
    helio_array *array = value ? helio_tensor_array(value) : NULL;
    if (!array) return helio_error_pending();
    hi_hold(array);
    copy->arrays[copy->count] = array;
  }
  return HELIO_OK;
}

/* The weights of now take the place of those that are kept. If a device is lost meanwhile, another has them too. */
static helio_status take_weights(snapshot *kept, const helio_training *t) {
  snapshot copy = {0};
  helio_status status;
  helio_scope pool = helio_pool_enter();
  do {
    forget(&copy);
    const helio_variables *weights = helio_weights(t->model);
    status = weights ? copy_all(weights, &copy) : helio_error_pending();
  } while (status && helio_retry(t->strategy, NULL));
  helio_pool_leave(&pool);
  forget(status ? &copy : kept);
  if (!status) *kept = copy;
  return status;
}

static helio_status set_all(const snapshot *kept, helio_model *model) {
  helio_tensor **tensors = calloc((size_t)kept->count + 1, sizeof *tensors);
  if (!tensors) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the best weights");
  helio_status status = HELIO_OK;
  for (int i = 0; i < kept->count && !status; i++) {
    tensors[i] = helio_array_tensor(kept->arrays[i]);
    if (!tensors[i]) status = helio_error_pending();
  }
  if (!status) status = helio_set_weights(model, tensors, kept->count);
  free(tensors);
  return status;
}

static helio_status put_back(const snapshot *kept, const helio_training *t) {
  helio_status status;
  do {
    helio_scope pool = helio_pool_enter();
    status = set_all(kept, t->model);
    helio_pool_leave(&pool);
  } while (status && helio_retry(t->strategy, NULL));
  return status;
}

/* ---- early stopping ---- */

typedef struct stopping {
  helio_early_stopping_options options; /* the monitor's name is not to be used */
  hi_monitor monitor;
  int64_t wait;       /* epochs since the best one */
  int64_t best_epoch; /* from 0 */
  int64_t stopped;    /* the epoch behind which it ended the training; −1: none */
  bool goes_on;       /* from a checkpoint */
  snapshot best;
} stopping;

static helio_status begin_stopping(void *user, helio_training *t) {
  stopping *s = user;
  s->stopped = -1;
  if (!s->goes_on) {
    s->monitor.has_best = false;
    s->wait = s->best_epoch = 0;
  }
  if (s->goes_on && s->options.patience > 0 && s->wait >= s->options.patience)
    t->stop = true; /* it has come to its end */
  forget(&s->best);
  return hi_monitor_begin(&s->monitor, t);
}

static helio_status improved(stopping *s, const helio_training *t, double value) {
  const helio_early_stopping_options *o = &s->options;
  s->best_epoch = t->epoch;
  if (!o->has_baseline || hi_monitor_better(&s->monitor, value, o->baseline)) s->wait = 0;
  return o->restore_best_weights ? take_weights(&s->best, t) : HELIO_OK;
}

static helio_status judge_epoch(void *user, helio_training *t) {
  stopping *s = user;
  bool found;
  double value;
  helio_status status = hi_monitor_read(&s->monitor, t, "Early stopping", &value, &found);
  if (status || !found || t->epoch < s->options.start_from_epoch) return status;
  s->wait++;
  if (hi_monitor_take(&s->monitor, value)) return improved(s, t, value);
  if (s->wait < s->options.patience || t->epoch == 0) return HELIO_OK;
  s->stopped = t->epoch;
  t->stop = true;
  return HELIO_OK;
}

/* Also behind the last epoch, if none was stopped at. */
static helio_status end_stopping(void *user, helio_training *t) {
  stopping *s = user;
  bool verbose = s->options.verbose, lost = s->goes_on && s->monitor.has_best && !s->best.arrays;
  s->goes_on = false;
  if (verbose && s->stopped >= 0) hi_log(HELIO_LOG_INFO, "Epoch %lld: early stopping", (long long)s->stopped + 1);
  if (!s->options.restore_best_weights) return HELIO_OK;
  if (lost) {
    hi_log(HELIO_LOG_WARNING,
           "the best epoch, %lld, was before the checkpoint that the training went on from, which has no copy of its "
           "weights: those of the last epoch stay",
           (long long)s->best_epoch + 1);
  }
  if (!s->best.arrays) return HELIO_OK;
  if (verbose) {
    hi_log(HELIO_LOG_INFO, "Restoring model weights from the end of the best epoch: %lld.",
           (long long)s->best_epoch + 1);
  }
  helio_status status = put_back(&s->best, t);
  forget(&s->best);
  return status;
}

#define KEPT_OF_STOPPING(s) (hi_kept_number[]){{"best_epoch", &(s)->best_epoch}, {"wait", &(s)->wait}}, 2

static char *save_stopping(void *user) {
  stopping *s = user;
  return hi_monitor_save(&s->monitor, KEPT_OF_STOPPING(s));
}

static helio_status restore_stopping(void *user, const char *state) {
  stopping *s = user;
  helio_status status = hi_monitor_restore(&s->monitor, "helio_early_stopping()", state, KEPT_OF_STOPPING(s));
  if (!status) s->goes_on = true;
  return status;
}

static void release_stopping(void *user) {
  stopping *s = user;
  forget(&s->best);
  hi_monitor_free(&s->monitor);
  free(s);
}

static helio_status check_stopping(const helio_early_stopping_options *o) {
  if (o->patience < 0 || o->start_from_epoch < 0) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "patience is %d and start_from_epoch %d: neither may be negative",
                   o->patience, o->start_from_epoch);
  }
  if (o->has_baseline && isnan(o->baseline)) return hi_fail(HELIO_INVALID_ARGUMENT, "baseline is not a number");
  return HELIO_OK;
}

static helio_callback *make_stopping(stopping *s) {
  const helio_early_stopping_options *o = &s->options;
  if (hi_monitor_make(&s->monitor, o->monitor, o->mode, o->min_delta)) return NULL;
  char *name = hi_callback_name("early_stopping", s->monitor.name);
  if (!name) return NULL;
  helio_callback *made =
      helio_callback(.user = s, .train_begin = begin_stopping, .epoch_end = judge_epoch, .train_end = end_stopping,
                     .name = name, .save = save_stopping, .restore = restore_stopping, .release = release_stopping);
  free(name);
  return made;
}

helio_callback *helio_early_stopping_with(const helio_early_stopping_options *given) {
  helio_early_stopping_options o;
  if (!hi_options_enter("helio_early_stopping", &o, sizeof o, given) || check_stopping(&o)) return NULL;
  stopping *s = hi_callback_user(sizeof *s);
  if (!s) return NULL;
  s->options = o;
  helio_callback *made = make_stopping(s);
  if (!made) release_stopping(s);
  return made;
}

/* ---- numbers that are none ---- */

/* In Keras' words, of a batch that is counted from 0. */
static helio_status judge_batch(void *user, helio_training *t) {
  double loss;
  bool found;
  (void)user;
  helio_status status = hi_logs_find(t->batch_logs, "loss", &loss, &found);
  if (status || !found || isfinite(loss)) return status;
  hi_log(HELIO_LOG_WARNING, "Batch %lld: Invalid loss, terminating training", (long long)t->step - 1);
  t->stop = true;
  return HELIO_OK;
}

helio_callback *helio_terminate_on_nan(void) {
  return helio_callback(.batch_end = judge_batch);
}
