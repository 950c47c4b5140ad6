/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes with MIOpen and rocBLAS. Each program convolves or pools an image, or multiplies two matrices. */
#include "driver.h"
#include "miopen.h"
#include "rocblas.h"

#include <stdlib.h>

MIOPEN_FUNCTIONS(FACE_POINTER)
ROCBLAS_FUNCTIONS(FACE_POINTER)

static const float one = 1, zero = 0;

static void open_libraries(void) {
#define X(result, name, arguments) FACE_LOOKUP("libMIOpen.so.1", name)
  MIOPEN_FUNCTIONS(X)
#undef X
#define X(result, name, arguments) FACE_LOOKUP("librocblas.so.4", name)
  ROCBLAS_FUNCTIONS(X)
#undef X
  hip_open();
}

/* Filled with zeros. */
static void *allocate(size_t bytes) {
  void *address;
  NEED(hipMalloc(&address, bytes));
  NEED(hipMemsetD8Async(address, 0, bytes, NULL));
  NEED(hipDeviceSynchronize());
  return address;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Convolution
 */

enum { SIZE = 8, ELEMENTS = 2 * 4 * SIZE * SIZE, FILTER_ELEMENTS = 4 * 4 * 3 * 3 };

typedef struct layer {
  struct miopenHandle *handle;
  struct miopenTensorDescriptor *tensor, *filter;
  struct miopenConvolutionDescriptor *convolution;
  float *x, *w, *y, *workspace;
  size_t bytes;
} layer;

static layer open_layer(void) {
  layer l;
  open_libraries();
  NEED(miopenCreateWithStream(&l.handle, NULL));
  NEED(miopenCreateTensorDescriptor(&l.tensor));
  NEED(miopenSet4dTensorDescriptor(l.tensor, MIOPEN_ABI_FLOAT, 2, 4, SIZE, SIZE));
  NEED(miopenCreateTensorDescriptor(&l.filter));
  NEED(miopenSet4dTensorDescriptor(l.filter, MIOPEN_ABI_FLOAT, 4, 4, 3, 3));
  NEED(miopenCreateConvolutionDescriptor(&l.convolution));
  NEED(miopenInitConvolutionDescriptor(l.convolution, MIOPEN_ABI_CROSS_CORRELATION, 1, 1, 1, 1, 1, 1));
  l.x = allocate(ELEMENTS * sizeof *l.x);
  l.y = allocate(ELEMENTS * sizeof *l.y);
  l.w = allocate(FILTER_ELEMENTS * sizeof *l.w);
  NEED(miopenConvolutionForwardGetWorkSpaceSize(l.handle, l.filter, l.tensor, l.convolution, l.tensor, &l.bytes));
  l.workspace = allocate(l.bytes);
  return l;
}

static void close_layer(layer *l) {
  NEED(hipDeviceSynchronize());
  NEED(hipFree(l->x));
  NEED(hipFree(l->y));
  NEED(hipFree(l->w));
  NEED(hipFree(l->workspace));
  NEED(miopenDestroyTensorDescriptor(l->tensor));
  NEED(miopenDestroyTensorDescriptor(l->filter));
  NEED(miopenDestroyConvolutionDescriptor(l->convolution));
  NEED(miopenDestroy(l->handle));
}

enum { MOST = 8 };

static uint64_t list(const layer *l, size_t *workspace) {
  miopen_abi_solution solutions[MOST];
  size_t count;
  NEED(miopenConvolutionForwardGetSolution(l->handle, l->filter, l->tensor, l->convolution, l->tensor, MOST, &count,
                                           solutions));
  *workspace = solutions[count - 1].workspace;
  return solutions[count - 1].id;
}

static void compile(const layer *l, uint64_t id) {
  NEED(miopenConvolutionForwardCompileSolution(l->handle, l->filter, l->tensor, l->convolution, l->tensor, id));
}

static void convolve(const layer *l, uint64_t id) {
  miopenConvolutionForwardImmediate(l->handle, l->filter, l->w, l->tensor, l->x, l->convolution, l->tensor, l->y,
                                    l->workspace, l->bytes, id);
}

static void solution_not_compiled(bool wrong) {
  layer l = open_layer();
  size_t bytes;
  uint64_t id = list(&l, &bytes);
  if (!wrong) compile(&l, id);
  convolve(&l, id);
  close_layer(&l);
}

/* Solutions that one handle was told of are nothing to another. */
static void solution_of_another_handle(bool wrong) {
  layer l = open_layer(), other = l;
  size_t bytes;
  uint64_t id = list(&l, &bytes);
  compile(&l, id);
  NEED(miopenCreateWithStream(&other.handle, NULL));
  convolve(wrong ? &other : &l, id);
  NEED(miopenDestroy(other.handle));
  close_layer(&l);
}

/* A compiled solution is for one problem. */
static void solution_of_another_problem(bool wrong) {
  layer l = open_layer();
  size_t bytes;
  uint64_t id = list(&l, &bytes);
  compile(&l, id);
  if (wrong) NEED(miopenInitConvolutionDescriptor(l.convolution, MIOPEN_ABI_CROSS_CORRELATION, 2, 2, 1, 1, 2, 2));
  convolve(&l, id);
  close_layer(&l);
}

/* One workspace for two layers, each on a stream of its own. */
static void workspace_of_two_streams(bool wrong) {
  layer l = open_layer(), other = l;
  struct ihipStream_t *stream;
  size_t bytes;
  uint64_t id = list(&l, &bytes);
  compile(&l, id);
  NEED(hipStreamCreateWithFlags(&stream, HIP_ABI_STREAM_NON_BLOCKING));
  other.y = allocate(ELEMENTS * sizeof *l.y);
  if (!wrong) other.workspace = allocate(l.bytes);
  convolve(&l, id);
  NEED(miopenSetStream(l.handle, stream));
  convolve(&other, id);
  NEED(hipDeviceSynchronize());
  if (!wrong) NEED(hipFree(other.workspace));
  NEED(hipFree(other.y));
  NEED(hipStreamDestroy(stream));
  close_layer(&l);
}

static miopen_abi_performance search(const layer *l) {
  miopen_abi_performance results[MOST];
  int count;
  NEED(miopenFindConvolutionForwardAlgorithm(l->handle, l->tensor, l->x, l->filter, l->w, l->convolution, l->tensor,
                                             l->y, MOST, &count, results, l->workspace, l->bytes, false));
  return results[count - 1];
}

static void not_searched_for(bool wrong) {
  layer l = open_layer();
  if (!wrong) search(&l);
  miopenConvolutionForward(l.handle, &one, l.tensor, l.x, l.filter, l.w, l.convolution, MIOPEN_ABI_DIRECT, &zero,
                           l.tensor, l.y, l.workspace, l.bytes);
  close_layer(&l);
}

static void adds_to_the_result(bool wrong) {
  layer l = open_layer();
  search(&l);
  miopenConvolutionForward(l.handle, &one, l.tensor, l.x, l.filter, l.w, l.convolution, MIOPEN_ABI_DIRECT,
                           wrong ? &one : &zero, l.tensor, l.y, l.workspace, l.bytes);
  close_layer(&l);
}

static void small_workspace(bool wrong) {
  layer l = open_layer();
  search(&l);
  miopenConvolutionForward(l.handle, &one, l.tensor, l.x, l.filter, l.w, l.convolution, MIOPEN_ABI_GEMM, &zero,
                           l.tensor, l.y, l.workspace, wrong ? 16 : l.bytes);
  close_layer(&l);
}

/* The result is described without padding. */
static void shapes_do_not_fit(bool wrong) {
  layer l = open_layer();
  struct miopenTensorDescriptor *y;
  size_t count;
  NEED(miopenCreateTensorDescriptor(&y));
  NEED(miopenSet4dTensorDescriptor(y, MIOPEN_ABI_FLOAT, 2, 4, SIZE - 2 * wrong, SIZE - 2 * wrong));
  miopenConvolutionForwardGetSolutionCount(l.handle, l.filter, l.tensor, l.convolution, y, &count);
  NEED(miopenDestroyTensorDescriptor(y));
  close_layer(&l);
}

static void unfinished_descriptor(bool wrong) {
  layer l = open_layer();
  struct miopenConvolutionDescriptor *convolution;
  size_t count;
  NEED(miopenCreateConvolutionDescriptor(&convolution));
  if (!wrong) NEED(miopenInitConvolutionDescriptor(convolution, MIOPEN_ABI_CROSS_CORRELATION, 1, 1, 1, 1, 1, 1));
  miopenConvolutionForwardGetSolutionCount(l.handle, l.filter, l.tensor, convolution, l.tensor, &count);
  NEED(miopenDestroyConvolutionDescriptor(convolution));
  close_layer(&l);
}

static void handle_of_another_device(bool wrong) {
  layer l = open_layer();
  size_t count;
  NEED(hipSetDevice(wrong));
  miopenConvolutionForwardGetSolutionCount(l.handle, l.filter, l.tensor, l.convolution, l.tensor, &count);
  NEED(hipSetDevice(0));
  close_layer(&l);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Pooling of the layer's x by a window, with a stride of the same size, into its y
 */

typedef struct pool {
  layer l;
  struct miopenPoolingDescriptor *pooling;
  struct miopenTensorDescriptor *y;
  void *workspace;
  size_t bytes;
} pool;

static pool open_pool(int x_size, int window, abi_enum index_type) {
  pool p = {.l = open_layer()};
  NEED(miopenSet4dTensorDescriptor(p.l.tensor, MIOPEN_ABI_FLOAT, 1, 1, x_size, x_size));
  NEED(miopenCreatePoolingDescriptor(&p.pooling));
  NEED(miopenSet2dPoolingDescriptor(p.pooling, MIOPEN_ABI_POOLING_MAX, window, window, 0, 0, window, window));
  NEED(miopenSetPoolingIndexType(p.pooling, index_type));
  NEED(miopenCreateTensorDescriptor(&p.y));
  NEED(miopenSet4dTensorDescriptor(p.y, MIOPEN_ABI_FLOAT, 1, 1, x_size / window, x_size / window));
  NEED(miopenPoolingGetWorkSpaceSizeV2(p.pooling, p.y, &p.bytes));
  p.workspace = allocate(p.bytes);
  return p;
}

static void pool_forward(const pool *p, bool do_backward, size_t bytes) {
  miopenPoolingForward(p->l.handle, p->pooling, &one, p->l.tensor, p->l.x, &zero, p->y, p->l.y, do_backward,
                       p->workspace, bytes);
}

static void pool_backward(const pool *p, void *workspace) {
  miopenPoolingBackward(p->l.handle, p->pooling, &one, p->y, p->l.y, p->y, p->l.w, p->l.tensor, p->l.x, &zero,
                        p->l.tensor, p->l.workspace, workspace);
  hipDeviceSynchronize();
}

static void close_pool(pool *p) {
  hipDeviceSynchronize();
  NEED(hipFree(p->workspace));
  NEED(miopenDestroyPoolingDescriptor(p->pooling));
  NEED(miopenDestroyTensorDescriptor(p->y));
  close_layer(&p->l);
}

/* The forward pass was told that no backward pass would follow. */
static void pooling_that_keeps_nothing(bool wrong) {
  pool p = open_pool(16, 4, MIOPEN_ABI_INDEX_UINT8);
  pool_forward(&p, !wrong, p.bytes);
  pool_backward(&p, p.workspace);
  close_pool(&p);
}

static void pooling_without_workspace(bool wrong) {
  pool p = open_pool(16, 4, MIOPEN_ABI_INDEX_UINT8);
  pool_forward(&p, true, p.bytes);
  pool_backward(&p, wrong ? NULL : p.workspace);
  close_pool(&p);
}

/* Two layers share one workspace. */
static void pooling_of_another_layer(bool wrong) {
  pool p = open_pool(16, 4, MIOPEN_ABI_INDEX_UINT8);
  pool_forward(&p, true, p.bytes);
  if (wrong) NEED(miopenSet2dPoolingDescriptor(p.pooling, MIOPEN_ABI_POOLING_MAX, 5, 5, 0, 0, 3, 3));
  pool_backward(&p, p.workspace);
  close_pool(&p);
}

static void pooling_small_workspace(bool wrong) {
  pool p = open_pool(16, 4, MIOPEN_ABI_INDEX_UINT32);
  pool_forward(&p, true, wrong ? p.bytes / 2 : p.bytes);
  close_pool(&p);
}

/* 256 places in a window, which 8 bits cannot tell from none. */
static void pooling_index_type(bool wrong) {
  pool p = open_pool(16, 16, wrong ? MIOPEN_ABI_INDEX_UINT8 : MIOPEN_ABI_INDEX_UINT32);
  pool_forward(&p, true, p.bytes);
  close_pool(&p);
}

/* ---------------------------------------------------------------------------------------------------------------------
 * rocBLAS
 */

enum { ORDER = 4 };

static void product_of_another_device(bool wrong) {
  struct _rocblas_handle *handle;
  open_libraries();
  NEED(rocblas_create_handle(&handle));
  float *matrix = allocate(ORDER * ORDER * sizeof *matrix), *result = allocate(ORDER * ORDER * sizeof *matrix);
  NEED(hipSetDevice(wrong));
  rocblas_sgemm(handle, ROCBLAS_ABI_OPERATION_NONE, ROCBLAS_ABI_OPERATION_NONE, ORDER, ORDER, ORDER, &one, matrix,
                ORDER, matrix, ORDER, &zero, result, ORDER);
  NEED(hipSetDevice(0));
  NEED(hipDeviceSynchronize());
  NEED(hipFree(matrix));
  NEED(hipFree(result));
  NEED(rocblas_destroy_handle(handle));
}

/* The handle has a workspace of its own: who gives it another stream has to wait for the old one first. */
static void handle_of_two_streams(bool wrong) {
  struct _rocblas_handle *handle;
  struct ihipStream_t *stream;
  open_libraries();
  NEED(rocblas_create_handle(&handle));
  NEED(hipStreamCreateWithFlags(&stream, HIP_ABI_STREAM_NON_BLOCKING));
  float *matrix = allocate(ORDER * ORDER * sizeof *matrix);
  float *results[2] = {allocate(ORDER * ORDER * sizeof *matrix), allocate(ORDER * ORDER * sizeof *matrix)};
  for (int i = 0; i < 2; i++) {
    NEED(rocblas_sgemm(handle, ROCBLAS_ABI_OPERATION_NONE, ROCBLAS_ABI_OPERATION_NONE, ORDER, ORDER, ORDER, &one,
                       matrix, ORDER, matrix, ORDER, &zero, results[i], ORDER));
    if (!wrong) NEED(hipStreamSynchronize(NULL));
    NEED(rocblas_set_stream(handle, stream));
  }
  NEED(hipDeviceSynchronize());
  NEED(hipFree(matrix));
  for (int i = 0; i < 2; i++) NEED(hipFree(results[i]));
  NEED(hipStreamDestroy(stream));
  NEED(rocblas_destroy_handle(handle));
}

static void batch_that_overlaps(bool wrong) {
  struct _rocblas_handle *handle;
  open_libraries();
  NEED(rocblas_create_handle(&handle));
  enum { SQUARE = ORDER * ORDER };
  float *matrix = allocate(SQUARE * sizeof *matrix), *result = allocate(2 * SQUARE * sizeof *matrix);
  rocblas_sgemm_strided_batched(handle, ROCBLAS_ABI_OPERATION_NONE, ROCBLAS_ABI_OPERATION_NONE, ORDER, ORDER, ORDER,
                                &one, matrix, ORDER, 0, matrix, ORDER, 0, &zero, result, ORDER, wrong ? ORDER : SQUARE,
                                2);
  NEED(hipDeviceSynchronize());
  NEED(hipFree(matrix));
  NEED(hipFree(result));
  NEED(rocblas_destroy_handle(handle));
}

#define TWO_DEVICES "GPUSIM_CUDA=0 GPUSIM_HIP=2"

const mistake hip_library_mistakes[] = {
    {"miopen-solution-not-compiled", "solution not compiled", solution_not_compiled, NULL},
    {"miopen-solution-of-another-handle", "solution not listed", solution_of_another_handle, NULL},
    {"miopen-solution-of-another-problem", "solution not listed", solution_of_another_problem, NULL},
    {"miopen-not-searched-for", "not searched for", not_searched_for, NULL},
    {"miopen-adds-to-the-result", "alpha and beta", adds_to_the_result, NULL},
    {"miopen-small-workspace", "workspace too small", small_workspace, NULL},
    {"miopen-shapes-do-not-fit", "shapes do not fit", shapes_do_not_fit, NULL},
    {"miopen-unfinished-descriptor", "unfinished descriptor", unfinished_descriptor, NULL},
    {"miopen-handle-of-another-device", "wrong device", handle_of_another_device, TWO_DEVICES},
    {"miopen-pooling-that-keeps-nothing", "workspace without its forward pass", pooling_that_keeps_nothing, NULL},
    {"miopen-pooling-without-workspace", "workspace without its forward pass", pooling_without_workspace, NULL},
    {"miopen-pooling-of-another-layer", "workspace without its forward pass", pooling_of_another_layer, NULL},
    {"miopen-pooling-small-workspace", "workspace too small", pooling_small_workspace, NULL},
    {"miopen-pooling-index-type", "index type too small", pooling_index_type, NULL},
    {"miopen-workspace-of-two-streams", "workspace of two streams", workspace_of_two_streams, NULL},
    {"rocblas-handle-of-two-streams", "workspace of two streams", handle_of_two_streams, NULL},
    {"rocblas-product-of-another-device", "wrong device", product_of_another_device, TWO_DEVICES},
    {"rocblas-batch-that-overlaps", "overlapping operands", batch_that_overlaps, NULL},
    {NULL, NULL, NULL, NULL},
};
