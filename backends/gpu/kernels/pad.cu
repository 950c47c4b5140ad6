/* SPDX-License-Identifier: Apache-2.0 */
/* pad: the input inside a border of one value. Both are written in units of 1 to 16 bytes, the largest that addresses,
 * rows and borders are multiples of; all counts are of units. */

/* Axes of the output, innermost first: how much lies before the input, how much is the input, how much there is. */
struct border {
  i64 before[MAX_RANK], inside[MAX_RANK], whole[MAX_RANK];
  int rank, type; /* type: of the elements, a helio_type */
};

/* The bytes of a value in some type, repeated to 8. */
template <typename M> DEVICE u64 repeated(double value) {
  union {
    M item[8 / sizeof(M)];
    u64 bytes;
  } all;
  for (int i = 0; i < (int)(8 / sizeof(M)); i++) store_as(&all.item[i], value);
  return all.bytes;
}

DEVICE u64 pattern(int type, double value) {
  switch (type) {
  case 1: return repeated<float>(value);
  case 2: return repeated<double>(value);
  case 3: return repeated<f16>(value);
  case 4: return repeated<bf16>(value);
  case 5: return repeated<i32>(value);
  case 6: return repeated<i64>(value);
  case 7: return repeated<u8>(value);
  default: return repeated<b8>(value);
  }
}

template <typename U> DEVICE void pad(U *y, const U *x, const border &shape, i64 count, double value) {
  U edge;
  set_unit(&edge, pattern(shape.type, value));
  FOR_EACH(i, count) {
    i64 left = i, place = 0, step = 1;
    bool inside = true;
#pragma unroll 1
    for (int axis = 0; axis < shape.rank; axis++) {
      i64 next = axis + 1 == shape.rank ? 0 : quotient(left, shape.whole[axis]);
      i64 at = left - next * shape.whole[axis] - shape.before[axis];
      inside = inside && at >= 0 && at < shape.inside[axis];
      place += at * step;
      step *= shape.inside[axis];
      left = next;
    }
    y[i] = inside ? x[place] : edge;
  }
}

#define PAD(bytes, U)                                                                                                  \
  KERNEL pad_##bytes(U *y, const U *x, border shape, i64 count, double value) { pad(y, x, shape, count, value); }
PAD(1, u8)
PAD(2, u16)
PAD(4, u32)
PAD(8, u64)
PAD(16, u128)
