/* SPDX-License-Identifier: Apache-2.0 */
/* argmax, top_k and in_top_k. NaN counts as larger than all numbers and as equal to itself; of equals the one in the
 * lower place comes first. */

DEVICE bool above(A a, A b) {
  return a > b || (a != a && b == b);
}

/* A place of −1 is none, which comes behind all others. */
struct candidate {
  A value;
  i64 place;
};
DEVICE candidate of_other_lane(candidate value, int bits) {
  candidate other = {OTHER_LANE(value.value, bits), OTHER_LANE(value.place, bits)};
  return other;
}
DEVICE bool before(candidate a, candidate b) {
  if (a.place < 0 || b.place < 0) return a.place >= 0;
  return above(a.value, b.value) || (a.place < b.place && !above(b.value, a.value));
}
struct better {
  DEVICE candidate join(candidate a, candidate b) { return before(b, a) ? b : a; }
};

/* The best of a row's elements `first`, `first` + step, …; of the row's own step from one element to the next. */
DEVICE candidate best_of(const T *x, i64 stride, i64 first, i64 extent, i64 step) {
  candidate best = {0, -1};
  for (i64 i = first; i < extent; i += step) {
    A value = load(x + i * stride);
    if (best.place >= 0 && !above(value, best.value)) continue;
    best.value = value;
    best.place = i;
  }
  return best;
}

KERNEL argmax_rows(const T *x, i64 *y, i64 rows, i64 extent, int lanes) {
  __shared__ candidate shared[GPU_BLOCK / 32];
  int teams = GPU_BLOCK / lanes, lane = (int)threadIdx.x % lanes, team = (int)threadIdx.x / lanes;
  for (i64 base = (i64)blockIdx.x * teams; base < rows; base += (i64)gridDim.x * teams) {
    i64 row = base + team;
    candidate best = {0, -1};
    if (row < rows) best = best_of(x + row * extent, 1, lane, extent, lanes);
    best = team_join<better>(best, shared, lanes);
    if (row < rows && lane == 0) y[row] = best.place;
  }
}

/* Along an axis that has `inner` elements behind it. */
KERNEL argmax_columns(const T *x, i64 *y, i64 results, i64 extent, i64 inner, int width) {
  __shared__ candidate shared[GPU_BLOCK];
  int strip = (int)threadIdx.x / width, strips = GPU_BLOCK / width;
  for (i64 base = (i64)blockIdx.x * width; base < results; base += (i64)gridDim.x * width) {
    i64 result = base + threadIdx.x % width, outer = quotient(result, inner);
    candidate best = {0, -1};
    if (result < results)
      best = best_of(x + outer * extent * inner + (result - outer * inner), inner, strip, extent, strips);
    best = strips_join<better>(best, shared, width);
    if (strip == 0 && result < results) y[result] = best.place;
  }
}

/* The best that comes behind `last`, k times. */
KERNEL top_k_select(const T *x, T *y, i32 *places, i64 rows, i64 extent, i64 k, int lanes) {
  __shared__ candidate shared[GPU_BLOCK / 32];
  int teams = GPU_BLOCK / lanes, lane = (int)threadIdx.x % lanes, team = (int)threadIdx.x / lanes;
  for (i64 base = (i64)blockIdx.x * teams; base < rows; base += (i64)gridDim.x * teams) {
    i64 row = base + team;
    candidate last = {0, -1};
    for (i64 rank = 0; rank < k; rank++) {
      candidate best = {0, -1};
      for (i64 i = lane; row < rows && i < extent; i += lanes) {
        candidate next = {load(x + row * extent + i), i};
        if (rank > 0 && !before(last, next)) continue;
        if (before(next, best)) best = next;
      }
      last = team_join<better>(best, shared, lanes);
      if (row >= rows || lane != 0) continue;
      y[row * k + rank] = x[row * extent + last.place];
      places[row * k + rank] = (i32)last.place;
    }
  }
}

/* For a large k: each element counts those that come before it, which is its place in the order. */
KERNEL top_k_count(const T *x, T *y, i32 *places, i64 rows, i64 extent, i64 k) {
  FOR_EACH(at, rows * extent) {
    i64 row = quotient(at, extent), own = at - row * extent, rank = 0;
    candidate one = {load(x + at), own};
    for (i64 i = 0; i < extent && rank < k; i++) {
      candidate other = {load(x + row * extent + i), i};
      rank += i != own && before(other, one);
    }
    if (rank >= k) continue;
    y[row * k + rank] = x[at];
    places[row * k + rank] = (i32)own;
  }
}

#if IS_FLOAT
KERNEL in_top_k(const T *x, const void *targets, int wide, b8 *y, i64 rows, i64 extent, i64 k, int lanes) {
  __shared__ i64 shared[GPU_BLOCK / 32];
  int teams = GPU_BLOCK / lanes, lane = (int)threadIdx.x % lanes, team = (int)threadIdx.x / lanes;
  for (i64 base = (i64)blockIdx.x * teams; base < rows; base += (i64)gridDim.x * teams) {
    i64 row = base + team, target = row < rows ? index_at(targets, wide, row) : -1, larger = 0;
    bool there = target >= 0 && target < extent;
    A value = there ? load(x + row * extent + target) : (A)0;
    for (i64 i = lane; there && i < extent; i += lanes) larger += load(x + row * extent + i) > value;
    larger = team_join<addition>(larger, shared, lanes);
    bool finite = value - value == 0;
    if (row < rows && lane == 0) store(y + row, there && finite && larger < k);
  }
}
#endif
