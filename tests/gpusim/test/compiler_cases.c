/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and options that run-time compilers take or refuse, each given to gpusim and, where it is installed, to the
 * real NVRTC, whose answers are the ones that are expected. */
#include "compiler_cases.h"

#include "kernel_cases.h"
#include "mistakes.h"
#include "nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KERNEL(body) "extern \"C\" __global__ void k(float *x) { " body " }\n"

typedef struct compiler_case {
  const char *text, *option;
  int status; /* of NVRTC 13.0 */
} compiler_case;

static const char good[] = KERNEL("x[0] = 1;");

static const compiler_case cases[] = {
    {good, "-arch=sm_80", 0},
    {good, "--gpu-architecture=compute_90", 0},
    {good, "-arch=sm_90a", 0},
    {good, "-arch=sm_70", 5},
    {good, "-arch=native", 5},
    {good, "--nonsense", 5},
    {good, "-O2", 5},
    {good, "--fmad=maybe", 5},
    {good, "--fmad=false", 0},
    {good, "--use_fast_math", 0},
    {good, "-DX=1", 0},
    {good, "--std=c++17", 0},
    {good, "--std=c++99", 5},
    {"bad", "-arch=sm_80", 6},
    {"#include <stdint.h>\n", "-arch=sm_80", 6},
    {"#include \"own.h\"\n", "-arch=sm_80", 6},
    {KERNEL("uint32_t y = 1; x[0] = y;"), "-arch=sm_80", 6},
    {KERNEL("x[0] = INFINITY;"), "-arch=sm_80", 6},
    {KERNEL("x[0] = M_PI;"), "-arch=sm_80", 6},
    {KERNEL("x[0] = std::exp(x[0]);"), "-arch=sm_80", 6},
    {KERNEL("x[0] = __shfl_xor(x[0], 1);"), "-arch=sm_80", 6},
    {KERNEL("threadIdx.x = 1;"), "-arch=sm_80", 6},
    {KERNEL("undefined(x);"), "-arch=sm_80", 6},
    {"__device__ float elsewhere(float);\n" KERNEL("x[0] = elsewhere(1);"), "-arch=sm_80", 6},
    {KERNEL("__shared__ float t[2] = {1, 2}; x[0] = t[0];"), "-arch=sm_80", 6},
    {KERNEL("__shared__ float t[12289]; t[threadIdx.x] = 1; __syncthreads(); x[0] = t[5];"), "-arch=sm_80", 6},
    {KERNEL("__shared__ float t[12288]; t[threadIdx.x] = 1; __syncthreads(); x[0] = t[5];"), "-arch=sm_80", 0},
    {"__device__ __noinline__ float f(int i) { __shared__ float t[8000]; t[i] = 1; __syncthreads(); return t[1]; "
     "}\n" KERNEL("__shared__ float t[8000]; t[threadIdx.x] = f(threadIdx.x); __syncthreads(); x[0] = t[5];"),
     "-arch=sm_80", 6},
    {"#ifdef __GNUC__\n#error host\n#endif\n#ifndef __CUDACC_RTC__\n#error\n#endif\n", "-arch=sm_80", 0},
    {"#if __CUDA_ARCH__ != 890\n#error\n#endif\n", "-arch=sm_89", 0},
    {KERNEL("x[0] = ARE_DEFINED;"), "-DARE_DEFINED=7", 0},
    {KERNEL("printf(\"%d\", 1); assert(x); void *p = NULL; size_t n = 1; ptrdiff_t d = n; x[0] = max(d, 2l);"), "-w",
     0},
};

NVRTC_FUNCTIONS(FACE_POINTER)

static void stop(const char *text, const char *option, int found, int wanted, const char *what) {
  fprintf(stderr, "compiler_cases: %s: %d and not %d for \"%s\" with %s\n", what, found, wanted, text, option);
  exit(4);
}

static void find_compiler(void) {
#define X(result, name, arguments) FACE_LOOKUP("libnvrtc.so.13", name)
  NVRTC_FUNCTIONS(X)
#undef X
}

/* Sizes as the vendor has them: text is there for every architecture, code for real ones; after an error an empty text
 * and no code. */
static void check_sizes(struct _nvrtcProgram *program, const compiler_case *c) {
  size_t text = 99, code = 99, log = 0;
  NEED(nvrtcGetPTXSize(program, &text));
  NEED(nvrtcGetCUBINSize(program, &code));
  NEED(nvrtcGetProgramLogSize(program, &log));
  bool is_real = !strncmp(c->option, "-arch=sm_", 9);
  bool has_text = text > 1, has_code = code > 0;
  /* The vendor keeps the text when only its assembler has failed. */
  if (has_text != (c->status == 0) && c->status != 6) stop(c->text, c->option, has_text, c->status == 0, "PTX");
  if (has_code != (c->status == 0 && is_real)) stop(c->text, c->option, has_code, c->status == 0, "CUBIN");
  if (c->status != 0 && log < 2) stop(c->text, c->option, (int)log, 2, "log");
}

static void check_cases(void) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const compiler_case *c = &cases[i];
    struct _nvrtcProgram *program;
    NEED(nvrtcCreateProgram(&program, c->text, NULL, 0, NULL, NULL));
    int status = (int)nvrtcCompileProgram(program, 1, &c->option);
    if (status != c->status) stop(c->text, c->option, status, c->status, "status");
    check_sizes(program, c);
    NEED(nvrtcDestroyProgram(&program));
  }
}

/* ---------------------------------------------------------------------------------------------------------------------
 * gpusim
 */

#define EXPECT(call, wanted)                                                                                           \
  do {                                                                                                                 \
    int answer = (int)(call);                                                                                          \
    if (answer != (wanted)) stop(#call, "", answer, wanted, "answer");                                                 \
  } while (0)

static char *image_for(const char *architecture) {
  char *image = NULL, *log = NULL;
  NEED(gpu_compile(good, architecture, &image, &log));
  free(log);
  return image;
}

static int load_of(const char *architecture) {
  char *image = image_for(architecture);
  void *module = NULL;
  int status = gpu_load(image, &module);
  if (status == 0) gpu_unload(module);
  free(image);
  return status;
}

static void check_missing_kernel(void) {
  void *module = gpu_module_of(good), *kernel;
  EXPECT(gpu_kernel(module, "k", &kernel), 0);
  EXPECT(gpu_kernel(module, "kk", &kernel), SIM_NOT_FOUND);
  EXPECT(gpu_kernel(module, "sim_kernels", &kernel), SIM_NOT_FOUND);
  gpu_unload(module);
}

static const char nonsense[256] = "\x7f"
                                  "ELF of another kind";

void check_nvrtc(void) {
  void *module;
  gpu_open(SIM_CUDA, 1);
  find_compiler();
  int major, minor, count, architectures[64];
  NEED(nvrtcVersion(&major, &minor));
  NEED(nvrtcGetNumSupportedArchs(&count));
  NEED(nvrtcGetSupportedArchs(architectures));
  EXPECT(major * 10 + minor, 130);
  EXPECT(count, 12);
  EXPECT(architectures[0] * 1000 + architectures[11], 75121);
  EXPECT(strcmp(nvrtcGetErrorString(6), "NVRTC_ERROR_COMPILATION"), 0);
  check_cases();
  EXPECT(load_of("sm_80"), 0);
  EXPECT(load_of("compute_75"), 0);
  EXPECT(load_of("compute_86"), SIM_NO_BINARY);
  EXPECT(load_of("sm_75"), SIM_NO_BINARY);
  EXPECT(load_of("sm_86"), SIM_NO_BINARY);
  EXPECT(gpu_load(nonsense, &module), SIM_INVALID_IMAGE);
  check_missing_kernel();
  gpu_close();
}

void check_hiprtc(void) {
  char *image, *log;
  void *module;
  gpu_open(SIM_HIP, 1);
  EXPECT(gpu_compile(KERNEL("x[0] = __shfl_xor(x[0], 1);"), NULL, &image, &log), 0);
  free(image);
  free(log);
  EXPECT(gpu_compile(KERNEL("x[0] = __shfl_xor_sync(~0u, x[0], 1);"), NULL, &image, &log), 6);
  free(log);
  EXPECT(gpu_compile(KERNEL("__shared__ float t[16384]; t[threadIdx.x] = 1; x[0] = t[5];"), NULL, &image, &log), 0);
  free(image);
  free(log);
  EXPECT(gpu_compile(KERNEL("__shared__ float t[16385]; t[threadIdx.x] = 1; x[0] = t[5];"), NULL, &image, &log), 6);
  free(log);
  EXPECT(gpu_compile("#include <stdint.h>\n", NULL, &image, &log), 6);
  free(log);
  EXPECT(load_of("gfx90a"), 0);
  EXPECT(load_of("gfx90a:xnack-"), 0);
  EXPECT(load_of("gfx90a:xnack+"), SIM_NO_BINARY);
  EXPECT(load_of("gfx1030"), SIM_NO_BINARY);
  EXPECT(gpu_load(nonsense, &module), SIM_INVALID_IMAGE);
  check_missing_kernel();
  gpu_close();
}

/* A text of NVRTC 13 is too new for it, code is not. */
void check_old_driver(void) {
  enum { UNSUPPORTED_TEXT = 222 };
  gpu_open(SIM_CUDA, 1);
  EXPECT(load_of("compute_80"), UNSUPPORTED_TEXT);
  EXPECT(load_of("sm_80"), SIM_INVALID_IMAGE); /* compatible are only versions with the same major number */
  gpu_close();
}

void check_no_compiler(void) {
  char *image, *log;
  gpu_open(SIM_CUDA, 1);
  EXPECT(gpu_compile(good, NULL, &image, &log), 6);
  free(log);
  gpu_close();
}

enum { COMPILING_THREADS = 4 };

static void *compile_in_thread(void *argument) {
  char **text = argument;
  size_t bytes;
  struct _nvrtcProgram *program;
  const char *option = "-arch=sm_80";
  EXPECT(nvrtcCreateProgram(&program, *text, "once.cu", 0, NULL, NULL), 0);
  EXPECT(nvrtcCompileProgram(program, 1, &option), 0);
  EXPECT(nvrtcGetCUBINSize(program, &bytes), 0);
  char *image = malloc(bytes);
  EXPECT(nvrtcGetCUBIN(program, image), 0);
  EXPECT(nvrtcDestroyProgram(&program), 0);
  *text = image;
  return (void *)(uintptr_t)bytes;
}

/* Each compilation leaves the name of its folder in what it made: what is the same was made once. */
void check_compile_once(void) {
  char text[256], *images[COMPILING_THREADS];
  pthread_t threads[COMPILING_THREADS];
  void *bytes[COMPILING_THREADS];
  gpu_open(SIM_CUDA, 1);
  find_compiler();
  snprintf(text, sizeof text, "/* %d %lld */ extern \"C\" __global__ void k(float *x) { x[0] = 1; }\n", (int)getpid(),
           (long long)time(NULL));
  for (int i = 0; i < COMPILING_THREADS; i++) {
    images[i] = text;
    EXPECT(pthread_create(&threads[i], NULL, compile_in_thread, &images[i]), 0);
  }
  for (int i = 0; i < COMPILING_THREADS; i++) EXPECT(pthread_join(threads[i], &bytes[i]), 0);
  for (int i = 0; i < COMPILING_THREADS; i++)
    EXPECT(bytes[i] != bytes[0] || memcmp(images[i], images[0], (size_t)(uintptr_t)bytes[0]) != 0, 0);
  for (int i = 0; i < COMPILING_THREADS; i++) free(images[i]);
  gpu_close();
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The real one
 */

static void *open_in(const char *folder, const char *library) {
  static const char *const parts[] = {"lib64", "lib"};
  void *opened = NULL;
  for (int i = 0; !opened && *folder && i < 2; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/%s", folder, parts[i], library);
    opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  return opened ? opened : dlopen(library, RTLD_NOW | RTLD_LOCAL);
}

const char *real_compiler_open(const char *folder) {
  open_in(folder, "libnvrtc-builtins.so.13.0"); /* which it would not find from outside of the loader's path */
  void *library = open_in(folder, "libnvrtc.so.13");
  if (!library) return "there is no libnvrtc.so.13 here";
#define X(result, name, arguments) *(void **)&name = dlsym(library, #name);
  NVRTC_FUNCTIONS(X)
#undef X
  Dl_info info;
  if (!nvrtcVersion || !dladdr(*(void **)&nvrtcVersion, &info)) return "libnvrtc.so.13 has no nvrtcVersion";
  printf("NVRTC is %s\n", info.dli_fname);
  return strstr(info.dli_fname, "gpusim") ? "the libnvrtc.so.13 that was found is gpusim's" : NULL;
}

void real_compiler_check(void) {
  char *text = kernel_text_whole();
  for (int i = 0; i < 2; i++) {
    const char *option = i ? "-arch=sm_90" : "-arch=sm_75";
    struct _nvrtcProgram *program;
    NEED(nvrtcCreateProgram(&program, text, "kernel_text", 0, NULL, NULL));
    int status = (int)nvrtcCompileProgram(program, 1, &option);
    char log[1 << 16] = "";
    size_t bytes;
    if (status && nvrtcGetProgramLogSize(program, &bytes) == 0 && bytes < sizeof log) nvrtcGetProgramLog(program, log);
    if (status) stop(log, option, status, 0, "kernel_text");
    NEED(nvrtcDestroyProgram(&program));
  }
  free(text);
  check_cases();
}
