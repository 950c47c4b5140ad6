/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/turns.h"

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

/* The calls of a kind that are under way. What hangs is written off, so that it does not hold up everybody for ever;
 * should it end after all, nothing is counted down. */
static struct side { unsigned count, written_off; /* the second: how often */ } sides[HELIO_TURN_COLLECTIVE + 1];

static _Thread_local unsigned began_behind; /* written_off of its side, when the thread's turn began */

static void add_one(struct side *side) {
  side->count++;
  began_behind = side->written_off;
}

/* The lock is held. For a moment only: nobody tells when patience is at its end. */
static void doze(void) {
  struct timespec soon = hi_in_milliseconds(CLOCK_REALTIME, 100);
  pthread_cond_timedwait(&changed, &lock, &soon);
}

static void wait_for(struct side *other) {
  if (other->count == 0) return;
  double end = hi_seconds() + patience();
  while (other->count > 0 && hi_seconds() < end) doze();
  if (other->count == 0) return;
  other->count = 0;
  other->written_off++;
  pthread_cond_broadcast(&changed);
}

/* A collective counts while it still waits: else calls of the driver that follow each other would keep it out. */
void hi_turn_begin(helio_turn turn) {
  bool goes_first = turn == HELIO_TURN_COLLECTIVE;
  pthread_mutex_lock(&lock);
  if (goes_first) add_one(&sides[turn]);
  wait_for(&sides[goes_first ? HELIO_TURN_DRIVER : HELIO_TURN_COLLECTIVE]);
  if (!goes_first) add_one(&sides[turn]);
  pthread_mutex_unlock(&lock);
}

void hi_turn_end(helio_turn turn) {
  struct side *side = &sides[turn];
  pthread_mutex_lock(&lock);
  if (began_behind == side->written_off && --side->count == 0) pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}
