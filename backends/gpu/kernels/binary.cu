/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic and comparisons of two operands, broadcast as in numpy. One kernel serves all shapes: of operands that
 * have the output's shape or are one number, nothing but the outermost axis is left, and no index is divided. Along the
 * innermost axis operands go by steps of 0 or 1, so that packs are read as they are or made of one element. */

#if IS_FLOAT
DEVICE A quotient_of(A a, A b) { return a / b; }
#else
/* Division by zero gives 0; the lowest integer by -1 wraps to itself. */
DEVICE A quotient_of(A a, A b) { return b == 0 ? 0 : b == (A)-1 ? (A)((W)0 - (W)a) : (A)(a / b); }
#endif

/* A bool counts as 1 if it is not 0. */
DEVICE A value_of(const T *address) { return TYPE == 8 ? (A)(load(address) != 0) : load(address); }

template <typename R, typename F>
DEVICE void map(R *y, const T *a, const T *b, const broadcast &shape, i64 count, F function) {
  const int n = PACK(T);
  i64 at[2], rest = shape.wide ? count - count % n : 0;
  FOR_EACH(i, rest / n) {
    places_of<2>(shape, i * n, at);
    pack<T, n> left = operand<n>(a + at[0], shape.stride[0][0]), right = operand<n>(b + at[1], shape.stride[1][0]);
    pack<R, n> out;
    for (int k = 0; k < n; k++) store(&out.item[k], function(value_of(&left.item[k]), value_of(&right.item[k])));
    ((pack<R, n> *)y)[i] = out;
  }
  FOR_EACH(i, count - rest) {
    places_of<2>(shape, rest + i, at);
    store(&y[rest + i], function(value_of(a + at[0]), value_of(b + at[1])));
  }
}

#define BINARY(name, R, V, value)                                                                                      \
  KERNEL binary_##name(R *y, const T *a, const T *b, broadcast shape, i64 count) {                                              \
    map(y, a, b, shape, count, [](A a, A b) -> V { return (V)(value); });                                              \
  }

#if TYPE <= 6
BINARY(add, T, A, (W)a + (W)b)
BINARY(sub, T, A, (W)a - (W)b)
BINARY(mul, T, A, (W)a * (W)b)
BINARY(div, T, A, quotient_of(a, b))
BINARY(maximum, T, A, a > b || a != a ? a : b)
BINARY(minimum, T, A, a < b || a != a ? a : b)
#endif
#if IS_FLOAT
BINARY(pow, T, A, pow(a, b))
#endif
BINARY(equal, b8, bool, a == b)
BINARY(not_equal, b8, bool, a != b)
BINARY(less, b8, bool, a < b)
BINARY(less_equal, b8, bool, a <= b)
BINARY(greater, b8, bool, a > b)
BINARY(greater_equal, b8, bool, a >= b)
