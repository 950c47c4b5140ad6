/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the stand-in for HIP's runtime share. */
#ifndef RUNTIME_H
#define RUNTIME_H

#include "hip.h"
#include "sim.h"

/* The compiler compares each definition with the declaration that the backends use. */
#define X(result, name, arguments) SIM_EXPORT result name arguments;
HIP_FUNCTIONS(X)
HIP_OPTIONAL_FUNCTIONS(X)
HIP_OTHER_FUNCTIONS(X)
HIP_PROPERTIES_FUNCTION(X)
HIP_OLDER_PROPERTIES_FUNCTION(X)
#undef X

enum { RUNTIME_FIRST_BUS = 0x40 }; /* of PCI; CUDA's devices have other ones */

/* Each call begins with one of these. Whatever they answer but SIM_OK is the call's answer. */
abi_enum runtime_enter_device(const char *name, int index, sim_device **device);
abi_enum runtime_enter(const char *name,
                       sim_device **device); /* this thread's device, the first unless set, which is well */

/* What a call answers is remembered until hipGetLastError is called. */
abi_enum runtime_leave(abi_enum status);

#endif
