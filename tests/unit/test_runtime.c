/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of the library, errors, the log, fork, and values that outlive an end. */
#include "support.h"

static const float numbers[] = {1, 2, 3, 4};

/* A little work on the variant's device; true if the result is right. */
static bool work(void) {
  float result[4] = {0};
  bool right = false;
  HELIO_POOL {
    HELIO_DEVICE(device_name()) {
      helio_tensor *x = helio_constant(numbers, HELIO_SHAPE(4));
      helio_tensor *y = helio_add(x, x);
      right = helio_tensor_read(y, result, sizeof result) == HELIO_OK;
    }
  }
  for (int i = 0; i < 4; i++) right = right && result[i] == 2 * numbers[i];
  return right;
}

/* ---- start and end ---- */

static void test_version(void **state) {
  char text[64];
  (void)state;
  snprintf(text, sizeof text, "%d.%d.%d", HELIO_VERSION_MAJOR, HELIO_VERSION_MINOR, HELIO_VERSION_PATCH);
  assert_string_equal(helio_version(), text);
}

static void test_twice(void **state) {
  (void)state;
  assert_ok(helio_shutdown()); /* not started: nothing to do */
  for (int i = 0; i < 2; i++) {
    assert_ok(helio_init());
    assert_ok(helio_init());
    assert_true(work());
    assert_ok(helio_shutdown());
    assert_ok(helio_shutdown());
  }
}

/* Files, threads, mappings and memory after fifty starts are what they were after a few. */
static void test_fifty_times(void **state) {
  int files = 0, threads = 0, mappings = 0;
  long resident = 0;
  (void)state;
  for (int i = 0; i < (SANITIZED ? 20 : 55); i++) {
    assert_ok(helio_init());
    assert_true(work());
    assert_ok(helio_shutdown());
    if (i != 4) continue;
    files = open_files();
    threads = thread_count(-1);
    mappings = mapping_count();
    resident = resident_kib();
  }
  assert_int_equal(open_files(), files);
  assert_int_equal(thread_count(threads), threads);
  if (SANITIZED) return; /* sanitizers keep what was freed */
  assert_in_range(mapping_count(), 1, mappings + 4);
  assert_in_range(resident_kib(), 1, resident + 1024);
}

static void test_threads_end_with_the_library(void **state) {
  (void)state;
  int before = thread_count(-1);
  setenv("HELIO_NUM_THREADS", "4", 1);
  assert_ok(helio_init());
  assert_true(work());
  assert_ok(helio_shutdown());
  assert_int_equal(thread_count(before), before);
}

typedef struct racer {
  pthread_barrier_t *gate;
  int number;
  bool right;
} racer;

/* Odd ones begin with something else than helio_init. */
static void *race(void *argument) {
  racer *r = argument;
  int count = 0;
  pthread_barrier_wait(r->gate);
  bool started = r->number % 2 ? helio_physical_devices(NULL, &count) != NULL : helio_init() == HELIO_OK;
  r->right = started && work();
  return NULL;
}

static void test_from_several_threads_at_once(void **state) {
  enum { RACERS = 4 };
  pthread_t threads[RACERS];
  racer racers[RACERS];
  pthread_barrier_t gate;
  (void)state;
  for (int round = 0; round < (SANITIZED ? 5 : 15); round++) {
    pthread_barrier_init(&gate, NULL, RACERS);
    for (int i = 0; i < RACERS; i++) {
      racers[i] = (racer){&gate, i, false};
      assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++) {
      pthread_join(threads[i], NULL);
      assert_true(racers[i].right);
    }
    pthread_barrier_destroy(&gate);
    assert_ok(helio_shutdown());
  }
}

static void *end_at_once(void *argument) {
  racer *r = argument;
  pthread_barrier_wait(r->gate);
  r->right = helio_shutdown() == HELIO_OK;
  return NULL;
}

static void test_ended_by_two_threads_at_once(void **state) {
  pthread_t threads[2];
  racer racers[2];
  pthread_barrier_t gate;
  (void)state;
  for (int round = 0; round < (SANITIZED ? 3 : 10); round++) {
    assert_true(work());
    pthread_barrier_init(&gate, NULL, 2);
    for (int i = 0; i < 2; i++) {
      racers[i] = (racer){&gate, i, false};
      assert_int_equal(pthread_create(&threads[i], NULL, end_at_once, &racers[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
      pthread_join(threads[i], NULL);
      assert_true(racers[i].right);
    }
    pthread_barrier_destroy(&gate);
  }
}

/* ---- the first call starts the library ---- */

static bool first_physical(void) {
  int count = 0;
  return helio_physical_devices(NULL, &count) && count > 0;
}
static bool first_logical(void) {
  int count = 0;
  return helio_logical_devices(NULL, &count) && count > 0;
}
static bool first_plugins(void) {
  int count = 0;
  return helio_plugins(&count) && count > 0;
}
static bool first_settings(void) {
  int count = 0;
  return helio_settings(&count) && count > 0;
}
static bool first_operations(void) {
  int count = 0;
  return helio_operations(&count) && count > 0;
}
static bool first_types(void) {
  return helio_operation_types("add", "cpu") != 0;
}
static bool first_growth(void) {
  return helio_set_memory_growth(NULL, false) == HELIO_OK;
}
static bool first_soft(void) {
  return helio_set_soft_placement(true) == HELIO_OK;
}
static bool first_memory(void) {
  helio_memory info;
  return helio_memory_info(device_name(), &info) == HELIO_OK;
}
static bool first_synchronize(void) {
  return helio_synchronize(NULL) == HELIO_OK;
}
static bool first_fill(void) {
  return helio_fill(HELIO_SHAPE(2), 1.0) != NULL;
}

static void test_the_first_call_starts(void **state) {
  static bool (*const calls[])(void) = {first_physical,   first_logical,     first_plugins, first_settings,
                                        first_operations, first_types,       first_growth,  first_soft,
                                        first_memory,     first_synchronize, first_fill,    work};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(calls); i++) {
    if (!calls[i]()) fail_msg("first call %zu: %s", i, helio_error_message());
    assert_ok(helio_shutdown());
  }
}

/* ---- errors ---- */

static void make_error(void) {
  assert_null(helio_constant(numbers, HELIO_SHAPE(4), (helio_type)99));
}

static void test_an_error_stays_until_taken(void **state) {
  helio_error error;
  int count = 77;
  (void)state;
  assert_ok(helio_init());
  assert_int_equal(helio_error_pending(), HELIO_OK);
  assert_string_equal(helio_error_message(), "");
  make_error();
  assert_int_equal(helio_error_pending(), HELIO_INVALID_ARGUMENT);
  char first[sizeof error.message];
  snprintf(first, sizeof first, "%s", helio_error_message());
  assert_true(strlen(first) > 5);
  /* All others do nothing, and the first error stays. */
  assert_int_equal(helio_set_memory_fraction(7), HELIO_INVALID_ARGUMENT);
  assert_int_equal(helio_init(), HELIO_INVALID_ARGUMENT);
  assert_int_equal(helio_shutdown(), HELIO_INVALID_ARGUMENT);
  assert_null(helio_logical_devices(NULL, &count));
  assert_null(helio_fill(HELIO_SHAPE(2), 1.0));
  assert_int_equal(count, 77);
  assert_string_equal(helio_error_message(), first);
  assert_int_equal(helio_error_take(&error), HELIO_INVALID_ARGUMENT);
  assert_int_equal(error.status, HELIO_INVALID_ARGUMENT);
  assert_string_equal(error.message, first);
  assert_string_equal(error.where, "helio_constant");
  assert_int_equal(helio_error_take(&error), HELIO_OK);
  assert_int_equal(error.status, HELIO_OK);
  assert_string_equal(error.message, "");
  assert_string_equal(error.where, "");
  assert_true(work());
}

static bool running(void) {
  helio_plugin_report report;
  bool refused = helio_plugin_inspect("/nowhere/x.so", &report) == HELIO_WRONG_STATE;
  helio_error_take(NULL);
  return refused;
}

/* The end is a release: it works while an error is pending, which stays. */
static void test_an_end_while_an_error_is_pending(void **state) {
  helio_error error;
  (void)state;
  assert_true(work());
  make_error();
  assert_int_equal(helio_shutdown(), HELIO_INVALID_ARGUMENT);
  assert_int_equal(helio_error_take(&error), HELIO_INVALID_ARGUMENT);
  assert_string_equal(error.where, "helio_constant");
  assert_false(running());
  assert_true(work());
  assert_true(running());
}

static void test_taking_without_looking(void **state) {
  (void)state;
  make_error();
  assert_int_equal(helio_error_take(NULL), HELIO_INVALID_ARGUMENT);
  assert_int_equal(helio_error_take(NULL), HELIO_OK);
  assert_string_equal(helio_error_message(), "");
}

/* While this thread has an error pending the other works, and makes one of its own. */
static void *other_thread(void *argument) {
  bool *right = argument;
  *right = helio_error_pending() == HELIO_OK && strcmp(helio_error_message(), "") == 0 && work();
  helio_set_memory_fraction(7);
  *right = *right && helio_error_pending() == HELIO_INVALID_ARGUMENT && strstr(helio_error_message(), "fraction");
  return NULL;
}

static void test_errors_belong_to_their_thread(void **state) {
  pthread_t thread;
  bool right = false;
  (void)state;
  make_error();
  assert_int_equal(pthread_create(&thread, NULL, other_thread, &right), 0);
  pthread_join(thread, NULL);
  assert_true(right);
  assert_null(strstr(helio_error_message(), "fraction"));
  assert_int_equal(helio_error_take(NULL), HELIO_INVALID_ARGUMENT);
}

static void test_names_and_texts(void **state) {
  (void)state;
#define CHECK(name, value, text)                                                                                       \
  assert_string_equal(helio_status_name((helio_status)(value)), "HELIO_" #name);                                       \
  assert_string_equal(helio_status_text((helio_status)(value)), text);
  HELIO_STATUS_LIST(CHECK)
#undef CHECK
#define CHECK(name, value, text) assert_string_equal(helio_plugin_status_text((helio_plugin_status)(value)), text);
  HELIO_PLUGIN_STATE_LIST(CHECK)
#undef CHECK
  assert_true(strlen(helio_status_name((helio_status)9999)) > 0);
  assert_true(strlen(helio_status_text((helio_status)9999)) > 0);
  assert_true(strlen(helio_plugin_status_text((helio_plugin_status)9999)) > 0);
}

/* ---- the log. In children, because a level that the program has set holds for good. ---- */

static const char *const level_names[] = {"", "debug", "info", "warning", "error", "off"};

static bool lines_at_least(int level) {
  for (int i = 0; i < seen.count; i++) CHILD_CHECK((int)seen.levels[i] >= level);
  CHILD_CHECK((lines_with("DEBUG:helio:probing plugin cpu", "") > 0) == (level <= HELIO_LOG_DEBUG));
  CHILD_CHECK((lines_with("Executing op Add", "") > 0) == (level <= HELIO_LOG_INFO));
  CHILD_CHECK((lines_with("WARNING:helio:", "HELIO_NOTHING") > 0) == (level <= HELIO_LOG_WARNING));
  return true;
}

static bool level_by_variable(void *argument) {
  int level = *(int *)argument;
  setenv("HELIO_LOG", level_names[level], 1);
  CHILD_CHECK(work());
  return lines_at_least(level);
}

/* The program's word counts more than the variable's, also after the next start. */
static bool level_by_call(void *argument) {
  int level = *(int *)argument;
  setenv("HELIO_LOG", level == HELIO_LOG_DEBUG ? "off" : "debug", 1);
  CHILD_CHECK(helio_set_log_level((helio_log_level)level) == HELIO_OK);
  CHILD_CHECK(work() && lines_at_least(level));
  CHILD_CHECK(helio_shutdown() == HELIO_OK);
  seen.count = 0;
  CHILD_CHECK(work() && lines_at_least(level));
  return true;
}

static void test_levels(void **state) {
  (void)state;
  setenv("HELIO_NOTHING", "1", 1);
  setenv("HELIO_LOG_PLACEMENT", "1", 1);
  for (int level = HELIO_LOG_DEBUG; level <= HELIO_LOG_OFF; level++) {
    assert_int_equal(run_in_child(level_by_variable, &level), 0);
    assert_int_equal(run_in_child(level_by_call, &level), 0);
  }
}

static void test_levels_that_are_none(void **state) {
  (void)state;
  assert_int_equal(helio_set_log_level((helio_log_level)0), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "log level 0");
  assert_int_equal(helio_set_log_level((helio_log_level)6), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "log level 6");
}

/* Placement lines stand bare, at level INFO. */
static void test_placement_lines(void **state) {
  static const char start[] = "Executing op AddV2 in device /job:localhost/replica:0/task:0/device:";
  (void)state;
  setenv("HELIO_LOG_PLACEMENT", "1", 1);
  assert_true(work());
  assert_int_equal(lines_with("Executing op ", ""), 1);
  for (int i = 0; i < seen.count; i++) {
    if (!strstr(seen.lines[i], "Executing")) continue;
    assert_int_equal(seen.levels[i], HELIO_LOG_INFO);
    assert_true(strncmp(seen.lines[i], start, strlen(start)) == 0);
  }
}

static void count_lines(void *user, helio_log_level level, const char *line) {
  (void)level;
  if (!strchr(line, '\n')) ++*(int *)user;
}

static void test_a_sink_of_ones_own(void **state) {
  int count = 0;
  (void)state;
  setenv("HELIO_NOTHING", "1", 1);
  helio_set_log_sink(count_lines, &count);
  assert_ok(helio_init());
  assert_true(count > 0);
  assert_int_equal(seen.count, 0);
  helio_set_log_sink(keep_line, NULL);
  assert_ok(helio_shutdown());
  assert_ok(helio_init());
  assert_logged("WARNING:helio:", "HELIO_NOTHING");
}

/* Without a sink: whole lines on standard error. */
static bool log_to_stderr(void *argument) {
  const char *path = argument;
  helio_set_log_sink(NULL, NULL);
  CHILD_CHECK(freopen(path, "w", stderr));
  return helio_init() == HELIO_OK && fflush(stderr) == 0;
}

static void test_the_default_sink(void **state) {
  char folder[64], path[100], text[2000];
  (void)state;
  make_folder(folder);
  snprintf(path, sizeof path, "%s/log", folder);
  setenv("HELIO_NOTHING", "1", 1);
  assert_int_equal(run_in_child(log_to_stderr, path), 0);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t length = fread(text, 1, sizeof text - 1, file);
  text[length] = 0;
  fclose(file);
  remove_folder(folder);
  assert_int_equal(strncmp(text, "WARNING:helio:the variable HELIO_NOTHING is set", 47), 0);
  assert_int_equal(text[length - 1], '\n');
}

/* ---- fork ---- */

static helio_tensor *of_the_parent;

static bool refused(void) {
  helio_error error;
  bool right = helio_error_take(&error) == HELIO_WRONG_STATE && strstr(error.message, "forked");
  if (!right) fprintf(stderr, "  %s: %s\n", helio_status_name(error.status), error.message);
  return right;
}

#define REFUSED(call)                                                                                                  \
  do {                                                                                                                 \
    (void)(call);                                                                                                      \
    if (!refused()) {                                                                                                  \
      fprintf(stderr, "%s was not refused\n", #call);                                                                  \
      right = false;                                                                                                   \
    }                                                                                                                  \
  } while (0)

static bool settings_are_refused(void) {
  bool right = true;
  const char *const names[] = {"cpu:0"};
  helio_plugin_report report;
  int count;
  REFUSED(helio_init());
  REFUSED(helio_shutdown());
  REFUSED(helio_physical_devices(NULL, &count));
  REFUSED(helio_logical_devices("CPU", &count));
  REFUSED(helio_set_visible_devices(names, 1));
  REFUSED(helio_set_logical_devices("cpu:0", NULL, 2));
  REFUSED(helio_set_memory_growth(NULL, true));
  REFUSED(helio_set_memory_fraction(0.5));
  REFUSED(helio_set_memory_limit(NULL, 1));
  REFUSED(helio_set_soft_placement(true));
  REFUSED(helio_set_strict_placement(true));
  REFUSED(helio_set_log_placement(true));
  REFUSED(helio_plugins(&count));
  REFUSED(helio_plugin_files(&count));
  REFUSED(helio_plugin_inspect("/nowhere/x.so", &report));
  REFUSED(helio_operations(&count));
  REFUSED(helio_operation_types("add", "cpu"));
  REFUSED(helio_settings(&count));
  return right;
}

static bool operations_are_refused(void) {
  bool right = true;
  helio_tensor *x = of_the_parent;
  helio_memory info;
  float data[4];
  REFUSED(helio_memory_info("cpu:0", &info));
  REFUSED(helio_synchronize(NULL));
  REFUSED(helio_synchronize("cpu:0"));
  REFUSED(helio_constant(numbers, HELIO_SHAPE(4)));
  REFUSED(helio_fill(HELIO_SHAPE(4), 1.0));
  REFUSED(helio_tensor_read(x, data, sizeof data));
  REFUSED(helio_item(x));
  REFUSED(helio_tensor_text(x));
  REFUSED(helio_print(x));
  REFUSED(helio_to_device(x, "cpu:0"));
  REFUSED(helio_copy(x));
  REFUSED(helio_cast(x, HELIO_INT32));
  REFUSED(helio_reshape(x, HELIO_SHAPE(2, 2)));
  REFUSED(helio_expand_dims(x, 0));
  REFUSED(helio_squeeze(x));
  REFUSED(helio_slice(x, HELIO_SHAPE(0), HELIO_SHAPE(1)));
  REFUSED(helio_concat(&x, 1, 0));
  REFUSED(helio_add(x, x));
  REFUSED(helio_sub(x, x));
  REFUSED(helio_mul(x, x));
  REFUSED(helio_add_n(&x, 1));
  REFUSED(helio_relu(x));
  REFUSED(helio_sum(x));
  REFUSED(helio_matmul(x, x));
  return right;
}

static bool forked_child(void *unused) {
  (void)unused;
  bool right = settings_are_refused();
  return operations_are_refused() && right;
}

static void test_the_child_of_a_started_library(void **state) {
  (void)state;
  HELIO_DEVICE(device_name()) of_the_parent = helio_keep(helio_constant(numbers, HELIO_SHAPE(4)));
  assert_made(of_the_parent);
  int result = run_in_child(forked_child, NULL);
  assert_true(work()); /* the parent has not noticed */
  helio_release(of_the_parent);
  assert_int_equal(result, 0);
}

static bool fresh_child(void *unused) {
  (void)unused;
  CHILD_CHECK(work());
  CHILD_CHECK(helio_shutdown() == HELIO_OK);
  CHILD_CHECK(work());
  return true;
}

static void test_the_child_of_an_unstarted_library(void **state) {
  (void)state;
  assert_int_equal(run_in_child(fresh_child, NULL), 0);
  assert_true(work());
  assert_ok(helio_shutdown());
  assert_int_equal(run_in_child(fresh_child, NULL), 0); /* started and ended before */
}

/* ---- values that outlive the library ---- */

static void check_outlived(helio_tensor *x) {
  float data[4];
  assert_int_equal(helio_tensor_type(x), HELIO_FLOAT32);
  assert_int_equal(helio_tensor_elements(x), 4);
  assert_string_equal(helio_tensor_device(x), "");
  assert_int_equal(helio_tensor_read(x, data, sizeof data), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "before helio_shutdown()");
  assert_null(helio_add(x, x));
  expect_error(HELIO_WRONG_STATE, "before helio_shutdown()");
  assert_null(helio_reshape(x, HELIO_SHAPE(2, 2)));
  expect_error(HELIO_WRONG_STATE, "before helio_shutdown()");
}

static void test_kept_values_outlive_the_end(void **state) {
  helio_tensor *kept[40] = {NULL}, *view = NULL;
  (void)state;
  HELIO_POOL {
    HELIO_DEVICE(device_name()) {
      for (int i = 0; i < 40; i++) kept[i] = helio_keep(helio_constant(numbers, HELIO_SHAPE(4), .name = "kept"));
      view = helio_keep(helio_reshape(kept[7], HELIO_SHAPE(4)));
      helio_keep(kept[3]);
    }
  }
  assert_made(view);
  leaks_are_meant = true;
  assert_ok(helio_shutdown());
  assert_string_equal(helio_tensor_name(kept[0]), "kept");
  for (int i = 0; i < 20; i++) helio_release(kept[i]); /* some before the next start */
  assert_true(work());
  check_outlived(kept[30]);
  check_outlived(view);
  for (int i = 20; i < 40; i++) helio_release(kept[i]); /* some while it runs */
  helio_release(kept[3]);
  assert_ok(helio_shutdown());
  helio_release(view);
  assert_int_equal(helio_error_pending(), HELIO_OK);
}

/* A value of the innermost pool dies with the pool, also when the library has ended inside it. */
static void test_an_end_inside_a_pool(void **state) {
  (void)state;
  HELIO_POOL {
    assert_made(helio_fill(HELIO_SHAPE(16), 1.0));
    assert_ok(helio_shutdown());
    assert_made(helio_fill(HELIO_SHAPE(16), 2.0));
  }
  assert_true(work());
}

typedef struct meeting {
  pthread_barrier_t filled, ended;
  bool right;
} meeting;

/* Its values lie in the thread's own pool until it ends, which is after the library has. */
static void *outlive(void *argument) {
  meeting *m = argument;
  helio_tensor *x = helio_fill(HELIO_SHAPE(4), 3.0);
  pthread_barrier_wait(&m->filled);
  pthread_barrier_wait(&m->ended);
  float data[4];
  m->right = x && helio_tensor_read(x, data, sizeof data) == HELIO_WRONG_STATE;
  helio_error_take(NULL);
  return NULL;
}

static void test_a_thread_outlives_the_end(void **state) {
  pthread_t thread;
  meeting m = {.right = false};
  (void)state;
  pthread_barrier_init(&m.filled, NULL, 2);
  pthread_barrier_init(&m.ended, NULL, 2);
  assert_int_equal(pthread_create(&thread, NULL, outlive, &m), 0);
  pthread_barrier_wait(&m.filled);
  helio_status status = helio_shutdown();
  pthread_barrier_wait(&m.ended);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&m.filled);
  pthread_barrier_destroy(&m.ended);
  assert_ok(status);
  assert_true(m.right);
}

static void test_release_of_what_was_not_kept(void **state) {
  (void)state;
  helio_release(NULL);
  assert_null(helio_keep(NULL));
  helio_tensor *x = helio_fill(HELIO_SHAPE(4), 1.0);
  helio_release(x);
  expect_error(HELIO_WRONG_STATE, "was not kept");
  assert_int_equal(helio_tensor_elements(x), 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_version),
      TEST(test_twice),
      TEST(test_fifty_times),
      TEST(test_threads_end_with_the_library),
      TEST(test_from_several_threads_at_once),
      TEST(test_ended_by_two_threads_at_once),
      TEST(test_the_first_call_starts),
      TEST(test_an_error_stays_until_taken),
      TEST(test_an_end_while_an_error_is_pending),
      TEST(test_taking_without_looking),
      TEST(test_errors_belong_to_their_thread),
      TEST(test_names_and_texts),
      TEST(test_levels),
      TEST(test_levels_that_are_none),
      TEST(test_placement_lines),
      TEST(test_a_sink_of_ones_own),
      TEST(test_the_default_sink),
      TEST(test_the_child_of_a_started_library),
      TEST(test_the_child_of_an_unstarted_library),
      TEST(test_kept_values_outlive_the_end),
      TEST(test_an_end_inside_a_pool),
      TEST(test_a_thread_outlives_the_end),
      TEST(test_release_of_what_was_not_kept),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
