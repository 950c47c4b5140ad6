/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of a text file with separators: which type each has, and arrays of them. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/array.h"
#include "data/csv_text.h"
#include "data/readers.h"
#include "ops/options.h"
#include "runtime/error.h"
#include "tensor/pool.h"

struct helio_csv {
  hi_object object;
  char *path;
  hi_csv_text cut;
  int64_t first;       /* the row in which the data begin: 1 behind a header */
  helio_type *types;   /* 0: text */
  char (*numbers)[12]; /* what columns are called without a header, else NULL */
  locale_t locale;     /* in which a point is a point */
};

static void end(void *object) {
  helio_csv *csv = object;
  if (csv->locale) freelocale(csv->locale);
  hi_csv_free(&csv->cut);
  free(csv->numbers);
  free(csv->types);
  free(csv->path);
  free(csv);
}

/* ---- cells as numbers ---- */

static const char *skip_blanks(const char *text) {
  return text + strspn(text, " \t");
}

static bool is_missing(const char *text) {
  return !*skip_blanks(text);
}

static bool parse_integer(const char *text, int64_t *value) {
  text = skip_blanks(text);
  bool negative = *text == '-';
  if (*text == '-' || *text == '+') text++;
  if (*text < '0' || *text > '9') return false;
  for (*value = 0; *text >= '0' && *text <= '9'; text++) {
    int digit = negative ? '0' - *text : *text - '0';
    if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, digit, value)) return false;
  }
  return is_missing(text);
}

/* Decimal numbers, inf, infinity and nan. */
static bool parse_real(const helio_csv *csv, const char *text, double *value) {
  static const char *const words[] = {"inf", "infinity", "nan"};
  text = skip_blanks(text);
  const char *bare = text + (*text == '-' || *text == '+');
  size_t length = strcspn(bare, " \t");
  bool plain = length > 0 && strspn(bare, "0123456789.eE+-") >= length;
  for (int i = 0; i < 3; i++) plain |= length == strlen(words[i]) && strncasecmp(bare, words[i], length) == 0;
  char *rest = NULL;
  if (plain) *value = strtod_l(text, &rest, csv->locale);
  return plain && rest == bare + length && is_missing(rest);
}

static bool parse_flag(const char *text, int64_t *value) {
  static const char *const words[] = {"0", "1", "false", "true"};
  text = skip_blanks(text);
  for (int i = 0; i < 4; i++) {
    size_t length = strlen(words[i]);
    if (strncasecmp(text, words[i], length) != 0 || !is_missing(text + length)) continue;
    *value = i & 1;
    return true;
  }
  return false;
}

/* Writes the number that the text is in a type; false if it is none, or none of that type. No number is NaN. */
static bool store(const helio_csv *csv, helio_type type, const char *text, void *to) {
  int64_t whole;
  double real = NAN;
  if (hi_type_is_float(type)) {
    if (!is_missing(text) && !parse_real(csv, text, &real)) return false;
    hi_type_encode(type, real, to);
    return true;
  }
  if (type == HELIO_BOOL ? !parse_flag(text, &whole) : !parse_integer(text, &whole)) return false;
  if (type == HELIO_UINT8 && (whole < 0 || whole > UINT8_MAX)) return false;
  if (type == HELIO_INT32 && (whole < INT32_MIN || whole > INT32_MAX)) return false;
  hi_convert(&(hi_conversion){.from = HELIO_INT64, .to = type}, &whole, to, 1);
  return true;
}

/* ---- types ---- */

static helio_type find_type(const helio_csv *csv, int column) {
  bool integers = true, reals = true, some = false;
  for (int64_t row = csv->first; row < csv->cut.rows && reals; row++) {
    const char *text = hi_csv_cell(&csv->cut, row, column);
    int64_t whole;
    double real;
    bool missing = is_missing(text);
    integers = integers && parse_integer(text, &whole);
    reals = integers || missing || parse_real(csv, text, &real);
    some = some || !missing;
  }
  return !some || !reals ? (helio_type)0 : integers ? HELIO_INT64 : HELIO_FLOAT32;
}

static helio_status check_type(const helio_csv *csv, int column, helio_type type) {
  if (!hi_type_valid(type)) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%d, for column %d, is not a type", (int)type, column + 1);
  }
  for (int64_t row = csv->first; row < csv->cut.rows; row++) {
    char number[8];
    const char *text = hi_csv_cell(&csv->cut, row, column);
    if (store(csv, type, text, number)) continue;
    return hi_fail_plainly(HELIO_BAD_DATA, "%s, line %lld, column %d (%.100s): \"%.100s\" is not of type %s", csv->path,
                           (long long)csv->cut.lines[row], column + 1, helio_csv_name(csv, column), text,
                           helio_type_name(type));
  }
  return HELIO_OK;
}

static helio_status set_types(helio_csv *csv, const helio_read_csv_options *o) {
  int columns = csv->cut.columns;
  if (o->types && o->type_count != columns) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "%s has %d columns, but %d types are given", csv->path, columns,
                   o->type_count);
  }
  csv->types = calloc((size_t)columns + 1, sizeof *csv->types);
  if (!csv->types) return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for its types", csv->path);
  for (int i = 0; i < columns; i++) {
    csv->types[i] = o->types && o->types[i] ? o->types[i] : find_type(csv, i);
    helio_status status = o->types && o->types[i] ? check_type(csv, i, o->types[i]) : HELIO_OK;
    if (status) return status;
  }
  return HELIO_OK;
}

/* ---- reading ---- */

static helio_status set_names(helio_csv *csv, bool header) {
  csv->first = header;
  if (header && csv->cut.rows == 0) {
    return hi_fail(HELIO_BAD_DATA, "%s, line 1: there is no header: the file is empty", csv->path);
  }
  if (header) return HELIO_OK;
  csv->numbers = calloc((size_t)csv->cut.columns + 1, sizeof *csv->numbers);
  if (!csv->numbers) return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for its names", csv->path);
  for (int i = 0; i < csv->cut.columns; i++) snprintf(csv->numbers[i], sizeof csv->numbers[i], "%d", i);
  return HELIO_OK;
}

static helio_status fill(helio_csv *csv, const hi_file *file, const helio_read_csv_options *o) {
  char separator = o->separator ? o->separator : ',';
  if (strchr("\"\r\n", separator)) return hi_fail(HELIO_INVALID_ARGUMENT, "a quote or line end cannot separate cells");
  csv->path = strdup(file->name);
  csv->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!csv->path || !csv->locale) return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for reading it", file->name);
  helio_status status = hi_csv_cut(&csv->cut, file, separator);
  if (!status) status = set_names(csv, !o->no_header);
  return status ? status : set_types(csv, o);
}

helio_csv *hi_read_csv(hi_file *file, const helio_read_csv_options *options) {
  helio_csv *csv = calloc(1, sizeof *csv);
  if (!csv) {
    hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for reading it", file->name);
    return NULL;
  }
  hi_object_begin(csv, end, "a csv file");
  if (!fill(csv, file, options) && hi_pool_add(&csv->object)) return csv;
  hi_drop(csv);
  return NULL;
}

helio_csv *helio_read_csv_with(const helio_read_csv_options *given) {
  helio_read_csv_options o;
  if (!hi_options_enter("helio_read_csv", &o, sizeof o, given)) return NULL;
  hi_file *file = hi_file_open(o.path);
  helio_csv *csv = file ? hi_read_csv(file, &o) : NULL;
  hi_drop(file);
  return csv;
}

/* ---- facts and columns ---- */

int helio_csv_columns(const helio_csv *csv) {
  return csv ? csv->cut.columns : 0;
}

int64_t helio_csv_rows(const helio_csv *csv) {
  return csv ? csv->cut.rows - csv->first : 0;
}

static bool has_column(const helio_csv *csv, int column) {
  return csv && column >= 0 && column < csv->cut.columns;
}

const char *helio_csv_name(const helio_csv *csv, int column) {
  if (!has_column(csv, column)) return NULL;
  return csv->numbers ? csv->numbers[column] : hi_csv_cell(&csv->cut, 0, column);
}

helio_type helio_csv_type(const helio_csv *csv, int column) {
  return has_column(csv, column) ? csv->types[column] : (helio_type)0;
}

const char *helio_csv_text(const helio_csv *csv, int64_t row, int column) {
  if (!has_column(csv, column) || row < 0 || row >= helio_csv_rows(csv)) return NULL;
  return hi_csv_cell(&csv->cut, csv->first + row, column);
}

/* −1 with the error set. */
static int find_column(const helio_csv *csv, const char *name) {
  int found = -1;
  if (!csv || !name) {
    hi_fail(HELIO_INVALID_ARGUMENT, "%s is NULL", csv ? "name" : "csv");
    return -1;
  }
  for (int i = 0; i < csv->cut.columns; i++) {
    if (strcmp(helio_csv_name(csv, i), name) != 0) continue;
    if (found >= 0) {
      hi_fail(HELIO_INVALID_ARGUMENT, "%s: columns %d and %d are both called \"%.100s\"", csv->path, found + 1, i + 1,
              name);
      return -1;
    }
    found = i;
  }
  if (found < 0) hi_fail(HELIO_INVALID_ARGUMENT, "%s: no column is called \"%.100s\"", csv->path, name);
  return found;
}

/* The first cell that is no number tells whether one is wrong or the column was never meant to have any. */
static void fail_text(const helio_csv *csv, int column) {
  double real;
  const char *name = helio_csv_name(csv, column);
  for (int64_t row = csv->first; row < csv->cut.rows; row++) {
    const char *text = hi_csv_cell(&csv->cut, row, column);
    if (is_missing(text) || parse_real(csv, text, &real)) continue;
    hi_fail_plainly(HELIO_INVALID_ARGUMENT,
                    "%s: column %d (%.100s) is text, not numbers: line %lld has \"%.100s\"; words must be "
                    "written as numbers first, as classes 0, 1, 2",
                    csv->path, column + 1, name, (long long)csv->cut.lines[row], text);
    return;
  }
  hi_fail_plainly(HELIO_INVALID_ARGUMENT, "%s: column %d (%.100s) is empty", csv->path, column + 1, name);
}

static helio_array *read_column(helio_csv *csv, int column) {
  void *data;
  helio_type type = csv->types[column];
  if (!type && helio_csv_rows(csv) == 0) {
    hi_fail_plainly(HELIO_BAD_DATA, "%s: there are no rows in it%s", csv->path,
                    csv->first > 0 ? " but the line of names" : "");
    return NULL;
  }
  if (!type) {
    fail_text(csv, column);
    return NULL;
  }
  helio_array *array = hi_array_new(type, &HELIO_SHAPE(helio_csv_rows(csv)), &data);
  for (int64_t i = 0; array && i < array->elements; i++) {
    store(csv, type, hi_csv_cell(&csv->cut, csv->first + i, column), (char *)data + (size_t)i * helio_type_bytes(type));
  }
  return array;
}

helio_array *helio_csv_column(helio_csv *csv, const char *name) {
  int column = hi_enter_unstarted(__func__) ? -1 : find_column(csv, name);
  return column < 0 ? NULL : read_column(csv, column);
}

helio_array *helio_csv_column_at(helio_csv *csv, int column) {
  if (hi_enter_unstarted(__func__)) return NULL;
  if (csv && column >= 0 && column < csv->cut.columns) return read_column(csv, column);
  hi_fail(HELIO_INVALID_ARGUMENT, csv ? "there is no column %d" : "csv is NULL", column);
  return NULL;
}
