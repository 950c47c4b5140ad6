/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/seed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/environment.h"
#include "runtime/error.h"

static atomic_uint_least64_t process_seed;

/* How often a value was drawn for a name since the seed was set: models of equal names differ. Names are known by their
 * hash alone, so that two that share one only count together. */
static struct {
  pthread_mutex_t lock;
  struct drawn {
    uint64_t name;
    uint64_t times;
  } * list;
  int count;
} drawn = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void set_seed(uint64_t seed) {
  pthread_mutex_lock(&drawn.lock);
  atomic_store(&process_seed, seed);
  free(drawn.list);
  drawn.list = NULL;
  drawn.count = 0;
  pthread_mutex_unlock(&drawn.lock);
}

helio_status hi_seed_count(uint64_t name, uint64_t *times) {
  pthread_mutex_lock(&drawn.lock);
  int i = 0;
  while (i < drawn.count && drawn.list[i].name != name) i++;
  struct drawn *list = drawn.list;
  bool full = i == drawn.count && (drawn.count & (drawn.count - 1)) == 0;
  if (full) list = realloc(drawn.list, (drawn.count ? 2 * (size_t)drawn.count : 1) * sizeof *list);
  if (list) {
    drawn.list = list;
    if (i == drawn.count) list[drawn.count++] = (struct drawn){name, 0};
    *times = list[i].times++;
  }
  pthread_mutex_unlock(&drawn.lock);
  return list ? HELIO_OK : hi_fail(HELIO_OUT_OF_MEMORY, "no memory for counting what was drawn");
}

uint64_t hi_seed_now(void) {
  return atomic_load(&process_seed);
}

void hi_seed_resume(uint64_t seed) {
  atomic_store(&process_seed, seed);
}

void hi_seed_start(void) {
  set_seed(hi_environment_number(HI_SEED));
}

helio_status helio_set_seed(uint64_t seed) {
  helio_status status = hi_enter(__func__);
  if (!status) set_seed(seed);
  return status;
}

/* FNV-1a of the name, then SplitMix64's finish so that near seeds give far keys. */
uint64_t hi_seed_key(uint64_t seed, const char *name) {
  uint64_t key = UINT64_C(0xCBF29CE484222325);
  for (; *name; name++) key = (key ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
  key += (seed ? seed : atomic_load(&process_seed)) * UINT64_C(0x9E3779B97F4A7C15);
  key = (key ^ key >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  key = (key ^ key >> 27) * UINT64_C(0x94D049BB133111EB);
  return key ^ key >> 31;
}
