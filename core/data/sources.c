/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of arrays, files, sequences and numbers: their elements are reached by number. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/sequences.h"
#include "runtime/error.h"
#include "tensor/pool.h"

typedef struct source {
  helio_dataset dataset;
  hi_table table;
  helio_array *arrays[HELIO_MAX_PARTS]; /* held */
  int count;
  helio_sequences *sequences; /* held */
} source;

static const source *of(const hi_table *table) {
  return (const source *)((const char *)table - offsetof(source, table));
}

static void end(helio_dataset *dataset) {
  source *self = (source *)dataset;
  for (int i = 0; i < self->count; i++) hi_drop(self->arrays[i]);
  hi_drop(self->sequences);
}

static source *source_new(const hi_dataset_class *class, const hi_table_class *table, int64_t rows) {
  source *self = hi_dataset_new(sizeof *self, class, NULL, 0);
  if (!self) return NULL;
  self->table = (hi_table){table, rows};
  self->dataset.table = &self->table;
  self->dataset.in_order = true;
  self->dataset.cardinality = rows;
  hi_dataset_mark(&self->dataset, (uint64_t)rows);
  return self;
}

static void take_array(source *self, helio_array *array) {
  hi_hold(array);
  self->arrays[self->count++] = array;
  hi_dataset_mark(&self->dataset, (uint64_t)array->type);
  for (int i = 0; i < array->shape.rank; i++) hi_dataset_mark(&self->dataset, (uint64_t)array->shape.extent[i]);
}

static bool arrays_usable(helio_array *const *arrays, int count) {
  if (count < 1 || count > HELIO_MAX_PARTS) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%d arrays; an element has from 1 to %d parts", count, HELIO_MAX_PARTS);
    return false;
  }
  if (!arrays) hi_fail(HELIO_INVALID_ARGUMENT, "arrays is NULL");
  for (int i = 0; arrays && i < count; i++) hi_array_usable(arrays[i], "an array");
  return !helio_error_pending();
}

/* ---- slices ---- */

static hi_item *slice(const hi_table *table, int64_t index) {
  const source *self = of(table);
  hi_item *item = hi_item_new(self->count);
  for (int i = 0; item && i < self->count; i++) hi_part_set_row(&item->part[i], self->arrays[i], index);
  return item;
}

static hi_item *slices(const hi_table *table, hi_indices *indices) {
  const source *self = of(table);
  hi_item *item = hi_item_new(self->count);
  for (int i = 0; item && i < self->count; i++) hi_part_set_rows(&item->part[i], self->arrays[i], indices);
  return item;
}

static const hi_table_class slices_table = {.element = slice, .gather = slices};
static const hi_dataset_class slices_class = {.name = "slices", .open = hi_rows_open, .end = end};

static bool as_many_rows(helio_array *const *arrays, int count) {
  for (int i = 0; i < count; i++) {
    const helio_shape *shape = &arrays[i]->shape;
    if (shape->rank == 0) {
      hi_fail(HELIO_INVALID_ARGUMENT, "array %d is a scalar, which has no rows; helio_dataset_from_tensors takes it",
              i);
      return false;
    }
    if (shape->extent[0] != arrays[0]->shape.extent[0]) {
      hi_fail(HELIO_INVALID_ARGUMENT, "arrays have different numbers of samples: %lld and %lld",
              (long long)arrays[0]->shape.extent[0], (long long)shape->extent[0]);
      return false;
    }
  }
  return true;
}

static helio_dataset *of_slices(helio_array *const *arrays, int count) {
  if (!arrays_usable(arrays, count) || !as_many_rows(arrays, count)) return NULL;
  source *self = source_new(&slices_class, &slices_table, arrays[0]->shape.extent[0]);
  for (int i = 0; self && i < count; i++) take_array(self, arrays[i]);
  return self ? &self->dataset : NULL;
}

helio_dataset *helio_dataset_of_slices(helio_array *const *arrays, int count) {
  return hi_enter(__func__) ? NULL : of_slices(arrays, count);
}

/* ---- wholes ---- */

static hi_item *whole(const hi_table *table, int64_t index) {
  const source *self = of(table);
  hi_item *item = hi_item_new(self->count);
  (void)index;
  for (int i = 0; item && i < self->count; i++) hi_part_set_array(&item->part[i], self->arrays[i]);
  return item;
}

static const hi_table_class wholes_table = {.element = whole};
static const hi_dataset_class wholes_class = {.name = "tensors", .open = hi_rows_open, .end = end};

helio_dataset *helio_dataset_of_tensors(helio_array *const *arrays, int count) {
  if (hi_enter(__func__) || !arrays_usable(arrays, count)) return NULL;
  source *self = source_new(&wholes_class, &wholes_table, 1);
  for (int i = 0; self && i < count; i++) take_array(self, arrays[i]);
  return self ? &self->dataset : NULL;
}

/* ---- numbers ---- */

static hi_item *number(const hi_table *table, int64_t index) {
  (void)table;
  hi_item *item = hi_item_new(1);
  if (item) hi_part_set_number(&item->part[0], index);
  return item;
}

/* The numbers of the rows are the rows. */
static hi_item *numbers(const hi_table *table, hi_indices *indices) {
  (void)table;
  hi_item *item = hi_item_new(1);
  if (item) hi_part_set_data(&item->part[0], indices, indices->value, HELIO_INT64, &HELIO_SHAPE(indices->count));
  return item;
}

static const hi_table_class range_table = {.element = number, .gather = numbers};
static const hi_dataset_class range_class = {.name = "range", .open = hi_rows_open};

helio_dataset *helio_dataset_range(int64_t count) {
  if (hi_enter(__func__)) return NULL;
  if (count < 0) {
    hi_fail(HELIO_INVALID_ARGUMENT, "a range of %lld numbers", (long long)count);
    return NULL;
  }
  source *self = source_new(&range_class, &range_table, count);
  return self ? &self->dataset : NULL;
}

/* ---- sequences ---- */

static hi_item *sequence(const hi_table *table, int64_t index) {
  const source *self = of(table);
  hi_item *item = hi_item_new(1 + self->count);
  if (!item) return NULL;
  const int64_t *starts = self->sequences->starts;
  hi_part_set_data(&item->part[0], self->sequences, self->sequences->values + starts[index], HELIO_INT32,
                   &HELIO_SHAPE(starts[index + 1] - starts[index]));
  if (self->count) hi_part_set_row(&item->part[1], self->arrays[0], index);
  return item;
}

static const hi_table_class sequences_table = {.element = sequence};
static const hi_dataset_class sequences_class = {.name = "sequences", .open = hi_rows_open, .end = end};

helio_dataset *helio_dataset_from_sequences(helio_sequences *sequences, helio_array *labels) {
  if (hi_enter(__func__)) return NULL;
  if (!sequences) {
    hi_fail(HELIO_INVALID_ARGUMENT, "sequences is NULL");
    return NULL;
  }
  if (labels && (!as_many_rows(&labels, 1) || labels->shape.extent[0] != sequences->count)) {
    char text[HI_SHAPE_TEXT];
    hi_fail(HELIO_INVALID_ARGUMENT, "labels of shape %s for %lld sequences", hi_shape_text(&labels->shape, text),
            (long long)sequences->count);
    return NULL;
  }
  source *self = source_new(&sequences_class, &sequences_table, sequences->count);
  if (!self) return NULL;
  hi_hold(sequences);
  self->sequences = sequences;
  if (labels) take_array(self, labels);
  return &self->dataset;
}

/* ---- files ---- */

/* In small letters or capitals. */
static bool ends_with(const char *text, size_t length, const char *tail) {
  size_t bytes = strlen(tail);
  return length >= bytes && strncasecmp(text + length - bytes, tail, bytes) == 0;
}

/* Where the member's name begins, 0: there is none. A colon may stand in the name of a file. */
static size_t member_of(const char *path) {
  const char *colon = strrchr(path, ':');
  return colon && access(path, F_OK) != 0 ? (size_t)(colon - path) + 1 : 0;
}

static helio_array *read_member(const char *path, const char *member) {
  size_t length = strlen(path);
  if (ends_with(path, length, ".npz")) return helio_read_npz(path, member);
  if (ends_with(path, length, ".safetensors")) return helio_read_safetensors(path, member);
  helio_csv *csv = helio_read_csv(path);
  return csv ? helio_csv_column(csv, member) : NULL;
}

static helio_array *read_single(const char *path) {
  const char *const several[] = {".npz", ".safetensors", ".csv"};
  size_t length = strlen(path);
  for (size_t i = 0; i < sizeof several / sizeof several[0]; i++) {
    if (!ends_with(path, length, several[i])) continue;
    hi_fail(HELIO_INVALID_ARGUMENT, "%s has several arrays; the name of one follows behind a colon, \"%s:NAME\"", path,
            path);
    return NULL;
  }
  return ends_with(path, length, ".npy") ? helio_read_npy(path) : helio_read_idx(path);
}

static helio_array *read_array(const char *path) {
  size_t member = path ? member_of(path) : 0;
  if (!path) {
    hi_fail(HELIO_INVALID_ARGUMENT, "a path is NULL");
    return NULL;
  }
  if (!member) return read_single(path);
  char *file = strndup(path, member - 1);
  if (!file) {
    hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a path");
    return NULL;
  }
  helio_array *array = read_member(file, path + member);
  free(file);
  return array;
}

helio_dataset *helio_dataset_of_files(const char *const *paths, int count) {
  helio_array *arrays[HELIO_MAX_PARTS];
  helio_dataset *dataset = NULL;
  if (hi_enter(__func__)) return NULL;
  if (!paths || count < 1 || count > HELIO_MAX_PARTS) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%d files; an element has from 1 to %d parts", paths ? count : 0, HELIO_MAX_PARTS);
    return NULL;
  }
  helio_scope pool = helio_pool_enter();
  for (int i = 0; i < count && !helio_error_pending(); i++) arrays[i] = read_array(paths[i]);
  if (!helio_error_pending()) dataset = of_slices(arrays, count);
  return hi_pool_leave_with(&pool, dataset);
}
