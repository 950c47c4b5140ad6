/* SPDX-License-Identifier: Apache-2.0 */
/* What users and plugin authors share: status codes, element types, classes of devices. Included by helio.h and by
 * plugin.h; there is no need to include it by itself. */
#ifndef HELIO_TYPES_H
#define HELIO_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every answer that a call can give. Values never change; new ones are added at the end. */
#define HELIO_STATUS_LIST(X)                                                                                           \
  X(OK, 0, "success")                                                                                                  \
  X(INVALID_ARGUMENT, 1, "invalid argument")                                                                           \
  X(NOT_SUPPORTED, 2, "not supported")                                                                                 \
  X(NO_DEVICE, 3, "no such device")                                                                                    \
  X(OUT_OF_MEMORY, 4, "out of memory")                                                                                 \
  X(DEVICE_FAILURE, 5, "device failure")                                                                               \
  X(ABI_MISMATCH, 6, "ABI mismatch")                                                                                   \
  X(NOT_READY, 7, "not ready")                                                                                         \
  X(BAD_DATA, 8, "bad data")                                                                                           \
  X(WRONG_STATE, 9, "not allowed in this state")                                                                       \
  X(TIMED_OUT, 10, "timed out")                                                                                        \
  X(ABORTED, 11, "aborted")                                                                                            \
  X(REPLICA_LOST, 12, "replica lost")                                                                                  \
  X(IO_FAILURE, 13, "input or output failed")

typedef enum helio_status {
#define HELIO_STATUS_ENUM(name, value, text) HELIO_##name = value,
  HELIO_STATUS_LIST(HELIO_STATUS_ENUM)
#undef HELIO_STATUS_ENUM
} helio_status;

/* Element types: symbol, value, name as TensorFlow prints it, bytes of one element. Values never change.
 * FLOAT16 and BFLOAT16 are storage: kernels compute in float32. */
#define HELIO_TYPE_LIST(X)                                                                                             \
  X(FLOAT32, 1, "float32", 4)                                                                                          \
  X(FLOAT64, 2, "float64", 8)                                                                                          \
  X(FLOAT16, 3, "float16", 2)                                                                                          \
  X(BFLOAT16, 4, "bfloat16", 2)                                                                                        \
  X(INT32, 5, "int32", 4)                                                                                              \
  X(INT64, 6, "int64", 8)                                                                                              \
  X(UINT8, 7, "uint8", 1)                                                                                              \
  X(BOOL, 8, "bool", 1)

typedef enum helio_type {
#define HELIO_TYPE_ENUM(name, value, text, bytes) HELIO_##name = value,
  HELIO_TYPE_LIST(HELIO_TYPE_ENUM)
#undef HELIO_TYPE_ENUM
} helio_type;

/* A set of types is a word with one bit for each. */
#define HELIO_TYPE_BIT(type) (1u << (type))

/* The largest rank of a tensor. */
#define HELIO_MAX_RANK 8

/* What a device is, whatever backend reaches it. An OpenCL device that is really a CPU is of class CPU. */
typedef enum helio_device_class {
  HELIO_CLASS_CPU = 1,
  HELIO_CLASS_GPU = 2,
} helio_device_class;

/* Activations that a kernel can apply to its result before it is stored. 0 is none. */
typedef enum helio_activation {
  HELIO_LINEAR = 1,
  HELIO_RELU = 2,
  HELIO_SIGMOID = 3,
  HELIO_TANH = 4,
  HELIO_SOFTPLUS = 5,
  HELIO_SWISH = 6,
  HELIO_GELU = 7,
  HELIO_GELU_TANH = 8,
  HELIO_ELU = 9, /* from here on no kernel of another operation is asked for them: the core runs them after it */
  HELIO_LEAKY_RELU = 10,
  HELIO_SOFTMAX = 11,
  HELIO_LOG_SOFTMAX = 12,
  HELIO_RELU6 = 13,
  HELIO_SELU = 14,
  HELIO_SOFTSIGN = 15,
  HELIO_EXPONENTIAL = 16,
  HELIO_HARD_SIGMOID = 17,
} helio_activation;

typedef enum helio_log_level {
  HELIO_LOG_DEBUG = 1,
  HELIO_LOG_INFO = 2,
  HELIO_LOG_WARNING = 3,
  HELIO_LOG_ERROR = 4,
  HELIO_LOG_OFF = 5,
} helio_log_level;

#if defined(__GNUC__)
#define HELIO_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define HELIO_EXPORT              __attribute__((visibility("default")))
#else
#define HELIO_PRINTF(text, first)
#define HELIO_EXPORT
#endif

#ifdef __cplusplus
}
#endif
#endif
