/* SPDX-License-Identifier: Apache-2.0 */
/* Samples as they are given, and the batches that become of them. */
#ifndef HI_INPUT_H
#define HI_INPUT_H

#include "strategy/values.h"

/* A dataset of batches, or arrays, or tensors. */
typedef struct hi_samples {
  helio_dataset *dataset;
  helio_array *x, *y, *weights; /* NULL: none */
  helio_tensor *x_tensor, *y_tensor;
  int64_t batch_size; /* of arrays */
  uint64_t shuffle;   /* likewise: the seed by which they are shuffled in each epoch; 0: they are not */
} hi_samples;

/* Sets the error and returns false unless there is exactly one of the three; tensors become arrays. */
bool hi_samples_read(hi_samples *samples, const char *what, bool labelled);

bool hi_samples_given(const hi_samples *samples);

/* Arrays alone: cuts off the last part for validation, as Keras does. */
helio_status hi_samples_split(hi_samples *samples, double fraction, hi_samples *validation);

/* Batches for the strategy, iterated over once or many times; owned by the innermost pool. NULL with the error set. */
helio_distributed *hi_samples_distribute(const hi_samples *samples, helio_strategy *strategy);

/* All of it as one batch, cut among the replicas. */
helio_values *hi_samples_values(const hi_samples *samples, helio_strategy *strategy);

#endif
