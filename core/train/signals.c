/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "train/signals.h"

static const int caught[2] = {SIGINT, SIGTERM};

static atomic_bool taken;
static volatile sig_atomic_t asked;

static void ask(int number) {
  if (asked == SIGINT && number == SIGINT) { /* with SA_RESETHAND it would not be seen whether it is the second */
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
  }
  asked = number;
}

bool hi_signals_catch(hi_signals *signals) {
  if (atomic_exchange(&taken, true)) return false;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = ask;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  asked = 0;
  for (int i = 0; i < 2; i++) sigaction(caught[i], &action, &signals->before[i]);
  return true;
}

void hi_signals_leave(const hi_signals *signals) {
  for (int i = 0; i < 2; i++) sigaction(caught[i], &signals->before[i], NULL);
  atomic_store(&taken, false);
}

int hi_signals_asked(void) {
  return atomic_load(&taken) ? asked : 0;
}
