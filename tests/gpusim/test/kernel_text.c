/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of kernel_cases.c, in the part of the language that both vendors' compilers know. */
#include "kernel_cases.h"

#define TEXT(...) #__VA_ARGS__ "\n",

/* clang-format off */
const char *const kernel_text[] = {
    TEXT(typedef unsigned int u32; typedef unsigned long long u64;)

    TEXT(extern "C" __global__ void sum_by_tree(const int *x, int *sum, int n) {
      __shared__ int parts[256];
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      parts[threadIdx.x] = i < n ? x[i] : 0;
      __syncthreads();
      for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
      }
      if (threadIdx.x == 0) atomicAdd(sum, parts[0]);
    })

    TEXT(__device__ int warp_sum(int value) {
      for (int bits = warpSize / 2; bits > 0; bits /= 2) value += SHUFFLE_XOR(value, bits);
      return value;
    })

    TEXT(extern "C" __global__ void sum_by_shuffles(const int *__restrict__ x, int *__restrict__ sum, int n) {
      __shared__ int parts[32];
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      u32 lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
      int value = warp_sum(i < n ? __ldg(x + i) : 0);
      if (lane == 0) parts[warp] = value;
      __syncthreads();
      if (warp == 0) {
        value = warp_sum(lane < blockDim.x / warpSize ? parts[lane] : 0);
        if (lane == 0) atomicAdd(sum, value);
      }
    })

    TEXT(template <typename T> __device__ T block_sum(T value) {
      __shared__ T parts[256];
      parts[threadIdx.x] = value;
      __syncthreads();
      T total = 0;
      for (u32 i = 0; i < blockDim.x; i++) total += parts[i];
      __syncthreads();
      return total;
    })

    TEXT(extern "C" __global__ void __launch_bounds__(256) sum_by_template(const int *x, int *sum, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      int value = i < n ? x[i] : 0;
      double as_double = block_sum<double>(value);
      int total = block_sum<int>(value);
      if (threadIdx.x == 0) atomicAdd(sum, total == (int)as_double ? total : 1 << 30);
    })

    /* Some threads have more to do than others, and all of them come to each barrier. */
    TEXT(extern "C" __global__ void sum_by_dynamic(const int *x, int *sum, int n) {
      __shared__ int total;
      if (threadIdx.x == 0) total = 0;
      __syncthreads();
      int own = 0;
      for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += x[i];
      atomicAdd(&total, own);
      __syncthreads();
      if (threadIdx.x == blockDim.x - 1) atomicAdd(sum, total);
    })

    TEXT(extern "C" __global__ void transpose(const int *x, int *y, int rows, int columns) {
      __shared__ int tile[32][33];
      for (int i = threadIdx.y; i < 32; i += blockDim.y) {
        int row = blockIdx.y * 32 + i; int column = blockIdx.x * 32 + threadIdx.x;
        if (row < rows && column < columns) tile[i][threadIdx.x] = x[row * columns + column];
      }
      __syncthreads();
      for (int i = threadIdx.y; i < 32; i += blockDim.y) {
        int row = blockIdx.x * 32 + i; int column = blockIdx.y * 32 + threadIdx.x;
        if (row < columns && column < rows) y[row * rows + column] = tile[threadIdx.x][i];
      }
    })

    TEXT(extern "C" __global__ void reverse(int *x) {
      extern __shared__ int values[];
      values[threadIdx.x] = x[threadIdx.x];
      __syncthreads();
      x[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
    })

    TEXT(extern "C" __global__ void coordinates(u32 *x) {
      u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
      u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
      x[block * blockDim.x * blockDim.y * blockDim.z + thread] = threadIdx.x + threadIdx.y * 10 + threadIdx.z * 100 +
        blockIdx.x * 1000 + blockIdx.y * 10000 + blockIdx.z * 100000;
    })

    TEXT(struct view { char first; const int *from; float *to; short count; double factor; };)
    TEXT(extern "C" __global__ void through_struct(unsigned char extra, view v, u64 address) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < v.count) v.to[i] = (float)(v.from[i] * v.factor) + v.first + extra;
      if (i == 0 && (float *)address != v.to) v.to[0] = -1;
    })

    TEXT(struct totals {
      u64 sum; double sum_of_doubles; float sum_of_floats; int sum_of_ints; int least; int most; u32 counter; u32 bits;
      u32 product;
    };)
    TEXT(extern "C" __global__ void atomics(totals *t) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      atomicAdd(&t->sum, 1ull);
      atomicAdd(&t->sum_of_doubles, 0.5);
      atomicAdd(&t->sum_of_floats, 2.0f);
      atomicSub(&t->sum_of_ints, 1);
      atomicMin(&t->least, -i);
      atomicMax(&t->most, i);
      atomicInc(&t->counter, 99u);
      atomicOr(&t->bits, 1u << i % 8);
      u32 seen; u32 old = t->product;
      do { seen = old; old = atomicCAS(&t->product, seen, seen + 1); } while (old != seen);
    })

    TEXT(extern "C" __global__ void votes(int *x) {
      int counted = __syncthreads_count(threadIdx.x % 3 == 0);
      int some = __syncthreads_or(threadIdx.x == 77);
      int each = __syncthreads_and(threadIdx.x != 77);
      int any = ANY(threadIdx.x == 5);
      int all = ALL(threadIdx.x < 128);
      int none = ANY(threadIdx.x >= 128);
      if (threadIdx.x == 0) {
        x[0] = counted; x[1] = some; x[2] = each; x[3] = any; x[4] = all; x[5] = none;
      }
    })

    TEXT(extern "C" __global__ void scan(int *x, int *width) {
      int lane = threadIdx.x % warpSize; int value = threadIdx.x;
      for (int delta = 1; delta < warpSize; delta *= 2) {
        int below = SHUFFLE_UP(value, delta);
        if (lane >= delta) value += below;
      }
      x[threadIdx.x] = value;
      if (threadIdx.x == 0) *width = warpSize;
    })

    TEXT(extern "C" __global__ void shuffles(int *x) {
      int own = threadIdx.x;
      int one = SHUFFLE(own, 5);
      int up = SHUFFLE_UP_OF_8(own, 3);
      int down = SHUFFLE_DOWN_OF_8(own, 2);
      int other = SHUFFLE_XOR(own, 1);
      x[threadIdx.x] = one + up * 2 + down * 3 + other * 4;
    })

    TEXT(extern "C" __global__ void mathematics(const float *x, float *y, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= n) return;
      float v = x[i]; float p = fabsf(v) + 0.5f; float *r = y + i * 12;
      r[0] = expf(v); r[1] = logf(p); r[2] = tanhf(v); r[3] = powf(p, 1.5f); r[4] = rsqrtf(p); r[5] = erff(v);
      r[6] = rintf(v); r[7] = fmaxf(v, 1.0f); r[8] = __int_as_float(__float_as_int(v) & 0x7FFFFFFF);
      r[9] = __fdividef(1.0f, 1.0f + __expf(-v)); r[10] = floorf(v); r[11] = sqrtf(p) + cbrtf(p);
    })

    TEXT(extern "C" __global__ void histogram(u32 *bins) {
      __shared__ u32 own[61];
      if (threadIdx.x < 61) own[threadIdx.x] = 0;
      __syncthreads();
      u32 i = blockIdx.x * blockDim.x + threadIdx.x;
      atomicAdd(&own[__umulhi(i * 2654435761u, 61u)], 1u);
      __syncthreads();
      if (threadIdx.x < 61) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
    })

    /* Together they have more shared memory than a block can have, each alone has not. */
    TEXT(__device__ __noinline__ float last_of(float *values, int n) {
      __shared__ float saved[2000];
      saved[threadIdx.x] = values[n - 1];
      __syncthreads();
      return saved[0];
    })
    TEXT(extern "C" __global__ void large_first(float *x) {
      __shared__ float values[10000];
      for (int i = threadIdx.x; i < 10000; i += blockDim.x) values[i] = i;
      __syncthreads();
      x[threadIdx.x] = last_of(values, 10000);
    })
    TEXT(extern "C" __global__ void large_second(float *x) {
      __shared__ float values[10240];
      for (int i = threadIdx.x; i < 10240; i += blockDim.x) values[i] = -i;
      __syncthreads();
      x[threadIdx.x] = last_of(values, 10240);
    })

    TEXT(__device__ int calls;)
    TEXT(extern "C" __global__ void count_calls(int *x) { *x = ++calls; })
    NULL};
