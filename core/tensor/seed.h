/* SPDX-License-Identifier: Apache-2.0 */
/* The seed that all random numbers follow from. */
#ifndef HI_SEED_H
#define HI_SEED_H

#include <helio/helio.h>

/* Takes the seed from the environment. */
void hi_seed_start(void);

/* The seed; and the one of a training that goes on: what was drawn is not forgotten. */
uint64_t hi_seed_now(void);
void hi_seed_resume(uint64_t seed);

/* A key for random numbers that belongs to a name: the same in every process with the same seed. `seed` 0: the one of
 * helio_set_seed(). */
uint64_t hi_seed_key(uint64_t seed, const char *name);

/* How often this was called for a name, known by its key, since the seed was set. */
helio_status hi_seed_count(uint64_t key, uint64_t *times);

#endif
