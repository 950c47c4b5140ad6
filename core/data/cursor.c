/* SPDX-License-Identifier: Apache-2.0 */
#include "data/cursor.h"

#include <stdlib.h>

#include "runtime/error.h"

int64_t hi_times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* ---- births ---- */

bool hi_opening_add(hi_opening *opening, int64_t birth) {
  if (opening->count == opening->room) {
    int room = opening->room ? 2 * opening->room : 8;
    int64_t *births = realloc(opening->births, (size_t)room * sizeof *births);
    if (!births) {
      hi_fail(HELIO_OUT_OF_MEMORY, "no memory for an iterator");
      return false;
    }
    opening->births = births;
    opening->room = room;
  }
  opening->births[opening->count++] = birth;
  return true;
}

bool hi_opening_birth(hi_opening *opening, atomic_int_least64_t *counter, int64_t *birth) {
  if (opening->given) {
    if (opening->at == opening->count) {
      hi_fail(HELIO_INVALID_ARGUMENT, "the position is of another dataset");
      return false;
    }
    *birth = opening->births[opening->at++];
    if (!opening->frozen)
      atomic_store(counter, *birth + 1); /* the next iteration is the one that would have followed */
    return true;
  }
  *birth = atomic_fetch_add(counter, 1);
  opening->at++;
  return hi_opening_add(opening, *birth);
}

/* ---- calls ---- */

void *hi_cursor_new(size_t bytes, const hi_cursor_class *class, const hi_opening *opening) {
  hi_cursor *cursor = calloc(1, bytes);
  if (!cursor) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for an iterator");
    return NULL;
  }
  cursor->class = class;
  cursor->scene = opening->scene;
  return cursor;
}

void hi_cursor_close(hi_cursor *cursor) {
  if (!cursor) return;
  if (cursor->class->close) cursor->class->close(cursor);
  hi_cursor_close(cursor->input);
  free(cursor);
}

static bool stopped(const hi_cursor *cursor) {
  if (!atomic_load_explicit(&cursor->scene->stopping, memory_order_relaxed)) return false;
  hi_fail(HELIO_ABORTED, "the iterator is being ended");
  return true;
}

bool hi_cursor_begin(hi_cursor *cursor, uint64_t epoch) {
  if (stopped(cursor)) return false;
  cursor->ended = false;
  return cursor->class->begin(cursor, epoch);
}

int64_t hi_cursor_indices(hi_cursor *cursor, int64_t *to, int64_t most) {
  if (stopped(cursor)) return -1;
  int64_t count = cursor->ended ? 0 : cursor->class->indices(cursor, to, most);
  if (count < most) cursor->ended = true;
  return count;
}

bool hi_cursor_next(hi_cursor *cursor, hi_item **item) {
  *item = NULL;
  if (cursor->table) {
    int64_t index, count = hi_cursor_indices(cursor, &index, 1);
    if (count == 1) *item = cursor->table->class->element(cursor->table, index);
    return count == 0 || *item;
  }
  if (stopped(cursor)) return false;
  if (cursor->ended) return true;
  bool well = cursor->class->next(cursor, item);
  if (!*item) cursor->ended = true;
  return well;
}

int64_t hi_cursor_read_past(hi_cursor *cursor, int64_t count) {
  enum { AT_ONCE = 512 };
  int64_t skipped = 0;
  while (skipped < count && !cursor->ended) {
    hi_item *item = NULL;
    int64_t scratch[AT_ONCE], most = count - skipped < AT_ONCE ? count - skipped : AT_ONCE, now;
    if (cursor->table) {
      now = hi_cursor_indices(cursor, scratch, most);
      if (now < 0) return -1;
    } else {
      if (!hi_cursor_next(cursor, &item)) return -1;
      now = item != NULL;
      hi_drop(item);
    }
    skipped += now;
  }
  return skipped;
}

int64_t hi_cursor_skip(hi_cursor *cursor, int64_t count) {
  if (stopped(cursor)) return -1;
  if (count == 0 || cursor->ended) return 0;
  int64_t skipped = (cursor->class->skip ? cursor->class->skip : hi_cursor_read_past)(cursor, count);
  if (skipped < count) cursor->ended = true;
  return skipped;
}
