/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of trainings: what can fail when one is written, and that nothing is left of it then. What they show is
 * looked at by scripts/plot.sh. */
#include "failing_calls.h"
#include "plot.h"
#include "train/history.h"
#include "train/logs.h"
#include "whole_file.h"

static char folder[64], path[100];

static int make_place(void **state) {
  make_folder(folder);
  snprintf(path, sizeof path, "%s/curves.svg", folder);
  return set_up(state);
}

static int remove_place(void **state) {
  fail_no_more_calls();
  failing_calls.most_written = 0;
  remove_folder(folder);
  return tear_down(state);
}

#define PLACE_TEST(function) cmocka_unit_test_setup_teardown(function, make_place, remove_place)

static int files_here(void) {
  return entries_of(folder) - 2;
}

/* The text of a file, until the next call. */
static const char *contents_of(const char *file) {
  static char text[1 << 16];
  FILE *in = fopen(file, "r");
  if (!in) fail_msg("%s: %s", file, strerror(errno));
  text[fread(text, 1, sizeof text - 1, in)] = 0;
  fclose(in);
  return text;
}

static void assert_picture(const char *file) {
  const char *text = contents_of(file), *end = "</svg>\n";
  assert_int_equal(strncmp(text, "<svg ", 5), 0);
  assert_true(strlen(text) > strlen(end));
  assert_string_equal(text + strlen(text) - strlen(end), end);
}

/* Three epochs of a training that never was. */
static helio_history *history_of(const char *const *names, int count) {
  helio_history *history = hi_history_new();
  assert_made(history);
  for (int epoch = 0; epoch < 3; epoch++) {
    helio_logs *logs = hi_logs_new(NULL);
    for (int i = 0; i < count; i++) assert_ok(hi_logs_add_value(logs, "", names[i], 1.0 / (epoch + i + 1)));
    assert_ok(hi_history_add(history, epoch, logs));
  }
  return history;
}

static helio_history *usual_history(void) {
  static const char *const names[] = {"loss", "accuracy", "val_loss", "val_accuracy"};
  return history_of(names, (int)COUNT_OF(names));
}

static void expect_problem(const char *problem, const char *part) {
  if (!problem) fail_msg("it succeeded, and should have said \"%s\"", part);
  if (!strstr(problem, part)) fail_msg("\"%s\" is not in \"%s\"", part, problem);
}

/* ---- failures ---- */

/* Each call in turn, until there are no more. */
static void fail_each(call_kind kind, int error, const char *old) {
  const helio_history *history = usual_history();
  for (long which = 1;; which++) {
    if (old) write_file(folder, "curves.svg", old);
    fail_call(kind, which, error, false);
    const char *problem = plot_write(path, "A training", history);
    const char *failed = fail_no_more_calls();
    if (!failed) {
      assert_null(problem);
      assert_true(which > 3); /* there were some */
      break;
    }
    /* Without a lock it can be written all the same; and when the folder is to be brought to disk, it is in its place.
     */
    bool there = problem ? strstr(problem, "the file was replaced, but") != NULL
                         : strcmp(failed, "flock") == 0 || strcmp(failed, "fcntl") == 0 || strcmp(failed, "close") == 0;
    if (!problem && !there) fail_msg("%s failed, and the picture is there", failed);
    if (problem && error == EIO) assert_non_null(strstr(problem, path));
    assert_int_equal(files_here(), old != NULL || there);
    if (there) assert_picture(path);
    if (there && !old) assert_int_equal(unlink(path), 0);
    if (old && !there) assert_string_equal(contents_of(path), old);
  }
  assert_picture(path);
  assert_int_equal(files_here(), 1);
}

static void test_calls_that_fail_leave_nothing(void **state) {
  (void)state;
  HELIO_POOL {
    fail_each(SYSTEM_CALLS, EIO, NULL);
  }
}

static void test_calls_that_fail_leave_the_old_file(void **state) {
  (void)state;
  HELIO_POOL {
    fail_each(SYSTEM_CALLS, EIO, "an old picture");
  }
}

static void test_no_memory_leaves_nothing(void **state) {
  (void)state;
  HELIO_POOL {
    fail_each(ALLOCATIONS, ENOMEM, NULL);
  }
}

static void test_no_memory_leaves_the_old_file(void **state) {
  (void)state;
  HELIO_POOL {
    fail_each(ALLOCATIONS, ENOMEM, "an old picture");
  }
}

static bool write_beyond_limit(void *problem_expected) {
  const helio_history *history = usual_history();
  signal(SIGXFSZ, SIG_IGN);
  CHILD_CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, 1000}) == 0);
  const char *problem = plot_write(path, "A training", history);
  CHILD_CHECK(problem && strstr(problem, problem_expected));
  return true;
}

static void test_a_file_that_cannot_grow_is_removed(void **state) {
  (void)state;
  assert_int_equal(run_in_child(write_beyond_limit, "writing failed: File too large"), 0);
  assert_int_equal(files_here(), 0);
}

static void test_places_where_nothing_can_be_written(void **state) {
  (void)state;
  char inner[200];
  HELIO_POOL {
    const helio_history *history = usual_history();
    expect_problem(plot_write("/dev/full", "A training", history), "/dev/full is not a regular file");
    expect_problem(plot_write(folder, "A training", history), "not a regular file");
    snprintf(inner, sizeof inner, "%s/absent/curves.svg", folder);
    expect_problem(plot_write(inner, "A training", history), "No such file or directory");
    expect_problem(plot_write("", "A training", history), "is not the name of a file");
    write_file(folder, "file", "");
    snprintf(inner, sizeof inner, "%s/file/curves.svg", folder);
    expect_problem(plot_write(inner, "A training", history), "Not a directory");
    expect_problem(whole_file_check(inner), "Not a directory");
    assert_int_equal(files_here(), 1);
  }
}

static void test_checking_leaves_all_as_it_was(void **state) {
  (void)state;
  assert_null(whole_file_check(path));
  assert_int_equal(files_here(), 0);
  write_file(folder, "curves.svg", "an old picture");
  assert_null(whole_file_check(path));
  assert_string_equal(contents_of(path), "an old picture");
  assert_int_equal(files_here(), 1);
}

/* ---- success ---- */

static void test_pieces_make_a_whole(void **state) {
  (void)state;
  char whole[1 << 16];
  HELIO_POOL {
    const helio_history *history = usual_history();
    assert_null(plot_write(path, "A training", history));
    snprintf(whole, sizeof whole, "%s", contents_of(path));
    failing_calls.most_written = 7;
    assert_null(plot_write(path, "A training", history));
    assert_string_equal(contents_of(path), whole);
  }
}

static void test_who_could_read_the_old_file_can_read_the_new(void **state) {
  (void)state;
  struct stat about;
  char link_path[100];
  HELIO_POOL {
    write_file(folder, "curves.svg", "an old picture");
    assert_int_equal(chmod(path, 0640), 0);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    assert_int_equal(symlink("curves.svg", link_path), 0);
    assert_null(plot_write(link_path, "A training", usual_history()));
    assert_picture(path);
    assert_int_equal(lstat(link_path, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    assert_int_equal(files_here(), 2);
  }
}

static void test_nothing_to_draw(void **state) {
  (void)state;
  static const char *const rate[] = {"learning_rate"};
  HELIO_POOL {
    expect_problem(plot_write(path, "A training", NULL), "no epoch was trained");
    expect_problem(plot_write(path, "A training", hi_history_new()), "no epoch was trained");
    expect_problem(plot_write(path, "A training", history_of(rate, 0)), "nothing was measured");
    assert_int_equal(files_here(), 0);
    assert_null(plot_write(path, NULL, history_of(rate, 1))); /* it changes */
    assert_picture(path);
  }
}

static void test_a_real_training(void **state) {
  (void)state;
  HELIO_POOL {
    helio_tensor *ones = helio_fill(HELIO_SHAPE(8, 1), 1);
    helio_model *model = helio_sequential({helio_dense(1)}, .input_shape = HELIO_SHAPE(1));
    assert_ok(helio_compile(model, .optimizer = helio_sgd(.learning_rate = 0.2), .loss_name = "mse",
                            .metric_names = {"mae"}));
    helio_history *history =
        helio_fit(model, .x_tensor = ones, .y_tensor = ones, .epochs = 3, .batch_size = 4, .verbose = HELIO_QUIET);
    assert_made(history);
    assert_null(plot_write(path, "linear", history));
    assert_picture(path);
    assert_non_null(strstr(contents_of(path), ">loss<"));
    assert_non_null(strstr(contents_of(path), ">mae<"));
    assert_null(strstr(contents_of(path), ">validation<"));
    helio_release(model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLACE_TEST(test_calls_that_fail_leave_nothing),
      PLACE_TEST(test_calls_that_fail_leave_the_old_file),
      PLACE_TEST(test_no_memory_leaves_nothing),
      PLACE_TEST(test_no_memory_leaves_the_old_file),
      PLACE_TEST(test_a_file_that_cannot_grow_is_removed),
      PLACE_TEST(test_places_where_nothing_can_be_written),
      PLACE_TEST(test_checking_leaves_all_as_it_was),
      PLACE_TEST(test_pieces_make_a_whole),
      PLACE_TEST(test_who_could_read_the_old_file_can_read_the_new),
      PLACE_TEST(test_nothing_to_draw),
      PLACE_TEST(test_a_real_training),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
