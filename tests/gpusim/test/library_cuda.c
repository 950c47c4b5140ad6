/* SPDX-License-Identifier: Apache-2.0 */
#include "library_faces.h"

#include "cublas.h"
#include "cudnn.h"
#include "gpu.h"
#include "mistakes.h"

CUBLAS_FUNCTIONS(FACE_POINTER)
CUDNN_FUNCTIONS(FACE_POINTER)

static struct cublasContext *blas;
static struct cudnnContext *dnn;
static const float one = 1, zero = 0;

static void open_handles(void) {
#define X(result, name, arguments) FACE_LOOKUP("libcublas.so.13", name)
  CUBLAS_FUNCTIONS(X)
#undef X
#define X(result, name, arguments) FACE_LOOKUP("libcudnn.so.9", name)
  CUDNN_FUNCTIONS(X)
#undef X
  NEED(cublasCreate_v2(&blas));
  NEED(cudnnCreate(&dnn));
}

static void close_handles(void) {
  NEED(cublasDestroy_v2(blas));
  NEED(cudnnDestroy(dnn));
}

static void multiply(const product *p, void *a, void *b, void *c) {
  int rows_a = p->transpose_a ? p->k : p->m, rows_b = p->transpose_b ? p->n : p->k;
  abi_enum of_a = p->transpose_a ? CUBLAS_ABI_OP_T : CUBLAS_ABI_OP_N;
  abi_enum of_b = p->transpose_b ? CUBLAS_ABI_OP_T : CUBLAS_ABI_OP_N;
  if (p->batch == 1)
    NEED(cublasSgemm_v2(blas, of_a, of_b, p->m, p->n, p->k, &p->alpha, a, rows_a, b, rows_b, &p->beta, c, p->m));
  else
    NEED(cublasSgemmStridedBatched(blas, of_a, of_b, p->m, p->n, p->k, &p->alpha, a, rows_a, p->m * p->k, b, rows_b,
                                   p->k * p->n, &p->beta, c, p->m, p->m * p->n, p->batch));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Convolution
 */

typedef struct descriptors {
  struct cudnnTensorStruct *x, *y;
  struct cudnnFilterStruct *w;
  struct cudnnConvolutionStruct *convolution;
} descriptors;

static struct cudnnTensorStruct *describe(const int dims[4], memory_layout layout) {
  struct cudnnTensorStruct *tensor;
  int strides[4];
  strides_of(dims, layout, strides);
  NEED(cudnnCreateTensorDescriptor(&tensor));
  if (layout == WITH_GAPS)
    NEED(cudnnSetTensor4dDescriptorEx(tensor, CUDNN_ABI_FLOAT, dims[0], dims[1], dims[2], dims[3], strides[0],
                                      strides[1], strides[2], strides[3]));
  else
    NEED(cudnnSetTensor4dDescriptor(tensor, layout == CHANNELS_LAST ? CUDNN_ABI_NHWC : CUDNN_ABI_NCHW, CUDNN_ABI_FLOAT,
                                    dims[0], dims[1], dims[2], dims[3]));
  return tensor;
}

static descriptors describe_all(const convolution *c, abi_enum math) {
  descriptors d = {.x = describe(c->x, c->layout)};
  if (c->y[0]) d.y = describe(c->y, c->layout);
  NEED(cudnnCreateFilterDescriptor(&d.w));
  NEED(cudnnSetFilter4dDescriptor(d.w, CUDNN_ABI_FLOAT, c->layout == CHANNELS_LAST ? CUDNN_ABI_NHWC : CUDNN_ABI_NCHW,
                                  c->w[0], c->w[1], c->w[2], c->w[3]));
  NEED(cudnnCreateConvolutionDescriptor(&d.convolution));
  NEED(cudnnSetConvolution2dDescriptor(d.convolution, c->pad[0], c->pad[1], c->stride[0], c->stride[1], c->dilation[0],
                                       c->dilation[1], c->flipped ? CUDNN_ABI_CONVOLUTION : CUDNN_ABI_CROSS_CORRELATION,
                                       CUDNN_ABI_FLOAT));
  NEED(cudnnSetConvolutionGroupCount(d.convolution, c->groups));
  NEED(cudnnSetConvolutionMathType(d.convolution, math));
  return d;
}

static void forget_all(const descriptors *d) {
  NEED(cudnnDestroyTensorDescriptor(d->x));
  NEED(cudnnDestroyTensorDescriptor(d->y));
  NEED(cudnnDestroyFilterDescriptor(d->w));
  NEED(cudnnDestroyConvolutionDescriptor(d->convolution));
}

static void size(convolution *c) {
  descriptors d = describe_all(c, CUDNN_ABI_FMA_MATH);
  NEED(cudnnGetConvolution2dForwardOutputDim(d.convolution, d.x, d.w, &c->y[0], &c->y[1], &c->y[2], &c->y[3]));
  forget_all(&d);
}

/* Those that do the work, of a list for default arithmetic and one for plain arithmetic. */
static int list(const convolution *c, pass direction, cudnn_abi_performance *results) {
  static const abi_enum maths[] = {CUDNN_ABI_DEFAULT_MATH, CUDNN_ABI_FMA_MATH};
  int kept = 0;
  for (int i = 0; i < 2; i++) {
    descriptors d = describe_all(c, maths[i]);
    cudnn_abi_performance all[CUDNN_ABI_FORWARD_COUNT];
    int count = 0, most = CUDNN_ABI_FORWARD_COUNT;
    if (direction == FORWARD)
      NEED(cudnnGetConvolutionForwardAlgorithm_v7(dnn, d.x, d.w, d.convolution, d.y, most, &count, (void *)all));
    else if (direction == BACKWARD_DATA)
      NEED(cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn, d.w, d.y, d.convolution, d.x, most, &count, (void *)all));
    else
      NEED(cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn, d.x, d.y, d.convolution, d.w, most, &count, (void *)all));
    for (int k = 0; k < count; k++)
      if (all[k].status == 0) results[kept++] = all[k];
    forget_all(&d);
  }
  return kept;
}

static int ways(const convolution *c, pass direction, way *found, int most) {
  cudnn_abi_performance results[2 * CUDNN_ABI_FORWARD_COUNT];
  int count = list(c, direction, results);
  for (int i = 0; i < count && i < most; i++) {
    bool exact = results[i].math == CUDNN_ABI_FMA_MATH;
    found[i] = (way){exact, results[i].determinism == CUDNN_ABI_DETERMINISTIC, exact ? 1e-6f : 1e-2f};
  }
  return count < most ? count : most;
}

static void convolve(const convolution *c, pass direction, int number, void *x, void *w, void *y) {
  cudnn_abi_performance results[2 * CUDNN_ABI_FORWARD_COUNT];
  list(c, direction, results);
  abi_enum algorithm = results[number].algorithm;
  descriptors d = describe_all(c, results[number].math);
  size_t bytes = 0;
  if (direction == FORWARD)
    NEED(cudnnGetConvolutionForwardWorkspaceSize(dnn, d.x, d.w, d.convolution, d.y, algorithm, &bytes));
  else if (direction == BACKWARD_DATA)
    NEED(cudnnGetConvolutionBackwardDataWorkspaceSize(dnn, d.w, d.y, d.convolution, d.x, algorithm, &bytes));
  else
    NEED(cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn, d.x, d.y, d.convolution, d.w, algorithm, &bytes));
  void *workspace = bytes ? gpu_allocate(bytes) : NULL;
  if (direction == FORWARD)
    NEED(cudnnConvolutionForward(dnn, &one, d.x, x, d.w, w, d.convolution, algorithm, workspace, bytes, &zero, d.y, y));
  else if (direction == BACKWARD_DATA)
    NEED(cudnnConvolutionBackwardData(dnn, &one, d.w, w, d.y, y, d.convolution, algorithm, workspace, bytes, &zero, d.x,
                                      x));
  else
    NEED(cudnnConvolutionBackwardFilter(dnn, &one, d.x, x, d.y, y, d.convolution, algorithm, workspace, bytes, &zero,
                                        d.w, w));
  if (workspace) gpu_free(workspace);
  forget_all(&d);
}

static void sum(const convolution *c, void *dy, void *db) {
  struct cudnnTensorStruct *y = describe(c->y, c->layout), *b = describe((int[]){1, c->y[1], 1, 1}, CHANNELS_FIRST);
  NEED(cudnnConvolutionBackwardBias(dnn, &one, y, dy, &zero, b, db));
  NEED(cudnnDestroyTensorDescriptor(y));
  NEED(cudnnDestroyTensorDescriptor(b));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Pooling and softmax
 */

static struct cudnnPoolingStruct *describe_pool(const pooling *p) {
  static const abi_enum modes[] = {CUDNN_ABI_POOLING_MAX_DETERMINISTIC, CUDNN_ABI_POOLING_AVERAGE,
                                   CUDNN_ABI_POOLING_AVERAGE_WITH_PADDING};
  struct cudnnPoolingStruct *pool;
  NEED(cudnnCreatePoolingDescriptor(&pool));
  NEED(cudnnSetPooling2dDescriptor(pool, modes[p->mode], CUDNN_ABI_PROPAGATE_NAN, p->window[0], p->window[1], p->pad[0],
                                   p->pad[1], p->stride[0], p->stride[1]));
  return pool;
}

static void size_pool(pooling *p) {
  struct cudnnPoolingStruct *pool = describe_pool(p);
  struct cudnnTensorStruct *x = describe(p->x, p->layout);
  NEED(cudnnGetPooling2dForwardOutputDim(pool, x, &p->y[0], &p->y[1], &p->y[2], &p->y[3]));
  NEED(cudnnDestroyTensorDescriptor(x));
  NEED(cudnnDestroyPoolingDescriptor(pool));
}

static void pool(pooling *p, void *x, void *y, void *dy, void *dx) {
  struct cudnnPoolingStruct *made = describe_pool(p);
  struct cudnnTensorStruct *of_x = describe(p->x, p->layout), *of_y = describe(p->y, p->layout);
  NEED(cudnnPoolingForward(dnn, made, &one, of_x, x, &zero, of_y, y));
  NEED(cudnnPoolingBackward(dnn, made, &one, of_y, y, of_y, dy, of_x, x, &zero, of_x, dx));
  NEED(cudnnDestroyTensorDescriptor(of_x));
  NEED(cudnnDestroyTensorDescriptor(of_y));
  NEED(cudnnDestroyPoolingDescriptor(made));
}

static void compute_softmax(const softmax *s, void *x, void *y, void *dy, void *dx) {
  struct cudnnTensorStruct *of = describe(s->x, CHANNELS_FIRST);
  abi_enum algorithm = s->log ? CUDNN_ABI_SOFTMAX_LOG : CUDNN_ABI_SOFTMAX_ACCURATE;
  abi_enum mode = s->by_channel ? CUDNN_ABI_SOFTMAX_CHANNEL : CUDNN_ABI_SOFTMAX_INSTANCE;
  NEED(cudnnSoftmaxForward(dnn, algorithm, mode, &one, of, x, &zero, of, y));
  NEED(cudnnSoftmaxBackward(dnn, algorithm, mode, &one, of, y, of, dy, &zero, of, dx));
  NEED(cudnnDestroyTensorDescriptor(of));
}

const library cuda_library = {.name = "CUDA",
                              .open = open_handles,
                              .close = close_handles,
                              .multiply = multiply,
                              .size = size,
                              .ways = ways,
                              .convolve = convolve,
                              .sum = sum,
                              .pool = pool,
                              .size_pool = size_pool,
                              .softmax = compute_softmax};
