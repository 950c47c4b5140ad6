/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the threads of a block one after another on one fiber. Only when a thread has to wait for others does the rest
 * go on with another fiber, so that a kernel without barriers never switches. */
#define _GNU_SOURCE
#include "runner.h"

#include "internal.h"
#include "module.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POISON = 0xFF, SOON = 3 }; /* so many switches ahead a stack is fetched */

_Thread_local sim_runner *sim_runner_active;

/* ---------------------------------------------------------------------------------------------------------------------
 * Which thread goes on
 */

void sim_runner_ready(sim_runner *r, unsigned number) {
  r->ready[(r->ready_first + r->ready_count++) % SIM_THREADS_PER_BLOCK] = number;
}

void sim_runner_find(sim_runner *r, const char *kind, sim_status status, sim_position thread, const char *format, ...) {
  if (r->finding->kind) return;
  const sim_index *block = &r->block->block, *index = &thread.index;
  r->finding->kind = kind;
  r->finding->status = status;
  char *text = r->finding->text;
  size_t room = sizeof r->finding->text;
  int length = snprintf(text, room, "block (%u, %u, %u), thread (%u, %u, %u): ", block->x, block->y, block->z, index->x,
                        index->y, index->z);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + length, room - (size_t)length, format, arguments);
  va_end(arguments);
}

void sim_runner_leave(sim_runner *r) {
  sim_fiber *from = r->running;
  r->running = r->own;
  sim_fiber_switch(from, r->own);
  abort(); /* its fiber was reset */
}

/* Some wait at a barrier that others will never come to, because they have ended. */
static void tell_barrier(sim_runner *r) {
  const sim_waiting *waits = &r->threads[r->at_barrier[0]];
  unsigned number = 0;
  while (number < r->task->threads && !r->ended[number]) number++;
  sim_runner_find(r, "barrier not reached by all threads", SIM_LAUNCH_FAILED, waits->position,
                  "%u of %u threads wait at %s of line %u, but thread number %u has ended", r->at_barrier_count,
                  r->task->threads, waits->barrier->operation, waits->barrier->line, number);
}

static void fiber_main(void *argument);

/* A fiber that has nothing to do; at its first use it is made. */
static sim_fiber *idle_fiber(sim_runner *r) {
  if (r->idle_count) return r->idle[--r->idle_count];
  sim_fiber *fiber = r->fiber_count <= SIM_THREADS_PER_BLOCK ? sim_fiber_create(fiber_main, r) : NULL;
  if (fiber) r->fibers[r->fiber_count++] = fiber;
  return fiber;
}

static sim_fiber *choose(sim_runner *r) {
  for (;;) {
    if (r->ready_count) {
      unsigned number = r->ready[r->ready_first];
      r->ready_first = (r->ready_first + 1) % SIM_THREADS_PER_BLOCK;
      r->ready_count--;
      if (r->ready_count > SOON)
        sim_fiber_expect(r->threads[r->ready[(r->ready_first + SOON) % SIM_THREADS_PER_BLOCK]].fiber);
      r->block->thread = r->threads[number].position;
      return r->threads[number].fiber;
    }
    if (r->block->next < r->block->count) {
      sim_fiber *fiber = idle_fiber(r);
      if (fiber) return fiber;
      sim_runner_find(r, "no memory", SIM_OUT_OF_MEMORY, r->block->thread, "for one more stack");
      return r->own;
    }
    if (r->at_warp_count && sim_warp_settle(r)) continue;
    if (r->at_barrier_count && !r->finding->kind) tell_barrier(r);
    return r->own; /* all have ended, or none can go on */
  }
}

static void go_on(sim_runner *r) {
  sim_fiber *from = r->running, *to = choose(r);
  if (to == from) return;
  r->running = to;
  sim_fiber_switch(from, to);
}

void sim_runner_wait(sim_runner *r) {
  go_on(r);
}

static void fiber_main(void *argument) {
  sim_runner *r = argument;
  for (;;) {
    r->task->entry->run(r->task->arguments);
    r->idle[r->idle_count++] = r->running;
    go_on(r);
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What kernels ask for
 */

static unsigned barrier(sim_block *block, const sim_text_place *place, int vote) {
  sim_runner *r = block->runner;
  unsigned number = block->thread.number;
  if (r->at_barrier_count) {
    const sim_waiting *first = &r->threads[r->at_barrier[0]];
    if (first->barrier != place) {
      sim_runner_find(r, "different barriers", SIM_LAUNCH_FAILED, block->thread,
                      "is at %s of line %u, but thread (%u, %u, %u) is at %s of line %u", place->operation, place->line,
                      first->position.index.x, first->position.index.y, first->position.index.z,
                      first->barrier->operation, first->barrier->line);
      sim_runner_leave(r);
    }
  }
  r->threads[number] = (sim_waiting){r->running, block->thread, place, NULL};
  r->at_barrier[r->at_barrier_count++] = number;
  r->votes += (unsigned)vote;
  if (r->at_barrier_count == r->task->threads) {
    memcpy(r->ready, r->at_barrier, sizeof *r->ready * r->at_barrier_count);
    r->ready_first = 0;
    r->ready_count = r->at_barrier_count;
    r->votes_told = r->votes;
    r->at_barrier_count = r->votes = 0;
  }
  go_on(r);
  r->threads[number].barrier = NULL;
  return r->votes_told;
}

static void mistake(sim_block *block, const char *kind, const char *what, unsigned line) {
  sim_runner *r = block->runner;
  sim_runner_find(r, kind, SIM_ILLEGAL_ADDRESS, block->thread, "%s, line %u", what, line);
  sim_runner_leave(r);
}

static const sim_services services = {barrier, sim_warp_meet, mistake};

/* ---------------------------------------------------------------------------------------------------------------------
 * Runners
 */

static pthread_key_t runner_key;

static void drop_runner(void *argument) {
  sim_runner *r = argument;
  for (unsigned i = 0; i < r->fiber_count; i++) sim_fiber_destroy(r->fibers[i]);
  sim_fiber_destroy(r->own);
  munmap(r->shared, SIM_SHARED_PER_BLOCK + (size_t)sysconf(_SC_PAGESIZE));
  free(r);
}

static void make_key(void) {
  pthread_key_create(&runner_key, drop_runner);
}

static sim_runner *make_runner(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  sim_runner *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->own = sim_fiber_of_thread();
  r->shared = mmap(NULL, SIM_SHARED_PER_BLOCK + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!r->own || r->shared == MAP_FAILED) {
    free(r->own);
    free(r);
    return NULL;
  }
  r->shared_end = r->shared + SIM_SHARED_PER_BLOCK;
  mprotect(r->shared_end, page, PROT_NONE);
  return r;
}

sim_runner *sim_runner_here(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static _Thread_local sim_runner *here;
  pthread_once(&once, make_key);
  if (!here && (here = make_runner())) pthread_setspecific(runner_key, here);
  return here;
}

void sim_runner_begin(sim_runner *r, const sim_task_of_blocks *task) {
  r->task = task;
  r->block = task->table->block();
  /* It begins where what is aligned for anything begins, and ends as near to the guard as that allows. */
  size_t dynamic = (task->dynamic_bytes + 15) / 16 * 16;
  *r->block = (sim_block){.block_size = task->block_size,
                          .grid_size = task->grid_size,
                          .warp = task->warp,
                          .count = task->threads,
                          .order = task->order,
                          .ended = r->ended,
                          .dynamic = (unsigned char *)r->shared_end - dynamic,
                          .services = &services,
                          .runner = r};
}

/* Fibers that were left in the middle of something. */
static void reset_fibers(sim_runner *r) {
  r->idle_count = 0;
  sim_fiber_reset(r->own);
  for (unsigned i = 0; i < r->fiber_count; i++) {
    sim_fiber_reset(r->fibers[i]);
    r->idle[r->idle_count++] = r->fibers[i];
  }
  r->ready_count = r->at_barrier_count = r->at_warp_count = 0;
  memset(r->at_warp, 0, sizeof r->at_warp);
}

bool sim_runner_run(sim_runner *r, sim_index index, sim_finding *finding) {
  const sim_task_of_blocks *task = r->task;
  finding->kind = NULL;
  finding->instruction = NULL;
  r->finding = finding;
  r->votes = 0;
  r->block->block = index;
  r->block->next = 0;
  memset(r->ended, 0, task->threads);
  for (unsigned i = 0; i < task->shared_count; i++)
    memset((char *)r->block + task->shared[i].offset, POISON, task->shared[i].bytes);
  memset(r->block->dynamic, POISON, (size_t)((unsigned char *)r->shared_end - r->block->dynamic));
  sim_fiber *first = idle_fiber(r);
  if (!first) {
    sim_runner_find(r, "no memory", SIM_OUT_OF_MEMORY, r->block->thread, "for a stack");
    return false;
  }
  r->running = first;
  sim_runner_active = r;
  sim_fiber_switch(r->own, first);
  sim_runner_active = NULL;
  r->running = r->own;
  if (finding->kind) reset_fibers(r);
  return !finding->kind;
}
