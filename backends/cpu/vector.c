/* SPDX-License-Identifier: Apache-2.0 */
/* The vector code of one instruction set. Compiled once for each, with CPU_VECTOR_TABLE the name of the table; the
 * compiler's own macros say which instructions there are. The parts are headers so that all of them are compiled with
 * the same options and only the table is visible outside. */
#include "vector.h"

#include <math.h>
#include <string.h>

#ifndef CPU_VECTOR_TABLE
#define CPU_VECTOR_TABLE cpu_vector_portable
#endif

#include "vector_types.h"

#include "vector_half.h"

#include "vector_cast.h"

#include "vector_arithmetic.h"

#include "vector_binary.h"

#include "vector_math.h"

#include "vector_unary.h"

#include "vector_gradient.h"

#include "vector_softmax.h"

#include "vector_random.h"

#include "vector_sum.h"

#include "vector_product.h"

#include "vector_conv.h"

#include "vector_pool.h"

#include "vector_transpose.h"

#include "vector_extreme.h"

#include "vector_order.h"

#include "vector_normalize.h"

#include "vector_update.h"

extern const cpu_vector_table CPU_VECTOR_TABLE;
const cpu_vector_table CPU_VECTOR_TABLE = {
    .arithmetic = arithmetic,
    .binary = binary,
    .choose = choose,
    .relu = relu,
    .unary = unary,
    .epilogue = epilogue,
    .activation_gradient = activation_gradient,
    .softmax = softmax,
    .cross_entropy = cross_entropy,
    .random_words = random_words,
    .random_uniform = random_uniform,
    .dropout = dropout,
    .cast = cast,
    .sum_rows = sum_rows,
    .sum_columns = sum_columns,
    .product = product,
    .add_rows = add_rows,
    .multiply_rows = multiply_rows,
    .max_pool = max_pool,
    .max_pool_grad = max_pool_grad,
    .average_pool = average_pool,
    .average_pool_grad = average_pool_grad,
    .transpose = transpose,
    .extreme_rows = extreme_rows,
    .extreme_columns = extreme_columns,
    .argmax_rows = argmax_rows,
    .argmax_columns = argmax_columns,
    .top_k = top_k,
    .count_above = count_above,
    .squares_row = squares_row,
    .squares_columns = squares_columns,
    .product_columns = product_columns,
    .affine = affine,
    .affine_gradient = affine_gradient,
    .layer_row = layer_row,
    .layer_sums = layer_sums,
    .layer_columns = layer_columns,
    .layer_gradient = layer_gradient,
    .update = update,
};
