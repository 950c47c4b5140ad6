/* SPDX-License-Identifier: Apache-2.0 */
/* What one replica does with its part of a batch. */
#include <stdlib.h>
#include <string.h>

#include "ops/options.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "tensor/pool.h"
#include "train/compiled.h"

/* ---- the batch ---- */

typedef struct batch {
  helio_tensor *const *inputs;
  helio_tensor *labels, *weights; /* NULL: all weigh the same */
  int64_t rows;                   /* of all replicas together */
} batch;

static helio_status read_batch(const hi_task *task, const helio_element *element, batch *b) {
  int inputs = task->input_count;
  if (element->count != inputs + 1 && element->count != inputs + 2) {
    return hi_fail(HELIO_INVALID_ARGUMENT,
                   "an element of the dataset has %d parts: it should have %d for the model, labels, and weights of "
                   "samples if there are any%s",
                   element->count, inputs, inputs > 1 ? " (arrays are for models with one input)" : "");
  }
  *b = (batch){.inputs = element->part, .labels = element->part[inputs], .rows = helio_replica_context()->global_rows};
  if (element->count == inputs + 2) b->weights = element->part[inputs + 1];
  if (!task->class_weights) return HELIO_OK;
  helio_tensor *by_class = helio_class_weights(b->labels, task->class_weights, task->class_count);
  b->weights = b->weights ? helio_mul(b->weights, by_class) : by_class;
  return b->weights ? HELIO_OK : helio_error_pending();
}

static helio_tensor *call_model(const hi_task *task, helio_tensor *const *inputs, bool training) {
  return helio_call(task->model, .inputs = inputs, .input_count = task->input_count, .training = training);
}

/* This replica's part of the batch's loss, of which regularizers are no part yet. */
static helio_tensor *loss_of_samples(const hi_task *task, const batch *b, helio_tensor *predictions) {
  return helio_compute_loss(task->compiled->loss, b->labels, predictions, .sample_weights = b->weights);
}

/* Regularizers are counted once by all replicas together. */
static helio_tensor *with_penalty(const hi_task *task, helio_tensor *loss) {
  helio_tensor *penalty = loss ? hi_model_penalty(task->model) : NULL;
  if (!penalty) return loss;
  int replicas = helio_replica_context()->count;
  if (replicas > 1) penalty = helio_div(penalty, hi_scalar_like(penalty, replicas));
  return helio_add(loss, penalty);
}

/* ---- what is measured ---- */

enum { MOST_RIDERS = HI_MOST_MEASURED * HI_METRIC_STATES };

typedef struct measured {
  hi_riders riders;
  const hi_compiled *compiled;
  int64_t rows;
  helio_tensor *tensors[MOST_RIDERS]; /* the loss × rows, then what each metric adds */
  helio_tensor *loss;                 /* the first, a reference, when the sums have arrived */
  hi_prepared *additions;             /* to the metrics' variables, where they wait for the step to count */
  int addition_count;
} measured;

/* At once, which a step that fails will undo, or when the step counts: in place then, and without a copy of what was
 * there before. */
static helio_status add_to_metric(measured *m, helio_metric *metric, helio_tensor *const *additions) {
  helio_status status = HELIO_OK;
  if (!m->riders.commits) return hi_metric_add(metric, additions);
  for (int i = 0; i < metric->variables.count && !status; i++) {
    status = hi_variable_prepare_add(metric->variables.at[i], additions[i], &m->additions[m->addition_count++]);
  }
  return status;
}

static helio_status arrived(hi_riders *riders) {
  measured *m = riders->user;
  helio_tensor *const *next = m->tensors + 1;
  helio_tensor *rows = hi_scalar_like(m->tensors[0], (double)m->rows);
  if (!rows) return helio_error_pending();
  m->additions = calloc((size_t)riders->count + 1, sizeof *m->additions); /* the rows are no rider */
  if (!m->additions) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for what a step measures");
  helio_status status = add_to_metric(m, m->compiled->metrics[0], (helio_tensor *[]){m->tensors[0], rows});
  for (int i = 1; i < m->compiled->metric_count && !status; i++) {
    status = add_to_metric(m, m->compiled->metrics[i], next);
    next += m->compiled->metrics[i]->variables.count;
  }
  if (status) return status;
  m->loss = m->tensors[0];
  hi_hold(m->loss);
  return HELIO_OK;
}

static helio_status counted(hi_riders *riders) {
  const measured *m = riders->user;
  helio_status status = HELIO_OK;
  for (int i = 0; i < m->addition_count && !status; i++) status = hi_dispatch_prepared(&m->additions[i]);
  return status;
}

/* Everything in float32, or in what a metric counts in: sums of one type travel together. */
static helio_status measure(measured *m, const hi_task *task, const batch *b, helio_tensor *predictions,
                            helio_tensor *loss) {
  const hi_compiled *compiled = task->compiled;
  helio_metric *first = compiled->metrics[0];
  int count = 1;
  *m = (measured){
      .riders = {.number = compiled->number, .tensors = m->tensors, .arrived = arrived, .counted = counted, .user = m},
      .compiled = compiled,
      .rows = b->rows};
  if (!loss || !helio_metric_variables(first)) return helio_error_pending();
  if (loss->type != first->options.type) loss = helio_cast(loss, first->options.type);
  m->tensors[0] = helio_mul(loss, hi_scalar_like(loss, (double)b->rows));
  helio_status status = helio_error_pending();
  for (int i = 1; i < compiled->metric_count && !status; i++) {
    helio_metric_update_options update = {.size = sizeof update,
                                          .metric = compiled->metrics[i],
                                          .labels = b->labels,
                                          .predictions = predictions,
                                          .sample_weights = compiled->weighted[i] ? b->weights : NULL};
    status = hi_metric_additions(&update, m->tensors + count);
    if (status) {
      hi_error_prefix("%s: ", helio_metric_name(compiled->metrics[i]));
    } else {
      count += compiled->metrics[i]->variables.count; /* which another replica may be making as long as this has not */
    }
  }
  m->riders.count = count;
  return status;
}

/* The loss joins the step's pool. */
static helio_status give_loss(measured *m, helio_status status, helio_element *outputs) {
  for (int i = 0; i < m->addition_count; i++) hi_prepared_end(&m->additions[i]);
  free(m->additions);
  if (m->loss && !hi_pool_add(&m->loss->object)) {
    hi_drop(m->loss);
    return helio_error_pending();
  }
  outputs->part[outputs->count++] = m->loss;
  return status;
}

/* ---- samples by portions ---- */

static bool looks_at_one_sample(const helio_layer *layer) {
  bool alone = !layer->kind->mixes;
  for (int i = 0; layer->model && i < layer->model->layer_count && alone; i++) {
    alone = looks_at_one_sample(layer->model->layers[i]);
  }
  return alone;
}

bool hi_trains_in_portions(const helio_model *model, const helio_loss *loss) {
  bool plain = !loss->options.ignores_class && loss->options.reduction != HELIO_LOSS_WEIGHTED_MEAN;
  if (plain && looks_at_one_sample(model)) return true;
  hi_fail(HELIO_NOT_SUPPORTED, "micro_batch: %s %s; leave it out", plain ? model->title : loss->name,
          plain ? "has layers that look at several samples together or draw numbers, or is your own"
                : "divides by what counts in the whole batch");
  return false;
}

/* What the portions of a batch have come to, with references: it outlives their pools. */
typedef struct portions {
  const hi_task *task;
  const batch *whole;
  int64_t rows;                    /* of this replica */
  helio_gradients *gradients;      /* their sum; NULL: there was no portion yet */
  helio_tensor *sums[MOST_RIDERS]; /* of what is measured */
  int sum_count;
} portions;

static helio_tensor *rows_of(helio_tensor *x, int64_t begin, int64_t count) {
  if (!x) return NULL;
  helio_shape first = {.rank = x->shape.rank, .extent = {begin}}, extents = x->shape;
  extents.extent[0] = count;
  return helio_slice(x, first, extents);
}

/* A mean over the portion is that part of the mean over the replica's samples that the portion is; where there are
 * several replicas, means are over the global batch anyway. */
static helio_tensor *loss_of_portion(const portions *p, const batch *b, helio_tensor *predictions, int64_t begin,
                                     int64_t count) {
  helio_tensor *loss = loss_of_samples(p->task, b, predictions);
  bool mean = p->task->compiled->loss->options.reduction != HELIO_LOSS_SUM && !hi_replicas_together();
  if (loss && mean) loss = helio_mul(loss, hi_scalar_like(loss, (double)count / (double)p->rows));
  return begin == 0 ? with_penalty(p->task, loss) : loss;
}

static helio_status add_measured(portions *p, const measured *m) {
  for (int i = 0; i < m->riders.count; i++) {
    helio_tensor *before = i < p->sum_count ? p->sums[i] : NULL;
    helio_tensor *sum = before ? helio_add(before, m->tensors[i]) : m->tensors[i];
    if (!sum) return helio_error_pending();
    hi_hold(sum);
    hi_drop(before);
    p->sums[i] = sum;
    if (!before) p->sum_count++;
  }
  return HELIO_OK;
}

static helio_status add_gradients(portions *p, helio_tape *tape, helio_tensor *loss) {
  const helio_variables *variables = helio_trainable_variables(p->task->model);
  helio_gradients *gradients = variables ? helio_gradient(tape, loss, variables) : NULL;
  if (!gradients) return helio_error_pending();
  if (p->gradients) return hi_gradients_add(p->gradients, gradients);
  hi_hold(gradients);
  p->gradients = gradients;
  return HELIO_OK;
}

static helio_status train_portion(portions *p, int64_t begin, int64_t count) {
  const hi_task *task = p->task;
  helio_tensor *inputs[HELIO_MAX_PARTS], *loss = NULL, *predictions = NULL;
  batch b = {.inputs = inputs,
             .labels = rows_of(p->whole->labels, begin, count),
             .weights = rows_of(p->whole->weights, begin, count),
             .rows = p->whole->rows};
  for (int i = 0; i < task->input_count; i++) inputs[i] = rows_of(p->whole->inputs[i], begin, count);
  measured m = {0};
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    predictions = call_model(task, b.inputs, true);
    loss = predictions ? loss_of_portion(p, &b, predictions, begin, count) : NULL;
  }
  helio_status status = loss ? measure(&m, task, &b, predictions, loss) : helio_error_pending();
  if (!status) status = add_measured(p, &m);
  return status ? status : add_gradients(p, tape, loss);
}

static helio_status apply_portions(const portions *p, measured *m) {
  const hi_compiled *compiled = p->task->compiled;
  *m = (measured){.riders = {.number = compiled->number,
                             .tensors = m->tensors,
                             .count = p->sum_count,
                             .arrived = arrived,
                             .counted = counted,
                             .user = m},
                  .compiled = compiled,
                  .rows = p->whole->rows};
  memcpy(m->tensors, p->sums, (size_t)p->sum_count * sizeof *p->sums);
  return hi_apply_gradients(compiled->optimizer, p->gradients, helio_trainable_variables(p->task->model), &m->riders);
}

static helio_status train_in_portions(const hi_task *task, const batch *b, measured *m) {
  portions p = {.task = task, .whole = b, .rows = b->inputs[0]->shape.extent[0]};
  helio_status status = HELIO_OK;
  for (int64_t begin = 0; begin < p.rows && !status; begin += task->micro_batch) {
    int64_t left = p.rows - begin;
    helio_scope pool = helio_pool_enter();
    status = train_portion(&p, begin, left < task->micro_batch ? left : task->micro_batch);
    helio_pool_leave(&pool);
  }
  if (!status) status = apply_portions(&p, m);
  for (int i = 0; i < p.sum_count; i++) hi_drop(p.sums[i]);
  hi_drop(p.gradients);
  return status;
}

static bool is_divided(const hi_task *task, const batch *b) {
  const helio_shape *shape = &b->inputs[0]->shape;
  return task->micro_batch > 0 && shape->rank > 0 && shape->extent[0] > task->micro_batch;
}

/* ---- steps ---- */

helio_status hi_train_step(void *argument, const helio_element *inputs, helio_element *outputs) {
  const hi_task *task = argument;
  helio_tensor *loss = NULL, *predictions = NULL;
  helio_tape *tape = helio_tape_new();
  batch b;
  measured m = {0};
  if (!tape || read_batch(task, inputs, &b)) return helio_error_pending();
  if (is_divided(task, &b)) return give_loss(&m, train_in_portions(task, &b, &m), outputs);
  HELIO_TAPE(tape) {
    predictions = call_model(task, b.inputs, true);
    loss = predictions ? with_penalty(task, loss_of_samples(task, &b, predictions)) : NULL;
  }
  const helio_variables *variables = loss ? helio_trainable_variables(task->model) : NULL;
  if (!variables || measure(&m, task, &b, predictions, loss)) return helio_error_pending();
  helio_status status = hi_minimize(task->compiled->optimizer, tape, loss, variables, &m.riders);
  return give_loss(&m, status, outputs);
}

helio_status hi_test_step(void *argument, const helio_element *inputs, helio_element *outputs) {
  const hi_task *task = argument;
  batch b;
  measured m = {0};
  if (read_batch(task, inputs, &b)) return helio_error_pending();
  helio_tensor *predictions = call_model(task, b.inputs, false);
  helio_tensor *loss = predictions ? with_penalty(task, loss_of_samples(task, &b, predictions)) : NULL;
  if (!loss || measure(&m, task, &b, predictions, loss)) return helio_error_pending();
  return give_loss(&m, hi_ride(&m.riders), outputs);
}

helio_status hi_predict_step(void *argument, const helio_element *inputs, helio_element *outputs) {
  const hi_task *task = argument;
  if (inputs->count < task->input_count) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "the model takes %d inputs, and an element of the dataset has %d parts",
                   task->input_count, inputs->count);
  }
  helio_tensor *result = call_model(task, inputs->part, false);
  outputs->part[outputs->count++] = result;
  return result ? HELIO_OK : helio_error_pending();
}

helio_status hi_take_step(const hi_step *step, helio_values *inputs, helio_values **outputs) {
  do {
    *outputs = helio_run(step->strategy, step->function, (void *)step->task, inputs);
    if (*outputs && step->read && step->read(step->user, *outputs)) *outputs = NULL;
  } while (!*outputs && helio_retry(step->strategy, &inputs));
  return helio_error_pending();
}
