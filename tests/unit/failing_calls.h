/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the system and allocations that fail when a test says so. The linker hands the core's calls of the functions
 * below to them (-Wl,--wrap=…, in Makefile.am), so a program that includes this links libheliocore. For one thread. */
#ifndef HELIO_TEST_FAILING_CALLS_H
#define HELIO_TEST_FAILING_CALLS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdarg.h>
#include <sys/file.h>

#include "support.h"

typedef enum call_kind { NO_CALLS, SYSTEM_CALLS, ALLOCATIONS } call_kind;

enum { MOST_CALLS = 500 };

static struct {
  call_kind kind;
  long seen, which;              /* counted from 1; 0: none fails */
  const char *names[MOST_CALLS]; /* of those that were seen */
  bool later;                    /* those behind it fail too, if they are calls of the same function */
  int error;
  const char *failed;  /* the last function that did, NULL: none */
  size_t most_written; /* at a time, 0: all */
  bool no_disk;        /* fsync() does nothing, which saves time and is not seen as long as the machine runs */
  void (*meanwhile)(const char *name); /* what somebody else does before such a call; NULL: nothing */
} failing_calls;

static bool call_fails(call_kind kind, const char *name) {
  if (failing_calls.kind != kind) return false;
  if (failing_calls.meanwhile) {
    int before = errno;
    failing_calls.kind = NO_CALLS;
    failing_calls.meanwhile(name);
    failing_calls.kind = kind;
    errno = before;
  }
  bool again = failing_calls.later && failing_calls.failed && strcmp(failing_calls.failed, name) == 0;
  if (failing_calls.seen < MOST_CALLS) failing_calls.names[failing_calls.seen] = name;
  if (++failing_calls.seen != failing_calls.which && !again) return false;
  failing_calls.failed = name;
  errno = failing_calls.error;
  return true;
}

/* From here on this one fails. */
static inline void fail_call(call_kind kind, long which, int error, bool later) {
  failing_calls.kind = kind;
  failing_calls.seen = 0;
  failing_calls.which = which;
  failing_calls.later = later;
  failing_calls.error = error;
  failing_calls.failed = NULL;
}

/* All succeed again. Returns the function that has failed, NULL if there were not so many calls. */
static inline const char *fail_no_more_calls(void) {
  failing_calls.kind = NO_CALLS;
  return failing_calls.failed;
}

#define WRAPPED(kind, result, failure, name, parameters, arguments)                                                    \
  result __real_##name parameters;                                                                                     \
  result __wrap_##name parameters;                                                                                     \
  result __wrap_##name parameters {                                                                                    \
    return call_fails(kind, #name) ? failure : __real_##name arguments;                                                \
  }
WRAPPED(ALLOCATIONS, void *, NULL, malloc, (size_t bytes), (bytes))
WRAPPED(ALLOCATIONS, void *, NULL, calloc, (size_t count, size_t bytes), (count, bytes))
WRAPPED(ALLOCATIONS, void *, NULL, realloc, (void *memory, size_t bytes), (memory, bytes))
WRAPPED(ALLOCATIONS, char *, NULL, strdup, (const char *text), (text))
WRAPPED(ALLOCATIONS, char *, NULL, realpath, (const char *path, char *result), (path, result))
WRAPPED(ALLOCATIONS, FILE *, NULL, open_memstream, (char **text, size_t *bytes), (text, bytes))
WRAPPED(ALLOCATIONS, locale_t, (locale_t)0, newlocale, (int mask, const char *name, locale_t base), (mask, name, base))
WRAPPED(ALLOCATIONS, DIR *, NULL, opendir, (const char *path), (path))
WRAPPED(SYSTEM_CALLS, struct dirent *, NULL, readdir, (DIR * folder), (folder))
WRAPPED(SYSTEM_CALLS, int, -1, flock, (int file, int operation), (file, operation))
WRAPPED(SYSTEM_CALLS, int, -1, fchmod, (int file, mode_t mode), (file, mode))
WRAPPED(SYSTEM_CALLS, int, -1, fstat, (int file, struct stat *about), (file, about))
WRAPPED(SYSTEM_CALLS, int, -1, lstat, (const char *path, struct stat *about), (path, about))
WRAPPED(SYSTEM_CALLS, int, -1, stat, (const char *path, struct stat *about), (path, about))
WRAPPED(SYSTEM_CALLS, int, -1, link, (const char *path, const char *other), (path, other))
WRAPPED(SYSTEM_CALLS, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
WRAPPED(SYSTEM_CALLS, int, -1, unlink, (const char *path), (path))
WRAPPED(SYSTEM_CALLS, int, -1, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
WRAPPED(SYSTEM_CALLS, int, -1, rename, (const char *old, const char *new), (old, new))
WRAPPED(SYSTEM_CALLS, int, -1, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new))
WRAPPED(SYSTEM_CALLS, ssize_t, -1, pread, (int file, void *data, size_t bytes, off_t at), (file, data, bytes, at))

int __real_fsync(int file);
int __wrap_fsync(int file);
int __real_close(int file);
int __wrap_close(int file);
ssize_t __real_pwrite(int file, const void *data, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int file, const void *data, size_t bytes, off_t at);
ssize_t __real_write(int file, const void *data, size_t bytes);
ssize_t __wrap_write(int file, const void *data, size_t bytes);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __real_asprintf(char **text, const char *format, ...);
int __wrap_asprintf(char **text, const char *format, ...) HELIO_PRINTF(2, 3);

int __wrap_fsync(int file) {
  if (call_fails(SYSTEM_CALLS, "fsync")) return -1;
  return failing_calls.no_disk ? 0 : __real_fsync(file);
}

/* It is closed all the same. */
int __wrap_close(int file) {
  bool fails = call_fails(SYSTEM_CALLS, "close");
  int error = errno, result = __real_close(file);
  if (!fails) return result;
  errno = error;
  return -1;
}

ssize_t __wrap_pwrite(int file, const void *data, size_t bytes, off_t at) {
  if (failing_calls.most_written && bytes > failing_calls.most_written) bytes = failing_calls.most_written;
  return call_fails(SYSTEM_CALLS, "pwrite") ? -1 : __real_pwrite(file, data, bytes, at);
}

ssize_t __wrap_write(int file, const void *data, size_t bytes) {
  if (failing_calls.most_written && bytes > failing_calls.most_written) bytes = failing_calls.most_written;
  return call_fails(SYSTEM_CALLS, "write") ? -1 : __real_write(file, data, bytes);
}

int __wrap_open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(arguments, int) : 0;
  va_end(arguments);
  return call_fails(SYSTEM_CALLS, "open") ? -1 : __real_open(path, flags, mode);
}

int __wrap_openat(int folder, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(arguments, int) : 0;
  va_end(arguments);
  return call_fails(SYSTEM_CALLS, "openat") ? -1 : __real_openat(folder, path, flags, mode);
}

int __wrap_asprintf(char **text, const char *format, ...) {
  va_list arguments;
  if (call_fails(ALLOCATIONS, "asprintf")) return -1;
  va_start(arguments, format);
  int length = vasprintf(text, format, arguments);
  va_end(arguments);
  return length;
}

#endif
