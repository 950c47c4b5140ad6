/* SPDX-License-Identifier: Apache-2.0 */
#include "data/dataset.h"

#include <stdlib.h>

#include "data/permute.h"
#include "runtime/error.h"

static void end(void *object) {
  helio_dataset *dataset = object;
  if (dataset->class && dataset->class->end) dataset->class->end(dataset);
  for (int i = 0; i < dataset->input_count; i++) hi_drop(dataset->inputs[i]);
  free(dataset);
}

bool hi_dataset_usable(const helio_dataset *dataset) {
  if (!dataset) hi_fail(HELIO_INVALID_ARGUMENT, "the dataset is NULL");
  return dataset;
}

void hi_dataset_mark(helio_dataset *dataset, uint64_t number) {
  dataset->fingerprint = hi_mix(dataset->fingerprint, number);
}

void *hi_dataset_new(size_t bytes, const hi_dataset_class *class, helio_dataset *const *inputs, int count) {
  for (int i = 0; i < count; i++) {
    if (!hi_dataset_usable(inputs[i])) return NULL;
  }
  helio_dataset *dataset = hi_object_new(bytes, end, "a dataset");
  if (!dataset) return NULL;
  hi_census_name(&dataset->object, &class->name);
  dataset->class = class;
  dataset->exact = true;
  for (const char *c = class->name; *c; c++) hi_dataset_mark(dataset, (unsigned char)*c);
  for (int i = 0; i < count; i++) {
    hi_hold(inputs[i]);
    dataset->inputs[dataset->input_count++] = inputs[i];
    dataset->exact = dataset->exact && inputs[i]->exact;
    if (inputs[i]->repeats > dataset->repeats) dataset->repeats = inputs[i]->repeats;
    hi_dataset_mark(dataset, inputs[i]->fingerprint);
  }
  if (count > 0) {
    dataset->cardinality = inputs[0]->cardinality;
    dataset->table = inputs[0]->table;
  }
  return dataset;
}

hi_cursor *hi_dataset_open(helio_dataset *dataset, hi_opening *opening) {
  return dataset->class->open(dataset, opening);
}

void *hi_dataset_open_input(size_t bytes, const hi_cursor_class *class, helio_dataset *dataset, hi_opening *opening,
                            bool land) {
  hi_cursor *cursor = hi_cursor_new(bytes, class, opening);
  if (!cursor) return NULL;
  bool outside = opening->land;
  cursor->table = dataset->table;
  opening->land = land;
  cursor->input = hi_dataset_open(dataset->inputs[0], opening);
  opening->land = outside;
  if (cursor->input) return cursor;
  hi_cursor_close(cursor);
  return NULL;
}

int64_t helio_dataset_cardinality(const helio_dataset *dataset) {
  if (hi_enter_unstarted(__func__) || !hi_dataset_usable(dataset)) return HELIO_UNKNOWN;
  return dataset->cardinality;
}

/* ---- rows of a table in order ---- */

typedef struct rows {
  hi_cursor cursor;
  int64_t at;
} rows;

static bool rows_begin(hi_cursor *cursor, uint64_t epoch) {
  (void)epoch;
  ((rows *)cursor)->at = 0;
  return true;
}

static int64_t rows_skip(hi_cursor *cursor, int64_t count) {
  rows *self = (rows *)cursor;
  int64_t left = cursor->table->rows - self->at;
  if (count > left) count = left;
  self->at += count;
  return count;
}

static int64_t rows_indices(hi_cursor *cursor, int64_t *to, int64_t most) {
  int64_t at = ((rows *)cursor)->at, count = rows_skip(cursor, most);
  for (int64_t i = 0; i < count; i++) to[i] = at + i;
  return count;
}

static const hi_cursor_class rows_class = {.begin = rows_begin, .indices = rows_indices, .skip = rows_skip};

hi_cursor *hi_rows_open(helio_dataset *dataset, hi_opening *opening) {
  rows *self = hi_cursor_new(sizeof *self, &rows_class, opening);
  if (!self) return NULL;
  self->cursor.table = dataset->table;
  return &self->cursor;
}
