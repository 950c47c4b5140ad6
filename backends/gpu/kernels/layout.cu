/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts that the vendors' convolutions want and we do not have: kernels with the channels of the output first, images
 * with as much padding on one side as on the other. */

/* Matrices of `rows` by `columns`, one behind the other, transposed: by tiles, so that both sides are neighbours. */
#define TILE 32
#define TILE_ROWS 8 /* that a block of TILE × TILE_ROWS threads moves at a time */

KERNEL transpose_matrices(T *y, const T *x, i64 batches, i64 rows, i64 columns) {
  __shared__ T tile[TILE][TILE + 1];
  int across = (int)threadIdx.x % TILE, down = (int)threadIdx.x / TILE;
  i64 wide = (columns + TILE - 1) / TILE, high = (rows + TILE - 1) / TILE;
  for (i64 at = blockIdx.x; at < batches * high * wide; at += gridDim.x) {
    i64 line = quotient(at, wide), left = (at - line * wide) * TILE;
    i64 batch = quotient(line, high), top = (line - batch * high) * TILE;
    const T *from = x + batch * rows * columns;
    T *to = y + batch * rows * columns;
    for (int i = down; i < TILE; i += TILE_ROWS)
      if (top + i < rows && left + across < columns) tile[i][across] = from[(top + i) * columns + left + across];
    __syncthreads();
    for (int i = down; i < TILE; i += TILE_ROWS)
      if (left + i < columns && top + across < rows) to[(left + i) * rows + top + across] = tile[across][i];
    __syncthreads();
  }
}

/* Of images: all lie as (image, height, width, channel). */
struct frame {
  i64 images, height, width, channels; /* of the smaller one */
  i64 high, wide;                      /* of the larger one */
  i64 above, left;                     /* where the smaller one begins in the larger */
};

/* y is x in a frame of zeros. */
KERNEL pad_images(T *y, const T *x, frame f) {
  i64 row = f.wide * f.channels;
  FOR_EACH(i, f.images * f.high * row) {
    i64 line = quotient(i, row), image = quotient(line, f.high), place = i - line * row - f.left * f.channels;
    i64 height = line - image * f.high - f.above;
    bool inside = height >= 0 && height < f.height && place >= 0 && place < f.width * f.channels;
    if (inside) y[i] = x[(image * f.height + height) * f.width * f.channels + place];
    else store(y + i, (A)0);
  }
}

/* y is x without its frame. */
KERNEL crop_images(T *y, const T *x, frame f) {
  i64 row = f.width * f.channels;
  FOR_EACH(i, f.images * f.height * row) {
    i64 line = quotient(i, row), image = quotient(line, f.height), place = i - line * row;
    i64 height = line - image * f.height + f.above;
    y[i] = x[((image * f.high + height) * f.wide + f.left) * f.channels + place];
  }
}
