/* SPDX-License-Identifier: Apache-2.0 */
/* MT19937: M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998). */
#include "data/mersenne.h"

enum { WORDS = HI_MERSENNE_WORDS, DISTANCE = 397 };

void hi_mersenne_seed(hi_mersenne *state, uint32_t seed) {
  for (uint32_t i = 0; i < WORDS; i++) {
    state->words[i] = seed;
    seed = UINT32_C(1812433253) * (seed ^ seed >> 30) + i + 1;
  }
  state->used = WORDS;
}

static void make_words(hi_mersenne *state) {
  uint32_t *words = state->words;
  for (int i = 0; i < WORDS; i++) {
    uint32_t mixed = (words[i] & UINT32_C(0x80000000)) | (words[(i + 1) % WORDS] & UINT32_C(0x7FFFFFFF));
    words[i] = words[(i + DISTANCE) % WORDS] ^ mixed >> 1 ^ (mixed & 1 ? UINT32_C(0x9908B0DF) : 0);
  }
  state->used = 0;
}

uint32_t hi_mersenne_next(hi_mersenne *state) {
  if (state->used == WORDS) make_words(state);
  uint32_t word = state->words[state->used++];
  word ^= word >> 11;
  word ^= word << 7 & UINT32_C(0x9D2C5680);
  word ^= word << 15 & UINT32_C(0xEFC60000);
  return word ^ word >> 18;
}

/* From 0 to `most`: bits are drawn until they are not above it. */
static uint64_t draw(hi_mersenne *state, uint64_t most) {
  uint64_t mask = most, value;
  for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  do {
    value = hi_mersenne_next(state);
    if (most > UINT32_MAX) value = value << 32 | hi_mersenne_next(state);
    value &= mask;
  } while (value > most);
  return value;
}

void hi_mersenne_shuffle(hi_mersenne *state, int64_t *items, int64_t count) {
  for (int64_t i = count - 1; i > 0; i--) {
    uint64_t other = draw(state, (uint64_t)i);
    int64_t item = items[i];
    items[i] = items[other];
    items[other] = item;
  }
}
