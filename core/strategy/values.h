/* SPDX-License-Identifier: Apache-2.0 */
/* Values of which each replica has its own. */
#ifndef HI_VALUES_H
#define HI_VALUES_H

#include "data/item.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"

struct helio_values {
  hi_object object;
  helio_strategy *strategy; /* a reference */
  unsigned losses;          /* of the strategy when they were made */
  int count, parts;         /* replicas, tensors of each */
  hi_item *batch;           /* that they are parts of, on the host, held; NULL: not known */
  helio_batch_split split;  /* of it */
  int64_t global_rows;      /* of the batch that these are parts of; −1: not known */
  int64_t first_row[HELIO_MAX_REPLICAS];
  helio_tensor *tensors[]; /* references: all replicas' part 0, then part 1, … */
};

/* Without tensors yet, owned by the innermost pool; NULL with the error set. */
helio_values *hi_values_new(helio_strategy *strategy, int parts);
helio_values *hi_values_new_for(helio_strategy *strategy, const hi_replicas_now *now, int parts);

/* Puts a tensor in its place and holds it; NULL: nothing. */
void hi_values_set(helio_values *values, int replica, int part, helio_tensor *tensor);

/* Is the part one and the same object for all of several replicas? */
bool hi_values_plain(const helio_values *values, int part);

/* A replica's tuple. */
helio_element hi_values_element(const helio_values *values, int replica);

/* A batch's parts for the replicas that there are now; NULL with the error set. */
helio_values *hi_values_cut(helio_strategy *strategy, helio_batch_split split, hi_item *batch);

/* Sets the error and returns false if they are NULL, another strategy's, or made for replicas of which some were lost
 * since. */
bool hi_values_usable(const helio_strategy *strategy, const helio_values *values);

/* The single part, whose tensors are then looked at; NULL with the error set if there are more or none. */
helio_tensor *const *hi_values_single(const helio_strategy *strategy, const helio_values *values);

#endif
