/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of one block of a kernel, run by one thread of the host. */
#ifndef SIM_BLOCK_H
#define SIM_BLOCK_H

#include "kernel.h"
#include "sim.h"

#include <stdarg.h>

typedef struct sim_runner sim_runner;

/* The kernel that blocks are run of, the same for all of them. */
typedef struct sim_task_of_blocks {
  const sim_kernel_table *table;
  const sim_entry *entry;
  const unsigned char *arguments; /* with addresses that can be accessed */
  const sim_position *order;      /* in which threads begin */
  bool descending;                /* whether lanes that waited for each other go on from the last to the first */
  unsigned threads, warp;
  sim_index block_size, grid_size;
  const struct sim_range *shared; /* that the kernel can use, by offset from the sim_block */
  unsigned shared_count;
  size_t dynamic_bytes;
} sim_task_of_blocks;

/* What a kernel did wrong; the device is lost with `status` then. */
typedef struct sim_finding {
  const char *kind; /* NULL: nothing */
  sim_status status;
  char text[768];          /* with block and thread */
  const void *instruction; /* that was refused; NULL: not known, or the text tells */
} sim_finding;

/* The calling thread's own, made at the first call and kept until the thread ends; NULL: no memory. */
sim_runner *sim_runner_here(void);

/* Before the first block of a task. */
void sim_runner_begin(sim_runner *runner, const sim_task_of_blocks *task);

/* Runs a block until its last thread has ended, or one of them did something wrong: false. */
bool sim_runner_run(sim_runner *runner, sim_index index, sim_finding *finding);

/* Faults of this thread were a kernel's while a block runs. Set up before each task, since others set handlers too. */
void sim_runner_arm(void);

#endif
