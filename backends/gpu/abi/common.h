/* SPDX-License-Identifier: Apache-2.0 */
/* The vendors' functions, declared by ourselves, because their headers are not needed to build us. Each header of this
 * folder has lists, X(result, exported_name, (arguments)), that serve the backends' tables of pointers, their lookup,
 * the stand-ins of tests/gpusim, and the comparison with the vendor's own header where that is installed. What is
 * looked up must be there, but for optional ones; these, and functions that only tests call, are in lists of their own.
 */
#ifndef ABI_COMMON_H
#define ABI_COMMON_H

#include <stddef.h>
#include <stdint.h>

/* An enum of a vendor, none of which has negative values, is compatible with this for gcc and clang. */
typedef unsigned int abi_enum;

#endif
