/* SPDX-License-Identifier: Apache-2.0 */
/* sum, mean, max and min over any axes. Results and summands are numbered by two sets of axes; a piece is a part of the
 * summands. Two arrangements: rows, where neighbouring threads have neighbouring summands of one result, and columns,
 * where they have neighbouring results. A few long sums are cut into pieces, which go to `parts`, of each piece all
 * results, and are put together by a second kernel. */

#if IS_FLOAT
typedef double long_sum;
typedef A short_sum;
#else
typedef u64 long_sum; /* which wrap */
typedef u64 short_sum;
#endif

DEVICE float lowest(float) {
  return -infinity(0.0f);
}
DEVICE double lowest(double) {
  return -infinity(0.0);
}
DEVICE i32 lowest(i32) {
  return -0x7fffffff - 1;
}
DEVICE i64 lowest(i64) {
  return -0x7fffffffffffffffLL - 1;
}
DEVICE float highest(float) {
  return infinity(0.0f);
}
DEVICE double highest(double) {
  return infinity(0.0);
}
DEVICE i32 highest(i32) {
  return 0x7fffffff;
}
DEVICE i64 highest(i64) {
  return 0x7fffffffffffffffLL;
}

struct sum {
  typedef long_sum total;
  DEVICE long_sum none() { return 0; }
  DEVICE long_sum join(long_sum a, long_sum b) { return a + b; }
  template <typename F> DEVICE long_sum over(i64 first, i64 end, i64 step, F value) {
    return sum_each<long_sum, short_sum>(first, end, step, value);
  }
#if IS_FLOAT
  DEVICE long_sum done(long_sum total, double count) {
    return count < 0 ? total : total / count;
  }
#else
  DEVICE long_sum done(long_sum total, double) {
    return total;
  }
#endif
};

/* NaN wins over all numbers. */
template <bool largest> struct extreme {
  typedef A total;
  DEVICE A none() { return largest ? lowest((A)0) : highest((A)0); }
  DEVICE A join(A best, A x) { return (largest ? x > best : x < best) || x != x ? x : best; }
  template <typename F> DEVICE A over(i64 first, i64 end, i64 step, F value) {
    A best = none();
#pragma unroll 4
    for (i64 i = first; i < end; i += step) best = join(best, (A)value(i));
    return best;
  }
  DEVICE A done(A total, double) {
    return total;
  }
};

/* Of the kernels, by value. */
struct reduction {
  axes kept, summed;
  i64 results, summands;
  i64 pieces, piece; /* how many, and summands of each */
  double count;      /* that a mean is divided by; negative: none */
  int lanes;         /* of a team that has one result */
  int width;         /* results that a block of columns has */
};

/* Where item `i` of these axes lies. As a rule there is one of them. */
DEVICE i64 place_along(const axes &along, i64 i) {
  i64 place = 0;
#pragma unroll 1
  for (int axis = along.rank - 1; axis > 0; axis--) {
    i64 next = quotient(i, along.extent[axis]);
    place += (i - next * along.extent[axis]) * along.stride[axis];
    i = next;
  }
  return place + i * along.stride[0];
}

/* Summands of piece `piece` from `first` on, of the result that begins at x. */
template <typename R>
DEVICE typename R::total part_of(const T *x, const reduction &how, i64 piece, int first, int step) {
  i64 begin = piece * how.piece, end = begin + how.piece < how.summands ? begin + how.piece : how.summands;
  i64 stride = how.summed.stride[0];
  if (how.summed.rank <= 1) return R::over(begin + first, end, step, [&](i64 i) { return load(x + i * stride); });
  typename R::total total = R::none();
#pragma unroll 1
  for (i64 i = begin + first; i < end; i += step)
    total = R::join(total, (typename R::total)load(x + place_along(how.summed, i)));
  return total;
}

template <typename R>
DEVICE void put(T *y, typename R::total *parts, const reduction &how, i64 result, i64 piece, typename R::total total) {
  if (how.pieces > 1) {
    parts[piece * how.results + result] = total;
  } else {
    store(y + result, R::done(total, how.count));
  }
}

/* Units are pieces of results, those of one result side by side. */
template <typename R>
DEVICE void rows(const T *x, T *y, typename R::total *parts, const reduction &how, typename R::total *shared) {
  int teams = GPU_BLOCK / how.lanes, lane = (int)threadIdx.x % how.lanes, team = (int)threadIdx.x / how.lanes;
  i64 units = how.results * how.pieces;
  for (i64 base = (i64)blockIdx.x * teams; base < units; base += (i64)gridDim.x * teams) {
    i64 unit = base + team, result = quotient(unit, how.pieces), piece = unit - result * how.pieces;
    typename R::total total = R::none();
    if (unit < units) total = part_of<R>(x + place_along(how.kept, result), how, piece, lane, how.lanes);
    total = team_join<R>(total, shared, how.lanes);
    if (unit < units && lane == 0) put<R>(y, parts, how, result, piece, total);
  }
}

/* Units are pieces of `width` results, those of one piece side by side. */
template <typename R>
DEVICE void columns(const T *x, T *y, typename R::total *parts, const reduction &how, typename R::total *shared) {
  int strip = (int)threadIdx.x / how.width, strips = GPU_BLOCK / how.width;
  i64 groups = (how.results + how.width - 1) / how.width, units = groups * how.pieces;
  for (i64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
    i64 piece = quotient(unit, groups), result = (unit - piece * groups) * how.width + threadIdx.x % how.width;
    typename R::total total = R::none();
    if (result < how.results) total = part_of<R>(x + place_along(how.kept, result), how, piece, strip, strips);
    total = strips_join<R>(total, shared, how.width);
    if (strip == 0 && result < how.results) put<R>(y, parts, how, result, piece, total);
  }
}

/* Puts the pieces together. */
template <typename R>
DEVICE void finish(T *y, const typename R::total *parts, const reduction &how, typename R::total *shared) {
  int strip = (int)threadIdx.x / how.width, strips = GPU_BLOCK / how.width;
  i64 groups = (how.results + how.width - 1) / how.width;
  for (i64 group = blockIdx.x; group < groups; group += gridDim.x) {
    i64 result = group * how.width + threadIdx.x % how.width;
    typename R::total total = R::none();
    for (i64 piece = strip; result < how.results && piece < how.pieces; piece += strips)
      total = R::join(total, parts[piece * how.results + result]);
    total = strips_join<R>(total, shared, how.width);
    if (strip == 0 && result < how.results) store(y + result, R::done(total, how.count));
  }
}

#define REDUCTION(name, kind)                                                                                          \
  KERNEL name##_rows(const T *x, T *y, kind::total *parts, reduction how) {                                            \
    __shared__ kind::total shared[GPU_BLOCK / 32];                                                                     \
    rows<kind>(x, y, parts, how, shared);                                                                              \
  }                                                                                                                    \
  KERNEL name##_columns(const T *x, T *y, kind::total *parts, reduction how) {                                         \
    __shared__ kind::total shared[GPU_BLOCK];                                                                          \
    columns<kind>(x, y, parts, how, shared);                                                                           \
  }                                                                                                                    \
  KERNEL name##_finish(T *y, const kind::total *parts, reduction how) {                                                \
    __shared__ kind::total shared[GPU_BLOCK];                                                                          \
    finish<kind>(y, parts, how, shared);                                                                               \
  }
typedef extreme<true> largest;
typedef extreme<false> smallest;
REDUCTION(sum, sum)
REDUCTION(max, largest)
REDUCTION(min, smallest)
