/* SPDX-License-Identifier: Apache-2.0 */
/* What the strict device knows of operations: their names, arguments, types and scalars. */
#include "strict.h"

#include <string.h>
#include <strings.h>

#define TYPE_BIT_OF(name, value, text, bytes) | HELIO_TYPE_BIT(value)

/* The groups of types of the core's table. The entry must be constant, so that the plugin inside cannot be asked what
 * it offers; its plan() has the last word all the same. */
enum {
  EVERY_TYPE = 0 HELIO_TYPE_LIST(TYPE_BIT_OF),
  WIDE_FLOAT_TYPES = HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64),
  FLOAT_TYPES = WIDE_FLOAT_TYPES | HELIO_TYPE_BIT(HELIO_FLOAT16) | HELIO_TYPE_BIT(HELIO_BFLOAT16),
  INDEX_TYPES = HELIO_TYPE_BIT(HELIO_INT32) | HELIO_TYPE_BIT(HELIO_INT64),
  NUMBER_TYPES = FLOAT_TYPES | INDEX_TYPES,
  BIT_TYPES = HELIO_TYPE_BIT(HELIO_INT32),
};

/* Name, arguments in the letters of plugin.h, types, scalars. Rows that need no kernel are not here. */
/* clang-format off */
#define OPERATION_LIST(X)                                                                                              \
  X(CAST, "cast", "T", "?", EVERY_TYPE, 0)                                                                             \
  X(SLICE, "slice", "T", "T", EVERY_TYPE, 0)                                                                           \
  X(CONCAT, "concat", "T*", "T", EVERY_TYPE, 0)                                                                        \
  X(ADD, "add", "TT", "T", NUMBER_TYPES, 0)                                                                            \
  X(SUB, "sub", "TT", "T", NUMBER_TYPES, 0)                                                                            \
  X(MUL, "mul", "TT", "T", NUMBER_TYPES, 0)                                                                            \
  X(ADD_N, "add_n", "T*", "T", NUMBER_TYPES, 0)                                                                        \
  X(SUM, "sum", "T", "T", NUMBER_TYPES, 0)                                                                             \
  X(MATMUL, "matmul", "TTt", "T", NUMBER_TYPES, 0)                                                                     \
  X(RELU, "relu", "T", "T", NUMBER_TYPES, 0)                                                                           \
  X(TRANSPOSE, "transpose", "T", "T", EVERY_TYPE, 0)                                                                   \
  X(PAD, "pad", "T", "T", EVERY_TYPE, 1)                                                                               \
  X(GATHER, "gather", "TI", "T", EVERY_TYPE, 0)                                                                        \
  X(SCATTER_ADD, "scatter_add", "TI", "T", NUMBER_TYPES, 0)                                                            \
  X(WHERE, "where", "TTB", "T", EVERY_TYPE, 0)                                                                         \
  X(ONE_HOT, "one_hot", "I", "?", INDEX_TYPES, 0)                                                                      \
  X(DIV, "div", "TT", "T", NUMBER_TYPES, 0)                                                                            \
  X(POW, "pow", "TT", "T", FLOAT_TYPES, 0)                                                                             \
  X(MAXIMUM, "maximum", "TT", "T", NUMBER_TYPES, 0)                                                                    \
  X(MINIMUM, "minimum", "TT", "T", NUMBER_TYPES, 0)                                                                    \
  X(EQUAL, "equal", "TT", "B", EVERY_TYPE, 0)                                                                          \
  X(NOT_EQUAL, "not_equal", "TT", "B", EVERY_TYPE, 0)                                                                  \
  X(LESS, "less", "TT", "B", EVERY_TYPE, 0)                                                                            \
  X(LESS_EQUAL, "less_equal", "TT", "B", EVERY_TYPE, 0)                                                                \
  X(GREATER, "greater", "TT", "B", EVERY_TYPE, 0)                                                                      \
  X(GREATER_EQUAL, "greater_equal", "TT", "B", EVERY_TYPE, 0)                                                          \
  X(NEG, "neg", "T", "T", NUMBER_TYPES, 0)                                                                             \
  X(ABS, "abs", "T", "T", NUMBER_TYPES, 0)                                                                             \
  X(SQUARE, "square", "T", "T", NUMBER_TYPES, 0)                                                                       \
  X(SQRT, "sqrt", "T", "T", FLOAT_TYPES, 0)                                                                            \
  X(RSQRT, "rsqrt", "T", "T", FLOAT_TYPES, 0)                                                                          \
  X(EXP, "exp", "T", "T", FLOAT_TYPES, 0)                                                                              \
  X(LOG, "log", "T", "T", FLOAT_TYPES, 0)                                                                              \
  X(CLIP, "clip", "T", "T", NUMBER_TYPES, 2)                                                                           \
  X(SIGMOID, "sigmoid", "T", "T", FLOAT_TYPES, 0)                                                                      \
  X(TANH, "tanh", "T", "T", FLOAT_TYPES, 0)                                                                            \
  X(SOFTPLUS, "softplus", "T", "T", FLOAT_TYPES, 0)                                                                    \
  X(SWISH, "swish", "T", "T", FLOAT_TYPES, 0)                                                                          \
  X(GELU, "gelu", "T", "T", FLOAT_TYPES, 0)                                                                            \
  X(ELU, "elu", "T", "T", FLOAT_TYPES, 1)                                                                              \
  X(LEAKY_RELU, "leaky_relu", "T", "T", FLOAT_TYPES, 1)                                                                \
  X(ACTIVATION_GRAD, "activation_grad", "TT", "T", NUMBER_TYPES, 1)                                                    \
  X(MEAN, "mean", "T", "T", FLOAT_TYPES, 0)                                                                            \
  X(MAX, "max", "T", "T", NUMBER_TYPES, 0)                                                                             \
  X(MIN, "min", "T", "T", NUMBER_TYPES, 0)                                                                             \
  X(ARGMAX, "argmax", "T", "?", NUMBER_TYPES, 0)                                                                       \
  X(TOP_K, "top_k", "T", "T?", NUMBER_TYPES, 0)                                                                        \
  X(IN_TOP_K, "in_top_k", "TI", "B", FLOAT_TYPES, 0)                                                                   \
  X(CONV2D, "conv2d", "TTt", "T", FLOAT_TYPES, 0)                                                                      \
  X(CONV2D_GRAD_INPUT, "conv2d_grad_input", "TT", "T", FLOAT_TYPES, 0)                                                 \
  X(CONV2D_GRAD_KERNEL, "conv2d_grad_kernel", "TT", "T", FLOAT_TYPES, 0)                                               \
  X(MAX_POOL, "max_pool", "T", "Tw", FLOAT_TYPES, 0)                                                                   \
  X(MAX_POOL_GRAD, "max_pool_grad", "TW", "T", FLOAT_TYPES, 0)                                                         \
  X(AVERAGE_POOL, "average_pool", "T", "T", FLOAT_TYPES, 0)                                                            \
  X(AVERAGE_POOL_GRAD, "average_pool_grad", "T", "T", FLOAT_TYPES, 0)                                                  \
  X(SOFTMAX, "softmax", "T", "T", FLOAT_TYPES, 0)                                                                      \
  X(LOG_SOFTMAX, "log_softmax", "T", "T", FLOAT_TYPES, 0)                                                              \
  X(SOFTMAX_GRAD, "softmax_grad", "TT", "T", FLOAT_TYPES, 0)                                                           \
  X(LOG_SOFTMAX_GRAD, "log_softmax_grad", "TT", "T", FLOAT_TYPES, 0)                                                   \
  X(SPARSE_CROSS_ENTROPY, "sparse_cross_entropy", "TI", "Tt", FLOAT_TYPES, 0)                                          \
  X(CROSS_ENTROPY, "cross_entropy", "TT", "Tt", FLOAT_TYPES, 0)                                                        \
  X(MOMENTS, "moments", "T", "TT", FLOAT_TYPES, 0)                                                                     \
  X(NORMALIZE, "normalize", "TTTtt", "T", FLOAT_TYPES, 1)                                                              \
  X(NORMALIZE_GRAD_SUMS, "normalize_grad_sums", "TTTT", "TT", FLOAT_TYPES, 1)                                          \
  X(NORMALIZE_GRAD_INPUT, "normalize_grad_input", "TTTTtTT", "T", FLOAT_TYPES, 2)                                      \
  X(LAYER_NORM, "layer_norm", "Ttt", "Ttt", FLOAT_TYPES, 1)                                                            \
  X(LAYER_NORM_GRAD, "layer_norm_grad", "TTtTT", "Ttt", FLOAT_TYPES, 0)                                                \
  X(RANDOM_BITS, "random_bits", "", "T", BIT_TYPES, 3)                                                                 \
  X(RANDOM_UNIFORM, "random_uniform", "", "T", WIDE_FLOAT_TYPES, 5)                                                    \
  X(RANDOM_NORMAL, "random_normal", "", "T", WIDE_FLOAT_TYPES, 5)                                                      \
  X(DROPOUT, "dropout", "T", "T", FLOAT_TYPES, 4)                                                                      \
  X(COMBINE_ROWS, "combine_rows", "TI", "TIt", FLOAT_TYPES, 0)                                                         \
  X(SGD_UPDATE, "sgd_update", "VvTi", "", WIDE_FLOAT_TYPES, 3)                                                         \
  X(ADAM_UPDATE, "adam_update", "VVVTit", "", WIDE_FLOAT_TYPES, 5)                                                     \
  X(NADAM_UPDATE, "nadam_update", "VVVTit", "", WIDE_FLOAT_TYPES, 8)                                                   \
  X(RMSPROP_UPDATE, "rmsprop_update", "VVvvTit", "", WIDE_FLOAT_TYPES, 5)                                              \
  X(ADAGRAD_UPDATE, "adagrad_update", "VVTit", "", WIDE_FLOAT_TYPES, 3)
/* clang-format on */

#define OPERATION(symbol, its_name, its_inputs, its_outputs, its_types, its_scalars)                                   \
  [HELIO_OP_##symbol] = {its_name, its_inputs, its_outputs, its_types, its_scalars},
static const strict_operation operations[] = {OPERATION_LIST(OPERATION)};
#undef OPERATION

enum { OPERATION_LIMIT = sizeof operations / sizeof operations[0] };

const strict_operation *strict_operation_of(uint32_t operation) {
  return operation < OPERATION_LIMIT && operations[operation].name != NULL ? &operations[operation] : NULL;
}

const char *strict_operation_name(uint32_t operation) {
  const strict_operation *known = strict_operation_of(operation);
  return known != NULL ? known->name : "unknown operation";
}

/* 0: there is none of that name. */
uint32_t strict_operation_by_name(const char *name, size_t length) {
  for (uint32_t i = 0; i < OPERATION_LIMIT; i++) {
    const char *known = operations[i].name;
    if (known != NULL && strlen(known) == length && strncasecmp(known, name, length) == 0) return i;
  }
  return 0;
}

/* The letter of an argument, inputs before outputs; '*' stands for more of the one before it. */
char strict_operation_letter(const strict_operation *operation, uint32_t input_count, uint32_t index) {
  uint32_t fixed = (uint32_t)strcspn(operation->inputs, "*");
  if (index >= input_count) return operation->outputs[index - input_count];
  return operation->inputs[index < fixed ? index : fixed - 1];
}

/* May a call have that many arguments? */
bool strict_operation_takes(const strict_operation *operation, uint32_t input_count, uint32_t output_count) {
  uint32_t fixed = (uint32_t)strcspn(operation->inputs, "*");
  bool more = operation->inputs[fixed] == '*';
  return (more ? input_count >= fixed : input_count == fixed) && output_count == strlen(operation->outputs);
}

/* "The output of ADD, SUB, MUL, ADD_N, MAXIMUM, MINIMUM and RELU may lie exactly on an input of the same shape" */
bool strict_operation_in_place(uint32_t operation) {
  return operation == HELIO_OP_ADD || operation == HELIO_OP_SUB || operation == HELIO_OP_MUL ||
         operation == HELIO_OP_ADD_N || operation == HELIO_OP_MAXIMUM || operation == HELIO_OP_MINIMUM ||
         operation == HELIO_OP_RELU;
}

#define KERNEL(symbol, its_name, its_inputs, its_outputs, its_types, its_scalars)                                      \
  &(const helio_kernel){.size = sizeof(helio_kernel),                                                                  \
                        .operation = HELIO_OP_##symbol,                                                                \
                        .types = its_types,                                                                            \
                        .plan = strict_kernel_plan,                                                                    \
                        .run = strict_kernel_run,                                                                      \
                        .plan_free = strict_kernel_plan_free},
static const helio_kernel *const kernels[] = {OPERATION_LIST(KERNEL)};
#undef KERNEL

const helio_kernel_table strict_kernel_table = {
    .size = sizeof(helio_kernel_table),
    .count = sizeof kernels / sizeof kernels[0],
    .kernels = kernels,
};
