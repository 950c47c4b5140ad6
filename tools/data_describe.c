/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a file has, and its parts. */
#include "data_describe.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "output.h"
#include "table_file.h"

/* A new part of the file. */
static json_t *add_part(json_t *file, const char *name) {
  json_t *part = json_object();
  if (name) output_set(part, "name", output_text(name));
  output_append(json_object_get(file, "parts"), part);
  return part;
}

static bool describe_array(json_t *file, helio_array *array, const data_view *view) {
  return array && data_describe_array(add_part(file, NULL), array, view);
}

static bool describe_idx(const char *path, const data_view *view, json_t *file) {
  return describe_array(file, helio_read_idx(path), view);
}

static bool describe_npy(const char *path, const data_view *view, json_t *file) {
  return describe_array(file, helio_read_npy(path), view);
}

/* ---- archives: what is wrong with one member says nothing of the others ---- */

static void add_error(json_t *part) {
  helio_error error = {.message = ""};
  helio_error_take(&error);
  output_set(part, "error", output_text(error.message));
}

static void describe_npz_member(json_t *part, const char *path, const char *name, const data_view *view) {
  helio_array *array = helio_read_npz(path, name);
  if (array && data_describe_array(part, array, view)) return;
  if (helio_error_pending() == HELIO_NOT_SUPPORTED) { /* Python's objects, perhaps */
    helio_error ignored;
    helio_error_take(&ignored);
    helio_sequences *sequences = helio_read_npz_sequences(path, name);
    if (sequences) data_describe_sequences(part, sequences, view);
  }
  if (helio_error_pending()) add_error(part);
}

static void describe_tensor(json_t *part, const char *path, const char *name, const data_view *view) {
  helio_array *array = helio_read_safetensors(path, name);
  if (!array || !data_describe_array(part, array, view)) add_error(part);
}

static bool describe_members(const char *path, char **names, const data_view *view, json_t *file,
                             void (*describe)(json_t *, const char *, const char *, const data_view *)) {
  for (int i = 0; names && names[i]; i++) {
    HELIO_POOL describe(add_part(file, names[i]), path, names[i], view);
  }
  free(names);
  return names != NULL;
}

static bool describe_npz(const char *path, const data_view *view, json_t *file) {
  return describe_members(path, helio_npz_names(path), view, file, describe_npz_member);
}

static bool describe_safetensors(const char *path, const data_view *view, json_t *file) {
  return describe_members(path, helio_safetensors_names(path), view, file, describe_tensor);
}

/* ---- tables: the columns are the parts ---- */

static void describe_column(json_t *part, helio_csv *csv, int column, const data_view *view) {
  helio_type type = helio_csv_type(csv, column);
  json_t *cells = json_array();
  for (int64_t row = 0; row < helio_csv_rows(csv) && row < view->rows; row++) {
    output_append(cells, output_text(helio_csv_text(csv, row, column)));
  }
  output_set(part, "cells", cells);
  if (type == 0) {
    output_set(part, "type", output_text("text"));
    return;
  }
  helio_array *array = helio_csv_column_at(csv, column);
  bool good = array && data_describe_array(part, array, &(data_view){.rows = 0});
  json_object_del(part, "values");
  if (!good) add_error(part);
}

static bool describe_table(const char *path, const data_view *view, json_t *file) {
  helio_csv *csv = table_file_open(path, view->no_header);
  if (!csv) return false;
  output_set(file, "rows", json_integer(helio_csv_rows(csv)));
  for (int i = 0; i < helio_csv_columns(csv); i++) {
    HELIO_POOL describe_column(add_part(file, helio_csv_name(csv, i)), csv, i, view);
  }
  return true;
}

/* ---- formats ---- */

typedef struct format {
  const char *name;
  const char *endings[4]; /* of the file's name */
  const char *mark;       /* what the file begins with, for names that tell nothing; NULL: nothing of its own */
  size_t mark_bytes;
  bool (*describe)(const char *path, const data_view *view, json_t *file);
} format;

static const format formats[] = {
    {"idx", {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"}, "\0\0", 2, describe_idx},
    {"idx", {0}, "\x1F\x8B", 2, describe_idx},
    {"npy", {".npy"}, "\x93NUMPY", 6, describe_npy},
    {"npz", {".npz"}, "PK\3\4", 4, describe_npz},
    {"csv", {".csv"}, NULL, 0, describe_table},
    {"tsv", {".tsv"}, NULL, 0, describe_table},
    {"safetensors", {".safetensors"}, NULL, 0, describe_safetensors},
};

enum { FORMATS = sizeof formats / sizeof formats[0] };

static const format *format_by_name(const char *path) {
  for (int i = 0; i < FORMATS; i++) {
    for (int k = 0; k < 4 && formats[i].endings[k]; k++) {
      if (command_ends_in(path, formats[i].endings[k])) return &formats[i];
    }
  }
  return NULL;
}

static const format *format_by_mark(const char *path) {
  char begin[8];
  int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return NULL;
  ssize_t got = read(descriptor, begin, sizeof begin);
  close(descriptor);
  for (int i = 0; i < FORMATS; i++) {
    const format *one = &formats[i];
    if (one->mark && got >= (ssize_t)one->mark_bytes && memcmp(begin, one->mark, one->mark_bytes) == 0) return one;
  }
  return NULL;
}

json_t *data_describe(const char *path, const data_view *view) {
  const format *chosen = format_by_name(path);
  if (!chosen) chosen = format_by_mark(path);
  if (!chosen) return NULL;
  json_t *file = json_object();
  output_set(file, "path", output_text(path));
  output_set(file, "format", output_text(chosen->name));
  output_set(file, "parts", json_array());
  if (chosen->describe(path, view, file)) return file;
  json_decref(file);
  return NULL;
}
