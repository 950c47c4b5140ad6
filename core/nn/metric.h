/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics from the inside. A kind of metric is one row of the table at the end of nn/metric_kinds.c. */
#ifndef HI_METRIC_H
#define HI_METRIC_H

#include "nn/loss.h"
#include "nn/names.h"
#include "ops/variable.h"

enum { HI_METRIC_STATES = 2 };

typedef struct hi_metric_kind hi_metric_kind;

/* What metrics that sum up in the same way share. */
typedef struct hi_metric_family {
  /* Names of its variables, which are float32 scalars, or vectors for several thresholds; NULL: has no second. */
  const char *states[HI_METRIC_STATES];

  /* What an update adds to each variable. */
  helio_status (*add)(const helio_metric *metric, const hi_metric_kind *kind, const helio_metric_update_options *update,
                      helio_tensor **additions);

  /* The metric's result by its variables' values; a tensor that is not theirs. */
  helio_tensor *(*result)(helio_tensor *const *states);
} hi_metric_family;

/* Options that not all metrics know. */
enum {
  HI_METRIC_K = 1,
  HI_METRIC_THRESHOLD = 2,
  HI_METRIC_PROBABILITY = 4, /* the threshold is one */
  HI_METRIC_CHOICE = 8       /* several thresholds, top_k, class_id */
};

struct hi_metric_kind {
  hi_names names;
  const hi_metric_family *family;
  unsigned options; /* the ones of the above that it knows */

  int direction; /* in which it becomes better, see hi_metric_direction() */

  bool given; /* its values are given, in the place of labels; else they come of labels and predictions */

  /* Of a mean whose values are not given, what they are: this function, or this loss. */
  helio_tensor *(*values)(const helio_metric *metric, helio_tensor *labels, helio_tensor *predictions);
  const hi_loss_kind *loss;
};

enum {
  HI_MEAN,
  HI_SUM,
  HI_ACCURACY,
  HI_BINARY_ACCURACY,
  HI_CATEGORICAL_ACCURACY,
  HI_SPARSE_CATEGORICAL_ACCURACY,
  HI_TOP_K_CATEGORICAL_ACCURACY,
  HI_SPARSE_TOP_K_CATEGORICAL_ACCURACY,
  HI_PRECISION,
  HI_RECALL,
  HI_MEAN_SQUARED_ERROR_METRIC,
  HI_MEAN_ABSOLUTE_ERROR_METRIC,
  HI_BINARY_CROSSENTROPY_METRIC,
  HI_CATEGORICAL_CROSSENTROPY_METRIC,
  HI_SPARSE_CATEGORICAL_CROSSENTROPY_METRIC,
  HI_KL_DIVERGENCE_METRIC,
  HI_METRIC_KINDS
};

extern const hi_metric_kind hi_metric_kinds[HI_METRIC_KINDS];
extern const hi_metric_kind hi_metric_of_user;

struct helio_metric {
  hi_object object;
  _Atomic(const hi_metric_kind *) kind; /* NULL: the accuracy that the first good update's shapes choose */
  helio_metric_options options;         /* with the defaults filled in; its name and thresholds are not to be used */
  float *thresholds;                    /* as many as options.threshold_count; NULL: options.threshold alone */
  helio_loss_function function;         /* the user's */
  void *user;
  char *name;
  hi_replicas *replicas;                    /* of the scope that it was made in, a reference; NULL: of none */
  helio_variable *states[HI_METRIC_STATES]; /* references; NULL before the first use */
  helio_variables variables;
  atomic_bool ready; /* set under the lock of building, when they are there */
  bool shared;       /* every replica counts what all have found, so that none is needed for the whole */
};

/* From now on every replica counts for all; begins at zero. */
void hi_metric_share(helio_metric *metric);

/* An update in two halves, between which those of all replicas may be summed: what it adds to each variable, as far as
 * this replica knows; and adding it. Outside of tapes. */
helio_status hi_metric_additions(const helio_metric_update_options *update, helio_tensor *additions[HI_METRIC_STATES]);
helio_status hi_metric_add(helio_metric *metric, helio_tensor *const *additions);

/* 1: the larger, the better; −1: the smaller; 0: nobody can tell. As in Keras. */
int hi_metric_direction(const helio_metric *metric);

/* The accuracy that Keras takes for these shapes; NULL with the error set. */
const hi_metric_kind *hi_accuracy_for(const helio_shape *labels, const helio_shape *predictions);

#endif
