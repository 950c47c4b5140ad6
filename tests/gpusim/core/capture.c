/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that are captured into graphs. There are none but that of the fault "capture", which another thread captures
 * all the time, in the strictest mode: whoever asks or waits for something then must have relaxed. */
#include "internal.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };

static _Thread_local unsigned own_mode = GLOBAL;

sim_status sim_capture_mode_exchange(unsigned *mode) {
  if (!mode || *mode > RELAXED) return SIM_INVALID_VALUE;
  unsigned before = own_mode;
  own_mode = *mode;
  *mode = before;
  return SIM_OK;
}

bool sim_capture_forbids(void) {
  return own_mode == GLOBAL && sim_fault_is_captured();
}
