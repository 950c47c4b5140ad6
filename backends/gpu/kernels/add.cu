/* SPDX-License-Identifier: Apache-2.0 */

KERNEL add(T *y, const T *a, const T *b, i64 count) {
  FOR_EACH(i, count) store(y + i, load(a + i) + load(b + i));
}
