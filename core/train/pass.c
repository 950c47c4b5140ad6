/* SPDX-License-Identifier: Apache-2.0 */
#include "train/pass.h"

#include <math.h>

#include "runtime/clock.h"
#include "runtime/error.h"
#include "train/progress.h"

helio_status hi_pass_begin(hi_pass *pass, helio_model *model, helio_verbosity verbose,
                           helio_callback *const callbacks[HELIO_MOST_CALLBACKS]) {
  hi_compiled *compiled = hi_compiled_of(model);
  if (!compiled || !hi_strategy_usable(compiled->strategy)) return helio_error_pending();
  hi_hold(compiled); /* a callback may compile the model anew, or release it */
  hi_hold(model);
  pass->strategy = compiled->strategy;
  pass->task = (hi_task){.model = model, .compiled = compiled, .input_count = compiled->input_count};
  pass->training = (helio_training){.size = sizeof pass->training,
                                    .model = model,
                                    .optimizer = compiled->optimizer,
                                    .strategy = compiled->strategy,
                                    .epochs = 1};
  if (hi_compiled_enter(compiled)) return helio_error_pending();
  pass->entered = compiled;
  helio_callback *progress = verbose == HELIO_QUIET ? NULL : hi_progress_callback(verbose);
  if (verbose != HELIO_QUIET && !progress) return helio_error_pending();
  helio_status status = hi_callbacks_add(&pass->callbacks, &progress, progress ? 1 : 0);
  return status ? status : hi_callbacks_add(&pass->callbacks, callbacks, HELIO_MOST_CALLBACKS);
}

void hi_pass_end(hi_pass *pass) {
  hi_callbacks_end(&pass->callbacks);
  if (pass->entered) hi_compiled_leave(pass->entered);
  hi_drop(pass->task.model);
  hi_drop((void *)pass->task.compiled);
}

/* ---- steps ---- */

/* The mean over replicas of what they have spent on summing and on waiting for each other. */
static double reduce_seconds(const helio_strategy *strategy) {
  double sum = 0;
  for (int i = 0; i < strategy->replicas.count; i++) sum += strategy->reduce_seconds[i];
  return strategy->replicas.count > 0 ? sum / strategy->replicas.count : 0;
}

/* One step, with the batch that is next; *more: there was one. */
static helio_status take_one(hi_pass *pass, hi_walk *walk, bool *more) {
  helio_training *t = &pass->training;
  helio_values *outputs = NULL;
  double begin = hi_seconds(), reduced = reduce_seconds(pass->strategy);
  helio_values *batch = helio_next_values(walk->batches);
  *more = batch;
  if (!batch) return helio_error_pending();
  double got = hi_seconds();
  helio_status status = walk->before ? walk->before(pass) : HELIO_OK;
  int64_t rows = batch->global_rows;
  hi_step step = {walk->step, &pass->task, pass->strategy, walk->read, walk->user};
  if (!status) status = hi_take_step(&step, batch, &outputs);
  if (status) return status;
  t->step++;
  t->samples = rows;
  t->input_seconds = got - begin;
  t->reduce_seconds = fmax(0, reduce_seconds(pass->strategy) - reduced); /* another mean when a replica is lost */
  t->seconds = hi_seconds() - begin;
  return walk->behind ? walk->behind(pass, walk->user, outputs) : HELIO_OK;
}

helio_status hi_pass_walk(hi_pass *pass, hi_walk *walk) {
  helio_training *t = &pass->training;
  double begin = hi_seconds(), input = 0, reduce = 0;
  int64_t samples = 0;
  helio_status status = HELIO_OK;
  bool more = true;
  t->step = walk->first;
  while (!status && more && !t->stop && (!walk->most || t->step < walk->most)) {
    helio_scope pool = helio_pool_enter();
    status = take_one(pass, walk, &more);
    helio_pool_leave(&pool);
    if (status || !more) continue;
    samples += t->samples;
    input += t->input_seconds;
    reduce += t->reduce_seconds;
  }
  walk->ended = !more;
  t->samples = samples;
  t->input_seconds = input;
  t->reduce_seconds = reduce;
  t->seconds = hi_seconds() - begin;
  return status;
}

int64_t hi_pass_steps(const helio_distributed *batches, const char *what) {
  int64_t count = helio_distributed_cardinality(batches);
  if (count != HELIO_INFINITE) return count >= 0 ? count : -1;
  hi_fail(HELIO_INVALID_ARGUMENT, "the dataset that is %s has no end: say after how many steps it is enough", what);
  return -1;
}

/* ---- testing ---- */

static helio_status behind_test_step(hi_pass *pass, void *user, helio_values *outputs) {
  (void)user, (void)outputs;
  hi_logs_forget(pass->training.logs);
  return hi_tell(&pass->callbacks, test_batch_end, &pass->training);
}

helio_status hi_pass_test(hi_pass *pass, helio_distributed *batches, int64_t most) {
  helio_training *t = &pass->training;
  helio_status status = hi_compiled_reset(pass->task.compiled);
  helio_distributed_iterator *iterator = status ? NULL : helio_iterate_distributed(batches);
  t->logs = iterator ? hi_logs_new(pass->strategy) : NULL;
  if (!t->logs || hi_logs_add_metrics(t->logs, pass->task.compiled)) return helio_error_pending();
  t->steps = most ? most : hi_pass_steps(batches, "measured");
  t->step = 0;
  status = helio_error_pending();
  if (!status) status = hi_tell(&pass->callbacks, test_begin, t);
  hi_walk walk = {.step = hi_test_step, .batches = iterator, .most = most, .behind = behind_test_step};
  if (!status) status = hi_pass_walk(pass, &walk);
  if (!status && t->step == 0) status = hi_fail(HELIO_INVALID_ARGUMENT, "there are no batches to measure on");
  if (!status) status = hi_logs_wait(t->logs); /* a callback may measure, too */
  return status ? status : hi_tell(&pass->callbacks, test_end, t);
}
