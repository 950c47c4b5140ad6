/* SPDX-License-Identifier: Apache-2.0 */
#include "train/trace_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/json.h"
#include "runtime/error.h"
#include "tensor/text.h"
#include "train/output_file.h"

struct hi_trace_file {
  hi_output_file output;
  long process;
};

/* Viewers take a thread with the number 0 for one without a number. */
enum { FIRST_THREAD = 1 };

static helio_status no_memory(const char *path) {
  return hi_fail(HELIO_OUT_OF_MEMORY, "%s: no memory for a trace", path);
}

static helio_status HELIO_PRINTF(2, 3) put_event(hi_trace_file *file, const char *format, ...) {
  char *text;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) return no_memory(file->output.path);
  helio_status status = hi_output_file_put(&file->output, text, (size_t)length);
  free(text);
  return status;
}

/* A name as JSON, which the caller frees. JSON may hold the character DEL, but Perfetto refuses the file then. */
static helio_status quote(const char *path, const char *name, char **quoted) {
  helio_status status = name ? hi_json_quoted(name, quoted) : HELIO_INVALID_ARGUMENT;
  if (status == HELIO_OUT_OF_MEMORY) return no_memory(path);
  if (status) return hi_fail(status, "%s: a name is %s", path, name ? "not UTF-8" : "NULL");
  for (char *c = *quoted; *c; c++) {
    if (*c == 127) *c = '?';
  }
  return HELIO_OK;
}

static helio_status check_track(const hi_trace_file *file, int track) {
  if (track >= 0) return HELIO_OK;
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s: there is no track %d", file->output.path, track);
}

/* False if it is no time, or one three centuries away. */
static bool in_nanoseconds(double seconds, int64_t *nanoseconds) {
  if (!(seconds >= 0 && seconds < 9e9)) return false;
  *nanoseconds = (int64_t)round(seconds * 1e9);
  return true;
}

static helio_status refuse_time(const hi_trace_file *file) {
  return hi_fail(HELIO_INVALID_ARGUMENT, "%s: a time is negative, not finite or too far away", file->output.path);
}

/* Microseconds, with a point whatever the locale says of points. Readers that scan instead of parse look for times and
 * phase only, so these stand before all text that is not ours. */
#define MICROSECONDS              "%" PRId64 ".%03d"
#define IN_MICROSECONDS(duration) (duration) / 1000, (int)((duration) % 1000)

/* ---- open and close ---- */

static helio_status open_at(hi_trace_file *file, const char *path, const char *quoted) {
  helio_status status = hi_output_file_create(&file->output, path, false);
  if (status) return status;
  file->output.ending = "\n]"; /* no line end: Perfetto, which reads in pieces, may refuse one with a piece behind it */
  file->process = (long)getpid();
  status = put_event(file, "[\n{\"ph\":\"M\",\"pid\":%ld,\"name\":\"process_name\",\"args\":{\"name\":%s}}",
                     file->process, quoted);
  if (!status) status = hi_output_file_flush(&file->output);
  if (status) hi_output_file_close(&file->output);
  return status;
}

hi_trace_file *hi_trace_file_open(const char *path, const char *process) {
  char *quoted = NULL;
  if (!path || !*path) {
    hi_fail(HELIO_INVALID_ARGUMENT, "the path of a trace is %s", path ? "\"\"" : "NULL");
    return NULL;
  }
  if (quote(path, process, &quoted)) return NULL;
  hi_trace_file *file = malloc(sizeof *file);
  helio_status status = file ? open_at(file, path, quoted) : no_memory(path);
  free(quoted);
  if (!status) return file;
  free(file);
  return NULL;
}

helio_status hi_trace_file_flush(hi_trace_file *file) {
  return hi_output_file_flush(&file->output);
}

helio_status hi_trace_file_close(hi_trace_file *file) {
  if (!file) return HELIO_OK;
  helio_status status = hi_output_file_close(&file->output);
  free(file);
  return status;
}

/* ---- events ---- */

helio_status hi_trace_file_name(hi_trace_file *file, int track, const char *name) {
  char *quoted;
  helio_status status = check_track(file, track);
  if (!status) status = quote(file->output.path, name, &quoted);
  if (status) return status;
  status = put_event(
      file, ",\n{\"ph\":\"M\",\"pid\":%ld,\"tid\":%" PRId64 ",\"name\":\"thread_name\",\"args\":{\"name\":%s}}",
      file->process, (int64_t)track + FIRST_THREAD, quoted);
  free(quoted);
  return status;
}

/* The end is rounded, not the length, so that spans that lie within each other still do. */
helio_status hi_trace_file_span(hi_trace_file *file, int track, const char *name, double start_seconds,
                                double seconds) {
  char *quoted;
  int64_t start, end;
  helio_status status = check_track(file, track);
  if (status) return status;
  if (!in_nanoseconds(start_seconds, &start) || !(seconds >= 0) || !in_nanoseconds(start_seconds + seconds, &end)) {
    return refuse_time(file);
  }
  status = quote(file->output.path, name, &quoted);
  if (status) return status;
  status = put_event(file,
                     ",\n{\"ph\":\"X\",\"pid\":%ld,\"tid\":%" PRId64 ",\"ts\":" MICROSECONDS ",\"dur\":" MICROSECONDS
                     ",\"cat\":\"helio\",\"name\":%s}",
                     file->process, (int64_t)track + FIRST_THREAD, IN_MICROSECONDS(start), IN_MICROSECONDS(end - start),
                     quoted);
  free(quoted);
  return status;
}

static helio_status put_counter(hi_trace_file *file, const char *quoted, int64_t at, double value) {
  char *number = hi_array_text(HELIO_FLOAT64, 0, NULL, &value); /* in a form that JSON has too */
  if (!number) return no_memory(file->output.path);
  helio_status status = put_event(file,
                                  ",\n{\"ph\":\"C\",\"pid\":%ld,\"ts\":" MICROSECONDS
                                  ",\"cat\":\"helio\",\"name\":%s,\"args\":{\"value\":%s}}",
                                  file->process, IN_MICROSECONDS(at), quoted, number);
  free(number);
  return status;
}

helio_status hi_trace_file_counter(hi_trace_file *file, const char *name, double at_seconds, double value) {
  char *quoted;
  int64_t at;
  if (!in_nanoseconds(at_seconds, &at)) return refuse_time(file);
  helio_status status = quote(file->output.path, name, &quoted);
  if (status) return status;
  if (isfinite(value)) status = put_counter(file, quoted, at, value);
  free(quoted);
  return status;
}
