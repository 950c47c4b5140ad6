/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of strategies share: several devices of the variant, and values of replicas. Asserts stay on the test's
 * own thread: a step gives what it saw as outputs. */
#ifndef HELIO_TEST_REPLICAS_H
#define HELIO_TEST_REPLICAS_H

#include <math.h>

#include "support.h"

enum { MOST_DEVICES = 5 };

/* Settings for five devices of the variant, and five CPUs; with the plugins of these folders of the build tree, "" for
 * none, behind the backends. */
static inline void choose_devices(const char *plugins) {
  char path[PATH_MAX * 8];
  snprintf(path, sizeof path, "%s:%s/%s", given_path, build_folder(), plugins);
  if (!plugins[0]) snprintf(path, sizeof path, "%s", given_path);
  setenv("HELIO_PLUGIN_PATH", path, 1);
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=5", 1);
  if (on_strict()) setenv("HELIO_STRICT_DEVICES", "5", 1);
}

static inline void start_with(const char *plugins) {
  choose_devices(plugins);
  assert_ok(helio_init());
}

static inline int set_up_replicas(void **state) {
  if (set_up(state)) return -1;
  start_with("collectives/local/.libs");
  return 0;
}

#define REPLICA_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_replicas, tear_down)

static inline const char *nth_device(int number) {
  static const char *const names[2][MOST_DEVICES] = {{"cpu:0", "cpu:1", "cpu:2", "cpu:3", "cpu:4"},
                                                     {"gpu:0", "gpu:1", "gpu:2", "gpu:3", "gpu:4"}};
  return names[on_gpu()][number];
}

static inline const char *nth_device_in_full(int number) {
  static char names[MOST_DEVICES][60];
  snprintf(names[number], sizeof names[number], "/job:localhost/replica:0/task:0/device:%s:%d",
           on_gpu() ? "GPU" : "CPU", number);
  return names[number];
}

static inline helio_strategy *mirror(int count) {
  helio_mirrored_options options = {.size = sizeof options};
  for (int i = 0; i < count; i++) options.devices[i] = nth_device(i);
  helio_strategy *strategy = helio_mirrored_with(&options);
  assert_made(strategy);
  assert_int_equal(helio_num_replicas(strategy), count);
  return strategy;
}

/* ---- tensors ---- */

#define FLOATS(...)                                                                                                    \
  helio_constant(((float[]){__VA_ARGS__}), HELIO_SHAPE((int64_t)(sizeof((float[]){__VA_ARGS__}) / sizeof(float))))

static inline helio_tensor *number(double value) {
  return helio_fill(HELIO_SCALAR, value);
}

/* A step's next output. */
static inline helio_status give(helio_element *outputs, helio_tensor *tensor) {
  if (tensor) outputs->part[outputs->count++] = tensor;
  return helio_error_pending();
}

static inline void expect_numbers_at(helio_tensor *tensor, const double *expected, int count, const char *file,
                                     int line) {
  double values[64] = {0};
  HELIO_POOL {
    helio_tensor *wide = tensor ? helio_cast(tensor, HELIO_FLOAT64) : NULL;
    if (!wide || helio_tensor_elements(wide) != count ||
        helio_tensor_read(wide, values, (size_t)count * sizeof values[0])) {
      print_error("%s:%d: %d elements expected, there are %d; %s\n", file, line, count,
                  tensor ? (int)helio_tensor_elements(tensor) : -1, helio_error_message());
      _fail(file, line);
    }
  }
  for (int i = 0; i < count; i++) {
    if (fabs(values[i] - expected[i]) <= 1e-6 * fmax(1, fabs(expected[i]))) continue;
    print_error("%s:%d: element %d is %.9g, not %.9g\n", file, line, i, values[i], expected[i]);
    _fail(file, line);
  }
}

/* The tensor's elements, in order. */
#define expect_numbers(tensor, ...)                                                                                    \
  expect_numbers_at(tensor, (double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),          \
                    __FILE__, __LINE__)

/* A number of each replica, in order. */
static inline void expect_each_at(helio_values *values, const double *expected, int count, const char *file, int line) {
  if (!values) {
    print_error("%s:%d: no values: %s\n", file, line, helio_error_message());
    _fail(file, line);
  }
  for (int i = 0; i < count; i++) expect_numbers_at(helio_values_at(values, i, 0), &expected[i], 1, file, line);
}
#define expect_each(values, ...)                                                                                       \
  expect_each_at(values, (double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), __FILE__,   \
                 __LINE__)

#endif
