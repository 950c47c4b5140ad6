/* SPDX-License-Identifier: Apache-2.0 */
#include "data/table.h"

#include <stdlib.h>

#include "data/stack.h"
#include "runtime/error.h"

/* ---- one behind the other ---- */

static hi_item *joined_element(const hi_table *table, int64_t index) {
  const hi_table_joined *joined = (const hi_table_joined *)table;
  bool second = index >= joined->first->rows;
  const hi_table *of = second ? joined->second : joined->first;
  return of->class->element(of, second ? index - joined->first->rows : index);
}

static const hi_table_class joined_class = {.element = joined_element};

void hi_table_join(hi_table_joined *joined, const hi_table *first, const hi_table *second) {
  *joined = (hi_table_joined){{&joined_class, first->rows + second->rows}, first, second};
}

/* ---- side by side ---- */

hi_item *hi_item_zip(hi_item **items, int count) {
  int parts = 0;
  bool whole = true;
  hi_item *item = NULL;
  for (int i = 0; i < count; i++) {
    whole = whole && items[i];
    if (items[i]) parts += items[i]->count;
  }
  if (whole && parts > HELIO_MAX_PARTS) {
    hi_fail(HELIO_INVALID_ARGUMENT, "helio_dataset_zip: elements of %d parts; there may be %d", parts, HELIO_MAX_PARTS);
  } else if (whole) {
    item = hi_item_new(parts);
  }
  parts = 0;
  for (int i = 0; i < count; i++) {
    for (int p = 0; item && p < items[i]->count; p++) hi_part_copy(&item->part[parts++], &items[i]->part[p]);
    hi_drop(items[i]);
  }
  return item;
}

static hi_item *zipped_element(const hi_table *table, int64_t index) {
  const hi_table_zipped *zipped = (const hi_table_zipped *)table;
  hi_item *items[HELIO_MAX_PARTS];
  for (int i = 0; i < zipped->count; i++) items[i] = zipped->tables[i]->class->element(zipped->tables[i], index);
  return hi_item_zip(items, zipped->count);
}

static hi_item *zipped_gather(const hi_table *table, hi_indices *indices) {
  const hi_table_zipped *zipped = (const hi_table_zipped *)table;
  hi_item *items[HELIO_MAX_PARTS];
  for (int i = 0; i < zipped->count; i++) items[i] = hi_table_gather(zipped->tables[i], indices);
  return hi_item_zip(items, zipped->count);
}

static const hi_table_class zipped_class = {.element = zipped_element, .gather = zipped_gather};

void hi_table_zip(hi_table_zipped *zipped, const hi_table *const *tables, int count) {
  *zipped = (hi_table_zipped){.table = {&zipped_class, tables[0]->rows}, .count = count};
  for (int i = 0; i < count; i++) {
    zipped->tables[i] = tables[i];
    if (tables[i]->rows < zipped->table.rows) zipped->table.rows = tables[i]->rows;
  }
}

/* ---- batches ---- */

/* Rows of one of two joined tables can be gathered there. */
static hi_item *gather_inside(const hi_table_joined *joined, hi_indices *indices) {
  bool second = indices->count > 0 && indices->value[0] >= joined->first->rows;
  for (int64_t i = 0; i < indices->count; i++) {
    if ((indices->value[i] >= joined->first->rows) != second) return NULL;
  }
  if (!second) return hi_table_gather(joined->first, indices);
  hi_indices *moved = hi_indices_new(indices->count);
  if (!moved) return NULL;
  for (int64_t i = 0; i < indices->count; i++) moved->value[i] = indices->value[i] - joined->first->rows;
  hi_item *item = hi_table_gather(joined->second, moved);
  hi_drop(moved);
  return item;
}

hi_item *hi_table_gather(const hi_table *table, hi_indices *indices) {
  if (table->class->gather) return table->class->gather(table, indices);
  if (table->class == &joined_class) {
    hi_item *item = gather_inside((const hi_table_joined *)table, indices);
    if (item || helio_error_pending()) return item;
  }
  hi_item **items = calloc((size_t)indices->count + 1, sizeof *items), *batch = NULL;
  int64_t count = 0;
  if (!items) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a batch of %lld elements", (long long)indices->count);
    return NULL;
  }
  while (count < indices->count && (items[count] = table->class->element(table, indices->value[count]))) count++;
  if (count == indices->count) batch = hi_stack(items, count);
  while (count > 0) hi_drop(items[--count]);
  free(items);
  return batch;
}
