/* SPDX-License-Identifier: Apache-2.0 */
/* What pieces of programs in documents stand upon: tests/scripts/documents.sh puts each into a program that begins with
 * this. Models and data are small, so that every piece can run. */
#include <helio/helio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 96, SIDE = 28, CLASSES = 10 };

static inline helio_array *some_images(void) {
  static float images[SAMPLES][SIDE][SIDE][1];
  for (int i = 0; i < SAMPLES; i++) {
    for (int x = 0; x < SIDE; x++) images[i][i % CLASSES][x][0] = 1; /* a line whose place is the class */
  }
  return helio_array_of(images, HELIO_SHAPE(SAMPLES, SIDE, SIDE, 1));
}

static inline helio_array *some_labels(void) {
  static int32_t labels[SAMPLES];
  for (int i = 0; i < SAMPLES; i++) labels[i] = i % CLASSES;
  return helio_array_of(labels, HELIO_SHAPE(SAMPLES), HELIO_INT32);
}

static inline helio_dataset *some_batches(void) {
  return helio_dataset_batch(helio_dataset_from_slices(some_images(), some_labels()), 32);
}

static inline helio_model *make_model(void) {
  return helio_sequential({helio_flatten(), helio_dense(CLASSES, .activation = HELIO_SOFTMAX)},
                          .input_shape = HELIO_SHAPE(SIDE, SIDE, 1));
}

/* One that was compiled. */
static inline helio_model *a_model(void) {
  helio_model *model = make_model();
  helio_compile(model, .optimizer = helio_adam(), .loss = helio_sparse_categorical_crossentropy());
  return model;
}

static inline void make_model_and_optimizer(void *trainer) {
  (void)trainer;
}

static inline helio_status a_step(void *argument, const helio_element *batch, helio_element *result) {
  (void)argument;
  result->count = 1;
  result->part[0] = helio_sum(batch->part[0]);
  return helio_error_pending();
}

static inline int end_of_piece(void) {
  if (helio_error_pending()) fprintf(stderr, "%s\n", helio_error_message());
  return helio_error_take(NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
