/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of a runner: what barriers, warps and faults of a block share. */
#ifndef SIM_RUNNER_H
#define SIM_RUNNER_H

#include "block.h"
#include "fiber.h"

enum { WIDEST_WARP = 64, NARROWEST_WARP = 32, MOST_WARPS = SIM_THREADS_PER_BLOCK / NARROWEST_WARP };

/* A thread of the block that waits or has waited. */
typedef struct sim_waiting {
  sim_fiber *fiber;
  sim_position position;
  const sim_text_place *barrier; /* where it waits for all; NULL: it does not */
  sim_lane *lane;                /* with which it waits for its warp; NULL: it does not */
} sim_waiting;

struct sim_runner {
  const sim_task_of_blocks *task;
  sim_block *block; /* of this thread, in the module */
  sim_fiber *own, *running;
  sim_fiber *fibers[SIM_THREADS_PER_BLOCK + 1], *idle[SIM_THREADS_PER_BLOCK + 1];
  unsigned fiber_count, idle_count;

  sim_waiting threads[SIM_THREADS_PER_BLOCK];
  unsigned ready[SIM_THREADS_PER_BLOCK], ready_first, ready_count; /* a ring of numbers of threads */
  unsigned at_barrier[SIM_THREADS_PER_BLOCK], at_barrier_count;    /* in the order in which they came */
  unsigned votes, votes_told;
  uint64_t at_warp[MOST_WARPS]; /* a bit for each lane that waits */
  unsigned at_warp_count;
  sim_flag ended[SIM_THREADS_PER_BLOCK];

  char *shared, *shared_end; /* memory for dynamic shared memory, which ends at a guard page */
  sim_finding *finding;
};

/* A thread can go on. */
void sim_runner_ready(sim_runner *runner, unsigned number);

/* The running thread waits: others go on, until it is ready. */
void sim_runner_wait(sim_runner *runner);

/* Notes what is wrong about a thread. */
void sim_runner_find(sim_runner *runner, const char *kind, sim_status status, sim_position thread, const char *format,
                     ...) __attribute__((format(printf, 5, 6)));

/* Leaves the block: nothing of it goes on. */
void sim_runner_leave(sim_runner *runner) __attribute__((noreturn));

void sim_warp_meet(sim_block *block, sim_lane *lane);

/* No thread can go on by itself. Lets lanes go on that need not wait any longer: true; or finds out why none can. */
bool sim_warp_settle(sim_runner *runner);

/* The runner whose block this thread is in; NULL: none. */
extern _Thread_local sim_runner *sim_runner_active;

#endif
