/* SPDX-License-Identifier: Apache-2.0 */
/* What follows a product or a convolution of a library's: y = activation(y + bias), in place, in rows of `columns`. */

KERNEL epilogue(T *y, const T *bias, i64 count, i64 columns, u32 activation) {
  FOR_EACH(i, count) {
    A value = load(y + i);
    if (bias != 0) value += load(bias + (i - quotient(i, columns) * columns));
    store(y + i, activate(activation, value));
  }
}
