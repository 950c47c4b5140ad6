/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a launch. The thread that does the work takes block after block. If that lasts, helpers are called,
 * which take blocks too. A watch looks for launches that never end. */
#define _GNU_SOURCE
#include "execute.h"

#include "internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_HELPERS = 3 };
static const double patience_before_help = 0.1; /* milliseconds; to wake a thread takes about as long */

typedef struct execution {
  const char *kernel;
  const sim_task_of_blocks *task;
  uint64_t blocks, step, start; /* the order of blocks: start + i * step, modulo their number */
  atomic_uint_fast64_t next;
  atomic_bool failed;
  sim_finding finding; /* of the block that failed first; under the mutex below, like all that follows */
  int helpers;         /* that take part */
  bool is_offered;
  double begun;
  struct execution *following; /* in the list of those under way */
} execution;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t offered = PTHREAD_COND_INITIALIZER, helped = PTHREAD_COND_INITIALIZER;
static execution *under_way;

/* ---------------------------------------------------------------------------------------------------------------------
 * Orders
 */

static uint64_t draw(uint64_t *state) {
  return sim_mix(*state += 0x9E3779B97F4A7C15ull);
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  return b ? common_divisor(b, a % b) : a;
}

static void order_blocks(execution *e, sim_order order, uint64_t seed) {
  e->step = 1;
  e->start = 0;
  if (e->blocks > UINT32_MAX) return; /* the product below must fit */
  if (order == SIM_DOWN) {
    e->step = e->start = e->blocks - 1;
  } else if (order == SIM_SHUFFLED) {
    e->start = draw(&seed) % e->blocks;
    do e->step = draw(&seed) % e->blocks;
    while (common_divisor(e->step, e->blocks) != 1);
  }
}

static void order_threads(sim_position *positions, unsigned count, sim_index size, sim_order order, uint64_t seed) {
  for (unsigned i = 0; i < count; i++) {
    unsigned number = order == SIM_DOWN ? count - 1 - i : i;
    positions[i] = (sim_position){{number % size.x, number / size.x % size.y, number / size.x / size.y}, number};
  }
  for (unsigned i = count - 1; order == SIM_SHUFFLED && i > 0; i--) {
    unsigned other = (unsigned)(draw(&seed) % (i + 1));
    sim_position swapped = positions[i];
    positions[i] = positions[other];
    positions[other] = swapped;
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Blocks
 */

static sim_index block_index(const execution *e, uint64_t i) {
  uint64_t number = (e->start + i * e->step % e->blocks) % e->blocks;
  sim_index size = e->task->grid_size;
  return (sim_index){(unsigned)(number % size.x), (unsigned)(number / size.x % size.y),
                     (unsigned)(number / size.x / size.y)};
}

static void fail(execution *e, const sim_finding *finding) {
  pthread_mutex_lock(&mutex);
  if (!atomic_exchange(&e->failed, true)) e->finding = *finding;
  pthread_mutex_unlock(&mutex);
}

static void offer(execution *e) {
  pthread_mutex_lock(&mutex);
  e->is_offered = true;
  pthread_cond_broadcast(&offered);
  pthread_mutex_unlock(&mutex);
}

static void take_blocks(execution *e, bool may_offer) {
  sim_finding finding;
  sim_runner *runner = sim_runner_here();
  if (!runner) {
    fail(e, &(sim_finding){.kind = "no memory", .status = SIM_OUT_OF_MEMORY});
    return;
  }
  sim_runner_begin(runner, e->task);
  for (uint64_t i; !atomic_load(&e->failed) && (i = atomic_fetch_add(&e->next, 1)) < e->blocks;) {
    if (!sim_runner_run(runner, block_index(e, i), &finding)) fail(e, &finding);
    if (may_offer && i + 2 < e->blocks && sim_clock() - e->begun > patience_before_help) {
      may_offer = false;
      offer(e);
    }
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Helpers and the watch: threads that live as long as the process
 */

static execution *offered_one(void) {
  execution *e = under_way;
  while (e && !(e->is_offered && atomic_load(&e->next) < e->blocks)) e = e->following;
  return e;
}

static void *helper_main(void *argument) {
  (void)argument;
  pthread_mutex_lock(&mutex);
  for (;;) {
    execution *e = offered_one();
    if (!e) {
      pthread_cond_wait(&offered, &mutex);
      continue;
    }
    e->helpers++;
    pthread_mutex_unlock(&mutex);
    sim_runner_arm();
    take_blocks(e, false);
    pthread_mutex_lock(&mutex);
    e->helpers--;
    pthread_cond_broadcast(&helped);
  }
  return NULL;
}

/* A kernel that never ends cannot be stopped, on a device or here. */
static void *watch_main(void *argument) {
  (void)argument;
  double limit = sim_setup()->patience * 1000.0;
  for (;;) {
    usleep(250000);
    pthread_mutex_lock(&mutex);
    for (execution *e = under_way; e; e = e->following) {
      if (sim_clock() - e->begun < limit) continue;
      sim_violation("kernel does not end", "%s runs for more than %.0f seconds", e->kernel, limit / 1000);
      fprintf(stderr, "gpusim: the kernel %s does not end, so the process does\n", e->kernel);
      _exit(SIM_EXIT);
    }
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

/* Without a name of its own it would have that of a thread of the program's. */
static void start_thread(void *(*main)(void *)) {
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (pthread_create(&thread, &attributes, main, NULL))
    fprintf(stderr, "gpusim: a thread cannot be started\n");
  else
    pthread_setname_np(thread, "gpusim");
  pthread_attr_destroy(&attributes);
}

static void start_threads(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  for (long i = 1; i < cores && i <= MOST_HELPERS; i++) start_thread(helper_main);
  start_thread(watch_main);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * One launch
 */

static void enter(execution *e) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start_threads);
  e->begun = sim_clock();
  pthread_mutex_lock(&mutex);
  e->following = under_way;
  under_way = e;
  pthread_mutex_unlock(&mutex);
}

/* From here on no helper comes; those who did have ended. */
static void leave(execution *e) {
  pthread_mutex_lock(&mutex);
  execution **link = &under_way;
  while (*link != e) link = &(*link)->following;
  *link = e->following;
  while (e->helpers > 0) pthread_cond_wait(&helped, &mutex);
  pthread_mutex_unlock(&mutex);
}

/* Where an instruction comes from, as ", kernels.cu:16": asks a program that may not be there; "" then. */
static void find_line(const void *instruction, char *text, size_t size) {
  Dl_info library;
  int file;
  *text = 0;
  if (!instruction || !dladdr(instruction, &library) || sscanf(library.dli_fname, "/proc/self/fd/%d", &file) != 1)
    return;
  char command[128], line[256] = "";
  snprintf(command, sizeof command, "addr2line -e /proc/%d/fd/%d %#tx 2>/dev/null", (int)getpid(), file,
           (const char *)instruction - (const char *)library.dli_fbase);
  FILE *answer = popen(command, "re");
  if (!answer) return;
  if (!fgets(line, sizeof line, answer)) *line = 0;
  pclose(answer);
  const char *name = strrchr(line, '/') ? strrchr(line, '/') + 1 : line;
  if (*line && !strchr(line, '?')) snprintf(text, size, ", %.*s", (int)strcspn(name, " \n"), name);
}

static void tell(const execution *e) {
  char line[128];
  find_line(e->finding.instruction, line, sizeof line);
  sim_violation(e->finding.kind, "kernel %s, %s%s", e->kernel, e->finding.text, line);
}

sim_status sim_execute(const char *kernel, sim_task_of_blocks *task, uint64_t seed) {
  sim_order order = sim_setup()->order;
  sim_position positions[SIM_THREADS_PER_BLOCK];
  execution e = {
      .kernel = kernel, .task = task, .blocks = (uint64_t)task->grid_size.x * task->grid_size.y * task->grid_size.z};
  order_blocks(&e, order, seed);
  order_threads(positions, task->threads, task->block_size, order, seed);
  task->order = positions;
  task->descending = order == SIM_DOWN || (order == SIM_SHUFFLED && (seed & 1));
  sim_runner_arm();
  enter(&e);
  take_blocks(&e, true);
  leave(&e);
  if (!atomic_load(&e.failed)) return SIM_OK;
  tell(&e);
  return e.finding.status;
}
