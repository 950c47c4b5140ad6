/* SPDX-License-Identifier: Apache-2.0 */
/* What unit tests share. cmocka's asserts must stay on the test's own thread. */
#ifndef HELIO_TEST_H
#define HELIO_TEST_H

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* and then itself */
#include <cmocka.h>
#include <helio/helio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Leaves the test and says why. The runner counts and prints skips. */
#define SKIP(...)                                                                                                      \
  do {                                                                                                                 \
    printf("SKIP: " __VA_ARGS__);                                                                                      \
    printf("\n");                                                                                                      \
    skip();                                                                                                            \
  } while (0)

/* The call succeeded: a status HELIO_OK, or a pointer that is not NULL. Says the library's message if not. */
#define assert_ok(status)                                                                                              \
  do {                                                                                                                 \
    helio_status status_ = (status);                                                                                   \
    if (status_) fail_msg("%s: %s: %s", #status, helio_status_name(status_), helio_error_message());                   \
  } while (0)

#define assert_made(pointer)                                                                                           \
  do {                                                                                                                 \
    if (!(pointer)) fail_msg("%s: %s: %s", #pointer, helio_status_name(helio_error_pending()), helio_error_message()); \
  } while (0)

/* An error is pending with this status and its message has `part` in it; takes it. */
static inline void expect_error_at(helio_status status, const char *part, const char *file, int line) {
  helio_error error;
  helio_status seen = helio_error_take(&error);
  if (seen != status) {
    print_error("%s:%d: expected %s, got %s: %s\n", file, line, helio_status_name(status), helio_status_name(seen),
                error.message);
    _fail(file, line);
  }
  if (!strstr(error.message, part)) {
    print_error("%s:%d: \"%s\" is not in \"%s\"\n", file, line, part, error.message);
    _fail(file, line);
  }
}
#define expect_error(status, part) expect_error_at(status, part, __FILE__, __LINE__)

/* Tests of a group start from a library that is not running, with the environment that the runner gave. */
static inline int start_afresh(void **state) {
  (void)state;
  helio_error_take(NULL);
  return helio_shutdown() == HELIO_OK ? 0 : -1;
}

#endif
