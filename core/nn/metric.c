/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/metric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "device/status.h"
#include "nn/layer.h"
#include "nn/samples.h"
#include "ops/options.h"
#include "ops/placement.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "tensor/pool.h"

/* ---- life ---- */

static void end(void *object) {
  helio_metric *metric = object;
  for (int i = 0; i < HI_METRIC_STATES; i++) hi_drop(metric->states[i]);
  hi_drop(metric->replicas);
  free(metric->thresholds);
  free(metric->name);
  free(metric);
}

static bool is_default(double number) {
  return number == 0 && !signbit(number);
}

/* A single one is no list, as in Keras. */
static helio_status take_thresholds(helio_metric *metric, const double *thresholds, int count) {
  metric->options.thresholds = NULL;
  metric->options.threshold_count = count > 1 ? count : 0;
  if (count == 1) metric->options.threshold = thresholds[0];
  if (count < 2) return HELIO_OK;
  metric->thresholds = malloc((size_t)count * sizeof *metric->thresholds);
  if (!metric->thresholds) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for %d thresholds", count);
  for (int i = 0; i < count; i++) metric->thresholds[i] = (float)thresholds[i];
  return HELIO_OK;
}

static helio_metric *new_metric(const hi_metric_kind *kind, const helio_metric_options *options, const char *name) {
  helio_metric *metric = hi_object_new(sizeof *metric, end, "a metric");
  if (!metric) return NULL;
  hi_census_name(&metric->object, &metric->name);
  metric->kind = kind;
  metric->replicas = hi_context_now().replicas;
  if (metric->replicas) hi_hold(metric->replicas);
  metric->options = *options;
  metric->options.name = NULL;
  if (!options->k) metric->options.k = 5;
  if (!options->type) metric->options.type = HELIO_FLOAT32;
  if (is_default(options->threshold)) metric->options.threshold = options->top_k ? -INFINITY : 0.5;
  if (take_thresholds(metric, options->thresholds, options->threshold_count)) return NULL;
  metric->name = strdup(name);
  if (metric->name) return metric;
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of metric %s", name);
  return NULL;
}

static helio_status check_thresholds(const helio_metric_options *o) {
  bool list = o->threshold_count > 0;
  if (o->threshold_count < 0 || list != (o->thresholds != NULL)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%d thresholds are given%s", o->threshold_count,
                   o->thresholds ? "" : ", which are NULL");
  }
  if (list && !is_default(o->threshold)) return hi_fail(HELIO_INVALID_ARGUMENT, "one threshold and several are given");
  for (int i = 0; i < o->threshold_count; i++) {
    if (!(o->thresholds[i] >= 0 && o->thresholds[i] <= 1)) {
      return hi_fail(HELIO_INVALID_ARGUMENT, "threshold %d is %g, not in 0 … 1", i, o->thresholds[i]);
    }
  }
  return HELIO_OK;
}

/* Which of all predictions count. */
static helio_status check_choice(const hi_metric_kind *kind, const helio_metric_options *o) {
  const char *given = o->thresholds || o->threshold_count   ? "thresholds"
                      : o->top_k                            ? "top_k"
                      : o->of_one_class || o->class_id != 0 ? "class_id"
                                                            : NULL;
  if (given && !(kind->options & HI_METRIC_CHOICE)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the metric has no option %s", given);
  }
  if (o->top_k < 0) return hi_fail(HELIO_INVALID_ARGUMENT, "top_k is %d", o->top_k);
  if (o->class_id < 0 || (o->class_id > 0 && !o->of_one_class)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "class_id is %d%s", o->class_id,
                   o->of_one_class ? "" : ", but of_one_class is not set");
  }
  return check_thresholds(o);
}

static helio_status check_options(const hi_metric_kind *kind, const helio_metric_options *o) {
  bool threshold = !is_default(o->threshold);
  if (o->type && o->type != HELIO_FLOAT32 && o->type != HELIO_FLOAT64) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "a metric cannot count in %s",
                   hi_type_valid(o->type) ? helio_type_name(o->type) : "a type that does not exist");
  }
  if (o->k && !(kind->options & HI_METRIC_K)) return hi_fail(HELIO_INVALID_ARGUMENT, "the metric has no option k");
  if (o->k < 0) return hi_fail(HELIO_INVALID_ARGUMENT, "k is %d", o->k);
  if (threshold && !(kind->options & HI_METRIC_THRESHOLD)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the metric has no option threshold");
  }
  bool outside = !(o->threshold >= 0 && o->threshold <= 1);
  if (isnan(o->threshold) || (outside && (kind->options & HI_METRIC_PROBABILITY))) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the threshold is %g, not in 0 … 1", o->threshold);
  }
  return check_choice(kind, o);
}

static helio_metric *make(const char *function, int kind, const helio_metric_options *given) {
  helio_metric_options o;
  if (!hi_options_enter(function, &o, sizeof o, given)) return NULL;
  const char *name = o.name ? o.name : hi_metric_kinds[kind].names.name;
  if (!check_options(&hi_metric_kinds[kind], &o)) return new_metric(&hi_metric_kinds[kind], &o, name);
  hi_error_prefix("%s: ", name);
  return NULL;
}

helio_metric *helio_metric_mean_with(const helio_metric_options *options) {
  return make("helio_metric_mean", HI_MEAN, options);
}

helio_metric *helio_metric_sum_with(const helio_metric_options *options) {
  return make("helio_metric_sum", HI_SUM, options);
}

helio_metric *helio_accuracy_with(const helio_metric_options *options) {
  return make("helio_accuracy", HI_ACCURACY, options);
}

helio_metric *helio_binary_accuracy_with(const helio_metric_options *options) {
  return make("helio_binary_accuracy", HI_BINARY_ACCURACY, options);
}

helio_metric *helio_categorical_accuracy_with(const helio_metric_options *options) {
  return make("helio_categorical_accuracy", HI_CATEGORICAL_ACCURACY, options);
}

helio_metric *helio_sparse_categorical_accuracy_with(const helio_metric_options *options) {
  return make("helio_sparse_categorical_accuracy", HI_SPARSE_CATEGORICAL_ACCURACY, options);
}

helio_metric *helio_top_k_categorical_accuracy_with(const helio_metric_options *options) {
  return make("helio_top_k_categorical_accuracy", HI_TOP_K_CATEGORICAL_ACCURACY, options);
}

helio_metric *helio_sparse_top_k_categorical_accuracy_with(const helio_metric_options *options) {
  return make("helio_sparse_top_k_categorical_accuracy", HI_SPARSE_TOP_K_CATEGORICAL_ACCURACY, options);
}

helio_metric *helio_metric_mean_squared_error_with(const helio_metric_options *options) {
  return make("helio_metric_mean_squared_error", HI_MEAN_SQUARED_ERROR_METRIC, options);
}

helio_metric *helio_metric_mean_absolute_error_with(const helio_metric_options *options) {
  return make("helio_metric_mean_absolute_error", HI_MEAN_ABSOLUTE_ERROR_METRIC, options);
}

helio_metric *helio_precision_with(const helio_metric_options *options) {
  return make("helio_precision", HI_PRECISION, options);
}

helio_metric *helio_recall_with(const helio_metric_options *options) {
  return make("helio_recall", HI_RECALL, options);
}

/* The name that was given is the metric's, as with Keras' compile(): progress and history print it. */
helio_metric *helio_metric_named(const char *name, const helio_loss *loss) {
  (void)loss; /* Keras chooses an accuracy by shapes alone */
  if (hi_enter(__func__)) return NULL;
  const helio_metric_options defaults = {0};
  if (name && (!strcasecmp(name, "accuracy") || !strcasecmp(name, "acc"))) return new_metric(NULL, &defaults, name);
  const hi_metric_kind *kind = hi_named("metric", name, hi_metric_kinds, sizeof *hi_metric_kinds, HI_METRIC_KINDS);
  return kind ? new_metric(kind, &defaults, name) : NULL;
}

helio_metric *helio_metric_of(helio_loss_function function, void *user, const char *name) {
  if (hi_enter(__func__)) return NULL;
  if (!function) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the function is NULL");
    return NULL;
  }
  helio_metric *metric = new_metric(&hi_metric_of_user, &(helio_metric_options){0}, name ? name : "metric");
  if (!metric) return NULL;
  metric->function = function;
  metric->user = user;
  return metric;
}

const char *helio_metric_name(const helio_metric *metric) {
  return metric ? metric->name : "";
}

/* ---- state ---- */

/* The variables of all accuracies are those of a mean, so there are some before one is chosen. */
static const hi_metric_family *family_of(const helio_metric *metric) {
  const hi_metric_kind *kind = atomic_load(&metric->kind);
  return (kind ? kind : &hi_metric_kinds[HI_MEAN])->family;
}

/* Whichever accuracy it will be, it is one. */
int hi_metric_direction(const helio_metric *metric) {
  const hi_metric_kind *kind = atomic_load(&metric->kind);
  return (kind ? kind : &hi_metric_kinds[HI_ACCURACY])->direction;
}

/* Zeros on the device that operations run on when the metric is first used; each replica counts for itself, or for all.
 */
static helio_status build(helio_metric *metric) {
  hi_variable_traits traits = {.synchronization = HELIO_ON_READ,
                               .aggregation = metric->shared ? HELIO_AGGREGATE_FIRST : HELIO_AGGREGATE_SUM};
  const char *const *names = family_of(metric)->states;
  helio_shape shape = metric->thresholds ? HELIO_SHAPE(metric->options.threshold_count) : HELIO_SCALAR;
  helio_variable *states[HI_METRIC_STATES] = {NULL};
  int count = 0;
  for (; count < HI_METRIC_STATES && names[count]; count++) {
    states[count] = hi_variable_new(names[count], helio_fill(shape, 0, .type = metric->options.type), &traits);
    if (!states[count]) return helio_error_pending();
  }
  for (int i = 0; i < count; i++) {
    hi_hold(states[i]);
    metric->states[i] = states[i];
  }
  metric->variables = (helio_variables){count, metric->states};
  atomic_store(&metric->ready, true);
  return HELIO_OK;
}

static helio_status make_states(helio_metric *metric) {
  if (atomic_load(&metric->ready)) return HELIO_OK;
  hi_context before = hi_build_lock(), here = hi_context_now();
  if (metric->replicas && !here.replicas) hi_context_set((hi_context){.replicas = metric->replicas});
  helio_status status = atomic_load(&metric->ready) ? HELIO_OK : build(metric);
  hi_context_set(here);
  hi_build_unlock(before);
  return status;
}

static void drop_states(helio_metric *metric) {
  atomic_store(&metric->ready, false);
  metric->variables.count = 0;
  for (int i = 0; i < HI_METRIC_STATES; i++) {
    hi_drop(metric->states[i]);
    metric->states[i] = NULL;
  }
}

void hi_metric_share(helio_metric *metric) {
  hi_context before = hi_build_lock();
  drop_states(metric);
  metric->shared = true;
  hi_build_unlock(before);
}

/* What metrics compute is on no tape and leaves nothing in the caller's pool. */
static helio_scope begin(void) {
  hi_tape_pause();
  return helio_pool_enter();
}

static helio_status finish(const helio_metric *metric, helio_scope *pool, helio_status status) {
  helio_pool_leave(pool);
  hi_tape_resume();
  if (status) hi_error_prefix("%s: ", metric->name);
  return status;
}

static helio_status enter(const char *function, const helio_metric *metric) {
  helio_status status = hi_enter(function);
  if (!status && !metric) status = hi_fail(HELIO_INVALID_ARGUMENT, "the metric is NULL");
  return status;
}

const helio_variables *helio_metric_variables(helio_metric *metric) {
  if (enter(__func__, metric)) return NULL;
  helio_scope pool = begin();
  return finish(metric, &pool, make_states(metric)) ? NULL : &metric->variables;
}

/* ---- update, result, reset ---- */

static helio_status check_update(const hi_metric_kind *kind, const helio_metric_update_options *o) {
  bool given = kind && kind->given;
  if (!hi_tensor_usable(o->labels, given ? "values" : "labels")) return helio_error_pending();
  if (!given && !hi_tensor_usable(o->predictions, "predictions")) return helio_error_pending();
  if (given && o->predictions) return hi_fail(HELIO_INVALID_ARGUMENT, "it takes values, not labels and predictions");
  if (o->sample_weights && !hi_tensor_usable(o->sample_weights, "sample weights")) return helio_error_pending();
  return HELIO_OK;
}

helio_status hi_metric_additions(const helio_metric_update_options *o, helio_tensor *additions[HI_METRIC_STATES]) {
  helio_metric *metric = o->metric;
  const hi_metric_kind *kind = atomic_load(&metric->kind);
  helio_status status = check_update(kind, o);
  if (!status && !kind) kind = hi_accuracy_for(&o->labels->shape, &o->predictions->shape);
  if (!status && !kind) status = helio_error_pending();
  if (!status) status = make_states(metric);
  if (!status) status = kind->family->add(metric, kind, o, additions);
  if (!status) atomic_store(&metric->kind, kind);
  for (int i = 0; !status && i < metric->variables.count; i++) {
    additions[i] = hi_in_type(additions[i], metric->options.type);
    if (!additions[i]) status = helio_error_pending();
  }
  return status;
}

helio_status hi_metric_add(helio_metric *metric, helio_tensor *const *additions) {
  return hi_variables_add(&metric->variables, additions);
}

/* Nothing is added unless all additions could be computed. */
static helio_status update(const helio_metric_update_options *o) {
  helio_tensor *additions[HI_METRIC_STATES];
  helio_status status = hi_metric_additions(o, additions);
  for (int i = 0; o->metric->shared && !status && i < o->metric->variables.count; i++) {
    additions[i] = hi_all_reduce(additions[i]);
    if (!additions[i]) status = helio_error_pending();
  }
  return status ? status : hi_metric_add(o->metric, additions);
}

helio_status helio_metric_update_with(const helio_metric_update_options *given) {
  helio_metric_update_options o;
  if (!hi_options_enter("helio_metric_update", &o, sizeof o, given)) return helio_error_pending();
  if (!o.metric) return hi_fail(HELIO_INVALID_ARGUMENT, "the metric is NULL");
  helio_scope pool = begin();
  const char *before = hi_blame_enter(o.metric->name);
  helio_status status = update(&o);
  hi_blame_leave(before);
  return finish(o.metric, &pool, status);
}

static helio_tensor *result(helio_metric *metric) {
  helio_tensor *values[HI_METRIC_STATES] = {NULL};
  if (make_states(metric)) return NULL;
  for (int i = 0; i < metric->variables.count; i++) {
    if (!hi_variable_usable(metric->states[i])) return NULL;
    values[i] = hi_variable_read(metric->states[i]);
    if (!values[i]) return NULL;
  }
  helio_tensor *found = NULL;
  helio_scope device = hi_placement_enter(values[0]->device);
  found = family_of(metric)->result(values);
  helio_device_leave(&device);
  return found;
}

helio_tensor *helio_metric_result(helio_metric *metric) {
  if (enter(__func__, metric)) return NULL;
  helio_scope pool = begin();
  helio_tensor *found = result(metric);
  if (found) hi_hold(found);
  if (finish(metric, &pool, helio_error_pending()) || hi_pool_add(&found->object)) return found;
  hi_drop(found);
  return NULL;
}

helio_status helio_metric_reset(helio_metric *metric) {
  helio_status status = enter(__func__, metric);
  if (status) return status;
  helio_scope pool = begin();
  for (int i = 0; !status && atomic_load(&metric->ready) && i < metric->variables.count; i++) {
    status = hi_variable_clear(metric->states[i]);
  }
  return finish(metric, &pool, status);
}
