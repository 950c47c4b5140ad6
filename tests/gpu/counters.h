/* SPDX-License-Identifier: Apache-2.0 */
/* What the emulator has counted, which the backend under test has opened. */
#ifndef GPU_COUNTERS_H
#define GPU_COUNTERS_H

#include "../gpusim/core/sim.h"

/* False: nobody has opened an emulator, or it has no such device. */
bool read_counters(sim_vendor vendor, int index, sim_counters *counters);

#endif
