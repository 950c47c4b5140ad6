/* SPDX-License-Identifier: Apache-2.0 */
/* libhiprtc.so.6, and a part of libamdhip64.so.6: HIP's run-time compiler. */
#include "hiprtc.h"

#include "compile.h"

#include <stdio.h>
#include <string.h>

#define DECLARE(result, name, arguments) SIM_EXPORT result name arguments;
HIPRTC_FUNCTIONS(DECLARE)

static const char kind[] = "hiprtcProgram";

static sim_program *check(struct _hiprtcProgram *program) {
  return sim_check(program, kind);
}

/* The vendor's own library says this in all versions. */
abi_enum hiprtcVersion(int *major, int *minor) {
  SIM_CALL();
  if (!major || !minor) return HIPRTC_ABI_INVALID_INPUT;
  *major = 9;
  *minor = 0;
  return HIPRTC_ABI_SUCCESS;
}

const char *hiprtcGetErrorString(abi_enum result) {
  static const char *const names[] = {
      "HIPRTC_SUCCESS",
      "HIPRTC_ERROR_OUT_OF_MEMORY",
      "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
      "HIPRTC_ERROR_INVALID_INPUT",
      "HIPRTC_ERROR_INVALID_PROGRAM",
      "HIPRTC_ERROR_INVALID_OPTION",
      "HIPRTC_ERROR_COMPILATION",
      "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
      "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
      "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
      "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
      "HIPRTC_ERROR_INTERNAL_ERROR",
  };
  return result < sizeof names / sizeof *names ? names[result] : "Invalid HIPRTC error code";
}

abi_enum hiprtcCreateProgram(struct _hiprtcProgram **program, const char *text, const char *name, int header_count,
                             const char **headers, const char **header_names) {
  SIM_CALL();
  if (!program || !text || header_count < 0 || (header_count > 0 && (!headers || !header_names)))
    return HIPRTC_ABI_INVALID_INPUT;
  if (header_count > 0) {
    fprintf(stderr, "gpusim: headers of a program are not supported\n");
    return HIPRTC_ABI_PROGRAM_CREATION_FAILURE;
  }
  *program = (struct _hiprtcProgram *)sim_program_create(SIM_HIP, kind, text, name);
  return *program ? HIPRTC_ABI_SUCCESS : HIPRTC_ABI_OUT_OF_MEMORY;
}

abi_enum hiprtcDestroyProgram(struct _hiprtcProgram **program) {
  SIM_CALL();
  if (!program) return HIPRTC_ABI_INVALID_INPUT;
  sim_program *known = check(*program);
  if (!known) return HIPRTC_ABI_INVALID_PROGRAM;
  sim_program_delete(known);
  *program = NULL;
  return HIPRTC_ABI_SUCCESS;
}

/* Versions of HIP end the process when they are given an architecture that they do not know, so that a program must
 * never do that. All other options are refused by the compiler proper, which is an error of the compilation. */
abi_enum hiprtcCompileProgram(struct _hiprtcProgram *program, int option_count, const char **options) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return HIPRTC_ABI_INVALID_PROGRAM;
  if (option_count < 0 || (option_count > 0 && !options)) return HIPRTC_ABI_INVALID_INPUT;
  if (sim_program_compile(known, options, option_count) == SIM_COMPILED) return HIPRTC_ABI_SUCCESS;
  if (strstr(known->log, "invalid target ID")) sim_violation("unknown architecture", "%s", known->log);
  return HIPRTC_ABI_COMPILATION;
}

abi_enum hiprtcGetProgramLogSize(struct _hiprtcProgram *program, size_t *bytes) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return HIPRTC_ABI_INVALID_PROGRAM;
  if (!bytes) return HIPRTC_ABI_INVALID_INPUT;
  *bytes = strlen(known->log) + 1;
  return HIPRTC_ABI_SUCCESS;
}

abi_enum hiprtcGetProgramLog(struct _hiprtcProgram *program, char *log) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return HIPRTC_ABI_INVALID_PROGRAM;
  if (!log) return HIPRTC_ABI_INVALID_INPUT;
  strcpy(log, known->log);
  return HIPRTC_ABI_SUCCESS;
}

abi_enum hiprtcGetCodeSize(struct _hiprtcProgram *program, size_t *bytes) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return HIPRTC_ABI_INVALID_PROGRAM;
  if (!bytes) return HIPRTC_ABI_INVALID_INPUT;
  *bytes = known->image ? sim_image_bytes(known->image) : 0;
  return HIPRTC_ABI_SUCCESS;
}

abi_enum hiprtcGetCode(struct _hiprtcProgram *program, char *code) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return HIPRTC_ABI_INVALID_PROGRAM;
  if (!code || !known->image) return HIPRTC_ABI_INVALID_INPUT;
  memcpy(code, known->image, sim_image_bytes(known->image));
  return HIPRTC_ABI_SUCCESS;
}
