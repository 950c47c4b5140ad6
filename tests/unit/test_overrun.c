/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes that are planted must be noticed: a write one element past a tensor's end in HELIO_ARENA_DEBUG, bad data
 * that a kernel reports in the status word, and an error that a device tells late. */
#include "support.h"
#include "tensor/tensor.h"

/* ---- a write past the end in the CPU's memory ---- */

enum { NOTICED = 42, CLEAN = 43, ELEMENTS = 5 };

static float *address_of(const helio_tensor *tensor) {
  const hi_device *device = tensor->device;
  char *memory = device->member.memory->native_buffer(tensor->block->place.buffer);
  return (float *)(void *)(memory + tensor->block->place.offset + tensor->offset);
}

static helio_status end_of_cpu(void) {
  return helio_synchronize("cpu:0");
}

/* What the library says once the tensor is gone; the sanitizer ends the child at the write itself. */
static int write_in_child(int index, helio_status (*end)(void)) {
  HELIO_POOL {
    HELIO_DEVICE("cpu:0") {
      helio_tensor *x = helio_fill(HELIO_SHAPE(ELEMENTS), 1);
      if (!x) return 1;
      *(volatile float *)(address_of(x) + index) = 2;
    }
  }
  helio_status status = end();
  fprintf(stderr, "%s\n", helio_error_message());
  return status == HELIO_DEVICE_FAILURE ? NOTICED : status == HELIO_OK ? CLEAN : 1;
}

/* The child's exit status; `text` is what it wrote to standard error. The library is not running in the parent. */
static int run_child(int index, helio_status (*end)(void), char *text, size_t size) {
  int pipes[2], result = 0;
  size_t length = 0;
  ssize_t some;
  assert_int_equal(pipe(pipes), 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    helio_set_log_sink(NULL, NULL);
    dup2(pipes[1], STDERR_FILENO);
    close(pipes[0]);
    close(pipes[1]);
    _exit(write_in_child(index, end));
  }
  close(pipes[1]);
  while (length < size - 1 && (some = read(pipes[0], text + length, size - 1 - length)) > 0) length += (size_t)some;
  text[length] = 0;
  while (read(pipes[0], (char[256]){0}, 256) > 0) {
  }
  close(pipes[0]);
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &result, 0), child);
  return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static void expect_noticed(helio_status (*end)(void)) {
  char text[4000];
  setenv("HELIO_ARENA_DEBUG", "1", 1);
  int status = run_child(ELEMENTS, end, text, sizeof text);
  bool by_sanitizer = strstr(text, "AddressSanitizer") != NULL;
  bool by_library = status == NOTICED && strstr(text, "past its end") && strstr(text, "device:CPU:0");
  if (!by_sanitizer && !by_library) fail_msg("status %d: %s", status, text);
}

static void test_write_past_the_end(void **state) {
  (void)state;
  expect_noticed(end_of_cpu);
}

/* A program that never waits hears of it at the latest when it ends. */
static void test_write_past_the_end_at_shutdown(void **state) {
  (void)state;
  expect_noticed(helio_shutdown);
}

static void test_write_at_the_end(void **state) {
  char text[4000];
  (void)state;
  setenv("HELIO_ARENA_DEBUG", "1", 1);
  int status = run_child(ELEMENTS - 1, end_of_cpu, text, sizeof text);
  if (status != CLEAN) fail_msg("status %d: %s", status, text);
}

/* ---- the arena's debug mode itself ---- */

static void test_debug_mode_computes_the_same(void **state) {
  float seen_values[4];
  (void)state;
  setenv("HELIO_ARENA_DEBUG", "1", 1);
  for (int i = 0; i < 50; i++) {
    HELIO_POOL {
      helio_tensor *x = helio_constant(((float[]){1, -2, 3, -4}), HELIO_SHAPE(2, 2));
      helio_tensor *y = helio_matmul(x, x, .bias = helio_fill(HELIO_SHAPE(2), 1), .activation = HELIO_RELU);
      helio_tensor *view = helio_slice(y, HELIO_SHAPE(1, 0), HELIO_SHAPE(1, 2));
      assert_ok(helio_tensor_read(y, seen_values, sizeof seen_values));
      assert_memory_equal(seen_values, ((float[]){0, 7, 0, 11}), sizeof seen_values);
      assert_true(helio_item(helio_sum(view)) == 11);
    }
  }
  assert_ok(helio_synchronize(NULL));
  helio_memory info;
  assert_ok(helio_memory_info(device_name(), &info));
  assert_int_equal(info.allocations, 1); /* the status word */
  assert_int_equal(info.reserved, info.in_use);
}

static void test_debug_mode_within_a_limit(void **state) {
  (void)state;
  setenv("HELIO_ARENA_DEBUG", "1", 1);
  setenv("HELIO_MEMORY_LIMIT", "1M", 1);
  for (int i = 0; i < 20; i++) { /* what was set aside is freed when it is needed */
    HELIO_POOL assert_true(helio_item(helio_sum(helio_fill(HELIO_SHAPE(100000), 1))) == 100000);
  }
}

/* ---- what only the strict device can be told to do ---- */

static const float numbers[] = {1, -2, 3, -4, 5};

/* All is as it should be again. */
static void expect_clean_state(void) {
  HELIO_POOL {
    helio_tensor *x = helio_constant(numbers, HELIO_SHAPE(5));
    assert_true(helio_item(helio_sum(helio_add(x, x))) == 6);
    assert_ok(helio_synchronize(NULL));
  }
}

static void check_planted_overrun(void) {
  float back[5];
  setenv("HELIO_STRICT_PLANT", "overrun", 1);
  HELIO_POOL {
    helio_tensor *y = helio_relu(helio_constant(numbers, HELIO_SHAPE(5)));
    assert_made(y);
    assert_int_equal(helio_tensor_read(y, back, sizeof back), HELIO_DEVICE_FAILURE);
    expect_error(HELIO_DEVICE_FAILURE, "device:GPU:0");
  }
}

static void test_planted_overrun(void **state) {
  (void)state;
  setenv("HELIO_ARENA_DEBUG", "1", 1);
  check_planted_overrun();
  helio_synchronize(NULL); /* may tell of the damaged guard, now that the buffer is freed */
  helio_error_take(NULL);
  expect_clean_state();
}

static void test_planted_overrun_in_an_arena(void **state) {
  (void)state;
  check_planted_overrun();
  expect_clean_state();
}

static void test_bad_data(void **state) {
  float back[5];
  (void)state;
  setenv("HELIO_STRICT_PLANT", "bad-data", 1);
  HELIO_POOL {
    helio_tensor *x = helio_constant(numbers, HELIO_SHAPE(5)), *y = helio_relu(x);
    assert_made(y);
    assert_int_equal(helio_tensor_read(y, back, sizeof back), HELIO_BAD_DATA);
    assert_non_null(strstr(helio_error_message(), "device:GPU:0"));
    assert_non_null(strstr(helio_error_message(), "RELU"));
    expect_error(HELIO_BAD_DATA, "met the value 7");
    assert_ok(helio_tensor_read(x, back, sizeof back)); /* told once */
    assert_memory_equal(back, numbers, sizeof back);
  }
  expect_clean_state();
}

static void test_every_read_tells_of_bad_data(void **state) {
  (void)state;
  setenv("HELIO_STRICT_PLANT", "bad-data", 1);
  HELIO_POOL {
    helio_tensor *one = helio_fill(HELIO_SCALAR, 1);
    helio_relu(one);
    assert_true(helio_item(one) != 1); /* of another tensor, but behind the kernel */
    expect_error(HELIO_BAD_DATA, "RELU");
    helio_relu(one);
    assert_null(helio_tensor_text(one));
    expect_error(HELIO_BAD_DATA, "RELU");
    helio_relu(one);
    assert_int_equal(helio_synchronize(NULL), HELIO_BAD_DATA);
    expect_error(HELIO_BAD_DATA, "RELU");
    helio_relu(one);
    assert_int_equal(helio_synchronize("gpu:0"), HELIO_BAD_DATA);
    expect_error(HELIO_BAD_DATA, "RELU");
  }
  expect_clean_state();
}

static void test_late_error(void **state) {
  float back[5];
  (void)state;
  setenv("HELIO_STRICT_PLANT", "late-error", 1);
  HELIO_POOL {
    helio_tensor *y = helio_relu(helio_constant(numbers, HELIO_SHAPE(5)));
    assert_made(y); /* queued, not run */
    assert_int_equal(helio_tensor_read(y, back, sizeof back), HELIO_DEVICE_FAILURE);
    expect_error(HELIO_DEVICE_FAILURE, "planted");
  }
  expect_clean_state();
}

/* Waiting for the device while plans make room must not lose what it is told. */
static void test_late_error_and_many_plans(void **state) {
  (void)state;
  setenv("HELIO_STRICT_PLANT", "late-error", 1);
  for (int64_t i = 1; i <= 3000 && !helio_error_pending(); i++) {
    HELIO_POOL helio_relu(helio_fill(HELIO_SHAPE(i), 1));
  }
  helio_synchronize(NULL);
  expect_error(HELIO_DEVICE_FAILURE, "planted");
  expect_clean_state();
}

/* Nor while freed memory is really freed. */
static void test_late_error_in_debug_mode(void **state) {
  static const char *const limits[] = {"64K", "1G"};
  (void)state;
  for (int i = 0; i < 2; i++) {
    setenv("HELIO_ARENA_DEBUG", "1", 1);
    setenv("HELIO_MEMORY_LIMIT", limits[i], 1);
    setenv("HELIO_STRICT_PLANT", "late-error", 1);
    for (int k = 0; k < 100 && !helio_error_pending(); k++) {
      HELIO_POOL helio_relu(helio_fill(HELIO_SHAPE(1000), 1));
    }
    helio_synchronize(NULL);
    expect_error(HELIO_DEVICE_FAILURE, "planted");
    expect_clean_state();
    assert_ok(helio_shutdown());
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_write_past_the_end),           TEST(test_write_past_the_end_at_shutdown), TEST(test_write_at_the_end),
      TEST(test_debug_mode_computes_the_same), TEST(test_debug_mode_within_a_limit),
  };
  const struct CMUnitTest strict_tests[] = {
      TEST(test_planted_overrun),
      TEST(test_planted_overrun_in_an_arena),
      TEST(test_bad_data),
      TEST(test_every_read_tells_of_bad_data),
      TEST(test_late_error),
      TEST(test_late_error_and_many_plans),
      TEST(test_late_error_in_debug_mode),
  };
  remember_environment();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return failed + (on_strict() ? cmocka_run_group_tests(strict_tests, NULL, NULL) : 0);
}
