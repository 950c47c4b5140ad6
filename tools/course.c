/* SPDX-License-Identifier: Apache-2.0 */
#include "course.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "course_report.h"
#include "lesson_files.h"
#include "model_file.h"
#include "plot.h"

/* ---------------------------------------------------------------------------------------------------------------------
 * Model and samples
 */

/* What a model of the user's own is trained with unless the command line says otherwise. */
static const recipe usual = {.optimizer = "adam", .batch = 32, .epochs = 10};

static const recipe *recipe_of(const course *c) {
  return c->recipe ? c->recipe : &usual;
}

static int make_recipe_model(const course *c, session *s) {
  int status = recipe_load(c->recipe, c->data, &s->lesson, c->path);
  if (status != EXIT_SUCCESS) return status;
  HELIO_SCOPE(s->strategy) s->model = c->recipe->make_model(c->recipe->name, &s->lesson);
  s->goal = c->recipe->goal;
  if (!s->model) return command_library_failure(c->path);
  return c->loss ? goal_choose(&s->goal, s->model, &s->lesson, c->loss, c->path) : EXIT_SUCCESS;
}

/* Variables belong to the strategy in whose scope they are made: where the file says no shape, the samples do. */
static int build(const course *c, const session *s) {
  helio_shape batch = helio_array_shape(s->lesson.x);
  batch.extent[0] = -1;
  if (helio_model_input_type(s->model, 0)) return EXIT_SUCCESS;
  HELIO_SCOPE(s->strategy) helio_model_build(s->model, batch);
  return helio_error_pending() ? command_library_failure(c->path) : EXIT_SUCCESS;
}

static int make_own_model(const course *c, session *s) {
  HELIO_SCOPE(s->strategy) s->model = model_file_read(c->architecture, c->path);
  int status = s->model ? lesson_read(&s->lesson, c->data, s->model, c->path) : EXIT_FAILURE;
  if (status == EXIT_SUCCESS && !s->lesson.x) {
    status = command_failure(c->path, "%s has only samples for testing; x_train and y_train are needed, or x and y",
                             c->data);
  }
  if (status == EXIT_SUCCESS) status = lesson_suit(&s->lesson, s->model, c->path);
  if (status == EXIT_SUCCESS) status = build(c, s);
  return status == EXIT_SUCCESS ? goal_choose(&s->goal, s->model, &s->lesson, c->loss, c->path) : status;
}

static int64_t batch_of(const course *c, int replicas) {
  const recipe *r = recipe_of(c);
  if (c->batch) return c->batch;
  if (c->replica_batch) return c->replica_batch * replicas;
  return r->for_each_replica ? r->batch * replicas : r->batch;
}

/* A number of steps alone asks for as many epochs as these need. */
static void count_steps(const course *c, session *s) {
  int64_t samples = lesson_count(s->lesson.x);
  s->batch = batch_of(c, helio_num_replicas(s->strategy));
  s->steps = samples / s->batch + (samples % s->batch != 0);
  int64_t needed = c->limit && s->steps ? (c->limit + s->steps - 1) / s->steps : recipe_of(c)->epochs;
  s->epochs = c->epochs ? c->epochs : needed;
  s->tally.limit = c->limit;
  s->tally.talks = !c->quiet && !c->json;
  s->tally.rate = c->scaling == HELIO_SCALE_NONE ? c->rate : 0; /* a rate that grows is a matter of the steps */
}

/* Five epochs, as those who found the rule took, but half of the training at the most. */
static int64_t warmup_of(const session *s) {
  enum { WARMUP_EPOCHS = 5 };
  int64_t all = s->steps * s->epochs, warmup = s->steps * WARMUP_EPOCHS;
  if (s->tally.limit && s->tally.limit < all) all = s->tally.limit;
  return warmup < all / 2 ? warmup : all / 2;
}

static helio_optimizer *make_optimizer(const course *c, session *s) {
  const recipe *r = recipe_of(c);
  helio_optimizer *optimizer = helio_optimizer_named(c->optimizer ? c->optimizer : r->optimizer);
  double rate = c->rate > 0 ? c->rate : c->optimizer ? 0 : r->rate;
  if (rate > 0) helio_optimizer_set_learning_rate(optimizer, rate);
  s->warmup = warmup_of(s);
  s->rate = optimizer ? helio_optimizer_learning_rate(optimizer) : 0;
  helio_scale_learning_rate(optimizer, c->scaling, helio_num_replicas(s->strategy), s->warmup);
  return helio_error_pending() ? NULL : optimizer;
}

static int prepare(const course *c, session *s) {
  int status = devices_choose(&c->devices, c->path, &s->strategy);
  if (status != EXIT_SUCCESS) return status;
  session_note_devices(s);
  if (c->seed >= 0) helio_set_seed((uint64_t)c->seed);
  status = (c->recipe ? make_recipe_model : make_own_model)(c, s);
  if (status != EXIT_SUCCESS) return status;
  count_steps(c, s);
  if (c->init) helio_load_weights(s->model, c->init);
  HELIO_SCOPE(s->strategy) {
    s->optimizer = make_optimizer(c, s);
    goal_compile(&s->goal, s->model, s->optimizer);
  }
  return helio_error_pending() ? command_library_failure(c->path) : EXIT_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Training
 */

/* Behind each step, and before the first one of an epoch: a training that goes on may have had enough. */
static helio_status count_steps_taken(void *user, helio_training *t) {
  tally *count = user;
  count->steps = t->total_steps;
  if (count->limit && t->total_steps >= count->limit) t->stop = true;
  return HELIO_OK;
}

/* A training that goes on has the rate of its checkpoint, unless the command line names one. */
static helio_status begin_training(void *user, helio_training *t) {
  tally *count = user;
  count->steps = count->begun = t->total_steps;
  command_set_log_level(HELIO_LOG_WARNING);
  if (t->total_steps == 0) return HELIO_OK;
  helio_status status = count->rate > 0 ? helio_optimizer_set_learning_rate(t->optimizer, count->rate) : HELIO_OK;
  if (!status && count->talks) report_resumed(t);
  return status;
}

static helio_status end_training(void *user, helio_training *t) {
  tally *count = user;
  count->samples = t->samples;
  count->seconds = t->seconds - t->validation_seconds;
  return HELIO_OK;
}

static void add_callbacks(const course *c, session *s, helio_callback **callbacks) {
  int count = 0;
  callbacks[count++] =
      helio_callback(.user = &s->tally, .train_begin = begin_training, .epoch_begin = count_steps_taken,
                     .batch_end = count_steps_taken, .train_end = end_training);
  if (c->log) callbacks[count++] = helio_json_logger(c->log);
  if (c->tensorboard) callbacks[count++] = helio_tensorboard(c->tensorboard);
  if (c->timeline) callbacks[count++] = helio_timeline(c->timeline);
}

/* What is measured does not depend on the batch, so it need not be larger than what is computed at a time. */
static int64_t validation_batch(const course *c, const session *s) {
  int64_t at_a_time = recipe_of(c)->micro_batch * helio_num_replicas(s->strategy);
  return at_a_time && at_a_time < s->batch ? at_a_time : s->batch;
}

static helio_history *fit(const course *c, session *s) {
  lesson *l = &s->lesson;
  int64_t samples = lesson_count(l->x), buffer = recipe_of(c)->buffer ? recipe_of(c)->buffer : samples;
  helio_fit_options o = {.size = sizeof o,
                         .model = s->model,
                         .dataset = lesson_batches(l, l->x, l->y, s->batch, c->in_order ? 0 : buffer),
                         .epochs = (int)s->epochs,
                         .micro_batch = recipe_of(c)->micro_batch,
                         .checkpoint = c->checkpoint,
                         .checkpoint_every_steps = c->checkpoint_every,
                         .resume = c->resume,
                         .verbose = c->quiet || c->json ? HELIO_QUIET : HELIO_VERBOSE};
  if (l->test_x) o.validation = lesson_batches(l, l->test_x, l->test_y, validation_batch(c, s), 0);
  add_callbacks(c, s, o.callbacks);
  /* From which file, epoch and step a training goes on is the library's to say. */
  if (c->resume && !c->quiet && !c->json) command_set_log_level(HELIO_LOG_INFO);
  return helio_error_pending() ? NULL : helio_fit_with(&o);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What is left of it
 */

static bool is_nonsense(const helio_history *history) {
  int epochs = helio_history_epochs(history);
  return epochs > 0 && !isfinite(helio_history_value(history, "loss", epochs - 1));
}

/* A model that tells nothing but NaN must not take the place of a good one. */
static int save(const course *c, const session *s, const helio_history *history) {
  if (!c->save) return EXIT_SUCCESS;
  if (is_nonsense(history)) return command_failure(c->path, "the model was not saved: it can only say NaN");
  return helio_save_model(s->model, c->save) == HELIO_OK ? EXIT_SUCCESS : command_library_failure(c->path);
}

static int plot(const course *c, const session *s, const helio_history *history) {
  if (!c->plot) return EXIT_SUCCESS;
  const char *problem = plot_write(c->plot, helio_layer_name(s->model), history);
  return problem ? command_failure(c->path, "--plot %s", problem) : EXIT_SUCCESS;
}

/* It is no failure, but nobody wants it. */
static void warn_of_nonsense(const course *c, const helio_history *history) {
  if (!is_nonsense(history)) return;
  command_failure(c->path,
                  "warning: the loss is no number any more; a smaller --lr may help, or data without empty cells");
}

static bool is_complete(const session *s, const helio_history *history) {
  int epochs = helio_history_epochs(history);
  return epochs > 0 && helio_history_epoch(history, epochs - 1) + 1 >= s->epochs;
}

/* Of a loss that is no number none is written; one that the training went on from is there. */
static bool has_checkpoints(const session *s, const helio_history *history) {
  return helio_history_checkpoint_step(history) >= 0 || s->tally.begun > 0;
}

static int finish(const course *c, session *s, const helio_history *history) {
  int signal = helio_history_signal(history);
  bool whole = !signal || is_complete(s, history);
  int saved = whole ? save(c, s, history) : EXIT_SUCCESS, drawn = whole ? plot(c, s, history) : EXIT_SUCCESS;
  if (c->json) report_json(s, history);
  if (!c->json && !c->quiet) report_text(s, history);
  files_written files = {saved == EXIT_SUCCESS, drawn == EXIT_SUCCESS, has_checkpoints(s, history)};
  if (!c->json && !c->quiet && whole) report_files(c, &files);
  if (whole) warn_of_nonsense(c, history);
  if (saved != EXIT_SUCCESS || drawn != EXIT_SUCCESS) return saved != EXIT_SUCCESS ? saved : drawn;
  if (whole) return signal ? 128 + signal : EXIT_SUCCESS;
  bool written = helio_history_checkpoint_step(history) == s->tally.steps;
  command_failure(c->path,
                  written ? "%s behind step %lld; a checkpoint of it is in %s, and --resume goes on from there"
                          : "%s behind step %lld, of which no checkpoint was written; those before it are in %s",
                  strsignal(signal), (long long)s->tally.steps, c->checkpoint);
  return 128 + signal;
}

static int run(const course *c, session *s) {
  int status = prepare(c, s);
  if (status != EXIT_SUCCESS) return status;
  if (!c->json && !c->quiet) report_begin(c, s);
  helio_history *history = fit(c, s);
  return history ? finish(c, s, history) : command_library_failure(c->path);
}

int course_run(const course *c) {
  session s = {0};
  int status = EXIT_FAILURE;
  HELIO_POOL {
    status = run(c, &s);
    helio_release(s.model);
  }
  return status;
}
