/* SPDX-License-Identifier: Apache-2.0 */
/* Correct programs, which must pass under every seed: `programs NAME`. Those of programs_faults.c meet what `run
 * --fault` or another setting arranges, and must cope with it. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include "driver.h"
#include "sim.h"

typedef struct program {
  const char *name;
  void (*run)(void);
} program;

extern const program fault_programs[], wait_programs[], device_programs[],
    hostile_programs[]; /* each ends with one without a name */

#endif
