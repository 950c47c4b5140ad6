/* SPDX-License-Identifier: Apache-2.0 */
#include "abi.h"

#ifdef WITH_RCCL_HEADER
#include <rccl/rccl.h>

#define NCCL_ABI_STREAM ihipStream_t
#include "../../../../backends/gpu/abi/nccl.h"

#include "nccl_values.h"

const abi_check rccl_check = {"RCCL", .version = {NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH}};
#else
const abi_check rccl_check = {"RCCL", .absent = "configure found no rccl/rccl.h of ROCm"};
#endif
