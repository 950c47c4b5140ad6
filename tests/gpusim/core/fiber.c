/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers. A switch of our own takes a tenth of the time of swapcontext, which is the way on other processors.
 *
 * The sanitizers must be told. For the address sanitizer each switch is from one stack to another. For the thread
 * sanitizer all fibers of a thread are one, which the thread switches to and comes back from: they never leave the
 * thread and take turns there. To tell it every switch between hundreds of them took twenty times as long. */
#define _GNU_SOURCE
#include "fiber.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer)
#define ANNOUNCE_ADDRESS
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__) || HAS_FEATURE(thread_sanitizer)
#define ANNOUNCE_THREAD
#include <sanitizer/tsan_interface.h>
#endif

enum { STACK_BYTES = 64 * 1024 };

struct sim_fiber {
  void *saved;        /* where its registers are, on its stack */
  ucontext_t context; /* the same on other processors */
  char *memory;       /* a guard page, then the stack; NULL: of a thread */
  void (*main)(void *argument);
  void *argument;
  void *bottom; /* of the stack, for the sanitizers */
  size_t bytes;
  void *fake_stack;        /* the address sanitizer's */
  void *identity, *fibers; /* the thread sanitizer's, of a thread: itself, and its fibers */
  unsigned colour;
};

/* ---------------------------------------------------------------------------------------------------------------------
 * The sanitizers
 */

static void announce_switch(sim_fiber *from, sim_fiber *to) {
#ifdef ANNOUNCE_ADDRESS
  __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->bytes);
#endif
#ifdef ANNOUNCE_THREAD
  if (!from->memory) __tsan_switch_to_fiber(from->fibers, 0);
  if (!to->memory) __tsan_switch_to_fiber(to->identity, 0);
#endif
  (void)from;
  (void)to;
}

static void announce_arrival(sim_fiber *to) {
#ifdef ANNOUNCE_ADDRESS
  __sanitizer_finish_switch_fiber(to->fake_stack, NULL, NULL);
#endif
  (void)to;
}

static void identify_thread(sim_fiber *fiber) {
#ifdef ANNOUNCE_ADDRESS
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &fiber->bottom, &fiber->bytes);
    pthread_attr_destroy(&attributes);
  }
#endif
#ifdef ANNOUNCE_THREAD
  fiber->identity = __tsan_get_current_fiber();
  fiber->fibers = __tsan_create_fiber(0);
#endif
  (void)fiber;
}

static void forget(sim_fiber *fiber) {
#ifdef ANNOUNCE_THREAD
  if (fiber->fibers) __tsan_destroy_fiber(fiber->fibers);
#endif
  fiber->fibers = fiber->fake_stack = NULL;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The switch
 */

static void begin(sim_fiber *self) {
  announce_arrival(self);
  self->main(self->argument);
  abort(); /* main must not return */
}

#if defined(__x86_64__)

/* The registers that a function must keep go onto the old stack and come from the new one. Where a fiber begins, two of
 * them are the function to call and its argument. */
__asm__(".pushsection .text\n"
        ".type sim_fiber_swap, @function\n"
        "sim_fiber_swap:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size sim_fiber_swap, . - sim_fiber_swap\n"
        ".type sim_fiber_enter, @function\n"
        "sim_fiber_enter:\n"
        "  movq %rbx, %rdi\n"
        "  jmp *%rbp\n"
        ".size sim_fiber_enter, . - sim_fiber_enter\n"
        ".popsection\n");
__attribute__((visibility("hidden"))) void sim_fiber_swap(void **save, void *load);
__attribute__((visibility("hidden"))) void sim_fiber_enter(void);

static void swap(sim_fiber *from, sim_fiber *to) {
  sim_fiber_swap(&from->saved, to->saved);
}

static void prepare(sim_fiber *fiber) {
  /* Six registers, where to go on, and a return address of 0, where a backtrace ends. Were all stacks to begin at the
   * same distance from a page, they would fight for the same few lines of the cache. */
  uintptr_t top = (uintptr_t)fiber->bottom + fiber->bytes - fiber->colour;
  uintptr_t *stack = (uintptr_t *)top - 8;
  for (int i = 0; i < 8; i++) stack[i] = 0;
  stack[4] = (uintptr_t)fiber; /* rbx */
  stack[5] = (uintptr_t)begin; /* rbp */
  stack[6] = (uintptr_t)sim_fiber_enter;
  fiber->saved = stack;
}

#else

static void swap(sim_fiber *from, sim_fiber *to) {
  swapcontext(&from->context, &to->context);
}

/* Arguments of makecontext are numbers of the size of int. */
static void begin_of_halves(unsigned high, unsigned low) {
  begin((sim_fiber *)((uintptr_t)high << 16 << 16 | low));
}

static void prepare(sim_fiber *fiber) {
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->bottom;
  fiber->context.uc_stack.ss_size = fiber->bytes - fiber->colour;
  fiber->context.uc_link = NULL;
  makecontext(&fiber->context, (void (*)(void))begin_of_halves, 2, (unsigned)((uintptr_t)fiber >> 16 >> 16),
              (unsigned)(uintptr_t)fiber);
}

#endif

void sim_fiber_switch(sim_fiber *from, sim_fiber *to) {
  announce_switch(from, to);
  swap(from, to);
  announce_arrival(from);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Making and ending
 */

sim_fiber *sim_fiber_of_thread(void) {
  sim_fiber *fiber = calloc(1, sizeof *fiber);
  if (fiber) identify_thread(fiber);
  return fiber;
}

sim_fiber *sim_fiber_create(void (*main)(void *argument), void *argument) {
  static atomic_uint made;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  sim_fiber *fiber = calloc(1, sizeof *fiber);
  if (!fiber) return NULL;
  fiber->memory =
      mmap(NULL, STACK_BYTES + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fiber->memory == MAP_FAILED) {
    free(fiber);
    return NULL;
  }
  mprotect(fiber->memory, page, PROT_NONE);
  fiber->main = main;
  fiber->argument = argument;
  fiber->bottom = fiber->memory + page;
  fiber->bytes = STACK_BYTES;
  fiber->colour = atomic_fetch_add(&made, 1) % 32 * 128;
  prepare(fiber);
  return fiber;
}

void sim_fiber_reset(sim_fiber *fiber) {
  forget(fiber);
  if (fiber->memory)
    prepare(fiber);
  else
    identify_thread(fiber);
}

void sim_fiber_destroy(sim_fiber *fiber) {
  if (!fiber) return;
  forget(fiber);
  if (fiber->memory) munmap(fiber->memory, STACK_BYTES + (size_t)sysconf(_SC_PAGESIZE));
  free(fiber);
}

void sim_fiber_expect(const sim_fiber *fiber) {
  __builtin_prefetch(fiber->saved, 1);
  __builtin_prefetch((const char *)fiber->saved + 64, 1);
}

bool sim_fiber_overflowed(const sim_fiber *fiber, const void *address) {
  const char *byte = address;
  return fiber->memory && byte >= fiber->memory && byte < (const char *)fiber->bottom;
}
