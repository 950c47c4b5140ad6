/* SPDX-License-Identifier: Apache-2.0 */
/* Each element is drawn from a buffer that is refilled in order. Where elements have numbers, those are shuffled and no
 * element is held. */
#include <stdlib.h>

#include "data/dataset.h"
#include "data/permute.h"
#include "ops/options.h"
#include "runtime/error.h"
#include "tensor/seed.h"

typedef struct shuffle {
  helio_dataset dataset;
  int64_t buffer;
  uint64_t key;
  bool same; /* in all iterations */
  atomic_int_least64_t iterations;
} shuffle;

typedef union token {
  int64_t index;
  hi_item *item;
} token;

enum { AHEAD = 1024 };

typedef struct shuffle_cursor {
  hi_cursor cursor;
  shuffle *shuffle;
  int64_t birth;
  hi_draws draws;
  token *buffer;
  int64_t count, room;
  /* numbers that were read ahead of the buffer */
  int64_t ahead[AHEAD];
  int64_t ahead_at, ahead_count;
} shuffle_cursor;

static void clear(shuffle_cursor *self) {
  for (int64_t i = 0; !self->cursor.table && i < self->count; i++) hi_drop(self->buffer[i].item);
  self->count = 0;
  self->ahead_at = self->ahead_count = 0;
}

static bool begin(hi_cursor *cursor, uint64_t epoch) {
  shuffle_cursor *self = (shuffle_cursor *)cursor;
  const shuffle *dataset = self->shuffle;
  clear(self);
  self->draws.state = dataset->same ? dataset->key : hi_mix(hi_mix(dataset->key, (uint64_t)self->birth), epoch);
  return hi_cursor_begin(cursor->input, epoch);
}

static bool make_room(shuffle_cursor *self) {
  if (self->count < self->room) return true;
  int64_t room = self->room ? 2 * self->room : 1024;
  if (room > self->shuffle->buffer) room = self->shuffle->buffer;
  token *buffer =
      (uint64_t)room < PTRDIFF_MAX / sizeof *buffer ? realloc(self->buffer, (size_t)room * sizeof *buffer) : NULL;
  if (!buffer) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for shuffling %lld elements", (long long)room);
    return false;
  }
  self->buffer = buffer;
  self->room = room;
  return true;
}

/* The input's next: 1, 0 at its end, −1 failed. */
static int pull(shuffle_cursor *self, token *got) {
  if (!self->cursor.table) {
    if (!hi_cursor_next(self->cursor.input, &got->item)) return -1;
    return got->item != NULL;
  }
  if (self->ahead_at == self->ahead_count) {
    int64_t count = hi_cursor_indices(self->cursor.input, self->ahead, AHEAD);
    if (count <= 0) return (int)count;
    self->ahead_at = 0;
    self->ahead_count = count;
  }
  got->index = self->ahead[self->ahead_at++];
  return 1;
}

/* 1 and an element that was drawn, 0 at the end, −1 failed. */
static int draw(shuffle_cursor *self, token *drawn) {
  int pulled = 1;
  while (self->count < self->shuffle->buffer && pulled > 0) {
    if (!make_room(self)) return -1;
    pulled = pull(self, &self->buffer[self->count]);
    if (pulled > 0) self->count++;
  }
  if (pulled < 0) return -1;
  if (self->count == 0) return 0;
  int64_t which = hi_draw(&self->draws, self->count);
  *drawn = self->buffer[which];
  self->buffer[which] = self->buffer[--self->count];
  return 1;
}

static bool next(hi_cursor *cursor, hi_item **item) {
  token drawn;
  int result = draw((shuffle_cursor *)cursor, &drawn);
  if (result > 0) *item = drawn.item;
  return result >= 0;
}

static int64_t indices(hi_cursor *cursor, int64_t *to, int64_t most) {
  int64_t count = 0;
  int result = 1;
  for (token drawn; count < most && (result = draw((shuffle_cursor *)cursor, &drawn)) > 0;) to[count++] = drawn.index;
  return result < 0 ? -1 : count;
}

static void close_shuffle(hi_cursor *cursor) {
  shuffle_cursor *self = (shuffle_cursor *)cursor;
  clear(self);
  free(self->buffer);
}

static const hi_cursor_class cursor_class = {.begin = begin, .next = next, .indices = indices, .close = close_shuffle};

/* A buffer of elements is not a device's business: they do not land before it. */
static hi_cursor *open_shuffle(helio_dataset *dataset, hi_opening *opening) {
  shuffle *opened = (shuffle *)dataset;
  int64_t birth = 0;
  if (!opened->same && !hi_opening_birth(opening, &opened->iterations, &birth)) return NULL;
  shuffle_cursor *self = hi_dataset_open_input(sizeof *self, &cursor_class, dataset, opening, false);
  if (!self) return NULL;
  self->shuffle = opened;
  self->birth = birth;
  return &self->cursor;
}

static const hi_dataset_class class = {.name = "shuffle", .open = open_shuffle};

static bool make_key(int64_t seed, uint64_t *key) {
  uint64_t times = 0;
  *key = hi_seed_key((uint64_t)seed, "shuffle");
  if (!seed && hi_seed_count(*key, &times)) return false;
  *key = hi_mix(*key, times);
  return true;
}

helio_dataset *helio_dataset_shuffle_with(const helio_dataset_shuffle_options *given) {
  helio_dataset_shuffle_options o;
  uint64_t key;
  if (!hi_options_enter("helio_dataset_shuffle", &o, sizeof o, given)) return NULL;
  if (o.buffer < 1) {
    hi_fail(HELIO_INVALID_ARGUMENT, "a buffer of %lld elements", (long long)o.buffer);
    return NULL;
  }
  if (!hi_dataset_usable(o.dataset) || !make_key(o.seed, &key)) return NULL;
  shuffle *self = hi_dataset_new(sizeof *self, &class, &o.dataset, 1);
  if (!self) return NULL;
  self->buffer = o.buffer;
  self->key = key;
  self->same = o.no_reshuffle;
  hi_dataset_mark(&self->dataset, (uint64_t)o.buffer);
  hi_dataset_mark(&self->dataset, key);
  hi_dataset_mark(&self->dataset, o.no_reshuffle);
  return &self->dataset;
}
