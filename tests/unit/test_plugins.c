/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, refusing, choosing and unloading plugins, with the family of bad plugins (tests/plugins/bad). */
#include <dlfcn.h>

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

/* Whether there are devices for it or not; and that is nothing to be warned of. */
static void expect_shadow(const char *plugin, helio_plugin_status expected) {
  char a[64], b[64], path_a[100], path_b[100];
  make_folder(a);
  make_folder(b);
  copy_plugin(plugin, a, "one.so");
  copy_plugin(plugin, b, "two.so");
  snprintf(path_a, sizeof path_a, "%s/one.so", a);
  snprintf(path_b, sizeof path_b, "%s/two.so", b);
  for (int turn = 0; turn < 2; turn++) {
    set_path(turn ? b : a, turn ? a : b, NULL);
    capture_log();
    assert_ok(helio_init());
    assert_int_equal(seen.count, 0);
    const helio_plugin_report *first = report_on(turn ? path_b : path_a), *second = report_on(turn ? path_a : path_b);
    assert_int_equal(first->status, expected);
    assert_int_equal(second->status, HELIO_PLUGIN_SHADOWED);
    assert_non_null(strstr(second->reason, first->path));
    assert_ok(helio_shutdown());
  }
  remove_folder(a);
  remove_folder(b);
}

static void test_the_first_found_shadows(void **state) {
  (void)state;
  expect_shadow("minimal", HELIO_PLUGIN_USABLE);
  expect_shadow("no_devices", HELIO_PLUGIN_NO_DEVICES);
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

enum { CANNOT_TELL = 77 };

/* Root may read anything, so it becomes nobody first, which not every container allows. */
static bool search_the_unreadable(void *argument) {
  if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(CANNOT_TELL);
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
  if (WIFEXITED(result) && WEXITSTATUS(result) == CANNOT_TELL) SKIP("root cannot become another user here");
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

/* A bare name is a file of the working directory, not a library of the system. */
static void test_a_file_without_a_folder(void **state) {
  char folder[64], here[PATH_MAX];
  (void)state;
  make_folder(folder);
  copy_plugin("minimal", folder, "bare.so");
  assert_non_null(getcwd(here, sizeof here));
  assert_int_equal(chdir(folder), 0);
  set_path("bare.so", NULL);
  helio_status status = helio_init();
  assert_int_equal(chdir(here), 0);
  remove_folder(folder);
  assert_ok(status);
  assert_int_equal(report_on("./bare.so")->status, HELIO_PLUGIN_USABLE);
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

/* Threads of a plugin that nobody has joined, and destructors of threads, need its code for good. */
static void test_code_stays(void **state) {
  char path[PATH_MAX];
  (void)state;
  path_of("minimal", path);
  set_path(path, NULL);
  assert_ok(helio_init());
  assert_int_equal(report_on(path)->status, HELIO_PLUGIN_USABLE);
  assert_ok(helio_shutdown());
  void *still = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  assert_non_null(still);
  dlclose(still);
}

/* Mappings tell whether a library is loaded anew each time. */
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
      TEST(test_a_file_without_a_folder),
      TEST(test_endless_places),
      TEST(test_the_files),
      TEST(test_arguments),
      TEST(test_choosing_backends),
      TEST(test_an_optional_one_that_fails_is_logged),
      TEST(test_without_a_host),
      TEST(test_twins_stay_apart),
      TEST(test_code_stays),
      TEST(test_two_hundred_times),
  };
  remember_environment();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
