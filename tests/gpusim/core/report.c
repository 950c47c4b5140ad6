/* SPDX-License-Identifier: Apache-2.0 */
/* Violations are written at once, because the process may not live much longer, and counted: a process in which there
 * was one ends with SIM_EXIT, whatever it wanted to end with. */
#include "internal.h"

#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TOLD = 100 }; /* a mistake in a loop must not fill the disk */

static atomic_int violations;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static bool inherited; /* this process was forked by one that had opened devices */

static _Thread_local const char *current_call;
static _Thread_local const sim_origin *working_for; /* who queued the work that this thread does; NULL: none */

void sim_call(const char *name) {
  current_call = name;
}

const char *sim_current_call(void) {
  return current_call ? current_call : "no call of a vendor";
}

void sim_work_for(const sim_origin *queued) {
  working_for = queued;
}

void sim_remember_origin(sim_origin *origin) {
  origin->call = sim_current_call();
  origin->depth = backtrace(origin->frames, SIM_FRAMES);
}

bool sim_write_all(int file, const char *data, size_t bytes) {
  while (bytes > 0) {
    ssize_t written = write(file, data, bytes);
    if (written <= 0) return false;
    data += written;
    bytes -= (size_t)written;
  }
  return true;
}

/* Nothing here allocates: a handler of SIGSEGV comes here too. */
static void tell(const sim_origin *origin, const char *where, const char *kind, const char *format, va_list arguments) {
  int number = atomic_fetch_add(&violations, 1) + 1;
  if (number > MOST_TOLD) return;

  char message[1536], text[2048];
  vsnprintf(message, sizeof message, format, arguments);
  int length = snprintf(text, sizeof text, "gpusim: violation: %s: %s\n  %s %s\n", kind, message, where, origin->call);
  if (number == MOST_TOLD)
    length += snprintf(text + length, sizeof text - (size_t)length, "gpusim: further ones are not told\n");

  const char *path = sim_setup()->report;
  int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : STDERR_FILENO;
  if (file < 0) file = STDERR_FILENO;
  pthread_mutex_lock(&writing);
  sim_write_all(file, text, strnlen(text, sizeof text));
  backtrace_symbols_fd(origin->frames, origin->depth, file);
  if (working_for) {
    length = snprintf(text, sizeof text, "  queued in %s\n", working_for->call);
    sim_write_all(file, text, (size_t)length);
    backtrace_symbols_fd(working_for->frames, working_for->depth, file);
  }
  pthread_mutex_unlock(&writing);
  if (file != STDERR_FILENO) close(file);
}

void sim_violation(const char *kind, const char *format, ...) {
  sim_origin here;
  sim_remember_origin(&here);
  va_list arguments;
  va_start(arguments, format);
  tell(&here, "in", kind, format, arguments);
  va_end(arguments);
}

void sim_violation_of(const sim_origin *origin, const char *where, const char *kind, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  tell(origin, where, kind, format, arguments);
  va_end(arguments);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Children, which the vendors' drivers do not follow
 */

static void before_fork(void) {
  sim_lock();
  pthread_mutex_lock(&writing);
}

static void after_fork(void) {
  pthread_mutex_unlock(&writing);
  sim_unlock();
}

static void note_device(sim_device *device, void *context) {
  (void)device;
  *(bool *)context = true;
}

/* A child answers for what it does itself, and has no device that its parent had opened. */
static void begin_child(void) {
  sim_each_device(note_device, &inherited);
  atomic_store(&violations, 0);
  after_fork();
}

sim_status sim_after_fork(void) {
  if (!inherited) return SIM_OK;
  sim_violation("used after fork", "the process that forked this one had opened devices, which a child cannot use");
  return SIM_NOT_INITIALIZED;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Beginning and end
 */

/* The first backtrace loads a library, which a handler of a signal must not do. */
__attribute__((constructor)) static void open_report(void) {
  void *frames[1];
  backtrace(frames, 1);
  pthread_atfork(before_fork, after_fork, begin_child);
}

static void settle_all(void) {
  sim_call("the end of the process");
  sim_streams_end();
  if (sim_setup()->leaks) sim_tell_leaks(NULL);
  sim_counters_write();
}

/* Runs after main and the handlers of atexit. What a child inherited is its parent's to end. */
__attribute__((destructor)) static void close_report(void) {
  if (!inherited) settle_all();
  int count = atomic_load(&violations);
  if (count == 0) return;
  fprintf(stderr, "gpusim: %d violation%s\n", count, count == 1 ? "" : "s");
  fflush(NULL);
  _exit(SIM_EXIT);
}
