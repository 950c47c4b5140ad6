/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas, which are those of Keras 3. */
#include "nn/loss.h"
#include "nn/samples.h"

/* Keras' epsilon: probabilities are kept so far away from 0 and 1. */
static const double epsilon = 1e-7;

static helio_tensor *mean_of_last(helio_tensor *x) {
  return helio_mean(x, .axes = HELIO_AXES(-1));
}

static helio_tensor *sum_of_last(helio_tensor *x) {
  return helio_sum(x, .axes = HELIO_AXES(-1));
}

static helio_tensor *one_minus(helio_tensor *x) {
  return x ? helio_sub(hi_scalar(x->type, 1), x) : NULL;
}

static helio_tensor *times(helio_tensor *x, double factor) {
  return x ? helio_mul(x, hi_scalar(x->type, factor)) : NULL;
}

/* ---- distances ---- */

static helio_tensor *mean_squared_error(const helio_loss_options *o, helio_tensor *y, helio_tensor *p, bool logits) {
  (void)o, (void)logits;
  return mean_of_last(helio_square(helio_sub(y, p)));
}

static helio_tensor *mean_absolute_error(const helio_loss_options *o, helio_tensor *y, helio_tensor *p, bool logits) {
  (void)o, (void)logits;
  return mean_of_last(helio_abs(helio_sub(y, p)));
}

/* e² ÷ 2 up to delta, beyond it delta × |e| − delta² ÷ 2: with c, the error cut at delta, both are c × (e − c ÷ 2). */
static helio_tensor *huber(const helio_loss_options *o, helio_tensor *y, helio_tensor *p, bool logits) {
  (void)logits;
  helio_tensor *error = helio_sub(p, y), *cut = helio_clip(error, -o->delta, o->delta);
  return mean_of_last(helio_mul(cut, helio_sub(error, times(cut, 0.5))));
}

/* Divided by its length; what is shorter than epsilon, by epsilon. */
static helio_tensor *direction(helio_tensor *x, int axis) {
  helio_tensor *square = helio_sum(helio_square(x), .axes = HELIO_AXES(axis), .keep_dims = true);
  return square ? helio_mul(x, helio_rsqrt(helio_maximum(square, hi_scalar(x->type, epsilon * epsilon)))) : NULL;
}

static helio_tensor *cosine_similarity(const helio_loss_options *o, helio_tensor *y, helio_tensor *p, bool logits) {
  (void)logits;
  return helio_neg(helio_sum(helio_mul(direction(y, o->axis), direction(p, o->axis)), .axes = HELIO_AXES(o->axis)));
}

/* ---- distributions ---- */

static helio_tensor *kl_divergence(const helio_loss_options *o, helio_tensor *y, helio_tensor *p, bool logits) {
  (void)o, (void)logits;
  y = helio_clip(y, epsilon, 1);
  p = helio_clip(p, epsilon, 1);
  return sum_of_last(helio_mul(y, helio_log(helio_div(y, p))));
}

/* Labels that are less sure of themselves: a part `smoothing` of them is shared by all classes. */
static helio_tensor *smoothed(helio_tensor *y, double smoothing, int64_t classes) {
  if (smoothing == 0) return y;
  return helio_add(times(y, 1 - smoothing), hi_scalar(y->type, smoothing / (double)classes));
}

/* What a 1 and what a 0 cost is written in softplus, so that a cost near 0 is not the difference of large numbers and
 * its slope at a logit of 0 is right, which that of |x| would not be. */
static helio_tensor *binary_crossentropy(const helio_loss_options *o, helio_tensor *y, helio_tensor *p, bool logits) {
  y = smoothed(y, o->label_smoothing, 2);
  if (!logits) p = helio_clip(p, epsilon, 1 - epsilon);
  helio_tensor *of_one = logits ? helio_softplus(helio_neg(p)) : helio_neg(helio_log(p));
  helio_tensor *of_zero = logits ? helio_softplus(p) : helio_neg(helio_log(one_minus(p)));
  return mean_of_last(helio_add(helio_mul(y, of_one), helio_mul(one_minus(y), of_zero)));
}

static helio_tensor *categorical_crossentropy(const helio_loss_options *o, helio_tensor *y, helio_tensor *p,
                                              bool logits) {
  y = smoothed(y, o->label_smoothing, p->shape.extent[p->shape.rank - 1]);
  if (logits) return helio_nn_cross_entropy(p, y);
  p = helio_div(p, helio_sum(p, .axes = HELIO_AXES(-1), .keep_dims = true));
  return helio_neg(sum_of_last(helio_mul(y, helio_log(helio_clip(p, epsilon, 1 - epsilon)))));
}

/* Logarithms of probabilities are logits: softmax makes the probabilities of them, divided by their sum. */
static helio_tensor *sparse_of_all(helio_tensor *y, helio_tensor *p, bool logits) {
  return helio_nn_sparse_cross_entropy(logits ? p : helio_log(helio_clip(p, epsilon, 1 - epsilon)), y);
}

helio_tensor *hi_loss_counted(const helio_loss_options *options, helio_tensor *classes) {
  return helio_not_equal(classes, hi_scalar(classes->type, options->ignore_class));
}

/* A row whose class is ignored is one of zeros and class 0 with a loss of 0, so that whatever is predicted there, a NaN
 * too, reaches neither value nor gradient. */
static helio_tensor *sparse_categorical_crossentropy(const helio_loss_options *o, helio_tensor *y, helio_tensor *p,
                                                     bool logits) {
  if (!o->ignores_class) return sparse_of_all(y, p, logits);
  helio_tensor *counted = hi_loss_counted(o, y), *zero = hi_scalar(p->type, 0);
  y = helio_where(counted, y, hi_scalar(y->type, 0));
  p = helio_where(helio_expand_dims(counted, -1), p, zero);
  return helio_where(counted, sparse_of_all(y, p, logits), zero);
}

/* ---- the table ---- */

const hi_loss_kind hi_loss_kinds[HI_LOSS_KINDS] = {
    [HI_MEAN_SQUARED_ERROR] = {.names = {"MeanSquaredError", "mean_squared_error", {"mse", "MSE"}},
                               .values = mean_squared_error},
    [HI_MEAN_ABSOLUTE_ERROR] = {.names = {"MeanAbsoluteError", "mean_absolute_error", {"mae", "MAE"}},
                                .values = mean_absolute_error},
    [HI_HUBER] = {.names = {"Huber", "huber_loss", {"huber"}}, .options = HI_LOSS_DELTA, .values = huber},
    [HI_BINARY_CROSSENTROPY] = {.names = {"BinaryCrossentropy", "binary_crossentropy", {"bce", "BCE"}},
                                .options = HI_LOSS_FROM_LOGITS | HI_LOSS_SMOOTHING,
                                .logits_by = HELIO_SIGMOID,
                                .values = binary_crossentropy},
    [HI_CATEGORICAL_CROSSENTROPY] = {.names = {"CategoricalCrossentropy", "categorical_crossentropy", {NULL}},
                                     .options = HI_LOSS_FROM_LOGITS | HI_LOSS_SMOOTHING,
                                     .logits_by = HELIO_SOFTMAX,
                                     .values = categorical_crossentropy},
    [HI_SPARSE_CATEGORICAL_CROSSENTROPY] = {.names = {"SparseCategoricalCrossentropy",
                                                      "sparse_categorical_crossentropy",
                                                      {NULL}},
                                            .options = HI_LOSS_FROM_LOGITS | HI_LOSS_IGNORE,
                                            .logits_by = HELIO_SOFTMAX,
                                            .sparse = true,
                                            .values = sparse_categorical_crossentropy},
    [HI_KL_DIVERGENCE] = {.names = {"KLDivergence", "kl_divergence", {"kld", "KLD", "kullback_leibler_divergence"}},
                          .values = kl_divergence},
    [HI_COSINE_SIMILARITY] = {.names = {"CosineSimilarity", "cosine_similarity", {NULL}},
                              .options = HI_LOSS_AXIS,
                              .values = cosine_similarity},
};
