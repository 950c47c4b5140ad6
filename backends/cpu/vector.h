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
  CPU_DIV, /* this one and what follows: binary() */
  CPU_POW,
  CPU_MAXIMUM,
  CPU_MINIMUM,
  CPU_EQUAL, /* this one and what follows: bytes 0 and 1 */
  CPU_NOT_EQUAL,
  CPU_LESS,
  CPU_LESS_EQUAL,
  CPU_GREATER,
  CPU_GREATER_EQUAL,
  CPU_ARITHMETIC_COUNT,
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

typedef enum cpu_softmax {
  CPU_SOFTMAX,
  CPU_LOG_SOFTMAX,
  CPU_SOFTMAX_GRADIENT,
  CPU_LOG_SOFTMAX_GRADIENT,
} cpu_softmax;

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

/* What an optimizer does. Slots are in the order of the operation's arguments, those that are absent left out. */
typedef enum cpu_update_rule {
  CPU_UPDATE_SGD,
  CPU_UPDATE_SGD_MOMENTUM,
  CPU_UPDATE_SGD_NESTEROV,
  CPU_UPDATE_ADAM,
  CPU_UPDATE_NADAM,
  CPU_UPDATE_RMSPROP,
  CPU_UPDATE_RMSPROP_MEAN,
  CPU_UPDATE_RMSPROP_MOMENTUM,
  CPU_UPDATE_RMSPROP_BOTH,
  CPU_UPDATE_ADAGRAD,
} cpu_update_rule;

/* Weights and slots of a rule, at most. */
#define CPU_UPDATE_SLOTS 4

/* What a rule multiplies with. */
enum {
  CPU_UPDATE_RATE,
  CPU_UPDATE_DECAY,
  CPU_UPDATE_MOMENTUM,
  CPU_UPDATE_RHO,
  CPU_UPDATE_ON_FIRST,  /* 1 − beta1 */
  CPU_UPDATE_ON_SECOND, /* 1 − beta2, 1 − rho */
  CPU_UPDATE_EPSILON,
  CPU_UPDATE_ON_M,
  CPU_UPDATE_ON_GRADIENT,
  CPU_UPDATE_ON_V,
  CPU_UPDATE_CONSTANTS,
};

typedef struct cpu_vector_table {
  /* y = left ∘ right. Floats and 32 and 64 bit integers, which wrap. */
  void (*arithmetic)(cpu_arithmetic operation, cpu_form form, helio_type type, void *y, const void *left,
                     const void *right, size_t count);

  /* The other functions of two operands, which y must not lie on. Integers are divided towards zero, by zero gives 0;
   * POW is of floats only; comparisons are of all types. */
  void (*binary)(cpu_arithmetic operation, cpu_form form, helio_type type, void *y, const void *left, const void *right,
                 size_t count);

  /* y[i] = condition[i] ? left[i × left_step] : right[i × right_step], elements of 1, 2, 4 or 8 bytes. The steps are 0
   * or 1. y lies on no operand. */
  void (*choose)(size_t element, void *y, const void *left, size_t left_step, const void *right, size_t right_step,
                 const uint8_t *condition, size_t count);

  /* y = x where x > 0 or NaN, else 0. */
  void (*relu)(helio_type type, void *y, const void *x, size_t count);

  /* y = f(x), all floats; NEG, ABS, SQUARE and CLIP also 32 and 64 bit integers. There are always two parameters. */
  void (*unary)(cpu_unary operation, helio_type type, void *y, const void *x, size_t count, const double *parameters);

  /* What follows a matrix product or a convolution: y = activation(y + bias), in place, on a block of rows that are
   * `stride` elements apart. float32 and float64, not the halves; without an activation above RELU also 32 and 64 bit
   * integers. The activation is a helio_activation up to GELU_TANH, 0 for none; bias may be NULL. */
  void (*epilogue)(helio_type type, uint32_t activation, void *y, size_t stride, size_t rows, size_t columns,
                   const void *bias);

  /* dx = dy × the derivative, of all activations with v = y or x as helio_activation_attributes says. All floats;
   * LINEAR and RELU also 32 and 64 bit integers. alpha is that of ELU and LEAKY_RELU. */
  void (*activation_gradient)(uint32_t activation, helio_type type, void *dx, const void *dy, const void *v,
                              size_t count, double alpha);

  /* One row of at least one element, float32 or float64: y of a = x, or dx of a = dy and b = y. */
  void (*softmax)(cpu_softmax which, helio_type type, void *y, const void *a, const void *b, size_t count);

  /* The cross entropy of one row with its labels or, where these are NULL, with the one label; and, unless that is
   * NULL, its gradient by x. float32 or float64. */
  double (*cross_entropy)(helio_type type, void *gradient, const void *x, const void *labels, size_t label,
                          size_t count);

  /* Words of Philox 4×32-10, in plugin.h's numbering; uniform numbers low + u × range made of them; and dropout: 0
   * where u × 2²⁴ is below the limit, else x ÷ kept, all floats. */
  void (*random_words)(uint64_t key, uint64_t step, uint64_t from, uint32_t *words, size_t count);
  void (*random_uniform)(uint64_t key, uint64_t step, uint64_t from, float *y, size_t count, float low, float range);
  void (*dropout)(helio_type type, uint64_t key, uint64_t step, uint64_t from, int32_t limit, double kept, void *y,
                  const void *x, size_t count);

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

  /* y[i × y_stride + j] = x[j × x_stride + i] for all i < rows, j < columns, of elements of 1, 2, 4 or 8 bytes. */
  void (*transpose)(size_t element, void *y, size_t y_stride, const void *x, size_t x_stride, size_t rows,
                    size_t columns);

  /* As the sums, of the largest or smallest; NaN wins. best has x's type, or float32 for halves. */
  void (*extreme_rows)(bool largest, helio_type type, void *best, const void *x, size_t stride, size_t rows,
                       size_t columns);
  void (*extreme_columns)(bool largest, helio_type type, void *best, const void *x, size_t stride, size_t rows,
                          size_t columns);

  /* Places of the first of the largest, NaN being larger than all: of each row, or of each column. */
  void (*argmax_rows)(helio_type type, int64_t *places, const void *x, size_t stride, size_t rows, size_t columns);
  void (*argmax_columns)(helio_type type, int64_t *places, const void *x, size_t stride, size_t rows, size_t columns);

  /* The k largest of `count`, and how many are larger than the limit. */
  void (*top_k)(helio_type type, void *values, int32_t *places, const void *x, size_t count, size_t k);
  size_t (*count_above)(helio_type type, const void *x, size_t count, double limit);

  /* Normalization, of float32 and float64; totals are added to.
   * squares: sums of (x − mean)², of a row or of each column
   * product_columns: of each column the sums of dy × (x − mean) and of dy
   * affine: y = (x − mean) × scale + shift
   * affine_gradient: dx = (dy − shift − (x − mean) × on_x) × on_dy, whose lists are mean, on_dy, on_x, shift
   * layer_row: y = (x − mean) × inverse × gamma + beta
   * layer_sums: of gamma × dy and of gamma × dy × (x − mean)
   * layer_columns: to each element's totals dy × (x − mean) × inverse and dy
   * layer_gradient: as affine_gradient, of gamma × dy and one constant of each kind */
  double (*squares_row)(helio_type type, const void *x, size_t count, double mean);
  void (*squares_columns)(helio_type type, double *totals, const double *mean, const void *x, size_t stride,
                          size_t rows, size_t columns);
  void (*product_columns)(helio_type type, double *products, double *sums, const double *mean, const void *dy,
                          const void *x, size_t stride, size_t rows, size_t columns);
  void (*affine)(helio_type type, void *y, const void *x, const void *mean, const void *scale, const void *shift,
                 size_t count);
  void (*affine_gradient)(helio_type type, void *dx, const void *dy, const void *x, const void *const constants[4],
                          size_t count);
  void (*layer_row)(helio_type type, void *y, const void *x, const void *gamma, const void *beta, double mean,
                    double inverse, size_t count);
  void (*layer_sums)(helio_type type, double totals[2], const void *dy, const void *x, const void *gamma, double mean,
                     size_t count);
  void (*layer_columns)(helio_type type, double *products, double *sums, const void *dy, const void *x, double mean,
                        double inverse, size_t count);
  void (*layer_gradient)(helio_type type, void *dx, const void *dy, const void *x, const void *gamma,
                         const double constants[4], size_t count);

  /* An optimizer's step on weights and slots, float32 and float64; gradient NULL: zeros. squares are what stands for
   * the gradient's, NULL: its own. constants are as numbered above, and become the type once. */
  void (*update)(cpu_update_rule rule, helio_type type, void *const *state, const void *gradient, const void *squares,
                 const double *constants, size_t count);
} cpu_vector_table;

/* The table for an instruction set. NULL if this build has none. */
const cpu_vector_table *cpu_vector_for(cpu_isa isa);

/* Does this processor, and its operating system, have the instruction set? */
bool cpu_isa_usable(cpu_isa isa);
const char *cpu_isa_name(cpu_isa isa);

/* The best one there is; or, if `wanted` is not "auto", that one: false if it cannot be had. */
bool cpu_isa_choose(const char *wanted, cpu_isa *isa);

#endif
