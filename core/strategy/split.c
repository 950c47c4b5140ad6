/* SPDX-License-Identifier: Apache-2.0 */
#include "strategy/split.h"

/* Pieces of ⌈rows ÷ count⌉ until nothing is left, as TensorFlow cuts them. */
static void split_as_tensorflow(int64_t rows, int count, int64_t *sizes) {
  int64_t piece = rows / count + (rows % count > 0);
  for (int i = 0; i < count; i++) {
    sizes[i] = rows < piece ? rows : piece;
    rows -= sizes[i];
  }
}

/* By the largest remainder: each gets what its weight says, rounded down, and the rows that are left go to those that
 * lost most by that, of equals to the first. So equal weights give sizes that differ by one at most, the larger first.
 */
static void split_by_weight(int64_t rows, const double *weights, int count, int64_t *sizes) {
  double total = 0, lost[HELIO_MAX_REPLICAS];
  int64_t left = rows;
  for (int i = 0; i < count; i++) total += weights[i];
  for (int i = 0; i < count; i++) {
    double exact = (double)rows * weights[i] / total;
    sizes[i] = (int64_t)exact < left ? (int64_t)exact : left;
    lost[i] = weights[i] > 0 ? exact - (double)sizes[i] : -1;
    left -= sizes[i];
  }
  for (; left > 0; left--) {
    int most = 0;
    for (int i = 1; i < count; i++) {
      if (lost[i] > lost[most]) most = i;
    }
    sizes[most]++;
    lost[most] -= 1;
  }
}

void hi_split(helio_batch_split split, int64_t rows, const double *weights, int count, int64_t *sizes) {
  if (split == HELIO_SPLIT_TENSORFLOW) {
    split_as_tensorflow(rows, count, sizes);
  } else {
    split_by_weight(rows, weights, count, sizes);
  }
}
