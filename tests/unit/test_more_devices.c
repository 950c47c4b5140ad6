/* SPDX-License-Identifier: Apache-2.0 */
/* More devices shorten the epoch. The devices are wrapped: a kernel takes time in proportion to the samples, and no
 * core, so that it shows on any machine whether replicas work at the same time. */
#include <time.h>

#include "wrapped.h"

enum { FEATURES = 16, CLASSES = 4, BATCH = 256, STEPS = 4, LAYERS = 2, ATTEMPTS = 3 };

/* Nanoseconds that a kernel takes for each sample, at first: long enough that the library's own work does not matter.
 * And kernels of a step that at least take it: a layer's product and the gradients of its weights and of its bias. */
enum { TIME_OF_ROW = SANITIZED ? 480000 : 200000, SLOW_KERNELS = 3 * LAYERS };

typedef struct trainer {
  helio_model *model;
  helio_loss *loss;
  helio_optimizer *optimizer;
} trainer;

static helio_status train_step(void *argument, const helio_element *inputs, helio_element *outputs) {
  const trainer *t = argument;
  helio_tensor *loss = NULL;
  helio_tape *tape = helio_tape_new();
  HELIO_TAPE(tape) {
    helio_tensor *logits = helio_call(t->model, inputs->part[0], .training = true);
    loss = helio_compute_average_loss(helio_compute_loss(t->loss, inputs->part[1], logits));
  }
  outputs->part[outputs->count++] = loss;
  return helio_minimize(t->optimizer, tape, loss, helio_trainable_variables(t->model));
}

static void make_trainer(trainer *t) {
  helio_sequential_options options = {.size = sizeof options, .input_shape = HELIO_SHAPE(FEATURES)};
  for (int i = 0; i < LAYERS - 1; i++) options.layers[i] = helio_dense(FEATURES, .activation = HELIO_TANH);
  options.layers[LAYERS - 1] = helio_dense(CLASSES);
  t->model = helio_sequential_with(&options);
  t->loss = helio_sparse_categorical_crossentropy(.from_logits = true, .reduction = HELIO_LOSS_NONE);
  t->optimizer = helio_sgd(0.1);
  assert_made(t->model);
  assert_made(t->optimizer);
}

static helio_dataset *make_samples(int steps) {
  static float features[STEPS * BATCH * FEATURES];
  static int32_t labels[STEPS * BATCH];
  uint64_t seed = 3;
  for (size_t i = 0; i < COUNT_OF(features); i++) features[i] = (float)(next_random(&seed) % 100) / 100;
  for (size_t i = 0; i < COUNT_OF(labels); i++) labels[i] = (int32_t)(next_random(&seed) % CLASSES);
  helio_array *x = helio_array_of(features, HELIO_SHAPE(steps * BATCH, FEATURES));
  helio_array *y = helio_array_of(labels, HELIO_SHAPE(steps * BATCH), .type = HELIO_INT32);
  helio_dataset *dataset = helio_dataset_batch(helio_dataset_from_slices(x, y), BATCH);
  assert_made(dataset);
  return dataset;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Seconds that it took. */
static double train(helio_strategy *strategy, trainer *t, int steps) {
  double start = now(), loss = 0;
  HELIO_POOL {
    helio_distributed_iterator *batches = helio_iterate_distributed(helio_distribute(strategy, make_samples(steps)));
    for (int i = 0; i < steps; i++) {
      HELIO_POOL {
        helio_values *losses = helio_run(strategy, train_step, t, helio_next_values(batches));
        assert_made(losses);
        loss = helio_item(helio_reduce(strategy, HELIO_SUM, losses));
      }
    }
    assert_null(helio_next_values(batches));
  }
  assert_true(loss > 0);
  return now() - start;
}

/* Seconds of an epoch. In a step before it plans are made and memory is taken. */
static double epoch_on(int replicas) {
  double seconds = 0;
  HELIO_POOL {
    trainer t;
    helio_strategy *strategy = mirrored_over(replicas, NULL, NULL);
    assert_made(strategy);
    HELIO_SCOPE(strategy) make_trainer(&t);
    train(strategy, &t, 1);
    seconds = train(strategy, &t, STEPS);
    helio_release(t.model);
  }
  return seconds;
}

/* Whether it is so with kernels that take so long. */
static bool is_shorter_on_more(int time_of_row) {
  const double least = (double)STEPS * BATCH * SLOW_KERNELS * time_of_row * 1e-9;
  char rules[40];
  snprintf(rules, sizeof rules, "kernel:time=%d", time_of_row);
  start_wrapped(rules);
  double one = epoch_on(1), two = epoch_on(2), four = epoch_on(4);
  helio_shutdown();
  print_message("an epoch on one, two and four devices: %.3f s, %.3f s (%.2f), %.3f s (%.2f)\n", one, two, two / one,
                four, four / one);
  assert_true(one >= least);
  return two <= 0.55 * one && four <= 0.30 * one;
}

/* Other programs may have the machine meanwhile, and a thread that sleeps is woken late then: by so much for each
 * kernel, however long it takes. So the next attempt is with longer ones. Replicas that worked in turn would take as
 * long as one device in each. */
static void more_devices_shorten_the_epoch(void **state) {
  (void)state;
  bool shorter = false;
  for (int i = 0; i < ATTEMPTS && !shorter; i++) shorter = is_shorter_on_more(TIME_OF_ROW << i);
  assert_true(shorter);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(more_devices_shorten_the_epoch)};
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
