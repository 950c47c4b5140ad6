/* SPDX-License-Identifier: Apache-2.0 */
/* Which of some names was meant by one that is none of them. */
#include "internal.h"

#include <string.h>

enum { LONGEST = 64 };

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* How many letters must be added, taken away, changed, or swapped with their neighbour. */
static size_t distance(const char *one, const char *other) {
  size_t rows[3][LONGEST + 1] = {{0}}, length = strlen(other);
  for (size_t k = 0; k <= length; k++) rows[0][k] = k;
  for (size_t i = 1; one[i - 1]; i++) {
    size_t *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t k = 1; k <= length; k++) {
      row[k] = least(least(last[k], row[k - 1]) + 1, last[k - 1] + (one[i - 1] != other[k - 1]));
      if (i > 1 && k > 1 && one[i - 1] == other[k - 2] && one[i - 2] == other[k - 1])
        row[k] = least(row[k], before[k - 2] + 1);
    }
  }
  return rows[strlen(one) % 3][length];
}

const char *sim_nearest(const char *given, const char *const *names, size_t count) {
  const char *best = names[0];
  size_t fewest = SIZE_MAX;
  for (size_t i = 0; i < count && strlen(given) <= LONGEST; i++) {
    if (!names[i]) continue;
    size_t here = distance(given, names[i]);
    if (here < fewest) best = names[i];
    fewest = least(fewest, here);
  }
  return best;
}
