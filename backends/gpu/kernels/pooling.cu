/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling of images that lie as (image, height, width, channel). A thread makes one element of its result: of y forward,
 * of dx backward, which gathers from the windows that it lies in, in their order. */

struct pool {
  i64 images, height, width, channels; /* of x */
  i64 out_height, out_width;
  i64 window[2], stride[2], before[2];
  u32 operation, unused;
};

/* Where element i of (image, `height`, `width`, channel) is. */
struct position {
  i64 image, row, column, channel;
};

DEVICE position position_of(i64 i, i64 height, i64 width, i64 channels) {
  position p;
  i64 pixel = quotient(i, channels), line = quotient(pixel, width);
  p.channel = i - pixel * channels;
  p.column = pixel - line * width;
  p.image = quotient(line, height);
  p.row = line - p.image * height;
  return p;
}

/* From `begin` to before `end`. */
struct range {
  i64 begin, end;
};

/* What of window `at` along an axis lies within x. */
DEVICE range inside(const pool &p, int axis, i64 at, i64 extent) {
  range r;
  i64 begin = at * p.stride[axis] - p.before[axis], end = begin + p.window[axis];
  r.begin = begin < 0 ? 0 : begin;
  r.end = end < extent ? end : extent;
  return r;
}

/* The windows along an axis that `at` of x lies in. */
DEVICE range windows(const pool &p, int axis, i64 at, i64 extent) {
  range r;
  i64 last = at + p.before[axis], first = last - p.window[axis] + 1, stride = p.stride[axis];
  r.begin = first <= 0 ? 0 : quotient(first + stride - 1, stride);
  r.end = quotient(last, stride) + 1;
  if (r.end > extent) r.end = extent;
  return r;
}

/* --- the largest --- */

struct nobody { /* winners that are not asked for */
  u8 unused;
};
DEVICE void set_winner(nobody *, i64, i64) {}
template <typename W> DEVICE void set_winner(W *winners, i64 i, i64 place) { winners[i] = (W)place; }

/* The first element wins until a larger one comes, or a NaN; after a NaN nothing does. */
template <typename W> DEVICE void find_largest(T *y, W *winners, const T *x, const pool &p) {
  FOR_EACH(i, p.images * p.out_height * p.out_width * p.channels) {
    position at = position_of(i, p.out_height, p.out_width, p.channels);
    range rows = inside(p, 0, at.row, p.height), columns = inside(p, 1, at.column, p.width);
    i64 top = at.row * p.stride[0] - p.before[0], left = at.column * p.stride[1] - p.before[1];
    i64 place = (rows.begin - top) * p.window[1] + columns.begin - left;
    const T *image = x + at.image * p.height * p.width * p.channels + at.channel;
    A best = load(image + (rows.begin * p.width + columns.begin) * p.channels);
    for (i64 row = rows.begin; row < rows.end; row++)
      for (i64 column = columns.begin; column < columns.end; column++) {
        A value = load(image + (row * p.width + column) * p.channels);
        if (best != best || value <= best) continue;
        best = value;
        place = (row - top) * p.window[1] + column - left;
      }
    store(y + i, best);
    set_winner(winners, i, place);
  }
}

KERNEL max_pool(T *y, const T *x, pool p) { find_largest(y, (nobody *)0, x, p); }
KERNEL max_pool_u8(T *y, u8 *winners, const T *x, pool p) { find_largest(y, winners, x, p); }
KERNEL max_pool_i32(T *y, i32 *winners, const T *x, pool p) { find_largest(y, winners, x, p); }

/* A winner that lies in no place of its window, or in the padding, is reported, and nobody gathers its gradient. */
template <typename W> DEVICE void check_winners(const W *winners, status_word *status, const pool &p) {
  FOR_EACH(i, p.images * p.out_height * p.out_width * p.channels) {
    i64 winner = winners[i];
    bool good = winner >= 0 && winner < p.window[0] * p.window[1];
    if (good) {
      position at = position_of(i, p.out_height, p.out_width, p.channels);
      i64 down = quotient(winner, p.window[1]), row = at.row * p.stride[0] - p.before[0] + down;
      i64 column = at.column * p.stride[1] - p.before[1] + winner - down * p.window[1];
      good = row >= 0 && row < p.height && column >= 0 && column < p.width;
    }
    if (!good) report(status, p.operation, winner);
  }
}

template <typename W> DEVICE void give_to_winners(T *dx, const T *dy, const W *winners, status_word *status, const pool &p) {
  check_winners(winners, status, p);
  FOR_EACH(i, p.images * p.height * p.width * p.channels) {
    position at = position_of(i, p.height, p.width, p.channels);
    range rows = windows(p, 0, at.row, p.out_height), columns = windows(p, 1, at.column, p.out_width);
    i64 image = at.image * p.out_height * p.out_width * p.channels + at.channel;
    A sum = 0;
    for (i64 row = rows.begin; row < rows.end; row++)
      for (i64 column = columns.begin; column < columns.end; column++) {
        i64 down = at.row - (row * p.stride[0] - p.before[0]), right = at.column - (column * p.stride[1] - p.before[1]);
        i64 from = image + (row * p.out_width + column) * p.channels;
        if ((i64)winners[from] == down * p.window[1] + right) sum += load(dy + from);
      }
    store(dx + i, sum);
  }
}

KERNEL max_pool_grad_u8(T *dx, const T *dy, const u8 *winners, status_word *status, pool p) {
  give_to_winners(dx, dy, winners, status, p);
}
KERNEL max_pool_grad_i32(T *dx, const T *dy, const i32 *winners, status_word *status, pool p) {
  give_to_winners(dx, dy, winners, status, p);
}

/* --- averages --- */

/* Rows are summed each by itself first, which keeps the error of large windows small. */
KERNEL average_pool(T *y, const T *x, pool p) {
  FOR_EACH(i, p.images * p.out_height * p.out_width * p.channels) {
    position at = position_of(i, p.out_height, p.out_width, p.channels);
    range rows = inside(p, 0, at.row, p.height), columns = inside(p, 1, at.column, p.width);
    const T *image = x + at.image * p.height * p.width * p.channels + at.channel;
    A sum = 0;
    for (i64 row = rows.begin; row < rows.end; row++) {
      A line = 0;
      for (i64 column = columns.begin; column < columns.end; column++)
        line += load(image + (row * p.width + column) * p.channels);
      sum += line;
    }
    store(y + i, sum / (A)((rows.end - rows.begin) * (columns.end - columns.begin)));
  }
}

KERNEL average_pool_grad(T *dx, const T *dy, pool p) {
  FOR_EACH(i, p.images * p.height * p.width * p.channels) {
    position at = position_of(i, p.height, p.width, p.channels);
    range rows = windows(p, 0, at.row, p.out_height), columns = windows(p, 1, at.column, p.out_width);
    const T *image = dy + at.image * p.out_height * p.out_width * p.channels + at.channel;
    A sum = 0;
    for (i64 row = rows.begin; row < rows.end; row++) {
      range high = inside(p, 0, row, p.height);
      for (i64 column = columns.begin; column < columns.end; column++) {
        range wide = inside(p, 1, column, p.width);
        A count = (A)((high.end - high.begin) * (wide.end - wide.begin));
        sum += load(image + (row * p.out_width + column) * p.channels) / count;
      }
    }
    store(dx + i, sum);
  }
}
