/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels on disk. A compiler that always fails tells whether an image came from there. */
#include "child.h"

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define BROKEN_COMPILER "--cuda 1 --fault compile"

static child_end end;
static char folder[64], setting[256];

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *where) {
  (void)about, (void)kind, (void)where;
  return remove(path);
}

static int make_cache(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/helio-test-XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(setting, sizeof setting, "HELIO_CUDA_CACHE=%s/a/b", folder);
  return 0;
}

static int remove_cache(void **state) {
  (void)state;
  return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* The one entry there must be, of the text add. */
static void entry_path(const char *where, char path[PATH_MAX]) {
  char name[PATH_MAX];
  snprintf(name, sizeof name, "%s/%s", folder, where);
  DIR *open = opendir(name);
  if (open == NULL) fail_msg("there is no folder %s: %s", name, end.output);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(open)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    count++;
    assert_non_null(strstr(entry->d_name, ".bin"));
    snprintf(path, PATH_MAX, "%.2000s/%.200s", name, entry->d_name);
  }
  closedir(open);
  assert_int_equal(count, 1);
}

static void expect_sum_of(const char *backend, const char *settings, const char *options) {
  run_job(backend, settings, options, "add", &end);
  assert_says(end, "result: 3");
  assert_ended(end, 0);
}

static void expect_no_sum_of(const char *backend, const char *settings, const char *options) {
  run_job(backend, settings, options, "add", &end);
  assert_says(end, "RTC does not compile");
  assert_ended(end, 1);
}

static void expect_sum(const char *settings, const char *options) {
  expect_sum_of("cuda", settings, options);
}

static void expect_no_sum(const char *settings, const char *options) {
  expect_no_sum_of("cuda", settings, options);
}

static void test_hit(void **state) {
  (void)state;
  char path[PATH_MAX];
  expect_no_sum(setting, BROKEN_COMPILER);
  expect_sum(setting, "--cuda 1");
  entry_path("a/b", path);
  expect_sum(setting, BROKEN_COMPILER);
  struct stat about;
  assert_int_equal(stat(path, &about), 0);
  assert_int_equal(about.st_mode & 077, 0); /* the user's own */
}

static void damage(const char *path, long offset, int length) {
  if (length >= 0) assert_int_equal(truncate(path, length), 0);
  if (length >= 0) return;
  FILE *file = fopen(path, "r+");
  assert_non_null(file);
  assert_int_equal(fseek(file, offset, offset < 0 ? SEEK_END : SEEK_SET), 0);
  int byte = fgetc(file);
  assert_int_equal(fseek(file, -1, SEEK_CUR), 0);
  fputc(byte ^ 1, file);
  fclose(file);
}

static void test_damage(void **state) {
  (void)state;
  static const struct {
    long offset;
    int length;
  } damages[] = {{0, -1}, {8, -1}, {16, -1}, {24, -1}, {40, -1}, {-1, -1}, {-3000, -1}, {0, 0}, {0, 20}, {0, 2000}};
  char path[PATH_MAX];
  expect_sum(setting, "--cuda 1");
  entry_path("a/b", path);
  for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
    damage(path, damages[i].offset, damages[i].length);
    expect_no_sum(setting, BROKEN_COMPILER);
    assert_says(end, "is damaged: its kernels are compiled again");
    expect_sum(setting, "--cuda 1"); /* which repairs it */
  }
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkfifo(path, 0600), 0); /* nobody will ever write to it */
  expect_sum(setting, "--cuda 1");
  expect_sum(setting, BROKEN_COMPILER);
}

static void test_folder_that_cannot_be_written(void **state) {
  (void)state;
  expect_sum("HELIO_CUDA_CACHE=/proc/nothing/here", "--cuda 1");
  assert_says(end, "compiled kernels are not kept: /proc/nothing/here/");
  char file[128];
  snprintf(file, sizeof file, "%s/file", folder);
  fclose(fopen(file, "w"));
  snprintf(setting, sizeof setting, "HELIO_CUDA_CACHE=%s", file);
  expect_sum(setting, "--cuda 1");
  assert_says(end, "compiled kernels are not kept");
}

static void test_none(void **state) {
  (void)state;
  char settings[256];
  snprintf(settings, sizeof settings, "HELIO_CUDA_CACHE=none XDG_CACHE_HOME=%s", folder);
  expect_sum(settings, "--cuda 1");
  expect_no_sum(settings, BROKEN_COMPILER);
  assert_int_equal(rmdir(folder), 0); /* nothing was written */
  assert_int_equal(mkdir(folder, 0700), 0);
}

/* Another place of the libraries is another compiler; so are another architecture and another type. */
static void test_other_keys(void **state) {
  (void)state;
  expect_sum(setting, "--cuda 1");
  expect_no_sum(setting, "--cuda 1 --fault compile,missing:libnccl.so.2");
  expect_no_sum(setting, "--cuda 1 --fault compile --architecture sm_90");
  expect_sum(setting, BROKEN_COMPILER);
}

/* hipRTC has a library compile, which may be updated by itself. */
static void test_another_generator(void **state) {
  (void)state;
  char usual[256], another[PATH_MAX * 2];
  if (SANITIZED) SKIP("the sanitizer's library must be the first that is loaded");
  snprintf(usual, sizeof usual, "HELIO_HIP_CACHE=%s", folder);
  snprintf(another, sizeof another, "%s LD_PRELOAD=%s/tests/gpu/beside/libamd_comgr.so.2", usual, test_build_folder());
  expect_sum_of("hip", usual, "--hip 1");
  expect_sum_of("hip", usual, "--hip 1 --fault compile");
  expect_no_sum_of("hip", another, "--hip 1 --fault compile");
}

/* By the rules of XDG. */
static void test_usual_folder(void **state) {
  (void)state;
  char settings[256], path[PATH_MAX];
  snprintf(settings, sizeof settings, "XDG_CACHE_HOME=%s/x HOME=%s/h", folder, folder);
  expect_sum(settings, "--cuda 1");
  entry_path("x/helio/kernels", path);
  snprintf(settings, sizeof settings, "XDG_CACHE_HOME=relative HOME=%s/h", folder);
  expect_sum(settings, "--cuda 1");
  entry_path("h/.cache/helio/kernels", path);
  expect_sum("XDG_CACHE_HOME= HOME=", "--cuda 1");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_cache, remove_cache)

int main(int argc, char **argv) {
  do_job(argc, argv);
  const struct CMUnitTest tests[] = {
      TEST(test_hit),          TEST(test_damage),     TEST(test_folder_that_cannot_be_written),
      TEST(test_none),         TEST(test_other_keys), TEST(test_another_generator),
      TEST(test_usual_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
