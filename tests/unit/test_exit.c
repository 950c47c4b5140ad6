/* SPDX-License-Identifier: Apache-2.0 */
/* A program may call exit() while its other threads are at work. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { ROUNDS = 12, THREADS = 3 };

static void *multiply_for_ever(void *argument) {
  (void)argument;
  for (;;) {
    HELIO_POOL {
      helio_tensor *x = helio_fill(HELIO_SHAPE(200, 200), 1);
      helio_matmul(x, x);
      helio_relu(x);
    }
  }
  return NULL;
}

static void run_and_exit(int round) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, multiply_for_ever, NULL);
  usleep(20000 + (useconds_t)round * 3000);
  exit(0);
}

/* In children, so that the exit is a real one; this process never starts the library. */
static void test_exit_while_multiplying(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    int how = 0;
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) run_and_exit(round);
    assert_int_equal(waitpid(child, &how, 0), child);
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) fail_msg("round %d ended with wait status %#x", round, how);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_exit_while_multiplying)};
  return cmocka_run_group_tests_name("exit", tests, NULL, NULL);
}
