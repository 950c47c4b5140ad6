/* SPDX-License-Identifier: Apache-2.0 */
/* Several datasets as one: side by side, or one behind the other. */
#include "data/dataset.h"
#include "runtime/error.h"

typedef struct joined {
  helio_dataset dataset;
  union {
    hi_table_joined joined;
    hi_table_zipped zipped;
  } table;
} joined;

typedef struct joined_cursor {
  hi_cursor cursor;
  int count, at; /* which one it is at */
  int64_t rows;  /* of the first one's table */
  hi_cursor *inputs[HELIO_MAX_PARTS];
} joined_cursor;

static bool begin(hi_cursor *cursor, uint64_t epoch) {
  joined_cursor *self = (joined_cursor *)cursor;
  self->at = 0;
  for (int i = 0; i < self->count; i++) {
    if (!hi_cursor_begin(self->inputs[i], epoch)) return false;
  }
  return true;
}

static void close_joined(hi_cursor *cursor) {
  joined_cursor *self = (joined_cursor *)cursor;
  for (int i = 0; i < self->count; i++) hi_cursor_close(self->inputs[i]);
}

static hi_cursor *open_joined(helio_dataset *dataset, hi_opening *opening, const hi_cursor_class *class) {
  if (dataset->in_order) return hi_rows_open(dataset, opening);
  joined_cursor *self = hi_cursor_new(sizeof *self, class, opening);
  if (!self) return NULL;
  self->cursor.table = dataset->table;
  if (dataset->table) self->rows = dataset->inputs[0]->table->rows;
  for (int i = 0; i < dataset->input_count; i++) {
    self->inputs[i] = hi_dataset_open(dataset->inputs[i], opening);
    if (!self->inputs[i]) {
      hi_cursor_close(&self->cursor);
      return NULL;
    }
    self->count++;
  }
  return &self->cursor;
}

/* ---- side by side ---- */

static bool zip_next(hi_cursor *cursor, hi_item **item) {
  joined_cursor *self = (joined_cursor *)cursor;
  hi_item *items[HELIO_MAX_PARTS];
  int count = 0;
  while (count < self->count && hi_cursor_next(self->inputs[count], &items[count]) && items[count]) count++;
  if (count == self->count) {
    *item = hi_item_zip(items, count);
  } else {
    while (count > 0) hi_drop(items[--count]);
  }
  return *item || !helio_error_pending();
}

static int64_t zip_skip(hi_cursor *cursor, int64_t count) {
  joined_cursor *self = (joined_cursor *)cursor;
  int64_t least = count;
  for (int i = 0; i < self->count; i++) {
    int64_t skipped = hi_cursor_skip(self->inputs[i], count);
    if (skipped < least) least = skipped;
  }
  return least;
}

static const hi_cursor_class zip_cursor = {.begin = begin, .next = zip_next, .skip = zip_skip, .close = close_joined};

static hi_cursor *open_zip(helio_dataset *dataset, hi_opening *opening) {
  return open_joined(dataset, opening, &zip_cursor);
}

static const hi_dataset_class zip_class = {.name = "zip", .open = open_zip};

static int64_t shortest(helio_dataset *const *datasets, int count) {
  int64_t least = HELIO_INFINITE;
  for (int i = 0; i < count; i++) {
    int64_t n = datasets[i]->cardinality;
    if (n == HELIO_UNKNOWN) return n;
    if (n >= 0 && (least < 0 || n < least)) least = n;
  }
  return least;
}

helio_dataset *helio_dataset_zip(helio_dataset *const *datasets, int count) {
  const hi_table *tables[HELIO_MAX_PARTS];
  if (hi_enter(__func__)) return NULL;
  if (!datasets || count < 1 || count > HELIO_MAX_PARTS) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%d datasets; an element has from 1 to %d parts", datasets ? count : 0,
            HELIO_MAX_PARTS);
    return NULL;
  }
  joined *self = hi_dataset_new(sizeof *self, &zip_class, datasets, count);
  if (!self) return NULL;
  bool in_order = true;
  for (int i = 0; i < count; i++) {
    in_order = in_order && datasets[i]->in_order;
    tables[i] = datasets[i]->table;
  }
  if (in_order) hi_table_zip(&self->table.zipped, tables, count);
  self->dataset.table = in_order ? &self->table.zipped.table : NULL;
  self->dataset.in_order = in_order;
  self->dataset.cardinality = shortest(datasets, count);
  return &self->dataset;
}

/* ---- one behind the other ---- */

static bool chain_next(hi_cursor *cursor, hi_item **item) {
  joined_cursor *self = (joined_cursor *)cursor;
  for (; self->at < self->count; self->at++) {
    if (!hi_cursor_next(self->inputs[self->at], item)) return false;
    if (*item) return true;
  }
  return true;
}

static int64_t chain_indices(hi_cursor *cursor, int64_t *to, int64_t most) {
  joined_cursor *self = (joined_cursor *)cursor;
  int64_t count = 0;
  for (; self->at < self->count; self->at++) {
    int64_t now = hi_cursor_indices(self->inputs[self->at], to + count, most - count);
    if (now < 0) return -1;
    for (int64_t i = 0; self->at > 0 && i < now; i++) to[count + i] += self->rows;
    count += now;
    if (count == most) break;
  }
  return count;
}

static int64_t chain_skip(hi_cursor *cursor, int64_t count) {
  joined_cursor *self = (joined_cursor *)cursor;
  int64_t skipped = 0;
  for (; self->at < self->count; self->at++) {
    int64_t now = hi_cursor_skip(self->inputs[self->at], count - skipped);
    if (now < 0) return -1;
    skipped += now;
    if (skipped == count) break;
  }
  return skipped;
}

static const hi_cursor_class chain_cursor = {
    .begin = begin, .next = chain_next, .indices = chain_indices, .skip = chain_skip, .close = close_joined};

static hi_cursor *open_chain(helio_dataset *dataset, hi_opening *opening) {
  return open_joined(dataset, opening, &chain_cursor);
}

static const hi_dataset_class chain_class = {.name = "concatenate", .open = open_chain};

static int64_t sum_of(int64_t a, int64_t b) {
  if (a == HELIO_INFINITE || b == HELIO_INFINITE) return HELIO_INFINITE;
  if (a == HELIO_UNKNOWN || b == HELIO_UNKNOWN) return HELIO_UNKNOWN;
  return a > INT64_MAX - b ? INT64_MAX : a + b;
}

helio_dataset *helio_dataset_concatenate(helio_dataset *dataset, helio_dataset *behind) {
  helio_dataset *both[] = {dataset, behind};
  if (hi_enter(__func__)) return NULL;
  joined *self = hi_dataset_new(sizeof *self, &chain_class, both, 2);
  if (!self) return NULL;
  const hi_table *first = dataset->table, *second = behind->table;
  bool tables = first && second && first->rows <= INT64_MAX - second->rows;
  if (tables) hi_table_join(&self->table.joined, first, second);
  self->dataset.table = tables ? &self->table.joined.table : NULL;
  self->dataset.in_order = tables && dataset->in_order && behind->in_order;
  self->dataset.cardinality = sum_of(dataset->cardinality, behind->cardinality);
  return &self->dataset;
}
