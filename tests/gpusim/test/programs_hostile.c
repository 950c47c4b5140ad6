/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that ask for what cannot be: sizes beyond all measure, sizes below zero, images that are damaged. Each call
 * may answer with an error or be a violation, as the vendor has it; what it must not do is to end the process, or never
 * to come back. */
#include "programs.h"

#include "cublas.h"
#include "cudnn.h"
#include "gpu.h"
#include "miopen.h"
#include "rocblas.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

CUBLAS_FUNCTIONS(FACE_POINTER)
CUDNN_FUNCTIONS(FACE_POINTER)
ROCBLAS_FUNCTIONS(FACE_POINTER)
MIOPEN_FUNCTIONS(FACE_POINTER)

enum { PAGE = 4096, BYTES = 64 << 10, TURNS = 20000 };

static const size_t sizes[] = {SIZE_MAX,         SIZE_MAX - 63, SIZE_MAX - 4095, SIZE_MAX / 2,   SIZE_MAX / 2 + 1,
                               SIZE_MAX / 4 + 1, SIZE_MAX / 4,  (size_t)1 << 62, (size_t)1 << 48};
enum { SIZES = sizeof sizes / sizeof *sizes };

static uint64_t chance = 1;

static unsigned below(unsigned bound) {
  chance = chance * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(chance >> 33) % bound;
}

/* Mostly a small one, so that a call is not refused for its first argument already. */
static int any_int(void) {
  static const int odd[] = {0, -1, INT_MIN, INT_MIN + 1, INT_MAX, INT_MAX - 1, 1 << 30, 46341, -46341};
  return below(8) ? 1 + (int)below(4) : odd[below(sizeof odd / sizeof *odd)];
}

static long long any_stride(void) {
  static const long long odd[] = {0, -1, LLONG_MIN, LLONG_MAX, LLONG_MAX / 2, 1LL << 62, 1LL << 31, INT_MAX};
  return below(3) ? 16 + (int)below(32) : odd[below(sizeof odd / sizeof *odd)];
}

static size_t any_size(void) {
  return below(2) ? below(BYTES) : sizes[below(SIZES)];
}

static abi_enum any_enum(void) {
  return below(4) ? below(3) : below(2) ? below(20) : UINT_MAX;
}

static char *memory; /* of the device */

static void *any_address(void) {
  return below(40) ? memory + 4 * below(BYTES / 4) : NULL;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Memory
 */

static void hostile_memory(void) {
  cuda_open(1);
  cuda_abi_address address = cuda_allocate(BYTES), none;
  char *pinned = cuda_pin(BYTES), host[64] = "";
  void *nowhere;
  EXPECT(cuMemAlloc_v2(&none, 0) != 0 && cuMemHostAlloc(&nowhere, 0, 0) != 0);
  for (int i = 0; i < SIZES; i++) {
    EXPECT(cuMemAlloc_v2(&none, sizes[i]) != 0);
    EXPECT(cuMemHostAlloc(&nowhere, sizes[i], 0) != 0);
    EXPECT(cuMemsetD8Async(address, 0, sizes[i], NULL) != 0);
    EXPECT(cuMemsetD32Async(address, 0, sizes[i], NULL) != 0);
    EXPECT(cuMemcpyHtoDAsync_v2(address, pinned, sizes[i], NULL) != 0);
    EXPECT(cuMemcpyHtoDAsync_v2(address, host, sizes[i], NULL) != 0);
    EXPECT(cuMemcpyDtoHAsync_v2(pinned, address, sizes[i], NULL) != 0);
    EXPECT(cuMemcpyDtoDAsync_v2(address + 256, address, sizes[i], NULL) != 0);
    EXPECT(cuMemcpyDtoDAsync_v2(address, address - 256, sizes[i], NULL) != 0);
    EXPECT(cuMemFree_v2(sizes[i]) != 0);
  }
  NEED(cuMemFreeHost(pinned));
  NEED(cuMemFree_v2(address));
  cuda_close(1);
}

static void hostile_hip_memory(void) {
  hip_open();
  void *address, *none;
  NEED(hipMalloc(&address, BYTES));
  for (int i = 0; i < SIZES; i++) {
    EXPECT(hipMalloc(&none, sizes[i]) != 0);
    EXPECT(hipHostMalloc(&none, sizes[i], 0) != 0);
    EXPECT(hipMemsetD32Async(address, 0, sizes[i], NULL) != 0);
    EXPECT(hipMemcpyAsync(address, (char *)address + 8, sizes[i], HIP_ABI_DEFAULT, NULL) != 0);
    EXPECT(hipMemcpyPeerAsync(address, INT_MAX, address, INT_MIN, sizes[i], NULL) != 0);
  }
  EXPECT(hipSetDevice(INT_MIN) != 0 && hipSetDevice(INT_MAX) != 0);
  NEED(hipFree(address));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Kernels
 */

static const char text[] = "extern \"C\" __global__ void fill(float *to) { to[threadIdx.x] = 1; }\n";

static void launch_hostile(void *kernel, void *address) {
  static const unsigned odd[] = {0, 1, 2, 1024, 1025, 65535, 65536, INT_MAX, UINT_MAX};
  enum { ODD = sizeof odd / sizeof *odd };
  for (int i = 0; i < 2000; i++) {
    gpu_grid grid = {.shared = below(3) ? 0 : odd[below(ODD)]};
    double blocks = 1;
    for (int k = 0; k < 3; k++) {
      grid.blocks[k] = odd[below(ODD)];
      grid.threads[k] = odd[below(ODD)];
      blocks *= grid.blocks[k];
    }
    bool is_allowed = blocks > 16 && blocks < 1e11; /* and takes its time */
    if (!is_allowed) (void)gpu_launch(kernel, &grid, GPU_ARGUMENTS(&address));
  }
  gpu_grid endless = {{INT_MAX, 65535, 65535}, {1, 1, 1}, 0};
  EXPECT(gpu_launch(kernel, &endless, GPU_ARGUMENTS(&address)) != 0);
  EXPECT(gpu_launch(kernel, GPU_LINE(1, 1), NULL) != 0);
}

/* At the end of a page behind which there is nothing, which a read of too much falls into. */
static char *at_the_end(const char *data, size_t bytes) {
  size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
  char *room = mmap(NULL, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(room != MAP_FAILED && mprotect(room + pages, PAGE, PROT_NONE) == 0);
  return memcpy(room + pages - bytes, data, bytes);
}

static void drop(char *data, size_t bytes) {
  size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
  munmap(data + bytes - pages, pages + PAGE);
}

/* Neither a part of an image nor one with a byte changed is one; of a text the first and the last bytes may be any. */
static void damage(const char *image, size_t bytes, size_t from, size_t to) {
  void *module;
  for (size_t length = 0; length < bytes; length += length < 300 ? 1 : bytes / 100) {
    char *part = at_the_end(image, length);
    if (length > 0) EXPECT(gpu_load(part, &module) != 0);
    drop(part, length);
  }
  char *copy = at_the_end(image, bytes);
  for (size_t i = from; i < to; i += i < from + 300 ? 1 : 1 + below((unsigned)bytes / 200)) {
    copy[i] = (char)(copy[i] ^ (1 << below(8)));
    EXPECT(gpu_load(copy, &module) != 0);
    copy[i] = image[i];
  }
  NEED(gpu_load(copy, &module));
  gpu_unload(module);
  drop(copy, bytes);
}

static size_t image_bytes(const char *image) {
  struct {
    char magic[16];
    uint32_t vendor, is_virtual;
    char architecture[64];
    uint64_t bytes, sum, head;
  } header;
  memcpy(&header, image, sizeof header);
  return sizeof header + header.bytes;
}

static void hostile_kernels(sim_vendor vendor) {
  char *image = NULL, *log = NULL;
  void *module, *kernel;
  gpu_open(vendor, 1);
  void *address = gpu_allocate(BYTES);
  NEED(gpu_compile(text, NULL, &image, &log));
  NEED(gpu_load(image, &module));
  NEED(gpu_kernel(module, "fill", &kernel));
  launch_hostile(kernel, address);
  gpu_unload(module);
  damage(image, image_bytes(image), 0, image_bytes(image));
  EXPECT(gpu_load((const char *)1, &module) != 0);
  EXPECT(gpu_load("//", &module) != 0 && gpu_load("", &module) != 0);
  free(image);
  free(log);
  if (vendor == SIM_CUDA) {
    NEED(gpu_compile(text, "compute_80", &image, &log)); /* a text, in the manner of PTX */
    size_t length = strlen(image);
    damage(image, length + 1, (size_t)(strstr(image, "gpusim: ") - image), length - 1);
    image[length / 2] = 0;
    EXPECT(gpu_load(image, &module) != 0);
    free(image);
    free(log);
  }
  gpu_free(address);
  gpu_close();
}

static void hostile_cuda_kernels(void) {
  hostile_kernels(SIM_CUDA);
}
static void hostile_hip_kernels(void) {
  hostile_kernels(SIM_HIP);
}

/* Texts that end anywhere, and options that are none. */
static void hostile_texts(void) {
  static const char *const texts[] = {"",
                                      "__global__",
                                      "__global__ void",
                                      "__global__ void f(",
                                      "__global__ void f(int",
                                      "__global__ void f(int a) {",
                                      "extern \"C\" __global__ void f(int a",
                                      "\"",
                                      "'",
                                      "/*",
                                      "#",
                                      "#if",
                                      "__shared__",
                                      "extern __shared__ float",
                                      "(((((((((",
                                      "}}}}}",
                                      "template <",
                                      "__launch_bounds__(",
                                      "__global__ __launch_bounds__(",
                                      "__global__ void __launch_bounds__(9999999999999999999) f() {}",
                                      "\\"};
  char *image = NULL, *log = NULL;
  gpu_open(SIM_CUDA, 1);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    if (gpu_compile(texts[i], NULL, &image, &log) == 0) free(image);
    free(log);
  }
  EXPECT(gpu_compile(text, "sm_", &image, &log) != 0);
  free(log);
  EXPECT(gpu_compile(text, "sm_99999999999999999999", &image, &log) != 0);
  free(log);
  gpu_close();
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Products
 */

static const float one = 1, zero = 0;

static const float *any_scalar(void) {
  return below(2) ? &one : &zero;
}

static void hostile_cublas(void) {
#define X(result, name, arguments) FACE_LOOKUP("libcublas.so.13", name)
  CUBLAS_FUNCTIONS(X)
#undef X
  cuda_open(1);
  struct cublasContext *handle;
  memory = (char *)(uintptr_t)cuda_allocate(BYTES);
  NEED(cublasCreate_v2(&handle));
  for (int i = 0; i < TURNS; i++) {
    (void)cublasSgemm_v2(handle, any_enum(), any_enum(), any_int(), any_int(), any_int(), any_scalar(), any_address(),
                         any_int(), any_address(), any_int(), any_scalar(), any_address(), any_int());
    (void)cublasSgemmStridedBatched(handle, any_enum(), any_enum(), any_int(), any_int(), any_int(), any_scalar(),
                                    any_address(), any_int(), any_stride(), any_address(), any_int(), any_stride(),
                                    any_scalar(), any_address(), any_int(), any_stride(), any_int());
    if (i % 100 == 0) (void)cublasSetWorkspace_v2(handle, any_address(), any_size());
  }
  NEED(cublasDestroy_v2(handle));
  NEED(cuMemFree_v2((cuda_abi_address)(uintptr_t)memory));
  cuda_close(1);
}

static void hostile_rocblas(void) {
#define X(result, name, arguments) FACE_LOOKUP("librocblas.so.4", name)
  ROCBLAS_FUNCTIONS(X)
#undef X
  hip_open();
  struct _rocblas_handle *handle;
  NEED(hipMalloc((void **)&memory, BYTES));
  NEED(rocblas_create_handle(&handle));
  for (int i = 0; i < TURNS; i++) {
    abi_enum a = ROCBLAS_ABI_OPERATION_NONE + any_enum(), b = ROCBLAS_ABI_OPERATION_NONE + any_enum();
    (void)rocblas_sgemm(handle, a, b, any_int(), any_int(), any_int(), any_scalar(), any_address(), any_int(),
                        any_address(), any_int(), any_scalar(), any_address(), any_int());
    (void)rocblas_sgemm_strided_batched(handle, a, b, any_int(), any_int(), any_int(), any_scalar(), any_address(),
                                        any_int(), any_stride(), any_address(), any_int(), any_stride(), any_scalar(),
                                        any_address(), any_int(), any_stride(), any_int());
  }
  NEED(rocblas_destroy_handle(handle));
  NEED(hipFree(memory));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Layers
 */

static void hostile_cudnn(void) {
#define X(result, name, arguments) FACE_LOOKUP("libcudnn.so.9", name)
  CUDNN_FUNCTIONS(X)
#undef X
  cuda_open(1);
  struct cudnnContext *handle;
  struct cudnnTensorStruct *x, *y;
  struct cudnnFilterStruct *w;
  struct cudnnConvolutionStruct *c;
  struct cudnnPoolingStruct *p;
  cudnn_abi_performance results[CUDNN_ABI_FORWARD_COUNT];
  memory = (char *)(uintptr_t)cuda_allocate(BYTES);
  NEED(cudnnCreate(&handle));
  NEED(cudnnCreateTensorDescriptor(&x));
  NEED(cudnnCreateTensorDescriptor(&y));
  NEED(cudnnCreateFilterDescriptor(&w));
  NEED(cudnnCreateConvolutionDescriptor(&c));
  NEED(cudnnCreatePoolingDescriptor(&p));
  NEED(cudnnSetTensor4dDescriptor(y, CUDNN_ABI_NCHW, CUDNN_ABI_FLOAT, 1, 1, 1, 1));
  for (int i = 0; i < TURNS; i++) {
    int d[] = {any_int(), any_int(), any_int(), any_int(), any_int(), any_int(), any_int(), any_int()}, count;
    size_t bytes = 0;
    if (below(3))
      (void)cudnnSetTensor4dDescriptor(x, below(2), CUDNN_ABI_FLOAT, d[0], d[1], d[2], d[3]);
    else
      (void)cudnnSetTensor4dDescriptorEx(x, CUDNN_ABI_FLOAT, d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7]);
    (void)cudnnSetTensorNdDescriptor(x, CUDNN_ABI_FLOAT, below(8) ? 4 : any_int(), below(2) ? d : d + 4, d);
    (void)cudnnSetFilter4dDescriptor(w, CUDNN_ABI_FLOAT, below(2), any_int(), d[1], any_int(), any_int());
    (void)cudnnSetConvolution2dDescriptor(c, any_int(), any_int(), any_int(), any_int(), any_int(), any_int(), below(3),
                                          CUDNN_ABI_FLOAT);
    if (!below(8)) (void)cudnnSetConvolutionGroupCount(c, any_int());
    (void)cudnnSetPooling2dDescriptor(p, below(5), below(3), any_int(), any_int(), any_int(), any_int(), any_int(),
                                      any_int());
    if (i == 0) continue; /* now and then something is refused, and is as it was before then */
    bool fits = below(2) ? !cudnnGetConvolution2dForwardOutputDim(c, x, w, &d[0], &d[1], &d[2], &d[3])
                         : !cudnnGetPooling2dForwardOutputDim(p, x, &d[0], &d[1], &d[2], &d[3]);
    if (fits) (void)cudnnSetTensor4dDescriptor(y, below(2), CUDNN_ABI_FLOAT, d[0], d[1], d[2], d[3]);
    (void)cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, c, y, CUDNN_ABI_FORWARD_COUNT, &count, (void *)results);
    (void)cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, c, y, below(9), &bytes);
    (void)cudnnConvolutionForward(handle, &one, x, any_address(), w, any_address(), c, below(9), any_address(),
                                  any_size(), any_scalar(), y, any_address());
    (void)cudnnConvolutionBackwardData(handle, &one, w, any_address(), y, any_address(), c, below(7), any_address(),
                                       any_size(), any_scalar(), x, any_address());
    (void)cudnnConvolutionBackwardFilter(handle, &one, x, any_address(), y, any_address(), c, below(8), any_address(),
                                         any_size(), any_scalar(), w, any_address());
    (void)cudnnConvolutionBackwardBias(handle, &one, x, any_address(), any_scalar(), x, any_address());
    (void)cudnnPoolingForward(handle, p, &one, x, any_address(), any_scalar(), y, any_address());
    (void)cudnnPoolingBackward(handle, p, &one, y, any_address(), y, any_address(), x, any_address(), any_scalar(), x,
                               any_address());
    (void)cudnnSoftmaxForward(handle, below(4), below(3), &one, x, any_address(), any_scalar(), x, any_address());
  }
  (void)cuCtxSynchronize();
  NEED(cudnnDestroyTensorDescriptor(x));
  NEED(cudnnDestroyTensorDescriptor(y));
  NEED(cudnnDestroyFilterDescriptor(w));
  NEED(cudnnDestroyConvolutionDescriptor(c));
  NEED(cudnnDestroyPoolingDescriptor(p));
  NEED(cudnnDestroy(handle));
  (void)cuMemFree_v2((cuda_abi_address)(uintptr_t)memory);
  cuda_close(1);
}

static void hostile_miopen(void) {
#define X(result, name, arguments) FACE_LOOKUP("libMIOpen.so.1", name)
  MIOPEN_FUNCTIONS(X)
#undef X
  enum { MOST = 8 };
  hip_open();
  struct miopenHandle *handle;
  struct miopenTensorDescriptor *x, *y, *w;
  struct miopenConvolutionDescriptor *c;
  struct miopenPoolingDescriptor *p;
  miopen_abi_performance found[MOST];
  miopen_abi_solution solutions[MOST];
  NEED(hipMalloc((void **)&memory, BYTES));
  NEED(miopenCreateWithStream(&handle, NULL));
  NEED(miopenCreateTensorDescriptor(&x));
  NEED(miopenCreateTensorDescriptor(&y));
  NEED(miopenCreateTensorDescriptor(&w));
  NEED(miopenCreateConvolutionDescriptor(&c));
  NEED(miopenCreatePoolingDescriptor(&p));
  for (int i = 0; i < TURNS; i++) {
    int d[] = {any_int(), any_int(), any_int(), any_int(), any_int(), any_int(), any_int(), any_int()}, number;
    size_t bytes = 0, count = 0;
    if (below(3))
      (void)miopenSet4dTensorDescriptor(x, MIOPEN_ABI_FLOAT, d[0], d[1], d[2], d[3]);
    else
      (void)miopenSetTensorDescriptor(x, MIOPEN_ABI_FLOAT, below(8) ? 4 : any_int(), d, below(2) ? d + 4 : NULL);
    (void)miopenSet4dTensorDescriptor(w, MIOPEN_ABI_FLOAT, any_int(), d[1], any_int(), any_int());
    (void)miopenInitConvolutionDescriptor(c, 0, any_int(), any_int(), any_int(), any_int(), any_int(), any_int());
    if (!below(8)) (void)miopenSetConvolutionGroupCount(c, any_int());
    (void)miopenSet2dPoolingDescriptor(p, below(4), any_int(), any_int(), any_int(), any_int(), any_int(), any_int());
    (void)miopenSetPoolingIndexType(p, below(5));
    bool fits = below(2) ? !miopenGetConvolutionForwardOutputDim(c, x, w, &d[0], &d[1], &d[2], &d[3])
                         : !miopenGetPoolingForwardOutputDim(p, x, &d[0], &d[1], &d[2], &d[3]);
    if (fits) (void)miopenSet4dTensorDescriptor(y, MIOPEN_ABI_FLOAT, d[0], d[1], d[2], d[3]);
    (void)miopenConvolutionForwardGetWorkSpaceSize(handle, w, x, c, y, &bytes);
    (void)miopenConvolutionBackwardWeightsGetWorkSpaceSize(handle, y, x, c, w, &bytes);
    (void)miopenFindConvolutionForwardAlgorithm(handle, x, any_address(), w, any_address(), c, y, any_address(),
                                                below(4) ? MOST : any_int() % MOST, &number, found, any_address(),
                                                any_size(), false);
    if (!miopenConvolutionForwardGetSolution(handle, w, x, c, y, MOST, &count, solutions) && count > 0) {
      (void)miopenConvolutionForwardCompileSolution(handle, w, x, c, y, solutions[0].id);
      (void)miopenConvolutionForwardImmediate(handle, w, any_address(), x, any_address(), c, y, any_address(),
                                              any_address(), any_size(), solutions[0].id);
    }
    (void)miopenConvolutionBackwardBias(handle, &one, x, any_address(), &zero, y, any_address());
    (void)miopenPoolingGetWorkSpaceSizeV2(p, y, &bytes);
    (void)miopenPoolingForward(handle, p, &one, x, any_address(), &zero, y, any_address(), below(2), any_address(),
                               any_size());
    (void)miopenPoolingBackward(handle, p, &one, y, any_address(), y, any_address(), x, any_address(), &zero, x,
                                any_address(), any_address());
    (void)miopenSoftmaxForward_V2(handle, &one, x, any_address(), &zero, x, any_address(), below(4), below(3));
  }
  (void)hipDeviceSynchronize();
  NEED(miopenDestroyTensorDescriptor(x));
  NEED(miopenDestroyTensorDescriptor(y));
  NEED(miopenDestroyTensorDescriptor(w));
  NEED(miopenDestroyConvolutionDescriptor(c));
  NEED(miopenDestroyPoolingDescriptor(p));
  NEED(miopenDestroy(handle));
  (void)hipFree(memory);
}

const program hostile_programs[] = {
    {"hostile-memory", hostile_memory},
    {"hostile-hip-memory", hostile_hip_memory},
    {"hostile-cuda-kernels", hostile_cuda_kernels},
    {"hostile-hip-kernels", hostile_hip_kernels},
    {"hostile-texts", hostile_texts},
    {"hostile-cublas", hostile_cublas},
    {"hostile-rocblas", hostile_rocblas},
    {"hostile-cudnn", hostile_cudnn},
    {"hostile-miopen", hostile_miopen},
    {0},
};
