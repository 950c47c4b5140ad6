/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints in a folder: the last whole one is found whatever was damaged, cut short or killed. HELIO_TEST_KILLS: how
 * often a process that writes is killed (10). HELIO_TEST_KEEP=FOLDER keeps a checkpoint there that Python should be
 * able to read (golden/train/make_checkpoint.py --check FOLDER). */
#include "checkpoint_folder.h"
#include "data/folder.h"

/* ---- writing and finding ---- */

static void none_is_no_error(void **state) {
  (void)state;
  assert_int_equal(last_step(), -1);
  remove_folder(folder);
  assert_int_equal(last_step(), -1);
  assert_int_equal(seen.count, 0);
}

static void the_last_is_found(void **state) {
  (void)state;
  int64_t step = -1;
  const int64_t steps[] = {3, 0, 100, 20, 999999999999, 5, 1000000000000, INT64_MAX};
  int64_t highest = -1;
  for (size_t i = 0; i < COUNT_OF(steps); i++) {
    assert_ok(write_step(steps[i], 0));
    if (steps[i] > highest) highest = steps[i];
    assert_int_equal(last_step(), highest);
    assert_int_equal(entries_of(folder) - 2, i + 1);
  }
  hi_safetensors *file = hi_checkpoint_open_last(folder, &step);
  assert_made(file);
  assert_string_equal(hi_safetensors_path(file), path_in("checkpoint-9223372036854775807.safetensors"));
  assert_string_equal(hi_safetensors_metadata(file, "note"), "of a test");
  hi_safetensors_close(file);
  assert_int_equal(seen.count, 0);
}

static void a_step_is_replaced(void **state) {
  (void)state;
  struct stat before, after;
  contents other = {.step = 7};
  assert_ok(hi_checkpoint_write(folder, 7, 0, add_contents, &other));
  assert_int_equal(last_step(), -3);
  assert_int_equal(stat(checkpoint(7), &before), 0);
  assert_ok(write_step(7, 0));
  assert_int_equal(stat(checkpoint(7), &after), 0);
  assert_true(before.st_ino != after.st_ino); /* not written into */
  assert_int_equal(last_step(), 7);
  STEPS(7);
}

static void so_many_are_kept(void **state) {
  (void)state;
  for (int64_t step = 1; step <= 5; step++) assert_ok(write_step(step, 0));
  assert_ok(write_step(6, 3));
  STEPS(4, 5, 6);
  assert_ok(write_step(7, 3));
  STEPS(5, 6, 7);
  assert_ok(write_step(7, 3));
  STEPS(5, 6, 7);
  assert_ok(write_step(8, 1));
  STEPS(8);
  /* The one just written stays, whatever its step. */
  assert_ok(write_step(2, 1));
  STEPS(2, 8);
  assert_ok(write_step(3, 1));
  STEPS(3, 8);
  assert_int_equal(last_step(), 8);
  assert_int_equal(seen.count, 0);
}

static void folders_are_made(void **state) {
  (void)state;
  char top[64];
  memcpy(top, folder, sizeof top);
  snprintf(folder, sizeof folder, "%.40s/a//b/c/", top);
  assert_ok(write_step(1, 0));
  assert_int_equal(last_step(), 1);
  remove_folder(folder);
  remove_folder(top);
  memcpy(folder, top, sizeof folder);
}

/* What was made on the way to a folder that cannot be made is removed, but not what was there. */
static void folders_on_the_way_are_removed(void **state) {
  (void)state;
  char deep[600], *last;
  int made = -1;
  assert_int_equal(mkdir(path_in("there"), 0700), 0);
  snprintf(deep, sizeof deep, "%s/there/a//b/", folder);
  last = deep + strlen(deep);
  memset(last, 'x', 300); /* longer than a name may be */
  last[300] = 0;
  assert_int_equal(hi_folder_make(deep, &made), HELIO_IO_FAILURE);
  expect_error(HELIO_IO_FAILURE, "cannot be made: File name too long");
  assert_int_equal(made, 0);
  assert_false(exists(path_in("there/a")));
  assert_true(exists(path_in("there")));
  *last = 0;
  assert_ok(hi_folder_make(deep, &made));
  assert_int_equal(made, 2);
  hi_folders_remove_empty(deep, made);
  assert_false(exists(path_in("there/a")));
  assert_true(exists(path_in("there")));
}

static void a_relative_folder(void **state) {
  (void)state;
  char before[PATH_MAX], top[64];
  assert_non_null(getcwd(before, sizeof before));
  memcpy(top, folder, sizeof top);
  assert_int_equal(chdir(top), 0);
  snprintf(folder, sizeof folder, "x");
  assert_ok(write_step(1, 0));
  assert_int_equal(last_step(), 1);
  memcpy(folder, top, sizeof folder);
  assert_int_equal(chdir(before), 0);
  assert_true(exists(path_in("x/checkpoint-000000000001.safetensors")));
}

static void wrong_arguments(void **state) {
  (void)state;
  int64_t step = 5;
  assert_null(hi_checkpoint_open_last(NULL, &step));
  expect_error(HELIO_INVALID_ARGUMENT, "the folder of checkpoints is NULL");
  assert_null(hi_checkpoint_open_last("", &step));
  expect_error(HELIO_INVALID_ARGUMENT, "the folder of checkpoints is empty");
  assert_int_equal(step, 5);
  hi_checkpoint_write("", 1, 0, add_contents, NULL);
  expect_error(HELIO_INVALID_ARGUMENT, "the folder of checkpoints is empty");
  hi_checkpoint_write(NULL, 1, 0, add_contents, NULL);
  expect_error(HELIO_INVALID_ARGUMENT, "the folder of checkpoints is NULL");
  write_step(-1, 0);
  expect_error(HELIO_INVALID_ARGUMENT, "a checkpoint of step -1");
  write_step(1, -1);
  expect_error(HELIO_INVALID_ARGUMENT, "of which -1 are kept");
  assert_int_equal(entries_of(folder), 2);
}

/* ---- what Python wrote ---- */

static const int64_t python_step = 42;
static const float python_kernel[] = {-0.5f, -0.25f, 0, 0.25f, 0.5f, 0.75f};
static const uint8_t python_done[] = {1, 0, 1};

static helio_status add_what_python_has(void *user, hi_safetensors_writer *writer) {
  (void)user;
  helio_status status = hi_safetensors_add(writer, "step", HELIO_INT64, &HELIO_SCALAR, &python_step);
  if (!status) status = hi_safetensors_add(writer, "dense/kernel", HELIO_FLOAT32, &HELIO_SHAPE(2, 3), python_kernel);
  return status ? status : hi_safetensors_add(writer, "done", HELIO_BOOL, &HELIO_SHAPE(3), python_done);
}

static size_t read_file(const char *path, char *bytes, size_t most) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s: %s", path, strerror(errno));
  size_t found = fread(bytes, 1, most, file);
  fclose(file);
  return found;
}

static void python_agrees(void **state) {
  (void)state;
  char golden[PATH_MAX], path[PATH_MAX + 100], expected[1000], found[1000];
  const char *source = getenv("HELIO_TEST_SOURCE"), *kept = getenv("HELIO_TEST_KEEP");
  snprintf(golden, sizeof golden, "%s/golden/train", source ? source : "tests");
  int64_t step = -1;
  hi_safetensors *file = hi_checkpoint_open_last(golden, &step);
  assert_made(file);
  assert_int_equal(step, 42);
  hi_safetensors_close(file);
  assert_ok(hi_checkpoint_write(kept ? kept : folder, 42, 0, add_what_python_has, NULL));
  snprintf(path, sizeof path, "%s/checkpoint-000000000042.safetensors", golden);
  size_t bytes = read_file(path, expected, sizeof expected);
  snprintf(path, sizeof path, "%s/checkpoint-000000000042.safetensors", kept ? kept : folder);
  assert_int_equal(read_file(path, found, sizeof found), bytes);
  assert_memory_equal(found, expected, bytes);
}

/* ---- damage ---- */

/* The second of two checkpoints is damaged, so the first is used, and the log names the other. */
static void check_damaged(const char *how, size_t where) {
  seen.count = 0;
  int64_t step = last_step();
  if (step != 1) fail_msg("%s %zu: %s", how, where, step == -2 ? helio_error_message() : "it was taken");
  if (seen.count != 1 || lines_with("WARNING:helio:a damaged checkpoint is passed over: ", checkpoint(2)) != 1) {
    print_seen();
    fail_msg("%s %zu is not in the log", how, where);
  }
}

static void every_byte_counts(void **state) {
  (void)state;
  struct stat about;
  for (int64_t step = 1; step <= 2; step++) assert_ok(write_step(step, 0));
  int file = open(checkpoint(2), O_RDWR);
  assert_true(file >= 0 && fstat(file, &about) == 0);
  for (off_t i = 0; i < about.st_size; i++) {
    unsigned char byte;
    assert_int_equal(pread(file, &byte, 1, i), 1);
    assert_int_equal(pwrite(file, &(unsigned char){byte ^ (unsigned char)(1 << i % 8)}, 1, i), 1);
    check_damaged("a bit of byte", (size_t)i);
    assert_int_equal(pwrite(file, &(unsigned char){(unsigned char)~byte}, 1, i), 1);
    check_damaged("byte", (size_t)i);
    assert_int_equal(pwrite(file, &byte, 1, i), 1);
  }
  assert_int_equal(last_step(), 2);
  assert_int_equal(ftruncate(file, about.st_size + 1), 0);
  check_damaged("a byte too many, as at", (size_t)about.st_size);
  for (off_t i = about.st_size - 1; i >= 0; i--) {
    assert_int_equal(ftruncate(file, i), 0);
    check_damaged("the end at", (size_t)i);
  }
  close(file);
}

static helio_status add_nothing(void *user, hi_safetensors_writer *writer) {
  (void)user, (void)writer;
  return HELIO_OK;
}

static void only_damaged_ones_are_an_error(void **state) {
  (void)state;
  static const char header[] = "\2\0\0\0\0\0\0\0{}";
  int file = open(checkpoint(5), O_CREAT | O_WRONLY, 0644);
  close(file);
  FILE *stream = fopen(checkpoint(4), "wb");
  assert_true(stream && fwrite(header, 10, 1, stream) == 1 && fclose(stream) == 0);
  assert_int_equal(last_step(), -2);
  expect_error(HELIO_BAD_DATA, "none of its 2 checkpoints is whole");
  assert_logged("passed over", "4.safetensors has no checksum");
  assert_logged(
      "passed over",
      "5.safetensors, byte 0: this is not a .safetensors file, or it is cut off: it ends inside its first eight bytes");
  assert_ok(hi_checkpoint_write(folder, 3, 0, add_nothing, NULL));
  int64_t step = -1;
  hi_safetensors *found = hi_checkpoint_open_last(folder, &step);
  assert_made(found);
  assert_int_equal(step, 3);
  hi_safetensors_close(found);
}

static void damaged_ones_are_left_alone(void **state) {
  (void)state;
  for (int64_t step = 1; step <= 6; step++) assert_ok(write_step(step, 0));
  damage(2);
  damage(5);
  assert_ok(write_step(7, 2));
  STEPS(2, 5, 6, 7);
  assert_logged("passed over", checkpoint(2));
  assert_logged("passed over", checkpoint(5));
  damage(7);
  assert_ok(write_step(8, 2));
  STEPS(2, 5, 6, 7, 8); /* 8 and 6 are the last two */
  assert_int_equal(last_step(), 8);
  /* Once is enough. */
  for (int64_t step = 2; step <= 7; step++) {
    assert_int_equal(lines_with("passed over", checkpoint(step)), step == 2 || step == 5 || step == 7);
  }
}

static void who_was_told_when_reading_is_not_told_again(void **state) {
  (void)state;
  for (int64_t step = 1; step <= 3; step++) assert_ok(write_step(step, 0));
  damage(3);
  assert_int_equal(last_step(), 2);
  for (int64_t step = 4; step <= 6; step++) assert_ok(write_step(step, 2));
  assert_int_equal(lines_with("passed over", checkpoint(3)), 1);
}

/* Training went on from the one before, and comes to the same step once more. */
static void a_damaged_one_keeps_its_bytes(void **state) {
  (void)state;
  char bytes[3][4000];
  static const char *const names[] = {"checkpoint-000000000007.safetensors.damaged",
                                      "checkpoint-000000000007.safetensors.damaged-2"};
  for (int i = 0; i < 2; i++) {
    assert_ok(write_step(7, 2));
    damage(7);
    if (i == 1) assert_int_equal(truncate(checkpoint(7), 100), 0);
    size_t size = read_file(checkpoint(7), bytes[0], sizeof bytes[0]);
    seen.count = 0;
    assert_ok(write_step(7, 2));
    assert_int_equal(last_step(), 7);
    assert_int_equal(read_file(path_in(names[i]), bytes[1], sizeof bytes[1]), size);
    assert_memory_equal(bytes[0], bytes[1], size);
    assert_logged("the damaged checkpoint", names[i]);
    assert_int_equal(entries_of(folder) - 2, 2 + i);
  }
}

static helio_status fail_silently(void *user, hi_safetensors_writer *writer) {
  (void)user, (void)writer;
  return HELIO_DEVICE_FAILURE;
}

/* Not once more for each attempt. */
static void a_damaged_one_gets_one_more_name(void **state) {
  (void)state;
  assert_ok(write_step(1, 0));
  assert_ok(write_step(7, 0));
  damage(7);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(hi_checkpoint_write(folder, 7, 0, fail_silently, NULL), HELIO_DEVICE_FAILURE);
    expect_error(HELIO_DEVICE_FAILURE, "7.safetensors: what belongs into it could not be had");
    assert_int_equal(entries_of(folder) - 2, 3);
  }
  assert_int_equal(last_step(), 1);
  assert_ok(write_step(7, 0));
  assert_int_equal(entries_of(folder) - 2, 3);
  assert_int_equal(last_step(), 7);
}

/* ---- other things in the folder ---- */

static const char *const foreign_names[] = {
    "checkpoint-99999999999999999999.safetensors",
    "checkpoint-9223372036854775808.safetensors",
    "checkpoint-0000000000001.safetensors",
    "checkpoint-1.safetensors",
    "checkpoint-1.safetensors.bak",
    "checkpoint-000000000001.safetensors.bak",
    "checkpoint-000000000001.safetensors~",
    "checkpoint-000000000001.SAFETENSORS",
    "checkpoint-00000000001\n.safetensors",
    "checkpoint--00000000001.safetensors",
    "checkpoint-+00000000001.safetensors",
    "checkpoint- 00000000001.safetensors",
    "checkpoint-0x0000000001.safetensors",
    "checkpoint-.safetensors",
    "checkpoint-",
    "Checkpoint-000000000001.safetensors",
    "xcheckpoint-000000000001.safetensors",
    "checkpoint-000000000001",
    "\033[2J",
};

static void other_names_are_not_looked_at(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(foreign_names); i++) put(path_in(foreign_names[i]), "x");
  assert_int_equal(last_step(), -1);
  for (int64_t step = 1; step <= 4; step++) assert_ok(write_step(step, 2));
  assert_int_equal(last_step(), 4);
  for (size_t i = 0; i < COUNT_OF(foreign_names); i++) assert_true(exists(path_in(foreign_names[i])));
  assert_int_equal(entries_of(folder) - 2, COUNT_OF(foreign_names) + 2);
  assert_int_equal(seen.count, 0);
}

/* A link may lead to what is not ours to replace. */
static void only_files_are_checkpoints(void **state) {
  (void)state;
  int64_t step = 1;
  assert_ok(write_step(step, 0));
  assert_int_equal(rename(checkpoint(1), path_in("elsewhere")), 0);
  assert_ok(write_step(2, 0));
  assert_int_equal(symlink("elsewhere", checkpoint(3)), 0);
  assert_int_equal(symlink("nowhere", checkpoint(4)), 0);
  assert_int_equal(symlink(checkpoint(5), checkpoint(5)), 0);
  assert_int_equal(mkdir(checkpoint(6), 0755), 0);
  assert_int_equal(mkfifo(checkpoint(7), 0644), 0);
  assert_int_equal(last_step(), 2);
  for (step = 3; step <= 7; step++) {
    assert_logged("is not a regular file", checkpoint(step));
    assert_int_equal(write_step(step, 1), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "is not a regular file; move it elsewhere");
  }
  assert_int_equal(entries_of(folder) - 2, 7);
  assert_ok(write_step(8, 1));
  assert_int_equal(entries_of(folder) - 2, 7);
  assert_false(exists(checkpoint(2)));
  assert_true(exists(path_in("elsewhere")));
}

static bool work_as_nobody(void *unused) {
  (void)unused;
  CHILD_CHECK(geteuid() != 0 || setuid(65534) == 0);
  CHILD_CHECK(write_step(3, 1) == HELIO_IO_FAILURE);
  CHILD_CHECK(strstr(helio_error_message(), "making a file in the folder failed: Permission denied"));
  helio_error_take(NULL);
  CHILD_CHECK(last_step() == 1); /* the second may not be read */
  snprintf(folder + strlen(folder), 8, "/below");
  CHILD_CHECK(write_step(3, 1) == HELIO_IO_FAILURE);
  CHILD_CHECK(strstr(helio_error_message(), "/below cannot be made: Permission denied"));
  return true;
}

static void folder_that_may_not_be_written(void **state) {
  (void)state;
  for (int64_t step = 1; step <= 2; step++) assert_ok(write_step(step, 0));
  assert_int_equal(chmod(checkpoint(2), 0), 0);
  assert_int_equal(chmod(folder, 0555), 0);
  assert_int_equal(run_in_child(work_as_nobody, NULL), 0);
  assert_int_equal(chmod(folder, 0755), 0);
  STEPS(1, 2);
}

static void folder_that_is_none(void **state) {
  (void)state;
  char top[64];
  memcpy(top, folder, sizeof top);
  put(path_in("file"), "x");
  snprintf(folder, sizeof folder, "%.40s/file", top);
  assert_int_equal(write_step(1, 0), HELIO_IO_FAILURE);
  expect_error(HELIO_IO_FAILURE, "/file cannot be made: File exists");
  assert_int_equal(last_step(), -2);
  expect_error(HELIO_IO_FAILURE, "/file: the folder of checkpoints cannot be looked at: Not a directory");
  snprintf(folder, sizeof folder, "%.40s/file/x", top);
  assert_int_equal(write_step(1, 0), HELIO_IO_FAILURE);
  expect_error(HELIO_IO_FAILURE, "/file cannot be made: File exists");
  memcpy(folder, top, sizeof folder);
}

/* ---- what killed processes leave ---- */

static void what_was_left_is_removed(void **state) {
  (void)state;
  static const char *const left[] = {LEFT "1-0.tmp", LEFT "99999999-77.tmp", LEFT "99999999999999999999-0.tmp"};
  static const char *const others[] = {
      LEFT "1-.tmp",
      LEFT "-1.tmp",
      LEFT "1-0.tmp2",
      LEFT "1-0tmp",
      LEFT "x-0.tmp",
      LEFT "tmp",
      LEFT "1-0-0.tmp",
      ".x.1-0.tmp",
      ".checkpoint-1.safetensors.1-0.tmp",
      "checkpoint-000000000009.safetensors.1-0.tmp",
      ".tmp",
      ".1-0.tmp",
  };
  for (size_t i = 0; i < COUNT_OF(left); i++) put(path_in(left[i]), "x");
  for (size_t i = 0; i < COUNT_OF(others); i++) put(path_in(others[i]), "x");
  assert_int_equal(symlink("1", path_in(LEFT "1-1.tmp")), 0);
  assert_int_equal(mkdir(path_in(LEFT "1-2.tmp"), 0755), 0);
  assert_ok(write_step(1, 0)); /* too soon to know */
  assert_int_equal(entries_of(folder) - 2, COUNT_OF(left) + COUNT_OF(others) + 3);
  grow_old();
  assert_ok(write_step(2, 0));
  for (size_t i = 0; i < COUNT_OF(left); i++) assert_false(exists(path_in(left[i])));
  assert_int_equal(entries_of(folder) - 2, COUNT_OF(others) + 4);
  assert_int_equal(seen.count, 0);
}

/* A child says so when it is in the middle of writing, and goes on when it is told to, if ever. */
typedef struct halves {
  int said[2], told[2];
} halves;

static helio_status pause_in_the_middle(void *user, uint64_t offset, void *buffer, size_t bytes) {
  const halves *h = user;
  char byte = 0;
  memset(buffer, 1, bytes);
  if (offset && (write(h->said[1], &byte, 1) != 1 || read(h->told[0], &byte, 1) != 1)) return HELIO_ABORTED;
  return HELIO_OK;
}

static helio_status add_halves(void *user, hi_safetensors_writer *writer) {
  return hi_safetensors_add_source(writer, "halves", HELIO_UINT8, &HELIO_SHAPE(2 << 20), pause_in_the_middle, user);
}

static pid_t start_halves(halves *h) {
  char byte;
  assert_true(pipe(h->said) == 0 && pipe(h->told) == 0);
  pid_t child = fork();
  if (child == 0) _exit(hi_checkpoint_write(folder, 5, 1, add_halves, h) ? 1 : 0);
  assert_true(child > 0);
  assert_int_equal(read(h->said[0], &byte, 1), 1);
  return child;
}

static int end_halves(halves *h, pid_t child) {
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  for (int i = 0; i < 2; i++) close(h->said[i]), close(h->told[i]);
  return result;
}

static void who_writes_is_not_disturbed(void **state) {
  (void)state;
  halves h;
  pid_t child = start_halves(&h);
  assert_int_equal(temporaries(), 1);
  grow_old();
  assert_ok(write_step(1, 1));
  assert_int_equal(temporaries(), 1);
  assert_int_equal(write(h.told[1], "", 1), 1);
  assert_int_equal(end_halves(&h, child), 0);
  STEPS(5); /* the one before it was removed */
}

static void who_was_killed_is_cleaned_up_after(void **state) {
  (void)state;
  halves h;
  pid_t child = start_halves(&h);
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_true(WIFSIGNALED(end_halves(&h, child)));
  assert_int_equal(temporaries(), 1);
  assert_int_equal(last_step(), -1);
  grow_old();
  assert_ok(write_step(1, 1));
  STEPS(1);
}

/* Never ends by itself. */
static void write_for_ever(int64_t step) {
  for (;; step++) {
    if (write_step(step, 2)) {
      fprintf(stderr, "step %lld: %s\n", (long long)step, helio_error_message());
      _exit(1);
    }
  }
}

static void kills(void **state) {
  (void)state;
  const char *wanted = getenv("HELIO_TEST_KILLS");
  int count = wanted ? atoi(wanted) : 10, left = 0;
  uint64_t seed = (uint64_t)getpid();
  int64_t last = 1;
  assert_ok(write_step(last, 2));
  for (int i = 0; i < count; i++) {
    int result = 0;
    pid_t child = fork();
    if (child == 0) write_for_ever(last + 1);
    assert_true(child > 0);
    usleep(next_random(&seed) % 30000);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result));
    int64_t found = last_step();
    if (found < last) fail_msg("kill %d: step %lld after %lld", i, (long long)found, (long long)last);
    last = found;
  }
  left = temporaries();
  printf("%d kills: %lld checkpoints, %d left behind\n", count, (long long)last, left);
  grow_old();
  assert_ok(write_step(last + 1, 2));
  STEPS(last, last + 1);
  assert_int_equal(seen.count, 0);
}

/* ---- several at once ---- */

/* Another process writes the next one, and removes the one that is about to be opened. */
static void go_on_once(const char *call) {
  if (strcmp(call, "open") != 0 || rename(path_in("next"), checkpoint(2)) != 0) return;
  assert_int_equal(unlink(checkpoint(1)), 0);
}

/* Another process removes the one that is about to be opened, and a third writes that step again right behind. */
static void replace_once(const char *call) {
  static bool removed;
  if (strcmp(call, "open") == 0 && !removed) {
    assert_int_equal(unlink(checkpoint(1)), 0);
    removed = true;
  } else if (removed) {
    rename(path_in("next"), checkpoint(1)); /* the first time */
  }
}

static void replaced_when_it_is_opened(void **state) {
  (void)state;
  assert_ok(write_step(1, 0));
  assert_int_equal(rename(checkpoint(1), path_in("next")), 0);
  assert_ok(write_step(1, 0));
  failing_calls.meanwhile = replace_once;
  fail_call(SYSTEM_CALLS, 0, 0, false);
  assert_int_equal(last_step(), 1);
  failing_calls.meanwhile = NULL;
  assert_int_equal(seen.count, 0);
}

static int64_t step_in_hiding;

static void go_on_for_ever(const char *call) {
  if (strcmp(call, "open") != 0) return;
  assert_int_equal(rename(checkpoint(step_in_hiding), checkpoint(step_in_hiding + 1)), 0);
  step_in_hiding++;
}

static void gone_when_it_is_opened(void **state) {
  (void)state;
  assert_ok(write_step(2, 0));
  assert_int_equal(rename(checkpoint(2), path_in("next")), 0);
  assert_ok(write_step(1, 0));
  failing_calls.meanwhile = go_on_once;
  fail_call(SYSTEM_CALLS, 0, 0, false);
  assert_int_equal(last_step(), 2);
  step_in_hiding = 2;
  failing_calls.meanwhile = go_on_for_ever;
  fail_call(SYSTEM_CALLS, 0, 0, false);
  assert_int_equal(last_step(), -2);
  expect_error(HELIO_IO_FAILURE, "its checkpoints are gone whenever they are opened");
  failing_calls.meanwhile = NULL;
  assert_int_equal(seen.count, 0);
}

enum { WRITERS = 3, WRITES = 30 };

static void many_processes(void **state) {
  (void)state;
  pid_t children[WRITERS];
  assert_ok(write_step(0, 1));
  for (int i = 0; i < WRITERS; i++) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i] > 0) continue;
    for (int64_t step = 1; step <= WRITES; step++) {
      if (write_step(step, i)) fprintf(stderr, "writer %d: %s\n", i, helio_error_message()), _exit(1);
    }
    _exit(0);
  }
  int64_t last = 0;
  for (int running = WRITERS; running > 0;) {
    int64_t found = last_step();
    if (found < last) fail_msg("step %lld after %lld: %s", (long long)found, (long long)last, helio_error_message());
    last = found;
    for (int i = 0; i < WRITERS; i++) {
      int result;
      if (children[i] <= 0 || waitpid(children[i], &result, WNOHANG) == 0) continue;
      children[i] = 0;
      running--;
      assert_int_equal(result, 0);
    }
  }
  assert_int_equal(last_step(), WRITES);
  assert_int_equal(temporaries(), 0);
  assert_int_equal(seen.count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FOLDER_TEST(none_is_no_error),
      FOLDER_TEST(the_last_is_found),
      FOLDER_TEST(a_step_is_replaced),
      FOLDER_TEST(so_many_are_kept),
      FOLDER_TEST(folders_are_made),
      FOLDER_TEST(folders_on_the_way_are_removed),
      FOLDER_TEST(a_relative_folder),
      FOLDER_TEST(wrong_arguments),
      FOLDER_TEST(python_agrees),
      FOLDER_TEST(every_byte_counts),
      FOLDER_TEST(only_damaged_ones_are_an_error),
      FOLDER_TEST(damaged_ones_are_left_alone),
      FOLDER_TEST(who_was_told_when_reading_is_not_told_again),
      FOLDER_TEST(a_damaged_one_keeps_its_bytes),
      FOLDER_TEST(a_damaged_one_gets_one_more_name),
      FOLDER_TEST(other_names_are_not_looked_at),
      FOLDER_TEST(only_files_are_checkpoints),
      FOLDER_TEST(folder_that_may_not_be_written),
      FOLDER_TEST(folder_that_is_none),
      FOLDER_TEST(what_was_left_is_removed),
      FOLDER_TEST(who_writes_is_not_disturbed),
      FOLDER_TEST(who_was_killed_is_cleaned_up_after),
      FOLDER_TEST(kills),
      FOLDER_TEST(gone_when_it_is_opened),
      FOLDER_TEST(replaced_when_it_is_opened),
      FOLDER_TEST(many_processes),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
