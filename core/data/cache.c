/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of one whole iteration, kept. Where elements have numbers, those are kept.
 *
 * What stands before a cache is always run with the births of the first iteration and in its first epoch, until one of
 * them has come to its end: so what a cache holds follows from its births, whoever fills it. */
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "runtime/error.h"
#include "runtime/runtime.h"

typedef union token {
  int64_t index;
  hi_item *item;
} token;

/* An object without a pool, shared by the dataset and the cursors that read it. */
typedef struct store {
  hi_object object;
  bool items;    /* else numbers */
  unsigned ends; /* of the library, when it was made: tensors do not outlive it */
  int64_t count, room;
  token *tokens;
} store;

typedef struct cache {
  helio_dataset dataset;
  pthread_mutex_t lock;
  store *full;     /* NULL: not yet */
  bool born;       /* births are known */
  int64_t *births; /* of those before */
  int birth_count;
  unsigned version; /* of the births */
} cache;

typedef struct cache_cursor {
  hi_cursor cursor;
  cache *cache;
  unsigned version; /* of the births that the input was opened with */
  store *reading;   /* held; NULL: it fills */
  store *filling;   /* held */
  int64_t at;
} cache_cursor;

/* ---- stores ---- */

static void end_store(void *object) {
  store *self = object;
  for (int64_t i = 0; self->items && i < self->count; i++) hi_drop(self->tokens[i].item);
  free(self->tokens);
  free(self);
}

static store *store_new(bool items) {
  store *self = calloc(1, sizeof *self);
  if (!self) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a cache");
    return NULL;
  }
  hi_object_begin(self, end_store, "a cache");
  self->items = items;
  self->ends = hi_runtime_ends();
  return self;
}

static bool store_reserve(store *self, int64_t more) {
  if (self->room - self->count >= more) return true;
  int64_t room = 2 * self->room > self->count + more ? 2 * self->room : self->count + more;
  token *tokens = realloc(self->tokens, (size_t)room * sizeof *tokens);
  if (!tokens) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a cache of %lld elements", (long long)room);
    return false;
  }
  self->tokens = tokens;
  self->room = room;
  return true;
}

/* ---- filling and reading ---- */

static void forget(cache_cursor *self) {
  hi_drop(self->reading);
  hi_drop(self->filling);
  self->reading = self->filling = NULL;
  self->at = 0;
}

/* A half filled store is dropped, and those before begin anew. */
static bool begin(hi_cursor *cursor, uint64_t epoch) {
  cache_cursor *self = (cache_cursor *)cursor;
  cache *dataset = self->cache;
  (void)epoch;
  forget(self);
  pthread_mutex_lock(&dataset->lock);
  if (dataset->full && dataset->full->items && dataset->full->ends != hi_runtime_ends()) {
    hi_drop(dataset->full);
    dataset->full = NULL;
  }
  if (dataset->full && self->version == dataset->version) {
    self->reading = dataset->full;
    hi_hold(self->reading);
  }
  pthread_mutex_unlock(&dataset->lock);
  if (self->reading) return true;
  self->filling = store_new(!cursor->table);
  return self->filling && hi_cursor_begin(cursor->input, 0);
}

/* Those before have ended: the store is whole. */
static void publish(cache_cursor *self) {
  cache *dataset = self->cache;
  pthread_mutex_lock(&dataset->lock);
  if (!dataset->full && self->version == dataset->version) {
    dataset->full = self->filling;
    hi_hold(dataset->full);
  }
  pthread_mutex_unlock(&dataset->lock);
}

static bool next(hi_cursor *cursor, hi_item **item) {
  cache_cursor *self = (cache_cursor *)cursor;
  if (self->reading) {
    if (self->at < self->reading->count) *item = self->reading->tokens[self->at++].item;
    if (*item) hi_hold(*item);
    return true;
  }
  if (!store_reserve(self->filling, 1) || !hi_cursor_next(cursor->input, item)) return false;
  if (*item) {
    hi_hold(*item);
    self->filling->tokens[self->filling->count++].item = *item;
  } else {
    publish(self);
  }
  return true;
}

static int64_t read_indices(cache_cursor *self, int64_t *to, int64_t most) {
  int64_t left = self->reading->count - self->at, count = most < left ? most : left;
  for (int64_t i = 0; i < count; i++) to[i] = self->reading->tokens[self->at++].index;
  return count;
}

static int64_t indices(hi_cursor *cursor, int64_t *to, int64_t most) {
  cache_cursor *self = (cache_cursor *)cursor;
  if (self->reading) return read_indices(self, to, most);
  int64_t count = hi_cursor_indices(cursor->input, to, most);
  if (count < 0 || !store_reserve(self->filling, count)) return -1;
  for (int64_t i = 0; i < count; i++) self->filling->tokens[self->filling->count++].index = to[i];
  if (count < most) publish(self);
  return count;
}

static void close_cache(hi_cursor *cursor) {
  forget((cache_cursor *)cursor);
}

static const hi_cursor_class cursor_class = {.begin = begin, .next = next, .indices = indices, .close = close_cache};

/* ---- births ---- */

/* Takes the births as those of the cache; where they were others, what it holds is not theirs. */
static bool set_births(cache *self, const int64_t *births, int count) {
  if (self->born && memcmp(self->births, births, (size_t)count * sizeof *births) == 0) return true;
  int64_t *copy = malloc(((size_t)count + 1) * sizeof *copy);
  if (!copy) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for an iterator");
    return false;
  }
  if (count > 0) memcpy(copy, births, (size_t)count * sizeof *copy);
  free(self->births);
  hi_drop(self->full);
  self->full = NULL;
  self->births = copy;
  self->birth_count = count;
  self->born = true;
  self->version++;
  return true;
}

/* Opens those before with the births that the cache has already. */
static hi_cursor *open_again(cache *self, hi_opening *opening) {
  hi_opening again = {
      .scene = opening->scene, .given = true, .frozen = true, .births = self->births, .count = self->birth_count};
  hi_cursor *input = hi_dataset_open(self->dataset.inputs[0], &again);
  for (int i = 0; input && i < self->birth_count; i++) {
    opening->at++;
    if (hi_opening_add(opening, self->births[i])) continue;
    hi_cursor_close(input);
    input = NULL;
  }
  return input;
}

static hi_cursor *open_input(cache *self, hi_opening *opening) {
  if (self->born && !opening->given) return open_again(self, opening);
  bool land = opening->land;
  int first = opening->at;
  opening->land = false;
  hi_cursor *input = hi_dataset_open(self->dataset.inputs[0], opening);
  opening->land = land;
  if (input && !set_births(self, opening->births ? opening->births + first : NULL, opening->at - first)) {
    hi_cursor_close(input);
    input = NULL;
  }
  return input;
}

static hi_cursor *open_cache(helio_dataset *dataset, hi_opening *opening) {
  cache_cursor *self = hi_cursor_new(sizeof *self, &cursor_class, opening);
  if (!self) return NULL;
  self->cache = (cache *)dataset;
  self->cursor.table = dataset->table;
  pthread_mutex_lock(&self->cache->lock);
  self->cursor.input = open_input(self->cache, opening);
  self->version = self->cache->version;
  pthread_mutex_unlock(&self->cache->lock);
  if (self->cursor.input) return &self->cursor;
  hi_cursor_close(&self->cursor);
  return NULL;
}

/* ---- the dataset ---- */

static void end(helio_dataset *dataset) {
  cache *self = (cache *)dataset;
  hi_drop(self->full);
  free(self->births);
  pthread_mutex_destroy(&self->lock);
}

static const hi_dataset_class class = {.name = "cache", .open = open_cache, .end = end};

helio_dataset *helio_dataset_cache(helio_dataset *dataset) {
  if (hi_enter(__func__)) return NULL;
  cache *self = hi_dataset_new(sizeof *self, &class, &dataset, 1);
  if (!self) return NULL;
  pthread_mutex_init(&self->lock, NULL);
  self->dataset.in_order = dataset->in_order;
  return &self->dataset;
}
