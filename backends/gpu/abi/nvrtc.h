/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC, CUDA's run-time compiler: libnvrtc.so.13 and older. The list of architectures is there since 11.2, CUBIN since
 * 11.1. */
#ifndef ABI_NVRTC_H
#define ABI_NVRTC_H

#include "common.h"

struct _nvrtcProgram;

enum {
  NVRTC_ABI_SUCCESS = 0,
  NVRTC_ABI_OUT_OF_MEMORY = 1,
  NVRTC_ABI_PROGRAM_CREATION_FAILURE = 2,
  NVRTC_ABI_INVALID_INPUT = 3,
  NVRTC_ABI_INVALID_PROGRAM = 4,
  NVRTC_ABI_INVALID_OPTION = 5,
  NVRTC_ABI_COMPILATION = 6,
  NVRTC_ABI_BUILTIN_OPERATION_FAILURE = 7,
  NVRTC_ABI_INTERNAL_ERROR = 11,
};

#define NVRTC_FUNCTIONS(X)                                                                                             \
  X(abi_enum, nvrtcVersion, (int *major, int *minor))                                                                  \
  X(abi_enum, nvrtcGetNumSupportedArchs, (int *count))                                                                 \
  X(abi_enum, nvrtcGetSupportedArchs, (int *architectures))                                                            \
  X(const char *, nvrtcGetErrorString, (abi_enum result))                                                              \
  X(abi_enum, nvrtcCreateProgram,                                                                                      \
    (struct _nvrtcProgram * *program, const char *text, const char *name, int header_count,                            \
     const char *const *headers, const char *const *header_names))                                                     \
  X(abi_enum, nvrtcDestroyProgram, (struct _nvrtcProgram * *program))                                                  \
  X(abi_enum, nvrtcCompileProgram, (struct _nvrtcProgram * program, int option_count, const char *const *options))     \
  X(abi_enum, nvrtcGetProgramLogSize, (struct _nvrtcProgram * program, size_t * bytes))                                \
  X(abi_enum, nvrtcGetProgramLog, (struct _nvrtcProgram * program, char *log))                                         \
  X(abi_enum, nvrtcGetPTXSize, (struct _nvrtcProgram * program, size_t * bytes))                                       \
  X(abi_enum, nvrtcGetPTX, (struct _nvrtcProgram * program, char *text))                                               \
  X(abi_enum, nvrtcGetCUBINSize, (struct _nvrtcProgram * program, size_t * bytes))                                     \
  X(abi_enum, nvrtcGetCUBIN, (struct _nvrtcProgram * program, char *image))

#endif
