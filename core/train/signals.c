/* SPDX-License-Identifier: Apache-2.0 */
#include "train/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

enum { CAUGHT = 3 };

static const int caught[CAUGHT] = {SIGINT, SIGTERM, SIGHUP}; /* the last one where a terminal is gone */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over the next two */
static int trainings;
static struct sigaction before[CAUGHT];

static atomic_int asked, interrupts;

static void ask(int number) {
  if (number == SIGINT &&
      atomic_fetch_add(&interrupts, 1) > 0) { /* SA_RESETHAND would not tell that it is the second */
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
  }
  atomic_store(&asked, number);
}

void hi_signals_catch(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = ask;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  pthread_mutex_lock(&lock);
  if (trainings++ == 0) {
    atomic_store(&asked, 0);
    atomic_store(&interrupts, 0);
    for (int i = 0; i < CAUGHT; i++) {
      sigaction(caught[i], NULL, &before[i]);
      if (before[i].sa_handler != SIG_IGN) sigaction(caught[i], &action, NULL);
    }
  }
  pthread_mutex_unlock(&lock);
}

int hi_signals_asked(void) {
  return atomic_load(&asked);
}

int hi_signals_leave(void) {
  pthread_mutex_lock(&lock);
  if (--trainings == 0) {
    for (int i = 0; i < CAUGHT; i++) sigaction(caught[i], &before[i], NULL);
  }
  int number = atomic_load(&asked);
  pthread_mutex_unlock(&lock);
  return number;
}

const char *hi_signal_name(int number) {
  return number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : "SIGHUP";
}
