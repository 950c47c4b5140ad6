/* SPDX-License-Identifier: Apache-2.0 */
/* libcudnn.so: which algorithms there are for a convolution, after the tables of the vendor's documentation: which
 * shapes, layouts and types each takes, and whether its sums have a fixed order. How long they take and how much memory
 * they want is made up, such that the first of a list is not always one that a careful program may take. */
#include "cudnn_face.h"

#include <string.h>

typedef struct trait {
  const char *name;
  float speed; /* the greater the earlier in the list; 0: cuDNN does not have it */
  bool deterministic;
  bool tensor_ops;        /* on tensor cores, for which float32 is rounded */
  bool any_layout;        /* also channels last, or with gaps */
  bool dilated;           /* dilations other than 1 */
  bool strided;           /* strides other than 1 */
  bool doubles;           /* also double precision */
  int smallest, greatest; /* odd and square filters that it takes; 0: any */
  bool small_padding;     /* less than the filter */
  int most_pixels;        /* in one dimension, with padding; 0: any */
  size_t (*workspace)(const sim_convolution_call *call);
} trait;

/* ---------------------------------------------------------------------------------------------------------------------
 * Workspaces, in bytes
 */

static size_t taps(const sim_convolution_call *c) {
  return sim_times(sim_times((size_t)c->w.dims[1], (size_t)c->w.dims[2]), (size_t)c->w.dims[3]);
}

static size_t pixels(const sim_tensor *tensor) {
  return (size_t)tensor->dims[2] * (size_t)tensor->dims[3];
}

static size_t nothing(const sim_convolution_call *c) {
  (void)c;
  return 0;
}

static size_t offsets(const sim_convolution_call *c) {
  return 4 * (taps(c) + pixels(&c->y));
}
static size_t columns(const sim_convolution_call *c) {
  return sim_times(sim_times(4, taps(c)), pixels(&c->y));
}
static size_t filters(const sim_convolution_call *c) {
  return 4 * sim_tensor_count(&c->w);
}

/* Images, filters and results, each transformed to `size` complex numbers. */
static size_t transformed(const sim_convolution_call *c, size_t size) {
  size_t n = (size_t)c->x.dims[0], channels = (size_t)c->x.dims[1], k = (size_t)c->w.dims[0];
  return sim_times(8 * size, n * channels + k * channels + n * k);
}

static int64_t padded(const sim_convolution_call *c, int dim) {
  return c->x.dims[2 + dim] + 2 * (int64_t)c->convolution.pad[dim];
}

static size_t spectra(const sim_convolution_call *c) {
  size_t side = 1;
  for (int i = 0; i < 2; i++)
    while ((int64_t)side < padded(c, i)) side *= 2;
  return transformed(c, side * side);
}

static size_t tiles(const sim_convolution_call *c) {
  return transformed(c, 32 * 32);
}
static size_t winograd(const sim_convolution_call *c) {
  return transformed(c, 16) / 2;
}

static size_t more_winograd(const sim_convolution_call *c) {
  return transformed(c, 64) / 2;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The tables
 */

#define ANY .any_layout = true, .dilated = true, .strided = true, .doubles = true

static const trait forward[CUDNN_ABI_FORWARD_COUNT] = {
    [CUDNN_ABI_FORWARD_IMPLICIT_GEMM] = {"implicit gemm", 1, true, false, ANY, .workspace = nothing},
    [CUDNN_ABI_FORWARD_PRECOMPUTED_GEMM] = {"precomputed gemm", 5, true, true, ANY, .workspace = offsets},
    [CUDNN_ABI_FORWARD_GEMM] = {"gemm", 2, true, false, .strided = true, .doubles = true, .workspace = columns},
    [CUDNN_ABI_FORWARD_DIRECT] = {"direct", 0, true, false, .workspace = nothing},
    [CUDNN_ABI_FORWARD_FFT] = {"fft", 7, true, false, .small_padding = true, .most_pixels = 256, .workspace = spectra},
    [CUDNN_ABI_FORWARD_FFT_TILING] = {"fft tiling", 4, true, false, .greatest = 32, .small_padding = true,
                                      .workspace = tiles},
    [CUDNN_ABI_FORWARD_WINOGRAD] = {"winograd", 6, true, false, .smallest = 3, .greatest = 3, .workspace = winograd},
    [CUDNN_ABI_FORWARD_WINOGRAD_NONFUSED] = {"winograd nonfused", 8, true, false, .smallest = 3, .greatest = 5,
                                             .workspace = more_winograd},
};

static const trait backward_data[CUDNN_ABI_DATA_COUNT] = {
    [CUDNN_ABI_DATA_0] = {"0", 9, false, false, ANY, .workspace = nothing},
    [CUDNN_ABI_DATA_1] = {"1", 5, true, true, ANY, .workspace = offsets},
    [CUDNN_ABI_DATA_FFT] = {"fft", 7, true, false, .small_padding = true, .most_pixels = 256, .workspace = spectra},
    [CUDNN_ABI_DATA_FFT_TILING] = {"fft tiling", 4, true, false, .greatest = 32, .small_padding = true,
                                   .workspace = tiles},
    [CUDNN_ABI_DATA_WINOGRAD] = {"winograd", 6, true, false, .smallest = 3, .greatest = 3, .workspace = winograd},
    [CUDNN_ABI_DATA_WINOGRAD_NONFUSED] = {"winograd nonfused", 8, true, false, .smallest = 3, .greatest = 5,
                                          .workspace = more_winograd},
};

static const trait backward_filter[CUDNN_ABI_FILTER_COUNT] = {
    [CUDNN_ABI_FILTER_0] = {"0", 9, false, false, ANY, .workspace = nothing},
    [CUDNN_ABI_FILTER_1] = {"1", 5, true, true, ANY, .workspace = filters},
    [CUDNN_ABI_FILTER_FFT] = {"fft", 7, true, false, .small_padding = true, .most_pixels = 256, .workspace = spectra},
    [CUDNN_ABI_FILTER_3] = {"3", 10, false, false, .strided = true, .doubles = true, .workspace = offsets},
    [CUDNN_ABI_FILTER_WINOGRAD] = {"winograd", 0, true, false, .workspace = nothing},
    [CUDNN_ABI_FILTER_WINOGRAD_NONFUSED] = {"winograd nonfused", 8, true, false, .smallest = 3, .greatest = 5,
                                            .workspace = more_winograd},
    [CUDNN_ABI_FILTER_FFT_TILING] = {"fft tiling", 4, true, false, .greatest = 32, .small_padding = true,
                                     .workspace = tiles},
};

static const struct {
  const trait *traits;
  abi_enum count;
} tables[] = {[SIM_FORWARD] = {forward, CUDNN_ABI_FORWARD_COUNT},
              [SIM_BACKWARD_DATA] = {backward_data, CUDNN_ABI_DATA_COUNT},
              [SIM_BACKWARD_FILTER] = {backward_filter, CUDNN_ABI_FILTER_COUNT}};

static bool takes_window(const trait *t, const sim_convolution_call *call, int dim) {
  const sim_convolution *c = &call->convolution;
  int window = call->w.dims[2 + dim];
  if ((!t->strided && c->stride[dim] != 1) || (!t->dilated && c->dilation[dim] != 1)) return false;
  if (t->smallest && (window % 2 == 0 || call->w.dims[2] != call->w.dims[3])) return false;
  if (window < t->smallest || (t->greatest && window > t->greatest)) return false;
  if (t->small_padding && c->pad[dim] >= window) return false;
  return !t->most_pixels || padded(call, dim) <= t->most_pixels;
}

static bool takes(const trait *t, const sim_convolution_call *call) {
  if (t->speed == 0 || (!t->any_layout && !sim_convolution_is_packed(call, false))) return false;
  if (!t->doubles && call->x.type == SIM_FLOAT64) return false;
  return takes_window(t, call, 0) && takes_window(t, call, 1);
}

/* Arithmetic is what the descriptor allows and the algorithm can. Tensor cores want more memory. */
cudnn_algorithm cudnn_judge(const sim_convolution_call *call, abi_enum math, abi_enum algorithm) {
  if (algorithm >= tables[call->direction].count) return (cudnn_algorithm){.status = CUDNN_ABI_NOT_SUPPORTED};
  const trait *t = &tables[call->direction].traits[algorithm];
  bool tensor_ops = t->tensor_ops && math != CUDNN_ABI_FMA_MATH && call->x.type != SIM_FLOAT64;
  cudnn_algorithm judged = {.deterministic = t->deterministic, .math = CUDNN_ABI_FMA_MATH};
  if (tensor_ops) judged.math = math == CUDNN_ABI_DEFAULT_MATH ? CUDNN_ABI_TENSOR_OP_MATH : math;
  judged.status = takes(t, call) ? 0 : CUDNN_ABI_NOT_SUPPORTED;
  if (!judged.status) judged.workspace = t->workspace(call) * (tensor_ops ? 2 : 1);
  return judged;
}

/* ---------------------------------------------------------------------------------------------------------------------
 * The calls
 */

/* Those that do the work first, then those that do not: they are in the list as well, with a status. */
static bool comes_before(const cudnn_abi_performance *a, const cudnn_abi_performance *b) {
  if (!a->status != !b->status) return !a->status;
  return a->time < b->time;
}

int cudnn_list(const sim_convolution_call *call, abi_enum math, int wanted, cudnn_abi_performance *results) {
  cudnn_abi_performance all[CUDNN_ABI_FORWARD_COUNT];
  int count = (int)tables[call->direction].count;
  for (int i = 0; i < count; i++) {
    cudnn_algorithm judged = cudnn_judge(call, math, (abi_enum)i);
    cudnn_abi_performance entry = {.algorithm = (abi_enum)i, .status = judged.status, .time = -1};
    if (!judged.status) {
      entry.time = 1 / tables[call->direction].traits[i].speed;
      entry.memory = judged.workspace;
    }
    entry.determinism = judged.deterministic ? CUDNN_ABI_DETERMINISTIC : CUDNN_ABI_NON_DETERMINISTIC;
    entry.math = judged.math;
    int place = i;
    for (; place > 0 && comes_before(&entry, &all[place - 1]); place--) all[place] = all[place - 1];
    all[place] = entry;
  }
  if (count > wanted) count = wanted;
  memcpy(results, all, (size_t)count * sizeof *results);
  return count;
}
