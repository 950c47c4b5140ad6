/* SPDX-License-Identifier: Apache-2.0 */
/* The lock around every call, and what is told to the host when the lock is given back. */
#define _GNU_SOURCE /* the adaptive mutex */
#include "strict.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

strict_state *strict_current;

/* Held for a moment by many threads: to sleep would cost more than to wait. */
static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

void strict_enter(strict_call *call, const char *name) {
  pthread_mutex_lock(&lock);
  call->name = name;
  call->message[0] = 0;
  call->complaint[0] = 0;
}

/* The host is called without the lock, because its log may end in a user's sink that calls the library. */
helio_status strict_leave(strict_call *call, helio_status status) {
  const helio_host *host = strict_current != NULL ? strict_current->host : NULL;
  pthread_mutex_unlock(&lock);
  if (host == NULL) return status;
  if (call->complaint[0] != 0) host->log(host, HELIO_LOG_ERROR, "%s: %s", call->name, call->complaint);
  if (status == HELIO_OK || status == HELIO_NOT_READY) return status;
  return host->fail(host, status, "%s: %s", call->name, call->message);
}

helio_status strict_fail(strict_call *call, helio_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(call->message, sizeof call->message, format, arguments);
  va_end(arguments);
  return status;
}

static void append_complaint(strict_call *call, const char *text) {
  size_t length = strlen(call->complaint);
  snprintf(call->complaint + length, sizeof call->complaint - length, "%s%s", length != 0 ? "; " : "", text);
}

void strict_complain(strict_call *call, const char *format, ...) {
  char text[STRICT_MESSAGE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  append_complaint(call, text);
}

/* A mistake in a call that returns nothing: logged now, and told by the next synchronize so that a test fails. */
void strict_violation(strict_call *call, const char *format, ...) {
  char text[STRICT_MESSAGE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  append_complaint(call, text);
  if (strict_current != NULL) {
    strict_remember(&strict_current->violation, HELIO_WRONG_STATE, "an earlier %s: %s", call->name, text);
  }
}

/* The first failure is the cause; what follows from it would only hide it. */
void strict_remember(strict_failure *failure, helio_status status, const char *format, ...) {
  if (failure->status != HELIO_OK) return;
  failure->status = status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(failure->message, sizeof failure->message, format, arguments);
  va_end(arguments);
}

helio_status strict_take_failure(strict_call *call, strict_failure *failure) {
  if (failure->status == HELIO_OK) return HELIO_OK;
  helio_status status = failure->status;
  failure->status = HELIO_OK;
  return strict_fail(call, status, "%s", failure->message);
}

void *strict_allocate(size_t bytes) {
  const helio_host *host = strict_current->host;
  void *memory = host->allocate(host, bytes);
  if (memory != NULL) memset(memory, 0, bytes);
  return memory;
}

void strict_release(void *memory) {
  if (memory != NULL) strict_current->host->release(strict_current->host, memory);
}

/* splitmix64; the seed decides the order of streams and how long queries are put off. */
uint64_t strict_random(uint64_t below) {
  uint64_t x = strict_current->random += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return (x ^ (x >> 31)) % below;
}
