/* SPDX-License-Identifier: Apache-2.0 */
/* helio data show: what is in files of data. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"
#include "data_describe.h"
#include "output.h"
#include "runtime/nearest.h"

enum { DATA, ROWS, NO_HEADER, JSON };

static const command_option options[] = {
    [DATA] = {"data", "DIR", NULL, "look here first for the files of a known set"},
    [ROWS] = {"rows", "COUNT", NULL, "rows of each array to show (default: 5)"},
    [NO_HEADER] = {"no-header", NULL, NULL, "the first line of a table is data, not the names of its columns"},
    [JSON] = {"json", NULL, NULL, "print JSON"},
    {0},
};

enum {
  USUAL_ROWS = 5,
  MOST_ROWS = 1000,
  MOST_BARS = 64,    /* of a histogram that is printed */
  BAR = 40,          /* characters of the longest */
  MOST_COLUMNS = 12, /* of a table that is printed */
  CELL = 24,         /* bytes of a cell of a table */
  TEXT = 200,
};

/* ---------------------------------------------------------------------------------------------------------------------
 * Text from the description
 */

static const char *text_of(json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static long long number_of(json_t *object, const char *key) {
  return (long long)json_integer_value(json_object_get(object, key));
}

static void print_number(json_t *value) {
  if (json_is_integer(value)) {
    printf("%lld", (long long)json_integer_value(value));
  } else if (json_is_real(value)) {
    printf("%.6g", json_real_value(value));
  } else {
    printf("%s", json_string_value(value));
  }
}

static void print_values(json_t *values) {
  json_t *value;
  size_t i;
  json_array_foreach(values, i, value) {
    if (i > 0) printf(" ");
    print_number(value);
  }
}

static void print_rows(json_t *rows) {
  json_t *row;
  size_t i;
  json_array_foreach(rows, i, row) {
    json_t *values = json_object_get(row, "values");
    long long count = number_of(row, "count");
    printf("    [%zu]  ", i);
    print_values(values);
    if (count > (long long)json_array_size(values)) printf(" ...");
    if (json_object_get(row, "count")) {
      printf("%s(%lld value%s", json_array_size(values) ? "  " : "", count, count == 1 ? "" : "s");
      if (json_object_get(row, "least")) {
        printf(", ");
        print_number(json_object_get(row, "least"));
        printf(" to ");
        print_number(json_object_get(row, "largest"));
        printf(", mean ");
        print_number(json_object_get(row, "mean"));
      }
      printf(")");
    }
    printf("\n");
  }
}

static void print_histogram(json_t *part) {
  json_t *list = json_object_get(part, "histogram"), *bar;
  size_t i, distinct = json_array_size(list);
  long long most = 1;
  if (!json_object_get(part, "least")) return;
  printf("    from %lld to %lld", number_of(part, "least"), number_of(part, "largest"));
  if (json_object_get(part, "distinct")) printf(", %lld different values", number_of(part, "distinct"));
  printf("\n");
  json_array_foreach(list, i, bar) {
    if (number_of(bar, "count") > most) most = number_of(bar, "count");
  }
  if (most == 1 || distinct > MOST_BARS) return; /* then they are no labels */
  json_array_foreach(list, i, bar) {
    long long count = number_of(bar, "count");
    int length = (int)((double)count / (double)most * BAR + 0.5);
    printf("    %8lld %10lld%s%.*s\n", number_of(bar, "value"), count, length ? "  " : "", length,
           "########################################");
  }
}

static void print_shape(json_t *shape) {
  size_t i, rank = json_array_size(shape);
  json_t *extent;
  printf("(");
  json_array_foreach(shape, i, extent) {
    printf("%s%lld", i ? ", " : "", (long long)json_integer_value(extent));
  }
  printf(rank == 1 ? ",)" : ")");
}

static void print_part(json_t *part) {
  char text[TEXT];
  json_t *values = json_object_get(part, "values");
  printf("  ");
  if (json_object_get(part, "name")) printf("%s: ", output_printable(text, sizeof text, text_of(part, "name")));
  if (json_object_get(part, "error")) {
    printf("cannot be read\n"); /* why is said on standard error */
    return;
  }
  if (json_object_get(part, "sequences")) {
    printf("%lld sequences of %lld to %lld integers, %.6g on the average, up to %lld\n", number_of(part, "sequences"),
           number_of(part, "shortest"), number_of(part, "longest"),
           json_real_value(json_object_get(part, "mean_length")), number_of(part, "largest"));
  } else {
    printf("%s ", text_of(part, "type"));
    print_shape(json_object_get(part, "shape"));
    printf("\n");
  }
  if (json_array_size(values)) {
    json_t *extent = json_array_get(json_object_get(part, "shape"), 0);
    printf("    ");
    print_values(values);
    printf(extent && json_integer_value(extent) > (json_int_t)json_array_size(values) ? " ...\n" : "\n");
  }
  print_rows(json_object_get(part, "rows"));
  print_histogram(part);
}

/* ---- tables ---- */

static void print_cells(json_t *columns, int count, size_t rows) {
  char text[CELL];
  output_table *table = output_table_new(count);
  for (int i = 0; i < count; i++) {
    output_cell(table, "%s%s", i ? "" : "  ",
                output_printable(text, sizeof text, text_of(json_array_get(columns, (size_t)i), "name")));
  }
  for (int i = 0; i < count; i++) {
    output_cell(table, "%s%s", i ? "" : "  ", text_of(json_array_get(columns, (size_t)i), "type"));
  }
  for (size_t row = 0; row < rows; row++) {
    for (int i = 0; i < count; i++) {
      json_t *cells = json_object_get(json_array_get(columns, (size_t)i), "cells");
      const char *cell = json_string_value(json_array_get(cells, row));
      output_cell(table, "%s%s", i ? "" : "  ", output_printable(text, sizeof text, cell ? cell : ""));
    }
  }
  output_table_print(table);
}

/* Columns with a few integers that come again may be labels. */
static void print_labels(json_t *column) {
  char text[TEXT];
  long long distinct = number_of(column, "distinct");
  long long rows = (long long)json_integer_value(json_array_get(json_object_get(column, "shape"), 0));
  if (distinct < 2 || distinct > MOST_BARS || distinct == rows) return;
  printf("  %s\n", output_printable(text, sizeof text, text_of(column, "name")));
  print_histogram(column);
}

static void print_table(json_t *columns) {
  size_t count = json_array_size(columns);
  int shown = count < MOST_COLUMNS ? (int)count : MOST_COLUMNS;
  json_t *cells = json_object_get(json_array_get(columns, 0), "cells");
  print_cells(columns, shown, json_array_size(cells));
  if (count > MOST_COLUMNS) printf("  and %zu columns more, which --json has\n", count - MOST_COLUMNS);
  for (int i = 0; i < shown; i++) print_labels(json_array_get(columns, (size_t)i));
}

static void print_file(json_t *file) {
  char text[2 * TEXT];
  json_t *parts = json_object_get(file, "parts"), *part;
  bool table = strcmp(text_of(file, "format") + 1, "sv") == 0;
  size_t i;
  printf("%s: %s", output_printable(text, sizeof text, text_of(file, "path")), text_of(file, "format"));
  if (table) printf(", %lld rows of %zu columns", number_of(file, "rows"), json_array_size(parts));
  printf("\n");
  if (table) {
    print_table(parts);
    return;
  }
  json_array_foreach(parts, i, part) print_part(part);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The command
 */

/* Says what is wrong with members of a file. */
static int check_parts(const command_line *line, json_t *file) {
  json_t *part;
  size_t i;
  int status = EXIT_SUCCESS;
  json_array_foreach(json_object_get(file, "parts"), i, part) {
    const char *error = json_string_value(json_object_get(part, "error"));
    if (error) status = command_failure(line->path, "%s", error);
  }
  return status;
}

static int show_file(const command_line *line, const char *path, const data_view *view, json_t *files) {
  char text[2 * TEXT];
  json_t *file = NULL;
  if (access(path, R_OK) != 0) {
    return command_failure(line->path, "%s: %s", output_printable(text, sizeof text, path), strerror(errno));
  }
  HELIO_POOL file = data_describe(path, view);
  if (!file && helio_error_pending()) return command_library_failure(line->path);
  if (!file) {
    return command_failure(line->path,
                           "%s is none of the files that can be read: IDX (-ubyte or .idx, also with .gz), .npy, .npz, "
                           ".csv, .tsv, .safetensors",
                           output_printable(text, sizeof text, path));
  }
  if (!line->values[JSON]) print_file(file);
  int status = check_parts(line, file);
  output_append(files, file);
  return status;
}

static int show_set(const command_line *line, const char *name, const data_view *view, json_t *files) {
  int status = EXIT_SUCCESS;
  char **paths = helio_data_files(name, line->values[DATA]);
  if (!paths) return command_library_failure(line->path);
  for (int i = 0; paths[i]; i++) {
    int one = show_file(line, paths[i], view, files);
    if (one != EXIT_SUCCESS) status = one;
  }
  free(paths);
  return status;
}

static int no_such_file(const command_line *line, const char *word, int cause, char **names) {
  const char *nearest = hi_nearest(word, (const char *const *)names, data_count(names));
  if (nearest) {
    return command_failure(line->path, "%s: %s, nor is it a known set of data; did you mean '%s'?", word,
                           strerror(cause), nearest);
  }
  return command_failure(line->path, "%s: %s, nor is it a known set of data", word, strerror(cause));
}

/* A file, or a known set if there is no file of this name; a folder of that name is no file. */
static int show(const command_line *line, const char *word, const data_view *view, json_t *files) {
  struct stat about;
  bool known = false, there = stat(word, &about) == 0;
  int cause = errno;
  if (there && !S_ISDIR(about.st_mode)) return show_file(line, word, view, files);
  char **names = helio_data_names();
  if (!names) return command_library_failure(line->path);
  for (int i = 0; names[i]; i++) known |= strcmp(names[i], word) == 0;
  int status;
  if (known) {
    status = show_set(line, word, view, files);
  } else if (there) {
    status = command_failure(line->path, "%s is a folder; which file of it?", word);
  } else {
    status = no_such_file(line, word, cause, names);
  }
  free(names);
  return status;
}

static int run_show(const command_line *line) {
  int64_t rows = USUAL_ROWS;
  int status = command_integer(line, options, ROWS, 0, MOST_ROWS, &rows);
  if (status != EXIT_SUCCESS) return status;
  data_view view = {.rows = (int)rows, .no_header = line->values[NO_HEADER] != NULL};
  json_t *files = json_array();
  for (int i = 0; i < line->operand_count; i++) {
    int one = show(line, line->operands[i], &view, files);
    if (one != EXIT_SUCCESS) status = one;
  }
  if (line->values[JSON] && json_array_size(files) > 0) output_json(json_incref(files));
  json_decref(files);
  return status;
}

const command command_data_show = {
    .name = "show",
    .summary = "Shows what is in a data file: shapes, types, a few rows, how often each label occurs",
    .description =
        "Reads IDX (plain or .gz), .npy, .npz, .csv, .tsv and .safetensors. The name of a known set stands for\n"
        "its files.",
    .operands = "FILE...",
    .operand_words = DATA_WORDS,
    .missing = "which file? It may also be a set that 'helio data list' lists",
    .options = options,
    .run = run_show,
};
