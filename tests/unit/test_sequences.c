/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences, their padding as Keras does it, and orders as numpy shuffles them (golden/data). */
#include <zlib.h>

#include "data/mersenne.h"
#include "data_files.h"

static const int32_t values[] = {5, -7, 3};
static const int64_t lengths[] = {2, 0, 1};

static void test_made_of_values(void **state) {
  (void)state;
  helio_sequences *sequences = helio_sequences_of(values, lengths, 3);
  assert_made(sequences);
  assert_int_equal(helio_sequences_count(sequences), 3);
  assert_int_equal(helio_sequences_largest(sequences), 5);
  assert_sequence(sequences, 0, values, 2);
  assert_sequence(sequences, 1, NULL, 0);
  assert_sequence(sequences, 2, values + 2, 1);
  int64_t length = 7;
  assert_null(helio_sequences_at(sequences, 3, &length));
  assert_int_equal(length, 0);
  assert_null(helio_sequences_at(sequences, -1, NULL));
  helio_sequences *none = helio_sequences_of(NULL, NULL, 0), *empty = helio_sequences_of(NULL, (int64_t[]){0, 0}, 2);
  assert_made(none ? empty : NULL);
  assert_int_equal(helio_sequences_largest(none), -1);
  assert_int_equal(helio_sequences_largest(empty), -1);
  assert_non_null(helio_sequences_at(empty, 1, &length));
  assert_int_equal(helio_sequences_count(NULL), 0);
  assert_int_equal(helio_sequences_largest(NULL), -1);
}

static void test_parts(void **state) {
  (void)state;
  helio_sequences *sequences = helio_sequences_of(values, lengths, 3);
  helio_sequences *end = helio_sequences_part(sequences, 1, -1), *none = helio_sequences_part(sequences, 3, 0);
  assert_made(none ? end : NULL);
  assert_int_equal(helio_sequences_count(end), 2);
  assert_sequence(end, 0, NULL, 0);
  assert_sequence(end, 1, values + 2, 1);
  assert_int_equal(helio_sequences_count(none), 0);
  assert_null(helio_sequences_part(sequences, 2, 2));
  expect_error(HELIO_INVALID_ARGUMENT, "2 from 2 on are not among 3 sequences");
  assert_null(helio_sequences_part(sequences, -1, 1));
  expect_error(HELIO_INVALID_ARGUMENT, "from -1 on");
  assert_null(helio_sequences_part(NULL, 0, 0));
  expect_error(HELIO_INVALID_ARGUMENT, "sequences is NULL");
}

/* Keras: int(math.floor(n * (1.0 - validation_split))) are for training. */
static void test_validation_split(void **state) {
  (void)state;
  static const struct {
    int64_t count;
    double fraction;
    int64_t training;
  } cases[] = {{10, 0.2, 8}, {25, 0.33, 16}, {7, 0.5, 3}, {3, 0, 3}, {3, 1, 0}, {8982, 0.1, 8083}, {0, 0.5, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    int64_t n = cases[i].count;
    int64_t *numbers = calloc((size_t)n + 1, sizeof *numbers);
    int32_t *words = calloc((size_t)n + 1, sizeof *words);
    int64_t *ones = calloc((size_t)n + 1, sizeof *ones);
    for (int64_t j = 0; j < n; j++) {
      numbers[j] = j;
      words[j] = (int32_t)j;
      ones[j] = 1;
    }
    helio_samples all = {.sequences = helio_sequences_of(words, ones, n),
                         .y = helio_array_of(numbers, HELIO_SHAPE(n), HELIO_INT64)};
    helio_samples training, validation;
    assert_int_equal(helio_split_samples(&all, cases[i].fraction, &training, &validation), HELIO_OK);
    int64_t kept = cases[i].training;
    assert_int_equal(helio_array_elements(training.y), kept);
    assert_int_equal(helio_array_elements(validation.y), n - kept);
    assert_int_equal(helio_sequences_count(training.sequences), kept);
    assert_null(training.x);
    for (int64_t j = kept; j < n; j++) {
      assert_int_equal(((const int64_t *)helio_array_data(validation.y))[j - kept], j);
      assert_sequence(validation.sequences, j - kept, &words[j], 1);
    }
    free(numbers);
    free(words);
    free(ones);
  }
  helio_samples nothing = {.x = NULL}, other;
  assert_int_equal(helio_split_samples(&nothing, 0.5, &other, &other), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "its y is NULL");
  nothing.y = helio_array_of(values, HELIO_SHAPE(3), HELIO_INT32);
  assert_int_equal(helio_split_samples(&nothing, 1.5, &other, &other), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "1.5, which is not in [0, 1]");
}

static void test_made_wrongly(void **state) {
  (void)state;
  assert_null(helio_sequences_of(values, NULL, 1));
  expect_error(HELIO_INVALID_ARGUMENT, "lengths is NULL, or count negative");
  assert_null(helio_sequences_of(values, lengths, -1));
  expect_error(HELIO_INVALID_ARGUMENT, "count negative");
  assert_null(helio_sequences_of(values, (int64_t[]){1, -1}, 2));
  expect_error(HELIO_INVALID_ARGUMENT, "sequence 1 has the length -1");
  assert_null(helio_sequences_of(NULL, lengths, 1));
  expect_error(HELIO_INVALID_ARGUMENT, "sequence 0 has the length 2, and values is NULL");
  assert_null(helio_sequences_of(values, (int64_t[]){INT64_MAX}, 1));
  expect_error(HELIO_INVALID_ARGUMENT, "9223372036854775807, which is not valid or too large");
  assert_null(helio_sequences_of(values, (int64_t[]){1, INT64_MAX / 4}, 2));
  expect_error(HELIO_INVALID_ARGUMENT, "sequence 1 has the length 2305843009213693951, which is not valid");
}

/* ---- padding ---- */

/* The numbers of a line behind its first word. */
static int read_numbers(char *line, double numbers[64]) {
  int count = 0;
  strtok(line, " \n");
  for (char *word; count < 64 && (word = strtok(NULL, " \n"));) numbers[count++] = strtod(word, NULL);
  return count;
}

static helio_type type_named(const char *name) {
  for (int type = HELIO_FLOAT32; type <= HELIO_BOOL; type++) {
    if (strcmp(helio_type_name((helio_type)type), name) == 0) return (helio_type)type;
  }
  fail_msg("%s is not a type", name);
  return (helio_type)0;
}

/* "case maxlen padding truncating value type columns", then a line for each row. */
static void check_padding(const helio_sequences *sequences, const char *line, FILE *file) {
  helio_pad_sequences_options options = {.size = sizeof options, .sequences = sequences};
  int pad, cut, columns;
  long maxlen;
  char type[20], row[1000];
  assert_int_equal(sscanf(line, "case %ld %d %d %lf %19s %d", &maxlen, &pad, &cut, &options.value, type, &columns), 6);
  options.maxlen = maxlen;
  options.pad_behind = pad;
  options.cut_behind = cut;
  options.type = type_named(type);
  helio_array *padded = helio_pad_sequences_with(&options);
  assert_made(padded);
  assert_true(hi_shape_equal(&padded->shape, &HELIO_SHAPE(sequences->count, columns)));
  const char *at = helio_array_data(padded);
  for (int64_t i = 0; i < sequences->count; i++) {
    double numbers[64];
    assert_non_null(fgets(row, sizeof row, file));
    assert_int_equal(read_numbers(row, numbers), columns);
    for (int j = 0; j < columns; j++, at += helio_type_bytes(padded->type)) {
      if (hi_type_decode(padded->type, at) != numbers[j]) fail_msg("%srow %d, place %d", line, (int)i, j);
    }
  }
}

static void test_padding_as_keras_does(void **state) {
  (void)state;
  char line[1000], copy[1000];
  int32_t all[100];
  int64_t sizes[100];
  int count = 0, total = 0, cases = 0;
  helio_sequences *sequences = NULL;
  FILE *file = fopen(golden_data("padding.txt"), "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    double numbers[64];
    strcpy(copy, line);
    if (strncmp(line, "sequence", 8) == 0) {
      sizes[count] = read_numbers(line, numbers);
      for (int i = 0; i < sizes[count]; i++) all[total++] = (int32_t)numbers[i];
      count++;
      continue;
    }
    if (!sequences) assert_made(sequences = helio_sequences_of(all, sizes, count));
    check_padding(sequences, copy, file);
    cases++;
  }
  fclose(file);
  assert_int_equal(cases, 17);
}

static void test_padding_with_defaults(void **state) {
  (void)state;
  helio_sequences *sequences = helio_sequences_of(values, lengths, 3);
  helio_array *padded = helio_pad_sequences(sequences, .maxlen = 1), *none;
  assert_made(padded);
  assert_int_equal(helio_array_type(padded), HELIO_INT32);
  assert_memory_equal(helio_array_data(padded), ((int32_t[]){-7, 0, 3}), 12);
  none = helio_pad_sequences(helio_sequences_of(NULL, NULL, 0));
  assert_made(none);
  assert_true(hi_shape_equal(&none->shape, &HELIO_SHAPE(0, 0)));
}

static void test_padding_wrongly(void **state) {
  (void)state;
  helio_sequences *sequences = helio_sequences_of(values, lengths, 3);
  assert_null(helio_pad_sequences(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "sequences is NULL");
  assert_null(helio_pad_sequences(sequences, .maxlen = -1));
  expect_error(HELIO_INVALID_ARGUMENT, "maxlen is -1");
  assert_null(helio_pad_sequences(sequences, .type = HELIO_UINT8));
  expect_error(HELIO_INVALID_ARGUMENT, "-7 does not fit into uint8");
  assert_null(helio_pad_sequences(sequences, .maxlen = INT64_MAX));
  expect_error(HELIO_INVALID_ARGUMENT, "is not valid or too large");
  assert_null(helio_pad_sequences(sequences, .type = (helio_type)77));
  expect_error(HELIO_INVALID_ARGUMENT, "type 77");
}

/* ---- order ---- */

static void test_shuffles_as_numpy_does(void **state) {
  (void)state;
  static int64_t order[70000];
  unsigned long seed, sum;
  int count, lines = 0;
  FILE *file = fopen(golden_data("shuffles.txt"), "r");
  assert_non_null(file);
  for (; fscanf(file, "%lu %d %lu", &seed, &count, &sum) == 3; lines++) {
    hi_mersenne random;
    for (int i = 0; i < count; i++) order[i] = i;
    hi_mersenne_seed(&random, (uint32_t)seed);
    hi_mersenne_shuffle(&random, order, count);
    unsigned long found = crc32(0, (const unsigned char *)order, (unsigned)count * 8);
    if (found != sum) fail_msg("seed %lu, %d items: another order than numpy's", seed, count);
  }
  fclose(file);
  assert_int_equal(lines, 77);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      POOL_TEST(test_made_of_values),        POOL_TEST(test_parts),
      POOL_TEST(test_validation_split),      POOL_TEST(test_made_wrongly),
      POOL_TEST(test_padding_as_keras_does), POOL_TEST(test_padding_with_defaults),
      POOL_TEST(test_padding_wrongly),       POOL_TEST(test_shuffles_as_numpy_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
