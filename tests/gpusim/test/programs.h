/* SPDX-License-Identifier: Apache-2.0 */
/* Correct programs, which must pass under every seed: `programs NAME`. Those of programs_faults.c meet what `run
 * --fault` or another setting arranges, and must cope with it. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "mistakes.h"

#include "cuda_driver.h"
#include "hip.h"
#include "sim.h"

#include <stdint.h>

typedef struct program {
  const char *name;
  void (*run)(void);
} program;

extern const program fault_programs[], wait_programs[], device_programs[]; /* each ends with one without a name */

/* Ends the program unless it is so. */
#define EXPECT(condition) need(!(condition), #condition, __FILE__, __LINE__)

CUDA_DRIVER_FUNCTIONS(FACE_DECLARATION)
HIP_FUNCTIONS(FACE_DECLARATION)

void load_cuda(void);
void load_hip(void);
void open_cuda(int devices); /* with the contexts of so many, the first of them current */
void close_cuda(int devices);
extern struct CUctx_st *contexts[4];

cuda_abi_address allocate(size_t bytes);
void *allocate_pinned(size_t bytes);
struct CUstream_st *make_stream(unsigned flags);
struct CUevent_st *make_event(void);

#endif
