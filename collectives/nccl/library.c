/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's library, and what is needed of the driver. Nothing of them is linked. */
#include <stdio.h>
#include <string.h>

#include "nccl.h"

#ifdef PLUGIN_FOR_HIP
#include "../../backends/gpu/abi/hip.h"
typedef struct driver_table {
  abi_enum (*hipSetDevice)(int device);
} driver_table;
static const gpu_symbol driver_symbols[] = {{"hipSetDevice", offsetof(driver_table, hipSetDevice)}};
#else
#include "../../backends/gpu/abi/cuda_driver.h"
typedef struct driver_table {
  abi_enum (*cuCtxSetCurrent)(struct CUctx_st *context);
} driver_table;
static const gpu_symbol driver_symbols[] = {{"cuCtxSetCurrent", offsetof(driver_table, cuCtxSetCurrent)}};
#endif

#define GPU_TABLE nccl_table
static const gpu_symbol symbols[] = {NCCL_FUNCTIONS(GPU_SYMBOL)};
static const gpu_symbol optional_symbols[] = {NCCL_OPTIONAL_FUNCTIONS(GPU_SYMBOL)};

nccl_table nccl;
static driver_table driver;
static int version;
static char path[1024];
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

int nccl_library_version(void) {
  return version;
}

/* The backend has opened it already, if there are devices. Without one the library is of no use, and takes long to
 * open.
 */
static bool open_driver(char *reason, size_t size) {
  static const char *const names[] = {DRIVER_NAMES, NULL};
  char error[256];
  void *library = gpu_library_open(names, PLUGIN_FOLDERS, error, sizeof error);
  if (library == NULL) {
    snprintf(reason, size, "there is no driver of " PLUGIN_DEVICES ": " DRIVER_INSTALL " (%s)", error);
    return false;
  }
  const char *missing = gpu_library_bind(library, driver_symbols, 1, &driver);
  if (missing) snprintf(reason, size, "the driver of " PLUGIN_DEVICES " has no %s: " DRIVER_INSTALL, missing);
  return !missing;
}

/* 2.8.4 was 2804, 2.9.6 is 20906. */
static int full_version(int told) {
  return told < 10000 ? told / 1000 * 10000 + told % 1000 : told;
}

static bool open_library(const char *folders, char *reason, size_t size) {
  static const char *const names[] = {PLUGIN_LIBRARY, NULL};
  nccl_table found = {0};
  char error[256];
  void *library = gpu_library_open(names, folders, error, sizeof error);
  if (library == NULL) {
    snprintf(reason, size,
             PLUGIN_LIBRARY " is not there: " PLUGIN_INSTALL ", or say in " PLUGIN_PARAMETER
                            " which folder it is in (%s)",
             error);
    return false;
  }
  const char *missing = gpu_library_bind(library, symbols, sizeof symbols / sizeof symbols[0], &found);
  gpu_library_bind(library, optional_symbols, 1, &found);
  gpu_library_path(library, path, sizeof path);
  if (missing || found.ncclGetVersion(&version)) {
    snprintf(reason, size, "%s has no %s: it is too old, " PLUGIN_INSTALL, path, missing ? missing : "version");
    return false;
  }
  version = full_version(version);
  nccl = found;
  return true;
}

bool nccl_library_open(const helio_host *host, char *reason, size_t size) {
  static bool opened;
  const char *given = host->parameter(host, PLUGIN_PARAMETER);
  pthread_mutex_lock(&opening);
  if (!opened) {
    opened = open_driver(reason, size) && open_library(given && given[0] ? given : PLUGIN_FOLDERS, reason, size);
  }
  bool is_open = opened;
  pthread_mutex_unlock(&opening);
  if (is_open) {
    snprintf(reason, size, PLUGIN_TITLE " %d.%d.%d (%s), for " PLUGIN_DEVICES " devices of one process",
             version / 10000, version / 100 % 100, version % 100, path);
  }
  return is_open;
}

bool nccl_enter(const helio_member *member) {
  void *native = member->devices->native_device(member->device);
#ifdef PLUGIN_FOR_HIP
  return native != NULL && driver.hipSetDevice(*(const int *)native) == HIP_ABI_SUCCESS;
#else
  return native != NULL && driver.cuCtxSetCurrent(native) == CUDA_ABI_SUCCESS;
#endif
}

const char *nccl_text(abi_enum result, char *text, size_t size) {
  const char *last = nccl.ncclGetLastError ? nccl.ncclGetLastError(NULL) : "";
  const char *known = nccl.ncclGetErrorString(result);
  snprintf(text, size, PLUGIN_TITLE " says: %s%s%s", known ? known : "unknown", last && last[0] ? ": " : "",
           last ? last : "");
  return text;
}

helio_status nccl_status(abi_enum result, const char *text) {
  if (strstr(text, "out of memory")) return HELIO_OUT_OF_MEMORY;
  switch (result) {
  case NCCL_ABI_UNHANDLED_CUDA_ERROR:
    return HELIO_NOT_SUPPORTED; /* with devices that are well: a driver that is too old, a peer that is out of reach */
  case NCCL_ABI_INVALID_ARGUMENT:
  case NCCL_ABI_INVALID_USAGE:
    return HELIO_INVALID_ARGUMENT;
  case NCCL_ABI_REMOTE_ERROR:
    return HELIO_ABORTED;
  default:
    return HELIO_IO_FAILURE; /* the network, shared memory */
  }
}
