/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of a ten-step training on 2 and 3 strict devices, each made to fail in each way. The training ends with a
 * clear error, or goes on and comes to what one device comes to. Afterwards a new strategy on the other devices trains
 * as if nothing had been, and no thread is left that was not named.
 *
 * Each test is a kind of call and a way to fail; it goes over the calls of every device, in children by turns.
 * HELIO_TEST_FAULTS=all takes every call, "tenth" every tenth, which is usual, "few" every 200th, which is usual
 * with sanitizers. HELIO_TEST_FAULTS=RULE runs one alone, such as "2 drop kernel@17/1:late", and says what happened. */
#include <glob.h>
#include <math.h>
#include <sys/mman.h>

#include "support.h"
#include "training.h"

enum { MOST_DEVICES = 3, CHILDREN = 2, SLEEPERS = 40, MOST_PARALLEL = SLEEPERS };

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
  struct {
    unsigned call;
    int device;
    bool failed;
    char message[2200];
  } child[MOST_PARALLEL];
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
  setenv("HELIO_TIMEOUT", timeout_for(p), 1);
  setenv("HELIO_CHECK_REPLICAS", is_silent(p) ? "1" : "0", 1);
  setenv("HELIO_ARENA_DEBUG", p->kind == ALLOCATION ? "1" : "0", 1); /* else there are hardly any */
  seen.count = 0;
  helio_set_log_sink(keep_line, NULL);
}

static helio_strategy *mirrored(const plan *p) {
  helio_mirrored_options options = {
      .size = sizeof options, .collective = collective_for(p), .on_failure = p->on_failure};
  for (int i = 0; i < p->devices; i++) options.devices[i] = device_names[i];
  return helio_mirrored_with(&options);
}

/* ---- one fault ---- */

static bool is_clear(const helio_error *error) {
  bool known = error->status == HELIO_DEVICE_FAILURE || error->status == HELIO_REPLICA_LOST ||
               error->status == HELIO_TIMED_OUT || error->status == HELIO_ABORTED || error->status == HELIO_BAD_DATA ||
               error->status == HELIO_NO_DEVICE || strstr(error->message, "the ranks' calls differ");
  return known && (strstr(error->message, "/device:GPU:") || strstr(error->message, "replica"));
}

/* NULL if the training under the fault ended as it should. */
static const char *judge(const plan *p, const outcome *found) {
  static char text[2200];
  if (!found->finished) {
    if (is_clear(&found->error)) return NULL;
    snprintf(text, sizeof text, "this is no clear error: %s: %s", helio_status_name(found->error.status),
             found->error.message);
    return text;
  }
  const char *wrong = difference(found, &shared->reference);
  if (!wrong) return NULL;
  if (is_silent(p) && !found->differ) return NULL;
  snprintf(text, sizeof text, "%s, with %d replicas left", wrong, found->replicas);
  return text;
}

/* A new strategy, on a device that did not fail. */
static const char *train_again(int failing) {
  static char text[2200];
  const char *wrong = NULL;
  HELIO_POOL {
    outcome again = {0};
    const char *other = device_names[failing == 0 ? 1 : 0];
    HELIO_DEVICE(other) {
      helio_strategy *strategy = helio_one_device(other);
      if (strategy) {
        train(strategy, &again);
      } else {
        helio_error_take(&again.error);
      }
    }
    wrong = again.finished ? difference(&again, &shared->reference) : again.error.message;
  }
  if (!wrong) return NULL;
  snprintf(text, sizeof text, "afterwards, on another device: %s", wrong);
  return text;
}

/* Of what hangs, every second comes back when nobody expects it any more. */
static void rule_of(const plan *p, unsigned call, int device, char *text, size_t size) {
  char amount[16] = "";
  if (p->fault == HANG && call % 2 == 1) snprintf(amount, sizeof amount, "=%d", TIMEOUT * 1000 + 100);
  snprintf(text, size, "%s@%u%s/%d:%s%s", kind_names[p->kind], call, p->lasting ? "+" : "", device,
           fault_names[p->fault], amount);
}

/* Threads of the library, as they are named: sanitizers have some of their own. One that was joined may be seen a
 * moment longer. */
static int own_threads(int expected) {
  int count = 0;
  for (int i = 0; i < (expected < 0 ? 1 : 5000); i++) {
    glob_t names;
    count = 0;
    if (glob("/proc/self/task/*/comm", 0, NULL, &names)) return 0;
    for (size_t k = 0; k < names.gl_pathc; k++) {
      char name[32] = "";
      FILE *file = fopen(names.gl_pathv[k], "r");
      if (file && fgets(name, sizeof name, file)) count += strncmp(name, "helio-", 6) == 0;
      if (file) fclose(file);
    }
    globfree(&names);
    if (count == expected) break;
    usleep(1000);
  }
  return count;
}

static const char *run_fault(const plan *p, unsigned call, int device, outcome *found) {
  static char text[2200];
  char rules[80];
  helio_error ending;
  int threads = own_threads(-1);
  memset(found, 0, sizeof *found);
  rule_of(p, call, device, rules, sizeof rules);
  start(p, rules);
  HELIO_POOL {
    helio_strategy *strategy = mirrored(p);
    if (strategy) {
      train(strategy, found);
    } else {
      helio_error_take(&found->error);
    }
  }
  const char *wrong = judge(p, found);
  if (!wrong) wrong = train_again(device);
  helio_shutdown();
  if (helio_error_take(&ending) && !is_clear(&ending) && !wrong) { /* a device that fails may say so once more */
    snprintf(text, sizeof text, "helio_shutdown() failed: %s", ending.message);
    wrong = text;
  }
  int abandoned = lines_with("thread is abandoned", "ERROR:");
  int left = own_threads(threads + abandoned) - threads;
  if (wrong || left <= abandoned) return wrong;
  snprintf(text, sizeof text, "%d threads are left, %d are named", left, abandoned);
  return text;
}

/* ---- children ---- */

/* Of so many calls one is made to fail; 0: the variable names something else. */
static unsigned pace(void) {
  const char *given = getenv("HELIO_TEST_FAULTS");
  if (!given) return SANITIZED ? 200 : 10;
  return strcmp(given, "all") == 0 ? 1 : strcmp(given, "tenth") == 0 ? 10 : strcmp(given, "few") == 0 ? 200 : 0;
}

/* The calls that are made to fail, one after another; false: there are no more. */
typedef struct walk {
  const plan *plan;
  int device;
  unsigned call;
} walk;

static bool next_call(walk *w) {
  const plan *p = w->plan;
  /* Each way to fail begins elsewhere, so that together they come by all calls. */
  w->call += w->call ? pace() : 1 + (unsigned)(p->fault * 2 + w->device) % pace();
  while (w->call > shared->calls[p->devices][w->device][p->kind]) {
    if (++w->device == p->devices) return false;
    w->call = 1 + (unsigned)(p->fault * 2 + w->device) % pace();
  }
  return true;
}

/* One call after another, each with the library started anew; says at which it is. Where something hangs the library
 * cannot be started again with the same plugin, so there it is one call alone. */
static void run_share(walk *w, int child) {
  for (bool more = true; more;) {
    outcome found;
    shared->child[child].call = w->call;
    shared->child[child].device = w->device;
    alarm(SANITIZED ? 120 : 40);
    const char *wrong = run_fault(w->plan, w->call, w->device, &found);
    if (wrong) {
      print_seen();
      snprintf(shared->child[child].message, sizeof shared->child[child].message, "%s", wrong);
      shared->child[child].failed = true;
      _exit(1);
    }
    if (w->plan->fault == HANG) break;
    for (int i = 0; i < CHILDREN && more; i++) more = next_call(w);
  }
}

static pid_t begin_child(walk w, int child) {
  fflush(NULL);
  memset(&shared->child[child], 0, sizeof shared->child[child]);
  pid_t process = fork();
  if (process != 0) return process;
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  for (int i = 1; i < SIGRTMIN; i++) signal(i, SIG_DFL); /* cmocka's would go on with its tests here */
  run_share(&w, child);
  exit(0); /* with the check for leaks */
}

static void report(const plan *p, int child, int status) {
  char rules[80];
  rule_of(p, shared->child[child].call, shared->child[child].device, rules, sizeof rules);
  print_error("HELIO_TEST_FAULTS=\"%d %s %s\": ", p->devices, p->on_failure == HELIO_DROP ? "drop" : "stop", rules);
  if (shared->child[child].failed) {
    print_error("%s\n", shared->child[child].message);
  } else if (WIFSIGNALED(status)) {
    print_error("%s\n", WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
  } else {
    print_error("exit status %d\n", WEXITSTATUS(status));
  }
}

/* Waits for any child and says whether it failed; its place is free then. */
static bool end_child(const plan *p, pid_t *processes, int *place) {
  int status = -1;
  pid_t ended;
  while ((ended = waitpid(-1, &status, 0)) < 0 && errno == EINTR) continue;
  for (*place = 0; processes[*place] != ended; ++*place) continue;
  processes[*place] = 0;
  if (status != 0) report(p, *place, status);
  return status != 0;
}

/* One test. */
static void sweep(void **state) {
  const plan *p = *state;
  pid_t processes[MOST_PARALLEL] = {0};
  int parallel = p->fault == HANG ? SLEEPERS : CHILDREN, running = 0, place, failed = 0;
  walk w = {.plan = p};
  for (int number = 0; next_call(&w) && (p->fault == HANG || number < CHILDREN); number++) {
    place = running;
    if (running < parallel) {
      running++;
    } else {
      failed += end_child(p, processes, &place);
    }
    processes[place] = begin_child(w, place);
  }
  for (; running > 0; running--) failed += end_child(p, processes, &place);
  assert_int_equal(failed, 0);
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
  HELIO_POOL {
    helio_strategy *strategy = mirrored(p);
    CHILD_CHECK(strategy);
    train(strategy, &found);
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
    train(strategy, &shared->reference);
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
  for (int i = 0; i < seen.count; i++) fprintf(stderr, "%s\n", seen.lines[i]);
  fprintf(stderr, "%s: %s\n", found.finished ? "finished" : "ended by an error", found.error.message);
  fprintf(stderr, "%s\n", wrong ? wrong : "as it should be");
  return wrong != NULL;
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

int main(int argc, char **argv) {
  enum { MOST = 2 * KINDS * FAULTS * 2 * 2 };
  static plan plans[MOST];
  static struct CMUnitTest tests[MOST];
  size_t count = 0;
  const char *alone = getenv("HELIO_TEST_FAULTS");
  remember_environment();
  clear_environment();
  if (pace() == 0) return run_alone(alone);
  for (int i = 0; i < MOST; i++) {
    plan p = {.devices = 2 + i % 2,
              .on_failure = i / 2 % 2 ? HELIO_STOP : HELIO_DROP,
              .lasting = i / 4 % 2,
              .fault = (fault)(i / 8 % FAULTS),
              .kind = (kind)(i / 8 / FAULTS)};
    if (!makes_sense(&p)) continue;
    plans[count] = p;
    tests[count] = (struct CMUnitTest){.name = name_of(&p), .test_func = sweep, .initial_state = &plans[count]};
    count++;
  }
  if (argc > 1) cmocka_set_test_filter(argv[1]); /* such as "2_devices_*late*" */
  int result = _cmocka_run_group_tests("faults", tests, count, prepare, NULL);
  for (size_t i = 0; i < count; i++) free((char *)tests[i].name);
  return result;
}
