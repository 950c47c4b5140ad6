/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: the shared objects that kernel text became, each loaded for itself, so that two that were made of the same
 * text have nothing in common. */
#define _GNU_SOURCE
#include "module.h"

#include "compile.h"
#include "internal.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file without a name in any folder. */
static int file_of(const sim_image *image) {
  int file = memfd_create("gpusim", MFD_CLOEXEC);
  if (file >= 0 && sim_write_all(file, (const char *)(image + 1), image->bytes)) return file;
  if (file >= 0) close(file);
  return -1;
}

/* Thread-local memory begins with what has an initial value, the sim_block; all behind that is shared memory. */
static bool find_shared(sim_module *module, const sim_image *image) {
  const char *elf = (const char *)(image + 1);
  ElfW(Ehdr) header;
  if (image->bytes < sizeof header) return false;
  memcpy(&header, elf, sizeof header);
  for (int i = 0; i < header.e_phnum; i++) {
    ElfW(Phdr) segment;
    memcpy(&segment, elf + header.e_phoff + (size_t)i * header.e_phentsize, sizeof segment);
    if (segment.p_type != PT_TLS) continue;
    module->shared = (sim_range){(unsigned)segment.p_filesz, (unsigned)(segment.p_memsz - segment.p_filesz)};
    return segment.p_filesz == sizeof(sim_block);
  }
  return false;
}

static sim_status open_library(sim_module *module, const sim_image *image) {
  if (!find_shared(module, image)) return SIM_INVALID_IMAGE;
  module->file = file_of(image);
  if (module->file < 0) return SIM_OUT_OF_MEMORY;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", module->file);
  module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  module->table = module->library ? dlsym(module->library, "sim_kernels") : NULL;
  if (module->table && module->table->version == SIM_KERNEL_VERSION && module->table->block_bytes == sizeof(sim_block))
    return SIM_OK;
  fprintf(stderr, "gpusim: a module cannot be loaded: %s\n", module->library ? "another version" : dlerror());
  if (module->library) dlclose(module->library);
  close(module->file);
  return SIM_INVALID_IMAGE;
}

static void close_library(sim_module *module) {
  dlclose(module->library);
  close(module->file);
}

sim_status sim_module_load(sim_device *device, const void *data, sim_module **result) {
  if (!data) {
    sim_violation("invalid argument", "a module is loaded from NULL");
    return SIM_INVALID_VALUE;
  }
  sim_status status = sim_count(SIM_CREATION, device);
  if (status != SIM_OK) return status;
  sim_image *image = sim_image_read(device, data, &status);
  if (!image) return status;
  sim_module loaded = {.image = image};
  status = open_library(&loaded, image);
  sim_module *module = status == SIM_OK ? sim_new("module", sizeof *module, device) : NULL;
  if (!module) {
    if (status == SIM_OK) close_library(&loaded);
    free(image);
    return status == SIM_OK ? SIM_OUT_OF_MEMORY : status;
  }
  loaded.object = module->object;
  *module = loaded;
  *result = module;
  return SIM_OK;
}

static void end_module(sim_module *module) {
  close_library(module);
  free(module->image);
  for (sim_kernel *kernel = module->kernels; kernel; kernel = kernel->next) free(kernel->shared);
}

void sim_module_hold(sim_module *module) {
  sim_lock();
  module->queued++;
  sim_unlock();
}

void sim_module_release(sim_module *module) {
  sim_lock();
  bool is_last = --module->queued == 0 && module->unloaded;
  sim_unlock();
  if (is_last) end_module(module);
}

/* A handle to a kernel means nothing without its module, so they go together. */
sim_status sim_module_unload(sim_module *handle) {
  sim_module *module = sim_check(handle, "module");
  if (!module) return SIM_INVALID_HANDLE;
  sim_lock();
  bool is_used = module->queued > 0;
  module->unloaded = true;
  for (sim_kernel *kernel = module->kernels; kernel; kernel = kernel->next) sim_delete(kernel);
  if (is_used || sim_is_pending(module))
    sim_violation("module unloaded in use", "nobody has waited for the launches of its kernels");
  sim_delete(module);
  sim_unlock();
  if (!is_used) end_module(module);
  return SIM_OK;
}

static const sim_entry *find_entry(const sim_module *module, const char *name) {
  const void *function = dlsym(module->library, name);
  for (unsigned i = 0; function && i < module->table->count; i++)
    if (module->table->entries[i].function == function) return &module->table->entries[i];
  return NULL;
}

static sim_kernel *find_known(const sim_module *module, const sim_entry *entry) {
  sim_kernel *kernel = module->kernels;
  while (kernel && kernel->entry != entry) kernel = kernel->next;
  return kernel;
}

static void find_shared_of(sim_kernel *kernel, const char *symbol) {
  const sim_module *module = kernel->module;
  kernel->shared = sim_shared_reach(module->image + 1, symbol, module->shared.offset, &kernel->shared_count);
  if (!kernel->shared) {
    kernel->shared = malloc(sizeof *kernel->shared);
    if (kernel->shared) *kernel->shared = module->shared;
    kernel->shared_count = kernel->shared ? 1 : 0;
  }
  for (unsigned i = 0; i < kernel->shared_count; i++) kernel->shared_bytes += kernel->shared[i].bytes;
}

static sim_kernel *make_kernel(sim_module *module, const sim_entry *entry, const char *symbol) {
  sim_kernel *kernel = sim_new("kernel", sizeof *kernel, module->object.device);
  if (!kernel) return NULL;
  kernel->module = module;
  kernel->entry = entry;
  snprintf(kernel->name, sizeof kernel->name, "%s", entry->name);
  find_shared_of(kernel, symbol);
  kernel->next = module->kernels;
  return module->kernels = kernel;
}

sim_status sim_module_kernel(sim_module *handle, const char *name, sim_kernel **result) {
  sim_module *module = sim_check(handle, "module");
  if (!module) return SIM_INVALID_HANDLE;
  if (!name || !result) {
    sim_violation("invalid argument", "the name of a kernel is NULL, or where it goes to");
    return SIM_INVALID_VALUE;
  }
  const sim_entry *entry = find_entry(module, name);
  if (!entry) return SIM_NOT_FOUND;
  sim_lock();
  sim_kernel *kernel = find_known(module, entry);
  if (!kernel) kernel = make_kernel(module, entry, name);
  sim_unlock();
  *result = kernel;
  return kernel ? SIM_OK : SIM_OUT_OF_MEMORY;
}
