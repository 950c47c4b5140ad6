/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers for the order of elements: fast, on the host, the same everywhere. */
#ifndef HI_PERMUTE_H
#define HI_PERMUTE_H

#include <stdint.h>

/* SplitMix64's finish: near numbers give far ones. */
uint64_t hi_mix(uint64_t a, uint64_t b);

/* The numbers that follow from a key. */
typedef struct hi_draws {
  uint64_t state;
} hi_draws;

/* From 0 to `below` − 1, all as likely. */
int64_t hi_draw(hi_draws *draws, int64_t below);

#endif
