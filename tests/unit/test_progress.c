/* SPDX-License-Identifier: Apache-2.0 */
/* When a thread that is waited for counts as one that hangs. Time is not waited for: when it was last alive, and looked
 * at, is set back. */
#include "runtime/clock.h"
#include "runtime/progress.h"
#include "support.h"

enum { TIMEOUT_MS = 100000 };

static hi_progress progress;

static int begin(void **state) {
  (void)state;
  progress = (hi_progress){.activity = HI_WORKS};
  hi_progress_watch(&progress);
  return 0;
}

/* So many seconds without a sign of life, looked at all the time. */
static void pass(double seconds) {
  progress.life -= seconds;
}

static bool overdue(void) {
  return hi_progress_overdue(&progress, TIMEOUT_MS);
}

static void test_silence(void **state) {
  (void)state;
  pass(99);
  assert_false(overdue());
  pass(2);
  assert_true(overdue());
  assert_false(hi_progress_overdue(&progress, 0)); /* no deadline */
}

static void test_a_call_is_a_sign_of_life(void **state) {
  (void)state;
  pass(101);
  progress.sequence++;
  assert_false(overdue());
  assert_true(hi_progress_silence(&progress) < 50);
}

/* In a collective it has that one's deadline, and behind it another. When that one has passed it comes back, which must
 * not be taken for a silence as long as the wait was: it would be lost in place of the one that it waited for. */
static void test_who_comes_back_from_a_wait_is_alive(void **state) {
  (void)state;
  progress.activity = HI_WAITS;
  assert_false(overdue());
  pass(150);
  assert_false(overdue());
  progress.activity = HI_WORKS;
  assert_false(overdue());
  pass(101);
  assert_true(overdue());
}

static void test_a_wait_ends_too(void **state) {
  (void)state;
  progress.activity = HI_WAITS;
  assert_false(overdue());
  pass(201);
  assert_true(overdue());
}

static void test_inside_nobody_is_overdue(void **state) {
  (void)state;
  progress.activity = HI_INSIDE;
  pass(500);
  assert_false(overdue());
  assert_false(hi_progress_abandon(&progress));
}

/* Who has not looked for long did not run: nobody else did. */
static void test_a_process_that_was_stopped(void **state) {
  (void)state;
  pass(500);
  progress.looked -= 500;
  assert_false(overdue());
  pass(101);
  assert_true(overdue());
  assert_true(hi_progress_abandon(&progress));
  assert_true(hi_progress_abandoned(&progress));
  assert_int_equal(progress.left, HI_WORKS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_silence, begin),
      cmocka_unit_test_setup(test_a_call_is_a_sign_of_life, begin),
      cmocka_unit_test_setup(test_who_comes_back_from_a_wait_is_alive, begin),
      cmocka_unit_test_setup(test_a_wait_ends_too, begin),
      cmocka_unit_test_setup(test_inside_nobody_is_overdue, begin),
      cmocka_unit_test_setup(test_a_process_that_was_stopped, begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
