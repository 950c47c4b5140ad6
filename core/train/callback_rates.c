/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks that change the learning rate. */
#include <math.h>
#include <stdlib.h>

#include "nn/layer_help.h"
#include "nn/optimizer.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "train/callback.h"
#include "train/logs.h"
#include "train/monitor.h"

/* Better now than behind the first epoch. */
static helio_status check_settable(const helio_training *t) {
  if (!t->optimizer->schedule) return HELIO_OK;
  return hi_fail(
      HELIO_WRONG_STATE,
      "%s was made with a schedule, hence its learning rate is not settable: give it a learning_rate, or the "
      "training no callback that changes the rate",
      t->optimizer->name);
}

/* As in Keras, what is measured has the rate of the epoch with it, for those who are told after this one. */
static helio_status log_rate(const helio_training *t) {
  return hi_logs_set(t->logs, "learning_rate", hi_optimizer_rate(t->optimizer));
}

/* ---- a function of the epoch ---- */

typedef struct scheduler {
  helio_rate_function function;
  void *user;
} scheduler;

static helio_status begin_scheduler(void *user, helio_training *t) {
  (void)user;
  return check_settable(t);
}

static helio_status set_rate(void *user, helio_training *t) {
  const scheduler *s = user;
  if (t->resumed_steps > 0) return HELIO_OK; /* the checkpoint has the rate of this epoch */
  double rate = s->function(s->user, t->epoch, hi_optimizer_rate(t->optimizer));
  helio_status status = helio_error_pending();
  return status ? status : helio_optimizer_set_learning_rate(t->optimizer, rate);
}

static helio_status end_scheduled_epoch(void *user, helio_training *t) {
  (void)user;
  return log_rate(t);
}

helio_callback *helio_learning_rate_scheduler(helio_rate_function function, void *user) {
  if (hi_enter(__func__)) return NULL;
  if (!function) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the function is NULL");
    return NULL;
  }
  scheduler *s = hi_callback_user(sizeof *s);
  if (!s) return NULL;
  *s = (scheduler){function, user};
  helio_callback *made = helio_callback(.user = s, .train_begin = begin_scheduler, .epoch_begin = set_rate,
                                        .epoch_end = end_scheduled_epoch, .release = free);
  if (!made) free(s);
  return made;
}

/* ---- a plateau ---- */

typedef struct plateau {
  helio_reduce_on_plateau_options options; /* complete; the monitor's name is not to be used */
  hi_monitor monitor;
  int64_t wait;     /* epochs without an improvement */
  int64_t cooldown; /* epochs that are left in which it does not look */
  bool goes_on;     /* from a checkpoint */
} plateau;

static helio_status begin_plateau(void *user, helio_training *t) {
  plateau *p = user;
  if (!p->goes_on) {
    p->monitor.has_best = false;
    p->wait = p->cooldown = 0;
  }
  helio_status status = check_settable(t);
  return status ? status : hi_monitor_begin(&p->monitor, t);
}

/* Rates are compared as float32, which they are in Keras: one that has come down to the least is not above it. */
static helio_status reduce(plateau *p, const helio_training *t) {
  const helio_reduce_on_plateau_options *o = &p->options;
  double rate = hi_optimizer_rate(t->optimizer);
  if ((float)rate <= (float)o->min_learning_rate) return HELIO_OK;
  rate = fmax(rate * o->factor, o->min_learning_rate);
  helio_status status = helio_optimizer_set_learning_rate(t->optimizer, rate);
  if (status) return status;
  if (o->verbose) {
    hi_log(HELIO_LOG_INFO, "Epoch %d: ReduceLROnPlateau reducing learning rate to %g.", t->epoch + 1, rate);
  }
  p->cooldown = o->cooldown;
  p->wait = 0;
  return HELIO_OK;
}

static helio_status judge_plateau(void *user, helio_training *t) {
  plateau *p = user;
  bool found = false;
  double value;
  helio_status status = log_rate(t);
  if (!status) status = hi_monitor_read(&p->monitor, t, "Learning rate reduction", &value, &found);
  if (status || !found) return status;
  if (p->cooldown > 0) {
    p->cooldown--;
    p->wait = 0;
  }
  if (hi_monitor_take(&p->monitor, value)) {
    p->wait = 0;
    return HELIO_OK;
  }
  if (p->cooldown > 0) return HELIO_OK;
  p->wait++;
  return p->wait >= p->options.patience ? reduce(p, t) : HELIO_OK;
}

static helio_status end_plateau(void *user, helio_training *t) {
  plateau *p = user;
  (void)t;
  p->goes_on = false;
  return HELIO_OK;
}

#define KEPT_OF_PLATEAU(p) (hi_kept_number[]){{"wait", &(p)->wait}, {"cooldown", &(p)->cooldown}}, 2

static char *save_plateau(void *user) {
  plateau *p = user;
  return hi_monitor_save(&p->monitor, KEPT_OF_PLATEAU(p));
}

static helio_status restore_plateau(void *user, const char *state) {
  plateau *p = user;
  helio_status status = hi_monitor_restore(&p->monitor, "helio_reduce_on_plateau()", state, KEPT_OF_PLATEAU(p));
  if (!status) p->goes_on = true;
  return status;
}

static void release_plateau(void *user) {
  plateau *p = user;
  hi_monitor_free(&p->monitor);
  free(p);
}

static helio_status complete(helio_reduce_on_plateau_options *o) {
  o->factor = hi_real_or(o->factor, 0.1);
  o->min_delta = hi_real_or(o->min_delta, 1e-4);
  o->patience = o->patience == HELIO_INTEGER_ZERO ? 0 : o->patience ? o->patience : 10;
  if (!(o->factor >= 0 && o->factor < 1)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "factor is %g: it must be less than 1, and not negative", o->factor);
  }
  if (o->patience < 0 || o->cooldown < 0 || !(o->min_learning_rate >= 0) || isinf(o->min_learning_rate)) {
    return hi_fail(HELIO_INVALID_ARGUMENT,
                   "patience is %d, cooldown %d, min_learning_rate %g: none may be negative or no number", o->patience,
                   o->cooldown, o->min_learning_rate);
  }
  return HELIO_OK;
}

static helio_callback *make_plateau(plateau *p) {
  const helio_reduce_on_plateau_options *o = &p->options;
  if (hi_monitor_make(&p->monitor, o->monitor, o->mode, o->min_delta)) return NULL;
  char *name = hi_callback_name("reduce_on_plateau", p->monitor.name);
  if (!name) return NULL;
  helio_callback *made =
      helio_callback(.user = p, .train_begin = begin_plateau, .epoch_end = judge_plateau, .train_end = end_plateau,
                     .name = name, .save = save_plateau, .restore = restore_plateau, .release = release_plateau);
  free(name);
  return made;
}

helio_callback *helio_reduce_on_plateau_with(const helio_reduce_on_plateau_options *given) {
  helio_reduce_on_plateau_options o;
  if (!hi_options_enter("helio_reduce_on_plateau", &o, sizeof o, given) || complete(&o)) return NULL;
  plateau *p = hi_callback_user(sizeof *p);
  if (!p) return NULL;
  p->options = o;
  helio_callback *made = make_plateau(p);
  if (!made) release_plateau(p);
  return made;
}
