/* SPDX-License-Identifier: Apache-2.0 */
/* What one replica does with its part of a batch. */
#include "ops/options.h"
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

/* This replica's part of the batch's loss: regularizers are counted once by all together. */
static helio_tensor *loss_of(const hi_task *task, const batch *b, helio_tensor *predictions) {
  helio_tensor *loss = helio_compute_loss(task->compiled->loss, b->labels, predictions, .sample_weights = b->weights);
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
  helio_tensor *loss;                 /* of the whole batch, a reference, when the sums have arrived */
} measured;

static helio_status arrived(hi_riders *riders) {
  measured *m = riders->user;
  helio_tensor *const *next = m->tensors + 1;
  helio_tensor *rows = hi_scalar_like(m->tensors[0], (double)m->rows);
  if (!rows) return helio_error_pending();
  helio_status status = hi_metric_add(m->compiled->metrics[0], (helio_tensor *[]){m->tensors[0], rows});
  for (int i = 1; i < m->compiled->metric_count && !status; i++) {
    status = hi_metric_add(m->compiled->metrics[i], next);
    next += m->compiled->metrics[i]->variables.count;
  }
  if (status) return status;
  m->loss = helio_div(m->tensors[0], rows);
  if (!m->loss) return helio_error_pending();
  hi_hold(m->loss);
  return HELIO_OK;
}

/* Everything in float32, or in what a metric counts in: sums of one type travel together. */
static helio_status measure(measured *m, const hi_task *task, const batch *b, helio_tensor *predictions,
                            helio_tensor *loss) {
  const hi_compiled *compiled = task->compiled;
  helio_metric *first = compiled->metrics[0];
  int count = 1;
  *m = (measured){.riders = {.number = compiled->number, .tensors = m->tensors, .arrived = arrived, .user = m},
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
  if (m->loss && !hi_pool_add(&m->loss->object)) {
    hi_drop(m->loss);
    return helio_error_pending();
  }
  outputs->part[outputs->count++] = m->loss;
  return status;
}

/* ---- steps ---- */

helio_status hi_train_step(void *argument, const helio_element *inputs, helio_element *outputs) {
  const hi_task *task = argument;
  helio_tensor *loss = NULL, *predictions = NULL;
  helio_tape *tape = helio_tape_new();
  batch b;
  measured m = {0};
  if (!tape || read_batch(task, inputs, &b)) return helio_error_pending();
  HELIO_TAPE(tape) {
    predictions = call_model(task, b.inputs, true);
    loss = predictions ? loss_of(task, &b, predictions) : NULL;
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
  helio_tensor *loss = predictions ? loss_of(task, &b, predictions) : NULL;
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

helio_status hi_take_step(helio_step step, const hi_task *task, helio_strategy *strategy, helio_values *inputs,
                          helio_values **outputs) {
  do {
    *outputs = helio_run(strategy, step, (void *)task, inputs);
  } while (!*outputs && helio_retry(strategy, &inputs));
  return helio_error_pending();
}
