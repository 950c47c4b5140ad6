/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints where calls of the system, allocations or the space on the disk fail: the old ones stay, nothing is left
 * behind, and the next attempt succeeds. */
#include "checkpoint_folder.h"

/* Of three checkpoints the second is damaged and a temporary file is old: writing has all there is to do. */
static void begin_attempt(int64_t step) {
  remove_folder(folder);
  assert_int_equal(mkdir(folder, 0755), 0);
  for (int64_t i = 1; i <= 3; i++) assert_ok(write_step(i, 0));
  damage(2);
  if (step == 4) {
    damage(3);
    assert_ok(write_step(4, 0));
    damage(4);
  }
  put(path_in(LEFT "1-0.tmp"), "x");
  grow_old();
}

/* Whatever happened, the old last one is there, or the new one; the damaged one too; and nothing is left but what was
 * before. */
static void check_attempt(helio_status status, int64_t step, const char *failed, long which) {
  int64_t before = step == 4 ? 1 : 3;
  helio_error error;
  helio_error_take(&error);
  bool replaced = !status || strstr(error.message, "the file was replaced, but bringing its folder to disk failed");
  const char *problem = NULL;
  if (last_step() != (replaced ? step : before)) problem = "another is the last one";
  if (status && !strstr(error.message, "/tmp")) problem = "the message names no file";
  if (temporaries() > 1) problem = "something is left";
  if (!exists(checkpoint(2))) problem = "a damaged one is gone";
  if (problem) fail_msg("%s, call %ld: %s; %s", failed, which, problem, error.message);
}

static bool survives_interruption(const char *call) {
  return strcmp(call, "pwrite") == 0 || strcmp(call, "pread") == 0 || strcmp(call, "fsync") == 0 ||
         strcmp(call, "close") == 0;
}

/* The k-th call fails, for every k. */
static void fail_every(call_kind kind, int error, bool later, int64_t step) {
  int failures = 0;
  for (long which = 1;; which++) {
    int files = open_files();
    begin_attempt(step);
    fail_call(kind, which, error, later);
    helio_status status = write_step(step, 2);
    const char *failed = fail_no_more_calls();
    if (!failed) {
      assert_ok(status);
      assert_true(failures > 2 && which > 20);
      printf("%ld calls, %d of them an error\n", which - 1, failures);
      break;
    }
    failures += status != HELIO_OK;
    check_attempt(status, step, failed, which);
    if (error == EINTR && survives_interruption(failed)) assert_ok(status);
    if (kind == ALLOCATIONS && status) assert_true(status == HELIO_OUT_OF_MEMORY || strcmp(failed, "opendir") == 0);
    assert_int_equal(open_files(), files);
    seen.count = 0;
    assert_ok(write_step(step + 1, 2)); /* and it goes on */
    assert_int_equal(last_step(), step + 1);
    assert_int_equal(temporaries(), 0);
  }
}

static void every_call_fails_once(void **state) {
  (void)state;
  fail_every(SYSTEM_CALLS, EIO, false, 5);
}

static void every_call_is_interrupted(void **state) {
  (void)state;
  fail_every(SYSTEM_CALLS, EINTR, false, 5);
}

static void every_call_fails_from_then_on(void **state) {
  (void)state;
  fail_every(SYSTEM_CALLS, ENOSPC, true, 5);
}

static void every_call_fails_over_a_damaged_one(void **state) {
  (void)state;
  fail_every(SYSTEM_CALLS, EIO, false, 4);
}

static void every_allocation_fails(void **state) {
  (void)state;
  fail_every(ALLOCATIONS, ENOMEM, false, 5);
  fail_every(ALLOCATIONS, ENOMEM, false, 4);
}

/* A lack of memory is no reason to take an older one. */
static void opening_without_memory(void **state) {
  (void)state;
  for (int64_t step = 1; step <= 2; step++) assert_ok(write_step(step, 0));
  for (long which = 1;; which++) {
    int files = open_files();
    fail_call(ALLOCATIONS, which, ENOMEM, false);
    int64_t last = last_step();
    const char *failed = fail_no_more_calls();
    assert_int_equal(open_files(), files);
    assert_int_equal(last, failed ? -2 : 2);
    if (!failed) break;
    expect_error(HELIO_OUT_OF_MEMORY, folder);
  }
  assert_int_equal(seen.count, 0);
}

/* Calls that fail are an error, or the checkpoint is passed over. */
static void opening_with_failures(void **state) {
  (void)state;
  for (int64_t step = 1; step <= 2; step++) assert_ok(write_step(step, 0));
  for (long which = 1;; which++) {
    seen.count = 0;
    fail_call(SYSTEM_CALLS, which, EIO, false);
    int64_t last = last_step();
    const char *failed = fail_no_more_calls();
    if (last == -2) expect_error(HELIO_IO_FAILURE, folder);
    if (last == 1) assert_logged("passed over", checkpoint(2));
    if (last == -1 || last == -3) fail_msg("%s, call %ld", failed, which);
    if (!failed) break;
  }
}

/* Of the calls of a writing. */
static long number_of(const char *name) {
  fail_call(SYSTEM_CALLS, 0, 0, false);
  assert_ok(write_step(2, 0));
  fail_no_more_calls();
  for (long i = 0; i < failing_calls.seen; i++) {
    if (strcmp(failing_calls.names[i], name) == 0) return i + 1;
  }
  fail_msg("%s is never called", name);
  return 0;
}

/* No test sees a machine that loses its power: so the order of the calls must be right, and each must be heard. */
static void on_disk_before_it_has_its_name(void **state) {
  (void)state;
  static const struct {
    const char *name, *part;
  } order[] = {
      {"pwrite", "2.safetensors: writing failed: Input/output error"}, /* the checksum */
      {"fsync", "2.safetensors: bringing it to disk failed: Input/output error"},
      {"close", "2.safetensors: closing failed: Input/output error"},
      {"renameat", "2.safetensors: renaming failed: Input/output error"},
      {"fsync", "the file was replaced, but bringing its folder to disk failed: Input/output error"},
  };
  assert_ok(write_step(1, 0));
  long first = number_of("renameat") - 3;
  for (size_t i = 0; i < COUNT_OF(order); i++)
    assert_string_equal(failing_calls.names[first + (long)i - 1], order[i].name);
  for (size_t i = 0; i < COUNT_OF(order); i++) {
    assert_int_equal(unlink(checkpoint(2)), 0);
    fail_call(SYSTEM_CALLS, first + (long)i, EIO, false);
    assert_int_equal(write_step(2, 0), HELIO_IO_FAILURE);
    fail_no_more_calls();
    expect_error(HELIO_IO_FAILURE, order[i].part);
    bool replaced = i == COUNT_OF(order) - 1;
    assert_int_equal(last_step(), replaced ? 2 : 1);
    if (!replaced) assert_ok(write_step(2, 0));
  }
}

/* Where two folders are new, both names must be on disk. */
static void a_new_folder_is_on_disk(void **state) {
  (void)state;
  char top[64];
  memcpy(top, folder, sizeof top);
  snprintf(folder, sizeof folder, "%.40s/a/b", top);
  long first = number_of("mkdir"); /* of /tmp, which is there */
  static const char *const order[] = {"mkdir", "stat",  "mkdir", "stat", "mkdir", "open",
                                      "fsync", "close", "mkdir", "open", "fsync", "close"};
  for (size_t i = 0; i < COUNT_OF(order); i++) assert_string_equal(failing_calls.names[first + (long)i - 1], order[i]);
  for (int i = 0; i < 2; i++) { /* b is to be made behind three that are there */
    remove_folder(folder);
    fail_call(SYSTEM_CALLS, first + 6 + 2 * i, EIO, false);
    write_step(1, 0);
    assert_string_equal(fail_no_more_calls(), i ? "fsync" : "mkdir");
    expect_error(HELIO_IO_FAILURE, i ? "a/b: bringing the new folder to disk failed: Input/output error"
                                     : "a/b cannot be made: Input/output error");
  }
  memcpy(folder, top, sizeof folder);
}

static void short_writes(void **state) {
  (void)state;
  for (size_t most = 1; most < 3000; most = most * 3 + 1) {
    failing_calls.most_written = most;
    assert_ok(write_step(1, 0));
    assert_int_equal(last_step(), 1);
  }
}

static bool write_in_little_space(void *argument) {
  const rlim_t *most = argument;
  signal(SIGXFSZ, SIG_IGN);
  CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){*most, *most}) == 0);
  CHILD_CHECK(write_step(2, 1) == HELIO_IO_FAILURE);
  CHILD_CHECK(strstr(helio_error_message(), "2.safetensors: writing failed: File too large"));
  return true;
}

static void no_space(void **state) {
  (void)state;
  struct stat about;
  assert_ok(write_step(1, 0));
  assert_int_equal(stat(checkpoint(1), &about), 0);
  for (rlim_t most = 0; most < (rlim_t)about.st_size; most += 131) {
    assert_int_equal(run_in_child(write_in_little_space, &most), 0);
    STEPS(1);
    assert_int_equal(last_step(), 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FOLDER_TEST(every_call_fails_once),
      FOLDER_TEST(every_call_is_interrupted),
      FOLDER_TEST(every_call_fails_from_then_on),
      FOLDER_TEST(every_call_fails_over_a_damaged_one),
      FOLDER_TEST(every_allocation_fails),
      FOLDER_TEST(opening_without_memory),
      FOLDER_TEST(opening_with_failures),
      FOLDER_TEST(on_disk_before_it_has_its_name),
      FOLDER_TEST(a_new_folder_is_on_disk),
      FOLDER_TEST(short_writes),
      FOLDER_TEST(no_space),
  };
  failing_calls.no_disk = true;
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
