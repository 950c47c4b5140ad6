/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets: how elements come about. They hold those before them and never change, but for what they count and cache.
 */
#ifndef HI_DATASET_H
#define HI_DATASET_H

#include "data/cursor.h"
#include "tensor/object.h"

typedef struct hi_dataset_class {
  const char *name;
  /* NULL with the error set; the cursor has not begun. The dataset outlives it. */
  hi_cursor *(*open)(helio_dataset *dataset, hi_opening *opening);
  void (*end)(helio_dataset *dataset); /* frees what it has besides its inputs; NULL: nothing */
} hi_dataset_class;

/* First in what each kind has besides. */
struct helio_dataset {
  hi_object object;
  const hi_dataset_class *class;
  helio_dataset *inputs[HELIO_MAX_PARTS]; /* held */
  int input_count;
  int64_t cardinality;
  bool exact;            /* the cardinality can be relied on, unlike what a user said of a generator */
  const hi_table *table; /* what the numbers of its cursors mean; NULL: its elements have none */
  bool in_order;         /* its element i is row i of the table, always */
  int repeats;           /* how many it has inside each other, itself among them */
  uint64_t fingerprint;  /* of how it was made */
};

/* A dataset of `bytes`, in the innermost pool, that holds its inputs and has the fingerprint of their kinds; NULL with
 * the error set, also if an input is NULL. Its cardinality, exactness and table are those of the first input. */
void *hi_dataset_new(size_t bytes, const hi_dataset_class *class, helio_dataset *const *inputs, int count);

/* Something else that tells this dataset from others. */
void hi_dataset_mark(helio_dataset *dataset, uint64_t number);

hi_cursor *hi_dataset_open(helio_dataset *dataset, hi_opening *opening);

/* For the kinds with one input: a cursor of `bytes` whose input is open, with `land` for what comes out of that one.
 * NULL with the error set. */
void *hi_dataset_open_input(size_t bytes, const hi_cursor_class *class, helio_dataset *dataset, hi_opening *opening,
                            bool land);

/* A cursor that runs through the table of a dataset that is in order. */
hi_cursor *hi_rows_open(helio_dataset *dataset, hi_opening *opening);

/* Sets the error and returns false if it is NULL. */
bool hi_dataset_usable(const helio_dataset *dataset);

#endif
