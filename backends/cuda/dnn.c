/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by cuDNN: the calls that versions 8 and 9 have in common. */
#include "../gpu/dnn.h"

typedef struct table {
  CUDNN_HANDLE_FUNCTIONS(GPU_POINTER)
  CUDNN_DESCRIPTOR_FUNCTIONS(GPU_POINTER)
  CUDNN_CONVOLUTION_FUNCTIONS(GPU_POINTER)
} table;

#define GPU_TABLE table
static const gpu_symbol symbols[] = {CUDNN_HANDLE_FUNCTIONS(GPU_SYMBOL) CUDNN_DESCRIPTOR_FUNCTIONS(GPU_SYMBOL)
                                         CUDNN_CONVOLUTION_FUNCTIONS(GPU_SYMBOL)};

const vendor_library vendor_dnn_library = {
    .title = "cuDNN",
    .install = "install cuDNN 9 or 8 for your CUDA version (Debian: nvidia-cudnn; conda: cudnn; pip: nvidia-cudnn-cu13 "
               "or -cu12)",
    .most_bytes = INT64_MAX,
};

static table cudnn;
static gpu_opened opened = GPU_NOT_OPENED;

struct vendor_way {
  const helio_host *host;
  vendor_direction direction;
  bool wide; /* factors are doubles */
  struct cudnnTensorStruct *x, *y;
  struct cudnnFilterStruct *kernel;
  struct cudnnConvolutionStruct *convolution;
  abi_enum algorithm;
  size_t workspace;
};

/* libcudnn is a shell around parts, each behind those that it needs. If it cannot open one that a call wants, it ends
 * the process: without these it is as good as not there. */
typedef struct cudnn_version {
  const char *names[2], *parts[5];
} cudnn_version;
static const cudnn_version versions[] = {
    {{"libcudnn.so.9"}, {"libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9"}},
    {{"libcudnn.so.8"},
     {"libcudnn_ops_infer.so.8", "libcudnn_ops_train.so.8", "libcudnn_cnn_infer.so.8", "libcudnn_cnn_train.so.8"}},
};

/* What 9 looks for with some calls only, and does without. Not all versions look beside themselves. */
static void open_engines(void) {
  static const char *const engines[] = {"libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9",
                                        "libcudnn_engines_runtime_compiled.so.9", NULL};
  gpu_library_open_beside(opened.library, engines);
}

bool vendor_dnn_open(const helio_host *host, char *reason, size_t size) {
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
    gpu_wanted wanted = {.names = versions[i].names,
                         .parts = versions[i].parts,
                         .symbols = symbols,
                         .symbol_count = sizeof symbols / sizeof symbols[0],
                         .table = &cudnn};
    if (!gpu_vendor_library_open(&opened, host, &wanted, reason, size)) continue;
    if (i == 0) open_engines();
    return true;
  }
  return false;
}

/* cuDNN 9 counts each kind of failure from a thousand of its own; 8 from one. Whatever is no fault of the call is the
 * library's own, such as a kernel that it could not compile or launch: a device that is lost says so itself. */
helio_status vendor_dnn_meaning(abi_enum status) {
  switch (status) {
  case CUDNN_ABI_8_ALLOC_FAILED:
  case CUDNN_ABI_HOST_ALLOCATION_FAILED:
  case CUDNN_ABI_DEVICE_ALLOCATION_FAILED:
    return HELIO_OUT_OF_MEMORY;
  case CUDNN_ABI_8_BAD_PARAM:
  case CUDNN_ABI_8_INVALID_VALUE:
    return HELIO_INVALID_ARGUMENT;
  default:
    return status / 1000 == CUDNN_ABI_BAD_PARAM / 1000 ? HELIO_INVALID_ARGUMENT : HELIO_NOT_SUPPORTED;
  }
}

const char *vendor_dnn_words(abi_enum status) {
  return cudnn.cudnnGetErrorString(status);
}

abi_enum vendor_dnn_make_handle(struct cudnnContext **handle) {
  return cudnn.cudnnCreate(handle);
}

void vendor_dnn_end_handle(struct cudnnContext *handle) {
  (void)cudnn.cudnnDestroy(handle);
}

abi_enum vendor_dnn_set_stream(struct cudnnContext *handle, vendor_stream *stream) {
  return cudnn.cudnnSetStream(handle, (struct CUstream_st *)stream);
}

/* --- describing a convolution --- */

void vendor_way_free(vendor_way *way) {
  if (way == NULL) return;
  if (way->convolution != NULL) (void)cudnn.cudnnDestroyConvolutionDescriptor(way->convolution);
  if (way->kernel != NULL) (void)cudnn.cudnnDestroyFilterDescriptor(way->kernel);
  if (way->y != NULL) (void)cudnn.cudnnDestroyTensorDescriptor(way->y);
  if (way->x != NULL) (void)cudnn.cudnnDestroyTensorDescriptor(way->x);
  way->host->release(way->host, way);
}

/* Arithmetic that may be used: float32 in short formats only where that is allowed, halves on tensor cores. */
static abi_enum math_for(const vendor_convolution *c) {
  if (c->type == HELIO_FLOAT16 || c->type == HELIO_BFLOAT16) return CUDNN_ABI_TENSOR_OP_MATH;
  return c->type == HELIO_FLOAT32 && c->reduced_precision ? CUDNN_ABI_DEFAULT_MATH : CUDNN_ABI_FMA_MATH;
}

static abi_enum create(vendor_way *way) {
  abi_enum status = cudnn.cudnnCreateTensorDescriptor(&way->x);
  if (status == 0) status = cudnn.cudnnCreateTensorDescriptor(&way->y);
  if (status == 0) status = cudnn.cudnnCreateFilterDescriptor(&way->kernel);
  return status == 0 ? cudnn.cudnnCreateConvolutionDescriptor(&way->convolution) : status;
}

static abi_enum describe(vendor_way *way, const vendor_convolution *c) {
  abi_enum type = gpu_dnn_type(c->type);
  abi_enum status =
      cudnn.cudnnSetTensor4dDescriptor(way->x, CUDNN_ABI_NHWC, type, c->images, c->channels, c->height, c->width);
  if (status == 0)
    status = cudnn.cudnnSetTensor4dDescriptor(way->y, CUDNN_ABI_NHWC, type, c->images, c->out_channels, c->out_height,
                                              c->out_width);
  if (status == 0)
    status = cudnn.cudnnSetFilter4dDescriptor(way->kernel, type, CUDNN_ABI_NHWC, c->out_channels,
                                              c->channels / c->groups, c->kernel[0], c->kernel[1]);
  if (status == 0)
    status = cudnn.cudnnSetConvolution2dDescriptor(
        way->convolution, c->padding[0], c->padding[1], c->stride[0], c->stride[1], c->dilation[0], c->dilation[1],
        CUDNN_ABI_CROSS_CORRELATION, way->wide ? CUDNN_ABI_DOUBLE : CUDNN_ABI_FLOAT);
  if (status == 0) status = cudnn.cudnnSetConvolutionGroupCount(way->convolution, c->groups);
  return status == 0 ? cudnn.cudnnSetConvolutionMathType(way->convolution, math_for(c)) : status;
}

/* --- choosing an algorithm --- */

enum { MOST_ALGORITHMS = 16 };

static abi_enum list(vendor_dnn *dnn, const vendor_way *w, int *count, cudnn_abi_performance *found) {
  switch (w->direction) {
  case VENDOR_CONVOLVE:
    return cudnn.cudnnGetConvolutionForwardAlgorithm_v7(dnn->handle, w->x, w->kernel, w->convolution, w->y,
                                                        MOST_ALGORITHMS, count, (void *)found);
  case VENDOR_CONVOLVE_GRAD_INPUT:
    return cudnn.cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn->handle, w->kernel, w->y, w->convolution, w->x,
                                                             MOST_ALGORITHMS, count, (void *)found);
  default:
    return cudnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn->handle, w->x, w->y, w->convolution, w->kernel,
                                                               MOST_ALGORITHMS, count, (void *)found);
  }
}

static abi_enum ask_workspace(vendor_dnn *dnn, const vendor_way *w, abi_enum algorithm, size_t *bytes) {
  switch (w->direction) {
  case VENDOR_CONVOLVE:
    return cudnn.cudnnGetConvolutionForwardWorkspaceSize(dnn->handle, w->x, w->kernel, w->convolution, w->y, algorithm,
                                                         bytes);
  case VENDOR_CONVOLVE_GRAD_INPUT:
    return cudnn.cudnnGetConvolutionBackwardDataWorkspaceSize(dnn->handle, w->kernel, w->y, w->convolution, w->x,
                                                              algorithm, bytes);
  default:
    return cudnn.cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn->handle, w->x, w->y, w->convolution, w->kernel,
                                                                algorithm, bytes);
  }
}

/* Takes an algorithm if it may be taken. The list tells the arithmetic that goes with it; where short formats are not
 * allowed ours stays, whatever the list says, and the workspace is that of both together. */
static bool take(vendor_dnn *dnn, vendor_way *way, const vendor_convolution *c, const cudnn_abi_performance *found) {
  size_t bytes = 0;
  if (found->status != 0 || found->memory > c->workspace_limit) return false;
  if (found->determinism != CUDNN_ABI_DETERMINISTIC && !c->nondeterministic) return false;
  abi_enum math = math_for(c) == CUDNN_ABI_FMA_MATH ? CUDNN_ABI_FMA_MATH : found->math;
  if (cudnn.cudnnSetConvolutionMathType(way->convolution, math) != 0) return false;
  if (ask_workspace(dnn, way, found->algorithm, &bytes) != 0 || bytes > c->workspace_limit) return false;
  way->algorithm = found->algorithm;
  way->workspace = bytes;
  return true;
}

helio_status vendor_dnn_find(vendor_dnn *dnn, const vendor_convolution *convolution, vendor_way **result,
                             size_t *workspace, const char **words) {
  const helio_host *host = dnn->host;
  *result = NULL;
  *words = NULL;
  vendor_way *way = host->allocate(host, sizeof *way);
  if (way == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plan of a convolution");
  *way = (vendor_way){.host = host, .direction = convolution->direction, .wide = convolution->type == HELIO_FLOAT64};
  abi_enum status = create(way);
  if (status != 0) {
    vendor_way_free(way);
    return gpu_dnn_fail(host, status, "making descriptors");
  }
  cudnn_abi_performance found[MOST_ALGORITHMS];
  int count = 0;
  pthread_mutex_lock(&dnn->lock);
  status = describe(way, convolution);
  if (status == 0) status = list(dnn, way, &count, found);
  if (status != 0) { /* it does not have this one */
    count = 0;
    *words = cudnn.cudnnGetErrorString(status);
  }
  for (int i = 0; i < count && *result == NULL; i++) {
    if (take(dnn, way, convolution, &found[i])) *result = way;
  }
  pthread_mutex_unlock(&dnn->lock);
  if (*result == NULL)
    vendor_way_free(way);
  else
    *workspace = way->workspace;
  return HELIO_OK;
}

helio_status vendor_dnn_convolve(vendor_dnn *dnn, vendor_way *w, gpu_address x, gpu_address kernel, gpu_address y,
                                 gpu_address workspace) {
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const void *alpha = w->wide ? (const void *)&wide_one : &one, *beta = w->wide ? (const void *)&wide_zero : &zero;
  void *at_x = (void *)(uintptr_t)x, *at_kernel = (void *)(uintptr_t)kernel, *at_y = (void *)(uintptr_t)y;
  void *scratch = w->workspace == 0 ? NULL : (void *)(uintptr_t)workspace;
  abi_enum status;
  pthread_mutex_lock(&dnn->lock);
  if (w->direction == VENDOR_CONVOLVE)
    status = cudnn.cudnnConvolutionForward(dnn->handle, alpha, w->x, at_x, w->kernel, at_kernel, w->convolution,
                                           w->algorithm, scratch, w->workspace, beta, w->y, at_y);
  else if (w->direction == VENDOR_CONVOLVE_GRAD_INPUT)
    status = cudnn.cudnnConvolutionBackwardData(dnn->handle, alpha, w->kernel, at_kernel, w->y, at_y, w->convolution,
                                                w->algorithm, scratch, w->workspace, beta, w->x, at_x);
  else
    status = cudnn.cudnnConvolutionBackwardFilter(dnn->handle, alpha, w->x, at_x, w->y, at_y, w->convolution,
                                                  w->algorithm, scratch, w->workspace, beta, w->kernel, at_kernel);
  pthread_mutex_unlock(&dnn->lock);
  return status == 0 ? HELIO_OK : gpu_dnn_fail(dnn->host, status, "a convolution");
}
