/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/loss.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/status.h"
#include "nn/samples.h"
#include "ops/options.h"
#include "ops/replica.h"
#include "ops/tape.h"
#include "runtime/error.h"
#include "runtime/log.h"
#include "runtime/progress.h"

/* ---- life ---- */

static void end(void *object) {
  helio_loss *loss = object;
  free(loss->name);
  free(loss);
}

static helio_loss *new_loss(const hi_loss_kind *kind, const helio_loss_options *options, const char *name) {
  helio_loss *loss = hi_object_new(sizeof *loss, end, "a loss");
  if (!loss) return NULL;
  hi_census_name(&loss->object, &loss->name);
  loss->kind = kind;
  loss->options = *options;
  loss->options.name = NULL;
  if (!loss->options.reduction) loss->options.reduction = HELIO_LOSS_MEAN;
  if (loss->options.delta == 0) loss->options.delta = 1;
  if (loss->options.axis == 0) loss->options.axis = -1;
  loss->name = strdup(name);
  if (loss->name) return loss;
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for the name of loss %s", name);
  return NULL;
}

/* An option that was set although the loss does not know it; NULL: none. */
static const char *unknown_option(const hi_loss_kind *kind, const helio_loss_options *o) {
  if (o->from_logits && !(kind->options & HI_LOSS_FROM_LOGITS)) return "from_logits";
  if (o->softmax_twice && !(kind->options & HI_LOSS_FROM_LOGITS)) return "softmax_twice";
  if (o->label_smoothing != 0 && !(kind->options & HI_LOSS_SMOOTHING)) return "label_smoothing";
  if (o->delta != 0 && !(kind->options & HI_LOSS_DELTA)) return "delta";
  if (o->axis != 0 && !(kind->options & HI_LOSS_AXIS)) return "axis";
  if ((o->ignores_class || o->ignore_class != 0) && !(kind->options & HI_LOSS_IGNORE)) return "ignore_class";
  return NULL;
}

static helio_status check_options(const hi_loss_kind *kind, const helio_loss_options *o) {
  const char *unknown = unknown_option(kind, o);
  if (unknown) return hi_fail(HELIO_INVALID_ARGUMENT, "the loss has no option %s", unknown);
  if (o->reduction < 0 || o->reduction > HELIO_LOSS_WEIGHTED_MEAN) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%d is not a reduction", (int)o->reduction);
  }
  if (o->softmax_twice && !o->from_logits) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "softmax_twice says how from_logits is read, which is not set");
  }
  if (!(o->label_smoothing >= 0 && o->label_smoothing <= 1)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "label_smoothing is %g, not in 0 … 1", o->label_smoothing);
  }
  if (!(o->delta >= 0)) return hi_fail(HELIO_INVALID_ARGUMENT, "delta is %g", o->delta);
  if (o->ignore_class != 0 && !o->ignores_class) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "ignore_class is %d, but ignores_class is not set", o->ignore_class);
  }
  return HELIO_OK;
}

static helio_loss *make(const char *function, int kind, const helio_loss_options *given) {
  helio_loss_options o;
  if (!hi_options_enter(function, &o, sizeof o, given)) return NULL;
  const char *name = o.name ? o.name : hi_loss_kinds[kind].names.name;
  if (!check_options(&hi_loss_kinds[kind], &o)) return new_loss(&hi_loss_kinds[kind], &o, name);
  hi_error_prefix("%s: ", name);
  return NULL;
}

helio_loss *helio_mean_squared_error_with(const helio_loss_options *options) {
  return make("helio_mean_squared_error", HI_MEAN_SQUARED_ERROR, options);
}

helio_loss *helio_mean_absolute_error_with(const helio_loss_options *options) {
  return make("helio_mean_absolute_error", HI_MEAN_ABSOLUTE_ERROR, options);
}

helio_loss *helio_huber_with(const helio_loss_options *options) {
  return make("helio_huber", HI_HUBER, options);
}

helio_loss *helio_binary_crossentropy_with(const helio_loss_options *options) {
  return make("helio_binary_crossentropy", HI_BINARY_CROSSENTROPY, options);
}

helio_loss *helio_categorical_crossentropy_with(const helio_loss_options *options) {
  return make("helio_categorical_crossentropy", HI_CATEGORICAL_CROSSENTROPY, options);
}

helio_loss *helio_sparse_categorical_crossentropy_with(const helio_loss_options *options) {
  return make("helio_sparse_categorical_crossentropy", HI_SPARSE_CATEGORICAL_CROSSENTROPY, options);
}

helio_loss *helio_kl_divergence_with(const helio_loss_options *options) {
  return make("helio_kl_divergence", HI_KL_DIVERGENCE, options);
}

helio_loss *helio_cosine_similarity_with(const helio_loss_options *options) {
  return make("helio_cosine_similarity", HI_COSINE_SIMILARITY, options);
}

helio_loss *helio_loss_named(const char *name) {
  if (hi_enter(__func__)) return NULL;
  const hi_loss_kind *kind = hi_named("loss", name, hi_loss_kinds, sizeof *hi_loss_kinds, HI_LOSS_KINDS);
  return kind ? new_loss(kind, &(helio_loss_options){0}, kind->names.name) : NULL;
}

helio_loss *helio_loss_of(helio_loss_function function, void *user, const char *name) {
  if (hi_enter(__func__)) return NULL;
  if (!function) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the function is NULL");
    return NULL;
  }
  helio_loss *loss = new_loss(NULL, &(helio_loss_options){0}, name ? name : "loss");
  if (!loss) return NULL;
  loss->function = function;
  loss->user = user;
  return loss;
}

const char *helio_loss_name(const helio_loss *loss) {
  return loss ? loss->name : "";
}

/* ---- values ---- */

/* Once in the life of the process, whatever the loss: a loop would say it at each step. */
static void warn_of_logits(const helio_loss *loss, helio_activation activation) {
  static atomic_flag warned = ATOMIC_FLAG_INIT;
  if (atomic_flag_test_and_set(&warned)) return;
  const char *name = activation == HELIO_SOFTMAX ? "softmax" : "sigmoid";
  hi_log(HELIO_LOG_WARNING,
         "%s received .from_logits = true, but the predictions were produced by a %s activation and thus do not "
         "represent logits. Was this intended? %s",
         loss->name, name,
         activation == loss->kind->logits_by
             ? "What the activation was applied to is used; .softmax_twice = true takes the predictions themselves"
             : "They are taken for logits");
}

/* What the loss is computed from: the predictions, or what their activation was applied to, because the logarithm of a
 * probability that was rounded to 0 is lost. `logits` says what it is. */
static helio_tensor *behind_activation(const helio_loss *loss, helio_tensor *predictions, bool *logits) {
  *logits = loss->options.from_logits;
  if (!loss->kind->logits_by || !predictions->logits || loss->options.softmax_twice) return predictions;
  if (*logits) warn_of_logits(loss, predictions->logits_by);
  if (predictions->logits_by != loss->kind->logits_by) return predictions;
  *logits = true;
  return predictions->logits;
}

static helio_tensor *values_of_kind(const helio_loss *loss, helio_tensor *labels, helio_tensor *predictions) {
  bool logits;
  predictions = hi_in_wide_float(behind_activation(loss, predictions, &logits));
  if (!predictions) return NULL;
  if (loss->kind->sparse) {
    labels = hi_class_numbers(labels, predictions);
  } else {
    labels = hi_in_type(labels, predictions->type);
    if (hi_match_ranks(&labels, &predictions) || hi_match_shapes(labels, predictions)) return NULL;
  }
  if (labels && predictions->shape.rank < 1) {
    hi_fail(HELIO_INVALID_ARGUMENT, "labels and predictions are scalars: there are no samples");
    return NULL;
  }
  return labels ? loss->kind->values(&loss->options, labels, predictions, logits) : NULL;
}

helio_tensor *hi_loss_values(const helio_loss *loss, helio_tensor *labels, helio_tensor *predictions) {
  if (!hi_tensor_usable(labels, "labels") || !hi_tensor_usable(predictions, "predictions")) return NULL;
  if (loss->kind) return values_of_kind(loss, labels, predictions);
  helio_tensor *values = loss->function(loss->user, labels, predictions);
  hi_done();
  if (!values) hi_fail(HELIO_INVALID_ARGUMENT, "the function gave no result");
  return hi_in_wide_float(values);
}

/* ---- weights and reduction ---- */

/* 1 for each loss that counts and 0 for one of a class to be ignored; NULL, with no error: all count. */
static helio_tensor *counted_of(const helio_loss *loss, helio_tensor *labels, const helio_tensor *predictions,
                                helio_type type) {
  if (!loss->options.ignores_class) return NULL;
  helio_tensor *classes = hi_class_numbers(labels, predictions);
  return classes ? hi_in_type(hi_loss_counted(&loss->options, classes), type) : NULL;
}

/* The part of a mean over the whole batch that this replica's losses are: the parts' sum is the mean. */
static helio_tensor *part_of_mean(helio_tensor *values, helio_tensor *divisor) {
  const helio_replica *replica = hi_context_now().replica;
  if (divisor) {
    hi_tape_pause();
    divisor = hi_all_reduce(helio_sum(divisor));
    hi_tape_resume();
    return hi_divide_no_nan(helio_sum(values), divisor);
  }
  if (replica->global_rows < 0) {
    hi_fail(
        HELIO_WRONG_STATE,
        "Please use HELIO_LOSS_SUM or HELIO_LOSS_NONE for loss reduction in a step of several replicas that was not "
        "given a batch of helio_next_values(): the mean over the global batch needs its size. "
        "helio_compute_average_loss() takes it");
    return NULL;
  }
  if (values->elements == 0) return helio_sum(values);
  double row = (double)(values->elements / values->shape.extent[0]);
  return helio_div(helio_sum(values), hi_scalar_like(values, row * (double)replica->global_rows));
}

/* The divisor of a mean is the number of losses that count, whatever they weigh. */
static helio_tensor *reduce(const helio_loss *loss, helio_tensor *values, helio_tensor *weights,
                            helio_tensor *counted) {
  helio_loss_reduction reduction = loss->options.reduction;
  if (!values || reduction == HELIO_LOSS_NONE || values->shape.rank == 0) return values;
  if (reduction == HELIO_LOSS_SUM) return helio_sum(values);
  helio_tensor *divisor = reduction == HELIO_LOSS_MEAN || !weights ? counted : weights;
  if (hi_replicas_together()) return part_of_mean(values, divisor);
  if (values->elements == 0) return helio_sum(values);
  return divisor ? hi_divide_no_nan(helio_sum(values), helio_sum(divisor)) : helio_mean(values);
}

static helio_tensor *compute(const helio_loss *loss, helio_tensor *labels, helio_tensor *predictions,
                             helio_tensor *weights) {
  if (weights && !hi_tensor_usable(weights, "sample weights")) return NULL;
  helio_tensor *values = hi_loss_values(loss, labels, predictions);
  helio_tensor *counted = values ? counted_of(loss, labels, predictions, values->type) : NULL;
  if (helio_error_pending()) return NULL;
  if (!weights) return reduce(loss, values, NULL, counted);
  if (hi_match_ranks(&values, &weights)) return NULL;
  weights = hi_weights_for(weights, values);
  if (!weights) return NULL;
  helio_tensor *effective = counted ? helio_mul(weights, helio_reshape(counted, values->shape)) : weights;
  return reduce(loss, helio_mul(values, weights), effective, counted);
}

helio_tensor *helio_compute_loss_with(const helio_compute_loss_options *given) {
  helio_compute_loss_options o;
  if (!hi_options_enter("helio_compute_loss", &o, sizeof o, given)) return NULL;
  if (!o.loss) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the loss is NULL");
    return NULL;
  }
  const char *before = hi_blame_enter(o.loss->name); /* a label out of range is found later */
  helio_tensor *result = compute(o.loss, o.labels, o.predictions, o.sample_weights);
  hi_blame_leave(before);
  if (!result) hi_error_prefix("%s: ", o.loss->name);
  return result;
}
