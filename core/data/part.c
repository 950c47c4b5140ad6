/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a dataset: take, skip and shard are one thing. Elements first, first + step, … of those before, and not more
 * than so many. */
#include "data/dataset.h"
#include "runtime/error.h"

typedef struct part {
  helio_dataset dataset;
  int64_t first, step;
  int64_t most; /* −1: all */
} part;

typedef struct part_cursor {
  hi_cursor cursor;
  const part *part;
  int64_t before; /* elements of the input to be left out before the next one */
  int64_t left;   /* −1: any number */
} part_cursor;

static bool begin(hi_cursor *cursor, uint64_t epoch) {
  part_cursor *self = (part_cursor *)cursor;
  self->before = self->part->first;
  self->left = self->part->most;
  return hi_cursor_begin(cursor->input, epoch);
}

/* Leaves out what stands before the next element: 1, 0 at the end, −1 failed. */
static int reach(part_cursor *self) {
  if (self->left == 0) return 0;
  if (self->before > 0) {
    int64_t skipped = hi_cursor_skip(self->cursor.input, self->before);
    if (skipped < self->before) return skipped < 0 ? -1 : 0;
    self->before = 0;
  }
  return 1;
}

static void passed(part_cursor *self, int64_t count) {
  if (count == 0) return;
  if (self->left > 0) self->left -= count;
  self->before = self->part->step - 1;
}

static bool next(hi_cursor *cursor, hi_item **item) {
  part_cursor *self = (part_cursor *)cursor;
  int reached = reach(self);
  if (reached <= 0) return reached == 0;
  bool well = hi_cursor_next(cursor->input, item);
  passed(self, *item != NULL);
  return well;
}

static int64_t indices(hi_cursor *cursor, int64_t *to, int64_t most) {
  part_cursor *self = (part_cursor *)cursor;
  int64_t count = 0;
  while (count < most) {
    int reached = reach(self);
    if (reached <= 0) return reached < 0 ? -1 : count;
    int64_t now = self->part->step == 1 ? most - count : 1;
    if (self->left >= 0 && now > self->left) now = self->left;
    int64_t got = hi_cursor_indices(cursor->input, to + count, now);
    if (got < 0) return -1;
    passed(self, got);
    count += got;
    if (got < now) break;
  }
  return count;
}

static int64_t skip(hi_cursor *cursor, int64_t count) {
  part_cursor *self = (part_cursor *)cursor;
  if (self->left >= 0 && count > self->left) count = self->left;
  if (count == 0) return 0;
  int64_t step = self->part->step, behind = hi_times(count - 1, step);
  int64_t want = behind > INT64_MAX - 1 - self->before ? INT64_MAX : self->before + 1 + behind;
  int64_t got = hi_cursor_skip(cursor->input, want);
  if (got < 0) return -1;
  if (got < want) count = got <= self->before ? 0 : 1 + (got - self->before - 1) / step;
  passed(self, count);
  return count;
}

static const hi_cursor_class cursor_class = {.begin = begin, .next = next, .indices = indices, .skip = skip};

static hi_cursor *open_part(helio_dataset *dataset, hi_opening *opening) {
  part_cursor *self = hi_dataset_open_input(sizeof *self, &cursor_class, dataset, opening, opening->land);
  if (!self) return NULL;
  self->part = (const part *)dataset;
  return &self->cursor;
}

static helio_dataset *part_new(const hi_dataset_class *class, helio_dataset *input, int64_t first, int64_t step,
                               int64_t most) {
  part *self = hi_dataset_new(sizeof *self, class, &input, 1);
  if (!self) return NULL;
  self->first = first;
  self->step = step;
  self->most = most;
  hi_dataset_mark(&self->dataset, (uint64_t)first);
  hi_dataset_mark(&self->dataset, (uint64_t)step);
  hi_dataset_mark(&self->dataset, (uint64_t)most);
  return &self->dataset;
}

/* ---- the three ---- */

static const hi_dataset_class take_class = {.name = "take", .open = open_part};
static const hi_dataset_class skip_class = {.name = "skip", .open = open_part};
static const hi_dataset_class shard_class = {.name = "shard", .open = open_part};

static bool valid_count(int64_t count) {
  if (count >= -1) return true;
  hi_fail(HELIO_INVALID_ARGUMENT, "a count of %lld; −1 stands for all", (long long)count);
  return false;
}

helio_dataset *helio_dataset_take(helio_dataset *dataset, int64_t count) {
  if (hi_enter(__func__) || !valid_count(count)) return NULL;
  helio_dataset *self = part_new(&take_class, dataset, 0, 1, count);
  if (!self) return NULL;
  int64_t n = dataset->cardinality;
  if (count >= 0 && (n == HELIO_INFINITE || n > count)) self->cardinality = count;
  return self;
}

helio_dataset *helio_dataset_skip(helio_dataset *dataset, int64_t count) {
  if (hi_enter(__func__) || !valid_count(count)) return NULL;
  bool all = count < 0;
  helio_dataset *self = part_new(&skip_class, dataset, all ? 0 : count, 1, all ? 0 : -1);
  if (!self) return NULL;
  int64_t n = dataset->cardinality;
  if (n >= 0) self->cardinality = all || n < count ? 0 : n - count;
  return self;
}

helio_dataset *helio_dataset_shard(helio_dataset *dataset, int64_t shards, int64_t index) {
  if (hi_enter(__func__)) return NULL;
  if (shards < 1 || index < 0 || index >= shards) {
    hi_fail(HELIO_INVALID_ARGUMENT, "shard %lld of %lld; there must be one at least, and they count from 0",
            (long long)index, (long long)shards);
    return NULL;
  }
  helio_dataset *self = part_new(&shard_class, dataset, index, shards, -1);
  if (!self) return NULL;
  int64_t n = dataset->cardinality;
  if (n >= 0) self->cardinality = n / shards + (index < n % shards);
  return self;
}
