/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/progress.h"

#include <unistd.h>

#include "runtime/clock.h"

static _Thread_local hi_progress *mine;

void hi_progress_set(hi_progress *progress) {
  mine = progress;
}

static void sleep_for_ever(void) {
  for (;;) pause();
}

void hi_go_no_further(void) {
  if (mine && atomic_load_explicit(&mine->activity, memory_order_acquire) == HI_ABANDONED) sleep_for_ever();
}

void hi_doing(const char *operation, const void *device) {
  if (!mine) return;
  atomic_store_explicit(&mine->operation, operation, memory_order_relaxed);
  atomic_store_explicit(&mine->device, device, memory_order_relaxed);
  atomic_fetch_add_explicit(&mine->sequence, 1, memory_order_release);
  hi_go_no_further();
}

/* What is forgotten may be looked at just now by who abandons the thread: it is asked for first. */
void hi_done(void) {
  if (!mine) return;
  hi_go_no_further();
  atomic_store_explicit(&mine->operation, NULL, memory_order_relaxed);
  atomic_store_explicit(&mine->device, NULL, memory_order_relaxed);
}

/* Nobody but who abandons it changes the activity of another's thread. */
hi_activity hi_progress_change(hi_activity activity) {
  int before = mine ? atomic_exchange(&mine->activity, activity) : HI_WORKS;
  if (before == HI_ABANDONED) {
    atomic_store(&mine->activity, HI_ABANDONED);
    sleep_for_ever();
  }
  return (hi_activity)before;
}

hi_activity hi_progress_expose(void) {
  bool inside = mine && atomic_load(&mine->activity) == HI_INSIDE;
  return inside ? hi_progress_change(HI_WORKS) : mine ? (hi_activity)atomic_load(&mine->activity) : HI_WORKS;
}

hi_progress *hi_progress_own(void) {
  return mine;
}

bool hi_progress_abandoned(const hi_progress *progress) {
  return progress && atomic_load(&progress->activity) == HI_ABANDONED;
}

bool hi_lock_until(pthread_mutex_t *lock, const atomic_int *state, int end, uint64_t timeout_ms) {
  enum { LOOK_AGAIN_MS = 100 };
  for (uint64_t waited = 0; atomic_load(state) != end && (!timeout_ms || waited <= timeout_ms);
       waited += LOOK_AGAIN_MS) {
    if (pthread_mutex_trylock(lock) == 0) return true;
    struct timespec soon = hi_in_milliseconds(CLOCK_REALTIME, LOOK_AGAIN_MS);
    if (pthread_mutex_timedlock(lock, &soon) == 0) return true;
    hi_go_no_further();
  }
  return false;
}

/* ---- who waits ---- */

void hi_progress_watch(hi_progress *progress) {
  progress->seen = atomic_load_explicit(&progress->sequence, memory_order_acquire);
  progress->seen_at = atomic_load(&progress->activity);
  progress->life = progress->looked = hi_seconds();
}

double hi_progress_silence(const hi_progress *progress) {
  return hi_seconds() - progress->life;
}

/* Who looks so rarely did not run itself: the process was stopped, and nobody can have shown a sign of life. */
static bool was_stopped(const hi_progress *progress, double timeout) {
  double gap = hi_seconds() - progress->looked;
  return gap > 0.5 && gap > timeout / 4;
}

/* A thread that waits in a collective has that one's deadline, and behind it a second one, for those who must have come
 * to rest. That it has come back from there is a sign of life: its deadline passed for the others' sake. */
bool hi_progress_overdue(hi_progress *progress, uint64_t timeout_ms) {
  unsigned long sequence = atomic_load_explicit(&progress->sequence, memory_order_acquire);
  int activity = atomic_load(&progress->activity);
  double most = (double)timeout_ms / 1000;
  bool moved = sequence != progress->seen || activity != progress->seen_at;
  bool again = moved || activity == HI_INSIDE || was_stopped(progress, most);
  if (again) hi_progress_watch(progress);
  progress->looked = hi_seconds();
  if (activity == HI_WAITS) most = 2 * most + 0.5;
  return timeout_ms > 0 && hi_progress_silence(progress) > most;
}

/* Often enough to be exact to a twentieth. */
struct timespec hi_progress_next_look(uint64_t timeout_ms) {
  uint64_t tick_ms = timeout_ms == 0 || timeout_ms > 20000 ? 1000 : timeout_ms / 20 + 1;
  return hi_in_milliseconds(CLOCK_MONOTONIC, (long)tick_ms);
}

bool hi_progress_abandon(hi_progress *progress) {
  int activity = atomic_load(&progress->activity);
  while (activity != HI_INSIDE && activity != HI_ABANDONED) {
    if (!atomic_compare_exchange_weak(&progress->activity, &activity, HI_ABANDONED)) continue;
    progress->left = (hi_activity)activity;
    return true;
  }
  return false;
}
