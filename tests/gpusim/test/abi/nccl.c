/* SPDX-License-Identifier: Apache-2.0 */
#include "abi.h"

#ifdef WITH_NCCL_HEADER
#include <nccl.h>

#include "../../../../backends/gpu/abi/nccl.h"

#include "nccl_values.h"

const abi_check nccl_check = {"NCCL", .version = {NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH}};
#else
const abi_check nccl_check = {"NCCL", .absent = "configure found no nccl.h of the CUDA Toolkit"};
#endif
