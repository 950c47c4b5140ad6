/* SPDX-License-Identifier: Apache-2.0 */
/* The usual network for small pictures of digits, and a training of it that is long enough to find its pace. */
#ifndef HELIO_TEST_DIGIT_TRAINING_H
#define HELIO_TEST_DIGIT_TRAINING_H

#include "replica_devices.h"

/* Of each replica's part; steps before those that are counted, those, and some behind them. */
enum { SIDE = 28, CLASSES = 10, ROWS = 4, WARM = 8, STEADY = 12, STEPS = WARM + STEADY + 4 };
enum { PARTS = 2 }; /* of a batch: images and labels */

static inline helio_model *make_model(void) {
  helio_model *model = helio_sequential({helio_conv2d(16, 3, .activation = HELIO_RELU), helio_max_pool2d(),
                                         helio_conv2d(32, 3, .activation = HELIO_RELU), helio_max_pool2d(),
                                         helio_flatten(), helio_dense(CLASSES, .activation = HELIO_SOFTMAX)},
                                        .input_shape = HELIO_SHAPE(SIDE, SIDE, 1));
  helio_compile(model, .optimizer = helio_adam(0.001), .loss = helio_sparse_categorical_crossentropy(),
                .metrics = {helio_metric_named("accuracy", NULL)});
  assert_made(model);
  return model;
}

static inline helio_model *model_of(helio_strategy *strategy) {
  helio_model *model = NULL;
  HELIO_SCOPE(strategy) model = make_model();
  return model;
}

static float pixels[STEPS * MOST_REPLICAS * ROWS * SIDE * SIDE];
static int32_t labels[STEPS * MOST_REPLICAS * ROWS];

static inline void make_samples(int64_t samples) {
  for (int64_t i = 0; i < samples * SIDE * SIDE; i++) pixels[i] = (float)(i * 37 % 101) / 101;
  for (int64_t i = 0; i < samples; i++) labels[i] = (int32_t)(i * 7 % CLASSES);
}

/* NULL: it failed. */
static inline helio_history *train_digits(helio_model *model, int replicas, helio_callback *callback) {
  int64_t samples = (int64_t)STEPS * replicas * ROWS;
  return helio_fit(model, .x = helio_array_of(pixels, HELIO_SHAPE(samples, SIDE, SIDE, 1)),
                   .y = helio_array_of(labels, HELIO_SHAPE(samples), .type = HELIO_INT32),
                   .batch_size = replicas * ROWS, .verbose = HELIO_QUIET, .callbacks = {callback});
}

/* How often something was copied in to the device of a replica. */
typedef unsigned long long copies_in_function(int replica);

/* One batch was taken for the step that begins, and as many are read ahead as there are replicas. How far the thread
 * that reads ahead has come is up to the system; the first steps wait until it can go no further, so that there was no
 * time at which more batches were under way than then. `first`: how often before the first batch. */
static inline helio_status let_read_ahead(int step, int replicas, const unsigned long long *first,
                                          copies_in_function *copies_in) {
  for (int i = 0; i < replicas && step < WARM; i++) {
    unsigned long long wanted = first[i] + PARTS * (unsigned)(step + 1 + replicas);
    for (int waited = 0; copies_in(i) < wanted; waited++) {
      if (waited == 100000) return HELIO_TIMED_OUT;
      usleep(200);
    }
  }
  return HELIO_OK;
}

#endif
