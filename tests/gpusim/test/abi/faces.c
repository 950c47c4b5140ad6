/* SPDX-License-Identifier: Apache-2.0 */
/* Every function that we declare is in the stand-in of its library: what a backend looks up must be found there. */
#include "abi.h"

#include "../../../../backends/gpu/abi/cublas.h"
#include "../../../../backends/gpu/abi/cuda_driver.h"
#include "../../../../backends/gpu/abi/cudnn.h"
#include "../../../../backends/gpu/abi/hip.h"
#include "../../../../backends/gpu/abi/hiprtc.h"
#include "../../../../backends/gpu/abi/miopen.h"
#include "../../../../backends/gpu/abi/nccl.h"
#include "../../../../backends/gpu/abi/nvrtc.h"
#include "../../../../backends/gpu/abi/rocblas.h"

#include <dlfcn.h>
#include <stdio.h>

#define NAME(result, name, arguments) #name,

static const struct {
  const char *soname;
  const char *const *names;
} faces[] = {
    {"libcuda.so.1", (const char *const[]){CUDA_DRIVER_FUNCTIONS(NAME) CUDA_DRIVER_OTHER_FUNCTIONS(NAME)
                                               CUDA_DRIVER_OPTIONAL_FUNCTIONS(NAME) NULL}},
    {"libnvrtc.so.13", (const char *const[]){NVRTC_FUNCTIONS(NAME) NULL}},
    {"libcublas.so.13", (const char *const[]){CUBLAS_FUNCTIONS(NAME) CUBLAS_OPTIONAL_FUNCTIONS(NAME) NULL}},
    {"libcudnn.so.9", (const char *const[]){CUDNN_FUNCTIONS(NAME) CUDNN_OPTIONAL_FUNCTIONS(NAME) NULL}},
    {"libnccl.so.2",
     (const char *const[]){NCCL_FUNCTIONS(NAME) NCCL_OTHER_FUNCTIONS(NAME) NCCL_OPTIONAL_FUNCTIONS(NAME) NULL}},
    {"libamdhip64.so.6",
     (const char *const[]){HIP_FUNCTIONS(NAME) HIP_OTHER_FUNCTIONS(NAME) HIP_OPTIONAL_FUNCTIONS(
         NAME) HIP_PROPERTIES_FUNCTION(NAME) HIP_OLDER_PROPERTIES_FUNCTION(NAME) HIPRTC_FUNCTIONS(NAME) NULL}},
    {"libhiprtc.so.6", (const char *const[]){HIPRTC_FUNCTIONS(NAME) NULL}},
    {"librocblas.so.4", (const char *const[]){ROCBLAS_FUNCTIONS(NAME) NULL}},
    {"libMIOpen.so.1", (const char *const[]){MIOPEN_FUNCTIONS(NAME) NULL}},
    {"librccl.so.1",
     (const char *const[]){NCCL_FUNCTIONS(NAME) NCCL_OTHER_FUNCTIONS(NAME) NCCL_OPTIONAL_FUNCTIONS(NAME) NULL}},
};

/* How many functions the library lacks. */
static int missing_in(const char *folder, const char *soname, const char *const *names) {
  char path[4096 + 64];
  snprintf(path, sizeof path, "%s/%s", folder, soname);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  int missing = 0;
  if (!library) {
    printf("%s\n", dlerror());
    return 1;
  }
  for (; *names; names++) {
    if (dlsym(library, *names)) continue;
    printf("%s has no %s\n", soname, *names);
    missing++;
  }
  return missing;
}

int functions_missing(const char *folder) {
  int missing = 0;
  for (size_t i = 0; i < sizeof faces / sizeof *faces; i++)
    missing += missing_in(folder, faces[i].soname, faces[i].names);
  return missing;
}
