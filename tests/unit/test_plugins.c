/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, refusing, choosing and unloading plugins, with the family of bad plugins (tests/plugins/bad). */
#define MINIMAL_NAME "in-memory"
#define MINIMAL_OWN_ENTRY
#include "../plugins/bad/minimal.h"

#include "runtime/error.h"
#include "runtime/plugins.h"
#include "support.h"

/* ---- the family ---- */

static const struct member {
  const char *file, *name; /* the name that is reported */
  helio_plugin_status status;
  const char *reason; /* a part of it */
} family[] = {
    {"bad_name", "bad_name", HELIO_PLUGIN_MALFORMED, "its name is empty, too long, or has other than lower case"},
    {"bad_parameter", "bad-parameter", HELIO_PLUGIN_MALFORMED, "parameter HELIO_BAD_PARAMETER_SILENT"},
    {"foreign", "foreign", HELIO_PLUGIN_NO_SYMBOL, "it does not export helio_plugin_entry"},
    {"init_fails", "init-fails", HELIO_PLUGIN_INIT_FAILED, "the device was there a moment ago"},
    {"minimal", "minimal", HELIO_PLUGIN_USABLE, "one device without kernels"},
    {"missing_required", "missing-required", HELIO_PLUGIN_MALFORMED,
     "its table of memory lacks the required entry copy"},
    {"newer_major", "newer_major", HELIO_PLUGIN_TOO_NEW, "it was built for ABI 1."},
    {"no_devices", "no-devices", HELIO_PLUGIN_NO_DEVICES, "no such card is built in; get one from the shop"},
    {"no_symbol", "no_symbol", HELIO_PLUGIN_NO_SYMBOL, "it does not export helio_plugin_entry"},
    {"older_minor", "older_minor", HELIO_PLUGIN_TOO_OLD, "it was built for ABI 0."},
    {"probe_fails", "probe-fails", HELIO_PLUGIN_PROBE_FAILED, "the driver answers, but not with anything that"},
    {"short_struct", "short_struct", HELIO_PLUGIN_MALFORMED, "its entry is shorter than what is required of it"},
    {"short_tables", "short-tables", HELIO_PLUGIN_USABLE, "one device without kernels"},
    {"text", "text", HELIO_PLUGIN_CANNOT_OPEN, "text.so"},
    {"twin_first", "twin-first", HELIO_PLUGIN_USABLE, "one device without kernels"},
    {"twin_second", "twin-second", HELIO_PLUGIN_USABLE, "one device without kernels"},
    {"unknown_table_tail", "unknown-table-tail", HELIO_PLUGIN_MALFORMED,
     "its table of memory has fields that this version does not know"},
    {"unknown_tail", "unknown_tail", HELIO_PLUGIN_MALFORMED, "its entry has fields that this version does not know"},
    {"wrong_magic", "wrong_magic", HELIO_PLUGIN_NOT_A_PLUGIN, "its magic number is wrong"},
    {"zero_size", "zero_size", HELIO_PLUGIN_MALFORMED, "its entry is 0 bytes long"},
    {"zero_tail", "zero-tail", HELIO_PLUGIN_USABLE, "one device without kernels"},
};

static void path_of(const char *file, char path[PATH_MAX]) {
  int length = snprintf(path, PATH_MAX, "%s/tests/plugins/bad/.libs/%s.so", build_folder(), file);
  assert_in_range(length, 1, PATH_MAX - 1);
}

/* HELIO_PLUGIN_PATH: these folders and files, then where the CPU's plugin lies. NULL ends the list. */
static void set_path(const char *first, ...) {
  char path[8 * PATH_MAX] = "";
  va_list more;
  va_start(more, first);
  for (const char *place = first; place; place = va_arg(more, const char *)) {
    snprintf(path + strlen(path), sizeof path - strlen(path), "%s:", place);
  }
  va_end(more);
  snprintf(path + strlen(path), sizeof path - strlen(path), "%s", given_path);
  setenv("HELIO_PLUGIN_PATH", path, 1);
}

static const helio_plugin_report *report_on(const char *path) {
  int count;
  const helio_plugin_report *const *reports = helio_plugins(&count);
  assert_made(reports);
  for (int i = 0; i < count; i++) {
    if (strcmp(reports[i]->path, path) == 0) return reports[i];
  }
  fail_msg("there is no report on %s", path);
  return NULL;
}

static const helio_plugin_report *report_named(const char *name) {
  int count;
  const helio_plugin_report *const *reports = helio_plugins(&count);
  assert_made(reports);
  for (int i = 0; i < count; i++) {
    if (strcmp(reports[i]->name, name) == 0) return reports[i];
  }
  return NULL;
}

static void check_report(const helio_plugin_report *report, const struct member *m) {
  if (report->status != m->status || !strstr(report->reason, m->reason) || strcmp(report->name, m->name) != 0) {
    fail_msg("%s: name %s, state %s, reason: %s", m->file, report->name, helio_plugin_status_text(report->status),
             report->reason);
  }
  if (report->status != HELIO_PLUGIN_USABLE) return;
  assert_true(report->is_backend);
  assert_false(report->is_collective);
  assert_int_equal(report->devices, 1);
  assert_string_equal(report->version, "0.1.0");
  assert_string_equal(report->description, "a plugin for tests");
}

static void test_each_inspected(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(family); i++) {
    char path[PATH_MAX];
    helio_plugin_report report;
    path_of(family[i].file, path);
    assert_ok(helio_plugin_inspect(path, &report));
    assert_string_equal(report.path, path);
    check_report(&report, &family[i]);
  }
}

/* The library starts with every one of them, and says of all but those without hardware why they are not used. */
static void test_each_alone(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT_OF(family); i++) {
    char path[PATH_MAX];
    const struct member *m = &family[i];
    path_of(m->file, path);
    set_path(path, NULL);
    seen.count = 0;
    assert_ok(helio_init());
    check_report(report_on(path), m);
    bool silent = m->status == HELIO_PLUGIN_USABLE || m->status == HELIO_PLUGIN_NO_DEVICES;
    assert_int_equal(lines_with("WARNING:helio:plugin ", path), !silent);
    if (!silent) assert_logged(m->reason, helio_plugin_status_text(m->status));
    assert_int_equal(report_named("cpu")->status, HELIO_PLUGIN_USABLE);
    assert_ok(helio_shutdown());
  }
}

/* All but the one that crashes, in one folder of links. */
static void link_family(const char *folder) {
  for (size_t i = 0; i < COUNT_OF(family); i++) {
    char path[PATH_MAX], place[PATH_MAX];
    path_of(family[i].file, path);
    snprintf(place, sizeof place, "%s/%s.so", folder, family[i].file);
    assert_int_equal(symlink(path, place), 0);
  }
}

static void test_all_together(void **state) {
  char folder[64];
  int count;
  (void)state;
  make_folder(folder);
  link_family(folder);
  set_path(folder, NULL);
  assert_ok(helio_init());
  for (size_t i = 0; i < COUNT_OF(family); i++) {
    char place[PATH_MAX];
    snprintf(place, sizeof place, "%s/%s.so", folder, family[i].file);
    check_report(report_on(place), &family[i]);
  }
  remove_folder(folder);
  assert_int_equal(report_named("cpu")->status, HELIO_PLUGIN_USABLE);
  assert_made(helio_physical_devices("CPU", &count));
  assert_true(count >= 6); /* five good ones and the host */
}

/* Opened, written and read: the good ones are not only listed. */
static void test_the_good_ones_work(void **state) {
  static const char *const names[] = {"minimal", "zero-tail", "short-tables", "twin-first", "twin-second"};
  char folder[64];
  (void)state;
  make_folder(folder);
  link_family(folder);
  set_path(folder, NULL);
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    float numbers[] = {1, 2, 3}, back[3] = {0};
    HELIO_POOL {
      HELIO_DEVICE(names[i]) {
        helio_tensor *x = helio_constant(numbers, HELIO_SHAPE(3));
        assert_made(x);
        assert_ok(helio_tensor_read(x, back, sizeof back));
      }
      assert_memory_equal(numbers, back, sizeof back);
    }
  }
  remove_folder(folder);
}

static void write_line(void *user, helio_log_level level, const char *line) {
  (void)level;
  dprintf(*(int *)user, "%s\n", line);
}

/* The log names the plugin before the call that ends the process. */
static bool probe_the_crasher(void *argument) {
  signal(SIGSEGV, SIG_DFL); /* a sanitizer has its own idea */
  helio_set_log_sink(write_line, argument);
  setenv("HELIO_LOG", "debug", 1);
  helio_init();
  return true;
}

static bool inspect_the_crasher(void *argument) {
  helio_plugin_report report;
  signal(SIGSEGV, SIG_DFL);
  helio_plugin_inspect(argument, &report);
  return true;
}

static void test_the_one_that_crashes(void **state) {
  char path[PATH_MAX], line[2 * PATH_MAX], last[2 * PATH_MAX] = "";
  int pipes[2];
  (void)state;
  path_of("crashes_in_probe", path);
  int result = run_in_child(inspect_the_crasher, path);
  assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGSEGV);
  set_path(path, NULL);
  assert_int_equal(pipe(pipes), 0);
  result = run_in_child(probe_the_crasher, &pipes[1]);
  close(pipes[1]);
  FILE *log = fdopen(pipes[0], "r");
  assert_non_null(log);
  while (fgets(line, sizeof line, log)) strcpy(last, line);
  fclose(log);
  assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGSEGV);
  assert_non_null(strstr(last, "crashes-in-probe"));
  assert_non_null(strstr(last, path));
}

/* ---- search ---- */

static void copy_plugin(const char *file, const char *folder, const char *name) {
  char path[PATH_MAX], buffer[65536];
  path_of(file, path);
  FILE *from = fopen(path, "rb");
  if (!from) fail_msg("%s: %s", path, strerror(errno));
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *to = fopen(path, "wb");
  assert_non_null(to);
  for (size_t bytes; (bytes = fread(buffer, 1, sizeof buffer, from)) > 0;) fwrite(buffer, 1, bytes, to);
  fclose(from);
  fclose(to);
}

static void test_the_first_found_shadows(void **state) {
  char a[64], b[64], path_a[100], path_b[100];
  (void)state;
  make_folder(a);
  make_folder(b);
  copy_plugin("minimal", a, "one.so");
  copy_plugin("minimal", b, "two.so");
  snprintf(path_a, sizeof path_a, "%s/one.so", a);
  snprintf(path_b, sizeof path_b, "%s/two.so", b);
  for (int turn = 0; turn < 2; turn++) {
    set_path(turn ? b : a, turn ? a : b, NULL);
    assert_ok(helio_init());
    const helio_plugin_report *first = report_on(turn ? path_b : path_a), *second = report_on(turn ? path_a : path_b);
    assert_int_equal(first->status, HELIO_PLUGIN_USABLE);
    assert_int_equal(second->status, HELIO_PLUGIN_SHADOWED);
    assert_non_null(strstr(second->reason, first->path));
    assert_ok(helio_shutdown());
  }
  remove_folder(a);
  remove_folder(b);
}

/* A broken one does not stand in the way of a good one of the same name. */
static void test_a_broken_one_shadows_nothing(void **state) {
  char a[64], b[64], path[100];
  (void)state;
  make_folder(a);
  make_folder(b);
  write_file(a, "minimal.so", "not a plugin at all");
  copy_plugin("minimal", b, "minimal.so");
  snprintf(path, sizeof path, "%s/minimal.so", b);
  set_path(a, b, NULL);
  setenv("HELIO_BACKEND", "minimal", 1);
  assert_ok(helio_init());
  assert_int_equal(report_on(path)->status, HELIO_PLUGIN_USABLE);
  remove_folder(a);
  remove_folder(b);
}

static void test_places_that_are_none(void **state) {
  char folder[64], path[100];
  (void)state;
  make_folder(folder);
  write_file(folder, "notes.txt", "a file, not a folder");
  snprintf(path, sizeof path, "%s/notes.txt", folder);
  set_path("/nowhere/at/all", path, "", NULL);
  assert_ok(helio_init());
  assert_logged("WARNING:helio:HELIO_PLUGIN_PATH names /nowhere/at/all", "No such file or directory");
  assert_int_equal(report_on(path)->status, HELIO_PLUGIN_CANNOT_OPEN);
  remove_folder(folder);
}

static void test_symlink_loops(void **state) {
  char folder[64], loop[100], inner[100];
  (void)state;
  make_folder(folder);
  snprintf(loop, sizeof loop, "%s/loop", folder);
  snprintf(inner, sizeof inner, "%s/self.so", folder);
  assert_int_equal(symlink(loop, loop), 0);
  assert_int_equal(symlink(inner, inner), 0);
  set_path(loop, folder, NULL);
  assert_ok(helio_init());
  assert_logged("WARNING:helio:HELIO_PLUGIN_PATH names", loop);
  assert_int_equal(report_on(inner)->status, HELIO_PLUGIN_CANNOT_OPEN);
  remove_folder(folder);
}

/* Root may read anything, so it becomes nobody first. */
static bool search_the_unreadable(void *argument) {
  if (geteuid() == 0) CHILD_CHECK(setgid(65534) == 0 && setuid(65534) == 0);
  char **files;
  int count = 0;
  CHILD_CHECK((files = helio_plugin_files(&count)) != NULL);
  for (int i = 0; i < count; i++) CHILD_CHECK(!strstr(files[i], argument));
  free(files);
  CHILD_CHECK(lines_with("WARNING:helio:", argument) == 1);
  CHILD_CHECK(lines_with("Permission denied", argument) == 1);
  return true;
}

static void test_unreadable_folders(void **state) {
  char folder[64];
  (void)state;
  make_folder(folder);
  copy_plugin("minimal", folder, "minimal.so");
  set_path(folder, NULL);
  assert_int_equal(chmod(folder, 0), 0);
  int result = run_in_child(search_the_unreadable, folder);
  assert_int_equal(chmod(folder, 0755), 0);
  remove_folder(folder);
  assert_int_equal(result, 0);
}

static void test_folders_that_everybody_may_write_to(void **state) {
  char folder[64];
  (void)state;
  make_folder(folder);
  copy_plugin("minimal", folder, "minimal.so");
  set_path(folder, NULL);
  assert_int_equal(chmod(folder, 0777), 0);
  assert_ok(helio_init());
  assert_logged("WARNING:helio:everybody may write to the plugin folder", folder);
  assert_ok(helio_shutdown());
  seen.count = 0;
  assert_int_equal(chmod(folder, 01777), 0); /* as /tmp: nobody can replace another's file */
  assert_ok(helio_init());
  assert_not_logged("everybody");
  remove_folder(folder);
}

/* A name of a thousand letters and more. */
static void test_endless_places(void **state) {
  char place[3000];
  (void)state;
  memset(place, 'x', sizeof place - 1);
  place[0] = '/';
  place[sizeof place - 1] = 0;
  set_path(place, NULL);
  assert_ok(helio_init());
  assert_logged("WARNING:helio:HELIO_PLUGIN_PATH names", "/xxxx");
  assert_int_equal(report_named("cpu")->status, HELIO_PLUGIN_USABLE);
}

/* Only *.so, in order of names, each once; brackets are letters like any other; nothing is opened. */
static void test_the_files(void **state) {
  char folder[64], odd[100], crasher[PATH_MAX], expected[3][PATH_MAX];
  int count = 0;
  (void)state;
  make_folder(folder);
  snprintf(odd, sizeof odd, "%s/a[b]*?", folder);
  assert_int_equal(mkdir(odd, 0755), 0);
  write_file(odd, "two.so", "");
  write_file(odd, "one.so", "");
  write_file(odd, "three.so.1", "");
  write_file(odd, "four.la", "");
  path_of("crashes_in_probe", crasher);
  set_path(odd, crasher, odd, crasher, NULL);
  snprintf(expected[0], PATH_MAX, "%s/one.so", odd);
  snprintf(expected[1], PATH_MAX, "%s/two.so", odd);
  snprintf(expected[2], PATH_MAX, "%s", crasher);
  char **files = helio_plugin_files(&count);
  assert_made(files);
  assert_true(count >= 4); /* the CPU's at least */
  for (int i = 0; i < 3; i++) assert_string_equal(files[i], expected[i]);
  for (int i = 3; i < count; i++) assert_null(strstr(files[i], folder));
  assert_null(files[count]);
  free(files);
  remove_folder(folder);
}

static void test_arguments(void **state) {
  helio_plugin_report report;
  (void)state;
  assert_null(helio_plugin_files(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "count is NULL");
  assert_null(helio_plugins(NULL));
  expect_error(HELIO_INVALID_ARGUMENT, "count is NULL");
  assert_ok(helio_shutdown());
  assert_int_equal(helio_plugin_inspect(NULL, &report), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "path is NULL");
  assert_int_equal(helio_plugin_inspect("x.so", NULL), HELIO_INVALID_ARGUMENT);
  expect_error(HELIO_INVALID_ARGUMENT, "report is NULL");
  assert_ok(helio_plugin_inspect("/nowhere/x.so", &report));
  assert_int_equal(report.status, HELIO_PLUGIN_CANNOT_OPEN);
  assert_string_equal(report.name, "x");
  assert_ok(helio_init());
  assert_int_equal(helio_plugin_inspect("/nowhere/x.so", &report), HELIO_WRONG_STATE);
  expect_error(HELIO_WRONG_STATE, "before the library is started");
}

/* ---- HELIO_BACKEND ---- */

static const struct {
  const char *backend; /* the variable; NULL: unset */
  const char *order;   /* the backends in use, in order of preference; NULL: it fails */
  const char *message; /* a part of the error */
} choices[] = {
    {NULL, "minimal,twin-first,twin-second,cpu", NULL},
    {"", "minimal,twin-first,twin-second,cpu", NULL},
    {"auto", "minimal,twin-first,twin-second,cpu", NULL},
    {"AUTO", "minimal,twin-first,twin-second,cpu", NULL},
    {"cpu", "cpu", NULL},
    {"minimal", "minimal,cpu", NULL},
    {"MiniMal", "minimal,cpu", NULL},
    {"minimal,cpu", "minimal,cpu", NULL},
    {"cpu,minimal", "cpu,minimal", NULL},
    {"twin-second,minimal,twin-first", "twin-second,minimal,twin-first,cpu", NULL},
    {"twin-second,cpu,twin-first", "twin-second,cpu,twin-first", NULL},
    {"cpu,cpu,cpu", "cpu", NULL},
    {"minimal?", "minimal,cpu", NULL},
    {"absent?", "cpu", NULL},
    {"absent?,also-absent?,minimal", "minimal,cpu", NULL},
    {"no-devices?,cpu", "cpu", NULL},
    {"init-fails?,minimal", "minimal,cpu", NULL},
    {",,minimal,", "minimal,cpu", NULL},
    {"absent", NULL, "HELIO_BACKEND asks for absent, but no plugin of that name was found. Usable: minimal,"},
    {"minimla", NULL, "no plugin of that name was found; did you mean minimal? Usable: "},
    {"cup", NULL, "did you mean cpu?"},
    {"cpu,absent", NULL, "asks for absent"},
    {"absent?,missing,cpu", NULL, "asks for missing"},
    {"auto,cpu", NULL, "asks for auto"},
    {"no-devices", NULL, "no device: no such card is built in; get one from the shop. Usable: "},
    {"init-fails", NULL, "init failed: the device was there a moment ago. Usable: "},
    {"unknown_tail", NULL, "malformed: its entry has fields that this version does not know. Usable: "},
    {"?", "cpu", NULL},
};

static void list_backends(char *text, size_t size) {
  int count;
  hi_plugin *const *backends = hi_backends(&count);
  text[0] = 0;
  for (int i = 0; i < count; i++) {
    snprintf(text + strlen(text), size - strlen(text), "%s%s", i ? "," : "", backends[i]->report.name);
  }
}

static void check_choice(size_t i) {
  char order[400];
  if (!choices[i].order) {
    assert_int_equal(helio_init(), HELIO_NO_DEVICE);
    expect_error(HELIO_NO_DEVICE, choices[i].message);
    return;
  }
  assert_ok(helio_init());
  list_backends(order, sizeof order);
  if (strcmp(order, choices[i].order) != 0) fail_msg("HELIO_BACKEND=%s: %s", choices[i].backend, order);
  assert_int_equal(report_named("cpu")->status, HELIO_PLUGIN_USABLE); /* in any case */
  const helio_plugin_report *minimal = report_named("minimal");
  bool chosen = strstr(choices[i].order, "minimal");
  assert_int_equal(minimal->status, chosen ? HELIO_PLUGIN_USABLE : HELIO_PLUGIN_NOT_CHOSEN);
  if (!chosen) assert_non_null(strstr(minimal->reason, choices[i].backend));
  assert_ok(helio_shutdown());
}

static void set_path_to(const char *const *files, size_t count) {
  char paths[6][PATH_MAX];
  assert_true(count <= 6);
  for (size_t i = 0; i < 6; i++) paths[i][0] = 0;
  for (size_t i = 0; i < count; i++) path_of(files[i], paths[i]);
  set_path(paths[0], paths[1], paths[2], paths[3], paths[4], paths[5], NULL);
}

static void test_choosing_backends(void **state) {
  static const char *const files[] = {"minimal",    "twin_first", "twin_second",
                                      "no_devices", "init_fails", "unknown_tail"};
  (void)state;
  set_path_to(files, COUNT_OF(files));
  for (size_t i = 0; i < COUNT_OF(choices); i++) {
    if (choices[i].backend) setenv("HELIO_BACKEND", choices[i].backend, 1);
    check_choice(i);
    unsetenv("HELIO_BACKEND");
  }
}

/* One that may be absent but is there and fails is no error, but it is said. */
static void test_an_optional_one_that_fails_is_logged(void **state) {
  static const char *const files[] = {"init_fails"};
  (void)state;
  set_path_to(files, COUNT_OF(files));
  setenv("HELIO_BACKEND", "init-fails?,cpu", 1);
  assert_ok(helio_init());
  assert_logged("WARNING:helio:plugin init-fails", "the device was there a moment ago");
}

static void test_without_a_host(void **state) {
  char path[PATH_MAX];
  (void)state;
  path_of("minimal", path);
  setenv("HELIO_PLUGIN_PATH", path, 1);
  if (helio_init() == HELIO_OK) SKIP("a plugin for the host is installed");
  expect_error(HELIO_NO_DEVICE, "no usable plugin for the host's CPU in HELIO_PLUGIN_PATH or ");
  setenv("HELIO_PLUGIN_PATH", "", 1);
  assert_int_equal(helio_init(), HELIO_NO_DEVICE);
  expect_error(HELIO_NO_DEVICE, "no plugin was found at all: is the installation complete?");
  setenv("HELIO_PLUGIN_PATH", given_path, 1);
  assert_ok(helio_init());
}

/* ---- isolation ---- */

/* Each twin checks in probe that it finds its own helper; a third object has one of that name too. */
static void test_twins_stay_apart(void **state) {
  static const char *const orders[][3] = {{"foreign", "twin_first", "twin_second"},
                                          {"twin_second", "foreign", "twin_first"}};
  (void)state;
  for (size_t i = 0; i < COUNT_OF(orders); i++) {
    set_path_to(orders[i], 3);
    assert_ok(helio_init());
    assert_int_equal(report_named("twin-first")->status, HELIO_PLUGIN_USABLE);
    assert_int_equal(report_named("twin-second")->status, HELIO_PLUGIN_USABLE);
    assert_ok(helio_shutdown());
  }
}

/* Mappings tell whether libraries stay behind. */
static void test_two_hundred_times(void **state) {
  int mappings = 0, files = 0;
  long resident = 0;
  (void)state;
  for (int turn = 0; turn < 210; turn++) {
    for (size_t i = 0; i < COUNT_OF(family); i++) {
      char path[PATH_MAX];
      helio_plugin_report report;
      path_of(family[i].file, path);
      assert_ok(helio_plugin_inspect(path, &report));
      assert_int_equal(report.status, family[i].status);
    }
    if (turn != 10) continue;
    mappings = mapping_count();
    files = open_files();
    resident = resident_kib();
  }
  assert_int_equal(open_files(), files);
  if (SANITIZED) return;
  assert_in_range(mapping_count(), 1, mappings + 2);
  assert_in_range(resident_kib(), 1, resident + 512);
}

/* ---- tables: growth at their ends, what is required, what is filled in ---- */

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
      TEST(test_each_inspected),
      TEST(test_each_alone),
      TEST(test_all_together),
      TEST(test_the_good_ones_work),
      TEST(test_the_one_that_crashes),
      TEST(test_the_first_found_shadows),
      TEST(test_a_broken_one_shadows_nothing),
      TEST(test_places_that_are_none),
      TEST(test_symlink_loops),
      TEST(test_unreadable_folders),
      TEST(test_folders_that_everybody_may_write_to),
      TEST(test_endless_places),
      TEST(test_the_files),
      TEST(test_arguments),
      TEST(test_choosing_backends),
      TEST(test_an_optional_one_that_fails_is_logged),
      TEST(test_without_a_host),
      TEST(test_twins_stay_apart),
      TEST(test_two_hundred_times),
      TEST(test_reading_structs),
      TEST(test_the_ends_of_tables),
      TEST(test_shorter_tables),
      TEST(test_required_entries),
      TEST(test_entries_that_do_not_fit_together),
      TEST(test_names_of_plugins),
      TEST(test_kernels_of_the_future),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
