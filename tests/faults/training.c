/* SPDX-License-Identifier: Apache-2.0 */
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 5, VOCABULARY = 12, LENGTH = 2, SIDE = 6, CLASSES = 3 };

static int steps_of(course what) {
  return what == IMAGES ? 3 : MOST_STEPS;
}

/* With a metric and a layer's own count. In float64, in which the law holds to 1e-9. */
typedef struct trainer {
  course what;
  helio_model *model;
  helio_optimizer *optimizer;
  helio_loss *loss;
  helio_metric *samples;
} trainer;

static helio_model *model_of_words(void) {
  return helio_sequential({helio_embedding(VOCABULARY, 3), helio_flatten(), helio_dropout(0.25), helio_dense(CLASSES)},
                          .input_shape = HELIO_SHAPE(LENGTH), .type = HELIO_FLOAT64);
}

static helio_model *model_of_images(void) {
  return helio_sequential({helio_conv2d(2, 3, .activation = HELIO_TANH), helio_conv2d(2, 2), helio_flatten(),
                           helio_dropout(0.25), helio_dense(CLASSES)},
                          .input_shape = HELIO_SHAPE(SIDE, SIDE, 1), .type = HELIO_FLOAT64);
}

static bool make_trainer(trainer *t) {
  if (helio_set_seed(7)) return false;
  t->model = t->what == IMAGES ? model_of_images() : model_of_words();
  t->optimizer = helio_adam(0.05);
  t->loss = helio_sparse_categorical_crossentropy(.from_logits = true);
  t->samples = helio_metric_sum(.type = HELIO_FLOAT64);
  return t->model && t->optimizer && t->loss && t->samples;
}

static helio_array *make_words(int64_t count) {
  int32_t words[MOST_STEPS * ROWS * LENGTH];
  for (int i = 0; i < count * LENGTH; i++) words[i] = i * 7 % 11 + (i % 3 == 0);
  return helio_array_of(words, HELIO_SHAPE(count, LENGTH), .type = HELIO_INT32);
}

static helio_array *make_images(int64_t count) {
  float pixels[MOST_STEPS * ROWS * SIDE * SIDE];
  for (int i = 0; i < count * SIDE * SIDE; i++) pixels[i] = (float)(i * 29 % 23) / 23 - 0.4F;
  return helio_array_of(pixels, HELIO_SHAPE(count, SIDE, SIDE, 1));
}

/* The last batch has one row: replicas without samples. */
static helio_dataset *make_samples(course what) {
  int64_t count = (steps_of(what) - 1) * ROWS + 1;
  int32_t labels[MOST_STEPS * ROWS];
  for (int i = 0; i < count; i++) labels[i] = (i * i + i / 4) % CLASSES;
  helio_array *x = what == IMAGES ? make_images(count) : make_words(count);
  helio_array *y = helio_array_of(labels, HELIO_SHAPE(count), .type = HELIO_INT32);
  return helio_dataset_batch(helio_dataset_from_slices(x, y), ROWS);
}

static helio_status step(void *argument, const helio_element *inputs, helio_element *outputs) {
  const trainer *t = argument;
  helio_tensor *loss = NULL, *labels = inputs->part[1];
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    loss = helio_compute_loss(t->loss, labels, helio_call(t->model, inputs->part[0], .training = true));
  }
  helio_metric_update(t->samples, helio_fill(helio_tensor_shape(labels), 1, .type = HELIO_FLOAT64));
  const helio_variables *variables = helio_trainable_variables(t->model);
  outputs->part[outputs->count++] = loss;
  return variables ? helio_minimize(t->optimizer, tape, loss, variables) : helio_error_pending();
}

/* A loss that a failed device had is not known any more. */
static double read_loss(helio_strategy *strategy, helio_values *results) {
  double loss = results ? helio_item(helio_reduce(strategy, HELIO_SUM, results)) : NAN;
  return helio_error_pending() && helio_retry(strategy, NULL) ? NAN : loss;
}

static bool take_step(helio_strategy *strategy, trainer *t, helio_distributed_iterator *batches, double *loss) {
  helio_values *batch = helio_next_values(batches), *results = NULL;
  if (!batch) return false;
  do {
    results = helio_run(strategy, step, t, batch);
  } while (!results && helio_retry(strategy, &batch));
  *loss = helio_error_pending() ? NAN : read_loss(strategy, results);
  return !helio_error_pending();
}

static bool read_numbers(helio_tensor *tensor, double *numbers, int64_t count) {
  return tensor && helio_tensor_elements(tensor) == count &&
         !helio_tensor_read(tensor, numbers, (size_t)count * sizeof *numbers);
}

/* All copies should be one. */
static bool read_weights(const trainer *t, outcome *result) {
  const helio_variables *variables = helio_trainable_variables(t->model);
  for (int i = 0; variables && i < variables->count; i++) {
    helio_shape shape = helio_variable_shape(variables->at[i]);
    int64_t count = 1;
    for (int k = 0; k < shape.rank; k++) count *= shape.extent[k];
    double *own = result->weights + result->count, copy[MOST_NUMBERS];
    for (int k = 0; k < helio_variable_copies(variables->at[i]); k++) {
      if (!read_numbers(helio_variable_copy(variables->at[i], k), k == 0 ? own : copy, count)) return false;
      if (k > 0) result->differ = result->differ || memcmp(own, copy, (size_t)count * sizeof *own) != 0;
    }
    result->count += (int)count;
  }
  return variables;
}

/* Weights that cannot be read because a device failed can be read of others once that one is known to be lost. */
static bool read_result(helio_strategy *strategy, const trainer *t, outcome *result) {
  for (int tries = helio_num_replicas(strategy); tries >= 0; tries--) {
    result->count = 0;
    result->differ = false;
    if (read_weights(t, result)) {
      result->samples = helio_item(helio_metric_result(t->samples));
      result->replicas = helio_num_replicas(strategy);
      if (!helio_error_pending()) return true;
    }
    if (!helio_retry(strategy, NULL)) return false;
  }
  return false;
}

static bool train_all(helio_strategy *strategy, trainer *t, outcome *result) {
  bool well = false;
  HELIO_SCOPE(strategy) well = make_trainer(t);
  helio_distributed_iterator *batches =
      well ? helio_iterate_distributed(helio_distribute(strategy, make_samples(t->what))) : NULL;
  for (int i = 0; batches && i < steps_of(t->what); i++) {
    HELIO_POOL well = take_step(strategy, t, batches, &result->losses[i]);
    if (!well) return false;
    result->unknown += isnan(result->losses[i]) != 0;
  }
  return batches && read_result(strategy, t, result);
}

void train(helio_strategy *strategy, course what, outcome *result) {
  memset(result, 0, sizeof *result);
  HELIO_POOL {
    trainer t = {.what = what};
    result->finished = strategy && train_all(strategy, &t, result);
    if (!result->finished) helio_error_take(&result->error);
    if (t.model) helio_release(t.model);
  }
}

/* ---- comparing ---- */

enum { ROOM = 200 };

static const char *compare(const char *what, const double *found, const double *expected, int count, char *text) {
  double worst = 0, largest = 0;
  for (int i = 0; i < count; i++) {
    if (isnan(expected[i]) || (isnan(found[i]) && strcmp(what, "losses") == 0)) continue;
    double error = fabs(found[i] - expected[i]);
    if (!(error <= worst)) worst = error;
    largest = fmax(largest, fabs(expected[i]));
  }
  if (worst <= 1e-9 * largest) return NULL;
  snprintf(text, ROOM, "%s are off by %.3g (%.6g)", what, worst / largest, found[0]);
  return text;
}

const char *difference(const outcome *found, const outcome *expected) {
  static char text[ROOM];
  if (found->count != expected->count) return "there is another number of weights";
  const char *wrong = compare("weights", found->weights, expected->weights, found->count, text);
  if (!wrong) wrong = compare("losses", found->losses, expected->losses, MOST_STEPS, text);
  if (!wrong && found->differ) return "the replicas' weights differ";
  if (!wrong && found->samples > expected->samples) return "samples were counted twice";
  return wrong;
}
