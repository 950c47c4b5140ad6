/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/threads.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/leaks.h"

enum { SHOWN = 16 }; /* bytes of a name, with the 0 */

/* All but those that a thread raises by what it does itself: blocked, they would end the process behind the back of its
 * handlers. */
static void fill_with_foreign(sigset_t *signals) {
  static const int own[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
  sigfillset(signals);
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) sigdelset(signals, own[i]);
}

/* A thread begins with the mask of the one that makes it. */
static int start(pthread_t *thread, const char *name, void *(*body)(void *argument), void *argument) {
  char shown[SHOWN];
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

#ifndef HELIO_DEBUG

int hi_thread_start(pthread_t *thread, const char *name, void *(*body)(void *argument), void *argument) {
  return start(thread, name, body, argument);
}

#else

/* Debug builds know which threads run. */
typedef struct running {
  char name[SHOWN];
  void *(*body)(void *argument);
  void *argument;
  pthread_t thread;
  bool abandoned, told;
  struct running *next;
} running;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static running *all;

static void strike_off(running *self) {
  pthread_mutex_lock(&lock);
  running **place = &all;
  while (*place != self) place = &(*place)->next;
  *place = self->next;
  pthread_mutex_unlock(&lock);
  free(self);
}

static void *run(void *argument) {
  running *self = argument;
  pthread_mutex_lock(&lock);
  self->thread = pthread_self();
  pthread_mutex_unlock(&lock);
  void *result = self->body(self->argument);
  strike_off(self);
  return result;
}

int hi_thread_start(pthread_t *thread, const char *name, void *(*body)(void *argument), void *argument) {
  running *self = calloc(1, sizeof *self);
  if (!self) return ENOMEM;
  self->body = body;
  self->argument = argument;
  snprintf(self->name, sizeof self->name, "%s", name);
  pthread_mutex_lock(&lock);
  self->next = all;
  all = self;
  pthread_mutex_unlock(&lock);
  int failure = start(thread, name, run, self);
  if (failure) strike_off(self);
  return failure;
}

void hi_thread_abandon(pthread_t thread) {
  pthread_mutex_lock(&lock);
  for (running *one = all; one; one = one->next) {
    if (pthread_equal(one->thread, thread)) one->abandoned = true;
  }
  pthread_mutex_unlock(&lock);
}

void hi_threads_tell(void) {
  char text[800] = "";
  size_t length = 0;
  int count = 0;
  pthread_mutex_lock(&lock);
  for (running *one = all; one; one = one->next) {
    if (one->told) continue;
    one->told = true;
    if (length < sizeof text) {
      length += (size_t)snprintf(text + length, sizeof text - length, "%s%s%s", count ? ", " : "", one->name,
                                 one->abandoned ? " (abandoned, because it hangs in a device)" : "");
    }
    count++;
  }
  pthread_mutex_unlock(&lock);
  if (count > 0) hi_leak_say("%d × thread: %s", count, text);
}

#endif
