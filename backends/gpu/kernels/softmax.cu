/* SPDX-License-Identifier: Apache-2.0 */
/* softmax, its logarithm, their gradients and the cross entropies, along rows, each of which has a team. The largest
 * element is taken from all first, so that no exponential overflows; a row that holds NaN or +∞, or −∞ alone, becomes
 * NaN. Rows are read again from the cache rather than kept. */

struct larger {
  DEVICE A join(A a, A b) { return b > a ? b : a; }
};

DEVICE A largest_of(const T *x, seat at, i64 rows, i64 columns, A *shared) {
  A best = -infinity((A)0);
  FOR_COLUMNS(i, at, rows, columns) best = larger::join(best, load(x + at.row * columns + i));
  return team_join<larger>(best, shared, at.lanes);
}

DEVICE double exp_sum_of(const T *x, A largest, seat at, i64 rows, i64 columns, double *shared) {
  return row_sum(at, rows, columns, shared, [&](i64 i) { return exp(load(x + at.row * columns + i) - largest); });
}

/* The largest element itself gives 1: what is left when that is taken off may be tiny. */
DEVICE A log_of_sum(double sum) {
  return log1p((A)(sum - 1));
}

KERNEL softmax(const T *x, T *y, i64 rows, i64 columns, int lanes) {
  __shared__ A shared_largest[GPU_BLOCK / 32];
  __shared__ double shared_sums[GPU_BLOCK / 32];
  FOR_ROWS(at, rows, lanes) {
    A largest = largest_of(x, at, rows, columns, shared_largest);
    double sum = exp_sum_of(x, largest, at, rows, columns, shared_sums);
    A scale = (A)(1 / sum);
    FOR_COLUMNS(i, at, rows, columns) {
      i64 place = at.row * columns + i;
      store(y + place, exp(load(x + place) - largest) * scale);
    }
  }
}

KERNEL log_softmax(const T *x, T *y, i64 rows, i64 columns, int lanes) {
  __shared__ A shared_largest[GPU_BLOCK / 32];
  __shared__ double shared_sums[GPU_BLOCK / 32];
  FOR_ROWS(at, rows, lanes) {
    A largest = largest_of(x, at, rows, columns, shared_largest);
    A rest = log_of_sum(exp_sum_of(x, largest, at, rows, columns, shared_sums));
    FOR_COLUMNS(i, at, rows, columns) {
      i64 place = at.row * columns + i;
      store(y + place, load(x + place) - largest - rest);
    }
  }
}

/* dx = (dy − Σ dy y) y */
KERNEL softmax_grad(const T *dy, const T *y, T *dx, i64 rows, i64 columns, int lanes) {
  __shared__ double shared[GPU_BLOCK / 32];
  FOR_ROWS(at, rows, lanes) {
    A mean = (A)row_sum(at, rows, columns, shared,
                        [&](i64 i) { return load(dy + at.row * columns + i) * load(y + at.row * columns + i); });
    FOR_COLUMNS(i, at, rows, columns) {
      i64 place = at.row * columns + i;
      store(dx + place, (load(dy + place) - mean) * load(y + place));
    }
  }
}

/* dx = dy − exp(y) Σ dy */
KERNEL log_softmax_grad(const T *dy, const T *y, T *dx, i64 rows, i64 columns, int lanes) {
  __shared__ double shared[GPU_BLOCK / 32];
  FOR_ROWS(at, rows, lanes) {
    A sum = (A)row_sum(at, rows, columns, shared, [&](i64 i) { return load(dy + at.row * columns + i); });
    FOR_COLUMNS(i, at, rows, columns) {
      i64 place = at.row * columns + i;
      store(dx + place, load(dy + place) - exp(load(y + place)) * sum);
    }
  }
}

/* A label that is none is reported and gives a loss of 0 and a gradient of 0. `gradient` may be 0. */
KERNEL sparse_cross_entropy(const T *x, const void *labels, int wide, T *loss, T *gradient, status_word *status,
                            u32 operation, i64 rows, i64 columns, int lanes) {
  __shared__ A shared_largest[GPU_BLOCK / 32];
  __shared__ double shared_sums[GPU_BLOCK / 32];
  FOR_ROWS(at, rows, lanes) {
    i64 label = at.row < rows ? index_at(labels, wide, at.row) : 0;
    bool fits = label >= 0 && label < columns;
    A largest = largest_of(x, at, rows, columns, shared_largest);
    double sum = exp_sum_of(x, largest, at, rows, columns, shared_sums);
    A scale = (A)(1 / sum);
    if (gradient != 0) {
      FOR_COLUMNS(i, at, rows, columns) {
        i64 place = at.row * columns + i;
        A value = exp(load(x + place) - largest) * scale - (A)(i == label);
        store(gradient + place, fits ? value : (A)0);
      }
    }
    if (at.row >= rows || at.lane != 0) continue;
    if (!fits) report(status, operation, label);
    store(loss + at.row, fits ? log_of_sum(sum) - (load(x + at.row * columns + label) - largest) : (A)0);
  }
}

/* The sum of the labels, and that of label × distance from the largest element. */
DEVICE two_sums label_sums(const T *x, const T *labels, A largest, seat at, i64 rows, i64 columns, two_sums *shared) {
  two_sums sums = {0, 0};
  FOR_COLUMNS(i, at, rows, columns) {
    A label = load(labels + at.row * columns + i);
    sums.first += (double)label;
    if (label != 0) sums.second += (double)label * (double)(load(x + at.row * columns + i) - largest);
  }
  return team_join<addition>(sums, shared, at.lanes);
}

KERNEL cross_entropy(const T *x, const T *labels, T *loss, T *gradient, i64 rows, i64 columns, int lanes) {
  __shared__ A shared_largest[GPU_BLOCK / 32];
  __shared__ double shared_sums[GPU_BLOCK / 32];
  __shared__ two_sums shared_labels[GPU_BLOCK / 32];
  FOR_ROWS(at, rows, lanes) {
    A largest = largest_of(x, at, rows, columns, shared_largest);
    double sum = exp_sum_of(x, largest, at, rows, columns, shared_sums);
    two_sums sums = label_sums(x, labels, largest, at, rows, columns, shared_labels);
    A scale = (A)(sums.first / sum);
    if (gradient != 0) {
      FOR_COLUMNS(i, at, rows, columns) {
        i64 place = at.row * columns + i;
        store(gradient + place, exp(load(x + place) - largest) * scale - load(labels + place));
      }
    }
    if (at.row < rows && at.lane == 0)
      store(loss + at.row, columns == 0 ? 0.0 : (double)log_of_sum(sum) * sums.first - sums.second);
  }
}
