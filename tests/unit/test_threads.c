/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads at once. Threads only note what they find; the main thread asserts. */
#include "support.h"

enum { MOST = 8, SIDE = 37 };

typedef struct worker {
  pthread_t thread;
  int number;
  const char *device; /* NULL: none asked for */
  int rounds;
  helio_tensor *given, *made;
  pthread_barrier_t *barrier;
  bool good;
  char wrong[300];
} worker;

static bool note(worker *w, const char *what) {
  snprintf(w->wrong, sizeof w->wrong, "%s: %.200s", what, helio_error_message());
  helio_error_take(NULL);
  return false;
}

/* Runs the body in `count` threads at once and asserts that each found all good. */
static void run_workers(worker *workers, int count, void *(*body)(void *)) {
  pthread_barrier_t barrier;
  assert_int_equal(pthread_barrier_init(&barrier, NULL, (unsigned)count), 0);
  for (int i = 0; i < count; i++) {
    workers[i].number = i;
    workers[i].barrier = &barrier;
    workers[i].good = false;
    assert_int_equal(pthread_create(&workers[i].thread, NULL, body, &workers[i]), 0);
  }
  for (int i = 0; i < count; i++) pthread_join(workers[i].thread, NULL);
  pthread_barrier_destroy(&barrier);
  for (int i = 0; i < count; i++) {
    if (!workers[i].good) fail_msg("thread %d: %s", i, workers[i].wrong);
  }
}

/* The two devices of the variant. */
static const char *first_of_two(void) {
  if (on_strict()) setenv("HELIO_STRICT_DEVICES", "2", 1);
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=2", 1);
  return on_gpu() ? "gpu:0" : "cpu:0";
}

static const char *second_of_two(void) {
  return on_gpu() ? "gpu:1" : "cpu:1";
}

static uint64_t live_on(const char *device) {
  helio_memory info;
  assert_ok(helio_memory_info(device, &info));
  return info.allocations;
}

/* ---- products ---- */

static void fill_numbers(float *numbers, uint64_t *seed) {
  for (int i = 0; i < SIDE * SIDE; i++) numbers[i] = (float)(next_random(seed) % 17) - 8;
}

/* Small integers: float32 has the exact product. */
static bool is_product(const float *c, const float *a, const float *b) {
  for (int i = 0; i < SIDE; i++) {
    for (int j = 0; j < SIDE; j++) {
      double sum = 0;
      for (int k = 0; k < SIDE; k++) sum += (double)a[i * SIDE + k] * (double)b[k * SIDE + j];
      if (c[i * SIDE + j] != sum) return false;
    }
  }
  return true;
}

static bool multiply_once(worker *w, uint64_t *seed) {
  float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE] = {0};
  helio_status status = HELIO_OK;
  fill_numbers(a, seed);
  fill_numbers(b, seed);
  HELIO_POOL {
    HELIO_DEVICE(w->device) {
      helio_tensor *x = helio_constant(a, HELIO_SHAPE(SIDE, SIDE)), *y = helio_constant(b, HELIO_SHAPE(SIDE, SIDE));
      status = helio_tensor_read(helio_matmul(x, y), c, sizeof c);
    }
  }
  if (status) return note(w, "a product failed");
  return is_product(c, a, b) || note(w, "a product is wrong");
}

static void *multiply(void *argument) {
  worker *w = argument;
  uint64_t seed = (uint64_t)w->number + 1;
  pthread_barrier_wait(w->barrier); /* all open the devices together */
  w->good = true;
  for (int i = 0; i < w->rounds && w->good; i++) w->good = multiply_once(w, &seed);
  return NULL;
}

static void test_two_threads_on_two_devices(void **state) {
  worker workers[2] = {{.device = first_of_two(), .rounds = 200}, {.device = second_of_two(), .rounds = 200}};
  (void)state;
  run_workers(workers, 2, multiply);
  assert_ok(helio_synchronize(NULL));
}

static void test_four_threads_on_one_device(void **state) {
  worker workers[4];
  (void)state;
  for (int i = 0; i < 4; i++) workers[i] = (worker){.device = device_name(), .rounds = 100};
  run_workers(workers, 4, multiply);
}

static void test_many_threads_on_many_devices(void **state) {
  const char *devices[] = {first_of_two(), second_of_two(), "cpu:0", "cpu:1"};
  worker workers[MOST];
  (void)state;
  for (int i = 0; i < MOST; i++) workers[i] = (worker){.device = devices[i % 4], .rounds = 50};
  run_workers(workers, MOST, multiply);
}

static void test_logical_devices_of_one_physical(void **state) {
  worker workers[2] = {{.device = on_gpu() ? "gpu:0" : "cpu:0", .rounds = 100},
                       {.device = on_gpu() ? "gpu:1" : "cpu:1", .rounds = 100}};
  (void)state;
  setenv("HELIO_LOGICAL_DEVICES", on_gpu() ? "gpu:0=2" : "cpu:0=2", 1);
  run_workers(workers, 2, multiply);
}

/* Plans are dropped for new ones while other threads use theirs. */
static void *use_many_shapes(void *argument) {
  worker *w = argument;
  w->good = true;
  for (int64_t i = 0; i < w->rounds && w->good; i++) {
    HELIO_POOL {
      int64_t rows = w->number % 2 ? i % 60 + 1 : 7 + w->number, columns = w->number % 2 ? i / 60 + 1 : 11;
      helio_tensor *x = helio_relu(helio_fill(HELIO_SHAPE(rows, columns), 2));
      if (i % 11 == 0 && helio_item(helio_sum(x)) != 2.0 * (double)(rows * columns))
        w->good = note(w, "a sum is wrong");
    }
  }
  return NULL;
}

static void test_more_shapes_than_plans(void **state) {
  worker workers[4];
  (void)state;
  for (int i = 0; i < 4; i++) workers[i] = (worker){.rounds = 3000};
  run_workers(workers, 4, use_many_shapes);
  assert_ok(helio_synchronize(NULL));
  assert_not_logged("ERROR:helio:");
}

/* ---- copies in both directions at once ---- */

static void *copy_back_and_forth(void *argument) {
  worker *w = argument;
  const char *here = w->number % 2 ? second_of_two() : w->device, *there = w->number % 2 ? w->device : second_of_two();
  pthread_barrier_wait(w->barrier);
  w->good = true;
  for (int i = 0; i < w->rounds && w->good; i++) {
    HELIO_POOL {
      helio_tensor *x = NULL;
      HELIO_DEVICE(here) x = helio_fill(HELIO_SHAPE(1000), w->number + 1);
      for (int hop = 0; hop < 4; hop++) x = helio_to_device(x, hop % 2 ? here : there);
      if (helio_item(helio_sum(x)) != 1000.0 * (w->number + 1)) w->good = note(w, "a copy is wrong");
    }
  }
  return NULL;
}

static void test_copies_cross(void **state) {
  worker workers[4];
  const char *first = first_of_two();
  (void)state;
  for (int i = 0; i < 4; i++) workers[i] = (worker){.device = first, .rounds = 50};
  run_workers(workers, 4, copy_back_and_forth);
}

/* ---- start and end ---- */

static void *start(void *argument) {
  worker *w = argument;
  int count = 0;
  pthread_barrier_wait(w->barrier);
  bool started = w->number % 2 ? helio_init() == HELIO_OK : helio_logical_devices(NULL, &count) && count > 0;
  w->good = started || note(w, "start");
  return NULL;
}

static void test_start_at_once(void **state) {
  (void)state;
  for (int round = 0; round < 5; round++) {
    worker workers[MOST] = {{.number = 0}};
    run_workers(workers, MOST, start);
    assert_ok(helio_shutdown());
  }
}

static void *stop(void *argument) {
  worker *w = argument;
  pthread_barrier_wait(w->barrier);
  w->good = helio_shutdown() == HELIO_OK || note(w, "shutdown");
  return NULL;
}

static void test_end_at_once(void **state) {
  worker workers[4] = {{.number = 0}};
  (void)state;
  HELIO_POOL assert_made(helio_fill(HELIO_SHAPE(3), 1));
  run_workers(workers, 4, stop);
  HELIO_POOL assert_true(helio_item(helio_sum(helio_fill(HELIO_SHAPE(3), 1))) == 3);
}

/* ---- what belongs to a thread ---- */

static void *enter_pools(void *argument) {
  worker *w = argument;
  w->good = true;
  for (int i = 0; i < 200 && w->good; i++) {
    HELIO_POOL {
      helio_tensor *x = helio_fill(HELIO_SHAPE(100), w->number);
      HELIO_POOL helio_add(x, x);
      if (i % 20 == 0) pthread_barrier_wait(w->barrier); /* others leave theirs now */
      if (helio_item(helio_sum(x)) != 100.0 * w->number) w->good = note(w, "another thread's pool took a value");
    }
  }
  return NULL;
}

static void test_pools_are_per_thread(void **state) {
  worker workers[4] = {{.number = 0}};
  (void)state;
  HELIO_POOL {
    helio_tensor *mine = helio_fill(HELIO_SHAPE(100), 7);
    uint64_t before = live_on(device_name());
    run_workers(workers, 4, enter_pools);
    assert_true(helio_item(helio_sum(mine)) == 700);
    assert_int_equal(live_on(device_name()), before + 1); /* the sum */
  }
}

static void *leave_values_behind(void *argument) {
  worker *w = argument;
  helio_tensor *x = helio_fill(HELIO_SHAPE(1000), 1);
  for (int i = 0; i < 100; i++) x = helio_add(x, x);
  w->made = helio_keep(helio_fill(HELIO_SHAPE(10), 3));
  w->good = w->made && x;
  return NULL;
}

static void test_values_end_with_their_thread(void **state) {
  worker workers[4] = {{.number = 0}};
  (void)state;
  HELIO_POOL helio_fill(HELIO_SHAPE(1), 1);
  uint64_t before = live_on(device_name());
  run_workers(workers, 4, leave_values_behind);
  assert_int_equal(live_on(device_name()), before + 4); /* what was kept, one by each */
  for (int i = 0; i < 4; i++) {
    HELIO_POOL assert_true(helio_item(helio_sum(workers[i].made)) == 30);
    helio_release(workers[i].made);
  }
  assert_int_equal(live_on(device_name()), before);
}

static void *leave_after_the_end(void *argument) {
  worker *w = argument;
  w->good = helio_fill(HELIO_SHAPE(10), 1) != NULL;
  pthread_barrier_wait(w->barrier); /* the library is shut down now */
  pthread_barrier_wait(w->barrier);
  return NULL;
}

/* A thread may outlive the library with values in its pool. */
static void test_threads_that_outlive_the_library(void **state) {
  pthread_barrier_t barrier;
  worker w = {.barrier = &barrier};
  (void)state;
  pthread_barrier_init(&barrier, NULL, 2);
  assert_int_equal(pthread_create(&w.thread, NULL, leave_after_the_end, &w), 0);
  pthread_barrier_wait(&barrier);
  helio_status status = helio_shutdown();
  pthread_barrier_wait(&barrier);
  pthread_join(w.thread, NULL);
  pthread_barrier_destroy(&barrier);
  assert_ok(status);
  assert_true(w.good);
}

static void *end_with_values(void *argument) {
  worker *w = argument;
  w->good = helio_fill(HELIO_SHAPE(1000), 1) != NULL;
  for (int i = 0; i < 50; i++) helio_fill(HELIO_SHAPE(1000), 1);
  pthread_barrier_wait(w->barrier);
  return NULL; /* its values go while the library does */
}

/* A thread that ends is inside no call, so it may do so while another shuts the library down. */
static void test_threads_that_end_with_the_library(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    pthread_barrier_t barrier;
    worker w = {.barrier = &barrier};
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&w.thread, NULL, end_with_values, &w), 0);
    pthread_barrier_wait(&barrier);
    helio_status status = helio_shutdown();
    pthread_join(w.thread, NULL);
    pthread_barrier_destroy(&barrier);
    assert_ok(status);
    assert_true(w.good);
  }
}

static pthread_key_t late_key;

static void make_values_late(void *argument) {
  worker *w = argument;
  w->good = helio_fill(HELIO_SHAPE(1000), 1) != NULL;
}

static void *end_late(void *argument) {
  worker *w = argument;
  if (!helio_fill(HELIO_SHAPE(10), 1)) note(w, "a value failed");
  pthread_setspecific(late_key, w);
  return NULL;
}

/* A destructor of the program's that runs after the pool's and makes values: they go too. */
static void test_values_made_at_a_threads_end(void **state) {
  worker workers[4] = {{.number = 0}};
  (void)state;
  HELIO_POOL helio_fill(HELIO_SHAPE(1), 1); /* the library's key is older */
  assert_int_equal(pthread_key_create(&late_key, make_values_late), 0);
  uint64_t before = live_on(device_name());
  run_workers(workers, 4, end_late);
  pthread_key_delete(late_key);
  assert_int_equal(live_on(device_name()), before);
}

static void *fail_alone(void *argument) {
  worker *w = argument;
  w->good = helio_error_pending() == HELIO_OK;
  w->made = helio_add(helio_fill(HELIO_SHAPE(2), 1), helio_fill(HELIO_SHAPE(3), 1));
  w->good = w->good && !w->made && helio_error_pending() == HELIO_INVALID_ARGUMENT;
  return NULL;
}

static void *find_device(void *argument) {
  worker *w = argument;
  const char *expected = on_gpu() ? "device:GPU:0" : "device:CPU:0";
  helio_tensor *x = helio_fill(HELIO_SHAPE(2), 1);
  w->good = strstr(helio_tensor_device(x), expected) || note(w, "the scope of another thread is in force");
  return NULL;
}

static void test_errors_and_scopes_are_per_thread(void **state) {
  worker workers[2] = {{.number = 0}};
  (void)state;
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=2", 1);
  run_workers(workers, 2, fail_alone);
  assert_ok(helio_error_pending());
  HELIO_DEVICE("cpu:1") run_workers(workers, 2, find_device);
  assert_null(helio_relu(NULL));
  run_workers(workers, 2, find_device); /* this thread's error is not theirs */
  expect_error(HELIO_INVALID_ARGUMENT, "Relu");
}

static void *use_given(void *argument) {
  worker *w = argument;
  w->good = true;
  for (int i = 0; i < 100 && w->good; i++) {
    HELIO_POOL {
      helio_tensor *view = helio_reshape(helio_keep(w->given), HELIO_SHAPE(4, 25));
      if (helio_item(helio_sum(helio_add(view, view))) != 400) w->good = note(w, "a shared value is wrong");
      helio_release(w->given);
    }
  }
  return NULL;
}

static void test_one_value_in_many_threads(void **state) {
  worker workers[4];
  (void)state;
  helio_tensor *shared = helio_keep(helio_fill(HELIO_SHAPE(100), 2));
  for (int i = 0; i < 4; i++) workers[i] = (worker){.given = shared};
  run_workers(workers, 4, use_given);
  helio_release(shared);
  helio_release(NULL);
  assert_ok(helio_error_pending());
}

/* ---- threads of the CPU's logical devices ---- */

/* Threads that the process has more than before when `count` logical devices share four. */
static int threads_with(int count) {
  char split[32];
  assert_ok(helio_shutdown());
  snprintf(split, sizeof split, "cpu:0=%d", count);
  setenv("HELIO_LOGICAL_DEVICES", split, 1);
  setenv("HELIO_NUM_THREADS", "4", 1);
  int before = thread_count(1);
  for (int i = 0; i < count; i++) {
    char name[16];
    snprintf(name, sizeof name, "cpu:%d", i);
    HELIO_POOL {
      HELIO_DEVICE(name) {
        helio_tensor *x = helio_fill(HELIO_SHAPE(512, 512), 1);
        assert_true(helio_item(helio_sum(helio_matmul(x, x))) == 512.0 * 512 * 512);
      }
    }
  }
  return thread_count(before + 4 - count) - before;
}

/* The thread that calls is one of a team, so a team of n has n − 1 of its own. */
static void test_devices_share_the_threads(void **state) {
  (void)state;
  assert_int_equal(threads_with(1), 3);
  assert_int_equal(threads_with(2), 2);
  assert_int_equal(threads_with(4), 0);
}

/* The strict device writes an error line when it is closed with something left over. */
static int end_cleanly(void **state) {
  helio_error_take(NULL);
  helio_status status = helio_shutdown();
  int errors = lines_with("ERROR:helio:", "");
  if (errors) print_seen();
  return tear_down(state) || errors || status ? -1 : 0;
}

#define CLEAN_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, end_cleanly)

int main(void) {
  const struct CMUnitTest tests[] = {
      CLEAN_TEST(test_two_threads_on_two_devices),
      CLEAN_TEST(test_four_threads_on_one_device),
      CLEAN_TEST(test_many_threads_on_many_devices),
      CLEAN_TEST(test_logical_devices_of_one_physical),
      CLEAN_TEST(test_more_shapes_than_plans),
      CLEAN_TEST(test_copies_cross),
      CLEAN_TEST(test_start_at_once),
      CLEAN_TEST(test_end_at_once),
      CLEAN_TEST(test_pools_are_per_thread),
      CLEAN_TEST(test_values_end_with_their_thread),
      CLEAN_TEST(test_threads_that_outlive_the_library),
      CLEAN_TEST(test_threads_that_end_with_the_library),
      CLEAN_TEST(test_values_made_at_a_threads_end),
      CLEAN_TEST(test_errors_and_scopes_are_per_thread),
      CLEAN_TEST(test_one_value_in_many_threads),
      CLEAN_TEST(test_devices_share_the_threads),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
