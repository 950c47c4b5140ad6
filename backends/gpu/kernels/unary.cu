/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one operand, element by element. All kernels have the same arguments: y may lie on x, `first` and
 * `second` are the operation's scalars, of which most use none. */

template <typename F> DEVICE void map(T *y, const T *x, i64 count, int wide, F function) {
  typedef pack<T, PACK(T)> several;
  i64 rest = wide ? count - count % PACK(T) : 0;
  FOR_EACH(i, rest / PACK(T)) {
    several in = ((const several *)x)[i], out;
    for (int k = 0; k < PACK(T); k++) store(&out.item[k], function(load(&in.item[k])));
    ((several *)y)[i] = out;
  }
  FOR_EACH(i, count - rest) store(&y[rest + i], function(load(&x[rest + i])));
}

#define UNARY(name, value)                                                                                             \
  KERNEL unary_##name(T *y, const T *x, i64 count, int wide, double first, double second) {                                    \
    A low, high;                                                                                                       \
    store_as(&low, first);                                                                                             \
    store_as(&high, second);                                                                                           \
    map(y, x, count, wide, [=](A x) -> A { return (A)(value); });                                                      \
  }

UNARY(neg, (W)0 - (W)x)
UNARY(square, (W)x * (W)x)
UNARY(clip, x < low ? (low > high ? high : low) : x > high ? high : x)
#if IS_FLOAT
UNARY(abs, fabs(x))
UNARY(sqrt, sqrt(x))
UNARY(rsqrt, (A)1 / sqrt(x))
UNARY(exp, exp(x))
UNARY(log, log(x))
UNARY(relu, relu(x))
UNARY(sigmoid, sigmoid(x))
UNARY(tanh, tanh(x))
UNARY(softplus, softplus(x))
UNARY(swish, swish(x))
UNARY(gelu, gelu(x))
UNARY(gelu_tanh, gelu_tanh(x))
UNARY(elu, x > (A)0 ? x : expm1(x) * low)
UNARY(leaky_relu, x > (A)0 ? x : x * low)
#else
UNARY(abs, x < 0 ? (A)((W)0 - (W)x) : x)
UNARY(relu, x < 0 ? 0 : x)
#endif
