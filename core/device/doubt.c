/* SPDX-License-Identifier: Apache-2.0 */
#include "device/doubt.h"

/* Of all devices' lists: they change when groups come and go, and an answer takes no time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void hi_doubt_raise(hi_device *device, hi_doubt *doubt) {
  pthread_mutex_lock(&lock);
  if (!doubt->raised) {
    doubt->next = atomic_load(&device->doubts);
    doubt->raised = true;
    atomic_store(&device->doubts, doubt);
  }
  pthread_mutex_unlock(&lock);
}

bool hi_doubt_end(hi_device *device, hi_doubt *doubt) {
  pthread_mutex_lock(&lock);
  bool raised = doubt->raised;
  hi_doubt *before = NULL, *at = raised ? atomic_load(&device->doubts) : doubt;
  for (; at != doubt; at = at->next) before = at;
  if (raised && before) before->next = doubt->next;
  if (raised && !before) atomic_store(&device->doubts, doubt->next);
  doubt->raised = false;
  pthread_mutex_unlock(&lock);
  return raised;
}

helio_status hi_doubt_ask(hi_device *device) {
  helio_status status = HELIO_OK;
  if (!atomic_load_explicit(&device->doubts, memory_order_relaxed)) return HELIO_OK;
  pthread_mutex_lock(&lock);
  for (hi_doubt *doubt = atomic_load(&device->doubts); doubt && !status; doubt = doubt->next) {
    status = doubt->ask(doubt);
  }
  pthread_mutex_unlock(&lock);
  return status;
}
