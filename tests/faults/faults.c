/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of a ten-step training on 2 and 3 strict devices, each made to fail in each way. The training ends with a
 * clear error, or goes on and comes to what one device comes to. Afterwards a new strategy on the other devices trains
 * as if nothing had been, and no thread is left that was not named.
 *
 * Each test is a kind of call and a way to fail; it goes over the calls of every device, in children by turns, as many
 * as HELIO_TEST_FAULTS says, see sweep.h. HELIO_TEST_FAULTS=RULE runs one alone, such as "2 drop kernel@17/1:late", and
 * says what happened. */
#include <sys/mman.h>

#include "support.h"
#include "sweep.h"
#include "trial.h"

enum { MOST_DEVICES = 3, CHILDREN = SANITIZED ? 2 : 1, WAITING_CHILDREN = SANITIZED ? 2 : 12 };

typedef enum kind { ALLOCATION, COPY, KERNEL, EVENT, COLLECTIVE, KINDS } kind;
typedef enum fault { FAIL, LATE, HANG, SHORT, NOT_A_NUMBER, FAULTS } fault;

static const char *const kind_names[] = {"allocation", "copy", "kernel", "event", "collective"};
static const char *const fault_names[] = {"fail", "late", "hang", "short", "nan"};
static const char *const device_names[] = {"gpu:0", "gpu:1", "gpu:2"};

typedef struct plan {
  int devices;
  kind kind;
  fault fault;
  bool lasting; /* from then on */
  helio_on_failure on_failure;
} plan;

/* What the children find out, shared with them. */
static struct shared {
  outcome reference;                                     /* of one device that does not fail */
  unsigned calls[MOST_DEVICES + 1][MOST_DEVICES][KINDS]; /* of a training on so many devices, by device */
} * shared;

/* ---- the library ---- */

/* Kernels and copies that lie cannot be caught by anybody, but where replicas differ they are. */
static bool is_silent(const plan *p) {
  return p->fault == SHORT || p->fault == NOT_A_NUMBER;
}

/* Long enough for a busy machine: a replica that gets no time for so long hangs, as far as anybody can see. Only what
 * hangs is waited for so long, and who joins a group that another cannot. */
enum { TIMEOUT = SANITIZED ? 4 : 2 };

static const char *timeout_for(const plan *p) {
  static char text[8];
  snprintf(text, sizeof text, "%d", p->fault == HANG || p->kind == COLLECTIVE ? TIMEOUT : 30);
  return text;
}

static const char *collective_for(const plan *p) {
  return p->kind == COLLECTIVE || p->devices > 2 ? "wrap-sum" : "reduce-to-one";
}

static void start(const plan *p, const char *rules) {
  char path[PATH_MAX * 3], plugin[PATH_MAX + 64], sum[PATH_MAX + 64];
  const char *build = build_folder();
  bool collective = p->kind == COLLECTIVE;
  snprintf(path, sizeof path, "%s/tests/plugins/wrap/.libs:%s/backends/cpu/.libs", build, build);
  snprintf(plugin, sizeof plugin, "%s/tests/plugins/strict/.libs/strict.so", build);
  snprintf(sum, sizeof sum, "%s/collectives/ring/.libs/ring.so", build);
  setenv("HELIO_PLUGIN_PATH", path, 1);
  setenv("HELIO_BACKEND", "wrap", 1);
  setenv("HELIO_WRAP_PLUGIN", plugin, 1);
  setenv("HELIO_WRAP_SUM_PLUGIN", sum, 1);
  setenv("HELIO_WRAP_RULES", collective ? "" : rules, 1);
  setenv("HELIO_WRAP_SUM_RULES", collective ? rules : "", 1);
  setenv("HELIO_STRICT_DEVICES", "3", 1);
  setenv("HELIO_NUM_THREADS", "1", 1);
  setenv("HELIO_MEMORY_LIMIT", "256K", 1); /* else time goes by in filling pages that nobody needs */
  setenv("HELIO_TIMEOUT", timeout_for(p), 1);
  setenv("HELIO_CHECK_REPLICAS", is_silent(p) ? "1" : "0", 1);
  setenv("HELIO_ARENA_DEBUG", p->kind == ALLOCATION ? "1" : "0", 1); /* else there are hardly any */
}

static helio_strategy *mirrored(const void *of) {
  const plan *p = of;
  helio_mirrored_options options = {
      .size = sizeof options, .collective = collective_for(p), .on_failure = p->on_failure};
  for (int i = 0; i < p->devices; i++) options.devices[i] = device_names[i];
  return helio_mirrored_with(&options);
}

/* ---- one fault ---- */

/* Of what hangs, every second comes back when nobody expects it any more. */
static void rule_of(const plan *p, unsigned call, int device, char *text, size_t size) {
  char amount[16] = "";
  if (p->fault == HANG && call % 2 == 1) snprintf(amount, sizeof amount, "=%d", TIMEOUT * 1000 + 100);
  snprintf(text, size, "%s@%u%s/%d:%s%s", kind_names[p->kind], call, p->lasting ? "+" : "", device,
           fault_names[p->fault], amount);
}

static const char *run_fault(const plan *p, unsigned call, int device, outcome *found) {
  char rules[80];
  rule_of(p, call, device, rules, sizeof rules);
  start(p, rules);
  return run_trial(&(trial){.what = WORDS,
                            .expected = &shared->reference,
                            .plan = p,
                            .make = mirrored,
                            .other = device_names[device == 0 ? 1 : 0],
                            .is_silent = is_silent(p)},
                   found);
}

/* ---- one test ---- */

static const char *run_call(const void *of, unsigned call, int device) {
  outcome found;
  const char *wrong = run_fault(of, call, device, &found);
  if (wrong) print_trial();
  return wrong;
}

static void describe(const void *of, unsigned call, int device, char text[RULE_ROOM]) {
  const plan *p = of;
  char rules[80];
  rule_of(p, call, device, rules, sizeof rules);
  snprintf(text, RULE_ROOM, "%d %s %s", p->devices, p->on_failure == HELIO_DROP ? "drop" : "stop", rules);
}

/* As many as keep two cores busy, with those of other kinds: who waits for a deadline leaves them to others. */
static int children_for(const plan *p) {
  if (p->fault == HANG) return MOST_CHILDREN;
  return p->kind == COLLECTIVE ? WAITING_CHILDREN : CHILDREN;
}

/* Each child starts the library anew for each call. Where something hangs that cannot be with the same plugin, so there
 * it is one call alone. */
static void go_over_calls(void **state) {
  const plan *p = *state;
  unsigned calls[MOST_DEVICES];
  for (int i = 0; i < MOST_DEVICES; i++) calls[i] = shared->calls[p->devices][i][p->kind];
  sweep s = {.plan = p,
             .devices = p->devices,
             .calls = calls,
             .first = (unsigned)p->fault * 2,
             .children = children_for(p),
             .is_one_each = p->fault == HANG,
             .run = run_call,
             .describe = describe};
  assert_int_equal(sweep_calls(&s), 0);
}

/* ---- before all ---- */

static void read_counts(const plan *p) {
  for (int i = 0; i < seen.count; i++) {
    int device;
    unsigned calls;
    char word[20];
    const char *text = strstr(seen.lines[i], ": device ");
    if (!text || sscanf(text, ": device %d: %u of kind %19s", &device, &calls, word) != 3) continue;
    bool asked_for = strcmp(word, kind_names[p->kind]) == 0 && device < MOST_DEVICES;
    if (asked_for) shared->calls[p->devices][device][p->kind] = calls;
  }
}

/* How many calls a training makes in which nothing fails. */
static bool count_calls(const plan *p) {
  outcome found = {0};
  setenv("HELIO_LOG", "debug", 1);
  start(p, "");
  capture_log();
  HELIO_POOL {
    helio_strategy *strategy = mirrored(p);
    CHILD_CHECK(strategy);
    train(strategy, WORDS, &found);
  }
  if (!found.finished) fprintf(stderr, "%s\n", found.error.message);
  CHILD_CHECK(found.finished);
  const char *wrong = difference(&found, &shared->reference);
  if (wrong) fprintf(stderr, "%s\n", wrong);
  CHILD_CHECK(!wrong && found.unknown == 0 && found.samples == shared->reference.samples);
  CHILD_CHECK(helio_shutdown() == HELIO_OK);
  read_counts(p);
  return true;
}

static bool count_all_calls(void *argument) {
  for (int devices = 2; devices <= MOST_DEVICES; devices++) {
    for (int k = 0; k < KINDS; k++) {
      plan p = {.devices = devices, .kind = (kind)k};
      CHILD_CHECK(count_calls(&p));
    }
  }
  (void)argument;
  return true;
}

static bool find_reference(void *argument) {
  plan p = {.kind = KERNEL};
  start(&p, "");
  HELIO_POOL {
    helio_strategy *strategy = helio_one_device(device_names[0]);
    CHILD_CHECK(strategy);
    train(strategy, WORDS, &shared->reference);
  }
  CHILD_CHECK(shared->reference.finished && shared->reference.unknown == 0);
  CHILD_CHECK(helio_shutdown() == HELIO_OK);
  (void)argument;
  return true;
}

static int prepare(void **state) {
  (void)state;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || run_in_child(find_reference, NULL) || run_in_child(count_all_calls, NULL)) return -1;
  for (int devices = 2; devices <= MOST_DEVICES; devices++) {
    for (int k = 0; k < KINDS; k++) {
      printf("%d devices, calls of kind %s:", devices, kind_names[k]);
      for (int i = 0; i < devices; i++) printf(" %u", shared->calls[devices][i][k]);
      printf("\n");
    }
  }
  return 0;
}

/* ---- one alone ---- */

static int run_alone(const char *text) {
  plan p = {0};
  outcome found;
  unsigned call;
  int device;
  char when[8], call_kind[20], lasting[2] = "", way[10];
  if (sscanf(text, "%d %7s %19[a-z]@%u%1[+]/%d:%9[a-z]", &p.devices, when, call_kind, &call, lasting, &device, way) !=
          7 &&
      sscanf(text, "%d %7s %19[a-z]@%u/%d:%9[a-z]", &p.devices, when, call_kind, &call, &device, way) != 6) {
    fprintf(stderr, "\"%s\" is not like \"2 drop kernel@17/1:late\"\n", text);
    return 2;
  }
  while (p.kind < KINDS - 1 && strcmp(kind_names[p.kind], call_kind) != 0) p.kind++;
  while (p.fault < FAULTS - 1 && strcmp(fault_names[p.fault], way) != 0) p.fault++;
  p.on_failure = strcmp(when, "drop") == 0 ? HELIO_DROP : HELIO_STOP;
  p.lasting = lasting[0] == '+';
  if (prepare(NULL)) return 1;
  const char *wrong = run_fault(&p, call, device, &found);
  return tell_trial(&found, wrong);
}

/* ---- all ---- */

static bool makes_sense(const plan *p) {
  bool writes = p->kind == COPY || p->kind == KERNEL || p->kind == COLLECTIVE;
  if (p->fault == NOT_A_NUMBER) return writes; /* other calls write nothing that could be a number */
  /* A wait that ends too early lets the device write to memory that is another's by then: nobody can stand that. */
  return p->fault != SHORT || p->kind != EVENT;
}

static const char *name_of(const plan *p) {
  char *name = malloc(80);
  if (name) {
    snprintf(name, 80, "%d_devices_%s_%s%s_%s", p->devices, kind_names[p->kind], fault_names[p->fault],
             p->lasting ? "_from_then_on" : "", p->on_failure == HELIO_DROP ? "drop" : "stop");
  }
  return name;
}

static int run_those(const struct CMUnitTest *tests, size_t count, const char *filter) {
  if (filter) cmocka_set_test_filter(filter);
  return _cmocka_run_group_tests("faults", tests, count, prepare, NULL);
}

/* Shares of the tests that run at once, because most of the time goes by in waiting for deadlines: all kinds of calls,
 * and of sums, whose ranks wait for each other again and again, all ways to fail. */
enum { SHARES = COLLECTIVE + FAULTS };

static pid_t begin_share(const struct CMUnitTest *tests, size_t count, int share, FILE *output) {
  char filter[80];
  fflush(NULL);
  pid_t process = output ? fork() : -1;
  if (process != 0) return process;
  if (dup2(fileno(output), STDOUT_FILENO) < 0 || dup2(fileno(output), STDERR_FILENO) < 0) _exit(1);
  if (share < COLLECTIVE) {
    snprintf(filter, sizeof filter, "*_devices_%s_*", kind_names[share]);
  } else {
    snprintf(filter, sizeof filter, "*_devices_collective_%s_*", fault_names[share - COLLECTIVE]);
  }
  exit(run_those(tests, count, filter));
}

/* Told one behind the other. */
static int run_side_by_side(const struct CMUnitTest *tests, size_t count) {
  FILE *outputs[SHARES];
  pid_t processes[SHARES];
  char line[1000];
  int result = 0, status;
  for (int i = 0; i < SHARES; i++) {
    outputs[i] = tmpfile();
    processes[i] = begin_share(tests, count, i, outputs[i]);
    if (processes[i] < 0) return 1;
  }
  for (int i = 0; i < SHARES; i++) {
    while (waitpid(processes[i], &status, 0) < 0 && errno == EINTR) continue;
    if (status != 0) result = 1;
    rewind(outputs[i]);
    while (fgets(line, sizeof line, outputs[i])) fputs(line, stdout);
    fclose(outputs[i]);
  }
  return result;
}

int main(int argc, char **argv) {
  enum { MOST = 2 * KINDS * FAULTS * 2 * 2 };
  static plan plans[MOST];
  static struct CMUnitTest tests[MOST];
  size_t count = 0;
  remember_environment();
  clear_environment();
  if (sweep_alone()) return run_alone(sweep_alone());
  for (int i = 0; i < MOST; i++) {
    plan p = {.devices = 2 + i % 2,
              .on_failure = i / 2 % 2 ? HELIO_STOP : HELIO_DROP,
              .lasting = i / 4 % 2,
              .fault = (fault)(i / 8 % FAULTS),
              .kind = (kind)(i / 8 / FAULTS)};
    if (!makes_sense(&p)) continue;
    plans[count] = p;
    tests[count] = (struct CMUnitTest){.name = name_of(&p), .test_func = go_over_calls, .initial_state = &plans[count]};
    count++;
  }
  /* A filter is such as "2_devices_*late*". With a sanitizer they compute more than they wait. */
  bool alone = argc > 1 || SANITIZED;
  int result = alone ? run_those(tests, count, argv[1]) : run_side_by_side(tests, count);
  for (size_t i = 0; i < count; i++) free((char *)tests[i].name);
  return result;
}
