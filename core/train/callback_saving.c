/* SPDX-License-Identifier: Apache-2.0 */
/* The callback that saves the model while it learns. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/folder.h"
#include "nn/model.h"
#include "ops/options.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "train/callback.h"
#include "train/monitor.h"
#include "train/path_template.h"

typedef struct saving {
  helio_model_checkpoint_options options; /* its texts are not to be used */
  char *path;
  hi_monitor monitor; /* its best value is that of all trainings, as in Keras */
  int64_t steps;      /* since the last one that was saved behind */
} saving;

static helio_status save_model(helio_model *model, const char *path, bool weights_only) {
  return weights_only ? helio_save_weights(model, path) : helio_save_model(model, path);
}

/* With the folders that lead to it. If a device is lost meanwhile, another has the weights too. */
static helio_status save_at(const saving *s, const helio_training *t, char *path) {
  char *name = strrchr(path, '/');
  helio_status status = HELIO_OK;
  int made = 0;
  if (name && name != path) {
    *name = 0;
    status = hi_folder_make(path, &made);
    *name = '/';
  }
  if (status) return status;
  do {
    status = save_model(t->model, path, s->options.save_weights_only);
  } while (status && helio_retry(t->strategy, NULL));
  if (status && made > 0) {
    *name = 0;
    hi_folders_remove_empty(path, made);
    *name = '/';
  }
  return status;
}

static void say(const saving *s, const helio_training *t, const char *path) {
  if (s->options.verbose) hi_log(HELIO_LOG_INFO, "Epoch %d: saving model to %s", t->epoch + 1, path);
}

/* Is the model to be saved? Where the value that should be better is not there, it is: as in Keras. */
static helio_status judge(saving *s, const helio_training *t, bool *wanted) {
  bool found;
  double value;
  *wanted = true;
  if (!s->options.save_best_only) return HELIO_OK;
  helio_status status = hi_monitor_read(&s->monitor, t, "Saving the best model", &value, &found);
  if (!status && found) *wanted = hi_monitor_take(&s->monitor, value);
  return status;
}

static helio_status save_if_better(saving *s, const helio_training *t, int64_t batch) {
  bool wanted;
  hi_monitor before = s->monitor;
  helio_status status = judge(s, t, &wanted);
  if (status || !wanted) return status;
  char *path = hi_path_template_fill(s->path, t->epoch + 1, batch, t->logs);
  if (path) say(s, t, path);
  status = path ? save_at(s, t, path) : helio_error_pending();
  if (status) s->monitor = before; /* what is not saved is not the best that is */
  free(path);
  return status;
}

/* That a model cannot be saved as a whole is better known now than behind the first epoch. */
static helio_status check_model(const saving *s, helio_model *model) {
  if (s->options.save_weights_only || !atomic_load(&model->built)) return HELIO_OK;
  char *architecture = helio_model_to_json(model);
  if (!architecture) hi_error_prefix("the whole model is to be saved, unless .save_weights_only is set: ");
  free(architecture);
  return helio_error_pending();
}

static helio_status begin(void *user, helio_training *t) {
  saving *s = user;
  helio_status status = check_model(s, t->model);
  return status || !s->options.save_best_only ? status : hi_monitor_begin(&s->monitor, t);
}

static helio_status batch_end(void *user, helio_training *t) {
  saving *s = user;
  if (s->options.every_steps == 0 || ++s->steps < s->options.every_steps) return HELIO_OK;
  s->steps = 0;
  return save_if_better(s, t, t->step);
}

static helio_status epoch_end(void *user, helio_training *t) {
  saving *s = user;
  return s->options.every_steps == 0 ? save_if_better(s, t, 0) : HELIO_OK;
}

static char *save(void *user) {
  saving *s = user;
  return hi_monitor_save(&s->monitor, &(hi_kept_number){"steps", &s->steps}, 1);
}

static helio_status restore(void *user, const char *state) {
  saving *s = user;
  return hi_monitor_restore(&s->monitor, "helio_model_checkpoint()", state, &(hi_kept_number){"steps", &s->steps}, 1);
}

static void release(void *user) {
  saving *s = user;
  hi_monitor_free(&s->monitor);
  free(s->path);
  free(s);
}

static helio_status check(const helio_model_checkpoint_options *o) {
  helio_status status = hi_path_template_check(o->path);
  if (status) return status;
  if (o->every_steps < 0) return hi_fail(HELIO_INVALID_ARGUMENT, "every_steps is %lld", (long long)o->every_steps);
  if (o->has_threshold && isnan(o->initial_threshold)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "initial_threshold is not a number");
  }
  return HELIO_OK;
}

static helio_callback *make(saving *s) {
  const helio_model_checkpoint_options *o = &s->options;
  if (hi_monitor_make(&s->monitor, o->monitor, o->mode, 0)) return NULL;
  s->monitor.has_best = o->has_threshold;
  s->monitor.best = o->initial_threshold;
  s->path = hi_callback_path(o->path);
  char *name = s->path ? hi_callback_name("model_checkpoint", s->path) : NULL;
  if (!name) return NULL;
  helio_callback *made = helio_callback(.user = s, .train_begin = begin, .batch_end = batch_end, .epoch_end = epoch_end,
                                        .name = name, .save = save, .restore = restore, .release = release);
  free(name);
  return made;
}

helio_callback *helio_model_checkpoint_with(const helio_model_checkpoint_options *given) {
  helio_model_checkpoint_options o;
  if (!hi_options_enter("helio_model_checkpoint", &o, sizeof o, given) || check(&o)) return NULL;
  saving *s = hi_callback_user(sizeof *s);
  if (!s) return NULL;
  s->options = o;
  helio_callback *made = make(s);
  if (!made) release(s);
  return made;
}
