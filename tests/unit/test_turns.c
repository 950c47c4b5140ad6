/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: calls of the driver and collectives that are handed over keep out of each other's way, and nobody waits for
 * ever for what hangs. */
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/turns.h"
#include "support.h"

enum { THREADS = 6, ROUNDS = 2000 };

static atomic_int under_way[HELIO_TURN_COLLECTIVE + 1], met, together;

static void take(helio_turn turn) {
  helio_turn other = turn == HELIO_TURN_DRIVER ? HELIO_TURN_COLLECTIVE : HELIO_TURN_DRIVER;
  hi_turn_begin(turn);
  if (atomic_fetch_add(&under_way[turn], 1) > 0) atomic_fetch_add(&together, 1);
  if (atomic_load(&under_way[other])) atomic_fetch_add(&met, 1);
  sched_yield();
  if (atomic_load(&under_way[other])) atomic_fetch_add(&met, 1);
  atomic_fetch_sub(&under_way[turn], 1);
  hi_turn_end(turn);
}

/* There is time between collectives, else calls of the driver would never have their turn. */
static void *take_many(void *number) {
  helio_turn turn = *(int *)number % 2 ? HELIO_TURN_DRIVER : HELIO_TURN_COLLECTIVE;
  for (int i = 0; i < ROUNDS; i++) {
    take(turn);
    if (turn == HELIO_TURN_COLLECTIVE) usleep(200);
  }
  return NULL;
}

static void test_the_two_kinds_never_meet(void **state) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  (void)state;
  assert_ok(helio_init());
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, take_many, &numbers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&met), 0);
  assert_true(atomic_load(&together) > 0); /* else it would be but one lock */
}

static double seconds_to_begin(helio_turn turn) {
  double begin = hi_seconds();
  hi_turn_begin(turn);
  double seconds = hi_seconds() - begin;
  hi_turn_end(turn);
  return seconds;
}

/* The core takes turns around a plugin's functions, which may take some themselves. */
static void test_turns_within_turns(void **state) {
  (void)state;
  assert_ok(helio_init());
  hi_turn_begin(HELIO_TURN_DRIVER);
  hi_turn_begin(HELIO_TURN_DRIVER);
  hi_turn_begin(HELIO_TURN_COLLECTIVE); /* not even for this one does it wait for itself */
  hi_turn_end(HELIO_TURN_COLLECTIVE);
  hi_turn_end(HELIO_TURN_DRIVER);
  hi_turn_end(HELIO_TURN_DRIVER);
  hi_turn_end(HELIO_TURN_DRIVER); /* one too many */
  assert_true(seconds_to_begin(HELIO_TURN_COLLECTIVE) < 1);
  assert_true(seconds_to_begin(HELIO_TURN_DRIVER) < 1);
}

/* A collective that waits goes before calls of the driver that come behind it. */
static void *begin_collective(void *begun) {
  hi_turn_begin(HELIO_TURN_COLLECTIVE);
  atomic_store((atomic_bool *)begun, true);
  usleep(100000);
  hi_turn_end(HELIO_TURN_COLLECTIVE);
  return NULL;
}

static void test_a_collective_goes_first(void **state) {
  pthread_t thread;
  atomic_bool begun = false;
  (void)state;
  assert_ok(helio_init());
  hi_turn_begin(HELIO_TURN_DRIVER);
  assert_int_equal(pthread_create(&thread, NULL, begin_collective, &begun), 0);
  sleep(1); /* until it surely waits */
  assert_false(atomic_load(&begun));
  hi_turn_end(HELIO_TURN_DRIVER);
  seconds_to_begin(HELIO_TURN_DRIVER);
  assert_true(atomic_load(&begun));
  pthread_join(thread, NULL);
}

static void *begin_and_end(void *turn) {
  seconds_to_begin(*(helio_turn *)turn);
  return NULL;
}

static void take_elsewhere(helio_turn turn) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, begin_and_end, &turn), 0);
  pthread_join(thread, NULL);
}

typedef struct hanging {
  helio_turn turn;
  atomic_bool begun, may_end;
} hanging;

static void *hang(void *argument) {
  hanging *h = argument;
  hi_turn_begin(h->turn);
  atomic_store(&h->begun, true);
  while (!atomic_load(&h->may_end)) usleep(1000);
  hi_turn_end(h->turn);
  return NULL;
}

/* Whatever has not ended within some seconds hangs, and from then on holds nobody up: also not where others of its kind
 * come and go, nor when it ends after all. */
static void what_hangs_is_not_waited_for(helio_turn turn) {
  helio_turn other = turn == HELIO_TURN_DRIVER ? HELIO_TURN_COLLECTIVE : HELIO_TURN_DRIVER;
  hanging h = {.turn = turn};
  pthread_t thread;
  assert_ok(helio_init());
  double begin = hi_seconds();
  assert_int_equal(pthread_create(&thread, NULL, hang, &h), 0);
  while (!atomic_load(&h.begun)) usleep(1000);
  seconds_to_begin(other);
  assert_in_range((int)((hi_seconds() - begin) * 10), 45, 300);
  for (int i = 0; i < 3; i++) {
    take_elsewhere(turn);
    assert_true(seconds_to_begin(other) < 3);
  }
  begin = hi_seconds();
  hi_turn_begin(turn); /* counts also when the one that hung has ended */
  atomic_store(&h.may_end, true);
  pthread_join(thread, NULL);
  take_elsewhere(other);
  assert_in_range((int)((hi_seconds() - begin) * 10), 45, 300);
  hi_turn_end(turn);
  assert_true(seconds_to_begin(other) < 3);
}

static void test_calls_of_the_driver_that_hang(void **state) {
  (void)state;
  what_hangs_is_not_waited_for(HELIO_TURN_DRIVER);
}

static void test_collectives_that_hang(void **state) {
  (void)state;
  what_hangs_is_not_waited_for(HELIO_TURN_COLLECTIVE);
}

/* Two threads by turns: each ends its collective only when that of the other has begun. */
enum { RELAYS = 200, RELAY_US = 10000 };
static sem_t may_begin[2], may_end[2];

static void *overlap(void *number) {
  int me = *(int *)number, other = 1 - me;
  for (int i = 0; i < RELAYS; i++) {
    bool is_first = me == 0 && i == 0, is_last = me == 1 && i == RELAYS - 1;
    sem_wait(&may_begin[me]);
    hi_turn_begin(HELIO_TURN_COLLECTIVE);
    atomic_fetch_add(&under_way[HELIO_TURN_COLLECTIVE], 1);
    if (!is_first) sem_post(&may_end[other]);
    usleep(RELAY_US);
    sem_post(&may_begin[other]);
    if (!is_last) sem_wait(&may_end[me]);
    atomic_fetch_sub(&under_way[HELIO_TURN_COLLECTIVE], 1);
    hi_turn_end(HELIO_TURN_COLLECTIVE);
  }
  return NULL;
}

/* For longer than anything is waited for, but none of them hangs. */
static void test_many_that_overlap_do_not_hang(void **state) {
  pthread_t threads[2];
  int numbers[] = {0, 1};
  (void)state;
  setenv("HELIO_TIMEOUT", "8", 1); /* waits of two seconds, half of what the relay takes */
  assert_ok(helio_init());
  for (int i = 0; i < 2; i++) {
    assert_int_equal(sem_init(&may_begin[i], 0, i == 0), 0);
    assert_int_equal(sem_init(&may_end[i], 0, 0), 0);
  }
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, overlap, &numbers[i]), 0);
  while (!atomic_load(&under_way[HELIO_TURN_COLLECTIVE])) usleep(100);
  hi_turn_begin(HELIO_TURN_DRIVER);
  assert_int_equal(atomic_load(&under_way[HELIO_TURN_COLLECTIVE]), 0);
  hi_turn_end(HELIO_TURN_DRIVER);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

/* Where threads are soon taken to hang, nobody waits here for as long as that. */
static void test_short_deadlines(void **state) {
  (void)state;
  setenv("HELIO_TIMEOUT", "2", 1);
  assert_ok(helio_init());
  double begin = hi_seconds();
  hi_turn_begin(HELIO_TURN_COLLECTIVE);
  take_elsewhere(HELIO_TURN_DRIVER);
  assert_in_range((int)((hi_seconds() - begin) * 10), 4, 40);
  hi_turn_end(HELIO_TURN_COLLECTIVE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_the_two_kinds_never_meet),
      TEST(test_a_collective_goes_first),
      TEST(test_calls_of_the_driver_that_hang),
      TEST(test_collectives_that_hang),
      TEST(test_many_that_overlap_do_not_hang),
      TEST(test_short_deadlines),
      TEST(test_turns_within_turns),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
