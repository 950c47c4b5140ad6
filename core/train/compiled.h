/* SPDX-License-Identifier: Apache-2.0 */
/* What helio_compile() has said of a model, and the steps that follow from it. */
#ifndef HI_COMPILED_H
#define HI_COMPILED_H

#include <stdatomic.h>

#include "nn/metric.h"
#include "nn/model.h"
#include "nn/optimizer.h"
#include "strategy/values.h"

enum { HI_MOST_MEASURED = 1 + 3 * HELIO_MOST_METRICS };

/* Held by the model, until it is compiled again, and by each call that uses it. */
typedef struct hi_compiled {
  hi_object object;
  helio_strategy *strategy; /* references, here and below */
  helio_optimizer *optimizer;
  helio_loss *loss; /* NULL: the model only predicts */
  int input_count;  /* of the model */
  int metric_count;
  helio_metric *metrics[HI_MOST_MEASURED]; /* the first is the mean of the loss */
  bool weighted[HI_MOST_MEASURED];
  uint64_t number;         /* of the list of what is measured */
  atomic_uintptr_t thread; /* whose calls measure with it now; 0: none */
  int calls;               /* of that thread, within each other */
} hi_compiled;

/* NULL with the error set, which names helio_compile(), if the model is none, was not compiled, or without a loss. */
hi_compiled *hi_compiled_of(const helio_model *model);

/* What is measured is of one thread at a time: another is refused. A callback may train or measure within a call. */
helio_status hi_compiled_enter(hi_compiled *compiled);
void hi_compiled_leave(hi_compiled *compiled);

/* The strategy whose variables the model has; of a model without variables the one of the scope. */
helio_strategy *hi_model_strategy(helio_model *model);

/* How many of an element's parts are the model's inputs. */
int hi_model_inputs(const helio_model *model, int given);

/* What all steps of a call have in common. */
typedef struct hi_task {
  helio_model *model;
  const hi_compiled *compiled; /* NULL: predicting */
  int input_count;
  const double *class_weights; /* NULL: none */
  int class_count;
  int64_t micro_batch; /* samples that a replica trains on at a time, if it has more; 0: all */
} hi_task;

/* Can the gradients of a batch be added up from parts of it, by this loss? Sets the error if not. */
bool hi_trains_in_portions(const helio_model *model, const helio_loss *loss);

/* Steps for helio_run() whose argument is a hi_task. Those of training and testing give the loss of the whole batch
 * times its rows, and add to all that is measured; the third gives the model's results. */
helio_status hi_train_step(void *task, const helio_element *inputs, helio_element *outputs);
helio_status hi_test_step(void *task, const helio_element *inputs, helio_element *outputs);
helio_status hi_predict_step(void *task, const helio_element *inputs, helio_element *outputs);

typedef struct hi_step {
  helio_step function;
  const hi_task *task;
  helio_strategy *strategy;
  /* Reads what the step gave, for `user`, NULL: nobody does. If a device fails in that, the step is taken again. */
  helio_status (*read)(void *user, const helio_values *outputs);
  void *user;
} hi_step;

/* Runs a step with a batch, on the replicas that are left if some are lost. *outputs may stay NULL, without an error,
 * if the replicas that were lost had taken the step but did not come to its end. */
helio_status hi_take_step(const hi_step *step, helio_values *batch, helio_values **outputs);

/* All that is measured becomes zero. */
helio_status hi_compiled_reset(const hi_compiled *compiled);

#endif
