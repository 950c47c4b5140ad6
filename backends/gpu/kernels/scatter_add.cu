/* SPDX-License-Identifier: Apache-2.0 */
/* y[index[i]] += x[i] in order of i, from zeros.
 *
 * Every element of y belongs to one thread, which adds to it in order, so that nothing depends on who comes first. Rows
 * are dealt out, not cut into ranges, because the numbers of words and the like are often in order of how frequent they
 * are: a block has some threads for each of a few neighbouring rows, then the next blocks have theirs, round and
 * round. All blocks go through all indices, which are few beside the rows they name: a block looks at 1024 of them at a
 * time, keeps those of its rows in their order, and then adds the rows they stand for. A thread holds the element that it
 * is at, and reads several rows ahead: of frequent ones (such as padding) long sums are made without waiting for memory.
 *
 * Threads of a row, groups and blocks are powers of two. Halves are summed in `sums`, in float; else `sums` is y. */

#define LOOK  1024 /* indices at a time */
#define AHEAD 16   /* rows that are read before they are added */

struct deal {
  i64 count, rows, row; /* how many indices; rows of y; elements of a row */
  int wide_indices;
  int column_bits, group_bits, block_bits; /* logarithms: of a row's threads, a block's groups, the blocks of a round */
  u32 operation;
};

struct found {
  i64 row[LOOK];
  int place[LOOK]; /* among those that were looked at */
  u32 bits[LOOK / 32];
  int count;
};

/* The row that index `i` names, or −1 if it is none of those of `block`. */
DEVICE i64 row_of(const void *indices, const deal &of, i64 i, i64 block, status_word *status) {
  if (i >= of.count) return -1;
  i64 row = index_at(indices, of.wide_indices, i);
  if (row >= 0 && row < of.rows) return (row >> of.group_bits & (((i64)1 << of.block_bits) - 1)) == block ? row : -1;
  if (blockIdx.x == 0) report(status, of.operation, row);
  return -1;
}

/* Finds the indices from `from` on that name rows of this block, and lists them in their order. */
DEVICE void look(found &list, const void *indices, const deal &of, i64 from, i64 block, status_word *status) {
  int thread = threadIdx.x, before = 0;
  u32 bit = 1u << (thread % 32);
  i64 row[LOOK / GPU_BLOCK];
  if (thread < LOOK / 32) list.bits[thread] = 0;
  __syncthreads();
  for (int k = 0; k < LOOK / GPU_BLOCK; k++) {
    row[k] = row_of(indices, of, from + k * GPU_BLOCK + thread, block, status);
    if (row[k] >= 0) atomicOr(&list.bits[(k * GPU_BLOCK + thread) / 32], bit);
  }
  __syncthreads();
  for (int k = 0; k < LOOK / GPU_BLOCK; k++) {
    for (int word = 0; word < GPU_BLOCK / 32; word++) {
      u32 bits = list.bits[k * (GPU_BLOCK / 32) + word];
      if (word == thread / 32 && row[k] >= 0) {
        int rank = before + __popc(bits & (bit - 1u));
        list.row[rank] = row[k];
        list.place[rank] = k * GPU_BLOCK + thread;
      }
      before += __popc(bits);
    }
  }
  if (thread == 0) list.count = before;
  __syncthreads();
}

/* The element that a thread is at; −1: none yet. */
struct holding {
  i64 at;
  A total;
};

DEVICE void add_to(holding &held, A *sums, i64 at, A value) {
  if (at != held.at) {
    if (held.at >= 0) sums[held.at] = held.total;
    held.total = sums[at];
    held.at = at;
  }
  held.total = (A)((W)held.total + (W)value);
}

/* Adds what was found. `x` begins with the row of the first index that was looked at. */
DEVICE void add_found(holding &held, A *sums, const T *x, const found &list, const deal &of, i64 column, i64 group) {
  for (int m = 0; m < list.count; m += AHEAD) {
    A ahead[AHEAD];
#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
      bool ours = m + k < list.count && (list.row[m + k] & (((i64)1 << of.group_bits) - 1)) == group;
      ahead[k] = ours ? load(x + list.place[m + k] * of.row + column) : (A)0;
    }
#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
      bool ours = m + k < list.count && (list.row[m + k] & (((i64)1 << of.group_bits) - 1)) == group;
      if (ours) add_to(held, sums, list.row[m + k] * of.row + column, ahead[k]);
    }
  }
}

KERNEL scatter_add(T *y, A *sums, const T *x, const void *indices, deal of, status_word *status) {
  __shared__ found list;
  i64 block = blockIdx.x & (((i64)1 << of.block_bits) - 1), group = threadIdx.x >> of.column_bits;
  i64 column = (i64)(blockIdx.x >> of.block_bits) << of.column_bits | (threadIdx.x & ((1 << of.column_bits) - 1));
  i64 first = (block << of.group_bits) + group, round = (i64)1 << (of.group_bits + of.block_bits);
  bool works = column < of.row;
  for (i64 row = first; works && row < of.rows; row += round) sums[row * of.row + column] = (A)0;
  holding held = {-1, (A)0};
  for (i64 from = 0; from < of.count; from += LOOK) {
    look(list, indices, of, from, block, status);
    if (works) add_found(held, sums, x + from * of.row, list, of, column, group);
  }
  if (held.at >= 0) sums[held.at] = held.total;
#if TYPE == 3 || TYPE == 4
  for (i64 row = first; works && row < of.rows; row += round)
    store(&y[row * of.row + column], sums[row * of.row + column]);
#endif
}
