/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libMIOpen.so share: descriptors, problems, and what a handle remembers of them.
 *
 * MIOpen hardly looks at its arguments, so that much of what is a status of cuDNN is undefined here, and a violation.
 */
#ifndef MIOPEN_FACE_H
#define MIOPEN_FACE_H

#include "library.h"
#include "miopen.h"

#define X(result, name, arguments) SIM_EXPORT result name arguments;
MIOPEN_FUNCTIONS(X)
#undef X

/* Each is unfinished until it was set. */
struct miopenTensorDescriptor {
  sim_object object;
  bool finished;
  int rank; /* those of other ranks than 4 are refused by all that is done here */
  sim_tensor tensor;
};

struct miopenConvolutionDescriptor {
  sim_object object;
  bool finished, transposed, deterministic;
  int alternative_half; /* 0, 1, or -1: gradients alone. Halves are rounded to bfloat16, on gfx90a */
  sim_convolution convolution;
};

struct miopenPoolingDescriptor {
  sim_object object;
  bool finished;
  sim_pooling pooling;
};

/* How far a program has come with one way to solve one problem. */
typedef enum miopen_step { MIOPEN_LISTED = 1, MIOPEN_COMPILED = 2, MIOPEN_FOUND = 4 } miopen_step;

typedef struct miopen_memory miopen_memory;

struct miopenHandle {
  sim_handle handle;
  miopen_memory *memory; /* of problems */
};

abi_enum miopen_status(sim_status status);
/* 0, or the error of a handle that cannot be used here and now. */
abi_enum miopen_enter(struct miopenHandle *handle, const char *name, sim_place *place);

/* 0 if it can be used: live, of its kind, finished, and if a tensor of 4 dimensions. */
abi_enum miopen_use_tensor(const struct miopenTensorDescriptor *tensor, const char *what);
abi_enum miopen_use_convolution(const struct miopenConvolutionDescriptor *convolution);
abi_enum miopen_use_pooling(const struct miopenPoolingDescriptor *pooling);

/* Only 1 and 0 are implemented, but for softmax. */
abi_enum miopen_one_and_zero(sim_type type, const void *alpha, const void *beta);

/* ---------------------------------------------------------------------------------------------------------------------
 * Problems and their solutions
 */

typedef struct miopen_problem {
  sim_convolution_call call; /* without memory */
  bool deterministic;
} miopen_problem;

enum { MIOPEN_SOLUTIONS = 4 };

/* The solutions of a problem, the fastest first, and how many there are. */
int miopen_solve(const miopen_problem *problem, miopen_abi_solution solutions[MIOPEN_SOLUTIONS]);
/* false: the problem has no such solution. */
bool miopen_solution(const miopen_problem *problem, uint64_t id, miopen_abi_solution *solution);
bool miopen_is_deterministic(sim_direction direction, uint64_t id);

void miopen_remember(struct miopenHandle *handle, const miopen_problem *problem, uint64_t id, miopen_step step);
bool miopen_remembers(struct miopenHandle *handle, const miopen_problem *problem, uint64_t id, miopen_step step);
void miopen_forget(struct miopenHandle *handle); /* everything */

/* The descriptors of a convolution, each under the name that it has in the forward direction, and what is in memory. */
typedef struct miopen_arguments {
  sim_direction direction;
  const struct miopenTensorDescriptor *w, *x, *y;
  const struct miopenConvolutionDescriptor *convolution;
  const void *w_data, *x_data, *y_data;
  void *workspace;
  size_t bytes;
} miopen_arguments;

/* From what a call was given, whichever direction it is of; without memory, and with it. */
miopen_arguments miopen_shapes(sim_direction direction, const struct miopenTensorDescriptor *w,
                               const struct miopenTensorDescriptor *x, const struct miopenTensorDescriptor *y,
                               const struct miopenConvolutionDescriptor *convolution);
miopen_arguments miopen_with_memory(miopen_arguments shapes, const void *w, const void *x, const void *y,
                                    void *workspace, size_t bytes);

/* Enters the handle and makes the problem of the descriptors. */
abi_enum miopen_begin(struct miopenHandle *handle, const char *name, const miopen_arguments *arguments,
                      sim_place *place, miopen_problem *problem);
/* The same, and finds its solutions. *count is 0 where there are none, which each call answers in its own way. */
abi_enum miopen_begin_solved(struct miopenHandle *handle, const char *name, const miopen_arguments *arguments,
                             sim_place *place, miopen_problem *problem, miopen_abi_solution solutions[MIOPEN_SOLUTIONS],
                             int *count);
/* Checks the memory and does it. */
abi_enum miopen_run(const sim_place *place, const miopen_arguments *arguments, miopen_problem *problem,
                    const miopen_abi_solution *solution);

#endif
