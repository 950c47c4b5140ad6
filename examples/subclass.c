/* SPDX-License-Identifier: Apache-2.0 */
/* A model as a struct of its own with its own call, trained by a loop written by hand on the tape. The images are made
 * here: noise with a bright square, whose place is the class. */
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 28, CLASSES = 10, BATCH = 64, STEPS = 60, TEST_BATCHES = 4 };

/* ---- the model: six layers ---- */

typedef struct my_model {
  helio_model *model;
  helio_layer *conv1, *pool1, *conv2, *pool2, *flatten, *dense;
} my_model;

static helio_tensor *call(void *self, helio_tensor *const *inputs, int count, bool training) {
  my_model *m = self;
  (void)count;
  helio_tensor *x = helio_call(m->conv1, inputs[0], .training = training);
  x = helio_call(m->pool1, x, .training = training);
  x = helio_call(m->conv2, x, .training = training);
  x = helio_call(m->pool2, x, .training = training);
  x = helio_call(m->flatten, x, .training = training);
  return helio_call(m->dense, x, .training = training);
}

static void my_model_make(my_model *m) {
  m->model = helio_model_of(call, m, .name = "my_model");
  m->conv1 = helio_track(m->model, helio_conv2d(16, 3, .activation = HELIO_RELU));
  m->pool1 = helio_track(m->model, helio_max_pool2d());
  m->conv2 = helio_track(m->model, helio_conv2d(32, 3, .activation = HELIO_RELU));
  m->pool2 = helio_track(m->model, helio_max_pool2d());
  m->flatten = helio_track(m->model, helio_flatten());
  m->dense = helio_track(m->model, helio_dense(CLASSES, .activation = HELIO_SOFTMAX));
}

/* ---- the data ---- */

typedef struct batch {
  helio_tensor *images, *labels;
} batch;

/* Each call gives other images, each run the same. */
static batch make_batch(uint64_t number) {
  static float images[BATCH][SIDE][SIDE][1];
  static int32_t labels[BATCH];
  helio_tensor *noise = helio_random_uniform(HELIO_SHAPE(BATCH, SIDE, SIDE, 1), .key = 7, .step = number);
  helio_tensor_read(noise, images, sizeof images);
  for (int i = 0; i < BATCH; i++) {
    labels[i] = (int)((number * 31 + (uint64_t)i * 7) % CLASSES);
    int top = labels[i] / 5 * 13 + 3, left = labels[i] % 5 * 5 + 1;
    for (int y = top; y < top + 5; y++) {
      for (int x = left; x < left + 5; x++) images[i][y][x][0] += 0.75f;
    }
  }
  return (batch){helio_constant(images, HELIO_SHAPE(BATCH, SIDE, SIDE, 1)),
                 helio_constant(labels, HELIO_SHAPE(BATCH), HELIO_INT32)};
}

/* ---- the loop ---- */

typedef struct training {
  my_model net;
  helio_loss *loss;
  helio_optimizer *optimizer;
  helio_metric *train_loss, *train_accuracy, *test_loss, *test_accuracy;
} training;

static void train_step(training *t, batch b) {
  helio_tape *tape = helio_tape_new();
  helio_tensor *predictions = NULL, *loss = NULL;
  HELIO_TAPE(tape) {
    predictions = helio_call(t->net.model, b.images, .training = true); /* the first call makes the variables */
    loss = helio_compute_loss(t->loss, b.labels, predictions);
  }
  const helio_variables *variables = helio_trainable_variables(t->net.model);
  helio_apply_gradients(t->optimizer, helio_gradient(tape, loss, variables), variables);
  helio_metric_update(t->train_loss, loss);
  helio_metric_update(t->train_accuracy, b.labels, predictions);
}

static void test_step(training *t, batch b) {
  helio_tensor *predictions = helio_call(t->net.model, b.images);
  helio_metric_update(t->test_loss, helio_compute_loss(t->loss, b.labels, predictions));
  helio_metric_update(t->test_accuracy, b.labels, predictions);
}

static void report(training *t, int step) {
  for (uint64_t i = 0; i < TEST_BATCHES; i++) {
    HELIO_POOL {
      test_step(t, make_batch(1000000 + i));
    }
  }
  printf("Step %d, Loss: %.4f, Accuracy: %.2f, Test Loss: %.4f, Test Accuracy: %.2f\n", step,
         helio_item(helio_metric_result(t->train_loss)), 100 * helio_item(helio_metric_result(t->train_accuracy)),
         helio_item(helio_metric_result(t->test_loss)), 100 * helio_item(helio_metric_result(t->test_accuracy)));
  helio_metric *all[] = {t->train_loss, t->train_accuracy, t->test_loss, t->test_accuracy};
  for (int i = 0; i < 4; i++) helio_metric_reset(all[i]);
}

int main(void) {
  training t = {.loss = helio_sparse_categorical_crossentropy(),
                .optimizer = helio_adam(),
                .train_loss = helio_metric_mean(.name = "train_loss"),
                .train_accuracy = helio_sparse_categorical_accuracy(.name = "train_accuracy"),
                .test_loss = helio_metric_mean(.name = "test_loss"),
                .test_accuracy = helio_sparse_categorical_accuracy(.name = "test_accuracy")};
  my_model_make(&t.net);
  for (int step = 1; step <= STEPS && !helio_error_pending(); step++) {
    HELIO_POOL {
      train_step(&t, make_batch((uint64_t)step));
      if (step % 20 == 0) report(&t, step);
    }
  }
  helio_model_summary(t.net.model);
  helio_release(t.net.model);

  helio_error error;
  if (helio_error_take(&error) == HELIO_OK) return EXIT_SUCCESS;
  fprintf(stderr, "%s: %s\n", error.where, error.message);
  return EXIT_FAILURE;
}
