/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/turns.h"

#include <math.h>
#include <pthread.h>

#include "runtime/clock.h"
#include "runtime/environment.h"

/* Seconds, and less than after which somebody who waits here would be taken to hang. */
static double patience(void) {
  enum { USUAL = 5 };
  double timeout = (double)hi_environment_number(HI_TIMEOUT) / 1000;
  return timeout > 0 && timeout < 4 * USUAL ? timeout / 4 : USUAL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* A call that is under way, of the thread whose variable this is. What hangs is written off, so that it does not hold
 * up everybody for ever; should it end after all, it is not on the list. */
typedef struct call {
  struct call *next;
  double since; /* INFINITY while it waits itself */
} call;
static _Thread_local call mine;
static _Thread_local unsigned depth;               /* a turn inside another is a part of it */
static call *under_way[HELIO_TURN_COLLECTIVE + 1]; /* by kind */

static void add(call **list, double since) {
  mine = (call){*list, since};
  *list = &mine;
}

/* False: it was written off. */
static bool take_away(call **list) {
  while (*list && *list != &mine) list = &(*list)->next;
  if (!*list) return false;
  *list = mine.next;
  return true;
}

/* Calls that began before. */
static void write_off(call **list, double before) {
  while (*list) {
    if ((*list)->since < before) {
      *list = (*list)->next;
    } else {
      list = &(*list)->next;
    }
  }
}

/* The lock is held. For a moment only: nobody tells when patience is at its end. */
static void doze(void) {
  struct timespec soon = hi_in_milliseconds(CLOCK_REALTIME, 100);
  pthread_cond_timedwait(&changed, &lock, &soon);
}

static void wait_for(call **others) {
  while (*others) {
    doze();
    write_off(others, hi_seconds() - patience());
  }
}

/* A collective is on the list while it still waits: else calls of the driver that follow each other would keep it out.
 */
void hi_turn_begin(helio_turn turn) {
  bool goes_first = turn == HELIO_TURN_COLLECTIVE;
  if (depth++ > 0) return;
  pthread_mutex_lock(&lock);
  if (goes_first) add(&under_way[turn], INFINITY);
  wait_for(&under_way[goes_first ? HELIO_TURN_DRIVER : HELIO_TURN_COLLECTIVE]);
  if (goes_first) {
    mine.since = hi_seconds();
  } else {
    add(&under_way[turn], hi_seconds());
  }
  pthread_mutex_unlock(&lock);
}

void hi_turn_end(helio_turn turn) {
  call **list = &under_way[turn];
  if (depth == 0 || --depth > 0) return;
  pthread_mutex_lock(&lock);
  if (take_away(list) && !*list) pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}
