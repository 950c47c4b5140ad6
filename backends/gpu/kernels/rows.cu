/* SPDX-License-Identifier: Apache-2.0 */
/* gather and one_hot: rows by their numbers. Rows are moved in units of 1 to 16 bytes, the largest that addresses and
 * rows are multiples of; all counts are of units. */

/* y[i] = x[index[i]], a row each. What names no row is reported and becomes zeros. */
template <typename U>
DEVICE void gather(U *y, const U *x, const void *indices, int wide_indices, i64 count, i64 rows, i64 row,
                   status_word *status, u32 operation) {
  FOR_EACH(i, count * row) {
    i64 number = quotient(i, row), index = index_at(indices, wide_indices, number);
    if (index >= 0 && index < rows) {
      y[i] = x[index * row + i - number * row];
    } else {
      report(status, operation, index);
      set_unit(&y[i], 0);
    }
  }
}

template <typename U>
DEVICE void one_hot(U *y, const void *indices, int wide_indices, i64 count, i64 depth, u64 hot) {
  FOR_EACH(i, count * depth) {
    i64 number = quotient(i, depth);
    set_unit(&y[i], index_at(indices, wide_indices, number) == i - number * depth ? hot : 0);
  }
}

#define GATHER(bytes, U)                                                                                               \
  KERNEL gather_##bytes(U *y, const U *x, const void *indices, int wide_indices, i64 count, i64 rows, i64 row,         \
                        status_word *status, u32 operation) {                                                          \
    gather(y, x, indices, wide_indices, count, rows, row, status, operation);                                          \
  }
GATHER(1, u8)
GATHER(2, u16)
GATHER(4, u32)
GATHER(8, u64)
GATHER(16, u128)

#define ONE_HOT(bytes, U)                                                                                              \
  KERNEL one_hot_##bytes(U *y, const void *indices, int wide_indices, i64 count, i64 depth, u64 hot) {                 \
    one_hot(y, indices, wide_indices, count, depth, hot);                                                              \
  }
ONE_HOT(1, u8)
ONE_HOT(2, u16)
ONE_HOT(4, u32)
ONE_HOT(8, u64)
