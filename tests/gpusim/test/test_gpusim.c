/* SPDX-License-Identifier: Apache-2.0 */
/* gpusim finds what it is made to find, and nothing else: every planted mistake is told for what it is, and the same
 * programs without the mistake, and others that do nothing wrong, pass under several seeds, both widths of a warp and
 * all orders of threads. Each runs in a process of its own, through `run`. GPUSIM_TEST_SEEDS says how many seeds (5; 2
 * under a sanitizer, which slows everything down); GPUSIM_TEST_ONLY runs only tests whose name has this in it. */

/* cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* and then itself */
#include <cmocka.h>

#include "mistakes.h"
#include "sim.h"

#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_TESTS = 512, MOST_WORDS = 64, SECONDS = 240, OUTPUT_BYTES = 1 << 16 };

static char folder[4096];         /* where run, mistakes and programs are */
static char output[OUTPUT_BYTES]; /* what the last child said */

/* ---------------------------------------------------------------------------------------------------------------------
 * Running children
 */

static void read_output(FILE *file) {
  rewind(file);
  size_t bytes = fread(output, 1, sizeof output - 1, file);
  output[bytes] = 0;
  fclose(file);
}

static void become(char **words, int file) {
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  alarm(SECONDS); /* outlives exec */
  if (chdir(folder) == 0) execvp(words[0], words);
  _exit(127);
}

/* Runs a command line, whose words have no spaces in them; the status as waitpid tells it. */
static int run_line(const char *line) {
  char copy[2048], *words[MOST_WORDS + 1], *rest = NULL;
  int count = 0;
  snprintf(copy, sizeof copy, "%s", line);
  for (char *word = strtok_r(copy, " ", &rest); word && count < MOST_WORDS; word = strtok_r(NULL, " ", &rest))
    words[count++] = word;
  words[count] = NULL;
  FILE *file = tmpfile();
  assert_non_null(file);
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) become(words, fileno(file));
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  read_output(file);
  return status;
}

static void fail_line(const char *line, int status) {
  if (WIFSIGNALED(status)) fail_msg("%s: ended by signal %d\n%s", line, WTERMSIG(status), output);
  fail_msg("%s: ended with status %d\n%s", line, WEXITSTATUS(status), output);
}

static void expect_success(const char *line) {
  int status = run_line(line);
  if (status != 0 || strstr(output, "gpusim: violation")) fail_line(line, status);
}

static void write_path(char *path, size_t size, const char *name) {
  assert_true((size_t)snprintf(path, size, "%s/%s", folder, name) < size);
}

static void remove_file(const char *name) {
  char path[4200];
  write_path(path, sizeof path, name);
  unlink(path);
}

static void expect_in_file(const char *name, const char *part) {
  char path[4200];
  write_path(path, sizeof path, name);
  FILE *file = fopen(path, "r");
  if (!file) fail_msg("%s was not written", path);
  read_output(file);
  if (!strstr(output, part)) fail_msg("%s has no \"%s\":\n%s", path, part, output);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Mistakes
 */

typedef struct listed {
  char name[64], kind[64], settings[256];
} listed;

static int seeds(void) {
  const char *value = getenv("GPUSIM_TEST_SEEDS"), *sanitizers = getenv("HELIO_TEST_SANITIZERS");
  if (value) return atoi(value);
  return sanitizers && *sanitizers ? 2 : 5;
}

/* Every pair of width and order comes up within six seeds, and each of both within three. Width 0: the devices' own. */
static void write_line(char *line, size_t size, const char *settings, int seed, int warp, const char *command) {
  static const char *const orders[] = {"shuffled", "up", "down"};
  char width[32] = "";
  if (warp) snprintf(width, sizeof width, "GPUSIM_WARP=%d", warp);
  snprintf(line, size, "env GPUSIM_CACHE=cache GPUSIM_CUDA=1 GPUSIM_HIP=1 %s %s ./run --seed %d --order %s %s", width,
           settings, seed, orders[seed % 3], command);
}

static int warp_of(int seed) {
  return seed % 2 ? 32 : 64;
}

static bool is_told(const char *kind) {
  char wanted[128];
  snprintf(wanted, sizeof wanted, "gpusim: violation: %s", kind);
  return strstr(output, wanted) != NULL;
}

/* An access that the host must not make ends as such accesses do; everything else is told at the end. */
static bool is_caught(int status, const char *kind) {
  if (!strcmp(kind, WRONG_NUMBERS)) return WIFEXITED(status) && WEXITSTATUS(status) == WRONG_NUMBERS_EXIT;
  bool ended = WIFEXITED(status) ? WEXITSTATUS(status) == SIM_EXIT : WTERMSIG(status) == SIGSEGV;
  return ended && is_told(kind);
}

enum { PACES = 3 }; /* as many seeds have all of them */

/* Nothing is found by chance: each pace shows it. */
static void test_mistake(void **state) {
  const listed *one = *state;
  char line[1024], command[128];
  snprintf(command, sizeof command, "./mistakes %s", one->name);
  for (int seed = 1; seed <= PACES; seed++) {
    write_line(line, sizeof line, one->settings, seed, 0, command);
    int status = run_line(line);
    if (!is_caught(status, one->kind)) fail_line(line, status);
  }
  snprintf(command, sizeof command, "./mistakes --right %s", one->name);
  for (int seed = 1; seed <= seeds(); seed++) {
    write_line(line, sizeof line, one->settings, seed, warp_of(seed), command);
    expect_success(line);
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Correct programs
 */

typedef struct planned {
  const char *name, *settings, *options;
} planned;

static const planned any_seed[] = {
    {"streams-and-events", "", ""},
    {"staging-buffers", "", ""},
    {"through-pinned-memory", "", ""},
    {"null-stream", "", ""},
    {"arena-of-two-streams", "", ""},
    {"wait-after-delete", "", ""},
    {"many-streams", "", ""},
    {"deleted-early", "", ""},
    {"long-queue", "", ""},
    {"event-times", "", ""},
    {"peer-copies", "", "--cuda 2"},
    {"peer-copies", "", "--cuda 2 --peer 0"},
    {"peer-access", "", "--cuda 2"},
    {"peer-access", "", "--cuda 2 --peer 0"},
    {"threads", "", "--cuda 2"},
    {"any-context", "", "--cuda 2"},
    {"any-context", "", "--cuda 2 --peer 0"},
    {"hip-any-device", "", "--hip 2 --peer 0"},
    {"two-retains", "", ""},
    {"release-again", "", "--cuda 2"},
    {"retain-in-threads", "", ""},
    {"waits-behind", "", "--pace behind"},
    {"waits-for-nothing", "", ""},
    {"hip-copies", "", "--hip 1"},
    {"hip-frees-pinned", "", "--hip 1"},
    {"hip-properties", "", "--hip 1"},
};

static const planned one_seed[] = {
    {"no-device", "", "--cuda 0 --hip 0"},
    {"stub-driver", "", "--driver 0"},
    {"old-driver", "", "--driver 12020"},
    {"visible-devices", "CUDA_VISIBLE_DEVICES=2,0", "--cuda 3"},
    {"missing", "", "--fault missing:cuMemGetInfo_v2,missing:libnvrtc.so.13"},
    {"names", "", ""},
    {"out-of-memory", "", "--memory 1M"},
    {"second-allocation", "", "--fault allocation:2"},
    {"second-creation", "", "--fault allocation:2,create:2,create:5"},
    {"first-pinned", "", "--fault allocation:1"},
    {"later-copies-of-second", "", "--cuda 2 --fault copy:2+@1"},
    {"lost-device", "", "--cuda 2 --fault lost:copy:2@0"},
    {"lost-late", "", "--cuda 2 --fault lost:copy:2@0,late"},
    {"slow-device", "", "--fault slow"},
    {"counters", "", ""},
    {"large-memory", "", ""},
    {"many-allocations", "", ""},
    {"large-workspace", "", ""},
    {"opened-again", "", "--cuda 1"},
    {"waits-late", "", "--pace late"},
    {"wait-fails", "", "--fault wait:1+"},
};

/* What cannot be is asked for: an error or a violation each time, but nothing that ends the process. */
static const planned hostile[] = {
    {"hostile-memory", "", ""},      {"hostile-hip-memory", "", ""}, {"hostile-cuda-kernels", "", ""},
    {"hostile-hip-kernels", "", ""}, {"hostile-texts", "", ""},      {"hostile-cublas", "", ""},
    {"hostile-rocblas", "", ""},     {"hostile-cudnn", "", ""},      {"hostile-miopen", "", ""},
};

static void run_planned(const planned *one, int seed) {
  char line[1024], command[256];
  snprintf(command, sizeof command, "%s ./programs %s", one->options, one->name);
  write_line(line, sizeof line, one->settings, seed, warp_of(seed), command);
  expect_success(line);
}

static void test_any_seed(void **state) {
  for (int seed = 1; seed <= seeds(); seed++) run_planned(*state, seed);
}

static void test_hostile(void **state) {
  const planned *one = *state;
  char line[1024], command[256];
  snprintf(command, sizeof command, "--report report.txt ./programs %s", one->name); /* there are many of them */
  write_line(line, sizeof line, one->settings, 1, 0, command);
  int status = run_line(line);
  bool ended = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == SIM_EXIT);
  if (!ended || strstr(output, "gpusim test:") || strstr(output, "does not end")) fail_line(line, status);
}

static void test_one_seed(void **state) {
  run_planned(*state, 1);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What `run` and the settings say
 */

/* Refused, with the name that was meant if it was misspelt. */
static const struct {
  const char *line, *told;
} wrong_settings[] = {
    {"./run --warp 48 ./programs names", "32 or 64"},
    {"./run --memory 2X ./programs names", "512M"},
    {"./run --seed x ./programs names", "GPUSIM_SEED"},
    {"./run --order left ./programs names", "GPUSIM_ORDER=left"},
    {"./run --order dwon ./programs names", "did you mean down?"},
    {"./run --pace early ./programs names", "GPUSIM_PACE=early"},
    {"./run --pace lat ./programs names", "did you mean late?"},
    {"./run --pace behnid ./programs names", "did you mean behind?"},
    {"./run --fault slowly ./programs names", "did you mean slow?"},
    {"./run --fault lunch:1 ./programs names", "did you mean launch?"},
    {"./run --fault lost:cpoy:1 ./programs names", "did you mean copy?"},
    {"./run --fault launch:1,alocation:5+ ./programs names", "did you mean allocation?"},
    {"./run --fault launch:x ./programs names", "launch:17@1"},
    {"./run --cuda 0 --fault lunch:1 ./programs no-device", "did you mean launch?"}, /* though nothing is counted */
    {"./run --cuda 99 ./programs names", "GPUSIM_CUDA=99"},
    {"./run --architecture sm_8O ./programs names", "sm_8O"},
    {"./run --architecture gxf90a ./programs names", "gxf90a"},
    {"./run --unknown 1 ./programs names", "unknown option --unknown"},
    {"./run --sede 3 ./programs names", "did you mean --seed?"},
    {"./run --sede", "did you mean --seed?"},
    {"./run --coutners x ./programs names", "did you mean --counters?"},
    {"./run --seed=3 ./programs names", "--seed 3"},
    {"./run -seed 3 ./programs names", "did you mean --seed?"},
    {"./run --seed", "needs a value"},
    {"./run", "usage"},
    {"env GPUSIM_SEDE=3 ./run ./programs names", "GPUSIM_SEDE=3 is not a setting; did you mean GPUSIM_SEED?"},
    {"env GPUSIM_PAEC=late ./run ./programs names", "did you mean GPUSIM_PACE?"},
    {"env GPUSIM_FAULTS=launch:3 ./run ./programs names", "did you mean GPUSIM_FAULT?"},
    /* only a part of a name */
    {"./run --fault missing:cuMemAlloc ./programs names", "no library has this symbol"},
    {"./run --fault missing:libcuda.so.2 ./programs names", "there is no such library"},
    /* without `run` */
    {"env GPUSIM_FAULT=missing:cuMemGetInfo_v2 LD_LIBRARY_PATH=libs ./programs names", "only tests/gpusim/run"},
};

static void test_wrong_settings(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof wrong_settings / sizeof *wrong_settings; i++) {
    int status = run_line(wrong_settings[i].line);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 2 || !strstr(output, wrong_settings[i].told))
      fail_line(wrong_settings[i].line, status);
  }
}

/* The report and the counters as files. */
static void test_files(void **state) {
  (void)state;
  remove_file("report.txt");
  int status = run_line("./run --report report.txt --counters counters.txt ./mistakes leak-memory");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != SIM_EXIT || is_told("leak")) fail_line("--report", status);
  expect_in_file("report.txt", "gpusim: violation: leak: 1000 bytes of device memory of gpusim (CUDA 8.0) 0");
  expect_in_file("report.txt", "made in cuMemAlloc_v2");
  expect_in_file("counters.txt", "cuda:0 allocation 1\n");
  expect_in_file("counters.txt", "all memory_peak 1024\n");
}

/* A mistake that shows when the work is done is told with the call that queued it, not only the one that waited. */
static void test_origin(void **state) {
  (void)state;
  int status = run_line("./run --cuda 1 --hip 1 --cache cache ./mistakes launch-nobody-waits");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != SIM_EXIT || !strstr(output, "\n  in the kernel fill\n") ||
      !strstr(output, "\n  queued in hipModuleLaunchKernel\n"))
    fail_line("launch-nobody-waits", status);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The list
 */

static struct CMUnitTest tests[MOST_TESTS];
static size_t test_count;

static void add(const char *name, CMUnitTestFunction function, const void *state) {
  const char *only = getenv("GPUSIM_TEST_ONLY");
  if (test_count == MOST_TESTS || (only && !strstr(name, only))) return;
  tests[test_count++] =
      (struct CMUnitTest){.name = strdup(name), .test_func = function, .initial_state = (void *)(uintptr_t)state};
}

static listed mistakes[MOST_TESTS];
static size_t mistake_count;

static void read_mistakes(void) {
  char command[5000], line[512];
  snprintf(command, sizeof command, "'%s/mistakes' --list", folder);
  FILE *list = popen(command, "r");
  while (list && fgets(line, sizeof line, list) && mistake_count < MOST_TESTS) {
    listed *one = &mistakes[mistake_count];
    if (sscanf(line, "%63[^\t]\t%63[^\t]\t%255[^\n]", one->name, one->kind, one->settings) == 3) mistake_count++;
  }
  if (!list || pclose(list) != 0) {
    fprintf(stderr, "test_gpusim: %s did not work\n", command);
    exit(2);
  }
}

static void test_kinds(void **state) {
  (void)state;
  int kinds = 0;
  for (size_t i = 0; i < mistake_count; i++) {
    size_t first = 0;
    while (strcmp(mistakes[first].kind, mistakes[i].kind) != 0) first++;
    if (first == i) kinds++;
  }
  print_message("%zu mistakes of %d kinds\n", mistake_count, kinds);
  assert_true(kinds >= 25);
}

/* Each kernel text is compiled once, however many seeds it runs under. */
static void make_cache(void) {
  char path[4200];
  snprintf(path, sizeof path, "%s/cache", folder);
  mkdir(path, 0777);
}

static void find_folder(const char *program) {
  const char *build = getenv("HELIO_TEST_BUILD");
  char *copy = realpath(program, NULL);
  if (build)
    snprintf(folder, sizeof folder, "%s/tests/gpusim", build);
  else
    snprintf(folder, sizeof folder, "%s", copy ? dirname(copy) : ".");
  free(copy);
}

static void add_planned(const planned *list, size_t count, CMUnitTestFunction function) {
  for (size_t i = 0; i < count; i++) {
    char name[128];
    snprintf(name, sizeof name, "program %s%s%s", list[i].name, *list[i].options ? " " : "", list[i].options);
    add(name, function, &list[i]);
  }
}

int main(int count, char **arguments) {
  (void)count;
  find_folder(arguments[0]);
  make_cache();
  read_mistakes();
  add("kinds of mistakes", test_kinds, NULL);
  add("wrong settings", test_wrong_settings, NULL);
  add("report and counters", test_files, NULL);
  add("where work was queued", test_origin, NULL);
  add_planned(any_seed, sizeof any_seed / sizeof *any_seed, test_any_seed);
  add_planned(one_seed, sizeof one_seed / sizeof *one_seed, test_one_seed);
  add_planned(hostile, sizeof hostile / sizeof *hostile, test_hostile);
  for (size_t i = 0; i < mistake_count; i++) {
    char name[128];
    snprintf(name, sizeof name, "mistake %.63s", mistakes[i].name);
    add(name, test_mistake, &mistakes[i]);
  }
  return _cmocka_run_group_tests("gpusim", tests, test_count, NULL, NULL);
}
