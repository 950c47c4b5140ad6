/* SPDX-License-Identifier: Apache-2.0 */
/* All blocks of a launch, shared between the thread that does the work and others that have nothing else to do. */
#ifndef SIM_EXECUTE_H
#define SIM_EXECUTE_H

#include "block.h"

/* Returns when all blocks are done, or the first of them did something wrong, which is told then. `seed` draws the
 * order of threads and blocks where the settings leave it to the seed. */
sim_status sim_execute(const char *kernel, sim_task_of_blocks *task, uint64_t seed);

#endif
