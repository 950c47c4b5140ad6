/* SPDX-License-Identifier: Apache-2.0 */
/* The Mersenne Twister as numpy.random.RandomState(seed) has it, for orders that are the same as numpy's. */
#ifndef HI_MERSENNE_H
#define HI_MERSENNE_H

#include <stdint.h>

enum { HI_MERSENNE_WORDS = 624 };

typedef struct hi_mersenne {
  uint32_t words[HI_MERSENNE_WORDS];
  int used; /* of them, since they were made */
} hi_mersenne;

void hi_mersenne_seed(hi_mersenne *state, uint32_t seed); /* as RandomState(seed) */
uint32_t hi_mersenne_next(hi_mersenne *state);            /* 32 random bits */

/* As RandomState.shuffle() does with one axis. */
void hi_mersenne_shuffle(hi_mersenne *state, int64_t *items, int64_t count);

#endif
