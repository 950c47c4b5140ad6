/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "runtime/error.h"

enum { LINE = 2400 };

static void write_to_stderr(void *user, helio_log_level level, const char *line) {
  (void)user;
  (void)level;
  fprintf(stderr, "%s\n", line);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the sink and its user */
static helio_log_sink sink = write_to_stderr;
static void *sink_user;
static atomic_int threshold = HELIO_LOG_INFO;
static atomic_bool chosen_by_program;

static const char *level_name(helio_log_level level) {
  switch (level) {
  case HELIO_LOG_DEBUG:
    return "DEBUG";
  case HELIO_LOG_INFO:
    return "INFO";
  case HELIO_LOG_WARNING:
    return "WARNING";
  case HELIO_LOG_ERROR:
  case HELIO_LOG_OFF:
    break;
  }
  return "ERROR";
}

static bool wanted(helio_log_level level) {
  return (int)level >= atomic_load_explicit(&threshold, memory_order_relaxed);
}

static void emit(helio_log_level level, const char *line) {
  pthread_mutex_lock(&lock);
  sink(sink_user, level, line);
  pthread_mutex_unlock(&lock);
}

void hi_log(helio_log_level level, const char *format, ...) {
  if (!wanted(level)) return;
  char line[LINE];
  int prefix = snprintf(line, sizeof line, "%s:helio:", level_name(level));
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line + prefix, sizeof line - (size_t)prefix, format, arguments);
  va_end(arguments);
  emit(level, line);
}

void hi_log_plugin(helio_log_level level, const char *plugin, const char *format, va_list arguments) {
  if (!wanted(level)) return;
  char line[LINE];
  int prefix = snprintf(line, sizeof line, "%s:helio:%s: ", level_name(level), plugin);
  vsnprintf(line + prefix, sizeof line - (size_t)prefix, format, arguments);
  emit(level, line);
}

void hi_log_bare(const char *format, ...) {
  if (!wanted(HELIO_LOG_INFO)) return;
  char line[LINE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  emit(HELIO_LOG_INFO, line);
}

void hi_log_default_level(helio_log_level level) {
  if (!atomic_load(&chosen_by_program)) atomic_store(&threshold, (int)level);
}

void helio_set_log_sink(helio_log_sink new_sink, void *user) {
  pthread_mutex_lock(&lock);
  sink = new_sink ? new_sink : write_to_stderr;
  sink_user = new_sink ? user : NULL;
  pthread_mutex_unlock(&lock);
}

helio_status helio_set_log_level(helio_log_level level) {
  helio_status status = hi_enter_unstarted(__func__);
  if (status) return status;
  if (level < HELIO_LOG_DEBUG || level > HELIO_LOG_OFF) {
    return hi_fail(HELIO_INVALID_ARGUMENT, "log level %d is none of HELIO_LOG_DEBUG … HELIO_LOG_OFF", (int)level);
  }
  atomic_store(&chosen_by_program, true);
  atomic_store(&threshold, (int)level);
  return HELIO_OK;
}
