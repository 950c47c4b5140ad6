/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep.h"

#include <sys/mman.h>
#include <time.h>

#include "support.h"

/* Where each child is and what it found, shared with them. */
typedef struct place {
  pid_t process; /* 0: none */
  unsigned call;
  int device;
  bool failed;
  char message[2200];
} place;

/* Of so many calls one is made to fail; 0: the variable names something else. */
static unsigned pace(void) {
  const char *given = getenv("HELIO_TEST_FAULTS");
  if (!given) return SANITIZED ? 200 : 10;
  return strcmp(given, "all") == 0 ? 1 : strcmp(given, "tenth") == 0 ? 10 : strcmp(given, "few") == 0 ? 200 : 0;
}

const char *sweep_alone(void) {
  return pace() == 0 ? getenv("HELIO_TEST_FAULTS") : NULL;
}

/* ---- which calls ---- */

/* The calls that are made to fail, one after another. */
typedef struct walk {
  const sweep *sweep;
  int device;
  unsigned call; /* 0: it has not begun */
} walk;

/* Taking all leaves nothing out. */
static unsigned stride_of(const sweep *s) {
  return pace() > 1 && s->sparse > 1 ? pace() * s->sparse : pace();
}

/* A device that makes few calls has one fail all the same. */
static unsigned first_call(const walk *w) {
  unsigned calls = w->sweep->calls[w->device], stride = stride_of(w->sweep);
  if (calls == 0) return 1;
  return 1 + (w->sweep->first + (unsigned)w->device) % (stride < calls ? stride : calls);
}

/* False: there are no more. */
static bool next_call(walk *w) {
  w->call = w->call ? w->call + stride_of(w->sweep) : first_call(w);
  while (w->call > w->sweep->calls[w->device]) {
    if (++w->device == w->sweep->devices) return false;
    w->call = first_call(w);
  }
  return true;
}

/* ---- children ---- */

/* Says at which call it is. */
static void run_share(walk *w, place *here) {
  for (bool more = true; more;) {
    here->call = w->call;
    here->device = w->device;
    alarm(SANITIZED ? 120 : 40);
    const char *wrong = w->sweep->run(w->sweep->plan, w->call, w->device);
    if (wrong) {
      snprintf(here->message, sizeof here->message, "%s", wrong);
      here->failed = true;
      _exit(1);
    }
    if (w->sweep->is_one_each) break;
    for (int i = 0; i < w->sweep->children && more; i++) more = next_call(w);
  }
}

static void begin_child(walk w, place *here) {
  fflush(NULL);
  memset(here, 0, sizeof *here);
  pid_t process = fork();
  if (process != 0) {
    here->process = process;
    return;
  }
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  for (int i = 1; i < SIGRTMIN; i++) signal(i, SIG_DFL); /* cmocka's would go on with its tests here */
  run_share(&w, here);
  exit(0); /* with the check for leaks */
}

static void report(const sweep *s, const place *ended, int status) {
  char rule[RULE_ROOM];
  s->describe(s->plan, ended->call, ended->device, rule);
  print_error("HELIO_TEST_FAULTS=\"%s\": ", rule);
  if (ended->failed) {
    print_error("%s\n", ended->message);
  } else if (WIFSIGNALED(status)) {
    print_error("%s\n", WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
  } else {
    print_error("exit status %d\n", WEXITSTATUS(status));
  }
}

/* Waits for any child, whose place is free then, and says whether it failed. */
static bool end_child(const sweep *s, place *places, place **freed) {
  int status = -1;
  pid_t ended;
  while ((ended = waitpid(-1, &status, 0)) < 0 && errno == EINTR) continue;
  for (*freed = places; (*freed)->process != ended; ++*freed) continue;
  (*freed)->process = 0;
  if (status != 0) report(s, *freed, status);
  return status != 0;
}

/* Nanoseconds of a processor that its threads have taken together. */
static int64_t time_taken(pid_t process) {
  clockid_t clock;
  struct timespec time;
  if (process == 0 || clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Of those that hang many can wait at a time, but who shares a core with forty others is late by that alone. Who waits
 * takes next to nothing of a processor while somebody looks on. */
static void wait_for_a_core(const place *places, int count) {
  enum { AT_WORK = 2, LOOK_US = 10000, NOTHING_NS = 200000 };
  int64_t before[MOST_CHILDREN];
  for (int busy = count; busy >= AT_WORK;) {
    for (int i = 0; i < count; i++) before[i] = time_taken(places[i].process);
    usleep(LOOK_US);
    busy = 0;
    for (int i = 0; i < count; i++) busy += time_taken(places[i].process) - before[i] > NOTHING_NS;
  }
}

int sweep_calls(const sweep *s) {
  size_t bytes = MOST_CHILDREN * sizeof(place);
  place *places = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *here;
  if (places == MAP_FAILED) return 1;
  int running = 0, failed = 0;
  walk w = {.sweep = s};
  for (int number = 0; next_call(&w) && (s->is_one_each || number < s->children); number++) {
    if (running < s->children) {
      here = &places[running++];
    } else {
      failed += end_child(s, places, &here);
    }
    if (s->is_one_each) wait_for_a_core(places, running);
    begin_child(w, here);
  }
  for (; running > 0; running--) failed += end_child(s, places, &here);
  munmap(places, bytes);
  return failed;
}
