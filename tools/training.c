/* SPDX-License-Identifier: Apache-2.0 */
#include "training.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "model_file.h"
#include "model_record.h"
#include "output.h"
#include "plot.h"
#include "sample_files.h"
#include "training_report.h"

/* ---------------------------------------------------------------------------------------------------------------------
 * Model and samples
 */

/* What a model of the user's own is trained with unless the command line says otherwise. */
static const recipe usual = {.optimizer = "adam", .batch = 32, .epochs = 10};

static const recipe *recipe_of(const training *t) {
  return t->recipe ? t->recipe : &usual;
}

/* A few texts may all be held out for validation. */
static int check_samples(const training *t, const sample_set *set) {
  if (sample_set_count(set->x) > 0) return EXIT_SUCCESS;
  char **files = helio_data_files(t->recipe->set, t->data);
  if (!files) return command_library_failure(t->path);
  int status = command_failure(t->path, "%s has too few samples: none is left to train on", files[0]);
  free(files);
  return status;
}

static int make_recipe_model(session *s) {
  const training *t = s->asked;
  int status = recipe_load(t->recipe, t->data, &s->samples, t->path);
  if (status == EXIT_SUCCESS) status = check_samples(t, &s->samples);
  if (status != EXIT_SUCCESS) return status;
  HELIO_SCOPE(s->strategy) s->model = t->recipe->make_model(t->recipe->name, &s->samples);
  s->objective = t->recipe->objective;
  if (!s->model) return command_library_failure(t->path);
  if (!t->loss) return EXIT_SUCCESS;
  status = objective_choose(&s->objective, s->model, &s->samples, t->loss, NULL, t->path);
  if (status == EXIT_SUCCESS) recipe_add_metrics(t->recipe, &s->objective);
  return status;
}

/* Variables belong to the strategy in whose scope they are made: where the file says no shape, the samples do. */
static int build(const session *s) {
  helio_shape batch = helio_array_shape(s->samples.x);
  batch.extent[0] = -1;
  if (helio_model_input_type(s->model, 0)) return EXIT_SUCCESS;
  HELIO_SCOPE(s->strategy) helio_model_build(s->model, batch);
  return helio_error_pending() ? command_library_failure(s->asked->path) : EXIT_SUCCESS;
}

static int make_own_model(session *s) {
  const training *t = s->asked;
  HELIO_SCOPE(s->strategy) s->model = model_file_read(t->architecture, t->path);
  int status = s->model ? sample_set_read(&s->samples, t->data, s->model, t->path) : EXIT_FAILURE;
  if (status == EXIT_SUCCESS && !s->samples.x) {
    status = command_failure(t->path, "%s has only samples for testing; x_train and y_train are needed, or x and y",
                             t->data);
  }
  if (status != EXIT_SUCCESS) return status;
  model_record before = {0};
  if (!model_file_is_architecture(t->architecture)) { /* a saved model is trained further */
    before = model_record_of(s->model, model_record_recipe(s->model));
    model_record_apply(&before, &s->samples, s->model, t->data, t->path);
  }
  status = sample_set_suit(&s->samples, s->model, t->path);
  if (status == EXIT_SUCCESS) status = build(s);
  if (status == EXIT_SUCCESS) status = sample_set_suit(&s->samples, s->model, t->path); /* those to validate on, too */
  if (status != EXIT_SUCCESS) return status;
  return objective_choose(&s->objective, s->model, &s->samples, t->loss, before.loss, t->path);
}

/* Keras' validation_split: the last samples as they stand in the data, whatever order they are trained in. */
static int split(const training *t, sample_set *set) {
  helio_samples all = {.x = set->x, .y = set->y}, rest, validation;
  if (t->validation_split == 0) return EXIT_SUCCESS;
  if (set->test_x) {
    return command_usage_error(t->path, "the data bring samples to validate on: leave --validation-split out");
  }
  if (helio_split_samples(&all, t->validation_split, &rest, &validation) != HELIO_OK) {
    return command_library_failure(t->path);
  }
  const char *without = sample_set_count(rest.x) == 0         ? "train on"
                        : sample_set_count(validation.x) == 0 ? "validate on"
                                                              : NULL;
  if (without) {
    return command_failure(t->path, "--validation-split %g leaves none of %" PRId64 " samples to %s",
                           t->validation_split, sample_set_count(set->x), without);
  }
  set->x = rest.x, set->y = rest.y;
  set->test_x = validation.x, set->test_y = validation.y;
  return EXIT_SUCCESS;
}

static int64_t batch_of(const training *t, int replicas) {
  const recipe *r = recipe_of(t);
  if (t->batch) return t->batch;
  if (t->replica_batch) return t->replica_batch * replicas;
  return r->for_each_replica ? r->batch * replicas : r->batch;
}

/* A number of steps alone asks for as many epochs as these need. */
static void count_steps(session *s) {
  const training *t = s->asked;
  int64_t samples = sample_set_count(s->samples.x);
  s->batch = batch_of(t, helio_num_replicas(s->strategy));
  s->steps = samples / s->batch + (samples % s->batch != 0);
  int64_t needed = t->limit && s->steps ? (t->limit + s->steps - 1) / s->steps : recipe_of(t)->epochs;
  s->epochs = t->epochs ? t->epochs : needed;
}

static helio_optimizer *make_optimizer(session *s) {
  const training *t = s->asked;
  const recipe *r = recipe_of(t);
  helio_optimizer *optimizer = helio_optimizer_named(t->optimizer ? t->optimizer : r->optimizer);
  double rate = t->rate > 0 ? t->rate : t->optimizer ? 0 : r->rate;
  if (rate > 0) helio_optimizer_set_learning_rate(optimizer, rate);
  s->rate = optimizer ? helio_optimizer_learning_rate(optimizer) : 0;
  return helio_error_pending() ? NULL : optimizer;
}

static int refuse_start_weights(const training *t) {
  helio_error error = {.message = ""};
  helio_error_take(&error);
  return command_failure(t->path, "--init: %s", error.message);
}

static void note_devices(session *s) {
  s->device_count = helio_num_replicas(s->strategy);
  for (int i = 0; i < s->device_count; i++) s->devices[i] = helio_strategy_device(s->strategy, i);
}

static int prepare(session *s) {
  const training *t = s->asked;
  int status = devices_choose(&t->devices, t->path, &s->strategy);
  if (status != EXIT_SUCCESS) return status;
  note_devices(s);
  if (t->seed >= 0) helio_set_seed((uint64_t)t->seed);
  status = (t->recipe ? make_recipe_model : make_own_model)(s);
  if (status == EXIT_SUCCESS) status = split(t, &s->samples);
  if (status != EXIT_SUCCESS) return status;
  count_steps(s);
  if (t->init && helio_load_weights(s->model, t->init) != HELIO_OK) return refuse_start_weights(t);
  HELIO_SCOPE(s->strategy) {
    s->optimizer = make_optimizer(s);
    objective_compile(&s->objective, s->model, s->optimizer);
  }
  return helio_error_pending() ? command_library_failure(t->path) : EXIT_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Training
 */

/* Behind each step, and before the first one of an epoch: a training that goes on may have had enough. */
static helio_status count_steps_taken(void *user, helio_training *t) {
  session *s = user;
  s->tally.steps = t->total_steps;
  if (s->asked->limit && t->total_steps >= s->asked->limit) t->stop = true;
  return HELIO_OK;
}

static helio_status note_measured(void *user, helio_training *t) {
  session *s = user;
  s->tally.measured = t->total_steps;
  return HELIO_OK;
}

/* A training that goes on has the rate of its checkpoint, unless the command line names one. It grows for an epoch,
 * whatever the total: with more of them a training that goes on must find the rate it had. */
static helio_status begin_training(void *user, helio_training *t) {
  session *s = user;
  double rate = s->asked->rate;
  s->tally.steps = s->tally.begun = t->total_steps;
  command_set_log_level(HELIO_LOG_WARNING);
  helio_status status = rate > 0 ? helio_optimizer_set_learning_rate(t->optimizer, rate) : HELIO_OK;
  if (!status) status = helio_scale_learning_rate(t->optimizer, s->asked->scaling, s->device_count, s->steps);
  if (!status && t->total_steps > 0 && s->asked->talks) report_resumed(t);
  return status;
}

static helio_status end_training(void *user, helio_training *t) {
  session *s = user;
  s->tally.samples = t->samples;
  s->tally.seconds = t->seconds - t->validation_seconds;
  return HELIO_OK;
}

static void add_callbacks(session *s, helio_callback **callbacks) {
  const training *t = s->asked;
  int count = 0;
  callbacks[count++] =
      helio_callback(.user = s, .train_begin = begin_training, .epoch_begin = count_steps_taken,
                     .batch_end = count_steps_taken, .epoch_end = note_measured, .train_end = end_training);
  if (t->log) callbacks[count++] = helio_json_logger(t->log);
  if (t->tensorboard) callbacks[count++] = helio_tensorboard(t->tensorboard);
  if (t->timeline) callbacks[count++] = helio_timeline(t->timeline);
}

/* What is measured does not depend on the batch, so it need not be larger than what is computed at a time. */
static int64_t validation_batch(const session *s) {
  int64_t at_a_time = recipe_of(s->asked)->micro_batch * helio_num_replicas(s->strategy);
  return at_a_time && at_a_time < s->batch ? at_a_time : s->batch;
}

static helio_history *fit(session *s) {
  const training *t = s->asked;
  sample_set *set = &s->samples;
  int64_t samples = sample_set_count(set->x), buffer = recipe_of(t)->buffer ? recipe_of(t)->buffer : samples;
  helio_fit_options o = {.size = sizeof o,
                         .model = s->model,
                         .dataset = sample_set_batches(set, set->x, set->y, s->batch, t->in_order ? 0 : buffer),
                         .epochs = (int)s->epochs,
                         .micro_batch = recipe_of(t)->micro_batch,
                         .checkpoint = t->checkpoint,
                         .checkpoint_every_steps = t->checkpoint_every,
                         .resume = t->resume,
                         .verbose = t->talks ? HELIO_VERBOSE : HELIO_QUIET};
  if (set->test_x) o.validation = sample_set_batches(set, set->test_x, set->test_y, validation_batch(s), 0);
  add_callbacks(s, o.callbacks);
  /* From which file, epoch and step a training goes on is the library's to say. */
  if (t->resume && t->talks) command_set_log_level(HELIO_LOG_INFO);
  return helio_error_pending() ? NULL : helio_fit_with(&o);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What is left of it
 */

static bool is_not_finite(const helio_history *history) {
  int epochs = helio_history_epochs(history);
  return epochs > 0 && !isfinite(helio_history_value(history, "loss", epochs - 1));
}

/* A model that predicts nothing but nonsense must not take the place of a good one. */
static int save(const session *s, const helio_history *history) {
  const training *t = s->asked;
  if (!t->save) return EXIT_SUCCESS;
  if (is_not_finite(history)) return EXIT_FAILURE; /* judge_loss() says why */
  helio_status status = model_record_keep(s->model, t->recipe, s->objective.loss, &s->samples);
  if (!status) status = helio_save_model(s->model, t->save);
  return status ? command_library_failure(t->path) : EXIT_SUCCESS;
}

static int plot(const session *s, const helio_history *history) {
  const training *t = s->asked;
  if (!t->plot) return EXIT_SUCCESS;
  const char *problem = plot_write(t->plot, helio_layer_name(s->model), history);
  return problem ? command_failure(t->path, "--plot %s", problem) : EXIT_SUCCESS;
}

static bool is_complete(const session *s, const helio_history *history) {
  int epochs = helio_history_epochs(history);
  if (epochs > 0 && helio_history_epoch(history, epochs - 1) + 1 >= s->epochs) return true;
  return s->asked->limit && s->tally.measured >= s->asked->limit;
}

/* Of a loss that is no number none is written; one that the training went on from is there. */
static bool has_checkpoints(const session *s, const helio_history *history) {
  return helio_history_checkpoint_step(history) >= 0 || s->tally.begun > 0;
}

/* The last word: no failure unless there is less than was asked for, but nobody wants it. */
static int judge_loss(const session *s, const helio_history *history) {
  const training *t = s->asked;
  if (!is_not_finite(history)) return EXIT_SUCCESS;
  double loss = helio_history_value(history, "loss", helio_history_epochs(history) - 1);
  const char *missing = t->save                                         ? ", so the model was not saved"
                        : t->checkpoint && !has_checkpoints(s, history) ? ", so no checkpoint was written"
                                                                        : "";
  command_tell(t->path, "%sthe loss became %g%s; try a smaller --lr, and check the data for empty cells",
               *missing ? "" : "warning: ", output_unsigned_nan(loss), missing);
  return *missing ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Where a training that a signal ended goes on from. */
static void tell_interrupted(const session *s, const helio_history *history) {
  const training *t = s->asked;
  bool written = helio_history_checkpoint_step(history) == s->tally.steps;
  const char *left = written                       ? "a checkpoint of it is in"
                     : has_checkpoints(s, history) ? "of which no checkpoint was written; those before it are in"
                                                   : "of which no checkpoint was written, nor is there one in";
  command_tell(t->path, "%s after step %" PRId64 "%s %s %s%s%s", strsignal(helio_history_signal(history)),
               s->tally.steps, written ? ";" : ",", left, t->checkpoint,
               written ? ", and --resume goes on from there" : "",
               t->save || t->plot ? "; the model and the plot are written at the end only" : "");
}

static int finish(const session *s, const helio_history *history) {
  const training *t = s->asked;
  int signal = helio_history_signal(history);
  bool whole = !signal || is_complete(s, history);
  int saved = whole ? save(s, history) : EXIT_SUCCESS, drawn = whole ? plot(s, history) : EXIT_SUCCESS;
  if (t->json) report_json(s, history);
  if (t->talks) report_text(s, history);
  files_written files = {.model = saved == EXIT_SUCCESS,
                         .plot = drawn == EXIT_SUCCESS,
                         .checkpoints = has_checkpoints(s, history),
                         .of_steps = s->tally.steps > s->tally.begun};
  if (t->talks && whole) report_files(t, &files);
  int judged = whole ? judge_loss(s, history) : EXIT_SUCCESS;
  if (saved != EXIT_SUCCESS || drawn != EXIT_SUCCESS) return saved != EXIT_SUCCESS ? saved : drawn;
  if (!whole) tell_interrupted(s, history);
  if (signal && whole) {
    command_tell(t->path, "%s came when the last step was taken: nothing is missing", strsignal(signal));
  }
  return signal ? 128 + signal : judged;
}

static int run(session *s) {
  int status = prepare(s);
  if (status != EXIT_SUCCESS) return status;
  if (s->asked->talks) report_begin(s);
  helio_history *history = fit(s);
  return history ? finish(s, history) : command_library_failure(s->asked->path);
}

int training_run(const training *t) {
  session s = {.asked = t};
  int status = EXIT_FAILURE;
  HELIO_POOL {
    status = run(&s);
    helio_release(s.model);
  }
  return status;
}
