/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is taught: samples on the host as they were read, and how a batch of them becomes what it takes. Images
 * stay bytes until their batch is made, a quarter of the memory that they would need as float32. */
#ifndef SAMPLE_SET_H
#define SAMPLE_SET_H

#include <helio/helio.h>

typedef struct sample_set {
  helio_array *x, *y;           /* to train on */
  helio_array *test_x, *test_y; /* to validate on; NULL: there are none */
  helio_type type;              /* that the model takes; 0: as the samples have it */
  double divisor;               /* of features that are bytes: 255 makes them numbers from 0 to 1; 0: none */
  int64_t words;                /* that texts are made of; 0: not known */
  int label_column;             /* of the table, from 1 on; 0: the samples are of no table */
  const char *label_name;       /* of that column; NULL: none has a name */
  bool label_found;             /* by its name; else it is the last one */
} sample_set;

int64_t sample_set_count(const helio_array *samples); /* 0 for NULL */
bool sample_set_has_bytes(const sample_set *set);     /* as features */

/* Features and, unless y is NULL, labels in batches; shuffled by a buffer of so many, 0: in their order. The set
 * must live as long. */
helio_dataset *sample_set_batches(sample_set *set, helio_array *x, helio_array *y, int64_t batch, int64_t buffer);

/* The features in the shape and the type that the model takes them in: (n, 28, 28) and (n, 784) become (n, 28, 28, 1);
 * bytes stay what they are for a model that takes whole numbers or begins with a layer Rescaling.
 * The exit status, after a message that begins with `path`. */
int sample_set_suit(sample_set *set, const helio_model *model, const char *path);

/* Does the model begin with a layer Rescaling? */
bool sample_set_model_rescales(const helio_model *model);

#endif
