/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one operand, element by element. All kernels have the same arguments: y may lie on x, `first` and
 * `second` are the operation's scalars, of which most use none. */

#if IS_FLOAT
DEVICE float magnitude(float x) { return fabsf(x); }
DEVICE double magnitude(double x) { return fabs(x); }
DEVICE float root(float x) { return sqrtf(x); }
DEVICE double root(double x) { return sqrt(x); }
DEVICE float exponential(float x) { return expf(x); }
DEVICE double exponential(double x) { return exp(x); }
DEVICE float exponential_less_one(float x) { return expm1f(x); }
DEVICE double exponential_less_one(double x) { return expm1(x); }
DEVICE float logarithm(float x) { return logf(x); }
DEVICE double logarithm(double x) { return log(x); }
DEVICE float logarithm_of_one_more(float x) { return log1pf(x); }
DEVICE double logarithm_of_one_more(double x) { return log1p(x); }
DEVICE float hyperbolic(float x) { return tanhf(x); }
DEVICE double hyperbolic(double x) { return tanh(x); }
DEVICE float error_complement(float x) { return erfcf(x); }
DEVICE double error_complement(double x) { return erfc(x); }

DEVICE A sigmoid_of(A x) { return (A)1 / ((A)1 + exponential(-x)); }

/* √(8/π) (x + 0.044715 x³): GELU_TANH is x × sigmoid of this. */
DEVICE A gelu_argument(A x) { return x * ((A)1.5957691216057307117 + (A)0.071354816272600247 * x * x); }
#endif

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
  KERNEL name(T *y, const T *x, i64 count, int wide, double first, double second) {                                    \
    A low, high;                                                                                                       \
    store_as(&low, first);                                                                                             \
    store_as(&high, second);                                                                                           \
    map(y, x, count, wide, [=](A x) -> A { return (A)(value); });                                                      \
  }

UNARY(neg, (W)0 - (W)x)
UNARY(square, (W)x * (W)x)
UNARY(clip, x < low ? (low > high ? high : low) : x > high ? high : x)
UNARY(relu, x <= (A)0 ? (A)0 : x)
#if IS_FLOAT
UNARY(abs_, magnitude(x))
UNARY(sqrt_, root(x))
UNARY(rsqrt_, (A)1 / root(x))
UNARY(exp_, exponential(x))
UNARY(log_, logarithm(x))
UNARY(sigmoid, sigmoid_of(x))
UNARY(tanh_, hyperbolic(x))
UNARY(softplus, logarithm_of_one_more(exponential(-magnitude(x))) + (x > (A)0 ? x : (A)0))
UNARY(swish, x / ((A)1 + exponential(-x)))
UNARY(gelu, (A)0.5 * x * error_complement(x * (A)-0.70710678118654752440))
UNARY(gelu_tanh, x * sigmoid_of(gelu_argument(x)))
UNARY(elu, x > (A)0 ? x : exponential_less_one(x) * low)
UNARY(leaky_relu, x > (A)0 ? x : x * low)
#else
UNARY(abs_, x < 0 ? (A)((W)0 - (W)x) : x)
#endif
