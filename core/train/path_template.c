/* SPDX-License-Identifier: Apache-2.0 */
#include "train/path_template.h"

#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/error.h"
#include "tensor/text.h"
#include "train/logs.h"

/* What stands between two braces. */
typedef struct field {
  const char *name;
  int name_length;
  bool zeros;
  int width, precision; /* −1: none */
  char letter;          /* 0: none */
} field;

enum { MOST_WIDTH = 99 };

static helio_status refuse(const char *path, const char *cause) {
  return hi_fail(HELIO_INVALID_ARGUMENT, "the path \"%.200s\" %s", path, cause);
}

/* ---- reading ---- */

/* −1 if there is no number. */
static int read_number(const char **at) {
  int number = -1;
  for (; **at >= '0' && **at <= '9'; (*at)++) {
    number = 10 * (number < 0 ? 0 : number) + (**at - '0');
    if (number > MOST_WIDTH) number = MOST_WIDTH + 1;
  }
  return number;
}

static bool read_format(const char **at, field *f) {
  f->zeros = **at == '0';
  if (f->zeros) (*at)++;
  f->width = read_number(at);
  if (**at == '.') {
    (*at)++;
    f->precision = read_number(at);
    if (f->precision < 0) return false;
  }
  if (**at && strchr("dfeg", **at)) f->letter = *(*at)++;
  bool fits = f->width <= MOST_WIDTH && f->precision <= MOST_WIDTH;
  return fits &&
         (f->precision < 0 || (f->letter && f->letter != 'd')); /* Python has more, for which nobody has asked */
}

/* From behind the first brace to behind the last. */
static helio_status read_field(const char *path, const char **at, field *f) {
  *f = (field){.name = *at, .name_length = (int)strcspn(*at, ":{}"), .width = -1, .precision = -1};
  *at += f->name_length;
  if (!**at || **at == '{') return refuse(path, "has a { without its }: a brace in a name is written as {{");
  if (f->name_length == 0) return refuse(path, "has no name between { and }");
  bool good = true;
  if (**at == ':') {
    (*at)++;
    good = read_format(at, f);
  }
  if (!good || **at != '}') return refuse(path, "has a format that is not like {epoch:02d}, {loss:.2f} or {loss:8.3e}");
  (*at)++;
  return HELIO_OK;
}

/* ---- values ---- */

typedef struct values {
  const char *path;
  int epoch;
  int64_t batch; /* 0: none */
  helio_logs *logs;
} values;

static bool is_called(const field *f, const char *name) {
  return strlen(name) == (size_t)f->name_length && strncmp(f->name, name, (size_t)f->name_length) == 0;
}

static helio_status name_all(const values *v, const field *f) {
  char names[600] = "epoch";
  size_t length = strlen(names);
  if (v->batch) length += (size_t)snprintf(names + length, sizeof names - length, ", batch");
  for (int i = 0; i < helio_logs_count(v->logs) && length < sizeof names; i++) {
    length += (size_t)snprintf(names + length, sizeof names - length, ", %s", helio_logs_name(v->logs, i));
  }
  return hi_fail(HELIO_INVALID_ARGUMENT, "the path \"%.200s\" has {%.*s}, but there is no such value, only: %s",
                 v->path, f->name_length < 100 ? f->name_length : 100, f->name, names);
}

/* *whole: it is an integer. */
static helio_status find_value(const values *v, const field *f, double *value, bool *whole) {
  *whole = true;
  *value = v->epoch;
  if (is_called(f, "epoch")) return HELIO_OK;
  *value = (double)v->batch;
  if (v->batch && is_called(f, "batch")) return HELIO_OK;
  *whole = false;
  for (int i = 0; i < helio_logs_count(v->logs); i++) {
    if (!is_called(f, helio_logs_name(v->logs, i))) continue;
    *value = helio_logs_value(v->logs, i);
    return helio_error_pending();
  }
  return name_all(v, f);
}

/* ---- writing ---- */

enum { NUMBER = 512 }; /* bytes: the largest double has 309 digits before its point, and 99 may follow */

/* With points, whatever the user's locale has for them. */
static bool print_real(char number[NUMBER], char letter, int precision, double value) {
  locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  if (!plain) return false;
  locale_t users = uselocale(plain);
  if (letter == 'f') snprintf(number, NUMBER, "%.*f", precision, value);
  if (letter == 'e') snprintf(number, NUMBER, "%.*e", precision, value);
  if (letter == 'g') snprintf(number, NUMBER, "%.*g", precision, value);
  uselocale(users);
  freelocale(plain);
  return true;
}

/* Python's repr(): as many digits as tell it from all others. */
static bool print_shortest(char number[NUMBER], double value) {
  char *text = hi_array_text(HELIO_FLOAT64, 0, NULL, &value);
  if (text) snprintf(number, NUMBER, "%s", text);
  free(text);
  return text;
}

/* False if memory is out. */
static bool print(char number[NUMBER], const field *f, double value, bool whole) {
  if (whole && (!f->letter || f->letter == 'd')) return snprintf(number, NUMBER, "%" PRId64, (int64_t)value) > 0;
  if (isnan(value)) return snprintf(number, NUMBER, "nan") > 0; /* printf() would show its sign */
  if (!f->letter) return print_shortest(number, value);
  return print_real(number, f->letter, f->precision < 0 ? 6 : f->precision, value);
}

/* Zeros stand behind the sign, spaces before it. */
static void pad(FILE *out, const field *f, const char *number) {
  if (f->zeros && *number == '-') fputc(*number, out);
  for (int i = (int)strlen(number); i < f->width; i++) fputc(f->zeros ? '0' : ' ', out);
  fputs(f->zeros && *number == '-' ? number + 1 : number, out);
}

static helio_status put_field(FILE *out, const values *v, const field *f) {
  char number[NUMBER];
  double value;
  bool whole;
  helio_status status = find_value(v, f, &value, &whole);
  if (status) return status;
  if (!whole && f->letter == 'd')
    return refuse(v->path, "has a number with a fraction as an integer, d: say f, e or g");
  if (!print(number, f, value, whole)) return hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a path");
  pad(out, f, number);
  return HELIO_OK;
}

/* ---- all of it ---- */

/* Only reads if `out` is NULL. */
static helio_status walk(FILE *out, const values *v) {
  helio_status status = HELIO_OK;
  for (const char *at = v->path; *at && !status;) {
    field f;
    if ((*at == '{' || *at == '}') && at[1] != *at) {
      if (*at++ == '}') return refuse(v->path, "has a } without its {: a brace in a name is written as }}");
      status = read_field(v->path, &at, &f);
      if (!status && out) status = put_field(out, v, &f);
    } else {
      if (*at == '{' || *at == '}') at++;
      if (out) fputc(*at, out);
      at++;
    }
  }
  return status;
}

helio_status hi_path_template_check(const char *path) {
  if (!path || !*path) return hi_fail(HELIO_INVALID_ARGUMENT, "the path is %s", path ? "\"\"" : "NULL");
  if (strlen(path) >= PATH_MAX) return refuse(path, "… is longer than paths may be");
  return walk(NULL, &(values){.path = path});
}

char *hi_path_template_fill(const char *path, int epoch, int64_t batch, helio_logs *logs) {
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  helio_status status = out ? walk(out, &(values){path, epoch, batch, logs}) : HELIO_OK;
  bool bad = !out || ferror(out);
  if (out && fclose(out) != 0) bad = true;
  if (!status && !bad) return text;
  free(text);
  if (!status) hi_fail(HELIO_OUT_OF_MEMORY, "no memory for a path");
  return NULL;
}
