/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "ops/options.h"
#include "runtime/error.h"
#include "train/compiled.h"

/* ---- life ---- */

static void end(void *object) {
  hi_compiled *compiled = object;
  for (int i = 0; i < compiled->metric_count; i++) hi_drop(compiled->metrics[i]);
  hi_drop(compiled->loss);
  hi_drop(compiled->optimizer);
  hi_drop(compiled->strategy);
  free(compiled);
}

helio_strategy *hi_model_strategy(helio_model *model) {
  bool built = hi_model_usable(model) && atomic_load(&model->built);
  const helio_variables *weights = built ? helio_weights(model) : NULL;
  if (helio_error_pending()) return NULL;
  bool distributed = weights && weights->count > 0 && weights->at[0]->replicas;
  hi_replicas *replicas = distributed ? weights->at[0]->replicas : built ? NULL : model->model->scope;
  return replicas ? (helio_strategy *)replicas : helio_strategy_current();
}

int hi_model_inputs(const helio_model *model, int given) {
  if (given > 0) return given;
  return model->model->input_count > 0 ? model->model->input_count : 1;
}

/* Another one for each thread. */
static uintptr_t this_thread(void) {
  static _Thread_local char mark;
  return (uintptr_t)&mark;
}

helio_status hi_compiled_enter(hi_compiled *compiled) {
  uintptr_t holder = 0;
  if (!atomic_compare_exchange_strong(&compiled->thread, &holder, this_thread()) && holder != this_thread()) {
    return hi_fail(HELIO_WRONG_STATE,
                   "another thread trains this model or measures it just now: threads need one model each");
  }
  compiled->calls++;
  return HELIO_OK;
}

void hi_compiled_leave(hi_compiled *compiled) {
  if (--compiled->calls == 0) atomic_store(&compiled->thread, 0);
}

hi_compiled *hi_compiled_of(const helio_model *model) {
  if (!hi_model_usable(model)) return NULL;
  hi_compiled *compiled = model->model->compiled;
  if (compiled && compiled->loss) return compiled;
  hi_fail(HELIO_WRONG_STATE,
          compiled ? "%s was compiled without a loss: give helio_compile() one"
                   : "You must call helio_compile() before %s is trained or evaluated",
          model->title);
  return NULL;
}

/* ---- parts ---- */

static helio_status take_metric(hi_compiled *compiled, helio_metric *metric, bool weighted) {
  if (!metric) return helio_error_pending();
  for (int i = 0; i < compiled->metric_count; i++) {
    if (strcmp(helio_metric_name(compiled->metrics[i]), helio_metric_name(metric)) == 0) {
      return hi_fail(HELIO_INVALID_ARGUMENT,
                     "there are two metrics of the name %s: give one of them a .name of its own",
                     helio_metric_name(metric));
    }
  }
  hi_hold(metric);
  compiled->weighted[compiled->metric_count] = weighted;
  compiled->metrics[compiled->metric_count++] = metric;
  return HELIO_OK;
}

/* The mean of the loss over samples, in the type of the model. */
static helio_metric *loss_metric(const helio_model *model) {
  return helio_metric_mean(.name = "loss", .type = model->type == HELIO_FLOAT64 ? HELIO_FLOAT64 : HELIO_FLOAT32);
}

static helio_status take_metrics(hi_compiled *compiled, const helio_compile_options *o) {
  helio_status status = take_metric(compiled, loss_metric(o->model), false);
  for (int i = 0; i < HELIO_MOST_METRICS && o->metrics[i] && !status; i++) {
    status = take_metric(compiled, o->metrics[i], false);
  }
  for (int i = 0; i < HELIO_MOST_METRICS && o->metric_names[i] && !status; i++) {
    status = take_metric(compiled, helio_metric_named(o->metric_names[i], compiled->loss), false);
  }
  for (int i = 0; i < HELIO_MOST_METRICS && o->weighted_metrics[i] && !status; i++) {
    status = take_metric(compiled, o->weighted_metrics[i], true);
  }
  return status;
}

static helio_status take_optimizer(hi_compiled *compiled, const helio_compile_options *o) {
  if (o->optimizer && o->optimizer_name) return hi_fail(HELIO_INVALID_ARGUMENT, "two optimizers are given");
  helio_optimizer *optimizer = o->optimizer;
  if (!optimizer) optimizer = helio_optimizer_named(o->optimizer_name ? o->optimizer_name : "rmsprop");
  if (!optimizer) return helio_error_pending();
  hi_hold(optimizer);
  compiled->optimizer = optimizer;
  return HELIO_OK;
}

static helio_status take_loss(hi_compiled *compiled, const helio_compile_options *o) {
  if (o->loss && o->loss_name) return hi_fail(HELIO_INVALID_ARGUMENT, "two losses are given");
  helio_loss *loss = o->loss ? o->loss : o->loss_name ? helio_loss_named(o->loss_name) : NULL;
  if (!loss) return helio_error_pending();
  if (loss->options.reduction == HELIO_LOSS_NONE) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s has HELIO_LOSS_NONE: a training needs one number for a batch",
                   loss->name);
  }
  hi_hold(loss);
  compiled->loss = loss;
  return HELIO_OK;
}

/* ---- compile ---- */

static helio_status check_model(const helio_compile_options *o) {
  if (!hi_model_usable(o->model)) return helio_error_pending();
  if (o->input_count < 0 || o->input_count > HELIO_MAX_PARTS - 2) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "input_count is %d; elements of datasets have at most %d parts",
                   o->input_count, HELIO_MAX_PARTS);
  }
  if (o->model->model->output_count > 1) {
    return hi_fail(HELIO_NOT_SUPPORTED,
                   "%s has %d outputs, and a training measures one: write the step yourself (helio_run)",
                   o->model->title, o->model->model->output_count);
  }
  return HELIO_OK;
}

static helio_status fill(hi_compiled *compiled, const helio_compile_options *o) {
  helio_status status = check_model(o);
  helio_strategy *strategy = status ? NULL : hi_model_strategy(o->model);
  if (!strategy || !hi_strategy_usable(strategy)) return helio_error_pending();
  hi_hold(strategy);
  compiled->strategy = strategy;
  compiled->input_count = hi_model_inputs(o->model, o->input_count);
  compiled->number = hi_list_number();
  status = take_optimizer(compiled, o);
  if (!status) status = take_loss(compiled, o);
  return status ? status : take_metrics(compiled, o);
}

/* Whoever trains by what was said before goes on with that. */
static void take_over(hi_model *model, hi_compiled *compiled) {
  for (int i = 0; i < compiled->metric_count; i++) hi_metric_share(compiled->metrics[i]);
  hi_hold(compiled);
  hi_drop(model->compiled);
  model->compiled = compiled;
}

helio_status helio_compile_with(const helio_compile_options *given) {
  helio_compile_options o;
  if (!hi_options_enter("helio_compile", &o, sizeof o, given)) return helio_error_pending();
  helio_scope pool = helio_pool_enter();
  hi_compiled *compiled = hi_object_new(sizeof *compiled, end, "what a model is compiled with");
  helio_status status = compiled ? fill(compiled, &o) : helio_error_pending();
  if (!status) take_over(o.model->model, compiled);
  helio_pool_leave(&pool);
  return status;
}

helio_optimizer *helio_model_optimizer(const helio_model *model) {
  if (hi_enter_unstarted(__func__) || !hi_model_usable(model)) return NULL;
  return model->model->compiled ? model->model->compiled->optimizer : NULL;
}

static helio_status reset_all(const hi_compiled *compiled) {
  helio_status status = HELIO_OK;
  for (int i = 0; i < compiled->metric_count && !status; i++) status = helio_metric_reset(compiled->metrics[i]);
  return status;
}

/* A device that is lost meanwhile leaves those of the others to be reset. */
helio_status hi_compiled_reset(const hi_compiled *compiled) {
  helio_status status;
  do {
    status = reset_all(compiled);
  } while (status && helio_retry(compiled->strategy, NULL));
  return status;
}
