/* SPDX-License-Identifier: Apache-2.0 */
/* moments, normalize and its gradients, layer_norm and its gradient. A tensor is rows of channels. Sums over rows are
 * formed as those of columns in reduce.cu: neighbouring threads have neighbouring channels, and where there are few
 * channels the rows are cut into pieces whose sums go to `parts` and are put together by a second kernel. */

/* Of the kernels that sum over rows, by value. */
struct channel_sums {
  i64 rows, channels;
  i64 pieces, piece; /* how many, and rows of each */
  int width;         /* channels that a block has */
  int unused;
};

DEVICE i64 rows_end(const channel_sums &how, i64 piece) {
  i64 end = (piece + 1) * how.piece;
  return end < how.rows ? end : how.rows;
}

/* put(channel, piece, Σ) with the sum of part(channel, first row, end of rows, step) over the strips of a block. */
template <typename J, typename V, typename F, typename P>
DEVICE void over_rows(const channel_sums &how, V *shared, V none, F part, P put) {
  int strip = (int)threadIdx.x / how.width, strips = GPU_BLOCK / how.width;
  i64 groups = (how.channels + how.width - 1) / how.width, units = groups * how.pieces;
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    i64 piece = quotient(unit, groups), channel = (unit - piece * groups) * how.width + threadIdx.x % how.width;
    V value = none;
    if (channel < how.channels) value = part(channel, piece * how.piece + strip, rows_end(how, piece), (i64)strips);
    value = strips_join<J>(value, shared, how.width);
    if (strip == 0 && channel < how.channels) put(channel, piece, value);
  }
}

/* put(channel, Σ) with the sum of part(channel, piece) over all pieces. */
template <typename J, typename V, typename F, typename P>
DEVICE void over_pieces(const channel_sums &how, V *shared, V none, F part, P put) {
  int strip = (int)threadIdx.x / how.width, strips = GPU_BLOCK / how.width;
  for (i64 base = (i64)blockIdx.x * how.width; base < how.channels; base += (i64)gridDim.x * how.width) {
    i64 channel = base + threadIdx.x % how.width;
    V value = none;
    for (i64 piece = strip; channel < how.channels && piece < how.pieces; piece += strips)
      value = J::join(value, part(channel, piece));
    value = strips_join<J>(value, shared, how.width);
    if (strip == 0 && channel < how.channels) put(channel, value);
  }
}

/* ---- moments ---- */

struct moments {
  double count, mean, squares; /* squares of the distances from the mean */
};

struct together {
  DEVICE moments join(moments a, moments b) {
    double count = a.count + b.count, apart = b.mean - a.mean, share = count > 0 ? b.count / count : 0;
    moments both = {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
    return both;
  }
};

/* Eight values at a time give a mean and squares around it, which lose nothing however far from zero the mean is. What
 * the means of the eights are apart is summed in double, as distances from the first of them. */
DEVICE moments moments_of(const T *x, i64 first, i64 end, i64 step, i64 stride) {
  double count = 0, origin = 0, apart = 0, apart_squares = 0, squares = 0;
  for (i64 row = first; row < end; row += 8 * step) {
    A value[8], sum = 0, rest = 0, near = 0;
    int some = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
      bool there = row + k * step < end;
      value[k] = there ? load(x + (row + k * step) * stride) : (A)0;
      sum += value[k];
      some += there;
    }
    A mean = sum / (A)some;
#pragma unroll
    for (int k = 0; k < 8; k++) {
      A distance = k < some ? value[k] - mean : (A)0;
      rest += distance;
      near += distance * distance;
    }
    if (count == 0) origin = (double)mean;
    double distance = (double)mean - origin + (double)(rest / (A)some), weight = (double)some;
    apart += weight * distance;
    apart_squares += weight * distance * distance;
    squares += (double)(near - rest * (rest / (A)some));
    count += weight;
  }
  if (count == 0) return moments{0, 0, 0};
  return moments{count, origin + apart / count, squares + apart_squares - apart * apart / count};
}

DEVICE void put_moments(T *mean, T *variance, i64 channel, moments m) {
  store(mean + channel, m.mean);
  store(variance + channel, m.count > 0 ? m.squares / m.count : 0.0);
}

KERNEL moments_sums(const T *x, T *mean, T *variance, double *parts, channel_sums how) {
  __shared__ moments shared[GPU_BLOCK];
  over_rows<together>(
      how, shared, moments{0, 0, 0},
      [&](i64 channel, i64 first, i64 end, i64 step) {
        return moments_of(x + channel, first, end, step, how.channels);
      },
      [&](i64 channel, i64 piece, moments m) {
        if (how.pieces == 1) {
          put_moments(mean, variance, channel, m);
          return;
        }
        parts[2 * piece * how.channels + channel] = m.mean;
        parts[(2 * piece + 1) * how.channels + channel] = m.squares;
      });
}

KERNEL moments_finish(const double *parts, T *mean, T *variance, channel_sums how) {
  __shared__ moments shared[GPU_BLOCK];
  over_pieces<together>(
      how, shared, moments{0, 0, 0},
      [&](i64 channel, i64 piece) {
        i64 begin = piece * how.piece, end = rows_end(how, piece);
        if (end <= begin) return moments{0, 0, 0};
        const double *part = parts + 2 * piece * how.channels + channel;
        return moments{(double)(end - begin), part[0], part[how.channels]};
      },
      [&](i64 channel, moments m) { put_moments(mean, variance, channel, m); });
}

/* ---- two sums of each channel ---- */

struct two_terms {
  A first, second;
};

template <typename F> DEVICE two_sums sum_terms(i64 first, i64 end, i64 step, F terms) {
  two_sums total = {0, 0};
  i64 row = first;
  for (; row + 7 * step < end; row += 8 * step) {
    two_terms some = terms(row);
#pragma unroll
    for (int k = 1; k < 8; k++) {
      two_terms next = terms(row + k * step);
      some.first += next.first;
      some.second += next.second;
    }
    total.first += (double)some.first;
    total.second += (double)some.second;
  }
  for (; row < end; row += step) {
    two_terms next = terms(row);
    total.first += (double)next.first;
    total.second += (double)next.second;
  }
  return total;
}

/* Where results go: each may be absent. With a variance the first is divided by the deviation. */
DEVICE void put_sums(T *first, T *second, const T *variance, double epsilon, i64 channel, two_sums sums) {
  if (variance != 0) sums.first /= sqrt((double)load(variance + channel) + epsilon);
  if (first != 0) store(first + channel, sums.first);
  if (second != 0) store(second + channel, sums.second);
}

DEVICE void put_part(double *parts, const channel_sums &how, i64 channel, i64 piece, two_sums sums) {
  parts[2 * piece * how.channels + channel] = sums.first;
  parts[(2 * piece + 1) * how.channels + channel] = sums.second;
}

/* dgamma = Σ dy (x − mean) / deviation, dbeta = Σ dy */
KERNEL normalize_grad_sums(const T *dy, const T *x, const T *mean, const T *variance, T *dgamma, T *dbeta,
                           double *parts, double epsilon, channel_sums how) {
  __shared__ two_sums shared[GPU_BLOCK];
  over_rows<addition>(
      how, shared, two_sums{0, 0},
      [&](i64 channel, i64 first, i64 end, i64 step) {
        A center = load(mean + channel);
        return sum_terms(first, end, step, [&](i64 row) {
          A above = load(dy + row * how.channels + channel);
          return two_terms{above * (load(x + row * how.channels + channel) - center), above};
        });
      },
      [&](i64 channel, i64 piece, two_sums sums) {
        if (how.pieces == 1) {
          put_sums(dgamma, dbeta, variance, epsilon, channel, sums);
        } else {
          put_part(parts, how, channel, piece, sums);
        }
      });
}

/* The same where each row has a mean and 1/deviation of its own. */
KERNEL layer_norm_grad_sums(const T *dy, const T *x, const T *mean, const T *inverse, T *dgamma, T *dbeta,
                            double *parts, channel_sums how) {
  __shared__ two_sums shared[GPU_BLOCK];
  over_rows<addition>(
      how, shared, two_sums{0, 0},
      [&](i64 channel, i64 first, i64 end, i64 step) {
        return sum_terms(first, end, step, [&](i64 row) {
          A above = load(dy + row * how.channels + channel), value = load(x + row * how.channels + channel);
          return two_terms{above * ((value - load(mean + row)) * load(inverse + row)), above};
        });
      },
      [&](i64 channel, i64 piece, two_sums sums) {
        if (how.pieces == 1) {
          put_sums(dgamma, dbeta, 0, 0, channel, sums);
        } else {
          put_part(parts, how, channel, piece, sums);
        }
      });
}

KERNEL sums_finish(const double *parts, T *first, T *second, const T *variance, double epsilon, channel_sums how) {
  __shared__ two_sums shared[GPU_BLOCK];
  over_pieces<addition>(
      how, shared, two_sums{0, 0},
      [&](i64 channel, i64 piece) {
        const double *part = parts + 2 * piece * how.channels + channel;
        return two_sums{part[0], part[how.channels]};
      },
      [&](i64 channel, two_sums sums) { put_sums(first, second, variance, epsilon, channel, sums); });
}

/* ---- by element: the stride is a multiple of the channels, so that a thread has one channel ---- */

KERNEL normalize(const T *x, const T *mean, const T *variance, const T *gamma, const T *beta, T *y, double epsilon,
                 i64 count, i64 channels, i64 stride) {
  i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (first >= stride || first >= count) return;
  i64 channel = first % channels;
  A center = load(mean + channel), scale = (gamma != 0 ? load(gamma + channel) : (A)1);
  A shift = beta != 0 ? load(beta + channel) : (A)0;
  scale /= sqrt(load(variance + channel) + (A)epsilon);
  for (i64 i = first; i < count; i += stride) store(y + i, (load(x + i) - center) * scale + shift);
}

/* dx = gamma / deviation × (dy − (dbeta + dgamma × normal x) / n) */
KERNEL normalize_grad_input(const T *dy, const T *x, const T *mean, const T *variance, const T *gamma, const T *dgamma,
                            const T *dbeta, T *dx, double epsilon, double share, i64 count, i64 channels, i64 stride) {
  i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (first >= stride || first >= count) return;
  i64 channel = first % channels;
  A center = load(mean + channel), inverse = (A)1 / sqrt(load(variance + channel) + (A)epsilon);
  A scale = (gamma != 0 ? load(gamma + channel) : (A)1) * inverse;
  A on_x = load(dgamma + channel) * inverse * (A)share, shift = load(dbeta + channel) * (A)share;
  for (i64 i = first; i < count; i += stride)
    store(dx + i, scale * (load(dy + i) - shift - (load(x + i) - center) * on_x));
}

/* ---- layer_norm: each row has a team ---- */

/* gamma, beta, means and inverses may be absent. */
KERNEL layer_norm(const T *x, const T *gamma, const T *beta, T *y, T *means, T *inverses, double epsilon, i64 rows,
                  i64 channels, int lanes) {
  __shared__ double shared[GPU_BLOCK / 32];
  double count = channels > 0 ? (double)channels : 1.0;
  FOR_ROWS(at, rows, lanes) {
    i64 begin = at.row * channels;
    A mean = (A)(row_sum(at, rows, channels, shared, [&](i64 i) { return load(x + begin + i); }) / count);
    double squares = row_sum(at, rows, channels, shared, [&](i64 i) {
      A distance = load(x + begin + i) - mean;
      return distance * distance;
    });
    A inverse = (A)1 / sqrt((A)(squares / count + epsilon));
    FOR_COLUMNS(i, at, rows, channels) {
      A value = (load(x + begin + i) - mean) * inverse;
      if (gamma != 0) value *= load(gamma + i);
      if (beta != 0) value += load(beta + i);
      store(y + begin + i, value);
    }
    if (at.row >= rows || at.lane != 0) continue;
    if (means != 0) store(means + at.row, mean);
    if (inverses != 0) store(inverses + at.row, inverse);
  }
}

/* With g = gamma dy: dx = inverse × (g − mean of g − normal x × mean of (g × normal x)) */
KERNEL layer_norm_grad(const T *dy, const T *x, const T *gamma, const T *means, const T *inverses, T *dx, i64 rows,
                       i64 channels, int lanes) {
  __shared__ two_sums shared[GPU_BLOCK / 32];
  FOR_ROWS(at, rows, lanes) {
    i64 begin = at.row * channels;
    A mean = at.row < rows ? load(means + at.row) : (A)0, inverse = at.row < rows ? load(inverses + at.row) : (A)0;
    two_sums sums = sum_terms(at.lane, at.row < rows ? channels : 0, at.lanes, [&](i64 i) {
      A above = load(dy + begin + i);
      if (gamma != 0) above *= load(gamma + i);
      return two_terms{above, above * (load(x + begin + i) - mean)};
    });
    sums = team_join<addition>(sums, shared, at.lanes);
    A shift = (A)(sums.first / (double)channels);
    A on_x = inverse * inverse * (A)(sums.second / (double)channels);
    FOR_COLUMNS(i, at, rows, channels) {
      A above = load(dy + begin + i);
      if (gamma != 0) above *= load(gamma + i);
      store(dx + begin + i, inverse * (above - shift - (load(x + begin + i) - mean) * on_x));
    }
  }
}
