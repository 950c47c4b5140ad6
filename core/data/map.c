/* SPDX-License-Identifier: Apache-2.0 */
#include "data/map.h"

#include "data/landing.h"
#include "ops/options.h"
#include "runtime/error.h"
#include "runtime/machine.h"
#include "runtime/progress.h"

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
  hi_activity before = hi_progress_expose();
  helio_status status = map->function(map->argument, &element);
  hi_progress_change(before);
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
  int64_t at;
} map_cursor;

static bool begin(hi_cursor *cursor, uint64_t epoch) {
  map_cursor *self = (map_cursor *)cursor;
  self->at = 0;
  return hi_cursor_begin(cursor->input, epoch);
}

static bool next(hi_cursor *cursor, hi_item **item) {
  map_cursor *self = (map_cursor *)cursor;
  hi_item *before;
  if (!hi_cursor_next(cursor->input, &before)) return false;
  if (!before) return true;
  *item = hi_map_apply(self->map, before, self->at++, cursor->scene);
  return *item;
}

static int64_t skip(hi_cursor *cursor, int64_t count) {
  map_cursor *self = (map_cursor *)cursor;
  int64_t skipped = hi_cursor_skip(cursor->input, count);
  if (skipped > 0) self->at += skipped;
  return skipped;
}

static const hi_cursor_class cursor_class = {.begin = begin, .next = next, .skip = skip};

/* The function wants tensors: what comes before a map lands. */
static hi_cursor *open_map(helio_dataset *dataset, hi_opening *opening) {
  const hi_map *map = (const hi_map *)dataset;
  if (map->parallel > 1) return hi_map_open_parallel(dataset, opening);
  map_cursor *self = hi_dataset_open_input(sizeof *self, &cursor_class, dataset, opening, true);
  if (!self) return NULL;
  self->map = map;
  return &self->cursor;
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
