/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets against tf.data (tests/golden/datasets), the laws of shuffling, sources, and what is refused. */
#include "data/iterator.h"
#include "data/landing.h"
#include "device/topology.h"
#include "pipelines.h"

/* ---- against tf.data ---- */

/* Calls `check` with both sides of each line "LEFT => RIGHT" of a golden file; returns how many there were. */
static int each_line(const char *name, void (*check)(const char *left, const char *right)) {
  static char line[1 << 16];
  int count = 0;
  FILE *file = fopen(golden_data(name), "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    char *arrow = strstr(line, " => ");
    assert_non_null(arrow);
    *arrow = 0;
    check(line, arrow + 4);
    count++;
  }
  fclose(file);
  return count;
}

static void check_pipeline(const char *pipeline, const char *expected) {
  HELIO_POOL {
    char cardinality[40];
    helio_dataset *dataset = build_pipeline(pipeline);
    helio_iterator *iterator = helio_iterate(dataset);
    assert_made(iterator);
    snprintf(cardinality, sizeof cardinality, "%lld :", (long long)helio_dataset_cardinality(dataset));
    if (strncmp(cardinality, expected, strlen(cardinality)) != 0) {
      fail_msg("%s: cardinality %s instead of %s", pipeline, cardinality, expected);
    }
    expected += strlen(cardinality);
    if (*expected == ' ') expected++;
    char *text = rest_text(iterator, LIMIT);
    if (strcmp(text, expected) != 0) fail_msg("%s:\n  tf.data %s\n  ours    %s", pipeline, expected, text);
    free(text);
  }
}

static void pipelines_bring_what_tf_data_brings(void **state) {
  (void)state;
  assert_true(each_line("datasets/pipelines.txt", check_pipeline) > 400);
}

static void check_epochs(const char *pipeline, const char *expected) {
  bool repeated = strncmp(pipeline, "repeat ", 7) == 0;
  HELIO_POOL {
    helio_dataset *dataset = build_pipeline(repeated ? pipeline + 7 : pipeline);
    int64_t length = helio_dataset_cardinality(dataset);
    if (length < 0) length = 30; /* of generators, in that file */
    helio_iterator *iterator = repeated ? helio_iterate(helio_dataset_repeat(dataset, 4)) : NULL;
    char *epochs[4], found[40] = "";
    for (int i = 0; i < 4; i++) {
      if (!repeated) iterator = helio_iterate(dataset);
      char *text = NULL, one[ELEMENT_TEXT];
      size_t bytes;
      FILE *out = open_memstream(&text, &bytes);
      helio_element element;
      for (int64_t k = 0; k < length && helio_next(iterator, &element); k++) {
        element_text(&element, one);
        fprintf(out, "%s ", one);
      }
      if (!repeated) assert_false(helio_next(iterator, &element)); /* a cache is full when the end was seen */
      fclose(out);
      assert_int_equal(helio_error_pending(), HELIO_OK);
      epochs[i] = text;
      int first = 0;
      while (strcmp(epochs[first], text) != 0) first++;
      add_number(found, i ? " %lld" : "%lld", first);
    }
    if (strcmp(found, expected) != 0) fail_msg("%s: tf.data %s, ours %s", pipeline, expected, found);
    for (int i = 0; i < 4; i++) free(epochs[i]);
  }
}

static void epochs_differ_where_those_of_tf_data_differ(void **state) {
  (void)state;
  assert_int_equal(each_line("datasets/epochs.txt", check_epochs), 20);
}

/* ---- shuffling ---- */

static int64_t *order_of(helio_dataset *dataset, int64_t count) {
  int64_t *order = malloc((size_t)count * sizeof *order), at = 0;
  HELIO_POOL {
    helio_iterator *iterator = helio_iterate(dataset);
    for (helio_element batch; helio_next(iterator, &batch);) {
      int64_t rows = helio_tensor_elements(batch.part[0]);
      assert_true(at + rows <= count);
      assert_ok(helio_tensor_read(batch.part[0], order + at, (size_t)rows * sizeof *order));
      at += rows;
    }
  }
  assert_ok(helio_error_pending());
  assert_int_equal(at, count);
  return order;
}

static void assert_permutation(const int64_t *order, int64_t count) {
  char *seen_numbers = calloc(1, (size_t)count);
  for (int64_t i = 0; i < count; i++) {
    assert_true(order[i] >= 0 && order[i] < count && !seen_numbers[order[i]]);
    seen_numbers[order[i]] = 1;
  }
  free(seen_numbers);
}

static bool same_order(const int64_t *a, const int64_t *b, int64_t count) {
  return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

static void check_window(helio_dataset *source, int64_t count, int64_t buffer) {
  helio_dataset *dataset = helio_dataset_batch(helio_dataset_shuffle(source, buffer, .seed = 3), 100);
  int64_t *order = order_of(dataset, count), *next = order_of(dataset, count), moved = 0;
  assert_permutation(order, count);
  assert_permutation(next, count);
  for (int64_t i = 0; i < count; i++) {
    assert_true(order[i] <= i + buffer - 1);
    moved += order[i] != i;
  }
  assert_true(buffer == 1 ? moved == 0 : moved > count / 4);
  assert_int_equal(same_order(order, next, count), buffer == 1);
  free(order);
  free(next);
}

static void a_shuffle_is_a_permutation_within_its_buffer(void **state) {
  (void)state;
  const int64_t buffers[] = {1, 2, 7, 100, 999, 1000, 5000};
  for (size_t i = 0; i < COUNT_OF(buffers); i++) {
    HELIO_POOL {
      check_window(helio_dataset_range(1000), 1000, buffers[i]);
      if (buffers[i] < 200) check_window(counted_dataset(300, 0), 300, buffers[i]);
    }
  }
}

/* Every element comes to every place about as often: 4 sigma of a binomial. */
static void a_shuffle_favours_no_place(void **state) {
  (void)state;
  enum { N = 8, TIMES = 8000 };
  int64_t hits[N][N] = {{0}};
  HELIO_POOL {
    int64_t *order =
        order_of(helio_dataset_batch(
                     helio_dataset_repeat(helio_dataset_shuffle(helio_dataset_range(N), N, .seed = 1), TIMES), 4096),
                 N * TIMES);
    for (int64_t i = 0; i < (int64_t)N * TIMES; i++) hits[i % N][order[i]]++;
    free(order);
  }
  for (int i = 0; i < N; i++) {
    for (int k = 0; k < N; k++) assert_in_range(hits[i][k], TIMES / N - 120, TIMES / N + 120);
  }
}

static helio_dataset *shuffled(int64_t seed) {
  return helio_dataset_batch(helio_dataset_shuffle(helio_dataset_range(500), 500, .seed = seed), 500);
}

static void the_order_follows_from_the_seed(void **state) {
  (void)state;
  int64_t *first = order_of(shuffled(7), 500), *again = order_of(shuffled(7), 500), *other = order_of(shuffled(8), 500);
  assert_true(same_order(first, again, 500));
  assert_false(same_order(first, other, 500));
  free(again);
  free(other);
  /* without one, from that of the process and from how many there were */
  assert_ok(helio_set_seed(11));
  int64_t *a = order_of(shuffled(0), 500), *b = order_of(shuffled(0), 500);
  assert_ok(helio_set_seed(11));
  int64_t *c = order_of(shuffled(0), 500), *d = order_of(shuffled(0), 500);
  assert_true(same_order(a, c, 500) && same_order(b, d, 500));
  assert_false(same_order(a, b, 500));
  int64_t *orders[] = {first, a, b, c, d};
  for (size_t i = 0; i < COUNT_OF(orders); i++) free(orders[i]);
}

/* Repeats of a repeat, also with something in between: 2 × 2 × 2 epochs, no two of which are the same. */
static void epochs_of_nested_repeats_all_differ(void **state) {
  (void)state;
  enum { N = 30, EPOCHS = 8 };
  const char *pipelines[] = {"range 30, shuffle 30 5, repeat 2, repeat 2, repeat 2, batch 30",
                             "gen 30, shuffle 30 5, repeat 2, map, repeat 2, prefetch 2, repeat 2, batch 30"};
  for (size_t p = 0; p < COUNT_OF(pipelines); p++) {
    int64_t *order = order_of(build_pipeline(pipelines[p]), N * EPOCHS);
    for (int a = 0; a < EPOCHS; a++) {
      for (int b = 0; b < a; b++) assert_false(same_order(order + a * N, order + b * N, N));
    }
    free(order);
  }
}

/* Threads that work ahead change no order. */
static void orders_do_not_hang_on_what_is_around(void **state) {
  (void)state;
  const char *pipelines[] = {"range 30, shuffle 30 5, repeat 2, shuffle 9 6, repeat 2, batch 30",
                             "range 30, prefetch 2, shuffle 30 5, prefetch 2, repeat 2, prefetch 2, shuffle 9 6, "
                             "prefetch 1, repeat 2, batch 30, prefetch 2"};
  int64_t *plain = order_of(build_pipeline(pipelines[0]), 120), *ahead = order_of(build_pipeline(pipelines[1]), 120);
  assert_true(same_order(plain, ahead, 120));
  free(plain);
  free(ahead);
}

/* ---- sources ---- */

static void slices_keep_their_types(void **state) {
  (void)state;
  const helio_type types[] = {HELIO_FLOAT32, HELIO_FLOAT64, HELIO_FLOAT16, HELIO_BFLOAT16,
                              HELIO_INT32,   HELIO_INT64,   HELIO_UINT8,   HELIO_BOOL};
  unsigned char bytes[5 * 3 * 8], read[3 * 3 * 8];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7 % 2);
  for (size_t t = 0; t < COUNT_OF(types); t++) {
    HELIO_POOL {
      size_t size = helio_type_bytes(types[t]);
      helio_array *array = helio_array_of(bytes, HELIO_SHAPE(5, 3), .type = types[t]);
      helio_iterator *iterator = helio_iterate(helio_dataset_batch(helio_dataset_from_slices(array), 3));
      helio_element element;
      assert_true(helio_next(iterator, &element) && helio_next(iterator, &element));
      assert_int_equal(helio_tensor_type(element.part[0]), types[t]);
      assert_int_equal(helio_tensor_elements(element.part[0]), 6);
      assert_ok(helio_tensor_read(element.part[0], read, 6 * size));
      assert_memory_equal(read, bytes + 9 * size, 6 * size);
      assert_false(helio_next(iterator, &element));
    }
  }
}

static void tensors_are_one_element(void **state) {
  (void)state;
  int64_t number = 5, two[] = {1, 2};
  helio_dataset *dataset = helio_dataset_from_tensors(helio_array_of(two, HELIO_SHAPE(2), .type = HELIO_INT64),
                                                      helio_array_of(&number, HELIO_SCALAR, .type = HELIO_INT64));
  assert_int_equal(helio_dataset_cardinality(dataset), 1);
  char *text = rest_text(helio_iterate(helio_dataset_batch(helio_dataset_repeat(dataset, 2), 2)), LIMIT);
  assert_string_equal(text, "2x2:1,2,1,2|2:5,5");
  free(text);
}

static void sequences_are_padded(void **state) {
  (void)state;
  int32_t values[] = {1, 2, 3, 4, 5, 6};
  int64_t lengths[] = {3, 0, 1, 2}, labels[] = {9, 8, 7, 6};
  int32_t expected[] = {1, 2, 3, -1, -1, -1}, read[6];
  helio_dataset *dataset = helio_dataset_from_sequences(helio_sequences_of(values, lengths, 4),
                                                        helio_array_of(labels, HELIO_SHAPE(4), .type = HELIO_INT64));
  helio_iterator *iterator = helio_iterate(helio_dataset_padded_batch(dataset, 2, .value = {-1}));
  helio_element element;
  assert_true(helio_next(iterator, &element));
  assert_int_equal(element.count, 2);
  assert_int_equal(helio_tensor_type(element.part[0]), HELIO_INT32);
  assert_ok(helio_tensor_read(element.part[0], read, sizeof read));
  assert_memory_equal(read, expected, sizeof read);
  assert_true(helio_next(iterator, &element));
  assert_int_equal(helio_tensor_shape(element.part[0]).extent[1], 2);
  assert_false(helio_next(iterator, &element));
}

static void files_are_sliced(void **state) {
  (void)state;
  char npy[PATH_MAX], member[2 * PATH_MAX], column[PATH_MAX];
  snprintf(npy, sizeof npy, "%s", golden_data("uint8.npy"));
  helio_array *array = helio_read_npy(npy);
  assert_made(array);
  helio_dataset *dataset = helio_dataset_from_files(npy);
  assert_made(dataset);
  assert_int_equal(helio_dataset_cardinality(dataset), helio_array_shape(array).extent[0]);
  snprintf(column, sizeof column, "%s", golden_data("table.csv"));
  helio_csv *csv = helio_read_csv(column);
  assert_made(csv);
  int numeric = 0;
  while (helio_csv_type(csv, numeric) == 0) numeric++;
  snprintf(member, sizeof member, "%s:%s", column, helio_csv_name(csv, numeric));
  dataset = helio_dataset_from_files(member);
  assert_made(dataset);
  assert_int_equal(helio_dataset_cardinality(dataset), helio_csv_rows(csv));
  snprintf(member, sizeof member, "%s", golden_data("mnist.npz"));
  strcat(member, ":x_train");
  assert_made(helio_dataset_from_files(member));
  assert_null(helio_dataset_from_files(golden_data("mnist.npz")));
  expect_error(HELIO_INVALID_ARGUMENT, "behind a colon");
  assert_null(helio_dataset_from_files("/nowhere/x.npy"));
  expect_error(HELIO_IO_FAILURE, "/nowhere/x.npy");
  assert_null(helio_dataset_from_files("/nowhere/X.NPZ"));
  expect_error(HELIO_INVALID_ARGUMENT, "/nowhere/X.NPZ has several arrays");
}

/* ---- pieces of a batch, for strategies ---- */

static void a_batch_lands_in_pieces(void **state) {
  (void)state;
  int count;
  const char *pipelines[] = {"slices 40, skip 1, shard 2 0, shuffle 9 4, batch 8, prefetch 2",
                             "slices 20, slices 20, zip 2, shuffle 9 4, batch 8, cache", "slices 40, batch 8",
                             "slices 40, shuffle 9 4, batch 8, map, prefetch 2"};
  for (size_t p = 0; p < COUNT_OF(pipelines); p++) {
    helio_iterator *iterator = hi_iterate_unlanded(build_pipeline(pipelines[p]));
    hi_item *item;
    assert_true(hi_iterator_item(iterator, &item) && item);
    assert_int_equal(hi_item_rows(item), 8);
    bool mapped = item->part[0].tensor != NULL; /* then all of them are 2 v + 1 */
    assert_int_equal(mapped, p == 3);
    if (!mapped) assert_non_null(item->part[0].indices); /* nothing was gathered yet */
    hi_devices(&count);
    for (int i = 0; i < count; i++) {
      int64_t y[3], x[18];
      helio_element piece;
      assert_ok(hi_item_land(item, 5, 3, hi_devices(&count)[i], &piece));
      assert_ok(helio_tensor_read(piece.part[0], x, sizeof x));
      assert_ok(helio_tensor_read(piece.part[1], y, sizeof y));
      for (int k = 0; k < 18; k++) {
        int64_t of = mapped ? (y[k / 6] - 1) / 2 : y[k / 6], value = 6 * (of - 100) + k % 6;
        assert_int_equal(x[k], mapped ? 2 * value + 1 : value);
      }
      assert_ok(hi_item_land(item, 8, 0, hi_devices(&count)[i], &piece));
      assert_int_equal(helio_tensor_elements(piece.part[0]), 0);
      assert_int_equal(hi_item_land(item, 5, 4, hi_devices(&count)[i], &piece), HELIO_INVALID_ARGUMENT);
      expect_error(HELIO_INVALID_ARGUMENT, "a batch of 8 rows has no 4 from row 5 on");
    }
    hi_drop(item);
  }
}

/* More bytes than are staged at a time. */
static void a_large_batch_lands_whole(void **state) {
  (void)state;
  enum { ROWS = 2500, ROW = 8192 };
  int32_t *rows = malloc((size_t)ROWS * ROW), *read = malloc((size_t)ROWS * ROW);
  for (int i = 0; i < ROWS * ROW / 4; i++) rows[i] = i;
  helio_dataset *dataset =
      helio_dataset_from_slices(helio_array_of(rows, HELIO_SHAPE(ROWS, ROW / 4), .type = HELIO_INT32, .borrow = true));
  helio_iterator *iterator = helio_iterate(helio_dataset_batch(helio_dataset_shuffle(dataset, ROWS, .seed = 1), ROWS));
  helio_element element;
  assert_true(helio_next(iterator, &element));
  assert_ok(helio_tensor_read(element.part[0], read, (size_t)ROWS * ROW));
  char *seen_rows = calloc(1, ROWS);
  for (int i = 0; i < ROWS; i++) {
    int which = read[i * (ROW / 4)] / (ROW / 4);
    assert_true(which >= 0 && which < ROWS && !seen_rows[which]);
    seen_rows[which] = 1;
    assert_memory_equal(read + i * (ROW / 4), rows + which * (ROW / 4), ROW);
  }
  free(seen_rows);
  free(rows);
  free(read);
}

/* ---- what is refused ---- */

#define REFUSED(call, part)                                                                                            \
  do {                                                                                                                 \
    assert_null(call);                                                                                                 \
    expect_error(HELIO_INVALID_ARGUMENT, part);                                                                        \
  } while (0)

static void wrong_arguments_of_transforms_are_named(void **state) {
  (void)state;
  helio_dataset *range = helio_dataset_range(5);
  REFUSED(helio_dataset_batch(range, 0), "a batch of 0 elements");
  REFUSED(helio_dataset_batch(range, -4), "a batch of -4 elements");
  REFUSED(helio_dataset_batch(NULL, 4), "the dataset is NULL");
  REFUSED(helio_dataset_padded_batch(range, 0), "a batch of 0 elements");
  REFUSED(helio_dataset_padded_batch(range, 2, .shape = {HELIO_SHAPE(-2)}), "(-2,)");
  REFUSED(helio_dataset_shuffle(range, 0), "a buffer of 0 elements");
  REFUSED(helio_dataset_shuffle(range, -1), "a buffer of -1 elements");
  REFUSED(helio_dataset_shuffle(NULL, 5), "the dataset is NULL");
  REFUSED(helio_dataset_repeat(range, -2), "-2 times");
  REFUSED(helio_dataset_take(range, -2), "-2");
  REFUSED(helio_dataset_skip(range, -7), "-7");
  REFUSED(helio_dataset_shard(range, 0, 0), "shard 0 of 0");
  REFUSED(helio_dataset_shard(range, 3, 3), "shard 3 of 3");
  REFUSED(helio_dataset_shard(range, 3, -1), "shard -1 of 3");
  REFUSED(helio_dataset_prefetch(range, -2), "-2 elements ahead");
  REFUSED(helio_dataset_map(range, NULL), "function is NULL");
  REFUSED(helio_dataset_map(range, twice_and_one, .parallel = -2), "-2 calls");
  REFUSED(helio_dataset_zip(&range, 0), "0 datasets");
  REFUSED(helio_dataset_zip(&range, 9), "9 datasets");
  REFUSED(helio_dataset_concatenate(range, NULL), "the dataset is NULL");
}

static void wrong_arguments_of_sources_are_named(void **state) {
  (void)state;
  int64_t numbers[] = {1, 2, 3};
  helio_array *three = helio_array_of(numbers, HELIO_SHAPE(3), .type = HELIO_INT64);
  helio_array *two = helio_array_part(three, 0, 2);
  helio_array *scalar = helio_array_of(numbers, HELIO_SCALAR, .type = HELIO_INT64);
  REFUSED(helio_dataset_range(-3), "-3");
  REFUSED(helio_dataset_from_generator(NULL), "next is NULL");
  REFUSED(helio_dataset_from_generator(next_counted, .count = -1), "-1");
  REFUSED(helio_dataset_from_slices(three, two), "arrays have different numbers of samples: 3 and 2");
  REFUSED(helio_dataset_from_slices(three, scalar), "array 1 is a scalar");
  REFUSED(helio_dataset_from_slices(three, NULL), "an array is NULL");
  REFUSED(helio_dataset_of_slices(&three, 9), "9 arrays");
  REFUSED(helio_dataset_from_sequences(NULL, NULL), "sequences is NULL");
  REFUSED(helio_dataset_from_sequences(helio_sequences_of(NULL, NULL, 0), two), "labels of shape (2,)");
}

static void wrong_arguments_of_iterators_are_named(void **state) {
  (void)state;
  helio_element element;
  REFUSED(helio_iterate(NULL), "the dataset is NULL");
  assert_false(helio_next(NULL, &element));
  expect_error(HELIO_INVALID_ARGUMENT, "the iterator is NULL");
  assert_false(helio_next(helio_iterate(helio_dataset_range(5)), NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "element is NULL");
  assert_int_equal(helio_dataset_cardinality(NULL), HELIO_UNKNOWN);
  expect_error(HELIO_INVALID_ARGUMENT, "the dataset is NULL");
}

static void expect_failure(const char *pipeline, const char *part) {
  helio_iterator *iterator = helio_iterate(build_pipeline(pipeline));
  helio_element element;
  while (helio_next(iterator, &element)) {
  }
  expect_error(HELIO_INVALID_ARGUMENT, part);
  /* it is no end of the data that a second look would find */
  assert_false(helio_next(iterator, &element));
  expect_error(HELIO_INVALID_ARGUMENT, part);
}

static void unequal_elements_are_named(void **state) {
  (void)state;
  expect_failure("ragged 6, batch 2", "part 0 has shape (2,) in element 1 of a batch, and (1,) in the first; "
                                      "helio_dataset_padded_batch");
  expect_failure("range 5, batch 2, batch 3", "shape (1,) in element 2 of a batch, and (2,)");
  expect_failure("range 5, slices 5, concat, batch 10", "element 5 of a batch has 2 parts, the first has 1");
  expect_failure("ragged 6, padded_to 3 2 0", "cannot be padded to (2,)");
  expect_failure("pairs 4, padded_to 3 2 0", "cannot be padded to (2,)");
  expect_failure("slices 3, slices 3, slices 3, slices 3, slices 3, zip 5", "elements of 10 parts; there may be 8");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      POOL_TEST(pipelines_bring_what_tf_data_brings),
      POOL_TEST(epochs_differ_where_those_of_tf_data_differ),
      POOL_TEST(a_shuffle_is_a_permutation_within_its_buffer),
      POOL_TEST(a_shuffle_favours_no_place),
      POOL_TEST(the_order_follows_from_the_seed),
      POOL_TEST(epochs_of_nested_repeats_all_differ),
      POOL_TEST(orders_do_not_hang_on_what_is_around),
      POOL_TEST(slices_keep_their_types),
      POOL_TEST(tensors_are_one_element),
      POOL_TEST(sequences_are_padded),
      POOL_TEST(files_are_sliced),
      POOL_TEST(a_batch_lands_in_pieces),
      POOL_TEST(a_large_batch_lands_whole),
      POOL_TEST(wrong_arguments_of_transforms_are_named),
      POOL_TEST(wrong_arguments_of_sources_are_named),
      POOL_TEST(wrong_arguments_of_iterators_are_named),
      POOL_TEST(unequal_elements_are_named),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, start_afresh, start_afresh);
}
