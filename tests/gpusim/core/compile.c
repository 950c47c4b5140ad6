/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel text is compiled by the host's compiler: once to replace macros, then, with a table of its kernels behind it,
 * to a shared object. What a vendor's compiler would not find (any header, a type of fixed width) is not there. */
#define _GNU_SOURCE
#include "compile.h"
#include "module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { ARGUMENTS = SIM_COMPILE_ARGUMENTS + 32 };

/* Arithmetic as it is written, so that results are the same at each optimization. Accesses of arrays with a known size
 * and of aligned types are checked, by handlers of the shim. Two modules must not share what only they should see. */
static const char *const object_arguments[] = {"-std=c++17",
                                               "-x",
                                               "c++",
                                               "-O2",
                                               "-w",
                                               "-shared",
                                               "-fPIC",
                                               "-fvisibility=hidden",
                                               "-nodefaultlibs",
                                               "-nostdinc",
                                               "-fno-exceptions",
                                               "-fno-rtti",
                                               "-fno-math-errno",
                                               "-ffp-contract=off",
                                               "-fsanitize=bounds,alignment",
                                               "-fno-sanitize-recover=all",
                                               "-Wl,--no-undefined",
                                               "-Wl,--build-id=none",
                                               "-Wl,--emit-relocs",
                                               "-ffunction-sections",
                                               "-g1",
                                               "-fstack-clash-protection",
#ifndef __clang__
                                               "-fno-gnu-unique",
#endif
                                               "-Dsim_marker_global=__attribute__((used,visibility(\"default\")))",
                                               "-Dsim_marker_shared=__attribute__((used))thread_local",
                                               "-Dsim_marker_bounds(...)=",
                                               NULL};

/* Nothing about the host is known to a vendor's compiler, not even its compiler's name. */
static const char *const text_arguments[] = {"-std=c++17", "-x", "c++", "-E", "-undef", "-nostdinc", NULL};

static const char *const vendor_arguments[SIM_VENDORS][8] = {
    {"-D__CUDACC__=1", "-D__CUDACC_RTC__=1", "-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0", NULL},
    {"-D__HIPCC__=1", "-D__HIPCC_RTC__=1", "-D__HIP__=1", "-D__HIP_DEVICE_COMPILE__=1", NULL},
};

static int add_all(const char **list, int count, const char *const *more) {
  while (*more && count < ARGUMENTS - 1) list[count++] = *more++;
  return count;
}

/* "sm_80" is 800 to the text, "gfx90a:xnack-" is __gfx90a__. */
static char *architecture_macro(sim_vendor vendor, const sim_target *target) {
  if (vendor == SIM_CUDA) return sim_print("-D__CUDA_ARCH__=%d0", atoi(strchr(target->architecture, '_') + 1));
  return sim_print("-D__%.*s__=1", (int)strcspn(target->architecture, ":"), target->architecture);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The cache: a file per text, named by a hash of all that its content depends on
 */

static uint64_t mix(uint64_t hash, const char *text) {
  do hash = (hash ^ (unsigned char)*text) * 0x100000001B3ull;
  while (*text++);
  return hash;
}

static uint64_t hash_all(uint64_t hash, sim_vendor vendor, const char *text, const sim_target *target) {
  hash = mix(mix(mix(hash, sim_shim_text), SIM_COMPILER " " __VERSION__), text);
  hash = mix(mix(hash, target->architecture), vendor == SIM_CUDA ? "cuda" : "hip");
  for (int i = 0; i < target->argument_count; i++) hash = mix(hash, target->arguments[i]);
  for (const char *const *argument = object_arguments; *argument; argument++) hash = mix(hash, *argument);
  return hash;
}

/* NULL: there is no cache. */
static char *cache_path(sim_vendor vendor, const char *text, const sim_target *target) {
  const char *folder = sim_setup()->cache;
  if (!folder || !*folder) return NULL;
  return sim_print("%s/%016llx%016llx.kernels", folder,
                   (unsigned long long)hash_all(0xCBF29CE484222325ull, vendor, text, target),
                   (unsigned long long)hash_all(0x9E3779B97F4A7C15ull, vendor, text, target));
}

static sim_image *from_cache(const char *path) {
  size_t bytes = 0;
  sim_image *image = path ? (sim_image *)sim_file_read(path, &bytes) : NULL;
  if (image && bytes >= sizeof *image && sim_image_has_head(image) && bytes == sim_image_bytes(image) &&
      sim_image_is_whole(image))
    return image;
  free(image);
  return NULL;
}

/* Another process may be about to write the same, so it is written aside and appears at once. */
static void into_cache(const char *path, const sim_image *image) {
  char *aside = path ? sim_print("%s.%ld.%lx", path, (long)getpid(), (unsigned long)(uintptr_t)image) : NULL;
  if (!aside) return;
  if (!sim_file_write(aside, image, sim_image_bytes(image)) || rename(aside, path)) unlink(aside);
  free(aside);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Compiling, in a folder for the time being
 */

typedef struct job {
  sim_vendor vendor;
  const char *text;
  const sim_target *target;
  char **log;
  char folder[64], source[80], expanded[80], complete[80], object[80];
} job;

static bool open_folder(job *j) {
  const char *parent = getenv("TMPDIR");
  if (!parent || strlen(parent) > 32) parent = "/tmp";
  snprintf(j->folder, sizeof j->folder, "%s/gpusim-XXXXXX", parent);
  if (!mkdtemp(j->folder)) {
    *j->log = sim_print("gpusim: no folder can be made in %s: %s\n", parent, strerror(errno));
    return false;
  }
  snprintf(j->source, sizeof j->source, "%s/source", j->folder);
  snprintf(j->expanded, sizeof j->expanded, "%s/expanded", j->folder);
  snprintf(j->complete, sizeof j->complete, "%s/complete", j->folder);
  snprintf(j->object, sizeof j->object, "%s/object", j->folder);
  return true;
}

static void close_folder(job *j) {
  unlink(j->source);
  unlink(j->expanded);
  unlink(j->complete);
  unlink(j->object);
  rmdir(j->folder);
}

static bool expand(job *j) {
  char *source = sim_print("%s\n#line 1 \"kernel\"\n%s\n", sim_shim_text, j->text);
  char *macro = architecture_macro(j->vendor, j->target);
  const char *list[ARGUMENTS] = {0};
  int count = add_all(list, 0, text_arguments);
  count = add_all(list, count, vendor_arguments[j->vendor]);
  count = add_all(list, count, j->target->arguments);
  add_all(list, count, (const char *const[]){macro, j->source, "-o", j->expanded, NULL});
  bool good =
      source && macro && sim_file_write(j->source, source, strlen(source)) && sim_run_compiler(j->folder, list, j->log);
  free(source);
  free(macro);
  return good;
}

static bool complete(job *j) {
  size_t bytes;
  char *expanded = sim_file_read(j->expanded, &bytes);
  char *text = expanded ? sim_text_complete(expanded, j->log) : NULL;
  bool good = text && sim_file_write(j->complete, text, strlen(text));
  free(text);
  free(expanded);
  return good;
}

static bool make_object(job *j) {
  const char *list[ARGUMENTS] = {0};
  int count = add_all(list, 0, object_arguments);
  add_all(list, count, (const char *const[]){j->complete, "-o", j->object, "-lm", "-lc", NULL});
  return sim_run_compiler(j->folder, list, j->log);
}

/* As CUDA's assembler says it; nobody reads AMD's words. */
static bool check_shared(job *j, const char *elf) {
  static const char *const words[SIM_VENDORS] = {
      "ptxas error   : Entry function '%s' uses too much shared data (0x%zx bytes, 0x%x max)\n",
      "error: the kernel %s uses too much local memory (%zu bytes; the limit is %u)\n"};
  unsigned limit = sim_limits_of(j->vendor)->shared_per_block;
  size_t bytes;
  const char *kernel = sim_shared_excess(elf, limit, &bytes);
  if (!kernel) return true;
  free(*j->log);
  *j->log = sim_print(words[j->vendor], kernel, bytes, limit);
  return false;
}

static sim_image *compile(job *j) {
  if (!open_folder(j)) return NULL;
  size_t bytes;
  char *elf = NULL;
  if (expand(j) && complete(j) && make_object(j)) elf = sim_file_read(j->object, &bytes);
  sim_image *image = elf && check_shared(j, elf) ? sim_image_make(j->vendor, j->target, elf, bytes) : NULL;
  free(elf);
  close_folder(j);
  return image;
}

/* Who compiles a text holds this lock of it, other threads and processes wait: each of them would compile the same. -1:
 * there is no cache, or it cannot be written. */
static int lock_text(char **name, const char *path) {
  *name = path ? sim_print("%s.lock", path) : NULL;
  int file = *name ? open(*name, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
  while (file >= 0 && flock(file, LOCK_EX) && errno == EINTR) continue;
  return file;
}

static void unlock_text(int file, char *name) {
  if (file >= 0) {
    unlink(name); /* whoever waits has it open and finds the text in the cache */
    close(file);
  }
  free(name);
}

static sim_image *compile_or_find(job *j) {
  char *path = cache_path(j->vendor, j->text, j->target), *name;
  sim_image *image = from_cache(path);
  if (!image) {
    int lock = lock_text(&name, path);
    image = from_cache(path);
    if (!image && (image = compile(j))) into_cache(path, image);
    unlock_text(lock, name);
  }
  free(path);
  return image;
}

void *sim_compile(sim_vendor vendor, const char *text, const char *const *options, int option_count, size_t *bytes,
                  char **log) {
  sim_target target;
  sim_image *image = NULL;
  *log = NULL;
  *bytes = 0;
  if (sim_count(SIM_COMPILATION, sim_current(vendor)) != SIM_OK) {
    *log = strdup("gpusim: this compilation fails on demand\n");
  } else if (sim_options_parse(vendor, options, option_count, &target, log)) {
    image = compile_or_find(&(job){.vendor = vendor, .text = text, .target = &target, .log = log});
    if (image) *bytes = sim_image_bytes(image);
  }
  if (!*log) *log = strdup("");
  return image;
}
