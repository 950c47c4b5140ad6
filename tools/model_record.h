/* SPDX-License-Identifier: Apache-2.0 */
/* What a saved model's file remembers of the training, which the architecture does not tell: the model's note, a JSON
 * object, such as {"recipe": "mnist", "loss": "sparse_categorical_crossentropy", "bytes_divided_by": 255}. */
#ifndef MODEL_RECORD_H
#define MODEL_RECORD_H

#include "recipes.h"

typedef struct model_record {
  const char *loss;     /* by Keras' name, the pool's; NULL: not known */
  double bytes_divisor; /* of samples that are bytes; 1: they stayed as they are; 0: not known */
} model_record;

/* The recipe that trained the model, as its file tells or else, of one that a program wrote, its name and layers; NULL:
 * none did, or the error is pending. */
const recipe *model_record_recipe(const helio_model *model);

/* Of a saved model. What its file does not tell, as one that a program wrote, is as the recipe has it; NULL: none is
 * known. A note that is something else tells nothing. */
model_record model_record_of(const helio_model *model, const recipe *r);

/* For the file that the model will be saved to: the recipe, NULL for none, the loss, and how the samples that it was
 * trained on became numbers. What a note has beside that stays. */
helio_status model_record_keep(helio_model *model, const recipe *r, const char *loss, const sample_set *set);

/* Bytes of the samples become what they were in the training. If that is not known there is a warning, in which they
 * are called `data`. */
void model_record_apply(const model_record *record, sample_set *set, const helio_model *model, const char *data,
                        const char *path);

#endif
