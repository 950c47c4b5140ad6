/* SPDX-License-Identifier: Apache-2.0 */
#include "data/permute.h"

static const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);

static uint64_t finish(uint64_t x) {
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

uint64_t hi_mix(uint64_t a, uint64_t b) {
  return finish(finish(a + golden) ^ (b + golden) * golden);
}

static uint64_t next(hi_draws *draws) {
  draws->state += golden;
  return finish(draws->state);
}

/* A product instead of a remainder, and another draw where the range does not divide evenly (Lemire's way). */
static uint32_t draw_short(hi_draws *draws, uint32_t below) {
  uint64_t product = (next(draws) >> 32) * below;
  if ((uint32_t)product < below) {
    uint32_t uneven = (0u - below) % below;
    while ((uint32_t)product < uneven) product = (next(draws) >> 32) * below;
  }
  return (uint32_t)(product >> 32);
}

int64_t hi_draw(hi_draws *draws, int64_t below) {
  if (below <= UINT32_MAX) return draw_short(draws, (uint32_t)below);
  uint64_t range = (uint64_t)below, uneven = (0 - range) % range, number = next(draws);
  while (number < uneven) number = next(draws);
  return (int64_t)(number % range);
}
