/* SPDX-License-Identifier: Apache-2.0 */
/* Names of devices: every form, what is refused, and that printing and parsing undo each other. */
#include "device/name.h"
#include "support.h"

#define FULL "/job:localhost/replica:0/task:0"
#define K63  "abcdefghijklmnopqrstuvwxyz0123456789-abcdefghijklmnopqrstuvwxyz"

static const struct {
  const char *text, *kind;
  int index;
  bool physical, remote;
} good[] = {
    {"cpu:0", "cpu", 0, false, false},
    {"/cpu:0", "cpu", 0, false, false},
    {"CPU:0", "cpu", 0, false, false},
    {"/GpU:1", "gpu", 1, false, false},
    {"gpu", "gpu", 0, false, false},
    {"/gpu", "gpu", 0, false, false},
    {"device:cpu:3", "cpu", 3, false, false},
    {"/device:GPU:1", "gpu", 1, false, false},
    {"/device:GPU", "gpu", 0, false, false},
    {"/DEVICE:gpu:12", "gpu", 12, false, false},
    {"cuda:0", "cuda", 0, false, false},
    {"hip:1", "hip", 1, false, false},
    {"my-own_backend2:7", "my-own_backend2", 7, false, false},
    {"cpu:000001", "cpu", 1, false, false},
    {"cpu:999999", "cpu", 999999, false, false},
    {K63 ":5", K63, 5, false, false},
    {FULL "/device:GPU:0", "gpu", 0, false, false},
    {FULL "/gpu:2", "gpu", 2, false, false},
    {"job:localhost/replica:0/task:0/device:CPU:1", "cpu", 1, false, false},
    {"/JOB:LocalHost/Replica:0/TASK:0/Device:gpu:2", "gpu", 2, false, false},
    {"/job:localhost/device:CPU:0", "cpu", 0, false, false},
    {"/replica:0/cpu:0", "cpu", 0, false, false},
    {"/task:0/device:cpu:0", "cpu", 0, false, false},
    {"/job:localhost/task:0/cpu:4", "cpu", 4, false, false},
    {"/physical_device:GPU:0", "gpu", 0, true, false},
    {"PHYSICAL_DEVICE:cpu", "cpu", 0, true, false},
    {"/job:worker/replica:0/task:0/device:GPU:0", "gpu", 0, false, true},
    {"/job:localhost/replica:1/task:0/device:GPU:0", "gpu", 0, false, true},
    {"/job:localhost/replica:0/task:3/device:CPU:0", "cpu", 0, false, true},
    {"/task:1/cpu:0", "cpu", 0, false, true},
};

static const char *const bad[] = {
    "",
    "/",
    ":",
    ":0",
    "//cpu:0",
    "cpu:",
    "cpu:-1",
    "cpu:+1",
    "cpu: 0",
    " cpu:0",
    "cpu:0 ",
    "cpu:0x1",
    "cpu:1000000", /* no machine has that many */
    "cpu:00000000",
    "cpu:0:1",
    "cpu:0/",
    "cpu/0",
    "cpu:cpu:0",
    "gpu:0,gpu:1",
    "gpu#:0",
    "cp\xc3\xbc:0",
    "cpu\t:0",
    "cpu:0\n",
    "gpu:*",
    "device",
    "/device",
    "/device:",
    "/device::0",
    "/device:GPU:",
    "/device:GPU:0/",
    "/device:/cpu:0",
    "physical_device",
    "/physical_device:",
    "/job:localhost",
    "/job:localhost/",
    "/job:/device:cpu:0",
    "/job:localhost//device:cpu:0",
    "/job:local host/device:cpu:0",
    "/task:/cpu:0",
    "/replica:0/job:localhost/cpu:0", /* in another order */
    "/task:0/replica:0/cpu:0",
    FULL,
    FULL "/",
    "x" K63 ":0", /* one letter too many */
    "/job:x" K63 "/cpu:0",
};

static void test_all_forms(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(good); i++) {
    hi_name name;
    memset(&name, 0xA5, sizeof name);
    if (!hi_name_parse(good[i].text, &name)) fail_msg("'%s' was refused", good[i].text);
    assert_string_equal(name.kind, good[i].kind);
    if (name.index != good[i].index || name.physical != good[i].physical || name.remote != good[i].remote) {
      fail_msg("'%s': index %d, physical %d, remote %d", good[i].text, name.index, name.physical, name.remote);
    }
  }
}

static void test_what_is_no_name(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    hi_name name;
    if (hi_name_parse(bad[i], &name)) fail_msg("'%s' was taken for %s:%d", bad[i], name.kind, name.index);
  }
}

static void test_printing(void **state) {
  char text[HI_NAME_LENGTH];
  (void)state;
  hi_name_print("gpu", 0, text);
  assert_string_equal(text, FULL "/device:GPU:0");
  hi_name_print("CPU", 17, text);
  assert_string_equal(text, FULL "/device:CPU:17");
  hi_name_print("my-own_backend2", 999999, text);
  assert_string_equal(text, FULL "/device:MY-OWN_BACKEND2:999999");
  hi_name_print_physical("Gpu", 3, text);
  assert_string_equal(text, "/physical_device:GPU:3");
}

/* A kind that is too long is cut, never written past the end; the number is always there. */
static void test_printing_stays_in_its_buffer(void **state) {
  struct {
    char text[HI_NAME_LENGTH];
    char guard[64];
  } buffer;
  char kind[300];
  (void)state;
  memset(&buffer, 0x5A, sizeof buffer);
  memset(kind, 'x', sizeof kind - 1);
  kind[sizeof kind - 1] = 0;
  hi_name_print(kind, INT_MAX, buffer.text);
  assert_true(strlen(buffer.text) < HI_NAME_LENGTH);
  assert_non_null(strstr(buffer.text, ":2147483647"));
  for (size_t i = 0; i < sizeof buffer.guard; i++) assert_int_equal(buffer.guard[i], 0x5A);
}

static void check_round_trip(const hi_name *name) {
  char text[HI_NAME_LENGTH];
  hi_name again;
  if (name->physical) {
    hi_name_print_physical(name->kind, name->index, text);
  } else {
    hi_name_print(name->kind, name->index, text);
  }
  if (!hi_name_parse(text, &again))
    fail_msg("%s:%d was printed as '%s', which is no name", name->kind, name->index, text);
  assert_string_equal(again.kind, name->kind);
  assert_int_equal(again.index, name->index);
  assert_int_equal(again.physical, name->physical);
  assert_false(again.remote);
}

static void test_round_trips_of_random_names(void **state) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
  uint64_t seed = 42;
  (void)state;
  for (int i = 0; i < 100000; i++) {
    hi_name name = {.index = (int)(next_random(&seed) % 1000000), .physical = next_random(&seed) & 1};
    size_t length = 1 + next_random(&seed) % (HI_KIND_LENGTH - 1);
    for (size_t at = 0; at < length; at++) name.kind[at] = letters[next_random(&seed) % (sizeof letters - 1)];
    check_round_trip(&name);
  }
}

/* Random strings of the words that names are made of, with noise in between, each in memory of its exact length. */
static size_t random_string(uint64_t *seed, char *text, size_t room) {
  static const char *const words[] = {"/",
                                      ":",
                                      "job",
                                      "localhost",
                                      "replica",
                                      "task",
                                      "device",
                                      "physical_device",
                                      "cpu",
                                      "GPU",
                                      "cuda",
                                      "0",
                                      "1",
                                      "77",
                                      "/job:localhost/replica:0/task:0/",
                                      "-",
                                      "_"};
  size_t length = 0, pieces = next_random(seed) % 9;
  for (size_t i = 0; i < pieces; i++) {
    const char *word = words[next_random(seed) % COUNT_OF(words)];
    char noise[2] = {(char)(1 + next_random(seed) % 255), 0};
    if (next_random(seed) % 16 == 0) word = noise;
    if (length + strlen(word) >= room) break;
    strcpy(text + length, word);
    length += strlen(word);
  }
  text[length] = 0;
  return length;
}

static void test_random_strings_do_no_harm(void **state) {
  uint64_t seed = 7;
  int names = 0;
  (void)state;
  for (int i = 0; i < 100000; i++) {
    char text[400];
    hi_name name;
    size_t length = random_string(&seed, text, sizeof text);
    char *exact = malloc(length + 1);
    assert_non_null(exact);
    memcpy(exact, text, length + 1);
    bool is_name = hi_name_parse(exact, &name);
    free(exact);
    if (!is_name) continue;
    names++;
    assert_in_range(strlen(name.kind), 1, HI_KIND_LENGTH - 1);
    assert_in_range(name.index, 0, 999999);
    check_round_trip(&name);
  }
  assert_in_range(names, 1000, 99000); /* else the generator makes nothing of interest */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all_forms),
      cmocka_unit_test(test_what_is_no_name),
      cmocka_unit_test(test_printing),
      cmocka_unit_test(test_printing_stays_in_its_buffer),
      cmocka_unit_test(test_round_trips_of_random_names),
      cmocka_unit_test(test_random_strings_do_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
