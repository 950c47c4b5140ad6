/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/error.h"

#include <stdio.h>
#include <string.h>

#include "runtime/printable.h"
#include "runtime/progress.h"
#include "runtime/runtime.h"

typedef struct thread_errors {
  helio_error pending;
  const char *function;
  char reason[1200];
} thread_errors;

static _Thread_local thread_errors errors;

helio_status hi_enter_unstarted(const char *function) {
  hi_go_no_further(); /* the program's own code may have hung as well */
  if (errors.pending.status) return errors.pending.status;
  errors.function = function;
  return HELIO_OK;
}

void hi_enter_release(const char *function) {
  errors.function = function;
}

helio_status hi_enter(const char *function) {
  helio_status status = hi_enter_unstarted(function);
  return status ? status : hi_runtime_ensure();
}

static void set_message(const char *text) {
  size_t length = hi_text_fit(text, sizeof errors.pending.message);
  memcpy(errors.pending.message, text, length);
  errors.pending.message[length] = 0;
}

helio_status hi_fail(helio_status status, const char *format, ...) {
  if (errors.pending.status) return errors.pending.status;
  char text[sizeof errors.pending.message + 1]; /* one byte more than fits tells where a character is cut */
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  set_message(text);
  errors.pending.where = errors.function ? errors.function : "";
  errors.pending.status = status;
  return status;
}

void hi_error_blame(const char *function) {
  if (errors.pending.status) errors.pending.where = function;
}

void hi_error_prefix(const char *format, ...) {
  if (!errors.pending.status) return;
  char text[2 * sizeof errors.pending.message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof errors.pending.message + 1, format, arguments);
  va_end(arguments);
  size_t length = strlen(text);
  snprintf(text + length, sizeof text - length, "%s", errors.pending.message);
  set_message(text);
}

void hi_reason_set(const char *format, va_list arguments) {
  vsnprintf(errors.reason, sizeof errors.reason, format, arguments);
}

void hi_reason_say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  hi_reason_set(format, arguments);
  va_end(arguments);
}

void hi_reason_clear(void) {
  errors.reason[0] = 0;
}

helio_status hi_error_as_reason(helio_status status) {
  if (!status || !errors.pending.status) return status;
  hi_reason_say("%s", errors.pending.message);
  return helio_error_take(NULL);
}

const char *hi_reason(helio_status status) {
  return errors.reason[0] ? errors.reason : helio_status_text(status);
}

helio_status helio_error_pending(void) {
  return errors.pending.status;
}

const char *helio_error_message(void) {
  return errors.pending.status ? errors.pending.message : "";
}

helio_status helio_error_take(helio_error *error) {
  helio_status status = errors.pending.status;
  if (error) {
    if (!status) memset(&errors.pending, 0, sizeof errors.pending);
    *error = errors.pending;
    if (!error->where) error->where = "";
  }
  errors.pending.status = HELIO_OK;
  return status;
}

const char *helio_status_name(helio_status status) {
  switch (status) {
#define NAME(name, value, text)                                                                                        \
  case HELIO_##name:                                                                                                   \
    return "HELIO_" #name;
    HELIO_STATUS_LIST(NAME)
#undef NAME
  }
  return "HELIO_UNKNOWN_STATUS";
}

const char *helio_status_text(helio_status status) {
  switch (status) {
#define TEXT(name, value, text)                                                                                        \
  case HELIO_##name:                                                                                                   \
    return text;
    HELIO_STATUS_LIST(TEXT)
#undef TEXT
  }
  return "unknown status";
}
