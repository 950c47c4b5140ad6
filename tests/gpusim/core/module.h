/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded kernels, as module.c makes and launch.c uses them. */
#ifndef SIM_MODULE_H
#define SIM_MODULE_H

#include "kernel.h"
#include "sim.h"

typedef struct sim_image sim_image;

/* A part of a module's thread-local memory, which is the shared memory of its kernels. */
typedef struct sim_range {
  unsigned offset, bytes;
} sim_range;

struct sim_module {
  sim_object object;
  sim_image *image;
  void *library; /* of dlopen */
  int file;      /* that it was loaded from, kept open so that its name is not given to another one */
  const sim_kernel_table *table;
  sim_range shared; /* of all its kernels */
  int queued;       /* launches that are not done; under the mutex */
  bool unloaded;
  sim_kernel *kernels;
};

struct sim_kernel {
  sim_object object;
  sim_module *module;
  const sim_entry *entry;
  char name[128];
  sim_range *shared; /* that it can use */
  unsigned shared_count;
  size_t shared_bytes;
  sim_kernel *next;
};

/* The shared memory that a kernel of an ELF file can use, from a certain offset on: an array of malloc. NULL: cannot be
 * told, then it may be any. */
sim_range *sim_shared_reach(const void *elf, const char *kernel, size_t from, unsigned *count);

/* The name of a kernel that uses more than `limit` bytes, and how much; NULL: none does. */
const char *sim_shared_excess(const void *elf, size_t limit, size_t *bytes);

/* A launch holds the module until it is done. */
void sim_module_hold(sim_module *module);
void sim_module_release(sim_module *module);

#endif
