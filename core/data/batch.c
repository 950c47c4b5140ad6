/* SPDX-License-Identifier: Apache-2.0 */
/* Several elements as one. Where elements have numbers a batch is a list of those: it is gathered when it lands. */
#include <stdlib.h>

#include "data/dataset.h"
#include "data/padding.h"
#include "data/stack.h"
#include "ops/options.h"
#include "runtime/error.h"

typedef struct batch {
  helio_dataset dataset;
  int64_t count;
  bool drop_remainder;
  hi_padding *padding; /* NULL: elements are of one shape */
} batch;

typedef struct batch_cursor {
  hi_cursor cursor;
  const batch *batch;
} batch_cursor;

static bool begin(hi_cursor *cursor, uint64_t epoch) {
  return hi_cursor_begin(cursor->input, epoch);
}

/* Elements of the input as an array of items: how many there were, −1: failed. */
static int64_t collect(batch_cursor *self, hi_item ***items) {
  int64_t count = 0, room = 0;
  for (hi_item *item; count < self->batch->count; count++) {
    if (!hi_cursor_next(self->cursor.input, &item)) return -1;
    if (!item) break;
    if (count == room) {
      room = room ? 2 * room : 64;
      hi_item **larger = realloc(*items, (size_t)(room + 1) * sizeof *larger); /* NULL behind the last */
      if (!larger) {
        hi_drop(item);
        hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a batch of %lld elements", (long long)self->batch->count);
        return -1;
      }
      *items = larger;
    }
    (*items)[count] = item;
    (*items)[count + 1] = NULL;
  }
  return count;
}

static bool next_of_items(batch_cursor *self, hi_item **item) {
  const batch *dataset = self->batch;
  hi_item **items = NULL;
  int64_t count = collect(self, &items);
  if (count == dataset->count || (count > 0 && !dataset->drop_remainder)) {
    *item = dataset->padding ? hi_pad_items(dataset->padding, items, count) : hi_stack(items, count);
  }
  for (hi_item **each = items; each && *each; each++) hi_drop(*each);
  free(items);
  return *item || !helio_error_pending();
}

/* Fewer than asked for can only be the last ones: memory grows with what is there. */
static hi_indices *collect_indices(batch_cursor *self) {
  int64_t most = self->batch->count, rows = self->batch->dataset.inputs[0]->cardinality;
  if (rows >= 0 && rows < most && self->batch->dataset.exact) most = rows + 1;
  hi_indices *indices = hi_indices_new(most);
  if (!indices) return NULL;
  indices->count = hi_cursor_indices(self->cursor.input, indices->value, most);
  return indices;
}

static bool next(hi_cursor *cursor, hi_item **item) {
  batch_cursor *self = (batch_cursor *)cursor;
  if (!cursor->input->table || self->batch->padding) return next_of_items(self, item);
  hi_indices *indices = collect_indices(self);
  if (!indices) return false;
  bool enough = indices->count == self->batch->count || (indices->count > 0 && !self->batch->drop_remainder);
  if (enough) *item = hi_table_gather(cursor->input->table, indices);
  hi_drop(indices);
  return *item || !helio_error_pending();
}

static int64_t skip(hi_cursor *cursor, int64_t count) {
  batch_cursor *self = (batch_cursor *)cursor;
  int64_t size = self->batch->count, want = hi_times(count, size), got = hi_cursor_skip(cursor->input, want);
  if (got < 0) return -1;
  return got / size + (got % size > 0 && !self->batch->drop_remainder);
}

static const hi_cursor_class cursor_class = {.begin = begin, .next = next, .skip = skip};

/* One large copy is better than many small ones: elements do not land before a batch. */
static hi_cursor *open_batch(helio_dataset *dataset, hi_opening *opening) {
  batch_cursor *self = hi_dataset_open_input(sizeof *self, &cursor_class, dataset, opening, false);
  if (!self) return NULL;
  self->batch = (const batch *)dataset;
  return &self->cursor;
}

static void end(helio_dataset *dataset) {
  free(((batch *)dataset)->padding);
}

static const hi_dataset_class batch_class = {.name = "batch", .open = open_batch};
static const hi_dataset_class padded_class = {.name = "padded_batch", .open = open_batch, .end = end};

static batch *batch_new(const hi_dataset_class *class, helio_dataset *input, int64_t count, bool drop_remainder) {
  if (count < 1) {
    hi_fail(HELIO_INVALID_ARGUMENT, "a batch of %lld elements", (long long)count);
    return NULL;
  }
  batch *self = hi_dataset_new(sizeof *self, class, &input, 1);
  if (!self) return NULL;
  int64_t n = input->cardinality;
  self->count = count;
  self->drop_remainder = drop_remainder;
  self->dataset.table = NULL;
  if (n >= 0) self->dataset.cardinality = n / count + (n % count > 0 && !drop_remainder);
  hi_dataset_mark(&self->dataset, (uint64_t)count);
  hi_dataset_mark(&self->dataset, drop_remainder);
  return self;
}

helio_dataset *helio_dataset_batch_with(const helio_dataset_batch_options *given) {
  helio_dataset_batch_options o;
  if (!hi_options_enter("helio_dataset_batch", &o, sizeof o, given)) return NULL;
  batch *self = batch_new(&batch_class, o.dataset, o.count, o.drop_remainder);
  return self ? &self->dataset : NULL;
}

helio_dataset *helio_dataset_padded_batch_with(const helio_dataset_padded_batch_options *given) {
  helio_dataset_padded_batch_options o;
  if (!hi_options_enter("helio_dataset_padded_batch", &o, sizeof o, given)) return NULL;
  hi_padding *padding = hi_padding_new(o.shape, o.value);
  batch *self = padding ? batch_new(&padded_class, o.dataset, o.count, o.drop_remainder) : NULL;
  if (!self) {
    free(padding);
    return NULL;
  }
  self->padding = padding;
  hi_dataset_mark(&self->dataset, hi_padding_fingerprint(padding));
  return &self->dataset;
}
