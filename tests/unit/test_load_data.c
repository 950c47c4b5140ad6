/* SPDX-License-Identifier: Apache-2.0 */
/* Known sets of data: what Keras' load_data() gives for small files and for the real ones (golden/data), and where
 * files are looked for. */
#include <zlib.h>

#include "data_files.h"

static char folder[64];

static int make_place(void **state) {
  restore_environment();
  make_folder(folder);
  setenv("XDG_CACHE_HOME", folder, 1);
  start_afresh(state);
  return enter_pool(state);
}

static int remove_place(void **state) {
  int result = leave_pool(state);
  remove_folder(folder);
  unsetenv("XDG_CACHE_HOME");
  restore_environment();
  start_afresh(state);
  return result;
}

#define PLACE_TEST(function) cmocka_unit_test_setup_teardown(function, make_place, remove_place)

/* A folder of the golden files' name, "…/golden/data". */
static const char *golden_folder(void) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s", golden_data("reuters.npz"));
  *strrchr(path, '/') = 0;
  return path;
}

/* ---- small texts ---- */

/* "-" is None, and 0 is not the default. */
static int32_t option(const char *word, int32_t none) {
  return strcmp(word, "-") == 0 ? none : strcmp(word, "0") == 0 ? HELIO_INTEGER_ZERO : (int32_t)strtol(word, NULL, 10);
}

/* "case num_words skip_top maxlen test_split seed start_char oov_char index_from" */
static void read_case(char *line, helio_load_data_options *o) {
  char *words[9];
  words[0] = strtok(line, " \n");
  for (int i = 1; i < 9; i++) assert_non_null(words[i] = strtok(NULL, " \n"));
  o->num_words = words[1][0] == '-' ? 0 : atoi(words[1]);
  o->skip_top = atoi(words[2]);
  o->maxlen = words[3][0] == '-' ? 0 : atoi(words[3]);
  o->test_split = strtod(words[4], NULL) == 0 ? HELIO_ZERO : strtod(words[4], NULL);
  o->seed = strtoll(words[5], NULL, 10);
  if (o->seed == 0) o->seed = HELIO_INTEGER_ZERO;
  o->start_char = option(words[6], HELIO_NONE);
  o->oov_char = option(words[7], HELIO_NONE);
  o->index_from = option(words[8], HELIO_NONE);
}

typedef struct progress {
  helio_samples train, test;
  int64_t train_at, test_at;
  int cases;
} progress;

static void finish_case(progress *p) {
  if (p->cases == 0) return;
  assert_int_equal(helio_sequences_count(p->train.sequences), p->train_at);
  assert_int_equal(helio_sequences_count(p->test.sequences), p->test_at);
  assert_int_equal(helio_array_elements(p->train.y), p->train_at);
  assert_int_equal(helio_array_elements(p->test.y), p->test_at);
}

static void begin_case(progress *p, const char *name, char *line) {
  helio_load_data_options o = {.size = sizeof o, .name = name, .train = &p->train, .test = &p->test};
  finish_case(p);
  o.folder = golden_folder();
  read_case(line, &o);
  if (strcmp(name, "imdb") == 0) o.test_split = 0;
  assert_ok(helio_load_data_with(&o));
  assert_null(p->train.x);
  assert_int_equal(helio_array_type(p->train.y), HELIO_INT64);
  p->train_at = p->test_at = 0;
  p->cases++;
}

/* "train label word word …" */
static void check_text(progress *p, char *line) {
  bool train = strcmp(strtok(line, " \n"), "train") == 0;
  helio_samples *samples = train ? &p->train : &p->test;
  int64_t index = train ? p->train_at++ : p->test_at++;
  assert_true(index < helio_sequences_count(samples->sequences));
  assert_int_equal(((const int64_t *)helio_array_data(samples->y))[index], atoi(strtok(NULL, " \n")));
  int32_t words[20];
  int count = 0;
  for (char *word; (word = strtok(NULL, " \n"));) words[count++] = atoi(word);
  assert_sequence(samples->sequences, index, words, count);
}

static int check_cases(const char *name) {
  char file_name[40], line[1000];
  progress p = {.cases = 0};
  snprintf(file_name, sizeof file_name, "%s.txt", name);
  FILE *file = fopen(golden_data(file_name), "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    if (line[0] == 'c') {
      begin_case(&p, name, line);
    } else {
      check_text(&p, line);
    }
  }
  finish_case(&p);
  fclose(file);
  return p.cases;
}

static void test_small_sets_as_keras_has_them(void **state) {
  (void)state;
  assert_int_equal(check_cases("reuters"), 30);
  assert_int_equal(check_cases("imdb"), 23);
}

static void test_defaults_are_those_of_keras(void **state) {
  (void)state;
  helio_samples all = {.x = NULL}, train, test;
  assert_ok(helio_load_data("reuters", &train, &test, .folder = golden_folder()));
  assert_ok(helio_load_data("reuters", &all, .test_split = HELIO_ZERO, .folder = golden_folder()));
  assert_int_equal(helio_sequences_count(all.sequences), 40);
  assert_int_equal(helio_sequences_count(train.sequences), 32);
  assert_int_equal(helio_sequences_count(test.sequences), 8);
  for (int64_t i = 0; i < 8; i++) {
    int64_t length;
    const int32_t *words = helio_sequences_at(all.sequences, 32 + i, &length);
    assert_sequence(test.sequences, i, words, length);
  }
}

static void test_only_what_is_asked_for_stays(void **state) {
  (void)state;
  helio_samples test = {.x = NULL};
  HELIO_POOL {
    assert_ok(helio_load_data("imdb", NULL, &test, .folder = golden_folder(), .num_words = 20));
    helio_keep(test.sequences);
  }
  assert_in_range(helio_sequences_largest(test.sequences), 10, 19);
  helio_release(test.sequences);
}

static void test_wrong_options(void **state) {
  (void)state;
  helio_samples s;
  const char *place = golden_folder();
  assert_int_equal(helio_load_data("cifar", &s), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT,
               "\"cifar\" is not a known set of data; there are mnist, fashion-mnist, reuters, imdb");
  assert_true(helio_load_data(NULL, &s));
  expect_error(HELIO_INVALID_ARGUMENT, "is not a known set of data");
  assert_true(helio_load_data("mnist"));
  expect_error(HELIO_INVALID_ARGUMENT, "train and test are NULL");
  assert_true(helio_load_data("mnist", &s, .folder = place, .num_words = 5));
  expect_error(HELIO_INVALID_ARGUMENT, "mnist has images; the options of texts mean nothing there");
  assert_true(helio_load_data("imdb", &s, .folder = place, .test_split = 0.5));
  expect_error(HELIO_INVALID_ARGUMENT, "imdb is split already; test_split means nothing there");
  assert_true(helio_load_data("reuters", &s, .folder = place, .test_split = 1.5));
  expect_error(HELIO_INVALID_ARGUMENT, "a test_split of 1.5 is not from 0 to 1");
  assert_true(helio_load_data("reuters", &s, .folder = place, .test_split = -0.5));
  expect_error(HELIO_INVALID_ARGUMENT, "a test_split of -0.5 is not from 0 to 1");
  assert_true(helio_load_data("reuters", &s, .folder = place, .seed = INT64_C(1) << 32));
  expect_error(HELIO_INVALID_ARGUMENT, "the seed 4294967296 is not from 0 to 4294967295");
  assert_true(helio_load_data("reuters", &s, .folder = place, .num_words = -1));
  expect_error(HELIO_INVALID_ARGUMENT, "num_words is -1");
  assert_true(helio_load_data("reuters", &s, .folder = place, .maxlen = 1));
  expect_error(HELIO_INVALID_ARGUMENT, "no text is shorter than maxlen = 1");
  assert_true(helio_load_data("imdb", &s, .folder = place, .index_from = INT32_MAX));
  expect_error(HELIO_BAD_DATA, "does not fit into 32 bits");
}

/* ---- images ---- */

static void check_small_images(const helio_samples *train, const helio_samples *test) {
  assert_true(hi_shape_equal(&train->x->shape, &HELIO_SHAPE(3, 4, 3)));
  assert_true(hi_shape_equal(&test->x->shape, &HELIO_SHAPE(2, 4, 3)));
  assert_memory_equal(helio_array_data(train->y), "\1\2\3", 3);
  assert_memory_equal(helio_array_data(test->y), "\4\5", 2);
  assert_null(train->sequences);
}

static void test_archive_of_keras(void **state) {
  (void)state;
  helio_samples train, test;
  assert_ok(helio_load_data("mnist", &train, &test, .folder = golden_folder()));
  check_small_images(&train, &test);
}

static void write_idx(const char *name, const unsigned char *header, size_t bytes, const unsigned char *data,
                      size_t size) {
  char path[PATH_MAX];
  unsigned char whole[200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  memcpy(whole, header, bytes);
  memcpy(whole + bytes, data, size);
  put_bytes(path, whole, bytes + size);
}

/* Three images for training and two for the test, under `place` of the test's folder. */
static void write_images(const char *place) {
  static const unsigned char images[36] = {0};
  char name[200];
  snprintf(name, sizeof name, "%s/x", place);
  write_file(folder, name, "");
  snprintf(name, sizeof name, "%s/train-images-idx3-ubyte", place);
  write_idx(name, (const unsigned char *)"\0\0\10\3\0\0\0\3\0\0\0\4\0\0\0\3", 16, images, 36);
  snprintf(name, sizeof name, "%s/train-labels-idx1-ubyte", place);
  write_idx(name, (const unsigned char *)"\0\0\10\1\0\0\0\3", 8, (const unsigned char *)"\1\2\3", 3);
  snprintf(name, sizeof name, "%s/t10k-images-idx3-ubyte", place);
  write_idx(name, (const unsigned char *)"\0\0\10\3\0\0\0\2\0\0\0\4\0\0\0\3", 16, images, 24);
  snprintf(name, sizeof name, "%s/t10k-labels-idx1-ubyte", place);
  write_idx(name, (const unsigned char *)"\0\0\10\1\0\0\0\2", 8, (const unsigned char *)"\4\5", 2);
}

static void test_idx_files_in_each_place(void **state) {
  helio_samples train, test;
  char path[200];
  write_images("helio/mnist"); /* the cache folder */
  assert_ok(helio_load_data("mnist", &train, &test));
  check_small_images(&train, &test);
  write_images("own/mnist");
  snprintf(path, sizeof path, "%s/own", folder);
  setenv("HELIO_DATA_DIR", path, 1);
  start_afresh(state);
  char **files = helio_data_files("mnist", NULL);
  assert_made(files);
  assert_non_null(strstr(files[0], "/own/mnist/train-images-idx3-ubyte"));
  assert_non_null(strstr(files[3], "/own/mnist/t10k-labels-idx1-ubyte"));
  assert_null(files[4]);
  free(files);
  write_images("plain");
  snprintf(path, sizeof path, "%s/plain", folder);
  files = helio_data_files("mnist", path);
  assert_made(files);
  assert_non_null(strstr(files[0], "/plain/train-images-idx3-ubyte"));
  free(files);
  assert_ok(helio_load_data("mnist", &train, &test, .folder = path));
  check_small_images(&train, &test);
}

/* Files of these names in a folder that is everybody's may be of another set. */
static void test_idx_files_without_a_name(void **state) {
  char path[200];
  helio_samples train;
  write_images("own");
  snprintf(path, sizeof path, "%s/own", folder);
  setenv("HELIO_DATA_DIR", path, 1);
  start_afresh(state);
  assert_true(helio_load_data("mnist", &train));
  expect_error(HELIO_IO_FAILURE, "mnist was not found in ");
}

static void test_labels_that_do_not_fit(void **state) {
  (void)state;
  helio_samples train;
  write_images("helio/mnist");
  write_idx("helio/mnist/train-labels-idx1-ubyte", (const unsigned char *)"\0\0\10\1\0\0\0\2", 8,
            (const unsigned char *)"\1\2", 2);
  assert_true(helio_load_data("mnist", &train));
  expect_error(HELIO_BAD_DATA,
               "train-images-idx3-ubyte: uint8 of shape (3, 4, 3) and uint8 of shape (2,) are not images");
}

/* ---- absent sets ---- */

static void test_absent_sets(void **state) {
  helio_samples train;
  char path[200], expected[600];
  setenv("HELIO_DATA_DIR", "/nowhere", 1);
  start_afresh(state);
  assert_true(helio_load_data("imdb", &train, .folder = "/none"));
  snprintf(
      expected, sizeof expected,
      "imdb was not found in /none, /nowhere, %s/helio, /usr/share/datasets, nor in a folder imdb of these. To have "
      "it: helio data get imdb or, where it is in a folder already, helio data get imdb --from DIR",
      folder);
  helio_error error;
  assert_int_equal(helio_error_take(&error), HELIO_IO_FAILURE);
  assert_string_equal(error.message, expected);
  assert_string_equal(error.where, "helio_load_data");
  char **folders = helio_data_folders(NULL);
  assert_made(folders);
  snprintf(path, sizeof path, "%s/helio", folder);
  assert_string_equal(folders[0], "/nowhere");
  assert_string_equal(folders[1], path);
  assert_string_equal(folders[2], "/usr/share/datasets");
  assert_null(folders[3]);
  free(folders);
}

/* Three of four files: which is missing is what helps. */
static void test_incomplete_set(void **state) {
  (void)state;
  helio_samples train;
  char path[300], expected[500];
  write_images("helio/mnist");
  snprintf(path, sizeof path, "%s/helio/mnist/t10k-labels-idx1-ubyte", folder);
  assert_int_equal(unlink(path), 0);
  assert_true(helio_load_data("mnist", &train));
  snprintf(expected, sizeof expected, "mnist is not whole: %s is missing or cannot be read, with .gz as well", path);
  expect_error(HELIO_BAD_DATA, expected);
}

static void test_absent_set_of_debian(void **state) {
  (void)state;
  helio_samples train;
  if (access("/usr/share/datasets/fashion-mnist", R_OK) == 0) SKIP("Debian's dataset-fashion-mnist is installed");
  assert_true(helio_load_data("fashion-mnist", &train));
  expect_error(HELIO_IO_FAILURE, "apt-get install dataset-fashion-mnist, or helio data get fashion-mnist");
}

static void test_home_of_the_cache(void **state) {
  (void)state;
  char expected[200], *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", folder, 1);
  char **folders = helio_data_folders(NULL);
  assert_made(folders);
  snprintf(expected, sizeof expected, "%s/.cache/helio", folder);
  assert_string_equal(folders[0], expected);
  free(folders);
  unsetenv("HOME");
  folders = helio_data_folders(NULL);
  assert_made(folders);
  assert_string_equal(folders[0], "/usr/share/datasets");
  free(folders);
  if (home) setenv("HOME", home, 1);
  free(home);
}

/* ---- the real sets ---- */

static unsigned long sum_of(const helio_array *array) {
  return crc32_z(0, helio_array_data(array), hi_array_bytes(array));
}

static unsigned long sum_of_texts(const helio_sequences *texts) {
  unsigned long sum = crc32(0, NULL, 0);
  for (int64_t i = 0; i < helio_sequences_count(texts); i++) {
    int64_t length;
    const int32_t *words = helio_sequences_at(texts, i, &length);
    int32_t first = (int32_t)length;
    sum = crc32(sum, (const unsigned char *)&first, 4);
    sum = crc32(sum, (const unsigned char *)words, (unsigned)length * 4);
  }
  return sum;
}

static void check_part(const helio_samples *samples, const unsigned long expected[3]) {
  assert_int_equal(helio_array_elements(samples->y), expected[0]);
  assert_int_equal(samples->x ? sum_of(samples->x) : sum_of_texts(samples->sequences), expected[1]);
  assert_int_equal(sum_of(samples->y), expected[2]);
}

/* Lines of real.txt that begin with the name; how many there were. */
static int check_real(const char *name, const char *place) {
  char line[300];
  unsigned long s[6];
  int lines = 0;
  bool texts = strcmp(name, "reuters") == 0;
  FILE *file = fopen(golden_data("real.txt"), "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    int num_words = 0, maxlen = 0, seed = 0, at = 0;
    helio_samples train, test;
    if (strncmp(line, name, strlen(name)) != 0) continue;
    if (texts) {
      assert_int_equal(sscanf(line, "reuters %d %d %d %n", &num_words, &maxlen, &seed, &at), 3);
    } else {
      at = (int)strlen(name);
    }
    assert_int_equal(sscanf(line + at, "%lu %lu %lu %lu %lu %lu", s, s + 1, s + 2, s + 3, s + 4, s + 5), 6);
    HELIO_POOL {
      assert_ok(helio_load_data(name, &train, &test, place, .num_words = num_words, .maxlen = maxlen, .seed = seed));
      check_part(&train, s);
      check_part(&test, s + 3);
    }
    lines++;
  }
  fclose(file);
  return lines;
}

static void test_real_reuters(void **state) {
  (void)state;
  if (!*real_data()) SKIP("there is no shared/data beside the project, nor HELIO_TEST_DATA, with reuters");
  assert_int_equal(check_real("reuters", real_data()), 3);
}

static void test_real_mnist(void **state) {
  (void)state;
  if (!*real_data()) SKIP("there is no shared/data beside the project, nor HELIO_TEST_DATA, with mnist");
  assert_int_equal(check_real("mnist", real_data()), 1);
}

static void test_real_fashion_mnist(void **state) {
  (void)state;
  if (access("/usr/share/datasets/fashion-mnist", R_OK) != 0) SKIP("Debian's dataset-fashion-mnist is not installed");
  assert_int_equal(check_real("fashion-mnist", NULL), 1);
}

/* A file in the place of a folder is the set's archive, also under another name. */
static void test_archive_by_its_name(void **state) {
  (void)state;
  char name[PATH_MAX];
  size_t bytes;
  helio_samples by_folder, by_file;
  unsigned char *data = read_all(golden_data("reuters.npz"), &bytes);
  snprintf(name, sizeof name, "%s/news", folder);
  put_bytes(name, data, bytes);
  free(data);
  assert_ok(helio_load_data("reuters", &by_folder, .folder = golden_folder()));
  assert_ok(helio_load_data("reuters", &by_file, .folder = name));
  assert_int_equal(helio_array_elements(by_file.y), helio_array_elements(by_folder.y));
  assert_memory_equal(helio_array_data(by_file.y), helio_array_data(by_folder.y),
                      (size_t)helio_array_elements(by_file.y) * 8);
  put_bytes(name, "no archive", 10);
  assert_int_not_equal(helio_load_data("reuters", &by_file, .folder = name), HELIO_OK);
  expect_error(HELIO_BAD_DATA, name);
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      PLACE_TEST(test_small_sets_as_keras_has_them),
      PLACE_TEST(test_defaults_are_those_of_keras),
      PLACE_TEST(test_only_what_is_asked_for_stays),
      PLACE_TEST(test_wrong_options),
      PLACE_TEST(test_archive_of_keras),
      PLACE_TEST(test_archive_by_its_name),
      PLACE_TEST(test_idx_files_in_each_place),
      PLACE_TEST(test_idx_files_without_a_name),
      PLACE_TEST(test_labels_that_do_not_fit),
      PLACE_TEST(test_absent_sets),
      PLACE_TEST(test_incomplete_set),
      PLACE_TEST(test_absent_set_of_debian),
      PLACE_TEST(test_home_of_the_cache),
      PLACE_TEST(test_real_reuters),
      PLACE_TEST(test_real_mnist),
      PLACE_TEST(test_real_fashion_mnist),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
