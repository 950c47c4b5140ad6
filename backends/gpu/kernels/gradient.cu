/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of activations: dx of dy and of v, which is y or x as helio_activation_attributes says. Where an x is so
 * large that the derivative is 0 or 1 it is replaced by a smaller one, lest a part of the formula overflow. */

#if IS_FLOAT
DEVICE A within(A x, A limit) { return x > limit ? limit : x < -limit ? -limit : x; }

DEVICE A swish_slope(A x) {
  x = within(x, (A)800);
  A s = sigmoid(x);
  return s * ((A)1 + x * ((A)1 - s));
}

DEVICE A gelu_slope(A x) {
  x = within(x, (A)40);
  A distribution = (A)0.5 * erfc(x * (A)-0.70710678118654752440);
  return distribution + x * (A)0.39894228040143267794 * exp((A)-0.5 * x * x);
}

DEVICE A gelu_tanh_slope(A x) {
  x = within(x, (A)30);
  A square = x * x, s = sigmoid(x * ((A)1.5957691216057307117 + (A)0.071354816272600247 * square));
  return s * ((A)1 + x * ((A)1.5957691216057307117 + (A)0.214064448817800741 * square) * ((A)1 - s));
}
#endif

template <typename F> DEVICE void map(T *dx, const T *dy, const T *v, i64 count, int wide, F function) {
  typedef pack<T, PACK(T)> several;
  i64 rest = wide ? count - count % PACK(T) : 0;
  FOR_EACH(i, rest / PACK(T)) {
    several above = ((const several *)dy)[i], value = ((const several *)v)[i], out;
    for (int k = 0; k < PACK(T); k++) store(&out.item[k], function(load(&above.item[k]), load(&value.item[k])));
    ((several *)dx)[i] = out;
  }
  FOR_EACH(i, count - rest) store(&dx[rest + i], function(load(&dy[rest + i]), load(&v[rest + i])));
}

#define GRADIENT(name, value)                                                                                          \
  KERNEL gradient_##name(T *dx, const T *dy, const T *v, i64 count, int wide, double parameter) {                      \
    A alpha = (A)parameter;                                                                                            \
    map(dx, dy, v, count, wide, [=](A dy, A v) -> A { return value; });                                                \
  }

GRADIENT(linear, dy)
GRADIENT(relu, v <= (A)0 ? (A)0 : dy)
#if IS_FLOAT
GRADIENT(sigmoid, dy * (v * ((A)1 - v)))
GRADIENT(tanh, dy * ((A)1 - v * v))
GRADIENT(softplus, dy * sigmoid(v))
GRADIENT(swish, dy * swish_slope(v))
GRADIENT(gelu, dy * gelu_slope(v))
GRADIENT(gelu_tanh, dy * gelu_tanh_slope(v))
GRADIENT(elu, v > (A)0 ? dy : dy * (v + alpha))
GRADIENT(leaky_relu, v > (A)0 ? dy : dy * alpha)
#endif
