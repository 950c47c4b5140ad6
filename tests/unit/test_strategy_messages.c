/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices and which collective a strategy takes, and what the log says of it, in TensorFlow's words. This program
 * has the core in itself, so it finds no plugins but those it names. */
#include "replicas.h"

#define JOB "/job:localhost/replica:0/task:0/device:"

/* ---- devices ---- */

static void devices_as_a_tuple(void **state) {
  (void)state;
  char line[600];
  mirror(1);
  snprintf(line, sizeof line, "INFO:helio:Using MirroredStrategy with devices ('%s',)", nth_device_in_full(0));
  assert_logged(line, "");
  mirror(2);
  snprintf(line, sizeof line, "INFO:helio:Using MirroredStrategy with devices ('%s', '%s')", nth_device_in_full(0),
           nth_device_in_full(1));
  assert_logged(line, "");
  /* none given: every accelerator, else every CPU */
  helio_strategy *all = helio_mirrored();
  assert_made(all);
  assert_int_equal(helio_num_replicas(all), 5);
  for (int i = 0; i < 5; i++) assert_string_equal(helio_strategy_device(all, i), nth_device_in_full(i));
  assert_string_equal(helio_strategy_device(all, 5), "");
  assert_string_equal(helio_strategy_name(all), "MirroredStrategy");
  assert_int_equal(lines_with("Using MirroredStrategy", ""), 3);
}

static void devices_that_cannot_be_taken(void **state) {
  (void)state;
  assert_null(helio_mirrored(.devices = {"cpu:1", "cpu:0", "/device:CPU:1"}));
  expect_error(HELIO_INVALID_ARGUMENT, "No duplicates allowed in `devices` argument: " JOB "CPU:1");
  assert_null(helio_mirrored(.devices = {"cpu:0", "gpu:9"}));
  expect_error(HELIO_NO_DEVICE, "Could not satisfy device specification '" JOB "GPU:9'. enable_soft_placement=0. "
                                "Supported device types [");
  assert_null(helio_one_device("gpu:9"));
  expect_error(HELIO_NO_DEVICE, JOB "GPU:9 unknown device.");
  assert_null(helio_mirrored(.devices = {"cpu:0", "next door"}));
  expect_error(HELIO_INVALID_ARGUMENT, "'next door' is not the name of a device");
  assert_null(helio_mirrored(.devices = {"cpu:0", NULL, "cpu:1"}));
  expect_error(HELIO_INVALID_ARGUMENT, "device 1 is NULL");
  assert_null(helio_one_device(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "the device is NULL");
  assert_null(helio_mirrored(.devices = {"cpu:0", "cpu:1"}, .weights = {1, 1, 1}));
  expect_error(HELIO_INVALID_ARGUMENT, "3 weights are given for 2 replicas");
  assert_null(helio_mirrored(.devices = {"cpu:0", "cpu:1"}, .weights = {1, -1}));
  expect_error(HELIO_INVALID_ARGUMENT, "weight 1 is -1");
  assert_null(helio_mirrored(.devices = {"cpu:0", "cpu:1"}, .collective = "reduce-to-two"));
  expect_error(HELIO_INVALID_ARGUMENT, "there is no collective reduce-to-two; did you mean reduce-to-one?");
  mirror(2);
  assert_int_equal(helio_set_logical_devices(device_name(), NULL, 3), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "Virtual devices cannot be modified after being initialized");
}

static void no_devices_at_all(void **state) {
  (void)state;
  char folder[64];
  make_folder(folder);
  setenv("HELIO_PLUGIN_PATH", folder, 1);
  unsetenv("HELIO_BACKEND");
  helio_strategy *strategy = helio_mirrored();
  remove_folder(folder);
  if (strategy) SKIP("a plugin for the host is installed");
  expect_error(HELIO_NO_DEVICE, "Got an empty `devices` list and unable to recognize any local devices: ");
}

/* ---- reductions ---- */

static void the_first_ten_reductions_to_each_device_are_said(void **state) {
  (void)state;
  helio_strategy *two = mirror(2);
  helio_values *values = helio_values_of(two, (helio_tensor *[]){FLOATS(1), FLOATS(2)}, 2);
  for (int i = 0; i < 12; i++) {
    expect_numbers(helio_reduce(two, HELIO_SUM, values), 3);
    HELIO_DEVICE("cpu:3") expect_numbers(helio_reduce(two, HELIO_MEAN, values, HELIO_AXES(0)), 1.5);
  }
  char line[300];
  snprintf(line, sizeof line, "INFO:helio:Reduce to %s then broadcast to ('%s',).", nth_device_in_full(0),
           nth_device_in_full(0));
  assert_int_equal(lines_with(line, ""), 10);
  assert_int_equal(lines_with("INFO:helio:Reduce to " JOB "CPU:3 then broadcast to ('" JOB "CPU:3',).", ""), 10);
  assert_int_equal(lines_with("Reduce to", ""), 20);
}

/* ---- collectives ---- */

static const char *const non_gpu = "There are non-GPU devices in the strategy, not using nccl allreduce.";
static const char *const virtual_gpus =
    "NCCL is not supported when using virtual GPUs, falling back to reduction to one device";

/* The refusing collective's own words, framed, once for all strategies. */
static void expect_said_once(const char *reason) {
  char line[300];
  snprintf(line, sizeof line, "WARNING:helio:nccl: %s", reason);
  for (int i = 0; i < seen.count; i++) {
    if (strstr(seen.lines[i], "nccl: ")) assert_string_equal(seen.lines[i], line);
  }
  assert_int_equal(lines_with("nccl: ", ""), 1);
}

static void a_refusal_is_said_once(void **state) {
  (void)state;
  start_with("tests/plugins/refusing/.libs");
  for (int i = 0; i < 2; i++) {
    helio_strategy *mixed = helio_mirrored(.devices = {nth_device(0), on_gpu() ? "cpu:0" : "cpu:1"});
    assert_made(mixed);
    assert_string_equal(helio_strategy_collective(mixed), "reduce-to-one");
    assert_non_null(strstr(helio_strategy_fallbacks(mixed), non_gpu));
  }
  expect_said_once(non_gpu);
  assert_null(helio_mirrored(.devices = {"cpu:0", "cpu:1"}, .collective = "nccl"));
  expect_error(HELIO_NOT_SUPPORTED, "the collective nccl cannot serve these devices: There are non-GPU devices");
  assert_made(helio_mirrored(.devices = {"cpu:0", "cpu:1"}, .collective = "reduce-to-one"));
  expect_said_once(non_gpu);
}

static void a_refusal_of_virtual_devices(void **state) {
  (void)state;
  if (!on_gpu()) SKIP("the CPU is no GPU that could be cut; the strict variant does this");
  setenv("HELIO_STRICT_DEVICES", "1", 1);
  start_with("tests/plugins/refusing/.libs");
  assert_ok(helio_set_logical_devices("gpu:0", (uint64_t[]){64 << 20, 64 << 20}, 2));
  for (int i = 0; i < 2; i++) assert_string_equal(helio_strategy_collective(mirror(2)), "reduce-to-one");
  expect_said_once(virtual_gpus);
}

/* Where a collective made for the devices serves them, it does not matter who else would not. */
static void what_serves_best_needs_no_excuse(void **state) {
  (void)state;
  char folders[PATH_MAX * 2];
  snprintf(folders, sizeof folders, "tests/plugins/refusing/.libs:%s/collectives/local/.libs", build_folder());
  start_with(folders);
  helio_strategy *cpus = helio_mirrored(.devices = {"cpu:0", "cpu:1"});
  assert_made(cpus);
  assert_string_equal(helio_strategy_collective(cpus), "local");
  assert_string_equal(helio_strategy_fallbacks(cpus), "");
  assert_string_equal(helio_strategy_fallbacks(helio_one_device("cpu:0")), "");
  assert_not_logged("WARNING");
  if (on_gpu()) {
    assert_string_equal(helio_strategy_collective(mirror(2)), "reduce-to-one");
    assert_logged("WARNING:helio:nccl: it serves nobody", "");
    assert_not_logged("local: the host cannot touch"); /* nobody would expect it to */
  }
}

/* ---- no collectives at all ---- */

typedef struct line {
  helio_variable *slope;
  helio_optimizer *optimizer;
} line;

static helio_status fit_line(void *argument, const helio_element *inputs, helio_element *outputs) {
  const line *l = argument;
  helio_tape *tape = helio_tape_new();
  helio_tensor *x = inputs->part[0], *loss = NULL;
  HELIO_TAPE(tape) {
    helio_tensor *y = helio_mul(x, helio_value(l->slope));
    loss = helio_compute_average_loss(helio_square(helio_sub(y, helio_add(x, x))));
  }
  if (!loss) return helio_error_pending();
  helio_minimize(l->optimizer, tape, loss, HELIO_VARIABLES(l->slope));
  return give(outputs, loss);
}

/* The mean of (wx − 2x)² over 1, 2, 3 is (w − 2)² × 14/3. */
static void training_needs_no_collective_plugin(void **state) {
  (void)state;
  start_with("");
  helio_strategy *two = mirror(2);
  if (strcmp(helio_strategy_collective(two), "reduce-to-one") != 0) SKIP("a collective is installed");
  line l = {.optimizer = helio_sgd(0.05)};
  HELIO_SCOPE(two) l.slope = helio_variable(number(0), .name = "slope");
  helio_dataset *dataset =
      helio_dataset_batch(helio_dataset_from_slices(helio_array_of(((float[]){1, 2, 3}), HELIO_SHAPE(3))), 3);
  helio_values *batch = helio_next_values(helio_iterate_distributed(helio_distribute(two, dataset)));
  assert_made(batch);
  double slope = 0;
  for (int i = 0; i < 10; i++) {
    helio_values *losses = helio_run(two, fit_line, &l, batch);
    assert_made(losses);
    expect_numbers(helio_reduce(two, HELIO_SUM, losses), (slope - 2) * (slope - 2) * 14 / 3);
    slope -= 0.05 * 2 * (slope - 2) * 14 / 3;
    for (int copy = 0; copy < 2; copy++) expect_numbers(helio_variable_copy(l.slope, copy), slope);
  }
}

int main(void) {
  remember_environment();
  const struct CMUnitTest tests[] = {
      REPLICA_TEST(devices_as_a_tuple),
      REPLICA_TEST(devices_that_cannot_be_taken),
      TEST(no_devices_at_all),
      REPLICA_TEST(the_first_ten_reductions_to_each_device_are_said),
      TEST(a_refusal_is_said_once),
      TEST(a_refusal_of_virtual_devices),
      TEST(what_serves_best_needs_no_excuse),
      TEST(training_needs_no_collective_plugin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
