/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/printable.h"

/* A note is a text that is not a cell; it begins a row, whose other cells are absent. */
typedef struct entry {
  char *text;
  bool is_note;
} entry;

struct output_table {
  int columns, count, room;
  int characters; /* of a line at the most; 0: any number */
  entry *entries;
};

void output_out_of_memory(void) {
  fprintf(stderr, "helio: out of memory\n");
  exit(EXIT_FAILURE);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Tables
 */

output_table *output_table_new(int columns) {
  output_table *table = calloc(1, sizeof *table);
  if (!table) output_out_of_memory();
  table->columns = columns;
  return table;
}

static void add(output_table *table, bool is_note, const char *format, va_list arguments) {
  if (table->count == table->room) {
    table->room = table->room ? 2 * table->room : 64;
    entry *grown = realloc(table->entries, (size_t)table->room * sizeof *grown);
    if (!grown) output_out_of_memory();
    table->entries = grown;
  }
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = malloc((size_t)length + 1);
  if (!text) output_out_of_memory();
  vsnprintf(text, (size_t)length + 1, format, arguments);
  table->entries[table->count++] = (entry){text, is_note};
}

void output_table_wrap(output_table *table, int characters) {
  table->characters = characters;
}

void output_cell(output_table *table, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add(table, false, format, arguments);
  va_end(arguments);
}

void output_note(output_table *table, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add(table, true, format, arguments);
  va_end(arguments);
}

/* Characters, not bytes: those that continue a UTF-8 sequence do not count. */
static int width_of(const char *text, size_t bytes) {
  int characters = 0;
  for (size_t i = 0; i < bytes; i++) characters += ((unsigned char)text[i] & 0xC0) != 0x80;
  return characters;
}

static int width(const char *text) {
  return width_of(text, strlen(text));
}

static void table_free(output_table *table) {
  for (int i = 0; i < table->count; i++) free(table->entries[i].text);
  free(table->entries);
  free(table);
}

static void measure_columns(const output_table *table, int *widths) {
  int column = 0;
  for (int i = 0; i < table->count; i++) {
    if (table->entries[i].is_note) continue;
    int needed = width(table->entries[i].text);
    if (needed > widths[column]) widths[column] = needed;
    column = (column + 1) % table->columns;
  }
}

/* Prints a text word by word from the column `indent` on, in lines that end before `end`. */
static void print_wrapped(const char *text, int indent, int end) {
  int at = indent;
  while (*text) {
    size_t bytes = strcspn(text, " ");
    int needed = width_of(text, bytes);
    if (at > indent && at + 1 + needed > end) {
      printf("\n%*s", indent, "");
      at = indent;
    }
    at += printf("%s", at > indent ? " " : "") + needed;
    printf("%.*s", (int)bytes, text);
    text += bytes + strspn(text + bytes, " ");
  }
}

/* The last cell of a row, which may be continued on lines of its own. */
static void print_last(const output_table *table, const int *widths, const char *text) {
  enum { LEAST = 40 }; /* a column that is narrower than this is hard to read: the line is longer then */
  int indent = 0;
  for (int i = 0; i < table->columns - 1; i++) indent += widths[i] + 2;
  int end = table->characters < indent + LEAST ? indent + LEAST : table->characters;
  print_wrapped(text, indent, end);
}

void output_table_print(output_table *table) {
  int *widths = calloc((size_t)table->columns, sizeof *widths);
  if (!widths) output_out_of_memory();
  measure_columns(table, widths);
  int column = 0, owed = 0; /* spaces are printed only when something follows, so that no line ends in them */
  for (int i = 0; i < table->count; i++) {
    const entry *one = &table->entries[i];
    if (one->is_note) {
      printf("    %s\n", one->text);
      continue;
    }
    bool wrapped = table->characters > 0 && column == table->columns - 1;
    if (one->text[0]) {
      printf("%*s%s", owed, "", wrapped ? "" : one->text);
      owed = 0;
    }
    if (wrapped) print_last(table, widths, one->text);
    owed += widths[column] - width(one->text) + 2;
    column = (column + 1) % table->columns;
    if (column > 0) continue;
    printf("\n");
    owed = 0;
  }
  free(widths);
  table_free(table);
}

static void print_markdown_cell(const char *text) {
  printf(" ");
  for (; *text; text++) printf(*text == '|' ? "\\|" : "%c", *text);
  printf(" |");
}

void output_table_markdown(output_table *table) {
  for (int i = 0; i < table->count; i++) {
    if (i % table->columns == 0) printf("|");
    print_markdown_cell(table->entries[i].text);
    if (i % table->columns < table->columns - 1) continue;
    printf("\n");
    if (i >= table->columns) continue;
    printf("|");
    for (int column = 0; column < table->columns; column++) printf("---|");
    printf("\n");
  }
  table_free(table);
}

const char *output_bytes(char text[OUTPUT_BYTES], uint64_t bytes) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double amount = (double)bytes;
  int unit = 0;
  for (; amount >= 1024; unit++) amount /= 1024;
  snprintf(text, OUTPUT_BYTES, unit > 0 && amount < 100 ? "%.1f %s" : "%.0f %s", amount, units[unit]);
  return text;
}

const char *output_printable(char *to, size_t size, const char *text) {
  size_t length = hi_text_fit(text, size);
  memcpy(to, text, length);
  to[length] = '\0';
  hi_make_printable(to);
  return to;
}

double output_unsigned_nan(double value) {
  return isnan(value) ? NAN : value;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * JSON
 */

json_t *output_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

json_t *output_text(const char *text) {
  json_t *value = json_string(text);
  if (value) return value;
  char *plain = malloc(strlen(text) + 1), *to = plain;
  if (!plain) output_out_of_memory();
  for (const char *from = text; *from; from++) *to++ = (unsigned char)*from < 0x80 ? *from : '?';
  *to = '\0';
  value = json_string(plain);
  free(plain);
  return value;
}

json_t *output_split(const char *text, const char *separator) {
  json_t *parts = json_array();
  while (*text) {
    const char *end = strstr(text, separator);
    size_t length = end ? (size_t)(end - text) : strlen(text);
    char *part = strndup(text, length);
    if (!part) output_out_of_memory();
    output_append(parts, output_text(part));
    free(part);
    text += length + (end ? strlen(separator) : 0);
  }
  return parts;
}

void output_set(json_t *object, const char *key, json_t *value) {
  if (json_object_set_new(object, key, value) != 0) output_out_of_memory();
}

void output_append(json_t *array, json_t *value) {
  if (json_array_append_new(array, value) != 0) output_out_of_memory();
}

void output_json(json_t *value) {
  /* A failure to write is found by output_finish(). */
  if (json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) != 0 && !ferror(stdout))
    output_out_of_memory();
  printf("\n");
  json_decref(value);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The end
 */

/* Whoever failed before has said why, and mostly it was this. */
int output_finish(int status) {
  bool failed = ferror(stdout) != 0;
  errno = 0;
  /* fclose() also reports what some file systems tell only when a file is closed. */
  if (fclose(stdout) != 0) failed = true;
  if (!failed || status != EXIT_SUCCESS) return status;
  fprintf(stderr, "helio: cannot write to standard output%s%s\n", errno ? ": " : "", errno ? strerror(errno) : "");
  return EXIT_FAILURE;
}
