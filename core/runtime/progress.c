/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/progress.h"

#include <unistd.h>

static _Thread_local hi_progress *mine;

void hi_progress_set(hi_progress *progress) {
  mine = progress;
}

static void sleep_for_ever(void) {
  for (;;) pause();
}

void hi_doing(const char *operation, const void *device) {
  if (!mine) return;
  atomic_store_explicit(&mine->operation, operation, memory_order_relaxed);
  atomic_store_explicit(&mine->device, device, memory_order_relaxed);
  atomic_fetch_add_explicit(&mine->sequence, 1, memory_order_release);
  hi_done();
}

void hi_done(void) {
  if (mine && atomic_load_explicit(&mine->activity, memory_order_acquire) == HI_ABANDONED) sleep_for_ever();
}

/* Nobody but who abandons it changes the activity of another's thread. */
void hi_progress_change(hi_activity activity) {
  if (!mine || atomic_exchange(&mine->activity, activity) != HI_ABANDONED) return;
  atomic_store(&mine->activity, HI_ABANDONED);
  sleep_for_ever();
}

bool hi_progress_abandon(hi_progress *progress) {
  int activity = HI_WORKS;
  if (atomic_compare_exchange_strong(&progress->activity, &activity, HI_ABANDONED)) return true;
  return activity == HI_WAITS && atomic_compare_exchange_strong(&progress->activity, &activity, HI_ABANDONED);
}
