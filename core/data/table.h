/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that can be reached by number. What stands behind such a source moves numbers about instead of elements. */
#ifndef HI_DATA_TABLE_H
#define HI_DATA_TABLE_H

#include "data/item.h"

typedef struct hi_table hi_table;

typedef struct hi_table_class {
  /* Items with a reference of the caller's; NULL with the error set. */
  hi_item *(*element)(const hi_table *table, int64_t index);
  /* Many as one batch, without moving them; NULL here: elements must be stacked one by one. */
  hi_item *(*gather)(const hi_table *table, hi_indices *indices);
} hi_table_class;

/* First in what each kind has besides. */
struct hi_table {
  const hi_table_class *class;
  int64_t rows;
};

/* Rows of one table behind those of another, and rows of several side by side. They do not hold their tables: the
 * dataset does that holds theirs. */
typedef struct hi_table_joined {
  hi_table table;
  const hi_table *first, *second;
} hi_table_joined;

typedef struct hi_table_zipped {
  hi_table table;
  int count;
  const hi_table *tables[HELIO_MAX_PARTS];
} hi_table_zipped;

void hi_table_join(hi_table_joined *joined, const hi_table *first, const hi_table *second);
void hi_table_zip(hi_table_zipped *zipped, const hi_table *const *tables, int count);

/* A batch of elements of any table. */
hi_item *hi_table_gather(const hi_table *table, hi_indices *indices);

/* Parts of several items as one; all are dropped. NULL with the error set. */
hi_item *hi_item_zip(hi_item **items, int count);

#endif
