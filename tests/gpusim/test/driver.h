/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's driver and HIP's runtime as the programs of the tests use them: functions under the vendors' names, and the
 * few steps that most programs begin and end with. Each step ends the process when the vendor's call fails. */
#ifndef DRIVER_H
#define DRIVER_H

#include "mistakes.h"

#include "cuda_driver.h"
#include "hip.h"

#include <stdint.h>

/* Ends the program unless it is so. */
#define EXPECT(condition) need(!(condition), #condition, __FILE__, __LINE__)

CUDA_DRIVER_FUNCTIONS(FACE_DECLARATION)
CUDA_DRIVER_OTHER_FUNCTIONS(FACE_DECLARATION)
HIP_FUNCTIONS(FACE_DECLARATION)
HIP_OLDER_PROPERTIES_FUNCTION(FACE_DECLARATION)
HIP_OTHER_FUNCTIONS(FACE_DECLARATION)

void cuda_load(void);
void cuda_open(int devices); /* with the contexts of so many, the first of them current */
void cuda_close(int devices);
extern struct CUctx_st *cuda_contexts[4];

cuda_abi_address cuda_allocate(size_t bytes);
void *cuda_pin(size_t bytes);
struct CUstream_st *cuda_stream(unsigned flags);
struct CUevent_st *cuda_event(void); /* without timing */

void hip_load(void);
void hip_open(void);

#endif
