/* SPDX-License-Identifier: Apache-2.0 */
/* What each metric counts, as Keras 3 does. */
#include <math.h>

#include "nn/metric.h"
#include "nn/samples.h"
#include "runtime/error.h"

/* ---- a value for each sample ---- */

static helio_tensor *equality(helio_tensor *a, helio_tensor *b) {
  return hi_in_type(helio_equal(a, b), HELIO_FLOAT32);
}

static helio_tensor *accuracy(const helio_metric *metric, helio_tensor *labels, helio_tensor *predictions) {
  (void)metric;
  labels = hi_in_type(labels, predictions->type);
  if (hi_match_ranks(&labels, &predictions) || hi_match_shapes(labels, predictions)) return NULL;
  return equality(labels, predictions);
}

static helio_tensor *above_threshold(const helio_metric *metric, helio_tensor *predictions) {
  predictions = hi_in_wide_float(predictions);
  return predictions ? helio_greater(predictions, hi_scalar(predictions->type, metric->options.threshold)) : NULL;
}

static helio_tensor *binary_accuracy(const helio_metric *metric, helio_tensor *labels, helio_tensor *predictions) {
  if (hi_match_ranks(&labels, &predictions) || hi_match_shapes(labels, predictions)) return NULL;
  return equality(labels, hi_in_type(above_threshold(metric, predictions), labels->type));
}

/* The number of the largest class. */
static helio_tensor *largest(helio_tensor *x) {
  return helio_argmax(x->type == HELIO_UINT8 || x->type == HELIO_BOOL ? helio_cast(x, HELIO_INT32) : x, -1);
}

static helio_tensor *categorical_accuracy(const helio_metric *metric, helio_tensor *labels, helio_tensor *predictions) {
  (void)metric;
  return hi_match_shapes(labels, predictions) ? NULL : equality(largest(labels), largest(predictions));
}

static helio_tensor *sparse_categorical_accuracy(const helio_metric *metric, helio_tensor *labels,
                                                 helio_tensor *predictions) {
  (void)metric;
  labels = hi_class_numbers(labels, predictions);
  return labels ? equality(hi_in_type(labels, HELIO_INT64), largest(predictions)) : NULL;
}

/* `labels` are numbers of classes; all axes before the classes are rows. */
static helio_tensor *in_top_k(const helio_metric *metric, helio_tensor *labels, helio_tensor *predictions) {
  if (!labels) return NULL;
  int64_t classes = predictions->shape.extent[predictions->shape.rank - 1];
  helio_tensor *rows = helio_reshape(hi_in_wide_float(predictions), HELIO_SHAPE(labels->elements, classes));
  helio_tensor *hits = helio_in_top_k(rows, helio_reshape(labels, HELIO_SHAPE(labels->elements)), metric->options.k);
  return helio_reshape(hi_in_type(hits, HELIO_FLOAT32), labels->shape);
}

static helio_tensor *sparse_top_k(const helio_metric *metric, helio_tensor *labels, helio_tensor *predictions) {
  return in_top_k(metric, hi_class_numbers(labels, predictions), predictions);
}

static helio_tensor *top_k(const helio_metric *metric, helio_tensor *labels, helio_tensor *predictions) {
  return hi_match_shapes(labels, predictions) ? NULL : in_top_k(metric, largest(labels), predictions);
}

static helio_tensor *users_values(const helio_metric *metric, helio_tensor *labels, helio_tensor *predictions) {
  return hi_loss_values(&(helio_loss){.function = metric->function, .user = metric->user}, labels, predictions);
}

/* ---- means and sums ---- */

typedef helio_tensor *reduction(const helio_reduce_options *options);

/* x with all axes from `first` on reduced to none. */
static helio_tensor *reduce_from(helio_tensor *x, int first, reduction *reduce) {
  helio_axes axes = {0};
  for (int i = first; x && i < x->shape.rank; i++) axes.axis[axes.count++] = i;
  return axes.count ? reduce(&(helio_reduce_options){.size = sizeof(helio_reduce_options), .x = x, .axes = axes}) : x;
}

/* The sum of all; a scalar costs nothing. */
static helio_tensor *total_of(helio_tensor *x) {
  return reduce_from(x, 0, helio_sum_with);
}

/* Axes that only the values have are reduced before they are weighted, those behind the first one after it, of values
 * and weights. */
static helio_status weigh(helio_tensor **values, helio_tensor **weights, reduction *reduce) {
  helio_tensor *v = *values, *w = hi_in_type(*weights, v->type);
  if (hi_match_ranks(&v, &w)) return helio_error_pending();
  v = reduce_from(v, w->shape.rank, reduce);
  w = hi_weights_for(w, v);
  if (w && !hi_shape_equal(&w->shape, &v->shape)) w = helio_mul(w, helio_fill(v->shape, 1, .type = v->type));
  *values = helio_mul(v, w);
  *weights = reduce_from(w, 1, reduce);
  return helio_error_pending();
}

/* Keras' reduce_to_samplewise_values: a value, already weighted, and a weight for each sample. */
static helio_status take_samples(const helio_metric *metric, const hi_metric_kind *kind,
                                 const helio_metric_update_options *update, reduction *reduce, helio_tensor **values,
                                 helio_tensor **weights) {
  helio_loss loss = {.kind = kind->loss, .options = {.delta = 1}, .name = metric->name};
  helio_tensor *found = update->labels;
  if (kind->values) found = kind->values(metric, update->labels, update->predictions);
  if (kind->loss) found = hi_loss_values(&loss, update->labels, update->predictions);
  *values = hi_in_type(found, metric->options.type);
  *weights = update->sample_weights;
  if (!*values || (*weights && weigh(values, weights, reduce))) return helio_error_pending();
  *values = reduce_from(*values, 1, reduce);
  return helio_error_pending();
}

static helio_status add_to_mean(const helio_metric *metric, const hi_metric_kind *kind,
                                const helio_metric_update_options *update, helio_tensor **additions) {
  helio_tensor *values, *weights;
  if (take_samples(metric, kind, update, helio_mean_with, &values, &weights)) return helio_error_pending();
  double count = values->shape.rank ? (double)values->shape.extent[0] : 1;
  additions[0] = total_of(values);
  additions[1] = weights ? total_of(weights) : hi_scalar(values->type, count);
  return helio_error_pending();
}

static helio_tensor *result_of_mean(helio_tensor *const *states) {
  return hi_divide_no_nan(states[0], states[1]);
}

static helio_status add_to_sum(const helio_metric *metric, const hi_metric_kind *kind,
                               const helio_metric_update_options *update, helio_tensor **additions) {
  helio_tensor *values, *weights;
  if (take_samples(metric, kind, update, helio_sum_with, &values, &weights)) return helio_error_pending();
  additions[0] = total_of(values);
  return helio_error_pending();
}

static helio_tensor *result_of_sum(helio_tensor *const *states) {
  return helio_copy(states[0]);
}

static const hi_metric_family means = {{"total", "count"}, add_to_mean, result_of_mean};
static const hi_metric_family sums = {{"total"}, add_to_sum, result_of_sum};

/* ---- precision and recall ---- */

/* Labels and predictions as yes or no, and the weight of each; NULL: all 1. */
typedef struct answers {
  helio_tensor *true_ones, *found_ones, *weights;
} answers;

/* x, with −∞ in the place of what is not among the k largest of its row. */
static helio_tensor *largest_alone(helio_tensor *x, int k) {
  helio_tensor *places = NULL;
  if (!helio_top_k(x, k, &places)) return NULL;
  helio_tensor *ones = helio_one_hot(places, x->shape.extent[x->shape.rank - 1], HELIO_FLOAT32);
  helio_tensor *chosen = helio_greater(helio_sum(ones, .axes = HELIO_AXES(-2)), hi_scalar(HELIO_FLOAT32, 0));
  return helio_where(chosen, x, hi_scalar(HELIO_FLOAT32, -INFINITY));
}

/* One place of the last axis, which stays. */
static helio_tensor *one_class(helio_tensor *x, int class_id) {
  helio_shape begin = {.rank = x->shape.rank}, extents = x->shape;
  begin.extent[begin.rank - 1] = class_id;
  extents.extent[extents.rank - 1] = 1;
  return helio_slice(x, begin, extents);
}

static helio_status choose(const helio_metric_options *o, helio_tensor **labels, helio_tensor **predictions) {
  if ((o->top_k || o->of_one_class) && (*labels)->shape.rank < (o->of_one_class ? 2 : 1)) {
    char text[HI_SHAPE_TEXT];
    return hi_fail(HELIO_INVALID_ARGUMENT, "there are no classes in shape %s", hi_shape_text(&(*labels)->shape, text));
  }
  if (o->top_k) *predictions = largest_alone(*predictions, o->top_k);
  if (!o->of_one_class || !*predictions) return helio_error_pending();
  *labels = one_class(*labels, o->class_id);
  *predictions = one_class(*predictions, o->class_id);
  return helio_error_pending();
}

static helio_status take_answers(const helio_metric *metric, const helio_metric_update_options *update, answers *a) {
  helio_tensor *labels = update->labels, *predictions = hi_in_type(update->predictions, HELIO_FLOAT32);
  if (hi_match_ranks(&labels, &predictions) || hi_match_shapes(labels, predictions)) return helio_error_pending();
  if (choose(&metric->options, &labels, &predictions)) return helio_error_pending();
  a->true_ones = helio_not_equal(labels, hi_scalar(labels->type, 0));
  a->weights = update->sample_weights ? hi_weights_for(update->sample_weights, predictions) : NULL;
  if (!metric->thresholds) {
    a->found_ones = above_threshold(metric, predictions);
    return helio_error_pending();
  }
  a->true_ones = helio_expand_dims(a->true_ones, -1);
  if (a->weights) a->weights = helio_expand_dims(a->weights, -1);
  a->found_ones = helio_greater(helio_expand_dims(predictions, -1),
                                helio_constant(metric->thresholds, HELIO_SHAPE(metric->options.threshold_count)));
  return helio_error_pending();
}

/* The sum of all, or for each of several thresholds, which are the last axis. */
static helio_tensor *count(helio_tensor *x, bool several) {
  helio_axes axes = {0};
  if (!x || !several) return helio_sum(x);
  for (int i = 0; i < x->shape.rank - 1; i++) axes.axis[axes.count++] = i;
  return helio_sum(x, axes);
}

/* The weights of what is counted at all, divided by whether the other side says yes as well. */
static helio_status divide(helio_tensor *counted, helio_tensor *yes, const answers *a, bool several,
                           helio_tensor **additions) {
  helio_tensor *zero = hi_scalar(HELIO_FLOAT32, 0);
  helio_tensor *weights = helio_where(counted, a->weights ? a->weights : hi_scalar(HELIO_FLOAT32, 1), zero);
  additions[0] = count(helio_where(yes, weights, zero), several);
  additions[1] = count(helio_where(yes, zero, weights), several);
  return helio_error_pending();
}

static helio_status add_to_precision(const helio_metric *metric, const hi_metric_kind *kind,
                                     const helio_metric_update_options *update, helio_tensor **additions) {
  answers a;
  (void)kind;
  helio_status status = take_answers(metric, update, &a);
  return status ? status : divide(a.found_ones, a.true_ones, &a, metric->thresholds, additions);
}

static helio_status add_to_recall(const helio_metric *metric, const hi_metric_kind *kind,
                                  const helio_metric_update_options *update, helio_tensor **additions) {
  answers a;
  (void)kind;
  helio_status status = take_answers(metric, update, &a);
  return status ? status : divide(a.true_ones, a.found_ones, &a, metric->thresholds, additions);
}

static helio_tensor *result_of_part(helio_tensor *const *states) {
  return hi_divide_no_nan(states[0], helio_add(states[0], states[1]));
}

static const hi_metric_family precisions = {{"true_positives", "false_positives"}, add_to_precision, result_of_part};
static const hi_metric_family recalls = {{"true_positives", "false_negatives"}, add_to_recall, result_of_part};

/* ---- which accuracy ---- */

/* By the shapes alone: Keras does not look at the loss. */
const hi_metric_kind *hi_accuracy_for(const helio_shape *labels, const helio_shape *predictions) {
  if (labels->rank < 1 || predictions->rank < 1) {
    hi_fail(HELIO_INVALID_ARGUMENT, "labels or predictions are a scalar: there are no samples");
    return NULL;
  }
  int64_t label_extent = labels->extent[labels->rank - 1], classes = predictions->extent[predictions->rank - 1];
  if (classes == 1) return &hi_metric_kinds[HI_BINARY_ACCURACY];
  bool sparse = labels->rank < predictions->rank || label_extent == 1;
  return &hi_metric_kinds[sparse ? HI_SPARSE_CATEGORICAL_ACCURACY : HI_CATEGORICAL_ACCURACY];
}

/* ---- the table ---- */

/* A metric of Keras' class and name. */
#define METRIC(class_name, name, ...)                                                                                  \
  { .names = {class_name, name, {NULL}}, __VA_ARGS__ }

/* The mean of a loss of the same names. */
#define LOSS(kind, ...)                                                                                                \
  { .names = {__VA_ARGS__}, .family = &means, .loss = &hi_loss_kinds[kind], .direction = -1 }

/* clang-format off */
const hi_metric_kind hi_metric_kinds[HI_METRIC_KINDS] = {
    [HI_MEAN] = METRIC("Mean", "mean", .family = &means, .given = true),
    [HI_SUM] = METRIC("Sum", "sum", .family = &sums, .given = true),
    [HI_ACCURACY] = METRIC("Accuracy", "accuracy", .family = &means, .values = accuracy, .direction = 1),
    [HI_BINARY_ACCURACY] =
        METRIC("BinaryAccuracy", "binary_accuracy", .family = &means, .values = binary_accuracy,
               .options = HI_METRIC_THRESHOLD, .direction = 1),
    [HI_CATEGORICAL_ACCURACY] =
        METRIC("CategoricalAccuracy", "categorical_accuracy", .family = &means, .values = categorical_accuracy,
               .direction = 1),
    [HI_SPARSE_CATEGORICAL_ACCURACY] =
        METRIC("SparseCategoricalAccuracy", "sparse_categorical_accuracy", .family = &means,
               .values = sparse_categorical_accuracy, .direction = 1),
    [HI_TOP_K_CATEGORICAL_ACCURACY] =
        METRIC("TopKCategoricalAccuracy", "top_k_categorical_accuracy", .family = &means, .values = top_k,
               .options = HI_METRIC_K, .direction = 1),
    [HI_SPARSE_TOP_K_CATEGORICAL_ACCURACY] =
        METRIC("SparseTopKCategoricalAccuracy", "sparse_top_k_categorical_accuracy", .family = &means,
               .values = sparse_top_k, .options = HI_METRIC_K, .direction = 1),
    [HI_PRECISION] =
        METRIC("Precision", "precision", .family = &precisions,
               .options = HI_METRIC_THRESHOLD | HI_METRIC_PROBABILITY | HI_METRIC_CHOICE, .direction = 1),
    [HI_RECALL] =
        METRIC("Recall", "recall", .family = &recalls,
               .options = HI_METRIC_THRESHOLD | HI_METRIC_PROBABILITY | HI_METRIC_CHOICE, .direction = 1),
    [HI_MEAN_SQUARED_ERROR_METRIC] =
        LOSS(HI_MEAN_SQUARED_ERROR, "MeanSquaredError", "mean_squared_error", {"mse", "MSE"}),
    [HI_MEAN_ABSOLUTE_ERROR_METRIC] =
        LOSS(HI_MEAN_ABSOLUTE_ERROR, "MeanAbsoluteError", "mean_absolute_error", {"mae", "MAE"}),
    [HI_BINARY_CROSSENTROPY_METRIC] =
        LOSS(HI_BINARY_CROSSENTROPY, "BinaryCrossentropy", "binary_crossentropy", {"bce", "BCE"}),
    [HI_CATEGORICAL_CROSSENTROPY_METRIC] =
        LOSS(HI_CATEGORICAL_CROSSENTROPY, "CategoricalCrossentropy", "categorical_crossentropy", {NULL}),
    [HI_SPARSE_CATEGORICAL_CROSSENTROPY_METRIC] =
        LOSS(HI_SPARSE_CATEGORICAL_CROSSENTROPY, "SparseCategoricalCrossentropy", "sparse_categorical_crossentropy",
             {NULL}),
    [HI_KL_DIVERGENCE_METRIC] = LOSS(HI_KL_DIVERGENCE, "KLDivergence", "kl_divergence", {NULL}),
};
/* clang-format on */

const hi_metric_kind hi_metric_of_user = {.family = &means, .values = users_values};
