/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the runtime, plugins and devices share: a clean environment, the log, children, temporary folders and
 * what the process holds. */
#ifndef HELIO_TEST_SUPPORT_H
#define HELIO_TEST_SUPPORT_H

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the environment ---- */

extern char **environ;

/* As the runner gave them. */
static char given_path[PATH_MAX * 2], given_backend[64], given_arena_debug[8], given_visible[256];

/* The top of the build tree: what the runner says, else found by where this program lies. */
static inline const char *build_folder(void) {
  static char folder[PATH_MAX];
  const char *given = getenv("HELIO_TEST_BUILD");
  if (given) return given;
  if (!folder[0]) {
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[length > 0 ? length : 0] = 0;
    char *tail = strstr(folder, "/tests/unit/");
    if (tail) *tail = 0;
  }
  return folder;
}

/* On GPUs of a vendor, emulated or real. */
static inline bool on_vendor(void) {
  return strcmp(given_backend, "cuda") == 0 || strcmp(given_backend, "hip") == 0;
}

/* Where the libraries of the GPUs are that it runs on. */
static inline bool names_libraries(const char *variable, size_t length) {
  static const char end[] = "_LIBRARIES";
  size_t most = sizeof end - 1;
  return on_vendor() && length > most && strncmp(variable + length - most, end, most) == 0;
}

/* Unsets all variables HELIO_… but those of the tests, and on GPUs those that tell where libraries are. */
static inline void clear_environment(void) {
  for (char **variable = environ; variable && *variable;) {
    char name[200];
    size_t length = strcspn(*variable, "=");
    bool ours = strncmp(*variable, "HELIO_", 6) == 0 && strncmp(*variable, "HELIO_TEST_", 11) != 0;
    if (ours && length < sizeof name && !names_libraries(*variable, length)) {
      snprintf(name, sizeof name, "%.*s", (int)length, *variable);
      unsetenv(name);
      variable = environ; /* unsetenv has moved the rest */
    } else {
      variable++;
    }
  }
}

/* Called first in main(). */
static inline void remember_environment(void) {
  const char *path = getenv("HELIO_PLUGIN_PATH"), *backend = getenv("HELIO_BACKEND");
  const char *arena_debug = getenv("HELIO_ARENA_DEBUG"), *visible = getenv("HELIO_VISIBLE_DEVICES");
  if (path) {
    snprintf(given_path, sizeof given_path, "%s", path);
  } else {
    snprintf(given_path, sizeof given_path, "%s/backends/cpu/.libs", build_folder());
  }
  snprintf(given_backend, sizeof given_backend, "%s", backend ? backend : "");
  snprintf(given_arena_debug, sizeof given_arena_debug, "%s", arena_debug ? arena_debug : "");
  snprintf(given_visible, sizeof given_visible, "%s", visible ? visible : "");
}

static inline void restore_environment(void) {
  clear_environment();
  setenv("HELIO_PLUGIN_PATH", given_path, 1);
  if (given_backend[0]) setenv("HELIO_BACKEND", given_backend, 1);
  if (given_arena_debug[0]) setenv("HELIO_ARENA_DEBUG", given_arena_debug, 1);
  if (given_visible[0]) setenv("HELIO_VISIBLE_DEVICES", given_visible, 1);
}

static inline bool on_strict(void) {
  return strcmp(given_backend, "strict") == 0;
}

/* The strict device is a GPU too, as far as names go. */
static inline bool on_gpu(void) {
  return on_strict() || on_vendor();
}

/* The device that the variant is about. */
static inline const char *device_name(void) {
  return on_gpu() ? "gpu:0" : "cpu:0";
}

/* ---- the log ---- */

enum { LOG_LINES = 200 };

static struct {
  char lines[LOG_LINES][1200];
  helio_log_level levels[LOG_LINES];
  int count;
} seen;

/* A debug build tells what is still held when the library ends, and the runner fails a program whose output has that. A
 * test that holds something on purpose sets this. */
static bool leaks_are_meant;

static inline void keep_line(void *user, helio_log_level level, const char *line) {
  (void)user;
  if (strstr(line, "still held at helio_shutdown()") && !leaks_are_meant) fprintf(stderr, "%s\n", line);
  if (seen.count == LOG_LINES) return;
  seen.levels[seen.count] = level;
  snprintf(seen.lines[seen.count++], sizeof seen.lines[0], "%s", line);
}

static inline void capture_log(void) {
  seen.count = 0;
  helio_set_log_sink(keep_line, NULL);
}

/* How many lines have both parts in them. */
static inline int lines_with(const char *part, const char *other) {
  int count = 0;
  for (int i = 0; i < seen.count; i++) count += strstr(seen.lines[i], part) && strstr(seen.lines[i], other);
  return count;
}

static inline void print_seen(void) {
  for (int i = 0; i < seen.count; i++) print_error("  log: %s\n", seen.lines[i]);
}

#define assert_logged(part, other)                                                                                     \
  do {                                                                                                                 \
    if (lines_with(part, other) == 0) {                                                                                \
      print_seen();                                                                                                    \
      fail_msg("no line of the log has \"%s\" and \"%s\"", part, other);                                               \
    }                                                                                                                  \
  } while (0)

#define assert_not_logged(part)                                                                                        \
  do {                                                                                                                 \
    if (lines_with(part, "") != 0) {                                                                                   \
      print_seen();                                                                                                    \
      fail_msg("the log has a line with \"%s\"", part);                                                                \
    }                                                                                                                  \
  } while (0)

/* ---- before and after each test ---- */

static inline int set_up(void **state) {
  restore_environment();
  capture_log();
  return start_afresh(state);
}

static inline int tear_down(void **state) {
  helio_error_take(NULL);
  int result = start_afresh(state);
  helio_set_log_sink(NULL, NULL);
  leaks_are_meant = false;
  restore_environment();
  return result;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* ---- children ---- */

/* cmocka's asserts must not be used in a child: they would go on with the tests there. */
#define CHILD_CHECK(condition)                                                                                         \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: in the child: %s; pending: %s\n", __FILE__, __LINE__, #condition,                        \
              helio_error_message());                                                                                  \
      return false;                                                                                                    \
    }                                                                                                                  \
  } while (0)

/* Runs `body` in a child and returns what waitpid() says: 0 if it returned true. */
static inline int run_in_child(bool (*body)(void *argument), void *argument) {
  int result = -1;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    bool right = body(argument);
    helio_error_take(NULL);
    helio_shutdown(); /* the thread sanitizer waits a second for threads that are left */
    _exit(right ? 0 : 1);
  }
  if (child > 0) {
    while (waitpid(child, &result, 0) < 0 && errno == EINTR) {
    }
  }
  return result;
}

/* ---- temporary folders ---- */

static inline int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *where) {
  (void)about, (void)kind, (void)where;
  return remove(path);
}

static inline void remove_folder(const char *folder) {
  nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void make_folder(char folder[64]) {
  snprintf(folder, 64, "/tmp/helio-test-XXXXXX");
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chmod(folder, 0755), 0);
}

/* Writes a file, with the folders that lead to it. */
static inline void write_file(const char *folder, const char *path, const char *text) {
  char whole[PATH_MAX];
  snprintf(whole, sizeof whole, "%s/%s", folder, path);
  for (char *slash = strchr(whole + strlen(folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(whole, 0755);
    *slash = '/';
  }
  FILE *file = fopen(whole, "w");
  if (!file) fail_msg("%s: %s", whole, strerror(errno));
  fputs(text, file);
  fclose(file);
}

/* ---- what the process holds ---- */

static inline int entries_of(const char *folder) {
  int count = 0;
  DIR *open = opendir(folder);
  if (!open) return -1;
  while (readdir(open)) count++;
  closedir(open);
  return count;
}

static inline int open_files(void) {
  return entries_of("/proc/self/fd");
}

/* A thread that was joined may stand in /proc a moment longer, on a busy machine a long one. */
static inline int thread_count(int expected) {
  int count = 0;
  for (int i = 0; i < (expected < 0 ? 200 : 5000); i++) {
    count = entries_of("/proc/self/task") - 2;
    if (count == expected) break;
    usleep(1000);
  }
  return count;
}

static inline long resident_kib(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file) return -1;
  if (fscanf(file, "%*d %ld", &pages) != 1) pages = -1;
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static inline int mapping_count(void) {
  int count = 0;
  FILE *file = fopen("/proc/self/maps", "r");
  if (!file) return -1;
  for (int c; (c = getc(file)) != EOF;) count += c == '\n';
  fclose(file);
  return count;
}

/* ---- random numbers, the same on every machine ---- */

static inline uint32_t next_random(uint64_t *seed) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*seed >> 33);
}

#endif
