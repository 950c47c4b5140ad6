/* SPDX-License-Identifier: Apache-2.0 */
/* How a model is judged: its loss and its metrics, with Keras' names. */
#ifndef OBJECTIVE_H
#define OBJECTIVE_H

#include "sample_set.h"

enum { MOST_OBJECTIVE_METRICS = 3 };

typedef struct objective {
  const char *loss;
  const char *reason;                          /* why it is this loss; NULL: it was asked for */
  bool from_logits;                            /* the model's last layer gives no probabilities */
  const char *metrics[MOST_OBJECTIVE_METRICS]; /* up to the first NULL */
} objective;

/* Compiles the model; optimizer NULL: it is only evaluated. */
helio_status objective_compile(const objective *aim, helio_model *model, helio_optimizer *optimizer);

/* The objective of the loss that is asked for, else of the one that the model was trained with, else the objective that
 * suits the model's last layer and the labels; either may be NULL. Labels become what the loss takes. The exit status,
 * after a message that begins with `path`. */
int objective_choose(objective *aim, helio_model *model, sample_set *set, const char *asked, const char *trained_with,
                     const char *path);

/* "categorical_crossentropy from logits (by …)", without an end of the line. */
void objective_print(const objective *aim);

/* The activation of the model's last layer as Keras calls it; "" where none is found. To be freed with free(); NULL
 * with the error pending, or where this command has no memory. */
char *objective_activation(helio_model *model);

#endif
