/* SPDX-License-Identifier: Apache-2.0 */
/* HIP's run-time compiler, hipRTC: a library of its own, and until HIP 6 in the runtime as well. */
#include "../gpu/vendor.h"

#include "../gpu/abi/hiprtc.h"
#include "../gpu/library.h"
#include "driver.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct table {
  HIPRTC_FUNCTIONS(GPU_POINTER)
} table;

#define GPU_TABLE table
static const gpu_symbol symbols[] = {HIPRTC_FUNCTIONS(GPU_SYMBOL)};

/* Besides architecture and macros. */
#define OPTION_CONTRACTION "-ffp-contract=off"
#define OPTION_STANDARD    "-std=c++14"

static table compiler;
static char identity[PATH_MAX + 128];
static bool compiler_opened;
static pthread_mutex_t compiler_lock = PTHREAD_MUTEX_INITIALIZER;

static void identify(void *library) {
  char path[PATH_MAX];
  struct stat file = {0};
  int major = 0, minor = 0;
  gpu_library_path(library, path, sizeof path);
  compiler.hiprtcVersion(&major, &minor);
  if (stat(path, &file) != 0) memset(&file, 0, sizeof file);
  snprintf(identity, sizeof identity, "hiprtc %d.%d %s %lld %lld " OPTION_CONTRACTION " " OPTION_STANDARD, major, minor,
           path, (long long)file.st_size, (long long)file.st_mtime);
}

static helio_status open_library(const helio_host *host) {
  /* Of the runtime's own version: another one's code need not fit it. */
  char name[32], error[256] = "", folders[PATH_MAX];
  snprintf(name, sizeof name, "libhiprtc.so.%d", hip_runtime_major());
  const char *const names[] = {name, NULL};
  vendor_folders(host, folders, sizeof folders);
  void *library = gpu_library_open(names, folders, error, sizeof error);
  if (library == NULL) library = hip_runtime_library();
  const char *missing = gpu_library_bind(library, symbols, sizeof symbols / sizeof symbols[0], &compiler);
  if (missing != NULL)
    return host->fail(
        host, HELIO_NOT_SUPPORTED,
        "kernels cannot be compiled: there is no %s, nor has libamdhip64 %s: install ROCm's hipRTC, or say "
        "where it is by %s (%s)",
        name, missing, vendor.parameter_libraries, error);
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

static helio_status read_image(const helio_host *host, struct _hiprtcProgram *program, vendor_image *image) {
  size_t bytes = 0;
  abi_enum result = compiler.hiprtcGetCodeSize(program, &bytes);
  char *data = result == 0 && bytes > 0 ? host->allocate(host, bytes) : NULL;
  if (result == 0 && bytes > 0 && data == NULL)
    return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for a compiled kernel");
  if (data != NULL) result = compiler.hiprtcGetCode(program, data);
  if (data != NULL && result == 0) {
    *image = (vendor_image){data, bytes};
    return HELIO_OK;
  }
  if (data != NULL) host->release(host, data);
  return host->fail(host, HELIO_DEVICE_FAILURE, "hipRTC compiled, but gives no image: %s",
                    compiler.hiprtcGetErrorString(result));
}

static helio_status tell_log(const helio_host *host, struct _hiprtcProgram *program, const char *name,
                             const char *option, abi_enum result) {
  size_t bytes = 0;
  char *log = NULL;
  if (compiler.hiprtcGetProgramLogSize(program, &bytes) == 0 && bytes > 1) log = host->allocate(host, bytes);
  bool told = log != NULL && compiler.hiprtcGetProgramLog(program, log) == 0;
  helio_status status = host->fail(host, HELIO_DEVICE_FAILURE, "hipRTC does not compile %s with %s: %s%s%s", name,
                                   option, compiler.hiprtcGetErrorString(result), told ? ": " : "", told ? log : "");
  if (log != NULL) host->release(host, log);
  return status;
}

helio_status vendor_compile(const helio_host *host, const vendor_facts *facts, const char *name, const char *text,
                            const char *const *defines, vendor_image *image) {
  /* Never another architecture than the device's own: hipRTC 5.2 ends the process over one that it does not know. */
  char architecture[sizeof facts->architecture + 32];
  snprintf(architecture, sizeof architecture, "--offload-arch=%s", facts->architecture);
  const char *options[16] = {architecture, OPTION_CONTRACTION, OPTION_STANDARD};
  int count = 3;
  for (; *defines != NULL && count < 16; defines++) options[count++] = *defines;
  struct _hiprtcProgram *program;
  abi_enum result = compiler.hiprtcCreateProgram(&program, text, name, 0, NULL, NULL);
  if (result != 0)
    return host->fail(host, HELIO_DEVICE_FAILURE, "hipRTC does not take %s: %s", name,
                      compiler.hiprtcGetErrorString(result));
  result = compiler.hiprtcCompileProgram(program, count, options);
  helio_status status =
      result == 0 ? read_image(host, program, image) : tell_log(host, program, name, architecture, result);
  compiler.hiprtcDestroyProgram(&program);
  return status;
}
