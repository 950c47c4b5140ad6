/* SPDX-License-Identifier: Apache-2.0 */
/* How a model is judged: its loss and its metrics, with Keras' names. */
#ifndef GOAL_H
#define GOAL_H

#include "lesson.h"

enum { MOST_GOAL_METRICS = 3 };

typedef struct goal {
  const char *loss;
  bool from_logits;                       /* the model's last layer gives no probabilities */
  const char *metrics[MOST_GOAL_METRICS]; /* up to the first NULL */
} goal;

/* Compiles the model; optimizer NULL: it is only evaluated. */
helio_status goal_compile(const goal *g, helio_model *model, helio_optimizer *optimizer);

/* The goal that suits the model's last layer and the labels or, if there is one, the loss that is given; labels become
 * what the loss takes. The exit status, after a message that begins with `path`. */
int goal_choose(goal *g, helio_model *model, lesson *l, const char *loss, const char *path);

/* The activation of the model's last layer as Keras calls it; "" where none is found. To be freed with free(); NULL
 * with the error pending, or where this command has no memory. */
char *goal_activation(helio_model *model);

#endif
