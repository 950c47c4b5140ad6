/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "train/signals.h"

static const int caught[2] = {SIGINT, SIGTERM};

static atomic_bool taken;
static atomic_int asked, interrupts;

static void ask(int number) {
  if (number == SIGINT &&
      atomic_fetch_add(&interrupts, 1) > 0) { /* SA_RESETHAND would not tell that it is the second */
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
  }
  atomic_store(&asked, number);
}

bool hi_signals_catch(hi_signals *signals) {
  if (atomic_exchange(&taken, true)) return false;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = ask;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  atomic_store(&asked, 0);
  atomic_store(&interrupts, 0);
  for (int i = 0; i < 2; i++) {
    sigaction(caught[i], NULL, &signals->before[i]);
    if (signals->before[i].sa_handler != SIG_IGN) sigaction(caught[i], &action, NULL);
  }
  return true;
}

int hi_signals_leave(const hi_signals *signals) {
  for (int i = 0; i < 2; i++) sigaction(caught[i], &signals->before[i], NULL);
  int number = atomic_load(&asked);
  atomic_store(&taken, false);
  return number;
}

int hi_signals_asked(void) {
  return atomic_load(&asked);
}
