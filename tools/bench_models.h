/* SPDX-License-Identifier: Apache-2.0 */
/* The networks that `helio bench training` knows, those of the recipes and a plain one, and data for them. tests/bench/
 * training.py has the same networks in TensorFlow and PyTorch. */
#ifndef BENCH_MODELS_H
#define BENCH_MODELS_H

#include <helio/helio.h>

#define BENCH_MODELS "mnist|mlp|reuters"

typedef struct bench_model {
  const char *name;
  int batch;         /* samples of a batch, unless another number is asked for */
  helio_shape input; /* of one sample */
  int words;         /* samples are whole numbers below this; 0: numbers from 0 to 1 */
  int classes;
} bench_model;

helio_model *bench_model_make(const bench_model *self);
helio_optimizer *bench_model_optimizer(const bench_model *self);

/* One of BENCH_MODELS; NULL: the first. */
const bench_model *bench_model_of(const char *name);

/* Samples of the right shape with labels, made up; false with the library's error pending. */
bool bench_make_up(const bench_model *self, int64_t count, helio_samples *samples);

#endif
