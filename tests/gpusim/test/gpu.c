/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu.h"

#include "cuda_driver.h"
#include "hip.h"
#include "hiprtc.h"
#include "mistakes.h"
#include "nvrtc.h"

#include <stdio.h>
#include <stdlib.h>

CUDA_DRIVER_FUNCTIONS(FACE_POINTER)
CUDA_DRIVER_OTHER_FUNCTIONS(FACE_POINTER)
NVRTC_FUNCTIONS(FACE_POINTER)
HIP_FUNCTIONS(FACE_POINTER)
HIP_OTHER_FUNCTIONS(FACE_POINTER)
HIPRTC_FUNCTIONS(FACE_POINTER)

enum { MOST_DEVICES = 4, COPY_IN = 1, COPY_OUT = 2 };

static bool is_cuda;
static int opened;
static struct CUctx_st *contexts[MOST_DEVICES];

const char gpu_prologue[] = "#ifdef __CUDACC_RTC__\n"
                            "#define SHUFFLE(value, lane) __shfl_sync(0xFFFFFFFFu, value, lane)\n"
                            "#define SHUFFLE_UP(value, delta) __shfl_up_sync(0xFFFFFFFFu, value, delta)\n"
                            "#define SHUFFLE_DOWN(value, delta) __shfl_down_sync(0xFFFFFFFFu, value, delta)\n"
                            "#define SHUFFLE_XOR(value, bits) __shfl_xor_sync(0xFFFFFFFFu, value, bits)\n"
                            "#define SHUFFLE_UP_OF_8(value, delta) __shfl_up_sync(0xFFFFFFFFu, value, delta, 8)\n"
                            "#define SHUFFLE_DOWN_OF_8(value, delta) __shfl_down_sync(0xFFFFFFFFu, value, delta, 8)\n"
                            "#define ANY(p) __any_sync(0xFFFFFFFFu, p)\n"
                            "#define ALL(p) __all_sync(0xFFFFFFFFu, p)\n"
                            "#else\n"
                            "#define SHUFFLE(value, lane) __shfl(value, lane)\n"
                            "#define SHUFFLE_UP(value, delta) __shfl_up(value, delta)\n"
                            "#define SHUFFLE_DOWN(value, delta) __shfl_down(value, delta)\n"
                            "#define SHUFFLE_XOR(value, bits) __shfl_xor(value, bits)\n"
                            "#define SHUFFLE_UP_OF_8(value, delta) __shfl_up(value, delta, 8)\n"
                            "#define SHUFFLE_DOWN_OF_8(value, delta) __shfl_down(value, delta, 8)\n"
                            "#define ANY(p) __any(p)\n"
                            "#define ALL(p) __all(p)\n"
                            "#endif\n";

static void look_up_cuda(void) {
#define X(result, name, arguments) FACE_LOOKUP("libcuda.so.1", name)
  CUDA_DRIVER_FUNCTIONS(X)
  CUDA_DRIVER_OTHER_FUNCTIONS(X)
#undef X
#define X(result, name, arguments) FACE_LOOKUP("libnvrtc.so.13", name)
  NVRTC_FUNCTIONS(X)
#undef X
}

static void look_up_hip(void) {
#define X(result, name, arguments) FACE_LOOKUP("libamdhip64.so.6", name)
  HIP_FUNCTIONS(X)
  HIP_OTHER_FUNCTIONS(X)
#undef X
#define X(result, name, arguments) FACE_LOOKUP("libhiprtc.so.6", name)
  HIPRTC_FUNCTIONS(X)
#undef X
}

void gpu_open(sim_vendor vendor, int devices) {
  is_cuda = vendor == SIM_CUDA;
  opened = devices;
  if (is_cuda) {
    look_up_cuda();
    NEED(cuInit(0));
    for (int i = 0; i < devices; i++) NEED(cuDevicePrimaryCtxRetain(&contexts[i], i));
  } else {
    look_up_hip();
    NEED(hipInit(0));
  }
  gpu_select(0);
}

void gpu_close(void) {
  for (int i = 0; is_cuda && i < opened; i++) NEED(cuDevicePrimaryCtxRelease_v2(i));
}

void gpu_select(int device) {
  if (is_cuda)
    NEED(cuCtxSetCurrent(contexts[device]));
  else
    NEED(hipSetDevice(device));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Memory
 */

void *gpu_allocate(size_t bytes) {
  void *address = NULL;
  cuda_abi_address number = 0;
  if (!is_cuda) {
    NEED(hipMalloc(&address, bytes));
    return address;
  }
  NEED(cuMemAlloc_v2(&number, bytes));
  return (void *)(uintptr_t)number;
}

void gpu_free(void *address) {
  if (is_cuda)
    NEED(cuMemFree_v2((cuda_abi_address)(uintptr_t)address));
  else
    NEED(hipFree(address));
}

void gpu_copy_in(void *to, const void *from, size_t bytes) {
  if (is_cuda)
    NEED(cuMemcpyHtoDAsync_v2((cuda_abi_address)(uintptr_t)to, from, bytes, NULL));
  else
    NEED(hipMemcpyAsync(to, from, bytes, COPY_IN, NULL));
}

void gpu_copy_out(void *to, const void *from, size_t bytes) {
  if (is_cuda)
    NEED(cuMemcpyDtoHAsync_v2(to, (cuda_abi_address)(uintptr_t)from, bytes, NULL));
  else
    NEED(hipMemcpyAsync(to, from, bytes, COPY_OUT, NULL));
  NEED(gpu_finish());
}

void *gpu_copy_of(const void *from, size_t bytes) {
  void *address = gpu_allocate(bytes);
  gpu_copy_in(address, from, bytes);
  return address;
}

int gpu_finish(void) {
  return (int)(is_cuda ? cuStreamSynchronize(NULL) : hipStreamSynchronize(NULL));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Kernels
 */

static int compile_cuda(const char *text, const char *option, char **image, char **log) {
  struct _nvrtcProgram *program;
  size_t bytes;
  NEED(nvrtcCreateProgram(&program, text, "kernels.cu", 0, NULL, NULL));
  int status = (int)nvrtcCompileProgram(program, 1, &option);
  NEED(nvrtcGetProgramLogSize(program, &bytes));
  *log = malloc(bytes);
  NEED(nvrtcGetProgramLog(program, *log));
  if (status == 0) {
    NEED(nvrtcGetCUBINSize(program, &bytes));
    bool is_text = bytes == 0;
    if (is_text) NEED(nvrtcGetPTXSize(program, &bytes));
    *image = malloc(bytes);
    NEED(is_text ? nvrtcGetPTX(program, *image) : nvrtcGetCUBIN(program, *image));
  }
  NEED(nvrtcDestroyProgram(&program));
  return status;
}

static int compile_hip(const char *text, const char *option, char **image, char **log) {
  struct _hiprtcProgram *program;
  size_t bytes;
  NEED(hiprtcCreateProgram(&program, text, "kernels.hip", 0, NULL, NULL));
  int status = (int)hiprtcCompileProgram(program, 1, &option);
  NEED(hiprtcGetProgramLogSize(program, &bytes));
  *log = malloc(bytes);
  NEED(hiprtcGetProgramLog(program, *log));
  if (status == 0) {
    NEED(hiprtcGetCodeSize(program, &bytes));
    *image = malloc(bytes);
    NEED(hiprtcGetCode(program, *image));
  }
  NEED(hiprtcDestroyProgram(&program));
  return status;
}

int gpu_compile(const char *text, const char *architecture, char **image, char **log) {
  char option[128];
  if (!architecture) architecture = is_cuda ? "sm_80" : "gfx90a:sramecc+:xnack-";
  snprintf(option, sizeof option, "%s=%s", is_cuda ? "--gpu-architecture" : "--offload-arch", architecture);
  return is_cuda ? compile_cuda(text, option, image, log) : compile_hip(text, option, image, log);
}

int gpu_load(const char *image, void **module) {
  return (int)(is_cuda ? cuModuleLoadData((struct CUmod_st **)module, image)
                       : hipModuleLoadData((struct ihipModule_t **)module, image));
}

void *gpu_module_of(const char *text) {
  char *image = NULL, *log = NULL;
  void *module = NULL;
  if (gpu_compile(text, NULL, &image, &log)) {
    fprintf(stderr, "%s", log);
    exit(3);
  }
  NEED(gpu_load(image, &module));
  free(image);
  free(log);
  return module;
}

void gpu_unload(void *module) {
  if (is_cuda)
    NEED(cuModuleUnload(module));
  else
    NEED(hipModuleUnload(module));
}

int gpu_kernel(void *module, const char *name, void **kernel) {
  return (int)(is_cuda ? cuModuleGetFunction((struct CUfunc_st **)kernel, module, name)
                       : hipModuleGetFunction((struct ihipModuleSymbol_t **)kernel, module, name));
}

void *gpu_stream;

void *gpu_stream_create(void) {
  void *stream;
  if (is_cuda)
    NEED(cuStreamCreate((struct CUstream_st **)&stream, 0));
  else
    NEED(hipStreamCreateWithFlags((struct ihipStream_t **)&stream, 0));
  return stream;
}

void gpu_stream_delete(void *stream) {
  if (is_cuda)
    NEED(cuStreamDestroy_v2(stream));
  else
    NEED(hipStreamDestroy(stream));
}

int gpu_launch(void *kernel, const gpu_grid *grid, void **arguments) {
  const unsigned *b = grid->blocks, *t = grid->threads;
  return (int)(is_cuda ? cuLaunchKernel(kernel, b[0], b[1], b[2], t[0], t[1], t[2], grid->shared, gpu_stream, arguments,
                                        NULL)
                       : hipModuleLaunchKernel(kernel, b[0], b[1], b[2], t[0], t[1], t[2], grid->shared, gpu_stream,
                                               arguments, NULL));
}
