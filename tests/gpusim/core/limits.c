/* SPDX-License-Identifier: Apache-2.0 */
/* The vendors' limits. */
#include "kernel.h"
#include "sim.h"

static const sim_limits limits[SIM_VENDORS] = {
    [SIM_CUDA] = {.threads = {1024, 1024, 64},
                  .blocks = {2147483647, 65535, 65535},
                  .threads_per_block = 1024,
                  .shared_per_block = 48 * 1024,
                  .work_items = UINT64_MAX},
    [SIM_HIP] = {.threads = {1024, 1024, 1024},
                 .blocks = {2147483647, 65536, 65536},
                 .threads_per_block = 1024,
                 .shared_per_block = 64 * 1024,
                 .work_items = UINT32_MAX},
};

const sim_limits *sim_limits_of(sim_vendor vendor) {
  return &limits[vendor];
}
