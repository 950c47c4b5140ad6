/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizers' updates: weights and slots are read and written once. A gradient is dense or rows; see plugin.h. */

/* The rules of update.c. */
enum {
  SGD = 1,
  SGD_MOMENTUM,
  SGD_NESTEROV,
  ADAM,
  NADAM,
  RMSPROP,
  ADAGRAD,
};

/* By value. */
struct settings {
  double rate, decay, momentum, rho, epsilon;
  double on_first, on_second; /* 1 − beta or, of rmsprop, 1 − rho */
  double on_m, on_gradient, on_v;
  int rule;
  int unused;
};

DEVICE A rmsprop_step(T *square, T *mean, i64 i, A g, A g2, const settings &c) {
  A spread = (A)c.rho * square[i] + (A)c.on_second * g2;
  square[i] = spread;
  if (mean != 0) {
    A average = (A)c.rho * mean[i] + (A)c.on_second * g;
    mean[i] = average;
    spread -= average * average;
  }
  return (A)c.rate * g / sqrt(spread + (A)c.epsilon);
}

/* Element i: g is the gradient, g2 its square or what was given in the place of that. Slots are those of the operation
 * in their order; absent ones are 0. */
DEVICE void update(T *weights, T *first, T *second, T *third, i64 i, A g, A g2, const settings &c) {
  A w = weights[i], rate = (A)c.rate;
  if (c.decay != 0) w -= w * (A)c.decay;
  switch (c.rule) {
  case SGD:
    w -= rate * g;
    break;
  case SGD_MOMENTUM:
  case SGD_NESTEROV: {
    A velocity = (A)c.momentum * first[i] - rate * g;
    first[i] = velocity;
    w += c.rule == SGD_NESTEROV ? (A)c.momentum * velocity - rate * g : velocity;
    break;
  }
  case ADAM:
  case NADAM: {
    A m = first[i], v = second[i];
    m += (g - m) * (A)c.on_first;
    v += (g2 - v) * (A)c.on_second;
    first[i] = m;
    second[i] = v;
    if (c.rule == ADAM) {
      w -= rate * m / (sqrt(v) + (A)c.epsilon);
    } else {
      w -= rate * ((A)c.on_m * m + (A)c.on_gradient * g) / (sqrt((A)c.on_v * v) + (A)c.epsilon);
    }
    break;
  }
  case RMSPROP: {
    A step = rmsprop_step(first, third, i, g, g2, c);
    if (second != 0) {
      step += (A)c.momentum * second[i];
      second[i] = step;
    }
    w -= step;
    break;
  }
  default: { /* ADAGRAD */
    A sum = first[i] + g2;
    first[i] = sum;
    w -= rate * g / sqrt(sum + (A)c.epsilon);
  }
  }
  weights[i] = w;
}

KERNEL update_dense(T *weights, T *first, T *second, T *third, const T *gradient, i64 count, settings c) {
  FOR_EACH(i, count) {
    A g = gradient[i];
    update(weights, first, second, third, i, g, g * g, c);
  }
}

/* The gradient as rows of `row` elements, of which `count` are there. */
struct rows_given {
  i64 count, row;
  i64 rows; /* of the weights */
  u32 operation;
  int wide; /* are the indices int64? */
};

/* Only the rows that are named, which are distinct. */
KERNEL update_named(T *weights, T *first, T *second, T *third, const T *gradient, const T *squares, const void *indices,
                    rows_given given, settings c, status_word *status) {
  FOR_EACH(at, given.count * given.row) {
    i64 which = quotient(at, given.row), column = at - which * given.row;
    i64 row = index_at(indices, given.wide, which);
    if (row >= 0 && row < given.rows) {
      A g = gradient[at];
      update(weights, first, second, third, row * given.row + column, g, squares != 0 ? squares[at] : g * g, c);
    } else if (row != -1 && column == 0) {
      report(status, given.operation, row);
    }
  }
}

/* Of each row that is named which row of the gradient it has. Others keep what was in memory: see update_all. */
KERNEL map_rows(const void *indices, i64 *map, rows_given given, status_word *status) {
  FOR_EACH(which, given.count) {
    i64 row = index_at(indices, given.wide, which);
    if (row >= 0 && row < given.rows) {
      map[row] = which;
    } else if (row != -1) {
      report(status, given.operation, row);
    }
  }
}

/* All rows; those that are not named have a gradient of zero. Whether what the map says is true shows in the indices,
 * so that nobody has to clear it: they are distinct. */
KERNEL update_all(T *weights, T *first, T *second, T *third, const T *gradient, const T *squares, const void *indices,
                  const i64 *map, rows_given given, settings c) {
  FOR_EACH(at, given.rows * given.row) {
    i64 row = quotient(at, given.row), which = map[row];
    bool named = which >= 0 && which < given.count && index_at(indices, given.wide, which) == row;
    i64 place = named ? which * given.row + (at - row * given.row) : 0;
    A g = named ? gradient[place] : (A)0;
    update(weights, first, second, third, at, g, named && squares != 0 ? squares[place] : g * g, c);
  }
}
