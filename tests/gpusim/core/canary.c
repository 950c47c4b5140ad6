/* SPDX-License-Identifier: Apache-2.0 */
/* Canaries: what the room around an allocation is filled with, to see whether something wrote there. Each allocation
 * has bytes of its own, so that one's canary that was copied over another's is seen too. */
#include "internal.h"

#include <stdatomic.h>

/* None of them is a byte that programs fill memory with, 0, 0xFF or a small number. */
enum { LEAST = 0xC1, VALUES = 31 };

uint64_t sim_canary_key(void) {
  static atomic_uint_fast64_t keys;
  return sim_mix(atomic_fetch_add(&keys, 1) + 1);
}

/* The bytes that belong to eight neighbours, the first at a multiple of eight. */
static void write_eight(char bytes[8], uint64_t key, uintptr_t address) {
  uint64_t word = sim_mix(key + address / 8);
  for (int i = 0; i < 8; i++, word >>= 8) bytes[i] = (char)(LEAST + (word & 0xFF) % VALUES);
}

void sim_canary_fill(char *begin, char *end, uint64_t key) {
  char bytes[8];
  for (char *at = begin; at < end; at++) {
    if (at == begin || (uintptr_t)at % 8 == 0) write_eight(bytes, key, (uintptr_t)at);
    *at = bytes[(uintptr_t)at % 8];
  }
}

bool sim_canary_is_whole(const char *begin, const char *end, uint64_t key) {
  char bytes[8];
  for (const char *at = begin; at < end; at++) {
    if (at == begin || (uintptr_t)at % 8 == 0) write_eight(bytes, key, (uintptr_t)at);
    if (*at != bytes[(uintptr_t)at % 8]) return false;
  }
  return true;
}
