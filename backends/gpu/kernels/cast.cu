/* SPDX-License-Identifier: Apache-2.0 */
/* From T to any type: floats to integers towards zero, to the nearest end of the range, NaN to 0; between integers it
 * wraps. A double becomes a half by rounding once. */

/* A bool counts as 1 if it is not 0. */
DEVICE A value_of(const T *address) { return TYPE == 8 ? (A)(load(address) != 0) : load(address); }

template <typename M> DEVICE void convert(M *y, const T *x, i64 count, int wide) {
  const int n = PACK(T) < PACK(M) ? PACK(T) : PACK(M);
  i64 rest = wide ? count - count % n : 0;
  FOR_EACH(i, rest / n) {
    pack<T, n> in = ((const pack<T, n> *)x)[i];
    pack<M, n> out;
    for (int k = 0; k < n; k++) store_as(&out.item[k], value_of(&in.item[k]));
    ((pack<M, n> *)y)[i] = out;
  }
  FOR_EACH(i, count - rest) store_as(&y[rest + i], value_of(&x[rest + i]));
}

#define CAST(name, M)                                                                                                  \
  KERNEL name(M *y, const T *x, i64 count, int wide) { convert(y, x, count, wide); }
CAST(to_float32, float)
CAST(to_float64, double)
CAST(to_float16, f16)
CAST(to_bfloat16, bf16)
CAST(to_int32, i32)
CAST(to_int64, i64)
CAST(to_uint8, u8)
CAST(to_bool, b8)
