/* SPDX-License-Identifier: Apache-2.0 */
/* Event files: to the byte as Python's writer makes them, read back by a parser of their own, whole at any moment, and
 * what goes wrong is an error. HELIO_TEST_KEEP=FOLDER leaves the file there that TensorBoard should be able to read
 * (golden/train/make_events.py --check FOLDER). */
#define FAILING_PROGRAM 1
#include "train/event_file.h"

#include <math.h>
#include <time.h>

#include "data_files.h"
#include "events.h"
#include "failing_memory.h"
#include "train/crc32c.h"

static char folder[64];

static int make_place(void **state) {
  (void)state;
  make_folder(folder);
  return 0;
}

static int remove_place(void **state) {
  (void)state;
  remove_folder(folder);
  helio_status status = helio_error_take(NULL);
  if (status) print_error("an error is pending: %s\n", helio_status_name(status));
  return status ? -1 : 0;
}

#define FILE_TEST(function) cmocka_unit_test_setup_teardown(function, make_place, remove_place)

/* ---- reading ---- */

static void expect_scalar(file_bytes *file, const char *tag, int64_t step, double wall_time, float value) {
  event e;
  assert_true(next_event(file, &e));
  assert_null(e.version);
  assert_int_equal(e.tag_length, strlen(tag));
  assert_memory_equal(e.tag, tag, e.tag_length);
  assert_int_equal(e.step, step);
  assert_memory_equal(&e.wall_time, &wall_time, sizeof wall_time);
  assert_true(e.has_value);
  assert_memory_equal(&e.value, &value, sizeof value);
}

static void expect_end(file_bytes *file) {
  assert_int_equal(file->at, file->size);
  free(file->data);
}

/* ---- the checksum ---- */

/* RFC 3720, B.4; the last is the usual check of such sums. */
static void test_checksum(void **state) {
  (void)state;
  unsigned char zeros[32] = {0}, ones[32], up[32], down[32];
  static const unsigned char command[48] = {
      0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, 0x28, [40] = 0x02};
  for (int i = 0; i < 32; i++) {
    ones[i] = 0xff;
    up[i] = (unsigned char)i;
    down[i] = (unsigned char)(31 - i);
  }
  assert_int_equal(hi_crc32c(zeros, 32), 0x8a9136aa);
  assert_int_equal(hi_crc32c(ones, 32), 0x62a8ab43);
  assert_int_equal(hi_crc32c(up, 32), 0x46dd794e);
  assert_int_equal(hi_crc32c(down, 32), 0x113fdb5c);
  assert_int_equal(hi_crc32c(command, 48), 0xd9963a56);
  assert_int_equal(hi_crc32c("123456789", 9), 0xe3069283);
  assert_int_equal(hi_crc32c("", 0), 0);
}

/* ---- what Python writes ---- */

#define TEN_X "xxxxxxxxxx"
#define ALL_X TEN_X TEN_X TEN_X TEN_X TEN_X TEN_X TEN_X TEN_X TEN_X TEN_X

/* As in make_events.py. */
static const struct {
  const char *tag;
  int64_t step;
  double wall_time, value;
} python[] = {
    {"epoch_loss", 0, 1700000000.25, 0.6931471805599453},
    {"epoch_loss", 1, 1700000001.5, 0.1},
    {"epoch_loss", 2, 1700000002.0, -0.0},
    {"epoch_loss", 127, 1700000003.0, 0.0},
    {"epoch_loss", 128, 1700000004.0, 1e-45},
    {"epoch_loss", 16384, 1700000005.0, 3.4028234663852886e38},
    {"epoch_loss", INT64_C(1) << 31, 1700000006.0, 1e39},
    {"epoch_loss", INT64_MAX, 1700000007.0, -1e300},
    {"negative", -1, 1700000008.0, -2.5},
    {"negative", INT64_MIN, 1700000009.0, 1e-300},
    {"odd/nan", 1, 1700000010.0, NAN},
    {"odd/infinity", 1, 1700000011.0, INFINITY},
    {"odd/infinity", 2, 1700000012.0, -INFINITY},
    {"odd/time", 1, 0.0, 1.0},
    {"odd/time", 2, -1.5, 2.0},
    {"odd/time", 3, 5e-324, 3.0},
    {"\"quoted\" \\ <b>&amp;</b> 'x'", 1, 1700000013.0, 4.0},
    {"\1\37\177\t\r\n", 1, 1700000014.0, 5.0},
    {"Gr\303\274\303\237e/\346\227\245\346\234\254/\360\237\214\236", 1, 1700000015.0, 6.0},
    {"long/" ALL_X ALL_X TEN_X TEN_X TEN_X TEN_X TEN_X TEN_X TEN_X TEN_X TEN_X "xxxxx", 1, 1700000016.0, 7.0},
    {"%s%n%d", 1, 1700000017.0, 8.0},
};

static void write_python_scalars(const char *where) {
  hi_event_file *file = hi_event_file_open(where);
  assert_made(file);
  for (size_t i = 0; i < COUNT_OF(python); i++) {
    assert_ok(hi_event_file_scalar(file, python[i].tag, python[i].step, python[i].wall_time, python[i].value));
  }
  assert_ok(hi_event_file_close(file));
}

/* Only the time of the first record may differ, and its checksum with it. */
static void test_written_as_python_does(void **state) {
  (void)state;
  enum { TIME = 13, TIME_END = 21, CHECKSUM = 36, SECOND = 40 };
  const char *kept = getenv("HELIO_TEST_KEEP");
  write_python_scalars(kept ? kept : folder);
  if (kept) return;
  size_t size;
  unsigned char *expected = read_all(golden_data("train/events.tfrecord"), &size);
  file_bytes file = read_file_in(folder);
  assert_int_equal(file.at, SECOND);
  assert_int_equal(file.size, size);
  assert_memory_equal(file.data, expected, TIME);
  assert_memory_equal(file.data + TIME_END, expected + TIME_END, CHECKSUM - TIME_END);
  assert_memory_equal(file.data + SECOND, expected + SECOND, size - SECOND);
  free(expected);
  free(file.data);
}

/* ---- what we write ---- */

static void test_version_is_there_at_once(void **state) {
  (void)state;
  char path[PATH_MAX];
  event e;
  time_t before = time(NULL);
  hi_event_file *file = hi_event_file_open(folder);
  assert_made(file);
  find_file(folder, path);
  file_bytes bytes = {0};
  bytes.data = read_all(path, &bytes.size);
  assert_true(next_event(&bytes, &e));
  assert_true(e.wall_time >= (double)before && e.wall_time <= (double)time(NULL) + 1);
  expect_end(&bytes);
  assert_ok(hi_event_file_close(file));
  assert_ok(hi_event_file_close(NULL));
}

/* On both sides of lengths that need another byte, and longer than what is gathered. */
static void test_long_tags(void **state) {
  (void)state;
  static const size_t lengths[] = {1, 110, 120, 127, 128, 16370, 16383, 16384, 65500, 65536, 200000, 1};
  char *tags[COUNT_OF(lengths)];
  hi_event_file *file = hi_event_file_open(folder);
  assert_made(file);
  for (size_t i = 0; i < COUNT_OF(lengths); i++) {
    tags[i] = malloc(lengths[i] + 1);
    memset(tags[i], 'a' + (int)i, lengths[i]);
    tags[i][lengths[i]] = 0;
    assert_ok(hi_event_file_scalar(file, tags[i], (int64_t)i, 1, 0.5));
  }
  assert_ok(hi_event_file_close(file));
  file_bytes bytes = read_file_in(folder);
  for (size_t i = 0; i < COUNT_OF(lengths); i++) {
    expect_scalar(&bytes, tags[i], (int64_t)i, 1, 0.5f);
    free(tags[i]);
  }
  expect_end(&bytes);
}

static int events_in_file(void) {
  event e;
  int count = 0;
  file_bytes bytes = read_file_in(folder);
  while (next_event(&bytes, &e)) count++;
  expect_end(&bytes);
  return count;
}

/* Whenever somebody looks, whole records are there; after a flush all of them. */
static void test_reader_sees_whole_records(void **state) {
  (void)state;
  enum { MANY = 6000 };
  hi_event_file *file = hi_event_file_open(folder);
  assert_made(file);
  int seen_before = 0;
  for (int i = 1; i <= MANY; i++) {
    assert_ok(hi_event_file_scalar(file, i % 7 ? "loss" : "accuracy of the model", i, i, i));
    if (i % 250) continue;
    int found = events_in_file();
    assert_true(found >= seen_before && found <= i);
    seen_before = found;
  }
  assert_true(seen_before > 0 && seen_before < MANY);
  assert_ok(hi_event_file_flush(file));
  assert_int_equal(events_in_file(), MANY);
  assert_ok(hi_event_file_close(file));
  assert_int_equal(events_in_file(), MANY);
}

static void test_refused_scalars(void **state) {
  (void)state;
  static const char *const not_utf8[] = {"\377",         "a\200",        "\300\200",
                                         "\355\240\200", "\360\237\214", "\364\220\200\200"};
  hi_event_file *file = hi_event_file_open(folder);
  assert_made(file);
  for (size_t i = 0; i < COUNT_OF(not_utf8); i++) {
    assert_int_equal(hi_event_file_scalar(file, not_utf8[i], 1, 1, 1), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, ": the tag of a scalar is not UTF-8");
  }
  assert_int_equal(hi_event_file_scalar(file, NULL, 1, 1, 1), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "a scalar has no tag");
  assert_int_equal(hi_event_file_scalar(file, "", 1, 1, 1), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "a scalar has no tag");
  assert_int_equal(hi_event_file_scalar(file, "a", 1, NAN, 1), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "the wall time of a scalar is not finite");
  assert_int_equal(hi_event_file_scalar(file, "a", 1, -INFINITY, 1), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, folder);
  assert_ok(hi_event_file_scalar(file, "a", 1, 2, 3));
  assert_ok(hi_event_file_close(file));
  file_bytes bytes = read_file_in(folder);
  expect_scalar(&bytes, "a", 1, 2, 3);
  expect_end(&bytes);
}

/* ---- names and folders ---- */

/* Parts of the file's name; the host's part may have points in it. */
static void read_name(const char *path, long long *seconds, long *process, unsigned *number) {
  char host[300], rest;
  const char *name = strrchr(path, '/') + 1;
  assert_int_equal(sscanf(name, "events.out.tfevents.%10lld.%299s", seconds, host), 2);
  char *dot = strrchr(host, '.');
  assert_non_null(dot);
  assert_int_equal(sscanf(dot + 1, "%u%c", number, &rest), 1);
  *dot = 0;
  dot = strrchr(host, '.');
  assert_non_null(dot);
  assert_int_equal(sscanf(dot + 1, "%ld%c", process, &rest), 1);
  assert_true(dot > host);
}

static void test_name_of_the_file(void **state) {
  (void)state;
  char path[PATH_MAX], host[100];
  long long seconds, before = time(NULL);
  long process;
  unsigned number;
  assert_ok(hi_event_file_close(hi_event_file_open(folder)));
  find_file(folder, path);
  read_name(path, &seconds, &process, &number);
  assert_true(seconds >= before && seconds <= time(NULL));
  assert_int_equal(process, getpid());
  assert_int_equal(gethostname(host, sizeof host), 0);
  assert_non_null(strstr(path, host));
}

/* A process with the same number on a machine of the same name was here. */
static void test_taken_name_is_left_alone(void **state) {
  (void)state;
  char first[PATH_MAX], taken[PATH_MAX + 100], host[100];
  long long seconds;
  long process;
  unsigned number;
  assert_ok(hi_event_file_close(hi_event_file_open(folder)));
  find_file(folder, first);
  read_name(first, &seconds, &process, &number);
  assert_int_equal(gethostname(host, sizeof host), 0);
  for (int later = 0; later < 60; later++) {
    snprintf(taken, sizeof taken, "%s/events.out.tfevents.%010lld.%s.%ld.%u", folder, seconds + later, host, process,
             number + 1);
    put_bytes(taken, "theirs", 6);
  }
  int entries = entries_of(folder);
  assert_ok(hi_event_file_close(hi_event_file_open(folder)));
  assert_int_equal(entries_of(folder), entries + 1);
  struct stat about;
  assert_int_equal(stat(taken, &about), 0);
  assert_int_equal(about.st_size, 6);
}

static void test_folders_are_made(void **state) {
  (void)state;
  static const char *const below[] = {"/a", "/b/c/d", "/b/c/d/", "//e//f//", "/a/../g/."};
  char where[PATH_MAX];
  for (size_t i = 0; i < COUNT_OF(below); i++) {
    snprintf(where, sizeof where, "%s%s", folder, below[i]);
    hi_event_file *file = hi_event_file_open(where);
    assert_made(file);
    assert_ok(hi_event_file_close(file));
    assert_true(entries_of(where) > 2);
  }
  assert_int_equal(entries_of(folder), 2 + 4); /* a, b, e and g */
}

static void expect_no_file(const char *where, helio_status status, const char *part) {
  int files = open_files();
  assert_null(hi_event_file_open(where));
  expect_error(status, part);
  assert_int_equal(open_files(), files);
}

static bool open_as_nobody(void *argument) {
  (void)argument;
  char where[100];
  CHILD_CHECK(geteuid() != 0 || setuid(65534) == 0);
  CHILD_CHECK(!hi_event_file_open(folder));
  CHILD_CHECK(strstr(helio_error_message(), "cannot be made: Permission denied"));
  helio_error_take(NULL);
  snprintf(where, sizeof where, "%s/below", folder);
  CHILD_CHECK(!hi_event_file_open(where));
  CHILD_CHECK(strstr(helio_error_message(), "/below cannot be made: Permission denied"));
  return true;
}

static void test_impossible_folders(void **state) {
  (void)state;
  char file[100], below[120], dangling[100], endless[400];
  snprintf(file, sizeof file, "%s/file", folder);
  snprintf(below, sizeof below, "%s/below/it", file);
  snprintf(dangling, sizeof dangling, "%s/dangling", folder);
  snprintf(endless, sizeof endless, "%s/%0300d", folder, 0);
  put_bytes(file, "", 0);
  assert_int_equal(symlink("nowhere", dangling), 0);
  expect_no_file(NULL, HELIO_INVALID_ARGUMENT, "the folder for events is NULL");
  expect_no_file("", HELIO_INVALID_ARGUMENT, "the folder for events is \"\"");
  expect_no_file(file, HELIO_IO_FAILURE, "/file cannot be made: File exists");
  expect_no_file(below, HELIO_IO_FAILURE, "/file cannot be made: File exists");
  expect_no_file(dangling, HELIO_IO_FAILURE, "cannot be made: File exists");
  expect_no_file("/proc/no", HELIO_IO_FAILURE, "the folder /proc/no cannot be made: No such file or directory");
  expect_no_file(endless, HELIO_IO_FAILURE, "cannot be made: File name too long");
  assert_int_equal(chmod(folder, 0555), 0);
  assert_int_equal(run_in_child(open_as_nobody, NULL), 0);
  assert_int_equal(chmod(folder, 0755), 0);
}

/* ---- a full disk ---- */

static bool limit_files(rlim_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  return setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, bytes}) == 0;
}

static bool open_in_no_space(void *argument) {
  (void)argument;
  CHILD_CHECK(limit_files(30));
  CHILD_CHECK(!hi_event_file_open(folder));
  CHILD_CHECK(strstr(helio_error_message(), "/events.out.tfevents."));
  CHILD_CHECK(strstr(helio_error_message(), ": writing failed: File too large"));
  return entries_of(folder) == 2;
}

static bool says_full(helio_status status) {
  helio_error error;
  CHILD_CHECK(status == HELIO_IO_FAILURE && helio_error_take(&error) == status);
  CHILD_CHECK(strstr(error.message, folder) && strstr(error.message, ": writing failed: File too large"));
  return true;
}

/* The first failure is kept, though there would be space for what comes later. */
static bool write_in_little_space(void *argument) {
  (void)argument;
  CHILD_CHECK(limit_files(100000));
  hi_event_file *file = hi_event_file_open(folder);
  CHILD_CHECK(file);
  helio_status status = HELIO_OK;
  for (int i = 0; i < 10000 && !status; i++) status = hi_event_file_scalar(file, "loss", i, 1, i);
  CHILD_CHECK(says_full(status));
  CHILD_CHECK(says_full(hi_event_file_flush(file)));
  CHILD_CHECK(says_full(hi_event_file_scalar(file, "x", 1, 1, 1)));
  CHILD_CHECK(says_full(hi_event_file_close(file)));
  return true;
}

static void test_full_disk(void **state) {
  (void)state;
  assert_int_equal(run_in_child(open_in_no_space, NULL), 0);
  assert_int_equal(run_in_child(write_in_little_space, NULL), 0);
  file_bytes bytes = read_file_in(folder);
  assert_in_range(bytes.size, 100000 - 60, 100000);
  event e;
  int64_t count = 0;
  for (; next_event(&bytes, &e); count++) assert_int_equal(e.step, count);
  assert_true(count > 1000);
  assert_int_equal(bytes.at, bytes.size); /* no record is cut short */
  free(bytes.data);
}

/* ---- no memory ---- */

static bool try_all(const char *where) {
  hi_event_file *file = hi_event_file_open(where);
  if (!file) return false;
  helio_status status = hi_event_file_scalar(file, "loss", 1, 2, 3);
  if (!status) status = hi_event_file_flush(file);
  return !hi_event_file_close(file) && !status;
}

static void test_no_memory(void **state) {
  (void)state;
  char where[100];
  int files = open_files(), failures = 0;
  bool done = false;
  for (long k = 1;; k++) {
    snprintf(where, sizeof where, "%s/%ld", folder, k);
    fail_allocation(k, false);
    done = try_all(where);
    long failed = fail_no_more();
    assert_int_equal(open_files(), files);
    if (!failed) break;
    if (done) continue; /* libc can do without some */
    failures++;
    expect_error(HELIO_OUT_OF_MEMORY, "no memory for");
    remove_folder(where);
  }
  assert_true(done && failures >= 5);
}

/* What could not be added is not in the file, and the file goes on. */
static void test_scalar_without_memory(void **state) {
  (void)state;
  hi_event_file *file = hi_event_file_open(folder);
  assert_made(file);
  assert_ok(hi_event_file_scalar(file, "first", 1, 1, 1));
  fail_allocation(1, true);
  helio_status status = hi_event_file_scalar(file, "lost", 2, 2, 2);
  assert_true(fail_no_more() > 0);
  assert_int_equal(status, HELIO_OUT_OF_MEMORY);
  expect_error(HELIO_OUT_OF_MEMORY, "no memory for an event");
  assert_ok(hi_event_file_scalar(file, "second", 3, 3, 3));
  assert_ok(hi_event_file_close(file));
  file_bytes bytes = read_file_in(folder);
  expect_scalar(&bytes, "first", 1, 1, 1);
  expect_scalar(&bytes, "second", 3, 3, 3);
  expect_end(&bytes);
}

/* ---- threads ---- */

enum { THREADS = 4, EACH = 2000 };

typedef struct writer {
  hi_event_file *file;
  int number;
  helio_status status;
} writer;

static void *write_many(void *argument) {
  writer *w = argument;
  char tag[20];
  snprintf(tag, sizeof tag, "thread %d", w->number);
  for (int i = 0; i < EACH && !w->status; i++) {
    w->status = hi_event_file_scalar(w->file, tag, i, 1, i);
    if (!w->status && i % 100 == 0) w->status = hi_event_file_flush(w->file);
  }
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  writer writers[THREADS] = {0};
  hi_event_file *file = hi_event_file_open(folder);
  assert_made(file);
  for (int i = 0; i < THREADS; i++) {
    writers[i] = (writer){.file = file, .number = i};
    assert_int_equal(pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(writers[i].status, HELIO_OK);
  }
  assert_ok(hi_event_file_close(file));
  int64_t next[THREADS] = {0};
  event e;
  file_bytes bytes = read_file_in(folder);
  while (next_event(&bytes, &e)) {
    assert_int_equal(e.tag_length, 8);
    int number = e.tag[7] - '0';
    assert_in_range(number, 0, THREADS - 1);
    assert_int_equal(e.step, next[number]++);
  }
  expect_end(&bytes);
  for (int i = 0; i < THREADS; i++) assert_int_equal(next[i], EACH);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_checksum),
      FILE_TEST(test_written_as_python_does),
      FILE_TEST(test_version_is_there_at_once),
      FILE_TEST(test_long_tags),
      FILE_TEST(test_reader_sees_whole_records),
      FILE_TEST(test_refused_scalars),
      FILE_TEST(test_name_of_the_file),
      FILE_TEST(test_taken_name_is_left_alone),
      FILE_TEST(test_folders_are_made),
      FILE_TEST(test_impossible_folders),
      FILE_TEST(test_full_disk),
      FILE_TEST(test_no_memory),
      FILE_TEST(test_scalar_without_memory),
      FILE_TEST(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
