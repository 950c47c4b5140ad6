/* SPDX-License-Identifier: Apache-2.0 */
/* libMIOpen.so: which solutions there are for a convolution, and what a handle remembers of those that were listed,
 * compiled or found. As in the real library nothing is known of a problem before it was asked for with this handle. */
#include "miopen_face.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------------------------------
 * Solutions. How long each takes is made up, and so are the numbers of the second and the third; the gradients of
 * weights of the fastest one are not deterministic, whatever the attribute says, as in versions of the real library.
 */

typedef struct trait {
  uint64_t id; /* plus the direction */
  abi_enum algorithm;
  float time;
  bool channels_last, gaps; /* layouts other than NCHW that it takes */
  bool doubles;
  bool small;                 /* only filters of 3 by 3, not strided, not dilated, not grouped */
  bool loose_weights;         /* its gradients of weights are not deterministic */
  size_t bytes_per_filter[3]; /* of the workspace, for each element of w, by direction */
  bool columns;               /* a workspace for the input spread out */
} trait;

static const trait traits[MIOPEN_SOLUTIONS] = {
    {.id = MIOPEN_ABI_GROUP_WEIGHTS - SIM_BACKWARD_FILTER,
     .algorithm = MIOPEN_ABI_IMPLICIT_GEMM,
     .time = 0.1f,
     .channels_last = true,
     .loose_weights = true,
     .bytes_per_filter = {0, 0, 4}},
    {.id = 1011, .algorithm = MIOPEN_ABI_WINOGRAD, .time = 0.2f, .small = true, .bytes_per_filter = {0, 0, 16}},
    {.id = 1021, .algorithm = MIOPEN_ABI_GEMM, .time = 0.3f, .columns = true},
    {.id = MIOPEN_ABI_NAIVE_FORWARD,
     .algorithm = MIOPEN_ABI_DIRECT,
     .time = 10,
     .channels_last = true,
     .gaps = true,
     .doubles = true},
};

static bool is_only_channels_last(const sim_tensor *tensor) {
  return sim_tensor_is_packed(tensor, true) && !sim_tensor_is_packed(tensor, false);
}

/* Layouts are not mixed. */
static bool takes_layout(const trait *t, const sim_convolution_call *call) {
  if (sim_convolution_is_packed(call, false)) return true;
  if (sim_convolution_is_packed(call, true)) return t->channels_last;
  return t->gaps && !is_only_channels_last(&call->x) && !is_only_channels_last(&call->w) &&
         !is_only_channels_last(&call->y);
}

static bool is_small(const sim_convolution_call *call) {
  const sim_convolution *c = &call->convolution;
  for (int i = 0; i < 2; i++)
    if (call->w.dims[2 + i] != 3 || c->stride[i] != 1 || c->dilation[i] != 1) return false;
  return c->groups == 1;
}

static bool takes(const trait *t, const miopen_problem *problem) {
  const sim_convolution_call *call = &problem->call;
  if (!t->doubles && call->x.type == SIM_FLOAT64) return false;
  return takes_layout(t, call) && (!t->small || is_small(call));
}

static size_t workspace_of(const trait *t, const sim_convolution_call *call) {
  size_t elements = sim_tensor_count(&call->w), bytes = sim_times(t->bytes_per_filter[call->direction], elements);
  if (t->columns && (call->w.dims[2] > 1 || call->w.dims[3] > 1))
    bytes = sim_times(sim_times(elements / (size_t)call->w.dims[0], (size_t)call->y.dims[2]),
                      sim_times((size_t)call->y.dims[3], 4));
  return bytes;
}

int miopen_solve(const miopen_problem *problem, miopen_abi_solution solutions[MIOPEN_SOLUTIONS]) {
  int count = 0;
  for (int i = 0; i < MIOPEN_SOLUTIONS; i++)
    if (takes(&traits[i], problem))
      solutions[count++] = (miopen_abi_solution){.time = traits[i].time,
                                                 .workspace = workspace_of(&traits[i], &problem->call),
                                                 .id = traits[i].id + problem->call.direction,
                                                 .algorithm = traits[i].algorithm};
  return count;
}

bool miopen_solution(const miopen_problem *problem, uint64_t id, miopen_abi_solution *solution) {
  miopen_abi_solution all[MIOPEN_SOLUTIONS];
  int count = miopen_solve(problem, all);
  for (int i = 0; i < count; i++)
    if (all[i].id == id) {
      *solution = all[i];
      return true;
    }
  return false;
}

bool miopen_is_deterministic(sim_direction direction, uint64_t id) {
  for (int i = 0; i < MIOPEN_SOLUTIONS; i++)
    if (traits[i].id + direction == id) return direction != SIM_BACKWARD_FILTER || !traits[i].loose_weights;
  return true;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Memory of problems
 */

struct miopen_memory {
  miopen_memory *next;
  miopen_problem problem;
  uint64_t id; /* of a solution; with MIOPEN_FOUND of an algorithm */
  unsigned steps;
};

static bool same_tensor(const sim_tensor *a, const sim_tensor *b) {
  return a->type == b->type && sim_tensor_has_dims(a, b->dims) && !memcmp(a->strides, b->strides, sizeof a->strides);
}

static bool same_convolution(const sim_convolution *a, const sim_convolution *b) {
  return !memcmp(a->pad, b->pad, sizeof a->pad) && !memcmp(a->stride, b->stride, sizeof a->stride) &&
         !memcmp(a->dilation, b->dilation, sizeof a->dilation) && a->groups == b->groups;
}

static bool same_problem(const miopen_problem *a, const miopen_problem *b) {
  return a->call.direction == b->call.direction && same_tensor(&a->call.x, &b->call.x) &&
         same_tensor(&a->call.w, &b->call.w) && same_tensor(&a->call.y, &b->call.y) &&
         same_convolution(&a->call.convolution, &b->call.convolution);
}

static miopen_memory *find(struct miopenHandle *handle, const miopen_problem *problem, uint64_t id) {
  for (miopen_memory *m = handle->memory; m; m = m->next)
    if (m->id == id && same_problem(&m->problem, problem)) return m;
  return NULL;
}

void miopen_remember(struct miopenHandle *handle, const miopen_problem *problem, uint64_t id, miopen_step step) {
  miopen_memory *memory = find(handle, problem, id);
  if (!memory) {
    memory = calloc(1, sizeof *memory);
    if (!memory) {
      fprintf(stderr, "gpusim: no memory to remember a convolution\n");
      abort();
    }
    *memory = (miopen_memory){.next = handle->memory, .problem = *problem, .id = id};
    handle->memory = memory;
  }
  memory->steps |= step;
}

bool miopen_remembers(struct miopenHandle *handle, const miopen_problem *problem, uint64_t id, miopen_step step) {
  miopen_memory *memory = find(handle, problem, id);
  return memory && memory->steps & step;
}

void miopen_forget(struct miopenHandle *handle) {
  while (handle->memory) {
    miopen_memory *next = handle->memory->next;
    free(handle->memory);
    handle->memory = next;
  }
}
