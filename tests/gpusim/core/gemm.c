/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices: blocks that fit the cache, and within them sums of four rows by eight columns in registers. */
#include "library.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, COLUMNS = 8, DEPTH = 256, WIDTH = 48 };

/* Four numbers that the compiler may handle at once. */
typedef double lanes __attribute__((vector_size(32), aligned(8), may_alias));

/* sum[row][column] += a[i][row] * b[i][column] over i, for packed blocks. Written out, because the sums stay in
 * registers only then. */
static inline __attribute__((always_inline)) void multiply_block(size_t depth, const double *a, const double *b,
                                                                 double *sum) {
  lanes *s = (lanes *)sum;
  lanes s00 = s[0], s01 = s[1], s10 = s[2], s11 = s[3], s20 = s[4], s21 = s[5], s30 = s[6], s31 = s[7];
  for (size_t i = 0; i < depth; i++, a += ROWS, b += COLUMNS) {
    lanes left = *(const lanes *)b, right = *(const lanes *)(b + 4);
    s00 += a[0] * left;
    s01 += a[0] * right;
    s10 += a[1] * left;
    s11 += a[1] * right;
    s20 += a[2] * left;
    s21 += a[2] * right;
    s30 += a[3] * left;
    s31 += a[3] * right;
  }
  s[0] = s00, s[1] = s01, s[2] = s10, s[3] = s11, s[4] = s20, s[5] = s21, s[6] = s30, s[7] = s31;
}

static void multiply_block_plain(size_t depth, const double *a, const double *b, double *sum) {
  multiply_block(depth, a, b, sum);
}

#if defined __x86_64__
__attribute__((target("avx2,fma"))) static void multiply_block_avx2(size_t depth, const double *a, const double *b,
                                                                    double *sum) {
  multiply_block(depth, a, b, sum);
}
#endif

typedef void block_function(size_t depth, const double *a, const double *b, double *sum);

static block_function *choose_block(void) {
#if defined __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_block_avx2;
#endif
  return multiply_block_plain;
}

/* `width` columns by `depth` rows of a matrix as [depth][group]; what is missing to a group is zero. */
static void pack(sim_matrix from, size_t width, size_t depth, size_t group, double *to) {
  for (size_t i = 0; i < depth; i++, to += group)
    for (size_t k = 0; k < group; k++) to[k] = k < width ? from.data[i * from.row + k * from.column] : 0;
}

static size_t at_most(size_t value, size_t limit) {
  return value < limit ? value : limit;
}

/* One block of columns and one block of the inner dimension. */
typedef struct gemm_block {
  size_t m, width, depth;
  sim_matrix a; /* transposed: [depth][m] */
  const double *b;
  double *c;
  size_t c_row;
} gemm_block;

static void multiply_rows(const gemm_block *block, block_function *multiply) {
  double left[DEPTH * ROWS];
  for (size_t row = 0; row < block->m; row += ROWS) {
    size_t rows = at_most(block->m - row, ROWS);
    sim_matrix a = block->a;
    a.data += row * a.column;
    pack(a, rows, block->depth, ROWS, left);
    for (size_t column = 0; column < block->width; column += COLUMNS) {
      double sum[ROWS * COLUMNS] = {0};
      multiply(block->depth, left, block->b + column * block->depth, sum);
      size_t columns = at_most(block->width - column, COLUMNS);
      for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++) block->c[(row + i) * block->c_row + column + k] += sum[i * COLUMNS + k];
    }
  }
}

void sim_multiply(size_t m, size_t n, size_t k, sim_matrix a, sim_matrix b, double *c, size_t c_row) {
  block_function *multiply = choose_block();
  double *right = sim_numbers((size_t)DEPTH * WIDTH);
  for (size_t depth = 0; depth < k; depth += DEPTH)
    for (size_t column = 0; column < n; column += WIDTH) {
      gemm_block block = {.m = m,
                          .width = at_most(n - column, WIDTH),
                          .depth = at_most(k - depth, DEPTH),
                          .a = {a.data + depth * a.column, a.column, a.row},
                          .b = right,
                          .c = c + column,
                          .c_row = c_row};
      for (size_t i = 0; i < block.width; i += COLUMNS) {
        sim_matrix from = {b.data + depth * b.row + (column + i) * b.column, b.row, b.column};
        pack(from, at_most(block.width - i, COLUMNS), block.depth, COLUMNS, right + i * block.depth);
      }
      multiply_rows(&block, multiply);
    }
  free(right);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The call: column-major matrices, one or a batch
 */

enum { A, B, C, D };

typedef struct gemm_task {
  sim_task task;
  sim_gemm call;
} gemm_task;

/* Rows and columns of an operand as it is used, that is after it was transposed. */
static sim_tensor matrix(sim_type type, int rows, int columns, int leading, bool transposed) {
  return (sim_tensor){type, {1, 1, rows, columns}, {0, 0, transposed ? leading : 1, transposed ? 1 : leading}};
}

static const char *member(const void *first, int64_t stride, int index, sim_type type) {
  return (const char *)first + stride * index * (int64_t)sim_type_bytes(type);
}

static void compute_member(const sim_gemm *call, void *const *twins, int index) {
  sim_tensor a = matrix(call->type_a, call->m, call->k, call->lda, call->transpose_a);
  sim_tensor b = matrix(call->type_b, call->k, call->n, call->ldb, call->transpose_b);
  sim_tensor c = matrix(call->type_c, call->m, call->n, call->ldc, false);
  sim_tensor d = matrix(call->type_c, call->m, call->n, call->ldd, false);
  size_t m = (size_t)call->m, n = (size_t)call->n, k = (size_t)call->k;
  double *sum = sim_numbers(m * n);
  if (k && call->alpha != 0) {
    double *left = sim_gather(&a, member(twins[A], call->stride_a, index, call->type_a), call->rounding);
    double *right = sim_gather(&b, member(twins[B], call->stride_b, index, call->type_b), call->rounding);
    sim_multiply(m, n, k, (sim_matrix){left, k, 1}, (sim_matrix){right, n, 1}, sum, n);
    free(left);
    free(right);
  }
  for (size_t i = 0; i < m * n; i++) sum[i] *= call->alpha;
  if (call->beta != 0) {
    double *old = sim_gather(&c, member(twins[C], call->stride_c, index, call->type_c), SIM_EXACT);
    for (size_t i = 0; i < m * n; i++) sum[i] += call->beta * old[i];
    free(old);
  }
  sim_scatter(&d, (char *)member(twins[D], call->stride_d, index, call->type_c), sum, 1, 0, call->wobble);
  free(sum);
}

static void compute(sim_task *task) {
  const sim_gemm *call = &((gemm_task *)task)->call;
  for (int i = 0; i < call->batch; i++) compute_member(call, task->twins, i);
}

static sim_operand operand(const char *what, const void *address, sim_tensor tensor, int64_t stride, int batch) {
  size_t element = sim_type_bytes(tensor.type), members = stride ? (size_t)batch : 1, bytes = 0;
  if (sim_tensor_count(&tensor)) {
    size_t last = stride < 0 && batch > 1 ? SIZE_MAX : sim_times(sim_times((size_t)stride, (size_t)batch - 1), element);
    bytes = sim_tensor_bytes(&tensor);
    bytes = last > SIZE_MAX - bytes ? SIZE_MAX : last + bytes;
  }
  return (sim_operand){.what = what,
                       .address = address,
                       .bytes = bytes,
                       .alignment = element,
                       .has_gaps = members * sim_tensor_count(&tensor) * element != bytes};
}

/* Of a workspace: what a product needs nobody says. */
enum { SCRATCH = 64 << 10 };

sim_status sim_gemm_queue(const sim_place *place, const sim_gemm *call) {
  if (!call->m || !call->n || !call->batch) return SIM_OK;
  /* Results that overlap are a violation, which the face has told; any number of them would fit into any memory. */
  if (call->batch > 1 && call->stride_d < (int64_t)call->ldd * (call->n - 1) + call->m) return SIM_INVALID_VALUE;
  gemm_task *task = (gemm_task *)sim_task_new(sizeof *task, place->name, place->device, compute);
  task->call = *call;
  task->task.handle = call->handle;
  task->task.numbers = sim_times((size_t)call->m, (size_t)call->n);
  bool product = call->k && call->alpha != 0; /* else a and b are not looked at */
  sim_tensor a = matrix(call->type_a, call->m, product ? call->k : 0, call->lda, call->transpose_a);
  sim_tensor b = matrix(call->type_b, product ? call->k : 0, call->n, call->ldb, call->transpose_b);
  sim_tensor c = matrix(call->type_c, call->beta != 0 ? call->m : 0, call->n, call->ldc, false);
  sim_tensor d = matrix(call->type_c, call->m, call->n, call->ldd, false);
  sim_task_add(&task->task, operand("A", call->a, a, call->stride_a, call->batch));
  sim_task_add(&task->task, operand("B", call->b, b, call->stride_b, call->batch));
  sim_task_add(&task->task, operand("C", call->c, c, call->stride_c, call->batch));
  sim_operand result = operand("D", call->d, d, call->stride_d, call->batch);
  result.written = true;
  result.with = C + 1;
  if (call->c == call->d) result.what = "C";
  sim_task_add(&task->task, result);
  sim_task_add(&task->task, (sim_operand){.what = "the workspace",
                                          .address = call->workspace,
                                          .bytes = call->workspace ? call->workspace_bytes : 0,
                                          .written = true,
                                          .scratch = SCRATCH});
  return sim_task_queue(&task->task, place->stream);
}
