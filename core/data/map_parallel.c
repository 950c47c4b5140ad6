/* SPDX-License-Identifier: Apache-2.0 */
/* A map by several threads. Each takes the next element of those before, one thread at a time, then calls the function
 * beside the others. Results wait in slots until they are asked for: twice as many as there are threads, so that one
 * slow element holds up the others only for a while. */
#include <stdlib.h>

#include "data/map.h"
#include "runtime/error.h"

typedef enum slot_state { EMPTY, BUSY, DONE } slot_state;

typedef struct slot {
  slot_state state;
  int64_t number;
  hi_item *item; /* NULL when done: the error */
  helio_error error;
} slot;

typedef struct parallel_cursor {
  hi_cursor cursor;
  const hi_map *map; /* the input is for the thread that is `pulling` */
  hi_crew crew;
  bool started;
  /* under the crew's lock */
  bool pulling, input_ended;
  int64_t first;      /* elements that were skipped before the threads began */
  int64_t taken, out; /* from the input, and by the one who asks; from `first` on */
  int slot_count;
  slot *slots;
} parallel_cursor;

/* ---- the threads ---- */

static slot *free_slot(parallel_cursor *self, int64_t number) {
  if (!self->map->unordered) return &self->slots[number % self->slot_count];
  slot *found = self->slots;
  while (found->state != EMPTY) found++; /* there is one: fewer are under way than there are slots */
  return found;
}

static bool may_pull(const parallel_cursor *self) {
  return !self->pulling && self->taken - self->out < self->slot_count;
}

static void finish(parallel_cursor *self, slot *into, hi_item *item) {
  into->item = item;
  into->state = DONE;
  if (!item) {
    helio_error_take(&into->error);
    self->input_ended = true; /* nobody will ask for what follows */
  }
  pthread_cond_broadcast(&self->crew.changed);
}

/* The next element and the slot for it; false when there is none. The lock is held, and given up in between. */
static bool pull(parallel_cursor *self, slot **into, hi_item **item) {
  while (!self->crew.stopping && !self->input_ended && !may_pull(self)) {
    pthread_cond_wait(&self->crew.changed, &self->crew.lock);
  }
  if (self->crew.stopping || self->input_ended) return false;
  self->pulling = true;
  pthread_mutex_unlock(&self->crew.lock);
  bool well = hi_cursor_next(self->cursor.input, item);
  pthread_mutex_lock(&self->crew.lock);
  self->pulling = false;
  if (*item || !well) {
    *into = free_slot(self, self->taken);
    (*into)->state = BUSY;
    (*into)->number = self->first + self->taken++;
  }
  if (!well) finish(self, *into, NULL);
  if (!*item) self->input_ended = true;
  pthread_cond_broadcast(&self->crew.changed);
  return *item;
}

static void work(void *argument) {
  parallel_cursor *self = argument;
  slot *into = NULL;
  hi_item *item = NULL;
  pthread_mutex_lock(&self->crew.lock);
  while (pull(self, &into, &item)) {
    pthread_mutex_unlock(&self->crew.lock);
    item = hi_map_apply(self->map, item, into->number, self->cursor.scene);
    pthread_mutex_lock(&self->crew.lock);
    finish(self, into, item);
    item = NULL;
  }
  pthread_mutex_unlock(&self->crew.lock);
}

/* ---- the one who asks ---- */

static void empty_slots(parallel_cursor *self) {
  for (int i = 0; i < self->slot_count; i++) {
    hi_drop(self->slots[i].item);
    self->slots[i] = (slot){.state = EMPTY};
  }
}

static void stop(parallel_cursor *self) {
  if (!self->started) return;
  hi_crew_end(&self->crew);
  empty_slots(self);
  self->started = false;
}

static bool start(parallel_cursor *self) {
  if (self->started) return true;
  self->pulling = self->input_ended = false;
  self->taken = self->out = 0;
  self->started = !hi_crew_start(&self->crew, self->cursor.scene, self->map->parallel, work, self);
  if (!self->started) empty_slots(self); /* some threads may have worked before one could not be had */
  return self->started;
}

static slot *ready_slot(parallel_cursor *self) {
  if (!self->map->unordered) {
    slot *next = &self->slots[self->out % self->slot_count];
    return next->state == DONE ? next : NULL;
  }
  for (int i = 0; i < self->slot_count; i++) {
    if (self->slots[i].state == DONE) return &self->slots[i];
  }
  return NULL;
}

static bool next(hi_cursor *cursor, hi_item **item) {
  parallel_cursor *self = (parallel_cursor *)cursor;
  slot *ready = NULL;
  if (!start(self)) return false;
  pthread_mutex_lock(&self->crew.lock);
  while (!(ready = ready_slot(self)) && !self->crew.stopping &&
         !(self->input_ended && !self->pulling && self->taken == self->out)) {
    hi_crew_wait(&self->crew);
  }
  bool stopping = !ready && self->crew.stopping;
  if (stopping) hi_crew_stopped(&self->crew);
  if (ready) {
    *item = ready->item;
    if (!*item) hi_fail(ready->error.status, "%s", ready->error.message);
    *ready = (slot){.state = EMPTY};
    self->out++;
    pthread_cond_broadcast(&self->crew.changed);
  }
  pthread_mutex_unlock(&self->crew.lock);
  return ready ? *item != NULL : !stopping;
}

static bool begin(hi_cursor *cursor, uint64_t epoch) {
  parallel_cursor *self = (parallel_cursor *)cursor;
  stop(self);
  self->first = 0;
  return hi_cursor_begin(cursor->input, epoch);
}

static int64_t skip(hi_cursor *cursor, int64_t count) {
  parallel_cursor *self = (parallel_cursor *)cursor;
  if (self->started) return hi_cursor_read_past(cursor, count);
  int64_t skipped = hi_cursor_skip(cursor->input, count);
  if (skipped > 0) self->first += skipped;
  return skipped;
}

static void close_parallel(hi_cursor *cursor) {
  parallel_cursor *self = (parallel_cursor *)cursor;
  stop(self);
  free(self->slots);
}

static const hi_cursor_class cursor_class = {.begin = begin, .next = next, .skip = skip, .close = close_parallel};

hi_cursor *hi_map_open_parallel(helio_dataset *dataset, hi_opening *opening) {
  parallel_cursor *self = hi_dataset_open_input(sizeof *self, &cursor_class, dataset, opening, true);
  if (!self) return NULL;
  self->map = (const hi_map *)dataset;
  self->slot_count = 2 * self->map->parallel;
  self->slots = calloc((size_t)self->slot_count, sizeof *self->slots);
  if (self->slots) return &self->cursor;
  hi_fail(HELIO_OUT_OF_MEMORY, "no memory for an iterator");
  hi_cursor_close(&self->cursor);
  return NULL;
}
