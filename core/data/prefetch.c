/* SPDX-License-Identifier: Apache-2.0 */
/* What stands before runs on a thread of its own, some elements ahead, as far as landing on the device. */
#include <stdlib.h>

#include "data/dataset.h"
#include "data/landing.h"
#include "runtime/error.h"

enum { AUTO_FIRST = 2, AUTO_MOST = 8, MOST = 1 << 20 };

typedef struct prefetch {
  helio_dataset dataset;
  int first, most; /* elements ahead, at first and at most */
} prefetch;

typedef struct prefetch_cursor {
  hi_cursor cursor;
  const prefetch *prefetch; /* the input is for the thread while it runs */
  bool land;
  hi_crew crew;
  bool started;
  /* under the crew's lock */
  hi_item **queue; /* a ring with room for the most */
  int at, count, limit;
  bool ended;
  helio_error error; /* instead of an element, behind those of the queue; status 0: none */
} prefetch_cursor;

/* ---- the thread ---- */

static hi_item *produce(prefetch_cursor *self) {
  hi_item *item = NULL, *landed = NULL;
  HELIO_POOL {
    if (hi_cursor_next(self->cursor.input, &item) && item) {
      landed = self->land ? hi_item_landed(item, self->cursor.scene->landing) : item;
      if (self->land) hi_drop(item);
    }
  }
  return landed;
}

static void work(void *argument) {
  prefetch_cursor *self = argument;
  hi_crew *crew = &self->crew;
  pthread_mutex_lock(&crew->lock);
  while (!self->ended) {
    while (!crew->stopping && self->count >= self->limit) pthread_cond_wait(&crew->changed, &crew->lock);
    if (crew->stopping) break;
    pthread_mutex_unlock(&crew->lock);
    hi_item *item = produce(self);
    helio_error error = {.status = HELIO_OK};
    if (!item) helio_error_take(&error);
    pthread_mutex_lock(&crew->lock);
    if (item) self->queue[(self->at + self->count++) % self->prefetch->most] = item;
    if (!item) {
      self->error = error;
      self->ended = true;
    }
    pthread_cond_broadcast(&crew->changed);
  }
  pthread_mutex_unlock(&crew->lock);
}

/* ---- the one who asks ---- */

static void stop(prefetch_cursor *self) {
  if (!self->started) return;
  hi_crew_end(&self->crew);
  while (self->count > 0) hi_drop(self->queue[(self->at + --self->count) % self->prefetch->most]);
  self->started = false;
}

static bool start(prefetch_cursor *self) {
  if (self->started) return true;
  self->at = self->count = 0;
  self->ended = false;
  self->error.status = HELIO_OK;
  if (self->limit == 0) self->limit = self->prefetch->first;
  self->started = !hi_crew_start(&self->crew, self->cursor.scene, 1, work, self);
  return self->started;
}

/* The lock is held. Waiting means that more should be ahead, where that is ours to choose. */
static bool take(prefetch_cursor *self, hi_item **item) {
  hi_crew *crew = &self->crew;
  if (self->count == 0 && !self->ended && self->limit < self->prefetch->most) self->limit++;
  while (self->count == 0 && !self->ended && !crew->stopping) hi_crew_wait(crew);
  if (self->count > 0) {
    *item = self->queue[self->at];
    self->at = (self->at + 1) % self->prefetch->most;
    self->count--;
    pthread_cond_broadcast(&crew->changed);
    return true;
  }
  if (!self->ended) return hi_crew_stopped(crew) == HELIO_OK;
  return !self->error.status || !hi_fail(self->error.status, "%s", self->error.message);
}

static bool next(hi_cursor *cursor, hi_item **item) {
  prefetch_cursor *self = (prefetch_cursor *)cursor;
  if (!start(self)) return false;
  pthread_mutex_lock(&self->crew.lock);
  bool well = take(self, item);
  pthread_mutex_unlock(&self->crew.lock);
  return well;
}

static bool begin(hi_cursor *cursor, uint64_t epoch) {
  prefetch_cursor *self = (prefetch_cursor *)cursor;
  stop(self);
  return hi_cursor_begin(cursor->input, epoch);
}

static int64_t skip(hi_cursor *cursor, int64_t count) {
  bool started = ((prefetch_cursor *)cursor)->started;
  return started ? hi_cursor_read_past(cursor, count) : hi_cursor_skip(cursor->input, count);
}

static void close_prefetch(hi_cursor *cursor) {
  prefetch_cursor *self = (prefetch_cursor *)cursor;
  stop(self);
  free(self->queue);
}

static const hi_cursor_class cursor_class = {.begin = begin, .next = next, .skip = skip, .close = close_prefetch};

static hi_cursor *open_prefetch(helio_dataset *dataset, hi_opening *opening) {
  prefetch_cursor *self = hi_dataset_open_input(sizeof *self, &cursor_class, dataset, opening, opening->land);
  if (!self) return NULL;
  self->prefetch = (const prefetch *)dataset;
  self->land = opening->land;
  self->queue = calloc((size_t)self->prefetch->most, sizeof(hi_item *));
  if (self->queue) return &self->cursor;
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for an iterator");
  hi_cursor_close(&self->cursor);
  return NULL;
}

/* ---- the dataset ---- */

static const hi_dataset_class class = {.name = "prefetch", .open = open_prefetch};

helio_dataset *helio_dataset_prefetch(helio_dataset *dataset, int count) {
  if (hi_enter(__func__)) return NULL;
  if (count < HELIO_AUTO || count > MOST) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%d elements ahead; there may be %d, and HELIO_AUTO chooses", count, MOST);
    return NULL;
  }
  prefetch *self = hi_dataset_new(sizeof *self, &class, &dataset, 1);
  if (!self) return NULL;
  bool automatic = count == HELIO_AUTO || count == 0;
  self->first = automatic ? AUTO_FIRST : count;
  self->most = automatic ? AUTO_MOST : count;
  self->dataset.table = NULL;
  return &self->dataset;
}
