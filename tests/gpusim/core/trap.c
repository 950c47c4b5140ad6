/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses and divisions of a kernel that the processor refuses. The kernel is left then, from the handler of the
 * signal, and what it did is told by its launch. */
#define _GNU_SOURCE
#include "runner.h"

#include "internal.h"

#include <signal.h>
#include <stdint.h>
#include <ucontext.h>

enum { PAGE = 4096 };

static void describe(sim_runner *r, const char *address) {
  char text[384];
  sim_position thread = r->block->thread;
  const char *kind = "illegal address in a kernel";
  if (sim_fiber_overflowed(r->running, address)) {
    sim_runner_find(r, "stack overflow in a kernel", SIM_ILLEGAL_ADDRESS, thread, "its variables need too much memory");
  } else if ((uintptr_t)address < PAGE) {
    sim_runner_find(r, kind, SIM_ILLEGAL_ADDRESS, thread, "%p, by a pointer that is NULL", (const void *)address);
  } else if (address >= r->shared_end && address < r->shared_end + PAGE) {
    sim_runner_find(r, kind, SIM_ILLEGAL_ADDRESS, thread,
                    "byte %td of the %zu bytes of shared memory that the launch gave",
                    address - (const char *)r->block->dynamic, r->task->dynamic_bytes);
  } else if (sim_device_of(address) && sim_is_device_address(address)) {
    sim_runner_find(r, kind, SIM_ILLEGAL_ADDRESS, thread,
                    "%s, by a pointer that was read from memory and not an argument",
                    sim_describe(address, text, sizeof text));
  } else {
    sim_runner_find(r, kind, SIM_ILLEGAL_ADDRESS, thread, "%s", sim_describe(address, text, sizeof text));
  }
}

static const void *instruction_of(const void *context) {
#if defined(__x86_64__)
  const ucontext_t *registers = context;
  return (const void *)registers->uc_mcontext.gregs[REG_RIP];
#else
  (void)context;
  return NULL;
#endif
}

static void on_fault(void *address, void *context) {
  sim_runner *r = sim_runner_active;
  if (!r) return;
  describe(r, address);
  r->finding->instruction = instruction_of(context);
  sim_runner_leave(r);
}

static struct sigaction previous;

static void on_division(int number, siginfo_t *info, void *context) {
  (void)number, (void)info;
  sim_runner *r = sim_runner_active;
  if (!r) {
    sigaction(SIGFPE, &previous, NULL); /* it happens again, to whoever was there before us */
    return;
  }
  sim_runner_find(r, "division by zero in a kernel", SIM_LAUNCH_FAILED, r->block->thread,
                  "of integers, which gives any number on a device");
  r->finding->instruction = instruction_of(context);
  sim_runner_leave(r);
}

void sim_runner_arm(void) {
  sim_signal_arm();
  sim_lock();
  sim_fault_hook = on_fault;
  struct sigaction present;
  if (sigaction(SIGFPE, NULL, &present) == 0 && present.sa_sigaction != on_division) {
    previous = present;
    struct sigaction ours = {.sa_sigaction = on_division, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&ours.sa_mask);
    sigaction(SIGFPE, &ours, NULL);
  }
  sim_unlock();
}
