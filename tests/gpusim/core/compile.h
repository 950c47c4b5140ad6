/* SPDX-License-Identifier: Apache-2.0 */
/* From kernel text to something that can be loaded: what the files of the compiler share, and what the faces of the
 * run-time compilers need beyond sim.h. */
#ifndef SIM_COMPILE_H
#define SIM_COMPILE_H

#include "sim.h"

/* kernel.h, shim.hpp and shim_math.hpp. */
extern const char sim_shim_text[];

/* ---------------------------------------------------------------------------------------------------------------------
 * Options
 */

enum { SIM_COMPILE_ARGUMENTS = 64 };

typedef struct sim_target {
  char architecture[64]; /* "sm_80", "compute_80", "gfx90a:sramecc+:xnack-" */
  bool is_virtual;       /* of no device: CUDA's compute_XY, which a driver translates for the device that it has */
  const char *arguments[SIM_COMPILE_ARGUMENTS]; /* for the preprocessor, ended by NULL; point into the options */
  int argument_count;
} sim_target;

/* False if the vendor's compiler would refuse an option, with its words in `log` (malloc). Which of CUDA's
 * architectures are known depends on the compiler's version: the face looks at that. */
SIM_EXPORT bool sim_options_parse(sim_vendor vendor, const char *const *options, int count, sim_target *target,
                                  char **log);

/* ---------------------------------------------------------------------------------------------------------------------
 * Images
 */

typedef struct sim_image sim_image;
struct sim_image {
  char magic[16];
  uint32_t vendor, is_virtual;
  char architecture[64];
  uint64_t bytes; /* of the ELF file that follows, aligned for anything */
  uint64_t sum;   /* of that file … */
  uint64_t head;  /* … and of all above */
};

sim_image *sim_image_make(sim_vendor vendor, const sim_target *target, const void *elf, size_t bytes);
SIM_EXPORT size_t sim_image_bytes(const sim_image *image); /* header and all */
/* Whether it is as it was made. The header first: nothing else of it can be believed before. */
bool sim_image_has_head(const sim_image *image);
bool sim_image_is_whole(const sim_image *image);

/* An image as a text in the manner of PTX, in memory of malloc, `bytes` of it with the 0 at its end. */
SIM_EXPORT char *sim_image_to_text(const sim_image *image, size_t *bytes);

/* From whatever a program has loaded, a copy of malloc; NULL if it is no image that this device can load. */
sim_image *sim_image_read(sim_device *device, const void *data, sim_status *status);

/* ---------------------------------------------------------------------------------------------------------------------
 * Programs, which are what the faces of the compilers hand out
 */

typedef enum sim_outcome { SIM_COMPILED, SIM_NOT_COMPILED, SIM_BAD_OPTION } sim_outcome;

typedef struct sim_program {
  sim_object object;
  sim_vendor vendor;
  char *text;
  char *log;        /* never NULL */
  sim_image *image; /* NULL: was not compiled, or in vain */
} sim_program;

SIM_EXPORT sim_program *sim_program_create(sim_vendor vendor, const char *kind, const char *text, const char *name);
SIM_EXPORT sim_outcome sim_program_compile(sim_program *program, const char *const *options, int count);
SIM_EXPORT void sim_program_delete(sim_program *program);

/* ---------------------------------------------------------------------------------------------------------------------
 * Text
 */

/* Kernel text after its macros were replaced, with shared memory of the launch's size made accessible and a table of
 * its kernels at the end. NULL: impossible, with the reason in `log`. */
char *sim_text_complete(const char *text, char **log);

/* Runs the compiler with these arguments after its name in a folder; its words are appended to `log`. */
bool sim_run_compiler(const char *folder, const char *const *arguments, char **log);

char *sim_file_read(const char *path, size_t *bytes); /* malloc, with a 0 behind it; NULL: cannot be read */
bool sim_file_write(const char *path, const void *data, size_t bytes);

/* printf to memory of malloc. */
char *sim_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
