/* SPDX-License-Identifier: Apache-2.0 */
/* Heliostat: models that learn. Included by helio.h; there is no need to include it by itself.
 *
 * Names, arguments and defaults are those of Keras 3 where it has them. Zero stands for an option's default; to pass a
 * real zero where that is something else, use HELIO_ZERO. */
#ifndef HELIO_NN_H
#define HELIO_NN_H

#include <helio/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A real zero, where 0 stands for the default: helio_batch_normalization(.momentum = HELIO_ZERO). */
#define HELIO_ZERO (-0.0)

/* Initial weights and the masks of dropout follow from this number, at first HELIO_SEED, and from names: the same
 * program gives the same numbers. A second variable of the same name starts from other numbers than the first; setting
 * the seed, even to the same number, begins anew. */
HELIO_EXPORT helio_status helio_set_seed(uint64_t seed);

/* ---------------------------------------------------------------------------------------------------------------------
 * Variables
 */

typedef struct helio_variable helio_variable;

/* A list of variables. A list that a model returns belongs to it and is valid until its layers change or it ends. */
typedef struct helio_variables {
  int count;
  helio_variable *const *at;
} helio_variables;

/* HELIO_VARIABLES(v, w): a list of these, as long as the block. */
#define HELIO_VARIABLES(...)                                                                                           \
  (&(const helio_variables){(int)(sizeof((helio_variable *[]){__VA_ARGS__}) / sizeof(helio_variable *)),               \
                            (helio_variable *[]){__VA_ARGS__}})

typedef enum helio_initializer_kind {
  HELIO_ZEROS = 1,
  HELIO_ONES = 2,
  HELIO_CONSTANT = 3,         /* .value */
  HELIO_GLOROT_UNIFORM = 4,   /* within ±√(6 ÷ (inputs + outputs)) */
  HELIO_GLOROT_NORMAL = 5,    /* truncated, of variance 2 ÷ (inputs + outputs) */
  HELIO_HE_UNIFORM = 6,       /* within ±√(6 ÷ inputs) */
  HELIO_HE_NORMAL = 7,        /* truncated, of variance 2 ÷ inputs */
  HELIO_LECUN_UNIFORM = 8,    /* within ±√(3 ÷ inputs) */
  HELIO_LECUN_NORMAL = 9,     /* truncated, of variance 1 ÷ inputs */
  HELIO_RANDOM_UNIFORM = 10,  /* .low, .high; both 0: −0.05 and 0.05 */
  HELIO_RANDOM_NORMAL = 11,   /* .mean, .deviation, 0: 0.05; HELIO_ZERO: the mean everywhere */
  HELIO_TRUNCATED_NORMAL = 12 /* likewise; numbers further than two deviations from the mean are drawn again */
} helio_initializer_kind;

/* .kernel_initializer = {.kind = HELIO_HE_NORMAL}, or {.kind = HELIO_RANDOM_NORMAL, .deviation = 0.1}. Without
 * ".kind =" clang warns (-Wextra: missing fields). */
typedef struct helio_initializer {
  helio_initializer_kind kind; /* 0: the default of the layer */
  double value, low, high, mean, deviation;
  uint64_t seed; /* 0: by the variable's name and helio_set_seed() */
} helio_initializer;

/* When the copies of a variable, under a strategy with several replicas, are combined: whenever one is assigned, or
 * only when the variable is read outside of replicas. */
typedef enum helio_synchronization {
  HELIO_ON_WRITE = 1,
  HELIO_ON_READ = 2, /* each replica assigns its own copy: counts, statistics */
} helio_synchronization;

/* How. */
typedef enum helio_aggregation {
  HELIO_AGGREGATE_NONE = 1, /* not at all: an assignment in a replica changes that one's copy */
  HELIO_AGGREGATE_SUM = 2,
  HELIO_AGGREGATE_MEAN = 3,
  HELIO_AGGREGATE_FIRST = 4, /* replica 0's */
} helio_aggregation;

/* A variable with a value: helio_variable(helio_constant(…), .name = "v"), or drawn:
 * helio_variable(.shape = HELIO_SHAPE(3, 4), .initializer = {.kind = HELIO_GLOROT_UNIFORM}, .name = "w"). */
typedef struct helio_variable_options {
  size_t size;
  helio_tensor *value; /* copied; NULL: by shape and initializer */
  helio_shape shape;
  helio_initializer initializer;         /* none: glorot uniform */
  helio_type type;                       /* of a drawn one, 0: float32 */
  bool not_trainable;                    /* tapes do not watch it by themselves */
  const char *name;                      /* NULL: "Variable" */
  helio_synchronization synchronization; /* 0: on write */
  helio_aggregation aggregation;         /* 0: none */
} helio_variable_options;

HELIO_EXPORT helio_variable *helio_variable_with(const helio_variable_options *options);
#define helio_variable(...)                                                                                            \
  helio_variable_with(&(helio_variable_options){.size = sizeof(helio_variable_options), __VA_ARGS__})

/* The value, for use in operations: a tape that records watches a trainable variable from here on. It is the variable's
 * own memory: an assignment changes it, and helio_copy() keeps the old value. */
HELIO_EXPORT helio_tensor *helio_value(helio_variable *variable);

HELIO_EXPORT helio_status helio_assign(helio_variable *variable, helio_tensor *value);
HELIO_EXPORT helio_status helio_assign_add(helio_variable *variable, helio_tensor *value);
HELIO_EXPORT helio_status helio_assign_sub(helio_variable *variable, helio_tensor *value);

/* Copies: one for each replica of the strategy in whose scope it was made, on the replicas' devices and with names of
 * their own ("kernel", "kernel/replica_1"). */
HELIO_EXPORT int helio_variable_copies(const helio_variable *variable);
HELIO_EXPORT helio_tensor *helio_variable_copy(helio_variable *variable, int copy);

HELIO_EXPORT const char *helio_variable_name(const helio_variable *variable);
HELIO_EXPORT helio_shape helio_variable_shape(const helio_variable *variable);
HELIO_EXPORT helio_type helio_variable_type(const helio_variable *variable);
HELIO_EXPORT bool helio_variable_trainable(const helio_variable *variable);
HELIO_EXPORT helio_status helio_variable_set_trainable(helio_variable *variable, bool trainable);

/* ---------------------------------------------------------------------------------------------------------------------
 * Gradients
 *
 *   helio_tape *tape = helio_tape_new();
 *   helio_tensor *loss = NULL;
 *   HELIO_TAPE(tape) { loss = helio_mean(helio_square(helio_sub(helio_call(model, x), y))); }
 *   helio_gradients *gradients = helio_gradient(tape, loss, helio_trainable_variables(model));
 *   helio_apply_gradients(optimizer, gradients, helio_trainable_variables(model));
 */

typedef struct helio_tape helio_tape;
typedef struct helio_gradients helio_gradients;

typedef struct helio_tape_options {
  size_t size;
  bool persistent; /* gives gradients more than once; keeps its records until it ends */
} helio_tape_options;

HELIO_EXPORT helio_tape *helio_tape_new_with(const helio_tape_options *options);
#define helio_tape_new(...) helio_tape_new_with(&(helio_tape_options){.size = sizeof(helio_tape_options), __VA_ARGS__})

/* HELIO_TAPE(tape) { … } records the operations of this thread inside. Tapes may be nested; each records. Entering a
 * tape that has given its gradients starts it anew; a persistent one continues, so use a new one for each step. */
HELIO_EXPORT helio_scope helio_tape_enter(helio_tape *tape);
HELIO_EXPORT void helio_tape_leave(helio_scope *scope);
#define HELIO_TAPE(tape) HELIO_BLOCK(helio_tape_enter(tape), helio_tape_leave)

/* Lets gradients by this tensor be asked for. Trainable variables need no watching. */
HELIO_EXPORT helio_status helio_tape_watch(helio_tape *tape, helio_tensor *tensor);

/* x, through which no gradient passes. */
HELIO_EXPORT helio_tensor *helio_stop_gradient(helio_tensor *x);

/* Gradients of the target, or of the sum of its elements if it has several, by variables and tensors. A variable that
 * was assigned since the tape saw it is an error. */
typedef struct helio_gradient_options {
  size_t size;
  helio_tape *tape;
  helio_tensor *target;
  const helio_variables *variables;
  helio_tensor *const *tensors; /* watched ones; their gradients stand after those of the variables */
  int tensor_count;
  helio_tensor *output_gradient; /* by the target, of its shape; NULL: ones */
} helio_gradient_options;

HELIO_EXPORT helio_gradients *helio_gradient_with(const helio_gradient_options *options);
#define helio_gradient(...)                                                                                            \
  helio_gradient_with(&(helio_gradient_options){.size = sizeof(helio_gradient_options), __VA_ARGS__})

HELIO_EXPORT int helio_gradients_count(const helio_gradients *gradients);

/* Is there a gradient? None, if the target does not depend on the variable. */
HELIO_EXPORT bool helio_gradients_has(const helio_gradients *gradients, int index);

/* The gradient as a whole tensor; NULL, which is no error, if there is none. */
HELIO_EXPORT helio_tensor *helio_gradients_at(const helio_gradients *gradients, int index);

/* The rows of a gradient that is kept by rows (that of an embedding) and their indices; NULL, without an error, if it
 * is not. An index may occur several times: its rows are to be added. */
HELIO_EXPORT helio_tensor *helio_gradients_rows(const helio_gradients *gradients, int index, helio_tensor **indices);

/* ---------------------------------------------------------------------------------------------------------------------
 * Layers
 *
 * A layer makes its variables at its first input, or as soon as its model knows its shape. Axes in options do not count
 * the batch unless said so. Where an operation has the layer's name, the layer's name ends in "_layer".
 */

typedef struct helio_layer helio_layer;
typedef struct helio_layer helio_model; /* a model is a layer and may stand wherever one may */

typedef struct helio_regularizer {
  double l1, l2; /* l1 × Σ|w| + l2 × Σw² */
} helio_regularizer;

/* Options of all layers. An activation may be given by Keras' name as well. */
#define HELIO_LAYER_OPTIONS                                                                                            \
  const char *name;        /* NULL: Keras' name, counted within the model: "conv2d", "conv2d_1" */                     \
  helio_type type;         /* of its variables and results, 0: the model's, or float32 */                              \
  bool not_trainable;      /* its variables stay as they are */                                                        \
  helio_shape input_shape; /* of one sample: in a sequential model's first layer, rank 0: not known */

typedef struct helio_input_options {
  size_t size;
  helio_shape shape; /* of one sample; −1: any extent */
  helio_type type;   /* 0: float32 */
  const char *name;
} helio_input_options;

typedef struct helio_dense_options {
  size_t size;
  int64_t units;
  helio_activation activation;
  const char *activation_name;
  bool no_bias;
  helio_initializer kernel_initializer, bias_initializer; /* glorot uniform, zeros */
  helio_regularizer kernel_regularizer, bias_regularizer;
  HELIO_LAYER_OPTIONS
} helio_dense_options;

/* Of Conv1D and Conv2D. The former has one axis: a second number that differs from the first is refused. */
typedef struct helio_conv_options {
  size_t size;
  int64_t filters;
  int kernel_size, kernel_width; /* height and width; a width of 0 is as the height */
  int strides[2], dilation[2];   /* 0: 1; a second 0: as the first */
  helio_padding padding;         /* 0: valid; Conv1D also HELIO_CAUSAL */
  int groups;                    /* 0: 1 */
  helio_activation activation;
  const char *activation_name;
  bool no_bias;
  helio_initializer kernel_initializer, bias_initializer;
  helio_regularizer kernel_regularizer, bias_regularizer;
  HELIO_LAYER_OPTIONS
} helio_conv_options;

typedef struct helio_depthwise_conv2d_options {
  size_t size;
  int kernel_size, kernel_width;
  int strides[2], dilation[2];
  helio_padding padding;
  int depth_multiplier; /* 0: 1 */
  helio_activation activation;
  const char *activation_name;
  bool no_bias;
  helio_initializer depthwise_initializer, bias_initializer;
  helio_regularizer depthwise_regularizer, bias_regularizer;
  HELIO_LAYER_OPTIONS
} helio_depthwise_conv2d_options;

typedef struct helio_pool_options {
  size_t size;
  int pool_size, pool_width; /* 0: 2, and as the first */
  int strides[2];            /* 0: the window */
  helio_padding padding;     /* 0: valid */
  HELIO_LAYER_OPTIONS
} helio_pool_options;

typedef struct helio_global_pool_options {
  size_t size;
  bool keep_dims;
  HELIO_LAYER_OPTIONS
} helio_global_pool_options;

/* Of layers that take no options of their own: Flatten, Add, Multiply, Average. */
typedef struct helio_plain_options {
  size_t size;
  HELIO_LAYER_OPTIONS
} helio_plain_options;

typedef struct helio_reshape_options {
  size_t size;
  helio_shape target; /* of one sample; one extent may be −1 */
  HELIO_LAYER_OPTIONS
} helio_reshape_options;

typedef struct helio_permute_options {
  size_t size;
  helio_axes dims; /* counted from 1, the batch being 0: HELIO_AXES(2, 1) */
  HELIO_LAYER_OPTIONS
} helio_permute_options;

/* Its input is int32 or int64, its gradient by rows. */
typedef struct helio_embedding_options {
  size_t size;
  int64_t input_dim, output_dim;
  helio_initializer embeddings_initializer; /* random uniform within ±0.05 */
  helio_regularizer embeddings_regularizer;
  HELIO_LAYER_OPTIONS
} helio_embedding_options;

typedef struct helio_dropout_options {
  size_t size;
  double rate;
  uint64_t seed; /* 0: by name and helio_set_seed() */
  HELIO_LAYER_OPTIONS
} helio_dropout_options;

/* Over all axes but one. Its statistics are those of each device's part of the batch: several replicas differ from one
 * device, unless .synchronized, which sums over replicas in every call. */
typedef struct helio_batch_normalization_options {
  size_t size;
  double momentum; /* 0: 0.99 */
  double epsilon;  /* 0: 1e-3 */
  int axis;        /* counting the batch; 0: −1, the last */
  bool no_center, no_scale;
  bool synchronized; /* statistics of the whole batch, each sample counting once */
  helio_initializer beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer;
  helio_regularizer beta_regularizer, gamma_regularizer;
  HELIO_LAYER_OPTIONS
} helio_batch_normalization_options;

/* Along the last axis or others, whose extents gamma and beta have. */
typedef struct helio_layer_normalization_options {
  size_t size;
  double epsilon;  /* 0: 1e-3 */
  helio_axes axes; /* counting the batch: HELIO_AXES(1, 2); none: the last */
  bool no_center, no_scale;
  helio_initializer beta_initializer, gamma_initializer;
  helio_regularizer beta_regularizer, gamma_regularizer;
  HELIO_LAYER_OPTIONS
} helio_layer_normalization_options;

typedef struct helio_activation_options {
  size_t size;
  helio_activation activation;
  const char *activation_name;
  HELIO_LAYER_OPTIONS
} helio_activation_options;

/* helio_softmax_layer(), or helio_softmax_layer(HELIO_AXES(1)). */
typedef struct helio_softmax_options {
  size_t size;
  helio_axes axes; /* counting the batch; none: the last */
  HELIO_LAYER_OPTIONS
} helio_softmax_options;

/* Above the threshold x, at most max_value; below it negative_slope × (x − threshold). */
typedef struct helio_relu_options {
  size_t size;
  double max_value; /* 0: none */
  double negative_slope, threshold;
  HELIO_LAYER_OPTIONS
} helio_relu_options;

typedef struct helio_concatenate_options {
  size_t size;
  int axis; /* counting the batch; 0: −1, the last */
  HELIO_LAYER_OPTIONS
} helio_concatenate_options;

/* helio_zero_padding2d(1), or .padding = {top, bottom, left, right}. */
typedef struct helio_zero_padding2d_options {
  size_t size;
  int all; /* 0, and `padding` of zeros: 1 */
  int padding[4];
  HELIO_LAYER_OPTIONS
} helio_zero_padding2d_options;

typedef enum helio_interpolation {
  HELIO_NEAREST = 1,
  HELIO_BILINEAR = 2 /* between the centers of elements; beyond the outermost ones as they are */
} helio_interpolation;

/* So many rows and columns for each. */
typedef struct helio_up_sampling2d_options {
  size_t size;
  int factor, width_factor;          /* 0: 2, and as the first */
  helio_interpolation interpolation; /* 0: nearest */
  HELIO_LAYER_OPTIONS
} helio_up_sampling2d_options;

/* x × scale + offset; takes integers too. */
typedef struct helio_rescaling_options {
  size_t size;
  double scale, offset;
  HELIO_LAYER_OPTIONS
} helio_rescaling_options;

HELIO_EXPORT helio_layer *helio_dense_with(const helio_dense_options *options);
HELIO_EXPORT helio_layer *helio_conv1d_with(const helio_conv_options *options);
HELIO_EXPORT helio_layer *helio_conv2d_with(const helio_conv_options *options);
HELIO_EXPORT helio_layer *helio_depthwise_conv2d_with(const helio_depthwise_conv2d_options *options);
HELIO_EXPORT helio_layer *helio_max_pool1d_with(const helio_pool_options *options);
HELIO_EXPORT helio_layer *helio_max_pool2d_with(const helio_pool_options *options);
HELIO_EXPORT helio_layer *helio_average_pool1d_with(const helio_pool_options *options);
HELIO_EXPORT helio_layer *helio_average_pool2d_with(const helio_pool_options *options);
HELIO_EXPORT helio_layer *helio_global_max_pool1d_with(const helio_global_pool_options *options);
HELIO_EXPORT helio_layer *helio_global_max_pool2d_with(const helio_global_pool_options *options);
HELIO_EXPORT helio_layer *helio_global_average_pool1d_with(const helio_global_pool_options *options);
HELIO_EXPORT helio_layer *helio_global_average_pool2d_with(const helio_global_pool_options *options);
HELIO_EXPORT helio_layer *helio_flatten_with(const helio_plain_options *options);
HELIO_EXPORT helio_layer *helio_reshape_layer_with(const helio_reshape_options *options);
HELIO_EXPORT helio_layer *helio_permute_with(const helio_permute_options *options);
HELIO_EXPORT helio_layer *helio_embedding_with(const helio_embedding_options *options);
HELIO_EXPORT helio_layer *helio_dropout_with(const helio_dropout_options *options);
HELIO_EXPORT helio_layer *helio_batch_normalization_with(const helio_batch_normalization_options *options);
HELIO_EXPORT helio_layer *helio_layer_normalization_with(const helio_layer_normalization_options *options);
HELIO_EXPORT helio_layer *helio_activation_layer_with(const helio_activation_options *options);
HELIO_EXPORT helio_layer *helio_softmax_layer_with(const helio_softmax_options *options);
HELIO_EXPORT helio_layer *helio_relu_layer_with(const helio_relu_options *options);
HELIO_EXPORT helio_layer *helio_add_layer_with(const helio_plain_options *options);
HELIO_EXPORT helio_layer *helio_multiply_layer_with(const helio_plain_options *options);
HELIO_EXPORT helio_layer *helio_average_layer_with(const helio_plain_options *options);
HELIO_EXPORT helio_layer *helio_concatenate_with(const helio_concatenate_options *options);
HELIO_EXPORT helio_layer *helio_zero_padding2d_with(const helio_zero_padding2d_options *options);
HELIO_EXPORT helio_layer *helio_up_sampling2d_with(const helio_up_sampling2d_options *options);
HELIO_EXPORT helio_layer *helio_rescaling_with(const helio_rescaling_options *options);

#define HELIO_MAKE(function, options, ...) function(&(options){.size = sizeof(options), __VA_ARGS__})
#define helio_dense(...)                   HELIO_MAKE(helio_dense_with, helio_dense_options, __VA_ARGS__)
#define helio_conv1d(...)                  HELIO_MAKE(helio_conv1d_with, helio_conv_options, __VA_ARGS__)
#define helio_conv2d(...)                  HELIO_MAKE(helio_conv2d_with, helio_conv_options, __VA_ARGS__)
#define helio_depthwise_conv2d(...)        HELIO_MAKE(helio_depthwise_conv2d_with, helio_depthwise_conv2d_options, __VA_ARGS__)
#define helio_max_pool1d(...)              HELIO_MAKE(helio_max_pool1d_with, helio_pool_options, __VA_ARGS__)
#define helio_max_pool2d(...)              HELIO_MAKE(helio_max_pool2d_with, helio_pool_options, __VA_ARGS__)
#define helio_average_pool1d(...)          HELIO_MAKE(helio_average_pool1d_with, helio_pool_options, __VA_ARGS__)
#define helio_average_pool2d(...)          HELIO_MAKE(helio_average_pool2d_with, helio_pool_options, __VA_ARGS__)
#define helio_global_max_pool1d(...)       HELIO_MAKE(helio_global_max_pool1d_with, helio_global_pool_options, __VA_ARGS__)
#define helio_global_max_pool2d(...)       HELIO_MAKE(helio_global_max_pool2d_with, helio_global_pool_options, __VA_ARGS__)
#define helio_global_average_pool1d(...)                                                                               \
  HELIO_MAKE(helio_global_average_pool1d_with, helio_global_pool_options, __VA_ARGS__)
#define helio_global_average_pool2d(...)                                                                               \
  HELIO_MAKE(helio_global_average_pool2d_with, helio_global_pool_options, __VA_ARGS__)
#define helio_flatten(...)       HELIO_MAKE(helio_flatten_with, helio_plain_options, __VA_ARGS__)
#define helio_reshape_layer(...) HELIO_MAKE(helio_reshape_layer_with, helio_reshape_options, __VA_ARGS__)
#define helio_permute(...)       HELIO_MAKE(helio_permute_with, helio_permute_options, __VA_ARGS__)
#define helio_embedding(...)     HELIO_MAKE(helio_embedding_with, helio_embedding_options, __VA_ARGS__)
#define helio_dropout(...)       HELIO_MAKE(helio_dropout_with, helio_dropout_options, __VA_ARGS__)
#define helio_batch_normalization(...)                                                                                 \
  HELIO_MAKE(helio_batch_normalization_with, helio_batch_normalization_options, __VA_ARGS__)
#define helio_layer_normalization(...)                                                                                 \
  HELIO_MAKE(helio_layer_normalization_with, helio_layer_normalization_options, __VA_ARGS__)
#define helio_activation_layer(...) HELIO_MAKE(helio_activation_layer_with, helio_activation_options, __VA_ARGS__)
#define helio_softmax_layer(...)    HELIO_MAKE(helio_softmax_layer_with, helio_softmax_options, __VA_ARGS__)
#define helio_relu_layer(...)       HELIO_MAKE(helio_relu_layer_with, helio_relu_options, __VA_ARGS__)
#define helio_add_layer(...)        HELIO_MAKE(helio_add_layer_with, helio_plain_options, __VA_ARGS__)
#define helio_multiply_layer(...)   HELIO_MAKE(helio_multiply_layer_with, helio_plain_options, __VA_ARGS__)
#define helio_average_layer(...)    HELIO_MAKE(helio_average_layer_with, helio_plain_options, __VA_ARGS__)
#define helio_concatenate(...)      HELIO_MAKE(helio_concatenate_with, helio_concatenate_options, __VA_ARGS__)
#define helio_zero_padding2d(...)   HELIO_MAKE(helio_zero_padding2d_with, helio_zero_padding2d_options, __VA_ARGS__)
#define helio_up_sampling2d(...)    HELIO_MAKE(helio_up_sampling2d_with, helio_up_sampling2d_options, __VA_ARGS__)
#define helio_rescaling(...)        HELIO_MAKE(helio_rescaling_with, helio_rescaling_options, __VA_ARGS__)

/* By Keras' class and JSON config, as layer.get_config() writes it: ("Dense", "{\"units\": 10, …}"). Anything that is
 * not supported is an error, never ignored. */
HELIO_EXPORT helio_layer *helio_layer_from_config(const char *class_name, const char *config);

/* ---------------------------------------------------------------------------------------------------------------------
 * Models
 *
 * A model is released by the user: helio_release(model). It holds its layers.
 */

/* One after the other:
 *   helio_sequential({helio_conv2d(16, 3, .activation = HELIO_RELU), helio_flatten(), helio_dense(10)},
 *                    .input_shape = HELIO_SHAPE(28, 28, 1))
 * Without an input shape the variables are made at the first call. */
enum { HELIO_MOST_LAYERS = 64 }; /* in one list; helio_model_add() takes any number */

typedef struct helio_sequential_options {
  size_t size;
  helio_layer *layers[HELIO_MOST_LAYERS]; /* up to the first NULL */
  helio_shape input_shape;                /* of one sample; rank 0: not known, unless the first layer says it */
  helio_type input_type;                  /* 0: float32, for an Embedding int32 */
  helio_type type;                        /* of the layers that have none of their own; 0: float32 */
  const char *name;                       /* NULL: "sequential" */
} helio_sequential_options;

HELIO_EXPORT helio_model *helio_sequential_with(const helio_sequential_options *options);
#define helio_sequential(...)                                                                                          \
  helio_sequential_with(&(helio_sequential_options){.size = sizeof(helio_sequential_options), __VA_ARGS__})

/* Appends a layer to a sequential model. */
HELIO_EXPORT helio_status helio_model_add(helio_model *model, helio_layer *layer);

/* A graph of layers: helio_input() makes a node, helio_apply() one from others, helio_model() the model between inputs
 * and outputs. A layer that is applied several times shares its variables. */
typedef struct helio_node helio_node;

HELIO_EXPORT helio_node *helio_input_with(const helio_input_options *options);
#define helio_input(...) HELIO_MAKE(helio_input_with, helio_input_options, __VA_ARGS__)

/* The list ends with HELIO_END, which the macro adds: a NULL in it is a node that could not be made. */
#define HELIO_END ((helio_node *)(intptr_t)-1)
HELIO_EXPORT helio_node *helio_apply_list(helio_layer *layer, helio_node *const *inputs);
#define helio_apply(layer, ...) helio_apply_list(layer, (helio_node *[]){__VA_ARGS__, HELIO_END})

/* The results of a node with several, when a model is applied: output 0 is the node itself. */
HELIO_EXPORT helio_node *helio_node_output(helio_node *node, int output);

typedef struct helio_model_options {
  size_t size;
  helio_node *input, *output;                 /* one of each: helio_model(x, y) */
  helio_node *const *inputs, *const *outputs; /* or several */
  int input_count, output_count;
  helio_type type;
  const char *name; /* NULL: "functional" */
} helio_model_options;

HELIO_EXPORT helio_model *helio_model_with(const helio_model_options *options);
#define helio_model(...) HELIO_MAKE(helio_model_with, helio_model_options, __VA_ARGS__)

/* The user's own struct: `call` computes the result with the layers that helio_track() has given to the model.
 *   struct net { helio_model *model; helio_layer *conv, *dense; } net = {helio_model_of(call, &net)};
 *   net.conv = helio_track(net.model, helio_conv2d(16, 3));
 */
typedef helio_tensor *(*helio_call_function)(void *self, helio_tensor *const *inputs, int count, bool training);

typedef struct helio_model_of_options {
  size_t size;
  helio_call_function call;
  void *self;
  helio_type type;
  const char *name; /* NULL: "model" */
} helio_model_of_options;

HELIO_EXPORT helio_model *helio_model_of_with(const helio_model_of_options *options);
#define helio_model_of(...) HELIO_MAKE(helio_model_of_with, helio_model_of_options, __VA_ARGS__)

/* Adds a layer to a model of the user's own, whose variables are listed in this order. Returns the layer. */
HELIO_EXPORT helio_layer *helio_track(helio_model *model, helio_layer *layer);

/* Computes a layer's or model's result: helio_call(model, x, .training = true). */
typedef struct helio_call_options {
  size_t size;
  helio_layer *layer;
  helio_tensor *x;
  bool training;
  helio_tensor *const *inputs; /* instead of x, if there are several */
  int input_count;
  helio_tensor **outputs; /* receives all results of a model that has several; the first is returned */
} helio_call_options;

HELIO_EXPORT helio_tensor *helio_call_with(const helio_call_options *options);
#define helio_call(...) HELIO_MAKE(helio_call_with, helio_call_options, __VA_ARGS__)

/* Makes the variables for inputs of this shape, which counts the batch (−1: any). A model of the user's own is called
 * with zeros for that. */
HELIO_EXPORT helio_status helio_model_build(helio_model *model, helio_shape input);

HELIO_EXPORT const char *helio_layer_name(const helio_layer *layer);
HELIO_EXPORT const char *helio_layer_class(const helio_layer *layer); /* "Conv2D" */

/* The shape of one sample of an input, with −1 for any extent, and its type; rank 0 and type 0, without an error, if
 * not known: before the first call of a model without an input shape, and for inputs that do not exist. */
HELIO_EXPORT helio_shape helio_model_input_shape(const helio_model *model, int input);
HELIO_EXPORT helio_type helio_model_input_type(const helio_model *model, int input);

HELIO_EXPORT int helio_model_layer_count(const helio_model *model);
HELIO_EXPORT helio_layer *helio_model_layer(const helio_model *model, int index);
HELIO_EXPORT helio_layer *helio_model_layer_named(const helio_model *model, const char *name);
HELIO_EXPORT helio_status helio_layer_set_trainable(helio_layer *layer, bool trainable);

/* Variables in the order of layers, as Keras lists them. A model without an input shape has none before its first call,
 * and asking is an error. */
HELIO_EXPORT const helio_variables *helio_weights(helio_model *model);
HELIO_EXPORT const helio_variables *helio_trainable_variables(helio_model *model);
HELIO_EXPORT const helio_variables *helio_non_trainable_variables(helio_model *model);
HELIO_EXPORT int64_t helio_count_params(helio_model *model); /* elements in all of them; −1 on failure */

/* Sets all weights in their order, or none. */
HELIO_EXPORT helio_status helio_set_weights(helio_model *model, helio_tensor *const *values, int count);

/* The sum of all regularizers' losses, a scalar; 0 where there are none. Keras' sum(model.losses). */
HELIO_EXPORT helio_tensor *helio_regularization_loss(helio_model *model);

/* Keras' table, to be freed with free(); and the same on standard output, no wider than the terminal, and in ASCII
 * unless the locale is UTF-8. Columns 0: 76, as in Keras without a terminal. */
HELIO_EXPORT char *helio_model_summary_text(helio_model *model, int columns);
HELIO_EXPORT helio_status helio_model_summary(helio_model *model);

/* Weights in a safetensors file under Keras' names ("conv2d/kernel"). Saving replaces the file as a whole or leaves it
 * as it was; loading takes all weights or none, and the file must have exactly the model's. The metadata of a
 * saved file contain a checksum of it ("helio_crc32"), which loading checks; files without one are loaded too. */
HELIO_EXPORT helio_status helio_save_weights(helio_model *model, const char *path);
HELIO_EXPORT helio_status helio_load_weights(helio_model *model, const char *path);

/* The architecture as Keras 3's model.to_json() writes it, to be freed with free(): keras.models.model_from_json()
 * takes it. For a model of the user's own (helio_model_of), which has none, this is an error. */
HELIO_EXPORT char *helio_model_to_json(helio_model *model);

/* A model from the JSON that model.to_json() of Keras 3 or Keras 2 wrote: sequential or functional, nested ones
 * included. Its weights are drawn anew. Anything that is not supported is an error that names the layer and the key,
 * never ignored; how the model was compiled (compile_config) is not read. At most 8 MiB, 4096 layers and 32 nested
 * models. */
HELIO_EXPORT helio_model *helio_model_from_json(const char *json);

/* Writes a file as helio_save_weights() does, which helio_load_weights() reads too, with the architecture in its
 * metadata: helio_load_model() needs no code to make the model. Loading gives the whole model or none. */
HELIO_EXPORT helio_status helio_save_model(helio_model *model, const char *path);
HELIO_EXPORT helio_model *helio_load_model(const char *path);

/* A text of the program's own that goes with a model into its file ("helio_note" in the metadata) and comes back with
 * it: how samples become what it takes, what its classes are called. In UTF-8; it is copied. NULL: there is none. */
HELIO_EXPORT helio_status helio_model_set_note(helio_model *model, const char *text);
HELIO_EXPORT const char *helio_model_note(const helio_model *model);

/* ---------------------------------------------------------------------------------------------------------------------
 * Losses
 */

typedef struct helio_loss helio_loss;

typedef enum helio_loss_reduction {
  HELIO_LOSS_MEAN = 1,         /* the default: the sum over the batch ÷ its number of losses */
  HELIO_LOSS_SUM = 2,          /* of all */
  HELIO_LOSS_NONE = 3,         /* a loss for each sample */
  HELIO_LOSS_WEIGHTED_MEAN = 4 /* the sum ÷ the sum of sample weights */
} helio_loss_reduction;

/* One struct for all losses; an option that a loss does not have is an error. */
typedef struct helio_loss_options {
  size_t size;
  bool from_logits; /* the cross entropies: predictions are logits, not probabilities */
  helio_loss_reduction reduction;
  double label_smoothing; /* binary and categorical cross entropy */
  double delta;           /* Huber; 0: 1 */
  int axis;               /* cosine similarity: counting the batch; 0: −1, the last */
  bool ignores_class;     /* sparse categorical cross entropy: labels of `ignore_class` do not count, */
  int ignore_class;       /* neither in the sum nor in its divisor; it need not be a class: −1, for example */
  /* Cross entropy of a softmax's output with from_logits: go back to the logits and warn once, as Keras 3 does, unless
   * this is set: then softmax is applied a second time, as TensorFlow 2.3 did. */
  bool softmax_twice;
  const char *name; /* NULL: Keras' */
} helio_loss_options;

HELIO_EXPORT helio_loss *helio_mean_squared_error_with(const helio_loss_options *options);
HELIO_EXPORT helio_loss *helio_mean_absolute_error_with(const helio_loss_options *options);
HELIO_EXPORT helio_loss *helio_huber_with(const helio_loss_options *options);
HELIO_EXPORT helio_loss *helio_binary_crossentropy_with(const helio_loss_options *options);
HELIO_EXPORT helio_loss *helio_categorical_crossentropy_with(const helio_loss_options *options);
HELIO_EXPORT helio_loss *helio_sparse_categorical_crossentropy_with(const helio_loss_options *options);
HELIO_EXPORT helio_loss *helio_kl_divergence_with(const helio_loss_options *options);
HELIO_EXPORT helio_loss *helio_cosine_similarity_with(const helio_loss_options *options);
#define helio_mean_squared_error(...)  HELIO_MAKE(helio_mean_squared_error_with, helio_loss_options, __VA_ARGS__)
#define helio_mean_absolute_error(...) HELIO_MAKE(helio_mean_absolute_error_with, helio_loss_options, __VA_ARGS__)
#define helio_huber(...)               HELIO_MAKE(helio_huber_with, helio_loss_options, __VA_ARGS__)
#define helio_binary_crossentropy(...) HELIO_MAKE(helio_binary_crossentropy_with, helio_loss_options, __VA_ARGS__)
#define helio_categorical_crossentropy(...)                                                                            \
  HELIO_MAKE(helio_categorical_crossentropy_with, helio_loss_options, __VA_ARGS__)
#define helio_sparse_categorical_crossentropy(...)                                                                     \
  HELIO_MAKE(helio_sparse_categorical_crossentropy_with, helio_loss_options, __VA_ARGS__)
#define helio_kl_divergence(...)     HELIO_MAKE(helio_kl_divergence_with, helio_loss_options, __VA_ARGS__)
#define helio_cosine_similarity(...) HELIO_MAKE(helio_cosine_similarity_with, helio_loss_options, __VA_ARGS__)

/* By Keras' name, with the defaults: "mse", "sparse_categorical_crossentropy". */
HELIO_EXPORT helio_loss *helio_loss_named(const char *name);

/* The user's own: returns a loss for each sample. */
typedef helio_tensor *(*helio_loss_function)(void *user, helio_tensor *labels, helio_tensor *predictions);
HELIO_EXPORT helio_loss *helio_loss_of(helio_loss_function function, void *user, const char *name);

HELIO_EXPORT const char *helio_loss_name(const helio_loss *loss);

/* helio_compute_loss(loss, labels, predictions, .sample_weights = w). */
typedef struct helio_compute_loss_options {
  size_t size;
  const helio_loss *loss;
  helio_tensor *labels, *predictions;
  helio_tensor *sample_weights; /* one for each sample, even if it has several losses, or for each loss */
} helio_compute_loss_options;

HELIO_EXPORT helio_tensor *helio_compute_loss_with(const helio_compute_loss_options *options);
#define helio_compute_loss(...) HELIO_MAKE(helio_compute_loss_with, helio_compute_loss_options, __VA_ARGS__)

/* Sample weights by class: weights[label], for integer labels or one-hot ones. */
HELIO_EXPORT helio_tensor *helio_class_weights(helio_tensor *labels, const double *weights, int classes);

/* ---------------------------------------------------------------------------------------------------------------------
 * Metrics
 */

typedef struct helio_metric helio_metric;

/* One struct for all metrics; an option that a metric does not have is an error. */
typedef struct helio_metric_options {
  size_t size;
  const char *name; /* NULL: Keras' */
  int k;            /* top-k; 0: 5 */
  double threshold; /* binary accuracy, precision, recall; 0: 0.5 */

  /* Of precision and recall alone. */
  const double *thresholds; /* several, instead of one: the result is a vector */
  int threshold_count;
  int top_k;         /* only the k largest of each row are positive, if above a threshold that is given; 0: all */
  bool of_one_class; /* only `class_id` counts, a place along the last axis */
  int class_id;

  helio_type type; /* of its sums, float32 or float64; 0: float32 */
} helio_metric_options;

HELIO_EXPORT helio_metric *helio_metric_mean_with(const helio_metric_options *options);
HELIO_EXPORT helio_metric *helio_metric_sum_with(const helio_metric_options *options);
HELIO_EXPORT helio_metric *helio_accuracy_with(const helio_metric_options *options); /* labels equal predictions */
HELIO_EXPORT helio_metric *helio_binary_accuracy_with(const helio_metric_options *options);
HELIO_EXPORT helio_metric *helio_categorical_accuracy_with(const helio_metric_options *options);
HELIO_EXPORT helio_metric *helio_sparse_categorical_accuracy_with(const helio_metric_options *options);
HELIO_EXPORT helio_metric *helio_top_k_categorical_accuracy_with(const helio_metric_options *options);
HELIO_EXPORT helio_metric *helio_sparse_top_k_categorical_accuracy_with(const helio_metric_options *options);
HELIO_EXPORT helio_metric *helio_metric_mean_squared_error_with(const helio_metric_options *options);
HELIO_EXPORT helio_metric *helio_metric_mean_absolute_error_with(const helio_metric_options *options);
HELIO_EXPORT helio_metric *helio_precision_with(const helio_metric_options *options);
HELIO_EXPORT helio_metric *helio_recall_with(const helio_metric_options *options);
#define helio_metric_mean(...)          HELIO_MAKE(helio_metric_mean_with, helio_metric_options, __VA_ARGS__)
#define helio_metric_sum(...)           HELIO_MAKE(helio_metric_sum_with, helio_metric_options, __VA_ARGS__)
#define helio_accuracy(...)             HELIO_MAKE(helio_accuracy_with, helio_metric_options, __VA_ARGS__)
#define helio_binary_accuracy(...)      HELIO_MAKE(helio_binary_accuracy_with, helio_metric_options, __VA_ARGS__)
#define helio_categorical_accuracy(...) HELIO_MAKE(helio_categorical_accuracy_with, helio_metric_options, __VA_ARGS__)
#define helio_sparse_categorical_accuracy(...)                                                                         \
  HELIO_MAKE(helio_sparse_categorical_accuracy_with, helio_metric_options, __VA_ARGS__)
#define helio_top_k_categorical_accuracy(...)                                                                          \
  HELIO_MAKE(helio_top_k_categorical_accuracy_with, helio_metric_options, __VA_ARGS__)
#define helio_sparse_top_k_categorical_accuracy(...)                                                                   \
  HELIO_MAKE(helio_sparse_top_k_categorical_accuracy_with, helio_metric_options, __VA_ARGS__)
#define helio_metric_mean_squared_error(...)                                                                           \
  HELIO_MAKE(helio_metric_mean_squared_error_with, helio_metric_options, __VA_ARGS__)
#define helio_metric_mean_absolute_error(...)                                                                          \
  HELIO_MAKE(helio_metric_mean_absolute_error_with, helio_metric_options, __VA_ARGS__)
#define helio_precision(...) HELIO_MAKE(helio_precision_with, helio_metric_options, __VA_ARGS__)
#define helio_recall(...)    HELIO_MAKE(helio_recall_with, helio_metric_options, __VA_ARGS__)

/* By Keras' name: "mae", "sparse_top_k_categorical_accuracy". "accuracy" and "acc" pick binary, categorical or sparse
 * by the shapes of the first update alone, as Keras does; the loss, which may be NULL, is not used yet. */
HELIO_EXPORT helio_metric *helio_metric_named(const char *name, const helio_loss *loss);

/* The user's own: returns a value for each sample; the metric is their mean. */
HELIO_EXPORT helio_metric *helio_metric_of(helio_loss_function function, void *user, const char *name);

HELIO_EXPORT const char *helio_metric_name(const helio_metric *metric);

/* helio_metric_update(metric, labels, predictions, .sample_weights = w); of a mean or sum: helio_metric_update(metric,
 * values). Tapes do not record it. */
typedef struct helio_metric_update_options {
  size_t size;
  helio_metric *metric;
  helio_tensor *labels, *predictions; /* the values of a mean or sum take the place of labels */
  helio_tensor *sample_weights;
} helio_metric_update_options;

HELIO_EXPORT helio_status helio_metric_update_with(const helio_metric_update_options *options);
#define helio_metric_update(...) HELIO_MAKE(helio_metric_update_with, helio_metric_update_options, __VA_ARGS__)

/* A scalar on the device; reading it waits for it; 0 before any update. With several thresholds a vector. */
HELIO_EXPORT helio_tensor *helio_metric_result(helio_metric *metric);
HELIO_EXPORT helio_status helio_metric_reset(helio_metric *metric);

/* Its sums; equal metrics on several replicas are combined by adding these. Not trainable. */
HELIO_EXPORT const helio_variables *helio_metric_variables(helio_metric *metric);

/* ---------------------------------------------------------------------------------------------------------------------
 * Optimizers
 */

typedef struct helio_optimizer helio_optimizer;
typedef struct helio_schedule helio_schedule;

/* Learning rates by step. */
typedef struct helio_schedule_options {
  size_t size;
  double initial; /* exponential, cosine, polynomial: the rate to begin with */
  int64_t steps;  /* of the decay */
  double rate;    /* exponential: the factor in `steps` */
  bool staircase; /* exponential: by whole steps */
  double end;     /* polynomial: the last rate; 0: 0.0001 */
  double power;   /* polynomial; 0: 1 */
  bool cycle;     /* polynomial: begins anew with longer steps */
  double alpha;   /* cosine: the last rate as a part of the first */
  double warmup_target;
  int64_t warmup_steps;      /* cosine: from `initial` to `warmup_target` before the decay */
  const int64_t *boundaries; /* piecewise: up to boundaries[i] values[i], then the last */
  const double *values;      /* one more than boundaries */
  int boundary_count;
} helio_schedule_options;

HELIO_EXPORT helio_schedule *helio_exponential_decay_with(const helio_schedule_options *options);
HELIO_EXPORT helio_schedule *helio_piecewise_constant_decay_with(const helio_schedule_options *options);
HELIO_EXPORT helio_schedule *helio_cosine_decay_with(const helio_schedule_options *options);
HELIO_EXPORT helio_schedule *helio_polynomial_decay_with(const helio_schedule_options *options);
#define helio_exponential_decay(...) HELIO_MAKE(helio_exponential_decay_with, helio_schedule_options, __VA_ARGS__)
#define helio_piecewise_constant_decay(...)                                                                            \
  HELIO_MAKE(helio_piecewise_constant_decay_with, helio_schedule_options, __VA_ARGS__)
#define helio_cosine_decay(...)     HELIO_MAKE(helio_cosine_decay_with, helio_schedule_options, __VA_ARGS__)
#define helio_polynomial_decay(...) HELIO_MAKE(helio_polynomial_decay_with, helio_schedule_options, __VA_ARGS__)

HELIO_EXPORT double helio_schedule_rate(const helio_schedule *schedule, int64_t step);

/* One struct for all optimizers; an option that an optimizer does not have is an error. helio_adam(), helio_sgd(0.2).
 */
typedef struct helio_optimizer_options {
  size_t size;
  double learning_rate;                           /* 0: 0.001, of SGD 0.01 */
  helio_schedule *schedule;                       /* instead of a rate */
  double momentum;                                /* SGD, RMSprop */
  bool nesterov;                                  /* SGD */
  double beta1, beta2;                            /* Adam, AdamW, Nadam; 0: 0.9 and 0.999 */
  double rho;                                     /* RMSprop; 0: 0.9 */
  bool centered;                                  /* RMSprop */
  double initial_accumulator_value;               /* Adagrad; 0: 0.1 */
  double epsilon;                                 /* 0: 1e-7 */
  double weight_decay;                            /* 0: none, of AdamW 0.004 */
  double clip_value, clip_norm, global_clip_norm; /* 0: none; one of them */
  int accumulate_steps;                           /* at least 2: applies the mean of this many gradients; 0: each */
  const char *name;                               /* NULL: Keras' */
} helio_optimizer_options;

HELIO_EXPORT helio_optimizer *helio_sgd_with(const helio_optimizer_options *options);
HELIO_EXPORT helio_optimizer *helio_adam_with(const helio_optimizer_options *options);
HELIO_EXPORT helio_optimizer *helio_adamw_with(const helio_optimizer_options *options);
HELIO_EXPORT helio_optimizer *helio_nadam_with(const helio_optimizer_options *options);
HELIO_EXPORT helio_optimizer *helio_rmsprop_with(const helio_optimizer_options *options);
HELIO_EXPORT helio_optimizer *helio_adagrad_with(const helio_optimizer_options *options);
#define helio_sgd(...)     HELIO_MAKE(helio_sgd_with, helio_optimizer_options, __VA_ARGS__)
#define helio_adam(...)    HELIO_MAKE(helio_adam_with, helio_optimizer_options, __VA_ARGS__)
#define helio_adamw(...)   HELIO_MAKE(helio_adamw_with, helio_optimizer_options, __VA_ARGS__)
#define helio_nadam(...)   HELIO_MAKE(helio_nadam_with, helio_optimizer_options, __VA_ARGS__)
#define helio_rmsprop(...) HELIO_MAKE(helio_rmsprop_with, helio_optimizer_options, __VA_ARGS__)
#define helio_adagrad(...) HELIO_MAKE(helio_adagrad_with, helio_optimizer_options, __VA_ARGS__)

/* By Keras' name, with the defaults: "adam". */
HELIO_EXPORT helio_optimizer *helio_optimizer_named(const char *name);

/* One step: gradients[i] belongs to variables[i]; a variable without a gradient stays as it is. The first call decides
 * which variables are the optimizer's. */
HELIO_EXPORT helio_status helio_apply_gradients(helio_optimizer *optimizer, const helio_gradients *gradients,
                                                const helio_variables *variables);

HELIO_EXPORT const char *helio_optimizer_name(const helio_optimizer *optimizer);
HELIO_EXPORT int64_t helio_optimizer_iterations(const helio_optimizer *optimizer);   /* steps so far */
HELIO_EXPORT double helio_optimizer_learning_rate(const helio_optimizer *optimizer); /* of the next step */
HELIO_EXPORT helio_status helio_optimizer_set_learning_rate(helio_optimizer *optimizer, double rate);

/* A batch that grows with the devices may need another rate: the optimizer's × replicas, or × √replicas. The rate rises
 * to it linearly in this many steps (0: at once, and only before the first step; five epochs are usual), counted from
 * the optimizer's first, and the log says so. Only without a schedule; a rate that rises is one, and cannot be set
 * afterwards. A training that goes on does so with the rate of its checkpoint if it is scaled in .train_begin. Rates
 * are never scaled unless asked for: as in Keras, the rate is the one given. */
typedef enum helio_rate_scaling {
  HELIO_SCALE_NONE = 1,
  HELIO_SCALE_LINEAR = 2,
  HELIO_SCALE_SQRT = 3,
} helio_rate_scaling;

HELIO_EXPORT helio_status helio_scale_learning_rate(helio_optimizer *optimizer, helio_rate_scaling scaling,
                                                    int replicas, int64_t warmup_steps);

/* Slots (momentum, …), the number of steps and the rate in a safetensors file, with a checksum as weights have it.
 * Loading takes all or nothing; the optimizer must know its variables: by a step, or by helio_optimizer_build(). */
HELIO_EXPORT helio_status helio_optimizer_build(helio_optimizer *optimizer, const helio_variables *variables);
HELIO_EXPORT const helio_variables *helio_optimizer_variables(helio_optimizer *optimizer);
HELIO_EXPORT helio_status helio_save_optimizer(helio_optimizer *optimizer, const char *path);
HELIO_EXPORT helio_status helio_load_optimizer(helio_optimizer *optimizer, const char *path);

#ifdef __cplusplus
}
#endif
#endif
