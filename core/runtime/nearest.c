/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nearest.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 64, MOST_SLIPS = 4 };

/* Number of letters to insert, delete, replace or swap with their neighbour to turn one word into the other. */
static int distance(const char *a, const char *b) {
  int rows[3][LONGEST + 1];
  size_t length_a = strlen(a), length_b = strlen(b);
  if (length_a > LONGEST || length_b > LONGEST) return INT_MAX;
  for (size_t j = 0; j <= length_b; j++) rows[0][j] = (int)j;
  for (size_t i = 1; i <= length_a; i++) {
    int *row = rows[i % 3], *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
    row[0] = (int)i;
    for (size_t j = 1; j <= length_b; j++) {
      int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
      int best = before[j - 1] + (x != y);
      if (before[j] + 1 < best) best = before[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && y == tolower((unsigned char)a[i - 2]) &&
          two_before[j - 2] + 1 < best) {
        best = two_before[j - 2] + 1;
      }
      row[j] = best;
    }
  }
  return rows[length_a % 3][length_b];
}

/* The shortest name that begins with the word and ends there or goes on with another part: HELIO_DATA_DIR for
 * HELIO_DATA. */
static const char *begun(const char *word, const char *const *names, int count) {
  const char *best = NULL;
  size_t length = strlen(word);
  for (int i = 0; length > 0 && i < count; i++) {
    if (strncasecmp(names[i], word, length) != 0 || !strchr("_-", names[i][length])) continue;
    if (!best || strlen(names[i]) < strlen(best)) best = names[i];
  }
  return best;
}

const char *hi_nearest(const char *word, const char *const *names, int count) {
  const char *best = NULL, *whole = begun(word, names, count);
  if (whole) return whole;
  int length = (int)strlen(word), best_distance = length / 3 + 1; /* further away is another word */
  if (best_distance > MOST_SLIPS) best_distance = MOST_SLIPS;
  if (best_distance > length / 2) best_distance = length / 2; /* at least half of the letters must be right */
  for (int i = 0; i < count; i++) {
    int d = distance(word, names[i]);
    if (d > best_distance || (best && d == best_distance)) continue;
    best = names[i];
    best_distance = d;
  }
  return best;
}
