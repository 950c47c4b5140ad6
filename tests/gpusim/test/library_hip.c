/* SPDX-License-Identifier: Apache-2.0 */
#include "library_faces.h"

#include "gpu.h"
#include "miopen.h"
#include "mistakes.h"
#include "rocblas.h"

MIOPEN_FUNCTIONS(FACE_POINTER)
ROCBLAS_FUNCTIONS(FACE_POINTER)

static struct _rocblas_handle *blas;
static struct miopenHandle *dnn;
static const float one = 1, zero = 0;

static void open_handles(void) {
#define X(result, name, arguments) FACE_LOOKUP("libMIOpen.so.1", name)
  MIOPEN_FUNCTIONS(X)
#undef X
#define X(result, name, arguments) FACE_LOOKUP("librocblas.so.4", name)
  ROCBLAS_FUNCTIONS(X)
#undef X
  NEED(rocblas_create_handle(&blas));
  NEED(rocblas_set_atomics_mode(blas, ROCBLAS_ABI_ATOMICS_NOT_ALLOWED));
  NEED(miopenCreateWithStream(&dnn, NULL));
}

static void close_handles(void) {
  NEED(rocblas_destroy_handle(blas));
  NEED(miopenDestroy(dnn));
}

static void multiply(const product *p, void *a, void *b, void *c) {
  int rows_a = p->transpose_a ? p->k : p->m, rows_b = p->transpose_b ? p->n : p->k;
  abi_enum of_a = p->transpose_a ? ROCBLAS_ABI_OPERATION_TRANSPOSE : ROCBLAS_ABI_OPERATION_NONE;
  abi_enum of_b = p->transpose_b ? ROCBLAS_ABI_OPERATION_TRANSPOSE : ROCBLAS_ABI_OPERATION_NONE;
  if (p->batch == 1)
    NEED(rocblas_sgemm(blas, of_a, of_b, p->m, p->n, p->k, &p->alpha, a, rows_a, b, rows_b, &p->beta, c, p->m));
  else
    NEED(rocblas_sgemm_strided_batched(blas, of_a, of_b, p->m, p->n, p->k, &p->alpha, a, rows_a, p->m * p->k, b, rows_b,
                                       p->k * p->n, &p->beta, c, p->m, p->m * p->n, p->batch));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Convolution: the first half of the ways are solutions of immediate mode, the second half algorithms of find mode
 */

typedef struct descriptors {
  struct miopenTensorDescriptor *x, *w, *y;
  struct miopenConvolutionDescriptor *convolution;
} descriptors;

static struct miopenTensorDescriptor *describe(const int dims[4], memory_layout layout) {
  struct miopenTensorDescriptor *tensor;
  int strides[4];
  strides_of(dims, layout, strides);
  NEED(miopenCreateTensorDescriptor(&tensor));
  if (layout == WITH_GAPS)
    NEED(miopenSet4dTensorDescriptorEx(tensor, MIOPEN_ABI_FLOAT, dims[0], dims[1], dims[2], dims[3], strides[0],
                                       strides[1], strides[2], strides[3]));
  else
    NEED(miopenSetNdTensorDescriptorWithLayout(tensor, MIOPEN_ABI_FLOAT,
                                               layout == CHANNELS_LAST ? MIOPEN_ABI_NHWC : MIOPEN_ABI_NCHW, dims, 4));
  return tensor;
}

static descriptors describe_all(const convolution *c) {
  descriptors d = {.x = describe(c->x, c->layout), .w = describe(c->w, c->layout == WITH_GAPS ? 0 : c->layout)};
  if (c->y[0]) d.y = describe(c->y, c->layout);
  NEED(miopenCreateConvolutionDescriptor(&d.convolution));
  NEED(miopenInitConvolutionDescriptor(d.convolution, MIOPEN_ABI_CROSS_CORRELATION, c->pad[0], c->pad[1], c->stride[0],
                                       c->stride[1], c->dilation[0], c->dilation[1]));
  NEED(miopenSetConvolutionGroupCount(d.convolution, c->groups));
  return d;
}

static void forget_all(const descriptors *d) {
  NEED(miopenDestroyTensorDescriptor(d->x));
  NEED(miopenDestroyTensorDescriptor(d->w));
  if (d->y) NEED(miopenDestroyTensorDescriptor(d->y));
  NEED(miopenDestroyConvolutionDescriptor(d->convolution));
}

static void size(convolution *c) {
  descriptors d = describe_all(c);
  NEED(miopenGetConvolutionForwardOutputDim(d.convolution, d.x, d.w, &c->y[0], &c->y[1], &c->y[2], &c->y[3]));
  forget_all(&d);
}

static int list(const descriptors *d, pass direction, miopen_abi_solution *solutions) {
  size_t count = 0, most = MOST_WAYS;
  if (direction == FORWARD)
    NEED(miopenConvolutionForwardGetSolution(dnn, d->w, d->x, d->convolution, d->y, most, &count, solutions));
  else if (direction == BACKWARD_DATA)
    NEED(miopenConvolutionBackwardDataGetSolution(dnn, d->y, d->w, d->convolution, d->x, most, &count, solutions));
  else
    NEED(miopenConvolutionBackwardWeightsGetSolution(dnn, d->y, d->x, d->convolution, d->w, most, &count, solutions));
  return (int)count;
}

/* With the attribute of the descriptor set, the list has only deterministic ones, but for one that does not heed it. */
static int ways(const convolution *c, pass direction, way *found, int most) {
  miopen_abi_solution all[MOST_WAYS], sure[MOST_WAYS];
  descriptors d = describe_all(c);
  int count = list(&d, direction, all);
  NEED(miopenSetConvolutionAttribute(d.convolution, MIOPEN_ABI_ATTRIBUTE_DETERMINISTIC, 1));
  int sure_count = list(&d, direction, sure);
  for (int i = 0; i < 2 * count && i < most; i++) {
    bool is_sure = false;
    for (int k = 0; k < sure_count; k++) is_sure |= sure[k].id == all[i % count].id;
    is_sure &= all[i % count].id != MIOPEN_ABI_GROUP_WEIGHTS;
    found[i] = (way){true, is_sure, 1e-6f};
  }
  forget_all(&d);
  return 2 * count < most ? 2 * count : most;
}

static void run_immediate(const descriptors *d, pass direction, const miopen_abi_solution *s, void *x, void *w,
                          void *y) {
  void *workspace = s->workspace ? gpu_allocate(s->workspace) : NULL;
  if (direction == FORWARD) {
    NEED(miopenConvolutionForwardCompileSolution(dnn, d->w, d->x, d->convolution, d->y, s->id));
    NEED(miopenConvolutionForwardImmediate(dnn, d->w, w, d->x, x, d->convolution, d->y, y, workspace, s->workspace,
                                           s->id));
  } else if (direction == BACKWARD_DATA) {
    NEED(miopenConvolutionBackwardDataCompileSolution(dnn, d->y, d->w, d->convolution, d->x, s->id));
    NEED(miopenConvolutionBackwardDataImmediate(dnn, d->y, y, d->w, w, d->convolution, d->x, x, workspace, s->workspace,
                                                s->id));
  } else {
    NEED(miopenConvolutionBackwardWeightsCompileSolution(dnn, d->y, d->x, d->convolution, d->w, s->id));
    NEED(miopenConvolutionBackwardWeightsImmediate(dnn, d->y, y, d->x, x, d->convolution, d->w, w, workspace,
                                                   s->workspace, s->id));
  }
  if (workspace) gpu_free(workspace);
}

static void run_found(const descriptors *d, pass direction, const miopen_abi_solution *s, void *x, void *w, void *y) {
  miopen_abi_performance results[MOST_WAYS];
  size_t bytes;
  int count, most = MOST_WAYS;
  abi_enum by = s->algorithm;
  void *workspace;
  if (direction == FORWARD) {
    NEED(miopenConvolutionForwardGetWorkSpaceSize(dnn, d->w, d->x, d->convolution, d->y, &bytes));
    workspace = gpu_allocate(bytes + 1);
    NEED(miopenFindConvolutionForwardAlgorithm(dnn, d->x, x, d->w, w, d->convolution, d->y, y, most, &count, results,
                                               workspace, bytes, false));
    NEED(miopenConvolutionForward(dnn, &one, d->x, x, d->w, w, d->convolution, by, &zero, d->y, y, workspace, bytes));
  } else if (direction == BACKWARD_DATA) {
    NEED(miopenConvolutionBackwardDataGetWorkSpaceSize(dnn, d->y, d->w, d->convolution, d->x, &bytes));
    workspace = gpu_allocate(bytes + 1);
    NEED(miopenFindConvolutionBackwardDataAlgorithm(dnn, d->y, y, d->w, w, d->convolution, d->x, x, most, &count,
                                                    results, workspace, bytes, false));
    NEED(miopenConvolutionBackwardData(dnn, &one, d->y, y, d->w, w, d->convolution, by, &zero, d->x, x, workspace,
                                       bytes));
  } else {
    NEED(miopenConvolutionBackwardWeightsGetWorkSpaceSize(dnn, d->y, d->x, d->convolution, d->w, &bytes));
    workspace = gpu_allocate(bytes + 1);
    NEED(miopenFindConvolutionBackwardWeightsAlgorithm(dnn, d->y, y, d->x, x, d->convolution, d->w, w, most, &count,
                                                       results, workspace, bytes, false));
    NEED(miopenConvolutionBackwardWeights(dnn, &one, d->y, y, d->x, x, d->convolution, by, &zero, d->w, w, workspace,
                                          bytes));
  }
  gpu_free(workspace);
}

static void convolve(const convolution *c, pass direction, int number, void *x, void *w, void *y) {
  miopen_abi_solution solutions[MOST_WAYS];
  descriptors d = describe_all(c);
  int count = list(&d, direction, solutions);
  if (number < count)
    run_immediate(&d, direction, &solutions[number], x, w, y);
  else
    run_found(&d, direction, &solutions[number - count], x, w, y);
  forget_all(&d);
}

static void sum(const convolution *c, void *dy, void *db) {
  struct miopenTensorDescriptor *y = describe(c->y, c->layout),
                                *b = describe((int[]){1, c->y[1], 1, 1}, CHANNELS_FIRST);
  NEED(miopenConvolutionBackwardBias(dnn, &one, y, dy, &zero, b, db));
  NEED(miopenDestroyTensorDescriptor(y));
  NEED(miopenDestroyTensorDescriptor(b));
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Pooling and softmax
 */

static struct miopenPoolingDescriptor *describe_pool(const pooling *p) {
  static const abi_enum modes[] = {MIOPEN_ABI_POOLING_MAX, MIOPEN_ABI_POOLING_AVERAGE,
                                   MIOPEN_ABI_POOLING_AVERAGE_WITH_PADDING};
  struct miopenPoolingDescriptor *pool;
  NEED(miopenCreatePoolingDescriptor(&pool));
  NEED(miopenSet2dPoolingDescriptor(pool, modes[p->mode], p->window[0], p->window[1], p->pad[0], p->pad[1],
                                    p->stride[0], p->stride[1]));
  NEED(miopenSetPoolingIndexType(pool, MIOPEN_ABI_INDEX_UINT32));
  return pool;
}

static void size_pool(pooling *p) {
  struct miopenPoolingDescriptor *pool = describe_pool(p);
  struct miopenTensorDescriptor *x = describe(p->x, p->layout);
  NEED(miopenGetPoolingForwardOutputDim(pool, x, &p->y[0], &p->y[1], &p->y[2], &p->y[3]));
  NEED(miopenDestroyTensorDescriptor(x));
  NEED(miopenDestroyPoolingDescriptor(pool));
}

static void pool(pooling *p, void *x, void *y, void *dy, void *dx) {
  struct miopenPoolingDescriptor *made = describe_pool(p);
  struct miopenTensorDescriptor *of_x = describe(p->x, p->layout), *of_y = describe(p->y, p->layout);
  size_t bytes;
  NEED(miopenPoolingGetWorkSpaceSizeV2(made, of_y, &bytes));
  void *workspace = bytes ? gpu_allocate(bytes) : NULL;
  NEED(miopenPoolingForward(dnn, made, &one, of_x, x, &zero, of_y, y, true, workspace, bytes));
  NEED(miopenPoolingBackward(dnn, made, &one, of_y, y, of_y, dy, of_x, x, &zero, of_x, dx, workspace));
  if (workspace) gpu_free(workspace);
  NEED(miopenDestroyTensorDescriptor(of_x));
  NEED(miopenDestroyTensorDescriptor(of_y));
  NEED(miopenDestroyPoolingDescriptor(made));
}

static void compute_softmax(const softmax *s, void *x, void *y, void *dy, void *dx) {
  struct miopenTensorDescriptor *of = describe(s->x, CHANNELS_FIRST);
  abi_enum algorithm = s->log ? MIOPEN_ABI_SOFTMAX_LOG : MIOPEN_ABI_SOFTMAX_ACCURATE;
  abi_enum mode = s->by_channel ? MIOPEN_ABI_SOFTMAX_CHANNEL : MIOPEN_ABI_SOFTMAX_INSTANCE;
  NEED(miopenSoftmaxForward_V2(dnn, &one, of, x, &zero, of, y, algorithm, mode));
  NEED(miopenSoftmaxBackward_V2(dnn, &one, of, y, of, dy, &zero, of, dx, algorithm, mode));
  NEED(miopenDestroyTensorDescriptor(of));
}

const library hip_library = {.name = "HIP",
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
