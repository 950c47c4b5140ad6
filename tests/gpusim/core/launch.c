/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: what is asked for is checked and the arguments are copied when the call is made; addresses among them are
 * checked again, and replaced by those that can be accessed, when the kernel runs. */
#include "sim.h"

#include "execute.h"
#include "internal.h"
#include "module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The limits of the dimensions allow for more than could be done in a lifetime. */
static const uint64_t MOST_BLOCKS = (uint64_t)1 << 36;

typedef struct launch {
  sim_kernel *kernel;
  sim_module *module; /* held */
  sim_device *device;
  sim_grid grid;
  uint64_t seed;
  char name[sizeof((sim_kernel *)0)->name]; /* the kernel may be gone when it runs */
  char label[sizeof((sim_kernel *)0)->name + sizeof "the kernel "];
  _Alignas(16) unsigned char arguments[];
} launch;

/* ---------------------------------------------------------------------------------------------------------------------
 * Arguments
 */

/* Replaces an address, or only looks at it. False after a violation. */
static bool follow(launch *l, unsigned char *word, bool replace, const char *what) {
  void *address;
  memcpy(&address, word, sizeof address);
  void *twin = sim_twin(l->device, address, 0, what); /* the end of an allocation is where an empty tensor is */
  if (!twin) return false;
  if (replace) memcpy(word, &twin, sizeof twin);
  return true;
}

static bool follow_argument(launch *l, unsigned char *bytes, unsigned i, bool replace) {
  const sim_argument *argument = &l->kernel->entry->arguments[i];
  char what[256];
  snprintf(what, sizeof what, "argument %u of the kernel %s", i, l->name);
  for (unsigned at = 0; at + sizeof(void *) <= argument->size; at += sizeof(void *)) {
    unsigned char *word = bytes + argument->offset + at;
    void *address;
    memcpy(&address, word, sizeof address);
    bool is_address = argument->kind == SIM_ARGUMENT_POINTER ? address != NULL : sim_is_device_address(address);
    if (is_address && !follow(l, word, replace, what)) return false;
  }
  return true;
}

/* Pointers, and words in structs and integers that look like addresses of a device. */
static bool follow_all(launch *l, unsigned char *bytes, bool replace) {
  const sim_entry *entry = l->kernel->entry;
  for (unsigned i = 0; i < entry->argument_count; i++)
    if (entry->arguments[i].kind != SIM_ARGUMENT_VALUE && !follow_argument(l, bytes, i, replace)) return false;
  return true;
}

static bool copy_arguments(launch *l, void **arguments) {
  const sim_entry *entry = l->kernel->entry;
  for (unsigned i = 0; i < entry->argument_count; i++) {
    if (!arguments || !arguments[i]) {
      sim_violation("invalid argument", "argument %u of the kernel %s, which has %u, is not given", i, l->name,
                    entry->argument_count);
      return false;
    }
    memcpy(l->arguments + entry->arguments[i].offset, arguments[i], entry->arguments[i].size);
  }
  return true;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Running
 */

static sim_index as_index(const unsigned size[3]) {
  return (sim_index){size[0], size[1], size[2]};
}

static sim_status run(void *argument) {
  launch *l = argument;
  const sim_entry *entry = l->kernel->entry;
  _Alignas(16) unsigned char arguments[SIM_ARGUMENT_BYTES];
  memcpy(arguments, l->arguments, entry->argument_bytes);
  if (!follow_all(l, arguments, true)) return SIM_ILLEGAL_ADDRESS;
  const unsigned *threads = l->grid.threads;
  sim_task_of_blocks task = {.table = l->module->table,
                             .entry = entry,
                             .arguments = arguments,
                             .threads = threads[0] * threads[1] * threads[2],
                             .warp = (unsigned)sim_device_warp(l->device),
                             .block_size = as_index(threads),
                             .grid_size = as_index(l->grid.blocks),
                             .shared = l->kernel->shared,
                             .shared_count = l->kernel->shared_count,
                             .dynamic_bytes = l->grid.shared};
  return sim_execute(l->name, &task, l->seed);
}

static void release(void *argument) {
  launch *l = argument;
  sim_module_release(l->module);
  free(l);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * What may be asked for
 */

static bool check_dimension(const sim_kernel *kernel, const sim_grid *grid, const sim_limits *most, int i) {
  unsigned blocks = grid->blocks[i], threads = grid->threads[i];
  if (blocks == 0 || threads == 0) {
    sim_violation("empty launch", "kernel %s: dimension %d has %u blocks of %u threads", kernel->name, i, blocks,
                  threads);
    return false;
  }
  if (blocks <= most->blocks[i] && threads <= most->threads[i] && (uint64_t)blocks * threads <= most->work_items)
    return true;
  sim_violation("launch too large",
                "kernel %s: dimension %d has %u blocks of %u threads; at most %u of %u, and %llu threads in all",
                kernel->name, i, blocks, threads, most->blocks[i], most->threads[i],
                (unsigned long long)most->work_items);
  return false;
}

static bool check_grid(const sim_kernel *kernel, const sim_grid *grid, const sim_limits *most) {
  for (int i = 0; i < 3; i++)
    if (!check_dimension(kernel, grid, most, i)) return false;
  uint64_t threads = (uint64_t)grid->threads[0] * grid->threads[1] * grid->threads[2];
  uint64_t blocks = (uint64_t)grid->blocks[0] * grid->blocks[1] * grid->blocks[2];
  if (blocks > MOST_BLOCKS) {
    sim_violation("launch too large", "kernel %s: %llu blocks, which no device ever comes to an end with", kernel->name,
                  (unsigned long long)blocks);
    return false;
  }
  unsigned limit = kernel->entry->thread_limit ? kernel->entry->thread_limit : most->threads_per_block;
  if (threads <= limit) return true;
  sim_violation("too many threads", "kernel %s: %u x %u x %u threads per block, more than %u", kernel->name,
                grid->threads[0], grid->threads[1], grid->threads[2], limit);
  return false;
}

static bool check_shared(const sim_kernel *kernel, const sim_grid *grid, const sim_limits *most) {
  size_t bytes = kernel->shared_bytes + grid->shared;
  if (bytes <= most->shared_per_block) return true;
  sim_violation("too much shared memory", "kernel %s: %zu bytes, more than %u", kernel->name, bytes,
                most->shared_per_block);
  return false;
}

static launch *make_launch(sim_kernel *kernel, sim_device *device, const sim_grid *grid) {
  launch *l = calloc(1, sizeof *l + kernel->entry->argument_bytes);
  if (!l) return NULL;
  *l = (launch){.kernel = kernel, .module = kernel->module, .device = device, .grid = *grid};
  l->seed = sim_random(UINT64_MAX);
  memcpy(l->name, kernel->name, sizeof l->name);
  snprintf(l->label, sizeof l->label, "the kernel %s", l->name);
  return l;
}

sim_status sim_launch(sim_kernel *handle, const sim_grid *grid, void **arguments, sim_stream *stream) {
  sim_device *device = sim_stream_device(stream);
  sim_kernel *kernel = sim_check_on(handle, "kernel", device);
  if (!kernel) return SIM_INVALID_HANDLE;
  const sim_limits *most = sim_limits_of(sim_device_vendor(device));
  if (!check_grid(kernel, grid, most) || !check_shared(kernel, grid, most)) return SIM_INVALID_VALUE;
  sim_status status = sim_count(SIM_LAUNCH, device);
  if (status != SIM_OK) return status;
  launch *l = make_launch(kernel, device, grid);
  if (!l) return SIM_OUT_OF_MEMORY;
  if (!copy_arguments(l, arguments) || !follow_all(l, l->arguments, false)) {
    free(l);
    return SIM_INVALID_VALUE;
  }
  sim_module_hold(l->module);
  /* What it does with memory nobody knows, but it needs its module. */
  sim_access module = {.what = "the module", .address = l->module, .bytes = 1};
  return sim_queue_with(stream, &(sim_work){.name = l->label, .argument = l, .run = run, .release = release}, &module,
                        1);
}
