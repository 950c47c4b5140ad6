/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes in kernels, and in the calls that compile, load and launch them. */
#include "mistakes.h"

#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 64, SHARED = 128 }; /* of numbers, and bytes of shared memory */

/* A kernel called `kernel` that is given COUNT floats in device memory and the number of them. */
typedef struct program {
  sim_vendor vendor;
  const char *right, *wrong; /* what stands in the kernel */
  unsigned threads;
} program;

static void *load(const char *body) {
  char text[2048];
  snprintf(text, sizeof text, "%sextern \"C\" __global__ void kernel(float *x, int n) { %s }\n", gpu_prologue, body);
  return gpu_module_of(text);
}

static void run_kernel(const program *p, bool wrong) {
  float values[COUNT];
  for (int i = 0; i < COUNT; i++) values[i] = (float)i;
  gpu_open(p->vendor, 1);
  void *kernel, *module = load(wrong ? p->wrong : p->right), *x = gpu_copy_of(values, sizeof values);
  NEED(gpu_kernel(module, "kernel", &kernel));
  int count = COUNT;
  gpu_grid grid = {{1, 1, 1}, {p->threads, 1, 1}, SHARED};
  NEED(gpu_launch(kernel, &grid, GPU_ARGUMENTS(&x, &count)));
  NEED(gpu_finish());
  gpu_free(x);
  gpu_unload(module);
  gpu_close();
}

#define KERNEL(name, ...)                                                                                              \
  static void name(bool wrong) {                                                                                       \
    run_kernel(&(program){__VA_ARGS__}, wrong);                                                                        \
  }

/* ---------------------------------------------------------------------------------------------------------------------
 * In kernels
 */

KERNEL(read_behind, SIM_CUDA, "if (threadIdx.x == 0) x[0] = x[n - 1];", "if (threadIdx.x == 0) x[0] = x[n];", 32)
KERNEL(write_behind, SIM_HIP, "x[threadIdx.x] = 1;", "x[threadIdx.x + n / 2] = 1;", COUNT)
KERNEL(null_pointer, SIM_CUDA, "float *y = x; y[0] = 1;", "float *y = n ? NULL : x; y[0] = 1;", 1)
KERNEL(no_barrier_for_all, SIM_CUDA, "x[threadIdx.x] = 1; __syncthreads();",
       "if (threadIdx.x == 40) return; x[threadIdx.x] = 1; __syncthreads();", COUNT)
KERNEL(two_barriers, SIM_CUDA, "if (threadIdx.x < 64) __syncthreads(); else __syncthreads();",
       "if (threadIdx.x < 32) __syncthreads(); else __syncthreads();", COUNT)
KERNEL(warp_mask, SIM_CUDA, "x[threadIdx.x] = __shfl_sync(0x0000FFFFu, x[threadIdx.x], 3);",
       "x[threadIdx.x] = __shfl_sync(0x0000FFF0u, x[threadIdx.x], 5);", 16)
KERNEL(warp_left_alone, SIM_CUDA, "float v = SHUFFLE_XOR(x[threadIdx.x], 1); __syncthreads(); x[threadIdx.x] = v;",
       "float v = 0; if (threadIdx.x > 1) v = SHUFFLE_XOR(x[threadIdx.x], 1); __syncthreads(); x[threadIdx.x] = v;",
       COUNT)
KERNEL(warp_operations, SIM_HIP, "if (threadIdx.x < 64) x[threadIdx.x] = SHUFFLE_XOR(1.0f, 1);",
       "if (threadIdx.x < 32) x[threadIdx.x] = SHUFFLE_XOR(1.0f, 1); else x[threadIdx.x] = ANY(1);", COUNT)
KERNEL(lane_that_ended, SIM_CUDA, "x[threadIdx.x] = SHUFFLE_DOWN(x[threadIdx.x], 1);",
       "if (threadIdx.x == 7) return; x[threadIdx.x] = SHUFFLE_DOWN(x[threadIdx.x], 1);", COUNT)
KERNEL(lane_elsewhere, SIM_HIP, "x[threadIdx.x] = SHUFFLE_XOR(x[threadIdx.x], 16);",
       "if (threadIdx.x < 16) x[threadIdx.x] = SHUFFLE_XOR(x[threadIdx.x], 16);", COUNT)
KERNEL(shared_index, SIM_CUDA, "__shared__ float t[32]; t[threadIdx.x] = 1; __syncthreads(); x[threadIdx.x] = t[0];",
       "__shared__ float t[32]; t[threadIdx.x + 1] = 1; __syncthreads(); x[threadIdx.x] = t[1];", 32)
KERNEL(too_little_shared, SIM_HIP,
       "extern __shared__ float t[]; t[threadIdx.x] = 1; __syncthreads(); x[threadIdx.x] = t[0];",
       "extern __shared__ float t[]; t[threadIdx.x + 8] = 1; __syncthreads(); x[threadIdx.x] = t[8];", 32)
KERNEL(misaligned, SIM_CUDA, "((float4 *)x)[1].x = 1;", "((float4 *)(x + 1))[1].x = 1;", 1)
KERNEL(division, SIM_CUDA, "x[0] = 7 / n;", "x[0] = 7 / (n - 64);", 1)
KERNEL(large_variables, SIM_HIP, "float t[64]; for (int i = 0; i < n; i++) t[i] = x[i]; x[0] = t[n - 1];",
       "volatile float t[50000]; for (int i = 49999; i >= 0; i--) t[i] = 1; x[0] = t[n];", 1)
KERNEL(trap, SIM_CUDA, "if (n < 0) __trap();", "if (n > 0) __trap();", 1)
KERNEL(assertion, SIM_HIP, "assert(n > 0);", "assert(n < 0);", 1)
KERNEL(endless, SIM_CUDA, "while (n-- > 0) x[0] = n;", "volatile int go = 1; while (go) x[0] = n;", 1)

/* Each thread reads what another wrote. Without a barrier this is right for some threads in each order; which ones, the
 * order decides. Shared memory that nobody has written yet is full of NaN. */
KERNEL(missing_barrier, SIM_CUDA,
       "__shared__ float t[64]; t[threadIdx.x] = 1; __syncthreads(); float v = t[63 - threadIdx.x]; assert(v == 1);",
       "__shared__ float t[64]; t[threadIdx.x] = 1; float v = t[63 - threadIdx.x]; assert(v == 1);", COUNT)
KERNEL(uninitialized_shared, SIM_HIP,
       "__shared__ float t[64]; t[threadIdx.x] = 0; __syncthreads(); assert(t[n / 2] == 0);",
       "__shared__ float t[64]; if (threadIdx.x != n / 2) t[threadIdx.x] = 0; __syncthreads(); assert(t[n / 2] == 0);",
       COUNT)

/* ---------------------------------------------------------------------------------------------------------------------
 * In calls
 */

static const char fill[] =
    "extern \"C\" __global__ void fill(float *x, float value, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) x[i] = value;\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(64) bounded(float *x) { x[threadIdx.x] = 1; }\n"
    "struct view { float *x; int n; };\n"
    "extern \"C\" __global__ void through(view v) { v.x[v.n - 1] = 1; }\n"
    "extern \"C\" __global__ void direct(float *x) { *x = 1; }\n"
    "extern \"C\" __global__ void indirect(float **x) { **x = 1; }\n";

typedef struct bench {
  void *module, *kernel, *x;
  float value;
  int count;
} bench;

static bench open_bench(sim_vendor vendor, int devices, const char *name) {
  gpu_open(vendor, devices);
  bench b = {.module = gpu_module_of(fill), .x = gpu_allocate(COUNT * sizeof(float)), .value = 1, .count = COUNT};
  NEED(gpu_kernel(b.module, name, &b.kernel));
  return b;
}

static int launch(bench *b, const gpu_grid *grid) {
  return gpu_launch(b->kernel, grid, GPU_ARGUMENTS(&b->x, &b->value, &b->count));
}

static void close_bench(bench *b) {
  NEED(gpu_finish());
  gpu_free(b->x);
  gpu_unload(b->module);
  gpu_close();
}

static void host_pointer(bool wrong) {
  bench b = open_bench(SIM_CUDA, 1, "fill");
  static float host[COUNT];
  void *x = wrong ? host : b.x;
  gpu_launch(b.kernel, GPU_LINE(1, COUNT), GPU_ARGUMENTS(&x, &b.value, &b.count));
  close_bench(&b);
}

static void other_device(bool wrong) {
  bench b = open_bench(SIM_HIP, 2, "fill");
  gpu_select(1);
  void *other = gpu_allocate(COUNT * sizeof(float)), *x = wrong ? other : b.x;
  gpu_select(0);
  gpu_launch(b.kernel, GPU_LINE(1, COUNT), GPU_ARGUMENTS(&x, &b.value, &b.count));
  close_bench(&b);
  gpu_select(1);
  gpu_free(other);
}

static void kernel_of_other_device(bool wrong) {
  bench b = open_bench(SIM_CUDA, 2, "fill");
  if (wrong) gpu_select(1);
  launch(&b, GPU_LINE(1, COUNT));
  gpu_select(0);
  close_bench(&b);
}

static void stream_of_other_device(bool wrong) {
  bench b = open_bench(SIM_CUDA, 2, "fill");
  gpu_select(wrong);
  gpu_stream = gpu_stream_create();
  gpu_select(0);
  launch(&b, GPU_LINE(1, COUNT));
  gpu_stream_delete(gpu_stream);
  gpu_stream = NULL;
  close_bench(&b);
}

static void pointer_in_memory(bool wrong) {
  bench b = open_bench(SIM_CUDA, 1, "indirect");
  void *pointers = gpu_copy_of(&b.x, sizeof b.x);
  if (!wrong) NEED(gpu_kernel(b.module, "direct", &b.kernel));
  gpu_launch(b.kernel, GPU_LINE(1, 1), GPU_ARGUMENTS(wrong ? &pointers : &b.x));
  NEED(gpu_finish());
  gpu_free(pointers);
  close_bench(&b);
}

static void struct_too_long(bool wrong) {
  bench b = open_bench(SIM_CUDA, 1, "through");
  struct {
    void *x;
    int n;
  } view = {b.x, wrong ? COUNT + 1 : COUNT};
  gpu_launch(b.kernel, GPU_LINE(1, 1), GPU_ARGUMENTS(&view));
  close_bench(&b);
}

static void freed_before_it_runs(bool wrong) {
  bench b = open_bench(SIM_CUDA, 1, "fill");
  void *x = gpu_allocate(COUNT * sizeof(float));
  if (wrong) gpu_free(x);
  gpu_launch(b.kernel, GPU_LINE(1, COUNT), GPU_ARGUMENTS(&x, &b.value, &b.count));
  if (!wrong) gpu_free(x);
  close_bench(&b);
}

static void missing_argument(bool wrong) {
  bench b = open_bench(SIM_HIP, 1, "fill");
  gpu_launch(b.kernel, GPU_LINE(1, COUNT), wrong ? NULL : GPU_ARGUMENTS(&b.x, &b.value, &b.count));
  close_bench(&b);
}

static void many_threads(bool wrong) {
  bench b = open_bench(SIM_CUDA, 1, "fill");
  launch(&b, &(gpu_grid){{1, 1, 1}, {32, wrong ? 33 : 32, 1}, 0});
  close_bench(&b);
}

static void beyond_launch_bounds(bool wrong) {
  bench b = open_bench(SIM_HIP, 1, "bounded");
  launch(&b, GPU_LINE(1, wrong ? 65 : 64));
  close_bench(&b);
}

static void no_blocks(bool wrong) {
  bench b = open_bench(SIM_CUDA, 1, "fill");
  launch(&b, GPU_LINE(wrong ? 0 : 1, COUNT));
  close_bench(&b);
}

static void too_tall(bool wrong) {
  bench b = open_bench(SIM_CUDA, 1, "fill");
  launch(&b, &(gpu_grid){{1, wrong ? 65536 : 65535, 1}, {1, 1, 1}, 0});
  close_bench(&b);
}

static void hip_too_tall(bool wrong) {
  bench b = open_bench(SIM_HIP, 1, "fill");
  launch(&b, &(gpu_grid){{1, wrong ? 65537 : 65536, 1}, {1, 1, 1}, 0});
  close_bench(&b);
}

static void hip_many_items(bool wrong) {
  bench b = open_bench(SIM_HIP, 1, "fill");
  launch(&b, &(gpu_grid){{wrong ? 1 << 22 : 1, 1, 1}, {1024, 1, 1}, 0});
  close_bench(&b);
}

static void hip_much_shared(bool wrong) {
  bench b = open_bench(SIM_HIP, 1, "fill");
  launch(&b, &(gpu_grid){{1, 1, 1}, {1, 1, 1024}, 64 * 1024 + (wrong ? 4 : 0)});
  close_bench(&b);
}

static void much_shared(bool wrong) {
  bench b = open_bench(SIM_CUDA, 1, "fill");
  launch(&b, &(gpu_grid){{1, 1, 1}, {COUNT, 1, 1}, 48 * 1024 + (wrong ? 4 : 0)});
  close_bench(&b);
}

/* Nobody waits for the last kernel. What is left is told as well. */
static void nobody_waits(bool wrong) {
  bench b = open_bench(SIM_HIP, 1, "fill");
  b.count = wrong ? 2 * COUNT : COUNT;
  launch(&b, GPU_LINE(2, COUNT));
  if (!wrong) close_bench(&b);
}

static void after_unload(bool wrong) {
  bench b = open_bench(SIM_CUDA, 1, "fill");
  void *other = gpu_module_of(fill), *kernel;
  NEED(gpu_kernel(other, "fill", &kernel));
  if (wrong) gpu_unload(other);
  gpu_launch(kernel, GPU_LINE(1, COUNT), GPU_ARGUMENTS(&b.x, &b.value, &b.count));
  NEED(gpu_finish());
  if (!wrong) gpu_unload(other);
  close_bench(&b);
}

static void unloaded_too_early(bool wrong) {
  bench b = open_bench(SIM_HIP, 1, "fill");
  launch(&b, GPU_LINE(1, COUNT));
  if (!wrong) NEED(gpu_finish());
  gpu_unload(b.module);
  NEED(gpu_finish());
  gpu_free(b.x);
}

static void module_left(bool wrong) {
  bench b = open_bench(SIM_HIP, 1, "fill");
  void *other = gpu_module_of(fill);
  if (!wrong) gpu_unload(other);
  close_bench(&b);
}

/* The lookup tells that there is none, which nobody looks at. */
static void no_such_kernel(bool wrong) {
  bench b = open_bench(SIM_CUDA, 1, "fill");
  void *kernel = NULL;
  gpu_kernel(b.module, wrong ? "fil" : "fill", &kernel);
  gpu_launch(kernel, GPU_LINE(1, COUNT), GPU_ARGUMENTS(&b.x, &b.value, &b.count));
  close_bench(&b);
}

static void unknown_architecture(bool wrong) {
  char *image = NULL, *log = NULL;
  gpu_open(SIM_HIP, 1);
  gpu_compile(fill, wrong ? "gfx9999" : "gfx1030", &image, &log);
  free(image);
  free(log);
}

#define IN_KERNEL "illegal address in a kernel"

const mistake kernel_mistakes[] = {
    {"kernel-reads-behind", IN_KERNEL, read_behind, NULL},
    {"kernel-writes-behind", IN_KERNEL, write_behind, NULL},
    {"kernel-null-pointer", IN_KERNEL, null_pointer, NULL},
    {"barrier-not-for-all", "barrier not reached by all threads", no_barrier_for_all, NULL},
    {"barrier-two", "different barriers", two_barriers, NULL},
    {"barrier-missing-up", "trap in a kernel", missing_barrier, "GPUSIM_CUDA=1 GPUSIM_ORDER=up"},
    {"barrier-missing-down", "trap in a kernel", missing_barrier, "GPUSIM_CUDA=1 GPUSIM_ORDER=down"},
    {"barrier-missing-shuffled", "trap in a kernel", missing_barrier, "GPUSIM_CUDA=1 GPUSIM_ORDER=shuffled"},
    {"warp-mask-without-self", "warp divergence", warp_mask, NULL},
    {"warp-left-alone", "warp divergence", warp_left_alone, NULL},
    {"warp-two-operations", "warp divergence", warp_operations, NULL},
    {"shuffle-from-ended-lane", "shuffle from a lane that does not take part", lane_that_ended, NULL},
    {"shuffle-from-lane-elsewhere", "shuffle from a lane that does not take part", lane_elsewhere, NULL},
    {"shared-uninitialized", "trap in a kernel", uninitialized_shared, NULL},
    {"shared-index", "index out of bounds", shared_index, NULL},
    {"shared-too-little", IN_KERNEL, too_little_shared, NULL},
    {"kernel-misaligned", "misaligned address", misaligned, NULL},
    {"kernel-division", "division by zero in a kernel", division, NULL},
    {"kernel-large-variables", "stack overflow in a kernel", large_variables, NULL},
    {"kernel-trap", "trap in a kernel", trap, NULL},
    {"kernel-assertion", "trap in a kernel", assertion, NULL},
    {"kernel-endless", "kernel does not end", endless, "GPUSIM_CUDA=1 GPUSIM_PATIENCE=1"},
    {"launch-host-pointer", "not device memory", host_pointer, NULL},
    {"launch-other-device", "wrong device", other_device, "GPUSIM_HIP=2 GPUSIM_CUDA=0"},
    {"launch-stream-of-other-device", "wrong device", stream_of_other_device, "GPUSIM_CUDA=2"},
    {"launch-kernel-of-other-device", "wrong device", kernel_of_other_device, "GPUSIM_CUDA=2"},
    {"launch-struct-too-long", IN_KERNEL, struct_too_long, NULL},
    {"launch-pointer-in-memory", IN_KERNEL, pointer_in_memory, NULL},
    {"launch-after-free", "use after free", freed_before_it_runs, NULL},
    {"launch-missing-argument", "invalid argument", missing_argument, NULL},
    {"launch-many-threads", "too many threads", many_threads, NULL},
    {"launch-beyond-bounds", "too many threads", beyond_launch_bounds, NULL},
    {"launch-no-blocks", "empty launch", no_blocks, NULL},
    {"launch-too-tall", "launch too large", too_tall, NULL},
    {"launch-hip-too-tall", "launch too large", hip_too_tall, NULL},
    {"launch-hip-many-items", "launch too large", hip_many_items, NULL},
    {"launch-hip-much-shared", "too much shared memory", hip_much_shared, NULL},
    {"launch-much-shared", "too much shared memory", much_shared, NULL},
    {"launch-nobody-waits", "illegal address in a kernel", nobody_waits, NULL},
    {"launch-after-unload", "use after delete", after_unload, NULL},
    {"launch-no-such-kernel", "invalid handle", no_such_kernel, NULL},
    {"module-unloaded-too-early", "module unloaded in use", unloaded_too_early, NULL},
    {"module-left", "leak", module_left, NULL},
    {"compile-unknown-architecture", "unknown architecture", unknown_architecture, NULL},
    {0},
};
