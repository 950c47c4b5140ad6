/* SPDX-License-Identifier: Apache-2.0 */
/* A program of a run-time compiler: a text, and after it was compiled an image or the reason why there is none. */
#include "compile.h"

#include <stdlib.h>
#include <string.h>

sim_program *sim_program_create(sim_vendor vendor, const char *kind, const char *text, const char *name) {
  sim_program *program = sim_new(kind, sizeof *program, NULL);
  if (!program) return NULL;
  program->vendor = vendor;
  program->text = sim_print("#line 1 \"%s\"\n%s", name ? name : "default_program", text);
  program->log = strdup("");
  return program;
}

sim_outcome sim_program_compile(sim_program *program, const char *const *options, int count) {
  sim_target target;
  char *log;
  free(program->log);
  free(program->image);
  program->image = NULL;
  if (!sim_options_parse(program->vendor, options, count, &target, &log)) {
    program->log = log;
    return SIM_BAD_OPTION;
  }
  size_t bytes;
  program->image = sim_compile(program->vendor, program->text, options, count, &bytes, &program->log);
  return program->image ? SIM_COMPILED : SIM_NOT_COMPILED;
}

void sim_program_delete(sim_program *program) {
  free(program->text);
  free(program->log);
  free(program->image);
  sim_delete(program);
}
