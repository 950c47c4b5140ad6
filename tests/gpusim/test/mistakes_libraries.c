/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes with cuDNN and cuBLAS; those with MIOpen and rocBLAS are in mistakes_libraries_hip.c. Each program convolves
 * an image, or multiplies two matrices. */
#include "cublas.h"
#include "cudnn.h"
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>

CUBLAS_FUNCTIONS(FACE_POINTER)
CUDNN_FUNCTIONS(FACE_POINTER)

static void open_libraries(int devices) {
#define X(result, name, arguments) FACE_LOOKUP("libcublas.so.13", name)
  CUBLAS_FUNCTIONS(X)
#undef X
#define X(result, name, arguments) FACE_LOOKUP("libcudnn.so.9", name)
  CUDNN_FUNCTIONS(X)
#undef X
  cuda_open(devices);
}

/* Filled with zeros. */
static void *allocate(size_t bytes) {
  cuda_abi_address address = cuda_allocate(bytes);
  NEED(cuMemsetD8Async(address, 0, bytes, NULL));
  NEED(cuCtxSynchronize());
  return (void *)(uintptr_t)address;
}

static void release(void *address) {
  NEED(cuMemFree_v2((cuda_abi_address)(uintptr_t)address));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * cuDNN
 */

enum { SIZE = 8, BYTES = 2 * 4 * SIZE * SIZE * sizeof(float), FILTER_BYTES = 4 * 4 * 3 * 3 * sizeof(float) };

/* A convolution of two images with four channels by filters of 3 by 3, all that it needs, and the algorithm whose
 * results are listed first among those of plain arithmetic. */
typedef struct layer {
  struct cudnnContext *handle;
  struct cudnnTensorStruct *tensor;
  struct cudnnFilterStruct *filter;
  struct cudnnConvolutionStruct *convolution;
  char *x, *w, *y, *workspace;
  size_t bytes;
  abi_enum algorithm;
  float one, zero;
} layer;

static void choose(layer *l) {
  cudnn_abi_performance results[CUDNN_ABI_FORWARD_COUNT];
  int count;
  NEED(cudnnSetConvolutionMathType(l->convolution, CUDNN_ABI_FMA_MATH));
  NEED(cudnnGetConvolutionForwardAlgorithm_v7(l->handle, l->tensor, l->filter, l->convolution, l->tensor,
                                              CUDNN_ABI_FORWARD_COUNT, &count, (void *)results));
  NEED(results[0].status);
  l->algorithm = results[0].algorithm;
  NEED(cudnnGetConvolutionForwardWorkspaceSize(l->handle, l->tensor, l->filter, l->convolution, l->tensor, l->algorithm,
                                               &l->bytes));
  l->workspace = allocate(l->bytes + 256);
}

static layer open_layer(int devices) {
  layer l = {.one = 1};
  open_libraries(devices);
  NEED(cudnnCreate(&l.handle));
  NEED(cudnnCreateTensorDescriptor(&l.tensor));
  NEED(cudnnSetTensor4dDescriptor(l.tensor, CUDNN_ABI_NCHW, CUDNN_ABI_FLOAT, 2, 4, SIZE, SIZE));
  NEED(cudnnCreateFilterDescriptor(&l.filter));
  NEED(cudnnSetFilter4dDescriptor(l.filter, CUDNN_ABI_FLOAT, CUDNN_ABI_NCHW, 4, 4, 3, 3));
  NEED(cudnnCreateConvolutionDescriptor(&l.convolution));
  NEED(cudnnSetConvolution2dDescriptor(l.convolution, 1, 1, 1, 1, 1, 1, CUDNN_ABI_CROSS_CORRELATION, CUDNN_ABI_FLOAT));
  l.x = allocate(BYTES);
  l.y = allocate(BYTES);
  l.w = allocate(FILTER_BYTES);
  choose(&l);
  return l;
}

static abi_enum convolve(const layer *l) {
  return cudnnConvolutionForward(l->handle, &l->one, l->tensor, l->x, l->filter, l->w, l->convolution, l->algorithm,
                                 l->workspace, l->bytes, &l->zero, l->tensor, l->y);
}

static void close_memory(layer *l) {
  NEED(cuCtxSynchronize());
  release(l->x);
  release(l->y);
  release(l->w);
  release(l->workspace);
}

static void close_layer(layer *l, int devices) {
  close_memory(l);
  NEED(cudnnDestroyTensorDescriptor(l->tensor));
  NEED(cudnnDestroyFilterDescriptor(l->filter));
  NEED(cudnnDestroyConvolutionDescriptor(l->convolution));
  NEED(cudnnDestroy(l->handle));
  cuda_close(devices);
}

static void unfinished_descriptor(bool wrong) {
  layer l = open_layer(1), other = l;
  NEED(cudnnCreateConvolutionDescriptor(&other.convolution));
  convolve(wrong ? &other : &l);
  NEED(cudnnDestroyConvolutionDescriptor(other.convolution));
  close_layer(&l, 1);
}

static void deleted_descriptor(bool wrong) {
  layer l = open_layer(1), other = l;
  NEED(cudnnCreateTensorDescriptor(&other.tensor));
  NEED(cudnnSetTensor4dDescriptor(other.tensor, CUDNN_ABI_NCHW, CUDNN_ABI_FLOAT, 2, 4, SIZE, SIZE));
  if (!wrong) NEED(convolve(&other));
  NEED(cudnnDestroyTensorDescriptor(other.tensor));
  if (wrong) convolve(&other);
  close_layer(&l, 1);
}

static void descriptor_of_another_kind(bool wrong) {
  layer l = open_layer(1), other = l;
  if (wrong) other.filter = (struct cudnnFilterStruct *)(void *)l.tensor;
  convolve(&other);
  close_layer(&l, 1);
}

static void forgotten_descriptor(bool wrong) {
  struct cudnnPoolingStruct *pooling;
  open_libraries(1);
  NEED(cudnnCreatePoolingDescriptor(&pooling));
  if (!wrong) NEED(cudnnDestroyPoolingDescriptor(pooling));
  cuda_close(1);
}

static void small_workspace(bool wrong) {
  layer l = open_layer(1);
  if (wrong) l.bytes--;
  convolve(&l);
  close_layer(&l, 1);
}

static void workspace_beyond_its_end(bool wrong) {
  layer l = open_layer(1), other = l;
  if (wrong) other.bytes += 1024;
  convolve(&other);
  close_layer(&l, 1);
}

static void misaligned_workspace(bool wrong) {
  layer l = open_layer(1), other = l;
  if (wrong) other.workspace += 4;
  convolve(&other);
  close_layer(&l, 1);
}

static void workspace_in_the_result(bool wrong) {
  layer l = open_layer(1), other = l;
  if (wrong) other.y = l.workspace;
  convolve(&other);
  close_layer(&l, 1);
}

static void algorithm_not_listed(bool wrong) {
  layer l = open_layer(1);
  if (wrong) l.algorithm = CUDNN_ABI_FORWARD_DIRECT;
  convolve(&l);
  close_layer(&l, 1);
}

static void math_type_not_set(bool wrong) {
  layer l = open_layer(1);
  if (wrong) NEED(cudnnSetConvolutionMathType(l.convolution, CUDNN_ABI_DEFAULT_MATH));
  convolve(&l);
  close_layer(&l, 1);
}

static void handle_of_another_device(bool wrong) {
  layer l = open_layer(2);
  if (wrong) NEED(cuCtxSetCurrent(cuda_contexts[1]));
  convolve(&l);
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  close_layer(&l, 2);
}

static void *convolve_in_thread(void *argument) {
  convolve(argument);
  return NULL;
}

static void *convolve_in_thread_rightly(void *argument) {
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  return convolve_in_thread(argument);
}

static void thread_without_context(bool wrong) {
  layer l = open_layer(1);
  pthread_t thread;
  NEED(pthread_create(&thread, NULL, wrong ? convolve_in_thread : convolve_in_thread_rightly, &l));
  NEED(pthread_join(thread, NULL));
  close_layer(&l, 1);
}

static void handle_without_context(bool wrong) {
  struct cudnnContext *handle;
  open_libraries(1);
  if (wrong) NEED(cuCtxSetCurrent(NULL));
  if (cudnnCreate(&handle) == 0) NEED(cudnnDestroy(handle));
  cuda_close(1);
}

static void stream_of_another_device(bool wrong) {
  layer l = open_layer(2);
  struct CUstream_st *stream;
  NEED(cuCtxSetCurrent(cuda_contexts[wrong]));
  NEED(cuStreamCreate(&stream, CUDA_ABI_STREAM_NON_BLOCKING));
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  cudnnSetStream(l.handle, stream);
  NEED(cuStreamDestroy_v2(stream));
  close_layer(&l, 2);
}

static void deleted_stream(bool wrong) {
  layer l = open_layer(1);
  struct CUstream_st *stream;
  NEED(cuStreamCreate(&stream, CUDA_ABI_STREAM_NON_BLOCKING));
  NEED(cudnnSetStream(l.handle, stream));
  if (!wrong) NEED(convolve(&l));
  NEED(cuStreamSynchronize(stream));
  NEED(cuStreamDestroy_v2(stream));
  if (wrong) convolve(&l);
  close_layer(&l, 1);
}

static void alpha_on_the_device(bool wrong) {
  layer l = open_layer(1);
  NEED(cudnnConvolutionBackwardData(l.handle, &l.one, l.filter, l.w, l.tensor, l.y, l.convolution, CUDNN_ABI_DATA_0,
                                    NULL, 0, &l.zero, l.tensor, l.x));
  if (wrong)
    cudnnConvolutionBackwardData(l.handle, l.workspace, l.filter, l.w, l.tensor, l.y, l.convolution, CUDNN_ABI_DATA_0,
                                 NULL, 0, &l.zero, l.tensor, l.x);
  close_layer(&l, 1);
}

/* Bytes for the result are counted without its batch. */
static void result_beyond_its_end(bool wrong) {
  layer l = open_layer(1), other = l;
  other.y = allocate(wrong ? BYTES / 2 : BYTES);
  convolve(&other);
  NEED(cuCtxSynchronize());
  release(other.y);
  close_layer(&l, 1);
}

static void result_in_place(bool wrong) {
  layer l = open_layer(1), other = l;
  if (wrong) other.y = l.x;
  convolve(&other);
  close_layer(&l, 1);
}

/* Only the memory of another device is wrong: peers were never made known to each other. */
static void memory_of_another_device(bool wrong) {
  layer l = open_layer(2), other = l;
  NEED(cuCtxSetCurrent(cuda_contexts[wrong]));
  other.x = allocate(BYTES);
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  convolve(&other);
  NEED(cuCtxSynchronize());
  NEED(cuCtxSetCurrent(cuda_contexts[wrong]));
  release(other.x);
  NEED(cuCtxSetCurrent(cuda_contexts[0]));
  close_layer(&l, 2);
}

/* One workspace for two layers, each on a stream of its own. */
static void workspace_of_two_streams(bool wrong) {
  layer l = open_layer(1), other = l;
  struct CUstream_st *stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  other.y = allocate(BYTES);
  NEED(convolve(&l));
  NEED(cudnnSetStream(l.handle, stream));
  if (!wrong) other.workspace = allocate(l.bytes);
  NEED(convolve(&other));
  NEED(cuCtxSynchronize());
  if (!wrong) release(other.workspace);
  release(other.y);
  NEED(cuStreamDestroy_v2(stream));
  close_layer(&l, 1);
}

/* The image is copied on one stream and convolved on another. */
static void image_not_waited_for(bool wrong) {
  layer l = open_layer(1);
  char host[BYTES] = {0};
  struct CUstream_st *stream = cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING);
  NEED(cuMemcpyHtoDAsync_v2((cuda_abi_address)(uintptr_t)l.x, host, BYTES, stream));
  if (!wrong) NEED(cuStreamSynchronize(stream));
  NEED(convolve(&l));
  NEED(cuStreamDestroy_v2(stream));
  close_layer(&l, 1);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * cuBLAS
 */

enum { ROWS = 6, INNER = 5, COLUMNS = 4 };

typedef struct product {
  struct cublasContext *handle;
  float *a, *b, *c;
} product;

static product open_product(void) {
  product p;
  open_libraries(1);
  NEED(cublasCreate_v2(&p.handle));
  p.a = allocate(ROWS * INNER * sizeof *p.a);
  p.b = allocate(INNER * COLUMNS * sizeof *p.b);
  p.c = allocate(ROWS * COLUMNS * sizeof *p.c);
  return p;
}

static void multiply(const product *p, int leading) {
  float one = 1, zero = 0;
  NEED(cublasSgemm_v2(p->handle, CUBLAS_ABI_OP_N, CUBLAS_ABI_OP_N, ROWS, COLUMNS, INNER, &one, p->a, leading, p->b,
                      INNER, &zero, p->c, ROWS));
}

static void close_product(product *p) {
  cuCtxSynchronize();
  release(p->a);
  release(p->b);
  release(p->c);
  NEED(cublasDestroy_v2(p->handle));
  cuda_close(1);
}

/* A leading dimension that is greater than the matrix has rows. */
static void wrong_leading_dimension(bool wrong) {
  product p = open_product();
  float one = 1, zero = 0;
  cublasSgemm_v2(p.handle, CUBLAS_ABI_OP_N, CUBLAS_ABI_OP_N, ROWS, COLUMNS, INNER, &one, p.a, ROWS + wrong, p.b, INNER,
                 &zero, p.c, ROWS);
  close_product(&p);
}

/* Memory that goes while a product is still queued: cuMemFree waits, but the next one uses it. */
static void freed_operand(bool wrong) {
  product p = open_product();
  float *b = allocate(INNER * COLUMNS * sizeof *b), one = 1, zero = 0;
  if (!wrong) multiply(&p, ROWS);
  release(b);
  if (wrong)
    cublasSgemm_v2(p.handle, CUBLAS_ABI_OP_N, CUBLAS_ABI_OP_N, ROWS, COLUMNS, INNER, &one, p.a, ROWS, b, INNER, &zero,
                   p.c, ROWS);
  close_product(&p);
}

/* The library's own workspace is of a stream, one that a program gives is not. */
static void blas_workspace_of_two_streams(bool wrong) {
  enum { WORKSPACE = 4096 };
  product p = open_product(), other = p;
  struct CUstream_st *streams[2] = {NULL, cuda_stream(CUDA_ABI_STREAM_NON_BLOCKING)};
  void *workspace = allocate(WORKSPACE);
  other.c = allocate(ROWS * COLUMNS * sizeof *p.c);
  for (int i = 0; i < 2; i++) {
    NEED(cublasSetStream_v2(p.handle, streams[i]));
    if (i == 0 || wrong) NEED(cublasSetWorkspace_v2(p.handle, workspace, WORKSPACE));
    multiply(i == 0 ? &p : &other, ROWS);
  }
  NEED(cuCtxSynchronize());
  release(workspace);
  release(other.c);
  NEED(cuStreamDestroy_v2(streams[1]));
  close_product(&p);
}

static void host_operand(bool wrong) {
  product p = open_product(), other = p;
  float one = 1, zero = 0, on_host[INNER * COLUMNS] = {0};
  if (wrong) other.b = on_host;
  cublasSgemm_v2(p.handle, CUBLAS_ABI_OP_N, CUBLAS_ABI_OP_N, ROWS, COLUMNS, INNER, &one, other.a, ROWS, other.b, INNER,
                 &zero, other.c, ROWS);
  close_product(&p);
}

static void deleted_handle(bool wrong) {
  product p = open_product();
  struct cublasContext *other;
  NEED(cublasCreate_v2(&other));
  NEED(cublasDestroy_v2(other));
  cublasSetStream_v2(wrong ? other : p.handle, NULL);
  close_product(&p);
}

#define TWO_DEVICES "GPUSIM_CUDA=2 GPUSIM_HIP=0"

const mistake library_mistakes[] = {
    {"cudnn-unfinished-descriptor", "unfinished descriptor", unfinished_descriptor, NULL},
    {"cudnn-deleted-descriptor", "use after delete", deleted_descriptor, NULL},
    {"cudnn-descriptor-of-another-kind", "invalid handle", descriptor_of_another_kind, NULL},
    {"cudnn-forgotten-descriptor", "leak", forgotten_descriptor, NULL},
    {"cudnn-small-workspace", "workspace too small", small_workspace, NULL},
    {"cudnn-workspace-beyond-its-end", "out of bounds", workspace_beyond_its_end, NULL},
    {"cudnn-misaligned-workspace", "misaligned", misaligned_workspace, NULL},
    {"cudnn-workspace-in-the-result", "overlapping operands", workspace_in_the_result, NULL},
    {"cudnn-algorithm-not-listed", "algorithm not listed", algorithm_not_listed, NULL},
    {"cudnn-math-type-not-set", "math type not set", math_type_not_set, NULL},
    {"cudnn-handle-of-another-device", "wrong device", handle_of_another_device, TWO_DEVICES},
    {"cudnn-thread-without-context", "no current context", thread_without_context, NULL},
    {"cudnn-handle-without-context", "no current context", handle_without_context, NULL},
    {"cudnn-stream-of-another-device", "wrong device", stream_of_another_device, TWO_DEVICES},
    {"cudnn-deleted-stream", "use after delete", deleted_stream, NULL},
    {"cudnn-alpha-on-the-device", "not host memory", alpha_on_the_device, NULL},
    {"cudnn-result-beyond-its-end", "out of bounds", result_beyond_its_end, NULL},
    {"cudnn-result-in-place", "overlapping operands", result_in_place, NULL},
    {"cudnn-memory-of-another-device", "wrong device", memory_of_another_device, TWO_DEVICES},
    {"cudnn-workspace-of-two-streams", "workspace of two streams", workspace_of_two_streams, NULL},
    {"cudnn-image-not-waited-for", "missing wait", image_not_waited_for, NULL},
    {"cublas-workspace-of-two-streams", "workspace of two streams", blas_workspace_of_two_streams, NULL},
    {"cublas-wrong-leading-dimension", "out of bounds", wrong_leading_dimension, NULL},
    {"cublas-freed-operand", "use after free", freed_operand, NULL},
    {"cublas-host-operand", "not device memory", host_operand, NULL},
    {"cublas-deleted-handle", "use after delete", deleted_handle, NULL},
    {NULL, NULL, NULL, NULL},
};
