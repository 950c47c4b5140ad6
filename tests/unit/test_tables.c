/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a plugin's tables: growth at their ends, what is required, what is filled in. */
#define MINIMAL_NAME "in-memory"
#define MINIMAL_OWN_ENTRY
#include "../plugins/bad/minimal.h"

#include "runtime/plugins.h"
#include "support.h"

/* A struct with room for fields of the future behind it. */
typedef union longer {
  size_t size;
  unsigned char bytes[512];
  void *aligned;
} longer;

static void lengthen(longer *to, const void *from, size_t bytes, size_t size) {
  memset(to, 0, sizeof *to);
  memcpy(to, from, bytes);
  to->size = size;
}

static void test_reading_structs(void **state) {
  longer from;
  size_t to[4];
  (void)state;
  for (size_t size = 0; size <= 64; size++) {
    memset(&from, 0xEE, sizeof from);
    for (size_t at = 32; at < size; at++) from.bytes[at] = 0;
    from.size = size;
    memset(to, 0x77, sizeof to);
    const char *wrong = hi_struct_read(to, sizeof to, 16, &from);
    if (size < 16) {
      assert_string_equal(wrong, "is shorter than what is required of it");
      continue;
    }
    assert_null(wrong);
    size_t kept = size < sizeof to ? size : sizeof to;
    assert_memory_equal(to, &from, kept);
    for (size_t at = kept; at < sizeof to; at++) assert_int_equal(((unsigned char *)to)[at], 0);
    if (size <= 32) continue;
    from.bytes[size - 1] = 1; /* the last byte counts */
    assert_string_equal(hi_struct_read(to, sizeof to, 16, &from), "has fields that this version does not know");
    from.bytes[size - 1] = 0;
    from.bytes[size] = 1; /* what lies behind does not */
    assert_null(hi_struct_read(to, sizeof to, 16, &from));
  }
}

static helio_status any_plan(helio_backend_device *device, const helio_call *c, helio_plan_answer *answer) {
  (void)device, (void)c, (void)answer;
  return HELIO_NOT_SUPPORTED;
}
static helio_status any_run(helio_plan *plan, const helio_run *run) {
  (void)plan, (void)run;
  return HELIO_OK;
}
static void any_plan_free(helio_plan *plan) {
  (void)plan;
}

static void any_host_free(helio_backend_device *device, void *memory) {
  (void)device, (void)memory;
}

static const helio_kernel kernel = {.size = sizeof kernel,
                                    .operation = HELIO_OP_ADD,
                                    .types = HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_INT32),
                                    .plan = any_plan,
                                    .run = any_run,
                                    .plan_free = any_plan_free};
static const helio_kernel *const kernels[] = {&kernel};
static const helio_kernel_table kernel_table = {.size = sizeof kernel_table, .count = 1, .kernels = kernels};
static const helio_plugin sound = MINIMAL_ENTRY;

/* A collective whose functions are never called. */
static helio_collective_table collective_table(void) {
  helio_collective_table table = {.size = sizeof table};
  for (size_t at = sizeof(size_t); at < sizeof table; at += sizeof(void *)) {
    void (*function)(helio_plan *) = any_plan_free;
    memcpy((char *)&table + at, &function, sizeof function);
  }
  return table;
}

/* Reads the tables of an entry; NULL if they are good, else the reason. */
static const char *wrong_with(const helio_plugin *entry, hi_plugin *plugin) {
  static char reason[1024];
  memset(plugin, 0, sizeof *plugin);
  bool good = hi_plugin_read_tables(plugin, entry);
  snprintf(reason, sizeof reason, "%s", plugin->report.reason);
  if (!good) assert_int_equal(plugin->report.status, HELIO_PLUGIN_MALFORMED);
  free(plugin->kernels);
  plugin->kernels = NULL;
  return good ? NULL : reason;
}

/* One of the tables of an entry. */
typedef struct table {
  const char *what;       /* as reasons name it */
  const void *known;      /* a good one */
  size_t bytes, required; /* in all, and up to the last required field */
  size_t first;           /* required pointer */
} table;

static helio_collective_table any_collective;

static const table tables[] = {
    {"entry", &sound, sizeof(helio_plugin), HELIO_STRUCT_SIZE(helio_plugin, finish), offsetof(helio_plugin, name)},
    {"table of devices", &minimal_devices, sizeof(helio_device_table),
     HELIO_STRUCT_SIZE(helio_device_table, synchronize), offsetof(helio_device_table, count)},
    {"table of memory", &minimal_memory, sizeof(helio_memory_table), HELIO_STRUCT_SIZE(helio_memory_table, fill),
     offsetof(helio_memory_table, allocate)},
    {"table of streams", &minimal_streams, sizeof(helio_stream_table), HELIO_STRUCT_SIZE(helio_stream_table, wait),
     offsetof(helio_stream_table, create)},
    {"table of kernels", &kernel_table, sizeof(helio_kernel_table), sizeof(helio_kernel_table), 0},
    {"kernel", &kernel, sizeof(helio_kernel), sizeof(helio_kernel), offsetof(helio_kernel, plan)},
    {"table of collectives", &any_collective, sizeof(helio_collective_table),
     HELIO_STRUCT_SIZE(helio_collective_table, broadcast), offsetof(helio_collective_table, offer)},
};

/* What is wrong with the sound plugin once `replaced` stands in the place of table number `which`. */
static const char *wrong_with_table(size_t which, const longer *replaced, hi_plugin *plugin) {
  longer entry;
  const helio_kernel *list[] = {(const helio_kernel *)replaced};
  helio_kernel_table of_one = kernel_table;
  lengthen(&entry, &sound, sizeof sound, sizeof sound);
  helio_plugin *known = (helio_plugin *)&entry;
  known->kernels = &kernel_table;
  if (which == 0) entry = *replaced;
  if (which == 1) known->devices = (const helio_device_table *)replaced;
  if (which == 2) known->memory = (const helio_memory_table *)replaced;
  if (which == 3) known->streams = (const helio_stream_table *)replaced;
  if (which == 4) known->kernels = (const helio_kernel_table *)replaced;
  if (which == 5) {
    of_one.kernels = list;
    known->kernels = &of_one;
  }
  if (which == 6) known->collective = (const helio_collective_table *)replaced;
  return wrong_with(known, plugin);
}

static void expect_wrong(const char *reason, const char *what, const char *part) {
  char expected[200];
  snprintf(expected, sizeof expected, "its %s %s", what, part);
  if (!reason || strcmp(reason, expected) != 0)
    fail_msg("\"%s\" instead of \"%s\"", reason ? reason : "good", expected);
}

static void test_the_ends_of_tables(void **state) {
  static hi_plugin plugin;
  (void)state;
  any_collective = collective_table();
  for (size_t i = 0; i < COUNT_OF(tables); i++) {
    const table *t = &tables[i];
    longer changed;
    /* longer with zeros: a newer one that asks for nothing */
    lengthen(&changed, t->known, t->bytes, t->bytes + 24);
    const char *wrong = wrong_with_table(i, &changed, &plugin);
    if (wrong) fail_msg("%s with a tail of zeros: %s", t->what, wrong);
    /* one bit anywhere in the tail */
    for (size_t at = t->bytes; at < t->bytes + 24; at++) {
      lengthen(&changed, t->known, t->bytes, t->bytes + 24);
      changed.bytes[at] = 0x80;
      expect_wrong(wrong_with_table(i, &changed, &plugin), t->what, "has fields that this version does not know");
    }
    /* behind the end */
    lengthen(&changed, t->known, t->bytes, t->bytes + 24);
    changed.bytes[t->bytes + 24] = 1;
    assert_null(wrong_with_table(i, &changed, &plugin));
    /* too short */
    for (size_t size = i == 0 ? 24 : 0; size < t->required; size += 8) {
      lengthen(&changed, t->known, t->bytes, size);
      expect_wrong(wrong_with_table(i, &changed, &plugin), t->what, "is shorter than what is required of it");
    }
  }
}

/* Older tables end before the optional entries; whatever stands behind is not looked at. An entry that ends before its
 * tables is another matter: it has none. */
static void test_shorter_tables(void **state) {
  static hi_plugin plugin;
  (void)state;
  any_collective = collective_table();
  for (size_t i = 1; i < COUNT_OF(tables); i++) {
    longer changed;
    lengthen(&changed, tables[i].known, tables[i].bytes, tables[i].required);
    memset(changed.bytes + tables[i].required, 0xEE, sizeof changed.bytes - tables[i].required);
    const char *wrong = wrong_with_table(i, &changed, &plugin);
    if (wrong) fail_msg("short %s: %s", tables[i].what, wrong);
    assert_ptr_equal(plugin.devices.count, minimal_count);
    assert_non_null(plugin.devices.native_device); /* filled in */
    assert_null(plugin.devices.native_device(NULL));
    assert_non_null(plugin.streams.native_stream);
    assert_non_null(plugin.memory.host_allocate);
    assert_non_null(plugin.memory.host_free);
    assert_non_null(plugin.memory.copy_peer);
    assert_int_equal(plugin.memory.copy_peer(NULL, NULL, (helio_place){NULL, 0}, NULL, (helio_place){NULL, 0}, 1),
                     HELIO_NOT_SUPPORTED);
    assert_non_null(plugin.memory.native_buffer);
  }
  longer entry;
  lengthen(&entry, &sound, sizeof sound, HELIO_STRUCT_SIZE(helio_plugin, finish));
  expect_wrong(wrong_with((const helio_plugin *)&entry, &plugin), "entry", "has neither devices nor a collective");
}

static void test_required_entries(void **state) {
  static hi_plugin plugin;
  (void)state;
  any_collective = collective_table();
  for (size_t i = 0; i < COUNT_OF(tables); i++) {
    for (size_t at = tables[i].first; tables[i].first && at < tables[i].required; at += sizeof(void *)) {
      longer changed;
      lengthen(&changed, tables[i].known, tables[i].bytes, tables[i].bytes);
      memset(changed.bytes + at, 0, sizeof(void *));
      const char *wrong = wrong_with_table(i, &changed, &plugin);
      if (!wrong || !strstr(wrong, tables[i].what) || !strstr(wrong, "lacks the required entry ")) {
        fail_msg("%s without the entry at %zu: %s", tables[i].what, at, wrong ? wrong : "good");
      }
    }
  }
}

static void test_entries_that_do_not_fit_together(void **state) {
  static hi_plugin plugin;
  helio_memory_table half = minimal_memory;
  helio_kernel_table none = {.size = sizeof none, .count = 3}, hole = {.size = sizeof hole, .count = 1};
  static const helio_kernel *const nothing[] = {NULL};
  hole.kernels = nothing;
  half.host_free = any_host_free;
  helio_plugin entries[6];
  (void)state;
  for (int i = 0; i < 6; i++) entries[i] = sound;
  entries[0].memory = NULL;
  entries[1].streams = NULL;
  entries[2].memory = &half;
  entries[3].kernels = &none;
  entries[4].kernels = &hole;
  entries[5].devices = NULL;
  expect_wrong(wrong_with(&entries[0], &plugin), "backend", "has devices but no table of memory or streams");
  expect_wrong(wrong_with(&entries[1], &plugin), "backend", "has devices but no table of memory or streams");
  expect_wrong(wrong_with(&entries[2], &plugin), "table of memory",
               "has one of host_allocate and host_free but not the other");
  expect_wrong(wrong_with(&entries[3], &plugin), "table of kernels", "counts kernels but has none");
  expect_wrong(wrong_with(&entries[4], &plugin), "table of kernels", "holds NULL");
  expect_wrong(wrong_with(&entries[5], &plugin), "entry", "has neither devices nor a collective");
}

static helio_status any_group(helio_plugin_state *state) {
  (void)state;
  return HELIO_OK;
}

static void test_groups_of_calls(void **state) {
  static hi_plugin plugin;
  helio_plugin entry = sound;
  (void)state;
  any_collective = collective_table();
  entry.collective = &any_collective;
  any_collective.group_start = any_collective.group_end = NULL;
  assert_null(wrong_with(&entry, &plugin));
  assert_int_equal(plugin.collective.group_start(NULL), HELIO_OK);
  assert_int_equal(plugin.collective.group_end(NULL), HELIO_OK);
  any_collective.group_end = any_group;
  expect_wrong(wrong_with(&entry, &plugin), "table of collectives",
               "has one of group_start and group_end but not the other");
  any_collective.group_start = any_group;
  assert_null(wrong_with(&entry, &plugin));
  assert_ptr_equal(plugin.collective.group_start, any_group);
}

static void test_names_of_plugins(void **state) {
  static const char *const bad[] = {
      "",    "Cpu",      "a b", "a_b",
      "a:b", "\xc3\xa4", "a/b", "0123456789012345678901234567890123456789012345678901234567890123"};
  static const char *const good[] = {"a", "0", "my-own-2",
                                     "012345678901234567890123456789012345678901234567890123456789012"};
  static hi_plugin plugin;
  helio_plugin entry = sound;
  (void)state;
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    entry.name = bad[i];
    assert_non_null(wrong_with(&entry, &plugin));
  }
  for (size_t i = 0; i < COUNT_OF(good); i++) {
    entry.name = good[i];
    assert_null(wrong_with(&entry, &plugin));
    assert_string_equal(plugin.report.name, good[i]);
  }
}

/* Operations and types that this core does not know are nobody's business. */
static void test_kernels_of_the_future(void **state) {
  static hi_plugin plugin;
  helio_kernel future = kernel;
  const helio_kernel *list[] = {&future, &kernel};
  helio_kernel_table two = {.size = sizeof two, .count = 2, .kernels = list};
  helio_plugin entry = sound;
  (void)state;
  entry.kernels = &two;
  future.operation = 100000;
  future.types = UINT32_MAX;
  memset(&plugin, 0, sizeof plugin);
  assert_true(hi_plugin_read_tables(&plugin, &entry));
  assert_int_equal(plugin.kernel_count, 2);
  assert_ptr_equal(plugin.kernel_of[HELIO_OP_ADD][HELIO_FLOAT32], &plugin.kernels[1]);
  assert_ptr_equal(plugin.kernel_of[HELIO_OP_ADD][HELIO_INT32], &plugin.kernels[1]);
  assert_null(plugin.kernel_of[HELIO_OP_ADD][HELIO_FLOAT64]);
  assert_null(plugin.kernel_of[HELIO_OP_SUB][HELIO_FLOAT32]);
  free(plugin.kernels);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reading_structs),
      cmocka_unit_test(test_the_ends_of_tables),
      cmocka_unit_test(test_shorter_tables),
      cmocka_unit_test(test_required_entries),
      cmocka_unit_test(test_entries_that_do_not_fit_together),
      cmocka_unit_test(test_groups_of_calls),
      cmocka_unit_test(test_names_of_plugins),
      cmocka_unit_test(test_kernels_of_the_future),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
