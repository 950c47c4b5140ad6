/* SPDX-License-Identifier: Apache-2.0 */
/* Heliostat's plugin ABI: everything that the author of a backend or a collective needs.
 *
 * A plugin is a shared object that exports one symbol, the constant `helio_plugin_entry` of type helio_plugin. It links
 * nothing of the core and calls back only through the helio_host that it is given. The core opens it with
 * RTLD_NOW | RTLD_LOCAL, reads magic and ABI number from that constant before it calls anything, and then goes
 *
 *     probe  →  init  →  devices or collectives in use  →  finish
 *
 * Rules that hold everywhere in this file
 *
 * - Growth. Every struct begins with its own size, which its maker sets with sizeof. New fields go to the end. A reader
 *   uses only what lies within that size and takes missing fields for zero. If the struct is longer than the reader
 *   knows, the unknown bytes must all be zero, else the reader refuses it (HELIO_ABI_MISMATCH for tables,
 *   HELIO_NOT_SUPPORTED for a call): a setting that is not read would give wrong numbers. helio_struct_fits() below is
 *   that test. What a plugin can safely ignore (new functions of the host, new facts, hints) is not sent in this way:
 *   the core knows for which ABI a plugin was built and gives it structs of the size they had then. A reserved field is
 *   zero; a reader that finds another value refuses. No struct ends in padding, so that its size always tells which
 *   fields it has. Arrays are arrays of pointers or carry the size of an element.
 * - ABI number. While the major number is 0 the minor number must be equal; from 1.0 on an equal major number is
 * enough.
 * - Functions. Each entry says "required" or "(optional) default: …"; the core fills in missing ones, once.
 *   Unless its comment says otherwise, a function may be called from any thread, from several at a time, and blocks no
 *   longer than it takes to hand over a command.
 * - Errors. A function that fails returns a status other than HELIO_OK, has written none of its results, and has told
 *   the cause by host->fail(). An asynchronous device may report a failure late, from any later call.
 * - Device memory is a buffer and an offset in bytes, never an address. Tensors are contiguous and row-major. The
 *   core's offsets are multiples of the element's size, those of whole allocations multiples of the device's
 *   `alignment`. A tensor without elements has the place { NULL, 0 }, which must not be touched.
 * - Strings are UTF-8. What a plugin hands out stays valid until finish(), what it is given until the call returns,
 *   unless said otherwise.
 */
#ifndef HELIO_PLUGIN_H
#define HELIO_PLUGIN_H

#include <helio/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HELIO_ABI_MAJOR     0
#define HELIO_ABI_MINOR     1
#define HELIO_PLUGIN_MAGIC  UINT64_C(0x31474C504F494C48) /* "HLIOPLG1" in memory, little endian */
#define HELIO_PLUGIN_SYMBOL "helio_plugin_entry"

/* The size of a struct up to and including a field: what a reader needs at least. */
#define HELIO_STRUCT_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/* May a reader that knows `known` bytes of the struct at `object` use it? The struct begins with its size_t size. No
 * struct has 64 KiB: such a size was never set. */
static inline bool helio_struct_fits(const void *object, size_t known) {
  size_t size = *(const size_t *)object;
  if (size >= 65536) return false;
  for (size_t at = known; at < size; at++) {
    if (((const unsigned char *)object)[at] != 0) return false;
  }
  return true;
}

/* A plugin's own objects. The core holds only pointers to them and never looks inside. */
typedef struct helio_plugin_state helio_plugin_state;     /* made by init */
typedef struct helio_backend_device helio_backend_device; /* an opened logical device */
typedef struct helio_buffer helio_buffer;                 /* device memory */
typedef struct helio_stream helio_stream;                 /* commands in order */
typedef struct helio_event helio_event;                   /* a point in a stream */
typedef struct helio_plan helio_plan;                     /* a prepared kernel call */
typedef struct helio_communicator helio_communicator;     /* one rank of a group of devices */

/* A place in device memory. This struct is two words for ever. */
typedef struct helio_place {
  helio_buffer *buffer;
  size_t offset;
} helio_place;

/* ---------------------------------------------------------------------------------------------------------------------
 * Describing devices
 */

/* Capabilities of a device. */
enum {
  /* Every command is finished when its call returns; streams and events then only name an order. */
  HELIO_CAPABLE_SYNCHRONOUS = 1 << 0,
  /* native_buffer() is an address that the host may read and write whenever the stream is idle. */
  HELIO_CAPABLE_HOST_MEMORY = 1 << 1,
  /* An accelerator that is a part of the processor and has no memory of its own: it comes behind others, and where
   * there are others a strategy takes it only if it is named. */
  HELIO_CAPABLE_INTEGRATED = 1 << 2,
};

typedef struct helio_device_description {
  size_t size;
  uint32_t device_class;         /* helio_device_class */
  uint32_t capabilities;         /* HELIO_CAPABLE_… */
  const char *native_api;        /* the API of the handles of native_…(): "host", "cuda", "hip", "opencl", "none" */
  const char *name;              /* as the vendor calls it */
  const char *vendor;            /* "" where unknown */
  const char *architecture;      /* "x86-64 avx512", "sm_90", "gfx90a" */
  const char *bus_id;            /* "0000:3b:00.0"; "" where it has none. One card is used through one backend only */
  uint64_t memory;               /* bytes in total */
  uint32_t compute_units;        /* cores or multiprocessors */
  uint32_t alignment;            /* of allocations, in bytes: a power of two, at least 64 */
  const char *const *properties; /* (optional) more facts to show, "key=value", the last one NULL */
} helio_device_description;

/* What the core asks of one logical device when it opens it. */
typedef struct helio_open_options {
  size_t size;
  uint32_t logical_index; /* which of the logical devices cut from this physical one */
  uint32_t logical_count; /* how many there are, at least 1 */
  uint32_t threads;       /* CPU threads it may use; 0: not for this device */
  uint32_t spin_us;       /* how long a waiting thread may spin before it sleeps */
  uint64_t memory_limit;  /* for information: the core enforces it; 0: none */
} helio_open_options;

/* ---------------------------------------------------------------------------------------------------------------------
 * The host: what a plugin may call
 */

typedef struct helio_host helio_host;
typedef struct helio_member helio_member;
typedef struct helio_accumulation helio_accumulation;

/* Calls that must not overlap; see turn_begin. */
typedef enum helio_turn {
  HELIO_TURN_DRIVER = 1,
  HELIO_TURN_COLLECTIVE = 2,
} helio_turn;

/* The core gives each plugin a host of its own at probe; it stays valid until finish() has returned. The host itself is
 * the first argument of each function. */
struct helio_host {
  size_t size;
  uint32_t abi_major, abi_minor;
  const char *core_version;

  /* One line for the log, without the line's end; the core adds level and plugin. */
  void (*log)(const helio_host *host, helio_log_level level, const char *format, ...) HELIO_PRINTF(3, 4);

  /* Tells why the calling thread's current call fails, and returns the status: return host->fail(host, …); */
  helio_status (*fail)(const helio_host *host, helio_status status, const char *format, ...) HELIO_PRINTF(3, 4);

  /* The value of one of the plugin's own parameters, from the environment or its default. NULL for an unknown name. */
  const char *(*parameter)(const helio_host *host, const char *name);

  /* Host memory, at least 64 bytes aligned. Plugins take it from here so that a test can let any allocation fail. */
  void *(*allocate)(const helio_host *host, size_t bytes);
  void (*release)(const helio_host *host, void *memory);

  /* For collectives; both run in the order of `stream`, which belongs to the member written to (`to`, `into`).
   * copy: between any two devices, directly or through the host. The caller has made `stream` wait for whatever wrote
   * `source`. May block if a device has no other way.
   * accumulate: into[i] = (into[i] + from[i]) × scale, or the larger or smaller of the two. If the device has no kernel
   * for that, it is done elsewhere, and the call blocks. */
  helio_status (*copy)(const helio_host *host, const helio_member *to, helio_stream *stream, helio_place target,
                       const helio_member *from, helio_place source, size_t bytes);
  helio_status (*accumulate)(const helio_host *host, const helio_member *member, const helio_accumulation *what);

  /* For collectives whose devices wait for each other. A driver that takes memory, returns it or loads kernels may wait
   * for all devices, and other threads for the driver: if a device then waited for a part of a call that one of these
   * threads has yet to hand over, none would ever go on. So each rank's thread hands its part over between turn_begin
   * and turn_end, HELIO_TURN_COLLECTIVE, and ends its turn when all ranks have handed over theirs: in between no device
   * is asked for memory, events, streams or plans. The core asks for these with HELIO_TURN_DRIVER, and so may a backend
   * that calls its driver elsewhere. Any number of turns of the same kind may overlap; one that a thread begins within
   * another is a part of it, whatever its kind. Waits for turns of the other kind; one that has lasted 5 seconds (less
   * if HELIO_TIMEOUT is short) is taken to hang, and is no longer waited for. */
  void (*turn_begin)(const helio_host *host, helio_turn turn);
  void (*turn_end)(const helio_host *host, helio_turn turn);
};

/* A plugin's setting, read by the core from the environment and listed by `helio env`. */
typedef enum helio_parameter_kind {
  HELIO_PARAMETER_TEXT = 1,
  HELIO_PARAMETER_FLAG = 2,    /* 0 or 1 */
  HELIO_PARAMETER_INTEGER = 3, /* decimal, not negative */
  HELIO_PARAMETER_CHOICE = 4,  /* one of `choices` */
} helio_parameter_kind;

typedef struct helio_parameter {
  size_t size;
  const char *name;  /* HELIO_, then the plugin's name: HELIO_CPU_ISA */
  uint32_t kind;     /* helio_parameter_kind */
  uint32_t reserved; /* 0 */
  const char *default_value;
  const char *choices; /* "auto|avx512|avx2|portable"; NULL for other kinds */
  const char *help;    /* required: one sentence */
} helio_parameter;

/* ---------------------------------------------------------------------------------------------------------------------
 * Device vtable, first part: devices
 */

typedef struct helio_device_table {
  size_t size;

  /* required. How many physical devices there are. Never blocks for long; the answer does not change. */
  helio_status (*count)(helio_plugin_state *state, uint32_t *count);

  /* required. Fills `description`, whose size the core has set: write no further than that. */
  helio_status (*describe)(helio_plugin_state *state, uint32_t index, helio_device_description *description);

  /* required. Opens one logical device on physical device `index`. The first use of a device. May block. */
  helio_status (*open)(helio_plugin_state *state, uint32_t index, const helio_open_options *options,
                       helio_backend_device **device);

  /* required. The core has released all buffers, streams, events and plans before. */
  void (*close)(helio_backend_device *device);

  /* required. Free and total bytes of the physical device, or what the machine grants this process. */
  helio_status (*memory_info)(helio_backend_device *device, uint64_t *free, uint64_t *total);

  /* required. Waits until everything handed to the device is done; reports late failures. Blocks. */
  helio_status (*synchronize)(helio_backend_device *device);

  /* (optional) default: NULL. The vendor's own device, context, … for collectives that know `native_api`: of "cuda" the
   * CUcontext, which is the device's primary one; of "hip" a pointer to the int that is the device's number. */
  void *(*native_device)(helio_backend_device *device);
} helio_device_table;

/* ---------------------------------------------------------------------------------------------------------------------
 * Device vtable, second part: memory. Copies and fills run in the order of their stream and are never of 0 bytes.
 */

typedef struct helio_memory_table {
  size_t size;

  /* required. A buffer of exactly `bytes` (never 0), its start aligned as the description says; contents undefined.
   * HELIO_OUT_OF_MEMORY if there is none. May block. */
  helio_status (*allocate)(helio_backend_device *device, size_t bytes, helio_buffer **buffer);

  /* required. All commands that use the buffer are done. A failure (such as a write past the end that was noticed) is
   * reported, but the buffer is gone even so. */
  helio_status (*free)(helio_backend_device *device, helio_buffer *buffer);

  /* required. From the host; `source` must stay until the stream has passed. */
  helio_status (*copy_in)(helio_backend_device *device, helio_stream *stream, helio_place target, const void *source,
                          size_t bytes);

  /* required. To the host; `target` may be read when the stream has passed. */
  helio_status (*copy_out)(helio_backend_device *device, helio_stream *stream, void *target, helio_place source,
                           size_t bytes);

  /* required. Inside the device; the two do not overlap. */
  helio_status (*copy)(helio_backend_device *device, helio_stream *stream, helio_place target, helio_place source,
                       size_t bytes);

  /* required. `count` times the `pattern_bytes` (1, 2, 4 or 8) at `pattern`, which is read before the call returns. */
  helio_status (*fill)(helio_backend_device *device, helio_stream *stream, helio_place target, const void *pattern,
                       size_t pattern_bytes, size_t count);

  /* (optional) default: through the host. From another device of this backend to this one, in the order of this one's
   * `stream`; the core has made that stream wait for what wrote `source`. HELIO_NOT_SUPPORTED: this pair cannot; the
   * core then goes through the host. HELIO_DEVICE_FAILURE: one of the two; the core asks `from` by memory_info. */
  helio_status (*copy_peer)(helio_backend_device *device, helio_stream *stream, helio_place target,
                            helio_backend_device *from, helio_place source, size_t bytes);

  /* (optional, both or none) default: ordinary memory. Host memory that copies best (pinned). */
  helio_status (*host_allocate)(helio_backend_device *device, size_t bytes, void **memory);
  void (*host_free)(helio_backend_device *device, void *memory);

  /* (optional) default: NULL. The vendor's own buffer; with HELIO_CAPABLE_HOST_MEMORY its address (then required). Of
   * "cuda" the CUdeviceptr, of "hip" the address, each as a pointer. */
  void *(*native_buffer)(helio_buffer *buffer);
} helio_memory_table;

/* ---------------------------------------------------------------------------------------------------------------------
 * Device vtable, third part: streams and events. A stream runs its commands in order; different streams run in any
 * order except after events. The core calls destroy only when the stream or event is no longer waited for.
 */

typedef struct helio_stream_table {
  size_t size;

  /* required. */
  helio_status (*create)(helio_backend_device *device, helio_stream **stream);
  void (*destroy)(helio_backend_device *device, helio_stream *stream);

  /* required. Waits until the stream is empty; reports late failures of its commands. Blocks. */
  helio_status (*synchronize)(helio_backend_device *device, helio_stream *stream);

  /* required. An event that was never recorded counts as passed. Recording again forgets the earlier point. */
  helio_status (*event_create)(helio_backend_device *device, helio_event **event);
  void (*event_destroy)(helio_backend_device *device, helio_event *event);
  helio_status (*event_record)(helio_backend_device *device, helio_event *event, helio_stream *stream);

  /* required. HELIO_OK when passed, HELIO_NOT_READY (not a failure) when not, else what went wrong. Never blocks. */
  helio_status (*event_query)(helio_backend_device *device, helio_event *event);

  /* required. Blocks until the event has passed. */
  helio_status (*event_synchronize)(helio_backend_device *device, helio_event *event);

  /* required. Later commands of `stream` wait for the point that the event was last recorded at when this is called;
   * the host does not wait. The event may belong to another device of this backend. */
  helio_status (*wait)(helio_backend_device *device, helio_stream *stream, helio_event *event);

  /* (optional) default: NULL. The vendor's own stream: of "cuda" a CUstream, of "hip" a hipStream_t. */
  void *(*native_stream)(helio_stream *stream);
} helio_stream_table;

/* ---------------------------------------------------------------------------------------------------------------------
 * Kernel vtable
 */

/* Operations. Values never change; new ones are added at the end. A backend may have kernels for any subset.
 *
 * Signature: inputs → outputs. T is the operation's type, that of its first argument; V is a T that is also written; I
 * is int32 or int64; B is bool; W is uint8 or int32. A small letter is an argument that may be absent (NULL among the
 * plan's arguments), * any number more of the last. Scalars are named in brackets in their order. Shapes are checked by
 * the core before a plan is asked for; core/ops/table.c has the rules, `helio ops` prints the table.
 *
 * `core` in the last column: carried out by the core with the device vtable and other rows, no kernel is needed. */
#define HELIO_OPERATION_LIST(X)                                                                                        \
  X(FILL, 1) /* core */                                                                                                \
  X(COPY, 2) /* core */                                                                                                \
  X(CAST, 3) /* T→any: from a float to an integer towards zero, to the nearest end of the range, NaN to 0; between   \
                integers it wraps */                                                                                   \
  X(RESHAPE, 4)          /* core */                                                                                    \
  X(EXPAND_DIMS, 5)      /* core */                                                                                    \
  X(SQUEEZE, 6)          /* core */                                                                                    \
  X(SLICE, 7)            /* T→T: y[i…] = x[begin + i…]; helio_slice_attributes */                                \
  X(CONCAT, 8)           /* T*→T: one after the other along an axis; helio_axis_attributes */                        \
  X(ADD, 9)              /* TT→T: a + b, broadcast as in numpy */                                                    \
  X(SUB, 10)             /* TT→T: a − b */                                                                         \
  X(MUL, 11)             /* TT→T: a × b */                                                                          \
  X(ADD_N, 12)           /* T*→T: sum of inputs of one shape, added in their order */                                \
  X(SUM, 13)             /* T→T: sum over axes; helio_reduce_attributes */                                           \
  X(MATMUL, 14)          /* TTt→T: activation(a × b + bias); helio_matmul_attributes */                             \
  X(RELU, 15)            /* T→T: max(x, 0), NaN stays NaN */                                                         \
  X(TRANSPOSE, 16)       /* T→T: axis i of y is axis permutation[i] of x; helio_transpose_attributes */              \
  X(SPLIT, 17)           /* core */                                                                                    \
  X(PAD, 18)             /* T→T [value]: y[before + i…] = x[i…], value elsewhere; helio_slice_attributes */      \
  X(GATHER, 19)          /* TI→T: y[i…] = x[index[i…]], rows of the first axis; status word */                   \
  X(SCATTER_ADD, 20)     /* TI→T: y[index[i]] += x[i] in order of i, from zeros; status word */                      \
  X(WHERE, 21)           /* TTB→T: condition ? a : b, all three broadcast */                                         \
  X(ONE_HOT, 22)         /* I→T': 1 at the index, along a new last axis, else 0; all 0 if it is out of range */      \
  X(DIV, 23)             /* TT→T: a / b; integers towards zero, by zero 0 */                                         \
  X(POW, 24)             /* TT→T: a to the power b, floats */                                                        \
  X(MAXIMUM, 25)         /* TT→T: the larger; NaN if either is */                                                    \
  X(MINIMUM, 26)         /* TT→T */                                                                                  \
  X(EQUAL, 27)           /* TT→B, broadcast; so the five that follow */                                              \
  X(NOT_EQUAL, 28)       /* TT→B */                                                                                  \
  X(LESS, 29)            /* TT→B */                                                                                  \
  X(LESS_EQUAL, 30)      /* TT→B */                                                                                  \
  X(GREATER, 31)         /* TT→B */                                                                                  \
  X(GREATER_EQUAL, 32)   /* TT→B */                                                                                  \
  X(NEG, 33)             /* T→T: elementwise, so all to LEAKY_RELU */                                                \
  X(ABS, 34)             /* T→T */                                                                                   \
  X(SQUARE, 35)          /* T→T */                                                                                   \
  X(SQRT, 36)            /* T→T: floats, so all that follow */                                                       \
  X(RSQRT, 37)           /* T→T: 1 / √x */                                                                         \
  X(EXP, 38)             /* T→T */                                                                                   \
  X(LOG, 39)             /* T→T: natural */                                                                          \
  X(CLIP, 40)            /* T→T [low, high]: also integers */                                                        \
  X(SIGMOID, 41)         /* T→T: 1 / (1 + exp(−x)) */                                                              \
  X(TANH, 42)            /* T→T */                                                                                   \
  X(SOFTPLUS, 43)        /* T→T: log(1 + exp(x)) */                                                                  \
  X(SWISH, 44)           /* T→T: x × sigmoid(x) */                                                                  \
  X(GELU, 45)            /* T→T: x × Φ(x); helio_gelu_attributes */                                                \
  X(ELU, 46)             /* T→T [alpha]: x > 0 ? x : alpha × (exp(x) − 1) */                                      \
  X(LEAKY_RELU, 47)      /* T→T [alpha]: x > 0 ? x : alpha × x */                                                   \
  X(ACTIVATION_GRAD, 48) /* TT→T [alpha]: of dy and, by activation, x or y; helio_activation_attributes */           \
  X(MEAN, 49)            /* T→T: over axes, NaN over none; helio_reduce_attributes, so the two that follow */        \
  X(MAX, 50)             /* T→T: NaN if one is; the lowest value over no element */                                  \
  X(MIN, 51)             /* T→T: likewise, the highest */                                                            \
  X(ARGMAX, 52)          /* T→int64: the first of the largest along an axis; helio_axis_attributes */                \
  X(TOP_K, 53)           /* T→T int32: the k largest of the last axis and their places, the lower place first */     \
  X(IN_TOP_K,                                                                                                          \
    54) /* TI→B: fewer than k of row i are larger than x[i][index[i]]; false if that is not finite or not there */   \
  X(CONV2D, 55)             /* TTt→T: NHWC by HWIO, bias, activation; helio_conv2d_attributes */                     \
  X(CONV2D_GRAD_INPUT, 56)  /* TT→T: dx of dy and the kernel */                                                      \
  X(CONV2D_GRAD_KERNEL, 57) /* TT→T: the kernel's gradient of x and dy */                                            \
  X(MAX_POOL, 58) /* T→Tw: NHWC; the winner's place in its window (uint8 up to 256 places), the first of equals */   \
  X(MAX_POOL_GRAD, 59)        /* TW→T: dx of dy and the winners; status word; helio_pool_attributes, so all four */  \
  X(AVERAGE_POOL, 60)         /* T→T: over the part of the window that is not padding */                             \
  X(AVERAGE_POOL_GRAD, 61)    /* T→T: dx of dy */                                                                    \
  X(SOFTMAX, 62)              /* T→T: along the last axis, so the three that follow */                               \
  X(LOG_SOFTMAX, 63)          /* T→T */                                                                              \
  X(SOFTMAX_GRAD, 64)         /* TT→T: dx of dy and y */                                                             \
  X(LOG_SOFTMAX_GRAD, 65)     /* TT→T: dx of dy and y */                                                             \
  X(SPARSE_CROSS_ENTROPY, 66) /* TI→Tt: −log softmax(x[i])[label[i]] and its gradient by x; status word */         \
  X(CROSS_ENTROPY, 67)        /* TT→Tt: −Σ label × log softmax(x[i]) and its gradient by x */                    \
  X(MOMENTS, 68)              /* T→TT: mean and variance (÷ n) over all axes but the last */                        \
  X(NORMALIZE, 69)            /* TTTtt→T [epsilon]: x, mean, variance, gamma, beta */                                \
  X(NORMALIZE_GRAD_SUMS, 70)  /* TTTT→TT [epsilon]: dy, x, mean, variance → dgamma, dbeta */                       \
  X(NORMALIZE_GRAD_INPUT, 71) /* TTTTtTT→T [epsilon, 1/n]: dy, x, mean, variance, gamma, dgamma, dbeta */            \
  X(LAYER_NORM, 72)           /* Ttt→Ttt [epsilon]: x, gamma, beta → y, mean, 1/deviation of the last axis */      \
  X(LAYER_NORM_GRAD, 73)      /* TTtTT→Ttt: dy, x, gamma, mean, 1/deviation → dx, dgamma, dbeta */                 \
  X(RANDOM_BITS, 74)    /* →int32 [key, step, base]: element i is word base + i of Philox 4×32-10, see below */     \
  X(RANDOM_UNIFORM, 75) /* →T [key, step, base, low, high] */                                                        \
  X(RANDOM_NORMAL, 76)  /* →T [key, step, base, mean, deviation] */                                                  \
  X(DROPOUT, 77)        /* T→T [key, step, base, rate]: uniform < rate ? 0 : x / (1 − rate) */                     \
  X(COMBINE_ROWS, 78)   /* TI→TIt: rows of equal index summed in order, indices ascending, and sums of the rows'     \
                           squares; −1 and zeros fill the end */                                                     \
  X(SGD_UPDATE, 79)     /* VvTi→ [rate, decay, momentum]: weights, velocity, gradient; helio_sgd_attributes */       \
  X(ADAM_UPDATE, 80)    /* VVVTit→ [rate, decay, beta1, beta2, epsilon]: weights, m, v, gradient */                  \
  X(NADAM_UPDATE, 81)   /* VVVTit→ [rate, decay, beta1, beta2, epsilon, on m, on gradient, on v] */                  \
  X(RMSPROP_UPDATE, 82) /* VVvvTit→ [rate, decay, rho, momentum, epsilon]: weights, square, momentum, mean */        \
  X(ADAGRAD_UPDATE, 83) /* VVTit→ [rate, decay, epsilon]: weights, sum of squares */                                 \
  X(ALL_REDUCE, 84)     /* core */

/* clang-format off */
/* Random numbers. Word n of the stream (key, step) is word n mod 4 of the Philox 4×32-10 block with the counter
 * (low n/4, high n/4, low step, high step) and the key (low key, high key). Element i of a call draws
 *   bits, float32 uniform, dropout: word base + i; uniform in [0, 1) is (word >> 8) × 2⁻²⁴
 *   float64 uniform:                words 2 (base + i) and 2 (base + i) + 1 as low and high; (pair >> 11) × 2⁻⁵³
 *   normal:                         the same two words a, b: √(−2 ln((a + 1) × 2⁻³²)) × cos(2π b × 2⁻³²) in double
 * and then low + u × (high − low), or mean + deviation × z, in the operation's type. Word numbers wrap at 2⁶⁴. Key, step
 * and base are `integer` scalars, all others `real`.
 *
 * Updates. First weights −= weights × decay, unless decay is 0. After the gradient come indices and, of all but SGD,
 * squares. With indices the gradient is rows: row i of it belongs to row index[i] of the weights, indices are those of
 * COMBINE_ROWS (distinct, −1: none), and rows that are not named have a gradient of zero; the result is that of the
 * dense gradient. Squares are given with indices only and have the gradient's shape: they take the place of g² wherever
 * it stands below, and are zero in rows that are not named. So what COMBINE_ROWS gives, the sum of equal rows and the
 * sum of their squares, updates as Keras 3 does, which squares such rows one by one. With g the gradient, w the weights:
 *   SGD      velocity absent: w −= rate g. Else v = momentum v − rate g, w += nesterov ? momentum v − rate g : v
 *   ADAM     m += (g − m)(1 − beta1), v += (g² − v)(1 − beta2), w −= rate m / (√v + epsilon); the caller has put the
 *            correction of bias into `rate`
 *   NADAM    m and v likewise; w −= rate (onM m + onG g) / (√(onV v) + epsilon)
 *   RMSPROP  s = rho s + (1 − rho) g²; with `mean`: a = rho a + (1 − rho) g, d = s − a² + epsilon, else d = s + epsilon;
 *            u = rate g / √d; with `momentum`: p = momentum p + u, w −= p, else w −= u
 *   ADAGRAD  s += g², w −= rate g / √(s + epsilon) */
/* clang-format on */

typedef enum helio_operation {
#define HELIO_OPERATION_ENUM(name, value) HELIO_OP_##name = value,
  HELIO_OPERATION_LIST(HELIO_OPERATION_ENUM)
#undef HELIO_OPERATION_ENUM
} helio_operation;

/* A tensor as a plan sees it. */
typedef struct helio_argument {
  size_t size;
  uint32_t type; /* helio_type */
  uint32_t rank;
  int64_t extent[HELIO_MAX_RANK];
} helio_argument;

/* Attributes of operations, where they have any. SLICE, PAD: */
typedef struct helio_slice_attributes {
  size_t size;
  int64_t begin[HELIO_MAX_RANK]; /* the output's shape says how much */
} helio_slice_attributes;

/* CONCAT, ARGMAX */
typedef struct helio_axis_attributes {
  size_t size;
  uint32_t axis;
  uint32_t reserved; /* 0 */
} helio_axis_attributes;

/* SUM, MEAN, MAX, MIN */
typedef struct helio_reduce_attributes {
  size_t size;
  uint32_t axes;     /* bit i: axis i of the input is summed. The output has the other axes in order, with or without
                        axes of extent 1 in place of the summed ones */
  uint32_t reserved; /* 0 */
} helio_reduce_attributes;

typedef struct helio_matmul_attributes {
  size_t size;
  uint32_t transpose_a, transpose_b; /* 1: the last two axes are swapped */
  uint32_t activation;               /* helio_activation, 0: none */
  uint32_t reserved;                 /* 0 */
} helio_matmul_attributes;

typedef struct helio_transpose_attributes {
  size_t size;
  uint32_t permutation[HELIO_MAX_RANK];
} helio_transpose_attributes;

typedef struct helio_gelu_attributes {
  size_t size;
  uint32_t approximate; /* 0: by the error function, 1: 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))) */
  uint32_t reserved;    /* 0 */
} helio_gelu_attributes;

/* ACTIVATION_GRAD: the second input is y for RELU, SIGMOID, TANH and ELU, x for the others. */
typedef struct helio_activation_attributes {
  size_t size;
  uint32_t activation; /* helio_activation */
  uint32_t reserved;   /* 0 */
} helio_activation_attributes;

/* IN_TOP_K */
typedef struct helio_top_k_attributes {
  size_t size;
  uint32_t k;
  uint32_t reserved; /* 0 */
} helio_top_k_attributes;

/* CONV2D and its gradients. The kernel is (height, width, channels of x ÷ groups, channels of y). */
typedef struct helio_conv2d_attributes {
  size_t size;
  uint32_t stride[2], dilation[2]; /* of height and width, at least 1 */
  uint32_t padding[4];             /* zeros above, below, to the left, to the right */
  uint32_t groups;                 /* at least 1 */
  uint32_t activation;             /* helio_activation, 0: none; of CONV2D alone */
} helio_conv2d_attributes;

/* MAX_POOL, AVERAGE_POOL and their gradients. No window lies in the padding altogether, no input extent is 0 unless the
 * output's is. */
typedef struct helio_pool_attributes {
  size_t size;
  uint32_t window[2], stride[2]; /* of height and width, at least 1 */
  uint32_t padding[4];           /* above, below, to the left, to the right */
} helio_pool_attributes;

typedef struct helio_sgd_attributes {
  size_t size;
  uint32_t nesterov; /* 1: look ahead */
  uint32_t reserved; /* 0 */
} helio_sgd_attributes;

enum {
  HELIO_ALLOWED_NONDETERMINISTIC = 1 << 0,  /* the same call may give other last bits next time */
  HELIO_ALLOWED_REDUCED_PRECISION = 1 << 1, /* float32 products in a shorter format such as TF32 */
};

/* A call as a plan sees it: everything that is known before there is data. */
typedef struct helio_call {
  size_t size;
  uint32_t operation; /* helio_operation */
  uint32_t input_count, output_count;
  uint32_t allowed;                       /* HELIO_ALLOWED_…: what the kernel may do, but need not */
  const helio_argument *const *arguments; /* the inputs, then the outputs; NULL for an optional input that is absent */
  const void *attributes;                 /* the operation's struct, NULL if it has none */
} helio_call;

/* The answer of plan(). */
typedef struct helio_plan_answer {
  size_t size;
  helio_plan *plan;
  size_t workspace; /* bytes of device memory that run() needs besides its arguments */
} helio_plan_answer;

/* A value that may differ from one run of a plan to the next (a learning rate, a counter). Eight bytes for ever. */
typedef union helio_scalar {
  double real;
  int64_t integer;
} helio_scalar;

/* Where a kernel reports bad data, such as an index past the end of its table. If `code` is 0 it writes the three
 * fields, else nothing; then it goes on with something harmless (row 0, zero). Only one of a kernel's threads writes:
 * the one that changes `code` from 0 by compare and swap. The core reads the word later, after the stream. */
typedef struct helio_status_word {
  uint32_t code;      /* 0, or HELIO_BAD_DATA */
  uint32_t operation; /* helio_operation */
  int64_t value;      /* the offending value */
} helio_status_word;

/* A call as run() sees it. */
typedef struct helio_run {
  size_t size;
  helio_stream *stream;
  const helio_place *places;   /* as the plan's arguments, in their order */
  size_t place_size;           /* bytes from one place to the next */
  helio_place workspace;       /* { NULL, 0 } if the plan asked for none */
  helio_place status;          /* of a helio_status_word, always there */
  const helio_scalar *scalars; /* the operation's, read before the call returns */
  size_t scalar_count;
} helio_run;

/* One operation of a backend. */
typedef struct helio_kernel {
  size_t size;
  uint32_t operation; /* helio_operation */
  uint32_t types;     /* HELIO_TYPE_BIT of every type of the first input that plan() may accept */

  /* required. HELIO_NOT_SUPPORTED, with the reason told by host->fail(), if this call cannot be served: the core
   * then takes the next device that can. May block (compile, search). */
  helio_status (*plan)(helio_backend_device *device, const helio_call *call, helio_plan_answer *answer);

  /* required. Hands the work to run->stream. Allocates nothing. The same plan may run on several threads at a time. The
   * output of ADD, SUB, MUL, ADD_N, MAXIMUM, MINIMUM and RELU may lie exactly on an input of the same shape; otherwise
   * arguments that are written do not overlap others. What `run` points to is valid only during the call. */
  helio_status (*run)(helio_plan *plan, const helio_run *run);

  /* required. No run of the plan is under way, and streams have finished everything that runs handed to them. */
  void (*plan_free)(helio_plan *plan);
} helio_kernel;

typedef struct helio_kernel_table {
  size_t size;
  size_t count;
  const helio_kernel *const *kernels;
} helio_kernel_table;

/* ---------------------------------------------------------------------------------------------------------------------
 * Collective vtable
 */

/* One rank's device, as the core shows it to a collective: the device, its description and its backend's tables, in
 * which every optional entry is filled. It stays where it is until the communicator that was created with it is
 * destroyed; functions of the host need this pointer itself, not one to a copy, and streams that come from the core. */
struct helio_member {
  size_t size;
  helio_backend_device *device;
  const helio_device_description *description;
  const helio_device_table *devices;
  const helio_memory_table *memory;
  const helio_stream_table *streams;
  const char *name;     /* "/job:localhost/replica:0/task:0/device:GPU:1" */
  uint64_t physical_id; /* equal for logical devices that share a physical one */
};

enum {
  HELIO_COLLECTIVE_IN_PLACE = 1 << 0,     /* source and target may be the same place */
  HELIO_COLLECTIVE_ORDERED = 1 << 1,      /* sums are formed in the order of ranks */
  HELIO_COLLECTIVE_ASYNCHRONOUS = 1 << 2, /* calls do not wait for the other ranks */
};

/* What a collective offers for a set of devices. */
typedef struct helio_collective_offer {
  size_t size;
  uint32_t score;    /* the highest one is taken; 50 for "works", 100 for "made for these devices" */
  uint32_t types;    /* HELIO_TYPE_BIT of what it can sum */
  uint32_t flags;    /* HELIO_COLLECTIVE_… */
  uint32_t reserved; /* 0 */
} helio_collective_offer;

#define HELIO_COLLECTIVE_ID_SIZE 256

typedef struct helio_communicator_options {
  size_t size;
  const void *id;             /* HELIO_COLLECTIVE_ID_SIZE bytes from new_id(), the same for all ranks */
  uint32_t rank;              /* this one */
  uint32_t rank_count;        /* of all processes together */
  const helio_member *member; /* this rank's device */
  uint32_t timeout_ms;        /* for every wait between ranks; 0: none */
  uint32_t spin_us;           /* how long a waiting thread may spin before it sleeps */
} helio_communicator_options;

typedef enum helio_reduction {
  HELIO_REDUCTION_SUM = 1,
  HELIO_REDUCTION_MAX = 2,
  HELIO_REDUCTION_MIN = 3,
} helio_reduction;

/* One step of a sum on one device, for host->accumulate. */
struct helio_accumulation {
  size_t size;
  helio_stream *stream; /* of the member's device */
  helio_place into, from;
  uint32_t type;      /* helio_type */
  uint32_t reduction; /* helio_reduction */
  size_t count;       /* of elements */
  double scale;       /* of a sum of floats; 1 in all other cases */
};

/* One rank's part in a collective call. Counts are of elements.
 *
 * all_reduce      every target gets the sum (largest, smallest) of all sources
 * reduce          the root's target gets it; the places of other ranks' targets are { NULL, 0 } or not looked at
 * broadcast       every target, the root's too, gets the root's source; other ranks' sources are not looked at
 * all_gather      every target gets all sources, one after the other in order of ranks; in place: the source is this
 *                 rank's part of the target
 * reduce_scatter  each target gets its part of the sum of all sources, which have the length of all parts together; in
 *                 place: the target is this rank's part of the source
 *
 * A call takes its place in the order of the rank's own stream: it reads what earlier commands of that stream wrote,
 * and later ones find the result and may write to the source. A sum is rounded to its type after each addition, and
 * float numbers too small to be normal may count as 0: so all collectives that sum in order agree to the bit. broadcast
 * and all_gather move any type. Ranks whose calls differ (in function, count, type, reduction, root) get an error, all
 * of them. If a rank's own device failed, that rank gets HELIO_DEVICE_FAILURE and the others HELIO_ABORTED: this
 * tells the core which device to drop. After a failure the communicator can only be destroyed. */
typedef struct helio_collective_call {
  size_t size;
  helio_stream *stream; /* of the rank's own device */
  helio_place source, target;
  uint32_t type;        /* helio_type */
  uint32_t reduction;   /* helio_reduction */
  uint32_t root;        /* of reduce and broadcast */
  uint32_t reserved;    /* 0 */
  size_t count;         /* all_reduce, reduce, broadcast: of source and target; all_gather: of this rank's source;
                           reduce_scatter: of this rank's target */
  const size_t *counts; /* all_gather, reduce_scatter: each rank's count, in order of ranks */
} helio_collective_call;

/* Every rank makes the same calls in the same order, each from its own thread; one thread that drives several ranks
 * puts the calls between group_start and group_end. */
typedef struct helio_collective_table {
  size_t size;

  /* required. Can this set of devices be served? HELIO_NOT_SUPPORTED with the reason, in words for the user,
   * by host->fail(); HELIO_NO_DEVICE, with a reason too, if nobody would expect it because the collective is made for
   * other kinds of devices. Only the former is reported when another collective is taken. */
  helio_status (*offer)(helio_plugin_state *state, const helio_member *const *members, size_t count,
                        helio_collective_offer *offer);

  /* required. An id for a new group, which the caller passes to all of its ranks in its own way. */
  helio_status (*new_id)(helio_plugin_state *state, void *id);

  /* required. Joins the group; blocks until all ranks have, unless grouped. HELIO_TIMED_OUT, naming the ranks that
   * did not come, when the time is up; likewise for all functions that wait for other ranks. */
  helio_status (*create)(helio_plugin_state *state, const helio_communicator_options *options,
                         helio_communicator **communicator);

  /* required. Waits until the rank's device has done what the calls handed to it. No call of this rank is under way. */
  void (*destroy)(helio_communicator *communicator);

  /* required. Ends every wait between the ranks of the group, from any thread: their calls fail with HELIO_ABORTED, or
   * with what had gone wrong before. Does not end what a device is doing. Afterwards the communicator can only be
   * destroyed, and the sources and targets of calls that failed are undefined: other ranks' devices may still read them
   * or write to them. Whoever wants to read, write or free them has to synchronize the devices of all ranks before,
   * each when the call of its own rank has come back. */
  void (*abort)(helio_communicator *communicator);

  /* required. HELIO_OK, or what has gone wrong in the group, from then on for ever. Never blocks, on any thread. */
  helio_status (*poll)(helio_communicator *communicator);

  /* required. */
  helio_status (*all_reduce)(helio_communicator *communicator, const helio_collective_call *call);
  helio_status (*broadcast)(helio_communicator *communicator, const helio_collective_call *call);

  /* (optional) default: all_reduce. */
  helio_status (*reduce)(helio_communicator *communicator, const helio_collective_call *call);

  /* (optional) default: one broadcast from each rank. */
  helio_status (*all_gather)(helio_communicator *communicator, const helio_collective_call *call);

  /* (optional) default: one reduce to each rank. */
  helio_status (*reduce_scatter)(helio_communicator *communicator, const helio_collective_call *call);

  /* (optional, both or none) default: calls are not grouped; the core then uses a thread for each rank. */
  helio_status (*group_start)(helio_plugin_state *state);
  helio_status (*group_end)(helio_plugin_state *state);
} helio_collective_table;

/* ---------------------------------------------------------------------------------------------------------------------
 * The plugin
 */

typedef struct helio_probe_answer {
  size_t size;
  uint32_t devices;    /* how many; 0 is an answer, not an error. Collectives leave it 0 */
  uint32_t is_host;    /* 1: device 0 is the machine's own CPU, with memory that the host can touch. One such backend is
                          always used, for operations that no other has a kernel for */
  uint32_t inspecting; /* by the caller. 1: the process only serves to read the reason: libraries that are otherwise
                          opened when needed may be opened to see whether they are there */
  uint32_t no_use;     /* 1: a collective that cannot sum anything on this machine; the reason says why. Backends
                          answer 0 devices instead */
  char reason[488];    /* in words: what was found, or what is missing and how to get it */
} helio_probe_answer;

typedef struct helio_plugin {
  size_t size;
  uint64_t magic; /* HELIO_PLUGIN_MAGIC */
  uint32_t abi_major, abi_minor;
  const char *name;        /* lower case letters, digits, '-': what HELIO_BACKEND and device names use */
  const char *version;     /* the plugin's own */
  const char *description; /* a few words */

  /* required. Cheap and without side effects: can this plugin work here? A backend without a device answers 0 devices
   * and HELIO_OK. A failure means that something is broken. */
  helio_status (*probe)(const helio_host *host, helio_probe_answer *answer);

  /* required. The host stays valid until finish() has returned. A process may hold several hosts: each init() makes a
   * state of its own, and everything made from it belongs to it. */
  helio_status (*init)(const helio_host *host, helio_plugin_state **state);

  /* required. Everything made from `state` has been released before. */
  void (*finish)(helio_plugin_state *state);

  /* A backend has the first three and, as a rule, the fourth; a collective has the fifth. The others are NULL. */
  const helio_device_table *devices;
  const helio_memory_table *memory;
  const helio_stream_table *streams;
  const helio_kernel_table *kernels;
  const helio_collective_table *collective;

  /* (optional) default: none. The plugin's settings, the last one NULL. */
  const helio_parameter *const *parameters;
} helio_plugin;

/* The one symbol that a plugin exports. It has no version in its name: magic and ABI number say what follows. */
extern HELIO_EXPORT const helio_plugin helio_plugin_entry;

#ifdef __cplusplus
}
#endif
#endif
