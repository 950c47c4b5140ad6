/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that fail when a test says so. The functions below stand in place of libc's, or of a sanitizer's, for the
 * whole process. Those fail that the library asks for, its plugins, zlib and libc itself: others, such as the dynamic
 * loader, do not come through it; nor does jansson, for which the library therefore asks beforehand. A program that
 * includes this links libhelio as users do, because its own allocations do not fail; a test of internals, which has the
 * core in itself, says so with FAILING_PROGRAM. */
#ifndef HELIO_TEST_FAILING_MEMORY_H
#define HELIO_TEST_FAILING_MEMORY_H

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "support.h"

/* 1: what the program itself asks for fails too. */
#ifndef FAILING_PROGRAM
#define FAILING_PROGRAM 0
#endif

/* Where the real ones are. */
#if SANITIZED
#define REAL(name) __interceptor_##name
int __interceptor_posix_memalign(void **memory, size_t alignment, size_t bytes);
#else
#define REAL(name) __libc_##name
void *__libc_memalign(size_t alignment, size_t bytes);
#endif
void *REAL(malloc)(size_t bytes);
void *REAL(calloc)(size_t count, size_t bytes);
void *REAL(realloc)(void *memory, size_t bytes);

/* Which allocation fails, counted from 1 over all threads. */
static struct {
  atomic_bool counting;
  atomic_long seen, failed;
  long which; /* 0: none */
  bool later; /* those behind it fail too */
} failing;

/* Some run before the sanitizer is ready for code that it has instrumented. */
#define UNINSTRUMENTED __attribute__((no_sanitize("address", "thread", "undefined")))
#define IN_PLACE       UNINSTRUMENTED __attribute__((visibility("default")))

/* A sanitizer gives up if libc, which it asks about threads, has no memory. */
UNINSTRUMENTED static bool counts(void *caller) {
  static const char *const files[] = {"/.libs/", "/libz.so", "/libc.so"};
  struct dl_find_object found;
  if (_dl_find_object(caller, &found)) return false;
  const char *name = found.dlfo_link_map->l_name; /* "" is the program's */
  if (FAILING_PROGRAM && !*name) return true;
  for (size_t i = 0; i < COUNT_OF(files) - SANITIZED; i++) {
    if (strstr(name, files[i])) return true;
  }
  return false;
}

UNINSTRUMENTED static bool fails(void *caller) {
  if (!atomic_load_explicit(&failing.counting, memory_order_acquire) || !counts(caller)) return false;
  long number = atomic_fetch_add(&failing.seen, 1) + 1;
  if (failing.which == 0 || number < failing.which || (number > failing.which && !failing.later)) return false;
  atomic_fetch_add(&failing.failed, 1);
  errno = ENOMEM;
  return true;
}

UNINSTRUMENTED static void *real_aligned(size_t alignment, size_t bytes) {
#if SANITIZED
  void *memory = NULL;
  return __interceptor_posix_memalign(&memory, alignment, bytes) ? NULL : memory;
#else
  return __libc_memalign(alignment, bytes);
#endif
}

#define FAILS fails(__builtin_return_address(0))

IN_PLACE void *malloc(size_t bytes) {
  return FAILS ? NULL : REAL(malloc)(bytes);
}

IN_PLACE void *calloc(size_t count, size_t bytes) {
  return FAILS ? NULL : REAL(calloc)(count, bytes);
}

IN_PLACE void *realloc(void *memory, size_t bytes) {
  return FAILS ? NULL : REAL(realloc)(memory, bytes);
}

IN_PLACE void *aligned_alloc(size_t alignment, size_t bytes) {
  return FAILS ? NULL : real_aligned(alignment, bytes);
}

IN_PLACE int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  void *made = FAILS ? NULL : real_aligned(alignment, bytes);
  if (!made) return ENOMEM;
  *memory = made;
  return 0;
}

/* So those of libc's functions fail here that the library calls. */
#if SANITIZED
IN_PLACE char *strdup(const char *text) {
  size_t bytes = strlen(text) + 1;
  char *copy = FAILS ? NULL : REAL(malloc)(bytes);
  return copy ? memcpy(copy, text, bytes) : NULL;
}

int REAL(vasprintf)(char **text, const char *format, va_list arguments);

IN_PLACE int vasprintf(char **text, const char *format, va_list arguments) {
  return FAILS ? -1 : REAL(vasprintf)(text, format, arguments);
}

IN_PLACE int asprintf(char **text, const char *format, ...) {
  va_list arguments;
  if (FAILS) return -1;
  va_start(arguments, format);
  int length = REAL(vasprintf)(text, format, arguments);
  va_end(arguments);
  return length;
}
#endif

/* From here on this one fails and, if `later`, all behind it. */
static inline void fail_allocation(long which, bool later) {
  failing.which = which;
  failing.later = later;
  atomic_store(&failing.seen, 0);
  atomic_store(&failing.failed, 0);
  atomic_store_explicit(&failing.counting, true, memory_order_release);
}

/* All succeed again. Returns how many have failed. */
static inline long fail_no_more(void) {
  atomic_store(&failing.counting, false);
  return atomic_load(&failing.failed);
}

#endif
