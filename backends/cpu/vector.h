/* SPDX-License-Identifier: Apache-2.0 */
/* The vector code: one source, vector.c, compiled for each instruction set into a table of functions. All functions
 * work on the calling thread. Pointers need only the alignment of their elements; the target may be one of the sources,
 * but must not overlap one in part. */
#ifndef CPU_VECTOR_H
#define CPU_VECTOR_H

#include <helio/types.h>

typedef enum cpu_isa {
  CPU_ISA_PORTABLE,
  CPU_ISA_AVX2,
  CPU_ISA_AVX512,
} cpu_isa;

typedef enum cpu_arithmetic {
  CPU_ADD,
  CPU_SUB,
  CPU_MUL,
} cpu_arithmetic;

/* Which operands have as many elements as the result, and which only one. */
typedef enum cpu_form {
  CPU_FORM_BOTH,
  CPU_FORM_RIGHT_ONE,
  CPU_FORM_LEFT_ONE,
} cpu_form;

/* Functions of one operand. With parameters: CLIP (low, high), ELU and LEAKY_RELU (alpha). */
typedef enum cpu_unary {
  CPU_NEG,
  CPU_ABS,
  CPU_SQUARE,
  CPU_SQRT,
  CPU_RSQRT,
  CPU_EXP,
  CPU_LOG,
  CPU_CLIP,
  CPU_SIGMOID,
  CPU_TANH,
  CPU_SOFTPLUS,
  CPU_SWISH,
  CPU_GELU,
  CPU_GELU_TANH,
  CPU_ELU,
  CPU_LEAKY_RELU,
  CPU_UNARY_COUNT,
} cpu_unary;

/* A matrix product c = a × b, or c += a × b, row-major. Rows of c are `c_stride` elements apart, likewise a and b as
 * they are stored: a transposed operand is stored with its axes swapped. */
typedef struct cpu_product {
  bool transpose_a, transpose_b;
  size_t m, n, k;
  const void *a, *b;
  void *c;
  size_t a_stride, b_stride, c_stride;
  bool accumulate; /* add to what c holds */
} cpu_product;

/* Products of rows: y[r × y_stride + i] += a[r × a_stride + i] × b[r × b_stride + i]. A stride of 0 takes one row again
 * and again: y's or b's. */
typedef struct cpu_row_product {
  size_t rows, columns;
  void *y;
  const void *a, *b;
  size_t y_stride, a_stride, b_stride;
} cpu_row_product;

/* Neighbouring windows of one row of a pooling, all cut by the padding alike. Steps are counted in elements; columns of
 * a window are `channels` apart. */
typedef struct cpu_pool_row {
  size_t positions, channels;
  size_t rows, columns;           /* of a window, without the padding, at least 1 */
  size_t row_step, position_step; /* from one row to the next, from one window to the next */
  uint32_t first, places;         /* the number of the first element of these, and how many a whole row has */
  helio_type winner_type;         /* uint8 or int32 */
  void *x;                        /* the first element of the first window */
  void *y;
  void *winners; /* numbers of elements within the window, row by row; may be NULL for max_pool */
} cpu_pool_row;

typedef struct cpu_vector_table {
  /* y = left ∘ right. Floats and 32 and 64 bit integers, which wrap. */
  void (*arithmetic)(cpu_arithmetic operation, cpu_form form, helio_type type, void *y, const void *left,
                     const void *right, size_t count);

  /* y = x where x > 0 or NaN, else 0. */
  void (*relu)(helio_type type, void *y, const void *x, size_t count);

  /* y = f(x), all floats; NEG, ABS, SQUARE and CLIP also 32 and 64 bit integers. There are always two parameters. */
  void (*unary)(cpu_unary operation, helio_type type, void *y, const void *x, size_t count, const double *parameters);

  /* What follows a matrix product or a convolution: y = activation(y + bias), in place, on a block of rows that are
   * `stride` elements apart. float32 and float64, not the halves; without an activation above RELU also 32 and 64 bit
   * integers. The activation is a helio_activation up to GELU_TANH, 0 for none; bias may be NULL. */
  void (*epilogue)(helio_type type, uint32_t activation, void *y, size_t stride, size_t rows, size_t columns,
                   const void *bias);

  /* All pairs of types. Floats become integers by truncation, out of range the nearest integer, NaN 0; integers wrap.
   */
  void (*cast)(helio_type to, helio_type from, void *y, const void *x, size_t count);

  /* Sums are kept in double for floats and in 64 bit integers, which wrap, for integers; cast() narrows them.
   * rows:    totals[i] += sum of x[i × stride + 0 … columns - 1]
   * columns: totals[i] += sum over r of x[r × stride + i] */
  void (*sum_rows)(helio_type type, void *totals, const void *x, size_t stride, size_t rows, size_t columns);
  void (*sum_columns)(helio_type type, void *totals, const void *x, size_t stride, size_t rows, size_t columns);

  /* Matrix product in float32, float64, int32, int64: for integers, and where there is no BLAS. */
  void (*product)(helio_type type, const cpu_product *product);

  /* For convolutions, in float32 and float64. add_rows: y[r × y_stride + i] += x[r × x_stride + i], row after row. */
  void (*add_rows)(helio_type type, void *y, size_t y_stride, const void *x, size_t x_stride, size_t rows,
                   size_t columns);
  void (*multiply_rows)(helio_type type, const cpu_row_product *product);

  /* Pooling, in float32 and float64. The gradients add to x. max_pool_grad leaves winners out that lie outside their
   * windows and tells the number of the first of them; SIZE_MAX if there is none. */
  void (*max_pool)(helio_type type, const cpu_pool_row *row);
  size_t (*max_pool_grad)(helio_type type, const cpu_pool_row *row);
  void (*average_pool)(helio_type type, const cpu_pool_row *row);
  void (*average_pool_grad)(helio_type type, const cpu_pool_row *row);
} cpu_vector_table;

/* The table for an instruction set. NULL if this build has none. */
const cpu_vector_table *cpu_vector_for(cpu_isa isa);

/* Does this processor, and its operating system, have the instruction set? */
bool cpu_isa_usable(cpu_isa isa);
const char *cpu_isa_name(cpu_isa isa);

/* The best one there is; or, if `wanted` is not "auto", that one: false if it cannot be had. */
bool cpu_isa_choose(const char *wanted, cpu_isa *isa);

#endif
