/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that do one thing wrong, to show that gpusim finds it. `mistakes NAME` makes the mistake, `mistakes --right
 * NAME` is the same program without it, `mistakes --list` tells all names. Each part of gpusim has a table of them. */
#ifndef MISTAKES_H
#define MISTAKES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mistake {
  const char *name;
  const char *kind;        /* of the violation that gpusim must report, as in sim_violation; part of it is enough */
  void (*run)(bool wrong); /* with the mistake or without; leaves nothing behind, but for mistakes that are leaks */
  const char *settings;    /* (optional) "GPUSIM_CUDA=2 GPUSIM_HIP=1"; default: one CUDA device and one HIP device */
} mistake;

/* Each ends with an entry without a name. */
extern const mistake memory_mistakes[], pinned_mistakes[], stream_mistakes[], wait_mistakes[], hip_mistakes[],
    kernel_mistakes[], library_mistakes[], hip_library_mistakes[], collective_mistakes[];

/* A function of a face, found as a backend finds it; ends the process with a message if there is none. */
void *face_function(const char *soname, const char *name);

/* A pointer of this name with core_ before it to a function of the core, for what only work of its own can do wrong. */
#define CORE(name)                                                                                                     \
  __typeof__(&name) core_##name;                                                                                       \
  *(void **)&core_##name = face_function("libgpusim.so", #name)

/* The kind of a mistake that breaks no rule which could be checked, such as a look at what is not there yet: the
 * program itself sees that its numbers are wrong and calls this. */
#define WRONG_NUMBERS "the numbers are wrong"
enum { WRONG_NUMBERS_EXIT = 4 };
_Noreturn void fail_numbers(void);

/* Stops with a message unless the status is 0: what a correct program relies on. */
#define NEED(call) need((int)(call), #call, __FILE__, __LINE__)
void need(int status, const char *call, const char *file, int line);

/* From a list of a vendor's functions: pointers of the same names (of this file, or declared here and defined there),
 * and their lookup. CUDA_DRIVER_FUNCTIONS(FACE_POINTER) static void load(void) { #define X(result, name, arguments)
 * FACE_LOOKUP("libcuda.so.1", name) CUDA_DRIVER_FUNCTIONS(X) #undef X
 *   } */
#define FACE_POINTER(result, name, arguments)     static result(*name) arguments;
#define FACE_DECLARATION(result, name, arguments) extern result(*name) arguments;
#define FACE_DEFINITION(result, name, arguments)  result(*name) arguments;
#define FACE_LOOKUP(soname, name)                 *(void **)&name = face_function(soname, #name);

#endif
