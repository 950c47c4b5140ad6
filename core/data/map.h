/* SPDX-License-Identifier: Apache-2.0 */
/* A function of the user's on each element: by the thread that asks, or by several. */
#ifndef HI_MAP_H
#define HI_MAP_H

#include "data/dataset.h"

typedef struct hi_map {
  helio_dataset dataset;
  helio_status (*function)(void *argument, helio_element *element);
  void *argument;
  int parallel; /* calls at a time */
  bool unordered;
} hi_map;

/* What the function makes of an item, which is dropped; `number` counts elements. NULL with the error set. */
hi_item *hi_map_apply(const hi_map *map, hi_item *item, int64_t number, const hi_scene *scene);

/* The cursor with threads of its own (map_parallel.c). */
hi_cursor *hi_map_open_parallel(helio_dataset *dataset, hi_opening *opening);

#endif
