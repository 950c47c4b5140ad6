/* SPDX-License-Identifier: Apache-2.0 */
/* combine_rows: sums of the rows that sort.cu has sorted, and of their squares. Most results have few rows: a thread
 * adds up one element of a result. Those that have many (padding, frequent words) have blocks of their own, in which
 * each strip adds up some of the rows. */

#define MANY 64 /* more rows than this are many. Is MARK of sort.cu: among many rows is one that is marked */

struct sums {
  A rows, squares;
};
struct addition_of_sums {
  DEVICE sums join(sums a, sums b) {
    sums both = {a.rows + b.rows, a.squares + b.squares};
    return both;
  }
};

/* Column `column` of sorted rows from `begin` to `end`, in their order. */
DEVICE sums sum_rows(const T *x, const u32 *sorted, i64 begin, i64 end, i64 column, i64 columns) {
  sums total = {0, 0};
#pragma unroll 8
  for (i64 i = begin; i < end; i++) {
    A value = load(x + (i64)sorted[i] * columns + column);
    total.rows += value;
    total.squares += value * value;
  }
  return total;
}

DEVICE void put(T *y, T *squares, i64 place, sums total) {
  store(y + place, total.rows);
  if (squares != 0) store(squares + place, total.squares);
}

/* The last `long_blocks` blocks have the results of many rows. */
KERNEL combine_rows(const T *x, T *y, T *squares, const u32 *sorted, const u32 *begins, const u32 *marks,
                    const u32 *results, i64 count, i64 columns, int width, u32 long_blocks) {
  __shared__ sums shared[GPU_BLOCK];
  i64 all = results[0];
  u32 blocks = gridDim.x - long_blocks;
  if (blockIdx.x < blocks) {
    for (i64 at = (i64)blockIdx.x * GPU_BLOCK + threadIdx.x; at < count * columns; at += (i64)blocks * GPU_BLOCK) {
      i64 result = quotient(at, columns), column = at - result * columns;
      sums total = {0, 0};
      if (result < all) {
        i64 begin = begins[result], end = begins[result + 1];
        if (end - begin > MANY) continue;
        total = sum_rows(x, sorted, begin, end, column, columns);
      }
      put(y, squares, at, total);
    }
    return;
  }
  int strip = (int)threadIdx.x / width, strips = GPU_BLOCK / width;
  i64 groups = (columns + width - 1) / width, units = (begins[all] + MANY - 1) / MANY * groups;
  for (i64 unit = blockIdx.x - blocks; unit < units; unit += long_blocks) {
    i64 mark = quotient(unit, groups), column = (unit - mark * groups) * width + threadIdx.x % width;
    i64 result = marks[mark], begin = begins[result], end = begins[result + 1];
    /* Of several marks the first one counts. All threads of a block agree. */
    if (end - begin <= MANY || mark * MANY - begin >= MANY) continue;
    i64 each = (end - begin + strips - 1) / strips, from = begin + strip * each;
    i64 to = from + each < end ? from + each : end;
    sums total = {0, 0};
    if (column < columns) total = sum_rows(x, sorted, from, to, column, columns);
    total = strips_join<addition_of_sums>(total, shared, width);
    if (strip == 0 && column < columns) put(y, squares, result * columns + column, total);
  }
}
