/* SPDX-License-Identifier: Apache-2.0 */
/* hipRTC, HIP's run-time compiler: libhiprtc.so.7 and older, and libamdhip64 itself until 6. HIP 7 adds a const to the
 * options, which a caller does not notice. */
#ifndef ABI_HIPRTC_H
#define ABI_HIPRTC_H

#include "common.h"

/* For the comparison with the headers of HIP 7. */
#ifndef HIPRTC_ABI_OPTIONS
#define HIPRTC_ABI_OPTIONS const char **
#endif

struct _hiprtcProgram;

enum {
  HIPRTC_ABI_SUCCESS = 0,
  HIPRTC_ABI_OUT_OF_MEMORY = 1,
  HIPRTC_ABI_PROGRAM_CREATION_FAILURE = 2,
  HIPRTC_ABI_INVALID_INPUT = 3,
  HIPRTC_ABI_INVALID_PROGRAM = 4,
  HIPRTC_ABI_INVALID_OPTION = 5,
  HIPRTC_ABI_COMPILATION = 6,
  HIPRTC_ABI_BUILTIN_OPERATION_FAILURE = 7,
  HIPRTC_ABI_INTERNAL_ERROR = 11,
};

#define HIPRTC_FUNCTIONS(X)                                                                                            \
  X(abi_enum, hiprtcVersion, (int *major, int *minor))                                                                 \
  X(const char *, hiprtcGetErrorString, (abi_enum result))                                                             \
  X(abi_enum, hiprtcCreateProgram,                                                                                     \
    (struct _hiprtcProgram * *program, const char *text, const char *name, int header_count, const char **headers,     \
     const char **header_names))                                                                                       \
  X(abi_enum, hiprtcDestroyProgram, (struct _hiprtcProgram * *program))                                                \
  X(abi_enum, hiprtcCompileProgram, (struct _hiprtcProgram * program, int option_count, HIPRTC_ABI_OPTIONS options))   \
  X(abi_enum, hiprtcGetProgramLogSize, (struct _hiprtcProgram * program, size_t * bytes))                              \
  X(abi_enum, hiprtcGetProgramLog, (struct _hiprtcProgram * program, char *log))                                       \
  X(abi_enum, hiprtcGetCodeSize, (struct _hiprtcProgram * program, size_t * bytes))                                    \
  X(abi_enum, hiprtcGetCode, (struct _hiprtcProgram * program, char *code))

#endif
