/* SPDX-License-Identifier: Apache-2.0 */
#include "wrap.h"

static atomic_ullong counted[WRAP_MOST_DEVICES][WRAP_COUNTS];

HELIO_EXPORT wrap_counted_function wrap_counted;

unsigned long long wrap_counted(uint32_t device, wrap_count count) {
  return atomic_load(&counted[device % WRAP_MOST_DEVICES][count]);
}

void wrap_counts_clear(uint32_t device) {
  for (int i = 0; i < WRAP_COUNTS; i++) atomic_store(&counted[device % WRAP_MOST_DEVICES][i], 0);
}

void wrap_add(const wrap_target *target, wrap_count count, unsigned long long amount) {
  atomic_fetch_add(&counted[target->number % WRAP_MOST_DEVICES][count], amount);
}
