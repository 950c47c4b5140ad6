/* SPDX-License-Identifier: Apache-2.0 */
/* Row numbers sorted by their indices, equal ones in their order, and the distinct indices listed. The number of
 * launches depends on how many there are and not on what they are: tiles are sorted in shared memory, then runs are
 * merged two by two. Every entry finds its place for itself; no two are equal, for each has a row of its own.
 *
 * An index below zero is none and sorts behind all others. */

#define TILE 1024 /* entries that a block sorts */
#define MARK 64   /* every so many sorted entries it is noted which result they belong to */
#define NONE (~(u64)0)

DEVICE bool before(u64 key, u32 row, u64 other_key, u32 other_row) {
  return key < other_key || (key == other_key && row < other_row);
}

/* One tile by each block: a bitonic sort, whose steps are the same for all contents. */
KERNEL sort_tiles(const void *indices, int wide, u64 *keys, u32 *rows, i64 count) {
  __shared__ u64 key[TILE];
  __shared__ u32 row[TILE];
  for (i64 base = (i64)blockIdx.x * TILE; base < count; base += (i64)gridDim.x * TILE) {
    __syncthreads();
    for (int i = threadIdx.x; i < TILE; i += GPU_BLOCK) {
      i64 index = base + i < count ? index_at(indices, wide, base + i) : -1;
      key[i] = index < 0 ? NONE : (u64)index;
      row[i] = (u32)(base + i);
    }
    for (int size = 2; size <= TILE; size *= 2) {
      for (int apart = size / 2; apart > 0; apart /= 2) {
        __syncthreads();
        for (int pair = threadIdx.x; pair < TILE / 2; pair += GPU_BLOCK) {
          int a = 2 * pair - pair % apart, b = a + apart;
          bool upwards = (a & size) == 0;
          if (before(key[b], row[b], key[a], row[a]) != upwards) continue;
          u64 key_a = key[a];
          u32 row_a = row[a];
          key[a] = key[b];
          row[a] = row[b];
          key[b] = key_a;
          row[b] = row_a;
        }
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE && base + i < count; i += GPU_BLOCK) {
      keys[base + i] = key[i];
      rows[base + i] = row[i];
    }
  }
}

/* Two neighbouring runs of `run` sorted entries become one. An entry's place is its own in its run and how many of the
 * other run come before it. */
KERNEL merge_runs(const u64 *keys, const u32 *rows, u64 *to_keys, u32 *to_rows, i64 count, i64 run) {
  FOR_EACH(i, count) {
    i64 number = quotient(i, run), other = (number ^ 1) * run, low = other < count ? other : count;
    i64 high = other + run < count ? other + run : count, begin = low;
    u64 key = keys[i];
    u32 row = rows[i];
    while (low < high) {
      i64 middle = (low + high) / 2;
      if (before(keys[middle], rows[middle], key, row)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    i64 place = (number & ~(i64)1) * run + (i - number * run) + (low - begin);
    to_keys[place] = key;
    to_rows[place] = row;
  }
}

/* Does a new index begin at sorted entry i? */
DEVICE bool is_first(const u64 *keys, i64 count, i64 i) {
  return i < count && keys[i] != NONE && (i == 0 || keys[i - 1] != keys[i]);
}

/* How many indices begin in each tile. */
KERNEL count_firsts(const u64 *keys, u32 *firsts, i64 count) {
  __shared__ u32 shared[GPU_BLOCK / 32];
  for (i64 base = (i64)blockIdx.x * TILE; base < count; base += (i64)gridDim.x * TILE) {
    u32 found = 0;
    for (int i = threadIdx.x; i < TILE; i += GPU_BLOCK) found += is_first(keys, count, base + i);
    found = team_join<addition>(found, shared, GPU_BLOCK);
    if (threadIdx.x == 0) firsts[base / TILE] = found;
  }
}

/* The sum of the threads' values before this one's. */
DEVICE u32 sum_before(u32 value, u32 *shared) {
  __syncthreads();
  shared[threadIdx.x] = value;
  for (int apart = 1; apart < GPU_BLOCK; apart *= 2) {
    __syncthreads();
    u32 below = (int)threadIdx.x >= apart ? shared[threadIdx.x - apart] : 0;
    __syncthreads();
    shared[threadIdx.x] += below;
  }
  return shared[threadIdx.x] - value;
}

DEVICE void put_index(void *indices, int wide, i64 i, i64 value) {
  if (wide != 0) {
    ((i64 *)indices)[i] = value;
  } else {
    ((i32 *)indices)[i] = (i32)value;
  }
}

/* Of each result where it begins among the sorted entries, and one more for the end; the result of every MARKth entry;
 * how many results there are; and the distinct indices, with −1 behind them. */
KERNEL list_firsts(const u64 *keys, const u32 *firsts, u32 *begins, u32 *marks, u32 *results, void *distinct, int wide,
                   i64 count) {
  __shared__ u32 shared_sums[GPU_BLOCK / 32], shared[GPU_BLOCK];
  i64 tiles = (count + TILE - 1) / TILE;
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    u32 earlier = 0, all = 0;
    for (i64 i = threadIdx.x; i < tiles; i += GPU_BLOCK) {
      earlier += i < tile ? firsts[i] : 0;
      all += firsts[i];
    }
    earlier = team_join<addition>(earlier, shared_sums, GPU_BLOCK);
    all = team_join<addition>(all, shared_sums, GPU_BLOCK);
    const int each = TILE / GPU_BLOCK;
    i64 begin = tile * TILE + (i64)threadIdx.x * each;
    u32 own = 0;
    for (int k = 0; k < each; k++) own += is_first(keys, count, begin + k);
    u32 number = earlier + sum_before(own, shared);
    for (i64 i = begin; i < begin + each && i < count; i++) {
      bool there = keys[i] != NONE;
      if (is_first(keys, count, i)) {
        begins[number] = (u32)i;
        put_index(distinct, wide, number++, (i64)keys[i]);
      }
      if (there && i % MARK == 0) marks[i / MARK] = number - 1;
      if (!there && (i == 0 || keys[i - 1] != NONE)) begins[all] = (u32)i;
      if (there && i == count - 1) begins[all] = (u32)count;
      if (i >= (i64)all) put_index(distinct, wide, i, -1);
      if (i == 0) results[0] = all;
    }
  }
}
