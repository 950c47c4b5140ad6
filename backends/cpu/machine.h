/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine is and what it grants this process: processor, cores, memory. */
#ifndef CPU_MACHINE_H
#define CPU_MACHINE_H

#include <stdint.h>

typedef struct cpu_machine {
  char name[128];  /* the model, as the processor calls itself */
  char vendor[64]; /* "GenuineIntel" */
  uint32_t cores;  /* that this process may run on */
  uint64_t memory; /* bytes: what is installed, or the lower limit of the control group */
} cpu_machine;

void cpu_machine_read(cpu_machine *machine);

/* Bytes that this process could still take, and all that it may have. Reads a few small files. */
void cpu_machine_memory(uint64_t *free, uint64_t *total);

#endif
