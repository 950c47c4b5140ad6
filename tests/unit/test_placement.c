/* SPDX-License-Identifier: Apache-2.0 */
/* Where operations run: scopes, soft and strict placement, what is logged, what runs elsewhere. */
#include "support.h"

static helio_tensor *ones(int64_t rows, int64_t columns) {
  return helio_fill(HELIO_SHAPE(rows, columns), 1);
}

static const char *full_name(const char *device) {
  return strcmp(device, "gpu:0") == 0 ? "/job:localhost/replica:0/task:0/device:GPU:0"
                                      : "/job:localhost/replica:0/task:0/device:CPU:0";
}

static void expect_on(const helio_tensor *tensor, const char *name) {
  assert_made(tensor);
  assert_string_equal(helio_tensor_device(tensor), name);
}

/* The pending error's message ends so; takes it. */
static void expect_end(helio_status status, const char *end) {
  helio_error error;
  assert_int_equal(helio_error_take(&error), status);
  size_t length = strlen(error.message), wanted = strlen(end);
  if (length < wanted || strcmp(error.message + length - wanted, end) != 0) fail_msg("%s", error.message);
}

/* ---- scopes ---- */

static void test_unscoped_is_preferred(void **state) {
  (void)state;
  HELIO_POOL {
    expect_on(ones(2, 2), full_name(device_name()));
    expect_on(helio_matmul(ones(2, 2), ones(2, 2)), full_name(device_name()));
    HELIO_DEVICE(NULL) expect_on(helio_relu(ones(2, 2)), full_name(device_name()));
  }
}

static void test_nested_scopes(void **state) {
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=3", 1);
  const char *second = "/job:localhost/replica:0/task:0/device:CPU:1";
  const char *third = "/job:localhost/replica:0/task:0/device:CPU:2";
  (void)state;
  HELIO_POOL {
    HELIO_DEVICE("cpu:1") {
      expect_on(ones(2, 2), second);
      HELIO_DEVICE("/device:CPU:2") {
        expect_on(ones(2, 2), third);
        HELIO_DEVICE(NULL) expect_on(ones(2, 2), full_name(device_name()));
        expect_on(helio_add(ones(2, 2), ones(2, 1)), third);
      }
      expect_on(helio_add(ones(2, 2), ones(2, 1)), second);
    }
    expect_on(ones(2, 2), full_name(device_name()));
  }
}

static void test_all_ways_to_write_a_name(void **state) {
  static const char *const names[] = {"cpu:0",
                                      "/cpu:0",
                                      "CPU:0",
                                      "cpu",
                                      "/device:CPU:0",
                                      "device:cpu:0",
                                      "/job:localhost/replica:0/task:0/device:CPU:0",
                                      "/replica:0/task:0/device:CPU:0",
                                      "/task:0/cpu:0"};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    HELIO_POOL {
      HELIO_DEVICE(names[i]) expect_on(ones(1, 1), "/job:localhost/replica:0/task:0/device:CPU:0");
    }
  }
}

static void leave_by_return(void) {
  HELIO_DEVICE("cpu:1") {
    HELIO_DEVICE("cpu:77") return;
  }
}

static void leave_by_break(void) {
  HELIO_DEVICE("cpu:1") break;
}

static void leave_by_goto(void) {
  HELIO_DEVICE("cpu:1") goto out;
out:
  return;
}

static void test_ways_out_of_a_scope(void **state) {
  static void (*const ways[])(void) = {leave_by_return, leave_by_break, leave_by_goto};
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=2", 1);
  (void)state;
  for (size_t i = 0; i < COUNT_OF(ways); i++) {
    ways[i]();
    HELIO_POOL expect_on(ones(1, 1), full_name(device_name()));
  }
}

static int enter_deeper(int depth) {
  int deepest = depth;
  HELIO_DEVICE("cpu:0") {
    if (!helio_error_pending() && depth < 1000) deepest = enter_deeper(depth + 1);
  }
  return deepest;
}

static void test_too_many_scopes(void **state) {
  (void)state;
  assert_int_equal(enter_deeper(0), 64);
  expect_error(HELIO_WRONG_STATE, "64 device scopes");
  HELIO_POOL expect_on(ones(1, 1), full_name(device_name()));
}

/* ---- names that are no device ---- */

static void test_unknown_device(void **state) {
  static const char *const names[] = {"/device:GPU:2",
                                      "gpu:77",
                                      "cpu:9",
                                      "tpu:0",
                                      "/job:worker/task:0/device:CPU:0",
                                      "/job:localhost/replica:1/task:0/device:CPU:0"};
  (void)state;
  HELIO_POOL {
    helio_tensor *x = ones(2, 2);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
      HELIO_DEVICE(names[i]) {
        assert_null(helio_matmul(x, x));
        expect_end(HELIO_NO_DEVICE, "unknown device.");
        assert_null(ones(2, 2));
        expect_end(HELIO_NO_DEVICE, "unknown device.");
        assert_null(helio_constant(((float[]){1}), HELIO_SHAPE(1)));
        expect_end(HELIO_NO_DEVICE, "unknown device.");
        assert_null(helio_copy(x));
        expect_end(HELIO_NO_DEVICE, "unknown device.");
        assert_made(helio_reshape(x, HELIO_SHAPE(4))); /* a view is where its base is */
      }
    }
  }
}

static void test_unknown_device_message(void **state) {
  (void)state;
  HELIO_POOL {
    helio_tensor *x = ones(2, 2);
    HELIO_DEVICE("/device:GPU:2") assert_null(helio_matmul(x, x));
    const char *message = helio_error_message();
    assert_non_null(strstr(message, "/job:localhost/replica:0/task:0/device:GPU:2"));
    assert_non_null(strstr(message, full_name("cpu:0"))); /* what there is */
    assert_non_null(strstr(message, "enable_soft_placement=0"));
    expect_end(HELIO_NO_DEVICE, "unknown device.");
  }
}

static void test_soft_placement_cures_it(void **state) {
  (void)state;
  HELIO_POOL {
    helio_tensor *x = ones(2, 2);
    assert_ok(helio_set_soft_placement(true));
    HELIO_DEVICE("/device:GPU:2") {
      expect_on(helio_matmul(x, x), full_name(device_name()));
      expect_on(ones(2, 2), full_name(device_name()));
      assert_made(helio_constant(((float[]){1}), HELIO_SHAPE(1)));
    }
    assert_int_equal(helio_placement_counts().operations, 1);
    assert_ok(helio_set_soft_placement(false));
    HELIO_DEVICE("/device:GPU:2") assert_null(helio_matmul(x, x));
    expect_end(HELIO_NO_DEVICE, "unknown device.");
  }
}

static void test_soft_placement_by_environment(void **state) {
  (void)state;
  setenv("HELIO_SOFT_PLACEMENT", "1", 1);
  HELIO_POOL {
    HELIO_DEVICE("/device:GPU:2") expect_on(helio_matmul(ones(2, 2), ones(2, 2)), full_name(device_name()));
  }
}

static void test_wrong_names(void **state) {
  static const char *const names[] = {"",      "/",        "cpu:",   "cpu:x",          "cpu:0:1",
                                      "cpu 0", "/device:", "cpu:-1", "job:localhost/", "cpu:99999999"};
  (void)state;
  HELIO_POOL {
    helio_tensor *x = ones(2, 2);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
      bool entered = false;
      HELIO_DEVICE(names[i]) {
        entered = true;
        assert_null(helio_relu(x));
      }
      assert_true(entered);
      expect_error(HELIO_INVALID_ARGUMENT, "is not the name of a device");
      expect_on(helio_relu(x), full_name(device_name()));
    }
  }
}

/* ---- what is logged ---- */

static void test_placement_lines(void **state) {
  (void)state;
  assert_ok(helio_set_log_placement(true));
  capture_log();
  HELIO_POOL {
    helio_tensor *a = helio_constant(((float[]){1, 2, 3, 4, 5, 6}), HELIO_SHAPE(2, 3), .name = "a");
    helio_tensor *b = helio_constant(((float[]){1, 2, 3, 4, 5, 6}), HELIO_SHAPE(3, 2), .name = "b");
    helio_tensor *row = helio_slice(helio_copy(b), HELIO_SHAPE(1, 0), HELIO_SHAPE(1, 2));
    helio_squeeze(helio_expand_dims(helio_reshape(row, HELIO_SHAPE(2)), 0));
    helio_to_device(a, "cpu:0");
    assert_int_equal(seen.count, 0);
    assert_made(helio_matmul(a, b));
  }
  char line[200];
  snprintf(line, sizeof line, "Executing op MatMul in device %s", full_name(device_name()));
  assert_int_equal(seen.count, 1);
  assert_string_equal(seen.lines[0], line);
  assert_int_equal(seen.levels[0], HELIO_LOG_INFO);
  assert_ok(helio_set_log_placement(false));
  HELIO_POOL helio_matmul(ones(2, 2), ones(2, 2));
  assert_int_equal(seen.count, 1);
}

static void test_labels(void **state) {
  static const char *const labels[] = {"Fill", "Cast", "Slice", "ConcatV2", "AddV2",
                                       "Sub",  "Mul",  "AddN",  "Sum",      "Relu"};
  (void)state;
  setenv("HELIO_LOG_PLACEMENT", "1", 1);
  HELIO_POOL {
    HELIO_DEVICE("cpu:0") {
      helio_tensor *x = ones(3, 3), *pair[] = {x, x};
      helio_cast(x, HELIO_INT32);
      helio_slice(x, HELIO_SHAPE(0, 1), HELIO_SHAPE(3, 1));
      helio_concat(pair, 2, 0);
      helio_add(x, x);
      helio_sub(x, x);
      helio_mul(x, x);
      helio_add_n(pair, 2);
      helio_sum(x);
      assert_made(helio_relu(x));
    }
  }
  assert_int_equal(seen.count, COUNT_OF(labels));
  for (size_t i = 0; i < COUNT_OF(labels); i++) {
    char line[200];
    snprintf(line, sizeof line, "Executing op %s in device %s", labels[i], full_name("cpu:0"));
    assert_string_equal(seen.lines[i], line);
  }
}

/* A failed operation was not executed. */
static void test_failures_print_no_line(void **state) {
  (void)state;
  assert_ok(helio_set_log_placement(true));
  HELIO_POOL {
    helio_tensor *x = helio_constant(((float[]){1, 2}), HELIO_SHAPE(2));
    capture_log();
    assert_null(helio_matmul(x, x));
    expect_error(HELIO_INVALID_ARGUMENT, "MatMul");
    assert_int_equal(seen.count, 0);
  }
}

/* ---- inputs that are elsewhere ---- */

static void test_inputs_are_copied_and_counted(void **state) {
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=2", 1);
  (void)state;
  HELIO_POOL {
    helio_tensor *a = NULL, *b = NULL;
    HELIO_DEVICE("cpu:0") a = ones(2, 3);
    HELIO_DEVICE("cpu:1") b = ones(3, 2);
    HELIO_DEVICE("cpu:1") expect_on(helio_matmul(a, b), "/job:localhost/replica:0/task:0/device:CPU:1");
    helio_placement counts = helio_placement_counts();
    assert_int_equal(counts.input_copies, 1);
    assert_int_equal(counts.input_bytes, 24);
    assert_int_equal(counts.operations, 0);
    assert_int_equal(counts.bytes_copied, 0);
    HELIO_DEVICE("cpu:0") {
      helio_tensor *sum = helio_add_n((helio_tensor *[]){b, helio_copy(b), b}, 3);
      assert_true(helio_item(helio_sum(sum)) == 18);
    }
    assert_int_equal(helio_placement_counts().input_copies, 3); /* helio_copy() was asked for */
    assert_ok(helio_shutdown());
    assert_ok(helio_init());
    assert_int_equal(helio_placement_counts().input_copies, 0);
  }
}

/* ---- a device that lacks a kernel: only the strict device can be told to ---- */

static void refuse_matmul(void) {
  setenv("HELIO_STRICT_REFUSE", "matmul", 1);
}

static void test_fallback(void **state) {
  (void)state;
  refuse_matmul();
  HELIO_POOL {
    helio_tensor *a = ones(2, 3), *b = ones(3, 2);
    expect_on(a, full_name("gpu:0"));
    for (int i = 0; i < 3; i++) {
      helio_tensor *made = helio_matmul(a, b);
      expect_on(made, full_name("cpu:0"));
      assert_true(helio_item(helio_sum(made)) == 12);
    }
    expect_on(helio_relu(a), full_name("gpu:0"));
    helio_placement counts = helio_placement_counts();
    assert_int_equal(counts.operations, 3);
    assert_int_equal(counts.bytes_copied, 3 * 48);
    assert_int_equal(lines_with("WARNING:helio:", "MatMul"), 1);
    assert_logged(full_name("cpu:0"), full_name("gpu:0"));
  }
}

static void test_fallback_in_a_scope(void **state) {
  (void)state;
  refuse_matmul();
  HELIO_POOL {
    helio_tensor *x = ones(2, 2);
    HELIO_DEVICE("gpu:0") {
      assert_null(helio_matmul(x, x));
      expect_error(HELIO_NOT_SUPPORTED, "MatMul cannot run on /job:localhost/replica:0/task:0/device:GPU:0");
      assert_int_equal(helio_placement_counts().operations, 0);
      assert_ok(helio_set_soft_placement(true));
      expect_on(helio_matmul(x, x), full_name("cpu:0"));
      assert_int_equal(helio_placement_counts().operations, 1);
    }
    HELIO_DEVICE("cpu:0") expect_on(helio_matmul(x, x), full_name("cpu:0"));
    assert_int_equal(helio_placement_counts().operations, 1); /* asked for the CPU, got it */
  }
}

static void test_strict_placement(void **state) {
  (void)state;
  refuse_matmul();
  setenv("HELIO_STRICT_PLACEMENT", "1", 1);
  HELIO_POOL {
    helio_tensor *x = ones(2, 2);
    assert_null(helio_matmul(x, x));
    expect_error(HELIO_NOT_SUPPORTED, "HELIO_STRICT_PLACEMENT");
    expect_on(helio_relu(x), full_name("gpu:0"));
    HELIO_DEVICE("cpu:0") expect_on(helio_matmul(x, x), full_name("cpu:0"));
    assert_ok(helio_set_soft_placement(true));
    HELIO_DEVICE("gpu:0") assert_null(helio_matmul(x, x));
    expect_error(HELIO_NOT_SUPPORTED, "instead of");
    assert_ok(helio_set_strict_placement(false));
    expect_on(helio_matmul(x, x), full_name("cpu:0"));
  }
}

static void test_fallback_is_logged_where_it_runs(void **state) {
  (void)state;
  refuse_matmul();
  assert_ok(helio_set_log_placement(true));
  HELIO_POOL {
    helio_tensor *x = ones(2, 2);
    capture_log();
    helio_matmul(x, x);
    assert_logged("Executing op MatMul in device", full_name("cpu:0"));
    helio_relu(x);
    assert_logged("Executing op Relu in device", full_name("gpu:0"));
  }
}

/* Wherever the pieces lie, one chain of operations crosses devices and comes out right. */
static void test_chain_across_devices(void **state) {
  (void)state;
  setenv("HELIO_STRICT_REFUSE", "relu,sum", 1);
  setenv("HELIO_STRICT_DEVICES", "2", 1);
  HELIO_POOL {
    helio_tensor *x = ones(3, 3);
    for (int i = 0; i < 4; i++) {
      HELIO_DEVICE(i % 2 ? "gpu:1" : "gpu:0") x = helio_matmul(x, ones(3, 3));
      x = helio_relu(helio_sub(x, ones(3, 3)));
    }
    assert_true(helio_item(helio_sum(x)) == 9 * 41); /* y ← 3y − 1 from 1: 2, 5, 14, 41 */
  }
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
      CLEAN_TEST(test_unscoped_is_preferred),
      CLEAN_TEST(test_nested_scopes),
      CLEAN_TEST(test_all_ways_to_write_a_name),
      CLEAN_TEST(test_ways_out_of_a_scope),
      CLEAN_TEST(test_too_many_scopes),
      CLEAN_TEST(test_unknown_device),
      CLEAN_TEST(test_unknown_device_message),
      CLEAN_TEST(test_soft_placement_cures_it),
      CLEAN_TEST(test_soft_placement_by_environment),
      CLEAN_TEST(test_wrong_names),
      CLEAN_TEST(test_placement_lines),
      CLEAN_TEST(test_labels),
      CLEAN_TEST(test_failures_print_no_line),
      CLEAN_TEST(test_inputs_are_copied_and_counted),
  };
  const struct CMUnitTest strict_tests[] = {
      CLEAN_TEST(test_fallback),
      CLEAN_TEST(test_fallback_in_a_scope),
      CLEAN_TEST(test_strict_placement),
      CLEAN_TEST(test_fallback_is_logged_where_it_runs),
      CLEAN_TEST(test_chain_across_devices),
  };
  remember_environment();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return failed + (on_strict() ? cmocka_run_group_tests(strict_tests, NULL, NULL) : 0);
}
