/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/threads.h"

#include <signal.h>
#include <stdio.h>

/* All but those that a thread raises by what it does itself: blocked, they would end the process behind the back of its
 * handlers. */
static void fill_with_foreign(sigset_t *signals) {
  static const int own[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
  sigfillset(signals);
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) sigdelset(signals, own[i]);
}

/* A thread begins with the mask of the one that makes it. */
int hi_thread_start(pthread_t *thread, const char *name, void *(*body)(void *argument), void *argument) {
  char shown[16];
  sigset_t blocked, before;
  fill_with_foreign(&blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  int failure = pthread_create(thread, NULL, body, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failure) return failure;
  snprintf(shown, sizeof shown, "%s", name);
  pthread_setname_np(*thread, shown);
  return 0;
}
