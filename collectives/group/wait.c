/* SPDX-License-Identifier: Apache-2.0 */
#include "wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A sleeper counts itself before it looks for the last time; who changes something looks at that count afterwards. Both
 * in one order for all threads (sequentially consistent), so that one of the two sees the other. */

bool group_reached(const group *g, uint32_t other, uint32_t progress) {
  return (int32_t)(atomic_load(&g->rank[other].progress) - progress) >= 0;
}

bool group_all_reached(const group *g, uint32_t other, uint32_t progress) {
  (void)other;
  for (uint32_t i = 0; i < g->rank_count; i++) {
    if (!group_reached(g, i, progress)) return false;
  }
  return true;
}

bool group_all_seated(const group *g, uint32_t other, uint32_t progress) {
  (void)other, (void)progress;
  for (uint32_t i = 0; i < g->rank_count; i++) {
    if (!atomic_load(&g->rank[i].seated)) return false;
  }
  return true;
}

bool group_all_rest(const group *g, uint32_t other, uint32_t progress) {
  (void)progress;
  for (uint32_t i = 0; i < g->rank_count; i++) {
    if (i != other && atomic_load(&g->rank[i].busy)) return false;
  }
  return true;
}

void group_ring_bell(group *g) {
  atomic_fetch_add(&g->bell, 1);
  syscall(SYS_futex, &g->bell, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Called behind a change that somebody may wait for. */
void group_tell_sleepers(group *g) {
  if (atomic_load(&g->sleepers) != 0) group_ring_bell(g);
}

static int64_t microseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static bool spin(group *g, group_condition *met, uint32_t other, uint32_t progress, bool heed) {
  if (met(g, other, progress)) return true;
  if (g->spin_us == 0) return false;
  int64_t end = microseconds() + g->spin_us;
  int rounds = 0;
  do {
    for (int i = 0; i < 32; i++) {
      if (met(g, other, progress)) return true;
      relax();
    }
    if (++rounds > 4) sched_yield(); /* the thread that is waited for may have been put on this very core */
  } while (!(heed && atomic_load_explicit(&g->broken, memory_order_relaxed)) && microseconds() < end);
  return false;
}

/* Sleeps until the bell rings, or for a moment; false: `left`, in microseconds, is used up. Only time in which this
 * thread could run counts: whoever was stopped with the whole process has not waited. */
static bool sleep_on(group *g, unsigned bell, int64_t *left) {
  enum { SLICE = 100000 };
  struct timespec moment = {.tv_nsec = (*left < SLICE ? (long)*left : SLICE) * 1000};
  if (g->timeout_ms != 0 && *left <= 0) return false;
  int64_t begin = microseconds();
  syscall(SYS_futex, &g->bell, FUTEX_WAIT_PRIVATE, bell, g->timeout_ms ? &moment : NULL, NULL, 0);
  int64_t spent = microseconds() - begin;
  *left -= spent < 2 * SLICE ? spent : 2 * SLICE;
  return true;
}

/* Waits until the condition is met, the group breaks (if that is heeded) or the time is up; false: it is up. */
bool group_wait(group *g, group_condition *met, uint32_t other, uint32_t progress, bool heed) {
  if (spin(g, met, other, progress, heed)) return true;
  int64_t left = (int64_t)g->timeout_ms * 1000;
  bool in_time = true;
  atomic_fetch_add(&g->sleepers, 1);
  for (;;) {
    unsigned bell = atomic_load(&g->bell);
    if (met(g, other, progress) || (heed && atomic_load(&g->broken))) break;
    if (!in_time) break;
    in_time = sleep_on(g, bell, &left);
  }
  atomic_fetch_sub(&g->sleepers, 1);
  return in_time;
}
