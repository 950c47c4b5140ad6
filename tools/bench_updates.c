/* SPDX-License-Identifier: Apache-2.0 */
/* helio bench ops, random numbers and the updates of optimizers. Arithmetic is counted for each element of the matrix
 * of numbers or weights. */
#include "bench_rows.h"

#define WORDS   BENCH_INTEGER(1), BENCH_INTEGER(2), BENCH_INTEGER(0) /* key, step, base */
#define R(real) BENCH_REAL(real)

/* A word is 20 operations; a normal number needs two of them, a uniform one in float32 one. */
static const bench_row random_rows[] = {
    {"random_bits", "", "", .flops = 20, BENCH_SCALARS(WORDS), .result = 'a', .type = HELIO_INT32},
    {"random_uniform", "", "", .flops = 23, BENCH_SCALARS(WORDS, R(0), R(1)), .result = 'a', .type = HELIO_FLOAT32},
    {"random_normal", "", "", .flops = 50, BENCH_SCALARS(WORDS, R(0), R(1)), .result = 'a', .type = HELIO_FLOAT32},
    {"dropout", "", "a", .flops = 23, BENCH_SCALARS(WORDS, R(0.5))},
    {0},
};

const bench_family bench_random = {random_rows, {1, 64, 4096}, 2, bench_matrix_shape, bench_matrix_describe};

#define NESTEROV(on) BENCH_ATTRIBUTES(helio_sgd_attributes, .nesterov = on)

/* Weights, slots (zeros, as optimizers begin), gradient, indices, squares. "by rows": the gradient has every fourth
 * row. Plain descent and Adagrad then leave the other rows alone; Adam's moments fade there as well. "squares": they
 * are given, and are not counted as arithmetic. */
static const bench_row updates[] = {
    {"sgd_update", "", "A-b-", .flops = 2, NESTEROV(0), BENCH_SCALARS(R(0.01), R(0), R(0))},
    {"sgd_update", "by rows ", "A-qj", .flops = 0.5, NESTEROV(0), BENCH_SCALARS(R(0.01), R(0), R(0)),
     .untouched = 0.75},
    {"sgd_update", "momentum ", "AZb-", .flops = 4, NESTEROV(0), BENCH_SCALARS(R(0.01), R(0), R(0.9))},
    {"sgd_update", "Nesterov ", "AZb-", .flops = 6, NESTEROV(1), BENCH_SCALARS(R(0.01), R(0), R(0.9))},
    {"adam_update", "", "AZZb--", .flops = 12, BENCH_SCALARS(R(0.001), R(0), R(0.9), R(0.999), R(1e-7))},
    {"adam_update", "by rows ", "AZZqj-", .flops = 12, BENCH_SCALARS(R(0.001), R(0), R(0.9), R(0.999), R(1e-7))},
    {"adam_update", "by rows, squares ", "AZZqjs", .flops = 11.75,
     BENCH_SCALARS(R(0.001), R(0), R(0.9), R(0.999), R(1e-7))},
    {"adam_update", "decay ", "AZZb--", .flops = 14, BENCH_SCALARS(R(0.001), R(1e-4), R(0.9), R(0.999), R(1e-7))},
    {"nadam_update", "", "AZZb--", .flops = 16,
     BENCH_SCALARS(R(0.001), R(0), R(0.9), R(0.999), R(1e-7), R(0.9), R(0.1), R(1.001))},
    {"rmsprop_update", "", "AZ--b--", .flops = 9, BENCH_SCALARS(R(0.001), R(0), R(0.9), R(0), R(1e-3))},
    {"rmsprop_update", "centered, momentum ", "AZZZb--", .flops = 16,
     BENCH_SCALARS(R(0.001), R(0), R(0.9), R(0.9), R(1e-3))},
    {"adagrad_update", "", "AZb--", .flops = 7, BENCH_SCALARS(R(0.001), R(0), R(1e-7))},
    {"adagrad_update", "by rows ", "AZqj-", .flops = 1.75, BENCH_SCALARS(R(0.001), R(0), R(1e-7)), .untouched = 0.75},
    {"adagrad_update", "by rows, squares ", "AZqjs", .flops = 1.5, BENCH_SCALARS(R(0.001), R(0), R(1e-7)),
     .untouched = 0.75},
    {0},
};

const bench_family bench_updates = {updates, {4, 64, 4096}, 2, bench_matrix_shape, bench_matrix_describe};
