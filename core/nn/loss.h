/* SPDX-License-Identifier: Apache-2.0 */
/* Losses from the inside. A kind of loss is one row of the table at the end of nn/loss_functions.c. */
#ifndef HI_LOSS_H
#define HI_LOSS_H

#include "nn/names.h"
#include "tensor/tensor.h"

/* Options that not all losses know. */
enum { HI_LOSS_FROM_LOGITS = 1, HI_LOSS_SMOOTHING = 2, HI_LOSS_DELTA = 4, HI_LOSS_AXIS = 8, HI_LOSS_IGNORE = 16 };

typedef struct hi_loss_kind {
  hi_names names;
  unsigned options;           /* the ones of the above that it knows */
  helio_activation logits_by; /* what it can look behind: the activation whose input it takes instead; 0: none */
  bool sparse;                /* labels are numbers of classes; else they have the predictions' shape and type */

  /* A loss for each sample. `logits` says what the predictions are; they are float32 or float64. */
  helio_tensor *(*values)(const helio_loss_options *options, helio_tensor *labels, helio_tensor *predictions,
                          bool logits);
} hi_loss_kind;

enum {
  HI_MEAN_SQUARED_ERROR,
  HI_MEAN_ABSOLUTE_ERROR,
  HI_HUBER,
  HI_BINARY_CROSSENTROPY,
  HI_CATEGORICAL_CROSSENTROPY,
  HI_SPARSE_CATEGORICAL_CROSSENTROPY,
  HI_KL_DIVERGENCE,
  HI_COSINE_SIMILARITY,
  HI_LOSS_KINDS
};

extern const hi_loss_kind hi_loss_kinds[HI_LOSS_KINDS];

/* Which of these numbers of classes are not the one to be ignored. */
helio_tensor *hi_loss_counted(const helio_loss_options *options, helio_tensor *classes);

struct helio_loss {
  hi_object object;
  const hi_loss_kind *kind;   /* NULL: the user's function */
  helio_loss_options options; /* with the defaults filled in; its name is not to be used */
  helio_loss_function function;
  void *user;
  char *name;
};

/* The losses of the samples, neither weighted nor reduced. Needs only kind, options and name, or function and user, so
 * that a metric can ask with a loss of its own. NULL with the error set, which does not yet name the loss. */
helio_tensor *hi_loss_values(const helio_loss *loss, helio_tensor *labels, helio_tensor *predictions);

#endif
