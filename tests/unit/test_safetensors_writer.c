/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tensors are written from sources, piece by piece; one that could not be written leaves the old one alone. */
#include "safetensors_file.h"

#include <pthread.h>

typedef struct counting {
  uint64_t next; /* the offset that must come */
  int calls, fail_at;
  bool silent;
} counting;

static helio_status count_up(void *user, uint64_t offset, void *buffer, size_t bytes) {
  counting *c = user;
  if (offset != c->next || bytes == 0 || bytes > 1 << 20) return HELIO_WRONG_STATE;
  if (c->calls++ == c->fail_at) return c->silent ? HELIO_DEVICE_FAILURE : helio_set_log_level((helio_log_level)-1);
  for (size_t i = 0; i < bytes; i++) ((unsigned char *)buffer)[i] = (unsigned char)((offset + i) * 7 >> 3);
  c->next += bytes;
  return HELIO_OK;
}

static void test_source_gives_pieces(void **state) {
  (void)state;
  const uint64_t bytes = (3 << 20) + 5;
  counting large = {.fail_at = -1}, none = {.fail_at = 0};
  hi_safetensors_writer *writer = hi_safetensors_begin(path);
  assert_made(writer);
  assert_ok(hi_safetensors_add_source(writer, "large", HELIO_UINT8, &HELIO_SHAPE((int64_t)bytes), count_up, &large));
  assert_ok(hi_safetensors_add_source(writer, "none", HELIO_UINT8, &HELIO_SHAPE(0), count_up, &none));
  assert_ok(hi_safetensors_finish(writer));
  assert_true(opens_verified());
  assert_int_equal(large.calls, 4);
  assert_int_equal(large.next, bytes);
  hi_safetensors *file = hi_safetensors_open(path);
  assert_made(file);
  unsigned char *data = malloc(bytes);
  assert_ok(hi_safetensors_read(file, hi_safetensors_find(file, "large"), data));
  for (uint64_t i = 0; i < bytes; i++) assert_int_equal(data[i], (unsigned char)(i * 7 >> 3));
  free(data);
  hi_safetensors_close(file);
}

/* A file that must stay, and a writer that would replace it by one of a hundred zeros. */
static hi_safetensors_writer *begin_over_old(void) {
  static unsigned char values[100];
  put_bytes("old", 3);
  hi_safetensors_writer *writer = hi_safetensors_begin(path);
  assert_made(writer);
  assert_ok(hi_safetensors_add(writer, "values", HELIO_UINT8, &HELIO_SHAPE(100), values));
  return writer;
}

static void assert_old_is_left(void) {
  assert_file_is("old", 3);
  assert_int_equal(entries_of(folder), 3);
}

static void test_abandoned(void **state) {
  (void)state;
  hi_safetensors_abandon(begin_over_old());
  hi_safetensors_abandon(NULL);
  assert_old_is_left();
}

static void test_refused_additions(void **state) {
  (void)state;
  static const struct {
    const char *name;
    helio_type type;
    helio_shape shape;
    const void *data;
    const char *part;
  } refused[] = {
      {"__metadata__", HELIO_UINT8, {0, {0}}, "", "x.safetensors: no tensor can have the name __metadata__"},
      {NULL, HELIO_UINT8, {0, {0}}, "", "the name of a tensor is NULL"},
      {"\377", HELIO_UINT8, {0, {0}}, "", "the name of a tensor is not UTF-8"},
      {"a", (helio_type)0, {0, {0}}, "", "no valid type or shape"},
      {"a", HELIO_UINT8, {1, {-1}}, "", "no valid type or shape"},
      {"a", HELIO_UINT8, {9, {0}}, "", "no valid type or shape"},
      {"a", HELIO_UINT8, {0, {0}}, NULL, "a tensor's data are NULL"},
  };
  for (size_t i = 0; i < COUNT_OF(refused); i++) {
    hi_safetensors_writer *writer = begin_over_old();
    assert_true(hi_safetensors_add(writer, refused[i].name, refused[i].type, &refused[i].shape, refused[i].data));
    expect_error(HELIO_INVALID_ARGUMENT, refused[i].part);
    assert_int_equal(hi_safetensors_finish(writer), HELIO_INVALID_ARGUMENT);
    assert_old_is_left();
  }
  hi_safetensors_writer *writer = begin_over_old();
  assert_int_equal(hi_safetensors_add_metadata(writer, "k", "\300\200"), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "a value of the metadata is not UTF-8");
  hi_safetensors_abandon(writer);
}

static void test_duplicates_are_refused(void **state) {
  (void)state;
  hi_safetensors_writer *writer = begin_over_old();
  assert_ok(hi_safetensors_add(writer, "a", HELIO_UINT8, &HELIO_SCALAR, ""));
  assert_ok(hi_safetensors_add(writer, "values", HELIO_UINT8, &HELIO_SCALAR, ""));
  assert_int_equal(hi_safetensors_finish(writer), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "x.safetensors: \"values\" was added twice");
  writer = begin_over_old();
  for (int i = 0; i < 2; i++) assert_ok(hi_safetensors_add_metadata(writer, "k", "v"));
  assert_int_equal(hi_safetensors_finish(writer), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "\"k\" was added twice");
  writer = begin_over_old();
  assert_ok(hi_safetensors_add_metadata(writer, "helio_crc32", "0x00000000"));
  assert_int_equal(hi_safetensors_finish(writer), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "\"helio_crc32\" was added twice");
  assert_old_is_left();
}

static void test_source_that_fails(void **state) {
  (void)state;
  for (int silent = 0; silent < 2; silent++) {
    counting source = {.fail_at = 2, .silent = silent};
    hi_safetensors_writer *writer = begin_over_old();
    assert_ok(hi_safetensors_add_source(writer, "s", HELIO_UINT8, &HELIO_SHAPE(1 << 22), count_up, &source));
    assert_true(hi_safetensors_finish(writer));
    if (silent) {
      expect_error(HELIO_DEVICE_FAILURE, "x.safetensors: tensor \"s\" could not be read");
    } else {
      expect_error(HELIO_INVALID_ARGUMENT, "log level -1");
    }
    assert_int_equal(source.calls, 3);
    assert_old_is_left();
  }
}

static bool finish_in_little_space(void *argument) {
  signal(SIGXFSZ, SIG_IGN);
  CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){120, 120}) == 0);
  CHILD_CHECK(hi_safetensors_finish(argument) == HELIO_IO_FAILURE);
  CHILD_CHECK(strstr(helio_error_message(), "x.safetensors: writing failed: File too large"));
  return true;
}

static void test_no_space_left(void **state) {
  (void)state;
  hi_safetensors_writer *writer = begin_over_old();
  assert_int_equal(run_in_child(finish_in_little_space, writer), 0);
  hi_safetensors_abandon(writer);
  assert_old_is_left();
}

typedef struct attempt {
  hi_safetensors_writer *writer;
  const char *expected;
} attempt;

static bool finish_as_nobody(void *argument) {
  attempt *a = argument;
  CHILD_CHECK(geteuid() != 0 || setuid(65534) == 0);
  CHILD_CHECK(hi_safetensors_finish(a->writer) == HELIO_IO_FAILURE);
  CHILD_CHECK(strstr(helio_error_message(), a->expected));
  return true;
}

static void expect_protected(mode_t of_folder, mode_t of_file, const char *expected) {
  attempt a = {begin_over_old(), expected};
  assert_int_equal(chmod(path, of_file), 0);
  assert_int_equal(chmod(folder, of_folder), 0);
  assert_int_equal(run_in_child(finish_as_nobody, &a), 0);
  hi_safetensors_abandon(a.writer);
  assert_int_equal(chmod(folder, 0755), 0);
  assert_int_equal(chmod(path, 0644), 0);
  assert_old_is_left();
}

static void test_unwritable_folder(void **state) {
  (void)state;
  expect_protected(0555, 0666, "x.safetensors: making a file in the folder failed: Permission denied");
}

/* In a folder where it could be replaced. */
static void test_protected_file(void **state) {
  (void)state;
  expect_protected(0777, 0444, "x.safetensors: replacing it failed: Permission denied");
}

static void test_impossible_targets(void **state) {
  (void)state;
  char nowhere[120], below[120], ending[120];
  snprintf(nowhere, sizeof nowhere, "%s/no/x", folder);
  snprintf(below, sizeof below, "%s/x", path);
  snprintf(ending, sizeof ending, "%s/y/", folder);
  assert_int_equal(mkfifo(path, 0600), 0);
  const struct {
    const char *path;
    helio_status status;
    const char *part;
  } cases[] = {
      {nowhere, HELIO_IO_FAILURE, "opening the folder failed: No such file or directory"},
      {below, HELIO_IO_FAILURE, "opening the folder failed: Not a directory"},
      {folder, HELIO_INVALID_ARGUMENT, "is not a regular file"},
      {path, HELIO_INVALID_ARGUMENT, "x.safetensors is not a regular file"},
      {"/", HELIO_INVALID_ARGUMENT, "/ is not the name of a file"},
      {ending, HELIO_IO_FAILURE, "opening the folder failed: No such file or directory"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    hi_safetensors_writer *writer = hi_safetensors_begin(cases[i].path);
    assert_made(writer);
    assert_int_equal(hi_safetensors_finish(writer), cases[i].status);
    expect_error(cases[i].status, cases[i].part);
  }
  assert_null(hi_safetensors_begin(""));
  expect_error(HELIO_INVALID_ARGUMENT, "path is empty");
  assert_null(hi_safetensors_begin(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "path is NULL");
}

/* ---- the file that is replaced ---- */

static void test_permissions(void **state) {
  (void)state;
  struct stat about;
  mode_t mask = umask(027);
  assert_ok(hi_safetensors_finish(hi_safetensors_begin(path)));
  assert_int_equal(stat(path, &about), 0);
  assert_int_equal(about.st_mode & 07777, 0640);
  assert_int_equal(chmod(path, 0604), 0);
  assert_ok(hi_safetensors_finish(begin_over_old()));
  assert_int_equal(stat(path, &about), 0);
  assert_int_equal(about.st_mode & 07777, 0604);
  umask(mask);
}

static void test_through_a_link(void **state) {
  (void)state;
  char link[100];
  struct stat about;
  snprintf(link, sizeof link, "%s/link", folder);
  put_bytes("old", 3);
  assert_int_equal(symlink("x.safetensors", link), 0);
  assert_ok(hi_safetensors_finish(hi_safetensors_begin(link)));
  assert_int_equal(lstat(link, &about), 0);
  assert_true(S_ISLNK(about.st_mode));
  assert_true(open_and_check());
  assert_int_equal(unlink(link), 0);
}

static void test_name_as_long_as_can_be(void **state) {
  (void)state;
  char name[400];
  snprintf(name, sizeof name, "%s/%0255d", folder, 7);
  assert_ok(hi_safetensors_finish(hi_safetensors_begin(name)));
  assert_int_equal(access(name, R_OK), 0);
}

static void *write_often(void *argument) {
  const uint8_t *value = argument;
  for (int i = 0; i < 20; i++) {
    hi_safetensors_writer *writer = hi_safetensors_begin(path);
    if (!writer || hi_safetensors_add(writer, "value", HELIO_UINT8, &HELIO_SHAPE(1), value) ||
        hi_safetensors_finish(writer)) {
      return "writing failed";
    }
    hi_safetensors *file = hi_safetensors_open(path);
    uint8_t found = 0;
    if (!file || hi_safetensors_read(file, hi_safetensors_at(file, 0), &found)) return "reading failed";
    hi_safetensors_close(file);
    if (found < 1 || found > 3) return "found something else";
  }
  return NULL;
}

/* Readers see one whole file or another, and nobody's temporary file is in another's way. */
static void test_threads_write_one_file(void **state) {
  (void)state;
  static uint8_t values[] = {1, 2, 3};
  pthread_t threads[COUNT_OF(values)];
  for (size_t i = 0; i < COUNT_OF(values); i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, write_often, &values[i]), 0);
  }
  for (size_t i = 0; i < COUNT_OF(values); i++) {
    void *problem;
    assert_int_equal(pthread_join(threads[i], &problem), 0);
    if (problem) fail_msg("%s", (const char *)problem);
  }
  assert_int_equal(entries_of(folder), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_source_gives_pieces),    FILE_TEST(test_abandoned),
      FILE_TEST(test_refused_additions),      FILE_TEST(test_duplicates_are_refused),
      FILE_TEST(test_source_that_fails),      FILE_TEST(test_no_space_left),
      FILE_TEST(test_unwritable_folder),      FILE_TEST(test_protected_file),
      FILE_TEST(test_impossible_targets),     FILE_TEST(test_permissions),
      FILE_TEST(test_through_a_link),         FILE_TEST(test_name_as_long_as_can_be),
      FILE_TEST(test_threads_write_one_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
