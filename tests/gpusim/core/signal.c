/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses that the memory's protection stopped: of a kernel, which trap.c knows how to leave, or of the host, which
 * is told and then ends as any access to a wrong address does. */
#include "internal.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { STACK_BYTES = 256 * 1024 };

void (*sim_fault_hook)(void *address, void *context);

static struct sigaction previous;
static pthread_key_t stack_key;

/* NULL: an address that gpusim has nothing to do with. */
static const char *judge(const void *address) {
  if (sim_device_of(address)) return "host touches device memory";
  if (sim_was_pinned(address)) return "use after free";
  return sim_is_near_pinned(address) ? "out of bounds" : NULL;
}

static void handle(int number, siginfo_t *info, void *context) {
  (void)number;
  void *address = info->si_addr;
  if (sim_fault_hook) sim_fault_hook(address, context);
  const char *kind = judge(address);
  if (!kind) {
    sigaction(SIGSEGV, &previous, NULL); /* whoever was there before us */
    return;
  }
  char text[256];
  sim_origin here;
  sim_remember_origin(&here);
  sim_violation_of(&here, "after", kind, "the host touches %s", sim_describe(address, text, sizeof text));
  signal(SIGSEGV, SIG_DFL); /* the access is made once more, and ends the process */
}

static void drop_stack(void *stack) {
  sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
  munmap(stack, STACK_BYTES);
}

static void make_key(void) {
  pthread_key_create(&stack_key, drop_stack);
}

/* A kernel's thread has a small stack of its own, which may be the very thing that overflowed. */
static void arm_stack(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static _Thread_local bool armed;
  if (armed) return;
  armed = true;
  stack_t present;
  if (sigaltstack(NULL, &present) == 0 && !(present.ss_flags & SS_DISABLE) && present.ss_size >= STACK_BYTES / 8)
    return;
  pthread_once(&once, make_key);
  void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) return;
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = STACK_BYTES}, NULL);
  pthread_setspecific(stack_key, stack);
}

/* Test frameworks set handlers of their own, again and again. */
void sim_signal_arm(void) {
  arm_stack();
  sim_lock();
  struct sigaction present;
  if (sigaction(SIGSEGV, NULL, &present) == 0 && present.sa_sigaction != handle) {
    previous = present;
    struct sigaction ours = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigemptyset(&ours.sa_mask);
    sigaction(SIGSEGV, &ours, NULL);
  }
  sim_unlock();
}
