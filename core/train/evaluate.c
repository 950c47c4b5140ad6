/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring without learning, and single batches. */
#include "ops/options.h"
#include "runtime/error.h"
#include "tensor/pool.h"
#include "train/input.h"
#include "train/pass.h"

static hi_samples samples_of(const helio_evaluate_options *o) {
  return (hi_samples){.dataset = o->dataset,
                      .x = o->x,
                      .y = o->y,
                      .weights = o->sample_weights,
                      .x_tensor = o->x_tensor,
                      .y_tensor = o->y_tensor,
                      .batch_size = o->batch_size};
}

helio_logs *helio_evaluate_with(const helio_evaluate_options *given) {
  helio_evaluate_options o;
  if (!hi_options_enter("helio_evaluate", &o, sizeof o, given)) return NULL;
  hi_pass pass = {0};
  hi_samples samples = samples_of(&o);
  helio_scope pool = helio_pool_enter();
  helio_status status = hi_pass_begin(&pass, o.model, o.verbose, o.callbacks);
  if (!status && o.steps < 0) status = hi_fail(HELIO_INVALID_ARGUMENT, "steps is %lld", (long long)o.steps);
  helio_distributed *batches =
      !status && hi_samples_read(&samples, "evaluation", true) ? hi_samples_distribute(&samples, pass.strategy) : NULL;
  status = batches ? hi_pass_test(&pass, batches, o.steps) : helio_error_pending();
  hi_pass_end(&pass);
  hi_error_blame("helio_evaluate");
  return hi_pool_leave_with(&pool, status ? NULL : pass.training.logs);
}

/* ---- one batch ---- */

static helio_status run_batch(const helio_batch_options *o, const hi_compiled *compiled, helio_step step,
                              helio_logs **logs) {
  hi_samples samples = {
      .x = o->x, .y = o->y, .weights = o->sample_weights, .x_tensor = o->x_tensor, .y_tensor = o->y_tensor};
  if (!hi_samples_read(&samples, "a batch", true)) return helio_error_pending();
  hi_task task = {.model = o->model,
                  .compiled = compiled,
                  .input_count = compiled->input_count,
                  .class_weights = o->class_weights,
                  .class_count = o->class_count};
  helio_values *batch = hi_samples_values(&samples, compiled->strategy), *outputs;
  helio_status status = batch ? hi_compiled_reset(compiled) : helio_error_pending();
  if (!status)
    status = hi_take_step(&(hi_step){.function = step, .task = &task, .strategy = compiled->strategy}, batch, &outputs);
  *logs = status ? NULL : hi_logs_new(compiled->strategy);
  if (!*logs || hi_logs_add_metrics(*logs, compiled)) return helio_error_pending();
  return hi_logs_settle(*logs);
}

static helio_logs *on_batch(const char *function, const helio_batch_options *given, helio_step step) {
  helio_batch_options o;
  helio_logs *logs = NULL;
  if (!hi_options_enter(function, &o, sizeof o, given)) return NULL;
  hi_compiled *compiled = hi_compiled_of(o.model);
  if (!compiled || !hi_strategy_usable(compiled->strategy) || hi_compiled_enter(compiled)) return NULL;
  hi_hold(compiled); /* a model of the program's own may be compiled anew when it is called */
  helio_scope pool = helio_pool_enter();
  helio_status status = run_batch(&o, compiled, step, &logs);
  hi_compiled_leave(compiled);
  hi_drop(compiled);
  hi_error_blame(function);
  return hi_pool_leave_with(&pool, status ? NULL : logs);
}

helio_logs *helio_train_on_batch_with(const helio_batch_options *options) {
  return on_batch("helio_train_on_batch", options, hi_train_step);
}

helio_logs *helio_test_on_batch_with(const helio_batch_options *options) {
  return on_batch("helio_test_on_batch", options, hi_test_step);
}
