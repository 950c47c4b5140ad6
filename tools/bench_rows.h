/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of `helio bench ops`. A row is one line of a table: an operation, the tensors that go into it, and how much
 * arithmetic that is. Rows whose tensors have the same shapes stand together as a family; a new row is a new line in
 * bench_elements.c, bench_network.c or bench_updates.c.
 *
 * Two rates are given for each row; which of them tells something depends on what bounds the operation.
 *
 * - GB/s: the bytes of every input and every result, each once, twice for what is read and written in place. That is
 *   the least that must be moved, whatever a kernel moves in fact. It is taken from the tensors of the call; a row
 *   only says what part of an input need not be touched.
 * - GFLOP/s: the arithmetic of the operation's definition, whatever a kernel computes in fact. Each of + − × ÷ √, a
 *   comparison, a choice, and each of exp, log, tanh, erf, cos, pow counts as 1; moving and converting as 0. What is
 *   done once for each row or channel is not counted. So exp counts as 1 for each element, sigmoid as 4, softmax as 4
 *   (− exp + ÷; the search for the largest only keeps exp in range), a matrix product as 2 for each a × b, a
 *   convolution as 2 N H W K K C F with the H and W of its result, Adam as 12 by its formula in helio/plugin.h, and a
 *   random word as 20 (Philox: ten rounds of two products, four exclusive-ors and two additions make four words). */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <helio/plugin.h>

#include "bench.h"

enum { BENCH_COLUMNS = 1024, BENCH_MAX_INPUTS = 8, BENCH_MAX_SCALARS = 8, BENCH_MAX_SIZES = 3 };

/* Square images of a row of convolution or pooling; padded so that the result has extent ÷ stride places. */
typedef struct bench_image {
  int extent, channels;
  int window, stride;
  int filters, groups; /* 0: pooling */
  helio_activation activation;
} bench_image;

/* (batch × rows × inner) by (batch × inner × columns); where a matrix is transposed it is square. */
typedef struct bench_product {
  int batch, rows, inner, columns;
} bench_product;

typedef struct bench_row {
  const char *operation;
  const char *variant; /* what sets it apart from the operation's other rows; stands before the shape */
  const char *inputs;  /* one letter each, see bench_tensor(); a capital: it is also written; '-': absent */
  double flops;        /* operations for each element that the family counts */

  /* How it is called: by a public function of one or two tensors, or else by name with what follows. */
  helio_tensor *(*one)(helio_tensor *x);
  helio_tensor *(*two)(helio_tensor *a, helio_tensor *b);
  const void *attributes;
  helio_scalar scalars[BENCH_MAX_SCALARS];
  int scalar_count;
  char result;         /* the letter of the shape to ask for, where the inputs do not tell it */
  helio_type type;     /* to ask for, likewise */
  uint32_t no_outputs; /* bit i: result i is not wanted */

  double untouched; /* part of the first input, and of each that is written, that need be neither read nor written */
  bool long_only;   /* not measured with --quick */
  bench_image image;
  bench_product product;
} bench_row;

/* BENCH_ATTRIBUTES(helio_axis_attributes, .axis = 1), BENCH_SCALARS(BENCH_REAL(0.5), BENCH_INTEGER(3)) */
#define BENCH_ATTRIBUTES(type, ...)                                                                                    \
  .attributes = &(type) {                                                                                              \
    .size = sizeof(type), __VA_ARGS__                                                                                  \
  }
#define BENCH_REAL(value)                                                                                              \
  { .real = (value) }
#define BENCH_INTEGER(value)                                                                                           \
  { .integer = (value) }
#define BENCH_SCALARS(...)                                                                                             \
  .scalars = {__VA_ARGS__}, .scalar_count = (int)(sizeof((helio_scalar[]){__VA_ARGS__}) / sizeof(helio_scalar))

/* A row in one size. */
typedef struct bench_case {
  char label[80];  /* "all of 64x1024" */
  double elements; /* for each of which the row's arithmetic is done */
  helio_tensor *inputs[BENCH_MAX_INPUTS];
  union {
    size_t size; /* 0: the row's own attributes */
    helio_conv2d_attributes conv2d;
    helio_pool_attributes pool;
  } attributes;
  helio_operation_options call; /* where it is called by name */
} bench_case;

/* Rows whose tensors have the same shapes. */
typedef struct bench_family {
  const bench_row *rows;      /* the last one has no operation */
  int sizes[BENCH_MAX_SIZES]; /* rows of a matrix or images of a batch, the smallest first; 0: there is none */
  int quick_sizes;            /* so many of them with --quick */

  /* The shape of the tensor of a letter. */
  helio_shape (*shape)(const bench_row *row, int size, char letter);

  /* Fills in label, elements and, if they depend on the row's image, attributes. */
  void (*describe)(const bench_row *row, int size, bench_case *one);
} bench_family;

extern const bench_family bench_elements, bench_products, bench_images, bench_layers, bench_random, bench_updates;

/* A family of matrices of `size` rows and BENCH_COLUMNS columns. */
helio_shape bench_matrix_shape(const bench_row *row, int size, char letter);
void bench_matrix_describe(const bench_row *row, int size, bench_case *one);

/* Contents by letter:
 *   c          bool, either way
 *   i          int32, each row's number once, in no order
 *   d          int32, every second row's number twice, in no order
 *   j          int32, every fourth row's number, ascending
 *   l          int32, a column's number
 *   w          uint8, a place in a window of 2 × 2
 *   n p r s    float32 from 0.5 to 1.5
 *   z          float32, zeros
 *   others     float32 from −1 to 1 */
helio_tensor *bench_tensor(char letter, helio_shape shape);

#endif
