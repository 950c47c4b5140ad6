/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of readers share: golden files, and files that are made in memory. */
#ifndef HELIO_TEST_DATA_FILES_H
#define HELIO_TEST_DATA_FILES_H

#include "data/file.h"
#include "data/readers.h"
#include "data/sequences.h"
#include "support.h"

static inline const char *golden_data(const char *name) {
  static char whole[4][PATH_MAX];
  static int next;
  char *path = whole[next++ % 4];
  const char *source = getenv("HELIO_TEST_SOURCE");
  const char *folders[] = {source, "tests", ".", "..", "../tests"};
  for (size_t i = source == NULL; i < COUNT_OF(folders); i++) {
    snprintf(path, PATH_MAX, "%s/golden/%s%s", folders[i], strchr(name, '/') ? "" : "data/", name);
    if (access(path, R_OK) == 0) return path;
  }
  fail_msg("golden file %s is not under HELIO_TEST_SOURCE, nor near", name);
  return NULL;
}

/* Where the real sets are, "" if nowhere: HELIO_TEST_DATA, else shared/data beside the project. */
static inline const char *real_data(void) {
  static char path[PATH_MAX];
  const char *given = getenv("HELIO_TEST_DATA"), *source = getenv("HELIO_TEST_SOURCE");
  snprintf(path, sizeof path, "%s", given ? given : "");
  if (!given && source) snprintf(path, sizeof path, "%s/../../shared/data", source);
  if (access(path, R_OK) != 0) path[0] = 0;
  return path;
}

static inline unsigned char *read_all(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s: %s", path, strerror(errno));
  unsigned char *data = malloc(1 << 20);
  *bytes = fread(data, 1, 1 << 20, file);
  fclose(file);
  return data;
}

static inline void put_bytes(const char *path, const void *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, bytes, file), bytes);
  assert_int_equal(fclose(file), 0);
}

/* What a test makes ends with it, and no error is left. */
static helio_scope test_pool;

static inline int enter_pool(void **state) {
  (void)state;
  test_pool = helio_pool_enter();
  return 0;
}

static inline int leave_pool(void **state) {
  (void)state;
  helio_pool_leave(&test_pool);
  helio_status status = helio_error_take(NULL);
  if (status) print_error("an error is pending: %s\n", helio_status_name(status));
  return status ? -1 : 0;
}

#define POOL_TEST(function) cmocka_unit_test_setup_teardown(function, enter_pool, leave_pool)

static inline void assert_sequence(const helio_sequences *sequences, int64_t index, const int32_t *values,
                                   int64_t length) {
  int64_t found;
  const int32_t *at = helio_sequences_at(sequences, index, &found);
  assert_non_null(at);
  assert_int_equal(found, length);
  for (int64_t i = 0; i < length; i++) assert_int_equal(at[i], values[i]);
}

#endif
