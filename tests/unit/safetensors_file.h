/* SPDX-License-Identifier: Apache-2.0 */
/* A file of tensors in a folder of its own for each test, and files as bytes. */
#ifndef SAFETENSORS_FILE_H
#define SAFETENSORS_FILE_H

#include "data/safetensors.h"
#include "support.h"
#include "tensor/tensor.h"

static char folder[64], path[100];

static int make_place(void **state) {
  (void)state;
  make_folder(folder);
  snprintf(path, sizeof path, "%s/x.safetensors", folder);
  return 0;
}

/* Whatever a test did, at most its file is left, and no error. */
static int remove_place(void **state) {
  (void)state;
  int entries = entries_of(folder) - 2;
  remove_folder(folder);
  helio_status status = helio_error_take(NULL);
  if (entries > 1) print_error("%d files were left\n", entries);
  if (status) print_error("an error is pending: %s\n", helio_status_name(status));
  return entries > 1 || status ? -1 : 0;
}

#define FILE_TEST(function) cmocka_unit_test_setup_teardown(function, make_place, remove_place)

/* ---- files as bytes ---- */

static inline char *read_all(const char *name, size_t *bytes) {
  FILE *file = fopen(name, "rb");
  if (!file) fail_msg("%s: %s", name, strerror(errno));
  char *data = malloc(1 << 20);
  *bytes = fread(data, 1, 1 << 20, file);
  fclose(file);
  return data;
}

static inline void put_bytes(const void *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, bytes, file), bytes);
  assert_int_equal(fclose(file), 0);
}

static inline void assert_file_is(const void *expected, size_t bytes) {
  size_t found;
  char *data = read_all(path, &found);
  assert_int_equal(found, bytes);
  assert_memory_equal(data, expected, bytes);
  free(data);
}

static inline bool opens_verified(void) {
  hi_safetensors *file = hi_safetensors_open_verified(path);
  hi_safetensors_close(file);
  return file;
}

/* Opens what may be right or wrong. If it is right, it must hold together. */
static inline bool open_and_check(void) {
  hi_safetensors *file = hi_safetensors_open(path);
  if (!file) {
    assert_true(helio_error_pending());
    assert_non_null(strstr(helio_error_message(), path));
    helio_error_take(NULL);
    return false;
  }
  assert_ok(helio_error_pending());
  for (int i = 0; i < hi_safetensors_count(file); i++) {
    const hi_safetensors_entry *entry = hi_safetensors_at(file, i), *next = hi_safetensors_at(file, i + 1);
    size_t bytes;
    assert_ptr_equal(hi_safetensors_find(file, entry->name), entry);
    assert_true(hi_shape_bytes(&entry->shape, entry->type, &bytes));
    assert_int_equal(bytes, entry->bytes);
    if (next) assert_int_equal(entry->offset + entry->bytes, next->offset);
    char *data = malloc(bytes + 1);
    if (hi_safetensors_read(file, entry, data)) assert_int_equal(helio_error_take(NULL), HELIO_BAD_DATA);
    free(data);
  }
  hi_safetensors_close(file);
  return true;
}

#endif
