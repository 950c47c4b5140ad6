/* SPDX-License-Identifier: Apache-2.0 */
/* The calls whose gradients are checked: for each row that has one, its attributes and shapes in their variants. */
#include "conformance.h"

/* clang-format off */
#define ABSENT {-1, {0}}

#define ONE(symbol, ...)   {.operation = HELIO_OP_##symbol, .input_count = 1, .inputs = {SHAPE(5, 7)}, __VA_ARGS__}
#define TWO(symbol, ...)   {.operation = HELIO_OP_##symbol, .input_count = 2, __VA_ARGS__}
#define PAIRS(symbol, ...)                                            \
  TWO(symbol, .inputs = {SHAPE(3, 5), SHAPE(3, 5)}, __VA_ARGS__),     \
  TWO(symbol, .inputs = {SHAPE(3, 5), SHAPE(5)}, __VA_ARGS__),        \
  TWO(symbol, .inputs = {NO_AXES, SHAPE(2, 3)}, __VA_ARGS__),         \
  TWO(symbol, .inputs = {SHAPE(2, 1, 3), SHAPE(4, 1)}, __VA_ARGS__),  \
  TWO(symbol, .inputs = {SHAPE(0, 3), SHAPE(3)}, __VA_ARGS__)

#define AXES(...)       .attributes.reduce = {.size = sizeof(helio_reduce_attributes), .axes = __VA_ARGS__}
#define AXIS(...)       .attributes.axis = {.size = sizeof(helio_axis_attributes), .axis = __VA_ARGS__}
#define BEGIN(...)      .attributes.slice = {.size = sizeof(helio_slice_attributes), .begin = {__VA_ARGS__}}
#define PERMUTED(...)   .attributes.transpose = {.size = sizeof(helio_transpose_attributes), .permutation = {__VA_ARGS__}}
#define PRODUCT(a, b, f) .attributes.matmul = {.size = sizeof(helio_matmul_attributes), .transpose_a = a, .transpose_b = b, .activation = f}
#define APPROXIMATE(...) .attributes.gelu = {.size = sizeof(helio_gelu_attributes), .approximate = __VA_ARGS__}
#define CONVOLVED(...)  .attributes.conv2d = {.size = sizeof(helio_conv2d_attributes), __VA_ARGS__}
#define POOLED(...)     .attributes.pool = {.size = sizeof(helio_pool_attributes), __VA_ARGS__}

#define REDUCED(symbol)                                                                                  \
  {.operation = HELIO_OP_##symbol, .input_count = 1, .inputs = {SHAPE(3, 4, 5)}, AXES(2)},               \
  {.operation = HELIO_OP_##symbol, .input_count = 1, .inputs = {SHAPE(3, 4, 5)}, AXES(5)},               \
  {.operation = HELIO_OP_##symbol, .input_count = 1, .inputs = {SHAPE(3, 4, 5)}, AXES(6), .keep_dims = true}, \
  {.operation = HELIO_OP_##symbol, .input_count = 1, .inputs = {SHAPE(13)}, AXES(1)},                    \
  {.operation = HELIO_OP_##symbol, .input_count = 1, .inputs = {SHAPE(3, 4)}, AXES(0)},                  \
  {.operation = HELIO_OP_##symbol, .input_count = 1, .inputs = {NO_AXES}, AXES(0)},                      \
  {.operation = HELIO_OP_##symbol, .input_count = 1, .inputs = {SHAPE(0, 5)}, AXES(2)},                  \
  {.operation = HELIO_OP_##symbol, .input_count = 1, .inputs = {SHAPE(3, 0)}, AXES(1)}

#define MULTIPLIED(a, b, ...) {.operation = HELIO_OP_MATMUL, .input_count = 3, PRODUCT(a, b, 0), .inputs = {__VA_ARGS__}}
#define ACTIVATED(f) {.operation = HELIO_OP_MATMUL, .input_count = 3, PRODUCT(0, 0, f), .inputs = {SHAPE(3, 4), SHAPE(4, 5), SHAPE(5)}, .low = -1, .high = 1}

const recipe recipes[] = {
  ONE(COPY, .wanted = SHAPE(5, 7)),
  ONE(ALL_REDUCE, .wanted = SHAPE(5, 7)),
  ONE(CAST, .wanted_type = HELIO_FLOAT64),
  ONE(RESHAPE, .wanted = SHAPE(7, 5)),
  ONE(EXPAND_DIMS, .wanted = SHAPE(5, 1, 7)),
  {.operation = HELIO_OP_SQUEEZE, .input_count = 1, .inputs = {SHAPE(5, 1, 7)}, .wanted = SHAPE(5, 7)},
  ONE(SLICE, BEGIN(1, 2), .wanted = SHAPE(3, 4)),
  ONE(SLICE, BEGIN(2, 0), .wanted = SHAPE(2, 7)),
  {.operation = HELIO_OP_CONCAT, .input_count = 3, .inputs = {SHAPE(2, 3), SHAPE(2, 1), SHAPE(2, 4)}, AXIS(1)},
  {.operation = HELIO_OP_CONCAT, .input_count = 2, .inputs = {SHAPE(2, 3), SHAPE(4, 3)}, AXIS(0)},
  {.operation = HELIO_OP_CONCAT, .input_count = 1, .inputs = {SHAPE(2, 3)}, AXIS(0)},
  PAIRS(ADD, .low = -2, .high = 2),
  PAIRS(SUB, .low = -2, .high = 2),
  PAIRS(MUL, .low = -2, .high = 2),
  PAIRS(DIV, .low = 0.5, .high = 2),
  PAIRS(POW, .low = 0.5, .high = 2),
  PAIRS(MAXIMUM, .low = -2, .high = 2),
  PAIRS(MINIMUM, .low = -2, .high = 2),
  {.operation = HELIO_OP_ADD_N, .input_count = 3, .inputs = {SHAPE(5), SHAPE(5), SHAPE(5)}},
  REDUCED(SUM),
  REDUCED(MEAN),
  REDUCED(MAX),
  REDUCED(MIN),
  MULTIPLIED(0, 0, SHAPE(3, 4), SHAPE(4, 5), ABSENT),
  MULTIPLIED(0, 0, SHAPE(3, 4), SHAPE(4, 5), SHAPE(5)),
  MULTIPLIED(1, 0, SHAPE(4, 3), SHAPE(4, 5), SHAPE(5)),
  MULTIPLIED(0, 1, SHAPE(3, 4), SHAPE(5, 4), SHAPE(5)),
  MULTIPLIED(1, 1, SHAPE(4, 3), SHAPE(5, 4), ABSENT),
  MULTIPLIED(0, 0, SHAPE(2, 3, 4), SHAPE(4, 5), SHAPE(5)),
  MULTIPLIED(1, 0, SHAPE(2, 4, 3), SHAPE(4, 5), SHAPE(5)),
  MULTIPLIED(0, 1, SHAPE(2, 3, 4), SHAPE(5, 4), ABSENT),
  MULTIPLIED(1, 1, SHAPE(2, 4, 3), SHAPE(5, 4), ABSENT),
  MULTIPLIED(0, 0, SHAPE(3, 4), SHAPE(2, 4, 5), SHAPE(5)),
  MULTIPLIED(0, 0, SHAPE(2, 1, 2, 3), SHAPE(3, 3, 2), SHAPE(2)),
  MULTIPLIED(1, 1, SHAPE(2, 3, 2), SHAPE(2, 2, 3), ABSENT),
  MULTIPLIED(0, 0, SHAPE(2, 3, 0), SHAPE(0, 5), SHAPE(5)),
  MULTIPLIED(0, 0, SHAPE(0, 3, 4), SHAPE(4, 5), SHAPE(5)),
  MULTIPLIED(0, 1, SHAPE(0, 4), SHAPE(5, 4), SHAPE(5)),
  ACTIVATED(HELIO_LINEAR),
  {.operation = HELIO_OP_MATMUL, .input_count = 3, PRODUCT(0, 0, HELIO_RELU), .inputs = {SHAPE(2, 3), SHAPE(3, 2), SHAPE(2)}},
  ACTIVATED(HELIO_SIGMOID),
  ACTIVATED(HELIO_TANH),
  ONE(RELU, .low = -2, .high = 2),
  {.operation = HELIO_OP_TRANSPOSE, .input_count = 1, .inputs = {SHAPE(3, 4)}, PERMUTED(1, 0)},
  {.operation = HELIO_OP_TRANSPOSE, .input_count = 1, .inputs = {SHAPE(2, 3, 4)}, PERMUTED(2, 0, 1)},
  {.operation = HELIO_OP_TRANSPOSE, .input_count = 1, .inputs = {SHAPE(5)}, PERMUTED(0)},
  ONE(PAD, BEGIN(1, 2), .wanted = SHAPE(0, 1), .scalars = {3}),
  TWO(GATHER, .inputs = {SHAPE(7, 3), SHAPE(5)}, .below = 7),
  TWO(GATHER, .inputs = {SHAPE(4, 2, 3), SHAPE(2, 3)}, .below = 4),
  TWO(GATHER, .inputs = {SHAPE(4), NO_AXES}, .below = 4),
  TWO(GATHER, .inputs = {SHAPE(4, 3), SHAPE(0)}, .below = 4),
  TWO(SCATTER_ADD, .inputs = {SHAPE(5, 3), SHAPE(5)}, .below = 4, .wanted = SHAPE(4)),
  {.operation = HELIO_OP_WHERE, .input_count = 3, .inputs = {SHAPE(3, 5), SHAPE(3, 5), SHAPE(3, 5)}},
  {.operation = HELIO_OP_WHERE, .input_count = 3, .inputs = {SHAPE(5), SHAPE(3, 1), SHAPE(2, 1, 1)}},
  {.operation = HELIO_OP_WHERE, .input_count = 3, .inputs = {NO_AXES, NO_AXES, SHAPE(3, 5)}},
  ONE(NEG, .low = -2, .high = 2),
  ONE(ABS, .low = -2, .high = 2),
  ONE(SQUARE, .low = -2, .high = 2),
  ONE(SQRT, .low = 0.5, .high = 2),
  ONE(RSQRT, .low = 0.5, .high = 2),
  ONE(EXP, .low = -2, .high = 2),
  ONE(LOG, .low = 0.5, .high = 2),
  ONE(CLIP, .low = -2, .high = 2, .scalars = {-0.7777, 1.1111}),
  ONE(SIGMOID, .low = -2, .high = 2),
  ONE(TANH, .low = -2, .high = 2),
  ONE(SOFTPLUS, .low = -2, .high = 2),
  ONE(SWISH, .low = -2, .high = 2),
  ONE(GELU, APPROXIMATE(0)),
  ONE(GELU, APPROXIMATE(1)),
  ONE(ELU, .low = -2, .high = 2, .scalars = {1}),
  ONE(ELU, .low = -2, .high = 2, .scalars = {0.3}),
  ONE(LEAKY_RELU, .low = -2, .high = 2, .scalars = {0.2}),
  {.operation = HELIO_OP_CONV2D, .input_count = 3, .inputs = {SHAPE(2, 4, 5, 2), SHAPE(3, 3, 2, 3), SHAPE(3)},
   CONVOLVED(.stride = {1, 1}, .dilation = {1, 1}, .padding = {1, 1, 1, 1}, .groups = 1)},
  {.operation = HELIO_OP_CONV2D, .input_count = 3, .inputs = {SHAPE(1, 5, 6, 2), SHAPE(2, 3, 2, 2), ABSENT},
   CONVOLVED(.stride = {2, 1}, .dilation = {1, 2}, .padding = {0, 1, 2, 0}, .groups = 1)},
  {.operation = HELIO_OP_CONV2D, .input_count = 3, .inputs = {SHAPE(1, 4, 4, 4), SHAPE(3, 2, 2, 6), SHAPE(6)},
   CONVOLVED(.stride = {1, 1}, .dilation = {1, 1}, .padding = {1, 0, 0, 0}, .groups = 2, .activation = HELIO_TANH)},
  {.operation = HELIO_OP_CONV2D, .input_count = 3, .inputs = {SHAPE(1, 4, 4, 3), SHAPE(2, 2, 1, 3), SHAPE(3)},
   CONVOLVED(.stride = {1, 1}, .dilation = {1, 1}, .groups = 3, .activation = HELIO_SIGMOID)},
  {.operation = HELIO_OP_CONV2D, .input_count = 3, .inputs = {SHAPE(0, 4, 4, 3), SHAPE(2, 2, 3, 3), SHAPE(3)},
   CONVOLVED(.stride = {1, 1}, .dilation = {1, 1}, .groups = 1)},
  {.operation = HELIO_OP_MAX_POOL, .input_count = 1, .inputs = {SHAPE(2, 5, 4, 2)},
   POOLED(.window = {2, 2}, .stride = {2, 2}, .padding = {0, 1, 0, 0})},
  {.operation = HELIO_OP_MAX_POOL, .input_count = 1, .inputs = {SHAPE(1, 5, 5, 2)},
   POOLED(.window = {3, 3}, .stride = {1, 2}, .padding = {1, 1, 1, 1})},
  {.operation = HELIO_OP_AVERAGE_POOL, .input_count = 1, .inputs = {SHAPE(2, 5, 4, 2)},
   POOLED(.window = {2, 2}, .stride = {2, 2}, .padding = {0, 1, 0, 0})},
  {.operation = HELIO_OP_AVERAGE_POOL, .input_count = 1, .inputs = {SHAPE(1, 5, 5, 2)},
   POOLED(.window = {3, 3}, .stride = {1, 2}, .padding = {1, 1, 1, 1})},
  ONE(SOFTMAX, .low = -2, .high = 2),
  ONE(LOG_SOFTMAX, .low = -2, .high = 2),
  {.operation = HELIO_OP_SOFTMAX, .input_count = 1, .inputs = {SHAPE(2, 3, 4)}},
  TWO(SPARSE_CROSS_ENTROPY, .inputs = {SHAPE(5, 7), SHAPE(5)}, .below = 7),
  TWO(CROSS_ENTROPY, .inputs = {SHAPE(5, 7), SHAPE(5, 7)}, .constant = 2),
  {.operation = HELIO_OP_MOMENTS, .input_count = 1, .inputs = {SHAPE(7, 3)}},
  {.operation = HELIO_OP_MOMENTS, .input_count = 1, .inputs = {SHAPE(2, 3, 2, 3)}},
  {.operation = HELIO_OP_MOMENTS, .input_count = 1, .inputs = {SHAPE(5, 0)}},
  {.operation = HELIO_OP_NORMALIZE, .input_count = 5, .low = 0.5, .high = 2, .scalars = {1e-3},
   .inputs = {SHAPE(2, 3, 4), SHAPE(4), SHAPE(4), SHAPE(4), SHAPE(4)}},
  {.operation = HELIO_OP_NORMALIZE, .input_count = 5, .low = 0.5, .high = 2, .scalars = {1e-3},
   .inputs = {SHAPE(6, 4), SHAPE(4), SHAPE(4), ABSENT, SHAPE(4)}},
  {.operation = HELIO_OP_NORMALIZE, .input_count = 5, .low = 0.5, .high = 2, .scalars = {1e-3},
   .inputs = {SHAPE(6, 4), SHAPE(4), SHAPE(4), SHAPE(4), ABSENT}},
  {.operation = HELIO_OP_LAYER_NORM, .input_count = 3, .scalars = {1e-3}, .inputs = {SHAPE(5, 7), SHAPE(7), SHAPE(7)}},
  {.operation = HELIO_OP_LAYER_NORM, .input_count = 3, .scalars = {1e-3}, .inputs = {SHAPE(2, 3, 5), ABSENT, SHAPE(5)}},
  {.operation = HELIO_OP_LAYER_NORM, .input_count = 3, .scalars = {1e-3}, .inputs = {SHAPE(5, 7), SHAPE(7), ABSENT}},
  {.operation = HELIO_OP_LAYER_NORM, .input_count = 3, .scalars = {1e-3}, .inputs = {SHAPE(5, 7), ABSENT, ABSENT}},
  ONE(DROPOUT, .scalars = {5, 6, 7, 0.4}, .integer_scalars = 7),
};
/* clang-format on */

const int recipe_count = COUNT(recipes);
