/* SPDX-License-Identifier: Apache-2.0 */
/* Trace files: JSON in the trace event format as jansson reads it, readable when the program dies, and what goes wrong
 * is an error. */
#define FAILING_PROGRAM 1
#include "train/trace_file.h"

#include <jansson.h>
#include <locale.h>
#include <math.h>

#include "data_files.h"
#include "failing_memory.h"
#include "train/output_file.h"

static char folder[64], path[100];

static int make_place(void **state) {
  (void)state;
  make_folder(folder);
  snprintf(path, sizeof path, "%s/trace.json", folder);
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

static hi_trace_file *open_trace(void) {
  hi_trace_file *file = hi_trace_file_open(path, "training");
  assert_made(file);
  return file;
}

/* ---- a reader ---- */

static json_t *read_events(void) {
  size_t bytes;
  json_error_t error;
  char *text = (char *)read_all(path, &bytes);
  json_t *events = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
  if (!events) fail_msg("%s, byte %d of %zu", error.text, error.position, bytes);
  assert_true(json_is_array(events));
  free(text);
  return events;
}

static const char *text_of(const json_t *event, const char *key) {
  const char *text = json_string_value(json_object_get(event, key));
  if (!text) fail_msg("%s is missing", key);
  return text;
}

static double number_of(const json_t *event, const char *key) {
  const json_t *number = json_object_get(event, key);
  if (!json_is_number(number)) fail_msg("%s is missing", key);
  return json_number_value(number);
}

static void expect_common(const json_t *event, const char *phase, int keys) {
  assert_string_equal(text_of(event, "ph"), phase);
  assert_int_equal(json_integer_value(json_object_get(event, "pid")), getpid());
  assert_int_equal(json_object_size(event), keys);
}

static void expect_name(const json_t *event, const char *what, const char *name) {
  assert_string_equal(text_of(event, "name"), what);
  assert_string_equal(text_of(json_object_get(event, "args"), "name"), name);
}

/* The number of the thread is one more than the track's, because viewers take 0 for none. */
static void expect_span(const json_t *event, int track, const char *name, double microseconds, double length) {
  expect_common(event, "X", 7);
  assert_string_equal(text_of(event, "cat"), "helio");
  assert_string_equal(text_of(event, "name"), name);
  assert_true(number_of(event, "tid") == track + 1.0);
  assert_true(number_of(event, "ts") == microseconds);
  assert_true(number_of(event, "dur") == length);
}

static void expect_counter(const json_t *event, const char *name, double microseconds, double value) {
  expect_common(event, "C", 6);
  assert_string_equal(text_of(event, "name"), name);
  assert_true(number_of(event, "ts") == microseconds);
  double found = number_of(json_object_get(event, "args"), "value");
  assert_memory_equal(&found, &value, sizeof value);
}

/* ---- events ---- */

static void test_all_kinds_of_events(void **state) {
  (void)state;
  hi_trace_file *file = open_trace();
  assert_ok(hi_trace_file_name(file, 0, "replica 0"));
  assert_ok(hi_trace_file_span(file, 0, "step", 1.5, 0.25));
  assert_ok(hi_trace_file_counter(file, "loss", 2, 0.1));
  assert_ok(hi_trace_file_name(file, INT_MAX, "last"));
  assert_ok(hi_trace_file_span(file, INT_MAX, "", 0, 0));
  assert_ok(hi_trace_file_close(file));
  json_t *events = read_events();
  assert_int_equal(json_array_size(events), 6);
  expect_common(json_array_get(events, 0), "M", 4);
  expect_name(json_array_get(events, 0), "process_name", "training");
  expect_common(json_array_get(events, 1), "M", 5);
  expect_name(json_array_get(events, 1), "thread_name", "replica 0");
  assert_true(number_of(json_array_get(events, 1), "tid") == 1);
  expect_span(json_array_get(events, 2), 0, "step", 1500000, 250000);
  expect_counter(json_array_get(events, 3), "loss", 2000000, 0.1);
  expect_name(json_array_get(events, 4), "thread_name", "last");
  assert_true(number_of(json_array_get(events, 4), "tid") == 2147483648.0);
  expect_span(json_array_get(events, 5), INT_MAX, "", 0, 0);
  json_decref(events);
}

static void test_empty_trace(void **state) {
  (void)state;
  assert_ok(hi_trace_file_close(open_trace()));
  json_t *events = read_events();
  assert_int_equal(json_array_size(events), 1);
  json_decref(events);
  assert_ok(hi_trace_file_close(NULL));
}

/* Perfetto and others may read by pieces, and take it ill if one lies behind the end. */
static void test_nothing_behind_the_end(void **state) {
  (void)state;
  size_t bytes;
  assert_ok(hi_trace_file_close(open_trace()));
  unsigned char *text = read_all(path, &bytes);
  assert_int_equal(text[0], '[');
  assert_int_equal(text[bytes - 1], ']');
  free(text);
}

static void test_old_file_is_replaced(void **state) {
  (void)state;
  char old[5000];
  memset(old, 'x', sizeof old);
  put_bytes(path, old, sizeof old);
  test_empty_trace(state);
}

static const char *const hostile[] = {
    "\"},{\"ph\":\"X\"}]",
    "\\",
    "\\\"",
    "\1\2\37\t\r\n\b\f",
    "</script><b>&amp;",
    "Gr\303\274\303\237e \346\227\245\346\234\254 \360\237\214\236 \342\200\250",
    "%s%n%1000000d",
    "{[,:]}",
};

static void test_hostile_names(void **state) {
  (void)state;
  hi_trace_file *file = open_trace();
  for (size_t i = 0; i < COUNT_OF(hostile); i++) {
    assert_ok(hi_trace_file_name(file, 1, hostile[i]));
    assert_ok(hi_trace_file_span(file, 1, hostile[i], 1, 1));
    assert_ok(hi_trace_file_counter(file, hostile[i], 1, 1));
  }
  assert_ok(hi_trace_file_span(file, 1, "a\177b", 1, 1));
  assert_ok(hi_trace_file_close(file));
  json_t *events = read_events();
  assert_int_equal(json_array_size(events), 2 + 3 * COUNT_OF(hostile));
  for (size_t i = 0; i < COUNT_OF(hostile); i++) {
    expect_name(json_array_get(events, 1 + 3 * i), "thread_name", hostile[i]);
    expect_span(json_array_get(events, 2 + 3 * i), 1, hostile[i], 1e6, 1e6);
    expect_counter(json_array_get(events, 3 + 3 * i), hostile[i], 1e6, 1);
  }
  /* Perfetto refuses files with DEL in them. */
  expect_span(json_array_get(events, 1 + 3 * COUNT_OF(hostile)), 1, "a?b", 1e6, 1e6);
  json_decref(events);
}

/* Longer than what is gathered, and between others. */
static void test_long_names(void **state) {
  (void)state;
  enum { LONG = 300000 };
  char *name = malloc(LONG + 1);
  memset(name, '"', LONG);
  name[LONG] = 0;
  hi_trace_file *file = open_trace();
  assert_ok(hi_trace_file_span(file, 0, "before", 0, 1));
  assert_ok(hi_trace_file_span(file, 0, name, 1, 1));
  assert_ok(hi_trace_file_span(file, 0, "behind", 2, 1));
  assert_ok(hi_trace_file_close(file));
  json_t *events = read_events();
  expect_span(json_array_get(events, 1), 0, "before", 0, 1e6);
  expect_span(json_array_get(events, 2), 0, name, 1e6, 1e6);
  expect_span(json_array_get(events, 3), 0, "behind", 2e6, 1e6);
  json_decref(events);
  free(name);
}

/* The process' own name is one of them. */
static void test_name_of_the_process(void **state) {
  (void)state;
  hi_trace_file *file = hi_trace_file_open(path, hostile[0]);
  assert_made(file);
  assert_ok(hi_trace_file_close(file));
  json_t *events = read_events();
  expect_name(json_array_get(events, 0), "process_name", hostile[0]);
  json_decref(events);
}

static void refuse(helio_status status, const char *part) {
  assert_int_equal(status, HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, part);
}

static void test_refused_events(void **state) {
  (void)state;
  static const double bad[] = {NAN, INFINITY, -INFINITY, -1e-9, 9e9, 1e300};
  hi_trace_file *file = open_trace();
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    refuse(hi_trace_file_span(file, 0, "a", bad[i], 1), "trace.json: a time is negative, not finite or too far away");
    refuse(hi_trace_file_span(file, 0, "a", 1, bad[i]), "trace.json: a time is negative, not finite or too far away");
    refuse(hi_trace_file_counter(file, "a", bad[i], 1), "trace.json: a time is negative, not finite or too far away");
  }
  refuse(hi_trace_file_span(file, -1, "a", 1, 1), "trace.json: there is no track -1");
  refuse(hi_trace_file_name(file, INT_MIN, "a"), "trace.json: there is no track -2147483648");
  refuse(hi_trace_file_name(file, 0, NULL), "trace.json: a name is NULL");
  refuse(hi_trace_file_span(file, 0, "\377", 1, 1), "trace.json: a name is not UTF-8");
  refuse(hi_trace_file_counter(file, "a\355\240\200", 1, 1), "trace.json: a name is not UTF-8");
  assert_ok(hi_trace_file_span(file, 0, "good", 1, 1));
  assert_ok(hi_trace_file_close(file));
  json_t *events = read_events();
  assert_int_equal(json_array_size(events), 2);
  expect_span(json_array_get(events, 1), 0, "good", 1e6, 1e6);
  json_decref(events);
}

/* ---- numbers ---- */

static const double values[] = {0, -0.0, 1, -1, 0.1, 1e-5, 1e16, 123456789, 1.0 / 3, 5e-324, 1.7976931348623157e308};

static void write_counters(void) {
  hi_trace_file *file = open_trace();
  for (size_t i = 0; i < COUNT_OF(values); i++) assert_ok(hi_trace_file_counter(file, "c", (double)i, values[i]));
  assert_ok(hi_trace_file_counter(file, "c", 1, NAN));
  assert_ok(hi_trace_file_counter(file, "c", 1, INFINITY));
  assert_ok(hi_trace_file_counter(file, "c", 1, -INFINITY));
  assert_ok(hi_trace_file_span(file, 0, "s", 1e-6, 0.5e-6));
  assert_ok(hi_trace_file_close(file));
}

static void check_counters(void) {
  json_t *events = read_events();
  assert_int_equal(json_array_size(events), 2 + COUNT_OF(values));
  for (size_t i = 0; i < COUNT_OF(values); i++) {
    expect_counter(json_array_get(events, 1 + i), "c", (double)i * 1e6, values[i]);
  }
  expect_span(json_array_get(events, 1 + COUNT_OF(values)), 0, "s", 1, 0.5);
  json_decref(events);
}

static void test_values_of_counters(void **state) {
  (void)state;
  write_counters();
  check_counters();
}

static void test_locale_plays_no_part(void **state) {
  (void)state;
  if (!setlocale(LC_NUMERIC, "de_DE.UTF-8")) SKIP("the locale de_DE.UTF-8 is not installed");
  write_counters();
  setlocale(LC_NUMERIC, "C");
  check_counters();
}

/* Nanoseconds are kept for more than a month, and what lies within a span lies within it in the file. */
static void test_times(void **state) {
  (void)state;
  enum { PAIRS = 300 };
  uint64_t seed = 3;
  hi_trace_file *file = open_trace();
  assert_ok(hi_trace_file_span(file, 0, "s", 3000000.000000001, 0.000001));
  assert_ok(hi_trace_file_span(file, 0, "s", 4000000000, 1));
  for (int i = 0; i < PAIRS; i++) {
    double start = next_random(&seed) / 1e6, inner = start + next_random(&seed) / 1e13, end = inner + 1e-9 * i / 3;
    assert_ok(hi_trace_file_span(file, 0, "outer", start, end - start));
    assert_ok(hi_trace_file_span(file, 0, "inner", inner, end - inner));
  }
  assert_ok(hi_trace_file_close(file));
  json_t *events = read_events();
  expect_span(json_array_get(events, 1), 0, "s", 3000000000000.001, 1);
  expect_span(json_array_get(events, 2), 0, "s", 4e15, 1e6);
  for (size_t i = 0; i < PAIRS; i++) {
    const json_t *outer = json_array_get(events, 3 + 2 * i), *inner = json_array_get(events, 4 + 2 * i);
    double start = number_of(outer, "ts"), later = number_of(inner, "ts");
    assert_true(later >= start);
    assert_true(number_of(inner, "dur") >= 0);
    assert_true(later + number_of(inner, "dur") < start + number_of(outer, "dur") + 0.0005);
  }
  json_decref(events);
}

/* ---- programs that die ---- */

static bool die_after_flush(void *argument) {
  (void)argument;
  hi_trace_file *file = hi_trace_file_open(path, "dies");
  CHILD_CHECK(file);
  for (int i = 0; i < 5000; i++) CHILD_CHECK(hi_trace_file_span(file, 0, "step", i, 1) == HELIO_OK);
  CHILD_CHECK(hi_trace_file_flush(file) == HELIO_OK);
  CHILD_CHECK(hi_trace_file_span(file, 0, "lost", 5000, 1) == HELIO_OK);
  raise(SIGKILL);
  return false;
}

static void test_what_a_dying_program_leaves(void **state) {
  (void)state;
  int ended = run_in_child(die_after_flush, NULL);
  assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
  json_t *events = read_events();
  assert_int_equal(json_array_size(events), 5001);
  assert_true(number_of(json_array_get(events, 5000), "ts") == 4999e6);
  json_decref(events);
}

/* Also while nobody flushes, whole events are there. */
static void test_reader_sees_whole_events(void **state) {
  (void)state;
  size_t most = 0;
  hi_trace_file *file = open_trace();
  for (int i = 1; i <= 3000; i++) {
    assert_ok(hi_trace_file_span(file, 0, i % 5 ? "step" : "a longer name", i, 1));
    if (i % 200) continue;
    json_t *events = read_events();
    most = json_array_size(events);
    json_decref(events);
  }
  assert_in_range(most, 1000, 3000);
  assert_ok(hi_trace_file_close(file));
}

/* ---- what cannot be written ---- */

static void expect_no_file(const char *where, const char *process, helio_status status, const char *part) {
  int files = open_files();
  assert_null(hi_trace_file_open(where, process));
  expect_error(status, part);
  assert_int_equal(open_files(), files);
}

static void test_impossible_files(void **state) {
  (void)state;
  char nowhere[120], fifo[120];
  snprintf(nowhere, sizeof nowhere, "%s/no/trace.json", folder);
  snprintf(fifo, sizeof fifo, "%s/fifo", folder);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  expect_no_file(NULL, "p", HELIO_INVALID_ARGUMENT, "the path of a trace is NULL");
  expect_no_file("", "p", HELIO_INVALID_ARGUMENT, "the path of a trace is \"\"");
  expect_no_file(nowhere, "p", HELIO_IO_FAILURE, "no/trace.json cannot be made: No such file or directory");
  expect_no_file(folder, "p", HELIO_IO_FAILURE, "cannot be made: Is a directory");
  expect_no_file(fifo, "p", HELIO_IO_FAILURE, "fifo cannot be made: No such device or address");
  expect_no_file("/dev/full", "p", HELIO_INVALID_ARGUMENT, "/dev/full is not a regular file");
  put_bytes(path, "old", 3);
  expect_no_file(path, NULL, HELIO_INVALID_ARGUMENT, "trace.json: a name is NULL");
  expect_no_file(path, "\377", HELIO_INVALID_ARGUMENT, "trace.json: a name is not UTF-8");
  struct stat old;
  assert_int_equal(stat(path, &old), 0);
  assert_int_equal(old.st_size, 3);
}

static bool limit_files(rlim_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  return setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, bytes}) == 0;
}

static bool says_full(helio_status status) {
  helio_error error;
  CHILD_CHECK(status == HELIO_IO_FAILURE && helio_error_take(&error) == status);
  CHILD_CHECK(
      strstr(error.message, "/trace.json: writing failed: File too large; make room there, or name another place"));
  return true;
}

static void *span_on_thread(void *file) {
  return says_full(hi_trace_file_span(file, 0, "elsewhere", 1, 1)) ? file : NULL;
}

static bool open_in_no_space(void *argument) {
  (void)argument;
  CHILD_CHECK(limit_files(10));
  CHILD_CHECK(!hi_trace_file_open(path, "p"));
  CHILD_CHECK(says_full(helio_error_pending()));
  return true;
}

/* The first failure is kept for every thread, though there would be space for what comes later. */
static bool fill_the_disk(void *argument) {
  (void)argument;
  void *result = NULL;
  pthread_t thread;
  CHILD_CHECK(limit_files(100000));
  hi_trace_file *file = hi_trace_file_open(path, "p");
  CHILD_CHECK(file);
  helio_status status = HELIO_OK;
  for (int i = 0; i < 10000 && !status; i++) status = hi_trace_file_span(file, 0, "step", i, 1);
  CHILD_CHECK(says_full(status));
  CHILD_CHECK(says_full(hi_trace_file_name(file, 0, "later")));
  CHILD_CHECK(says_full(hi_trace_file_counter(file, "later", 1, 1)));
  CHILD_CHECK(says_full(hi_trace_file_flush(file)));
  CHILD_CHECK(pthread_create(&thread, NULL, span_on_thread, file) == 0);
  CHILD_CHECK(pthread_join(thread, &result) == 0 && result);
  CHILD_CHECK(says_full(hi_trace_file_close(file)));
  return true;
}

static bool fail_at_close(void *argument) {
  (void)argument;
  CHILD_CHECK(limit_files(200));
  hi_trace_file *file = hi_trace_file_open(path, "p");
  CHILD_CHECK(file);
  for (int i = 0; i < 10; i++) CHILD_CHECK(hi_trace_file_span(file, 0, "step", i, 1) == HELIO_OK);
  CHILD_CHECK(says_full(hi_trace_file_close(file)));
  return true;
}

static void test_full_disk(void **state) {
  (void)state;
  struct stat about;
  assert_int_equal(run_in_child(fill_the_disk, NULL), 0);
  assert_int_equal(stat(path, &about), 0);
  assert_in_range(about.st_size, 100000 - 200, 100000);
  json_t *events = read_events();
  size_t count = json_array_size(events);
  assert_true(number_of(json_array_get(events, count - 1), "ts") == (double)(count - 2) * 1e6); /* none is missing */
  json_decref(events);
  assert_int_equal(run_in_child(fail_at_close, NULL), 0);
  json_decref(read_events());
}

/* A file that was there is not removed. */
static void test_no_space_for_the_first_event(void **state) {
  (void)state;
  struct stat about;
  assert_int_equal(run_in_child(open_in_no_space, NULL), 0);
  assert_int_equal(stat(path, &about), -1);
  put_bytes(path, "old", 3);
  assert_int_equal(run_in_child(open_in_no_space, NULL), 0);
  assert_int_equal(stat(path, &about), 0);
  assert_int_equal(about.st_size, 0);
}

static bool append_in_no_space(void *argument) {
  static hi_output_file file;
  (void)argument;
  CHILD_CHECK(limit_files(4));
  CHILD_CHECK(hi_output_file_create(&file, path, true) == HELIO_OK);
  CHILD_CHECK(hi_output_file_put(&file, "new\n", 4) == HELIO_OK);
  CHILD_CHECK(says_full(hi_output_file_close(&file)));
  return true;
}

static void test_what_is_gone_on_with_stays(void **state) {
  (void)state;
  size_t bytes;
  put_bytes(path, "old\n", 4);
  assert_int_equal(run_in_child(append_in_no_space, NULL), 0);
  unsigned char *text = read_all(path, &bytes);
  assert_int_equal(bytes, 4);
  assert_memory_equal(text, "old\n", 4);
  free(text);
}

/* Wherever in a record, in its end or in the document's the space ends, what is left is whole. The process itself finds
 * out what a file without events takes, because its number is in there. */
static bool fill_so_many(void *argument) {
  struct stat about;
  hi_trace_file *file = hi_trace_file_open(path, "p");
  CHILD_CHECK(file && hi_trace_file_close(file) == HELIO_OK && stat(path, &about) == 0);
  CHILD_CHECK(limit_files((rlim_t)about.st_size + *(rlim_t *)argument));
  file = hi_trace_file_open(path, "p");
  CHILD_CHECK(file);
  helio_status status = hi_trace_file_span(file, 0, "first", 1, 1);
  if (!status) status = hi_trace_file_flush(file);
  if (!status) status = hi_trace_file_span(file, 0, "second", 2, 1);
  if (!status) status = hi_trace_file_span(file, 0, "third", 3, 1);
  if (!status) status = hi_trace_file_flush(file);
  CHILD_CHECK(says_full(status) && says_full(hi_trace_file_close(file)));
  return true;
}

static void test_space_for_any_number_of_bytes(void **state) {
  (void)state;
  size_t found = 1;
  for (rlim_t room = 0; room < 220; room++) {
    assert_int_equal(run_in_child(fill_so_many, &room), 0);
    json_t *events = read_events();
    assert_in_range(json_array_size(events), found, found + 1);
    found = json_array_size(events);
    json_decref(events);
  }
  assert_in_range(found, 3, 4);
}

/* ---- no memory ---- */

static bool try_all(void) {
  hi_trace_file *file = hi_trace_file_open(path, "p");
  if (!file) return false;
  helio_status status = hi_trace_file_name(file, 0, "n");
  if (!status) status = hi_trace_file_span(file, 0, "s", 1, 1);
  if (!status) status = hi_trace_file_counter(file, "c", 1, 1);
  return !hi_trace_file_close(file) && !status;
}

/* What could not be added is not in the file, which is whole all the same once it was opened. */
static void test_no_memory(void **state) {
  (void)state;
  int files = open_files(), failures = 0;
  bool done = false;
  for (long k = 1;; k++) {
    fail_allocation(k, false);
    done = try_all();
    long failed = fail_no_more();
    assert_int_equal(open_files(), files);
    if (!failed) break;
    if (done) continue; /* libc can do without some */
    failures++;
    expect_error(HELIO_OUT_OF_MEMORY, "trace.json: no memory for");
  }
  assert_true(done && failures >= 8);
  json_t *events = read_events();
  assert_int_equal(json_array_size(events), 4);
  json_decref(events);
}

static void test_span_without_memory(void **state) {
  (void)state;
  hi_trace_file *file = open_trace();
  assert_ok(hi_trace_file_span(file, 0, "first", 1, 1));
  fail_allocation(1, true);
  helio_status status = hi_trace_file_span(file, 0, "lost", 1, 1);
  assert_true(fail_no_more() > 0);
  assert_int_equal(status, HELIO_OUT_OF_MEMORY);
  expect_error(HELIO_OUT_OF_MEMORY, "trace.json: no memory for a trace");
  assert_ok(hi_trace_file_span(file, 0, "second", 1, 1));
  assert_ok(hi_trace_file_close(file));
  json_t *events = read_events();
  assert_int_equal(json_array_size(events), 3);
  expect_span(json_array_get(events, 2), 0, "second", 1e6, 1e6);
  json_decref(events);
}

/* ---- threads ---- */

enum { THREADS = 4, EACH = 1500 };

typedef struct writer {
  hi_trace_file *file;
  int track;
  helio_status status;
} writer;

static void *write_many(void *argument) {
  writer *w = argument;
  w->status = hi_trace_file_name(w->file, w->track, "replica");
  for (int i = 0; i < EACH && !w->status; i++) {
    w->status = hi_trace_file_span(w->file, w->track, "step", i, 0.5);
    if (!w->status && i % 100 == 0) w->status = hi_trace_file_flush(w->file);
  }
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  writer writers[THREADS];
  hi_trace_file *file = open_trace();
  for (int i = 0; i < THREADS; i++) {
    writers[i] = (writer){.file = file, .track = i};
    assert_int_equal(pthread_create(&threads[i], NULL, write_many, &writers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(writers[i].status, HELIO_OK);
  }
  assert_ok(hi_trace_file_close(file));
  int next[THREADS] = {0};
  json_t *events = read_events();
  assert_int_equal(json_array_size(events), 1 + THREADS * (1 + EACH));
  for (size_t i = 1; i < json_array_size(events); i++) {
    const json_t *event = json_array_get(events, i);
    int track = (int)number_of(event, "tid") - 1;
    assert_in_range(track, 0, THREADS - 1);
    if (strcmp(text_of(event, "ph"), "M") != 0) expect_span(event, track, "step", next[track]++ * 1e6, 0.5e6);
  }
  json_decref(events);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_all_kinds_of_events),
      FILE_TEST(test_empty_trace),
      FILE_TEST(test_nothing_behind_the_end),
      FILE_TEST(test_old_file_is_replaced),
      FILE_TEST(test_hostile_names),
      FILE_TEST(test_long_names),
      FILE_TEST(test_name_of_the_process),
      FILE_TEST(test_refused_events),
      FILE_TEST(test_values_of_counters),
      FILE_TEST(test_locale_plays_no_part),
      FILE_TEST(test_times),
      FILE_TEST(test_what_a_dying_program_leaves),
      FILE_TEST(test_reader_sees_whole_events),
      FILE_TEST(test_impossible_files),
      FILE_TEST(test_full_disk),
      FILE_TEST(test_no_space_for_the_first_event),
      FILE_TEST(test_what_is_gone_on_with_stays),
      FILE_TEST(test_space_for_any_number_of_bytes),
      FILE_TEST(test_no_memory),
      FILE_TEST(test_span_without_memory),
      FILE_TEST(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
