/* SPDX-License-Identifier: Apache-2.0 */
/* slice and transpose: elements change their places, whatever they are. Those that stay neighbours are moved in units of
 * up to 16 bytes, the largest that addresses, rows and strides are multiples of; counts and strides are of units. */

/* y[i] = x[place of i]: y is contiguous, x is walked through by strides. */
template <typename U> DEVICE void copy(U *y, const U *x, const axes &shape, i64 count) {
  FOR_EACH(i, count) y[i] = x[place_of(shape, i)];
}

/* Planes of two axes, of which the one is innermost in x and the other innermost in y: tiles of them are read along the
 * one and written along the other, so that both go over neighbours. */
#define TILE 32
struct planes {
  axes x, y;              /* the other axes: the same extents, with the strides of x and with those of y */
  i64 across, along;      /* extents of the axes that are innermost in y and in x */
  i64 x_stride, y_stride; /* of `across` in x, of `along` in y */
  i64 count;              /* of planes */
};

/* Tiles have a column more than they need, lest a warp read them from one bank of shared memory. */
template <typename U> DEVICE void transpose(U *y, const U *x, const planes &shape) {
  __shared__ U tile[TILE][TILE + 1];
  int column = threadIdx.x % TILE, line = threadIdx.x / TILE, lines = blockDim.x / TILE;
  i64 tiles_across = (shape.across + TILE - 1) / TILE, tiles_along = (shape.along + TILE - 1) / TILE;
  i64 tiles = tiles_across * tiles_along;
  for (i64 unit = blockIdx.x; unit < shape.count * tiles; unit += gridDim.x) {
    i64 plane = quotient(unit, tiles), at = unit - plane * tiles, across = quotient(at, tiles_along);
    i64 along = (at - across * tiles_along) * TILE;
    across *= TILE;
    const U *from = x + place_of(shape.x, plane);
    U *to = y + place_of(shape.y, plane);
    for (int k = line; k < TILE; k += lines) {
      if (across + k < shape.across && along + column < shape.along)
        tile[k][column] = from[(across + k) * shape.x_stride + along + column];
    }
    __syncthreads();
    for (int k = line; k < TILE; k += lines) {
      if (along + k < shape.along && across + column < shape.across)
        to[(along + k) * shape.y_stride + across + column] = tile[column][k];
    }
    __syncthreads();
  }
}

#define COPY(bytes, U)                                                                                                 \
  KERNEL copy_##bytes(U *y, const U *x, axes shape, i64 count) { copy(y, x, shape, count); }
COPY(1, u8)
COPY(2, u16)
COPY(4, u32)
COPY(8, u64)
COPY(16, u128)

#define TRANSPOSE(bytes, U)                                                                                            \
  KERNEL transpose_##bytes(U *y, const U *x, planes shape) { transpose(y, x, shape); }
TRANSPOSE(1, u8)
TRANSPOSE(2, u16)
TRANSPOSE(4, u32)
TRANSPOSE(8, u64)
