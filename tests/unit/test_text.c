/* SPDX-License-Identifier: Apache-2.0 */
/* Text of arrays against what numpy printed for them (golden/text, made by make_text.py there). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../core/tensor/text.h"

static int allocations_left;

/* cmocka's allocator, so that it notices what is not given back. */
static void *limited_realloc(void *block, size_t bytes) {
  if (allocations_left == 0) return NULL;
  allocations_left--;
  return test_realloc(block, bytes);
}

/* The same code a second time, running out of memory when it is told to. */
static char *limited_array_text(helio_type type, int rank, const int64_t *extent, const void *data);
#define hi_array_text limited_array_text
#define realloc       limited_realloc
#define free          test_free
#include "../../core/tensor/text.c"
#undef hi_array_text
#undef realloc
#undef free

static FILE *open_cases(void) {
  const char *source = getenv("HELIO_TEST_SOURCE");
  const char *folders[] = {source, "tests", ".", "..", "../tests"};
  for (size_t i = source == NULL; i < sizeof folders / sizeof folders[0]; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/golden/text/cases.bin", folders[i]);
    FILE *file = fopen(path, "rb");
    if (file != NULL || i == 0) return file;
  }
  return NULL;
}

static int64_t read_number(FILE *file) {
  long long value = -1;
  assert_int_equal(fscanf(file, "%lld", &value), 1);
  assert_true(value >= 0);
  return value;
}

/* After the line end that closes the numbers; one byte more than asked for, a zero. */
static char *read_bytes(FILE *file, size_t count) {
  char *bytes = calloc(count + 1, 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, count, file), count);
  return bytes;
}

/* The array that repeats the stored elements, in the byte order of this machine. */
static unsigned char *expand(const char *stored, size_t stored_count, size_t count, size_t bytes) {
  const uint16_t probe = 1;
  bool little = *(const unsigned char *)&probe == 1;
  /* Allocated to the byte, so that the address sanitizer sees a read past the end. */
  unsigned char *data = malloc(count * bytes > 0 ? count * bytes : 1);
  assert_non_null(data);
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < bytes; j++)
      data[i * bytes + j] = (unsigned char)stored[i % stored_count * bytes + (little ? j : bytes - 1 - j)];
  return data;
}

static void check_case(FILE *file, int64_t index) {
  helio_type type = (helio_type)read_number(file);
  int rank = (int)read_number(file);
  int64_t extent[HELIO_MAX_RANK], count = 1;
  assert_in_range(rank, 0, HELIO_MAX_RANK);
  for (int i = 0; i < rank; i++) count *= extent[i] = read_number(file);
  size_t stored_count = (size_t)read_number(file), text_length = (size_t)read_number(file);
  assert_int_equal(fgetc(file), '\n');
  char *stored = read_bytes(file, stored_count * type_bytes[type]);
  char *expected = read_bytes(file, text_length);
  unsigned char *data = expand(stored, stored_count, (size_t)count, type_bytes[type]);
  char *text = hi_array_text(type, rank, extent, data);
  assert_non_null(text);
  if (strcmp(text, expected) != 0) print_error("case %lld, type %d, rank %d\n", (long long)index, (int)type, rank);
  assert_string_equal(text, expected);
  free(text);
  free(data);
  free(expected);
  free(stored);
}

static void check_all_cases(void) {
  FILE *file = open_cases();
  if (file == NULL) fail_msg("golden/text/cases.bin is not under HELIO_TEST_SOURCE, nor near");
  char line[128];
  assert_non_null(fgets(line, sizeof line, file));
  assert_int_equal(strncmp(line, "numpy ", 6), 0);
  int64_t cases = read_number(file);
  assert_true(cases > 500);
  for (int64_t i = 0; i < cases; i++) check_case(file, i);
  assert_int_equal(fscanf(file, "%127s", line), 1);
  assert_string_equal(line, "end");
  fclose(file);
}

static void test_numpy_prints_the_same(void **state) {
  (void)state;
  check_all_cases();
}

static void test_comma_locale_changes_nothing(void **state) {
  (void)state;
  const char *names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR", "pt_BR.UTF-8", "ru_RU.UTF-8"};
  bool found = false;
  for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++)
    found = setlocale(LC_ALL, names[i]) != NULL && strcmp(localeconv()->decimal_point, ",") == 0;
  if (found) check_all_cases();
  setlocale(LC_ALL, "C");
  if (found) return;
  print_message("SKIP: no locale with a decimal comma is installed\n");
  skip();
}

static void test_guide_matrices(void **state) {
  (void)state;
  const float product[] = {22, 28, 49, 64}, doubled[] = {44, 56, 98, 128};
  char *text = hi_array_text(HELIO_FLOAT32, 2, (const int64_t[]){2, 2}, product);
  assert_string_equal(text, "[[22. 28.]\n [49. 64.]]");
  free(text);
  text = hi_array_text(HELIO_FLOAT32, 2, (const int64_t[]){2, 2}, doubled);
  assert_string_equal(text, "[[ 44.  56.]\n [ 98. 128.]]");
  free(text);
}

static void test_empty_array_needs_no_data(void **state) {
  (void)state;
  char *text = hi_array_text(HELIO_FLOAT64, 2, (const int64_t[]){INT64_MAX, 0}, NULL);
  assert_string_equal(text, "[]");
  free(text);
}

/* Each allocation in turn is refused; what was allocated before it must be given back. */
static void test_out_of_memory_gives_null(void **state) {
  (void)state;
  static const double numbers[40][25] = {{0.5, -3e9}};
  char *text = NULL;
  for (int allowed = 0; text == NULL; allowed++) {
    assert_in_range(allowed, 0, 64);
    allocations_left = allowed;
    text = limited_array_text(HELIO_FLOAT64, 2, (const int64_t[]){40, 25}, numbers);
    if (allowed < 3) assert_null(text);
  }
  test_free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numpy_prints_the_same),    cmocka_unit_test(test_comma_locale_changes_nothing),
      cmocka_unit_test(test_guide_matrices),           cmocka_unit_test(test_empty_array_needs_no_data),
      cmocka_unit_test(test_out_of_memory_gives_null),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
