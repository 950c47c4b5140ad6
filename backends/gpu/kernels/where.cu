/* SPDX-License-Identifier: Apache-2.0 */
/* The choice between two operands by a third, all three broadcast. Elements are only moved: what counts is their size. */

template <typename M>
DEVICE void choose(M *y, const M *a, const M *b, const u8 *condition, const broadcast &shape, i64 count) {
  const int n = PACK(M);
  i64 at[3], rest = shape.wide ? count - count % n : 0;
  FOR_EACH(i, rest / n) {
    places_of<3>(shape, i * n, at);
    pack<M, n> yes = operand<n>(a + at[0], shape.stride[0][0]), no = operand<n>(b + at[1], shape.stride[1][0]);
    pack<u8, n> which = operand<n>(condition + at[2], shape.stride[2][0]);
    pack<M, n> out;
    for (int k = 0; k < n; k++) out.item[k] = which.item[k] != 0 ? yes.item[k] : no.item[k];
    ((pack<M, n> *)y)[i] = out;
  }
  FOR_EACH(i, count - rest) {
    places_of<3>(shape, rest + i, at);
    y[rest + i] = condition[at[2]] != 0 ? a[at[0]] : b[at[1]];
  }
}

#define WHERE(name, M)                                                                                                 \
  KERNEL name(M *y, const M *a, const M *b, const u8 *condition, broadcast shape, i64 count) {                         \
    choose(y, a, b, condition, shape, count);                                                                          \
  }
WHERE(where_1, u8)
WHERE(where_2, u16)
WHERE(where_4, u32)
WHERE(where_8, u64)
