/* SPDX-License-Identifier: Apache-2.0 */
/* concat: rows side by side. They are moved in units of 1 to 16 bytes, the largest that addresses and rows are
 * multiples of; all counts are of units. */

/* Rows of up to 8 inputs side by side: those of input k take `end[k]` less the end before it. They are a part of longer
 * rows in y. */
#define INPUTS 8
struct joint {
  i64 end[INPUTS];
  i64 rows, pitch; /* pitch: units of a row of y */
};

template <typename U>
DEVICE void concat(U *y, const joint &shape, const U *x0, const U *x1, const U *x2, const U *x3, const U *x4,
                   const U *x5, const U *x6, const U *x7) {
  const U *const x[INPUTS] = {x0, x1, x2, x3, x4, x5, x6, x7};
  i64 width = shape.end[INPUTS - 1];
  FOR_EACH(i, shape.rows * width) {
    i64 row = quotient(i, width), column = i - row * width, begin = 0;
    const U *from = x[0];
    i64 end = shape.end[0];
#pragma unroll
    for (int k = 1; k < INPUTS; k++) {
      if (column < shape.end[k - 1]) break;
      from = x[k];
      begin = shape.end[k - 1];
      end = shape.end[k];
    }
    y[row * shape.pitch + column] = from[row * (end - begin) + column - begin];
  }
}

#define CONCAT(bytes, U)                                                                                               \
  KERNEL concat_##bytes(U *y, joint shape, const U *x0, const U *x1, const U *x2, const U *x3, const U *x4,            \
                        const U *x5, const U *x6, const U *x7) {                                                       \
    concat(y, shape, x0, x1, x2, x3, x4, x5, x6, x7);                                                                  \
  }
CONCAT(1, u8)
CONCAT(2, u16)
CONCAT(4, u32)
CONCAT(8, u64)
CONCAT(16, u128)
