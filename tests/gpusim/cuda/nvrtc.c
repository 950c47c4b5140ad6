/* SPDX-License-Identifier: Apache-2.0 */
/* libnvrtc.so: CUDA's run-time compiler, of version 13.0 or, with FACE_VERSION 12, of 12.0. */
#include "nvrtc.h"

#include "compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECLARE(result, name, arguments) SIM_EXPORT result name arguments;
NVRTC_FUNCTIONS(DECLARE)

static const char kind[] = "nvrtcProgram";

/* In rising order. */
static const int architectures_known[] = {
#if FACE_VERSION < 13
    50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90,
#else
    75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121,
#endif
};
enum { ARCHITECTURES = sizeof architectures_known / sizeof *architectures_known };

static sim_program *check(struct _nvrtcProgram *program) {
  return sim_check(program, kind);
}

abi_enum nvrtcVersion(int *major, int *minor) {
  SIM_CALL();
  if (!major || !minor) return NVRTC_ABI_INVALID_INPUT;
  *major = FACE_VERSION;
  *minor = 0;
  return NVRTC_ABI_SUCCESS;
}

abi_enum nvrtcGetNumSupportedArchs(int *count) {
  SIM_CALL();
  if (!count) return NVRTC_ABI_INVALID_INPUT;
  *count = ARCHITECTURES;
  return NVRTC_ABI_SUCCESS;
}

abi_enum nvrtcGetSupportedArchs(int *architectures) {
  SIM_CALL();
  if (!architectures) return NVRTC_ABI_INVALID_INPUT;
  memcpy(architectures, architectures_known, sizeof architectures_known);
  return NVRTC_ABI_SUCCESS;
}

const char *nvrtcGetErrorString(abi_enum result) {
  static const char *const names[] = {
      "NVRTC_SUCCESS",
      "NVRTC_ERROR_OUT_OF_MEMORY",
      "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
      "NVRTC_ERROR_INVALID_INPUT",
      "NVRTC_ERROR_INVALID_PROGRAM",
      "NVRTC_ERROR_INVALID_OPTION",
      "NVRTC_ERROR_COMPILATION",
      "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
      "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
      "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
      "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
      "NVRTC_ERROR_INTERNAL_ERROR",
  };
  return result < sizeof names / sizeof *names ? names[result] : "NVRTC_ERROR unknown";
}

abi_enum nvrtcCreateProgram(struct _nvrtcProgram **program, const char *text, const char *name, int header_count,
                            const char *const *headers, const char *const *header_names) {
  SIM_CALL();
  if (!program || !text || header_count < 0 || (header_count > 0 && (!headers || !header_names)))
    return NVRTC_ABI_INVALID_INPUT;
  if (header_count > 0) {
    fprintf(stderr, "gpusim: headers of a program are not supported\n");
    return NVRTC_ABI_PROGRAM_CREATION_FAILURE;
  }
  *program = (struct _nvrtcProgram *)sim_program_create(SIM_CUDA, kind, text, name);
  return *program ? NVRTC_ABI_SUCCESS : NVRTC_ABI_OUT_OF_MEMORY;
}

abi_enum nvrtcDestroyProgram(struct _nvrtcProgram **program) {
  SIM_CALL();
  if (!program) return NVRTC_ABI_INVALID_INPUT;
  sim_program *known = check(*program);
  if (!known) return NVRTC_ABI_INVALID_PROGRAM;
  sim_program_delete(known);
  *program = NULL;
  return NVRTC_ABI_SUCCESS;
}

/* Whether this version knows the architecture that is asked for, if one is and the options are right. */
static bool knows_architecture(const char *const *options, int count) {
  sim_target target;
  char *log = NULL;
  bool understood = sim_options_parse(SIM_CUDA, options, count, &target, &log);
  free(log);
  if (!understood) return true;
  int wanted = atoi(strchr(target.architecture, '_') + 1);
  for (int i = 0; i < ARCHITECTURES; i++)
    if (architectures_known[i] == wanted) return true;
  return false;
}

abi_enum nvrtcCompileProgram(struct _nvrtcProgram *program, int option_count, const char *const *options) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return NVRTC_ABI_INVALID_PROGRAM;
  if (option_count < 0 || (option_count > 0 && !options)) return NVRTC_ABI_INVALID_INPUT;
  if (!knows_architecture(options, option_count)) {
    free(known->log);
    free(known->image);
    known->image = NULL;
    known->log = strdup("nvrtc: error: invalid value for --gpu-architecture (-arch)\n");
    return NVRTC_ABI_INVALID_OPTION;
  }
  switch (sim_program_compile(known, options, option_count)) {
  case SIM_COMPILED:
    return NVRTC_ABI_SUCCESS;
  case SIM_BAD_OPTION:
    return NVRTC_ABI_INVALID_OPTION;
  case SIM_NOT_COMPILED:
    break;
  }
  return NVRTC_ABI_COMPILATION;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What came out: sizes first, with the 0 at the end of what is text
 */

abi_enum nvrtcGetProgramLogSize(struct _nvrtcProgram *program, size_t *bytes) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return NVRTC_ABI_INVALID_PROGRAM;
  if (!bytes) return NVRTC_ABI_INVALID_INPUT;
  *bytes = strlen(known->log) + 1;
  return NVRTC_ABI_SUCCESS;
}

abi_enum nvrtcGetProgramLog(struct _nvrtcProgram *program, char *log) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return NVRTC_ABI_INVALID_PROGRAM;
  if (!log) return NVRTC_ABI_INVALID_INPUT;
  strcpy(log, known->log);
  return NVRTC_ABI_SUCCESS;
}

/* There is one for real architectures too. Where there is none it is the empty text. */
static char *ptx(const sim_program *program, size_t *bytes) {
  *bytes = 1;
  return program->image ? sim_image_to_text(program->image, bytes) : calloc(1, 1);
}

abi_enum nvrtcGetPTXSize(struct _nvrtcProgram *program, size_t *bytes) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return NVRTC_ABI_INVALID_PROGRAM;
  if (!bytes) return NVRTC_ABI_INVALID_INPUT;
  free(ptx(known, bytes));
  return NVRTC_ABI_SUCCESS;
}

abi_enum nvrtcGetPTX(struct _nvrtcProgram *program, char *text) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return NVRTC_ABI_INVALID_PROGRAM;
  if (!text) return NVRTC_ABI_INVALID_INPUT;
  size_t bytes;
  char *made = ptx(known, &bytes);
  if (!made) return NVRTC_ABI_OUT_OF_MEMORY;
  memcpy(text, made, bytes);
  free(made);
  return NVRTC_ABI_SUCCESS;
}

/* A virtual architecture has no code of a device. */
static size_t code_bytes(const sim_program *program) {
  return program->image && !program->image->is_virtual ? sim_image_bytes(program->image) : 0;
}

abi_enum nvrtcGetCUBINSize(struct _nvrtcProgram *program, size_t *bytes) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return NVRTC_ABI_INVALID_PROGRAM;
  if (!bytes) return NVRTC_ABI_INVALID_INPUT;
  *bytes = code_bytes(known);
  return NVRTC_ABI_SUCCESS;
}

abi_enum nvrtcGetCUBIN(struct _nvrtcProgram *program, char *image) {
  SIM_CALL();
  sim_program *known = check(program);
  if (!known) return NVRTC_ABI_INVALID_PROGRAM;
  if (!image || !code_bytes(known)) return NVRTC_ABI_INVALID_INPUT;
  memcpy(image, known->image, code_bytes(known));
  return NVRTC_ABI_SUCCESS;
}
