/* SPDX-License-Identifier: Apache-2.0 */
/* The team. Each worker has a state word of its own, so that a worker which has no part in a piece of work is not woken
 * and never looks at the work's fields. The caller writes the work, sets the words of the workers it needs and does
 * part 0 itself. Then it takes back the parts that no worker has begun, since a worker that slept may come late, and
 * waits for the others. A word changes hands by acquire and release, which is all the order there is. */
#define _GNU_SOURCE
#include "team.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* States of a worker. WORK is offered by the caller; whoever changes it, to BUSY or back to IDLE, does the part. */
enum { IDLE, ASLEEP, WORK, BUSY, QUIT };

/* Set in `remaining` by a caller that went to sleep. */
#define CALLER_SLEEPS 0x80000000u

typedef struct worker {
  _Alignas(64) atomic_uint state;
  unsigned part;
  cpu_team *team;
  pthread_t thread;
} worker;

struct cpu_team {
  const helio_host *host;
  pthread_mutex_t turn; /* held by the caller whose work is under way */
  unsigned workers;
  unsigned spin_us;
  cpu_team_function *function;
  void *argument;
  unsigned parts;
  _Alignas(64) atomic_uint remaining; /* workers that have not finished */
  worker worker[];
};

static void sleep_while(atomic_uint *word, unsigned value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake_one(atomic_uint *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static int64_t microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Spins while the word's value is from `low` to `high`, but not longer than the time allowed; says what it is then. */
static unsigned spin_while(atomic_uint *word, unsigned low, unsigned high, unsigned spin_us) {
  unsigned seen = atomic_load_explicit(word, memory_order_acquire);
  if (seen < low || seen > high || spin_us == 0) return seen;
  int64_t end = microseconds() + spin_us;
  do {
    for (int i = 0; i < 32; i++) {
      seen = atomic_load_explicit(word, memory_order_acquire);
      if (seen < low || seen > high) return seen;
      relax();
    }
  } while (microseconds() < end);
  return seen;
}

/* Waits until there is a part to do, which is then this worker's; false: the team ends. */
static bool wait_for_work(worker *self) {
  for (;;) {
    unsigned state = spin_while(&self->state, IDLE, IDLE, self->team->spin_us);
    if (state == IDLE && atomic_compare_exchange_strong(&self->state, &state, ASLEEP)) state = ASLEEP;
    while (state == ASLEEP) {
      sleep_while(&self->state, ASLEEP);
      state = atomic_load_explicit(&self->state, memory_order_acquire);
    }
    if (state == QUIT) return false;
    if (state == WORK && atomic_compare_exchange_strong(&self->state, &state, BUSY)) return true;
  }
}

static void finish_part(cpu_team *team, worker *self) {
  /* Before the count: once it is zero the caller may set this worker's next work. */
  atomic_store_explicit(&self->state, IDLE, memory_order_relaxed);
  unsigned before = atomic_fetch_sub_explicit(&team->remaining, 1, memory_order_acq_rel);
  if (before == (CALLER_SLEEPS | 1)) wake_one(&team->remaining);
}

static void *worker_main(void *argument) {
  worker *self = argument;
  cpu_team *team = self->team;
  while (wait_for_work(self)) {
    team->function(team->argument, self->part, team->parts);
    finish_part(team, self);
  }
  return NULL;
}

static void set_state(worker *target, unsigned state) {
  if (atomic_exchange_explicit(&target->state, state, memory_order_acq_rel) == ASLEEP) wake_one(&target->state);
}

/* Does the parts that no worker has begun. */
static void take_back(cpu_team *team, unsigned parts) {
  for (unsigned i = 0; i + 1 < parts; i++) {
    unsigned state = WORK;
    if (!atomic_compare_exchange_strong(&team->worker[i].state, &state, IDLE)) continue;
    team->function(team->argument, i + 1, parts);
    atomic_fetch_sub_explicit(&team->remaining, 1, memory_order_acq_rel);
  }
}

static void wait_for_workers(cpu_team *team) {
  unsigned left = spin_while(&team->remaining, 1, UINT_MAX, team->spin_us);
  if (left != 0) left = atomic_fetch_or_explicit(&team->remaining, CALLER_SLEEPS, memory_order_acq_rel) | CALLER_SLEEPS;
  while ((left & ~CALLER_SLEEPS) != 0) {
    sleep_while(&team->remaining, left);
    left = atomic_load_explicit(&team->remaining, memory_order_acquire);
  }
}

void cpu_team_run(cpu_team *team, unsigned parts, cpu_team_function *function, void *argument) {
  if (parts <= 1) {
    function(argument, 0, 1);
    return;
  }
  pthread_mutex_lock(&team->turn);
  team->function = function;
  team->argument = argument;
  team->parts = parts;
  atomic_store_explicit(&team->remaining, parts - 1, memory_order_relaxed);
  for (unsigned i = 0; i + 1 < parts; i++) set_state(&team->worker[i], WORK);
  function(argument, 0, parts);
  take_back(team, parts);
  wait_for_workers(team);
  pthread_mutex_unlock(&team->turn);
}

unsigned cpu_team_size(const cpu_team *team) {
  return team->workers + 1;
}

/* The program's signals are not for these threads: a handler could run on a stack or at a time it does not expect.
 * Those that a thread raises itself stay, because blocked they would end the process whatever handler it has. */
static void block_signals(sigset_t *before) {
  static const int own[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
  sigset_t blocked;
  sigfillset(&blocked);
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) sigdelset(&blocked, own[i]);
  pthread_sigmask(SIG_SETMASK, &blocked, before);
}

static int start_worker(cpu_team *team, unsigned index) {
  worker *new = &team->worker[index];
  new->team = team;
  new->part = index + 1;
  atomic_init(&new->state, IDLE);
  sigset_t before;
  block_signals(&before);
  int error = pthread_create(&new->thread, NULL, worker_main, new);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error != 0) return error;
  char name[16];
  snprintf(name, sizeof name, "helio-cpu-%u", (index + 1) % 10000);
  pthread_setname_np(new->thread, name);
  return 0;
}

helio_status cpu_team_create(const helio_host *host, unsigned threads, unsigned spin_us, cpu_team **result) {
  unsigned workers = threads - 1;
  cpu_team *team = host->allocate(host, sizeof *team + workers * sizeof team->worker[0]);
  if (team == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a team of %u threads", threads);
  memset(team, 0, sizeof *team + workers * sizeof team->worker[0]);
  team->host = host;
  team->spin_us = spin_us;
  atomic_init(&team->remaining, 0);
  int error = pthread_mutex_init(&team->turn, NULL);
  if (error != 0) {
    host->release(host, team);
    return host->fail(host, HELIO_DEVICE_FAILURE, "cannot make a mutex: %s", strerror(error));
  }
  while (error == 0 && team->workers < workers) {
    error = start_worker(team, team->workers);
    if (error == 0) team->workers++;
  }
  if (error != 0) {
    unsigned started = team->workers + 1;
    cpu_team_destroy(team);
    return host->fail(host, HELIO_DEVICE_FAILURE, "cannot start thread %u of %u: %s (HELIO_NUM_THREADS asks for fewer)",
                      started + 1, threads, strerror(error));
  }
  *result = team;
  return HELIO_OK;
}

void cpu_team_destroy(cpu_team *team) {
  if (team == NULL) return;
  for (unsigned i = 0; i < team->workers; i++) set_state(&team->worker[i], QUIT);
  for (unsigned i = 0; i < team->workers; i++) pthread_join(team->worker[i].thread, NULL);
  pthread_mutex_destroy(&team->turn);
  team->host->release(team->host, team);
}
