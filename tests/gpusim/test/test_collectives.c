/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that are used rightly: their results against plain C, in one thread with groups and in a thread for each
 * rank; faults, aborts, and what the vendors answer with a status.
 *
 * Settings are read once by a process, so each case runs in one of its own: this program, called with the name of the
 * case, which prints nothing and ends with 0 if all is well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collective_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEEDS = 5 };

/* For cases that must pass with any seed. */
static int seeds(void) {
  const char *value = getenv("GPUSIM_TEST_SEEDS");
  return value ? atoi(value) : SEEDS;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Running a case
 */

static char folder[4096]; /* of this program */

static void find_folder(void) {
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (length < 0) exit(2);
  folder[length] = 0;
  *strrchr(folder, '/') = 0;
}

/* What the case wrote; it must have ended well. */
static void run_case(const char *name, const char *vendor, const char *settings, char *output, size_t size) {
  char command[3 * sizeof folder];
  snprintf(command, sizeof command, "GPUSIM_CUDA=4 GPUSIM_HIP=4 %s '%s/run' '%s/test_gpusim_collectives' %s %s",
           settings, folder, folder, name, vendor);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  size_t length = fread(output, 1, size - 1, pipe);
  output[length] = 0;
  int status = pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail_msg("%s: status %d: %s", command, WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), output);
}

static void run_case_under(const char *name, const char *settings) {
  char output[4096];
  run_case(name, "cuda", settings, output, sizeof output);
  run_case(name, "hip", settings, output, sizeof output);
}

static void run_case_with_seeds(const char *name) {
  for (int seed = 1; seed <= seeds(); seed++) {
    char settings[64], output[4096];
    snprintf(settings, sizeof settings, "GPUSIM_SEED=%d", seed);
    run_case(name, seed % 2 ? "cuda" : "hip", settings, output, sizeof output);
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The tests
 */

static void test_numbers_with_groups(void **state) {
  (void)state;
  run_case_under("numbers", "GPUSIM_SEED=1");
}

static void test_numbers_with_threads(void **state) {
  (void)state;
  run_case_with_seeds("threads");
}

static void test_rounding(void **state) {
  (void)state;
  run_case_under("rounding", "");
}

static void test_send_and_receive(void **state) {
  (void)state;
  run_case_with_seeds("transfers");
}

static void test_streams_of_their_own(void **state) {
  (void)state;
  run_case_with_seeds("streams");
}

/* The same bits with the same seed; with others the last ones differ somewhere, as rings of other orders would. */
static void test_seeds(void **state) {
  (void)state;
  char results[SEEDS][4096], again[4096];
  bool differ = false;
  for (int seed = 0; seed < SEEDS; seed++) {
    char settings[64];
    snprintf(settings, sizeof settings, "GPUSIM_SEED=%d", seed + 1);
    run_case("sum", "cuda", settings, results[seed], sizeof results[seed]);
    run_case("sum", "cuda", settings, again, sizeof again);
    assert_true(strlen(again) > 0);
    assert_string_equal(again, results[seed]);
    differ |= strcmp(results[0], results[seed]) != 0;
  }
  assert_true(differ);
}

static void test_statuses(void **state) {
  (void)state;
  run_case_under("statuses", "");
}

static void test_abort_while_waiting(void **state) {
  (void)state;
  run_case_with_seeds("abort");
}

static void test_error_that_shows_late(void **state) {
  (void)state;
  for (int seed = 1; seed <= seeds(); seed++) {
    char settings[96], output[4096];
    snprintf(settings, sizeof settings, "GPUSIM_FAULT=collective:2@1 GPUSIM_SEED=%d", seed);
    run_case("late", "cuda", settings, output, sizeof output);
  }
}

static void test_threads_one_after_the_other(void **state) {
  (void)state;
  run_case_under("successors", "");
}

static void test_lost_device(void **state) {
  (void)state;
  run_case_under("lost", "GPUSIM_FAULT=lost:collective:1@1");
}

static void test_communicators_of_some_ranks(void **state) {
  (void)state;
  run_case_under("incomplete", "GPUSIM_FAULT=communicator:1@1");
}

int main(int count, char **arguments) {
  if (count == 3) return collective_case(arguments[1], strcmp(arguments[2], "hip") == 0);
  find_folder();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers_with_groups),
      cmocka_unit_test(test_numbers_with_threads),
      cmocka_unit_test(test_rounding),
      cmocka_unit_test(test_send_and_receive),
      cmocka_unit_test(test_seeds),
      cmocka_unit_test(test_statuses),
      cmocka_unit_test(test_abort_while_waiting),
      cmocka_unit_test(test_error_that_shows_late),
      cmocka_unit_test(test_lost_device),
      cmocka_unit_test(test_communicators_of_some_ranks),
      cmocka_unit_test(test_streams_of_their_own),
      cmocka_unit_test(test_threads_one_after_the_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
