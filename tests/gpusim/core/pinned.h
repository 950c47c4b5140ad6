/* SPDX-License-Identifier: Apache-2.0 */
/* What pinned.c and transfer.c know of pinned memory. All under the mutex. */
#ifndef SIM_PINNED_H
#define SIM_PINNED_H

#include "internal.h"

typedef struct sim_pinned {
  const sim_device *device; /* in whose context it was made */
  char *address;
  size_t bytes;
  char *begin, *end; /* its pages; there is one that nobody can touch on either side */
  bool live;
  uint64_t canary;
  sim_origin made, freed;
} sim_pinned;

/* That an address is in, or in whose guards; live or freed. NULL: none. */
sim_pinned *sim_pinned_find(const void *address);

/* Whether a copy from or into it is pending as far as the host knows; a violation then. */
bool sim_transfers_tell(const sim_pinned *owner);

#endif
