/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's library, and what is needed of the driver. Nothing of them is linked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nccl.h"

#ifdef PLUGIN_FOR_HIP
#include "../../backends/gpu/abi/hip.h"
#define CURRENT_FUNCTION HIP_CURRENT_FUNCTION
#else
#include "../../backends/gpu/abi/cuda_driver.h"
#define CURRENT_FUNCTION CUDA_DRIVER_CURRENT_FUNCTION
#endif

typedef struct driver_table {
  CURRENT_FUNCTION(GPU_POINTER)
} driver_table;
#define GPU_TABLE driver_table
static const gpu_symbol driver_symbols[] = {CURRENT_FUNCTION(GPU_SYMBOL)};
#undef GPU_TABLE

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

/* The backend has opened it already, if there are devices: that one, wherever the backend was told to look. Without one
 * the library is of no use, and takes long to open.
 */
static bool open_driver(char *reason, size_t size) {
  static const char *const names[] = {DRIVER_NAMES, NULL};
  char error[512] = "";
  gpu_places usual;
  gpu_library_places(NULL, PLUGIN_FOLDERS, &usual);
  void *library = gpu_library_opened(names);
  if (library == NULL) library = gpu_library_open(names, &usual, error, sizeof error);
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

static bool open_library(const gpu_places *places, char *reason, size_t size) {
  static const char *const names[] = {PLUGIN_LIBRARY, NULL};
  nccl_table found = {0};
  char error[512] = "";
  void *library = gpu_library_open(names, places, error, sizeof error);
  if (library == NULL) {
    snprintf(reason, size,
             PLUGIN_LIBRARY " is not there: " PLUGIN_INSTALL ", or say in " PLUGIN_PARAMETER
                            " which folder it is in (%s)",
             error);
    return false;
  }
  const void *set_current;
  memcpy(&set_current, &driver, sizeof set_current);
  if (!gpu_library_shares(library, driver_symbols[0].name, set_current, reason, size)) return false;
  const char *missing = gpu_library_bind(library, symbols, sizeof symbols / sizeof symbols[0], &found);
  gpu_library_bind(library, optional_symbols, 1, &found);
  gpu_library_path(library, path, sizeof path);
  if (missing || found.ncclGetVersion(&version)) {
    snprintf(reason, size, "%s has no %s: it is too old, " PLUGIN_INSTALL, path, missing ? missing : "version");
    return false;
  }
  version = full_version(version);
  if (version < 20700) {
    snprintf(reason, size, "%s is version %d.%d: it is too old, " PLUGIN_INSTALL, path, version / 10000,
             version / 100 % 100);
    return false;
  }
  nccl = found;
  return true;
}

/* Since 2.17 the variable makes every communicator one whose calls answer "in progress", whatever the program asks for;
 * the library reads it as a number of any base. */
bool nccl_library_waits(char *reason, size_t size) {
  enum { FIRST_TO_OBEY = 21700 };
  const char *value = getenv("NCCL_COMM_BLOCKING");
  char *end = NULL;
  if (value == NULL || version < FIRST_TO_OBEY || strtoll(value, &end, 0) != 0 || end == value) return true;
  snprintf(reason, size,
           "NCCL_COMM_BLOCKING=%.20s lets calls of " PLUGIN_TITLE " come back before they are done, which " PLUGIN_NAME
           " cannot use: set it to 1, or take it away",
           value);
  return false;
}

bool nccl_library_open(const helio_host *host, char *reason, size_t size) {
  static bool opened;
  gpu_places places;
  gpu_library_places(host->parameter(host, PLUGIN_PARAMETER), PLUGIN_FOLDERS, &places);
  pthread_mutex_lock(&opening);
  if (!opened) opened = open_driver(reason, size) && open_library(&places, reason, size);
  bool is_open = opened;
  pthread_mutex_unlock(&opening);
  if (is_open && !nccl_library_waits(reason, size)) return false;
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

/* The library's last error may be an older one, of any thread: it is for the reader, and nothing is concluded from it.
 */
const char *nccl_text(abi_enum result, char *text, size_t size) {
  const char *last = nccl.ncclGetLastError ? nccl.ncclGetLastError(NULL) : NULL;
  const char *known = nccl.ncclGetErrorString(result);
  int length = snprintf(text, size, PLUGIN_TITLE " says: %s", known ? known : "unknown");
  if (last && last[0] && length > 0 && (size_t)length < size) {
    snprintf(text + length, size - (size_t)length, " (its last message: %s)", last);
  }
  return text;
}

helio_status nccl_status(abi_enum result) {
  switch (result) {
  case NCCL_ABI_UNHANDLED_CUDA_ERROR:
    /* With devices that are well: a driver that is too old, a peer that is out of reach, no memory left for the
     * library's own buffers. There is no code that tells them apart. */
    return HELIO_NOT_SUPPORTED;
  case NCCL_ABI_INVALID_ARGUMENT:
  case NCCL_ABI_INVALID_USAGE:
    return HELIO_INVALID_ARGUMENT;
  case NCCL_ABI_REMOTE_ERROR:
    return HELIO_ABORTED;
  default:
    return HELIO_IO_FAILURE; /* the network, shared memory */
  }
}
