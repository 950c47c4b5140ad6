/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels as a library for training has them, compared with plain loops. Sums are of whole numbers, so that they are
 * exact in every order. */
#include "kernel_cases.h"

#include "mistakes.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 5003, BLOCK = 256, BLOCKS = (COUNT + BLOCK - 1) / BLOCK };

static void *module;

static void launch(const char *name, const gpu_grid *grid, void **arguments) {
  void *kernel;
  NEED(gpu_kernel(module, name, &kernel));
  NEED(gpu_launch(kernel, grid, arguments));
}

static void expect(double found, double wanted, double tolerance, const char *what, int index) {
  if (fabs(found - wanted) <= tolerance * (1 + fabs(wanted))) return;
  fprintf(stderr, "kernel_cases: %s: number %d is %.9g, not %.9g\n", what, index, found, wanted);
  exit(4);
}

static void *zeros(size_t bytes) {
  void *host = calloc(1, bytes), *device = gpu_copy_of(host, bytes);
  NEED(gpu_finish());
  free(host);
  return device;
}

static int *numbers(int count) {
  int *values = malloc((size_t)count * sizeof *values);
  for (int i = 0; i < count; i++) values[i] = (int)((unsigned)i * 2654435761u >> 20) - 2000;
  return values;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Sums: by shared memory, by shuffles, by a function that is a template
 */

static void check_sum(const char *name, const int *host, void *x) {
  int count = COUNT, result, wanted = 0;
  void *sum = zeros(sizeof result);
  launch(name, GPU_LINE(BLOCKS, BLOCK), GPU_ARGUMENTS(&x, &sum, &count));
  gpu_copy_out(&result, sum, sizeof result);
  for (int i = 0; i < COUNT; i++) wanted += host[i];
  expect(result, wanted, 0, name, 0);
  gpu_free(sum);
}

static void check_sums(void) {
  int *host = numbers(COUNT);
  void *x = gpu_copy_of(host, COUNT * sizeof *host);
  check_sum("sum_by_tree", host, x);
  check_sum("sum_by_shuffles", host, x);
  check_sum("sum_by_template", host, x);
  check_sum("sum_by_dynamic", host, x);
  gpu_free(x);
  free(host);
}

/* A tensor without elements may be at the end of an allocation. */
static void check_empty(void) {
  int none = 0, result;
  char *x = gpu_allocate(256), *end = x + 256;
  void *sum = zeros(sizeof result);
  launch("sum_by_tree", GPU_LINE(1, BLOCK), GPU_ARGUMENTS(&end, &sum, &none));
  gpu_copy_out(&result, sum, sizeof result);
  expect(result, 0, 0, "the sum of nothing", 0);
  gpu_free(sum);
  gpu_free(x);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Movement: tiles in two dimensions, blocks turned around, three dimensions
 */

static void check_transpose(void) {
  int rows = 70, columns = 45, size = rows * columns;
  int *host = numbers(size), *turned = malloc((size_t)size * sizeof *turned);
  void *x = gpu_copy_of(host, (size_t)size * sizeof *host), *y = gpu_allocate((size_t)size * sizeof *host);
  gpu_grid grid = {{2, 3, 1}, {32, 8, 1}, 0};
  launch("transpose", &grid, GPU_ARGUMENTS(&x, &y, &rows, &columns));
  gpu_copy_out(turned, y, (size_t)size * sizeof *turned);
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++)
      expect(turned[c * rows + r], host[r * columns + c], 0, "transpose", r * columns + c);
  gpu_free(x);
  gpu_free(y);
  free(host);
  free(turned);
}

static void check_reverse(void) {
  int host[BLOCK];
  for (int i = 0; i < BLOCK; i++) host[i] = i;
  void *x = gpu_copy_of(host, sizeof host);
  gpu_grid grid = {{1, 1, 1}, {BLOCK, 1, 1}, sizeof host};
  launch("reverse", &grid, GPU_ARGUMENTS(&x));
  gpu_copy_out(host, x, sizeof host);
  for (int i = 0; i < BLOCK; i++) expect(host[i], BLOCK - 1 - i, 0, "reverse", i);
  gpu_free(x);
}

static void check_coordinates(void) {
  enum { SIZE = 2 * 3 * 4 * 5 * 3 * 2 };
  unsigned host[SIZE];
  void *x = zeros(sizeof host);
  gpu_grid grid = {{2, 3, 4}, {5, 3, 2}, 0};
  launch("coordinates", &grid, GPU_ARGUMENTS(&x));
  gpu_copy_out(host, x, sizeof host);
  for (int i = 0; i < SIZE; i++) {
    int thread = i % 30, block = i / 30;
    int wanted = thread % 5 + thread / 5 % 3 * 10 + thread / 15 * 100 + block % 2 * 1000 + block / 2 % 3 * 10000 +
                 block / 6 * 100000;
    expect(host[i], wanted, 0, "coordinates", i);
  }
  gpu_free(x);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Arguments, atomics, votes
 */

static void check_struct(void) {
  enum { SIZE = 100 };
  struct {
    char first;
    void *from, *to;
    short count;
    double factor;
  } view = {3, NULL, NULL, SIZE, 0.5};
  int *host = numbers(SIZE);
  float result[SIZE];
  view.from = gpu_copy_of(host, SIZE * sizeof *host);
  view.to = gpu_allocate(sizeof result);
  unsigned char extra = 7;
  unsigned long long address = (unsigned long long)(uintptr_t)view.to; /* a number that is an address */
  launch("through_struct", GPU_LINE(2, 64), GPU_ARGUMENTS(&extra, &view, &address));
  gpu_copy_out(result, view.to, sizeof result);
  for (int i = 0; i < SIZE; i++) expect(result[i], host[i] * 0.5 + 10, 1e-6, "through_struct", i);
  gpu_free(view.from);
  gpu_free(view.to);
  free(host);
}

static void check_atomics(void) {
  struct {
    unsigned long long sum;
    double sum_of_doubles;
    float sum_of_floats;
    int sum_of_ints, least, most;
    unsigned counter, bits, product;
  } found;
  void *x = zeros(sizeof found);
  int blocks = 40, threads = 96, total = blocks * threads;
  launch("atomics", GPU_LINE((unsigned)blocks, (unsigned)threads), GPU_ARGUMENTS(&x));
  gpu_copy_out(&found, x, sizeof found);
  expect((double)found.sum, total, 0, "atomics", 0);
  expect(found.sum_of_doubles, total * 0.5, 0, "atomics", 1);
  expect(found.sum_of_floats, total * 2, 0, "atomics", 2);
  expect(found.sum_of_ints, -total, 0, "atomics", 3);
  expect(found.least, -(total - 1), 0, "atomics", 4);
  expect(found.most, total - 1, 0, "atomics", 5);
  expect(found.counter, total % 100, 0, "atomics", 6);
  expect(found.bits, 0xFF, 0, "atomics", 7);
  expect(found.product, total, 0, "atomics", 8);
  gpu_free(x);
}

static void check_votes(void) {
  int found[6];
  void *x = zeros(sizeof found);
  launch("votes", GPU_LINE(1, 128), GPU_ARGUMENTS(&x));
  gpu_copy_out(found, x, sizeof found);
  for (int i = 0; i < 6; i++) expect(found[i], (const int[]){43, 1, 0, 1, 1, 0}[i], 0, "votes", i);
  gpu_free(x);
}

/* Inclusive sums within each warp, and what the four kinds of shuffle bring. */
static void check_shuffles(void) {
  int width, found[128], scan[128];
  void *x = zeros(sizeof found), *y = zeros(sizeof scan), *w = zeros(sizeof width);
  launch("scan", GPU_LINE(1, 128), GPU_ARGUMENTS(&y, &w));
  launch("shuffles", GPU_LINE(1, 128), GPU_ARGUMENTS(&x));
  gpu_copy_out(&width, w, sizeof width);
  gpu_copy_out(found, x, sizeof found);
  gpu_copy_out(scan, y, sizeof scan);
  for (int i = 0; i < 128; i++) {
    int lane = i % width, first = i - lane;
    int up = lane % 8 >= 3 ? i - 3 : i, down = lane % 8 < 6 ? i + 2 : i;
    expect(found[i], first + 5 + up * 2 + down * 3 + (i ^ 1) * 4, 0, "shuffles", i);
    expect(scan[i], (lane + 1) * (first + i) / 2.0, 0, "scan", i);
  }
  gpu_free(x);
  gpu_free(y);
  gpu_free(w);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Numbers, many blocks, variables of a module
 */

static void check_mathematics(void) {
  enum { SIZE = 200, RESULTS = 12 };
  float host[SIZE], found[SIZE * RESULTS];
  for (int i = 0; i < SIZE; i++) host[i] = (float)(i - 100) / 20;
  int count = SIZE;
  void *x = gpu_copy_of(host, sizeof host), *y = gpu_allocate(sizeof found);
  launch("mathematics", GPU_LINE(1, SIZE), GPU_ARGUMENTS(&x, &y, &count));
  gpu_copy_out(found, y, sizeof found);
  for (int i = 0; i < SIZE; i++) {
    double v = host[i], p = fabs(v) + 0.5;
    double wanted[RESULTS] = {exp(v),  log(p),        tanh(v), pow(p, 1.5),       1 / sqrt(p), erf(v),
                              rint(v), v > 1 ? v : 1, fabs(v), 1 / (1 + exp(-v)), floor(v),    sqrt(p) + cbrt(p)};
    for (int k = 0; k < RESULTS; k++) expect(found[i * RESULTS + k], wanted[k], 3e-6, "mathematics", i * RESULTS + k);
  }
  gpu_free(x);
  gpu_free(y);
}

/* Enough blocks that other threads help. */
static void check_histogram(void) {
  enum { BINS = 61, BLOCKS_OF_IT = 3000 };
  unsigned found[BINS], wanted[BINS] = {0};
  void *x = zeros(sizeof found);
  launch("histogram", GPU_LINE(BLOCKS_OF_IT, 64), GPU_ARGUMENTS(&x));
  gpu_copy_out(found, x, sizeof found);
  for (unsigned i = 0; i < BLOCKS_OF_IT * 64; i++) wanted[(unsigned)((uint64_t)(i * 2654435761u) * BINS >> 32)]++;
  for (int i = 0; i < BINS; i++) expect(found[i], wanted[i], 0, "histogram", i);
  gpu_free(x);
}

static void check_large(void) {
  float found[64];
  void *x = zeros(sizeof found);
  launch("large_first", GPU_LINE(1, 64), GPU_ARGUMENTS(&x));
  gpu_copy_out(found, x, sizeof found);
  expect(found[63], 9999, 0, "large_first", 63);
  launch("large_second", GPU_LINE(1, 64), GPU_ARGUMENTS(&x));
  gpu_copy_out(found, x, sizeof found);
  expect(found[63], -10239, 0, "large_second", 63);
  gpu_free(x);
}

/* Threads of the host that launch at the same time. */
static void *launch_in_thread(void *argument) {
  enum { TIMES = 10 };
  gpu_select(0);
  for (int i = 0; i < TIMES; i++) {
    check_sums();
    check_votes();
  }
  return argument;
}

static void check_threads(void) {
  enum { THREADS = 3 };
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) NEED(pthread_create(&threads[i], NULL, launch_in_thread, NULL));
  for (int i = 0; i < THREADS; i++) NEED(pthread_join(threads[i], NULL));
}

static void check_variables(const char *text) {
  void *first = module, *second = gpu_module_of(text), *x = zeros(sizeof(int));
  int found;
  for (int i = 0; i < 3; i++) launch("count_calls", GPU_LINE(1, 1), GPU_ARGUMENTS(&x));
  module = second;
  launch("count_calls", GPU_LINE(1, 1), GPU_ARGUMENTS(&x));
  gpu_copy_out(&found, x, sizeof found);
  expect(found, 1, 0, "variables of another module", 0);
  module = first;
  launch("count_calls", GPU_LINE(1, 1), GPU_ARGUMENTS(&x));
  gpu_copy_out(&found, x, sizeof found);
  expect(found, 4, 0, "variables of a module", 0);
  gpu_free(x);
  gpu_unload(second);
}

char *kernel_text_whole(void) {
  size_t bytes = strlen(gpu_prologue) + 1;
  for (const char *const *part = kernel_text; *part; part++) bytes += strlen(*part);
  char *text = malloc(bytes);
  strcpy(text, gpu_prologue);
  for (const char *const *part = kernel_text; *part; part++) strcat(text, *part);
  return text;
}

void run_kernel_cases(sim_vendor vendor) {
  char *text = kernel_text_whole();
  gpu_open(vendor, 1);
  module = gpu_module_of(text);
  check_sums();
  check_empty();
  check_transpose();
  check_reverse();
  check_coordinates();
  check_struct();
  check_atomics();
  check_votes();
  check_shuffles();
  check_mathematics();
  check_histogram();
  check_large();
  check_threads();
  check_variables(text);
  gpu_unload(module);
  gpu_close();
  free(text);
}
