/* SPDX-License-Identifier: Apache-2.0 */
/* Ten steps of training, by replicas and by plain code on one device, and all that they come to. */
#ifndef HELIO_TEST_LAW_H
#define HELIO_TEST_LAW_H

#include <math.h>

#include "replica_devices.h"

enum { STEPS = 10, MOST_LAYERS = 8, MOST_VARIABLES = 8, MOST_NUMBERS = 512, CLASSES = 5 };

/* ---- what is trained, and how ---- */

typedef enum net_kind { IMAGES, WORDS, REGULARIZED, NORMALIZED, NETS } net_kind;
typedef enum way { SEQUENTIAL, FUNCTIONAL, OWN, LATE, WAYS } way; /* LATE: no input shape is given */
typedef enum rule { ADAM, MOMENTUM, CLIPPED, ACCUMULATED, CLIPPED_EACH, RULES } rule;

static const char *const net_names[] = {"images", "words", "regularized", "normalized"};
static const char *const way_names[] = {"sequential", "functional", "own", "late"};
static const char *const rule_names[] = {"adam", "momentum", "clipped", "accumulated", "clipped each"};

typedef enum place { MIRRORED, MIXED, ONE_DEVICE } place; /* MIXED: strict devices and CPUs by turns */

typedef struct lesson {
  net_kind net;
  way way;
  rule rule;
  helio_type type;
  int batch, replicas;
  bool weighted; /* 3:1 */
  helio_batch_split split;
  const char *collective;
  place place;
} lesson;

static inline const char *lesson_text(const lesson *l) {
  static char text[300];
  snprintf(text, sizeof text, "%s (%s), %s, %s, batches of %d on %d replicas%s%s%s by %s", net_names[l->net],
           way_names[l->way], rule_names[l->rule], helio_type_name(l->type), l->batch, l->replicas,
           l->weighted ? ", 3:1" : "", l->split == HELIO_SPLIT_TENSORFLOW ? ", cut as TensorFlow does," : "",
           l->place == MIXED ? ", mixed," : "", l->collective ? l->collective : "none");
  return text;
}

/* What it came to; of equal trainings equal as a whole. */
typedef struct record {
  int variables;
  int start[MOST_VARIABLES + 1]; /* of each variable's numbers */
  double gradients[MOST_NUMBERS], weights[MOST_NUMBERS];
  double losses[STEPS], means[STEPS], accuracies[STEPS];
} record;

/* ---- models ---- */

typedef struct net {
  helio_model *model;
  helio_layer *layers[MOST_LAYERS];
  int count;
} net;

static inline void make_layers(net *n, net_kind kind) {
  helio_layer *images[] = {
      helio_conv2d(4, 3, .activation = HELIO_RELU), helio_max_pool2d(),  helio_flatten(), helio_dropout(0.3),
      helio_dense(6, .activation = HELIO_RELU),     helio_dense(CLASSES)};
  helio_layer *words[] = {helio_embedding(20, 4), helio_flatten(), helio_dense(8, .activation = HELIO_TANH),
                          helio_dense(CLASSES)};
  helio_layer *regularized[] = {
      helio_flatten(),
      helio_dense(6, .activation = HELIO_TANH, .kernel_regularizer = {.l2 = 0.01}, .bias_regularizer = {.l2 = 0.02}),
      helio_dropout(0.2), helio_dense(CLASSES, .kernel_regularizer = {.l2 = 0.03})};
  helio_layer *normalized[] = {helio_conv2d(4, 3, .no_bias = true),
                               helio_batch_normalization(.synchronized = true),
                               helio_activation_layer(HELIO_TANH),
                               helio_average_pool2d(),
                               helio_flatten(),
                               helio_dense(CLASSES)};
  struct {
    helio_layer **layers;
    int count;
  } lists[] = {{images, COUNT_OF(images)},
               {words, COUNT_OF(words)},
               {regularized, COUNT_OF(regularized)},
               {normalized, COUNT_OF(normalized)}};
  n->count = lists[kind].count;
  for (int i = 0; i < n->count; i++) n->layers[i] = lists[kind].layers[i];
}

static inline helio_shape sample_shape(net_kind kind) {
  return kind == WORDS ? HELIO_SHAPE(6) : HELIO_SHAPE(8, 8, 1);
}

static inline helio_tensor *call_net(void *self, helio_tensor *const *inputs, int count, bool training) {
  const net *n = self;
  helio_tensor *x = count == 1 ? inputs[0] : NULL;
  for (int i = 0; i < n->count && x; i++) x = helio_call(n->layers[i], x, .training = training);
  return x;
}

static inline helio_model *make_functional(const net *n, net_kind kind, helio_type type) {
  helio_node *input = helio_input(sample_shape(kind), kind == WORDS ? HELIO_INT32 : HELIO_FLOAT32), *x = input;
  for (int i = 0; i < n->count; i++) x = helio_apply(n->layers[i], x);
  return helio_model(input, x, .type = type);
}

static inline void make_net(net *n, const lesson *l, way how) {
  make_layers(n, l->net);
  if (how == FUNCTIONAL) {
    n->model = make_functional(n, l->net, l->type);
    return;
  }
  if (how == OWN) {
    n->model = helio_model_of(call_net, n, .type = l->type);
    for (int i = 0; i < n->count; i++) helio_track(n->model, n->layers[i]);
    return;
  }
  helio_sequential_options options = {.size = sizeof options, .type = l->type};
  for (int i = 0; i < n->count; i++) options.layers[i] = n->layers[i];
  if (how == SEQUENTIAL) options.input_shape = sample_shape(l->net);
  n->model = helio_sequential_with(&options);
}

static inline helio_optimizer *make_optimizer(rule how) {
  switch (how) {
  case MOMENTUM:
    return helio_sgd(0.1, .momentum = 0.9, .nesterov = true);
  case CLIPPED:
    return helio_sgd(0.5, .global_clip_norm = 0.3);
  case ACCUMULATED:
    return helio_adam(0.01, .accumulate_steps = 3);
  case CLIPPED_EACH:
    return helio_adam(0.01, .clip_norm = 0.2);
  default:
    return helio_adam(0.01);
  }
}

/* Nine batches and a short one. */
static inline helio_dataset *make_samples(const lesson *l) {
  int64_t count = (STEPS - 1) * l->batch + (l->batch + 1) / 2;
  helio_shape shape = sample_shape(l->net);
  int64_t row = shape.extent[0] * (l->net == WORDS ? 1 : shape.extent[1]);
  float *pixels = malloc((size_t)(count * row) * sizeof *pixels);
  int32_t *words = malloc((size_t)(count * row) * sizeof *words), *labels = malloc((size_t)count * sizeof *labels);
  float *weights = malloc((size_t)count * sizeof *weights);
  uint64_t seed = 11;
  for (int64_t i = 0; i < count * row; i++) {
    words[i] = (int32_t)(next_random(&seed) % 20);
    pixels[i] = (float)((double)next_random(&seed) / 2147483648.0 - 0.3);
  }
  for (int64_t i = 0; i < count; i++) labels[i] = (int32_t)(next_random(&seed) % CLASSES);
  for (int64_t i = 0; i < count; i++) weights[i] = (float)((double)next_random(&seed) / 1073741824.0);
  helio_array *x = l->net == WORDS ? helio_array_of(words, HELIO_SHAPE(count, 6), .type = HELIO_INT32)
                                   : helio_array_of(pixels, HELIO_SHAPE(count, 8, 8, 1));
  helio_dataset *dataset =
      helio_dataset_batch(helio_dataset_from_slices(x, helio_array_of(labels, HELIO_SHAPE(count), .type = HELIO_INT32),
                                                    helio_array_of(weights, HELIO_SHAPE(count))),
                          l->batch);
  free(pixels);
  free(words);
  free(labels);
  free(weights);
  return dataset;
}

/* ---- a step ---- */

typedef struct trainer {
  net net;
  bool regularized;
  helio_optimizer *optimizer;
  helio_loss *loss, *mean_loss; /* of each sample, and of all */
  helio_metric *mean, *accuracy;
  int step;
} trainer;

static inline void make_trainer(trainer *t, const lesson *l, way how) {
  *t = (trainer){.regularized = l->net == REGULARIZED};
  assert_ok(helio_set_seed(7));
  make_net(&t->net, l, how);
  t->optimizer = make_optimizer(l->rule);
  t->loss = helio_sparse_categorical_crossentropy(.from_logits = true, .reduction = HELIO_LOSS_NONE);
  t->mean_loss = helio_sparse_categorical_crossentropy(.from_logits = true);
  t->mean = helio_metric_mean(.type = HELIO_FLOAT64);
  t->accuracy = helio_sparse_categorical_accuracy();
  assert_made(t->net.model);
  assert_made(t->accuracy);
}

/* Outputs: the loss, which is formed in both ways by turns, and, of the first step, this replica's gradients. */
static inline helio_status train_step(void *argument, const helio_element *inputs, helio_element *outputs) {
  trainer *t = argument;
  helio_tensor *x = inputs->part[0], *labels = inputs->part[1], *weights = t->regularized ? inputs->part[2] : NULL;
  helio_tensor *loss = NULL, *losses = NULL, *logits = NULL;
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    logits = helio_call(t->net.model, x, .training = true);
    losses = helio_compute_loss(t->loss, labels, logits);
    loss = t->step % 2 ? helio_compute_loss(t->mean_loss, labels, logits, .sample_weights = weights)
                       : helio_compute_average_loss(losses, .sample_weights = weights);
    if (t->regularized) {
      loss = helio_add(loss, helio_scale_regularization_loss(helio_regularization_loss(t->net.model)));
    }
  }
  helio_metric_update(t->mean, losses, .sample_weights = weights);
  helio_metric_update(t->accuracy, labels, logits);
  outputs->part[outputs->count++] = loss;
  const helio_variables *variables = loss ? helio_trainable_variables(t->net.model) : NULL;
  if (!variables || t->step > 0) return variables ? helio_minimize(t->optimizer, tape, loss, variables) : HELIO_OK;
  helio_gradients *gradients = helio_gradient(tape, loss, variables);
  for (int i = 0; gradients && i < variables->count; i++) {
    outputs->part[outputs->count++] = helio_gradients_at(gradients, i);
  }
  return gradients ? helio_apply_gradients(t->optimizer, gradients, variables) : helio_error_pending();
}

/* The same by plain code, which knows nothing of replicas. */
static inline helio_tensor *plain_step(trainer *t, const helio_element *batch, helio_gradients **gradients) {
  helio_tensor *weights = t->regularized ? batch->part[2] : NULL, *loss = NULL, *losses = NULL, *logits = NULL;
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    logits = helio_call(t->net.model, batch->part[0], .training = true);
    losses = helio_compute_loss(t->loss, batch->part[1], logits);
    loss = helio_mean(weights ? helio_mul(losses, helio_cast(weights, helio_tensor_type(losses))) : losses);
    if (t->regularized) loss = helio_add(loss, helio_regularization_loss(t->net.model));
  }
  helio_metric_update(t->mean, losses, .sample_weights = weights);
  helio_metric_update(t->accuracy, batch->part[1], logits);
  *gradients = helio_gradient(tape, loss, helio_trainable_variables(t->net.model));
  assert_made(*gradients);
  assert_ok(helio_apply_gradients(t->optimizer, *gradients, helio_trainable_variables(t->net.model)));
  return loss;
}

/* ---- writing it down ---- */

static inline void read_numbers(helio_tensor *tensor, double *to, int64_t count) {
  assert_made(tensor);
  if (helio_tensor_type(tensor) != HELIO_FLOAT64) tensor = helio_cast(tensor, HELIO_FLOAT64);
  assert_int_equal(helio_tensor_elements(tensor), count);
  assert_ok(helio_tensor_read(tensor, to, (size_t)count * sizeof *to));
}

static inline void note_variables(record *r, const trainer *t) {
  const helio_variables *variables = helio_trainable_variables(t->net.model);
  assert_made(variables);
  assert_true(variables->count <= MOST_VARIABLES);
  r->variables = variables->count;
  for (int i = 0; i < variables->count; i++) {
    helio_shape shape = helio_variable_shape(variables->at[i]);
    int count = 1;
    for (int k = 0; k < shape.rank; k++) count *= (int)shape.extent[k];
    r->start[i + 1] = r->start[i] + count;
    assert_true(r->start[i + 1] <= MOST_NUMBERS);
  }
}

static inline void note_gradient(record *r, int variable, helio_tensor *gradient) {
  read_numbers(gradient, r->gradients + r->start[variable], r->start[variable + 1] - r->start[variable]);
}

static inline void note_metrics(record *r, const trainer *t) {
  r->means[t->step] = helio_item(helio_metric_result(t->mean));
  r->accuracies[t->step] = helio_item(helio_metric_result(t->accuracy));
}

/* All copies of a weight are one. */
static inline void note_weights(record *r, const trainer *t) {
  const helio_variables *variables = helio_trainable_variables(t->net.model);
  for (int i = 0; i < variables->count; i++) {
    double copy[MOST_NUMBERS], *own = r->weights + r->start[i];
    int count = r->start[i + 1] - r->start[i];
    read_numbers(helio_value(variables->at[i]), own, count);
    for (int k = 0; k < helio_variable_copies(variables->at[i]); k++) {
      read_numbers(helio_variable_copy(variables->at[i], k), copy, count);
      assert_memory_equal(copy, own, (size_t)count * sizeof *own);
    }
  }
}

/* ---- training ---- */

static inline void train_plainly(const lesson *l, record *r) {
  trainer t;
  memset(r, 0, sizeof *r);
  HELIO_POOL {
    make_trainer(&t, l, SEQUENTIAL);
    helio_iterator *batches = helio_iterate(make_samples(l));
    helio_element batch;
    for (; t.step < STEPS; t.step++) {
      HELIO_POOL {
        helio_gradients *gradients;
        assert_true(helio_next(batches, &batch));
        r->losses[t.step] = helio_item(plain_step(&t, &batch, &gradients));
        if (t.step == 0) note_variables(r, &t);
        for (int i = 0; t.step == 0 && i < r->variables; i++) note_gradient(r, i, helio_gradients_at(gradients, i));
        note_metrics(r, &t);
      }
    }
    assert_false(helio_next(batches, &batch));
    note_weights(r, &t);
    assert_ok(helio_error_pending());
    helio_release(t.net.model);
  }
}

static inline void step_by_replicas(helio_strategy *strategy, trainer *t, helio_distributed_iterator *batches,
                                    record *r) {
  helio_values *batch = helio_next_values(batches);
  assert_made(batch);
  helio_values *results = helio_run(strategy, train_step, t, batch);
  assert_made(results);
  r->losses[t->step] = helio_item(helio_reduce(strategy, HELIO_SUM, helio_values_part(results, 0)));
  if (t->step == 0) note_variables(r, t);
  for (int i = 0; t->step == 0 && i < r->variables; i++) {
    note_gradient(r, i, helio_reduce(strategy, HELIO_SUM, helio_values_part(results, i + 1)));
  }
  note_metrics(r, t);
}

static inline helio_strategy *strategy_of(const lesson *l) {
  static const double three_to_one[] = {3, 1, 3, 1, 3};
  static const char *const mixed[] = {"gpu:0", "cpu:1", "gpu:2", "cpu:3", "gpu:4"};
  const double *weights = l->weighted ? three_to_one : NULL;
  if (l->place == ONE_DEVICE) return helio_one_device(device_name());
  return l->place == MIXED ? mirrored_on(mixed, l->replicas, weights, l->collective)
                           : mirrored_over(l->replicas, weights, l->collective);
}

/* False, with the error set, if the collective does not serve these devices. */
static inline bool train_by_replicas(const lesson *l, record *r) {
  bool served = false;
  memset(r, 0, sizeof *r);
  HELIO_POOL {
    trainer t;
    helio_strategy *strategy = strategy_of(l);
    served = strategy != NULL;
    if (served) {
      HELIO_SCOPE(strategy) make_trainer(&t, l, l->way);
      helio_distributed_iterator *batches =
          helio_iterate_distributed(helio_distribute(strategy, make_samples(l), l->split));
      assert_made(batches);
      for (; t.step < STEPS; t.step++) {
        HELIO_POOL step_by_replicas(strategy, &t, batches, r);
      }
      assert_null(helio_next_values(batches));
      note_weights(r, &t);
      assert_ok(helio_error_pending());
      helio_release(t.net.model);
    }
  }
  return served;
}

/* ---- comparing ---- */

typedef struct tolerances {
  double loss, gradient, weight, mean, accuracy;
} tolerances;

/* max|a−b| ÷ max|b|; infinite where one is not a number. */
static inline double error_of(const double *a, const double *b, int count) {
  double worst = 0, largest = 0;
  for (int i = 0; i < count; i++) {
    if (!(fabs(a[i] - b[i]) < INFINITY)) return INFINITY;
    worst = fmax(worst, fabs(a[i] - b[i]));
    largest = fmax(largest, fabs(b[i]));
  }
  return worst == 0 ? 0 : worst / largest;
}

static inline void assert_close(const lesson *l, const char *what, int number, double error, double tolerance) {
  if (error > tolerance) fail_msg("%s: %s %d is off by %.3g (%.3g)", lesson_text(l), what, number, error, tolerance);
}

static inline void assert_law(const lesson *l, const record *found, const record *expected, const tolerances *most) {
  assert_int_equal(found->variables, expected->variables);
  for (int i = 0; i < expected->variables; i++) {
    int start = expected->start[i], count = expected->start[i + 1] - start;
    assert_int_equal(found->start[i + 1], expected->start[i + 1]);
    double gradient = error_of(found->gradients + start, expected->gradients + start, count);
    assert_close(l, "gradient", i, gradient, most->gradient);
    double weight = error_of(found->weights + start, expected->weights + start, count);
    assert_close(l, "weight", i, weight, most->weight);
  }
  for (int i = 0; i < STEPS; i++) {
    assert_close(l, "loss", i, error_of(&found->losses[i], &expected->losses[i], 1), most->loss);
    assert_close(l, "mean", i, error_of(&found->means[i], &expected->means[i], 1), most->mean);
    double accuracy = fabs(found->accuracies[i] - expected->accuracies[i]);
    assert_close(l, "accuracy", i, accuracy, i == 0 ? 0 : most->accuracy);
  }
}

#endif
