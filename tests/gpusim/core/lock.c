/* SPDX-License-Identifier: Apache-2.0 */
/* The one mutex, the one condition, and the draw of the seed. */
#include "internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static _Thread_local int depth; /* how often this thread holds the mutex */
static atomic_uint_fast64_t changes;

void sim_lock(void) {
  if (depth++ == 0) pthread_mutex_lock(&mutex);
}

void sim_unlock(void) {
  if (--depth == 0) pthread_mutex_unlock(&mutex);
}

void sim_changed(void) {
  sim_lock();
  atomic_fetch_add(&changes, 1);
  pthread_cond_broadcast(&condition);
  sim_unlock();
}

uint64_t sim_changes(void) {
  return atomic_load(&changes);
}

int sim_unlock_fully(void) {
  int held = depth;
  depth = 0;
  if (held) pthread_mutex_unlock(&mutex);
  return held;
}

void sim_lock_again(int held) {
  if (held) pthread_mutex_lock(&mutex);
  depth = held;
}

/* In steps of a second, so that nobody sleeps for ever over a change that was not announced. */
void sim_sleep(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec++;
  int held = depth;
  depth = 0;
  pthread_cond_timedwait(&condition, &mutex, &until);
  depth = held;
}

double sim_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

uint64_t sim_mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

/* splitmix64, whose state is a sum, so that threads can draw at once. */
uint64_t sim_random(uint64_t bound) {
  static atomic_uint_fast64_t state;
  const uint64_t step = 0x9E3779B97F4A7C15u;
  uint64_t value = (atomic_fetch_add(&state, step) + step) ^ (sim_setup()->seed * 0xD1342543DE82EF95u);
  value = sim_mix(value);
  return bound ? value % bound : value;
}
