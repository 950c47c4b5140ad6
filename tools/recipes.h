/* SPDX-License-Identifier: Apache-2.0 */
/* What `helio train` knows by name. A new recipe is an entry of the table in recipes.c, with a function that makes
 * arrays of its samples and one that makes its model, in which only the library's public headers are needed, and its
 * name in the two texts below, which tests/scripts/train.sh compares. A model has the name of its recipe, so that a
 * file with it tells where it comes from. */
#ifndef RECIPES_H
#define RECIPES_H

#include "objective.h"

/* What a shell offers, and what help says. */
#define RECIPE_WORDS "fashion-mnist|mnist|reuters|linear"
#define RECIPE_HELP                                                                                                    \
  "Recipes:\n"                                                                                                         \
  "  fashion-mnist  images of clothes, 10 kinds: two convolutions, Adam, batches of 128\n"                             \
  "  mnist          images of digits: the same model, batches of 4096 for each device\n"                               \
  "  reuters        topics of news, 46 of them: an embedding, two convolutions, Nadam, batches of 32\n"                \
  "  linear         a line through a point: SGD, batches of 10; needs no data\n"

typedef struct recipe {
  const char *name;
  const char *set; /* of data; NULL: they are made in place */

  /* The samples of the set as arrays; `test` has none where they are made in place. False with the error pending. */
  bool (*take)(sample_set *set, const helio_samples *train, const helio_samples *test);
  helio_model *(*make_model)(const char *name, const sample_set *set); /* NULL with the error pending */

  const char *optimizer;
  double rate; /* 0: the optimizer's own */
  objective objective;
  int64_t batch;
  bool for_each_replica; /* the batch; else it is the global one */
  int64_t micro_batch;   /* samples that a device computes at a time; 0: all of its part */
  int epochs;
  int64_t buffer; /* of the shuffle; 0: the whole set */
} recipe;

extern const recipe recipes[]; /* the last one has no name */

const recipe *recipe_named(const char *name); /* NULL: there is none */

/* The recipe that made the model, as its name and its layers tell; NULL: none did, or the error is pending. */
const recipe *recipe_of_model(const helio_model *model);

/* The recipe's own, if the loss is. */
void recipe_add_metrics(const recipe *r, objective *aim);

/* "unknown recipe 'WORD'; did you mean …", and the exit status. */
int recipe_unknown(const char *word, const char *path);

/* Reads the samples from `data`, a folder or a file, NULL: where sets are looked for. The exit status, after a message
 * that begins with `path`. */
int recipe_load(const recipe *r, const char *data, sample_set *set, const char *path);

#endif
