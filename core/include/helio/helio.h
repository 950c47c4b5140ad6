/* SPDX-License-Identifier: Apache-2.0 */
/* Heliostat: everything that a program needs.
 *
 * Conventions
 *
 * - The first call starts the library; call helio_init() to see by itself whether it starts.
 * - Functions that make something return NULL on failure, others a helio_status. The thread's error keeps the cause
 *   until it is taken (helio_error_take); while one is pending, calls do nothing and return NULL or the pending
 *   status, so a chain of calls is checked once at its end. Release functions always work and accept NULL.
 * - Optional arguments are named: helio_matmul(a, b, .transpose_b = true). Zero stands for the default. The macro puts
 *   all arguments into one struct; C++ calls the function with `_with` at the end of its name and fills the struct.
 * - Values made by operations, and all other objects except models, belong to the innermost HELIO_POOL of the thread
 *   (outside of any, to the thread's own pool, which ends with the thread or at helio_shutdown) and end with it, unless
 *   another object holds them. helio_keep() makes an object outlive its pool; helio_release() ends it, and models.
 * - All functions may be called from any thread. A scope (HELIO_POOL, HELIO_DEVICE) belongs to its thread; HELIO_DEVICE
 *   may be nested 64 deep.
 * - Pointers that are returned stay valid until helio_shutdown(), unless the comment says that they are to be freed.
 * - The CPU takes up to 7/8 of the memory that the process is granted, unless a limit is set: a loop of operations
 *   needs a HELIO_POOL inside it.
 * - After fork() the child cannot use a library that its parent had started: calls return an error.
 */
#ifndef HELIO_H
#define HELIO_H

#include <helio/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HELIO_VERSION_MAJOR 0
#define HELIO_VERSION_MINOR 1
#define HELIO_VERSION_PATCH 0

/* ---------------------------------------------------------------------------------------------------------------------
 * Start and end
 */

/* "0.1.0": the version of the running library, which may differ from the header's. */
HELIO_EXPORT const char *helio_version(void);

/* Reads the environment, loads the plugins and finds the devices. Does nothing the second time. */
HELIO_EXPORT helio_status helio_init(void);

/* Closes all devices and ends the plugins; the next call would start anew. Works even while an error is pending. Values
 * that are still alive lose their contents and can only be released. No other thread may be inside a call of the
 * library; during a step of several replicas this is an error, HELIO_WRONG_STATE, and nothing is closed. Not for signal
 * handlers: let them set a flag, end the loop and then call this. */
HELIO_EXPORT helio_status helio_shutdown(void);

/* ---------------------------------------------------------------------------------------------------------------------
 * Errors and log
 */

typedef struct helio_error {
  helio_status status;
  const char *where;  /* the function of this header that failed */
  char message[2000]; /* cause, names, what to do */
} helio_error;

/* The calling thread's pending status, HELIO_OK if none, and its message, "" if none. */
HELIO_EXPORT helio_status helio_error_pending(void);
HELIO_EXPORT const char *helio_error_message(void);

/* Clears the pending error and returns its status; `error`, unless NULL, receives it. */
HELIO_EXPORT helio_status helio_error_take(helio_error *error);

HELIO_EXPORT const char *helio_status_name(helio_status status); /* "HELIO_OUT_OF_MEMORY" */
HELIO_EXPORT const char *helio_status_text(helio_status status); /* "out of memory" */

/* Receives each line at or above the level, without its newline; placement lines have level INFO. */
typedef void (*helio_log_sink)(void *user, helio_log_level level, const char *line);

/* NULL restores the default, standard error. The sink may be called from any thread, one call at a time; it must not
 * call the library. */
HELIO_EXPORT void helio_set_log_sink(helio_log_sink sink, void *user);
HELIO_EXPORT helio_status helio_set_log_level(helio_log_level level);

/* ---------------------------------------------------------------------------------------------------------------------
 * Devices
 *
 * Names: "cpu:0", "/gpu:1", "/device:GPU:1", "cuda:0" and, in full, "/job:localhost/replica:0/task:0/device:GPU:0".
 * Case does not matter. GPUs of all backends are numbered together. A physical device is "/physical_device:GPU:0".
 *
 * Visible devices, logical devices and memory may be set until the first use of the devices concerned: the first
 * allocation on one of them. Listing them is not a use.
 */

typedef struct helio_device {
  const char *name;         /* "/job:localhost/replica:0/task:0/device:CPU:0", or "/physical_device:CPU:0" */
  const char *type;         /* "CPU" or "GPU" */
  int index;                /* among the devices of this type */
  const char *backend;      /* the plugin that reaches it */
  int backend_index;        /* among this backend's devices */
  const char *physical;     /* the physical device of a logical one; else its own name */
  const char *description;  /* as the vendor calls it */
  const char *vendor;       /* "" where unknown */
  const char *architecture; /* "x86-64 avx512" */
  const char *native_api;   /* "host", "cuda", … */
  const char *bus_id;       /* "" where it has none */
  uint64_t memory;          /* bytes of the physical device in total */
  uint64_t memory_limit;    /* of a logical device, 0 if it has none */
  int compute_units;
  const char *const *properties; /* "key=value", the last one NULL */
} helio_device;

/* The devices of a type ("GPU", "CPU", NULL for all), in order of preference. None is an empty list, not an error. The
 * list stays valid until helio_shutdown. NULL only on failure. */
HELIO_EXPORT const helio_device *const *helio_physical_devices(const char *type, int *count);
HELIO_EXPORT const helio_device *const *helio_logical_devices(const char *type, int *count);

/* Only these physical devices exist from now on, in this order; all others are hidden, except that the CPU stays as
 * host. count 0: only the host. */
HELIO_EXPORT helio_status helio_set_visible_devices(const char *const *names, int count);

/* Cuts a physical device into `count` logical ones, at most 1024; limits[i] bytes each, 0: none; limits NULL: none for
 * any. */
HELIO_EXPORT helio_status helio_set_logical_devices(const char *physical, const uint64_t *limits, int count);

/* On (the default): memory is taken as needed and kept. Off: nearly all free memory, within limit and fraction, is
 * taken in one piece at first use. device NULL: all. */
HELIO_EXPORT helio_status helio_set_memory_growth(const char *device, bool on);

/* No logical device takes more than its share of this fraction of its physical device's memory. */
HELIO_EXPORT helio_status helio_set_memory_fraction(double fraction);

/* Each logical device takes no more than this many bytes; `device` is a physical one, NULL: all; 0: no limit but the
 * memory that there is. A limit may be above that: of a machine that swaps. */
HELIO_EXPORT helio_status helio_set_memory_limit(const char *device, uint64_t bytes);

typedef struct helio_memory {
  size_t size;           /* of this struct, filled in by helio_memory_info() */
  uint64_t in_use;       /* bytes of live allocations */
  uint64_t peak;         /* the most that was in use at a time */
  uint64_t reserved;     /* bytes taken from the device */
  uint64_t largest_free; /* the largest piece available without taking more */
  uint64_t limit;        /* the most that may be taken; 0: no limit was set */
  uint64_t allocations;  /* live */
  uint64_t taken;        /* how often memory was taken from the device so far */
} helio_memory;

#define helio_memory_info(device, info) helio_memory_info_sized(device, info, sizeof(helio_memory))
HELIO_EXPORT helio_status helio_memory_info_sized(const char *device, helio_memory *info, size_t size);

/* Was it lost by a strategy, because it failed or did not come back within HELIO_TIMEOUT? Nothing runs on it any more;
 * helio_mirrored() without a list of devices leaves it out. */
HELIO_EXPORT bool helio_device_lost(const char *name);

/* Waits until all work handed to the device (NULL: all devices) is done, and reports what went wrong there late. */
HELIO_EXPORT helio_status helio_synchronize(const char *device);

/* ---------------------------------------------------------------------------------------------------------------------
 * Placement
 *
 * An operation outside any HELIO_DEVICE runs on the first device in order of preference that has a kernel for it;
 * inside one, on that device, or it is an error, unless soft placement lets it run elsewhere. Inputs that are elsewhere
 * are copied.
 */

HELIO_EXPORT helio_status helio_set_soft_placement(bool on);
HELIO_EXPORT helio_status helio_set_strict_placement(bool on); /* running elsewhere than asked is an error */
HELIO_EXPORT helio_status helio_set_log_placement(bool on);    /* "Executing op MatMul in device …" */

typedef struct helio_placement {
  uint64_t operations;   /* run elsewhere than on the device that was asked for or preferred */
  uint64_t bytes_copied; /* for them */
  uint64_t input_copies; /* inputs that had to be copied from one device to another, for whatever reason */
  uint64_t input_bytes;  /* of those */
} helio_placement;

HELIO_EXPORT helio_placement helio_placement_counts(void);

/* HELIO_DEVICE("/gpu:0") { … } runs the operations inside on that device. NULL: as outside any. Leaving the block by
 * return, break or goto is safe; break and continue leave the block, not a loop around it. */
typedef struct helio_scope {
  int open;
  int depth;
} helio_scope;

HELIO_EXPORT helio_scope helio_device_enter(const char *name);
HELIO_EXPORT void helio_device_leave(helio_scope *scope);

#define HELIO_JOIN(a, b)                     a##b
#define HELIO_BLOCK(enter, leave)            HELIO_BLOCK_AS(enter, leave, __COUNTER__)
#define HELIO_BLOCK_AS(enter, leave, number) HELIO_BLOCK_NAMED(enter, leave, HELIO_JOIN(helio_scope_, number))
#define HELIO_BLOCK_NAMED(enter, leave, scope)                                                                         \
  for (helio_scope scope __attribute__((cleanup(leave))) = (enter); scope.open; scope.open = 0)

#define HELIO_DEVICE(name) HELIO_BLOCK(helio_device_enter(name), helio_device_leave)

/* ---------------------------------------------------------------------------------------------------------------------
 * Tensors
 */

typedef struct helio_tensor helio_tensor;

typedef struct helio_shape {
  int rank;
  int64_t extent[HELIO_MAX_RANK];
} helio_shape;

/* HELIO_SHAPE(2, 3) is a matrix, HELIO_SCALAR has rank 0. */
#define HELIO_SHAPE(...) ((helio_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define HELIO_SCALAR     ((helio_shape){0, {0}})

/* Values that operations make inside the block end with it. */
HELIO_EXPORT helio_scope helio_pool_enter(void);
HELIO_EXPORT void helio_pool_leave(helio_scope *scope);
#define HELIO_POOL HELIO_BLOCK(helio_pool_enter(), helio_pool_leave)

/* Makes a value, or any other object that a call made (a layer, an optimizer, …), outlive its pool: it lives until
 * helio_release(). Returns it, so that a call can be its argument. An object kept n times is released n times. */
HELIO_EXPORT void *helio_keep(void *object);
HELIO_EXPORT void helio_release(void *object);
#define helio_keep(object) ((__typeof__(object))(helio_keep)(object))

/* A tensor of the host data given, copied. helio_constant((float[]){1, 2, 3, 4, 5, 6}, HELIO_SHAPE(2, 3), .name = "a").
 * It prints no placement line. */
typedef struct helio_constant_options {
  size_t size;
  const void *data;
  helio_shape shape;
  helio_type type; /* of the data; 0: float32 */
  const char *name;
} helio_constant_options;

HELIO_EXPORT helio_tensor *helio_constant_with(const helio_constant_options *options);
#define helio_constant(...)                                                                                            \
  helio_constant_with(&(helio_constant_options){.size = sizeof(helio_constant_options), __VA_ARGS__})

HELIO_EXPORT helio_type helio_tensor_type(const helio_tensor *tensor);
HELIO_EXPORT helio_shape helio_tensor_shape(const helio_tensor *tensor);
HELIO_EXPORT int64_t helio_tensor_elements(const helio_tensor *tensor);
HELIO_EXPORT const char *helio_tensor_name(const helio_tensor *tensor);   /* "" if it has none */
HELIO_EXPORT const char *helio_tensor_device(const helio_tensor *tensor); /* full name */
HELIO_EXPORT const char *helio_type_name(helio_type type);                /* "float32" */
HELIO_EXPORT size_t helio_type_bytes(helio_type type);                    /* of one element */
HELIO_EXPORT bool helio_type_is_integer(helio_type type);                 /* bool is one, too */

/* Waits for the value and copies it to the host. `bytes` must be the tensor's. */
HELIO_EXPORT helio_status helio_tensor_read(const helio_tensor *tensor, void *data, size_t bytes);

/* Waits for the value of a tensor with one element; NaN on failure. */
HELIO_EXPORT double helio_item(const helio_tensor *tensor);

/* "Tensor(\n[[22. 28.]\n [49. 64.]], shape=(2, 2), dtype=float32)", to be freed with free(). */
HELIO_EXPORT char *helio_tensor_text(const helio_tensor *tensor);

/* Writes that text and a line's end to standard output. */
HELIO_EXPORT helio_status helio_print(const helio_tensor *tensor);

/* The same value on another device; the tensor itself if it is there already. Does not wait unless the devices
 * require it. */
HELIO_EXPORT helio_tensor *helio_to_device(helio_tensor *tensor, const char *device);

/* ---------------------------------------------------------------------------------------------------------------------
 * Operations
 *
 * Arithmetic broadcasts as numpy does; both sides must have the same type. Negative axes count from the end. Layers
 * are made of the operations with "nn" in their names.
 */

/* Axes of a tensor: HELIO_AXES(0, -1). An empty list stands for all axes. */
typedef struct helio_axes {
  int count;
  int axis[HELIO_MAX_RANK];
} helio_axes;

#define HELIO_AXES(...) ((helio_axes){(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), {__VA_ARGS__}})

/* ---- making and moving ---- */

typedef struct helio_fill_options {
  size_t size;
  helio_shape shape;
  double value;
  helio_type type; /* 0: float32 */
} helio_fill_options;

HELIO_EXPORT helio_tensor *helio_fill_with(const helio_fill_options *options);
#define helio_fill(...) helio_fill_with(&(helio_fill_options){.size = sizeof(helio_fill_options), __VA_ARGS__})

HELIO_EXPORT helio_tensor *helio_copy(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_cast(helio_tensor *x, helio_type type);

/* Views: they share their memory with x. One extent of `shape` may be −1. */
HELIO_EXPORT helio_tensor *helio_reshape(helio_tensor *x, helio_shape shape);
HELIO_EXPORT helio_tensor *helio_expand_dims(helio_tensor *x, int axis);

/* Without all axes of extent 1, or those given, which must be of extent 1: helio_squeeze(x, .axes = HELIO_AXES(0)). */
typedef struct helio_squeeze_options {
  size_t size;
  helio_tensor *x;
  helio_axes axes;
} helio_squeeze_options;

HELIO_EXPORT helio_tensor *helio_squeeze_with(const helio_squeeze_options *options);
#define helio_squeeze(...)                                                                                             \
  helio_squeeze_with(&(helio_squeeze_options){.size = sizeof(helio_squeeze_options), __VA_ARGS__})

/* `extents.extent[i]` elements from `begin.extent[i]` on, −1: all that follow. Along the first axis alone it is a view.
 */
HELIO_EXPORT helio_tensor *helio_slice(helio_tensor *x, helio_shape begin, helio_shape extents);
HELIO_EXPORT helio_tensor *helio_concat(helio_tensor *const *inputs, int count, int axis); /* at most 4096 */

/* Cuts x into equal parts along an axis; `results` receives them. */
HELIO_EXPORT helio_status helio_split(helio_tensor *x, int parts, int axis, helio_tensor **results);

/* Axis i of the result is axis permutation[i] of x; none given: all in reverse. */
typedef struct helio_transpose_options {
  size_t size;
  helio_tensor *x;
  helio_axes permutation;
} helio_transpose_options;

HELIO_EXPORT helio_tensor *helio_transpose_with(const helio_transpose_options *options);
#define helio_transpose(...)                                                                                           \
  helio_transpose_with(&(helio_transpose_options){.size = sizeof(helio_transpose_options), __VA_ARGS__})

/* So many elements of `value` before and after each axis. */
typedef struct helio_pad_options {
  size_t size;
  helio_tensor *x;
  helio_shape before, after;
  double value;
} helio_pad_options;

HELIO_EXPORT helio_tensor *helio_pad_with(const helio_pad_options *options);
#define helio_pad(...) helio_pad_with(&(helio_pad_options){.size = sizeof(helio_pad_options), __VA_ARGS__})

/* Rows of x by index (int32 or int64). An index out of range is an error (HELIO_BAD_DATA) that the next read reports.
 */
HELIO_EXPORT helio_tensor *helio_gather_rows(helio_tensor *x, helio_tensor *indices);

/* `rows` rows of zeros, to which row i of x is added at indices[i]. */
HELIO_EXPORT helio_tensor *helio_scatter_add(helio_tensor *x, helio_tensor *indices, int64_t rows);

/* Where the condition (bool) is true a, else b. */
HELIO_EXPORT helio_tensor *helio_where(helio_tensor *condition, helio_tensor *a, helio_tensor *b);

/* 1 at the index, 0 elsewhere, along a new last axis of extent `depth`. */
HELIO_EXPORT helio_tensor *helio_one_hot(helio_tensor *indices, int64_t depth, helio_type type);

/* ---- arithmetic ---- */

HELIO_EXPORT helio_tensor *helio_add(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_sub(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_mul(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_div(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_pow(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_maximum(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_minimum(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_equal(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_not_equal(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_less(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_less_equal(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_greater(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_greater_equal(helio_tensor *a, helio_tensor *b);
HELIO_EXPORT helio_tensor *helio_add_n(helio_tensor *const *inputs, int count); /* at most 4096, of one shape */

HELIO_EXPORT helio_tensor *helio_neg(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_abs(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_square(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_sqrt(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_rsqrt(helio_tensor *x); /* 1 / √x */
HELIO_EXPORT helio_tensor *helio_exp(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_log(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_clip(helio_tensor *x, double low, double high);

/* Over all axes, or those given: helio_sum(x), helio_mean(x, .axes = HELIO_AXES(-1), .keep_dims = true). */
typedef struct helio_reduce_options {
  size_t size;
  helio_tensor *x;
  helio_axes axes;
  bool keep_dims;
} helio_reduce_options;

HELIO_EXPORT helio_tensor *helio_sum_with(const helio_reduce_options *options);
HELIO_EXPORT helio_tensor *helio_mean_with(const helio_reduce_options *options);
HELIO_EXPORT helio_tensor *helio_max_with(const helio_reduce_options *options);
HELIO_EXPORT helio_tensor *helio_min_with(const helio_reduce_options *options);
#define helio_sum(...)  helio_sum_with(&(helio_reduce_options){.size = sizeof(helio_reduce_options), __VA_ARGS__})
#define helio_mean(...) helio_mean_with(&(helio_reduce_options){.size = sizeof(helio_reduce_options), __VA_ARGS__})
#define helio_max(...)  helio_max_with(&(helio_reduce_options){.size = sizeof(helio_reduce_options), __VA_ARGS__})
#define helio_min(...)  helio_min_with(&(helio_reduce_options){.size = sizeof(helio_reduce_options), __VA_ARGS__})

/* The place (int64) of the first of the largest elements along an axis. */
HELIO_EXPORT helio_tensor *helio_argmax(helio_tensor *x, int axis);

/* The k largest of the last axis, largest first; `indices`, if not NULL, receives their places (int32). */
HELIO_EXPORT helio_tensor *helio_top_k(helio_tensor *x, int64_t k, helio_tensor **indices);

/* For each row of x (n × classes): is its target among the k largest? Classes tied with the k-th count as in. */
HELIO_EXPORT helio_tensor *helio_in_top_k(helio_tensor *x, helio_tensor *targets, int k);

/* activation(a × b + bias); leading axes are batches and broadcast. */
typedef struct helio_matmul_options {
  size_t size;
  helio_tensor *a, *b;
  bool transpose_a, transpose_b;
  helio_tensor *bias; /* of shape (n), or NULL */
  helio_activation activation;
} helio_matmul_options;

HELIO_EXPORT helio_tensor *helio_matmul_with(const helio_matmul_options *options);
#define helio_matmul(...) helio_matmul_with(&(helio_matmul_options){.size = sizeof(helio_matmul_options), __VA_ARGS__})

/* ---- activations ---- */

HELIO_EXPORT helio_tensor *helio_relu(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_sigmoid(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_tanh(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_softplus(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_swish(helio_tensor *x);
HELIO_EXPORT helio_tensor *helio_gelu(helio_tensor *x, bool approximate);
HELIO_EXPORT helio_tensor *helio_elu(helio_tensor *x, double alpha);
HELIO_EXPORT helio_tensor *helio_leaky_relu(helio_tensor *x, double alpha);
HELIO_EXPORT helio_tensor *helio_softmax(helio_tensor *x);     /* along the last axis */
HELIO_EXPORT helio_tensor *helio_log_softmax(helio_tensor *x); /* likewise */

/* Any of them, with Keras' parameters (elu 1, leaky relu 0.2). 0 and HELIO_LINEAR give x itself. */
HELIO_EXPORT helio_tensor *helio_activate(helio_tensor *x, helio_activation activation);

/* ---- convolution and pooling: images are (batch, height, width, channels) ---- */

typedef enum helio_padding {
  HELIO_VALID = 1, /* none */
  HELIO_SAME = 2, /* so that the result has ⌈extent ÷ stride⌉ places; the odd one lies after it, as in TensorFlow */
  HELIO_CAUSAL = 3, /* of the layer Conv1D alone: before the first step, so that no result depends on later ones */
} helio_padding;

/* Strides and dilations of 0 are 1; a second one of 0 is as the first. The kernel is (height, width, channels ÷ groups,
 * filters). helio_nn_conv2d(x, kernel, .stride = {2}, .padding = HELIO_SAME, .bias = b, .activation = HELIO_RELU). */
typedef struct helio_nn_conv2d_options {
  size_t size;
  helio_tensor *x, *kernel;
  helio_tensor *bias; /* of shape (filters), or NULL */
  int stride[2], dilation[2];
  helio_padding padding; /* 0: valid */
  int groups;            /* 0: 1 */
  helio_activation activation;
} helio_nn_conv2d_options;

HELIO_EXPORT helio_tensor *helio_nn_conv2d_with(const helio_nn_conv2d_options *options);
#define helio_nn_conv2d(...)                                                                                           \
  helio_nn_conv2d_with(&(helio_nn_conv2d_options){.size = sizeof(helio_nn_conv2d_options), __VA_ARGS__})

/* x is (batch, steps, channels), the kernel (steps, channels ÷ groups, filters); stride[0] and dilation[0] count. */
HELIO_EXPORT helio_tensor *helio_nn_conv1d_with(const helio_nn_conv2d_options *options);
#define helio_nn_conv1d(...)                                                                                           \
  helio_nn_conv1d_with(&(helio_nn_conv2d_options){.size = sizeof(helio_nn_conv2d_options), __VA_ARGS__})

/* A window of 0 is 2, a stride of 0 the window. helio_nn_max_pool(x, .window = {2}). */
typedef struct helio_nn_pool_options {
  size_t size;
  helio_tensor *x;
  int window[2], stride[2];
  helio_padding padding; /* 0: valid */
} helio_nn_pool_options;

HELIO_EXPORT helio_tensor *helio_nn_max_pool_with(const helio_nn_pool_options *options);
HELIO_EXPORT helio_tensor *helio_nn_average_pool_with(const helio_nn_pool_options *options);
#define helio_nn_max_pool(...)                                                                                         \
  helio_nn_max_pool_with(&(helio_nn_pool_options){.size = sizeof(helio_nn_pool_options), __VA_ARGS__})
#define helio_nn_average_pool(...)                                                                                     \
  helio_nn_average_pool_with(&(helio_nn_pool_options){.size = sizeof(helio_nn_pool_options), __VA_ARGS__})

/* ---- losses and normalization ---- */

/* −log softmax(x)[label] for each row of x (… × classes); labels are int32 or int64 of the shape without the last axis.
 * A label out of range is an error (HELIO_BAD_DATA) that the next read reports. */
HELIO_EXPORT helio_tensor *helio_nn_sparse_cross_entropy(helio_tensor *x, helio_tensor *labels);

/* −Σ label × log softmax(x) for each row; labels have the shape of x. */
HELIO_EXPORT helio_tensor *helio_nn_cross_entropy(helio_tensor *x, helio_tensor *labels);

/* Mean and variance (÷ n) over all axes but the last. */
HELIO_EXPORT helio_tensor *helio_nn_moments(helio_tensor *x, helio_tensor **variance);

/* (x − mean) ÷ √(variance + epsilon) × gamma + beta, each of one element for each channel; gamma and beta may be NULL.
 */
HELIO_EXPORT helio_tensor *helio_nn_normalize(helio_tensor *x, helio_tensor *mean, helio_tensor *variance,
                                              helio_tensor *gamma, helio_tensor *beta, double epsilon);

/* Along the last axis with its own mean and variance; gamma and beta may be NULL. */
HELIO_EXPORT helio_tensor *helio_nn_layer_norm(helio_tensor *x, helio_tensor *gamma, helio_tensor *beta,
                                               double epsilon);

/* ---- random numbers: Philox 4×32-10, a pure function of key, step and place ---- */

typedef struct helio_random_options {
  size_t size;
  helio_shape shape;
  uint64_t key, step;
  uint64_t base;          /* the place of the first element */
  double low, high;       /* of helio_random_uniform; both 0: 0 and 1 */
  double mean, deviation; /* of helio_random_normal; deviation 0: 1 */
  helio_type type;        /* 0: float32 */
} helio_random_options;

HELIO_EXPORT helio_tensor *helio_random_uniform_with(const helio_random_options *options);
HELIO_EXPORT helio_tensor *helio_random_normal_with(const helio_random_options *options);
HELIO_EXPORT helio_tensor *helio_random_bits_with(const helio_random_options *options); /* int32, all of its bits */
#define helio_random_uniform(...)                                                                                      \
  helio_random_uniform_with(&(helio_random_options){.size = sizeof(helio_random_options), __VA_ARGS__})
#define helio_random_normal(...)                                                                                       \
  helio_random_normal_with(&(helio_random_options){.size = sizeof(helio_random_options), __VA_ARGS__})
#define helio_random_bits(...)                                                                                         \
  helio_random_bits_with(&(helio_random_options){.size = sizeof(helio_random_options), __VA_ARGS__})

/* Sets a part `rate` of the elements to 0 and divides the others by 1 − rate; rate in [0, 1). */
typedef struct helio_nn_dropout_options {
  size_t size;
  helio_tensor *x;
  double rate;
  uint64_t key, step, base;
} helio_nn_dropout_options;

HELIO_EXPORT helio_tensor *helio_nn_dropout_with(const helio_nn_dropout_options *options);
#define helio_nn_dropout(...)                                                                                          \
  helio_nn_dropout_with(&(helio_nn_dropout_options){.size = sizeof(helio_nn_dropout_options), __VA_ARGS__})

/* ---------------------------------------------------------------------------------------------------------------------
 * Listings: plugins, operations, settings
 */

/* What became of a plugin. */
#define HELIO_PLUGIN_STATE_LIST(X)                                                                                     \
  X(USABLE, 1, "usable")                                                                                               \
  X(NO_DEVICES, 2, "no device")                                                                                        \
  X(NOT_CHOSEN, 3, "not chosen")                                                                                       \
  X(SHADOWED, 4, "shadowed")                                                                                           \
  X(CANNOT_OPEN, 5, "cannot open")                                                                                     \
  X(NO_SYMBOL, 6, "no symbol")                                                                                         \
  X(NOT_A_PLUGIN, 7, "not a plugin")                                                                                   \
  X(TOO_OLD, 8, "too old")                                                                                             \
  X(TOO_NEW, 9, "too new")                                                                                             \
  X(MALFORMED, 10, "malformed")                                                                                        \
  X(PROBE_FAILED, 11, "probe failed")                                                                                  \
  X(INIT_FAILED, 12, "init failed")                                                                                    \
  X(CRASHED, 13, "crashed")                                                                                            \
  X(NO_USE, 14, "no use here")

typedef enum helio_plugin_status {
#define HELIO_PLUGIN_STATE_ENUM(name, value, text) HELIO_PLUGIN_##name = value,
  HELIO_PLUGIN_STATE_LIST(HELIO_PLUGIN_STATE_ENUM)
#undef HELIO_PLUGIN_STATE_ENUM
} helio_plugin_status;

HELIO_EXPORT const char *helio_plugin_status_text(helio_plugin_status status);

typedef struct helio_plugin_report {
  char name[64];         /* from the plugin, or from its file's name where it could not be asked */
  char path[1024];       /* the file */
  char version[64];      /* "" where it could not be asked */
  char description[128]; /* likewise */
  char reason[1024];     /* in words */
  helio_plugin_status status;
  bool is_backend, is_collective;
  int devices;
} helio_plugin_report;

/* Every file that was found, in order of search, with what became of it. */
HELIO_EXPORT const helio_plugin_report *const *helio_plugins(int *count);

/* The name of a collective, which HELIO_COLLECTIVE takes: plugins' and the core's own, in order of names, counted from
 * 0. NULL past the last one. Valid until helio_shutdown(). */
HELIO_EXPORT const char *helio_collective_name(int index);

/* Times in-place all-reduces of `bytes` bytes of float32 numbers between devices, with a thread for each: `seconds`
 * receives how long each of `repeats` calls took on the first device. `collective` NULL: the automatic choice. */
HELIO_EXPORT helio_status helio_time_all_reduce(const char *const *devices, int count, const char *collective,
                                                size_t bytes, int repeats, double *seconds);

/* The files that helio_init() would open, without opening any; and the report on one, which is opened, probed,
 * started and closed again, before the library is started: a tool that does so in a child process survives a plugin
 * that crashes. The paths are freed together, with free(). */
HELIO_EXPORT char **helio_plugin_files(int *count);
HELIO_EXPORT helio_status helio_plugin_inspect(const char *path, helio_plugin_report *report);

typedef struct helio_operation_info {
  const char *name;       /* "matmul" */
  const char *label;      /* "MatMul", as placement lines have it */
  const char *summary;    /* what it computes */
  const char *attributes; /* "transpose_a, transpose_b, activation" */
  bool needs_kernel;      /* else every device has it */
} helio_operation_info;

HELIO_EXPORT const helio_operation_info *const *helio_operations(int *count);

/* Any operation by its name, even those that are parts of others (gradients, updates of optimizers): for tools and for
 * authors of backends. plugin.h has the attributes, scalars and the meaning of each argument. */
typedef struct helio_operation_options {
  size_t size;
  const char *operation; /* "conv2d_grad_input" */
  helio_tensor *const *inputs;
  int input_count;                   /* an optional input that is absent counts, as NULL */
  const void *attributes;            /* the operation's struct of plugin.h, NULL if it has none */
  const union helio_scalar *scalars; /* as many as the operation has */
  int scalar_count;
  helio_shape shape;   /* of the result, where the inputs do not tell it */
  helio_type type;     /* likewise */
  uint32_t no_outputs; /* bit i: result i, a small letter in plugin.h, is not wanted */
} helio_operation_options;

/* Runs it and writes the results, three at most, to `outputs`: NULL after the last and for those that are not wanted.
 */
HELIO_EXPORT helio_status helio_operation_run(const helio_operation_options *options, helio_tensor *outputs[3]);

/* The types (HELIO_TYPE_BIT) in which a backend has an operation; 0: it lacks it. */
HELIO_EXPORT uint32_t helio_operation_types(const char *operation, const char *backend);

typedef struct helio_setting {
  const char *name;          /* "HELIO_BACKEND" */
  const char *kind;          /* "text", "flag", "integer", "size", "fraction", "seconds", "choice" */
  const char *default_value; /* "" if none */
  const char *value;         /* in force */
  const char *choices;       /* "a|b|c", or "" */
  const char *help;
  const char *owner; /* "helio", or the plugin that reads it */
  bool set;          /* by the environment */
} helio_setting;

HELIO_EXPORT const helio_setting *const *helio_settings(int *count);

#ifdef __cplusplus
}
#endif

#include <helio/nn.h>

#include <helio/data.h> /* after nn.h, whose HELIO_MAKE it uses */

#include <helio/datasets.h> /* after data.h, whose arrays they cut */

#include <helio/strategy.h> /* after datasets.h, whose elements steps take */

#include <helio/train.h> /* after all, of which it is made */

#endif
