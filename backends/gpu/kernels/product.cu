/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices, and convolutions as such products, for types that the vendor's library does not have and for
 * machines without it. A block makes a tile of the result: it brings strips of both operands to shared memory, and each
 * of its threads adds up PART × PART elements, in the order of the inner dimension. */

#define TILE 64  /* rows and columns of a block's part of the result */
#define DEPTH 16 /* of a strip */
#define SIDE 16  /* a block has SIDE × SIDE threads */
#define PART (TILE / SIDE)

typedef W S; /* what sums are formed in: integers wrap */

typedef S strip[DEPTH][TILE + 1];

/* An operand tells its elements by at(item, inner), counted within the strip: an item is a row of the left or a column of
 * the right one, and 0 if it does not exist. Before it gets ready for a tile, by begin(), and for each strip, by
 * prepare(). `inner_first`: neighbours of the inner dimension are neighbours in memory. */
template <typename O> DEVICE void fill_strip(strip &to, const O &operand, i64 rest) {
  for (int i = (int)threadIdx.x; i < TILE * DEPTH; i += SIDE * SIDE) {
    int item = operand.inner_first ? i / DEPTH : i % TILE, deep = operand.inner_first ? i % DEPTH : i / TILE;
    to[deep][item] = deep < rest ? (S)operand.at(item, deep) : (S)0;
  }
}

/* The sums of this thread, over an inner dimension from `begin` to before `end`: rows row + SIDE i and columns column +
 * SIDE k of the tile. All threads of the block come here. */
template <typename L, typename R>
DEVICE void multiply_tile(S (&sum)[PART][PART], strip &left, strip &right, L &a, R &b, i64 begin, i64 end) {
  int row = (int)threadIdx.x / SIDE, column = (int)threadIdx.x % SIDE;
  for (int i = 0; i < PART; i++)
    for (int k = 0; k < PART; k++) sum[i][k] = 0;
  for (i64 inner = begin; inner < end; inner += DEPTH) {
    a.prepare(inner);
    b.prepare(inner);
    __syncthreads();
    fill_strip(left, a, end - inner);
    fill_strip(right, b, end - inner);
    __syncthreads();
#pragma unroll 4
    for (int deep = 0; deep < DEPTH; deep++)
      for (int i = 0; i < PART; i++)
        for (int k = 0; k < PART; k++) sum[i][k] += left[deep][row + SIDE * i] * right[deep][column + SIDE * k];
  }
  __syncthreads();
}

/* Calls `write` with each of this thread's sums and where it belongs. */
template <typename W>
DEVICE void write_tile(const S (&sum)[PART][PART], i64 top, i64 first, i64 rows, i64 columns, const W &write) {
  for (int i = 0; i < PART; i++)
    for (int k = 0; k < PART; k++) {
      i64 row = top + (int)threadIdx.x / SIDE + SIDE * i, column = first + (int)threadIdx.x % SIDE + SIDE * k;
      if (row < rows && column < columns) write.at(row, column, sum[i][k]);
    }
}

/* Which tile of which product number `at` is. */
struct tile_place {
  i64 top, first, product;
};
DEVICE tile_place tile_of(i64 at, i64 rows, i64 columns) {
  i64 wide = (columns + TILE - 1) / TILE, high = (rows + TILE - 1) / TILE;
  i64 line = quotient(at, wide);
  tile_place place;
  place.first = (at - line * wide) * TILE;
  place.product = quotient(line, high);
  place.top = (line - place.product * high) * TILE;
  return place;
}
DEVICE i64 tile_count(i64 rows, i64 columns, i64 products) {
  return ((rows + TILE - 1) / TILE) * ((columns + TILE - 1) / TILE) * products;
}

/* --- MATMUL --- */

/* A matrix in memory; items and the inner dimension lie so many elements apart. */
struct matrix {
  bool inner_first;
  const T *data, *place; /* of the first item of the tile; of the first element of the strip */
  i64 items, item_step, inner_step;
  __device__ __forceinline__ void begin(i64 first) {
    data += first * item_step;
    items -= first;
  }
  __device__ __forceinline__ void prepare(i64 inner) { place = data + inner * inner_step; }
  __device__ __forceinline__ A at(int item, int deep) const {
    return item < items ? load(place + item * item_step + deep * inner_step) : (A)0;
  }
};

DEVICE matrix matrix_of(const T *data, i64 items, i64 item_step, i64 inner_step) {
  matrix m;
  m.inner_first = inner_step == 1;
  m.data = m.place = data;
  m.items = items;
  m.item_step = item_step;
  m.inner_step = inner_step;
  return m;
}

/* Not inline: each thread has many elements, and the functions are long. */
static __device__ __noinline__ A activate_apart(u32 activation, A value) { return activate(activation, value); }

/* The result: with bias and activation, in its place. */
struct finished {
  T *y;
  const T *bias; /* 0: none */
  i64 row_step;
  u32 activation;
  __device__ __forceinline__ void at(i64 row, i64 column, S sum) const {
    if (bias != 0) sum += (S)load(bias + column);
    A value = (A)sum;
    if (activation > LINEAR) value = activate_apart(activation, value);
    store(y + row * row_step + column, value);
  }
};

struct product {
  i64 m, n, k, batches;
  i64 step_a[2], step_b[2]; /* of rows of a or columns of b, and of the inner dimension */
  axes batches_a, batches_b;
  u32 activation, unused;
};

KERNEL multiply(T *y, const T *a, const T *b, const T *bias, product p) {
  __shared__ strip left, right;
  for (i64 at = blockIdx.x; at < tile_count(p.m, p.n, p.batches); at += gridDim.x) {
    tile_place place = tile_of(at, p.m, p.n);
    matrix from_a = matrix_of(a + place_of(p.batches_a, place.product), p.m, p.step_a[0], p.step_a[1]);
    matrix from_b = matrix_of(b + place_of(p.batches_b, place.product), p.n, p.step_b[0], p.step_b[1]);
    from_a.begin(place.top);
    from_b.begin(place.first);
    S sum[PART][PART];
    multiply_tile(sum, left, right, from_a, from_b, 0, p.k);
    finished to;
    to.y = y + place.product * p.m * p.n;
    to.bias = bias;
    to.row_step = p.n;
    to.activation = p.activation;
    write_tile(sum, place.top, place.first, p.m, p.n, to);
  }
}

#if IS_FLOAT

/* --- CONV2D and its gradients --- */

struct convolution {
  i64 images, height, width, channels;     /* of x */
  i64 out_height, out_width, out_channels; /* of y */
  i64 kernel[2], stride[2], dilation[2], before[2];
  i64 groups, group_in, group_out;
  i64 chunks, chunk; /* of the kernel's gradient: into how many sums positions are cut, and how many each has */
  u32 activation, unused;
};

DEVICE i64 pixels_of(const convolution &c) { return c.images * c.height * c.width; }
DEVICE i64 positions_of(const convolution &c) { return c.images * c.out_height * c.out_width; }
DEVICE i64 taps_of(const convolution &c) { return c.kernel[0] * c.kernel[1]; }

/* A pixel of x or y, or a tap of the kernel with a channel: `offset` is the part of an address that it decides, −1 if it
 * does not exist, row and column its part of the place that is looked at. */
struct spot {
  i64 offset, row, column;
};

/* A position of y as x is seen from there. */
DEVICE spot position_spot(const convolution &c, i64 i) {
  i64 line = quotient(i, c.out_width), image = quotient(line, c.out_height);
  spot s;
  s.offset = i < positions_of(c) ? image * c.height * c.width * c.channels : -1;
  s.row = (line - image * c.out_height) * c.stride[0] - c.before[0];
  s.column = (i - line * c.out_width) * c.stride[1] - c.before[1];
  return s;
}

/* A pixel of x as y is seen from there. */
DEVICE spot pixel_spot(const convolution &c, i64 i) {
  i64 line = quotient(i, c.width), image = quotient(line, c.height);
  spot s;
  s.offset = i < pixels_of(c) ? image * c.out_height * c.out_width * c.out_channels : -1;
  s.row = line - image * c.height + c.before[0];
  s.column = i - line * c.width + c.before[1];
  return s;
}

/* A tap and one of `channels`, whose numbers begin with `first`. */
DEVICE spot tap_spot(const convolution &c, i64 i, i64 channels, i64 first) {
  i64 number = quotient(i, channels), row = quotient(number, c.kernel[1]);
  spot s;
  s.offset = number < taps_of(c) ? first + i - number * channels : -1;
  s.row = row * c.dilation[0];
  s.column = (number - row * c.kernel[1]) * c.dilation[1];
  return s;
}

/* x as a tap of a position sees it. */
DEVICE A seen_by(const T *x, const convolution &c, const spot &position, const spot &tap) {
  i64 row = position.row + tap.row, column = position.column + tap.column;
  if (row < 0 || row >= c.height || column < 0 || column >= c.width) return 0;
  return load(x + position.offset + tap.offset + (row * c.width + column) * c.channels);
}

/* dy of the position whose tap sees the pixel: 0 if there is none. */
DEVICE A seen_from(const T *dy, const convolution &c, const spot &pixel, const spot &tap) {
  i64 row = pixel.row - tap.row, column = pixel.column - tap.column;
  if (row < 0 || column < 0) return 0;
  if (c.stride[0] != 1 || c.stride[1] != 1) {
    i64 down = quotient(row, c.stride[0]), right = quotient(column, c.stride[1]);
    if (down * c.stride[0] != row || right * c.stride[1] != column) return 0;
    row = down;
    column = right;
  }
  if (row >= c.out_height || column >= c.out_width) return 0;
  return load(dy + pixel.offset + tap.offset + (row * c.out_width + column) * c.out_channels);
}

/* What the threads of a block find out once for all: the items of a tile, and of a strip its inner dimension. */
struct spots {
  spot item[TILE], inner[DEPTH];
};

/* Positions of y by taps and channels of x. */
struct patches {
  static const bool inner_first = true;
  const T *x;
  const convolution *c;
  spots *found;
  i64 group;
  __device__ __forceinline__ void begin(i64 first) {
    int i = (int)threadIdx.x;
    if (i < TILE) found->item[i] = position_spot(*c, first + i);
  }
  __device__ __forceinline__ void prepare(i64 inner) {
    int i = (int)threadIdx.x;
    if (i < DEPTH) found->inner[i] = tap_spot(*c, inner + i, c->group_in, group * c->group_in);
  }
  __device__ __forceinline__ A at(int item, int deep) const {
    return found->item[item].offset < 0 ? (A)0 : seen_by(x, *c, found->item[item], found->inner[deep]);
  }
};

/* The same the other way round. */
struct patches_across {
  static const bool inner_first = false;
  const T *x;
  const convolution *c;
  spots *found;
  i64 group;
  __device__ __forceinline__ void begin(i64 first) {
    int i = (int)threadIdx.x;
    if (i < TILE) found->item[i] = tap_spot(*c, first + i, c->group_in, group * c->group_in);
  }
  __device__ __forceinline__ void prepare(i64 inner) {
    int i = (int)threadIdx.x;
    if (i < DEPTH) found->inner[i] = position_spot(*c, inner + i);
  }
  __device__ __forceinline__ A at(int item, int deep) const {
    return found->item[item].offset < 0 ? (A)0 : seen_by(x, *c, found->inner[deep], found->item[item]);
  }
};

/* Pixels of x by taps and channels of y. */
struct sources {
  static const bool inner_first = true;
  const T *dy;
  const convolution *c;
  spots *found;
  i64 group;
  __device__ __forceinline__ void begin(i64 first) {
    int i = (int)threadIdx.x;
    if (i < TILE) found->item[i] = pixel_spot(*c, first + i);
  }
  __device__ __forceinline__ void prepare(i64 inner) {
    int i = (int)threadIdx.x;
    if (i < DEPTH) found->inner[i] = tap_spot(*c, inner + i, c->group_out, group * c->group_out);
  }
  __device__ __forceinline__ A at(int item, int deep) const {
    return found->item[item].offset < 0 ? (A)0 : seen_from(dy, *c, found->item[item], found->inner[deep]);
  }
};

/* Channels of x by taps and channels of y: the kernel the other way round. */
struct kernel_across {
  static const bool inner_first = true;
  const T *kernel; /* of the group's first channel of x */
  const convolution *c;
  i64 *found; /* DEPTH of them */
  i64 items;
  __device__ __forceinline__ void begin(i64 first) {
    kernel += first * c->out_channels;
    items -= first;
  }
  __device__ __forceinline__ void prepare(i64 inner) {
    int i = (int)threadIdx.x;
    if (i >= DEPTH) return;
    i64 number = quotient(inner + i, c->group_out), channel = inner + i - number * c->group_out;
    found[i] = number * c->group_in * c->out_channels + channel;
  }
  __device__ __forceinline__ A at(int item, int deep) const {
    return item < items ? load(kernel + item * c->out_channels + found[deep]) : (A)0;
  }
};

KERNEL convolve(T *y, const T *x, const T *kernel, const T *bias, convolution c) {
  __shared__ strip left, right;
  __shared__ spots found;
  i64 rows = positions_of(c);
  for (i64 at = blockIdx.x; at < tile_count(rows, c.group_out, c.groups); at += gridDim.x) {
    tile_place place = tile_of(at, rows, c.group_out);
    i64 offset = place.product * c.group_out;
    matrix from_kernel = matrix_of(kernel + offset, c.group_out, 1, c.out_channels);
    patches from_x;
    from_x.x = x;
    from_x.c = &c;
    from_x.found = &found;
    from_x.group = place.product;
    from_x.begin(place.top);
    from_kernel.begin(place.first);
    S sum[PART][PART];
    multiply_tile(sum, left, right, from_x, from_kernel, 0, taps_of(c) * c.group_in);
    finished to;
    to.y = y + offset;
    to.bias = bias == 0 ? bias : bias + offset;
    to.row_step = c.out_channels;
    to.activation = c.activation;
    write_tile(sum, place.top, place.first, rows, c.group_out, to);
  }
}

KERNEL convolve_grad_input(T *dx, const T *dy, const T *kernel, convolution c) {
  __shared__ strip left, right;
  __shared__ spots found;
  __shared__ i64 found_kernel[DEPTH];
  i64 rows = pixels_of(c);
  for (i64 at = blockIdx.x; at < tile_count(rows, c.group_in, c.groups); at += gridDim.x) {
    tile_place place = tile_of(at, rows, c.group_in);
    sources from_dy;
    from_dy.dy = dy;
    from_dy.c = &c;
    from_dy.found = &found;
    from_dy.group = place.product;
    kernel_across from_kernel;
    from_kernel.kernel = kernel + place.product * c.group_out;
    from_kernel.c = &c;
    from_kernel.found = found_kernel;
    from_kernel.items = c.group_in;
    from_dy.begin(place.top);
    from_kernel.begin(place.first);
    S sum[PART][PART];
    multiply_tile(sum, left, right, from_dy, from_kernel, 0, taps_of(c) * c.group_out);
    finished to;
    to.y = dx + place.product * c.group_in;
    to.bias = 0;
    to.row_step = c.channels;
    to.activation = 0;
    write_tile(sum, place.top, place.first, rows, c.group_in, to);
  }
}

/* Sums that others follow. */
struct partial {
  A *sums;
  i64 row_step;
  __device__ __forceinline__ void at(i64 row, i64 column, S sum) const { sums[row * row_step + column] = sum; }
};

/* The kernel's gradient: sums over one chunk of positions after the other, which sum_chunks adds up. */
KERNEL convolve_grad_kernel(A *sums, const T *x, const T *dy, convolution c) {
  __shared__ strip left, right;
  __shared__ spots found;
  i64 rows = taps_of(c) * c.group_in, positions = positions_of(c);
  for (i64 at = blockIdx.x; at < tile_count(rows, c.group_out, c.groups * c.chunks); at += gridDim.x) {
    tile_place place = tile_of(at, rows, c.group_out);
    i64 chunk = quotient(place.product, c.groups), group = place.product - chunk * c.groups;
    i64 begin = chunk * c.chunk, end = begin + c.chunk < positions ? begin + c.chunk : positions;
    matrix from_dy = matrix_of(dy + group * c.group_out, c.group_out, 1, c.out_channels);
    patches_across from_x;
    from_x.x = x;
    from_x.c = &c;
    from_x.found = &found;
    from_x.group = group;
    from_x.begin(place.top);
    from_dy.begin(place.first);
    S sum[PART][PART];
    multiply_tile(sum, left, right, from_x, from_dy, begin, end);
    partial to;
    to.sums = sums + chunk * rows * c.out_channels + group * c.group_out;
    to.row_step = c.out_channels;
    write_tile(sum, place.top, place.first, rows, c.group_out, to);
  }
}

KERNEL sum_chunks(T *y, const A *sums, i64 count, i64 chunks) {
  FOR_EACH(i, count) {
    A sum = 0;
    for (i64 chunk = 0; chunk < chunks; chunk++) sum += sums[chunk * count + i];
    store(y + i, sum);
  }
}

/* --- groups too narrow for tiles: a thread for each element of the result --- */

KERNEL convolve_narrow(T *y, const T *x, const T *kernel, const T *bias, convolution c) {
  FOR_EACH(i, positions_of(c) * c.out_channels) {
    i64 position = quotient(i, c.out_channels), channel = i - position * c.out_channels;
    i64 first = quotient(channel, c.group_out) * c.group_in;
    spot seen = position_spot(c, position), tap;
    const T *from = kernel + channel;
    A sum = 0;
    for (tap.row = 0; tap.row < c.kernel[0] * c.dilation[0]; tap.row += c.dilation[0])
      for (tap.column = 0; tap.column < c.kernel[1] * c.dilation[1]; tap.column += c.dilation[1])
        for (tap.offset = first; tap.offset < first + c.group_in; tap.offset++, from += c.out_channels)
          sum += seen_by(x, c, seen, tap) * load(from);
    if (bias != 0) sum += load(bias + channel);
    store(y + i, activate_apart(c.activation, sum));
  }
}

KERNEL convolve_grad_input_narrow(T *dx, const T *dy, const T *kernel, convolution c) {
  FOR_EACH(i, pixels_of(c) * c.channels) {
    i64 place = quotient(i, c.channels), channel = i - place * c.channels, group = quotient(channel, c.group_in);
    i64 first = group * c.group_out;
    spot seen = pixel_spot(c, place), tap;
    const T *from = kernel + (channel - group * c.group_in) * c.out_channels;
    A sum = 0;
    for (tap.row = 0; tap.row < c.kernel[0] * c.dilation[0]; tap.row += c.dilation[0])
      for (tap.column = 0; tap.column < c.kernel[1] * c.dilation[1]; tap.column += c.dilation[1]) {
        for (tap.offset = first; tap.offset < first + c.group_out; tap.offset++)
          sum += seen_from(dy, c, seen, tap) * load(from + tap.offset);
        from += c.group_in * c.out_channels;
      }
    store(dx + i, sum);
  }
}

KERNEL convolve_grad_kernel_narrow(A *sums, const T *x, const T *dy, convolution c) {
  i64 count = taps_of(c) * c.group_in * c.out_channels, positions = positions_of(c);
  FOR_EACH(i, count * c.chunks) {
    i64 chunk = quotient(i, count), element = i - chunk * count, inner = quotient(element, c.out_channels);
    i64 channel = element - inner * c.out_channels, first = quotient(channel, c.group_out) * c.group_in;
    i64 begin = chunk * c.chunk, end = begin + c.chunk < positions ? begin + c.chunk : positions;
    spot tap = tap_spot(c, inner, c.group_in, first);
    A sum = 0;
    for (i64 position = begin; position < end; position++)
      sum += seen_by(x, c, position_spot(c, position), tap) * load(dy + position * c.out_channels + channel);
    sums[i] = sum;
  }
}

#endif
