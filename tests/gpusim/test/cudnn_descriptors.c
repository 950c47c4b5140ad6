/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_descriptors LIBRARY COUNT: opens a cuDNN by its path, sets COUNT random descriptors of each kind, right ones
 * and wrong ones, and prints what it answers. The test runs it with the real library and with the stand-in, and
 * compares. No device is needed. Descriptors that were never set are left out: to the stand-in they are a violation. */
#include "cudnn.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define X(result, name, arguments) static result(*name) arguments;
CUDNN_DESCRIPTOR_FUNCTIONS(X)
CUDNN_MORE_DESCRIPTOR_FUNCTIONS(X)
X(const char *, cudnnGetErrorString, (abi_enum status))
#undef X

static void *find(void *library, const char *name) {
  void *function = dlsym(library, name);
  if (function) return function;
  fprintf(stderr, "cudnn_descriptors: %s\n", dlerror());
  exit(2);
}

static void look_up(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "cudnn_descriptors: %s\n", dlerror());
    exit(2);
  }
#define X(result, name, arguments) *(void **)&name = find(library, #name);
  CUDNN_DESCRIPTOR_FUNCTIONS(X)
  CUDNN_MORE_DESCRIPTOR_FUNCTIONS(X)
  X(const char *, cudnnGetErrorString, (abi_enum status))
#undef X
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Chance
 */

static uint64_t chance = 1;

static int below(int bound) {
  chance = chance * 6364136223846793005u + 1442695040888963407u;
  return (int)(chance >> 33) % bound;
}

static int number(int low, int high) {
  return low + below(high - low + 1);
}

/* Now and then one of the numbers is wrong, or so great that an int cannot count its multiples. Only one: with two of
 * them the real library lets its sizes overflow. */
static void spoil(int *numbers, int count, bool also_great) {
  static const int odd[] = {0, -1, -3, 300, 1000, 46341, 65536, 2000000000};
  if (!below(6)) numbers[below(count)] = odd[below(also_great ? 8 : 5)];
}

static int in_enum(int count) {
  return below(30) ? below(count) : count + below(3);
}

/* Types that need formats of their own are left out. */
static abi_enum type(void) {
  static const abi_enum types[] = {
      CUDNN_ABI_FLOAT, CUDNN_ABI_DOUBLE, CUDNN_ABI_HALF, CUDNN_ABI_INT8, CUDNN_ABI_INT32, CUDNN_ABI_BFLOAT16, 77};
  return types[below(4) ? 0 : below(7)];
}

/* ---------------------------------------------------------------------------------------------------------------------
 * Descriptors
 */

static struct cudnnTensorStruct *tensor;
static struct cudnnFilterStruct *filter;
static struct cudnnConvolutionStruct *convolution;
static struct cudnnPoolingStruct *pooling;
static bool tensor_is_set, filter_is_set, convolution_is_set, pooling_is_set;
static int channels, groups = 1; /* of the tensor and the convolution that were set last */

static void tell(const char *what, abi_enum status) {
  printf("%s %u %s\n", what, status, cudnnGetErrorString(status));
}

/* A descriptor that was refused may be anything; what follows must not look at it. */
static void renew_tensor(abi_enum status) {
  tensor_is_set = status == 0;
  if (tensor_is_set) return;
  cudnnDestroyTensorDescriptor(tensor);
  cudnnCreateTensorDescriptor(&tensor);
}

/* Prints the arguments, so that a difference can be understood. */
static void tell_numbers(const char *what, int count, const int *numbers) {
  printf("%s", what);
  for (int i = 0; i < count; i++) printf(" %d", numbers[i]);
  printf(": ");
}

static abi_enum set_strided_tensor(abi_enum of, int rank, const int *dims, const int *strides) {
  tell_numbers("dims", rank, dims);
  tell_numbers("strides", rank, strides);
  if (below(2)) return cudnnSetTensorNdDescriptor(tensor, of, rank, dims, strides);
  return cudnnSetTensor4dDescriptorEx(tensor, of, dims[0], dims[1], dims[2], dims[3], strides[0], strides[1],
                                      strides[2], strides[3]);
}

static void set_tensor(void) {
  int dims[5], strides[5], format = below(30) ? below(2) : 3;
  abi_enum of = type(), status;
  for (int i = 0; i < 5; i++) dims[i] = number(1, 12);
  for (int i = 0; i < 5; i++) strides[i] = number(1, 600);
  spoil(below(2) ? dims : strides, 4, true);
  channels = dims[1];
  tell_numbers("type and format", 2, (int[]){(int)of, format});
  if (below(2)) {
    tell_numbers("dims", 4, dims);
    status = cudnnSetTensor4dDescriptor(tensor, (abi_enum)format, of, dims[0], dims[1], dims[2], dims[3]);
  } else if (below(4)) {
    status = set_strided_tensor(of, 4, dims, strides);
  } else {
    static const int ranks[] = {-1, 0, 1, 2, 3, 5, 9};
    int rank = ranks[below(7)], most = rank < 5 ? rank : 5;
    tell_numbers("rank", 1, &rank);
    tell_numbers("dims", most, dims);
    tell_numbers("strides", most, strides);
    int wide_dims[9] = {0}, wide_strides[9] = {0};
    for (int i = 0; i < 9; i++) wide_dims[i] = i < 5 ? dims[i] : 1;
    for (int i = 0; i < 9; i++) wide_strides[i] = i < 5 ? strides[i] : 1;
    status = cudnnSetTensorNdDescriptor(tensor, of, rank, wide_dims, wide_strides);
  }
  tell("tensor", status);
  renew_tensor(status);
}

/* Mostly with the channels that the tensor asks for. */
static void set_filter(void) {
  int sizes[] = {number(1, 8), below(4) && channels >= groups ? channels / groups : number(1, 8), number(1, 5),
                 number(1, 5)};
  int of = (int)type(), format = below(30) ? below(2) : 3;
  spoil(sizes, 4, false);
  tell_numbers("type and format", 2, (int[]){of, format});
  tell_numbers("sizes", 4, sizes);
  abi_enum status =
      cudnnSetFilter4dDescriptor(filter, (abi_enum)of, (abi_enum)format, sizes[0], sizes[1], sizes[2], sizes[3]);
  tell("filter", status);
  filter_is_set = status == 0;
  if (filter_is_set) return;
  cudnnDestroyFilterDescriptor(filter);
  cudnnCreateFilterDescriptor(&filter);
}

static void set_convolution(void) {
  int n[] = {number(0, 3), number(0, 3), number(1, 3), number(1, 3), number(1, 3), number(1, 3)};
  int mode = in_enum(2), of = (int)type(), math = in_enum(4);
  spoil(n, 6, false);
  tell_numbers("numbers", 6, n);
  tell_numbers("mode and type", 2, (int[]){mode, of});
  abi_enum status =
      cudnnSetConvolution2dDescriptor(convolution, n[0], n[1], n[2], n[3], n[4], n[5], (abi_enum)mode, (abi_enum)of);
  tell("convolution", status);
  convolution_is_set = status == 0;
  groups = below(3) ? 1 : number(-1, 4);
  tell_numbers("groups and math", 2, (int[]){groups, math});
  tell("groups", cudnnSetConvolutionGroupCount(convolution, groups));
  tell("math", cudnnSetConvolutionMathType(convolution, (abi_enum)math));
  if (groups < 1) groups = 1;
  if (convolution_is_set) return;
  cudnnDestroyConvolutionDescriptor(convolution);
  cudnnCreateConvolutionDescriptor(&convolution);
}

static void set_pooling(void) {
  int n[] = {number(1, 6), number(1, 6), below(4) ? 0 : number(-2, 3), below(4) ? 0 : number(-2, 3),
             number(1, 4), number(1, 4)};
  int mode = in_enum(4), nan = in_enum(2);
  spoil(n, 6, false);
  tell_numbers("mode and nan", 2, (int[]){mode, nan});
  tell_numbers("numbers", 6, n);
  abi_enum status =
      cudnnSetPooling2dDescriptor(pooling, (abi_enum)mode, (abi_enum)nan, n[0], n[1], n[2], n[3], n[4], n[5]);
  tell("pooling", status);
  pooling_is_set = status == 0;
  if (pooling_is_set) return;
  cudnnDestroyPoolingDescriptor(pooling);
  cudnnCreatePoolingDescriptor(&pooling);
}

static void tell_sizes(const char *what, abi_enum status, const int *sizes) {
  tell(what, status);
  if (status == 0) printf("  %d %d %d %d\n", sizes[0], sizes[1], sizes[2], sizes[3]);
}

static void ask(void) {
  int sizes[4];
  if (tensor_is_set && filter_is_set && convolution_is_set)
    tell_sizes(
        "convolved",
        cudnnGetConvolution2dForwardOutputDim(convolution, tensor, filter, &sizes[0], &sizes[1], &sizes[2], &sizes[3]),
        sizes);
  if (tensor_is_set && pooling_is_set)
    tell_sizes("pooled", cudnnGetPooling2dForwardOutputDim(pooling, tensor, &sizes[0], &sizes[1], &sizes[2], &sizes[3]),
               sizes);
}

int main(int count, char **arguments) {
  if (count != 3) {
    fprintf(stderr, "usage: cudnn_descriptors LIBRARY COUNT\n");
    return 2;
  }
  look_up(arguments[1]);
  tell("create", cudnnCreateTensorDescriptor(&tensor));
  tell("create", cudnnCreateFilterDescriptor(&filter));
  tell("create", cudnnCreateConvolutionDescriptor(&convolution));
  tell("create", cudnnCreatePoolingDescriptor(&pooling));
  for (int i = atoi(arguments[2]); i > 0; i--) {
    set_tensor();
    set_convolution();
    set_filter();
    set_pooling();
    ask();
  }
  tell("destroy", cudnnDestroyTensorDescriptor(tensor));
  tell("destroy", cudnnDestroyFilterDescriptor(filter));
  tell("destroy", cudnnDestroyConvolutionDescriptor(convolution));
  tell("destroy", cudnnDestroyPoolingDescriptor(pooling));
  return 0;
}
