/* SPDX-License-Identifier: Apache-2.0 */
/* Finds OpenBLAS and makes it load the right kernels.
 *
 * Only the pthread flavour will do. We call it single-threaded from several threads at once: so called, Debian's serial
 * flavour gives wrong products and the openmp flavour hangs.
 *
 * OpenBLAS chooses its kernels while it is being loaded, and a version that is older than the processor falls back to
 * SSE kernels of 2004. OPENBLAS_CORETYPE names others; it is set around the loading only, as is OPENBLAS_NUM_THREADS=1,
 * which keeps it from starting threads that nobody uses.
 *
 * It is never closed again: it registers handlers with fork and keeps memory per thread, and unloading the code under
 * them has crashed programs. A process therefore holds it once, however often the plugin comes and goes. */
#define _GNU_SOURCE
#include "blas.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef CPU_MULTIARCH
#define CPU_MULTIARCH "x86_64-linux-gnu"
#endif

#define REASON_SIZE 400

/* An environment variable that is to have a value for a while. */
typedef struct setting {
  const char *name;
  char *before; /* NULL: was unset */
  bool changed;
} setting;

/* `value` NULL: leave it alone. Without memory for the old value it is left alone too. */
static void setting_change(const helio_host *host, setting *variable, const char *name, const char *value) {
  *variable = (setting){.name = name};
  const char *before = getenv(name);
  if (value == NULL) return;
  if (before != NULL) {
    size_t size = strlen(before) + 1;
    variable->before = host->allocate(host, size);
    if (variable->before == NULL) return;
    memcpy(variable->before, before, size);
  }
  variable->changed = setenv(name, value, 1) == 0;
}

static void setting_restore(const helio_host *host, setting *variable) {
  if (variable->changed && variable->before == NULL) unsetenv(variable->name);
  if (variable->changed && variable->before != NULL) setenv(variable->name, variable->before, 1);
  if (variable->before != NULL) host->release(host, variable->before);
}

/* What OpenBLAS calls the kernels that suit an instruction set; NULL: let it choose. */
static const char *core_for(cpu_isa isa, bool forced, const char *vendor) {
  if (isa == CPU_ISA_AVX512) return "SkylakeX";
  if (isa == CPU_ISA_AVX2) return strcmp(vendor, "AuthenticAMD") == 0 ? "Zen" : "Haswell";
#if defined(__x86_64__)
  if (forced) return __builtin_cpu_supports("sse4.2") ? "Nehalem" : "Prescott";
#endif
  (void)forced;
  return NULL;
}

static void *load(const helio_host *host, const char *path, const char *core) {
  setting core_type, threads;
  setting_change(host, &core_type, "OPENBLAS_CORETYPE", getenv("OPENBLAS_CORETYPE") == NULL ? core : NULL);
  setting_change(host, &threads, "OPENBLAS_NUM_THREADS", "1");
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  setting_restore(host, &threads);
  setting_restore(host, &core_type);
  return library;
}

/* Function pointers come out of dlsym as data pointers; POSIX lets them be copied, C does not let them be cast. */
static bool look_up(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* Asks the library what it is. Writes a reason and answers false if it will not do. */
static bool examine(void *library, cpu_blas *blas, int *threads, char *reason) {
  int (*get_parallel)(void), (*get_threads)(void);
  char *(*get_config)(void), *(*get_core)(void);
  if (!look_up(library, "cblas_sgemm", &blas->sgemm) || !look_up(library, "cblas_dgemm", &blas->dgemm) ||
      !look_up(library, "openblas_set_num_threads", &blas->set_threads) ||
      !look_up(library, "openblas_get_num_threads", &get_threads) ||
      !look_up(library, "openblas_get_parallel", &get_parallel) ||
      !look_up(library, "openblas_get_config", &get_config) || !look_up(library, "openblas_get_corename", &get_core)) {
    snprintf(reason, REASON_SIZE, "it is not an OpenBLAS with the cblas interface");
    return false;
  }
  if (get_parallel() != 1) {
    snprintf(reason, REASON_SIZE, "it is the %s flavour, which cannot be called from several threads at once",
             get_parallel() == 0 ? "serial" : "openmp");
    return false;
  }
  const char *config = get_config();
  if (strstr(config, "USE64BITINT") != NULL) {
    snprintf(reason, REASON_SIZE, "it is built for 64-bit indices");
    return false;
  }
  size_t words = strcspn(config, " ");
  words += config[words] == ' ' ? 1 + strcspn(config + words + 1, " ") : 0;
  snprintf(blas->version, sizeof blas->version, "%.*s", (int)words, config);
  snprintf(blas->core, sizeof blas->core, "%s", get_core());
  struct link_map *map = NULL;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != NULL)
    snprintf(blas->library, sizeof blas->library, "%s", map->l_name);
  *threads = get_threads();
  return true;
}

/* A refused library stays loaded, for the reason given above; it holds no thread. */
static bool try_library(const helio_host *host, const char *path, const char *core, cpu_blas *blas, char *reason) {
  char cause[REASON_SIZE] = "";
  bool loaded_before = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) != NULL;
  void *library = load(host, path, core);
  int threads = 1;
  if (library == NULL) {
    const char *error = dlerror();
    snprintf(reason, REASON_SIZE, "%.300s", error == NULL ? "it cannot be loaded" : error);
    return false;
  }
  if (!examine(library, blas, &threads, cause)) {
    memset(blas, 0, sizeof *blas);
    snprintf(reason, REASON_SIZE, "%.200s: %.180s", path, cause);
    return false;
  }
  blas->threads_before = loaded_before ? threads : 0;
  blas->set_threads(1);
  if (core != NULL && getenv("OPENBLAS_CORETYPE") == NULL && strcasecmp(blas->core, core) != 0)
    host->log(host, HELIO_LOG_WARNING, "%s uses its %s kernels, where %s would suit%s", blas->version, blas->core, core,
              loaded_before ? ": the program had loaded it before; set OPENBLAS_CORETYPE" : "");
  return true;
}

/* OpenBLAS takes a buffer of 128 MiB of addresses for each thread that calls it, and tries for ever if it cannot have
 * it. Under a limit of addresses that leaves no room for that, it is not used. */
static bool has_room(char *reason) {
  const uint64_t buffer = (uint64_t)136 << 20;
  struct rlimit limit;
  long pages = 0;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1) pages = 0;
  if (file != NULL) fclose(file);
  uint64_t used = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t needed = buffer * (uint64_t)(sysconf(_SC_NPROCESSORS_ONLN) + 1);
  if (limit.rlim_cur > used && limit.rlim_cur - used > needed) return true;
  snprintf(reason, REASON_SIZE, "the limit of addresses (ulimit -v) leaves no room for its buffers");
  return false;
}

/* When the process exits, OpenBLAS gives its buffers back while other threads may still be multiplying. The gate is
 * closed before that, once and for ever: products that are under way end, others wait for the end of the process. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_once_t watch = PTHREAD_ONCE_INIT;

static void close_gate(void) {
  pthread_rwlock_wrlock(&gate);
}

static void watch_exit(void) {
  atexit(close_gate);
}

void cpu_blas_multiply(const cpu_blas *blas, helio_type type, const cpu_product *p) {
  int transpose_a = p->transpose_a ? CPU_BLAS_TRANSPOSE : CPU_BLAS_NO_TRANSPOSE;
  int transpose_b = p->transpose_b ? CPU_BLAS_TRANSPOSE : CPU_BLAS_NO_TRANSPOSE;
  int m = (int)p->m, n = (int)p->n, k = (int)p->k;
  pthread_rwlock_rdlock(&gate);
  if (type == HELIO_FLOAT32) {
    blas->sgemm(CPU_BLAS_ROW_MAJOR, transpose_a, transpose_b, m, n, k, 1, p->a, (int)p->a_stride, p->b,
                (int)p->b_stride, p->accumulate ? 1 : 0, p->c, (int)p->c_stride);
  } else {
    blas->dgemm(CPU_BLAS_ROW_MAJOR, transpose_a, transpose_b, m, n, k, 1, p->a, (int)p->a_stride, p->b,
                (int)p->b_stride, p->accumulate ? 1 : 0, p->c, (int)p->c_stride);
  }
  pthread_rwlock_unlock(&gate);
}

helio_status cpu_blas_open(const helio_host *host, cpu_isa isa, bool isa_forced, const char *vendor, cpu_blas *blas) {
  static const char *const places[] = {"/usr/lib/" CPU_MULTIARCH "/openblas-pthread/libopenblas.so.0",
                                       "libopenblas.so.0"};
  char reason[REASON_SIZE] = "";
  const char *core = core_for(isa, isa_forced, vendor);
  const char *wanted = host->parameter(host, "HELIO_CPU_BLAS");
  memset(blas, 0, sizeof *blas);
  if (wanted != NULL && strcmp(wanted, "none") == 0) return HELIO_OK;
  if (wanted != NULL && wanted[0] != '\0') {
    pthread_once(&watch, watch_exit);
    if (try_library(host, wanted, core, blas, reason)) return HELIO_OK;
    return host->fail(host, HELIO_NOT_SUPPORTED, "HELIO_CPU_BLAS=%s cannot be used: %s", wanted, reason);
  }
  pthread_once(&watch, watch_exit);
  bool room = has_room(reason);
  for (size_t i = 0; room && i < sizeof places / sizeof places[0]; i++) {
    if (try_library(host, places[i], core, blas, reason)) return HELIO_OK;
    host->log(host, HELIO_LOG_DEBUG, "not taken as BLAS: %s", reason);
  }
  host->log(host, HELIO_LOG_WARNING,
            "no usable OpenBLAS (%s); matrix products run on slower code of our own (libopenblas0-pthread has one)",
            reason);
  return HELIO_OK;
}

void cpu_blas_close(cpu_blas *blas) {
  if (blas->set_threads != NULL && blas->threads_before > 0) blas->set_threads(blas->threads_before);
}
