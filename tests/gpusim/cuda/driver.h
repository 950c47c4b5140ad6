/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the stand-in for CUDA's driver share. */
#ifndef DRIVER_H
#define DRIVER_H

#include "cuda_driver.h"
#include "sim.h"

/* The compiler compares each definition with the declaration that the backends use. */
#define X(result, name, arguments) SIM_EXPORT result name arguments;
CUDA_DRIVER_FUNCTIONS(X)
CUDA_DRIVER_OPTIONAL_FUNCTIONS(X)
CUDA_DRIVER_OTHER_FUNCTIONS(X)
#undef X

enum { DRIVER_FIRST_BUS = 0x10 }; /* of PCI; HIP's devices have other ones */

/* Each call begins with one of these. Whatever they answer but SIM_OK is the call's answer. */
abi_enum driver_enter(const char *name);
abi_enum driver_enter_device(const char *name, int index, sim_device **device);
abi_enum driver_enter_context(const char *name, sim_device **device); /* the current one, which is well */

sim_device *driver_device_of(struct CUctx_st *context); /* NULL after a violation */

#endif
