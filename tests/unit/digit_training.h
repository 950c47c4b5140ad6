/* SPDX-License-Identifier: Apache-2.0 */
/* The usual network for small pictures of digits, and a training of it that is long enough to find its pace. */
#ifndef HELIO_TEST_DIGIT_TRAINING_H
#define HELIO_TEST_DIGIT_TRAINING_H

#include "replica_devices.h"

/* Of each replica's part; steps before those that are counted, those, and some behind them. */
enum { SIDE = 28, CLASSES = 10, ROWS = 4, WARM = 8, STEADY = 12, STEPS = WARM + STEADY + 4 };

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

#endif
