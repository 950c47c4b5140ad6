/* SPDX-License-Identifier: Apache-2.0 */
/* What the plans and runs of every backend of this tree have in common: reading a call as plugin.h describes it, and
 * refusing what is not understood. Compiled into each plugin, for a plugin links nothing. */
#ifndef BACKEND_CALL_H
#define BACKEND_CALL_H

#include <helio/plugin.h>

#define CALL_FLOAT_TYPES                                                                                               \
  (HELIO_TYPE_BIT(HELIO_FLOAT32) | HELIO_TYPE_BIT(HELIO_FLOAT64) | HELIO_TYPE_BIT(HELIO_FLOAT16) |                     \
   HELIO_TYPE_BIT(HELIO_BFLOAT16))

/* The types that arithmetic is done in: all numbers but the small ones. */
#define CALL_ARITHMETIC_TYPES (CALL_FLOAT_TYPES | HELIO_TYPE_BIT(HELIO_INT32) | HELIO_TYPE_BIT(HELIO_INT64))

#define CALL_ALL_TYPES (CALL_ARITHMETIC_TYPES | HELIO_TYPE_BIT(HELIO_UINT8) | HELIO_TYPE_BIT(HELIO_BOOL))

/* What a kernel asks of its calls, in the letters of plugin.h: a T has the first argument's type, I is int32 or int64,
 * B bool, W uint8 or int32, '?' any type; V is a T that is written too; small letters may be absent; '*' at the end:
 * any number more of the last. */
typedef struct call_signature {
  const char *inputs, *outputs;
  uint32_t types; /* that T may be */
} call_signature;

/* Refuses a call that this backend does not understand in full or that has another signature. `where` is what messages
 * call the device: "the CPU". */
helio_status call_check(const helio_host *host, const char *where, const helio_call *call,
                        const helio_plan_answer *answer, const call_signature *signature);

/* Copies the call's attributes to `known`, which is `size` bytes; fields that the caller does not have become zero. */
helio_status call_attributes(const helio_host *host, const helio_call *call, void *known, size_t size);

/* "MATMUL"; the operation must be one of the list. */
const char *call_operation_name(uint32_t operation);

static inline const helio_argument *call_input(const helio_call *call, uint32_t index) {
  return call->arguments[index];
}
static inline const helio_argument *call_output(const helio_call *call) {
  return call->arguments[call->input_count];
}
static inline const helio_argument *call_output_at(const helio_call *call, uint32_t index) {
  return call->arguments[call->input_count + index];
}

size_t call_type_size(uint32_t type);      /* 0 for an unknown one */
const char *call_type_name(uint32_t type); /* "float32" */
size_t call_element_count(const helio_argument *argument);
bool call_same_shape(const helio_argument *a, const helio_argument *b);

/* HELIO_OK if run() understands all of `run`. Inline, for it is part of the cost of the smallest operation. */
helio_status run_refuse(const helio_host *host);
static inline helio_status run_check(const helio_host *host, const helio_run *run) {
  if (run->size >= HELIO_STRUCT_SIZE(helio_run, place_size) && helio_struct_fits(run, sizeof *run)) return HELIO_OK;
  return run_refuse(host);
}

static inline helio_place run_place(const helio_run *run, size_t index) {
  return *(const helio_place *)((const unsigned char *)run->places + index * run->place_size);
}

/* { NULL, 0 } if the core gave no workspace. */
static inline helio_place run_workspace(const helio_run *run) {
  return run->size < HELIO_STRUCT_SIZE(helio_run, workspace) ? (helio_place){NULL, 0} : run->workspace;
}

/* A value that may differ from run to run. 0 if the core gave fewer. */
static inline bool run_has_scalar(const helio_run *run, size_t index) {
  return run->size >= HELIO_STRUCT_SIZE(helio_run, scalar_count) && index < run->scalar_count;
}
static inline double run_real(const helio_run *run, size_t index) {
  return run_has_scalar(run, index) ? run->scalars[index].real : 0;
}
static inline int64_t run_integer(const helio_run *run, size_t index) {
  return run_has_scalar(run, index) ? run->scalars[index].integer : 0;
}

#endif
