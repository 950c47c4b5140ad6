/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine grants: quotas of control groups laid out in a folder, and the affinity mask. */
#include <sched.h>

#include "runtime/machine.h"
#include "support.h"

#define V2    "sys/fs/cgroup/"
#define V1    "sys/fs/cgroup/cpu/"
#define QUOTA "cpu.cfs_quota_us"
#define SPAN  "cpu.cfs_period_us"
#define GROUP "proc/self/cgroup"

typedef struct layout {
  const char *what;
  int expected; /* cores, 0: no quota */
  struct {
    const char *path, *text;
  } files[8];
} layout;

static const layout layouts[] = {
    {"nothing at all", 0, {{"proc/unrelated", ""}}},
    {"an empty list of groups", 0, {{GROUP, ""}, {V2 "cpu.max", "100000 100000\n"}}},
    {"2: whole cores", 2, {{GROUP, "0::/\n"}, {V2 "cpu.max", "200000 100000\n"}}},
    {"2: rounded up", 2, {{GROUP, "0::/\n"}, {V2 "cpu.max", "150000 100000\n"}}},
    {"2: less than one core", 1, {{GROUP, "0::/\n"}, {V2 "cpu.max", "1000 100000\n"}}},
    {"2: another period", 4, {{GROUP, "0::/\n"}, {V2 "cpu.max", "200000 50000\n"}}},
    {"2: max", 0, {{GROUP, "0::/\n"}, {V2 "cpu.max", "max 100000\n"}}},
    {"2: no file", 0, {{GROUP, "0::/a/b\n"}}},
    {"2: the group's own", 3, {{GROUP, "0::/a/b\n"}, {V2 "a/b/cpu.max", "300000 100000\n"}}},
    {"2: the group's is the least",
     1,
     {{GROUP, "0::/a/b\n"},
      {V2 "a/b/cpu.max", "100000 100000\n"},
      {V2 "a/cpu.max", "300000 100000\n"},
      {V2 "cpu.max", "200000 100000\n"}}},
    {"2: one in the middle is the least",
     2,
     {{GROUP, "0::/a/b/c\n"},
      {V2 "a/b/c/cpu.max", "max 100000\n"},
      {V2 "a/b/cpu.max", "200000 100000\n"},
      {V2 "a/cpu.max", "900000 100000\n"}}},
    {"2: the uppermost is the least",
     2,
     {{GROUP, "0::/a/b\n"}, {V2 "a/b/cpu.max", "500000 100000\n"}, {V2 "cpu.max", "200000 100000\n"}}},
    {"2: a group beside it does not count",
     0,
     {{GROUP, "0::/a/b\n"}, {V2 "a/c/cpu.max", "100000 100000\n"}, {V2 "ab/cpu.max", "100000 100000\n"}}},
    {"2: below it does not count", 0, {{GROUP, "0::/a\n"}, {V2 "a/b/cpu.max", "100000 100000\n"}}},
    {"2: no end of line", 2, {{GROUP, "0::/a"}, {V2 "a/cpu.max", "200000 100000"}}},
    {"2: spaces and colons in a name",
     2,
     {{GROUP, "0::/a b:c.slice\n"}, {V2 "a b:c.slice/cpu.max", "200000 100000\n"}}},
    {"2: words", 0, {{GROUP, "0::/\n"}, {V2 "cpu.max", "a lot\n"}}},
    {"2: empty", 0, {{GROUP, "0::/\n"}, {V2 "cpu.max", ""}}},
    {"2: one number", 0, {{GROUP, "0::/\n"}, {V2 "cpu.max", "200000\n"}}},
    {"2: no period", 0, {{GROUP, "0::/\n"}, {V2 "cpu.max", "200000 0\n"}}},
    {"2: negative period", 0, {{GROUP, "0::/\n"}, {V2 "cpu.max", "200000 -1\n"}}},
    {"2: negative quota", 0, {{GROUP, "0::/\n"}, {V2 "cpu.max", "-200000 100000\n"}}},
    {"2: zero quota", 0, {{GROUP, "0::/\n"}, {V2 "cpu.max", "0 100000\n"}}},
    {"2: more than fits", INT_MAX, {{GROUP, "0::/\n"}, {V2 "cpu.max", "9223372036854775807 1\n"}}},
    {"2: nearly more than fits", INT_MAX, {{GROUP, "0::/\n"}, {V2 "cpu.max", "9223372036854775807 100000\n"}}},
    {"2: garbage below a good one",
     2,
     {{GROUP, "0::/a\n"}, {V2 "a/cpu.max", "\x01\x02\xff"}, {V2 "cpu.max", "200000 100000\n"}}},
    {"1: whole cores", 2, {{GROUP, "4:cpu,cpuacct:/g\n"}, {V1 "g/" QUOTA, "200000\n"}, {V1 "g/" SPAN, "100000\n"}}},
    {"1: second in the list",
     2,
     {{GROUP, "4:cpuacct,cpu:/g\n"}, {V1 "g/" QUOTA, "200000\n"}, {V1 "g/" SPAN, "100000\n"}}},
    {"1: alone, in the uppermost group", 1, {{GROUP, "4:cpu:/\n"}, {V1 QUOTA, "50000\n"}, {V1 SPAN, "100000\n"}}},
    {"1: no quota", 0, {{GROUP, "4:cpu:/g\n"}, {V1 "g/" QUOTA, "-1\n"}, {V1 "g/" SPAN, "100000\n"}}},
    {"1: no period", 0, {{GROUP, "4:cpu:/g\n"}, {V1 "g/" QUOTA, "200000\n"}}},
    {"1: garbage", 0, {{GROUP, "4:cpu:/g\n"}, {V1 "g/" QUOTA, "many\n"}, {V1 "g/" SPAN, "long\n"}}},
    {"1: the group above is the least",
     2,
     {{GROUP, "4:cpu:/g/h\n"},
      {V1 "g/h/" QUOTA, "700000\n"},
      {V1 "g/h/" SPAN, "100000\n"},
      {V1 "g/" QUOTA, "200000\n"},
      {V1 "g/" SPAN, "100000\n"}}},
    {"1: other controllers",
     0,
     {{GROUP, "3:cpuset:/g\n2:cpuacct:/g\n1:name=cpu:/g\n5:mycpu,memory:/g\n"},
      {V1 "g/" QUOTA, "200000\n"},
      {V1 "g/" SPAN, "100000\n"}}},
    {"1: seen from a container", 2, {{GROUP, "4:cpu:/docker/0123\n"}, {V1 QUOTA, "200000\n"}, {V1 SPAN, "100000\n"}}},
    {"both: 1 is the least",
     2,
     {{GROUP, "4:cpu:/g\n0::/g\n"},
      {V1 "g/" QUOTA, "200000\n"},
      {V1 "g/" SPAN, "100000\n"},
      {V2 "g/cpu.max", "300000 100000\n"}}},
    {"both: 2 is the least",
     1,
     {{GROUP, "4:cpu:/g\n0::/g\n"},
      {V1 "g/" QUOTA, "200000\n"},
      {V1 "g/" SPAN, "100000\n"},
      {V2 "g/cpu.max", "100000 100000\n"}}},
    {"lines that are none", 2, {{GROUP, "\n:\n::\nabc\n7:cpu\n0::/g\n"}, {V2 "g/cpu.max", "200000 100000\n"}}},
};

static void test_quotas_of_groups(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(layouts); i++) {
    char root[64];
    make_folder(root);
    for (size_t j = 0; j < COUNT_OF(layouts[i].files) && layouts[i].files[j].path; j++) {
      write_file(root, layouts[i].files[j].path, layouts[i].files[j].text);
    }
    int cores = hi_machine_quota(root);
    remove_folder(root);
    if (cores != layouts[i].expected) fail_msg("%s: %d, not %d", layouts[i].what, cores, layouts[i].expected);
  }
}

/* Names longer than any buffer: no answer is expected, only that nothing breaks. */
static void test_endless_names(void **state) {
  char root[64], long_root[3000], *text = malloc(100000);
  (void)state;
  assert_non_null(text);
  make_folder(root);
  for (int i = 0; i < 99998; i++) text[i] = i % 200 == 5 ? '/' : 'x';
  memcpy(text, "0::/", 4);
  text[99998] = '\n';
  text[99999] = 0;
  write_file(root, GROUP, text);
  write_file(root, V2 "cpu.max", "200000 100000\n");
  int cores = hi_machine_quota(root);
  assert_true(cores == 0 || cores == 2);
  memset(long_root, 'y', sizeof long_root - 1);
  long_root[0] = '/';
  long_root[sizeof long_root - 1] = 0;
  assert_int_equal(hi_machine_quota(long_root), 0);
  remove_folder(root);
  free(text);
}

/* Keeps `*argument` cores of the mask and looks. */
static bool cores_after_affinity(void *argument) {
  int wanted = *(int *)argument, kept = 0;
  cpu_set_t all, some;
  CPU_ZERO(&some);
  CHILD_CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
  for (int i = CPU_SETSIZE - 1; i >= 0 && kept < wanted; i--) {
    if (!CPU_ISSET(i, &all)) continue;
    CPU_SET(i, &some);
    kept++;
  }
  CHILD_CHECK(sched_setaffinity(0, sizeof some, &some) == 0);
  int quota = hi_machine_quota("");
  int expected = quota > 0 && quota < kept ? quota : kept;
  CHILD_CHECK(hi_machine_cores() == expected);
  return true;
}

static void test_affinity_is_honoured(void **state) {
  (void)state;
  for (int cores = 1; cores <= 3; cores++) assert_int_equal(run_in_child(cores_after_affinity, &cores), 0);
}

static void test_this_machine_grants_something(void **state) {
  (void)state;
  assert_in_range(hi_machine_cores(), 1, sysconf(_SC_NPROCESSORS_CONF));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_quotas_of_groups),
      cmocka_unit_test(test_endless_names),
      cmocka_unit_test(test_affinity_is_honoured),
      cmocka_unit_test(test_this_machine_grants_something),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
