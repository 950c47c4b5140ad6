/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of a short training on two emulated GPUs, each made to fail in each way that the emulator knows. The
 * training ends with a clear error, or goes on and comes to what one device comes to. Afterwards a new strategy on the
 * other device trains as if nothing had been. Nothing crashes, hangs or is left: of what the emulator finds, and of
 * what is left on a device that is not lost, it makes an exit status of its own.
 *
 * Each test is a kind of call and a way to fail, of a policy and a way to sum; it goes over the calls of both devices,
 * each in a child, as many as HELIO_TEST_FAULTS says (see sweep.h): every tenth means that those of a policy come by
 * every tenth call together. HELIO_TEST_FAULTS=RULE runs one alone and says what happened, such as "vendor drop
 * lost:launch:17@1": "vendor" or "one", which is what sums, "drop" or "stop", and the emulator's own rule. */
#include <sys/mman.h>

#include "counters.h"
#include "support.h"
#include "sweep.h"
#include "trial.h"

enum { DEVICES = 2, CHILDREN = 2, PACES = 3 };

typedef enum way { ONCE, FROM_THEN_ON, LOST, LATE, WAYS } way;

typedef struct plan {
  sim_occasion kind;
  way way;
  bool to_one; /* sums are formed on one device, else by the vendor's library */
  helio_on_failure on_failure;
} plan;

/* Of a plan: kinds of calls with the names of the emulator's rules. */
static const struct {
  sim_occasion occasion;
  const char *name;
} kinds[] = {
    {SIM_ALLOCATION, "allocation"}, {SIM_LAUNCH, "launch"},   {SIM_COPY, "copy"},      {SIM_LIBRARY, "library"},
    {SIM_COLLECTIVE, "collective"}, {SIM_CREATION, "create"}, {SIM_HOST_WAIT, "wait"}, {SIM_POLL, "poll"},
};
static const char *const way_names[] = {"once", "from_then_on", "lost", "late"};
static const char *const device_names[] = {"gpu:0", "gpu:1"};

/* What children find out. */
static struct shared {
  outcome reference;                              /* of one device that does not fail */
  unsigned calls[2][2][DEVICES][COUNT_OF(kinds)]; /* by debugging of memory, sum, device and kind */
} * shared;

static const char *name_of(sim_occasion occasion) {
  size_t i = 0;
  while (kinds[i].occasion != occasion) i++;
  return kinds[i].name;
}

/* ---- the library ---- */

/* Where every block of memory is an allocation of its own there are enough of them. */
static bool debugs_memory(const plan *p) {
  return p->kind == SIM_ALLOCATION;
}

/* The emulator comes to all paces by turns. */
static void start(const plan *p, unsigned call, const char *rule) {
  char path[PATH_MAX * 4], seed[16];
  restore_environment();
  snprintf(path, sizeof path, "%s:%s/collectives/nccl/.libs", given_path, build_folder());
  snprintf(seed, sizeof seed, "%u", 1 + call % PACES);
  setenv("HELIO_PLUGIN_PATH", path, 1);
  setenv("HELIO_NUM_THREADS", "1", 1);
  setenv("HELIO_TIMEOUT", "20", 1);
  setenv("HELIO_ARENA_DEBUG", debugs_memory(p) ? "1" : "0", 1);
  setenv("GPUSIM_SEED", seed, 1);
  setenv("GPUSIM_FAULT", rule, 1);
}

static bool on_cuda(void) {
  return strcmp(given_backend, "cuda") == 0;
}

static helio_strategy *mirrored(const void *of) {
  const plan *p = of;
  return helio_mirrored(.devices = {device_names[0], device_names[1]},
                        .collective = p->to_one   ? "reduce-to-one"
                                      : on_cuda() ? "nccl"
                                                  : "rccl",
                        .on_failure = p->on_failure);
}

/* ---- one fault ---- */

static void rule_of(const plan *p, unsigned call, int device, char rule[80]) {
  snprintf(rule, 80, "%s%s:%u%s@%d",
           p->way == LOST   ? "lost:"
           : p->way == LATE ? "late,"
                            : "",
           name_of(p->kind), call, p->way == FROM_THEN_ON ? "+" : "", device);
}

static void describe(const void *of, unsigned call, int device, char text[RULE_ROOM]) {
  const plan *p = of;
  char rule[80];
  rule_of(p, call, device, rule);
  snprintf(text, RULE_ROOM, "%s %s %s", p->to_one ? "one" : "vendor", p->on_failure == HELIO_DROP ? "drop" : "stop",
           rule);
}

static unsigned calls_of(const plan *p, int device) {
  size_t kind = 0;
  while (kinds[kind].occasion != p->kind) kind++;
  return shared->calls[debugs_memory(p)][p->to_one][device][kind];
}

static const char *run_fault(const plan *p, unsigned call, int device, outcome *found) {
  char rule[80];
  rule_of(p, call, device, rule);
  start(p, call, rule);
  return run_trial(&(trial){.what = IMAGES,
                            .expected = &shared->reference,
                            .plan = p,
                            .make = mirrored,
                            .other = device_names[device == 0 ? 1 : 0]},
                   found);
}

static const char *run_call(const void *of, unsigned call, int device) {
  outcome found;
  const char *wrong = run_fault(of, call, device, &found);
  if (wrong) print_trial();
  return wrong;
}

/* ---- one test ---- */

/* Of each policy as many tests share the calls of a kind, by sums and ways to fail, unless all of them are taken. */
enum { SHARES = 2 * WAYS };

static unsigned share_of(const plan *p) {
  return (unsigned)p->way * 2 + p->to_one;
}

static void go_over_calls(void **state) {
  const plan *p = *state;
  unsigned calls[DEVICES];
  for (int i = 0; i < DEVICES; i++) calls[i] = calls_of(p, i);
  /* What the wait of one replica has had done the other one need not wait for. */
  bool by_chance = p->kind == SIM_HOST_WAIT || p->kind == SIM_POLL;
  assert_true(by_chance ? calls[0] + calls[1] > 0 : calls[0] > 0 && calls[1] > 0);
  sweep s = {.plan = p,
             .devices = DEVICES,
             .calls = calls,
             .first = share_of(p) * 10,
             .sparse = SHARES,
             .children = CHILDREN,
             .is_one_each = true, /* the emulator reads its rules once */
             .run = run_call,
             .describe = describe};
  assert_int_equal(sweep_calls(&s), 0);
}

/* ---- before all ---- */

static bool find_reference(void *argument) {
  start(&(plan){.kind = SIM_LAUNCH}, 0, "");
  capture_log();
  HELIO_POOL train(helio_one_device(device_names[0]), IMAGES, &shared->reference);
  if (!shared->reference.finished) fprintf(stderr, "%s\n", shared->reference.error.message);
  CHILD_CHECK(shared->reference.finished && shared->reference.unknown == 0);
  CHILD_CHECK(helio_shutdown() == HELIO_OK);
  (void)argument;
  return true;
}

/* How many calls a training makes in which nothing fails. */
static bool count_calls(void *argument) {
  const plan *p = argument;
  outcome found;
  start(p, 0, "");
  capture_log();
  HELIO_POOL train(mirrored(p), IMAGES, &found);
  const char *wrong = found.finished ? difference(&found, &shared->reference) : found.error.message;
  if (wrong) fprintf(stderr, "%s\n", wrong);
  CHILD_CHECK(!wrong && found.unknown == 0 && found.samples == shared->reference.samples);
  for (int device = 0; device < DEVICES; device++) {
    sim_counters counters;
    CHILD_CHECK(read_counters(on_cuda() ? SIM_CUDA : SIM_HIP, device, &counters));
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
      shared->calls[debugs_memory(p)][p->to_one][device][i] = (unsigned)counters.occasions[kinds[i].occasion];
  }
  CHILD_CHECK(helio_shutdown() == HELIO_OK);
  return true;
}

static int prepare(void **state) {
  (void)state;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || run_in_child(find_reference, NULL)) return -1;
  for (int i = 0; i < 4; i++) {
    plan p = {.kind = i % 2 ? SIM_ALLOCATION : SIM_LAUNCH, .to_one = i / 2};
    if (run_in_child(count_calls, &p)) return -1;
    printf("sums by %s, memory %s:", p.to_one ? "one device" : "the vendor", debugs_memory(&p) ? "debugged" : "usual");
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
      printf(" %s %u %u", kinds[k].name, shared->calls[i % 2][i / 2][0][k], shared->calls[i % 2][i / 2][1][k]);
    printf("\n");
  }
  return 0;
}

/* ---- one alone ---- */

static int run_alone(const char *text) {
  plan p = {.way = ONCE};
  outcome found;
  unsigned call;
  int device, used = 0;
  char sum[8], policy[8], kind[20], lasting[2] = "";
  sscanf(text, "%7s %7s %n", sum, policy, &used);
  const char *rule = text + used;
  if (strncmp(rule, "lost:", 5) == 0) p.way = LOST;
  if (strncmp(rule, "late,", 5) == 0) p.way = LATE;
  if (p.way != ONCE) rule += 5;
  bool once = sscanf(rule, "%19[a-z]:%u@%d", kind, &call, &device) == 3;
  if (!once && sscanf(rule, "%19[a-z]:%u%1[+]@%d", kind, &call, lasting, &device) == 4) p.way = FROM_THEN_ON;
  size_t which = 0;
  while ((once || lasting[0]) && which < COUNT_OF(kinds) && strcmp(kinds[which].name, kind) != 0) which++;
  if ((!once && !lasting[0]) || which == COUNT_OF(kinds) || device < 0 || device >= DEVICES) {
    fprintf(stderr, "\"%s\" is not like \"vendor drop launch:17@1\"\n", text);
    return 2;
  }
  p.kind = kinds[which].occasion;
  p.to_one = strcmp(sum, "one") == 0;
  p.on_failure = strcmp(policy, "drop") == 0 ? HELIO_DROP : HELIO_STOP;
  return prepare(NULL) ? 1 : tell_trial(&found, run_fault(&p, call, device, &found));
}

/* ---- all ---- */

static bool makes_sense(const plan *p) {
  if (p->kind == SIM_COLLECTIVE && p->to_one) return false; /* there are none */
  /* What is done while the host looks on cannot be told late. */
  bool later = p->kind == SIM_LAUNCH || p->kind == SIM_COPY || p->kind == SIM_LIBRARY || p->kind == SIM_COLLECTIVE;
  return p->way != LATE || later;
}

static const char *title_of(const plan *p) {
  char *name = malloc(80);
  if (name) {
    snprintf(name, 80, "%s_%s_%s_sums_by_%s", name_of(p->kind), way_names[p->way],
             p->on_failure == HELIO_DROP ? "drop" : "stop", p->to_one ? "one_device" : "the_vendor");
  }
  return name;
}

int main(int argc, char **argv) {
  enum { POLICIES = 2, MOST = COUNT_OF(kinds) * SHARES * POLICIES };
  static plan plans[MOST];
  static struct CMUnitTest tests[MOST];
  size_t count = 0;
  remember_environment();
  if (sweep_alone()) return run_alone(sweep_alone());
  for (size_t i = 0; i < MOST; i++) {
    plan p = {.on_failure = i % 2 ? HELIO_STOP : HELIO_DROP,
              .to_one = i / 2 % 2,
              .way = (way)(i / 4 % WAYS),
              .kind = kinds[i / (SHARES * POLICIES)].occasion};
    if (!makes_sense(&p)) continue;
    plans[count] = p;
    tests[count] =
        (struct CMUnitTest){.name = title_of(&p), .test_func = go_over_calls, .initial_state = &plans[count]};
    count++;
  }
  if (argc > 1) cmocka_set_test_filter(argv[1]); /* such as "launch_*" */
  int result = _cmocka_run_group_tests("gpu faults", tests, count, prepare, NULL);
  for (size_t i = 0; i < count; i++) free((char *)tests[i].name);
  return result;
}
