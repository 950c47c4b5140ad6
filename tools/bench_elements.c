/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench ops, matrices: operations that move, combine or reduce elements. Arithmetic is counted for each element
 * of the matrix. */
#include "bench_rows.h"

/* fill has no input: the matrix only tells the shape. */
static helio_tensor *fill_alike(helio_tensor *x) {
  return helio_fill(helio_tensor_shape(x), 1.5);
}

#define BEGIN(row, column)   BENCH_ATTRIBUTES(helio_slice_attributes, .begin = {row, column})
#define AXIS(number)         BENCH_ATTRIBUTES(helio_axis_attributes, .axis = number)
#define AXES(bits)           BENCH_ATTRIBUTES(helio_reduce_attributes, .axes = bits)
#define ORDER(first, second) BENCH_ATTRIBUTES(helio_transpose_attributes, .permutation = {first, second})
#define GELU(rule)           BENCH_ATTRIBUTES(helio_gelu_attributes, .approximate = rule)
#define ACTIVATION(which)    BENCH_ATTRIBUTES(helio_activation_attributes, .activation = which)
#define TOP(number)          BENCH_ATTRIBUTES(helio_top_k_attributes, .k = number)

enum { ROWS = 1, COLUMNS = 2, ALL = ROWS | COLUMNS }; /* axes that are reduced */
enum { SQUARES = 4 };                                 /* a result of combine_rows */

static const bench_row rows[] = {
    /* making and moving */
    {"fill", "", "a", .flops = 0, .one = fill_alike, .untouched = 1},
    {"copy", "", "a", .flops = 0, .one = helio_copy},
    {"cast", "to float64 ", "a", .flops = 0, .type = HELIO_FLOAT64},
    {"cast", "to float16 ", "a", .flops = 0, .type = HELIO_FLOAT16},
    {"slice", "half of the columns of ", "a", .flops = 0, BEGIN(0, BENCH_COLUMNS / 4), .result = 'h', .untouched = 0.5},
    {"concat", "columns of two ", "ab", .flops = 0, AXIS(1)},
    {"transpose", "", "a", .flops = 0, ORDER(1, 0)},
    {"pad", "border of 1 around ", "a", .flops = 0, BEGIN(1, 1), BENCH_SCALARS(BENCH_REAL(0)), .result = 'u'},
    {"gather", "rows of ", "ai", .flops = 0, .two = helio_gather_rows},
    {"scatter_add", "rows of ", "ai", .flops = 1, .result = 'n'},
    {"combine_rows", "pairs of rows of ", "ad", .flops = 0.5, .no_outputs = SQUARES},
    {"combine_rows", "squares too, pairs of rows of ", "ad", .flops = 2},
    {"where", "", "abc", .flops = 1},
    {"one_hot", "", "l", .flops = 0, .result = 'r', .type = HELIO_FLOAT32},

    /* of two tensors */
    {"add", "", "ab", .flops = 1, .two = helio_add},
    {"add", "one row to ", "ar", .flops = 1, .two = helio_add},
    {"sub", "", "ab", .flops = 1, .two = helio_sub},
    {"mul", "", "ab", .flops = 1, .two = helio_mul},
    {"div", "", "ap", .flops = 1, .two = helio_div},
    {"pow", "", "pb", .flops = 1, .two = helio_pow},
    {"maximum", "", "ab", .flops = 1, .two = helio_maximum},
    {"minimum", "", "ab", .flops = 1, .two = helio_minimum},
    {"equal", "", "ab", .flops = 1, .two = helio_equal},
    {"not_equal", "", "ab", .flops = 1, .two = helio_not_equal},
    {"less", "", "ab", .flops = 1, .two = helio_less},
    {"less_equal", "", "ab", .flops = 1, .two = helio_less_equal},
    {"greater", "", "ab", .flops = 1, .two = helio_greater},
    {"greater_equal", "", "ab", .flops = 1, .two = helio_greater_equal},
    {"add_n", "four ", "abep", .flops = 3},

    /* of one tensor */
    {"neg", "", "a", .flops = 1, .one = helio_neg},
    {"abs", "", "a", .flops = 1, .one = helio_abs},
    {"square", "", "a", .flops = 1, .one = helio_square},
    {"sqrt", "", "p", .flops = 1, .one = helio_sqrt},
    {"rsqrt", "", "p", .flops = 2, .one = helio_rsqrt},
    {"exp", "", "a", .flops = 1, .one = helio_exp},
    {"log", "", "p", .flops = 1, .one = helio_log},
    {"clip", "", "a", .flops = 2, BENCH_SCALARS(BENCH_REAL(-0.5), BENCH_REAL(0.5))},
    {"relu", "", "a", .flops = 1, .one = helio_relu},
    {"sigmoid", "", "a", .flops = 4, .one = helio_sigmoid},
    {"tanh", "", "a", .flops = 1, .one = helio_tanh},
    {"softplus", "", "a", .flops = 3, .one = helio_softplus},
    {"swish", "", "a", .flops = 5, .one = helio_swish},
    {"gelu", "", "a", .flops = 5, GELU(0)},
    {"gelu", "approximate ", "a", .flops = 9, GELU(1)},
    {"elu", "", "a", .flops = 4, BENCH_SCALARS(BENCH_REAL(1))},
    {"leaky_relu", "", "a", .flops = 2, BENCH_SCALARS(BENCH_REAL(0.2))},
    {"activation_grad", "of relu ", "ab", .flops = 2, ACTIVATION(HELIO_RELU), BENCH_SCALARS(BENCH_REAL(0))},
    {"activation_grad", "of sigmoid ", "ap", .flops = 3, ACTIVATION(HELIO_SIGMOID), BENCH_SCALARS(BENCH_REAL(0))},
    {"activation_grad", "of gelu ", "ab", .flops = 11, ACTIVATION(HELIO_GELU), BENCH_SCALARS(BENCH_REAL(0))},

    /* over axes */
    {"sum", "all of ", "a", .flops = 1, AXES(ALL)},
    {"sum", "rows of ", "a", .flops = 1, AXES(ROWS)},
    {"sum", "columns of ", "a", .flops = 1, AXES(COLUMNS)},
    {"mean", "rows of ", "a", .flops = 1, AXES(ROWS)},
    {"mean", "columns of ", "a", .flops = 1, AXES(COLUMNS)},
    {"max", "all of ", "a", .flops = 1, AXES(ALL)},
    {"max", "rows of ", "a", .flops = 1, AXES(ROWS)},
    {"max", "columns of ", "a", .flops = 1, AXES(COLUMNS)},
    {"min", "columns of ", "a", .flops = 1, AXES(COLUMNS)},
    {"argmax", "columns of ", "a", .flops = 1, AXIS(1)},
    {"top_k", "10 of ", "a", .flops = 1, .result = 't'},
    {"in_top_k", "5 of ", "al", .flops = 1, TOP(5)},
    {0},
};

const bench_family bench_elements = {rows, {1, 64, 4096}, 2, bench_matrix_shape, bench_matrix_describe};
