/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of up to 16 inputs, added in their order: halves in float, and rounded once. A longer sum goes through `sum`,
 * where launches leave what they have so far: a launch begins with it if `continued`, and leaves it there instead of in
 * y if `unfinished`. All of an element's inputs are read before it is written, for y may lie on one of them. */

#define INPUTS 16

struct portion {
  i64 count;
  int inputs, wide, continued, unfinished;
};

template <int n>
DEVICE void sum_pack(T *y, A *sum, const T *const *x, const portion &of, i64 from, i64 i) {
  A total[n];
  for (int k = 0; k < n; k++) total[k] = of.continued ? sum[from + i * n + k] : (A)0;
#pragma unroll
  for (int j = 0; j < INPUTS; j++) {
    if (j >= of.inputs) break;
    pack<T, n> next = ((const pack<T, n> *)(x[j] + from))[i];
    for (int k = 0; k < n; k++) {
      A value = load(&next.item[k]);
      total[k] = j == 0 && !of.continued ? value : (A)((W)total[k] + (W)value);
    }
  }
  if (of.unfinished) {
    for (int k = 0; k < n; k++) sum[from + i * n + k] = total[k];
    return;
  }
  pack<T, n> out;
  for (int k = 0; k < n; k++) store(&out.item[k], total[k]);
  ((pack<T, n> *)(y + from))[i] = out;
}

KERNEL add_n(T *y, A *sum, portion of, const T *x0, const T *x1, const T *x2, const T *x3, const T *x4, const T *x5,
             const T *x6, const T *x7, const T *x8, const T *x9, const T *x10, const T *x11, const T *x12, const T *x13,
             const T *x14, const T *x15) {
  const T *const x[INPUTS] = {x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12, x13, x14, x15};
  i64 rest = of.wide ? of.count - of.count % PACK(T) : 0;
  FOR_EACH(i, rest / PACK(T)) sum_pack<PACK(T)>(y, sum, x, of, 0, i);
  FOR_EACH(i, of.count - rest) sum_pack<1>(y, sum, x, of, rest, i);
}
