/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by MIOpen in its immediate mode: a handle lists solutions, compiles the one that was chosen, and runs
 * it. What one handle has compiled another has not. So a plan chooses and compiles by the device's handle, which the
 * first stream uses as well, and another stream's handle lists and compiles when it meets the way for the first time.
 */
#include "../gpu/dnn.h"

typedef struct table {
  MIOPEN_HANDLE_FUNCTIONS(GPU_POINTER)
  MIOPEN_DESCRIPTOR_FUNCTIONS(GPU_POINTER)
  MIOPEN_IMMEDIATE_FUNCTIONS(GPU_POINTER)
} table;

#define GPU_TABLE table
static const gpu_symbol symbols[] = {MIOPEN_HANDLE_FUNCTIONS(GPU_SYMBOL) MIOPEN_DESCRIPTOR_FUNCTIONS(GPU_SYMBOL)
                                         MIOPEN_IMMEDIATE_FUNCTIONS(GPU_SYMBOL)};

/* Some of its kernels have offsets of 32 bits, in bytes, and are taken all the same. */
const vendor_library vendor_dnn_library = {
    .title = "MIOpen",
    .install = "install that of your ROCm version (Debian: libmiopen; AMD: miopen-hip)",
    .most_bytes = INT32_MAX,
};

static table miopen;
static gpu_opened opened = GPU_NOT_OPENED;

enum { MOST_SOLUTIONS = 32, MOST_HANDLES = 16 };

struct vendor_way {
  const helio_host *host;
  vendor_direction direction;
  struct miopenTensorDescriptor *x, *kernel, *y;
  struct miopenConvolutionDescriptor *convolution;
  uint64_t solution;
  size_t workspace;
  pthread_mutex_t lock;            /* of what follows */
  uint64_t compiled[MOST_HANDLES]; /* numbers of handles that have; the oldest is forgotten, and compiles again */
  unsigned next;
};

bool vendor_dnn_open(const helio_host *host, char *reason, size_t size) {
  static const char *const names[] = {"libMIOpen.so.1", NULL};
  gpu_wanted wanted = {
      .names = names, .symbols = symbols, .symbol_count = sizeof symbols / sizeof symbols[0], .table = &miopen};
  return gpu_vendor_library_open(&opened, host, &wanted, reason, size);
}

helio_status vendor_dnn_meaning(abi_enum status) {
  switch (status) {
  case MIOPEN_ABI_ALLOC_FAILED:
    return HELIO_OUT_OF_MEMORY;
  case MIOPEN_ABI_INVALID_VALUE:
  case MIOPEN_ABI_BAD_PARM:
    return HELIO_INVALID_ARGUMENT;
  default: /* whatever it threw; a device that is lost says so itself */
    return HELIO_NOT_SUPPORTED;
  }
}

const char *vendor_dnn_words(abi_enum status) {
  return miopen.miopenGetErrorString(status);
}

abi_enum vendor_dnn_make_handle(struct miopenHandle **handle) {
  return miopen.miopenCreateWithStream(handle, NULL);
}

void vendor_dnn_end_handle(struct miopenHandle *handle) {
  (void)miopen.miopenDestroy(handle);
}

abi_enum vendor_dnn_set_stream(struct miopenHandle *handle, vendor_stream *stream) {
  return miopen.miopenSetStream(handle, (struct ihipStream_t *)stream);
}

/* --- describing a convolution --- */

void vendor_way_free(vendor_way *way) {
  if (way == NULL) return;
  if (way->convolution != NULL) (void)miopen.miopenDestroyConvolutionDescriptor(way->convolution);
  if (way->y != NULL) (void)miopen.miopenDestroyTensorDescriptor(way->y);
  if (way->kernel != NULL) (void)miopen.miopenDestroyTensorDescriptor(way->kernel);
  if (way->x != NULL) (void)miopen.miopenDestroyTensorDescriptor(way->x);
  pthread_mutex_destroy(&way->lock);
  way->host->release(way->host, way);
}

static abi_enum create(vendor_way *way) {
  abi_enum status = miopen.miopenCreateTensorDescriptor(&way->x);
  if (status == 0) status = miopen.miopenCreateTensorDescriptor(&way->kernel);
  if (status == 0) status = miopen.miopenCreateTensorDescriptor(&way->y);
  return status == 0 ? miopen.miopenCreateConvolutionDescriptor(&way->convolution) : status;
}

/* Sizes are told as (number, channels, height, width) wherever they lie. */
static abi_enum describe_tensor(struct miopenTensorDescriptor *tensor, uint32_t type, int number, int channels,
                                int height, int width) {
  const int sizes[4] = {number, channels, height, width};
  return miopen.miopenSetNdTensorDescriptorWithLayout(tensor, gpu_dnn_type(type), MIOPEN_ABI_NHWC, sizes, 4);
}

static abi_enum describe(vendor_way *way, const vendor_convolution *c) {
  abi_enum status = describe_tensor(way->x, c->type, c->images, c->channels, c->height, c->width);
  if (status == 0)
    status =
        describe_tensor(way->kernel, c->type, c->out_channels, c->channels / c->groups, c->kernel[0], c->kernel[1]);
  if (status == 0) status = describe_tensor(way->y, c->type, c->images, c->out_channels, c->out_height, c->out_width);
  if (status == 0)
    status = miopen.miopenInitConvolutionDescriptor(way->convolution, MIOPEN_ABI_CROSS_CORRELATION, c->padding[0],
                                                    c->padding[1], c->stride[0], c->stride[1], c->dilation[0],
                                                    c->dilation[1]);
  if (status == 0) status = miopen.miopenSetConvolutionGroupCount(way->convolution, c->groups);
  /* Left to itself MIOpen rounds halves to bfloat16 in gradients on gfx90a, for the sake of numbers below 2⁻¹⁴, which
   * that GPU's units for halves take for zero. Three bits of all others are worth more. */
  if (status == 0 && c->type == HELIO_FLOAT16)
    status = miopen.miopenSetConvolutionAttribute(way->convolution, MIOPEN_ABI_ATTRIBUTE_ALTERNATIVE_HALF, 0);
  if (status == 0)
    status = miopen.miopenSetConvolutionAttribute(way->convolution, MIOPEN_ABI_ATTRIBUTE_DETERMINISTIC,
                                                  !c->nondeterministic);
  return status;
}

/* --- choosing and compiling a solution --- */

static abi_enum list(vendor_dnn *dnn, const vendor_way *w, size_t *count, miopen_abi_solution *found) {
  switch (w->direction) {
  case VENDOR_CONVOLVE:
    return miopen.miopenConvolutionForwardGetSolution(dnn->handle, w->kernel, w->x, w->convolution, w->y,
                                                      MOST_SOLUTIONS, count, found);
  case VENDOR_CONVOLVE_GRAD_INPUT:
    return miopen.miopenConvolutionBackwardDataGetSolution(dnn->handle, w->y, w->kernel, w->convolution, w->x,
                                                           MOST_SOLUTIONS, count, found);
  default:
    return miopen.miopenConvolutionBackwardWeightsGetSolution(dnn->handle, w->y, w->x, w->convolution, w->kernel,
                                                              MOST_SOLUTIONS, count, found);
  }
}

static abi_enum compile(vendor_dnn *dnn, const vendor_way *w) {
  switch (w->direction) {
  case VENDOR_CONVOLVE:
    return miopen.miopenConvolutionForwardCompileSolution(dnn->handle, w->kernel, w->x, w->convolution, w->y,
                                                          w->solution);
  case VENDOR_CONVOLVE_GRAD_INPUT:
    return miopen.miopenConvolutionBackwardDataCompileSolution(dnn->handle, w->y, w->kernel, w->convolution, w->x,
                                                               w->solution);
  default:
    return miopen.miopenConvolutionBackwardWeightsCompileSolution(dnn->handle, w->y, w->x, w->convolution, w->kernel,
                                                                  w->solution);
  }
}

static bool is_compiled(vendor_way *way, const vendor_dnn *dnn) {
  bool compiled = false;
  pthread_mutex_lock(&way->lock);
  for (unsigned i = 0; i < MOST_HANDLES; i++) compiled = compiled || way->compiled[i] == dnn->number;
  pthread_mutex_unlock(&way->lock);
  return compiled;
}

/* Behind a list, under the handle's lock. */
static abi_enum compile_for(vendor_dnn *dnn, vendor_way *way) {
  abi_enum status = compile(dnn, way);
  if (status != 0) return status;
  pthread_mutex_lock(&way->lock);
  way->compiled[way->next++ % MOST_HANDLES] = dnn->number;
  pthread_mutex_unlock(&way->lock);
  return 0;
}

/* The turn comes before the handle's lock, which a thread may want whose turn it is: see libraries.c. */
static helio_status prepare(vendor_dnn *dnn, vendor_way *way) {
  miopen_abi_solution found[MOST_SOLUTIONS];
  size_t count = 0;
  if (is_compiled(way, dnn)) return HELIO_OK;
  dnn->host->turn_begin(dnn->host, HELIO_TURN_DRIVER);
  pthread_mutex_lock(&dnn->lock);
  abi_enum status = list(dnn, way, &count, found); /* it wants to have been asked */
  if (status == 0) status = compile_for(dnn, way);
  pthread_mutex_unlock(&dnn->lock);
  dnn->host->turn_end(dnn->host, HELIO_TURN_DRIVER);
  return status == 0 ? HELIO_OK
                     : gpu_library_fail(dnn->host, &vendor_dnn_library, "compiling a convolution", HELIO_NOT_SUPPORTED,
                                        vendor_dnn_words(status));
}

/* A hundred times slower than others, and slower than kernels of our own. Channels behind and sums in one order leave
 * nothing else on many cards. */
static bool is_naive(uint64_t solution) {
  return solution >= MIOPEN_ABI_NAIVE_FORWARD && solution <= MIOPEN_ABI_NAIVE_WEIGHTS;
}

/* Versions of MIOpen add the gradients of grouped kernels in any order, whatever their attribute says ... */
static bool is_disorderly(const vendor_convolution *c) {
  return c->direction == VENDOR_CONVOLVE_GRAD_KERNEL && c->groups > 1 && !c->nondeterministic;
}

/* ... and have a solution that does so for others. */
static bool may_take(const vendor_convolution *c, const miopen_abi_solution *solution) {
  bool disorderly = solution->id == MIOPEN_ABI_GROUP_WEIGHTS && !c->nondeterministic;
  return solution->workspace <= c->workspace_limit && !is_naive(solution->id) && !disorderly;
}

/* The fastest solution that has memory enough and can be compiled. Under the handle's lock. False, with the last
 * failure, if there was one, in *status. */
static bool choose(vendor_dnn *dnn, vendor_way *way, const vendor_convolution *convolution, abi_enum *status) {
  miopen_abi_solution found[MOST_SOLUTIONS];
  size_t count = 0;
  *status = describe(way, convolution);
  if (*status == 0) *status = list(dnn, way, &count, found);
  if (*status != 0) return false;
  for (size_t i = 0; i < count; i++) {
    if (!may_take(convolution, &found[i])) continue;
    way->solution = found[i].id;
    way->workspace = found[i].workspace;
    *status = compile_for(dnn, way);
    if (*status == 0) return true;
  }
  return false;
}

helio_status vendor_dnn_find(vendor_dnn *dnn, const vendor_convolution *convolution, vendor_way **result,
                             size_t *workspace, const char **words) {
  const helio_host *host = dnn->host;
  *result = NULL;
  *words = NULL;
  if (is_disorderly(convolution)) return HELIO_OK;
  vendor_way *way = host->allocate(host, sizeof *way);
  if (way == NULL) return host->fail(host, HELIO_OUT_OF_MEMORY, "no memory for the plan of a convolution");
  *way = (vendor_way){.host = host, .direction = convolution->direction};
  pthread_mutex_init(&way->lock, NULL);
  abi_enum status = create(way);
  if (status != 0) {
    vendor_way_free(way);
    return gpu_dnn_fail(host, status, "making descriptors");
  }
  pthread_mutex_lock(&dnn->lock);
  bool chosen = choose(dnn, way, convolution, &status);
  pthread_mutex_unlock(&dnn->lock);
  if (!chosen) { /* it does not have this one */
    if (status != 0) *words = miopen.miopenGetErrorString(status);
    vendor_way_free(way);
    return HELIO_OK;
  }
  *workspace = way->workspace;
  *result = way;
  return HELIO_OK;
}

helio_status vendor_dnn_convolve(vendor_dnn *dnn, vendor_way *w, gpu_address x, gpu_address kernel, gpu_address y,
                                 gpu_address workspace) {
  void *at_x = (void *)(uintptr_t)x, *at_kernel = (void *)(uintptr_t)kernel, *at_y = (void *)(uintptr_t)y;
  void *scratch = w->workspace == 0 ? NULL : (void *)(uintptr_t)workspace;
  helio_status prepared = prepare(dnn, w);
  if (prepared != HELIO_OK) return prepared;
  abi_enum status;
  pthread_mutex_lock(&dnn->lock);
  if (w->direction == VENDOR_CONVOLVE)
    status = miopen.miopenConvolutionForwardImmediate(dnn->handle, w->kernel, at_kernel, w->x, at_x, w->convolution,
                                                      w->y, at_y, scratch, w->workspace, w->solution);
  else if (w->direction == VENDOR_CONVOLVE_GRAD_INPUT)
    status = miopen.miopenConvolutionBackwardDataImmediate(
        dnn->handle, w->y, at_y, w->kernel, at_kernel, w->convolution, w->x, at_x, scratch, w->workspace, w->solution);
  else
    status = miopen.miopenConvolutionBackwardWeightsImmediate(dnn->handle, w->y, at_y, w->x, at_x, w->convolution,
                                                              w->kernel, at_kernel, scratch, w->workspace, w->solution);
  pthread_mutex_unlock(&dnn->lock);
  return status == 0 ? HELIO_OK : gpu_dnn_fail(dnn->host, status, "a convolution");
}
