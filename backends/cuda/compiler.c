/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's run-time compiler, NVRTC. */
#include "../gpu/vendor.h"

#include "../gpu/abi/nvrtc.h"
#include "../gpu/library.h"
#include "driver.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct table {
  NVRTC_FUNCTIONS(GPU_POINTER)
} table;

#define GPU_TABLE table
static const gpu_symbol symbols[] = {NVRTC_FUNCTIONS(GPU_SYMBOL)};

/* Newest first. The name of 11.3 and later is that of 11.2. */
static const struct {
  int major;
  const char *name;
} versions[] = {{13, "libnvrtc.so.13"}, {12, "libnvrtc.so.12"}, {11, "libnvrtc.so.11.2"}};
#define VERSIONS (sizeof versions / sizeof versions[0])

/* Besides architecture and macros. */
#define OPTION_CONTRACTION "--fmad=false"
#define OPTION_STANDARD    "--std=c++14"

static table compiler;
static char identity[PATH_MAX + 128];
static bool compiler_opened;
static pthread_mutex_t compiler_lock = PTHREAD_MUTEX_INITIALIZER;

/* NVRTC opens a second library by its plain name when it compiles. The loader does not find it if NVRTC itself was
 * found by its path, unless it is open already. */
static void open_builtins(const char *path, int major, int minor) {
  const char *slash = strrchr(path, '/');
  char builtins[PATH_MAX];
  if (slash == NULL) return;
  int length =
      snprintf(builtins, sizeof builtins, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - path), path, major, minor);
  if (length > 0 && (size_t)length < sizeof builtins) (void)dlopen(builtins, RTLD_NOW | RTLD_LOCAL);
}

static void identify(void *library) {
  char path[PATH_MAX];
  struct stat file = {0};
  int major = 0, minor = 0;
  gpu_library_path(library, path, sizeof path);
  compiler.nvrtcVersion(&major, &minor);
  open_builtins(path, major, minor);
  if (stat(path, &file) != 0) memset(&file, 0, sizeof file);
  snprintf(identity, sizeof identity, "nvrtc %d.%d %s %lld %lld " OPTION_CONTRACTION " " OPTION_STANDARD, major, minor,
           path, (long long)file.st_size, (long long)file.st_mtime);
}

static helio_status open_library(const helio_host *host) {
  const char *names[VERSIONS + 1] = {NULL};
  size_t count = 0;
  int driver_major = cuda_driver_version() / 1000;
  for (size_t i = 0; i < VERSIONS; i++) {
    if (versions[i].major <= driver_major) names[count++] = versions[i].name;
  }
  char error[256] = "", folders[PATH_MAX];
  vendor_folders(host, folders, sizeof folders);
  void *library = gpu_library_open(names, folders, error, sizeof error);
  if (library == NULL)
    return host->fail(host, HELIO_NOT_SUPPORTED,
                      "kernels cannot be compiled: there is no NVRTC of CUDA %d or older, as this driver wants it: "
                      "install it (Debian: libnvrtc%d; conda and pip: cuda-nvrtc), or say where it is by %s (%s)",
                      driver_major, driver_major, vendor.parameter_libraries, error);
  const char *missing = gpu_library_bind(library, symbols, sizeof symbols / sizeof symbols[0], &compiler);
  if (missing != NULL)
    return host->fail(host, HELIO_NOT_SUPPORTED,
                      "kernels cannot be compiled: NVRTC has no %s: install that of CUDA 11.2 or newer", missing);
  identify(library);
  return HELIO_OK;
}

helio_status vendor_compiler_open(const helio_host *host) {
  helio_status status = HELIO_OK;
  pthread_mutex_lock(&compiler_lock);
  if (!compiler_opened) {
    status = open_library(host);
    compiler_opened = status == HELIO_OK;
  }
  pthread_mutex_unlock(&compiler_lock);
  return status;
}

const char *vendor_compiler_identity(void) {
  return identity;
}

/* The architecture to compile for: the device's own, as code, if the compiler knows it; else the highest that it knows
 * below, as text that the driver compiles. false if there is none. */
static bool choose_architecture(const vendor_facts *facts, char *option, size_t size, bool *is_code) {
  int wanted = atoi(facts->architecture + strlen("sm_")), count = 0, best = 0, known[256];
  if (compiler.nvrtcGetNumSupportedArchs(&count) != 0 || count <= 0 || count > 256 ||
      compiler.nvrtcGetSupportedArchs(known) != 0)
    return false;
  for (int i = 0; i < count; i++) {
    if (known[i] <= wanted && known[i] > best) best = known[i];
  }
  *is_code = best == wanted;
  snprintf(option, size, "--gpu-architecture=%s_%d", *is_code ? "sm" : "compute", best);
  return best > 0;
}

static helio_status read_image(const helio_host *host, struct _nvrtcProgram *program, bool is_code,
                               vendor_image *image) {
  size_t bytes = 0;
  abi_enum result = is_code ? compiler.nvrtcGetCUBINSize(program, &bytes) : compiler.nvrtcGetPTXSize(program, &bytes);
  if (result != 0 || bytes == 0)
    return host->fail(host, HELIO_DEVICE_FAILURE, "NVRTC compiled, but gives no image: %s",
                      compiler.nvrtcGetErrorString(result));
  char *data = host->allocate(host, bytes);
  if (data == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a compiled kernel");
  result = is_code ? compiler.nvrtcGetCUBIN(program, data) : compiler.nvrtcGetPTX(program, data);
  if (result != 0) {
    host->release(host, data);
    return host->fail(host, HELIO_DEVICE_FAILURE, "NVRTC compiled, but gives no image: %s",
                      compiler.nvrtcGetErrorString(result));
  }
  *image = (vendor_image){data, bytes};
  return HELIO_OK;
}

static helio_status tell_log(const helio_host *host, struct _nvrtcProgram *program, const char *name,
                             const char *option, abi_enum result) {
  size_t bytes = 0;
  char *log = NULL;
  if (compiler.nvrtcGetProgramLogSize(program, &bytes) == 0 && bytes > 1) log = host->allocate(host, bytes);
  bool told = log != NULL && compiler.nvrtcGetProgramLog(program, log) == 0;
  helio_status status = host->fail(host, HELIO_DEVICE_FAILURE, "NVRTC does not compile %s with %s: %s%s%s", name,
                                   option, compiler.nvrtcGetErrorString(result), told ? ": " : "", told ? log : "");
  if (log != NULL) host->release(host, log);
  return status;
}

helio_status vendor_compile(const helio_host *host, const vendor_facts *facts, const char *name, const char *text,
                            const char *const *defines, vendor_image *image) {
  char architecture[64];
  bool is_code;
  if (!choose_architecture(facts, architecture, sizeof architecture, &is_code))
    return host->fail(host, HELIO_NOT_SUPPORTED,
                      "kernels cannot be compiled: this NVRTC does not know %s: install that of an older CUDA (%s)",
                      facts->architecture, identity);
  const char *options[16] = {architecture, OPTION_CONTRACTION, OPTION_STANDARD};
  int count = 3;
  for (; *defines != NULL && count < 16; defines++) options[count++] = *defines;
  struct _nvrtcProgram *program;
  abi_enum result = compiler.nvrtcCreateProgram(&program, text, name, 0, NULL, NULL);
  if (result != 0)
    return host->fail(host, HELIO_DEVICE_FAILURE, "NVRTC does not take %s: %s", name,
                      compiler.nvrtcGetErrorString(result));
  result = compiler.nvrtcCompileProgram(program, count, options);
  helio_status status =
      result == 0 ? read_image(host, program, is_code, image) : tell_log(host, program, name, architecture, result);
  compiler.nvrtcDestroyProgram(&program);
  return status;
}
