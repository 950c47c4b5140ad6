/* SPDX-License-Identifier: Apache-2.0 */
/* The same again, so often or for ever: each time is an epoch of its own for what stands before. */
#include "data/dataset.h"
#include "data/permute.h"
#include "runtime/error.h"

typedef struct repeat {
  helio_dataset dataset;
  int64_t times; /* −1: for ever */
} repeat;

typedef struct repeat_cursor {
  hi_cursor cursor;
  const repeat *repeat;
  uint64_t epoch; /* of this whole */
  int64_t at;     /* which time it is, from 0 */
  int64_t got;    /* elements of this time */
} repeat_cursor;

/* The first epoch of all is 0 here too, so that a repeat changes nothing of what its first time brings. How many
 * repeats stand inside tells the second time of this one from the second time of those. */
static bool begin_input(repeat_cursor *self) {
  uint64_t key = hi_mix(self->epoch, (uint64_t)self->repeat->dataset.repeats);
  uint64_t epoch = self->at == 0 ? self->epoch : hi_mix(key, (uint64_t)self->at);
  self->got = 0;
  return hi_cursor_begin(self->cursor.input, epoch);
}

static bool begin(hi_cursor *cursor, uint64_t epoch) {
  repeat_cursor *self = (repeat_cursor *)cursor;
  self->epoch = epoch;
  self->at = 0;
  return begin_input(self);
}

/* The input has ended: begins it anew. False: that was the last time, or an empty one, which would never end; or it
 * failed. */
static bool again(repeat_cursor *self) {
  int64_t times = self->repeat->times;
  if (self->got == 0 || (times >= 0 && self->at + 1 >= times)) return false;
  self->at++;
  return begin_input(self);
}

static bool next(hi_cursor *cursor, hi_item **item) {
  repeat_cursor *self = (repeat_cursor *)cursor;
  if (self->repeat->times == 0) return true;
  do {
    if (!hi_cursor_next(cursor->input, item)) return false;
    if (*item) {
      self->got++;
      return true;
    }
  } while (again(self));
  return !helio_error_pending();
}

static int64_t indices(hi_cursor *cursor, int64_t *to, int64_t most) {
  repeat_cursor *self = (repeat_cursor *)cursor;
  int64_t count = 0;
  if (self->repeat->times == 0) return 0;
  for (;;) {
    int64_t now = hi_cursor_indices(cursor->input, to + count, most - count);
    if (now < 0) return -1;
    self->got += now;
    count += now;
    if (count == most || !again(self)) return helio_error_pending() ? -1 : count;
  }
}

/* Epochs whose length is known are passed over as a whole. */
static bool pass_epochs(repeat_cursor *self, int64_t *left, int64_t *skipped) {
  const helio_dataset *input = self->repeat->dataset.inputs[0];
  int64_t length = input->exact ? input->cardinality : -1, times = self->repeat->times;
  if (length <= 0 || *left < length) return true;
  int64_t whole = *left / length;
  if (times >= 0 && whole > times - 1 - self->at) whole = times - 1 - self->at;
  if (whole == 0) return true;
  self->at += whole;
  *left -= whole * length;
  *skipped += whole * length;
  return begin_input(self);
}

static int64_t skip(hi_cursor *cursor, int64_t count) {
  repeat_cursor *self = (repeat_cursor *)cursor;
  int64_t skipped = 0;
  if (self->repeat->times == 0) return 0;
  do {
    if (self->got == 0 && !pass_epochs(self, &count, &skipped)) return -1;
    int64_t now = hi_cursor_skip(cursor->input, count);
    if (now < 0) return -1;
    self->got += now;
    count -= now;
    skipped += now;
  } while (count > 0 && again(self));
  return helio_error_pending() ? -1 : skipped;
}

static const hi_cursor_class cursor_class = {.begin = begin, .next = next, .indices = indices, .skip = skip};

static hi_cursor *open_repeat(helio_dataset *dataset, hi_opening *opening) {
  repeat_cursor *self = hi_dataset_open_input(sizeof *self, &cursor_class, dataset, opening, opening->land);
  if (!self) return NULL;
  self->repeat = (const repeat *)dataset;
  return &self->cursor;
}

static const hi_dataset_class class = {.name = "repeat", .open = open_repeat};

static int64_t cardinality_of(int64_t n, int64_t times) {
  if (n == 0 || times == 0) return 0;
  if (times < 0) return HELIO_INFINITE;
  return n < 0 ? n : hi_times(n, times);
}

helio_dataset *helio_dataset_repeat(helio_dataset *dataset, int64_t times) {
  if (hi_enter(__func__)) return NULL;
  if (times < -1) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%lld times; −1 stands for ever", (long long)times);
    return NULL;
  }
  repeat *self = hi_dataset_new(sizeof *self, &class, &dataset, 1);
  if (!self) return NULL;
  self->times = times;
  self->dataset.repeats++;
  hi_dataset_mark(&self->dataset, (uint64_t)times);
  self->dataset.cardinality = cardinality_of(dataset->cardinality, times);
  return &self->dataset;
}
