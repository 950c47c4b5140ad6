/* SPDX-License-Identifier: Apache-2.0 */
/* Devices as users see them: lists, names, visible and logical devices, and memory. */
#include "support.h"

#define MIB  ((uint64_t)1 << 20)
#define FULL "/job:localhost/replica:0/task:0/device:"

static const helio_device *device_at(const helio_device *const *(*list)(const char *, int *), const char *type,
                                     int index) {
  int count = 0;
  const helio_device *const *devices = list(type, &count);
  assert_made(devices);
  if (index >= count) fail_msg("there are %d devices of type %s", count, type ? type : "any");
  return devices[index];
}

#define PHYSICAL(type, index) device_at(helio_physical_devices, type, index)
#define LOGICAL(type, index)  device_at(helio_logical_devices, type, index)

static int logical_count(const char *type) {
  int count = -1;
  assert_made(helio_logical_devices(type, &count));
  return count;
}

static int physical_count(const char *type) {
  int count = -1;
  assert_made(helio_physical_devices(type, &count));
  return count;
}

static const char *type_name(void) {
  return on_gpu() ? "GPU" : "CPU";
}

/* "/physical_device:GPU:0" or …:CPU:0 */
static const char *physical_name(void) {
  return on_gpu() ? "/physical_device:GPU:0" : "/physical_device:CPU:0";
}

/* A tensor of that many bytes on a device; NULL with the error set. */
static helio_tensor *put(const char *device, uint64_t bytes) {
  helio_tensor *tensor = NULL;
  HELIO_DEVICE(device) tensor = helio_fill(HELIO_SHAPE((int64_t)(bytes / 4)), 1.0);
  return tensor;
}

static helio_memory memory_of(const char *device) {
  helio_memory info;
  assert_ok(helio_memory_info(device, &info));
  return info;
}

/* HELIO_PLUGIN_PATH: these places of the build tree, then those of the variant. NULL ends the list. */
static void set_path(const char *first, ...) {
  char path[4 * sizeof given_path] = "";
  size_t length = 0;
  va_list more;
  va_start(more, first);
  for (const char *place = first; place; place = va_arg(more, const char *)) {
    length += (size_t)snprintf(path + length, sizeof path - length, "%s/%s:", build_folder(), place);
    if (length >= sizeof path) break;
  }
  va_end(more);
  assert_true(length + strlen(given_path) < sizeof path);
  strcpy(path + length, given_path);
  setenv("HELIO_PLUGIN_PATH", path, 1);
}

/* Strict devices, whatever the variant. */
static void use_strict(const char *devices) {
  set_path("tests/plugins/strict/.libs", NULL);
  setenv("HELIO_BACKEND", "strict", 1);
  setenv("HELIO_STRICT_DEVICES", devices, 1);
  setenv("HELIO_STRICT_MEMORY", "16777216", 1);
}

/* ---- lists and names ---- */

static void test_lists_by_type(void **state) {
  int count = -1;
  (void)state;
  assert_int_equal(physical_count("CPU"), 1);
  assert_int_equal(physical_count("GPU"), on_gpu());
  assert_int_equal(physical_count(NULL), 1 + on_gpu());
  assert_int_equal(logical_count("cpu"), 1);
  assert_int_equal(logical_count("Gpu"), on_gpu());
  assert_int_equal(logical_count(NULL), 1 + on_gpu());
  assert_non_null(helio_physical_devices("TPU", &count)); /* an empty list, not an error */
  assert_int_equal(count, 0);
  assert_int_equal(logical_count("TPU"), 0);
  assert_int_equal(logical_count(""), 0);
  assert_int_equal(logical_count("GP"), 0);
  assert_null(helio_physical_devices(NULL, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "count is NULL");
  assert_null(helio_logical_devices(NULL, NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "count is NULL");
}

static void test_descriptions(void **state) {
  (void)state;
  const helio_device *cpu = PHYSICAL("CPU", 0), *logical = LOGICAL("CPU", 0);
  assert_string_equal(cpu->name, "/physical_device:CPU:0");
  assert_string_equal(cpu->physical, cpu->name);
  assert_string_equal(cpu->type, "CPU");
  assert_string_equal(cpu->backend, "cpu");
  assert_string_equal(cpu->native_api, "host");
  assert_int_equal(cpu->index, 0);
  assert_int_equal(cpu->backend_index, 0);
  assert_true(strlen(cpu->description) > 0 && strlen(cpu->architecture) > 0);
  assert_non_null(cpu->vendor);
  assert_non_null(cpu->bus_id);
  assert_true(cpu->memory > 64 * MIB);
  assert_true(cpu->compute_units >= 1);
  assert_string_equal(logical->name, FULL "CPU:0");
  assert_string_equal(logical->physical, "/physical_device:CPU:0");
  assert_int_equal(logical->memory, cpu->memory);
  assert_int_equal(logical->memory_limit, 0);
}

/* The accelerator first, unless HELIO_BACKEND says otherwise. */
static void test_order_of_preference(void **state) {
  (void)state;
  use_strict("2");
  assert_string_equal(LOGICAL(NULL, 0)->name, FULL "GPU:0");
  assert_string_equal(LOGICAL(NULL, 1)->name, FULL "GPU:1");
  assert_string_equal(LOGICAL(NULL, 2)->name, FULL "CPU:0");
  assert_ok(helio_shutdown());
  unsetenv("HELIO_BACKEND");
  assert_string_equal(LOGICAL(NULL, 0)->name, FULL "GPU:0");
  assert_ok(helio_shutdown());
  setenv("HELIO_BACKEND", "cpu,strict", 1);
  assert_string_equal(LOGICAL(NULL, 0)->name, FULL "CPU:0");
  assert_string_equal(LOGICAL(NULL, 1)->name, FULL "GPU:0");
  assert_string_equal(LOGICAL(NULL, 2)->name, FULL "GPU:1");
}

static void test_all_ways_to_name_a_device(void **state) {
  static const char *const cpu[] = {"cpu:0", "/cpu:0", "CPU", "/device:CPU:0", FULL "CPU:0", "device:cpu:0"};
  static const char *const gpu[] = {"gpu:0", "/GPU:0", "/device:gpu:0", FULL "GPU:0", "strict:0", "/device:STRICT:0"};
  char vendor[80], vendor_device[80];
  (void)state;
  snprintf(vendor, sizeof vendor, "%s:0", given_backend);
  snprintf(vendor_device, sizeof vendor_device, "/device:%s:0", given_backend);
  for (size_t i = 0; i < COUNT_OF(cpu); i++) {
    const char *name = on_gpu() ? gpu[i] : cpu[i];
    if (on_vendor() && i >= 4) name = i == 4 ? vendor : vendor_device;
    helio_tensor *x = put(name, 64);
    assert_made(x);
    assert_string_equal(helio_tensor_device(x), on_gpu() ? FULL "GPU:0" : FULL "CPU:0");
    memory_of(name);
    assert_ok(helio_synchronize(name));
  }
}

static void test_names_that_are_none(void **state) {
  static const struct {
    const char *name;
    helio_status status;
    const char *part;
  } rows[] = {
      {"gpu:7", HELIO_NO_DEVICE, "GPU:7 unknown device."},
      {"cpu:1", HELIO_NO_DEVICE, "CPU:1 unknown device."},
      {"tpu:0", HELIO_NO_DEVICE, "All available devices ["},
      {"/physical_device:CPU:0", HELIO_NO_DEVICE, "unknown device."}, /* not a logical one */
      {"/job:worker/replica:0/task:0/device:CPU:0", HELIO_NO_DEVICE, "unknown device."},
      {"cpu:x", HELIO_INVALID_ARGUMENT, "'cpu:x' is not the name of a device"},
      {"", HELIO_INVALID_ARGUMENT, "'' is not the name of a device"},
      {NULL, HELIO_INVALID_ARGUMENT, "is not the name of a device"},
  };
  helio_memory info;
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    assert_int_equal(helio_memory_info(rows[i].name, &info), rows[i].status);
    expect_error(rows[i].status, rows[i].part);
    if (!rows[i].name) continue;
    assert_int_equal(helio_synchronize(rows[i].name), rows[i].status);
    expect_error(rows[i].status, rows[i].part);
    assert_null(put(rows[i].name, 64));
    expect_error(rows[i].status, rows[i].part);
  }
}

/* ---- logical devices ---- */

static const struct {
  const char *format; /* %s: the physical device */
  int count;
  uint64_t limits[3];
} splits[] = {
    {"%s=1", 1, {0}},
    {"%s=3", 3, {0}},
    {"%s=1024", 1024, {0}},  /* a bare number is a count */
    {"%s=8M", 1, {8 * MIB}}, /* with a suffix it is a size */
    {"%s=8M,4096K", 2, {8 * MIB, 4 * MIB}},
    {"%s=1G,8m,1T", 3, {1024 * MIB, 8 * MIB, 1024 * 1024 * MIB}},
    {"%s=0M,8M", 2, {0, 8 * MIB}},
    {";%s=2;", 2, {0}},
};

static void test_splitting_by_variable(void **state) {
  const char *const names[] = {device_name(), physical_name(), on_strict() ? "strict:0" : on_gpu() ? "GPU" : "CPU"};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(splits) * COUNT_OF(names); i++) {
    char value[100];
    const char *name = names[i % COUNT_OF(names)];
    size_t row = i / COUNT_OF(names);
    snprintf(value, sizeof value, splits[row].format, name, name);
    setenv("HELIO_LOGICAL_DEVICES", value, 1);
    assert_int_equal(logical_count(type_name()), splits[row].count);
    assert_int_equal(physical_count(type_name()), 1);
    for (int j = 0; j < splits[row].count && j < 3; j++) {
      char expected[100];
      const helio_device *device = LOGICAL(type_name(), j);
      snprintf(expected, sizeof expected, FULL "%s:%d", type_name(), j);
      assert_string_equal(device->name, expected);
      assert_string_equal(device->physical, physical_name());
      assert_int_equal(device->memory_limit, splits[row].limits[j]);
      assert_int_equal(memory_of(expected).limit, splits[row].limits[j]);
    }
    assert_ok(helio_shutdown());
  }
}

static void test_splits_that_are_none(void **state) {
  static const struct {
    const char *value;
    helio_status status;
    const char *part;
  } rows[] = {
      {"cpu:0", HELIO_INVALID_ARGUMENT, "HELIO_LOGICAL_DEVICES: 'cpu:0' is not of the form"},
      {"cpu:0=", HELIO_INVALID_ARGUMENT, "HELIO_LOGICAL_DEVICES: ''"},
      {"cpu:0=two", HELIO_INVALID_ARGUMENT, "HELIO_LOGICAL_DEVICES: 'two' is neither a number"},
      {"cpu:0=0", HELIO_INVALID_ARGUMENT, "cannot be cut into 0 logical devices"},
      {"cpu:0=1025", HELIO_INVALID_ARGUMENT, "cannot be cut into"},
      {"cpu:0=99999999999", HELIO_INVALID_ARGUMENT, "cannot be cut into 99999999999 logical devices"},
      {"cpu:0=18446744073709551615", HELIO_INVALID_ARGUMENT, "'18446744073709551615' is neither"},
      {"cpu:0=2;cpu:0=3", HELIO_INVALID_ARGUMENT, "HELIO_LOGICAL_DEVICES: /physical_device:CPU:0 is named twice"},
      {"cpu:0=-1", HELIO_INVALID_ARGUMENT, "'-1' is neither"},
      {"cpu:0=1024,1024", HELIO_INVALID_ARGUMENT,
       "'1024' is neither a number of devices, which stands alone, nor a size with a suffix"},
      {"cpu:0=8M,4", HELIO_INVALID_ARGUMENT, "'4' is neither"},
      {"cpu:0=8M,", HELIO_INVALID_ARGUMENT, "'' is neither"},
      {"cpu:0=,8M", HELIO_INVALID_ARGUMENT, "'' is neither"},
      {"cpu:0=8MB", HELIO_INVALID_ARGUMENT, "'8MB' is neither"},
      {"cpu:0=2=3", HELIO_INVALID_ARGUMENT, "'2=3' is neither"},
      {"=2", HELIO_INVALID_ARGUMENT, "'' is not the name of a device"},
      {"c p u=2", HELIO_INVALID_ARGUMENT, "'c p u' is not the name of a device"},
      {"cpu:1=2", HELIO_NO_DEVICE, "there is no physical device 'cpu:1'"},
      {"tpu:0=2", HELIO_NO_DEVICE, "HELIO_LOGICAL_DEVICES: there is no physical device 'tpu:0'"},
      {"cpu:0=2;gpu:9=2", HELIO_NO_DEVICE, "there is no physical device 'gpu:9'"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    setenv("HELIO_LOGICAL_DEVICES", rows[i].value, 1);
    assert_int_equal(helio_init(), rows[i].status);
    expect_error(rows[i].status, rows[i].part);
  }
  unsetenv("HELIO_LOGICAL_DEVICES");
  assert_int_equal(logical_count("CPU"), 1);
}

static void test_splitting_by_call(void **state) {
  const uint64_t limits[] = {8 * MIB, 0, 16 * MIB};
  (void)state;
  assert_ok(helio_set_logical_devices(device_name(), NULL, 4));
  assert_int_equal(logical_count(type_name()), 4);
  assert_ok(helio_set_logical_devices(physical_name(), limits, 3));
  assert_int_equal(logical_count(type_name()), 3);
  for (int i = 0; i < 3; i++) assert_int_equal(LOGICAL(type_name(), i)->memory_limit, limits[i]);
  const int bad[] = {0, -1, 1025};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    assert_int_equal(helio_set_logical_devices(device_name(), NULL, bad[i]), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "cannot be cut into");
  }
  assert_int_equal(helio_set_logical_devices("tpu:0", NULL, 2), HELIO_NO_DEVICE);
  expect_error(HELIO_NO_DEVICE, "there is no physical device 'tpu:0'");
  assert_int_equal(helio_set_logical_devices(NULL, NULL, 2), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "is not the name of a device");
  assert_int_equal(logical_count(type_name()), 3); /* as it was */
  assert_ok(helio_set_logical_devices(device_name(), NULL, 1));
  assert_int_equal(logical_count(type_name()), 1);
  assert_int_equal(LOGICAL(type_name(), 0)->memory_limit, 0);
}

/* Work on one logical device does not show in the memory of the next. */
static void test_logical_devices_have_memory_of_their_own(void **state) {
  char second[20];
  (void)state;
  snprintf(second, sizeof second, "%s:1", type_name());
  assert_ok(helio_set_logical_devices(device_name(), NULL, 2));
  assert_made(put(device_name(), MIB));
  assert_true(memory_of(device_name()).in_use >= MIB);
  assert_int_equal(memory_of(second).reserved, 0);
  assert_made(put(second, MIB / 4));
  assert_in_range(memory_of(second).in_use, MIB / 4, MIB / 2);
}

/* A tutorial for GPUs runs on CPUs: two of 1024 MB each. */
static void test_two_logical_cpus_with_limits(void **state) {
  (void)state;
  setenv("HELIO_LOGICAL_DEVICES", "cpu:0=1024M,1024M", 1);
  assert_int_equal(logical_count("CPU"), 2);
  for (int i = 0; i < 2; i++) {
    char name[20];
    snprintf(name, sizeof name, "cpu:%d", i);
    assert_int_equal(memory_of(name).limit, 1024 * MIB);
    assert_made(put(name, MIB));
    assert_null(put(name, 1025 * MIB));
    expect_error(HELIO_OUT_OF_MEMORY, "limit 1.0 GiB");
    assert_int_equal(memory_of(name).limit, 1024 * MIB);
  }
}

/* ---- threads ---- */

/* HELIO_NUM_THREADS is for the process: logical CPUs share them, each has its caller for one. */
static void test_thread_shares(void **state) {
  static const struct {
    const char *threads;
    int devices, extra[4]; /* threads that exist besides after each first use */
  } rows[] = {
      {"1", 1, {0}}, {"4", 1, {3}}, {"4", 2, {1, 2}}, {"5", 2, {2, 3}}, {"6", 4, {1, 2, 2, 2}}, {"1", 3, {0, 0, 0}},
  };
  (void)state;
  setenv("HELIO_NUM_THREADS", "2", 1); /* the thread sanitizer adds one of its own to the first */
  assert_made(put("cpu:0", 64));
  assert_ok(helio_shutdown());
  int before = thread_count(-1);
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    setenv("HELIO_NUM_THREADS", rows[i].threads, 1);
    assert_ok(helio_set_logical_devices("cpu:0", NULL, rows[i].devices));
    assert_int_equal(thread_count(before), before); /* none before the first use */
    for (int j = 0; j < rows[i].devices; j++) {
      char name[20];
      snprintf(name, sizeof name, "cpu:%d", j);
      assert_made(put(name, 64));
      int extra = thread_count(before + rows[i].extra[j]) - before;
      if (extra != rows[i].extra[j]) fail_msg("%s threads, cpu:%d: %d", rows[i].threads, j, extra);
    }
    assert_ok(helio_shutdown());
  }
}

/* ---- memory ---- */

static void test_growth_on(void **state) {
  (void)state;
  unsetenv("HELIO_ARENA_DEBUG"); /* its blocks are no pieces */
  helio_memory info = memory_of(device_name());
  assert_int_equal(info.reserved + info.in_use + info.taken + info.peak + info.allocations, 0);
  assert_int_equal(info.size, sizeof info);
  HELIO_POOL {
    assert_made(put(device_name(), 1000));
    info = memory_of(device_name());
    assert_in_range(info.reserved, 1000, 4 * MIB); /* starts small */
    assert_int_equal(info.taken, 1);
    for (int i = 0; i < 10; i++) assert_made(put(device_name(), MIB));
    info = memory_of(device_name());
    assert_in_range(info.reserved, 10 * MIB, 24 * MIB); /* grows */
    assert_in_range(info.taken, 2, 8);
    assert_true(info.in_use >= 10 * MIB && info.peak >= info.in_use && info.allocations >= 11);
  }
  helio_memory after = memory_of(device_name());
  assert_int_equal(after.reserved, info.reserved); /* keeps */
  assert_true(after.in_use < MIB);
  assert_int_equal(after.peak, info.peak);
  for (int i = 0; i < 20; i++) {
    HELIO_POOL assert_made(put(device_name(), MIB)); /* and uses it again */
  }
  assert_int_equal(memory_of(device_name()).taken, info.taken);
}

/* One piece at first use, and no second. */
static void check_one_piece(const char *device, uint64_t least, uint64_t most) {
  assert_int_equal(memory_of(device).reserved, 0);
  assert_made(put(device, 1000));
  helio_memory info = memory_of(device);
  assert_in_range(info.reserved, least, most);
  assert_int_equal(info.taken, 1);
  assert_true(info.largest_free >= info.reserved - 2 * 4096);
  HELIO_POOL assert_made(put(device, info.largest_free));
  assert_int_equal(memory_of(device).taken, 1);
  assert_null(put(device, most + 64));
  expect_error(HELIO_OUT_OF_MEMORY, "out of memory on /job:localhost");
  assert_int_equal(memory_of(device).taken, 1);
}

static void test_growth_off_within_a_limit(void **state) {
  (void)state;
  unsetenv("HELIO_ARENA_DEBUG"); /* its blocks are no pieces */
  setenv("HELIO_MEMORY_GROWTH", "0", 1);
  setenv("HELIO_MEMORY_LIMIT", "12M", 1);
  check_one_piece(device_name(), 12 * MIB, 12 * MIB);
  assert_ok(helio_shutdown());
  clear_environment();
  restore_environment();
  unsetenv("HELIO_ARENA_DEBUG");
  assert_ok(helio_set_memory_growth(NULL, false)); /* the same by calls */
  assert_ok(helio_set_memory_limit(device_name(), 12 * MIB));
  check_one_piece(device_name(), 12 * MIB, 12 * MIB);
}

/* Nearly all that is free; on the CPU that is addresses only. */
static void test_growth_off_without_a_limit(void **state) {
  (void)state;
  unsetenv("HELIO_ARENA_DEBUG"); /* its blocks are no pieces */
  if (on_strict()) setenv("HELIO_STRICT_MEMORY", "16777216", 1);
  /* The address sanitizer keeps a byte for every eight addresses. */
  if (SANITIZED && !on_gpu()) setenv("HELIO_MEMORY_FRACTION", "0.02", 1);
  assert_ok(helio_set_memory_growth(device_name(), false));
  uint64_t all = PHYSICAL(type_name(), 0)->memory;
  assert_made(put(device_name(), 1000));
  helio_memory info = memory_of(device_name());
  assert_int_equal(info.taken, 1);
  assert_in_range(info.reserved, on_gpu() ? all * 9 / 10 : 64 * MIB, all);
  if (!SANITIZED) assert_true(resident_kib() < 1024 * 1024);
}

static void test_fraction(void **state) {
  (void)state;
  if (on_strict()) setenv("HELIO_STRICT_MEMORY", "16777216", 1);
  setenv("HELIO_MEMORY_FRACTION", "0.25", 1);
  uint64_t all = PHYSICAL(type_name(), 0)->memory;
  assert_in_range(memory_of(device_name()).limit, all / 4 - 1, all / 4);
  assert_ok(helio_set_logical_devices(device_name(), NULL, 2)); /* its share of the fraction */
  assert_in_range(memory_of(device_name()).limit, all / 8 - 1, all / 8);
  assert_ok(helio_set_memory_fraction(0.5));
  assert_in_range(memory_of(device_name()).limit, all / 4 - 1, all / 4);
  assert_ok(helio_set_memory_fraction(1));
  assert_int_equal(memory_of(device_name()).limit, 0);
  const double bad[] = {0, -0.5, 1.001, 1.0 / 0.0, 0.0 / 0.0};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    assert_int_equal(helio_set_memory_fraction(bad[i]), HELIO_INVALID_ARGUMENT);
    expect_error(HELIO_INVALID_ARGUMENT, "memory fraction");
  }
}

/* The least of limit, fraction and the logical device's own. */
static void test_the_least_bound_counts(void **state) {
  const uint64_t limits[] = {8 * MIB, 4096 * 1024 * MIB};
  char second[20];
  (void)state;
  snprintf(second, sizeof second, "%s:1", type_name());
  assert_ok(helio_set_logical_devices(device_name(), limits, 2));
  assert_ok(helio_set_memory_limit(NULL, 16 * MIB));
  assert_int_equal(memory_of(device_name()).limit, 8 * MIB);
  assert_int_equal(memory_of(second).limit, 16 * MIB);
  assert_ok(helio_set_memory_limit(device_name(), 4 * MIB));
  assert_int_equal(memory_of(device_name()).limit, 4 * MIB);
  assert_ok(helio_set_memory_limit(device_name(), 0));
  assert_int_equal(memory_of(device_name()).limit, 8 * MIB);
}

static void test_past_the_limit(void **state) {
  helio_error error;
  (void)state;
  setenv("HELIO_MEMORY_LIMIT", "8M", 1);
  helio_tensor *kept = put(device_name(), 5 * MIB);
  assert_made(kept);
  assert_null(put(device_name(), 4 * MIB));
  assert_int_equal(helio_error_take(&error), HELIO_OUT_OF_MEMORY);
  assert_non_null(strstr(error.message, on_gpu() ? FULL "GPU:0" : FULL "CPU:0"));
  assert_non_null(strstr(error.message, "asked for 4.0 MiB; limit 8.0 MiB"));
  assert_non_null(strstr(error.message, "largest holders: Fill 5.0 MiB in 1"));
  assert_made(put(device_name(), MIB)); /* less than that still works */
  assert_true(memory_of(device_name()).reserved <= 8 * MIB);
}

/* A device that could not be opened was not used: the setting may be put right. */
static void test_a_first_use_that_fails(void **state) {
  (void)state;
  for (int growth = 0; growth < 2; growth++) {
    assert_ok(helio_set_memory_growth(NULL, growth));
    assert_ok(helio_set_memory_limit(NULL, 8));
    for (int i = 0; i < 3; i++) {
      assert_null(put(device_name(), 64));
      expect_error(HELIO_OUT_OF_MEMORY, "limit 8 bytes");
    }
    assert_ok(helio_set_memory_limit(NULL, 8 * MIB));
    assert_made(put(device_name(), 64));
    assert_ok(helio_shutdown());
  }
}

/* Structs of programs that know less or more. */
static void test_sizes_of_memory_info(void **state) {
  struct {
    helio_memory known;
    uint64_t more[4];
  } large;
  (void)state;
  assert_made(put(device_name(), 1000));
  memset(&large, 0xEE, sizeof large);
  assert_ok(helio_memory_info_sized(device_name(), &large.known, offsetof(helio_memory, peak)));
  assert_int_equal(large.known.size, offsetof(helio_memory, peak));
  assert_true(large.known.in_use >= 1000 && large.known.in_use < MIB);
  assert_true(large.known.peak == UINT64_C(0xEEEEEEEEEEEEEEEE)); /* not its business */
  assert_ok(helio_memory_info_sized(device_name(), &large.known, sizeof large));
  assert_int_equal(large.known.size, sizeof(helio_memory));
  for (int i = 0; i < 4; i++) assert_int_equal(large.more[i], 0);
  assert_int_equal(helio_memory_info_sized(device_name(), NULL, sizeof large), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "info is NULL or too small");
  assert_int_equal(helio_memory_info_sized(device_name(), &large.known, 4), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "info is NULL or too small");
}

/* ---- until the first use and after it ---- */

static void change_everything(void) {
  const char *const names[] = {device_name()};
  assert_ok(helio_set_visible_devices(names, 1));
  assert_ok(helio_set_logical_devices(device_name(), NULL, 2));
  assert_ok(helio_set_logical_devices(device_name(), NULL, 1));
  assert_ok(helio_set_memory_growth(NULL, false));
  assert_ok(helio_set_memory_growth(device_name(), true));
  assert_ok(helio_set_memory_limit(NULL, 32 * MIB));
  assert_ok(helio_set_memory_limit(device_name(), 16 * MIB));
  assert_ok(helio_set_memory_fraction(0.9));
}

static void test_looking_is_not_a_use(void **state) {
  (void)state;
  for (int round = 0; round < 2; round++) {
    assert_true(physical_count(NULL) >= 1 && logical_count(NULL) >= 1);
    memory_of(device_name());
    assert_ok(helio_synchronize(NULL));
    assert_ok(helio_synchronize(device_name()));
    HELIO_DEVICE(device_name()) {}
    change_everything();
  }
  assert_int_equal(memory_of(device_name()).limit, 16 * MIB);
}

/* A list that was taken before the settings changed can still be read. */
static void test_lists_stay_valid(void **state) {
  int count = 0;
  (void)state;
  const helio_device *const *before = helio_logical_devices(type_name(), &count);
  assert_made(before);
  for (int i = 1; i < 20; i++) assert_ok(helio_set_logical_devices(device_name(), NULL, i));
  assert_int_equal(count, 1);
  assert_string_equal(before[0]->type, type_name());
  assert_string_equal(before[0]->physical, physical_name());
}

static void test_after_the_first_use(void **state) {
  const char *const names[] = {device_name()};
  (void)state;
  assert_made(put(device_name(), 64));
  assert_int_equal(helio_set_logical_devices(device_name(), NULL, 2), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "Virtual devices cannot be modified after being initialized");
  assert_int_equal(helio_set_visible_devices(names, 1), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "Visible devices cannot be modified after being initialized");
  assert_int_equal(helio_set_memory_growth(device_name(), false), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "Physical devices cannot be modified after being initialized");
  assert_int_equal(helio_set_memory_growth(NULL, false), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "Physical devices cannot be modified after being initialized");
  assert_int_equal(helio_set_memory_limit(device_name(), MIB), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "Physical devices cannot be modified after being initialized");
  assert_int_equal(helio_set_memory_fraction(0.5), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "Physical devices cannot be modified after being initialized");
  assert_int_equal(logical_count(type_name()), 1);
  assert_int_equal(memory_of(device_name()).limit, 0);
  assert_ok(helio_shutdown());
  change_everything(); /* a new start, new settings */
}

/* ---- visible devices ---- */

static void test_visible_cpu(void **state) {
  static const char *const good[] = {"cpu:0", "", "all", "/physical_device:CPU:0", ",cpu,"};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(good); i++) {
    setenv("HELIO_VISIBLE_DEVICES", good[i], 1);
    assert_int_equal(logical_count("CPU"), 1);
    assert_int_equal(logical_count("GPU"), on_gpu() && strcmp(good[i], "all") == 0);
    assert_int_equal(physical_count("GPU"), on_gpu()); /* hidden, but there */
    assert_ok(helio_shutdown());
  }
}

static void test_visible_devices_that_are_none(void **state) {
  static const struct {
    const char *value;
    helio_status status;
    const char *part;
  } rows[] = {
      {"cpu:0,cpu:0", HELIO_INVALID_ARGUMENT, "/physical_device:CPU:0 is named twice"},
      {"cpu:0,/device:CPU:0", HELIO_INVALID_ARGUMENT, "is named twice"},
      {"gpu:7", HELIO_NO_DEVICE, "there is no physical device 'gpu:7'"},
      {"cpu:0,tpu:0", HELIO_NO_DEVICE, "there is no physical device 'tpu:0'"},
      {"0", HELIO_NO_DEVICE,
       "HELIO_VISIBLE_DEVICES: there is no physical device '0'"}, /* as CUDA_VISIBLE_DEVICES has it */
      {"cpu:0;cpu:1", HELIO_INVALID_ARGUMENT, "is not the name of a device"},
      {"cpu:x", HELIO_INVALID_ARGUMENT, "is not the name of a device"},
  };
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    setenv("HELIO_VISIBLE_DEVICES", rows[i].value, 1);
    assert_int_equal(helio_init(), rows[i].status);
    expect_error(rows[i].status, rows[i].part);
  }
}

static void test_arguments_of_visible_devices(void **state) {
  const char *const twice[] = {"cpu:0", "CPU:0"}, *const unknown[] = {"cpu:0", "gpu:9"}, *const null[] = {NULL};
  (void)state;
  assert_int_equal(helio_set_visible_devices(twice, 2), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "is named twice");
  assert_int_equal(helio_set_visible_devices(unknown, 2), HELIO_NO_DEVICE);
  expect_error(HELIO_NO_DEVICE, "'gpu:9'");
  assert_int_equal(helio_set_visible_devices(null, 1), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "is not the name of a device");
  assert_int_equal(helio_set_visible_devices(NULL, 1), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "without names");
  assert_int_equal(helio_set_visible_devices(NULL, -1), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "without names");
  assert_int_equal(logical_count(NULL), 1 + on_gpu()); /* as it was */
  assert_ok(helio_set_visible_devices(NULL, 0));
  assert_int_equal(logical_count(NULL), 1);
  assert_string_equal(LOGICAL(NULL, 0)->type, "CPU");
}

/* ---- several GPUs ---- */

/* Visible ones are numbered anew, in the order given. */
static void check_reversed(void) {
  assert_int_equal(logical_count("GPU"), 2);
  assert_string_equal(LOGICAL("GPU", 0)->name, FULL "GPU:0");
  assert_string_equal(LOGICAL("GPU", 0)->physical, "/physical_device:GPU:2");
  assert_string_equal(LOGICAL("GPU", 1)->name, FULL "GPU:1");
  assert_string_equal(LOGICAL("GPU", 1)->physical, "/physical_device:GPU:0");
  assert_int_equal(logical_count("CPU"), 1); /* the host stays */
  assert_int_equal(physical_count("GPU"), 3);
}

static void test_visible_gpus(void **state) {
  const char *const names[] = {"gpu:2", "/physical_device:GPU:0"};
  (void)state;
  use_strict("3");
  setenv("HELIO_VISIBLE_DEVICES", "gpu:2,strict:0", 1);
  check_reversed();
  assert_ok(helio_shutdown());
  unsetenv("HELIO_VISIBLE_DEVICES");
  assert_ok(helio_set_visible_devices(names, 2));
  check_reversed();
  assert_ok(helio_set_logical_devices("gpu:2", NULL, 2));
  assert_int_equal(logical_count("GPU"), 3);
  assert_string_equal(LOGICAL("GPU", 1)->physical, "/physical_device:GPU:2");
  assert_string_equal(LOGICAL("GPU", 2)->physical, "/physical_device:GPU:0");
  helio_tensor *x = put("gpu:2", 64);
  assert_made(x);
  assert_string_equal(helio_tensor_device(x), FULL "GPU:2");
  assert_null(put("gpu:3", 64));
  expect_error(HELIO_NO_DEVICE, "GPU:3 unknown device.");
}

static void test_growth_may_differ(void **state) {
  (void)state;
  use_strict("2");
  assert_ok(helio_set_memory_growth("gpu:0", false));
  assert_ok(helio_set_memory_growth("gpu:1", true));
  assert_made(put("gpu:0", 1000));
  assert_made(put("gpu:1", 1000));
  helio_memory off = memory_of("gpu:0"), on = memory_of("gpu:1");
  assert_in_range(off.reserved, 14 * MIB, 16 * MIB);
  assert_in_range(on.reserved, 1000, 4 * MIB);
}

/* One GPU is in use; the others and the CPU may still be set. */
static void test_settings_of_devices_that_are_not_in_use(void **state) {
  (void)state;
  use_strict("2");
  helio_tensor *x = put("gpu:0", 64);
  assert_made(x);
  assert_ok(helio_set_memory_limit("gpu:1", 8 * MIB));
  assert_ok(helio_set_memory_growth("gpu:1", false));
  assert_ok(helio_set_logical_devices("cpu:0", NULL, 2));
  assert_int_equal(logical_count("CPU"), 2);
  assert_int_equal(memory_of("gpu:1").limit, 8 * MIB);
  float data[16];
  assert_ok(helio_tensor_read(x, data, sizeof data)); /* and it lives on */
  assert_true(data[15] == 1);
  assert_true(memory_of("gpu:0").in_use > 0);
  assert_int_equal(helio_set_logical_devices("gpu:1", NULL, 2), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "Virtual devices cannot be modified after being initialized");
  assert_made(put("gpu:1", 64));
  assert_int_equal(memory_of("gpu:1").reserved, 8 * MIB);
}

static void *first_use(void *argument) {
  pthread_barrier_wait(argument);
  return put("gpu:0", 64) ? argument : NULL;
}

/* Settings of one device change while another is opened: that one must not be replaced under the opener's hands. */
static void test_settings_change_during_a_first_use(void **state) {
  pthread_barrier_t gate;
  pthread_t thread;
  (void)state;
  use_strict("2");
  pthread_barrier_init(&gate, NULL, 2);
  for (int round = 0; round < (SANITIZED ? 20 : 150); round++) {
    void *result = NULL;
    assert_ok(helio_init());
    assert_int_equal(pthread_create(&thread, NULL, first_use, &gate), 0);
    pthread_barrier_wait(&gate);
    helio_status status = HELIO_OK;
    for (uint64_t i = 0; i < 50 && !status; i++) status = helio_set_memory_limit("gpu:1", i * MIB);
    pthread_join(thread, &result);
    assert_ok(status);
    if (result) {
      assert_true(memory_of("gpu:0").reserved > 0);
      assert_made(put("gpu:0", 64));
      assert_int_equal(memory_of("gpu:0").taken, 1);
    }
    assert_ok(helio_shutdown());
  }
  pthread_barrier_destroy(&gate);
}

/* Two logical devices of one card share what is free when growth is off. */
static void test_logical_gpus_share_without_growth(void **state) {
  (void)state;
  use_strict("1");
  setenv("HELIO_LOGICAL_DEVICES", "gpu:0=2", 1);
  setenv("HELIO_MEMORY_GROWTH", "0", 1);
  assert_made(put("gpu:0", 1000));
  assert_made(put("gpu:1", 1000));
  assert_in_range(memory_of("gpu:0").reserved, 7 * MIB, 8 * MIB);
  assert_in_range(memory_of("gpu:1").reserved, 7 * MIB, 9 * MIB);
}

/* ---- several backends ---- */

static void use_cards(const char *backends) {
  set_path("tests/unit/.libs/same_card_first.so", "tests/unit/.libs/same_card_second.so", "tests/plugins/strict/.libs",
           NULL);
  setenv("HELIO_BACKEND", backends, 1);
}

/* One card that two backends reach is counted once, through the one that is preferred. */
static void test_one_card_through_two_backends(void **state) {
  (void)state;
  use_cards("same-card-first,same-card-second");
  assert_int_equal(physical_count("GPU"), 1);
  assert_string_equal(PHYSICAL("GPU", 0)->backend, "same-card-first");
  assert_string_equal(PHYSICAL("GPU", 0)->bus_id, "0000:3b:00.0");
  assert_logged("INFO:helio:same-card-second device 0 at 0000:3b:00.0 is used through same-card-first", "");
  assert_ok(helio_shutdown());
  use_cards("same-card-second,same-card-first");
  assert_int_equal(physical_count("GPU"), 1);
  assert_string_equal(PHYSICAL("GPU", 0)->backend, "same-card-second");
}

/* GPUs of all backends are numbered together, in the order of the backends. */
static void test_numbering_across_backends(void **state) {
  static const struct {
    const char *backends;
    const char *expected[3]; /* backend of GPU:0, GPU:1, GPU:2 */
    int number;              /* of same-card-first:0 */
  } rows[] = {
      {"strict,same-card-first", {"strict", "strict", "same-card-first"}, 2},
      {"same-card-first,strict", {"same-card-first", "strict", "strict"}, 0},
      {"cpu,strict,same-card-first", {"strict", "strict", "same-card-first"}, 2},
  };
  (void)state;
  for (size_t i = 0; i < COUNT_OF(rows); i++) {
    use_cards(rows[i].backends);
    setenv("HELIO_STRICT_DEVICES", "2", 1);
    assert_int_equal(physical_count("GPU"), 3);
    int of_strict = 0;
    for (int j = 0; j < 3; j++) {
      const helio_device *device = LOGICAL("GPU", j);
      assert_int_equal(device->index, j);
      assert_string_equal(device->backend, rows[i].expected[j]);
      bool is_strict = strcmp(device->backend, "strict") == 0;
      assert_int_equal(device->backend_index, is_strict ? of_strict++ : 0);
    }
    helio_tensor *x = put("same-card-first:0", 64);
    assert_made(x);
    assert_string_equal(helio_tensor_device(x), LOGICAL("GPU", rows[i].number)->name);
    assert_ok(helio_shutdown());
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_lists_by_type),
      TEST(test_descriptions),
      TEST(test_order_of_preference),
      TEST(test_all_ways_to_name_a_device),
      TEST(test_names_that_are_none),
      TEST(test_splitting_by_variable),
      TEST(test_splits_that_are_none),
      TEST(test_splitting_by_call),
      TEST(test_logical_devices_have_memory_of_their_own),
      TEST(test_two_logical_cpus_with_limits),
      TEST(test_thread_shares),
      TEST(test_growth_on),
      TEST(test_growth_off_within_a_limit),
      TEST(test_growth_off_without_a_limit),
      TEST(test_fraction),
      TEST(test_the_least_bound_counts),
      TEST(test_past_the_limit),
      TEST(test_a_first_use_that_fails),
      TEST(test_sizes_of_memory_info),
      TEST(test_looking_is_not_a_use),
      TEST(test_lists_stay_valid),
      TEST(test_after_the_first_use),
      TEST(test_visible_cpu),
      TEST(test_visible_devices_that_are_none),
      TEST(test_arguments_of_visible_devices),
  };
  /* These bring their devices along and need not run in every variant. */
  const struct CMUnitTest strict_tests[] = {
      TEST(test_visible_gpus),
      TEST(test_growth_may_differ),
      TEST(test_settings_of_devices_that_are_not_in_use),
      TEST(test_settings_change_during_a_first_use),
      TEST(test_logical_gpus_share_without_growth),
      TEST(test_one_card_through_two_backends),
      TEST(test_numbering_across_backends),
  };
  remember_environment();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  return on_strict() ? failed + cmocka_run_group_tests(strict_tests, NULL, NULL) : failed;
}
