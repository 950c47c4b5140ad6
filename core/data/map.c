/* SPDX-License-Identifier: Apache-2.0 */
#include "data/map.h"

#include "data/landing.h"
#include "ops/options.h"
#include "runtime/error.h"
#include "runtime/machine.h"

/* ---- one call ---- */

static bool valid(const helio_element *element) {
  if (element->count < 1 || element->count > HELIO_MAX_PARTS) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the function left %d parts; there are 1 to %d", element->count, HELIO_MAX_PARTS);
    return false;
  }
  for (int i = 0; i < element->count; i++) {
    if (element->part[i]) continue;
    hi_fail(HELIO_INVALID_ARGUMENT, "the function left NULL for part %d", i);
    return false;
  }
  return true;
}

static hi_item *call(const hi_map *map, const hi_item *item, const hi_scene *scene) {
  helio_element element;
  if (hi_item_land(item, 0, -1, scene->device, &element)) return NULL;
  helio_status status = map->function(map->argument, &element);
  if (status && !helio_error_pending()) hi_fail(status, "the function returned %s", helio_status_name(status));
  return helio_error_pending() || !valid(&element) ? NULL : hi_item_of(&element);
}

hi_item *hi_map_apply(const hi_map *map, hi_item *item, int64_t number, const hi_scene *scene) {
  hi_item *result = NULL;
  HELIO_POOL result = call(map, item, scene);
  hi_drop(item);
  if (!result) hi_error_prefix("helio_dataset_map, element %lld: ", (long long)number);
  return result;
}

/* ---- by the thread that asks ---- */

typedef struct map_cursor {
  hi_cursor cursor;
  const hi_map *map;
  hi_cursor *input;
  int64_t at;
} map_cursor;

static bool begin(hi_cursor *cursor, uint64_t epoch) {
  map_cursor *self = (map_cursor *)cursor;
  self->at = 0;
  return hi_cursor_begin(self->input, epoch);
}

static bool next(hi_cursor *cursor, hi_item **item) {
  map_cursor *self = (map_cursor *)cursor;
  hi_item *before;
  if (!hi_cursor_next(self->input, &before)) return false;
  if (!before) return true;
  *item = hi_map_apply(self->map, before, self->at++, cursor->scene);
  return *item;
}

static int64_t skip(hi_cursor *cursor, int64_t count) {
  map_cursor *self = (map_cursor *)cursor;
  int64_t skipped = hi_cursor_skip(self->input, count);
  if (skipped > 0) self->at += skipped;
  return skipped;
}

static void close_map(hi_cursor *cursor) {
  hi_cursor_close(((map_cursor *)cursor)->input);
}

static const hi_cursor_class cursor_class = {.begin = begin, .next = next, .skip = skip, .close = close_map};

static hi_cursor *open_map(helio_dataset *dataset, hi_opening *opening) {
  const hi_map *map = (const hi_map *)dataset;
  bool land = opening->land;
  opening->land = true; /* the function wants tensors */
  hi_cursor *cursor = NULL;
  if (map->parallel > 1) {
    cursor = hi_map_open_parallel(dataset, opening);
  } else {
    map_cursor *self = hi_cursor_new(sizeof *self, &cursor_class, opening);
    if (self) {
      self->map = map;
      self->input = hi_dataset_open(dataset->inputs[0], opening);
      cursor = &self->cursor;
      if (!self->input) {
        hi_cursor_close(cursor);
        cursor = NULL;
      }
    }
  }
  opening->land = land;
  return cursor;
}

/* ---- the dataset ---- */

static const hi_dataset_class class = {.name = "map", .open = open_map};

helio_dataset *helio_dataset_map_with(const helio_dataset_map_options *given) {
  helio_dataset_map_options o;
  enum { MOST = 1024 };
  if (!hi_options_enter("helio_dataset_map", &o, sizeof o, given)) return NULL;
  if (!o.function || o.parallel < HELIO_AUTO || o.parallel > MOST) {
    if (!o.function) hi_fail(HELIO_INVALID_ARGUMENT, "function is NULL");
    if (o.function) hi_fail(HELIO_INVALID_ARGUMENT, "%d calls at a time; there may be %d", o.parallel, MOST);
    return NULL;
  }
  hi_map *self = hi_dataset_new(sizeof *self, &class, &o.dataset, 1);
  if (!self) return NULL;
  self->function = o.function;
  self->argument = o.argument;
  self->parallel = o.parallel == HELIO_AUTO ? hi_machine_cores() : o.parallel;
  self->unordered = o.unordered;
  self->dataset.table = NULL;
  return &self->dataset;
}
