/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of checkpoints, new for each test, whose contents are known. */
#ifndef HELIO_TEST_CHECKPOINT_FOLDER_H
#define HELIO_TEST_CHECKPOINT_FOLDER_H

#include "failing_calls.h"
#include "train/checkpoints.h"

static char folder[64];

/* ---- what a checkpoint holds here ---- */

enum { NUMBERS = 300 };

static inline void make_numbers(int64_t step, int32_t numbers[NUMBERS]) {
  uint64_t seed = (uint64_t)step;
  for (int i = 0; i < NUMBERS; i++) numbers[i] = (int32_t)next_random(&seed);
}

typedef struct contents {
  int64_t step;
  int32_t numbers[NUMBERS];
} contents;

static inline helio_status add_contents(void *user, hi_safetensors_writer *writer) {
  contents *c = user;
  helio_status status = hi_safetensors_add(writer, "step", HELIO_INT64, &HELIO_SCALAR, &c->step);
  if (!status) status = hi_safetensors_add(writer, "numbers", HELIO_INT32, &HELIO_SHAPE(NUMBERS), c->numbers);
  return status ? status : hi_safetensors_add_metadata(writer, "note", "of a test");
}

static inline helio_status write_step(int64_t step, int keep) {
  contents c = {.step = step};
  make_numbers(step, c.numbers);
  return hi_checkpoint_write(folder, step, keep, add_contents, &c);
}

/* Without asserts, for children. */
static inline bool holds(const hi_safetensors *file, int64_t step) {
  contents expected, found = {.step = -1};
  make_numbers(step, expected.numbers);
  const hi_safetensors_entry *number = hi_safetensors_find(file, "step"),
                             *numbers = hi_safetensors_find(file, "numbers");
  return number && numbers && numbers->bytes == sizeof found.numbers && number->bytes == sizeof found.step &&
         !hi_safetensors_read(file, number, &found.step) && !hi_safetensors_read(file, numbers, found.numbers) &&
         found.step == step && memcmp(found.numbers, expected.numbers, sizeof found.numbers) == 0;
}

/* The step of the last checkpoint, which is as it was written; −1: there is none, −2: an error is pending, −3: it holds
 * something else. */
static inline int64_t last_step(void) {
  int64_t step = -1;
  hi_safetensors *file = hi_checkpoint_open_last(folder, &step);
  fail_no_more_calls();
  if (helio_error_pending()) return -2;
  if (file && !holds(file, step)) step = -3;
  hi_safetensors_close(file);
  return step;
}

/* ---- the folder ---- */

static inline const char *path_in(const char *name) {
  static char path[2][400];
  static int turn;
  turn = !turn;
  snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
  return path[turn];
}

static inline const char *checkpoint(int64_t step) {
  char name[100];
  snprintf(name, sizeof name, "checkpoint-%012lld.safetensors", (long long)step);
  return path_in(name);
}

static inline bool exists(const char *path) {
  struct stat about;
  return lstat(path, &about) == 0;
}

/* Exactly these steps are there, up to the first that is negative, and nothing else. */
static inline void assert_steps(const int64_t *steps) {
  int count = 0;
  for (; steps[count] >= 0; count++) {
    if (!exists(checkpoint(steps[count]))) fail_msg("%s is not there", checkpoint(steps[count]));
  }
  assert_int_equal(entries_of(folder) - 2, count);
}
#define STEPS(...) assert_steps((const int64_t[]){__VA_ARGS__, -1})

static inline int temporaries(void) {
  int count = 0;
  DIR *open = opendir(folder);
  assert_non_null(open);
  for (const struct dirent *entry; (entry = readdir(open));) count += strstr(entry->d_name, ".tmp") != NULL;
  closedir(open);
  return count;
}

/* As if all in the folder had been written an hour ago. */
static inline void grow_old(void) {
  const struct timespec times[2] = {{.tv_sec = time(NULL) - 3600}, {.tv_sec = time(NULL) - 3600}};
  DIR *open = opendir(folder);
  assert_non_null(open);
  for (const struct dirent *entry; (entry = readdir(open));) {
    utimensat(dirfd(open), entry->d_name, times, AT_SYMLINK_NOFOLLOW);
  }
  closedir(open);
}

static inline void put(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

/* The last byte becomes another. */
static inline void damage(int64_t step) {
  unsigned char byte;
  struct stat about;
  int file = open(checkpoint(step), O_RDWR);
  assert_true(file >= 0 && fstat(file, &about) == 0);
  assert_int_equal(pread(file, &byte, 1, about.st_size - 1), 1);
  byte ^= 1;
  assert_int_equal(pwrite(file, &byte, 1, about.st_size - 1), 1);
  close(file);
}

static inline int make_place(void **state) {
  make_folder(folder);
  return set_up(state);
}

static inline int remove_place(void **state) {
  fail_no_more_calls();
  failing_calls.most_written = 0;
  failing_calls.meanwhile = NULL;
  helio_status status = helio_error_take(NULL);
  if (status) print_error("an error is pending: %s\n", helio_status_name(status));
  remove_folder(folder);
  return tear_down(state) || status ? -1 : 0;
}

#define FOLDER_TEST(function) cmocka_unit_test_setup_teardown(function, make_place, remove_place)

/* What a killed process leaves, as far as the number of the process. */
#define LEFT ".checkpoint-000000000009.safetensors."

#endif
