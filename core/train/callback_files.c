/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks that write what is measured into text files. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/csv_text.h"
#include "data/json.h"
#include "nn/optimizer.h"
#include "ops/options.h"
#include "runtime/error.h"
#include "tensor/text.h"
#include "train/callback.h"
#include "train/logs.h"
#include "train/output_file.h"

/* ---- a file of lines ---- */

typedef struct line_file {
  char *path;
  bool append;
  bool is_open;
  hi_output_file output;
} line_file;

static helio_status no_memory(const line_file *file) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for a line", file->path);
}

static helio_status close_file(line_file *file) {
  if (!file->is_open) return HELIO_OK;
  file->is_open = false;
  return hi_output_file_close(&file->output);
}

/* The last line of a file that is gone on with may have been cut short. */
static helio_status end_last_line(line_file *file) {
  char last;
  int descriptor = file->output.descriptor;
  off_t end = lseek(descriptor, 0, SEEK_END);
  ssize_t got = end > 0 ? pread(descriptor, &last, 1, end - 1) : 0;
  if (end < 0 || got < 0) {
    return hi_fail(HELIO_IO_FAILURE, "%s: reading its end failed: %s", file->path, strerror(errno));
  }
  return got == 0 || last == '\n' ? HELIO_OK : hi_output_file_put(&file->output, "\n", 1);
}

/* *goes_on: the file has been kept, with what is in it. That of a training that goes on has its beginning. */
static helio_status open_file(line_file *file, const helio_training *t, bool *goes_on) {
  helio_status status = close_file(file); /* of a training that did not come to its end */
  *goes_on = file->append || t->total_steps > 0;
  if (!status) status = hi_output_file_create(&file->output, file->path, *goes_on);
  file->is_open = !status;
  return status;
}

static void free_file(line_file *file) {
  bool pending = helio_error_pending();
  if (close_file(file) && !pending) helio_error_take(NULL); /* nobody is left who could be told */
  free(file->path);
}

/* A line that grows. What goes wrong shows when it is put. */
typedef struct line {
  FILE *out;
  char *text;
  size_t bytes;
  bool failed; /* there was no memory for a part of it */
} line;

static helio_status begin_line(const line_file *file, line *l) {
  *l = (line){0};
  l->out = open_memstream(&l->text, &l->bytes);
  return l->out ? HELIO_OK : no_memory(file);
}

/* Readers see it at once. A status before it is passed on, and nothing put. */
static helio_status put_line(line_file *file, line *l, helio_status status) {
  fputc('\n', l->out);
  bool bad = ferror(l->out) || l->failed;
  if (fclose(l->out) != 0) bad = true;
  if (!status && bad) status = no_memory(file);
  if (!status) status = hi_output_file_put(&file->output, l->text, l->bytes);
  if (!status) status = hi_output_file_flush(&file->output);
  free(l->text);
  return status;
}

/* As Python writes it: the fewest digits that tell it from all others, "nan", "inf". */
static void put_number(line *l, double value) {
  char *text = hi_array_text(HELIO_FLOAT64, 0, NULL, &value);
  if (text) fputs(text, l->out);
  l->failed = l->failed || !text;
  free(text);
}

/* ---- CSV ---- */

typedef struct csv_logger {
  line_file file;
  char separator;
  int count; /* of columns, the epoch among them; 0: not known yet */
  char **columns;
} csv_logger;

enum { LONGEST_HEADER = 1 << 16 };

static void forget_columns(csv_logger *csv) {
  for (int i = 0; i < csv->count; i++) free(csv->columns[i]);
  free(csv->columns);
  csv->columns = NULL;
  csv->count = 0;
}

/* There is room for it. */
static helio_status add_column(csv_logger *csv, const char *prefix, const char *name) {
  char *copy = NULL;
  if (asprintf(&copy, "%s%s", prefix, name) < 0) return no_memory(&csv->file);
  csv->columns[csv->count++] = copy;
  return HELIO_OK;
}

static helio_status make_room(csv_logger *csv, int columns) {
  forget_columns(csv);
  csv->columns = calloc((size_t)columns, sizeof *csv->columns);
  return csv->columns ? HELIO_OK : no_memory(&csv->file);
}

/* The columns of a file that is gone on with are those that it has: rows stay under their names. */
static helio_status take_header(csv_logger *csv, const hi_csv_text *cut) {
  if (cut->rows == 0 || strcmp(hi_csv_cell(cut, 0, 0), "epoch") != 0) {
    return hi_fail(HELIO_BAD_DATA,
                   "%s: its first line does not begin with \"epoch\", so nothing is put behind it: give "
                   "another file, or leave .append out",
                   csv->file.path);
  }
  helio_status status = make_room(csv, cut->columns);
  for (int i = 0; i < cut->columns && !status; i++) status = add_column(csv, "", hi_csv_cell(cut, 0, i));
  return status;
}

static helio_status read_header(csv_logger *csv) {
  char text[LONGEST_HEADER];
  hi_csv_text cut = {0};
  ssize_t bytes = pread(csv->file.output.descriptor, text, sizeof text, 0);
  if (bytes < 0) return hi_fail(HELIO_IO_FAILURE, "%s: reading it failed: %s", csv->file.path, strerror(errno));
  if (bytes == 0) return HELIO_OK;
  const char *end = memchr(text, '\n', (size_t)bytes);
  if (!end && bytes == sizeof text) {
    return hi_fail(HELIO_BAD_DATA, "%s: its first line has more than %d bytes", csv->file.path, LONGEST_HEADER);
  }
  hi_file *first = hi_file_copy(csv->file.path, text, end ? (size_t)(end + 1 - text) : (size_t)bytes);
  helio_status status = first ? hi_csv_cut(&cut, first, csv->separator) : helio_error_pending();
  if (!status) status = take_header(csv, &cut);
  hi_csv_free(&cut);
  hi_drop(first);
  return status;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_column(const csv_logger *csv, const char *name) {
  for (int i = 1; i < csv->count; i++) {
    if (strcmp(csv->columns[i], name) == 0) return true;
  }
  return false;
}

/* As Keras chooses them behind the first epoch: sorted by name and, if that has no values of validation, which another
 * may have, places for these. */
static helio_status choose_columns(csv_logger *csv, const helio_logs *logs) {
  int count = helio_logs_count(logs);
  bool validated = false;
  helio_status status = make_room(csv, 1 + 2 * count);
  if (!status) status = add_column(csv, "", "epoch");
  for (int i = 0; i < count && !status; i++) {
    const char *name = helio_logs_name(logs, i);
    if (!has_column(csv, name)) status = add_column(csv, "", name);
    validated = validated || strncmp(name, "val_", 4) == 0;
  }
  if (status) return status;
  int measured = csv->count;
  qsort(csv->columns + 1, (size_t)measured - 1, sizeof *csv->columns, compare_names);
  for (int i = 1; i < measured && !validated && !status; i++) status = add_column(csv, "val_", csv->columns[i]);
  return status;
}

/* In quotes if it must be. */
static void put_cell(line *l, const csv_logger *csv, const char *text) {
  if (!strchr(text, csv->separator) && !strpbrk(text, "\"\r\n")) {
    fputs(text, l->out);
    return;
  }
  fputc('"', l->out);
  for (; *text; text++) {
    if (*text == '"') fputc('"', l->out);
    fputc(*text, l->out);
  }
  fputc('"', l->out);
}

static helio_status put_header(csv_logger *csv) {
  line l;
  helio_status status = begin_line(&csv->file, &l);
  if (status) return status;
  for (int i = 0; i < csv->count; i++) {
    if (i) fputc(csv->separator, l.out);
    put_cell(&l, csv, csv->columns[i]);
  }
  return put_line(&csv->file, &l, HELIO_OK);
}

static helio_status put_row(csv_logger *csv, const helio_training *t) {
  line l;
  helio_status status = begin_line(&csv->file, &l);
  if (status) return status;
  fprintf(l.out, "%d", t->epoch);
  for (int i = 1; i < csv->count && !status; i++) {
    double value;
    bool found;
    status = hi_logs_find(t->logs, csv->columns[i], &value, &found);
    fputc(csv->separator, l.out);
    if (found) {
      put_number(&l, value);
    } else {
      fputs("NA", l.out);
    }
  }
  return put_line(&csv->file, &l, status);
}

static helio_status begin_csv(void *user, helio_training *t) {
  csv_logger *csv = user;
  bool goes_on;
  forget_columns(csv);
  helio_status status = open_file(&csv->file, t, &goes_on);
  if (status || !goes_on) return status;
  status = read_header(csv);
  return status ? status : end_last_line(&csv->file);
}

static helio_status end_csv_epoch(void *user, helio_training *t) {
  csv_logger *csv = user;
  helio_status status = HELIO_OK;
  if (csv->count == 0) {
    status = choose_columns(csv, t->logs);
    if (!status) status = put_header(csv);
    if (status) forget_columns(csv);
  }
  return status ? status : put_row(csv, t);
}

static helio_status end_csv(void *user, helio_training *t) {
  csv_logger *csv = user;
  (void)t;
  return close_file(&csv->file);
}

static void release_csv(void *user) {
  csv_logger *csv = user;
  forget_columns(csv);
  free_file(&csv->file);
  free(csv);
}

helio_callback *helio_csv_logger_with(const helio_csv_logger_options *given) {
  helio_csv_logger_options o;
  if (!hi_options_enter("helio_csv_logger", &o, sizeof o, given)) return NULL;
  if (o.separator && strchr("\"\r\n", o.separator)) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the separator is a quote or ends a line");
    return NULL;
  }
  csv_logger *csv = hi_callback_user(sizeof *csv);
  if (!csv) return NULL;
  csv->separator = o.separator ? o.separator : ',';
  helio_callback *made = NULL;
  csv->file = (line_file){.path = hi_callback_path(o.path), .append = o.append};
  if (csv->file.path) {
    made = helio_callback(.user = csv, .train_begin = begin_csv, .epoch_end = end_csv_epoch, .train_end = end_csv,
                          .release = release_csv);
  }
  if (!made) release_csv(csv);
  return made;
}

/* ---- lines of JSON ---- */

typedef struct json_logger {
  line_file file;
  bool epochs_only;
} json_logger;

/* What is not finite has no word in JSON. */
static void put_value(line *l, double value) {
  if (isfinite(value)) {
    put_number(l, value);
  } else {
    fputs("null", l->out);
  }
}

/* Durations to the microsecond. */
static void put_rounded(line *l, double value, double parts) {
  put_value(l, round(value * parts) / parts);
}

/* A name that stands before it, or that is one of ours, would stand twice. */
static bool is_taken(const helio_logs *logs, int index) {
  static const char *const ours[] = {"epoch", "steps", "seconds", "learning_rate"};
  const char *name = helio_logs_name(logs, index);
  for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
    if (strcmp(name, ours[i]) == 0) return true;
  }
  for (int i = 0; i < index; i++) {
    if (strcmp(name, helio_logs_name(logs, i)) == 0) return true;
  }
  return false;
}

static helio_status put_measured(const json_logger *json, line *l, helio_logs *logs) {
  for (int i = 0; i < helio_logs_count(logs); i++) {
    char *name;
    if (is_taken(logs, i)) continue;
    helio_status status = hi_json_quoted(helio_logs_name(logs, i), &name);
    if (status == HELIO_OUT_OF_MEMORY) return no_memory(&json->file);
    if (status) return hi_fail(status, "%s: the name of what is measured is not UTF-8", json->file.path);
    fprintf(l->out, ", %s: ", name);
    free(name);
    put_value(l, helio_logs_value(logs, i));
    if (helio_error_pending()) return helio_error_pending();
  }
  return HELIO_OK;
}

static helio_status begin_json(void *user, helio_training *t) {
  json_logger *json = user;
  bool goes_on;
  helio_status status = open_file(&json->file, t, &goes_on);
  return status || !goes_on ? status : end_last_line(&json->file);
}

static helio_status end_json_batch(void *user, helio_training *t) {
  json_logger *json = user;
  double loss = NAN;
  bool found;
  line l;
  if (json->epochs_only) return HELIO_OK;
  helio_status status = hi_logs_find(t->batch_logs, "loss", &loss, &found);
  if (!status) status = begin_line(&json->file, &l);
  if (status) return status;
  fprintf(l.out, "{\"step\": %" PRId64 ", \"loss\": ", t->total_steps);
  put_value(&l, found ? loss : NAN);
  fprintf(l.out, ", \"samples\": %" PRId64 ", \"ms\": ", t->samples);
  put_rounded(&l, 1e3 * t->seconds, 1e3);
  fputc('}', l.out);
  return put_line(&json->file, &l, HELIO_OK);
}

/* A callback that has changed it before this one was told has left what it was. */
static helio_status find_rate(const helio_training *t, double *rate) {
  bool found;
  helio_status status = hi_logs_find(t->logs, "learning_rate", rate, &found);
  if (!status && !found) *rate = hi_optimizer_rate(t->optimizer);
  return status;
}

static helio_status end_json_epoch(void *user, helio_training *t) {
  json_logger *json = user;
  line l;
  double rate;
  helio_status status = find_rate(t, &rate);
  if (!status) status = begin_line(&json->file, &l);
  if (status) return status;
  fprintf(l.out, "{\"epoch\": %d, \"steps\": %" PRId64 ", \"seconds\": ", t->epoch + 1, t->step);
  put_rounded(&l, t->seconds, 1e6);
  fputs(", \"learning_rate\": ", l.out);
  put_value(&l, rate);
  status = put_measured(json, &l, t->logs);
  fputc('}', l.out);
  return put_line(&json->file, &l, status);
}

static helio_status end_json(void *user, helio_training *t) {
  json_logger *json = user;
  (void)t;
  return close_file(&json->file);
}

static void release_json(void *user) {
  json_logger *json = user;
  free_file(&json->file);
  free(json);
}

helio_callback *helio_json_logger_with(const helio_json_logger_options *given) {
  helio_json_logger_options o;
  if (!hi_options_enter("helio_json_logger", &o, sizeof o, given)) return NULL;
  json_logger *json = hi_callback_user(sizeof *json);
  if (!json) return NULL;
  json->epochs_only = o.epochs_only;
  helio_callback *made = NULL;
  json->file = (line_file){.path = hi_callback_path(o.path), .append = o.append};
  if (json->file.path) {
    made = helio_callback(.user = json, .train_begin = begin_json, .batch_end = end_json_batch,
                          .epoch_end = end_json_epoch, .train_end = end_json, .release = release_json);
  }
  if (!made) release_json(json);
  return made;
}
